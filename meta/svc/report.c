/* What sites say of jobs: in their reports, each event exactly once, and asked, where they told another metascheduler of the
 * group that is gone. An ordinary job hears it before it is saved, a co-allocated one steps when it is durable. */
#include <stdlib.h>
#include <string.h>

#include "meta/group/group.h"
#include "meta/svc/hooks.h"
#include "meta/svc/inquire.h"
#include "meta/svc/handlers.h"
#include "meta/job/job.h"
#include "meta/job/peers.h"
#include "meta/job/seal.h"
#include "meta/single/single.h"
#include "meta/job/sites.h"
#include "meta/place/arrays.h"
#include "proto/base/clocksapart.h"
#include "proto/rpc/pbcopy.h"

enum { REPORT_EVENTS_MAX = 1024, /* sites send 256 at once */ ASKS_AT_ONCE = 64 };

#define ASK_TIMEOUT (5 * US_PER_S)

/* Jobs that a report changed; told and stepped once it is durable. */
struct touched {
    uint64_t number;
    uint32_t part;
};

struct reporting {
    struct metad *metad;
    struct site *site;
    struct arena *arena;
    struct touched *touched;
    uint32_t touched_count;
};

/* The grid job and the part that an event speaks of, when that part is at this site. A site tells every
 * metascheduler of all jobs of the grid, and each that is alone counts its own from 1. */
static struct gridjob *event_job (struct reporting *r, const JobInfo *info, uint32_t *part)
{
    uint64_t number = 0;
    if (info->metascheduler[0] && !peers_is_us (r->metad, info->metascheduler))
        return NULL;
    if (array_job_named (r->metad, info->grid_job_id, &number, NULL))
        return NULL;
    struct gridjob *job = job_get (r->metad, number, NULL);
    /* Who leads it hears of it, too. What comes after its end (of its files) nobody acts on: each keeps that. */
    if (!job || (job_is_elsewhere (job) && !job_over (job)))
        return NULL;
    *part = job_part (job, info->component);
    if (*part == UINT32_MAX || strcmp (job->part[*part].site, r->site->name) != 0)
        return NULL;
    return job;
}

/* Whether this is news: of the present try, and not older than what is known. */
static bool is_news (const struct gridjob *job, uint32_t part, const JobInfo *info)
{
    const JobInfo *known = job->part[part].info;
    if (job_is_group (job)) {
        if (!job->record || info->transaction.len != 16 ||
            memcmp (info->transaction.data, job->record->transaction, 16) != 0)
            return false;
        if (known && (known->transaction.len != 16 ||
                      memcmp (known->transaction.data, info->transaction.data, 16) != 0))
            return true; /* the known one is of an earlier try */
        if (info->attempt != job->record->part[part].attempt)
            return false; /* of before it was prepared anew */
    } else if (info->attempt != job->site_attempt) {
        return false;
    }
    /* A site whose disk was full may have answered with a state that it could not write down, and have used its number
     * again: an end is news all the same. */
    return !known || strcmp (known->site_job_id, info->site_job_id) != 0 ||
           info->change > known->change || (info_ended (info) && !info_ended (known));
}

static int report_take (struct gridjob *job, uint32_t part, const JobInfo *info, bool *news,
                        struct err *err)
{
    *news = is_news (job, part, info);
    if (!*news)
        return 0;
    JobInfo *copy = (JobInfo *)pbcopy (&info->base);
    if (!copy)
        return err_set (err, ERR_NOMEM, "no memory for a job event");
    if (job->part[part].info)
        nui__local__v1__job_info__free_unpacked (job->part[part].info, NULL);
    job->part[part].info = copy;
    job->part[part].dirty = true;
    return 0;
}

static bool is_leaving (const JobInfo *info)
{
    return info && strcmp (info->stage_out, "Leaving") == 0;
}

/* What a site says of a part: kept, if it is news, and the job saved; a co-allocated one is not stepped. */
static int report_apply (struct gridjob *job, uint32_t part, const JobInfo *info, bool *news,
                         struct err *err)
{
    bool left = is_leaving (job->part[part].info);
    int rc = report_take (job, part, info, news, err);
    if (rc || !*news)
        return rc;
    if (!job_is_group (job))
        single_heard (job);
    job_files_reason (job);
    if (left && !is_leaving (info) && !job_is_elsewhere (job))
        rc = hooks_files (job, part, err);
    return rc ? rc : job_save (job, false, err);
}

/* What a site says of a part when asked. The job may be gone after it. */
static void report_heard (struct gridjob *job, uint32_t part, const JobInfo *info)
{
    struct metad *metad = job->metad;
    uint64_t number = job->number;
    bool news = false;
    struct err err;
    err_clear (&err);
    if (report_apply (job, part, info, &news, &err))
        job_reload (metad, number);
    else if (job_is_group (job) && job->part[part].info)
        group_heard (job, part); /* also what another was told, and did not act on */
}

