/* choose: one sweep over the bounds of all offers, with a bounded search for who takes which
 * part at each moment. Estimates, ordinary jobs, the coordinator and the simulator of the grid
 * call it. The same offers must always give the same choice, whatever order they came in: ties
 * end at the site's number. */
#include "meta/core/choose.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* One bound of a shifted interval. At one moment begins come before ends (ends are inclusive). */
struct edge {
    time_us at;
    uint32_t offer; /* NO_OFFER: a set of parts may fit from then on */
    bool begin;
};
enum { NO_OFFER = UINT32_MAX };

struct sweep {
    const struct choose_problem *problem;
    struct edge *edge;
    uint32_t edge_count;
    uint32_t *order;                      /* offers by part, each part's by what is preferred */
    uint32_t first[CHOOSE_PARTS_MAX + 1]; /* of a part, in order */
    duration_us span_min;                 /* from the common moment to the end, at least */
    credit_micro price_min;
    uint32_t steps;
    bool found;
    uint32_t *open; /* per offer: intervals of it that cover the present moment */
    uint32_t part_open[CHOOSE_PARTS_MAX];
    uint32_t parts_covered;
    uint32_t *fits; /* per set: how many members fit at the present moment */
    uint32_t twin
        [CHOOSE_PARTS_MAX]; /* the last part before that has the same offers; UINT32_MAX: none */
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

static time_us add_sat (time_us t, duration_us d)
{
    time_us out;
    if (__builtin_add_overflow (t, d, &out))
        return d < 0 ? INT64_MIN : INT64_MAX;
    return out;
}

static duration_us offer_walltime (const struct choose_problem *problem,
                                   const struct choose_offer *offer)
{
    return offer->walltime ? offer->walltime : problem->part[offer->part].walltime;
}

/* From the common moment until it ends. */
static duration_us offer_span (const struct choose_problem *problem,
                               const struct choose_offer *offer)
{
    return add_sat (problem->part[offer->part].offset, offer_walltime (problem, offer));
}

/* Bounds of the common moment that one offer allows, apart from its intervals. */
static void offer_window (const struct choose_problem *problem, const struct choose_offer *offer,
                          time_us *lo, time_us *hi)
{
    const struct choose_part *part = &problem->part[offer->part];
    *lo = later (problem->not_before, sub_sat (problem->now, part->offset));
    if (offer->not_before != TIME_US_NONE)
        *lo = later (*lo, sub_sat (offer->not_before, part->offset));
    *hi = problem->not_after ? problem->not_after : INT64_MAX;
    if (problem->deadline) {
        time_us latest = sub_sat (problem->deadline, offer_span (problem, offer));
        *hi = latest < *hi ? latest : *hi;
    }
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
    for (uint32_t k = 0; k < problem->set_count; k++) {
        const struct choose_set *set = &problem->set[k];
        for (uint32_t i = 0; i < set->step_count; i++)
            sweep->edge[n++] = (struct edge){set->step[i].begin, NO_OFFER, true};
        if (set->until < INT64_MAX)
            sweep->edge[n++] = (struct edge){set->until + 1, NO_OFFER, true};
    }
    sweep->edge_count = n;
    if (n)
        qsort (sweep->edge, n, sizeof *sweep->edge, edge_compare);
}

/* Order of one part's offers: what the assignment tries first. */
static bool tried_before (const struct choose_problem *problem, uint32_t a, uint32_t b)
{
    const struct choose_offer *x = &problem->offer[a];
    const struct choose_offer *y = &problem->offer[b];
    duration_us x_wall = offer_walltime (problem, x), y_wall = offer_walltime (problem, y);
    if (problem->prefer == CHOOSE_EARLIEST && x_wall != y_wall)
        return x_wall < y_wall;
    if (x->price != y->price)
        return x->price < y->price;
    if (x_wall != y_wall)
        return x_wall < y_wall;
    if (x->site != y->site)
        return x->site < y->site;
    if (x->shape != y->shape)
        return x->shape < y->shape;
    return a < b;
}

/* What an assignment so far comes to. */
struct total {
    duration_us span;
    credit_micro price;
};

static credit_micro price_add (credit_micro a, credit_micro b)
{
    credit_micro out;
    return __builtin_add_overflow (a, b, &out) ? INT64_MAX : out;
}

static struct total total_with (struct total a, struct total b)
{
    return (struct total){a.span > b.span ? a.span : b.span, price_add (a.price, b.price)};
}

/* Whether a, ending its span after `at`, is better than b. */
static bool total_better (enum choose_prefer prefer, struct total a, struct total b)
{
    if (prefer == CHOOSE_CHEAPEST && a.price != b.price)
        return a.price < b.price;
    if (a.span != b.span)
        return a.span < b.span;
    return a.price < b.price;
}

struct assign {
    struct sweep *sweep;
    uint32_t chosen[CHOOSE_PARTS_MAX];
    uint32_t place[CHOOSE_PARTS_MAX]; /* of it among the part's offers */
    uint32_t best[CHOOSE_PARTS_MAX];
    struct total rest[CHOOSE_PARTS_MAX + 1]; /* least that parts p and later can come to */
    struct total best_total;
    uint32_t steps;
    bool found;
    bool too_dear;
};

/* ---- what sites have said of several parts at once */

static bool alike (const struct choose_problem *problem, uint32_t a, uint32_t b)
{
    return a == b || (problem->part[a].kind && problem->part[a].kind == problem->part[b].kind);
}

/* How many members of a set fit at that moment, as far as is known; UINT32_MAX: nothing is. */
static uint32_t set_fits (const struct choose_set *set, time_us at)
{
    if (!set->looked || at < set->from || at > set->until)
        return UINT32_MAX;
    for (uint32_t i = 0; i < set->step_count; i++)
        if (at >= set->step[i].begin && at <= set->step[i].end)
            return set->step[i].members;
    return 0;
}

/* The parts of a choice that are at one site, with their sizes. */
struct there {
    uint32_t count;
    uint32_t part[CHOOSE_PARTS_MAX], shape[CHOOSE_PARTS_MAX];
};

static void there_add (struct there *there, const struct choose_offer *offer)
{
    there->part[there->count] = offer->part;
    there->shape[there->count++] = offer->shape;
}

/* Whether the set's first `count` members are all among those that are there, or (inside) those that are there all
 * among these. */
static bool covers (const struct choose_problem *problem, const struct choose_set *set,
                    uint32_t count, const struct there *there, bool inside)
{
    uint64_t taken = 0;
    uint32_t outer = inside ? there->count : count, inner = inside ? count : there->count;
    for (uint32_t i = 0; i < outer; i++) {
        uint32_t found = UINT32_MAX;
        for (uint32_t k = 0; k < inner && found == UINT32_MAX; k++) {
            uint32_t m = inside ? k : i, t = inside ? i : k;
            if (!(taken >> k & 1) && set->shape[m] == there->shape[t] &&
                alike (problem, set->part[m], there->part[t]))
                found = k;
        }
        if (found == UINT32_MAX)
            return false;
        taken |= UINT64_C (1) << found;
    }
    return true;
}

/* Some set says that these do not fit together at the present moment. */
static bool said_no (const struct sweep *sweep, uint32_t site, const struct there *there)
{
    const struct choose_problem *problem = sweep->problem;
    for (uint32_t k = 0; k < problem->set_count; k++) {
        const struct choose_set *set = &problem->set[k];
        if (set->site == site && sweep->fits[k] < set->looked && sweep->fits[k] < there->count &&
            covers (problem, set, sweep->fits[k] + 1, there, false))
            return true;
    }
    return false;
}

/* What the sites have said so far leaves room for all that are alike, one by one: else no assignment does. */
static bool room_for_alike (const struct sweep *sweep, uint32_t part)
{
    const struct choose_problem *problem = sweep->problem;
    uint64_t room = 0, wanted = 0;
    for (uint32_t p = 0; p < problem->part_count; p++)
        wanted += alike (problem, part, p);
    for (uint32_t i = sweep->first[part]; i < sweep->first[part + 1] && room < wanted; i++) {
        const struct choose_offer *offer = &problem->offer[sweep->order[i]];
        uint64_t most = wanted;
        if (offer->shape) /* sizes differ in what they leave: not counted */
            return true;
        for (uint32_t k = 0; sweep->open[sweep->order[i]] && k < problem->set_count; k++) {
            const struct choose_set *set = &problem->set[k];
            bool same = set->site == offer->site && sweep->fits[k] < set->looked;
            for (uint32_t m = 0; same && m <= sweep->fits[k]; m++)
                same = set->shape[m] == 0 && alike (problem, set->part[m], part);
            if (same && sweep->fits[k] < most)
                most = sweep->fits[k];
        }
        room += sweep->open[sweep->order[i]] ? most : 0;
    }
    return room >= wanted;
}

/* Whether offer o fits beside the parts before `part` at the same site. */
static bool fits_beside (const struct assign *assign, uint32_t part, uint32_t o)
{
    const struct choose_problem *problem = assign->sweep->problem;
    const struct choose_offer *offer = &problem->offer[o];
    uint64_t procs = offer->procs;
    struct there there = {0};
    for (uint32_t p = 0; p < part; p++) {
        const struct choose_offer *other = &problem->offer[assign->chosen[p]];
        if (other->site != offer->site)
            continue;
        procs += other->procs;
        there_add (&there, other);
    }
    if (offer->site_procs && procs > offer->site_procs)
        return false;
    there_add (&there, offer);
    return !said_no (assign->sweep, offer->site, &there);
}

static struct total offer_total (const struct choose_problem *problem, uint32_t o)
{
    return (struct total){offer_span (problem, &problem->offer[o]), problem->offer[o].price};
}

/* Depth-first over parts, best offers first, cut by what the rest comes to at least; bounded by
 * CHOOSE_ASSIGN_STEPS_MAX, past which the best assignment so far stands. */
static void assign_part (struct assign *assign, uint32_t part, struct total before)
{
    const struct sweep *sweep = assign->sweep;
    const struct choose_problem *problem = sweep->problem;
    if (part == problem->part_count) {
        memcpy (assign->best, assign->chosen, sizeof assign->best);
        assign->best_total = before;
        assign->found = true;
        return;
    }
    uint32_t first = sweep->first[part], twin = sweep->twin[part];
    if (twin != UINT32_MAX) /* what it has taken is the first that this one tries */
        first += assign->place[twin];
    for (uint32_t i = first; i < sweep->first[part + 1]; i++) {
        uint32_t o = sweep->order[i];
        if (!sweep->open[o])
            continue;
        if (++assign->steps > CHOOSE_ASSIGN_STEPS_MAX)
            return;
        struct total now = total_with (before, offer_total (problem, o));
        struct total least = total_with (now, assign->rest[part + 1]);
        bool dear = problem->cost_max && least.price > problem->cost_max;
        assign->too_dear = assign->too_dear || dear;
        if (dear || !fits_beside (assign, part, o) ||
            (assign->found && !total_better (problem->prefer, least, assign->best_total)))
            continue;
        assign->chosen[part] = o;
        assign->place[part] = i - sweep->first[part];
        assign_part (assign, part + 1, now);
    }
}

/* The least of each part's offers, over those that are open or over all. */
static struct total part_least (const struct sweep *sweep, uint32_t part, bool open_only)
{
    const struct choose_problem *problem = sweep->problem;
    struct total least = {INT64_MAX, INT64_MAX};
    for (uint32_t i = sweep->first[part]; i < sweep->first[part + 1]; i++) {
        if (open_only && !sweep->open[sweep->order[i]])
            continue;
        struct total one = offer_total (problem, sweep->order[i]);
        least.span = one.span < least.span ? one.span : least.span;
        least.price = one.price < least.price ? one.price : least.price;
    }
    return least;
}

/* Two parts that are alike have the same offers now, in the same order. */
static bool same_offers (const struct sweep *sweep, uint32_t a, uint32_t b)
{
    const struct choose_problem *problem = sweep->problem;
    uint32_t count = sweep->first[a + 1] - sweep->first[a];
    if (a == b || !alike (problem, a, b) || sweep->first[b + 1] - sweep->first[b] != count)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t o = sweep->order[sweep->first[a] + i], q = sweep->order[sweep->first[b] + i];
        const struct choose_offer *x = &problem->offer[o], *y = &problem->offer[q];
        if (x->site != y->site || x->shape != y->shape || x->price != y->price ||
            x->procs != y->procs || !sweep->open[o] != !sweep->open[q])
            return false;
    }
    return true;
}

