/* The site's side of co-allocation: every rule of the protocol, over the wire. */
#include "part_case.h"

#include <signal.h>
#include <sys/socket.h>
#include <netinet/in.h>
#include <unistd.h>

/* --- the way it goes ----------------------------------------------------------------------- */

static void prepare_commit_start (void **state)
{
    struct site *s = *state;
    struct try t = {.transaction = 1,
                    .in = US_PER_S / 2,
                    .make = {.script = "#!/bin/sh\necho $NUI_COMPONENT $NUI_PORT \"$NUI_PEERS\" "
                                       "$NUI_NODES $NUI_TASKS $NUI_SECRET\n",
                             .tasks = 4}};
    char id[64], rsv[64], code[64], want[200];
    site_start (s, NULL);
    Nui__Local__V1__PrepareReply *yes = prepare_reply (s, &t);
    assert_true (yes->granted);
    snprintf (id, sizeof id, "%s", yes->site_job_id);
    assert_string_equal (yes->peer->component, "left");
    assert_string_equal (yes->peer->site, "alpha");
    assert_int_equal (yes->peer->n_hosts, 2);
    assert_string_equal (yes->peer->hosts[0], "127.0.0.1");
    assert_in_range (yes->peer->port, 21000, 21999);
    assert_string_equal (yes->bank_hold_id, "hold.1");
    assert_int_equal (yes->procs, 4);
    assert_true (yes->lease_left_us > 20 * US_PER_S);
    assert_int_equal (s->events, 0); /* nothing is told before it is firm */
    assert_false (ready_it (s, &t));
    start_it (s, &t, token, sizeof token, t.slot, code);
    assert_string_equal (code, "NotFirm");
    assert_int_equal (commit_try (s, &t, rsv, NULL), OUTCOME (FIRM));
    assert_string_equal (rsv, "alice.1");
    assert_int_equal (commit (s, &t), OUTCOME (FIRM)); /* again: the same */
    assert_int_equal (abort_it (s, &t), 2);
    site_wait_state (s, id, STATE (RESERVED));
    assert_true (ready_it (s, &t));
    start_it (s, &t, "guess", 5, t.slot, code);
    assert_string_equal (code, "BadToken");
    start_it (s, &t, token, sizeof token, t.slot + 3600 * US_PER_S, code);
    assert_string_equal (code, "OutsideSlot");
    start_it (s, &t, token, sizeof token, t.slot, code);
    assert_string_equal (code, "");
    start_it (s, &t, token, sizeof token, t.slot, code); /* a lost answer */
    assert_string_equal (code, "");
    start_it (s, &t, token, sizeof token, t.slot + US_PER_S, code);
    assert_string_equal (code, "AlreadyStarted");
    site_wait_state (s, id, STATE (COMPLETED));
    assert_true (site_last_event (s, id)->start_us >= t.slot);
    assert_int_equal (site_last_event (s, id)->transaction.len, 16);
    char *out = site_output (s->as_alice, id, NULL);
    snprintf (want, sizeof want, "left %u left=127.0.0.1:21000 right=10.0.0.2:21210 2 4 %s\n",
              yes->peer->port, secret_of_group ());
    assert_string_equal (out, want);
    free (out);
    free_message (yes);
    start_it (s, &t, token, sizeof token, t.slot, code); /* a very late repetition */
    assert_string_equal (code, "");
    start_it (s, &t, token, sizeof token, t.slot + US_PER_S, code);
    assert_string_equal (code, "AlreadyStarted");
    start_it (s, &t, "guess", 5, t.slot, code);
    assert_string_equal (code, "BadToken");
    assert_false (release_it (s, &t));
    assert_int_equal (s->holds, 1);
    done (&t);
}

