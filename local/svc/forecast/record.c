/* The record of what was told: kept before anybody sees it, scored when the job starts. Called by the other two files of the room. */
#include "local/svc/forecast/forecast_i.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "local/store/estimates.h"
#include "local/store/history.h"
#include "local/svc/job.h"
#include "local/svc/svc_i.h"

enum {
    HISTORY_DAYS = 60, /* of ended jobs that are read at the start */
    HISTORY_PIECE = 500,
    RECORD_DAYS = 60,     /* rows of estimates are kept */
    RECORD_AT_ONCE = 100, /* rows of one transaction, a few milliseconds */
    PURGE_EVERY_S = 3600,
};

struct told *told_find (struct forecast *f, uint64_t number)
{
    struct told *t;
    HASH_FIND (hh, f->told, &number, sizeof number, t);
    return t;
}

static struct told *told_make (struct forecast *f, uint64_t number, const char *class_name)
{
    struct told *t = told_find (f, number);
    if (t)
        return t;
    t = calloc (1, sizeof *t);
    assert (t && "out of memory");
    t->number = number;
    snprintf (t->class_name, sizeof t->class_name, "%s", class_name);
    HASH_ADD (hh, f->told, number, sizeof t->number, t);
    return t;
}

struct told *told_of (struct svc *svc, const struct site_job *job)
{
    uint32_t class_number = job->cred[CRED_CLASS];
    return told_make (svc->forecast, job->rec.number,
                      class_number == CRED_NONE ? ""
                                                : cred_name (svc->names, CRED_CLASS, class_number));
}

static void told_drop (struct forecast *f, struct told *t)
{
    HASH_DEL (f->told, t);
    free (t);
}

void told_due (struct forecast *f, struct told *t)
{
    if (t->queued)
        return;
    t->queued = true;
    if (f->unwritten_count == f->unwritten_cap) {
        f->unwritten_cap = f->unwritten_cap ? f->unwritten_cap * 2 : 64;
        f->unwritten = realloc (f->unwritten, f->unwritten_cap * sizeof *f->unwritten);
        assert (f->unwritten && "out of memory");
    }
    f->unwritten[f->unwritten_count++] = t->number;
}

static struct recent *recent_of (struct forecast *f, const char *class_name, const char *kind)
{
    struct held_key key = {0};
    struct held *h;
    snprintf (key.class_name, sizeof key.class_name, "%s", class_name);
    snprintf (key.kind, sizeof key.kind, "%s", kind);
    HASH_FIND (hh, f->held, &key, sizeof key, h);
    if (!h) {
        h = calloc (1, sizeof *h);
        assert (h && "out of memory");
        h->key = key;
        HASH_ADD (hh, f->held, key, sizeof h->key, h);
    }
    return &h->recent;
}

static void known_of (const struct site_job *job, struct job_known *out)
{
    memcpy (out->cred, job->cred, sizeof out->cred);
    out->procs = job->rec.procs;
    out->limit = job->rec.walltime;
}

/* --- the record ------------------------------------------------------------------------------- */

static void score (struct forecast *f, const char *kind, const struct estimate *said,
                   const char *class_name, time_us given, time_us started)
{
    duration_us wait = started > given ? started - given : 0;
    recent_add (recent_of (f, "", kind), started, said, wait);
    if (*class_name)
        recent_add (recent_of (f, class_name, kind), started, said, wait);
}

/* The first answer is what later ones are corrected by. */
static void score_first (struct forecast *f, const struct told *t, time_us started)
{
    estimator_score (f->estimator, ESTIMATE_SIMULATION, &t->raw,
                     started > t->given ? started - t->given : 0);
    score (f, KIND_FIRST, &t->said, t->class_name, t->given, started);
}

static void values_out (const struct estimate *e, struct store_estimate_values *v)
{
    *v = (struct store_estimate_values){e->median, e->low50, e->high50, e->low95, e->high95};
}

static struct estimate values_in (const struct store_estimate_values *v, uint32_t draws,
                                  bool certain)
{
    return (struct estimate){v->median, v->low50, v->high50, v->low95, v->high95, draws, certain};
}

