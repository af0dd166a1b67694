/* What administrators, and users with their own jobs, change: holds, system priority, a start by
 * hand. Each change is in the store, with its line in the audit log, before it is acknowledged. */
#include <string.h>
#include <strings.h>

#include "local/core/defer.h"
#include "local/core/explain.h"
#include "local/svc/admin/admin.h"
#include "local/svc/caller.h"
#include "local/svc/job.h"
#include "local/svc/job/jobs.h"
#include "local/svc/native/native.h"
#include "local/svc/nodes.h"
#include "local/svc/pass.h"
#include "local/svc/svc_i.h"
#include "proto/base/strbuf.h"
#include "proto/base/text.h"

enum { SETTABLE_HOLDS = HOLD_USER | HOLD_SYSTEM | HOLD_BATCH, PRIORITY_ABSOLUTE_MAX = 1000 };

/* --- one waiting job ----------------------------------------------------------------------- */

int admin_waiting_job (struct svc *svc, const struct admin_caller *caller, const char *name,
                       enum admin_level level, struct site_job **out, struct job_view *view,
                       struct err *err)
{
    struct store_job rec;
    int rc = admin_job (svc, caller, name, level, &rec, out, err);
    if (rc != 0)
        return rc;
    store_job_free (&rec);
    if (!*out)
        return err_set (err, ERR_CONFLICT, "job %.80s has ended", name);
    if (!(*out)->in_cluster || (*out)->rec.state != STORE_JOB_QUEUED)
        return err_set (err, ERR_CONFLICT, "job %.80s %s", name,
                        (*out)->part ? "is part of a co-allocation: its group decides"
                                     : "does not wait any more: it has started");
    return cluster_job_get (svc->cluster, (struct job_id){(*out)->rec.number}, view, err);
}

static struct store_job_admin admin_of (const struct job_view *view)
{
    return (struct store_job_admin){.holds = view->spec->holds & SETTABLE_HOLDS,
                                    .priority = view->spec->system_priority,
                                    .absolute = (view->spec->flags & JOB_SYSTEM_PRIORITY) != 0};
}

/* An administrator's hold has a reason, as a deferral has: Admin. In a transaction. */
static int held_write (struct svc *svc, struct site_job *job, const char *why, struct err *err)
{
    char code[sizeof job->rec.reason_code];
    char *text = job->rec.reason_text;
    memcpy (code, job->rec.reason_code, sizeof code);
    job->rec.reason_text = NULL;
    svc_reason (job, defer_reason_name (DEFER_ADMIN), "%s", why);
    int rc = svc_job_write (svc, job, true, NULL, 0, err);
    if (rc == 0) {
        free (text);
        return 0;
    }
    free (job->rec.reason_text);
    job->rec.reason_text = text;
    memcpy (job->rec.reason_code, code, sizeof code);
    return rc;
}

/* The core first, since it may refuse; taken back when it cannot be written down. held: what an
 * administrator's hold is put down to; NULL: there is none that is new. undefer: not deferred any more. */
static int change (struct svc *svc, const struct admin_caller *caller, struct site_job *job,
                   const struct job_view *view, const struct store_job_admin *set, const char *what,
                   const char *held, bool undefer, struct err *err)
{
    struct store_job_admin before = admin_of (view);
    time_us deferred = job->rec.deferred_until;
    uint32_t others = view->spec->holds & ~(uint32_t)SETTABLE_HOLDS;
    struct err again = {0};
    int rc = changes_apply (svc, job, others, set, err);
    if (rc != 0)
        return rc;
    rc = svc_begin (svc, err);
    if (rc == 0)
        rc = local_store_job_admin_put (svc->store, job->rec.number, set, err);
    if (rc == 0)
        rc = admin_audit_in (svc, caller, err, "%s", what);
    if (rc == 0 && held)
        rc = held_write (svc, job, held, err);
    if (rc == 0 && undefer) {
        job->rec.deferred_until = 0;
        rc = svc_job_write (svc, job, true, NULL, 0, err);
    }
    rc = svc_commit (svc, rc, err);
    if (rc != 0) {
        job->rec.deferred_until = deferred;
        (void)changes_apply (svc, job, others, &before, &again);
    } else if (undefer) {
        (void)cluster_job_defer (svc->cluster, (struct job_id){job->rec.number}, svc_now (svc),
                                 svc_now (svc), &again);
    }
    if (rc == 0)
        native_hold_push (svc, job, before.holds, set->holds);
    pass_wake (svc);
    return rc;
}

