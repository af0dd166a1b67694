/* Charges that the bank refuses for good (bank_link's dead letters). One is sent again by itself: the charge of a hold
 * that the bank does not know, or has given to another job, because it was restored to a moment before it granted it. Without the hold, with what
 * the user signed, the bank takes it. Others stay dead, for whoever reconciles. */
#include <stdlib.h>
#include <string.h>

#include "local/store/runs.h"
#include "local/svc/job.h"
#include "local/svc/job/charge.h"
#include "local/svc/job/fallback.h"
#include "local/svc/svc_i.h"
#include "proto/base/clock.h"
#include "proto/nui/v1/bank.pb-c.h"
#include "proto/rpc/rpcserver.h"

struct lost {
    struct svc *svc;
    uint64_t number; /* of the job; 0: it is none of a job */
    uint64_t message;
    int rc;
    struct err *err;
};

/* A running job goes on without its hold: what it is charged later names none. */
static int hold_drop (struct svc *svc, uint64_t number, const char *hold_id, struct err *err)
{
    struct site_job *job = svc_job (svc, number);
    if (!job || strcmp (job->rec.hold_id, hold_id) != 0)
        return 0;
    *job->rec.hold_id = 0;
    int rc = svc_job_write (svc, job, false, NULL, 0, err);
    if (rc != 0)
        snprintf (job->rec.hold_id, sizeof job->rec.hold_id, "%s", hold_id);
    return rc;
}

/* What its user signed says who pays; of a job that nobody signed, the claim that the run's row has. */
static Nui__Common__V1__Envelope *envelope_of (struct svc *svc, uint64_t number)
{
    struct store_rm_job rm = {0};
    struct err err = {0};
    void *bytes = NULL;
    size_t len = 0;
    if (!number || (local_store_rm_job_get (svc->store, number, &rm, &err) == 0 && rm.native) ||
        local_store_envelope (svc->store, number, &bytes, &len, &err) != 0)
        return NULL;
    Nui__Common__V1__Envelope *envelope = fallback_bare (bytes, len);
    free (bytes);
    return envelope;
}

static void on_run (void *arg, const struct store_run *run)
{
    struct lost *l = arg;
    struct svc *svc = l->svc;
    Nui__Bank__V1__ChargeRequest *request =
        nui__bank__v1__charge_request__unpack (NULL, run->request_len, run->request);
    assert (request); /* we packed it ourselves */
    char *hold = request->hold_id;
    Nui__Bank__V1__SiteClaim *claim = request->claim;
    request->hold_id = (char *)"";
    request->envelope = envelope_of (svc, l->number);
    if (request->envelope)
        request->claim = NULL;
    uint64_t message = 0;
    l->rc = charge_put (svc, request, &message, l->err);
    if (l->rc == 0)
        l->rc = runs_message_set (svc->store, l->message, message, l->err);
    request->hold_id = hold;
    request->claim = claim;
    nui__bank__v1__charge_request__free_unpacked (request, NULL);
}

int charge_refused (void *arg, const struct store_item *item, enum rpc_status status,
                    struct err *err)
{
    struct svc *svc = arg;
    struct lost lost = {.svc = svc, .message = item->sequence, .err = err};
    char site[256];
    /* In conflict: a bank that was restored gave the name to another job's hold. */
    if ((status != RPC_NOT_FOUND && status != RPC_FAILED_PRECONDITION) ||
        strcmp (item->kind, "release") == 0)
        return 0;
    Nui__Bank__V1__ChargeRequest *request =
        nui__bank__v1__charge_request__unpack (NULL, item->payload_len, item->payload);
    assert (request);
    int rc = 0;
    if (*request->hold_id) {
        if (id_parse (request->site_job_id, site, sizeof site, &lost.number, NULL) != 0)
            lost.number = 0; /* "alpha.john.1": what a reservation kept idle */
        rc = hold_drop (svc, lost.number, request->hold_id, err);
        if (rc == 0 && request->final)
            rc = runs_of_message (svc->store, item->sequence, on_run, &lost, err);
    }
    nui__bank__v1__charge_request__free_unpacked (request, NULL);
    return rc < 0 ? rc : lost.rc;
}
