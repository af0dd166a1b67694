/* The site's side of co-allocation: every rule of the protocol, over the wire. */
#include "site.h"

#include <openssl/sha.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <netinet/in.h>
#include <unistd.h>

#define STATE(name) NUI__LOCAL__V1__JOB_STATE__JOB_##name
#define OUTCOME(name) NUI__LOCAL__V1__COMMIT_REPLY__OUTCOME__##name

static const uint8_t token[] = "the start token of this group";

/* One try at one component; what is not said is the usual. */
struct
try {
    uint8_t transaction; /* its first byte; the rest is 7 */
    uint32_t attempt;
    uint64_t epoch;
    const char *component; /* "left" */
    duration_us in;        /* the slot begins so long from now */
    duration_us lease;     /* 0: 30 s */
    struct job_make make;
    Nui__Common__V1__Envelope *envelope; /* made by the first use */
    time_us slot;
    uint8_t id[16];
    uint8_t replaces; /* that transaction; 0: none */
};

static void part_fill (Nui__Local__V1__Part *part, struct try *t)
{
    nui__local__v1__part__init (part);
    memset (t->id, 7, sizeof t->id);
    t->id[0] = t->transaction;
    part->transaction.data = t->id;
    part->transaction.len = sizeof t->id;
    part->component = (char *)(t->component ? t->component : "left");
    part->attempt = t->attempt;
    part->epoch = t->epoch;
}

struct waiting { /* a PREPARE on its way */
    bool done;
    enum rpc_status status;
    Nui__Local__V1__PrepareReply *reply;
};

static void on_prepared (void *arg, const struct rpc_result *result)
{
    struct waiting *w = arg;
    w->done = true;
    w->status = result->status;
    if (result->status == RPC_OK) {
        size_t len = protobuf_c_message_get_packed_size (result->reply);
        uint8_t *bytes = malloc (len + 1);
        protobuf_c_message_pack (result->reply, bytes);
        w->reply = nui__local__v1__prepare_reply__unpack (NULL, len, bytes);
        free (bytes);
    }
}

static void prepare_send (struct site *s, struct try *t, struct waiting *w)
{
    Nui__Local__V1__PrepareRequest r = NUI__LOCAL__V1__PREPARE_REQUEST__INIT;
    Nui__Local__V1__Part part;
    uint8_t hash[32];
    part_fill (&part, t);
    if (!t->envelope) {
        t->make.component = part.component;
        if (!t->make.script)
            t->make.script = "exit 0\n";
        t->envelope = job_envelope (s, &t->make);
        t->slot = clock_now_us () + t->in;
    }
    SHA256 (token, sizeof token, hash);
    r.part = &part;
    r.envelope = t->envelope;
    r.grid_job_id = (char *)"grid.42";
    r.slot_start_us = t->slot;
    r.lease_us = t->lease ? t->lease : 30 * US_PER_S;
    r.start_token_hash.data = hash;
    r.start_token_hash.len = sizeof hash;
    uint8_t replaced[16];
    memset (replaced, 7, sizeof replaced);
    replaced[0] = t->replaces;
    r.replaces = (ProtobufCBinaryData){t->replaces ? sizeof replaced : 0, replaced};
    struct rpccallout_config call = {
        .service = &nui__local__v1__local__descriptor,
        .method = "Prepare",
        .request = &r.base,
        .timeout = SITE_AWAY_MAX,
        .idempotent = true,
        .done = on_prepared,
        .arg = w,
    };
    *w = (struct waiting){0};
    rpcclient_start (s->as_meta, &call);
}

static bool is_done (struct site *s, void *arg)
{
    (void)s;
    return ((struct waiting *)arg)->done;
}

/* Sent again while the site is away. */
static Nui__Local__V1__PrepareReply *prepare_any (struct site *s, struct try *t,
                                                  enum rpc_status *status)
{
    struct waiting w;
    duration_us until = clock_monotonic_us () + SITE_AWAY_MAX;
    do {
        prepare_send (s, t, &w);
        site_wait (s, is_done, &w, "the answer to a prepare");
    } while (w.status == RPC_UNAVAILABLE && clock_monotonic_us () < until);
    *status = w.status;
    return w.reply;
}

static Nui__Local__V1__PrepareReply *prepare_reply (struct site *s, struct try *t)
{
    enum rpc_status status;
    Nui__Local__V1__PrepareReply *reply = prepare_any (s, t, &status);
    assert_int_equal (status, RPC_OK);
    return reply;
}

/* PREPARE that must be granted; the site's job id goes to id. */
static void prepare_yes (struct site *s, struct try *t, char id[64])
{
    Nui__Local__V1__PrepareReply *reply = prepare_reply (s, t);
    if (!reply->granted)
        fail_msg ("refused: %s: %s", reply->reason->code, reply->reason->text);
    snprintf (id, 64, "%s", reply->site_job_id);
    free_message (reply);
}

/* PREPARE that must be refused with this code. */
static time_us prepare_no (struct site *s, struct try *t, const char *code)
{
    Nui__Local__V1__PrepareReply *reply = prepare_reply (s, t);
    assert_false (reply->granted);
    assert_string_equal (reply->reason->code, code);
    time_us next = reply->next_feasible_us;
    free_message (reply);
    return next;
}

