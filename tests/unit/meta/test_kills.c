/* nui-meta killed with -9 at each step of a job and of a co-allocation, and started again. */
#include "proto/base/clock.h"
#include "tests/unit/meta/metad_case.h"

static void kill_at (const char *method, uint32_t after, const struct fake_job *template,
                     void (*before) (struct fakegrid *grid))
{
    struct fakegrid *grid = fake_create (FAKE_SITES);
    struct fake_job job = *template;
    struct uuid uuid;
    char id[32], again[32];
    struct err err;
    uuid_make (&uuid);
    job.uuid = uuid.b;
    fake_meta_start (grid);
    snprintf (grid->kill_on, sizeof grid->kill_on, "%s", method);
    grid->kill_after = after;
    if (before)
        before (grid);
    grid->impatient = true;
    int rc = fake_submit (grid, &job, id, &err);
    grid->impatient = false;
    fake_until (grid, was_killed, grid, 20 * US_PER_S);
    fake_meta_start (grid);
    submit_ok (grid, &job, again); /* the same uuid: what was acknowledged is there */
    if (rc == 0)
        assert_string_equal (id, again);
    fake_until_state (grid, again, COMPLETED);
    for (uint32_t i = 0; i < job.n && job.n > 1; i++)
        if (grid->site[i].launches != 1)
            print_error ("killed at %s %u: %s launched %u times\n", method, after,
                         grid->site[i].name, grid->site[i].launches);
    for (uint32_t i = 0; i < job.n && job.n > 1; i++)
        assert_int_equal (grid->site[i].launches, 1);
    fake_until (grid, nothing_held, grid, 10 * US_PER_S);
    assert_int_equal (grid->violations, 0);
    fake_destroy (grid);
}

static void beta_says_no_once (struct fakegrid *grid)
{
    grid->site[1].prepare_no = 1;
    grid->site[1].next_feasible = US_PER_S;
}

static void beta_expires_thrice (struct fakegrid *grid)
{
    grid->site[1].commit_expired = 3;
}

static void kill_9_at_each_step (void **state)
{
    static const char *const methods[] = {"Query", "Prepare", "Commit", "Ready", "Start"};
    (void)state;
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        for (uint32_t after = 0; after < 2; after++)
            kill_at (methods[i], after, &pair, NULL);
    kill_at ("Abort", 0, &pair, beta_says_no_once);
    kill_at ("Release", 0, &pair, beta_expires_thrice);
}

static void kill_9_of_an_ordinary_job (void **state)
{
    static const struct fake_job one = {.n = 1, .sites = {"alpha"}, .procs = 1, .walltime_s = 60};
    (void)state;
    kill_at ("Query", 0, &one, NULL);
    kill_at ("Submit", 0, &one, NULL);
}

#define TEST(f) cmocka_unit_test_setup_teardown (f, setup, teardown)

int main (int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (kill_9_of_an_ordinary_job),
        cmocka_unit_test (kill_9_at_each_step),
    };
    if (argc > 1)
        cmocka_set_test_filter (argv[1]);
    return cmocka_run_group_tests (tests, NULL, NULL);
}
