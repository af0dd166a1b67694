/* A user's delegation to a gate: made by the client, checked by rpcserver for each call that a gate makes and by envelope for
 * each job that a gate signed. Nothing that a gate says of itself or of its user is believed here. */
#include "proto/rpc/gatedeleg.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/clock.h"
#include "proto/hash/sha256.h"
#include "proto/rpc/envelope.h"
#include "proto/rpc/pbguard.h"

#define GATEMEMO_FOR_US (60 * US_PER_S)
#define SKEW_US (300 * US_PER_S) /* clocks may differ so much */
enum { GATEMEMO_SLOTS = 256, UUID_BYTES = 16 };

static int fields_check (const GateDelegation *d, struct err *err)
{
    if (d->n_accounts > GATEDELEG_NAMES_MAX || d->n_sites > GATEDELEG_NAMES_MAX)
        return err_set (err, ERR_LIMIT, "a delegation names at most %d accounts and %d sites",
                        GATEDELEG_NAMES_MAX, GATEDELEG_NAMES_MAX);
    if (d->jobs_max > GATEDELEG_JOBS_MAX)
        return err_set (err, ERR_LIMIT, "a delegation is for at most %d jobs", GATEDELEG_JOBS_MAX);
    if (d->jobs_max && (!d->change || d->cost_max_micro <= 0 || d->n_accounts == 0))
        return err_set (err, ERR_INVALID,
                        "a delegation for jobs names what each may cost and the accounts that pay");
    if (d->secret_hash.len != SHA256_BYTES || d->series.len != GATEDELEG_SERIES)
        return err_set (err, ERR_INVALID, "a delegation has a series and a secret's hash");
    return 0;
}

int gatedeleg_make (struct tlsid *signer, const GateDelegation *what, time_us now,
                    duration_us length, ProtobufCBinaryData *out, struct err *err)
{
    Nui__Common__V1__Envelope *sealed = NULL;
    GateDelegation d = *what;
    struct principal gate;
    uint8_t series[GATEDELEG_SERIES];
    if (principal_parse (d.gate, &gate, err) < 0)
        return err->code;
    if (gate.kind != PRINCIPAL_GATE)
        return err_set (err, ERR_INVALID, "%.200s is no gate", d.gate);
    if (length <= 0 || length > GATEDELEG_MAX_US)
        return err_set (err, ERR_INVALID, "a delegation to a gate lasts at most %d days",
                        (int)(GATEDELEG_MAX_US / US_PER_S / 86400));
    random_bytes (series, sizeof series);
    d.grid = (char *)(uintptr_t)tlsid_self (signer)->grid;
    d.series = (ProtobufCBinaryData){sizeof series, series};
    d.created_us = now;
    d.expires_us = now + length;
    if (fields_check (&d, err) < 0)
        return err->code;
    size_t len = nui__common__v1__gate_delegation__get_packed_size (&d);
    uint8_t *body = malloc (len);
    if (!body)
        abort ();
    nui__common__v1__gate_delegation__pack (&d, body);
    int rc = envelope_sign_for (signer, GATEDELEG_DOMAIN, body, len, &sealed, err);
    free (body);
    if (rc < 0)
        return rc;
    envelope_pack (sealed, out);
    envelope_free (sealed);
    return out->len <= GATEDELEG_BYTES_MAX
               ? 0
               : err_set (err, ERR_LIMIT, "the delegation has %zu bytes, at most %d are taken",
                          out->len, GATEDELEG_BYTES_MAX);
}

/* What it says, after its signature was found good. */
static int content_check (const GateDelegation *d, const struct principal *user,
                          const struct principal *gate, time_us at, struct err *err)
{
    char uri[PRINCIPAL_URI_MAX], when[QUANTITY_TEXT_MAX];
    if (user->kind != PRINCIPAL_USER)
        return err_set (err, ERR_UNAUTHENTIC, "%s signed it, not a user",
                        principal_uri (user, uri));
    if (strcmp (d->grid, user->grid) != 0)
        return err_set (err, ERR_UNAUTHENTIC, "it is for grid %.80s", d->grid);
    if (strcmp (d->gate, principal_uri (gate, uri)) != 0)
        return err_set (err, ERR_UNAUTHENTIC, "it is for %.200s, this is %s", d->gate, uri);
    if (d->expires_us <= d->created_us || d->expires_us - d->created_us > GATEDELEG_MAX_US ||
        d->created_us > at + SKEW_US)
        return err_set (err, ERR_UNAUTHENTIC, "it is good for longer than may be");
    if (d->expires_us <= at)
        return err_set (err, ERR_UNAUTHENTIC, "it expired at %s",
                        time_format_iso (d->expires_us, when));
    return fields_check (d, err) == 0 ? 0 : (err->code = ERR_UNAUTHENTIC);
}

