/* nui-meta asks: which sites, and beside them the bank; what an answer, a key and a renewal change. */
#include <sqlite3.h>

#include "tests/unit/meta/metad_case.h"

static uint32_t asked_since (const struct fakegrid *grid, uint32_t before)
{
    uint32_t asked = 0;
    for (uint32_t s = 0; s < grid->sites; s++)
        asked += grid->site[s].calls_query;
    return asked - before;
}

/* A few likely sites are asked, all others only where those cannot run it. */
static void asks_more_sites_only_where_it_must (void **state)
{
    struct fakegrid *grid = fake_create (FAKE_SITES_SOME);
    struct fake_job job = {.n = 1, .procs = 2, .walltime_s = 60},
                    two = {.n = 2, .procs = 2, .walltime_s = 60};
    char id[32];
    (void)state;
    for (uint32_t s = 0; s < grid->sites; s++)
        grid->site[s].start_estimate = (time_us)s * 60 * US_PER_S;
    fake_meta_start (grid);
    submit_ok (grid, &job, id);
    fake_until_state (grid, id, COMPLETED);
    assert_int_equal (asked_since (grid, 0), 8);
    assert_int_equal (grid->site[0].calls_submit, 1);
    for (uint32_t s = 0; s + 1 < grid->sites; s++)
        grid->site[s].infeasible = true;
    submit_ok (grid, &job, id);
    fake_until_state (grid, id, COMPLETED);
    assert_int_equal (grid->site[FAKE_SITES_SOME - 1].calls_submit, 1);
    grid->site[FAKE_SITES_SOME - 2].infeasible = false;
    for (uint32_t s = FAKE_SITES_SOME - 2; s < FAKE_SITES_SOME; s++)
        grid->site[s].start_estimate = 0;
    submit_ok (grid, &two, id);
    fake_until_state (grid, id, COMPLETED);
    assert_int_equal (grid->violations, 0);
    fake_destroy (grid);
}

/* Where those that were asked have become busy since they reported, the next one's report counts again. */
static void asks_on_while_reports_promise_more (void **state)
{
    struct fakegrid *grid = fake_create (FAKE_SITES_SOME);
    struct fake_job job = {.n = 1, .procs = 2, .walltime_s = 60};
    char id[32];
    (void)state;
    for (uint32_t s = 0; s < grid->sites; s++)
        grid->site[s].start_estimate = (time_us)s * 60 * US_PER_S;
    grid->site[0].since_report = 3600 * US_PER_S;
    fake_meta_start (grid);
    submit_ok (grid, &job, id);
    fake_until_state (grid, id, COMPLETED);
    assert_int_equal (asked_since (grid, 0), 8);
    assert_int_equal (grid->site[1].calls_submit, 1);
    for (uint32_t s = 0; s < 8; s++)
        grid->site[s].since_report = 3600 * US_PER_S;
    submit_ok (grid, &job, id);
    fake_until_state (grid, id, COMPLETED);
    assert_int_equal (asked_since (grid, 8), FAKE_SITES_SOME);
    assert_int_equal (grid->site[8].calls_submit, 1);
    fake_destroy (grid);
}

/* ---- prices beside the questions: what was asked of the bank, and what came of it */

static void asked_bank (struct fakegrid *grid, const char *words)
{
    if (strcmp (grid->quoted, words) != 0)
        print_error ("the bank was asked '%s'\n", grid->quoted);
    assert_string_equal (grid->quoted, words);
    grid->quoted[0] = '\0';
}

/* The price of the answer that is kept of each component of a fresh job. */
static void submit_priced (struct fakegrid *grid, const struct fake_job *job, int64_t alpha,
                           int64_t beta)
{
    char id[32];
    submit_ok (grid, job, id);
    fake_until_state (grid, id, COMPLETED);
    Nui__Meta__V1__JobStatus *status = fake_status (grid, id);
    assert_int_equal (answer_of (status->components[0], "alpha")->price_micro,
                      alpha * MICRO_PER_CREDIT);
    assert_int_equal (answer_of (status->components[1], "beta")->price_micro,
                      beta * MICRO_PER_CREDIT);
    nui__meta__v1__job_status__free_unpacked (status, NULL);
}

