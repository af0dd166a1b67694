/* What the scheduler weighs: each job's priority by its parts, and fairshare. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "local/core/explain.h"
#include "local/svc/admin/admin.h"
#include "local/svc/caller.h"
#include "local/svc/job.h"
#include "local/svc/job/jobs.h"
#include "local/svc/svc_i.h"

enum { ROWS_PER_CHUNK = 128, SEEN_PER_CHUNK = 1024 };

/* --- priorities --------------------------------------------------------------------------- */

struct priority_stream {
    struct admin_stream base;
    enum prio_sub sub[PRIO_SUBS]; /* those with a weight, by component */
    uint32_t sub_count;
    struct job_id *id;
    uint32_t count, at;
    bool one, told;
};

static void priority_stream_free (struct admin_stream *base)
{
    struct priority_stream *s = (struct priority_stream *)base;
    free (s->id);
    free (s);
}

static const enum prio_component shown[] = {PRIO_CRED, PRIO_FS, PRIO_SERV, PRIO_TARG, PRIO_RES};

static void subs_choose (const struct policy *policy, struct priority_stream *s)
{
    for (size_t c = 0; c < sizeof shown / sizeof *shown; c++)
        for (int k = 0; k < PRIO_SUBS; k++)
            if (prio_sub_component ((enum prio_sub)k) == shown[c] &&
                policy->component_weight[shown[c]] != 0 && policy->sub_weight[k] != 0)
                s->sub[s->sub_count++] = (enum prio_sub)k;
}

static void parts_fill (const struct priority_stream *s, Nui__Local__V1__PrioritiesChunk *chunk)
{
    const struct policy *policy = s->base.svc->settings->policy;
    struct arena *arena = s->base.svc->call_arena;
    Nui__Local__V1__PriorityPart *part = NULL;
    enum prio_component last = PRIO_COMPONENTS;
    chunk->parts = arena_array (arena, PRIO_COMPONENTS, sizeof *chunk->parts);
    for (uint32_t i = 0; i < s->sub_count; i++) {
        enum prio_component c = prio_sub_component (s->sub[i]);
        if (c != last) {
            part = arena_new (arena, Nui__Local__V1__PriorityPart);
            nui__local__v1__priority_part__init (part);
            part->component = (char *)prio_component_name (c);
            part->weight = policy->component_weight[c];
            part->subs = arena_array (arena, PRIO_SUBS, sizeof *part->subs);
            part->weights = arena_array (arena, PRIO_SUBS, sizeof *part->weights);
            chunk->parts[chunk->n_parts++] = part;
            last = c;
        }
        part->subs[part->n_subs++] = (char *)prio_sub_name (s->sub[i]);
        part->weights[part->n_weights++] = policy->sub_weight[s->sub[i]];
    }
}

/* NULL: gone, or not eligible and not asked for by name. */
static Nui__Local__V1__PriorityRow *priority_row (const struct priority_stream *s, struct job_id id,
                                                  time_us now)
{
    struct svc *svc = s->base.svc;
    struct site_job *job = svc_job (svc, id.v);
    struct priority_explained parts;
    Nui__Local__V1__QueueJob shape;
    if (!job || explain_priority (svc->cluster, id, now, &parts, NULL, NULL) != 0)
        return NULL;
    admin_queue_row (svc, job, ADMIN_LIMITS_AS_THEY_ARE, now, svc->call_arena, &shape);
    if (!s->one && shape.section != NUI__LOCAL__V1__QUEUE_SECTION__SECTION_IDLE)
        return NULL;
    struct explained_job more;
    Nui__Local__V1__PriorityRow *row = arena_new (svc->call_arena, Nui__Local__V1__PriorityRow);
    nui__local__v1__priority_row__init (row);
    row->job_id = shape.job_id;
    row->priority = parts.priority;
    if (explain_job (svc->cluster, id, &more, NULL) == 0)
        row->system = more.system_priority != 0;
    row->values = arena_array (svc->call_arena, s->sub_count + 1, sizeof *row->values);
    for (uint32_t i = 0; i < s->sub_count; i++)
        row->values[row->n_values++] =
            parts.sub[s->sub[i]] *
            svc->settings->policy->component_weight[prio_sub_component (s->sub[i])];
    return row;
}

