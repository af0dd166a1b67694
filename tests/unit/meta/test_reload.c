/* nui-meta and what it stands on: sites and limits that change while it runs, and a disk that takes no more. */
#include <signal.h>
#include <sqlite3.h>

#include "proto/base/clock.h"
#include "proto/rpc/envelope.h"
#include "tests/unit/meta/metad_case.h"

static char *config_text (const struct fakegrid *grid)
{
    static char text[8192];
    char path[512];
    snprintf (path, sizeof path, "%s/meta.cfg", grid->dir);
    FILE *f = fopen (path, "r");
    assert_non_null (f);
    size_t len = fread (text, 1, sizeof text - 200, f);
    fclose (f);
    text[len] = '\0';
    return text;
}

static size_t sites_shown (struct fakegrid *grid)
{
    Nui__Meta__V1__SitesRequest request = NUI__META__V1__SITES_REQUEST__INIT;
    ProtobufCMessage *reply = NULL;
    struct err err;
    assert_int_equal (rpcclient_call (grid->alice, &nui__meta__v1__meta__descriptor, "Sites",
                                      &request.base, 5 * US_PER_S, true, &reply, &err),
                      0);
    size_t count = ((Nui__Meta__V1__SitesReply *)reply)->n_sites;
    protobuf_c_message_free_unpacked (reply, NULL);
    return count;
}

static void until_sites (struct fakegrid *grid, size_t count)
{
    duration_us deadline = clock_monotonic_us () + 10 * US_PER_S;
    while (sites_shown (grid) != count)
        assert_true (clock_monotonic_us () < deadline);
}

/* Whether the daemon's log has the words by now. */
static bool log_says (struct fakegrid *grid, const char *words)
{
    char path[512];
    static char text[1 << 20];
    snprintf (path, sizeof path, "%s/meta.log", grid->dir);
    FILE *f = fopen (path, "r");
    assert_non_null (f);
    size_t len = fread (text, 1, sizeof text - 1, f);
    fclose (f);
    text[len] = '\0';
    return strstr (text, words) != NULL;
}

/* Nobody has more live jobs than are free: who came first leaves half of the room, and one that ends makes some. */
static void live_jobs_are_shared (void **state)
{
    struct fakegrid *grid = *state;
    struct fakesite *site = &grid->site[0];
    struct fake_job job = {.n = 1, .sites = {site->name}, .procs = 1, .walltime_s = 60};
    Nui__Meta__V1__SubmitRequest bobs = NUI__META__V1__SUBMIT_REQUEST__INIT;
    char id[32], first[32];
    struct err err;
    char *text = config_text (grid);
    char *gamma = strstr (text, "SITECFG[gamma]");
    assert_non_null (gamma);
    strcpy (gamma, "LIVEJOBSMAX 8\n"); /* in its place: its absence shows that this was read */
    fake_meta_config (grid, text);
    assert_int_equal (kill (grid->meta_pid, SIGHUP), 0);
    until_sites (grid, 2);
    site->hold_runs = true;
    submit_ok (grid, &job, first);
    for (int i = 1; i < 4; i++)
        submit_ok (grid, &job, id);
    assert_int_equal (fake_submit (grid, &job, id, &err), ERR_LIMIT);
    assert_non_null (strstr (err.text, "kept for other users"));
    for (int i = 0; i < 3; i++) {
        bobs.envelope = fake_envelope (grid, grid->bob_id, "nui://demo/user/bob", &job);
        assert_int_equal (call_as (grid->bob, "Submit", &bobs.base, &err), i < 2 ? 0 : ERR_LIMIT);
        envelope_free (bobs.envelope);
    }
    for (int i = 0; i < 2; i++) { /* two of alice's end: two of hers are left, and four places */
        Nui__Meta__V1__JobRequest cancel = NUI__META__V1__JOB_REQUEST__INIT;
        snprintf (id, sizeof id, "grid.%d", i + 1);
        cancel.grid_job_id = id;
        assert_int_equal (call_as (grid->alice, "Cancel", &cancel.base, &err), 0);
        fake_until_state (grid, id, NUI__META__V1__GRID_JOB_STATE__GRID_CANCELLED);
    }
    /* What is told as ended may be live for a moment yet, until it is put away. */
    duration_us deadline = clock_monotonic_us () + 60 * US_PER_S;
    int rc;
    while ((rc = fake_submit (grid, &job, id, &err)) == ERR_LIMIT &&
           clock_monotonic_us () < deadline)
        usleep (10000);
    assert_int_equal (rc, 0);
}

