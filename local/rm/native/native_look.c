/* Looks at a resource manager that is asked by programs: nodes, then jobs, every so often and when something was done. An
 * answer is taken whole or not at all; the same text as last time costs a comparison. What it says is told over several turns
 * of the loop. While no good answer comes the last one stands, and nothing is decided by it. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "local/rm/native/native_i.h"
#include "proto/base/clock.h"
#include "proto/base/text.h"

enum { NATIVE_JOBS_MAX = NATIVE_ENTRIES_MAX };
static const duration_us turn_longest = 2000, retry_first = US_PER_S / 2,
                         retry_last = 10 * US_PER_S, look_soonest = US_PER_S / 20;

void native_timer_set (struct event *timer, duration_us d)
{
    struct timeval t = {.tv_sec = d / US_PER_S, .tv_usec = d % US_PER_S};
    evtimer_add (timer, &t);
}

void native_turn_soon (struct native *native)
{
    if (!evtimer_pending (native->turn_timer, NULL))
        native_timer_set (native->turn_timer, 0);
}

static void tell (struct native *native, enum rm_event_kind kind)
{
    struct rm_event event = {.kind = kind};
    native->on_event (native->arg, &event);
}

static void look_end (struct native *native, duration_us next)
{
    native->looking = native->reading = native->telling = false;
    if (native->look_again) {
        native->look_again = false;
        next = look_soonest;
    }
    native_timer_set (native->poll_timer, next);
}

/* One sentence for as long as it is the same. */
static void look_failed (struct native *native, const char *why)
{
    char quoted[700], age[80] = "nothing was ever heard";
    native->retry = native->retry ? native->retry * 2 : retry_first;
    if (native->retry > retry_last)
        native->retry = retry_last;
    if (native->retry > native->poll_every)
        native->retry = native->poll_every;
    native->look_again = false;
    if (native->fresh || !native->ever_looked || strcmp (why, native->why) != 0) {
        text_printf (native->why, sizeof native->why, "%s", why);
        if (native->settled)
            snprintf (age, sizeof age, "what was said %lld s ago stands",
                      (long long)((clock_now_us () - native->settled) / US_PER_S));
        log_event (native->log, LOG_LEVEL_WARN, "native", "unreachable",
                   "error=%s reason=\"%s; nothing is decided until a good answer comes\"",
                   log_quote (why, quoted, sizeof quoted), age);
    }
    native->ever_looked = true;
    bool news = native->fresh;
    native->fresh = false;
    look_end (native, native->retry);
    if (news)
        tell (native, RM_EVENT_REACH);
}

/* --- nodes -------------------------------------------------------------------------------- */

static bool text_same (const struct strbuf *had, const struct native_said *said)
{
    return had->len == said->len && said->len > 0 && memcmp (had->data, said->text, said->len) == 0;
}

static void text_keep (struct strbuf *had, const struct native_said *said)
{
    strbuf_clear (had);
    strbuf_append (had, said->text, said->len);
}

static bool node_same (const struct rm_node *a, const struct rm_node *b)
{
    return strcmp (a->name, b->name) == 0 && a->state == b->state && a->procs == b->procs &&
           a->memory_mb == b->memory_mb && a->disk_mb == b->disk_mb &&
           strcmp (a->reason, b->reason) == 0 && strcmp (a->features, b->features) == 0 &&
           strcmp (a->gres, b->gres) == 0 && strcmp (a->classes, b->classes) == 0;
}

static int nodes_take (struct native *native, const struct native_said *said, struct err *err)
{
    struct arena *arena = arena_create (0);
    struct rm_node *list;
    uint32_t count;
    const char *licences;
    bool counted = native->url[RM_CALL_CLUSTERQUERY].scheme == NATIVE_FILE;
    int rc =
        native_parse_nodes (said->text, said->len, counted, arena, &list, &count, &licences, err);
    if (rc != 0) {
        arena_destroy (arena);
        return rc;
    }
    struct rm_event event = {.kind = RM_EVENT_LOADS};
    if (count != native->node_count || !native->licences ||
        strcmp (licences, native->licences) != 0)
        event.kind = RM_EVENT_NODES;
    for (uint32_t i = 0; event.kind == RM_EVENT_LOADS && i < count; i++)
        if (!node_same (&list[i], &native->nodes[i]))
            event.kind = RM_EVENT_NODES;
    struct arena *before = native->node_arena;
    native->node_arena = arena;
    native->nodes = list;
    native->node_count = count;
    native->licences = licences;
    if (before)
        arena_destroy (before);
    text_keep (&native->node_text, said);
    native->on_event (native->arg, &event);
    return 0;
}

/* --- jobs --------------------------------------------------------------------------------- */

static void batch_tell (struct native *native)
{
    struct rm_event event = {
        .kind = RM_EVENT_NATIVE, .native = native->batch, .native_count = native->batch_count};
    native->batch_count = 0;
    if (event.native_count > 0)
        native->on_event (native->arg, &event);
}

