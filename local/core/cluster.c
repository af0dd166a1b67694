/* cluster: life, nodes and reservations; jobs are in job.c */
#include "local/core/state.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void policy_take (struct cluster *c, const struct policy *policy)
{
    c->policy = policy;
    c->age_policy = policy_is_age (policy);
    c->qos_reserves = c->qos_flagged = false;
    for (uint32_t i = 0; i < policy->cred_count[CRED_QOS]; i++) {
        const struct policy_qos *qos = policy->cred[CRED_QOS][i].qos;
        c->qos_reserves = c->qos_reserves || (qos && (qos->flags & QOS_RESERVEALWAYS));
        c->qos_flagged = c->qos_flagged || (qos && qos->flags);
    }
    c->fs_capped = false;
    for (uint32_t kind = 0; kind < CRED_KINDS && policy->fs_policy != FS_NONE; kind++) {
        for (uint32_t i = 0; i < policy->cred_count[kind]; i++) {
            enum fs_target_type type = policy->cred[kind][i].fs_target_type;
            c->fs_capped = c->fs_capped || type == FS_TARGET_CAP_ABSOLUTE ||
                           type == FS_TARGET_CAP_RELATIVE;
        }
    }
    free (c->rank);
    c->rank = NULL;
}

struct cluster *cluster_create (const struct policy *policy, const struct cluster_options *options,
                                struct err *err)
{
    uint32_t gres = options ? options->gres_kinds : 0;
    struct cluster *c = NULL;

    if (gres > RES_MAX - RES_GRES0) {
        err_set (err, ERR_LIMIT, "cluster: %u kinds of generic resources asked, at most %u",
                 gres, (unsigned)(RES_MAX - RES_GRES0));
        return NULL;
    }
    if (!policy->sealed) {
        err_set (err, ERR_INVALID, "cluster: the policy is not sealed");
        return NULL;
    }
    c = calloc (1, sizeof *c);
    if (c == NULL) {
        err_set (err, ERR_NOMEM, "cluster: out of memory");
        return NULL;
    }
    policy_take (c, policy);
    c->freed_at = TIME_US_NONE;
    c->groups.site = NODESET_NONE;
    c->sharing = policy->node_access == ACCESS_SINGLEUSER;
    c->priority = priority_create (policy);
    c->limits = limits_create (policy);
    c->dims = RES_GRES0 + gres;
    c->seed = options ? options->seed : 0;
    c->now = TIME_US_NONE;
    c->version = c->lasting = 1;
    c->node_serial = 1;
    memset (c->shape_bucket, 0xFF, sizeof c->shape_bucket);
    c->fairshare = fairshare_create (policy, 0);
    c->planner = planner_create ();
    return c;
}

static void job_free (struct job *job)
{
    if (job->spec.req != &job->one)
        free ((void *)job->spec.req);
    if (job->shape != &job->one_shape)
        free (job->shape);
    free ((void *)job->spec.licence);
    free (job->allocation.item);
    free (job->reserved.item);
    free (job->retry.item);
}

static void rsv_free (struct rsv *rsv)
{
    free ((void *)rsv->spec.req);
    free ((void *)rsv->spec.acl);
    free ((void *)rsv->spec.who);
    free ((void *)rsv->spec.licence);
    free (rsv->allocation.item);
    free (rsv);
}

