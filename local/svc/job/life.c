/* A job's life: it starts, ends, goes back to the queue, is cancelled. What has happened is durable, with its charge and
 * its place in history, before the core and the other rooms hear of it; what cannot be written stops the daemon, which
 * finds it again. Called with what the resource manager, the bank or a caller wants of a job; it calls none of them back. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "local/svc/job.h"
#include "local/svc/job/charge.h"
#include "local/svc/job/life.h"
#include "local/svc/memory/memory.h"
#include "local/svc/nodes.h"
#include "local/svc/svc_i.h"

/* --- ends --------------------------------------------------------------------------------- */

/* What the core knows of a job or its reservation goes; so does the live record. */
void life_drop (struct svc *svc, struct site_job *job)
{
    struct err err = {0};
    time_us now = svc_now (svc);
    struct job_id id = {job->rec.number};
    uint64_t number = job->rec.number;
    stats_settle (svc);
    if (job->in_cluster) {
        struct job_view view;
        int rc = cluster_job_get (svc->cluster, id, &view, &err);
        if (rc == 0 && view.state == JOB_IDLE)
            rc = cluster_job_remove (svc->cluster, id, now, &err);
        else if (rc == 0)
            rc = cluster_job_end (svc->cluster, id, now, &err);
        if (rc != 0)
            log_event (svc->log, LOG_LEVEL_ERROR, "svc", "core_disagrees", "error=\"%s\"",
                       err.text);
    }
    if (job->part) {
        if (job->part->rsv &&
            cluster_rsv_release (svc->cluster, (struct rsv_id){number}, now, &err) != 0)
            log_event (svc->log, LOG_LEVEL_ERROR, "svc", "core_disagrees", "error=\"%s\"",
                       err.text);
        svc_part_forget (svc, job->part);
    }
    svc_job_forget (svc, job);
    SVC_TELL (svc, job_ended, (svc, number));
    depends_happened (svc, number);
    pass_wake (svc);
}

/* In a transaction: the part's row follows its job's end. */
static int part_close (struct svc *svc, struct site_job *job, struct err *err)
{
    if (!job->part)
        return 0;
    if (job->part->rec.state <= STORE_PART_FIRM)
        job->part->rec.state = STORE_PART_RELEASED;
    return local_store_part_put (svc->store, &job->part->rec, err);
}

int life_end_unstarted (struct svc *svc, struct site_job *job, enum store_job_state state,
                        struct err *err)
{
    struct err local = {0};
    char id[SITE_ID_MAX];
    struct store_job before = job->rec; /* to go back to when the disk says no */
    err = err ? err : &local;
    /* A part that was never firm is not told of: nobody was promised anything. */
    bool tell = !job->part || job->rec.ever_told;
    job->rec.state = state;
    job->rec.end = svc_now (svc);
    int rc = svc_begin (svc, err);
    if (rc == 0)
        rc = life_hold_return (svc, job, job->rec.reason_code, err);
    if (rc == 0)
        rc = part_close (svc, job, err);
    if (tell)
        SVC_TRY (svc, rc, job_ends,
                 (svc, job, &(struct job_end){.how = JOB_NEVER_RAN, .cpu = -1}, err));
    if (rc == 0)
        rc = svc_job_write (svc, job, tell, NULL, 0, err);
    rc = svc_commit (svc, rc, err);
    if (rc != 0) {
        job->rec = before;
        return rc;
    }
    log_event (svc->log, LOG_LEVEL_INFO, "svc", "job_ended_unstarted", "job=%s reason=%s",
               site_id (svc, job->rec.number, id), job->rec.reason_code);
    bank_link_poke (svc->bank);
    life_drop (svc, job);
    return 0;
}

/* It ended while it was suspended. */
static void halt_close (struct site_job *job)
{
    duration_us longest = job->rec.end - job->rec.start;
    time_us since = job->suspended ? job->suspended_since : job->rec.suspended_at;
    if (since && job->rec.end > since)
        job->rec.halted += job->rec.end - since;
    job->suspended = false;
    job->rec.suspended_at = 0;
    if (job->rec.halted > longest)
        job->rec.halted = longest;
}

