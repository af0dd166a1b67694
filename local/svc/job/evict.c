/* Running jobs that have to go: for another (PREEMPTPOLICY), for their limit (WCVIOLATIONACTION), since
 * their node is lost (JOBACTIONONNODEFAILURE). Each wish is durable before it is acted on; a restart in
 * between finishes it. A part of a co-allocation is never made to go for another. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "local/svc/job.h"
#include "local/svc/job/life.h"
#include "local/svc/svc_i.h"
#include "proto/base/clock.h"
#include "proto/base/text.h"
#include "proto/child/child.h"

/* --- the wish ----------------------------------------------------------------------------- */

static int stop_write (struct svc *svc, struct site_job *job, enum store_stop stop, struct err *err)
{
    enum store_stop before = job->rec.stop;
    int rc = svc_begin (svc, err);
    job->rec.stop = stop;
    if (rc == 0)
        rc = svc_job_write (svc, job, true, NULL, 0, err);
    rc = svc_commit (svc, rc, err);
    if (rc != 0)
        job->rec.stop = before;
    return rc;
}

static void core_says (struct svc *svc, struct site_job *job, enum eviction eviction)
{
    struct err err = {0};
    if (job->in_cluster && cluster_job_eviction_set (svc->cluster, (struct job_id){job->rec.number},
                                                     eviction, svc_now (svc), &err) != 0)
        log_event (svc->log, LOG_LEVEL_ERROR, "svc", "core_disagrees", "error=\"%s\"", err.text);
}

/* Ends it at the resource manager; what comes of it depends on rec.stop, when the end arrives. */
static int stop_now (struct svc *svc, struct site_job *job, enum store_stop stop, struct err *err)
{
    char id[SITE_ID_MAX];
    int rc = stop_write (svc, job, stop, err);
    if (rc != 0)
        return rc;
    core_says (svc, job, EVICTION_LEAVING);
    site_id (svc, job->rec.number, id);
    rc = stop == STORE_STOP_PREEMPT && svc->rm.ops->requeue
             ? svc->rm.ops->requeue (svc->rm.self, id, job->rec.incarnation, err)
             : svc->rm.ops->cancel (svc->rm.self, id, job->rec.incarnation, err);
    return rc == ERR_NOT_FOUND ? 0 : rc; /* it has just ended; its event is on the way */
}

/* --- suspended ---------------------------------------------------------------------------- */

static int suspend (struct svc *svc, struct site_job *job, const char *why, struct err *err)
{
    char id[SITE_ID_MAX];
    struct err core = {0};
    if (!svc->rm.ops->suspend)
        return err_set (err, ERR_UNSUPPORTED, "%s jobs cannot be suspended", svc->rm.ops->type);
    job->rec.suspended_at = svc_now (svc);
    svc_reason (job, "Suspended", "%s", why);
    int rc = stop_write (svc, job, STORE_STOP_NONE, err);
    if (rc != 0) {
        job->rec.suspended_at = 0;
        return rc;
    }
    rc = svc->rm.ops->suspend (svc->rm.self, site_id (svc, job->rec.number, id),
                               job->rec.incarnation, true, err);
    if (rc != 0 && rc != ERR_NOT_FOUND)
        return rc;
    log_event (svc->log, LOG_LEVEL_INFO, "svc", "job_suspended", "job=%s", id);
    if (cluster_job_suspend (svc->cluster, (struct job_id){job->rec.number}, svc_now (svc), &core))
        log_event (svc->log, LOG_LEVEL_ERROR, "svc", "core_disagrees", "error=\"%s\"", core.text);
    pass_wake (svc);
    return 0;
}

