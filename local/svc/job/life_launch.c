/* What a job is handed over to the resource manager with. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "local/svc/files/staging.h"
#include "local/svc/job.h"
#include "local/svc/job/environment.h"
#include "local/svc/job/jobspec.h"
#include "local/svc/job/life.h"
#include "local/svc/nodes.h"
#include "local/svc/svc_i.h"
#include "proto/base/strbuf.h"
#include "proto/hash/sha256.h"
#include "proto/job/jobsignal.h"

void life_checkpoint_dir (const struct svc *svc, const struct site_job *job, char *out, size_t cap)
{
    char id[SITE_ID_MAX];
    snprintf (out, cap, "%s/%s.checkpoint", svc->job_dir, site_id (svc, job->rec.number, id));
}

/* Nodes in the order of the placement, tasks of all reqs on a node together. */
static void launch_hosts (struct svc *svc, struct site_job *job, struct rm_job *rm)
{
    struct arena *arena = svc->call_arena;
    struct allocation a = placement_parse (svc, job->rec.placement, arena);
    const char **host = arena_array (arena, a.count + 1, sizeof *host);
    uint32_t *tasks = arena_array (arena, a.count + 1, sizeof *tasks);
    uint32_t n = 0;
    for (uint32_t i = 0; i < a.count; i++) {
        const char *name = svc->node_by_id[a.item[i].node.v]->name;
        uint32_t at = 0;
        while (at < n && strcmp (host[at], name) != 0)
            at++;
        if (at == n)
            host[n++] = name;
        tasks[at] += a.item[i].tasks;
    }
    rm->host = host;
    rm->host_tasks = tasks;
    rm->host_count = n;
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

/* What the resource manager keeps the job's memory to: what it asked for, unless RESOURCELIMITPOLICY has another answer to more
 * than to end the job at once. */
static int64_t memory_limit_of (const struct svc *svc, const struct jobspec *spec)
{
    const struct policy_resource_limit *mem =
        &svc->settings->policy->resource_limit[RESOURCE_LIMIT_MEM];
    bool kept = mem->action == LIMIT_ALLOW || (mem->action == LIMIT_CANCEL && mem->after == 0);
    return kept ? spec->memory_mb : 0;
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

/* From its start, since the resource manager's limit may lie behind the job's own. */
static void launch_signal (const struct svc *svc, const struct site_job *job, const char *text,
                           struct rm_job *rm)
{
    struct jobsignal wanted;
    struct err err;
    if (jobsignal_parse (text, &wanted, &err) != 0 || !wanted.number)
        return;
    rm->signal = wanted.number;
    rm->signal_script = wanted.script;
    rm->signal_after = svc_job_length (svc, job) - wanted.before;
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
        .memory_mb = memory_limit_of (svc, &spec),
        .script = c->script.data,
        .script_len = c->script.len,
        .arg_count = (uint32_t)c->n_args,
        .arg = (const char *const *)c->args,
        .class_name = c->class_,
        .account = spec.job->account,
        .qos = c->qos,
        .directory = c->directory,
        .rm_id = job->rm.native ? job->rm.rm_id : NULL,
        .staged = staging_dir (job, staged, sizeof staged),
    };
    launch_hosts (svc, job, &rm);
    launch_signal (svc, job, c->signal, &rm);
    rm.stdout_name = environment_file (svc, job, &spec, &rm, c->stdout_name);
    rm.stderr_name = environment_file (svc, job, &spec, &rm, c->stderr_name);
    environment_set (svc, job, &spec, &rm);
    rc = svc->rm.ops->start (svc->rm.self, &rm, err);
    if (rc == ERR_EXISTS)
        rc = svc->rm.ops->adopt (svc->rm.self, rm.job_id, rm.incarnation, mark, err);
    if (rc == 0)
        SVC_TELL (svc, job_launched, (svc, job));
    jobspec_free (&spec);
    return rc;
}
