/* `nui sim` as a person runs it: a small log checked against a model written here, a real log
 * against simulators that are not ours, and every kind of bad input. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "local/trace/linereader.h"

enum { JOBS_MAX = 60000 };

struct row {
    char id[32];
    long long submit, start, end, procs;
};

struct world {
    char folder[64];
};

static struct world w;

static const char *in_folder (const char *name)
{
    static char path[8][128];
    static int at;
    at = (at + 1) % 8;
    snprintf (path[at], sizeof path[at], "%s/%s", w.folder, name);
    return path[at];
}

static void put (const char *name, const char *text)
{
    FILE *f = fopen (in_folder (name), "w");
    assert_non_null (f);
    fputs (text, f);
    fclose (f);
}

static bool there (const char *name)
{
    return access (in_folder (name), F_OK) == 0;
}

static int setup (void **state)
{
    (void)state;
    strcpy (w.folder, "/tmp/nui-sim-XXXXXX");
    assert_non_null (mkdtemp (w.folder));
    put ("none.cfg", "BACKFILLPOLICY NONE\n");
    put ("easy.cfg", "BACKFILLPOLICY FIRSTFIT\nRESERVATIONBINDING LATE\n");
    put ("maui.cfg", "NODEALLOCATIONPOLICY FIRSTAVAILABLE\n");
    put ("deep.cfg", "NODEALLOCATIONPOLICY FIRSTAVAILABLE\nRESERVATIONDEPTH[0] 4\n");
    return 0;
}

static int teardown (void **state)
{
    char command[128];
    (void)state;
    snprintf (command, sizeof command, "rm -rf %s", w.folder);
    return system (command);
}

/* Runs `nui sim …` in the folder; what it says is in the files "out" and "err" there. */
static int nui_sim (const char *fmt, ...) __attribute__ ((format (printf, 1, 2)));
static int nui_sim (const char *fmt, ...)
{
    char arguments[2048], command[4096];
    va_list ap;
    va_start (ap, fmt);
    vsnprintf (arguments, sizeof arguments, fmt, ap);
    va_end (ap);
    snprintf (command, sizeof command, "cd %s && %s sim %s >out 2>err", w.folder, NUI_PROGRAM,
              arguments);
    int status = system (command);
    assert_true (WIFEXITED (status));
    return WEXITSTATUS (status);
}

static char *slurp (const char *name)
{
    FILE *f = fopen (in_folder (name), "r");
    assert_non_null (f);
    char *text = calloc (1, 8 << 20);
    assert_non_null (text);
    assert_true (fread (text, 1, (8 << 20) - 1, f) < (8 << 20) - 1);
    fclose (f);
    return text;
}

static void says (const char *name, const char *sentence)
{
    char *text = slurp (name);
    if (!strstr (text, sentence))
        fail_msg ("'%s' does not say '%s'", text, sentence);
    free (text);
}

/* job_id,submit,start,end,procs[,state]; plain or gzip. */
static uint32_t rows_read (const char *path, struct row *row)
{
    struct err err;
    char *line;
    uint32_t count = 0;
    struct linereader *r = linereader_open (path, &err);
    assert_non_null (r);
    while (linereader_next (r, &line, &err) == 0 && line) {
        if (linereader_number (r) == 1)
            continue;
        assert_true (count < JOBS_MAX);
        struct row *x = &row[count++];
        assert_int_equal (sscanf (line, "%31[^,],%lld,%lld,%lld,%lld", x->id, &x->submit, &x->start,
                                  &x->end, &x->procs),
                          5);
    }
    linereader_close (r);
    return count;
}

/* --- a model: strict first-come-first-served on P processors ------------------------------- */

static long long free_at (const struct row *row, uint32_t before, long long t, long long procs)
{
    for (uint32_t i = 0; i < before; i++)
        procs -= row[i].start <= t && t < row[i].end ? row[i].procs : 0;
    return procs;
}

