#include "meta/svc/adopt.h"

#include <stdlib.h>
#include <string.h>

#include "meta/svc/decide.h"
#include "meta/svc/group.h"
#include "meta/svc/handlers.h"
#include "meta/svc/peers.h"
#include "meta/svc/sites.h"
#include "proto/rpc/pbcopy.h"

#define ASK_TIMEOUT (5 * US_PER_S)

/* ---- who leads, in memory and on disk */

static struct joblead *lead_of (struct gridjob *job)
{
    if (!job->lead)
        job->lead = calloc (1, sizeof *job->lead);
    if (!job->lead)
        abort ();
    job->lead->dirty = true;
    return job->lead;
}

bool adopt_is_led_elsewhere (const struct gridjob *job)
{
    return job->lead && job->lead->led_by[0];
}

uint64_t adopt_epoch (const struct gridjob *job)
{
    uint64_t ballot = job->lead ? job->lead->ballot : 0;
    return ballot << 32 | metastore_epoch (job->metad->store);
}

int adopt_save (struct gridjob *job, struct err *err)
{
    if (!job->lead || !job->lead->dirty)
        return 0;
    struct lead_row row = {.job = job->number, .ballot = job->lead->ballot,
                           .led_by = job->lead->led_by, .led_as = job->lead->led_as,
                           .origin = job->lead->origin, .origin_job = job->lead->origin_job,
                           .told = job->lead->told};
    int rc = metastore_lead_save (job->metad->store, &row, err);
    if (rc == 0)
        job->lead->dirty = false; /* a transaction that fails has the job loaded anew */
    return rc;
}

int adopt_load (struct gridjob *job, struct arena *arena, struct err *err)
{
    struct lead_row row;
    if (!job->metad->peers)
        return 0;
    int rc = metastore_lead_load (job->metad->store, job->number, arena, &row, err);
    if (rc)
        return rc == ERR_NOT_FOUND ? 0 : rc;
    struct joblead *lead = lead_of (job);
    lead->ballot = row.ballot;
    snprintf (lead->led_by, sizeof lead->led_by, "%s", row.led_by);
    snprintf (lead->led_as, sizeof lead->led_as, "%s", row.led_as);
    snprintf (lead->origin, sizeof lead->origin, "%s", row.origin);
    lead->origin_job = row.origin_job;
    lead->told = row.told;
    lead->dirty = false;
    return 0;
}

static void led_by (struct gridjob *job, const char *leader, const char *as)
{
    struct joblead *lead = lead_of (job);
    snprintf (lead->led_by, sizeof lead->led_by, "%s", leader);
    snprintf (lead->led_as, sizeof lead->led_as, "%s", as);
    if (strcmp (leader, "?") == 0)
        job_reason (job, "TakenOver", "another metascheduler of the group goes on with it");
    else
        job_reason (job, "TakenOver", "metascheduler %s goes on with it%s%s", leader,
                    *as ? " as " : "", as);
}

void adopt_fenced (struct gridjob *job)
{
    struct err err;
    err_clear (&err);
    if (adopt_is_led_elsewhere (job))
        return;
    log_event (job->metad->log, LOG_LEVEL_WARN, "group", "fenced", "job=%s", job->id);
    led_by (job, "?", "");
    if (job_save (job, false, &err))
        job_reload (job->metad, job->number);
}

/* ---- what a successor needs */

static struct metastore_blob transfer_pack (const Nui__Meta__V1__Transfer *transfer,
                                            struct arena *arena)
{
    size_t len = nui__meta__v1__transfer__get_packed_size (transfer);
    uint8_t *bytes = arena_alloc (arena, len);
    nui__meta__v1__transfer__pack (transfer, bytes);
    return (struct metastore_blob){bytes, len};
}

struct metastore_blob adopt_transfer (const struct gridjob *job, struct arena *arena)
{
    const struct coalloc_record *record = job->record;
    Nui__Meta__V1__Transfer transfer = NUI__META__V1__TRANSFER__INIT;
    Nui__Meta__V1__TransferPart part[COALLOC_PARTS_MAX];
    Nui__Meta__V1__TransferPart *parts[COALLOC_PARTS_MAX];
    if (!job->metad->peers)
        return (struct metastore_blob){NULL, 0};
    bool ours = !job->lead || !job->lead->origin[0];
    transfer.envelope = job->envelope;
    transfer.submitter = (char *)job->submitter;
    transfer.origin = ours ? (char *)peers_self (job->metad->peers) : job->lead->origin;
    transfer.origin_job = ours ? job->number : job->lead->origin_job;
    transfer.submit_us = job->submit_us;
    transfer.tries = record->tries;
    transfer.slot_start_us = record->slot_start;
    transfer.start_token =
        (ProtobufCBinaryData){sizeof record->start_token, (uint8_t *)record->start_token};
    transfer.parts = parts;
    for (uint32_t p = 0; p < job->part_count; p++) {
        const struct coalloc_part *from = &record->part[p];
        nui__meta__v1__transfer_part__init (&part[p]);
        part[p].site = (char *)from->site;
        part[p].attempt = from->attempt;
        part[p].shape = from->shape;
        part[p].walltime_us = from->walltime;
        part[p].price_micro = from->price;
        part[p].site_job_id = job->part[p].site_job_id;
        part[p].peer = job->part[p].peer;
        parts[transfer.n_parts++] = &part[p];
    }
    return transfer_pack (&transfer, arena);
}

