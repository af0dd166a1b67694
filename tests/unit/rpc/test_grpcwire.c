#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proto/nui/v1/common.pb-c.h"
#include "proto/base/text.h"
#include "proto/rpc/grpcwire.h"
#include "proto/rpc/pbguard.h"

static void test_content_type (void **state)
{
    static const struct {
        const char *text;
        bool ok;
    } cases[] = {{"application/grpc", true},     {"application/grpc+proto", true},
                 {"application/grpc;x=y", true}, {"application/grpcweb", false},
                 {"application/grp", false},     {"", false},
                 {"Application/grpc", false},    {"application/json", false},
                 {"application/grpc-web", false}};

    (void)state;
    for (size_t i = 0; i < sizeof (cases) / sizeof (cases[0]); i++)
        assert_int_equal (grpcwire_content_type_ok (cases[i].text, strlen (cases[i].text)),
                          cases[i].ok);
}

static void test_timeout (void **state)
{
    static const struct {
        const char *text;
        int64_t us; /* -1: refused */
    } cases[] = {{"1H", 3600000000}, {"2M", 120000000},
                 {"3S", 3000000},    {"4m", 4000},
                 {"5u", 5},          {"1n", 1},
                 {"1000n", 1},       {"1001n", 2},
                 {"0n", 0},          {"99999999H", INT64_C (99999999) * 3600000000},
                 {"123456789m", -1}, {"m", -1},
                 {"", -1},           {"5", -1},
                 {"-5m", -1},        {"5x", -1},
                 {"5 m", -1},        {"+5m", -1}};
    static const int64_t round[] = {1,
                                    999,
                                    99999999,
                                    100000000,
                                    100000001,
                                    12345678901,
                                    INT64_C (99999999) * 1000,
                                    INT64_C (99999999) * 1000 + 1,
                                    INT64_C (86400) * 365 * 1000000};
    char buf[GRPCWIRE_TIMEOUT_MAX];
    duration_us us;

    (void)state;
    for (size_t i = 0; i < sizeof (cases) / sizeof (cases[0]); i++) {
        bool ok = grpcwire_timeout_parse (cases[i].text, strlen (cases[i].text), &us);
        assert_int_equal (ok, cases[i].us >= 0);
        if (ok)
            assert_int_equal (us, cases[i].us);
    }
    /* What is written is never shorter than asked, and at most one unit longer. */
    for (size_t i = 0; i < sizeof (round) / sizeof (round[0]); i++) {
        grpcwire_timeout_format (round[i], buf);
        assert_true (strlen (buf) <= 9);
        assert_true (grpcwire_timeout_parse (buf, strlen (buf), &us));
        assert_true (us >= round[i] && us <= round[i] + round[i] / 1000 + 1);
    }
    assert_string_equal (grpcwire_timeout_format (0, buf), "1u");
    assert_string_equal (grpcwire_timeout_format (-5, buf), "1u");
    assert_string_equal (grpcwire_timeout_format (INT64_MAX - 1, buf), "99999999H");
}

static void test_percent (void **state)
{
    char enc[64], dec[64];
    size_t n;

    (void)state;
    grpcwire_percent_encode ("5 € = 100 %\n", 14, enc, sizeof (enc));
    assert_string_equal (enc, "5 %E2%82%AC = 100 %25%0A");
    n = grpcwire_percent_decode (enc, strlen (enc), dec, sizeof (dec));
    assert_int_equal (n, 14);
    assert_string_equal (dec, "5 € = 100 %\n");
    /* never half a character, never half an escape */
    n = grpcwire_percent_encode ("a€", 4, enc, 10);
    assert_string_equal (enc, "a");
    assert_int_equal (n, 1);
    n = grpcwire_percent_encode ("a€", 4, enc, 11);
    assert_string_equal (enc, "a%E2%82%AC");
    /* lenient where others are sloppy */
    grpcwire_percent_decode ("100% %4 %zz %41%", 16, dec, sizeof (dec));
    assert_string_equal (dec, "100% %4 %zz A%");
    grpcwire_percent_decode ("%ff%00x", 7, dec, sizeof (dec));
    assert_string_equal (dec, "??x");
    grpcwire_percent_decode ("%e2%82", 6, dec, sizeof (dec));
    assert_string_equal (dec, "??");
    n = grpcwire_percent_decode ("abcdef", 6, dec, 4);
    assert_string_equal (dec, "abc");
}

