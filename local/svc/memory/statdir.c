/* STATDIR: the history as Maui's workload trace, one file for each day of ends ("Sat_Nov_21_2026",
 * local time), so that `nui sim`, Maui itself and people's scripts read it.
 *
 * The store knows how far it is written: the last row, the file, its size. A row is in the files
 * exactly once, whenever the daemon dies: what a file has beyond the size that is on record is cut
 * off first, and a new file is on record before anything is appended to it. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "local/svc/memory/memory.h"
#include "local/svc/svc_i.h"
#include "proto/base/strbuf.h"

enum { ROWS_PER_GO = 500, DAY_MAX = 32 };
static const char blob_name[] = "statdir";

struct statdir {
    struct svc *svc;
    struct event *event;
    uint64_t sequence; /* rows up to here are written */
    char day[DAY_MAX]; /* the file */
    int64_t size;
    bool complained; /* once until it works again */
};

/* --- a line ------------------------------------------------------------------------------- */

/* A field has no blanks; what a list separates with ':' stays. */
static void field (struct strbuf *out, const char *text)
{
    if (!*text) {
        strbuf_puts (out, "[NONE]");
        return;
    }
    for (const unsigned char *p = (const unsigned char *)text; *p; p++)
        strbuf_putc (out, *p <= ' ' || *p == 0x7f ? '_' : (char)*p);
}

static long long whole_s (time_us t)
{
    return (long long)(t / US_PER_S);
}

static const char *state_word (const struct history_job *j)
{
    if (!j->start)
        return j->state == STORE_JOB_CANCELLED ? "Removed" : "NotRun";
    return j->state == STORE_JOB_CANCELLED ? "Removed" : "Completed";
}

static void features (struct strbuf *out, const char *list)
{
    if (!*list)
        strbuf_puts (out, "[NONE]");
    for (const char *p = list; *p;) {
        size_t n = strcspn (p, ",");
        strbuf_printf (out, "[%.*s]", (int)n, p);
        p += n + (p[n] == ',');
    }
}

static void statdir_line (struct strbuf *out, const char *site, const struct history_job *j)
{
    int64_t run = j->start && j->end > j->start ? j->end - j->start : 0;
    double used = (double)(j->cpu >= 0 ? j->cpu : run * j->procs) / (double)US_PER_S;
    strbuf_printf (out, "%s.%llu %u %u ", site, (unsigned long long)j->number, j->nodes, j->tasks);
    field (out, j->user);
    strbuf_putc (out, ' ');
    field (out, j->group);
    strbuf_printf (out, " %lld %s ", whole_s (j->walltime), state_word (j));
    if (*j->class_name) {
        strbuf_putc (out, '[');
        field (out, j->class_name);
        strbuf_puts (out, ":1]");
    } else {
        strbuf_puts (out, "[NONE]");
    }
    strbuf_printf (out, " %lld %lld %lld %lld [NONE] [NONE] [NONE] >= 0M >= 0M ",
                   whole_s (j->submit), whole_s (j->dispatch), whole_s (j->start),
                   j->start ? whole_s (j->end) : 0);
    features (out, j->features);
    strbuf_printf (out, " %lld %u %u ", whole_s (j->eligible), j->start ? j->tasks : 0,
                   j->tasks_per_node);
    field (out, *j->qos_asked ? j->qos_asked : j->qos);
    strbuf_putc (out, ':');
    field (out, j->qos);
    strbuf_puts (out, j->backfilled ? " [BACKFILL] " : " [NONE] ");
    field (out, j->account);
    strbuf_putc (out, ' ');
    field (out, j->name);
    strbuf_putc (out, ' ');
    field (out, j->grid_job_id); /* the comment */
    strbuf_printf (out, " %u %.2f ", j->bypass, j->start ? used : 0);
    field (out, j->partition);
    strbuf_printf (out, " %d %dM %dM %dM %lld 2140000000 ", j->task_procs, j->mem_mb, j->disk_mb,
                   j->swap_mb, whole_s (j->not_before));
    field (out, j->hosts);
    strbuf_putc (out, ' ');
    field (out, j->rm);
    strbuf_puts (out, " [NONE] ");
    field (out, j->reservation);
    strbuf_printf (out, " [NONE] [NONE] %d\n", j->exit_code);
}

