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
#include <time.h>
#include <unistd.h>

#include "local/rm/slurm_i.h"
#include "proto/base/hostlist.h"
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
    time_us since;      /* this search catches up with all that ended from here on; 0: it does not */
    time_us since_next; /* the next one will */
    uint32_t caught;
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

/* A job's name and directory are its user's and written as they are: a line in which something is said
 * twice could be one that he made up. */
static bool doubled (struct slurm *slurm, const char *line)
{
    static const char *const once[] = {"JobId",    "UserId",     "JobState", "TimeLimit",  "StartTime",
                                       "EndTime",  "NodeList",   "ProcCnt",  "SubmitTime", "ExitCode",
                                       "Account",  "ArrayJobId", "ArrayTaskId"};
    for (size_t i = 0; i < sizeof once / sizeof *once; i++) {
        char key[32], quoted[400];
        snprintf (key, sizeof key, " %s=", once[i]);
        const char *first = i == 0 ? line : strstr (line, key);
        if (first && strstr (first + 1, key)) {
            log_event (slurm->log, LOG_LEVEL_WARN, "slurm", "record_not_believed",
                       "reason=\"it says %s twice\" line=%s", once[i],
                       log_quote (line, quoted, sizeof quoted));
            return true;
        }
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

/* One that nobody here has heard of: told of as if a look had found it. */
static void unheard_take (struct slurm_done *done, struct slurm_seen *seen, const char *nodes,
                          const char *state, int exit_code, int signo)
{
    struct slurm *slurm = done->slurm;
    struct rm_native *n = &seen->native;
    struct strbuf b = STRBUF_INIT;
    const char **name;
    uint32_t count;
    if (seen->end < done->since || n->start == 0 || seen->end < n->start ||
        hostlist_expand (nodes, slurm->arena, &name, &count, NULL) != 0 || count == 0)
        return;
    for (uint32_t i = 0; i < count; i++) /* evenly: the records have their sum only */
        strbuf_printf (&b, "%s%s:%u", i ? "," : "", name[i],
                       n->procs / count + (i < n->procs % count));
    n->placement = arena_strdup (slurm->arena, strbuf_text (&b));
    strbuf_free (&b);
    n->state = RM_NATIVE_RUNNING;
    n->nodes_min = n->nodes_max = count;
    n->tasks = n->procs;
    n->features = n->gres_per_node = n->gres_per_task = n->gres_per_job = n->licences = n->hosts =
        n->hosts_excluded = n->dependency = n->array_id = "";
    seen->comment = seen->reason = seen->tasks = "";
    seen->partition = n->class_name;
    seen->state = SLURM_ENDED;
    seen->priority = 1;
    seen->exit_status = signo ? signo : exit_code << 8;
    snprintf (seen->word, sizeof seen->word, "%s", state);
    slurm_seen_take (slurm, seen);
    done->caught++;
}

/* "games(5)" → "games". */
static const char *plain_name (struct slurm *slurm, const char *line, const char *field)
{
    char word[2 * SLURM_WORD_MAX] = "";
    word_of (line, field, word, sizeof word);
    word[strcspn (word, "(")] = 0;
    return arena_strdup (slurm->arena, word);
}

static int64_t number_of (const char *line, const char *field)
{
    char word[40];
    return word_of (line, field, word, sizeof word) ? strtoll (word, NULL, 10) : 0;
}

static void line_catch_up (struct slurm_done *done, const char *line)
{
    struct slurm *slurm = done->slurm;
    char id[SLURM_ID_MAX], array[SLURM_ID_MAX], task[SLURM_ID_MAX], nodes[4096], word[32];
    char exit_text[16] = "0:0", start[40], end[40], submit[40];
    int exit_code = 0, signo = 0;
    struct slurm_seen seen = {0};
    struct rm_native *n = &seen.native;
    if (!word_of (line, "JobId", id, sizeof id) || !word_of (line, "JobState", word, sizeof word) ||
        !word_of (line, "StartTime", start, sizeof start) ||
        !word_of (line, "EndTime", end, sizeof end) ||
        !word_of (line, "SubmitTime", submit, sizeof submit) ||
        !word_of (line, "NodeList", nodes, sizeof nodes) || strcmp (nodes, "(null)") == 0 ||
        strcmp (word, "REQUEUED") == 0 || strcmp (word, "PENDING") == 0)
        return;
    slurm_batch_room (slurm);
    bool of_array = word_of (line, "ArrayJobId", array, sizeof array) &&
                    word_of (line, "ArrayTaskId", task, sizeof task);
    n->rm_id = of_array ? arena_printf (slurm->arena, "%s_%s", array, task)
                        : arena_strdup (slurm->arena, id);
    seen.number = strtoll (id, NULL, 10);
    n->submit = moment (submit);
    n->start = moment (start);
    seen.end = moment (end);
    n->name = plain_name (slurm, line, "Name");
    n->user = plain_name (slurm, line, "UserId");
    n->group = plain_name (slurm, line, "GroupId");
    n->account = plain_name (slurm, line, "Account");
    n->qos = plain_name (slurm, line, "QOS");
    n->class_name = plain_name (slurm, line, "Partition");
    int64_t procs = number_of (line, "ProcCnt");
    n->procs = procs > 0 && procs < INT32_MAX ? (uint32_t)procs : 1;
    n->walltime = number_of (line, "TimeLimit") * 60 * US_PER_S;
    word_of (line, "ExitCode", exit_text, sizeof exit_text);
    sscanf (exit_text, "%d:%d", &exit_code, &signo);
    unheard_take (done, &seen, nodes, word, exit_code, signo);
}

static void line_take (struct slurm *slurm, const char *line)
{
    char word[32], start[40], end[40], submit[40] = "", exit_text[16] = "0:0", nodes[64] = "";
    int exit_code = 0, signo = 0;
    struct slurm_job *job = job_for (slurm, line);
    bool of_use = job ? wanted (job) : slurm->done->since > 0;
    if (!of_use || doubled (slurm, line))
        return;
    if (!job)
        line_catch_up (slurm->done, line);
    if (!job || !word_of (line, "JobState", word, sizeof word) ||
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
    slurm_batch_tell (done->slurm);
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
    if (done->since_next) {
        done->since = done->since_next;
        done->since_next = 0;
        done->caught = 0;
    }
    if (slurm->completions)
        done->fd = open (slurm->completions, O_RDONLY | O_CLOEXEC);
    if (done->fd < 0)
        search_end (done);
    else
        event_active (done->slice, EV_TIMEOUT, 0);
}

/* --- sacct -------------------------------------------------------------------------------- */

/* As asked for; times in epoch seconds. The name is last: it may have anything in it. */
enum {
    F_ID,
    F_SUBMIT,
    F_START,
    F_END,
    F_STATE,
    F_EXIT,
    F_NODES,
    F_USER,
    F_GROUP,
    F_ACCOUNT,
    F_QOS,
    F_PARTITION,
    F_PROCS,
    F_LIMIT,
    F_NAME,
    FIELDS
};
static const char sacct_fields[] = "--format=JobID,Submit,Start,End,State,ExitCode,NodeList,User,Group,"
                                   "Account,QOS,Partition,AllocCPUS,TimelimitRaw,JobName";

static time_us sacct_time (const char *text)
{
    return strtoll (text, NULL, 10) * US_PER_S; /* "Unknown" is 0 */
}

static void sacct_catch_up (struct slurm_done *done, char *const field[FIELDS], int exit_code,
                            int signo)
{
    struct slurm *slurm = done->slurm;
    struct slurm_seen seen = {0};
    struct rm_native *n = &seen.native;
    slurm_batch_room (slurm);
    const char **const text[] = {&n->rm_id, &n->user, &n->group,      &n->account,
                                 &n->qos,   &n->name, &n->class_name};
    const int from[] = {F_ID, F_USER, F_GROUP, F_ACCOUNT, F_QOS, F_NAME, F_PARTITION};
    for (size_t i = 0; i < sizeof from / sizeof *from; i++)
        *text[i] = arena_strdup (slurm->arena, field[from[i]]);
    n->submit = sacct_time (field[F_SUBMIT]);
    n->start = sacct_time (field[F_START]);
    seen.end = sacct_time (field[F_END]);
    long long procs = strtoll (field[F_PROCS], NULL, 10);
    n->procs = procs > 0 && procs < INT32_MAX ? (uint32_t)procs : 1;
    n->walltime = strtoll (field[F_LIMIT], NULL, 10) * 60 * US_PER_S; /* "UNLIMITED" is 0 */
    unheard_take (done, &seen, field[F_NODES], field[F_STATE], exit_code, signo);
}

static void sacct_line (struct slurm *slurm, char *line)
{
    char *field[FIELDS] = {NULL}, *save = line;
    int exit_code = 0, signo = 0;
    for (int i = 0; i < F_NAME; i++)
        field[i] = strsep (&save, "|");
    field[F_NAME] = save;
    if (!save)
        return;
    struct slurm_job *job = slurm_job_by_rm (slurm, field[F_ID]);
    field[F_STATE][strcspn (field[F_STATE], " ")] = 0; /* "CANCELLED by 1000" */
    if (strcmp (field[F_STATE], "RUNNING") == 0 || strcmp (field[F_STATE], "PENDING") == 0 ||
        strcmp (field[F_STATE], "REQUEUED") == 0)
        return;
    sscanf (field[F_EXIT], "%d:%d", &exit_code, &signo);
    bool ran = *field[F_NODES] && strcmp (field[F_NODES], "None assigned") != 0;
    if (!job && ran && slurm->done->since)
        sacct_catch_up (slurm->done, field, exit_code, signo);
    if (!job || job->seeking != SEEK_SACCT ||
        (job->submit > 0 && sacct_time (field[F_SUBMIT]) != job->submit))
        return;
    found (job, field[F_STATE], exit_code, signo, sacct_time (field[F_START]),
           sacct_time (field[F_END]), ran);
}

static void sacct_end (struct slurm *slurm, bool answered)
{
    struct slurm_done *done = slurm->done;
    struct slurm_job *job, *next;
    done->asking = false;
    slurm_batch_tell (slurm);
    if (done->since && answered) {
        log_event (slurm->log, LOG_LEVEL_INFO, "slurm", "caught_up", "unseen_jobs=%u", done->caught);
        done->since = 0;
    }
    HASH_ITER (hh_id, slurm->by_id, job, next)
    if (job->seeking == SEEK_SACCT)
        unknown (job);
    if (done->again) {
        done->again = false;
        search_begin (done);
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
    sacct_end (slurm, code == 0);
}

static bool sought (const struct slurm_job *job)
{
    return job->seeking == SEEK_SACCT && *job->rm_id;
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
    done->asking = true;
    HASH_ITER (hh_id, slurm->by_id, job, next)
    if (sought (job) && job->submit > 0 && since && job->submit < since)
        since = job->submit; /* it may have ended before: its record is found by when it began */
    if (since)
        strbuf_printf (&ids, "uts%lld", (long long)(since / US_PER_S));
    else
        HASH_ITER (hh_id, slurm->by_id, job, next)
        if (sought (job) && count < IDS_MAX)
            strbuf_printf (&ids, "%s%s", count++ ? "," : "", job->rm_id);
    if (!slurm->sacct || ids.len == 0) {
        strbuf_free (&ids);
        sacct_end (slurm, true);
        return;
    }
    const char *args[] = {"sacct",         "--noheader",
                          "--parsable2",   "--allocations",
                          "--duplicates",  "--allusers",
                          sacct_fields,    since ? "--starttime" : "--jobs",
                          strbuf_text (&ids), since ? "--endtime=now" : NULL,
                          /* by its end: a job that was ever held (our guard) has no eligible time there,
                           * by which sacct would look otherwise */
                          "--state=CD,F,CA,TO,NF,OOM,DL,PR,BF", NULL};
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

void slurm_done_catch_up (struct slurm *slurm, time_us since)
{
    if (!slurm->completions && !slurm->sacct)
        return;
    slurm->done->since_next = since - US_PER_S; /* Slurm's times are whole seconds */
    search_begin (slurm->done);
}

bool slurm_done_idle (const struct slurm *slurm)
{
    return slurm->done->since == 0 && slurm->done->since_next == 0;
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
