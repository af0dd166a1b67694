/* A job's way to disk and back: its row, its components, and by the listeners what each room keeps of it, all in one
 * transaction. Nothing is told to anybody before that is durable. */
#include "meta/job/job_i.h"

#include <stdio.h>
#include <string.h>

#include "meta/job/peers.h"
#include "proto/base/text.h"
#include "proto/job/element.h"
#include "proto/rpc/pbguard.h"

/* ---- writing */

static struct metastore_blob pack (const ProtobufCMessage *message, struct arena *arena)
{
    struct metastore_blob blob = {NULL, 0};
    if (!message)
        return blob;
    blob.len = protobuf_c_message_get_packed_size (message);
    uint8_t *bytes = arena_alloc (arena, blob.len);
    protobuf_c_message_pack (message, bytes);
    blob.bytes = bytes;
    return blob;
}

struct metastore_blob job_envelope_pack (const struct gridjob *job, const EnvelopeMessage *envelope,
                                         struct arena *arena)
{
    EnvelopeMessage same = *envelope;
    if (job->element)
        same.element = 0;
    return pack (&same.base, arena);
}

static int parts_save (struct gridjob *job, bool all, struct arena *arena, struct err *err)
{
    int rc = 0;
    for (uint32_t p = 0; p < job->part_count && rc == 0; p++) {
        struct jobpart *part = &job->part[p];
        if (!part->dirty && !all)
            continue;
        struct component_row row = {.index = p,
                                    .name = part->name,
                                    .site = part->site,
                                    .site_job_id = part->site_job_id,
                                    .next_job_id = part->next_job_id};
        row.info = pack (part->info ? &part->info->base : NULL, arena);
        row.peer = pack (part->peer ? &part->peer->base : NULL, arena);
        row.next_peer = pack (part->next_peer ? &part->next_peer->base : NULL, arena);
        row.answers = pack (part->answers ? &part->answers->base : NULL, arena);
        rc = metastore_component_save (job->metad->store, job->number, &row, err);
    }
    return rc;
}

static struct job_row row_of (const struct gridjob *job)
{
    struct job_row row = {
        .number = job->number,
        .submitter = job->submitter,
        .name = job->job->name,
        .account = job->job->account,
        .submit_us = job->submit_us,
        .expires_us = job->job->expires_us,
        .state = (int32_t)job->state,
        .ended = job_ended (job),
        .reason_code = job->reason.code,
        .reason_text = job->reason.text,
        .start_us = job->start_us,
        .start_is_estimate = job->start_is_estimate,
        .end_us = job->end_us,
        .price = job->price,
        .attempts = job->attempts,
        .change = job->change,
        .cancel_wanted = job->cancel_wanted,
        .site = job->site,
        .site_attempt = job->site_attempt,
        .place = (int32_t)job->place,
        .shape = job->shape,
        .held = (int32_t)job->held,
        .attempt_last = job->attempt_last,
        .retries = job->retries,
        .retry_us = job->retry_us,
        .contact_us = job->contact_us,
        .move_stage = (int32_t)job->move.stage,
        .move_site = job->move.site,
        .move_job_id = job->move.site_job_id,
        .move_attempt = job->move.attempt,
        .move_shape = job->move.shape,
        .move_price = job->move.price,
        .array = job->array,
        .element = job->element,
    };
    memcpy (row.uuid.b, job->job->uuid.data, sizeof row.uuid.b);
    return row;
}

/* In the transaction that is open. Of an array only the first has the envelope. */
static int insert_one (struct gridjob *job, uint64_t *number_out, struct arena *arena,
                       struct err *err)
{
    struct metastore *store = job->metad->store;
    const struct peers *peers = job->metad->peers;
    struct job_row row = row_of (job);
    int rc = 0;
    if (peers)
        rc = metastore_job_number (store, peers->count, peers->self, &row.number, err);
    else if (job->element)
        rc = metastore_job_number (store, 1, 0, &row.number, err);
    if (job->element && !job->array)
        job->array = row.array = row.number;
    row.envelope = (struct metastore_blob){"", 0};
    if (row.array == 0 || row.array == row.number)
        row.envelope = job_envelope_pack (job, job->envelope, arena);
    if (rc == 0)
        rc = metastore_job_insert (store, &row, number_out, err);
    if (rc == 0) {
        job_list (job, *number_out);
        rc = parts_save (job, true, arena, err);
        parts_ask (rc, job->metad, job_inserting, job, err);
    }
    return rc;
}

