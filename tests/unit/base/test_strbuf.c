#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "proto/base/arena.h"
#include "proto/base/strbuf.h"

static void grows_and_stays_terminated (void **state)
{
    (void)state;
    struct strbuf b = STRBUF_INIT;
    assert_string_equal (strbuf_text (&b), "");
    for (int i = 0; i < 10000; i++) {
        strbuf_putc (&b, (char)('a' + i % 26));
        assert_int_equal (b.data[b.len], '\0');
    }
    assert_int_equal (b.len, 10000);
    strbuf_clear (&b);
    assert_string_equal (strbuf_text (&b), "");
    strbuf_printf (&b, "%0200d", 5);
    assert_int_equal (b.len, 200);
    strbuf_append (&b, "a\0b", 3);
    assert_int_equal (b.len, 203);
    strbuf_append (&b, NULL, 0);
    strbuf_puts (&b, "");
    assert_int_equal (b.len, 203);
    strbuf_free (&b);
    assert_null (b.data);
}

static void steal_gives_ownership (void **state)
{
    (void)state;
    struct strbuf b = STRBUF_INIT;
    char *empty = strbuf_steal (&b);
    assert_string_equal (empty, "");
    free (empty);
    strbuf_puts (&b, "text");
    char *text = strbuf_steal (&b);
    assert_string_equal (text, "text");
    free (text);
    assert_int_equal (b.len, 0);
    strbuf_free (&b);
    strbuf_clear (&b);
}

static void move_leaves_text_in_the_arena (void **state)
{
    (void)state;
    struct strbuf b = STRBUF_INIT;
    struct arena *arena = arena_create (0);
    assert_string_equal (strbuf_move (&b, arena), "");
    strbuf_printf (&b, "%0200d", 5);
    char *text = strbuf_move (&b, arena);
    assert_null (b.data);
    assert_int_equal (b.len, 0);
    assert_int_equal (strlen (text), 200);
    arena_destroy (arena);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (grows_and_stays_terminated),
        cmocka_unit_test (steal_gives_ownership),
        cmocka_unit_test (move_leaves_text_in_the_arena),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
