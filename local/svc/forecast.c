#include "local/svc/forecast.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "local/store/estimates.h"
#include "local/store/history.h"
#include "proto/base/clock.h"

enum {
    HISTORY_DAYS = 60,   /* of ended jobs that are read at the start */
    HISTORY_PIECE = 500,
    RECORD_DAYS = 60,    /* rows of estimates are kept */
    TOLD_PER_SURVEY = 50, /* metaschedulers hear of so many moved jobs at most */
    SIZES = 24,
    LENGTHS = 10,
    SURVEY_DRAWS = 40,
    SURVEY_HORIZON_DAYS = 120,
};
/* As in report.c: one processor, two, four … and all, for so long. */
static const duration_us lengths[LENGTHS] = {
    60 * US_PER_S,        600 * US_PER_S,       1800 * US_PER_S,       3600 * US_PER_S,
    4 * 3600 * US_PER_S,  12 * 3600 * US_PER_S, 24 * 3600 * US_PER_S,  72 * 3600 * US_PER_S,
    168 * 3600 * US_PER_S, 720 * 3600 * US_PER_S,
};

/* What a waiting job was told. */
struct told {
    uint64_t number;
    time_us given; /* the first; 0: nothing yet */
    struct estimate raw, said; /* then, from `given` */
    struct estimate last;      /* now, from last_at */
    time_us last_at;
    time_us shown;        /* the median that was last told to others, as a moment */
    char moved[256];
    bool stored;
    char class_name[STORE_NAME_MAX];
    UT_hash_handle hh;
};

/* A start that is not yet in the store. */
struct began {
    uint64_t number;
    time_us at;
};

struct class_recent {
    char name[STORE_NAME_MAX];
    struct recent recent;
    UT_hash_handle hh;
};

struct forecast {
    struct estimator *estimator;
    struct scene scene; /* of the survey */
    struct simulation *simulation;
    enum { REST, QUEUE, SHAPES } phase;
    bool wanted;
    struct event *event; /* the next slice, or the next survey */
    struct event *due;
    struct told *told;
    struct began *began;
    uint32_t began_count, began_cap;
    struct recent all;
    struct class_recent *classes;
    struct forward_ghost shape[SIZES * LENGTHS];
    struct estimate table[SIZES * LENGTHS];
    uint32_t shape_count;
    time_us table_at; /* TIME_US_NONE: never */
    uint64_t version; /* of the cluster, as surveyed */
    duration_us spent; /* processor time of the survey under way */
    struct forecast_cost cost;
    uint64_t number_max; /* the youngest job that is known */
    uint32_t came, left, began_since; /* since the last survey: why things move */
};

