/* history: rings of ended jobs and of arrivals, chained by what they have in common. estimator.c
 * feeds it; draws take run times and arrivals from it. Its memory is bounded: the oldest job
 * leaves as a new one comes. Nothing random happens here but by the generator that is given. */
#include "local/estimate/history.h"
#include "proto/base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Closest first. */
enum level {
    LEVEL_SAME,       /* user, processors, limit */
    LEVEL_USER_LIMIT, /* user, limit */
    LEVEL_USER,       /* user */
    LEVEL_ACCOUNT,    /* account, limit about so */
    LEVEL_GROUP,      /* group, limit about so */
    LEVEL_CLASS,      /* class, limit and processors about so */
    LEVEL_SITE,       /* limit about so */
    LEVELS
};

/* How many of its newest jobs a level looks at, how fast they fade, and how many it takes before
 * the level is believed half. Found on the logs of doc/estimates.md. */
static const struct {
    uint32_t most;
    double fade;
    double half;
} level_of[LEVELS] = {
    [LEVEL_SAME] = {15, .95, 1.8}, [LEVEL_USER_LIMIT] = {15, .9, 6}, [LEVEL_USER] = {4, .75, 1.5},
    [LEVEL_ACCOUNT] = {6, .95, 6}, [LEVEL_GROUP] = {6, .95, 2.4},    [LEVEL_CLASS] = {10, .97, 4},
    [LEVEL_SITE] = {10, 1, .01},
};

/* At least so likely it is that a job needs all of its limit. */
static const double LIMIT_LEAST = .02;

struct ended {
    struct job_known job;
    duration_us run;
    uint64_t before[LEVELS]; /* serial + 1 of the next older one alike; 0: none */
};

struct arrived {
    struct job_known job;
    time_us submit;
};

struct table { /* key -> serial + 1 of the newest; open addressing */
    uint64_t *key;
    uint64_t *newest;
    uint64_t mask;
    uint64_t used;
};

struct history {
    uint64_t capacity; /* a power of two */
    struct ended *ended;
    uint64_t ended_count;
    struct arrived *arrived;
    uint64_t arrived_count;
    struct table table;
};

/* --- what jobs have in common ------------------------------------------------------------- */

static uint64_t mix (uint64_t h, uint64_t v)
{
    h = (h ^ v) * UINT64_C (0x9E3779B97F4A7C15);
    return h ^ h >> 29;
}

/* Limits that differ by less than a fifth or so are much the same. */
static uint64_t about (double value)
{
    return (uint64_t)(log2 (value + 1) * 2);
}

/* 0: the level says nothing about the job. */
static uint64_t key_of (enum level level, const struct job_known *job)
{
    uint64_t h = mix ((uint64_t)level + 1, 0);
    uint64_t limit = about ((double)job->limit / US_PER_S);

    switch (level) {
    case LEVEL_SAME:
        h = mix (mix (mix (h, job->cred[CRED_USER]), job->procs), (uint64_t)job->limit);
        return job->cred[CRED_USER] == CRED_NONE ? 0 : h | 1;
    case LEVEL_USER_LIMIT:
        h = mix (mix (h, job->cred[CRED_USER]), (uint64_t)job->limit);
        return job->cred[CRED_USER] == CRED_NONE ? 0 : h | 1;
    case LEVEL_USER:
        return job->cred[CRED_USER] == CRED_NONE ? 0 : mix (h, job->cred[CRED_USER]) | 1;
    case LEVEL_ACCOUNT:
        h = mix (mix (h, job->cred[CRED_ACCOUNT]), limit);
        return job->cred[CRED_ACCOUNT] == CRED_NONE ? 0 : h | 1;
    case LEVEL_GROUP:
        h = mix (mix (h, job->cred[CRED_GROUP]), limit);
        return job->cred[CRED_GROUP] == CRED_NONE ? 0 : h | 1;
    case LEVEL_CLASS:
        return mix (mix (mix (h, job->cred[CRED_CLASS]), limit), about (job->procs) / 2) | 1;
    case LEVEL_SITE:
    case LEVELS:
        break;
    }
    return mix (h, limit) | 1;
}

static uint64_t place (const struct table *t, uint64_t key)
{
    uint64_t at = key * UINT64_C (0xBF58476D1CE4E5B9) >> 20 & t->mask;

    while (t->key[at] && t->key[at] != key)
        at = (at + 1) & t->mask;
    return at;
}

/* serial: of a job that is still kept. */
static bool is_kept (const struct history *h, uint64_t serial)
{
    return serial + h->capacity >= h->ended_count;
}

