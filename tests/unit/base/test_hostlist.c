#include "unit.h"

#include <string.h>

#include "proto/base/hostlist.h"
#include "proto/base/strbuf.h"

static char *joined (const char *text, struct arena *arena, struct err *err)
{
    const char **names = NULL;
    uint32_t count = 0;
    if (hostlist_expand (text, arena, &names, &count, err) < 0)
        return NULL;
    struct strbuf b = STRBUF_INIT;
    for (uint32_t i = 0; i < count; i++)
        strbuf_printf (&b, "%s%s", i ? " " : "", names[i]);
    return strbuf_move (&b, arena);
}

static void expands (void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"", ""},
        {"a", "a"},
        {"a,b:c d\te", "a b c d e"},
        {",,a,,", "a"},
        {"a,a", "a a"},
        {"node[001-004,007],beta[1-2]", "node001 node002 node003 node004 node007 beta1 beta2"},
        {"node[AB]", "nodeA nodeB"},
        {"node[A-Cx]", "nodeA nodeB nodeC nodex"},
        {"n[12]", "n12"},
        {"n[9-11]", "n9 n10 n11"},
        {"n[09-11]", "n09 n10 n11"},
        {"r[1-2]n[1-2]-ib", "r1n1-ib r1n2-ib r2n1-ib r2n2-ib"},
        {"n[3-3]", "n3"},
        {"n[2,1]", "n2 n1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct arena *arena = arena_create (0);
        struct err err = {0};
        char *got = joined (cases[i][0], arena, &err);
        if (!got)
            fail_msg ("%s: %s", cases[i][0], err.text);
        assert_string_equal (got, cases[i][1]);
        arena_destroy (arena);
    }
}

static void refuses (void **state)
{
    (void)state;
    static const char *const bad[] = {"n[",
                                      "n[]",
                                      "n[1-",
                                      "n[1-]",
                                      "n[4-1]",
                                      "n]",
                                      "n[1,]",
                                      "n[,1]",
                                      "n[1--2]",
                                      "n;rm",
                                      "n[A,B]",
                                      "n*",
                                      "n[-A]",
                                      "n[Z-A]",
                                      "n[1-2",
                                      "n[[1]]",
                                      "n[1234567890123456789]"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct arena *arena = arena_create (0);
        struct err err = {0};
        if (joined (bad[i], arena, &err))
            fail_msg ("'%s' was taken", bad[i]);
        assert_int_equal (err.code, ERR_INVALID);
        arena_destroy (arena);
    }
}

static void bounds (void **state)
{
    (void)state;
    static const char *const big[] = {"n[0-999999999999999999]",
                                      "n[1-1048577]",
                                      "a[1-1024]b[1-1025]",
                                      "n[1-1048576],x",
                                      "a[1]b[1]c[1]d[1]e[1]f[1]g[1]h[1]i[1]",
                                      "a[1-1048576]b[1-1048576]c[1-1048576]d[1-1048576]"};
    for (size_t i = 0; i < sizeof big / sizeof big[0]; i++) {
        struct arena *arena = arena_create (0);
        struct err err = {0};
        assert_null (joined (big[i], arena, &err));
        assert_int_equal (err.code, ERR_LIMIT);
        arena_destroy (arena);
    }
    struct arena *arena = arena_create (0);
    struct err err = {0};
    const char **names;
    uint32_t count;
    assert_ok (hostlist_expand ("n[1-1048576]", arena, &names, &count, &err), err);
    assert_int_equal (count, HOSTLIST_NAMES_MAX);
    assert_string_equal (names[count - 1], "n1048576");
    char text[400];
    memset (text, 'a', sizeof text);
    text[sizeof text - 1] = '\0';
    assert_int_equal (hostlist_expand (text, arena, &names, &count, &err), ERR_LIMIT);
    arena_destroy (arena);
}

static void compresses (void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"", ""},
        {"a", "a"},
        {"node1", "node1"},
        {"node001 node002 node003 node004 node007 beta1 beta2", "node[001-004,007],beta[1-2]"},
        {"n9 n10 n11", "n[9-11]"},
        {"n09 n10", "n[09-10]"},
        {"n099 n1000", "n[099,1000]"},
        {"n2 n1", "n[2,1]"},
        {"n1 n1", "n[1,1]"},
        {"a b n1 n2 c", "a,b,n[1-2],c"},
        {"n1-ib n2-ib n3", "n[1-2]-ib,n3"},
        {"n12345678901234567890 n12345678901234567891",
         "n12345678901234567890,n12345678901234567891"},
        {"n00 n01", "n[00-01]"},
        {"n1 n02", "n[1,02]"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct arena *arena = arena_create (0);
        struct err err = {0};
        const char **names;
        uint32_t count;
        assert_ok (hostlist_expand (cases[i][0], arena, &names, &count, &err), err);
        char *text = hostlist_compress (names, count, arena);
        assert_string_equal (text, cases[i][1]);
        /* and back, where the reader takes such numbers */
        if (strlen (cases[i][0]) < 60 && !strstr (cases[i][0], "67890"))
            assert_string_equal (joined (text, arena, &err), cases[i][0]);
        arena_destroy (arena);
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (expands),
        cmocka_unit_test (refuses),
        cmocka_unit_test (bounds),
        cmocka_unit_test (compresses),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