static duration_us cpu_now (void)
{
    struct timespec t;
    clock_gettime (CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * US_PER_S + t.tv_nsec / 1000;
}

static void timer_set (struct event *event, duration_us d)
{
    struct timeval t = {.tv_sec = d / US_PER_S, .tv_usec = d % US_PER_S};
    event_add (event, &t);
}

static struct told *told_find (struct forecast *f, uint64_t number)
{
    struct told *t;
    HASH_FIND (hh, f->told, &number, sizeof number, t);
    return t;
}

static struct told *told_of (struct forecast *f, uint64_t number)
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

/* First answers and starts that are not on disk yet. Lost in a crash: answers of the last moments, which
 * are then given anew; starts are the jobs' own as well. */
static void record_write (struct svc *svc)
{
    struct forecast *f = svc->forecast;
    struct told *t, *next;
    struct err err = {0};
    int rc = svc_begin (svc, &err);
    HASH_ITER (hh, f->told, t, next)
    {
        struct store_estimate row = {.number = t->number, .given = t->given,
                                     .class_name = t->class_name, .draws = t->raw.draws,
                                     .certain = t->raw.certain};
        if (rc != 0 || t->stored || !t->given)
            continue;
        values_out (&t->raw, &row.raw);
        values_out (&t->said, &row.said);
        rc = store_estimate_add (svc->store, &row, &err);
    }
    for (uint32_t i = 0; i < f->began_count && rc == 0; i++)
        rc = store_estimate_started (svc->store, f->began[i].number, f->began[i].at, &err);
    rc = svc_commit (svc, rc, &err);
    if (rc != 0)
        return; /* logged; tried again later */
    f->began_count = 0;
    HASH_ITER (hh, f->told, t, next)
        t->stored = t->given != 0;
}

static bool record_unwritten (const struct forecast *f)
{
    if (f->began_count)
        return true;
    for (const struct told *t = f->told; t; t = t->hh.next)
        if (t->given && !t->stored)
            return true;
    return false;
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

/* --- surveys ---------------------------------------------------------------------------------- */

static void shapes_make (struct forecast *f)
{
    f->shape_count = 0;
    for (uint64_t size = 1; f->scene.procs_up > 0; size *= 2) {
        bool last = size >= (uint64_t)f->scene.procs_up ||
                    f->shape_count / LENGTHS == SIZES - 1;
        for (uint32_t d = 0; d < LENGTHS; d++)
            f->shape[f->shape_count++] = (struct forward_ghost){
                last ? (uint32_t)f->scene.procs_up : (uint32_t)size, lengths[d], TIME_US_NONE};
        if (last)
            break;
    }
}

static int phase_begin (struct svc *svc, bool shapes, struct err *err)
{
    struct forecast *f = svc->forecast;
    struct simulate_options options = {.draws = SURVEY_DRAWS, .seed = f->cost.surveys,
                                       .alone = shapes};
    return simulation_begin (f->simulation, &f->scene, estimator_history (f->estimator),
                             svc->cluster, UINT32_MAX, shapes ? f->shape : NULL,
                             shapes ? f->shape_count : 0, &options, err);
}

static void survey_begin (struct svc *svc)
{
    struct forecast *f = svc->forecast;
    struct err err = {0};
    f->wanted = false;
    f->version = cluster_version (svc->cluster);
    f->spent = 0;
    int rc = scene_read (&f->scene, svc->cluster, svc_now (svc), &err);
    if (rc == 0) {
        shapes_make (f);
        f->phase = f->scene.waiting_count ? QUEUE : SHAPES;
        rc = phase_begin (svc, f->phase == SHAPES, &err);
    }
    if (rc != 0) {
        f->phase = REST;
        log_event (svc->log, LOG_LEVEL_WARN, "forecast", "survey_failed", "error=\"%s\"",
                   err.text);
        return;
    }
    timer_set (f->event, 0);
}

static const char *plural (uint32_t n)
{
    return n == 1 ? "" : "s";
}

/* What happened since it was told something else. */
static void moved_say (struct forecast *f, struct told *t, duration_us by)
{
    char how[QUANTITY_TEXT_MAX], what[96] = "";
    size_t len = 0;
    duration_format (by < 0 ? -by : by, how);
    if (f->came)
        len += (size_t)snprintf (what + len, sizeof what - len, ", %u job%s came", f->came,
                                 plural (f->came));
    if (f->left)
        len += (size_t)snprintf (what + len, sizeof what - len, ", %u ended", f->left);
    if (f->began_since)
        len += (size_t)snprintf (what + len, sizeof what - len, ", %u started", f->began_since);
    snprintf (t->moved, sizeof t->moved, "%s by %s%s%s", by < 0 ? "earlier" : "later", how,
              len ? ":" : ": running jobs take another time than expected", len ? what + 1 : "");
}

/* Moved by so much that people should hear of it. */
static bool is_news (const struct told *t, time_us median, time_us now)
{
    duration_us by = median > t->shown ? median - t->shown : t->shown - median;
    return by > 60 * US_PER_S && by > (median - now) / 5;
}

static void queue_take (struct svc *svc)
{
    struct forecast *f = svc->forecast;
    uint32_t tell = 0;
    bool open = false;
    int rc = 0;
    struct err err = {0};
    for (uint32_t i = 0; i < f->scene.waiting_count; i++) {
        struct site_job *job = svc_job (svc, f->scene.waiting[i].id.v);
        struct estimate raw;
        if (!job || job->rec.state != STORE_JOB_QUEUED)
            continue;
        struct told *t = told_of (f, job->rec.number);
        simulation_estimate (f->simulation, i, &raw);
        estimator_correct (f->estimator, ESTIMATE_SIMULATION, &raw, &t->last);
        t->last_at = f->scene.now;
        time_us median = t->last_at + t->last.median;
        bool first = !t->given, news = first || is_news (t, median, f->scene.now);
        if (first) {
            t->given = t->last_at;
            t->raw = raw;
            t->said = t->last;
            snprintf (t->class_name, sizeof t->class_name, "%s",
                      job->cred[CRED_CLASS] == CRED_NONE
                          ? ""
                          : cred_name (svc->names, CRED_CLASS, job->cred[CRED_CLASS]));
        } else if (news) {
            moved_say (f, t, median - t->shown);
        }
        if (!news)
            continue;
        t->shown = median;
        if (!*job->rec.grid_job_id || tell++ >= TOLD_PER_SURVEY || rc != 0)
            continue;
        if (!open)
            rc = svc_begin (svc, &err);
        open = true;
        if (rc == 0)
            rc = svc_job_write (svc, job, true, NULL, 0, &err);
    }
    if (open)
        (void)svc_commit (svc, rc, &err);
    f->came = f->left = f->began_since = 0;
    if (open && svc->meta)
        meta_link_poke (svc->meta);
}

static void shapes_take (struct forecast *f)
{
    for (uint32_t i = 0; i < f->shape_count; i++) {
        struct estimate raw;
        simulation_shape (f->simulation, i, &raw);
        estimator_correct (f->estimator, ESTIMATE_SIMULATION, &raw, &f->table[i]);
    }
    f->table_at = f->scene.now;
}

static void survey_end (struct svc *svc)
{
    struct forecast *f = svc->forecast;
    f->phase = REST;
    f->cost.surveys++;
    f->cost.survey = f->spent;
    f->cost.surveyed = f->scene.now;
    if (record_unwritten (f))
        record_write (svc);
    log_event (svc->log, LOG_LEVEL_DEBUG, "forecast", "surveyed", "jobs=%u us=%lld",
               f->scene.waiting_count, (long long)f->spent);
    if (f->wanted)
        timer_set (f->due, f->spent * FORECAST_SHARE + US_PER_S / 5);
    else
        timer_set (f->due, FORECAST_EVERY_S * US_PER_S);
}

static void on_slice (evutil_socket_t fd, short what, void *arg)
{
    struct svc *svc = arg;
    struct forecast *f = svc->forecast;
    struct err err = {0};
    (void)fd;
    (void)what;
    if (svc->closing || f->phase == REST)
        return;
    duration_us begun = cpu_now ();
    bool done = simulation_go (f->simulation, FORECAST_SLICE);
    if (done && f->phase == QUEUE) {
        queue_take (svc);
        f->phase = SHAPES;
        done = phase_begin (svc, true, &err) != 0;
    } else if (done) {
        shapes_take (f);
    }
    duration_us took = cpu_now () - begun;
    f->spent += took;
    f->cost.slice = took > f->cost.slice ? took : f->cost.slice;
    if (done)
        survey_end (svc);
    else
        timer_set (f->event, US_PER_S / 1000); /* whoever else has something to do goes first */
}

static void on_due (evutil_socket_t fd, short what, void *arg)
{
    struct svc *svc = arg;
    (void)fd;
    (void)what;
    if (!svc->closing && svc->forecast->phase == REST)
        survey_begin (svc);
}

void forecast_wake (struct svc *svc)
{
    struct forecast *f = svc->forecast;
    if (!f || svc->closing || svc->sim || cluster_version (svc->cluster) == f->version)
        return;
    if (f->wanted)
        return;
    f->wanted = true;
    if (f->phase == REST)
        timer_set (f->due, f->cost.survey * FORECAST_SHARE + US_PER_S / 5);
}

/* --- what happens ----------------------------------------------------------------------------- */

int forecast_open (struct svc *svc, struct err *err)
{
    struct forecast *f = calloc (1, sizeof *f);
    assert (f && "out of memory");
    svc->forecast = f;
    f->estimator = estimator_create (NULL);
    f->simulation = simulation_create ();
    scene_init (&f->scene);
    f->table_at = f->cost.surveyed = TIME_US_NONE;
    f->event = event_new (svc->base, -1, 0, on_slice, svc);
    f->due = event_new (svc->base, -1, 0, on_due, svc);
    if (!f->event || !f->due)
        return err_set (err, ERR_NOMEM, "estimates: no memory for events");
    int rc = store_estimate_each (svc->store, row_read, f, err);
    return rc ? rc : history_load (svc, err);
}

void forecast_close (struct svc *svc)
{
    struct forecast *f = svc->forecast;
    struct told *t, *next;
    struct class_recent *c, *next_class;
    if (!f)
        return;
    if (record_unwritten (f))
        record_write (svc);
    if (f->event)
        event_free (f->event);
    if (f->due)
        event_free (f->due);
    HASH_ITER (hh, f->told, t, next)
    {
        HASH_DEL (f->told, t);
        free (t);
    }
    HASH_ITER (hh, f->classes, c, next_class)
    {
        HASH_DEL (f->classes, c);
        free (c);
    }
    simulation_destroy (f->simulation);
    scene_free (&f->scene);
    estimator_destroy (f->estimator);
    free (f->began);
    free (f);
    svc->forecast = NULL;
}

void forecast_policy_changes (struct svc *svc)
{
    struct forecast *f = svc->forecast;
    if (!f)
        return;
    simulation_destroy (f->simulation);
    f->simulation = simulation_create ();
    f->phase = REST;
    scene_free (&f->scene);
    scene_init (&f->scene);
    estimator_policy_changed (f->estimator);
    f->version = 0;
    f->wanted = false;
}

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
            record_write (svc);
        score (f, &t->raw, &t->said, t->class_name, t->given, now);
        if (f->began_count == f->began_cap) {
            f->began_cap = f->began_cap ? f->began_cap * 2 : 64;
            f->began = realloc (f->began, f->began_cap * sizeof *f->began);
            assert (f->began && "out of memory");
        }
        f->began[f->began_count++] = (struct began){job->rec.number, now};
    }
    HASH_DEL (f->told, t);
    free (t);
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
    HASH_DEL (svc->forecast->told, t);
    free (t);
}

