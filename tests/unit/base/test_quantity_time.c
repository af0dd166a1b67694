#include "unit.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "proto/base/quantity.h"

static const int64_t S = US_PER_S;

static void zone (const char *tz)
{
    setenv ("TZ", tz, 1);
    tzset ();
}

static void durations (void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t seconds;
        const char *back;
    } good[] = {
        {"0", 0, "00:00:00"},
        {"59", 59, "00:00:59"},
        {"3600", 3600, "1:00:00"},
        {"2:30", 150, "00:02:30"},
        {"90:00", 5400, "1:30:00"},
        {"24:00:00", 86400, "1:00:00:00"},
        {"1:02:03:04", 93784, "1:02:03:04"},
        {"0:00:00:01", 1, "00:00:01"},
        {"2-12", 216000, "2:12:00:00"},
        {"1-00:30", 88200, "1:00:30:00"},
        {"1-02:03:04", 93784, "1:02:03:04"},
        {"10:00:00", 36000, "10:00:00"},
        {"500:00:00", 1800000, "20:20:00:00"},
    };
    struct err err = {0};
    char buf[QUANTITY_TEXT_MAX];
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        int64_t d = -1;
        assert_ok (duration_parse (good[i].text, &d, &err), err);
        assert_true (d == good[i].seconds * S);
        assert_string_equal (duration_format (d, buf), good[i].back);
    }
    int64_t d = 3;
    assert_ok (duration_parse ("infinity", &d, &err), err);
    assert_true (d == TIME_US_MAX);
    assert_string_equal (duration_format (d, buf), "INFINITY");
    assert_string_equal (duration_format (-60 * S, buf), "-00:01:00");
    assert_string_equal (duration_format (-1, buf), "-00:00:01");
    assert_string_equal (duration_format (S - 1, buf), "00:00:00");
    assert_non_null (duration_format (INT64_MIN, buf));
    assert_non_null (duration_format (INT64_MAX - 1, buf));
}

static void bad_durations (void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",           ":",         "1:",   ":30",       "1:60",  "1:60:00",
        "1:24:00:00", "1:2:3:4:5", "-5",   "1.5",       "1h",    " 1",
        "1 ",         "2-",        "2-24", "2-1:2:3:4", "1:2-3", "1234567890123",
        "12:345",     "INFINITYX"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct err err = {0};
        int64_t d = 77;
        if (duration_parse (bad[i], &d, &err) != ERR_INVALID)
            fail_msg ("'%s' was taken", bad[i]);
        assert_true (d == 77);
    }
    struct err err = {0};
    int64_t d = 77;
    assert_int_equal (duration_parse ("999999999999:00:00:00", &d, &err), ERR_LIMIT);
    assert_true (d == 77);
}

/* 2026-11-21T14:30:00Z */
static const time_us NOON = INT64_C (1795271400) * US_PER_S;

static time_us parse (const char *text, time_us now)
{
    struct err err = {0};
    time_us t = 0;
    assert_ok (time_parse (text, now, &t, &err), err);
    return t;
}

static void iso_moments (void **state)
{
    (void)state;
    zone ("UTC0");
    assert_true (parse ("2026-11-21T14:30:00Z", 0) == NOON);
    assert_true (parse ("2026-11-21T14:30Z", 0) == NOON);
    assert_true (parse ("2026-11-21 14:30:00", 0) == NOON);
    assert_true (parse ("2026-11-21T16:30:00+02:00", 0) == NOON);
    assert_true (parse ("2026-11-21T16:30:00+0200", 0) == NOON);
    assert_true (parse ("2026-11-21T16:30:00+02", 0) == NOON);
    assert_true (parse ("2026-11-21T09:00:00-05:30", 0) == NOON);
    assert_true (parse ("2026-11-21T14:30:00.25Z", 0) == NOON + 250000);
    assert_true (parse ("2026-11-21T14:30:00.1234567Z", 0) == NOON + 123456);
    assert_true (parse ("2026-11-21", 0) == NOON - (14 * 60 + 30) * 60 * S);
    zone ("CET-1CEST,M3.5.0,M10.5.0/3");
    assert_true (parse ("2026-11-21T15:30:00", 0) == NOON);
    assert_true (parse ("2026-07-01T12:00:00", 0) == parse ("2026-07-01T10:00:00Z", 0));
    assert_true (parse ("2024-02-29", 0) > 0);
}

