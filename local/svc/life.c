#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "local/svc/charge.h"
#include "local/svc/fairshare_file.h"
#include "local/svc/notify.h"
#include "local/svc/stats.h"
#include "local/svc/svc_i.h"
#include "proto/base/clock.h"
#include "proto/base/strbuf.h"
#include "proto/nui/v1/bank.pb-c.h"

/* How long it has its nodes at most. */
static duration_us job_length (const struct svc *svc, const struct site_job *job)
{
    return cluster_job_scaled (svc->cluster, (struct job_id){job->rec.number}, job->rec.walltime);
}

/* --- holds -------------------------------------------------------------------------------- */

static int hold_request_pack (struct svc *svc, struct site_job *job, time_us start,
                              struct store_hold *out, struct err *err)
{
    Nui__Bank__V1__HoldRequest request = NUI__BANK__V1__HOLD_REQUEST__INIT;
    struct jobspec spec;
    char id[SITE_ID_MAX];
    void *bytes = NULL;
    size_t len = 0;
    int rc = local_store_envelope (svc->store, job->rec.number, &bytes, &len, err);
    if (rc != 0)
        return rc;
    rc = jobspec_load (svc, &job->rec, &spec, err);
    if (rc != 0) {
        free (bytes);
        return rc;
    }
    request.key.data = out->key;
    request.key.len = sizeof out->key;
    Nui__Bank__V1__SiteClaim claim;
    if (native_claim (svc, job, &claim))
        request.claim = &claim; /* nobody signed it: the site's word */
    else
        request.envelope = nui__common__v1__envelope__unpack (NULL, len, bytes);
    request.site_job_id = site_id (svc, job->rec.number, id);
    request.grid_job_id = *job->rec.grid_job_id ? job->rec.grid_job_id : id; /* msub's: its own */
    request.component = job->rec.component;
    request.incarnation = job->rec.incarnation;
    request.procs = job->rec.procs;
    request.walltime_us = job_length (svc, job);
    request.shape = job->rec.shape;
    request.start_us = start;
    request.qos = spec.cred[CRED_QOS] == CRED_DEFAULT || spec.cred[CRED_QOS] == CRED_NONE
                      ? (char *)""
                      : (char *)cred_name (svc->names, CRED_QOS, spec.cred[CRED_QOS]);
    request.class_ = spec.component->class_;
    struct bank_asked asked;
    bank_asked_fill (svc, &spec, &asked);
    request.asked = &asked.message;
    out->request_len = nui__bank__v1__hold_request__get_packed_size (&request);
    out->request = malloc (out->request_len + 1);
    assert (out->request && (request.envelope || request.claim));
    nui__bank__v1__hold_request__pack (&request, out->request);
    if (request.envelope)
        nui__common__v1__envelope__free_unpacked (request.envelope, NULL);
    jobspec_free (&spec);
    free (bytes);
    return 0;
}

int life_hold_prepare (struct svc *svc, struct site_job *job, time_us expected_start,
                       struct store_hold *out, struct err *err)
{
    struct uuid key;
    uuid_make (&key);
    *out = (struct store_hold){.job = job->rec.number, .wanted = true};
    memcpy (out->key, key.b, sizeof out->key);
    int rc = hold_request_pack (svc, job, expected_start, out, err);
    if (rc == 0)
        rc = local_store_hold_put (svc->store, out, err);
    if (rc != 0) {
        store_hold_free (out);
        return rc;
    }
    memcpy (job->rec.hold_key, out->key, sizeof job->rec.hold_key);
    job->rec.hold_asked = true;
    *job->rec.hold_id = 0;
    job->rec.amount = 0;
    return 0;
}

static int release_put (struct svc *svc, const char *hold_id, const char *why, struct err *err)
{
    Nui__Bank__V1__ReleaseRequest request = NUI__BANK__V1__RELEASE_REQUEST__INIT;
    struct uuid key;
    uint8_t bytes[1024];
    uuid_make (&key);
    request.key.data = key.b;
    request.key.len = sizeof key.b;
    request.hold_id = (char *)hold_id;
    char reason[256];
    snprintf (reason, sizeof reason, "%s", why);
    request.reason = reason;
    size_t len = nui__bank__v1__release_request__get_packed_size (&request);
    assert (len <= sizeof bytes);
    nui__bank__v1__release_request__pack (&request, bytes);
    return local_store_outbox_put (svc->store, STORE_OUTBOX_BANK, "release", &key, bytes, len,
                                   svc_now (svc), NULL, err);
}

int life_hold_return (struct svc *svc, struct site_job *job, const char *why, struct err *err)
{
    int rc = 0;
    if (job->rec.hold_asked)
        rc = local_store_hold_unwant (svc->store, job->rec.hold_key, err);
    else if (*job->rec.hold_id)
        rc = release_put (svc, job->rec.hold_id, why, err);
    if (rc == 0) {
        job->rec.hold_asked = false;
        *job->rec.hold_id = 0;
    }
    return rc;
}

/* --- ends --------------------------------------------------------------------------------- */

