/* nui-meta as a process, between fake sites and a fake bank. */
#include <signal.h>

#include "proto/base/clock.h"
#include "proto/rpc/envelope.h"
#include "tests/unit/meta/metad_case.h"

/* ---- ordinary jobs */

static void one_site_by_completion_then_price (void **state)
{
    struct fakegrid *grid = *state;
    struct fake_job job = {.n = 1, .procs = 2, .walltime_s = 60};
    char id[32];
    grid->site[0].start_estimate = 100 * US_PER_S;
    grid->bank_rate[1] = 3;
    for (int s = 0; s < FAKE_SITES; s++)
        fake_report (&grid->site[s]);
    submit_ok (grid, &job, id);
    assert_string_equal (id, "grid.1");
    fake_until_state (grid, id, COMPLETED);
    Nui__Meta__V1__JobStatus *status = fake_status (grid, id);
    /* beta and gamma could start at once by clocks that differ by microseconds: one of them */
    assert_true (strcmp (status->components[0]->site, "alpha") != 0);
    assert_true (
        strncmp (status->components[0]->job->site_job_id, status->components[0]->site, 4) == 0);
    assert_string_equal (status->submitter, "nui://demo/user/alice");
    nui__meta__v1__job_status__free_unpacked (status, NULL);
    assert_int_equal (grid->site[0].calls_submit, 0);
    assert_int_equal (grid->site[1].calls_submit + grid->site[2].calls_submit, 1);
}

/* A site holds what was signed so; what its owner has let go before any site had it is not held there. */
static void a_job_that_is_let_go_before_it_has_a_site (void **state)
{
    struct fakegrid *grid = *state;
    struct fakesite *site = &grid->site[0];
    struct fake_job job = {.n = 1, .sites = {"alpha"}, .procs = 1, .walltime_s = 60, .held = true};
    Nui__Meta__V1__HoldRequest request = NUI__META__V1__HOLD_REQUEST__INIT;
    struct err err;
    char id[32];
    submit_ok (grid, &job, id);
    fake_until_state (grid, id, COMPLETED);
    assert_false (site->submit_released);
    strcpy (site->mute, "Query");
    submit_ok (grid, &job, id);
    request.grid_job_id = id;
    assert_int_equal (call_as (grid->alice, "Hold", &request.base, &err), 0);
    fake_meta_kill (grid);
    fake_meta_start (grid);
    site->mute[0] = '\0';
    fake_until_state (grid, id, COMPLETED);
    assert_true (site->submit_released);
}

/* Each of an array asks the sites once, when the one before it has its place: a large one neither floods them, nor decides by
 * answers that do not know of its own. */
static void an_array_asks_for_one_at_a_time (void **state)
{
    enum { ALL = 24 };
    struct fakegrid *grid = *state;
    struct fake_job array = {
        .n = 1, .procs = 1, .walltime_s = 60, .array = ALL, .array_free = true};
    char id[32];
    uint32_t taken = 0;
    for (int s = 0; s < FAKE_SITES; s++)
        grid->site[s].query_later = true;
    submit_ok (grid, &array, id);
    fake_until_state (grid, id, COMPLETED);
    for (int s = 0; s < FAKE_SITES; s++) {
        assert_int_equal (grid->site[s].queries_most, 1);
        assert_in_range (grid->site[s].calls_query, 1, ALL + 1); /* and before it was taken */
        taken += grid->site[s].single_count;
    }
    assert_int_equal (taken, ALL);
}

static bool submit_seen (void *arg)
{
    return ((struct fakesite *)arg)->calls_submit >= 2;
}

static void a_lost_answer_is_asked_for_again (void **state)
{
    struct fakegrid *grid = *state;
    struct fake_job job = {.n = 1, .sites = {"alpha"}, .procs = 1, .walltime_s = 60};
    char id[32];
    strcpy (grid->site[0].mute, "Submit");
    submit_ok (grid, &job, id);
    fake_until (grid, submit_seen, &grid->site[0], 20 * US_PER_S);
    Nui__Meta__V1__JobStatus *status = fake_status (grid, id);
    assert_string_equal (status->reason->code, "SiteDown");
    nui__meta__v1__job_status__free_unpacked (status, NULL);
    grid->site[0].mute[0] = '\0';
    fake_until_state (grid, id, COMPLETED);
    assert_int_equal (grid->site[0].single_count, 1);
    assert_int_equal (grid->site[0].single[0].attempt, 1);
    assert_int_equal (grid->site[1].calls_submit + grid->site[2].calls_submit, 0);
}

static void a_refusal_leads_to_another_site (void **state)
{
    struct fakegrid *grid = *state;
    struct fake_job job = {.n = 1, .procs = 1, .walltime_s = 60};
    char id[32];
    grid->site[1].start_estimate = 100 * US_PER_S;
    grid->site[2].start_estimate = 200 * US_PER_S;
    grid->site[0].submit_no = 1;
    submit_ok (grid, &job, id);
    fake_until_state (grid, id, COMPLETED);
    assert_int_equal (grid->site[0].calls_submit, 1);
    assert_int_equal (grid->site[1].single_count, 1);
    assert_int_equal (grid->site[1].single[0].attempt, 2);
}

/* Nobody else can take it: what it refused for (its clock, a full queue) passes. */
static void who_refuses_and_alone_can_run_it_is_asked_again (void **state)
{
    struct fakegrid *grid = *state;
    struct fake_job job = {.n = 1, .procs = 1, .walltime_s = 60, .sites = {"alpha"}};
    char id[32];
    grid->site[0].submit_no = 2;
    submit_ok (grid, &job, id);
    fake_until_state (grid, id, COMPLETED);
    assert_int_equal (grid->site[0].calls_submit, 3);
    assert_int_equal (grid->site[0].single_count, 1);
    assert_int_equal (grid->site[1].calls_submit + grid->site[2].calls_submit, 0);
}