int job_insert (struct gridjob *const *job, uint32_t count, uint64_t *number_out, struct err *err)
{
    struct metad *metad = job[0]->metad;
    uint64_t number = 0;
    int rc = metastore_begin (metad->store, err);
    if (rc)
        return rc;
    for (uint32_t i = 0; i < count && rc == 0; i++) {
        struct arena *arena = arena_create (0);
        if (!job[i]->submit_us)
            job[i]->submit_us = clock_now_us ();
        if (metad->peers)
            job[i]->change = 1; /* the first version that there is */
        if (i)
            job[i]->array = job[0]->array;
        rc = insert_one (job[i], &number, arena, err);
        if (i == 0 || rc)
            *number_out = number;
        arena_destroy (arena);
    }
    if (rc == 0)
        rc = metastore_commit (metad->store, err);
    for (uint32_t i = 0; i < count && rc; i++)
        job_unlist (job[i]);
    if (rc)
        metastore_rollback (metad->store);
    for (uint32_t i = 0; i < count && rc == 0; i++)
        parts_tell (metad, job_saved, job[i], true);
    return rc;
}

/* Nests in a transaction that the caller has begun (a report). */
int job_save (struct gridjob *job, bool with_record, struct err *err)
{
    struct metad *metad = job->metad;
    struct arena *arena = arena_create (0);
    bool nested = metad->in_report;
    job->change += !job_is_elsewhere (job); /* else its version is another's to give */
    struct job_row row = row_of (job);
    int rc = nested ? 0 : metastore_begin (metad->store, err);
    if (rc)
        goto out;
    rc = metastore_job_update (metad->store, &row, err);
    if (rc == 0)
        rc = parts_save (job, false, arena, err);
    parts_ask (rc, metad, job_saving, job, with_record, err);
    if (rc == 0 && !nested)
        rc = metastore_commit (metad->store, err);
    if (rc && !nested)
        metastore_rollback (metad->store);
out:
    job->unsaved = rc != 0;
    if (rc == 0) {
        parts_tell (metad, job_saved, job, with_record);
        job->saved_state = job->state;
        job->saved_retries = job->retries;
        for (uint32_t p = 0; p < job->part_count; p++)
            job->part[p].dirty = false;
        if (!nested)
            job_tell (job);
    } else {
        char text[ERR_TEXT_MAX * 2];
        log_event (metad->log, LOG_LEVEL_ERROR, "store", "save_failed", "job=%s why=%s", job->id,
                   log_quote (err ? err->text : "", text, sizeof text));
    }
    arena_destroy (arena);
    return rc;
}

/* ---- reading */

/* Guarded: of a group's job the rows may be another member's. NULL: there is none, or it cannot be read. */
static ProtobufCMessage *blob_unpack (const ProtobufCMessageDescriptor *d,
                                      const struct metastore_blob *blob)
{
    return blob->len ? pbguard_unpack (d, blob->bytes, blob->len, NULL) : NULL;
}

static int parts_load (struct gridjob *job, struct arena *arena, struct err *err)
{
    struct component_row *rows = NULL;
    uint32_t count = 0;
    int rc = metastore_component_load (job->metad->store, job->number, arena, &rows, &count, err);
    if (rc)
        return rc;
    for (uint32_t i = 0; i < count; i++) {
        const struct component_row *row = &rows[i];
        if (row->index >= job->part_count)
            return err_set (err, ERR_IO, "%s: its components on disk are damaged", job->id);
        struct jobpart *part = &job->part[row->index];
        snprintf (part->site, sizeof part->site, "%s", row->site);
        snprintf (part->site_job_id, sizeof part->site_job_id, "%s", row->site_job_id);
        part->info = (JobInfo *)blob_unpack (&nui__local__v1__job_info__descriptor, &row->info);
        part->peer =
            (Nui__Common__V1__Peer *)blob_unpack (&nui__common__v1__peer__descriptor, &row->peer);
        snprintf (part->next_job_id, sizeof part->next_job_id, "%s", row->next_job_id);
        part->next_peer = (Nui__Common__V1__Peer *)blob_unpack (&nui__common__v1__peer__descriptor,
                                                                &row->next_peer);
        part->answers = (Nui__Meta__V1__SiteAnswers *)blob_unpack (
            &nui__meta__v1__site_answers__descriptor, &row->answers);
    }
    return 0;
}

