/* What a site says to QUERY, and a storm: parts and jobs while it is killed again and again. */
#include "part_case.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- QUERY --------------------------------------------------------------------------------- */

static void query_gives_intervals (void **state)
{
    struct site *s = *state;
    struct try t = {.transaction = 1, .in = 100 * US_PER_S, .make = {.tasks = 8}};
    Nui__Local__V1__QueryRequest r = NUI__LOCAL__V1__QUERY_REQUEST__INIT;
    Nui__Local__V1__QueryReply *reply = NULL;
    char id[64];
    site_start (s, "STARTGRACE 00:00:10");
    prepare_yes (s, &t, id);
    /* A question needs no script. */
    r.envelope =
        job_envelope (s, &(struct job_make){.script = "", .component = "right", .tasks = 2});
    r.component = (char *)"right";
    assert_int_equal (site_call (s->as_meta, "Query", &r, &reply, NULL), 0);
    assert_true (reply->feasible);
    assert_int_equal (reply->n_start_intervals, 2);
    /* Before the held slot, so that limit and grace are over; and after it. */
    assert_true (reply->start_intervals[0]->begin_us <= reply->now_us);
    assert_true (llabs (reply->start_intervals[0]->end_us - (t.slot - 70 * US_PER_S)) < 1000);
    assert_true (llabs (reply->start_intervals[1]->begin_us - (t.slot + 70 * US_PER_S)) < 1000);
    assert_int_equal (reply->procs, 2);
    assert_int_equal (reply->nodes, 1);
    uint64_t version = reply->schedule_version;
    free_message (reply);
    assert_int_equal (abort_it (s, &t), 1);
    assert_int_equal (site_call (s->as_meta, "Query", &r, &reply, NULL), 0);
    assert_int_equal (reply->n_start_intervals, 1);
    assert_true (reply->schedule_version != version);
    free_message (reply);
    envelope_free (r.envelope);
    done (&t);
}

/* Each of three could start now; of the whole set two, and all when what holds the site is over. */
static void query_answers_for_sets (void **state)
{
    struct site *s = *state;
    struct try t = {.transaction = 1, .in = 100 * US_PER_S, .make = {.tasks = 2}};
    Nui__Local__V1__QueryRequest r = NUI__LOCAL__V1__QUERY_REQUEST__INIT;
    Nui__Local__V1__QueryMember member[64], *members[64];
    Nui__Local__V1__QueryReply *reply = NULL;
    struct err err = {0};
    char id[64];
    site_start (s, "STARTGRACE 00:00:10");
    prepare_yes (s, &t, id);
    for (int i = 0; i < 64; i++) {
        nui__local__v1__query_member__init (members[i] = &member[i]);
        member[i].component = (char *)(i ? "twin1" : "twin0");
    }
    r.envelope = job_envelope (
        s, &(struct job_make){.script = "", .component = "left", .tasks = 2, .twins = 3});
    r.component = (char *)"left";
    r.others = members;
    r.n_others = 2;
    member[2].component = (char *)"twin2";
    for (uint32_t others = 2; others <= 3; others++) {
        r.n_others = others;
        assert_int_equal (site_call (s->as_meta, "Query", &r, &reply, NULL), 0);
        assert_true (reply->feasible);
        assert_int_equal (reply->together_looked, others + 1);
        assert_true (reply->together[0]->begin_us <= reply->now_us);
        if (others == 2) { /* six processors: there are so many beside the slot, too */
            assert_int_equal (reply->n_together, 1);
            assert_int_equal (reply->together[0]->members, 3);
        } else {
            assert_int_equal (reply->n_together, 3);
            assert_int_equal (reply->together[0]->members, 4);
            assert_true (llabs (reply->together[0]->end_us - (t.slot - 70 * US_PER_S)) < 1000);
            assert_int_equal (reply->together[1]->members, 3);
            assert_true (llabs (reply->together[2]->begin_us - (t.slot + 70 * US_PER_S)) < 1000);
            assert_int_equal (reply->together[2]->members, 4);
        }
        free_message (reply);
    }
    member[2].component = (char *)"twin1";
    assert_int_equal (site_call (s->as_meta, "Query", &r, &reply, &err), ERR_INVALID);
    assert_non_null (strstr (err.text, "twin1 is asked for twice"));
    member[2].component = (char *)"nobody";
    assert_int_not_equal (site_call (s->as_meta, "Query", &r, &reply, &err), 0);
    assert_non_null (strstr (err.text, "no component nobody"));
    r.n_others = 64;
    assert_int_not_equal (site_call (s->as_meta, "Query", &r, &reply, &err), 0);
    assert_non_null (strstr (err.text, "at most 63"));
    envelope_free (r.envelope);
    done (&t);
}

