/* Unit tests of meta/core/choose. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "meta/core/choose.h"

static const struct choose_interval any[] = {{0, INT64_MAX}};

static struct choose_offer offer (uint32_t part, uint32_t site, credit_micro price,
                                  const struct choose_interval *starts, uint32_t count)
{
    return (struct choose_offer){.part = part,
                                 .site = site,
                                 .procs = 1,
                                 .price = price,
                                 .not_before = TIME_US_NONE,
                                 .starts = starts,
                                 .start_count = count};
}

static void earliest_common_start (void **state)
{
    const struct choose_interval a[] = {{0, 10}, {50, 60}, {100, 200}};
    const struct choose_interval b[] = {{20, 40}, {55, 90}};
    struct choose_offer offers[] = {offer (0, 0, 1, a, 3), offer (1, 1, 1, b, 2)};
    struct choose_part parts[] = {{"a", 0, 10, 0}, {"b", 0, 10, 0}};
    struct choose_problem problem = {
        .part = parts, .part_count = 2, .offer = offers, .offer_count = 2};
    struct choose_result result;
    struct err err;
    (void)state;
    assert_int_equal (choose_group (&problem, &result, &err), 0);
    assert_int_equal (result.start, 55);
    assert_int_equal (result.offer[0], 0);
    assert_int_equal (result.offer[1], 1);
    problem.now = 61; /* both have later starts, but no common one */
    assert_int_equal (choose_group (&problem, &result, &err), ERR_NOT_FOUND);
    problem.now = 58;
    assert_int_equal (choose_group (&problem, &result, &err), 0);
    assert_int_equal (result.start, 58);
}

static void touching_ends_are_common (void **state)
{
    const struct choose_interval a[] = {{0, 30}};
    const struct choose_interval b[] = {{30, 90}};
    struct choose_offer offers[] = {offer (0, 0, 1, a, 1), offer (1, 1, 1, b, 1)};
    struct choose_part parts[] = {{"a", 0, 10, 0}, {"b", 0, 10, 0}};
    struct choose_problem problem = {
        .part = parts, .part_count = 2, .offer = offers, .offer_count = 2};
    struct choose_result result;
    (void)state;
    assert_int_equal (choose_group (&problem, &result, NULL), 0);
    assert_int_equal (result.start, 30);
}

static void offsets_shift (void **state)
{
    const struct choose_interval a[] = {{100, 120}};
    const struct choose_interval b[] = {{150, 400}};
    struct choose_offer offers[] = {offer (0, 0, 1, a, 1), offer (1, 1, 1, b, 1)};
    struct choose_part parts[] = {{"stage", -60, 10, 0}, {"run", 0, 10, 0}};
    struct choose_problem problem = {
        .part = parts, .part_count = 2, .offer = offers, .offer_count = 2};
    struct choose_result result;
    (void)state;
    /* the staging part starts 60 before the common moment, so that lies in [160, 180] */
    assert_int_equal (choose_group (&problem, &result, NULL), 0);
    assert_int_equal (result.start, 160);
    problem.now = 105; /* no part starts before now: the staging part moves the moment to 165 */
    assert_int_equal (choose_group (&problem, &result, NULL), 0);
    assert_int_equal (result.start, 165);
}

static void deadline_and_not_before (void **state)
{
    struct choose_offer offers[] = {offer (0, 0, 1, any, 1), offer (1, 1, 1, any, 1)};
    struct choose_part parts[] = {{"a", 0, 10, 0}, {"b", 5, 50, 0}};
    struct choose_problem problem = {.part = parts,
                                     .part_count = 2,
                                     .offer = offers,
                                     .offer_count = 2,
                                     .not_before = 40,
                                     .deadline = 95};
    struct choose_result result;
    struct err err;
    (void)state;
    assert_int_equal (choose_group (&problem, &result, &err), 0);
    assert_int_equal (result.start, 40);
    problem.deadline = 94;
    assert_int_equal (choose_group (&problem, &result, &err), ERR_NOT_FOUND);
    assert_non_null (strstr (err.text, "component b"));
    assert_non_null (strstr (err.text, "deadline"));
}

