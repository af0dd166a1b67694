/* What becomes of a part that was prepared: COMMIT, ABORT, READY, START, RELEASE. */
#include <assert.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

#include "local/svc/coalloc/coalloc.h"
#include "local/svc/files/staging.h"
#include "local/svc/job.h"
#include "local/svc/job/life.h"
#include "local/svc/nodes.h"
#include "local/svc/svc_i.h"
#include "proto/base/text.h"
#include "proto/hash/sha256.h"

enum { TOKEN_MAX = 256, PEERS_MAX = 1024 };

/* --- COMMIT and ABORT --------------------------------------------------------------------- */

static char *reservation_name (struct site_part *part, char *out, size_t cap)
{
    struct principal who;
    const char *name =
        principal_parse (part->job->rec.submitter, &who, NULL) == 0 ? who.name : "grid";
    snprintf (out, cap, "%s.%llu", name, (unsigned long long)part->rec.job);
    return out;
}

static int make_firm (struct site_part *part, struct err *err)
{
    struct svc *svc = part->svc;
    if (part->job->reserves)
        return reserve_firm (part, err);
    int rc = cluster_rsv_commit (svc->cluster, (struct rsv_id){part->rec.job}, svc_now (svc), err);
    if (rc != 0)
        return rc;
    part->rec.state = STORE_PART_FIRM;
    svc_reason (part->job, "Reserved", "waits for the start of its group");
    rc = svc_begin (svc, err);
    if (rc == 0)
        rc = local_store_part_put (svc->store, &part->rec, err);
    if (rc == 0)
        rc = svc_job_write (svc, part->job, true, NULL, 0, err);
    rc = svc_commit (svc, rc, err);
    if (rc != 0)
        part->rec.state = STORE_PART_PREPARED; /* the core's being firm already harms nobody */
    else {
        coalloc_timer_arm (part);
        staging_again (svc, part->job);
    }
    return rc;
}

void coalloc_commit (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct svc *svc = self;
    const Nui__Local__V1__CommitRequest *r = (const Nui__Local__V1__CommitRequest *)request;
    Nui__Local__V1__CommitReply reply = NUI__LOCAL__V1__COMMIT_REPLY__INIT;
    struct site_part *live;
    struct store_part old;
    struct err err = {0};
    char name[STORE_NAME_MAX * 2];
    int rc = 0;
    if (coalloc_part_of_call (svc, call, r->part, &live, &old) != 0)
        return;
    if (live && live->rec.state == STORE_PART_PREPARED && coalloc_lease_left (live) == 0) {
        rc = coalloc_part_end (live, STORE_PART_EXPIRED, "LeaseExpired",
                               "the lease ended before the commit", &err);
        reply.outcome = NUI__LOCAL__V1__COMMIT_REPLY__OUTCOME__EXPIRED;
    } else if (live && live->rec.state == STORE_PART_PREPARING) {
        rc = err_set (&err, ERR_CONFLICT, "this part is still being prepared");
    } else if (live) {
        if (live->rec.state == STORE_PART_PREPARED)
            rc = make_firm (live, &err);
        reply.outcome = NUI__LOCAL__V1__COMMIT_REPLY__OUTCOME__FIRM;
        reply.reservation_id = reservation_name (live, name, sizeof name);
    } else if (!old.state || old.state == STORE_PART_REFUSED) {
        reply.outcome = NUI__LOCAL__V1__COMMIT_REPLY__OUTCOME__UNKNOWN;
    } else if (old.state == STORE_PART_EXPIRED) {
        reply.outcome = NUI__LOCAL__V1__COMMIT_REPLY__OUTCOME__EXPIRED;
    } else if (old.state == STORE_PART_RELEASED) {
        /* It was firm; a commit that arrives after its end changes nothing. */
        reply.outcome = NUI__LOCAL__V1__COMMIT_REPLY__OUTCOME__FIRM;
    } else {
        reply.outcome = NUI__LOCAL__V1__COMMIT_REPLY__OUTCOME__ABORTED;
    }
    store_part_free (&old);
    rpccall_answer (call, rc, &reply.base, &err);
}