/* What the core knows of a job or its reservation goes; so does the live record. */
void life_drop (struct svc *svc, struct site_job *job)
{
    struct err err = {0};
    time_us now = svc_now (svc);
    struct job_id id = {job->rec.number};
    uint64_t number = job->rec.number;
    stats_settle (svc);
    if (job->in_cluster) {
        struct job_view view;
        int rc = cluster_job_get (svc->cluster, id, &view, &err);
        if (rc == 0 && view.state == JOB_IDLE)
            rc = cluster_job_remove (svc->cluster, id, now, &err);
        else if (rc == 0)
            rc = cluster_job_end (svc->cluster, id, now, &err);
        if (rc != 0)
            log_event (svc->log, LOG_LEVEL_ERROR, "svc", "core_disagrees", "error=\"%s\"",
                       err.text);
    }
    if (job->part) {
        if (job->part->rsv &&
            cluster_rsv_release (svc->cluster, (struct rsv_id){number}, now, &err) != 0)
            log_event (svc->log, LOG_LEVEL_ERROR, "svc", "core_disagrees", "error=\"%s\"",
                       err.text);
        svc_part_forget (svc, job->part);
    }
    svc_job_forget (svc, job);
    notify_wake (svc);
    output_job_changed (svc, number);
    depends_happened (svc, number);
    pass_wake (svc);
}

/* In a transaction: the part's row follows its job's end. */
static int part_close (struct svc *svc, struct site_job *job, struct err *err)
{
    if (!job->part)
        return 0;
    if (job->part->rec.state <= STORE_PART_FIRM)
        job->part->rec.state = STORE_PART_RELEASED;
    return local_store_part_put (svc->store, &job->part->rec, err);
}

/* In a transaction: history, statistics, and whoever is to hear of a failure. */
static int end_remember (struct svc *svc, struct site_job *job, duration_us cpu, struct err *err)
{
    int rc = stats_job_ended (svc, job, cpu, err);
    if (rc == 0 &&
        (job->rec.state == STORE_JOB_FAILED || job->rec.state == STORE_JOB_TIMEOUT))
        rc = notify_job (svc, job, err);
    return rc;
}

int life_end_unstarted (struct svc *svc, struct site_job *job, enum store_job_state state,
                        struct err *err)
{
    struct err local = {0};
    char id[SITE_ID_MAX];
    struct store_job before = job->rec; /* to go back to when the disk says no */
    err = err ? err : &local;
    /* A part that was never firm is not told of: nobody was promised anything. */
    bool tell = !job->part || job->rec.ever_told;
    job->rec.state = state;
    job->rec.end = svc_now (svc);
    int rc = svc_begin (svc, err);
    if (rc == 0)
        rc = life_hold_return (svc, job, job->rec.reason_code, err);
    if (rc == 0)
        rc = part_close (svc, job, err);
    if (rc == 0 && tell)
        rc = end_remember (svc, job, -1, err);
    if (rc == 0)
        rc = svc_job_write (svc, job, tell, NULL, 0, err);
    rc = svc_commit (svc, rc, err);
    if (rc != 0) {
        job->rec = before;
        return rc;
    }
    log_event (svc->log, LOG_LEVEL_INFO, "svc", "job_ended_unstarted", "job=%s reason=%s",
               site_id (svc, job->rec.number, id), job->rec.reason_code);
    bank_link_poke (svc->bank);
    life_drop (svc, job);
    return 0;
}

/* It ended while it was suspended. */
static void halt_close (struct site_job *job)
{
    duration_us longest = job->rec.end - job->rec.start;
    time_us since = job->suspended ? job->suspended_since : job->rec.suspended_at;
    if (since && job->rec.end > since)
        job->rec.halted += job->rec.end - since;
    job->suspended = false;
    job->rec.suspended_at = 0;
    if (job->rec.halted > longest)
        job->rec.halted = longest;
}

/* A job that ran. */
static void end_started (struct svc *svc, struct site_job *job, const struct rm_status *status)
{
    struct err err = {0};
    char id[SITE_ID_MAX];
    site_id (svc, job->rec.number, id);
    job->rec.start = status->start;
    job->rec.end = status->end_at > status->start ? status->end_at : status->start;
    job->rec.exit_code = status->exit_code;
    halt_close (job);
    switch (status->end) {
    case RM_END_EXITED:
        job->rec.state = status->exit_code == 0 ? STORE_JOB_COMPLETED : STORE_JOB_FAILED;
        svc_reason (job, status->exit_code ? "ExitCode" : "", "%s",
                    status->exit_code ? "the job ended with an exit code other than 0" : "");
        break;
    case RM_END_TIMEOUT:
        job->rec.state = STORE_JOB_TIMEOUT;
        svc_reason (job, "WallclockLimit", "the job was ended at its wallclock limit");
        break;
    case RM_END_CANCELLED:
        job->rec.state = job->rec.stop == STORE_STOP_LIMIT ? STORE_JOB_TIMEOUT
                                                           : STORE_JOB_CANCELLED;
        if (job->rec.stop == STORE_STOP_LIMIT)
            break;
        if (job->rec.stop != STORE_STOP_CANCEL)
            svc_reason (job, "Cancelled", "cancelled");
        break;
    case RM_END_SIGNALLED:
        job->rec.state = STORE_JOB_FAILED;
        svc_reason (job, "Signal", "ended by signal %d", status->exit_code - 128);
        break;
    default:
        job->rec.state = STORE_JOB_FAILED;
        svc_reason (job, "NodeFailure", "%s", status->text);
        break;
    }
    usage_final (svc, job, status);
    int rc = svc_begin (svc, &err);
    if (rc == 0)
        rc = charge_job (svc, job, job->rec.end, status->cpu_known ? status->cpu_time : 0, true, &err);
    if (rc == 0)
        rc = fairshare_file_put (svc, &err);
    if (rc == 0)
        rc = part_close (svc, job, &err);
    if (rc == 0)
        rc = end_remember (svc, job, status->cpu_known ? status->cpu_time : -1, &err);
    if (rc == 0)
        rc = svc_job_write (svc, job, true, NULL, 0, &err);
    rc = svc_commit (svc, rc, &err);
    if (rc != 0) {
        /* Nothing is lost: the end is in the job's directory and found again after a restart. The
         * daemon cannot go on with a job whose charge it cannot write down. */
        err_prefix (&err, "end of job %s", id);
        daemon_stop (svc->daemon, &err);
        return;
    }
    log_event (svc->log, LOG_LEVEL_INFO, "svc", "job_ended", "job=%s how=%s exit_code=%d s=%lld", id,
               rm_end_name (status->end), job->rec.exit_code,
               (long long)((job->rec.end - job->rec.start) / US_PER_S));
    bank_link_poke (svc->bank);
    life_drop (svc, job);
}

