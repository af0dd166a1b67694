/* Records written and read by their description alone (proto/store/row.h). */
#include "../base/unit.h"

#include <stdlib.h>
#include <string.h>

#include "proto/store/row.h"
#include "scratch.h"

static const char *const steps[] = {
    "CREATE TABLE thing (box INTEGER NOT NULL, id INTEGER NOT NULL, small INTEGER NOT NULL, big INTEGER NOT NULL,"
    " yes INTEGER NOT NULL, kind INTEGER NOT NULL, text TEXT NOT NULL, name TEXT NOT NULL, hash BLOB NOT NULL,"
    " own TEXT, must TEXT NOT NULL, blob BLOB, lent BLOB NOT NULL, born INTEGER NOT NULL, PRIMARY KEY (box, id));"
    "CREATE TABLE counted (sequence INTEGER PRIMARY KEY AUTOINCREMENT, big INTEGER NOT NULL)",
    NULL};

enum kind { KIND_NONE, KIND_SOME = 7 };

struct thing {
    uint32_t id;
    int32_t small;
    uint64_t big;
    bool yes;
    enum kind kind;
    const char *text;
    char name[8];
    uint8_t hash[4];
    char *own, *must;
    void *blob;
    size_t blob_len;
    const void *lent;
    size_t lent_len;
    int64_t born;
};

static const struct row_column columns[] = {
    ROW (struct thing, id, ROW_KEY),
    ROW (struct thing, small, 0),
    ROW (struct thing, big, 0),
    ROW (struct thing, yes, 0),
    ROW (struct thing, kind, 0),
    ROW (struct thing, text, 0),
    ROW (struct thing, name, 0),
    ROW (struct thing, hash, 0),
    ROW_OWN (struct thing, own, "own", 0),
    ROW_OWN (struct thing, must, "must", ROW_NOT_NULL),
    ROW_DATA (struct thing, blob, blob_len, "blob", 0),
    ROW_DATA (struct thing, lent, lent_len, "lent", ROW_NOT_NULL),
    ROW (struct thing, born, ROW_ONCE),
};
static const struct row_table table = ROW_TABLE ("thing", columns, "box");
static const struct row_column counted_columns[] = {ROW (struct thing, big, 0)};
static const struct row_table counted = ROW_TABLE ("counted", counted_columns, "sequence");

static const int64_t box = 3;

static struct store *open_at (const struct scratch *s)
{
    struct err err = {0};
    struct store *store = store_open (s->db, steps, &err);
    if (!store)
        fail_msg ("%s", err.text);
    return store;
}

static void write_ok (struct store *store, enum row_how how, const struct thing *thing)
{
    struct err err = {0};
    assert_ok (store_row_write (store, &table, how, &box, thing, &err), err);
}

/* The one of that id; false: there is none. */
static bool read_one (struct store *store, uint32_t id, struct arena *arena, struct thing *out)
{
    struct err err = {0};
    struct store_stmt *q =
        store_row_select (store, &table, " FROM thing WHERE box = ?1 AND id = ?2");
    store_bind_int (q, 1, box);
    store_bind_int (q, 2, id);
    int rc = store_step (q, &err);
    if (rc == 1) {
        assert_int_equal (store_col_int (q, 0), box);
        assert_ok (store_row_take (q, &table, arena, out, &err), err);
        store_reset (q);
    }
    return rc == 1;
}

static struct thing a_thing (void)
{
    return (struct thing){.id = 5,
                          .small = -9,
                          .big = UINT64_C (1) << 62,
                          .yes = true,
                          .kind = KIND_SOME,
                          .text = "a text",
                          .name = "sevenok",
                          .hash = {1, 2, 3, 255},
                          .own = (char *)"own",
                          .blob = (void *)"b\0b",
                          .blob_len = 3,
                          .lent = "xyz",
                          .lent_len = 3,
                          .born = 11};
}

