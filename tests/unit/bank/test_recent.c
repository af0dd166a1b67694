/* The holds of a moment ago: as many as are under way at once are all known, and what is not as it was is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

#include "bank/store/recent.h"

enum { UNDER_WAY = 1024, ALL = 2 * RECENT_SETS * RECENT_WAYS };

struct world {
    struct arena *keep, *arena;
    struct ledger_view *view;
    struct recent *recent;
};

static void view_new (struct world *w)
{
    ledger_view_destroy (w->view);
    arena_reset (w->keep);
    arena_reset (w->arena);
    w->view = ledger_view_create (w->keep, 0);
    ledger_view_again (w->view, w->arena, 1);
}

static int up (void **state)
{
    static struct world w;
    w = (struct world){.keep = arena_create (1 << 16),
                       .arena = arena_create (1 << 16),
                       .recent = recent_create ()};
    view_new (&w);
    *state = &w;
    return 0;
}

static int down (void **state)
{
    struct world *w = *state;
    ledger_view_destroy (w->view);
    recent_destroy (w->recent);
    arena_destroy (w->arena);
    arena_destroy (w->keep);
    return 0;
}

static struct ledger_job job_of (struct world *w, int64_t number)
{
    return (struct ledger_job){.site = "alpha",
                               .site_job = arena_printf (w->arena, "alpha.%lld", (long long)number),
                               .component = "main",
                               .grid_job = "grid.1"};
}

static struct ledger_hold *hold_of (struct world *w, int64_t number)
{
    struct ledger_hold *hold = ledger_add_hold (w->view, number);
    hold->job = job_of (w, number);
    hold->identity = "nui://test/user/alice";
    hold->qos = hold->machine = hold->nodes = "";
    hold->leg = arena_new (w->arena, struct ledger_leg);
    hold->leg_count = 1;
    hold->leg[0].amount = number;
    hold->is_new = hold->open = true;
    return hold;
}

static void note (struct world *w, int64_t from, int64_t to)
{
    for (int64_t number = from; number < to; number++)
        hold_of (w, number);
    recent_note (w->recent, w->view);
    view_new (w);
}

static bool known (struct world *w, int64_t number, const char *hold_id)
{
    struct ledger_request req = {.kind = LEDGER_CHARGE,
                                 .charge = {.job = job_of (w, number), .hold_id = hold_id}};
    return recent_take (w->recent, &req, w->view);
}

static const char *name_of (struct world *w, int64_t number)
{
    return arena_printf (w->arena, "hold.%lld", (long long)number);
}

static void test_all_under_way_are_known (void **state)
{
    struct world *w = *state;
    note (w, 1, 1 + UNDER_WAY);
    for (int64_t number = 1; number <= UNDER_WAY; number++) {
        assert_true (known (w, number, name_of (w, number)));
        const struct ledger_hold *hold = ledger_hold_by_id (w->view, number);
        assert_non_null (hold);
        assert_int_equal (hold->leg[0].amount, number);
        assert_false (hold->is_new);
    }
    assert_false (known (w, 7, name_of (w, 8)));
    assert_false (known (w, UNDER_WAY + 1, name_of (w, UNDER_WAY + 1)));
}

static void test_the_newest_stay (void **state)
{
    struct world *w = *state;
    for (int64_t number = 1; number <= ALL; number += UNDER_WAY)
        note (w, number, number + UNDER_WAY);
    for (int64_t number = ALL - UNDER_WAY + 1; number <= ALL; number++)
        assert_true (known (w, number, name_of (w, number)));
    assert_false (known (w, 1, name_of (w, 1)));
}

static void test_what_was_touched_is_forgotten (void **state)
{
    struct world *w = *state;
    note (w, 1, 4);
    struct ledger_hold *closed = hold_of (w, 2);
    closed->is_new = closed->open = false;
    recent_note (w->recent, w->view);
    view_new (w);
    assert_true (known (w, 1, name_of (w, 1)));
    assert_false (known (w, 2, name_of (w, 2)));
    recent_forget (w->recent);
    view_new (w);
    assert_false (known (w, 3, name_of (w, 3)));
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown (test_all_under_way_are_known, up, down),
        cmocka_unit_test_setup_teardown (test_the_newest_stay, up, down),
        cmocka_unit_test_setup_teardown (test_what_was_touched_is_forgotten, up, down),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