/* The earliest moment for job n: not before its submission nor the start of the one ahead. */
static long long model_start (const struct row *row, uint32_t n, long long machine)
{
    long long t = row[n].submit;
    if (n && row[n - 1].start > t)
        t = row[n - 1].start;
    while (free_at (row, n, t, machine) < row[n].procs) {
        long long next = INT64_MAX;
        for (uint32_t i = 0; i < n; i++)
            next = row[i].end > t && row[i].end < next ? row[i].end : next;
        t = next;
    }
    return t;
}

static void test_first_come_first_served (void **state)
{
    (void)state;
    struct row *row = calloc (JOBS_MAX, sizeof *row);
    assert_int_equal (
        nui_sim ("--config none.cfg --workload %s/small.swf --jobs-out jobs.csv", DATA_DIR), 0);
    uint32_t count = rows_read (in_folder ("jobs.csv"), row);
    assert_int_equal (count, 42);
    long long waits = 0;
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal (row[i].start, model_start (row, i, 16));
        waits += row[i].start - row[i].submit;
    }
    assert_true (waits > 0); /* the case is not trivial */
    says ("err", "2 of 47 jobs skipped: no run time");
    says ("err", "1 of 47 jobs skipped: no processors");
    says ("err", "1 of 47 jobs skipped: no submit time");
    says ("err", "1 of 47 jobs skipped: larger than the machine");
    free (row);
}

/* Never more processors than there are, nobody before its submission, each for its time. */
static void test_statistics (void **state)
{
    (void)state;
    struct row *row = calloc (JOBS_MAX, sizeof *row);
    json_error_t error;
    assert_int_equal (nui_sim ("-c easy.cfg -w %s/small.swf --jobs-out jobs.csv --stats-out "
                               "stats.json --plot plot.svg --compare none.cfg maui.cfg",
                               DATA_DIR),
                      0);
    uint32_t count = rows_read (in_folder ("jobs.csv"), row);
    double waits = 0, slowdowns = 0, used = 0, last = 0;
    for (uint32_t i = 0; i < count; i++) {
        double wait = (double)(row[i].start - row[i].submit);
        double run = (double)(row[i].end - row[i].start), bound = run > 10 ? run : 10;
        assert_true (wait >= 0);
        waits += wait;
        slowdowns += (wait + run) / bound > 1 ? (wait + run) / bound : 1;
        used += run * (double)row[i].procs;
        last = (double)row[i].end > last ? (double)row[i].end : last;
        if (row[i].end > row[i].start)
            assert_true (free_at (row, count, row[i].start, 16) >= 0);
    }
    double makespan = last - (double)row[0].submit;
    json_t *stats = json_load_file (in_folder ("stats.json"), 0, &error);
    assert_non_null (stats);
    const struct {
        const char *key;
        double value;
    } expected[] = {{"jobs", count},
                    {"mean_wait_s", waits / count},
                    {"mean_bounded_slowdown", slowdowns / count},
                    {"utilisation", used / (makespan * 16)},
                    {"makespan_s", makespan}};
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        double value = json_number_value (json_object_get (stats, expected[i].key));
        if (fabs (value - expected[i].value) > 1e-5)
            fail_msg ("%s: %f, computed %f", expected[i].key, value, expected[i].value);
    }
    assert_true (json_is_integer (json_object_get (stats, "backfilled")));
    assert_true (json_integer_value (json_object_get (stats, "passes")) > 0);
    assert_true (json_is_number (json_object_get (stats, "wall_s")));
    assert_int_equal (json_array_size (json_object_get (stats, "compare")), 2);
    json_decref (stats);
    char *svg = slurp ("plot.svg");
    assert_int_equal (strncmp (svg, "<svg ", 5), 0);
    assert_string_equal (svg + strlen (svg) - 7, "</svg>\n");
    assert_non_null (strstr (svg, "none.cfg"));
    free (svg);
    says ("out", "easy.cfg");
    says ("out", "none.cfg");
    says ("out", "maui.cfg");
    free (row);
}

static void test_same_again (void **state)
{
    (void)state;
    assert_int_equal (nui_sim ("-c deep.cfg -w %s/small.swf --jobs-out a.csv", DATA_DIR), 0);
    assert_int_equal (nui_sim ("-c deep.cfg -w %s/small.swf --jobs-out b.csv", DATA_DIR), 0);
    char *a = slurp ("a.csv"), *b = slurp ("b.csv");
    assert_string_equal (a, b);
    free (a);
    free (b);
}

