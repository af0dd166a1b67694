/* pool: forks a worker for each run, hears progress and result over a pipe, and writes finished
 * runs to files. lab.c calls it. No worker outlives the call, and a file is there whole or not
 * at all. */
#include "local/sim/lab/pool.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "local/sim/outfile.h"
#include "proto/base/clock.h"
#include "proto/base/mem.h"

enum { WORKERS_MAX = 64, PATH_BYTES = 4096 };

/* What a worker says: progress, then one of result and failure, with so many bytes after it. */
enum { SAYS_PROGRESS, SAYS_RESULT, SAYS_FAILED };
struct message {
    uint64_t kind, value; /* value: jobs done; bytes that follow */
};

struct worker {
    pid_t pid; /* 0: none */
    int fd;
    uint32_t run;
    uint64_t jobs_done;
    struct strbuf heard;
};

struct pool {
    struct lab_run *run;
    uint32_t count, next, done;
    const struct pool_options *options;
    struct worker worker[WORKERS_MAX];
    uint32_t workers;
    uint64_t jobs_done, jobs_total;
    uint64_t *key;
};

static volatile sig_atomic_t stop_asked;

static void stop_note (int sig)
{
    (void)sig;
    stop_asked = 1;
}

/* --- the worker's side ---------------------------------------------------------------------- */

struct teller {
    int fd;
    duration_us last;
};

