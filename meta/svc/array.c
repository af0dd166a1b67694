/* An array as its user sees it: one line, or one act on many jobs. Who calls: ask.c, hold.c and submit.c. What is done to each of
 * its jobs is what would be done to it alone. */
#include "meta/svc/array.h"

#include <stdlib.h>
#include <string.h>

#include "meta/lead/lead.h"
#include "meta/job/steps.h"
#include "meta/svc/arrive.h"

enum { STATES = NUI__META__V1__GRID_JOB_STATE__GRID_REFUSED + 1, INDEXES_TEXT_MAX = 400 };

/* ---- votes */

struct votes_join {
    uint32_t left;
    bool lost;
    void (*done) (void *arg, bool stands);
    void *arg;
};

struct votes_join *votes_begin (void (*done) (void *arg, bool stands), void *arg)
{
    struct votes_join *join = malloc (sizeof *join);
    if (!join)
        abort ();
    *join = (struct votes_join){1, false, done, arg};
    return join;
}

void votes_came (void *arg, uint64_t as)
{
    struct votes_join *join = arg;
    join->lost = join->lost || !as;
    if (--join->left)
        return;
    join->done (join->arg, !join->lost);
    free (join);
}

void votes_expect (struct votes_join *join)
{
    join->left++;
}

void votes_add (struct votes_join *join, struct gridjob *job)
{
    votes_expect (join);
    lead_then (job, votes_came, join);
}

void votes_close (struct votes_join *join)
{
    votes_came (join, 1);
}

/* ---- which of them */

/* What would take the place of what is ended comes first. */
static int rank_of (int32_t state)
{
    return state == NUI__META__V1__GRID_JOB_STATE__GRID_PENDING  ? 0
           : state == NUI__META__V1__GRID_JOB_STATE__GRID_QUEUED ? 1
                                                                 : 2;
}

int array_named (struct metad *metad, const struct element_id *id, struct arena *arena,
                 struct element_row **rows_out, uint32_t *count_out, struct err *err)
{
    struct element_row *all = NULL, *out;
    uint32_t count = 0, found = 0;
    if (arrive_open (metad, id->number))
        return err_set (err, ERR_UNAVAILABLE, "the array grid.%llu is just being taken: try again",
                        (unsigned long long)id->number);
    int rc = metastore_array_list (metad->store, id->number, arena, &all, &count, err);
    if (rc)
        return rc;
    out = arena_array (arena, count + 1u, sizeof *out);
    for (int rank = 0; rank < 3; rank++)
        for (uint32_t i = 0; i < count; i++)
            if (rank_of (all[i].state) == rank && element_id_has (id, all[i].index))
                out[found++] = all[i];
    *rows_out = out;
    *count_out = found;
    return found ? 0
                 : err_set (err, ERR_NOT_FOUND, "the array grid.%llu has no such index",
                            (unsigned long long)id->number);
}

/* ---- some at a turn */

struct array_run {
    struct array_work work;
    const struct element_row *row;
    struct arena *arena;
};

static int array_run_some (void *arg, uint32_t from, uint32_t n, struct err *err)
{
    struct array_run *run = arg;
    return run->work.some (run->work.arg, run->row + from, n, err);
}

static void array_run_done (void *arg, int rc, const struct err *err)
{
    struct array_run *run = arg;
    struct array_work work = run->work;
    arena_destroy (run->arena);
    free (run);
    work.done (work.arg, rc, err);
}

void array_each (struct metad *metad, const struct array_work *work, const struct element_row *row,
                 uint32_t count)
{
    struct array_run *run = calloc (1, sizeof *run);
    if (!run)
        abort ();
    run->work = *work;
    run->arena = arena_create (0);
    run->row = count ? arena_memdup (run->arena, row, count * sizeof *row) : NULL;
    uint32_t most =
        work->bytes > STEPS_BYTES / STEPS_JOBS ? (uint32_t)(STEPS_BYTES / work->bytes) : STEPS_JOBS;
    steps_begin (metad, &(struct steps){.count = count,
                                        .at_once = most ? most : 1,
                                        .some = array_run_some,
                                        .done = array_run_done,
                                        .arg = run});
}

