/* The pass: when it is made, slice by slice, and what its decisions lead to. Timers call it; what wants a pass says so
 * (pass_wake) and does not call it. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "local/svc/files/staging.h"
#include "local/svc/grid/grid.h"
#include "local/svc/job.h"
#include "local/svc/job/charge.h"
#include "local/svc/job/life.h"
#include "local/svc/memory/memory.h"
#include "local/svc/modes/modes.h"
#include "local/svc/native/native.h"
#include "local/svc/nodes.h"
#include "local/svc/pass.h"
#include "local/svc/resv/resv.h"
#include "local/svc/svc_i.h"
#include "proto/base/clock.h"

/* PASS_REST: so many times as long as a pass took is left to others before the next one. SLICE_US: so
 * long it goes on before calls are answered, in steps of STEP_JOBS (plan_step); longer, up to SLICE_MOST_US,
 * where these take their time, or a flood of calls would keep it from ever ending. GIVEN_UP_MAX: so often it
 * begins anew because something happened meanwhile; then it is made in one go. */
enum {
    STARTS_PER_TRANSACTION = 256,
    TOLD_PER_PASS = 500,
    PASS_REST = 2,
    SLICE_US = 5000,
    SLICE_MOST_US = 20000,
    STEP_JOBS = 256,
    GIVEN_UP_MAX = 3
};

/* The pass that is being made, slice by slice. */
struct passing {
    struct event *poll;
    bool again;             /* an event took back what was planned: from the beginning */
    bool poll_wanted;       /* the poll interval went by */
    uint32_t given_up;      /* how often it had to begin anew */
    time_us now;            /* its moment */
    duration_us begun;      /* monotonic */
    duration_us slice_over; /* monotonic: when the last slice was */
    duration_us took;       /* its own time, without what was done between the slices … */
    duration_us longest;    /* … and the longest slice of it */
    struct plan plan;
    struct arena *arena; /* what the plan holds */
    struct event *slice;
};

static void event_after (struct event *event, duration_us d)
{
    struct timeval t = {.tv_sec = d / US_PER_S, .tv_usec = d % US_PER_S};
    event_add (event, &t);
}

/* The hold a started job needs, durable with the decision; sent after the commit. */
struct started {
    struct site_job *job;
    struct store_hold hold;
};

static int start_write (struct svc *svc, const struct plan_start *start, struct started *out,
                        time_us now, struct err *err)
{
    struct site_job *job = svc_job (svc, start->job.v);
    out->job = job;
    free (job->rec.placement);
    job->rec.placement = placement_text (svc, &start->allocation);
    job->rec.state = STORE_JOB_STARTING;
    job->rec.backfilled = start->phase == PLAN_BACKFILL_SOFT || start->phase == PLAN_BACKFILL_HARD;
    job->rec.deferred_until = 0;
    job->dispatched = now;
    int rc = 0;
    if (charge_wanted (svc, job)) {
        svc_reason (job, "Starting", "waits for the bank's hold");
        rc = life_hold_prepare (svc, job, now, &out->hold, err);
    } else {
        svc_reason (job, "Launching", "the job is being launched");
        job->rec.port = job->rec.port ? job->rec.port : ports_choose (svc);
        ports_mark (svc, job->rec.port, true);
    }
    if (rc == 0)
        rc = svc_job_write (svc, job, true, NULL, 0, err);
    return rc;
}

/* The decision could not be made durable: as if it had not been taken, and not again at once. */
static void starts_undo (struct svc *svc, const struct plan *plan, uint32_t from, uint32_t to,
                         const char *why)
{
    struct err err = {0};
    time_us now = svc_now (svc);
    for (uint32_t i = from; i < to; i++) {
        struct site_job *job = svc_job (svc, plan->start[i].job.v);
        job->rec.state = STORE_JOB_QUEUED;
        job->rec.hold_asked = false;
        svc_reason (job, "StoreFailure", "%s", why);
        if (cluster_job_requeue (svc->cluster, plan->start[i].job, now + 10 * US_PER_S, now, &err))
            log_event (svc->log, LOG_LEVEL_ERROR, "pass", "requeue_failed", "error=\"%s\"",
                       err.text);
    }
}

/* The decision is durable: it is paid for, or launched. */
static void start_go (struct svc *svc, const struct started *started)
{
    if (charge_wanted (svc, started->job))
        bank_link_hold (svc->bank, &started->hold);
    else
        life_launch_or_fail (svc, started->job);
}

