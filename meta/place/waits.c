/* What keeps a job from being placed though sites could take it, and who is woken when that changes. Only what the durable
 * states of jobs say counts; the table of who waits for whom is built again after a restart. */
#include "meta/place/waits.h"

#include <stdlib.h>
#include <string.h>

#include "meta/place/arrays.h"
#include "meta/place/gridlicence.h"
#include "meta/place/gridlimits.h"
#include "meta/job/peers.h"
#include "meta/job/retry.h"
#include "proto/base/clock.h"
#include "proto/job/depend.h"
#include "proto/job/element.h"
#include "proto/job/jobcheck.h"
#include "proto/base/strbuf.h"
#include "proto/base/text.h"

enum { DEPENDS_MAX = 1000 };
#define LOOK_MOST (86400 * US_PER_S)

struct waiter {
    UT_hash_handle hh;
    uint64_t number;
};

/* Who is to be woken when a job changes. Found by number: thousands may wait for one. */
struct awaited {
    UT_hash_handle hh;
    uint64_t target;
    struct waiter *waiters;
};

/* Of a job of the grid that has to be waited for; false: the site sees to it. */
static bool of_grid (const Nui__Common__V1__Dependency *d, enum depend_kind *kind,
                     struct element_id *id)
{
    bool before;
    return depend_kind_parse (d->kind, kind, &before) && !before &&
           element_id_parse (d->job_id, id, NULL) == 0 && strcmp (id->prefix, "grid") == 0 &&
           id->number <= INT64_MAX;
}

/* The job, or the first of the array. NULL: there is none. */
static struct gridjob *job_named (struct metad *metad, const struct element_id *id)
{
    uint64_t number = id->number;
    uint32_t index;
    if (element_id_single (id, &index) &&
        metastore_element_find (metad->store, id->number, index, &number, NULL))
        return NULL;
    struct gridjob *job = job_get (metad, number, NULL);
    return job && (id->range_count == 0 || job->array == id->number) ? job : NULL;
}

int waits_check (struct metad *metad, const JobMessage *job, const char *submitter, struct err *err)
{
    if (job->n_depends > DEPENDS_MAX)
        return err_set (err, ERR_LIMIT, "a job may wait for %d others", DEPENDS_MAX);
    for (size_t i = 0; i < job->n_depends; i++) {
        const Nui__Common__V1__Dependency *d = job->depends[i];
        enum depend_kind kind;
        bool before;
        struct element_id id;
        if (!depend_kind_parse (d->kind, &kind, &before))
            return err_set (
                err, ERR_INVALID,
                "'%.40s' is no dependency: wanted after, afterany, afterok, afternotok, or "
                "before…",
                d->kind);
        if (!of_grid (d, &kind, &id)) {
            if (job->n_components > 1 || gridlicence_asked (metad, job))
                return err_set (
                    err, ERR_INVALID,
                    "%.40s %.60s: a job of several components, or with licences of the grid, can "
                    "wait for jobs of the grid only",
                    d->kind, d->job_id);
            continue;
        }
        struct gridjob *other = job_named (metad, &id);
        if (!other && peers_unsure (metad, id.number, err))
            return err->code;
        if (!other || strcmp (other->submitter, submitter) != 0)
            return err_set (err, ERR_NOT_FOUND, "%.40s: there is no job %.60s, or it is another's",
                            d->kind, d->job_id);
    }
    return 0;
}

