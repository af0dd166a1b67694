#include "unit.h"

#include <string.h>

static void sets_code_and_text (void **state)
{
    (void)state;
    struct err err = {0};
    assert_int_equal (err_set (&err, ERR_LIMIT, "%u asked, %u there", 5u, 4u), ERR_LIMIT);
    assert_int_equal (err.code, ERR_LIMIT);
    assert_string_equal (err.text, "5 asked, 4 there");
    err_clear (&err);
    assert_int_equal (err.code, ERR_NONE);
    assert_string_equal (err.text, "");
}

static void null_err_is_allowed (void **state)
{
    (void)state;
    assert_int_equal (err_set (NULL, ERR_IO, "x"), ERR_IO);
    assert_true (err_prefix (NULL, "x") < 0);
    err_clear (NULL);
}

static void text_may_be_its_own_argument (void **state)
{
    (void)state;
    struct err err = {0};
    err_set (&err, ERR_IO, "inner");
    err_set (&err, ERR_INVALID, "outer: %s", err.text);
    assert_string_equal (err.text, "outer: inner");
    assert_int_equal (err_prefix (&err, "file %d", 7), ERR_INVALID);
    assert_string_equal (err.text, "file 7: outer: inner");
    err_prefix (&err, "%s", err.text);
    assert_string_equal (err.text, "file 7: outer: inner: file 7: outer: inner");
}

static void long_texts_are_cut (void **state)
{
    (void)state;
    struct err err = {0};
    char big[2 * ERR_TEXT_MAX];
    memset (big, 'x', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    err_set (&err, ERR_IO, "%s", big);
    assert_int_equal (strlen (err.text), ERR_TEXT_MAX - 1);
    err_prefix (&err, "p");
    assert_int_equal (strlen (err.text), ERR_TEXT_MAX - 1);
    assert_memory_equal (err.text, "p: xxx", 6);
    err_prefix (&err, "%s", big);
    assert_int_equal (strlen (err.text), ERR_TEXT_MAX - 1);
}

static void every_code_has_a_name (void **state)
{
    (void)state;
    for (int code = ERR_NONE; code >= ERR_UNSUPPORTED; code--)
        assert_string_not_equal (err_code_name (code), "unknown");
    assert_string_equal (err_code_name (1), "unknown");
    assert_string_equal (err_code_name (ERR_UNSUPPORTED - 1), "unknown");
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (sets_code_and_text),           cmocka_unit_test (null_err_is_allowed),
        cmocka_unit_test (text_may_be_its_own_argument), cmocka_unit_test (long_texts_are_cut),
        cmocka_unit_test (every_code_has_a_name),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
