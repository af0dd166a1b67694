/* After a restart: all that the store has is taken up again. */
#include <stdlib.h>
#include <string.h>

#include "local/svc/caller.h"
#include "local/svc/coalloc/coalloc.h"
#include "local/svc/files/stageout.h"
#include "local/svc/files/staging.h"
#include "local/svc/job.h"
#include "local/svc/job/jobspec.h"
#include "local/svc/job/life.h"
#include "local/svc/native/native.h"
#include "local/svc/nodes.h"
#include "local/svc/pass.h"
#include "local/svc/resv/resv.h"
#include "local/svc/svc_i.h"

/* Chosen, but the bank has not answered: nothing of it runs anywhere. */
static bool awaits_hold (const struct store_job *rec)
{
    return !rec->part && rec->state == STORE_JOB_STARTING && rec->hold_asked;
}

static void recover_running (struct svc *svc, struct site_job *job)
{
    struct err err = {0};
    time_us now = svc_now (svc);
    struct job_id id = {job->rec.number};
    arena_reset (svc->call_arena);
    struct allocation a = placement_parse (svc, job->rec.placement, svc->call_arena);
    time_us started = job->rec.start ? evict_effective_start (job) : now;
    if (!job->in_cluster)
        return;
    if (job->rec.suspended_at && job->rec.state == STORE_JOB_RUNNING) {
        if (evict_restore (svc, job, &a, &err) != 0 ||
            changes_suspended_restore (svc, job, &err) != 0)
            log_event (svc->log, LOG_LEVEL_ERROR, "svc", "nodes_not_regained",
                       "job=%s.%llu error=\"%s\"", svc->site, (unsigned long long)job->rec.number,
                       err.text);
        return;
    }
    if (cluster_job_start (svc->cluster, id, &a, started, now, &err) != 0 ||
        (job->rec.state == STORE_JOB_RUNNING &&
         cluster_job_running (svc->cluster, id, started, now, &err) != 0) ||
        (job->rec.backfilled && cluster_job_backfilled_set (svc->cluster, id, now, &err) != 0)) {
        if (awaits_hold (&job->rec))
            return; /* its nodes are others' by now: recover_launches sends it back to the queue */
        log_event (svc->log, LOG_LEVEL_ERROR, "svc", "nodes_not_regained",
                   "job=%s.%llu error=\"%s\"", svc->site, (unsigned long long)job->rec.number,
                   err.text);
    }
}

/* A queued job's deferral, and the nodes it keeps after a failed start. */
static int recover_queued (struct svc *svc, const struct site_job *job, struct err *err)
{
    struct job_id id = {job->rec.number};
    time_us now = svc_now (svc), until = 0;
    struct err lost = {0};
    int rc = 0;
    if (job->rec.deferred_until > now)
        rc = cluster_job_defer (svc->cluster, id, job->rec.deferred_until, now, err);
    if (rc == 0)
        rc = local_store_retry_get (svc->store, job->rec.number, &until, err);
    if (rc != 0 || until <= now || !job->rec.placement)
        return rc;
    arena_reset (svc->call_arena);
    struct allocation a = placement_parse (svc, job->rec.placement, svc->call_arena);
    if (cluster_job_retry_keep (svc->cluster, id, &a, until, now, &lost) != 0)
        log_event (svc->log, LOG_LEVEL_WARN, "svc", "nodes_not_kept", "job=%s.%llu error=\"%s\"",
                   svc->site, (unsigned long long)job->rec.number, lost.text);
    return 0;
}

/* One job as it was when the daemon died. The store's record is taken over. */
int svc_job_recover (void *arg, struct store_job *rec, struct err *err)
{
    struct svc *svc = arg;
    struct jobspec spec;
    int rc = jobspec_load (svc, rec, &spec, err);
    if (rc != 0) {
        store_job_free (rec);
        return rc;
    }
    struct site_job *job = svc_job_add (svc, rec, &spec);
    if (!rec->part) /* of a part when it is known how far it came */
        staging_regain (svc, job, &spec);
    jobspec_free (&spec);
    rc = native_restore (svc, job, err);
    if (rc == 0 && rec->part) /* more with its part */
        return payqos_restore (svc, job, err);
    if (rc == 0)
        rc = depends_load (svc, job, err);
    if (rc == 0)
        rc = changes_sets_restore (svc, job, err);
    if (rc == 0)
        rc = payqos_restore (svc, job, err);
    if (rc == 0)
        rc = svc_cluster_submit (svc, job, err);
    if (rc == 0 && job->rec.state == STORE_JOB_QUEUED)
        rc = changes_restore (svc, job, err);
    if (rc != 0)
        return rc;
    if (job->rec.state == STORE_JOB_QUEUED)
        return recover_queued (svc, job, err);
    recover_running (svc, job);
    return 0;
}

/* Which of the records, in one of the rounds of recover_work. */
struct recovery {
    struct svc *svc;
    bool part, running, waiting;
};

static int recover_job (void *arg, struct store_job *rec, struct err *err)
{
    const struct recovery *r = arg;
    if (rec->part == r->part && awaits_hold (rec) == r->waiting)
        return svc_job_recover (r->svc, rec, err);
    store_job_free (rec);
    return 0;
}

static int recover_part (void *arg, struct store_part *rec, struct err *err)
{
    const struct recovery *r = arg;
    const struct site_job *job = svc_job (r->svc, rec->job);
    if (!job || (job->rec.state == STORE_JOB_RUNNING) == r->running)
        return coalloc_recover (r->svc, rec, err);
    store_part_free (rec);
    return 0;
}

