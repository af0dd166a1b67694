/* QUERY, SUBMIT, JOB and CANCEL of nui.local.v1: what metaschedulers ask and send, and how a job enters the queue
 * (also by msub). */
#include <stdlib.h>
#include <string.h>

#include "local/core/copy.h"
#include "local/svc/caller.h"
#include "local/svc/files/staging.h"
#include "local/svc/forecast/forecast.h"
#include "local/svc/grid/grid.h"
#include "local/svc/job.h"
#include "local/svc/job/charge.h"
#include "local/svc/job/jobs.h"
#include "local/svc/job/jobspec.h"
#include "local/svc/job/life.h"
#include "local/svc/nodes.h"
#include "local/store/runs.h"
#include "local/svc/svc_i.h"
#include "proto/base/text.h"
#include "proto/job/element.h"

/* --- QUERY -------------------------------------------------------------------------------- */

struct window_us {
    time_us from, until;
};

static int intervals_fill (struct svc *svc, const struct jobspec *spec, struct window_us w,
                           time_us now, Nui__Local__V1__QueryReply *reply, struct err *err)
{
    struct who who = jobspec_who (svc, spec, jobspec_is_reserved (spec));
    struct query query = {.req_count = spec->req_count,
                          .req = spec->reqs,
                          .licence_count = spec->licence_count,
                          .licence = spec->licence,
                          .duration = svc_part_duration (svc, spec->walltime),
                          .from = w.from,
                          .until = w.until,
                          .queue = true,
                          .instead = spec->instead,
                          .who = &who};
    struct interval *list;
    uint32_t count;
    int rc = query_intervals (svc->cluster, &query, now, QUERY_INTERVALS_MAX, svc->call_arena,
                              &list, &count, err);
    if (rc != 0)
        return rc;
    reply->start_intervals = arena_array (svc->call_arena, count + 1, sizeof (void *));
    for (uint32_t i = 0; i < count; i++) {
        Nui__Common__V1__Interval *v = arena_new (svc->call_arena, Nui__Common__V1__Interval);
        nui__common__v1__interval__init (v);
        v->begin_us = list[i].begin;
        v->end_us = list[i].end;
        reply->start_intervals[reply->n_start_intervals++] = v;
    }
    return 0;
}

static struct query query_of (const struct jobspec *spec, const struct who *who, time_us now)
{
    return (struct query){.req_count = spec->req_count,
                          .req = spec->reqs,
                          .licence_count = spec->licence_count,
                          .licence = spec->licence,
                          .duration = spec->walltime,
                          .from = spec->job->not_before_us > now ? spec->job->not_before_us : now,
                          .until = TIME_US_MAX,
                          .queue = true,
                          .who = who};
}

/* As an ordinary job, submitted now: the start, and why not at once. */
int jobs_estimate (struct svc *svc, const struct jobspec *spec, time_us now, struct slot *slot,
                   struct err *err)
{
    struct who who = jobspec_who (svc, spec, jobspec_is_reserved (spec));
    struct query query = query_of (spec, &who, now);
    time_us data = staging_expected (svc, spec, now);
    query.from = data > query.from ? data : query.from;
    return query_earliest (svc->cluster, &query, now, svc->call_arena, slot, err);
}

int jobs_estimate_bare (struct svc *svc, const struct jobspec *spec, time_us now, struct slot *slot,
                        struct err *err)
{
    struct who who = jobspec_who (svc, spec, false);
    struct query query = query_of (spec, &who, now);
    struct cluster *bare = cluster_create (svc->settings->policy, NULL, err);
    int rc = bare ? cluster_copy_site (svc->cluster, bare, now, err) : err->code;
    who.named = (struct rsv_id){0};
    for (uint32_t i = 0; rc == 0 && i < svc->node_count; i++)
        if (svc->node_by_id[i]->configured)
            rc = cluster_node_state_set (bare, svc->node_by_id[i]->id, NODE_UP, now, err);
    if (rc == 0)
        rc = query_earliest (bare, &query, now, svc->call_arena, slot, err);
    cluster_destroy (bare);
    return rc;
}

