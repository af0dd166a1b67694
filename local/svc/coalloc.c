/* The site's side of co-allocation (reference/co-allocation.md). Every answer is durable before it is
 * given; (transaction, component, attempt) finds it again; a lease is a duration on our own
 * monotonic clock from receipt. */
#include <assert.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

#include "local/svc/gridpolicy.h"
#include "local/svc/replay.h"
#include "local/svc/staging.h"
#include "proto/base/clock.h"
#include "proto/hash/sha256.h"

enum { TOKEN_MAX = 256, PEERS_MAX = 1024 };

duration_us coalloc_duration (const struct svc *svc, duration_us walltime)
{
    return walltime + svc->settings->start_grace;
}

static duration_us lease_left (const struct site_part *part)
{
    if (strcmp (part->rec.boot_id, part->svc->boot_id) != 0)
        return 0; /* the machine was restarted: how long it was off nobody knows */
    duration_us left = part->rec.lease_end_boottime - clock_monotonic_us ();
    return left > 0 ? left : 0;
}

/* --- finding the part a request names ----------------------------------------------------- */

static struct site_part *part_live (struct svc *svc, const Nui__Local__V1__Part *name)
{
    struct site_part *part, *next;
    HASH_ITER (hh, svc->parts, part, next)
    if (part->rec.attempt == name->attempt &&
        memcmp (part->rec.transaction, name->transaction.data, STORE_TRANSACTION_LEN) == 0 &&
        strcmp (part->rec.component, name->component) == 0)
        return part;
    return NULL;
}

static int part_name_check (const Nui__Local__V1__Part *name, struct err *err)
{
    if (!name || name->transaction.len != STORE_TRANSACTION_LEN)
        return err_set (err, ERR_INVALID, "a part is named by a transaction of %d bytes, a "
                                          "component and an attempt", STORE_TRANSACTION_LEN);
    return name_check ("component", name->component, err);
}

int svc_epoch_compare (struct svc *svc, const uint8_t *of, uint64_t epoch, bool *newer, struct err *err)
{
    uint64_t seen;
    int rc = local_store_epoch_get (svc->store, of, &seen, err);
    if (rc != 0)
        return rc;
    *newer = epoch > seen;
    return epoch >= seen ? 0
                         : err_set (err, ERR_CONFLICT, "epoch %llu is older than %llu, seen before",
                                    (unsigned long long)epoch, (unsigned long long)seen);
}

/* Fences an old coordinator; a newer epoch is remembered before anything is answered under it. */
static int epoch_check (struct svc *svc, const Nui__Local__V1__Part *name, struct err *err)
{
    bool newer;
    int rc = svc_epoch_compare (svc, name->transaction.data, name->epoch, &newer, err);
    if (rc != 0 || !newer)
        return rc;
    rc = svc_begin (svc, err);
    if (rc == 0)
        rc = local_store_epoch_put (svc->store, name->transaction.data, name->epoch, err);
    return svc_commit (svc, rc, err);
}

/* A part belongs to who prepared it, or to its group. */
static int caller_check (struct svc *svc, const struct rpccall *call, const char *owner,
                         struct err *err)
{
    const char *caller = rpccall_peer (call)->name;
    if (!owner[0] || settings_speaks_for (svc->settings, caller, owner))
        return 0;
    return err_set (err, ERR_DENIED, "this part is metascheduler %s's, and %s is not of its group "
                                     "(METAGROUP)", owner, caller);
}

/* What every request but PREPARE begins with. 0: *live (may be NULL) and *old (state 0 when nothing
 * is stored) are set; the caller frees *old. Otherwise the call has been answered. */
static int part_of_call (struct svc *svc, struct rpccall *call, const Nui__Local__V1__Part *name,
                         struct site_part **live, struct store_part *old)
{
    struct err err = {0};
    *live = NULL;
    *old = (struct store_part){0};
    int rc = part_name_check (name, &err);
    if (rc != 0)
        goto fail;
    *live = part_live (svc, name);
    if (!*live) {
        rc = local_store_part_get (svc->store, name->transaction.data, name->component,
                                   name->attempt, old, &err);
        if (rc != 0 && rc != ERR_NOT_FOUND)
            goto fail;
    }
    rc = caller_check (svc, call, *live ? (*live)->rec.caller : old->caller, &err);
    if (rc == 0)
        rc = epoch_check (svc, name, &err);
    if (rc == 0)
        return 0;
    store_part_free (old);
fail:
    if (rc == ERR_CONFLICT) /* fenced: not to be asked again */
        rpccall_finish (call, RPC_ABORTED, err.text);
    else
        rpccall_fail (call, &err);
    return rc;
}

