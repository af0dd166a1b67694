/* schedctl: how far scheduling goes, and the end of the daemon. */
#include "local/svc/admin.h"
#include "local/svc/mode.h"
#include "local/svc/simulate.h"

enum { ACTS_MAX = 1000 };

#define ACT(name) NUI__LOCAL__V1__SCHEDULE_REQUEST__ACT__##name

static int act_check (const Nui__Local__V1__ScheduleRequest *r, const struct admin_caller *caller,
                      struct err *err)
{
    if (r->act == ACT (STATUS))
        return admin_require (caller, ADMIN_INFO, "the scheduler's state", err);
    int rc = admin_require (caller, ADMIN_FULL, "steering the scheduler", err);
    if (rc == 0 && (r->act < ACT (STATUS) || r->act > ACT (RECYCLE)))
        rc = err_set (err, ERR_INVALID, "schedctl: act %d is not known", (int)r->act);
    if (rc == 0 && r->act == ACT (STEP) && r->count == 0)
        rc = err_set (err, ERR_INVALID, "schedctl: at least one iteration");
    return rc;
}

static const char *act_name (int act)
{
    static const char *const name[] = {"status", "stop at", "step", "resume", "kill", "recycle"};
    return name[act];
}

static void act_do (struct svc *svc, const Nui__Local__V1__ScheduleRequest *r)
{
    struct schedule *s = &svc->schedule;
    switch (r->act) {
    case ACT (STOP):
        s->stop_at = r->count > s->iteration ? r->count : s->iteration;
        break;
    case ACT (STEP):
        s->stop_at = r->count < SCHEDULE_NEVER - s->iteration ? s->iteration + r->count
                                                              : SCHEDULE_NEVER;
        break;
    case ACT (RESUME):
        s->stop_at = SCHEDULE_NEVER;
        break;
    default:
        return;
    }
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
    admin_who (svc, call, &caller);
    int rc = act_check (r, &caller, &err);
    if (rc == 0 && r->act != ACT (STATUS))
        rc = admin_audit (svc, &caller, &err, "schedctl %s %llu", act_name (r->act),
                          (unsigned long long)r->count);
    if (rc != 0) {
        jobs_refuse (svc, call, &err);
        return;
    }
    act_do (svc, r);
    reply.mode = (char *)server_mode_name (svc->settings->mode.mode);
    reply.iteration = svc->schedule.iteration;
    reply.stopped = schedule_stopped (&svc->schedule);
    reply.stop_at = svc->schedule.stop_at == SCHEDULE_NEVER ? 0 : svc->schedule.stop_at;
    reply.now_us = svc_now (svc);
    reply.interval_us = svc->settings->policy->poll_interval;
    reply.over = svc->sim && simulate_over (svc->sim);
    char *acts[ACTS_MAX];
    reply.acts = acts;
    while (reply.n_acts < ACTS_MAX &&
           (acts[reply.n_acts] = (char *)mode_act (svc, (uint32_t)reply.n_acts)))
        reply.n_acts++;
    rpccall_reply (call, &reply.base);
    if (r->act == ACT (KILL))
        daemon_stop (svc->daemon, NULL);
    else if (r->act == ACT (RECYCLE))
        daemon_recycle (svc->daemon);
}
