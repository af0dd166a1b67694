/* explain: takes apart, for one job, what eligible.c, priority.c and the timeline would say of
 * it. checkjob, diagnose and showq call it. It asks the same functions as the pass, so that what
 * is told is what is decided, and it changes nothing. */
#include "local/core/explain.h"

#include "local/core/timeline_state.h"

int explain_job (const struct cluster *c, struct job_id id, struct explained_job *out,
                 struct err *err)
{
    uint32_t slot;
    int rc = job_find (c, id, &slot, err);

    if (rc != 0)
        return rc;
    const struct priority_job *pj = &c->pj[slot];
    *out = (struct explained_job){
        .eligible_since = pj->eff_queue_since,
        .pe = pj->pe,
        .system_priority = (int32_t)pj->system_priority,
        .system_absolute = (pj->flags & PRIORITY_SYSTEM_ABSOLUTE) != 0,
    };
    return 0;
}

int explain_priority (const struct cluster *c, struct job_id id, time_us now,
                      struct priority_explained *out, double weight[PRIO_SUBS], struct err *err)
{
    uint32_t slot;
    int rc = job_find (c, id, &slot, err);

    if (rc != 0)
        return rc;
    priority_explain (c->priority, &c->pj[slot], now, out);
    for (uint32_t s = 0; weight && s < PRIO_SUBS; s++)
        weight[s] = priority_sub_weight (c->priority, (enum prio_sub)s, c->pj[slot].cred[CRED_QOS]);
    return 0;
}

/* --- limits ------------------------------------------------------------------------------- */

static int64_t counted (const struct limits_job *lj, enum limit_kind limit, int64_t left_s)
{
    switch (limit) {
    case LIMIT_JOB:
        return 1;
    case LIMIT_PROC:
        return lj->procs;
    case LIMIT_NODE:
        return lj->nodes;
    case LIMIT_MEM:
        return lj->mem_mb;
    case LIMIT_PE:
        return lj->pe_micro;
    case LIMIT_PS:
        return left_s * lj->procs;
    case LIMIT_WC:
        return left_s;
    default:
        return 0;
    }
}

/* Each end gives back what the job counts for; for MAXPS and MAXWC, which shrink by themselves,
 * this is the latest moment. */
static time_us limit_clears (const struct cluster *c, const struct limits_violation *v, time_us now)
{
    int64_t usage = v->usage;

    if (v->scope != LIMIT_SCOPE_ACTIVE || v->limit == LIMIT_MINPROC || v->request > v->value)
        return TIME_US_NONE;
    for (uint32_t i = 0; i < c->run_count; i++) {
        const struct limits_job *lj = &c->lj[c->run[i].slot];
        int64_t left = c->run[i].end > now ? (c->run[i].end - now) / US_PER_S : 0;
        if (v->object < CRED_KINDS && lj->cred[v->object] != v->id)
            continue;
        if (v->cross && lj->cred[v->other_kind] != v->other_id)
            continue;
        usage -= counted (lj, v->limit, left);
        if (usage + v->request <= v->value)
            return c->run[i].end > now ? c->run[i].end : now;
    }
    return TIME_US_NONE;
}

/* Do PARCFG's limits leave it no partition? */
static bool partitions_closed (const struct cluster *c, uint32_t slot, enum limit_level level,
                               time_us now, struct explained_limit *out)
{
    struct arena *arena = c->policy->partitions_limited ? arena_create (0) : NULL;
    bool closed = arena && partition_open (c, partition_usage (c, now, arena), slot, level,
                                           &out->violation) == 0;

    arena_destroy (arena);
    out->clears = TIME_US_NONE;
    return closed;
}

bool explain_limit (const struct cluster *c, struct job_id id, enum limit_level level, time_us now,
                    struct explained_limit *out)
{
    uint32_t slot = map_find (&c->map, id.v);

