/* ask: is what a job, a question or a reservation asks for well formed, and does an allocation give it? */
#include "local/core/state.h"

#include <string.h>

/* None negative, none beyond those in use? */
static bool resources_known (const struct cluster *c, const struct resources *r)
{
    static const struct resources none;
    int32_t sign = 0;

    for (uint32_t d = 0; d < RES_MAX; d++)
        sign |= r->v[d];
    return sign >= 0 && memcmp (r->v + c->dims, none.v, (RES_MAX - c->dims) * sizeof *none.v) == 0;
}

int req_check (const struct cluster *c, const struct req *req, uint32_t index, struct err *err)
{
    if (req->tasks < 1 || req->tasks > TASKS_MAX)
        return err_set (err, ERR_INVALID, "req %u asks for %u tasks, must be 1 to %d", index,
                        req->tasks, TASKS_MAX);
    if (req->task.v[RES_PROCS] < 1)
        return err_set (err, ERR_INVALID, "req %u asks for %d processors per task, at least 1",
                        index, req->task.v[RES_PROCS]);
    if (!resources_known (c, &req->task)) {
        for (uint32_t d = 0; d < RES_MAX; d++) {
            if (req->task.v[d] < 0)
                return err_set (err, ERR_INVALID, "req %u asks for %d of resource %u", index,
                                req->task.v[d], d);
            if (d >= c->dims && req->task.v[d] != 0)
                return err_set (err, ERR_INVALID,
                                "req %u asks for resource %u, which is not in use", index, d);
        }
    }
    if (req->access > ACCESS_SINGLETASK || req->hosts > c->groups.hosts_count ||
        (req->nodeset != NODESET_NONE && req->nodeset > c->groups.nodeset_count) ||
        req->partition > PARTITIONS_MAX)
        return err_set (err, ERR_INVALID,
                        "req %u: access policy %u, host list %u, node set %u or partition %u is "
                        "not known",
                        index, req->access, req->hosts, req->nodeset, req->partition);
    if (req->tasks_per_node > 0 && req->tasks % req->tasks_per_node != 0)
        return err_set (err, ERR_INVALID, "req %u: %u tasks cannot be spread as %u per node", index,
                        req->tasks, req->tasks_per_node);
    return 0;
}

int reqs_together (const struct req *req, uint32_t count, struct err *err)
{
    for (uint32_t i = 1; i < count; i++) {
        if (req[i].partition != req[0].partition || req[i].partitions != req[0].partitions ||
            req[i].nodeset != req[0].nodeset)
            return err_set (err, ERR_INVALID,
                            "req %u asks for another partition or node set than req 0", i);
    }
    return 0;
}

int job_spec_check (const struct cluster *c, const struct job_spec *spec, struct err *err)
{
    uint64_t procs = 0;

    if (spec->id.v == 0 || spec->id.v == UINT64_MAX)
        return err_set (err, ERR_INVALID, "job: number %llu is not allowed",
                        (unsigned long long)spec->id.v);
    if (spec->walltime_limit <= 0)
        return err_set (err, ERR_INVALID, "job %llu has no wallclock limit",
                        (unsigned long long)spec->id.v);
    if (spec->req_count < 1 || spec->req_count > REQS_MAX)
        return err_set (err, ERR_INVALID, "job %llu has %u reqs, must be 1 to %d",
                        (unsigned long long)spec->id.v, spec->req_count, REQS_MAX);
    for (uint32_t i = 0; i < spec->req_count; i++) {
        if (req_check (c, &spec->req[i], i, err) != 0) {
            err_prefix (err, "job %llu", (unsigned long long)spec->id.v);
            return err ? err->code : ERR_INVALID;
        }
        procs += (uint64_t)spec->req[i].tasks * (uint64_t)spec->req[i].task.v[RES_PROCS];
    }
    if (reqs_together (spec->req, spec->req_count, err) != 0)
        return err_prefix (err, "job %llu", (unsigned long long)spec->id.v);
    if (licences_check (c, spec->licence, spec->licence_count, err) != 0)
        return err_prefix (err, "job %llu", (unsigned long long)spec->id.v);
    if (procs > INT32_MAX)
        return err_set (err, ERR_LIMIT, "job %llu asks for %llu processors, at most %d",
                        (unsigned long long)spec->id.v, (unsigned long long)procs, INT32_MAX);
    return 0;
}

int allocation_check (const struct cluster *c, const struct req *req, uint32_t req_count,
                      const struct allocation *a, struct err *err)
{
    uint32_t tasks[REQS_MAX] = {0};

    for (uint32_t i = 0; i < a->count; i++) {
        const struct placement *p = &a->item[i];
        if (p->node.v >= c->node_count)
            return err_set (err, ERR_INVALID, "allocation: node %u of %u", p->node.v,
                            c->node_count);
        if (p->req >= req_count || p->tasks == 0)
            return err_set (err, ERR_INVALID, "allocation: item %u names req %u of %u, %u tasks", i,
                            p->req, req_count, p->tasks);
        tasks[p->req] += p->tasks;
    }
    for (uint32_t r = 0; r < req_count; r++) {
        if (tasks[r] != req[r].tasks)
            return err_set (err, ERR_INVALID, "allocation: req %u asks for %u tasks and gets %u", r,
                            req[r].tasks, tasks[r]);
    }
    return 0;
}
