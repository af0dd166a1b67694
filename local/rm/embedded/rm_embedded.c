/* rm_embedded: makes a job's directory, starts its supervisor, and watches files and pidfds. The
 * service drives it through struct rm_ops. Nothing is launched before its directory is whole and
 * on disk, and an end is told only when it is settled for good: no pair of job and incarnation
 * ever runs twice. */
#include "local/rm/embedded/rm_embedded.h"

#include <assert.h>
#include <dirent.h>
#include <pwd.h>
#include <signal.h>
#include <spawn.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <uthash.h>

#include "local/rm/embedded/agent.h"
#include "local/rm/embedded/cgroup_root.h"
#include "local/rm/embedded/health.h"
#include "local/rm/embedded/process_use.h"
#include "local/rm/embedded/run_status.h"
#include "local/rm/embedded/runfiles.h"
#include "local/rm/embedded/spread.h"
#include "local/rm/jobdir.h"
#include "local/rm/remover.h"
#include "local/rm/supervise_file.h"
#include "proto/base/clock.h"
#include "proto/base/strbuf.h"
#include "proto/base/text.h"

enum { PIDS_PER_PROC = 1024 };
static const duration_us kill_grace_default = 5 * US_PER_S;

struct job {
    struct rm_embedded *owner;
    char key[JOBDIR_KEY_MAX]; /* name of its directory */
    char job_id[JOBDIR_KEY_MAX];
    uint32_t incarnation;
    int dir;
    struct filewatch_one *watched; /* dir */
    int pidfd;                     /* of the supervisor; -1: none known to live */
    struct event *pid_event;
    struct event *check_event; /* runs job_check from the loop */
    bool started_sent;
    bool away;         /* on another host: no supervisor of it is here */
    bool waits;        /* for its further hosts: it has not begun */
    UT_hash_handle hh; /* by key */
};

static const char lost_file[] = "lost"; /* why the rest of the job was ended */

struct rm_embedded {
    struct event_base *base;
    struct log *log;
    char *job_dir;
    int dir;
    char *supervise_path;
    duration_us kill_grace;
    int64_t output_max_mb;
    char *cgroup_root; /* NULL: none */
    rm_event_fn on_event;
    void *arg;
    struct filewatch *watch;
    struct job *jobs;
    struct remover *remover; /* of old files */
    struct agents *agents;   /* NULL: every node is this machine */
    struct health *health;   /* of this machine; NULL: nobody asks */
};

/* --- names and accounts ------------------------------------------------------------------- */

static struct job *job_find (struct rm_embedded *rm, const char *job_id, uint32_t incarnation)
{
    char key[JOBDIR_KEY_MAX];
    struct job *job;
    jobdir_key (job_id, incarnation, key);
    HASH_FIND_STR (rm->jobs, key, job);
    return job;
}

static int embedded_account_check (const char *local_account, struct err *err)
{
    struct passwd pw;
    char buf[4096];
    return jobdir_account (local_account, &pw, buf, sizeof buf, err);
}

/* --- the job's directory ------------------------------------------------------------------ */

static void spec_add_int (struct strbuf *b, const char *key, int64_t value)
{
    char text[32];
    snprintf (text, sizeof text, "%lld", (long long)value);
    jobdir_spec_add (b, key, text);
}

static void env_add (void *arg, const char *name, const char *value)
{
    struct strbuf *b = arg;
    strbuf_printf (b, "env=%s=%s", name, value);
    strbuf_append (b, "", 1);
}

/* The nodes are this machine, or parts of it: an MPI finds as many places as there are tasks, does not bind the first
 * processes of each job to the same processors, and looks for no Slurm where a script has Slurm's variables. */
static void env_of_mpi (const struct rm_job *job, struct strbuf *b)
{
    char places[16];
    snprintf (places, sizeof places, "%u", rm_job_tasks (job));
    const char *const pair[][2] = {{"OMPI_MCA_orte_set_default_slots", places},
                                   {"OMPI_MCA_hwloc_base_binding_policy", "none"},
                                   {"OMPI_MCA_plm", "^slurm"},
                                   {"OMPI_MCA_ras", "^slurm"}};
    for (size_t i = 0; i < sizeof pair / sizeof *pair; i++)
        if (!jobdir_env_has (job, pair[i][0]))
            env_add (b, pair[i][0], pair[i][1]);
}

