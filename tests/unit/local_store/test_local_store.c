/* The site's memory: what comes back is what went in, also after a kill -9 in the middle. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "local/store/estimates.h"
#include "local/store/leaving.h"
#include "local/store/local_store.h"
#include "local/store/purge.h"
#include "local/store/runs.h"
#include "proto/base/clock.h"
#include "tests/unit/tmpdir.h"

struct fixture {
    char dir[64];
    char path[80];
    struct local_store *store;
};

static void reopen (struct fixture *f)
{
    struct err err = {0};
    local_store_close (f->store);
    f->store = NULL;
    if (local_store_open (f->path, &f->store, &err) != 0)
        fail_msg ("%s", err.text);
}

static int setup (void **state)
{
    struct fixture *f = calloc (1, sizeof *f);
    snprintf (f->dir, sizeof f->dir, "%s/nui-test-store-XXXXXX", tmpdir ());
    assert_non_null (mkdtemp (f->dir));
    snprintf (f->path, sizeof f->path, "%s/local.db", f->dir);
    reopen (f);
    *state = f;
    return 0;
}

static int teardown (void **state)
{
    struct fixture *f = *state;
    char command[128];
    local_store_close (f->store);
    snprintf (command, sizeof command, "rm -r %s", f->dir);
    int rc = system (command);
    free (f);
    return rc;
}

static struct store_job sample (uint64_t number)
{
    struct store_job job = {
        .number = number,
        .state = STORE_JOB_QUEUED,
        .grid_job_id = "grid.9",
        .meta = "meta",
        .component = "left",
        .component_index = 2,
        .attempt = 3,
        .part = true,
        .submitter = strdup ("nui://g/user/a"),
        .local_account = "games",
        .pay_account = "chem",
        .reason_code = "Resources",
        .reason_text = strdup ("needs 4, has 2"),
        .incarnation = 1,
        .start_failures = 2,
        .procs = 8,
        .walltime = 3600 * US_PER_S,
        .submit = 10,
        .start = 11,
        .end = 12,
        .exit_code = -1,
        .hold_asked = true,
        .hold_id = "hold.1",
        .amount = 77,
        .placement = strdup ("n1:2:0,n2:1:0"),
        .stop = STORE_STOP_PREEMPT,
        .ever_told = true,
        .change = 5,
        .deferred_until = 99,
        .launch_at = 100,
        .port = 4000,
    };
    memset (job.transaction, 3, sizeof job.transaction);
    memset (job.hold_key, 4, sizeof job.hold_key);
    return job;
}

static void put (struct fixture *f, const struct store_job *job, const char *envelope)
{
    struct err err = {0};
    if (local_store_begin (f->store, &err) != 0 ||
        local_store_job_put (f->store, job, envelope, envelope ? strlen (envelope) : 0, &err) ||
        local_store_commit (f->store, &err) != 0)
        fail_msg ("%s", err.text);
}

static void job_round_trip (void **state)
{
    struct fixture *f = *state;
    struct store_job in = sample (17), out;
    put (f, &in, "signed bytes");
    in.state = STORE_JOB_RUNNING;
    put (f, &in, NULL); /* an update keeps the envelope */
    reopen (f);
    assert_int_equal (local_store_job_get (f->store, 17, &out, NULL), 0);
    assert_int_equal (out.state, STORE_JOB_RUNNING);
    assert_string_equal (out.grid_job_id, in.grid_job_id);
    assert_string_equal (out.component, in.component);
    assert_string_equal (out.submitter, in.submitter);
    assert_string_equal (out.reason_text, in.reason_text);
    assert_string_equal (out.placement, in.placement);
    assert_string_equal (out.hold_id, in.hold_id);
    assert_memory_equal (out.transaction, in.transaction, 16);
    assert_memory_equal (out.hold_key, in.hold_key, 16);
    assert_true (out.part && out.hold_asked && out.stop == STORE_STOP_PREEMPT && out.ever_told);
    assert_int_equal (out.exit_code, -1);
    assert_int_equal (out.amount, 77);
    assert_int_equal (out.launch_at, 100);
    assert_int_equal (out.port, 4000);
    assert_int_equal (out.walltime, in.walltime);
    assert_int_equal (out.component_index, 2);
    void *bytes;
    size_t len;
    assert_int_equal (local_store_envelope (f->store, 17, &bytes, &len, NULL), 0);
    assert_int_equal (len, 12);
    assert_memory_equal (bytes, "signed bytes", 12);
    free (bytes);
    store_job_free (&in);
    store_job_free (&out);
    assert_int_equal (local_store_job_get (f->store, 18, &out, NULL), ERR_NOT_FOUND);
}

