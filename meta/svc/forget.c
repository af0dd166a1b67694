/* Forgets jobs in rounds through all that were over long enough ago, a step of one transaction at a time, with turns of the loop
 * in between. A round that forgot something is followed by another (an array's first goes after the others), else the next
 * begins after a while. Called by nobody: its own timer, and the hub, which tells who waits for whom. */
#include "meta/svc/forget.h"

#include <stdlib.h>
#include <string.h>

#include "meta/store/past.h"
#include "proto/job/element.h"

enum { STEP = 128, ROUND_S = 10 };

/* A job, or an array by its first, for which live ones wait. */
struct needed {
    UT_hash_handle hh;
    uint64_t number;
    uint32_t jobs;
};

struct forget {
    struct metad *metad;
    struct event *timer;
    struct needed *needed;
    struct past_row at; /* how far the round has come */
    uint32_t gone;      /* in it */
};

/* What is known of the array of a row, for the next of it. */
struct arrayword {
    uint64_t array;
    bool over;
};

/* ---- what live jobs wait for */

static void forget_need (struct forget *forget, uint64_t number, bool more)
{
    struct needed *needed = NULL;
    HASH_FIND (hh, forget->needed, &number, sizeof number, needed);
    if (!needed && more) {
        needed = calloc (1, sizeof *needed);
        if (!needed)
            abort ();
        needed->number = number;
        HASH_ADD (hh, forget->needed, number, sizeof needed->number, needed);
    }
    if (!needed)
        return;
    needed->jobs = more ? needed->jobs + 1 : needed->jobs - 1;
    if (needed->jobs == 0) {
        HASH_DEL (forget->needed, needed);
        free (needed);
    }
}

static void forget_needs_of (const struct gridjob *job, bool more)
{
    struct element_id id;
    for (size_t i = 0; job->metad->forget && i < job->job->n_depends; i++)
        if (element_id_parse (job->job->depends[i]->job_id, &id, NULL) == 0 &&
            strcmp (id.prefix, "grid") == 0)
            forget_need (job->metad->forget, id.number, more);
}

static void forget_job_listed (struct gridjob *job)
{
    forget_needs_of (job, true);
}

static void forget_job_unlisted (struct gridjob *job)
{
    forget_needs_of (job, false);
}

static bool forget_needs (const struct forget *forget, uint64_t number)
{
    struct needed *needed = NULL;
    HASH_FIND (hh, forget->needed, &number, sizeof number, needed);
    return needed != NULL;
}

/* ---- forgetting */

static int forget_may_go (struct forget *forget, const struct past_row *row, time_us before,
                          struct arrayword *word, bool *may_out, struct err *err)
{
    struct metad *metad = forget->metad;
    bool last = true;
    int rc = 0;
    *may_out = false;
    if (job_live (metad, row->number) || forget_needs (forget, row->number) ||
        (row->array && forget_needs (forget, row->array)))
        return 0;
    if (row->array && word->array != row->array) {
        rc = past_array_over (metad->store, row->array, before, &word->over, err);
        word->array = row->array;
    }
    if (rc == 0 && row->array && row->array == row->number)
        rc = past_array_last (metad->store, row->array, &last, err);
    *may_out = rc == 0 && last && (!row->array || word->over);
    return rc;
}

static int forget_step (struct forget *forget, struct arena *arena, bool *more_out, struct err *err)
{
    struct metad *metad = forget->metad;
    time_us before = clock_now_us () - metad->config->job_history;
    struct arrayword word = {0};
    struct past_row *rows = NULL, at = forget->at;
    uint32_t count = 0, gone = 0;
    int rc = past_list (metad->store, before, &forget->at, STEP, arena, &rows, &count, err);
    if (rc == 0)
        rc = metastore_begin (metad->store, err);
    if (rc)
        return rc;
    for (uint32_t i = 0; i < count && rc == 0; i++) {
        bool may = false;
        rc = forget_may_go (forget, &rows[i], before, &word, &may, err);
        if (rc == 0 && may)
            rc = past_forget (metad->store, &rows[i], err);
        gone += may;
        at = rows[i];
    }
    if (rc == 0)
        rc = metastore_commit (metad->store, err);
    else
        metastore_rollback (metad->store);
    if (rc)
        return rc;
    forget->at = at;
    forget->gone += gone;
    *more_out = count == STEP;
    return 0;
}

static void forget_on_timer (evutil_socket_t fd, short what, void *arg)
{
    struct forget *forget = arg;
    struct metad *metad = forget->metad;
    struct timeval again = {0, 0};
    bool more = false;
    char quoted[300];
    struct err err;
    (void)fd;
    (void)what;
    err_clear (&err);
    struct arena *arena = arena_create (0);
    if (metad->config->job_history != TIME_US_MAX && forget_step (forget, arena, &more, &err) != 0)
        log_event (metad->log, LOG_LEVEL_ERROR, "job", "not_forgotten", "error=%s",
                   log_quote (err.text, quoted, sizeof quoted));
    arena_destroy (arena);
    if (!more) {
        if (forget->gone)
            log_event (metad->log, LOG_LEVEL_INFO, "job", "forgotten", "jobs=%u", forget->gone);
        again.tv_sec = forget->gone ? 0 : ROUND_S;
        forget->at = (struct past_row){0};
        forget->gone = 0;
    }
    event_add (forget->timer, &again);
}

/* ---- beginning and end */

static int forget_open (struct metad *metad, struct err *err)
{
    struct forget *forget = calloc (1, sizeof *forget);
    if (forget)
        forget->timer = evtimer_new (metad->base, forget_on_timer, forget);
    if (!forget || !forget->timer) {
        free (forget);
        return err_set (err, ERR_NOMEM, "no memory");
    }
    forget->metad = metad;
    metad->forget = forget;
    event_add (forget->timer, &(struct timeval){.tv_sec = 1});
    return 0;
}

static void forget_close (struct metad *metad)
{
    struct forget *forget = metad->forget;
    struct needed *needed, *next;
    if (!forget)
        return;
    HASH_ITER (hh, forget->needed, needed, next) {
        HASH_DEL (forget->needed, needed);
        free (needed);
    }
    event_free (forget->timer);
    free (forget);
    metad->forget = NULL;
}

const struct metad_part forget_part = {
    .open = forget_open,
    .close = forget_close,
    .job_listed = forget_job_listed,
    .job_unlisted = forget_job_unlisted,
};
