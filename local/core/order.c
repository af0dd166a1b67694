/* order: the queue by priority, then submission, then number */
#include "local/core/pass.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

bool policy_is_age (const struct policy *p)
{
    if (p->sub_weight[PRIO_QUEUETIME] <= 0 || p->component_weight[PRIO_SERV] <= 0)
        return false;
    for (uint32_t s = 0; s < PRIO_SUBS; s++) {
        if (s != PRIO_QUEUETIME && p->sub_weight[s] != 0 &&
            prio_sub_component ((enum prio_sub)s) != PRIO_USAGE &&
            p->component_weight[prio_sub_component ((enum prio_sub)s)] != 0)
            return false;
    }
    for (uint32_t i = 0; i < p->cred_count[CRED_QOS]; i++) {
        const struct policy_qos *qos = p->cred[CRED_QOS][i].qos;
        if (qos && (qos->qtweight != 0 || qos->xfweight != 0))
            return false;
    }
    return true;
}

/* Higher priorities have smaller keys: a job's own lies within +-PRIORITY_MAX, an absolute system priority
 * of 32 bits is added to PRIORITY_MAX. */
uint32_t priority_key (int64_t priority)
{
    return (uint32_t)(PRIORITY_MAX + INT32_MAX - priority);
}

static int64_t priority_of (uint32_t key)
{
    return (int64_t)PRIORITY_MAX + INT32_MAX - key;
}

enum { DIGIT = 11, DIGITS = 3, DIGIT_VALUES = 1 << DIGIT };
static_assert (DIGIT * DIGITS >= 32, "a key has 32 bits");

static uint32_t digit_of (uint32_t key, uint32_t digit)
{
    return key >> (digit * DIGIT) & (DIGIT_VALUES - 1);
}

/* How often each digit occurs -> where the first of them goes. */
static void places_of (uint32_t *histogram)
{
    uint32_t sum = 0;

    for (uint32_t d = 0; d < DIGIT_VALUES; d++) {
        uint32_t here = histogram[d];
        histogram[d] = sum;
        sum += here;
    }
}

/* Higher priority first; equal ones stay as they are (by submission and number). Digit by digit on
 * pairs of which the first key is at least `least`, and none more than `range` above it; the last digit puts
 * the slots into the order. */
static void sort_by_priority (struct pass *p, uint32_t least, uint32_t range)
{
    struct planner *pl = p->planner;
    uint32_t n = p->count, last = 0;
    struct ranked_slot *from = pl->pair, *to = pl->spare;
    uint32_t histogram[DIGITS][DIGIT_VALUES] = {0};

    while (last + 1 < DIGITS && range >> ((last + 1) * DIGIT))
        last++;
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t d = 0; d <= last; d++)
            histogram[d][digit_of (from[i].key - least, d)]++;
    }
    for (uint32_t d = 0; d < last; d++) {
        places_of (histogram[d]);
        for (uint32_t i = 0; i < n; i++)
            to[histogram[d][digit_of (from[i].key - least, d)]++] = from[i];
        struct ranked_slot *swap = from;
        from = to;
        to = swap;
    }
    places_of (histogram[last]);
    for (uint32_t i = 0; i < n; i++)
        p->order[histogram[last][digit_of (from[i].key - least, last)]++] = from[i].slot;
}

static void fairshare_factors_set (struct cluster *c)
{
    double *factor = NULL;
    uint32_t cap = 0;

    for (uint32_t kind = 0; kind < CRED_KINDS; kind++) {
        uint32_t count = fairshare_count (c->fairshare, (enum cred_kind)kind);
        factor = mem_grow (factor, &cap, count + 1, sizeof *factor);
        fairshare_factors (c->fairshare, (enum cred_kind)kind, factor, count);
        priority_fairshare_set (c->priority, (enum cred_kind)kind, factor, count,
                                fairshare_factor_other (c->fairshare, (enum cred_kind)kind));
    }
    free (factor);
}

static bool fairshare_weighs (const struct policy *p)
{
    return p->fs_policy != FS_NONE && p->component_weight[PRIO_FS] != 0 &&
           (p->sub_weight[PRIO_FSUSER] != 0 || p->sub_weight[PRIO_FSGROUP] != 0 ||
            p->sub_weight[PRIO_FSACCOUNT] != 0 || p->sub_weight[PRIO_FSCLASS] != 0 ||
            p->sub_weight[PRIO_FSQOS] != 0);
}

/* UPROC and UJOB: what each user runs now. True: for some user it is other than in the last pass. */
static bool use_set (struct pass *p)
{
    struct cluster *c = p->c;
    struct priority_use *use;
    uint32_t users = 0;

    for (uint32_t i = 0; i < c->run_count; i++) {
        uint32_t user = c->pj[c->run[i].slot].cred[CRED_USER];
        if (user != CRED_NONE && user >= users)
            users = user + 1;
    }
    use = arena_zalloc (p->scratch, (users + 1) * sizeof *use);
    for (uint32_t i = 0; i < c->run_count; i++) {
        uint32_t user = c->pj[c->run[i].slot].cred[CRED_USER];
        if (user == CRED_NONE)
            continue;
        use[user].procs += c->run[i].procs;
        use[user].jobs++;
    }
    return priority_use_set (c->priority, use, users);
}

