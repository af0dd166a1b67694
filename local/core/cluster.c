/* cluster: how one is made and ended, its policy, and when to look again. Events of nodes are in nodes.c, of reservations
 * in rsv.c, of jobs in job.c, of what the site defines in site.c. */
#include "local/core/state.h"

#include <stdlib.h>
#include <string.h>

static void policy_take (struct cluster *c, const struct policy *policy)
{
    c->policy = policy;
    c->age_policy = policy_is_age (policy);
    c->qos_reserves = false;
    c->qos_flagged = policy->flags_said;
    for (uint32_t i = 0; i < policy->cred_count[CRED_QOS]; i++) {
        const struct policy_qos *qos = policy->cred[CRED_QOS][i].qos;
        c->qos_reserves = c->qos_reserves || (qos && (qos->flags & QOS_RESERVEALWAYS));
        c->qos_flagged = c->qos_flagged || (qos && qos->flags);
    }
    c->fs_capped = false;
    for (uint32_t kind = 0; kind < CRED_KINDS && policy->fs_policy != FS_NONE; kind++) {
        for (uint32_t i = 0; i < policy->cred_count[kind]; i++) {
            enum fs_target_type type = policy->cred[kind][i].fs_target_type;
            c->fs_capped =
                c->fs_capped || type == FS_TARGET_CAP_ABSOLUTE || type == FS_TARGET_CAP_RELATIVE;
        }
    }
    free (c->rank);
    c->rank = NULL;
}

struct cluster *cluster_create (const struct policy *policy, const struct cluster_options *options,
                                struct err *err)
{
    uint32_t gres = options ? options->gres_kinds : 0;
    struct cluster *c = NULL;

    if (gres > RES_MAX - RES_GRES0) {
        err_set (err, ERR_LIMIT, "cluster: %u kinds of generic resources asked, at most %u", gres,
                 (unsigned)(RES_MAX - RES_GRES0));
        return NULL;
    }
    if (!policy->sealed) {
        err_set (err, ERR_INVALID, "cluster: the policy is not sealed");
        return NULL;
    }
    c = mem_zero (1, sizeof *c);
    policy_take (c, policy);
    c->freed_at = TIME_US_NONE;
    c->groups.site = NODESET_NONE;
    c->sharing = policy->node_access == ACCESS_SINGLEUSER;
    c->priority = priority_create (policy);
    c->limits = limits_create (policy);
    c->dims = RES_GRES0 + gres;
    c->seed = options ? options->seed : 0;
    c->now = TIME_US_NONE;
    c->version = c->lasting = 1;
    c->node_serial = 1;
    memset (c->shape_bucket, 0xFF, sizeof c->shape_bucket);
    c->fairshare = fairshare_create (policy, 0);
    c->planner = planner_create ();
    return c;
}

static void job_free (struct job *job)
{
    if (job->spec.req != &job->one)
        free ((void *)job->spec.req);
    if (job->shape != &job->one_shape)
        free (job->shape);
    free ((void *)job->spec.licence);
    free (job->allocation.item);
    free (job->reserved.item);
    free (job->retry.item);
}

void cluster_destroy (struct cluster *c)
{
    if (c == NULL)
        return;
    planner_settle (c);
    planner_destroy (c->planner);
    arena_destroy (c->asked.arena);
    for (uint32_t i = 0; i < c->idle_count; i++)
        job_free (job_at (c, c->idle[i]));
    for (uint32_t i = 0; i < c->run_count; i++)
        job_free (job_at (c, c->run[i].slot));
    for (uint32_t i = 0; i < c->suspended_count; i++)
        job_free (job_at (c, c->suspended[i]));
    for (uint32_t i = 0; i < c->chunk_count; i++)
        free (c->chunk[i]);
    for (uint32_t i = 0; i < c->shape_count; i++) {
        if (c->shape[i].twin == SLOT_NONE)
            free (c->shape[i].nodes.word);
    }

    for (uint32_t i = 0; i < c->rsv_count; i++)
        rsv_free (c->rsv[i]);
    free (c->chunk);
    groups_free (c);
    free (c->class_rec);
    free (c->qos_features);
    free (c->priority_fn);
    free (c->shape);
    free (c->rsv);
    access_free (c->access);
    free (c->node);
    free (c->node_state);
    free (c->load_milli);
    free (c->usage);
    free (c->cap);
    free (c->free);
    free (c->node_jobs);
    free (c->open.word);
    free (c->speed);
    free (c->rank);
    free (c->slot_free);
    free (c->hot);
    free (c->pj);
    free (c->lj);
    free (c->prio_static);
    free (c->prio_key);
    free (c->map.key);
    free (c->map.slot);
    free (c->array_running.key);
    free (c->array_running.slot);
    free (c->suspended);
    free (c->idle);
    free (c->run);
    priority_destroy (c->priority);
    fairshare_destroy (c->fairshare);
    limits_destroy (c->limits);
    free (c);
}

