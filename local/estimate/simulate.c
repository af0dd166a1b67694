/* simulate: a machine in small steps: run times, copy, draw, and again, counting when jobs
 * start. estimator.c and the forecast drive it slice by slice. Where a slice ends must never
 * change the result: all that a draw needs is kept in the simulation. */
#include "local/estimate/simulate.h"

#include <stdlib.h>
#include <string.h>

#include "local/core/priority.h"
#include "local/estimate/replay.h"
#include "proto/base/mem.h"

enum {
    HORIZON_DAYS = 120,     /* a draw ends there */
    BROTHERS = 8,           /* of a waiting job that are looked at */
    KINDS_MAX = 1 << 14,    /* distributions that are kept */
    DRAW_WORK_MAX = 1 << 28 /* a draw that needs more is given up, as if the horizon were reached */
};
static const double BROTHER_HALF = 3; /* so many brothers are believed half */

struct kind { /* jobs that are alike and have not begun */
    struct job_known job;
    struct runs runs;
};

enum phase {
    PHASE_KINDS,   /* distributions of run times, job by job */
    PHASE_RUNS,    /* a draw: run times, job by job */
    PHASE_DRAW,    /* … the passes */
    PHASE_COLLECT, /* … its starts, job by job */
    PHASE_DONE
};
enum { KIND_SLOW = 160 }; /* units more than a distribution counts */
enum { AT_ONCE = 256 };   /* jobs, in the phases that go by jobs */

struct simulation {
    enum phase phase;
    uint32_t at; /* in the phase: the next job; running ones come before waiting ones */
    const struct scene *scene;
    const struct history *history;
    struct simulate_options options;
    uint32_t target;
    struct forward *forward;
    struct replay *replay;
    bool replaying;
    struct forward_setup setup;
    struct forward_run *run;
    uint32_t run_cap;
    struct forward_job *job;
    uint32_t job_cap;
    struct forward_ghost *ghost;
    uint32_t ghost_count, ghost_cap;
    struct runs *running; /* of running jobs */
    uint32_t running_cap;
    uint32_t *kind_of; /* of waiting jobs */
    uint32_t kind_of_cap;
    uint32_t *brother; /* of waiting jobs: the first running one + 1 */
    uint32_t brother_cap;
    uint32_t *next_brother; /* of running jobs */
    uint32_t next_brother_cap;
    uint32_t *brothers; /* of running jobs that are first: how many */
    uint32_t brothers_cap;
    struct kind *kind;
    uint32_t kind_count, kind_cap;
    uint32_t *table; /* kinds by what they ask */
    uint32_t table_mask;
    struct arrivals arrivals;
    struct rng rng;
    uint32_t drawn;
    bool certain;
    struct err err;
    time_us *starts; /* of the draw */
    uint32_t starts_cap;
    /* [subject * draws + draw]; subject: waiting jobs, then shapes; or the target */
    duration_us *wait;
    uint64_t wait_cap;
    uint32_t subjects;
    uint64_t work;
};

struct simulation *simulation_create (void)
{
    struct simulation *s = mem_zero (1, sizeof *s);

    s->forward = forward_create ();
    s->replay = replay_create ();
    s->table_mask = KINDS_MAX * 2 - 1;
    s->table = mem_zero (s->table_mask + 1, sizeof *s->table);
    return s;
}

void simulation_destroy (struct simulation *s)
{
    if (s == NULL)
        return;
    forward_destroy (s->forward);
    replay_destroy (s->replay);
    free (s->run);
    free (s->job);
    free (s->ghost);
    free (s->running);
    free (s->kind_of);
    free (s->brother);
    free (s->next_brother);
    free (s->brothers);
    free (s->kind);
    free (s->table);
    free (s->starts);
    free (s->wait);
    free (s);
}

/* --- run times ------------------------------------------------------------------------------ */

