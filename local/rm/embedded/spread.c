/* spread: divides a job among the machines that its nodes are. rm_embedded.c writes it down with the job, and reads it again. */
#include "local/rm/embedded/spread.h"

#include <openssl/rand.h>
#include <stdlib.h>
#include <string.h>

#include "local/rm/jobdir.h"
#include "proto/base/mem.h"
#include "proto/rpc/tasklink.h"

void spread_order (const struct agents *agents, const struct rm_job *job, struct spread *out)
{
    uint32_t n = 0;
    out->host = mem_zero (job->host_count + 1, sizeof *out->host);
    out->tasks = mem_zero (job->host_count + 1, sizeof *out->tasks);
    for (int away = 0; away < 2; away++)
        for (uint32_t i = 0; i < job->host_count; i++)
            if (agents_have (agents, job->host[i]) == (away == 1)) {
                out->host[n] = job->host[i];
                out->tasks[n++] = job->host_tasks[i];
            }
}

void spread_free (struct spread *spread)
{
    free (spread->host);
    free (spread->tasks);
}

/* On the script's machine: the first one, and what is no other host where the first is none. */
static bool with_script (const struct agents *agents, const struct rm_job *job, uint32_t i)
{
    return i == 0 || !agents_have (agents, job->host[i]);
}

static int64_t share_of (int64_t whole, uint32_t tasks, uint32_t all)
{
    return all ? (whole * tasks + all - 1) / all : whole;
}

void spread_share (const struct agents *agents, const struct rm_job *job, uint32_t *procs_out,
                   int64_t *memory_mb_out)
{
    uint32_t tasks = 0, all = rm_job_tasks (job);
    for (uint32_t i = 0; i < job->host_count; i++)
        if (with_script (agents, job, i))
            tasks += job->host_tasks[i];
    *procs_out = (uint32_t)share_of (job->procs, tasks, all);
    *memory_mb_out = share_of (job->memory_mb, tasks, all);
}

int spread_spec (const struct agents *agents, const struct rm_job *job, const char *parent,
                 const char *key, struct strbuf *spec, struct err *err)
{
    uint8_t secret[TASKLINK_SECRET];
    uint32_t parts = 0, all = rm_job_tasks (job);
    if (job->host_count > 0 && agents_have (agents, job->host[0]))
        jobdir_spec_add (spec, "agent", job->host[0]);
    for (uint32_t i = 0; i < job->host_count; i++) {
        if (with_script (agents, job, i))
            continue;
        strbuf_printf (spec, "part=%s %lld %lld", job->host[i],
                       (long long)share_of (job->procs, job->host_tasks[i], all),
                       (long long)share_of (job->memory_mb, job->host_tasks[i], all));
        strbuf_append (spec, "", 1);
        parts++;
    }
    if (parts == 0)
        return 0;
    if (RAND_bytes (secret, sizeof secret) != 1)
        return err_set (err, ERR_IO, "job %s: no random bytes", job->job_id);
    strbuf_puts (spec, "env=NUI_TASKS_SECRET=");
    for (size_t i = 0; i < sizeof secret; i++)
        strbuf_printf (spec, "%02x", secret[i]);
    strbuf_append (spec, "", 1);
    strbuf_printf (spec, "env=NUI_TASKS_FILE=%s/%s/work/.tasks", parent, key);
    strbuf_append (spec, "", 1);
    return 0;
}

int spread_parts_each (const char *spec, size_t len,
                       int (*fn) (void *arg, const struct agents_part *part), void *arg)
{
    int rc = 0;
    for (const char *p = spec; rc == 0 && p < spec + len; p += strlen (p) + 1) {
        char node[256];
        long long memory;
        struct agents_part part = {.node = node};
        if (sscanf (p, "part=%255s %u %lld", node, &part.procs, &memory) != 3)
            continue;
        part.memory_mb = memory;
        rc = fn (arg, &part);
    }
    return rc;
}