int cluster_policy_set (struct cluster *c, const struct policy *policy, time_us now,
                        struct err *err)
{
    if (!policy->sealed)
        return err_set (err, ERR_INVALID, "cluster: the policy is not sealed");
    event_begin (c, now);
    nodes_settle (c);
    fairshare_advance (c->fairshare, c->now);
    priority_destroy (c->priority);
    limits_destroy (c->limits);
    c->priority = priority_create (policy);
    c->limits = limits_create (policy);
    fairshare_policy_set (c->fairshare, policy);
    policy_take (c, policy);
    if (c->access)
        access_changed (c); /* QoS flags are part of who asks */
    c->needs_stale = c->nodes_dirty = true;
    nodes_settle (c);
    jobs_policy_changed (c);
    c->version++;
    event_frees (c);
    return 0;
}

static void not_after (time_us *at, time_us now)
{
    if (*at != TIME_US_NONE && *at > now)
        *at = now;
}

void cluster_clock_back (struct cluster *c, time_us now)
{
    if (now >= c->now)
        return;
    plan_forget (c);
    c->now = now;
    not_after (&c->freed_at, now);
    for (uint32_t n = 0; n < c->node_count; n++) {
        not_after (&c->usage[n].since, now);
        not_after (&c->usage[n].at, now);
    }
    for (uint32_t i = 0; i < c->run_count; i++)
        not_after (&job_at (c, c->run[i].slot)->usage.at, now);
    for (uint32_t i = 0; i < c->idle_count; i++) /* dates that seemed to have come */
        gate_update (c, c->idle[i]);
    c->version++;
}

const struct policy *cluster_policy (const struct cluster *c)
{
    return c->policy;
}

struct fairshare *cluster_fairshare (struct cluster *c)
{
    return c->fairshare;
}

uint64_t cluster_version (const struct cluster *c)
{
    return c->version;
}

time_us cluster_now (const struct cluster *c)
{
    return c->now;
}

/* --- time --------------------------------------------------------------------------------- */

static void sooner (time_us t, time_us now, time_us *best)
{
    if (t != TIME_US_NONE && t > now && t < *best)
        *best = t;
}

time_us cluster_next_wakeup (const struct cluster *c, time_us now)
{
    time_us best = TIME_US_MAX;

    for (uint32_t i = 0; i < c->run_count; i++) {
        sooner (c->run[i].end, now, &best);
        if (c->run[i].end > now)
            break;
    }
    for (uint32_t i = 0; i < c->rsv_count; i++) {
        sooner (c->rsv[i]->spec.start, now, &best);
        sooner (c->rsv[i]->spec.end, now, &best);
    }
    for (uint32_t i = 0; i < c->idle_count; i++) {
        const struct job *job = job_at (c, c->idle[i]);
        sooner (job->reserved_start, now, &best);
        if (c->gated == 0)
            continue;
        sooner (job->deferred_until, now, &best);
        sooner (job->spec.not_before, now, &best);
        if (job->spec.data_at) { /* nodes are kept no longer */
            sooner (job->spec.data_at, now, &best);
            sooner (time_add (job->data_first, c->policy->data_grace) + 1, now, &best);
        }
        sooner (job->retry_until, now, &best);
        if (job->spec.deadline) /* when it is lost */
            sooner (job->spec.deadline - length_least (c, job->spec.walltime_limit) + 1, now,
                    &best);
    }
    for (uint32_t i = 0; i < c->run_count && c->policy->max_overrun != TIME_US_MAX; i++) {
        time_us end = time_add (c->run[i].end, c->policy->max_overrun);
        sooner (end, now, &best);
        if (end > now)
            break;
    }
    for (uint32_t i = 0; i < c->suspended_count; i++)
        sooner (suspended_wakeup (c, i), now, &best);
    if (c->policy->bf_chunk_procs && c->freed_at != TIME_US_NONE)
        sooner (time_add (c->freed_at, c->policy->bf_chunk_duration), now, &best);
    return best;
}