static bool priority_step (struct admin_stream *base)
{
    struct priority_stream *s = (struct priority_stream *)base;
    Nui__Local__V1__PrioritiesChunk chunk = NUI__LOCAL__V1__PRIORITIES_CHUNK__INIT;
    Nui__Local__V1__PriorityRow *rows[ROWS_PER_CHUNK];
    time_us now = svc_now (base->svc);
    chunk.rows = rows;
    if (!s->told)
        parts_fill (s, &chunk);
    s->told = true;
    for (uint32_t seen = 0;
         s->at < s->count && seen < SEEN_PER_CHUNK && chunk.n_rows < ROWS_PER_CHUNK; seen++) {
        Nui__Local__V1__PriorityRow *row = priority_row (s, s->id[s->at++], now);
        if (row)
            rows[chunk.n_rows++] = row;
    }
    base->blocked = !rpccall_send (base->call, &chunk.base);
    return s->at < s->count;
}

void admin_priorities (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct svc *svc = self;
    const Nui__Local__V1__PrioritiesRequest *r = (const Nui__Local__V1__PrioritiesRequest *)request;
    struct admin_caller caller;
    struct store_job rec = {0};
    struct site_job *live = NULL;
    struct err err = {0};
    admin_who (svc, call, &caller);
    int rc = admin_require (&caller, ADMIN_INFO, "diagnosis", &err);
    if (rc == 0 && *r->job_id)
        rc = admin_job (svc, &caller, r->job_id, ADMIN_INFO, &rec, &live, &err);
    if (rc == 0 && *r->job_id && (!live || !live->in_cluster))
        rc = err_set (&err, ERR_CONFLICT, "job %.80s does not wait in the queue", r->job_id);
    if (rc != 0) {
        store_job_free (&rec);
        jobs_refuse (svc, call, &err);
        return;
    }
    struct priority_stream *s = calloc (1, sizeof *s);
    uint32_t cap = cluster_job_count (svc->cluster, JOB_IDLE) + 1;
    assert (s);
    s->base.step = priority_step;
    s->base.free_fn = priority_stream_free;
    s->id = calloc (cap, sizeof *s->id);
    assert (s->id);
    s->one = live != NULL;
    s->id[0].v = rec.number;
    s->count = live ? 1 : cluster_job_list (svc->cluster, JOB_IDLE, s->id, cap);
    if (s->count > cap)
        s->count = cap;
    store_job_free (&rec);
    subs_choose (svc->settings->policy, s);
    admin_stream_start (svc, call, &s->base);
}

/* --- fairshare ---------------------------------------------------------------------------- */

const char *admin_target_type (enum fs_target_type type)
{
    static const char *const name[] = {
        [FS_TARGET_NONE] = "",     [FS_TARGET_TARGET] = "=",       [FS_TARGET_FLOOR] = "+",
        [FS_TARGET_CEILING] = "-", [FS_TARGET_CAP_ABSOLUTE] = "^", [FS_TARGET_CAP_RELATIVE] = "%",
    };
    return name[type];
}

static void fairshare_row (struct svc *svc, const struct fairshare *fs, enum cred_kind kind,
                           uint32_t id, Nui__Local__V1__FairshareReply *reply)
{
    const struct policy *policy = svc->settings->policy;
    const struct policy_cred *cred = policy_cred (policy, kind, id);
    double percent = fairshare_percent (fs, kind, id);
    bool named = cred->id == id && (cred->set & CRED_SET_FSTARGET);
    if (percent == 0 && !named)
        return;
    Nui__Local__V1__FairshareRow *row = arena_new (svc->call_arena, Nui__Local__V1__FairshareRow);
    nui__local__v1__fairshare_row__init (row);
    row->kind = (char *)cred_kind_name (kind);
    row->name = (char *)cred_name (svc->names, kind, id);
    row->percent = percent;
    row->target = cred->fs_target;
    row->target_type = (char *)admin_target_type (cred->fs_target_type);
    row->windows = arena_array (svc->call_arena, policy->fs_depth + 1, sizeof *row->windows);
    for (uint32_t n = 0; n < policy->fs_depth; n++) {
        double total = fairshare_window_total (fs, n);
        row->windows[row->n_windows++] =
            total > 0 ? 100 * fairshare_window (fs, kind, id, n) / total : 0;
    }
    reply->rows[reply->n_rows++] = row;
}

