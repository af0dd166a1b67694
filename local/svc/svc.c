/* The service as a whole: it is opened, reloaded and closed here, and here stands the table of its rooms. Nothing else
 * in local/svc calls it. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "local/rm/jobdir.h"
#include "local/rm/rm_kind.h"
#include "local/svc/admin/admin.h"
#include "local/svc/coalloc/coalloc.h"
#include "local/svc/files/stageout.h"
#include "local/svc/files/staging.h"
#include "local/svc/forecast/forecast.h"
#include "local/svc/grid/grid.h"
#include "local/svc/job.h"
#include "local/svc/job/jobs.h"
#include "local/svc/memory/memory.h"
#include "local/svc/modes/modes.h"
#include "local/svc/native/native.h"
#include "local/svc/nodes.h"
#include "local/svc/pass.h"
#include "local/svc/resv/resv.h"
#include "local/svc/svc_i.h"
#include "proto/base/clock.h"
#include "proto/base/mem.h"
#include "proto/base/text.h"

/* --- the rooms ---------------------------------------------------------------------------- */

/* In the order in which each event is told: what is summed up or kept before what acts on it, and before what goes
 * out of the site. */
static const struct svc_listener *const listeners[] = {&contact_listener,
                                                       &follow_listener,
                                                       &fairshare_listener,
                                                       &native_listener,
                                                       &usage_listener,
                                                       &history_listener,
                                                       &stats_listener,
                                                       &resv_listener,
                                                       &resv_charge_listener,
                                                       &mirror_listener,
                                                       &metrics_listener,
                                                       &notify_listener,
                                                       &feedback_listener,
                                                       &forecast_listener,
                                                       &statdir_listener,
                                                       &forecast_record_listener,
                                                       &charge_listener,
                                                       &purge_listener,
                                                       &output_listener,
                                                       &fetch_listener,
                                                       &evict_listener,
                                                       &exceed_listener,
                                                       &job_info_listener,
                                                       &links_listener,
                                                       &mode_listener,
                                                       &stageout_listener,
                                                       &inputs_listener,
                                                       &staging_listener,
                                                       &deferral_listener,
                                                       &replay_listener,
                                                       &stray_listener,
                                                       &rm_events_listener,
                                                       NULL};

/* --- creation ----------------------------------------------------------------------------- */

/* What a metascheduler may call, of those that this site speaks to (grid/named.c). */
#define OF_NAMED(handler)                                                                          \
    static void handler##_named (void *self, struct rpccall *call,                                 \
                                 const ProtobufCMessage *request)                                  \
    {                                                                                              \
        if (named_admits (self, call))                                                             \
            handler (self, call, request);                                                         \
    }
OF_NAMED (jobs_query)
OF_NAMED (coalloc_prepare)
OF_NAMED (coalloc_commit)
OF_NAMED (coalloc_abort)
OF_NAMED (coalloc_ready)
OF_NAMED (coalloc_start)
OF_NAMED (coalloc_release)
OF_NAMED (coalloc_terms)
OF_NAMED (jobs_submit)
OF_NAMED (jobs_job)
OF_NAMED (jobs_cancel)
OF_NAMED (admin_hold_job)
OF_NAMED (renew_handle)
OF_NAMED (stageout_restage)

