#include "unit.h"

#include <string.h>

#include "proto/job/stagespec.h"

static void urls_are_read (void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum stage_scheme scheme;
        const char *user, *host;
        unsigned port;
        const char *path;
    } cases[] = {
        {"https://Data.Example.org/a/b.h5?sig=x", STAGE_HTTPS, "", "data.example.org", 443,
         "/a/b.h5?sig=x"},
        {"http://10.0.0.1:8080/", STAGE_HTTP, "", "10.0.0.1", 8080, "/"},
        {"HTTPS://[2001:db8::1]:444/x", STAGE_HTTPS, "", "2001:db8::1", 444, "/x"},
        {"https://[::1]/x", STAGE_HTTPS, "", "::1", 443, "/x"},
        {"sftp://alice@dtn.example.org:2222/scratch/a%20b", STAGE_SFTP, "alice", "dtn.example.org",
         2222, "/scratch/a%20b"},
        {"sftp://h/~/x", STAGE_SFTP, "", "h", 22, "/~/x"},
        {"s3://bucket/key/with/..dots", STAGE_S3, "", "bucket", 0, "/key/with/..dots"},
        {"file:///projects/x", STAGE_FILE, "", "", 0, "/projects/x"},
        {"https://h/a/../b", STAGE_HTTPS, "", "h", 443, "/a/../b"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct stage_url url;
        struct err err = {0};
        assert_int_equal (stage_url_parse (cases[i].text, &url, &err), 0);
        assert_int_equal (url.scheme, cases[i].scheme);
        assert_string_equal (url.user, cases[i].user);
        assert_string_equal (url.host, cases[i].host);
        assert_int_equal (url.port, cases[i].port);
        assert_string_equal (url.path, cases[i].path);
    }
}

static void bad_urls_are_refused (void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"", "wanted https://"},
        {"ftp://h/x", "wanted https://"},
        {"httpsx://h/x", "wanted https://"},
        {"https:///x", "names no host"},
        {"https://h", "names no file"},
        {"https://h?x", "names no file"},
        {"sftp://h/", "names no file"},
        {"sftp://h/x/", "names no file"},
        {"file:///", "names no file"},
        {"file://host/x", "without a host"},
        {"https://a:secret@h/x", "password"},
        {"https://a@h/x", "sftp only"},
        {"sftp://@h/x", "sftp only"},
        {"sftp://a@b@h/x", "sftp only"},
        {"https://h:0/x", "port"},
        {"https://h:65536/x", "port"},
        {"https://h:/x", "port"},
        {"https://[::1/x", "without ']'"},
        {"https://[::1]x/x", "no host in it"},
        {"https://h_$/x", "no name of a host"},
        {"https://-h/x", "no name of a host"},
        {"s3://bucket:80/x", "endpoint"},
        {"https://h/a b", "%XX"},
        {"https://h/a\nb", "%XX"},
        {"sftp://h/a\"b", "%XX"},
        {"https://h/%zz", "%XX"},
        {"https://h/%2", "%XX"},
        {"https://h/%00", "%XX"},
        {"https://h/a#b", "%23"},
        {"sftp://h/a?b", "%3F"},
        {"file:///a/../b", "'..'"},
        {"file:///a/%2e./b", "'..'"},
        {"sftp://h/a/..", "'..'"},
        {"s3://b/a%2f..%2Fb", "'..'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct stage_url url;
        struct err err = {0};
        assert_int_equal (stage_url_parse (cases[i][0], &url, &err), ERR_INVALID);
        if (!strstr (err.text, cases[i][1]) || strstr (err.text, "secret"))
            fail_msg ("%s: %s", cases[i][0], err.text);
    }
}

static void secrets_are_not_shown (void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"https://a:b@h/x?sig=1#y", "https://h/x"},
        {"https://a@b@h/x", "https://h/x"},
        {"sftp://alice@h:1/x", "sftp://h:1/x"},
        {"https://h?x", "https://h"},
        {"garbage", "garbage"},
        {"https://h/a@b", "https://h/a@b"},
    };
    char buf[64];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal (stage_url_show (cases[i][0], buf, sizeof buf), cases[i][1]);
    char small[8];
    assert_string_equal (stage_url_show ("https://host/x", small, sizeof small), "https:/");
}

static void paths_stay_below (void **state)
{
    (void)state;
    static const char *const good[] = {"a",   "in/grid.h5", "a/b/c", "..a",
                                       "a..", ".hidden",    "a b",   "part"};
    static const char *const bad[] = {"",       "/a",       "a/",   "a//b",   "..",
                                      "a/../b", ".",        "./a",  "a/.",    "a\n",
                                      "a.part", "b.part/a", ".nui", "a/.nuix"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_int_equal (stage_path_check (good[i], NULL), 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal (stage_path_check (bad[i], NULL), ERR_INVALID);
    char name[STAGE_PATH_MAX + 1];
    memset (name, 'a', sizeof name);
    for (size_t i = 100; i < sizeof name; i += 100)
        name[i] = '/';
    name[STAGE_PATH_MAX] = 0;
    assert_int_equal (stage_path_check (name, NULL), ERR_INVALID);
    name[STAGE_PATH_MAX - 1] = 0;
    assert_int_equal (stage_path_check (name, NULL), 0);
    memset (name, 'a', 201);
    name[201] = 0;
    assert_int_equal (stage_path_check (name, NULL), ERR_INVALID);
}

static void checksums_are_read (void **state)
{
    (void)state;
    uint8_t sum[STAGE_SHA256_LEN];
    static const char text[] =
        "sha256:00ff10000000000000000000000000000000000000000000000000000000Ab01";
    assert_int_equal (stage_checksum_parse (text, sum, NULL), 0);
    assert_int_equal (sum[1], 0xff);
    assert_int_equal (sum[2], 0x10);
    assert_int_equal (sum[30], 0xab);
    assert_int_equal (stage_checksum_parse ("md5:00", sum, NULL), ERR_INVALID);
    assert_int_equal (stage_checksum_parse ("sha256:00", sum, NULL), ERR_INVALID);
    char bad[sizeof text + 1];
    memcpy (bad, text, sizeof text);
    bad[20] = 'g';
    assert_int_equal (stage_checksum_parse (bad, sum, NULL), ERR_INVALID);
    memcpy (bad, text, sizeof text);
    bad[sizeof text - 1] = '0';
    bad[sizeof text] = 0;
    assert_int_equal (stage_checksum_parse (bad, sum, NULL), ERR_INVALID);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (urls_are_read),         cmocka_unit_test (bad_urls_are_refused),
        cmocka_unit_test (secrets_are_not_shown), cmocka_unit_test (paths_stay_below),
        cmocka_unit_test (checksums_are_read),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
