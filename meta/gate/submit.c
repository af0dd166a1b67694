/* Jobs on their way in: signed by their user, who sends the envelope, or with the gate's key by his delegation. The bounds are
 * checked here for a clear answer, and by metascheduler, site and bank because nobody believes a gate. */
#include "meta/gate/gate.h"

#include <stdlib.h>
#include <string.h>

#include "meta/gate/pbjson.h"
#include "proto/base/clock.h"
#include "proto/hash/sha256.h"
#include "proto/rpc/envelope.h"

typedef Nui__Common__V1__Job Job;
typedef Nui__Common__V1__Envelope Envelope;

/* Of the request, to know it again. */
static void digest_of (struct ask *ask, uint8_t out[SHA256_BYTES])
{
    EVP_MD_CTX *hash = sha256_begin ();
    sha256_add_part (hash, ask->url, strlen (ask->url));
    sha256_add_part (hash, ask->body.data ? ask->body.data : "", ask->body.len);
    sha256_end (hash, out);
}

static int number_of (struct ask *ask, const Job *job, uint32_t *out, struct err *err)
{
    const GateDelegation *says = ask->token->says;
    const char *key = ask_header (ask, "Idempotency-Key");
    uint8_t digest[SHA256_BYTES];
    *out = UINT32_MAX; /* a question's: no job has it */
    if (job->question)
        return 0;
    if (key && (!*key || strlen (key) > 200))
        return err_set (err, ERR_INVALID, "Idempotency-Key: wanted 1 to 200 characters");
    digest_of (ask, digest);
    return numbers_take (ask->gate->numbers, says, key, digest, clock_now_us (), out, err);
}

/* In the arena: a copy that the job may be given. */
static char *text (struct ask *ask, const char *from)
{
    return arena_strdup (ask->arena, from);
}

static void job_complete (struct ask *ask, Job *job)
{
    const struct token *token = ask->token;
    char uri[PRINCIPAL_URI_MAX];
    time_us now = clock_now_us (), created = token->says->created_us;
    job->grid = text (ask, token->user.grid);
    job->submitter = text (ask, principal_uri (&token->user, uri));
    job->created_us = now > created ? now : created;
    if (job->expires_us <= 0 || job->expires_us > token->says->expires_us)
        job->expires_us = token->says->expires_us;
    if (job->question)
        return;
    if (job->cost_max_micro <= 0)
        job->cost_max_micro = token->says->cost_max_micro;
    if (!job->account[0] && token->says->n_accounts)
        job->account = text (ask, token->says->accounts[0]);
    for (size_t c = 0; c < job->n_components && token->says->n_sites; c++)
        if (!job->components[c]->n_sites) { /* anywhere: where the delegation lets it */
            job->components[c]->n_sites = token->says->n_sites;
            job->components[c]->sites = token->says->sites;
        }
}

/* As that number of the delegation. */
static int sign_as (struct ask *ask, Job *job, uint32_t number, Envelope **out, struct err *err)
{
    const struct token *token = ask->token;
    uint8_t *uuid = arena_array (ask->arena, 16, 1), *body;
    Envelope *envelope = NULL;
    memcpy (uuid, token->says->series.data, GATEDELEG_SERIES);
    for (int i = 0; i < 4; i++)
        uuid[12 + i] = (uint8_t)(number >> (24 - 8 * i));
    job->uuid = (ProtobufCBinaryData){16, uuid};
    size_t len = nui__common__v1__job__get_packed_size (job);
    body = malloc (len + 1);
    if (!body)
        abort ();
    nui__common__v1__job__pack (job, body);
    int rc = envelope_sign (ask->gate->id, body, len, &envelope, err);
    free (body);
    if (rc < 0)
        return rc;
    envelope->gate_delegation.data = malloc (token->delegation.len);
    if (!envelope->gate_delegation.data)
        abort ();
    memcpy (envelope->gate_delegation.data, token->delegation.data, token->delegation.len);
    envelope->gate_delegation.len = token->delegation.len;
    *out = envelope;
    return 0;
}

int submit_sign (struct ask *ask, Job *job, Envelope **out, struct err *err)
{
    struct principal user;
    uint32_t number;
    Envelope *tried = NULL;
    if (job->n_indexes)
        return err_set (err, ERR_DENIED, "a gate cannot sign an array: sign it yourself");
    if (!job->question && ask->token->says->jobs_max == 0)
        return err_set (err, ERR_DENIED,
                        "the delegation lets the gate sign no job: send a signed one, or make a "
                        "delegation with nui delegate --jobs");
    job_complete (ask, job);
    /* Before a number is taken for it. */
    int rc = sign_as (ask, job, 0, &tried, err);
    if (rc == 0)
        rc = envelope_verify (ask->gate->id, tried, clock_now_us (), &user, err);
    envelope_free (tried);
    if (rc == ERR_UNAUTHENTIC) /* who asks is known; what is asked is beyond the delegation */
        return err->code = ERR_DENIED;
    if (rc == 0)
        rc = number_of (ask, job, &number, err);
    return rc < 0 ? rc : sign_as (ask, job, number, out, err);
}

