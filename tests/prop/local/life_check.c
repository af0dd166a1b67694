/* What must hold of a random site after a pass. */
#include "tests/prop/local/life.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A question answered from the timeline of an earlier one has the answer of a timeline of its own. */
void life_check_question (struct life *l)
{
    struct req req = {.tasks = (uint32_t)life_pick (l, 1, 6)};
    struct who who = {.cred = {(uint32_t)life_pick (l, 1, 5), CRED_NONE, CRED_NONE, CRED_NONE, 0},
                      .procs = req.tasks};
    struct query q = {.req_count = 1,
                      .req = &req,
                      .duration = life_pick (l, 1, 60) * US_PER_S,
                      .until = TIME_US_MAX,
                      .queue = true,
                      .who = life_pick (l, 0, 1) ? &who : NULL};
    struct slot kept, fresh;
    struct arena *arena = arena_create (0);
    time_us at = l->now + life_pick (l, 0, 9) * US_PER_S;

    req.task.v[RES_PROCS] = 1;
    q.from = at + life_pick (l, 0, 3) * US_PER_S;
    assert_int_equal (query_earliest (l->twin[0], &q, at, arena, &kept, NULL), 0);
    q.inside.v = UINT64_MAX; /* no reservation's: nothing is kept for such a question */
    assert_int_equal (query_earliest (l->twin[0], &q, at, arena, &fresh, NULL), 0);
    assert_int_equal (kept.start, fresh.start);
    assert_int_equal (kept.reason.code, fresh.reason.code);
    assert_int_equal (kept.reason.have, fresh.reason.have);
    if (kept.start != TIME_US_NONE) {
        assert_int_equal (kept.allocation.count, fresh.allocation.count);
        assert_memory_equal (kept.allocation.item, fresh.allocation.item,
                             kept.allocation.count * sizeof *kept.allocation.item);
    }
    arena_destroy (arena);
}

struct use {
    uint32_t node;
    time_us start, end;
    int64_t v[RES_MAX];
    uint32_t user, access;
    int64_t procs;                 /* of its tasks, whatever else it keeps */
    uint32_t job;                  /* its place in the list of jobs and reservations */
    const struct licence *licence; /* of the first placement of each */
    uint32_t licence_count;
};

struct uses {
    struct use list[20000];
    uint32_t count;
    uint32_t jobs;
};

static uint32_t sharing_of (const struct life *l, const struct req *req)
{
    return req->access              ? req->access
           : l->policy->node_access ? (uint32_t)l->policy->node_access
                                    : ACCESS_SHARED;
}

/* cred NULL: a reservation's. What a job of class 1 takes of initiators is its site's to know. */
static void uses_add (const struct life *l, struct uses *u, const struct req *req,
                      const uint32_t *cred, const struct licence *licence, uint32_t licence_count,
                      const struct allocation *a, time_us start, time_us end)
{
    const struct cluster *c = l->twin[0];

    for (uint32_t i = 0; i < a->count; i++) {
        const struct req *r = &req[a->item[i].req];
        uint32_t access = cred ? sharing_of (l, r) : ACCESS_SHARED;
        bool whole = r->exclusive || access >= ACCESS_SINGLEJOB;
        struct node_view node;
        struct use *one = &u->list[u->count++];
        *one = (struct use){.node = a->item[i].node.v,
                            .start = start,
                            .end = end,
                            .user = cred ? cred[CRED_USER] : 0,
                            .access = access,
                            .procs = (int64_t)a->item[i].tasks * r->task.v[RES_PROCS],
                            .job = u->jobs};
        if (i == 0) {
            one->licence = licence;
            one->licence_count = licence_count;
        }
        assert_int_equal (cluster_node_get (c, a->item[i].node, &node, NULL), 0);
        for (uint32_t d = 0; d < l->dims; d++)
            one->v[d] =
                whole ? node.spec.configured.v[d] : (int64_t)a->item[i].tasks * r->task.v[d];
        if (l->rich && !whole) {
            one->v[JOBS_COLUMN] = 1;
            for (uint32_t k = 0; k < i; k++)
                one->v[JOBS_COLUMN] -= a->item[k].node.v == a->item[i].node.v;
            one->v[CLASS_COLUMN] = cred && cred[CRED_CLASS] == 1 ? a->item[i].tasks : 0;
        }
        if (access == ACCESS_SINGLETASK)
            assert_int_equal (a->item[i].tasks, 1);
        if (l->rich && cred && cred[CRED_CLASS] == 1 && node.spec.classes)
            assert_true (node.spec.classes & 1);
        if (l->rich && r->hosts)
            assert_true (a->item[i].node.v <= 1);
    }
    u->jobs++;
}