static void relative_moments (void **state)
{
    (void)state;
    zone ("UTC0");
    assert_true (parse ("now", NOON) == NOON);
    assert_true (parse ("+1:00:00", NOON) == NOON + 3600 * S);
    assert_true (parse ("-1:00:00", NOON) == NOON - 3600 * S);
    assert_true (parse ("+INFINITY", NOON) == TIME_US_MAX);
    assert_true (parse ("INFINITY", NOON) == TIME_US_MAX);
    assert_true (parse ("@1795271400", 0) == NOON);
    assert_true (parse ("14:31", NOON) == NOON + 60 * S);
    assert_true (parse ("14:30:01", NOON) == NOON + S);
    assert_true (parse ("14:30", NOON) == NOON + 86400 * S);
    assert_true (parse ("14:29:59", NOON) == NOON + 86399 * S);
    assert_true (parse ("17:00_04/14", NOON) == parse ("2027-04-14T17:00:00", 0));
    assert_true (parse ("17:00_12/24", NOON) == parse ("2026-12-24T17:00:00", 0));
    assert_true (parse ("17:00:30_12/24/27", NOON) == parse ("2027-12-24T17:00:30", 0));
    assert_true (parse ("17:00_12/24/2027", NOON) == parse ("2027-12-24T17:00:00", 0));
    assert_true (parse ("00:00_02/29", NOON) == parse ("2028-02-29T00:00:00", 0));
    time_us new_years_eve = parse ("2026-12-31T23:00:00", 0);
    assert_true (parse ("1:00", new_years_eve) == parse ("2027-01-01T01:00:00", 0));
    /* The day of the autumn change has 25 hours. */
    zone ("CET-1CEST,M3.5.0,M10.5.0/3");
    time_us saturday = parse ("2026-10-24T12:00:00", 0);
    assert_true (parse ("12:00", saturday) == saturday + 25 * 3600 * S);
}

static time_us past (const char *text, time_us now)
{
    struct err err = {0};
    time_us t = 0;
    assert_ok (time_parse_past (text, now, &t, &err), err);
    return t;
}

/* Where only the past makes sense a clock time is the last one. */
static void past_moments (void **state)
{
    (void)state;
    zone ("UTC0");
    assert_true (past ("14:30", NOON) == NOON);
    assert_true (past ("14:29:59", NOON) == NOON - S);
    assert_true (past ("14:30:01", NOON) == NOON + S - 86400 * S);
    assert_true (past ("02:00", NOON) == parse ("2026-11-21T02:00:00", 0));
    assert_true (past ("23:00", NOON) == parse ("2026-11-20T23:00:00", 0));
    assert_true (past ("17:00_04/14", NOON) == parse ("2026-04-14T17:00:00", 0));
    assert_true (past ("17:00_12/24", NOON) == parse ("2025-12-24T17:00:00", 0));
    assert_true (past ("00:00_02/29", NOON) == parse ("2024-02-29T00:00:00", 0));
    assert_true (past ("-2:00:00", NOON) == NOON - 7200 * S);
    assert_true (past ("2027-01-01", NOON) > NOON); /* what is said in full is taken as it is */
    time_us new_year = parse ("2027-01-01T01:00:00", 0);
    assert_true (past ("23:00", new_year) == parse ("2026-12-31T23:00:00", 0));
    zone ("CET-1CEST,M3.5.0,M10.5.0/3"); /* a day of 25 hours behind us */
    time_us sunday = parse ("2026-10-25T11:00:00", 0);
    assert_true (past ("12:00", sunday) == sunday - 24 * 3600 * S);
}

