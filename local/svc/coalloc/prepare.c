/* PREPARE: a courtesy hold, the bank's hold, and a YES that is durable before it is given. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "local/svc/coalloc/coalloc.h"
#include "local/svc/files/staging.h"
#include "local/svc/grid/grid.h"
#include "local/svc/job.h"
#include "local/svc/job/jobs.h"
#include "local/svc/job/jobspec.h"
#include "local/svc/job/life.h"
#include "local/svc/nodes.h"
#include "local/svc/svc_i.h"
#include "proto/base/clock.h"
#include "proto/base/text.h"
#include "proto/hash/sha256.h"
#include "proto/job/element.h"

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
    if (r->replaces.len)
        sha256_add (hash, r->replaces.data, r->replaces.len);
    sha256_end (hash, out);
}

/* *begins: when the first of what it holds here begins, and is not counted any more. */
static int cap_check (struct svc *svc, const char *meta, const struct jobspec *spec,
                      time_us *begins, struct err *err)
{
    time_us first = 0;
    const struct settings_cap *cap = settings_cap_of (svc->settings, meta);
    struct site_part *part, *next;
    int64_t holds = 1, seconds;
    int64_t each = svc_part_duration (svc, spec->walltime) / US_PER_S;
    if (__builtin_mul_overflow (each, (int64_t)spec->procs, &seconds))
        seconds = INT64_MAX;
    HASH_ITER (hh, svc->parts, part, next) {
        int64_t s = part->job->rec.walltime / US_PER_S * (int64_t)part->job->rec.procs;
        if ((part->rec.start_accepted && !part->job->reserves) ||
            strcmp (part->rec.caller, meta) != 0)
            continue;
        holds++;
        if (__builtin_add_overflow (seconds, s, &seconds))
            seconds = INT64_MAX;
        if (!first || part->rec.slot_start < first)
            first = part->rec.slot_start;
    }
    if (holds > cap->holds || seconds > cap->procseconds)
        *begins = first;
    if (holds > cap->holds)
        return err_set (err, ERR_LIMIT, "metascheduler %s may hold %lld reservations here", meta,
                        (long long)cap->holds);
    if (seconds > cap->procseconds)
        return err_set (
            err, ERR_LIMIT,
            "metascheduler %s may hold %lld processor-seconds here, this would make %lld", meta,
            (long long)cap->procseconds, (long long)seconds);
    return 0;
}

static int prepare_check (struct svc *svc, const Nui__Local__V1__PrepareRequest *r, struct err *err)
{
    svc_clock_settle (svc);
    time_us now = svc_now (svc);
    if (r->start_token_hash.len != STORE_HASH_LEN)
        return err_set (err, ERR_INVALID, "the token hash has %d bytes", STORE_HASH_LEN);
    if (element_id_check (r->grid_job_id, err) != 0)
        return ERR_INVALID;
    if (r->lease_us <= 0 || r->lease_us > svc->settings->lease_max)
        return err_set (err, ERR_INVALID, "a lease of %lld ms: this site gives up to %lld ms",
                        (long long)(r->lease_us / 1000),
                        (long long)(svc->settings->lease_max / 1000));
    if (r->slot_start_us < now - svc->settings->clock_tolerance)
        return err_set (err, ERR_INVALID, "the slot began %lld ms ago by this site's clock",
                        (long long)((now - r->slot_start_us) / 1000));
    if (r->replaces.len == STORE_TRANSACTION_LEN &&
        memcmp (r->replaces.data, r->part->transaction.data, STORE_TRANSACTION_LEN) == 0)
        return err_set (err, ERR_INVALID, "a part cannot come instead of its own transaction");
    if (r->replaces.len != 0 && r->replaces.len != STORE_TRANSACTION_LEN)
        return err_set (err, ERR_INVALID, "a transaction to be replaced has %d bytes",
                        STORE_TRANSACTION_LEN);
    if (r->slot_start_us > now + svc->settings->horizon)
        return err_set (err, ERR_INVALID, "the slot lies beyond this site's horizon");
    return 0;
}