static void use_refresh (struct cluster *c, uint32_t from, uint32_t to)
{
    for (uint32_t slot = from; slot < to; slot++) {
        const struct priority_job *pj = &c->pj[slot];
        if (priority_use_moved (c->priority, pj->cred[CRED_USER]) &&
            job_at (c, slot)->state == JOB_IDLE && !job_at (c, slot)->gone)
            c->prio_static[slot] = priority_static (c->priority, pj);
    }
}

/* Those that are not idle keep the priority that they started with. */
static uint32_t started_slot (const struct cluster *c, uint32_t i)
{
    return i < c->run_count ? c->run[i].slot : c->suspended[i - c->run_count];
}

/* Priorities of all slots in the order of memory, so many at a time that what one step has read is still at
 * hand in the next. */
static void priorities_fresh (struct pass *p, bool use_moved)
{
    enum { BLOCK = 1024 };
    struct cluster *c = p->c;
    uint32_t started = c->run_count + c->suspended_count;
    uint32_t *kept = arena_array (p->scratch, started + 1, sizeof *kept);
    int64_t priority[BLOCK];

    for (uint32_t i = 0; i < started; i++)
        kept[i] = c->prio_key[started_slot (c, i)];
    for (uint32_t from = 0; from < c->slot_count; from += BLOCK) {
        uint32_t n = c->slot_count - from < BLOCK ? c->slot_count - from : BLOCK;
        if (use_moved)
            use_refresh (c, from, from + n);
        priority_start_many (c->priority, &c->pj[from], &c->prio_static[from], n, p->now, priority);
        for (uint32_t i = 0; i < n; i++)
            c->prio_key[from + i] = priority_key (priority[i]);
    }
    for (uint32_t i = 0; i < started; i++)
        c->prio_key[started_slot (c, i)] = kept[i];
}

/* The same of the idle ones alone: quicker where most slots are not idle. */
static void priorities_idle (struct pass *p, bool use_moved)
{
    struct cluster *c = p->c;

    if (use_moved)
        use_refresh (c, 0, c->slot_count);
    for (uint32_t i = 0; i < p->count; i++) {
        uint32_t slot = p->order[i];
        uint32_t ahead = p->order[i + AHEAD < p->count ? i + AHEAD : i];
        __builtin_prefetch (&c->pj[ahead]);
        __builtin_prefetch ((const char *)&c->pj[ahead] + 64);
        __builtin_prefetch (&c->prio_static[ahead]);
        c->prio_key[slot] =
            priority_key (priority_start (c->priority, &c->pj[slot], c->prio_static[slot], p->now));
    }
}

void order_make (struct pass *p)
{
    struct cluster *c = p->c;
    struct planner *pl = p->planner;
    uint32_t cap = pl->order_cap;
    uint32_t least = UINT32_MAX, most = 0;
    bool use_moved;

    p->count = c->idle_count;
    if (p->count > cap) {
        uint32_t mark_cap = cap, row_cap = cap;
        pl->order = mem_grow (pl->order, &cap, p->count, sizeof *pl->order);
        pl->mark = mem_grow (pl->mark, &mark_cap, p->count, sizeof *pl->mark);
        pl->row = grow_lines (pl->row, &row_cap, p->count, sizeof *pl->row);
        pl->order_cap = cap;
    }
    p->order = pl->order;
    p->mark = pl->mark;
    p->row = p->plain ? NULL : pl->row;
    pl->order_count = p->count;
    if (p->count)
        memcpy (p->order, c->idle, p->count * sizeof *p->order);
    c->by_age = c->age_policy && c->aged_apart == 0 && c->system_prioritised == 0;
    if (c->policy->fs_policy != FS_NONE)
        fairshare_advance (c->fairshare, p->now);
    if (c->by_age)
        return;
    if (fairshare_weighs (c->policy))
        fairshare_factors_set (c);
    use_moved = priority_use_weighs (c->policy) && use_set (p);
    if (pl->pair_cap < p->count) {
        uint32_t spare_cap = pl->pair_cap;
        pl->spare = mem_grow (pl->spare, &spare_cap, p->count, sizeof *pl->spare);
        pl->pair = mem_grow (pl->pair, &pl->pair_cap, p->count, sizeof *pl->pair);
    }
    if (c->slot_count / 2 > c->idle_count)
        priorities_idle (p, use_moved);
    else
        priorities_fresh (p, use_moved);
    for (uint32_t i = 0; i < p->count; i++) {
        uint32_t slot = p->order[i], key = c->prio_key[slot];
        least = key < least ? key : least;
        most = key > most ? key : most;
        pl->pair[i] = (struct ranked_slot){key, slot};
    }
    sort_by_priority (p, least, most - least);
}

int64_t job_priority (const struct cluster *c, uint32_t slot)
{
    if (!c->by_age)
        return priority_of (c->prio_key[slot]);
    return priority_start (c->priority, &c->pj[slot], c->prio_static[slot], c->now);
}
