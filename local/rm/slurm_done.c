/* Ends that Slurm has forgotten (MinJobAge): its completion file (jobcomp/filetxt), else sacct. The
 * file is also watched: what is written to it wakes us, so that an end is known at once. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "local/rm/slurm_i.h"
#include "proto/base/strbuf.h"

enum { CHUNK = 256 << 10, LINE_MAX_BYTES = 64 << 10 };

struct slurm_done {
    struct slurm *slurm;
    int watch; /* inotify */
    struct event *changed;
    int fd; /* of a search under way; -1 */
    off_t at;
    struct strbuf line; /* begun in the last chunk */
    struct event *slice;
    bool again;  /* more to find when this search is done */
    bool asking; /* sacct runs */
};

/* --- a job whose end is looked for -------------------------------------------------------- */

static bool wanted (const struct slurm_job *job)
{
    return job->phase != PHASE_SUBMIT && job->seeking != SEEK_NONE;
}

/* Nowhere: whoever asked is told so. */
static void unknown (struct slurm_job *job)
{
    struct slurm *slurm = job->owner;
    char id[JOBDIR_KEY_MAX];
    struct rm_event event = {
        .kind = RM_EVENT_UNKNOWN, .job_id = id, .incarnation = job->incarnation};
    memcpy (id, job->job_id, sizeof id);
    log_event (slurm->log, LOG_LEVEL_WARN, "slurm", "job_unknown",
               "job=%s slurm_job=%s reason=\"neither Slurm nor its records know it\"", id,
               *job->rm_id ? job->rm_id : "-");
    slurm_job_free (job);
    slurm->on_event (slurm->arg, &event);
}

static void found (struct slurm_job *job, const char *word, int exit_code, int signo, time_us start,
                   time_us end, bool ran)
{
    struct rm_status status = {0};
    slurm_end_of (word, signo ? signo : exit_code << 8, &status);
    if (ran && start > 0 && end >= start) {
        status.started = true;
        status.start = start;
        status.end_at = end > start ? end : start + US_PER_S;
    } else if (status.end != RM_END_NODE_FAILURE) {
        status.end = RM_END_CANCELLED;
    }
    slurm_job_finish (job, &status);
    slurm_job_free (job);
}

/* --- the completion file ------------------------------------------------------------------ */

/* Value of NAME= among blank-separated words; copied. */
static bool word_of (const char *line, const char *name, char *out, size_t cap)
{
    size_t len = strlen (name);
    for (const char *p = line; (p = strstr (p, name)); p += len) {
        if ((p != line && p[-1] != ' ') || p[len] != '=')
            continue;
        size_t n = strcspn (p + len + 1, " \n");
        snprintf (out, cap, "%.*s", (int)(n < cap ? n : cap - 1), p + len + 1);
        return true;
    }
    return false;
}

/* "2026-11-21T13:40:00" in Slurm's local time, which is taken for ours; 0: "Unknown", "None". */
static time_us moment (const char *text)
{
    struct tm tm = {.tm_isdst = -1};
    if (!strptime (text, "%Y-%m-%dT%H:%M:%S", &tm))
        return 0;
    return (time_us)mktime (&tm) * US_PER_S;
}

static struct slurm_job *job_for (struct slurm *slurm, const char *line)
{
    char id[SLURM_ID_MAX], array[SLURM_ID_MAX], task[SLURM_ID_MAX], name[JOBDIR_KEY_MAX];
    char rm_id[2 * SLURM_ID_MAX];
    struct slurm_job *job = NULL;
    if (!word_of (line, "JobId", id, sizeof id))
        return NULL;
    snprintf (rm_id, sizeof rm_id, "%s", id);
    if (word_of (line, "ArrayJobId", array, sizeof array) &&
        word_of (line, "ArrayTaskId", task, sizeof task))
        snprintf (rm_id, sizeof rm_id, "%s_%s", array, task);
    job = slurm_job_by_rm (slurm, rm_id);
    if (!job) /* tasks are known by their own numbers, too */
        for (job = slurm->jobs; job; job = job->hh.next)
            if (job->number > 0 && job->number == strtoll (id, NULL, 10))
                break;
    if (!job && word_of (line, "Name", name, sizeof name)) /* ours, whose number we never heard */
        HASH_FIND (hh_id, slurm->by_id, name, strlen (name), job);
    return job;
}

