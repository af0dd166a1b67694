/* part_case: tries at parts of co-allocated jobs, as a metascheduler makes them at a site: prepared, committed, started, taken
 * back. */
#ifndef TESTS_UNIT_LOCAL_SVC_PART_CASE_H
#define TESTS_UNIT_LOCAL_SVC_PART_CASE_H

#include "site.h"

#include <openssl/sha.h>

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

static inline void part_fill (Nui__Local__V1__Part *part, struct try *t)
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

static inline void on_prepared (void *arg, const struct rpc_result *result)
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

static inline void prepare_send (struct site *s, struct try *t, struct waiting *w)
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

static inline bool is_done (struct site *s, void *arg)
{
    (void)s;
    return ((struct waiting *)arg)->done;
}

/* Sent again while the site is away. */
static inline Nui__Local__V1__PrepareReply *prepare_any (struct site *s, struct try *t,
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

static inline Nui__Local__V1__PrepareReply *prepare_reply (struct site *s, struct try *t)
{
    enum rpc_status status;
    Nui__Local__V1__PrepareReply *reply = prepare_any (s, t, &status);
    assert_int_equal (status, RPC_OK);
    return reply;
}

/* PREPARE that must be granted; the site's job id goes to id. */
static inline void prepare_yes (struct site *s, struct try *t, char id[64])
{
    Nui__Local__V1__PrepareReply *reply = prepare_reply (s, t);
    if (!reply->granted)
        fail_msg ("refused: %s: %s", reply->reason->code, reply->reason->text);
    snprintf (id, 64, "%s", reply->site_job_id);
    free_message (reply);
}

/* PREPARE that must be refused with this code. */
static inline time_us prepare_no (struct site *s, struct try *t, const char *code)
{
    Nui__Local__V1__PrepareReply *reply = prepare_reply (s, t);
    assert_false (reply->granted);
    assert_string_equal (reply->reason->code, code);
    time_us next = reply->next_feasible_us;
    free_message (reply);
    return next;
}

static inline int commit_try (struct site *s, struct try *t, char name[64], struct err *err)
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

static inline int commit (struct site *s, struct try *t)
{
    return commit_try (s, t, NULL, NULL);
}

/* 1: was held, 2: refused as firm. */
static inline int abort_it (struct site *s, struct try *t)
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
static inline void start_it (struct site *s, struct try *t, const void *with, size_t len,
                             time_us at, char code[64])
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

static inline bool ready_it (struct site *s, struct try *t)
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

static inline bool release_it (struct site *s, struct try *t)
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

static inline void done (struct try *t)
{
    envelope_free (t->envelope);
}

static inline bool released_n (struct site *s, void *arg)
{
    return s->releases >= *(unsigned *)arg;
}

static inline void wait_releases (struct site *s, unsigned n)
{
    site_wait (s, released_n, &n, "holds given back to the bank");
}

/* What NUI_SECRET is to be for the token. */
static inline const char *secret_of_group (void)
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

#endif
