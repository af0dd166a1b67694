/* Shared inside bank/svc. */
#ifndef NUI_BANK_SVC_SERVICE_IMPL_H
#define NUI_BANK_SVC_SERVICE_IMPL_H

#include "bank/store/committer.h"
#include "bank/store/auditread.h"
#include "bank/store/checkpoint.h"
#include "bank/svc/metrics.h"
#include "bank/svc/service.h"
#include "bank/svc/verified.h"
#include "proto/nui/v1/bank.pb-c.h"
#include "proto/job/delegation.h"

struct bank_service {
    struct event_base *base;
    struct log *log;
    struct tlsid *id;
    struct rpcserver *server;
    struct committer *committer;
    struct reader *reader;
    struct checkpointer *checkpointer;
    char *database;
    struct bank_limits limits;
    struct expiry *expiry;
    struct state *state;
    struct notify *notify;
    struct near *near;
    struct metrics *metrics;
    struct verified *verified;
    bool clock_ahead;                /* nothing is written: see store/moment.h */
    struct strbuf signer, signature; /* of the last block: see audit_sign */
};

/* One call on its way. Strings of the request are pointed to: the call keeps it valid. */
struct work {
    struct bank_service *svc;
    struct rpccall *call;
    struct arena *arena;
    const ProtobufCMessageDescriptor *reply; /* of a writing call */
    struct ledger_request req;
    const void *request;                        /* the protobuf-c message */
    const Nui__Common__V1__Envelope *unchecked; /* of the job: see job_signed; else NULL */
    struct err err;                             /* of a writing call that is being read */
    struct ledger_quote quote; /* of a request that keeps its rates: not answered */
    duration_us submitted;     /* to the writer, monotonic */
    time_us now, from, to;
    Nui__Bank__V1__GrantStatementReply *statement; /* on its way */
    Nui__Bank__V1__StateRow **rows;                /* likewise, of a proof */
    size_t row_count;
};

struct work *work_create (struct bank_service *svc, struct rpccall *call, const void *request);
/* Answers with err and frees. */
void work_fail (struct work *work, const struct err *err);
/* The same when there is an error; else false, and nothing is done. */
bool work_failed (struct work *work, const struct err *err);
/* Answers and frees. */
void work_reply (struct work *work, const ProtobufCMessage *reply);

/* ---- requests.c: from messages to ledger requests ---- */

/* Verifies an envelope at a moment (0: now) and parses its job; job_close frees it. ERR_UNAUTHENTIC
 * when the signature, the chain or the submitter does not hold. *delegation (may be NULL) says what the job's is
 * worth. */
int job_open (struct work *work, const Nui__Common__V1__Envelope *envelope, time_us at,
              char **signer_uri_out, Nui__Common__V1__Job **job_out, struct delegation *delegation,
              struct err *err);
void job_close (Nui__Common__V1__Job *job);
/* What rates look at; ERR_INVALID for amounts out of bounds, ERR_LIMIT for too many gres. */
int asked_read (struct work *work, const Nui__Bank__V1__Asked *asked, const char *qos,
                const char *class_, struct ledger_ask *ask, struct err *err);
int text_check (const char *what, const char *text, size_t max, struct err *err);

/* ---- signedjob.c: what a signed job says ---- */

enum { BANK_GRES_MAX = 32 };

/* What is asked for with it: a part, in one of its sizes, at a site, as the job of a metascheduler ("": not said) or of
 * a group of them. */
struct signed_use {
    const char *component;
    uint32_t shape;
    const char *site, *meta;
    bool group;
};
/* All of ask that the job says, and what bounds it. ERR_INVALID for another grid, a part or a size that it does not
 * have, ERR_DENIED for a site that it does not name. */
int signed_read (struct work *work, const Nui__Common__V1__Envelope *envelope,
                 const Nui__Common__V1__Job *job, const struct signed_use *use,
                 const struct delegation *delegation, struct ledger_hold_ask *ask, struct err *err);
/* How much of what was signed for, of a part in one of its sizes; a part or a size that the job does not have: nothing. */
void signed_bounds (const Nui__Common__V1__Job *job, const char *component, uint32_t shape,
                    struct ledger_bounds *out);
/* Memory, generic resources and quote as the user signed them; a component that the job does not have:
 * no resources. */
void asked_signed (struct work *work, const Nui__Common__V1__Job *job, const char *component,
                   uint32_t shape, struct ledger_ask *ask);
/* Whether the calling site may have the part of the signed job paid for: ERR_DENIED, with a sentence, where nobody who
 * may has chosen it. */
int handover_right (struct work *work, const Nui__Common__V1__Envelope *envelope,
                    const Nui__Common__V1__Job *job, const uint8_t hash[LEDGER_HASH_BYTES],
                    const Nui__Common__V1__Component *component, const char *site, struct err *err);