/* In a transaction: how long its nodes will be kept for it (RESERVATIONRETRYTIME), as the core will
 * have it once it is requeued; so that a restart keeps them too. */
static int retry_write (struct svc *svc, const struct site_job *job, struct err *err)
{
    duration_us kept = svc->settings->policy->reservation_retry;
    struct job_view view;
    bool keeps = kept > 0 && job->in_cluster &&
                 cluster_job_get (svc->cluster, (struct job_id){job->rec.number}, &view, NULL) == 0 &&
                 view.state == JOB_STARTING && view.spec->reservation.v == 0;
    if (kept <= 0)
        return 0;
    return local_store_retry_put (svc->store, job->rec.number, keeps ? svc_now (svc) + kept : 0,
                                  err);
}

/* Back to the queue, until `until` at the earliest, or deferred. Reason set before. */
static void requeue (struct svc *svc, struct site_job *job, time_us until, struct deferral deferral)
{
    native_bind_again (svc, job);
    struct err err = {0};
    job->rec.state = STORE_JOB_QUEUED;
    job->rec.deferred_until = until;
    job->rec.start = 0;
    job->rec.backfilled = false;
    bool other_qos = job->payqos;
    int rc = svc_begin (svc, &err);
    if (rc == 0)
        rc = payqos_drop (svc, job, &err);
    if (rc == 0)
        rc = deferral_write (svc, job, deferral, &err);
    if (rc == 0)
        rc = retry_write (svc, job, &err);
    if (rc == 0)
        rc = life_hold_return (svc, job, job->rec.reason_code, &err);
    if (rc == 0)
        rc = svc_job_write (svc, job, true, NULL, 0, &err);
    rc = svc_commit (svc, rc, &err);
    if (rc != 0) {
        daemon_stop (svc->daemon, &err);
        return;
    }
    bank_link_poke (svc->bank);
    stats_settle (svc);
    if (cluster_job_requeue (svc->cluster, (struct job_id){job->rec.number},
                             job->rec.deferred_until, svc_now (svc), &err) != 0 ||
        (other_qos && svc_cluster_modify (svc, job, &err) != 0))
        log_event (svc->log, LOG_LEVEL_ERROR, "svc", "core_disagrees", "error=\"%s\"", err.text);
    if (deferral.batch_hold)
        deferral_apply (svc, job, deferral);
    pass_wake (svc);
}

static const struct deferral not_deferred = {TIME_US_NONE, false};

/* What DEFERTIME 0 leaves: try again at the next poll. */
static time_us retry_at (const struct svc *svc, duration_us longest)
{
    duration_us poll = svc->settings->policy->poll_interval;
    return svc_now (svc) + (poll < longest ? poll : longest);
}

/* It never began: RM refused, or its process could not be made. */
static void start_failed (struct svc *svc, struct site_job *job, enum defer_reason why,
                          const char *text)
{
    const struct policy *policy = svc->settings->policy;
    char id[SITE_ID_MAX];
    job->rec.start_failures++;
    log_event (svc->log, LOG_LEVEL_WARN, "svc", "start_failed", "job=%s failures=%u error=\"%s\"",
               site_id (svc, job->rec.number, id), job->rec.start_failures, text);
    svc_reason (job, defer_reason_name (why), "could not be started: %s", text);
    if (job->part || job->rec.stop == STORE_STOP_CANCEL) {
        life_end_unstarted (svc, job, STORE_JOB_FAILED, NULL);
        return;
    }
    struct deferral d = defer_start_failed (policy, job->rec.start_failures, job->rec.defer_count,
                                            svc_now (svc));
    job->rec.incarnation++; /* a new directory, a new hold */
    requeue (svc, job, retry_at (svc, 5 * US_PER_S), d);
}

/* --- launch ------------------------------------------------------------------------------- */

static void env_printf (struct arena *arena, const char **env, uint32_t *count, const char *fmt, ...)
    __attribute__ ((format (printf, 4, 5)));
static void env_printf (struct arena *arena, const char **env, uint32_t *count, const char *fmt, ...)
{
    va_list ap;
    va_start (ap, fmt);
    env[(*count)++] = arena_vprintf (arena, fmt, ap);
    va_end (ap);
}

/* NUI_PEERS: component=host:port of all parts, in job order. */
static const char *peers_text (struct arena *arena, const Nui__Local__V1__StartRequest *start)
{
    struct strbuf b = STRBUF_INIT;
    for (size_t i = 0; i < start->n_peers; i++) {
        const Nui__Common__V1__Peer *p = start->peers[i];
        strbuf_printf (&b, "%s%s=%s:%u", i ? " " : "", p->component,
                       p->n_hosts ? p->hosts[0] : "", p->port);
    }
    const char *text = arena_strdup (arena, strbuf_text (&b));
    strbuf_free (&b);
    return text;
}

