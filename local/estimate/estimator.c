/* estimator: keeps a history, a scene and a record per method, and has a method answer. Daemon
 * and simulators tell it of arrivals, starts and ends, and ask. It never decides about a job: an
 * estimate is for people and the metascheduler, not for the pass. */
#include "local/estimate/estimator.h"

#include <stdlib.h>
#include <string.h>

#include "local/core/query.h"
#include "proto/base/mem.h"

struct estimator {
    struct estimator_options options;
    struct history *history;
    struct waits *waits;
    struct scene scene;
    struct simulation *simulation;
    struct control control[ESTIMATE_METHODS];
    uint64_t asked;
};

struct question {
    struct estimator *estimator;
    struct cluster *cluster;
    uint32_t place; /* of the job in the scene */
    struct estimate *out;
    struct err *err;
};

struct estimator *estimator_create (const struct estimator_options *options)
{
    struct estimator *e = mem_zero (1, sizeof *e);

    if (options)
        e->options = *options;
    if (e->options.history == 0)
        e->options.history = ESTIMATOR_HISTORY;
    if (e->options.draws == 0)
        e->options.draws = ESTIMATOR_DRAWS;
    if (e->options.work == 0)
        e->options.work = ESTIMATOR_WORK;
    e->history = history_create (e->options.history);
    e->waits = waits_create ();
    e->simulation = simulation_create ();
    scene_init (&e->scene);
    for (int m = 0; m < ESTIMATE_METHODS; m++)
        control_init (&e->control[m]);
    return e;
}

void estimator_destroy (struct estimator *e)
{
    if (e == NULL)
        return;
    history_destroy (e->history);
    waits_destroy (e->waits);
    simulation_destroy (e->simulation);
    scene_free (&e->scene);
    free (e);
}

void estimator_arrived (struct estimator *e, const struct job_known *job, time_us submit)
{
    history_arrived (e->history, job, submit);
}

void estimator_started (struct estimator *e, const struct job_known *job, duration_us wait)
{
    waits_add (e->waits, job, wait < 0 ? 0 : wait);
}

void estimator_ended (struct estimator *e, const struct job_known *job, duration_us run)
{
    history_ended (e->history, job, run);
}

int estimator_see (struct estimator *e, struct cluster *cluster, time_us now, struct err *err)
{
    return scene_read (&e->scene, cluster, now, err);
}

const struct scene *estimator_scene (const struct estimator *e)
{
    return &e->scene;
}

const struct history *estimator_history (const struct estimator *e)
{
    return e->history;
}

void estimator_policy_changed (struct estimator *e)
{
    simulation_destroy (e->simulation); /* it may have copies under the old one */
    e->simulation = simulation_create ();
    scene_free (&e->scene);
    scene_init (&e->scene);
}

/* --- the methods ------------------------------------------------------------------------------ */

static int simulated (struct question *q, bool limits)
{
    struct estimator *e = q->estimator;
    struct simulate_options options = {e->options.draws, e->options.work,
                                       e->options.seed + ++e->asked, false, limits};
    int rc = simulation_begin (e->simulation, &e->scene, e->history, q->cluster, q->place, NULL, 0,
                               &options, q->err);

    if (rc)
        return rc;
    if (e->options.bounded) /* what passes cost besides (replay_extra) may be some times as much */
        for (int i = 0;
             i < 8 && simulation_work (e->simulation) < e->options.work &&
             !simulation_go (e->simulation, e->options.work - simulation_work (e->simulation));
             i++)
            continue;
    else
        (void)simulation_go (e->simulation, UINT64_MAX / 4);
    rc = simulation_status (e->simulation, q->err);
    if (rc)
        return rc;
    if (!simulation_enough (e->simulation))
        return err_set (q->err, ERR_LIMIT, "the site is too large to be simulated at once");
    simulation_estimate (e->simulation, 0, q->out);
    return 0;
}

/* The start if limits are what jobs need; it may be earlier, hardly later. */
static int by_limits (struct question *q)
{
    int rc = simulated (q, true);

    q->out->low50 = q->out->median / 2;
    q->out->low95 = 0;
    return rc;
}

/* Bound to nodes early, enough processors may not be enough: the cluster itself is asked. */
static bool starts_at_once (const struct question *q)
{
    const struct scene *s = &q->estimator->scene;
    struct req req = {.tasks = s->waiting[q->place].job.procs};
    struct query query = {.req_count = 1,
                          .req = &req,
                          .duration = s->waiting[q->place].job.limit,
                          .from = s->now,
                          .until = s->now,
                          .queue = true};
    struct arena *arena = arena_create (0);
    struct slot slot;
    bool now;

    req.task.v[RES_PROCS] = 1;
    now = query_earliest (q->cluster, &query, s->now, arena, &slot, NULL) == 0 &&
          slot.start == s->now;
    arena_destroy (arena);
    return now;
}

