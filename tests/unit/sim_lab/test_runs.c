/* Single runs: the PBS comparator by hand, the agents' rules, workers and what they leave behind,
 * the numbers computed from jobs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "local/sim/lab/agents.h"
#include "local/sim/lab/labstats.h"
#include "local/sim/lab/model.h"
#include "local/sim/lab/pbsfifo.h"
#include "local/sim/lab/pool.h"
#include "proto/base/rng.h"

static struct cred_names names;
static const char plain[] = "NODEALLOCATIONPOLICY FIRSTAVAILABLE\n";

static int setup (void **state)
{
    (void)state;
    cred_names_init (&names);
    return 0;
}

static int teardown (void **state)
{
    (void)state;
    cred_names_free (&names);
    return 0;
}

static struct lab_run run_of (const struct workload *w, const struct machine *m)
{
    return (struct lab_run){.label = "test",
                            .config = plain,
                            .workload = w,
                            .machine = m,
                            .names = &names,
                            .starving = PBSFIFO_STARVING_DEFAULT};
}

static struct lab_result simulated (const struct lab_run *run)
{
    struct lab_result r;
    struct err err = {0};
    if (lab_run_simulate (run, NULL, NULL, &r, &err))
        fail_msg ("%s", err.text);
    return r;
}

static double hours (double value)
{
    return value / 3600;
}

/* --- PBS FIFO ------------------------------------------------------------------------------- */

/* Ten processors. A takes 6 for 10 h. B wants all 10. Small ones of 4 processors and 5 h come every
 * hour and keep passing B, until it has waited 24 h: then nothing starts before it. */
static struct workload *starving_jobs (void)
{
    struct workload *w = model_workload (&names);
    model_job (w, 0, 10 * 3600, 10 * 3600, 6, -1);
    model_job (w, 1, 3600, 3600, 10, -1);
    for (int i = 0; i < 40; i++)
        model_job (w, (1 + i) * 3600, 5 * 3600, 5 * 3600, 4, -1);
    return w;
}

static void fifo_starves_and_then_stops_all (void **state)
{
    struct workload *w = starving_jobs ();
    struct machine *m = machine_uniform (10, 1, NULL);
    struct lab_run run = run_of (w, m);
    (void)state;
    run.scheduler = LAB_PBSFIFO;
    struct lab_result r = simulated (&run);
    assert_true (r.job[0].start == 0);
    assert_true (hours (r.job[2].start) == 1); /* passes B at once: it fits */
    double wide = r.job[1].start;
    assert_true (hours (wide - r.job[1].submit) > 24);
    for (uint64_t i = 2; i < r.count; i++) {
        bool before = r.job[i].start < wide;
        /* Whoever started before did so before B's patience ended. */
        if (before)
            assert_true (r.job[i].start <= r.job[1].submit + 24 * 3600);
        else
            assert_true (r.job[i].start >= r.job[1].end);
    }
    /* Never starving: B waits until nobody sends any more. */
    run.starving = TIME_US_MAX;
    struct lab_result patient = simulated (&run);
    assert_true (patient.job[1].start > wide + 3600);
    /* Soon starving: as soon as A has gone. */
    run.starving = (duration_us)3600 * US_PER_S;
    struct lab_result soon = simulated (&run);
    assert_true (hours (soon.job[1].start) <= 10.01);
    lab_result_free (&r);
    lab_result_free (&patient);
    lab_result_free (&soon);
    machine_destroy (m);
    workload_destroy (w);
}

/* Never more processors than there are, each job exactly once and for its run time. */
static void machine_kept (const struct lab_result *r, int64_t procs)
{
    for (uint64_t i = 0; i < r->count; i++) {
        const struct lab_job *j = &r->job[i];
        int64_t used = 0;
        assert_true (lab_ran (j) && j->start >= j->submit);
        assert_true (fabs (j->end - j->start - j->run) < 1e-6);
        for (uint64_t k = 0; k < r->count; k++)
            used += r->job[k].start <= j->start && r->job[k].end > j->start ? r->job[k].procs : 0;
        assert_true (used <= procs);
    }
}

