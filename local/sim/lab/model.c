/* model: the Lublin-Feitelson model, and real logs made denser. Experiments and nui sim call it.
 * One seed gives one workload on every machine: each draw comes from the generator, in a fixed
 * order. */
#include "local/sim/lab/model.h"
#include "proto/base/mem.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct workload *model_workload (struct cred_names *names)
{
    struct workload *w = mem_zero (1, sizeof *w);
    w->arena = arena_create (0);
    w->names = names;
    return w;
}

static time_us us_of (double seconds)
{
    return (time_us)floor (seconds) * US_PER_S;
}

struct workload_job *model_job (struct workload *w, double submit_s, double run_s, double limit_s,
                                uint32_t procs, int user)
{
    if ((w->count & (w->count - 1)) == 0) { /* full at each power of two */
        w->job = mem_resize (w->job, (w->count ? 2 * w->count : 1) * sizeof w->job[0]);
    }
    struct workload_job *j = &w->job[w->count++];
    memset (j, 0, sizeof *j);
    j->number = w->count;
    w->read = w->count;
    j->submit = us_of (submit_s);
    j->run = us_of (run_s < 1 ? 1 : run_s);
    j->limit = us_of (limit_s < 1 ? 1 : limit_s);
    if (j->run > j->limit)
        j->run = j->limit;
    for (int k = 0; k < CRED_KINDS; k++)
        j->cred[k] = CRED_NONE;
    if (user >= 0) {
        char name[24];
        snprintf (name, sizeof name, "u%d", user + 1);
        j->cred[CRED_USER] = strtab_intern (w->names->tab[CRED_USER], name);
    }
    j->procs = j->req.tasks = procs;
    j->req.task.v[RES_PROCS] = 1;
    return j;
}