static void native_tell (struct native *native, struct native_job *job,
                         const struct native_seen *seen)
{
    struct rm_native told = seen->native;
    told.unasked = seen->state != NATIVE_PENDING && !job->asked;
    told.job_id = *job->job_id ? arena_strdup (native->job_arena, job->job_id) : NULL;
    uint64_t digest = rm_native_digest (&told);
    if (digest == job->digest)
        return;
    job->digest = digest;
    native->batch[native->batch_count++] = told;
    if (native->batch_count == NATIVE_BATCH)
        batch_tell (native);
}

/* A second entry with the name of a job of ours, of its user: it was submitted twice. The one that we know of is the
 * job; the other goes. */
static void twice (struct native *native, const struct native_job *job,
                   const struct native_seen *seen)
{
    const char *const words[] = {seen->native.rm_id, NULL};
    if (seen->state == NATIVE_ENDED || native->observe)
        return;
    log_event (native->log, LOG_LEVEL_ERROR, "native", "submitted_twice",
               "job=%s rm_job=%s other=%s reason=\"the other one is cancelled\"", job->job_id,
               job->rm_id, seen->native.rm_id);
    native_call (native, RM_CALL_JOBCANCEL, NULL, NULL, words, NULL);
    native->job_text_again = true; /* until it is gone */
}

/* An entry with a name that we gave. Belongs to a job that is looked for, or is a second one, or nobody's. */
static struct native_job *by_title (struct native *native, const struct native_seen *seen,
                                    bool *ours_out)
{
    char key[JOBDIR_KEY_MAX], its[NATIVE_TITLE_MAX];
    *ours_out = native_title_ours (native, seen->native.name, key);
    struct native_job *job = *ours_out ? native_job_by_key (native, key) : NULL;
    if (!job || !job->ours || (job->user && strcmp (job->user, seen->native.user) != 0))
        return NULL; /* not waited for, or another's */
    native_title (job->key, job->mark, its);
    if (strcmp (its, seen->native.name) != 0)
        return NULL;
    if (*job->rm_id) {
        twice (native, job, seen);
        return NULL;
    }
    if (job->phase != NATIVE_FIND) /* its answer is on the way */
        return NULL;
    native_job_handed (job, seen->native.rm_id);
    return job;
}

/* Of an entry: the job, a new one where nobody knows it; NULL: it is none of our business. */
static struct native_job *entry_job (struct native *native, const struct native_seen *seen)
{
    const struct rm_native *n = &seen->native;
    struct native_job *job = native_job_by_rm (native, n->rm_id);
    bool ours = false;
    if (job && job->submit && job->submit != n->submit) {
        /* it counts anew: another job of the same number */
        if (*job->job_id)
            native_job_unknown (job);
        else
            native_job_free (job);
        job = NULL;
    }
    if (!job)
        job = by_title (native, seen, &ours);
    if (job || ours)
        return job;
    bool ran = seen->state == NATIVE_ENDED && n->start && seen->end >= native->since;
    if ((seen->state == NATIVE_ENDED && !ran) || HASH_COUNT (native->jobs) >= NATIVE_JOBS_MAX)
        return NULL;
    return native_job_new (native, n->rm_id, n->submit);
}

static void entry_take (struct native *native, const struct native_seen *seen)
{
    struct native_job *job = entry_job (native, seen);
    if (!job)
        return;
    job->submit = seen->native.submit;
    if (job->digest == 1 && seen->state == NATIVE_ENDED) { /* told */
        job->seen = native->look;
        return;
    }
    if (job->digest == 1) /* someone requeued what had ended */
        job->digest = 0;
    bool counts = !job->busy && job->written <= native->look;
    native_job_seen (job, seen);
    if (!job->ours && counts && (seen->state != NATIVE_ENDED || !*job->job_id))
        native_tell (native, job, seen);
}

/* Those that the look did not find: twice in a row, then it is believed. */
static void missing_settle (struct native *native)
{
    struct native_job *job, *next;
    HASH_ITER (hh, native->jobs, job, next) {
        if (job->seen == native->look)
            continue;
        if (job->busy || job->written > native->look) {
            native->job_text_again = true;
        } else if (!*job->job_id) {
            native_job_free (job);
        } else if (!job->gone) {
            job->gone = true;
            native->look_again = native->job_text_again = true;
        } else {
            native_job_unknown (job);
        }
    }
    HASH_ITER (hh_id, native->by_id, job, next) {
        struct rm_status cancelled = {.ended = true, .end = RM_END_CANCELLED};
        if (*job->rm_id || job->phase != NATIVE_FIND)
            continue;
        if (job->busy || job->written > native->look) {
            native->job_text_again = true;
        } else if (!job->gone) {
            job->gone = true;
            native->look_again = native->job_text_again = true;
        } else if (job->submission && job->cancel) {
            native_job_finish (job, &cancelled);
            native_job_free (job);
        } else if (job->submission && clock_monotonic_us () > job->deadline) {
            native_job_not_started (job);
            native_job_free (job);
        } else if (job->submission) { /* it is not there: again */
            job->gone = false;
            job->phase = NATIVE_SUBMIT;
            native_job_settle_soon (job);
        } else {
            native_job_unknown (job);
        }
    }
}

/* --- a look ------------------------------------------------------------------------------- */

