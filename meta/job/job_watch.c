/* What users see of a job: its status, and the calls that watch it. An end that a majority of the group has not confirmed is
 * never shown (job_untold). */
#include "meta/job/job_i.h"

#include <stdlib.h>
#include <string.h>

#include "meta/job/loss.h"
#include "meta/job/peers.h"
#include "meta/job/sites.h"
#include "proto/job/element.h"

/* Of a job, who all are told of each change in one turn of the loop. */
enum { WATCHERS_MAX = 64 };

struct watcher {
    struct gridjob *job;
    struct rpccall *call;
    struct watcher *next;
    bool full;   /* stop until the ready hook */
    bool behind; /* changed while full */
    bool told;
    uint64_t change; /* what it was told last */
};

static Nui__Common__V1__Reason *reason_message (const char *code, const char *text,
                                                struct arena *arena)
{
    Nui__Common__V1__Reason *reason = arena_new (arena, Nui__Common__V1__Reason);
    nui__common__v1__reason__init (reason);
    reason->code = arena_strdup (arena, code);
    reason->text = arena_strdup (arena, text);
    return reason;
}

/* A site that holds a part of a live job and does not report is what the user should hear of. */
static const char *silent_site (const struct gridjob *job)
{
    if (job_ended (job))
        return NULL;
    for (uint32_t p = 0; p < job->part_count; p++) {
        struct site *site = job->part[p].site[0] ? site_find (job->metad, job->part[p].site) : NULL;
        bool silent =
            site && !site_up (site) && !site_worth_asking (job->metad, site, clock_monotonic_us ());
        if ((silent || (site && loss_reported (job, job->part[p].site))) &&
            !info_ended (job->part[p].info))
            return job->part[p].site;
    }
    return NULL;
}

/* One that has a part of a live job and is in the configuration no more: nothing is heard of it, and nothing said to it. */
static const char *gone_site (const struct gridjob *job)
{
    for (uint32_t p = 0; p < job->part_count && !job_ended (job); p++)
        if (job->part[p].site[0] && !site_find (job->metad, job->part[p].site) &&
            !info_ended (job->part[p].info))
            return job->part[p].site;
    return NULL;
}

static Nui__Common__V1__Reason *gone_reason (const struct gridjob *job, const char *site,
                                             struct arena *arena)
{
    return reason_message (
        "SiteGone",
        arena_printf (
            arena,
            "site %s is in the grid's configuration no more: what it has of the job goes "
            "on there and is charged, unheard of here; %s when the site is back",
            site, job->cancel_wanted ? "it is cancelled" : "its end is told, or it is cancelled,"),
        arena);
}

char *job_array_id (const struct gridjob *job, struct arena *arena)
{
    struct strbuf text = STRBUF_INIT;
    const uint32_t count = element_count (job->job);
    uint32_t *index = arena_array (arena, count + 1u, sizeof *index);
    element_indexes (job->job, index);
    strbuf_printf (&text, "grid.%llu[", (unsigned long long)job->array);
    element_ranges_text (index, count, 200, &text);
    strbuf_printf (&text, "]");
    char *id = arena_strdup (arena, strbuf_text (&text));
    strbuf_free (&text);
    return id;
}

Nui__Meta__V1__JobStatus *job_status (struct gridjob *job, struct arena *arena)
{
    Nui__Meta__V1__JobStatus *status = arena_new (arena, Nui__Meta__V1__JobStatus);
    nui__meta__v1__job_status__init (status);
    const char *silent = silent_site (job), *gone = gone_site (job);
    status->grid_job_id = job->id;
    status->state = job_state (job);
    if (job->lead && !job_over (job) && !peers_lead (job->metad))
        status->reason = reason_message (
            "Alone",
            "this metascheduler reaches too few of its group: another may have gone on with the job",
            arena);
    else if (job_untold (job))
        status->reason =
            reason_message ("Ending", "its end is being made known to the group", arena);
    else if (gone)
        status->reason = gone_reason (job, gone, arena);
    else if (silent && loss_reported (job, silent))
        status->reason = reason_message (
            LOSS_CODE,
            arena_printf (arena,
                          "site %s is lost: it has not reported for more than %lld s; the job %s",
                          silent, (long long)(job->metad->config->site_lost / US_PER_S),
                          job->contact_us ? "is given to another" : "stays with it"),
            arena);
    else if (silent)
        status->reason = reason_message (
            "SiteDown",
            arena_printf (arena, "site %s has not reported for %d s", silent, SITE_UP_S), arena);
    else
        status->reason = reason_message (job->reason.code, job->reason.text, arena);
    status->name = job->job->name;
    status->submitter = job->submitter;
    status->account = job->job->account;
    status->submit_us = job->submit_us;
    status->start_us = job->start_us;
    status->end_us = job_untold (job) ? 0 : job->end_us;
    status->price_micro = job->price;
    status->cost_max_micro = job->job->cost_max_micro;
    status->attempts = job->attempts;
    status->retries = job->retries;
    status->change = job->change;
    status->start_is_estimate = job->start_is_estimate;
    status->n_components = job->part_count;
    status->components = arena_array (arena, job->part_count, sizeof *status->components);
    for (uint32_t p = 0; p < job->part_count; p++) {
        Nui__Meta__V1__ComponentStatus *c = arena_new (arena, Nui__Meta__V1__ComponentStatus);
        nui__meta__v1__component_status__init (c);
        const struct site *site =
            job->part[p].site[0] ? site_find (job->metad, job->part[p].site) : NULL;
        c->name = job->part[p].name;
        c->site = job->part[p].site;
        if (site)
            c->site_server = arena_strdup (arena, site_server (site));
        c->job = job->part[p].info;
        if (job->part[p].answers) {
            c->n_answers = job->part[p].answers->n_answers;
            c->answers = job->part[p].answers->answers;
        }
        status->components[p] = c;
    }
    return status;
}