void evict_resumed_there (struct svc *svc, struct site_job *job)
{
    struct err err = {0};
    char id[SITE_ID_MAX];
    struct store_job_admin set;
    time_us now = svc_now (svc), since = job->rec.suspended_at;
    site_id (svc, job->rec.number, id);
    if (cluster_job_resumed (svc->cluster, (struct job_id){job->rec.number}, now, &err) != 0) {
        log_event (svc->log, LOG_LEVEL_WARN, "svc", "suspended_again", "job=%s reason=\"%s\"", id,
                   err.text);
        if (svc->rm.ops->suspend (svc->rm.self, id, job->rec.incarnation, true, &err) != 0)
            log_event (svc->log, LOG_LEVEL_ERROR, "svc", "not_suspended", "job=%s error=\"%s\"", id,
                       err.text);
        return;
    }
    job->rec.halted += now > since ? now - since : 0;
    job->rec.suspended_at = 0;
    svc_reason (job, "", "%s", "");
    int rc = local_store_job_admin_get (svc->store, job->rec.number, &set, &err);
    set.holds = 0;
    if (rc == 0)
        rc = local_store_job_admin_put (svc->store, job->rec.number, &set, &err);
    if (rc != 0)
        log_event (svc->log, LOG_LEVEL_ERROR, "store", "not_written", "error=\"%s\"", err.text);
    log_event (svc->log, LOG_LEVEL_INFO, "svc", "job_resumed", "job=%s by=resource-manager", id);
}

void evict_resume (struct svc *svc, struct site_job *job)
{
    struct err err = {0};
    char id[SITE_ID_MAX];
    time_us since = job->rec.suspended_at, now = svc_now (svc);
    duration_us before = job->rec.halted;
    site_id (svc, job->rec.number, id);
    job->rec.halted += now > since ? now - since : 0;
    job->rec.suspended_at = 0;
    svc_reason (job, "", "%s", "");
    int rc = stop_write (svc, job, job->rec.stop, &err);
    if (rc == 0) {
        rc = svc->rm.ops->suspend (svc->rm.self, id, job->rec.incarnation, false, &err);
        log_event (svc->log, LOG_LEVEL_INFO, "svc", "job_resumed", "job=%s", id);
    } else { /* it stays where it is; the next pass says it again */
        job->rec.halted = before;
        job->rec.suspended_at = since;
        struct err again = {0};
        (void)cluster_job_suspend (svc->cluster, (struct job_id){job->rec.number}, now, &again);
    }
    if (rc != 0 && rc != ERR_NOT_FOUND)
        log_event (svc->log, LOG_LEVEL_ERROR, "svc", "not_resumed", "job=%s error=\"%s\"", id,
                   err.text);
}

time_us evict_effective_start (const struct site_job *job)
{
    return job->rec.start + job->rec.halted;
}

int evict_restore (struct svc *svc, struct site_job *job, const struct allocation *a,
                   struct err *err)
{
    time_us since = job->rec.suspended_at;
    duration_us used = since - evict_effective_start (job);
    return cluster_job_suspended_set (svc->cluster, (struct job_id){job->rec.number}, a,
                                      used > 0 ? used : 0, since, svc_now (svc), err);
}

/* --- checkpoints -------------------------------------------------------------------------- */

/* CHECKPOINTHOOK at work for one job. */
struct checkpoint {
    struct svc *svc;
    uint64_t number;
    uint32_t incarnation;
    pid_t pid;
    int pidfd;
    struct event *event;
    struct checkpoint *next;
};

static const duration_us checkpoint_longest = 600 * US_PER_S;

static void checkpoint_free (struct checkpoint *c)
{
    struct checkpoint **at = &c->svc->checkpoints;
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    event_free (c->event);
    close (c->pidfd);
    free (c);
}

/* Made: now it may be ended. */
static void checkpoint_made (struct svc *svc, struct site_job *job)
{
    struct err err = {0};
    char id[SITE_ID_MAX];
    job->rec.checkpoints++;
    log_event (svc->log, LOG_LEVEL_INFO, "svc", "checkpoint_made", "job=%s count=%u",
               site_id (svc, job->rec.number, id), job->rec.checkpoints);
    if (stop_now (svc, job, STORE_STOP_PREEMPT, &err) != 0)
        log_event (svc->log, LOG_LEVEL_ERROR, "svc", "preempt_failed", "job=%s error=\"%s\"", id,
                   err.text);
}