static void periods (void **state)
{
    (void)state;
    struct err err = {0};
    time_us from = 0, to = 0;
    zone ("UTC0");
    assert_ok (period_parse ("2026-11", NOON, &from, &to, &err), err);
    assert_true (from == parse ("2026-11-01", 0) && to == parse ("2026-12-01", 0));
    assert_ok (period_parse ("2026-12", NOON, &from, &to, &err), err);
    assert_true (to == parse ("2027-01-01", 0));
    assert_ok (period_parse ("2026-02-28", NOON, &from, &to, &err), err);
    assert_true (from == parse ("2026-02-28", 0) && to == parse ("2026-03-01", 0));
    assert_ok (period_parse ("yesterday", NOON, &from, &to, &err), err);
    assert_true (from == parse ("2026-11-20", 0) && to == parse ("2026-11-21", 0));
    assert_true (past ("yesterday", NOON) == from && parse ("yesterday", NOON) == from);
    assert_true (parse ("today", NOON) == to && parse ("tomorrow", NOON) == to + 86400 * S);
    assert_true (parse ("2026-11", NOON) == parse ("2026-11-01", 0));
    assert_ok (period_parse ("yesterday", parse ("2026-03-01T00:00:00", 0), &from, &to, &err), err);
    assert_true (from == parse ("2026-02-28", 0));
    static const char *const bad[] = {"",      "2026", "2026-13", "2026-11-31",
                                      "14:30", "now",  "2026-11x"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal (period_parse (bad[i], NOON, &from, &to, &err), ERR_INVALID);
    zone ("CET-1CEST,M3.5.0,M10.5.0/3"); /* a day of 25 hours */
    assert_ok (period_parse ("2026-10-25", NOON, &from, &to, &err), err);
    assert_true (to - from == 25 * 3600 * S);
}

static void bad_moments (void **state)
{
    (void)state;
    zone ("UTC0");
    static const char *const bad[] = {"",
                                      "2026",
                                      "2026-13-01",
                                      "2026-02-29",
                                      "2026-00-10",
                                      "2026-1-1T",
                                      "2026-11-21T",
                                      "2026-11-21T24:00",
                                      "2026-11-21T14:60",
                                      "2026-11-21T14:30:60",
                                      "24:00",
                                      "14:30x",
                                      "14:30_13/01",
                                      "14:30_02/30/27",
                                      "14:30_1/2/3",
                                      "@",
                                      "@-1",
                                      "@1.5",
                                      "+",
                                      "+x",
                                      "tomorrows",
                                      "2026-11-2\n1",
                                      "2026-11-21T14:30:00+24:00",
                                      "2026-11-21T14:30:00+2",
                                      "2026-11-21T14:30:00.Z",
                                      "1969-12-31T23:59:59Z",
                                      "14",
                                      "2026-11-21T14:30:00Zx",
                                      "14:30_02/30",
                                      "26-11-21"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct err err = {0};
        time_us t = 77;
        if (time_parse (bad[i], NOON, &t, &err) >= 0)
            fail_msg ("'%s' was taken", bad[i]);
        assert_true (t == 77);
        assert_int_not_equal (err.code, 0);
    }
    struct err err = {0};
    time_us t = 77;
    assert_int_equal (time_parse ("@99999999999999999", 0, &t, &err), ERR_LIMIT);
    assert_int_equal (time_parse ("+100000000:00:00:00", INT64_MAX - 5, &t, &err), ERR_LIMIT);
}

static void moments_are_printed (void **state)
{
    (void)state;
    char buf[QUANTITY_TEXT_MAX];
    zone ("UTC0");
    assert_string_equal (time_format_iso (NOON, buf), "2026-11-21T14:30:00Z");
    assert_string_equal (time_format_iso (NOON + 999999, buf), "2026-11-21T14:30:00Z");
    assert_string_equal (time_format_iso (-1, buf), "1969-12-31T23:59:59Z");
    assert_string_equal (time_format_table (NOON, buf), "Sat Nov 21 14:30:00");
    assert_string_equal (time_format_table (NOON - 15 * 86400 * S, buf), "Fri Nov  6 14:30:00");
    assert_string_equal (time_format_iso (TIME_US_MAX, buf), "INFINITY");
    assert_string_equal (time_format_table (TIME_US_NONE, buf), "-");
    assert_non_null (time_format_iso (TIME_US_MAX - 1, buf));
    assert_non_null (time_format_iso (TIME_US_NONE + 1, buf));
    zone ("IST-5:30");
    assert_string_equal (time_format_iso (NOON, buf), "2026-11-21T20:00:00+05:30");
    zone ("NST3:30");
    assert_string_equal (time_format_iso (NOON, buf), "2026-11-21T11:00:00-03:30");
    assert_true (parse (time_format_iso (NOON, buf), 0) == NOON);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (durations),    cmocka_unit_test (bad_durations),
        cmocka_unit_test (iso_moments),  cmocka_unit_test (relative_moments),
        cmocka_unit_test (past_moments), cmocka_unit_test (periods),
        cmocka_unit_test (bad_moments),  cmocka_unit_test (moments_are_printed),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
