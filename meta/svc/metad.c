/* Wiring: opens the store and the rooms in their order, recovers the jobs, and has the tables of methods and of parts. It is
 * the only file that knows all rooms by name. */
#include "meta/svc/metad.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "meta/store/votes.h"
#include "meta/place/arrays.h"
#include "meta/place/survey.h"
#include "meta/job/steps.h"
#include "meta/svc/arrive.h"
#include "meta/group/group.h"
#include "meta/svc/forget.h"
#include "meta/svc/handlers.h"
#include "meta/job/job.h"
#include "meta/lead/lead.h"
#include "meta/job/metrics.h"
#include "meta/job/peers.h"
#include "meta/place/gridlicence.h"
#include "meta/place/gridlimits.h"
#include "meta/svc/hooks.h"
#include "meta/svc/refusals.h"
#include "meta/svc/share.h"
#include "meta/job/seal.h"
#include "meta/single/single.h"
#include "meta/job/sites.h"
#include "meta/job/soon.h"
#include "meta/place/waits.h"

enum { SUBMIT_BYTES_MAX = 2 << 20, PUT_BYTES_MAX = 2 << 20, REPORT_BYTES_MAX = 4 << 20 };

#define USERS (RPC_ALLOW (PRINCIPAL_USER))
#define PEOPLE (RPC_ALLOW (PRINCIPAL_USER) | RPC_ALLOW (PRINCIPAL_OPERATOR))
/* A gate may do this for a user. */
#define READ RPC_GATE_READ
#define CHANGE RPC_GATE_CHANGE

static const struct rpc_method methods[] = {
    {.name = "Submit",
     .allow = USERS | CHANGE,
     .request_bytes_max = SUBMIT_BYTES_MAX,
     .handler = on_submit},
    {.name = "Estimate",
     .allow = USERS | READ,
     .request_bytes_max = SUBMIT_BYTES_MAX,
     .handler = on_estimate},
    {.name = "Jobs", .allow = PEOPLE | READ, .handler = on_jobs},
    {.name = "Status", .allow = PEOPLE | READ, .handler = on_status},
    {.name = "Watch", .allow = PEOPLE | READ, .server_streaming = true, .handler = on_watch},
    {.name = "Cancel", .allow = PEOPLE | CHANGE, .handler = on_cancel},
    {.name = "Hold", .allow = PEOPLE | CHANGE, .handler = on_hold},
    {.name = "Renew",
     .allow = USERS | READ,
     .handler = on_renew}, /* what it brings its user has signed */
    {.name = "Restage", .allow = PEOPLE | CHANGE, .handler = on_restage},
    {.name = "Sites", .allow = PEOPLE | RPC_ALLOW (PRINCIPAL_AGENCY) | READ, .handler = on_sites},
    {.name = "Licences", .allow = PEOPLE | READ, .handler = on_licences},
    {.name = "WhoAmI", .allow = RPC_ALLOW_ANY, .handler = on_whoami},
    {.name = "Report",
     .allow = RPC_ALLOW (PRINCIPAL_SITE),
     .request_bytes_max = REPORT_BYTES_MAX,
     .handler = on_report},
    {.name = "Put", .allow = USERS | CHANGE, .request_bytes_max = PUT_BYTES_MAX, .handler = on_put},
    {.name = "Content", .allow = RPC_ALLOW (PRINCIPAL_SITE), .handler = on_content},
    {.name = NULL},
};

static const struct rpc_method peer_methods[] = {
    {.name = "Vote",
     .allow = RPC_ALLOW (PRINCIPAL_META),
     .request_bytes_max = REPORT_BYTES_MAX,
     .handler = lead_on_vote},
    {.name = "Beat", .allow = RPC_ALLOW (PRINCIPAL_META), .handler = lead_on_beat},
    {.name = "Over", .allow = RPC_ALLOW (PRINCIPAL_META), .handler = lead_on_over},
    {.name = "State", .allow = RPC_ALLOW (PRINCIPAL_META), .handler = lead_on_state},
    {.name = "Cancel", .allow = RPC_ALLOW (PRINCIPAL_META), .handler = on_peer_cancel},
    {.name = "Hold", .allow = RPC_ALLOW (PRINCIPAL_META), .handler = on_peer_hold},
    {.name = "Renew", .allow = RPC_ALLOW (PRINCIPAL_META), .handler = on_peer_renew},
    {.name = NULL},
};

/* In the order in which they are told: what is kept of a job's records and votes before the notices of it. */
static const struct metad_part *const parts[] = {
    &group_part,   &lead_part,    &lead_beat_part, &hooks_part,      &gridlicence_part,
    &answers_part, &waits_part,   &arrays_part,    &gridlimits_part, &renew_part,
    &report_part,  &seal_part,    &refusals_part,  &steps_part,      &arrive_part,
    &share_part,   &ranking_part, &metrics_part,   &inputs_part,     &forget_part,
    NULL};

static int bank_link (struct metad *metad, const char *server, struct err *err)
{
    struct link_env env = {metad->base, metad->id, metad->log, &metad->gate};
    if (metad->bank && strcmp (link_server (metad->bank), server) == 0)
        return 0;
    struct link *fresh = link_to_bank (&env, server, err);
    if (!fresh)
        return err->code;
    struct link *old = metad->bank;
    metad->bank = fresh; /* first: the calls that end with the old one may ask again at once */
    link_destroy (old);
    return 0;
}