static const struct rpc_method methods[] = {
    {"Query", RPC_ALLOW (PRINCIPAL_META), false, 2 << 20, jobs_query_named},
    {"Prepare", RPC_ALLOW (PRINCIPAL_META), false, 2 << 20, coalloc_prepare_named},
    {"Commit", RPC_ALLOW (PRINCIPAL_META), false, 0, coalloc_commit_named},
    {"Abort", RPC_ALLOW (PRINCIPAL_META), false, 0, coalloc_abort_named},
    {"Ready", RPC_ALLOW (PRINCIPAL_META), false, 0, coalloc_ready_named},
    {"Start", RPC_ALLOW (PRINCIPAL_META), false, 1 << 20, coalloc_start_named},
    {"Release", RPC_ALLOW (PRINCIPAL_META), false, 0, coalloc_release_named},
    {"Terms", RPC_ALLOW (PRINCIPAL_META), false, 256 << 10, coalloc_terms_named},
    {"Submit", RPC_ALLOW (PRINCIPAL_META), false, 2 << 20, jobs_submit_named},
    {"Job",
     RPC_ALLOW (PRINCIPAL_META) | RPC_ALLOW (PRINCIPAL_USER) | RPC_ALLOW (PRINCIPAL_OPERATOR) |
         RPC_GATE_READ,
     false, 0, jobs_job_named},
    {"Cancel",
     RPC_ALLOW (PRINCIPAL_META) | RPC_ALLOW (PRINCIPAL_USER) | RPC_ALLOW (PRINCIPAL_OPERATOR),
     false, 0, jobs_cancel_named},
    {"Output", RPC_ALLOW (PRINCIPAL_USER) | RPC_ALLOW (PRINCIPAL_OPERATOR) | RPC_GATE_READ, true, 0,
     output_serve},
    {"Files", RPC_ALLOW (PRINCIPAL_USER) | RPC_GATE_READ, false, 0, fetch_files},
    {"Fetch", RPC_ALLOW (PRINCIPAL_USER) | RPC_GATE_READ, true, 0, fetch_serve},
    {"Put", RPC_ALLOW (PRINCIPAL_USER), false, 2 << 20, inputs_put},
    {"Hold", RPC_ALLOW (PRINCIPAL_META), false, 0, admin_hold_job_named},
    {"Renew", RPC_ALLOW (PRINCIPAL_META), false, 2 << 20, renew_handle_named},
    {"Restage",
     RPC_ALLOW (PRINCIPAL_META) | RPC_ALLOW (PRINCIPAL_USER) | RPC_ALLOW (PRINCIPAL_OPERATOR),
     false, 0, stageout_restage_named},
    {NULL, 0, false, 0, NULL},
};

/* A site of no grid: no metascheduler is served. */
static const struct rpc_method methods_alone[] = {
    {"Job", RPC_ALLOW (PRINCIPAL_USER) | RPC_ALLOW (PRINCIPAL_OPERATOR), false, 0, jobs_job},
    {"Cancel", RPC_ALLOW (PRINCIPAL_USER) | RPC_ALLOW (PRINCIPAL_OPERATOR), false, 0, jobs_cancel},
    {"Output", RPC_ALLOW (PRINCIPAL_USER) | RPC_ALLOW (PRINCIPAL_OPERATOR), true, 0, output_serve},
    {"Files", RPC_ALLOW (PRINCIPAL_USER), false, 0, fetch_files},
    {"Fetch", RPC_ALLOW (PRINCIPAL_USER), true, 0, fetch_serve},
    {"Put", RPC_ALLOW (PRINCIPAL_USER), false, 2 << 20, inputs_put},
    {"Restage", RPC_ALLOW (PRINCIPAL_USER) | RPC_ALLOW (PRINCIPAL_OPERATOR), false, 0,
     stageout_restage},
    {NULL, 0, false, 0, NULL},
};