/* --- answers ------------------------------------------------------------------------------ */

static void reply_no (struct rpccall *call, const char *code, const char *text, time_us next)
{
    Nui__Local__V1__PrepareReply reply = NUI__LOCAL__V1__PREPARE_REPLY__INIT;
    Nui__Common__V1__Reason reason = NUI__COMMON__V1__REASON__INIT;
    reason.code = (char *)code;
    reason.text = (char *)text;
    reply.reason = &reason;
    reply.next_feasible_us = next;
    rpccall_reply (call, &reply.base);
}

static void waiters_no (struct site_part *part, const char *code, const char *text)
{
    for (uint32_t i = 0; i < part->waiter_count; i++)
        reply_no (part->waiter[i], code, text, 0);
    part->waiter_count = 0;
}

static void pack_answer (struct store_part *part, const Nui__Local__V1__PrepareReply *reply)
{
    free (part->answer);
    part->answer_len = nui__local__v1__prepare_reply__get_packed_size (reply);
    part->answer = malloc (part->answer_len + 1);
    assert (part->answer);
    nui__local__v1__prepare_reply__pack (reply, part->answer);
}

/* The stored answer again, with what is left of the lease. */
static void reply_stored (struct rpccall *call, const struct store_part *rec, duration_us left)
{
    Nui__Local__V1__PrepareReply *reply =
        rec->answer ? nui__local__v1__prepare_reply__unpack (NULL, rec->answer_len, rec->answer)
                    : NULL;
    if (!reply) {
        rpccall_finish (call, RPC_INTERNAL, "the stored answer cannot be read");
        return;
    }
    reply->lease_left_us = left;
    rpccall_reply (call, &reply->base);
    nui__local__v1__prepare_reply__free_unpacked (reply, NULL);
}

/* --- timers ------------------------------------------------------------------------------- */

static void on_timer (evutil_socket_t fd, short what, void *arg);

void coalloc_timer_arm (struct site_part *part)
{
    const struct settings *s = part->svc->settings;
    duration_us d;
    if (!part->timer)
        part->timer = evtimer_new (part->svc->base, on_timer, part);
    evtimer_del (part->timer);
    switch (part->rec.state) {
    case STORE_PART_PREPARING:
        d = lease_left (part) < s->bank_patience ? lease_left (part) : s->bank_patience;
        break;
    case STORE_PART_PREPARED:
        d = lease_left (part);
        break;
    case STORE_PART_FIRM:
        if (part->rec.start_accepted)
            return;
        d = part->rec.slot_start + s->start_grace - svc_now (part->svc);
        if (d > 60 * US_PER_S)
            d = 60 * US_PER_S; /* looked at again: the wall clock may be set */
        break;
    default:
        return;
    }
    d = d > 0 ? d : 0;
    struct timeval t = {.tv_sec = d / US_PER_S, .tv_usec = d % US_PER_S};
    evtimer_add (part->timer, &t);
}

/* Ends a part that is not running, in this state, with this reason. Frees it. */
static int part_end (struct site_part *part, enum store_part_state state, const char *code,
                     const char *text, struct err *err)
{
    struct svc *svc = part->svc;
    enum store_part_state before = part->rec.state;
    part->rec.state = state;
    svc_reason (part->job, code, "%s", text);
    struct rpccall *waiter[PART_WAITERS_MAX];
    uint32_t count = part->waiter_count;
    memcpy (waiter, part->waiter, sizeof waiter);
    int rc = life_end_unstarted (svc, part->job,
                                 state == STORE_PART_REFUSED ? STORE_JOB_REFUSED
                                                             : STORE_JOB_CANCELLED, err);
    if (rc != 0) {
        part->rec.state = before;
        return rc;
    }
    for (uint32_t i = 0; i < count; i++)
        reply_no (waiter[i], code, text, 0);
    return 0;
}

static void part_refuse (struct site_part *part, const char *code, const char *text)
{
    struct err err = {0};
    Nui__Local__V1__PrepareReply reply = NUI__LOCAL__V1__PREPARE_REPLY__INIT;
    Nui__Common__V1__Reason reason = NUI__COMMON__V1__REASON__INIT;
    reason.code = (char *)code;
    reason.text = (char *)text;
    reply.reason = &reason;
    pack_answer (&part->rec, &reply);
    if (part_end (part, STORE_PART_REFUSED, code, text, &err) != 0) {
        waiters_no (part, "StoreFailure", err.text);
        daemon_stop (part->svc->daemon, &err);
    }
}

