/* Ends that Slurm has forgotten (MinJobAge): its completion file (jobcomp/filetxt), else sacct. They are
 * asked for jobs that we know and Slurm does not any more; and, when Slurm was out of sight (or we were
 * down), for all that ended since: some may have come and gone unseen (catching up). The file is also
 * watched: what is written to it wakes us, so that an end is known at once. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "local/rm/slurm/slurm_i.h"
#include "local/rm/slurm/slurm_record.h"
#include "proto/base/clock.h"
#include "proto/base/hostlist.h"
#include "proto/base/strbuf.h"
#include "proto/base/text.h"

enum { CHUNK = 64 << 10, LINE_MAX_BYTES = 64 << 10 };
static const duration_us turn_longest = 2000, ask_again = 10 * US_PER_S, usage_every = US_PER_S / 2,
                         usage_patience = 15 * US_PER_S;

struct slurm_done {
    struct slurm *slurm;
    struct filewatch_one *watched; /* the completion file */
    struct event *changed;
    int fd; /* of a search under way; -1 */
    off_t at;
    struct strbuf line; /* begun in the last chunk */
    struct event *slice;
    bool again;    /* more to find when this search is done */
    time_us since; /* this search catches up with all that ended from here on; 0: it does not */
    time_us since_next; /* the next one will */
    uint32_t caught;
    struct slurm_record record;
    bool asking;              /* sacct runs, or what it said is being looked at */
    char *lines, *lines_left; /* of that */
    struct event *lines_timer, *begin;
};

/* --- a job whose end is looked for -------------------------------------------------------- */

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

/* --- a record ----------------------------------------------------------------------------- */

static struct slurm_job *job_for (struct slurm *slurm, const struct slurm_record *r)
{
    struct slurm_job *job = slurm_job_by_rm (slurm, r->id);
    if (!job) /* tasks are known by their own numbers, too */
        HASH_FIND (hh_number, slurm->by_number, &r->number, sizeof r->number, job);
    if (job || !*r->name)
        return job;
    job = slurm_job_by_title (slurm, r->name); /* ours, whose number we never heard */
    bool theirs = job && (*job->rm_id || (job->user && strcmp (job->user, r->user) != 0));
    return theirs ? NULL : job; /* a name is its user's choice */
}

/* One that nobody here has heard of: told of as if a look had found it. */
static void unheard_take (struct slurm_done *done, const struct slurm_record *r)
{
    struct slurm *slurm = done->slurm;
    struct slurm_seen seen = {
        .number = r->number, .end = r->end, .state = SLURM_ENDED, .priority = 1};
    struct rm_native *n = &seen.native;
    struct strbuf b = STRBUF_INIT;
    const char **name;
    uint32_t count;
    slurm_batch_room (slurm);
    if (!r->ran || r->end < done->since || r->start == 0 || r->end < r->start ||
        hostlist_expand (r->nodes, slurm->arena, &name, &count, NULL) != 0 || count == 0)
        return;
    for (uint32_t i = 0; i < count; i++) /* evenly: the records have their sum only */
        strbuf_printf (&b, "%s%s:%u", i ? "," : "", name[i],
                       r->procs / count + (i < r->procs % count));
    const struct {
        const char **to, *from;
    } text[] = {{&n->rm_id, r->id},
                {&n->name, r->name},
                {&n->user, r->user},
                {&n->group, r->group},
                {&n->account, r->account},
                {&n->qos, r->qos},
                {&n->class_name, r->partition},
                {&n->placement, strbuf_text (&b)}};
    for (size_t i = 0; i < sizeof text / sizeof *text; i++)
        *text[i].to = arena_strdup (slurm->arena, text[i].from);
    strbuf_free (&b);
    n->submit = r->submit;
    n->start = r->start;
    n->procs = n->tasks = r->procs;
    n->walltime = r->walltime;
    n->state = RM_NATIVE_RUNNING;
    n->nodes_min = n->nodes_max = count;
    n->features = n->gres_per_node = n->gres_per_task = n->gres_per_job = n->licences = n->hosts =
        n->hosts_excluded = n->dependency = n->array_id = "";
    seen.comment = seen.reason = seen.tasks = "";
    seen.partition = n->class_name;
    seen.exit_status = r->signo ? r->signo : r->exit_code << 8;
    text_printf (seen.word, sizeof seen.word, "%.23s", r->state);
    slurm_seen_take (slurm, &seen);
    done->caught++;
}