static void launch_env (struct svc *svc, struct site_job *job, const struct jobspec *spec,
                        struct rm_job *rm, uint32_t tasks)
{
    struct arena *arena = svc->call_arena;
    const Nui__Common__V1__Component *c = spec->component;
    const char **env = arena_array (arena, c->n_env + 24, sizeof *env);
    uint32_t n = 0;
    for (size_t i = 0; i < c->n_env; i++)
        if (strncmp (c->env[i], "NUI_", 4) != 0) /* ours are ours to set */
            env[n++] = c->env[i];
    env_printf (arena, env, &n, "NUI_JOBID=%s", rm->job_id);
    env_printf (arena, env, &n, "NUI_GRID_JOBID=%s", job->rec.grid_job_id);
    env_printf (arena, env, &n, "NUI_SITE=%s", svc->site);
    env_printf (arena, env, &n, "NUI_COMPONENT=%s", job->rec.component);
    env_printf (arena, env, &n, "NUI_TASKS=%u", tasks);
    env_printf (arena, env, &n, "NUI_NODES=%u", rm->host_count);
    env_printf (arena, env, &n, "NUI_START_TIME=%lld",
                (long long)((rm->start ? rm->start : svc_now (svc)) / US_PER_S));
    if (job->rec.array)
        env_printf (arena, env, &n, "NUI_ARRAY_INDEX=%u", job->rec.array_index);
    if (job->rec.incarnation)
        env_printf (arena, env, &n, "NUI_RESTARTS=%u", job->rec.incarnation);
    if (job->rec.checkpoints) {
        char dir[4096];
        evict_checkpoint_dir (svc, job, dir, sizeof dir);
        env_printf (arena, env, &n, "NUI_CHECKPOINT_DIR=%s", dir);
    }
    if (job->rec.port)
        env_printf (arena, env, &n, "NUI_PORT=%u", job->rec.port);
    if (!job->part && job->rec.port && rm->host_count > 0)
        env_printf (arena, env, &n, "NUI_PEERS=%s=%s:%u", job->rec.component,
                    node_address (svc, rm->host[0]), job->rec.port);
    if (job->part) {
        Nui__Local__V1__StartRequest *start = nui__local__v1__start_request__unpack (
            NULL, job->part->rec.start_len, job->part->rec.start);
        if (start)
            env_printf (arena, env, &n, "NUI_PEERS=%s", peers_text (arena, start));
        nui__local__v1__start_request__free_unpacked (start, NULL);
    }
    rm->env = env;
    rm->env_count = n;
}

/* Nodes in the order of the placement, tasks of all reqs on a node together. */
static uint32_t launch_hosts (struct svc *svc, struct site_job *job, struct rm_job *rm)
{
    struct arena *arena = svc->call_arena;
    struct allocation a = placement_parse (svc, job->rec.placement, arena);
    const char **host = arena_array (arena, a.count + 1, sizeof *host);
    uint32_t *tasks = arena_array (arena, a.count + 1, sizeof *tasks);
    uint32_t n = 0, all = 0;
    for (uint32_t i = 0; i < a.count; i++) {
        const char *name = svc->node_by_id[a.item[i].node.v]->name;
        uint32_t at = 0;
        while (at < n && strcmp (host[at], name) != 0)
            at++;
        if (at == n)
            host[n++] = name;
        tasks[at] += a.item[i].tasks;
        all += a.item[i].tasks;
    }
    rm->host = host;
    rm->host_tasks = tasks;
    rm->host_count = n;
    return all;
}

/* For the resource manager, which ends it then whatever becomes of us: its limit and JOBMAXOVERRUN;
 * where it is to be preempted then, with time for that. */
static duration_us limit_of (const struct svc *svc, const struct site_job *job)
{
    enum { MINUTES = 15 };
    const struct policy *p = svc->settings->policy;
    duration_us more = p->max_overrun;
    if (p->wcviolation_action == WCVIOLATION_PREEMPT && more < INT64_MAX / 4)
        more += MINUTES * 60 * US_PER_S;
    return more < INT64_MAX / 4 ? job_length (svc, job) + more : INT64_MAX / 2;
}

static int launch_simulated (struct svc *svc, struct site_job *job, struct err *err)
{
    char id[SITE_ID_MAX];
    struct rm_job rm = {.job_id = site_id (svc, job->rec.number, id),
                        .incarnation = job->rec.incarnation,
                        .start = job->rec.launch_at,
                        .walltime = limit_of (svc, job),
                        .procs = job->rec.procs};
    return svc->rm.ops->start (svc->rm.self, &rm, err);
}

