/* Other terms for a firm part of a co-reservation: who may come in, until when, how many tasks. Its metascheduler calls it twice
 * (Terms), for all parts alike: what the new terms need besides is taken first, durably, while what stands goes on; once all
 * sites have, the terms are kept, or given up by keeping the old ones. Nothing that a job inside has is ever taken away, and no
 * term is kept that the user did not sign.
 *
 * What was taken waits without a lease, since the part stands anyhow: it is over with the part, at its old end. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "local/svc/coalloc/coalloc.h"
#include "local/svc/job.h"
#include "local/svc/job/jobspec.h"
#include "local/svc/resv/resv.h"
#include "local/svc/svc_i.h"
#include "proto/job/element.h"
#include "proto/job/jobcheck.h"

typedef Nui__Common__V1__Envelope Envelope;
typedef Nui__Common__V1__Job Job;

struct change {
    struct site_part *part;
    struct site_rsv *rsv;
    Job *now;                                    /* as it stands */
    Job *next;                                   /* what was sent */
    const Nui__Common__V1__Component *component; /* of that */
    time_us end;                                 /* by it */
};

static bool change_same (const Job *a, const Job *b)
{
    return a->uuid.len == b->uuid.len && memcmp (a->uuid.data, b->uuid.data, a->uuid.len) == 0;
}

/* The one whose place both have: the first that was signed. */
static const ProtobufCBinaryData *change_of (const Job *job)
{
    return job->reserve->changes.len ? &job->reserve->changes : &job->uuid;
}

static int change_names (const struct change *ch, struct err *err)
{
    const ProtobufCBinaryData *is = change_of (ch->now), *says = &ch->next->reserve->changes;
    if (says->len != is->len || memcmp (says->data, is->data, is->len) != 0 ||
        strcmp (ch->next->submitter, ch->now->submitter) != 0)
        return err_set (err, ERR_DENIED, "these terms were signed for another co-reservation");
    if (ch->next->created_us <= ch->now->created_us)
        return err_set (err, ERR_CONFLICT, "it has terms that were signed later");
    return 0;
}

static int change_terms (const struct change *ch, const struct jobspec *spec, struct err *err)
{
    const struct req *is = &ch->part->job->reqs[0];
    time_us now = svc_now (ch->part->svc);
    if (spec->req_count != 1 || memcmp (&spec->reqs[0].task, &is->task, sizeof is->task) != 0 ||
        spec->reqs[0].tasks_per_node != is->tasks_per_node ||
        spec->reqs[0].exclusive != is->exclusive)
        return err_set (err, ERR_CONFLICT, "its tasks would be others");
    if (spec->reqs[0].tasks > is->tasks)
        return err_set (err, ERR_CONFLICT,
                        "%u tasks are reserved, and %u are asked for: more of them are reserved "
                        "besides",
                        is->tasks, spec->reqs[0].tasks);
    if (ch->end <= now)
        return err_set (err, ERR_CONFLICT, "it would have ended already");
    if (ch->part->rec.slot_start + ch->part->job->rec.walltime <= now)
        return err_set (err, ERR_CONFLICT, "its time is over");
    return 0;
}

/* Reads both; what was sent names a component of them. */
static int change_open (struct site_part *part, const Envelope *envelope, struct change *ch,
                        struct err *err)
{
    *ch = (struct change){.part = part};
    ch->rsv = resv_of_part (part->svc, part->job->rec.number);
    if (!ch->rsv)
        return err_set (err, ERR_NOT_FOUND, "it does not stand here any more");
    ch->now = reserve_signed (part, err);
    ch->next = ch->now && envelope ? element_unpack (envelope, err) : NULL;
    if (!ch->now)
        return err->code;
    for (size_t i = 0; ch->next && i < ch->next->n_components; i++)
        if (strcmp (ch->next->components[i]->name, part->rec.component) == 0)
            ch->component = ch->next->components[i];
    if (!ch->component || !ch->next->reserve || ch->component->n_reqs != 1)
        return err_set (err, ERR_INVALID, "what was sent is no co-reservation of component %.60s",
                        part->rec.component);
    ch->end = part->rec.slot_start + ch->component->walltime_us;
    return 0;
}

static void change_close (struct change *ch)
{
    if (ch->now)
        nui__common__v1__job__free_unpacked (ch->now, NULL);
    if (ch->next)
        nui__common__v1__job__free_unpacked (ch->next, NULL);
}

static void change_wants (struct store_part *rec, const Envelope *envelope)
{
    free (rec->wanted);
    rec->wanted = NULL;
    rec->wanted_len = 0;
    if (!envelope)
        return;
    rec->wanted_len = nui__common__v1__envelope__get_packed_size (envelope);
    rec->wanted = malloc (rec->wanted_len + 1);
    assert (rec->wanted);
    nui__common__v1__envelope__pack (envelope, rec->wanted);
}

