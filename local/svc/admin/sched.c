/* schedctl: how far scheduling goes, and the end of the daemon. */
#include "local/svc/admin/admin.h"
#include "local/svc/caller.h"
#include "local/svc/job/jobs.h"
#include "local/svc/modes/modes.h"
#include "local/svc/svc_i.h"

enum { ACTS_MAX = 1000 };

#define ACT(name) NUI__LOCAL__V1__SCHEDULE_REQUEST__ACT__##name

/* What the audit log says of how far: iterations, a moment, or for how long. */
static char *count_text (const Nui__Local__V1__ScheduleRequest *r, char out[QUANTITY_TEXT_MAX])
{
    if (r->at_us)
        return time_format_iso (r->at_us, out);
    if (r->for_us)
        return duration_format (r->for_us, out);
    snprintf (out, QUANTITY_TEXT_MAX, "%llu", (unsigned long long)r->count);
    return out;
}

static int act_check (const Nui__Local__V1__ScheduleRequest *r, const struct admin_caller *caller,
                      struct err *err)
{
    if (r->act == ACT (STATUS))
        return admin_require (caller, ADMIN_INFO, "the scheduler's state", err);
    int rc = admin_require (caller, ADMIN_FULL, "steering the scheduler", err);
    if (rc == 0 && (r->act < ACT (STATUS) || r->act > ACT (RECYCLE)))
        rc = err_set (err, ERR_INVALID, "schedctl: act %d is not known", (int)r->act);
    if (rc == 0 && r->act == ACT (STEP) && r->count == 0 && r->for_us <= 0)
        rc = err_set (err, ERR_INVALID, "schedctl: at least one iteration");
    return rc;
}

/* Of what is asked for by time. */
static int time_check (const struct svc *svc, const Nui__Local__V1__ScheduleRequest *r,
                       struct err *err)
{
    time_us now = svc_now (svc);
    if (r->act == ACT (RESUME) && r->at_us && svc->sim)
        return err_set (err, ERR_CONFLICT,
                        "a simulation's time stands while it is stopped: resume it without a time");
    if (r->act == ACT (RESUME) && r->at_us && !schedule_stopped (&svc->schedule, now))
        return err_set (err, ERR_CONFLICT, "scheduling goes on: there is nothing to resume");
    if (r->for_us < 0 || r->for_us > TIME_US_MAX / 4)
        return err_set (err, ERR_INVALID, "schedctl: too long");
    if (r->act != ACT (STEP) && r->at_us && r->at_us <= now)
        return err_set (err, ERR_INVALID, "schedctl: that moment is over");
    return 0;
}

static const char *act_name (int act)
{
    static const char *const name[] = {"status", "stop at", "step", "resume", "kill", "recycle"};
    return name[act];
}

static void on_resume (evutil_socket_t fd, short what, void *arg)
{
    struct svc *svc = arg;
    (void)fd;
    (void)what;
    svc->schedule =
        (struct schedule){.iteration = svc->schedule.iteration, .stop_at = SCHEDULE_NEVER};
    log_event (svc->log, LOG_LEVEL_INFO, "svc", "resumed", "iteration=%llu",
               (unsigned long long)svc->schedule.iteration);
    pass_wake (svc);
}

static void resume_at (struct svc *svc, time_us at)
{
    duration_us wait = at - svc_now (svc);
    struct timeval t = {.tv_sec = wait / US_PER_S, .tv_usec = wait % US_PER_S};
    if (!svc->resume_event)
        svc->resume_event = evtimer_new (svc->base, on_resume, svc);
    svc->schedule.resume_at = at;
    event_add (svc->resume_event, &t);
}

static void act_do (struct svc *svc, const Nui__Local__V1__ScheduleRequest *r)
{
    struct schedule *s = &svc->schedule;
    if (r->act < ACT (STOP) || r->act > ACT (RESUME))
        return;
    if (svc->resume_event)
        event_del (svc->resume_event);
    s->resume_at = 0;
    if (r->act == ACT (RESUME) && r->at_us) {
        resume_at (svc, r->at_us);
        return;
    }
    s->stop_time = 0;
    s->stop_at = SCHEDULE_NEVER;
    if (r->act == ACT (STOP) && r->at_us)
        s->stop_time = r->at_us;
    else if (r->act == ACT (STOP))
        s->stop_at = r->count > s->iteration ? r->count : s->iteration;
    else if (r->act == ACT (STEP) && r->for_us > 0)
        s->stop_time = svc_now (svc) + r->for_us;
    else if (r->act == ACT (STEP) && r->count < SCHEDULE_NEVER - s->iteration)
        s->stop_at = s->iteration + r->count;
    if (svc->sim)
        simulate_run (svc->sim);
    else
        pass_wake (svc);
}

void admin_schedule (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct svc *svc = self;
    const Nui__Local__V1__ScheduleRequest *r = (const Nui__Local__V1__ScheduleRequest *)request;
    Nui__Local__V1__ScheduleReply reply = NUI__LOCAL__V1__SCHEDULE_REPLY__INIT;
    struct admin_caller caller;
    struct err err = {0};
    char text[QUANTITY_TEXT_MAX];
    admin_who (svc, call, &caller);
    int rc = act_check (r, &caller, &err);
    if (rc == 0)
        rc = time_check (svc, r, &err);
    if (rc == 0 && r->act != ACT (STATUS))
        rc = admin_audit (svc, &caller, &err, "schedctl %s %s", act_name (r->act),
                          count_text (r, text));
    if (rc != 0) {
        jobs_refuse (svc, call, &err);
        return;
    }
    act_do (svc, r);
    reply.mode = (char *)server_mode_name (svc->settings->mode.mode);
    reply.iteration = svc->schedule.iteration;
    reply.stopped = schedule_stopped (&svc->schedule, svc_now (svc));
    reply.stop_at_us = svc->schedule.stop_time;
    reply.resume_at_us = svc->schedule.resume_at;
    reply.stop_at = svc->schedule.stop_at == SCHEDULE_NEVER ? 0 : svc->schedule.stop_at;
    reply.now_us = svc_now (svc);
    reply.interval_us = svc->settings->policy->poll_interval;
    reply.over = svc->sim && simulate_over (svc->sim);
    char *acts[ACTS_MAX];
    reply.acts = acts;
    while (reply.n_acts < ACTS_MAX &&
           (acts[reply.n_acts] = (char *)mode_act (svc, (uint32_t)reply.n_acts)))
        reply.n_acts++;
    char *differences[ACTS_MAX];
    reply.differences = differences;
    while (reply.n_differences < ACTS_MAX &&
           (differences[reply.n_differences] =
                (char *)mode_difference (svc, (uint32_t)reply.n_differences)))
        reply.n_differences++;
    mode_compared (svc, &reply.started, &reply.alike);
    const Nui__Local__V1__ScheduleRequest__Act act = r->act; /* the request goes with the answer */
    rpccall_reply (call, &reply.base);
    if (act == ACT (KILL))
        daemon_stop (svc->daemon, NULL);
    else if (act == ACT (RECYCLE))
        daemon_recycle (svc->daemon);
}
