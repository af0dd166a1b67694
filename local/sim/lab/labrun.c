/* labrun: makes the jobs of one run, replays them, keeps a record per job, and spells the record
 * as bytes for a file. pool.c calls it in a process of its own. Whatever decides a run's outcome
 * must be part of its key, or an old file would stand for a new run. */
#include "local/sim/lab/labrun.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "local/conf/policyconf.h"
#include "local/sim/lab/agents.h"
#include "local/sim/lab/pbsfifo.h"
#include "local/sim/simrun.h"
#include "proto/base/clock.h"
#include "proto/base/fnv.h"
#include "proto/base/mem.h"

static int config_read (const struct lab_run *run, struct policy **policy_out, struct err *err)
{
    struct policy *policy = NULL;
    if (run->config_path)
        return policy_conf_load (run->config_path, run->names, policy_out, NULL, err);
    struct conf *conf = conf_parse (run->config, strlen (run->config), run->label, err);
    if (!conf)
        return err->code;
    int rc = policy_conf_read (conf, run->names, &policy, err);
    if (!rc)
        rc = policy_conf_known (conf, err);
    if (!rc)
        rc = conf_finish (conf, err);
    conf_destroy (conf);
    if (rc)
        policy_destroy (policy);
    else
        *policy_out = policy;
    return rc;
}

int lab_run_check (const struct lab_run *run, struct err *err)
{
    struct policy *policy;
    int rc = config_read (run, &policy, err);
    if (!rc)
        policy_destroy (policy);
    return rc;
}

/* --- key ------------------------------------------------------------------------------------ */

static uint64_t mixed_number (uint64_t hash, uint64_t value)
{
    return fnv_bytes (hash, &value, sizeof value);
}

static uint64_t workload_mixed (uint64_t hash, const struct workload *w)
{
    for (uint64_t i = 0; i < w->count; i++) {
        const struct workload_job *j = &w->job[i];
        const uint64_t value[] = {j->number,          (uint64_t)j->submit, (uint64_t)j->run,
                                  (uint64_t)j->began, (uint64_t)j->limit,  j->procs};
        hash = fnv_bytes (hash, value, sizeof value);
        hash = fnv_bytes (hash, &j->req.task, sizeof j->req.task);
        hash = fnv_bytes (hash, &j->req.features, sizeof j->req.features);
        for (int k = 0; k < CRED_KINDS; k++) {
            const char *name = cred_name (w->names, (enum cred_kind)k, j->cred[k]);
            hash = fnv_bytes (hash, name, strlen (name) + 1);
        }
    }
    return hash;
}

uint64_t lab_run_key (const struct lab_run *run)
{
    uint64_t hash = UINT64_C (0xCBF29CE484222325);
    struct stat self;
    if (stat ("/proc/self/exe", &self) == 0) { /* another build may decide otherwise */
        hash = mixed_number (hash, (uint64_t)self.st_size);
        hash = mixed_number (hash, (uint64_t)self.st_mtim.tv_sec);
        hash = mixed_number (hash, (uint64_t)self.st_mtim.tv_nsec);
    }
    hash = fnv_bytes (hash, run->config, strlen (run->config) + 1);
    hash = mixed_number (hash, run->seed);
    hash = mixed_number (hash, run->scheduler);
    hash = mixed_number (hash, (uint64_t)run->starving);
    for (uint32_t g = 0; g < run->machine->group_count; g++) {
        hash = fnv_bytes (hash, &run->machine->group[g].spec.configured, sizeof (struct resources));
        hash = fnv_bytes (hash, &run->machine->group[g].spec.features, sizeof (struct features));
        hash = mixed_number (hash, run->machine->group[g].copies);
    }
    if (run->agents)
        hash = mixed_number (hash, agents_key (run->agents));
    return run->workload ? workload_mixed (hash, run->workload) : hash;
}

uint64_t lab_run_size (const struct lab_run *run)
{
    return run->agents ? AGENTS_JOBS_TYPICAL : run->workload->count;
}