void admin_answer (struct svc *svc, struct rpccall *call, const struct site_job *job, int rc,
                   const struct err *err)
{
    Nui__Local__V1__ChangeReply reply = NUI__LOCAL__V1__CHANGE_REPLY__INIT;
    char id[SITE_ID_MAX];
    if (rc != 0) {
        jobs_refuse (svc, call, err);
        return;
    }
    reply.job_id = site_id (svc, job->rec.number, id);
    rpccall_reply (call, &reply.base);
}

/* --- holds -------------------------------------------------------------------------------- */

static int holds_parse (char **name, size_t count, uint32_t *out, struct err *err)
{
    static const char *const known[] = {"User", "System", "Batch"};
    *out = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t bit = 0;
        for (uint32_t k = 0; k < 3; k++)
            if (strcasecmp (name[i], known[k]) == 0)
                bit = 1u << k;
        if (!bit)
            return err_set (err, ERR_INVALID, "hold '%.40s': wanted User, System or Batch",
                            name[i]);
        *out |= bit;
    }
    return 0;
}

static void holds_name (uint32_t holds, char out[32])
{
    snprintf (out, 32, "%s%s%s", holds & HOLD_USER ? " user" : "",
              holds & HOLD_SYSTEM ? " system" : "", holds & HOLD_BATCH ? " batch" : "");
}

static int hold_change (struct svc *svc, const struct admin_caller *caller,
                        const Nui__Local__V1__SetHoldRequest *r, struct site_job **job,
                        struct err *err)
{
    struct job_view view;
    uint32_t set, clear;
    char what[160], why[160], id[SITE_ID_MAX], names[2][32];
    int rc = holds_parse (r->set, r->n_set, &set, err);
    if (rc == 0)
        rc = holds_parse (r->clear, r->n_clear, &clear, err);
    if (rc == 0 && (set | clear) == 0)
        rc = err_set (err, ERR_INVALID, "no hold is named");
    if (rc == 0)
        rc = admin_waiting_job (svc, caller, r->job_id, ADMIN_JOBS, job, &view, err);
    if (rc != 0)
        return rc;
    struct store_job_admin now = admin_of (&view);
    bool undefer = (clear & HOLD_BATCH) && !(set & HOLD_BATCH) &&
                   admin_require (caller, ADMIN_JOBS, "a deferral", NULL) == 0 &&
                   (*job)->rec.deferred_until > svc_now (svc);
    clear &= now.holds; /* releasing all of them is releasing what there is */
    if (((set | clear) & ~(uint32_t)HOLD_USER) &&
        admin_require (caller, ADMIN_JOBS, "a system or batch hold", err) != 0)
        return err->code;
    now.holds = (now.holds & ~clear) | set;
    holds_name (set, names[0]);
    holds_name (clear, names[1]);
    snprintf (what, sizeof what, "holds of %s: set%s released%s%s",
              site_id (svc, (*job)->rec.number, id), *names[0] ? names[0] : " none",
              *names[1] ? names[1]
              : undefer ? ""
                        : " none",
              undefer ? " deferral" : "");
    text_printf (why, sizeof why, "held (%s) by %.120s", set & HOLD_BATCH ? "batch" : "system",
                 caller->name);
    return change (svc, caller, *job, &view, &now, what, set & ~(uint32_t)HOLD_USER ? why : NULL,
                   undefer, err);
}

void admin_set_hold (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct svc *svc = self;
    struct admin_caller caller;
    struct site_job *job = NULL;
    struct err err = {0};
    admin_who (svc, call, &caller);
    int rc =
        hold_change (svc, &caller, (const Nui__Local__V1__SetHoldRequest *)request, &job, &err);
    admin_answer (svc, call, job, rc, &err);
}

