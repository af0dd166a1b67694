/* Nodes, and what is promised on them. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "local/core/explain.h"
#include "local/svc/admin/admin.h"
#include "local/svc/caller.h"
#include "local/svc/job.h"
#include "local/svc/native/native.h"
#include "local/svc/memory/memory.h"
#include "local/svc/nodes.h"
#include "local/svc/resv/resv.h"
#include "local/svc/svc_i.h"

enum { ROWS_PER_CHUNK = 256 };

/* --- nodes -------------------------------------------------------------------------------- */

struct node_stream {
    struct admin_stream base;
    uint32_t at, count;
    uint64_t *job;   /* running jobs, by node */
    uint32_t *first; /* [node], with one more at the end: where its jobs begin */
};

static void node_stream_free (struct admin_stream *base)
{
    struct node_stream *s = (struct node_stream *)base;
    free (s->job);
    free (s->first);
    free (s);
}

/* Each node's jobs side by side: counted, then put in place. */
static void jobs_by_node (struct svc *svc, struct node_stream *s)
{
    uint32_t cap = HASH_COUNT (svc->jobs) + 1, total = 0, n = 0;
    struct job_id *id = calloc (cap, sizeof *id);
    uint32_t *fill = calloc (svc->node_count + 1, sizeof *fill);
    struct job_view view;
    s->first = calloc (svc->node_count + 2, sizeof *s->first);
    assert (id && fill && s->first);
    n = cluster_job_list (svc->cluster, JOB_RUNNING, id, cap);
    n += cluster_job_list (svc->cluster, JOB_STARTING, id + n, cap - n);
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < n; i++) {
            if (cluster_job_get (svc->cluster, id[i], &view, NULL) != 0)
                continue;
            for (uint32_t p = 0; p < view.allocation.count; p++) {
                uint32_t node = view.allocation.item[p].node.v;
                if (p > 0 && node == view.allocation.item[p - 1].node.v)
                    continue;
                if (round == 0)
                    s->first[node + 1]++;
                else
                    s->job[s->first[node] + fill[node]++] = id[i].v;
            }
        }
        for (uint32_t v = 0; round == 0 && v < svc->node_count; v++)
            s->first[v + 1] += s->first[v];
        total = s->first[svc->node_count];
        if (round == 0)
            s->job = calloc (total + 1, sizeof *s->job);
        assert (s->job);
    }
    free (id);
    free (fill);
}

const char *admin_node_state (const struct node_view *v)
{
    if (v->state == NODE_DOWN)
        return "Down";
    if (v->state == NODE_DRAINED)
        return v->job_count ? "Draining" : "Drained";
    if (v->job_count == 0)
        return "Idle";
    return v->dedicated.v[RES_PROCS] < v->spec.configured.v[RES_PROCS] ? "Running" : "Busy";
}

static char *counted (struct svc *svc, const char *name, const struct node_view *v, uint32_t column)
{
    return arena_printf (svc->call_arena, "%s %d:%d", name,
                         v->spec.configured.v[column] - v->dedicated.v[column],
                         v->spec.configured.v[column]);
}

/* Partition, generic resources, classes with their initiators. */
static void place_fill (struct svc *svc, const struct node_view *v, Nui__Local__V1__NodeInfo *out)
{
    struct arena *arena = svc->call_arena;
    const char *partition = strtab_name (svc->names->partition, v->spec.partition - 1);
    uint32_t classes = strtab_count (svc->place.class);
    out->partition = (char *)(partition ? partition : "DEFAULT");
    out->gres = arena_array (arena, RES_MAX, sizeof *out->gres);
    out->classes = arena_array (arena, classes + 1, sizeof *out->classes);
    for (uint32_t d = RES_GRES0; d < RES_MAX; d++) {
        const char *name = place_gres_name (&svc->place, d);
        if (name && v->spec.configured.v[d])
            out->gres[out->n_gres++] = counted (svc, name, v, d);
    }
    for (uint32_t bit = 0; v->spec.classes && bit < classes; bit++) {
        const char *name = strtab_name (svc->place.class, bit);
        uint32_t column = place_class_column (&svc->place, name);
        if (!(v->spec.classes >> bit & 1))
            continue;
        out->classes[out->n_classes++] =
            column ? counted (svc, name, v, column) : arena_strdup (arena, name);
    }
}