/* ---- nui/jobs, nui/estimate */

struct sending {
    Envelope *envelope;
    void (*then) (struct ask *ask, const struct rpc_result *result);
};

static void send_done (struct ask *ask, const struct rpc_result *result)
{
    struct sending *sending = ask->more;
    sending->then (ask, result);
    envelope_free (sending->envelope);
}

static void send_begin (struct ask *ask, Envelope *envelope, bool estimate,
                        void (*then) (struct ask *ask, const struct rpc_result *result))
{
    struct sending *sending = arena_array (ask->arena, 1, sizeof *sending);
    *sending = (struct sending){envelope, then};
    ask->more = sending;
    if (estimate) {
        Nui__Meta__V1__EstimateRequest *request = arena_array (ask->arena, 1, sizeof *request);
        nui__meta__v1__estimate_request__init (request);
        request->envelope = envelope;
        ask_call (ask, &nui__meta__v1__meta__descriptor, "Estimate", &request->base, send_done);
        return;
    }
    Nui__Meta__V1__SubmitRequest *request = arena_array (ask->arena, 1, sizeof *request);
    nui__meta__v1__submit_request__init (request);
    request->envelope = envelope;
    request->keyed = json_is_true (json_object_get (ask->json, "keyed")) ||
                     (envelope->gate_delegation.len && ask_header (ask, "Idempotency-Key"));
    ask_call (ask, &nui__meta__v1__meta__descriptor, "Submit", &request->base, send_done);
}

void submit_send (struct ask *ask, Job *job,
                  void (*then) (struct ask *ask, const struct rpc_result *result))
{
    struct err err = {0};
    Envelope *envelope = NULL;
    if (submit_sign (ask, job, &envelope, &err) < 0)
        ask_fail (ask, &err);
    else
        send_begin (ask, envelope, false, then);
}

static void nui_done (struct ask *ask, const struct rpc_result *result)
{
    bool made = result->status == RPC_OK &&
                result->reply->descriptor == &nui__meta__v1__submit_reply__descriptor;
    if (result->status == RPC_OK)
        ask_json (ask, made ? MHD_HTTP_CREATED : MHD_HTTP_OK, pbjson_write (result->reply));
    else
        ask_failed (ask, result);
}

static void *arena_give (void *arena, size_t bytes)
{
    return arena_alloc (arena, bytes);
}

static void arena_keep (void *arena, void *bytes)
{
    (void)arena, (void)bytes;
}

/* A job as it was written, in the arena. NULL with err. */
static Job *job_read (struct ask *ask, json_t *json, struct err *err)
{
    ProtobufCAllocator allocator = {arena_give, arena_keep, ask->arena};
    ProtobufCMessage *read = pbjson_read (&nui__common__v1__job__descriptor, json, err);
    if (!read)
        return NULL;
    size_t len = protobuf_c_message_get_packed_size (read);
    uint8_t *bytes = arena_alloc (ask->arena, len + 1);
    protobuf_c_message_pack (read, bytes);
    protobuf_c_message_free_unpacked (read, NULL);
    Job *job = nui__common__v1__job__unpack (&allocator, len, bytes);
    if (!job)
        err_set (err, ERR_INVALID, "job: it holds text that is not UTF-8");
    return job;
}

/* {"job": {...}}: signed by the gate; {"envelope": {...}}: as its user signed it, with "keyed" as of SubmitRequest. */
static void body_send (struct ask *ask, bool estimate)
{
    struct err err = {0};
    json_t *given = json_object_get (ask->json, "envelope");
    json_t *plain = json_object_get (ask->json, "job");
    Envelope *envelope = NULL;
    if (!given == !plain) {
        ask_problem (ask, MHD_HTTP_BAD_REQUEST, "wanted an object with either envelope or job");
        return;
    }
    if (given)
        envelope = (Envelope *)pbjson_read (&nui__common__v1__envelope__descriptor, given, &err);
    Job *job = plain ? job_read (ask, plain, &err) : NULL;
    if (job) {
        job->question |= estimate;
        if (submit_sign (ask, job, &envelope, &err) < 0) {
            ask_fail (ask, &err);
            return;
        }
    }
    if (envelope)
        send_begin (ask, envelope, estimate, nui_done);
    else
        ask_problem (ask, MHD_HTTP_BAD_REQUEST, "%s", err.text);
}

void submit_run (struct ask *ask)
{
    body_send (ask, false);
}

void estimate_run (struct ask *ask)
{
    body_send (ask, true);
}