static void on_timer (evutil_socket_t fd, short what, void *arg)
{
    struct site_part *part = arg;
    struct svc *svc = part->svc;
    struct err err = {0};
    int rc = 0;
    (void)fd;
    (void)what;
    if (part->rec.state == STORE_PART_PREPARING && lease_left (part) > 0) {
        part_refuse (part, "BankUnavailable", "the bank did not answer in time");
        return;
    }
    if (part->rec.state == STORE_PART_FIRM) {
        if (svc_now (svc) < part->rec.slot_start + svc->settings->start_grace) {
            coalloc_timer_arm (part);
            return;
        }
        log_event (svc->log, LOG_LEVEL_WARN, "coalloc", "no_show", "job=%llu",
                   (unsigned long long)part->rec.job);
        rc = part_end (part, STORE_PART_RELEASED, "NoShow",
                       "no start was asked for before the slot's grace was over", &err);
    } else {
        log_event (svc->log, LOG_LEVEL_INFO, "coalloc", "lease_ended", "job=%llu",
                   (unsigned long long)part->rec.job);
        rc = part_end (part, STORE_PART_EXPIRED, "LeaseExpired",
                       "the lease ended before the commit", &err);
    }
    if (rc != 0) /* a full disk, say: tried again, the hold must not outlive its lease for long */
        evtimer_add (part->timer, &(struct timeval){.tv_sec = 1});
}

/* --- PREPARE ------------------------------------------------------------------------------ */

/* The same (transaction, component, attempt) must mean the same. The epoch may be a newer one. */
static void request_hash (const Nui__Local__V1__PrepareRequest *r, uint8_t out[STORE_HASH_LEN])
{
    uint8_t body[SHA256_BYTES];
    sha256 (r->envelope ? r->envelope->body.data : NULL, r->envelope ? r->envelope->body.len : 0,
            body);
    EVP_MD_CTX *hash = sha256_begin ();
    sha256_add (hash, body, sizeof body);
    sha256_add (hash, &r->slot_start_us, sizeof r->slot_start_us);
    sha256_add (hash, r->grid_job_id, strlen (r->grid_job_id) + 1);
    sha256_add (hash, r->start_token_hash.data, r->start_token_hash.len);
    sha256_add (hash, &r->shape, sizeof r->shape);
    sha256_end (hash, out);
}

static int cap_check (struct svc *svc, const char *meta, const struct jobspec *spec,
                      struct err *err)
{
    const struct settings_cap *cap = settings_cap_of (svc->settings, meta);
    struct site_part *part, *next;
    int64_t holds = 1, seconds;
    int64_t each = coalloc_duration (svc, spec->walltime) / US_PER_S;
    if (__builtin_mul_overflow (each, (int64_t)spec->procs, &seconds))
        seconds = INT64_MAX;
    HASH_ITER (hh, svc->parts, part, next)
    {
        int64_t s = part->job->rec.walltime / US_PER_S * (int64_t)part->job->rec.procs;
        if (part->rec.start_accepted || strcmp (part->rec.caller, meta) != 0)
            continue;
        holds++;
        if (__builtin_add_overflow (seconds, s, &seconds))
            seconds = INT64_MAX;
    }
    if (holds > cap->holds)
        return err_set (err, ERR_LIMIT, "metascheduler %s may hold %lld reservations here", meta,
                        (long long)cap->holds);
    if (seconds > cap->procseconds)
        return err_set (err, ERR_LIMIT,
                        "metascheduler %s may hold %lld processor-seconds here, this would make %lld",
                        meta, (long long)cap->procseconds, (long long)seconds);
    return 0;
}

static int prepare_check (struct svc *svc, const Nui__Local__V1__PrepareRequest *r,
                          struct err *err)
{
    time_us now = svc_now (svc);
    if (r->start_token_hash.len != STORE_HASH_LEN)
        return err_set (err, ERR_INVALID, "the token hash has %d bytes", STORE_HASH_LEN);
    if (name_check ("grid job", r->grid_job_id, err) != 0)
        return ERR_INVALID;
    if (r->lease_us <= 0 || r->lease_us > svc->settings->lease_max)
        return err_set (err, ERR_INVALID, "a lease of %lld ms: this site gives up to %lld ms",
                        (long long)(r->lease_us / 1000),
                        (long long)(svc->settings->lease_max / 1000));
    if (r->slot_start_us < now - svc->settings->clock_tolerance)
        return err_set (err, ERR_INVALID, "the slot began %lld ms ago by this site's clock",
                        (long long)((now - r->slot_start_us) / 1000));
    if (r->slot_start_us > now + svc->settings->horizon)
        return err_set (err, ERR_INVALID, "the slot lies beyond this site's horizon");
    return 0;
}