static void fifo_on_the_model (void **state)
{
    struct lublin_options o = {.seed = 9, .jobs = 800, .procs = 64, .users = 4, .load = .9};
    struct workload *w = model_lublin (&o, &names);
    struct machine *m = machine_uniform (16, 4, NULL); /* tasks share nodes */
    struct lab_run run = run_of (w, m);
    (void)state;
    run.scheduler = LAB_PBSFIFO;
    struct lab_result r = simulated (&run);
    machine_kept (&r, 64);
    lab_result_free (&r);
    machine_destroy (m);
    workload_destroy (w);
}

/* --- agents --------------------------------------------------------------------------------- */

static void agents_keep_their_rules (void **state)
{
    struct agents_options o = {
        .seed = 5, .count = {4, 2, 1}, .work_proc_h = 4000, .until_s = 90 * 86400};
    struct machine *m = machine_uniform (64, 1, NULL);
    struct lab_run run = run_of (NULL, m);
    (void)state;
    run.agents = &o;
    struct lab_result r = simulated (&run), again = simulated (&run);
    double work = 0, last_submit = 0;
    uint64_t by_kind[AGENT_KINDS] = {0};
    assert_int_equal (r.count, again.count);
    assert_memory_equal (r.job, again.job, r.count * sizeof r.job[0]);
    machine_kept (&r, 64);
    for (uint64_t i = 0; i < r.count; i++) {
        const struct lab_job *j = &r.job[i];
        uint32_t together = 0;
        by_kind[j->agent]++;
        work += (j->end - j->start) * j->procs / 3600;
        last_submit = j->submit > last_submit ? j->submit : last_submit;
        for (uint64_t k = 0; k < r.count;
             k++) /* of the same user in the system, at its submission */
            together += r.job[k].user == j->user && r.job[k].submit <= j->submit &&
                        (r.job[k].end > j->submit || k == i);
        assert_true (together <= (j->agent == AGENT_HEAVY ? 2 : 1));
        if (j->agent != AGENT_DEVELOPER)
            continue;
        int day = (int)(j->submit / 86400) % 7, second = (int)j->submit % 86400;
        assert_in_range (day, 0, 4);
        assert_in_range (second, 9 * 3600, 18 * 3600);
        assert_true (j->procs <= 6 && j->limit <= 1800);
    }
    for (int k = 0; k < AGENT_KINDS; k++)
        assert_true (by_kind[k] > 5);
    assert_true (work >= 4000);
    /* They stopped: what was done when the last job was sent was still too little. */
    double before = 0;
    for (uint64_t i = 0; i < r.count; i++) {
        if (r.job[i].end <= last_submit)
            before += (r.job[i].end - r.job[i].start) * r.job[i].procs / 3600;
    }
    assert_true (before < 4000);
    lab_result_free (&r);
    lab_result_free (&again);
    machine_destroy (m);
}

/* --- workers -------------------------------------------------------------------------------- */

static uint32_t files_in (const char *folder)
{
    uint32_t count = 0;
    DIR *d = opendir (folder);
    assert_non_null (d);
    for (struct dirent *e; (e = readdir (d));)
        count += strstr (e->d_name, ".run") != NULL;
    closedir (d);
    return count;
}

static void folder_remove (const char *folder)
{
    char path[512];
    DIR *d = opendir (folder);
    assert_non_null (d);
    for (struct dirent *e; (e = readdir (d));) {
        snprintf (path, sizeof path, "%s/%s", folder, e->d_name);
        unlink (path);
    }
    closedir (d);
    rmdir (folder);
}

enum { RUNS = 5 };
struct world {
    struct workload *work[RUNS];
    struct machine *machine;
    struct lab_run run[RUNS];
    char folder[64];
};

static void world_make (struct world *w, uint32_t jobs)
{
    struct lublin_options o = {.jobs = jobs, .procs = 32, .users = 4, .load = .9};
    memset (w, 0, sizeof *w);
    w->machine = machine_uniform (32, 1, NULL);
    for (uint32_t i = 0; i < RUNS; i++) {
        o.seed = i;
        w->work[i] = model_lublin (&o, &names);
        w->run[i] = run_of (w->work[i], w->machine);
    }
    strcpy (w->folder, "/tmp/nui-lab-XXXXXX");
    assert_non_null (mkdtemp (w->folder));
}