/* What is promised before what runs: a job that is past its limit, of whose end nobody has told
 * yet, would seem to be in the way of whoever comes after it. Last is what only waits for the bank: its
 * nodes may have gone to others since they were chosen. */
static int recover_work (struct svc *svc, struct err *err)
{
    struct recovery parts = {.svc = svc, .part = true},
                    running = {.svc = svc, .part = true, .running = true}, ordinary = {.svc = svc},
                    waiting = {.svc = svc, .waiting = true};
    int rc = local_store_jobs_live (svc->store, recover_job, &parts, err);
    if (rc == 0)
        rc = local_store_parts_live (svc->store, recover_part, &parts, err);
    if (rc == 0)
        rc = local_store_jobs_live (svc->store, recover_job, &ordinary, err);
    if (rc == 0)
        rc = local_store_parts_live (svc->store, recover_part, &running, err);
    if (rc == 0)
        rc = local_store_jobs_live (svc->store, recover_job, &waiting, err);
    return rc;
}

static int recover_hold (void *arg, struct store_hold *hold, struct err *err)
{
    struct svc *svc = arg;
    (void)err;
    if (svc->bank)
        bank_link_hold (svc->bank, hold);
    return 0;
}

/* It waited for a bank that the configuration no longer names. */
static void forget_hold (struct svc *svc, struct site_job *job)
{
    struct err err = {0};
    int rc = svc_begin (svc, &err);
    if (rc == 0)
        rc = life_hold_return (svc, job, "the site has no bank", &err);
    if (rc == 0)
        rc = svc_job_write (svc, job, false, NULL, 0, &err);
    svc_commit (svc, rc, &err);
}

/* A refusal was taken in, and we died before what follows from it: the bank is asked anew. */
static void regain_hold (struct svc *svc, struct site_job *job)
{
    struct err err = {0};
    bool wanted = true;
    int rc = local_store_hold_wanted (svc->store, job->rec.hold_key, &wanted, &err);
    if (rc == 0 && !wanted)
        life_hold_again (svc, job, svc_begin (svc, &err), &err);
}

/* Jobs that the resource manager has, or should have, by now. */
static void recover_launches (struct svc *svc)
{
    struct site_job *job, *next;
    HASH_ITER (hh, svc->jobs, job, next) {
        struct err err = {0};
        char id[SITE_ID_MAX], mark[RM_MARK_MAX];
        if (job->rec.hold_asked && job->rec.state == STORE_JOB_STARTING && !svc->bank)
            forget_hold (svc, job);
        else if (awaits_hold (&job->rec) && life_too_late (svc, job))
            life_requeue (svc, job, 0, deferral_none);
        else if (awaits_hold (&job->rec))
            regain_hold (svc, job);
        bool due = job->rec.state == STORE_JOB_RUNNING ||
                   (job->rec.state == STORE_JOB_STARTING && !job->rec.hold_asked) ||
                   (job->rm.native && job->rec.stop == STORE_STOP_CANCEL);
        if (!due)
            continue;
        site_id (svc, job->rec.number, id);
        life_mark (svc, &job->rec, mark);
        int rc = job->rm.native
                     ? 0
                     : svc->rm.ops->adopt (svc->rm.self, id, job->rec.incarnation, mark, &err);
        if (rc == 0 && job->rm.native && job->rec.state == STORE_JOB_STARTING)
            rc = life_launch (svc, job, &err);
        if (rc == 0)
            rc = evict_recover (svc, job, &err);
        else if (rc == ERR_NOT_FOUND && job->part &&
                 svc_now (svc) > job->rec.launch_at + svc->settings->start_grace) {
            svc_reason (job, "NoShow", "the site was down when its group started");
            life_end_surely (svc, job, STORE_JOB_FAILED);
            continue;
        } else if (rc == ERR_NOT_FOUND && job->rec.state == STORE_JOB_RUNNING) {
            life_vanished (svc, job);
            continue;
        } else if (rc == ERR_NOT_FOUND && life_too_late (svc, job)) {
            life_requeue (svc, job, 0, deferral_none);
            continue;
        } else if (rc == ERR_NOT_FOUND && job->rec.state == STORE_JOB_STARTING) {
            life_launch_or_fail (svc, job); /* decided, but never handed over */
            continue;
        }
        log_event (svc->log, rc == 0 ? LOG_LEVEL_INFO : LOG_LEVEL_ERROR, "svc", "job_regained",
                   "job=%s incarnation=%u%s%s", id, job->rec.incarnation, rc ? " error=" : "",
                   rc ? err.text : "");
    }
}

/* What happened while nobody looked. */
static void recover_depends (struct svc *svc)
{
    struct site_job *job, *next;
    HASH_ITER (hh, svc->jobs, job, next)
        if (job->depends)
            depends_settle (svc, job);
}

int svc_recover (struct svc *svc, struct err *err)
{
    int rc = resv_recover (svc, err); /* first: what ran inside one does again */
    resv_standing_regain (svc);
    if (rc == 0)
        rc = resv_charge_recover (svc, err);
    if (rc == 0)
        rc = recover_work (svc, err);
    if (rc == 0)
        rc = local_store_holds (svc->store, recover_hold, svc, err);
    if (rc == 0)
        rc = stageout_recover (svc, err);
    if (rc != 0)
        return err_prefix (err, "recovery");
    recover_depends (svc);
    staging_recovered (svc);
    recover_launches (svc);
    SVC_TELL (svc, recovered, (svc));
    return 0;
}