static void uses_all (const struct life *l, struct uses *u)
{
    const struct cluster *c = l->twin[0];

    u->count = u->jobs = 0;
    for (uint32_t i = 0; i < c->run_count; i++) {
        const struct job *job = job_at (c, c->run[i].slot);
        time_us end = job->limit_end > l->now ? job->limit_end : l->now + l->policy->poll_interval;
        uint32_t from = u->count;
        uses_add (l, u, job->spec.req, job->spec.cred, job->spec.licence, job->spec.licence_count,
                  &job->allocation, l->now, end);
        /* Where it names a firm reservation it stands for whom that was made for. */
        for (; job->spec.reservation.v && from < u->count; from++)
            u->list[from].user = 0;
    }
    for (uint32_t i = 0; i < l->plan[0].reservation_count; i++) {
        const struct plan_reservation *r = &l->plan[0].reservation[i];
        struct job_view view;
        assert_int_equal (cluster_job_get (c, r->job, &view, NULL), 0);
        uses_add (l, u, view.spec->req, view.spec->cred, view.spec->licence,
                  view.spec->licence_count, &r->allocation, r->start, r->end);
        assert_true (r->start >= l->now);
    }
    for (uint32_t i = 0; i < c->rsv_count; i++) {
        const struct rsv_spec *spec = &c->rsv[i]->spec;
        if (spec->kind != RSV_ADMIN && spec->end > l->now)
            uses_add (l, u, spec->req, spec->who ? spec->who->cred : NULL, spec->licence,
                      spec->licence_count, &c->rsv[i]->allocation, spec->start, spec->end);
    }
}

/* a job past its limit may still sit where others were promised: not the pass's doing */
static bool overdue (const struct life *l)
{
    return l->twin[0]->run_count && l->twin[0]->run[0].end <= l->now;
}

/* Everything that is on the node of one use at its beginning, together. */
static void check_node (const struct life *l, const struct uses *u, const struct use *one,
                        time_us at)
{
    struct node_view node;
    int64_t sum[RES_MAX] = {0}, own_procs = 0;
    uint32_t own_jobs = 0;

    assert_int_equal (cluster_node_get (l->twin[0], (struct node_id){one->node}, &node, NULL), 0);
    if (!node_plannable (l->twin[0], one->node) || (node.state == NODE_DOWN && at <= l->now) ||
        overdue (l))
        return;
    for (uint32_t k = 0; k < u->count; k++) {
        const struct use *other = &u->list[k];
        if (other->node != one->node || other->start > at || at >= other->end)
            continue;
        for (uint32_t d = 0; d < l->dims; d++)
            sum[d] += other->v[d];
        if (!l->rich || one->user == 0 || other->user == 0)
            continue;
        if (other->user == one->user) {
            own_jobs++;
            own_procs += other->procs;
        } else if (other->access == ACCESS_SINGLEUSER || one->access == ACCESS_SINGLEUSER) {
            fail_msg ("node %u is shared by users %u and %u at %lld s", one->node, one->user,
                      other->user, (long long)(at / US_PER_S));
        }
    }
    for (uint32_t d = 0; d < l->dims; d++) {
        if (sum[d] > node.spec.configured.v[d])
            fail_msg ("node %u holds %lld of resource %d at %lld s, has %d", one->node,
                      (long long)sum[d], d, (long long)(at / US_PER_S), node.spec.configured.v[d]);
    }
    if (l->rich && node.spec.max_jobs_per_user && one->user)
        assert_true (own_jobs <= node.spec.max_jobs_per_user);
    if (l->rich && node.spec.max_procs_per_user && one->user)
        assert_true (own_procs <= node.spec.max_procs_per_user);
}

