/* Whether a signed job is sane by itself: sizes, names, times. The metascheduler asks before it takes one
 * for the grid and a site before it takes one for itself alone, so that both refuse the same with the same
 * words. Pure, over protobuf messages; what a site has or a policy allows is not looked at here. */
#include "proto/job/jobcheck.h"

#include <ctype.h>
#include <string.h>

#include "proto/job/jobsignal.h"
#include "proto/rpc/envelope.h"
#include "proto/rpc/pbguard.h"

#define WALLTIME_MAX (366 * 86400 * US_PER_S)
#define OFFSET_MAX (30 * 86400 * US_PER_S)
#define FUTURE_MAX (3660 * 86400 * US_PER_S)
#define CLOCK_TOLERANCE (300 * US_PER_S)

int jobcheck_bytes (const void *body, size_t len, struct err *err)
{
    if (len > ENVELOPE_BODY_MAX)
        return err_set (err, ERR_LIMIT, "the job has %zu bytes, at most %d are taken", len,
                        ENVELOPE_BODY_MAX);
    return pbguard_few (&nui__common__v1__job__descriptor, body, len, PBGUARD_FIELDS, err);
}

Nui__Common__V1__Job *jobcheck_unpack (const ProtobufCBinaryData *body, struct err *err)
{
    if (jobcheck_bytes (body->data, body->len, err) < 0)
        return NULL;
    Nui__Common__V1__Job *job = nui__common__v1__job__unpack (NULL, body->len, body->data);
    if (!job)
        err_set (err, ERR_INVALID, "it cannot be decoded");
    return job;
}

uint64_t jobcheck_per_task (const Nui__Common__V1__Req *req)
{
    return req->procs_per_task ? req->procs_per_task : 1;
}

uint64_t jobcheck_procs (const Nui__Common__V1__Component *component, uint32_t shape)
{
    uint64_t procs = 0;
    for (size_t r = 0; r < component->n_reqs; r++)
        procs += jobshape_tasks (component, shape, r) * jobcheck_per_task (component->reqs[r]);
    return procs;
}

static int jobcheck_req (const Nui__Common__V1__Component *c, const Nui__Common__V1__Req *req,
                         struct err *err)
{
    if (req->tasks == 0 || req->tasks > JOB_TASKS_MAX)
        return err_set (err, ERR_INVALID, "component %s: %u tasks, allowed are 1 to %d", c->name,
                        req->tasks, JOB_TASKS_MAX);
    if (req->nodes > req->tasks)
        return err_set (err, ERR_INVALID, "component %s: %u nodes for %u tasks", c->name,
                        req->nodes, req->tasks);
    if (req->procs_per_task > JOB_TASKS_MAX || req->tasks_per_node > JOB_TASKS_MAX)
        return err_set (err, ERR_INVALID, "component %s: more than %d procs or tasks per node",
                        c->name, JOB_TASKS_MAX);
    const int64_t amounts[] = {req->memory_mb, req->swap_mb, req->disk_mb};
    for (size_t i = 0; i < 3; i++)
        if (amounts[i] < 0 || amounts[i] > INT64_C (1) << 40)
            return err_set (err, ERR_INVALID, "component %s: %lld MB per task", c->name,
                            (long long)amounts[i]);
    return 0;
}

/* "", "/p", "~", "~/p": the site finds out whether its user's account has it there. */
static int directory_check (const char *directory, struct err *err)
{
    bool fits = strlen (directory) <= JOB_DIRECTORY_MAX;
    for (const char *p = directory; fits && *p; p++)
        fits = !iscntrl ((unsigned char)*p);
    if (!fits || (*directory && *directory != '/' && strcmp (directory, "~") != 0 &&
                  strncmp (directory, "~/", 2) != 0))
        return err_set (err, ERR_INVALID,
                        "directory '%.60s': wanted /PATH or ~/PATH, at most %d characters",
                        directory, JOB_DIRECTORY_MAX);
    return 0;
}

int jobcheck_name (const Nui__Common__V1__Job *job, struct err *err)
{
    size_t len = strlen (job->name);
    if (len > JOB_NAME_MAX)
        return err_set (err, ERR_LIMIT, "the job's name has %zu bytes, allowed are %d", len,
                        JOB_NAME_MAX);
    return *job->account ? name_check ("account", job->account, err) : 0;
}

int jobcheck_words (const Nui__Common__V1__Component *c, struct err *err)
{
    const char *const names[] = {c->class_, c->qos, c->reservation};
    static const char *const what[] = {"class", "QoS", "reservation"};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < 3; i++)
        if (*names[i])
            rc = name_check (what[i], names[i], err);
    if (rc == 0 && (c->n_args > JOB_ARGS_MAX || c->n_env > JOB_ARGS_MAX))
        rc = err_set (err, ERR_LIMIT, "%zu %s, allowed are %d",
                      c->n_args > JOB_ARGS_MAX ? c->n_args : c->n_env,
                      c->n_args > JOB_ARGS_MAX ? "arguments" : "variables", JOB_ARGS_MAX);
    for (size_t i = 0; rc == 0 && i < c->n_env; i++)
        if (!strchr (c->env[i], '=') || c->env[i][0] == '=')
            rc = err_set (err, ERR_INVALID, "variable %zu is not NAME=value", i + 1);
    return rc == 0 ? 0 : err_prefix (err, "component %.60s", c->name);
}