void handle_handover_key (void *self, struct rpccall *call, const ProtobufCMessage *request);
/* The quote that a job names. Text that is none is a quote that is not there: a charge is not refused
 * for it. */
void quote_named (const char *text, const char *job, struct ledger_ask *ask);

void handle_hold (void *self, struct rpccall *call, const ProtobufCMessage *request);
void handle_charge (void *self, struct rpccall *call, const ProtobufCMessage *request);
void handle_release (void *self, struct rpccall *call, const ProtobufCMessage *request);
void handle_hold_group (void *self, struct rpccall *call, const ProtobufCMessage *request);
void handle_extend (void *self, struct rpccall *call, const ProtobufCMessage *request);

/* ---- admin.c ---- */

void handle_project_create (void *self, struct rpccall *call, const ProtobufCMessage *request);
void handle_user_create (void *self, struct rpccall *call, const ProtobufCMessage *request);
void handle_member (void *self, struct rpccall *call, const ProtobufCMessage *request);
void handle_account_create (void *self, struct rpccall *call, const ProtobufCMessage *request);
void handle_account_modify (void *self, struct rpccall *call, const ProtobufCMessage *request);
void handle_deposit (void *self, struct rpccall *call, const ProtobufCMessage *request);
void handle_withdraw (void *self, struct rpccall *call, const ProtobufCMessage *request);
void handle_transfer (void *self, struct rpccall *call, const ProtobufCMessage *request);
void handle_refund (void *self, struct rpccall *call, const ProtobufCMessage *request);
void handle_allocation_modify (void *self, struct rpccall *call, const ProtobufCMessage *request);
void handle_site_set (void *self, struct rpccall *call, const ProtobufCMessage *request);
void handle_rate_set (void *self, struct rpccall *call, const ProtobufCMessage *request);

enum { DESCRIPTION_MAX_BYTES = 1024 };
/* An identity that the bank may know: a user of this grid. */
int user_check (const struct work *work, const char *identity, struct err *err);
/* "alloc.7"; "" is 0 where that is allowed. */
int number_parse (const char *prefix, const char *text, bool optional, int64_t *id_out,
                  struct err *err);
int scopes_read (struct work *work, Nui__Bank__V1__Scope **scopes, size_t count,
                 struct ledger_scopes *out, struct err *err);

/* ---- grants.c ---- */

void handle_funder_create (void *self, struct rpccall *call, const ProtobufCMessage *request);
void handle_grant (void *self, struct rpccall *call, const ProtobufCMessage *request);
void handle_split (void *self, struct rpccall *call, const ProtobufCMessage *request);
void handle_carry_forward (void *self, struct rpccall *call, const ProtobufCMessage *request);
void handle_expire (void *self, struct rpccall *call, const ProtobufCMessage *request);
void handle_account_close (void *self, struct rpccall *call, const ProtobufCMessage *request);
void handle_account_reopen (void *self, struct rpccall *call, const ProtobufCMessage *request);
void handle_freeze (void *self, struct rpccall *call, const ProtobufCMessage *request);
void handle_role_set (void *self, struct rpccall *call, const ProtobufCMessage *request);

/* ---- awards.c ---- */

void handle_split_back (void *self, struct rpccall *call, const ProtobufCMessage *request);
void handle_grant_extend (void *self, struct rpccall *call, const ProtobufCMessage *request);
void handle_grant_amend (void *self, struct rpccall *call, const ProtobufCMessage *request);
void handle_grant_revoke (void *self, struct rpccall *call, const ProtobufCMessage *request);
void handle_account_rename (void *self, struct rpccall *call, const ProtobufCMessage *request);
void handle_project_move (void *self, struct rpccall *call, const ProtobufCMessage *request);

/* Sets client, key and hash; ERR_INVALID for a key that is not 16 bytes. */
int request_begin (struct work *work, enum ledger_kind kind, const ProtobufCBinaryData *key,
                   const ProtobufCMessageDescriptor *reply, struct err *err);
/* Hands it to the committer; answers the call in the end. */
void request_submit (struct work *work);

/* ---- wants.c ---- */

/* A writing call: begun, then whatever must hold of it, then submitted; the first thing that does not hold is
 * the answer, and nothing after it is looked at. */
struct work *write_begin (void *self, struct rpccall *call, const ProtobufCMessage *request,
                          enum ledger_kind kind, const ProtobufCBinaryData *key,
                          const ProtobufCMessageDescriptor *reply);
static inline bool good (const struct work *work)
{
    return work->err.code == 0;
}
void want_name (struct work *work, const char *what, const char *name);
void want_text (struct work *work, const char *what, const char *text, size_t max);
void want_user (struct work *work, const char *identity);
void want_number (struct work *work, const char *prefix, const char *text, bool optional,
                  int64_t *id_out);
void write_submit (struct work *work);

/* ---- reads.c ---- */

