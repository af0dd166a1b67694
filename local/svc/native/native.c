/* Jobs that users gave to the resource manager itself (sbatch). Each becomes a job of this site: an
 * unsigned Job is stored where a signed one has its envelope, so that everything else treats them
 * alike. The resource manager is the authority for what the job needs and for its user's and
 * administrators' holds; when and where it runs is decided here. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "local/store/runs.h"
#include "local/svc/job.h"
#include "local/svc/job/jobspec.h"
#include "local/svc/job/life.h"
#include "local/svc/modes/modes.h"
#include "local/svc/native/native.h"
#include "local/svc/nodes.h"
#include "local/svc/svc_i.h"
#include "proto/base/clock.h"
#include "proto/base/fnv.h"
#include "proto/base/text.h"

/* --- holds -------------------------------------------------------------------------------- */

enum { THEIRS = HOLD_USER | HOLD_SYSTEM | HOLD_DEPENDENCY };

static uint32_t holds_of (const struct rm_native *n)
{
    return (n->held_user ? HOLD_USER : 0u) | (n->held_admin ? HOLD_SYSTEM : 0u) |
           (*n->dependency ? HOLD_DEPENDENCY : 0u);
}

/* Theirs as they say; ours (batch) as they are, or set where the job cannot be scheduled by us. */
static void holds_apply (struct svc *svc, struct site_job *job, const struct rm_native *n,
                         const struct native_misfit *misfit)
{
    struct job_view view;
    struct err err = {0};
    struct job_id id = {job->rec.number};
    if (!job->in_cluster || cluster_job_get (svc->cluster, id, &view, &err) != 0 ||
        view.state != JOB_IDLE)
        return;
    uint32_t theirs = holds_of (n);
    if (job->batch_pushed) /* that is ours */
        theirs &= ~(uint32_t)HOLD_SYSTEM;
    uint32_t holds = (view.spec->holds & ~(uint32_t)THEIRS) | theirs;
    if (job->batch_pushed && !n->held_admin) { /* released there */
        job->batch_pushed = false;
        holds &= ~(uint32_t)HOLD_BATCH;
    }
    if (*misfit->text)
        holds |= HOLD_BATCH;
    if (holds != view.spec->holds &&
        cluster_job_hold_set (svc->cluster, id, holds, svc_now (svc), &err) != 0)
        log_event (svc->log, LOG_LEVEL_ERROR, "svc", "core_disagrees", "error=\"%s\"", err.text);
}

/* What was set here and released there is released. In a transaction. */
static int admin_holds_follow (struct svc *svc, struct site_job *job, const struct rm_native *n,
                               struct err *err)
{
    struct store_job_admin set;
    int rc = local_store_job_admin_get (svc->store, job->rec.number, &set, err);
    uint32_t keep = (holds_of (n) & (HOLD_USER | HOLD_SYSTEM)) |
                    (job->batch_pushed && !n->held_admin ? 0 : HOLD_BATCH);
    if (rc != 0 || (set.holds & ~keep) == 0)
        return rc;
    set.holds &= keep;
    return local_store_job_admin_put (svc->store, job->rec.number, &set, err);
}

void native_hold_push (struct svc *svc, struct site_job *job, uint32_t before, uint32_t after)
{
    char id[SITE_ID_MAX];
    struct err err = {0};
    if (!job->rm.native || !svc->rm.ops->hold || before == after)
        return;
    /* It has two kinds: the user's, and that of everybody above. */
    enum rm_hold kind = after & (HOLD_SYSTEM | HOLD_BATCH) ? RM_HOLD_ADMIN : RM_HOLD_USER;
    bool on = after != 0;
    job->batch_pushed = (after & HOLD_BATCH) != 0;
    if (svc->rm.ops->hold (svc->rm.self, site_id (svc, job->rec.number, id), job->rec.incarnation,
                           kind, on, &err) != 0)
        log_event (svc->log, LOG_LEVEL_WARN, "rm", "hold_not_passed_on", "job=%s error=\"%s\"", id,
                   err.text);
}