static void results_free (struct world *w)
{
    for (uint32_t i = 0; i < RUNS; i++)
        lab_result_free (&w->run[i].result);
}

static void world_free (struct world *w)
{
    results_free (w);
    for (uint32_t i = 0; i < RUNS; i++)
        workload_destroy (w->work[i]);
    machine_destroy (w->machine);
    folder_remove (w->folder);
}

static void workers_give_what_one_process_gives (void **state)
{
    struct world w;
    struct pool_options o = {.workers = 2};
    struct pool_summary s;
    struct err err = {0};
    (void)state;
    world_make (&w, 300);
    o.folder = w.folder;
    assert_int_equal (pool_run (w.run, RUNS, &o, &s, &err), 0);
    assert_int_equal (s.simulated, RUNS);
    assert_int_equal (s.kept, 0);
    assert_int_equal (files_in (w.folder), RUNS);
    for (uint32_t i = 0; i < RUNS; i++) {
        struct lab_result own = simulated (&w.run[i]);
        assert_int_equal (own.count, w.run[i].result.count);
        assert_memory_equal (own.job, w.run[i].result.job, own.count * sizeof own.job[0]);
        lab_result_free (&own);
    }
    /* All there: nothing is done again. */
    results_free (&w);
    assert_int_equal (pool_run (w.run, RUNS, &o, &s, &err), 0);
    assert_int_equal (s.kept, RUNS);
    assert_int_equal (s.simulated, 0);
    /* Another policy is another run. */
    results_free (&w);
    w.run[0].config = "NODEALLOCATIONPOLICY FIRSTAVAILABLE\nRESERVATIONDEPTH[0] 3\n";
    assert_int_equal (pool_run (w.run, RUNS, &o, &s, &err), 0);
    assert_int_equal (s.simulated, 1);
    world_free (&w);
}

static void damaged_results_are_done_again (void **state)
{
    struct world w;
    struct pool_options o = {.workers = 2};
    struct pool_summary s;
    struct err err = {0};
    char path[512];
    (void)state;
    world_make (&w, 100);
    o.folder = w.folder;
    assert_int_equal (pool_run (w.run, RUNS, &o, &s, &err), 0);
    results_free (&w);
    snprintf (path, sizeof path, "%s/%016llx.run", w.folder,
              (unsigned long long)lab_run_key (&w.run[0]));
    assert_int_equal (truncate (path, 500), 0);
    snprintf (path, sizeof path, "%s/%016llx.run", w.folder,
              (unsigned long long)lab_run_key (&w.run[1]));
    FILE *f = fopen (path, "r+");
    assert_non_null (f);
    fseek (f, 200, SEEK_SET);
    fputs ("x", f);
    fclose (f);
    assert_int_equal (pool_run (w.run, RUNS, &o, &s, &err), 0);
    assert_int_equal (s.simulated, 2);
    assert_int_equal (s.kept, RUNS - 2);
    world_free (&w);
}

static void stop_once_one_is_done (void *self, uint64_t done, uint64_t total)
{
    (void)self;
    (void)total;
    if (done >= 3000)
        raise (SIGINT);
}

static void stopped_and_gone_on_with (void **state)
{
    struct world w;
    struct pool_options o = {.workers = 1, .progress = stop_once_one_is_done};
    struct pool_summary s;
    struct err err = {0};
    (void)state;
    world_make (&w, 3000);
    o.folder = w.folder;
    assert_int_equal (pool_run (w.run, RUNS, &o, &s, &err), ERR_UNAVAILABLE);
    assert_non_null (strstr (err.text, "stopped after"));
    uint32_t kept = files_in (w.folder);
    assert_in_range (kept, 1, RUNS - 1);
    results_free (&w);
    o.progress = NULL;
    assert_int_equal (pool_run (w.run, RUNS, &o, &s, &err), 0);
    assert_int_equal (s.kept, kept);
    assert_int_equal (s.simulated, RUNS - kept);
    world_free (&w);
}

