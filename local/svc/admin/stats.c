/* nui.local.v1.Stats: sums and time, as they are kept (local/svc/memory). The history is
 * profile.c. */
#include "local/svc/admin/admin.h"
#include "local/svc/caller.h"
#include "local/svc/forecast/forecast.h"
#include "local/svc/job.h"
#include "local/svc/job/jobs.h"
#include "local/svc/memory/memory.h"
#include "local/svc/nodes.h"
#include "local/svc/svc_i.h"
#include "proto/base/clock.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void stats_sums_fill (const struct stats_sums *s, Nui__Local__V1__JobSums *out)
{
    nui__local__v1__job_sums__init (out);
    out->jobs = (uint64_t)s->jobs;
    out->successful = (uint64_t)s->successful;
    out->ps_asked_us = s->ps_asked;
    out->ps_run_us = s->ps_run;
    out->ps_used_us = s->ps_used;
    out->queue_us = s->queue_us;
    out->queue_max_us = s->queue_max_us;
    out->procs = (uint64_t)s->procs;
    out->xfactor_ppm = s->xf_ppm;
    out->xfactor_max_ppm = s->xf_max_ppm;
    out->xfactor_procs_ppm = s->xf_procs_ppm;
    out->xfactor_ps_milli = s->xf_ps_milli;
    out->bypass = (uint64_t)s->bypass;
    out->bypass_max = (uint64_t)s->bypass_max;
    out->accuracy_ppm = s->accuracy_ppm;
    out->backfilled = (uint64_t)s->backfilled;
    out->ps_backfilled_us = s->ps_backfilled;
    out->qos_met = (uint64_t)s->qos_met;
    out->preempted = (uint64_t)s->preempted;
    out->ps_lost_us = s->ps_lost;
}

static void on_total (void *arg, const char *name, const struct stats_sums *sums)
{
    (void)name;
    *(struct stats_sums *)arg = *sums;
}

static Nui__Local__V1__JobSums *total_read (struct svc *svc, int *rc, struct err *err)
{
    struct stats_sums total = {0};
    Nui__Local__V1__JobSums *out = arena_new (svc->call_arena, Nui__Local__V1__JobSums);
    if (*rc == 0)
        *rc = stats_read (svc->store, STATS_TOTAL, on_total, &total, err);
    stats_sums_fill (&total, out);
    return out;
}

/* The caller, with the level that `what` needs, and a fresh arena; false: it has been refused. */
static bool allowed (struct svc *svc, struct rpccall *call, enum admin_level level,
                     const char *what, struct admin_caller *caller)
{
    struct err err = {0};
    admin_who (svc, call, caller);
    arena_reset (svc->call_arena);
    if (admin_require (caller, level, what, &err) == 0)
        return true;
    jobs_refuse (svc, call, &err);
    return false;
}

/* --- the whole system --------------------------------------------------------------------- */

static void jobs_fill (struct svc *svc, time_us now, Nui__Local__V1__SummaryReply *out)
{
    struct site_job *job, *next;
    HASH_ITER (hh, svc->jobs, job, next) {
        if (job->rec.state == STORE_JOB_RUNNING || job->rec.state == STORE_JOB_STARTING) {
            out->active_jobs++;
        } else {
            out->idle_jobs++;
            out->eligible_jobs += !admin_job_blocked (svc, job, now);
        }
    }
}

