/* The sizes in which a signed component may be run. Called by whoever checks, prices or places one; it looks at no site. */
#include "proto/job/jobcheck.h"

static uint32_t tasks_per_node (const Nui__Common__V1__Req *req)
{
    if (!req->nodes)
        return 0;
    return req->tasks_per_node ? req->tasks_per_node : req->tasks / req->nodes;
}

int jobshape_check (const Nui__Common__V1__Component *component, uint32_t shape, struct err *err)
{
    if (component->n_shapes > JOB_SHAPES_MAX)
        return err_set (err, ERR_INVALID, "component %.60s has %zu sizes, allowed are %d",
                        component->name, component->n_shapes + 1, JOB_SHAPES_MAX + 1);
    if (shape > component->n_shapes || (shape && component->n_reqs == 0))
        return err_set (err, ERR_INVALID, "component %.60s has no size %u", component->name, shape);
    if (shape == 0)
        return 0;
    const Nui__Common__V1__Shape *s = component->shapes[shape - 1];
    uint32_t each = tasks_per_node (component->reqs[0]);
    if (s->tasks == 0 || s->walltime_us < 0)
        return err_set (err, ERR_INVALID, "component %.60s: size %u has no tasks", component->name,
                        shape);
    if (each && s->tasks % each)
        return err_set (err, ERR_INVALID,
                        "component %.60s: %u tasks are not a multiple of %u per node",
                        component->name, s->tasks, each);
    for (uint32_t other = 0; other < shape; other++)
        if (jobshape_tasks (component, other, 0) == s->tasks)
            return err_set (err, ERR_INVALID, "component %.60s: %u tasks are given twice",
                            component->name, s->tasks);
    return 0;
}

uint32_t jobshape_tasks (const Nui__Common__V1__Component *component, uint32_t shape, size_t req)
{
    return shape && req == 0 ? component->shapes[shape - 1]->tasks : component->reqs[req]->tasks;
}

duration_us jobshape_walltime (const Nui__Common__V1__Component *component, uint32_t shape)
{
    return shape && component->shapes[shape - 1]->walltime_us
               ? component->shapes[shape - 1]->walltime_us
               : component->walltime_us;
}

duration_us jobshape_walltime_min (const Nui__Common__V1__Component *component)
{
    duration_us least = component->walltime_us;
    for (uint32_t i = 1; i <= component->n_shapes; i++)
        if (jobshape_walltime (component, i) < least)
            least = jobshape_walltime (component, i);
    return least;
}

int jobshape_apply (Nui__Common__V1__Component *component, uint32_t shape, struct err *err)
{
    int rc = jobshape_check (component, shape, err);
    if (rc != 0 || shape == 0)
        return rc;
    Nui__Common__V1__Req *req = component->reqs[0];
    uint32_t each = tasks_per_node (req);
    req->tasks = component->shapes[shape - 1]->tasks;
    if (each)
        req->nodes = req->tasks / each;
    component->walltime_us = jobshape_walltime (component, shape);
    return 0;
}
