#include "meta/svc/check.h"

#include <string.h>

#include "meta/svc/loss.h"
#include "meta/svc/retry.h"
#include "proto/rpc/jobshape.h"
#include "proto/rpc/jobstage.h"

#define WALLTIME_MAX (366 * 86400 * US_PER_S)
#define OFFSET_MAX (30 * 86400 * US_PER_S)
#define FUTURE_MAX (3660 * 86400 * US_PER_S)
#define CLOCK_TOLERANCE (300 * US_PER_S)

static int req_check (const ComponentMessage *c, const Nui__Common__V1__Req *req, struct err *err)
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

static int component_check (const ComponentMessage *c, struct err *err)
{
    if (name_check ("component", c->name, err))
        return ERR_INVALID;
    if (c->n_reqs == 0 || c->n_reqs > JOB_REQS_MAX)
        return err_set (err, ERR_INVALID, "component %s: %zu requirements, allowed are 1 to %d",
                        c->name, c->n_reqs, JOB_REQS_MAX);
    for (size_t r = 0; r < c->n_reqs; r++)
        if (req_check (c, c->reqs[r], err))
            return ERR_INVALID;
    for (uint32_t s = 0; s <= c->n_shapes; s++) {
        if (jobshape_check (c, s, err))
            return ERR_INVALID;
        if (jobshape_tasks (c, s, 0) > JOB_TASKS_MAX || component_procs (c, s) > UINT32_MAX)
            return err_set (err, ERR_INVALID, "component %s: more than %d tasks or %u processors",
                            c->name, JOB_TASKS_MAX, UINT32_MAX);
        if (jobshape_walltime (c, s) <= 0 || jobshape_walltime (c, s) > WALLTIME_MAX)
            return err_set (err, ERR_INVALID,
                            "component %s: the wallclock limit must be above 0 and at most 366 days",
                            c->name);
    }
    if (c->offset_us > OFFSET_MAX || c->offset_us < -OFFSET_MAX)
        return err_set (err, ERR_INVALID, "component %s: an offset of more than 30 days", c->name);
    if (c->script.len > JOB_SCRIPT_MAX)
        return err_set (err, ERR_INVALID, "component %s: a script of %zu bytes, allowed are %d",
                        c->name, c->script.len, JOB_SCRIPT_MAX);
    if (c->n_args > JOB_ARGS_MAX || c->n_env > JOB_ARGS_MAX || c->n_sites > JOB_SITES_MAX)
        return err_set (err, ERR_LIMIT, "component %s: more than %d arguments, variables or sites",
                        c->name, JOB_ARGS_MAX);
    for (size_t i = 0; i < c->n_sites; i++)
        if (name_check ("site", c->sites[i], err))
            return ERR_INVALID;
    return jobstage_check (c, err);
}

