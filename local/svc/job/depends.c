/* Jobs that wait for others of this site (proto/job/depend.h). What a job still waits for is in
 * the store and, while it waits, in its record; the core knows it as a hold. A row goes when it is
 * met, so that what was met stays met. What can never be met ends the job: lapse.c. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "local/svc/job.h"
#include "local/svc/job/jobs.h"
#include "local/svc/job/jobspec.h"
#include "local/svc/job/life.h"
#include "local/svc/svc_i.h"

/* A job that others wait for. */
struct svc_awaited {
    uint64_t target;
    struct site_depend *first;
    UT_hash_handle hh; /* by target */
};

static enum depend_target target_of (struct svc *svc, uint64_t number)
{
    struct site_job *live = svc_job (svc, number);
    struct store_job rec = {0};
    enum depend_target target = DEPEND_TARGET_CANCELLED;
    if (live && live->rec.state != STORE_JOB_RUNNING)
        return DEPEND_TARGET_WAITS;
    if (live)
        return DEPEND_TARGET_STARTED;
    if (local_store_job_get (svc->store, number, &rec, NULL) == 0) {
        if (rec.state == STORE_JOB_COMPLETED)
            target = DEPEND_TARGET_SUCCEEDED;
        else if (rec.start)
            target = DEPEND_TARGET_FAILED;
    }
    store_job_free (&rec);
    return target;
}

static struct svc_awaited *awaited_find (struct svc *svc, uint64_t target)
{
    struct svc_awaited *awaited;
    HASH_FIND (hh, svc->awaited, &target, sizeof target, awaited);
    return awaited;
}

static void add (struct svc *svc, struct site_job *job, enum depend_kind kind, uint64_t target)
{
    struct svc_awaited *awaited = awaited_find (svc, target);
    struct site_depend *d = calloc (1, sizeof *d);
    assert (d && "out of memory");
    *d = (struct site_depend){.job = job, .kind = kind, .target = target};
    if (!awaited) {
        awaited = calloc (1, sizeof *awaited);
        assert (awaited && "out of memory");
        awaited->target = target;
        HASH_ADD (hh, svc->awaited, target, sizeof awaited->target, awaited);
    }
    DL_APPEND2 (job->depends, d, before, after);
    DL_APPEND2 (awaited->first, d, before_alike, after_alike);
}

static void drop (struct svc *svc, struct site_depend *d)
{
    struct svc_awaited *awaited = awaited_find (svc, d->target);
    DL_DELETE2 (d->job->depends, d, before, after);
    DL_DELETE2 (awaited->first, d, before_alike, after_alike);
    if (!awaited->first) {
        HASH_DEL (svc->awaited, awaited);
        free (awaited);
    }
    free (d);
}

void depends_forget (struct svc *svc, struct site_job *job)
{
    while (job->depends)
        drop (svc, job->depends);
}

struct loading {
    struct svc *svc;
    struct site_job *job;
};

static int load_one (void *arg, int kind, uint64_t target)
{
    struct loading *loading = arg;
    add (loading->svc, loading->job, (enum depend_kind)kind, target);
    return 0;
}

int depends_load (struct svc *svc, struct site_job *job, struct err *err)
{
    struct loading loading = {svc, job};
    return local_store_depends (svc->store, job->rec.number, load_one, &loading, err);
}

/* "before…": the other one waits for this one. It has to be the same person's, and still waiting.
 */
static int other_may_wait (struct svc *svc, const char *submitter, const char *account,
                           const char *name, uint64_t number, struct err *err)
{
    struct site_job *other = svc_job (svc, number);
    if (!other || other->rec.state != STORE_JOB_QUEUED || other->part)
        return err_set (err, ERR_CONFLICT, "before %.60s: it does not wait any more", name);
    if (!other->rec.submitter || strcmp (other->rec.submitter, submitter) != 0 ||
        strcmp (other->rec.local_account, account) != 0)
        return err_set (err, ERR_DENIED, "before %.60s: that job is not yours", name);
    return 0;
}

static int resolve (struct svc *svc, const char *submitter, const char *account,
                    const Nui__Common__V1__Dependency *d, enum depend_kind *kind, bool *before,
                    uint64_t *number, struct err *err)
{
    struct store_job rec = {0};
    if (!depend_kind_parse (d->kind, kind, before))
        return err_set (err, ERR_INVALID,
                        "'%.40s' is no dependency: wanted after, afterany, afterok, "
                        "afternotok, or before…",
                        d->kind);
    int rc = jobs_find (svc, NULL, d->job_id, "", &rec, err);
    if (rc != 0)
        return err_prefix (err, "%s", d->kind);
    *number = rec.number;
    store_job_free (&rec);
    return *before ? other_may_wait (svc, submitter, account, d->job_id, *number, err) : 0;
}

/* Whether the metascheduler sees to it. */
static bool of_grid (const struct jobspec *spec, const Nui__Common__V1__Dependency *d)
{
    enum depend_kind kind;
    bool before;
    return spec->depends_met && strncmp (d->job_id, "grid.", 5) == 0 &&
           depend_kind_parse (d->kind, &kind, &before) && !before;
}