static void starts_do (struct svc *svc, const struct plan *plan)
{
    struct started list[STARTS_PER_TRANSACTION];
    for (uint32_t from = 0; from < plan->start_count; from += STARTS_PER_TRANSACTION) {
        struct err err = {0};
        uint32_t to = from + STARTS_PER_TRANSACTION < plan->start_count
                          ? from + STARTS_PER_TRANSACTION
                          : plan->start_count;
        memset (list, 0, sizeof list);
        int rc = svc_begin (svc, &err);
        for (uint32_t i = from; rc == 0 && i < to; i++)
            rc = start_write (svc, &plan->start[i], &list[i - from], plan->now, &err);
        rc = svc_commit (svc, rc, &err);
        if (rc != 0)
            starts_undo (svc, plan, from, to, err.text);
        for (uint32_t i = from; i < to; i++) {
            if (rc == 0) {
                char id[SITE_ID_MAX];
                SVC_TELL (svc, job_chosen, (svc, list[i - from].job, plan->now));
                log_event (svc->log, LOG_LEVEL_INFO, "pass", "job_chosen", "job=%s nodes=%s",
                           site_id (svc, list[i - from].job->rec.number, id),
                           list[i - from].job->rec.placement);
                start_go (svc, &list[i - from]);
            }
            store_hold_free (&list[i - from].hold);
        }
    }
}

int pass_start (struct svc *svc, struct site_job *job, const struct allocation *allocation,
                struct err *err)
{
    struct job_id id = {job->rec.number};
    struct plan_start start = {.job = id, .allocation = *allocation};
    struct plan plan = {.start_count = 1, .start = &start};
    struct started started = {0};
    time_us now = svc_now (svc);
    if (mode_may_start (svc, err) != 0)
        return err->code;
    if (!staging_ready (job))
        return err_set (err, ERR_CONFLICT, "%s", staging_text (job, svc->call_arena));
    stats_settle (svc);
    int rc = cluster_job_start (svc->cluster, id, allocation, now, now, err);
    if (rc != 0)
        return rc;
    rc = svc_begin (svc, err);
    if (rc == 0)
        rc = start_write (svc, &start, &started, now, err);
    rc = svc_commit (svc, rc, err);
    if (rc != 0)
        starts_undo (svc, &plan, 0, 1, err->text);
    else {
        SVC_TELL (svc, job_chosen, (svc, job, now));
        start_go (svc, &started);
    }
    store_hold_free (&started.hold);
    return rc;
}

/* Metaschedulers hear why a grid job waits when the code of the reason changes. */
static void reasons_tell (struct svc *svc, const struct plan *plan)
{
    struct err err = {0};
    uint32_t told = 0;
    int rc = 0;
    bool open = false;
    for (uint32_t i = 0; rc == 0 && i < plan->reason_count && told < TOLD_PER_PASS; i++) {
        struct site_job *job = svc_job (svc, plan->reason[i].job.v);
        const char *code = reason_code_name ((enum reason_code)plan->reason[i].reason.code);
        if (!job || job->rec.state != STORE_JOB_QUEUED || !*job->rec.grid_job_id ||
            job->rec.deferred_until > plan->now || strcmp (job->told_reason, code) == 0 ||
            (plan->reason[i].reason.code == REASON_HOLD &&
             deferral_holds (job, (uint32_t)plan->reason[i].reason.need)))
            continue;
        if (!open)
            rc = svc_begin (svc, &err);
        open = true;
        *job->rec.reason_code = 0; /* what the core says counts again */
        if (rc == 0)
            rc = svc_job_write (svc, job, true, NULL, 0, &err);
        told++;
    }
    if (open)
        svc_commit (svc, rc, &err);
}

/* Leaves in the plan what was committed and is new; suspended jobs go on. */
static void starts_keep (struct svc *svc, struct plan *plan)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < plan->start_count; i++) {
        if (plan->start[i].refused)
            continue;
        if (plan->start[i].phase == PLAN_RESUMED)
            evict_resume (svc, svc_job (svc, plan->start[i].job.v));
        else
            plan->start[kept++] = plan->start[i];
    }
    plan->start_count = kept;
}