static void check_licences (const struct life *l, const struct uses *u, time_us at)
{
    int64_t used[LICENCES] = {0};

    for (uint32_t k = 0; k < u->count; k++) {
        const struct use *one = &u->list[k];
        for (uint32_t i = 0; one->start <= at && at < one->end && i < one->licence_count; i++)
            used[one->licence[i].kind] += one->licence[i].count;
    }
    for (int k = 0; k < LICENCES; k++) {
        if (used[k] > l->licence[k] && !overdue (l))
            fail_msg ("%lld of licence %d are in use at %lld s, there are %d", (long long)used[k],
                      k, (long long)(at / US_PER_S), l->licence[k]);
    }
}

void life_check_over_commitment (const struct life *l)
{
    static struct uses u;

    uses_all (l, &u);
    for (uint32_t i = 0; i < u.count; i++) {
        time_us at = u.list[i].start < l->now ? l->now : u.list[i].start;
        check_node (l, &u, &u.list[i], at);
        if (l->rich)
            check_licences (l, &u, at);
    }
}

/* All nodes of a job in one partition, and where that must be in one of the sets. */
static void check_together (const struct life *l, const struct job_view *job,
                            const struct allocation *a)
{
    struct node_view first, node;
    uint64_t common = UINT64_MAX;
    bool same_speed = true;

    if (a->count == 0)
        return;
    assert_int_equal (cluster_node_get (l->twin[0], a->item[0].node, &first, NULL), 0);
    for (uint32_t i = 0; i < a->count; i++) {
        assert_int_equal (cluster_node_get (l->twin[0], a->item[i].node, &node, NULL), 0);
        assert_int_equal (node.spec.partition, first.spec.partition);
        if (job->spec->cred[CRED_USER] == 1)
            assert_int_equal (node.spec.partition, 1);
        if (job->spec->req[a->item[i].req].partitions)
            assert_int_equal (node.spec.partition, 2);
        common &= node.spec.features.word[0];
        same_speed = same_speed && node.spec.speed_ppm == first.spec.speed_ppm;
    }
    if (l->nodeset && l->mandatory) {
        const struct nodeset *set = &l->twin[0]->groups.nodeset[l->nodeset - 1];
        assert_true (set->attribute == NODESET_SPEED ? same_speed : (common & 3) != 0);
    }
}

void life_check_sets (const struct life *l)
{
    struct job_view view;

    for (uint32_t i = 0; i < l->plan[0].start_count; i++) {
        assert_int_equal (cluster_job_get (l->twin[0], l->plan[0].start[i].job, &view, NULL), 0);
        check_together (l, &view, &view.allocation);
    }
    for (uint32_t i = 0; i < l->plan[0].reservation_count; i++) {
        const struct plan_reservation *r = &l->plan[0].reservation[i];
        assert_int_equal (cluster_job_get (l->twin[0], r->job, &view, NULL), 0);
        check_together (l, &view, &r->allocation);
    }
}

/* --- reservations with ACLs ----------------------------------------------------------------------- */

struct taken { /* by a job, on one node */
    const struct job *job;
    uint32_t node, procs;
    time_us start, end;
    bool fresh; /* decided by this plan */
};

static uint32_t taken_add (struct taken *list, uint32_t n, const struct job *job,
                           const struct allocation *a, time_us start, time_us end, bool fresh)
{
    for (uint32_t i = 0; i < a->count; i++)
        list[n++] = (struct taken){job,
                                   a->item[i].node.v,
                                   a->item[i].tasks *
                                       (uint32_t)job->spec.req[a->item[i].req].task.v[RES_PROCS],
                                   start,
                                   end,
                                   fresh};
    return n;
}

/* By what the manual says of lists, not by the core's own idea of it. */
static bool admitted (const struct rsv *rsv, const struct job *job)
{
    uint32_t ordinary = 0, met = 0, demanded = 0;

    for (uint32_t i = 0; i < rsv->spec.acl_count; i++) {
        const struct acl_entry *e = &rsv->spec.acl[i];
        bool is = e->type == CRED_USER      ? job->spec.cred[CRED_USER] == e->value
                  : e->type == ACL_DURATION ? job->spec.walltime_limit <= e->value
                                            : job->procs <= e->value;
        if (e->deny ? is : e->required && !is)
            return false;
        demanded += e->required;
        ordinary += !e->deny && !e->required;
        met += !e->deny && !e->required && is;
    }
    return ordinary ? met > 0 : demanded > 0;
}

/* What this plan gives to people whom a reservation does not admit leaves it what it keeps, at every
 * moment. All of several that overlap must admit, since each of them is looked at. */
