#include "meta/core/choose.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* One bound of a shifted interval. At one moment begins come before ends (ends are inclusive). */
struct edge {
    time_us at;
    uint32_t offer;
    bool begin;
};

struct sweep {
    const struct choose_problem *problem;
    struct edge *edge;
    uint32_t edge_count;
    uint32_t *open;              /* per offer: intervals of it that cover the present moment */
    uint32_t part_open[CHOOSE_PARTS_MAX];
    uint32_t parts_covered;
};

static int edge_compare (const void *pa, const void *pb)
{
    const struct edge *a = pa;
    const struct edge *b = pb;
    if (a->at != b->at)
        return a->at < b->at ? -1 : 1;
    if (a->begin != b->begin)
        return a->begin ? -1 : 1;
    return a->offer < b->offer ? -1 : a->offer > b->offer;
}

static time_us later (time_us a, time_us b)
{
    return a > b ? a : b;
}

static time_us sub_sat (time_us t, duration_us d)
{
    time_us out;
    if (__builtin_sub_overflow (t, d, &out))
        return d < 0 ? INT64_MAX : INT64_MIN;
    return out;
}

/* Bounds of the common moment that one offer allows, apart from its intervals. */
static void offer_window (const struct choose_problem *problem, const struct choose_offer *offer,
                          time_us *lo, time_us *hi)
{
    const struct choose_part *part = &problem->part[offer->part];
    *lo = later (problem->not_before, sub_sat (problem->now, part->offset));
    if (offer->not_before != TIME_US_NONE)
        *lo = later (*lo, sub_sat (offer->not_before, part->offset));
    *hi = INT64_MAX;
    if (problem->deadline)
        *hi = sub_sat (sub_sat (problem->deadline, part->walltime), part->offset);
}

static void sweep_fill (struct sweep *sweep, bool part_possible[CHOOSE_PARTS_MAX])
{
    const struct choose_problem *problem = sweep->problem;
    uint32_t n = 0;
    for (uint32_t o = 0; o < problem->offer_count; o++) {
        const struct choose_offer *offer = &problem->offer[o];
        duration_us offset = problem->part[offer->part].offset;
        time_us lo, hi;
        offer_window (problem, offer, &lo, &hi);
        for (uint32_t i = 0; i < offer->start_count; i++) {
            time_us begin = later (sub_sat (offer->starts[i].begin, offset), lo);
            time_us end = offer->starts[i].end == INT64_MAX
                              ? INT64_MAX
                              : sub_sat (offer->starts[i].end, offset);
            if (end > hi)
                end = hi;
            if (begin > end)
                continue;
            sweep->edge[n++] = (struct edge){begin, o, true};
            sweep->edge[n++] = (struct edge){end, o, false};
            part_possible[offer->part] = true;
        }
    }
    sweep->edge_count = n;
    if (n)
        qsort (sweep->edge, n, sizeof *sweep->edge, edge_compare);
}

static bool cheaper (const struct choose_problem *problem, uint32_t a, uint32_t b)
{
    const struct choose_offer *x = &problem->offer[a];
    const struct choose_offer *y = &problem->offer[b];
    if (x->price != y->price)
        return x->price < y->price;
    if (x->site != y->site)
        return x->site < y->site;
    return a < b;
}

struct assign {
    struct sweep *sweep;
    uint32_t chosen[CHOOSE_PARTS_MAX];
    uint32_t best[CHOOSE_PARTS_MAX];
    credit_micro rest[CHOOSE_PARTS_MAX + 1]; /* least that parts p and later can cost */
    credit_micro price;
    credit_micro best_price;
    uint32_t steps;
    bool found;
};

static credit_micro price_add (credit_micro a, credit_micro b)
{
    credit_micro out;
    return __builtin_add_overflow (a, b, &out) ? INT64_MAX : out;
}

/* Whether offer o fits beside the parts before `part` at the same site. */
static bool fits_beside (const struct assign *assign, uint32_t part, uint32_t o)
{
    const struct choose_problem *problem = assign->sweep->problem;
    const struct choose_offer *offer = &problem->offer[o];
    uint64_t procs = offer->procs;
    if (!offer->site_procs)
        return true;
    for (uint32_t p = 0; p < part; p++) {
        const struct choose_offer *other = &problem->offer[assign->chosen[p]];
        if (other->site == offer->site)
            procs += other->procs;
    }
    return procs <= offer->site_procs;
}