static int by_simulation (struct question *q)
{
    const struct scene *s = &q->estimator->scene;
    int rc = simulated (q, false);

    if (rc == 0 && q->out->certain && s->counted && s->policy->reservation_binding == BINDING_EARLY)
        q->out->certain = starts_at_once (q);
    return rc;
}

static int by_history (struct question *q)
{
    const struct estimator *e = q->estimator;

    waits_estimate (e->waits, &e->scene.waiting[q->place].job, q->out);
    return 0;
}

struct expected_end {
    double after; /* microseconds from now */
    uint32_t procs;
};

static int by_end (const void *a, const void *b)
{
    const struct expected_end *x = a, *y = b;

    return (x->after > y->after) - (x->after < y->after);
}

/* When running jobs, as long as jobs alike ran on average, have left enough for those ahead and for
 * it; where that is more than the machine, the work beyond takes the whole machine so much longer.
 */
static double strict_wait (struct estimator *e, uint32_t place)
{
    const struct scene *s = &e->scene;
    struct expected_end *end = mem_alloc ((s->running_count + 1) * sizeof *end);
    double need = s->waiting[place].job.procs - (double)s->procs_free, work = 0, wait = 0;
    struct runs runs;

    for (uint32_t i = 0; i < place; i++) {
        history_runs (e->history, &s->waiting[i].job, 0, &runs);
        work += runs_mean (&runs) * s->waiting[i].job.procs;
        need += s->waiting[i].job.procs;
    }
    if (need > (double)s->procs_up && s->procs_up > 0)
        wait = work * (1 - (double)s->procs_up / need) / (double)s->procs_up;
    for (uint32_t i = 0; i < s->running_count; i++) {
        duration_us elapsed = s->now - s->running[i].start;
        history_runs (e->history, &s->running[i].job, elapsed, &runs);
        end[i] =
            (struct expected_end){runs_mean (&runs) - (double)elapsed, s->running[i].job.procs};
    }
    qsort (end, s->running_count, sizeof *end, by_end);
    for (uint32_t i = 0; i < s->running_count && need > 0; i++) {
        need -= end[i].procs;
        if (need <= 0 || i + 1 == s->running_count)
            wait += end[i].after;
    }
    free (end);
    return wait;
}

static int by_priority (struct question *q)
{
    double wait = strict_wait (q->estimator, q->place);

    memset (q->out, 0, sizeof *q->out);
    q->out->draws = 1;
    q->out->median = (duration_us)wait;
    q->out->low50 = (duration_us)(wait * .5);
    q->out->high50 = (duration_us)(wait * 1.5);
    q->out->low95 = (duration_us)(wait * .1);
    q->out->high95 = (duration_us)(wait * 3);
    return 0;
}

static const struct {
    const char *name;
    int (*answer) (struct question *q);
} method_of[ESTIMATE_METHODS] = {
    [ESTIMATE_LIMITS] = {"limits", by_limits},
    [ESTIMATE_PRIORITY] = {"priority", by_priority},
    [ESTIMATE_HISTORY] = {"history", by_history},
    [ESTIMATE_SIMULATION] = {"simulation", by_simulation},
};

const char *estimate_method_name (enum estimate_method method)
{
    return method < ESTIMATE_METHODS ? method_of[method].name : "?";
}

int estimator_ask (struct estimator *e, enum estimate_method method, struct cluster *cluster,
                   struct job_id id, const struct job_spec *spec, struct estimate *raw,
                   struct err *err)
{
    bool counted = e->scene.counted, reorders = e->scene.reorders;
    struct question q = {e, cluster, 0, raw, err};
    int rc;

    memset (raw, 0, sizeof *raw);
    q.place = spec ? scene_insert (&e->scene, spec) : scene_find (&e->scene, id);
    if (q.place == UINT32_MAX)
        return err_set (err, ERR_NOT_FOUND, "job %llu is not waiting for its turn",
                        (unsigned long long)id.v);
    rc = method_of[method].answer (&q);
    if (spec) {
        scene_drop (&e->scene, q.place);
        e->scene.counted = counted;
        e->scene.reorders = reorders;
    }
    return rc;
}

/* --- the record ------------------------------------------------------------------------------- */

void estimator_correct (const struct estimator *e, enum estimate_method method,
                        const struct estimate *raw, struct estimate *out)
{
    control_apply (&e->control[method], raw, out);
}

void estimator_score (struct estimator *e, enum estimate_method method, const struct estimate *raw,
                      duration_us wait)
{
    control_learn (&e->control[method], raw, wait);
}