int life_launch (struct svc *svc, struct site_job *job, struct err *err)
{
    if (svc->rm.ops->simulated)
        return launch_simulated (svc, job, err);
    struct jobspec spec;
    char id[SITE_ID_MAX];
    int rc = jobspec_load (svc, &job->rec, &spec, err);
    if (rc != 0)
        return rc;
    arena_reset (svc->call_arena);
    const Nui__Common__V1__Component *c = spec.component;
    struct rm_job rm = {
        .job_id = site_id (svc, job->rec.number, id),
        .incarnation = job->rec.incarnation,
        .local_account = job->rec.local_account,
        .start = job->rec.launch_at,
        .walltime = limit_of (svc, job),
        .procs = job->rec.procs,
        .memory_mb = spec.memory_mb,
        .script = c->script.data,
        .script_len = c->script.len,
        .arg_count = (uint32_t)c->n_args,
        .arg = (const char *const *)c->args,
        .stdout_name = c->stdout_name,
        .stderr_name = c->stderr_name,
        .class_name = c->class_,
        .account = spec.job->account,
        .qos = c->qos,
        .rm_id = job->rm.native ? job->rm.rm_id : NULL,
    };
    uint32_t tasks = launch_hosts (svc, job, &rm);
    launch_env (svc, job, &spec, &rm, tasks);
    rc = svc->rm.ops->start (svc->rm.self, &rm, err);
    if (rc == ERR_EXISTS)
        rc = svc->rm.ops->adopt (svc->rm.self, rm.job_id, rm.incarnation, err);
    jobspec_free (&spec);
    return rc;
}

void life_launch_unpaid (struct svc *svc, struct site_job *job)
{
    struct err err = {0};
    int rc = life_launch (svc, job, &err);
    if (rc != 0) /* refused: as it is, it would be refused again */
        start_failed (svc, job, rc == ERR_DENIED || rc == ERR_INVALID ? DEFER_RM_REJECT
                                                                     : DEFER_RM_FAILURE,
                      err.text);
}

/* --- the bank's answers ------------------------------------------------------------------- */

int life_answer_over (struct svc *svc, const struct bank_answer *answer, struct err *err)
{
    int rc = 0;
    if (answer->hold_id)
        rc = release_put (svc, answer->hold_id, answer->text ? answer->text : "no longer wanted", err);
    return rc ? rc : local_store_hold_delete (svc->store, answer->key, err);
}

/* Nobody waits for it any more. */
static void answer_unwanted (struct svc *svc, const struct bank_answer *answer)
{
    struct err err = {0};
    int rc = svc_begin (svc, &err);
    if (rc == 0)
        rc = life_answer_over (svc, answer, &err);
    svc_commit (svc, rc, &err);
    bank_link_poke (svc->bank);
}

/* The bank was away so long that its hold would end before the job: give it back, ask anew. */
static bool hold_too_old (const struct svc *svc, const struct site_job *job,
                          const struct bank_answer *answer)
{
    return answer->expires && answer->expires < svc_now (svc) + job_length (svc, job);
}

static void ordinary_again (struct svc *svc, struct site_job *job, const struct bank_answer *answer)
{
    struct err err = {0};
    struct store_hold hold = {0};
    int rc = svc_begin (svc, &err);
    if (rc == 0)
        rc = release_put (svc, answer->hold_id, "asked for too long ago", &err);
    if (rc == 0)
        rc = local_store_hold_delete (svc->store, answer->key, &err);
    if (rc == 0)
        rc = life_hold_prepare (svc, job, svc_now (svc), &hold, &err);
    if (rc == 0)
        rc = svc_job_write (svc, job, false, NULL, 0, &err);
    if (svc_commit (svc, rc, &err) == 0)
        bank_link_hold (svc->bank, &hold);
    else
        daemon_stop (svc->daemon, &err);
    store_hold_free (&hold);
}

static void ordinary_granted (struct svc *svc, struct site_job *job,
                              const struct bank_answer *answer)
{
    struct err err = {0};
    snprintf (job->rec.hold_id, sizeof job->rec.hold_id, "%s", answer->hold_id);
    snprintf (job->rec.pay_account, sizeof job->rec.pay_account, "%s", answer->account);
    job->rec.amount = answer->amount;
    job->rec.hold_asked = false;
    if (!job->rec.port) { /* none left: it runs without one */
        job->rec.port = ports_choose (svc);
        ports_mark (svc, job->rec.port, true);
    }
    svc_reason (job, "Launching", "the bank holds the credits; the job is being launched");
    int rc = svc_begin (svc, &err);
    bool starting = job->rec.state == STORE_JOB_STARTING; /* else someone started it without us */
    if (rc == 0)
        rc = local_store_hold_delete (svc->store, answer->key, &err);
    if (rc == 0 && starting)
        rc = payqos_take (svc, job, answer->qos, &err);
    if (rc == 0)
        rc = svc_job_write (svc, job, false, NULL, 0, &err);
    rc = svc_commit (svc, rc, &err);
    if (rc != 0) { /* the hold's row is there: asked again after a restart, with the same answer */
        daemon_stop (svc->daemon, &err);
        return;
    }
    if (!starting)
        return;
    payqos_core (svc, job);
    life_launch_unpaid (svc, job);
}

/* AMCFG JFACTION=CANCEL; the reason is set. One that the resource manager has as well ends there first. */
static void unpaid_cancel (struct svc *svc, struct site_job *job)
{
    struct err err = {0};
    char code[STORE_NAME_MAX], text[400];
    snprintf (code, sizeof code, "%s", job->rec.reason_code);
    snprintf (text, sizeof text, "%.380s", job->rec.reason_text ? job->rec.reason_text : "");
    if (job->rm.native) {
        requeue (svc, job, 0, not_deferred);
        if (life_cancel (svc, job, code, text, &err) == 0)
            return;
    } else if (life_end_unstarted (svc, job, STORE_JOB_CANCELLED, &err) == 0)
        return;
    daemon_stop (svc->daemon, &err);
}

