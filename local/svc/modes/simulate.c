/* SIMULATION. A virtual clock, jobs that come from a log and run nowhere (rm_trace), and the
 * iterations of schedctl(1): the n-th is the pass at begin + (n - 1) · RMPOLLINTERVAL. What happens in
 * between, happens at its own moment, with a pass, as it would under NORMAL.
 *
 * It begins when SIMINITIALQUEUEDEPTH jobs of the log have come. With NORMAL submission they keep
 * their times; with the constant depths a job comes, as of now, whenever too little waits. Between
 * iterations the loop is free: every command works, as of the moment the simulation is at.
 *
 * State is a scratch file in STATEDIR, begun anew each time.
 *
 * Called when the service is whole and by schedctl. It writes the simulated clock and plays the log's users and, by rm_trace, the
 * resource manager; nothing else knows that time is not real. */
#include "local/svc/modes/modes.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "local/rm/rm_trace.h"
#include "local/svc/job.h"
#include "local/svc/job/jobspec.h"
#include "local/svc/native/native.h"
#include "local/svc/pass.h"
#include "local/svc/svc_i.h"
#include "local/trace/workload.h"
#include "proto/base/clock.h"
#include "proto/base/text.h"

enum { PASSES_AT_ONE_MOMENT = 64 };
static const duration_us busy_max = 20000; /* of real time, then the loop is served */

struct run { /* of a job of the log */
    uint64_t number;
    duration_us run;
    UT_hash_handle hh;
};

struct simulation {
    struct svc *svc;
    const struct workload *workload; /* the settings'; NULL: none */
    uint64_t next;                   /* job of the log */
    uint64_t refused;                /* that the core did not take */
    struct run *runs;
    time_us busy_at;   /* the last moment at which a job ran or came */
    int64_t ps_wanted; /* CONSTANTPSDEPTH: processor-seconds that wait at the beginning */
    struct event *step, *tell;
    bool deep, over;
};

static const struct settings_sim *wishes (const struct simulation *sim)
{
    return &sim->svc->settings->mode.sim;
}

/* --- the resource manager's side ---------------------------------------------------------- */

static time_us on_now (void *arg)
{
    return svc_now (arg);
}

static duration_us run_of (void *arg, const char *job_id, duration_us walltime)
{
    struct svc *svc = arg;
    char prefix[STORE_NAME_MAX];
    uint64_t number;
    struct run *run = NULL;
    if (id_parse (job_id, prefix, sizeof prefix, &number, NULL) == 0)
        HASH_FIND (hh, svc->sim->runs, &number, sizeof number, run);
    int64_t accuracy = wishes (svc->sim)->wc_accuracy_ppm;
    if (run)
        return cluster_job_scaled (svc->cluster, (struct job_id){number}, run->run);
    return accuracy > 0 && accuracy < 100 * 1000000
               ? settings_accurate (wishes (svc->sim), walltime)
               : walltime;
}

/* A command started or ended a job while time stands: told from the loop, not from inside the call. */
static void on_wake (void *arg)
{
    struct simulation *sim = ((struct svc *)arg)->sim;
    struct timeval at_once = {0, 0};
    if (!sim->deep)
        event_add (sim->tell, &at_once);
}

static void on_tell (evutil_socket_t fd, short what, void *arg)
{
    struct simulation *sim = arg;
    (void)fd;
    (void)what;
    rm_trace_advance (&sim->svc->rm, svc_now (sim->svc));
}

/* --- arrivals ----------------------------------------------------------------------------- */