void cluster_destroy (struct cluster *c)
{
    if (c == NULL)
        return;
    planner_settle (c);
    planner_destroy (c->planner);
    arena_destroy (c->asked.arena);
    for (uint32_t i = 0; i < c->idle_count; i++)
        job_free (job_at (c, c->idle[i]));
    for (uint32_t i = 0; i < c->run_count; i++)
        job_free (job_at (c, c->run[i].slot));
    for (uint32_t i = 0; i < c->suspended_count; i++)
        job_free (job_at (c, c->suspended[i]));
    for (uint32_t i = 0; i < c->chunk_count; i++)
        free (c->chunk[i]);
    for (uint32_t i = 0; i < c->shape_count; i++) {
        if (c->shape[i].twin == SLOT_NONE)
            free (c->shape[i].nodes.word);
    }

    for (uint32_t i = 0; i < c->rsv_count; i++)
        rsv_free (c->rsv[i]);
    free (c->chunk);
    groups_free (c);
    free (c->class_rec);
    free (c->priority_fn);
    free (c->shape);
    free (c->rsv);
    access_free (c->access);
    free (c->node);
    free (c->node_state);
    free (c->load_milli);
    free (c->usage);
    free (c->cap);
    free (c->free);
    free (c->node_jobs);
    free (c->open.word);
    free (c->speed);
    free (c->rank);
    free (c->slot_free);
    free (c->hot);
    free (c->pj);
    free (c->lj);
    free (c->prio_static);
    free (c->prio_key);
    free (c->map.key);
    free (c->map.slot);
    free (c->array_running.key);
    free (c->array_running.slot);
    free (c->suspended);
    free (c->idle);
    free (c->run);
    priority_destroy (c->priority);
    fairshare_destroy (c->fairshare);
    limits_destroy (c->limits);
    free (c);
}

int cluster_policy_set (struct cluster *c, const struct policy *policy, time_us now,
                        struct err *err)
{
    if (!policy->sealed)
        return err_set (err, ERR_INVALID, "cluster: the policy is not sealed");
    event_begin (c, now);
    nodes_settle (c);
    fairshare_advance (c->fairshare, c->now);
    priority_destroy (c->priority);
    limits_destroy (c->limits);
    c->priority = priority_create (policy);
    c->limits = limits_create (policy);
    fairshare_policy_set (c->fairshare, policy);
    policy_take (c, policy);
    if (c->access)
        access_changed (c); /* QoS flags are part of who asks */
    c->needs_stale = c->nodes_dirty = true;
    nodes_settle (c);
    jobs_policy_changed (c);
    c->version++;
    event_frees (c);
    return 0;
}

const struct policy *cluster_policy (const struct cluster *c)
{
    return c->policy;
}

struct fairshare *cluster_fairshare (struct cluster *c)
{
    return c->fairshare;
}

uint64_t cluster_version (const struct cluster *c)
{
    return c->version;
}

/* --- nodes ------------------------------------------------------------------------------- */

static int node_spec_check (const struct cluster *c, const struct node_spec *spec, struct err *err)
{
    if (spec->configured.v[RES_PROCS] < 1)
        return err_set (err, ERR_INVALID, "node: %d processors configured, at least 1",
                        spec->configured.v[RES_PROCS]);
    for (uint32_t d = 0; d < RES_MAX; d++) {
        if (spec->configured.v[d] < 0 || (d >= c->dims && spec->configured.v[d] != 0))
            return err_set (err, ERR_INVALID, "node: %d of resource %u, which is %s",
                            spec->configured.v[d], d, d >= c->dims ? "not in use" : "negative");
    }
    if (spec->partition == PARTITION_ANY || spec->partition > PARTITIONS_MAX)
        return err_set (err, ERR_INVALID, "node: partition %u, must be 1 to %d", spec->partition,
                        PARTITIONS_MAX);
    if (spec->priority_fn > c->priority_fn_count)
        return err_set (err, ERR_INVALID, "node: priority function %u of %u", spec->priority_fn,
                        c->priority_fn_count);
    if (spec->speed_ppm <= 0)
        return err_set (err, ERR_INVALID, "node: speed %d millionths, must be positive",
                        spec->speed_ppm);
    return 0;
}

static int node_check (const struct cluster *c, struct node_id node, struct err *err)
{
    if (node.v >= c->node_count)
        return err_set (err, ERR_NOT_FOUND, "node %u: there are %u", node.v, c->node_count);
    return 0;
}