/* Each of the array, or of those of it that are named: what all of them have come to. *await_out: who may change that. */
static enum depend_target array_target (struct metad *metad, const struct element_id *id,
                                        uint64_t *await_out)
{
    struct arena *arena = arena_create (0);
    struct element_row *row = NULL;
    uint32_t count = 0;
    bool waits = false, runs = false, failed = false, never = false;
    if (metastore_array_list (metad->store, id->number, arena, &row, &count, NULL))
        count = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!element_id_has (id, row[i].index))
            continue;
        bool live = row[i].state < NUI__META__V1__GRID_JOB_STATE__GRID_COMPLETED;
        bool begun = row[i].state == NUI__META__V1__GRID_JOB_STATE__GRID_RUNNING;
        waits = waits || (live && !begun);
        runs = runs || begun;
        failed = failed || row[i].state == NUI__META__V1__GRID_JOB_STATE__GRID_FAILED;
        never = never || row[i].state > NUI__META__V1__GRID_JOB_STATE__GRID_FAILED;
        if (live && (!begun || !waits))
            *await_out = row[i].number; /* the last: it mostly ends last */
    }
    arena_destroy (arena);
    return waits    ? DEPEND_TARGET_WAITS
           : runs   ? DEPEND_TARGET_STARTED
           : failed ? DEPEND_TARGET_FAILED
           : never  ? DEPEND_TARGET_CANCELLED
                    : DEPEND_TARGET_SUCCEEDED;
}

static enum depend_target target_of (struct metad *metad, const struct element_id *id,
                                     uint64_t *await_out)
{
    const struct gridjob *job = job_named (metad, id);
    uint32_t index;
    *await_out = job ? job->number : id->number;
    if (!job)
        return peers_knows (metad) ? DEPEND_TARGET_CANCELLED : DEPEND_TARGET_WAITS;
    if (job->array == id->number && !element_id_single (id, &index))
        return array_target (metad, id, await_out);
    switch (job_state (job)) {
    case NUI__META__V1__GRID_JOB_STATE__GRID_RUNNING:
        return DEPEND_TARGET_STARTED;
    case NUI__META__V1__GRID_JOB_STATE__GRID_COMPLETED:
        return DEPEND_TARGET_SUCCEEDED;
    case NUI__META__V1__GRID_JOB_STATE__GRID_FAILED:
        return DEPEND_TARGET_FAILED;
    case NUI__META__V1__GRID_JOB_STATE__GRID_CANCELLED:
    case NUI__META__V1__GRID_JOB_STATE__GRID_REFUSED:
        return job->start_us && !job->start_is_estimate ? DEPEND_TARGET_FAILED
                                                        : DEPEND_TARGET_CANCELLED;
    default:
        return DEPEND_TARGET_WAITS;
    }
}

static void await (struct metad *metad, uint64_t target, uint64_t waiter)
{
    struct awaited *a = NULL;
    HASH_FIND (hh, metad->awaited, &target, sizeof target, a);
    if (!a) {
        a = calloc (1, sizeof *a);
        if (!a)
            abort ();
        a->target = target;
        HASH_ADD (hh, metad->awaited, target, sizeof a->target, a);
    }
    struct waiter *w = NULL;
    HASH_FIND (hh, a->waiters, &waiter, sizeof waiter, w);
    if (w)
        return;
    w = calloc (1, sizeof *w);
    if (!w)
        abort ();
    w->number = waiter;
    HASH_ADD (hh, a->waiters, number, sizeof w->number, w);
}

/* The last moment at which it may still be placed, and why not after that. */
static time_us lapse_of (const struct gridjob *job, struct coalloc_reason *reason)
{
    const JobMessage *body = job->job;
    duration_us longest = 0;
    for (size_t i = 0; i < body->n_components; i++) {
        duration_us needs =
            body->components[i]->offset_us + jobshape_walltime_min (body->components[i]);
        longest = needs > longest ? needs : longest;
    }
    struct {
        time_us at;
        const char *code, *text;
    } row[] = {{job_expires (job), "Expired", "the job's time for a first acceptance has passed"},
               {body->deadline_us ? body->deadline_us - longest : TIME_US_MAX, "Deadline",
                "it can no longer end before its deadline"},
               {body->not_after_us ? body->not_after_us : TIME_US_MAX, "TooLate",
                "it did not get a start before its latest one"}};
    uint32_t first = 0;
    for (uint32_t i = 1; i < sizeof row / sizeof *row; i++)
        if (row[i].at < row[first].at)
            first = i;
    snprintf (reason->code, sizeof reason->code, "%s", row[first].code);
    snprintf (reason->text, sizeof reason->text, "%s", row[first].text);
    return row[first].at;
}

