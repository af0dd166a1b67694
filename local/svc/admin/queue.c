/* The queue as a stream. What is to be told is fixed when the call comes in: the numbers of the
 * jobs. Then a piece at a time, with the loop free in between; a job that has gone meanwhile is
 * left out. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "local/core/explain.h"
#include "local/svc/admin/admin.h"
#include "local/svc/caller.h"
#include "local/svc/job.h"
#include "local/svc/job/jobs.h"
#include "local/svc/svc_i.h"

enum { ROWS_PER_CHUNK = 256, SEEN_PER_CHUNK = 2048 };

struct queue_stream {
    struct admin_stream base;
    struct admin_caller caller;
    char user[STORE_NAME_MAX];
    enum admin_limit_level level;
    uint32_t partition; /* 0: any */
    Nui__Local__V1__QueueSection section;
    struct job_id *id;
    uint32_t count, at, hidden;
    bool told_totals, needs;
};

/* --- one row ------------------------------------------------------------------------------ */

static const char *cred_text (struct svc *svc, const struct site_job *job, enum cred_kind kind)
{
    return job->cred[kind] == CRED_NONE ? "" : cred_name (svc->names, kind, job->cred[kind]);
}

const char *admin_state_name (enum store_job_state state)
{
    static const char *const name[] = {"Unknown",   "Idle",   "Reserved",  "Starting", "Running",
                                       "Completed", "Failed", "Cancelled", "Timeout",  "Refused"};
    return (unsigned)state < sizeof name / sizeof *name ? name[state] : name[0];
}

char **admin_hold_names (uint32_t holds, struct arena *arena, size_t *count)
{
    static const char *const name[] = {"User", "System", "Batch", "Dependency", "Token"};
    char **list = arena_array (arena, 5, sizeof *list);
    for (uint32_t i = 0; i < 5; i++)
        if (holds >> i & 1)
            list[(*count)++] = (char *)name[i];
    return list;
}

/* Could it start if only there were room? */
static bool reason_blocks (const struct site_job *job, const struct job_view *view, time_us now)
{
    if (job->rec.deferred_until > now || view->spec->holds) /* also before the next pass */
        return true;
    switch ((enum reason_code)view->reason.code) {
    case REASON_HOLD:
    case REASON_DEFERRED:
    case REASON_NOT_BEFORE:
    case REASON_DATA:
    case REASON_NEVER_FITS:
    case REASON_RESERVATION_GONE:
    case REASON_SYSTEM_LIMIT:
    case REASON_LIMIT_IDLE:
    case REASON_FS_CAP:
    case REASON_NEGATIVE_PRIORITY:
    case REASON_ARRAY_LIMIT:
    case REASON_DEADLINE:
    case REASON_CLASS:
    case REASON_NEVER_LICENCES:
    case REASON_NEVER_FREE:
        return true;
    default:
        return false;
    }
}

int admin_limit_level (const char *text, enum admin_limit_level *out, struct err *err)
{
    static const char *const name[] = {"", "HARD", "SOFT", "OFF"};
    for (int i = 0; i < 4; i++)
        if (strcasecmp (text, name[i]) == 0) {
            *out = (enum admin_limit_level)i;
            return 0;
        }
    return err_set (err, ERR_INVALID, "policy level '%.20s': wanted HARD, SOFT or OFF", text);
}

/* A soft limit alone does not block, unless it is asked for: idle resources may still be given to the job. */
static bool limit_blocks (struct svc *svc, const struct site_job *job, const struct reason *reason,
                          enum admin_limit_level level, time_us now, struct arena *arena,
                          Nui__Local__V1__QueueJob *out)
{
    struct explained_limit hit;
    char text[LIMITS_TEXT_MAX];
    enum limit_level as = level == ADMIN_LIMITS_SOFT ? LIMIT_SOFT : LIMIT_HARD;
    if (level == ADMIN_LIMITS_OFF ||
        (reason->code != REASON_LIMIT_ACTIVE && level != ADMIN_LIMITS_SOFT) ||
        !explain_limit (svc->cluster, (struct job_id){job->rec.number}, as, now, &hit))
        return false;
    limits_violation_text (&hit.violation, "", svc->names, text, sizeof text);
    const char *sentence = strstr (text, "violates");
    jobs_reason (arena, reason_code_name (REASON_LIMIT_ACTIVE), sentence ? sentence : text,
                 &out->reason);
    return true;
}