/* A job that ran. */
static void end_started (struct svc *svc, struct site_job *job, const struct rm_status *status)
{
    struct err err = {0};
    char id[SITE_ID_MAX];
    struct job_end end = {.how = JOB_RAN, .cpu = status->cpu_known ? status->cpu_time : -1};
    site_id (svc, job->rec.number, id);
    job->rec.start = status->start;
    job->rec.end = status->end_at > status->start ? status->end_at : status->start;
    job->rec.exit_code = status->exit_code;
    halt_close (job);
    switch (status->end) {
    case RM_END_EXITED:
        job->rec.state = status->exit_code == 0 ? STORE_JOB_COMPLETED : STORE_JOB_FAILED;
        svc_reason (job, status->exit_code ? "ExitCode" : "", "%s",
                    status->exit_code ? "the job ended with an exit code other than 0" : "");
        break;
    case RM_END_TIMEOUT:
        job->rec.state = STORE_JOB_TIMEOUT;
        svc_reason (job, "WallclockLimit", "the job was ended at its wallclock limit");
        break;
    case RM_END_CANCELLED:
        job->rec.state =
            job->rec.stop == STORE_STOP_LIMIT ? STORE_JOB_TIMEOUT : STORE_JOB_CANCELLED;
        if (job->rec.stop == STORE_STOP_LIMIT)
            break;
        if (job->rec.stop != STORE_STOP_CANCEL)
            svc_reason (job, "Cancelled", "cancelled");
        break;
    case RM_END_OUTPUT:
        job->rec.state = STORE_JOB_FAILED;
        svc_reason (job, "OutputLimit", "%s", status->text);
        break;
    case RM_END_SIGNALLED:
        job->rec.state = STORE_JOB_FAILED;
        svc_reason (job, "Signal", "ended by signal %d", status->exit_code - 128);
        break;
    default:
        job->rec.state = STORE_JOB_FAILED;
        svc_reason (job, "NodeFailure", "%s", status->text);
        break;
    }
    usage_final (svc, job, status);
    int rc = svc_begin (svc, &err);
    if (rc == 0)
        rc = charge_job (svc, job, job->rec.end, status->cpu_known ? status->cpu_time : 0, true,
                         &err);
    if (rc == 0)
        rc = part_close (svc, job, &err);
    SVC_TRY (svc, rc, job_ends, (svc, job, &end, &err));
    if (rc == 0)
        rc = svc_job_write (svc, job, true, NULL, 0, &err);
    rc = svc_commit (svc, rc, &err);
    if (rc != 0) {
        /* Nothing is lost: the end is in the job's directory and found again after a restart. The
         * daemon cannot go on with a job whose charge it cannot write down. */
        err_prefix (&err, "end of job %s", id);
        daemon_stop (svc->daemon, &err);
        return;
    }
    log_event (svc->log, LOG_LEVEL_INFO, "svc", "job_ended", "job=%s how=%s exit_code=%d s=%lld",
               id, rm_end_name (status->end), job->rec.exit_code,
               (long long)((job->rec.end - job->rec.start) / US_PER_S));
    bank_link_poke (svc->bank);
    life_drop (svc, job);
}

/* In a transaction: how long its nodes will be kept for it (RESERVATIONRETRYTIME), as the core will
 * have it once it is requeued; so that a restart keeps them too. */
static int retry_write (struct svc *svc, const struct site_job *job, struct err *err)
{
    duration_us kept = svc->settings->policy->reservation_retry;
    struct job_view view;
    bool keeps =
        kept > 0 && job->in_cluster &&
        cluster_job_get (svc->cluster, (struct job_id){job->rec.number}, &view, NULL) == 0 &&
        view.state == JOB_STARTING && view.spec->reservation.v == 0;
    if (kept <= 0)
        return 0;
    return local_store_retry_put (svc->store, job->rec.number, keeps ? svc_now (svc) + kept : 0,
                                  err);
}

bool life_has_nodes (const struct svc *svc, const struct site_job *job)
{
    struct job_view view;
    return job->in_cluster &&
           cluster_job_get (svc->cluster, (struct job_id){job->rec.number}, &view, NULL) == 0 &&
           view.state != JOB_IDLE;
}

