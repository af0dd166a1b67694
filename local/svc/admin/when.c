/* When something could start: backfill windows, and the start of one job or shape. */
#include <string.h>

#include "local/core/explain.h"
#include "local/svc/admin/admin.h"
#include "local/svc/caller.h"
#include "local/svc/forecast/forecast.h"
#include "local/svc/job.h"
#include "local/svc/job/jobs.h"
#include "local/svc/svc_i.h"

/* --- windows ------------------------------------------------------------------------------ */

/* A name nobody has used has no limits of its own, but may have DEFAULT's. */
static int cred_of (struct svc *svc, enum cred_kind kind, const char *name, uint32_t *out,
                    struct err *err)
{
    *out = CRED_NONE;
    if (!*name)
        return 0;
    int rc = name_check (cred_kind_name (kind), name, err);
    if (rc != 0)
        return rc;
    *out = strtab_find (svc->names->tab[kind], name);
    if (*out == STRTAB_NONE)
        return err_set (err, ERR_NOT_FOUND, "site %s knows no %s %s", svc->site,
                        cred_kind_name (kind), name);
    return 0;
}

static int creds_of (struct svc *svc, const struct admin_caller *caller,
                     const Nui__Local__V1__WindowsRequest *r, uint32_t cred[CRED_KINDS],
                     struct err *err)
{
    const char *name[CRED_KINDS] = {r->user, r->group, r->account, r->class_, r->qos};
    bool mine = !*r->user && !*r->group && !*r->account && !*r->class_ && !*r->qos;
    int rc = 0;
    for (int k = 0; rc == 0 && k < CRED_KINDS; k++)
        rc = cred_of (svc, (enum cred_kind)k, name[k], &cred[k], err);
    if (mine && !r->everybody &&
        *caller->login) { /* one who never had a job here has no number yet */
        uint32_t known = strtab_find (svc->names->tab[CRED_USER], caller->login);
        cred[CRED_USER] = known == STRTAB_NONE ? CRED_DEFAULT : known;
    }
    return rc;
}

static const char *const comparisons[] = {">=", ">", "==", "<=", "<"};

static int memory_compare (const char *sign)
{
    for (int i = 0; i < 5; i++)
        if (strcmp (*sign ? sign : ">=", comparisons[i]) == 0)
            return i;
    return -1;
}

static bool memory_fits (const Nui__Local__V1__WindowsRequest *r, int64_t have_mb)
{
    if (r->memory_mb <= 0)
        return true;
    switch (memory_compare (r->memory_is)) {
    case 0:
        return have_mb >= r->memory_mb;
    case 1:
        return have_mb > r->memory_mb;
    case 2:
        return have_mb == r->memory_mb;
    case 3:
        return have_mb <= r->memory_mb;
    default:
        return have_mb < r->memory_mb;
    }
}

/* The nodes that a question is about; NULL: all. ERR_NOT_FOUND for a name that none has. */
static int nodes_of (struct svc *svc, const Nui__Local__V1__WindowsRequest *r,
                     struct allocation **out, struct err *err)
{
    struct features wanted = {{0}};
    uint32_t partition = 0;
    struct node_view view;
    *out = NULL;
    if (memory_compare (r->memory_is) < 0)
        return err_set (err, ERR_INVALID, "memory '%.8s': wanted >=, >, ==, <= or <", r->memory_is);
    if (admin_partition (svc, r->partition, &partition, err) != 0)
        return err->code;
    if (!partition && r->n_features == 0 && r->memory_mb <= 0)
        return 0;
    for (size_t i = 0; i < r->n_features; i++) {
        uint32_t f = strtab_find (svc->features, r->features[i]);
        if (f >= FEATURES_MAX)
            return err_set (err, ERR_NOT_FOUND, "no node of site %s has the feature %.63s",
                            svc->site, r->features[i]);
        wanted.word[f / 64] |= UINT64_C (1) << (f % 64);
    }
    struct allocation *a = *out = arena_new (svc->call_arena, struct allocation);
    a->item = arena_array (svc->call_arena, svc->node_count + 1, sizeof *a->item);
    for (uint32_t n = 0; n < svc->node_count; n++) {
        bool fits = cluster_node_get (svc->cluster, (struct node_id){n}, &view, NULL) == 0 &&
                    memory_fits (r, view.spec.configured.v[RES_MEM_MB]) &&
                    (!partition || view.spec.partition == partition);
        for (uint32_t w = 0; fits && w < FEATURES_MAX / 64; w++)
            fits = (wanted.word[w] & ~view.spec.features.word[w]) == 0;
        if (fits)
            a->item[a->count++] = (struct placement){.node = {n}, .tasks = 1};
    }
    return 0;
}