static void answers_check (struct fakegrid *grid, const char *id, uint32_t tasks)
{
    Nui__Meta__V1__JobStatus *status = fake_status (grid, id);
    for (size_t p = 0; p < status->n_components; p++) {
        const Nui__Meta__V1__ComponentStatus *c = status->components[p];
        const Nui__Meta__V1__SiteAnswer *alpha = answer_of (c, "alpha"),
                                        *beta = answer_of (c, "beta"),
                                        *gamma = answer_of (c, "gamma");
        assert_int_equal (c->n_answers, 3);
        assert_true (alpha->feasible && beta->feasible && !gamma->feasible);
        assert_true (alpha->start_us - alpha->asked_us < 10 * US_PER_S);
        assert_true (beta->start_us - beta->asked_us > 90 * US_PER_S);
        assert_int_equal (gamma->start_us, 0);
        assert_int_equal (alpha->tasks, tasks);
        assert_true (alpha->price_micro > 0);
        assert_string_equal (gamma->reason->code, "Denied");
    }
    nui__meta__v1__job_status__free_unpacked (status, NULL);
}

static void each_sites_answer_is_kept (void **state)
{
    struct fakegrid *grid = *state;
    struct fake_job one = {.n = 1, .procs = 2, .walltime_s = 60},
                    two = {.n = 2, .procs = 1, .walltime_s = 60};
    char first[32], second[32];
    grid->site[1].start_estimate = 100 * US_PER_S;
    grid->site[2].infeasible = true;
    submit_ok (grid, &one, first);
    fake_until_state (grid, first, COMPLETED);
    submit_ok (grid, &two, second);
    fake_until_state (grid, second, COMPLETED);
    fake_meta_kill (grid);
    fake_meta_start (grid);
    answers_check (grid, first, 2);
    answers_check (grid, second, 1);
}

static void cancel (struct fakegrid *grid, const char *id)
{
    Nui__Meta__V1__JobRequest request = NUI__META__V1__JOB_REQUEST__INIT;
    ProtobufCMessage *reply = NULL;
    struct err err;
    request.grid_job_id = (char *)id;
    assert_int_equal (rpcclient_call (grid->alice, &nui__meta__v1__meta__descriptor, "Cancel",
                                      &request.base, 10 * US_PER_S, true, &reply, &err),
                      0);
    assert_true (((Nui__Meta__V1__CancelReply *)reply)->cancelled);
    protobuf_c_message_free_unpacked (reply, NULL);
}

static void cancel_of_an_ordinary_job (void **state)
{
    struct fakegrid *grid = *state;
    struct fake_job job = {.n = 1, .sites = {"beta"}, .procs = 1, .walltime_s = 60};
    char id[32];
    grid->site[1].hold_runs = true;
    submit_ok (grid, &job, id);
    fake_until_state (grid, id, NUI__META__V1__GRID_JOB_STATE__GRID_QUEUED);
    cancel (grid, id);
    fake_until_state (grid, id, CANCELLED);
    assert_true (grid->site[1].single[0].ended);
    assert_string_equal (grid->site[1].cancelled_for, "nui://demo/user/alice");
}

/* What a site can make nothing of stays with its job, which says so, and is asked for again; other jobs go on. */
static void what_a_site_calls_invalid_is_told (void **state)
{
    struct fakegrid *grid = *state;
    struct fakesite *beta = &grid->site[1];
    struct fake_job job = {.n = 1, .sites = {"beta"}, .procs = 1, .walltime_s = 60};
    char id[32], other[32];
    beta->hold_runs = true;
    submit_ok (grid, &job, id);
    fake_until_state (grid, id, NUI__META__V1__GRID_JOB_STATE__GRID_QUEUED);
    strcpy (beta->invalid, "Cancel");
    cancel (grid, id);
    struct said said = {
        grid, id, "cancelled by nui://demo/user/alice; not yet at beta: it makes no sense here"};
    fake_until (grid, is_said, &said, 20 * US_PER_S);
    beta->hold_runs = false;
    submit_ok (grid, &job, other);
    fake_until_state (grid, other, COMPLETED);
    beta->invalid[0] = '\0';
    fake_until_state (grid, id, CANCELLED);
    assert_string_equal (beta->cancelled_for, "nui://demo/user/alice");
}

/* The same of what a co-allocated job asks its sites: none is left with a part that nobody ends. */
static void what_ends_a_part_is_asked_until_it_is_taken (void **state)
{
    struct fakegrid *grid = *state;
    struct fakesite *alpha = &grid->site[0], *beta = &grid->site[1];
    char id[32], other[32];
    alpha->hold_runs = beta->hold_runs = true;
    submit_ok (grid, &pair, id);
    fake_until_state (grid, id, RUNNING);
    strcpy (beta->invalid, "Release");
    cancel (grid, id);
    struct count_above asked_again = {&beta->calls_release, 2};
    fake_until (grid, is_above, &asked_again, 20 * US_PER_S);
    assert_int_equal (alpha->calls_release, 1);
    alpha->hold_runs = beta->hold_runs = false;
    submit_ok (grid, &pair, other);
    fake_until_state (grid, other, COMPLETED);
    beta->invalid[0] = '\0';
    fake_until_state (grid, id, CANCELLED);
    assert_true (fake_nothing_held (grid));
}