static GateDelegation *open_since (struct tlsid *id, const ProtobufCBinaryData *bytes,
                                   const struct principal *gate, time_us at, time_us received,
                                   struct principal *user_out, struct err *err)
{
    GateDelegation *d = NULL;
    Nui__Common__V1__Envelope *sealed = NULL;
    if (bytes->len == 0 || bytes->len > GATEDELEG_BYTES_MAX)
        err_set (err, ERR_UNAUTHENTIC, "there is none, or it is over %d bytes",
                 GATEDELEG_BYTES_MAX);
    else
        sealed = (Nui__Common__V1__Envelope *)pbguard_unpack (
            &nui__common__v1__envelope__descriptor, bytes->data, bytes->len, err);
    if (sealed &&
        envelope_verify_since (id, GATEDELEG_DOMAIN, sealed, at, received, user_out, err) == 0)
        d = (GateDelegation *)pbguard_unpack (&nui__common__v1__gate_delegation__descriptor,
                                              sealed->body.data, sealed->body.len, err);
    envelope_free (sealed);
    if (d && content_check (d, user_out, gate, at, err) == 0)
        return d;
    if (d)
        nui__common__v1__gate_delegation__free_unpacked (d, NULL);
    err_prefix (err, "the user's delegation to the gate is not good");
    if (err->code != ERR_UNAVAILABLE)
        err->code = ERR_UNAUTHENTIC;
    return NULL;
}

GateDelegation *gatedeleg_open (struct tlsid *id, const ProtobufCBinaryData *bytes,
                                const struct principal *gate, time_us at,
                                struct principal *user_out, struct err *err)
{
    return open_since (id, bytes, gate, at, 0, user_out, err);
}

/* ---- jobs */

static bool is_among (const char *name, char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp (list[i], name) == 0)
            return true;
    return false;
}

static int uuid_check (const GateDelegation *d, const Nui__Common__V1__Job *job, struct err *err)
{
    const uint8_t *b = job->uuid.data;
    if (job->uuid.len != UUID_BYTES || memcmp (b, d->series.data, GATEDELEG_SERIES) != 0)
        return err_set (err, ERR_UNAUTHENTIC, "the job's uuid is none of the delegation's series");
    uint32_t number = (uint32_t)b[12] << 24 | (uint32_t)b[13] << 16 | (uint32_t)b[14] << 8 | b[15];
    if (!job->question && number >= d->jobs_max)
        return err_set (err, ERR_UNAUTHENTIC,
                        "the gate may sign %u jobs by this delegation, this is number %u",
                        d->jobs_max, number + 1);
    return 0;
}

static int sites_check (const GateDelegation *d, const Nui__Common__V1__Job *job, struct err *err)
{
    for (size_t c = 0; d->n_sites && c < job->n_components; c++) {
        const Nui__Common__V1__Component *part = job->components[c];
        bool ok = part->n_sites > 0;
        for (size_t i = 0; ok && i < part->n_sites; i++)
            ok = is_among (part->sites[i], d->sites, d->n_sites);
        if (!ok)
            return err_set (err, ERR_UNAUTHENTIC,
                            "component %.60s may run at a site that the delegation does not name",
                            part->name);
    }
    return 0;
}

static int job_check (const GateDelegation *d, const Nui__Common__V1__Job *job,
                      const struct principal *user, struct err *err)
{
    char uri[PRINCIPAL_URI_MAX], most[QUANTITY_TEXT_MAX];
    if (strcmp (job->submitter, principal_uri (user, uri)) != 0)
        return err_set (err, ERR_UNAUTHENTIC,
                        "the job says it is by %.200s, the delegation is %s's", job->submitter,
                        uri);
    if (uuid_check (d, job, err) < 0)
        return err->code;
    if (job->question) /* nothing is held for it */
        return 0;
    if (job->n_indexes) /* each index has bounds of its own */
        return err_set (err, ERR_UNAUTHENTIC, "a gate cannot sign an array");
    if (job->cost_max_micro <= 0 || job->cost_max_micro > d->cost_max_micro)
        return err_set (err, ERR_UNAUTHENTIC, "the job may cost more than the delegation's %s",
                        credit_format (d->cost_max_micro, most));
    if (!is_among (job->account, d->accounts, d->n_accounts))
        return err_set (err, ERR_UNAUTHENTIC, "the delegation does not name account '%.60s'",
                        job->account);
    if (job->created_us < d->created_us || job->expires_us <= 0 || job->expires_us > d->expires_us)
        return err_set (err, ERR_UNAUTHENTIC, "the job is good for longer than the delegation");
    return sites_check (d, job, err);
}