static void ordinary_refused (struct svc *svc, struct site_job *job,
                              const struct bank_answer *answer)
{
    struct err err = {0};
    const struct policy *policy = svc->settings->policy;
    char id[SITE_ID_MAX];
    bool failed = strcmp (answer->code, defer_reason_name (DEFER_BANK_FAILURE)) == 0;
    svc_reason (job, answer->code, "%s: %s",
                defer_reason_name (failed ? DEFER_BANK_FAILURE : DEFER_CANNOT_DEBIT),
                answer->text);
    log_event (svc->log, LOG_LEVEL_INFO, "bank", "hold_refused", "job=%s code=%s text=\"%s\"",
               site_id (svc, job->rec.number, id), answer->code, answer->text);
    job->rec.hold_asked = false;
    int rc = svc_begin (svc, &err);
    if (rc == 0)
        rc = life_answer_over (svc, answer, &err);
    if (svc_commit (svc, rc, &err) != 0) {
        daemon_stop (svc->daemon, &err);
        return;
    }
    if (job->rec.state == STORE_JOB_RUNNING) /* someone started it without us: charged without a hold */
        return;
    if (svc->settings->am.action == AM_CANCEL) {
        unpaid_cancel (svc, job);
        return;
    }
    requeue (svc, job, retry_at (svc, policy->poll_interval),
             defer_next (policy, job->rec.defer_count, svc_now (svc)));
}

/* AMCFG JFACTION=NONE: the request goes on, so that what comes of it late is given back. */
static void unheld_start (struct svc *svc, struct site_job *job)
{
    struct err err = {0};
    char id[SITE_ID_MAX];
    svc_reason (job, "Launching", "the bank does not answer; the job is being launched without a hold");
    if (!job->rec.port) {
        job->rec.port = ports_choose (svc);
        ports_mark (svc, job->rec.port, true);
    }
    int rc = svc_begin (svc, &err);
    if (rc == 0)
        rc = life_hold_return (svc, job, "started without it", &err);
    if (rc == 0)
        rc = svc_job_write (svc, job, true, NULL, 0, &err);
    if (svc_commit (svc, rc, &err) != 0) {
        daemon_stop (svc->daemon, &err);
        return;
    }
    log_event (svc->log, LOG_LEVEL_WARN, "bank", "started_unheld", "job=%s",
               site_id (svc, job->rec.number, id));
    life_launch_unpaid (svc, job);
}

static void ordinary_unreachable (struct svc *svc, struct site_job *job,
                                  const struct bank_answer *answer)
{
    const struct policy *policy = svc->settings->policy;
    enum am_action action = settings_am_away (&svc->settings->am);
    struct err err = {0};
    if (action == AM_NONE && !charge_unheld_may (job))
        action = AM_DEFER; /* nobody's word could be charged */
    if (job->rec.state != STORE_JOB_STARTING)
        action = AM_WAIT;
    switch (action) {
    case AM_NONE:
        unheld_start (svc, job);
        return;
    case AM_DEFER:
        svc_reason (job, "BankUnavailable", "%s: the bank does not answer (%s)",
                    defer_reason_name (DEFER_BANK_FAILURE), answer->text);
        requeue (svc, job, retry_at (svc, policy->poll_interval),
                 defer_next (policy, job->rec.defer_count, svc_now (svc)));
        return;
    case AM_CANCEL:
        svc_reason (job, "BankUnavailable", "the bank does not answer (%s)", answer->text);
        unpaid_cancel (svc, job);
        return;
    default:
        break;
    }
    svc_reason (job, "BankUnavailable", "the bank does not answer (%s); asked again until it does",
                answer->text);
    int rc = svc_begin (svc, &err);
    if (rc == 0)
        rc = svc_job_write (svc, job, true, NULL, 0, &err);
    svc_commit (svc, rc, &err);
}

void life_on_answer (void *arg, const struct bank_answer *given)
{
    struct svc *svc = arg;
    struct site_job *job = svc_job (svc, given->job);
    struct bank_answer seen = *given, *answer = &seen;
    struct err err = {0};
    bool wanted = false;
    char why[200];
    notify_bank (svc, answer->outcome != BANK_UNREACHABLE);
    if (local_store_hold_wanted (svc->store, answer->key, &wanted, &err) != 0) {
        daemon_stop (svc->daemon, &err);
        return;
    }
    wanted = wanted && job && job->rec.hold_asked &&
             memcmp (job->rec.hold_key, answer->key, sizeof job->rec.hold_key) == 0;
    if (wanted && answer->outcome == BANK_GRANTED && *answer->qos &&
        payqos_refused (svc, job, answer, why, sizeof why)) {
        seen.outcome = BANK_REFUSED;
        seen.code = defer_reason_name (DEFER_QOS_ACCESS);
        seen.text = why;
    }
    if (!wanted) {
        if (answer->outcome != BANK_UNREACHABLE)
            answer_unwanted (svc, answer);
    } else if (job->part) {
        coalloc_on_answer (svc, job->part, answer);
    } else if (answer->outcome == BANK_UNREACHABLE) {
        ordinary_unreachable (svc, job, answer);
    } else if (answer->outcome == BANK_REFUSED) {
        ordinary_refused (svc, job, answer);
    } else if (hold_too_old (svc, job, answer)) {
        ordinary_again (svc, job, answer);
    } else {
        ordinary_granted (svc, job, answer);
    }
}

/* --- the resource manager's events -------------------------------------------------------- */

static struct site_job *job_of_event (struct svc *svc, const struct rm_event *event)
{
    char prefix[STORE_NAME_MAX];
    uint64_t number;
    if (id_parse (event->job_id, prefix, sizeof prefix, &number, NULL) != 0)
        return NULL;
    struct site_job *job = svc_job (svc, number);
    return job && job->rec.incarnation == event->incarnation ? job : NULL;
}