static void test_status (void **state)
{
    int s;

    (void)state;
    assert_true (grpcwire_status_parse ("0", 1, &s) && s == 0);
    assert_true (grpcwire_status_parse ("16", 2, &s) && s == 16);
    assert_true (grpcwire_status_parse ("17", 2, &s) && s == 2);
    assert_true (grpcwire_status_parse ("999999", 6, &s) && s == 2);
    assert_false (grpcwire_status_parse ("", 0, &s));
    assert_false (grpcwire_status_parse ("-1", 2, &s));
    assert_false (grpcwire_status_parse ("1x", 2, &s));
    assert_false (grpcwire_status_parse ("4294967296", 10, &s));
    assert_int_equal (grpcwire_status_of_http (503), 14);
    assert_int_equal (grpcwire_status_of_http (404), 12);
    assert_int_equal (grpcwire_status_of_http (302), 2);
    assert_int_equal (grpcwire_status_of_reset (8), 1);
    assert_int_equal (grpcwire_status_of_reset (7), 14);
    assert_int_equal (grpcwire_status_of_reset (0), 2);
    assert_int_equal (grpcwire_status_of_reset (1), 13);
}

static void test_utf8 (void **state)
{
    static const char *const good[] = {"", "a", "é", "€", "𐍈", "\xed\x9f\xbf", "\xf4\x8f\xbf\xbf"};
    static const char *const bad[] = {"\x80",
                                      "\xc0\x80",
                                      "\xc1\xbf",
                                      "\xe0\x80\x80",
                                      "\xed\xa0\x80",
                                      "\xf0\x80\x80\x80",
                                      "\xf4\x90\x80\x80",
                                      "\xf5\x80\x80\x80",
                                      "\xff",
                                      "\xe2\x82",
                                      "\xc3",
                                      "a\xf0\x9f\x98"};

    (void)state;
    for (size_t i = 0; i < sizeof (good) / sizeof (good[0]); i++)
        assert_true (text_ok (good[i], strlen (good[i])));
    for (size_t i = 0; i < sizeof (bad) / sizeof (bad[0]); i++)
        assert_false (text_ok (bad[i], strlen (bad[i])));
    assert_false (text_ok ("a\0b", 3));
}

/* Three messages in one stream, cut into pieces of every size. */
static void test_reader (void **state)
{
    static const uint8_t stream[] = {0, 0, 0, 0, 3, 'a', 'b', 'c', 0,   0,
                                     0, 0, 0, 0, 0, 0,   0,   2,   'd', 'e'};

    (void)state;
    for (size_t piece = 1; piece <= sizeof (stream); piece++) {
        struct grpcwire_reader r = {.max = 3};
        unsigned count = 0;
        size_t used, total = 0;
        for (size_t at = 0; at < sizeof (stream);) {
            size_t n = sizeof (stream) - at < piece ? sizeof (stream) - at : piece;
            enum grpcwire_read got = grpcwire_feed (&r, stream + at, n, &used);
            assert_true (got == GRPCWIRE_MORE || got == GRPCWIRE_COMPLETE);
            if (got == GRPCWIRE_MORE)
                assert_int_equal (used, n);
            at += used;
            if (got == GRPCWIRE_COMPLETE) {
                total += r.len;
                count++;
                assert_false (grpcwire_reader_idle (&r));
                grpcwire_reader_next (&r);
            }
        }
        assert_int_equal (count, 3);
        assert_int_equal (total, 5);
        assert_true (grpcwire_reader_idle (&r));
        grpcwire_reader_clear (&r);
    }
}

