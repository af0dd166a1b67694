/* The IRI Facility API v1, compute: jobs of the grid. The resource "grid" lets the metascheduler choose; a site's name lets it
 * choose that one only. A job is seen at "grid" and at the sites that have it. */
#include <stdlib.h>
#include <string.h>

#include "meta/gate/gate.h"
#include "proto/job/jobcheck.h"

typedef Nui__Meta__V1__JobStatus JobStatus;

static const char *state_of (const JobStatus *job)
{
    bool held = job->reason && strstr (job->reason->code, "Hold");
    switch (job->state) {
    case NUI__META__V1__GRID_JOB_STATE__GRID_PENDING:
        return "new";
    case NUI__META__V1__GRID_JOB_STATE__GRID_RUNNING:
        return "active";
    case NUI__META__V1__GRID_JOB_STATE__GRID_COMPLETED:
        return "completed";
    case NUI__META__V1__GRID_JOB_STATE__GRID_FAILED:
    case NUI__META__V1__GRID_JOB_STATE__GRID_REFUSED:
        return "failed";
    case NUI__META__V1__GRID_JOB_STATE__GRID_CANCELLED:
        return "canceled";
    default:
        return held ? "held" : "queued";
    }
}

static bool has_ended (const JobStatus *job)
{
    return job->state >= NUI__META__V1__GRID_JOB_STATE__GRID_COMPLETED;
}

static json_t *job_json (const JobStatus *job, json_t *spec)
{
    const Nui__Meta__V1__ComponentStatus *part = job->n_components ? job->components[0] : NULL;
    time_us at = has_ended (job) ? job->end_us : job->start_us ? job->start_us : job->submit_us;
    bool ran = has_ended (job) && part && part->job && part->job->start_us;
    json_t *sites = json_array ();
    for (size_t i = 0; i < job->n_components; i++)
        if (*job->components[i]->site)
            json_array_append_new (sites, json_string (job->components[i]->site));
    json_t *status =
        json_pack ("{s:s, s:f, s:s?, s:o, s:{s:s, s:o, s:s, s:s, s:b}}", "state", state_of (job),
                   "time", (double)at / (double)US_PER_S, "message",
                   job->reason && *job->reason->text ? job->reason->text : NULL, "exit_code",
                   ran ? json_integer (part->job->exit_code) : json_null (), "meta_data", "reason",
                   job->reason ? job->reason->code : "", "sites", sites, "name", job->name,
                   "account", job->account, "start_is_estimate", job->start_is_estimate);
    return json_pack ("{s:s, s:o, s:o}", "id", job->grid_job_id, "status", status, "job_spec",
                      spec ? spec : json_null ());
}

static bool is_at (const JobStatus *job, const char *resource)
{
    bool at = strcmp (resource, "grid") == 0;
    for (size_t i = 0; i < job->n_components && !at; i++)
        at = strcmp (job->components[i]->site, resource) == 0;
    return at;
}

static bool flag (struct ask *ask, const char *name)
{
    const char *text = ask_query (ask, name);
    return text && strcmp (text, "true") == 0;
}

/* ---- submit */

static void submitted (struct ask *ask, const struct rpc_result *result)
{
    if (result->status != RPC_OK) {
        ask_failed (ask, result);
        return;
    }
    const Nui__Meta__V1__SubmitReply *reply = (const Nui__Meta__V1__SubmitReply *)result->reply;
    ask_json (ask, MHD_HTTP_OK,
              json_pack ("{s:s, s:{s:s}, s:O}", "id", reply->grid_job_id, "status", "state", "new",
                         "job_spec", ask->json));
}

static void resource_found (struct ask *ask, const Nui__Meta__V1__SitesReply *sites)
{
    const char *resource = ask->argument[0];
    bool all = strcmp (resource, "grid") == 0, found = all;
    Nui__Common__V1__Job *job;
    struct err err = {0};
    for (size_t i = 0; i < sites->n_sites; i++)
        found |= strcmp (sites->sites[i]->name, resource) == 0;
    if (!found)
        ask_problem (ask, MHD_HTTP_NOT_FOUND, "there is no resource '%.60s'", resource);
    else if (jobspec_read (ask->json, all ? NULL : resource, ask->arena, &job, &err) < 0)
        ask_problem (ask, err.code == ERR_UNSUPPORTED ? 501 : 422, "%s", err.text);
    else
        submit_send (ask, job, submitted);
}

void iri_submit (struct ask *ask)
{
    iri_snapshot (ask, resource_found);
}

/* ---- one job */

struct shown {
    json_t *job;
};