/* Whether some line of nui-meta's log has both. */
static bool log_has (const struct fakegrid *grid, const char *what, const char *how)
{
    char path[300], line[4096];
    bool has = false;
    snprintf (path, sizeof path, "%s/meta.log", grid->dir);
    FILE *f = fopen (path, "re");
    assert_non_null (f);
    while (!has && fgets (line, sizeof line, f))
        has = strstr (line, what) && strstr (line, how);
    fclose (f);
    return has;
}

/* A part that its site will not let go for the present keeps neither its own job nor others from going on. */
static void what_takes_a_part_back_is_asked_until_it_is_taken (void **state)
{
    struct fakegrid *grid = *state;
    struct fakesite *alpha = &grid->site[0], *beta = &grid->site[1];
    struct fake_job elsewhere = {.n = 1, .sites = {"alpha"}, .procs = 1, .walltime_s = 60};
    char id[32], other[32];
    strcpy (alpha->invalid, "Abort");
    beta->prepare_no = 1;
    submit_ok (grid, &pair, id);
    struct count_above asked_again = {&alpha->calls_abort, 2};
    fake_until (grid, is_above, &asked_again, 20 * US_PER_S);
    submit_ok (grid, &elsewhere, other);
    fake_until_state (grid, other, COMPLETED);
    assert_true (log_has (grid, "no_answer job=grid.1 part=0",
                          "site=alpha said=\"it makes no sense here\""));
    alpha->invalid[0] = '\0';
    fake_until_state (grid, id, COMPLETED);
    assert_true (fake_nothing_held (grid));
}

/* What a site would refuse when it is to start is refused when it comes. */
static void too_cheap_for_every_site (void **state)
{
    struct fakegrid *grid = *state;
    struct fake_job job = {.n = 1, .sites = {"beta"}, .procs = 2, .walltime_s = 60};
    char id[32];
    grid->site[1].price_least = 121 * MICRO_PER_CREDIT;
    refused (
        grid, &job, ERR_LIMIT,
        "beta: takes the job for no less than 121 (its GRIDCFG MINPRICE), and the price is 120");
    grid->site[1].price_least = 120 * MICRO_PER_CREDIT;
    job.name = "enough";
    submit_ok (grid, &job, id);
    fake_until_state (grid, id, COMPLETED);
    grid->site[1].price_least = 0;
}

/* ---- co-allocation */

static void both_start_at_one_moment (void **state)
{
    struct fakegrid *grid = *state;
    char id[32];
    submit_ok (grid, &pair, id);
    fake_until_state (grid, id, COMPLETED);
    assert_int_equal (grid->site[0].launches, 1);
    assert_int_equal (grid->site[1].launches, 1);
    assert_int_equal (grid->site[0].part[0].launch, grid->site[1].part[0].launch);
    assert_int_equal (grid->site[0].calls_prepare, 1);
    assert_int_equal (grid->site[0].calls_abort + grid->site[0].calls_release, 0);
    Nui__Meta__V1__JobStatus *status = fake_status (grid, id);
    assert_int_equal (status->attempts, 1);
    assert_int_equal (status->price_micro, 14 * MICRO_PER_CREDIT); /* what PREPARE said */
    nui__meta__v1__job_status__free_unpacked (status, NULL);
}

static void no_moves_the_slot (void **state)
{
    struct fakegrid *grid = *state;
    char id[32];
    time_us before = clock_now_us ();
    grid->site[1].prepare_no = 1;
    grid->site[1].next_feasible = 3 * US_PER_S;
    submit_ok (grid, &pair, id);
    fake_until_state (grid, id, COMPLETED);
    assert_int_equal (grid->site[0].launches, 1);
    assert_true (grid->site[0].part[1].launch >= before + 4 * US_PER_S);
    assert_int_equal (grid->site[0].part[0].state, FAKE_TOMB);
    Nui__Meta__V1__JobStatus *status = fake_status (grid, id);
    assert_int_equal (status->attempts, 2);
    nui__meta__v1__job_status__free_unpacked (status, NULL);
}

static void expired_is_prepared_anew (void **state)
{
    struct fakegrid *grid = *state;
    char id[32];
    grid->site[1].commit_expired = 1;
    submit_ok (grid, &pair, id);
    fake_until_state (grid, id, COMPLETED);
    assert_int_equal (grid->site[1].part_count, 2);
    assert_int_equal (grid->site[1].part[1].attempt, 2);
    assert_memory_equal (grid->site[1].part[0].transaction, grid->site[1].part[1].transaction, 16);
    assert_int_equal (grid->site[0].launches, 1);
    assert_int_equal (grid->site[1].launches, 1);
}

static void expired_again_and_again_releases_and_retries (void **state)
{
    struct fakegrid *grid = *state;
    char id[32];
    grid->site[1].commit_expired = 3;
    submit_ok (grid, &pair, id);
    fake_until_state (grid, id, COMPLETED);
    assert_int_equal (grid->site[0].part[0].state, FAKE_RELEASED);
    assert_int_equal (grid->site[0].launches, 1);
    assert_int_equal (grid->site[1].launches, 1);
    assert_true (fake_nothing_held (grid));
}

static void the_barrier_waits (void **state)
{
    struct fakegrid *grid = *state;
    char id[32];
    grid->site[0].not_ready = 3;
    submit_ok (grid, &pair, id);
    fake_until_state (grid, id, COMPLETED);
    assert_int_equal (grid->site[0].calls_ready, 4);
    assert_int_equal (grid->site[1].launches, 1);
}

