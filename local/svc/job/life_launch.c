/* What a job is handed over to the resource manager with. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "local/svc/files/staging.h"
#include "local/svc/job.h"
#include "local/svc/job/jobspec.h"
#include "local/svc/job/life.h"
#include "local/svc/nodes.h"
#include "local/svc/svc_i.h"
#include "proto/base/strbuf.h"
#include "proto/hash/sha256.h"

static void env_printf (struct arena *arena, const char **env, uint32_t *count, const char *fmt,
                        ...) __attribute__ ((format (printf, 4, 5)));
static void env_printf (struct arena *arena, const char **env, uint32_t *count, const char *fmt,
                        ...)
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
        strbuf_printf (&b, "%s%s=%s:%u", i ? " " : "", p->component, p->n_hosts ? p->hosts[0] : "",
                       p->port);
    }
    const char *text = arena_strdup (arena, strbuf_text (&b));
    strbuf_free (&b);
    return text;
}

/* NUI_SECRET: 128 bits that the parts of one job have in common, and nobody else: out of the token that the
 * metascheduler draws for each try and shows only to sites that have committed, when they are to start. The job does
 * not get the token itself, which is between the metascheduler and the sites. */
static const char *secret_text (struct arena *arena, const Nui__Local__V1__StartRequest *start)
{
    enum { BYTES = 16 };
    char *text = arena_alloc (arena, 2 * BYTES + 1);
    uint8_t sum[SHA256_BYTES];
    EVP_MD_CTX *hash = sha256_begin ();
    sha256_add (hash, "nui secret", strlen ("nui secret"));
    sha256_add (hash, start->start_token.data, start->start_token.len);
    sha256_end (hash, sum);
    for (size_t i = 0; i < BYTES; i++)
        snprintf (text + 2 * i, 3, "%02x", sum[i]);
    return text;
}

void life_checkpoint_dir (const struct svc *svc, const struct site_job *job, char *out, size_t cap)
{
    char id[SITE_ID_MAX];
    snprintf (out, cap, "%s/%s.checkpoint", svc->job_dir, site_id (svc, job->rec.number, id));
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
        life_checkpoint_dir (svc, job, dir, sizeof dir);
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
        if (start) {
            env_printf (arena, env, &n, "NUI_PEERS=%s", peers_text (arena, start));
            env_printf (arena, env, &n, "NUI_SECRET=%s", secret_text (arena, start));
        }
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
    return more < INT64_MAX / 4 ? svc_job_length (svc, job) + more : INT64_MAX / 2;
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

/* What does not change in the life of a job, and is another's never: by that it is known what belongs to it. */
void life_mark (const struct svc *svc, const struct store_job *rec, char out[RM_MARK_MAX])
{
    char text[256];
    uint8_t sum[SHA256_BYTES];
    EVP_MD_CTX *hash = sha256_begin ();
    snprintf (text, sizeof text, "%llu %lld %u", (unsigned long long)rec->number,
              (long long)rec->submit, rec->attempt);
    const char *const part[] = {"nui job",
                                svc->site,
                                text,
                                rec->grid_job_id,
                                rec->meta,
                                rec->component,
                                rec->submitter ? rec->submitter : "",
                                rec->local_account};
    for (size_t i = 0; i < sizeof part / sizeof *part; i++)
        sha256_add_part (hash, part[i], strlen (part[i]));
    sha256_add_part (hash, rec->transaction, sizeof rec->transaction);
    sha256_end (hash, sum);
    static_assert (2 * SHA256_BYTES + 1 == RM_MARK_MAX, "in hexadecimal");
    for (size_t i = 0; i < sizeof sum; i++)
        snprintf (out + 2 * i, 3, "%02x", sum[i]);
}

int life_launch (struct svc *svc, struct site_job *job, struct err *err)
{
    if (svc->rm.ops->simulated)
        return launch_simulated (svc, job, err);
    struct jobspec spec;
    char id[SITE_ID_MAX], mark[RM_MARK_MAX], staged[128];
    int rc = jobspec_load (svc, &job->rec, &spec, err);
    if (rc != 0)
        return rc;
    arena_reset (svc->call_arena);
    life_mark (svc, &job->rec, mark);
    const Nui__Common__V1__Component *c = spec.component;
    struct rm_job rm = {
        .job_id = site_id (svc, job->rec.number, id),
        .incarnation = job->rec.incarnation,
        .mark = mark,
        .hold = job->rec.hold_id,
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
        .staged = staging_dir (job, staged, sizeof staged),
    };
    uint32_t tasks = launch_hosts (svc, job, &rm);
    launch_env (svc, job, &spec, &rm, tasks);
    rc = svc->rm.ops->start (svc->rm.self, &rm, err);
    if (rc == ERR_EXISTS)
        rc = svc->rm.ops->adopt (svc->rm.self, rm.job_id, rm.incarnation, mark, err);
    if (rc == 0)
        SVC_TELL (svc, job_launched, (svc, job));
    jobspec_free (&spec);
    return rc;
}