static int by_submit (const void *a, const void *b)
{
    const struct workload_job *x = a, *y = b;
    if (x->submit != y->submit)
        return x->submit < y->submit ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

/* Orders by submit time; numbers follow that order, ties as they were made. */
static void model_sort (struct workload *w)
{
    qsort (w->job, w->count, sizeof w->job[0], by_submit);
    for (uint64_t i = 0; i < w->count; i++)
        w->job[i].number = i + 1;
}

void model_scale (struct workload *w, double factor)
{
    assert (factor > 0);
    time_us first = w->count ? w->job[0].submit : 0;
    for (uint64_t i = 0; i < w->count; i++)
        w->job[i].submit = first + (time_us)((double)(w->job[i].submit - first) / factor);
}

double model_load (const struct workload *w, int64_t procs)
{
    double work = 0;
    for (uint64_t i = 0; i < w->count; i++)
        work += (double)w->job[i].run * w->job[i].procs;
    double span = w->count ? (double)(w->job[w->count - 1].submit - w->job[0].submit) : 0;
    return span > 0 ? work / (span * (double)procs) : 0;
}

struct workload *model_copy (const struct workload *from)
{
    struct workload *w = model_workload (from->names);
    w->job = mem_alloc ((from->count + 1) * sizeof w->job[0]);
    memcpy (w->job, from->job, from->count * sizeof w->job[0]);
    for (uint64_t i = 0; i < from->count; i++)
        w->job[i].name = NULL; /* in the other's arena */
    w->count = w->read = from->count;
    w->header_procs = from->header_procs;
    return w;
}

struct workload *model_exact (const struct workload *from)
{
    struct workload *w = model_copy (from);
    for (uint64_t i = 0; i < w->count; i++)
        w->job[i].limit = w->job[i].run > 0 ? w->job[i].run : 1;
    return w;
}

bool model_named (const char *text, uint64_t *jobs_out)
{
    static const char name[] = "model:lublin";
    *jobs_out = 0;
    if (strncmp (text, name, sizeof name - 1) != 0)
        return false;
    text += sizeof name - 1;
    return !*text ||
           (*text == ':' && uint_parse (text + 1, "jobs", 1, 1000000, jobs_out, NULL) == 0);
}

/* --- Lublin & Feitelson --------------------------------------------------------------------- */

enum { SLOTS = 48, SLOT_S = 1800, DAY_BEGINS = 11 }; /* half hours; the cycle begins at 5:30 */

static const double serial_share = .244, power_share = .576;
static const double size_low = .8, size_low_share = .86, size_middle_below = 2.5;
static const double run_shape[2] = {4.2, 312}, run_scale[2] = {.94, .03};
static const double run_p_slope = -.0054, run_p_base = .78;
static const double gap_shape = 10.2303 * 1.0225, gap_scale = .4871;
static const double day_shape = 8.1737, day_scale = 3.9631;
static const double run_log_max = 12, gap_log_max = 13;

static uint32_t size_draw (struct rng *rng, uint32_t procs)
{
    double high = log2 (procs), middle = high - size_middle_below;
    double kind = rng_unit (rng);
    if (kind <= serial_share || procs < 2)
        return 1;
    if (middle < size_low)
        middle = size_low;
    double exponent = rng_unit (rng) <= size_low_share ? rng_between (rng, size_low, middle)
                                                       : rng_between (rng, middle, high);
    if (kind <= serial_share + power_share)
        exponent = floor (exponent + .5);
    uint32_t size = (uint32_t)(pow (2, exponent) + .5);
    return size < 1 ? 1 : size > procs ? procs : size;
}

static double run_draw (struct rng *rng, uint32_t size)
{
    double p = run_p_slope * size + run_p_base, logarithm;
    do {
        int which = rng_unit (rng) <= p ? 0 : 1;
        logarithm = rng_gamma (rng, run_shape[which], run_scale[which]);
    } while (logarithm > run_log_max);
    return exp (logarithm);
}

/* Integral of the gamma density from 0 to x, by Simpson's rule: exact to six digits here. */
static double gamma_share (double x, double shape, double scale)
{
    enum { STEPS = 400 };
    double h = x / STEPS, sum = 0;
    for (int i = 0; i <= STEPS; i++) {
        double t = i * h;
        double f =
            t > 0 ? exp ((shape - 1) * log (t / scale) - t / scale - lgamma (shape)) / scale : 0;
        sum += f * (i == 0 || i == STEPS ? 1 : i % 2 ? 4 : 2);
    }
    return sum * h / 3;
}

struct arrivals {
    double weight[SLOTS]; /* of each half hour of the day, mean 1 */
    double stretch;       /* of all gaps: the load; the day keeps its length */
    double points;
    int slot;
    double slot_begin_s;
};

static void arrivals_begin (struct arrivals *a, double stretch)
{
    double sum = 0;
    memset (a, 0, sizeof *a);
    a->stretch = stretch;
    for (int i = DAY_BEGINS; i < SLOTS + DAY_BEGINS; i++) {
        double share =
            gamma_share (i + .5, day_shape, day_scale) - gamma_share (i - .5, day_shape, day_scale);
        a->weight[(i - 1) % SLOTS] = share;
        sum += share;
    }
    for (int i = 0; i < SLOTS; i++) {
        a->weight[i] *= SLOTS / sum;
        if (a->weight[i] < 1e-3) /* the dead of night: not endless */
            a->weight[i] = 1e-3;
    }
}

/* The drawn gap is in seconds of the mean hour; busy half hours pass more of it than quiet ones. */
static double arrival_next (struct arrivals *a, struct rng *rng)
{
    double gap;
    do
        gap = rng_gamma (rng, gap_shape, gap_scale);
    while (gap > gap_log_max);
    a->points += a->stretch * exp (gap) / SLOT_S;
    while (a->points > a->weight[a->slot]) {
        a->points -= a->weight[a->slot];
        a->slot = (a->slot + 1) % SLOTS;
        a->slot_begin_s += SLOT_S;
    }
    return a->slot_begin_s + SLOT_S * a->points / a->weight[a->slot];
}

static double limit_draw (struct rng *rng, double run_s)
{
    static const int minutes[] = {1,   5,   10,  15,  20,  30,  45,  60,   90,   120,
                                  180, 240, 360, 480, 600, 720, 900, 1080, 1440, 2160};
    enum { CUSTOMARY = sizeof minutes / sizeof minutes[0] };
    double most = ceil (exp (run_log_max) / 3600) * 3600;
    double guess = run_s / (1 - rng_unit (rng));
    if (rng_unit (rng) < .1)
        return ceil (run_s);
    for (int i = 0; i < CUSTOMARY; i++) {
        if (minutes[i] * 60. >= guess)
            return minutes[i] * 60.;
    }
    return most;
}

/* Zipf: the i-th user sends a share proportional to 1 / i. */
static int user_draw (struct rng *rng, uint32_t users)
{
    double sum = 0;
    for (uint32_t i = 1; i <= users; i++)
        sum += 1. / i;
    double at = rng_unit (rng) * sum;
    for (uint32_t i = 1; i < users; i++) {
        at -= 1. / i;
        if (at < 0)
            return (int)i - 1;
    }
    return (int)users - 1;
}

/* Sends all jobs anew, from the same draws. */
static void arrivals_give (struct workload *w, uint64_t seed, double stretch)
{
    struct arrivals arrivals;
    struct rng when;
    rng_seed (&when, seed, 1);
    arrivals_begin (&arrivals, stretch);
    for (uint64_t i = 0; i < w->count; i++)
        w->job[i].submit = us_of (arrival_next (&arrivals, &when));
}

struct workload *model_lublin (const struct lublin_options *o, struct cred_names *names)
{
    enum { TRIES = 12 };
    struct workload *w = model_workload (names);
    struct rng what, who;
    double stretch = 1;
    rng_seed (&what, o->seed, 2);
    rng_seed (&who, o->seed, 3);
    for (uint32_t i = 0; i < o->jobs; i++) {
        uint32_t size = size_draw (&what, o->procs);
        double run_s = floor (run_draw (&what, size)), limit_s;
        run_s = run_s < 1 ? 1 : run_s;
        limit_s = limit_draw (&who, run_s);
        model_job (w, 0, run_s, limit_s, size, o->users ? user_draw (&who, o->users) : -1);
    }
    /* Time is not simply scaled, for then a day would not be a day. */
    for (int i = 0; i < TRIES; i++) {
        arrivals_give (w, o->seed, stretch);
        double load = model_load (w, o->procs);
        if (load <= 0 || fabs (load / o->load - 1) < 1e-3)
            break;
        stretch *= load / o->load;
    }
    model_sort (w);
    w->header_procs = o->procs;
    return w;
}
