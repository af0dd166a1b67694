/* `nui sim --experiment` and `--compare … --report` as a person runs them: the page, its files,
 * the same numbers again, and every kind of bad input. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "proto/base/strbuf.h"

static char folder[64];

static int setup (void **state)
{
    (void)state;
    strcpy (folder, "/tmp/nui-labcmd-XXXXXX");
    assert_non_null (mkdtemp (folder));
    return 0;
}

static int teardown (void **state)
{
    char command[128];
    (void)state;
    snprintf (command, sizeof command, "rm -rf %s", folder);
    return system (command);
}

static char *text_of (const char *name)
{
    char path[256], block[4096];
    struct strbuf b = STRBUF_INIT;
    size_t n;
    snprintf (path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen (path, "r");
    if (!f)
        return NULL;
    while ((n = fread (block, 1, sizeof block, f)) > 0)
        strbuf_append (&b, block, n);
    fclose (f);
    strbuf_text (&b);
    return strbuf_steal (&b);
}

static bool holds (const char *name, const char *part)
{
    char *text = text_of (name);
    bool found = text && strstr (text, part);
    if (!found)
        print_error ("%s lacks '%s'\n", name, part);
    free (text);
    return found;
}

static void put (const char *name, const char *text)
{
    char path[256];
    snprintf (path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen (path, "w");
    assert_non_null (f);
    fputs (text, f);
    fclose (f);
}

static int nui_sim (const char *arguments)
{
    char command[1024];
    snprintf (command, sizeof command, "cd %s && '%s' sim %s > out 2> err", folder, NUI_PROGRAM,
              arguments);
    int status = system (command);
    return WIFEXITED (status) ? WEXITSTATUS (status) : -1;
}

static bool there (const char *name)
{
    char path[256];
    snprintf (path, sizeof path, "%s/%s", folder, name);
    return access (path, F_OK) == 0;
}

static void pages (void **state)
{
    static const struct {
        const char *name, *files[6];
    } page[] = {
        {"mix", {"totals.csv", "table1.csv", "orders.csv", "waits.csv", "use.csv", "backfill.csv"}},
        {"agents", {"summary.csv", "waits.csv", "seeds.csv", "use.csv"}},
        {"delay", {"delay.csv", "use.csv", "statistics.csv"}},
        {"algorithms", {"use.csv", "statistics.csv"}},
        {"fairshare", {"plain.csv", "steered.csv", "absent.csv", "statistics.csv"}},
        {"depth", {"depth.csv", "statistics.csv"}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof page / sizeof page[0]; i++) {
        char arguments[256], name[128];
        bool own = strcmp (page[i].name, "mix") == 0 || strcmp (page[i].name, "agents") == 0;
        snprintf (arguments, sizeof arguments, "--experiment %s --report %s %s", page[i].name,
                  page[i].name, own ? "--seeds 3" : "-w model:lublin:8000");
        assert_int_equal (nui_sim (arguments), 0);
        snprintf (name, sizeof name, "%s/index.html", page[i].name);
        assert_true (holds (name, "What came out"));
        assert_true (holds (name, "<svg"));
        assert_true (holds (name, "NODEALLOCATIONPOLICY FIRSTAVAILABLE"));
        assert_true (holds (name, "nui sim --experiment"));
        assert_true (holds (name, "@media print"));
        char *text = text_of (name);
        assert_null (strstr (text, "src=")); /* nothing is fetched */
        assert_null (strstr (text, "nan"));
        free (text);
        for (int f = 0; f < 6 && page[i].files[f]; f++) {
            snprintf (name, sizeof name, "%s/%s", page[i].name, page[i].files[f]);
            assert_true (holds (name, ","));
            assert_true (holds (name, "\n"));
        }
    }
}

