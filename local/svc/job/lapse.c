/* lapse: jobs that can never run any more are ended with one sentence that says why: their deadline is lost, which
 * a plan tells, or what they wait for of others can never be, which depends.c tells. They cost nothing. Called by
 * the pass alone, so that no job goes while somebody has it in hand. */
#include <stdlib.h>
#include <string.h>

#include "local/svc/job.h"
#include "local/svc/job/life.h"
#include "local/svc/svc_i.h"

enum { LAPSES_MAX = 16 }; /* in one pass: each is a commit, and others' calls are to come between */

/* What waits at a resource manager of its own is ended there. */
static void lapse_end (struct svc *svc, struct site_job *job, const char *code, const char *text)
{
    struct err err = {0};
    char id[SITE_ID_MAX];
    int rc;
    log_event (svc->log, LOG_LEVEL_INFO, "svc", "job_lapsed", "job=%s reason=%s text=\"%s\"",
               site_id (svc, job->rec.number, id), code, text);
    if (job->rm.native) {
        rc = life_cancel (svc, job, code, text, &err);
    } else {
        svc_reason (job, code, "%s", text);
        rc = life_end_unstarted (svc, job, STORE_JOB_FAILED, &err);
    }
    if (rc != 0) /* the next pass finds it again */
        log_event (svc->log, LOG_LEVEL_ERROR, "svc", "not_lapsed", "error=\"%s\"", err.text);
    svc->lapses = svc->lapses || rc != 0;
}

static bool lapse_may (const struct site_job *job)
{
    return job && !job->part && job->rec.state == STORE_JOB_QUEUED;
}

void lapse_plan (struct svc *svc, const struct plan *plan)
{
    uint32_t count = plan->lapsed_count;
    if (count > LAPSES_MAX && !svc->sim) { /* the next plan names the rest again */
        count = LAPSES_MAX;
        pass_wake (svc);
    }
    for (uint32_t i = 0; i < count && !svc->mode; i++) {
        struct site_job *job = svc_job (svc, plan->lapsed[i].v);
        char text[160], deadline[QUANTITY_TEXT_MAX], limit[QUANTITY_TEXT_MAX];
        if (!lapse_may (job))
            continue;
        snprintf (text, sizeof text,
                  "with a wallclock limit of %s it cannot end by its deadline, %s, any more",
                  duration_format (job->rec.walltime, limit),
                  time_format_iso (job->deadline, deadline));
        lapse_end (svc, job, reason_code_name (REASON_DEADLINE), text);
        if (svc->sim)
            pass_wake (svc);
    }
}

/* Ends the first of those who wait for what can never be. Returns how many there were; *ended_out: are ended. */
static uint32_t lapse_some (struct svc *svc, uint32_t *ended_out)
{
    struct site_job *job, *next;
    uint64_t number[LAPSES_MAX];
    uint32_t count = 0;
    char text[512];
    bool never;
    svc->lapses = false;
    HASH_ITER (hh, svc->jobs, job, next) {
        if (count == LAPSES_MAX || !job->depends || !lapse_may (job))
            continue;
        depends_text (svc, job, text, sizeof text, &never);
        if (never)
            number[count++] = job->rec.number;
    }
    *ended_out = 0;
    for (uint32_t i = 0; i < count; i++) {
        job = svc_job (svc, number[i]);
        if (!job || !job->depends || !lapse_may (job))
            continue;
        depends_text (svc, job, text, sizeof text, &never);
        lapse_end (svc, job, "DependencyNeverMet", text);
        job = svc_job (svc, number[i]);
        *ended_out += !job || !job->depends;
    }
    svc->lapses = svc->lapses || count == LAPSES_MAX; /* there may be more */
    return count;
}

/* One that ends may be what another waits for: svc->lapses again. A simulation, in which nobody calls, goes on until
 * nobody is found. */
void lapse_depends (struct svc *svc)
{
    uint32_t count = 0, ended = 1;
    while (svc->lapses && !svc->mode && ended > 0) {
        count = lapse_some (svc, &ended);
        if (!svc->sim)
            break;
    }
    if (count == LAPSES_MAX && ended > 0)
        pass_wake (svc);
}