/* ---- taking over */

struct taking {
    struct metad *metad;
    uint8_t transaction[16];
};

/* The record as it was when all had said YES. */
static void record_fill (struct gridjob *job, const uint8_t transaction[16],
                         const Nui__Meta__V1__Transfer *transfer)
{
    struct coalloc_record *record = job->record;
    record->phase = COALLOC_DECIDE;
    record->decided = false;
    record->outcome = COALLOC_OPEN;
    record->tries = transfer->tries;
    record->created = transfer->submit_us;
    record->slot_start = transfer->slot_start_us;
    memcpy (record->transaction, transaction, sizeof record->transaction);
    memcpy (record->start_token, transfer->start_token.data, sizeof record->start_token);
    for (uint32_t p = 0; p < job->part_count; p++) {
        Nui__Meta__V1__TransferPart *from = transfer->parts[p];
        struct coalloc_part *part = &record->part[p];
        struct jobpart *shown = &job->part[p];
        snprintf (part->site, sizeof part->site, "%s", from->site);
        part->attempt = from->attempt;
        part->shape = from->shape;
        part->walltime = from->walltime_us;
        part->price = from->price_micro;
        part->state = PART_PREPARED;
        part->outstanding = false;
        snprintf (shown->site, sizeof shown->site, "%s", from->site);
        snprintf (shown->site_job_id, sizeof shown->site_job_id, "%s", from->site_job_id);
        if (shown->peer)
            nui__common__v1__peer__free_unpacked (shown->peer, NULL);
        shown->peer = from->peer;
        from->peer = NULL;
        shown->dirty = true;
    }
}

static void lead_fill (struct gridjob *job, uint64_t ballot,
                       const Nui__Meta__V1__Transfer *transfer)
{
    struct joblead *lead = lead_of (job);
    lead->ballot = ballot;
    lead->led_by[0] = lead->led_as[0] = '\0';
    lead->told = false;
    if (strcmp (transfer->origin, peers_self (job->metad->peers)) == 0)
        return;
    snprintf (lead->origin, sizeof lead->origin, "%s", transfer->origin);
    lead->origin_job = transfer->origin_job;
}

/* A job under a number of its own. */
static struct gridjob *job_adopted (struct metad *metad, const struct vote_row *row,
                                    Nui__Meta__V1__Transfer *transfer, JobMessage *body,
                                    struct err *err)
{
    EnvelopeMessage *envelope = transfer->envelope;
    uint64_t number = 0;
    transfer->envelope = NULL;
    struct gridjob *job = job_create (metad, envelope, body, transfer->submitter, err);
    if (!job || group_prepare (job, err)) {
        job_destroy (job);
        return NULL;
    }
    job->submit_us = transfer->submit_us;
    job_reason (job, "TakenOver", "taken over from metascheduler %s, where it is grid.%llu",
                transfer->origin, (unsigned long long)transfer->origin_job);
    job->record->reason = job->reason;
    record_fill (job, row->transaction, transfer);
    lead_fill (job, row->vote.promised, transfer);
    if (job_insert (job, &number, err)) {
        job_destroy (job);
        return NULL;
    }
    return job;
}

/* It is here already: ours that another had taken over, or its next try. NULL without an error: it is
 * another's business, or over. */
static struct gridjob *job_regained (struct metad *metad, uint64_t number,
                                     const struct vote_row *row,
                                     const Nui__Meta__V1__Transfer *transfer, struct err *err)
{
    struct gridjob *job = job_get (metad, number, err);
    if (!job)
        return NULL;
    bool same = job->record && memcmp (job->record->transaction, row->transaction, 16) == 0;
    if (job_ended (job) || !(same || adopt_is_led_elsewhere (job)))
        return NULL;
    record_fill (job, row->transaction, transfer);
    lead_fill (job, row->vote.promised, transfer);
    if (job_save (job, true, err)) {
        job_reload (metad, number);
        return NULL;
    }
    return job;
}