/* --- the files ---------------------------------------------------------------------------- */

static char *day_of (time_us t, char out[DAY_MAX])
{
    time_t seconds = (time_t)(t / US_PER_S);
    struct tm tm;
    localtime_r (&seconds, &tm);
    /* Not strftime: its names follow the locale. */
    static const char day[7][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char month[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    snprintf (out, DAY_MAX, "%s_%s_%02d_%04d", day[tm.tm_wday % 7], month[tm.tm_mon % 12],
              tm.tm_mday % 100, (tm.tm_year + 1900) % 10000);
    return out;
}

void statdir_path (const struct svc *svc, char *out, size_t cap)
{
    if (svc->settings->stat_dir)
        snprintf (out, cap, "%s", svc->settings->stat_dir);
    else
        snprintf (out, cap, "%s/%s", daemon_state_dir (svc->daemon),
                  svc->sim ? "simulation.stats" : "stats");
}

static int record (struct statdir *d, uint64_t sequence, const char *day, int64_t size,
                   struct err *err)
{
    char text[128];
    int n = snprintf (text, sizeof text, "%llu %s %lld", (unsigned long long)sequence,
                      *day ? day : "-", (long long)size);
    int rc = svc_begin (d->svc, err);
    if (rc == 0)
        rc = local_store_blob_put (d->svc->store, blob_name, text, (size_t)n, err);
    rc = svc_commit (d->svc, rc, err);
    if (rc == 0) {
        d->sequence = sequence;
        d->size = size;
        if (day != d->day)
            snprintf (d->day, sizeof d->day, "%s", day);
    }
    return rc;
}

static int file_open (struct statdir *d, const char *day, int *fd_out, struct err *err)
{
    char path[4200], dir[4096];
    struct stat st;
    statdir_path (d->svc, dir, sizeof dir);
    if (mkdir (dir, 0755) != 0 && errno != EEXIST)
        return err_set (err, ERR_IO, "STATDIR %s: %s", dir, strerror (errno));
    snprintf (path, sizeof path, "%s/%s", dir, day);
    /* A simulation begins anew, and so do its files. */
    int anew = d->svc->sim && strcmp (day, d->day) != 0 ? O_TRUNC : 0;
    int fd = open (path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | anew, 0644);
    if (fd < 0 || fstat (fd, &st) != 0) {
        err_set (err, ERR_IO, "%s: %s", path, strerror (errno));
        goto fail;
    }
    if (strcmp (day, d->day) != 0) { /* on record before it grows */
        if (record (d, d->sequence, day, st.st_size, err) != 0)
            goto fail;
    } else if (st.st_size > d->size && ftruncate (fd, d->size) != 0) {
        err_set (err, ERR_IO, "%s: %s", path, strerror (errno));
        goto fail;
    } else if (st.st_size < d->size) {
        d->size = st.st_size; /* somebody took it away: what was in it is theirs */
    }
    *fd_out = fd;
    return 0;
fail:
    if (fd >= 0)
        close (fd);
    return err->code;
}

static int text_append (int fd, const char *text, size_t len)
{
    while (len > 0) {
        ssize_t n = write (fd, text, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        text += n;
        len -= (size_t)n;
    }
    return fsync (fd);
}

static int file_write (struct statdir *d, const char *day, uint64_t sequence,
                       const struct strbuf *lines, struct err *err)
{
    static const char head[] = "VERSION 230\n";
    int fd;
    int rc = file_open (d, day, &fd, err);
    if (rc != 0)
        return rc;
    int64_t size = d->size + (d->size == 0 ? (int64_t)sizeof head - 1 : 0) + (int64_t)lines->len;
    if ((d->size == 0 && text_append (fd, head, sizeof head - 1) != 0) ||
        text_append (fd, lines->data, lines->len) != 0)
        rc = err_set (err, ERR_IO, "STATDIR: %s: %s", day, strerror (errno));
    close (fd);
    return rc == 0 ? record (d, sequence, d->day, size, err) : rc;
}

/* --- row by row --------------------------------------------------------------------------- */

struct batch {
    struct statdir *dir;
    char day[DAY_MAX];
    struct strbuf lines;
    uint64_t sequence;
    int rc;
    struct err *err;
};

static void batch_flush (struct batch *b)
{
    if (b->rc == 0 && b->lines.len > 0)
        b->rc = file_write (b->dir, b->day, b->sequence, &b->lines, b->err);
    strbuf_free (&b->lines);
    b->lines = (struct strbuf)STRBUF_INIT;
}

/* Rows are copied while the query is open; files and records are written after it. */
struct rows {
    struct strbuf text;
    const char *site;
    uint32_t count;
    struct {
        uint64_t sequence;
        time_us end;
        size_t upto;
    } row[ROWS_PER_GO];
};

static void on_row (void *arg, const struct history_job *job)
{
    struct rows *r = arg;
    statdir_line (&r->text, r->site, job);
    r->row[r->count].sequence = job->sequence;
    r->row[r->count].end = job->end;
    r->row[r->count++].upto = r->text.len;
}

static int rows_write (struct statdir *d, const struct rows *r, struct err *err)
{
    struct batch b = {.dir = d, .lines = STRBUF_INIT, .err = err};
    size_t from = 0;
    for (uint32_t i = 0; i < r->count; i++) {
        char day[DAY_MAX];
        if (strcmp (day_of (r->row[i].end, day), b.day) != 0) {
            batch_flush (&b);
            memcpy (b.day, day, sizeof day);
        }
        strbuf_append (&b.lines, r->text.data + from, r->row[i].upto - from);
        from = r->row[i].upto;
        b.sequence = r->row[i].sequence;
    }
    batch_flush (&b);
    return b.rc;
}

/* True: there is more. */
static bool go (struct statdir *d)
{
    struct err err = {0};
    struct history_filter all = {0};
    uint64_t last;
    bool more = false;
    struct rows *r = calloc (1, sizeof *r);
    char quoted[400];
    assert (r);
    r->text = (struct strbuf)STRBUF_INIT;
    r->site = d->svc->site;
    int rc =
        history_read (d->svc->store, &all, d->sequence, ROWS_PER_GO, on_row, r, &last, &more, &err);
    if (rc == 0)
        rc = rows_write (d, r, &err);
    if (rc != 0 && !d->complained)
        log_event (d->svc->log, LOG_LEVEL_ERROR, "stats", "trace_not_written", "error=%s",
                   log_quote (err.text, quoted, sizeof quoted));
    d->complained = rc != 0;
    strbuf_free (&r->text);
    free (r);
    return rc == 0 && more;
}

static void wake_in (struct statdir *d, duration_us delay)
{
    struct timeval t = {.tv_sec = delay / US_PER_S, .tv_usec = delay % US_PER_S};
    if (!evtimer_pending (d->event, NULL))
        evtimer_add (d->event, &t);
}

static void on_event (evutil_socket_t fd, short what, void *arg)
{
    struct statdir *d = arg;
    (void)fd;
    (void)what;
    if (go (d))
        wake_in (d, 0);
    else if (d->complained)
        wake_in (d, 60 * US_PER_S);
}

void statdir_open (struct svc *svc)
{
    struct statdir *d = calloc (1, sizeof *d);
    void *bytes = NULL;
    size_t len;
    unsigned long long sequence;
    long long size;
    assert (d);
    d->svc = svc;
    svc->statdir = d;
    if (local_store_blob_get (svc->store, blob_name, &bytes, &len, NULL) == 0 &&
        sscanf (bytes, "%llu %31s %lld", &sequence, d->day, &size) == 3) {
        d->sequence = sequence;
        d->size = size;
    }
    free (bytes);
    d->event = evtimer_new (svc->base, on_event, d);
    assert (d->event);
    wake_in (d, 0);
}

void statdir_wake (struct svc *svc)
{
    if (svc->statdir)
        wake_in (svc->statdir, US_PER_S / 2); /* ends come together: one fsync for them */
}

uint64_t statdir_written (struct svc *svc)
{
    return svc->statdir ? svc->statdir->sequence : 0;
}

static void statdir_close (struct svc *svc)
{
    struct statdir *d = svc->statdir;
    if (!d)
        return;
    while (go (d))
        continue;
    event_free (d->event);
    free (d);
    svc->statdir = NULL;
}

const struct svc_listener statdir_listener = {.stop = statdir_close};
