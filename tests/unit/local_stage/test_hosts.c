#include "tests/unit/base/unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "local/stage/hosts.h"

/* entries between blanks; address NULL: not known yet. */
static bool allowed (const char *entries, const char *name, const char *address)
{
    char text[256], *rest = NULL;
    const char *entry[16];
    uint32_t count = 0;
    struct hosts *hosts = NULL;
    struct err err = {0};
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    const struct sockaddr *at = NULL;
    snprintf (text, sizeof text, "%s", entries);
    for (char *w = strtok_r (text, " ", &rest); w; w = strtok_r (NULL, " ", &rest))
        entry[count++] = w;
    assert_ok (hosts_parse (entry, count, &hosts, &err), err);
    if (address && inet_pton (AF_INET, address, &v4.sin_addr) == 1)
        at = (const struct sockaddr *)(const void *)&v4;
    else if (address && inet_pton (AF_INET6, address, &v6.sin6_addr) == 1)
        at = (const struct sockaddr *)(const void *)&v6;
    assert_true (!address == !at);
    int rc = hosts_check (hosts, name, at, &err);
    hosts_free (hosts);
    assert_true (rc == 0 || rc == ERR_DENIED);
    return rc == 0;
}

static void entries_decide_in_order (void **state)
{
    (void)state;
    static const struct {
        const char *entries, *name, *address;
        bool allowed;
    } cases[] = {
        {"", "data.example.org", NULL, true},
        {"", "data.example.org", "192.0.2.7", true},
        {"", "data.example.org", "2001:db8::7", true},
        {"*.example.org", "data.Example.org", "192.0.2.7", true},
        {"*.example.org", "data.example.com", NULL, false},
        {"!bad.example.org *.example.org", "bad.example.org", NULL, false},
        {"*.example.org !bad.example.org", "bad.example.org", NULL, true},
        {"192.0.2.0/24", "any.host", NULL, true}, /* later */
        {"192.0.2.0/24", "any.host", "192.0.2.255", true},
        {"192.0.2.0/25", "any.host", "192.0.2.255", false},
        {"192.0.2.0/25", "192.0.2.255", NULL, false},
        {"2001:db8::/33", "h", "2001:db8:7fff::1", true},
        {"2001:db8::/33", "h", "2001:db8:8000::1", false},
        {"!192.0.2.0/24 *", "h", "192.0.2.1", false},
        {"!192.0.2.0/24 *", "h", "198.51.100.1", true},
        {"!0.0.0.0/0", "h", NULL, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (allowed (cases[i].entries, cases[i].name, cases[i].address) != cases[i].allowed)
            fail_msg ("'%s' %s %s", cases[i].entries, cases[i].name,
                      cases[i].address ? cases[i].address : "?");
}

static void inner_addresses_need_to_be_named (void **state)
{
    (void)state;
    static const char *const inner[] = {
        "127.0.0.1",
        "127.1.2.3",
        "10.1.2.3",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.1.1",
        "169.254.169.254",
        "0.0.0.0",
        "100.64.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "::1",
        "::",
        "fe80::1",
        "fd00:ec2::254",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "::127.0.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
    };
    static const char *const outer[] = {"8.8.8.8",     "172.32.0.1",  "172.15.0.1",
                                        "100.128.0.1", "2001:db8::1", "::ffff:8.8.8.8"};
    for (size_t i = 0; i < sizeof inner / sizeof *inner; i++) {
        if (allowed ("", "h", inner[i]) || allowed ("*", "h", inner[i]) ||
            allowed ("", inner[i], NULL))
            fail_msg ("%s was let through", inner[i]);
        assert_true (allowed ("h", "h", inner[i]));
        assert_true (allowed (inner[i], "other", inner[i]));
    }
    for (size_t i = 0; i < sizeof outer / sizeof *outer; i++)
        assert_true (allowed ("", "h", outer[i]) && allowed ("*", "h", outer[i]));
}

static void bad_entries_are_refused (void **state)
{
    (void)state;
    static const char *const bad[] = {"",           "!",   "10.0.0.0/33", "::1/129",
                                      "10.0.0.0/x", "a b", "name/8"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct hosts *hosts = NULL;
        assert_int_equal (hosts_parse (&bad[i], 1, &hosts, NULL), ERR_INVALID);
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (entries_decide_in_order),
        cmocka_unit_test (inner_addresses_need_to_be_named),
        cmocka_unit_test (bad_entries_are_refused),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