    if (slot == SLOT_NONE || job_at (c, slot)->state != JOB_IDLE)
        return false;
    if (limits_active_check (c->limits, &c->lj[slot], level, now / US_PER_S, &out->violation) == 0)
        return partitions_closed (c, slot, level, now, out);
    out->clears = limit_clears (c, &out->violation, now);
    return true;
}

bool explain_cred_limit (const struct cluster *c, const uint32_t cred[CRED_KINDS], time_us now,
                         struct explained_limit *out)
{
    struct limits_job one = {.nodes = 1, .procs = 1, .pe_micro = 1000000, .wclimit_s = 1};

    memcpy (one.cred, cred, sizeof one.cred);
    if (limits_active_check (c->limits, &one, LIMIT_HARD, now / US_PER_S, &out->violation) == 0)
        return false;
    if (out->violation.limit == LIMIT_MINPROC)
        return false;
    out->clears = limit_clears (c, &out->violation, now);
    return true;
}

static void amounts_of (const struct cluster *c, const struct req *req, uint32_t req_count,
                        struct limits_job *lj)
{
    int64_t sum[RES_GRES0] = {0};
    for (uint32_t r = 0; r < req_count; r++)
        for (uint32_t d = 0; d < RES_GRES0; d++)
            sum[d] += (int64_t)req[r].tasks * req[r].task.v[d];
    lj->procs = (uint32_t)sum[RES_PROCS];
    lj->mem_mb = sum[RES_MEM_MB];
    lj->nodes = reqs_nodes (c, req, req_count);
    lj->pe_micro = (int64_t)(priority_pe (lj->procs, sum[RES_MEM_MB], sum[RES_SWAP_MB],
                                          sum[RES_DISK_MB], &c->totals) *
                                 1e6 +
                             0.5);
}

bool explain_class_never (const struct cluster *c, const uint32_t cred[CRED_KINDS],
                          const struct req *req, uint32_t req_count, duration_us walltime,
                          struct reason *why)
{
    struct limits_job lj = {.wclimit_s = (walltime + US_PER_S - 1) / US_PER_S};
    struct limits_violation v;
    struct limits *nobody;
    bool over;

    for (int k = 0; k < CRED_KINDS; k++)
        lj.cred[k] = k == CRED_CLASS || k == CRED_QOS ? cred[k] : CRED_NONE;
    amounts_of (c, req, req_count, &lj);
    if (reason_of_class (c->policy, cred, lj.wclimit_s, lj.procs, lj.nodes, why))
        return true;
    nobody = limits_create (c->policy);
    over = limits_active_check (nobody, &lj, LIMIT_HARD, 0, &v) != 0 &&
           v.object == (uint32_t)CRED_CLASS;
    limits_destroy (nobody);
    if (over)
        *why = reason_of_limit (REASON_LIMIT_ACTIVE, &v);
    why->never = over;
    return over;
}

/* --- nodes -------------------------------------------------------------------------------- */

const char *node_verdict_name (enum node_verdict verdict)
{
    static const char *const name[NODE_VERDICTS] = {
        [NODE_ACCEPTS] = "Accepted",
        [NODE_REJECT_STATE] = "State",
        [NODE_REJECT_PARTITION] = "Partition",
        [NODE_REJECT_FEATURES] = "Features",
        [NODE_REJECT_CPU] = "CPU",
        [NODE_REJECT_MEMORY] = "Memory",
        [NODE_REJECT_SWAP] = "Swap",
        [NODE_REJECT_DISK] = "Disk",
        [NODE_REJECT_RESOURCES] = "Resources",
        [NODE_REJECT_BUSY] = "Busy",
        [NODE_REJECT_RESERVED] = "ReserveTime",
        [NODE_REJECT_CLASS] = "Class",
        [NODE_REJECT_HOSTS] = "HostList",
        [NODE_REJECT_SET] = "NodeSet",
        [NODE_REJECT_ACCESS] = "NodePolicy",
        [NODE_REJECT_LOAD] = "CPULoad",
        [NODE_REJECT_NOT_ADMITTED] = "Reserved",
    };

    return (unsigned)verdict < NODE_VERDICTS ? name[verdict] : "Unknown";
}