static void check_one (const struct life *l, const struct rsv *rsv, const struct placement *p,
                       const struct taken *list, uint32_t n)
{
    const struct cluster *c = l->twin[0];
    int64_t cap = row (c, c->cap, p->node.v)[RES_PROCS];
    int64_t keep = (int64_t)p->tasks * rsv->spec.req[0].task.v[RES_PROCS];

    for (uint32_t i = 0; i < n; i++) {
        time_us from = list[i].start > rsv->spec.start ? list[i].start : rsv->spec.start;
        if (!list[i].fresh || list[i].node != p->node.v || from >= list[i].end ||
            from >= rsv->spec.end || rsv->spec.end <= l->now || admitted (rsv, list[i].job))
            continue;
        int64_t sum = 0;
        for (uint32_t k = 0; k < n; k++) {
            if (list[k].node == p->node.v && list[k].start <= from && from < list[k].end &&
                !admitted (rsv, list[k].job))
                sum += list[k].procs;
        }
        if (keep >= cap || sum + keep > cap)
            fail_msg ("job %llu at %lld s on node %u, where reservation %llu keeps %lld of %lld: "
                      "others have %lld",
                      (unsigned long long)list[i].job->spec.id.v, (long long)(from / US_PER_S),
                      p->node.v, (unsigned long long)rsv->spec.id.v, (long long)keep,
                      (long long)cap, (long long)sum);
    }
}

void life_check_access (const struct life *l)
{
    static struct taken list[20000];
    const struct cluster *c = l->twin[0];
    uint32_t n = 0;

    if (c->run_count && c->run[0].end <= l->now)
        return; /* a job past its limit may sit where others were promised */
    for (uint32_t i = 0; i < c->run_count; i++) {
        const struct job *job = job_at (c, c->run[i].slot);
        bool fresh = false;
        for (uint32_t k = 0; k < l->plan[0].start_count; k++)
            fresh = fresh || l->plan[0].start[k].job.v == job->spec.id.v;
        n = taken_add (list, n, job, &job->allocation, l->now, job->limit_end, fresh);
    }
    for (uint32_t i = 0; i < l->plan[0].reservation_count; i++) {
        const struct plan_reservation *r = &l->plan[0].reservation[i];
        const struct job *job = job_at (c, map_find (&c->map, r->job.v));
        n = taken_add (list, n, job, &r->allocation, r->start, r->end, true);
    }
    for (uint32_t r = 0; r < c->rsv_count; r++) {
        for (uint32_t i = 0; c->rsv[r]->spec.kind == RSV_ADMIN && i < c->rsv[r]->allocation.count;
             i++)
            check_one (l, c->rsv[r], &c->rsv[r]->allocation.item[i], list, n);
    }
}

static bool under (const struct life *l, const struct job *job, uint32_t node)
{
    const struct cluster *c = l->twin[0];

    for (uint32_t r = 0; r < c->rsv_count; r++) {
        const struct rsv *rsv = c->rsv[r];
        for (uint32_t i = 0; i < rsv->allocation.count; i++) {
            if (rsv->spec.kind == RSV_ADMIN && rsv->allocation.item[i].node.v == node &&
                rsv->spec.start <= l->now && rsv->spec.end > l->now && admitted (rsv, job))
                return true;
        }
    }
    return false;
}

/* QFLAGS USERESERVED: started inside reservations that admit the job, and promised nothing else. */
void life_check_inside (const struct life *l)
{
    const struct cluster *c = l->twin[0];

    for (uint32_t k = 0; k < l->plan[0].start_count; k++) {
        const struct job *job = job_at (c, map_find (&c->map, l->plan[0].start[k].job.v));
        for (uint32_t i = 0; job->spec.cred[CRED_QOS] == INSIDE && i < job->allocation.count; i++) {
            if (!under (l, job, job->allocation.item[i].node.v))
                fail_msg ("job %llu on node %u, where no reservation admits it",
                          (unsigned long long)job->spec.id.v, job->allocation.item[i].node.v);
        }
    }
    for (uint32_t k = 0; k < l->plan[0].reservation_count; k++) {
        uint32_t slot = map_find (&c->map, l->plan[0].reservation[k].job.v);
        if (job_at (c, slot)->spec.cred[CRED_QOS] == INSIDE)
            fail_msg ("job %llu is promised room outside reservations",
                      (unsigned long long)l->plan[0].reservation[k].job.v);
    }
}