/* When these are gone, the job they make room for is the first to start. */
static void preempts_do (struct svc *svc, const struct plan *plan)
{
    for (uint32_t i = 0; i < plan->preempt_count; i++) {
        struct err err = {0};
        char id[SITE_ID_MAX];
        struct site_job *job = svc_job (svc, plan->preempt[i].v);
        if (job && life_preempt (svc, job, &err) != 0)
            log_event (svc->log, LOG_LEVEL_ERROR, "pass", "preempt_failed", "job=%s error=\"%s\"",
                       site_id (svc, job->rec.number, id), err.text);
    }
}

/* --- the pass ------------------------------------------------------------------------------- */

/* What comes before the plan. False: nothing is to be scheduled now. */
static bool pass_prepare (struct svc *svc)
{
    struct passing *p = svc->passing;
    svc_clock_settle (svc);
    time_us now = p->now = svc_now (svc);
    life_parts_settle (svc);
    stats_advance (svc, now);
    /* Nothing is decided by what the resource manager said long ago. */
    bool stale = svc->rm.ops->fresh && !svc->rm.ops->fresh (svc->rm.self);
    if (stale || schedule_stopped (&svc->schedule, now)) {
        if (!stale)
            mirror_settle (svc);
        if (svc->meta)
            meta_link_poke (svc->meta);
        return false;
    }
    if (!svc->mode) /* which act on what a plan says, if at all */
        evict_lost_nodes (svc);
    if (!p->arena)
        p->arena = arena_create (0);
    arena_reset (p->arena);
    lapse_depends (svc);
    staging_settle (svc);
    usage_nodes (svc, p->arena);
    resv_standing_roll (svc, now);
    return true;
}

/* Acts on what was committed. */
static void plan_do (struct svc *svc, struct plan *plan)
{
    starts_keep (svc, plan);
    starts_do (svc, plan);
    preempts_do (svc, plan);
    evict_violations (svc, plan);
    deferral_plan (svc, plan);
    lapse_plan (svc, plan);
    reasons_tell (svc, plan);
}

static int plan_take (struct svc *svc, struct plan *plan, struct err *err)
{
    for (uint32_t i = 0; i < plan->start_count; i++) {
        const struct site_job *job = svc_job (svc, plan->start[i].job.v);
        if (!job || !staging_ready (job)) /* a part's job is started by its START alone */
            plan->start[i].refused = true;
    }
    mode_filter (svc, plan);
    gridpolicy_starts (svc, plan);
    int rc = plan_commit (svc->cluster, plan, err);
    if (rc == 0)
        gridpolicy_defer (svc, plan);
    return rc;
}

static void failed (struct svc *svc, const struct err *err)
{
    log_event (svc->log, LOG_LEVEL_ERROR, "pass", "failed", "error=\"%s\"", err->text);
}

/* The plan is made: it is committed and acted on. */
static void pass_finish (struct svc *svc)
{
    struct passing *p = svc->passing;
    struct plan *plan = &p->plan;
    struct err err = {0};
    duration_us begun = clock_monotonic_us ();
    svc->pass_at = p->now;
    if (plan_take (svc, plan, &err) != 0)
        failed (svc, &err);
    else
        plan_do (svc, plan);
    svc->pass_took = p->took + clock_monotonic_us () - begun;
    SVC_TELL (svc, pass_done, (svc));
    if (svc->meta)
        meta_link_poke (svc->meta);
    duration_us over = clock_monotonic_us ();
    p->took += over - begun;
    p->longest = over - begun > p->longest ? over - begun : p->longest;
    svc->pass_gap = over - p->begun + PASS_REST * p->took;
    if (err.code == 0)
        log_event (svc->log, LOG_LEVEL_DEBUG, "pass", "done",
                   "starts=%u reservations=%u considered=%u us=%lld longest_us=%lld given_up=%u",
                   plan->start_count, plan->reservation_count, plan->considered, (long long)p->took,
                   (long long)p->longest, p->given_up);
    if (svc->sim) /* which keeps its own time */
        return;
    svc->schedule.iteration++;
    time_us next = cluster_next_wakeup (svc->cluster, p->now);
    if (next != TIME_US_MAX && next - p->now < svc->settings->policy->poll_interval)
        event_after (svc->pass_event, next > p->now ? next - p->now : US_PER_S / 100);
}

void pass_run (struct svc *svc)
{
    struct passing *p = svc->passing;
    struct err err = {0};
    p->begun = clock_monotonic_us ();
    p->took = p->longest = 0;
    if (!pass_prepare (svc))
        return;
    if (plan_compute (svc->cluster, p->now, p->arena, &p->plan, &err) == 0)
        pass_finish (svc);
    else
        failed (svc, &err);
}

