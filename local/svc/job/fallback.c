/* AMCFG FALLBACKACCOUNT: a cluster's own job whose account cannot pay goes on with another one. The bank takes the account that
 * the user signed, so the user signs twice: the second envelope, of the same job with the other account, is kept inside the
 * first, and the two change places when the bank says that there is no money. Called by msub's service and by the bank's
 * answers. */
#include <stdlib.h>
#include <string.h>

#include "local/svc/job.h"
#include "local/svc/job/fallback.h"
#include "local/svc/svc_i.h"
#include "proto/rpc/pbguard.h"

/* Looked through first: whoever looked at the first one saw bytes only. */
static Nui__Common__V1__Envelope *fallback_within (const Nui__Common__V1__Envelope *envelope)
{
    return envelope && envelope->fallback.len
               ? (Nui__Common__V1__Envelope *)pbguard_unpack (
                     &nui__common__v1__envelope__descriptor, envelope->fallback.data,
                     envelope->fallback.len, NULL)
               : NULL;
}

static void fallback_drop (Nui__Common__V1__Envelope *envelope)
{
    free (envelope->fallback.data);
    envelope->fallback = (ProtobufCBinaryData){0};
}

Nui__Common__V1__Envelope *fallback_bare (const void *bytes, size_t len)
{
    Nui__Common__V1__Envelope *envelope = nui__common__v1__envelope__unpack (NULL, len, bytes);
    if (envelope)
        fallback_drop (envelope);
    return envelope;
}

const char *fallback_wanted (const struct svc *svc, const struct jobspec *spec,
                             const Nui__Common__V1__Envelope *envelope)
{
    const char *account = svc->settings->am.fallback;
    bool wanted = svc->bank && envelope->signature.len && envelope->fallback.len == 0 &&
                  strcmp (account, spec->job->account) != 0;
    return wanted ? account : "";
}

/* All else is the same. */
static bool fallback_same (const Nui__Common__V1__Job *first, const Nui__Common__V1__Job *other)
{
    Nui__Common__V1__Job as = *other;
    as.account = first->account;
    as.uuid = first->uuid;
    as.created_us = first->created_us;
    as.expires_us = first->expires_us;
    size_t len = nui__common__v1__job__get_packed_size (first);
    if (nui__common__v1__job__get_packed_size (&as) != len)
        return false;
    uint8_t *a = malloc (2 * len + 1), *b = a + len;
    assert (a);
    nui__common__v1__job__pack (first, a);
    nui__common__v1__job__pack (&as, b);
    bool same = memcmp (a, b, len) == 0;
    free (a);
    return same;
}

int fallback_check (struct svc *svc, const struct jobspec *spec,
                    const Nui__Common__V1__Envelope *envelope, struct err *err)
{
    const char *account = svc->settings->am.fallback;
    struct jobspec other = {0};
    if (envelope->fallback.len == 0)
        return 0;
    if (!svc->bank || !*account)
        return err_set (err, ERR_INVALID, "site %s has no fallback account", svc->site);
    Nui__Common__V1__Envelope *second = fallback_within (envelope);
    if (!second || second->fallback.len)
        return err_set (err, ERR_INVALID, "what is signed for the fallback account cannot be read");
    int rc = jobspec_verify (svc, second, "", NULL, 0, true, &other, err);
    nui__common__v1__envelope__free_unpacked (second, NULL);
    if (rc != 0)
        return err_prefix (err, "for the fallback account");
    if (strcmp (other.job->account, account) != 0)
        rc = err_set (err, ERR_INVALID, "site %s's fallback account is %s, not %.63s", svc->site,
                      account, other.job->account);
    else if (strcmp (other.submitter, spec->submitter) != 0)
        rc = err_set (err, ERR_UNAUTHENTIC, "the job is signed by %.120s, its fallback by %.120s",
                      spec->submitter, other.submitter);
    else if (!fallback_same (spec->job, other.job))
        rc = err_set (err, ERR_INVALID,
                      "what is signed for the fallback account is not the same job");
    else
        rc = jobspec_fresh (&other, err);
    jobspec_free (&other);
    return rc;
}