/* Holds the job in the phase by a method that beta does not answer, cancels it there. */
static void cancel_while (struct fakegrid *grid, const char *mute, uint32_t *counter)
{
    char id[32];
    uint32_t before = *counter;
    snprintf (grid->site[1].mute, sizeof grid->site[1].mute, "%s", mute);
    submit_ok (grid, &pair, id);
    struct count_above asked = {counter, before};
    fake_until (grid, is_above, &asked, 10 * US_PER_S);
    cancel (grid, id);
    grid->site[1].mute[0] = '\0';
    fake_until_state (grid, id, CANCELLED);
    assert_true (fake_nothing_held (grid));
    assert_int_equal (grid->site[0].launches, 0);
}

static void cancel_at_each_step (void **state)
{
    struct fakegrid *grid = *state;
    struct fakesite *beta = &grid->site[1];
    cancel_while (grid, "Prepare", &beta->calls_prepare);
    cancel_while (grid, "Commit", &beta->calls_commit);
    cancel_while (grid, "Ready", &beta->calls_ready);
}

static void cancel_while_running (void **state)
{
    struct fakegrid *grid = *state;
    char id[32];
    grid->site[0].hold_runs = grid->site[1].hold_runs = true;
    submit_ok (grid, &pair, id);
    fake_until_state (grid, id, RUNNING);
    cancel (grid, id);
    fake_until_state (grid, id, CANCELLED);
    assert_true (fake_nothing_held (grid));
    assert_int_equal (grid->site[0].calls_release, 1);
}

static void a_silent_site_leads_to_a_retry (void **state)
{
    struct fakegrid *grid = *state;
    char id[32];
    strcpy (grid->site[1].mute, "Prepare");
    submit_ok (grid, &pair, id);
    struct count_above taken_back = {&grid->site[0].calls_abort, 0};
    fake_until (grid, is_above, &taken_back, 20 * US_PER_S);
    grid->site[1].mute[0] = '\0';
    fake_until_state (grid, id, COMPLETED);
    assert_int_equal (grid->site[1].launches, 1);
}

/* ---- who may what, and what is refused at once */

static void submit_is_idempotent (void **state)
{
    struct fakegrid *grid = *state;
    struct fake_job job = {.n = 1, .procs = 1, .walltime_s = 60};
    struct uuid uuid;
    char id[32], again[32];
    uuid_make (&uuid);
    job.uuid = uuid.b;
    submit_ok (grid, &job, id);
    submit_ok (grid, &job, again);
    assert_string_equal (id, again);
    fake_meta_kill (grid);
    fake_meta_start (grid);
    submit_ok (grid, &job, again);
    assert_string_equal (id, again);
    job.name = "another";
    refused (grid, &job, ERR_EXISTS, "another job with this uuid is grid.1");
    fake_until_state (grid, id, COMPLETED);
    assert_int_equal (
        grid->site[0].single_count + grid->site[1].single_count + grid->site[2].single_count, 1);
}

/* A copy that comes late is told what the first was told, and does not run. */
static void a_refusal_is_final_for_its_copies (void **state)
{
    struct fakegrid *grid = *state;
    struct fake_job job = {.n = 1, .procs = 1, .walltime_s = 60};
    struct uuid uuid;
    char id[32];
    uuid_make (&uuid);
    job.uuid = uuid.b;
    grid->bank_funded = false;
    refused (grid, &job, ERR_FUNDS, "nothing left");
    grid->bank_funded = true;
    refused (grid, &job, ERR_FUNDS, "nothing left");
    assert_int_equal (
        grid->site[0].calls_submit + grid->site[1].calls_submit + grid->site[2].calls_submit, 0);
    job.name = "mended"; /* another request */
    submit_ok (grid, &job, id);
    fake_until_state (grid, id, COMPLETED);
}

static bool reports_in (void *arg)
{
    const struct fakegrid *grid = arg;
    for (uint32_t s = 0; s < grid->sites; s++)
        if (grid->site[s].reports_outstanding)
            return false;
    return true;
}

static void bad_jobs_are_refused_at_once (void **state)
{
    struct fakegrid *grid = *state;
    struct fake_job job = {.n = 1, .procs = 9, .walltime_s = 60};
    refused (grid, &job, ERR_LIMIT, "larger than any allowed site");
    uint32_t usual = grid->site[0].procs;
    grid->site[1].procs = grid->site[2].procs = 4;
    for (int report = 0; report < 2; report++) {
        for (int s = 0; s < 3; s++)
            fake_report (&grid->site[s]);
        fake_until (grid, reports_in, grid, 20 * US_PER_S);
        refused (grid, &job, ERR_LIMIT, report ? "needs 9 procs, gamma has 8" : "alpha has 8");
        grid->site[2].procs = usual;
        grid->site[0].procs = 4;
    }
    grid->site[0].procs = grid->site[1].procs = usual;
    for (int s = 0; s < 3; s++)
        fake_report (&grid->site[s]);
    fake_until (grid, reports_in, grid, 20 * US_PER_S);
    job = (struct fake_job){.n = 1, .sites = {"delta"}, .procs = 1, .walltime_s = 60};
    refused (grid, &job, ERR_INVALID, "there is no site delta");
    job = (struct fake_job){.n = 2, .sites = {"alpha", "beta"}, .procs = 1, .walltime_s = 60};
    grid->site[1].infeasible = true;
    refused (grid, &job, ERR_LIMIT, "component c1 can never run: beta: no account here");
    grid->site[1].infeasible = false;
    job.deadline_us = clock_now_us () + 10 * US_PER_S;
    refused (grid, &job, ERR_INVALID, "cannot end before the deadline");
    grid->site[0].start_estimate = grid->site[1].start_estimate = 100 * US_PER_S;
    job.deadline_us = clock_now_us () + 120 * US_PER_S; /* by the sites' answers only */
    refused (grid, &job, ERR_LIMIT, "before the deadline");
    job.n = 1;
    refused (grid, &job, ERR_LIMIT, "no site can complete the job before its deadline");
    job.n = 2;
    grid->site[0].start_estimate = grid->site[1].start_estimate = 0;
    job.deadline_us = 0;
    job.cost_max_micro = 1;
    refused (grid, &job, ERR_LIMIT, "the cheapest way costs 120");
    job.cost_max_micro = 0;
    job.no_script = true;
    refused (grid, &job, ERR_INVALID, "component c0 has no script");
    job.no_script = false;
    job.walltime_s = 0;
    refused (grid, &job, ERR_INVALID, "wallclock limit");
    job.walltime_s = 60;
    grid->bank_funded = false;
    refused (grid, &job, ERR_FUNDS, "account proj: nothing left (short by 5)");
    assert_int_equal (grid->site[0].calls_prepare + grid->site[0].calls_submit, 0);
}