static void a_group_is_priced_beside_the_questions (void **state)
{
    struct fakegrid *grid = *state;
    struct fake_job one = {.n = 1, .sites = {"alpha"}, .procs = 2, .walltime_s = 60};
    char id[32];
    submit_priced (grid, &pair, 120, 120);
    asked_bank (grid, "all alpha:2 beta:2;");
    submit_ok (grid, &one, id);
    asked_bank (grid, "alpha:2;");
    one.sites[0] = "beta"; /* an ordinary job's price is asked for afterwards: this one has nothing
                              to be priced */
    grid->site[1].infeasible = true;
    refused (grid, &one, ERR_LIMIT, "beta: no account here");
    asked_bank (grid, "");
}

/* The price is that of the answer, whatever was expected; what a site's machine is, is known from then on. */
static void an_answer_that_contradicts_is_priced_anew (void **state)
{
    struct fakegrid *grid = *state;
    struct fake_job job = pair;
    struct fakesite *alpha = &grid->site[0], *beta = &grid->site[1];
    beta->query_procs = 3;
    submit_priced (grid, &pair, 120, 180);
    asked_bank (grid, "all alpha:2 beta:2;all alpha:2 beta:3;");
    job.cost_max_micro = 300 * MICRO_PER_CREDIT;
    submit_priced (grid, &job, 120, 180);
    job.cost_max_micro = 299 * MICRO_PER_CREDIT;
    refused (grid, &job, ERR_LIMIT, "the cheapest way costs 300, the job's bound is 299");
    beta->query_procs = 1;
    submit_priced (grid, &job, 120, 60);
    beta->query_procs = 0;
    grid->quoted[0] = '\0';
    alpha->machine = "fast";
    submit_priced (grid, &pair, 360, 120);
    asked_bank (grid, "all alpha:2 beta:2;all alpha:2@fast beta:2;");
    submit_priced (grid, &pair, 360, 120);
    asked_bank (grid, "all alpha:2@fast beta:2;");
    alpha->machine = NULL;
    submit_priced (grid, &pair, 120, 120);
    asked_bank (grid, "all alpha:2@fast beta:2;all alpha:2 beta:2;");
    submit_priced (grid, &pair, 120, 120);
    asked_bank (grid, "all alpha:2 beta:2;");
}

/* What will never run at beta neither makes the group unpaid nor is spoken of. */
static void a_site_that_never_runs_it_costs_nothing (void **state)
{
    struct fakegrid *grid = *state;
    struct fake_job any = {.n = 2, .procs = 2, .walltime_s = 60};
    struct fakesite *beta = &grid->site[1];
    char id[32];
    beta->infeasible = beta->unfunded = true;
    grid->bank_rate[1] = 0; /* it would be the cheapest */
    for (int s = 0; s < FAKE_SITES; s++)
        grid->site[s].start_estimate = s * 60 * US_PER_S; /* so they are asked in this order */
    for (int s = 0; s < FAKE_SITES; s++)
        fake_report (&grid->site[s]);
    submit_ok (grid, &any, id);
    asked_bank (grid, "alpha:2 beta:2 gamma:2 alpha:2 beta:2 gamma:2;all alpha:2 alpha:2;");
    Nui__Meta__V1__JobStatus *status = fake_status (grid, id);
    assert_int_equal (answer_of (status->components[0], "beta")->price_micro, 0);
    assert_int_equal (answer_of (status->components[0], "gamma")->price_micro,
                      120 * MICRO_PER_CREDIT);
    nui__meta__v1__job_status__free_unpacked (status, NULL);
    refused (grid, &pair, ERR_LIMIT, "component c1 can never run: beta: no account here");
    grid->site[2].unfunded = true; /* reasons are those of the others */
    grid->site[0].unfunded = true;
    grid->quoted[0] = '\0';
    refused (grid, &any, ERR_FUNDS,
             "insufficient funds: account proj: nothing left for alpha (short by 5)");
    asked_bank (grid,
                "alpha:2 beta:2 gamma:2 alpha:2 beta:2 gamma:2;alpha:2 gamma:2 alpha:2 gamma:2;");
    grid->site[0].infeasible = true; /* and not those of alpha, of which the bank speaks first */
    refused (grid, &any, ERR_FUNDS, "nothing left for gamma (short by 5)");
    grid->site[2].infeasible = true; /* nothing is left to be priced */
    grid->quoted[0] = '\0';
    refused (grid, &any, ERR_LIMIT, "component c0 can never run");
    asked_bank (grid, "alpha:2 beta:2 gamma:2 alpha:2 beta:2 gamma:2;");
    grid->bank_funded = false; /* nor of what is unpaid as a whole */
    refused (grid, &pair, ERR_LIMIT, "component c0 can never run: alpha: no account here");
    asked_bank (grid, "all alpha:2 beta:2;");
}