static void line_take (struct slurm *slurm, const char *line)
{
    char word[32], start[40], end[40], submit[40] = "", exit_text[16] = "0:0", nodes[64] = "";
    int exit_code = 0, signo = 0;
    struct slurm_job *job = job_for (slurm, line);
    if (!job || !wanted (job) || !word_of (line, "JobState", word, sizeof word) ||
        !word_of (line, "StartTime", start, sizeof start) ||
        !word_of (line, "EndTime", end, sizeof end))
        return;
    word_of (line, "SubmitTime", submit, sizeof submit);
    if (job->submit > 0 && moment (submit) > 0 && moment (submit) != job->submit)
        return; /* another job of the same number */
    if (job->started_told && moment (end) < job->start_told / US_PER_S * US_PER_S)
        return; /* an earlier run of it */
    if (strcmp (word, "REQUEUED") == 0 || strcmp (word, "PENDING") == 0)
        return;
    word_of (line, "ExitCode", exit_text, sizeof exit_text);
    word_of (line, "NodeList", nodes, sizeof nodes);
    sscanf (exit_text, "%d:%d", &exit_code, &signo);
    found (job, word, exit_code, signo, moment (start), moment (end),
           *nodes && strcmp (nodes, "(null)") != 0);
}

static void sacct_ask (struct slurm *slurm);

static void search_end (struct slurm_done *done)
{
    struct slurm *slurm = done->slurm;
    struct slurm_job *job, *next;
    if (done->fd >= 0)
        close (done->fd);
    done->fd = -1;
    strbuf_clear (&done->line);
    HASH_ITER (hh_id, slurm->by_id, job, next)
    if (job->seeking == SEEK_FILE)
        job->seeking = SEEK_SACCT;
    sacct_ask (slurm);
}

/* One chunk of the file, then others have their turn. */
static void on_slice (evutil_socket_t fd, short what, void *arg)
{
    struct slurm_done *done = arg;
    (void)fd;
    (void)what;
    char *chunk = malloc (CHUNK);
    ssize_t n = chunk ? pread (done->fd, chunk, CHUNK, done->at) : -1;
    char *from = chunk;
    done->at += n > 0 ? n : 0;
    for (ssize_t left = n; left > 0;) {
        char *newline = memchr (from, '\n', (size_t)left);
        size_t len = newline ? (size_t)(newline - from) : (size_t)left;
        if (done->line.len < LINE_MAX_BYTES)
            strbuf_append (&done->line, from, len);
        if (newline) {
            line_take (done->slurm, strbuf_text (&done->line));
            strbuf_clear (&done->line);
            len++;
        }
        from += len;
        left -= (ssize_t)len;
    }
    free (chunk);
    if (n > 0)
        event_active (done->slice, EV_TIMEOUT, 0);
    else
        search_end (done);
}

static void search_begin (struct slurm_done *done)
{
    struct slurm *slurm = done->slurm;
    struct slurm_job *job, *next;
    if (done->fd >= 0 || done->asking) {
        done->again = true;
        return;
    }
    HASH_ITER (hh_id, slurm->by_id, job, next)
    if (job->seeking == SEEK_WAITING)
        job->seeking = SEEK_FILE;
    done->at = 0;
    if (slurm->completions)
        done->fd = open (slurm->completions, O_RDONLY | O_CLOEXEC);
    if (done->fd < 0)
        search_end (done);
    else
        event_active (done->slice, EV_TIMEOUT, 0);
}

/* --- sacct -------------------------------------------------------------------------------- */

/* JobID|JobIDRaw|Submit|Start|End|State|ExitCode|NodeList, times in epoch seconds. */
static void sacct_line (struct slurm *slurm, char *line)
{
    char *field[8] = {NULL}, *save = line;
    int exit_code = 0, signo = 0;
    for (int i = 0; i < 8; i++)
        field[i] = strsep (&save, "|");
    struct slurm_job *job = field[7] ? slurm_job_by_rm (slurm, field[0]) : NULL;
    if (!job || job->seeking != SEEK_SACCT)
        return;
    if (job->submit > 0 && strtoll (field[2], NULL, 10) * US_PER_S != job->submit)
        return;
    field[5][strcspn (field[5], " ")] = 0; /* "CANCELLED by 1000" */
    if (strcmp (field[5], "RUNNING") == 0 || strcmp (field[5], "PENDING") == 0 ||
        strcmp (field[5], "REQUEUED") == 0)
        return;
    sscanf (field[6], "%d:%d", &exit_code, &signo);
    bool ran = *field[7] && strcmp (field[7], "None assigned") != 0;
    found (job, field[5], exit_code, signo, strtoll (field[3], NULL, 10) * US_PER_S,
           strtoll (field[4], NULL, 10) * US_PER_S, ran);
}