static void a_failing_run_says_why (void **state)
{
    struct world w;
    struct pool_options o = {.workers = 2};
    struct pool_summary s;
    struct err err = {0};
    (void)state;
    world_make (&w, 50);
    w.run[3].config = "BACKFILLPOLICY SOMETIMES\n";
    w.run[3].label = "odd";
    assert_int_not_equal (pool_run (w.run, RUNS, &o, &s, &err), 0);
    assert_non_null (strstr (err.text, "odd"));
    assert_non_null (strstr (err.text, "BACKFILLPOLICY"));
    world_free (&w);
}

/* --- numbers -------------------------------------------------------------------------------- */

static void numbers_by_hand (void **state)
{
    struct lab_job job[] = {
        {.submit = 0, .start = 0, .end = 100, .limit = 200, .procs = 4},
        {.submit = 0, .start = 100, .end = 105, .limit = 10, .procs = 2, .backfilled = 1},
        {.submit = 200, .start = 200, .end = 300, .limit = 100, .procs = 10},
        {.submit = 200, .start = -1, .end = -1, .limit = 100, .procs = 10},
    };
    struct lab_result r = {.count = 4, .job = job};
    struct lab_stats s;
    double use[4];
    (void)state;
    lab_stats_compute (&r, 10, &s);
    assert_int_equal (s.jobs, 3);
    assert_int_equal (s.not_started, 1);
    assert_int_equal (s.backfilled, 1);
    assert_true (fabs (s.mean_wait_s - 100. / 3) < 1e-9);
    assert_true (s.median_wait_s == 0 && s.max_wait_s == 100);
    assert_true (fabs (s.slowdown - (1 + 105 / 10. + 1) / 3) < 1e-9);
    assert_true (fabs (s.xfactor - (1 + 11 + 1) / 3.) < 1e-9);
    assert_true (fabs (s.used - (400 + 10 + 1000) / 3000.) < 1e-9);
    assert_true (fabs (s.used_loaded - 410 / 2000.) < 1e-9);
    lab_use (&r, 10, 0, 400, 4, use);
    assert_true (fabs (use[0] - .4) < 1e-9 && fabs (use[1] - .01) < 1e-9);
    assert_true (fabs (use[2] - 1) < 1e-9 && use[3] == 0);
}

/* Of 400 samples with a known mean about 95 % of the intervals must hold it, also where neighbours
 * are alike; drawing single values would hold it far too rarely there. */
static void intervals_hold_what_they_should (void **state)
{
    enum { TRIALS = 400, COUNT = 2000 };
    static double value[COUNT];
    struct rng rng;
    (void)state;
    rng_seed (&rng, 1, 1);
    for (int alike = 0; alike < 2; alike++) {
        int held = 0;
        for (int t = 0; t < TRIALS; t++) {
            double x = 0;
            for (int i = 0; i < COUNT; i++) {
                x = alike ? .8 * x + rng_normal (&rng) : rng_normal (&rng);
                value[i] = 5 + x;
            }
            struct interval95 got = lab_bootstrap (value, COUNT, (uint64_t)t);
            held += got.low <= 5 && 5 <= got.high;
        }
        print_message ("intervals that hold the mean: %d of %d\n", held, TRIALS);
        assert_in_range (held, TRIALS * 88 / 100, TRIALS * 99 / 100);
    }
    struct interval95 none = lab_bootstrap (value, 0, 1);
    assert_true (none.mean == 0 && none.low == 0 && none.high == 0);
    assert_true (lab_apart (&(struct interval95){1, .5, 2}));
    assert_false (lab_apart (&(struct interval95){1, -.5, 2}));
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (fifo_starves_and_then_stops_all),
        cmocka_unit_test (fifo_on_the_model),
        cmocka_unit_test (agents_keep_their_rules),
        cmocka_unit_test (workers_give_what_one_process_gives),
        cmocka_unit_test (damaged_results_are_done_again),
        cmocka_unit_test (stopped_and_gone_on_with),
        cmocka_unit_test (a_failing_run_says_why),
        cmocka_unit_test (numbers_by_hand),
        cmocka_unit_test (intervals_hold_what_they_should),
    };
    return cmocka_run_group_tests (tests, setup, teardown);
}