static void boot_id_read (char out[40])
{
    int fd = open ("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read (fd, out, 36);
    if (fd >= 0)
        close (fd);
    out[n > 0 ? n : 0] = 0;
}

/* What others are told: ADVERTISE, else LISTEN with the port that was really opened. */
static void server_name (struct svc *svc, const struct settings *settings)
{
    text_printf (svc->server, sizeof svc->server, "%.150s",
                 settings->advertise ? settings->advertise
                 : settings->listen  ? settings->listen
                                     : "localhost:0");
    text_printf (svc->host, sizeof svc->host, "%.127s", svc->server);
    char *colon = strrchr (svc->host, ':');
    if (colon)
        *colon = 0;
    if (!settings->advertise)
        snprintf (svc->server, sizeof svc->server, "%s:%u", svc->host,
                  rpcserver_port (daemon_server (svc->daemon)));
}

static int rm_begin (struct svc *svc, const struct settings *settings, struct err *err)
{
    if (settings->mode.mode == MODE_SIMULATION)
        return simulate_create (svc, settings, err);
    if (settings->job_dir)
        text_printf (svc->job_dir, sizeof svc->job_dir, "%s", settings->job_dir);
    else
        text_printf (svc->job_dir, sizeof svc->job_dir, "%s/jobs", daemon_state_dir (svc->daemon));
    struct rm_agent *agent = mem_zero (settings->nodes.node_count + 1, sizeof *agent);
    uint32_t agent_count = 0;
    for (uint32_t i = 0; i < settings->nodes.node_count; i++)
        if (settings->nodes.node[i].agent)
            agent[agent_count++] =
                (struct rm_agent){settings->nodes.node[i].name, settings->nodes.node[i].agent};
    struct rm_config config = {
        .base = svc->base,
        .log = svc->log,
        .watch = svc->watch,
        .site = svc->site,
        .job_dir = svc->job_dir,
        .options = &settings->rm,
        .observe = settings->mode.mode == MODE_TEST,
        .since = native_settled (svc),
        .supervise = settings->supervise,
        .kill_grace = settings->kill_grace,
        .output_max_mb = settings->output_max_mb,
        .cgroups = settings->cgroups,
        .id = daemon_tlsid (svc->daemon),
        .agent = agent,
        .agent_count = agent_count,
        .health = settings->health,
        .on_event = rm_event_on,
        .arg = svc,
    };
    int rc = rm_open (settings->rm_kind, &config, &svc->rm, err);
    free (agent);
    return rc;
}

/* Every node of old that is another host is so in settings, too, at the same address. */
static bool agents_same (const struct settings *old, const struct settings *settings)
{
    uint32_t count = 0, same = 0;
    for (uint32_t i = 0; i < settings->nodes.node_count; i++)
        count += settings->nodes.node[i].agent != NULL;
    for (uint32_t i = 0; i < old->nodes.node_count; i++) {
        const struct nodeconf_node *node = &old->nodes.node[i];
        uint32_t k = 0;
        if (!node->agent)
            continue;
        while (k < settings->nodes.node_count &&
               strcmp (settings->nodes.node[k].name, node->name) != 0)
            k++;
        const char *now = k < settings->nodes.node_count ? settings->nodes.node[k].agent : NULL;
        if (!now || strcmp (now, node->agent) != 0)
            return false;
        same++;
    }
    return same == count;
}

/* After a new state directory, or an older copy of it: numbers that jobs here have had are not given again. The bank
 * has had their final charges, and would hold nothing for another job of that number. */
static int numbers_pass (struct svc *svc, struct err *err)
{
    uint64_t most = jobdir_number_max (svc->job_dir, svc->site);
    int rc = most > 0 ? local_store_begin (svc->store, err) : 0;
    if (rc != 0 || most == 0)
        return rc;
    rc = local_store_next_above (svc->store, "job", most, err);
    if (rc == 0)
        return local_store_commit (svc->store, err);
    local_store_rollback (svc->store);
    return rc;
}

static int state_open (struct svc *svc, const struct settings *settings, struct err *err)
{
    char path[4096];
    struct cluster_options options = {0};
    if (settings->mode.mode != MODE_SIMULATION) /* which may be repeated */
        random_bytes (&options.seed, sizeof options.seed);
    bool simulation = settings->mode.mode == MODE_SIMULATION;
    bool mirror = settings->mode.mode == MODE_TEST && settings->mode.production;
    bool scratch = simulation || mirror;
    snprintf (path, sizeof path, "%s/%s.db", daemon_state_dir (svc->daemon),
              simulation ? "simulation"
              : mirror   ? "mirror"
                         : "local");
    int rc = scratch ? local_store_scratch (path, &svc->store, err)
                     : local_store_open (path, &svc->store, err);
    if (rc == 0 && !scratch)
        local_store_reserve (svc->store);
    if (rc == 0 && settings->gridmap)
        rc = gridmap_open (settings->gridmap, svc->log, &svc->gridmap, err);
    if (rc == 0)
        rc = rm_begin (svc, settings, err);
    if (rc == 0 && !scratch)
        rc = numbers_pass (svc, err);
    if (rc == 0)
        rc = replay_numbers_load (svc, err);
    if (rc != 0)
        return rc;
    svc->cluster = cluster_create (settings->policy, &options, err);
    if (!svc->cluster)
        return err->code;
    place_open (&svc->place, svc->cluster, svc->names, svc->features, svc_node_by_name, svc);
    return svc_nodes_apply (svc, settings, err);
}

int svc_create (struct daemon *daemon, struct cred_names *names, const struct settings *settings,
                struct svc **out, struct err *err)
{
    struct err local = {0};
    struct svc *svc = calloc (1, sizeof *svc);
    if (!svc)
        return err_set (err, ERR_NOMEM, "service: no memory");
    svc->daemon = daemon;
    svc->base = daemon_base (daemon);
    svc->log = daemon_log (daemon);
    svc->watch = filewatch_create (svc->base);
    svc->listeners = listeners;
    svc->settings = settings;
    svc->names = names;
    svc->schedule.stop_at = SCHEDULE_NEVER;
    svc->features = strtab_create ();
    svc->rsv_names = strtab_create ();
    names->rsv_name = resv_name;
    names->rsv_self = svc;
    resv_standing_open (svc);
    svc->call_arena = arena_create (0);
    svc->report_arena = arena_create (0);
    text_printf (svc->site, sizeof svc->site, "%.63s", daemon_name (daemon));
    boot_id_read (svc->boot_id);
    (void)uname (&svc->kernel);
    int rc = 0;
    if (settings->site_name && strcmp (settings->site_name, svc->site) != 0)
        rc = err_set (&local, ERR_INVALID, "SITENAME is %s but the certificate is of site %s",
                      settings->site_name, svc->site);
    if (rc == 0) {
        server_name (svc, settings);
        pass_init (svc);
        rc = state_open (svc, settings, &local);
    }
    SVC_TRY (svc, rc, open, (svc, &local));
    if (rc == 0)
        rc = svc_recover (svc, &local);
    if (rc == 0)
        rc = follow_open (svc, settings, &local);
    if (rc == 0)
        rc = rpcserver_add_service (daemon_server (daemon), &nui__local__v1__local__descriptor,
                                    svc->meta ? methods : methods_alone, svc, &local);
    if (rc == 0)
        rc = admin_serve (svc, &local);
    if (rc == 0)
        rc = admin_stats_serve (svc, &local);
    if (rc != 0) {
        svc_destroy (svc);
        return err_set (err, rc, "%s", local.text);
    }
    statdir_open (svc);
    if (svc->sim)
        simulate_run (svc->sim);
    else
        pass_wake (svc);
    log_event (svc->log, LOG_LEVEL_INFO, "svc", "site_ready",
               "site=%s mode=%s server=%s nodes=%u jobs=%u bank=%s metas=%u", svc->site,
               server_mode_name (settings->mode.mode), svc->server, svc->node_count,
               HASH_COUNT (svc->jobs), svc->bank ? settings->bank : "none",
               svc->meta ? settings->meta_count : 0);
    *out = svc;
    return 0;
}

static bool same_text (const char *a, const char *b)
{
    return a == b || (a && b && strcmp (a, b) == 0);
}

int svc_reload (struct svc *svc, const struct settings *settings, struct err *err)
{
    const struct settings *old = svc->settings;
    if (!same_text (old->bank, settings->bank) || old->meta_count != settings->meta_count)
        return err_set (err, ERR_CONFLICT, "META and BANK change with a restart only");
    for (uint32_t i = 0; i < old->meta_count; i++)
        if (strcmp (old->metas[i], settings->metas[i]) != 0)
            return err_set (err, ERR_CONFLICT, "META and BANK change with a restart only");
    if (!same_text (old->gridmap, settings->gridmap))
        return err_set (err, ERR_CONFLICT,
                        "GRIDMAP changes with a restart only (its content is "
                        "looked at by itself)");
    if (settings->site_name && strcmp (settings->site_name, svc->site) != 0)
        return err_set (err, ERR_CONFLICT, "SITENAME cannot change");
    if (!same_text (old->health.program, settings->health.program) ||
        old->health.every != settings->health.every)
        return err_set (err, ERR_CONFLICT,
                        "NODEHEALTHPROGRAM and NODEHEALTHINTERVAL change with a restart only");
    if (!agents_same (old, settings))
        return err_set (err, ERR_CONFLICT, "NODECFG AGENT changes with a restart only");
    if (settings->mode.mode != old->mode.mode)
        return err_set (err, ERR_CONFLICT, "the mode changes from %s to %s with a restart only",
                        server_mode_name (old->mode.mode), server_mode_name (settings->mode.mode));
    int rc = 0;
    SVC_TRY (svc, rc, reload, (svc, settings, err));
    if (rc != 0)
        return rc;
    SVC_TELL (svc, policy_changes, (svc));
    rc = cluster_policy_set (svc->cluster, settings->policy, svc_now (svc), err);
    if (rc == 0 && svc_nodes_apply (svc, settings, err) != 0) {
        struct err again = {0};
        rc = err ? err->code : ERR_INVALID;
        if (cluster_policy_set (svc->cluster, old->policy, svc_now (svc), &again) != 0 ||
            svc_nodes_apply (svc, old, &again) != 0)
            log_event (svc->log, LOG_LEVEL_ERROR, "svc", "old_settings_not_restored",
                       "error=\"%s\"", again.text);
        return rc;
    }
    if (rc == 0 && svc->sim)
        rc = simulate_reload (svc->sim, settings, err);
    if (rc != 0)
        return rc;
    svc->settings = settings;
    SVC_TELL (svc, reloaded, (svc));
    server_name (svc, settings);
    pass_init (svc);
    pass_wake (svc);
    return 0;
}

void svc_draining (struct svc *svc)
{
    output_draining (svc);
    fetch_draining (svc);
}

void svc_destroy (struct svc *svc)
{
    struct site_job *job, *next_job;
    struct site_part *part, *next_part;
    if (!svc)
        return;
    svc->closing = true;
    SVC_TELL (svc, stop, (svc));
    HASH_ITER (hh, svc->parts, part, next_part) {
        for (uint32_t i = 0; i < part->waiter_count; i++)
            rpccall_finish (part->waiter[i], RPC_UNAVAILABLE, "the site is stopping");
        svc_part_forget (svc, part);
    }
    HASH_ITER (hh, svc->jobs, job, next_job)
        svc_job_forget (svc, job);
    if (svc->rm.ops)
        svc->rm.ops->destroy (svc->rm.self);
    simulate_destroy (svc->sim);
    SVC_TELL (svc, close, (svc));
    cluster_destroy (svc->cluster);
    gridmap_close (svc->gridmap);
    local_store_close (svc->store);
    svc_nodes_free (svc);
    pass_close (svc);
    if (svc->resume_event)
        event_free (svc->resume_event);
    if (svc->place.column)
        place_close (&svc->place);
    svc->names->rsv_name = NULL;
    strtab_destroy (svc->features);
    strtab_destroy (svc->rsv_names);
    arena_destroy (svc->call_arena);
    arena_destroy (svc->report_arena);
    filewatch_destroy (svc->watch);
    free (svc);
}