static uint32_t hash_of (const struct job_known *job, bool procs)
{
    uint64_t h = job->cred[CRED_USER] * UINT64_C (0x9E3779B97F4A7C15) ^ (uint64_t)job->limit;

    h = (h ^ h >> 31) * UINT64_C (0xBF58476D1CE4E5B9) ^ (procs ? job->procs : 0);
    h = (h ^ h >> 29) * UINT64_C (0x94D049BB133111EB);
    return (uint32_t)(h >> 32);
}

static uint32_t kind_find (struct simulation *s, const struct job_known *job)
{
    uint32_t at = hash_of (job, true) & s->table_mask;

    for (; s->table[at]; at = (at + 1) & s->table_mask) {
        const struct kind *k = &s->kind[s->table[at] - 1];
        if (k->job.procs == job->procs && k->job.limit == job->limit &&
            memcmp (k->job.cred, job->cred, sizeof job->cred) == 0)
            return s->table[at] - 1;
    }
    if (s->kind_count == KINDS_MAX) /* more kinds than anybody can use: as the first is */
        return 0;
    s->kind = mem_grow (s->kind, &s->kind_cap, s->kind_count + 1, sizeof *s->kind);
    s->kind[s->kind_count].job = *job;
    history_runs (s->history, job, 0, &s->kind[s->kind_count].runs);
    s->work += 32;
    s->table[at] = ++s->kind_count;
    return s->kind_count - 1;
}

/* Running jobs of the same user with the same limit, in chains. */
static void brothers_find (struct simulation *s)
{
    const struct scene *scene = s->scene;
    uint32_t size = 64, *first;

    while (size < scene->running_count * 2)
        size *= 2;
    first = mem_zero (size, sizeof *first);
    for (uint32_t i = 0; i < scene->running_count; i++) {
        const struct job_known *job = &scene->running[i].job;
        uint32_t at = hash_of (job, false) & (size - 1);
        for (; first[at]; at = (at + 1) & (size - 1)) {
            const struct job_known *other = &scene->running[first[at] - 1].job;
            if (other->cred[CRED_USER] == job->cred[CRED_USER] && other->limit == job->limit)
                break;
        }
        s->brothers[i] = 1;
        s->next_brother[i] = 0;
        if (first[at]) {
            uint32_t head = first[at] - 1;
            s->next_brother[i] = s->next_brother[head];
            s->next_brother[head] = i + 1;
            s->brothers[head]++;
        } else {
            first[at] = i + 1;
        }
    }
    for (uint32_t i = 0; i < scene->waiting_count; i++) {
        const struct job_known *job = &scene->waiting[i].job;
        uint32_t at = hash_of (job, false) & (size - 1);
        for (; first[at]; at = (at + 1) & (size - 1)) {
            const struct job_known *other = &scene->running[first[at] - 1].job;
            if (other->cred[CRED_USER] == job->cred[CRED_USER] && other->limit == job->limit)
                break;
        }
        s->brother[i] = job->cred[CRED_USER] == CRED_NONE ? 0 : first[at];
    }
    free (first);
}

static uint32_t upto (uint32_t from, uint32_t count)
{
    return count - from < AT_ONCE ? count : from + AT_ONCE;
}

/* True: all have theirs. */
static bool kinds_step (struct simulation *s)
{
    const struct scene *scene = s->scene;
    uint32_t running = scene->running_count, count = running + scene->waiting_count;
    uint32_t end = upto (s->at, count);

    for (; s->at < end; s->at++) {
        const struct scene_job *j = &scene->running[s->at];
        if (s->at >= running) {
            s->kind_of[s->at - running] = kind_find (s, &scene->waiting[s->at - running].job);
            continue;
        }
        history_runs (s->history, &j->job, scene->now - j->start, &s->running[s->at]);
        s->work += 32;
    }
    s->work += AT_ONCE;
    if (s->at == count)
        brothers_find (s);
    return s->at == count;
}