static void first_read (void *arg, const struct store_estimate *row)
{
    struct forecast *f = arg;
    struct told *t = told_make (f, row->number, row->class_name);
    t->given = t->shown_at = t->confirmed = row->given;
    t->raw = values_in (&row->raw, row->draws, row->certain);
    t->said = t->shown = values_in (&row->said, row->draws, row->certain);
    t->stored = true;
    if (row->started) {
        score_first (f, t, row->started);
        told_drop (f, t);
    }
}

static void later_read (void *arg, const struct store_later *row)
{
    struct forecast *f = arg;
    struct estimate said = values_in (&row->said, row->draws, row->certain);
    if (row->started) {
        score (f, row->kind, &said, row->class_name, row->given, row->started);
        return;
    }
    struct told *t = told_make (f, row->number, row->class_name);
    t->later = true;
    if (strcmp (row->kind, KIND_LATER) != 0)
        return;
    t->shown = said;
    t->shown_at = t->confirmed = row->given;
    snprintf (t->moved, sizeof t->moved, "%s", row->cause);
}

int later_store (struct svc *svc, const struct told *t, const char *kind,
                 const struct estimate *said, time_us given, const char *cause, struct err *err)
{
    struct store_later row = {.number = t->number,
                              .kind = kind,
                              .class_name = t->class_name,
                              .given = given,
                              .draws = said->draws,
                              .certain = said->certain,
                              .cause = cause};
    values_out (said, &row.said);
    return store_later_add (svc->store, &row, err);
}

int told_store (struct svc *svc, const struct told *t, struct err *err)
{
    struct store_estimate row = {.number = t->number,
                                 .given = t->given,
                                 .class_name = t->class_name,
                                 .draws = t->raw.draws,
                                 .certain = t->raw.certain};
    int rc = 0;
    values_out (&t->raw, &row.raw);
    values_out (&t->said, &row.said);
    if (!t->stored)
        rc = store_estimate_add (svc->store, &row, err);
    if (rc == 0 && t->due)
        rc = later_store (svc, t, KIND_LATER, &t->shown, t->shown_at, t->moved, err);
    return rc;
}

void told_stored (struct told *t)
{
    t->stored = true;
    t->later = t->later || t->due;
    t->due = false;
}

/* What it does not take in is tried again. Starts may be lost in a crash: they are the jobs' own as well. */
void record_write (struct svc *svc, struct told *only)
{
    struct forecast *f = svc->forecast;
    uint32_t count = f->unwritten_count < RECORD_AT_ONCE ? f->unwritten_count : RECORD_AT_ONCE;
    uint32_t starts = f->began_count < RECORD_AT_ONCE ? f->began_count : RECORD_AT_ONCE;
    struct told *list[RECORD_AT_ONCE], *t;
    struct err err = {0};
    uint32_t n = 0;
    if (only)
        list[n++] = only, count = starts = 0;
    for (uint32_t i = 0; i < count; i++) { /* some are gone, or written */
        if (!(t = told_find (f, f->unwritten[i])) || !t->queued)
            continue;
        t->queued = false;
        list[n++] = t;
    }
    int rc = svc_begin (svc, &err);
    for (uint32_t i = 0; i < n && rc == 0; i++)
        rc = told_store (svc, list[i], &err);
    for (uint32_t i = 0; i < starts && rc == 0; i++)
        rc = store_estimate_started (svc->store, f->began[i].number, f->began[i].at, &err);
    rc = svc_commit (svc, rc, &err);
    if (rc != 0) { /* logged */
        for (uint32_t i = 0; i < n && !only; i++)
            list[i]->queued = true;
        return;
    }
    f->began_count -= starts;
    if (f->began_count)
        memmove (f->began, f->began + starts, f->began_count * sizeof *f->began);
    f->unwritten_count -= count;
    if (f->unwritten_count)
        memmove (f->unwritten, f->unwritten + count, f->unwritten_count * sizeof *f->unwritten);
    for (uint32_t i = 0; i < n; i++)
        told_stored (list[i]);
}

bool record_unwritten (const struct forecast *f)
{
    return f->began_count > 0 || f->unwritten_count > 0;
}

/* --- history at the start --------------------------------------------------------------------- */

struct came {
    time_us submit;
    struct job_known known;
};

struct reading {
    struct svc *svc;
    struct came *came;
    size_t count, cap;
};

static uint32_t cred_number (struct svc *svc, enum cred_kind kind, const char *name)
{
    if (!*name)
        return CRED_NONE;
    return strtab_intern (svc->names->tab[kind], name);
}