static void arrive (struct simulation *sim, const struct workload_job *w, time_us submit)
{
    struct svc *svc = sim->svc;
    struct store_job rec = {.number = w->number,
                            .state = STORE_JOB_QUEUED,
                            .procs = w->procs,
                            .walltime = w->limit,
                            .submit = submit};
    Nui__Common__V1__Job message = NUI__COMMON__V1__JOB__INIT;
    struct jobspec spec = {
        .job = &message, .req_count = 1, .procs = w->procs, .walltime = w->limit};
    struct err err = {0};
    bool denied;
    message.deadline_us = w->deadline;
    memcpy (spec.cred, w->cred, sizeof spec.cred);
    spec.cred[CRED_QOS] = policy_qos_resolve (svc->settings->policy, w->cred, &denied);
    spec.reqs[0] = w->req;
    rec.submitter = strdup ("");
    snprintf (rec.component, sizeof rec.component, "main");
    if (w->cred[CRED_USER] != CRED_NONE)
        text_printf (rec.local_account, sizeof rec.local_account, "%.63s",
                     cred_name (svc->names, CRED_USER, w->cred[CRED_USER]));
    if (w->cred[CRED_ACCOUNT] != CRED_NONE)
        text_printf (rec.pay_account, sizeof rec.pay_account, "%.63s",
                     cred_name (svc->names, CRED_ACCOUNT, w->cred[CRED_ACCOUNT]));
    struct run *run = calloc (1, sizeof *run);
    assert (run);
    run->number = w->number;
    run->run = w->run;
    HASH_ADD (hh, sim->runs, number, sizeof run->number, run);
    struct site_job *job = svc_job_add (svc, &rec, &spec);
    int rc = svc_cluster_submit (svc, job, &err);
    if (rc == 0)
        rc = svc_begin (svc, &err);
    if (rc == 0)
        rc = svc_commit (svc, svc_job_write (svc, job, false, NULL, 0, &err), &err);
    svc->pass_wanted = true;
    if (rc == 0)
        return;
    sim->refused++;
    log_event (svc->log, LOG_LEVEL_WARN, "sim", "job_not_taken", "job=%s.%llu error=\"%s\"",
               svc->site, (unsigned long long)w->number, err.text);
    if (job->in_cluster)
        cluster_job_remove (svc->cluster, (struct job_id){w->number}, svc_now (sim->svc), NULL);
    svc_job_forget (svc, job);
}

static int64_t proc_seconds (const struct workload_job *w)
{
    return (int64_t)w->procs * (w->limit / US_PER_S);
}

static int64_t waiting_proc_seconds (struct svc *svc)
{
    int64_t sum = 0;
    struct site_job *job, *next;
    HASH_ITER (hh, svc->jobs, job, next)
        if (job->rec.state == STORE_JOB_QUEUED)
            sum += (int64_t)job->rec.procs * (job->rec.walltime / US_PER_S);
    return sum;
}

static void arrivals (struct simulation *sim)
{
    const struct workload *w = sim->workload;
    int policy = wishes (sim)->submission;
    int64_t waits = policy == SIM_CONSTANTJOBDEPTH ? cluster_job_count (sim->svc->cluster, JOB_IDLE)
                    : policy == SIM_CONSTANTPSDEPTH ? waiting_proc_seconds (sim->svc)
                                                    : 0;
    while (w && sim->next < w->count) {
        const struct workload_job *j = &w->job[sim->next];
        if (policy == SIM_NORMAL             ? j->submit > svc_now (sim->svc)
            : policy == SIM_CONSTANTJOBDEPTH ? waits >= wishes (sim)->initial_depth
                                             : waits >= sim->ps_wanted)
            return;
        sim->next++;
        waits += policy == SIM_CONSTANTJOBDEPTH ? 1 : proc_seconds (j);
        arrive (sim, j, policy == SIM_NORMAL ? j->submit : svc_now (sim->svc));
    }
}

/* The moment at which SIMINITIALQUEUEDEPTH jobs have come. */
static void begin (struct simulation *sim)
{
    const struct workload *w = sim->workload;
    uint64_t depth = (uint64_t)wishes (sim)->initial_depth;
    sim->svc->simulated_now = clock_now_us () / US_PER_S * US_PER_S;
    if (!w)
        return;
    if (depth > w->count)
        depth = w->count;
    sim->svc->simulated_now = w->job[depth > 0 ? depth - 1 : 0].submit;
    sim->ps_wanted = 0;
    for (uint64_t i = 0; i < depth; i++)
        sim->ps_wanted += proc_seconds (&w->job[i]);
}

