/* One job: everything about it, and why it waits, with the value of what stops it. */
#include <string.h>

#include "local/core/access.h"
#include "local/core/explain.h"
#include "local/rm/jobdir.h"
#include "local/rm/rm_kind.h"
#include "local/svc/admin/admin.h"
#include "local/svc/caller.h"
#include "local/svc/job.h"
#include "local/svc/job/jobs.h"
#include "local/svc/job/life.h"
#include "local/svc/nodes.h"
#include "local/svc/resv/resv.h"
#include "local/svc/svc_i.h"
#include "proto/base/text.h"

/* --- what it asks for, where it is -------------------------------------------------------- */

static void features_fill (struct svc *svc, const struct features *f, struct arena *arena,
                           Nui__Local__V1__JobReq *out)
{
    out->features = arena_array (arena, FEATURES_MAX, sizeof *out->features);
    for (uint32_t i = 0; i < FEATURES_MAX; i++)
        if (f->word[i / 64] >> (i % 64) & 1 &&
            strncmp (strtab_name (svc->features, i), "class:", 6) !=
                0) /* a trace's; the job says it */
            out->features[out->n_features++] = (char *)strtab_name (svc->features, i);
}

static void placement_fill (const char *placement, struct arena *arena,
                            Nui__Local__V1__JobReq **reqs, size_t req_count)
{
    size_t cap = 1;
    for (const char *p = placement; *p; p++)
        cap += *p == ',';
    for (size_t r = 0; r < req_count; r++)
        reqs[r]->nodes = arena_array (arena, cap, sizeof *reqs[r]->nodes);
    for (const char *p = placement; p && *p;) {
        char name[STORE_NAME_MAX];
        unsigned tasks, req;
        if (sscanf (p, "%63[^:]:%u:%u", name, &tasks, &req) != 3)
            break;
        if (req < req_count) {
            Nui__Local__V1__NodeTasks *node = arena_new (arena, Nui__Local__V1__NodeTasks);
            nui__local__v1__node_tasks__init (node);
            node->node = arena_strdup (arena, name);
            node->tasks = tasks;
            reqs[req]->nodes[reqs[req]->n_nodes++] = node;
        }
        p = strchr (p, ',');
        p = p ? p + 1 : NULL;
    }
}

static void reqs_fill (struct svc *svc, const struct store_job *rec, const struct req *reqs,
                       uint32_t count, struct arena *arena, Nui__Local__V1__JobDetail *out)
{
    out->reqs = arena_array (arena, count + 1, sizeof *out->reqs);
    for (uint32_t i = 0; i < count; i++) {
        Nui__Local__V1__JobReq *r = arena_new (arena, Nui__Local__V1__JobReq);
        nui__local__v1__job_req__init (r);
        r->tasks = reqs[i].tasks;
        r->tasks_per_node = reqs[i].tasks_per_node;
        r->procs = (uint32_t)reqs[i].task.v[RES_PROCS];
        r->memory_mb = reqs[i].task.v[RES_MEM_MB];
        r->swap_mb = reqs[i].task.v[RES_SWAP_MB];
        r->disk_mb = reqs[i].task.v[RES_DISK_MB];
        r->exclusive = reqs[i].exclusive;
        features_fill (svc, &reqs[i].features, arena, r);
        out->reqs[out->n_reqs++] = r;
    }
    if (rec->placement && rec->state != STORE_JOB_QUEUED)
        placement_fill (rec->placement, arena, out->reqs, out->n_reqs);
}

/* What is to be told beside the job itself. */
struct job_asked {
    bool verbose;
    enum admin_limit_level level;
    const char *level_name, *reservation;
};

/* --- why it waits ------------------------------------------------------------------------- */

Nui__Local__V1__LimitHit *admin_limit (struct svc *svc, const char *job_name,
                                       const struct explained_limit *hit, struct arena *arena)
{
    const struct limits_violation *v = &hit->violation;
    Nui__Local__V1__LimitHit *l = arena_new (arena, Nui__Local__V1__LimitHit);
    char *text = arena_alloc (arena, LIMITS_TEXT_MAX);
    nui__local__v1__limit_hit__init (l);
    l->level = (char *)(v->level == LIMIT_HARD ? "HARD" : "SOFT");
    l->limit = (char *)limit_kind_name (v->limit);
    l->object =
        v->object == LIMIT_OBJECT_PARTITION
            ? arena_printf (arena, "partition %s", strtab_name (svc->names->partition, v->id))
        : v->object < CRED_KINDS
            ? arena_printf (arena, "%s %s", cred_kind_name ((enum cred_kind)v->object),
                            cred_name (svc->names, (enum cred_kind)v->object, v->id))
            : arena_strdup (arena, "system");
    int64_t unit =
        v->limit == LIMIT_PE ? 1000000 : 1; /* whole ones; the sentence has their parts */
    l->value = v->value / unit;
    l->usage = (v->usage + unit - 1) / unit;
    l->request = (v->request + unit - 1) / unit;
    l->text = limits_violation_text (v, job_name, svc->names, text, LIMITS_TEXT_MAX);
    return l;
}

