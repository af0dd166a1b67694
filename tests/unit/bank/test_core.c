/* Prices, and what the core refuses by itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

#include "bank/core/ledger.h"

/* At a plain rate. */
static int plain (int64_t procs, duration_us time, int64_t ppm, enum price_rounding rounding,
                  credit_micro *amount, struct err *err)
{
    struct price_terms terms = price_terms_plain (ppm);
    struct price_use use = {.procs = procs, .time = time};
    return price_compute (&terms, &use, rounding, amount, err);
}

static void prices (void **state)
{
    (void)state;
    credit_micro amount;
    struct err err = {0};
    char text[PRICE_FORMULA_MAX];
    assert_int_equal (0, plain (8, 3600 * US_PER_S, 1250000, PRICE_HOLD, &amount, &err));
    assert_int_equal (amount, INT64_C (36000) * MICRO_PER_CREDIT);
    struct price_terms terms = price_terms_plain (1250000);
    struct price_use use = {.procs = 8, .time = 3600 * US_PER_S};
    assert_string_equal (price_formula (&terms, &use, PRICE_HOLD, amount, text),
                         "8 procs * 3600 s * 1.25 = 36000 credits");
    /* One microsecond at a third of a credit: up for a hold, down for a charge. */
    assert_int_equal (0, plain (1, 1, 333333, PRICE_HOLD, &amount, &err));
    assert_int_equal (amount, 1);
    assert_int_equal (0, plain (1, 1, 333333, PRICE_CHARGE, &amount, &err));
    assert_int_equal (amount, 0);
    assert_int_equal (ERR_INVALID, plain (0, 1, 1, PRICE_HOLD, &amount, &err));
    assert_int_equal (ERR_INVALID, plain (-1, 1, 1, PRICE_HOLD, &amount, &err));
    assert_int_equal (ERR_INVALID, plain (1, -1, 1, PRICE_HOLD, &amount, &err));
    assert_int_equal (ERR_INVALID, plain (1, INT64_MAX, 1, PRICE_HOLD, &amount, &err));
    assert_int_equal (ERR_INVALID, plain (1, 1, -1, PRICE_HOLD, &amount, &err));
    assert_int_equal (ERR_LIMIT, plain (PRICE_PROCS_MAX, PRICE_TIME_US_MAX, PRICE_PPM_MAX,
                                        PRICE_HOLD, &amount, &err));
}

#define HOUR (3600 * US_PER_S)

static void says (const struct price_terms *terms, const struct price_use *use,
                  enum price_rounding rounding, credit_micro wanted, const char *formula)
{
    char text[PRICE_FORMULA_MAX];
    credit_micro amount;
    struct err err = {0};
    assert_int_equal (0, price_compute (terms, use, rounding, &amount, &err));
    assert_int_equal (amount, wanted);
    assert_string_equal (price_formula (terms, use, rounding, amount, text), formula);
}

/* Worked by hand. */
static void factors (void **state)
{
    (void)state;
    struct price_terms t = price_terms_plain (1250000);
    struct price_use use = {.procs = 8, .time = HOUR};
    t.qos_ppm = 2000000;
    says (&t, &use, PRICE_HOLD, 72000 * MICRO_PER_CREDIT,
          "8 procs * 3600 s * 1.25 * qos 2 = 72000 credits");
    t.class_ppm = 1500000;
    t.group_ppm = 1200000;
    says (&t, &use, PRICE_HOLD, 129600 * MICRO_PER_CREDIT,
          "8 procs * 3600 s * 1.25 * qos 2 * class 1.5 * co-reserved 1.2 = 129600 credits");
    t.extra_parts =
        INT64_C (3200000) * PRICE_PARTS; /* 3600 s * 3.2 = 11520; (36000 + 11520) * 3.6 */
    says (&t, &use, PRICE_HOLD, 171072 * MICRO_PER_CREDIT,
          "(8 procs * 3600 s * 1.25 + 3600 s * 3.2 for memory and gres) * qos 2 * class 1.5 * "
          "co-reserved 1.2 = 171072 credits");
    t = price_terms_plain (1250000);
    t.measure = PRICE_CPU;
    use.cpu = 7200 * US_PER_S; /* of 28,800 */
    says (&t, &use, PRICE_CHARGE, 9000 * MICRO_PER_CREDIT, "7200 cpu s * 1.25 = 9000 credits");
    says (&t, &use, PRICE_HOLD, 36000 * MICRO_PER_CREDIT,
          "8 procs * 3600 s * 1.25 = 36000 credits");
    use.cpu = 40000 * US_PER_S; /* a clock that ran too fast costs no more than the hold */
    says (&t, &use, PRICE_CHARGE, 36000 * MICRO_PER_CREDIT, "28800 cpu s * 1.25 = 36000 credits");
    t.measure = PRICE_PE;
    use.pe_milli = 9500;
    says (&t, &use, PRICE_CHARGE, 42750 * MICRO_PER_CREDIT,
          "9.5 PE * 3600 s * 1.25 = 42750 credits");
    /* The largest of everything is refused, not wrapped. */
    credit_micro amount;
    struct err err = {0};
    t = (struct price_terms){.base_ppm = PRICE_PPM_MAX,
                             .extra_parts = PRICE_PPM_MAX * PRICE_PARTS,
                             .qos_ppm = PRICE_FACTOR_MAX,
                             .class_ppm = PRICE_FACTOR_MAX,
                             .group_ppm = PRICE_FACTOR_MAX,
                             .machine_ppm = PRICE_FACTOR_MAX,
                             .node_weight = (uint64_t)32 * PRICE_PROCS_MAX * PRICE_FACTOR_MAX,
                             .node_procs = 1};
    use = (struct price_use){.procs = PRICE_PROCS_MAX, .time = PRICE_TIME_US_MAX};
    assert_int_equal (ERR_LIMIT, price_compute (&t, &use, PRICE_HOLD, &amount, &err));
}