/* --- simulation ----------------------------------------------------------------------------- */

struct simulation {
    const struct lab_run *run;
    const struct policy *policy;
    struct engine_job *job;
    uint64_t count;
    struct engine_result *result;
    struct engine_summary summary;
    struct pbsfifo fifo;
    lab_run_progress *progress;
    void *self;
};

static void observe (void *self, const struct engine_sample *sample)
{
    struct simulation *s = self;
    if (s->progress)
        s->progress (s->self, sample->jobs_done);
}

static void jobs_make (struct simulation *s, const struct workload *w)
{
    s->count = w->count;
    s->job = mem_zero (w->count + 1, sizeof s->job[0]);
    for (uint64_t i = 0; i < w->count; i++) {
        const struct workload_job *from = &w->job[i];
        struct engine_job *job = &s->job[i];
        bool denied;
        *job = (struct engine_job){.number = from->number,
                                   .submit = from->submit,
                                   .limit = from->limit,
                                   .run = from->run,
                                   .procs = from->procs,
                                   .req_count = 1,
                                   .req = &from->req};
        memcpy (job->cred, from->cred, sizeof job->cred);
        job->cred[CRED_QOS] = policy_qos_resolve (s->policy, from->cred, &denied);
    }
}

static void result_take (const struct simulation *s, const struct agents *agents,
                         struct lab_result *out)
{
    out->count = agents ? agents_count (agents) : s->count;
    out->job = mem_zero (out->count + 1, sizeof out->job[0]);
    out->passes = s->summary.passes;
    for (uint64_t i = 0; i < out->count; i++) {
        const struct engine_job *j = &s->job[i];
        const struct engine_result *r = &s->result[i];
        bool ran = r->start != TIME_US_NONE && r->end != TIME_US_NONE;
        duration_us run = j->run < j->limit ? j->run : j->limit;
        out->job[i] = (struct lab_job){.submit = (double)j->submit / US_PER_S,
                                       .start = ran ? (double)r->start / US_PER_S : -1,
                                       .end = ran ? (double)r->end / US_PER_S : -1,
                                       .limit = (double)j->limit / US_PER_S,
                                       .run = (double)run / US_PER_S,
                                       .number = (uint32_t)j->number,
                                       .procs = j->procs,
                                       .user = j->cred[CRED_USER],
                                       .account = j->cred[CRED_ACCOUNT],
                                       .backfilled = r->backfilled,
                                       .agent = agents ? agents_of (agents, i) : 0};
    }
}

static int engine_go (struct simulation *s, struct agents *agents, struct err *err)
{
    const struct machine *m = s->run->machine;
    struct node_spec *node = mem_zero (m->group_count, sizeof node[0]);
    uint32_t *copies = mem_zero (m->group_count, sizeof copies[0]);
    for (uint32_t g = 0; g < m->group_count; g++) {
        node[g] = m->group[g].spec;
        copies[g] = m->group[g].copies;
    }
    s->fifo.starving = s->run->starving;
    struct engine_scheduler scheduler = pbsfifo_scheduler (&s->fifo);
    struct engine_source source = agents ? agents_source (agents) : (struct engine_source){0};
    struct engine_setup setup = {.policy = s->policy,
                                 .scheduler = s->run->scheduler == LAB_PBSFIFO ? &scheduler : NULL,
                                 .source = agents ? &source : NULL,
                                 .node = node,
                                 .node_copies = copies,
                                 .node_group_count = m->group_count,
                                 .gres_kinds = m->gres_kinds,
                                 .seed = s->run->seed,
                                 .hooks = {.self = s, .sample = observe}};
    int rc = engine_run (&setup, s->job, s->count, s->result, &s->summary, err);
    free (node);
    free (copies);
    return rc;
}