static void hint_binds_one_site (void **state)
{
    struct choose_offer offers[] = {offer (0, 0, 1, any, 1), offer (1, 1, 1, any, 1)};
    struct choose_part parts[] = {{"a", 0, 10, 0}, {"b", 0, 10, 0}};
    struct choose_problem problem = {
        .part = parts, .part_count = 2, .offer = offers, .offer_count = 2};
    struct choose_result result;
    (void)state;
    offers[1].not_before = 777;
    assert_int_equal (choose_group (&problem, &result, NULL), 0);
    assert_int_equal (result.start, 777);
    offers[1].not_before = TIME_US_MAX; /* not there at all */
    offers[1].starts = (const struct choose_interval[]){{0, 1000}};
    assert_int_equal (choose_group (&problem, &result, NULL), ERR_NOT_FOUND);
}

static void earliest_then_cheapest (void **state)
{
    const struct choose_interval late[] = {{100, 1000}};
    struct choose_offer offers[] = {
        offer (0, 0, 9, any, 1), offer (0, 1, 1, late, 1), offer (0, 2, 9, any, 1),
        offer (1, 0, 5, any, 1), offer (1, 1, 4, any, 1),
    };
    struct choose_part parts[] = {{"a", 0, 10, 0}, {"b", 0, 10, 0}};
    struct choose_problem problem = {
        .part = parts, .part_count = 2, .offer = offers, .offer_count = 5, .now = 7};
    struct choose_result result;
    (void)state;
    assert_int_equal (choose_group (&problem, &result, NULL), 0);
    assert_int_equal (result.start, 7);    /* not the cheap one at 100 */
    assert_int_equal (result.offer[0], 0); /* equal price: the lower site */
    assert_int_equal (result.offer[1], 4); /* the cheaper one */
    assert_int_equal (result.price, 13);
    problem.cost_max = 5; /* now the later, cheaper combination is the first that is allowed */
    assert_int_equal (choose_group (&problem, &result, NULL), 0);
    assert_int_equal (result.start, 100);
    assert_int_equal (result.price, 5);
    problem.cost_max = 4;
    assert_int_equal (choose_group (&problem, &result, NULL), ERR_DENIED);
}

static void capacity_of_one_site (void **state)
{
    struct choose_offer offers[] = {
        offer (0, 0, 1, any, 1),
        offer (0, 1, 9, any, 1),
        offer (1, 0, 1, any, 1),
        offer (1, 1, 5, any, 1),
    };
    struct choose_part parts[] = {{"a", 0, 10, 0}, {"b", 0, 10, 0}};
    struct choose_problem problem = {
        .part = parts, .part_count = 2, .offer = offers, .offer_count = 4};
    struct choose_result result;
    (void)state;
    for (int i = 0; i < 4; i++) {
        offers[i].procs = 4;
        offers[i].site_procs = 4;
    }
    /* both on site 0 would be cheapest and do not fit: b moves, since that costs less */
    assert_int_equal (choose_group (&problem, &result, NULL), 0);
    assert_int_equal (result.offer[0], 0);
    assert_int_equal (result.offer[1], 3);
    assert_int_equal (result.price, 6);
    offers[0].site_procs = offers[2].site_procs = 8;
    assert_int_equal (choose_group (&problem, &result, NULL), 0);
    assert_int_equal (result.price, 2);
}

static void a_part_without_start_is_named (void **state)
{
    struct choose_offer offers[] = {offer (0, 0, 1, any, 1)};
    struct choose_part parts[] = {{"left", 0, 10, 0}, {"right", 0, 10, 0}};
    struct choose_problem problem = {
        .part = parts, .part_count = 2, .offer = offers, .offer_count = 1};
    struct choose_result result;
    struct err err;
    (void)state;
    assert_int_equal (choose_group (&problem, &result, &err), ERR_NOT_FOUND);
    assert_non_null (strstr (err.text, "right"));
}