void admin_stats_summary (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct svc *svc = self;
    const struct stats *s = svc->stats;
    Nui__Local__V1__SummaryReply reply = NUI__LOCAL__V1__SUMMARY_REPLY__INIT;
    struct admin_caller caller;
    struct err err = {0};
    time_us now = svc_now (svc);
    int rc = 0;
    (void)request;
    if (!allowed (svc, call, ADMIN_INFO, "the system's statistics", &caller))
        return;
    stats_advance (svc, now);
    reply.completed = total_read (svc, &rc, &err);
    if (rc != 0) {
        jobs_refuse (svc, call, &err);
        return;
    }
    reply.now_us = now;
    reply.since_us = s->since;
    reply.started_us = s->started;
    reply.passes = svc->schedule.iteration;
    jobs_fill (svc, now, &reply);
    reply.available_ps_us = s->available_ps;
    reply.dedicated_ps_us = s->dedicated_ps;
    for (uint32_t n = 0; n < svc->node_count; n++) {
        struct node_view view;
        if (!svc->node_by_id[n]->configured ||
            cluster_node_get (svc->cluster, (struct node_id){n}, &view, NULL) != 0)
            continue;
        reply.procs_active += (uint32_t)view.dedicated.v[RES_PROCS];
        reply.nodes_active += view.job_count > 0;
        if (view.state == NODE_UP) {
            reply.procs += (uint32_t)view.spec.configured.v[RES_PROCS];
            reply.nodes++;
        }
    }
    reply.least_ppm = s->least_ppm;
    reply.least_pass = s->least_pass;
    reply.backlog_ps = stats_backlog_ps (svc);
    reply.backlog_average_ps =
        s->backlog_us > US_PER_S ? s->backlog_ps / (s->backlog_us / US_PER_S) : 0;
    reply.site = svc->site;
    reply.version = (char *)NUI_VERSION;
    rpccall_reply (call, &reply.base);
}

/* --- by credential ------------------------------------------------------------------------ */

struct sums_row {
    const char *name;
    struct stats_sums completed;
    uint64_t jobs, procs;
    int64_t ps;
};

struct sums_rows {
    struct svc *svc;
    enum cred_kind kind;
    struct strtab *names; /* of the rows */
    struct sums_row *row;
    uint32_t cap;
};

static struct sums_row *row_of (struct sums_rows *r, const char *name)
{
    uint32_t id = strtab_intern (r->names, name);
    if (id >= r->cap) {
        uint32_t cap = r->cap ? r->cap * 2 : 64;
        struct sums_row *more = arena_array (r->svc->call_arena, cap, sizeof *more);
        if (r->cap)
            memcpy (more, r->row, r->cap * sizeof *more);
        r->row = more;
        r->cap = cap;
    }
    r->row[id].name = strtab_name (r->names, id);
    return &r->row[id];
}

static void on_sums (void *arg, const char *name, const struct stats_sums *sums)
{
    row_of (arg, name)->completed = *sums;
}

static void active_add (struct sums_rows *r, time_us now)
{
    struct site_job *job, *next;
    HASH_ITER (hh, r->svc->jobs, job, next) {
        const struct store_job *rec = &job->rec;
        if (rec->state != STORE_JOB_RUNNING && rec->state != STORE_JOB_STARTING)
            continue;
        const char *name = r->kind == CRED_USER      ? rec->local_account
                           : r->kind == CRED_ACCOUNT ? rec->pay_account
                           : job->cred[r->kind] == CRED_NONE
                               ? ""
                               : cred_name (r->svc->names, r->kind, job->cred[r->kind]);
        if (!*name)
            continue;
        struct sums_row *row = row_of (r, name);
        time_us end = (rec->start ? rec->start : now) + rec->walltime;
        row->jobs++;
        row->procs += rec->procs;
        row->ps += end > now ? (end - now) * (int64_t)rec->procs : 0;
    }
}

static int by_dedicated (const void *a, const void *b)
{
    const struct sums_row *x = a, *y = b;
    if (x->completed.ps_run != y->completed.ps_run)
        return x->completed.ps_run > y->completed.ps_run ? -1 : 1;
    return strcmp (x->name, y->name);
}

static void target_fill (struct svc *svc, enum cred_kind kind, Nui__Local__V1__SumsRow *out)
{
    uint32_t id = strtab_find (svc->names->tab[kind], out->name);
    const struct policy_cred *cred =
        policy_cred (svc->settings->policy, kind, id == STRTAB_NONE ? 0 : id);
    out->target = cred->fs_target;
    out->target_type = (char *)admin_target_type (cred->fs_target_type);
}