static void tell (int fd, const void *bytes, size_t len)
{
    const char *at = bytes;
    while (len > 0) {
        ssize_t n = write (fd, at, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            _exit (1); /* nobody listens */
        at += n;
        len -= (size_t)n;
    }
}

static void tell_progress (void *self, uint64_t jobs_done)
{
    struct teller *t = self;
    duration_us now = clock_monotonic_us ();
    if (now - t->last < US_PER_S / 10)
        return;
    t->last = now;
    struct message m = {SAYS_PROGRESS, jobs_done};
    tell (t->fd, &m, sizeof m);
}

static void worker_live (const struct lab_run *run, uint64_t key, int fd)
{
    struct teller teller = {fd, clock_monotonic_us ()};
    struct lab_result result;
    struct strbuf out = STRBUF_INIT;
    struct err err = {0};
    int rc = lab_run_simulate (run, tell_progress, &teller, &result, &err);
    if (rc == 0)
        lab_result_write (&result, key, &out);
    else
        strbuf_append (&out, &err, sizeof err);
    struct message m = {rc == 0 ? SAYS_RESULT : SAYS_FAILED, out.len};
    tell (fd, &m, sizeof m);
    tell (fd, out.data, out.len);
    _exit (0); /* nothing of the parent's is flushed or freed */
}

/* --- files ---------------------------------------------------------------------------------- */

static void file_name (const struct pool *p, uint32_t run, char path[PATH_BYTES])
{
    snprintf (path, PATH_BYTES, "%s/%016llx.run", p->options->folder,
              (unsigned long long)p->key[run]);
}

static int file_read (const struct pool *p, uint32_t run)
{
    char path[PATH_BYTES], block[65536];
    struct strbuf bytes = STRBUF_INIT;
    size_t n;
    if (!p->options->folder)
        return ERR_NOT_FOUND;
    file_name (p, run, path);
    FILE *f = fopen (path, "rb");
    if (!f)
        return ERR_NOT_FOUND;
    while ((n = fread (block, 1, sizeof block, f)) > 0)
        strbuf_append (&bytes, block, n);
    fclose (f);
    int rc = lab_result_read (bytes.data, bytes.len, p->key[run], &p->run[run].result, NULL);
    strbuf_free (&bytes);
    return rc;
}

static int file_write (const struct pool *p, uint32_t run, const void *bytes, size_t len,
                       struct err *err)
{
    char path[PATH_BYTES];
    struct outfiles files = {0};
    if (!p->options->folder)
        return 0;
    file_name (p, run, path);
    strbuf_append (outfiles_add (&files, path), bytes, len);
    int rc = outfiles_commit (&files, err);
    outfiles_free (&files);
    return rc;
}

/* --- the parent's side ---------------------------------------------------------------------- */

static void progress_tell (const struct pool *p)
{
    uint64_t done = p->jobs_done;
    for (uint32_t i = 0; i < p->workers; i++)
        done += p->worker[i].pid ? p->worker[i].jobs_done : 0;
    if (p->options->progress)
        p->options->progress (p->options->self, done < p->jobs_total ? done : p->jobs_total,
                              p->jobs_total);
}

static int worker_start (struct pool *p, struct worker *w, struct err *err)
{
    int ends[2];
    if (pipe (ends) != 0)
        return err_set (err, ERR_IO, "a pipe to a worker: %s", strerror (errno));
    pid_t parent = getpid ();
    pid_t pid = fork ();
    if (pid < 0) {
        close (ends[0]);
        close (ends[1]);
        return err_set (err, ERR_IO, "a worker: %s", strerror (errno));
    }
    if (pid == 0) {
        signal (SIGINT, SIG_IGN); /* the terminal's goes to all; the parent decides */
        signal (SIGTERM, SIG_DFL);
        prctl (PR_SET_PDEATHSIG, SIGKILL);
        if (getppid () != parent)
            _exit (1);
        close (ends[0]);
        worker_live (&p->run[p->next], p->key[p->next], ends[1]);
    }
    close (ends[1]);
    w->pid = pid;
    w->fd = ends[0];
    w->run = p->next++;
    w->jobs_done = 0;
    strbuf_clear (&w->heard);
    return 0;
}

static void worker_end (struct worker *w)
{
    close (w->fd);
    while (waitpid (w->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    w->pid = 0;
    strbuf_free (&w->heard);
}

static int worker_finish (struct pool *p, struct worker *w, const struct message *m,
                          const char *body, struct err *err)
{
    uint32_t at = w->run;
    int rc;
    if (m->kind == SAYS_FAILED && m->value == sizeof (struct err)) {
        struct err said;
        memcpy (&said, body, sizeof said);
        rc = err_set (err, said.code, "%s: %s", p->run[at].label, said.text);
    } else {
        rc = lab_result_read (body, m->value, p->key[at], &p->run[at].result, err);
        if (!rc)
            rc = file_write (p, at, body, m->value, err);
    }
    worker_end (w);
    p->done++;
    p->jobs_done += lab_run_size (&p->run[at]);
    return rc;
}

/* What has been heard so far, as far as it is whole. */
static int worker_hear (struct pool *p, struct worker *w, struct err *err)
{
    char block[65536];
    ssize_t n = read (w->fd, block, sizeof block);
    if (n < 0)
        return errno == EINTR ? 0 : err_set (err, ERR_IO, "a worker: %s", strerror (errno));
    if (n == 0) {
        worker_end (w);
        return err_set (err, ERR_INTERNAL, "%s: its simulation ended without a result",
                        p->run[w->run].label);
    }
    strbuf_append (&w->heard, block, (size_t)n);
    struct message m;
    size_t at = 0;
    while (w->heard.len - at >= sizeof m) {
        memcpy (&m, w->heard.data + at, sizeof m);
        if (m.kind == SAYS_PROGRESS) {
            w->jobs_done = m.value;
            at += sizeof m;
            continue;
        }
        if (w->heard.len - at - sizeof m < m.value)
            break;
        return worker_finish (p, w, &m, w->heard.data + at + sizeof m, err);
    }
    if (at > 0) {
        memmove (w->heard.data, w->heard.data + at, w->heard.len - at);
        w->heard.len -= at;
    }
    return 0;
}

static int workers_wait (struct pool *p, struct err *err)
{
    struct pollfd fds[WORKERS_MAX];
    uint32_t which[WORKERS_MAX], count = 0;
    for (uint32_t i = 0; i < p->workers; i++) {
        if (p->worker[i].pid) {
            fds[count] = (struct pollfd){.fd = p->worker[i].fd, .events = POLLIN};
            which[count++] = i;
        }
    }
    int n = poll (fds, count, 1000);
    if (n < 0 && errno != EINTR)
        return err_set (err, ERR_IO, "poll: %s", strerror (errno));
    for (uint32_t i = 0; n > 0 && i < count; i++) {
        int rc = fds[i].revents ? worker_hear (p, &p->worker[which[i]], err) : 0;
        if (rc)
            return rc;
    }
    progress_tell (p);
    return 0;
}

static int pool_go (struct pool *p, struct pool_summary *summary, struct err *err)
{
    while (p->done < p->count) {
        int rc = 0;
        if (stop_asked)
            return err_set (
                err, ERR_UNAVAILABLE, "stopped after %u of %u simulations%s", p->done, p->count,
                p->options->folder ? "; the same command again goes on from there" : "");
        for (uint32_t i = 0; i < p->workers && !rc; i++) {
            while (!p->worker[i].pid && p->next < p->count && file_read (p, p->next) == 0) {
                p->jobs_done += lab_run_size (&p->run[p->next]);
                p->next++;
                p->done++;
                summary->kept++;
            }
            if (!p->worker[i].pid && p->next < p->count) {
                rc = worker_start (p, &p->worker[i], err);
                summary->simulated++;
            }
        }
        if (!rc && p->done < p->count)
            rc = workers_wait (p, err);
        if (rc)
            return rc;
    }
    return 0;
}

int pool_run (struct lab_run *run, uint32_t count, const struct pool_options *options,
              struct pool_summary *summary, struct err *err)
{
    struct pool *p = mem_zero (1, sizeof *p);
    struct sigaction note = {.sa_handler = stop_note}, old_int, old_term;
    long cores = sysconf (_SC_NPROCESSORS_ONLN);
    *p = (struct pool){.run = run, .count = count, .options = options};
    p->workers = options->workers ? options->workers : cores > 0 ? (uint32_t)cores : 1;
    p->workers = p->workers > WORKERS_MAX ? WORKERS_MAX : p->workers;
    p->key = mem_zero (count + 1, sizeof p->key[0]);
    memset (summary, 0, sizeof *summary);
    int rc = 0;
    for (uint32_t i = 0; i < count; i++) {
        p->key[i] = lab_run_key (&run[i]);
        p->jobs_total += lab_run_size (&run[i]);
    }
    stop_asked = 0;
    sigaction (SIGINT, &note, &old_int);
    sigaction (SIGTERM, &note, &old_term);
    if (!rc)
        rc = pool_go (p, summary, err);
    for (uint32_t i = 0; i < p->workers; i++) {
        if (p->worker[i].pid) {
            kill (p->worker[i].pid, SIGKILL);
            worker_end (&p->worker[i]);
        }
    }
    sigaction (SIGINT, &old_int, NULL);
    sigaction (SIGTERM, &old_term, NULL);
    free (p->key);
    free (p);
    return rc;
}