/* For these people; of jobs as short and small as can be, where reservations ask for that. */
static int windows_fill (struct svc *svc, const uint32_t cred[CRED_KINDS],
                         const Nui__Local__V1__WindowsRequest *r, time_us now,
                         Nui__Local__V1__WindowsReply *reply, struct err *err)
{
    duration_us least = r->duration_us;
    struct who who = {.walltime = least > 0 ? least : 1, .procs = 1};
    struct allocation *only;
    struct window *list;
    uint32_t count;
    memcpy (who.cred, cred, sizeof who.cred);
    int rc = nodes_of (svc, r, &only, err);
    if (rc == 0)
        rc = query_windows_on (svc->cluster, &who, only, true, now, svc->call_arena, &list, &count,
                               err);
    if (rc != 0)
        return rc;
    reply->windows = arena_array (svc->call_arena, count + 1, sizeof *reply->windows);
    for (uint32_t i = 0; i < count; i++) {
        if (list[i].length < least || list[i].nodes < r->nodes || list[i].procs < r->procs)
            continue;
        Nui__Local__V1__Window *w = arena_new (svc->call_arena, Nui__Local__V1__Window);
        nui__local__v1__window__init (w);
        w->procs = list[i].procs;
        w->nodes = list[i].nodes;
        w->length_us = list[i].length == TIME_US_MAX ? 0 : list[i].length;
        reply->windows[reply->n_windows++] = w;
    }
    return 0;
}

void admin_windows (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct svc *svc = self;
    const Nui__Local__V1__WindowsRequest *r = (const Nui__Local__V1__WindowsRequest *)request;
    Nui__Local__V1__WindowsReply reply = NUI__LOCAL__V1__WINDOWS_REPLY__INIT;
    struct admin_caller caller;
    struct explained_limit hit;
    uint32_t cred[CRED_KINDS];
    struct err err = {0};
    admin_who (svc, call, &caller);
    arena_reset (svc->call_arena);
    reply.now_us = svc_now (svc);
    int rc = creds_of (svc, &caller, r, cred, &err);
    if (rc == 0) {
        reply.user = *r->user ? r->user : r->everybody ? (char *)"" : caller.login;
        reply.group = *r->group ? r->group : (char *)"";
        reply.partition = r->partition;
        if (!r->everybody && explain_cred_limit (svc->cluster, cred, reply.now_us, &hit))
            reply.limit = admin_limit (svc, "", &hit, svc->call_arena);
        else
            rc = windows_fill (svc, cred, r, reply.now_us, &reply, &err);
    }
    rpccall_answer (call, rc, &reply.base, &err);
}

/* --- one start ---------------------------------------------------------------------------- */

static int earliest (struct svc *svc, struct query *query, Nui__Local__V1__StartTimeReply *reply,
                     struct err *err)
{
    struct slot slot;
    char text[512];
    int rc = query_earliest (svc->cluster, query, reply->now_us, svc->call_arena, &slot, err);
    if (rc != 0)
        return rc;
    if (slot.start != TIME_US_NONE)
        reply->start_us = slot.start;
    if (slot.reason.code != REASON_NONE)
        reply->reason = arena_strdup (svc->call_arena,
                                      reason_text (&slot.reason, svc->names, text, sizeof text));
    return 0;
}

static int start_of_job (struct svc *svc, const struct site_job *job,
                         Nui__Local__V1__StartTimeReply *reply, struct err *err)
{
    struct job_view view;
    time_us now = reply->now_us;
    struct who who;
    struct query query = svc_query_of (svc, job, now, TIME_US_MAX, true, &who);
    if (job->rec.start || job->part) {
        reply->start_us = job->rec.start       ? job->rec.start
                          : job->rec.launch_at ? job->rec.launch_at
                                               : job->part->rec.slot_start;
        return 0;
    }
    int rc = cluster_job_get (svc->cluster, (struct job_id){job->rec.number}, &view, err);
    if (rc != 0)
        return rc;
    if (view.state != JOB_IDLE || view.reserved_start != TIME_US_NONE) {
        reply->start_us = view.state != JOB_IDLE ? view.start : view.reserved_start;
        return 0;
    }
    if (jobs_never (job, &view)) {
        char text[512];
        bool put_off = view.reason.code == REASON_DEFERRED || view.reason.code == REASON_HOLD;
        reply->reason = arena_strdup (
            svc->call_arena, put_off && job->rec.reason_text
                                 ? job->rec.reason_text
                                 : reason_text (&view.reason, svc->names, text, sizeof text));
        return 0;
    }
    query.from = jobs_startable (svc, job, now);
    return earliest (svc, &query, reply, err);
}