static bool part_runs_alone (struct site *s, void *arg)
{
    return s->charges == 1 && site_told (s, arg) == STATE (RUNNING) && s->report &&
           s->report->jobs_running == 1 && s->report->procs_free == 0;
}

/* The job before is still being killed when the part's moment comes: the part starts all the same, and
 * has its nodes as soon as the other is gone. */
static void slot_right_after_a_stubborn_job (void **state)
{
    struct site *s = *state;
    struct try t = {.transaction = 1,
                    .in = 3 * US_PER_S,
                    .make = {.script = "exec sleep 100\n", .tasks = 8}},
               u = {.transaction = 2, .in = 10 * US_PER_S, .make = {.tasks = 1}};
    char before[64], id[64], code[64];
    site_start (s, NULL);
    site_submit (s, "grid.1",
                 &(struct job_make){.script = "trap '' TERM\nwhile :; do sleep 0.1; done\n",
                                    .tasks = 8,
                                    .walltime = 2 * US_PER_S},
                 before);
    site_wait_state (s, before, STATE (RUNNING));
    t.in = site_last_event (s, before)->start_us + 2 * US_PER_S + 1000 - clock_now_us ();
    prepare_yes (s, &t, id);
    assert_int_equal (commit (s, &t), OUTCOME (FIRM));
    start_it (s, &t, token, sizeof token, t.slot, code);
    assert_string_equal (code, "");
    site_wait_state (s, id, STATE (RUNNING));
    site_wait_state (s, before, STATE (TIMEOUT));
    site_wait (s, part_runs_alone, id, "the part on its nodes");
    prepare_no (s, &u, "Resources");
    assert_true (release_it (s, &t));
    site_wait_state (s, id, STATE (CANCELLED));
    done (&t);
    done (&u);
}

static bool bank_is_asked (struct site *s, void *arg)
{
    (void)arg;
    return s->silent_count == 1;
}

/* Chosen, but the bank is silent past its limit: the nodes are a part's by then, and stay so over a kill. What the
 * bank grants at last is given back, and the job runs after the part. */
static void slot_of_a_job_that_waits_for_the_bank (void **state)
{
    struct site *s = *state;
    struct try t = {
        .transaction = 1, .in = 3 * US_PER_S, .make = {.script = "exec sleep 100\n", .tasks = 8}};
    char before[64], id[64], code[64];
    site_start (s, NULL);
    s->mood = BANK_SILENT;
    site_submit (s, "grid.1",
                 &(struct job_make){.script = "exit 0\n", .tasks = 8, .walltime = 2 * US_PER_S},
                 before);
    site_wait (s, bank_is_asked, NULL, "the bank to be asked");
    s->mood = BANK_GRANTS;
    prepare_yes (s, &t, id);
    assert_int_equal (commit (s, &t), OUTCOME (FIRM));
    start_it (s, &t, token, sizeof token, t.slot, code);
    assert_string_equal (code, "");
    site_wait_state (s, id, STATE (RUNNING));
    site_kill (s);
    site_start (s, NULL);
    wait_releases (s, 1);
    assert_int_not_equal (site_told (s, before), STATE (RUNNING));
    assert_int_equal (site_told (s, id), STATE (RUNNING));
    assert_true (release_it (s, &t));
    site_wait_state (s, before, STATE (COMPLETED));
    done (&t);
}

/* --- a storm ------------------------------------------------------------------------------- */

enum { STORM_JOBS = 90, STORM_PARTS = 30, STORM_KILLS = 60 };

struct storm {
    struct site *s;
    struct event *timer;
    unsigned kills;
    unsigned seed;
    unsigned given, given_before; /* jobs and parts that came in: ever, and before the last kill */
};

static void storm_next (struct storm *st)
{
    struct timeval t = {0, 20000 + (int)(rand_r (&st->seed) % 300) * 1000};
    event_add (st->timer, &t);
}

/* One in four may be killed while it starts, two when it listens, and one not before something came in: on the slowest
 * machine, too, callers get through. */
static bool storm_may_kill (struct storm *st)
{
    switch (st->kills % 4) {
    case 0:
        return true;
    case 3:
        return st->given > st->given_before || st->given == STORM_JOBS + STORM_PARTS;
    default:
        return site_listens (st->s);
    }
}

static void on_storm (evutil_socket_t fd, short what, void *arg)
{
    struct storm *st = arg;
    (void)fd;
    (void)what;
    if (storm_may_kill (st)) {
        site_restart (st->s);
        st->kills++;
        st->given_before = st->given;
    }
    if (st->kills < STORM_KILLS)
        storm_next (st);
}

