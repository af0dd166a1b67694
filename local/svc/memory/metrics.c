/* What this site tells Prometheus of itself: jobs by state and class, nodes, processors, passes, the resource manager, the
 * bank's outbox and how well estimates hold. What happens it counts as it hears of it; live jobs and nodes it counts when the
 * daemon's skeleton makes a page, which is once a second at the most however many ask (tests/bench/daemon has the cost). No
 * user and no job is named. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "local/core/cluster.h"
#include "local/svc/forecast/forecast.h"
#include "local/svc/job.h"
#include "local/svc/memory/memory.h"
#include "local/svc/nodes.h"
#include "local/svc/svc_i.h"
#include "proto/base/clock.h"

enum site_state {
    SITE_IDLE,
    SITE_RESERVED,
    SITE_STARTING,
    SITE_RUNNING,
    SITE_SUSPENDED,
    SITE_STATES
};
static const char *const state_words[SITE_STATES] = {"idle", "reserved", "starting", "running",
                                                     "suspended"};
enum site_nodes { NODES_IDLE, NODES_BUSY, NODES_DRAINED, NODES_DOWN, NODES_STATES };
static const char *const node_words[NODES_STATES] = {"idle", "busy", "drained", "down"};
enum { ENDS = STORE_JOB_REFUSED - STORE_JOB_COMPLETED + 1 };
static const char *const end_words[ENDS] = {"completed", "failed", "cancelled", "timeout",
                                            "refused"};

/* Of one class. */
struct class_jobs {
    int64_t count[SITE_STATES], procs[SITE_STATES];
};

struct metrics {
    struct class_jobs *class_jobs; /* [class's number]; the last: no class */
    uint32_t class_count;
    int64_t nodes[NODES_STATES];
    int64_t procs_up, procs_dedicated;
    uint64_t ended[ENDS]; /* since the daemon began */
    struct metrics_times pass;
    duration_us rm_fresh; /* monotonic: when the resource manager's word was last new enough */
    enum { BANK_UNHEARD, BANK_SILENT, BANK_ANSWERS } bank;
};

static enum site_state state_of (const struct site_job *job)
{
    switch (job->rec.state) {
    case STORE_JOB_RUNNING:
        return job->suspended || job->rec.suspended_at ? SITE_SUSPENDED : SITE_RUNNING;
    case STORE_JOB_STARTING:
        return SITE_STARTING;
    case STORE_JOB_RESERVED:
        return SITE_RESERVED;
    default:
        return job->rec.suspended_at ? SITE_SUSPENDED : SITE_IDLE;
    }
}

static void jobs_count (struct svc *svc, struct metrics *m)
{
    uint32_t classes = strtab_count (svc->names->tab[CRED_CLASS]);
    struct site_job *job, *next;
    if (classes + 1 > m->class_count) {
        free (m->class_jobs);
        m->class_jobs = malloc ((classes + 1) * sizeof *m->class_jobs);
        assert (m->class_jobs);
        m->class_count = classes + 1;
    }
    memset (m->class_jobs, 0, m->class_count * sizeof *m->class_jobs);
    HASH_ITER (hh, svc->jobs, job, next) {
        uint32_t class = job->cred[CRED_CLASS] < classes ? job->cred[CRED_CLASS] : classes;
        enum site_state state = state_of (job);
        m->class_jobs[class].count[state]++;
        m->class_jobs[class].procs[state] += job->rec.procs;
    }
}

static void nodes_count (struct svc *svc, struct metrics *m)
{
    memset (m->nodes, 0, sizeof m->nodes);
    m->procs_up = m->procs_dedicated = 0;
    for (uint32_t n = 0; n < svc->node_count; n++) {
        struct node_view view;
        if (!svc->node_by_id[n]->configured ||
            cluster_node_get (svc->cluster, (struct node_id){n}, &view, NULL) != 0)
            continue;
        m->nodes[view.state == NODE_DOWN      ? NODES_DOWN
                 : view.state == NODE_DRAINED ? NODES_DRAINED
                 : view.job_count > 0         ? NODES_BUSY
                                              : NODES_IDLE]++;
        m->procs_up += view.state == NODE_UP ? view.spec.configured.v[RES_PROCS] : 0;
        m->procs_dedicated += view.dedicated.v[RES_PROCS];
    }
}

static int metrics_open (struct svc *svc, struct err *err)
{
    svc->metrics = calloc (1, sizeof *svc->metrics);
    if (!svc->metrics)
        return err_set (err, ERR_NOMEM, "metrics: no memory");
    svc->metrics->rm_fresh = clock_monotonic_us ();
    return 0;
}

