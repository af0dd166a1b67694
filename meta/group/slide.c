/* a co-allocated group that waits for its moment goes to an earlier one when sites free up, and never
 * gives up its place before it has the new one.
 *
 * It is tried from time to time (MOVEINTERVAL) while the group is firm, and as soon as all its sites report that they have
 * that much free, with a second record of its own transaction (gridjob.slide) that the same state machine drives: asked
 * for an earlier slot, clearly earlier (MOVEGAIN, MOVESHARE), prepared and committed at every site. What the
 * group has at a site is not in its own way there (PrepareRequest.replaces). When all of it is firm the two
 * change places, durably, and what is then the second one is released. Whatever goes wrong before, it is
 * the second one that ends. Only the first ever gets a START.
 *
 * The second record is on disk as soon as a site may hold something for it. */
#include "meta/group/group_i.h"

#include <stdio.h>
#include <string.h>
#include <utlist.h>

#include "meta/job/sites.h"
#include "proto/base/clock.h"
#include "proto/job/jobcheck.h"

#define SLIDE_AGAIN (2 * US_PER_S)

static bool is_firm (const struct coalloc_record *record)
{
    return record->phase == COALLOC_READY && !record->cancel_wanted;
}

void slide_unlist (struct gridjob *job)
{
    if (job->firm_listed)
        DL_DELETE2 (job->metad->firm, job, firm_prev, firm_next);
    job->firm_listed = false;
}

void slide_list (struct gridjob *job)
{
    bool waits = job->record && is_firm (job->record) && !job_ended (job);
    if (waits == job->firm_listed)
        return;
    if (!waits) {
        slide_unlist (job);
        return;
    }
    DL_APPEND2 (job->metad->firm, job, firm_prev, firm_next);
    job->firm_listed = true;
}

/* By their reports all its sites could begin with it now. */
static bool all_have_room (const struct gridjob *job)
{
    for (uint32_t p = 0; p < job->part_count; p++) {
        const char *site = job->record->part[p].site;
        uint64_t procs = 0, free = 0;
        for (uint32_t q = 0; q < job->part_count; q++)
            if (strcmp (job->record->part[q].site, site) == 0)
                procs += jobcheck_procs (job->job->components[q], job->record->part[q].shape);
        const struct site *at = site_find (job->metad, site);
        free = at && at->report ? at->report->procs_free : 0;
        if (free < procs)
            return false;
    }
    return true;
}

bool slide_hear (struct gridjob *job, const struct site *site)
{
    bool there = false;
    duration_us now = clock_monotonic_us (), at;
    for (uint32_t p = 0; p < job->part_count && job->record; p++)
        there = there || strcmp (job->record->part[p].site, site->name) == 0;
    if (!there || !job->metad->config->move_interval || job->slide || job->job->reserve ||
        !is_firm (job->record) || !all_have_room (job))
        return false;
    at = job->slid_mono && job->slid_mono + SLIDE_AGAIN > now ? job->slid_mono + SLIDE_AGAIN : now;
    if (job->look_mono && job->look_mono <= at)
        return false;
    job->look_mono = at;
    return true;
}

duration_us slide_due (struct gridjob *job)
{
    duration_us interval = job->metad->config->move_interval, now = clock_monotonic_us ();
    if (!interval || job->slide || !is_firm (job->record) || job->job->reserve)
        return INT64_MAX;  /* people count on the moment of a co-reservation */
    if (!job->look_mono) { /* not all at one moment */
        uint64_t random;
        random_bytes (&random, sizeof random);
        job->look_mono = now + interval / 2 + (duration_us)(random % (uint64_t)(interval + 1));
    }
    return job->look_mono > now ? job->look_mono - now : 0;
}

/* The latest common moment that would be worth the change; 0: none. Nothing is lost by it, as a place in a queue is that a
 * job moves from: MOVEGAIN is always enough, and where little is left to wait a sixth of it may be. */