/* --- time --------------------------------------------------------------------------------- */

/* One moment: what ended, who came, then passes until nothing more comes of them. */
static void moment (struct simulation *sim, time_us at)
{
    bool ran = rm_trace_next (&sim->svc->rm) != TIME_US_MAX;
    uint64_t came = sim->next;
    sim->svc->simulated_now = at;
    rm_trace_advance (&sim->svc->rm, at);
    arrivals (sim);
    if (ran || sim->next != came || sim->busy_at == 0)
        sim->busy_at = at;
    for (int n = 0; n < PASSES_AT_ONE_MOMENT; n++) {
        sim->svc->pass_wanted = false;
        pass_run (sim->svc);
        rm_trace_advance (&sim->svc->rm, at);
        if (!sim->svc->pass_wanted)
            break;
    }
}

static time_us next_event (const struct simulation *sim)
{
    const struct workload *w = sim->workload;
    struct svc *svc = sim->svc;
    time_us at = rm_trace_next (&svc->rm);
    if (w && sim->next < w->count && wishes (sim)->submission == SIM_NORMAL &&
        w->job[sim->next].submit < at)
        at = w->job[sim->next].submit;
    if (cluster_job_count (svc->cluster, JOB_IDLE) == 0)
        return at;
    time_us wakeup = cluster_next_wakeup (svc->cluster, svc_now (sim->svc));
    if (wakeup <= svc_now (sim->svc))
        wakeup = svc_now (sim->svc) + US_PER_S / 100;
    if (svc->settings->policy->fs_policy !=
        FS_NONE) { /* windows roll: who was capped may not be any more */
        duration_us window = svc->settings->policy->fs_interval;
        time_us roll = (svc_now (sim->svc) / window + 1) * window;
        wakeup = roll < wakeup ? roll : wakeup;
    }
    return wakeup < at ? wakeup : at;
}

bool simulate_over (const struct simulation *sim)
{
    const struct workload *w = sim->workload;
    struct svc *svc = sim->svc;
    if ((w && sim->next < w->count) || rm_trace_next (&svc->rm) != TIME_US_MAX)
        return false;
    return HASH_COUNT (svc->jobs) == 0 ||
           (cluster_job_count (svc->cluster, JOB_RUNNING) +
                    cluster_job_count (svc->cluster, JOB_STARTING) ==
                0 &&
            ((cluster_next_wakeup (svc->cluster, svc_now (sim->svc)) == TIME_US_MAX &&
              svc->settings->policy->fs_policy == FS_NONE) ||
             svc_now (sim->svc) - sim->busy_at > svc->settings->horizon));
}

static void iterate (struct simulation *sim)
{
    struct svc *svc = sim->svc;
    time_us until = svc_now (sim->svc) + svc->settings->policy->poll_interval;
    sim->deep = true;
    if (svc->schedule.iteration == 0)
        until = svc_now (sim->svc);
    for (time_us at; (at = next_event (sim)) < until;)
        moment (sim, at > svc_now (sim->svc) ? at : svc_now (sim->svc));
    moment (sim, until);
    sim->deep = false;
    svc->schedule.iteration++;
}

static void finish (struct simulation *sim, const char *why)
{
    struct svc *svc = sim->svc;
    log_event (svc->log, LOG_LEVEL_INFO, "sim", "over",
               "why=\"%s\" iteration=%llu jobs_left=%u "
               "not_taken=%llu",
               why, (unsigned long long)svc->schedule.iteration, HASH_COUNT (svc->jobs),
               (unsigned long long)sim->refused);
    daemon_stop (svc->daemon, NULL);
}