/* --- new and changed ---------------------------------------------------------------------- */

static struct site_job *job_by_rm (struct svc *svc, const struct rm_native *n)
{
    char prefix[STORE_NAME_MAX];
    uint64_t number;
    if (n->job_id && id_parse (n->job_id, prefix, sizeof prefix, &number, NULL) == 0)
        return svc_job (svc, number);
    if (local_store_rm_job_find (svc->store, n->rm_id, n->submit, &number, NULL) == 0)
        return svc_job (svc, number);
    return NULL;
}

/* It was here, ended here, and is told of once more. Of what we gave to the resource manager ourselves the records there do
 * not say so: it has the name under which its run is written down here, and began before the end of that. */
static bool ended_before (struct svc *svc, const struct rm_native *n)
{
    uint64_t number;
    return n->state != RM_NATIVE_PENDING &&
           (local_store_rm_job_find (svc->store, n->rm_id, n->submit, &number, NULL) == 0 ||
            (n->start && runs_of_rm_after (svc->store, n->rm_id, n->start, NULL) == 1));
}

static void bind_it (struct svc *svc, struct site_job *job)
{
    char id[SITE_ID_MAX];
    struct err err = {0};
    if (svc->rm.ops->bind (svc->rm.self, job->rm.rm_id, job->rm.submit,
                           site_id (svc, job->rec.number, id), job->rec.incarnation, job->rec.start,
                           &err) != 0)
        log_event (svc->log, LOG_LEVEL_ERROR, "rm", "not_bound", "job=%s error=\"%s\"", id,
                   err.text);
}

/* Another incarnation of it waits: its events are for that one. */
static void native_bind_again (struct svc *svc, struct site_job *job)
{
    if (job->rm.native && svc->rm.ops->bind)
        bind_it (svc, job);
}

static void misfit_say (struct svc *svc, struct site_job *job, const struct native_misfit *misfit)
{
    char id[SITE_ID_MAX], quoted[400];
    if (!*misfit->text)
        return;
    svc_reason (job, "RMReject", "%s", misfit->text);
    log_event (svc->log, LOG_LEVEL_WARN, "svc", "job_not_schedulable", "job=%s rm_job=%s reason=%s",
               site_id (svc, job->rec.number, id), job->rm.rm_id,
               log_quote (misfit->text, quoted, sizeof quoted));
}

/* Tasks of one array share a number (--array=0-9%2: so many at a time). 0: of no array. */
static uint64_t array_of (const struct rm_native *n)
{
    uint64_t hash = fnv_bytes (FNV_BEGIN ^ (uint64_t)n->submit, n->array_id, strlen (n->array_id));
    return *n->array_id ? (hash >> 1) | 1 : 0; /* a number for SQL */
}

/* In a transaction. */
static int create (struct svc *svc, const struct rm_native *n, struct arena *arena,
                   struct site_job **out, struct err *err)
{
    struct store_job rec = {.state = STORE_JOB_QUEUED};
    struct jobspec spec;
    struct native_misfit misfit = {0};
    uint8_t *envelope;
    size_t len;
    int rc = native_spec (svc, n, arena, &spec, &envelope, &len, &misfit, err);
    if (rc != 0)
        return rc;
    rc = local_store_next (svc->store, "job", &rec.number, err);
    if (rc != 0) {
        jobspec_free (&spec);
        return rc;
    }
    snprintf (rec.component, sizeof rec.component, "%s", native_component);
    rec.submitter = strdup (spec.job->submitter);
    text_printf (rec.local_account, sizeof rec.local_account, "%.63s", n->user);
    text_printf (rec.pay_account, sizeof rec.pay_account, "%.63s", n->account);
    rec.procs = n->procs ? n->procs : spec.procs;
    rec.walltime = spec.walltime;
    rec.submit = n->submit;
    rec.array = array_of (n);
    rec.array_limit = n->array_limit;
    struct site_job *job = svc_job_add (svc, &rec, &spec);
    jobspec_free (&spec);
    job->taken = svc_now (svc);
    job->rm = (struct store_rm_job){.submit = n->submit, .native = true};
    snprintf (job->rm.rm_id, sizeof job->rm.rm_id, "%s", n->rm_id);
    rc = svc_cluster_submit (svc, job, err);
    misfit_say (svc, job, &misfit);
    if (rc == 0)
        rc = svc_job_write (svc, job, false, envelope, len, err);
    if (rc == 0)
        rc = local_store_rm_job_put (svc->store, rec.number, &job->rm, err);
    if (rc == 0)
        holds_apply (svc, job, n, &misfit);
    *out = job;
    return rc;
}