/* Those of the topology file that it is below, the nearest first. */
static void switches_fill (struct svc *svc, uint32_t node, Nui__Local__V1__NodeInfo *out)
{
    uint32_t count = strtab_count (svc->place.sw), found = 1;
    out->switches = arena_array (svc->call_arena, count + 1, sizeof *out->switches);
    for (uint32_t level = 0; found && out->n_switches < count; level++) {
        found = 0;
        for (uint32_t i = 0; i < count; i++) {
            uint32_t at;
            if (!cluster_switch_has (svc->cluster, i, (struct node_id){node}, &at) || at < level)
                continue;
            found++;
            if (at == level)
                out->switches[out->n_switches++] = (char *)strtab_name (svc->place.sw, i);
        }
    }
}

/* Features by what they say: "net:myrinet", and in traces "class:batch", "opsys:Linux", "arch:x86_64", "mem>=512". */
static void features_fill (struct svc *svc, const struct node_view *v,
                           Nui__Local__V1__NodeInfo *out)
{
    bool told = out->n_classes > 0;
    out->features = arena_array (svc->call_arena, FEATURES_MAX, sizeof *out->features);
    out->networks = arena_array (svc->call_arena, FEATURES_MAX, sizeof *out->networks);
    if (!told)
        out->classes = arena_array (svc->call_arena, FEATURES_MAX, sizeof *out->classes);
    for (uint32_t i = 0; i < FEATURES_MAX; i++) {
        char *name = (char *)strtab_name (svc->features, i);
        if (!(v->spec.features.word[i / 64] >> (i % 64) & 1))
            continue;
        if (strncmp (name, "net:", 4) == 0)
            out->networks[out->n_networks++] = name + 4;
        else if (strncmp (name, "opsys:", 6) == 0)
            out->opsys = name + 6;
        else if (strncmp (name, "arch:", 5) == 0)
            out->arch = name + 5;
        else if (strncmp (name, "class:", 6) == 0 && !told)
            out->classes[out->n_classes++] = name + 6;
        else if (!strpbrk (name, ":<>="))
            out->features[out->n_features++] = name;
    }
}

/* How long it has been what it is. */
static void times_fill (struct svc *svc, uint32_t n, Nui__Local__V1__NodeInfo *out)
{
    if (!svc->stats || n >= svc->stats->node_count)
        return;
    const struct stats_node *times = &svc->stats->node[n];
    out->state_since_us = times->since;
    out->total_us = times->total_us;
    out->up_us = times->up_us;
    out->busy_us = times->busy_us;
}

static void node_fill (struct node_stream *s, uint32_t n, const struct node_view *v,
                       Nui__Local__V1__NodeInfo *out)
{
    struct svc *svc = s->base.svc;
    struct arena *arena = svc->call_arena;
    char id[SITE_ID_MAX];
    nui__local__v1__node_info__init (out);
    out->name = svc->node_by_id[n]->name;
    out->address = (char *)node_address (svc, out->name);
    out->state = (char *)admin_node_state (v);
    out->procs = (uint32_t)v->spec.configured.v[RES_PROCS];
    out->memory_mb = v->spec.configured.v[RES_MEM_MB];
    out->swap_mb = v->spec.configured.v[RES_SWAP_MB];
    out->disk_mb = v->spec.configured.v[RES_DISK_MB];
    out->dedicated_procs = (uint32_t)v->dedicated.v[RES_PROCS];
    out->dedicated_memory_mb = v->dedicated.v[RES_MEM_MB];
    out->dedicated_swap_mb = v->dedicated.v[RES_SWAP_MB];
    out->dedicated_disk_mb = v->dedicated.v[RES_DISK_MB];
    out->speed_ppm = (uint32_t)v->spec.speed_ppm;
    out->load_milli = v->load_milli;
    out->priority = v->spec.priority;
    out->measured = v->measured;
    out->used_memory_mb = v->used.v[RES_MEM_MB];
    if (svc->rm.ops->here) {
        out->opsys = svc->kernel.sysname;
        out->arch = svc->kernel.machine;
    }
    if (v->state != NODE_UP)
        out->reason = arena_strdup (arena, svc_node_reason (svc, svc->node_by_id[n]));
    place_fill (svc, v, out);
    features_fill (svc, v, out); /* after the classes that NODECFG says */
    times_fill (svc, n, out);
    switches_fill (svc, n, out);
    uint32_t first = s->first[n], end = s->first[n + 1];
    out->jobs = arena_array (arena, end - first + 1, sizeof *out->jobs);
    for (uint32_t i = first; i < end; i++)
        out->jobs[out->n_jobs++] = arena_strdup (arena, site_id (svc, s->job[i], id));
}

/* One that is out of the configuration is seen while jobs are on it. */
static bool node_there (struct svc *svc, struct node_id id, struct node_view *out)
{
    return cluster_node_get (svc->cluster, id, out, NULL) == 0 &&
           (!out->spec.gone || out->job_count > 0);
}

