/* What becomes of a job when the bank grants its hold, refuses it or does not answer (AMCFG). Called by the bank's link
 * alone; the request is hold.c's. */
#include <stdlib.h>
#include <string.h>

#include "local/svc/coalloc/coalloc.h"
#include "local/svc/grid/grid.h"
#include "local/svc/job.h"
#include "local/svc/job/charge.h"
#include "local/svc/job/fallback.h"
#include "local/svc/job/life.h"
#include "local/svc/svc_i.h"
#include "proto/base/clock.h"
#include "proto/base/text.h"
#include "proto/nui/v1/bank.pb-c.h"

/* Nobody waits for it any more. */
static void answer_unwanted (struct svc *svc, const struct bank_answer *answer)
{
    struct err err = {0};
    int rc = svc_begin (svc, &err);
    if (rc == 0)
        rc = life_answer_over (svc, answer, &err);
    if (svc_commit (svc, rc, &err) != 0)
        daemon_stop (svc->daemon, &err); /* the row is there: asked again after a restart */
    bank_link_poke (svc->bank);
}

/* The bank was away so long that its hold would end before the job: give it back, ask anew. */
static bool hold_too_old (const struct svc *svc, const struct site_job *job,
                          const struct bank_answer *answer)
{
    return answer->expires && answer->expires < svc_now (svc) + svc_job_length (svc, job);
}

static void ordinary_again (struct svc *svc, struct site_job *job, const struct bank_answer *answer)
{
    struct bank_answer over = *answer;
    over.text = "asked for too long ago";
    struct err err = {0};
    int rc = svc_begin (svc, &err);
    if (rc == 0)
        rc = life_answer_over (svc, &over, &err);
    if (life_hold_again (svc, job, rc, &err) != 0)
        daemon_stop (svc->daemon, &err);
}

bool life_too_late (struct svc *svc, struct site_job *job)
{
    static const duration_us prompt = 2 * US_PER_S;
    struct who who = svc_who (svc, job);
    time_us now = svc_now (svc);
    struct err err = {0};
    if (!job->in_cluster || job->rec.state != STORE_JOB_STARTING || job->part ||
        (job->dispatched && now - job->dispatched < prompt))
        return false;
    if (life_has_nodes (svc, job) &&
        cluster_job_delayed (svc->cluster, (struct job_id){job->rec.number}, &who, now, &err) !=
            ERR_CONFLICT)
        return false;
    svc_reason (job, "LateStart", "its start was delayed until its nodes were promised to others");
    return true;
}

static void ordinary_late (struct svc *svc, struct site_job *job, const struct bank_answer *answer)
{
    struct err err = {0};
    job->rec.hold_asked = false;
    int rc = svc_begin (svc, &err);
    if (rc == 0)
        rc = life_answer_over (svc, answer, &err);
    if (svc_commit (svc, rc, &err) != 0)
        daemon_stop (svc->daemon, &err);
    else
        life_requeue (svc, job, 0, deferral_none);
}

static void ordinary_granted (struct svc *svc, struct site_job *job,
                              const struct bank_answer *answer)
{
    struct err err = {0};
    if (life_too_late (svc, job)) {
        ordinary_late (svc, job, answer);
        return;
    }
    snprintf (job->rec.hold_id, sizeof job->rec.hold_id, "%s", answer->hold_id);
    snprintf (job->rec.pay_account, sizeof job->rec.pay_account, "%s", answer->account);
    job->rec.amount = answer->amount;
    job->rec.hold_asked = false;
    if (!job->rec.port) { /* none left: it runs without one */
        job->rec.port = ports_choose (svc);
        ports_mark (svc, job->rec.port, true);
    }
    svc_reason (job, "Launching", "the bank holds the credits; the job is being launched");
    int rc = svc_begin (svc, &err);
    bool starting = job->rec.state == STORE_JOB_STARTING; /* else someone started it without us */
    if (rc == 0)
        rc = local_store_hold_delete (svc->store, answer->key, &err);
    if (rc == 0 && starting)
        rc = payqos_take (svc, job, answer->qos, &err);
    if (rc == 0)
        rc = svc_job_write (svc, job, false, NULL, 0, &err);
    rc = svc_commit (svc, rc, &err);
    if (rc != 0) { /* the hold's row is there: asked again after a restart, with the same answer */
        daemon_stop (svc->daemon, &err);
        return;
    }
    if (!starting)
        return;
    payqos_core (svc, job);
    life_launch_or_fail (svc, job);
}

/* AMCFG JFACTION=CANCEL; the reason is set. One that the resource manager has as well ends there first. */
static void unpaid_cancel (struct svc *svc, struct site_job *job)
{
    struct err err = {0};
    char code[STORE_NAME_MAX], text[400];
    snprintf (code, sizeof code, "%s", job->rec.reason_code);
    text_printf (text, sizeof text, "%.380s", job->rec.reason_text ? job->rec.reason_text : "");
    if (job->rm.native) {
        life_requeue (svc, job, 0, deferral_none);
        if (life_cancel (svc, job, code, text, &err) == 0)
            return;
    } else if (life_end_unstarted (svc, job, STORE_JOB_CANCELLED, &err) == 0)
        return;
    daemon_stop (svc->daemon, &err);
}