static int count_job (void *arg, struct store_job *job, struct err *err)
{
    (void)err;
    *(uint64_t *)arg = *(uint64_t *)arg * 10 + job->number;
    store_job_free (job);
    return 0;
}

static void live_jobs_and_finding (void **state)
{
    struct fixture *f = *state;
    uint64_t seen = 0;
    for (uint64_t n = 1; n <= 4; n++) {
        struct store_job job = sample (n);
        if (n == 2)
            job.state = STORE_JOB_COMPLETED;
        job.part = n == 3;
        job.attempt = (uint32_t)n;
        put (f, &job, NULL);
        store_job_free (&job);
    }
    assert_int_equal (local_store_jobs_live (f->store, count_job, &seen, NULL), 0);
    assert_int_equal (seen, 134);
    struct store_job out;
    assert_int_equal (local_store_job_find (f->store, "", "grid.9", "", &out, NULL), 0);
    assert_int_equal (out.number, 4);
    store_job_free (&out);
    assert_int_equal (
        local_store_job_by_attempt (f->store, "meta", "grid.9", "left", 2, &out, NULL), 0);
    assert_int_equal (out.number, 2);
    store_job_free (&out);
    assert_int_equal (
        local_store_job_by_attempt (f->store, "rival", "grid.9", "left", 2, &out, NULL),
        ERR_NOT_FOUND); /* it has a grid.9 of its own */
    assert_int_equal (local_store_job_find (f->store, "rival", "grid.9", "", &out, NULL),
                      ERR_NOT_FOUND);
    assert_int_equal (
        local_store_job_by_attempt (f->store, "meta", "grid.9", "left", 3, &out, NULL),
        ERR_NOT_FOUND); /* a part is no submission */
}

static void part_round_trip (void **state)
{
    struct fixture *f = *state;
    struct store_part in = {.component = "left",
                            .attempt = 2,
                            .state = STORE_PART_PREPARED,
                            .job = 5,
                            .caller = "meta",
                            .was_held = true,
                            .slot_start = 1000,
                            .lease_end_boottime = 77,
                            .boot_id = "b",
                            .start_accepted = true,
                            .answer = strdup ("yes"),
                            .answer_len = 3},
                      out;
    memset (in.transaction, 9, sizeof in.transaction);
    memset (in.token_hash, 8, sizeof in.token_hash);
    assert_int_equal (local_store_begin (f->store, NULL), 0);
    assert_int_equal (local_store_part_put (f->store, &in, NULL), 0);
    assert_int_equal (local_store_epoch_put (f->store, in.transaction, 12, NULL), 0);
    assert_int_equal (local_store_commit (f->store, NULL), 0);
    reopen (f);
    assert_int_equal (local_store_part_get (f->store, in.transaction, "left", 2, &out, NULL), 0);
    assert_int_equal (out.state, STORE_PART_PREPARED);
    assert_int_equal (out.job, 5);
    assert_int_equal (out.lease_end_boottime, 77);
    assert_true (out.was_held && out.start_accepted);
    assert_memory_equal (out.token_hash, in.token_hash, 32);
    assert_int_equal (out.answer_len, 3);
    assert_memory_equal (out.answer, "yes", 3);
    assert_null (out.start);
    store_part_free (&out);
    uint64_t epoch;
    assert_int_equal (local_store_epoch_get (f->store, in.transaction, &epoch, NULL), 0);
    assert_int_equal (epoch, 12);
    assert_int_equal (local_store_part_get (f->store, in.transaction, "left", 3, &out, NULL),
                      ERR_NOT_FOUND);
    store_part_free (&in);
}

struct read_items {
    uint64_t first, last;
    unsigned count;
};

static void on_item (void *arg, const struct store_item *item)
{
    struct read_items *r = arg;
    if (!r->count++)
        r->first = item->sequence;
    r->last = item->sequence;
    assert_string_equal (item->kind, "charge");
    assert_int_equal (item->payload_len, 3);
}

