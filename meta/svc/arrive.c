/* Inserts arrays by turns of the loop: see arrive.h. Called by submit.c for a new one and by metad.c at the start. What is
 * durable of it is the row that says that more are to come; how far it has come is what is there of its jobs. */
#include "meta/svc/arrive.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "meta/group/group.h"
#include "meta/job/steps.h"
#include "meta/place/arrays.h"
#include "meta/svc/share.h"
#include "proto/job/element.h"

struct arrive_wait {
    void (*done) (void *arg, bool whole);
    void *arg;
    struct arrive_wait *next;
};

struct arriving {
    struct metad *metad;
    struct arraybody *body;
    char submitter[PRINCIPAL_URI_MAX];
    uint64_t array; /* 0: its first has no number yet */
    time_us submit_us;
    uint32_t *index, count; /* all of it */
    uint32_t at;            /* so many are there */
    uint32_t base;          /* … when its steps began */
    struct event *again;
    struct arrive_wait *waits;
    struct arriving *prev, *next;
};

/* ---- some of it */

static struct gridjob *arrive_job (struct arriving *a, uint32_t place, struct err *err)
{
    struct gridjob *job =
        job_create_element (a->metad, a->body, 1 + a->index[place], NULL, a->submitter, err);
    if (!job)
        return NULL;
    if (group_made (job, err)) {
        job_destroy (job);
        return NULL;
    }
    job->array = a->array;
    job->submit_us = a->submit_us;
    array_reason (job->job, &job->reason);
    return job;
}

/* All of these or none. */
static int arrive_insert (struct arriving *a, uint32_t place, uint32_t n, uint64_t *number_out,
                          struct err *err)
{
    struct arena *arena = arena_create (0);
    struct gridjob **job = arena_array (arena, n, sizeof (struct gridjob *));
    uint32_t made = 0;
    int rc = 0;
    for (; made < n && rc == 0; made += rc == 0) {
        job[made] = arrive_job (a, place + made, err);
        rc = job[made] ? 0 : err->code;
    }
    if (rc == 0)
        rc = job_insert (job, n, number_out, err);
    if (rc == 0 && !a->array) {
        a->array = job[0]->array;
        a->submit_us = job[0]->submit_us;
    }
    for (uint32_t i = 0; i < made && rc; i++)
        job_destroy (job[i]);
    if (rc == 0 && a->at)
        share_coming (a->metad, a->submitter, -(int64_t)n);
    arena_destroy (arena);
    return rc;
}

/* What is another job of the group already stays that. */
static int arrive_some (void *arg, uint32_t from, uint32_t n, struct err *err)
{
    struct arriving *a = arg;
    uint64_t number = 0;
    int rc = arrive_insert (a, a->base + from, n, &number, err);
    if (rc == 0)
        a->at += n;
    for (uint32_t i = 0; i < n && rc == ERR_EXISTS; i++, a->at++) {
        int one = arrive_insert (a, a->at, 1, &number, err);
        if (one == ERR_EXISTS)
            share_coming (a->metad, a->submitter, -1);
        else if (one)
            return one;
    }
    return rc == ERR_EXISTS ? 0 : rc;
}

/* In a group each has what was signed, for the others. */
static uint32_t arrive_at_once (const struct arriving *a)
{
    const JobMessage *job = arraybody_signed (a->body);
    uint32_t n = STEPS_JOBS;
    size_t bytes = a->metad->peers ? arraybody_bytes (a->body) : 0, transfers = 0;
    for (size_t i = 0; i < job->n_components; i++)
        transfers += job->components[i]->n_stage_in + job->components[i]->n_stage_out;
    n /= (uint32_t)(job->n_components + transfers / 8);
    if (bytes && n > STEPS_BYTES / bytes)
        n = (uint32_t)(STEPS_BYTES / bytes);
    return n ? n : 1;
}

/* ---- all of it */

static void arrive_told (struct arriving *a, bool whole)
{
    while (a->waits) {
        struct arrive_wait *wait = a->waits;
        a->waits = wait->next;
        wait->done (wait->arg, whole);
        free (wait);
    }
}

static void arrive_free (struct arriving *a)
{
    DL_DELETE (a->metad->arriving, a);
    if (a->at < a->count)
        share_coming (a->metad, a->submitter, -(int64_t)(a->count - a->at));
    arrive_told (a, false);
    arraybody_drop (a->metad, a->body);
    if (a->again)
        event_free (a->again);
    free (a->index);
    free (a);
}

static void arrive_again (struct arriving *a, duration_us delay)
{
    const struct timeval tv = {(time_t)(delay / US_PER_S), (suseconds_t)(delay % US_PER_S)};
    evtimer_add (a->again, &tv);
}

