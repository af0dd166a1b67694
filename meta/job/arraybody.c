/* Who calls: submit.c when an array comes, job_store.c when one of it is read, job.c when one goes. Nothing of it is durable. */
#include "meta/job/arraybody.h"

#include <stdlib.h>
#include <string.h>

#include "meta/job/job.h"
#include "proto/job/element.h"
#include "proto/job/jobcheck.h"

struct arraybody {
    UT_hash_handle hh;
    uint64_t array; /* 0: not listed */
    uint32_t uses;
    EnvelopeMessage *envelope;
    JobMessage *job; /* as signed */
};

struct arraybody *arraybody_create (EnvelopeMessage *envelope, struct err *err)
{
    struct arraybody *body = calloc (1, sizeof *body);
    if (!body)
        abort ();
    body->uses = 1;
    body->envelope = envelope;
    body->job = jobcheck_unpack (&envelope->body, err);
    if (body->job && element_ready (body->job, err) == 0)
        return body;
    if (body->job)
        nui__common__v1__job__free_unpacked (body->job, NULL);
    nui__common__v1__envelope__free_unpacked (envelope, NULL);
    free (body);
    return NULL;
}

void arraybody_hold (struct arraybody *body)
{
    body->uses++;
}

struct arraybody *arraybody_find (struct metad *metad, uint64_t array)
{
    struct arraybody *body = NULL;
    HASH_FIND (hh, metad->bodies, &array, sizeof array, body);
    if (body)
        body->uses++;
    return body;
}

void arraybody_list (struct metad *metad, struct arraybody *body, uint64_t array)
{
    struct arraybody *other = NULL;
    HASH_FIND (hh, metad->bodies, &array, sizeof array, other);
    if (other || body->array)
        return;
    body->array = array;
    HASH_ADD (hh, metad->bodies, array, sizeof body->array, body);
}

void arraybody_drop (struct metad *metad, struct arraybody *body)
{
    if (!body || --body->uses)
        return;
    if (body->array)
        HASH_DEL (metad->bodies, body);
    nui__common__v1__envelope__free_unpacked (body->envelope, NULL);
    nui__common__v1__job__free_unpacked (body->job, NULL);
    free (body);
}

const JobMessage *arraybody_signed (const struct arraybody *body)
{
    return body->job;
}

size_t arraybody_bytes (const struct arraybody *body)
{
    return body->envelope->body.len + body->envelope->delegation.len + 4096; /* its chain */
}

bool arraybody_is_of (const struct arraybody *body, const EnvelopeMessage *envelope)
{
    const ProtobufCBinaryData *a = &body->envelope->body, *b = &envelope->body;
    return a->len == b->len && memcmp (a->data, b->data, a->len) == 0;
}

EnvelopeMessage *arraybody_envelope (const struct arraybody *body, uint32_t element,
                                     const ProtobufCBinaryData *delegation)
{
    EnvelopeMessage *view = malloc (sizeof *view);
    if (!view)
        abort ();
    *view = *body->envelope;
    view->element = element;
    if (!delegation || !delegation->len)
        return view;
    view->delegation = (ProtobufCBinaryData){delegation->len, malloc (delegation->len + 1)};
    if (!view->delegation.data)
        abort ();
    memcpy (view->delegation.data, delegation->data, delegation->len);
    return view;
}

JobMessage *arraybody_job (const struct arraybody *body, uint32_t element, struct err *err)
{
    return element_view (body->job, element, err);
}

void arraybody_envelope_free (const struct arraybody *body, EnvelopeMessage *envelope)
{
    if (envelope && envelope->delegation.data != body->envelope->delegation.data)
        free (envelope->delegation.data);
    free (envelope);
}

void arraybody_renew (struct metad *metad, struct arraybody *body,
                      const ProtobufCBinaryData *delegation)
{
    uint8_t *data = malloc (delegation->len + 1), *old = body->envelope->delegation.data;
    if (!data)
        abort ();
    memcpy (data, delegation->data, delegation->len);
    for (struct gridjob *job = metad->jobs, *next; job; job = next) {
        next = job->hh.next;
        if (job->body != body)
            continue;
        if (job->envelope->delegation.data != old)
            free (job->envelope->delegation.data);
        job->envelope->delegation = (ProtobufCBinaryData){delegation->len, data};
    }
    free (old);
    body->envelope->delegation = (ProtobufCBinaryData){delegation->len, data};
}