/* Its work would be lost: it is left alone. */
static void checkpoint_failed (struct svc *svc, struct site_job *job, const char *why)
{
    struct err err = {0};
    char id[SITE_ID_MAX];
    log_event (svc->log, LOG_LEVEL_WARN, "svc", "checkpoint_failed", "job=%s reason=\"%s\"",
               site_id (svc, job->rec.number, id), why);
    svc_reason (job, "", "%s", "");
    (void)stop_write (svc, job, STORE_STOP_NONE, &err);
    core_says (svc, job, EVICTION_REFUSED);
    pass_wake (svc);
}

static void on_checkpoint (evutil_socket_t fd, short what, void *arg)
{
    struct checkpoint *c = arg;
    struct svc *svc = c->svc;
    siginfo_t info = {0};
    char why[80] = "CHECKPOINTHOOK took too long";
    if (what & EV_TIMEOUT)
        kill (-c->pid, SIGKILL);
    while (waitid (P_PIDFD, (id_t)fd, &info, WEXITED) != 0 && errno == EINTR)
        ;
    bool good = !(what & EV_TIMEOUT) && info.si_code == CLD_EXITED && info.si_status == 0;
    if (!good && !(what & EV_TIMEOUT))
        text_printf (why, sizeof why, "CHECKPOINTHOOK %s %d",
                     info.si_code == CLD_EXITED ? "ended with exit code" : "was ended by signal",
                     info.si_status);
    struct site_job *job = svc_job (svc, c->number);
    bool still = job && job->rec.incarnation == c->incarnation &&
                 job->rec.stop == STORE_STOP_CHECKPOINT && job->rec.state == STORE_JOB_RUNNING;
    checkpoint_free (c);
    if (still && good)
        checkpoint_made (svc, job);
    else if (still)
        checkpoint_failed (svc, job, why);
}

static void arg_printf (char **list, uint32_t *n, const char *fmt, ...)
    __attribute__ ((format (printf, 3, 4)));
static void arg_printf (char **list, uint32_t *n, const char *fmt, ...)
{
    va_list ap;
    va_start (ap, fmt);
    if (vasprintf (&list[*n], fmt, ap) < 0)
        abort ();
    va_end (ap);
    (*n)++;
}

/* The job's account owns the directory: what the job leaves there it finds again. */
static int checkpoint_dir_make (struct svc *svc, struct site_job *job, char *dir, size_t cap,
                                struct err *err)
{
    struct passwd pw, *found = NULL;
    char buf[4096];
    life_checkpoint_dir (svc, job, dir, cap);
    if (mkdir (dir, 0700) != 0 && errno != EEXIST)
        return err_set (err, ERR_IO, "%s: %s", dir, strerror (errno));
    if (geteuid () == 0 && getpwnam_r (job->rec.local_account, &pw, buf, sizeof buf, &found) == 0 &&
        found && lchown (dir, pw.pw_uid, pw.pw_gid) != 0)
        return err_set (err, ERR_IO, "%s: %s", dir, strerror (errno));
    return 0;
}