/* 100 MB at 0.00025 per second and 1024 MB: rounded once, not for every second. */
static void memory (void **state)
{
    (void)state;
    struct price_terms t = price_terms_plain (0);
    struct price_use use = {.procs = 1, .time = HOUR};
    t.extra_parts = 100 * 250; /* * 3600 / 1024 = 87890.6 */
    says (&t, &use, PRICE_HOLD, 87891,
          "(1 procs * 3600 s * 0 + 3600 s * 0.000024 for memory and gres) = 0.087891 credits");
    says (&t, &use, PRICE_CHARGE, 87890,
          "(1 procs * 3600 s * 0 + 3600 s * 0.000024 for memory and gres) = 0.08789 credits");
}

/* Thursday 1 January 1970 is day 0. */
static void times_of_day (void **state)
{
    (void)state;
    struct price_band band[2];
    struct price_terms t = price_terms_plain (1000000);
    struct err err = {0};
    assert_int_equal (0, price_band_parse ("Mon-Fri 08:00-18:00", 1500000, &band[0], &err));
    assert_int_equal (0, price_band_parse ("Sat,Sun 00:00-24:00", 500000, &band[1], &err));
    t.band = band;
    t.band_count = 2;
    /* Friday 17:00 to Saturday 01:00: 1 h at 1.5, 6 h at 1, 1 h at 0.5. */
    struct price_use use = {.procs = 1, .time = 8 * HOUR, .start = 24 * HOUR + 17 * HOUR};
    says (&t, &use, PRICE_CHARGE, 3600 * 8 * MICRO_PER_CREDIT,
          "1 procs * 28800 s * 1 = 28800 credits");
    use.time = 3 * HOUR; /* 1.5 + 2 of 3 */
    says (&t, &use, PRICE_CHARGE, 12600 * MICRO_PER_CREDIT,
          "1 procs * 10800 s * 1 * time of day 1.166666 = 12600 credits");
    says (&t, &use, PRICE_HOLD, 16200 * MICRO_PER_CREDIT,
          "1 procs * 10800 s * 1 * time of day 1.5 = 16200 credits");
    use = (struct price_use){.procs = 1, .time = 14 * 24 * HOUR, .start = -5 * HOUR};
    /* Two whole weeks: 2 * (50 h at 1.5 + 48 h at .5 + 70 h at 1). */
    says (&t, &use, PRICE_CHARGE, INT64_C (3600) * 338 * MICRO_PER_CREDIT,
          "1 procs * 1209600 s * 1 * time of day 1.005952 = 1216800 credits");
    static const char *const bad[] = {"",
                                      "Mon",
                                      "Mon 08:00",
                                      "Mon-Fri 8:00-18:00",
                                      "Mon 08:00-25:00",
                                      "Mon 08:60-09:00",
                                      "Mon 18:00-08:00",
                                      "Day 08:00-09:00",
                                      "Mon,, 08:00-09:00",
                                      "Mon 08:00-09:00x"};
    for (size_t i = 0; i < sizeof (bad) / sizeof (bad[0]); i++)
        assert_int_equal (ERR_INVALID, price_band_parse (bad[i], 1, &band[0], &err));
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
        assert_int_equal (0, plain (procs, asked, ppm, PRICE_HOLD, &hold, NULL));
        assert_int_equal (0, plain (procs, used < 0 ? 0 : used, ppm, PRICE_CHARGE, &charge, NULL));
        assert_true (charge <= hold);
        assert_int_equal (0, plain (procs, asked, ppm, PRICE_CHARGE, &charge, NULL));
        assert_true (charge <= hold && hold - charge <= 1);
    }
}

