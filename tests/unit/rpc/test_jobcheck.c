/* What a job says of itself is bounded once for all doors: each bound, what is just within it, and the sentence. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proto/job/jobcheck.h"

typedef Nui__Common__V1__Component Component;

/* So many letters; the caller's to free. */
static char *letters (size_t count)
{
    char *text = malloc (count + 1);
    assert_non_null (text);
    memset (text, 'n', count);
    text[count] = '\0';
    return text;
}

static void test_name (void **state)
{
    struct err err = {0};
    Nui__Common__V1__Job job = NUI__COMMON__V1__JOB__INIT;

    (void)state;
    assert_int_equal (jobcheck_name (&job, &err), 0); /* it needs none */
    job.name = letters (JOB_NAME_MAX + 1);
    assert_int_equal (jobcheck_name (&job, &err), ERR_LIMIT);
    assert_string_equal (err.text, "the job's name has 256 bytes, allowed are 255");
    job.name[JOB_NAME_MAX] = '\0';
    assert_int_equal (jobcheck_name (&job, &err), 0);
    job.account = (char[]){"a b"};
    assert_int_equal (jobcheck_name (&job, &err), ERR_INVALID);
    assert_string_equal (err.text,
                         "account: 'a b' may only have letters, digits, '.', '_' and '-'");
    free (job.name);
}

/* By themselves, and as a part of the whole component. */
static void refused (Component *c, int code, const char *says)
{
    struct err err = {0};
    assert_int_equal (jobcheck_words (c, &err), code);
    assert_string_equal (err.text, says);
    err_clear (&err);
    assert_int_equal (jobcheck_component (c, true, &err), code);
    assert_string_equal (err.text, says);
}

static void test_words (void **state)
{
    struct err err = {0};
    Component c = NUI__COMMON__V1__COMPONENT__INIT;
    Nui__Common__V1__Req req = NUI__COMMON__V1__REQ__INIT, *reqs[] = {&req};
    static char good[] = "A=b", spaced[] = "a b";
    char *words[JOB_ARGS_MAX + 1], *none = c.class_;

    (void)state;
    for (size_t i = 0; i <= JOB_ARGS_MAX; i++)
        words[i] = good;
    req.tasks = 1;
    c.name = (char[]){"main"};
    c.walltime_us = 60 * US_PER_S;
    c.reqs = reqs;
    c.n_reqs = 1;
    c.args = c.env = words;
    c.n_args = c.n_env = JOB_ARGS_MAX;
    assert_int_equal (jobcheck_component (&c, true, &err), 0);
    c.n_args++;
    refused (&c, ERR_LIMIT, "component main: 1025 arguments, allowed are 1024");
    c.n_args--, c.n_env++;
    refused (&c, ERR_LIMIT, "component main: 1025 variables, allowed are 1024");
    c.n_env = 2;
    words[1] = (char[]){"=b"};
    refused (&c, ERR_INVALID, "component main: variable 2 is not NAME=value");
    words[1] = (char[]){"A"};
    refused (&c, ERR_INVALID, "component main: variable 2 is not NAME=value");
    c.n_env = 0;

    char **const name[] = {&c.class_, &c.qos, &c.reservation};
    static const char *const says[] = {
        "component main: class: 'a b' may only have letters, digits, '.', '_' and '-'",
        "component main: QoS: 'a b' may only have letters, digits, '.', '_' and '-'",
        "component main: reservation: 'a b' may only have letters, digits, '.', '_' and '-'"};
    for (size_t i = 0; i < 3; i++) {
        *name[i] = spaced;
        refused (&c, ERR_INVALID, says[i]);
        *name[i] = none;
    }
    assert_int_equal (jobcheck_component (&c, true, &err), 0);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_name),
        cmocka_unit_test (test_words),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