/* Jobs whose start the log does not have, or has before their submission, count as never started. */
static void log_take (const struct lab_run *run, struct lab_result *out)
{
    const struct workload *w = run->workload;
    out->count = w->count;
    out->job = mem_zero (w->count + 1, sizeof out->job[0]);
    for (uint64_t i = 0; i < w->count; i++) {
        const struct workload_job *j = &w->job[i];
        bool ran = j->began != TIME_US_NONE && j->began >= j->submit;
        duration_us length = j->run < j->limit ? j->run : j->limit;
        out->job[i] = (struct lab_job){.submit = (double)j->submit / US_PER_S,
                                       .start = ran ? (double)j->began / US_PER_S : -1,
                                       .end = ran ? (double)(j->began + length) / US_PER_S : -1,
                                       .limit = (double)j->limit / US_PER_S,
                                       .run = (double)length / US_PER_S,
                                       .number = (uint32_t)j->number,
                                       .procs = j->procs,
                                       .user = j->cred[CRED_USER],
                                       .account = j->cred[CRED_ACCOUNT]};
    }
}

int lab_run_simulate (const struct lab_run *run, lab_run_progress *progress, void *self,
                      struct lab_result *out, struct err *err)
{
    struct policy *policy = NULL;
    struct simulation s = {.run = run, .progress = progress, .self = self};
    struct agents *agents = NULL;
    duration_us begun = clock_monotonic_us ();
    memset (out, 0, sizeof *out);
    if (run->scheduler == LAB_LOG) {
        log_take (run, out);
        return 0;
    }
    int rc = config_read (run, &policy, err);
    if (rc)
        return rc;
    s.policy = policy;
    if (run->agents) {
        agents = agents_create (run->agents, run->names, run->machine->procs);
        s.job = agents_jobs (agents, &s.count);
    } else {
        jobs_make (&s, run->workload);
    }
    s.result = mem_zero (s.count + 1, sizeof s.result[0]);
    rc = engine_go (&s, agents, err);
    if (!rc) {
        result_take (&s, agents, out);
        out->wall_s = (double)(clock_monotonic_us () - begun) / US_PER_S;
    }
    if (!agents)
        free (s.job);
    agents_destroy (agents);
    free (s.result);
    policy_destroy (policy);
    return rc;
}

/* --- bytes ---------------------------------------------------------------------------------- */

struct head {
    char magic[8];
    uint64_t key, count, passes;
    double wall_s;
    uint64_t sum;
};

static const char magic[8] = "nuilab1";

void lab_result_write (const struct lab_result *r, uint64_t key, struct strbuf *out)
{
    struct head head = {.key = key, .count = r->count, .passes = r->passes, .wall_s = r->wall_s};
    size_t bytes = r->count * sizeof r->job[0];
    memcpy (head.magic, magic, sizeof magic);
    head.sum = fnv_bytes (key, r->job, bytes);
    strbuf_append (out, &head, sizeof head);
    strbuf_append (out, r->job, bytes);
}

int lab_result_read (const void *bytes, size_t len, uint64_t key, struct lab_result *out,
                     struct err *err)
{
    struct head head;
    if (len < sizeof head)
        return err_set (err, ERR_INVALID, "the result of a simulation ends after %zu bytes", len);
    memcpy (&head, bytes, sizeof head);
    if (memcmp (head.magic, magic, sizeof magic) != 0 || head.key != key)
        return err_set (err, ERR_INVALID, "the result of another simulation");
    size_t left = len - sizeof head;
    if (head.count > left / sizeof out->job[0] || left != head.count * sizeof out->job[0])
        return err_set (err, ERR_INVALID, "the result of a simulation is not whole");
    const char *body = (const char *)bytes + sizeof head;
    if (fnv_bytes (key, body, left) != head.sum)
        return err_set (err, ERR_INVALID, "the result of a simulation is damaged");
    memset (out, 0, sizeof *out);
    out->count = head.count;
    out->passes = head.passes;
    out->wall_s = head.wall_s;
    out->job = mem_alloc (left + 1);
    memcpy (out->job, body, left);
    return 0;
}

void lab_result_free (struct lab_result *r)
{
    free (r->job);
    memset (r, 0, sizeof *r);
}
