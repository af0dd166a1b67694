/* Reports over the history, and the audit log. Both walk a table that may be long: a piece at a
 * time, with the loop free in between. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "local/svc/admin/admin.h"
#include "local/svc/caller.h"
#include "local/svc/job/jobs.h"
#include "local/svc/svc_i.h"
#include "proto/base/text.h"

enum { ROWS_LOOKED_AT = 1000, ROWS_PER_CHUNK = 500, GROUPS_MAX = 200000, AUDIT_DEFAULT = 100 };

/* --- profiler ----------------------------------------------------------------------------- */

enum group_by {
    BY_USER,
    BY_GROUP,
    BY_ACCOUNT,
    BY_CLASS,
    BY_QOS,
    BY_DAY,
    BY_HOUR,
    BY_GRID,
    BY_JOB,
    BY_ALL
};
static const char *const by_name[] = {"user", "group", "account", "class", "qos",
                                      "day",  "hour",  "grid",    "job",   ""};

struct profile_group {
    struct stats_sums sums;
    time_us at;
};

struct profile {
    struct admin_stream base;
    enum group_by by;
    char text[5][STORE_NAME_MAX]; /* user, group, account, class, qos; "" any */
    struct history_filter filter;
    uint64_t after, looked_at;
    time_us first, last;
    Nui__Local__V1__ProfileChunk *jobs; /* by job: being filled */
    bool read;                          /* everything: rows are being told */
    bool failed;
    struct strtab *names;
    struct profile_group *group;
    uint32_t cap, told;
};

static time_us hour_of (time_us t, bool whole_day)
{
    time_t seconds = (time_t)(t / US_PER_S);
    struct tm tm;
    localtime_r (&seconds, &tm);
    tm.tm_sec = tm.tm_min = 0;
    if (whole_day)
        tm.tm_hour = 0;
    tm.tm_isdst = -1;
    return (time_us)mktime (&tm) * US_PER_S;
}

static const char *name_of (const struct profile *p, const struct history_job *j, time_us *at,
                            char out[STORE_NAME_MAX])
{
    const char *const cred[] = {j->user, j->group, j->account, j->class_name, j->qos};
    uint32_t row, column;
    *at = 0;
    switch (p->by) {
    case BY_DAY:
    case BY_HOUR:
        *at = hour_of (j->end, p->by == BY_DAY);
        snprintf (out, STORE_NAME_MAX, "%020lld", (long long)*at); /* in order of time */
        return out;
    case BY_GRID:
        stats_grid_place (j->procs, j->walltime, &row, &column);
        snprintf (out, STORE_NAME_MAX, "%u %u", row, column);
        return out;
    case BY_ALL:
        return "";
    default:
        return *cred[p->by] ? cred[p->by] : "[NONE]";
    }
}

static void on_job (void *arg, const struct history_job *j)
{
    struct profile *p = arg;
    struct stats_sums one;
    char buf[STORE_NAME_MAX];
    time_us at;
    p->looked_at++;
    if (!j->start)
        return;
    const char *name = name_of (p, j, &at, buf);
    if (strtab_count (p->names) >= GROUPS_MAX && strtab_find (p->names, name) == STRTAB_NONE) {
        p->failed = true;
        return;
    }
    uint32_t id = strtab_intern (p->names, name);
    if (id >= p->cap) {
        uint32_t cap = p->cap ? p->cap * 2 : 64;
        struct profile_group *more = realloc (p->group, cap * sizeof *more);
        assert (more);
        memset (more + p->cap, 0, (cap - p->cap) * sizeof *more);
        p->group = more;
        p->cap = cap;
    }
    stats_of_job (j, &one);
    stats_sums_add (&p->group[id].sums, &one);
    p->group[id].at = at;
    if (!p->first || j->end < p->first)
        p->first = j->end;
    if (j->end > p->last)
        p->last = j->end;
}

static void on_ended (void *arg, const struct history_job *j)
{
    struct profile *p = arg;
    struct svc *svc = p->base.svc;
    struct arena *arena = svc->call_arena;
    char id[SITE_ID_MAX];
    Nui__Local__V1__EndedJob *out = arena_new (arena, Nui__Local__V1__EndedJob);
    nui__local__v1__ended_job__init (out);
    out->job_id = arena_strdup (arena, site_id (svc, j->number, id));
    out->grid_job_id = arena_strdup (arena, j->grid_job_id);
    out->name = arena_strdup (arena, j->name);
    out->user = arena_strdup (arena, j->user);
    out->account = arena_strdup (arena, j->account);
    out->class_ = arena_strdup (arena, j->class_name);
    out->qos = arena_strdup (arena, j->qos);
    out->state = arena_strdup (arena, admin_state_name (j->state));
    out->procs = j->procs;
    out->walltime_us = j->walltime;
    out->submit_us = j->submit;
    out->start_us = j->start;
    out->end_us = j->end;
    out->exit_code = j->exit_code;
    out->reason_code = arena_strdup (arena, j->reason_code);
    out->hosts = arena_strdup (arena, j->hosts);
    p->jobs->jobs[p->jobs->n_jobs++] = out;
}