static void arrive_stepped (void *arg, int rc, const struct err *why)
{
    struct arriving *a = arg;
    struct metad *metad = a->metad;
    struct err err = *why;
    char text[ERR_TEXT_MAX * 2];
    if (metad->stopping) {
        arrive_free (a);
        return;
    }
    if (rc == 0)
        rc = metastore_arriving_drop (metad->store, a->array, &err);
    if (rc) { /* a full disk, say */
        log_event (metad->log, LOG_LEVEL_ERROR, "submit", "array_not_whole",
                   "array=grid.%llu have=%u of=%u why=%s", (unsigned long long)a->array, a->at,
                   a->count, log_quote (err.text, text, sizeof text));
        arrive_told (a, false);
        arrive_again (a, US_PER_S);
        return;
    }
    arrive_told (a, true);
    arrive_free (a);
}

static void arrive_go (struct arriving *a)
{
    a->base = a->at;
    steps_begin (a->metad, &(struct steps){.count = a->count - a->at,
                                           .at_once = arrive_at_once (a),
                                           .some = arrive_some,
                                           .done = arrive_stepped,
                                           .arg = a});
}

static void arrive_on_again (evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    arrive_go (arg);
}

static struct arriving *arrive_make (struct metad *metad, struct arraybody *body,
                                     const char *submitter)
{
    struct arriving *a = calloc (1, sizeof *a);
    const JobMessage *job = arraybody_signed (body);
    if (!a)
        abort ();
    a->metad = metad;
    a->body = body;
    arraybody_hold (body);
    snprintf (a->submitter, sizeof a->submitter, "%s", submitter);
    a->count = element_count (job);
    a->index = calloc (a->count + 1u, sizeof *a->index);
    a->again = evtimer_new (metad->base, arrive_on_again, a);
    if (!a->index || !a->again)
        abort ();
    element_indexes (job, a->index);
    DL_APPEND (metad->arriving, a);
    return a;
}

int arrive_begin (struct metad *metad, struct arraybody *body, const char *submitter,
                  uint64_t *number_out, struct err *err)
{
    struct arriving *a = arrive_make (metad, body, submitter);
    uint32_t n = arrive_at_once (a);
    n = n < a->count ? n : a->count;
    int rc = arrive_insert (a, 0, n, number_out, err);
    a->at = rc ? a->count : n; /* nothing of it is to come */
    if (rc == 0 && n < a->count) {
        share_coming (metad, submitter, (int64_t)(a->count - n));
        arrive_again (a, 0);
    } else {
        arrive_free (a);
    }
    return rc;
}

static struct arriving *arrive_find (const struct metad *metad, uint64_t array)
{
    struct arriving *a = metad->arriving;
    while (a && a->array != array)
        a = a->next;
    return a;
}

bool arrive_open (const struct metad *metad, uint64_t array)
{
    return arrive_find (metad, array) != NULL;
}

void arrive_then (struct metad *metad, uint64_t array, void (*done) (void *arg, bool whole),
                  void *arg)
{
    struct arriving *a = arrive_find (metad, array);
    if (!a) {
        done (arg, true);
        return;
    }
    struct arrive_wait *wait = malloc (sizeof *wait);
    if (!wait)
        abort ();
    *wait = (struct arrive_wait){done, arg, NULL};
    LL_APPEND (a->waits, wait);
}

/* ---- what an earlier process had taken */

static int arrive_recover_one (struct metad *metad, uint64_t array, struct arena *arena,
                               struct err *err)
{
    struct element_row *row = NULL;
    uint32_t have = 0;
    struct gridjob *first = job_get (metad, array, err);
    if (!first && err->code == ERR_NOT_FOUND) { /* withdrawn: the group has it as another */
        err_clear (err);
        return metastore_arriving_drop (metad->store, array, err);
    }
    if (!first || metastore_array_list (metad->store, array, arena, &row, &have, err))
        return err->code;
    struct arriving *a = arrive_make (metad, first->body, first->submitter);
    a->array = array;
    a->submit_us = first->submit_us;
    while (have && a->at < a->count && a->index[a->at] <= row[have - 1].index)
        a->at++;
    log_event (metad->log, LOG_LEVEL_INFO, "submit", "array_goes_on",
               "array=grid.%llu have=%u of=%u", (unsigned long long)array, a->at, a->count);
    share_coming (metad, a->submitter, (int64_t)(a->count - a->at));
    arrive_again (a, 0);
    return 0;
}

int arrive_recover (struct metad *metad, struct err *err)
{
    struct arena *arena = arena_create (0);
    uint64_t *array = NULL;
    uint32_t count = 0;
    int rc = metastore_arriving_list (metad->store, arena, &array, &count, err);
    for (uint32_t i = 0; i < count && rc == 0; i++)
        rc = arrive_recover_one (metad, array[i], arena, err);
    arena_destroy (arena);
    return rc;
}

/* ---- what the hub tells */

/* With the first of it, that more are to come. */
static int arrive_job_inserting (struct gridjob *job, struct err *err)
{
    struct arriving *a = job->array == job->number ? arrive_find (job->metad, 0) : NULL;
    if (!a || a->body != job->body || a->count <= arrive_at_once (a))
        return 0;
    return metastore_arriving_put (job->metad->store, job->array, err);
}

static void arrive_close (struct metad *metad)
{
    while (metad->arriving)
        arrive_free (metad->arriving);
}

const struct metad_part arrive_part = {.close = arrive_close,
                                       .job_inserting = arrive_job_inserting};
