#include "unit.h"

#include <string.h>

#include "proto/base/quantity.h"

static void credits_are_exact (void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t micro;
        const char *back;
    } good[] = {
        {"0", 0, "0"},
        {"12", 12000000, "12"},
        {"0.5", 500000, "0.5"},
        {"-3.000001", -3000001, "-3.000001"},
        {"+7", 7000000, "7"},
        {".25", 250000, "0.25"},
        {"-0.1", -100000, "-0.1"},
        {"1.100000", 1100000, "1.1"},
        {"9223372036854.775807", INT64_MAX, "9223372036854.775807"},
    };
    struct err err = {0};
    char buf[QUANTITY_TEXT_MAX];
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        int64_t v = -1;
        assert_ok (credit_parse (good[i].text, &v, &err), err);
        assert_true (v == good[i].micro);
        assert_string_equal (credit_format (v, buf), good[i].back);
    }
    assert_string_equal (credit_format (INT64_MIN, buf), "-9223372036854.775808");
}

static void bad_credits_are_refused (void **state)
{
    (void)state;
    static const char *const bad[] = {"",   "-",   ".",   "1.",        "1e3", "1.2.3", "0x10", " 1",
                                      "1 ", "1,5", "--1", "1.0000001", "NaN", "inf",   "1-"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct err err = {0};
        int64_t v = 77;
        assert_int_equal (credit_parse (bad[i], &v, &err), ERR_INVALID);
        assert_true (v == 77);
        assert_contains (err.text, bad[i]);
    }
    struct err err = {0};
    int64_t v = 77;
    assert_int_equal (credit_parse ("9223372036854.775808", &v, &err), ERR_LIMIT);
    assert_int_equal (credit_parse ("99999999999999999999999999", &v, &err), ERR_LIMIT);
    assert_true (v == 77);
}

static void sums_are_checked (void **state)
{
    (void)state;
    struct err err = {0};
    int64_t sum = 5;
    assert_ok (credit_add (INT64_MAX - 1, 1, &sum, &err), err);
    assert_true (sum == INT64_MAX);
    assert_int_equal (credit_add (INT64_MAX, 1, &sum, &err), ERR_LIMIT);
    assert_int_equal (credit_add (INT64_MIN, -1, &sum, &err), ERR_LIMIT);
    assert_true (sum == INT64_MAX);
}

static void memory (void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t mb;
    } good[] = {{"0", 0},      {"512", 512},   {"512M", 512},   {"4G", 4096}, {"4g", 4096},
                {"4GB", 4096}, {"4GiB", 4096}, {"1T", 1 << 20}, {"2048K", 2}, {"2049K", 3},
                {"1k", 1},     {"0K", 0},      {"1P", 1 << 30}};
    struct err err = {0};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        int64_t mb = -1;
        assert_ok (memory_parse (good[i].text, &mb, &err), err);
        assert_true (mb == good[i].mb);
    }
    static const char *const bad[] = {"",    "M",   "1.5G", "-1", "4X",
                                      "4 G", "4GG", "4Gi",  "G4", "4\x0b"};
    int64_t mb = 9;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal (memory_parse (bad[i], &mb, &err), ERR_INVALID);
    assert_int_equal (memory_parse ("18446744073709551616", &mb, &err), ERR_LIMIT);
    assert_int_equal (memory_parse ("9007199254740992G", &mb, &err), ERR_LIMIT);
    assert_true (mb == 9);
}

static void whole_numbers (void **state)
{
    (void)state;
    struct err err = {0};
    uint64_t u = 0;
    int64_t s = 0;
    assert_ok (uint_parse ("18446744073709551615", "n", 0, UINT64_MAX, &u, &err), err);
    assert_true (u == UINT64_MAX);
    assert_int_equal (uint_parse ("18446744073709551616", "n", 0, UINT64_MAX, &u, &err), ERR_LIMIT);
    assert_int_equal (uint_parse ("3", "nodes", 4, 9, &u, &err), ERR_LIMIT);
    assert_string_equal (err.text, "nodes: 3 is not between 4 and 9");
    assert_int_equal (uint_parse ("-1", "n", 0, 9, &u, &err), ERR_INVALID);
    assert_int_equal (uint_parse ("+1", "n", 0, 9, &u, &err), ERR_INVALID);
    assert_int_equal (uint_parse ("", "n", 0, 9, &u, &err), ERR_INVALID);
    assert_int_equal (uint_parse ("1 ", "n", 0, 9, &u, &err), ERR_INVALID);
    assert_true (u == UINT64_MAX);
    assert_ok (int_parse ("-9223372036854775808", "n", INT64_MIN, INT64_MAX, &s, &err), err);
    assert_true (s == INT64_MIN);
    assert_ok (int_parse ("+5", "n", 0, 9, &s, &err), err);
    assert_true (s == 5);
    assert_int_equal (int_parse ("9223372036854775808", "n", INT64_MIN, INT64_MAX, &s, &err),
                      ERR_LIMIT);
    assert_int_equal (int_parse ("-9223372036854775809", "n", INT64_MIN, INT64_MAX, &s, &err),
                      ERR_LIMIT);
    assert_int_equal (int_parse ("--1", "n", -5, 5, &s, &err), ERR_INVALID);
    assert_true (s == 5);
}