/* A state older than what a site has had: numbers that it knows are not given again; what another metascheduler gave,
 * or no metascheduler can have given, is nothing to us. */
static void numbers_of_before (void **state)
{
    struct fakegrid *grid = *state;
    struct fake_job job = {.n = 1, .procs = 1, .walltime_s = 60};
    struct fakesite *site = &grid->site[0];
    char id[32];
    const struct {
        const char *of;
        uint64_t taken;
        const char *next;
    } row[] = {{NULL, 0, "grid.1"},
               {"other", 700, "grid.2"},
               {"meta", UINT64_MAX, "grid.3"},
               {"meta", 500, "grid.501"},
               {"meta", 499, "grid.502"}};
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        site->taken_of = row[i].of;
        site->taken = row[i].taken;
        fake_report (site);
        fake_until (grid, reported, site, 20 * US_PER_S);
        site->taken_of = NULL;
        submit_ok (grid, &job, id);
        assert_string_equal (id, row[i].next);
    }
    site->taken_of = "meta";
    site->taken = INT64_MAX / 4; /* a site that lies: a thousand million a report at most */
    fake_report (site);
    fake_until (grid, reported, site, 20 * US_PER_S);
    submit_ok (grid, &job, id);
    assert_int_equal (strtoull (id + strlen ("grid."), NULL, 10) % 1000000000, 503);
}

/* A job that its one site has, and holds: Queued, or told of as running. */
static void held_there (struct fakegrid *grid, struct fakesite *site, bool runs, char id[32])
{
    struct fake_job job = {.n = 1, .sites = {site->name}, .procs = 1, .walltime_s = 60};
    site->hold_runs = true;
    submit_ok (grid, &job, id);
    fake_until_state (grid, id, NUI__META__V1__GRID_JOB_STATE__GRID_QUEUED);
    if (runs) {
        fake_job_event (site, NUI__LOCAL__V1__JOB_STATE__JOB_RUNNING);
        fake_until_state (grid, id, NUI__META__V1__GRID_JOB_STATE__GRID_RUNNING);
    }
}

static bool asked_once_more (void *arg)
{
    return ((struct fakesite *)arg)->calls_job > 0;
}

/* The site's numbers show events that we do not have, and it has no longer: jobs there are asked for, and only when each
 * was, events go on. */
static void ends_that_were_forgotten (void **state)
{
    struct fakegrid *grid = *state;
    struct fakesite *site = &grid->site[0];
    char id[32], other[32];
    held_there (grid, site, true, id);
    held_there (grid, site, true, other);
    site->events_next = site->event_first + 100;
    site->tells = NUI__LOCAL__V1__JOB_STATE__JOB_COMPLETED;
    fake_report (site);
    fake_until_state (grid, id, NUI__META__V1__GRID_JOB_STATE__GRID_COMPLETED);
    fake_until_state (grid, other, NUI__META__V1__GRID_JOB_STATE__GRID_COMPLETED);
    assert_int_equal (site->calls_job, 2);
    fake_report (
        site); /* the gap is closed: nobody is asked again, and the next event is the next */
    fake_until (grid, reported, site, 20 * US_PER_S);
    assert_int_equal (site->calls_job, 2);
    site->event_first = site->events_next;
    site->events_next = 0;
    held_there (grid, site, true, id);
}

/* Purged there: whether it ran is not known, so it is not run again. */
static void ends_that_nobody_has (void **state)
{
    struct fakegrid *grid = *state;
    struct fakesite *site = &grid->site[0];
    char id[32];
    held_there (grid, site, false, id);
    site->events_next = site->event_first + 100;
    site->forgets = true;
    fake_report (site);
    fake_until_state (grid, id, NUI__META__V1__GRID_JOB_STATE__GRID_FAILED);
    assert_int_equal (site->calls_submit, 1);
}

/* The site's numbers went back: what it does not know is over there, though another job has its number. What had begun has
 * failed, what had not is placed anew. */