void life_requeue (struct svc *svc, struct site_job *job, time_us until, struct deferral deferral)
{
    struct err err = {0};
    job->rec.state = STORE_JOB_QUEUED;
    job->rec.deferred_until = until;
    job->rec.start = 0;
    job->rec.backfilled = false;
    bool other_qos = job->payqos;
    int rc = svc_begin (svc, &err);
    if (rc == 0)
        rc = payqos_drop (svc, job, &err);
    if (rc == 0)
        rc = deferral_write (svc, job, deferral, &err);
    if (rc == 0)
        rc = retry_write (svc, job, &err);
    if (rc == 0)
        rc = life_hold_return (svc, job, job->rec.reason_code, &err);
    if (rc == 0)
        rc = svc_job_write (svc, job, true, NULL, 0, &err);
    rc = svc_commit (svc, rc, &err);
    if (rc != 0) {
        daemon_stop (svc->daemon, &err);
        return;
    }
    bank_link_poke (svc->bank);
    stats_settle (svc);
    if ((life_has_nodes (svc, job) &&
         cluster_job_requeue (svc->cluster, (struct job_id){job->rec.number},
                              job->rec.deferred_until, svc_now (svc), &err) != 0) ||
        (other_qos && svc_cluster_modify (svc, job, &err) != 0))
        log_event (svc->log, LOG_LEVEL_ERROR, "svc", "core_disagrees", "error=\"%s\"", err.text);
    if (deferral.batch_hold)
        deferral_apply (svc, job, deferral);
    SVC_TELL (svc, job_requeued, (svc, job));
    pass_wake (svc);
}

void life_end_surely (struct svc *svc, struct site_job *job, enum store_job_state state)
{
    struct err err = {0};
    if (life_end_unstarted (svc, job, state, &err) != 0)
        daemon_stop (svc->daemon, &err);
}

/* It never began: RM refused, or its process could not be made. */
static void start_failed (struct svc *svc, struct site_job *job, enum defer_reason why,
                          const char *text)
{
    const struct policy *policy = svc->settings->policy;
    char id[SITE_ID_MAX];
    job->rec.start_failures++;
    log_event (svc->log, LOG_LEVEL_WARN, "svc", "start_failed", "job=%s failures=%u error=\"%s\"",
               site_id (svc, job->rec.number, id), job->rec.start_failures, text);
    svc_reason (job, defer_reason_name (why), "could not be started: %s", text);
    if (job->part || job->rec.stop == STORE_STOP_CANCEL) {
        life_end_surely (svc, job, STORE_JOB_FAILED);
        return;
    }
    struct deferral d =
        defer_start_failed (policy, job->rec.start_failures, job->rec.defer_count, svc_now (svc));
    job->rec.incarnation++; /* a new directory, a new hold */
    life_requeue (svc, job, deferral_retry_at (svc, 5 * US_PER_S), d);
}

/* It never began, and would not another time either: its owner hears why, at once, and pays nothing. */
static void end_mistaken (struct svc *svc, struct site_job *job, const char *text)
{
    char id[SITE_ID_MAX], quoted[600];
    log_event (svc->log, LOG_LEVEL_INFO, "svc", "job_mistaken", "job=%s reason=%s",
               site_id (svc, job->rec.number, id), log_quote (text, quoted, sizeof quoted));
    svc_reason (job, "BadJob", "%s", text);
    job->rec.start = 0; /* Slurm may have said otherwise at first */
    life_end_surely (svc, job, STORE_JOB_FAILED);
}

void life_launch_or_fail (struct svc *svc, struct site_job *job)
{
    struct err err = {0};
    int rc = life_launch (svc, job, &err);
    if (rc == ERR_INVALID)
        end_mistaken (svc, job, err.text);
    else if (rc != 0)
        start_failed (svc, job, rc == ERR_DENIED ? DEFER_RM_REJECT : DEFER_RM_FAILURE, err.text);
}

/* --- starts ------------------------------------------------------------------------------- */

int life_part_occupy (struct svc *svc, struct site_job *job, time_us started, struct err *err)
{
    time_us now = svc_now (svc);
    struct job_id id = {job->rec.number};
    int rc = job->in_cluster ? 0 : svc_cluster_submit (svc, job, err);
    if (rc != 0)
        return rc;
    arena_reset (svc->call_arena);
    struct allocation a = placement_parse (svc, job->rec.placement, svc->call_arena);
    stats_settle (svc);
    rc = cluster_job_start (svc->cluster, id, &a, started, now, err);
    if (rc != 0) {
        /* A job before it is still ending (KILLGRACE): the reservation keeps the nodes for us. */
        struct err again = {0};
        if (cluster_job_remove (svc->cluster, id, now, &again) == 0)
            job->in_cluster = false;
        return rc;
    }
    if (job->part->rsv && cluster_rsv_release (svc->cluster, (struct rsv_id){id.v}, now, err) == 0)
        job->part->rsv = false;
    return 0;
}