static time_us worth (const struct gridjob *job)
{
    const struct metad_config *config = job->metad->config;
    time_us now = clock_now_us (), slot = job->record->slot_start;
    duration_us wait = slot - now, gain = wait / 100 * config->move_share;
    if (gain < config->move_gain / 6)
        gain = config->move_gain / 6;
    if (gain > config->move_gain)
        gain = config->move_gain;
    return wait > gain + config->policy.lead ? slot - gain : 0;
}

bool slide_prepare (struct gridjob *job)
{
    const struct coalloc_record *record = job->record;
    time_us latest = worth (job);
    job->look_mono = 0;
    job->slid_mono = clock_monotonic_us ();
    if (!latest)
        return false;
    struct coalloc_record *slide = coalloc_copy (record);
    if (!slide)
        return false;
    memset (slide->transaction, 0, sizeof slide->transaction);
    memset (&slide->reason, 0, sizeof slide->reason);
    slide->phase = COALLOC_NEW;
    slide->tries = 0;
    slide->decided = false;
    slide->not_after = latest;
    slide->expires = 0; /* it has been accepted */
    if (slide->prefer == CHOOSE_CHEAPEST && (!slide->cost_max || job->price < slide->cost_max))
        slide->cost_max = job->price;
    for (uint32_t p = 0; p < slide->part_count; p++) {
        memset (&slide->part[p], 0, sizeof slide->part[p]);
        memcpy (slide->part[p].name, record->part[p].name, sizeof slide->part[p].name);
        slide->part[p].offset = record->part[p].offset;
        slide->part[p].walltime = job->job->components[p]->walltime_us;
    }
    job->slide = slide;
    return true;
}

static void peer_drop (Nui__Common__V1__Peer **peer)
{
    if (*peer)
        nui__common__v1__peer__free_unpacked (*peer, NULL);
    *peer = NULL;
}

static void slide_forget (struct gridjob *job)
{
    coalloc_destroy (job->slide);
    job->slide = NULL;
    job->slide_wake_mono = 0;
    for (uint32_t p = 0; p < job->part_count; p++) {
        struct jobpart *part = &job->part[p];
        part->dirty = part->dirty || part->next_peer;
        part->next_job_id[0] = '\0';
        peer_drop (&part->next_peer);
    }
}

/* The earlier slot becomes the group's; the job's own bounds go with its place. */
static void change_places (struct gridjob *job)
{
    struct coalloc_record *old = job->record, *fresh = job->slide;
    log_event (job->metad->log, LOG_LEVEL_INFO, "slide", "taken", "job=%s earlier_s=%lld", job->id,
               (long long)((old->slot_start - fresh->slot_start) / US_PER_S));
    fresh->created = old->created;
    fresh->not_after = old->not_after;
    fresh->expires = old->expires;
    fresh->cost_max = old->cost_max;
    fresh->tries += old->tries;
    job->record = fresh;
    job->slide = old;
    job->slide_wake_mono = 0;
    for (uint32_t p = 0; p < job->part_count; p++) {
        struct jobpart *part = &job->part[p];
        memcpy (part->site, fresh->part[p].site, sizeof part->site);
        memcpy (part->site_job_id, part->next_job_id, sizeof part->site_job_id);
        peer_drop (&part->peer);
        part->peer = part->next_peer;
        part->next_peer = NULL;
        part->next_job_id[0] = '\0';
        if (part->info)
            nui__local__v1__job_info__free_unpacked (part->info, NULL);
        part->info = NULL;
        part->dirty = true;
    }
}

void slide_settle (struct gridjob *job)
{
    if (job->slide && (job->slide->phase == COALLOC_BACKOFF || job->slide->phase == COALLOC_ENDED))
        slide_forget (job);
    if (job->slide && is_firm (job->slide) && is_firm (job->record) &&
        job->slide->slot_start < job->record->slot_start)
        change_places (job);
}

bool slide_surplus (const struct gridjob *job)
{
    if (!job->slide || job->slide->cancel_wanted)
        return false;
    return !is_firm (job->record) || job->slide->slot_start > job->record->slot_start;
}

bool slide_durable (const struct gridjob *job)
{
    return job->slide && job->slide->phase >= COALLOC_PREPARE;
}