struct gridjob *array_job (struct metad *metad, const struct element_row *row)
{
    struct gridjob *job = job_live (metad, row->number);
    if (!job && metad->peers && row->state < NUI__META__V1__GRID_JOB_STATE__GRID_COMPLETED)
        job = job_get (metad, row->number, NULL);
    return job && !job_over (job) ? job : NULL;
}

/* ---- as one */

/* What an array is doing; of one that is over what is worst of it. */
static Nui__Meta__V1__GridJobState state_of (const uint32_t count[STATES])
{
    static const Nui__Meta__V1__GridJobState order[] = {
        NUI__META__V1__GRID_JOB_STATE__GRID_RUNNING,   NUI__META__V1__GRID_JOB_STATE__GRID_RESERVED,
        NUI__META__V1__GRID_JOB_STATE__GRID_QUEUED,    NUI__META__V1__GRID_JOB_STATE__GRID_PENDING,
        NUI__META__V1__GRID_JOB_STATE__GRID_FAILED,    NUI__META__V1__GRID_JOB_STATE__GRID_REFUSED,
        NUI__META__V1__GRID_JOB_STATE__GRID_CANCELLED,
    };
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        if (count[order[i]])
            return order[i];
    return NUI__META__V1__GRID_JOB_STATE__GRID_COMPLETED;
}

static Nui__Meta__V1__ArrayStatus *counts_make (const struct element_row *row, uint32_t rows,
                                                bool index_wanted, uint32_t count[STATES],
                                                struct arena *arena)
{
    Nui__Meta__V1__ArrayStatus *array = arena_new (arena, Nui__Meta__V1__ArrayStatus);
    uint32_t *index = arena_array (arena, rows + 1u, sizeof *index);
    nui__meta__v1__array_status__init (array);
    array->count = rows;
    array->counts = arena_array (arena, STATES, sizeof *array->counts);
    for (int32_t state = 0; state < STATES; state++) {
        struct strbuf text = STRBUF_INIT;
        for (uint32_t i = 0; i < rows; i++)
            if (row[i].state == state)
                index[count[state]++] = row[i].index;
        if (!count[state])
            continue;
        Nui__Meta__V1__ArrayCount *one = arena_new (arena, Nui__Meta__V1__ArrayCount);
        nui__meta__v1__array_count__init (one);
        one->state = (Nui__Meta__V1__GridJobState)state;
        one->count = count[state];
        if (index_wanted)
            element_ranges_text (index, count[state], INDEXES_TEXT_MAX, &text);
        one->indexes = arena_strdup (arena, strbuf_text (&text));
        strbuf_free (&text);
        array->counts[array->n_counts++] = one;
    }
    return array;
}

Nui__Meta__V1__JobStatus *array_status (struct gridjob *first, const struct element_id *id,
                                        const char *text, bool index_wanted, struct arena *arena,
                                        struct err *err)
{
    struct metad *metad = first->metad;
    Nui__Meta__V1__JobStatus *s = job_status (first, arena);
    struct element_row *row = NULL;
    struct array_row about;
    uint32_t rows = 0, count[STATES] = {0};
    /* In the order of their indexes, as the text has them. */
    struct element_row *all = NULL;
    uint32_t all_count = 0;
    if (metastore_array_list (metad->store, id->number, arena, &all, &all_count, err) ||
        metastore_array_about (metad->store, id->number, arena, &about, err))
        return NULL;
    row = arena_array (arena, all_count + 1u, sizeof *row);
    for (uint32_t i = 0; i < all_count; i++)
        if (element_id_has (id, all[i].index))
            row[rows++] = all[i];
    if (!rows) {
        err_set (err, ERR_NOT_FOUND, "the array grid.%llu has no such index",
                 (unsigned long long)id->number);
        return NULL;
    }
    s->array = counts_make (row, rows, index_wanted, count, arena);
    s->array->limit = first->job->array_limit;
    s->array->sites = about.site;
    s->array->n_sites = about.site_count;
    s->grid_job_id = id->range_count ? arena_strdup (arena, text) : job_array_id (first, arena);
    s->state = state_of (count);
    s->reason = NULL;
    s->n_components = 0;
    s->start_us = about.begin;
    s->start_is_estimate = false;
    s->end_us = about.end;
    s->price_micro = about.price;
    s->attempts = s->retries = 0;
    return s;
}