static void outbox_is_contiguous (void **state)
{
    struct fixture *f = *state;
    struct read_items r = {0};
    for (int i = 0; i < 5; i++) {
        struct uuid key;
        uuid_make (&key);
        assert_int_equal (local_store_begin (f->store, NULL), 0);
        assert_int_equal (local_store_outbox_put (f->store, STORE_OUTBOX_BANK, "charge", &key,
                                                  "abc", 3, 1, NULL, NULL),
                          0);
        if (i == 2) /* never happened: its number is used again */
            local_store_rollback (f->store);
        else
            assert_int_equal (local_store_commit (f->store, NULL), 0);
    }
    assert_int_equal (
        local_store_outbox_read (f->store, STORE_OUTBOX_BANK, 0, 10, on_item, &r, NULL), 0);
    assert_int_equal (r.count, 4);
    assert_int_equal (r.first, 1);
    assert_int_equal (r.last, 4);
    assert_int_equal (local_store_begin (f->store, NULL), 0);
    assert_int_equal (local_store_outbox_ack (f->store, STORE_OUTBOX_BANK, 3, NULL), 0);
    assert_int_equal (local_store_commit (f->store, NULL), 0);
    reopen (f);
    r = (struct read_items){0};
    assert_int_equal (
        local_store_outbox_read (f->store, STORE_OUTBOX_BANK, 0, 10, on_item, &r, NULL), 0);
    assert_int_equal (r.count, 1);
    assert_int_equal (r.first, 4);
}

static void on_run (void *arg, const struct store_run *run)
{
    char *text = arg;
    snprintf (text + strlen (text), 200 - strlen (text), "%s@%lld=%lld;", run->site_job,
              (long long)run->end, (long long)run->charged);
    assert_int_equal (run->request_len, 3);
    assert_memory_equal (run->request, "abc", 3);
}

static const char *runs (struct fixture *f, time_us from, time_us until, const char *site_job,
                         struct runs_after after, uint32_t limit)
{
    static char text[200];
    *text = 0;
    assert_int_equal (
        runs_read (f->store, from, until, site_job, &after, limit, on_run, text, NULL), 0);
    return text;
}

/* By end, in pages; with what the bank answered; forgotten once the bank has. */
static void runs_are_kept (void **state)
{
    struct fixture *f = *state;
    static const struct runs_after none = {INT64_MIN, 0};
    time_us first;
    assert_int_equal (runs_first (f->store, &first, NULL), 0);
    assert_int_equal (first, 0);
    assert_int_equal (local_store_begin (f->store, NULL), 0);
    for (int i = 0; i < 4; i++) {
        struct store_run run = {.site_job = i == 3 ? "a.1" : "a.2",
                                .end = 40 - 10 * (i / 2),
                                .untold = "",
                                .user = "u",
                                .rm_id = "",
                                .charged = -1,
                                .message = i ? (uint64_t)i : 0,
                                .request = "abc",
                                .request_len = 3};
        assert_int_equal (runs_add (f->store, &run, NULL), 0);
    }
    assert_int_equal (runs_answered (f->store, 3, 77, NULL), 0);
    assert_int_equal (runs_answered (f->store, 0, 99, NULL), 0);
    assert_int_equal (local_store_commit (f->store, NULL), 0);
    reopen (f);
    assert_string_equal (runs (f, 0, 0, NULL, none, 9), "a.2@30=-1;a.1@30=77;a.2@40=-1;a.2@40=-1;");
    assert_string_equal (runs (f, 0, 0, NULL, none, 1), "a.2@30=-1;");
    assert_string_equal (runs (f, 0, 0, NULL, (struct runs_after){30, 3}, 2),
                         "a.1@30=77;a.2@40=-1;");
    assert_string_equal (runs (f, 30, 40, NULL, none, 9), "a.2@30=-1;a.1@30=77;");
    assert_string_equal (runs (f, 31, 0, "a.1", none, 9), "a.1@30=77;");
    assert_int_equal (runs_first (f->store, &first, NULL), 0);
    assert_int_equal (first, 30);
    assert_int_equal (local_store_begin (f->store, NULL), 0);
    assert_int_equal (runs_purge (f->store, 41, 9, NULL), 0);
    assert_int_equal (local_store_commit (f->store, NULL), 0);
    assert_string_equal (runs (f, 0, 0, NULL, none, 9), "a.2@30=-1;a.2@40=-1;"); /* unanswered */
}