static void decimals_and_words (void **state)
{
    (void)state;
    struct err err = {0};
    int64_t ppm;
    assert_ok (ppm_parse ("1.25", "x", &ppm, &err), err);
    assert_true (ppm == 1250000);
    assert_ok (ppm_parse ("-.8", "x", &ppm, &err), err);
    assert_true (ppm == -800000);
    assert_int_equal (ppm_parse ("1.25x", "FSDECAY", &ppm, &err), ERR_INVALID);
    assert_contains (err.text, "FSDECAY");
    bool b = false;
    assert_ok (bool_parse ("true", &b, &err), err);
    assert_true (b);
    assert_ok (bool_parse ("OFF", &b, &err), err);
    assert_false (b);
    assert_int_equal (bool_parse ("2", &b, &err), ERR_INVALID);
    assert_int_equal (bool_parse ("", &b, &err), ERR_INVALID);
}

static void ids (void **state)
{
    (void)state;
    struct err err = {0};
    char prefix[64];
    uint64_t n;
    assert_ok (id_parse ("alpha.17", prefix, sizeof prefix, &n, &err), err);
    assert_string_equal (prefix, "alpha");
    assert_int_equal (n, 17);
    assert_ok (id_parse ("a.b.0", prefix, sizeof prefix, &n, &err), err);
    assert_string_equal (prefix, "a.b");
    static const char *const bad[] = {"",
                                      "alpha",
                                      "alpha.",
                                      ".17",
                                      "alpha.17x",
                                      "alpha.-1",
                                      "-a.1",
                                      "alpha.017",
                                      "al pha.1",
                                      "alpha.1 ",
                                      "alpha.18446744073709551616"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_true (id_parse (bad[i], prefix, sizeof prefix, &n, &err) < 0);
    assert_int_equal (id_parse ("alpha.1", prefix, 5, &n, &err), ERR_LIMIT);
    assert_string_equal (prefix, "a.b");
}

static void names (void **state)
{
    (void)state;
    struct err err = {0};
    char long_name[65];
    memset (long_name, 'a', 64);
    long_name[64] = '\0';
    assert_int_equal (name_check ("site", long_name, &err), ERR_LIMIT);
    long_name[63] = '\0';
    assert_ok (name_check ("site", long_name, &err), err);
    static const char *const bad[] = {"", "-x", ".x", "a b", "a/b", "é", "a\n", "a:b"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal (name_check ("site", bad[i], &err), ERR_INVALID);
    assert_ok (name_check ("site", "_a-b.C9", &err), err);
}

static void uuids (void **state)
{
    (void)state;
    struct err err = {0};
    struct uuid u;
    char buf[QUANTITY_TEXT_MAX];
    const char *text = "0123abcd-4567-89ef-8000-00ff10ff2030";
    assert_ok (uuid_parse (text, &u, &err), err);
    assert_string_equal (uuid_format (&u, buf), text);
    assert_ok (uuid_parse ("0123ABCD-4567-89EF-8000-00FF10FF2030", &u, &err), err);
    assert_string_equal (uuid_format (&u, buf), text);
    static const char *const bad[] = {"",
                                      "0123abcd",
                                      "0123abcd-4567-89ef-8000-00ff10ff203",
                                      "0123abcd-4567-89ef-8000-00ff10ff20300",
                                      "0123abcd4567-89ef-8000-00ff10ff2030-",
                                      "g123abcd-4567-89ef-8000-00ff10ff2030"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal (uuid_parse (bad[i], &u, &err), ERR_INVALID);
    assert_string_equal (uuid_format (&u, buf), text);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (credits_are_exact),
        cmocka_unit_test (bad_credits_are_refused),
        cmocka_unit_test (sums_are_checked),
        cmocka_unit_test (memory),
        cmocka_unit_test (whole_numbers),
        cmocka_unit_test (decimals_and_words),
        cmocka_unit_test (ids),
        cmocka_unit_test (names),
        cmocka_unit_test (uuids),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
