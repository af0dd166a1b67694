/* Several sites in one virtual time: where jobs go, when they move, and that halves of a co-allocated
 * job begin at one moment or not at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "local/sim/grid/grid.h"
#include "local/sim/lab/model.h"

static char folder[64];

static const char *in_folder (const char *name)
{
    static char path[8][512];
    static int at;
    at = (at + 1) % 8;
    snprintf (path[at], sizeof path[at], "%s/%s", folder, name);
    return path[at];
}

static void put (const char *name, const char *text)
{
    FILE *f = fopen (in_folder (name), "w");
    assert_non_null (f);
    fputs (text, f);
    fclose (f);
}

static int setup (void **state)
{
    (void)state;
    strcpy (folder, "/tmp/nui-grid-XXXXXX");
    assert_non_null (mkdtemp (folder));
    put ("easy.cfg", "BACKFILLPOLICY FIRSTFIT\nRESERVATIONBINDING LATE\nQUEUETIMEWEIGHT 1\n");
    return 0;
}

static int teardown (void **state)
{
    char command[128];
    (void)state;
    snprintf (command, sizeof command, "rm -rf '%s'", folder);
    return system (command);
}

/* Jobs of one log: submit, run, processors, limit; seconds. */
struct line {
    int submit, run, procs, limit;
};

static void log_put (const char *name, int procs, const struct line *line, int count)
{
    FILE *f = fopen (in_folder (name), "w");
    assert_non_null (f);
    fprintf (f, "; MaxProcs: %d\n", procs);
    for (int i = 0; i < count; i++)
        fprintf (f, "%d %d -1 %d %d -1 -1 %d %d -1 1 1 1 -1 1 -1 -1 -1\n", i + 1, line[i].submit,
                 line[i].run, line[i].procs, line[i].procs, line[i].limit);
    fclose (f);
}

static struct grid *grid_of (const char *text)
{
    struct err err = {0};
    put ("grid.cfg", text);
    struct grid *grid = grid_read (in_folder ("grid.cfg"), NULL, NULL, &err);
    if (!grid)
        fail_msg ("%s", err.text);
    return grid;
}

static struct grid_run run_of (const struct grid *grid, enum grid_kind kind, double share,
                               const struct grid_run *base)
{
    struct grid_run run;
    struct err err = {0};
    if (grid_run (grid, kind, share, base, 1, NULL, NULL, &run, &err))
        fail_msg ("%s", err.text);
    return run;
}

#define TWO_SITES                                                                                  \
    "SITECFG[a] WORKLOAD=a.swf CONFIG=easy.cfg\nSITECFG[b] WORKLOAD=b.swf CONFIG=easy.cfg\n"

/* Site a is full for an hour; b has room. */
static void test_placed (void **state)
{
    (void)state;
    static const struct line a[] = {{0, 3600, 4, 3600}, {10, 100, 4, 200}, {4000, 10, 1, 10}};
    static const struct line b[] = {{0, 50, 1, 60}, {4000, 10, 1, 10}};
    log_put ("a.swf", 4, a, 3);
    log_put ("b.swf", 8, b, 2);
    struct grid *grid = grid_of (TWO_SITES);
    assert_int_equal (grid->count, 5);
    struct grid_run isolated = run_of (grid, GRID_ISOLATED, 0, NULL);
    struct grid_run pool = run_of (grid, GRID_POOL, 0, NULL);
    struct grid_run placed = run_of (grid, GRID_PLACED, 0, NULL);
    for (uint64_t i = 0; i < grid->count; i++) {
        if (grid->job[i].job->number != 2 || grid->job[i].home != 0)
            continue;
        assert_int_equal (isolated.result[i].site, 0);
        assert_int_equal (isolated.result[i].start, 3600 * US_PER_S);
        assert_int_equal (placed.result[i].site, 1);
        assert_int_equal (placed.result[i].start, 10 * US_PER_S);
        assert_int_equal (pool.result[i].start, 10 * US_PER_S);
    }
    /* Where several could start it, the one with more room gets it: a1 to b, b1 to a … */
    assert_int_equal (placed.summary.away, 4);
    assert_int_equal (placed.ended, 5);
    assert_true (placed.mean_wait_s == 0 && pool.mean_wait_s == 0);
    grid_run_free (&isolated);
    grid_run_free (&pool);
    grid_run_free (&placed);
    grid_destroy (grid);
}

/* Both sites look full for hours, but b's job ends long before its limit: the one that waits at a
 * goes over then. A job too large for b stays. */