/* A slot that is chosen now is asked for a little later, and must still do then. */
static time_us data_surely (struct svc *svc, const struct jobspec *spec, time_us now)
{
    enum { TENTH = 10, SECONDS = 3 };
    time_us data = staging_expected (svc, spec, now);
    bool later = data > now && jobspec_is_reserved (spec);
    return later ? data + (data - now) / TENTH + SECONDS * US_PER_S : data;
}

static const char *data_text (struct arena *arena, time_us data)
{
    char when[QUANTITY_TEXT_MAX];
    return arena_printf (arena, "its files can be here at %s", time_format_iso (data, when));
}

static int query_answer (struct svc *svc, const Nui__Local__V1__QueryRequest *r,
                         const struct jobspec *spec, Nui__Local__V1__QueryReply *reply,
                         struct err *err)
{
    svc_clock_settle (svc);
    time_us now = svc_now (svc);
    struct window_us w = {r->window_begin_us > now ? r->window_begin_us : now,
                          now + svc->settings->horizon};
    struct slot slot;
    char text[512];
    if (r->window_end_us && r->window_end_us < w.until)
        w.until = r->window_end_us;
    if (jobspec_is_reserved (spec))
        w.until = gridpolicy_until (svc, spec->meta, now, w.until);
    time_us data = data_surely (svc, spec, now);
    w.from = data > w.from ? data : w.from;
    reply->procs = spec->procs;
    reply->price_least_micro =
        gridpolicy_price_least (svc, spec->meta, spec->procs, spec->walltime);
    reply->machine = (char *)bank_machine (svc, NULL);
    reply->now_us = now;
    reply->schedule_version = cluster_version (svc->cluster);
    if (spec->never_fits) {
        jobs_reason (svc->call_arena, "NoResources", spec->never_text, &reply->reason);
        return 0;
    }
    if (depends_check (svc, spec, err) != 0) {
        jobs_reason (svc->call_arena, "Dependency", err->text, &reply->reason);
        err_clear (err);
        return 0;
    }
    int rc = jobs_estimate (svc, spec, now, &slot, err);
    if (rc != 0)
        return rc;
    reply->feasible = slot.start != TIME_US_NONE;
    if (slot.start == data && data > now) {
        jobs_reason (svc->call_arena, "StageIn", data_text (svc->call_arena, data), &reply->reason);
    } else if (!reply->feasible || slot.start > now) {
        reason_text (&slot.reason, svc->names, text, sizeof text);
        jobs_reason (svc->call_arena, reason_code_name ((enum reason_code)slot.reason.code), text,
                     &reply->reason);
    }
    if (!reply->feasible)
        return 0;
    reply->start_estimate_us = slot.start;
    if (!jobspec_is_reserved (spec)) { /* those start when all can */
        struct err why;
        if (forecast_quote (svc, spec, svc->call_arena, &reply->forecast, &why) == 0)
            forecast_not_before (reply->forecast, data);
    }
    for (uint32_t i = 0; i < slot.allocation.count; i++)
        if (i == 0 || slot.allocation.item[i].node.v != slot.allocation.item[i - 1].node.v)
            reply->nodes++;
    if (w.until < w.from)
        return 0; /* the window is over */
    rc = intervals_fill (svc, spec, w, now, reply, err);
    return rc == 0 && r->n_others ? together_fill (svc, r, spec, w.from, w.until, reply, err) : rc;
}

/* A question that waits for the sizes of files. The request is valid until the call is finished. */
struct query_later {
    struct svc *svc;
    struct rpccall *call;
    const Nui__Local__V1__QueryRequest *request;
    struct jobspec spec;
};

static void query_reply (struct svc *svc, struct rpccall *call,
                         const Nui__Local__V1__QueryRequest *r, struct jobspec *spec)
{
    Nui__Local__V1__QueryReply reply = NUI__LOCAL__V1__QUERY_REPLY__INIT;
    struct err err = {0};
    spec->depends_met = r->depends_met;
    if (rpccall_peer (call)->kind == PRINCIPAL_META)
        spec->instead = instead_of (svc, rpccall_peer (call)->name, &r->replaces, NULL);
    if (query_answer (svc, r, spec, &reply, &err) != 0)
        jobs_refuse (svc, call, &err);
    else
        rpccall_reply (call, &reply.base);
    jobspec_free (spec);
}

