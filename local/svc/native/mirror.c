/* Reservations that the resource manager is to keep as well (RMCFG MIRROR): after each pass it is told of
 * all there are, and makes up the difference. So nothing has to be remembered over a kill -9. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "local/svc/job.h"
#include "local/svc/native/native.h"
#include "local/svc/nodes.h"
#include "local/svc/resv/resv.h"
#include "local/svc/svc_i.h"

struct mirror {
    struct svc *svc;
    struct arena *arena;
    struct rm_reservation *list;
    uint32_t count, cap;
};

static struct rm_reservation *entry_add (struct mirror *m)
{
    if (m->count == m->cap) {
        m->cap = m->cap ? 2 * m->cap : 64;
        m->list = realloc (m->list, m->cap * sizeof *m->list);
        assert (m->list);
    }
    m->list[m->count] = (struct rm_reservation){.name = ""};
    return &m->list[m->count++];
}

/* Processors of each node, each node once. */
static void nodes_fill (struct mirror *m, const struct allocation *a, const struct req *reqs,
                        struct rm_reservation *out)
{
    const char **host = arena_array (m->arena, a->count + 1, sizeof *host);
    uint32_t *procs = arena_array (m->arena, a->count + 1, sizeof *procs);
    for (uint32_t i = 0; i < a->count; i++) {
        const char *name = m->svc->node_by_id[a->item[i].node.v]->name;
        int64_t each = reqs[a->item[i].req].task.v[RES_PROCS];
        int64_t all = each * a->item[i].tasks;
        uint32_t n = 0;
        while (n < out->host_count && host[n] != name)
            n++;
        host[n] = name;
        procs[n] =
            (n < out->host_count ? procs[n] : 0) + (uint32_t)(all < INT32_MAX ? all : INT32_MAX);
        out->host_count += n == out->host_count;
    }
    out->host = host;
    out->host_procs = procs;
}

static void rsv_add (struct mirror *m, struct rsv_id id, time_us now)
{
    struct rsv_view view;
    if (cluster_rsv_get (m->svc->cluster, id, &view, NULL) != 0 || view.spec->end <= now ||
        view.allocation.count == 0)
        return;
    struct rm_reservation *r = entry_add (m);
    const char *name = resv_name (m->svc, id.v);
    struct site_job *job = svc_job (m->svc, id.v);
    r->name = name ? arena_strdup (m->arena, name)
                   : arena_printf (m->arena, "%llu", (unsigned long long)id.v);
    r->start = view.spec->start;
    r->end = view.spec->end;
    r->user = job ? job->rec.local_account : NULL;
    nodes_fill (m, &view.allocation, view.spec->req, r);
}

/* A part that was started has no reservation any more, and its job may not be at Slurm yet. */
static void starting_add (struct mirror *m, struct site_job *job)
{
    struct allocation a = placement_parse (m->svc, job->rec.placement, m->arena);
    if (a.count == 0)
        return;
    struct rm_reservation *r = entry_add (m);
    r->name = arena_printf (m->arena, "%llu", (unsigned long long)job->rec.number);
    r->start = job->rec.launch_at;
    r->end = r->start + job->rec.walltime;
    r->user = job->rec.local_account;
    nodes_fill (m, &a, job->reqs, r);
}

void mirror_settle (struct svc *svc)
{
    struct err err = {0};
    struct site_part *part, *next;
    if (!svc->settings->rm.mirror || !svc->rm.ops->reserve || svc->mode)
        return;
    struct mirror m = {.svc = svc, .arena = arena_create (0)};
    time_us now = svc_now (svc);
    uint32_t count = cluster_rsv_list (svc->cluster, NULL, 0);
    struct rsv_id *id = arena_array (m.arena, count + 1, sizeof *id);
    cluster_rsv_list (svc->cluster, id, count);
    for (uint32_t i = 0; i < count; i++)
        rsv_add (&m, id[i], now);
    HASH_ITER (hh, svc->parts, part, next)
        if (part->job && !part->rsv && part->job->rec.state == STORE_JOB_STARTING)
            starting_add (&m, part->job);
    if (svc->rm.ops->reserve (svc->rm.self, m.list, m.count, &err) != 0)
        log_event (svc->log, LOG_LEVEL_WARN, "rm", "not_reserved", "error=\"%s\"", err.text);
    free (m.list);
    arena_destroy (m.arena);
}

const struct svc_listener mirror_listener = {.pass_done = mirror_settle};