static struct gridjob *transfer_take (struct metad *metad, const struct vote_row *row,
                                      Nui__Meta__V1__Transfer *transfer, struct err *err)
{
    struct uuid uuid;
    uint64_t number = 0;
    JobMessage *body = transfer->envelope
                           ? nui__common__v1__job__unpack (NULL, transfer->envelope->body.len,
                                                           transfer->envelope->body.data)
                           : NULL;
    if (!body || body->uuid.len != sizeof uuid.b || body->n_components != transfer->n_parts ||
        transfer->start_token.len != COALLOC_TOKEN_LEN) {
        if (body)
            nui__common__v1__job__free_unpacked (body, NULL);
        err_set (err, ERR_INVALID, "what was to be taken over cannot be read");
        return NULL;
    }
    memcpy (uuid.b, body->uuid.data, sizeof uuid.b);
    int rc = metastore_job_find_uuid (metad->store, transfer->submitter, &uuid, &number, err);
    if (rc == ERR_NOT_FOUND) {
        err_clear (err);
        return job_adopted (metad, row, transfer, body, err);
    }
    nui__common__v1__job__free_unpacked (body, NULL);
    return rc ? NULL : job_regained (metad, number, row, transfer, err);
}

static void taken_over (void *arg, enum decision decided, bool failed)
{
    struct taking *taking = arg;
    struct metad *metad = taking->metad;
    struct arena *arena = arena_create (0);
    struct vote_row row;
    struct err err;
    err_clear (&err);
    if (metad->stopping)
        goto out;
    metad->peers->orphans = true; /* should it not come to an end here */
    if (failed || metastore_vote_load (metad->store, taking->transaction, arena, &row, &err))
        goto out;
    Nui__Meta__V1__Transfer *transfer =
        nui__meta__v1__transfer__unpack (NULL, row.transfer.len, row.transfer.bytes);
    struct gridjob *job = NULL;
    if (transfer)
        job = transfer_take (metad, &row, transfer, &err);
    if (job) {
        log_event (metad->log, LOG_LEVEL_INFO, "group", "taken_over",
                   "job=%s from=%s origin=%s was=grid.%llu outcome=%s", job->id, row.prior,
                   transfer->origin, (unsigned long long)transfer->origin_job,
                   decided == DECISION_COMMIT ? "commit" : "abort");
        group_decided (job, decided);
    } else if (!err.code || err.code == ERR_INVALID) {
        metastore_vote_over (metad->store, taking->transaction, NULL);
    }
    if (transfer)
        nui__meta__v1__transfer__free_unpacked (transfer, NULL);
out:
    arena_destroy (arena);
    free (taking);
}

void adopt_begin (struct metad *metad, const struct vote_row *row)
{
    if (decide_running (metad->peers, row->transaction))
        return;
    struct taking *taking = malloc (sizeof *taking);
    if (!taking)
        abort ();
    taking->metad = metad;
    memcpy (taking->transaction, row->transaction, sizeof taking->transaction);
    decide_take_over (metad->peers, row, taken_over, taking);
}

/* ---- having been taken over */

static struct gridjob *job_of_transaction (struct metad *metad, const ProtobufCBinaryData *id)
{
    struct gridjob *job, *next;
    HASH_ITER (hh, metad->jobs, job, next)
    {
        if (job->record && id->len == 16 && memcmp (job->record->transaction, id->data, 16) == 0)
            return job;
    }
    return NULL;
}

/* Should its new leader fall silent, it is taken back from there. *newer: another has been voted for since. */
static int vote_follow (struct metad *metad, const Nui__Meta__V1__Taken *taken, bool *newer,
                        struct err *err)
{
    struct arena *arena = arena_create (0);
    struct vote_row row;
    int rc = metastore_vote_load (metad->store, taken->transaction.data, arena, &row, err);
    *newer = rc == 0 && row.vote.voted && row.vote.accepted > taken->ballot;
    if (rc == 0 && !*newer && !row.vote.over && strcmp (row.leader, taken->leader) != 0) {
        row.prior = row.leader;
        row.leader = taken->leader;
        rc = metastore_vote_save (metad->store, &row, err);
    }
    arena_destroy (arena);
    return rc == ERR_NOT_FOUND ? 0 : rc;
}

