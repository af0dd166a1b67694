/* Which answer of a waiting job stands, and what moved it. An answer that moved by less than people
 * would notice is not another one: what is shown is what was written. */
#include "local/svc/forecast/forecast_i.h"

#include <stdlib.h>
#include <string.h>

#include "local/store/estimates.h"
#include "local/svc/job.h"
#include "local/svc/job/jobs.h"
#include "local/svc/job/jobspec.h"
#include "local/svc/svc_i.h"

enum { NOTICED = 60 * US_PER_S, QUOTED_S = 600 };

const char *forecast_none (struct svc *svc, const struct site_job *job, struct arena *arena)
{
    struct job_view view;
    Nui__Common__V1__Reason *own = NULL;
    time_us now = svc_now (svc);
    if (!job->in_cluster ||
        cluster_job_get (svc->cluster, (struct job_id){job->rec.number}, &view, NULL) != 0)
        return job->rec.reason_text && *job->rec.reason_text
                   ? arena_strdup (arena, job->rec.reason_text)
                   : "it has not entered the queue yet";
    bool known = jobs_own_reason (svc, job, &view, arena, &own);
    if (view.spec->holds & ~(uint32_t)HOLD_DEPENDENCY)
        return arena_printf (arena, "%s: not before its release", known ? own->text : "it is held");
    if (known)
        return own->text;
    if (view.deferred_until > now || view.spec->not_before > now)
        return "not before its time has come";
    if (view.spec->reservation.v)
        return "it waits for the reservation that it names";
    return NULL;
}

static const char *plural (uint32_t n)
{
    return n == 1 ? "" : "s";
}

/* What happened since. */
static void moved_say (struct forecast *f, struct told *t, bool certain, duration_us by)
{
    const struct happened *h = &f->happened;
    char how[QUANTITY_TEXT_MAX], change[64], what[160] = "";
    size_t len = 0;
    duration_format (by < 0 ? -by : by, how);
    if (by > NOTICED || by < -NOTICED)
        snprintf (change, sizeof change, "%s by %s", by < 0 ? "earlier" : "later", how);
    else
        snprintf (change, sizeof change, "%s", certain ? "certain now" : "no longer certain");
    if (h->came)
        len += (size_t)snprintf (what + len, sizeof what - len, ", %u job%s came", h->came,
                                 plural (h->came));
    if (h->ended)
        len += (size_t)snprintf (what + len, sizeof what - len, ", %u ended", h->ended);
    if (h->started)
        len += (size_t)snprintf (what + len, sizeof what - len, ", %u started", h->started);
    if (h->withdrawn)
        len +=
            (size_t)snprintf (what + len, sizeof what - len, ", %u left the queue", h->withdrawn);
    if (f->procs_told != f->scene.procs_up)
        len += (size_t)snprintf (what + len, sizeof what - len, ", %lld processor%s %s",
                                 (long long)llabs (f->scene.procs_up - f->procs_told),
                                 plural ((uint32_t)llabs (f->scene.procs_up - f->procs_told)),
                                 f->scene.procs_up > f->procs_told ? "more" : "fewer");
    snprintf (t->moved, sizeof t->moved, "%s%s%s", change,
              len ? ":" : ": running jobs take another time than expected", len ? what + 1 : "");
}

static bool apart (time_us a, time_us b, double least)
{
    duration_us by = a > b ? a - b : b - a;
    return by > NOTICED && (double)by > least;
}

static bool any_apart (const struct estimate *a, time_us a_at, const struct estimate *b,
                       time_us b_at)
{
    return apart (a_at + a->median, b_at + b->median, 0) ||
           apart (a_at + a->low95, b_at + b->low95, 0) ||
           apart (a_at + a->high95, b_at + b->high95, 0);
}

/* Another answer than what stands. Not by the ends of its interval: they vary with the draws. */
static bool differs (const struct told *t, const struct estimate *e, time_us at, double share)
{
    if (t->shown.certain != e->certain)
        return any_apart (&t->shown, t->shown_at, e, at);
    return apart (t->shown_at + t->shown.median, at + e->median, share * (double)e->median);
}

