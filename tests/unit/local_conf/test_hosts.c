/* Host expressions: lists, patterns, and what a pattern may cost the daemon. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "local/conf/hosts.h"

enum { NODES = 4 };
static const char *const name[NODES] = {"alpha01", "alpha02", "beta01", "beta02"};

static int match (const char *expression, bool out[NODES], struct err *err)
{
    *err = (struct err){0};
    return hosts_match (expression, name, NODES, out, err);
}

static void lists_and_patterns (void **state)
{
    bool out[NODES];
    struct err err;
    (void)state;
    assert_int_equal (match ("alpha0[1-2]", out, &err), 0); /* a list */
    assert_true (out[0] && out[1] && !out[2] && !out[3]);
    assert_int_equal (match (".*01,beta0{1}2", out, &err), 0);
    assert_true (out[0] && !out[1] && out[2] && out[3]);
    assert_int_equal (match ("gamma.*", out, &err), ERR_NOT_FOUND);
    assert_int_equal (match ("(", out, &err), ERR_INVALID);
    assert_int_equal (match ("alpha\\.?01", out, &err), 0);
}

/* They would take the C library gigabytes, and minutes. */
static void patterns_are_bounded (void **state)
{
    bool out[NODES];
    struct err err;
    char many[2048] = "", longer[600];
    (void)state;
    assert_int_equal (match ("(((a{99}){99}){99}){99}", out, &err), ERR_LIMIT);
    assert_non_null (strstr (err.text, "repeats more than 256 times"));
    assert_int_equal (match ("a{18446744073709551617}b{99}", out, &err), ERR_LIMIT);
    assert_int_equal (match ("(a*)*b\\1", out, &err), ERR_UNSUPPORTED);
    memset (longer, 'a', sizeof longer);
    longer[0] = '.', longer[sizeof longer - 1] = 0;
    assert_int_equal (match (longer, out, &err), ERR_LIMIT);
    for (int i = 0; i < 65; i++)
        strcat (many, "a.*,");
    assert_int_equal (match (many, out, &err), ERR_LIMIT);
    assert_non_null (strstr (err.text, "more than 64 patterns"));
    memset (many, 0, sizeof many); /* names are no patterns, however many there are of them */
    for (int i = 0; i < 100; i++)
        strcat (many, "alpha01,gamma01,");
    assert_int_equal (match (many, out, &err), 0);
    assert_true (out[0] && !out[1] && !out[2] && !out[3]);
    assert_int_equal (hosts_readable ("(((a{99}){99}){99}){99}", &err), ERR_LIMIT);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (lists_and_patterns),
        cmocka_unit_test (patterns_are_bounded),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