static void metrics_close (struct svc *svc)
{
    if (svc->metrics)
        free (svc->metrics->class_jobs);
    free (svc->metrics);
    svc->metrics = NULL;
}

static void metrics_pass (struct svc *svc)
{
    metrics_observe (&svc->metrics->pass, svc->pass_took);
}

static void metrics_poll (struct svc *svc)
{
    if (!svc->rm.ops->fresh || svc->rm.ops->fresh (svc->rm.self))
        svc->metrics->rm_fresh = clock_monotonic_us ();
}

static int metrics_job_ends (struct svc *svc, struct site_job *job, const struct job_end *end,
                             struct err *err)
{
    (void)end, (void)err;
    if (store_job_ended (job->rec.state))
        svc->metrics->ended[job->rec.state - STORE_JOB_COMPLETED]++;
    return 0;
}

static void metrics_bank (struct svc *svc, bool answers)
{
    svc->metrics->bank = answers ? BANK_ANSWERS : BANK_SILENT;
}

/* --- the page ----------------------------------------------------------------------------- */

static const char *class_name (struct svc *svc, uint32_t class)
{
    const char *name = strtab_name (svc->names->tab[CRED_CLASS], class);
    return name && class + 1 < svc->metrics->class_count ? name : "";
}

static void jobs_write (struct svc *svc, struct metrics_page *page, const char *name,
                        const char *help, size_t field)
{
    const struct metrics *m = svc->metrics;
    metrics_family (page, name, METRICS_GAUGE, help);
    for (uint32_t c = 0; c < m->class_count; c++)
        for (int s = 0; s < SITE_STATES; s++) {
            const int64_t *of =
                (const int64_t *)(const void *)((const char *)&m->class_jobs[c] + field);
            if (m->class_jobs[c].count[s] > 0)
                metrics_count (
                    page, of[s],
                    METRICS_LABELS ("state", state_words[s], "class", class_name (svc, c)));
        }
}

/* Of all classes. */
static int64_t jobs_in (const struct metrics *m, enum site_state a, enum site_state b)
{
    int64_t n = 0;
    for (uint32_t c = 0; c < m->class_count; c++)
        n += m->class_jobs[c].count[a] + m->class_jobs[c].count[b];
    return n;
}

static void cluster_write (const struct metrics *m, struct metrics_page *page)
{
    metrics_family (page, "nui_nodes", METRICS_GAUGE, "Nodes by state");
    for (int s = 0; s < NODES_STATES; s++)
        metrics_count (page, m->nodes[s], METRICS_LABELS ("state", node_words[s]));
    metrics_family (page, "nui_procs", METRICS_GAUGE,
                    "Processors: of nodes that are up, and those that jobs have");
    metrics_count (page, m->procs_up, METRICS_LABELS ("state", "up"));
    metrics_count (page, m->procs_dedicated, METRICS_LABELS ("state", "dedicated"));
}

/* The names of boards that are made for Slurm. */
static void slurm_write (struct svc *svc, struct metrics_page *page)
{
    static const char *const names[NODES_STATES] = {"slurm_nodes_idle", "slurm_nodes_alloc",
                                                    "slurm_nodes_drain", "slurm_nodes_down"};
    const struct metrics *m = svc->metrics;
    metrics_one (page, "slurm_jobs_pending", METRICS_GAUGE, "As nui_jobs, idle and reserved",
                 jobs_in (m, SITE_IDLE, SITE_RESERVED));
    metrics_one (page, "slurm_jobs_running", METRICS_GAUGE, "As nui_jobs, starting and running",
                 jobs_in (m, SITE_STARTING, SITE_RUNNING));
    for (int s = 0; s < NODES_STATES; s++)
        metrics_one (page, names[s], METRICS_GAUGE, "As nui_nodes", m->nodes[s]);
    metrics_family (page, "slurm_partition_jobs", METRICS_GAUGE, "As nui_jobs, by class alone");
    for (uint32_t c = 0; c < m->class_count; c++) {
        int64_t n = 0;
        for (int s = 0; s < SITE_STATES; s++)
            n += m->class_jobs[c].count[s];
        if (n > 0)
            metrics_count (page, n, METRICS_LABELS ("partition", class_name (svc, c)));
    }
}