/* PREEMPT: everybody runs in the end; what is drawn depends on the seed alone. */
static void test_preempt (void **state)
{
    (void)state;
    struct row *row = calloc (JOBS_MAX, sizeof *row);
    put ("preempt.cfg", "BACKFILLPOLICY PREEMPT\nBFPRIORITYPOLICY RANDOM\n");
    assert_int_equal (
        nui_sim ("-c preempt.cfg -w %s/small.swf --seed 3 --jobs-out a.csv", DATA_DIR), 0);
    assert_int_equal (
        nui_sim ("-c preempt.cfg -w %s/small.swf --seed 3 --jobs-out b.csv --json", DATA_DIR), 0);
    char *a = slurp ("a.csv"), *b = slurp ("b.csv");
    assert_string_equal (a, b);
    says ("out", "\"preempted\": ");
    uint32_t count = rows_read (in_folder ("a.csv"), row);
    assert_int_equal (count, 42);
    for (uint32_t i = 0; i < count; i++)
        assert_true (free_at (row, count, row[i].start, 16) >= 0);
    free (a);
    free (b);
    free (row);
}

/* With a tick nothing starts between its multiples. */
static void test_tick (void **state)
{
    (void)state;
    struct row *row = calloc (JOBS_MAX, sizeof *row);
    assert_int_equal (nui_sim ("-c maui.cfg -w %s/small.swf --tick 60 --jobs-out t.csv", DATA_DIR),
                      0);
    uint32_t count = rows_read (in_folder ("t.csv"), row);
    assert_int_equal (count, 42);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal (row[i].start % 60, 0);
    free (row);
}

/* Maui's traces in, the outcome out in the same format, in again: the same starts. */
static void test_maui_traces (void **state)
{
    (void)state;
    struct row *row = calloc (8, sizeof *row);
    assert_int_equal (nui_sim ("-c maui.cfg -w %s/jobs.trace -r %s/nodes.trace --jobs-out m.csv "
                               "--trace-out m.trace",
                               DATA_DIR, DATA_DIR),
                      0);
    assert_int_equal (rows_read (in_folder ("m.csv"), row), 3);
    assert_string_equal (row[0].id, "b2");
    assert_string_equal (row[1].id, "a1");
    assert_string_equal (row[2].id, "c3");
    assert_int_equal (row[1].end - row[1].start, 1000);
    says ("err", "skipped: asks for hosts by name or for a reservation");
    says ("err", "skipped: no nodes with what its tasks ask");
    assert_int_equal (
        nui_sim ("-c maui.cfg -w m.trace -r %s/nodes.trace --jobs-out m2.csv", DATA_DIR), 0);
    char *a = slurp ("m.csv"), *b = slurp ("m2.csv");
    assert_string_equal (a, b);
    free (a);
    free (b);
    free (row);
}