/* What a running brother needs in this draw; false: go by history. */
static bool brother_draw (struct simulation *s, uint32_t i, duration_us *out)
{
    uint32_t b = s->brother[i], n, steps;

    if (b == 0)
        return false;
    n = s->brothers[b - 1];
    if (rng_unit (&s->rng) >= n / (n + BROTHER_HALF))
        return false;
    steps = rng_below (&s->rng, n < BROTHERS ? n : BROTHERS);
    while (steps-- > 0 && s->next_brother[b - 1])
        b = s->next_brother[b - 1];
    *out = s->run[b - 1].end - s->scene->running[b - 1].start;
    *out = (duration_us)((double)*out * (1 + .1 * (rng_unit (&s->rng) - .5)));
    return true;
}

/* True: all have theirs in this draw. */
static bool runs_step (struct simulation *s)
{
    const struct scene *scene = s->scene;
    uint32_t running = scene->running_count, count = running + scene->waiting_count;
    uint32_t end = upto (s->at, count), i = s->at;

    for (; i < end && i < running; i++) {
        const struct scene_job *j = &scene->running[i];
        duration_us elapsed = scene->now - j->start;
        duration_us run = s->options.limits ? j->limit_end - j->start
                                            : runs_draw (&s->running[i], &j->job, elapsed, &s->rng);
        time_us ends = j->start + run;
        s->run[i] = (struct forward_run){j->limit_end, ends > scene->now ? ends : scene->now + 1,
                                         j->job.procs};
    }
    for (; i < end; i++) {
        const struct scene_job *j = &scene->waiting[i - running];
        duration_us run = j->job.limit;
        if (!s->options.limits && !brother_draw (s, i - running, &run))
            run = runs_draw (&s->kind[s->kind_of[i - running]].runs, &j->job, 0, &s->rng);
        s->job[i - running] =
            (struct forward_job){j->job.procs, j->job.limit, run, j->prio, j->slope};
    }
    s->work += 4 * (end - s->at) + 1;
    s->at = end;
    return s->at == count;
}

/* The next that comes, its run time drawn; its priority that of its arrival. */
static bool coming (void *self, time_us *at, struct forward_job *out, struct job_known *job)
{
    struct simulation *s = self;
    uint32_t kind;

    if (!arrivals_next (&s->arrivals, &s->rng, at, job))
        return false;
    *out = (struct forward_job){job->procs, job->limit, 0, 0, 0};
    kind = kind_find (s, job); /* may move them all */
    out->run = runs_draw (&s->kind[kind].runs, job, 0, &s->rng);
    if (s->scene->reorders)
        scene_prio (s->scene, job, *at, &out->prio, &out->slope);
    return true;
}

static bool coming_forward (void *self, time_us *at, struct forward_job *out)
{
    struct job_known job;

    return coming (self, at, out, &job);
}

/* --- draws ---------------------------------------------------------------------------------- */

static uint64_t passes_work (const struct simulation *s)
{
    return s->replaying ? replay_work (s->replay) : forward_work (s->forward);
}

static void passes_begin (struct simulation *s)
{
    if (!s->options.limits)
        arrivals_begin (&s->arrivals, s->history, s->scene->now, &s->rng);
    if (s->replaying)
        replay_begin (s->replay, &s->setup, coming, s->starts);
    else
        forward_begin (s->forward, &s->setup, s->starts);
    s->work += passes_work (s);
    s->phase = PHASE_DRAW;
}

static void passes_step (struct simulation *s, uint64_t work, uint64_t *made)
{
    uint64_t before = passes_work (s), extra = s->replaying ? replay_extra (s->replay) : 0;
    bool over = s->replaying ? replay_go (s->replay, work) : forward_go (s->forward, work);

    s->work += passes_work (s) - before;
    if (s->replaying)
        *made += replay_extra (s->replay) - extra;
    if (s->replaying && over && replay_status (s->replay, &s->err) != 0) {
        s->phase = PHASE_DONE;
    } else if (over || passes_work (s) > DRAW_WORK_MAX) {
        s->phase = PHASE_COLLECT;
        s->at = 0;
    }
}