static void repeated_prepare_is_one_hold (void **state)
{
    struct site *s = *state;
    struct try t = {.transaction = 1, .in = 60 * US_PER_S}, other;
    struct waiting a, b;
    char id[64];
    site_start (s, NULL);
    s->mood = BANK_SILENT;
    prepare_send (s, &t, &a);
    prepare_send (s, &t, &b); /* while the first is still in flight */
    unsigned asked = 0;
    while (!asked) {
        event_base_loop (s->base, EVLOOP_ONCE);
        asked = s->silent_count;
    }
    s->mood = BANK_GRANTS;
    bank_speak (s);
    site_wait (s, is_done, &a, "the first");
    site_wait (s, is_done, &b, "the second");
    assert_true (a.reply->granted && b.reply->granted);
    assert_string_equal (a.reply->site_job_id, b.reply->site_job_id);
    prepare_yes (s, &t, id);
    assert_string_equal (id, a.reply->site_job_id);
    assert_int_equal (s->holds, 1);
    other = t; /* the same name, another slot */
    other.slot += US_PER_S;
    free_message (b.reply);
    prepare_send (s, &other, &b);
    site_wait (s, is_done, &b, "the other");
    assert_int_equal (b.status, RPC_ABORTED);
    free_message (a.reply);
    done (&t);
}

static void held_nodes_are_nobody_elses (void **state)
{
    struct site *s = *state;
    struct try t = {.transaction = 1, .in = US_PER_S, .make = {.tasks = 8}},
               u = {.transaction = 2, .in = US_PER_S, .make = {.tasks = 2}};
    char id[64];
    site_start (s, NULL);
    prepare_yes (s, &t, id);
    time_us next = prepare_no (s, &u, "Resources");
    assert_true (next > t.slot + 60 * US_PER_S - US_PER_S);
    struct try v = {.transaction = 3, .make = {.tasks = 2}}; /* at the counter-offer it fits */
    v.in = next - clock_now_us ();
    v.envelope = NULL;
    prepare_yes (s, &v, id);
    assert_int_equal (abort_it (s, &t), 1);
    struct try w = {.transaction = 4, .in = US_PER_S, .make = {.tasks = 2}};
    prepare_yes (s, &w, id);
    wait_releases (s, 1);
    assert_string_equal (s->released[0], "hold.1");
    done (&t);
    done (&u);
    done (&v);
    done (&w);
}

/* --- a place over the one that the group has ----------------------------------------------- */

static void no_room (struct site *s, struct try *t)
{
    Nui__Local__V1__PrepareReply *reply = prepare_reply (s, t);
    assert_false (reply->granted);
    if (strcmp (reply->reason->code, "Promised") != 0)
        assert_string_equal (reply->reason->code, "Resources");
    free_message (reply);
}

/* All eight processors half a minute from now, and instead of it the same 25 s earlier, for a minute. */
static void comes_instead (void **state)
{
    struct site *s = *state;
    struct try old = {.transaction = 1,
                      .in = 30 * US_PER_S,
                      .make = {.tasks = 8, .script = "#!/bin/sh\necho ran\n"}},
               none = {.transaction = 4, .in = 95 * US_PER_S, .make = {.tasks = 2}};
    char id[64], first[64], code[64];
    enum rpc_status status;
    site_start (s, NULL);
    prepare_yes (s, &old, first);
    struct try fresh = old;
    fresh.slot -= 25 * US_PER_S;
    fresh.transaction = 2;
    no_room (s, &fresh);
    fresh.replaces = 1;
    fresh.transaction = 3;
    no_room (s, &fresh); /* that one is not firm */
    assert_int_equal (commit (s, &old), OUTCOME (FIRM));
    fresh.transaction = fresh.replaces = 5;
    assert_null (prepare_any (s, &fresh, &status));
    assert_int_equal (status, RPC_INVALID_ARGUMENT); /* itself */
    fresh.transaction = 6;
    fresh.replaces = 9;
    no_room (s, &fresh); /* nobody knows that one */
    fresh.replaces = 1;
    fresh.transaction = 7;
    prepare_yes (s, &fresh, id);
    site_kill (s);
    site_start (s, NULL);
    prepare_yes (s, &fresh, id); /* both are there */
    no_room (s, &none);
    assert_int_equal (commit (s, &fresh), OUTCOME (FIRM));
    assert_true (ready_it (s, &old) && ready_it (s, &fresh));
    struct try third = old; /* no third place instead of one that comes instead itself */
    third.slot -= 20 * US_PER_S;
    third.transaction = 8;
    third.replaces = 7;
    no_room (s, &third);
    start_it (s, &fresh, token, sizeof token, fresh.slot, code);
    assert_string_equal (code, "");
    start_it (s, &old, token, sizeof token, old.slot, code);
    assert_string_equal (code, "Unknown"); /* nobody asked for its release */
    site_wait_state (s, first, STATE (CANCELLED));
    assert_int_equal (commit (s, &old), OUTCOME (FIRM)); /* it was */
    assert_false (release_it (s, &old));
    site_wait_state (s, id, STATE (COMPLETED));
    done (&none);
    done (&old);
}

