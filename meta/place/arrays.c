/* Who calls: waits.c before a job chooses, and the hub when one of an array is listed, saved or gone. It wakes jobs and changes
 * nothing that is durable. */
#include "meta/place/arrays.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "proto/job/element.h"

struct array {
    UT_hash_handle hh;
    uint64_t number;
    uint32_t limit; /* 0: none */
    uint32_t listed;
    uint32_t chooses, placed;
    uint32_t stops;        /* so many cancel it just now: nobody gets a turn */
    struct gridjob *waits; /* ascending */
};

static struct array *array_of (const struct gridjob *job)
{
    struct array *array = NULL;
    HASH_FIND (hh, job->metad->arrays, &job->array, sizeof job->array, array);
    return array;
}

static bool array_has_room (const struct array *array)
{
    return !array->stops && array->chooses < ARRAY_CHOOSES_MAX &&
           (!array->limit || array->chooses + array->placed < array->limit);
}

/* They come in order but for those that come back. */
static void waits_add (struct array *array, struct gridjob *job)
{
    struct gridjob *after = array->waits ? array->waits->array_prev : NULL;
    while (after && after->number > job->number)
        after = after == array->waits ? NULL : after->array_prev;
    if (after)
        DL_APPEND_ELEM2 (array->waits, after, job, array_prev, array_next);
    else
        DL_PREPEND2 (array->waits, job, array_prev, array_next);
}

static void turn_set (struct array *array, struct gridjob *job, enum array_turn turn)
{
    if (job->turn == turn)
        return;
    if (job->turn == ARRAY_WAITS)
        DL_DELETE2 (array->waits, job, array_prev, array_next);
    array->chooses -= job->turn == ARRAY_CHOOSES;
    array->placed -= job->turn == ARRAY_PLACED;
    job->turn = turn;
    if (turn == ARRAY_WAITS)
        waits_add (array, job);
    array->chooses += turn == ARRAY_CHOOSES;
    array->placed += turn == ARRAY_PLACED;
}

/* By what is durable of it; one that has its turn keeps it. */
static enum array_turn turn_now (const struct gridjob *job)
{
    if (job_ended (job))
        return ARRAY_ASIDE;
    if (job->place == SINGLE_PLACED || job->state == NUI__META__V1__GRID_JOB_STATE__GRID_RESERVED ||
        (job_is_group (job) && job->state == NUI__META__V1__GRID_JOB_STATE__GRID_RUNNING))
        return ARRAY_PLACED;
    if (job->place == SINGLE_SENDING) /* a site that does not answer keeps no other one waiting */
        return strcmp (job->reason.code, "SiteDown") == 0 ? ARRAY_PLACED : ARRAY_CHOOSES;
    if (job->record && job->record->phase != COALLOC_NEW && job->record->phase != COALLOC_BACKOFF)
        return ARRAY_CHOOSES; /* sites may hold something for it */
    if (job->held == JOB_HELD || job_is_elsewhere (job) || job->retry_us > clock_now_us ())
        return ARRAY_ASIDE;
    return job->turn == ARRAY_CHOOSES ? ARRAY_CHOOSES : ARRAY_WAITS;
}

/* Whose turn has come is woken; not at once what could not be written just now, or two of an array would wake each other
 * until the disk has room. */
static void array_go (struct array *array)
{
    while (array->waits && array_has_room (array)) {
        struct gridjob *job = array->waits;
        turn_set (array, job, ARRAY_CHOOSES);
        job_timer (job, job->reloaded ? US_PER_S : 0);
    }
}

void array_turns (struct metad *metad, uint64_t number, bool given)
{
    struct array *array = NULL;
    HASH_FIND (hh, metad->arrays, &number, sizeof number, array);
    if (!array)
        return;
    if (!given)
        array->stops++;
    else if (array->stops)
        array->stops--;
    array_go (array);
}

void array_reason (const JobMessage *job, struct coalloc_reason *reason)
{
    snprintf (reason->code, sizeof reason->code, "ArrayLimit");
    if (job->array_limit)
        snprintf (reason->text, sizeof reason->text,
                  "its turn in the array has not come: %u of it may be with sites at one time",
                  job->array_limit);
    else
        snprintf (reason->text, sizeof reason->text, "its turn in the array has not come");
}

bool array_admits (struct gridjob *job, struct coalloc_reason *reason)
{
    struct array *array = job->array ? array_of (job) : NULL;
    if (!array || job->turn == ARRAY_CHOOSES)
        return true;
    turn_set (array, job, ARRAY_WAITS);
    array_go (array);
    if (job->turn == ARRAY_CHOOSES)
        return true;
    array_reason (job->job, reason);
    return false;
}

int array_job_named (struct metad *metad, const char *text, uint64_t *number_out, struct err *err)
{
    struct element_id id;
    uint32_t index;
    int rc = element_id_parse (text, &id, err);
    if (rc)
        return rc;
    if (strcmp (id.prefix, "grid") != 0 || id.number > INT64_MAX)
        return err_set (err, ERR_INVALID, "'%.60s' is not a grid job; those are grid.1, grid.2 …",
                        text);
    *number_out = id.number;
    if (id.range_count == 0)
        return 0;
    if (!element_id_single (&id, &index))
        return err_set (err, ERR_INVALID, "'%.60s': one job is needed, as in grid.42[3]", text);
    return metastore_element_find (metad->store, id.number, index, number_out, err);
}

/* ---- what the hub tells */

static void array_job_listed (struct gridjob *job)
{
    struct metad *metad = job->metad;
    if (!job->array)
        return;
    struct array *array = array_of (job);
    if (!array) {
        array = calloc (1, sizeof *array);
        if (!array)
            abort ();
        array->number = job->array;
        array->limit = job->job->array_limit;
        HASH_ADD (hh, metad->arrays, number, sizeof array->number, array);
    }
    array->listed++;
    job->turn = ARRAY_ASIDE; /* until it was read, or is durable */
}

static void array_job_unlisted (struct gridjob *job)
{
    struct array *array = job->array ? array_of (job) : NULL;
    if (!array)
        return;
    /* One that has its turn and has not ended is read again, and has it still: nobody else gets it in between. */
    bool back = job->turn >= ARRAY_CHOOSES && !job_ended (job);
    turn_set (array, job, ARRAY_ASIDE);
    if (--array->listed) {
        if (!back)
            array_go (array);
        return;
    }
    HASH_DEL (job->metad->arrays, array);
    free (array);
}

static void array_job_saved (struct gridjob *job, bool with_record)
{
    struct array *array = job->array ? array_of (job) : NULL;
    (void)with_record;
    if (!array)
        return;
    turn_set (array, job, turn_now (job));
    array_go (array);
}

/* Not yet woken: all of its array are read first, so that those that are with sites count. */
static int array_job_loaded (struct gridjob *job, struct arena *arena, struct err *err)
{
    struct array *array = job->array ? array_of (job) : NULL;
    (void)arena;
    (void)err;
    if (array)
        turn_set (array, job, turn_now (job));
    return 0;
}

const struct metad_part arrays_part = {.job_listed = array_job_listed,
                                       .job_unlisted = array_job_unlisted,
                                       .job_saved = array_job_saved,
                                       .job_loaded = array_job_loaded};
