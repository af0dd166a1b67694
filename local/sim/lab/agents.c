/* agents: three kinds of users, each with a clock of its own for when to send the next job.
 * labrun.c gives them to the engine as its source of jobs. They see what a user could see
 * (showbf, ends of their own jobs) and nothing else. */
#include "local/sim/lab/agents.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "local/core/query.h"
#include "proto/base/mem.h"
#include "proto/base/rng.h"

const char *const agent_kind_name[AGENT_KINDS] = {"developer", "heavy user", "gap filler"};

enum {
    HEAVY_JOBS = 2,
    LOOK_S = 600,
    DAY_S = 86400,
    WORK_BEGIN_S = 9 * 3600,
    WORK_END_S = 18 * 3600,
    DEBUG_LIMIT_S = 1800,
    HEAVY_LIMIT_MIN_S = 2 * 3600,
    HEAVY_LIMIT_MAX_S = 12 * 3600,
    GAP_LIMIT_MAX_S = 4 * 3600,
    GAP_LIMIT_MIN_S = 300,
};

struct agent {
    enum agent_kind kind;
    struct rng rng;
    uint32_t user;
    time_us next;  /* TIME_US_MAX: waits for a job of its own */
    uint32_t jobs; /* in the system */
};

struct agents {
    struct agents_options options;
    int64_t procs;
    uint32_t count;
    struct agent agent[AGENTS_MAX];
    struct engine_job *job;
    uint32_t *owner; /* of job i */
    time_us *begun;
    uint64_t made;
    double done_proc_s;
    struct arena *arena;
};

static time_us us_of (double seconds)
{
    return (time_us)floor (seconds) * US_PER_S;
}

/* The next moment of working time, t itself if it is one. Day 0 is a Monday. */
static time_us working (time_us t)
{
    int64_t s = t / US_PER_S, day = s / DAY_S, of_day = s % DAY_S;
    if (of_day >= WORK_END_S) {
        day++;
        of_day = 0;
    }
    if (day % 7 >= 5) {
        day += 7 - day % 7;
        of_day = 0;
    }
    if (of_day < WORK_BEGIN_S)
        of_day = WORK_BEGIN_S;
    return (day * DAY_S + of_day) * US_PER_S;
}

struct agents *agents_create (const struct agents_options *o, struct cred_names *names,
                              int64_t procs)
{
    struct agents *a = calloc (1, sizeof *a);
    assert (a && o->count[0] + o->count[1] + o->count[2] <= AGENTS_MAX);
    a->options = *o;
    a->procs = procs;
    a->arena = arena_create (0);
    a->job = mem_zero (AGENTS_JOBS_MAX, sizeof a->job[0]);
    a->owner = mem_zero (AGENTS_JOBS_MAX, sizeof a->owner[0]);
    a->begun = mem_zero (AGENTS_JOBS_MAX, sizeof a->begun[0]);
    for (uint64_t i = 0; i < AGENTS_JOBS_MAX; i++)
        a->job[i].number = i + 1;
    for (int k = 0; k < AGENT_KINDS; k++) {
        for (uint32_t i = 0; i < o->count[k]; i++) {
            struct agent *one = &a->agent[a->count];
            char name[32];
            snprintf (name, sizeof name, "%s%u",
                      k == AGENT_DEVELOPER ? "dev"
                      : k == AGENT_HEAVY   ? "heavy"
                                           : "gap",
                      i + 1);
            one->kind = (enum agent_kind)k;
            one->user = strtab_intern (names->tab[CRED_USER], name);
            rng_seed (&one->rng, o->seed, 1000 + a->count);
            one->next = us_of (rng_between (&one->rng, 0, 1800));
            if (k == AGENT_DEVELOPER)
                one->next = working (one->next) + us_of (rng_between (&one->rng, 0, 3600));
            a->count++;
        }
    }
    return a;
}

void agents_destroy (struct agents *a)
{
    if (!a)
        return;
    arena_destroy (a->arena);
    free (a->job);
    free (a->owner);
    free (a->begun);
    free (a);
}

struct engine_job *agents_jobs (struct agents *a, uint64_t *cap_out)
{
    *cap_out = AGENTS_JOBS_MAX;
    return a->job;
}

uint64_t agents_count (const struct agents *a)
{
    return a->made;
}

enum agent_kind agents_of (const struct agents *a, uint64_t index)
{
    return a->agent[a->owner[index]].kind;
}

/* --- what they send ------------------------------------------------------------------------- */

struct wish {
    double limit_s, used; /* used: share of the limit that it runs */
    uint32_t procs;
};

static struct wish debug_job (struct agent *one, int64_t procs)
{
    uint32_t most = (uint32_t)(procs / 10 > 1 ? procs / 10 : 1);
    double limit = ceil (rng_between (&one->rng, 300, DEBUG_LIMIT_S) / 300) * 300;
    return (struct wish){limit, rng_between (&one->rng, .4, 1), 1 + rng_below (&one->rng, most)};
}