static int event_apply (struct reporting *r, const JobInfo *info, struct err *err)
{
    uint32_t part = 0;
    bool news = false;
    struct gridjob *job = event_job (r, info, &part);
    if (!job)
        return 0;
    uint64_t number = job->number;
    int rc = report_apply (job, part, info, &news, err);
    if (news)
        r->touched[r->touched_count++] = (struct touched){number, part};
    return rc;
}

static int events_apply (struct reporting *r, const SiteReport *report, uint64_t *acked,
                         struct err *err)
{
    struct metad *metad = r->metad;
    int rc = metastore_begin (metad->store, err);
    if (rc)
        return rc;
    metad->in_report = true;
    for (size_t i = 0; i < report->n_events && rc == 0; i++) {
        const Nui__Meta__V1__JobEvent *event = report->events[i];
        if (event->sequence <= *acked)
            continue;
        /* Contiguous only; but of a site never heard before the first event is where it begins. */
        if (event->sequence != *acked + 1 && *acked != 0)
            break;
        rc = event->job ? event_apply (r, event->job, err) : 0;
        *acked = event->sequence;
    }
    if (rc == 0)
        rc = metastore_site_ack (metad->store, r->site->name, *acked, err);
    if (rc == 0)
        rc = metastore_commit (metad->store, err);
    if (rc)
        metastore_rollback (metad->store);
    metad->in_report = false;
    return rc;
}

static void clock_keep (struct metad *metad, struct site *site, duration_us ahead)
{
    char whose[80];
    snprintf (whose, sizeof whose, "site=%s ", site->name);
    clocks_keep (&site->clock_ahead, ahead, metad->log, "site", whose);
}

/* A site may say anything: moments and lengths that no job can have are not reckoned with. */
static bool estimate_is_sane (const Nui__Meta__V1__StartEstimate *e)
{
    const duration_us most = 3660 * 86400 * US_PER_S;
    return e->start_us >= 0 && e->start_us <= clock_now_us () + most && e->walltime_us >= 0 &&
           e->walltime_us <= most;
}

/* It is the site's from now on. */
static void report_keep (struct site *site, SiteReport *report)
{
    struct choose_estimate *table = calloc (report->n_estimates + 1, sizeof *table);
    uint32_t count = 0;
    if (!table)
        abort ();
    for (size_t i = 0; i < report->n_estimates; i++)
        if (estimate_is_sane (report->estimates[i]))
            table[count++] = (struct choose_estimate){report->estimates[i]->procs,
                                                      report->estimates[i]->walltime_us,
                                                      report->estimates[i]->start_us};
    free (site->table);
    site->table = table;
    site->cells = choose_report_prune (table, count);
    if (site->report)
        nui__meta__v1__site_report__free_unpacked (site->report, NULL);
    site->report = report;
    site->procs = report->procs_total;
    site->nodes = report->nodes_total;
    site->procs_per_node = report->procs_per_node_max;
    site->memory_per_node_mb = report->memory_per_node_max_mb;
    site->reported_us = clock_now_us ();
    site->reported_mono = clock_monotonic_us ();
}

/* The site has had jobs of numbers that we do not know of: we were restored to an earlier moment, or begin anew. They
 * are not given again: to the site they would be those jobs. A site's word moves them so far at most in one report. */
static int numbers_look (struct metad *metad, const struct site *site,
                         const Nui__Meta__V1__GridNumber *said, struct err *err)
{
    const uint64_t far = 1000000000, theirs = said->number;
    bool lost = false;
    bool ours = metad->peers ? peers_index (metad->peers, said->metascheduler) != UINT32_MAX
                             : strcmp (said->metascheduler, tlsid_self (metad->id)->name) == 0;
    if (!ours || theirs <= metad->number_max || theirs > INT64_MAX / 2)
        return 0;
    uint64_t to = theirs - metad->number_max > far ? metad->number_max + far : theirs;
    int rc = metastore_job_number_pass (metad->store, to, &lost, err);
    if (rc != 0)
        return rc;
    if (lost)
        log_event (metad->log, LOG_LEVEL_ERROR, "site", "numbers_lost",
                   "site=%s theirs=%llu text=\"this state is older than "
                   "what the site knows: new jobs have higher numbers\"",
                   site->name, (unsigned long long)theirs);
    metad->number_max = to;
    return 0;
}

/* What a report is kept without. */
static void events_drop (SiteReport *report)
{
    for (size_t i = 0; i < report->n_events; i++)
        nui__meta__v1__job_event__free_unpacked (report->events[i], NULL);
    report->n_events = 0;
}

static void touched_tell (struct reporting *r)
{
    for (uint32_t i = 0; i < r->touched_count; i++) {
        struct gridjob *job = job_live (r->metad, r->touched[i].number);
        if (job && job_is_group (job) && !job_ended (job))
            group_heard (job, r->touched[i].part);
        job = job_live (r->metad, r->touched[i].number);
        if (job)
            job_tell (job);
    }
}