bool admin_job_blocked (struct svc *svc, const struct site_job *job, time_us now)
{
    struct explained_limit hit;
    struct job_view view;
    struct job_id id = {job->rec.number};
    if (!job->in_cluster || cluster_job_get (svc->cluster, id, &view, NULL) != 0)
        return true; /* a co-allocated part waits for its moment */
    return reason_blocks (job, &view, now) ||
           (view.reason.code == REASON_LIMIT_ACTIVE &&
            explain_limit (svc->cluster, id, LIMIT_HARD, now, &hit));
}

static char *first_host (struct arena *arena, const char *placement)
{
    size_t n = placement ? strcspn (placement, ":") : 0;
    return n ? arena_printf (arena, "%.*s", (int)n, placement) : arena_strdup (arena, "");
}

static void row_waiting (struct svc *svc, struct site_job *job, const struct job_view *view,
                         enum admin_limit_level level, time_us now, struct arena *arena,
                         Nui__Local__V1__QueueJob *out)
{
    char text[512];
    out->section = NUI__LOCAL__V1__QUEUE_SECTION__SECTION_IDLE;
    if (view->reserved_start != TIME_US_NONE)
        out->reserved_us = view->reserved_start;
    out->holds = admin_hold_names (view->spec->holds, arena, &out->n_holds);
    bool limit = limit_blocks (svc, job, &view->reason, level, now, arena, out);
    if (!limit && !reason_blocks (job, view, now))
        return;
    out->section = NUI__LOCAL__V1__QUEUE_SECTION__SECTION_BLOCKED;
    if (limit)
        return;
    if (jobs_own_reason (svc, job, view, arena, &out->reason))
        return;
    struct reason why = view->reason;
    if (view->spec->holds && why.code != REASON_HOLD)
        why =
            (struct reason){.code = REASON_HOLD, .need = view->spec->holds, .clears = TIME_US_NONE};
    reason_text (&why, svc->names, text, sizeof text);
    jobs_reason (arena, reason_code_name ((enum reason_code)why.code), text, &out->reason);
}

static bool preemptible (const struct svc *svc, const struct site_job *job, bool backfilled)
{
    return !job->part &&
           ((job->attrs & JOBATTR_PREEMPTEE) ||
            (backfilled && svc->settings->policy->backfill_policy == BACKFILL_PREEMPT));
}

/* That of its first node; a job is in one, unless its QoS lets it span. */
static uint32_t partition_of (struct svc *svc, const struct job_view *view)
{
    struct node_view node;
    return view->allocation.count > 0 &&
                   cluster_node_get (svc->cluster, view->allocation.item[0].node, &node, NULL) == 0
               ? node.spec.partition
               : 0;
}

void admin_queue_row (struct svc *svc, struct site_job *job, enum admin_limit_level level,
                      time_us now, struct arena *arena, Nui__Local__V1__QueueJob *out)
{
    char id[SITE_ID_MAX];
    struct job_view view;
    struct explained_job more;
    const struct store_job *rec = &job->rec;
    bool core = job->in_cluster &&
                cluster_job_get (svc->cluster, (struct job_id){rec->number}, &view, NULL) == 0;
    nui__local__v1__queue_job__init (out);
    out->job_id = arena_strdup (arena, site_id (svc, rec->number, id));
    out->grid_job_id = (char *)rec->grid_job_id;
    out->state = (char *)admin_state_name (rec->state);
    out->user = (char *)rec->local_account;
    out->group = (char *)cred_text (svc, job, CRED_GROUP);
    out->account = (char *)rec->pay_account;
    out->class_ = (char *)cred_text (svc, job, CRED_CLASS);
    out->qos = (char *)cred_text (svc, job, CRED_QOS);
    out->procs = rec->procs;
    out->walltime_us = rec->walltime;
    out->submit_us = rec->submit;
    out->start_us = rec->start;
    out->host = (char *)"";
    if (core && explain_job (svc->cluster, (struct job_id){rec->number}, &more, NULL) == 0) {
        int64_t waited = (rec->start ? rec->start : now) - more.eligible_since;
        double x = priority_xfactor (svc->settings->policy, waited > 0 ? waited : 0,
                                     rec->walltime / US_PER_S);
        out->eligible_us = more.eligible_since;
        out->xfactor_milli = x < 4e6 ? (uint32_t)(x * 1000 + .5) : UINT32_MAX;
        out->priority = view.priority;
    }
    if (rec->state == STORE_JOB_RUNNING || rec->state == STORE_JOB_STARTING) {
        out->section = NUI__LOCAL__V1__QUEUE_SECTION__SECTION_ACTIVE;
        out->host = first_host (arena, rec->placement);
        out->backfilled = core && view.backfilled;
        out->preemptible = preemptible (svc, job, out->backfilled);
        uint32_t partition = core ? partition_of (svc, &view) : 0;
        if (partition)
            out->partition = (char *)strtab_name (svc->names->partition, partition - 1);
        if (rec->suspended_at)
            out->state = (char *)"Suspended";
        out->end_us = core && view.state != JOB_IDLE ? view.limit_end
                      : rec->start                   ? rec->start + rec->walltime
                                                     : 0;
    } else if (core) {
        row_waiting (svc, job, &view, level, now, arena, out);
    } else { /* a co-allocated part, which waits for its moment */
        out->section = NUI__LOCAL__V1__QUEUE_SECTION__SECTION_IDLE;
        out->reserved_us = rec->launch_at ? rec->launch_at
                           : job->part    ? job->part->rec.slot_start
                                          : 0;
    }
}