static void row_take (struct gridjob *job, const struct job_row *row)
{
    job->submit_us = row->submit_us;
    job->state = job->saved_state = (Nui__Meta__V1__GridJobState)row->state;
    snprintf (job->reason.code, sizeof job->reason.code, "%s", row->reason_code);
    text_printf (job->reason.text, sizeof job->reason.text, "%s", row->reason_text);
    job->start_us = row->start_us;
    job->start_is_estimate = row->start_is_estimate;
    job->end_us = row->end_us;
    job->price = row->price;
    job->attempts = row->attempts;
    job->change = row->change;
    job->cancel_wanted = row->cancel_wanted;
    snprintf (job->site, sizeof job->site, "%s", row->site);
    job->site_attempt = row->site_attempt;
    job->place = (enum single_phase)row->place;
    job->shape = row->shape;
    job->held = (enum job_hold)row->held;
    job->attempt_last = row->attempt_last;
    job->retries = job->saved_retries = row->retries;
    job->retry_us = row->retry_us;
    job->contact_us = row->contact_us;
    job->move.stage = (enum move_stage)row->move_stage;
    snprintf (job->move.site, sizeof job->move.site, "%s", row->move_site);
    snprintf (job->move.site_job_id, sizeof job->move.site_job_id, "%s", row->move_job_id);
    job->move.attempt = row->move_attempt;
    job->move.shape = row->move_shape;
    job->move.price = row->move_price;
}

/* The envelope of its row, or of its array's first. NULL: it is damaged. */
static EnvelopeMessage *envelope_load (struct metad *metad, const struct job_row *row,
                                       struct arena *arena)
{
    struct job_row first = *row;
    if (row->array && row->array != row->number && !row->envelope.len &&
        metastore_job_load (metad->store, row->array, arena, &first, NULL))
        return NULL;
    EnvelopeMessage *envelope =
        (EnvelopeMessage *)blob_unpack (&nui__common__v1__envelope__descriptor, &first.envelope);
    if (envelope)
        envelope->element = row->element;
    return envelope;
}

static struct gridjob *job_of_envelope (struct metad *metad, EnvelopeMessage *envelope,
                                        const struct job_row *row, struct err *err)
{
    JobMessage *body = element_unpack (envelope, NULL);
    if (body && body->n_components)
        return job_create (metad, envelope, body, row->submitter, err);
    nui__common__v1__envelope__free_unpacked (envelope, NULL);
    if (body)
        nui__common__v1__job__free_unpacked (body, NULL);
    return NULL;
}

/* What others of its array have in memory is not read again. */
static struct gridjob *job_of_array (struct metad *metad, EnvelopeMessage *envelope,
                                     struct arraybody *body, const struct job_row *row,
                                     struct err *err)
{
    ProtobufCBinaryData *delegation = NULL;
    if (!body)
        body = arraybody_create (envelope, err);
    else if (envelope)
        delegation = &envelope->delegation;
    struct gridjob *job =
        body ? job_create_element (metad, body, row->element, delegation, row->submitter, err)
             : NULL;
    if (delegation)
        nui__common__v1__envelope__free_unpacked (envelope, NULL);
    arraybody_drop (metad, body);
    return job;
}

static struct gridjob *job_of_row (struct metad *metad, const struct job_row *row,
                                   struct arena *arena, struct err *err)
{
    struct arraybody *body = row->array ? arraybody_find (metad, row->array) : NULL;
    if (body && !row->envelope.len)
        return job_of_array (metad, NULL, body, row, err);
    EnvelopeMessage *envelope = envelope_load (metad, row, arena);
    if (envelope && row->array && (!body || arraybody_is_of (body, envelope)))
        return job_of_array (metad, envelope, body, row, err);
    arraybody_drop (metad, body);
    return envelope ? job_of_envelope (metad, envelope, row, err) : NULL;
}

struct gridjob *job_load (struct metad *metad, uint64_t number, struct err *err)
{
    struct arena *arena = arena_create (0);
    struct gridjob *job = NULL;
    struct job_row row;
    if (metastore_job_load (metad->store, number, arena, &row, err))
        goto out;
    job = job_of_row (metad, &row, arena, err);
    if (!job) {
        err_set (err, ERR_IO, "grid.%llu: its envelope on disk is damaged",
                 (unsigned long long)number);
        goto out;
    }
    job->array = row.array;
    job->element = row.element;
    job_list (job, number);
    row_take (job, &row);
    int rc = parts_load (job, arena, err);
    parts_ask (rc, metad, job_loaded, job, arena, err);
    if (rc) {
        job_destroy (job);
        job = NULL;
    }
out:
    arena_destroy (arena);
    return job;
}