static void each_type_comes_back (void **state)
{
    struct store *store = open_at (*state);
    struct arena *arena = arena_create (0);
    struct thing in = a_thing (), out;
    memset (&out, 0xff, sizeof out);
    write_ok (store, ROW_INSERT, &in);
    assert_true (read_one (store, 5, arena, &out));
    assert_int_equal (out.small, -9);
    assert_true (out.big == in.big && out.yes && out.kind == KIND_SOME && out.born == 11);
    assert_string_equal (out.text, "a text");
    assert_string_equal (out.name, "sevenok");
    assert_memory_equal (out.hash, in.hash, sizeof in.hash);
    assert_string_equal (out.own, "own");
    assert_string_equal (out.must, ""); /* NULL, which its column cannot be */
    assert_true (out.blob_len == 3 && memcmp (out.blob, "b\0b", 3) == 0);
    assert_true (out.lent_len == 3 && memcmp (out.lent, "xyz", 3) == 0);
    in = (struct thing){.id = 6};
    write_ok (store, ROW_INSERT, &in);
    assert_true (read_one (store, 6, NULL, &out)); /* what it owns is malloc'ed */
    assert_null (out.own);
    assert_null (out.blob);
    assert_true (out.blob_len == 0 && out.lent_len == 0);
    free (out.must);
    arena_destroy (arena);
    store_close (store);
}

static void a_second_one_clashes_as_it_is_said (void **state)
{
    struct store *store = open_at (*state);
    struct arena *arena = arena_create (0);
    struct thing in = a_thing (), out;
    struct err err = {0};
    write_ok (store, ROW_UPDATE, &in); /* of none */
    assert_false (read_one (store, 5, arena, &out));
    write_ok (store, ROW_PUT, &in);
    in.small = 1;
    in.born = 99;
    assert_int_equal (store_row_write (store, &table, ROW_INSERT, &box, &in, &err), ERR_EXISTS);
    write_ok (store, ROW_KEEP, &in);
    assert_true (read_one (store, 5, arena, &out) && out.small == -9);
    write_ok (store, ROW_PUT, &in);
    assert_true (read_one (store, 5, arena, &out) && out.small == 1 && out.born == 11);
    in.small = 2;
    write_ok (store, ROW_UPDATE, &in);
    assert_true (read_one (store, 5, arena, &out) && out.small == 2 && out.born == 11);
    write_ok (store, ROW_REPLACE, &in);
    assert_true (read_one (store, 5, arena, &out) && out.born == 99);
    arena_destroy (arena);
    store_close (store);
}

static void keys_that_the_store_gives (void **state)
{
    struct store *store = open_at (*state);
    struct thing in = {.big = 8}, out = {0};
    struct err err = {0};
    for (int64_t i = 1; i <= 2; i++) {
        assert_ok (store_row_write (store, &counted, ROW_INSERT, NULL, &in, &err), err);
        assert_int_equal (store_last_id (store), i);
    }
    struct store_stmt *q =
        store_row_select (store, &counted, ", big + 1 FROM counted WHERE sequence = 2");
    assert_int_equal (store_step (q, &err), 1);
    assert_ok (store_row_take (q, &counted, NULL, &out, &err), err);
    assert_true (out.big == 8 && store_col_int (q, 0) == 2 && store_col_int (q, 2) == 9);
    store_reset (q);
    store_close (store);
}

static void bytes_of_another_length_are_damage (void **state)
{
    struct store *store = open_at (*state);
    struct arena *arena = arena_create (0);
    struct thing in = a_thing (), out;
    struct err err = {0};
    write_ok (store, ROW_INSERT, &in);
    assert_ok (store_exec (store, "UPDATE thing SET hash = x'0A0B'", &err), err);
    struct store_stmt *q = store_row_select (store, &table, " FROM thing");
    assert_int_equal (store_step (q, &err), 1);
    assert_int_equal (store_row_take (q, &table, arena, &out, &err), ERR_IO);
    assert_string_equal (err.text, "thing.hash is damaged: 2 bytes, not 4");
    assert_memory_equal (out.hash, "\x0a\x0b\0\0", 4);
    assert_string_equal (out.name, "sevenok");
    store_reset (q);
    arena_destroy (arena);
    store_close (store);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown (each_type_comes_back, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown (a_second_one_clashes_as_it_is_said, scratch_setup,
                                         scratch_teardown),
        cmocka_unit_test_setup_teardown (keys_that_the_store_gives, scratch_setup,
                                         scratch_teardown),
        cmocka_unit_test_setup_teardown (bytes_of_another_length_are_damage, scratch_setup,
                                         scratch_teardown),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