/* Nodes for the slot, or what to say instead: *no is set and *next, when resources are short. */
static int slot_take (struct svc *svc, const struct jobspec *spec, uint64_t number, time_us start,
                      struct slot *slot, bool *no, char *text, size_t cap, struct err *err)
{
    time_us now = svc_now (svc);
    duration_us duration = coalloc_duration (svc, spec->walltime);
    start = start > now ? start : now;
    struct who who = jobspec_who (svc, spec, true);
    struct query query = {.licence_count = spec->licence_count, .licence = spec->licence,
                          .req_count = spec->req_count, .req = spec->reqs, .duration = duration,
                          .from = start, .until = now + svc->settings->horizon, .queue = true,
                          .who = &who};
    bool granted = false;
    int rc = query_slot (svc->cluster, &query, start, now, svc->call_arena, &granted, slot, err);
    if (rc != 0)
        return rc;
    *no = !granted;
    if (!granted) {
        reason_text (&slot->reason, svc->names, text, cap);
        return 0;
    }
    struct rsv_spec rsv = {.id = {number}, .kind = RSV_COURTESY, .start = start,
                           .end = start + duration, .req_count = spec->req_count,
                           .req = spec->reqs,
                          .licence_count = spec->licence_count, .licence = spec->licence, .who = &who};
    return cluster_rsv_create (svc->cluster, &rsv, &slot->allocation, now, err);
}

static void job_fill (struct store_job *rec, const Nui__Local__V1__PrepareRequest *r,
                      const struct jobspec *spec, const char *meta)
{
    snprintf (rec->meta, sizeof rec->meta, "%.63s", meta);
    rec->contact = r->contact_us > 0 ? r->contact_us : 0;
    rec->state = STORE_JOB_RESERVED;
    rec->part = true;
    memcpy (rec->transaction, r->part->transaction.data, sizeof rec->transaction);
    snprintf (rec->grid_job_id, sizeof rec->grid_job_id, "%s", r->grid_job_id);
    snprintf (rec->component, sizeof rec->component, "%s", r->part->component);
    rec->component_index = spec->component_index;
    rec->shape = spec->shape;
    rec->attempt = r->part->attempt;
    rec->submitter = strdup (spec->submitter);
    snprintf (rec->local_account, sizeof rec->local_account, "%s", spec->local_account);
    snprintf (rec->pay_account, sizeof rec->pay_account, "%.63s", spec->job->account);
    rec->procs = spec->procs;
    rec->walltime = spec->walltime;
}

static void part_fill (struct svc *svc, struct store_part *rec, struct rpccall *call,
                       const Nui__Local__V1__PrepareRequest *r, uint64_t number)
{
    memcpy (rec->transaction, r->part->transaction.data, sizeof rec->transaction);
    snprintf (rec->component, sizeof rec->component, "%s", r->part->component);
    rec->attempt = r->part->attempt;
    rec->state = STORE_PART_PREPARING;
    rec->job = number;
    snprintf (rec->caller, sizeof rec->caller, "%.63s", rpccall_peer (call)->name);
    memcpy (rec->token_hash, r->start_token_hash.data, sizeof rec->token_hash);
    request_hash (r, rec->request_hash);
    rec->slot_start = r->slot_start_us;
    rec->lease_end_boottime = clock_monotonic_us () + r->lease_us;
    snprintf (rec->boot_id, sizeof rec->boot_id, "%s", svc->boot_id);
}

/* In a transaction: job, part, epoch and the bank's request, all new. */
static int prepare_write (struct svc *svc, struct site_part *part,
                          const Nui__Local__V1__PrepareRequest *r, const struct jobspec *spec,
                          struct store_hold *hold, struct err *err)
{
    size_t len = nui__common__v1__envelope__get_packed_size (r->envelope);
    uint8_t *bytes = malloc (len + 1);
    assert (bytes);
    nui__common__v1__envelope__pack (r->envelope, bytes);
    int rc = svc_job_write (svc, part->job, false, bytes, len, err);
    if (rc == 0)
        rc = local_store_part_put (svc->store, &part->rec, err);
    if (rc == 0)
        rc = replay_keep (svc, spec, part->rec.caller, r->grid_job_id, err);
    if (rc == 0)
        rc = life_hold_prepare (svc, part->job, r->slot_start_us, hold, err);
    if (rc == 0)
        rc = svc_job_write (svc, part->job, false, NULL, 0, err);
    free (bytes);
    return rc;
}