static void limits (void **state)
{
    struct choose_part parts[] = {{"a", 0, 10, 0}};
    struct choose_problem problem = {.part = parts, .part_count = 0};
    struct choose_result result;
    (void)state;
    assert_int_equal (choose_group (&problem, &result, NULL), ERR_LIMIT);
    problem.part_count = CHOOSE_PARTS_MAX + 1;
    assert_int_equal (choose_group (&problem, &result, NULL), ERR_LIMIT);
}

static bool may_start (const struct choose_problem *problem, const struct choose_offer *offer,
                       time_us t)
{
    time_us own = t + problem->part[offer->part].offset;
    if (own < problem->now || own + offer->walltime > problem->deadline ||
        (problem->not_after && t > problem->not_after))
        return false;
    for (uint32_t i = 0; i < offer->start_count; i++)
        if (own >= offer->starts[i].begin && own <= offer->starts[i].end)
            return true;
    return false;
}

/* Every moment, every assignment of three parts with three offers each. */
static bool searched (const struct choose_problem *problem, time_us *end_out,
                      credit_micro *price_out)
{
    bool found = false;
    for (time_us t = 0; t < 100; t++)
        for (uint32_t way = 0; way < 27; way++) {
            const struct choose_offer *o[3] = {&problem->offer[way % 3],
                                               &problem->offer[3 + way / 3 % 3],
                                               &problem->offer[6 + way / 9]};
            time_us end = 0;
            credit_micro price = 0;
            bool all = true;
            for (uint32_t p = 0; p < 3; p++) {
                time_us own = t + problem->part[p].offset + o[p]->walltime;
                all = all && may_start (problem, o[p], t);
                end = own > end ? own : end;
                price += o[p]->price;
            }
            if (!all || (problem->cost_max && price > problem->cost_max))
                continue;
            bool sooner = end < *end_out || (end == *end_out && price < *price_out);
            bool cheaper = price < *price_out || (price == *price_out && end < *end_out);
            if (!found || (problem->prefer == CHOOSE_CHEAPEST ? cheaper : sooner)) {
                *end_out = end;
                *price_out = price;
            }
            found = true;
        }
    return found;
}

/* The sweep against a search over every moment, on random small problems. */
static void equals_a_search (void **state)
{
    uint32_t solved = 0;
    (void)state;
    srand (42);
    for (int round = 0; round < 4000; round++) {
        struct choose_interval starts[9][4];
        struct choose_offer offers[9];
        struct choose_part parts[3] = {
            {"a", 0, 5, 0}, {"b", rand () % 7 - 3, 5, 0}, {"c", 0, 5, 0}};
        struct choose_problem problem = {.part = parts,
                                         .part_count = 3,
                                         .offer = offers,
                                         .offer_count = 9,
                                         .now = rand () % 10,
                                         .deadline = 30 + rand () % 40,
                                         .not_after = rand () % 3 ? 0 : 5 + rand () % 20,
                                         .cost_max = rand () % 2 ? 0 : 6 + rand () % 12,
                                         .prefer = round % 2 ? CHOOSE_CHEAPEST : CHOOSE_EARLIEST};
        struct choose_result result;
        for (uint32_t o = 0; o < 9; o++) {
            time_us at = rand () % 12;
            uint32_t count = (uint32_t)(rand () % 4);
            for (uint32_t i = 0; i < count; i++) {
                starts[o][i].begin = at;
                starts[o][i].end = at + rand () % 6;
                at = starts[o][i].end + 2 + rand () % 9;
            }
            offers[o] = offer (o / 3, o % 3, 1 + rand () % 9, starts[o], count);
            offers[o].walltime = round % 4 < 2 ? 5 : 1 + rand () % 12;
        }
        time_us end = 0;
        credit_micro price = 0;
        bool found = searched (&problem, &end, &price);
        int rc = choose_group (&problem, &result, NULL);
        assert_int_equal (rc == 0, found);
        if (!found)
            continue;
        solved++;
        assert_int_equal (result.completion, end);
        assert_int_equal (result.price, price);
        for (uint32_t p = 0; p < 3; p++)
            assert_true (may_start (&problem, &offers[result.offer[p]], result.start));
    }
    assert_in_range (solved, 500, 3500);
}

/* ---- sets: sites that answer for several parts at once */

