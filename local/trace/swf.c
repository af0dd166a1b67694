/* swf: the Standard Workload Format, version 2.2 (18 fields; ';' begins a comment; -1 is
 * "unknown"). */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "local/trace/workload_i.h"

enum swf_field {
    SWF_NUMBER,
    SWF_SUBMIT,
    SWF_WAIT,
    SWF_RUN,
    SWF_PROCS_USED,
    SWF_CPU, /* average over the processors that it had */
    SWF_PROCS = 7,
    SWF_LIMIT,
    SWF_MEMORY, /* KB for each processor */
    SWF_USER = 11,
    SWF_GROUP,
    SWF_QUEUE = 14,
};

void swf_header (struct workload_reader *r, const char *line)
{
    const char *at = line + 1;
    while (*at == ' ' || *at == '\t' || *at == ';')
        at++;
    if (strncmp (at, "MaxProcs:", 9) == 0) {
        int64_t procs = strtoll (at + 9, NULL, 10);
        if (procs > 0)
            r->workload->header_procs = procs;
    }
}

/* "u12", "g3", "q1": the log's numbers with a letter, as names of credentials. */
static uint32_t cred_of (struct workload *w, enum cred_kind kind, char letter, int64_t number_us)
{
    char name[24];
    if (number_us < 0)
        return CRED_NONE;
    snprintf (name, sizeof name, "%c%lld", letter, (long long)(number_us / US_PER_S));
    return strtab_intern (w->names->tab[kind], name);
}

/* Average CPU time is given per allocated processor, over the whole run. */
static void used_of (struct workload_job *job, const int64_t value[SWF_FIELDS])
{
    int64_t had = value[SWF_PROCS_USED] > 0 ? value[SWF_PROCS_USED] : value[SWF_PROCS];
    if (value[SWF_CPU] < 0 || value[SWF_RUN] <= 0)
        return;
    workload_used (job, (double)value[SWF_CPU] * (double)(had / US_PER_S) / (double)value[SWF_RUN]);
}

int swf_line (struct workload_reader *r, char *line, struct err *err)
{
    char *field[SWF_FIELDS];
    int64_t value[SWF_FIELDS];
    if (!workload_place (r))
        return 0;
    uint32_t count = fields_split (line, field, SWF_FIELDS);
    if (count != SWF_FIELDS)
        return line_error (r, err, "%u fields, a job of the Standard Workload Format has %d", count,
                           SWF_FIELDS);
    for (int i = 0; i < SWF_FIELDS; i++) {
        if (!seconds_parse (field[i], &value[i]))
            return line_error (r, err, "field %d, '%.40s', is no number", i + 1, field[i]);
    }
    if (value[SWF_NUMBER] < US_PER_S)
        return line_error (r, err, "job number '%.40s' is not 1 or more", field[SWF_NUMBER]);

    struct workload *w = r->workload;
    int64_t procs = value[SWF_PROCS] > 0 ? value[SWF_PROCS] : value[SWF_PROCS_USED];
    int64_t limit = value[SWF_LIMIT] >= 0 ? value[SWF_LIMIT] : value[SWF_RUN];
    if (value[SWF_RUN] < 0)
        workload_skip (r, SKIP_NO_RUN_TIME);
    else if (procs <= 0)
        workload_skip (r, SKIP_NO_PROCESSORS);
    else if (value[SWF_SUBMIT] < 0)
        workload_skip (r, SKIP_NO_SUBMIT_TIME);
    else if (procs / US_PER_S > TASKS_MAX)
        workload_skip (r, SKIP_TOO_LARGE);
    else {
        struct workload_job job = {
            .number = (uint64_t)(value[SWF_NUMBER] / US_PER_S),
            .submit = value[SWF_SUBMIT],
            .run = value[SWF_RUN] < limit ? value[SWF_RUN] : limit,
            .began = value[SWF_WAIT] >= 0 ? value[SWF_SUBMIT] + value[SWF_WAIT] : TIME_US_NONE,
            /* A limit of nothing still needs a moment to be placed in. */
            .limit = limit > 0 ? limit : 1,
            .procs = (uint32_t)(procs / US_PER_S),
        };
        job.cred[CRED_USER] = cred_of (w, CRED_USER, 'u', value[SWF_USER]);
        job.cred[CRED_GROUP] = cred_of (w, CRED_GROUP, 'g', value[SWF_GROUP]);
        job.cred[CRED_CLASS] = cred_of (w, CRED_CLASS, 'q', value[SWF_QUEUE]);
        job.cred[CRED_ACCOUNT] = CRED_NONE;
        job.cred[CRED_QOS] = CRED_NONE;
        job.req.tasks = job.procs;
        job.req.task.v[RES_PROCS] = 1;
        int64_t memory_kb = value[SWF_MEMORY] / US_PER_S;
        if (memory_kb > 0)
            job.req.task.v[RES_MEM_MB] =
                memory_kb > (INT64_C (1) << 40) ? INT32_MAX : (int32_t)((memory_kb + 1023) / 1024);
        used_of (&job, value);
        workload_add (r, &job);
    }
    return 0;
}
