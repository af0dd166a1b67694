/* Whether this site lets a metascheduler have what it asks (GRIDCFG).
 *
 * Every refusal is one sentence that names the rule and its value, so that a user who reads it in `nui status`
 * knows whom to ask. Asked for each job, slot and start; it changes only
 * why a job waits. */
#include "local/svc/grid/grid.h"

#include <stdlib.h>
#include <string.h>

#include "local/svc/job.h"
#include "local/svc/job/jobspec.h"
#include "local/svc/job/life.h"
#include "local/svc/nodes.h"
#include "local/svc/svc_i.h"
#include "proto/base/text.h"

#define LOOK_AGAIN                                                                                 \
    (60 * US_PER_S) /* whether what was over MAXPROC or SHARE may start: at least as often */

static int refused (const struct svc *svc, const struct settings_grid *g, const char *rule,
                    const char *value, const char *what, const char *asked, struct err *err)
{
    return err_set (err, ERR_DENIED, "site %s has GRIDCFG[%s] %s=%s for jobs of the grid: %s %s",
                    svc->site, g->meta, rule, value, what, asked);
}

static int list_check (const struct svc *svc, const struct settings_grid *g, const char *rule,
                       const char *list, const char *what, const char *name, const char *other,
                       struct err *err)
{
    if (settings_grid_lists (list, name, other))
        return 0;
    return refused (svc, g, rule, list, what, *name ? name : "none", err);
}

static const char *qos_name (const struct svc *svc, const struct jobspec *spec)
{
    uint32_t qos = spec->cred[CRED_QOS];
    return qos == CRED_NONE || qos == CRED_DEFAULT ? "" : cred_name (svc->names, CRED_QOS, qos);
}

int gridpolicy_job (const struct svc *svc, const char *meta, const struct jobspec *spec,
                    struct err *err)
{
    const struct settings_grid *g = settings_grid_of (svc->settings, meta);
    char limit[QUANTITY_TEXT_MAX], asked[QUANTITY_TEXT_MAX];
    if (!g)
        return 0;
    const char *qos = qos_name (svc, spec), *account = spec->job->account,
               *class_ = spec->component->class_;
    int rc = list_check (svc, g, "USERLIST", g->users, "the user is", spec->submitter,
                         spec->local_account, err);
    if (rc == 0)
        rc = list_check (svc, g, "QLIST", g->qos, "the QoS is", qos, qos, err);
    if (rc == 0)
        rc = list_check (svc, g, "ACCOUNTLIST", g->accounts, "the account is", account, account,
                         err);
    if (rc == 0)
        rc = list_check (svc, g, "CLASSLIST", g->classes, "the class is", class_, class_, err);
    if (rc == 0 && g->wall && spec->walltime > g->wall)
        rc = refused (svc, g, "MAXJOBWALLTIME", duration_format (g->wall, limit), "asked are",
                      duration_format (spec->walltime, asked), err);
    if (rc == 0 && g->procs_each && (int64_t)spec->procs > g->procs_each) {
        snprintf (limit, sizeof limit, "%lld", (long long)g->procs_each);
        snprintf (asked, sizeof asked, "%u processors", spec->procs);
        rc = refused (svc, g, "MAXPROCPERJOB", limit, "asked are", asked, err);
    }
    return rc;
}

/* --- what it has at one moment ---------------------------------------------------------------- */

struct change {
    time_us at;
    int64_t procs; /* more, or fewer */
};

static int by_moment (const void *a, const void *b)
{
    const struct change *x = a, *y = b;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return x->procs < y->procs ? -1 : x->procs > y->procs; /* what ends makes room first */
}

/* From when to when a job has its processors; false: it waits. One that was chosen to start has them, too. */
static bool occupies (const struct svc *svc, const struct site_job *job, time_us *from,
                      time_us *until)
{
    if (job->rec.start)
        *from = job->rec.start;
    else if (job->part)
        *from = job->part->rec.slot_start;
    else if (job->rec.state == STORE_JOB_STARTING)
        *from = job->dispatched ? job->dispatched : svc_now (svc);
    else
        return false;
    *until = *from + (job->part ? svc_part_duration (svc, job->rec.walltime) : job->rec.walltime);
    return true;
}