static void uncreate (struct svc *svc, struct site_job *job)
{
    if (job->in_cluster)
        cluster_job_remove (svc->cluster, (struct job_id){job->rec.number}, svc_now (svc), NULL);
    svc_job_forget (svc, job);
}

/* Somebody stopped it there, or let it go on: that time is not charged. Its nodes stay taken. */
static void halted_follow (struct svc *svc, struct site_job *job, bool suspended)
{
    time_us now = svc_now (svc);
    job->suspended = suspended;
    if (suspended) {
        job->suspended_since = now;
        svc_reason (job, "Suspended", "suspended at the resource manager");
    } else {
        job->rec.halted += now - job->suspended_since;
        svc_reason (job, "", "%s", "");
    }
}

void native_suspended (struct svc *svc, struct site_job *job, bool on)
{
    struct err err = {0};
    int rc = svc_begin (svc, &err);
    if (job->rec.suspended_at && !on)
        evict_resumed_there (svc,
                             job); /* had we done it, it would not be suspended here any more */
    else if (job->suspended != on && !job->rec.suspended_at)
        halted_follow (svc, job, on);
    if (rc == 0)
        rc = svc_job_write (svc, job, true, NULL, 0, &err);
    svc_commit (svc, rc, &err);
    pass_wake (svc);
}

/* In a transaction. */
static int submit_follow (struct svc *svc, struct site_job *job, time_us submit, struct err *err)
{
    if (!job->rm.native || job->rm.submit == submit)
        return 0;
    job->rm.submit = submit;
    return local_store_rm_job_put (svc->store, job->rec.number, &job->rm, err);
}

void native_submit_follow (struct svc *svc, struct site_job *job, time_us submit)
{
    struct err err = {0};
    if (submit == 0 || !job->rm.native || job->rm.submit == submit)
        return;
    int rc = svc_begin (svc, &err);
    if (rc == 0)
        rc = submit_follow (svc, job, submit, &err);
    svc_commit (svc, rc, &err);
}

/* What it needs, as it is now. In a transaction. */
static int change (struct svc *svc, struct site_job *job, const struct rm_native *n,
                   struct arena *arena, struct err *err)
{
    struct jobspec spec;
    struct native_misfit misfit = {0};
    uint8_t *envelope;
    size_t len;
    int rc = submit_follow (svc, job, n->submit, err);
    if (rc != 0)
        return rc;
    if (job->rec.state != STORE_JOB_QUEUED || n->state != RM_NATIVE_PENDING)
        return job->rec.state == STORE_JOB_RUNNING ? svc_job_write (svc, job, true, NULL, 0, err)
                                                   : 0;
    rc = native_spec (svc, n, arena, &spec, &envelope, &len, &misfit, err);
    if (rc != 0)
        return rc;
    free (job->reqs);
    job->reqs = calloc (spec.req_count, sizeof *job->reqs);
    assert (job->reqs);
    memcpy (job->reqs, spec.reqs, spec.req_count * sizeof *job->reqs);
    job->req_count = spec.req_count;
    free (job->licence);
    job->licence = calloc (spec.licence_count + 1, sizeof *job->licence);
    assert (job->licence);
    memcpy (job->licence, spec.licence, spec.licence_count * sizeof *job->licence);
    job->licence_count = spec.licence_count;
    job->rec.array_limit = n->array_limit;
    memcpy (job->cred, spec.cred, sizeof job->cred);
    job->not_before = n->begin ? n->begin : TIME_US_NONE;
    job->rec.walltime = spec.walltime;
    job->rec.procs = n->procs ? n->procs : spec.procs;
    text_printf (job->rec.pay_account, sizeof job->rec.pay_account, "%.63s", n->account);
    jobspec_free (&spec);
    rc = svc_cluster_modify (svc, job, err);
    if (rc == 0)
        rc = admin_holds_follow (svc, job, n, err);
    if (rc == 0) {
        misfit_say (svc, job, &misfit);
        holds_apply (svc, job, n, &misfit);
        rc = svc_job_write (svc, job, false, envelope, len, err);
    }
    return rc;
}