static void test_moved (void **state)
{
    (void)state;
    static const struct line a[] = {
        {0, 7200, 8, 7200}, {10, 100, 4, 200}, {20, 100, 8, 200}, {9000, 10, 8, 10}};
    static const struct line b[] = {{0, 1000, 4, 86400}, {9000, 10, 4, 10}};
    log_put ("a.swf", 8, a, 4);
    log_put ("b.swf", 4, b, 2);
    struct grid *grid = grid_of (TWO_SITES);
    assert_int_equal (grid->moves.gain, 60 * US_PER_S); /* as in test_config of nui-meta */
    assert_int_equal (grid->moves.share_ppm, 200000);
    struct grid_run placed = run_of (grid, GRID_PLACED, 0, NULL);
    struct grid_run moved = run_of (grid, GRID_MOVED, 0, NULL);
    assert_int_equal (grid->job[2].job->number, 2);
    assert_int_equal (placed.result[2].start, 7200 * US_PER_S);
    assert_int_equal (placed.result[2].site, 0);
    assert_int_equal (moved.result[2].start, 1000 * US_PER_S);
    assert_int_equal (moved.result[2].site, 1);
    assert_int_equal (moved.result[2].moves, 1);
    assert_int_equal (moved.summary.moved, 1);
    assert_int_equal (grid->job[3].job->number, 3);
    assert_int_equal (moved.result[3].site, 0);
    assert_int_equal (moved.result[3].start, 7200 * US_PER_S);
    grid_run_free (&placed);
    grid_run_free (&moved);
    /* … but not for a gain below what is asked. */
    grid_destroy (grid);
    grid = grid_of (TWO_SITES "MOVEGAIN 2:00:00\n");
    moved = run_of (grid, GRID_MOVED, 0, NULL);
    assert_int_equal (moved.result[2].start, 7200 * US_PER_S);
    assert_int_equal (moved.summary.moved, 0);
    grid_run_free (&moved);
    grid_destroy (grid);
}

/* b has room, and nobody hears it for half an hour: a's job waits at home, and goes over when b is there again. */
static void test_cut_off (void **state)
{
    (void)state;
    static const struct line a[] = {{0, 7200, 4, 7200}, {10, 100, 2, 200}, {9000, 10, 1, 10}};
    static const struct line b[] = {
        {0, 50, 1, 60}, {600, 10, 1, 10}, {2000, 10, 1, 10}, {9000, 1, 1, 10}};
    log_put ("a.swf", 4, a, 3);
    log_put ("b.swf", 8, b, 4);
    struct grid *grid = grid_of (TWO_SITES "SITECFG[b] SILENT=0..30:00\n");
    struct grid_run placed = run_of (grid, GRID_PLACED, 0, NULL);
    struct grid_run moved = run_of (grid, GRID_MOVED, 0, NULL);
    struct grid_run halves = run_of (grid, GRID_SHARED, 1, &moved);
    for (uint64_t i = 0; i < grid->count; i++) {
        if (grid->job[i].job->number != 2)
            continue;
        if (grid->job[i].home == 0) {
            assert_int_equal (placed.result[i].start, 7200 * US_PER_S);
            assert_int_equal (moved.result[i].start, 2000 * US_PER_S);
            assert_int_equal (moved.result[i].site, 1);
        } else { /* one of b's own users: it waits where it could be given */
            assert_int_equal (placed.result[i].site, 0);
            assert_int_equal (placed.result[i].start, 7200 * US_PER_S);
            assert_int_equal (moved.result[i].site, 1);
        }
    }
    assert_true (halves.summary.no_slot > 0);
    grid_run_free (&placed);
    grid_run_free (&moved);
    grid_run_free (&halves);
    grid_destroy (grid);
}