/* What the present moment means for sets and for parts that are alike. False: nothing can be found now. */
static bool moment_enter (struct sweep *sweep, time_us at)
{
    const struct choose_problem *problem = sweep->problem;
    for (uint32_t k = 0; k < problem->set_count; k++)
        sweep->fits[k] = set_fits (&problem->set[k], at);
    for (uint32_t p = 0; p < problem->part_count; p++) {
        sweep->twin[p] = UINT32_MAX;
        for (uint32_t q = p; q-- > 0 && sweep->twin[p] == UINT32_MAX;)
            if (same_offers (sweep, q, p))
                sweep->twin[p] = q;
        if (problem->part[p].kind && sweep->twin[p] == UINT32_MAX && problem->set_count &&
            !room_for_alike (sweep, p))
            return false;
    }
    return true;
}

/* Tries the present moment; keeps it when it is better than what was found before. */
static void moment_try (struct sweep *sweep, time_us at, struct choose_result *result,
                        bool *too_dear)
{
    const struct choose_problem *problem = sweep->problem;
    struct assign assign = {.sweep = sweep};
    struct total none = {INT64_MIN, 0};
    assign.rest[problem->part_count] = none;
    for (uint32_t p = problem->part_count; p-- > 0;)
        assign.rest[p] = total_with (assign.rest[p + 1], part_least (sweep, p, true));
    if (sweep->found) { /* only what is better is of interest */
        assign.found = true;
        assign.best_total = (struct total){sub_sat (result->completion, at), result->price};
        if (!total_better (problem->prefer, assign.rest[0], assign.best_total))
            return;
    }
    if (!moment_enter (sweep, at))
        return;
    memset (assign.best, 0xff, sizeof assign.best);
    assign_part (&assign, 0, none);
    sweep->steps += assign.steps;
    *too_dear = *too_dear || assign.too_dear;
    if (!assign.found || assign.best[0] == UINT32_MAX)
        return;
    sweep->found = true;
    result->start = at;
    result->completion = add_sat (at, assign.best_total.span);
    result->price = assign.best_total.price;
    memcpy (result->offer, assign.best, sizeof result->offer);
}

