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
    return (struct choose_offer){.part = part, .site = site, .procs = 1, .price = price,
                                 .not_before = TIME_US_NONE, .starts = starts,
                                 .start_count = count};
}

static void earliest_common_start (void **state)
{
    const struct choose_interval a[] = {{0, 10}, {50, 60}, {100, 200}};
    const struct choose_interval b[] = {{20, 40}, {55, 90}};
    struct choose_offer offers[] = {offer (0, 0, 1, a, 3), offer (1, 1, 1, b, 2)};
    struct choose_part parts[] = {{"a", 0, 10}, {"b", 0, 10}};
    struct choose_problem problem = {.part = parts, .part_count = 2, .offer = offers,
                                     .offer_count = 2};
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
    struct choose_part parts[] = {{"a", 0, 10}, {"b", 0, 10}};
    struct choose_problem problem = {.part = parts, .part_count = 2, .offer = offers,
                                     .offer_count = 2};
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
    struct choose_part parts[] = {{"stage", -60, 10}, {"run", 0, 10}};
    struct choose_problem problem = {.part = parts, .part_count = 2, .offer = offers,
                                     .offer_count = 2};
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
    struct choose_part parts[] = {{"a", 0, 10}, {"b", 5, 50}};
    struct choose_problem problem = {.part = parts, .part_count = 2, .offer = offers,
                                     .offer_count = 2, .not_before = 40, .deadline = 95};
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
    struct choose_part parts[] = {{"a", 0, 10}, {"b", 0, 10}};
    struct choose_problem problem = {.part = parts, .part_count = 2, .offer = offers,
                                     .offer_count = 2};
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
    struct choose_part parts[] = {{"a", 0, 10}, {"b", 0, 10}};
    struct choose_problem problem = {.part = parts, .part_count = 2, .offer = offers,
                                     .offer_count = 5, .now = 7};
    struct choose_result result;
    (void)state;
    assert_int_equal (choose_group (&problem, &result, NULL), 0);
    assert_int_equal (result.start, 7);      /* not the cheap one at 100 */
    assert_int_equal (result.offer[0], 0);   /* equal price: the lower site */
    assert_int_equal (result.offer[1], 4);   /* the cheaper one */
    assert_int_equal (result.price, 13);
    problem.cost_max = 5; /* now the later, cheaper combination is the first that is allowed */
    assert_int_equal (choose_group (&problem, &result, NULL), 0);
    assert_int_equal (result.start, 100);
    assert_int_equal (result.price, 5);
    problem.cost_max = 4;
    assert_int_equal (choose_group (&problem, &result, NULL), ERR_NOT_FOUND);
}

static void capacity_of_one_site (void **state)
{
    struct choose_offer offers[] = {
        offer (0, 0, 1, any, 1), offer (0, 1, 9, any, 1),
        offer (1, 0, 1, any, 1), offer (1, 1, 5, any, 1),
    };
    struct choose_part parts[] = {{"a", 0, 10}, {"b", 0, 10}};
    struct choose_problem problem = {.part = parts, .part_count = 2, .offer = offers,
                                     .offer_count = 4};
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
    struct choose_part parts[] = {{"left", 0, 10}, {"right", 0, 10}};
    struct choose_problem problem = {.part = parts, .part_count = 2, .offer = offers,
                                     .offer_count = 1};
    struct choose_result result;
    struct err err;
    (void)state;
    assert_int_equal (choose_group (&problem, &result, &err), ERR_NOT_FOUND);
    assert_non_null (strstr (err.text, "right"));
}

static void limits (void **state)
{
    struct choose_part parts[] = {{"a", 0, 10}};
    struct choose_problem problem = {.part = parts, .part_count = 0};
    struct choose_result result;
    (void)state;
    assert_int_equal (choose_group (&problem, &result, NULL), ERR_LIMIT);
    problem.part_count = CHOOSE_PARTS_MAX + 1;
    assert_int_equal (choose_group (&problem, &result, NULL), ERR_LIMIT);
}