enum { W_PARTS = 5, W_SITES = 3, W_TIME = 40, W_SETS = 200 };

/* So many processors are free at each site at each moment. */
struct whole {
    uint32_t free[W_SITES][W_TIME];
    uint32_t procs[W_PARTS];
    struct choose_part part[W_PARTS];
    struct choose_offer offer[W_PARTS * W_SITES];
    struct choose_interval starts[W_PARTS * W_SITES][W_TIME];
    struct choose_set set[W_SETS];
    struct choose_step step[W_SETS][W_TIME];
    struct choose_problem problem;
    bool mute[W_SITES]; /* does not answer for sets */
};

/* Whether these parts fit together at the site when the common moment is t. */
static bool fit_there (const struct whole *w, uint32_t site, uint32_t parts, time_us t)
{
    for (time_us at = 0; at < W_TIME; at++) {
        uint32_t used = 0;
        for (uint32_t p = 0; p < W_PARTS; p++) {
            time_us begin = t + w->part[p].offset;
            if ((parts >> p & 1) && at >= begin && at < begin + w->part[p].walltime)
                used += w->procs[p];
            if ((parts >> p & 1) && (begin < 0 || begin + w->part[p].walltime > W_TIME))
                return false;
        }
        if (used > w->free[site][at])
            return false;
    }
    return true;
}

/* The earliest moment at which any assignment can begin, by looking at all of them; -1: never. */
static time_us first_of_all (const struct whole *w, time_us now)
{
    uint32_t ways = 1;
    for (uint32_t p = 0; p < W_PARTS; p++)
        ways *= W_SITES;
    for (time_us t = now; t < W_TIME; t++)
        for (uint32_t way = 0; way < ways; way++) {
            uint32_t at[W_SITES] = {0}, left = way;
            bool all = true;
            for (uint32_t p = 0; p < W_PARTS; p++, left /= W_SITES)
                at[left % W_SITES] |= 1u << p;
            for (uint32_t s = 0; s < W_SITES && all; s++)
                all = fit_there (w, s, at[s], t);
            if (all)
                return t;
        }
    return -1;
}

static void whole_draw (struct whole *w)
{
    memset (w, 0, sizeof *w);
    uint32_t likes = 1 + (uint32_t)rand () % 3;
    for (uint32_t p = 0; p < W_PARTS; p++) {
        uint32_t kind = (uint32_t)rand () % likes;
        w->part[p] = (struct choose_part){"p", kind == 2 ? 3 : 0, 2 + kind * 3, 1 + kind};
        w->procs[p] = 1 + kind;
    }
    for (uint32_t s = 0; s < W_SITES; s++) {
        w->mute[s] = rand () % 20 == 0;
        for (time_us t = 0; t < W_TIME; t++)
            w->free[s][t] = t && rand () % 4 ? w->free[s][t - 1] : (uint32_t)rand () % 7;
    }
    for (uint32_t o = 0; o < W_PARTS * W_SITES; o++) {
        uint32_t p = o / W_SITES, s = o % W_SITES, count = 0;
        for (time_us t = 0; t < W_TIME; t++)
            if (fit_there (w, s, 1u << p, t - w->part[p].offset)) {
                if (count && w->starts[o][count - 1].end == t - 1)
                    w->starts[o][count - 1].end = t;
                else
                    w->starts[o][count++] = (struct choose_interval){t, t};
            }
        w->offer[o] = offer (p, s, 1, w->starts[o], count);
        w->offer[o].walltime = w->part[p].walltime;
        w->offer[o].procs = w->procs[p];
    }
    w->problem = (struct choose_problem){.part = w->part,
                                         .part_count = W_PARTS,
                                         .offer = w->offer,
                                         .offer_count = W_PARTS * W_SITES,
                                         .set = w->set,
                                         .now = rand () % 5};
}