static bool node_step (struct admin_stream *base)
{
    struct node_stream *s = (struct node_stream *)base;
    struct svc *svc = base->svc;
    Nui__Local__V1__NodesChunk chunk = NUI__LOCAL__V1__NODES_CHUNK__INIT;
    Nui__Local__V1__NodeInfo *rows[ROWS_PER_CHUNK];
    struct node_view view;
    chunk.now_us = svc_now (base->svc);
    chunk.nodes = rows;
    for (; s->at < s->count && chunk.n_nodes < ROWS_PER_CHUNK; s->at++) {
        if (!node_there (svc, (struct node_id){s->at}, &view))
            continue;
        Nui__Local__V1__NodeInfo *row = arena_new (svc->call_arena, Nui__Local__V1__NodeInfo);
        node_fill (s, s->at, &view, row);
        rows[chunk.n_nodes++] = row;
    }
    base->blocked = !rpccall_send (base->call, &chunk.base);
    return s->at < s->count;
}

int admin_partition (struct svc *svc, const char *name, uint32_t *out, struct err *err)
{
    *out = 0;
    if (!*name || strcasecmp (name, "ALL") == 0)
        return 0;
    uint32_t known = strtab_find (svc->names->partition, name);
    if (known == STRTAB_NONE)
        return err_set (err, ERR_NOT_FOUND, "site %s has no partition %.63s", svc->site, name);
    *out = known + 1;
    return 0;
}

/* What floats is told as if a node of this name had it. */
static const char global_node[] = "GLOBAL";

static bool global_step (struct admin_stream *base)
{
    struct svc *svc = base->svc;
    Nui__Local__V1__NodesChunk chunk = NUI__LOCAL__V1__NODES_CHUNK__INIT;
    Nui__Local__V1__NodeInfo row = NUI__LOCAL__V1__NODE_INFO__INIT, *rows[] = {&row};
    uint32_t kinds = strtab_count (svc->names->licence);
    bool used = false, left = kinds == 0;
    row.name = (char *)global_node;
    row.gres = arena_array (svc->call_arena, kinds + 1, sizeof *row.gres);
    for (uint32_t k = 0; k < kinds; k++) {
        int32_t total, unused;
        cluster_licence_get (svc->cluster, k, &total, &unused);
        row.gres[row.n_gres++] =
            arena_printf (svc->call_arena, "%s %d:%d", strtab_name (svc->names->licence, k),
                          unused > 0 ? unused : 0, total);
        used = used || unused < total;
        left = left || unused > 0;
    }
    row.state = (char *)(!used ? "Idle" : left ? "Running" : "Busy");
    row.speed_ppm = 1000000;
    chunk.now_us = svc_now (svc);
    chunk.nodes = rows;
    chunk.n_nodes = 1;
    base->blocked = !rpccall_send (base->call, &chunk.base);
    return false;
}

static struct site_node *node_named (struct svc *svc, const char *name, struct err *err)
{
    struct site_node *node;
    struct node_view view;
    HASH_FIND_STR (svc->nodes, name, node);
    if (node && node_there (svc, node->id, &view))
        return node;
    err_set (err, ERR_NOT_FOUND, "site %s has no node %.80s", svc->site, name);
    return NULL;
}

void admin_nodes (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct svc *svc = self;
    const Nui__Local__V1__NodesRequest *r = (const Nui__Local__V1__NodesRequest *)request;
    struct admin_caller caller;
    struct site_node *one = NULL;
    struct err err = {0};
    admin_who (svc, call, &caller);
    int rc = admin_require (&caller, ADMIN_INFO, "seeing the nodes", &err);
    bool global = strcmp (r->node, global_node) == 0;
    if (rc == 0 && *r->node && !global && !(one = node_named (svc, r->node, &err)))
        rc = err.code;
    if (rc != 0) {
        rpccall_fail (call, &err);
        return;
    }
    struct node_stream *s = calloc (1, sizeof *s);
    assert (s);
    s->base.step = global ? global_step : node_step;
    s->base.free_fn = node_stream_free;
    s->at = one ? one->id.v : 0;
    s->count = one ? one->id.v + 1 : svc->node_count;
    jobs_by_node (svc, s);
    admin_stream_start (svc, call, &s->base);
}

/* --- reservations ------------------------------------------------------------------------- */

struct rsv_stream {
    struct admin_stream base;
    struct admin_caller caller;
    bool nodes, details;
    uint32_t only_node; /* UINT32_MAX: any */
    uint32_t partition; /* 0: any */
    uint64_t only;      /* a job's or a reservation's number; 0: any */
    uint64_t *id;       /* jobs, then reservations */
    uint32_t job_count, count, at, hidden;
};

