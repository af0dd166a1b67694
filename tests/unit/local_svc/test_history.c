/* What a site remembers of ended jobs, and what it forgets in the end. */
#include "site.h"

#include <sqlite3.h>
#include <sys/stat.h>

#include "proto/nui/v1/stats.pb-c.h"

#define STATE(name) NUI__LOCAL__V1__JOB_STATE__JOB_##name
#define QUICK "JOBPURGETIME 00:00:01\nRMPOLLINTERVAL 00:00:01\n"

/* One number of the site's database, which is in use. */
static int64_t number_of (struct site *s, const char *sql)
{
    char path[128];
    sqlite3 *db = NULL;
    sqlite3_stmt *q = NULL;
    snprintf (path, sizeof path, "%s/state/local.db", s->dir);
    assert_int_equal (sqlite3_open_v2 (path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    sqlite3_busy_timeout (db, 10000);
    assert_int_equal (sqlite3_prepare_v2 (db, sql, -1, &q, NULL), SQLITE_OK);
    assert_int_equal (sqlite3_step (q), SQLITE_ROW);
    int64_t value = sqlite3_column_int64 (q, 0);
    sqlite3_finalize (q);
    sqlite3_close (db);
    return value;
}

struct wanted {
    const char *sql;
    int64_t least;
};

static bool at_least (struct site *s, void *arg)
{
    const struct wanted *w = arg;
    return number_of (s, w->sql) >= w->least;
}

static void wait_number (struct site *s, const char *sql, int64_t least, const char *what)
{
    site_wait (s, at_least, &(struct wanted){sql, least}, what);
}

static bool charged (struct site *s, void *arg)
{
    return s->charges >= *(unsigned *)arg;
}

static void charges (struct site *s, unsigned n)
{
    site_wait (s, charged, &n, "the charge at the bank");
}

static bool job_dir_there (struct site *s, const char *id)
{
    char path[256];
    struct stat st;
    snprintf (path, sizeof path, "%s/jobs/%s", s->dir, id);
    return stat (path, &st) == 0;
}

static int job_known (struct site *s, const char *id)
{
    Nui__Local__V1__JobRequest r = NUI__LOCAL__V1__JOB_REQUEST__INIT;
    void *reply = NULL;
    r.job_id = (char *)id;
    int rc = site_call (s->as_alice, "Job", &r, &reply, NULL);
    free_message (reply);
    return rc;
}

static void is_counted_once (void **state)
{
    struct site *s = *state;
    char id[64], bad[64];
    site_start (s, "CLASSCFG[batch] PRIORITY=1\n");
    site_submit (s, "grid.1",
                 &(struct job_make){.script = "exit 0\n", .tasks = 3, .queue = "batch"}, id);
    site_submit (s, "grid.2", &(struct job_make){.script = "exit 7\n"}, bad);
    site_wait_state (s, id, STATE (COMPLETED));
    site_wait_state (s, bad, STATE (FAILED));
    charges (s, 2);
    /* Three processors of nodes that have two each. */
    const struct kept_charge *told = &s->charge[s->charge[0].procs == 3 ? 0 : 1];
    assert_int_equal (told->procs, 3);
    assert_int_equal (told->nodes, 2);
    assert_string_not_equal (told->local_user, "");
    assert_string_equal (told->queue, "batch");
    assert_true (told->submitted_us > 0 && told->submitted_us <= told->start_us);
    site_kill (s);
    assert_int_equal (number_of (s, "SELECT count(*) FROM history"), 2);
    assert_int_equal (number_of (s, "SELECT procs FROM history WHERE number = 1"), 3);
    assert_int_equal (number_of (s, "SELECT exit_code FROM history WHERE number = 2"), 7);
    assert_int_equal (number_of (s, "SELECT jobs * 10 + successful FROM stats WHERE kind = 5"), 21);
    assert_int_equal (number_of (s, "SELECT sum (jobs) FROM stats WHERE kind = 6"), 2);
    assert_int_equal (number_of (s, "SELECT ps_asked FROM stats WHERE kind = 5") / US_PER_S,
                      (3 + 1) * 60);
    site_start (s, NULL);
    assert_int_equal (number_of (s, "SELECT jobs FROM stats WHERE kind = 5"), 2);
}

static void forgotten_when_acknowledged (void **state)
{
    struct site *s = *state;
    char id[64];
    site_start (s, QUICK);
    s->meta_forgets = true;
    site_submit (s, "grid.1", &(struct job_make){.script = "exit 0\n"}, id);
    site_wait_state (s, id, STATE (COMPLETED));
    charges (s, 1);
    /* A second job is enough of a clock: it runs for longer than JOBPURGETIME and some polls. */
    char clock[64];
    site_submit (s, "grid.2", &(struct job_make){.script = "exec sleep 4\n"}, clock);
    site_wait_state (s, clock, STATE (COMPLETED));
    assert_int_equal (number_of (s, "SELECT count(*) FROM job"), 2);
    assert_true (job_dir_there (s, id));
    assert_int_equal (job_known (s, id), 0);
    char checkpoint[96], path[256]; /* what CHECKPOINTHOOK would have left */
    snprintf (checkpoint, sizeof checkpoint, "%s.checkpoint", id);
    snprintf (path, sizeof path, "%s/jobs/%s", s->dir, checkpoint);
    assert_int_equal (mkdir (path, 0700), 0);
    site_kill (s); /* the mark is not kept: it is taken anew */
    s->meta_forgets = false;
    site_start (s, QUICK);
    wait_number (s, "SELECT (SELECT count(*) FROM job) = 0", 1, "both to be forgotten");
    assert_false (job_dir_there (s, id));
    assert_false (job_dir_there (s, checkpoint));
    assert_int_equal (job_known (s, id), ERR_NOT_FOUND);
    assert_int_equal (number_of (s, "SELECT count(*) FROM envelope"), 0);
    assert_int_equal (number_of (s, "SELECT count(*) FROM history"), 2);
}

static void tombstones_go (void **state)
{
    struct site *s = *state;
    Nui__Local__V1__AbortRequest r = NUI__LOCAL__V1__ABORT_REQUEST__INIT;
    Nui__Local__V1__AbortReply *reply = NULL;
    Nui__Local__V1__Part part = NUI__LOCAL__V1__PART__INIT;
    uint8_t transaction[16] = {1, 2, 3};
    part.transaction.data = transaction;
    part.transaction.len = sizeof transaction;
    part.component = (char *)"left";
    part.attempt = 1;
    part.epoch = 5;
    r.part = &part;
    site_start (s, NULL);
    assert_int_equal (site_call (s->as_meta, "Abort", &r, &reply, NULL), 0);
    free_message (reply);
    assert_int_equal (number_of (s, "SELECT count(*) FROM part"), 1);
    assert_int_equal (number_of (s, "SELECT count(*) FROM epoch"), 1);
    site_kill (s);
    site_start (s, QUICK);
    wait_number (s, "SELECT (SELECT count(*) FROM part) + (SELECT count(*) FROM epoch) = 0", 1,
                 "the tombstone to go");
}

static void history_is_bounded (void **state)
{
    struct site *s = *state;
    char id[64];
    site_start (s, QUICK "HISTORYTIME 00:00:01\n");
    site_submit (s, "grid.1", &(struct job_make){.script = "exit 0\n"}, id);
    site_wait_state (s, id, STATE (COMPLETED));
    wait_number (s, "SELECT (SELECT count(*) FROM history) = 0", 1, "the history to go");
    /* not before it was in the trace, and the sums stay */
    assert_true (
        number_of (s, "SELECT CAST (value AS TEXT) + 0 FROM blob WHERE name = 'statdir'") >= 1);
    assert_int_equal (number_of (s, "SELECT jobs FROM stats WHERE kind = 5"), 1);
}

static Nui__Local__V1__RunsReply *runs (struct site *s)
{
    Nui__Local__V1__RunsRequest r = NUI__LOCAL__V1__RUNS_REQUEST__INIT;
    ProtobufCMessage *reply = NULL;
    struct err err = {0};
    r.until_us = INT64_MAX;
    if (rpcclient_call (s->as_operator, &nui__local__v1__stats__descriptor, "Runs", &r.base,
                        30 * US_PER_S, true, &reply, &err) != 0)
        fail_msg ("Runs: %s", err.text);
    return (Nui__Local__V1__RunsReply *)reply;
}

static bool asked (struct site *s, void *arg)
{
    return s->charge_calls >= *(unsigned *)arg;
}

static bool no_answer (struct site *s, void *arg)
{
    Nui__Local__V1__RunsReply *r = runs (s);
    bool so = r->n_runs == 1 && r->refused == *(uint64_t *)arg && (r->refused || *r->waiting_why);
    free_message (r);
    return so;
}

/* A bank that denies who the site is takes its charges later: they wait, and somebody is told. */
static void denied_is_not_for_good (void **state)
{
    struct site *s = *state;
    char id[64];
    s->charge_status = RPC_PERMISSION_DENIED;
    site_start (
        s,
        "NOTIFICATIONURL http://127.0.0.1:1/\nNOTIFICATIONEVENTS BANKDENIED\nRMPOLLINTERVAL 00:00:01\n");
    site_submit (s, "grid.1", &(struct job_make){.script = "exit 0\n"}, id);
    site_wait_state (s, id, STATE (COMPLETED));
    site_wait (s, asked, &(unsigned){3}, "some refusals");
    site_wait (s, no_answer, &(uint64_t){0}, "its reason");
    Nui__Local__V1__RunsReply *r = runs (s);
    assert_int_equal (r->waiting, 1);
    assert_string_equal (r->waiting_why, "not \"here\"");
    assert_string_equal (r->runs[0]->refused, "");
    free_message (r);
#define TOLD(event)                                                                                \
    "SELECT (SELECT count(*) FROM outbox WHERE kind = '" event                                     \
    "') + (SELECT count(*) FROM outbox_dead WHERE "                                                \
    "kind = '" event "')"
    wait_number (s, TOLD ("BankDenied"), 1, "the administrator to be told");
    site_kill (s); /* so it is after a restart */
    site_start (
        s,
        "NOTIFICATIONURL http://127.0.0.1:1/\nNOTIFICATIONEVENTS BANKDENIED\nRMPOLLINTERVAL 00:00:01\n");
    site_wait (s, no_answer, &(uint64_t){0}, "its reason");
    assert_int_equal (s->charges, 0);
    s->charge_status = RPC_OK;
    charges (s, 1);
    assert_string_equal (s->charge[0].job, id);
    wait_number (s, TOLD ("BankAllowed"), 1, "the administrator to be told");
    r = runs (s);
    assert_string_equal (r->waiting_why, "");
    assert_int_equal (r->refused, 0);
    free_message (r);
}

/* How far the site says that the bank's clock is ahead, in whole minutes. */
static int64_t clock_shown (struct site *s)
{
    Nui__Local__V1__SchedulerRequest request = NUI__LOCAL__V1__SCHEDULER_REQUEST__INIT;
    ProtobufCMessage *reply = NULL;
    struct err err = {0};
    int64_t ahead = INT64_MIN;
    if (rpcclient_call (s->as_operator, &nui__local__v1__stats__descriptor, "Scheduler",
                        &request.base, 30 * US_PER_S, true, &reply, &err) != 0)
        fail_msg ("Scheduler: %s", err.text);
    Nui__Local__V1__SchedulerReply *r = (Nui__Local__V1__SchedulerReply *)reply;
    for (size_t i = 0; i < r->n_peers; i++)
        if (strcmp (r->peers[i]->kind, "BANK") == 0)
            ahead = r->peers[i]->clock_ahead_us;
    free_message (r);
    assert_true (ahead != INT64_MIN);
    return (ahead + (ahead < 0 ? -30 : 30) * US_PER_S) / (60 * US_PER_S);
}

/* The administrator hears of a clock that is not the bank's, once, and of its end, also after a restart. */
static void the_banks_clock (void **state)
{
    struct site *s = *state;
    const char *const config =
        "NOTIFICATIONURL http://127.0.0.1:1/\nNOTIFICATIONEVENTS CLOCKDIFFERS\n";
    s->bank_ahead_us = -2 * 3600 * US_PER_S;
    site_start (s, config);
    wait_number (s, TOLD ("ClockDiffers"), 1, "the administrator to be told");
    site_wait (s, site_logged, (void *)"bank clock_differs behind=", "its line in the log");
    assert_int_equal (clock_shown (s), -120);
    site_kill (s);
    s->bank_ahead_us = 50 * US_PER_S; /* within the bound */
    site_start (s, config);
    wait_number (s, TOLD ("ClockAgrees"), 1, "the administrator to be told");
    assert_int_equal (clock_shown (s), 1);
    assert_int_equal (number_of (s, TOLD ("ClockDiffers")), 1);
}

/* What it says of itself is refused once. */
static void invalid_is_for_good (void **state)
{
    struct site *s = *state;
    char id[64];
    s->charge_status = RPC_INVALID_ARGUMENT;
    site_start (s, QUICK);
    site_submit (s, "grid.1", &(struct job_make){.script = "exit 0\n"}, id);
    site_wait_state (s, id, STATE (COMPLETED));
    site_wait (s, no_answer, &(uint64_t){1}, "the dead letter");
    Nui__Local__V1__RunsReply *r = runs (s);
    assert_int_equal (r->waiting, 0);
    assert_string_equal (r->runs[0]->refused, "not \"here\"");
    free_message (r);
    assert_int_equal (s->charge_calls, 1);
    site_wait (s, site_logged, (void *)"bank dead_letter", "its line in the log");
    s->charge_status = RPC_OK; /* the next goes on, without it */
    site_submit (s, "grid.2", &(struct job_make){.script = "exit 0\n"}, id);
    charges (s, 1);
    assert_string_equal (s->charge[0].job, id);
    assert_int_equal (s->charge_calls, 2);
}

#define DEAD_EVENTS "SELECT count(*) FROM outbox_dead WHERE destination = 'meta'"

static bool refused_so_often (struct site *s, void *arg)
{
    return s->reports_refused >= *(unsigned *)arg;
}

/* A metascheduler that can make nothing of one job's events hears of all the others. */
static void a_bad_event_is_set_aside (void **state)
{
    struct site *s = *state;
    char before[64], behind[64];
    static char bad[64]; /* also at the teardown */
    site_start (s, QUICK);
    s->meta_forgets = true; /* so that all three jobs' events are in one report */
    site_submit (s, "grid.1", &(struct job_make){.script = "exit 0\n"}, before);
    site_submit (s, "grid.2", &(struct job_make){.script = "exit 0\n"}, bad);
    site_submit (s, "grid.3", &(struct job_make){.script = "exit 0\n"}, behind);
    site_wait_state (s, behind, STATE (COMPLETED));
    site_wait_state (s, bad, STATE (COMPLETED));
    s->meta_refuses = bad;
    s->meta_forgets = false;
    s->acked = 0;
    unsigned heard = s->events;
    wait_number (s, DEAD_EVENTS, 1, "the dead letter");
    site_wait (s, site_logged, (void *)"meta dead_letter", "its line in the log");
    char last[64];
    site_submit (s, "grid.4", &(struct job_make){.script = "exit 0\n"}, last);
    site_wait_state (s, last, STATE (COMPLETED));
    unsigned of_bad = 0, of_behind = 0;
    for (unsigned i = heard; i < s->events; i++) {
        of_bad += strcmp (s->event[i]->site_job_id, bad) == 0;
        of_behind += strcmp (s->event[i]->site_job_id, behind) == 0;
    }
    assert_int_equal (of_bad, 0);
    assert_true (of_behind > 0);
    assert_int_equal (s->gap, 0);
}

/* A report that is invalid whatever it tells of costs no event. */
static void a_bad_report_buries_nothing (void **state)
{
    struct site *s = *state;
    char id[64];
    site_start (s, QUICK);
    s->meta_refuses = "";
    site_submit (s, "grid.1", &(struct job_make){.script = "exit 0\n"}, id);
    site_wait (s, refused_so_often, &(unsigned){5}, "some refusals");
    s->meta_refuses = NULL;
    site_wait_state (s, id, STATE (COMPLETED));
    assert_int_equal (s->gap, 0);
    assert_int_equal (number_of (s, DEAD_EVENTS), 0);
}

int main (void)
{
#define T(name) cmocka_unit_test_setup_teardown (name, site_setup, site_teardown)
    const struct CMUnitTest tests[] = {
        T (is_counted_once),          T (forgotten_when_acknowledged), T (tombstones_go),
        T (history_is_bounded),       T (denied_is_not_for_good),      T (invalid_is_for_good),
        T (a_bad_event_is_set_aside), T (a_bad_report_buries_nothing), T (the_banks_clock),
    };
    cmocka_set_test_filter (getenv ("NUI_TEST_ONLY"));
    return cmocka_run_group_tests (tests, site_group_setup, site_group_teardown);
}