/* Everything was checked: number, nodes, port, rows, and then the bank. */
static int prepare_begin (struct svc *svc, struct rpccall *call,
                          const Nui__Local__V1__PrepareRequest *r, const struct jobspec *spec,
                          bool *answered, struct err *err)
{
    struct store_job job_rec = {0};
    struct store_part part_rec = {0};
    struct store_hold hold = {0};
    struct slot slot;
    char text[256] = "";
    bool no = false;
    uint32_t port = ports_choose (svc);
    if (!port) {
        *answered = true;
        snprintf (text, sizeof text, "no rendezvous port is free in PORTRANGE %s",
                  svc->settings->port_range);
        reply_no (call, "NoPort", text, 0);
        return 0;
    }
    time_us data = staging_expected (svc, spec, svc_now (svc));
    if (data > r->slot_start_us + svc->settings->clock_tolerance) {
        *answered = true;
        reply_no (call, "StageIn", "its files cannot be here by then", data);
        return 0;
    }
    int rc = svc_begin (svc, err);
    if (rc == 0)
        rc = local_store_next (svc->store, "job", &job_rec.number, err);
    if (rc == 0)
        rc = slot_take (svc, spec, job_rec.number, r->slot_start_us, &slot, &no, text, sizeof text,
                        err);
    if (rc != 0 || no) {
        local_store_rollback (svc->store);
        if (no) {
            *answered = true;
            reply_no (call, reason_code_name ((enum reason_code)slot.reason.code), text,
                      slot.start == TIME_US_NONE ? 0 : slot.start);
        }
        return rc;
    }
    job_fill (&job_rec, r, spec, rpccall_peer (call)->name);
    job_rec.submit = svc_now (svc);
    job_rec.port = port;
    job_rec.placement = placement_text (svc, &slot.allocation);
    part_fill (svc, &part_rec, call, r, job_rec.number);
    struct site_job *job = svc_job_add (svc, &job_rec, spec);
    struct site_part *part = svc_part_add (svc, &part_rec, job);
    part->rsv = true;
    rc = svc_commit (svc, prepare_write (svc, part, r, spec, &hold, err), err);
    if (rc != 0) {
        struct err again = {0};
        cluster_rsv_release (svc->cluster, (struct rsv_id){job_rec.number}, svc_now (svc),
                             &again);
        svc_part_forget (svc, part);
        svc_job_forget (svc, job);
        store_hold_free (&hold);
        return rc;
    }
    part->waiter[part->waiter_count++] = call;
    *answered = true; /* will be */
    bank_link_hold (svc->bank, &hold);
    store_hold_free (&hold);
    coalloc_timer_arm (part);
    pass_wake (svc);
    return 0;
}

/* A PREPARE that came before. */
static void prepare_again (struct rpccall *call, const Nui__Local__V1__PrepareRequest *r,
                           struct site_part *live, const struct store_part *old)
{
    uint8_t hash[STORE_HASH_LEN];
    const struct store_part *rec = live ? &live->rec : old;
    if (rec->state == STORE_PART_ABORTED && !rec->job) { /* the tombstone wins */
        reply_no (call, "Aborted", "an abort came before this prepare", 0);
        return;
    }
    request_hash (r, hash);
    if (memcmp (hash, rec->request_hash, sizeof hash) != 0) {
        rpccall_finish (call, RPC_ABORTED,
                        "the same transaction, component and attempt was prepared with other content");
        return;
    }
    switch (rec->state) {
    case STORE_PART_PREPARING:
        if (live && live->waiter_count < PART_WAITERS_MAX)
            live->waiter[live->waiter_count++] = call;
        else
            rpccall_finish (call, RPC_RESOURCE_EXHAUSTED, "this prepare was repeated too often");
        break;
    case STORE_PART_PREPARED:
    case STORE_PART_FIRM:
        reply_stored (call, rec, live ? lease_left (live) : 0);
        break;
    case STORE_PART_REFUSED:
        reply_stored (call, rec, 0);
        break;
    case STORE_PART_EXPIRED:
        reply_no (call, "LeaseExpired", "the lease of this attempt ended", 0);
        break;
    default:
        reply_no (call, "Aborted", "this attempt was aborted or released", 0);
        break;
    }
}

/* What is a NO of the site rather than a fault of the request. */
static bool is_site_no (int code)
{
    return code == ERR_DENIED || code == ERR_LIMIT || code == ERR_CONFLICT;
}