static void query_no (struct svc *svc, struct rpccall *call, const char *code, const char *text)
{
    Nui__Local__V1__QueryReply reply = NUI__LOCAL__V1__QUERY_REPLY__INIT;
    jobs_reason (svc->call_arena, code, text, &reply.reason);
    reply.now_us = svc_now (svc);
    reply.schedule_version = cluster_version (svc->cluster);
    rpccall_reply (call, &reply.base);
}

static void query_sized (void *arg, const char *missing)
{
    struct query_later *later = arg;
    struct svc *svc = later->svc;
    arena_reset (svc->call_arena);
    if (!missing) {
        rpccall_finish (later->call, RPC_UNAVAILABLE, "the site is stopping");
        jobspec_free (&later->spec);
    } else if (*missing) {
        query_no (svc, later->call, "StageIn", missing);
        jobspec_free (&later->spec);
    } else {
        query_reply (svc, later->call, later->request, &later->spec);
    }
    free (later);
}

void jobs_query (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct svc *svc = self;
    const Nui__Local__V1__QueryRequest *r = (const Nui__Local__V1__QueryRequest *)request;
    struct jobspec spec = {0};
    struct err err = {0};
    arena_reset (svc->call_arena);
    const struct principal *peer = rpccall_peer (call);
    int rc = jobspec_verify_counted (svc, r->envelope,
                                     peer->kind == PRINCIPAL_META ? peer->name : "", r->component,
                                     r->shape, r->grid_licences, r->n_grid_licences, &spec, &err);
    if (rc == ERR_DENIED) { /* this site's own no: others may say yes */
        query_no (svc, call, "Denied", err.text);
        return;
    }
    if (rc != 0) {
        jobs_refuse (svc, call, &err);
        return;
    }
    struct query_later *later = malloc (sizeof *later);
    if (!later)
        abort ();
    *later = (struct query_later){svc, call, r, spec};
    if (staging_ask (svc, &spec, query_sized, later))
        return;
    free (later);
    query_reply (svc, call, r, &spec);
}

/* --- SUBMIT ------------------------------------------------------------------------------- */

static int submit_write (struct svc *svc, struct site_job *job, const struct jobs_wish *wish,
                         const struct jobspec *spec, struct err *err)
{
    size_t len = nui__common__v1__envelope__get_packed_size (wish->envelope);
    uint8_t *bytes = malloc (len + 1);
    if (!bytes)
        return err_set (err, ERR_NOMEM, "submit: no memory");
    nui__common__v1__envelope__pack (wish->envelope, bytes);
    int rc = svc_job_write (svc, job, true, bytes, len, err);
    free (bytes);
    if (rc == 0 && *spec->submitter) /* signed */
        rc = replay_keep (svc, spec, wish->meta ? wish->meta : "",
                          wish->meta ? wish->grid_job_id : "msub", err);
    if (rc == 0 && wish->uuid)
        rc = local_store_submission_put (svc->store, wish->uuid, job->rec.number, err);
    uint32_t holds = wish->holds | (spec->job->held && !wish->released ? HOLD_USER : 0);
    if (rc == 0 && holds)
        rc = local_store_job_admin_put (svc->store, job->rec.number,
                                        &(struct store_job_admin){.holds = holds}, err);
    return rc;
}

