/* mauitrace_write: a simulated workload in Maui's own trace format (44 fields, VERSION 230), so that a result can be the
 * input of another simulation, ours or Maui's. Called by `nui sim`; local/trace/mauitrace.c reads it. */
#include <stdio.h>
#include <string.h>

#include "local/sim/events.h"

static const char *name_or_none (const struct workload *w, enum cred_kind kind, uint32_t id)
{
    return cred_name (w->names, kind, id);
}

static long long whole_s (time_us t)
{
    return (long long)(t / US_PER_S);
}

static void features_write (struct strbuf *out, const struct workload *w, const struct req *req)
{
    bool any = false;
    for (uint32_t i = 0; i < w->constraint_count; i++) {
        if ((req->features.word[i / 64] >> (i % 64)) & 1 && !strpbrk (w->constraint[i], ":<>=")) {
            strbuf_printf (out, "[%s]", w->constraint[i]);
            any = true;
        }
    }
    if (!any)
        strbuf_puts (out, "[NONE]");
}

/* The constraint of a job that begins with prefix, without it; "[NONE]". */
static const char *constraint_of (const struct workload *w, const struct req *req,
                                  const char *prefix)
{
    for (uint32_t i = 0; i < w->constraint_count; i++) {
        if ((req->features.word[i / 64] >> (i % 64)) & 1 &&
            strncmp (w->constraint[i], prefix, strlen (prefix)) == 0)
            return w->constraint[i] + strlen (prefix);
    }
    return "[NONE]";
}

static void amount_write (struct strbuf *out, const struct workload *w, const struct req *req,
                          const char *what)
{
    static const char *const cmp[] = {">=", "<=", "==", ">", "<"};
    char prefix[16];
    for (size_t i = 0; i < sizeof cmp / sizeof cmp[0]; i++) {
        snprintf (prefix, sizeof prefix, "%s%s", what, cmp[i]);
        const char *amount = constraint_of (w, req, prefix);
        if (strcmp (amount, "[NONE]") != 0) {
            strbuf_printf (out, "%s %sM ", cmp[i], amount);
            return;
        }
    }
    strbuf_puts (out, ">= 0M ");
}

static double procs_used (const struct workload_job *j)
{
    return j->used_known ? (double)j->used_micro * 1e-6 : j->procs;
}

static void job_write (struct strbuf *out, const struct workload *w, const struct workload_job *j,
                       const struct engine_result *res, uint32_t qos)
{
    bool ran = res->start != TIME_US_NONE;
    long long start = ran ? whole_s (res->start) : 0, end = ran ? whole_s (res->end) : 0;
    if (j->name)
        strbuf_puts (out, j->name);
    else
        strbuf_printf (out, "%llu", (unsigned long long)j->number);
    strbuf_printf (out, " 0 %u %s %s %lld %s ", j->req.tasks,
                   name_or_none (w, CRED_USER, j->cred[CRED_USER]),
                   name_or_none (w, CRED_GROUP, j->cred[CRED_GROUP]), whole_s (j->limit),
                   ran ? "Completed" : "NotRun");
    if (j->cred[CRED_CLASS] == CRED_NONE)
        strbuf_puts (out, "[NONE]");
    else
        strbuf_printf (out, "[%s:1]", name_or_none (w, CRED_CLASS, j->cred[CRED_CLASS]));
    strbuf_printf (out, " %lld %lld %lld %lld %s %s %s ", whole_s (j->submit), start, start, end,
                   constraint_of (w, &j->req, "net:"), constraint_of (w, &j->req, "arch:"),
                   constraint_of (w, &j->req, "opsys:"));
    amount_write (out, w, &j->req, "mem");
    amount_write (out, w, &j->req, "disk");
    features_write (out, w, &j->req);
    strbuf_printf (out, " %lld %u %u %s:%s [NONE] %s [NONE] [NONE] 0 %.2f DEFAULT",
                   whole_s (j->submit), j->req.tasks, j->req.tasks_per_node,
                   name_or_none (w, CRED_QOS, j->cred[CRED_QOS]), name_or_none (w, CRED_QOS, qos),
                   name_or_none (w, CRED_ACCOUNT, j->cred[CRED_ACCOUNT]),
                   ran ? procs_used (j) * (double)(end - start) : 0.0);
    strbuf_printf (out, " %d %dM %dM %dM 0 %lld", j->req.task.v[RES_PROCS],
                   j->req.task.v[RES_MEM_MB], j->req.task.v[RES_DISK_MB],
                   j->req.task.v[RES_SWAP_MB],
                   j->deadline ? whole_s (j->deadline) : (long long)MAUITRACE_NO_END_S);
    strbuf_puts (out, " [NONE] [DEFAULT] [NONE] [NONE] [DEFAULT] [NONE] [NONE]\n");
}

void mauitrace_write (struct strbuf *out, const struct workload *workload,
                      const struct engine_result *result, const uint32_t *qos)
{
    strbuf_puts (out, "VERSION 230\n");
    for (uint64_t i = 0; i < workload->count; i++)
        job_write (out, workload, &workload->job[i], &result[i], qos[i]);
}