void coalloc_prepare (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct svc *svc = self;
    const Nui__Local__V1__PrepareRequest *r = (const Nui__Local__V1__PrepareRequest *)request;
    struct site_part *live;
    struct store_part old;
    struct jobspec spec = {0};
    struct err err = {0};
    bool answered = false;
    const char *meta = rpccall_peer (call)->name;
    if (part_of_call (svc, call, r->part, &live, &old) != 0)
        return;
    if (live || old.state) {
        prepare_again (call, r, live, &old);
        store_part_free (&old);
        return;
    }
    arena_reset (svc->call_arena);
    int rc = prepare_check (svc, r, &err);
    if (rc == 0 && svc->rm.ops->fresh && !svc->rm.ops->fresh (svc->rm.self))
        rc = err_set (&err, ERR_CONFLICT, "the resource manager of site %s cannot be reached now",
                      svc->site);
    if (rc == 0)
        rc = jobspec_verify_counted (svc, r->envelope, meta, r->part->component, r->shape,
                                     r->grid_licences, r->n_grid_licences, &spec, &err);
    if (rc == 0)
        rc = jobspec_runnable (&spec, &err);
    if (rc == 0)
        rc = replay_check (svc, &spec, meta, r->grid_job_id, &err);
    if (rc == 0 && spec.never_fits)
        rc = err_set (&err, ERR_DENIED, "%s", spec.never_text);
    if (rc == 0)
        rc = gridpolicy_slot (svc, meta, &spec, r->slot_start_us, r->lease_us, &err);
    if (rc == 0)
        rc = cap_check (svc, meta, &spec, &err);
    if (rc == 0)
        rc = prepare_begin (svc, call, r, &spec, &answered, &err);
    jobspec_free (&spec);
    if (rc == 0 || answered)
        return;
    if (is_site_no (rc))
        reply_no (call, rc == ERR_LIMIT ? "PeerCap" : rc == ERR_DENIED ? "Denied" : "Conflict",
                  err.text, 0);
    else
        jobs_refuse (svc, call, &err);
}

/* --- the bank's answer -------------------------------------------------------------------- */

/* The YES that is told again, with its nodes as they are now. */
void coalloc_answer_pack (struct site_part *part)
{
    struct svc *svc = part->svc;
    struct site_job *job = part->job;
    Nui__Local__V1__PrepareReply reply = NUI__LOCAL__V1__PREPARE_REPLY__INIT;
    Nui__Common__V1__Peer peer = NUI__COMMON__V1__PEER__INIT;
    char id[SITE_ID_MAX];
    arena_reset (svc->call_arena);
    struct allocation a = placement_parse (svc, job->rec.placement, svc->call_arena);
    char **hosts = arena_array (svc->call_arena, a.count + 1, sizeof *hosts);
    for (uint32_t i = 0; i < a.count; i++)
        if (i == 0 || a.item[i].node.v != a.item[i - 1].node.v)
            hosts[peer.n_hosts++] =
                (char *)node_address (svc, svc->node_by_id[a.item[i].node.v]->name);
    peer.hosts = hosts;
    peer.component = job->rec.component;
    peer.site = svc->site;
    peer.port = job->rec.port;
    reply.granted = true;
    reply.peer = &peer;
    reply.site_job_id = site_id (svc, job->rec.number, id);
    reply.account = job->rec.pay_account;
    reply.bank_hold_id = job->rec.hold_id;
    reply.amount_micro = job->rec.amount;
    reply.lease_left_us = lease_left (part);
    reply.procs = job->rec.procs;
    pack_answer (&part->rec, &reply);
}

static int yes_write (struct site_part *part, const struct bank_answer *answer, struct err *err)
{
    struct svc *svc = part->svc;
    struct site_job *job = part->job;
    coalloc_answer_pack (part);
    int rc = svc_begin (svc, err);
    if (rc == 0)
        rc = local_store_hold_delete (svc->store, answer->key, err);
    if (rc == 0)
        rc = payqos_take (svc, job, answer->qos, err);
    if (rc == 0)
        rc = local_store_part_put (svc->store, &part->rec, err);
    if (rc == 0)
        rc = svc_job_write (svc, job, false, NULL, 0, err);
    return svc_commit (svc, rc, err);
}