/* The most that jobs of this metascheduler have at any moment of [from, until), but for the co-allocation `without`. */
static int64_t most_at_once (const struct svc *svc, const char *meta, time_us from, time_us until,
                             uint64_t without)
{
    struct change *list = malloc ((2 * (size_t)HASH_COUNT (svc->jobs) + 1) * sizeof *list);
    size_t count = 0;
    int64_t have = 0, most = 0;
    assert (list);
    for (const struct site_job *job = svc->jobs; job; job = job->hh.next) {
        time_us begin, end;
        if (strcmp (job->rec.meta, meta) != 0 || !occupies (svc, job, &begin, &end) ||
            begin >= until || end <= from || (without && job->part && job->part->whose == without))
            continue;
        list[count++] = (struct change){begin > from ? begin : from, job->rec.procs};
        list[count++] = (struct change){end, -(int64_t)job->rec.procs};
    }
    qsort (list, count, sizeof *list, by_moment);
    for (size_t i = 0; i < count; i++) {
        have += list[i].procs;
        most = have > most ? have : most;
    }
    free (list);
    return most;
}

static int64_t site_procs (const struct svc *svc)
{
    int64_t procs = 0;
    for (uint32_t i = 0; i < svc->node_count; i++) {
        struct node_view node;
        if (svc->node_by_id[i]->configured &&
            cluster_node_get (svc->cluster, svc->node_by_id[i]->id, &node, NULL) == 0)
            procs += node.spec.configured.v[RES_PROCS];
    }
    return procs;
}

/* besides: what starts with it, and has nothing yet; without: the co-allocation that it comes instead of. */
static int share_check (const struct svc *svc, const struct settings_grid *g, const char *meta,
                        uint32_t procs, time_us start, duration_us length, int64_t besides,
                        uint64_t without, struct err *err)
{
    char limit[QUANTITY_TEXT_MAX], asked[160];
    if (!g->procs && !g->share)
        return 0;
    int64_t have = besides + most_at_once (svc, meta, start, start + length, without);
    text_printf (asked, sizeof asked,
                 "metascheduler %.60s has %lld processors in that time and asks for %u more", meta,
                 (long long)have, procs);
    if (g->procs && have + (int64_t)procs > g->procs) {
        snprintf (limit, sizeof limit, "%lld", (long long)g->procs);
        return refused (svc, g, "MAXPROC", limit, asked, "", err);
    }
    if (g->share && (have + (int64_t)procs) * 100 > g->share * site_procs (svc)) {
        snprintf (limit, sizeof limit, "%lld", (long long)g->share);
        return refused (svc, g, "SHARE", limit, asked, "", err);
    }
    return 0;
}