static void nodes_grow (struct cluster *c)
{
    uint32_t cap = c->node_cap ? c->node_cap * 2 : 64;

    c->node = realloc (c->node, cap * sizeof *c->node);
    c->node_state = realloc (c->node_state, cap);
    c->load_milli = realloc (c->load_milli, cap * sizeof *c->load_milli);
    c->usage = realloc (c->usage, cap * sizeof *c->usage);
    c->cap = realloc (c->cap, (size_t)cap * c->dims * sizeof *c->cap);
    c->free = realloc (c->free, (size_t)cap * c->dims * sizeof *c->free);
    c->node_jobs = realloc (c->node_jobs, cap * sizeof *c->node_jobs);
    c->open.word = realloc (c->open.word, bitset_words (cap) * sizeof *c->open.word);
    assert (c->node && c->node_state && c->load_milli && c->usage && c->cap && c->free && c->node_jobs &&
            c->open.word && "out of memory");
    memset (c->open.word + bitset_words (c->node_cap), 0,
            (bitset_words (cap) - bitset_words (c->node_cap)) * sizeof *c->open.word);
    c->open.bit_count = cap;
    c->node_cap = cap;
}

static void partitions_changed (struct cluster *c)
{
    uint64_t mask = 0;

    for (uint32_t n = 0; n < c->node_count; n++)
        mask |= partition_bit (c->node[n].partition);
    c->needs_stale = c->needs_stale || mask != c->partition_mask;
    c->partition_mask = mask;
}

/* Everything that is a sum over nodes, anew. */
static void nodes_changed (struct cluster *c)
{
    if (c->access)
        c->access->fences_dirty = true;
    c->node_serial++;
    c->lasting++;
    c->version++;
    c->up_procs = c->up_free = 0;
    c->busy_not_up = 0;
    c->awaited = false;
    c->unit_nodes = true;
    c->units_exact = true;
    c->totals = (struct priority_totals){0};
    partitions_changed (c);
    speeds_settle (c);
    needs_sharing (c);
    free (c->rank);
    c->rank = NULL;
    for (uint32_t n = 0; n < c->node_count; n++) {
        const int32_t *cap = row (c, c->cap, n), *left = row (c, c->free, n);
        if (c->node_state[n] != NODE_DOWN) {
            c->totals.procs += cap[RES_PROCS];
            c->totals.mem_mb += cap[RES_MEM_MB];
            c->totals.swap_mb += cap[RES_SWAP_MB];
            c->totals.disk_mb += cap[RES_DISK_MB];
        }
        bitset_clear (&c->open, n);
        if (c->node_state[n] != NODE_UP) {
            c->units_exact = false;
            c->busy_not_up += c->node_jobs[n] > 0;
            c->awaited = c->awaited || node_plannable (c, n);
            continue;
        }
        c->up_procs += cap[RES_PROCS];
        if (left[RES_PROCS] > 0) {
            c->up_free += left[RES_PROCS];
            bitset_set (&c->open, n);
        }
        c->unit_nodes = c->unit_nodes && cap[RES_PROCS] == 1;
        c->units_exact = c->units_exact && c->unit_nodes && left[RES_PROCS] >= 0;
    }
    jobs_totals_changed (c);
}

int cluster_node_add (struct cluster *c, const struct node_spec *spec, time_us now,
                      struct node_id *out, struct err *err)
{
    uint32_t n = c->node_count;

    if (n >= NODES_MAX)
        return err_set (err, ERR_LIMIT, "node: there are %u, at most %d", n, NODES_MAX);
    if (node_spec_check (c, spec, err) != 0)
        return err->code;
    event_begin (c, now);
    if (n == c->node_cap)
        nodes_grow (c);
    c->node_count++;
    c->node[n] = *spec;
    c->node_state[n] = NODE_UP;
    c->load_milli[n] = 0;
    c->usage[n] = (struct node_usage){.since = TIME_US_NONE, .at = TIME_US_NONE};
    c->node_jobs[n] = 0;
    c->units_exact = false;
    memcpy (row (c, c->cap, n), spec->configured.v, c->dims * sizeof *c->cap);
    memcpy (row (c, c->free, n), spec->configured.v, c->dims * sizeof *c->free);
    c->nodes_dirty = true;
    c->version++;
    event_frees (c);
    if (out)
        *out = (struct node_id){n};
    return 0;
}

void nodes_settle (struct cluster *c)
{
    if (c->nodes_dirty) {
        c->nodes_dirty = false;
        nodes_changed (c);
        if (c->needs_stale)
            jobs_needs_changed (c);
        c->needs_stale = false;
    }
}

void cluster_settle (struct cluster *c)
{
    nodes_settle (c);
    access_settle (c);
    loads_settle (c);
}