static duration_us wait_of (const struct simulation *s, time_us start)
{
    return start == TIME_US_NONE ? s->setup.until - s->scene->now : start - s->scene->now;
}

static bool is_done (const struct simulation *s)
{
    if (s->drawn >= s->options.draws || s->subjects == 0 || s->certain)
        return true;
    return s->options.work && s->work >= s->options.work && s->drawn >= DRAWS_LEAST;
}

static void draw_begin (struct simulation *s)
{
    s->phase = is_done (s) ? PHASE_DONE : PHASE_RUNS;
    s->at = 0;
    rng_seed (&s->rng, s->options.seed, s->drawn);
}

/* True: the draw is counted. */
static bool collect_step (struct simulation *s)
{
    uint32_t draws = s->options.draws, waiting = s->scene->waiting_count, end;

    if (s->target != UINT32_MAX) {
        s->wait[s->drawn] = wait_of (s, s->starts[s->target]);
        s->certain = s->drawn == 0 && s->wait[0] == 0; /* the first pass: nothing was drawn yet */
    } else {
        end = upto (s->at, s->subjects);
        for (; s->at < end; s->at++)
            s->wait[(uint64_t)s->at * draws + s->drawn] =
                wait_of (s, s->at < waiting ? s->starts[s->at] : s->ghost[s->at - waiting].start);
        s->work += AT_ONCE;
        if (s->at < s->subjects)
            return false;
    }
    s->drawn++;
    return true;
}

int simulation_begin (struct simulation *s, const struct scene *scene,
                      const struct history *history, struct cluster *cluster, uint32_t target,
                      const struct forward_ghost *shape, uint32_t shape_count,
                      const struct simulate_options *options, struct err *err)
{
    const struct policy *policy = scene->policy;
    uint64_t cells;

    s->scene = scene;
    s->history = history;
    s->options = *options;
    s->options.draws = options->limits ? 1 : options->draws < 1 ? 1 : options->draws;
    if (s->options.draws > DRAWS_MOST)
        s->options.draws = DRAWS_MOST;
    s->target = target;
    s->replaying = !scene->counted;
    s->drawn = 0;
    s->certain = false;
    s->work = 0;
    s->at = 0;
    err_clear (&s->err);
    s->run = mem_grow (s->run, &s->run_cap, scene->running_count + 1, sizeof *s->run);
    s->running =
        mem_grow (s->running, &s->running_cap, scene->running_count + 1, sizeof *s->running);
    s->next_brother = mem_grow (s->next_brother, &s->next_brother_cap, scene->running_count + 1,
                                sizeof *s->next_brother);
    s->brothers =
        mem_grow (s->brothers, &s->brothers_cap, scene->running_count + 1, sizeof *s->brothers);
    s->job = mem_grow (s->job, &s->job_cap, scene->waiting_count + 1, sizeof *s->job);
    s->kind_of =
        mem_grow (s->kind_of, &s->kind_of_cap, scene->waiting_count + 1, sizeof *s->kind_of);
    s->brother =
        mem_grow (s->brother, &s->brother_cap, scene->waiting_count + 1, sizeof *s->brother);
    s->starts = mem_grow (s->starts, &s->starts_cap, scene->waiting_count + 1, sizeof *s->starts);
    s->ghost = mem_grow (s->ghost, &s->ghost_cap, shape_count + 1, sizeof *s->ghost);
    s->ghost_count = shape_count;
    if (shape_count)
        memcpy (s->ghost, shape, shape_count * sizeof *shape);
    s->subjects = target != UINT32_MAX ? 1 : scene->waiting_count + shape_count;
    cells = (uint64_t)(s->subjects + 1) * s->options.draws;
    if (cells > s->wait_cap) {
        s->wait_cap = cells + cells / 2;
        s->wait = mem_resize (s->wait, s->wait_cap * sizeof *s->wait);
    }
    s->kind_count = 0;
    memset (s->table, 0, (s->table_mask + 1) * sizeof *s->table);
    s->phase = PHASE_KINDS;
    if (s->options.limits)
        draw_begin (s);
    s->setup = (struct forward_setup){
        .now = scene->now,
        .procs_free = scene->procs_free,
        .depth = scene->depth,
        .backfill = policy->backfill_policy != BACKFILL_NONE,
        .best_fit = policy->backfill_policy == BACKFILL_BESTFIT,
        .reorders = scene->reorders,
        .run = s->run,
        .run_count = scene->running_count,
        .job = s->job,
        .job_count = scene->waiting_count,
        .target = target,
        .ghost = s->ghost,
        .ghost_count = shape_count,
        .next = s->options.limits || s->options.alone ? NULL : coming_forward,
        .self = s,
        .until = scene->now + HORIZON_DAYS * 24 * 3600 * US_PER_S,
    };
    return s->replaying ? replay_take (s->replay, scene, cluster, err) : 0;
}