/* One part to its end, as a coordinator would that loses every other answer. */
static void storm_part (struct site *s, uint8_t n, const char *script, char id[64])
{
    for (uint32_t attempt = 0; attempt < 20; attempt++) {
        struct try t = {
            .transaction = n, .attempt = attempt, .in = US_PER_S / 10, .make = {.script = script}};
        char code[64] = "";
        enum rpc_status status; /* INVALID_ARGUMENT: the slot has passed while the site was away */
        Nui__Local__V1__PrepareReply *reply = prepare_any (s, &t, &status);
        bool yes = status == RPC_OK && reply->granted;
        snprintf (id, 64, "%s", yes ? reply->site_job_id : "");
        free_message (reply);
        if (yes && commit (s, &t) == OUTCOME (FIRM)) {
            start_it (s, &t, token, sizeof token, t.slot, code);
            done (&t);
            assert_string_equal (code, "");
            return;
        }
        done (&t);
    }
    fail_msg ("no attempt got through");
}

static bool all_ended (struct site *s, void *arg)
{
    char (*id)[64] = arg;
    for (int i = 0; i < STORM_JOBS + STORM_PARTS; i++)
        if (site_told (s, id[i]) < STATE (COMPLETED))
            return false;
    return s->charges + s->releases >= s->holds;
}

/* Killed again and again while jobs and parts come in: every one runs once, and every hold is either
 * charged once or given back once. */
static void storm_of_kills (void **state)
{
    struct site *s = *state;
    struct storm st = {.s = s, .seed = (unsigned)getpid ()};
    static char id[STORM_JOBS + STORM_PARTS][64];
    char script[200], grid[32], path[128], line[64];
    print_message ("seed %u\n", st.seed);
    site_start (s, "STARTGRACE 00:00:20");
    snprintf (path, sizeof path, "%s/ran", s->dir);
    FILE *f = fopen (path, "w");
    fclose (f);
    chmod (path, 0666);
    snprintf (script, sizeof script, "#!/bin/sh\necho $NUI_JOBID >> %s\n", path);
    st.timer = event_new (s->base, -1, 0, on_storm, &st);
    storm_next (&st);
    for (int i = 0; i < STORM_JOBS; i++) {
        snprintf (grid, sizeof grid, "grid.%d", 100 + i);
        site_submit (s, grid, &(struct job_make){.script = script}, id[i]);
        st.given++;
        if (i % 3 == 0) {
            storm_part (s, (uint8_t)(i / 3 + 1), script, id[STORM_JOBS + i / 3]);
            st.given++;
        }
    }
    site_wait (s, all_ended, id, "the end of every job and the settling of every hold");
    event_free (st.timer);
    for (int i = 0; i < STORM_JOBS + STORM_PARTS; i++) {
        unsigned ran = 0;
        f = fopen (path, "r");
        while (fgets (line, sizeof line, f)) {
            line[strcspn (line, "\n")] = 0;
            ran += strcmp (line, id[i]) == 0;
        }
        fclose (f);
        if (ran != 1 || site_told (s, id[i]) != STATE (COMPLETED))
            fail_msg ("%s ran %u times, state %d", id[i], ran, site_told (s, id[i]));
    }
    for (unsigned h = 1; h <= s->holds; h++) {
        unsigned settled = 0;
        snprintf (grid, sizeof grid, "hold.%u", h);
        for (unsigned i = 0; i < s->charges; i++)
            settled += strcmp (s->charge[i].hold_id, grid) == 0;
        for (unsigned i = 0; i < s->releases; i++)
            settled += strcmp (s->released[i], grid) == 0;
        if (settled != 1)
            fail_msg ("%s was settled %u times", grid, settled);
    }
    assert_int_equal (s->charges, STORM_JOBS + STORM_PARTS);
    print_message ("%u kills, %u holds, %u charges, %u releases\n", st.kills, s->holds, s->charges,
                   s->releases);
}

int main (void)
{
#define T(name) cmocka_unit_test_setup_teardown (name, site_setup, site_teardown)
    const struct CMUnitTest tests[] = {
        T (query_gives_intervals),
        T (query_answers_for_sets),
        T (slot_right_after_a_stubborn_job),
        T (slot_of_a_job_that_waits_for_the_bank),
        T (storm_of_kills),
    };
    cmocka_set_test_filter (getenv ("NUI_TEST_ONLY"));
    return cmocka_run_group_tests (tests, site_group_setup, site_group_teardown);
}