/* The first one starts after all: the place that was to be instead of it is given up, firm or not. */
static void stays_after_all (void **state)
{
    struct site *s = *state;
    struct try old = {.transaction = 1,
                      .in = 20 * US_PER_S,
                      .make = {.tasks = 8, .script = "#!/bin/sh\necho ran\n"}};
    char id[64], first[64], code[64];
    site_start (s, NULL);
    prepare_yes (s, &old, first);
    assert_int_equal (commit (s, &old), OUTCOME (FIRM));
    struct try fresh = old;
    fresh.transaction = 2;
    fresh.replaces = 1;
    fresh.slot -= 15 * US_PER_S;
    prepare_yes (s, &fresh, id);
    start_it (s, &old, token, sizeof token, old.slot, code);
    assert_string_equal (code, "");
    assert_int_equal (commit (s, &fresh), OUTCOME (ABORTED));
    assert_int_equal (abort_it (s, &fresh), 0);
    wait_releases (s, 1);
    assert_string_equal (s->released[0], "hold.2");
    site_wait_state (s, first, STATE (COMPLETED));
    done (&old);
}

/* --- aborts, tombstones, epochs, leases ---------------------------------------------------- */

static void abort_before_prepare (void **state)
{
    struct site *s = *state;
    struct try t = {.transaction = 1, .in = US_PER_S};
    site_start (s, NULL);
    assert_int_equal (abort_it (s, &t), 0);
    prepare_no (s, &t, "Aborted");
    site_kill (s);
    site_start (s, NULL); /* the tombstone is durable */
    prepare_no (s, &t, "Aborted");
    assert_int_equal (commit (s, &t), OUTCOME (ABORTED));
    assert_int_equal (s->hold_calls, 0);
    done (&t);
}

static void abort_is_idempotent (void **state)
{
    struct site *s = *state;
    struct try t = {.transaction = 1, .in = US_PER_S}, never = {.transaction = 9};
    char id[64];
    site_start (s, NULL);
    prepare_yes (s, &t, id);
    assert_int_equal (abort_it (s, &t), 1);
    assert_int_equal (abort_it (s, &t), 1); /* the same answer */
    assert_int_equal (commit (s, &t), OUTCOME (ABORTED));
    prepare_no (s, &t, "Aborted");
    assert_int_equal (commit (s, &never), OUTCOME (UNKNOWN));
    wait_releases (s, 1);
    assert_int_equal (s->releases, 1);
    done (&t);
}

static void old_epochs_are_fenced (void **state)
{
    struct site *s = *state;
    struct try t = {.transaction = 1, .in = US_PER_S, .epoch = 5};
    char id[64];
    struct err err = {0};
    site_start (s, NULL);
    prepare_yes (s, &t, id);
    t.epoch = 4;
    assert_int_equal (commit_try (s, &t, NULL, &err), -1);
    assert_int_equal (err.code, ERR_CONFLICT);
    t.epoch = 6;             /* a new coordinator takes over … */
    prepare_yes (s, &t, id); /* … asks again and gets the same answer */
    t.epoch = 5;
    assert_int_equal (commit_try (s, &t, NULL, &err), -1);
    site_kill (s);
    site_start (s, NULL);
    assert_int_equal (commit_try (s, &t, NULL, &err), -1);
    t.epoch = 6;
    assert_int_equal (commit (s, &t), OUTCOME (FIRM));
    done (&t);
}