/* A metascheduler, for the job's owner. */
void admin_hold_job (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct svc *svc = self;
    const Nui__Local__V1__HoldJobRequest *r = (const Nui__Local__V1__HoldJobRequest *)request;
    Nui__Local__V1__HoldJobReply reply = NUI__LOCAL__V1__HOLD_JOB_REPLY__INIT;
    struct admin_caller caller = {.level = ADMIN_JOBS};
    struct site_job *job = NULL;
    struct job_view view;
    struct err err = {0};
    char what[160], id[SITE_ID_MAX];
    text_printf (caller.name, sizeof caller.name, "%.120s for %.120s", rpccall_peer (call)->name,
                 r->by);
    struct store_job rec;
    int rc = admin_job (svc, &caller, r->job_id, ADMIN_JOBS, &rec, &job, &err);
    if (rc == 0) { /* whose it is comes first: how another's job fares is not told */
        rc = jobs_allowed (svc, call, &rec, JOBS_META, &err);
        store_job_free (&rec);
    }
    if (rc == 0)
        rc = admin_waiting_job (svc, &caller, r->job_id, ADMIN_JOBS, &job, &view, &err);
    if (rc == 0) {
        struct store_job_admin now = admin_of (&view);
        uint32_t bit = r->withheld ? HOLD_SYSTEM : HOLD_USER;
        now.holds = r->held ? now.holds | bit : now.holds & ~bit;
        snprintf (what, sizeof what, "holds of %s: %s %s", site_id (svc, job->rec.number, id),
                  r->withheld ? "system" : "user", r->held ? "set" : "released");
        rc = change (svc, &caller, job, &view, &now, what, NULL, false, &err);
    }
    if (rc != 0) {
        rpccall_fail (call, &err);
        return;
    }
    reply.done = true;
    rpccall_reply (call, &reply.base);
}

/* --- priority ----------------------------------------------------------------------------- */

void admin_set_priority (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct svc *svc = self;
    const Nui__Local__V1__SetPriorityRequest *r =
        (const Nui__Local__V1__SetPriorityRequest *)request;
    struct admin_caller caller;
    struct site_job *job = NULL;
    struct job_view view;
    struct err err = {0};
    char what[160], id[SITE_ID_MAX];
    admin_who (svc, call, &caller);
    int rc = admin_require (&caller, ADMIN_JOBS, "setting a system priority", &err);
    if (rc == 0 && !r->relative && (r->priority < 0 || r->priority > PRIORITY_ABSOLUTE_MAX))
        rc = err_set (&err, ERR_INVALID, "an absolute priority is from 1 to %d (0: none), not %d",
                      PRIORITY_ABSOLUTE_MAX, r->priority);
    if (rc == 0 && (r->priority > PRIORITY_MAX || r->priority < -PRIORITY_MAX))
        rc = err_set (&err, ERR_INVALID, "a relative priority is at most %lld away",
                      (long long)PRIORITY_MAX);
    if (rc == 0)
        rc = admin_waiting_job (svc, &caller, r->job_id, ADMIN_JOBS, &job, &view, &err);
    if (rc == 0) {
        struct store_job_admin now = admin_of (&view);
        now.priority = r->priority;
        now.absolute = !r->relative && r->priority != 0;
        snprintf (what, sizeof what, "setspri %s%d %s", r->relative ? "-r " : "", r->priority,
                  site_id (svc, job->rec.number, id));
        rc = change (svc, &caller, job, &view, &now, what, NULL, false, &err);
    }
    admin_answer (svc, call, job, rc, &err);
}

/* --- a start by hand ---------------------------------------------------------------------- */

static int may_run (struct svc *svc, const struct site_job *job, const struct job_view *view,
                    bool force, time_us now, struct err *err)
{
    struct explained_limit hit;
    char text[LIMITS_TEXT_MAX], id[SITE_ID_MAX];
    site_id (svc, job->rec.number, id);
    if (view->spec->holds)
        return err_set (err, ERR_CONFLICT, "job cannot run (job %s is held: releasehold first)",
                        id);
    if (!force && explain_limit (svc->cluster, view->spec->id, LIMIT_HARD, now, &hit))
        return err_set (err, ERR_CONFLICT, "job cannot run (%s)",
                        limits_violation_text (&hit.violation, id, svc->names, text, sizeof text));
    return 0;
}