static void a_site_that_forgot (void **state)
{
    struct fakegrid *grid = *state;
    struct fakesite *site = &grid->site[0];
    char ran[32], waited[32], since[32];
    held_there (grid, site, true, ran);
    held_there (grid, site, false, waited);
    fake_until (grid, reported, site, 20 * US_PER_S);
    fake_restored (site);
    snprintf (site->mute, sizeof site->mute, "Job"); /* at first it does not answer */
    site->tells = NUI__LOCAL__V1__JOB_STATE__JOB_QUEUED;
    held_there (grid, site, false, since); /* gets the number that ran had */
    site->hold_runs = false;
    fake_report (site);
    fake_until (grid, asked_once_more, site, 20 * US_PER_S);
    Nui__Meta__V1__JobStatus *now = fake_status (grid, ran);
    assert_int_equal (now->state, NUI__META__V1__GRID_JOB_STATE__GRID_RUNNING);
    nui__meta__v1__job_status__free_unpacked (now, NULL);
    *site->mute = 0;
    fake_meta_kill (grid); /* nor was it settled */
    fake_meta_start (grid);
    fake_report (site);
    fake_until_state (grid, ran, NUI__META__V1__GRID_JOB_STATE__GRID_FAILED);
    now = fake_status (grid, ran);
    assert_string_equal (now->reason->code, "Forgotten");
    nui__meta__v1__job_status__free_unpacked (now, NULL);
    fake_until_state (grid, waited, NUI__META__V1__GRID_JOB_STATE__GRID_COMPLETED);
    fake_until_state (grid, since, NUI__META__V1__GRID_JOB_STATE__GRID_QUEUED);
    assert_int_equal (site->calls_submit, 4);
}

static bool asked_for_both (void *arg)
{
    return ((struct fakesite *)arg)->calls_job >= 4;
}

/* Its number is a job's of another metascheduler now, of which the site tells us nothing: then it is asked for by its name.
 * A site that refuses us altogether says nothing about the job: it may run. */
static void a_site_that_forgot_and_denies (void **state)
{
    struct fakegrid *grid = *state;
    struct fakesite *site = &grid->site[0];
    char ran[32], waited[32];
    held_there (grid, site, true, ran);
    held_there (grid, site, false, waited);
    fake_until (grid, reported, site, 20 * US_PER_S);
    fake_restored (site);
    site->denies = true;
    fake_report (site);
    fake_until (grid, asked_for_both, site, 20 * US_PER_S); /* each by number and by name */
    fake_until (grid, reported, site, 20 * US_PER_S);
    Nui__Meta__V1__JobStatus *now = fake_status (grid, ran);
    assert_int_equal (now->state, NUI__META__V1__GRID_JOB_STATE__GRID_RUNNING);
    nui__meta__v1__job_status__free_unpacked (now, NULL);
    assert_int_equal (site->calls_submit, 2);
}

static void a_number_that_is_anothers (void **state)
{
    struct fakegrid *grid = *state;
    struct fakesite *site = &grid->site[0];
    char ran[32], waited[32];
    held_there (grid, site, true, ran);
    held_there (grid, site, false, waited);
    fake_until (grid, reported, site, 20 * US_PER_S);
    fake_restored (site);
    site->denies_numbers = true;
    site->hold_runs = false;
    fake_report (site);
    fake_until_state (grid, ran, NUI__META__V1__GRID_JOB_STATE__GRID_FAILED);
    Nui__Meta__V1__JobStatus *now = fake_status (grid, ran);
    assert_string_equal (now->reason->code, "Forgotten");
    nui__meta__v1__job_status__free_unpacked (now, NULL);
    fake_until_state (grid, waited, NUI__META__V1__GRID_JOB_STATE__GRID_COMPLETED);
    assert_int_equal (site->calls_submit, 3);
}

static bool beta_is_told (void *arg)
{
    const struct fakesite *beta = &((struct fakegrid *)arg)->site[1];
    return beta->calls_cancel + beta->calls_release + beta->calls_abort > 0;
}

/* One of the two sites of a job that runs at both was restored to before it came: what the other has is ended, too. */
static void a_part_that_was_forgotten (void **state)
{
    struct fakegrid *grid = *state;
    struct fakesite *site = &grid->site[0];
    char id[32];
    grid->site[0].hold_runs = grid->site[1].hold_runs = true;
    submit_ok (grid, &pair, id);
    fake_until_state (grid, id, NUI__META__V1__GRID_JOB_STATE__GRID_RUNNING);
    fake_until (grid, reported, site, 20 * US_PER_S);
    fake_restored (site);
    site->forgets = true;
    fake_report (site);
    fake_until_state (grid, id, NUI__META__V1__GRID_JOB_STATE__GRID_FAILED);
    Nui__Meta__V1__JobStatus *now = fake_status (grid, id);
    assert_string_equal (now->reason->code, "Forgotten");
    nui__meta__v1__job_status__free_unpacked (now, NULL);
    fake_until (grid, beta_is_told, grid, 20 * US_PER_S);
    assert_int_equal (grid->site[0].launches + grid->site[1].launches,
                      2); /* nothing is run again */
}

/* A job that waits for another goes on waiting no longer than to its deadline. */
static void who_waits_past_its_deadline_ends (void **state)
{
    struct fakegrid *grid = *state;
    char first[32], one[32], two[32];
    held_there (grid, &grid->site[0], true, first);
    struct fake_job job = {.n = 1,
                           .procs = 1,
                           .walltime_s = 1,
                           .after_end_of = first,
                           .deadline_us = clock_now_us () + 10 * US_PER_S};
    submit_ok (grid, &job, one);
    job.n = 2;
    submit_ok (grid, &job, two);
    fake_until_state (grid, one, NUI__META__V1__GRID_JOB_STATE__GRID_REFUSED);
    fake_until_state (grid, two, NUI__META__V1__GRID_JOB_STATE__GRID_CANCELLED);
    const char *const both[] = {one, two};
    for (int i = 0; i < 2; i++) {
        Nui__Meta__V1__JobStatus *now = fake_status (grid, both[i]);
        assert_string_equal (now->reason->code, "Deadline");
        nui__meta__v1__job_status__free_unpacked (now, NULL);
    }
}