/* Half at home, half elsewhere, when both have room: a at 500 (by the limit), b at 800. */
static void test_halves (void **state)
{
    (void)state;
    static const struct line a[] = {{0, 500, 4, 500}, {10, 300, 6, 400}, {5000, 1, 1, 10}};
    static const struct line b[] = {{0, 800, 4, 800}, {5000, 1, 1, 10}};
    log_put ("a.swf", 4, a, 3);
    log_put ("b.swf", 4, b, 2);
    struct grid *grid = grid_of (TWO_SITES);
    assert_int_equal (grid->job[0].job->procs, 4);
    /* Six processors are more than site a has. */
    assert_int_equal (grid->count, 4);
    assert_int_equal (grid->site[0].workload->skipped[SKIP_TOO_LARGE], 1);
    grid_destroy (grid);
    static const struct line fits[] = {{0, 500, 4, 500}, {10, 300, 4, 400}, {5000, 1, 1, 10}};
    log_put ("a.swf", 4, fits, 3);
    grid = grid_of (TWO_SITES);
    struct grid_run isolated = run_of (grid, GRID_ISOLATED, 0, NULL);
    struct grid_run all = run_of (grid, GRID_SHARED, 1, &isolated);
    uint64_t seen = 0;
    for (uint64_t i = 0; i < grid->count; i++) {
        const struct gridsim_result *r = &all.result[i];
        if (grid->job[i].job->number != 2 || grid->job[i].home != 0)
            continue;
        seen++;
        assert_true (r->coallocated);
        /* The two first jobs are halved too, so that both sites are full until a's ends. */
        assert_int_equal (r->start, 500 * US_PER_S);
        assert_int_equal (r->end, 800 * US_PER_S);
    }
    assert_int_equal (seen, 1);
    assert_int_equal (all.summary.coallocated, 3); /* one processor cannot be halved */
    assert_int_equal ((int)(all.summary.held_idle * 1e6), 0);
    assert_int_equal (all.ended, grid->count);
    grid_run_free (&isolated);
    grid_run_free (&all);
    grid_destroy (grid);
}

/* What ends before its limit leaves two processors of each site idle from 100 to 500, beside two halves that wait, unless
 * these come forward: their new place lies over the one that they have. */
static void test_idle_beside_halves (void **state)
{
    (void)state;
    static const struct line a[] = {{0, 100, 4, 500}, {10, 300, 4, 400}, {5000, 1, 1, 10}};
    static const struct line b[] = {{0, 800, 4, 800}, {5000, 1, 1, 10}};
    log_put ("a.swf", 4, a, 3);
    log_put ("b.swf", 4, b, 2);
    struct grid *grid = grid_of (TWO_SITES "SLIDE FALSE\n"), *forward = grid_of (TWO_SITES);
    struct grid_run isolated = run_of (grid, GRID_ISOLATED, 0, NULL);
    struct grid_run all = run_of (grid, GRID_SHARED, 1, &isolated);
    struct grid_run slid = run_of (forward, GRID_SHARED, 1, &isolated);
    assert_int_equal ((int)(slid.summary.held_idle * 1e6), 0);
    assert_int_equal (slid.summary.moved, 1);
    assert_int_equal (all.summary.moved, 0);
    assert_int_equal ((int)(isolated.summary.held_idle * 1e6), 0);
    assert_int_equal ((int)(all.summary.held_idle * 1e6 + .5), 1000000 / (8 * 5000) * (4 * 400));
    grid_run_free (&slid);
    grid_destroy (forward);
    grid_run_free (&isolated);
    grid_run_free (&all);
    grid_destroy (grid);
}

/* Made-up logs, everything on: no site ever runs more than it has, no half alone, nothing lost, the
 * same input the same outcome; a larger share holds the smaller one's jobs. */
static void model_put (const char *name, uint64_t seed, uint32_t jobs, uint32_t procs)
{
    struct cred_names names;
    struct lublin_options options = {seed, jobs, procs, 8, .8};
    cred_names_init (&names);
    struct workload *w = model_lublin (&options, &names);
    FILE *f = fopen (in_folder (name), "w");
    assert_non_null (f);
    fprintf (f, "; MaxProcs: %u\n", procs);
    for (uint64_t i = 0; i < w->count; i++)
        fprintf (f, "%llu %lld -1 %lld %u -1 -1 %u %lld -1 1 %u 1 -1 1 -1 -1 -1\n",
                 (unsigned long long)i + 1, (long long)(w->job[i].submit / US_PER_S),
                 (long long)(w->job[i].run / US_PER_S + 1), w->job[i].procs, w->job[i].procs,
                 (long long)(w->job[i].limit / US_PER_S + 1), (unsigned)(i % 8) + 1);
    fclose (f);
    workload_destroy (w);
    cred_names_free (&names);
}

struct edge {
    time_us at;
    int64_t procs;
};

static int by_time (const void *a, const void *b)
{
    const struct edge *x = a, *y = b;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return x->procs < y->procs ? -1 : x->procs > y->procs; /* ends first */
}