bool simulation_go (struct simulation *s, uint64_t work)
{
    uint64_t enough = s->work + work, made = 0;

    while (s->phase != PHASE_DONE && s->work + made < enough) {
        if (s->phase == PHASE_KINDS) /* memory far apart: slower than its count */
            made += AT_ONCE * KIND_SLOW;
        if (s->phase == PHASE_DRAW)
            passes_step (s, enough - s->work - made, &made);
        else if (s->phase == PHASE_RUNS && runs_step (s))
            passes_begin (s);
        else if ((s->phase == PHASE_KINDS && kinds_step (s)) ||
                 (s->phase == PHASE_COLLECT && collect_step (s)))
            draw_begin (s);
    }
    return s->phase == PHASE_DONE;
}

int simulation_status (const struct simulation *s, struct err *err)
{
    if (s->err.code && err)
        *err = s->err;
    return s->err.code;
}

bool simulation_enough (const struct simulation *s)
{
    return s->phase == PHASE_DONE || s->drawn >= DRAWS_LEAST;
}

uint64_t simulation_work (const struct simulation *s)
{
    return s->work;
}

/* --- estimates ------------------------------------------------------------------------------ */

static int by_length (const void *a, const void *b)
{
    const duration_us *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* Between the order statistics on both sides. */
static duration_us quantile (const duration_us *sorted, uint32_t n, double q)
{
    double at = q * (n - 1);
    uint32_t i = (uint32_t)at;

    if (i + 1 >= n)
        return sorted[n - 1];
    return sorted[i] + (duration_us)((at - i) * (double)(sorted[i + 1] - sorted[i]));
}

static void summarise (const struct simulation *s, const duration_us *wait, struct estimate *out)
{
    duration_us sorted[DRAWS_MOST];
    uint32_t n = s->drawn;

    memset (out, 0, sizeof *out);
    if (n == 0)
        return;
    memcpy (sorted, wait, n * sizeof *sorted);
    qsort (sorted, n, sizeof *sorted, by_length);
    out->median = quantile (sorted, n, .5);
    out->low50 = quantile (sorted, n, .25);
    out->high50 = quantile (sorted, n, .75);
    out->low95 = quantile (sorted, n, .025);
    out->high95 = quantile (sorted, n, .975);
    out->draws = n;
    out->certain = sorted[n - 1] == 0; /* at once, whatever is drawn */
}

void simulation_estimate (const struct simulation *s, uint32_t place, struct estimate *out)
{
    summarise (s, s->wait + (s->target != UINT32_MAX ? 0 : (uint64_t)place * s->options.draws),
               out);
}

void simulation_shape (const struct simulation *s, uint32_t shape, struct estimate *out)
{
    simulation_estimate (s, s->scene->waiting_count + shape, out);
}
