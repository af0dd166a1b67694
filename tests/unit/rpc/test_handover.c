/* The hand-over of a job to a site: what it stands for and nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "proto/job/handover.h"

#define DAY (86400 * US_PER_S)
#define NOW (20000 * DAY + 5 * DAY)

static const uint8_t secret[SHA256_BYTES] = "thirty-one bytes and a zero ...";
static uint8_t uuid[16] = {1, 2, 3};

static struct handover about (const char *site, const char *component)
{
    struct handover h = {.grid = "test",
                         .metascheduler = "main",
                         .site = site,
                         .component = component,
                         .uuid = {sizeof uuid, uuid}};
    memset (h.hash, 9, sizeof h.hash);
    return h;
}

static int up (void **state)
{
    *state = arena_create (0);
    return 0;
}

static int down (void **state)
{
    arena_destroy (*state);
    return 0;
}

static Nui__Common__V1__HandOver *sealed (struct arena *arena, time_us at, time_us expires)
{
    struct handover_key key;
    struct handover h = about ("alpha", "main");
    handover_derive (secret, "test", "main", handover_number (at), &key);
    return handover_seal (&key, &h, expires, arena);
}

static void refused (const Nui__Common__V1__HandOver *given, const struct handover *h, time_us now,
                     const char *words)
{
    struct err err = {0};
    assert_int_equal (handover_check (secret, given, h, now, &err), ERR_DENIED);
    if (!strstr (err.text, words))
        fail_msg ("'%s' does not say '%s'", err.text, words);
}

static void it_is_the_standards_mac (void **state)
{
    static const uint8_t want[SHA256_BYTES] = {0x09, 0x98, 0x05, 0xf4, 0xac, 0x31, 0x07, 0x86,
                                               0x96, 0x85, 0x65, 0xc0, 0x98, 0xdb, 0x51, 0x5c,
                                               0xc5, 0x08, 0x62, 0xb4, 0x20, 0xae, 0x31, 0xe2,
                                               0x02, 0x38, 0x31, 0x23, 0x44, 0xbe, 0xd3, 0x6a};
    uint8_t key[SHA256_BYTES], out[SHA256_BYTES];
    (void)state;
    for (size_t i = 0; i < sizeof key; i++)
        key[i] = (uint8_t)i;
    sha256_mac (key, "what do ya want for nothing?", 28, out); /* as Python's hmac says */
    assert_memory_equal (out, want, sizeof want);
}

static void it_stands_for_one_thing (void **state)
{
    struct err err = {0};
    Nui__Common__V1__HandOver *given = sealed (*state, NOW, INT64_MAX);
    struct handover h = about ("alpha", "main");
    assert_int_equal (handover_check (secret, given, &h, NOW, &err), 0);
    refused (NULL, &h, NOW,
             "no metascheduler has handed component main of this job over to site alpha");
    struct handover other = about ("beta", "main");
    refused (given, &other, NOW, "is not for component main of this job at site beta");
    other = about ("alpha", "second");
    refused (given, &other, NOW, "is not for component second");
    other = about ("alphamain", ""); /* parts are kept apart */
    refused (given, &other, NOW, "is not for");
    other = about ("alpha", "main");
    other.grid = "prod";
    refused (given, &other, NOW, "is not for");
    other = about ("alpha", "main");
    other.hash[31] ^= 1;
    refused (given, &other, NOW, "is not for");
    uint8_t another[16] = {1, 2, 4};
    other = about ("alpha", "main");
    other.uuid.data = another;
    refused (given, &other, NOW, "is not for");
}

static void it_cannot_be_changed (void **state)
{
    struct handover h = about ("alpha", "main");
    struct err err = {0};
    Nui__Common__V1__HandOver *given = sealed (*state, NOW, NOW + DAY);
    assert_int_equal (handover_check (secret, given, &h, NOW + DAY - 1, &err), 0);
    refused (given, &h, NOW + DAY, "ended 00:00:00 ago");
    given->expires_us += DAY;
    refused (given, &h, NOW, "is not for");
    given = sealed (*state, NOW, NOW + DAY);
    given->metascheduler = arena_strdup (*state, "other");
    refused (given, &h, NOW, "is not for");
    given = sealed (*state, NOW, NOW + DAY);
    given->key += 1; /* the next month's, where it begins soon */
    refused (given, &h, handover_begins (given->key) - US_PER_S,
             given->expires_us > handover_begins (given->key) ? "is not for" : "ended");
    given = sealed (*state, NOW, NOW + DAY);
    given->mac.len = 0;
    refused (given, &h, NOW, "is not for");
    given->mac = (ProtobufCBinaryData){0, NULL};
    refused (given, &h, NOW, "is not for");
}

static void a_key_lasts_for_its_month_and_one_more (void **state)
{
    struct handover h = about ("alpha", "main");
    struct err err = {0};
    Nui__Common__V1__HandOver *given = sealed (*state, NOW, INT64_MAX);
    time_us begins = handover_begins (handover_number (NOW));
    assert_true (begins <= NOW && NOW < begins + HANDOVER_PERIOD);
    assert_int_equal (given->expires_us, begins + 2 * HANDOVER_PERIOD);
    assert_int_equal (handover_check (secret, given, &h, begins + 2 * HANDOVER_PERIOD - 1, &err),
                      0);
    refused (given, &h, begins + 2 * HANDOVER_PERIOD, "ended");
    /* a key that is not given out yet, or was long ago, whatever it sealed */
    refused (given, &h, begins - 2 * 3600 * US_PER_S, "by a key that does not hold now");
    given->expires_us = INT64_MAX;
    refused (given, &h, begins + 3 * HANDOVER_PERIOD, "by a key that does not hold now");
    given->key = UINT64_MAX;
    refused (given, &h, NOW, "by a key that does not hold now");
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (it_is_the_standards_mac),
        cmocka_unit_test_setup_teardown (it_stands_for_one_thing, up, down),
        cmocka_unit_test_setup_teardown (it_cannot_be_changed, up, down),
        cmocka_unit_test_setup_teardown (a_key_lasts_for_its_month_and_one_more, up, down),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