/* All processors together; ordinary jobs site by site as well. */
static void never_over (const struct grid *grid, const struct grid_run *run)
{
    struct edge *edge = calloc (2 * grid->count + 1, sizeof *edge);
    assert_non_null (edge);
    for (uint32_t site = 0; site <= grid->site_count; site++) {
        uint64_t edges = 0;
        int64_t used = 0, all = 0;
        for (uint32_t s = 0; s < grid->site_count; s++)
            all += site == grid->site_count || s == site ? grid->site[s].machine->procs : 0;
        for (uint64_t i = 0; i < grid->count; i++) {
            const struct gridsim_result *r = &run->result[i];
            int64_t procs = grid->job[i].job->procs;
            if (site < grid->site_count && (r->coallocated || r->site != site))
                continue;
            edge[edges++] = (struct edge){r->start, procs};
            edge[edges++] = (struct edge){r->end, -procs};
        }
        qsort (edge, edges, sizeof *edge, by_time);
        for (uint64_t e = 0; e < edges; e++) {
            used += edge[e].procs;
            assert_true (used <= all);
        }
        assert_int_equal (used, 0);
    }
    free (edge);
}

static void test_whole (void **state)
{
    (void)state;
    static const struct {
        enum grid_kind kind;
        double share;
    } runs[] = {{GRID_ISOLATED, 0},
                {GRID_PLACED, 0},
                {GRID_MOVED, 0},
                {GRID_SHARED, .1},
                {GRID_SHARED, .5}};
    enum { RUNS = sizeof runs / sizeof runs[0] };
    model_put ("a.swf", 1, 150, 16);
    model_put ("b.swf", 2, 200, 64);
    model_put ("c.swf", 3, 150, 32);
    struct grid *grid = grid_of (TWO_SITES "SITECFG[c] WORKLOAD=c.swf CONFIG=easy.cfg\n");
    struct grid_run run[RUNS];
    for (int i = 0; i < RUNS; i++) {
        run[i] = run_of (grid, runs[i].kind, runs[i].share, i ? &run[0] : NULL);
        struct grid_run again = run_of (grid, runs[i].kind, runs[i].share, i ? &run[0] : NULL);
        assert_memory_equal (run[i].result, again.result, grid->count * sizeof *again.result);
        grid_run_free (&again);
        assert_int_equal (run[i].ended, grid->count);
        assert_int_equal (run[i].summary.never, 0);
        for (uint64_t k = 0; k < grid->count; k++) {
            const struct gridsim_result *r = &run[i].result[k];
            assert_true (r->start >= grid->job[k].submit);
            assert_int_equal (r->end - r->start, grid->job[k].job->run);
        }
        never_over (grid, &run[i]);
    }
    assert_true (run[2].summary.moved > 0 && run[2].summary.away > 0);
    assert_true (run[1].mean_wait_s < run[0].mean_wait_s);
    assert_true (run[3].summary.coallocated > 10);
    assert_true (run[4].summary.coallocated > 3 * run[3].summary.coallocated);
    for (uint64_t k = 0; k < grid->count; k++)
        assert_true (run[4].result[k].coallocated || !run[3].result[k].coallocated);
    for (int i = 0; i < RUNS; i++)
        grid_run_free (&run[i]);
    grid_destroy (grid);
}

/* Three real logs: placed jobs wait far less than at home, and not much more than in one pool. Some
 * days of them; `tests/bench/grid` has all. */
static void test_real_logs (void **state)
{
    const char *shared = getenv ("NUI_SHARED") ? getenv ("NUI_SHARED") : SHARED_DEFAULT;
    char text[2048], path[512];
    (void)state;
    snprintf (path, sizeof path, "%s/traces/KTH-SP2.swf.gz", shared);
    if (access (path, R_OK) != 0) {
        print_message ("no logs in %s: skipped\n", shared);
        skip ();
    }
    snprintf (
        text, sizeof text,
        "SITECFG[kth] JOBS=1..1500 WORKLOAD=%s/traces/KTH-SP2.swf.gz CONFIG=easy.cfg\n"
        "SITECFG[ctc] JOBS=1..1500 WORKLOAD=%s/traces/CTC-SP2-first20000.swf.gz CONFIG=easy.cfg\n"
        "SITECFG[hpc2n] JOBS=1..1500 WORKLOAD=%s/traces/HPC2N-first20000.swf.gz "
        "CONFIG=easy.cfg\n",
        shared, shared, shared);
    struct grid *grid = grid_of (text);
    struct grid_run isolated = run_of (grid, GRID_ISOLATED, 0, NULL);
    struct grid_run pool = run_of (grid, GRID_POOL, 0, NULL);
    struct grid_run placed = run_of (grid, GRID_PLACED, 0, NULL);
    print_message ("mean wait: isolated %.0f s, one pool %.0f s, placed %.0f s\n",
                   isolated.mean_wait_s, pool.mean_wait_s, placed.mean_wait_s);
    assert_true (placed.mean_wait_s < isolated.mean_wait_s / 3);
    assert_true (placed.mean_wait_s < pool.mean_wait_s * 2.5);
    never_over (grid, &placed);
    grid_run_free (&isolated);
    grid_run_free (&pool);
    grid_run_free (&placed);
    grid_destroy (grid);
}

