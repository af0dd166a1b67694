/* An owner's leave to go on with one job after its signature has expired: made by the client, checked by metascheduler, site
 * and bank. */
#include "proto/job/delegation.h"

#include <stdlib.h>
#include <string.h>

#include "proto/base/text.h"
#include "proto/hash/sha256.h"
#include "proto/job/jobcheck.h"
#include "proto/rpc/pbguard.h"
#include "proto/rpc/receipt.h"

typedef Nui__Common__V1__Envelope Envelope;
typedef Nui__Common__V1__Delegation Delegation;
typedef Nui__Common__V1__Job Job;

static Job *job_of (const Envelope *envelope, struct err *err)
{
    return jobcheck_unpack (&envelope->body, err);
}

int delegation_make (struct tlsid *signer, const Envelope *envelope, const char *delegate,
                     time_us now, duration_us length, ProtobufCBinaryData *out, struct err *err)
{
    Delegation d = NUI__COMMON__V1__DELEGATION__INIT;
    uint8_t hash[SHA256_BYTES], *body = NULL;
    char uri[PRINCIPAL_URI_MAX];
    Envelope *sealed = NULL;
    Job *job = job_of (envelope, err);
    int rc = job ? 0 : err->code;
    if (rc == 0 && strcmp (job->submitter, principal_uri (tlsid_self (signer), uri)) != 0)
        rc = err_set (err, ERR_DENIED, "the job was signed by %.200s, not by %.200s",
                      job->submitter, uri);
    if (rc == 0 && (length <= 0 || length > DELEGATION_MAX_US))
        rc = err_set (err, ERR_INVALID, "a delegation lasts at most %d days",
                      (int)(DELEGATION_MAX_US / US_PER_S / 86400));
    if (rc != 0)
        goto out;
    sha256 (envelope->body.data, envelope->body.len, hash);
    d.grid = job->grid;
    d.uuid = job->uuid;
    d.hash = (ProtobufCBinaryData){sizeof hash, hash};
    d.delegate = (char *)(uintptr_t)delegate;
    d.created_us = now;
    d.expires_us = now + length;
    size_t len = nui__common__v1__delegation__get_packed_size (&d);
    body = malloc (len);
    if (!body)
        abort ();
    nui__common__v1__delegation__pack (&d, body);
    rc = envelope_sign_for (signer, DELEGATION_DOMAIN, body, len, &sealed, err);
    if (rc != 0)
        goto out;
    envelope_pack (sealed, out);
out:
    envelope_free (sealed);
    free (body);
    if (job)
        nui__common__v1__job__free_unpacked (job, NULL);
    return rc;
}

static Envelope *sealed_of (const ProtobufCBinaryData *bytes, struct err *err)
{
    if (bytes->len > DELEGATION_BYTES_MAX) {
        err_set (err, ERR_LIMIT, "it has %zu bytes, at most %d are taken", bytes->len,
                 DELEGATION_BYTES_MAX);
        return NULL;
    }
    return (Envelope *)pbguard_unpack (&nui__common__v1__envelope__descriptor, bytes->data,
                                       bytes->len, err);
}

int delegation_receive (struct tlsid *receiver, ProtobufCBinaryData *delegation, time_us now,
                        struct err *err)
{
    struct err unread = {0};
    Envelope *sealed = delegation->len ? sealed_of (delegation, &unread) : NULL;
    int rc = 0;
    if (!sealed)
        return 0;
    free (sealed->receipt.data);
    sealed->receipt = (ProtobufCBinaryData){0, NULL};
    rc = receipt_make (receiver, sealed, now, &sealed->receipt, err);
    if (rc == 0) {
        free (delegation->data);
        envelope_pack (sealed, delegation);
    }
    envelope_free (sealed);
    return rc;
}

static Delegation *delegation_of (const Envelope *sealed, struct err *err)
{
    return (Delegation *)pbguard_unpack (&nui__common__v1__delegation__descriptor,
                                         sealed->body.data, sealed->body.len, err);
}

/* That it was made for these bytes. */
static int hash_check (const Delegation *d, const Envelope *envelope, struct err *err)
{
    uint8_t hash[SHA256_BYTES];
    sha256 (envelope->body.data, envelope->body.len, hash);
    return d->hash.len == sizeof hash && memcmp (d->hash.data, hash, sizeof hash) == 0
               ? 0
               : err_set (err, ERR_UNAUTHENTIC, "it is for another job");
}