void admin_fairshare (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    static const char *const policies[] = {"NONE", "DEDICATEDPS", "DEDICATEDPES", "UTILIZEDPS"};
    struct svc *svc = self;
    const struct policy *policy = svc->settings->policy;
    Nui__Local__V1__FairshareReply reply = NUI__LOCAL__V1__FAIRSHARE_REPLY__INIT;
    struct admin_caller caller;
    struct err err = {0};
    uint32_t rows = 0;
    (void)request;
    admin_who (svc, call, &caller);
    if (admin_require (&caller, ADMIN_INFO, "diagnosis", &err) != 0) {
        jobs_refuse (svc, call, &err);
        return;
    }
    struct fairshare *fs = cluster_fairshare (svc->cluster);
    arena_reset (svc->call_arena);
    fairshare_advance (fs, svc_now (svc));
    for (int k = 0; k < CRED_KINDS; k++)
        rows += fairshare_count (fs, (enum cred_kind)k) + 1;
    reply.rows = arena_array (svc->call_arena, rows, sizeof *reply.rows);
    reply.policy = (char *)policies[policy->fs_policy];
    reply.depth = policy->fs_depth;
    reply.interval_us = policy->fs_interval;
    reply.decay = policy->fs_decay;
    reply.totals = arena_array (svc->call_arena, policy->fs_depth + 1, sizeof *reply.totals);
    for (uint32_t n = 0; n < policy->fs_depth; n++)
        reply.totals[reply.n_totals++] = fairshare_window_total (fs, n);
    for (int k = 0; k < CRED_KINDS; k++)
        for (uint32_t id = 0; id < fairshare_count (fs, (enum cred_kind)k); id++)
            fairshare_row (svc, fs, (enum cred_kind)k, id, &reply);
    rpccall_reply (call, &reply.base);
}

/* --- credentials -------------------------------------------------------------------------- */

enum { CREDENTIALS_MAX = 20000 };

static void limit_text (struct arena *arena, Nui__Local__V1__CredentialRow *row, const char *prefix,
                        const char *name, int64_t soft, int64_t hard)
{
    const char *short_name = strncmp (name, "MAX", 3) == 0 ? name + 3 : name;
    char *text;
    if (soft == LIMIT_UNLIMITED)
        text = arena_printf (arena, "%s%s=-1", prefix, short_name);
    else if (soft == hard)
        text = arena_printf (arena, "%s%s=%lld", prefix, short_name, (long long)hard);
    else
        text = arena_printf (arena, "%s%s=%lld,%lld", prefix, short_name, (long long)soft,
                             (long long)hard);
    row->limits[row->n_limits++] = text;
}

static void limits_fill (struct arena *arena, const struct policy_limits *l, bool override,
                         Nui__Local__V1__CredentialRow *row)
{
    for (int k = 0; k < LIMIT_KINDS; k++) {
        const char *name = limit_kind_name ((enum limit_kind)k);
        bool least = k == LIMIT_MINPROC;
        if (l->active_mask >> k & 1)
            limit_text (arena, row,
                        least      ? ""
                        : override ? "OMAX"
                                   : "MAX",
                        name, l->active[LIMIT_SOFT][k], l->active[LIMIT_HARD][k]);
        if (l->idle_mask >> k & 1)
            limit_text (arena, row, override ? "OMAXI" : "MAXI", name, l->idle[k], l->idle[k]);
        if (l->per_job_mask >> k & 1) /* MAXPROC: MAXPROCPERJOB */
            limit_text (arena, row, "MAX", arena_printf (arena, "%sPERJOB", name), l->per_job[k],
                        l->per_job[k]);
    }
}

