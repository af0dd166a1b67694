/* Fairshare: recorded usage in the store, by names (numbers differ from run to run).
 *
 * Written at every poll and with the end of a job, so that a kill -9 loses at most a second of what
 * ended jobs used; running jobs are charged from the last record on when they are found again. Under
 * FSPOLICY UTILIZEDPS it also holds how far each running job's use was measured. */

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "local/svc/job.h"
#include "local/svc/memory/memory.h"
#include "local/svc/svc_i.h"
#include "proto/base/clock.h"
#include "proto/base/strbuf.h"

/* A job's end is seldom alone: what a whole second of ends changed is written once. */
static const duration_us put_gap = US_PER_S;

/* How far each running job's use is measured, so that a measurement after a restart corrects what was
 * guessed before it: "job NUMBER INCARNATION CPU_US AT_US USED_MICRO". */
static void jobs_put (struct svc *svc, struct strbuf *b)
{
    static const enum job_state states[] = {JOB_STARTING, JOB_RUNNING};
    for (size_t s = 0; s < 2; s++) {
        uint32_t count = cluster_job_count (svc->cluster, states[s]);
        struct job_id *id = calloc (count + 1, sizeof *id);
        assert (id);
        cluster_job_list (svc->cluster, states[s], id, count);
        for (uint32_t i = 0; i < count; i++) {
            const struct site_job *job = svc_job (svc, id[i].v);
            struct job_view view;
            if (!job || cluster_job_get (svc->cluster, id[i], &view, NULL) != 0 ||
                view.usage.at == TIME_US_NONE)
                continue;
            strbuf_printf (b, "job %llu %u %lld %lld %lld\n", (unsigned long long)id[i].v,
                           job->rec.incarnation, (long long)view.usage.cpu_time,
                           (long long)view.usage.at, (long long)view.usage.used_micro);
        }
        free (id);
    }
}

static int put (struct svc *svc, time_us now, struct err *err)
{
    struct fairshare_state state;
    struct strbuf b = STRBUF_INIT;
    struct arena *arena = arena_create (0);
    struct fairshare *fs = cluster_fairshare (svc->cluster);
    fairshare_advance (fs, now);
    fairshare_export (fs, arena, &state);
    strbuf_printf (&b, "%lld %lld %u\n", (long long)state.updated_at, (long long)state.interval,
                   state.depth);
    for (uint32_t i = 0; i < state.row_count; i++) {
        const struct fairshare_row *row = &state.row[i];
        bool total = row->kind == CRED_KINDS;
        strbuf_printf (&b, "%d %s", (int)row->kind,
                       total ? "-" : cred_name (svc->names, row->kind, row->id));
        for (uint32_t w = 0; w < state.depth; w++)
            strbuf_printf (&b, " %a", row->window[w]);
        strbuf_putc (&b, '\n');
    }
    if (svc->settings->policy->fs_policy == FS_UTILIZEDPS)
        jobs_put (svc, &b);
    int rc = local_store_blob_put (svc->store, "fairshare", b.data, b.len, err);
    strbuf_free (&b);
    arena_destroy (arena);
    if (rc == 0)
        svc->fairshare_put_at = clock_monotonic_us ();
    return rc;
}

/* Nothing without fairshare, or within a second of the last. */
static int fairshare_job_ends (struct svc *svc, struct site_job *job, const struct job_end *end,
                               struct err *err)
{
    (void)job;
    if (end->how == JOB_NEVER_RAN || svc->settings->policy->fs_policy == FS_NONE ||
        clock_monotonic_us () - svc->fairshare_put_at < put_gap)
        return 0;
    return put (svc, svc_now (svc), err);
}

void fairshare_file_save (struct svc *svc)
{
    struct err err = {0};
    int rc = svc_begin (svc, &err);
    if (rc == 0)
        rc = put (svc, svc_now (svc), &err);
    if (svc_commit (svc, rc, &err) != 0)
        log_event (svc->log, LOG_LEVEL_ERROR, "svc", "fairshare_not_saved", "error=\"%s\"",
                   err.text);
}