/* Offers of one part that are open now, cheapest first, one after `after` (UINT32_MAX: the first). */
static uint32_t next_open (const struct sweep *sweep, uint32_t part, uint32_t after)
{
    const struct choose_problem *problem = sweep->problem;
    uint32_t best = UINT32_MAX;
    for (uint32_t o = 0; o < problem->offer_count; o++) {
        if (problem->offer[o].part != part || !sweep->open[o])
            continue;
        if (after != UINT32_MAX && (o == after || !cheaper (problem, after, o)))
            continue;
        if (best == UINT32_MAX || cheaper (problem, o, best))
            best = o;
    }
    return best;
}

/* Depth-first over parts, cheapest offers first, cut by price; bounded by CHOOSE_ASSIGN_STEPS_MAX,
 * past which the best assignment so far stands. */
static void assign_part (struct assign *assign, uint32_t part)
{
    const struct choose_problem *problem = assign->sweep->problem;
    if (part == problem->part_count) {
        if (!assign->found || assign->price < assign->best_price) {
            memcpy (assign->best, assign->chosen, sizeof assign->best);
            assign->best_price = assign->price;
            assign->found = true;
        }
        return;
    }
    for (uint32_t o = next_open (assign->sweep, part, UINT32_MAX); o != UINT32_MAX;
         o = next_open (assign->sweep, part, o)) {
        if (++assign->steps > CHOOSE_ASSIGN_STEPS_MAX)
            return;
        credit_micro before = assign->price;
        assign->price = price_add (before, problem->offer[o].price);
        bool hopeless = assign->found &&
                        price_add (assign->price, assign->rest[part + 1]) >= assign->best_price;
        if (!hopeless && fits_beside (assign, part, o)) {
            assign->chosen[part] = o;
            assign_part (assign, part + 1);
        }
        assign->price = before;
        if (hopeless)
            return;
    }
}

/* Tries the present moment. */
static bool moment_try (struct sweep *sweep, time_us at, struct choose_result *result,
                        bool *too_dear)
{
    const struct choose_problem *problem = sweep->problem;
    struct assign assign = {.sweep = sweep};
    for (uint32_t p = problem->part_count; p-- > 0;) {
        uint32_t cheapest = next_open (sweep, p, UINT32_MAX);
        assign.rest[p] = price_add (assign.rest[p + 1], problem->offer[cheapest].price);
    }
    assign_part (&assign, 0);
    if (!assign.found)
        return false;
    if (problem->cost_max && assign.best_price > problem->cost_max) {
        *too_dear = true;
        return false;
    }
    result->start = at;
    result->price = assign.best_price;
    memcpy (result->offer, assign.best, sizeof result->offer);
    return true;
}

static bool sweep_run (struct sweep *sweep, struct choose_result *result, bool *too_dear)
{
    const struct choose_problem *problem = sweep->problem;
    for (uint32_t e = 0; e < sweep->edge_count; e++) {
        const struct edge *edge = &sweep->edge[e];
        uint32_t part = problem->offer[edge->offer].part;
        if (!edge->begin) {
            sweep->open[edge->offer]--;
            if (--sweep->part_open[part] == 0)
                sweep->parts_covered--;
            continue;
        }
        sweep->open[edge->offer]++;
        if (sweep->part_open[part]++ == 0)
            sweep->parts_covered++;
        bool last_begin = e + 1 == sweep->edge_count || sweep->edge[e + 1].at != edge->at ||
                          !sweep->edge[e + 1].begin;
        if (last_begin && sweep->parts_covered == problem->part_count &&
            moment_try (sweep, edge->at, result, too_dear))
            return true;
    }
    return false;
}