static int64_t draw (uint64_t *seed, int64_t bound)
{
    *seed = *seed * UINT64_C (6364136223846793005) + UINT64_C (1442695040888963407);
    return (int64_t)(*seed >> 33) % bound;
}

/* … and whatever a card says; more use never costs less. */
static void a_charge_fits_its_hold_at_any_card (void **state)
{
    (void)state;
    uint64_t seed = 7;
    for (int i = 0; i < 5000; i++) {
        struct price_band band[3];
        struct price_terms t = {.measure = (enum price_measure)draw (&seed, 3),
                                .base_ppm = draw (&seed, 3000000),
                                .extra_parts = draw (&seed, 2) * draw (&seed, 5000000000),
                                .qos_ppm = draw (&seed, 4000000),
                                .class_ppm = draw (&seed, 4000000),
                                .group_ppm = draw (&seed, 2000000),
                                .machine_ppm = draw (&seed, 2000000),
                                .node_weight = (uint64_t)draw (&seed, 2000000),
                                .node_procs = (uint64_t)draw (&seed, 64),
                                .band = band,
                                .band_count = (uint32_t)draw (&seed, 4)};
        for (uint32_t k = 0; k < t.band_count; k++) {
            int32_t from = (int32_t)draw (&seed, 86400);
            band[k] = (struct price_band){(uint8_t)draw (&seed, 128), from,
                                          from + 1 + (int32_t)draw (&seed, 86400 - from),
                                          draw (&seed, 3000000)};
        }
        struct price_use asked = {.procs = draw (&seed, 5000) + 1,
                                  .time =
                                      draw (&seed, 30 * 86400) * US_PER_S + draw (&seed, 1000000),
                                  .pe_milli = draw (&seed, 2) * draw (&seed, 5000000)};
        struct price_use less = asked, used = asked;
        credit_micro hold, first, second;
        used.start = draw (&seed, 1000000) * US_PER_S;
        used.cpu = draw (&seed, 2) * draw (&seed, 1 << 30) * 100;
        less = used;
        less.time = draw (&seed, used.time / US_PER_S + 1) * US_PER_S;
        less.procs = used.procs - draw (&seed, used.procs);
        assert_int_equal (0, price_compute (&t, &asked, PRICE_HOLD, &hold, NULL));
        assert_int_equal (0, price_compute (&t, &used, PRICE_CHARGE, &second, NULL));
        assert_true (second <= hold);
        if (t.measure == PRICE_CPU && t.band_count)
            continue; /* used time is spread over the run: a shorter run may fall on dearer hours */
        assert_int_equal (0, price_compute (&t, &less, PRICE_CHARGE, &first, NULL));
        assert_true (first <= second);
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
    req.charge.tolerance = 86400 * US_PER_S;
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
    /* The hold of that name of before a restore was another job's: this one stays. */
    struct ledger_request other = {
        .kind = LEDGER_RELEASE, .client = "nui://t/site/alpha", .on_behalf = "", .key.b = {200}};
    other.release.site = "alpha";
    other.release.hold_id = "hold.7";
    other.release.site_job = "alpha.9";
    other.release.reason = "";
    ledger_decide (view, &other, &out);
    assert_int_equal (ERR_NOT_FOUND, out.code);
    assert_true (hold->open);

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
    /* What is missing so far behind never comes: a gap does not stay for good. */
    assert_int_equal (0, site->ahead_count);
    assert_int_equal (2000 + 2 * LEDGER_AHEAD_MAX - 1, site->acked);
    ledger_view_destroy (view);
    arena_destroy (arena);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (prices),
        cmocka_unit_test (a_charge_fits_its_hold),
        cmocka_unit_test (quotes),
        cmocka_unit_test (overrun_order),
        cmocka_unit_test (outbox_numbers),
        cmocka_unit_test (factors),
        cmocka_unit_test (memory),
        cmocka_unit_test (times_of_day),
        cmocka_unit_test (a_charge_fits_its_hold_at_any_card),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
