/* arraybody: what a user signed for an array, once in memory for all of its jobs.
 *
 * Each of them has an envelope and a job message of its own, whose bytes (script, signature, chain) are those of the array;
 * only its uuid, its index, what it stages and, where it was renewed alone, its delegation are its own. It lives as long as
 * one of them does, and is found by the array's number. */
#ifndef NUI_META_JOB_ARRAYBODY_H
#define NUI_META_JOB_ARRAYBODY_H

#include "meta/job/hub.h"

struct arraybody;

/* Around the envelope, which is taken over also on failure; used once. NULL with err. */
struct arraybody *arraybody_create (EnvelopeMessage *envelope, struct err *err);
/* Of that array, used once more; NULL: none of it is in memory. */
struct arraybody *arraybody_find (struct metad *metad, uint64_t array);
/* From now on it is found. */
void arraybody_list (struct metad *metad, struct arraybody *body, uint64_t array);
/* The last one frees it. NULL is a no-op. */
void arraybody_drop (struct metad *metad, struct arraybody *body);
void arraybody_hold (struct arraybody *body);
/* As it was signed, and how large its envelope is. */
const JobMessage *arraybody_signed (const struct arraybody *body);
size_t arraybody_bytes (const struct arraybody *body);
bool arraybody_is_of (const struct arraybody *body, const EnvelopeMessage *envelope);

/* Of one element; freed with the next but one. `delegation` NULL or empty: the array's. */
EnvelopeMessage *arraybody_envelope (const struct arraybody *body, uint32_t element,
                                     const ProtobufCBinaryData *delegation);
JobMessage *arraybody_job (const struct arraybody *body, uint32_t element, struct err *err);
/* The array's delegation becomes this one, for all of it that are in memory. */
void arraybody_renew (struct metad *metad, struct arraybody *body,
                      const ProtobufCBinaryData *delegation);
void arraybody_envelope_free (const struct arraybody *body, EnvelopeMessage *envelope);

#endif