void native_take (struct svc *svc, const struct rm_native *list, uint32_t count)
{
    struct err err = {0};
    struct site_job **made = calloc (count, sizeof *made);
    struct arena *arena = arena_create (0);
    uint32_t made_count = 0;
    assert (made);
    int rc = svc_begin (svc, &err);
    for (uint32_t i = 0; rc == 0 && i < count; i++) {
        struct site_job *job = job_by_rm (svc, &list[i]);
        if (job) {
            rc = change (svc, job, &list[i], arena, &err);
        } else if (!ended_before (svc, &list[i])) {
            rc = create (svc, &list[i], arena, &job, &err);
            if (job)
                made[made_count++] = job;
        }
    }
    arena_destroy (arena);
    rc = svc_commit (svc, rc, &err);
    for (uint32_t i = 0; i < made_count; i++)
        if (rc != 0)
            uncreate (svc, made[i]);
        else
            bind_it (svc, made[i]);
    free (made);
    if (rc != 0)
        log_event (svc->log, LOG_LEVEL_ERROR, "svc", "native_jobs_not_taken", "error=\"%s\"",
                   err.text);
    if (made_count > 0 && rc == 0)
        log_event (svc->log, LOG_LEVEL_INFO, "svc", "native_jobs", "new=%u of=%u", made_count,
                   count);
    pass_wake (svc);
}

/* --- up to when --------------------------------------------------------------------------- */

static const char settled_blob[] = "rm_settled";

time_us native_settled (struct svc *svc)
{
    void *bytes = NULL;
    size_t len = 0;
    time_us at = 0;
    if (local_store_blob_get (svc->store, settled_blob, &bytes, &len, NULL) == 0 &&
        len == sizeof at)
        memcpy (&at, bytes, sizeof at);
    free (bytes);
    return at;
}

static void native_settled_put (struct svc *svc, time_us at)
{
    struct err err = {0};
    int rc = svc_begin (svc, &err);
    if (rc == 0)
        rc = local_store_blob_put (svc->store, settled_blob, &at, sizeof at, &err);
    svc_commit (svc, rc, &err);
}

/* The first start: what ended before it is none of ours, and what ends from now on is to be told of, however soon this
 * process is killed. */
static void native_recovered (struct svc *svc)
{
    if (svc->rm.ops->settled && !svc->mode && !native_settled (svc))
        native_settled_put (svc, svc_now (svc));
}

static void native_poll (struct svc *svc)
{
    time_us at = svc->rm.ops->settled ? svc->rm.ops->settled (svc->rm.self) : 0;
    if (at && !svc->mode && at != native_settled (svc))
        native_settled_put (svc, at);
}

/* --- what happens to it ------------------------------------------------------------------- */

/* Processors of one node of "n1:2,n2:1"; 0: it is not there. */
static uint32_t procs_on (const char *placement, const char *node)
{
    size_t len = strlen (node);
    for (const char *p = placement; p && *p; p = strchr (p, ',') ? strchr (p, ',') + 1 : NULL)
        if (strncmp (p, node, len) == 0 && p[len] == ':')
            return (uint32_t)strtoul (p + len + 1, NULL, 10);
    return 0;
}