static void history_take (void *arg, const struct history_job *row)
{
    struct reading *r = arg;
    struct forecast *f = r->svc->forecast;
    struct job_known known = {.procs = row->procs, .limit = row->walltime};
    const char *name[CRED_KINDS];
    name[CRED_USER] = row->user;
    name[CRED_GROUP] = row->group;
    name[CRED_ACCOUNT] = row->account;
    name[CRED_CLASS] = row->class_name;
    name[CRED_QOS] = row->qos;
    for (int k = 0; k < CRED_KINDS; k++)
        known.cred[k] = cred_number (r->svc, (enum cred_kind)k, name[k]);
    if (known.limit <= 0)
        return;
    if (row->start && row->end >= row->start) {
        estimator_ended (f->estimator, &known, row->end - row->start);
        estimator_started (f->estimator, &known, row->start - row->submit);
    }
    if (row->number > f->number_max)
        f->number_max = row->number;
    if (r->count == r->cap) {
        r->cap = r->cap ? r->cap * 2 : 1024;
        r->came = realloc (r->came, r->cap * sizeof *r->came);
        assert (r->came && "out of memory");
    }
    r->came[r->count++] = (struct came){row->submit, known};
}

static int by_submit (const void *a, const void *b)
{
    const struct came *x = a, *y = b;
    return (x->submit > y->submit) - (x->submit < y->submit);
}

static int history_load (struct svc *svc, struct err *err)
{
    struct reading r = {.svc = svc};
    struct history_filter filter = {.from = svc_now (svc) - HISTORY_DAYS * 24 * 3600 * US_PER_S};
    uint64_t after = 0;
    bool more = true;
    int rc = 0;
    while (more && rc == 0)
        rc = history_read (svc->store, &filter, after, HISTORY_PIECE, history_take, &r, &after,
                           &more, err);
    if (r.count)
        qsort (r.came, r.count, sizeof *r.came, by_submit);
    for (size_t i = 0; i < r.count; i++)
        estimator_arrived (svc->forecast->estimator, &r.came[i].known, r.came[i].submit);
    free (r.came);
    return rc;
}

int record_open (struct svc *svc, struct err *err)
{
    struct forecast *f = svc->forecast;
    time_us since = svc_now (svc) - RECENT_DAYS * 24 * 3600 * US_PER_S;
    f->all = recent_of (f, "", KIND_FIRST);
    int rc = svc_begin (svc, err);
    if (rc == 0)
        rc = store_estimate_heal (svc->store, err);
    rc = svc_commit (svc, rc, err);
    if (rc == 0)
        rc = store_estimate_each (svc->store, first_read, f, err);
    if (rc == 0)
        rc = store_later_each (svc->store, 0, since, later_read, f, err);
    return rc ? rc : history_load (svc, err);
}

/* --- what happens ----------------------------------------------------------------------------- */

static void forecast_arrived (struct svc *svc, struct site_job *job)
{
    struct job_known known;
    if (!svc->forecast || job->part || job->rec.number <= svc->forecast->number_max)
        return;
    svc->forecast->number_max = job->rec.number;
    svc->forecast->happened.came++;
    known_of (job, &known);
    estimator_arrived (svc->forecast->estimator, &known, job->rec.submit);
}

struct later_started {
    struct forecast *forecast;
    time_us at;
};

static void later_score (void *arg, const struct store_later *row)
{
    struct later_started *started = arg;
    struct estimate said = values_in (&row->said, row->draws, row->certain);
    score (started->forecast, row->kind, &said, row->class_name, row->given, started->at);
}

static void forecast_started (struct svc *svc, struct site_job *job, time_us now)
{
    struct forecast *f = svc->forecast;
    struct job_known known;
    if (!f)
        return;
    struct told *t = told_find (f, job->rec.number);
    f->happened.started++;
    known_of (job, &known);
    if (!job->part)
        estimator_started (f->estimator, &known, now - job->rec.submit);
    if (!t)
        return;
    if ((t->given && !t->stored) || t->due)
        record_write (svc, t);
    if (t->given)
        score_first (f, t, now);
    if (t->later) {
        struct later_started started = {f, now};
        struct err err = {0};
        if (store_later_each (svc->store, t->number, 0, later_score, &started, &err) != 0)
            log_event (svc->log, LOG_LEVEL_WARN, "forecast", "unscored", "job=%llu error=\"%s\"",
                       (unsigned long long)t->number, err.text);
    }
    if (f->began_count == f->began_cap) {
        f->began_cap = f->began_cap ? f->began_cap * 2 : 64;
        f->began = realloc (f->began, f->began_cap * sizeof *f->began);
        assert (f->began && "out of memory");
    }
    f->began[f->began_count++] = (struct began){job->rec.number, now};
    told_drop (f, t);
}