static void rows_fill (struct sums_rows *r, const struct admin_caller *caller, const char *only,
                       Nui__Local__V1__SumsReply *reply)
{
    uint32_t count = strtab_count (r->names);
    struct arena *arena = r->svc->call_arena;
    if (count > 0)
        qsort (r->row, count, sizeof *r->row, by_dedicated);
    reply->rows = arena_array (arena, count + 1, sizeof *reply->rows);
    for (uint32_t i = 0; i < count; i++) {
        const struct sums_row *row = &r->row[i];
        if (*only && strcmp (only, row->name) != 0)
            continue;
        if (caller->level > ADMIN_INFO && strcmp (caller->login, row->name) != 0) {
            reply->hidden++;
            continue;
        }
        Nui__Local__V1__SumsRow *out = arena_new (arena, Nui__Local__V1__SumsRow);
        nui__local__v1__sums_row__init (out);
        out->name = arena_strdup (arena, row->name);
        out->completed = arena_new (arena, Nui__Local__V1__JobSums);
        stats_sums_fill (&row->completed, out->completed);
        out->active_jobs = row->jobs;
        out->active_procs = row->procs;
        out->active_ps_us = row->ps;
        target_fill (r->svc, r->kind, out);
        reply->rows[reply->n_rows++] = out;
    }
}

void admin_stats_sums (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct svc *svc = self;
    const Nui__Local__V1__SumsRequest *r = (const Nui__Local__V1__SumsRequest *)request;
    Nui__Local__V1__SumsReply reply = NUI__LOCAL__V1__SUMS_REPLY__INIT;
    struct admin_caller caller;
    struct err err = {0};
    int kind = 0, rc = 0;
    admin_who (svc, call, &caller);
    arena_reset (svc->call_arena);
    while (kind < CRED_KINDS && strcmp (cred_kind_name ((enum cred_kind)kind), r->kind) != 0)
        kind++;
    if (kind == CRED_KINDS)
        rc = err_set (&err, ERR_INVALID, "'%.40s' is no kind of credential", r->kind);
    else if (kind != CRED_USER)
        rc = admin_require (&caller, ADMIN_INFO, "statistics other than one's own", &err);
    else if (*r->name && strcmp (r->name, caller.login) != 0)
        rc = admin_require (&caller, ADMIN_INFO, "other people's statistics", &err);
    if (rc == 0) {
        struct sums_rows rows = {
            .svc = svc, .kind = (enum cred_kind)kind, .names = strtab_create ()};
        static_assert ((int)STATS_USER == (int)CRED_USER && (int)STATS_QOS == (int)CRED_QOS,
                       "kinds are numbered alike");
        rc = stats_read (svc->store, (enum stats_kind)kind, on_sums, &rows, &err);
        active_add (&rows, svc_now (svc));
        reply.total = total_read (svc, &rc, &err);
        rows_fill (&rows, &caller, r->name, &reply);
        strtab_destroy (rows.names);
        if (rc == 0 && *r->name && reply.n_rows == 0)
            rc = err_set (&err, ERR_NOT_FOUND, "site %s has no statistics of %s %.60s", svc->site,
                          r->kind, r->name);
    }
    reply.since_us = svc->stats->since;
    if (rc != 0)
        jobs_refuse (svc, call, &err);
    else
        rpccall_reply (call, &reply.base);
}

/* --- nodes -------------------------------------------------------------------------------- */

enum { NODES_PER_CHUNK = 1000 };

struct nodes_stream {
    struct admin_stream base;
    uint32_t at;
};

static Nui__Local__V1__NodeSumsRow *node_row (struct svc *svc, uint32_t n)
{
    const struct stats *s = svc->stats;
    struct node_view view;
    if (cluster_node_get (svc->cluster, (struct node_id){n}, &view, NULL) != 0)
        return NULL;
    Nui__Local__V1__NodeSumsRow *row = arena_new (svc->call_arena, Nui__Local__V1__NodeSumsRow);
    nui__local__v1__node_sums_row__init (row);
    row->name = svc->node_by_id[n]->name;
    row->state = (char *)admin_node_state (&view);
    row->memory_mb = view.spec.configured.v[RES_MEM_MB];
    row->procs = (uint32_t)view.spec.configured.v[RES_PROCS];
    row->dedicated_procs = (uint32_t)view.dedicated.v[RES_PROCS];
    if (n < s->node_count) {
        row->total_us = s->node[n].total_us;
        row->up_us = s->node[n].up_us;
        row->busy_us = s->node[n].busy_us;
    }
    return row;
}