/* --- the command ------------------------------------------------------------------------------ */

static int command (const char *args, char *said, size_t cap)
{
    char line[1024];
    snprintf (line, sizeof line, "cd '%s' && '%s' sim %s 2>&1", folder, NUI_PROGRAM, args);
    FILE *f = popen (line, "r");
    assert_non_null (f);
    size_t n = fread (said, 1, cap - 1, f);
    said[n] = 0;
    int status = pclose (f);
    assert_true (WIFEXITED (status));
    return WEXITSTATUS (status);
}

static void test_command (void **state)
{
    static char said[1 << 16];
    (void)state;
    model_put ("a.swf", 4, 60, 8);
    model_put ("b.swf", 5, 60, 16);
    put ("grid.cfg", TWO_SITES);
    assert_int_equal (command ("--grid grid.cfg --coallocate 10,50 --report page --jobs-out j.csv "
                               "--stats-out s.json --csv",
                               said, sizeof said),
                      0);
    assert_non_null (strstr (said, "\nisolated,"));
    assert_non_null (strstr (said, "\none pool,"));
    assert_non_null (strstr (said, "\nplaced and moved,"));
    assert_non_null (strstr (said, "\n50 % co-allocated,"));
    static const char *const made[] = {"page/index.html", "page/extra-wait.csv", "page/runs.csv",
                                       "j.csv", "s.json"};
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++)
        assert_int_equal (access (in_folder (made[i]), R_OK), 0);
}

static void test_refusals (void **state)
{
    static const struct {
        const char *args, *grid, *says;
        int code;
    } bad[] = {
        {"--grid none.cfg", "", "none.cfg", 5},
        {"--grid g.cfg", "SITECFG[a] WORKLOAD=a.swf CONFIG=easy.cfg\n", "two sites or more", 1},
        {"--grid g.cfg",
         "SITECFG[a] SILENT=5..1 WORKLOAD=a.swf CONFIG=easy.cfg\n"
         "SITECFG[b] WORKLOAD=b.swf CONFIG=easy.cfg\n",
         "SITECFG[a] SILENT=5..1: wanted from when until when", 1},
        {"--grid g.cfg", "SITECFG[a] WORKLOAD=a.swf\nSITECFG[b] WORKLOAD=b.swf CONFIG=easy.cfg\n",
         "SITECFG[a] needs WORKLOAD= and CONFIG=", 1},
        {"--grid g.cfg", TWO_SITES "MOVEGIAN 5\n", "did you mean MOVEGAIN", 1},
        {"--grid g.cfg",
         "SITECFG[a] JOBS=9..1 WORKLOAD=a.swf CONFIG=easy.cfg\n"
         "SITECFG[b] WORKLOAD=b.swf CONFIG=easy.cfg\n",
         "a range is A..B", 1},
        {"--grid g.cfg --coallocate 20,10", TWO_SITES, "ascending", 2},
        {"--grid g.cfg --coallocate x", TWO_SITES, "per cent of jobs", 2},
        {"--grid g.cfg -w a.swf", TWO_SITES, "the file of --grid says", 2},
        {"--grid g.cfg --plot x.svg", TWO_SITES, "with --grid go", 2},
        {"--coallocate 10", "", "goes with --grid", 2},
    };
    char said[4096];
    (void)state;
    model_put ("a.swf", 4, 60, 8);
    model_put ("b.swf", 5, 60, 16);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        put ("g.cfg", bad[i].grid);
        int code = command (bad[i].args, said, sizeof said);
        if (code != bad[i].code || !strstr (said, bad[i].says))
            fail_msg ("%s: exit code %d: %s", bad[i].args, code, said);
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_placed),
        cmocka_unit_test (test_moved),
        cmocka_unit_test (test_cut_off),
        cmocka_unit_test (test_halves),
        cmocka_unit_test (test_idle_beside_halves),
        cmocka_unit_test (test_whole),
        cmocka_unit_test (test_real_logs),
        cmocka_unit_test (test_command),
        cmocka_unit_test (test_refusals),
    };
    return cmocka_run_group_tests (tests, setup, teardown);
}