int jobcheck_component (const Nui__Common__V1__Component *c, bool walltime_wanted, struct err *err)
{
    if (name_check ("component", c->name, err))
        return ERR_INVALID;
    if (c->n_reqs == 0 || c->n_reqs > JOB_REQS_MAX)
        return err_set (err, ERR_INVALID, "component %s: %zu requirements, allowed are 1 to %d",
                        c->name, c->n_reqs, JOB_REQS_MAX);
    for (size_t r = 0; r < c->n_reqs; r++)
        if (jobcheck_req (c, c->reqs[r], err))
            return ERR_INVALID;
    for (uint32_t s = 0; s <= c->n_shapes; s++) {
        if (jobshape_check (c, s, err))
            return ERR_INVALID;
        if (jobshape_tasks (c, s, 0) > JOB_TASKS_MAX || jobcheck_procs (c, s) > UINT32_MAX)
            return err_set (err, ERR_INVALID, "component %s: more than %d tasks or %u processors",
                            c->name, JOB_TASKS_MAX, UINT32_MAX);
        if (jobshape_walltime (c, s) < 0 || (walltime_wanted && jobshape_walltime (c, s) == 0) ||
            jobshape_walltime (c, s) > WALLTIME_MAX)
            return err_set (
                err, ERR_INVALID,
                "component %s: the wallclock limit must be above 0 and at most 366 days", c->name);
        if (jobsignal_check (c->signal, jobshape_walltime (c, s), err))
            return err_prefix (err, "component %s", c->name);
    }
    if (c->offset_us > OFFSET_MAX || c->offset_us < -OFFSET_MAX)
        return err_set (err, ERR_INVALID, "component %s: an offset of more than 30 days", c->name);
    if (c->script.len > JOB_SCRIPT_MAX)
        return err_set (err, ERR_INVALID, "component %s: a script of %zu bytes, allowed are %d",
                        c->name, c->script.len, JOB_SCRIPT_MAX);
    if (directory_check (c->directory, err) != 0)
        return err_prefix (err, "component %s", c->name);
    if (jobcheck_words (c, err) != 0)
        return err->code;
    if (c->n_sites > JOB_SITES_MAX)
        return err_set (err, ERR_LIMIT, "component %s: %zu sites, allowed are %d", c->name,
                        c->n_sites, JOB_SITES_MAX);
    for (size_t i = 0; i < c->n_sites; i++)
        if (name_check ("site", c->sites[i], err))
            return ERR_INVALID;
    return jobstage_check (c, err);
}

static int jobcheck_reserve_part (const Nui__Common__V1__Component *c, struct err *err)
{
    const char *what = c->n_reqs != 1                    ? "one kind of tasks each"
                       : c->script.len || c->n_args      ? "no script"
                       : c->n_stage_in || c->n_stage_out ? "no files"
                       : c->n_licences                   ? "no licences"
                       : c->n_shapes                     ? "no choice of sizes"
                       : *c->reservation                 ? "no other reservation"
                                                         : NULL;
    return what ? err_set (err, ERR_INVALID, "component %s: those of a co-reservation have %s",
                           c->name, what)
                : 0;
}

int jobcheck_reserve (const Nui__Common__V1__Job *job, struct err *err)
{
    const Nui__Common__V1__Reserve *r = job->reserve;
    if (job->n_components < 2)
        return err_set (
            err, ERR_INVALID,
            "a co-reservation has two components or more; one site is reserved by setres");
    if (job->n_depends || job->held)
        return err_set (err, ERR_INVALID, "a co-reservation waits for nothing");
    if (r->changes.len && (r->changes.len != 16 || job->n_indexes))
        return err_set (err, ERR_INVALID, "what other terms are for has a uuid of 16 bytes");
    if (job->n_indexes && !r->n_starts_us)
        return err_set (err, ERR_INVALID,
                        "an array of co-reservations says when each of them begins");
    if (r->n_users > JOB_SITES_MAX || r->n_accounts > JOB_SITES_MAX)
        return err_set (err, ERR_LIMIT, "more than %d users or accounts of a co-reservation",
                        JOB_SITES_MAX);
    for (size_t i = 0; i < r->n_users; i++)
        if (name_check ("user", r->users[i], err))
            return ERR_INVALID;
    for (size_t i = 0; i < r->n_accounts; i++)
        if (name_check ("account", r->accounts[i], err))
            return ERR_INVALID;
    for (size_t i = 0; i < job->n_components; i++)
        if (jobcheck_reserve_part (job->components[i], err))
            return ERR_INVALID;
    return 0;
}

int jobcheck_times (const Nui__Common__V1__Job *job, bool is_signed, time_us now, struct err *err)
{
    if (job->created_us > now + CLOCK_TOLERANCE)
        return err_set (err, ERR_INVALID, "the job was created in the future; check the clocks");
    if (job->expires_us <= now && (is_signed || job->expires_us))
        return err_set (err, ERR_INVALID, "the job's signature expired; submit it anew");
    if (job->not_before_us < 0 || job->deadline_us < 0 || job->cost_max_micro < 0 ||
        job->not_after_us < 0)
        return err_set (err, ERR_INVALID, "a time or a cost bound of the job is negative");
    if (job->not_before_us > now + FUTURE_MAX || job->deadline_us > now + 2 * FUTURE_MAX)
        return err_set (err, ERR_INVALID, "a time of the job lies more than ten years ahead");
    if (job->not_after_us && (job->not_after_us < now || job->not_after_us < job->not_before_us))
        return err_set (err, ERR_INVALID,
                        "the latest start lies before the earliest, or in the past");
    if (!job->deadline_us)
        return 0;
    time_us start = job->not_before_us > now ? job->not_before_us : now;
    for (size_t i = 0; i < job->n_components; i++) {
        const Nui__Common__V1__Component *c = job->components[i];
        duration_us least = jobshape_walltime_min (c);
        if (start + c->offset_us + least > job->deadline_us) {
            char need[QUANTITY_TEXT_MAX];
            return err_set (err, ERR_INVALID,
                            "component %s needs %s and cannot end before the deadline", c->name,
                            duration_format (least, need));
        }
    }
    return 0;
}
