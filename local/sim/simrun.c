/* simrun: sets the engine up for one policy, and collects jobs, series and statistics from its
 * callbacks. simcmd.c and estimates.c call it. The workload is shared by all runs of a command:
 * it is only read. */
#include "local/sim/simrun.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/clock.h"
#include "proto/base/mem.h"

struct observer {
    struct simrun *run;
    simrun_progress *progress;
    void *self;
    const struct engine_hooks *more;
};

static void arrived (void *self, struct cluster *cluster, uint64_t index, time_us now)
{
    const struct engine_hooks *more = ((struct observer *)self)->more;
    if (more && more->arrived)
        more->arrived (more->self, cluster, index, now);
}

static void started (void *self, uint64_t index, time_us now)
{
    const struct engine_hooks *more = ((struct observer *)self)->more;
    if (more && more->started)
        more->started (more->self, index, now);
}

static void ended (void *self, uint64_t index, time_us now)
{
    const struct engine_hooks *more = ((struct observer *)self)->more;
    if (more && more->ended)
        more->ended (more->self, index, now);
}

static void planned (void *self, struct engine *engine, const struct plan *plan)
{
    const struct engine_hooks *more = ((struct observer *)self)->more;
    if (more && more->planned)
        more->planned (more->self, engine, plan);
}

static void lapsed (void *self, struct engine *engine, uint64_t index, time_us now)
{
    const struct engine_hooks *more = ((struct observer *)self)->more;
    if (more && more->lapsed)
        more->lapsed (more->self, engine, index, now);
}

static void stuck (void *self, struct engine *engine, uint64_t index, const struct job_view *job)
{
    const struct engine_hooks *more = ((struct observer *)self)->more;
    if (more && more->stuck)
        more->stuck (more->self, engine, index, job);
}

static void observe (void *self, const struct engine_sample *sample)
{
    struct observer *o = self;
    series_add (o->run->series, sample->now, sample->procs_used, sample->queued);
    if (o->progress)
        o->progress (o->self, sample->jobs_done);
}

/* The engine's view of the jobs: under this policy their QoS may differ from the one asked for. */
static struct engine_job *jobs_make (const struct workload *w, const struct policy *policy,
                                     struct req *plain, uint32_t *qos)
{
    struct engine_job *job = mem_zero (w->count + 1, sizeof job[0]);
    for (uint64_t i = 0; i < w->count; i++) {
        const struct workload_job *from = &w->job[i];
        bool denied;
        job[i].number = from->number;
        job[i].submit = from->submit;
        job[i].limit = from->limit;
        job[i].run = from->run;
        job[i].deadline = from->deadline;
        memcpy (job[i].cred, from->cred, sizeof job[i].cred);
        qos[i] = job[i].cred[CRED_QOS] = policy_qos_resolve (policy, from->cred, &denied);
        job[i].procs = from->procs;
        job[i].req_count = 1;
        job[i].req = &from->req;
        if (plain) { /* the site counts initiators of classes itself */
            plain[i] = from->req;
            memset (&plain[i].task.v[RES_GRES0], 0, (RES_MAX - RES_GRES0) * sizeof (int32_t));
            job[i].req = &plain[i];
        }
        job[i].used_known = from->used_known;
        job[i].used_micro = from->used_micro;
    }
    return job;
}

int simrun_replay (const struct workload *w, const struct machine *m, const struct policy *policy,
                   const struct engine_site *site, duration_us tick, uint64_t seed,
                   simrun_progress *progress, void *self, struct simrun *out, struct err *err)
{
    return simrun_replay_hooked (w, m, policy, site, tick, seed, progress, self, NULL, out, err);
}

int simrun_replay_hooked (const struct workload *w, const struct machine *m,
                          const struct policy *policy, const struct engine_site *site,
                          duration_us tick, uint64_t seed, simrun_progress *progress, void *self,
                          const struct engine_hooks *hooks, struct simrun *out, struct err *err)
{
    memset (out, 0, sizeof *out);
    out->result = mem_zero (w->count + 1, sizeof out->result[0]);
    out->qos = mem_zero (w->count + 1, sizeof out->qos[0]);
    struct node_spec *node = mem_zero (m->group_count, sizeof node[0]);
    uint32_t *copies = mem_zero (m->group_count, sizeof copies[0]);
    out->series = series_create ();
    for (uint32_t g = 0; g < m->group_count; g++) {
        node[g] = m->group[g].spec;
        copies[g] = m->group[g].copies;
    }
    struct req *plain = site ? calloc (w->count + 1, sizeof *plain) : NULL;
    assert (plain || !site);
    struct engine_job *job = jobs_make (w, policy, plain, out->qos);
    struct observer observer = {out, progress, self, hooks};
    struct engine_setup setup = {.policy = policy,
                                 .node = node,
                                 .node_copies = copies,
                                 .node_group_count = m->group_count,
                                 .site = site,
                                 .gres_kinds = site ? 0 : m->gres_kinds,
                                 .tick = tick,
                                 .seed = seed,
                                 .hooks = {.self = &observer,
                                           .sample = observe,
                                           .arrived = arrived,
                                           .started = started,
                                           .ended = ended,
                                           .planned = planned,
                                           .stuck = stuck,
                                           .lapsed = lapsed}};
    duration_us begun = clock_monotonic_us ();
    int rc = engine_run (&setup, job, w->count, out->result, &out->summary, err);
    duration_us took = clock_monotonic_us () - begun;
    free (job);
    free (plain);
    free (node);
    free (copies);
    if (rc) {
        simrun_free (out);
        return rc;
    }
    simstats_compute (w, out->result, &out->summary, m->procs, &out->stats);
    out->stats.wall_s = (double)took / US_PER_S;
    return 0;
}

void simrun_free (struct simrun *run)
{
    free (run->result);
    free (run->qos);
    series_destroy (run->series);
    memset (run, 0, sizeof *run);
}