/* The job's envelope is this from now on. */
static int fallback_write (struct svc *svc, struct site_job *job,
                           const Nui__Common__V1__Envelope *envelope, struct err *err)
{
    size_t len = nui__common__v1__envelope__get_packed_size (envelope);
    uint8_t *bytes = malloc (len + 1);
    assert (bytes);
    nui__common__v1__envelope__pack (envelope, bytes);
    int rc = svc_begin (svc, err);
    if (rc == 0)
        rc = svc_job_write (svc, job, false, bytes, len, err);
    rc = svc_commit (svc, rc, err);
    free (bytes);
    return rc;
}

static Nui__Common__V1__Envelope *fallback_kept (struct svc *svc, uint64_t number, struct err *err)
{
    void *bytes = NULL;
    size_t len = 0;
    if (local_store_envelope (svc->store, number, &bytes, &len, err) != 0)
        return NULL;
    Nui__Common__V1__Envelope *envelope = nui__common__v1__envelope__unpack (NULL, len, bytes);
    free (bytes);
    return envelope;
}

int fallback_keep (struct svc *svc, uint64_t number, const Nui__Common__V1__Envelope *envelope,
                   struct err *err)
{
    struct site_job *job = svc_job (svc, number);
    if (envelope->fallback.len == 0 || !job)
        return 0;
    Nui__Common__V1__Envelope *has = fallback_kept (svc, number, err);
    int rc = !has ? err->code : has->fallback.len ? 0 : fallback_write (svc, job, envelope, err);
    nui__common__v1__envelope__free_unpacked (has, NULL);
    return rc;
}

bool fallback_is (const Nui__Common__V1__Envelope *stored,
                  const Nui__Common__V1__Envelope *envelope)
{
    Nui__Common__V1__Envelope *second = fallback_within (stored);
    bool same = second && second->body.len == envelope->body.len &&
                memcmp (second->body.data, envelope->body.data, second->body.len) == 0;
    nui__common__v1__envelope__free_unpacked (second, NULL);
    return same;
}

/* As the user signed it for the other account; its QoS is what the policy gives it with that. */
static int fallback_changed (struct svc *svc, struct site_job *job, struct err *err)
{
    struct jobspec spec;
    int rc = jobspec_load (svc, &job->rec, &spec, err);
    if (rc != 0)
        return rc;
    memcpy (job->cred, spec.cred, sizeof job->cred);
    svc_job_qos_set (svc, job, spec.cred[CRED_QOS]);
    jobspec_free (&spec);
    return 0;
}

bool fallback_take (struct svc *svc, struct site_job *job)
{
    const char *account = svc->settings->am.fallback;
    struct err err = {0};
    char id[SITE_ID_MAX];
    if (!*account || job->part || *job->rec.grid_job_id || job->rm.native ||
        strcmp (job->rec.pay_account, account) == 0)
        return false;
    Nui__Common__V1__Envelope *first = fallback_kept (svc, job->rec.number, &err),
                              *second = fallback_within (first);
    if (!second) {
        nui__common__v1__envelope__free_unpacked (first, NULL);
        return false;
    }
    fallback_drop (first); /* and is inside the other from now on */
    second->fallback.len = nui__common__v1__envelope__get_packed_size (first);
    second->fallback.data = malloc (second->fallback.len + 1);
    assert (second->fallback.data);
    nui__common__v1__envelope__pack (first, second->fallback.data);
    snprintf (job->rec.pay_account, sizeof job->rec.pay_account, "%s", account);
    int rc = fallback_write (svc, job, second, &err);
    nui__common__v1__envelope__free_unpacked (first, NULL);
    nui__common__v1__envelope__free_unpacked (second, NULL);
    if (rc == 0)
        rc = fallback_changed (svc, job, &err);
    if (rc != 0) {
        daemon_stop (svc->daemon, &err);
        return false;
    }
    log_event (svc->log, LOG_LEVEL_INFO, "bank", "fallback_account", "job=%s account=%s",
               site_id (svc, job->rec.number, id), account);
    return true;
}