/* Nothing is here (yet): whatever PREPARE comes later must find that it was aborted. */
static int tombstone (struct svc *svc, struct rpccall *call, const Nui__Local__V1__Part *name,
                      struct err *err)
{
    struct store_part rec = {.state = STORE_PART_ABORTED, .attempt = name->attempt};
    memcpy (rec.transaction, name->transaction.data, sizeof rec.transaction);
    snprintf (rec.component, sizeof rec.component, "%s", name->component);
    text_printf (rec.caller, sizeof rec.caller, "%.63s", rpccall_peer (call)->name);
    int rc = svc_begin (svc, err);
    if (rc == 0)
        rc = local_store_part_put (svc->store, &rec, err);
    return svc_commit (svc, rc, err);
}

void coalloc_abort (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct svc *svc = self;
    const Nui__Local__V1__AbortRequest *r = (const Nui__Local__V1__AbortRequest *)request;
    Nui__Local__V1__AbortReply reply = NUI__LOCAL__V1__ABORT_REPLY__INIT;
    struct site_part *live;
    struct store_part old;
    struct err err = {0};
    int rc = 0;
    if (coalloc_part_of_call (svc, call, r->part, &live, &old) != 0)
        return;
    if (live && live->rec.state == STORE_PART_FIRM) {
        reply.refused_firm = true;
    } else if (live) {
        reply.was_held = live->rec.was_held = true;
        rc = coalloc_part_end (live, STORE_PART_ABORTED, "Aborted", "aborted by its coordinator",
                               &err);
    } else if (!old.state) {
        rc = tombstone (svc, call, r->part, &err);
    } else if (old.state == STORE_PART_RELEASED) {
        reply.refused_firm = true; /* it was */
    } else {
        reply.was_held = old.state == STORE_PART_ABORTED && old.was_held;
    }
    store_part_free (&old);
    rpccall_answer (call, rc, &reply.base, &err);
}

/* --- READY, START, RELEASE ---------------------------------------------------------------- */

/* Whether it could launch at its slot, with the reason why not. */
static bool part_ready (struct site_part *part, const char **code, const char **text)
{
    struct svc *svc = part->svc;
    arena_reset (svc->call_arena);
    struct allocation a = placement_parse (svc, part->job->rec.placement, svc->call_arena);
    const char *lost = substitute_lost_node (svc, &a);
    if (part->rec.state != STORE_PART_FIRM) {
        *code = "NotFirm";
        *text = "the part was not committed";
        return false;
    }
    if (part->job->reserves) /* it gets others by itself (SPACEFLEX) */
        return true;
    if (lost && !part->rec.start_accepted && !substitute_nodes (part)) {
        *code = "NodeDown";
        *text = arena_printf (svc->call_arena, "node %s is down, and no other is free for the slot",
                              lost);
        return false;
    }
    if (!staging_ready (part->job)) {
        *code = "StageIn";
        *text = staging_text (part->job, svc->call_arena);
        return false;
    }
    return a.count > 0;
}

/* A part that has ended for want of its files: the coordinator hears of that end soon, and need not look for
 * another place. True: *job is to be freed. */
static bool lacked_files (struct svc *svc, const struct store_part *old, struct store_job *job)
{
    if (!old->job || local_store_job_get (svc->store, old->job, job, NULL) != 0)
        return false;
    if (job->state == STORE_JOB_FAILED && strcmp (job->reason_code, "StageIn") == 0)
        return true;
    store_job_free (job);
    return false;
}