void life_check_limits (const struct life *l)
{
    const struct cluster *c = l->twin[0];
    int64_t jobs[8] = {0};

    if (policy_cred (l->policy, CRED_USER, CRED_DEFAULT)->limits.active_mask == 0)
        return;
    for (uint32_t i = 0; i < c->run_count; i++)
        jobs[job_at (c, c->run[i].slot)->spec.cred[CRED_USER]]++;
    for (int u = 0; u < 8; u++)
        assert_true (jobs[u] <= 4);
}

/* PARCFG: so much runs there and no more. */
void life_check_partitions (const struct life *l)
{
    const struct cluster *c = l->twin[0];
    int64_t procs = 0;

    for (uint32_t i = 0; i < c->run_count; i++) {
        const struct job *job = job_at (c, c->run[i].slot);
        for (uint32_t k = 0; k < job->allocation.count; k++) {
            const struct placement *p = &job->allocation.item[k];
            if (c->node[p->node.v].partition == 2 && !(job->spec.flags & JOB_FIRM))
                procs += (int64_t)p->tasks * job->spec.req[p->req].task.v[RES_PROCS];
        }
    }
    if (l->policy->partitions_limited && procs > PARTITION_PROCS)
        fail_msg ("%lld processors of partition 2 are in use, its limit is %d", (long long)procs,
                  PARTITION_PROCS);
}

/* Nothing starts on a node that is down, and what is promised there is so from NODEDOWNSTATEDELAYTIME on. */
void life_check_down (const struct life *l)
{
    const struct cluster *c = l->twin[0];
    const struct plan *plan = &l->plan[0];

    for (uint32_t i = 0; i < plan->start_count; i++) {
        for (uint32_t k = 0; k < plan->start[i].allocation.count; k++)
            assert_int_equal (c->node_state[plan->start[i].allocation.item[k].node.v], NODE_UP);
    }
    for (uint32_t i = 0; i < plan->reservation_count; i++) {
        const struct plan_reservation *r = &plan->reservation[i];
        for (uint32_t k = 0; k < r->allocation.count; k++) {
            if (c->node_state[r->allocation.item[k].node.v] == NODE_DOWN)
                assert_true (l->policy->node_down_delay > 0 &&
                             r->start >= l->now + l->policy->node_down_delay);
        }
    }
}

/* At each promised start, what runs until then and what was promised before are within the soft limits
 * together with it. */
void life_check_soft_promises (const struct life *l)
{
    const struct cluster *c = l->twin[0];
    const struct plan *plan = &l->plan[0];

    if (policy_cred (l->policy, CRED_USER, CRED_DEFAULT)->limits.active_mask == 0 ||
        (c->run_count && c->run[0].end <= l->now))
        return;
    for (uint32_t i = 0; i < plan->reservation_count; i++) {
        struct job_view view, other;
        assert_int_equal (cluster_job_get (c, plan->reservation[i].job, &view, NULL), 0);
        if (view.reason.code != REASON_RESERVED)
            continue; /* kept for RESERVATIONRETRYTIME */
        uint32_t user = view.spec->cred[CRED_USER];
        int64_t jobs = 1, procs = view.procs;
        for (uint32_t k = 0; k < i; k++) {
            const struct plan_reservation *r = &plan->reservation[k];
            assert_int_equal (cluster_job_get (c, r->job, &other, NULL), 0);
            bool there = other.spec->cred[CRED_USER] == user &&
                         r->start <= plan->reservation[i].start &&
                         plan->reservation[i].start < r->end;
            jobs += there;
            procs += there ? other.procs : 0;
        }
        uint32_t started = 0; /* in this pass, and perhaps after the promise: not its concern */
        for (uint32_t k = 0; k < plan->start_count; k++) {
            assert_int_equal (cluster_job_get (c, plan->start[k].job, &other, NULL), 0);
            started += other.spec->cred[CRED_USER] == user;
        }
        for (uint32_t k = 0; k < c->run_count; k++) {
            const struct job *job = job_at (c, c->run[k].slot);
            if (job->spec.cred[CRED_USER] == user && c->run[k].end > plan->reservation[i].start) {
                jobs++;
                procs += job->procs;
            }
        }
        if (started == 0)
            assert_true (jobs <= 2 && procs <= 6);
    }
}