/* Has the node what was planned there? */
static bool as_planned (const struct site_job *job, const struct allocation *plan,
                        struct node_id node, uint32_t procs)
{
    int64_t planned = 0;
    for (uint32_t i = 0; i < plan->count; i++)
        if (plan->item[i].node.v == node.v)
            planned += plan->item[i].tasks * job->reqs[plan->item[i].req].task.v[RES_PROCS];
    return planned == procs;
}

/* "n1:2,n2:1" of processors, as an allocation: tasks of the job's first req, but the planned ones on nodes
 * that have what was planned. */
static struct allocation allocation_of (struct svc *svc, const struct site_job *job,
                                        const char *placement, uint32_t *procs_out)
{
    arena_reset (svc->call_arena);
    struct allocation plan = job->rec.placement
                                 ? placement_parse (svc, job->rec.placement, svc->call_arena)
                                 : (struct allocation){0};
    uint32_t cap = plan.count + (uint32_t)strlen (placement ? placement : "") / 3 + 1;
    struct allocation a = {.item = arena_array (svc->call_arena, cap, sizeof *a.item)};
    int64_t first = job->reqs[0].task.v[RES_PROCS];
    *procs_out = 0;
    for (const char *p = placement; p && *p; p = strchr (p, ',') ? strchr (p, ',') + 1 : NULL) {
        char name[STORE_NAME_MAX];
        struct node_id node;
        unsigned procs;
        if (sscanf (p, "%63[^:]:%u", name, &procs) != 2)
            break;
        *procs_out += procs;
        if (svc->place.node_find (svc->place.self, name, &node) &&
            !as_planned (job, &plan, node, procs))
            a.item[a.count++] = (struct placement){
                .node = node, .tasks = procs / first ? (uint32_t)(procs / first) & TASKS_MAX : 1};
    }
    for (uint32_t i = 0; i < plan.count; i++)
        if (as_planned (job, &plan, plan.item[i].node,
                        procs_on (placement, svc->node_by_id[plan.item[i].node.v]->name)))
            a.item[a.count++] = plan.item[i];
    return a;
}

void native_started (struct svc *svc, struct site_job *job, const struct rm_event *event)
{
    char id[SITE_ID_MAX];
    struct err err = {0};
    struct job_id core_id = {job->rec.number};
    time_us now = svc_now (svc);
    uint32_t procs;
    struct allocation a = allocation_of (svc, job, event->placement, &procs);
    site_id (svc, job->rec.number, id);
    bool beside = mode_started_there (svc, job, event->placement, event->status->start);
    if (!beside)
        log_event (
            svc->log, LOG_LEVEL_WARN, "svc", "started_without_us",
            "job=%s rm_job=%s nodes=%s reason=\"somebody made the resource manager start a job "
            "that was not due; it is left running and will be charged\"",
            id, job->rm.rm_id, event->placement ? event->placement : "");
    if (cluster_job_start (svc->cluster, core_id, &a, event->status->start, now, &err) != 0 ||
        cluster_job_running (svc->cluster, core_id, event->status->start, now, &err) != 0)
        log_event (svc->log, LOG_LEVEL_WARN, "svc", "nodes_not_taken", "job=%s error=\"%s\"", id,
                   err.text);
    free (job->rec.placement);
    job->rec.placement = placement_text (svc, &a);
    if (procs)
        job->rec.procs = procs;
    job->rec.state = STORE_JOB_RUNNING;
    job->rec.start = event->status->start;
    svc_reason (job, "StartedElsewhere", "started at the resource manager, not by this scheduler");
    int rc = svc_begin (svc, &err);
    if (rc == 0)
        rc = svc_job_write (svc, job, true, NULL, 0, &err);
    if (rc == 0 && !beside)
        rc = local_store_audit (svc->store, now, "resource-manager", job->rec.reason_text, &err);
    svc_commit (svc, rc, &err);
    SVC_TELL (svc, job_started, (svc, job));
    pass_wake (svc);
}