void forecast_poll (struct svc *svc)
{
    struct err err = {0};
    if (!svc->forecast || svc->sim)
        return;
    if (record_unwritten (svc->forecast))
        record_write (svc);
    int rc = svc_begin (svc, &err);
    if (rc == 0)
        rc = store_estimate_purge (svc->store, svc_now (svc) - RECORD_DAYS * 24 * 3600 * US_PER_S,
                                   &err);
    (void)svc_commit (svc, rc, &err);
}

void forecast_cost (struct svc *svc, struct forecast_cost *out)
{
    *out = svc->forecast->cost;
    out->history = history_ended_count (estimator_history (svc->forecast->estimator));
}

/* --- answers ---------------------------------------------------------------------------------- */

static const char *confidence (struct svc *svc, const struct estimate *e)
{
    struct recent_summary s;
    recent_summarise (&svc->forecast->all, svc_now (svc), &s);
    if (!recent_earned (&s))
        return "";
    /* a narrow interval of a record that holds is something to rely on */
    return e->high95 - e->low95 <= 2 * (e->median / 2 + 600 * US_PER_S) ? "high" : "fair";
}

static Nui__Common__V1__Forecast *message (struct svc *svc, enum estimate_method method,
                                           const struct estimate *e, time_us made,
                                           struct arena *arena)
{
    Nui__Common__V1__Forecast *m = arena_new (arena, Nui__Common__V1__Forecast);
    nui__common__v1__forecast__init (m);
    m->method = (char *)estimate_method_name (method);
    m->median_us = made + e->median;
    m->low50_us = made + e->low50;
    m->high50_us = made + e->high50;
    m->low95_us = made + e->low95;
    m->high95_us = made + e->high95;
    m->certain = e->certain;
    m->draws = e->draws;
    m->made_us = made;
    if (method == ESTIMATE_SIMULATION)
        m->confidence = (char *)(e->certain ? "" : confidence (svc, e));
    return m;
}