/* What the node is, against what is asked of it. */
static enum node_verdict suits_verdict (const struct cluster *c, const struct shape *s,
                                        uint32_t node)
{
    const struct node_spec *spec = &c->node[node];

    if (s->needs.partitions && !(s->needs.partitions & partition_bit (spec->partition)))
        return NODE_REJECT_PARTITION;
    if (spec->classes && (s->needs.classes & ~spec->classes))
        return NODE_REJECT_CLASS;
    for (uint32_t w = 0; w < FEATURES_MAX / 64; w++)
        if ((s->req.features.word[w] & ~spec->features.word[w]) ||
            (s->req.exclude.word[w] & spec->features.word[w]))
            return NODE_REJECT_FEATURES;
    if ((s->req.hosts && !hosts_have (c, s->req.hosts, node)) ||
        (s->needs.class_hosts && !hosts_have (c, s->needs.class_hosts, node)))
        return NODE_REJECT_HOSTS;
    if (s->req.node_procs && (uint32_t)spec->configured.v[RES_PROCS] != s->req.node_procs)
        return NODE_REJECT_CPU;
    return needs_met (c, s, node) && !shape_suits (c, s, node) ? NODE_REJECT_SET : NODE_ACCEPTS;
}

static bool is_class_column (const struct cluster *c, uint32_t column)
{
    for (uint32_t k = 0; k < c->class_cap; k++) {
        if (c->class_rec[k].known && c->class_rec[k].spec.column == column)
            return true;
    }
    return false;
}

static enum node_verdict configured_verdict (const struct cluster *c, const struct shape *s,
                                             uint32_t node)
{
    const int32_t *cap = c->cap + (size_t)node * c->dims;
    int32_t each = s->req.tasks_per_node ? (int32_t)s->req.tasks_per_node : 1;
    enum node_verdict verdict = suits_verdict (c, s, node);

    if (verdict != NODE_ACCEPTS)
        return verdict;
    for (uint32_t d = 0; d < c->dims; d++) {
        if ((int64_t)s->req.task.v[d] * each <= cap[d])
            continue;
        return d == RES_PROCS           ? NODE_REJECT_CPU
               : d == RES_MEM_MB        ? NODE_REJECT_MEMORY
               : d == RES_SWAP_MB       ? NODE_REJECT_SWAP
               : d == RES_DISK_MB       ? NODE_REJECT_DISK
               : is_class_column (c, d) ? NODE_REJECT_CLASS
                                        : NODE_REJECT_RESOURCES;
    }
    return NODE_ACCEPTS;
}

/* Nothing fits now: for want of what? */
static enum node_verdict busy_verdict (const struct cluster *c, const struct shape *s,
                                       uint32_t node, const int32_t *room)
{
    for (uint32_t d = 0; d < s->dim_count; d++) {
        if (room[s->dim[d]] >= s->req.task.v[s->dim[d]])
            continue;
        return is_class_column (c, s->dim[d]) ? NODE_REJECT_CLASS : NODE_REJECT_BUSY;
    }
    return s->special && c->node_jobs[node] ? NODE_REJECT_ACCESS : NODE_REJECT_BUSY;
}

static enum node_verdict verdict_of (const struct timeline *tl, const struct shape *s,
                                     uint32_t node, duration_us limit, uint32_t *tasks)
{
    const struct cluster *c = tl->c;
    const int32_t *room = c->free + (size_t)node * c->dims;
    enum node_verdict verdict;

    if (c->node_state[node] != NODE_UP)
        return NODE_REJECT_STATE;
    verdict = configured_verdict (c, s, node);
    if (verdict != NODE_ACCEPTS)
        return verdict;
    if (room[RES_PROCS] <= 0)
        return NODE_REJECT_STATE;
    if (shape_fit (c, s, node, room) == 0)
        return busy_verdict (c, s, node, room);
    *tasks = lane_fit (tl, s, node, tl->now, time_add (tl->now, limit));
    if (*tasks)
        return NODE_ACCEPTS;
    if (load_keeps_off (c, node, RES_PROCS) || load_keeps_off (c, node, RES_MEM_MB))
        return NODE_REJECT_LOAD;
    if (tl->who && occupants_fit (tl, s, node, tl->now, 1) == 0)
        return NODE_REJECT_ACCESS;
    return lane_fit (tl, s, node, tl->now, tl->now + 1) == 0 ? NODE_REJECT_NOT_ADMITTED
                                                             : NODE_REJECT_RESERVED;
}