void coalloc_ready (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct svc *svc = self;
    const Nui__Local__V1__ReadyRequest *r = (const Nui__Local__V1__ReadyRequest *)request;
    Nui__Local__V1__ReadyReply reply = NUI__LOCAL__V1__READY_REPLY__INIT;
    Nui__Common__V1__Reason reason = NUI__COMMON__V1__REASON__INIT;
    const char *code = "Unknown", *text = "no such part is held here";
    struct site_part *live;
    struct store_part old;
    if (coalloc_part_of_call (svc, call, r->part, &live, &old) != 0)
        return;
    Nui__Local__V1__PrepareReply *yes = NULL;
    struct store_job job = {0};
    bool over = old.state == STORE_PART_RELEASED && old.start_accepted;
    if (!live && lacked_files (svc, &old, &job)) {
        code = job.reason_code;
        text = job.reason_text;
    }
    reply.ready = over || (live && part_ready (live, &code, &text));
    reply.started = over || (live && live->rec.start_accepted);
    if (reply.ready && live) { /* perhaps on other nodes than it said */
        yes = nui__local__v1__prepare_reply__unpack (NULL, live->rec.answer_len, live->rec.answer);
        reply.peer = yes ? yes->peer : NULL;
        if (yes)
            reply.site_job_id = yes->site_job_id;
    } else if (!reply.ready) {
        reason.code = (char *)code;
        reason.text = (char *)text;
        reply.reason = &reason;
    }
    store_part_free (&old);
    rpccall_reply (call, &reply.base);
    store_job_free (&job);
    if (yes)
        nui__local__v1__prepare_reply__free_unpacked (yes, NULL);
}

static void reply_start (struct rpccall *call, const char *code, const char *text)
{
    Nui__Local__V1__StartReply reply = NUI__LOCAL__V1__START_REPLY__INIT;
    Nui__Common__V1__Reason reason = NUI__COMMON__V1__REASON__INIT;
    reply.accepted = code == NULL;
    reason.code = (char *)code;
    reason.text = (char *)text;
    reply.reason = code ? &reason : NULL;
    rpccall_reply (call, &reply.base);
}

/* NULL: it may start. rec: of a part that is here, or that was started and is over; launch_at: when it was to start. */
static const char *start_refusal (const struct svc *svc, const struct site_part *live,
                                  const struct store_part *rec, time_us launch_at,
                                  const Nui__Local__V1__StartRequest *r, const char *caller,
                                  const char **text)
{
    uint8_t hash[STORE_HASH_LEN];
    const struct settings *s = svc->settings;
    if (r->start_token.len == 0 || r->start_token.len > TOKEN_MAX) {
        *text = "the start token does not fit the prepared hash";
        return "BadToken";
    }
    sha256 (r->start_token.data, r->start_token.len, hash);
    if (CRYPTO_memcmp (hash, rec->token_hash, sizeof hash) != 0) {
        *text = "the start token does not fit the prepared hash";
        return "BadToken";
    }
    if (rec->start_accepted) {
        *text = "it was started before, for another moment";
        /* Another of the group goes on without knowing the moment: this part has started. */
        return launch_at == r->start_us || strcmp (rec->caller, caller) != 0 ? ""
                                                                             : "AlreadyStarted";
    }
    if (rec->state != STORE_PART_FIRM) {
        *text = "the part was not committed";
        return "NotFirm";
    }
    if (live && instead_started (live)) {
        *text = "the group was started in another slot";
        return "Moved";
    }
    if (r->n_peers > PEERS_MAX) {
        *text = "too many peers";
        return "Limit";
    }
    if (r->start_us < rec->slot_start - s->clock_tolerance ||
        r->start_us > rec->slot_start + s->start_grace) {
        *text = "the moment of the start lies outside the reserved slot";
        return "OutsideSlot";
    }
    return NULL;
}

static int start_write (struct svc *svc, struct site_part *part,
                        const Nui__Local__V1__StartRequest *r, struct err *err)
{
    struct site_job *job = part->job;
    free (part->rec.start);
    part->rec.start_len = nui__local__v1__start_request__get_packed_size (r);
    part->rec.start = malloc (part->rec.start_len + 1);
    assert (part->rec.start);
    nui__local__v1__start_request__pack (r, part->rec.start);
    part->rec.start_accepted = true;
    job->rec.launch_at = r->start_us;
    job->rec.state = STORE_JOB_STARTING;
    svc_reason (job, "Starting", "starts at the moment its group agreed on");
    int rc = svc_begin (svc, err);
    if (rc == 0)
        rc = local_store_part_put (svc->store, &part->rec, err);
    if (rc == 0)
        rc = svc_job_write (svc, job, true, NULL, 0, err);
    rc = svc_commit (svc, rc, err);
    if (rc != 0) {
        part->rec.start_accepted = false;
        job->rec.launch_at = 0;
        job->rec.state = STORE_JOB_RESERVED;
    }
    return rc;
}

