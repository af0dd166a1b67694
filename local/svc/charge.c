/* What jobs used, to the bank: a message in its outbox, in the transaction that it belongs to. While a job
 * runs it is charged every FLUSHINTERVAL for all that it used so far, and once more at its end: the bank
 * posts what is new, so that one that is lost, late or repeated changes nothing. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "local/svc/charge.h"
#include "proto/base/clock.h"
#include "proto/nui/v1/bank.pb-c.h"

enum { AT_ONCE = 100 }; /* in one transaction, of some milliseconds */

int charge_send (struct svc *svc, Nui__Bank__V1__ChargeRequest *request, struct err *err)
{
    struct uuid key;
    uuid_make (&key);
    request->key.data = key.b;
    request->key.len = sizeof key.b;
    size_t len = nui__bank__v1__charge_request__get_packed_size (request);
    uint8_t *bytes = malloc (len + 1);
    assert (bytes && "out of memory");
    nui__bank__v1__charge_request__pack (request, bytes);
    int rc = local_store_outbox_put (svc->store, STORE_OUTBOX_BANK, "charge", &key, bytes, len,
                                     svc_now (svc), err);
    free (bytes);
    return rc;
}

/* Without a hold the bank has to be told who pays and what for. */
static int charge_unheld (struct svc *svc, const struct site_job *job,
                          Nui__Bank__V1__ChargeRequest *request, struct err *err)
{
    struct jobspec spec;
    struct bank_asked asked;
    Nui__Bank__V1__SiteClaim claim;
    void *bytes = NULL;
    size_t len = 0;
    int rc = jobspec_load (svc, &job->rec, &spec, err);
    if (rc != 0)
        return rc;
    bank_asked_fill (svc, &spec, &asked);
    request->asked = &asked.message;
    request->qos = spec.component->qos;
    request->class_ = spec.component->class_;
    if (native_claim (svc, job, &claim))
        request->claim = &claim;
    else if ((rc = local_store_envelope (svc->store, job->rec.number, &bytes, &len, err)) == 0)
        request->envelope = nui__common__v1__envelope__unpack (NULL, len, bytes);
    if (rc == 0)
        rc = charge_send (svc, request, err);
    nui__common__v1__envelope__free_unpacked (request->envelope, NULL);
    free (bytes);
    jobspec_free (&spec);
    return rc;
}

bool charge_unheld_may (const struct site_job *job)
{
    return job->rm.native || (job->rec.submitter && *job->rec.submitter);
}

/* AMCFG NODEFAILURE=FREE, and it ended for that. */
static bool given_away (const struct svc *svc, const struct site_job *job, bool final)
{
    return final && svc->settings->am.node_failure == AM_FREE &&
           strcmp (job->rec.reason_code, "NodeFailure") == 0;
}

int charge_job (struct svc *svc, const struct site_job *job, time_us end, duration_us cpu_time,
                bool final, struct err *err)
{
    Nui__Bank__V1__ChargeRequest request = NUI__BANK__V1__CHARGE_REQUEST__INIT;
    char id[SITE_ID_MAX];
    bool held = *job->rec.hold_id;
    if (!native_charged (svc, job) || (!held && !charge_unheld_may (job)))
        return 0;
    request.hold_id = (char *)job->rec.hold_id;
    request.site_job_id = site_id (svc, job->rec.number, id);
    request.grid_job_id = *job->rec.grid_job_id ? (char *)job->rec.grid_job_id : id;
    request.component = (char *)job->rec.component;
    request.incarnation = job->rec.incarnation;
    request.procs = job->rec.procs;
    request.start_us = job->rec.start;
    request.end_us = given_away (svc, job, final) ? job->rec.start
                                                  : end - job->rec.halted; /* stopped it used nothing */
    request.cpu_us = cpu_time;
    request.shape = job->rec.shape;
    request.final = final;
    request.successful = final && job->rec.state == STORE_JOB_COMPLETED;
    return held ? charge_send (svc, &request, err) : charge_unheld (svc, job, &request, err);
}

/* --- while they run --------------------------------------------------------------------------- */

/* Its next moment is a multiple of the interval from its start, so that a restart needs no memory of it. */
static bool partial_due (struct svc *svc, struct site_job *job, time_us now)
{
    duration_us every = svc->settings->am.flush;
    if (job->rec.state != STORE_JOB_RUNNING || !job->rec.start || every >= INT64_MAX / 4 ||
        svc->settings->am.node_failure == AM_FREE)
        return false;
    if (!job->charge_at)
        job->charge_at = job->rec.start + ((now - job->rec.start) / every + 1) * every;
    return now >= job->charge_at;
}

static int partial_put (struct svc *svc, struct site_job *job, time_us now, struct err *err)
{
    bool stopped = job->rec.suspended_at && job->rec.suspended_at < now;
    return charge_job (svc, job, stopped ? job->rec.suspended_at : now, job->cpu_used, false, err);
}

void charge_poll (struct svc *svc)
{
    struct site_job *job, *next, *list[AT_ONCE];
    struct err err = {0};
    time_us now = svc_now (svc);
    uint32_t count = 0;
    if (!svc->bank)
        return;
    HASH_ITER (hh, svc->jobs, job, next)
    {
        if (partial_due (svc, job, now))
            list[count++] = job;
        if (count == AT_ONCE)
            break;
    }
    if (count == 0)
        return;
    int rc = svc_begin (svc, &err);
    for (uint32_t i = 0; i < count && rc == 0; i++)
        rc = partial_put (svc, list[i], now, &err);
    if (svc_commit (svc, rc, &err) != 0)
        return; /* logged; at the next poll */
    for (uint32_t i = 0; i < count; i++)
        list[i]->charge_at = 0;
    bank_link_poke (svc->bank);
}