int job_check_times (const JobMessage *job, time_us now, struct err *err)
{
    if (job->created_us > now + CLOCK_TOLERANCE)
        return err_set (err, ERR_INVALID, "the job was created in the future; check the clocks");
    if (job->expires_us <= now)
        return err_set (err, ERR_INVALID, "the job's signature expired; submit it anew");
    if (job->not_before_us < 0 || job->deadline_us < 0 || job->cost_max_micro < 0 ||
        job->not_after_us < 0)
        return err_set (err, ERR_INVALID, "a time or a cost bound of the job is negative");
    if (job->not_before_us > now + FUTURE_MAX || job->deadline_us > now + 2 * FUTURE_MAX)
        return err_set (err, ERR_INVALID, "a time of the job lies more than ten years ahead");
    if (job->not_after_us && (job->not_after_us < now || job->not_after_us < job->not_before_us))
        return err_set (err, ERR_INVALID, "the latest start lies before the earliest, or in the past");
    if (!job->deadline_us)
        return 0;
    time_us start = job->not_before_us > now ? job->not_before_us : now;
    for (size_t i = 0; i < job->n_components; i++) {
        const ComponentMessage *c = job->components[i];
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

int job_check (const JobMessage *job, const char *grid, struct err *err)
{
    if (strcmp (job->grid, grid) != 0)
        return err_set (err, ERR_INVALID, "the job is for grid '%s', this is grid %s", job->grid,
                        grid);
    if (job->uuid.len != sizeof (struct uuid))
        return err_set (err, ERR_INVALID, "the job's uuid has %zu bytes, not 16", job->uuid.len);
    if (job->n_components == 0 || job->n_components > COALLOC_PARTS_MAX)
        return err_set (err, ERR_INVALID, "%zu components, allowed are 1 to %d", job->n_components,
                        COALLOC_PARTS_MAX);
    if (strlen (job->name) > 255 || (job->account[0] && name_check ("account", job->account, err)))
        return err_set (err, ERR_INVALID, "the job's name or account is not a name");
    if (job->prefer[0] && strcmp (job->prefer, "earliest") && strcmp (job->prefer, "cheapest"))
        return err_set (err, ERR_INVALID, "'%.40s' is not what a job may prefer: earliest or cheapest",
                        job->prefer);
    if (retry_check (job, err) || loss_check (job, err))
        return ERR_INVALID;
    for (size_t i = 0; i < job->n_components; i++) {
        if (component_check (job->components[i], err))
            return ERR_INVALID;
        for (size_t k = 0; k < i; k++)
            if (strcmp (job->components[i]->name, job->components[k]->name) == 0)
                return err_set (err, ERR_INVALID, "two components are called %s",
                                job->components[i]->name);
    }
    return 0;
}

int job_check_runnable (const JobMessage *job, struct err *err)
{
    for (size_t i = 0; i < job->n_components; i++)
        if (job->components[i]->script.len == 0)
            return err_set (err, ERR_INVALID, "component %s has no script",
                            job->components[i]->name);
    return 0;
}

static uint64_t per_task (const Nui__Common__V1__Req *req)
{
    return req->procs_per_task ? req->procs_per_task : 1;
}

uint64_t component_procs (const ComponentMessage *component, uint32_t shape)
{
    uint64_t procs = 0;
    for (size_t r = 0; r < component->n_reqs; r++)
        procs += jobshape_tasks (component, shape, r) * per_task (component->reqs[r]);
    return procs;
}

bool component_allows (const ComponentMessage *component, const char *site)
{
    for (size_t i = 0; i < component->n_sites; i++)
        if (strcmp (component->sites[i], site) == 0)
            return true;
    return component->n_sites == 0;
}

static bool has_feature (const SiteReport *report, const char *feature)
{
    for (size_t i = 0; i < report->n_features; i++)
        if (strcmp (report->features[i], feature) == 0)
            return true;
    return false;
}

static int req_fits (const Nui__Common__V1__Req *req, const struct site *site, struct err *err)
{
    uint64_t on_node = req->tasks_per_node ? req->tasks_per_node : 1;
    if (req->nodes > site->nodes)
        return err_set (err, ERR_LIMIT, "needs %u nodes, %s has %u", req->nodes, site->name,
                        site->nodes);
    if (on_node * per_task (req) > site->procs_per_node)
        return err_set (err, ERR_LIMIT, "needs %llu procs on one node, %s has at most %u",
                        (unsigned long long)(on_node * per_task (req)), site->name,
                        site->procs_per_node);
    if (site->memory_per_node_mb && req->memory_mb > site->memory_per_node_mb / (int64_t)on_node)
        return err_set (err, ERR_LIMIT, "needs %lld MB for each of %llu tasks on a node, %s has %lld",
                        (long long)req->memory_mb, (unsigned long long)on_node, site->name,
                        (long long)site->memory_per_node_mb);
    for (size_t f = 0; f < req->n_features; f++)
        if (!has_feature (site->report, req->features[f]))
            return err_set (err, ERR_LIMIT, "needs nodes with feature %s, %s has none",
                            req->features[f], site->name);
    return 0;
}

int component_fits (const ComponentMessage *component, uint64_t procs, const struct site *site,
                    struct err *err)
{
    if (!site->report)
        return 0;
    if (procs > site->procs)
        return err_set (err, ERR_LIMIT, "needs %llu procs, %s has %u", (unsigned long long)procs,
                        site->name, site->procs);
    for (size_t r = 0; r < component->n_reqs; r++)
        if (req_fits (component->reqs[r], site, err))
            return ERR_LIMIT;
    return 0;
}

int component_fits_some (const ComponentMessage *component, const struct site *site, struct err *err)
{
    for (uint32_t s = 1; s <= component->n_shapes; s++)
        if (component_fits (component, component_procs (component, s), site, NULL) == 0)
            return 0;
    return component_fits (component, component_procs (component, 0), site, err);
}

enum choose_prefer job_prefer (const JobMessage *job)
{
    if (job->prefer[0])
        return strcmp (job->prefer, "cheapest") == 0 ? CHOOSE_CHEAPEST : CHOOSE_EARLIEST;
    return job->deadline_us ? CHOOSE_CHEAPEST : CHOOSE_EARLIEST;
}