/* "MAXJOB[USER]=3", "MAXPROC[USER:steve]=16,20" */
static void cross_fill (struct svc *svc, const struct policy_cred *cred,
                        Nui__Local__V1__CredentialRow *row)
{
    static const char *const kind[CRED_KINDS] = {"USER", "GROUP", "ACCOUNT", "CLASS", "QOS"};
    struct arena *arena = svc->call_arena;
    for (uint32_t i = 0; i < cred->cross_count; i++) {
        const struct policy_cross *c = &cred->cross[i];
        const char *short_name = limit_kind_name (c->limit);
        const char *other =
            c->other_id == CRED_NONE ? "" : cred_name (svc->names, c->other_kind, c->other_id);
        short_name = strncmp (short_name, "MAX", 3) == 0 ? short_name + 3 : short_name;
        char *name = arena_printf (arena, "%s[%s%s%s]", short_name, kind[c->other_kind],
                                   *other ? ":" : "", other);
        limit_text (arena, row, c->idle ? "MAXI" : "MAX", name,
                    c->idle ? c->value[LIMIT_HARD] : c->value[LIMIT_SOFT], c->value[LIMIT_HARD]);
    }
}

static void qos_fill (struct arena *arena, const struct policy_qos *q,
                      Nui__Local__V1__CredentialRow *row)
{
    static const struct {
        uint32_t bit;
        const char *name;
    } flag[] = {{QOS_RESERVEALWAYS, "RESERVEALWAYS"},
                {QOS_NORESERVATION, "NORESERVATION"},
                {QOS_NOBF, "NOBF"},
                {QOS_IGNSYSTEM, "IGNSYSTEM"},
                {QOS_IGNUSER, "IGNUSER"},
                {QOS_IGNALL, "IGNALL"},
                {QOS_PREEMPTOR, "PREEMPTOR"},
                {QOS_PREEMPTEE, "PREEMPTEE"},
                {QOS_PREEMPTSPV, "PREEMPTSPV"},
                {QOS_RESTARTPREEMPT, "RESTARTPREEMPT"},
                {QOS_NTR, "NTR"},
                {QOS_RUNNOW, "RUNNOW"},
                {QOS_DEDICATED, "DEDICATED"},
                {QOS_SPAN, "SPAN"},
                {QOS_IGNSRMAXTIME, "IGNSRMAXTIME"},
                {QOS_IGNHOSTLIST, "IGNHOSTLIST"},
                {QOS_USERESERVED, "USERESERVED"}};
    row->qtweight = q->qtweight;
    row->qttarget = q->qttarget_min;
    row->xfweight = q->xfweight;
    row->xftarget = q->xftarget;
    row->flags = arena_array (arena, sizeof flag / sizeof *flag, sizeof *row->flags);
    for (size_t i = 0; i < sizeof flag / sizeof *flag; i++)
        if (q->flags & flag[i].bit)
            row->flags[row->n_flags++] = (char *)flag[i].name;
    limits_fill (arena, &q->override, true, row);
}

/* Names of one kind whose QLIST or QDEF has the QoS. */
static char **qos_members (struct svc *svc, enum cred_kind kind, uint32_t qos, size_t *count)
{
    const struct policy *p = svc->settings->policy;
    char **out = arena_array (svc->call_arena, p->cred_count[kind] + 1, sizeof *out);
    for (uint32_t i = 0; i < p->cred_count[kind]; i++) {
        const struct policy_cred *c = &p->cred[kind][i];
        bool has = c->qdef == qos;
        for (uint32_t q = 0; q < c->qlist_count && !has; q++)
            has = c->qlist[q] == qos;
        if (has)
            out[(*count)++] = (char *)cred_name (svc->names, kind, c->id);
    }
    return out;
}

static void qos_members_fill (struct svc *svc, uint32_t qos, Nui__Local__V1__CredentialRow *row)
{
    row->users = qos_members (svc, CRED_USER, qos, &row->n_users);
    row->groups = qos_members (svc, CRED_GROUP, qos, &row->n_groups);
    row->accounts = qos_members (svc, CRED_ACCOUNT, qos, &row->n_accounts);
    row->classes = qos_members (svc, CRED_CLASS, qos, &row->n_classes);
}