static bool nodes_step (struct admin_stream *base)
{
    struct nodes_stream *s = (struct nodes_stream *)base;
    struct svc *svc = base->svc;
    Nui__Local__V1__NodeSumsChunk chunk = NUI__LOCAL__V1__NODE_SUMS_CHUNK__INIT;
    chunk.since_us = svc->stats->since;
    chunk.now_us = svc_now (svc);
    chunk.nodes = arena_array (svc->call_arena, NODES_PER_CHUNK, sizeof *chunk.nodes);
    for (; s->at < svc->node_count && chunk.n_nodes < NODES_PER_CHUNK; s->at++) {
        Nui__Local__V1__NodeSumsRow *row =
            svc->node_by_id[s->at]->configured ? node_row (svc, s->at) : NULL;
        if (row)
            chunk.nodes[chunk.n_nodes++] = row;
    }
    base->blocked = !rpccall_send (base->call, &chunk.base);
    return s->at < svc->node_count;
}

static void nodes_free (struct admin_stream *base)
{
    free (base);
}

void admin_stats_nodes (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct svc *svc = self;
    struct admin_caller caller;
    (void)request;
    if (!allowed (svc, call, ADMIN_INFO, "the nodes' statistics", &caller))
        return;
    stats_advance (svc, svc_now (svc));
    struct nodes_stream *s = calloc (1, sizeof *s);
    assert (s);
    s->base.step = nodes_step;
    s->base.free_fn = nodes_free;
    admin_stream_start (svc, call, &s->base);
}

/* --- size by length ----------------------------------------------------------------------- */

struct grid_cells {
    struct arena *arena;
    Nui__Local__V1__GridReply *reply;
};

static void on_cell (void *arg, const char *name, const struct stats_sums *sums)
{
    struct grid_cells *g = arg;
    unsigned row, column;
    if (sscanf (name, "%u %u", &row, &column) != 2 || row >= STATS_GRID_MAX ||
        column >= STATS_GRID_MAX || g->reply->n_cells == STATS_GRID_MAX * STATS_GRID_MAX)
        return;
    Nui__Local__V1__GridCell *cell = arena_new (g->arena, Nui__Local__V1__GridCell);
    nui__local__v1__grid_cell__init (cell);
    cell->row = row;
    cell->column = column;
    cell->sums = arena_new (g->arena, Nui__Local__V1__JobSums);
    stats_sums_fill (sums, cell->sums);
    g->reply->cells[g->reply->n_cells++] = cell;
}

void admin_stats_grid (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct svc *svc = self;
    Nui__Local__V1__GridReply reply = NUI__LOCAL__V1__GRID_REPLY__INIT;
    struct grid_cells cells = {svc->call_arena, &reply};
    struct admin_caller caller;
    struct err err = {0};
    (void)request;
    if (!allowed (svc, call, ADMIN_INFO, "the system's statistics", &caller))
        return;
    reply.since_us = svc->stats->since;
    reply.cells =
        arena_array (svc->call_arena, STATS_GRID_MAX * STATS_GRID_MAX, sizeof *reply.cells);
    if (stats_read (svc->store, STATS_GRID, on_cell, &cells, &err) != 0)
        jobs_refuse (svc, call, &err);
    else
        rpccall_reply (call, &reply.base);
}

/* --- resetstats --------------------------------------------------------------------------- */

void admin_stats_reset (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct svc *svc = self;
    Nui__Local__V1__ResetReply reply = NUI__LOCAL__V1__RESET_REPLY__INIT;
    struct admin_caller caller;
    struct err err = {0};
    (void)request;
    if (!allowed (svc, call, ADMIN_FULL, "resetting the statistics", &caller))
        return;
    if (stats_begin_anew (svc, caller.name, "resetstats", &err) != 0) {
        jobs_refuse (svc, call, &err);
        return;
    }
    log_event (svc->log, LOG_LEVEL_INFO, "audit", "change", "who=%s level=%d what=resetstats",
               caller.name, (int)caller.level);
    reply.at_us = svc->stats->since;
    rpccall_reply (call, &reply.base);
}