Nui__Common__V1__Forecast *forecast_of_job (struct svc *svc, const struct site_job *job,
                                            struct arena *arena)
{
    if (!svc->forecast || job->rec.state != STORE_JOB_QUEUED)
        return NULL;
    struct told *t = told_find (svc->forecast, job->rec.number);
    if (!t || !t->given)
        return NULL;
    Nui__Common__V1__Forecast *m =
        message (svc, ESTIMATE_SIMULATION, &t->last, t->last_at, arena);
    if (*t->moved)
        m->moved = arena_strdup (arena, t->moved);
    return m;
}

/* Is a copy of the site too dear to be made while somebody waits? */
static bool too_dear (struct svc *svc, const struct scene *s)
{
    return !s->counted &&
           svc->node_count + s->running_count + s->waiting_count > FORECAST_COPY_MAX;
}

static int ask (struct svc *svc, struct job_id id, const struct job_spec *spec,
                enum estimate_method method, struct arena *arena,
                Nui__Common__V1__Forecast **out, struct err *err)
{
    struct forecast *f = svc->forecast;
    struct estimate raw, said;
    time_us now = svc_now (svc), made = now;
    int rc = estimator_see (f->estimator, svc->cluster, now, err);
    if (rc != 0)
        return rc;
    const struct scene *s = estimator_scene (f->estimator);
    bool copied = method == ESTIMATE_SIMULATION || method == ESTIMATE_LIMITS;
    if (copied && too_dear (svc, s)) {
        struct job_known known;
        if (!spec)
            return err_set (err, ERR_NOT_FOUND, "it is not known yet");
        scene_job_known (spec, &known);
        if (method != ESTIMATE_SIMULATION ||
            !forecast_table (svc, known.procs, known.limit, &said, &made))
            return err_set (err, ERR_NOT_FOUND, "the site is too large to be simulated at once");
        *out = message (svc, method, &said, made, arena);
        return 0;
    }
    rc = estimator_ask (f->estimator, method, svc->cluster, id, spec, &raw, err);
    if (rc != 0)
        return rc;
    estimator_correct (f->estimator, method, &raw, &said);
    *out = message (svc, method, &said, made, arena);
    return 0;
}