/* A part's nodes go from its reservation to the running job. */
static int part_occupy (struct svc *svc, struct site_job *job, time_us started, struct err *err)
{
    time_us now = svc_now (svc);
    struct job_id id = {job->rec.number};
    int rc = job->in_cluster ? 0 : svc_cluster_submit (svc, job, err);
    if (rc != 0)
        return rc;
    arena_reset (svc->call_arena);
    struct allocation a = placement_parse (svc, job->rec.placement, svc->call_arena);
    stats_settle (svc);
    rc = cluster_job_start (svc->cluster, id, &a, started, now, err);
    if (rc != 0) {
        /* A job before it is still ending (KILLGRACE): the reservation keeps the nodes for us. */
        struct err again = {0};
        if (cluster_job_remove (svc->cluster, id, now, &again) == 0)
            job->in_cluster = false;
        return rc;
    }
    if (job->part->rsv && cluster_rsv_release (svc->cluster, (struct rsv_id){id.v}, now, err) == 0)
        job->part->rsv = false;
    return 0;
}

void life_parts_settle (struct svc *svc)
{
    struct site_part *part, *next;
    HASH_ITER (hh, svc->parts, part, next)
    {
        struct site_job *job = part->job;
        struct err err = {0};
        if (job->rec.state == STORE_JOB_RUNNING && !job->in_cluster &&
            part_occupy (svc, job, job->rec.start, &err) == 0 &&
            cluster_job_running (svc->cluster, (struct job_id){job->rec.number}, job->rec.start,
                                 svc_now (svc), &err) != 0)
            log_event (svc->log, LOG_LEVEL_ERROR, "svc", "core_disagrees", "error=\"%s\"",
                       err.text);
    }
}

static void on_started (struct svc *svc, struct site_job *job, time_us started)
{
    struct err err = {0};
    struct job_id id = {job->rec.number};
    char text[SITE_ID_MAX];
    int rc = 0;
    if (job->part && job->rec.state != STORE_JOB_RUNNING)
        rc = part_occupy (svc, job, started, &err);
    if (rc == ERR_CONFLICT) {
        log_event (svc->log, LOG_LEVEL_WARN, "svc", "nodes_still_busy",
                   "job=%s error=\"%s\"", site_id (svc, job->rec.number, text), err.text);
        rc = 0; /* its reservation stands for it until then: life_parts_settle */
    }
    if (rc == 0 && job->in_cluster && job->rec.state != STORE_JOB_RUNNING)
        rc = cluster_job_running (svc->cluster, id, started, svc_now (svc), &err);
    if (rc != 0)
        log_event (svc->log, LOG_LEVEL_ERROR, "svc", "core_disagrees", "job=%s error=\"%s\"",
                   site_id (svc, job->rec.number, text), err.text);
    if (job->rec.state == STORE_JOB_RUNNING)
        return; /* known before a restart */
    job->rec.state = STORE_JOB_RUNNING;
    job->rec.start = started;
    job->rec.start_failures = 0;
    svc_reason (job, "", "%s", "");
    rc = svc_begin (svc, &err);
    if (rc == 0)
        rc = svc_job_write (svc, job, true, NULL, 0, &err);
    svc_commit (svc, rc, &err); /* on failure: told again by the runner after a restart */
    log_event (svc->log, LOG_LEVEL_INFO, "svc", "job_started", "job=%s nodes=%s",
               site_id (svc, job->rec.number, text), job->rec.placement);
    depends_happened (svc, job->rec.number);
    output_job_changed (svc, job->rec.number);
    pass_wake (svc);
}

/* The plan sent it back to the queue (life_preempt). What it used is charged; then it is another
 * incarnation, with a hold of its own when it starts again. */
static void end_preempted (struct svc *svc, struct site_job *job, const struct rm_status *status)
{
    struct err err = {0};
    char id[SITE_ID_MAX];
    bool other_qos = job->payqos;
    usage_final (svc, job, status);
    int rc = svc_begin (svc, &err);
    job->rec.start = status->start;
    job->rec.end = status->end_at > status->start ? status->end_at : status->start;
    job->rec.state = STORE_JOB_CANCELLED; /* for the charge: this incarnation did not succeed */
    halt_close (job);
    if (rc == 0)
        rc = charge_job (svc, job, job->rec.end, status->cpu_known ? status->cpu_time : 0, true, &err);
    if (rc == 0)
        rc = fairshare_file_put (svc, &err);
    if (rc == 0)
        rc = stats_job_preempted (svc, job, job->rec.start, job->rec.end, &err);
    job->rec.state = STORE_JOB_QUEUED;
    job->rec.start = job->rec.end = 0;
    job->rec.suspended_at = job->rec.halted = 0;
    job->rec.backfilled = false;
    job->rec.stop = STORE_STOP_NONE;
    job->rec.incarnation++;
    *job->rec.hold_id = 0;
    job->rec.amount = 0;
    job->charge_at = 0;
    job->cpu_used = 0;
    if (rc == 0)
        rc = payqos_drop (svc, job, &err);
    if (rc == 0)
        rc = svc_job_write (svc, job, true, NULL, 0, &err);
    if (svc_commit (svc, rc, &err) != 0) { /* found again after a restart, as in end_started */
        daemon_stop (svc->daemon, &err);
        return;
    }
    log_event (svc->log, LOG_LEVEL_INFO, "svc", "job_preempted", "job=%s incarnation=%u",
               site_id (svc, job->rec.number, id), job->rec.incarnation);
    bank_link_poke (svc->bank);
    native_bind_again (svc, job);
    stats_settle (svc);
    if (cluster_job_preempt (svc->cluster, (struct job_id){job->rec.number}, svc_now (svc),
                             &err) != 0 ||
        (other_qos && svc_cluster_modify (svc, job, &err) != 0))
        log_event (svc->log, LOG_LEVEL_ERROR, "svc", "core_disagrees", "error=\"%s\"", err.text);
    output_job_changed (svc, job->rec.number);
    pass_wake (svc);
}

