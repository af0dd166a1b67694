/* Hash trees against published values, every path of every small tree, and what a leaf depends on.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

#include "proto/audit/block.h"

/* The inputs that implementations of RFC 9162 test with, and the roots over the first n of them. */
static const struct {
    const char *bytes;
    size_t len;
} input[] = {{"", 0},
             {"\x00", 1},
             {"\x10", 1},
             {"\x20\x21", 2},
             {"\x30\x31", 2},
             {"\x40\x41\x42\x43", 4},
             {"\x50\x51\x52\x53\x54\x55\x56\x57", 8},
             {"\x60\x61\x62\x63\x64\x65\x66\x67\x68\x69\x6a\x6b\x6c\x6d\x6e\x6f", 16}};
static const char *const root_of[] = {
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"};

static struct merkle_hash leaf_of (size_t i)
{
    uint8_t marked[32] = {MERKLE_LEAF_MARK};
    memcpy (marked + 1, input[i].bytes, input[i].len);
    return merkle_leaf (marked, 1 + input[i].len);
}

static void published_roots (void **state)
{
    struct merkle_hash leaf[8];
    char text[2 * MERKLE_BYTES + 1];
    (void)state;
    for (size_t n = 0; n <= 8; n++) {
        if (n > 0)
            leaf[n - 1] = leaf_of (n - 1);
        struct merkle_hash root = merkle_root (leaf, n);
        assert_string_equal (root_of[n], merkle_text (&root, text));
    }
}

static void every_path (void **state)
{
    enum { MOST = 70 };
    struct merkle_hash leaf[MOST], path[MERKLE_PATH_MAX];
    (void)state;
    for (int i = 0; i < MOST; i++)
        leaf[i] = merkle_leaf (((uint8_t[2]){MERKLE_LEAF_MARK, (uint8_t)i}), 2);
    for (size_t n = 1; n <= MOST; n++) {
        struct merkle_hash root = merkle_root (leaf, n);
        for (size_t i = 0; i < n; i++) {
            size_t len = merkle_path (leaf, n, i, path);
            assert_true (merkle_path_holds (&leaf[i], n, i, path, len, &root));
            assert_false (merkle_path_holds (&leaf[(i + 1) % MOST], n, i, path, len, &root));
            assert_false (merkle_path_holds (&leaf[i], n, n, path, len, &root));
            assert_false (merkle_path_holds (&leaf[i], n, i, path, len + 1, &root));
            if (len == 0)
                continue;
            assert_false (merkle_path_holds (&leaf[i], n, i, path, len - 1, &root));
            path[len / 2].b[7] ^= 1;
            assert_false (merkle_path_holds (&leaf[i], n, i, path, len, &root));
        }
    }
}

static void a_leaf_is_all_of_its_operation (void **state)
{
    struct audit_entry entry[2] = {{0, 'H', 1, 4, 5, -6, 7, 8}, {1, 'H', 1, 9, 10, 6, 7, 8}};
    const struct audit_op op = {.id = 12,
                                .client = "nui://g/site/a",
                                .kind = "hold",
                                .on_behalf = "nui://g/user/u",
                                .site = "a",
                                .job = "j",
                                .note = "n",
                                .effective_at = 1,
                                .recorded_at = 2,
                                .outcome = "yes",
                                .outcome_len = 3,
                                .entry = entry,
                                .entry_count = 2};
    struct strbuf scratch = STRBUF_INIT;
    struct merkle_hash before = audit_leaf (&op, &scratch), after;
    struct audit_op other[13];
    (void)state;
    for (size_t i = 0; i < 13; i++)
        other[i] = op;
    other[0].id++;
    other[1].client = "nui://g/site/b";
    other[2].kind = "charge";
    other[3].on_behalf = "nui://g/user/v";
    other[4].site = "aj"; /* the same letters, cut elsewhere */
    other[4].job = "";
    other[5].note = "";
    other[6].effective_at++;
    other[7].recorded_at++;
    other[8].status--;
    other[9].outcome_len--;
    other[10].entry_count--;
    other[11].key[15]++;
    other[12].hash[0]++;
    for (size_t i = 0; i < 13; i++) {
        after = audit_leaf (&other[i], &scratch);
        assert_false (merkle_equal (&before, &after));
    }
    entry[1].amount++;
    after = audit_leaf (&op, &scratch);
    assert_false (merkle_equal (&before, &after));
    strbuf_free (&scratch);
}

static struct merkle_hash lines_of (const char *const *text)
{
    EVP_MD_CTX *leaf = audit_lines_begin ();
    for (; *text; text++)
        audit_lines_add (leaf, *text, strlen (*text));
    return audit_lines_end (leaf);
}

#define LINES(...) lines_of ((const char *const[]){__VA_ARGS__, NULL})

/* The bank hashes them as two texts, who verifies as they come, line by line. */
static void a_leaf_of_lines_is_all_of_them (void **state)
{
    static const char spelled[] = "\0\0\0\0\0\0\0\0\013nui-rows-v1[\"a\",1]\n{\"b\":2}\n";
    struct merkle_hash leaf = LINES ("[\"a\",1]", "{\"b\":2}"),
                       other[] = {LINES ("[\"a\",1]"), LINES ("{\"b\":2}", "[\"a\",1]"),
                                  LINES ("[\"a\",1]{\"b\":2}"), LINES ("[\"a\",2]", "{\"b\":2}"),
                                  LINES ("[\"a\",1]", "{\"b\":2}", "")};
    struct merkle_hash together = LINES ("[\"a\",1]\n{\"b\":2}"),
                       bytes = merkle_leaf (spelled, sizeof (spelled) - 1);
    (void)state;
    assert_true (merkle_equal (&leaf, &together));
    assert_true (merkle_equal (&leaf, &bytes));
    for (size_t i = 0; i < sizeof (other) / sizeof (other[0]); i++)
        assert_false (merkle_equal (&leaf, &other[i]));
}

static void a_block_there_and_back (void **state)
{
    struct block block = {.number = 3, .first_op = 17, .ops = 5, .recorded_at = 99}, back;
    uint8_t body[BLOCK_BYTES];
    struct err err;
    (void)state;
    memset (block.prev.b, 0xaa, MERKLE_BYTES);
    memset (block.root.b, 0xbb, MERKLE_BYTES);
    block_encode (&block, body);
    assert_int_equal (0, block_decode (body, sizeof (body), &back, &err));
    assert_memory_equal (&block, &back, sizeof (block));
    assert_int_equal (ERR_INVALID, block_decode (body, sizeof (body) - 1, &back, &err));
    memset (body + 16, 0, 8); /* no operations */
    assert_int_equal (ERR_INVALID, block_decode (body, sizeof (body), &back, &err));
    memset (body + 16, 0xff, 8); /* more than there are numbers */
    body[16] = 0x7f;
    assert_int_equal (ERR_INVALID, block_decode (body, sizeof (body), &back, &err));
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (published_roots),
        cmocka_unit_test (every_path),
        cmocka_unit_test (a_leaf_is_all_of_its_operation),
        cmocka_unit_test (a_leaf_of_lines_is_all_of_them),
        cmocka_unit_test (a_block_there_and_back),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
