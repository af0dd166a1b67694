/* Grid identities to accounts: forms of lines, mistakes, change while running. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "local/link/gridmap.h"

static char path[64];

static void file (const char *text)
{
    char other[80];
    snprintf (other, sizeof other, "%s.new", path);
    FILE *f = fopen (other, "w");
    fputs (text, f);
    fclose (f);
    assert_int_equal (rename (other, path), 0);
}

static void forms (void **state)
{
    struct gridmap *map = NULL;
    (void)state;
    file ("# comment\n\n\"nui://g/user/alice\" nobody\n  nui://g/user/bob\tgames # him too\n");
    assert_int_equal (gridmap_open (path, NULL, &map, NULL), 0);
    assert_string_equal (gridmap_account (map, "nui://g/user/alice"), "nobody");
    assert_string_equal (gridmap_account (map, "nui://g/user/bob"), "games");
    assert_null (gridmap_account (map, "nui://g/user/ali"));
    gridmap_close (map);
}

static void mistakes (void **state)
{
    static const char *const bad[] = {
        "nui://g/user/alice\n",
        "\"nui://g/user/alice nobody\n",
        "nui://g/user/a nobody games\n",
        "alice nobody\n",
        "nui://g/user/a nobody\nnui://g/user/a games\n",
        "nui://g/user/a -x\n",
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct gridmap *map = NULL;
        struct err err = {0};
        file (bad[i]);
        assert_int_equal (gridmap_open (path, NULL, &map, &err), ERR_INVALID);
        assert_non_null (strstr (err.text, "line"));
        assert_null (map);
    }
}

static void changes (void **state)
{
    struct gridmap *map = NULL;
    (void)state;
    file ("nui://g/user/alice nobody\n");
    assert_int_equal (gridmap_open (path, NULL, &map, NULL), 0);
    file ("nui://g/user/alice games\nnui://g/user/bob nobody\n");
    assert_string_equal (gridmap_account (map, "nui://g/user/alice"), "games");
    assert_string_equal (gridmap_account (map, "nui://g/user/bob"), "nobody");
    file ("nonsense\n"); /* refused whole */
    assert_string_equal (gridmap_account (map, "nui://g/user/alice"), "games");
    unlink (path); /* gone for a moment, as editors do */
    assert_string_equal (gridmap_account (map, "nui://g/user/alice"), "games");
    file ("nui://g/user/bob nobody\n");
    assert_null (gridmap_account (map, "nui://g/user/alice"));
    gridmap_close (map);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (forms),
        cmocka_unit_test (mistakes),
        cmocka_unit_test (changes),
    };
    snprintf (path, sizeof path, "/tmp/nui-test-gridmap-%ld", (long)getpid ());
    int rc = cmocka_run_group_tests (tests, NULL, NULL);
    unlink (path);
    return rc;
}
