/* What a job costs at most is held at the bank before it begins: the request, durable with the decision that needs it,
 * and how it is given back. What the bank answers is life_hold.c's. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "local/svc/job.h"
#include "local/svc/job/charge.h"
#include "local/svc/job/fallback.h"
#include "local/svc/job/jobspec.h"
#include "local/svc/job/life.h"
#include "local/svc/svc_i.h"
#include "proto/base/clock.h"
#include "proto/base/text.h"
#include "proto/nui/v1/bank.pb-c.h"

static int hold_request_pack (struct svc *svc, struct site_job *job, time_us start,
                              struct store_hold *out, struct err *err)
{
    Nui__Bank__V1__HoldRequest request = NUI__BANK__V1__HOLD_REQUEST__INIT;
    struct jobspec spec;
    char id[SITE_ID_MAX];
    void *bytes = NULL;
    size_t len = 0;
    int rc = local_store_envelope (svc->store, job->rec.number, &bytes, &len, err);
    if (rc != 0)
        return rc;
    rc = jobspec_load (svc, &job->rec, &spec, err);
    if (rc != 0) {
        free (bytes);
        return rc;
    }
    request.key.data = out->key;
    request.key.len = sizeof out->key;
    Nui__Bank__V1__SiteClaim claim;
    if (charge_claim (svc, job, &claim))
        request.claim = &claim; /* nobody signed it: the site's word */
    else
        request.envelope = fallback_bare (bytes, len);
    request.site_job_id = site_id (svc, job->rec.number, id);
    request.grid_job_id = *job->rec.grid_job_id ? job->rec.grid_job_id : id; /* msub's: its own */
    bool group;
    request.metascheduler = (char *)settings_group_first (svc->settings, job->rec.meta, &group);
    request.group = group;
    request.component = job->rec.component;
    request.incarnation = job->rec.incarnation;
    request.procs = job->rec.procs;
    request.walltime_us = svc_job_length (svc, job);
    request.shape = job->rec.shape;
    request.start_us = start;
    request.qos = spec.cred[CRED_QOS] == CRED_DEFAULT || spec.cred[CRED_QOS] == CRED_NONE
                      ? (char *)""
                      : (char *)cred_name (svc->names, CRED_QOS, spec.cred[CRED_QOS]);
    request.class_ = spec.component->class_;
    request.quote_id = spec.job->quote_id; /* looked at with a claim */
    struct bank_asked asked;
    bank_asked_fill (svc, &spec, &asked);
    bank_nodes_fill (svc, job, &spec, &asked);
    request.machine = (char *)bank_machine (svc, job);
    request.asked = &asked.message;
    out->request_len = nui__bank__v1__hold_request__get_packed_size (&request);
    out->request = malloc (out->request_len + 1);
    assert (out->request && (request.envelope || request.claim));
    nui__bank__v1__hold_request__pack (&request, out->request);
    if (request.envelope)
        nui__common__v1__envelope__free_unpacked (request.envelope, NULL);
    jobspec_free (&spec);
    free (bytes);
    return 0;
}

int life_hold_prepare (struct svc *svc, struct site_job *job, time_us expected_start,
                       struct store_hold *out, struct err *err)
{
    struct uuid key;
    uuid_make (&key);
    *out = (struct store_hold){.job = job->rec.number, .wanted = true};
    memcpy (out->key, key.b, sizeof out->key);
    int rc = hold_request_pack (svc, job, expected_start, out, err);
    if (rc == 0)
        rc = local_store_hold_put (svc->store, out, err);
    if (rc != 0) {
        store_hold_free (out);
        return rc;
    }
    memcpy (job->rec.hold_key, out->key, sizeof job->rec.hold_key);
    job->rec.hold_asked = true;
    *job->rec.hold_id = 0;
    job->rec.amount = 0;
    return 0;
}

int life_hold_again (struct svc *svc, struct site_job *job, int rc, struct err *err)
{
    struct store_hold hold = {0};
    if (rc == 0)
        rc = life_hold_prepare (svc, job, svc_now (svc), &hold, err);
    if (rc == 0)
        rc = svc_job_write (svc, job, false, NULL, 0, err);
    rc = svc_commit (svc, rc, err);
    if (rc == 0)
        bank_link_hold (svc->bank, &hold);
    store_hold_free (&hold);
    return rc;
}

int life_hold_release (struct svc *svc, uint64_t number, const char *hold_id, const char *why,
                       struct err *err)
{
    Nui__Bank__V1__ReleaseRequest request = NUI__BANK__V1__RELEASE_REQUEST__INIT;
    char id[SITE_ID_MAX];
    struct uuid key;
    uint8_t bytes[1024];
    uuid_make (&key);
    request.key.data = key.b;
    request.key.len = sizeof key.b;
    request.hold_id = (char *)hold_id;
    request.site_job_id = site_id (svc, number, id);
    char reason[256];
    text_printf (reason, sizeof reason, "%s", why);
    request.reason = reason;
    size_t len = nui__bank__v1__release_request__get_packed_size (&request);
    assert (len <= sizeof bytes);
    nui__bank__v1__release_request__pack (&request, bytes);
    return local_store_outbox_put (svc->store, STORE_OUTBOX_BANK, "release", &key, bytes, len,
                                   svc_now (svc), NULL, err);
}

int life_hold_return (struct svc *svc, struct site_job *job, const char *why, struct err *err)
{
    int rc = 0;
    if (job->rec.hold_asked)
        rc = local_store_hold_unwant (svc->store, job->rec.hold_key, err);
    else if (*job->rec.hold_id)
        rc = life_hold_release (svc, job->rec.number, job->rec.hold_id, why, err);
    if (rc == 0) {
        job->rec.hold_asked = false;
        *job->rec.hold_id = 0;
    }
    return rc;
}

int life_answer_over (struct svc *svc, const struct bank_answer *answer, struct err *err)
{
    int rc = 0;
    if (answer->hold_id)
        rc = life_hold_release (svc, answer->job, answer->hold_id,
                                answer->text ? answer->text : "no longer wanted", err);
    return rc ? rc : local_store_hold_delete (svc->store, answer->key, err);
}
