/* Jobs are asked for after one of the two daemons was restored: see inquire.h. Called by report.c; it never decides what
 * a site's answer means for a job, which is its caller's. */
#include "meta/svc/inquire.h"

#include <stdlib.h>
#include <string.h>

#include "meta/job/loss.h"
#include "meta/single/single.h"

enum { ASKS_AT_ONCE = 64 };
#define ASK_TIMEOUT (10 * US_PER_S)

struct question {
    uint64_t number;
    uint32_t part;
    bool again;   /* not answered: when the site reports next */
    bool by_name; /* of the grid: its number there is a job of another metascheduler's */
};

struct site_inquiry {
    struct metad *metad;
    struct site *site;
    inquire_heard_fn heard;
    uint32_t count, next, open;
    bool back;   /* the site's numbers went back */
    uint64_t to; /* what the site's box begins behind */
    struct question question[];
};

struct asking {
    struct site_inquiry *inquiry;
    uint32_t index;
    char site_job_id[COALLOC_NAME_MAX];
};

/* Placed there, and not on its way to or from another: a move asks for itself. */
static bool is_there (const struct gridjob *job, uint32_t p, const struct site *site)
{
    const struct jobpart *part = &job->part[p];
    if (job_ended (job) || job_is_elsewhere (job) || !part->site_job_id[0] ||
        strcmp (part->site, site->name) != 0)
        return false;
    if (!job_is_group (job))
        return job->place == SINGLE_PLACED && !job->move.stage;
    return job->record && job->record->part[p].state >= PART_FIRM &&
           job->record->part[p].state <= PART_STARTED;
}

/* What a site that has forgotten a part would say, had it not: it is lost. */
static void lost_apply (const struct site_inquiry *inquiry, struct gridjob *job, uint32_t p,
                        const char *text)
{
    JobInfo info = NUI__LOCAL__V1__JOB_INFO__INIT;
    Nui__Common__V1__Reason reason = NUI__COMMON__V1__REASON__INIT;
    const JobInfo *known = job->part[p].info;
    if (known)
        info = *known;
    reason.code = (char *)LOSS_FORGOTTEN;
    reason.text = (char *)text;
    info.reason = &reason;
    info.site_job_id = job->part[p].site_job_id;
    info.grid_job_id = job->id;
    info.component = job->part[p].name;
    info.attempt = job_is_group (job) ? job->record->part[p].attempt : job->site_attempt;
    if (job_is_group (job))
        info.transaction = (ProtobufCBinaryData){16, job->record->transaction};
    info.state = NUI__LOCAL__V1__JOB_STATE__JOB_FAILED;
    info.exit_code = 255;
    info.end_us = clock_now_us ();
    info.change = (known ? known->change : 0) + 1;
    inquiry->heard (job, p, &info);
}

static bool may_have_begun (const JobInfo *info)
{
    return info && info->state != NUI__LOCAL__V1__JOB_STATE__JOB_QUEUED;
}

/* A site that only we have forgotten may have run it, and have purged it since: it is not run again. */
static void forgotten (const struct site_inquiry *inquiry, struct gridjob *job, uint32_t p)
{
    const char *name = inquiry->site->name;
    char text[COALLOC_TEXT_MAX];
    bool single = !job_is_group (job);
    log_event (inquiry->metad->log, LOG_LEVEL_WARN, "site", "job_forgotten", "site=%s job=%s", name,
               job->id);
    if (single && inquiry->back && (job->contact_us || !may_have_begun (job->part[0].info)) &&
        !job->cancel_wanted) {
        single_forgotten (job);
        return;
    }
    snprintf (text, sizeof text, "site %s does not know it any more: %s", name,
              inquiry->back
                  ? "it was restored to a moment before the job came, and has ended what ran of it"
                  : "this metascheduler was restored, and how the job ended is not kept that long");
    lost_apply (inquiry, job, p, text);
}

/* It has had more of the job than we remember. */
static void attempt_pass (struct gridjob *job, const JobInfo *info)
{
    if (job_is_group (job) || info->attempt <= job->site_attempt)
        return;
    job->site_attempt = info->attempt;
    if (job->attempt_last < info->attempt)
        job->attempt_last = info->attempt;
}

/* A site that was restored gives numbers again: what has the job's may be another's. What it has of the job under
 * another number is an earlier try. */
static bool is_of (const JobInfo *info, const struct gridjob *job, const struct question *question)
{
    return !question->by_name && strcmp (info->grid_job_id, job->id) == 0 &&
           strcmp (info->component, job->part[question->part].name) == 0;
}

static void asks_send (struct site_inquiry *inquiry);
static bool ask_send (struct site_inquiry *inquiry, uint32_t index);

/* The number is not ours to ask about: somebody else's job has it now, or the site refuses us altogether. By its name it
 * would be found if it were there, and a site that refuses us says so again. */
static bool asked_by_name (struct site_inquiry *inquiry, uint32_t index)
{
    struct question *question = &inquiry->question[index];
    if (!inquiry->back || question->by_name)
        return false;
    question->by_name = true;
    return ask_send (inquiry, index);
}

