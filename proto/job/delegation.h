/* delegation: leave that a user gives a metascheduler to go on with one signed job after its expiry.
 *
 * A long job would need a signature that is good for long, or its owner's key in somebody's hands. Instead the
 * owner signs, now and again, that the metascheduler may still act for this one job (by uuid and hash of what
 * was signed) until a moment. It travels in the job's envelope, and sites and bank check it themselves. A good
 * one also stands in for a certificate that was good when the job was signed and has ended since: it comes from
 * the same person. */
#ifndef NUI_JOB_DELEGATION_H
#define NUI_JOB_DELEGATION_H

#include "proto/rpc/envelope.h"

#define DELEGATION_DOMAIN "nui-delegation-v1"
/* A longer one is refused: it is there to be renewed. */
#define DELEGATION_MAX_US (30 * 86400 * US_PER_S)
enum { DELEGATION_BYTES_MAX = 64 << 10 }; /* its chain of certificates is most of it */

struct delegation {
    bool good;
    char delegate[PRINCIPAL_URI_MAX]; /* nui://grid/meta/name */
    time_us expires;        /* 0: there is none, or it says nothing that can be believed */
    char why[ERR_TEXT_MAX]; /* "" where it is good, or there is none */
};

/* Signed by the owner of the job, as signer is; *out is malloc'ed and goes into envelope->delegation. */
int delegation_make (struct tlsid *signer, const Nui__Common__V1__Envelope *job,
                     const char *delegate, time_us now, duration_us length,
                     ProtobufCBinaryData *out, struct err *err);
/* Whoever takes it says when, so that it outlives a certificate of hours (receipt.h). *delegation is malloc'ed, and may become
 * another; what is no delegation is left as it is, for delegation_verify to say so. */
int delegation_receive (struct tlsid *receiver, ProtobufCBinaryData *delegation, time_us now,
                        struct err *err);
/* As envelope_verify of a job at the moment now, or, with a good delegation, at the moment it was
 * signed. *out says what the delegation is worth; a bad one alone is no error. */
int delegation_verify (struct tlsid *id, const Nui__Common__V1__Envelope *envelope, time_us now,
                       struct principal *signer_out, struct delegation *out, struct err *err);
/* Until when the metascheduler may act for the job by it; 0: it may not. meta "": whoever it is. */
time_us delegation_until (const struct delegation *delegation, const char *meta);

/* When it ends by its own word, unchecked: of an envelope that was checked before; 0: there is none. */
time_us delegation_says (const Nui__Common__V1__Envelope *envelope);

#endif