static Nui__Local__V1__NodeVerdict *verdict (struct arena *arena, const char *node,
                                             enum node_verdict v, uint32_t count)
{
    Nui__Local__V1__NodeVerdict *one = arena_new (arena, Nui__Local__V1__NodeVerdict);
    nui__local__v1__node_verdict__init (one);
    one->node = (char *)node;
    one->reason = (char *)node_verdict_name (v);
    one->count = count;
    return one;
}

/* The nodes, and the start by what is promised: where the pass reserved, that. */
static int nodes_fill (struct svc *svc, const struct site_job *job, const struct job_view *view,
                       bool verbose, time_us now, struct arena *arena,
                       Nui__Local__V1__JobDetail *out, struct err *err)
{
    struct explained_nodes nodes;
    time_us from =
        out->clears_us > now && out->job->section == NUI__LOCAL__V1__QUEUE_SECTION__SECTION_BLOCKED
            ? out->clears_us
            : now;
    time_us startable = jobs_startable (svc, job, now);
    from = startable > from ? startable : from;
    int rc = explain_nodes (svc->cluster, (struct job_id){job->rec.number}, from, now, arena,
                            &nodes, err);
    if (rc != 0)
        return rc;
    /* What breaks a limit all by itself, or has no room ever, never starts as things are. */
    if (jobs_never (job, view) || (out->limit && strcmp (out->limit->level, "HARD") == 0 &&
                                   out->limit->request > out->limit->value))
        nodes.earliest = TIME_US_NONE;
    if (out->job->reserved_us)
        out->start_estimate_us = out->job->reserved_us;
    else if (out->n_holds == 0 && nodes.earliest != TIME_US_NONE)
        out->start_estimate_us = nodes.earliest;
    out->idle_procs = nodes.idle_procs;
    out->feasible_procs = nodes.feasible_procs;
    out->rejections = arena_array (arena, NODE_VERDICTS, sizeof *out->rejections);
    for (int v = NODE_ACCEPTS + 1; v < NODE_VERDICTS; v++)
        if (nodes.count[v])
            out->rejections[out->n_rejections++] =
                verdict (arena, "", (enum node_verdict)v, nodes.count[v]);
    if (!verbose)
        return 0;
    out->verbose = true;
    out->nodes = arena_array (arena, svc->node_count + 1, sizeof *out->nodes);
    for (uint32_t n = 0; n < svc->node_count; n++)
        out->nodes[out->n_nodes++] = verdict (arena, svc->node_by_id[n]->name,
                                              (enum node_verdict)nodes.verdict[n], nodes.tasks[n]);
    return 0;
}

static bool limit_hit (struct svc *svc, struct job_id id, enum admin_limit_level level, time_us now,
                       struct explained_limit *hit)
{
    bool hard = level == ADMIN_LIMITS_AS_THEY_ARE || level == ADMIN_LIMITS_HARD;
    bool soft = level == ADMIN_LIMITS_AS_THEY_ARE || level == ADMIN_LIMITS_SOFT;
    return (hard && explain_limit (svc->cluster, id, LIMIT_HARD, now, hit)) ||
           (soft && explain_limit (svc->cluster, id, LIMIT_SOFT, now, hit));
}