/* Of a part that is over; any: its job is no longer known. */
static time_us launched_at (struct svc *svc, const struct store_part *old, time_us any)
{
    struct store_job rec = {0};
    time_us at = local_store_job_get (svc->store, old->job, &rec, NULL) == 0 ? rec.launch_at : any;
    store_job_free (&rec);
    return at;
}

void coalloc_start (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct svc *svc = self;
    const Nui__Local__V1__StartRequest *r = (const Nui__Local__V1__StartRequest *)request;
    const char *caller = rpccall_peer (call)->name, *code = "Unknown";
    const char *text = "no such part is held here";
    struct site_part *live;
    struct store_part old;
    struct err err = {0};
    if (coalloc_part_of_call (svc, call, r->part, &live, &old) != 0)
        return;
    if (live)
        code = start_refusal (svc, live, &live->rec, live->job->rec.launch_at, r, caller, &text);
    else if (old.state == STORE_PART_RELEASED &&
             old.start_accepted) /* perhaps the answer was lost */
        code =
            start_refusal (svc, NULL, &old, launched_at (svc, &old, r->start_us), r, caller, &text);
    store_part_free (&old);
    if (code) {
        reply_start (call, *code ? code : NULL, text);
        return;
    }
    if (live->job->reserves) {
        int failed = reserve_start (live, r, &err);
        if (failed) {
            rpccall_fail (call, &err);
        } else {
            coalloc_timer_arm (live);
            reply_start (call, NULL, "");
        }
        return;
    }
    if (instead_end (live, &err) != 0 || start_write (svc, live, r, &err) != 0) {
        rpccall_fail (call, &err);
        return;
    }
    coalloc_timer_arm (live);
    if (life_launch (svc, live->job, &err) != 0) {
        svc_reason (live->job, "RMFailure", "could not be started: %s", err.text);
        reply_start (call, "RMFailure", err.text);
        life_end_surely (svc, live->job, STORE_JOB_FAILED);
        return;
    }
    reply_start (call, NULL, "");
}

/* One that has ended. */
static bool part_ran (struct svc *svc, const struct store_part *old)
{
    struct store_job rec = {0};
    bool ran = old->state && old->job &&
               local_store_job_get (svc->store, old->job, &rec, NULL) == 0 && rec.start != 0;
    store_job_free (&rec);
    return ran;
}

void coalloc_release (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct svc *svc = self;
    const Nui__Local__V1__ReleaseRequest *r = (const Nui__Local__V1__ReleaseRequest *)request;
    Nui__Local__V1__ReleaseReply reply = NUI__LOCAL__V1__RELEASE_REPLY__INIT;
    struct site_part *live;
    struct store_part old;
    struct err err = {0};
    char code[STORE_NAME_MAX], text[400];
    int rc = 0;
    if (coalloc_part_of_call (svc, call, r->part, &live, &old) != 0)
        return;
    text_printf (code, sizeof code, "%.63s",
                 r->reason && *r->reason->code ? r->reason->code : "Released");
    text_printf (text, sizeof text, "%.390s",
                 r->reason && *r->reason->text ? r->reason->text : "released by its coordinator");
    reply.started = live ? live->job->rec.start != 0 : part_ran (svc, &old);
    uint64_t number = live ? live->job->rec.number : 0;
    if (live) {
        reply.released = true;
        if (live->rec.state < STORE_PART_FIRM)
            rc = coalloc_part_end (live, STORE_PART_ABORTED, code, text, &err);
        else
            rc = life_cancel (svc, live->job, code, text, &err);
    } else if (!old.state) {
        rc = tombstone (svc, call, r->part, &err);
    }
    store_part_free (&old);
    const struct site_job *left =
        rc == 0 && r->until_ended && number ? svc_job (svc, number) : NULL;
    if (left && left->rec.start && !left->rec.end)
        rc = err_set (&err, ERR_UNAVAILABLE, "its processes are being ended");
    rpccall_answer (call, rc, &reply.base, &err);
}
