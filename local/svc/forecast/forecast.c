/* Surveys: the queue and a table of shapes, simulated forward in slices of the loop, and what is answered from them. Listens to
 * whatever changes the schedule; never holds the loop longer than a slice. */
#include "local/svc/forecast/forecast_i.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "local/svc/job.h"
#include "local/svc/job/jobs.h"
#include "local/svc/job/jobspec.h"
#include "local/svc/svc_i.h"
#include "proto/base/clock.h"

enum {
    SURVEY_DRAWS = 40,
    SURVEY_WORK = 500000000, /* of one half, after which no further draw is begun: some seconds */
    SURVEY_HORIZON_DAYS = 120,
    TAKEN_AT_ONCE = 100, /* answers, of some microseconds each; written before anybody sees them */
};
/* As in report.c: one processor, two, four … and all, for so long. */
static const duration_us lengths[LENGTHS] = {
    60 * US_PER_S,         600 * US_PER_S,        1800 * US_PER_S,      3600 * US_PER_S,
    4 * 3600 * US_PER_S,   12 * 3600 * US_PER_S,  24 * 3600 * US_PER_S, 72 * 3600 * US_PER_S,
    168 * 3600 * US_PER_S, 720 * 3600 * US_PER_S,
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

/* --- surveys ---------------------------------------------------------------------------------- */

static void shapes_make (struct forecast *f)
{
    f->shape_count = 0;
    for (uint64_t size = 1; f->scene.procs_up > 0; size *= 2) {
        bool last = size >= (uint64_t)f->scene.procs_up || f->shape_count / LENGTHS == SIZES - 1;
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
    struct simulate_options options = {
        .draws = SURVEY_DRAWS, .work = SURVEY_WORK, .seed = f->cost.surveys, .alone = shapes};
    return simulation_begin (f->simulation, &f->scene, estimator_history (f->estimator),
                             svc->cluster, UINT32_MAX, shapes ? f->shape : NULL,
                             shapes ? f->shape_count : 0, &options, err);
}

static void survey_failed (struct svc *svc, const struct err *err)
{
    log_event (svc->log, LOG_LEVEL_WARN, "forecast", "survey_failed", "error=\"%s\"", err->text);
}

static void survey_begin (struct svc *svc)
{
    struct forecast *f = svc->forecast;
    struct err err = {0};
    f->wanted = false;
    f->version = cluster_version (svc->cluster);
    duration_us begun = cpu_now ();
    int rc = scene_read (&f->scene, svc->cluster, svc_now (svc), &err);
    f->seen = f->happened;
    if (rc == 0) {
        shapes_make (f);
        f->phase = f->scene.waiting_count ? QUEUE : SHAPES;
        rc = phase_begin (svc, f->phase == SHAPES, &err);
    }
    if (rc != 0) {
        f->phase = REST;
        survey_failed (svc, &err);
        timer_set (f->due, FORECAST_EVERY_S * US_PER_S);
        return;
    }
    f->spent = cpu_now () - begun;
    f->cost.slice = f->spent > f->cost.slice ? f->spent : f->cost.slice;
    timer_set (f->event, 0);
}

/* What the simulation says of one waiting job. */
static void job_take (struct svc *svc, uint32_t place)
{
    struct forecast *f = svc->forecast;
    struct site_job *job = svc_job (svc, f->scene.waiting[place].id.v);
    struct estimate raw;
    if (!job || job->rec.state != STORE_JOB_QUEUED)
        return;
    simulation_estimate (f->simulation, place, &raw);
    if (answer_take (svc, job, &raw, f->scene.now, .2) && *job->rec.grid_job_id &&
        f->moved_count < TOLD_PER_SURVEY)
        f->moved[f->moved_count++] = job->rec.number;
}

/* Jobs of the grid whose answer has moved: their metaschedulers hear of it. */
static void moved_tell (struct svc *svc)
{
    struct forecast *f = svc->forecast;
    struct err err = {0};
    if (f->moved_count == 0)
        return;
    int rc = svc_begin (svc, &err);
    for (uint32_t i = 0; i < f->moved_count && rc == 0; i++) {
        struct site_job *job = svc_job (svc, f->moved[i]);
        if (job && job->rec.state == STORE_JOB_QUEUED)
            rc = svc_job_write (svc, job, true, NULL, 0, &err);
    }
    (void)svc_commit (svc, rc, &err);
    if (svc->meta)
        meta_link_poke (svc->meta);
}

/* True: all of the queue has its answer. */
static bool queue_take (struct svc *svc)
{
    struct forecast *f = svc->forecast;
    for (int n = 0; n < TAKEN_AT_ONCE && f->taken < f->scene.waiting_count; n++)
        job_take (svc, f->taken++);
    if (record_unwritten (f))
        record_write (svc, NULL);
    if (f->taken < f->scene.waiting_count)
        return false;
    moved_tell (svc);
    f->happened.came -= f->seen.came;
    f->happened.ended -= f->seen.ended;
    f->happened.started -= f->seen.started;
    f->happened.withdrawn -= f->seen.withdrawn;
    f->procs_told = f->scene.procs_up;
    return true;
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
    log_event (svc->log, LOG_LEVEL_DEBUG, "forecast", "surveyed", "jobs=%u us=%lld",
               f->scene.waiting_count, (long long)f->spent);
    if (f->wanted)
        timer_set (f->due, f->spent * (FORECAST_SHARE - FORECAST_PACE) + US_PER_S / 5);
    else
        timer_set (f->due, FORECAST_EVERY_S * US_PER_S);
}

static int shapes_begin (struct svc *svc, struct err *err)
{
    svc->forecast->phase = SHAPES;
    return phase_begin (svc, true, err);
}

/* One slice. True: the survey is over. */
static bool survey_go (struct svc *svc, struct err *err)
{
    struct forecast *f = svc->forecast;
    if (f->phase == TAKE)
        return queue_take (svc) && shapes_begin (svc, err) != 0;
    if (!simulation_go (f->simulation, FORECAST_SLICE))
        return false;
    if (simulation_status (f->simulation, err) != 0)
        return true;
    if (f->phase == QUEUE) {
        f->phase = TAKE;
        f->taken = f->moved_count = 0;
        return false;
    }
    shapes_take (f);
    return true;
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
    bool done = survey_go (svc, &err);
    duration_us took = cpu_now () - begun;
    f->spent += took;
    f->cost.slice = took > f->cost.slice ? took : f->cost.slice;
    if (err.code)
        survey_failed (svc, &err);
    if (done)
        survey_end (svc);
    else
        timer_set (f->event, US_PER_S / 1000 + took * FORECAST_PACE); /* others go first */
}

static void on_due (evutil_socket_t fd, short what, void *arg)
{
    struct svc *svc = arg;
    (void)fd;
    (void)what;
    if (!svc->closing && svc->forecast->phase == REST)
        survey_begin (svc);
}

static void forecast_wake (struct svc *svc)
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

static int forecast_open (struct svc *svc, struct err *err)
{
    struct forecast *f = calloc (1, sizeof *f);
    assert (f && "out of memory");
    svc->forecast = f;
    struct estimator_options options = {.work = FORECAST_ASK, .bounded = true};
    f->estimator = estimator_create (&options);
    f->simulation = simulation_create ();
    scene_init (&f->scene);
    f->table_at = f->cost.surveyed = TIME_US_NONE;
    f->event = event_new (svc->base, -1, 0, on_slice, svc);
    f->due = event_new (svc->base, -1, 0, on_due, svc);
    if (!f->event || !f->due)
        return err_set (err, ERR_NOMEM, "estimates: no memory for events");
    return record_open (svc, err);
}

static void forecast_close (struct svc *svc)
{
    struct forecast *f = svc->forecast;
    struct told *t, *next;
    struct held *h, *next_held;
    if (!f)
        return;
    while (record_unwritten (f)) {
        uint32_t before = f->unwritten_count + f->began_count;
        record_write (svc, NULL);
        if (f->unwritten_count + f->began_count == before)
            break; /* the store does not take them */
    }
    if (f->event)
        event_free (f->event);
    if (f->due)
        event_free (f->due);
    HASH_ITER (hh, f->told, t, next) {
        HASH_DEL (f->told, t);
        free (t);
    }
    HASH_ITER (hh, f->held, h, next_held) {
        HASH_DEL (f->held, h);
        free (h);
    }
    simulation_destroy (f->simulation);
    scene_free (&f->scene);
    estimator_destroy (f->estimator);
    free (f->began);
    free (f->unwritten);
    free (f);
    svc->forecast = NULL;
}

static void forecast_policy_changes (struct svc *svc)
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

void forecast_cost (struct svc *svc, struct forecast_cost *out)
{
    *out = svc->forecast->cost;
    out->history = history_ended_count (estimator_history (svc->forecast->estimator));
}

/* --- answers ---------------------------------------------------------------------------------- */

static const char *confidence (struct svc *svc, const struct estimate *e)
{
    struct recent_summary s;
    recent_summarise (svc->forecast->all, svc_now (svc), &s);
    if (!recent_earned (&s))
        return "";
    /* a narrow interval of a record that holds is something to rely on */
    return e->high95 - e->low95 <= 2 * (e->median / 2 + 600 * US_PER_S) ? "high" : "fair";
}

static time_us not_past (time_us at, time_us now)
{
    return at > now ? at : now;
}

/* Made from `at`, and standing at `now`. */
static Nui__Common__V1__Forecast *message (struct svc *svc, enum estimate_method method,
                                           const struct estimate *e, time_us at, time_us now,
                                           struct arena *arena)
{
    Nui__Common__V1__Forecast *m = arena_new (arena, Nui__Common__V1__Forecast);
    nui__common__v1__forecast__init (m);
    m->method = (char *)estimate_method_name (method);
    m->median_us = not_past (at + e->median, now);
    m->low50_us = not_past (at + e->low50, now);
    m->high50_us = not_past (at + e->high50, now);
    m->low95_us = not_past (at + e->low95, now);
    m->high95_us = not_past (at + e->high95, now);
    m->certain = e->certain;
    m->draws = e->draws;
    m->made_us = now;
    if (method == ESTIMATE_SIMULATION)
        m->confidence = (char *)(e->certain ? "" : confidence (svc, e));
    return m;
}

void forecast_not_before (Nui__Common__V1__Forecast *m, time_us at)
{
    int64_t *const moment[] = {&m->median_us, &m->low50_us, &m->high50_us, &m->low95_us,
                               &m->high95_us};
    for (size_t i = 0; i < sizeof moment / sizeof *moment; i++)
        if (*moment[i] && *moment[i] < at)
            *moment[i] = at;
}

Nui__Common__V1__Forecast *forecast_without (const char *method, const char *why,
                                             struct arena *arena)
{
    Nui__Common__V1__Forecast *m = arena_new (arena, Nui__Common__V1__Forecast);
    nui__common__v1__forecast__init (m);
    m->method = (char *)method;
    m->without = (char *)why;
    return m;
}

/* A co-allocated part: all its sites agreed on a moment. */
static Nui__Common__V1__Forecast *promised (time_us at, struct arena *arena)
{
    Nui__Common__V1__Forecast *m = forecast_without ("promised", "", arena);
    m->median_us = m->low50_us = m->high50_us = m->low95_us = m->high95_us = at;
    m->certain = true;
    return m;
}

Nui__Common__V1__Forecast *forecast_of_job (struct svc *svc, const struct site_job *job,
                                            struct arena *arena)
{
    if (job->part && !job->rec.start)
        return promised (job->rec.launch_at ? job->rec.launch_at : job->part->rec.slot_start,
                         arena);
    if (!svc->forecast || job->rec.state != STORE_JOB_QUEUED)
        return NULL;
    const char *why = forecast_none (svc, job, arena);
    if (why)
        return forecast_without (estimate_method_name (ESTIMATE_SIMULATION), why, arena);
    struct told *t = told_find (svc->forecast, job->rec.number);
    if (!t || !t->given)
        return NULL;
    Nui__Common__V1__Forecast *m =
        message (svc, ESTIMATE_SIMULATION, &t->shown, t->shown_at, t->confirmed, arena);
    if (*t->moved)
        m->moved = arena_strdup (arena, t->moved);
    return m;
}

/* As of the last survey: a job's own answer, or the table's for such a shape. */
static int ask_survey (struct svc *svc, struct job_id id, const struct job_spec *spec,
                       struct answer *out, struct err *err)
{
    const struct told *t = spec ? NULL : told_find (svc->forecast, id.v);
    struct job_known known;
    if (t && t->given) {
        *out = (struct answer){.said = t->shown, .at = t->shown_at, .from = ANSWER_SHOWN};
        return 0;
    }
    out->from = ANSWER_TABLE;
    if (spec) {
        scene_job_known (spec, &known);
        if (forecast_table (svc, known.procs, known.limit, &out->said, &out->at))
            return 0;
    }
    return err_set (err, ERR_NOT_FOUND, "it is not known yet");
}

/* Too many jobs to look at while others wait. */
static bool too_many (struct svc *svc)
{
    return (uint64_t)cluster_job_count (svc->cluster, JOB_IDLE) +
               cluster_job_count (svc->cluster, JOB_RUNNING) >
           FORECAST_ASK_JOBS;
}

static int ask (struct svc *svc, struct job_id id, const struct job_spec *spec,
                enum estimate_method method, struct answer *out, struct err *err)
{
    struct forecast *f = svc->forecast;
    int rc = ERR_LIMIT;
    *out = (struct answer){.at = svc_now (svc), .from = ANSWER_FRESH};
    if (!too_many (svc)) {
        rc = estimator_see (f->estimator, svc->cluster, out->at, err);
        if (rc == 0)
            rc = estimator_ask (f->estimator, method, svc->cluster, id, spec, &out->raw, err);
    }
    if (rc == ERR_LIMIT && method == ESTIMATE_SIMULATION)
        return ask_survey (svc, id, spec, out, err);
    if (rc == ERR_LIMIT)
        return err_set (err, ERR_NOT_FOUND, "the site is too large for that");
    if (rc == 0)
        estimator_correct (f->estimator, method, &out->raw, &out->said);
    return rc;
}

int forecast_ask_job (struct svc *svc, const struct site_job *job, enum estimate_method method,
                      struct arena *arena, Nui__Common__V1__Forecast **out, struct err *err)
{
    struct answer a;
    if (!svc->forecast)
        return err_set (err, ERR_NOT_FOUND, "nothing is estimated");
    const char *why = forecast_none (svc, job, arena);
    if (why)
        return err_set (err, ERR_NOT_FOUND, "%s", why);
    int rc = ask (svc, (struct job_id){job->rec.number}, NULL, method, &a, err);
    if (rc == 0 && !svc->sim)
        rc = answer_asked (svc, job, method, &a, err);
    if (rc == 0)
        *out = message (svc, method, &a.said, a.at, svc_now (svc), arena);
    return rc;
}

static int ask_shape (struct svc *svc, const uint32_t cred[CRED_KINDS], const struct req *req,
                      uint32_t req_count, duration_us walltime, enum estimate_method method,
                      struct answer *out, struct err *err)
{
    struct job_spec spec = {.id = {(uint64_t)INT64_MAX / 2},
                            .submit = svc_now (svc),
                            .not_before = TIME_US_NONE,
                            .walltime_limit = walltime,
                            .req_count = req_count,
                            .req = req};
    if (!svc->forecast)
        return err_set (err, ERR_NOT_FOUND, "nothing is estimated");
    memcpy (spec.cred, cred, sizeof spec.cred);
    return ask (svc, spec.id, &spec, method, out, err);
}

int forecast_ask_shape (struct svc *svc, const uint32_t cred[CRED_KINDS], const struct req *req,
                        uint32_t req_count, duration_us walltime, enum estimate_method method,
                        struct arena *arena, Nui__Common__V1__Forecast **out, struct err *err)
{
    struct answer a;
    int rc = ask_shape (svc, cred, req, req_count, walltime, method, &a, err);
    if (rc == 0)
        *out = message (svc, method, &a.said, a.at, a.at, arena);
    return rc;
}

int forecast_quote (struct svc *svc, const struct jobspec *spec, struct arena *arena,
                    Nui__Common__V1__Forecast **out, struct err *err)
{
    struct answer a;
    int rc = ask_shape (svc, spec->cred, spec->reqs, spec->req_count, spec->walltime,
                        ESTIMATE_SIMULATION, &a, err);
    if (rc != 0)
        return rc;
    quoted_put (svc->forecast, spec, &a);
    *out = message (svc, ESTIMATE_SIMULATION, &a.said, a.at, a.at, arena);
    return 0;
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

const struct svc_listener forecast_listener = {.open = forecast_open,
                                               .policy_changes = forecast_policy_changes,
                                               .pass_done = forecast_wake,
                                               .stop = forecast_close};
