#include "proto/rpc/delegation.h"

#include <stdlib.h>
#include <string.h>

#include "proto/base/text.h"
#include "proto/hash/sha256.h"
#include "proto/rpc/pbguard.h"

typedef Nui__Common__V1__Envelope Envelope;
typedef Nui__Common__V1__Delegation Delegation;
typedef Nui__Common__V1__Job Job;

static Job *job_of (const Envelope *envelope, struct err *err)
{
    return (Job *)pbguard_unpack (&nui__common__v1__job__descriptor, envelope->body.data,
                                  envelope->body.len, err);
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
    out->len = nui__common__v1__envelope__get_packed_size (sealed);
    out->data = malloc (out->len);
    if (!out->data)
        abort ();
    nui__common__v1__envelope__pack (sealed, out->data);
out:
    envelope_free (sealed);
    free (body);
    if (job)
        nui__common__v1__job__free_unpacked (job, NULL);
    return rc;
}

/* What it says, checked against the job. */
static int content_check (const Delegation *d, const Envelope *envelope, const Job *job,
                          time_us now, struct err *err)
{
    struct principal delegate;
    uint8_t hash[SHA256_BYTES];
    char when[QUANTITY_TEXT_MAX];
    sha256 (envelope->body.data, envelope->body.len, hash);
    if (strcmp (d->grid, job->grid) != 0 || d->uuid.len != job->uuid.len ||
        memcmp (d->uuid.data, job->uuid.data, job->uuid.len) != 0 || d->hash.len != sizeof hash ||
        memcmp (d->hash.data, hash, sizeof hash) != 0)
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

static int delegation_read (struct tlsid *id, const Envelope *envelope, const Job *job, time_us now,
                            struct delegation *out, struct err *err)
{
    struct principal signer;
    char uri[PRINCIPAL_URI_MAX];
    Delegation *d = NULL;
    Envelope *sealed = (Envelope *)pbguard_unpack (&nui__common__v1__envelope__descriptor,
                                                   envelope->delegation.data,
                                                   envelope->delegation.len, err);
    int rc = sealed ? envelope_verify_for (id, DELEGATION_DOMAIN, sealed, now, &signer, err)
                    : err->code;
    if (rc == 0 && strcmp (principal_uri (&signer, uri), job->submitter) != 0)
        rc = err_set (err, ERR_UNAUTHENTIC, "%.200s signed it", uri);
    if (rc == 0) {
        d = (Delegation *)pbguard_unpack (&nui__common__v1__delegation__descriptor,
                                          sealed->body.data, sealed->body.len, err);
        rc = d ? content_check (d, envelope, job, now, err) : err->code;
    }
    if (d && rc == 0) {
        snprintf (out->delegate, sizeof out->delegate, "%s", d->delegate);
        out->expires = d->expires_us;
    }
    if (d)
        nui__common__v1__delegation__free_unpacked (d, NULL);
    envelope_free (sealed);
    return rc;
}

int delegation_verify (struct tlsid *id, const Envelope *envelope, time_us now,
                       struct principal *signer_out, struct delegation *out, struct err *err)
{
    struct err why = {0};
    *out = (struct delegation){0};
    int rc = envelope_verify (id, envelope, now, signer_out, err);
    if (envelope->delegation.len == 0)
        return rc;
    Job *job = job_of (envelope, &why);
    out->good = job && delegation_read (id, envelope, job, now, out, &why) == 0;
    if (!out->good)
        text_printf (out->why, sizeof out->why, "its delegation is not good: %.300s", why.text);
    if (rc != 0 && out->good) {
        struct err then = {0};
        if (envelope_verify (id, envelope, job->created_us, signer_out, &then) == 0) {
            err_clear (err);
            rc = 0;
        }
    }
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
    Delegation *d = NULL;
    Envelope *sealed =
        envelope->delegation.len
            ? nui__common__v1__envelope__unpack (NULL, envelope->delegation.len,
                                                 envelope->delegation.data)
            : NULL;
    if (sealed)
        d = nui__common__v1__delegation__unpack (NULL, sealed->body.len, sealed->body.data);
    time_us expires = d ? d->expires_us : 0;
    if (d)
        nui__common__v1__delegation__free_unpacked (d, NULL);
    envelope_free (sealed);
    return expires;
}
