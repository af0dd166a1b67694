/* Who calls: waits.c before a job is placed, submit.c, and the hub when a job is listed, saved or gone. It wakes jobs and changes nothing
 * that is durable. */
#include "meta/place/gridlimits.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <utlist.h>

#include "meta/job/peers.h"
#include "proto/base/text.h"
#include "proto/job/jobcheck.h"

enum { LIMIT_WAKES = 64 }; /* that are looked at when one has ended */

struct gridlimit {
    UT_hash_handle hh; /* metad->limits */
    char submitter[PRINCIPAL_URI_MAX];
    uint32_t listed;
    int64_t jobs, procs;   /* with sites, or being placed */
    struct gridjob *waits; /* ascending */
};

static const struct metad_limit *limit_rule (const struct metad *metad, const char *submitter)
{
    const struct metad_config *config = metad->config;
    const struct metad_limit *any = NULL;
    struct principal who;
    if (!config->limit_count || principal_parse (submitter, &who, NULL) != 0)
        return NULL;
    for (uint32_t i = 0; i < config->limit_count; i++) {
        if (strcmp (config->limit[i].user, who.name) == 0)
            return &config->limit[i];
        if (strcasecmp (config->limit[i].user, "DEFAULT") == 0)
            any = &config->limit[i];
    }
    return any;
}

/* What this one gives out of a limit; INT64_MAX: there is none. */
static int64_t limit_share (const struct metad *metad, int64_t limit)
{
    const struct peers *peers = metad->peers;
    if (!limit)
        return INT64_MAX;
    if (!peers)
        return limit;
    return limit / peers->count + (peers->self < limit % peers->count);
}

/* In its largest size: which one it will be is not known before it is placed. */
static int64_t limit_procs (const JobMessage *job)
{
    int64_t sum = 0;
    for (size_t c = 0; c < job->n_components; c++) {
        uint64_t most = 0;
        for (uint32_t s = 0; s <= job->components[c]->n_shapes; s++) {
            uint64_t procs = jobcheck_procs (job->components[c], s);
            most = procs > most ? procs : most;
        }
        sum += (int64_t)most;
    }
    return sum;
}

int gridlimits_check (const struct metad *metad, const JobMessage *job, const char *submitter,
                      struct err *err)
{
    const struct metad_limit *rule = limit_rule (metad, submitter);
    if (!rule || limit_procs (job) <= limit_share (metad, rule->procs))
        return 0;
    return err_set (err, ERR_LIMIT,
                    "the job asks for %lld processors, and GRIDUSERCFG[%s] MAXPROC=%lld is for all "
                    "of a user's jobs in the grid%s",
                    (long long)limit_procs (job), rule->user, (long long)rule->procs,
                    metad->peers ? ", of which this metascheduler gives out its share" : "");
}

static struct gridlimit *limit_of (const struct gridjob *job)
{
    struct gridlimit *limit = NULL;
    HASH_FIND_STR (job->metad->limits, job->submitter, limit);
    return limit;
}

static bool limit_room (const struct gridjob *job, const struct gridlimit *limit,
                        const struct metad_limit *rule)
{
    const struct metad *metad = job->metad;
    return limit->jobs < limit_share (metad, rule->jobs) &&
           limit_procs (job->job) <= limit_share (metad, rule->procs) - limit->procs;
}

static void limit_turn (struct gridlimit *limit, struct gridjob *job, enum array_turn turn)
{
    if (job->limit == turn)
        return;
    if (job->limit == ARRAY_WAITS)
        DL_DELETE2 (limit->waits, job, limit_prev, limit_next);
    if (job->limit == ARRAY_PLACED) {
        limit->jobs--;
        limit->procs -= limit_procs (job->job);
    }
    job->limit = turn;
    if (turn == ARRAY_PLACED) {
        limit->jobs++;
        limit->procs += limit_procs (job->job);
    }
    if (turn != ARRAY_WAITS)
        return;
    struct gridjob *after = limit->waits ? limit->waits->limit_prev : NULL;
    while (after && after->number > job->number)
        after = after == limit->waits ? NULL : after->limit_prev;
    if (after)
        DL_APPEND_ELEM2 (limit->waits, after, job, limit_prev, limit_next);
    else
        DL_PREPEND2 (limit->waits, job, limit_prev, limit_next);
}