int jobs_enter (struct svc *svc, const struct jobs_wish *wish, const struct jobspec *spec,
                struct site_job **out, struct err *err)
{
    struct store_job rec = {.state = STORE_JOB_QUEUED};
    int rc = depends_check (svc, spec, err);
    if (rc == 0)
        rc = daemon_takes_work (svc->daemon, err);
    if (rc != 0)
        return rc;
    rc = svc_begin (svc, err);
    if (rc == 0)
        rc = local_store_next (svc->store, "job", &rec.number, err);
    if (rc != 0) {
        local_store_rollback (svc->store);
        return rc;
    }
    snprintf (rec.grid_job_id, sizeof rec.grid_job_id, "%s", wish->grid_job_id);
    text_printf (rec.meta, sizeof rec.meta, "%.63s", wish->meta ? wish->meta : "");
    snprintf (rec.component, sizeof rec.component, "%s", spec->component->name);
    rec.contact = wish->contact;
    rec.component_index = spec->component_index;
    rec.shape = spec->shape;
    rec.attempt = wish->attempt;
    rec.submitter = strdup (spec->submitter);
    snprintf (rec.local_account, sizeof rec.local_account, "%s", spec->local_account);
    text_printf (rec.pay_account, sizeof rec.pay_account, "%.63s", spec->job->account);
    rec.procs = spec->procs;
    rec.walltime = spec->walltime;
    rec.submit = svc_now (svc);
    rec.array = jobspec_array (spec);
    rec.array_index = spec->job->array_index;
    rec.array_limit = spec->job->array_limit;
    struct site_job *job = svc_job_add (svc, &rec, spec);
    rc = submit_write (svc, job, wish, spec, err);
    if (rc == 0)
        rc = depends_submit (svc, job, spec, err);
    if (rc == 0)
        rc = svc_cluster_submit (svc, job, err);
    if (rc == 0)
        rc = changes_restore (svc, job, err);
    if (rc == 0)
        rc = forecast_entered (svc, job, spec, err);
    rc = svc_commit (svc, rc, err);
    if (rc != 0) {
        depends_taken_back (svc, rec.number);
        if (job->in_cluster)
            cluster_job_remove (svc->cluster, (struct job_id){rec.number}, svc_now (svc), NULL);
        svc_job_forget (svc, job);
        return rc;
    }
    *out = job;
    staging_want (svc, job, spec);
    depends_settle (svc, job);
    depends_happened (svc, job->rec.number); /* whom it came before */
    return 0;
}

static void submit_reply (struct svc *svc, struct rpccall *call, uint64_t number, time_us start)
{
    Nui__Local__V1__SubmitReply reply = NUI__LOCAL__V1__SUBMIT_REPLY__INIT;
    char id[SITE_ID_MAX];
    reply.accepted = true;
    reply.site_job_id = site_id (svc, number, id);
    reply.start_estimate_us = start;
    rpccall_reply (call, &reply.base);
}

static void submit_no (struct svc *svc, struct rpccall *call, const char *code, const char *text)
{
    Nui__Local__V1__SubmitReply reply = NUI__LOCAL__V1__SUBMIT_REPLY__INIT;
    jobs_reason (svc->call_arena, code, text, &reply.reason);
    rpccall_reply (call, &reply.base);
}

/* Of a group of metaschedulers only the one that leads the job now may send it. A newer one is remembered before
 * anything is answered under it, together with the job, so that both are forgotten together (signed_purge). */
static int leader_check (struct svc *svc, const char *meta, const Nui__Local__V1__SubmitRequest *r,
                         const struct jobspec *spec, struct err *err)
{
    bool newer = false;
    int rc = r->epoch ? replay_epoch (svc, spec->job->uuid.data, r->epoch, &newer, err) : 0;
    if (rc != 0 || !newer)
        return rc;
    rc = svc_begin (svc, err);
    if (rc == 0)
        rc = local_store_epoch_put (svc->store, spec->job->uuid.data, r->epoch, err);
    if (rc == 0)
        rc = replay_keep (svc, spec, meta, r->grid_job_id, err);
    return svc_commit (svc, rc, err);
}