static int commit_try (struct site *s, struct try *t, char name[64], struct err *err)
{
    Nui__Local__V1__CommitRequest r = NUI__LOCAL__V1__COMMIT_REQUEST__INIT;
    Nui__Local__V1__CommitReply *reply = NULL;
    Nui__Local__V1__Part part;
    part_fill (&part, t);
    r.part = &part;
    if (site_call (s->as_meta, "Commit", &r, &reply, err) != 0)
        return -1;
    int outcome = (int)reply->outcome;
    if (name)
        snprintf (name, 64, "%s", reply->reservation_id);
    free_message (reply);
    return outcome;
}

static int commit (struct site *s, struct try *t)
{
    return commit_try (s, t, NULL, NULL);
}

/* 1: was held, 2: refused as firm. */
static int abort_it (struct site *s, struct try *t)
{
    Nui__Local__V1__AbortRequest r = NUI__LOCAL__V1__ABORT_REQUEST__INIT;
    Nui__Local__V1__AbortReply *reply = NULL;
    Nui__Local__V1__Part part;
    part_fill (&part, t);
    r.part = &part;
    assert_int_equal (site_call (s->as_meta, "Abort", &r, &reply, NULL), 0);
    int result = (reply->was_held ? 1 : 0) + (reply->refused_firm ? 2 : 0);
    free_message (reply);
    return result;
}

/* "": accepted, else the code of the refusal. */
static void start_it (struct site *s, struct try *t, const void *with, size_t len, time_us at,
                      char code[64])
{
    Nui__Local__V1__StartRequest r = NUI__LOCAL__V1__START_REQUEST__INIT;
    Nui__Local__V1__StartReply *reply = NULL;
    Nui__Local__V1__Part part;
    Nui__Common__V1__Peer a = NUI__COMMON__V1__PEER__INIT, b = NUI__COMMON__V1__PEER__INIT;
    Nui__Common__V1__Peer *peers[] = {&a, &b};
    char *host = (char *)"127.0.0.1", *far = (char *)"10.0.0.2";
    struct err err = {0};
    part_fill (&part, t);
    a.component = (char *)"left";
    a.hosts = &host;
    a.n_hosts = 1;
    a.port = 21000;
    b.component = (char *)"right";
    b.hosts = &far;
    b.n_hosts = 1;
    b.port = 21210;
    r.part = &part;
    r.start_token.data = (uint8_t *)with;
    r.start_token.len = len;
    r.start_us = at;
    r.peers = peers;
    r.n_peers = 2;
    if (site_call (s->as_meta, "Start", &r, &reply, &err) != 0)
        fail_msg ("start: %s", err.text);
    snprintf (code, 64, "%s", reply->accepted ? "" : reply->reason->code);
    free_message (reply);
}

static bool ready_it (struct site *s, struct try *t)
{
    Nui__Local__V1__ReadyRequest r = NUI__LOCAL__V1__READY_REQUEST__INIT;
    Nui__Local__V1__ReadyReply *reply = NULL;
    Nui__Local__V1__Part part;
    part_fill (&part, t);
    r.part = &part;
    assert_int_equal (site_call (s->as_meta, "Ready", &r, &reply, NULL), 0);
    bool ready = reply->ready;
    free_message (reply);
    return ready;
}

static bool release_it (struct site *s, struct try *t)
{
    Nui__Local__V1__ReleaseRequest r = NUI__LOCAL__V1__RELEASE_REQUEST__INIT;
    Nui__Local__V1__ReleaseReply *reply = NULL;
    Nui__Local__V1__Part part;
    part_fill (&part, t);
    r.part = &part;
    assert_int_equal (site_call (s->as_meta, "Release", &r, &reply, NULL), 0);
    bool released = reply->released;
    free_message (reply);
    return released;
}

static void done (struct try *t)
{
    envelope_free (t->envelope);
}

static bool released_n (struct site *s, void *arg)
{
    return s->releases >= *(unsigned *)arg;
}

static void wait_releases (struct site *s, unsigned n)
{
    site_wait (s, released_n, &n, "holds given back to the bank");
}

/* What NUI_SECRET is to be for the token. */
static const char *secret_of_group (void)
{
    static char text[33];
    uint8_t sum[32], whole[10 + sizeof token];

    memcpy (whole, "nui secret", 10);
    memcpy (whole + 10, token, sizeof token);
    SHA256 (whole, sizeof whole, sum);
    for (int i = 0; i < 16; i++)
        snprintf (text + 2 * i, 3, "%02x", sum[i]);
    return text;
}

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
        T (query_gives_intervals),
        T (query_answers_for_sets),
        T (slot_right_after_a_stubborn_job),
        T (slot_of_a_job_that_waits_for_the_bank),
        T (storm_of_kills),
    };
    cmocka_set_test_filter (getenv ("NUI_TEST_ONLY"));
    return cmocka_run_group_tests (tests, site_group_setup, site_group_teardown);
}