static void take_failed (void *arg, const struct leaving_file *file)
{
    char *text = arg;
    size_t len = strlen (text);
    snprintf (text + len, 200 - len, "%u %s %s %s %lld/%lld;", file->place, file->path, file->url,
              file->text, (long long)file->bytes_done, (long long)file->bytes);
}

static enum leaving leaving_of (struct fixture *f, uint64_t number)
{
    enum leaving state;
    assert_int_equal (leaving_state (f->store, number, &state, NULL), 0);
    return state;
}

/* Files that could not be taken away: remembered while it is tried again, and gone with the job. */
static void files_left_behind (void **state)
{
    struct fixture *f = *state;
    struct store_job job = sample (17);
    struct purge_job gone = {17, 1};
    char text[200] = "";
    job.state = STORE_JOB_COMPLETED;
    put (f, &job, "signed bytes");
    assert_int_equal (leaving_of (f, 17), LEAVING_NOTHING);
    assert_int_equal (local_store_begin (f->store, NULL), 0);
    for (uint32_t i = 4; i > 1; i -= 2) {
        struct leaving_file file = {i, i == 4 ? "b" : "a", "https://h/x", "refused", 9, i};
        assert_int_equal (leaving_failed_put (f->store, 17, &file, NULL), 0);
    }
    assert_int_equal (local_store_commit (f->store, NULL), 0);
    reopen (f);
    assert_int_equal (leaving_of (f, 17), LEAVING_FAILED);
    assert_int_equal (leaving_of (f, 18), LEAVING_NOTHING);
    assert_int_equal (leaving_failed_each (f->store, 17, take_failed, text, NULL), 0);
    assert_string_equal (text, "2 a https://h/x refused 2/9;4 b https://h/x refused 4/9;");
    assert_int_equal (local_store_begin (f->store, NULL), 0);
    assert_int_equal (leaving_put (f->store, 17, NULL), 0);
    assert_int_equal (leaving_of (f, 17), LEAVING_NOW);
    assert_int_equal (leaving_delete (f->store, 17, NULL), 0);
    assert_int_equal (leaving_of (f, 17), LEAVING_FAILED);
    assert_int_equal (purge_forget (f->store, &gone, 1, NULL), 0);
    assert_int_equal (local_store_commit (f->store, NULL), 0);
    assert_int_equal (leaving_of (f, 17), LEAVING_NOTHING);
    store_job_free (&job);
}

static int take_hold (void *arg, struct store_hold *hold, struct err *err)
{
    (void)err;
    assert_int_equal (hold->request_len, 7);
    assert_memory_equal (hold->request, "request", 7);
    *(int *)arg += hold->wanted ? 1 : 10;
    return 0;
}

static void holds_wanted_and_not (void **state)
{
    struct fixture *f = *state;
    struct store_hold hold = {
        .job = 1, .wanted = true, .request = (void *)"request", .request_len = 7};
    bool wanted;
    int seen = 0;
    for (uint8_t i = 0; i < 3; i++) {
        hold.key[0] = i;
        assert_int_equal (local_store_begin (f->store, NULL), 0);
        assert_int_equal (local_store_hold_put (f->store, &hold, NULL), 0);
        assert_int_equal (local_store_commit (f->store, NULL), 0);
    }
    assert_int_equal (local_store_begin (f->store, NULL), 0);
    assert_int_equal (local_store_hold_unwant (f->store, hold.key, NULL), 0);
    hold.key[0] = 0;
    assert_int_equal (local_store_hold_delete (f->store, hold.key, NULL), 0);
    assert_int_equal (local_store_commit (f->store, NULL), 0);
    assert_int_equal (local_store_holds (f->store, take_hold, &seen, NULL), 0);
    assert_int_equal (seen, 11);
    assert_int_equal (local_store_hold_wanted (f->store, hold.key, &wanted, NULL), 0);
    assert_false (wanted);
    hold.key[0] = 1;
    assert_int_equal (local_store_hold_wanted (f->store, hold.key, &wanted, NULL), 0);
    assert_true (wanted);
}

