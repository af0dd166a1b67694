/* What the metascheduler tells Prometheus of itself. It listens to what becomes of jobs and keeps the counts, so that a page
 * costs the same however many jobs there are; metad.c writes it when the daemon's skeleton asks. */
#include "meta/job/metrics.h"

#include <stdlib.h>
#include <string.h>

#include "meta/job/job.h"
#include "meta/job/sites.h"

#define STATE(name) NUI__META__V1__GRID_JOB_STATE__GRID_##name

enum { STATES = STATE (REFUSED) + 1, REASONS_MAX = 64 };
static const char *const state_words[STATES] = {
    [STATE (PENDING)] = "pending",     [STATE (QUEUED)] = "queued",
    [STATE (RESERVED)] = "reserved",   [STATE (RUNNING)] = "running",
    [STATE (COMPLETED)] = "completed", [STATE (FAILED)] = "failed",
    [STATE (CANCELLED)] = "cancelled", [STATE (REFUSED)] = "refused",
};

/* How co-allocated jobs end. Reasons are codes of this metascheduler and its sites, some dozens; what is beyond the table
 * counts as "other". */
struct coalloc_end {
    Nui__Meta__V1__GridJobState state;
    char reason[COALLOC_CODE_MAX];
    uint64_t count;
};

struct metrics {
    int64_t live[STATES];
    uint64_t ended[STATES];
    struct coalloc_end end[REASONS_MAX];
    uint32_t ends;
    struct metrics_times prepare;
};

static int metrics_open (struct metad *metad, struct err *err)
{
    metad->metrics = calloc (1, sizeof *metad->metrics);
    return metad->metrics ? 0 : err_set (err, ERR_NOMEM, "metrics: no memory");
}

static void metrics_close (struct metad *metad)
{
    free (metad->metrics);
    metad->metrics = NULL;
}

/* The job counts in that state from now on; 0: in none. */
static void metrics_counts_in (struct gridjob *job, Nui__Meta__V1__GridJobState state)
{
    struct metrics *m = job->metad->metrics;
    if (!m)
        return;
    m->live[job->counted]--;
    m->live[state]++;
    job->counted = state;
}

static void metrics_listed (struct gridjob *job)
{
    metrics_counts_in (job, job_ended (job) ? STATE (UNSET) : job->state);
}

static void metrics_unlisted (struct gridjob *job)
{
    metrics_counts_in (job, STATE (UNSET));
}

static void coalloc_ended (struct metrics *m, const struct gridjob *job)
{
    const char *reason = job->state == STATE (COMPLETED) ? "" : job->reason.code;
    uint32_t i = 0;
    while (i < m->ends && (m->end[i].state != job->state || strcmp (m->end[i].reason, reason) != 0))
        i++;
    if (i == m->ends && m->ends + STATES >= REASONS_MAX && strcmp (reason, "other") != 0) {
        reason = "other";
        for (i = 0; i < m->ends; i++)
            if (m->end[i].state == job->state && strcmp (m->end[i].reason, reason) == 0)
                break;
    }
    if (i == m->ends) {
        m->end[i].state = job->state;
        snprintf (m->end[i].reason, sizeof m->end[i].reason, "%s", reason);
        m->ends++;
    }
    m->end[i].count++;
}

static void metrics_saved (struct gridjob *job, bool with_record)
{
    struct metrics *m = job->metad->metrics;
    (void)with_record;
    if (!m || job->counted == STATE (UNSET))
        return;
    if (!job_ended (job)) {
        metrics_counts_in (job, job->state);
        return;
    }
    metrics_counts_in (job, STATE (UNSET));
    m->ended[job->state]++;
    if (job_is_group (job))
        coalloc_ended (m, job);
}

void metrics_prepared (struct metad *metad, duration_us took)
{
    if (metad->metrics)
        metrics_observe (&metad->metrics->prepare, took);
}

const struct metad_part metrics_part = {
    .open = metrics_open,
    .close = metrics_close,
    .job_listed = metrics_listed,
    .job_unlisted = metrics_unlisted,
    .job_saved = metrics_saved,
};

/* --- the page ----------------------------------------------------------------------------- */

static void sites_write (struct metad *metad, struct metrics_page *page)
{
    metrics_family (page, "nui_site_up", METRICS_GAUGE, "1 while the site's reports are fresh");
    for (uint32_t s = 0; s < metad->site_count; s++)
        if (metad->site[s]->configured)
            metrics_count (page, site_up (metad->site[s]),
                           METRICS_LABELS ("site", metad->site[s]->name));
    metrics_family (page, "nui_site_report_age_seconds", METRICS_GAUGE,
                    "Since the site's last report, or since the start");
    for (uint32_t s = 0; s < metad->site_count; s++)
        if (metad->site[s]->configured)
            metrics_micro (page, site_silent_for (metad, metad->site[s]),
                           METRICS_LABELS ("site", metad->site[s]->name));
    metrics_family (page, "nui_site_clock_ahead_seconds", METRICS_GAUGE,
                    "The site's clock against this one's, by its last report");
    for (uint32_t s = 0; s < metad->site_count; s++)
        if (metad->site[s]->configured && metad->site[s]->reported_us > 0)
            metrics_micro (page, metad->site[s]->clock_ahead,
                           METRICS_LABELS ("site", metad->site[s]->name));
    metrics_family (page, "nui_site_procs", METRICS_GAUGE, "Processors that the site reports");
    for (uint32_t s = 0; s < metad->site_count; s++)
        if (metad->site[s]->configured)
            metrics_count (page, metad->site[s]->procs,
                           METRICS_LABELS ("site", metad->site[s]->name));
}

void metrics_write (struct metad *metad, struct metrics_page *page)
{
    const struct metrics *m = metad->metrics;
    metrics_family (page, "nui_grid_jobs", METRICS_GAUGE, "Live jobs of the grid by state");
    for (int s = STATE (PENDING); s <= (int)STATE (RUNNING); s++)
        metrics_count (page, m->live[s], METRICS_LABELS ("state", state_words[s]));
    metrics_family (page, "nui_grid_jobs_ended", METRICS_COUNTER, "Jobs that ended, by how");
    for (int s = STATE (COMPLETED); s <= (int)STATE (REFUSED); s++)
        metrics_count (page, (int64_t)m->ended[s], METRICS_LABELS ("state", state_words[s]));
    metrics_family (page, "nui_coalloc", METRICS_COUNTER,
                    "Co-allocated jobs that ended, by how and why");
    for (uint32_t i = 0; i < m->ends; i++)
        metrics_count (
            page, (int64_t)m->end[i].count,
            METRICS_LABELS ("result", state_words[m->end[i].state], "reason", m->end[i].reason));
    metrics_family (page, "nui_coalloc_prepare_seconds", METRICS_HISTOGRAM,
                    "From the first PREPARE sent to a site until it answered");
    metrics_times (page, &m->prepare, NULL);
    sites_write (metad, page);
}