int cluster_node_update (struct cluster *c, struct node_id node, const struct node_spec *spec,
                         time_us now, struct err *err)
{
    int32_t *cap = row (c, c->cap, node.v), *left = row (c, c->free, node.v);

    if (node_check (c, node, err) != 0 || node_spec_check (c, spec, err) != 0)
        return err->code;
    event_begin (c, now);
    if (memcmp (&c->node[node.v], spec, sizeof *spec) == 0)
        return 0;
    for (uint32_t d = 0; d < c->dims; d++) {
        left[d] += spec->configured.v[d] - cap[d];
        cap[d] = spec->configured.v[d];
    }
    c->node[node.v] = *spec;
    c->nodes_dirty = true;
    c->units_exact = false;
    c->version++;
    event_frees (c);
    return 0;
}

int cluster_node_state_set (struct cluster *c, struct node_id node, enum node_state state,
                            time_us now, struct err *err)
{
    if (node_check (c, node, err) != 0)
        return err->code;
    event_begin (c, now);
    if (c->node_state[node.v] == state)
        return 0;
    c->node_state[node.v] = (uint8_t)state;
    c->nodes_dirty = true;
    c->units_exact = false; /* until they are settled */
    c->version++;
    event_frees (c);
    return 0;
}

int cluster_node_load_set (struct cluster *c, struct node_id node, int32_t load_milli, time_us now,
                           struct err *err)
{
    if (node_check (c, node, err) != 0)
        return err->code;
    if (load_milli < 0)
        return err_set (err, ERR_INVALID, "node %u: load %d thousandths is negative", node.v,
                        load_milli);
    event_begin (c, now);
    if (c->load_milli[node.v] != load_milli)
        event_frees (c);
    c->load_milli[node.v] = load_milli;
    c->gauged = c->gauged || load_milli > 0;
    return 0;
}

uint32_t cluster_node_count (const struct cluster *c)
{
    return c->node_count;
}

int cluster_node_get (const struct cluster *c, struct node_id node, struct node_view *out,
                      struct err *err)
{
    if (node_check (c, node, err) != 0)
        return err->code;
    memset (out, 0, sizeof *out);
    out->spec = c->node[node.v];
    out->state = (enum node_state)c->node_state[node.v];
    for (uint32_t d = 0; d < c->dims; d++)
        out->dedicated.v[d] = row (c, c->cap, node.v)[d] - row (c, c->free, node.v)[d];
    out->load_milli = c->load_milli[node.v];
    out->measured = c->usage[node.v].measured;
    memset (&out->used, 0, sizeof out->used);
    memcpy (out->used.v, c->usage[node.v].used, sizeof c->usage[node.v].used);
    out->job_count = c->node_jobs[node.v];
    return 0;
}

void cluster_totals (const struct cluster *c, struct resources *configured,
                     struct resources *dedicated)
{
    int64_t cap[RES_MAX] = {0}, used[RES_MAX] = {0};

    for (uint32_t n = 0; n < c->node_count; n++) {
        for (uint32_t d = 0; d < c->dims; d++) {
            int32_t have = row (c, c->cap, n)[d];
            if (c->node_state[n] != NODE_DOWN)
                cap[d] += have;
            used[d] += have - row (c, c->free, n)[d];
        }
    }
    for (uint32_t d = 0; d < RES_MAX; d++) {
        configured->v[d] = cap[d] > INT32_MAX ? INT32_MAX : (int32_t)cap[d];
        dedicated->v[d] = used[d] > INT32_MAX ? INT32_MAX : (int32_t)used[d];
    }
}

/* --- reservations ------------------------------------------------------------------------ */