static void rsv_stream_free (struct admin_stream *base)
{
    struct rsv_stream *s = (struct rsv_stream *)base;
    free (s->id);
    free (s);
}

struct reserved_list {
    uint64_t *id;
    uint32_t count, cap;
};

static void reserved_add (void *arg, struct job_id job, time_us start, time_us end,
                          const struct allocation *allocation)
{
    struct reserved_list *list = arg;
    (void)start;
    (void)end;
    (void)allocation;
    if (list->count < list->cap)
        list->id[list->count++] = job.v;
}

static void rsv_gather (struct svc *svc, struct rsv_stream *s)
{
    uint32_t jobs = HASH_COUNT (svc->jobs) + 1, rsvs = cluster_rsv_list (svc->cluster, NULL, 0);
    s->id = calloc (jobs + rsvs + 1, sizeof *s->id);
    assert (s->id);
    static_assert (sizeof (struct job_id) == sizeof *s->id, "ids are numbers");
    struct job_id *id = (struct job_id *)(void *)s->id;
    uint32_t n = cluster_job_list (svc->cluster, JOB_RUNNING, id, jobs);
    n += cluster_job_list (svc->cluster, JOB_STARTING, id + n, jobs - n);
    struct reserved_list list = {s->id, n, jobs};
    explain_reserved (svc->cluster, reserved_add, &list);
    s->job_count = list.count;
    s->count = list.count +
               cluster_rsv_list (svc->cluster, (struct rsv_id *)(void *)(s->id + list.count), rsvs);
}

static bool touches (const struct allocation *a, uint32_t node)
{
    for (uint32_t i = 0; i < a->count; i++)
        if (node == UINT32_MAX || a->item[i].node.v == node)
            return true;
    return node == UINT32_MAX;
}

static bool in_partition (const struct rsv_stream *s, const struct allocation *a)
{
    struct node_view node;
    for (uint32_t i = 0; s->partition && i < a->count; i++)
        if (cluster_node_get (s->base.svc->cluster, a->item[i].node, &node, NULL) == 0 &&
            node.spec.partition == s->partition)
            return true;
    return s->partition == 0;
}

static void placements_fill (struct rsv_stream *s, const struct allocation *a,
                             const struct req *reqs, Nui__Local__V1__Reservation *out)
{
    struct svc *svc = s->base.svc;
    out->nodes = arena_array (svc->call_arena, a->count + 1, sizeof *out->nodes);
    for (uint32_t i = 0; i < a->count; i++) {
        const struct placement *p = &a->item[i];
        bool same = i > 0 && a->item[i - 1].node.v == p->node.v;
        out->node_count += !same;
        out->procs += p->tasks * (uint32_t)reqs[p->req].task.v[RES_PROCS];
        if (!s->nodes || (s->only_node != UINT32_MAX && p->node.v != s->only_node))
            continue;
        Nui__Local__V1__NodeTasks *t = arena_new (svc->call_arena, Nui__Local__V1__NodeTasks);
        nui__local__v1__node_tasks__init (t);
        t->node = svc->node_by_id[p->node.v]->name;
        t->tasks = p->tasks;
        out->nodes[out->n_nodes++] = t;
    }
}

static void rsv_job_fill (struct svc *svc, struct site_job *job, Nui__Local__V1__Reservation *out)
{
    out->job = arena_new (svc->call_arena, Nui__Local__V1__QueueJob);
    nui__local__v1__queue_job__init (out->job);
    admin_queue_row (svc, job, ADMIN_LIMITS_OFF, svc_now (svc), svc->call_arena, out->job);
}

static const char *rsv_job_state (const struct site_job *job)
{
    switch (job->rec.state) {
    case STORE_JOB_RUNNING:
        return "Running";
    case STORE_JOB_STARTING:
        return "Starting";
    case STORE_JOB_RESERVED:
        return "Reserved";
    default:
        return "Idle";
    }
}