static void ordinary_refused (struct svc *svc, struct site_job *job,
                              const struct bank_answer *answer)
{
    struct err err = {0};
    const struct policy *policy = svc->settings->policy;
    char id[SITE_ID_MAX];
    bool failed = strcmp (answer->code, defer_reason_name (DEFER_BANK_FAILURE)) == 0;
    svc_reason (job, answer->code, "%s: %s",
                defer_reason_name (failed ? DEFER_BANK_FAILURE : DEFER_CANNOT_DEBIT), answer->text);
    log_event (svc->log, LOG_LEVEL_INFO, "bank", "hold_refused", "job=%s code=%s text=\"%s\"",
               site_id (svc, job->rec.number, id), answer->code, answer->text);
    job->rec.hold_asked = false;
    int rc = svc_begin (svc, &err);
    if (rc == 0)
        rc = life_answer_over (svc, answer, &err);
    if (svc_commit (svc, rc, &err) != 0) {
        daemon_stop (svc->daemon, &err);
        return;
    }
    if (job->rec.state ==
        STORE_JOB_RUNNING) /* someone started it without us: charged without a hold */
        return;
    if (strcmp (answer->code, "InsufficientFunds") == 0 && fallback_take (svc, job)) {
        svc_reason (job, "FallbackAccount", "%s: account %s is asked next", answer->text,
                    job->rec.pay_account);
        life_requeue (svc, job, deferral_retry_at (svc, policy->poll_interval), deferral_none);
        if (svc_cluster_modify (svc, job, &err) != 0)
            log_event (svc->log, LOG_LEVEL_ERROR, "svc", "core_disagrees", "error=\"%s\"",
                       err.text);
        return;
    }
    if (svc->settings->am.action == AM_CANCEL) {
        unpaid_cancel (svc, job);
        return;
    }
    life_requeue (svc, job, deferral_retry_at (svc, policy->poll_interval),
                  defer_next (policy, job->rec.defer_count, svc_now (svc)));
}

/* AMCFG JFACTION=NONE: the request goes on, so that what comes of it late is given back. */
static void unheld_start (struct svc *svc, struct site_job *job)
{
    struct err err = {0};
    char id[SITE_ID_MAX];
    svc_reason (job, "Launching",
                "the bank does not answer; the job is being launched without a hold");
    if (!job->rec.port) {
        job->rec.port = ports_choose (svc);
        ports_mark (svc, job->rec.port, true);
    }
    int rc = svc_begin (svc, &err);
    if (rc == 0)
        rc = life_hold_return (svc, job, "started without it", &err);
    if (rc == 0)
        rc = svc_job_write (svc, job, true, NULL, 0, &err);
    if (svc_commit (svc, rc, &err) != 0) {
        daemon_stop (svc->daemon, &err);
        return;
    }
    log_event (svc->log, LOG_LEVEL_WARN, "bank", "started_unheld", "job=%s",
               site_id (svc, job->rec.number, id));
    life_launch_or_fail (svc, job);
}

static void ordinary_unreachable (struct svc *svc, struct site_job *job,
                                  const struct bank_answer *answer)
{
    const struct policy *policy = svc->settings->policy;
    enum am_action action = settings_am_away (&svc->settings->am);
    struct err err = {0};
    if (action == AM_NONE && !charge_unheld_may (job))
        action = AM_DEFER; /* nobody's word could be charged */
    if (job->rec.state != STORE_JOB_STARTING)
        action = AM_WAIT;
    switch (action) {
    case AM_NONE:
        unheld_start (svc, job);
        return;
    case AM_DEFER:
        svc_reason (job, "BankUnavailable", "%s: the bank does not answer (%s)",
                    defer_reason_name (DEFER_BANK_FAILURE), answer->text);
        life_requeue (svc, job, deferral_retry_at (svc, policy->poll_interval),
                      defer_next (policy, job->rec.defer_count, svc_now (svc)));
        return;
    case AM_CANCEL:
        svc_reason (job, "BankUnavailable", "the bank does not answer (%s)", answer->text);
        unpaid_cancel (svc, job);
        return;
    default:
        break;
    }
    svc_reason (job, "BankUnavailable", "the bank does not answer (%s); asked again until it does",
                answer->text);
    int rc = svc_begin (svc, &err);
    if (rc == 0)
        rc = svc_job_write (svc, job, true, NULL, 0, &err);
    svc_commit (svc, rc, &err);
}

void life_on_answer (void *arg, const struct bank_answer *given)
{
    struct svc *svc = arg;
    struct site_job *job = svc_job (svc, given->job);
    struct bank_answer seen = *given, *answer = &seen;
    struct err err = {0};
    bool wanted = false;
    char why[400];
    SVC_TELL (svc, bank_heard, (svc, answer->outcome != BANK_UNREACHABLE));
    if (local_store_hold_wanted (svc->store, answer->key, &wanted, &err) != 0) {
        daemon_stop (svc->daemon, &err);
        return;
    }
    wanted = wanted && job && job->rec.hold_asked &&
             memcmp (job->rec.hold_key, answer->key, sizeof job->rec.hold_key) == 0;
    if (wanted && answer->outcome == BANK_GRANTED && *answer->qos &&
        payqos_refused (svc, job, answer, why, sizeof why)) {
        seen.outcome = BANK_REFUSED;
        seen.code = defer_reason_name (DEFER_QOS_ACCESS);
        seen.text = why;
    }
    if (wanted && seen.outcome == BANK_GRANTED &&
        gridpolicy_too_cheap (svc, job, answer->amount, why, sizeof why)) {
        seen.outcome = BANK_REFUSED;
        seen.code = "MinPrice";
        seen.text = why;
    }
    if (!wanted) {
        if (answer->outcome != BANK_UNREACHABLE)
            answer_unwanted (svc, answer);
    } else if (job->part) {
        coalloc_on_answer (svc, job->part, answer);
    } else if (answer->outcome == BANK_UNREACHABLE) {
        ordinary_unreachable (svc, job, answer);
    } else if (answer->outcome == BANK_REFUSED) {
        ordinary_refused (svc, job, answer);
    } else if (hold_too_old (svc, job, answer)) {
        ordinary_again (svc, job, answer);
    } else {
        ordinary_granted (svc, job, answer);
    }
}
