/* The site's side of co-allocation (meta/core/coalloc.h). Every answer is durable before it is
 * given; (transaction, component, attempt) finds it again; a lease is a duration on our own
 * monotonic clock from receipt. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "local/svc/coalloc/coalloc.h"
#include "local/svc/files/staging.h"
#include "local/svc/grid/grid.h"
#include "local/svc/job.h"
#include "local/svc/job/life.h"
#include "local/svc/nodes.h"
#include "local/svc/svc_i.h"
#include "proto/base/clock.h"

duration_us coalloc_lease_left (const struct site_part *part)
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
        return err_set (err, ERR_INVALID,
                        "a part is named by a transaction of %d bytes, a "
                        "component and an attempt",
                        STORE_TRANSACTION_LEN);
    return name_check ("component", name->component, err);
}

/* Fences an old coordinator; a newer epoch is remembered before anything is answered under it. */
static int epoch_check (struct svc *svc, const Nui__Local__V1__Part *name, struct err *err)
{
    bool newer;
    int rc = replay_epoch (svc, name->transaction.data, name->epoch, &newer, err);
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
    return err_set (err, ERR_DENIED,
                    "this part is metascheduler %s's, and %s is not of its group "
                    "(METAGROUP)",
                    owner, caller);
}

int coalloc_part_of_call (struct svc *svc, struct rpccall *call, const Nui__Local__V1__Part *name,
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

void coalloc_reply_no (struct rpccall *call, const char *code, const char *text, time_us next)
{
    Nui__Local__V1__PrepareReply reply = NUI__LOCAL__V1__PREPARE_REPLY__INIT;
    Nui__Common__V1__Reason reason = NUI__COMMON__V1__REASON__INIT;
    reason.code = (char *)code;
    reason.text = (char *)text;
    reply.reason = &reason;
    reply.next_feasible_us = next;
    rpccall_reply (call, &reply.base);
}

void coalloc_waiters_no (struct site_part *part, const char *code, const char *text)
{
    for (uint32_t i = 0; i < part->waiter_count; i++)
        coalloc_reply_no (part->waiter[i], code, text, 0);
    part->waiter_count = 0;
}

void coalloc_pack_answer (struct store_part *part, const Nui__Local__V1__PrepareReply *reply)
{
    free (part->answer);
    part->answer_len = nui__local__v1__prepare_reply__get_packed_size (reply);
    part->answer = malloc (part->answer_len + 1);
    assert (part->answer);
    nui__local__v1__prepare_reply__pack (reply, part->answer);
}

void coalloc_reply_stored (struct rpccall *call, const struct store_part *rec, duration_us left)
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
        d = coalloc_lease_left (part) < s->bank_patience ? coalloc_lease_left (part)
                                                         : s->bank_patience;
        break;
    case STORE_PART_PREPARED:
        d = coalloc_lease_left (part);
        break;
    case STORE_PART_FIRM:
        if (part->rec.start_accepted && !reserve_stands (part))
            return;
        d = (reserve_stands (part) ? reserve_until (part) : part->rec.slot_start + s->start_grace) -
            svc_now (part->svc);
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

int coalloc_part_end (struct site_part *part, enum store_part_state state, const char *code,
                      const char *text, struct err *err)
{
    struct svc *svc = part->svc;
    enum store_part_state before = part->rec.state;
    part->rec.state = state;
    svc_reason (part->job, code, "%s", text);
    struct rpccall *waiter[PART_WAITERS_MAX];
    uint32_t count = part->waiter_count;
    memcpy (waiter, part->waiter, sizeof waiter);
    int rc = life_end_unstarted (
        svc, part->job, state == STORE_PART_REFUSED ? STORE_JOB_REFUSED : STORE_JOB_CANCELLED, err);
    if (rc != 0) {
        part->rec.state = before;
        return rc;
    }
    for (uint32_t i = 0; i < count; i++)
        coalloc_reply_no (waiter[i], code, text, 0);
    return 0;
}

void coalloc_part_refuse (struct site_part *part, const char *code, const char *text)
{
    struct err err = {0};
    Nui__Local__V1__PrepareReply reply = NUI__LOCAL__V1__PREPARE_REPLY__INIT;
    Nui__Common__V1__Reason reason = NUI__COMMON__V1__REASON__INIT;
    reason.code = (char *)code;
    reason.text = (char *)text;
    reply.reason = &reason;
    coalloc_pack_answer (&part->rec, &reply);
    if (coalloc_part_end (part, STORE_PART_REFUSED, code, text, &err) != 0) {
        coalloc_waiters_no (part, "StoreFailure", err.text);
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
    if (part->rec.state == STORE_PART_PREPARING && coalloc_lease_left (part) > 0) {
        coalloc_part_refuse (part, "BankUnavailable", "the bank did not answer in time");
        return;
    }
    if (reserve_stands (part)) {
        if (svc_now (svc) < reserve_until (part))
            coalloc_timer_arm (part);
        else if ((rc = reserve_over (part, &err)) != 0)
            evtimer_add (part->timer, &(struct timeval){.tv_sec = 1});
        return;
    }
    if (part->rec.state == STORE_PART_FIRM) {
        if (svc_now (svc) < part->rec.slot_start + svc->settings->start_grace) {
            coalloc_timer_arm (part);
            return;
        }
        log_event (svc->log, LOG_LEVEL_WARN, "coalloc", "no_show", "job=%llu",
                   (unsigned long long)part->rec.job);
        rc = coalloc_part_end (part, STORE_PART_RELEASED, "NoShow",
                               "no start was asked for before the slot's grace was over", &err);
    } else {
        log_event (svc->log, LOG_LEVEL_INFO, "coalloc", "lease_ended", "job=%llu",
                   (unsigned long long)part->rec.job);
        rc = coalloc_part_end (part, STORE_PART_EXPIRED, "LeaseExpired",
                               "the lease ended before the commit", &err);
    }
    if (rc != 0) /* a full disk, say: tried again, the hold must not outlive its lease for long */
        evtimer_add (part->timer, &(struct timeval){.tv_sec = 1});
}

/* --- after a restart ---------------------------------------------------------------------- */

int coalloc_rsv_regain (struct site_part *part, struct err *err)
{
    struct svc *svc = part->svc;
    struct site_job *job = part->job;
    time_us now = svc_now (svc);
    time_us start = part->rec.slot_start > job->rec.submit ? part->rec.slot_start : job->rec.submit;
    struct who who = svc_who (svc, job);
    struct rsv_spec rsv = {.id = {part->rec.job},
                           .whose = part->whose = instead_whose (svc, &part->rec),
                           .instead = part->instead = instead_known (part),
                           .kind = RSV_COURTESY,
                           .start = start,
                           .end = start + svc_part_duration (svc, job->rec.walltime),
                           .req_count = job->req_count,
                           .req = job->reqs,
                           .licence_count = job->licence_count,
                           .licence = job->licence,
                           .who = &who};
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
            rc = cluster_job_running (svc->cluster, (struct job_id){job->rec.number},
                                      job->rec.start, svc_now (svc), err);
        if (rc != ERR_CONFLICT)
            return rc;
        log_event (svc->log, LOG_LEVEL_WARN, "coalloc", "nodes_still_busy", "job=%s error=\"%s\"",
                   site_id (svc, rec->job, id), err->text);
        err_clear (err); /* its reservation stands for it until then: life_parts_settle */
    }
    /* What is firm of a co-reservation stands among the site's reservations. */
    bool stands = job->reserves && part->rec.state == STORE_PART_FIRM;
    int rc = stands ? 0 : coalloc_rsv_regain (part, err);
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
