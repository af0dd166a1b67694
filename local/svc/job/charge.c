/* What jobs used, to the bank: a message in its outbox, in the transaction that it belongs to. While a job
 * runs it is charged every FLUSHINTERVAL for all that it used so far, and once more at its end: the bank
 * posts what is new, so that one that is lost, late or repeated changes nothing. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "local/store/runs.h"
#include "local/svc/job.h"
#include "local/svc/grid/grid.h"
#include "local/svc/job/charge.h"
#include "local/svc/job/fallback.h"
#include "local/svc/job/jobspec.h"
#include "local/svc/nodes.h"
#include "local/svc/svc_i.h"
#include "proto/base/clock.h"
#include "proto/nui/v1/bank.pb-c.h"

enum { AT_ONCE = 100 }; /* in one transaction, of some milliseconds */

/* Packed; malloc'ed. */
static uint8_t *packed (const Nui__Bank__V1__ChargeRequest *request, size_t *len_out)
{
    *len_out = nui__bank__v1__charge_request__get_packed_size (request);
    uint8_t *bytes = malloc (*len_out + 1);
    assert (bytes && "out of memory");
    nui__bank__v1__charge_request__pack (request, bytes);
    return bytes;
}

int charge_put (struct svc *svc, Nui__Bank__V1__ChargeRequest *request, uint64_t *message_out,
                struct err *err)
{
    struct uuid key;
    size_t len;
    uuid_make (&key);
    request->key = (ProtobufCBinaryData){sizeof key.b, key.b};
    uint8_t *bytes = packed (request, &len);
    int rc = local_store_outbox_put (svc->store, STORE_OUTBOX_BANK,
                                     request->final ? "charge" : STORE_ITEM_PART, &key, bytes, len,
                                     svc_now (svc), message_out, err);
    free (bytes);
    request->key = (ProtobufCBinaryData){0, NULL};
    return rc;
}

bool charge_claim (struct svc *svc, const struct site_job *job, Nui__Bank__V1__SiteClaim *claim_out)
{
    if (!job->rm.native)
        return false;
    const char *identity = gridmap_identity (svc->gridmap, job->rec.local_account);
    nui__bank__v1__site_claim__init (claim_out);
    claim_out->identity = identity ? (char *)identity : (char *)"";
    claim_out->account = (char *)job->rec.pay_account;
    return true;
}

bool charge_wanted (const struct svc *svc, const struct site_job *job)
{
    return svc->bank && (!job->rm.native || svc->settings->rm.charge);
}

/* What the bank was told of a run that has ended, or not, for whoever reconciles (local/store/runs.h). The
 * request names who pays; key and what the user signed are not kept a second time. */
static int run_put (struct svc *svc, const Nui__Bank__V1__ChargeRequest *request,
                    const struct store_run *more, struct err *err)
{
    Nui__Bank__V1__ChargeRequest kept = *request;
    struct store_run run = *more;
    size_t len;
    kept.envelope = NULL;
    uint8_t *bytes = packed (&kept, &len);
    run.site_job = request->site_job_id;
    run.end = request->end_us;
    run.charged = -1;
    run.request = bytes;
    run.request_len = len;
    int rc = runs_add (svc->store, &run, err);
    free (bytes);
    return rc;
}

int charge_idle (struct svc *svc, Nui__Bank__V1__ChargeRequest *request, struct err *err)
{
    struct store_run run = {.untold = "", .user = "", .rm_id = ""};
    int rc = charge_put (svc, request, &run.message, err);
    return rc == 0 ? run_put (svc, request, &run, err) : rc;
}

bool charge_unheld_may (const struct site_job *job)
{
    return job->rm.native || (job->rec.submitter && *job->rec.submitter);
}

/* It ended for the site's fault. The bank is told, which may give back what it was charged. */
static bool failed_here (const struct site_job *job, bool final)
{
    return final && strcmp (job->rec.reason_code, "NodeFailure") == 0;
}