void on_report (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    const SiteReport *came = (const SiteReport *)message;
    struct metad *metad = self;
    const struct principal *peer = rpccall_peer (call);
    Nui__Meta__V1__ReportReply reply = NUI__META__V1__REPORT_REPLY__INIT;
    struct err err;
    err_clear (&err);
    if (strcmp (peer->name, came->site) != 0) {
        rpccall_finish (call, RPC_PERMISSION_DENIED, "a site reports for itself only");
        return;
    }
    struct site *site = site_find (metad, came->site);
    if (!site) {
        rpccall_finish (call, RPC_PERMISSION_DENIED,
                        "this site is not configured at the metascheduler (SITECFG)");
        return;
    }
    if (came->n_events > REPORT_EVENTS_MAX) {
        rpccall_finish (call, RPC_RESOURCE_EXHAUSTED, "more than 1024 events in one report");
        return;
    }
    if (!site_up (site))
        log_event (metad->log, LOG_LEVEL_INFO, "site", "up", "site=%s server=%s", site->name,
                   came->server);
    SiteReport *report = (SiteReport *)rpccall_take (call);
    bool room = !site->report || report->procs_free > site->report->procs_free;
    report_keep (site, report);
    clock_keep (metad, site, report->now_us > 0 ? report->now_us - site->reported_us : 0);
    metad->reports++;
    struct reporting r = {metad, site, arena_create (0), NULL, 0};
    r.touched = arena_array (r.arena, report->n_events + 1, sizeof *r.touched);
    uint64_t acked;
    bool waits = inquire_report (metad, site, report, report_heard, &acked);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < report->n_grid_numbers; i++)
        rc = numbers_look (metad, site, report->grid_numbers[i], &err);
    if (rc == 0 && report->n_events && !waits)
        rc = events_apply (&r, report, &acked, &err);
    if (rc == 0) {
        site->acked = waits ? site->acked : acked;
        touched_tell (&r);
        reply.events_acked = acked;
        reply.metascheduler = (char *)tlsid_self (metad->id)->name;
        rpccall_reply (call, &reply.base);
        if (room)
            group_room (metad, site);
    } else {
        for (uint32_t i = 0; i < r.touched_count; i++)
            job_reload (metad, r.touched[i].number);
        rpccall_fail (call, &err);
    }
    events_drop (report);
    arena_destroy (r.arena);
}

/* ---- asking: what was taken over from another that led it, which alone was told */

struct following {
    struct metad *metad;
    uint64_t number;
    uint32_t part, attempt;
};

/* A site that was restored may have given the number to another job. */
static bool is_of (const JobInfo *info, const struct gridjob *job, uint32_t p)
{
    return strcmp (info->grid_job_id, job->id) == 0 &&
           strcmp (info->component, job->part[p].name) == 0;
}

static void followed (void *arg, const struct rpc_result *result)
{
    struct following *f = arg;
    struct gridjob *job = f->metad->stopping ? NULL : job_live (f->metad, f->number);
    bool asked = result->status == RPC_OK || result->status == RPC_NOT_FOUND;
    if (job && asked && job->lead && !job_is_elsewhere (job) && !job_ended (job) &&
        !job->reloaded) {
        if (job_is_group (job))
            job->part[f->part].asked = true;
        else
            job->lead->asked_attempt = f->attempt;
        const JobInfo *info = result->status == RPC_OK ? (const JobInfo *)result->reply : NULL;
        if (info && is_of (info, job, f->part))
            report_heard (job, f->part, info);
        else if (info)
            log_event (f->metad->log, LOG_LEVEL_WARN, "site", "another_has_the_number",
                       "site=%s site_job=%s job=%s its=%s", job->part[f->part].site,
                       job->part[f->part].site_job_id, job->id, info->grid_job_id);
    }
    free (f);
}

static bool part_ask (struct gridjob *job, uint32_t p)
{
    const struct jobpart *part = &job->part[p];
    struct site *site = site_find (job->metad, part->site);
    Nui__Local__V1__JobRequest request = NUI__LOCAL__V1__JOB_REQUEST__INIT;
    if (!site || !part->site_job_id[0])
        return false;
    struct following *f = malloc (sizeof *f);
    if (!f)
        abort ();
    *f = (struct following){job->metad, job->number, p, job->site_attempt};
    request.job_id = (char *)part->site_job_id;
    link_call (site->link, "Job", &request.base, ASK_TIMEOUT, followed, f);
    return true;
}

static uint32_t job_ask (struct gridjob *job)
{
    uint32_t asked = 0;
    if (!job_is_group (job))
        return job->place == SINGLE_PLACED && job->lead->asked_attempt != job->site_attempt &&
               part_ask (job, 0);
    for (uint32_t p = 0; p < job->part_count && job->record; p++) {
        enum part_state state = job->record->part[p].state;
        if (state >= PART_FIRM && state <= PART_STARTED && !job->part[p].asked)
            asked += part_ask (job, p);
    }
    return asked;
}

static void report_leading (struct metad *metad)
{
    struct gridjob *job, *next;
    uint32_t asked = 0;
    HASH_ITER (hh, metad->jobs, job, next) {
        if (asked < ASKS_AT_ONCE && job->lead && job->lead->taken && !job_is_elsewhere (job) &&
            !job_ended (job) && job->lead->voted && !job->reloaded)
            asked += job_ask (job);
    }
}

const struct metad_part report_part = {.leading = report_leading};