/* The nodes that were named, or those of the partition, as a list for reqs; 0: all. */
static int hosts_of (struct svc *svc, const Nui__Local__V1__RunJobRequest *r, uint32_t *out,
                     struct err *err)
{
    uint32_t partition = 0, count = 0;
    struct node_view view;
    int rc = admin_partition (svc, r->partition, &partition, err);
    if (rc != 0 || (!partition && r->n_nodes == 0))
        return rc;
    if (r->n_nodes > svc->node_count)
        return err_set (err, ERR_LIMIT, "%zu nodes are named, the site has %u", r->n_nodes,
                        svc->node_count);
    struct node_id *list = arena_array (svc->call_arena, svc->node_count + 1, sizeof *list);
    for (size_t i = 0; i < r->n_nodes; i++) {
        struct site_node *node;
        HASH_FIND_STR (svc->nodes, r->nodes[i], node);
        if (!node || cluster_node_get (svc->cluster, node->id, &view, NULL) != 0)
            return err_set (err, ERR_NOT_FOUND, "site %s has no node %.80s", svc->site,
                            r->nodes[i]);
        if (!partition || view.spec.partition == partition)
            list[count++] = node->id;
    }
    for (uint32_t n = 0; r->n_nodes == 0 && n < svc->node_count; n++)
        if (cluster_node_get (svc->cluster, (struct node_id){n}, &view, NULL) == 0 &&
            view.spec.partition == partition)
            list[count++].v = n;
    return cluster_hosts_define (svc->cluster, list, count, out, err);
}

/* Reservations of others are never broken; the schedule's promises to waiting jobs are, where that is asked for. */
static int place_now (struct svc *svc, const struct site_job *job,
                      const Nui__Local__V1__RunJobRequest *r, time_us now, struct slot *slot,
                      struct err *err)
{
    struct who who;
    struct query query = svc_query_of (svc, job, now, now, !r->past_promises, &who);
    struct req req[REQS_MAX];
    char text[512];
    uint32_t hosts = 0;
    memcpy (req, query.req, query.req_count * sizeof *req);
    int rc = hosts_of (svc, r, &hosts, err);
    for (uint32_t i = 0; hosts && i < query.req_count; i++)
        req[i].hosts = hosts;
    query.req = req;
    if (rc == 0)
        rc = query_earliest (svc->cluster, &query, now, svc->call_arena, slot, err);
    if (rc == 0 && slot->start == TIME_US_NONE)
        rc = err_set (err, ERR_CONFLICT, "job cannot run (%s)",
                      reason_text (&slot->reason, svc->names, text, sizeof text));
    return rc;
}

void admin_run_job (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct svc *svc = self;
    const Nui__Local__V1__RunJobRequest *r = (const Nui__Local__V1__RunJobRequest *)request;
    Nui__Local__V1__ChangeReply reply = NUI__LOCAL__V1__CHANGE_REPLY__INIT;
    struct admin_caller caller;
    struct site_job *job = NULL;
    struct job_view view;
    struct slot slot;
    struct err err = {0};
    char id[SITE_ID_MAX];
    time_us now = svc_now (svc);
    admin_who (svc, call, &caller);
    arena_reset (svc->call_arena);
    int rc = admin_require (&caller, ADMIN_JOBS, "starting a job by hand", &err);
    if (rc == 0)
        rc = admin_waiting_job (svc, &caller, r->job_id, ADMIN_JOBS, &job, &view, &err);
    if (rc == 0)
        rc = may_run (svc, job, &view, r->force || r->past_promises, now, &err);
    if (rc == 0)
        rc = place_now (svc, job, r, now, &slot, &err);
    if (rc == 0)
        rc = admin_audit (svc, &caller, &err, "runjob %s%s%s%s",
                          r->past_promises ? "-x "
                          : r->force       ? "-f "
                                           : "",
                          r->n_nodes || *r->partition ? "on named nodes " : "",
                          r->clear ? "-c " : "", site_id (svc, job->rec.number, id));
    if (rc == 0 && r->clear)
        job->rec.defer_count = job->rec.start_failures = 0; /* written as it starts */
    if (rc == 0)
        rc = pass_start (svc, job, &slot.allocation, &err);
    if (rc != 0) {
        jobs_refuse (svc, call, &err);
        return;
    }
    reply.job_id = site_id (svc, job->rec.number, id);
    reply.nodes = arena_array (svc->call_arena, slot.allocation.count + 1, sizeof *reply.nodes);
    for (uint32_t i = 0; i < slot.allocation.count; i++)
        if (i == 0 || slot.allocation.item[i].node.v != slot.allocation.item[i - 1].node.v)
            reply.nodes[reply.n_nodes++] = svc->node_by_id[slot.allocation.item[i].node.v]->name;
    rpccall_reply (call, &reply.base);
}