int forecast_ask_job (struct svc *svc, const struct site_job *job, enum estimate_method method,
                      struct arena *arena, Nui__Common__V1__Forecast **out, struct err *err)
{
    if (!svc->forecast)
        return err_set (err, ERR_NOT_FOUND, "nothing is estimated");
    return ask (svc, (struct job_id){job->rec.number}, NULL, method, arena, out, err);
}

int forecast_ask_shape (struct svc *svc, const uint32_t cred[CRED_KINDS], const struct req *req,
                        uint32_t req_count, duration_us walltime, enum estimate_method method,
                        struct arena *arena, Nui__Common__V1__Forecast **out, struct err *err)
{
    struct job_spec spec = {.id = {(uint64_t)INT64_MAX / 2}, .submit = svc_now (svc),
                            .not_before = TIME_US_NONE, .walltime_limit = walltime,
                            .req_count = req_count, .req = req};
    if (!svc->forecast)
        return err_set (err, ERR_NOT_FOUND, "nothing is estimated");
    memcpy (spec.cred, cred, sizeof spec.cred);
    return ask (svc, spec.id, &spec, method, arena, out, err);
}

bool forecast_table (struct svc *svc, uint32_t procs, duration_us walltime, struct estimate *out,
                     time_us *made_out)
{
    const struct forecast *f = svc->forecast;
    if (!f || f->table_at == TIME_US_NONE)
        return false;
    for (uint32_t i = 0; i < f->shape_count; i++) { /* ascending in both */
        if (f->shape[i].procs >= procs && f->shape[i].limit >= walltime) {
            *out = f->table[i];
            *made_out = f->table_at;
            return out->median < (duration_us)SURVEY_HORIZON_DAYS * 24 * 3600 * US_PER_S;
        }
    }
    return false;
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