/* AMCFG NODEFAILURE=FREE, and it ended for that; or it was ended since nobody heard of it here any more, and runs elsewhere: its
 * owner pays for one of the two. */
static bool given_away (const struct svc *svc, const struct site_job *job, bool final)
{
    return (svc->settings->am.node_failure == AM_FREE && failed_here (job, final)) ||
           (final && strcmp (job->rec.reason_code, CONTACT_LOST) == 0);
}

/* What it takes to end a job at its limit (and JOBMAXOVERRUN) is the site's own time; one that goes on for long after it
 * is charged as it ran, and the bank says what of that was not signed for. */
static time_us charged_until (const struct svc *svc, const struct site_job *job, time_us end)
{
    static const duration_us ending_longest = 60 * US_PER_S;
    duration_us more = svc->settings->policy->max_overrun;
    if (more >= INT64_MAX / 4)
        return end;
    duration_us over = end - job->rec.halted - job->rec.start - svc_job_length (svc, job) - more;
    return over > 0 && over <= ending_longest ? end - over : end;
}

/* How many nodes it has or had; one that is no longer configured counts, too. */
static uint64_t nodes_had (const struct svc *svc, const struct site_job *job)
{
    bool *seen = calloc (svc->node_count + 1, sizeof *seen);
    struct site_node *node;
    unsigned tasks, req;
    uint64_t count = 0;
    assert (seen && "out of memory");
    for (const char *at = job->rec.placement; placement_next (svc, &at, &node, &tasks, &req);) {
        count += !node || !seen[node->id.v];
        if (node)
            seen[node->id.v] = true; /* another requirement of the job may have it again */
    }
    free (seen);
    return count;
}

/* What is told of a run beside what prices it, for accounting. */
static void ran_fill (const struct svc *svc, const struct site_job *job, Nui__Bank__V1__Ran *ran)
{
    nui__bank__v1__ran__init (ran);
    ran->nodes = nodes_had (svc, job);
    ran->memory_mb = job->memory_most_mb;
    ran->submitted_us = job->rec.submit;
    ran->local_user = (char *)job->rec.local_account;
}

/* The use of this incarnation; id is where its text goes. */
static void charge_fill (struct svc *svc, const struct site_job *job, time_us end,
                         duration_us cpu_time, bool final, char id[SITE_ID_MAX],
                         Nui__Bank__V1__ChargeRequest *request)
{
    nui__bank__v1__charge_request__init (request);
    request->hold_id = (char *)job->rec.hold_id;
    request->site_job_id = site_id (svc, job->rec.number, id);
    request->grid_job_id = *job->rec.grid_job_id ? (char *)job->rec.grid_job_id : id;
    request->component = (char *)job->rec.component;
    request->incarnation = job->rec.incarnation;
    request->procs = job->rec.procs;
    request->start_us = job->rec.start;
    request->end_us =
        given_away (svc, job, final)
            ? job->rec.start
            : charged_until (svc, job, end) - job->rec.halted; /* stopped it used nothing */
    request->cpu_us = cpu_time;
    request->shape = job->rec.shape;
    request->final = final;
    request->successful = final && job->rec.state == STORE_JOB_COMPLETED;
    request->site_failed = failed_here (job, final);
}

/* Its hold has what it asked for; its nodes may be others by now. */
static int charge_held (struct svc *svc, const struct site_job *job, const struct jobspec *spec,
                        Nui__Bank__V1__ChargeRequest *request, uint64_t *message_out,
                        struct err *err)
{
    struct bank_asked asked = {.message = NUI__BANK__V1__ASKED__INIT};
    if (spec)
        bank_nodes_fill (svc, job, spec, &asked);
    request->asked = asked.message.n_nodes ? &asked.message : NULL;
    int rc = charge_put (svc, request, message_out, err);
    request->asked = NULL;
    return rc;
}