/* A writer killed at any moment leaves whole transactions only, and every one it said was done. */
static void kill_in_the_middle (void **state)
{
    struct fixture *f = *state;
    local_store_close (f->store);
    f->store = NULL;
    for (int round = 0; round < 5; round++) {
        int said[2];
        uint64_t told = 0, n;
        assert_int_equal (pipe (said), 0);
        pid_t pid = fork ();
        if (pid == 0) {
            struct local_store *store;
            if (local_store_open (f->path, &store, NULL) != 0)
                _exit (1);
            for (;;) {
                struct uuid key;
                uint64_t number;
                uuid_make (&key);
                if (local_store_begin (store, NULL) ||
                    local_store_next (store, "job", &number, NULL) ||
                    local_store_outbox_put (store, STORE_OUTBOX_BANK, "charge", &key, "abc", 3, 1,
                                            NULL, NULL) ||
                    local_store_commit (store, NULL) ||
                    write (said[1], &number, sizeof number) != sizeof number)
                    _exit (1);
            }
        }
        close (said[1]);
        while (told < 20u * (unsigned)(round + 1) &&
               read (said[0], &n, sizeof n) == (ssize_t)sizeof n)
            told = n;
        kill (pid, SIGKILL);
        waitpid (pid, NULL, 0);
        while (read (said[0], &n, sizeof n) == (ssize_t)sizeof n)
            told = n;
        close (said[0]);
        reopen (f);
        struct read_items r = {0};
        assert_int_equal (
            local_store_outbox_read (f->store, STORE_OUTBOX_BANK, 0, 100000, on_item, &r, NULL), 0);
        assert_int_equal (local_store_begin (f->store, NULL), 0);
        assert_int_equal (local_store_next (f->store, "job", &n, NULL), 0);
        local_store_rollback (f->store);
        assert_true (r.last >= told && r.last <= told + 1);
        assert_int_equal (r.count, r.last);
        assert_int_equal (n, r.last + 1);
        local_store_close (f->store);
        f->store = NULL;
    }
    reopen (f);
}

/* --- what waiting jobs were told ---------------------------------------------------------------- */

struct told {
    uint32_t count;
    uint64_t number[8];
    time_us started[8];
    struct store_estimate last;
};

static void told_take (void *arg, const struct store_estimate *e)
{
    struct told *t = arg;
    t->number[t->count] = e->number;
    t->started[t->count++] = e->started;
    t->last = *e;
}

static struct told told_read (struct fixture *f)
{
    struct told t = {0};
    struct err err = {0};
    if (store_estimate_each (f->store, told_take, &t, &err) != 0)
        fail_msg ("%s", err.text);
    return t;
}

static void estimates_and_their_starts (void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    struct store_estimate e = {
        .class_name = "batch", .raw = {5, 4, 6, 3, 7}, .said = {50, 40, 60, 30, 70}, .draws = 9};
    struct store_job job = sample (3);
    job.start = 600; /* it started, and the row does not say so: a crash in between */
    job.state = STORE_JOB_RUNNING;
    put (f, &job, NULL);
    store_job_free (&job);
    job = sample (4);
    job.start = 0;
    put (f, &job, NULL);
    store_job_free (&job);
    assert_int_equal (local_store_begin (f->store, &err), 0);
    for (e.number = 1; e.number <= 4; e.number++) {
        e.given = (time_us)(100 * e.number);
        assert_int_equal (store_estimate_add (f->store, &e, &err), 0);
    }
    e.number = 4; /* what was told first stays */
    e.said.median = 999;
    assert_int_equal (store_estimate_add (f->store, &e, &err), 0);
    assert_int_equal (store_estimate_started (f->store, 1, 700, &err), 0);
    assert_int_equal (store_estimate_started (f->store, 77, 700, &err), 0);
    assert_int_equal (local_store_commit (f->store, &err), 0);
    reopen (f);
    assert_int_equal (local_store_begin (f->store, &err), 0);
    assert_int_equal (store_estimate_heal (f->store, &err), 0);
    assert_int_equal (local_store_commit (f->store, &err), 0);
    struct told t = told_read (f);
    assert_int_equal (t.count, 4);
    assert_int_equal (t.number[0], 3); /* by start; those without one last */
    assert_int_equal (t.started[0], 600);
    assert_int_equal (t.number[1], 1);
    assert_int_equal (t.started[1], 700);
    assert_int_equal (t.number[3], 4);
    assert_int_equal (t.started[3], 0);
    assert_int_equal (t.last.said.median, 50);
    assert_int_equal (t.last.raw.high95, 7);
    assert_int_equal (t.last.draws, 9);
    /* 2 has gone without a start; 1 was told too long ago */
    assert_int_equal (local_store_begin (f->store, &err), 0);
    assert_int_equal (store_estimate_purge (f->store, 150, &err), 0);
    assert_int_equal (local_store_commit (f->store, &err), 0);
    t = told_read (f);
    assert_int_equal (t.count, 2);
    assert_int_equal (t.number[0], 3);
    assert_int_equal (t.number[1], 4);
}