/* Whether no moment from `at` on can be better than what was found. */
static bool sweep_over (const struct sweep *sweep, time_us at, const struct choose_result *result)
{
    if (!sweep->found)
        return sweep->steps > CHOOSE_STEPS_MAX;
    time_us end = add_sat (at, sweep->span_min); /* not sooner than that */
    bool cheap = result->price <= sweep->price_min;
    return sweep->steps > CHOOSE_STEPS_MAX || (end >= result->completion && cheap) ||
           (end > result->completion && sweep->problem->prefer == CHOOSE_EARLIEST);
}

static bool sweep_run (struct sweep *sweep, struct choose_result *result, bool *too_dear)
{
    const struct choose_problem *problem = sweep->problem;
    for (uint32_t e = 0; e < sweep->edge_count; e++) {
        const struct edge *edge = &sweep->edge[e];
        bool bare = edge->offer == NO_OFFER;
        uint32_t part = bare ? 0 : problem->offer[edge->offer].part;
        if (!edge->begin) {
            sweep->open[edge->offer]--;
            if (--sweep->part_open[part] == 0)
                sweep->parts_covered--;
            continue;
        }
        if (!bare)
            sweep->open[edge->offer]++;
        if (!bare && sweep->part_open[part]++ == 0)
            sweep->parts_covered++;
        bool last_begin = e + 1 == sweep->edge_count || sweep->edge[e + 1].at != edge->at ||
                          !sweep->edge[e + 1].begin;
        if (!last_begin || sweep->parts_covered < problem->part_count)
            continue;
        if (sweep_over (sweep, edge->at, result))
            break;
        moment_try (sweep, edge->at, result, too_dear);
    }
    return sweep->found;
}