static void test_reader_refuses (void **state)
{
    static const uint8_t large[] = {0, 0xff, 0xff, 0xff, 0xff}, flag[] = {1, 0, 0, 0, 0},
                         bad[] = {2, 0, 0, 0, 0}, announced[] = {0, 0, 0xff, 0, 0, 1};
    struct grpcwire_reader r = {.max = 1 << 24};
    size_t used;

    (void)state;
    assert_int_equal (grpcwire_feed (&r, large, 5, &used), GRPCWIRE_TOO_LARGE);
    r = (struct grpcwire_reader){.max = 10};
    assert_int_equal (grpcwire_feed (&r, flag, 5, &used), GRPCWIRE_COMPRESSED);
    r = (struct grpcwire_reader){.max = 10};
    assert_int_equal (grpcwire_feed (&r, bad, 5, &used), GRPCWIRE_BAD);
    /* Memory follows what arrived, not what was announced. */
    r = (struct grpcwire_reader){.max = 1 << 24};
    assert_int_equal (grpcwire_feed (&r, announced, 6, &used), GRPCWIRE_MORE);
    assert_true (r.cap < 1000);
    grpcwire_reader_clear (&r);
}

/* ---- pbguard */

static const ProtobufCMessageDescriptor *const job = &nui__common__v1__job__descriptor;

static int guard (const void *bytes, size_t len, struct err *err)
{
    ProtobufCMessage *m = pbguard_unpack (job, bytes, len, err);

    if (!m)
        return err->code;
    protobuf_c_message_free_unpacked (m, NULL);
    return 0;
}

/* The first repeated submessage field of Job, whatever its number is. */
static const ProtobufCFieldDescriptor *repeated_message (void)
{
    for (unsigned i = 0; i < job->n_fields; i++) {
        if (job->fields[i].type == PROTOBUF_C_TYPE_MESSAGE &&
            job->fields[i].label == PROTOBUF_C_LABEL_REPEATED)
            return &job->fields[i];
    }
    fail_msg ("Job has no repeated message");
    return NULL;
}

static void test_guard_amplification (void **state)
{
    const ProtobufCFieldDescriptor *f = repeated_message ();
    static uint8_t bytes[1 << 20];
    struct err err;

    (void)state;
    assert_true (f->id < 16);
    for (size_t i = 0; i < sizeof (bytes); i += 2) {
        bytes[i] = (uint8_t)(f->id << 3 | 2);
        bytes[i + 1] = 0;
    }
    assert_int_equal (guard (bytes, 200, &err), 0); /* a hundred are nothing */
    assert_int_equal (guard (bytes, sizeof (bytes), &err), ERR_LIMIT);
    /* unknown fields are kept by protobuf-c, so they count too */
    for (size_t i = 0; i < sizeof (bytes); i += 3) {
        bytes[i] = 0xf8;
        bytes[i + 1 < sizeof (bytes) ? i + 1 : i] = 0x7f;
        bytes[i + 2 < sizeof (bytes) ? i + 2 : i] = 0;
    }
    assert_int_equal (guard (bytes, sizeof (bytes) / 3 * 3, &err), ERR_LIMIT);
}

/* A message type that contains itself, as protoc-c would describe it. */
static void test_guard_nesting (void **state)
{
    static ProtobufCFieldDescriptor field;
    static ProtobufCMessageDescriptor self;
    static const ProtobufCIntRange ranges[] = {{1, 0}, {0, 1}};
    static const unsigned by_name[] = {0};
    uint8_t bytes[400];
    struct err err;

    (void)state;
    field = (ProtobufCFieldDescriptor){.name = "self",
                                       .id = 1,
                                       .label = PROTOBUF_C_LABEL_NONE,
                                       .type = PROTOBUF_C_TYPE_MESSAGE,
                                       .descriptor = &self};
    self = (ProtobufCMessageDescriptor){.magic = PROTOBUF_C__MESSAGE_DESCRIPTOR_MAGIC,
                                        .name = "test.Self",
                                        .sizeof_message = 32,
                                        .n_fields = 1,
                                        .fields = &field,
                                        .fields_sorted_by_name = by_name,
                                        .n_field_ranges = 1,
                                        .field_ranges = ranges};
    /* depth levels of "field 1, the rest" */
    for (unsigned depth = 1; depth <= 60; depth++) {
        size_t len = 0;
        for (unsigned d = 0; d < depth; d++) {
            bytes[len++] = 0x0a;
            bytes[len++] = (uint8_t)(2 * (depth - d - 1));
        }
        assert_int_equal (pbguard_check (&self, bytes, len, &err),
                          depth <= PBGUARD_DEPTH_MAX ? 0 : ERR_LIMIT);
    }
}