/* A piece of the history as it is; false: it was the last, or it cannot be read (no last piece then). */
static bool jobs_tell (struct profile *p)
{
    struct svc *svc = p->base.svc;
    Nui__Local__V1__ProfileChunk chunk = NUI__LOCAL__V1__PROFILE_CHUNK__INIT;
    struct err err = {0};
    bool more = false;
    chunk.jobs = arena_array (svc->call_arena, ROWS_PER_CHUNK, sizeof *chunk.jobs);
    p->jobs = &chunk;
    if (history_read (svc->store, &p->filter, p->after, ROWS_PER_CHUNK, on_ended, p, &p->after,
                      &more, &err) != 0) {
        log_event (svc->log, LOG_LEVEL_ERROR, "admin", "profile_failed", "error=\"%s\"", err.text);
        return false;
    }
    chunk.last = !more;
    p->base.blocked = !rpccall_send (p->base.call, &chunk.base);
    return more;
}

static bool rows_tell (struct profile *p)
{
    struct arena *arena = p->base.svc->call_arena;
    Nui__Local__V1__ProfileChunk chunk = NUI__LOCAL__V1__PROFILE_CHUNK__INIT;
    uint32_t count = strtab_count (p->names);
    chunk.rows = arena_array (arena, ROWS_PER_CHUNK, sizeof *chunk.rows);
    for (; p->told < count && chunk.n_rows < ROWS_PER_CHUNK; p->told++) {
        Nui__Local__V1__ProfileRow *row = arena_new (arena, Nui__Local__V1__ProfileRow);
        nui__local__v1__profile_row__init (row);
        row->name = arena_strdup (arena, strtab_name (p->names, p->told));
        row->at_us = p->group[p->told].at;
        row->sums = arena_new (arena, Nui__Local__V1__JobSums);
        stats_sums_fill (&p->group[p->told].sums, row->sums);
        chunk.rows[chunk.n_rows++] = row;
    }
    chunk.looked_at = p->looked_at;
    chunk.first_end_us = p->first;
    chunk.last_end_us = p->last;
    chunk.last = p->told == count;
    p->base.blocked = !rpccall_send (p->base.call, &chunk.base);
    return !chunk.last;
}

static bool profile_step (struct admin_stream *base)
{
    struct profile *p = (struct profile *)base;
    struct err err = {0};
    uint64_t last;
    bool more = false;
    if (p->by == BY_JOB)
        return jobs_tell (p);
    if (p->read)
        return rows_tell (p);
    if (history_read (base->svc->store, &p->filter, p->after, ROWS_LOOKED_AT, on_job, p, &last,
                      &more, &err) != 0 ||
        p->failed) {
        /* The stream ends without its last piece, which the client takes for what it is. */
        log_event (base->svc->log, LOG_LEVEL_ERROR, "admin", "profile_failed", "error=\"%s\"",
                   p->failed ? "too many groups" : err.text);
        return false;
    }
    p->after = last;
    p->read = !more;
    return true;
}

static void profile_free (struct admin_stream *base)
{
    struct profile *p = (struct profile *)base;
    strtab_destroy (p->names);
    free (p->group);
    free (p);
}

static int profile_check (const Nui__Local__V1__ProfileRequest *r,
                          const struct admin_caller *caller, enum group_by *by, struct err *err)
{
    int n = 0;
    while (n <= BY_ALL && strcmp (r->by, by_name[n]) != 0)
        n++;
    if (n > BY_ALL)
        return err_set (
            err, ERR_INVALID,
            "by '%.40s': wanted user, group, account, class, qos, day, hour, grid or job", r->by);
    *by = (enum group_by)n;
    if (r->until_us && r->until_us <= r->from_us)
        return err_set (err, ERR_INVALID, "the time frame ends before it begins");
    if (*by == BY_JOB && *caller->login && !*r->user)
        return 0; /* her own */
    if (caller->level > ADMIN_INFO && (!*caller->login || strcmp (r->user, caller->login) != 0))
        return err_set (
            err, ERR_DENIED,
            "the history of others is for administrators (ADMIN3): -u %.60s shows yours",
            *caller->login ? caller->login : "NAME");
    return 0;
}

