/* Prices, and what the core refuses by itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

#include "bank/core/ledger.h"

static void prices (void **state)
{
    (void)state;
    credit_micro amount;
    struct err err = {0};
    char text[PRICE_FORMULA_MAX];
    assert_int_equal (0, price_compute (8, 3600 * US_PER_S, 1250000, PRICE_HOLD, &amount, &err));
    assert_int_equal (amount, INT64_C (36000) * MICRO_PER_CREDIT);
    assert_string_equal (price_formula (8, 3600 * US_PER_S, 1250000, amount, text),
                         "8 procs * 3600 s * 1.25 = 36000 credits");
    /* One microsecond at a third of a credit: up for a hold, down for a charge. */
    assert_int_equal (0, price_compute (1, 1, 333333, PRICE_HOLD, &amount, &err));
    assert_int_equal (amount, 1);
    assert_int_equal (0, price_compute (1, 1, 333333, PRICE_CHARGE, &amount, &err));
    assert_int_equal (amount, 0);
    assert_int_equal (ERR_INVALID, price_compute (0, 1, 1, PRICE_HOLD, &amount, &err));
    assert_int_equal (ERR_INVALID, price_compute (-1, 1, 1, PRICE_HOLD, &amount, &err));
    assert_int_equal (ERR_INVALID, price_compute (1, -1, 1, PRICE_HOLD, &amount, &err));
    assert_int_equal (ERR_INVALID, price_compute (1, INT64_MAX, 1, PRICE_HOLD, &amount, &err));
    assert_int_equal (ERR_INVALID, price_compute (1, 1, -1, PRICE_HOLD, &amount, &err));
    assert_int_equal (ERR_LIMIT, price_compute (PRICE_PROCS_MAX, PRICE_TIME_US_MAX, PRICE_PPM_MAX,
                                                PRICE_HOLD, &amount, &err));
}

/* A charge for no more than was asked never exceeds its hold, whatever the numbers. */
static void a_charge_fits_its_hold (void **state)
{
    (void)state;
    uint64_t seed = 42;
    for (int i = 0; i < 20000; i++) {
        seed = seed * UINT64_C (6364136223846793005) + UINT64_C (1442695040888963407);
        int64_t procs = (int64_t)(seed >> 40) % 5000 + 1, ppm = (int64_t)(seed >> 20) % 3000000;
        duration_us asked = (int64_t)(seed >> 30) % (86400 * US_PER_S) + 1,
                    used = asked - (int64_t)(seed >> 50);
        credit_micro hold, charge;
        assert_int_equal (0, price_compute (procs, asked, ppm, PRICE_HOLD, &hold, NULL));
        assert_int_equal (
            0, price_compute (procs, used < 0 ? 0 : used, ppm, PRICE_CHARGE, &charge, NULL));
        assert_true (charge <= hold);
        assert_int_equal (0, price_compute (procs, asked, ppm, PRICE_CHARGE, &charge, NULL));
        assert_true (charge <= hold && hold - charge <= 1);
    }
}

static void quotes (void **state)
{
    (void)state;
    struct arena *arena = arena_create (0);
    struct ledger_view *view = ledger_view_create (arena, 1000 * US_PER_S);
    struct ledger_account *account = ledger_add_account (view, 10, "phys");
    account->project_id = 1;
    account->project = "physics";
    struct ledger_alloc *alloc = ledger_add_alloc (view, 20, 10, 0, TIME_US_MAX);
    alloc->granted = alloc->posted = 100 * MICRO_PER_CREDIT;
    struct ledger_person *person = ledger_add_person (view, 1, "nui://t/user/alice");
    struct ledger_membership *m = ledger_add_membership (view, 1, person->id, 1);
    m->valid_to = TIME_US_MAX;
    struct ledger_rate *rate = ledger_add_rate (view, "alpha", 1);
    rate->ppm = 1000000;
    struct ledger_quote_item items[] = {
        {.site = "alpha", .procs = 1, .walltime = 60 * US_PER_S},
        {.site = "alpha", .procs = 1, .walltime = 50 * US_PER_S},
    };
    struct ledger_quote quote = {.identity = "nui://t/user/alice",
                                 .account = "phys",
                                 .all_of = true,
                                 .item = items,
                                 .item_count = 2};
    struct err err = {0};
    assert_int_equal (0, ledger_quote (view, &quote, &err));
    /* Each alone is affordable, both together are not. */
    assert_true (items[0].funded && items[1].funded);
    assert_false (quote.funded);
    assert_int_equal (quote.total, 110 * MICRO_PER_CREDIT);
    assert_int_equal (quote.candidate_count, 1);
    assert_int_equal (quote.candidate[0].shortfall, 10 * MICRO_PER_CREDIT);
    items[1].site = "nowhere";
    assert_int_equal (0, ledger_quote (view, &quote, &err));
    assert_non_null (items[1].reason);
    assert_false (quote.funded);
    quote.identity = "nui://t/user/mallory";
    items[1].site = "alpha";
    assert_int_equal (0, ledger_quote (view, &quote, &err));
    assert_false (items[0].funded);
    assert_string_equal (quote.candidate[0].code, "NotMember");
    assert_int_equal (quote.candidate[0].available, 0);
    items[0].procs = -3;
    assert_int_equal (ERR_INVALID, ledger_quote (view, &quote, &err));
    ledger_view_destroy (view);
    arena_destroy (arena);
}