/* --- the stream --------------------------------------------------------------------------- */

static void totals_fill (struct svc *svc, Nui__Local__V1__QueueTotals *out)
{
    nui__local__v1__queue_totals__init (out);
    out->now_us = svc_now (svc);
    out->site = svc->site;
    for (uint32_t n = 0; n < svc->node_count; n++) {
        struct node_view view;
        if (cluster_node_get (svc->cluster, (struct node_id){n}, &view, NULL) != 0)
            continue;
        /* What runs on a node that is drained counts as there: never more in use than there is. */
        int32_t all = view.spec.configured.v[RES_PROCS], used = view.dedicated.v[RES_PROCS];
        used = used < all ? used : all; /* NODEAVAILABILITYPOLICY UTILIZED gives some twice */
        out->procs += (uint32_t)(view.state == NODE_UP ? all : used);
        out->nodes += view.state == NODE_UP || view.job_count > 0;
        out->procs_active += (uint32_t)used;
        out->nodes_active += view.job_count > 0;
    }
}

static void stream_free (struct admin_stream *base)
{
    struct queue_stream *s = (struct queue_stream *)base;
    free (s->id);
    free (s);
}

static void needs_fill (struct svc *svc, const struct site_job *job, Nui__Local__V1__QueueJob *row)
{
    const struct features *f = &job->reqs[0].features;
    row->memory_mb = job->reqs[0].task.v[RES_MEM_MB];
    row->features = arena_array (svc->call_arena, FEATURES_MAX, sizeof *row->features);
    for (uint32_t i = 0; i < FEATURES_MAX; i++)
        if (f->word[i / 64] >> (i % 64) & 1 &&
            strncmp (strtab_name (svc->features, i), "class:", 6) !=
                0) /* a trace's; the row says it */
            row->features[row->n_features++] = (char *)strtab_name (svc->features, i);
}

/* It runs there; or it waits, and may. */
static bool in_partition (struct svc *svc, const struct site_job *job, uint32_t partition)
{
    struct job_view view;
    uint32_t at;
    bool none = false;
    if (!job->in_cluster ||
        cluster_job_get (svc->cluster, (struct job_id){job->rec.number}, &view, NULL) != 0)
        return false;
    if (view.state != JOB_IDLE)
        return (at = partition_of (svc, &view)) == 0 || at == partition;
    for (uint32_t r = 0; r < view.spec->req_count; r++)
        if (view.spec->req[r].partition != PARTITION_ANY &&
            view.spec->req[r].partition != partition)
            return false;
    uint64_t may = policy_partitions (svc->settings->policy, job->cred, &at, &none);
    return !none && (may == 0 || (may & partition_bit (partition)));
}