static int moments_compare (const void *a, const void *b)
{
    const time_us *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

/* A moment after `start` at which enough of what the metascheduler has here has ended; 0: none. Of many ends
 * only each that is twice as far as the last is tried. */
static time_us share_next (const struct svc *svc, const struct settings_grid *g, const char *meta,
                           const struct jobspec *spec, time_us start)
{
    time_us *end = malloc (((size_t)HASH_COUNT (svc->jobs) + 1) * sizeof *end), next = 0;
    size_t count = 0;
    assert (end);
    for (const struct site_job *job = svc->jobs; job; job = job->hh.next) {
        time_us begin;
        if (strcmp (job->rec.meta, meta) == 0 && occupies (svc, job, &begin, &end[count]) &&
            end[count] > start)
            count++;
    }
    qsort (end, count, sizeof *end, moments_compare);
    for (size_t i = 0, step = 1; i < count && !next; step *= 2) {
        if (share_check (svc, g, meta, spec->procs, end[i], svc_part_duration (svc, spec->walltime),
                         0, spec->instead, NULL) == 0)
            next = end[i];
        i = i + step < count || i + 1 == count ? i + step : count - 1;
    }
    free (end);
    return next;
}

time_us gridpolicy_until (const struct svc *svc, const char *meta, time_us now, time_us until)
{
    const struct settings_grid *g = settings_grid_of (svc->settings, meta);
    return g && g->ahead && now + g->ahead < until ? now + g->ahead : until;
}

int gridpolicy_slot (struct svc *svc, const char *meta, const struct jobspec *spec, time_us start,
                     duration_us lease, time_us *next, struct err *err)
{
    const struct settings_grid *g = settings_grid_of (svc->settings, meta);
    char limit[QUANTITY_TEXT_MAX], asked[QUANTITY_TEXT_MAX];
    time_us now = svc_now (svc);
    if (!g)
        return 0;
    if (g->lease && lease > g->lease)
        return refused (svc, g, "MAXLEASE", duration_format (g->lease, limit), "the lease is",
                        duration_format (lease, asked), err);
    if (g->ahead && start > now + g->ahead)
        return refused (svc, g, "MAXAHEAD", duration_format (g->ahead, limit),
                        "the slot begins later from now, in", duration_format (start - now, asked),
                        err);
    int rc = share_check (svc, g, meta, spec->procs, start, svc_part_duration (svc, spec->walltime),
                          0, spec->instead, err);
    if (rc != 0)
        *next = share_next (svc, g, meta, spec, start);
    return rc;
}

/* --- what starts from the queue --------------------------------------------------------------- */

/* The processors of those in the plan before `until` that are the same metascheduler's. */
static int64_t started_before (const struct svc *svc, const struct plan *plan, uint32_t until,
                               const char *meta)
{
    int64_t procs = 0;
    for (uint32_t i = 0; i < until; i++) {
        const struct site_job *job =
            plan->start[i].refused ? NULL : svc_job ((struct svc *)svc, plan->start[i].job.v);
        procs += job && strcmp (job->rec.meta, meta) == 0 ? (int64_t)job->rec.procs : 0;
    }
    return procs;
}

void gridpolicy_starts (struct svc *svc, struct plan *plan)
{
    for (uint32_t i = 0; i < plan->start_count; i++) {
        struct site_job *job = plan->start[i].refused ? NULL : svc_job (svc, plan->start[i].job.v);
        const struct settings_grid *g =
            job && *job->rec.meta ? settings_grid_of (svc->settings, job->rec.meta) : NULL;
        struct err err = {0};
        if (!g || plan->start[i].phase == PLAN_RESUMED ||
            share_check (svc, g, job->rec.meta, job->rec.procs, plan->now, job->rec.walltime,
                         started_before (svc, plan, i, job->rec.meta), 0, &err) == 0)
            continue;
        plan->start[i].refused = true;
        job->rec.deferred_until = deferral_retry_at (svc, LOOK_AGAIN);
        bool news = strcmp (job->rec.reason_code, "GridPolicy") != 0;
        svc_reason (job, "GridPolicy", "%s", err.text);
        int rc = svc_begin (svc, &err);
        if (rc == 0)
            rc = svc_job_write (svc, job, news, NULL, 0, &err);
        svc_commit (svc, rc, &err); /* not written: found again */
    }
}

void gridpolicy_defer (struct svc *svc, const struct plan *plan)
{
    struct err err = {0};
    for (uint32_t i = 0; i < plan->start_count; i++) {
        struct site_job *job = plan->start[i].refused ? svc_job (svc, plan->start[i].job.v) : NULL;
        if (job && strcmp (job->rec.reason_code, "GridPolicy") == 0 &&
            cluster_job_defer (svc->cluster, plan->start[i].job, job->rec.deferred_until, plan->now,
                               &err) != 0)
            log_event (svc->log, LOG_LEVEL_ERROR, "svc", "core_disagrees", "error=\"%s\"",
                       err.text);
    }
}

/* --- the price -------------------------------------------------------------------------------- */

credit_micro gridpolicy_price_least (const struct svc *svc, const char *meta, uint32_t procs,
                                     duration_us walltime)
{
    const struct settings_grid *g = *meta ? settings_grid_of (svc->settings, meta) : NULL;
    __int128 least = g ? (__int128)g->price * procs * walltime / US_PER_S : 0;
    return least > INT64_MAX ? INT64_MAX : (credit_micro)least;
}

bool gridpolicy_too_cheap (const struct svc *svc, const struct site_job *job, credit_micro amount,
                           char *why, size_t cap)
{
    const struct settings_grid *g =
        *job->rec.meta ? settings_grid_of (svc->settings, job->rec.meta) : NULL;
    char least[QUANTITY_TEXT_MAX], pays[QUANTITY_TEXT_MAX];
    if (!g || !g->price)
        return false;
    if (amount >= gridpolicy_price_least (svc, job->rec.meta, job->rec.procs, job->rec.walltime))
        return false;
    text_printf (
        why, cap,
        "site %.60s has GRIDCFG[%.60s] MINPRICE=%s for each processor-second of jobs of the "
        "grid: the bank holds %s for %u processors",
        svc->site, g->meta, credit_format (g->price, least), credit_format (amount, pays),
        job->rec.procs);
    return true;
}