static void same_again (void **state)
{
    (void)state;
    assert_int_equal (nui_sim ("--experiment mix --seeds 3 --seed 5 --report a --workers 1"), 0);
    assert_int_equal (nui_sim ("--experiment mix --seeds 3 --seed 5 --report b --workers 3"), 0);
    assert_int_equal (nui_sim ("--experiment mix --seeds 3 --seed 5 --report new/and/deep"), 0);
    char *a = text_of ("new/and/deep/totals.csv"), *b = text_of ("b/totals.csv");
    assert_non_null (a);
    assert_string_equal (a, b);
    free (a);
    free (b);
    a = text_of ("a/totals.csv");
    b = text_of ("b/totals.csv");
    assert_string_equal (a, b);
    free (a);
    free (b);
    assert_int_equal (nui_sim ("--experiment mix --seeds 3 --seed 6 --report b"), 0);
    a = text_of ("a/totals.csv");
    b = text_of ("b/totals.csv");
    assert_string_not_equal (a, b);
    free (a);
    free (b);
    assert_int_equal (nui_sim ("--experiment mix --seeds 4 --seed 5 --report a"), 0);
    assert_true (holds ("err", "21 of 28 simulations were there from before"));
}

static void comparison (void **state)
{
    (void)state;
    put ("a.cfg", "NODEALLOCATIONPOLICY FIRSTAVAILABLE\n");
    put ("none.cfg", "NODEALLOCATIONPOLICY FIRSTAVAILABLE\nBACKFILLPOLICY NONE\n"
                     "RMPOLLINTERVAL 00:00:30\nSITENAME alpha\n"); /* a whole site's file will do */
    assert_int_equal (
        nui_sim ("--compare a.cfg none.cfg a.cfg pbs:fifo -w model:lublin:1500 --report c "
                 "--csv"),
        0);
    assert_true (holds ("out", "wait-1,"));
    assert_true (holds ("c/index.html", "BACKFILLPOLICY NONE"));
    assert_true (holds ("c/index.html", "PBS FIFO"));
    /* No backfill is worse beyond doubt; a policy against itself is noise of width nothing. */
    char *text = text_of ("c/changes.csv");
    assert_non_null (text);
    const char *none = strstr (text, "\"mean wait, hours\",none.cfg"),
               *self = strstr (text, "\"mean wait, hours\",a.cfg");
    assert_non_null (none);
    assert_non_null (self);
    assert_non_null (strstr (none, "higher"));
    assert_true (strncmp (strchr (self, '\n') - 19, "not told from noise", 19) == 0);
    free (text);
    for (int i = 0; i < 4; i++) {
        static const char *const name[] = {"c/use.csv", "c/waits.csv", "c/classes.csv",
                                           "c/statistics.csv"};
        assert_true (there (name[i]));
    }
}

/* What a log's own scheduler did, against a policy: ann's jobs waited for bob's long one, which came first and was let
 * pass; here they are backfilled. Who gains and who loses is told. */
static void against_the_log_itself (void **state)
{
    struct strbuf log = STRBUF_INIT;
    (void)state;
    put ("a.cfg", "NODEALLOCATIONPOLICY FIRSTAVAILABLE\nBACKFILLPOLICY FIRSTFIT\n");
    strbuf_puts (&log, "; MaxProcs: 4\n");
    for (int i = 0; i < 200;
         i++) /* user 1's small jobs waited for an hour, on a machine that was free */
        strbuf_printf (&log, "%d %d 3600 60 1 -1 -1 1 120 -1 1 1 1 -1 -1 -1 -1 -1\n", i + 1,
                       i * 600);
    for (int i = 0; i < 20; i++) /* user 2's did not wait */
        strbuf_printf (&log, "%d %d 0 60 1 -1 -1 1 120 -1 1 2 1 -1 -1 -1 -1 -1\n", i + 201,
                       i * 6000 + 300);
    put ("log.swf", strbuf_text (&log));
    strbuf_free (&log);
    assert_int_equal (nui_sim ("--compare log: a.cfg -w log.swf --report l --csv"), 0);
    assert_true (holds ("l/index.html", "As it was"));
    assert_true (holds ("l/index.html", "Who gains, who loses"));
    char *users = text_of ("l/users.csv");
    assert_non_null (users);
    assert_non_null (strstr (users, "u1,a.cfg,200,1,0,-1,-1,-1,gains\n"));
    assert_non_null (strstr (users, "u2,a.cfg,20,0,0,0,0,0,not told from noise\n"));
    free (users);
    char *changes = text_of ("l/changes.csv");
    assert_non_null (strstr (changes, "\"mean wait, hours\",a.cfg,0.909091,"));
    assert_non_null (strstr (strstr (changes, "\"mean wait, hours\",a.cfg"), "lower"));
    free (changes);
    assert_int_equal (nui_sim ("--compare log: a.cfg pbs:fifo -w log.swf --report m"), 1);
    assert_true (holds ("err", "pbs:fifo needs a configuration as the first, not log:"));
    assert_int_equal (nui_sim ("--compare a.cfg log: -w log.swf --report m"),
                      5); /* only as the first */
    assert_int_equal (nui_sim ("--compare log: a.cfg -w model:lublin:100 --report m"), 1);
    assert_true (holds ("err", "log: needs a log of what was"));
}

