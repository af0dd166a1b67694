#include "local/svc/forecast_i.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "local/store/estimates.h"
#include "local/store/history.h"

enum {
    HISTORY_DAYS = 60, /* of ended jobs that are read at the start */
    HISTORY_PIECE = 500,
    RECORD_DAYS = 60, /* rows of estimates are kept */
    RECORD_AT_ONCE = 100, /* rows of one transaction, a few milliseconds */
    PURGE_EVERY_S = 3600,
};

struct told *told_find (struct forecast *f, uint64_t number)
{
    struct told *t;
    HASH_FIND (hh, f->told, &number, sizeof number, t);
    return t;
}

struct told *told_of (struct forecast *f, uint64_t number)
{
    struct told *t = told_find (f, number);
    if (t)
        return t;
    t = calloc (1, sizeof *t);
    assert (t && "out of memory");
    t->number = number;
    HASH_ADD (hh, f->told, number, sizeof t->number, t);
    return t;
}

void told_drop (struct forecast *f, struct told *t)
{
    f->unstored -= t->given && !t->stored;
    HASH_DEL (f->told, t);
    free (t);
}

void told_give (struct svc *svc, struct told *t, const struct site_job *job,
                const struct estimate *raw)
{
    t->given = t->last_at;
    t->raw = *raw;
    t->said = t->last;
    snprintf (t->class_name, sizeof t->class_name, "%s",
              job->cred[CRED_CLASS] == CRED_NONE
                  ? ""
                  : cred_name (svc->names, CRED_CLASS, job->cred[CRED_CLASS]));
    svc->forecast->unstored++;
}

static struct recent *class_recent (struct forecast *f, const char *name)
{
    struct class_recent *c;
    HASH_FIND_STR (f->classes, name, c);
    if (!c) {
        c = calloc (1, sizeof *c);
        assert (c && "out of memory");
        snprintf (c->name, sizeof c->name, "%s", name);
        HASH_ADD_STR (f->classes, name, c);
    }
    return &c->recent;
}

static void known_of (const struct site_job *job, struct job_known *out)
{
    memcpy (out->cred, job->cred, sizeof out->cred);
    out->procs = job->rec.procs;
    out->limit = job->rec.walltime;
}

/* --- the record ------------------------------------------------------------------------------- */

static void score (struct forecast *f, const struct estimate *raw, const struct estimate *said,
                   const char *class_name, time_us given, time_us started)
{
    duration_us wait = started > given ? started - given : 0;
    estimator_score (f->estimator, ESTIMATE_SIMULATION, raw, wait);
    recent_add (&f->all, started, said, wait);
    if (*class_name)
        recent_add (class_recent (f, class_name), started, said, wait);
}

static void values_out (const struct estimate *e, struct store_estimate_values *v)
{
    *v = (struct store_estimate_values){e->median, e->low50, e->high50, e->low95, e->high95};
}

static struct estimate values_in (const struct store_estimate_values *v,
                                  const struct store_estimate *row)
{
    return (struct estimate){v->median, v->low50,   v->high50,   v->low95,
                             v->high95, row->draws, row->certain};
}

static void row_read (void *arg, const struct store_estimate *row)
{
    struct forecast *f = arg;
    struct estimate raw = values_in (&row->raw, row), said = values_in (&row->said, row);
    if (row->started) {
        score (f, &raw, &said, row->class_name, row->given, row->started);
        return;
    }
    struct told *t = told_of (f, row->number);
    t->given = t->last_at = row->given;
    t->raw = raw;
    t->said = t->last = said;
    t->shown = row->given + said.median;
    t->stored = true;
    snprintf (t->class_name, sizeof t->class_name, "%s", row->class_name);
}

static int told_store (struct svc *svc, const struct told *t, struct err *err)
{
    struct store_estimate row = {.number = t->number, .given = t->given,
                                 .class_name = t->class_name, .draws = t->raw.draws,
                                 .certain = t->raw.certain};
    values_out (&t->raw, &row.raw);
    values_out (&t->said, &row.said);
    return store_estimate_add (svc->store, &row, err);
}

/* Lost in a crash: answers of the last moments, which are then given anew; starts are the jobs' own as
 * well. */