struct later {
    char line[16][64];
    uint32_t count;
};

static void later_take (void *arg, const struct store_later *e)
{
    struct later *l = arg;
    snprintf (l->line[l->count++], sizeof *l->line, "%d %s %s %d %d %d %d %d %s", (int)e->number,
              e->kind, e->class_name, (int)e->given, (int)e->started, (int)e->said.median,
              (int)e->said.high95, e->certain, e->cause);
}

static struct later later_read (struct fixture *f, uint64_t number, time_us since)
{
    struct later l = {0};
    struct err err = {0};
    if (store_later_each (f->store, number, since, later_take, &l, &err) != 0)
        fail_msg ("%s", err.text);
    return l;
}

static void later_answers (void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    struct store_later e = {.kind = "later",
                            .class_name = "batch",
                            .cause = "2 ended",
                            .draws = 9,
                            .said = {50, 40, 60, 30, 70}};
    struct store_job job = sample (3);
    job.start = 600; /* its answers do not know it */
    job.state = STORE_JOB_RUNNING;
    put (f, &job, NULL);
    store_job_free (&job);
    job = sample (4);
    job.start = 0;
    put (f, &job, NULL);
    store_job_free (&job);
    assert_int_equal (local_store_begin (f->store, &err), 0);
    for (int i = 0; i < 8; i++) { /* of jobs 1 to 4, by turns */
        e.number = (uint64_t)(i % 4 + 1);
        e.given = 100 + i;
        e.certain = i == 4;
        e.kind = i == 7 ? "limits" : "later";
        assert_int_equal (store_later_add (f->store, &e, &err), 0);
    }
    assert_int_equal (store_estimate_started (f->store, 1, 700, &err), 0);
    assert_int_equal (store_estimate_heal (f->store, &err), 0);
    assert_int_equal (local_store_commit (f->store, &err), 0);
    reopen (f);
    struct later l = later_read (f, 0, 0); /* those that wait, then by start; as given */
    static const char *const all[] = {
        "2 later batch 101 0 50 70 0 2 ended",   "4 later batch 103 0 50 70 0 2 ended",
        "2 later batch 105 0 50 70 0 2 ended",   "4 limits batch 107 0 50 70 0 2 ended",
        "3 later batch 102 600 50 70 0 2 ended", "3 later batch 106 600 50 70 0 2 ended",
        "1 later batch 100 700 50 70 0 2 ended", "1 later batch 104 700 50 70 1 2 ended"};
    assert_int_equal (l.count, 8);
    for (int i = 0; i < 8; i++)
        assert_string_equal (l.line[i], all[i]);
    assert_int_equal (later_read (f, 0, 600).count, 6);
    l = later_read (f, 3, 0);
    assert_int_equal (l.count, 2);
    assert_string_equal (l.line[1], all[5]);
    /* 2 has gone without a start, and what was given too long ago goes */
    assert_int_equal (local_store_begin (f->store, &err), 0);
    assert_int_equal (store_estimate_purge (f->store, 103, &err), 0);
    assert_int_equal (local_store_commit (f->store, &err), 0);
    l = later_read (f, 0, 0);
    assert_int_equal (l.count, 4);
    for (int i = 0; i < 4; i++)
        assert_string_equal (l.line[i], all[2 * i + 1]);
    assert_int_equal (local_store_begin (f->store, &err), 0);
    assert_int_equal (store_estimate_purge (f->store, 200, &err), 0);
    assert_int_equal (local_store_commit (f->store, &err), 0);
    assert_int_equal (later_read (f, 0, 0).count, 0);
}

int main (void)
{
#define T(name) cmocka_unit_test_setup_teardown (name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T (estimates_and_their_starts),
        T (later_answers),
        T (job_round_trip),
        T (live_jobs_and_finding),
        T (part_round_trip),
        T (outbox_is_contiguous),
        T (runs_are_kept),
        T (files_left_behind),
        T (holds_wanted_and_not),
        T (kill_in_the_middle),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