/* Offers by part, then as they are tried. An insertion sort: a part has few offers, or many alike. */
static void sweep_order (struct sweep *sweep)
{
    const struct choose_problem *problem = sweep->problem;
    uint32_t count = 0;
    for (uint32_t p = 0; p < problem->part_count; p++) {
        sweep->first[p] = count;
        for (uint32_t o = 0; o < problem->offer_count; o++) {
            uint32_t at = count;
            if (problem->offer[o].part != p)
                continue;
            for (; at > sweep->first[p] && tried_before (problem, o, sweep->order[at - 1]); at--)
                sweep->order[at] = sweep->order[at - 1];
            sweep->order[at] = o;
            count++;
        }
    }
    sweep->first[problem->part_count] = count;
    sweep->span_min = INT64_MIN;
    for (uint32_t p = 0; p < problem->part_count; p++) {
        struct total least = part_least (sweep, p, false);
        sweep->span_min = least.span > sweep->span_min ? least.span : sweep->span_min;
        sweep->price_min = price_add (sweep->price_min, least.price);
    }
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
    for (uint32_t k = 0; k < problem->set_count; k++)
        *edges += problem->set[k].step_count + 1;
    return 0;
}

static const char *bound_text (const struct choose_problem *problem)
{
    if (problem->deadline)
        return problem->not_after ? " before the latest start and the deadline"
                                  : " before the deadline";
    return problem->not_after ? " before the latest start" : " within the horizon";
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
    sweep.order = calloc ((size_t)problem->offer_count + 1, sizeof *sweep.order);
    sweep.fits = calloc ((size_t)problem->set_count + 1, sizeof *sweep.fits);
    if (!sweep.edge || !sweep.open || !sweep.order || !sweep.fits) {
        rc = err_set (err, ERR_NOMEM, "choose: no memory for %llu bounds",
                      (unsigned long long)edges);
        goto out;
    }
    sweep_order (&sweep);
    sweep_fill (&sweep, part_possible);
    if (sweep_run (&sweep, result, &too_dear))
        goto out;
    for (uint32_t p = 0; p < problem->part_count; p++) {
        if (!part_possible[p]) {
            rc =
                err_set (err, ERR_NOT_FOUND, "component %s has no possible start%s",
                         problem->part[p].name ? problem->part[p].name : "?", bound_text (problem));
            goto out;
        }
    }
    rc = too_dear ? err_set (err, ERR_DENIED, "every common start costs more than the bound")
                  : err_set (err, ERR_NOT_FOUND, "the components have no common start%s",
                             bound_text (problem));
out:
    free (sweep.edge);
    free (sweep.open);
    free (sweep.order);
    free (sweep.fits);
    return rc;
}