static struct wish heavy_job (struct agent *one, int64_t procs)
{
    uint32_t least = (uint32_t)(procs * 15 / 100 + 1);
    uint32_t most = (uint32_t)(procs * 3 / 4 > least ? procs * 3 / 4 : least);
    double limit =
        ceil (rng_between (&one->rng, HEAVY_LIMIT_MIN_S, HEAVY_LIMIT_MAX_S) / 1800) * 1800;
    return (struct wish){limit, rng_between (&one->rng, .7, 1),
                         least + rng_below (&one->rng, most - least + 1)};
}

/* The window with most processor-seconds, no longer than the filler ever asks. */
static int gap_job (struct agents *a, struct agent *one, struct cluster *cluster, time_us now,
                    struct wish *out, bool *found_out, struct err *err)
{
    struct window *window;
    uint32_t count;
    double best = 0;
    int rc = query_windows (cluster, NULL, true, now, a->arena, &window, &count, err);
    *found_out = false;
    for (uint32_t i = 0; !rc && i < count; i++) {
        double length = window[i].length == TIME_US_MAX ? GAP_LIMIT_MAX_S
                                                        : (double)(window[i].length / US_PER_S);
        length = length > GAP_LIMIT_MAX_S ? GAP_LIMIT_MAX_S : length;
        if (length < GAP_LIMIT_MIN_S || window[i].procs == 0 ||
            length * (double)window[i].procs <= best)
            continue;
        best = length * (double)window[i].procs;
        *out = (struct wish){length, rng_between (&one->rng, .8, 1), (uint32_t)window[i].procs};
        *found_out = true;
    }
    arena_reset (a->arena);
    return rc;
}

static bool enough (const struct agents *a, time_us now)
{
    return a->made == AGENTS_JOBS_MAX || a->done_proc_s >= a->options.work_proc_h * 3600 ||
           now >= us_of (a->options.until_s);
}

static struct agent *first (struct agents *a)
{
    struct agent *one = NULL;
    for (uint32_t i = 0; i < a->count; i++) {
        if (!one || a->agent[i].next < one->next)
            one = &a->agent[i];
    }
    return one;
}

static time_us agents_next (void *self)
{
    struct agents *a = self;
    struct agent *one = first (a);
    return one ? one->next : TIME_US_MAX;
}

static int agents_take (void *self, struct cluster *cluster, time_us now, uint64_t index,
                        bool *taken_out, struct err *err)
{
    struct agents *a = self;
    struct agent *one = first (a);
    struct wish wish = {0};
    bool wants = !enough (a, now);
    int rc = 0;
    *taken_out = false;
    if (!wants) {
        one->next = TIME_US_MAX;
        return 0;
    }
    if (one->kind == AGENT_FILLER)
        rc = gap_job (a, one, cluster, now, &wish, &wants, err);
    else
        wish = one->kind == AGENT_HEAVY ? heavy_job (one, a->procs) : debug_job (one, a->procs);
    one->next = TIME_US_MAX;
    if (one->kind == AGENT_FILLER && !wants)
        one->next = now + us_of (LOOK_S);
    else if (one->kind == AGENT_HEAVY && one->jobs + 1 < HEAVY_JOBS)
        one->next = now + us_of (60);
    if (rc || !wants)
        return rc;
    struct engine_job *j = &a->job[index];
    double run = floor (wish.limit_s * wish.used);
    *j = (struct engine_job){.number = index + 1,
                             .submit = now,
                             .limit = us_of (wish.limit_s),
                             .run = us_of (run < 1 ? 1 : run),
                             .procs = wish.procs};
    for (int k = 0; k < CRED_KINDS; k++)
        j->cred[k] = CRED_NONE;
    j->cred[CRED_USER] = one->user;
    j->cred[CRED_QOS] = CRED_DEFAULT;
    a->owner[index] = (uint32_t)(one - a->agent);
    a->made = index + 1;
    one->jobs++;
    *taken_out = true;
    return 0;
}

static void agents_started (void *self, uint64_t index, time_us now)
{
    struct agents *a = self;
    a->begun[index] = now;
}

static void agents_ended (void *self, uint64_t index, time_us now)
{
    struct agents *a = self;
    struct agent *one = &a->agent[a->owner[index]];
    a->done_proc_s += (double)(now - a->begun[index]) / US_PER_S * a->job[index].procs;
    one->jobs--;
    time_us at;
    if (one->kind == AGENT_DEVELOPER) /* reads what came out, changes a line */
        at = working (now + us_of (60 + rng_exponential (&one->rng, 600)));
    else if (one->kind == AGENT_HEAVY)
        at = now + us_of (60 + rng_exponential (&one->rng, 900));
    else
        at = now + us_of (60);
    if (at < one->next)
        one->next = at;
}

struct engine_source agents_source (struct agents *a)
{
    return (struct engine_source){a, agents_next, agents_take, agents_started, agents_ended};
}

uint64_t agents_key (const struct agents_options *o)
{
    uint64_t hash = o->seed, work, until;
    memcpy (&work, &o->work_proc_h, sizeof work);
    memcpy (&until, &o->until_s, sizeof until);
    for (int k = 0; k < AGENT_KINDS; k++)
        hash = (hash ^ o->count[k]) * UINT64_C (0x9E3779B97F4A7C15);
    return ((hash ^ work) * UINT64_C (0x9E3779B97F4A7C15)) ^ until;
}