static int waiting_fill (struct svc *svc, const struct site_job *job, const struct job_asked *ask,
                         time_us now, struct arena *arena, Nui__Local__V1__JobDetail *out,
                         struct err *err)
{
    struct job_id id = {job->rec.number};
    struct job_view view;
    struct explained_limit hit;
    char text[512];
    bool put_off;
    int rc = cluster_job_get (svc->cluster, id, &view, err);
    if (rc != 0)
        return rc;
    out->bypass = view.bypass;
    if (view.reserved_start != TIME_US_NONE)
        out->reservation_end_us = view.reserved_end;
    out->holds = admin_hold_names (view.spec->holds, arena, &out->n_holds);
    put_off = jobs_own_reason (svc, job, &view, arena, &out->reason);
    if (put_off) {
        out->clears_us = job->rec.deferred_until > now ? job->rec.deferred_until : job->data_at;
    } else {
        reason_text (&view.reason, svc->names, text, sizeof text);
        jobs_reason (arena, reason_code_name ((enum reason_code)view.reason.code), text,
                     &out->reason);
        if (view.reason.clears != TIME_US_NONE && view.reason.clears != TIME_US_MAX)
            out->clears_us = view.reason.clears;
    }
    if (out->n_holds == 0 && !put_off && limit_hit (svc, id, ask->level, now, &hit)) {
        out->limit = admin_limit (svc, out->job->job_id, &hit, arena);
        if (hit.clears != TIME_US_NONE)
            out->clears_us = hit.clears;
    }
    return nodes_fill (svc, job, &view, ask->verbose, now, arena, out, err);
}

/* Whether a reservation of administrators admits the job. */
static int access_fill (struct svc *svc, const struct site_job *job, const char *name,
                        struct arena *arena, Nui__Local__V1__JobDetail *out, struct err *err)
{
    struct rsv_id id = {resv_core (svc, name)};
    struct rsv_view view;
    uint8_t affinity;
    if (id.v == 0 || cluster_rsv_get (svc->cluster, id, &view, NULL) != 0)
        return err_set (err, ERR_NOT_FOUND, "site %s has no reservation %.80s", svc->site, name);
    struct who who = svc_who (svc, job);
    Nui__Local__V1__ReservationAccess *access =
        arena_new (arena, Nui__Local__V1__ReservationAccess);
    nui__local__v1__reservation_access__init (access);
    access->reservation = arena_strdup (arena, name);
    access->admitted = access_admits (view.spec, &who, &affinity);
    access->acl = admin_resv_acl_words (svc, view.spec->acl, view.spec->acl_count, arena);
    access->n_acl = view.spec->acl_count;
    out->access = access;
    return 0;
}

/* --- the answer --------------------------------------------------------------------------- */

static void ended_row (struct svc *svc, struct store_job *rec, time_us now, struct arena *arena,
                       Nui__Local__V1__JobDetail *out)
{
    struct site_job *shade = arena_new (arena, struct site_job); /* the row points into it */
    shade->rec = *rec;
    for (int k = 0; k < CRED_KINDS; k++)
        shade->cred[k] = CRED_NONE;
    admin_queue_row (svc, shade, ADMIN_LIMITS_AS_THEY_ARE, now, arena, out->job);
    out->job->end_us = rec->end;
    out->job->section = NUI__LOCAL__V1__QUEUE_SECTION__SECTION_UNSET;
    out->job->reserved_us = 0;
}

static void limits_kept_fill (struct svc *svc, const struct store_job *rec, struct arena *arena,
                              Nui__Local__V1__JobDetail *out)
{
    struct rm_limits by;
    char name[SITE_ID_MAX];
    site_id (svc, rec->number, name);
    if (!svc->rm.ops->limits ||
        svc->rm.ops->limits (svc->rm.self, name, rec->incarnation, &by, NULL) != 0)
        return;
    Nui__Local__V1__LimitsKept *kept = arena_new (arena, Nui__Local__V1__LimitsKept);
    nui__local__v1__limits_kept__init (kept);
    kept->memory = (char *)rm_keeper_name (by.memory);
    kept->processors = (char *)rm_keeper_name (by.processors);
    kept->cpu_time = (char *)rm_keeper_name (by.cpu_time);
    kept->processes = (char *)rm_keeper_name (by.processes);
    out->limits_kept = kept;
}

/* Where it works and leaves its output, and how much that may be: told before it runs. */
static void output_fill (struct svc *svc, const struct store_job *rec, bool native,
                         struct arena *arena, Nui__Local__V1__JobDetail *out)
{
    char key[JOBDIR_KEY_MAX], id[SITE_ID_MAX];
    if (native || svc->mode)
        return;
    if (svc->settings->rm_kind->bounds_output)
        out->output_max_mb = svc->settings->output_max_mb;
    if (!rec->start)
        return;
    jobdir_key (site_id (svc, rec->number, id), rec->incarnation, key);
    out->directory = arena_printf (arena, "%s/%s/work", svc->job_dir, key);
}