static void outbox_write (struct svc *svc, struct metrics_page *page)
{
    uint64_t waiting = 0, dead = 0;
    time_us oldest = 0, now = svc_now (svc);
    struct err err;
    if (!svc->bank ||
        local_store_outbox_waiting (svc->store, STORE_OUTBOX_BANK, &waiting, &oldest, &err) != 0 ||
        local_store_outbox_dead_count (svc->store, STORE_OUTBOX_BANK, &dead, &err) != 0)
        return;
    metrics_one (page, "nui_bank_outbox_messages", METRICS_GAUGE,
                 "Charges and releases that the bank has not acknowledged", (int64_t)waiting);
    metrics_one_micro (page, "nui_bank_outbox_oldest_seconds", METRICS_GAUGE,
                       "How long the oldest of them waits",
                       oldest > 0 && now > oldest ? now - oldest : 0);
    metrics_one (page, "nui_bank_outbox_dead", METRICS_GAUGE,
                 "Messages that the bank will never take: nui reconcile lists them", (int64_t)dead);
    metrics_one (page, "nui_bank_denied", METRICS_GAUGE,
                 "1 while the bank takes no message of this site's",
                 *bank_link_denied (svc->bank) != 0);
    if (svc->metrics->bank != BANK_UNHEARD)
        metrics_one (page, "nui_bank_answers", METRICS_GAUGE,
                     "0 while the bank does not answer those who ask it for money to be held",
                     svc->metrics->bank == BANK_ANSWERS);
}

/* Of the whole site's first answers: what coverage and error people saw. */
static void estimates_write (struct svc *svc, struct metrics_page *page)
{
    struct arena *arena = arena_create (0);
    size_t count = 0;
    Nui__Common__V1__EstimateRecord **all =
        svc->forecast ? forecast_records (svc, arena, &count) : NULL;
    for (size_t i = 0; i < count; i++) {
        const Nui__Common__V1__EstimateRecord *r = all[i];
        if (*r->class_ || strcmp (r->answers, "first") != 0 || r->count == 0)
            continue;
        metrics_one (page, "nui_forecast_answers", METRICS_GAUGE,
                     "First answers of the last weeks whose jobs have started", (int64_t)r->count);
        metrics_one_micro (page, "nui_forecast_median_error_seconds", METRICS_GAUGE,
                           "Half of the first answers were off by less", r->median_error_us);
        if (r->uncertain == 0)
            continue;
        metrics_family (page, "nui_forecast_coverage_ratio", METRICS_GAUGE,
                        "Share of first answers that were not certain and held");
        metrics_micro (page, r->coverage50_ppm, METRICS_LABELS ("interval", "50"));
        metrics_micro (page, r->coverage95_ppm, METRICS_LABELS ("interval", "95"));
    }
    arena_destroy (arena);
}

void svc_metrics (struct svc *svc, struct metrics_page *page)
{
    struct metrics *m = svc->metrics;
    jobs_count (svc, m);
    nodes_count (svc, m);
    jobs_write (svc, page, "nui_jobs", "Live jobs by state and class",
                offsetof (struct class_jobs, count));
    jobs_write (svc, page, "nui_job_procs", "Their processors",
                offsetof (struct class_jobs, procs));
    metrics_family (page, "nui_jobs_ended", METRICS_COUNTER, "Jobs that ended, by how");
    for (int e = 0; e < ENDS; e++)
        metrics_count (page, (int64_t)m->ended[e], METRICS_LABELS ("state", end_words[e]));
    cluster_write (m, page);
    metrics_family (page, "nui_pass_seconds", METRICS_HISTOGRAM,
                    "Time that each pass of the scheduler took");
    metrics_times (page, &m->pass, NULL);
    metrics_one_micro (page, "nui_pass_age_seconds", METRICS_GAUGE,
                       "How long ago the last pass was; it grows while the schedule is stopped",
                       svc->pass_at > 0 ? svc_now (svc) - svc->pass_at : 0);
    metrics_one_micro (page, "nui_rm_age_seconds", METRICS_GAUGE,
                       "How long the resource manager has not said anything to decide by",
                       !svc->rm.ops->fresh || svc->rm.ops->fresh (svc->rm.self)
                           ? 0
                           : clock_monotonic_us () - m->rm_fresh);
    outbox_write (svc, page);
    estimates_write (svc, page);
    slurm_write (svc, page);
}

const struct svc_listener metrics_listener = {.open = metrics_open,
                                              .polled = metrics_poll,
                                              .pass_done = metrics_pass,
                                              .job_ends = metrics_job_ends,
                                              .bank_heard = metrics_bank,
                                              .close = metrics_close};