void coalloc_on_answer (struct svc *svc, struct site_part *part, const struct bank_answer *answer)
{
    struct err err = {0};
    struct site_job *job = part->job;
    if (answer->outcome == BANK_UNREACHABLE)
        return; /* the timer says NO when patience is over; it may still answer */
    job->rec.hold_asked = false;
    if (answer->outcome == BANK_REFUSED) {
        char code[STORE_NAME_MAX], text[400];
        snprintf (code, sizeof code, "%.63s", answer->code);
        snprintf (text, sizeof text, "BankFailure: %.380s", answer->text);
        int rc = svc_begin (svc, &err);
        if (rc == 0)
            rc = life_answer_over (svc, answer, &err);
        if (svc_commit (svc, rc, &err) != 0)
            daemon_stop (svc->daemon, &err);
        else
            part_refuse (part, code, text);
        return;
    }
    snprintf (job->rec.hold_id, sizeof job->rec.hold_id, "%s", answer->hold_id);
    snprintf (job->rec.pay_account, sizeof job->rec.pay_account, "%s", answer->account);
    job->rec.amount = answer->amount;
    part->rec.state = STORE_PART_PREPARED;
    if (yes_write (part, answer, &err) != 0) {
        waiters_no (part, "StoreFailure", err.text);
        daemon_stop (svc->daemon, &err);
        return;
    }
    coalloc_timer_arm (part);
    for (uint32_t i = 0; i < part->waiter_count; i++)
        reply_stored (part->waiter[i], &part->rec, lease_left (part));
    part->waiter_count = 0;
}

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
    int rc = cluster_rsv_commit (svc->cluster, (struct rsv_id){part->rec.job}, svc_now (svc),
                                 err);
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
    if (part_of_call (svc, call, r->part, &live, &old) != 0)
        return;
    if (live && live->rec.state == STORE_PART_PREPARED && lease_left (live) == 0) {
        rc = part_end (live, STORE_PART_EXPIRED, "LeaseExpired",
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
    if (rc != 0)
        rpccall_fail (call, &err);
    else
        rpccall_reply (call, &reply.base);
}

/* Nothing is here (yet): whatever PREPARE comes later must find that it was aborted. */
static int tombstone (struct svc *svc, struct rpccall *call, const Nui__Local__V1__Part *name,
                      struct err *err)
{
    struct store_part rec = {.state = STORE_PART_ABORTED, .attempt = name->attempt};
    memcpy (rec.transaction, name->transaction.data, sizeof rec.transaction);
    snprintf (rec.component, sizeof rec.component, "%s", name->component);
    snprintf (rec.caller, sizeof rec.caller, "%.63s", rpccall_peer (call)->name);
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
    if (part_of_call (svc, call, r->part, &live, &old) != 0)
        return;
    if (live && live->rec.state == STORE_PART_FIRM) {
        reply.refused_firm = true;
    } else if (live) {
        reply.was_held = live->rec.was_held = true;
        rc = part_end (live, STORE_PART_ABORTED, "Aborted", "aborted by its coordinator", &err);
    } else if (!old.state) {
        rc = tombstone (svc, call, r->part, &err);
    } else if (old.state == STORE_PART_RELEASED) {
        reply.refused_firm = true; /* it was */
    } else {
        reply.was_held = old.state == STORE_PART_ABORTED && old.was_held;
    }
    store_part_free (&old);
    if (rc != 0)
        rpccall_fail (call, &err);
    else
        rpccall_reply (call, &reply.base);
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
    if (lost && !part->rec.start_accepted && !substitute_nodes (part)) {
        *code = "NodeDown";
        *text = arena_printf (svc->call_arena, "node %s is down, and no other is free for the slot", lost);
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
    if (part_of_call (svc, call, r->part, &live, &old) != 0)
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

/* NULL: it may start. */
static const char *start_refusal (struct svc *svc, const struct site_part *part,
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
    if (CRYPTO_memcmp (hash, part->rec.token_hash, sizeof hash) != 0) {
        *text = "the start token does not fit the prepared hash";
        return "BadToken";
    }
    if (part->rec.state != STORE_PART_FIRM) {
        *text = "the part was not committed";
        return "NotFirm";
    }
    if (r->n_peers > PEERS_MAX) {
        *text = "too many peers";
        return "Limit";
    }
    if (part->rec.start_accepted) {
        *text = "it was started before, for another moment";
        /* Another of the group goes on without knowing the moment: this part has started. */
        return part->job->rec.launch_at == r->start_us || strcmp (part->rec.caller, caller) != 0
                   ? ""
                   : "AlreadyStarted";
    }
    if (r->start_us < part->rec.slot_start - s->clock_tolerance ||
        r->start_us > part->rec.slot_start + s->start_grace) {
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

void coalloc_start (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct svc *svc = self;
    const Nui__Local__V1__StartRequest *r = (const Nui__Local__V1__StartRequest *)request;
    struct site_part *live;
    struct store_part old;
    struct err err = {0};
    const char *text = "";
    if (part_of_call (svc, call, r->part, &live, &old) != 0)
        return;
    bool ended = old.state == STORE_PART_RELEASED && old.start_accepted;
    store_part_free (&old);
    if (!live) {
        if (ended) /* it ran; the answer was lost */
            reply_start (call, NULL, "");
        else
            reply_start (call, "Unknown", "no such part is held here");
        return;
    }
    const char *code = start_refusal (svc, live, r, rpccall_peer (call)->name, &text);
    if (code) {
        reply_start (call, *code ? code : NULL, text);
        return;
    }
    if (start_write (svc, live, r, &err) != 0) {
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
    if (part_of_call (svc, call, r->part, &live, &old) != 0)
        return;
    snprintf (code, sizeof code, "%.63s",
              r->reason && *r->reason->code ? r->reason->code : "Released");
    snprintf (text, sizeof text, "%.390s",
              r->reason && *r->reason->text ? r->reason->text : "released by its coordinator");
    reply.started = live ? live->job->rec.start != 0 : part_ran (svc, &old);
    uint64_t number = live ? live->job->rec.number : 0;
    if (live) {
        reply.released = true;
        if (live->rec.state < STORE_PART_FIRM)
            rc = part_end (live, STORE_PART_ABORTED, code, text, &err);
        else
            rc = life_cancel (svc, live->job, code, text, &err);
    } else if (!old.state) {
        rc = tombstone (svc, call, r->part, &err);
    }
    store_part_free (&old);
    const struct site_job *left = rc == 0 && r->until_ended && number ? svc_job (svc, number) : NULL;
    if (left && left->rec.start && !left->rec.end)
        rc = err_set (&err, ERR_UNAVAILABLE, "its processes are being ended");
    if (rc != 0)
        rpccall_fail (call, &err);
    else
        rpccall_reply (call, &reply.base);
}

/* --- after a restart ---------------------------------------------------------------------- */

static int rsv_regain (struct svc *svc, struct site_part *part, struct err *err)
{
    struct site_job *job = part->job;
    time_us now = svc_now (svc);
    time_us start = part->rec.slot_start > job->rec.submit ? part->rec.slot_start : job->rec.submit;
    struct who who = svc_who (svc, job);
    struct rsv_spec rsv = {.id = {part->rec.job}, .kind = RSV_COURTESY, .start = start,
                           .end = start + coalloc_duration (svc, job->rec.walltime),
                           .req_count = job->req_count, .req = job->reqs,
                          .licence_count = job->licence_count, .licence = job->licence, .who = &who};
    arena_reset (svc->call_arena);
    struct allocation a = placement_parse (svc, job->rec.placement, svc->call_arena);
    if (rsv.end <= now || a.count == 0)
        return 0; /* its time is over: the timer settles the rest */
    int rc = cluster_rsv_create (svc->cluster, &rsv, &a, now, err);
    part->rsv = rc == 0;
    if (rc == 0 && part->rec.state == STORE_PART_FIRM)
        rc = cluster_rsv_commit (svc->cluster, rsv.id, now, err);
    return rc;
}

int coalloc_recover (struct svc *svc, struct store_part *rec, struct err *err)
{
    struct site_job *job = svc_job (svc, rec->job);
    char id[SITE_ID_MAX];
    if (!job) {
        store_part_free (rec);
        return err_set (err, ERR_INTERNAL, "part of job %s without its job",
                        site_id (svc, rec->job, id));
    }
    struct site_part *part = svc_part_add (svc, rec, job);
    if (job->rec.state == STORE_JOB_RUNNING) {
        int rc = life_part_occupy (svc, job, job->rec.start, err);
        if (rc == 0)
            rc = cluster_job_running (svc->cluster, (struct job_id){job->rec.number}, job->rec.start,
                                      svc_now (svc), err);
        if (rc != ERR_CONFLICT)
            return rc;
        log_event (svc->log, LOG_LEVEL_WARN, "coalloc", "nodes_still_busy", "job=%s error=\"%s\"",
                   site_id (svc, rec->job, id), err->text);
        err_clear (err); /* its reservation stands for it until then: life_parts_settle */
    }
    int rc = rsv_regain (svc, part, err);
    if (rc != 0) {
        log_event (svc->log, LOG_LEVEL_ERROR, "coalloc", "reservation_not_regained",
                   "job=%s error=\"%s\"", site_id (svc, rec->job, id), err->text);
        err_clear (err);
    }
    if (part->rec.state == STORE_PART_FIRM && !part->rec.start_accepted)
        staging_again (svc, job);
    /* Still being prepared when we died: no YES was given, so no hold (ended from the loop, once
     * the links are there). A prepared or firm one keeps what is left of its time. */
    coalloc_timer_arm (part);
    if (part->rec.state == STORE_PART_PREPARING) {
        part->rec.lease_end_boottime = 0;
        coalloc_timer_arm (part);
    }
    return 0;
}