/* What it says, checked against the job. */
static int content_check (const Delegation *d, const Envelope *envelope, const Job *job,
                          time_us now, struct err *err)
{
    struct principal delegate;
    char when[QUANTITY_TEXT_MAX];
    if (hash_check (d, envelope, err) < 0)
        return err->code;
    if (strcmp (d->grid, job->grid) != 0 || d->uuid.len != job->uuid.len ||
        memcmp (d->uuid.data, job->uuid.data, job->uuid.len) != 0)
        return err_set (err, ERR_UNAUTHENTIC, "it is for another job");
    if (principal_parse (d->delegate, &delegate, err) < 0 || delegate.kind != PRINCIPAL_META)
        return err_set (err, ERR_UNAUTHENTIC, "it is for no metascheduler");
    if (d->expires_us - d->created_us > DELEGATION_MAX_US || d->expires_us <= d->created_us)
        return err_set (err, ERR_UNAUTHENTIC, "it is good for longer than may be");
    if (d->expires_us <= now)
        return err_set (err, ERR_UNAUTHENTIC, "it expired at %s",
                        time_format_iso (d->expires_us, when));
    return 0;
}

/* What is sealed in it, after its signature was found good; nothing else of it is looked into before. The
 * signer's URI goes to uri. NULL: err says why. */
static Delegation *delegation_open (struct tlsid *id, const ProtobufCBinaryData *bytes, time_us now,
                                    char uri[PRINCIPAL_URI_MAX], struct err *err)
{
    struct principal signer;
    Delegation *d = NULL;
    Envelope *sealed = sealed_of (bytes, err);
    if (sealed && envelope_verify_for (id, DELEGATION_DOMAIN, sealed, now, &signer, err) == 0) {
        principal_uri (&signer, uri);
        d = delegation_of (sealed, err);
    }
    envelope_free (sealed);
    return d;
}

int delegation_verify (struct tlsid *id, const Envelope *envelope, time_us now,
                       struct principal *signer_out, struct delegation *out, struct err *err)
{
    struct err why = {0};
    char uri[PRINCIPAL_URI_MAX] = "";
    Job *job = NULL;
    *out = (struct delegation){0};
    int rc = envelope_verify (id, envelope, now, signer_out, err);
    if (envelope->delegation.len == 0)
        return rc;
    Delegation *d = delegation_open (id, &envelope->delegation, now, uri, &why);
    /* Of a job whose own signature is not good any more only what the delegation's signer has vouched for is
     * unpacked. */
    if (d && (rc == 0 || hash_check (d, envelope, &why) == 0))
        job = job_of (envelope, &why);
    if (job && strcmp (uri, job->submitter) != 0)
        err_set (&why, ERR_UNAUTHENTIC, "%.200s signed it", uri);
    else if (job)
        out->good = content_check (d, envelope, job, now, &why) == 0;
    if (out->good) {
        text_printf (out->delegate, sizeof out->delegate, "%s", d->delegate);
        out->expires = d->expires_us;
    } else
        text_printf (out->why, sizeof out->why, "its delegation is not good: %.300s", why.text);
    if (rc != 0 && out->good) {
        struct err then = {0};
        if (envelope_verify (id, envelope, job->created_us, signer_out, &then) == 0) {
            err_clear (err);
            rc = 0;
        }
    }
    if (d)
        nui__common__v1__delegation__free_unpacked (d, NULL);
    if (job)
        nui__common__v1__job__free_unpacked (job, NULL);
    return rc;
}

time_us delegation_until (const struct delegation *delegation, const char *meta)
{
    struct principal delegate;
    if (!delegation->good || principal_parse (delegation->delegate, &delegate, NULL) < 0 ||
        (*meta && strcmp (delegate.name, meta) != 0))
        return 0;
    return delegation->expires;
}

time_us delegation_says (const Envelope *envelope)
{
    struct err err;
    Envelope *sealed = envelope->delegation.len ? sealed_of (&envelope->delegation, &err) : NULL;
    Delegation *d = sealed ? delegation_of (sealed, &err) : NULL;
    time_us expires = d ? d->expires_us : 0;
    if (d)
        nui__common__v1__delegation__free_unpacked (d, NULL);
    envelope_free (sealed);
    return expires;
}