/* --- the scheduler itself ----------------------------------------------------------------- */

enum { SILENT_S = 60 }; /* a message that waits longer: its addressee does not answer */

static Nui__Local__V1__Peer *peer (struct svc *svc, Nui__Local__V1__SchedulerReply *reply,
                                   const char *kind, const char *name, const char *detail)
{
    Nui__Local__V1__Peer *p = arena_new (svc->call_arena, Nui__Local__V1__Peer);
    nui__local__v1__peer__init (p);
    p->kind = (char *)kind;
    p->name = (char *)name;
    p->detail = (char *)detail;
    p->state = (char *)"Active";
    reply->peers[reply->n_peers++] = p;
    return p;
}

static int waiting_fill (struct svc *svc, enum store_outbox box, time_us now,
                         Nui__Local__V1__Peer *p, struct err *err)
{
    uint64_t count = 0;
    time_us oldest = 0;
    int rc = local_store_outbox_waiting (svc->store, box, &count, &oldest, err);
    p->waiting = (int64_t)count;
    p->oldest_us = oldest;
    if (oldest && now - oldest > SILENT_S * US_PER_S)
        p->state = (char *)"Down";
    return rc;
}

void admin_stats_scheduler (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct svc *svc = self;
    Nui__Local__V1__SchedulerReply reply = NUI__LOCAL__V1__SCHEDULER_REPLY__INIT;
    struct admin_caller caller;
    struct err err = {0};
    time_us now = svc_now (svc);
    (void)request;
    if (!allowed (svc, call, ADMIN_INFO, "diagnosis", &caller))
        return;
    reply.peers = arena_array (svc->call_arena, SETTINGS_METAS_MAX + 2, sizeof *reply.peers);
    peer (svc, &reply, "RM", svc->rm.ops->type, "");
    int rc = 0;
    if (svc->bank) {
        Nui__Local__V1__Peer *bank = peer (svc, &reply, "BANK", "bank", svc->settings->bank);
        bank->clock_ahead_us = bank_clock_ahead (svc->bank_clock);
        rc = waiting_fill (svc, STORE_OUTBOX_BANK, now, bank, &err);
    }
    for (uint32_t i = 0; rc == 0 && svc->meta && i < svc->settings->meta_count; i++)
        rc = waiting_fill (svc, STORE_OUTBOX_META, now,
                           peer (svc, &reply, "META", "meta", svc->settings->metas[i]), &err);
    if (rc != 0) {
        jobs_refuse (svc, call, &err);
        return;
    }
    reply.now_us = now;
    reply.started_us = svc->stats->started;
    reply.passes = svc->schedule.iteration;
    reply.last_pass_us = svc->pass_at;
    reply.mode = (char *)server_mode_name (svc->settings->mode.mode);
    reply.jobs_live = HASH_COUNT (svc->jobs);
    char dir[4096];
    statdir_path (svc, dir, sizeof dir);
    reply.statdir = arena_strdup (svc->call_arena, dir);
    reply.trace = statdir_written (svc);
    rpccall_reply (call, &reply.base);
}

/* --- how estimates held ------------------------------------------------------------------------ */

void admin_stats_estimates (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct svc *svc = self;
    Nui__Local__V1__EstimatesReply reply = NUI__LOCAL__V1__ESTIMATES_REPLY__INIT;
    struct forecast_cost cost;
    (void)request;
    arena_reset (svc->call_arena);
    reply.now_us = svc_now (svc);
    reply.records = forecast_records (svc, svc->call_arena, &reply.n_records);
    forecast_cost (svc, &cost);
    reply.surveys = cost.surveys;
    reply.survey_us = cost.survey;
    reply.slice_us = cost.slice;
    reply.surveyed_us = cost.surveyed == TIME_US_NONE ? 0 : cost.surveyed;
    reply.history = cost.history;
    rpccall_reply (call, &reply.base);
}