/* The site answers what it would get: from that moment on, for as long as it cares to look. */
static void site_asked (struct whole *w, const struct choose_result *result, uint32_t site)
{
    struct choose_set *set = &w->set[w->problem.set_count];
    struct choose_step *step = w->step[w->problem.set_count++];
    assert_true (w->problem.set_count < W_SETS);
    *set = (struct choose_set){.site = site, .from = result->start, .step = step};
    for (uint32_t p = 0; p < W_PARTS; p++)
        if (w->offer[result->offer[p]].site == site)
            set->part[set->count++] = p;
    if (w->mute[site]) {
        set->until = INT64_MAX;
        return;
    }
    set->until = set->from + rand () % W_TIME;
    set->looked = rand () % 3 ? set->count : 2;
    for (time_us t = set->from; t <= set->until; t++) {
        uint32_t parts = 0, fit = 0;
        while (fit < set->looked && fit_there (w, site, parts | 1u << set->part[fit], t))
            parts |= 1u << set->part[fit++];
        if (fit)
            step[set->step_count++] = (struct choose_step){t, t, fit};
    }
}

/* Asking what is in doubt until nothing is leads to the earliest of all that is possible. */
static void doubts_lead_to_the_first_of_all (void **state)
{
    static struct whole w;
    uint32_t solved = 0, asked = 0;
    (void)state;
    srand (7);
    for (int round = 0; round < 400; round++) {
        struct choose_result result = {0};
        uint32_t site[CHOOSE_PARTS_MAX], doubts = 1;
        bool exact = true;
        int rc = 0;
        whole_draw (&w);
        while (doubts && (rc = choose_group (&w.problem, &result, NULL)) == 0) {
            doubts = choose_doubts (&w.problem, &result, site);
            for (uint32_t i = 0; i < doubts; i++) {
                site_asked (&w, &result, site[i]);
                exact = exact && w.set[w.problem.set_count - 1].looked ==
                                     w.set[w.problem.set_count - 1].count;
                asked++;
            }
        }
        time_us first = first_of_all (&w, w.problem.now);
        if (rc == 0 && exact)
            assert_int_equal (result.start, first);
        else if (rc == 0)
            assert_true (first < 0 || result.start <= first);
        else
            assert_int_equal (first, -1);
        solved += rc == 0 && exact;
    }
    assert_in_range (solved, 100, 390);
    assert_true (asked > 300);
}

/* 8 tasks for 40, 16 for 20 or 32 for 10: the size that ends first, or that costs least in time. */
static void sizes (void **state)
{
    const struct choose_interval late[] = {{35, 1000}}, mid[] = {{12, 1000}};
    struct choose_offer offers[] = {offer (0, 0, 40, any, 1), offer (0, 0, 50, mid, 1),
                                    offer (0, 0, 60, late, 1)};
    struct choose_part parts[] = {{"a", 0, 40, 0}};
    struct choose_problem problem = {
        .part = parts, .part_count = 1, .offer = offers, .offer_count = 3};
    struct choose_result result;
    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        offers[i].shape = i;
        offers[i].walltime = 40 >> i;
    }
    assert_int_equal (choose_group (&problem, &result, NULL), 0);
    assert_int_equal (result.offer[0], 1); /* it starts later and ends first */
    assert_int_equal (result.start, 12);
    assert_int_equal (result.completion, 32);
    problem.prefer = CHOOSE_CHEAPEST;
    problem.deadline = 60;
    assert_int_equal (choose_group (&problem, &result, NULL), 0);
    assert_int_equal (result.offer[0], 0);
    problem.deadline = 39; /* too late for the cheapest */
    assert_int_equal (choose_group (&problem, &result, NULL), 0);
    assert_int_equal (result.offer[0], 1);
    problem.deadline = 0;
    problem.prefer = CHOOSE_EARLIEST;
    problem.cost_max = 45; /* a bound on the cost picks among sizes at one moment too */
    assert_int_equal (choose_group (&problem, &result, NULL), 0);
    assert_int_equal (result.offer[0], 0);
}