/* It waits: not past its times. When they have passed that is the reason, else it is woken when they do. */
static void lapses (struct gridjob *job, bool retries, struct coalloc_reason *reason)
{
    struct coalloc_reason late = {"", ""};
    time_us now = clock_now_us (), last = lapse_of (job, &late);
    if (now > last)
        *reason = late;
    else if (!retries || last < job->retry_us)
        job_timer (job, last - now < LOOK_MOST ? last - now + 1 : LOOK_MOST);
}

bool waits_for (struct gridjob *job, struct coalloc_reason *reason)
{
    struct strbuf text = STRBUF_INIT;
    bool never = false;
    for (size_t i = 0; i < job->job->n_depends; i++) {
        const Nui__Common__V1__Dependency *d = job->job->depends[i];
        enum depend_kind kind;
        struct element_id id;
        uint64_t number;
        if (!of_grid (d, &kind, &id))
            continue;
        enum depend_verdict verdict = depend_check (kind, target_of (job->metad, &id, &number));
        if (verdict == DEPEND_MET)
            continue;
        if (verdict == DEPEND_WAITS)
            await (job->metad, number, job->number);
        never = never || verdict == DEPEND_NEVER;
        strbuf_printf (&text, "%s %s (%s%s)", text.len ? "," : "", d->job_id,
                       depend_kind_name (kind),
                       verdict == DEPEND_NEVER ? ", which can never be" : "");
    }
    bool waits = text.len > 0, held = job->held == JOB_HELD;
    if (waits) {
        snprintf (reason->code, sizeof reason->code, "%s",
                  never ? "DependencyNeverMet" : "Dependency");
        text_printf (reason->text, sizeof reason->text, "waits for%.300s", strbuf_text (&text));
    } else if (held) {
        snprintf (reason->code, sizeof reason->code, "UserHold");
        snprintf (reason->text, sizeof reason->text, "held by its owner");
    }
    strbuf_free (&text);
    bool retries = !waits && !held && retry_waits (job, reason);
    bool turn = !waits && !held && !retries && !array_admits (job, reason);
    turn = turn || (!waits && !held && !retries && !gridlimits_admit (job, reason));
    if (!never && (waits || held || retries || turn))
        lapses (job, retries, reason);
    return waits || held || retries || turn;
}

bool waits_never (const struct coalloc_reason *reason)
{
    const char *const never[] = {"DependencyNeverMet", "Deadline", "TooLate", "Expired"};
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        if (strcmp (reason->code, never[i]) == 0)
            return true;
    return false;
}

static void awaited_free (struct metad *metad, struct awaited *a, bool wake)
{
    struct waiter *w, *next;
    HASH_DEL (metad->awaited, a);
    HASH_ITER (hh, a->waiters, w, next) {
        struct gridjob *job = wake ? job_live (metad, w->number) : NULL;
        if (job && !job_ended (job))
            job_timer (job, 0);
        HASH_DEL (a->waiters, w);
        free (w);
    }
    free (a);
}

/* Wakes who waits for it. */
static void waits_job_told (struct metad *metad, uint64_t number)
{
    struct awaited *a = NULL;
    HASH_FIND (hh, metad->awaited, &number, sizeof number, a);
    if (a)
        awaited_free (metad, a, true);
}

static void waits_close (struct metad *metad)
{
    struct awaited *a, *next;
    HASH_ITER (hh, metad->awaited, a, next)
        awaited_free (metad, a, false);
}

const struct metad_part waits_part = {.close = waits_close, .job_told = waits_job_told};