static int row_parse (struct svc *svc, char *line, uint32_t depth, struct fairshare_row *row)
{
    char *save = NULL;
    char *kind = strtok_r (line, " ", &save);
    char *name = strtok_r (NULL, " ", &save);
    if (!kind || !name || atoi (kind) < 0 || atoi (kind) > CRED_KINDS)
        return -1;
    *row = (struct fairshare_row){.kind = (enum cred_kind)atoi (kind)};
    if (row->kind != CRED_KINDS)
        row->id = strtab_intern (svc->names->tab[row->kind], name);
    for (uint32_t w = 0; w < depth; w++) {
        char *value = strtok_r (NULL, " ", &save);
        if (!value)
            return -1;
        row->window[w] = strtod (value, NULL);
    }
    return 0;
}

/* Running jobs go on where the record has them. One that it does not have began after it; or the use
 * of processors did not count then, and does from the first measurement on. */
static void jobs_begin (struct svc *svc, time_us updated)
{
    struct site_job *job, *next;
    HASH_ITER (hh, svc->jobs, job, next) {
        bool later = job->rec.start == 0 || job->rec.start >= updated;
        struct job_usage usage = {0, later ? updated : TIME_US_NONE, -1};
        if (job->in_cluster)
            (void)cluster_job_usage_restore (svc->cluster, (struct job_id){job->rec.number}, &usage,
                                             NULL); /* ERR_CONFLICT: it waits */
    }
}

static bool job_parse (struct svc *svc, const char *line)
{
    unsigned long long number;
    unsigned incarnation;
    long long cpu_time, at, used;
    if (sscanf (line, "job %llu %u %lld %lld %lld", &number, &incarnation, &cpu_time, &at, &used) !=
            5 ||
        cpu_time < 0 || used < -1)
        return false;
    const struct site_job *job = svc_job (svc, number);
    if (job && job->in_cluster && job->rec.incarnation == incarnation) {
        struct job_usage usage = {cpu_time, at, used};
        (void)cluster_job_usage_restore (svc->cluster, (struct job_id){number}, &usage, NULL);
    }
    return true;
}

void fairshare_file_load (struct svc *svc)
{
    void *bytes = NULL;
    size_t len = 0;
    struct err err = {0};
    long long updated = 0, interval = 0;
    unsigned depth = 0;
    char *save = NULL;
    if (local_store_blob_get (svc->store, "fairshare", &bytes, &len, &err) != 0)
        return; /* the first start */
    uint32_t lines = 0;
    for (size_t i = 0; i < len; i++)
        lines += ((char *)bytes)[i] == '\n';
    struct fairshare_row *rows = calloc (lines + 1, sizeof *rows);
    char *line = strtok_r (bytes, "\n", &save);
    struct fairshare_state state = {.row = rows};
    bool good = rows && line && sscanf (line, "%lld %lld %u", &updated, &interval, &depth) == 3 &&
                depth <= FS_DEPTH_MAX;
    if (good && svc->settings->policy->fs_policy == FS_UTILIZEDPS)
        jobs_begin (svc, updated);
    while (good && (line = strtok_r (NULL, "\n", &save)))
        good = strncmp (line, "job ", 4) == 0
                   ? job_parse (svc, line)
                   : row_parse (svc, line, depth, &rows[state.row_count++]) == 0;
    state.updated_at = updated;
    state.interval = interval;
    state.depth = depth;
    if (good && fairshare_import (cluster_fairshare (svc->cluster), &state, &err) == 0)
        fairshare_advance (cluster_fairshare (svc->cluster), svc_now (svc));
    else
        log_event (svc->log, LOG_LEVEL_ERROR, "svc", "fairshare_unreadable", "error=\"%s\"",
                   err.text);
    free (rows);
    free (bytes);
}

static void fairshare_stop (struct svc *svc)
{
    if (svc->cluster && svc->store)
        fairshare_file_save (svc);
}

const struct svc_listener fairshare_listener = {.recovered = fairshare_file_load,
                                                .polled = fairshare_file_save,
                                                .job_ends = fairshare_job_ends,
                                                .stop = fairshare_stop};