/* The job's row, or NULL: gone, not asked for, or not the caller's to see. */
static Nui__Local__V1__QueueJob *row_wanted (struct queue_stream *s, struct job_id id, time_us now)
{
    struct site_job *job = svc_job (s->base.svc, id.v);
    if (!job)
        return NULL;
    if (s->caller.level > ADMIN_INFO && !admin_owns (&s->caller, &job->rec)) {
        s->hidden++;
        return NULL;
    }
    if (*s->user && strcmp (s->user, job->rec.local_account) != 0)
        return NULL;
    if (s->partition && !in_partition (s->base.svc, job, s->partition))
        return NULL;
    Nui__Local__V1__QueueJob *row = arena_new (s->base.svc->call_arena, Nui__Local__V1__QueueJob);
    admin_queue_row (s->base.svc, job, s->level, now, s->base.svc->call_arena, row);
    if (s->needs)
        needs_fill (s->base.svc, job, row);
    return s->section && row->section != s->section ? NULL : row;
}

static bool step (struct admin_stream *base)
{
    struct queue_stream *s = (struct queue_stream *)base;
    Nui__Local__V1__QueueChunk chunk = NUI__LOCAL__V1__QUEUE_CHUNK__INIT;
    Nui__Local__V1__QueueTotals totals;
    Nui__Local__V1__QueueJob *rows[ROWS_PER_CHUNK];
    time_us now = svc_now (base->svc);
    chunk.jobs = rows;
    for (uint32_t seen = 0;
         s->at < s->count && seen < SEEN_PER_CHUNK && chunk.n_jobs < ROWS_PER_CHUNK; seen++) {
        Nui__Local__V1__QueueJob *row = row_wanted (s, s->id[s->at++], now);
        if (row)
            rows[chunk.n_jobs++] = row;
    }
    if (!s->told_totals) {
        totals_fill (base->svc, &totals);
        chunk.totals = &totals;
        s->told_totals = true;
    }
    chunk.last = s->at == s->count;
    chunk.hidden = chunk.last ? s->hidden : 0;
    base->blocked = !rpccall_send (base->call, &chunk.base);
    return !chunk.last;
}

static void jobs_gather (struct svc *svc, struct queue_stream *s)
{
    static const enum job_state states[] = {JOB_RUNNING, JOB_STARTING, JOB_SUSPENDED, JOB_IDLE};
    uint32_t cap = HASH_COUNT (svc->jobs) + 1;
    struct site_part *part, *next;
    s->id = calloc (cap, sizeof *s->id);
    assert (s->id);
    for (size_t i = 0; i < 4; i++) {
        uint32_t room = cap - s->count;
        uint32_t n = cluster_job_list (svc->cluster, states[i], s->id + s->count, room);
        s->count += n < room ? n : room;
    }
    HASH_ITER (hh, svc->parts, part, next)
        if (part->job && !part->job->in_cluster && s->count < cap)
            s->id[s->count++].v = part->job->rec.number;
}

void admin_queue (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct svc *svc = self;
    const Nui__Local__V1__QueueRequest *r = (const Nui__Local__V1__QueueRequest *)request;
    struct admin_caller caller;
    struct err err = {0};
    int rc = 0;
    admin_who (svc, call, &caller);
    if (*r->user)
        rc = name_check ("user", r->user, &err);
    if (rc == 0 && *r->user && caller.level > ADMIN_INFO && strcmp (r->user, caller.login) != 0)
        rc = err_set (&err, ERR_DENIED,
                      "you may see your own jobs only; those of %s are for ADMIN%d", r->user,
                      ADMIN_INFO);
    enum admin_limit_level level = ADMIN_LIMITS_AS_THEY_ARE;
    uint32_t partition = 0;
    if (rc == 0)
        rc = admin_limit_level (r->level, &level, &err);
    if (rc == 0)
        rc = admin_partition (svc, r->partition, &partition, &err);
    struct queue_stream *s = rc == 0 ? calloc (1, sizeof *s) : NULL;
    if (!s) {
        if (rc == 0)
            err_set (&err, ERR_NOMEM, "queue: no memory");
        rpccall_fail (call, &err);
        return;
    }
    s->base.step = step;
    s->base.free_fn = stream_free;
    s->caller = caller;
    s->section = r->section;
    s->needs = r->needs;
    s->level = level;
    s->partition = partition;
    snprintf (s->user, sizeof s->user, "%s", r->user);
    jobs_gather (svc, s);
    admin_stream_start (svc, call, &s->base);
}