/* Fills *out; false: gone, or not asked for, or not the caller's to see. */
static bool rsv_fill (struct rsv_stream *s, uint32_t at, Nui__Local__V1__Reservation *out)
{
    struct svc *svc = s->base.svc;
    bool of_job = at < s->job_count, admin = false;
    struct job_view view;
    struct rsv_view rsv;
    struct node_view first;
    struct allocation a;
    char id[SITE_ID_MAX];
    const struct req *reqs;
    nui__local__v1__reservation__init (out);
    if (of_job) {
        if (cluster_job_get (svc->cluster, (struct job_id){s->id[at]}, &view, NULL) != 0)
            return false;
        bool runs = view.state != JOB_IDLE;
        if (!runs && view.reserved_start == TIME_US_NONE)
            return false;
        a = runs ? view.allocation : view.reserved;
        reqs = view.spec->req;
        out->start_us = runs ? view.start : view.reserved_start;
        out->end_us = runs ? view.limit_end : view.reserved_end;
    } else {
        if (cluster_rsv_get (svc->cluster, (struct rsv_id){s->id[at]}, &rsv, NULL) != 0)
            return false;
        a = rsv.allocation;
        reqs = rsv.spec->req;
        admin = rsv.spec->kind == RSV_ADMIN;
        out->start_us = rsv.spec->start;
        out->end_us = rsv.spec->end == TIME_US_MAX ? 0 : rsv.spec->end;
    }
    if ((s->only && s->only != s->id[at]) || !touches (&a, s->only_node) || !in_partition (s, &a))
        return false;
    struct site_job *job = svc_job (svc, s->id[at]); /* a part's reservation has its job's number */
    if (a.count > 0 && cluster_node_get (svc->cluster, a.item[0].node, &first, NULL) == 0 &&
        first.spec.partition)
        out->partition = (char *)strtab_name (svc->names->partition, first.spec.partition - 1);
    if (admin) {
        placements_fill (s, &a, reqs, out);
        return admin_resv_fill (svc, s->id[at], svc->call_arena, out);
    }
    if (s->caller.level > ADMIN_INFO && !(job && admin_owns (&s->caller, &job->rec))) {
        s->hidden++;
        return false;
    }
    out->name = arena_strdup (svc->call_arena, site_id (svc, s->id[at], id));
    out->type = (char *)(job ? "Job" : "User");
    out->state = (char *)(job ? rsv_job_state (job) : "");
    placements_fill (s, &a, reqs, out);
    if (a.count == 0 && job) /* RESERVATIONBINDING LATE: nodes are chosen at the start */
        out->procs = job->rec.procs;
    if (s->details && job)
        rsv_job_fill (svc, job, out);
    return true;
}

static bool rsv_step (struct admin_stream *base)
{
    struct rsv_stream *s = (struct rsv_stream *)base;
    Nui__Local__V1__ReservationsChunk chunk = NUI__LOCAL__V1__RESERVATIONS_CHUNK__INIT;
    Nui__Local__V1__Reservation *rows[ROWS_PER_CHUNK];
    chunk.now_us = svc_now (base->svc);
    chunk.reservations = rows;
    while (s->at < s->count && chunk.n_reservations < ROWS_PER_CHUNK) {
        Nui__Local__V1__Reservation *row =
            arena_new (base->svc->call_arena, Nui__Local__V1__Reservation);
        if (rsv_fill (s, s->at++, row))
            rows[chunk.n_reservations++] = row;
    }
    chunk.hidden = s->at == s->count ? s->hidden : 0;
    base->blocked = !rpccall_send (base->call, &chunk.base);
    return s->at < s->count;
}

void admin_reservations (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct svc *svc = self;
    const Nui__Local__V1__ReservationsRequest *r =
        (const Nui__Local__V1__ReservationsRequest *)request;
    struct admin_caller caller;
    struct site_node *node = NULL;
    struct site_job *live;
    struct store_job rec = {0};
    struct err err = {0};
    int rc = 0;
    admin_who (svc, call, &caller);
    arena_reset (svc->call_arena);
    uint64_t core = *r->name ? resv_core (svc, r->name) : 0;
    if (*r->name && !core)
        rc = admin_job (svc, &caller, r->name, ADMIN_INFO, &rec, &live, &err);
    uint32_t partition = 0;
    bool nowhere = strcmp (r->node, global_node) == 0; /* no reservation holds what floats */
    if (rc == 0 && *r->node && !nowhere && !(node = node_named (svc, r->node, &err)))
        rc = err.code;
    if (rc == 0)
        rc = admin_partition (svc, r->partition, &partition, &err);
    if (rc != 0) {
        store_job_free (&rec);
        rpccall_fail (call, &err);
        return;
    }
    struct rsv_stream *s = calloc (1, sizeof *s);
    assert (s);
    s->base.step = rsv_step;
    s->base.free_fn = rsv_stream_free;
    s->caller = caller;
    s->nodes = r->nodes;
    s->details = r->details;
    s->only_node = node ? node->id.v : UINT32_MAX;
    s->partition = partition;
    s->only = core ? core : rec.number;
    store_job_free (&rec);
    if (!nowhere)
        rsv_gather (svc, s);
    admin_stream_start (svc, call, &s->base);
}