void handle_quote (void *self, struct rpccall *call, const ProtobufCMessage *request);
void handle_balance (void *self, struct rpccall *call, const ProtobufCMessage *request);
void handle_statement (void *self, struct rpccall *call, const ProtobufCMessage *request);
/* Who looks: an identity, or "" for those who see everything. */
const char *viewer (struct work *work);
const char *viewer_site (struct work *work); /* a site that sees what is its own; NULL: none */
/* Reads a period into work->from and to; ERR_INVALID, or ERR_UNAVAILABLE while it is not settled.
 */
int period_read (struct work *work, time_us from, time_us to, const char *what, struct err *err);

/* ---- quotes.c ---- */

void handle_quote_list (void *self, struct rpccall *call, const ProtobufCMessage *request);
void handle_clock (void *self, struct rpccall *call, const ProtobufCMessage *request);
void handle_clock_accept (void *self, struct rpccall *call, const ProtobufCMessage *request);
void handle_quote_cancel (void *self, struct rpccall *call, const ProtobufCMessage *request);

/* ---- reports.c ---- */

void handle_usage (void *self, struct rpccall *call, const ProtobufCMessage *request);
void handle_hold_list (void *self, struct rpccall *call, const ProtobufCMessage *request);
void handle_usage_records (void *self, struct rpccall *call, const ProtobufCMessage *request);
void handle_job_list (void *self, struct rpccall *call, const ProtobufCMessage *request);

/* ---- funders.c ---- */

void handle_grant_list (void *self, struct rpccall *call, const ProtobufCMessage *request);
void handle_grant_statement (void *self, struct rpccall *call, const ProtobufCMessage *request);
void handle_role_list (void *self, struct rpccall *call, const ProtobufCMessage *request);

/* ---- recon.c ---- */

void handle_recon_record (void *self, struct rpccall *call, const ProtobufCMessage *request);
void handle_recon_set (void *self, struct rpccall *call, const ProtobufCMessage *request);
void handle_recon_list (void *self, struct rpccall *call, const ProtobufCMessage *request);

/* ---- audit.c ---- */

/* Signs a block's body with the bank's key, for the committer; arg is the service. */
int audit_sign (void *arg, const uint8_t body[BLOCK_BYTES], struct seal_mark *mark,
                struct err *err);
Nui__Bank__V1__Block *block_message (struct arena *arena, const struct audit_block *block);
void handle_blocks (void *self, struct rpccall *call, const ProtobufCMessage *request);
void handle_operations (void *self, struct rpccall *call, const ProtobufCMessage *request);
void handle_contents (void *self, struct rpccall *call, const ProtobufCMessage *request);
/* Answers with the proof of an operation: its block, all operations of that, and its lines. */
void proof_give (struct work *work, int64_t id, const struct audit_block *block,
                 const struct audit_op *op, uint32_t count, const char *lines);

/* ---- state.c ---- */

struct state *state_create (struct bank_service *svc);
void state_destroy (struct state *state);
void state_settings (struct state *state); /* the service's, from now on */
/* Answers with the proof of an object: "account:phys". */
/* Answers a call for the newest block when that one, or a later one, says the state of all objects. */
void state_anchor (struct state *state, struct work *work);
void blocks_give (struct work *work);
void state_proof (struct state *state, struct work *work, const char *object);

void handle_proof (void *self, struct rpccall *call, const ProtobufCMessage *request);
void handle_ledger_check (void *self, struct rpccall *call, const ProtobufCMessage *request);

/* ---- reads.c ---- */

void handle_list (void *self, struct rpccall *call, const ProtobufCMessage *request);
void handle_rate_list (void *self, struct rpccall *call, const ProtobufCMessage *request);

/* ---- expiry.c: what time brings, looked for every EXPIRY_PERIOD_S: allocations that have ended, stale
 * holds, what sites failed ---- */

enum { EXPIRY_PERIOD_S = 10 };
struct expiry *expiry_create (struct bank_service *svc);
void expiry_destroy (struct expiry *expiry);
/* Looks now, not only in a while. NULL is a no-op. */
void expiry_wake (struct expiry *expiry);

/* ---- near.c: leads hear of allocations that are nearly used or over ---- */

struct near *near_create (struct bank_service *svc);
void near_destroy (struct near *near); /* after notify_destroy; NULL is a no-op */

/* ---- replies.c ---- */

void reply_encode (void *arg, const struct ledger_request *req, const struct ledger_outcome *out,
                   struct strbuf *bytes);
/* A quote that was answered; rates are kept until expires where id is not "". */
void reply_quote (struct arena *arena, const struct ledger_quote *quote, const char *id,
                  time_us expires, Nui__Bank__V1__QuoteReply *reply);
/* Candidates as messages in the arena. */
/* protobuf-c's strings are not const though it never writes them. */
static inline char *unconst (const char *text)
{
    return (char *)(uintptr_t)text;
}

#endif