static void lease_ends (void **state)
{
    struct site *s = *state;
    struct try t = {
        .transaction = 1, .in = 60 * US_PER_S, .lease = US_PER_S / 2, .make = {.tasks = 8}};
    char id[64];
    site_start (s, NULL);
    duration_us begun = clock_monotonic_us ();
    prepare_yes (s, &t, id);
    wait_releases (s, 1); /* by itself */
    assert_true (clock_monotonic_us () - begun >= US_PER_S / 2);
    assert_int_equal (commit (s, &t), OUTCOME (EXPIRED));
    prepare_no (s, &t, "LeaseExpired");
    t.attempt = 1; /* the same slot anew */
    t.lease = 0;
    prepare_yes (s, &t, id);
    assert_int_equal (commit (s, &t), OUTCOME (FIRM));
    done (&t);
}

static void lease_too_long (void **state)
{
    struct site *s = *state;
    struct try t = {.transaction = 1, .in = US_PER_S, .lease = 1000 * US_PER_S};
    struct waiting w;
    site_start (s, NULL);
    prepare_send (s, &t, &w);
    site_wait (s, is_done, &w, "an answer");
    assert_int_equal (w.status, RPC_INVALID_ARGUMENT);
    done (&t);
}

static void no_show_is_released (void **state)
{
    struct site *s = *state;
    struct try t = {.transaction = 1, .in = US_PER_S / 5, .make = {.tasks = 8}};
    char id[64];
    site_start (s, "STARTGRACE 00:00:01");
    prepare_yes (s, &t, id);
    assert_int_equal (commit (s, &t), OUTCOME (FIRM));
    site_wait_state (s, id, STATE (CANCELLED));
    assert_string_equal (site_last_event (s, id)->reason->code, "NoShow");
    wait_releases (s, 1);
    done (&t);
}

/* --- kill -9 ------------------------------------------------------------------------------- */

static void killed_after_yes_keeps_the_lease (void **state)
{
    struct site *s = *state;
    struct try t = {.transaction = 1,
                    .in = 60 * US_PER_S,
                    .lease = 8 * US_PER_S,
                    .make = {.tasks = 8}},
               u = {.transaction = 2, .in = 60 * US_PER_S, .make = {.tasks = 2}};
    char id[64];
    site_start (s, NULL);
    prepare_yes (s, &t, id);
    site_kill (s);
    site_start (s, NULL);
    prepare_no (s, &u, "Resources"); /* the nodes are still held */
    Nui__Local__V1__PrepareReply *again = prepare_reply (s, &t);
    assert_true (again->granted);
    assert_string_equal (again->site_job_id, id);
    assert_in_range (again->lease_left_us, 1, 8 * US_PER_S - 1);
    free_message (again);
    assert_int_equal (commit (s, &t), OUTCOME (FIRM));
    assert_int_equal (s->holds, 1);
    done (&t);
    done (&u);
}

static void killed_before_yes_holds_nothing (void **state)
{
    struct site *s = *state;
    struct try t = {.transaction = 1, .in = 60 * US_PER_S, .make = {.tasks = 8}},
               u = {.transaction = 2, .in = 60 * US_PER_S, .make = {.tasks = 8}};
    struct waiting w;
    char id[64];
    site_start (s, NULL);
    s->mood = BANK_SILENT;
    prepare_send (s, &t, &w);
    while (!s->silent_count)
        event_base_loop (s->base, EVLOOP_ONCE);
    site_kill (s);
    s->mood = BANK_GRANTS;
    bank_speak (s); /* the bank did grant it */
    site_start (s, NULL);
    site_wait (s, is_done, &w, "the end of the call"); /* sent again by the client, and refused */
    assert_true (w.status != RPC_OK || !w.reply->granted);
    prepare_yes (s, &u, id); /* the nodes are free */
    wait_releases (s, 1);    /* and the hold that nobody heard of went back */
    assert_string_equal (s->released[0], "hold.1");
    assert_int_equal (commit (s, &t), OUTCOME (EXPIRED));
    free_message (w.reply);
    done (&t);
    done (&u);
}