static int submit_do (struct svc *svc, struct rpccall *call, const Nui__Local__V1__SubmitRequest *r,
                      struct err *err)
{
    struct jobspec spec = {0};
    struct store_job before;
    struct site_job *job;
    struct jobs_wish wish = {.envelope = r->envelope,
                             .grid_job_id = r->grid_job_id,
                             .meta = rpccall_peer (call)->name,
                             .attempt = r->attempt,
                             .contact = r->contact_us > 0 ? r->contact_us : 0,
                             .released = r->released,
                             .holds = r->withheld ? HOLD_SYSTEM : 0};
    struct slot slot;
    char text[512], id[SITE_ID_MAX];
    time_us now = svc_now (svc);
    int rc = element_id_check (r->grid_job_id, err);
    if (rc == 0)
        rc = local_store_job_by_attempt (svc->store, settings_speakers (svc->settings, wish.meta),
                                         r->grid_job_id, r->component, r->attempt, &before, err);
    if (rc == 0) { /* again: the same answer */
        bool same = before.submitter != NULL;
        rc =
            jobspec_verify (svc, r->envelope, wish.meta, r->component, r->shape, false, &spec, err);
        if (rc == 0)
            rc = leader_check (svc, wish.meta, r, &spec, err);
        if (rc == 0)
            rc = svc_job_signed (svc, before.number, r->envelope, &same, err);
        same = same && rc == 0 && before.shape == r->shape &&
               strcmp (spec.submitter, before.submitter) == 0;
        if (same)
            submit_reply (svc, call, before.number, before.start);
        else if (rc == 0)
            rc = err_set (err, ERR_EXISTS, "grid job %.60s attempt %u is another job",
                          r->grid_job_id, r->attempt);
        store_job_free (&before);
        jobspec_free (&spec);
        return rc;
    }
    if (rc != ERR_NOT_FOUND)
        return rc;
    rc = jobspec_trust (svc, r->envelope, wish.meta, r->component, r->shape, true, &spec, err);
    if (rc == 0)
        rc = replay_check (svc, &spec, wish.meta, r->grid_job_id, err);
    if (rc == 0) /* before a refusal, too: what an earlier leader sent must not be taken after it */
        rc = leader_check (svc, wish.meta, r, &spec, err);
    if (rc == 0)
        rc = jobspec_admit (svc, true, &spec, err);
    if (rc == ERR_DENIED) {
        submit_no (svc, call, "Denied", err->text);
        rc = 0;
        goto out;
    }
    if (rc == 0)
        rc = jobspec_runnable (&spec, err);
    if (rc != 0)
        goto out;
    spec.depends_met = r->depends_met;
    if (depends_check (svc, &spec, err) != 0) { /* others may know those jobs */
        submit_no (svc, call, "Dependency", err->text);
    } else if (spec.never_fits) {
        submit_no (svc, call, "NoResources", spec.never_text);
    } else if ((rc = jobs_estimate (svc, &spec, now, &slot, err)) == 0) {
        if (slot.start == TIME_US_NONE) {
            reason_text (&slot.reason, svc->names, text, sizeof text);
            submit_no (svc, call, reason_code_name ((enum reason_code)slot.reason.code), text);
        } else if ((rc = jobs_enter (svc, &wish, &spec, &job, err)) == 0) {
            log_event (svc->log, LOG_LEVEL_INFO, "svc", "job_submitted", "job=%s grid=%s of=%s",
                       site_id (svc, job->rec.number, id), r->grid_job_id, spec.submitter);
            submit_reply (svc, call, job->rec.number, slot.start);
            pass_wake (svc);
        }
    }
out:
    jobspec_free (&spec);
    return rc;
}

void jobs_submit (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct svc *svc = self;
    struct err err = {0};
    arena_reset (svc->call_arena);
    int rc = submit_do (svc, call, (const Nui__Local__V1__SubmitRequest *)request, &err);
    if (rc == ERR_CONFLICT) /* fenced: not to be asked again */
        rpccall_finish (call, RPC_ABORTED, err.text);
    else if (rc != 0)
        jobs_refuse (svc, call, &err);
}

/* --- JOB and CANCEL ----------------------------------------------------------------------- */

/* A waiting job for which the pass made no reservation: when it would start if nobody else came. */
static void estimate_fill (struct svc *svc, const struct site_job *job,
                           Nui__Local__V1__JobInfo *info)
{
    time_us now = svc_now (svc);
    struct who who;
    struct query query = svc_query_of (svc, job, now, TIME_US_MAX, true, &who);
    struct slot slot;
    struct job_view view;
    if (job->rec.state != STORE_JOB_QUEUED || info->start_estimate_us)
        return;
    if (cluster_job_get (svc->cluster, (struct job_id){job->rec.number}, &view, NULL) == 0 &&
        jobs_never (job, &view))
        return;
    query.from = jobs_startable (svc, job, now);
    if (query_earliest (svc->cluster, &query, now, svc->call_arena, &slot, NULL) == 0 &&
        slot.start != TIME_US_NONE)
        info->start_estimate_us = slot.start;
}