static void spec_build (struct rm_embedded *rm, const struct rm_job *job, const char *key,
                        const struct passwd *pw, struct strbuf *b)
{
    char path[4096], start[JOBDIR_START_MAX];
    uint32_t procs;
    int64_t memory_mb;
    jobdir_spec_begin (b, job, pw);
    if (jobdir_start (job, pw, start)) {
        jobdir_spec_add (b, "chdir", start);
        snprintf (path, sizeof path, "%s/%s/work/script", rm->job_dir, key);
        jobdir_spec_add (b, "script", path);
    }
    spec_add_int (b, "gid", (int64_t)pw->pw_gid);
    spec_add_int (b, "start_us", job->start);
    spec_add_int (b, "walltime_us", job->walltime);
    if (job->signal) {
        spec_add_int (b, "signal", job->signal);
        spec_add_int (b, "signal_script", job->signal_script);
        spec_add_int (b, "signal_us", job->signal_after);
    }
    spec_add_int (b, "grace_us", rm->kill_grace);
    spec_add_int (b, "output_max_mb", rm->output_max_mb);
    spread_share (rm->agents, job, &procs, &memory_mb);
    spec_add_int (b, "procs", procs);
    spec_add_int (b, "memory_mb", memory_mb);
    spec_add_int (b, "pids_max", (int64_t)PIDS_PER_PROC * (procs ? procs : 1));
    if (rm->cgroup_root) { /* of another host's, the agent says its own */
        const char *mark = jobdir_or (job->mark, ""); /* another job of that number may live on */
        snprintf (path, sizeof path, "%s/%s%s%.8s", rm->cgroup_root, key, *mark ? "." : "", mark);
        jobdir_spec_add (b, "cgroup", path);
    }
    for (uint32_t i = 0; i < job->arg_count; i++)
        jobdir_spec_add (b, "arg", job->arg[i]);
    env_of_mpi (job, b);
    jobdir_env_each (job, rm->job_dir, key, pw, env_add, b);
    for (uint32_t i = 0; i < job->env_count; i++)
        jobdir_spec_add (b, "env", job->env[i]);
}

/* --- what the files say ------------------------------------------------------------------- */