/* A table of another size without what nobody can reach any more. */
static void table_renew (struct history *h)
{
    struct table old = h->table, *t = &h->table;
    uint64_t live = 0, size = 64;

    for (uint64_t i = 0; old.key && i <= old.mask; i++)
        live += old.key[i] && is_kept (h, old.newest[i] - 1);
    while (size < live * 4 + 64)
        size *= 2;
    t->key = mem_zero (size, sizeof *t->key);
    t->newest = mem_zero (size, sizeof *t->newest);
    t->mask = size - 1;
    t->used = live;
    for (uint64_t i = 0; old.key && i <= old.mask; i++) {
        if (old.key[i] && is_kept (h, old.newest[i] - 1)) {
            uint64_t at = place (t, old.key[i]);
            t->key[at] = old.key[i];
            t->newest[at] = old.newest[i];
        }
    }
    free (old.key);
    free (old.newest);
}

/* --- what is kept ------------------------------------------------------------------------- */

struct history *history_create (uint32_t capacity)
{
    struct history *h = mem_zero (1, sizeof *h);

    for (h->capacity = 16; h->capacity < capacity; h->capacity *= 2)
        ;
    h->ended = mem_alloc (h->capacity * sizeof *h->ended);
    h->arrived = mem_alloc (h->capacity * sizeof *h->arrived);
    table_renew (h);
    return h;
}

void history_destroy (struct history *h)
{
    if (h == NULL)
        return;
    free (h->ended);
    free (h->arrived);
    free (h->table.key);
    free (h->table.newest);
    free (h);
}

void history_arrived (struct history *h, const struct job_known *job, time_us submit)
{
    const struct arrived *last = &h->arrived[(h->arrived_count - 1) & (h->capacity - 1)];

    if (h->arrived_count && submit < last->submit) /* a log's order is the clock's */
        submit = last->submit;
    h->arrived[h->arrived_count++ & (h->capacity - 1)] = (struct arrived){*job, submit};
}

void history_ended (struct history *h, const struct job_known *job, duration_us run)
{
    struct ended *e = &h->ended[h->ended_count & (h->capacity - 1)];

    e->job = *job;
    e->run = run < 0 ? 0 : run > job->limit ? job->limit : run;
    h->ended_count++;
    for (int l = 0; l < LEVELS; l++) {
        uint64_t key = key_of ((enum level)l, job), at;
        e->before[l] = 0;
        if (key == 0)
            continue;
        if (h->table.used * 2 > h->table.mask)
            table_renew (h);
        at = place (&h->table, key);
        h->table.used += h->table.key[at] == 0;
        h->table.key[at] = key;
        e->before[l] = h->table.newest[at];
        h->table.newest[at] = h->ended_count;
    }
}

uint64_t history_ended_count (const struct history *h)
{
    return h->ended_count;
}

/* --- run times ---------------------------------------------------------------------------- */

/* What a run of the past says about this job: the same time under the same limit, else the same
 * share of the limit. One that was ended by its limit says the limit. */
static duration_us as_of (const struct ended *e, const struct job_known *job)
{
    if (e->job.limit == job->limit)
        return e->run;
    if (e->run == e->job.limit)
        return job->limit;
    return (duration_us)((double)e->run / (double)e->job.limit * (double)job->limit);
}

/* Adds what a level knows; returns the weight left for those that follow. */
static double level_add (const struct history *h, enum level level, const struct job_known *job,
                         duration_us elapsed, double left, struct runs *out)
{
    uint64_t key = key_of (level, job);
    uint64_t at = key ? h->table.newest[place (&h->table, key)] : 0;
    double weight[16], sum = 0, w = 1, share;
    duration_us run[16];
    uint32_t n = 0, most = level_of[level].most;

    for (; at && is_kept (h, at - 1) && n < most; n++, w *= level_of[level].fade) {
        const struct ended *e = &h->ended[(at - 1) & (h->capacity - 1)];
        run[n] = as_of (e, job);
        weight[n] = w;
        sum += w;
        at = e->before[level];
    }
    if (n == 0)
        return left;
    share = left * sum / (sum + level_of[level].half);
    for (uint32_t i = 0; i < n && out->count < RUNS_MAX - 1; i++) {
        if (run[i] <= elapsed && elapsed > 0)
            continue;
        out->run[out->count] = run[i];
        out->upto[out->count++] = (float)(share * weight[i] / sum);
    }
    return left - share;
}

void history_runs (const struct history *h, const struct job_known *job, duration_us elapsed,
                   struct runs *out)
{
    double left = 1, sum = 0;

    out->count = 0;
    if (elapsed >= job->limit) { /* it should have ended: any moment now */
        out->count = 1;
        out->run[0] = elapsed + US_PER_S;
        out->upto[0] = 1;
        return;
    }
    for (int l = 0; l < LEVELS && left > .01; l++)
        left = level_add (h, (enum level)l, job, elapsed, left, out);
    out->run[out->count] = job->limit; /* nobody knows: users do need their limits sometimes */
    out->upto[out->count++] = (float)(left > LIMIT_LEAST ? left : LIMIT_LEAST);
    for (uint32_t i = 0; i < out->count; i++)
        sum += out->upto[i];
    for (uint32_t i = 0; i < out->count; i++)
        out->upto[i] = (float)(out->upto[i] / sum) + (i ? out->upto[i - 1] : 0);
    out->upto[out->count - 1] = 1;
}