static void killed_when_firm (void **state)
{
    struct site *s = *state;
    struct try t = {.transaction = 1, .in = US_PER_S, .make = {.script = "echo ran\n", .tasks = 8}};
    char id[64], code[64];
    site_start (s, NULL);
    prepare_yes (s, &t, id);
    assert_int_equal (commit (s, &t), OUTCOME (FIRM));
    site_kill (s);
    site_start (s, NULL);
    assert_int_equal (commit (s, &t), OUTCOME (FIRM));
    assert_true (ready_it (s, &t));
    start_it (s, &t, token, sizeof token, t.slot, code);
    assert_string_equal (code, "");
    site_kill (s); /* between START and its moment, or just after */
    site_start (s, NULL);
    site_wait_state (s, id, STATE (COMPLETED));
    char *out = site_output (s->as_alice, id, NULL);
    assert_string_equal (out, "ran\n"); /* once */
    free (out);
    assert_int_equal (s->releases, 0);
    done (&t);
}

static void killed_while_a_part_runs (void **state)
{
    struct site *s = *state;
    struct try t = {.transaction = 1, .make = {.script = "exec sleep 100\n", .tasks = 8}},
               u = {.transaction = 2, .in = US_PER_S, .make = {.tasks = 1}};
    char id[64], code[64];
    site_start (s, NULL);
    prepare_yes (s, &t, id);
    assert_int_equal (commit (s, &t), OUTCOME (FIRM));
    start_it (s, &t, token, sizeof token, t.slot, code);
    assert_string_equal (code, "");
    site_wait_state (s, id, STATE (RUNNING));
    site_kill (s);
    site_start (s, NULL);
    prepare_no (s, &u, "Resources");
    assert_true (release_it (s, &t));
    site_wait_state (s, id, STATE (CANCELLED));
    for (unsigned n = 1; s->charges < n;)
        event_base_loop (s->base, EVLOOP_ONCE);
    assert_false (s->charge[0].successful);
    done (&t);
    done (&u);
}

/* --- the bank, caps, ports, trust ---------------------------------------------------------- */

static void bank_refuses (void **state)
{
    struct site *s = *state;
    struct try t = {.transaction = 1, .in = 60 * US_PER_S, .make = {.tasks = 8}};
    char id[64];
    site_start (s, NULL);
    s->mood = BANK_REFUSES;
    prepare_no (s, &t, "InsufficientFunds");
    s->mood = BANK_GRANTS;
    prepare_no (s, &t, "InsufficientFunds"); /* the stored answer */
    t.attempt = 1;
    prepare_yes (s, &t, id); /* nothing was left behind */
    assert_int_equal (s->releases, 0);
    done (&t);
}

static void bank_silent (void **state)
{
    struct site *s = *state;
    struct try t = {.transaction = 1, .in = 60 * US_PER_S, .make = {.tasks = 8}},
               u = {.transaction = 2, .in = 60 * US_PER_S, .make = {.tasks = 8}};
    char id[64];
    site_start (s, "BANKPATIENCE 00:00:01");
    s->mood = BANK_SILENT;
    prepare_no (s, &t, "BankUnavailable");
    s->mood = BANK_GRANTS;
    bank_speak (s); /* too late: it goes back */
    wait_releases (s, 1);
    prepare_yes (s, &u, id);
    done (&t);
    done (&u);
}