int depends_check (struct svc *svc, const struct jobspec *spec, struct err *err)
{
    enum depend_kind kind;
    uint64_t number;
    bool before;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < spec->job->n_depends; i++)
        if (!of_grid (spec, spec->job->depends[i]))
            rc = resolve (svc, spec->submitter, spec->local_account, spec->job->depends[i], &kind,
                          &before, &number, err);
    return rc;
}

int depends_submit (struct svc *svc, struct site_job *job, const struct jobspec *spec,
                    struct err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < spec->job->n_depends; i++) {
        const Nui__Common__V1__Dependency *d = spec->job->depends[i];
        enum depend_kind kind;
        uint64_t other;
        bool before;
        if (of_grid (spec, d))
            continue;
        rc = resolve (svc, job->rec.submitter, job->rec.local_account, d, &kind, &before, &other,
                      err);
        if (rc != 0)
            break;
        struct site_job *waits = before ? svc_job (svc, other) : job;
        uint64_t target = before ? job->rec.number : other;
        rc = local_store_depend_put (svc->store, waits->rec.number, kind, target, err);
        if (rc == 0)
            add (svc, waits, kind, target);
    }
    return rc;
}

void depends_taken_back (struct svc *svc, uint64_t number)
{
    struct svc_awaited *awaited;
    while ((awaited = awaited_find (svc, number)))
        drop (svc, awaited->first);
}

/* The hold in the core, by what is left. */
static void hold_set (struct svc *svc, struct site_job *job)
{
    struct job_view view;
    struct err err = {0};
    struct job_id id = {job->rec.number};
    if (!job->in_cluster || cluster_job_get (svc->cluster, id, &view, NULL) != 0 ||
        view.state != JOB_IDLE)
        return;
    uint32_t holds = view.spec->holds & ~(uint32_t)HOLD_DEPENDENCY;
    holds |= job->depends ? HOLD_DEPENDENCY : 0;
    if (holds == view.spec->holds)
        return;
    if (cluster_job_hold_set (svc->cluster, id, holds, svc_now (svc), &err) != 0)
        log_event (svc->log, LOG_LEVEL_ERROR, "svc", "core_disagrees", "error=\"%s\"", err.text);
    pass_wake (svc);
}

static bool is_met (struct svc *svc, const struct site_depend *d)
{
    return depend_check (d->kind, target_of (svc, d->target)) == DEPEND_MET;
}

void depends_settle (struct svc *svc, struct site_job *job)
{
    struct err err = {0};
    struct site_depend *d, *next;
    bool any = false;
    DL_FOREACH2 (job->depends, d, after)
    any = any || is_met (svc, d);
    int rc = any ? svc_begin (svc, &err) : 0;
    if (any)
        DL_FOREACH2 (job->depends, d, after)
    if (rc == 0 && is_met (svc, d))
        rc = local_store_depend_met (svc->store, job->rec.number, d->kind, d->target, &err);
    if (any && svc_commit (svc, rc, &err) != 0)
        return; /* it goes on waiting; what happens next, or a restart, looks again */
    DL_FOREACH_SAFE2 (job->depends, d, next, after)
    if (is_met (svc, d))
        drop (svc, d);
    hold_set (svc, job);
    DL_FOREACH2 (job->depends, d, after)
    if (depend_check (d->kind, target_of (svc, d->target)) == DEPEND_NEVER && !svc->lapses) {
        svc->lapses = true; /* the next pass ends it */
        pass_wake (svc);
    }
}

void depends_happened (struct svc *svc, uint64_t number)
{
    struct svc_awaited *awaited = awaited_find (svc, number);
    struct site_depend *d;
    uint32_t count = 0, n = 0;
    if (!awaited)
        return;
    DL_COUNT2 (awaited->first, d, count, after_alike);
    uint64_t *waiting = calloc (count, sizeof *waiting); /* what is settled leaves the list */
    assert (waiting && "out of memory");
    DL_FOREACH2 (awaited->first, d, after_alike)
    waiting[n++] = d->job->rec.number;
    for (uint32_t i = 0; i < n; i++)
        depends_settle (svc, svc_job (svc, waiting[i]));
    free (waiting);
}

void depends_text (struct svc *svc, const struct site_job *job, char *out, size_t cap,
                   bool *never_out)
{
    const struct site_depend *d;
    size_t len = (size_t)snprintf (out, cap, "waits for");
    *never_out = false;
    DL_FOREACH2 (job->depends, d, after)
    {
        char id[SITE_ID_MAX];
        if (len >= cap)
            break;
        bool never = depend_check (d->kind, target_of (svc, d->target)) == DEPEND_NEVER;
        len += (size_t)snprintf (out + len, cap - len, "%s %s (%s%s)", d == job->depends ? "" : ",",
                                 site_id (svc, d->target, id), depend_kind_name (d->kind),
                                 never ? ", which can never be" : "");
        *never_out = *never_out || never;
    }
}