static int forecast_ended (struct svc *svc, struct site_job *job, const struct job_end *end,
                           struct err *err)
{
    struct job_known known;
    (void)err;
    if (!svc->forecast || end->how == JOB_RUNS_AGAIN || !job->rec.start ||
        job->rec.end < job->rec.start)
        return 0;
    svc->forecast->happened.ended++;
    known_of (job, &known);
    estimator_ended (svc->forecast->estimator, &known, job->rec.end - job->rec.start);
    return 0;
}

static void forecast_forget (struct svc *svc, struct site_job *job)
{
    if (!svc->forecast)
        return;
    struct told *t = told_find (svc->forecast, job->rec.number);
    if (!t)
        return;
    svc->forecast->happened.withdrawn++; /* it never started */
    told_drop (svc->forecast, t);
}

static void forecast_poll (struct svc *svc)
{
    struct forecast *f = svc->forecast;
    struct err err = {0};
    time_us now = svc_now (svc);
    if (!f || svc->sim)
        return;
    if (record_unwritten (f))
        record_write (svc, NULL);
    if (now - f->purged < PURGE_EVERY_S * US_PER_S)
        return;
    int rc = svc_begin (svc, &err);
    if (rc == 0)
        rc = store_estimate_purge (svc->store, now - RECORD_DAYS * 24 * 3600 * US_PER_S, &err);
    if (svc_commit (svc, rc, &err) == 0)
        f->purged = now;
}

/* --- the record, for people ------------------------------------------------------------------- */

static Nui__Common__V1__EstimateRecord *record_message (const struct held *held, time_us now,
                                                        struct arena *arena)
{
    Nui__Common__V1__EstimateRecord *m = arena_new (arena, Nui__Common__V1__EstimateRecord);
    struct recent_summary s;
    recent_summarise (&held->recent, now, &s);
    nui__common__v1__estimate_record__init (m);
    m->class_ = arena_strdup (arena, held->key.class_name);
    m->answers = arena_strdup (arena, held->key.kind);
    m->count = s.count;
    m->uncertain = s.unsure;
    m->coverage50_ppm = (uint32_t)(s.coverage50 * 1e6);
    m->coverage95_ppm = (uint32_t)(s.coverage95 * 1e6);
    m->median_error_us = (int64_t)(s.median_error_s * 1e6);
    m->bias_us = (int64_t)(s.bias_s * 1e6);
    m->earned = recent_earned (&s);
    return m;
}

/* All before the classes; of each the first answers, then the later ones, then the rest. */
static int by_class (struct held *a, struct held *b)
{
    static const char *const order[] = {KIND_FIRST, KIND_LATER};
    int by = strcmp (a->key.class_name, b->key.class_name);
    for (int i = 0; i < 2 && by == 0; i++)
        by = (strcmp (b->key.kind, order[i]) == 0) - (strcmp (a->key.kind, order[i]) == 0);
    return by ? by : strcmp (a->key.kind, b->key.kind);
}

Nui__Common__V1__EstimateRecord **forecast_records (struct svc *svc, struct arena *arena,
                                                    size_t *count_out)
{
    struct forecast *f = svc->forecast;
    time_us now = svc_now (svc);
    size_t n = 0;
    *count_out = 0;
    if (!f)
        return NULL;
    HASH_SORT (f->held, by_class);
    Nui__Common__V1__EstimateRecord **list =
        arena_array (arena, HASH_COUNT (f->held), sizeof *list);
    for (struct held *h = f->held; h; h = h->hh.next)
        list[n++] = record_message (h, now, arena);
    *count_out = n;
    return list;
}

const struct svc_listener forecast_record_listener = {.polled = forecast_poll,
                                                      .job_entered = forecast_arrived,
                                                      .job_chosen = forecast_started,
                                                      .job_ends = forecast_ended,
                                                      .job_leaves = forecast_forget};