static void configuration_is_taken_whole_or_refused_whole (void **state)
{
    struct fakegrid *grid = *state;
    char *text = config_text (grid);
    char *gamma = strstr (text, "SITECFG[gamma]");
    char id[32];
    assert_non_null (gamma);
    assert_int_equal (sites_shown (grid), 3);
    *gamma = '\0'; /* it is the last line */
    fake_meta_config (grid, text);
    assert_int_equal (kill (grid->meta_pid, SIGHUP), 0);
    until_sites (grid, 2);
    strcat (text, "SITECFG[delta] SERVER=127.0.0.1:1\nLEASETIME tomorrow\n");
    fake_meta_config (grid, text);
    assert_int_equal (kill (grid->meta_pid, SIGHUP), 0);
    duration_us deadline = clock_monotonic_us () + 10 * US_PER_S;
    while (!log_says (grid, "tomorrow"))
        assert_true (clock_monotonic_us () < deadline);
    assert_int_equal (sites_shown (grid), 2);
    struct fake_job job = {.n = 1, .sites = {"gamma"}, .procs = 1, .walltime_s = 60};
    refused (grid, &job, ERR_INVALID, "there is no site gamma");
    submit_ok (grid, &pair, id); /* the others go on */
    fake_until_state (grid, id, COMPLETED);
}

static bool a_save_failed (void *grid)
{
    return log_says (grid, "save_failed");
}

/* Another process holds the write lock of the store for longer than the daemon waits: every write
 * fails, as on a full disk. */
static void what_cannot_be_written_is_not_done (void **state)
{
    struct fakegrid *grid = *state;
    struct fakesite *beta = &grid->site[1];
    char path[512], id[32], other[32];
    sqlite3 *db = NULL;
    struct err err;
    strcpy (beta->mute, "Commit");
    submit_ok (grid, &pair, id);
    struct count_above committed = {&beta->calls_commit, 0};
    fake_until (grid, is_above, &committed, 20 * US_PER_S);
    snprintf (path, sizeof path, "%s/meta-state/meta.sqlite", grid->dir);
    assert_int_equal (sqlite3_open (path, &db), SQLITE_OK);
    sqlite3_busy_timeout (db, 5000);
    assert_int_equal (sqlite3_exec (db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    beta->mute[0] = '\0';
    fake_until (grid, a_save_failed, grid, 20 * US_PER_S);
    assert_int_equal (grid->site[0].calls_start + beta->calls_start, 0); /* not durable: not done */
    struct fake_job job = {.n = 1, .procs = 1, .walltime_s = 60};
    grid->impatient = true;
    assert_int_not_equal (fake_submit (grid, &job, other, &err), 0);
    grid->impatient = false;
    assert_int_equal (sqlite3_exec (db, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close (db);
    fake_until_state (grid, id, COMPLETED);
    assert_int_equal (grid->site[0].launches, 1);
    assert_int_equal (beta->launches, 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown (f, setup, teardown)

int main (int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST (live_jobs_are_shared),
        TEST (configuration_is_taken_whole_or_refused_whole),
        TEST (what_cannot_be_written_is_not_done),
    };
    if (argc > 1)
        cmocka_set_test_filter (argv[1]);
    return cmocka_run_group_tests (tests, NULL, NULL);
}