/* Nodes for the slot, or what to say instead: *no is set and *next, when resources are short. */
static int slot_take (struct svc *svc, const struct jobspec *spec, const struct store_part *rec,
                      struct slot *slot, bool *no, char *text, size_t cap, struct err *err)
{
    time_us now = svc_now (svc), start = rec->slot_start;
    duration_us duration = svc_part_duration (svc, spec->walltime);
    start = start > now ? start : now;
    struct who who = jobspec_who (svc, spec, true);
    struct query query = {.licence_count = spec->licence_count,
                          .licence = spec->licence,
                          .req_count = spec->req_count,
                          .req = spec->reqs,
                          .duration = duration,
                          .from = start,
                          .until = now + svc->settings->horizon,
                          .queue = true,
                          .instead = spec->instead,
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
    struct rsv_spec rsv = {.id = {rec->job},
                           .whose = instead_whose (svc, rec),
                           .instead = spec->instead,
                           .kind = RSV_COURTESY,
                           .start = start,
                           .end = start + duration,
                           .req_count = spec->req_count,
                           .req = spec->reqs,
                           .licence_count = spec->licence_count,
                           .licence = spec->licence,
                           .who = &who};
    return cluster_rsv_create (svc->cluster, &rsv, &slot->allocation, now, err);
}

static void job_fill (struct store_job *rec, const Nui__Local__V1__PrepareRequest *r,
                      const struct jobspec *spec, const char *meta)
{
    text_printf (rec->meta, sizeof rec->meta, "%.63s", meta);
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
    text_printf (rec->pay_account, sizeof rec->pay_account, "%.63s", spec->job->account);
    rec->procs = spec->procs;
    rec->walltime = spec->walltime;
    rec->array = jobspec_array (spec); /* how many run at one time is its metascheduler's matter */
    rec->array_index = spec->job->array_index;
}

static void part_fill (struct svc *svc, struct store_part *rec, struct rpccall *call,
                       const Nui__Local__V1__PrepareRequest *r, uint64_t number)
{
    memcpy (rec->transaction, r->part->transaction.data, sizeof rec->transaction);
    snprintf (rec->component, sizeof rec->component, "%s", r->part->component);
    rec->attempt = r->part->attempt;
    rec->state = STORE_PART_PREPARING;
    rec->job = number;
    text_printf (rec->caller, sizeof rec->caller, "%.63s", rpccall_peer (call)->name);
    memcpy (rec->token_hash, r->start_token_hash.data, sizeof rec->token_hash);
    request_hash (r, rec->request_hash);
    rec->slot_start = r->slot_start_us;
    rec->lease_end_boottime = clock_monotonic_us () + r->lease_us;
    snprintf (rec->boot_id, sizeof rec->boot_id, "%s", svc->boot_id);
    if (r->replaces.len == sizeof rec->replaces)
        memcpy (rec->replaces, r->replaces.data, sizeof rec->replaces);
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
    struct err full = {0};
    if (daemon_takes_work (svc->daemon, &full) != 0) {
        *answered = true;
        coalloc_reply_no (call, "DiskFull", full.text, 0);
        return 0;
    }
    if (!port) {
        *answered = true;
        text_printf (text, sizeof text, "no rendezvous port is free in PORTRANGE %s",
                     svc->settings->port_range);
        coalloc_reply_no (call, "NoPort", text, 0);
        return 0;
    }
    time_us data = staging_expected (svc, spec, svc_now (svc));
    if (data > r->slot_start_us + svc->settings->clock_tolerance) {
        *answered = true;
        coalloc_reply_no (call, "StageIn", "its files cannot be here by then", data);
        return 0;
    }
    int rc = svc_begin (svc, err);
    if (rc == 0)
        rc = local_store_next (svc->store, "job", &job_rec.number, err);
    if (rc == 0)
        part_fill (svc, &part_rec, call, r, job_rec.number);
    if (rc == 0)
        rc = slot_take (svc, spec, &part_rec, &slot, &no, text, sizeof text, err);
    if (rc != 0 || no) {
        local_store_rollback (svc->store);
        if (no) {
            *answered = true;
            coalloc_reply_no (call, reason_code_name ((enum reason_code)slot.reason.code), text,
                              slot.start == TIME_US_NONE ? 0 : slot.start);
        }
        return rc;
    }
    job_fill (&job_rec, r, spec, rpccall_peer (call)->name);
    job_rec.submit = svc_now (svc);
    job_rec.port = port;
    job_rec.placement = placement_text (svc, &slot.allocation);
    struct site_job *job = svc_job_add (svc, &job_rec, spec);
    struct site_part *part = svc_part_add (svc, &part_rec, job);
    part->rsv = true;
    part->whose = instead_whose (svc, &part->rec);
    part->instead = spec->instead;
    rc = svc_commit (svc, prepare_write (svc, part, r, spec, &hold, err), err);
    if (rc != 0) {
        struct err again = {0};
        cluster_rsv_release (svc->cluster, (struct rsv_id){job_rec.number}, svc_now (svc), &again);
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
        coalloc_reply_no (call, "Aborted", "an abort came before this prepare", 0);
        return;
    }
    request_hash (r, hash);
    if (memcmp (hash, rec->request_hash, sizeof hash) != 0) {
        rpccall_finish (
            call, RPC_ABORTED,
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
        coalloc_reply_stored (call, rec, live ? coalloc_lease_left (live) : 0);
        break;
    case STORE_PART_REFUSED:
        coalloc_reply_stored (call, rec, 0);
        break;
    case STORE_PART_EXPIRED:
        coalloc_reply_no (call, "LeaseExpired", "the lease of this attempt ended", 0);
        break;
    default:
        coalloc_reply_no (call, "Aborted", "this attempt was aborted or released", 0);
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
    time_us next = 0;
    const char *meta = rpccall_peer (call)->name;
    if (coalloc_part_of_call (svc, call, r->part, &live, &old) != 0)
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
    spec.instead = rc == 0 ? instead_of (svc, meta, &r->replaces, r->grid_job_id) : 0;
    if (rc == 0)
        rc = gridpolicy_slot (svc, meta, &spec, r->slot_start_us, r->lease_us, &next, &err);
    if (rc == 0)
        rc = cap_check (svc, meta, &spec, &next, &err);
    if (rc == 0)
        rc = prepare_begin (svc, call, r, &spec, &answered, &err);
    jobspec_free (&spec);
    if (rc == 0 || answered)
        return;
    if (is_site_no (rc))
        coalloc_reply_no (call,
                          rc == ERR_LIMIT    ? "PeerCap"
                          : rc == ERR_DENIED ? "Denied"
                                             : "Conflict",
                          err.text, next);
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
    reply.lease_left_us = coalloc_lease_left (part);
    reply.procs = job->rec.procs;
    coalloc_pack_answer (&part->rec, &reply);
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
        text_printf (code, sizeof code, "%.63s", answer->code);
        text_printf (text, sizeof text, "BankFailure: %.380s", answer->text);
        int rc = svc_begin (svc, &err);
        if (rc == 0)
            rc = life_answer_over (svc, answer, &err);
        if (svc_commit (svc, rc, &err) != 0)
            daemon_stop (svc->daemon, &err);
        else
            coalloc_part_refuse (part, code, text);
        return;
    }
    snprintf (job->rec.hold_id, sizeof job->rec.hold_id, "%s", answer->hold_id);
    snprintf (job->rec.pay_account, sizeof job->rec.pay_account, "%s", answer->account);
    job->rec.amount = answer->amount;
    part->rec.state = STORE_PART_PREPARED;
    if (yes_write (part, answer, &err) != 0) {
        coalloc_waiters_no (part, "StoreFailure", err.text);
        daemon_stop (svc->daemon, &err);
        return;
    }
    coalloc_timer_arm (part);
    for (uint32_t i = 0; i < part->waiter_count; i++)
        coalloc_reply_stored (part->waiter[i], &part->rec, coalloc_lease_left (part));
    part->waiter_count = 0;
}