static void sacct_end (struct slurm *slurm)
{
    struct slurm_job *job, *next;
    slurm->done->asking = false;
    HASH_ITER (hh_id, slurm->by_id, job, next)
    if (job->seeking == SEEK_SACCT)
        unknown (job);
    if (slurm->done->again) {
        slurm->done->again = false;
        search_begin (slurm->done);
    }
}

static void on_sacct (void *arg, int code, const char *text)
{
    struct slurm *slurm = arg;
    char *copy = strdup (text), *save = NULL;
    for (char *line = code == 0 && copy ? strtok_r (copy, "\n", &save) : NULL; line;
         line = strtok_r (NULL, "\n", &save))
        sacct_line (slurm, line);
    free (copy);
    sacct_end (slurm);
}

static void sacct_ask (struct slurm *slurm)
{
    enum { IDS_MAX = 500 };
    struct strbuf ids = STRBUF_INIT;
    struct slurm_job *job, *next;
    uint32_t count = 0;
    slurm->done->asking = true;
    HASH_ITER (hh_id, slurm->by_id, job, next)
    if (slurm->sacct && job->seeking == SEEK_SACCT && *job->rm_id && count < IDS_MAX)
        strbuf_printf (&ids, "%s%s", count++ ? "," : "", job->rm_id);
    if (count == 0) {
        strbuf_free (&ids);
        sacct_end (slurm);
        return;
    }
    const char *args[] = {"sacct",
                          "--noheader",
                          "--parsable2",
                          "--allocations",
                          "--duplicates",
                          "--format=JobID,JobIDRaw,Submit,Start,End,State,ExitCode,NodeList",
                          "--jobs",
                          strbuf_text (&ids),
                          NULL};
    slurm_command (slurm, args, on_sacct, slurm);
    strbuf_free (&ids);
}

/* --- interface ---------------------------------------------------------------------------- */

void slurm_done_find (struct slurm_job *job)
{
    if (job->seeking != SEEK_NONE)
        return;
    job->seeking = SEEK_WAITING;
    search_begin (job->owner->done);
}

static void on_changed (evutil_socket_t fd, short what, void *arg)
{
    char buf[4096];
    (void)what;
    while (read (fd, buf, sizeof buf) > 0)
        ;
    slurm_look (arg, true);
}

int slurm_done_init (struct slurm *slurm, struct err *err)
{
    struct slurm_done *done = calloc (1, sizeof *done);
    if (!done)
        return err_set (err, ERR_NOMEM, "Slurm: no memory");
    slurm->done = done;
    done->slurm = slurm;
    done->fd = done->watch = -1;
    done->slice = event_new (slurm->base, -1, 0, on_slice, done);
    if (!slurm->completions)
        return 0;
    done->watch = inotify_init1 (IN_NONBLOCK | IN_CLOEXEC);
    /* Not there yet: it is looked for at the next whole look only. */
    if (done->watch >= 0 && inotify_add_watch (done->watch, slurm->completions, IN_MODIFY) >= 0) {
        done->changed =
            event_new (slurm->base, done->watch, EV_READ | EV_PERSIST, on_changed, slurm);
        event_add (done->changed, NULL);
    }
    return 0;
}

void slurm_done_stop (struct slurm *slurm)
{
    struct slurm_done *done = slurm->done;
    if (!done)
        return;
    if (done->changed)
        event_free (done->changed);
    if (done->slice)
        event_free (done->slice);
    if (done->watch >= 0)
        close (done->watch);
    if (done->fd >= 0)
        close (done->fd);
    strbuf_free (&done->line);
    free (done);
    slurm->done = NULL;
}