static void record_take (struct slurm_done *done, const struct slurm_record *r)
{
    struct slurm_job *job = job_for (done->slurm, r);
    struct rm_status status = {.cpu_known = r->cpu_time >= 0, .cpu_time = r->cpu_time};
    if (!job && done->since)
        unheard_take (done, r);
    if (!job || job->phase == PHASE_SUBMIT || job->seeking == SEEK_NONE)
        return;
    if (job->seeking == SEEK_USAGE) {
        if (r->end > 0 && r->start == job->start) {
            job->cpu_time = r->cpu_time;
            job->usage_asked = true;
        }
        return; /* Slurm itself has said the rest */
    }
    if (job->submit > 0 && r->submit > 0 && r->submit != job->submit)
        return; /* another job of the same number */
    if (job->started_told && r->end < job->start_told / US_PER_S * US_PER_S)
        return; /* an earlier run of it */
    slurm_end_of (r->state, r->signo ? r->signo : r->exit_code << 8, &status);
    if (r->ran && r->start > 0 && r->end >= r->start) {
        status.started = true;
        status.start = r->start;
        status.end_at = r->end > r->start ? r->end : r->start + US_PER_S;
    } else if (status.end != RM_END_NODE_FAILURE) {
        status.end = RM_END_CANCELLED;
    }
    slurm_job_finish (job, &status);
    slurm_job_free (job);
}

/* --- the completion file ------------------------------------------------------------------ */

static void line_take (struct slurm_done *done, const char *line)
{
    const char *field;
    char quoted[400];
    enum slurm_record_is is = slurm_record_completion (line, &done->record, &field);
    const struct slurm_job *job = slurm_job_by_rm (done->slurm, done->record.id);
    if (is == RECORD_END)
        record_take (done, &done->record);
    else if (is == RECORD_DOUBTFUL && (job ? job->seeking != SEEK_NONE : done->since > 0))
        log_event (done->slurm->log, LOG_LEVEL_WARN, "slurm", "record_not_believed",
                   "reason=\"it says %s twice\" line=%s", field,
                   log_quote (line, quoted, sizeof quoted));
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
            line_take (done, strbuf_text (&done->line));
            strbuf_clear (&done->line);
            len++;
        }
        from += len;
        left -= (ssize_t)len;
    }
    free (chunk);
    slurm_batch_tell (done->slurm);
    if (n > 0)
        slurm_timer_set (done->slice, 0);
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
    bool file = false;
    HASH_ITER (hh_id, slurm->by_id, job, next)
        if (job->seeking == SEEK_WAITING) {
            job->seeking = SEEK_FILE;
            file = true;
        }
    done->at = 0;
    if (done->since_next) {
        done->since = done->since_next;
        done->since_next = 0;
        done->caught = 0;
    }
    if (slurm->completions && (file || done->since))
        done->fd = open (slurm->completions, O_RDONLY | O_CLOEXEC);
    if (done->fd < 0)
        search_end (done);
    else
        slurm_timer_set (done->slice, 0);
}

/* --- sacct -------------------------------------------------------------------------------- */

/* Where it could not answer, nothing is concluded: it is asked again. */
static void sacct_end (struct slurm *slurm, bool answered)
{
    struct slurm_done *done = slurm->done;
    struct slurm_job *job, *next;
    bool more = done->since && !answered, asked_again = false;
    done->asking = false;
    if (done->since && answered)
        log_event (slurm->log, LOG_LEVEL_INFO, "slurm", "caught_up", "unseen_jobs=%u",
                   done->caught);
    else if (done->since && !done->since_next)
        done->since_next = done->since;
    done->since = 0;
    HASH_ITER (hh_id, slurm->by_id, job, next) {
        if (job->seeking == SEEK_USAGE) {
            job->usage_asked = job->usage_asked || clock_monotonic_us () > job->deadline;
            if (job->usage_asked) {
                job->seeking = SEEK_NONE;
                slurm_job_settle_soon (job);
            }
            asked_again = asked_again || !job->usage_asked;
            continue;
        }
        if (job->seeking != SEEK_SACCT)
            continue;
        if (answered) {
            unknown (job);
        } else {
            job->seeking = SEEK_WAITING;
            more = true;
        }
    }
    if (more) {
        slurm_timer_set (done->begin, ask_again);
    } else if (done->again) {
        done->again = false;
        search_begin (done);
    } else if (asked_again) {
        slurm_timer_set (done->begin, usage_every);
    }
}

/* Some of its lines, then others have their turn. */
static void on_lines (evutil_socket_t fd, short what, void *arg)
{
    struct slurm_done *done = arg;
    duration_us until = clock_monotonic_us () + turn_longest;
    (void)fd;
    (void)what;
    while (done->lines_left && *done->lines_left && clock_monotonic_us () < until) {
        char *line = strsep (&done->lines_left, "\n");
        if (slurm_record_sacct (line, &done->record) == RECORD_END)
            record_take (done, &done->record);
    }
    slurm_batch_tell (done->slurm);
    if (done->lines_left && *done->lines_left) {
        slurm_timer_set (done->lines_timer, 0);
        return;
    }
    free (done->lines);
    done->lines = done->lines_left = NULL;
    sacct_end (done->slurm, true);
}

static void on_sacct (void *arg, int code, const char *text)
{
    struct slurm *slurm = arg;
    struct slurm_done *done = slurm->done;
    if (code != 0) {
        sacct_end (slurm, false);
        return;
    }
    done->lines = done->lines_left = strdup (text);
    slurm_timer_set (done->lines_timer, 0);
}