/* In a transaction, or the daemon ends: the core has it by then. */
static int change_write (struct change *ch, time_us end, uint32_t tasks, const char *acl,
                         const Envelope *wanted, const Envelope *kept, struct err *err)
{
    struct site_part *part = ch->part;
    struct svc *svc = part->svc;
    uint8_t *bytes = NULL;
    size_t len = kept ? nui__common__v1__envelope__get_packed_size (kept) : 0;
    int rc = svc_begin (svc, err);
    if (rc != 0)
        return rc;
    rc = resv_change (svc, ch->rsv, end, tasks, acl, err);
    if (rc == ERR_CONFLICT) { /* nothing has changed */
        local_store_rollback (svc->store);
        return rc;
    }
    change_wants (&part->rec, wanted);
    if (rc == 0)
        rc = local_store_part_put (svc->store, &part->rec, err);
    if (rc == 0 && kept) {
        bytes = malloc (len + 1);
        assert (bytes);
        nui__common__v1__envelope__pack (kept, bytes);
        part->job->rec.walltime = ch->component->walltime_us;
        part->job->rec.procs = (uint32_t)jobcheck_procs (ch->component, 0);
        part->job->reqs[0].tasks = tasks;
        rc = svc_job_write (svc, part->job, true, bytes, len, err);
        free (bytes);
    }
    rc = svc_commit (svc, rc, err);
    if (rc != 0)
        daemon_stop (svc->daemon, err); /* found as it was after a restart */
    else
        coalloc_timer_arm (part);
    return rc;
}

/* Until the later of both ends; all else stays as it is until the terms are kept. */
static int change_take (struct change *ch, const Envelope *envelope, const char *meta,
                        struct err *err)
{
    struct jobspec spec = {0};
    struct store_rsv *rec = &ch->rsv->rec;
    time_us end = ch->part->rec.slot_start + ch->part->job->rec.walltime;
    int rc = change_names (ch, err);
    if (rc == 0)
        rc = jobspec_verify_counted (ch->part->svc, envelope, meta, ch->part->rec.component, 0,
                                     NULL, 0, &spec, err);
    if (rc == 0) {
        rc = change_terms (ch, &spec, err);
        jobspec_free (&spec);
    }
    if (rc != 0)
        return rc;
    return change_write (ch, ch->end > end ? ch->end : end, rec->tasks_wanted, rec->acl, envelope,
                         NULL, err);
}

/* What was taken for other terms is given back. */
static int change_drop (struct change *ch, struct err *err)
{
    struct store_rsv *rec = &ch->rsv->rec;
    if (!ch->part->rec.wanted)
        return 0;
    return change_write (ch, ch->part->rec.slot_start + ch->part->job->rec.walltime,
                         rec->tasks_wanted, rec->acl, NULL, NULL, err);
}

/* To the byte what was taken, whose signature was looked at then. */
static bool change_is_wanted (const struct store_part *rec, const Envelope *envelope)
{
    Envelope *wanted =
        rec->wanted ? nui__common__v1__envelope__unpack (NULL, rec->wanted_len, rec->wanted) : NULL;
    bool same = wanted && wanted->body.len == envelope->body.len &&
                memcmp (wanted->body.data, envelope->body.data, wanted->body.len) == 0;
    if (wanted)
        nui__common__v1__envelope__free_unpacked (wanted, NULL);
    return same;
}

static int change_keep (struct change *ch, const Envelope *envelope, const char *meta,
                        struct err *err)
{
    if (change_same (ch->now, ch->next))
        return change_drop (ch, err);
    /* Not what was taken: a part that came in the place of a lost one, say. */
    int rc =
        change_is_wanted (&ch->part->rec, envelope) ? 0 : change_take (ch, envelope, meta, err);
    if (rc != 0)
        return rc;
    struct svc *svc = ch->part->svc;
    char *acl = reserve_acl (svc, ch->next, ch->part->job->rec.local_account);
    rc = change_write (ch, ch->end, ch->component->reqs[0]->tasks, acl, NULL, envelope, err);
    free (acl);
    if (rc == 0)
        log_event (svc->log, LOG_LEVEL_INFO, "coalloc", "changed", "job=%llu",
                   (unsigned long long)ch->part->rec.job);
    return rc;
}

void coalloc_terms (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct svc *svc = self;
    const Nui__Local__V1__TermsRequest *r = (const Nui__Local__V1__TermsRequest *)request;
    Nui__Local__V1__TermsReply reply = NUI__LOCAL__V1__TERMS_REPLY__INIT;
    Nui__Common__V1__Reason reason = NUI__COMMON__V1__REASON__INIT;
    const char *meta = rpccall_peer (call)->name;
    struct site_part *live;
    struct store_part old;
    struct change ch = {0};
    struct err err = {0};
    if (coalloc_part_of_call (svc, call, r->part, &live, &old) != 0)
        return;
    store_part_free (&old);
    arena_reset (svc->call_arena);
    int rc = live && live->rec.state == STORE_PART_FIRM && live->job->reserves
                 ? change_open (live, r->envelope, &ch, &err)
                 : err_set (&err, ERR_NOT_FOUND, "no such part stands here");
    if (rc == 0)
        rc = r->keep                         ? change_keep (&ch, r->envelope, meta, &err)
             : change_same (ch.now, ch.next) ? 0
                                             : change_take (&ch, r->envelope, meta, &err);
    change_close (&ch);
    reply.done = rc == 0;
    reason.code = (char *)(rc == ERR_NOT_FOUND ? "Gone" : "Conflict");
    reason.text = err.text;
    reply.reason = rc ? &reason : NULL;
    if (rc == ERR_IO || rc == ERR_INTERNAL || rc == ERR_UNAVAILABLE)
        rpccall_fail (call, &err);
    else
        rpccall_reply (call, &reply.base);
}