static struct ledger_request charge_req (const char *hold, int64_t seconds, bool final)
{
    static uint8_t n;
    struct ledger_request req = {
        .kind = LEDGER_CHARGE, .client = "nui://t/site/alpha", .on_behalf = ""};
    req.key.b[0] = ++n;
    req.charge.job = (struct ledger_job){"alpha", "alpha.1", "main", "grid.1", 0};
    req.charge.hold_id = hold;
    req.charge.account = "";
    req.charge.procs = 1;
    req.charge.start = 1000 * US_PER_S;
    req.charge.end = req.charge.start + seconds * US_PER_S;
    req.charge.final = final;
    return req;
}

/* Rule C3's order, with credit: held, available, credit, and the rest below the limit. */
static void overrun_order (void **state)
{
    (void)state;
    static const char *const source[] = {"HELD", "AVAILABLE", "CREDIT", "OVERRUN"};
    struct arena *arena = arena_create (0);
    struct ledger_view *view = ledger_view_create (arena, 1000 * US_PER_S);
    struct ledger_account *account = ledger_add_account (view, 10, "phys");
    account->project_id = 1;
    struct ledger_alloc *alloc = ledger_add_alloc (view, 20, 10, 0, TIME_US_MAX);
    alloc->granted = alloc->posted = 100 * MICRO_PER_CREDIT;
    alloc->credit_limit = 50 * MICRO_PER_CREDIT;
    ledger_add_site (view, "alpha");
    struct ledger_hold *hold = ledger_add_hold (view, 7);
    struct ledger_leg leg = {.allocation_id = 20, .amount = 60 * MICRO_PER_CREDIT};
    hold->job = (struct ledger_job){"alpha", "alpha.1", "main", "grid.1", 0};
    hold->asked_id = hold->account_id = 10;
    hold->identity = "";
    hold->rate_version = 1;
    hold->rate_ppm = 1000000;
    hold->open = true;
    hold->leg = &leg;
    hold->leg_count = 1;
    alloc->held = leg.amount;
    ledger_index_hold (view, hold);

    struct ledger_outcome out;
    struct ledger_request req = charge_req ("hold.7", 200, true);
    ledger_decide (view, &req, &out);
    assert_int_equal (0, out.code);
    assert_int_equal (200 * MICRO_PER_CREDIT, out.charge.charged);
    const struct ledger_charge *charge = view->charges.item[0];
    assert_int_equal (4, charge->leg_count);
    for (int i = 0; i < 4; i++)
        assert_string_equal (source[i], charge->leg[i].source);
    assert_int_equal (60 * MICRO_PER_CREDIT, charge->leg[0].amount);
    assert_int_equal (40 * MICRO_PER_CREDIT, charge->leg[1].amount);
    assert_int_equal (50 * MICRO_PER_CREDIT, charge->leg[2].amount);
    assert_int_equal (50 * MICRO_PER_CREDIT, charge->leg[3].amount);
    assert_int_equal (-100 * MICRO_PER_CREDIT, alloc->posted);
    assert_int_equal (0, alloc->held);
    assert_int_equal (-50 * MICRO_PER_CREDIT, ledger_room (alloc));
    /* Absurd amounts do not overflow the books: they wait in suspense. */
    for (int i = 1; i <= 12; i++) {
        req = charge_req ("", 100000000, true);
        req.charge.job.incarnation = i;
        req.charge.procs = PRICE_PROCS_MAX / 10;
        ledger_decide (view, &req, &out);
    }
    ledger_view_destroy (view);
    arena_destroy (arena);
}

/* The site's outbox numbers: the highest contiguous one, whatever the order. */
static void outbox_numbers (void **state)
{
    (void)state;
    static const struct {
        uint64_t sent, acked;
    } step[] = {{2, 0}, {4, 0}, {1, 2}, {1, 2}, {0, 2}, {3, 4}, {5, 5}, {1000, 5}};
    struct arena *arena = arena_create (0);
    struct ledger_view *view = ledger_view_create (arena, 1000 * US_PER_S);
    struct ledger_site *site = ledger_add_site (view, "alpha");
    for (size_t i = 0; i < sizeof (step) / sizeof (step[0]); i++) {
        struct ledger_request req = charge_req ("hold.99", 1, false);
        struct ledger_outcome out;
        req.charge.sequence = step[i].sent;
        ledger_decide (view, &req, &out);
        assert_int_equal (ERR_NOT_FOUND, out.code); /* refused, and acknowledged all the same */
        assert_int_equal (step[i].acked, site->acked);
    }
    for (uint64_t n = 2000; n < 2000 + 2 * LEDGER_AHEAD_MAX; n++) {
        struct ledger_request req = charge_req ("hold.99", 1, false);
        struct ledger_outcome out;
        req.charge.sequence = n;
        ledger_decide (view, &req, &out);
    }
    assert_int_equal (LEDGER_AHEAD_MAX, site->ahead_count);
    assert_int_equal (5, site->acked);
    ledger_view_destroy (view);
    arena_destroy (arena);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (prices),         cmocka_unit_test (a_charge_fits_its_hold),
        cmocka_unit_test (quotes),         cmocka_unit_test (overrun_order),
        cmocka_unit_test (outbox_numbers),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