static void on_step (evutil_socket_t fd, short what, void *arg)
{
    struct simulation *sim = arg;
    struct svc *svc = sim->svc;
    const struct settings_sim *s = wishes (sim);
    struct timeval after = {0, 0};
    duration_us begun = clock_monotonic_us ();
    (void)fd;
    (void)what;
    while (!schedule_stopped (&svc->schedule, svc_now (sim->svc))) {
        iterate (sim);
        if (s->exit_iteration >= 0 && svc->schedule.iteration >= (uint64_t)s->exit_iteration) {
            finish (sim, "SIMEXITITERATION");
            return;
        }
        if (simulate_over (sim)) {
            if (s->auto_shutdown && sim->workload) {
                finish (sim, "nothing is left");
                return;
            }
            svc->schedule.stop_at = svc->schedule.iteration;
        }
        if (s->time_ratio > 0 || clock_monotonic_us () - begun > busy_max)
            break;
    }
    if (schedule_stopped (&svc->schedule, svc_now (sim->svc))) {
        log_event (svc->log, LOG_LEVEL_INFO, "sim", "stopped", "iteration=%llu",
                   (unsigned long long)svc->schedule.iteration);
        return;
    }
    if (s->time_ratio > 0) {
        duration_us wait = svc->settings->policy->poll_interval / s->time_ratio;
        after = (struct timeval){.tv_sec = wait / US_PER_S, .tv_usec = wait % US_PER_S};
    }
    event_add (sim->step, &after);
}

/* --- life --------------------------------------------------------------------------------- */

int simulate_create (struct svc *svc, const struct settings *settings, struct err *err)
{
    struct simulation *sim = calloc (1, sizeof *sim);
    if (!sim)
        return err_set (err, ERR_NOMEM, "simulation: no memory");
    svc->sim = sim;
    sim->svc = svc;
    sim->workload = settings->workload;
    sim->step = evtimer_new (svc->base, on_step, sim);
    sim->tell = evtimer_new (svc->base, on_tell, sim);
    if (!sim->step || !sim->tell)
        return err_set (err, ERR_NOMEM, "simulation: no memory");
    begin (sim);
    for (uint32_t c = 0; sim->workload && c < sim->workload->constraint_count; c++)
        strtab_intern (svc->features, sim->workload->constraint[c]); /* the log's own numbers */
    int64_t stop = settings->mode.sim.stop_iteration;
    if (stop >= 0)
        svc->schedule.stop_at = (uint64_t)stop;
    uint64_t last = 0;
    for (uint64_t i = 0; sim->workload && i < sim->workload->count; i++)
        if (sim->workload->job[i].number > last)
            last = sim->workload->job[i].number;
    int rc = svc_begin (svc, err);
    if (rc == 0)
        rc = svc_commit (svc, local_store_next_above (svc->store, "job", last, err), err);
    if (rc != 0)
        return rc;
    struct rm_trace_config config = {
        .now = on_now, .run_of = run_of, .wake = on_wake, .on_event = rm_event_on, .arg = svc};
    return rm_trace_create (&config, &svc->rm, err);
}

void simulate_destroy (struct simulation *sim)
{
    struct run *run, *next;
    if (!sim)
        return;
    HASH_ITER (hh, sim->runs, run, next) {
        HASH_DEL (sim->runs, run);
        free (run);
    }
    if (sim->step)
        event_free (sim->step);
    if (sim->tell)
        event_free (sim->tell);
    free (sim);
}

int simulate_reload (struct simulation *sim, const struct settings *settings, struct err *err)
{
    const struct workload *w = settings->workload;
    if (!w != !sim->workload || (w && w->count != sim->workload->count))
        return err_set (err, ERR_CONFLICT, "the log of a simulation changes with a restart only");
    sim->workload = w;
    return 0;
}

void simulate_run (struct simulation *sim)
{
    struct timeval at_once = {0, 0};
    if (schedule_stopped (&sim->svc->schedule, svc_now (sim->svc)))
        event_del (sim->step);
    else if (!event_pending (sim->step, EV_TIMEOUT, NULL))
        event_add (sim->step, &at_once);
}