duration_us runs_draw (const struct runs *runs, const struct job_known *job, duration_us elapsed,
                       struct rng *rng)
{
    float u = (float)rng_unit (rng);
    uint32_t low = 0, high = runs->count - 1;
    duration_us run;

    while (low < high) {
        uint32_t mid = (low + high) / 2;
        if (runs->upto[mid] > u)
            high = mid;
        else
            low = mid + 1;
    }
    run = runs->run[low];
    if (run < job->limit && run > elapsed) {
        double blur = 1 + .1 * (rng_unit (rng) - .5);
        run = elapsed + (duration_us)((double)(run - elapsed) * blur);
        run = run > job->limit ? job->limit : run;
    }
    return run > elapsed || elapsed == 0 ? run : elapsed + 1;
}

double runs_mean (const struct runs *runs)
{
    double sum = 0;

    for (uint32_t i = 0; i < runs->count; i++)
        sum += (double)runs->run[i] * (runs->upto[i] - (i ? runs->upto[i - 1] : 0));
    return sum;
}

duration_us runs_quantile (const struct runs *runs, double q)
{
    duration_us sorted[RUNS_MAX];
    double weight[RUNS_MAX], sum = 0;

    for (uint32_t i = 0; i < runs->count; i++) {
        uint32_t at = i;
        double w = runs->upto[i] - (i ? runs->upto[i - 1] : 0);
        for (; at > 0 && sorted[at - 1] > runs->run[i]; at--) {
            sorted[at] = sorted[at - 1];
            weight[at] = weight[at - 1];
        }
        sorted[at] = runs->run[i];
        weight[at] = w;
    }
    for (uint32_t i = 0; i < runs->count; i++) {
        sum += weight[i];
        if (sum >= q)
            return sorted[i];
    }
    return sorted[runs->count - 1];
}

/* --- arrivals ----------------------------------------------------------------------------- */

enum {
    DAYS_BACK = 14,
    SPAN_LEAST_S =
        3600 /* what came in a shorter past is taken for an hour's: a rate of seconds, as a
                           young site has, must not be carried on for days */
};

static const struct arrived *arrived_at (const struct history *h, uint64_t serial)
{
    return &h->arrived[serial & (h->capacity - 1)];
}

static void stretch_choose (struct arrivals *a, time_us from, struct rng *rng)
{
    const struct history *h = a->history;
    uint64_t first = h->arrived_count > h->capacity ? h->arrived_count - h->capacity : 0;
    duration_us day = 24 * 3600 * US_PER_S;
    duration_us known = a->now - arrived_at (h, first)->submit;
    uint32_t days = known / day > DAYS_BACK ? DAYS_BACK : (uint32_t)(known / day);
    uint64_t low = first, high = h->arrived_count;

    /* recent days more often: the earlier of two draws */
    duration_us back = day;
    if (days > 1) {
        uint32_t x = rng_below (rng, days), y = rng_below (rng, days);
        back = day * (1 + (x < y ? x : y));
    } else if (days == 0) {
        back = known > SPAN_LEAST_S * US_PER_S ? known : SPAN_LEAST_S * US_PER_S;
    }
    a->shift = back;
    while (from - a->shift >= a->now) /* further on than the past reaches: again from there */
        a->shift += back;
    a->until = a->now;
    while (low < high) {
        uint64_t mid = (low + high) / 2;
        if (arrived_at (h, mid)->submit > from - a->shift)
            high = mid;
        else
            low = mid + 1;
    }
    a->at = low;
}

void arrivals_begin (struct arrivals *a, const struct history *h, time_us now, struct rng *rng)
{
    *a = (struct arrivals){.history = h, .now = now, .none = h->arrived_count < 2};
    if (!a->none)
        a->none =
            arrived_at (h, h->arrived_count > h->capacity ? h->arrived_count - h->capacity : 0)
                ->submit >= now;
    if (!a->none)
        stretch_choose (a, now, rng);
}

bool arrivals_next (struct arrivals *a, struct rng *rng, time_us *at_out, struct job_known *job)
{
    const struct history *h = a->history;

    for (int tries = 0; !a->none && tries < 64; tries++) {
        if (a->at < h->arrived_count && arrived_at (h, a->at)->submit < a->until) {
            const struct arrived *one = arrived_at (h, a->at++);
            *at_out = one->submit + a->shift;
            *job = one->job;
            return true;
        }
        stretch_choose (a, a->until + a->shift, rng);
    }
    return false;
}