static void on_ended (struct svc *svc, struct site_job *job, const struct rm_status *status)
{
    bool preempted = (job->rec.stop == STORE_STOP_PREEMPT && status->end == RM_END_CANCELLED) ||
                     status->end == RM_END_REQUEUED;
    bool violated = status->end == RM_END_TIMEOUT && !job->part && !job->rm.native &&
                    job->rec.stop != STORE_STOP_CANCEL && !(job->core_flags & JOB_NORESTART) &&
                    svc->settings->policy->wcviolation_action == WCVIOLATION_PREEMPT;
    bool lost = status->end == RM_END_NODE_FAILURE && !job->rm.native &&
                evict_requeues_lost (svc, job);
    if (lost)
        svc_reason (job, "NodeFailure", "sent back to the queue: %s", status->text);
    else if (violated && !preempted)
        svc_reason (job, "WallclockLimit", "sent back to the queue at its limit");
    preempted = preempted || violated || lost;
    if (preempted && status->start) {
        end_preempted (svc, job, status);
    } else if (preempted) {
        job->rec.stop = STORE_STOP_NONE;
        job->rec.incarnation++;
        requeue (svc, job, 0, not_deferred);
    } else if (status->start) {
        end_started (svc, job, status);
    } else if (status->end == RM_END_CANCELLED) {
        if (job->rec.stop != STORE_STOP_CANCEL)
            svc_reason (job, "Cancelled", "cancelled before it began");
        life_end_unstarted (svc, job, STORE_JOB_CANCELLED, NULL);
    } else {
        start_failed (svc, job, DEFER_RM_FAILURE, status->text);
    }
}

void life_on_rm_event (void *arg, const struct rm_event *event)
{
    struct svc *svc = arg;
    if (event->kind == RM_EVENT_NODES) {
        rmnodes_changed (svc);
        deferral_nodes_changed (svc);
        pass_wake (svc);
        return;
    }
    if (event->kind == RM_EVENT_LOADS) {
        rmnodes_loads (svc);
        return;
    }
    if (event->kind == RM_EVENT_REACH) {
        if (svc->rm.ops->fresh (svc->rm.self))
            pass_wake (svc);
        return;
    }
    if (event->kind == RM_EVENT_NATIVE) {
        native_take (svc, event->native, event->native_count);
        return;
    }
    struct site_job *job = job_of_event (svc, event);
    if (!job) {
        log_event (svc->log, LOG_LEVEL_WARN, "rm", "event_of_unknown_job", "job=%s", event->job_id);
        return;
    }
    switch (event->kind) {
    case RM_EVENT_STARTED:
        if (job->rec.state == STORE_JOB_QUEUED && event->unasked)
            native_started (svc, job, event);
        else
            on_started (svc, job, event->status->start);
        if (event->placement && *event->placement)
            native_placed (svc, job, event->placement);
        break;
    case RM_EVENT_SUSPENDED:
        native_suspended (svc, job, event->suspended);
        break;
    case RM_EVENT_HANDED:
        native_handed (svc, job, event->rm_id);
        break;
    case RM_EVENT_UNKNOWN:
        native_unknown (svc, job);
        break;
    default:
        native_submit_follow (svc, job, event->submit);
        on_ended (svc, job, event->status);
        break;
    }
}

/* --- cancel ------------------------------------------------------------------------------- */

int life_cancel (struct svc *svc, struct site_job *job, const char *code, const char *text,
                 struct err *err)
{
    char id[SITE_ID_MAX];
    bool at_rm = job->rec.state == STORE_JOB_RUNNING ||
                 (job->rec.state == STORE_JOB_STARTING && !job->rec.hold_asked);
    svc_reason (job, code, "%s", text);
    if (!at_rm && job->rm.native) { /* it waits there, too: it ends when it has ended there */
        struct job_view view;
        if (job->in_cluster &&
            cluster_job_get (svc->cluster, (struct job_id){job->rec.number}, &view, err) == 0 &&
            view.state == JOB_IDLE &&
            cluster_job_remove (svc->cluster, (struct job_id){job->rec.number}, svc_now (svc), err) == 0)
            job->in_cluster = false; /* not started meanwhile */
    } else if (!at_rm) {
        if (job->part && job->part->rec.state < STORE_PART_FIRM)
            job->part->rec.state = STORE_PART_ABORTED;
        return life_end_unstarted (svc, job, STORE_JOB_CANCELLED, err);
    }
    job->rec.stop = STORE_STOP_CANCEL;
    int rc = svc_begin (svc, err);
    if (rc == 0)
        rc = svc_job_write (svc, job, true, NULL, 0, err);
    rc = svc_commit (svc, rc, err);
    if (rc == 0)
        rc = svc->rm.ops->cancel (svc->rm.self, site_id (svc, job->rec.number, id),
                                  job->rec.incarnation, err);
    return rc == ERR_NOT_FOUND ? 0 : rc; /* it has just ended; its event is on the way */
}