bool answer_take (struct svc *svc, const struct site_job *job, const struct estimate *raw,
                  time_us at, double share)
{
    struct forecast *f = svc->forecast;
    struct told *t = told_of (svc, job);
    struct estimate said;
    estimator_correct (f->estimator, ESTIMATE_SIMULATION, raw, &said);
    t->confirmed = at;
    if (!t->given) {
        t->given = at;
        t->raw = *raw;
        t->said = said;
    } else if (differs (t, &said, at, share)) {
        moved_say (f, t, said.certain, at + said.median - (t->shown_at + t->shown.median));
        t->due = true; /* one that could not be written is forgotten */
    } else
        return false;
    t->shown = said;
    t->shown_at = at;
    told_due (f, t);
    return true;
}

/* --- on demand -------------------------------------------------------------------------------- */

struct last {
    const char *kind;
    const struct answer *answer;
    bool same; /* as the last of its kind */
};

static void last_take (void *arg, const struct store_later *row)
{
    struct last *last = arg;
    struct estimate said = {
        .median = row->said.median, .low95 = row->said.low95, .high95 = row->said.high95};
    if (strcmp (row->kind, last->kind) == 0)
        last->same = !any_apart (&said, row->given, &last->answer->said, last->answer->at);
}

/* By another method than the one that its answers are made by. */
static int asked_otherwise (struct svc *svc, struct told *t, const char *kind,
                            const struct answer *answer, struct err *err)
{
    struct last last = {.kind = kind, .answer = answer};
    int rc = store_later_each (svc->store, t->number, 0, last_take, &last, err);
    if (rc != 0 || last.same)
        return rc;
    rc = svc_begin (svc, err);
    if (rc == 0)
        rc = later_store (svc, t, kind, &answer->said, answer->at, "asked", err);
    rc = svc_commit (svc, rc, err);
    t->later = t->later || rc == 0;
    return rc;
}

int answer_asked (struct svc *svc, const struct site_job *job, enum estimate_method method,
                  struct answer *answer, struct err *err)
{
    struct told *t = told_of (svc, job);
    if (method != ESTIMATE_SIMULATION)
        return asked_otherwise (svc, t, estimate_method_name (method), answer, err);
    if (answer->from == ANSWER_FRESH && answer_take (svc, job, &answer->raw, answer->at, 0))
        record_write (svc, t);
    if (!t->stored || t->due)
        return err_set (err, ERR_IO, "the answer could not be written");
    answer->said = t->shown;
    answer->at = t->shown_at;
    return 0;
}

/* --- before a job comes ------------------------------------------------------------------------
 */

static bool quoted_is (const struct quoted *q, const struct jobspec *spec)
{
    return q->answer.at && q->component_index == spec->component_index && q->shape == spec->shape &&
           q->user == spec->cred[CRED_USER] &&
           memcmp (q->uuid, spec->job->uuid.data, sizeof q->uuid) == 0;
}

static struct quoted *quoted_find (struct forecast *f, const struct jobspec *spec)
{
    for (uint32_t i = 0; spec->job->uuid.len == sizeof f->quoted->uuid && i < QUOTED_MAX; i++)
        if (quoted_is (&f->quoted[i], spec))
            return &f->quoted[i];
    return NULL;
}

void quoted_put (struct forecast *f, const struct jobspec *spec, const struct answer *answer)
{
    struct quoted *q = quoted_find (f, spec);
    if (spec->job->uuid.len != sizeof q->uuid)
        return;
    if (!q) {
        q = &f->quoted[f->quoted_next];
        f->quoted_next = (f->quoted_next + 1) % QUOTED_MAX;
    }
    *q = (struct quoted){.component_index = spec->component_index,
                         .shape = spec->shape,
                         .user = spec->cred[CRED_USER],
                         .answer = *answer};
    memcpy (q->uuid, spec->job->uuid.data, sizeof q->uuid);
}

int forecast_entered (struct svc *svc, const struct site_job *job, const struct jobspec *spec,
                      struct err *err)
{
    struct forecast *f = svc->forecast;
    struct quoted *q = f ? quoted_find (f, spec) : NULL;
    if (!q)
        return 0;
    struct answer a = q->answer;
    q->answer.at = 0;
    if (a.at < svc_now (svc) - QUOTED_S * US_PER_S || forecast_none (svc, job, svc->call_arena))
        return 0;
    struct told *t = told_of (svc, job);
    if (a.from == ANSWER_TABLE) {
        t->later = true;
        return later_store (svc, t, KIND_TABLE, &a.said, a.at, "", err);
    }
    t->given = t->shown_at = t->confirmed = a.at;
    t->raw = a.raw;
    t->said = t->shown = a.said;
    int rc = told_store (svc, t, err);
    told_stored (t); /* or the job is forgotten */
    return rc;
}
