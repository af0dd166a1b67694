/* Jobs that wait for others of this site (proto/base/depend.h). What a job still waits for is in the store and,
 * while it waits, in its record; the core knows it as a hold. A row goes when it is met, so that what
 * was met stays met. */
#include <stdlib.h>
#include <string.h>

#include "local/svc/svc_i.h"

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

static void add (struct site_job *job, int kind, uint64_t target)
{
    struct site_depend *more =
        realloc (job->depends, (job->depend_count + 1) * sizeof *more);
    if (!more)
        abort ();
    job->depends = more;
    more[job->depend_count++] = (struct site_depend){(enum depend_kind)kind, target};
}

static int load_one (void *arg, int kind, uint64_t target)
{
    add (arg, kind, target);
    return 0;
}

int depends_load (struct svc *svc, struct site_job *job, struct err *err)
{
    return local_store_depends (svc->store, job->rec.number, load_one, job, err);
}

/* "before…": the other one waits for this one. It has to be the same person's, and still waiting. */
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
                        "afternotok, or before…", d->kind);
    int rc = jobs_find (svc, d->job_id, "", &rec, err);
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
            add (waits, kind, target);
    }
    return rc;
}

void depends_taken_back (struct svc *svc, uint64_t number)
{
    struct site_job *job, *next;
    HASH_ITER (hh, svc->jobs, job, next)
        for (uint32_t i = job->depend_count; i-- > 0;)
            if (job->depends[i].target == number)
                job->depends[i] = job->depends[--job->depend_count];
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
    holds |= job->depend_count ? HOLD_DEPENDENCY : 0;
    if (holds == view.spec->holds)
        return;
    if (cluster_job_hold_set (svc->cluster, id, holds, svc_now (svc), &err) != 0)
        log_event (svc->log, LOG_LEVEL_ERROR, "svc", "core_disagrees", "error=\"%s\"", err.text);
    pass_wake (svc);
}

void depends_settle (struct svc *svc, struct site_job *job)
{
    struct err err = {0};
    uint32_t left = 0;
    bool any = false;
    for (uint32_t i = 0; i < job->depend_count; i++)
        any = any || depend_check (job->depends[i].kind, target_of (svc, job->depends[i].target)) ==
                         DEPEND_MET;
    int rc = any ? svc_begin (svc, &err) : 0;
    for (uint32_t i = 0; any && rc == 0 && i < job->depend_count; i++) {
        struct site_depend d = job->depends[i];
        if (depend_check (d.kind, target_of (svc, d.target)) == DEPEND_MET)
            rc = local_store_depend_met (svc->store, job->rec.number, d.kind, d.target, &err);
    }
    if (any && svc_commit (svc, rc, &err) != 0)
        return; /* it goes on waiting; what happens next, or a restart, looks again */
    for (uint32_t i = 0; i < job->depend_count; i++) {
        struct site_depend d = job->depends[i];
        if (depend_check (d.kind, target_of (svc, d.target)) != DEPEND_MET)
            job->depends[left++] = d;
    }
    job->depend_count = left;
    hold_set (svc, job);
}

void depends_happened (struct svc *svc, uint64_t number)
{
    struct site_job *job, *next;
    HASH_ITER (hh, svc->jobs, job, next)
        for (uint32_t i = 0; i < job->depend_count; i++)
            if (job->depends[i].target == number) {
                depends_settle (svc, job);
                break;
            }
}

void depends_text (struct svc *svc, const struct site_job *job, char *out, size_t cap,
                   bool *never_out)
{
    size_t len = (size_t)snprintf (out, cap, "waits for");
    *never_out = false;
    for (uint32_t i = 0; i < job->depend_count && len < cap; i++) {
        const struct site_depend *d = &job->depends[i];
        char id[SITE_ID_MAX];
        bool never = depend_check (d->kind, target_of (svc, d->target)) == DEPEND_NEVER;
        len += (size_t)snprintf (out + len, cap - len, "%s %s (%s%s)", i ? "," : "",
                                 site_id (svc, d->target, id), depend_kind_name (d->kind),
                                 never ? ", which can never be" : "");
        *never_out = *never_out || never;
    }
}
