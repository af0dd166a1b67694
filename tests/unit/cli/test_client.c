#include "../base/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/cli/client.h"
#include "proto/cli/options.h"
#include "capture.h"

static char dir[64], path[128];

static int setup (void **state)
{
    (void)state;
    strcpy (dir, "/tmp/nui-cli-XXXXXX");
    if (!mkdtemp (dir))
        return -1;
    snprintf (path, sizeof path, "%s/nui.cfg", dir);
    unsetenv ("NUI_CONFIG");
    setenv ("HOME", dir, 1);
    return 0;
}

static int teardown (void **state)
{
    (void)state;
    char extra[160];
    unlink (path);
    snprintf (extra, sizeof extra, "%s/a.sock", dir);
    unlink (extra);
    snprintf (extra, sizeof extra, "%s/.config/nui/nui.cfg", dir);
    unlink (extra);
    snprintf (extra, sizeof extra, "%s/.config/nui", dir);
    rmdir (extra);
    snprintf (extra, sizeof extra, "%s/.config", dir);
    rmdir (extra);
    return rmdir (dir);
}

static void write_file (const char *name, const char *text)
{
    FILE *f = fopen (name, "w");
    assert_non_null (f);
    fputs (text, f);
    fclose (f);
}

static struct cli_context *with (const char *text)
{
    write_file (path, text);
    struct cli_context *ctx = cli_context_create ();
    cli_set_config (ctx, path);
    return ctx;
}

static void finds_the_file (void **state)
{
    (void)state;
    struct err err = {0};
    struct cli_context *ctx = cli_context_create ();
    if (access ("/etc/nui/nui.cfg", F_OK) != 0) {
        assert_int_equal (cli_config (ctx, &err), ERR_NOT_FOUND);
        assert_contains (err.text, "/.config/nui/nui.cfg nor /etc/nui/nui.cfg");
    }
    char home[160];
    snprintf (home, sizeof home, "%s/.config", dir);
    mkdir (home, 0700);
    snprintf (home, sizeof home, "%s/.config/nui", dir);
    mkdir (home, 0700);
    snprintf (home, sizeof home, "%s/.config/nui/nui.cfg", dir);
    write_file (home, "GRID home\n");
    assert_string_equal (cli_grid (ctx, &err), "home");
    cli_context_destroy (ctx);
    write_file (path, "GRID env\n");
    setenv ("NUI_CONFIG", path, 1);
    ctx = cli_context_create ();
    assert_string_equal (cli_grid (ctx, &err), "env");
    cli_context_destroy (ctx);
    /* What was named must be there: no falling back. */
    setenv ("NUI_CONFIG", "/nonexistent/nui.cfg", 1);
    ctx = cli_context_create ();
    assert_null (cli_grid (ctx, &err));
    assert_contains (err.text, "/nonexistent/nui.cfg");
    cli_context_destroy (ctx);
    ctx = cli_context_create ();
    cli_set_config (ctx, home);
    assert_string_equal (cli_grid (ctx, &err), "home");
    cli_context_destroy (ctx);
}

static void picks_the_site (void **state)
{
    (void)state;
    struct err err = {0};
    struct cli_context *ctx = with ("GRID g\nACCOUNT chem\nSITECFG[alpha] SERVER=h:1\n"
                                    "SITECFG[beta] SOCKET=a.sock\n");
    assert_string_equal (cli_account (ctx), "chem");
    assert_string_equal (cli_site_names (ctx, &err)[1], "beta");
    assert_null (cli_site_names (ctx, &err)[2]);
    assert_null (cli_site_name (ctx, NULL, &err));
    assert_contains (err.text, "several sites");
    assert_string_equal (cli_site_name (ctx, "alpha", &err), "alpha");
    assert_null (cli_site_name (ctx, "alhpa", &err));
    assert_int_equal (err.code, ERR_NOT_FOUND);
    assert_contains (err.text, "did you mean alpha?");
    assert_null (cli_site (ctx, "beta", &err));
    assert_int_equal (err.code, ERR_UNAVAILABLE);
    assert_contains (err.text, "a.sock is not there");
    const char *jobs[] = {"100", "alpha.12", "alpha.3"}, *both[] = {"alpha.3", "beta.4"},
               *none[] = {"gamma.1", "alpha.x", "alpha.", "alphabet.1"};
    cli_set_operands (ctx, &(struct cli_operands){3, (char **)jobs});
    assert_string_equal (cli_site_name (ctx, NULL, &err), "alpha");
    assert_string_equal (cli_site_name (ctx, "beta", &err), "beta");
    cli_set_operands (ctx, &(struct cli_operands){2, (char **)both});
    assert_null (cli_site_name (ctx, NULL, &err));
    assert_contains (err.text, "beta.4 is not at alpha");
    char sock[160];
    snprintf (sock, sizeof sock, "%s/a.sock", dir);
    write_file (sock, "");
    cli_set_operands (ctx, &(struct cli_operands){4, (char **)none});
    assert_string_equal (cli_site_name (ctx, NULL, &err), "beta");
    struct rpcclient *beta = cli_site (ctx, NULL, &err); /* no certificate needed */
    assert_non_null (beta);
    assert_ptr_equal (cli_site (ctx, "beta", &err), beta);
    cli_context_destroy (ctx);
    ctx = with ("GRID g\nSITE beta\nSITECFG[alpha] SERVER=h:1\nSITECFG[beta] SERVER=h:2\n");
    assert_string_equal (cli_site_name (ctx, NULL, &err), "beta");
    cli_context_destroy (ctx);
    ctx = with ("GRID g\nSITECFG[alpha] SERVER=h:1\n");
    assert_string_equal (cli_site_name (ctx, NULL, &err), "alpha");
    assert_null (cli_site (ctx, NULL, &err));
    assert_int_equal (err.code, ERR_UNAUTHENTIC);
    assert_contains (err.text, "CA is missing");
    cli_context_destroy (ctx);
}

