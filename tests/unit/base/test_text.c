/* text: what is cut is cut between characters, and what comes from outside is made well-formed UTF-8. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "proto/base/err.h"
#include "proto/base/text.h"

/* Whatever the place of the cut, the text is whole characters, and no more is lost than one. */
static void cut_between_characters (void **state)
{
    static const char long_text[] = "añ€𐍈añ€𐍈añ€𐍈";
    char out[sizeof long_text + 4];
    (void)state;
    for (size_t cap = 1; cap < sizeof out; cap++) {
        memset (out, 'x', sizeof out);
        size_t n = text_printf (out, cap, "%s", long_text);
        assert_int_equal (n, strlen (out));
        assert_true (text_ok (out, n));
        assert_memory_equal (out, long_text, n);
        size_t could = cap - 1 < strlen (long_text) ? cap - 1 : strlen (long_text);
        assert_in_range (could - n, 0, 3);
        assert_int_equal (could == strlen (long_text), n == could && long_text[n] == '\0');
    }
}

static void bad_bytes_show_as_question_marks (void **state)
{
    static const struct {
        const char *in, *out;
    } cases[] = {
        {"caf\xe9 au lait", "caf? au lait"},
        {"\xc3\xa9t\xc3", "\xc3\xa9t?"},
        {"\x80\xc0\x80", "?"
                         "?"
                         "?"},
        {"\xed\xa0\x80", "?"
                         "?"
                         "?"},
        {"\xf0\x9f\x98", "?"
                         "?"
                         "?"},
        {"\xf4\x90\x80\x80!", "?"
                              "?"
                              "?"
                              "?!"},
        {"\xc3\xa9", "\xc3\xa9"},
        {"", ""},
    };
    char out[64];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t n = text_printf (out, sizeof out, "%s", cases[i].in);
        assert_string_equal (out, cases[i].out);
        assert_int_equal (n, strlen (cases[i].out));
    }
    char nul[] = "a\0b";
    text_mend (nul, 3);
    assert_string_equal (nul, "a?b");
}

/* A precision counts bytes: it may tear a character in the middle of a text. */
static void a_precision_may_tear (void **state)
{
    char out[64];
    (void)state;
    text_printf (out, sizeof out, "'%.2s' ends", "aé");
    assert_string_equal (out, "'a?' ends");
    assert_true (text_ok (out, strlen (out)));
}

/* Seen: a reason that was cut at 512 bytes in the middle of an é silenced its site. */
static void errors_are_whole_text (void **state)
{
    char name[1024];
    struct err err;
    (void)state;
    for (size_t lead = 0; lead < 4; lead++) {
        size_t at = 0;
        while (at < lead)
            name[at++] = 'a';
        while (at + 3 < sizeof name)
            at += (size_t)sprintf (name + at, "é");
        err_set (&err, ERR_INVALID, "the file %s is not there", name);
        assert_true (text_ok (err.text, strlen (err.text)));
        assert_in_range (strlen (err.text), ERR_TEXT_MAX - 3, ERR_TEXT_MAX - 1);
        err_prefix (&err, "stage-in");
        assert_true (text_ok (err.text, strlen (err.text)));
        err_set (&err, ERR_INVALID, "%s", "it");
        err_prefix (&err, "%s", name);
        assert_true (text_ok (err.text, strlen (err.text)));
    }
}

/* Most text is ASCII and is looked at in words: a bad byte or a NUL is seen wherever it stands. */
static void seen_at_any_place (void **state)
{
    static const unsigned char bad[] = {0, 0x80, 0xc3, 0xff};
    char text[40];
    (void)state;
    for (size_t len = 0; len <= sizeof text; len++) {
        memset (text, 0x7f, sizeof text);
        assert_true (text_ok (text, len));
        memset (text, 0x01, sizeof text);
        assert_true (text_ok (text, len));
        for (size_t at = 0; at < len; at++)
            for (size_t b = 0; b < sizeof bad; b++) {
                text[at] = (char)bad[b];
                assert_false (text_ok (text, len));
                text[at] = 'a';
            }
        if (len >= 2) {
            memcpy (text + len - 2, "é", 2);
            assert_true (text_ok (text, len));
        }
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (cut_between_characters),
        cmocka_unit_test (bad_bytes_show_as_question_marks),
        cmocka_unit_test (a_precision_may_tear),
        cmocka_unit_test (errors_are_whole_text),
        cmocka_unit_test (seen_at_any_place),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