/* What maui.cfg says of nodes, sets, classes' hosts and standing reservations counts as in the daemon. */
static void test_place (void **state)
{
    (void)state;
    struct row *row = calloc (8, sizeof *row);
    put ("place.cfg",
         "NODEALLOCATIONPOLICY FIRSTAVAILABLE\nNODESETPOLICY ONEOF\n"
         "NODESETATTRIBUTE FEATURE\nNODESETLIST red blue\nNODESETDELAY 1:00:00\n"
         "NODECFG[r[1-2]] PROCS=2 FEATURES=red\nNODECFG[b[1-2]] PROCS=2 FEATURES=blue\n"
         "CLASSCFG[q2] HOSTLIST=b2\n"
         "SRCFG[u] PERIOD=INFINITY HOSTLIST=r1 USERLIST=u9\n");
    put ("place.swf", "1 1000 -1 100 1 -1 -1 3 100 -1 1 1 1 -1 1 -1 -1 -1\n" /* blue has three */
                      "2 1000 -1 100 1 -1 -1 2 100 -1 1 1 1 -1 2 -1 -1 -1\n" /* two of b2 */
                      "3 1000 -1 100 1 -1 -1 1 100 -1 1 1 1 -1 2 -1 -1 -1\n" /* one of b2 */
                      "4 1001 -1 100 1 -1 -1 4 100 -1 1 9 1 -1 1 -1 -1 -1\n" /* of u9: all of red */
                      "5 1001 -1 50 1 -1 -1 4 50 -1 1 1 1 -1 1 -1 -1 -1\n"); /* all of blue */
    assert_int_equal (nui_sim ("-c place.cfg -w place.swf --jobs-out place.csv"), 0);
    assert_int_equal (rows_read (in_folder ("place.csv"), row), 5);
    const long long start[] = {1000, 1100, 1000, 1001, 1200};
    for (int i = 0; i < 5; i++)
        assert_int_equal (row[i].start, start[i]);
    /* a reservation of every day, at noon: who may not use it waits for its end */
    put ("daily.cfg", "NODECFG[n1] PROCS=1\n"
                      "SRCFG[noon] PERIOD=DAY STARTTIME=12:00:00 ENDTIME=13:00:00 HOSTLIST=n1 "
                      "USERLIST=u9\n");
    put ("daily.swf", "1 41400 -1 3600 1 -1 -1 1 3600 -1 1 1 1 -1 1 -1 -1 -1\n"
                      "2 129601 -1 10 1 -1 -1 1 10 -1 1 1 1 -1 1 -1 -1 -1\n"
                      "3 129601 -1 10 1 -1 -1 1 10 -1 1 9 1 -1 1 -1 -1 -1\n");
    setenv ("TZ", "UTC", 1);
    assert_int_equal (nui_sim ("-c daily.cfg -w daily.swf --jobs-out daily.csv"), 0);
    assert_int_equal (rows_read (in_folder ("daily.csv"), row), 3);
    assert_int_equal (row[0].start, 46800);         /* 13:00, for an hour */
    assert_int_equal (row[1].start, 86400 + 46800); /* the next day's */
    assert_int_equal (row[2].start, 129601);
    free (row);
}

static void wrong (int code, const char *sentence, const char *fmt, ...)
    __attribute__ ((format (printf, 3, 4)));
static void wrong (int code, const char *sentence, const char *fmt, ...)
{
    char arguments[1024];
    va_list ap;
    va_start (ap, fmt);
    vsnprintf (arguments, sizeof arguments, fmt, ap);
    va_end (ap);
    unlink (in_folder ("x.csv"));
    int rc = nui_sim ("%s --jobs-out x.csv", arguments);
    if (rc != code)
        fail_msg ("nui sim %s: exit code %d, not %d", arguments, rc, code);
    says ("err", sentence);
    char *err = slurp ("err");
    if (strchr (err, '\n') != err + strlen (err) - 1)
        fail_msg ("more than a sentence: %s", err);
    free (err);
    assert_false (there ("x.csv"));
}