static int detail_fill (struct svc *svc, struct store_job *rec, struct site_job *live,
                        const struct job_asked *ask, struct arena *arena,
                        Nui__Local__V1__JobDetail *out, struct err *err)
{
    time_us now = svc_now (svc);
    struct explained_job more;
    int rc = 0;
    nui__local__v1__job_detail__init (out);
    out->now_us = now;
    out->job = arena_new (arena, Nui__Local__V1__QueueJob);
    if (live)
        admin_queue_row (svc, live, ask->level, now, arena, out->job);
    else
        ended_row (svc, rec, now, arena, out);
    const struct store_job *r = live ? &live->rec : rec;
    out->submitter = arena_strdup (arena, r->submitter ? r->submitter : "");
    out->component = arena_strdup (arena, r->component);
    struct store_rm_job rm = {0};
    if (local_store_rm_job_get (svc->store, r->number, &rm, NULL) == 0)
        out->rm_job_id = arena_strdup (arena, rm.rm_id);
    output_fill (svc, r, rm.native, arena, out);
    out->start_count = r->incarnation;
    out->defer_count = r->defer_count;
    out->exit_code = r->exit_code;
    out->held_micro = store_job_ended (r->state) ? 0 : r->amount;
    out->slot_us = live && live->part ? live->part->rec.slot_start : 0;
    if (live && live->in_cluster &&
        explain_job (svc->cluster, (struct job_id){r->number}, &more, NULL) == 0) {
        out->pe_micro = (int64_t)(more.pe * 1e6 + .5);
        out->system_priority = more.system_priority;
    }
    if (live)
        reqs_fill (svc, r, live->reqs, live->req_count, arena, out);
    else
        admin_ended_fill (svc, r->number, arena, out);
    if (r->state == STORE_JOB_RUNNING)
        limits_kept_fill (svc, r, arena, out);
    Nui__Local__V1__JobInfo files = NUI__LOCAL__V1__JOB_INFO__INIT;
    jobs_files (svc, r, live, arena, &files);
    out->transfers = files.transfers;
    out->n_transfers = files.n_transfers;
    if (live && live->in_cluster && r->state == STORE_JOB_QUEUED)
        rc = waiting_fill (svc, live, ask, now, arena, out, err);
    else
        jobs_reason (arena, r->reason_code, r->reason_text, &out->reason);
    out->level = (char *)ask->level_name;
    if (rc == 0 && *ask->reservation && live)
        rc = access_fill (svc, live, ask->reservation, arena, out, err);
    return rc;
}

void admin_check_job (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct svc *svc = self;
    const Nui__Local__V1__CheckJobRequest *r = (const Nui__Local__V1__CheckJobRequest *)request;
    Nui__Local__V1__JobDetail detail;
    struct admin_caller caller;
    struct store_job rec;
    struct site_job *live;
    struct err err = {0};
    struct job_asked ask = {r->verbose, 0, r->level, r->reservation};
    admin_who (svc, call, &caller);
    arena_reset (svc->call_arena);
    int rc = admin_limit_level (r->level, &ask.level, &err);
    if (rc == 0)
        rc = admin_job (svc, &caller, r->job_id, ADMIN_INFO, &rec, &live, &err);
    if (rc != 0) {
        rpccall_fail (call, &err);
        return;
    }
    rc = detail_fill (svc, &rec, live, &ask, svc->call_arena, &detail, &err);
    rpccall_answer (call, rc, &detail.base, &err);
    store_job_free (&rec);
}

void admin_cancel_job (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct svc *svc = self;
    const Nui__Local__V1__CancelJobRequest *r = (const Nui__Local__V1__CancelJobRequest *)request;
    Nui__Local__V1__CancelJobReply reply = NUI__LOCAL__V1__CANCEL_JOB_REPLY__INIT;
    struct admin_caller caller;
    struct store_job rec;
    struct site_job *live;
    struct err err = {0};
    char text[PRINCIPAL_URI_MAX + 32], id[SITE_ID_MAX];
    admin_who (svc, call, &caller);
    int rc = admin_job (svc, &caller, r->job_id, ADMIN_JOBS, &rec, &live, &err);
    if (rc == 0) {
        reply.job_id = site_id (svc, rec.number, id);
        if (live)
            rc = svc_may_act (svc, &err);
        if (rc == 0 && live)
            rc = admin_audit (svc, &caller, &err, "canceljob %s", id);
        text_printf (text, sizeof text, "cancelled by %s", caller.name);
        if (rc == 0 && live) {
            rc = life_cancel (svc, live, "Cancelled", text, &err);
            reply.cancelled = rc == 0;
        }
        store_job_free (&rec);
    }
    rpccall_answer (call, rc, &reply.base, &err);
}
