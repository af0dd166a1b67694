/* msub: a job for this cluster alone.
 *
 * Signed, it is trusted as one that comes by a metascheduler, and the signer must be the caller.
 * Unsigned it is taken on the cluster's own socket only, where the kernel says whose it is, and only
 * where nothing is charged: a bank wants the signature. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "local/svc/admin/admin.h"
#include "local/svc/caller.h"
#include "local/svc/grid/grid.h"
#include "local/svc/job.h"
#include "local/svc/job/fallback.h"
#include "local/svc/job/jobs.h"
#include "local/svc/job/jobspec.h"
#include "local/svc/svc_i.h"

/* It is no bearer cheque: on the socket only the account that the gridmap gives the signer may hand it in (and
 * root, who may be anybody here), elsewhere only the signer. */
static int spec_signed (struct svc *svc, const struct admin_caller *caller,
                        const Nui__Local__V1__SubmitJobRequest *r, struct jobspec *spec,
                        struct err *err)
{
    int rc = jobspec_verify (svc, r->envelope, "", NULL, 0, true, spec, err);
    if (rc != 0)
        return rc;
    if (!caller->local && strcmp (caller->name, spec->submitter) != 0)
        rc = err_set (err, ERR_UNAUTHENTIC, "the job is signed by %.120s, but %.120s sends it",
                      spec->submitter, caller->name);
    else if (caller->local && strcmp (caller->login, spec->local_account) != 0 &&
             strcmp (caller->login, "root") != 0)
        rc =
            err_set (err, ERR_UNAUTHENTIC,
                     "the job is signed by %.120s, whose account here is %.60s, but %.60s sends it",
                     spec->submitter, spec->local_account, caller->login);
    else if (svc->bank && !spec->job->cost_max_micro && !spec->job->cost_any)
        rc = err_set (
            err, ERR_DENIED,
            "jobs are charged at site %.60s, and this one's user signed no bound of what it may cost: name "
            "the bank in nui.cfg (BANK), which knows its price, or say --max-cost CREDITS or --max-cost none",
            svc->site);
    if (rc != 0)
        jobspec_free (spec);
    return rc;
}

static int spec_of (struct svc *svc, const struct admin_caller *caller,
                    const Nui__Local__V1__SubmitJobRequest *r, struct jobspec *spec,
                    struct err *err)
{
    if (!r->envelope)
        return err_set (err, ERR_INVALID, "the request carries no job");
    if (r->envelope->signature.len > 0)
        return spec_signed (svc, caller, r, spec, err);
    if (!caller->local)
        return err_set (err, ERR_UNAUTHENTIC,
                        "a job that nobody signed is taken on the cluster's own socket only");
    if (svc->bank)
        return err_set (err, ERR_DENIED,
                        "jobs are charged at site %s, so they must be signed: "
                        "name your certificate in nui.cfg (CERT, KEY)",
                        svc->site);
    return jobspec_local (svc, r->envelope, caller->login, spec, err);
}

static int holds_of (const Nui__Local__V1__SubmitJobRequest *r, uint32_t *out, struct err *err)
{
    *out = 0;
    for (size_t i = 0; i < r->n_holds; i++) {
        if (strcasecmp (r->holds[i], "User") != 0)
            return err_set (err, ERR_INVALID, "hold '%.40s': a new job may have a User hold",
                            r->holds[i]);
        *out = HOLD_USER;
    }
    return 0;
}

/* Nodes come back and reservations are released: what waits for that waits in the queue, and says so. */
static bool only_for_now (const struct reason *reason)
{
    return reason->code == REASON_RESERVATION || reason->code == REASON_RESERVATION_GONE ||
           reason->code == REASON_BARRED || (reason->code == REASON_NEVER_FREE && reason->rsv.v);
}