static void the_latest_start (void **state)
{
    const struct choose_interval late[] = {{50, 90}};
    struct choose_offer offers[] = {offer (0, 0, 1, any, 1), offer (1, 1, 1, late, 1)};
    struct choose_part parts[] = {{"a", 0, 10, 0}, {"b", 5, 10, 0}};
    struct choose_problem problem = {
        .part = parts, .part_count = 2, .offer = offers, .offer_count = 2, .not_after = 45};
    struct choose_result result;
    struct err err;
    (void)state;
    assert_int_equal (choose_group (&problem, &result, &err), 0);
    assert_int_equal (result.start, 45);
    problem.not_after = 44;
    assert_int_equal (choose_group (&problem, &result, &err), ERR_NOT_FOUND);
    assert_non_null (strstr (err.text, "component b"));
    assert_non_null (strstr (err.text, "latest start"));
}

#define S US_PER_S

static void single_by_completion_then_price (void **state)
{
    struct choose_candidate c[] = {
        {0, 100 * S, 10 * S, 5, true, 4},      {1, 50 * S, 10 * S, 9, true, 4},
        {2, 50 * S, 10 * S, 8, true, 4},       {3, 10 * S, 10 * S, 1, false, 4},
        {4, TIME_US_NONE, 10 * S, 1, true, 4}, {5, 50 * S, 10 * S, 8, true, 4},
    };
    struct choose_bounds b = {0};
    (void)state;
    assert_int_equal (choose_single (c, 6, &b), 2);
    b.cost_max = 7;
    assert_int_equal (choose_single (c, 6, &b), 0);
    b = (struct choose_bounds){.deadline = 60 * S};
    assert_int_equal (choose_single (c, 6, &b), 2);
    b.deadline = 60 * S - 1;
    assert_int_equal (choose_single (c, 6, &b), UINT32_MAX);
    b = (struct choose_bounds){.not_after = 50 * S - 1};
    assert_int_equal (choose_single (c, 6, &b), UINT32_MAX);
    b = (struct choose_bounds){.prefer = CHOOSE_CHEAPEST};
    assert_int_equal (choose_single (c, 6, &b), 0);
    b.deadline = 109 * S; /* too late for the cheapest */
    assert_int_equal (choose_single (c, 6, &b), 2);
    b = (struct choose_bounds){0};
    assert_int_equal (choose_single (c, 0, &b), UINT32_MAX);
    c[1].walltime = 5 * S; /* of the size that ends first */
    assert_int_equal (choose_single (c, 6, &b), 1);
    c[1] = (struct choose_candidate){1, 50 * S + 3, 10 * S,
                                     8, true,       5}; /* the same second, more is free */
    assert_int_equal (choose_single (c, 6, &b), 1);
    assert_true (choose_better (&c[1], &c[2], CHOOSE_EARLIEST) &&
                 !choose_better (&c[2], &c[1], CHOOSE_EARLIEST));
    assert_true (choose_better (&c[2], &c[5], CHOOSE_CHEAPEST)); /* last: the number */
}

static void report_cells (void **state)
{
    struct choose_estimate table[] = {
        {16, 3600, 0}, {4, 3600, 30}, {4, 60, 20}, {1, 3600, 30},
        {1, 60, 10},   {4, 3600, 30}, {2, 60, 20},
    };
    (void)state;
    assert_int_equal (choose_report_prune (table, 7), 3);
    assert_int_equal (choose_report_start (table, 3, 1, 60), 10);
    assert_int_equal (choose_report_start (table, 3, 2, 60), 20);
    assert_int_equal (choose_report_start (table, 3, 2, 61), 30);
    assert_true (choose_report_start (table, 3, 8, 60) == TIME_US_NONE);
}

/* Pruning loses no answer: every question of every table as by looking at all cells. */
static void report_cells_by_hand (void **state)
{
    enum { CELLS = 40, SIDE = 9 };
    uint64_t x = 12345;
    (void)state;
    for (int round = 0; round < 200; round++) {
        struct choose_estimate all[CELLS], table[CELLS];
        for (int i = 0; i < CELLS; i++) {
            x = x * 6364136223846793005u + 1442695040888963407u;
            all[i] =
                (struct choose_estimate){(uint32_t)(x >> 33) % SIDE, (duration_us)(x >> 40) % SIDE,
                                         (time_us)(x >> 50) % (round % 20 + 2)};
        }
        memcpy (table, all, sizeof table);
        uint32_t kept = choose_report_prune (table, CELLS);
        for (uint32_t procs = 0; procs < SIDE; procs++)
            for (duration_us walltime = 0; walltime < SIDE; walltime++) {
                time_us best = TIME_US_NONE;
                for (int i = 0; i < CELLS; i++)
                    if (all[i].procs >= procs && all[i].walltime >= walltime && all[i].start &&
                        (best == TIME_US_NONE || all[i].start < best))
                        best = all[i].start;
                assert_true (choose_report_start (table, kept, procs, walltime) == best);
            }
    }
}