/* Of a stranger's message also fields that need no memory are counted: the same number again and again, and packed
 * ones. The more there is of it the more there may be. */
static void test_guard_fields (void **state)
{
    static uint8_t bytes[4 * PBGUARD_FIELDS], packed[2 * PBGUARD_FIELDS];
    size_t len = sizeof (packed) - 8, n = 0;
    struct err err;

    (void)state;
    for (size_t i = 0; i < sizeof (bytes); i += 2) {
        bytes[i] = 4 << 3; /* created_us */
        bytes[i + 1] = 1;
    }
    assert_int_equal (pbguard_check (job, bytes, sizeof (bytes), &err), 0);
    assert_int_equal (pbguard_few (job, bytes, sizeof (bytes), PBGUARD_FIELDS, &err), ERR_LIMIT);
    assert_int_equal (pbguard_few (job, bytes, sizeof (bytes), PBGUARD_FIELDS_MANY, &err), 0);
    assert_int_equal (pbguard_few (job, bytes, 2 * PBGUARD_FIELDS, PBGUARD_FIELDS, &err), 0);
    assert_null (pbguard_request (job, bytes, sizeof (bytes), PBGUARD_FIELDS, NULL, &err));
    packed[n++] = 2 << 3 | 2; /* exit_codes */
    for (size_t left = len; left > 0 || n == 1; left >>= 7)
        packed[n++] = (uint8_t)((left & 0x7f) | (left > 0x7f ? 0x80 : 0));
    memset (packed + n, 1, sizeof (packed) - n);
    assert_int_equal (pbguard_few (&nui__common__v1__retry__descriptor, packed, n + len,
                                   2 * PBGUARD_FIELDS, &err),
                      0);
    assert_int_equal (
        pbguard_few (&nui__common__v1__retry__descriptor, packed, n + len, PBGUARD_FIELDS, &err),
        ERR_LIMIT);
}

static void test_guard_malformed (void **state)
{
    static const uint8_t cut_tag[] = {0x80}, zero_tag[] = {0x00}, group[] = {0x0b},
                         over[] = {0x0a, 0x05, 'a'}, huge[] = {0x0a, 0xff, 0xff, 0xff, 0xff, 0xff,
                                                               0xff, 0xff, 0xff, 0xff, 0x01},
                         long_varint[] = {0x08, 0xff, 0xff, 0xff, 0xff, 0xff,
                                          0xff, 0xff, 0xff, 0xff, 0xff, 0x01};
    struct err err;

    (void)state;
    assert_int_equal (guard (cut_tag, sizeof (cut_tag), &err), ERR_INVALID);
    assert_int_equal (guard (zero_tag, sizeof (zero_tag), &err), ERR_INVALID);
    assert_int_equal (guard (group, sizeof (group), &err), ERR_INVALID);
    assert_int_equal (guard (over, sizeof (over), &err), ERR_INVALID);
    assert_int_equal (guard (huge, sizeof (huge), &err), ERR_INVALID);
    assert_int_equal (guard (long_varint, sizeof (long_varint), &err), ERR_INVALID);
    assert_int_equal (guard (NULL, 0, &err), 0);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_content_type),
        cmocka_unit_test (test_timeout),
        cmocka_unit_test (test_percent),
        cmocka_unit_test (test_status),
        cmocka_unit_test (test_utf8),
        cmocka_unit_test (test_reader),
        cmocka_unit_test (test_reader_refuses),
        cmocka_unit_test (test_guard_amplification),
        cmocka_unit_test (test_guard_nesting),
        cmocka_unit_test (test_guard_fields),
        cmocka_unit_test (test_guard_malformed),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}