static void model_and_load (void **state)
{
    (void)state;
    put ("a.cfg", "NODEALLOCATIONPOLICY FIRSTAVAILABLE\n");
    assert_int_equal (nui_sim ("-c a.cfg -w model:lublin:1000 -N 64 --stats-out s1.json --seed 2"),
                      0);
    assert_int_equal (
        nui_sim ("-c a.cfg -w model:lublin:1000 -N 64 --stats-out s2.json --seed 2 --load 2"), 0);
    char *one = text_of ("s1.json"), *two = text_of ("s2.json");
    double wait_one = atof (strstr (one, "mean_wait_s") + 14),
           wait_two = atof (strstr (two, "mean_wait_s") + 14);
    assert_true (wait_two > wait_one && wait_one > 0);
    free (one);
    free (two);
}

static void bad_input (void **state)
{
    static const struct {
        const char *arguments;
        int code;
        const char *says;
    } bad[] = {
        {"--experiment nothing --report z", 1, "there are mix, agents"},
        {"--experiment mix -w x.swf --report z", 1, "its own 76 jobs"},
        {"--experiment agents --load 2 --report z", 1, "make their own jobs"},
        {"--experiment depth -c a.cfg --report z", 2, "brings its own policies"},
        {"--experiment depth --load 0 --report z", 2, "a factor above 0"},
        {"--experiment depth --load much --report z", 2, "not a decimal number"},
        {"--experiment depth -w missing.swf --report z", 5, "missing.swf"},
        {"--experiment depth -w a.cfg --report z", 1, "a.cfg"},
        {"--experiment depth --report a.cfg", 1, "a.cfg is no folder"},
        {"--experiment depth --report a.cfg/at/all", 1, "a.cfg is no folder"},
        {"--experiment mix --plot p.svg --report z", 2, "do not go with a page"},
        {"--experiment fairshare -w model:lublin:20 --report z", 1, "weeks"},
        {"--compare a.cfg b.cfg --report z", 2, "which jobs?"},
        {"--compare a.cfg -w model:lublin --report z", 2, "needs two policies"},
        {"--compare a.cfg missing.cfg -w model:lublin --report z", 5, "missing.cfg"},
        {"--compare a.cfg bad.cfg -w model:lublin --report z", 1, "RESERVATIONDEPHT"},
        {"--report z stray", 2, "stray"},
        {"--seeds 0 --experiment mix", 2, "seeds"},
    };
    (void)state;
    put ("a.cfg", "NODEALLOCATIONPOLICY FIRSTAVAILABLE\n");
    put ("bad.cfg", "RESERVATIONDEPHT[0] 3\n");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        int code = nui_sim (bad[i].arguments);
        if (code != bad[i].code)
            fail_msg ("nui sim %s: %d, not %d", bad[i].arguments, code, bad[i].code);
        assert_true (holds ("err", bad[i].says));
        assert_false (there ("z"));
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (pages),          cmocka_unit_test (same_again),
        cmocka_unit_test (comparison),     cmocka_unit_test (against_the_log_itself),
        cmocka_unit_test (model_and_load), cmocka_unit_test (bad_input),
    };
    return cmocka_run_group_tests (tests, setup, teardown);
}