static void system_qos_fill (struct svc *svc, Nui__Local__V1__CredentialsReply *reply)
{
    const struct policy *p = svc->settings->policy;
    reply->system_qlist =
        arena_array (svc->call_arena, p->system_qlist_count + 1, sizeof *reply->system_qlist);
    for (uint32_t i = 0; i < p->system_qlist_count; i++)
        reply->system_qlist[reply->n_system_qlist++] =
            (char *)cred_name (svc->names, CRED_QOS, p->system_qlist[i]);
    if (p->system_qdef != CRED_NONE)
        reply->system_qdef = (char *)cred_name (svc->names, CRED_QOS, p->system_qdef);
}

static Nui__Local__V1__CredentialRow *credential_row (struct svc *svc, enum cred_kind kind,
                                                      uint32_t id)
{
    struct arena *arena = svc->call_arena;
    const struct policy_cred *cred = policy_cred (svc->settings->policy, kind, id);
    Nui__Local__V1__CredentialRow *row = arena_new (arena, Nui__Local__V1__CredentialRow);
    nui__local__v1__credential_row__init (row);
    row->name = (char *)cred_name (svc->names, kind, id);
    row->priority = cred->priority;
    row->target = cred->fs_target;
    row->target_type = (char *)admin_target_type (cred->fs_target_type);
    if (cred->qdef != CRED_NONE)
        row->qdef = (char *)cred_name (svc->names, CRED_QOS, cred->qdef);
    row->qlist = arena_array (arena, cred->qlist_count + 1, sizeof *row->qlist);
    for (uint32_t i = 0; i < cred->qlist_count; i++)
        row->qlist[row->n_qlist++] = (char *)cred_name (svc->names, CRED_QOS, cred->qlist[i]);
    row->limits = arena_array (arena, 6 * LIMIT_KINDS + cred->cross_count, sizeof *row->limits);
    limits_fill (arena, &cred->limits, false, row);
    cross_fill (svc, cred, row);
    if (kind == CRED_QOS && cred->qos)
        qos_fill (arena, cred->qos, row);
    if (kind == CRED_QOS)
        qos_members_fill (svc, id, row);
    return row;
}

void admin_credentials (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct svc *svc = self;
    const Nui__Local__V1__CredentialsRequest *r =
        (const Nui__Local__V1__CredentialsRequest *)request;
    Nui__Local__V1__CredentialsReply reply = NUI__LOCAL__V1__CREDENTIALS_REPLY__INIT;
    struct admin_caller caller;
    struct err err = {0};
    int kind = 0;
    admin_who (svc, call, &caller);
    while (kind < CRED_KINDS && strcmp (cred_kind_name ((enum cred_kind)kind), r->kind) != 0)
        kind++;
    int rc = admin_require (&caller, ADMIN_INFO, "diagnosis", &err);
    if (rc == 0 && kind == CRED_KINDS)
        rc = err_set (&err, ERR_INVALID, "'%.40s' is no kind of credential", r->kind);
    uint32_t count = rc == 0 ? strtab_count (svc->names->tab[kind]) : 0;
    if (count > CREDENTIALS_MAX)
        rc = err_set (&err, ERR_LIMIT, "site %s knows %u of them, at most %d are listed", svc->site,
                      count, CREDENTIALS_MAX);
    if (rc != 0) {
        jobs_refuse (svc, call, &err);
        return;
    }
    arena_reset (svc->call_arena);
    reply.rows = arena_array (svc->call_arena, count + 1, sizeof *reply.rows);
    uint32_t one = *r->name ? strtab_find (svc->names->tab[kind], r->name) : STRTAB_NONE;
    if (*r->name && one == STRTAB_NONE) {
        err_set (&err, ERR_NOT_FOUND, "site %s knows no %s %.63s", svc->site, r->kind, r->name);
        rpccall_fail (call, &err);
        return;
    }
    for (uint32_t id = *r->name ? one : 0; id < (*r->name ? one + 1 : count); id++)
        reply.rows[reply.n_rows++] = credential_row (svc, (enum cred_kind)kind, id);
    if (kind == CRED_QOS)
        system_qos_fill (svc, &reply);
    rpccall_reply (call, &reply.base);
}