static int start_of_shape (struct svc *svc, Nui__Local__V1__StartTimeReply *reply, struct err *err)
{
    struct req req = {.tasks = reply->procs};
    struct query query = {.req_count = 1,
                          .req = &req,
                          .duration = reply->walltime_us,
                          .from = reply->now_us,
                          .until = TIME_US_MAX,
                          .queue = true};
    if (reply->procs < 1 || reply->procs > TASKS_MAX || reply->walltime_us <= 0)
        return err_set (err, ERR_INVALID, "1 to %d processors for a time above zero", TASKS_MAX);
    req.task.v[RES_PROCS] = 1;
    return earliest (svc, &query, reply, err);
}

/* What each method says; one that has nothing to say of it says why. */
static int forecasts_fill (struct svc *svc, const Nui__Local__V1__StartTimeRequest *r,
                           const struct site_job *job, const uint32_t cred[CRED_KINDS],
                           Nui__Local__V1__StartTimeReply *reply, struct err *err)
{
    struct req req = {.tasks = reply->procs};
    req.task.v[RES_PROCS] = 1;
    if (r->n_methods > ESTIMATE_METHODS) /* each is a look into the schedule */
        return err_set (err, ERR_LIMIT, "%zu ways to estimate, there are %d", r->n_methods,
                        ESTIMATE_METHODS);
    reply->forecasts = arena_array (svc->call_arena, r->n_methods + 1, sizeof *reply->forecasts);
    for (size_t i = 0; i < r->n_methods; i++) {
        Nui__Common__V1__Forecast *said = NULL;
        struct err why;
        int m = 0, rc;
        while (m < ESTIMATE_METHODS &&
               strcmp (r->methods[i], estimate_method_name ((enum estimate_method)m)) != 0)
            m++;
        if (m == ESTIMATE_METHODS)
            return err_set (err, ERR_INVALID, "'%.40s' is no way to estimate", r->methods[i]);
        rc =
            job ? forecast_ask_job (svc, job, (enum estimate_method)m, svc->call_arena, &said, &why)
                : forecast_ask_shape (svc, cred, &req, 1, reply->walltime_us,
                                      (enum estimate_method)m, svc->call_arena, &said, &why);
        if (rc == 0)
            reply->forecasts[reply->n_forecasts++] = said;
        else if (rc == ERR_NOT_FOUND)
            reply->forecasts[reply->n_forecasts++] = forecast_without (
                r->methods[i], arena_strdup (svc->call_arena, why.text), svc->call_arena);
        else
            return err_set (err, rc, "%s", why.text);
    }
    return 0;
}

/* Whoever asks about a shape, as far as the site knows him. */
static void caller_creds (struct svc *svc, const struct admin_caller *caller,
                          uint32_t cred[CRED_KINDS])
{
    uint32_t known =
        *caller->login ? strtab_find (svc->names->tab[CRED_USER], caller->login) : STRTAB_NONE;
    bool denied;
    for (int k = 0; k < CRED_KINDS; k++)
        cred[k] = CRED_NONE;
    cred[CRED_USER] = known == STRTAB_NONE ? CRED_DEFAULT : known;
    cred[CRED_QOS] = policy_qos_resolve (svc->settings->policy, cred, &denied);
}

void admin_start_time (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct svc *svc = self;
    const Nui__Local__V1__StartTimeRequest *r = (const Nui__Local__V1__StartTimeRequest *)request;
    Nui__Local__V1__StartTimeReply reply = NUI__LOCAL__V1__START_TIME_REPLY__INIT;
    struct admin_caller caller;
    struct store_job rec = {0};
    struct site_job *live = NULL;
    uint32_t cred[CRED_KINDS];
    struct err err = {0};
    char id[SITE_ID_MAX];
    int rc;
    admin_who (svc, call, &caller);
    arena_reset (svc->call_arena);
    reply.now_us = svc_now (svc);
    reply.procs = r->procs;
    reply.walltime_us = r->walltime_us;
    if (!*r->job_id) {
        rc = start_of_shape (svc, &reply, &err);
    } else if ((rc = admin_job (svc, &caller, r->job_id, ADMIN_INFO, &rec, &live, &err)) == 0) {
        reply.job_id = site_id (svc, rec.number, id);
        reply.procs = rec.procs;
        reply.walltime_us = rec.walltime;
        rc = live ? start_of_job (svc, live, &reply, &err)
                  : err_set (&err, ERR_CONFLICT, "job %s has ended", id);
    }
    caller_creds (svc, &caller, cred);
    if (rc == 0 && r->n_methods)
        rc = forecasts_fill (svc, r, live, cred, &reply, &err);
    rpccall_answer (call, rc, &reply.base, &err);
    store_job_free (&rec);
}