static struct there there_of (const struct choose_problem *problem,
                              const struct choose_result *result, uint32_t site)
{
    struct there there = {0};
    for (uint32_t p = 0; p < problem->part_count; p++)
        if (problem->offer[result->offer[p]].site == site)
            there_add (&there, &problem->offer[result->offer[p]]);
    return there;
}

/* It has said yes, or has been asked for just that and cannot tell. */
static bool has_answered (const struct choose_problem *problem, const struct choose_set *set,
                          const struct there *there, time_us at)
{
    uint32_t fits = set_fits (set, at);
    bool untold = set->looked < set->count && at >= set->from && at <= set->until;
    if (fits != UINT32_MAX && fits >= there->count && covers (problem, set, fits, there, true))
        return true;
    return untold && set->count == there->count && covers (problem, set, set->count, there, true);
}

uint32_t choose_doubts (const struct choose_problem *problem, const struct choose_result *result,
                        uint32_t site_out[CHOOSE_PARTS_MAX])
{
    uint32_t count = 0;
    for (uint32_t p = 0; p < problem->part_count; p++) {
        uint32_t site = problem->offer[result->offer[p]].site;
        struct there there = there_of (problem, result, site);
        bool known = there.count < 2 || there.part[0] != p; /* seen at its first part */
        for (uint32_t k = 0; k < problem->set_count && !known; k++)
            known = problem->set[k].site == site &&
                    has_answered (problem, &problem->set[k], &there, result->start);
        if (!known)
            site_out[count++] = site;
    }
    return count;
}

