/* What the loop is to call soon: in order, not from inside, and at the end whatever is left. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "meta/job/soon.h"

struct said {
    struct soon *soon;
    char text[64];
};

/* Owns what it is called with, as a survey does. */
struct word {
    struct said *said;
    char letter;
    bool again; /* it asks for one more */
};

static void word_call (void *arg);

static void word_add (struct said *said, char letter, bool again)
{
    struct word *word = malloc (sizeof *word);
    assert_non_null (word);
    *word = (struct word){said, letter, again};
    soon_call (said->soon, word_call, word);
}

static void word_call (void *arg)
{
    struct word *word = arg;
    size_t len = strlen (word->said->text);
    if (word->again)
        word_add (word->said, (char)(word->letter + 'A' - 'a'), false);
    assert_int_equal (strlen (word->said->text), len); /* not from inside */
    word->said->text[len] = word->letter;
    free (word);
}

static void by_the_loop (void **state)
{
    struct event_base *base = event_base_new ();
    struct said said = {.soon = soon_create (base)};
    (void)state;
    word_add (&said, 'a', true);
    word_add (&said, 'b', false);
    assert_string_equal (said.text, "");
    event_base_loop (base, 0);
    assert_string_equal (said.text, "abA");
    word_add (&said, 'c', false);
    event_base_loop (base, 0);
    assert_string_equal (said.text, "abAc");
    soon_end (said.soon);
    event_base_free (base);
}

/* Nobody is forgotten, nor what is its. */
static void at_the_end (void **state)
{
    struct event_base *base = event_base_new ();
    struct said said = {.soon = soon_create (base)};
    (void)state;
    word_add (&said, 'a', true);
    word_add (&said, 'b', false);
    soon_end (said.soon);
    assert_string_equal (said.text, "abA");
    event_base_loop (base, 0); /* nothing is left there */
    assert_string_equal (said.text, "abA");
    event_base_free (base);
    soon_end (NULL);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (by_the_loop),
        cmocka_unit_test (at_the_end),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