/* Could it ever run here, and as this account? *start: 0 where nobody can say when. */
static int acceptable (struct svc *svc, const struct jobspec *spec, time_us *start, struct err *err)
{
    struct slot slot = {.start = TIME_US_NONE};
    char text[512];
    int rc = jobspec_runnable (spec, err);
    if (rc == 0 && spec->never_fits)
        rc = err_set (err, ERR_CONFLICT, "%s", spec->never_text);
    if (rc == 0 && svc->rm.ops->account_check)
        rc = svc->rm.ops->account_check (spec->local_account, err);
    if (rc == 0)
        rc = jobs_estimate (svc, spec, svc_now (svc), &slot, err);
    if (rc != 0 || slot.start != TIME_US_NONE) {
        *start = slot.start;
        return rc;
    }
    *start = 0;
    rc = jobs_estimate_bare (svc, spec, svc_now (svc), &slot, err);
    if (rc == 0 && slot.start == TIME_US_NONE && !only_for_now (&slot.reason))
        rc = err_set (err, ERR_CONFLICT, "%s",
                      reason_text (&slot.reason, svc->names, text, sizeof text));
    return rc;
}

/* A known uuid is the same job only with the same content, of the same account. */
static int known_again (struct svc *svc, uint64_t number, const struct jobspec *spec,
                        const Nui__Common__V1__Envelope *envelope, struct err *err)
{
    struct store_job before = {0};
    bool same = false;
    int rc = local_store_job_get (svc->store, number, &before, err);
    if (rc == 0 && strcmp (before.local_account, spec->local_account) != 0)
        rc = err_set (err, ERR_EXISTS, "a job with this uuid is somebody else's");
    store_job_free (&before);
    if (rc == 0)
        rc = svc_job_signed (svc, number, envelope, &same, err);
    if (rc == 0 && !same)
        rc = err_set (err, ERR_EXISTS,
                      "a job with this uuid and other content was taken as %.60s.%llu", svc->site,
                      (unsigned long long)number);
    return rc;
}

static int submit (struct svc *svc, const struct admin_caller *caller,
                   const Nui__Local__V1__SubmitJobRequest *r, const struct jobspec *spec,
                   uint64_t *number, time_us *start, struct err *err)
{
    struct jobs_wish wish = {
        .envelope = r->envelope, .grid_job_id = "", .uuid = spec->job->uuid.data};
    struct site_job *job;
    char id[SITE_ID_MAX];
    int rc = holds_of (r, &wish.holds, err);
    if (rc == 0)
        rc = fallback_check (svc, spec, r->envelope, err);
    if (rc != 0)
        return rc;
    rc = local_store_submission_get (svc->store, wish.uuid, number, err);
    if (rc == 0) /* again: the same answer, to the same person */
        rc = known_again (svc, *number, spec, r->envelope, err);
    if (rc != ERR_NOT_FOUND)
        return rc == 0 ? fallback_keep (svc, *number, r->envelope, err) : rc;
    rc = jobspec_fresh (spec, err);
    if (rc == 0 && *spec->submitter)
        rc = replay_unknown (svc, spec, err);
    if (rc == 0)
        rc = acceptable (svc, spec, start, err);
    if (rc == 0)
        rc = jobs_enter (svc, &wish, spec, &job, err);
    if (rc != 0)
        return rc;
    *number = job->rec.number;
    if (wish.holds || spec->job->held)
        *start = 0;
    log_event (svc->log, LOG_LEVEL_INFO, "svc", "job_submitted", "job=%s by=%s account=%s",
               site_id (svc, *number, id), caller->name, spec->local_account);
    pass_wake (svc);
    return 0;
}

void admin_submit (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct svc *svc = self;
    const Nui__Local__V1__SubmitJobRequest *r = (const Nui__Local__V1__SubmitJobRequest *)request;
    Nui__Local__V1__SubmitJobReply reply = NUI__LOCAL__V1__SUBMIT_JOB_REPLY__INIT;
    struct admin_caller caller;
    struct jobspec spec = {0};
    struct err err = {0};
    uint64_t number = 0;
    time_us start = 0;
    char id[SITE_ID_MAX];
    admin_who (svc, call, &caller);
    arena_reset (svc->call_arena);
    int rc = svc_may_act (svc, &err);
    if (rc == 0)
        rc = spec_of (svc, &caller, r, &spec, &err);
    if (rc == 0) {
        rc = submit (svc, &caller, r, &spec, &number, &start, &err);
        reply.fallback_account = (char *)fallback_wanted (svc, &spec, r->envelope);
        jobspec_free (&spec);
    }
    if (rc != 0) {
        jobs_refuse (svc, call, &err);
        return;
    }
    reply.job_id = site_id (svc, number, id);
    reply.start_estimate_us = start;
    rpccall_reply (call, &reply.base);
}