void life_parts_settle (struct svc *svc)
{
    struct site_part *part, *next;
    HASH_ITER (hh, svc->parts, part, next) {
        struct site_job *job = part->job;
        struct err err = {0};
        if (job->rec.state == STORE_JOB_RUNNING && !job->in_cluster &&
            life_part_occupy (svc, job, job->rec.start, &err) == 0 &&
            cluster_job_running (svc->cluster, (struct job_id){job->rec.number}, job->rec.start,
                                 svc_now (svc), &err) != 0)
            log_event (svc->log, LOG_LEVEL_ERROR, "svc", "core_disagrees", "error=\"%s\"",
                       err.text);
    }
}

void life_started (struct svc *svc, struct site_job *job, time_us started)
{
    struct err err = {0};
    struct job_id id = {job->rec.number};
    char text[SITE_ID_MAX];
    int rc = 0;
    if (job->part && job->rec.state != STORE_JOB_RUNNING)
        rc = life_part_occupy (svc, job, started, &err);
    if (rc == ERR_CONFLICT) {
        log_event (svc->log, LOG_LEVEL_WARN, "svc", "nodes_still_busy", "job=%s error=\"%s\"",
                   site_id (svc, job->rec.number, text), err.text);
        rc = 0; /* its reservation stands for it until then: life_parts_settle */
    }
    if (rc == 0 && job->in_cluster && job->rec.state != STORE_JOB_RUNNING)
        rc = cluster_job_running (svc->cluster, id, started, svc_now (svc), &err);
    if (rc != 0)
        log_event (svc->log, LOG_LEVEL_ERROR, "svc", "core_disagrees", "job=%s error=\"%s\"",
                   site_id (svc, job->rec.number, text), err.text);
    if (job->rec.state == STORE_JOB_RUNNING)
        return; /* known before a restart */
    job->rec.state = STORE_JOB_RUNNING;
    job->rec.start = started;
    job->rec.start_failures = 0;
    svc_reason (job, "", "%s", "");
    rc = svc_begin (svc, &err);
    if (rc == 0)
        rc = svc_job_write (svc, job, true, NULL, 0, &err);
    svc_commit (svc, rc, &err); /* on failure: told again by the runner after a restart */
    log_event (svc->log, LOG_LEVEL_INFO, "svc", "job_started", "job=%s nodes=%s",
               site_id (svc, job->rec.number, text), job->rec.placement);
    depends_happened (svc, job->rec.number);
    SVC_TELL (svc, job_started, (svc, job));
    pass_wake (svc);
}

/* The plan sent it back to the queue (life_preempt). What it used is charged; then it is another
 * incarnation, with a hold of its own when it starts again. */
static void end_preempted (struct svc *svc, struct site_job *job, const struct rm_status *status)
{
    struct err err = {0};
    char id[SITE_ID_MAX];
    bool other_qos = job->payqos;
    usage_final (svc, job, status);
    int rc = svc_begin (svc, &err);
    job->rec.start = status->start;
    job->rec.end = status->end_at > status->start ? status->end_at : status->start;
    job->rec.state = STORE_JOB_CANCELLED; /* for the charge: this incarnation did not succeed */
    halt_close (job);
    if (rc == 0)
        rc = charge_job (svc, job, job->rec.end, status->cpu_known ? status->cpu_time : 0, true,
                         &err);
    SVC_TRY (svc, rc, job_ends,
             (svc, job, &(struct job_end){.how = JOB_RUNS_AGAIN, .cpu = -1}, &err));
    job->rec.state = STORE_JOB_QUEUED;
    job->rec.start = job->rec.end = 0;
    job->rec.suspended_at = job->rec.halted = 0;
    job->rec.backfilled = false;
    job->rec.stop = STORE_STOP_NONE;
    job->rec.incarnation++;
    *job->rec.hold_id = 0;
    job->rec.amount = 0;
    job->charge_at = 0;
    job->cpu_used = 0;
    job->memory_most_mb = 0;
    if (rc == 0)
        rc = payqos_drop (svc, job, &err);
    if (rc == 0)
        rc = svc_job_write (svc, job, true, NULL, 0, &err);
    if (svc_commit (svc, rc, &err) != 0) { /* found again after a restart, as in end_started */
        daemon_stop (svc->daemon, &err);
        return;
    }
    log_event (svc->log, LOG_LEVEL_INFO, "svc", "job_preempted", "job=%s incarnation=%u",
               site_id (svc, job->rec.number, id), job->rec.incarnation);
    bank_link_poke (svc->bank);
    stats_settle (svc);
    if (cluster_job_preempt (svc->cluster, (struct job_id){job->rec.number}, svc_now (svc), &err) !=
            0 ||
        (other_qos && svc_cluster_modify (svc, job, &err) != 0))
        log_event (svc->log, LOG_LEVEL_ERROR, "svc", "core_disagrees", "error=\"%s\"", err.text);
    SVC_TELL (svc, job_requeued, (svc, job));
    pass_wake (svc);
}