/* HOOK JOBID ACCOUNT JOBDIRECTORY CHECKPOINTDIRECTORY */
static int hook_spawn (struct svc *svc, struct site_job *job, const char *dir, pid_t *out,
                       struct err *err)
{
    char id[SITE_ID_MAX], *argv[8 + CHILD_AS_MAX] = {0}, *envp[2] = {0};
    const char *as[CHILD_AS_MAX];
    const struct settings *settings = svc->settings;
    uint32_t n = 0, e = 0;
    posix_spawnattr_t attr;
    posix_spawn_file_actions_t files;
    sigset_t none, all;
    site_id (svc, job->rec.number, id);
    if (conf_program_check ("CHECKPOINTHOOK", settings->checkpoint_hook, err) != 0)
        return err->code;
    err_clear (err);
    arena_reset (svc->call_arena);
    uint32_t as_count = child_as (settings->checkpoint_account ? settings->checkpoint_account
                                                               : job->rec.local_account,
                                  svc->call_arena, as, err);
    if (err->code != 0)
        return err->code;
    for (uint32_t i = 0; i < as_count; i++)
        arg_printf (argv, &n, "%s", as[i]);
    arg_printf (argv, &n, "%s", settings->checkpoint_hook);
    arg_printf (argv, &n, "%s", id);
    arg_printf (argv, &n, "%s", job->rec.local_account);
    if (job->rec.incarnation)
        arg_printf (argv, &n, "%s/%s-%u/work", svc->job_dir, id, job->rec.incarnation);
    else
        arg_printf (argv, &n, "%s/%s/work", svc->job_dir, id);
    arg_printf (argv, &n, "%s", dir);
    arg_printf (envp, &e, "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    sigemptyset (&none);
    sigfillset (&all);
    sigdelset (&all, SIGKILL);
    sigdelset (&all, SIGSTOP);
    posix_spawnattr_init (&attr);
    posix_spawnattr_setsigmask (&attr, &none);
    posix_spawnattr_setsigdefault (&attr, &all);
    posix_spawnattr_setpgroup (&attr, 0);
    posix_spawnattr_setflags (&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                         POSIX_SPAWN_SETSIGDEF);
    posix_spawn_file_actions_init (&files);
    posix_spawn_file_actions_addopen (&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen (&files, 1, "/dev/null", O_WRONLY, 0);
    int rc = posix_spawn (out, argv[0], &files, &attr, argv, envp);
    posix_spawn_file_actions_destroy (&files);
    posix_spawnattr_destroy (&attr);
    if (rc != 0)
        err_set (err, ERR_IO, "%s: %s", argv[0], strerror (rc));
    for (uint32_t i = 0; i < n; i++)
        free (argv[i]);
    free (envp[0]);
    return rc != 0 ? ERR_IO : 0;
}

static int checkpoint_begin (struct svc *svc, struct site_job *job, struct err *err)
{
    char dir[4096];
    pid_t pid = 0;
    int rc = checkpoint_dir_make (svc, job, dir, sizeof dir, err);
    if (rc == 0)
        rc = hook_spawn (svc, job, dir, &pid, err);
    if (rc != 0)
        return rc;
    struct checkpoint *c = calloc (1, sizeof *c);
    assert (c);
    *c = (struct checkpoint){.svc = svc,
                             .number = job->rec.number,
                             .incarnation = job->rec.incarnation,
                             .pid = pid,
                             .next = svc->checkpoints};
    c->pidfd = (int)syscall (SYS_pidfd_open, pid, 0);
    assert (c->pidfd >= 0);
    fcntl (c->pidfd, F_SETFD, FD_CLOEXEC);
    c->event = event_new (svc->base, c->pidfd, EV_READ, on_checkpoint, c);
    svc->checkpoints = c;
    struct timeval longest = {.tv_sec = checkpoint_longest / US_PER_S};
    event_add (c->event, &longest);
    return 0;
}

static int checkpoint (struct svc *svc, struct site_job *job, struct err *err)
{
    svc_reason (job, "Preempted", "a checkpoint is made, for a job of higher priority");
    int rc = stop_write (svc, job, STORE_STOP_CHECKPOINT, err);
    if (rc != 0)
        return rc;
    core_says (svc, job, EVICTION_LEAVING);
    if (checkpoint_begin (svc, job, err) != 0)
        checkpoint_failed (svc, job, err->text);
    return 0;
}

static void evict_free (struct svc *svc)
{
    while (svc->checkpoints) /* hooks run on; after a restart they are asked again */
        checkpoint_free (svc->checkpoints);
}

/* --- who has to go ------------------------------------------------------------------------ */

static int requeue_now (struct svc *svc, struct site_job *job, const char *code, const char *text,
                        struct err *err)
{
    svc_reason (job, code, "%s", text);
    return stop_now (svc, job, STORE_STOP_PREEMPT, err);
}

static int by_hand (struct svc *svc, const struct site_job *job, struct err *err)
{
    char id[SITE_ID_MAX];
    site_id (svc, job->rec.number, id);
    if (svc_may_act (svc, err) != 0)
        return err->code;
    if (job->part)
        return err_set (err, ERR_CONFLICT, "job %s is part of a co-allocation: its group decides",
                        id);
    if (job->rec.state != STORE_JOB_RUNNING)
        return err_set (err, ERR_CONFLICT, "job %s does not run", id);
    if (job->rec.stop != STORE_STOP_NONE)
        return err_set (err, ERR_CONFLICT, "job %s is being ended", id);
    return 0;
}

int evict_requeue (struct svc *svc, struct site_job *job, const char *why, struct err *err)
{
    int rc = by_hand (svc, job, err);
    if (rc == 0 && (job->core_flags & JOB_NORESTART))
        rc = err_set (err, ERR_CONFLICT, "job %s.%llu must not be run twice (NORESTART)", svc->site,
                      (unsigned long long)job->rec.number);
    return rc == 0 ? requeue_now (svc, job, "Requeued", why, err) : rc;
}

int evict_suspend (struct svc *svc, struct site_job *job, const char *why, struct err *err)
{
    int rc = by_hand (svc, job, err);
    if (rc == 0 && (job->rec.suspended_at || job->suspended))
        rc = err_set (err, ERR_CONFLICT, "job %s.%llu is suspended already", svc->site,
                      (unsigned long long)job->rec.number);
    return rc == 0 ? suspend (svc, job, why, err) : rc;
}

int life_preempt (struct svc *svc, struct site_job *job, struct err *err)
{
    int rc = 0;
    if (job->part || job->rec.stop != STORE_STOP_NONE || job->rec.state != STORE_JOB_RUNNING ||
        job->rec.suspended_at)
        return 0; /* it is ending already, or nothing to end yet: the next plan looks again */
    switch (svc->settings->policy->preempt_policy) {
    case PREEMPT_REQUEUE:
        return requeue_now (svc, job, "Preempted",
                            "sent back to the queue for a job of higher priority", err);
    case PREEMPT_CHECKPOINT:
        return checkpoint (svc, job, err);
    case PREEMPT_CANCEL:
        core_says (svc, job, EVICTION_LEAVING);
        return life_cancel (svc, job, "Preempted", "ended for a job of higher priority", err);
    case PREEMPT_SUSPEND:
        rc = suspend (svc, job, "stopped for a job of higher priority", err);
        if (rc == ERR_UNSUPPORTED)
            core_says (svc, job, EVICTION_REFUSED);
        return rc;
    }
    return 0;
}

/* What has run for longer than HEARD_LATE_S when it is first heard of says nothing of when it began: one of the clocks is
 * wrong. After a restart there is no other clock to ask. */
enum { HEARD_LATE_S = 60, CLOCKS_APART_S = 1 };

static void run_from_set (struct svc *svc, struct site_job *job, duration_us believed)
{
    duration_us run = svc_now (svc) - evict_effective_start (job);
    if (run < 0 || run > believed)
        run = 0;
    job->run_from = clock_monotonic_us () - job->rec.halted - run;
}

static void run_began (struct svc *svc, struct site_job *job)
{
    run_from_set (svc, job, HEARD_LATE_S * US_PER_S);
}

/* The plan goes by the wall clock, which may have been set ahead meanwhile: by days, in the worst case, and all that
 * runs would be over its limit. */
static bool truly_over (struct svc *svc, const struct site_job *job)
{
    struct job_view view;
    if (svc->sim ||
        cluster_job_get (svc->cluster, (struct job_id){job->rec.number}, &view, NULL) != 0)
        return true;
    return clock_monotonic_us () - job->run_from - job->rec.halted + CLOCKS_APART_S * US_PER_S >=
           view.limit_end - evict_effective_start (job);
}

void evict_violations (struct svc *svc, const struct plan *plan)
{
    for (uint32_t i = 0; i < plan->violation_count; i++) {
        struct site_job *job = svc_job (svc, plan->violation[i].v);
        struct err err = {0};
        char id[SITE_ID_MAX];
        int rc = 0;
        if (!job || job->rec.stop != STORE_STOP_NONE || job->rec.state != STORE_JOB_RUNNING ||
            !truly_over (svc, job))
            continue;
        if (svc->settings->policy->wcviolation_action == WCVIOLATION_PREEMPT && !job->part) {
            rc = life_preempt (svc, job, &err);
        } else {
            svc_reason (job, "WallclockLimit", "ended for running past its limit");
            rc = stop_now (svc, job, STORE_STOP_LIMIT, &err);
        }
        if (rc != 0)
            log_event (svc->log, LOG_LEVEL_ERROR, "svc", "violation_not_ended",
                       "job=%s error=\"%s\"", site_id (svc, job->rec.number, id), err.text);
    }
}

/* Jobs on nodes that are down: the resource manager may not know that they are lost. */
void evict_lost_nodes (struct svc *svc)
{
    struct site_job *job, *next;
    if (svc->settings->node_failure == NODE_FAILURE_FAIL)
        return;
    HASH_ITER (hh, svc->jobs, job, next) {
        struct err err = {0};
        struct job_view view;
        struct node_view node;
        char id[SITE_ID_MAX];
        bool lost = false;
        if (!job->in_cluster || job->rec.state != STORE_JOB_RUNNING ||
            job->rec.stop != STORE_STOP_NONE ||
            cluster_job_get (svc->cluster, (struct job_id){job->rec.number}, &view, NULL) != 0)
            continue;
        for (uint32_t i = 0; i < view.allocation.count && !lost; i++)
            lost =
                cluster_node_get (svc->cluster, view.allocation.item[i].node, &node, NULL) == 0 &&
                node.state == NODE_DOWN;
        if (!lost)
            continue;
        int rc = life_requeues_lost (svc, job)
                     ? requeue_now (svc, job, "NodeFailure",
                                    "sent back to the queue: a node of it went down", &err)
                     : life_cancel (svc, job, "NodeFailure", "a node of it went down", &err);
        if (rc != 0)
            log_event (svc->log, LOG_LEVEL_ERROR, "svc", "lost_not_ended", "job=%s error=\"%s\"",
                       site_id (svc, job->rec.number, id), err.text);
    }
}

/* --- after a restart ---------------------------------------------------------------------- */

int evict_recover (struct svc *svc, struct site_job *job, struct err *err)
{
    char id[SITE_ID_MAX];
    site_id (svc, job->rec.number, id);
    run_from_set (svc, job, TIME_US_MAX);
    if (job->rec.suspended_at && svc->rm.ops->suspend)
        return svc->rm.ops->suspend (svc->rm.self, id, job->rec.incarnation, true, err);
    switch (job->rec.stop) {
    case STORE_STOP_NONE:
        return 0;
    case STORE_STOP_CHECKPOINT:
        core_says (svc, job, EVICTION_LEAVING);
        if (checkpoint_begin (svc, job, err) != 0)
            checkpoint_failed (svc, job, err->text);
        return 0;
    case STORE_STOP_PREEMPT:
        core_says (svc, job, EVICTION_LEAVING);
        if (svc->rm.ops->requeue)
            return svc->rm.ops->requeue (svc->rm.self, id, job->rec.incarnation, err);
        break;
    case STORE_STOP_CANCEL:
    case STORE_STOP_LIMIT:
        break;
    }
    return svc->rm.ops->cancel (svc->rm.self, id, job->rec.incarnation, err);
}

const struct svc_listener evict_listener = {.stop = evict_free, .job_started = run_began};
