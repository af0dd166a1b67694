/* What a program prints, read beside the loop: all of it, with how it ended; one that hangs or floods is killed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proto/child/child.h"

struct heard {
    struct event_base *base;
    int calls, exit_code;
    bool timed_out, flooded;
    size_t len;
    char begins[32];
};

static void on_said (void *arg, const struct child_said *said)
{
    struct heard *h = arg;
    h->calls++;
    h->exit_code = said->exit_code;
    h->timed_out = said->timed_out;
    h->flooded = said->flooded;
    h->len = said->len;
    assert_int_equal (strlen (said->text), said->len);
    snprintf (h->begins, sizeof h->begins, "%s", said->text);
    event_base_loopbreak (h->base);
}

static struct heard ask (const char *script, duration_us limit)
{
    const char *const argv[] = {"/bin/sh", "-c", script, NULL}, *const envp[] = {NULL};
    struct heard h = {.base = event_base_new ()};
    struct err err = {0};
    assert_non_null (child_ask (h.base, argv, envp, limit, 200000, on_said, &h, &err));
    assert_int_equal (h.calls, 0); /* from the loop only */
    event_base_dispatch (h.base);
    assert_int_equal (h.calls, 1);
    event_base_free (h.base);
    return h;
}

static void test_all_of_it (void **state)
{
    (void)state;
    struct heard h = ask ("echo one; echo lost >&2; exit 3", 60 * US_PER_S);
    assert_string_equal (h.begins, "one\n");
    assert_int_equal (h.exit_code, 3);
    assert_false (h.timed_out || h.flooded);
    /* more than a pipe holds, up to the very bound */
    h = ask ("i=0; while [ $i -lt 20000 ]; do echo 123456789; i=$((i+1)); done", 60 * US_PER_S);
    assert_int_equal (h.len, 200000);
    assert_int_equal (h.exit_code, 0);
    assert_false (h.flooded);
}

static void test_flood (void **state)
{
    (void)state;
    struct heard h = ask ("while :; do echo 123456789; done", 60 * US_PER_S);
    assert_true (h.flooded);
    assert_false (h.timed_out);
    assert_true (h.len <= 200000);
}

static void test_hang (void **state)
{
    (void)state;
    struct heard h = ask ("echo begun; sleep 1000", US_PER_S);
    assert_true (h.timed_out);
    assert_string_equal (h.begins, "begun\n");
}

static void test_no_such_program (void **state)
{
    const char *const argv[] = {"/nonexistent/adapter", NULL}, *const envp[] = {NULL};
    struct event_base *base = event_base_new ();
    struct err err = {0};
    (void)state;
    assert_null (child_ask (base, argv, envp, US_PER_S, 100, on_said, NULL, &err));
    assert_non_null (strstr (err.text, "/nonexistent/adapter"));
    event_base_free (base);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_all_of_it),
        cmocka_unit_test (test_flood),
        cmocka_unit_test (test_hang),
        cmocka_unit_test (test_no_such_program),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