void record_write (struct svc *svc, struct told *first)
{
    struct forecast *f = svc->forecast;
    struct told *list[RECORD_AT_ONCE];
    uint32_t count = 0;
    uint32_t starts = f->began_count < RECORD_AT_ONCE ? f->began_count : RECORD_AT_ONCE;
    struct err err = {0};
    if (first)
        list[count++] = first;
    for (struct told *t = f->told; t && count < RECORD_AT_ONCE && count < f->unstored; t = t->hh.next)
        if (t->given && !t->stored && t != first)
            list[count++] = t;
    int rc = svc_begin (svc, &err);
    for (uint32_t i = 0; i < count && rc == 0; i++)
        rc = told_store (svc, list[i], &err);
    for (uint32_t i = 0; i < starts && rc == 0; i++)
        rc = store_estimate_started (svc->store, f->began[i].number, f->began[i].at, &err);
    rc = svc_commit (svc, rc, &err);
    if (rc != 0)
        return; /* logged; tried again later */
    f->began_count -= starts;
    if (f->began_count)
        memmove (f->began, f->began + starts, f->began_count * sizeof *f->began);
    for (uint32_t i = 0; i < count; i++)
        list[i]->stored = true;
    f->unstored -= count;
}

bool record_unwritten (const struct forecast *f)
{
    return f->began_count > 0 || f->unstored > 0;
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
    struct history_filter filter = {.from = svc_now (svc) -
                                            HISTORY_DAYS * 24 * 3600 * US_PER_S};
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
    int rc = store_estimate_each (svc->store, row_read, svc->forecast, err);
    return rc ? rc : history_load (svc, err);
}

/* --- what happens ----------------------------------------------------------------------------- */

void forecast_arrived (struct svc *svc, const struct site_job *job)
{
    struct job_known known;
    if (!svc->forecast || job->part || job->rec.number <= svc->forecast->number_max)
        return;
    svc->forecast->number_max = job->rec.number;
    svc->forecast->came++;
    known_of (job, &known);
    estimator_arrived (svc->forecast->estimator, &known, job->rec.submit);
}

void forecast_started (struct svc *svc, const struct site_job *job, time_us now)
{
    struct forecast *f = svc->forecast;
    struct job_known known;
    if (!f)
        return;
    struct told *t = told_find (f, job->rec.number);
    f->began_since++;
    known_of (job, &known);
    if (!job->part)
        estimator_started (f->estimator, &known, now - job->rec.submit);
    if (!t)
        return;
    if (t->given) {
        if (!t->stored)
            record_write (svc, t);
        score (f, &t->raw, &t->said, t->class_name, t->given, now);
        if (f->began_count == f->began_cap) {
            f->began_cap = f->began_cap ? f->began_cap * 2 : 64;
            f->began = realloc (f->began, f->began_cap * sizeof *f->began);
            assert (f->began && "out of memory");
        }
        f->began[f->began_count++] = (struct began){job->rec.number, now};
    }
    told_drop (f, t);
}

void forecast_ended (struct svc *svc, const struct site_job *job)
{
    struct job_known known;
    if (!svc->forecast || !job->rec.start || job->rec.end < job->rec.start)
        return;
    svc->forecast->left++;
    known_of (job, &known);
    estimator_ended (svc->forecast->estimator, &known, job->rec.end - job->rec.start);
}

void forecast_forget (struct svc *svc, uint64_t number)
{
    if (!svc->forecast)
        return;
    struct told *t = told_find (svc->forecast, number);
    if (!t)
        return;
    svc->forecast->withdrawn++; /* it never started */
    told_drop (svc->forecast, t);
}

void forecast_poll (struct svc *svc)
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

static Nui__Common__V1__EstimateRecord *record_message (const struct recent *r, const char *name,
                                                        time_us now, struct arena *arena)
{
    Nui__Common__V1__EstimateRecord *m = arena_new (arena, Nui__Common__V1__EstimateRecord);
    struct recent_summary s;
    recent_summarise (r, now, &s);
    nui__common__v1__estimate_record__init (m);
    m->class_ = arena_strdup (arena, name);
    m->count = s.count;
    m->coverage50_ppm = (uint32_t)(s.coverage50 * 1e6);
    m->coverage95_ppm = (uint32_t)(s.coverage95 * 1e6);
    m->median_error_us = (int64_t)(s.median_error_s * 1e6);
    m->bias_us = (int64_t)(s.bias_s * 1e6);
    m->earned = recent_earned (&s);
    return m;
}

static int by_name (struct class_recent *a, struct class_recent *b)
{
    return strcmp (a->name, b->name);
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
    HASH_SORT (f->classes, by_name);
    Nui__Common__V1__EstimateRecord **list =
        arena_array (arena, HASH_COUNT (f->classes) + 1, sizeof *list);
    list[n++] = record_message (&f->all, "", now, arena);
    for (struct class_recent *c = f->classes; c; c = c->hh.next)
        list[n++] = record_message (&c->recent, c->name, now, arena);
    *count_out = n;
    return list;
}