static bool is_cancelled_last (const struct gridjob *job)
{
    return job->cancel_wanted && job->array &&
           job->state == NUI__META__V1__GRID_JOB_STATE__GRID_RUNNING;
}

static int jobs_recover (struct metad *metad, struct err *err)
{
    struct arena *arena = arena_create (0);
    uint64_t *number = NULL;
    uint32_t count = 0, live = 0;
    int rc =
        metastore_job_list (metad->store, NULL, false, 0, UINT32_MAX, arena, &number, &count, err);
    for (uint32_t i = 0; i < count && rc == 0; i++) {
        struct gridjob *job = job_get (metad, number[i], err);
        if (!job) {
            rc = err->code;
            break;
        }
        live += !job_is_elsewhere (job);
    }
    /* When all are in memory; and what waits is cancelled before what runs, which would make room for it. */
    for (uint32_t i = 0; i < 2 * count && rc == 0; i++) {
        struct gridjob *job = job_live (metad, number[i % count]);
        if (job && !job_is_elsewhere (job) && is_cancelled_last (job) == (i >= count))
            job_driver (job)->recover (job);
    }
    if (rc == 0)
        rc = lead_recover (metad, err);
    if (rc == 0)
        rc = arrive_recover (metad, err);
    if (rc == 0)
        log_event (metad->log, LOG_LEVEL_INFO, "meta", "recovered", "jobs=%u epoch=%llu", live,
                   (unsigned long long)metastore_epoch (metad->store));
    arena_destroy (arena);
    return rc;
}

static bool gate_shut (void *self)
{
    return metastore_unsynced (((struct metad *)self)->store);
}

static int gate_open (void *self, struct err *err)
{
    struct metad *metad = self;
    int rc = metastore_sync (metad->store, err);
    if (rc && metad->failed) {
        metad->failed (metad->failed_arg, err);
        metad->failed = NULL;
    }
    return rc;
}

struct metad *metad_create (const struct metad_env *env, struct metad_config *config,
                            struct err *err)
{
    char path[4096];
    struct metad *metad = calloc (1, sizeof *metad);
    if (!metad) {
        err_set (err, ERR_NOMEM, "no memory");
        return NULL;
    }
    metad->parts = parts;
    metad->single = &single_driver;
    metad->group = &group_driver;
    metad->base = env->base;
    metad->log = env->log;
    metad->id = env->id;
    metad->config = config;
    metad->soon = soon_create (env->base);
    metad->started_mono = clock_monotonic_us ();
    metad->gate = (struct sendgate){gate_shut, gate_open, metad};
    metad->failed = env->failed;
    metad->takes_work = env->takes_work;
    metad->failed_arg = env->failed_arg;
    snprintf (metad->grid, sizeof metad->grid, "%s", env->grid);
    snprintf (path, sizeof path, "%s/meta.sqlite", env->state_dir);
    metad->store = metastore_open (path, err);
    if (!metad->store || inputs_open (metad, env->state_dir, err))
        goto fail;
    if (peers_create (metad, err))
        goto fail;
    metad->decisions = metad->peers ? lead_decisions () : metastore_decision_log (metad->store);
    int rc = bank_link (metad, config->bank, err);
    if (rc == 0)
        rc = sites_configure (metad, err);
    parts_ask (rc, metad, open, metad, err);
    if (rc || jobs_recover (metad, err))
        goto fail;
    return metad;
fail:
    metad_destroy (metad);
    return NULL;
}

void metad_metrics (struct metad *metad, struct metrics_page *page)
{
    metrics_write (metad, page);
}

int metad_serve (struct metad *metad, struct rpcserver *server, struct err *err)
{
    rpcserver_set_gate (server, &metad->gate);
    int rc = rpcserver_add_service (server, &nui__meta__v1__meta__descriptor, methods, metad, err);
    if (rc == 0 && metad->peers)
        rc = rpcserver_add_service (server, &nui__meta__v1__peers__descriptor, peer_methods, metad,
                                    err);
    return rc;
}

int metad_reconfigure (struct metad *metad, struct metad_config *config, struct err *err)
{
    struct metad_config *old = metad->config;
    if (peers_check (metad, config, err))
        return err->code;
    int rc = bank_link (metad, config->bank, err);
    metad->config = config;
    if (rc == 0)
        rc = sites_configure (metad, err);
    if (rc) { /* what was there is made again from the old one */
        metad->config = old;
        bank_link (metad, old->bank, &(struct err){0});
        sites_configure (metad, &(struct err){0});
    }
    inputs_reconfigure (metad);
    return rc;
}

void metad_drain (struct metad *metad)
{
    struct gridjob *job, *next;
    HASH_ITER (hh, metad->jobs, job, next) {
        job_unwatch (job);
    }
}

void metad_destroy (struct metad *metad)
{
    if (!metad)
        return;
    /* Links first: their calls end with CANCELLED while the jobs are there. */
    metad->stopping = true;
    sites_disconnect (metad);
    peers_disconnect (metad);
    link_destroy (metad->bank);
    metad->bank = NULL;
    soon_end (metad->soon); /* as those calls do */
    metad->soon = NULL;
    sites_destroy (metad);
    jobs_destroy (metad);
    parts_tell (metad, close, metad);
    peers_destroy (metad);
    metastore_close (metad->store);
    free (metad);
}