int gatedeleg_job (struct tlsid *id, const Nui__Common__V1__Envelope *envelope,
                   const struct principal *gate, time_us at, time_us received,
                   struct principal *user_out, struct err *err)
{
    struct principal user;
    GateDelegation *d = open_since (id, &envelope->gate_delegation, gate, at, received, &user, err);
    if (!d)
        return err->code;
    Nui__Common__V1__Job *job = NULL;
    if (pbguard_few (&nui__common__v1__job__descriptor, envelope->body.data, envelope->body.len,
                     PBGUARD_FIELDS, err) == 0)
        job = nui__common__v1__job__unpack (NULL, envelope->body.len, envelope->body.data);
    int rc = job ? job_check (d, job, &user, err)
                 : err_set (err, ERR_UNAUTHENTIC, "what the gate signed is not a job");
    if (rc == 0)
        *user_out = user;
    if (job)
        nui__common__v1__job__free_unpacked (job, NULL);
    nui__common__v1__gate_delegation__free_unpacked (d, NULL);
    return rc;
}

/* ---- headers */

struct gatememo {
    struct gateslot {
        uint8_t digest[SHA256_BYTES];
        time_us until; /* 0: empty */
        struct principal user;
        bool change;
    } slot[GATEMEMO_SLOTS];
};

struct gatememo *gatememo_create (void)
{
    return calloc (1, sizeof (struct gatememo));
}

void gatememo_destroy (struct gatememo *memo)
{
    free (memo);
}

void gatememo_forget (struct gatememo *memo)
{
    memset (memo, 0, sizeof *memo);
}

/* base64, with its padding or, as gRPC has it, without. */
static int header_decode (const char *header, size_t len, ProtobufCBinaryData *out, struct err *err)
{
    char text[GATEDELEG_BYTES_MAX / 3 * 4 + 8];
    while (len && header[len - 1] == '=')
        len--;
    if (len + 4 > sizeof text || len % 4 == 1)
        return err_set (err, ERR_UNAUTHENTIC, "the delegation is no base64 of at most %d bytes",
                        GATEDELEG_BYTES_MAX);
    memcpy (text, header, len);
    size_t pad = (4 - len % 4) % 4;
    memset (text + len, '=', pad);
    int n = EVP_DecodeBlock (out->data, (const unsigned char *)text, (int)(len + pad));
    if (n <= (int)pad)
        return err_set (err, ERR_UNAUTHENTIC, "the delegation is no base64");
    out->len = (size_t)n - pad;
    return 0;
}

int gatememo_check (struct gatememo *memo, struct tlsid *id, const char *header, size_t len,
                    const struct principal *gate, time_us now, struct principal *user_out,
                    bool *change_out, struct err *err)
{
    uint8_t digest[SHA256_BYTES], bytes[GATEDELEG_BYTES_MAX + 8];
    ProtobufCBinaryData decoded = {0, bytes};
    EVP_MD_CTX *hash = sha256_begin ();
    sha256_add_part (hash, gate->name, strlen (gate->name));
    sha256_add_part (hash, header, len);
    sha256_end (hash, digest);
    struct gateslot *slot = &memo->slot[digest[0] % GATEMEMO_SLOTS];
    if (slot->until <= now || memcmp (slot->digest, digest, sizeof digest) != 0) {
        if (header_decode (header, len, &decoded, err) < 0)
            return err->code;
        GateDelegation *d = gatedeleg_open (id, &decoded, gate, now, user_out, err);
        if (!d)
            return err->code;
        *slot = (struct gateslot){
            .until = now + GATEMEMO_FOR_US, .user = *user_out, .change = d->change};
        if (slot->until > d->expires_us)
            slot->until = d->expires_us;
        memcpy (slot->digest, digest, sizeof digest);
        nui__common__v1__gate_delegation__free_unpacked (d, NULL);
    }
    *user_out = slot->user;
    *change_out = slot->change;
    return 0;
}
