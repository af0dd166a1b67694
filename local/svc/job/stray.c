/* stray: what runs here and is in no record: the state was restored to a moment before the job came (or is new, and
 * JOBDIR is not). Nobody knows of it any more who could end or charge it, so it is ended: TERM, KILL after the grace. Its hold, which
 * its directory names, is given back: what it used is not charged. Until its end is known its metascheduler, which asks,
 * is told neither that it is here nor that it is not
 * (jobs_find). What there is a record of is never touched here. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "local/rm/jobdir.h"
#include "local/svc/job/jobs.h"
#include "local/svc/job/life.h"
#include "proto/base/text.h"

/* Whether the record of that number is of this directory. */
static bool is_known (struct svc *svc, uint64_t number, const char *mark)
{
    struct store_job rec = {0};
    struct err err = {0};
    char its[RM_MARK_MAX];
    int rc = local_store_job_get (svc->store, number, &rec, &err);
    if (rc == 0)
        life_mark (svc, &rec, its);
    bool known = rc == 0 ? strcmp (its, mark) == 0 : rc != ERR_NOT_FOUND;
    store_job_free (&rec);
    return known;
}

static void hold_return (struct svc *svc, uint64_t number, const char *hold)
{
    struct err err = {0};
    int rc = svc->bank && *hold ? svc_begin (svc, &err) : ERR_NOT_FOUND;
    if (rc == ERR_NOT_FOUND)
        return;
    if (rc == 0)
        rc = life_hold_release (svc, number, hold,
                                "the site was restored to a moment before the job came", &err);
    if (svc_commit (svc, rc, &err) != 0)
        log_event (svc->log, LOG_LEVEL_ERROR, "svc", "hold_not_returned", "hold=%s error=\"%s\"",
                   hold, err.text);
}

static void on_dir (void *arg, const struct jobdir_left *left)
{
    struct svc *svc = arg;
    struct err err = {0};
    if (is_known (svc, left->number, left->mark))
        return;
    struct svc_stray *stray = calloc (1, sizeof *stray);
    assert (stray);
    text_printf (stray->job_id, sizeof stray->job_id, "%s", left->job_id);
    stray->incarnation = left->incarnation;
    jobdir_key (left->job_id, left->incarnation, stray->key);
    HASH_ADD_STR (svc->strays, key, stray);
    int rc = svc->rm.ops->adopt (svc->rm.self, left->job_id, left->incarnation, left->mark, &err);
    if (rc == 0)
        rc = svc->rm.ops->cancel (svc->rm.self, left->job_id, left->incarnation, &err);
    log_event (svc->log, LOG_LEVEL_ERROR, "svc", "stray_ended",
               "job=%s hold=%s%s%s text=\"this state was restored to a moment "
               "before the job came\"",
               stray->key, left->hold, rc ? " error=" : "", rc ? err.text : "");
    hold_return (svc, left->number, left->hold);
}

static void stray_end_all (struct svc *svc)
{
    bool acts =
        svc->settings->mode.mode == MODE_NORMAL || svc->settings->mode.mode == MODE_INTERACTIVE;
    if (acts && !svc->rm.ops->simulated)
        jobdir_left_each (svc->job_dir, svc->site, on_dir, svc);
}

static void stray_on_event (struct svc *svc, const struct rm_event *event)
{
    struct svc_stray *stray = NULL;
    char key[JOBDIR_KEY_MAX];
    if (!svc->strays)
        return;
    jobdir_key (event->job_id, event->incarnation, key);
    HASH_FIND_STR (svc->strays, key, stray);
    if (stray && (event->kind == RM_EVENT_ENDED || event->kind == RM_EVENT_UNKNOWN)) {
        jobdir_left_over (svc->job_dir, key);
        HASH_DEL (svc->strays, stray);
        free (stray);
    }
}

static void stray_close (struct svc *svc)
{
    struct svc_stray *stray, *next;
    HASH_ITER (hh, svc->strays, stray, next) {
        HASH_DEL (svc->strays, stray);
        free (stray);
    }
}

const struct svc_listener stray_listener = {
    .recovered = stray_end_all, .rm_unknown = stray_on_event, .close = stray_close};