/* By what is durable of it; one that is being placed goes on to be. */
static enum array_turn limit_now (const struct gridjob *job)
{
    if (job_ended (job) || job_is_elsewhere (job))
        return ARRAY_ASIDE;
    if (job->place == SINGLE_PLACED || job->place == SINGLE_SENDING ||
        (job->record && job->record->phase >= COALLOC_PREPARE))
        return ARRAY_PLACED;
    if (job->held == JOB_HELD || job->retry_us > clock_now_us ())
        return ARRAY_ASIDE;
    return job->limit;
}

/* Those that have room are woken: each asks again, and the first ones get it. */
static void limit_go (struct metad *metad, struct gridlimit *limit)
{
    const struct metad_limit *rule = limit_rule (metad, limit->submitter);
    struct gridjob *job, *next;
    int64_t jobs = limit->jobs, procs = limit->procs;
    uint32_t looked = 0;
    DL_FOREACH_SAFE2 (limit->waits, job, next, limit_next)
    {
        int64_t asks = limit_procs (job->job);
        if (looked++ == LIMIT_WAKES || (rule && jobs >= limit_share (metad, rule->jobs)))
            break;
        if (rule && asks > limit_share (metad, rule->procs) - procs)
            continue;
        jobs++;
        procs += asks;
        job_timer (job, 0);
    }
}

bool gridlimits_admit (struct gridjob *job, struct coalloc_reason *reason)
{
    const struct metad_limit *rule = limit_rule (job->metad, job->submitter);
    struct gridlimit *limit = limit_of (job);
    if (!limit || job->limit == ARRAY_PLACED)
        return true;
    if (!rule || limit_room (job, limit, rule)) {
        limit_turn (limit, job, ARRAY_PLACED);
        return true;
    }
    limit_turn (limit, job, ARRAY_WAITS);
    snprintf (reason->code, sizeof reason->code, "GridLimit");
    bool jobs = limit->jobs >= limit_share (job->metad, rule->jobs);
    text_printf (reason->text, sizeof reason->text,
                 "%lld jobs of its user with %lld processors are with sites: GRIDUSERCFG[%.60s] "
                 "%s=%lld in the whole grid%s",
                 (long long)limit->jobs, (long long)limit->procs, rule->user,
                 jobs ? "MAXJOB" : "MAXPROC", (long long)(jobs ? rule->jobs : rule->procs),
                 job->metad->peers ? ", of which this metascheduler gives out its share" : "");
    return false;
}

/* ---- what the hub tells */

static void limit_job_listed (struct gridjob *job)
{
    struct metad *metad = job->metad;
    struct gridlimit *limit = limit_of (job);
    if (!limit) {
        limit = calloc (1, sizeof *limit);
        if (!limit)
            abort ();
        snprintf (limit->submitter, sizeof limit->submitter, "%s", job->submitter);
        HASH_ADD_STR (metad->limits, submitter, limit);
    }
    limit->listed++;
    job->limit = ARRAY_ASIDE;
}

static void limit_job_unlisted (struct gridjob *job)
{
    struct gridlimit *limit = limit_of (job);
    limit_turn (limit, job, ARRAY_ASIDE);
    if (--limit->listed) {
        limit_go (job->metad, limit);
        return;
    }
    HASH_DEL (job->metad->limits, limit);
    free (limit);
}

static void limit_job_saved (struct gridjob *job, bool with_record)
{
    struct gridlimit *limit = limit_of (job);
    enum array_turn before = job->limit;
    (void)with_record;
    if (!limit)
        return;
    limit_turn (limit, job, limit_now (job));
    if (before == ARRAY_PLACED && job->limit != ARRAY_PLACED)
        limit_go (job->metad, limit);
}

/* Before anything is woken after a restart: what is with sites counts. */
static int limit_job_loaded (struct gridjob *job, struct arena *arena, struct err *err)
{
    struct gridlimit *limit = limit_of (job);
    (void)arena;
    (void)err;
    if (limit)
        limit_turn (limit, job, limit_now (job));
    return 0;
}

static void limit_close (struct metad *metad)
{
    struct gridlimit *limit, *next;
    HASH_ITER (hh, metad->limits, limit, next) {
        HASH_DEL (metad->limits, limit);
        free (limit);
    }
}

const struct metad_part gridlimits_part = {.close = limit_close,
                                           .job_listed = limit_job_listed,
                                           .job_unlisted = limit_job_unlisted,
                                           .job_saved = limit_job_saved,
                                           .job_loaded = limit_job_loaded};