static bool sought (const struct slurm_job *job)
{
    return (job->seeking == SEEK_SACCT || job->seeking == SEEK_USAGE) && *job->rm_id;
}

/* All that ended since, or the jobs that are sought: sacct cannot be asked for both at once. */
static void sacct_ask (struct slurm *slurm)
{
    enum { IDS_MAX = 500 };
    struct slurm_done *done = slurm->done;
    struct strbuf ids = STRBUF_INIT;
    struct slurm_job *job, *next;
    uint32_t count = 0;
    time_us since = done->since;
    char fields[sizeof "--format=" + 256];
    snprintf (fields, sizeof fields, "--format=%s", slurm_record_sacct_fields);
    done->asking = true;
    time_us first = TIME_US_MAX;
    HASH_ITER (hh_id, slurm->by_id, job, next)
        if (sought (job)) {
            strbuf_printf (&ids, "%s%s", count++ ? "," : "", job->rm_id);
            if (job->submit > 0 && job->submit < first)
                first = job->submit;
        }
    if (!since && count > IDS_MAX && first < TIME_US_MAX)
        since = first;
    if (since) { /* a known one may have ended before: its record is found by when it began */
        strbuf_clear (&ids);
        strbuf_printf (&ids, "uts%lld", (long long)((first < since ? first : since) / US_PER_S));
    }
    if (!slurm->sacct || ids.len == 0) {
        strbuf_free (&ids);
        sacct_end (slurm, true);
        return;
    }
    const char *args[] = {
        "sacct", "--noheader",
        /* with its steps, whose lines are none of ours, a job has used something */
        "--parsable2", slurm->usage ? "--noconvert" : "--allocations", "--duplicates", "--allusers",
        fields, since ? "--starttime" : "--jobs", strbuf_text (&ids),
        since ? "--endtime=now" : NULL,
        /* by its end: a job that was ever held (our guard) has no eligible time there,
                           * by which sacct would look otherwise */
        "--state=CD,F,CA,TO,NF,OOM,DL,PR,BF", NULL};
    slurm_command (slurm, args, on_sacct, slurm);
    strbuf_free (&ids);
}

/* For all jobs that are sought by then. */
static void on_begin (evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    search_begin (arg);
}

/* --- interface ---------------------------------------------------------------------------- */

void slurm_done_find (struct slurm_job *job)
{
    if (job->seeking != SEEK_NONE)
        return;
    job->seeking = SEEK_WAITING;
    slurm_timer_set (job->owner->done->begin, 0);
}

void slurm_done_usage (struct slurm_job *job)
{
    if (job->seeking != SEEK_NONE)
        return;
    job->seeking = SEEK_USAGE;
    job->cpu_time = -1;
    job->deadline = clock_monotonic_us () + usage_patience;
    if (!evtimer_pending (job->owner->done->begin, NULL))
        slurm_timer_set (job->owner->done->begin, usage_every);
}

void slurm_done_catch_up (struct slurm *slurm, time_us since)
{
    if (!slurm->completions && !slurm->sacct)
        return;
    slurm->done->since_next = since - US_PER_S; /* Slurm's times are whole seconds */
    slurm_timer_set (slurm->done->begin, 0);
}

bool slurm_done_idle (const struct slurm *slurm)
{
    return slurm->done->since == 0 && slurm->done->since_next == 0;
}

static void on_changed (evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    slurm_look (arg, true);
}

int slurm_done_init (struct slurm *slurm, struct err *err)
{
    struct slurm_done *done = calloc (1, sizeof *done);
    if (!done)
        return err_set (err, ERR_NOMEM, "Slurm: no memory");
    slurm->done = done;
    done->slurm = slurm;
    done->fd = -1;
    done->slice = evtimer_new (slurm->base, on_slice, done);
    done->lines_timer = evtimer_new (slurm->base, on_lines, done);
    done->begin = evtimer_new (slurm->base, on_begin, done);
    if (!done->slice || !done->lines_timer || !done->begin)
        return err_set (err, ERR_NOMEM, "Slurm: no memory for timers");
    if (!slurm->completions)
        return 0;
    done->changed = event_new (slurm->base, -1, 0, on_changed, slurm);
    if (!done->changed)
        return err_set (err, ERR_NOMEM, "Slurm: no memory for timers");
    /* Not there yet: it is looked for at the next whole look only. */
    filewatch_add (slurm->watch, slurm->completions, IN_MODIFY, done->changed, &done->watched,
                   NULL);
    return 0;
}

void slurm_done_stop (struct slurm *slurm)
{
    struct slurm_done *done = slurm->done;
    if (!done)
        return;
    filewatch_remove (done->watched);
    struct event *const timers[] = {done->slice, done->lines_timer, done->begin, done->changed};
    for (size_t i = 0; i < sizeof timers / sizeof *timers; i++)
        if (timers[i])
            event_free (timers[i]);
    free (done->lines);
    if (done->fd >= 0)
        close (done->fd);
    strbuf_free (&done->line);
    free (done);
    slurm->done = NULL;
}