/* What the bank has said of its runs. */
static void on_charged (void *arg, const struct store_run *run)
{
    Nui__Local__V1__JobInfo *info = arg;
    info->charged = info->charged && run->charged >= 0;
    if (run->charged > 0)
        info->charged_micro += run->charged;
}

static void charged_fill (struct svc *svc, Nui__Local__V1__JobInfo *info)
{
    enum { OF_A_JOB_MAX = 1000 };
    info->charged = true;
    if (runs_read (svc->store, 0, 0, info->site_job_id, &(struct runs_after){0}, OF_A_JOB_MAX,
                   on_charged, info, NULL) != 0)
        info->charged = false;
}

time_us jobs_kept_until (const struct svc *svc, const struct store_job *rec)
{
    return svc->settings->job_purge == TIME_US_MAX ? 0 : rec->end + svc->settings->job_purge;
}

void jobs_job (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct svc *svc = self;
    const Nui__Local__V1__JobRequest *r = (const Nui__Local__V1__JobRequest *)request;
    Nui__Local__V1__JobInfo info;
    struct store_job rec = {0};
    struct err err = {0};
    int rc = jobs_find (svc, call, r->job_id, r->component, &rec, &err);
    if (rc == 0)
        rc = jobs_allowed (svc, call, &rec, JOBS_OWNER | JOBS_OPERATOR | JOBS_META, &err);
    if (rc != 0) {
        rpccall_fail (call, &err);
    } else {
        struct site_job *live = svc_job (svc, rec.number);
        arena_reset (svc->call_arena);
        jobs_info (svc, live ? &live->rec : &rec, live, svc->call_arena, &info);
        if (live)
            estimate_fill (svc, live, &info);
        if (store_job_ended (live ? live->rec.state : rec.state))
            charged_fill (svc, &info);
        if (!live && store_job_ended (rec.state) && rec.start)
            info.kept_us = jobs_kept_until (svc, &rec);
        rpccall_reply (call, &info.base);
    }
    store_job_free (&rec);
}

static bool is_held (struct svc *svc, const struct site_job *job)
{
    struct job_view view;
    return job->in_cluster &&
           cluster_job_get (svc->cluster, (struct job_id){job->rec.number}, &view, NULL) == 0 &&
           (view.spec->holds & ~(uint32_t)HOLD_DEPENDENCY) != 0;
}

/* By whom: a metascheduler may say for whom it asks. */
static void cancel_text (const struct rpccall *call, const char *for_whom, char *out, size_t cap)
{
    char uri[PRINCIPAL_URI_MAX], other[PRINCIPAL_URI_MAX];
    struct principal principal;
    principal_uri (rpccall_peer (call), uri);
    if (rpccall_peer (call)->kind == PRINCIPAL_META && *for_whom &&
        principal_parse (for_whom, &principal, NULL) == 0)
        text_printf (out, cap, "cancelled by %s, as %s says", principal_uri (&principal, other),
                     uri);
    else
        text_printf (out, cap, "cancelled by %s", uri);
}

void jobs_cancel (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct svc *svc = self;
    const Nui__Local__V1__JobRequest *r = (const Nui__Local__V1__JobRequest *)request;
    Nui__Local__V1__CancelReply reply = NUI__LOCAL__V1__CANCEL_REPLY__INIT;
    struct store_job rec = {0};
    struct err err = {0};
    char text[2 * PRINCIPAL_URI_MAX + 32];
    int rc = jobs_find (svc, call, r->job_id, r->component, &rec, &err);
    if (rc == 0)
        rc = jobs_allowed (svc, call, &rec, JOBS_OWNER | JOBS_OPERATOR | JOBS_META, &err);
    struct site_job *live = rc == 0 ? svc_job (svc, rec.number) : NULL;
    if (live && ((r->waiting_only && live->rec.state != STORE_JOB_QUEUED) ||
                 (r->moving && is_held (svc, live)))) {
        reply.kept = true;
    } else if (live && (rc = svc_may_act (svc, &err)) == 0) {
        cancel_text (call, r->by, text, sizeof text);
        rc = life_cancel (svc, live, "Cancelled", text, &err);
        reply.cancelled = rc == 0;
    }
    store_job_free (&rec);
    rpccall_answer (call, rc, &reply.base, &err);
}