static void answered (void *arg, const struct rpc_result *result)
{
    struct asking *asking = arg;
    struct site_inquiry *inquiry = asking->inquiry;
    struct question *question = &inquiry->question[asking->index];
    inquiry->open--;
    struct gridjob *job =
        inquiry->metad->stopping ? NULL : job_live (inquiry->metad, question->number);
    bool there = job && is_there (job, question->part, inquiry->site) &&
                 strcmp (job->part[question->part].site_job_id, asking->site_job_id) == 0;
    question->again =
        there && (single_uncertain (result->status) || job->busy || job->reloaded || job->unsaved);
    uint32_t index = asking->index;
    free (asking);
    if (inquiry->metad->stopping)
        return;
    const JobInfo *info = result->status == RPC_OK ? (const JobInfo *)result->reply : NULL;
    bool settled = there && !question->again;
    if (settled && result->status == RPC_PERMISSION_DENIED && asked_by_name (inquiry, index))
        return;
    if (settled && (info ? !is_of (info, job, question) : result->status == RPC_NOT_FOUND)) {
        forgotten (inquiry, job, question->part);
    } else if (settled && info) {
        attempt_pass (job, info);
        inquiry->heard (job, question->part, info);
    }
    asks_send (inquiry);
}

/* By its name of the grid: of a job that was retried there since, the site tells how the last try is. */
static bool ask_send (struct site_inquiry *inquiry, uint32_t index)
{
    const struct question *question = &inquiry->question[index];
    struct gridjob *job = job_live (inquiry->metad, question->number);
    Nui__Local__V1__JobRequest request = NUI__LOCAL__V1__JOB_REQUEST__INIT;
    if (!job || !is_there (job, question->part, inquiry->site))
        return false;
    struct asking *asking = malloc (sizeof *asking);
    if (!asking)
        abort ();
    const struct jobpart *part = &job->part[question->part];
    *asking = (struct asking){.inquiry = inquiry, .index = index};
    memcpy (asking->site_job_id, part->site_job_id, sizeof asking->site_job_id);
    request.job_id = inquiry->back && !question->by_name ? (char *)part->site_job_id : job->id;
    request.component = (char *)part->name;
    inquiry->open++;
    link_call (inquiry->site->link, "Job", &request.base, ASK_TIMEOUT, answered, asking);
    return true;
}

/* All have been asked for: from the next event that the site has, everything is heard again. */
static void settle (struct site_inquiry *inquiry)
{
    struct metad *metad = inquiry->metad;
    struct site *site = inquiry->site;
    struct err err;
    err_clear (&err);
    if (metastore_site_ack (metad->store, site->name, inquiry->to, &err) != 0) {
        log_event (metad->log, LOG_LEVEL_ERROR, "site", "not_settled", "site=%s error=\"%s\"",
                   site->name, err.text);
        return;
    }
    site->acked = inquiry->to;
    free (inquiry);
    site->inquiry = NULL;
}

static void asks_send (struct site_inquiry *inquiry)
{
    uint32_t kept = 0;
    while (inquiry->open < ASKS_AT_ONCE && inquiry->next < inquiry->count)
        ask_send (inquiry, inquiry->next++);
    if (inquiry->open || inquiry->next < inquiry->count)
        return;
    for (uint32_t i = 0; i < inquiry->count; i++)
        if (inquiry->question[i].again)
            inquiry->question[kept++] = (struct question){.number = inquiry->question[i].number,
                                                          .part = inquiry->question[i].part};
    inquiry->count = inquiry->next = kept; /* they wait for the next report */
    if (kept == 0)
        settle (inquiry);
}

/* Every part that is there; list NULL: how many. */
static uint32_t there_list (struct metad *metad, const struct site *site, struct question *list)
{
    struct gridjob *job, *next;
    uint32_t count = 0;
    HASH_ITER (hh, metad->jobs, job, next)
        for (uint32_t p = 0; p < job->part_count; p++)
            if (is_there (job, p, site)) {
                if (list)
                    list[count] = (struct question){.number = job->number, .part = p};
                count++;
            }
    return count;
}

static void begin (struct metad *metad, struct site *site, inquire_heard_fn heard, uint64_t to,
                   bool back)
{
    uint32_t count = there_list (metad, site, NULL);
    struct site_inquiry *inquiry =
        calloc (1, sizeof *inquiry + count * sizeof inquiry->question[0]);
    if (!inquiry)
        abort ();
    *inquiry = (struct site_inquiry){
        .metad = metad, .site = site, .heard = heard, .count = count, .back = back, .to = to};
    there_list (metad, site, inquiry->question);
    site->inquiry = inquiry;
    if (site->acked || count)
        log_event (metad->log, LOG_LEVEL_ERROR, "site", "history_lost",
                   "site=%s ours=%llu theirs=%llu jobs=%u text=\"%s was "
                   "restored to an earlier moment: the site is asked for its jobs\"",
                   site->name, (unsigned long long)site->acked, (unsigned long long)to, count,
                   back ? "it" : "this metascheduler");
    asks_send (inquiry);
}

bool inquire_report (struct metad *metad, struct site *site, const SiteReport *report,
                     inquire_heard_fn heard, uint64_t *acked)
{
    struct site_inquiry *inquiry = site->inquiry;
    uint64_t first = report->events_from ? report->events_from : report->events_next;
    bool back = report->events_next <= site->acked;
    if (inquiry && !inquiry->open) {
        inquiry->next = 0;
        asks_send (inquiry);
    } else if (!inquiry && report->events_next && (back || first > site->acked + 1)) {
        begin (metad, site, heard, first - 1, back);
    }
    *acked = site->inquiry && site->inquiry->to < site->acked ? site->inquiry->to : site->acked;
    return site->inquiry != NULL;
}