static void spec_come (struct ask *ask, const struct rpc_result *result)
{
    const Nui__Meta__V1__RenewReply *reply = (const Nui__Meta__V1__RenewReply *)result->reply;
    struct shown *shown = ask->more;
    struct err err;
    if (result->status == RPC_OK && reply->envelope) {
        Nui__Common__V1__Job *job = jobcheck_unpack (&reply->envelope->body, &err);
        if (job) {
            json_object_set_new (shown->job, "job_spec", jobspec_write (job));
            nui__common__v1__job__free_unpacked (job, NULL);
        }
    }
    ask_json (ask, MHD_HTTP_OK, shown->job);
}

static void job_come (struct ask *ask, const struct rpc_result *result)
{
    const JobStatus *job = (const JobStatus *)result->reply;
    if (result->status != RPC_OK) {
        ask_failed (ask, result);
        return;
    }
    if (!is_at (job, ask->argument[0])) {
        ask_problem (ask, MHD_HTTP_NOT_FOUND, "%s is not at %.60s", job->grid_job_id,
                     ask->argument[0]);
        return;
    }
    json_t *json = job_json (job, NULL);
    if (!flag (ask, "include_spec")) {
        ask_json (ask, MHD_HTTP_OK, json);
        return;
    }
    struct shown *shown = arena_array (ask->arena, 1, sizeof *shown);
    Nui__Meta__V1__RenewRequest *request = arena_array (ask->arena, 1, sizeof *request);
    shown->job = json;
    ask->more = shown;
    nui__meta__v1__renew_request__init (request);
    request->grid_job_id = ask->argument[1];
    ask_call (ask, &nui__meta__v1__meta__descriptor, "Renew", &request->base, spec_come);
}

static void job_call (struct ask *ask, const char *method,
                      void (*then) (struct ask *ask, const struct rpc_result *result))
{
    Nui__Meta__V1__JobRequest *request = arena_array (ask->arena, 1, sizeof *request);
    nui__meta__v1__job_request__init (request);
    request->grid_job_id = ask->argument[1];
    ask_call (ask, &nui__meta__v1__meta__descriptor, method, &request->base, then);
}

void iri_job (struct ask *ask)
{
    job_call (ask, "Status", job_come);
}

void iri_update (struct ask *ask)
{
    ask_problem (ask, MHD_HTTP_CONFLICT,
                 "%.60s is signed, and what is signed is not changed: cancel it and submit another",
                 ask->argument[1]);
}

static void cancelled (struct ask *ask, const struct rpc_result *result)
{
    if (result->status == RPC_OK)
        ask_empty (ask, MHD_HTTP_NO_CONTENT);
    else
        ask_failed (ask, result);
}

static void cancel_placed (struct ask *ask, const struct rpc_result *result)
{
    if (result->status != RPC_OK)
        ask_failed (ask, result);
    else if (!is_at ((const JobStatus *)result->reply, ask->argument[0]))
        ask_problem (ask, MHD_HTTP_NOT_FOUND, "%.60s is not at %.60s", ask->argument[1],
                     ask->argument[0]);
    else
        job_call (ask, "Cancel", cancelled);
}

void iri_cancel (struct ask *ask)
{
    job_call (ask, "Status", cancel_placed);
}

/* ---- many */

static bool passes (const JobStatus *job, json_t *filters)
{
    const char *key;
    json_t *value;
    json_object_foreach (filters, key, value)
    {
        const char *is = strcmp (key, "state") == 0     ? state_of (job)
                         : strcmp (key, "name") == 0    ? job->name
                         : strcmp (key, "account") == 0 ? job->account
                         : strcmp (key, "id") == 0      ? job->grid_job_id
                                                        : NULL;
        if (!is || !json_is_string (value) || strcmp (is, json_string_value (value)) != 0)
            return false;
    }
    return true;
}

static void jobs_come (struct ask *ask, const struct rpc_result *result)
{
    const Nui__Meta__V1__JobsReply *reply = (const Nui__Meta__V1__JobsReply *)result->reply;
    if (result->status != RPC_OK) {
        ask_failed (ask, result);
        return;
    }
    json_t *items = json_array ();
    for (size_t i = reply->n_jobs; i-- > 0;) /* the newest first */
        if (is_at (reply->jobs[i], ask->argument[0]) && passes (reply->jobs[i], ask->json))
            json_array_append_new (items, job_json (reply->jobs[i], NULL));
    iri_answer (ask, items, NULL);
}

void iri_jobs (struct ask *ask)
{
    Nui__Meta__V1__JobsRequest *request = arena_array (ask->arena, 1, sizeof *request);
    nui__meta__v1__jobs_request__init (request);
    request->ended = flag (ask, "historical");
    request->limit = 10 * GATE_PAGE_MAX;
    ask_call (ask, &nui__meta__v1__meta__descriptor, "Jobs", &request->base, jobs_come);
}