static int problem_check (const struct choose_problem *problem, uint64_t *edges, struct err *err)
{
    if (problem->part_count == 0 || problem->part_count > CHOOSE_PARTS_MAX)
        return err_set (err, ERR_LIMIT, "choose: %u components, allowed are 1 to %d",
                        problem->part_count, CHOOSE_PARTS_MAX);
    if (problem->offer_count > CHOOSE_OFFERS_MAX)
        return err_set (err, ERR_LIMIT, "choose: %u offers, allowed are %d", problem->offer_count,
                        CHOOSE_OFFERS_MAX);
    *edges = 0;
    for (uint32_t o = 0; o < problem->offer_count; o++) {
        assert (problem->offer[o].part < problem->part_count);
        if (problem->offer[o].start_count > CHOOSE_INTERVALS_MAX)
            return err_set (err, ERR_LIMIT, "choose: an offer with %u intervals, allowed are %d",
                            problem->offer[o].start_count, CHOOSE_INTERVALS_MAX);
        *edges += 2 * (uint64_t)problem->offer[o].start_count;
    }
    return 0;
}

int choose_group (const struct choose_problem *problem, struct choose_result *result,
                  struct err *err)
{
    struct sweep sweep = {.problem = problem};
    bool part_possible[CHOOSE_PARTS_MAX] = {false};
    bool too_dear = false;
    uint64_t edges = 0;
    int rc = problem_check (problem, &edges, err);
    if (rc)
        return rc;
    sweep.edge = calloc (edges + 1, sizeof *sweep.edge);
    sweep.open = calloc ((size_t)problem->offer_count + 1, sizeof *sweep.open);
    if (!sweep.edge || !sweep.open) {
        rc = err_set (err, ERR_NOMEM, "choose: no memory for %llu bounds",
                      (unsigned long long)edges);
        goto out;
    }
    sweep_fill (&sweep, part_possible);
    if (sweep_run (&sweep, result, &too_dear))
        goto out;
    for (uint32_t p = 0; p < problem->part_count; p++) {
        if (!part_possible[p]) {
            rc = err_set (err, ERR_NOT_FOUND, "component %s has no possible start%s",
                          problem->part[p].name ? problem->part[p].name : "?",
                          problem->deadline ? " before the deadline" : " within the horizon");
            goto out;
        }
    }
    rc = too_dear ? err_set (err, ERR_NOT_FOUND, "every common start costs more than the bound")
                  : err_set (err, ERR_NOT_FOUND, "the components have no common start%s",
                             problem->deadline ? " before the deadline" : " within the horizon");
out:
    free (sweep.edge);
    free (sweep.open);
    return rc;
}

bool choose_better (const struct choose_candidate *a, const struct choose_candidate *b)
{
    /* Idle sites answer within milliseconds of one another: that is no reason to prefer one. */
    time_us a_second = a->start / US_PER_S, b_second = b->start / US_PER_S;
    if (a_second != b_second)
        return a_second < b_second;
    if (a->price != b->price)
        return a->price < b->price;
    if (a->free_procs != b->free_procs)
        return a->free_procs > b->free_procs;
    return a->site < b->site;
}

uint32_t choose_single (const struct choose_candidate *candidate, uint32_t count,
                        duration_us walltime, time_us deadline, credit_micro cost_max)
{
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < count; i++) {
        const struct choose_candidate *c = &candidate[i];
        if (c->start == TIME_US_NONE || !c->funded)
            continue;
        if (cost_max && c->price > cost_max)
            continue;
        if (deadline && c->start > sub_sat (deadline, walltime))
            continue;
        if (best == UINT32_MAX || choose_better (c, &candidate[best]))
            best = i;
    }
    return best;
}

time_us choose_report_start (const struct choose_estimate *table, uint32_t count, uint32_t procs,
                             duration_us walltime)
{
    time_us best = TIME_US_NONE;
    for (uint32_t i = 0; i < count; i++) {
        const struct choose_estimate *cell = &table[i];
        if (cell->procs < procs || cell->walltime < walltime || cell->start == 0)
            continue;
        if (best == TIME_US_NONE || cell->start < best)
            best = cell->start;
    }
    return best;
}

time_us choose_expected (time_us median, time_us promised, time_us now,
                         const struct choose_record *record)
{
    enum { NOMINAL_PPM = 950000 };
    double trust = .5;
    time_us expected = median;

    if (median == 0)
        return promised;
    if (record->earned)
        trust = 1;
    else if (record->count && record->coverage_ppm < NOMINAL_PPM)
        trust = .5 * record->coverage_ppm / NOMINAL_PPM;
    if (record->earned && median > now) /* what it tends to say too early or too late */
        expected = median - record->bias > now ? median - record->bias : now;
    if (promised == 0)
        return expected;
    return promised + (time_us)((double)(expected - promised) * trust);
}
