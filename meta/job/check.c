/* Whether a job is sane, and whether a site could ever run a part of it. Pure, over messages and what a site reported; called
 * before a job is taken and for each site that might be asked. */
#include "meta/job/check.h"

#include <string.h>

#include "meta/job/loss.h"
#include "meta/job/retry.h"
#include "proto/job/jobcheck.h"

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
    if (jobcheck_name (job, err))
        return ERR_INVALID;
    if (job->prefer[0] && strcmp (job->prefer, "earliest") && strcmp (job->prefer, "cheapest"))
        return err_set (err, ERR_INVALID,
                        "'%.40s' is not what a job may prefer: earliest or cheapest", job->prefer);
    if (job->on_failure[0] && strcmp (job->on_failure, "cancel") && !job_goes_on (job))
        return err_set (
            err, ERR_INVALID,
            "'%.40s' is not what becomes of the others when a component fails: cancel or "
            "continue",
            job->on_failure);
    if (job->on_failure[0] && job->n_components < 2)
        return err_set (err, ERR_INVALID,
                        "--on-failure is for jobs of several components: this one has one");
    if (retry_check (job, err) || loss_check (job, err))
        return ERR_INVALID;
    for (size_t i = 0; i < job->n_components; i++) {
        if (jobcheck_component (job->components[i], true, err))
            return ERR_INVALID;
        for (size_t k = 0; k < i; k++)
            if (strcmp (job->components[i]->name, job->components[k]->name) == 0)
                return err_set (err, ERR_INVALID, "two components are called %s",
                                job->components[i]->name);
    }
    return 0;
}

bool job_goes_on (const JobMessage *job)
{
    return strcmp (job->on_failure, "continue") == 0;
}

int job_check_runnable (const JobMessage *job, struct err *err)
{
    if (job->reserve)
        return jobcheck_reserve (job, err);
    for (size_t i = 0; i < job->n_components; i++)
        if (job->components[i]->script.len == 0)
            return err_set (err, ERR_INVALID, "component %s has no script",
                            job->components[i]->name);
    return 0;
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
    if (on_node * jobcheck_per_task (req) > site->procs_per_node)
        return err_set (err, ERR_LIMIT, "needs %llu procs on one node, %s has at most %u",
                        (unsigned long long)(on_node * jobcheck_per_task (req)), site->name,
                        site->procs_per_node);
    if (site->memory_per_node_mb && req->memory_mb > site->memory_per_node_mb / (int64_t)on_node)
        return err_set (err, ERR_LIMIT,
                        "needs %lld MB for each of %llu tasks on a node, %s has %lld",
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

int component_fits_some (const ComponentMessage *component, const struct site *site,
                         struct err *err)
{
    for (uint32_t s = 1; s <= component->n_shapes; s++)
        if (component_fits (component, jobcheck_procs (component, s), site, NULL) == 0)
            return 0;
    return component_fits (component, jobcheck_procs (component, 0), site, err);
}

enum choose_prefer job_prefer (const JobMessage *job)
{
    if (job->prefer[0])
        return strcmp (job->prefer, "cheapest") == 0 ? CHOOSE_CHEAPEST : CHOOSE_EARLIEST;
    return job->deadline_us ? CHOOSE_CHEAPEST : CHOOSE_EARLIEST;
}