static void a_group_waits_for_the_bank (void **state)
{
    struct fakegrid *grid = *state;
    char id[32];
    grid->bank_mute = true;
    refused (grid, &pair, ERR_UNAVAILABLE, "the bank does not answer");
    grid->site[1].infeasible = true;
    grid->quoted[0] = '\0';
    refused (grid, &pair, ERR_LIMIT, "component c1 can never run: beta: no account here");
    asked_bank (grid, "all alpha:2 beta:2;"); /* once: it would not answer now, either */
    grid->site[1].infeasible = false;
    grid->bank_mute = false;
    grid->bank_funded = false;
    refused (grid, &pair, ERR_FUNDS,
             "insufficient funds for 240 credits: account proj: nothing left (short by 5)");
    grid->bank_funded = true;
    submit_ok (grid, &pair, id);
    fake_until_state (grid, id, COMPLETED);
}

struct waiting {
    struct fakegrid *grid;
    const char *id;
};

static bool waits_for_key (void *arg)
{
    struct waiting *job = arg;
    Nui__Meta__V1__JobStatus *status = fake_status (job->grid, job->id);
    bool waits = status->reason && strcmp (status->reason->code, "BankDown") == 0 &&
                 strstr (status->reason->text, "has not given the key");
    assert_int_equal (status->state, NUI__META__V1__GRID_JOB_STATE__GRID_PENDING);
    nui__meta__v1__job_status__free_unpacked (status, NULL);
    return waits;
}

/* While the bank has given no key no site is asked to hold anything, and none is said not to answer. */
static void jobs_wait_for_the_first_key (void **state)
{
    struct fakegrid *grid = fake_create (FAKE_SITES);
    struct fake_job any = {.n = 1, .procs = 2, .walltime_s = 60};
    struct waiting single = {.grid = grid}, group = {.grid = grid};
    char single_id[32], group_id[32];
    (void)state;
    grid->bank_keyless = true;
    fake_meta_start (grid);
    submit_ok (grid, &any, single_id);
    submit_ok (grid, &pair, group_id);
    single.id = single_id;
    group.id = group_id;
    fake_until (grid, waits_for_key, &single, 20 * US_PER_S);
    fake_until (grid, waits_for_key, &group, 20 * US_PER_S);
    for (uint32_t s = 0; s < grid->sites; s++)
        assert_int_equal (grid->site[s].calls_submit + grid->site[s].calls_prepare, 0);
    grid->bank_keyless = false;
    fake_until_state (grid, single_id, COMPLETED);
    fake_until_state (grid, group_id, COMPLETED);
    assert_int_equal (grid->violations, 0);
    fake_destroy (grid);
}

static bool first_is_released (void *grid)
{
    return ((struct fakegrid *)grid)->site[0].part[0].state == FAKE_RELEASED;
}

/* The key has ended when a component is to be prepared elsewhere: said at once, and not when the slot, an hour ahead, is
 * over; no site is said to have refused. */
