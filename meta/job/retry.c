/* Whether a job that ended badly is run again, and when. Called by the drivers of jobs with ends that sites have told: no
 * run may be under way when the next one begins. */
#include "meta/job/retry.h"

#include <stdio.h>
#include <string.h>

#include "proto/base/clock.h"
#include "proto/base/text.h"
#include "proto/job/jobcheck.h"

#define DELAY_MAX (3600 * US_PER_S)
static const char code[] = "Retry";

int retry_check (const JobMessage *job, struct err *err)
{
    const Nui__Common__V1__Retry *retry = job->retry;
    if (!retry)
        return 0;
    if (retry->times > RETRY_TIMES_MAX)
        return err_set (err, ERR_INVALID, "%u retries, allowed are %d", retry->times,
                        RETRY_TIMES_MAX);
    if (retry->delay_us < 0 || retry->delay_us > DELAY_MAX)
        return err_set (err, ERR_INVALID, "the delay before a retry must be between 0 and an hour");
    if (retry->n_exit_codes > RETRY_CODES_MAX)
        return err_set (err, ERR_INVALID, "more than %d exit codes to retry on", RETRY_CODES_MAX);
    for (size_t i = 0; i < retry->n_exit_codes; i++)
        if (retry->exit_codes[i] < 1 || retry->exit_codes[i] > 255)
            return err_set (err, ERR_INVALID, "exit code %u to retry on is not between 1 and 255",
                            retry->exit_codes[i]);
    for (size_t i = 0; i < job->n_flags && retry->times; i++)
        if (strcmp (job->flags[i], "NORESTART") == 0)
            return err_set (err, ERR_INVALID,
                            "a job that must not be run twice (NORESTART) has no retries");
    return 0;
}

/* What a run that ended so speaks for: the site's failures and the exit codes that were named. */
static bool end_counts (const Nui__Common__V1__Retry *retry, const JobInfo *info)
{
    if (info->state != NUI__LOCAL__V1__JOB_STATE__JOB_FAILED)
        return false;
    if (retry->n_exit_codes == 0 ||
        (info->reason && strcmp (info->reason->code, "NodeFailure") == 0))
        return true;
    for (size_t i = 0; i < retry->n_exit_codes; i++)
        if ((int64_t)retry->exit_codes[i] == info->exit_code)
            return true;
    return false;
}

/* Each component that ended badly by itself did so in a way that counts. What was taken back because
 * of another is Cancelled. */
static bool ends_count (const struct gridjob *job)
{
    for (uint32_t p = 0; p < job->part_count; p++) {
        const JobInfo *info = job->part[p].info;
        bool present =
            info &&
            (!job->record || (info->transaction.len == 16 &&
                              memcmp (info->transaction.data, job->record->transaction, 16) == 0));
        if (present &&
            (info->state == NUI__LOCAL__V1__JOB_STATE__JOB_FAILED ||
             info->state == NUI__LOCAL__V1__JOB_STATE__JOB_TIMEOUT) &&
            !end_counts (job->job->retry, info))
            return false;
    }
    return true;
}

/* Whether a run that begins then can still keep the job's bounds. */
static bool in_time (const struct gridjob *job, time_us start)
{
    const JobMessage *body = job->job;
    if (body->not_after_us && start > body->not_after_us)
        return false;
    for (size_t c = 0; c < body->n_components && body->deadline_us; c++)
        if (start + body->components[c]->offset_us + jobshape_walltime_min (body->components[c]) >
            body->deadline_us)
            return false;
    return true;
}

bool retry_takes (struct gridjob *job, const char *why)
{
    const Nui__Common__V1__Retry *retry = job->job->retry;
    char when[QUANTITY_TEXT_MAX];
    if (!retry || job->cancel_wanted || job->retries >= retry->times || !ends_count (job))
        return false;
    duration_us delay = retry->delay_us;
    for (uint32_t i = 0; i < job->retries && delay < DELAY_MAX; i++)
        delay *= 2;
    time_us at = clock_now_us () + (delay < DELAY_MAX ? delay : DELAY_MAX);
    if (!in_time (job, at))
        return false;
    job->retries++;
    job->retry_us = at;
    job_reason (job, code, "run %u of %u from %s on; before: %s", job->retries + 1,
                retry->times + 1, time_format_table (at, when), why);
    return true;
}

bool retry_waits (struct gridjob *job, struct coalloc_reason *reason)
{
    time_us now = clock_now_us ();
    char when[QUANTITY_TEXT_MAX];
    if (job->retry_us <= now)
        return false;
    job_timer (job, job->retry_us - now);
    if (strcmp (job->reason.code, code) == 0) {
        *reason = job->reason;
        return true;
    }
    snprintf (reason->code, sizeof reason->code, "%s", code);
    text_printf (reason->text, sizeof reason->text, "runs again from %s on",
                 time_format_table (job->retry_us, when));
    return true;
}