/* Without a hold the bank has to be told who pays and what for. */
static int charge_unheld (struct svc *svc, const struct site_job *job, bool native,
                          Nui__Bank__V1__ChargeRequest *request, uint64_t *message_out,
                          struct err *err)
{
    void *bytes = NULL;
    size_t len = 0;
    int rc = 0;
    Nui__Bank__V1__SiteClaim *claim = request->claim;
    if (!native) {
        request->claim = NULL;
        rc = local_store_envelope (svc->store, job->rec.number, &bytes, &len, err);
    }
    if (rc == 0 && !native)
        request->envelope = fallback_bare (bytes, len);
    if (rc == 0)
        rc = charge_put (svc, request, message_out, err);
    nui__common__v1__envelope__free_unpacked (request->envelope, NULL);
    request->envelope = NULL;
    request->claim = claim;
    free (bytes);
    return rc;
}

int charge_job (struct svc *svc, const struct site_job *job, time_us end, duration_us cpu_time,
                bool final, struct err *err)
{
    Nui__Bank__V1__ChargeRequest request;
    Nui__Bank__V1__SiteClaim claim = NUI__BANK__V1__SITE_CLAIM__INIT;
    Nui__Bank__V1__Ran ran;
    char id[SITE_ID_MAX];
    struct jobspec spec;
    struct bank_asked asked;
    bool held = *job->rec.hold_id;
    struct store_run run = {.user = job->rec.local_account,
                            .rm_id = job->rm.rm_id,
                            .rm_submit = job->rm.submit,
                            .untold = !charge_wanted (svc, job)           ? "NotCharged"
                                      : !held && !charge_unheld_may (job) ? "NobodyToCharge"
                                                                          : ""};
    if (!svc->bank || (*run.untold && !final))
        return 0;
    charge_fill (svc, job, end, cpu_time, final, id, &request);
    /* The row of a run can do without what the job asked for, and a hold has it; a charge without a hold
     * cannot. */
    bool row_only = held || *run.untold;
    bool read = (final || !held || svc->node_types) &&
                jobspec_load (svc, &job->rec, &spec, row_only ? NULL : err) == 0;
    if (!read && !row_only)
        return err->code;
    ran_fill (svc, job, &ran);
    if (read)
        ran.class_ = spec.component->class_;
    request.ran = &ran;
    int rc = held && !*run.untold
                 ? charge_held (svc, job, read ? &spec : NULL, &request, &run.message, err)
                 : 0;
    if (rc != 0 || (held && !final)) {
        if (read)
            jobspec_free (&spec);
        return rc;
    }
    bool native = charge_claim (svc, job, &claim);
    if (!native) {
        claim.identity = job->rec.submitter ? job->rec.submitter : (char *)"";
        claim.account = (char *)job->rec.pay_account;
    }
    if (read) {
        bank_asked_fill (svc, &spec, &asked);
        bank_nodes_fill (svc, job, &spec, &asked);
        request.asked = &asked.message;
        request.qos = spec.component->qos;
        request.class_ = spec.component->class_;
        request.quote_id = spec.job->quote_id;
    }
    request.claim = &claim;
    request.machine = (char *)bank_machine (svc, job);
    rc = row_only ? 0 : charge_unheld (svc, job, native, &request, &run.message, err);
    if (rc == 0 && final)
        rc = run_put (svc, &request, &run, err);
    if (read)
        jobspec_free (&spec);
    return rc;
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

/* Every RMPOLLINTERVAL: running jobs, every FLUSHINTERVAL. */
static void charge_poll (struct svc *svc)
{
    struct site_job *job, *next, *list[AT_ONCE];
    struct err err = {0};
    time_us now = svc_now (svc);
    uint32_t count = 0;
    if (!svc->bank)
        return;
    HASH_ITER (hh, svc->jobs, job, next) {
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

const struct svc_listener charge_listener = {.polled = charge_poll};