static void test_bad_input (void **state)
{
    (void)state;
    put ("typo.cfg", "BACKFILLPOLICY FIRSTFIT\nRESERVATIONDEPHT 3\n");
    put ("text.swf", "this is no log\n");
    put ("cut.swf", "; MaxProcs: 4\n1 2 3\n");
    put ("headless.swf", "1 0 -1 10 1 -1 -1 1 20 -1 1 1 1 -1 1 -1 -1 -1\n");
    const char *log = DATA_DIR "/small.swf";
    put ("nohost.cfg", "NODECFG[b1] PROCS=4\nCLASSCFG[q] HOSTLIST=b2\n");
    wrong (5, "there is no node b2", "-c nohost.cfg -w %s/small.swf", DATA_DIR);
    wrong (2, "--config", "-w %s", log);
    wrong (2, "--workload", "-c none.cfg");
    wrong (2, "unknown option --workloads", "-c none.cfg --workloads %s", log);
    wrong (2, "--jobs 9..2", "-c none.cfg -w %s --jobs 9..2", log);
    wrong (2, "--nodes", "-c none.cfg -w %s --nodes 0", log);
    wrong (2, "--nodes", "-c none.cfg -w %s --nodes many", log);
    wrong (2, "give one", "-c none.cfg -w %s --nodes 4 -r nodes", log);
    wrong (2, "--procs-per-node", "-c none.cfg -w %s --procs-per-node 4", log);
    wrong (2, "--compare", "-c none.cfg -w %s easy.cfg", log);
    wrong (5, "nowhere.cfg", "-c nowhere.cfg -w %s", log);
    wrong (5, "nowhere.swf", "-c none.cfg -w nowhere.swf");
    wrong (5, "nowhere.cfg", "-c none.cfg -w %s --compare nowhere.cfg", log);
    wrong (5, "there is no folder", "-c none.cfg -w %s --plot nowhere/p.svg", log);
    wrong (1, "line 2: unknown parameter RESERVATIONDEPHT, did you mean RESERVATIONDEPTH?",
           "-c typo.cfg -w %s", log);
    wrong (1, "line 1: neither a job of the Standard Workload Format", "-c none.cfg -w text.swf");
    wrong (1, "line 2: 3 fields", "-c none.cfg -w cut.swf");
    wrong (1, "does not say how large its machine is", "-c none.cfg -w headless.swf");
    wrong (1, "two results cannot be one file", "-c none.cfg -w %s --plot x.csv", log);
    wrong (1, "no job at all in the range", "-c none.cfg -w %s --jobs 1000..2000", log);
}

/* --- real logs ----------------------------------------------------------------------------- */

static void equal_to (const char *log, const char *expected, const char *config, const char *more)
{
    const char *shared = getenv ("NUI_SHARED") ? getenv ("NUI_SHARED") : SHARED_DEFAULT;
    char path[4096];
    snprintf (path, sizeof path, "%s/traces/expected/%s", shared, expected);
    if (access (path, R_OK) != 0) {
        print_message ("%s is not here: skipped\n", path);
        skip ();
    }
    struct row *ours = calloc (JOBS_MAX, sizeof *ours), *theirs = calloc (JOBS_MAX, sizeof *theirs);
    assert_int_equal (
        nui_sim ("-c %s -w %s/traces/%s %s --jobs-out jobs.csv", config, shared, log, more), 0);
    uint32_t count = rows_read (in_folder ("jobs.csv"), ours);
    assert_int_equal (rows_read (path, theirs), count);
    for (uint32_t i = 0; i < count; i++) {
        assert_string_equal (ours[i].id, theirs[i].id);
        if (ours[i].start != theirs[i].start || ours[i].end != theirs[i].end)
            fail_msg ("job %s: %lld to %lld, expected %lld to %lld", ours[i].id, ours[i].start,
                      ours[i].end, theirs[i].start, theirs[i].end);
    }
    print_message ("%u starts equal to %s\n", count, expected);
    free (ours);
    free (theirs);
}

static void test_real_fcfs (void **state)
{
    (void)state;
    equal_to ("SDSC-BLUE-first5000.swf.gz", "SDSC-BLUE-first5000-fcfs.pyss-predictsim.csv.gz",
              "none.cfg", "");
}

static void test_real_easy (void **state)
{
    (void)state;
    equal_to ("SDSC-BLUE-first5000.swf.gz", "SDSC-BLUE-first5000-easy.pyss-sbacpad22.csv.gz",
              "easy.cfg", "");
}

static void test_real_maui (void **state)
{
    (void)state;
    equal_to ("KTH-SP2.swf.gz", "KTH-SP2-first5000-firstfit-depth4.maui.csv.gz", "deep.cfg",
              "--jobs 1..5000");
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_first_come_first_served),
        cmocka_unit_test (test_statistics),
        cmocka_unit_test (test_same_again),
        cmocka_unit_test (test_preempt),
        cmocka_unit_test (test_tick),
        cmocka_unit_test (test_place),
        cmocka_unit_test (test_maui_traces),
        cmocka_unit_test (test_bad_input),
        cmocka_unit_test (test_real_fcfs),
        cmocka_unit_test (test_real_easy),
        cmocka_unit_test (test_real_maui),
    };
    return cmocka_run_group_tests (tests, setup, teardown);
}