static void no_key_for_what_is_prepared_anew (void **state)
{
    struct fakegrid *grid = fake_create (FAKE_SITES);
    struct waiting group = {.grid = grid};
    char id[32], path[512];
    sqlite3 *db = NULL;
    (void)state;
    for (uint32_t s = 0; s < 2; s++)
        grid->site[s].start_estimate = 3600 * US_PER_S;
    grid->site[1].commit_expired = 1;
    strcpy (grid->kill_on, "Prepare");
    grid->kill_after = 2; /* the one of the repair */
    fake_meta_start (grid);
    submit_ok (grid, &pair, id);
    fake_until (grid, was_killed, grid, 20 * US_PER_S);
    snprintf (path, sizeof path, "%s/meta-state/meta.sqlite", grid->dir);
    assert_int_equal (sqlite3_open (path, &db), SQLITE_OK);
    assert_int_equal (sqlite3_exec (db, "DELETE FROM handover_key", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close (db);
    grid->bank_keyless = true;
    fake_meta_start (grid);
    group.id = id;
    fake_until (grid, waits_for_key, &group, 20 * US_PER_S);
    fake_until (grid, first_is_released, grid, 20 * US_PER_S);
    assert_int_equal (grid->site[0].calls_prepare + grid->site[1].calls_prepare, 3);
    for (uint32_t s = 0; s < 2; s++)
        grid->site[s].start_estimate = 0;
    grid->bank_keyless = false;
    fake_until_state (grid, id, COMPLETED);
    assert_int_equal (grid->violations, 0);
    fake_destroy (grid);
}

static bool is_renewed (void *site)
{
    return ((struct fakesite *)site)->calls_renew > 0;
}

/* The old hand-over ends with its key: a job that waits at its site is handed over anew under the bank's new one, once,
 * and what has ended is not. */
static void jobs_are_handed_over_anew_when_the_key_changes (void **state)
{
    struct fakegrid *grid = fake_create (1);
    struct fakesite *site = &grid->site[0];
    struct fake_job any = {.n = 1, .procs = 2, .walltime_s = 60};
    char ended[32], waits[32];
    (void)state;
    fake_meta_start (grid);
    submit_ok (grid, &any, ended);
    fake_until_state (grid, ended, COMPLETED);
    site->hold_runs = true;
    submit_ok (grid, &any, waits);
    fake_until_state (grid, waits, NUI__META__V1__GRID_JOB_STATE__GRID_QUEUED);
    fake_meta_stop (grid);
    memset (grid->secret, 8, sizeof grid->secret);
    fake_meta_start (grid);
    fake_until (grid, is_renewed, site, 15 * US_PER_S); /* four times that */
    assert_string_equal (site->renewed, waits);
    fake_job_event (site, NUI__LOCAL__V1__JOB_STATE__JOB_COMPLETED);
    fake_until_state (grid, waits, COMPLETED);
    assert_int_equal (site->calls_renew, 1);
    assert_int_equal (grid->violations, 0);
    fake_destroy (grid);
}

/* Which a site calls invalid: it is not asked for ever, the job's owner is told, and other jobs have theirs. */
static void a_renewal_that_is_refused_is_set_aside (void **state)
{
    struct fakegrid *grid = fake_create (2);
    struct fakesite *alpha = &grid->site[0], *beta = &grid->site[1];
    struct fake_job first = {.n = 1, .sites = {"alpha"}, .procs = 2, .walltime_s = 60},
                    second = {.n = 1, .sites = {"beta"}, .procs = 2, .walltime_s = 60};
    char refused[32], taken[32];
    (void)state;
    alpha->hold_runs = beta->hold_runs = true;
    fake_meta_start (grid);
    submit_ok (grid, &first, refused);
    fake_until_state (grid, refused, NUI__META__V1__GRID_JOB_STATE__GRID_QUEUED);
    submit_ok (grid, &second, taken);
    fake_until_state (grid, taken, NUI__META__V1__GRID_JOB_STATE__GRID_QUEUED);
    fake_meta_stop (grid);
    memset (grid->secret, 8, sizeof grid->secret);
    strcpy (alpha->invalid, "Renew");
    fake_meta_start (grid);
    struct said said = {grid, refused, "alpha did not take the renewal: it makes no sense here"};
    fake_until (grid, is_said, &said, 20 * US_PER_S);
    fake_until (grid, is_renewed, beta, 20 * US_PER_S);
    assert_string_equal (beta->renewed, taken);
    fake_job_event (alpha, NUI__LOCAL__V1__JOB_STATE__JOB_COMPLETED);
    fake_until_state (grid, refused, COMPLETED);
    fake_job_event (beta, NUI__LOCAL__V1__JOB_STATE__JOB_COMPLETED);
    fake_until_state (grid, taken, COMPLETED);
    assert_int_equal (alpha->calls_renew, 1);
    assert_int_equal (grid->violations, 0);
    fake_destroy (grid);
}

/* Of twelve sites nine are asked first, and none of them can: all that can are priced together. */
static void more_sites_are_priced_when_they_have_answered (void **state)
{
    struct fakegrid *grid = fake_create (FAKE_SITES_SOME);
    struct fake_job any = {.n = 2, .procs = 2, .walltime_s = 60};
    char id[32];
    (void)state;
    for (uint32_t s = 0; s < grid->sites; s++) {
        grid->site[s].start_estimate = (time_us)s * US_PER_S;
        grid->site[s].infeasible = grid->site[s].unfunded = s != 10;
    }
    fake_meta_start (grid);
    submit_ok (grid, &any, id);
    char *second = strchr (grid->quoted, ';');
    assert_non_null (second);
    *second = '\0';
    assert_null (strstr (grid->quoted, "more10"));
    assert_true (strstr (grid->quoted, "alpha:2") == grid->quoted &&
                 strstr (grid->quoted, "more08:2"));
    assert_string_equal (second + 1, "all more10:2 more10:2;");
    fake_until_state (grid, id, COMPLETED);
    assert_int_equal (grid->site[10].launches, 2);
    assert_int_equal (grid->violations, 0);
    fake_destroy (grid);
}

/* Eight parts, each at any of 36 sites: more than the bank prices at once. */
static void many_prices_are_asked_for_in_several_calls (void **state)
{
    struct fakegrid *grid = fake_create (FAKE_SITES_MAX);
    struct fake_job any = {
        .n = 8, .procs = 2, .walltime_s = 60, .cost_max_micro = 8 * 120 * MICRO_PER_CREDIT};
    char id[32];
    (void)state;
    for (uint32_t s = 0; s < grid->sites; s++)
        grid->bank_rate[s] = s + 4 < grid->sites ? 2 : 1; /* the last ones are the cheapest */
    fake_meta_start (grid);
    submit_ok (grid, &any, id);
    assert_int_equal (grid->calls_quote, 3); /* 8 * 36 prices, and the whole */
    fake_until_state (grid, id, COMPLETED);
    Nui__Meta__V1__JobStatus *status = fake_status (grid, id);
    for (uint32_t p = 0; p < any.n; p++) {
        assert_int_equal (answer_of (status->components[p], "alpha")->price_micro,
                          240 * MICRO_PER_CREDIT);
        assert_int_equal (answer_of (status->components[p], "more35")->price_micro,
                          120 * MICRO_PER_CREDIT);
        assert_true (strcmp (status->components[p]->site, "more32") >= 0);
    }
    nui__meta__v1__job_status__free_unpacked (status, NULL);
    any.cost_max_micro--;
    refused (grid, &any, ERR_LIMIT, "the cheapest way costs 960, the job's bound is 959.999999");
    grid->site[0].unfunded = true; /* in one of them */
    any.cost_max_micro = 8 * 240 * MICRO_PER_CREDIT;
    submit_ok (grid, &any, id);
    fake_until_state (grid, id, COMPLETED);
    assert_int_equal (grid->site[0].launches, 0);
    grid->bank_mute = true;
    refused (grid, &any, ERR_UNAVAILABLE, "the bank does not answer");
    assert_int_equal (grid->violations, 0);
    fake_destroy (grid);
}

#define TEST(f) cmocka_unit_test_setup_teardown (f, setup, teardown)

int main (int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST (a_group_is_priced_beside_the_questions),
        TEST (an_answer_that_contradicts_is_priced_anew),
        TEST (a_site_that_never_runs_it_costs_nothing),
        TEST (a_group_waits_for_the_bank),
        cmocka_unit_test (asks_more_sites_only_where_it_must),
        cmocka_unit_test (asks_on_while_reports_promise_more),
        cmocka_unit_test (jobs_wait_for_the_first_key),
        cmocka_unit_test (no_key_for_what_is_prepared_anew),
        cmocka_unit_test (jobs_are_handed_over_anew_when_the_key_changes),
        cmocka_unit_test (a_renewal_that_is_refused_is_set_aside),
        cmocka_unit_test (more_sites_are_priced_when_they_have_answered),
        cmocka_unit_test (many_prices_are_asked_for_in_several_calls),
    };
    if (argc > 1)
        cmocka_set_test_filter (argv[1]);
    return cmocka_run_group_tests (tests, NULL, NULL);
}