bool choose_conceivable (const struct choose_problem *problem)
{
    static const struct choose_interval always[] = {{0, INT64_MAX}};
    struct choose_problem empty = {.part = problem->part,
                                   .part_count = problem->part_count,
                                   .offer_count = problem->offer_count};
    struct choose_result result;
    empty.offer = calloc ((size_t)problem->offer_count + 1, sizeof *empty.offer);
    if (!empty.offer)
        return true;
    for (uint32_t o = 0; o < problem->offer_count; o++) {
        empty.offer[o] = problem->offer[o];
        empty.offer[o].not_before = TIME_US_NONE;
        empty.offer[o].starts = always;
        empty.offer[o].start_count = 1;
    }
    bool found = choose_group (&empty, &result, NULL) == 0;
    free (empty.offer);
    return found;
}

bool choose_better (const struct choose_candidate *a, const struct choose_candidate *b,
                    enum choose_prefer prefer)
{
    /* Idle sites answer within milliseconds of one another: that is no reason to prefer one. */
    time_us a_second = add_sat (a->start, a->walltime) / US_PER_S;
    time_us b_second = add_sat (b->start, b->walltime) / US_PER_S;
    if (prefer == CHOOSE_CHEAPEST && a->price != b->price)
        return a->price < b->price;
    if (a_second != b_second)
        return a_second < b_second;
    if (a->price != b->price)
        return a->price < b->price;
    if (a->free_procs != b->free_procs)
        return a->free_procs > b->free_procs;
    return a->site < b->site;
}

uint32_t choose_single (const struct choose_candidate *candidate, uint32_t count,
                        const struct choose_bounds *bounds)
{
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < count; i++) {
        const struct choose_candidate *c = &candidate[i];
        if (c->start == TIME_US_NONE || !c->funded)
            continue;
        if (bounds->cost_max && c->price > bounds->cost_max)
            continue;
        if (bounds->deadline && c->start > sub_sat (bounds->deadline, c->walltime))
            continue;
        if (bounds->not_after && c->start > bounds->not_after)
            continue;
        if (best == UINT32_MAX || choose_better (c, &candidate[best], bounds->prefer))
            best = i;
    }
    return best;
}

bool choose_moves (time_us stays, time_us goes, time_us now,
                   const struct choose_move_policy *policy)
{
    if (stays == TIME_US_NONE || goes == TIME_US_NONE || stays <= now)
        return false;
    duration_us gain = sub_sat (stays, goes);
    double least = (double)sub_sat (stays, now) * (double)policy->share_ppm / 1e6;
    return gain >= policy->gain && (double)gain >= least;
}

/* By start; of one start the larger first, so that what covers another comes before it. */
static int cell_compare (const void *pa, const void *pb)
{
    const struct choose_estimate *a = pa, *b = pb;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    if (a->procs != b->procs)
        return a->procs > b->procs ? -1 : 1;
    return a->walltime > b->walltime ? -1 : a->walltime < b->walltime;
}

uint32_t choose_report_prune (struct choose_estimate *table, uint32_t count)
{
    uint32_t kept = 0;
    qsort (table, count, sizeof *table, cell_compare);
    for (uint32_t i = 0; i < count; i++)
        if (table[i].start &&
            choose_report_start (table, kept, table[i].procs, table[i].walltime) == TIME_US_NONE)
            table[kept++] = table[i];
    return kept;
}

time_us choose_report_start (const struct choose_estimate *table, uint32_t count, uint32_t procs,
                             duration_us walltime)
{
    for (uint32_t i = 0; i < count; i++)
        if (table[i].procs >= procs && table[i].walltime >= walltime)
            return table[i].start;
    return TIME_US_NONE;
}

struct choose_record choose_record_of (const struct choose_record *all,
                                       const struct choose_record *of_class)
{
    if (of_class && of_class->count >= CHOOSE_RECORD_ENOUGH)
        return *of_class;
    return all ? *all : (struct choose_record){0};
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