/* The sweep against a search over every moment, on random small problems. */
static void equals_a_search (void **state)
{
    (void)state;
    srand (42);
    for (int round = 0; round < 3000; round++) {
        struct choose_interval starts[9][4];
        struct choose_offer offers[9];
        struct choose_part parts[3] = {{"a", 0, 5}, {"b", rand () % 7 - 3, 5}, {"c", 0, 5}};
        struct choose_problem problem = {.part = parts, .part_count = 3, .offer = offers,
                                         .offer_count = 9, .now = rand () % 10,
                                         .deadline = 30 + rand () % 40};
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
        }
        time_us best = -1;
        credit_micro price = 0;
        for (time_us t = 0; t < 100 && best < 0; t++) {
            price = 0;
            bool all = true;
            for (uint32_t p = 0; p < 3 && all; p++) {
                credit_micro least = -1;
                time_us own = t + parts[p].offset;
                for (uint32_t o = 3 * p; o < 3 * p + 3; o++)
                    for (uint32_t i = 0; i < offers[o].start_count; i++)
                        if (own >= problem.now && own >= starts[o][i].begin &&
                            own <= starts[o][i].end && own + 5 <= problem.deadline &&
                            (least < 0 || offers[o].price < least))
                            least = offers[o].price;
                all = least >= 0;
                price += least;
            }
            if (all)
                best = t;
        }
        int rc = choose_group (&problem, &result, NULL);
        assert_int_equal (rc, best < 0 ? ERR_NOT_FOUND : 0);
        if (best >= 0) {
            assert_int_equal (result.start, best);
            assert_int_equal (result.price, price);
        }
    }
}

#define S US_PER_S

static void single_by_completion_then_price (void **state)
{
    struct choose_candidate c[] = {
        {0, 100 * S, 5, true, 4}, {1, 50 * S, 9, true, 4},        {2, 50 * S, 8, true, 4},
        {3, 10 * S, 1, false, 4}, {4, TIME_US_NONE, 1, true, 4}, {5, 50 * S, 8, true, 4},
    };
    (void)state;
    assert_int_equal (choose_single (c, 6, 10 * S, 0, 0), 2);
    assert_int_equal (choose_single (c, 6, 10 * S, 0, 7), 0);
    assert_int_equal (choose_single (c, 6, 60 * S, 110 * S, 0), 2);
    assert_int_equal (choose_single (c, 6, 61 * S, 110 * S, 0), UINT32_MAX);
    assert_int_equal (choose_single (c, 0, 10 * S, 0, 0), UINT32_MAX);
    c[1] = (struct choose_candidate){1, 50 * S + 3, 8, true, 5}; /* the same second, more is free */
    assert_int_equal (choose_single (c, 6, 10 * S, 0, 0), 1);
    assert_true (choose_better (&c[1], &c[2]) && !choose_better (&c[2], &c[1]));
    assert_true (choose_better (&c[2], &c[5])); /* last: the number */
}

static void report_cells (void **state)
{
    const struct choose_estimate table[] = {
        {1, 60, 10}, {4, 60, 20}, {4, 3600, 30}, {16, 3600, 0},
    };
    (void)state;
    assert_int_equal (choose_report_start (table, 4, 1, 60), 10);
    assert_int_equal (choose_report_start (table, 4, 2, 60), 20);
    assert_int_equal (choose_report_start (table, 4, 2, 61), 30);
    assert_true (choose_report_start (table, 4, 8, 60) == TIME_US_NONE);
}

/* A site's word counts as much as it has held. */
static void expected_by_record (void **state)
{
    struct choose_record none = {0}, good = {100, 960000, 50, true}, late = {100, 940000, -50, true},
                         bad = {100, 475000, 50, false};
    (void)state;
    assert_int_equal (choose_expected (0, 1000, 0, &good), 1000); /* it said nothing */
    assert_int_equal (choose_expected (200, 1000, 0, &good), 150);
    assert_int_equal (choose_expected (200, 1000, 0, &late), 250);
    assert_int_equal (choose_expected (200, 1000, 180, &good), 180); /* not before now */
    assert_int_equal (choose_expected (200, 1000, 0, &none), 600);
    assert_int_equal (choose_expected (200, 1000, 0, &bad), 800);
    assert_int_equal (choose_expected (200, 0, 0, &none), 200);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
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
        cmocka_unit_test (single_by_completion_then_price),
        cmocka_unit_test (report_cells),
        cmocka_unit_test (expected_by_record),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
