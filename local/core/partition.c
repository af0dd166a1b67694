/* partition: PARCFG's limits: how much at one moment in each partition. What is active there is counted
 * when a pass begins and with each of its starts, and only where some partition has a limit. A job that
 * spans partitions counts in each with what it has there; it may use those in which all of it would be
 * within the limits. */
#include "local/core/pass.h"

/* share: of the job's processors, those there. */
static void use_add (struct partition_use *use, const struct limits_job *lj, uint32_t share,
                     uint32_t nodes, int64_t left_s)
{
    use->v[LIMIT_JOB]++;
    use->v[LIMIT_PROC] += share;
    use->v[LIMIT_NODE] += nodes;
    use->v[LIMIT_PS] += share * left_s;
    use->v[LIMIT_WC] += left_s;
    use->v[LIMIT_PE] += lj->pe_micro * share / lj->procs;
    use->v[LIMIT_MEM] += lj->mem_mb * share / lj->procs;
}

static void use_of_job (const struct cluster *c, uint32_t slot, time_us now,
                        struct partition_use use[PARTITIONS_MAX + 1])
{
    const struct job *job = job_at (c, slot);
    int64_t left_s = job->limit_end > now ? (job->limit_end - now) / US_PER_S : 0;
    uint32_t procs[PARTITIONS_MAX + 1] = {0}, nodes[PARTITIONS_MAX + 1] = {0};

    for (uint32_t i = 0; i < job->allocation.count; i++) {
        const struct placement *p = &job->allocation.item[i];
        uint32_t partition = c->node[p->node.v].partition;
        procs[partition] += p->tasks * (uint32_t)job->spec.req[p->req].task.v[RES_PROCS];
        nodes[partition] += p->req == 0 || !earlier_req_there (&job->allocation, i);
    }
    for (uint32_t n = 1; n <= PARTITIONS_MAX; n++) {
        if (procs[n])
            use_add (&use[n], &c->lj[slot], procs[n], nodes[n], left_s);
    }
}

struct partition_use *partition_usage (const struct cluster *c, time_us now, struct arena *arena)
{
    struct partition_use *use;

    if (c->policy->partitions_limited == 0)
        return NULL;
    use = arena_array (arena, PARTITIONS_MAX + 1, sizeof *use);
    for (uint32_t i = 0; i < c->run_count; i++)
        use_of_job (c, c->run[i].slot, now, use);
    return use;
}

void partition_started (struct pass *p, uint32_t slot)
{
    if (p->partition_use)
        use_of_job (p->c, slot, p->now, p->partition_use);
}

/* Would the job, all of it there, keep the partition's limits? */
static bool within (const struct cluster *c, const struct partition_use *use, uint32_t partition,
                    const struct limits_job *lj, enum limit_level level, struct limits_violation *v)
{
    const struct policy_limits *limits = &c->policy->partition_limits[partition];

    for (int k = 0; k < LIMIT_KINDS; k++) {
        int64_t value = limits->active[level][k], request = limits_request (lj, (enum limit_kind)k);
        if (!((limits->active_mask >> k) & 1) || value == LIMIT_UNLIMITED ||
            (k == LIMIT_MINPROC ? request >= value : use->v[k] + request <= value))
            continue;
        *v = (struct limits_violation){.scope = LIMIT_SCOPE_ACTIVE,
                                       .level = level,
                                       .limit = (enum limit_kind)k,
                                       .object = LIMIT_OBJECT_PARTITION,
                                       .id = partition - 1,
                                       .value = value,
                                       .usage = use->v[k],
                                       .request = request};
        return false;
    }
    return true;
}

uint64_t partition_open (const struct cluster *c, const struct partition_use *use, uint32_t slot,
                         enum limit_level level, struct limits_violation *v)
{
    const struct job *job = job_at (c, slot);
    const struct policy_qos *qos = policy_qos (c->policy, job->spec.cred[CRED_QOS]);
    uint64_t may = c->shape[job->shape[0]].needs.partitions, open;
    struct limits_violation ignored;

    may = may ? may : c->partition_mask;
    open = may;
    if (use == NULL || (qos && (qos->flags & QOS_IGNALL)))
        return open;
    for (uint64_t bits = may & c->policy->partitions_limited; bits; bits &= bits - 1) {
        uint32_t partition = (uint32_t)__builtin_ctzll (bits) + 1;
        if (!within (c, &use[partition], partition, &c->lj[slot], level, v ? v : &ignored))
            open &= ~partition_bit (partition);
    }
    return open;
}

uint64_t partition_closing (const struct pass *p, uint32_t slot, enum limit_level level)
{
    uint64_t may = p->c->shape[job_at (p->c, slot)->shape[0]].needs.partitions, open;

    if (p->partition_use == NULL)
        return 0;
    open = partition_open (p->c, p->partition_use, slot, level, NULL);
    if (open == (may ? may : p->c->partition_mask))
        return 0;
    return open ? open : NOWHERE;
}

bool partition_allows (const struct pass *p, uint32_t slot, const struct allocation *a,
                       enum limit_level level)
{
    uint64_t open =
        p->partition_use ? partition_open (p->c, p->partition_use, slot, level, NULL) : UINT64_MAX;

    for (uint32_t i = 0; i < a->count; i++) {
        if (!(open & partition_bit (p->c->node[a->item[i].node.v].partition)))
            return false;
    }
    return true;
}