static void profile_serve (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct svc *svc = self;
    const Nui__Local__V1__ProfileRequest *r = (const Nui__Local__V1__ProfileRequest *)request;
    const char *given[] = {r->user, r->group, r->account, r->class_, r->qos};
    struct admin_caller caller;
    struct err err = {0};
    enum group_by by = BY_ALL;
    admin_who (svc, call, &caller);
    if (profile_check (r, &caller, &by, &err) != 0) {
        jobs_refuse (svc, call, &err);
        return;
    }
    if (by == BY_JOB && caller.level > ADMIN_INFO)
        given[0] = caller.login;
    struct profile *p = calloc (1, sizeof *p);
    assert (p);
    p->base.step = profile_step;
    p->base.free_fn = profile_free;
    p->by = by;
    p->names = strtab_create ();
    p->filter.from = r->from_us;
    p->filter.until = r->until_us;
    const char **field[] = {&p->filter.user, &p->filter.group, &p->filter.account,
                            &p->filter.class_name, &p->filter.qos};
    for (size_t i = 0; i < 5; i++)
        if (*given[i]) {
            snprintf (p->text[i], sizeof p->text[i], "%s", given[i]);
            *field[i] = p->text[i];
        }
    admin_stream_start (svc, call, &p->base);
}

/* --- the audit log ------------------------------------------------------------------------ */

struct audit {
    struct admin_stream base;
    char who[PRINCIPAL_URI_MAX], text[256];
    time_us from, until;
    uint64_t before;
    uint32_t left;
    Nui__Local__V1__AuditChunk *chunk; /* being filled */
};

static void on_audit (void *arg, const struct audit_row *row)
{
    struct audit *a = arg;
    struct arena *arena = a->base.svc->call_arena;
    Nui__Local__V1__AuditRow *out = arena_new (arena, Nui__Local__V1__AuditRow);
    nui__local__v1__audit_row__init (out);
    out->sequence = row->sequence;
    out->at_us = row->at;
    out->who = arena_strdup (arena, row->who);
    out->what = arena_strdup (arena, row->what);
    a->chunk->rows[a->chunk->n_rows++] = out;
    a->before = row->sequence;
}

static bool audit_step (struct admin_stream *base)
{
    struct audit *a = (struct audit *)base;
    Nui__Local__V1__AuditChunk chunk = NUI__LOCAL__V1__AUDIT_CHUNK__INIT;
    struct err err = {0};
    uint32_t want = a->left < ROWS_PER_CHUNK ? a->left : ROWS_PER_CHUNK;
    chunk.rows = arena_array (base->svc->call_arena, ROWS_PER_CHUNK, sizeof *chunk.rows);
    a->chunk = &chunk;
    if (audit_read (base->svc->store, a->before, a->from, a->until, a->who, a->text, want, on_audit,
                    a, &err) != 0)
        log_event (base->svc->log, LOG_LEVEL_ERROR, "admin", "audit_not_read", "error=\"%s\"",
                   err.text);
    a->left -= (uint32_t)chunk.n_rows;
    base->blocked = !rpccall_send (base->call, &chunk.base);
    return chunk.n_rows == want && a->left > 0;
}

static void audit_free (struct admin_stream *base)
{
    free (base);
}

static void profile_audit (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct svc *svc = self;
    const Nui__Local__V1__AuditRequest *r = (const Nui__Local__V1__AuditRequest *)request;
    struct admin_caller caller;
    struct err err = {0};
    admin_who (svc, call, &caller);
    if (strcmp (r->who, caller.name) != 0 &&
        admin_require (&caller, ADMIN_INFO, "the audit log of others", &err) != 0) {
        jobs_refuse (svc, call, &err);
        return;
    }
    struct audit *a = calloc (1, sizeof *a);
    assert (a);
    a->base.step = audit_step;
    a->base.free_fn = audit_free;
    snprintf (a->who, sizeof a->who, "%s", r->who);
    text_printf (a->text, sizeof a->text, "%s", r->text);
    a->from = r->from_us;
    a->until = r->until_us;
    a->left = r->limit ? r->limit : AUDIT_DEFAULT;
    admin_stream_start (svc, call, &a->base);
}

/* --- the service -------------------------------------------------------------------------- */

#define PEOPLE (RPC_ALLOW (PRINCIPAL_USER) | RPC_ALLOW (PRINCIPAL_OPERATOR))

static const struct rpc_method methods[] = {
    {"Summary", PEOPLE, false, 0, admin_stats_summary},
    {"Sums", PEOPLE, false, 0, admin_stats_sums},
    {"NodeSums", PEOPLE, true, 0, admin_stats_nodes},
    {"Grid", PEOPLE, false, 0, admin_stats_grid},
    {"Reset", PEOPLE, false, 0, admin_stats_reset},
    {"Profile", PEOPLE, true, 0, profile_serve},
    {"Audit", PEOPLE, true, 0, profile_audit},
    {"Scheduler", PEOPLE, false, 0, admin_stats_scheduler},
    {"Estimates", PEOPLE, false, 0, admin_stats_estimates},
    {"Runs", PEOPLE, false, 0, admin_stats_runs},
    {NULL, 0, false, 0, NULL},
};

int admin_stats_serve (struct svc *svc, struct err *err)
{
    return rpcserver_add_service (daemon_server (svc->daemon), &nui__local__v1__stats__descriptor,
                                  methods, svc, err);
}
