#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "proto/hash/sha256.h"

/* FIPS 180-2, appendix B.1; and of nothing. */
static const uint8_t of_abc[SHA256_BYTES] = {
    0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea, 0x41, 0x41, 0x40, 0xde, 0x5d, 0xae, 0x22, 0x23,
    0xb0, 0x03, 0x61, 0xa3, 0x96, 0x17, 0x7a, 0x9c, 0xb4, 0x10, 0xff, 0x61, 0xf2, 0x00, 0x15, 0xad};
static const uint8_t of_nothing[SHA256_BYTES] = {
    0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9, 0x24,
    0x27, 0xae, 0x41, 0xe4, 0x64, 0x9b, 0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55};

static void of_parts (const char *const *part, bool counted, uint8_t out[SHA256_BYTES])
{
    EVP_MD_CTX *hash = sha256_begin ();
    for (; *part; part++)
        (counted ? sha256_add_part : sha256_add) (hash, *part, strlen (*part));
    sha256_end (hash, out);
}

static void test_known (void **state)
{
    (void)state;
    uint8_t out[SHA256_BYTES];
    sha256 ("abc", 3, out);
    assert_memory_equal (out, of_abc, sizeof out);
    sha256 (NULL, 0, out);
    assert_memory_equal (out, of_nothing, sizeof out);
    of_parts ((const char *const[]){"a", "", "bc", NULL}, false, out);
    assert_memory_equal (out, of_abc, sizeof out);
    of_parts ((const char *const[]){NULL}, false, out);
    assert_memory_equal (out, of_nothing, sizeof out);
}

/* "a" and "bc" are not "ab" and "c", but the length and the bytes. */
static void test_counted (void **state)
{
    (void)state;
    uint8_t one[SHA256_BYTES], other[SHA256_BYTES];
    const uint64_t len = 3;
    uint8_t plain[sizeof len + 3];
    of_parts ((const char *const[]){"a", "bc", NULL}, true, one);
    of_parts ((const char *const[]){"ab", "c", NULL}, true, other);
    assert_memory_not_equal (one, other, sizeof one);
    memcpy (plain, &len, sizeof len);
    memcpy (plain + sizeof len, "abc", 3);
    of_parts ((const char *const[]){"abc", NULL}, true, one);
    sha256 (plain, sizeof plain, other);
    assert_memory_equal (one, other, sizeof one);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_known),
        cmocka_unit_test (test_counted),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