void native_placed (struct svc *svc, struct site_job *job, const char *placement)
{
    struct err err = {0};
    struct job_id id = {job->rec.number};
    struct job_view view;
    uint32_t procs;
    char name[SITE_ID_MAX];
    time_us now = svc_now (svc);
    if (!job->in_cluster || job->rec.state != STORE_JOB_RUNNING)
        return;
    struct allocation a = allocation_of (svc, job, placement, &procs);
    char *text = placement_text (svc, &a);
    bool same = job->rec.placement && strcmp (text, job->rec.placement) == 0;
    if (job->rm.native && procs)
        same &= job->rec.procs == procs;
    if (same || a.count == 0) {
        free (text);
        return;
    }
    log_event (svc->log, LOG_LEVEL_INFO, "svc", "placed_otherwise", "job=%s planned=%s placed=%s",
               site_id (svc, job->rec.number, name), job->rec.placement ? job->rec.placement : "-",
               placement);
    if (cluster_job_get (svc->cluster, id, &view, NULL) == 0 && view.state != JOB_IDLE) {
        struct allocation planned = placement_parse (svc, job->rec.placement, svc->call_arena);
        if (cluster_job_requeue (svc->cluster, id, 0, now, &err) == 0 &&
            cluster_job_start (svc->cluster, id, &a, job->rec.start, now, &err) != 0)
            (void)cluster_job_start (svc->cluster, id, &planned, job->rec.start, now, NULL);
        (void)cluster_job_running (svc->cluster, id, job->rec.start, now, NULL);
    }
    free (job->rec.placement);
    job->rec.placement = text;
    if (job->rm.native && procs)
        job->rec.procs = procs;
    int rc = svc_begin (svc, &err);
    if (rc == 0)
        rc = svc_job_write (svc, job, false, NULL, 0, &err);
    svc_commit (svc, rc, &err);
}

void native_handed (struct svc *svc, struct site_job *job, const char *rm_id)
{
    struct err err = {0};
    job->rm = (struct store_rm_job){.submit = 0, .native = false};
    snprintf (job->rm.rm_id, sizeof job->rm.rm_id, "%s", rm_id);
    int rc = svc_begin (svc, &err);
    if (rc == 0)
        rc = local_store_rm_job_put (svc->store, job->rec.number, &job->rm, &err);
    svc_commit (svc, rc, &err);
}

int native_restore (struct svc *svc, struct site_job *job, struct err *err)
{
    int rc = local_store_rm_job_get (svc->store, job->rec.number, &job->rm, err);
    if (rc == ERR_NOT_FOUND)
        return 0;
    if (rc != 0 || !job->rm.native || !svc->rm.ops->bind)
        return rc;
    struct store_job_admin set;
    rc = local_store_job_admin_get (svc->store, job->rec.number, &set, err);
    job->batch_pushed = rc == 0 && (set.holds & HOLD_BATCH) && !(set.holds & HOLD_SYSTEM);
    bind_it (svc, job);
    return rc;
}

/* The resource manager has no such job. One that ran is taken to have used all it could. */
void native_unknown (struct svc *svc, struct site_job *job)
{
    struct err err = {0};
    struct rm_status status = {.ended = true, .end = RM_END_NODE_FAILURE};
    if (job->rec.state == STORE_JOB_STARTING && !job->rm.native) {
        if (life_launch (svc, job, &err) == 0) /* it was never handed over */
            return;
        status.end = RM_END_START_FAILED;
        text_printf (status.text, sizeof status.text, "%.250s", err.text);
    } else if (job->rec.state == STORE_JOB_RUNNING) {
        time_us last = job->rec.start + job->rec.walltime, now = svc_now (svc);
        status.started = true;
        status.start = job->rec.start;
        status.end_at = last < now ? last : now;
        snprintf (status.text, sizeof status.text,
                  "the resource manager has forgotten the job, and no record of its end was found");
    } else {
        status.end = RM_END_CANCELLED;
    }
    life_ended (svc, job, &status);
}

const struct svc_listener native_listener = {
    .recovered = native_recovered, .polled = native_poll, .job_requeued = native_bind_again};