static void others_see_nothing (void **state)
{
    struct fakegrid *grid = *state;
    struct fake_job job = {.n = 1, .procs = 1, .walltime_s = 60};
    Nui__Meta__V1__JobRequest request = NUI__META__V1__JOB_REQUEST__INIT;
    Nui__Meta__V1__JobsRequest all = NUI__META__V1__JOBS_REQUEST__INIT;
    Nui__Meta__V1__SubmitRequest forged = NUI__META__V1__SUBMIT_REQUEST__INIT;
    Nui__Meta__V1__SiteReport report = NUI__META__V1__SITE_REPORT__INIT;
    char id[32];
    struct err err;
    submit_ok (grid, &job, id);
    request.grid_job_id = id;
    assert_int_equal (call_as (grid->bob, "Status", &request.base, &err), ERR_NOT_FOUND);
    assert_int_equal (call_as (grid->bob, "Cancel", &request.base, &err), ERR_NOT_FOUND);
    assert_int_equal (call_as (grid->operator_, "Status", &request.base, &err), 0);
    request.grid_job_id = (char *)"grid.99";
    assert_int_equal (call_as (grid->alice, "Status", &request.base, &err), ERR_NOT_FOUND);
    request.grid_job_id = (char *)"nonsense";
    assert_int_equal (call_as (grid->alice, "Status", &request.base, &err), ERR_INVALID);
    all.all_users = true;
    assert_int_equal (call_as (grid->bob, "Jobs", &all.base, &err), ERR_DENIED);
    assert_int_equal (call_as (grid->operator_, "Jobs", &all.base, &err), 0);
    /* alice's signature on bob's connection */
    forged.envelope = fake_envelope (grid, grid->alice_id, "nui://demo/user/alice", &job);
    assert_int_equal (call_as (grid->bob, "Submit", &forged.base, &err), ERR_DENIED);
    forged.envelope->body.data[forged.envelope->body.len - 1] ^= 1;
    assert_int_equal (call_as (grid->alice, "Submit", &forged.base, &err), ERR_UNAUTHENTIC);
    envelope_free (forged.envelope);
    /* bob signs a job that says it is alice's */
    forged.envelope = fake_envelope (grid, grid->bob_id, "nui://demo/user/alice", &job);
    assert_int_equal (call_as (grid->bob, "Submit", &forged.base, &err), ERR_DENIED);
    envelope_free (forged.envelope);
    report.site = (char *)"alpha";
    assert_int_equal (call_as (grid->site[1].meta, "Report", &report.base, &err), ERR_DENIED);
    assert_int_equal (call_as (grid->alice, "Report", &report.base, &err), ERR_DENIED);
    fake_until_state (grid, id, COMPLETED);
}

static void count_message (void *arg, const ProtobufCMessage *message)
{
    const Nui__Meta__V1__JobStatus *status = (const Nui__Meta__V1__JobStatus *)message;
    uint64_t *seen = arg;
    assert_true (seen[0] == 0 || status->change > seen[1]);
    seen[0]++;
    seen[1] = status->change;
    seen[2] = status->state;
}

static void watch_streams_until_the_end (void **state)
{
    struct fakegrid *grid = *state;
    Nui__Meta__V1__JobRequest request = NUI__META__V1__JOB_REQUEST__INIT;
    uint64_t seen[3] = {0};
    char id[32];
    struct err err;
    submit_ok (grid, &pair, id);
    request.grid_job_id = id;
    assert_int_equal (rpcclient_stream (grid->alice, &nui__meta__v1__meta__descriptor, "Watch",
                                        &request.base, 20 * US_PER_S, count_message, seen, &err),
                      0);
    assert_true (seen[0] >= 3);
    assert_int_equal (seen[2], COMPLETED);
    seen[0] = 0; /* of an ended job: one message, then the end */
    assert_int_equal (rpcclient_stream (grid->alice, &nui__meta__v1__meta__descriptor, "Watch",
                                        &request.base, 20 * US_PER_S, count_message, seen, &err),
                      0);
    assert_int_equal (seen[0], 1);
}

static void estimates_name_every_way (void **state)
{
    struct fakegrid *grid = *state;
    struct fake_job job = {.n = 1, .procs = 2, .walltime_s = 60};
    Nui__Meta__V1__EstimateRequest request = NUI__META__V1__ESTIMATE_REQUEST__INIT;
    ProtobufCMessage *reply = NULL;
    struct err err;
    grid->site[1].infeasible = true;
    grid->site[2].start_estimate = 50 * US_PER_S;
    request.envelope = fake_envelope (grid, grid->alice_id, "nui://demo/user/alice", &job);
    assert_int_equal (rpcclient_call (grid->alice, &nui__meta__v1__meta__descriptor, "Estimate",
                                      &request.base, 10 * US_PER_S, true, &reply, &err),
                      0);
    Nui__Meta__V1__EstimateReply *one = (Nui__Meta__V1__EstimateReply *)reply;
    assert_int_equal (one->n_candidates, 3);
    assert_string_equal (one->candidates[0]->sites[0], "alpha");
    assert_int_equal (one->candidates[0]->price_micro, 120 * MICRO_PER_CREDIT);
    assert_true (one->candidates[0]->funded);
    assert_string_equal (one->candidates[1]->sites[0], "gamma");
    assert_false (one->candidates[2]->feasible);
    assert_string_equal (one->candidates[2]->reason->text, "no account here");
    protobuf_c_message_free_unpacked (reply, NULL);
    envelope_free (request.envelope);
    job.n = 2; /* two parts on any site: beta cannot, so alpha and gamma in all ways */
    request.envelope = fake_envelope (grid, grid->alice_id, "nui://demo/user/alice", &job);
    assert_int_equal (rpcclient_call (grid->alice, &nui__meta__v1__meta__descriptor, "Estimate",
                                      &request.base, 10 * US_PER_S, true, &reply, &err),
                      0);
    Nui__Meta__V1__EstimateReply *two = (Nui__Meta__V1__EstimateReply *)reply;
    assert_true (two->n_candidates >= 2);
    assert_int_equal (two->candidates[0]->n_sites, 2);
    assert_int_equal (two->candidates[0]->price_micro, 240 * MICRO_PER_CREDIT);
    protobuf_c_message_free_unpacked (reply, NULL);
    envelope_free (request.envelope);
    assert_int_equal (grid->site[0].calls_submit + grid->site[0].calls_prepare, 0);
}