bool life_requeues_lost (const struct svc *svc, const struct site_job *job)
{
    return svc->settings->node_failure == NODE_FAILURE_REQUEUE && !job->part &&
           !(job->core_flags & JOB_NORESTART) && job->rec.stop != STORE_STOP_CANCEL;
}

void life_ended (struct svc *svc, struct site_job *job, const struct rm_status *status)
{
    bool preempted = (job->rec.stop == STORE_STOP_PREEMPT && status->end == RM_END_CANCELLED) ||
                     status->end == RM_END_REQUEUED;
    bool violated = status->end == RM_END_TIMEOUT && !job->part && !job->rm.native &&
                    job->rec.stop != STORE_STOP_CANCEL && !(job->core_flags & JOB_NORESTART) &&
                    svc->settings->policy->wcviolation_action == WCVIOLATION_PREEMPT;
    bool lost =
        status->end == RM_END_NODE_FAILURE && !job->rm.native && life_requeues_lost (svc, job);
    if (lost)
        svc_reason (job, "NodeFailure", "sent back to the queue: %s", status->text);
    else if (violated && !preempted)
        svc_reason (job, "WallclockLimit", "sent back to the queue at its limit");
    preempted = preempted || violated || lost;
    if (preempted && status->start) {
        end_preempted (svc, job, status);
    } else if (preempted) {
        job->rec.stop = STORE_STOP_NONE;
        job->rec.incarnation++;
        life_requeue (svc, job, 0, deferral_none);
    } else if (status->start) {
        end_started (svc, job, status);
    } else if (status->end == RM_END_CANCELLED) {
        if (job->rec.stop != STORE_STOP_CANCEL)
            svc_reason (job, "Cancelled", "cancelled before it began");
        life_end_surely (svc, job, STORE_JOB_CANCELLED);
    } else if (status->end == RM_END_MISTAKE) {
        end_mistaken (svc, job, status->text);
    } else {
        start_failed (svc, job, status->end == RM_END_REFUSED ? DEFER_RM_REJECT : DEFER_RM_FAILURE,
                      status->text);
    }
}

void life_vanished (struct svc *svc, struct site_job *job)
{
    struct rm_status lost = {.started = true,
                             .ended = true,
                             .start = job->rec.start,
                             .end_at = job->rec.start,
                             .end = RM_END_NODE_FAILURE,
                             .exit_code = 255};
    snprintf (lost.text, sizeof lost.text,
              "nothing of its run is there any more: its directory is gone, or another job's");
    life_ended (svc, job, &lost);
}

/* --- cancel ------------------------------------------------------------------------------- */

int life_cancel (struct svc *svc, struct site_job *job, const char *code, const char *text,
                 struct err *err)
{
    char id[SITE_ID_MAX];
    bool at_rm = job->rec.state == STORE_JOB_RUNNING ||
                 (job->rec.state == STORE_JOB_STARTING && !job->rec.hold_asked);
    svc_reason (job, code, "%s", text);
    if (!at_rm && job->rm.native) { /* it waits there, too: it ends when it has ended there */
        struct job_view view;
        if (job->in_cluster &&
            cluster_job_get (svc->cluster, (struct job_id){job->rec.number}, &view, err) == 0 &&
            view.state == JOB_IDLE &&
            cluster_job_remove (svc->cluster, (struct job_id){job->rec.number}, svc_now (svc),
                                err) == 0)
            job->in_cluster = false; /* not started meanwhile */
    } else if (!at_rm) {
        if (job->part && job->part->rec.state < STORE_PART_FIRM)
            job->part->rec.state = STORE_PART_ABORTED;
        return life_end_unstarted (svc, job, STORE_JOB_CANCELLED, err);
    }
    job->rec.stop = STORE_STOP_CANCEL;
    int rc = svc_begin (svc, err);
    if (rc == 0)
        rc = svc_job_write (svc, job, true, NULL, 0, err);
    rc = svc_commit (svc, rc, err);
    if (rc == 0)
        rc = svc->rm.ops->cancel (svc->rm.self, site_id (svc, job->rec.number, id),
                                  job->rec.incarnation, err);
    return rc == ERR_NOT_FOUND ? 0 : rc; /* it has just ended; its event is on the way */
}
