/* An array of ten thousand comes into being by turns of nui-meta's loop (meta/svc/arrive.h): whatever stops it on the way, a
 * kill -9 or a disk that takes no more, all of it is there in the end, once; and nobody acts on half of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "proto/base/clock.h"
#include "proto/rpc/envelope.h"
#include "tests/unit/meta/fakegrid.h"

enum { ALL = 10000, BUSY_MS = 5000 };
#define PATIENCE (60 * US_PER_S)

static const uint8_t uuid[16] = "an array's uuid";
static const struct fake_job array = {
    .n = 1, .sites = {"alpha"}, .procs = 1, .walltime_s = 600, .uuid = uuid, .array = ALL};

static int setup (void **state)
{
    struct fakegrid *grid = fake_create (FAKE_SITES);
    fake_meta_start (grid);
    grid->site[0].hold_runs = true;
    *state = grid;
    return 0;
}

static int teardown (void **state)
{
    struct fakegrid *grid = *state;
    assert_int_equal (grid->violations, 0);
    fake_destroy (grid);
    return 0;
}

/* ---- what is on disk */

static sqlite3 *disk_open (const struct fakegrid *grid)
{
    char path[512];
    sqlite3 *db = NULL;
    snprintf (path, sizeof path, "%s/meta-state/meta.sqlite", grid->dir);
    assert_int_equal (sqlite3_open (path, &db), SQLITE_OK);
    sqlite3_busy_timeout (db, BUSY_MS);
    return db;
}

static int disk_count (sqlite3 *db, const char *sql)
{
    sqlite3_stmt *q = NULL;
    assert_int_equal (sqlite3_prepare_v2 (db, sql, -1, &q, NULL), SQLITE_OK);
    assert_int_equal (sqlite3_step (q), SQLITE_ROW);
    int count = sqlite3_column_int (q, 0);
    sqlite3_finalize (q);
    return count;
}

static int jobs_on_disk (sqlite3 *db)
{
    return disk_count (db, "SELECT count(*) FROM job");
}

/* ---- the call */

struct asked {
    bool over;
    enum rpc_status status;
    char id[64];
};

static void on_answer (void *arg, const struct rpc_result *result)
{
    struct asked *asked = arg;
    asked->over = true;
    asked->status = result->status;
    if (result->status == RPC_OK)
        snprintf (asked->id, sizeof asked->id, "%s",
                  ((const Nui__Meta__V1__SubmitReply *)(const void *)result->reply)->grid_job_id);
}

static void submit_begin (struct fakegrid *grid, struct asked *asked)
{
    Nui__Meta__V1__SubmitRequest request = NUI__META__V1__SUBMIT_REQUEST__INIT;
    request.envelope = fake_envelope (grid, grid->alice_id, "nui://demo/user/alice", &array);
    struct rpccallout_config config = {.service = &nui__meta__v1__meta__descriptor,
                                       .method = "Submit",
                                       .request = &request.base,
                                       .timeout = PATIENCE,
                                       .done = on_answer,
                                       .arg = asked};
    *asked = (struct asked){.over = false};
    assert_non_null (rpcclient_start (grid->alice, &config));
    envelope_free (request.envelope);
}

static bool is_over (void *arg)
{
    return ((struct asked *)arg)->over;
}

/* Submits it, and keeps nui-meta from writing when some of it is there and some is not. Returns how many are. */
static int stop_half_way (struct fakegrid *grid, sqlite3 *db, struct asked *asked)
{
    const duration_us deadline = clock_monotonic_us () + PATIENCE;
    int have = 0;
    submit_begin (grid, asked);
    sqlite3_busy_timeout (db, 0); /* it would sleep for as long as all of it takes in memory */
    for (;;) {
        assert_true (clock_monotonic_us () < deadline);
        event_base_loop (grid->base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
        if (sqlite3_exec (db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK)
            continue;
        have = jobs_on_disk (db);
        if (have)
            break;
        assert_int_equal (sqlite3_exec (db, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    }
    sqlite3_busy_timeout (db, BUSY_MS);
    assert_in_range (have, 1, ALL - 1);
    assert_int_equal (disk_count (db, "SELECT count(*) FROM arriving"), 1);
    return have;
}

static void whole_on_disk (sqlite3 *db)
{
    assert_int_equal (jobs_on_disk (db), ALL);
    assert_int_equal (disk_count (db, "SELECT count(DISTINCT element) FROM job WHERE array_of = 1"),
                      ALL);
    assert_int_equal (disk_count (db, "SELECT count(*) FROM arriving"), 0);
}

static bool is_whole (void *arg)
{
    return disk_count (arg, "SELECT count(*) FROM arriving") == 0;
}

/* ---- */

static void killed_half_way (void **state)
{
    struct fakegrid *grid = *state;
    struct asked asked;
    sqlite3 *db = disk_open (grid);
    int have = stop_half_way (grid, db, &asked);
    fake_meta_kill (grid);
    assert_int_equal (sqlite3_exec (db, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal (jobs_on_disk (db), have);
    fake_until (grid, is_over, &asked, PATIENCE);
    assert_int_not_equal (asked.status, RPC_OK); /* it was not told that it is taken */
    fake_meta_start (grid);
    submit_begin (grid, &asked); /* as a client does: answered when all of it is there */
    fake_until (grid, is_over, &asked, PATIENCE);
    assert_int_equal (asked.status, RPC_OK);
    assert_string_equal (asked.id, "grid.1[1-10000]");
    whole_on_disk (db);
    sqlite3_close (db);
}

static void a_disk_that_takes_no_more (void **state)
{
    struct fakegrid *grid = *state;
    struct asked asked;
    sqlite3 *db = disk_open (grid);
    stop_half_way (grid, db, &asked);
    fake_until (grid, is_over, &asked, PATIENCE);
    assert_int_equal (asked.status, RPC_UNAVAILABLE);
    /* Nobody acts on half of it. */
    Nui__Meta__V1__JobRequest request = NUI__META__V1__JOB_REQUEST__INIT;
    Nui__Meta__V1__HoldRequest hold = NUI__META__V1__HOLD_REQUEST__INIT;
    struct err err;
    request.grid_job_id = hold.grid_job_id = (char *)"grid.1";
    assert_int_equal (rpcclient_call (grid->alice, &nui__meta__v1__meta__descriptor, "Cancel",
                                      &request.base, PATIENCE, false, NULL, &err),
                      ERR_UNAVAILABLE);
    assert_non_null (strstr (err.text, "just being taken"));
    assert_int_equal (rpcclient_call (grid->alice, &nui__meta__v1__meta__descriptor, "Hold",
                                      &hold.base, PATIENCE, false, NULL, &err),
                      ERR_UNAVAILABLE);
    assert_int_equal (sqlite3_exec (db, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    fake_until (grid, is_whole, db, PATIENCE); /* it goes on by itself */
    whole_on_disk (db);
    submit_begin (grid, &asked);
    fake_until (grid, is_over, &asked, PATIENCE);
    assert_int_equal (asked.status, RPC_OK);
    assert_string_equal (asked.id, "grid.1[1-10000]");
    assert_int_equal (jobs_on_disk (db), ALL);
    assert_int_equal (rpcclient_call (grid->alice, &nui__meta__v1__meta__descriptor, "Cancel",
                                      &request.base, PATIENCE, false, NULL, &err),
                      0);
    assert_in_range (disk_count (db, "SELECT count(*) FROM job WHERE cancel_wanted"), ALL, ALL);
    sqlite3_close (db);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown (killed_half_way, setup, teardown),
        cmocka_unit_test_setup_teardown (a_disk_that_takes_no_more, setup, teardown),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