static void req_explain (struct timeline *tl, const struct job *job, uint32_t r,
                         struct explained_nodes *out)
{
    struct cluster *c = tl->c;
    const struct req *req = &job->spec.req[r];
    const struct shape *s = &c->shape[job->shape[r]];

    timeline_view (tl, s->access);
    *out = (struct explained_nodes){
        .req = r,
        .verdict = arena_array (tl->arena, c->node_count + 1, sizeof *out->verdict),
        .tasks = arena_array (tl->arena, c->node_count + 1, sizeof *out->tasks)};
    for (uint32_t n = 0; n < c->node_count; n++) {
        int32_t room = c->free[(size_t)n * c->dims + RES_PROCS];
        uint32_t tasks = 0;
        struct placement there = {.node = {n}, .tasks = 1};
        duration_us length = length_on (c, job, &(struct allocation){1, &there});
        enum node_verdict v = verdict_of (tl, s, n, length, &tasks);
        out->verdict[n] = (uint8_t)v;
        out->tasks[n] = tasks;
        out->count[v]++;
        if (c->node_state[n] == NODE_UP && room > 0)
            out->idle_procs += room;
        out->feasible_procs += (int64_t)tasks * req->task.v[RES_PROCS];
    }
}

int explain_nodes (struct cluster *c, struct job_id id, time_us from, time_us now,
                   struct arena *arena, struct explained_nodes *out, struct err *err)
{
    uint32_t slot;
    int64_t least = INT64_MAX;
    struct explained_nodes one;
    struct allocation ignored;
    int rc = job_find (c, id, &slot, err);

    if (rc != 0)
        return rc;
    const struct job *job = job_at (c, slot);
    if (job->state != JOB_IDLE)
        return err_set (err, ERR_CONFLICT, "job %llu is not idle", (unsigned long long)id.v);
    cluster_settle (c);
    now = now < c->now ? c->now : now;
    for (uint32_t r = 0; r < job->spec.req_count; r++)
        (void)shape_refresh (c, job->shape[r]);
    struct wanted w = wanted_job (job);
    struct timeline *tl = timeline_make (c, arena, now, true, job->spec.reservation);
    if (job->reserved_start != TIME_US_NONE && job->reserved.count)
        timeline_take (tl, &w, &job->reserved, job->reserved_start,
                       time_add (job->reserved_start, length_on (c, job, &job->reserved)), -1);
    for (uint32_t r = 0; r < job->spec.req_count; r++) {
        req_explain (tl, job, r, &one);
        int64_t missing = one.feasible_procs -
                          (int64_t)job->spec.req[r].tasks * job->spec.req[r].task.v[RES_PROCS];
        if (missing < least) {
            least = missing;
            *out = one;
        }
    }
    if (!narrow_place (tl, arena, &w, 0, job->spec.walltime_limit, from > now ? from : now,
                       TIME_US_MAX, CHOICE_POLICY, &out->earliest, &ignored))
        out->earliest = TIME_US_NONE;
    return 0;
}

void explain_reserved (const struct cluster *c,
                       void (*fn) (void *arg, struct job_id job, time_us start, time_us end,
                                   const struct allocation *allocation),
                       void *arg)
{
    for (uint32_t i = 0; i < c->idle_count; i++) {
        const struct job *job = job_at (c, c->idle[i]);
        if (job->reserved_start != TIME_US_NONE)
            fn (arg, job->spec.id, job->reserved_start,
                time_add (job->reserved_start, length_on (c, job, &job->reserved)), &job->reserved);
    }
}