/* --- in slices -------------------------------------------------------------------------------- */

/* There is no pass any more: what has waited for that. */
static void pass_over (struct svc *svc)
{
    struct passing *p = svc->passing;
    svc->pass_under_way = false;
    rm_events_release (svc);
    if (p->poll_wanted)
        event_after (svc->passing->poll, 0);
    if (svc->pass_wanted)
        pass_wake (svc);
}

static int slice_begin (struct svc *svc, bool *more, struct err *err)
{
    struct passing *p = svc->passing;
    p->again = false;
    *more = pass_prepare (svc);
    return *more ? plan_begin (svc->cluster, p->now, p->arena, &p->plan, err) : 0;
}

/* Half as long as the others had since the last slice, within bounds. */
static duration_us slice_length (const struct passing *p, duration_us now)
{
    duration_us fair = (now - p->slice_over) / PASS_REST;
    if (p->given_up == GIVEN_UP_MAX)
        return TIME_US_MAX;
    return fair < SLICE_US ? SLICE_US : fair > SLICE_MOST_US ? SLICE_MOST_US : fair;
}

/* Some steps, and then the others' turn. */
static void slice_go (struct svc *svc)
{
    struct passing *p = svc->passing;
    struct err err = {0};
    duration_us begun = clock_monotonic_us (), length = slice_length (p, begun), spent;
    bool more = true;
    int rc = 0;
    if (p->again && (rc = slice_begin (svc, &more, &err)) == 0 && !more) {
        pass_over (svc);
        return;
    }
    while (rc == 0 && more && clock_monotonic_us () - begun < length)
        rc = plan_step (svc->cluster, STEP_JOBS, &more, &err);
    spent = clock_monotonic_us () - begun;
    p->took += spent;
    p->longest = spent > p->longest ? spent : p->longest;
    if (rc == ERR_CONFLICT) {
        p->again = true;
        p->given_up++;
    } else if (rc != 0) {
        failed (svc, &err);
    } else if (!more) {
        pass_finish (svc);
    }
    p->slice_over = clock_monotonic_us ();
    if (more && (rc == 0 || p->again))
        event_after (p->slice, 0);
    else
        pass_over (svc);
}

static void on_slice (evutil_socket_t fd, short what, void *arg)
{
    struct svc *svc = arg;
    (void)fd;
    (void)what;
    if (!svc->closing && svc->pass_under_way)
        slice_go (svc);
}

static void pass_begin (struct svc *svc)
{
    struct passing *p = svc->passing;
    if (svc->pass_under_way || svc->closing)
        return;
    SVC_TELL (svc, pass_begins, (svc));
    svc->pass_under_way = p->again = true;
    svc->pass_wanted = p->poll_wanted = false;
    p->given_up = 0;
    p->begun = p->slice_over = clock_monotonic_us ();
    p->took = p->longest = 0;
    slice_go (svc);
}

static void on_pass (evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    pass_begin (arg);
}

static void on_poll (evutil_socket_t fd, short what, void *arg)
{
    struct svc *svc = arg;
    struct err err = {0};
    (void)fd;
    (void)what;
    if (svc->pass_under_way) {
        svc->passing->poll_wanted = true;
        return;
    }
    if (svc->rm.ops->poll (svc->rm.self, &err) != 0)
        log_event (svc->log, LOG_LEVEL_WARN, "rm", "poll_failed", "error=\"%s\"", err.text);
    SVC_TELL (svc, polled, (svc));
    pass_begin (svc);
    event_after (svc->passing->poll, svc->settings->policy->poll_interval);
}

void pass_init (struct svc *svc)
{
    if (!svc->passing) {
        svc->passing = calloc (1, sizeof *svc->passing);
        assert (svc->passing && "out of memory");
        svc->pass_event = evtimer_new (svc->base, on_pass, svc);
        svc->passing->poll = evtimer_new (svc->base, on_poll, svc);
        svc->passing->slice = evtimer_new (svc->base, on_slice, svc);
    }
    if (svc->sim)
        return;
    event_after (svc->passing->poll, svc->settings->policy->poll_interval);
}

void pass_close (struct svc *svc)
{
    if (!svc->passing)
        return;
    event_free (svc->pass_event);
    event_free (svc->passing->poll);
    event_free (svc->passing->slice);
    arena_destroy (svc->passing->arena);
    free (svc->passing);
}