static void greedy_peer (void **state)
{
    struct site *s = *state;
    struct try t[4];
    char id[64];
    site_start (s, "PEERCAP[meta] HOLDS=2\nPEERCAP[DEFAULT] HOLDS=100");
    for (int i = 0; i < 4; i++)
        t[i] = (struct try){.transaction = (uint8_t)(i + 1), .in = 60 * US_PER_S};
    prepare_yes (s, &t[0], id);
    prepare_yes (s, &t[1], id);
    assert_int_equal (prepare_no (s, &t[2], "PeerCap"), t[0].slot); /* when one of them begins */
    assert_int_equal (abort_it (s, &t[0]), 1);
    prepare_yes (s, &t[3], id);
    for (int i = 0; i < 4; i++)
        done (&t[i]);
}

static void processor_seconds_are_capped (void **state)
{
    struct site *s = *state;
    struct try t = {.transaction = 1, .in = US_PER_S, .make = {.tasks = 8}}; /* 8 * 90 s */
    site_start (s, "PEERCAP[meta] PROCSECONDS=700");
    prepare_no (s, &t, "PeerCap");
    done (&t);
}

static void ports_are_unique_and_free (void **state)
{
    struct site *s = *state;
    struct try t[3];
    uint32_t port[3];
    char range[64];
    struct sockaddr_in at = {.sin_family = AF_INET};
    uint32_t first = 22000 + (uint32_t)getpid () % 9000; /* another run takes others */
    int fd = socket (AF_INET, SOCK_STREAM, 0);
    do
        at.sin_port = htons ((uint16_t)++first);
    while (bind (fd, (struct sockaddr *)&at, sizeof at) != 0);
    assert_int_equal (listen (fd, 1), 0);
    snprintf (range, sizeof range, "PORTRANGE %u-%u", first, first + 2);
    site_start (s, range); /* one of three is in use */
    for (int i = 0; i < 3; i++) {
        t[i] = (struct try){.transaction = (uint8_t)(i + 1), .in = 60 * US_PER_S};
        if (i == 2)
            break;
        Nui__Local__V1__PrepareReply *yes = prepare_reply (s, &t[i]);
        assert_true (yes->granted);
        port[i] = yes->peer->port;
        free_message (yes);
    }
    assert_true (port[0] != port[1] && port[0] != first && port[1] != first);
    prepare_no (s, &t[2], "NoPort");
    close (fd);
    for (int i = 0; i < 3; i++)
        done (&t[i]);
}

static void forged_is_refused_by_the_site (void **state)
{
    struct site *s = *state;
    struct try t = {.transaction = 1, .in = US_PER_S, .make = {.signer = "mallory"}},
               u = {.transaction = 2, .in = US_PER_S, .make = {.signer = "bob"}};
    struct waiting w;
    site_start (s, NULL);
    prepare_send (s, &t, &w);
    site_wait (s, is_done, &w, "an answer");
    assert_int_equal (w.status, RPC_UNAUTHENTICATED);
    prepare_no (s, &u, "Denied"); /* real, but not in the gridmap */
    assert_int_equal (s->hold_calls, 0);
    done (&t);
    done (&u);
}

int main (void)
{
#define T(name) cmocka_unit_test_setup_teardown (name, site_setup, site_teardown)
    const struct CMUnitTest tests[] = {
        T (prepare_commit_start),
        T (repeated_prepare_is_one_hold),
        T (held_nodes_are_nobody_elses),
        T (comes_instead),
        T (stays_after_all),
        T (abort_before_prepare),
        T (abort_is_idempotent),
        T (old_epochs_are_fenced),
        T (lease_ends),
        T (lease_too_long),
        T (no_show_is_released),
        T (killed_after_yes_keeps_the_lease),
        T (killed_before_yes_holds_nothing),
        T (killed_when_firm),
        T (killed_while_a_part_runs),
        T (bank_refuses),
        T (bank_silent),
        T (greedy_peer),
        T (processor_seconds_are_capped),
        T (ports_are_unique_and_free),
        T (forged_is_refused_by_the_site),
    };
    cmocka_set_test_filter (getenv ("NUI_TEST_ONLY"));
    return cmocka_run_group_tests (tests, site_group_setup, site_group_teardown);
}
