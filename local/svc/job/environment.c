/* environment: makes the variables and the names of files that a job is launched with. life_launch.c calls it once the
 * hosts are known. It decides nothing: all of it is in the signed job and the record. The variables of Slurm and PBS
 * are there so that scripts written for these run as they are; where Slurm itself runs the job it sets its own. */
#include "local/svc/job/environment.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "local/svc/job.h"
#include "local/svc/job/life.h"
#include "local/svc/nodes.h"
#include "proto/base/strbuf.h"
#include "proto/hash/sha256.h"

enum { VARIABLES_MAX = 80 }; /* of ours, beside the user's */

/* A job that is about to be launched. */
struct launch {
    struct svc *svc;
    const struct site_job *job;
    const struct jobspec *spec;
    const struct rm_job *rm;
    const char **env;
    uint32_t count, room, tasks, per_task;
};

static void env_printf (struct launch *l, const char *name, const char *fmt, ...)
    __attribute__ ((format (printf, 3, 4)));
static void env_printf (struct launch *l, const char *name, const char *fmt, ...)
{
    struct arena *arena = l->svc->call_arena;
    size_t len = strlen (name);
    for (uint32_t i = 0; i < l->count; i++) /* what the user sets stays */
        if (strncmp (l->env[i], name, len) == 0 && l->env[i][len] == '=')
            return;
    assert (l->count < l->room);
    va_list ap;
    va_start (ap, fmt);
    l->env[l->count++] = arena_printf (arena, "%s=%s", name, arena_vprintf (arena, fmt, ap));
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
    return strbuf_move (&b, arena);
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

static void variables_of_nui (struct launch *l)
{
    struct svc *svc = l->svc;
    env_printf (l, "NUI_JOBID", "%s", l->rm->job_id);
    env_printf (l, "NUI_GRID_JOBID", "%s", l->job->rec.grid_job_id);
    env_printf (l, "NUI_SITE", "%s", svc->site);
    env_printf (l, "NUI_COMPONENT", "%s", l->job->rec.component);
    env_printf (l, "NUI_TASKS", "%u", l->tasks);
    env_printf (l, "NUI_NODES", "%u", l->rm->host_count);
    env_printf (l, "NUI_START_TIME", "%lld",
                (long long)((l->rm->start ? l->rm->start : svc_now (svc)) / US_PER_S));
    if (l->job->rec.array)
        env_printf (l, "NUI_ARRAY_INDEX", "%u", l->job->rec.array_index);
    if (l->job->rec.incarnation)
        env_printf (l, "NUI_RESTARTS", "%u", l->job->rec.incarnation);
    if (l->job->rec.checkpoints) {
        char dir[4096];
        life_checkpoint_dir (svc, l->job, dir, sizeof dir);
        env_printf (l, "NUI_CHECKPOINT_DIR", "%s", dir);
    }
    if (l->job->rec.port)
        env_printf (l, "NUI_PORT", "%u", l->job->rec.port);
    if (!l->job->part && l->job->rec.port && l->rm->host_count > 0)
        env_printf (l, "NUI_PEERS", "%s=%s:%u", l->job->rec.component,
                    node_address (svc, l->rm->host[0]), l->job->rec.port);
    if (l->job->part) {
        Nui__Local__V1__StartRequest *start = nui__local__v1__start_request__unpack (
            NULL, l->job->part->rec.start_len, l->job->part->rec.start);
        if (start) {
            env_printf (l, "NUI_PEERS", "%s", peers_text (svc->call_arena, start));
            env_printf (l, "NUI_SECRET", "%s", secret_text (svc->call_arena, start));
        }
        nui__local__v1__start_request__free_unpacked (start, NULL);
    }
}

/* Slurm's arrays have a number: the same for all of its jobs, and made of the array's id. */
static uint32_t array_number (const struct site_job *job)
{
    return (uint32_t)(job->rec.array & INT32_MAX);
}

/* "2(x3),1": a number for each host, times factor. */
static const char *per_host (const struct launch *l, uint32_t factor)
{
    struct strbuf b = STRBUF_INIT;
    for (uint32_t i = 0, same; i < l->rm->host_count; i += same) {
        for (same = 1;
             i + same < l->rm->host_count && l->rm->host_tasks[i + same] == l->rm->host_tasks[i];)
            same++;
        strbuf_printf (&b, "%s%u", i ? "," : "", l->rm->host_tasks[i] * factor);
        if (same > 1)
            strbuf_printf (&b, "(x%u)", same);
    }
    return strbuf_move (&b, l->svc->call_arena);
}

static const char *host_list (const struct launch *l)
{
    struct strbuf b = STRBUF_INIT;
    for (uint32_t i = 0; i < l->rm->host_count; i++)
        strbuf_printf (&b, "%s%s", i ? "," : "", l->rm->host[i]);
    return strbuf_move (&b, l->svc->call_arena);
}

static const char *job_name (const struct jobspec *spec)
{
    return *spec->job->name ? spec->job->name : spec->component->name;
}

static void variables_of_slurm (struct launch *l)
{
    const struct site_job *job = l->job;
    const Nui__Common__V1__Job *signed_job = l->spec->job;
    const Nui__Common__V1__Component *c = l->spec->component;
    const struct rm_job *rm = l->rm;
    static const char *const number[] = {"SLURM_JOB_ID", "SLURM_JOBID"};
    for (size_t i = 0; i < 2; i++)
        env_printf (l, number[i], "%llu", (unsigned long long)job->rec.number);
    env_printf (l, "SLURM_JOB_NAME", "%s", job_name (l->spec));
    env_printf (l, "SLURM_JOB_USER", "%s", rm->local_account);
    env_printf (l, "SLURM_JOB_ACCOUNT", "%s", signed_job->account);
    env_printf (l, "SLURM_JOB_PARTITION", "%s", c->class_);
    env_printf (l, "SLURM_JOB_QOS", "%s", c->qos);
    env_printf (l, "SLURM_CLUSTER_NAME", "%s", l->svc->site);
    env_printf (l, "SLURM_JOB_NUM_NODES", "%u", rm->host_count);
    env_printf (l, "SLURM_NNODES", "%u", rm->host_count);
    env_printf (l, "SLURM_JOB_NODELIST", "%s", host_list (l));
    env_printf (l, "SLURM_NODELIST", "%s", host_list (l));
    env_printf (l, "SLURM_NTASKS", "%u", l->tasks);
    env_printf (l, "SLURM_NPROCS", "%u", l->tasks);
    env_printf (l, "SLURM_TASKS_PER_NODE", "%s", per_host (l, 1));
    env_printf (l, "SLURM_JOB_CPUS_PER_NODE", "%s", per_host (l, l->per_task));
    if (c->reqs[0]->tasks_per_node)
        env_printf (l, "SLURM_NTASKS_PER_NODE", "%u", c->reqs[0]->tasks_per_node);
    if (c->reqs[0]->memory_mb)
        env_printf (l, "SLURM_MEM_PER_CPU", "%lld", (long long)c->reqs[0]->memory_mb / l->per_task);
    env_printf (l, "SLURM_CPUS_PER_TASK", "%u", l->per_task);
    if (rm->host_count) {
        env_printf (l, "SLURM_CPUS_ON_NODE", "%u", rm->host_tasks[0] * l->per_task);
        env_printf (l, "SLURMD_NODENAME", "%s", rm->host[0]);
    }
    static const char *const zero[] = {"SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID"};
    for (size_t i = 0; i < sizeof zero / sizeof *zero; i++)
        env_printf (l, zero[i], "0");
    if (job->rec.incarnation)
        env_printf (l, "SLURM_RESTART_COUNT", "%u", job->rec.incarnation);
    if (!job->rec.array)
        return;
    env_printf (l, "SLURM_ARRAY_JOB_ID", "%u", array_number (job));
    env_printf (l, "SLURM_ARRAY_TASK_ID", "%u", job->rec.array_index);
    env_printf (l, "SLURM_ARRAY_TASK_COUNT", "%u", signed_job->array_count);
    env_printf (l, "SLURM_ARRAY_TASK_MIN", "%u", signed_job->array_min);
    env_printf (l, "SLURM_ARRAY_TASK_MAX", "%u", signed_job->array_max);
}

static void variables_of_pbs (struct launch *l)
{
    const struct site_job *job = l->job;
    const Nui__Common__V1__Component *c = l->spec->component;
    env_printf (l, "PBS_JOBID", "%llu.%s", (unsigned long long)job->rec.number, l->svc->site);
    env_printf (l, "PBS_JOBNAME", "%s", job_name (l->spec));
    env_printf (l, "PBS_ENVIRONMENT", "PBS_BATCH");
    env_printf (l, "PBS_SERVER", "%s", l->svc->site);
    env_printf (l, "PBS_QUEUE", "%s", c->class_);
    env_printf (l, "PBS_O_QUEUE", "%s", c->class_);
    env_printf (l, "PBS_O_LOGNAME", "%s", l->rm->local_account);
    env_printf (l, "PBS_NP", "%u", l->tasks);
    env_printf (l, "PBS_NUM_NODES", "%u", l->rm->host_count);
    env_printf (l, "PBS_NUM_PPN", "%u", l->rm->host_count ? l->rm->host_tasks[0] : 0);
    env_printf (l, "NCPUS", "%u", l->per_task);
    env_printf (l, "PBS_WALLTIME", "%lld", (long long)(c->walltime_us / US_PER_S));
    static const char *const zero[] = {"PBS_NODENUM", "PBS_TASKNUM"};
    for (size_t i = 0; i < sizeof zero / sizeof *zero; i++)
        env_printf (l, zero[i], "0");
    if (!job->rec.array)
        return;
    env_printf (l, "PBS_ARRAYID", "%u", job->rec.array_index);
    env_printf (l, "PBS_ARRAY_INDEX", "%u", job->rec.array_index);
    env_printf (l, "PBS_ARRAY_ID", "%u[].%s", array_number (job), l->svc->site);
}

/* A job of the resource manager's own has no script here. */
static bool script_has (const Nui__Common__V1__Component *c, const char *word)
{
    return c->script.len > 0 && memmem (c->script.data, c->script.len, word, strlen (word));
}

void environment_set (struct svc *svc, struct site_job *job, const struct jobspec *spec,
                      struct rm_job *rm)
{
    const Nui__Common__V1__Component *c = spec->component;
    static const char *const slurm_dir[] = {"SLURM_SUBMIT_DIR", NULL},
                             *const pbs_dir[] = {"PBS_O_WORKDIR", NULL},
                             *const pbs_nodefile[] = {"PBS_NODEFILE", NULL},
                             *const both_dir[] = {"SLURM_SUBMIT_DIR", "PBS_O_WORKDIR", NULL};
    uint32_t room = (uint32_t)c->n_env + VARIABLES_MAX;
    struct launch l = {.svc = svc,
                       .job = job,
                       .spec = spec,
                       .rm = rm,
                       .env = arena_array (svc->call_arena, room, sizeof *l.env),
                       .room = room};
    l.tasks = rm_job_tasks (rm);
    l.per_task = c->n_reqs && c->reqs[0]->procs_per_task ? c->reqs[0]->procs_per_task : 1;
    for (size_t i = 0; i < c->n_env; i++)
        if (strncmp (c->env[i], "NUI_", 4) != 0) /* ours are ours to set */
            l.env[l.count++] = c->env[i];
    variables_of_nui (&l);
    bool slurm = script_has (c, "#SBATCH") || script_has (c, "SLURM_"),
         pbs = script_has (c, "#PBS") || script_has (c, "#MSUB") || script_has (c, "PBS_");
    if (slurm)
        variables_of_slurm (&l);
    if (pbs)
        variables_of_pbs (&l);
    rm->directory_names = slurm && pbs ? both_dir : slurm ? slurm_dir : pbs ? pbs_dir : NULL;
    rm->nodefile_names = pbs ? pbs_nodefile : NULL;
    rm->env = l.env;
    rm->env_count = l.count;
}

/* What one sign stands for; NULL: itself. */
static const char *sign_text (const struct svc *svc, const struct site_job *job,
                              const struct jobspec *spec, const struct rm_job *rm, char sign)
{
    struct arena *arena = svc->call_arena;
    switch (sign) {
    case 'j':
    case 'J':
        return arena_printf (arena, "%llu", (unsigned long long)job->rec.number);
    case 'A':
        return arena_printf (arena, "%llu",
                             job->rec.array ? array_number (job)
                                            : (unsigned long long)job->rec.number);
    case 'a':
        return arena_printf (arena, "%u", job->rec.array ? job->rec.array_index : 0);
    case 'x':
        return job_name (spec);
    case 'u':
        return rm->local_account;
    case 'N':
        return rm->host_count
                   ? arena_printf (arena, "%.*s", (int)strcspn (rm->host[0], "."), rm->host[0])
                   : "";
    case 'n':
    case 't':
        return "0";
    case '%':
        return "%";
    default:
        return NULL;
    }
}

const char *environment_file (const struct svc *svc, const struct site_job *job,
                              const struct jobspec *spec, const struct rm_job *rm,
                              const char *pattern)
{
    enum { WIDTH_MAX = 10 };
    struct strbuf b = STRBUF_INIT;
    for (const char *s = pattern; *s; s++) {
        size_t digits = *s == '%' ? strspn (s + 1, "0123456789") : 0;
        const char *text = *s == '%' ? sign_text (svc, job, spec, rm, s[1 + digits]) : NULL;
        if (!text) {
            strbuf_printf (&b, "%c", *s);
            continue;
        }
        int width = digits ? atoi (s + 1) : 0;
        width = width > WIDTH_MAX ? WIDTH_MAX : width;
        for (int fill = width - (int)strlen (text); fill > 0; fill--)
            strbuf_puts (&b, "0");
        strbuf_puts (&b, text);
        s += 1 + digits;
    }
    return strbuf_move (&b, svc->call_arena);
}