static bool file_exists (int dir, const char *name)
{
    return faccessat (dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* --- a supervisor that died --------------------------------------------------------------- */

static bool environ_names_job (long pid, const char *job_id)
{
    char path[64];
    size_t len = 0;
    bool found = false;
    snprintf (path, sizeof path, "/proc/%ld/environ", pid);
    char *env = file_read_all (AT_FDCWD, path, &len);
    if (env) {
        const char *v = spec_get (env, len, "NUI_JOBID");
        found = v && strcmp (v, job_id) == 0;
        free (env);
    }
    return found;
}

/* KILLs what a dead supervisor left: its job's session, and whatever of the same account carries the
 * job's id in its environment. Returns how many processes were hit. */
static int orphans_kill (struct job *job, long session, unsigned long long ticks, uid_t uid)
{
    DIR *proc = opendir ("/proc");
    int hit = 0;
    struct dirent *e;
    while (proc && (e = readdir (proc))) {
        long pid = strtol (e->d_name, NULL, 10), its_session = 0;
        struct stat st;
        if (pid <= 1 || fstatat (dirfd (proc), e->d_name, &st, 0) != 0 || st.st_uid != uid)
            continue;
        unsigned long long t = process_ticks (pid, &its_session, NULL);
        bool ours = session && its_session == session && t >= ticks;
        if (!ours && pid != getpid () && t >= ticks)
            ours = environ_names_job (pid, job->job_id);
        if (ours && kill ((pid_t)pid, SIGKILL) == 0)
            hit++;
    }
    if (proc)
        closedir (proc);
    return hit;
}

static void lost (struct job *job)
{
    size_t len = 0, spec_len = 0;
    char *started = file_read_all (job->dir, "started", &len);
    char *spec = file_read_all (job->dir, "spec", &spec_len);
    const char *uid = spec ? spec_get (spec, spec_len, "uid") : NULL;
    const char *cgroup = spec ? spec_get (spec, spec_len, "cgroup") : NULL;
    if (cgroup) {
        char path[512];
        snprintf (path, sizeof path, "%s/cgroup.kill", cgroup);
        int fd = open (path, O_WRONLY | O_CLOEXEC);
        if (fd >= 0 && write (fd, "1", 1) == 1)
            log_event (job->owner->log, LOG_LEVEL_INFO, "rm", "cgroup_killed", "job=%s", job->key);
        if (fd >= 0)
            close (fd);
    }
    if (uid)
        for (int pass = 0; pass < 10; pass++)
            if (orphans_kill (job, started ? (long)lines_get_int (started, "pid") : 0,
                              started ? (unsigned long long)lines_get_int (started, "ticks") : 0,
                              (uid_t)strtoul (uid, NULL, 10)) == 0)
                break;
    if (cgroup)
        rmdir (cgroup); /* fails while the killed are still leaving: nothing is lost by that */
    struct rm_status end = {.ended = true,
                            .end = RM_END_NODE_FAILURE,
                            .exit_code = 255,
                            .start = started ? lines_get_int (started, "start_us") : 0,
                            .end_at = clock_now_us ()};
    text_printf (end.text, sizeof end.text,
                 "its supervising process was lost; what was left of the job was killed");
    if (run_status_write (job->dir, &end) != 0)
        log_event (job->owner->log, LOG_LEVEL_ERROR, "rm", "status_not_written", "job=%s error=%d",
                   job->key, errno);
    free (started);
    free (spec);
}

/* --- looking after one job ---------------------------------------------------------------- */

static void pidfd_drop (struct job *job)
{
    if (job->pid_event)
        event_free (job->pid_event);
    job->pid_event = NULL;
    if (job->pidfd >= 0)
        close (job->pidfd);
    job->pidfd = -1;
}

static void job_destroy (struct job *job)
{
    struct rm_embedded *rm = job->owner;
    HASH_DEL (rm->jobs, job);
    filewatch_remove (job->watched);
    pidfd_drop (job);
    if (job->check_event)
        event_free (job->check_event);
    if (job->dir >= 0)
        close (job->dir);
    free (job);
}

static void emit (struct job *job, enum rm_event_kind kind, const struct rm_status *status)
{
    struct rm_event event = {
        .kind = kind, .job_id = job->job_id, .incarnation = job->incarnation, .status = status};
    job->owner->on_event (job->owner->arg, &event);
}

static void on_pidfd (evutil_socket_t fd, short what, void *arg);

static int pidfd_watch (struct job *job, pid_t pid)
{
    pidfd_drop (job);
    job->pidfd = (int)syscall (SYS_pidfd_open, pid, 0);
    if (job->pidfd < 0)
        return -1;
    fcntl (job->pidfd, F_SETFD, FD_CLOEXEC);
    job->pid_event = event_new (job->owner->base, job->pidfd, EV_READ, on_pidfd, job);
    event_add (job->pid_event, NULL);
    return 0;
}

/* Who holds the lock: the supervisor that lives; 0: nobody. */
static pid_t lock_holder (struct job *job)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int fd = openat (job->dir, "lock", O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    pid_t pid = 0;
    if (fd < 0)
        return 0;
    if (fcntl (fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK)
        pid = lock.l_pid;
    close (fd);
    return pid;
}

/* Finds a living supervisor. */
static bool supervisor_attach (struct job *job)
{
    for (int again = 0; again < 3; again++) {
        pid_t pid = lock_holder (job);
        if (pid <= 0)
            return false;
        /* The same holder before and after: the pid cannot have been given to another since. */
        if (pidfd_watch (job, pid) == 0 && lock_holder (job) == pid)
            return true;
        pidfd_drop (job);
    }
    return false;
}

static int supervisor_spawn (struct job *job, struct err *err)
{
    struct rm_embedded *rm = job->owner;
    char path[4096], log_path[4200];
    snprintf (path, sizeof path, "%s/%s", rm->job_dir, job->key);
    snprintf (log_path, sizeof log_path, "%s/supervise.log", path);
    char *argv[] = {(char *)"nui-supervise", path, NULL};
    char *envp[] = {(char *)"PATH=/usr/bin:/bin", NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t mask, all;
    pid_t pid;
    posix_spawn_file_actions_init (&files);
    posix_spawn_file_actions_addopen (&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen (&files, 1, log_path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    posix_spawn_file_actions_adddup2 (&files, 1, 2);
    posix_spawnattr_init (&attr);
    /* TERM stays blocked until the supervisor can take it: a cancel is never lost nor fatal to it. */
    sigemptyset (&mask);
    sigaddset (&mask, SIGTERM);
    sigaddset (&mask, SIGRTMIN + SUPERVISE_SIGNAL_OFFSET);
    sigfillset (&all);
    sigdelset (&all, SIGKILL);
    sigdelset (&all, SIGSTOP);
    posix_spawnattr_setsigmask (&attr, &mask);
    posix_spawnattr_setsigdefault (&attr, &all);
    posix_spawnattr_setflags (&attr,
                              POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    int rc = posix_spawn (&pid, rm->supervise_path, &files, &attr, argv, envp);
    posix_spawn_file_actions_destroy (&files);
    posix_spawnattr_destroy (&attr);
    if (rc != 0)
        return err_set (err, ERR_IO, "%s: %s", rm->supervise_path, strerror (rc));
    if (pidfd_watch (job, pid) != 0)
        return err_set (err, ERR_IO, "pidfd of job %s: %s", job->key, strerror (errno));
    return 0;
}

/* No supervisor lives and there is no status: settle what that means, for good. */
static void job_settle (struct job *job)
{
    int marker = openat (job->dir, "launched", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (marker < 0) { /* it was launched, or may have been */
        lost (job);
        return;
    }
    close (marker); /* ours: now nobody else can launch it */
    struct rm_status end = {
        .ended = true, .end = RM_END_START_FAILED, .exit_code = 127, .end_at = clock_now_us ()};
    text_printf (end.text, sizeof end.text, "nui-supervise did not start");
    if (run_status_write (job->dir, &end) != 0)
        log_event (job->owner->log, LOG_LEVEL_ERROR, "rm", "status_not_written", "job=%s error=%d",
                   job->key, errno);
}

/* Looks at the files and tells what is new. Frees the job when it has ended. */
static void job_check (struct job *job)
{
    struct rm_status status;
    char *why = NULL;
    size_t len;
    run_status_read (job->dir, &status);
    if (!status.ended && !job->away && !job->waits && job->pidfd < 0 && !supervisor_attach (job)) {
        run_status_read (job->dir, &status); /* it may have ended between the two looks */
        if (!status.ended) {
            job_settle (job);
            run_status_read (job->dir, &status);
        }
        if (!status.ended) { /* not even that could be written: report what is true */
            status.ended = true;
            status.end = RM_END_NODE_FAILURE;
            status.end_at = clock_now_us ();
            status.exit_code = 255;
        }
    }
    if (status.started && !job->started_sent) {
        job->started_sent = true;
        struct rm_status running = {.started = true, .start = status.start};
        emit (job, RM_EVENT_STARTED, &running);
    }
    if (!status.ended)
        return;
    if (status.end == RM_END_CANCELLED && (why = file_read_all (job->dir, lost_file, &len))) {
        status.end = RM_END_NODE_FAILURE;
        text_printf (status.text, sizeof status.text, "%s", why);
    }
    free (why);
    log_event (job->owner->log, LOG_LEVEL_INFO, "rm", "job_ended", "job=%s how=%s exit_code=%d",
               job->key, rm_end_name (status.end), status.exit_code);
    char job_id[JOBDIR_KEY_MAX];
    struct rm_event event = {.kind = RM_EVENT_ENDED,
                             .job_id = job_id,
                             .incarnation = job->incarnation,
                             .status = &status};
    struct rm_embedded *rm = job->owner;
    memcpy (job_id, job->job_id, sizeof job_id);
    agents_parts_end (rm->agents, job_id, job->incarnation);
    job_destroy (job); /* first: the callback may start the next incarnation */
    rm->on_event (rm->arg, &event);
}

static void on_pidfd (evutil_socket_t fd, short what, void *arg)
{
    struct job *job = arg;
    (void)what;
    siginfo_t info;
    waitid (P_PIDFD, (id_t)fd, &info, WEXITED | WNOHANG); /* if it is our child: reap it */
    pidfd_drop (job);
    job_check (job);
}

static void on_check (evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    job_check (arg);
}

static int job_track (struct rm_embedded *rm, const char *job_id, uint32_t incarnation,
                      const char *mark, struct job **out, struct err *err)
{
    if (HASH_COUNT (rm->jobs) >= RM_EMBEDDED_JOBS_MAX)
        return err_set (err, ERR_LIMIT, "embedded runner: %d jobs at one time",
                        RM_EMBEDDED_JOBS_MAX);
    struct job *job = calloc (1, sizeof *job);
    if (!job)
        return err_set (err, ERR_NOMEM, "embedded runner: no memory");
    job->owner = rm;
    job->pidfd = job->dir = -1;
    job->incarnation = incarnation;
    snprintf (job->job_id, sizeof job->job_id, "%s", job_id);
    jobdir_key (job_id, incarnation, job->key);
    HASH_ADD_STR (rm->jobs, key, job);
    struct err why = {0};
    job->dir = jobdir_open (rm->dir, job_id, incarnation, mark, &why);
    if (job->dir < 0) {
        job_destroy (job);
        return err_set (err, why.code, "%s", why.text);
    }
    char path[4096];
    snprintf (path, sizeof path, "%s/%s", rm->job_dir, job->key);
    job->check_event = event_new (rm->base, -1, 0, on_check, job);
    int rc = job->check_event ? filewatch_add (rm->watch, path, IN_MOVED_TO, job->check_event,
                                               &job->watched, err)
                              : err_set (err, ERR_NOMEM, "embedded runner: no memory");
    if (rc != 0) {
        job_destroy (job);
        return rc;
    }
    *out = job;
    return 0;
}

/* Its end, for good, by our own word. */
static void job_end (struct job *job, enum rm_end how, const char *text)
{
    struct rm_status end = {.ended = true,
                            .end = how,
                            .exit_code = how == RM_END_CANCELLED      ? 0
                                         : how == RM_END_START_FAILED ? 127
                                                                      : 255,
                            .end_at = clock_now_us ()};
    text_printf (end.text, sizeof end.text, "%s", text);
    if (run_status_write (job->dir, &end) != 0)
        log_event (job->owner->log, LOG_LEVEL_ERROR, "rm", "status_not_written", "job=%s error=%d",
                   job->key, errno);
}

struct part_start {
    struct job *job;
    const char *mark;
    uint32_t count;
    struct err err;
};

static int on_part (void *arg, const struct agents_part *part)
{
    struct part_start *start = arg;
    struct job *job = start->job;
    start->count++;
    return agents_part_run (job->owner->agents, job->job_id, job->incarnation, start->mark, part,
                            &start->err);
}

/* Whether it is another host's, by what its directory says: then that one begins it, or goes on with it (again); or waits for
 * its further hosts (on_ready). Where a node is no longer another host, what became of the job is not known. */
static bool job_elsewhere (struct job *job, const char *mark, bool again)
{
    struct rm_embedded *rm = job->owner;
    struct part_start start = {.job = job, .mark = mark};
    size_t len = 0;
    char *spec = file_read_all (job->dir, "spec", &len);
    const char *node = spec ? spec_get (spec, len, "agent") : NULL;
    bool over = file_exists (job->dir, "status"),
         begun = file_exists (job->dir, "launched") || file_exists (job->dir, "handed");
    int rc = spec && !over ? spread_parts_each (spec, len, on_part, &start) : 0;
    job->away = node != NULL;
    job->waits = rc == 0 && start.count > 0 && !over && !begun;
    if (rc == 0 && node && !over && !job->waits)
        rc = agents_run (rm->agents, job->job_id, job->incarnation, mark, node, again, &start.err);
    if (rc != 0)
        job_end (job, RM_END_NODE_FAILURE, start.err.text);
    free (spec);
    return job->away || job->waits || rc != 0;
}

/* Where its further hosts are, for `nui run`. */
static int tasks_write (struct job *job, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    struct stat st;
    struct runfile file = {.path = (char *)".tasks", .mode = 0600};
    int work = openat (job->dir, "work", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    agents_parts_list (job->owner->agents, job->job_id, job->incarnation, &text);
    int rc =
        work >= 0 && fstat (work, &st) == 0
            ? runfiles_write (work, &file, 0, strbuf_text (&text), text.len, st.st_uid, st.st_gid,
                              err)
            : err_set (err, ERR_IO, "working directory of job %s: %s", job->key, strerror (errno));
    strbuf_free (&text);
    if (work >= 0)
        close (work);
    return rc;
}

static void on_ready (void *arg, const char *job_id, uint32_t incarnation)
{
    struct job *job = job_find (arg, job_id, incarnation);
    struct err err = {0};
    size_t len = 0;
    if (!job || !job->waits || file_exists (job->dir, "status"))
        return;
    job->waits = false;
    char *spec = file_read_all (job->dir, "spec", &len);
    const char *node = spec ? spec_get (spec, len, "agent") : NULL,
               *mark = spec ? spec_get (spec, len, "mark") : NULL;
    int rc = tasks_write (job, &err);
    if (rc == 0)
        rc = node ? agents_run (job->owner->agents, job_id, incarnation, mark, node, true, &err)
             : supervisor_attach (job) ? 0
                                       : supervisor_spawn (job, &err);
    if (rc != 0)
        job_end (job, RM_END_START_FAILED, err.text);
    free (spec);
}

static int embedded_cancel (void *self, const char *job_id, uint32_t incarnation, struct err *err);

static void on_lost (void *arg, const char *job_id, uint32_t incarnation, const char *why)
{
    struct job *job = job_find (arg, job_id, incarnation);
    struct err err = {0};
    if (!job || file_exists (job->dir, "status"))
        return;
    log_event (job->owner->log, LOG_LEVEL_WARN, "rm", "part_lost", "job=%s reason=\"%s\"", job->key,
               why);
    if (job->waits) {
        job->waits = false;
        job_end (job, RM_END_START_FAILED, why);
        return;
    }
    if (file_write_durable (job->dir, lost_file, why, strlen (why), 0600) != 0 ||
        embedded_cancel (arg, job_id, incarnation, &err) != 0)
        log_event (job->owner->log, LOG_LEVEL_ERROR, "rm", "rest_not_ended", "job=%s error=\"%s\"",
                   job->key, err.text);
}

/* --- operations --------------------------------------------------------------------------- */

static int embedded_adopt (void *self, const char *job_id, uint32_t incarnation, const char *mark,
                           struct err *err)
{
    struct rm_embedded *rm = self;
    struct job *job = job_find (rm, job_id, incarnation);
    if (job)
        return 0;
    int rc = name_check ("job id", job_id, err);
    if (rc == 0)
        rc = job_track (rm, job_id, incarnation, mark, &job, err);
    if (rc != 0)
        return rc;
    /* Never launched and nobody about to: the daemon died between making the directory and
     * spawning. The supervisor's own claim makes a second one harmless. */
    if (job_elsewhere (job, mark, true))
        rc = 0;
    else if (!supervisor_attach (job) && !file_exists (job->dir, "launched")) {
        rc = supervisor_spawn (job, err);
        if (rc != 0) {
            job_destroy (job);
            return rc;
        }
    }
    event_active (job->check_event, EV_TIMEOUT, 0);
    return 0;
}

static int embedded_start_on (struct rm_embedded *rm, const struct rm_job *spec, struct err *err)
{
    struct passwd pw;
    char buf[4096], key[JOBDIR_KEY_MAX];
    struct job *job;
    int rc = jobdir_check (spec, &pw, buf, sizeof buf, key, err);
    if (rc == 0)
        rc = jobdir_make_way (rm->dir, spec, key, rm->log, err);
    if (rc != 0)
        return rc;
    struct strbuf text = STRBUF_INIT;
    spec_build (rm, spec, key, &pw, &text);
    rc = spread_spec (rm->agents, spec, rm->job_dir, key, &text, err);
    if (rc == 0)
        rc = jobdir_make (rm->dir, spec, key, &pw, strbuf_text (&text), text.len, err);
    strbuf_free (&text);
    if (rc == 0)
        rc = job_track (rm, spec->job_id, spec->incarnation, spec->mark, &job, err);
    if (rc != 0)
        return rc;
    struct err spawn_err = {0};
    if (!job_elsewhere (job, spec->mark, false) && supervisor_spawn (job, &spawn_err) != 0) {
        /* The directory is there for good: the failure is this incarnation's end. */
        log_event (rm->log, LOG_LEVEL_ERROR, "rm", "spawn_failed", "job=%s error=\"%s\"", key,
                   spawn_err.text);
        event_active (job->check_event, EV_TIMEOUT, 0);
        return 0;
    }
    log_event (rm->log, LOG_LEVEL_INFO, "rm", "job_handed_over", "job=%s account=%s", key,
               spec->local_account);
    return 0;
}

static int embedded_start (void *self, const struct rm_job *spec, struct err *err)
{
    struct rm_embedded *rm = self;
    struct rm_job job = *spec;
    struct spread spread;
    spread_order (rm->agents, spec, &spread);
    job.host = spread.host;
    job.host_tasks = spread.tasks;
    int rc = embedded_start_on (rm, &job, err);
    spread_free (&spread);
    return rc;
}

static int signal_supervisor (struct rm_embedded *rm, const char *job_id, uint32_t incarnation,
                              int signo, int value, struct err *err)
{
    struct job *job = job_find (rm, job_id, incarnation);
    if (!job)
        return err_set (err, ERR_NOT_FOUND, "job %s does not run here", job_id);
    if (job->waits && signo == SIGTERM) {
        job->waits = false;
        job_end (job, RM_END_CANCELLED, "cancelled before it began");
        return 0;
    }
    if (signo != SIGTERM && !job->away)
        agents_parts_stop (rm->agents, job_id, incarnation, value);
    if (job->away)
        return agents_act (rm->agents, job_id, incarnation,
                           signo == SIGTERM   ? AGENTS_CANCEL
                           : value == SIGSTOP ? AGENTS_SUSPEND
                           : value == SIGCONT ? AGENTS_RESUME
                                              : AGENTS_SIGNAL,
                           value, err);
    if (job->pidfd < 0)
        return 0; /* its end is being noticed */
    siginfo_t info = {0};
    info.si_signo = signo;
    info.si_code = SI_QUEUE;
    info.si_pid = getpid ();
    info.si_uid = getuid ();
    info.si_value.sival_int = value;
    if (syscall (SYS_pidfd_send_signal, job->pidfd, signo, &info, 0) != 0 && errno != ESRCH)
        return err_set (err, ERR_IO, "signal to job %s: %s", job->key, strerror (errno));
    return 0;
}

static int embedded_signal (void *self, const char *job_id, uint32_t incarnation, int signo,
                            struct err *err)
{
    if (signo < 1 || signo > 64)
        return err_set (err, ERR_INVALID, "signal %d: 1 to 64", signo);
    return signal_supervisor (self, job_id, incarnation, SIGRTMIN + SUPERVISE_SIGNAL_OFFSET, signo,
                              err);
}

static int embedded_cancel (void *self, const char *job_id, uint32_t incarnation, struct err *err)
{
    return signal_supervisor (self, job_id, incarnation, SIGTERM, 0, err);
}

/* The supervisor stops the job's processes and its clock; again is as good as once. */
static int embedded_suspend (void *self, const char *job_id, uint32_t incarnation, bool on,
                             struct err *err)
{
    return signal_supervisor (self, job_id, incarnation, SIGRTMIN + SUPERVISE_SIGNAL_OFFSET,
                              on ? SIGSTOP : SIGCONT, err);
}

static int embedded_used (void *self, const char *job_id, uint32_t incarnation, struct rm_used *out,
                          struct err *err)
{
    struct job *job = job_find (self, job_id, incarnation);
    size_t len = 0;
    if (job && job->away)
        return agents_measured (job->owner->agents, job_id, incarnation, out, NULL, err);
    pid_t supervisor = job ? lock_holder (job) : 0;
    if (supervisor <= 0)
        return err_set (err, ERR_NOT_FOUND, "job %s does not run here", job_id);
    char *spec = file_read_all (job->dir, "spec", &len);
    const char *cgroup = spec ? spec_get (spec, len, "cgroup") : NULL;
    int64_t by_group = cgroup ? cpu_time_cgroup (cgroup) : -1;
    int64_t by_process = cpu_time_below (supervisor);
    free (spec);
    out->cpu_time = by_group > by_process ? by_group : by_process;
    out->memory_mb = memory_below_mb (supervisor);
    return out->cpu_time < 0 ? err_set (err, ERR_NOT_FOUND, "job %s has no processes left", job_id)
                             : 0;
}

/* Whether the group has a limit there: a controller that we were not given has no such file. */
static bool cgroup_keeps (const char *cgroup, const char *name)
{
    char path[4200], text[64] = "";
    snprintf (path, sizeof path, "%s/%s", cgroup ? cgroup : "", name);
    FILE *f = cgroup ? fopen (path, "re") : NULL;
    bool keeps = f && fgets (text, sizeof text, f) && strncmp (text, "max", 3) != 0;
    if (f)
        fclose (f);
    return keeps;
}

static int64_t spec_number (const char *spec, size_t len, const char *key)
{
    const char *text = spec_get (spec, len, key);
    return text ? strtoll (text, NULL, 10) : 0;
}

/* As the supervisor did it (child_limits there): what the job's group has no limit for is an rlimit. */
static int embedded_limits (void *self, const char *job_id, uint32_t incarnation,
                            struct rm_limits *out, struct err *err)
{
    struct job *job = job_find (self, job_id, incarnation);
    size_t len = 0;
    if (job && job->away)
        return agents_measured (job->owner->agents, job_id, incarnation, NULL, out, err);
    char *spec = job && lock_holder (job) > 0 ? file_read_all (job->dir, "spec", &len) : NULL;
    if (!spec)
        return err_set (err, ERR_NOT_FOUND, "job %s does not run here", job_id);
    const char *cgroup = spec_get (spec, len, "cgroup");
    bool processors = cgroup_keeps (cgroup, "cpu.max");
    *out = (struct rm_limits){
        .memory = cgroup_keeps (cgroup, "memory.max")    ? RM_KEPT_BY_CGROUP
                  : spec_number (spec, len, "memory_mb") ? RM_KEPT_BY_RLIMIT
                                                         : RM_KEPT_BY_NOTHING,
        .processors = processors ? RM_KEPT_BY_CGROUP : RM_KEPT_BY_NOTHING,
        .cpu_time = processors                               ? RM_KEPT_BY_CGROUP
                    : spec_number (spec, len, "walltime_us") ? RM_KEPT_BY_RLIMIT
                                                             : RM_KEPT_BY_NOTHING,
        .processes = cgroup_keeps (cgroup, "pids.max") ? RM_KEPT_BY_CGROUP : RM_KEPT_BY_RLIMIT,
    };
    free (spec);
    return 0;
}

static int embedded_output_open (void *self, const char *job_id, uint32_t incarnation,
                                 const char *mark, const char *stream, struct err *err)
{
    struct rm_embedded *rm = self;
    agents_output_wanted (rm->agents, job_id, incarnation);
    return jobdir_output_open (rm->dir, job_id, incarnation, mark, stream, err);
}

static int embedded_poll (void *self, struct err *err)
{
    struct rm_embedded *rm = self;
    struct job *job, *next;
    (void)err;
    HASH_ITER (hh, rm->jobs, job, next)
        event_active (job->check_event, EV_TIMEOUT, 0);
    return 0;
}

static int embedded_forget (void *self, const struct rm_gone *jobs, uint32_t count,
                            void (*done) (void *arg, bool ok), void *arg, struct err *err)
{
    struct rm_embedded *rm = self;
    return remover_go (rm->remover, jobs, count, done, arg, err);
}

static bool embedded_node_up (void *self, const char *name)
{
    struct rm_embedded *rm = self;
    return agents_up (rm->agents, name); /* every other node is this machine */
}

static const char *embedded_node_why (void *self, const char *name, bool *drained_out)
{
    struct rm_embedded *rm = self;
    *drained_out = embedded_node_up (self, name);
    return !*drained_out                    ? "its nui-node cannot be reached"
           : agents_have (rm->agents, name) ? agents_why (rm->agents, name)
                                            : health_why (rm->health);
}

static void on_nodes (void *arg)
{
    struct rm_embedded *rm = arg;
    struct rm_event event = {.kind = RM_EVENT_NODES};
    rm->on_event (rm->arg, &event);
}

static void embedded_destroy (void *self)
{
    struct rm_embedded *rm = self;
    struct job *job, *next;
    if (!rm)
        return;
    remover_destroy (rm->remover);
    agents_destroy (rm->agents);
    health_end (rm->health);
    HASH_ITER (hh, rm->jobs, job, next)
        job_destroy (job);
    if (rm->dir >= 0)
        close (rm->dir);
    if (rm->cgroup_root)
        rmdir (rm->cgroup_root); /* refused while a job is in it: that job goes on without us */
    free (rm->cgroup_root);
    free (rm->job_dir);
    free (rm->supervise_path);
    free (rm);
}

const char *rm_embedded_cgroup (const struct rm *rm)
{
    const struct rm_embedded *self = rm->self;
    return self->cgroup_root ? self->cgroup_root : "";
}

static const struct rm_ops embedded_ops = {
    .type = "EMBEDDED",
    .warns = true,
    .here = true,
    .account_check = embedded_account_check,
    .start = embedded_start,
    .adopt = embedded_adopt,
    .signal = embedded_signal,
    .cancel = embedded_cancel,
    .used = embedded_used,
    .limits = embedded_limits,
    .output_open = embedded_output_open,
    .poll = embedded_poll,
    .forget = embedded_forget,
    .node_up = embedded_node_up,
    .node_why = embedded_node_why,
    .destroy = embedded_destroy,
    .suspend = embedded_suspend,
};

int rm_embedded_create (const struct rm_embedded_config *config, struct rm *out, struct err *err)
{
    struct rm_embedded *rm = calloc (1, sizeof *rm);
    if (!rm)
        return err_set (err, ERR_NOMEM, "embedded runner: no memory");
    int rc = 0;
    rm->dir = -1;
    rm->base = config->base;
    rm->log = config->log;
    rm->watch = config->watch;
    rm->on_event = config->on_event;
    rm->arg = config->arg;
    rm->kill_grace = config->kill_grace ? config->kill_grace : kill_grace_default;
    rm->output_max_mb = config->output_max_mb;
    rm->supervise_path = strdup (config->supervise_path);
    if (access (rm->supervise_path, X_OK) != 0) {
        rc = err_set (err, ERR_NOT_FOUND, "%s: %s", rm->supervise_path, strerror (errno));
        goto fail;
    }
    rc = jobdir_parent (config->job_dir, &rm->job_dir, &rm->dir, err);
    if (rc != 0)
        goto fail;
    rm->remover = remover_create (rm->base, rm->log, rm->job_dir, rm->dir);
    rc = rm->remover
             ? filewatch_open (rm->watch, err)
             : err_set (err, ERR_IO, "job directory %s: %s", config->job_dir, strerror (errno));
    if (rc != 0)
        goto fail;
    if (config->cgroups)
        rm->cgroup_root =
            cgroup_root_open (rm->log, config->cgroup_name ? config->cgroup_name : "nui-local");
    else
        cgroup_limits_tell (rm->log, "");
    struct agents_config agents = {.base = rm->base,
                                   .log = rm->log,
                                   .id = config->id,
                                   .site = config->site,
                                   .job_dir = rm->job_dir,
                                   .dir = rm->dir,
                                   .agent = config->agent,
                                   .count = config->agent_count,
                                   .on_nodes = on_nodes,
                                   .on_ready = on_ready,
                                   .on_lost = on_lost,
                                   .arg = rm};
    rc = agents_create (&agents, &rm->agents, err);
    if (rc != 0)
        goto fail;
    rm->health = health_begin (rm->base, rm->log, &config->health, on_nodes, rm);
    *out = (struct rm){&embedded_ops, rm};
    return 0;
fail:
    embedded_destroy (rm);
    return rc;
}