/* The socket of a cluster by itself needs no grid. */
static void by_itself (void **state)
{
    (void)state;
    struct err err = {0};
    struct cli_context *ctx = with ("SITECFG[mine] SOCKET=/run/nui.sock\n");
    assert_string_equal (cli_grid (ctx, &err), "local");
    assert_string_equal (cli_site_name (ctx, NULL, &err), "mine");
    cli_context_destroy (ctx);
}

static void bad_files (void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"", "GRID is missing"},
        {"SITECFG[a] SERVER=h:1 SOCKET=/s\n", "GRID is missing"},
        {"GRID g\nMETTA x:1\n", "line 2: unknown parameter METTA, did you mean META?"},
        {"GRID g\nMETA h:1 h\n", "META: 'h': wanted host:port, several with blanks between"},
        {"GRID g\nMETA h:1,i:2\n", "META: 'h:1,i:2': wanted host:port"},
        {"GRID g\nMETA h:0\n", "META: 'h:0': wanted host:port"},
        {"GRID g\nMETA h:1 i:1 h:1\n", "META: h:1 is there twice"},
        {"GRID g\nSITECFG[a] SERVR=x\n", "unknown attribute SERVR, did you mean SERVER?"},
        {"GRID g\nSITECFG[a]\n", "SITECFG[a] has neither SERVER nor SOCKET"},
        {"GRID g\nSITECFG[a/b] SERVER=x\n", "may only have letters"},
        {"GRID g\nSITE b\nSITECFG[a] SERVER=x:1\n", "SITE b has no SITECFG[b]"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct err err = {0};
        struct cli_context *ctx = with (cases[i][0]);
        if (cli_config (ctx, &err) >= 0)
            fail_msg ("'%s' was taken", cases[i][0]);
        assert_contains (err.text, cases[i][1]);
        assert_contains (err.text, "nui.cfg");
        assert_null (cli_metas (ctx, &err));
        cli_context_destroy (ctx);
    }
    struct err err = {0};
    struct cli_context *ctx = with ("GRID g\n");
    assert_null (cli_metas (ctx, &err));
    assert_contains (err.text, "META is missing");
    assert_null (strstr (err.text, "of no grid"));
    assert_null (cli_bank (ctx, &err));
    assert_contains (err.text, "BANK is missing");
    assert_null (cli_site (ctx, NULL, &err));
    assert_contains (err.text, "no site");
    cli_context_destroy (ctx);
    ctx = with ("SITECFG[a] SOCKET=/s\n");
    assert_null (cli_metas (ctx, &err));
    assert_contains (err.text, "a cluster of no grid is asked by nui showq");
    cli_context_destroy (ctx);
    cli_context_destroy (NULL);
}

static void exit_codes (void **state)
{
    (void)state;
    static const int want[][2] = {
        {ERR_DENIED, 3},    {ERR_UNAUTHENTIC, 3}, {ERR_UNAVAILABLE, 4}, {ERR_TIMEOUT, 4},
        {ERR_NOT_FOUND, 5}, {ERR_INVALID, 1},     {ERR_FUNDS, 1},       {ERR_INTERNAL, 1},
    };
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        struct err err = {0};
        err_set (&err, want[i][0], "it did not work");
        capture_begin ();
        int code = cli_fail ("status", &err);
        capture_end ();
        assert_int_equal (code, want[i][1]);
        assert_string_equal (captured[1], "nui status: it did not work\n");
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown (finds_the_file, setup, teardown),
        cmocka_unit_test_setup_teardown (picks_the_site, setup, teardown),
        cmocka_unit_test_setup_teardown (by_itself, setup, teardown),
        cmocka_unit_test_setup_teardown (bad_files, setup, teardown),
        cmocka_unit_test (exit_codes),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