/* Soon again where something is about to happen, in proportion to what a look costs. */
static duration_us next_look (const struct native *native)
{
    const struct native_job *job;
    duration_us soon = 4 * (clock_now_us () - native->look_begun);
    if (soon < retry_first)
        soon = retry_first;
    for (job = native->by_id; job && soon < native->poll_every; job = job->hh_id.next)
        if (job->phase == NATIVE_WATCH || job->cancelled)
            return soon;
    return native->poll_every;
}

static void settle_all (struct native *native)
{
    struct native_job *job, *next;
    HASH_ITER (hh_id, native->by_id, job, next)
        native_job_settle_soon (job);
}

/* All that the look found is told: only now anything may be decided by it. */
static void look_told (struct native *native)
{
    bool news = !native->fresh;
    native->fresh = native->ever_looked = true;
    native->retry = 0;
    native->whole = native->look;
    native->settled = native->look_begun;
    snprintf (native->since_word, sizeof native->since_word, "NUI_SINCE=%lld",
              (long long)(native->settled / US_PER_S));
    look_end (native, next_look (native));
    if (!news)
        return;
    log_event (native->log, LOG_LEVEL_INFO, "native", "reached", "nodes=%u jobs=%u",
               native->node_count, native->entry_count);
    settle_all (native); /* what waited for that */
    tell (native, RM_EVENT_REACH);
}

/* Entries, then jobs that have something to be told or done: as many as there is time for. */
static void on_turn (evutil_socket_t fd, short what, void *arg)
{
    struct native *native = arg;
    duration_us until = clock_monotonic_us () + turn_longest;
    (void)fd;
    (void)what;
    while (native->reading && clock_monotonic_us () < until) {
        if (native->entry_at < native->entry_count) {
            entry_take (native, &native->entry[native->entry_at++]);
            continue;
        }
        batch_tell (native);
        missing_settle (native);
        native->reading = false;
        native->telling = true;
    }
    batch_tell (native);
    while (!native->reading && native->unsettled && clock_monotonic_us () < until) {
        struct native_job *job = native->unsettled;
        job->soon = false;
        DL_DELETE2 (native->unsettled, job, soon_prev, soon_next);
        native_job_settle (job);
    }
    if (native->reading || native->unsettled)
        native_turn_soon (native);
    else if (native->telling)
        look_told (native);
}

static void on_jobs (struct native *native, struct native_job *none, const struct native_said *said)
{
    struct err err = {0};
    bool counted = native->url[RM_CALL_WORKLOADQUERY].scheme == NATIVE_FILE;
    (void)none;
    if (said->heard != NATIVE_DONE) {
        look_failed (native, said->why);
        return;
    }
    native->entry_at = 0;
    if (!native->fresh || native->job_text_again || !text_same (&native->job_text, said)) {
        native->job_text_again = true; /* unless all of it is taken */
        native->entry_count = 0;
        arena_reset (native->job_arena);
        if (native_parse_jobs (said->text, said->len, counted, native->job_arena, &native->entry,
                               &native->entry_count, &err) != 0) {
            look_failed (native, err.text);
            return;
        }
        text_keep (&native->job_text, said);
        native->job_text_again = false;
        native->reading = true;
    } else {
        native->telling = true; /* nothing new */
    }
    native_turn_soon (native);
}

static void on_nodes (struct native *native, struct native_job *none,
                      const struct native_said *said)
{
    struct err err = {0};
    (void)none;
    if (said->heard != NATIVE_DONE)
        look_failed (native, said->why);
    else if (!text_same (&native->node_text, said) && nodes_take (native, said, &err) != 0)
        look_failed (native, err.text);
    else
        native_call (native, RM_CALL_WORKLOADQUERY, NULL, NULL, NULL, on_jobs);
}

static void on_poll (evutil_socket_t fd, short what, void *arg)
{
    struct native *native = arg;
    (void)fd;
    (void)what;
    if (native->looking)
        return;
    native->looking = true;
    native->look++;
    native->look_begun = clock_now_us ();
    native_call (native, RM_CALL_CLUSTERQUERY, NULL, NULL, NULL, on_nodes);
}

void native_look (struct native *native)
{
    if (native->looking)
        native->look_again = true;
    else if (native->fresh || !native->ever_looked)
        native_timer_set (native->poll_timer, 0);
}

int native_look_init (struct native *native, struct err *err)
{
    native->job_arena = arena_create (0);
    native->poll_timer = evtimer_new (native->base, on_poll, native);
    native->turn_timer = evtimer_new (native->base, on_turn, native);
    if (!native->poll_timer || !native->turn_timer)
        return err_set (err, ERR_NOMEM, "no memory for timers");
    native_timer_set (native->poll_timer, 0);
    return 0;
}

void native_look_stop (struct native *native)
{
    if (native->poll_timer)
        event_free (native->poll_timer);
    if (native->turn_timer)
        event_free (native->turn_timer);
    if (native->job_arena)
        arena_destroy (native->job_arena);
    if (native->node_arena)
        arena_destroy (native->node_arena);
    strbuf_free (&native->node_text);
    strbuf_free (&native->job_text);
}