static void status_show (struct gridjob *job, const Nui__Meta__V1__JobStatus *status)
{
    job->state = status->state;
    job->start_us = status->start_us;
    job->start_is_estimate = status->start_is_estimate;
    job->end_us = status->end_us;
    job->price = status->price_micro;
    job->attempts = status->attempts;
    if (status->reason && job_ended (job))
        job_reason (job, status->reason->code, "%s", status->reason->text);
    else if (status->reason)
        job_reason (job, status->reason->code, "%s (by metascheduler %s, as %s)",
                    status->reason->text, job->lead->led_by, job->lead->led_as);
    for (uint32_t p = 0; p < job->part_count && p < status->n_components; p++) {
        struct jobpart *part = &job->part[p];
        const Nui__Meta__V1__ComponentStatus *from = status->components[p];
        snprintf (part->site, sizeof part->site, "%s", from->site);
        if (part->info)
            nui__local__v1__job_info__free_unpacked (part->info, NULL);
        part->info = (JobInfo *)pbcopy ((const ProtobufCMessage *)from->job);
        part->dirty = true;
    }
}

int adopt_taken (struct metad *metad, const Nui__Meta__V1__Taken *taken, bool *ended_out,
                 struct err *err)
{
    const Nui__Meta__V1__JobStatus *status = taken->job ? taken->status : NULL;
    struct gridjob *job = taken->job ? job_get (metad, taken->job, err)
                                     : job_of_transaction (metad, &taken->transaction);
    int rc = 0;
    bool newer = job && job->lead && (job->lead->ballot > taken->ballot ||
                                      (job->lead->ballot == taken->ballot && !adopt_is_led_elsewhere (job)));
    *ended_out = false;
    if (newer || strcmp (taken->leader, peers_self (metad->peers)) == 0)
        return 0;
    if (taken->transaction.len == 16)
        rc = vote_follow (metad, taken, &newer, err);
    if (newer)
        return rc;
    if (rc || !job || !job->record || job_ended (job)) {
        /* Not there any more: nobody waits to hear of it. */
        *ended_out = taken->job && (job ? job_ended (job) : err->code == ERR_NOT_FOUND);
        return *ended_out ? 0 : rc;
    }
    const char *as = status ? status->grid_job_id : "";
    bool known = adopt_is_led_elsewhere (job) && strcmp (job->lead->led_by, taken->leader) == 0;
    if (known && (!status || (strcmp (job->lead->led_as, as) == 0 &&
                              job->lead->change == status->change)))
        return 0;
    if (!known || (status && strcmp (job->lead->led_as, as) != 0))
        led_by (job, taken->leader, as);
    job->lead->ballot = taken->ballot;
    if (status) {
        status_show (job, status);
        job->lead->change = status->change;
    }
    uint64_t number = job->number;
    rc = job_save (job, false, err);
    if (rc)
        job_reload (metad, number);
    else
        *ended_out = status && status->state >= NUI__META__V1__GRID_JOB_STATE__GRID_COMPLETED;
    return rc;
}

/* ---- following what its first coordinator prepared */

struct following {
    struct metad *metad;
    uint64_t number;
    uint32_t part;
};

static void followed (void *arg, const struct rpc_result *result)
{
    struct following *f = arg;
    struct gridjob *job = f->metad->stopping ? NULL : job_live (f->metad, f->number);
    bool news = false;
    struct err err;
    err_clear (&err);
    if (job && result->status == RPC_OK && !job_ended (job) && !job->reloaded &&
        report_take (job, f->part, (const JobInfo *)result->reply, &news, &err) == 0) {
        if (news && job_save (job, false, &err))
            job_reload (f->metad, f->number);
        else if (job->part[f->part].info) /* what was told while another led it was not acted on */
            group_heard (job, f->part);
    }
    free (f);
}

static void part_follow (struct gridjob *job, uint32_t p)
{
    const struct jobpart *part = &job->part[p];
    enum part_state state = job->record->part[p].state;
    struct site *site = site_find (job->metad, part->site);
    Nui__Local__V1__JobRequest request = NUI__LOCAL__V1__JOB_REQUEST__INIT;
    if (!site || !part->site_job_id[0] || (state != PART_STARTING && state != PART_STARTED))
        return;
    struct following *f = malloc (sizeof *f);
    if (!f)
        abort ();
    *f = (struct following){job->metad, job->number, p};
    request.job_id = (char *)part->site_job_id;
    link_call (site->link, "Job", &request.base, ASK_TIMEOUT, followed, f);
}

void adopt_follow (struct metad *metad)
{
    struct gridjob *job, *next;
    HASH_ITER (hh, metad->jobs, job, next)
    {
        if (!job->lead || !job->lead->ballot || adopt_is_led_elsewhere (job) || job_ended (job) ||
            !job->record)
            continue;
        for (uint32_t p = 0; p < job->part_count; p++)
            part_follow (job, p);
    }
}
