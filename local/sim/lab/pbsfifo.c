/* pbsfifo: a pass in the place of the core's, for the engine. labrun.c plugs it in where an
 * experiment compares with PBS. It uses the cluster's public calls only, and no part of the
 * daemon may call it. */
#include "local/sim/lab/pbsfifo.h"
#include "proto/base/fnv.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct waiting {
    struct job_id id;
    time_us submit;
    uint32_t procs;
};

static int by_submit (const void *a, const void *b)
{
    const struct waiting *x = a, *y = b;
    if (x->submit != y->submit)
        return x->submit < y->submit ? -1 : 1;
    return x->id.v < y->id.v ? -1 : x->id.v > y->id.v;
}

static struct waiting *queue_read (struct cluster *cluster, struct arena *arena,
                                   uint32_t *count_out)
{
    uint32_t count = cluster_job_count (cluster, JOB_IDLE);
    struct job_id *id = arena_array (arena, count + 1, sizeof id[0]);
    struct waiting *queue = arena_array (arena, count + 1, sizeof queue[0]);
    count = cluster_job_list (cluster, JOB_IDLE, id, count);
    for (uint32_t i = 0; i < count; i++) {
        struct job_view view;
        int rc = cluster_job_get (cluster, id[i], &view, NULL);
        assert (rc == 0);
        queue[i] = (struct waiting){id[i], view.spec->submit, view.procs};
    }
    qsort (queue, count, sizeof queue[0], by_submit);
    *count_out = count;
    return queue;
}

static uint32_t tasks_that_fit (const struct node_view *node, const struct req *req)
{
    uint32_t most = UINT32_MAX;
    for (size_t i = 0; i < sizeof req->features.word / sizeof req->features.word[0]; i++) {
        if (req->features.word[i] & ~node->spec.features.word[i])
            return 0;
    }
    if (node->state != NODE_UP || (req->exclusive && node->job_count > 0))
        return 0;
    for (int k = 0; k < RES_MAX; k++) {
        int32_t left = node->spec.configured.v[k] - node->dedicated.v[k];
        if (req->task.v[k] > 0) {
            uint32_t n = left > 0 ? (uint32_t)(left / req->task.v[k]) : 0;
            most = n < most ? n : most;
        }
    }
    if (req->tasks_per_node)
        return most >= req->tasks_per_node ? req->tasks_per_node : 0;
    return most;
}

static void dedicate (struct node_view *node, const struct req *req, uint32_t tasks)
{
    for (int k = 0; k < RES_MAX; k++) {
        if (req->exclusive)
            node->dedicated.v[k] = node->spec.configured.v[k];
        else
            node->dedicated.v[k] += req->task.v[k] * (int32_t)tasks;
    }
    node->job_count++;
}

/* Nodes for one req, first come first taken; false: not enough now. */
static bool place (struct node_view *node, uint32_t node_count, const struct req *req,
                   uint32_t req_index, struct allocation *out)
{
    uint32_t left = req->tasks;
    for (uint32_t n = 0; n < node_count && left > 0; n++) {
        uint32_t fit = tasks_that_fit (&node[n], req);
        if (fit == 0)
            continue;
        uint32_t take = fit < left ? fit : left;
        if (req->tasks_per_node && take < req->tasks_per_node)
            return false;
        dedicate (&node[n], req, take);
        out->item[out->count++] =
            (struct placement){.node = {n}, .tasks = take, .req = req_index & 0xff};
        left -= take;
    }
    return left == 0;
}

static struct node_view *nodes_read (struct cluster *cluster, struct arena *arena)
{
    uint32_t count = cluster_node_count (cluster);
    struct node_view *node = arena_array (arena, count + 1, sizeof node[0]);
    for (uint32_t n = 0; n < count; n++) {
        int rc = cluster_node_get (cluster, (struct node_id){n}, &node[n], NULL);
        assert (rc == 0);
    }
    return node;
}

struct pass {
    struct cluster *cluster;
    struct arena *arena;
    struct node_view *node; /* NULL until first needed */
    uint32_t node_count;
    time_us now;
};

static int job_try (struct pass *p, struct job_id id, struct allocation *out, bool *started_out,
                    struct err *err)
{
    struct job_view view;
    int rc = cluster_job_get (p->cluster, id, &view, err);
    *started_out = false;
    if (rc)
        return rc;
    if (!p->node)
        p->node = nodes_read (p->cluster, p->arena);
    *out = (struct allocation){0, arena_array (p->arena,
                                               (size_t)p->node_count * view.spec->req_count + 1,
                                               sizeof out->item[0])};
    bool fits = true;
    for (uint32_t r = 0; r < view.spec->req_count && fits; r++)
        fits = place (p->node, p->node_count, &view.spec->req[r], r, out);
    if (!fits) {
        p->node = NULL; /* half taken: read again when next needed */
        return 0;
    }
    rc = cluster_job_start (p->cluster, id, out, p->now, p->now, err);
    *started_out = rc == 0;
    return rc;
}

static int pbsfifo_pass (void *self, struct cluster *cluster, time_us now, struct arena *arena,
                         struct plan *plan_out, struct err *err)
{
    const struct pbsfifo *fifo = self;
    uint32_t count;
    struct waiting *queue = queue_read (cluster, arena, &count);
    struct pass p = {cluster, arena, NULL, cluster_node_count (cluster), now};
    struct resources configured, dedicated;
    cluster_totals (cluster, &configured, &dedicated);
    int64_t free_procs = configured.v[RES_PROCS] - dedicated.v[RES_PROCS];
    memset (plan_out, 0, sizeof *plan_out);
    plan_out->now = now;
    plan_out->start = arena_array (arena, count + 1, sizeof plan_out->start[0]);
    plan_out->hash = UINT64_C (0xCBF29CE484222325);
    for (uint32_t i = 0; i < count && free_procs > 0; i++) {
        bool starving = fifo->starving != TIME_US_MAX && now - queue[i].submit > fifo->starving;
        bool started = false;
        struct allocation allocation;
        if (queue[i].procs <= free_procs) {
            int rc = job_try (&p, queue[i].id, &allocation, &started, err);
            if (rc)
                return rc;
        }
        if (started) {
            plan_out->start[plan_out->start_count++] = (struct plan_start){
                queue[i].id, i ? PLAN_BACKFILL_SOFT : PLAN_PRIORITY, false, allocation};
            plan_out->hash = fnv_word (plan_out->hash, queue[i].id.v);
            free_procs -= queue[i].procs;
        } else if (starving) {
            break;
        }
    }
    return 0;
}

struct engine_scheduler pbsfifo_scheduler (struct pbsfifo *self)
{
    return (struct engine_scheduler){self, pbsfifo_pass};
}