/* A site's word counts as much as it has held. */
static void expected_by_record (void **state)
{
    struct choose_record none = {0}, good = {100, 960000, 50, true},
                         late = {100, 940000, -50, true}, bad = {100, 475000, 50, false};
    (void)state;
    assert_int_equal (choose_expected (0, 1000, 0, &good), 1000); /* it said nothing */
    assert_int_equal (choose_expected (200, 1000, 0, &good), 150);
    assert_int_equal (choose_expected (200, 1000, 0, &late), 250);
    assert_int_equal (choose_expected (200, 1000, 180, &good), 180); /* not before now */
    assert_int_equal (choose_expected (200, 1000, 0, &none), 600);
    assert_int_equal (choose_expected (200, 1000, 0, &bad), 800);
    assert_int_equal (choose_expected (200, 0, 0, &none), 200);
}

static void record_of_the_class (void **state)
{
    struct choose_record all = {1000, 960000, 50, true}, few = {39, 100000, 0, false},
                         enough = {40, 100000, 0, false};
    (void)state;
    assert_int_equal (choose_record_of (&all, NULL).count, 1000);
    assert_int_equal (choose_record_of (&all, &few).count, 1000);
    assert_int_equal (choose_record_of (&all, &enough).count, 40);
    assert_int_equal (choose_record_of (NULL, &few).count, 0);
    assert_int_equal (choose_record_of (NULL, NULL).count, 0);
}

static void test_moves (void **state)
{
    (void)state;
    const struct choose_move_policy policy = {.gain = 60 * US_PER_S, .share_ppm = 250000};
    const time_us now = 1000 * US_PER_S;
    const struct {
        int64_t stays, goes; /* seconds from now; INT32_MAX: unknown */
        bool moves;
    } given[] = {
        {600, 0, true},        {60, 0, true},           {59, 0, false}, /* too little gained */
        {1000, 750, true},     {1000, 751, false},                      /* … of so long a wait */
        {0, 0, false},         {-5, 0, false},          {100, 200, false},
        {INT32_MAX, 0, false}, {600, INT32_MAX, false},
    };
    for (size_t i = 0; i < sizeof given / sizeof given[0]; i++) {
        time_us stays =
            given[i].stays == INT32_MAX ? TIME_US_NONE : now + given[i].stays * US_PER_S;
        time_us goes = given[i].goes == INT32_MAX ? TIME_US_NONE : now + given[i].goes * US_PER_S;
        if (choose_moves (stays, goes, now, &policy) != given[i].moves)
            fail_msg ("case %zu", i);
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_moves),
        cmocka_unit_test (earliest_common_start),
        cmocka_unit_test (touching_ends_are_common),
        cmocka_unit_test (offsets_shift),
        cmocka_unit_test (deadline_and_not_before),
        cmocka_unit_test (hint_binds_one_site),
        cmocka_unit_test (earliest_then_cheapest),
        cmocka_unit_test (capacity_of_one_site),
        cmocka_unit_test (a_part_without_start_is_named),
        cmocka_unit_test (limits),
        cmocka_unit_test (equals_a_search),
        cmocka_unit_test (doubts_lead_to_the_first_of_all),
        cmocka_unit_test (sizes),
        cmocka_unit_test (the_latest_start),
        cmocka_unit_test (single_by_completion_then_price),
        cmocka_unit_test (report_cells),
        cmocka_unit_test (report_cells_by_hand),
        cmocka_unit_test (expected_by_record),
        cmocka_unit_test (record_of_the_class),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
