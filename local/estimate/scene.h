/* scene: the present state of a site as an estimate needs it, read from a cluster. Pure.
 *
 * Running jobs by the end of their limits, waiting ones in the order of priority with what they
 * will gain by waiting, and the job or shape in question among them. Jobs that may not start (held,
 * not before a date, named to a reservation) are left out. Everything lives in the scene until the
 * next scene_read. Cost: O(jobs · log) once per change of the cluster. */
#ifndef NUI_LOCAL_ESTIMATE_SCENE_H
#define NUI_LOCAL_ESTIMATE_SCENE_H

#include "local/core/cluster.h"
#include "local/estimate/history.h"

struct scene_job {
    struct job_known job;
    struct job_id id;
    time_us submit;
    time_us start;     /* running: since when; else TIME_US_NONE */
    time_us limit_end; /* running: when the pass counts on its end */
    double prio;       /* waiting: now */
    double slope;      /* waiting: what it gains in a second */
};

struct scene {
    time_us now;
    uint64_t version; /* of the cluster; 0: nothing was read yet */
    int64_t procs_up;
    int64_t procs_free;
    bool counted;   /* processors are all there is to count: forward.h does */
    bool reorders;  /* waiting jobs gain at different rates */
    uint32_t depth; /* reservations that a pass makes at most */
    struct scene_job *running;
    uint32_t running_count, running_cap;
    struct scene_job *waiting; /* in order */
    uint32_t waiting_count, waiting_cap;
    struct priority *priority;
    const struct job_spec *asked; /* what scene_insert put in; the caller's; NULL: nothing */
    struct limits *limits;        /* only to ask whom any could concern */
    const struct policy *policy;
};

void scene_init (struct scene *scene);
void scene_free (struct scene *scene);

/* Reads the cluster as it is now. */
int scene_read (struct scene *scene, struct cluster *cluster, time_us now, struct err *err);

/* The place of a job among the waiting; UINT32_MAX: it is not there. */
uint32_t scene_find (const struct scene *scene, struct job_id id);
/* Puts a job that is not in the queue (its id is none of a job there) where it would stand; its
 * place. The spec is read until scene_drop takes it out. One at a time. */
uint32_t scene_insert (struct scene *scene, const struct job_spec *spec);
void scene_drop (struct scene *scene, uint32_t place);

/* The priority at its submission of a job of which no more is known, and what it gains a second. */
void scene_prio (const struct scene *scene, const struct job_known *job, time_us submit,
                 double *prio_out, double *slope_out);
/* What history knows of a job. */
void scene_job_known (const struct job_spec *spec, struct job_known *out);

#endif