/* Each component could start at each site; what cannot start together is not offered. */
static void estimates_list_only_what_is_possible (void **state)
{
    struct fakegrid *grid = *state;
    struct fake_job job = {.n = 3, .procs = 2, .walltime_s = 60};
    Nui__Meta__V1__EstimateRequest request = NUI__META__V1__ESTIMATE_REQUEST__INIT;
    ProtobufCMessage *reply = NULL;
    struct err err;
    grid->site[0].room = 1;
    grid->site[1].room = 2;
    grid->site[2].room = 1;
    request.envelope = fake_envelope (grid, grid->alice_id, "nui://demo/user/alice", &job);
    assert_int_equal (rpcclient_call (grid->alice, &nui__meta__v1__meta__descriptor, "Estimate",
                                      &request.base, 10 * US_PER_S, true, &reply, &err),
                      0);
    Nui__Meta__V1__EstimateReply *all = (Nui__Meta__V1__EstimateReply *)reply;
    assert_true (all->n_candidates >= 2);
    for (size_t i = 0; i < all->n_candidates; i++) {
        uint32_t at_alpha = 0, at_beta = 0;
        assert_true (all->candidates[i]->feasible);
        for (size_t p = 0; p < 3; p++) {
            at_alpha += strcmp (all->candidates[i]->sites[p], "alpha") == 0;
            at_beta += strcmp (all->candidates[i]->sites[p], "beta") == 0;
        }
        assert_true (at_alpha <= 1 && at_beta <= 2 && 3 - at_alpha - at_beta <= 1);
    }
    protobuf_c_message_free_unpacked (reply, NULL);
    envelope_free (request.envelope);
    for (int s = 0; s < 3; s++)
        grid->site[s].room = 0;
}

/* Of the open files that it may have: all, to be connected with each of a thousand sites. */
static void takes_the_files_it_may_have (void **state)
{
    struct fakegrid *grid = *state;
    unsigned long soft = 0, hard = 1;
    char path[64], line[256];
    snprintf (path, sizeof path, "/proc/%d/limits", grid->meta_pid);
    FILE *f = fopen (path, "r");
    assert_non_null (f);
    while (fgets (line, sizeof line, f))
        if (sscanf (line, "Max open files %lu %lu", &soft, &hard) == 2)
            break;
    fclose (f);
    assert_int_equal (soft, hard);
}

#define TEST(f) cmocka_unit_test_setup_teardown (f, setup, teardown)

int main (int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST (one_site_by_completion_then_price),
        TEST (a_job_that_is_let_go_before_it_has_a_site),
        TEST (an_array_asks_for_one_at_a_time),
        TEST (a_lost_answer_is_asked_for_again),
        TEST (a_refusal_leads_to_another_site),
        TEST (who_refuses_and_alone_can_run_it_is_asked_again),
        TEST (cancel_of_an_ordinary_job),
        TEST (what_a_site_calls_invalid_is_told),
        TEST (what_ends_a_part_is_asked_until_it_is_taken),
        TEST (what_takes_a_part_back_is_asked_until_it_is_taken),
        TEST (too_cheap_for_every_site),
        TEST (both_start_at_one_moment),
        TEST (no_moves_the_slot),
        TEST (expired_is_prepared_anew),
        TEST (expired_again_and_again_releases_and_retries),
        TEST (the_barrier_waits),
        TEST (cancel_at_each_step),
        TEST (cancel_while_running),
        TEST (a_silent_site_leads_to_a_retry),
        TEST (submit_is_idempotent),
        TEST (a_refusal_is_final_for_its_copies),
        TEST (bad_jobs_are_refused_at_once),
        TEST (numbers_of_before),
        TEST (ends_that_were_forgotten),
        TEST (ends_that_nobody_has),
        TEST (a_site_that_forgot),
        TEST (a_site_that_forgot_and_denies),
        TEST (a_number_that_is_anothers),
        TEST (a_part_that_was_forgotten),
        TEST (who_waits_past_its_deadline_ends),
        TEST (others_see_nothing),
        TEST (watch_streams_until_the_end),
        TEST (estimates_name_every_way),
        TEST (estimates_list_only_what_is_possible),
        TEST (each_sites_answer_is_kept),
        TEST (takes_the_files_it_may_have),
    };
    if (argc > 1)
        cmocka_set_test_filter (argv[1]);
    return cmocka_run_group_tests (tests, NULL, NULL);
}
