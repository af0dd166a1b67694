/* mix: draws jobs from the model and keeps those whose class has room, and three bounds of how
 * long they take. exp_mix.c calls it. The classes are the paper's: what is not printed there is
 * said in the header, and nothing was fitted to the outcome but that. */
#include "local/sim/lab/mix.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "local/sim/lab/model.h"
#include "proto/base/mem.h"

static const uint32_t mix_class_jobs[MIX_CLASSES] = {22, 31, 15, 4, 4};

enum mix_class mix_classify (uint32_t procs, double work_s, double limit_s)
{
    double size = (double)procs / MIX_PROCS, used = work_s / limit_s;
    if (used > 1)
        return MIX_CLASSES;
    if (used >= .7 && size >= .03)
        return size > .5 ? MIX_LARGE : size > .15 ? MIX_MEDIUM : MIX_SMALL;
    if (used > .4 && size < .1)
        return MIX_DEBUG;
    return used < .2 ? MIX_FAILED : MIX_CLASSES;
}

struct drawn {
    double delay_s;
    uint32_t procs;
    double work_s, limit_s;
    enum mix_class class;
    uint32_t place;
};

static int by_delay (const void *a, const void *b)
{
    const struct drawn *x = a, *y = b;
    if (x->delay_s != y->delay_s)
        return x->delay_s < y->delay_s ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

struct workload *mix_generate (uint64_t seed, struct cred_names *names, enum mix_class *class_out,
                               uint64_t *drawn_out)
{
    struct drawn kept[MIX_JOBS];
    uint32_t have[MIX_CLASSES] = {0}, count = 0;
    uint64_t drawn = 0;
    struct rng rng;
    rng_seed (&rng, seed, 76);
    while (count < MIX_JOBS) {
        struct drawn d = {.procs = 1 + rng_below (&rng, MIX_PROCS), .place = count};
        d.work_s = (double)rng_below (&rng, MIX_LIMIT_MAX_S) + 1;
        d.limit_s = rng_between (&rng, MIX_LIMIT_MIN_S, MIX_LIMIT_MAX_S);
        d.limit_s = (double)(int64_t)d.limit_s;
        d.delay_s = rng_below (&rng, MIX_SUBMIT_S + 1);
        d.class = mix_classify (d.procs, d.work_s, d.limit_s);
        drawn++;
        if (d.class != MIX_CLASSES && have[d.class] < mix_class_jobs[d.class]) {
            have[d.class]++;
            kept[count++] = d;
        }
    }
    qsort (kept, count, sizeof kept[0], by_delay);
    struct workload *w = model_workload (names);
    for (uint32_t i = 0; i < count; i++) {
        model_job (w, kept[i].delay_s, kept[i].work_s, kept[i].limit_s, kept[i].procs, -1);
        if (class_out)
            class_out[i] = kept[i].class;
    }
    w->header_procs = MIX_PROCS;
    if (drawn_out)
        *drawn_out = drawn;
    return w;
}

/* Running jobs as (end, processors); so few that a scan is best. */
double mix_in_order_h (const struct workload *mix, const uint32_t *order)
{
    time_us *end = mem_zero (mix->count + 1, sizeof end[0]);
    bool *ended = mem_zero (mix->count + 1, sizeof ended[0]);
    time_us now = 0, last = 0;
    int64_t free_procs = MIX_PROCS;
    for (uint64_t i = 0; i < mix->count; i++) {
        const struct workload_job *j = &mix->job[order[i]];
        while (free_procs < j->procs) {
            uint64_t next = mix->count;
            for (uint64_t k = 0; k < i; k++) {
                if (!ended[k] && (next == mix->count || end[k] < end[next]))
                    next = k;
            }
            assert (next < mix->count);
            ended[next] = true;
            free_procs += mix->job[order[next]].procs;
            now = end[next] > now ? end[next] : now;
        }
        free_procs -= j->procs;
        end[i] = now + j->run;
        last = end[i] > last ? end[i] : last;
    }
    free (end);
    free (ended);
    return (double)last / US_PER_S / 3600;
}

double mix_minimum_h (const struct workload *mix)
{
    double work = 0;
    for (uint64_t i = 0; i < mix->count; i++)
        work += (double)mix->job[i].run / US_PER_S * mix->job[i].procs;
    return work / MIX_PROCS / 3600;
}

double mix_sequential_h (const struct workload *mix)
{
    double work = 0;
    for (uint64_t i = 0; i < mix->count; i++)
        work += (double)mix->job[i].run / US_PER_S;
    return work / 3600;
}