static uint32_t rsv_position (const struct cluster *c, uint64_t id)
{
    uint32_t low = 0, high = c->rsv_count;

    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (c->rsv[mid]->spec.id.v < id)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

struct rsv *rsv_find (const struct cluster *c, struct rsv_id id)
{
    uint32_t at = rsv_position (c, id.v);

    return at < c->rsv_count && c->rsv[at]->spec.id.v == id.v ? c->rsv[at] : NULL;
}

/* An ACL reservation is told by node: one placement each. */
static int rsv_admin_check (const struct cluster *c, const struct rsv_spec *spec,
                            const struct allocation *a, struct err *err)
{
    struct arena *arena;
    bool *seen, twice = false;

    if (spec->req_count != 1)
        return err_set (err, ERR_INVALID, "reservation %llu: one kind of tasks, not %u",
                        (unsigned long long)spec->id.v, spec->req_count);
    arena = arena_create (0);
    seen = arena_array (arena, c->node_count + 1, sizeof *seen);
    for (uint32_t i = 0; i < a->count; i++) {
        if (a->item[i].node.v >= c->node_count)
            break; /* allocation_check says so */
        twice = twice || seen[a->item[i].node.v];
        seen[a->item[i].node.v] = true;
    }
    arena_destroy (arena);
    if (twice)
        return err_set (err, ERR_INVALID, "reservation %llu names a node twice",
                        (unsigned long long)spec->id.v);
    return 0;
}

static int rsv_check (const struct cluster *c, const struct rsv_spec *spec,
                      const struct allocation *a, struct err *err)
{
    if (spec->id.v == 0)
        return err_set (err, ERR_INVALID, "reservation: number 0 stands for none");
    if (rsv_find (c, spec->id))
        return err_set (err, ERR_EXISTS, "reservation %llu is there already",
                        (unsigned long long)spec->id.v);
    if (spec->end <= spec->start)
        return err_set (err, ERR_INVALID, "reservation %llu ends before it starts",
                        (unsigned long long)spec->id.v);
    if (spec->req_count < 1 || spec->req_count > REQS_MAX)
        return err_set (err, ERR_INVALID, "reservation %llu has %u reqs, must be 1 to %d",
                        (unsigned long long)spec->id.v, spec->req_count, REQS_MAX);
    if (spec->kind == RSV_ADMIN && rsv_admin_check (c, spec, a, err) != 0)
        return err ? err->code : ERR_INVALID;
    if (licences_check (c, spec->licence, spec->licence_count, err) != 0)
        return err_prefix (err, "reservation %llu", (unsigned long long)spec->id.v);
    return allocation_check (c, spec->req, spec->req_count, a, err);
}

/* --- what no reservation may take: co-allocated parts ---------------------------------------- */

static void parts_add (const struct cluster *c, const struct rsv *part, uint32_t node,
                       struct resources *sum)
{
    for (uint32_t i = 0; i < part->allocation.count; i++) {
        const struct placement *p = &part->allocation.item[i];
        const struct req *req = &part->spec.req[p->req];
        for (uint32_t d = 0; p->node.v == node && d < c->dims; d++)
            sum->v[d] += req->exclusive ? row (c, c->cap, node)[d]
                                        : (int32_t)p->tasks * req->task.v[d];
    }
}

/* Parts that the reservation admits may lie inside it. */
static bool part_matters (const struct rsv *part, const struct rsv_spec *spec)
{
    uint8_t affinity;

    return part->spec.kind != RSV_ADMIN && part->spec.start < spec->end &&
           spec->start < part->spec.end &&
           !(part->spec.who && access_admits (spec, part->spec.who, &affinity));
}

int rsv_spares_parts (const struct cluster *c, const struct rsv_spec *spec,
                      const struct allocation *a, struct err *err)
{
    uint32_t matter = 0;

    for (uint32_t r = 0; r < c->rsv_count; r++)
        matter += part_matters (c->rsv[r], spec);
    for (uint32_t i = 0; matter > 0 && i < a->count; i++) {
        uint32_t node = a->item[i].node.v;
        struct resources sum = {{0}};
        bool some = false;
        for (uint32_t r = 0; r < c->rsv_count; r++) {
            struct resources before = sum;
            if (part_matters (c->rsv[r], spec))
                parts_add (c, c->rsv[r], node, &sum);
            some = some || memcmp (&before, &sum, sizeof sum) != 0;
        }
        for (uint32_t d = 0; some && d < c->dims; d++) {
            int64_t want = (spec->flags & RSV_DEDICATEDNODE) || spec->req[0].exclusive
                               ? row (c, c->cap, node)[d]
                               : (int64_t)a->item[i].tasks * spec->req[0].task.v[d];
            if (sum.v[d] + want > row (c, c->cap, node)[d])
                return err_set (err, ERR_CONFLICT,
                                "reservation %llu: node %u is promised to a co-allocated job in "
                                "that time",
                                (unsigned long long)spec->id.v, node);
        }
    }
    return 0;
}

/* --- making and moving ------------------------------------------------------------------------- */

static void rsv_changed (struct cluster *c, const struct rsv_spec *spec)
{
    c->version++;
    c->lasting += endless (spec->end);
    event_frees (c);
    if (spec->kind == RSV_ADMIN)
        access_changed (c);
}

/* May it lie there? */
static int rsv_fits (struct cluster *c, const struct rsv_spec *spec, const struct allocation *a,
                     struct err *err)
{
    if (spec->kind != RSV_ADMIN)
        return timeline_conflict (c, spec, a, c->now, err);
    if (rsv_spares_parts (c, spec, a, err) != 0)
        return err ? err->code : ERR_CONFLICT;
    return (spec->flags & RSV_FORCED) || spec->placed ? 0 : timeline_conflict (c, spec, a, c->now, err);
}

int cluster_rsv_create (struct cluster *c, const struct rsv_spec *spec,
                        const struct allocation *allocation, time_us now, struct err *err)
{
    uint32_t at;
    struct rsv *rsv;

    if (rsv_check (c, spec, allocation, err) != 0)
        return err->code;
    event_begin (c, now);
    cluster_settle (c);
    if (rsv_fits (c, spec, allocation, err) != 0)
        return err->code;
    rsv = calloc (1, sizeof *rsv);
    assert (rsv && "out of memory");
    rsv->spec = *spec;
    rsv->spec.req = heap_copy (spec->req, spec->req_count * sizeof *spec->req);
    rsv->spec.acl =
        spec->acl_count ? heap_copy (spec->acl, spec->acl_count * sizeof *spec->acl) : NULL;
    if (spec->who)
        rsv->spec.who = heap_copy (spec->who, sizeof *spec->who);
    rsv->spec.licence = spec->licence_count
                            ? heap_copy (spec->licence,
                                         spec->licence_count * sizeof *spec->licence)
                            : NULL;
    rsv->allocation.count = allocation->count;
    rsv->allocation.item =
        heap_copy (allocation->item, allocation->count * sizeof *allocation->item);
    at = rsv_position (c, spec->id.v);
    c->rsv = grow (c->rsv, &c->rsv_cap, c->rsv_count + 1, sizeof *c->rsv);
    memmove (c->rsv + at + 1, c->rsv + at, (c->rsv_count - at) * sizeof *c->rsv);
    c->rsv[at] = rsv;
    c->rsv_count++;
    rsv_changed (c, spec);
    return 0;
}

int cluster_rsv_move (struct cluster *c, struct rsv_id id, uint32_t tasks,
                      const struct allocation *allocation, time_us now, struct err *err)
{
    struct rsv *rsv = rsv_find (c, id);
    struct rsv_spec spec;
    struct req req;
    int rc;

    if (rsv == NULL)
        return err_set (err, ERR_NOT_FOUND, "reservation %llu does not exist",
                        (unsigned long long)id.v);
    if (rsv->spec.kind != RSV_ADMIN)
        return err_set (err, ERR_CONFLICT, "reservation %llu is a co-allocated job's",
                        (unsigned long long)id.v);
    spec = rsv->spec;
    req = spec.req[0];
    req.tasks = tasks;
    spec.req = &req;
    rc = rsv_admin_check (c, &spec, allocation, err);
    if (rc == 0)
        rc = allocation_check (c, &req, 1, allocation, err);
    if (rc == 0)
        rc = rsv_spares_parts (c, &spec, allocation, err);
    if (rc != 0)
        return rc;
    event_begin (c, now);
    ((struct req *)rsv->spec.req)->tasks = tasks;
    free (rsv->allocation.item);
    rsv->allocation.count = allocation->count;
    rsv->allocation.item =
        heap_copy (allocation->item, allocation->count * sizeof *allocation->item);
    rsv_changed (c, &rsv->spec);
    return 0;
}

int cluster_rsv_commit (struct cluster *c, struct rsv_id id, time_us now, struct err *err)
{
    struct rsv *rsv = rsv_find (c, id);

    if (rsv == NULL)
        return err_set (err, ERR_NOT_FOUND, "reservation %llu does not exist",
                        (unsigned long long)id.v);
    if (rsv->spec.kind == RSV_FIRM)
        return 0;
    if (rsv->spec.kind != RSV_COURTESY)
        return err_set (err, ERR_CONFLICT, "reservation %llu is not a courtesy hold",
                        (unsigned long long)id.v);
    event_begin (c, now);
    rsv->spec.kind = RSV_FIRM;
    c->version++;
    event_frees (c);
    return 0;
}

int cluster_rsv_release (struct cluster *c, struct rsv_id id, time_us now, struct err *err)
{
    uint32_t at = rsv_position (c, id.v);

    if (at >= c->rsv_count || c->rsv[at]->spec.id.v != id.v)
        return err_set (err, ERR_NOT_FOUND, "reservation %llu does not exist",
                        (unsigned long long)id.v);
    event_begin (c, now);
    rsv_changed (c, &c->rsv[at]->spec);
    rsv_free (c->rsv[at]);
    c->rsv_count--;
    memmove (c->rsv + at, c->rsv + at + 1, (c->rsv_count - at) * sizeof *c->rsv);
    return 0;
}

int cluster_rsv_get (const struct cluster *c, struct rsv_id id, struct rsv_view *out,
                     struct err *err)
{
    const struct rsv *rsv = rsv_find (c, id);

    if (rsv == NULL)
        return err_set (err, ERR_NOT_FOUND, "reservation %llu does not exist",
                        (unsigned long long)id.v);
    *out = (struct rsv_view){&rsv->spec, rsv->allocation, rsv->used_by};
    return 0;
}

uint32_t cluster_rsv_list (const struct cluster *c, struct rsv_id *out, uint32_t cap)
{
    for (uint32_t i = 0; i < c->rsv_count && i < cap; i++)
        out[i] = c->rsv[i]->spec.id;
    return c->rsv_count;
}

/* --- time --------------------------------------------------------------------------------- */

static void sooner (time_us t, time_us now, time_us *best)
{
    if (t != TIME_US_NONE && t > now && t < *best)
        *best = t;
}

time_us cluster_next_wakeup (const struct cluster *c, time_us now)
{
    time_us best = TIME_US_MAX;

    for (uint32_t i = 0; i < c->run_count; i++) {
        sooner (c->run[i].end, now, &best);
        if (c->run[i].end > now)
            break;
    }
    for (uint32_t i = 0; i < c->rsv_count; i++) {
        sooner (c->rsv[i]->spec.start, now, &best);
        sooner (c->rsv[i]->spec.end, now, &best);
    }
    for (uint32_t i = 0; i < c->idle_count; i++) {
        const struct job *job = job_at (c, c->idle[i]);
        sooner (job->reserved_start, now, &best);
        if (c->gated == 0)
            continue;
        sooner (job->deferred_until, now, &best);
        sooner (job->spec.not_before, now, &best);
        if (job->spec.data_at) { /* nodes are kept no longer */
            sooner (job->spec.data_at, now, &best);
            sooner (time_add (job->data_first, c->policy->data_grace) + 1, now, &best);
        }
        sooner (job->retry_until, now, &best);
        if (job->spec.deadline) /* when it is lost */
            sooner (job->spec.deadline - length_least (c, job->spec.walltime_limit) + 1, now, &best);
    }
    for (uint32_t i = 0; i < c->run_count && c->policy->max_overrun != TIME_US_MAX; i++) {
        time_us end = time_add (c->run[i].end, c->policy->max_overrun);
        sooner (end, now, &best);
        if (end > now)
            break;
    }
    for (uint32_t i = 0; i < c->suspended_count; i++)
        sooner (suspended_wakeup (c, i), now, &best);
    if (c->policy->bf_chunk_procs && c->freed_at != TIME_US_NONE)
        sooner (time_add (c->freed_at, c->policy->bf_chunk_duration), now, &best);
    return best;
}