static void watcher_free (struct watcher *watcher)
{
    struct gridjob *job = watcher->job;
    struct watcher **at = &job->watchers;
    while (*at != watcher)
        at = &(*at)->next;
    *at = watcher->next;
    job->metad->watchers--;
    free (watcher);
}

static void watcher_send (struct watcher *watcher)
{
    struct arena *arena;
    if (watcher->told && watcher->change == watcher->job->change)
        return;
    if (watcher->full) {
        watcher->behind = true;
        return;
    }
    arena = arena_create (0);
    watcher->behind = false;
    watcher->told = true;
    watcher->change = job_untold (watcher->job)
                          ? 0
                          : watcher->job->change; /* its end is told under the same number */
    watcher->full = !rpccall_send (watcher->call, &job_status (watcher->job, arena)->base);
    arena_destroy (arena);
}

static void watcher_cancelled (void *arg)
{
    struct watcher *watcher = arg;
    struct gridjob *job = watcher->job;
    struct rpccall *call = watcher->call;
    watcher_free (watcher);
    rpccall_finish (call, RPC_CANCELLED, NULL);
    job_retire (job);
}

static void watcher_end (struct watcher *watcher)
{
    struct rpccall *call = watcher->call;
    rpccall_on_cancel (call, NULL, NULL);
    rpccall_on_ready (call, NULL, NULL);
    watcher_free (watcher);
    rpccall_finish (call, RPC_OK, NULL);
}

static void watcher_ready (void *arg)
{
    struct watcher *watcher = arg;
    struct gridjob *job = watcher->job;
    watcher->full = false;
    if (watcher->behind)
        watcher_send (watcher);
    if (job_over (job) && !watcher->behind) {
        watcher_end (watcher);
        job_retire (job);
    }
}

void job_watchers_tell (struct gridjob *job)
{
    struct watcher *next;
    for (struct watcher *watcher = job_untold (job) ? NULL : job->watchers; watcher;
         watcher = next) {
        next = watcher->next;
        watcher_send (watcher);
        if (job_over (job) && !watcher->behind)
            watcher_end (watcher);
    }
}

void job_watchers_take (struct metad *metad, struct gridjob *job, struct watcher *watchers,
                        const struct err *why)
{
    for (struct watcher *next; watchers; watchers = next) {
        next = watchers->next;
        if (!job) {
            rpccall_on_cancel (watchers->call, NULL, NULL);
            rpccall_on_ready (watchers->call, NULL, NULL);
            rpccall_fail (watchers->call, why);
            metad->watchers--;
            free (watchers);
            continue;
        }
        watchers->job = job;
        watchers->next = job->watchers;
        job->watchers = watchers;
    }
}

void job_unwatch (struct gridjob *job)
{
    while (job->watchers) {
        struct rpccall *call = job->watchers->call;
        rpccall_on_cancel (call, NULL, NULL);
        rpccall_on_ready (call, NULL, NULL);
        watcher_free (job->watchers);
        rpccall_finish (call, RPC_UNAVAILABLE, "the metascheduler stops");
    }
}

void job_watch (struct gridjob *job, struct rpccall *call)
{
    uint32_t count = 0;
    for (const struct watcher *one = job->watchers; one; one = one->next)
        count++;
    struct watcher *watcher = count < WATCHERS_MAX ? calloc (1, sizeof *watcher) : NULL;
    if (!watcher) {
        rpccall_finish (call, RPC_RESOURCE_EXHAUSTED,
                        count < WATCHERS_MAX ? "no memory to watch a job"
                                             : "64 calls watch the job already");
        return;
    }
    watcher->job = job;
    watcher->call = call;
    watcher->next = job->watchers;
    job->watchers = watcher;
    job->metad->watchers++;
    rpccall_on_cancel (call, watcher_cancelled, watcher);
    rpccall_on_ready (call, watcher_ready, watcher);
    watcher_send (watcher);
    if (job_over (job) && !watcher->behind) {
        watcher_end (watcher);
        job_retire (job);
    }
}
