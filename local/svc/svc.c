#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "local/rm/rm_embedded.h"
#include "local/rm/rm_slurm.h"
#include "local/svc/contact.h"
#include "local/svc/admin.h"
#include "local/svc/admin_stats.h"
#include "local/svc/fairshare_file.h"
#include "local/svc/forecast.h"
#include "local/svc/follow.h"
#include "local/svc/mode.h"
#include "local/svc/notify.h"
#include "local/svc/renew.h"
#include "local/svc/resv.h"
#include "local/svc/simulate.h"
#include "local/svc/staging.h"
#include "local/svc/stageout.h"
#include "local/svc/stats.h"
#include "proto/base/clock.h"
#include "proto/base/strbuf.h"

/* --- names -------------------------------------------------------------------------------- */

char *site_id (const struct svc *svc, uint64_t number, char out[SITE_ID_MAX])
{
    snprintf (out, SITE_ID_MAX, "%s.%llu", svc->site, (unsigned long long)number);
    return out;
}

struct site_job *svc_job (struct svc *svc, uint64_t number)
{
    struct site_job *job;
    HASH_FIND (hh, svc->jobs, &number, sizeof number, job);
    return job;
}

void svc_reason (struct site_job *job, const char *code, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start (ap, fmt);
    vsnprintf (text, sizeof text, fmt, ap);
    va_end (ap);
    snprintf (job->rec.reason_code, sizeof job->rec.reason_code, "%s", code);
    free (job->rec.reason_text);
    job->rec.reason_text = *text ? strdup (text) : NULL;
}

/* --- nodes -------------------------------------------------------------------------------- */

static struct site_node *node_find (const struct svc *svc, const char *name)
{
    struct site_node *node;
    HASH_FIND_STR (svc->nodes, name, node);
    return node;
}

const char *node_address (struct svc *svc, const char *node_name)
{
    const struct site_node *node = node_find (svc, node_name);
    return node && node->address ? node->address : svc->host;
}

char *placement_text (struct svc *svc, const struct allocation *allocation)
{
    struct strbuf b = STRBUF_INIT;
    for (uint32_t i = 0; i < allocation->count; i++) {
        const struct placement *p = &allocation->item[i];
        strbuf_printf (&b, "%s%s:%u:%u", i ? "," : "", svc->node_by_id[p->node.v]->name, p->tasks,
                       p->req);
    }
    strbuf_text (&b);
    return strbuf_steal (&b);
}

bool placement_next (const struct svc *svc, const char **text, struct site_node **node_out,
                     unsigned *tasks_out, unsigned *req_out)
{
    char name[STORE_NAME_MAX];
    if (!*text || sscanf (*text, "%63[^:]:%u:%u", name, tasks_out, req_out) != 3)
        return false;
    *node_out = node_find (svc, name);
    *text = strchr (*text, ',');
    *text = *text ? *text + 1 : NULL;
    return true;
}

struct allocation placement_parse (struct svc *svc, const char *text, struct arena *arena)
{
    struct allocation a = {0};
    uint32_t cap = 1;
    for (const char *p = text; p && *p; p++)
        cap += *p == ',';
    a.item = arena_array (arena, cap, sizeof *a.item);
    struct site_node *node;
    unsigned tasks, req;
    for (const char *p = text; placement_next (svc, &p, &node, &tasks, &req);)
        if (node)
            a.item[a.count++] = (struct placement){node->id, tasks & 0xffffff, req & 0xff};
    return a;
}

static bool node_by_name (void *self, const char *name, struct node_id *out)
{
    const struct site_node *node = node_find (self, name);
    if (node)
        *out = node->id;
    return node != NULL;
}

enum { SET_STATE, SET_FEATURES, SET_PRIORITY, SET_SPEED, SETS };

static const char *const set_names[SETS] = {"state", "features", "priority", "speed"};

char *svc_node_set (struct site_node *node, const char *name, const char *value)
{
    for (int i = 0; i < SETS; i++)
        if (strcmp (set_names[i], name) == 0) {
            char *before = node->set[i];
            node->set[i] = *value ? strdup (value) : NULL;
            return before;
        }
    return NULL;
}

/* What administrators set of it, over what is configured. */
static struct nodeconf_node node_wanted (const struct site_node *node,
                                         const struct nodeconf_node *n)
{
    struct nodeconf_node wanted = *n;
    if (node && node->set[SET_FEATURES])
        wanted.features = node->set[SET_FEATURES];
    if (node && node->set[SET_PRIORITY])
        wanted.priority = strtoll (node->set[SET_PRIORITY], NULL, 10);
    if (node && node->set[SET_SPEED])
        (void)ppm_parse (node->set[SET_SPEED], "speed", &wanted.speed_ppm, NULL);
    return wanted;
}

static void node_set_loaded (void *arg, const char *name, const char *value)
{
    free (svc_node_set (arg, name, value));
}

int svc_node_sets_load (struct svc *svc, struct site_node *node, struct err *err)
{
    for (size_t i = 0; i < sizeof node->set / sizeof *node->set; i++) {
        free (node->set[i]);
        node->set[i] = NULL;
    }
    return local_store_sets (svc->store, STORE_SET_NODE, node->name, node_set_loaded, node, err);
}

static void text_replace (char **text, const char *with)
{
    free (*text);
    *text = with ? strdup (with) : NULL;
}

static int node_add (struct svc *svc, const struct nodeconf_node *n, const struct node_spec *spec,
                     time_us now, struct err *err)
{
    struct node_id id;
    int rc = cluster_node_add (svc->cluster, spec, now, &id, err);
    if (rc != 0)
        return rc;
    struct site_node *node = calloc (1, sizeof *node);
    struct site_node **more = realloc (svc->node_by_id, (id.v + 1) * sizeof *more);
    assert (node && more);
    svc->node_by_id = more;
    more[id.v] = node;
    svc->node_count = id.v + 1;
    node->name = strdup (n->name);
    node->id = id;
    HASH_ADD_KEYPTR (hh, svc->nodes, node->name, strlen (node->name), node);
    rc = svc_node_sets_load (svc, node, err);
    struct nodeconf_node wanted = node_wanted (node, n);
    struct node_spec changed;
    if (rc == 0)
        rc = place_node (&svc->place, &wanted, &changed, err);
    return rc == 0 ? cluster_node_update (svc->cluster, id, &changed, now, err) : rc;
}

/* New ones are added, others changed, absent ones are down. */
static int nodes_apply (struct svc *svc, const struct settings *settings,
                        const struct nodeconf_node *nodes, uint32_t count, struct err *err)
{
    time_us now = svc_now (svc);
    int rc = 0;
    if (svc->stats)
        stats_advance (svc, now);
    for (uint32_t i = 0; i < svc->node_count; i++)
        svc->node_by_id[i]->configured = false;
    svc->node_types = false;
    char *licences = rmnodes_licences (svc, settings);
    rc = place_prepare (&svc->place, nodes, count, licences, now, err);
    free (licences);
    for (uint32_t i = 0; rc == 0 && i < count; i++) {
        const struct nodeconf_node *n = &nodes[i];
        struct node_spec spec;
        struct site_node *node = node_find (svc, n->name);
        struct nodeconf_node wanted = node_wanted (node, n);
        rc = place_node (&svc->place, &wanted, &spec, err);
        if (rc == 0 && node)
            rc = cluster_node_update (svc->cluster, node->id, &spec, now, err);
        else if (rc == 0)
            rc = node_add (svc, n, &spec, now, err);
        if (rc != 0)
            break;
        node = node_find (svc, n->name);
        node->configured = true;
        text_replace (&node->address, n->address);
        text_replace (&node->type, n->type);
        svc->node_types |= n->type != NULL;
        text_replace (&node->partition, n->partition);
    }
    if (rc == 0)
        rc = cluster_job_column_set (svc->cluster, svc->place.job_column, now, err);
    if (rc == 0)
        rc = place_apply (&svc->place, settings->policy, settings->nodes.topology, now, err);
    for (uint32_t i = 0; rc == 0 && i < svc->node_count; i++) {
        struct site_node *node = svc->node_by_id[i];
        struct node_view view;
        if (!node->configured && cluster_node_get (svc->cluster, node->id, &view, NULL) == 0) {
            view.spec.gone = 1;
            rc = cluster_node_update (svc->cluster, node->id, &view.spec, now, err);
        }
    }
    for (uint32_t i = 0; rc == 0 && i < svc->node_count; i++) {
        struct site_node *node = svc->node_by_id[i];
        enum node_state state = node->configured ? rmnodes_state (svc, node->name) : NODE_DOWN;
        const char *set = node->set[SET_STATE];
        if (set && strcmp (set, "down") == 0)
            state = NODE_DOWN;
        else if (set && state == NODE_UP)
            state = NODE_DRAINED;
        rc = cluster_node_state_set (svc->cluster, node->id, state, now, err);
    }
    return rc;
}

int svc_nodes_apply (struct svc *svc, const struct settings *settings, struct err *err)
{
    uint32_t count;
    struct nodeconf_node *theirs = rmnodes_list (svc, settings, &count);
    int rc = theirs ? nodes_apply (svc, settings, theirs, count, err)
                    : nodes_apply (svc, settings, settings->nodes.node, settings->nodes.node_count,
                                   err);
    rmnodes_free (theirs, count);
    return rc;
}

/* --- the store ---------------------------------------------------------------------------- */

int svc_begin (struct svc *svc, struct err *err)
{
    return local_store_begin (svc->store, err);
}

int svc_commit (struct svc *svc, int rc, struct err *err)
{
    struct err local = {0};
    if (!err)
        err = &local;
    if (rc == 0)
        rc = local_store_commit (svc->store, err);
    if (rc != 0) {
        local_store_rollback (svc->store);
        log_event (svc->log, LOG_LEVEL_ERROR, "store", "not_written", "error=\"%s\"", err->text);
    }
    return rc;
}

/* Parts are told of from COMMIT on: before, they are the coordinator's own knowledge. */
int svc_job_write (struct svc *svc, struct site_job *job, bool tell, const void *envelope,
                   size_t envelope_len, struct err *err)
{
    uint64_t change;
    int rc = local_store_next (svc->store, "change", &change, err);
    if (rc != 0)
        return rc;
    job->rec.change = change;
    tell = tell && *job->rec.grid_job_id;
    if (tell)
        job->rec.ever_told = true;
    rc = local_store_job_put (svc->store, &job->rec, envelope, envelope_len, err);
    if (rc != 0 || !tell)
        return rc;
    struct arena *arena = arena_create (0);
    struct uuid key;
    Nui__Local__V1__JobInfo info;
    jobs_info (svc, &job->rec, store_job_ended (job->rec.state) ? NULL : job, arena, &info);
    size_t len = nui__local__v1__job_info__get_packed_size (&info);
    uint8_t *bytes = arena_alloc (arena, len);
    nui__local__v1__job_info__pack (&info, bytes);
    uuid_make (&key);
    rc = local_store_outbox_put (svc->store, STORE_OUTBOX_META, "job", &key, bytes, len,
                                 svc_now (svc), NULL, err);
    snprintf (job->told_reason, sizeof job->told_reason, "%s", info.reason ? info.reason->code : "");
    arena_destroy (arena);
    if (rc == 0 && svc->meta)
        meta_link_poke (svc->meta);
    return rc;
}

/* --- jobs and parts ----------------------------------------------------------------------- */

/* As its QoS is now. */
static uint32_t attrs_by_qos (const struct svc *svc, const struct site_job *job)
{
    const struct policy_qos *qos = policy_qos (svc->settings->policy, job->cred[CRED_QOS]);
    uint32_t flags = qos ? qos->flags : 0;
    bool evicts = flags & (QOS_PREEMPTOR | QOS_RESTARTPREEMPT);
    bool yields = (flags & QOS_PREEMPTEE) || (job->core_flags & JOB_PREEMPTEE);
    return (evicts ? JOBATTR_PREEMPTOR : 0) | (yields ? JOBATTR_PREEMPTEE : 0) |
           (job->core_flags & JOB_NORESTART ? 0 : JOBATTR_RESTARTABLE);
}

void svc_job_qos_set (struct svc *svc, struct site_job *job, uint32_t qos)
{
    job->cred[CRED_QOS] = qos;
    job->attrs = attrs_by_qos (svc, job);
}

struct site_job *svc_job_add (struct svc *svc, const struct store_job *rec,
                              const struct jobspec *spec)
{
    struct site_job *job = calloc (1, sizeof *job);
    assert (job);
    job->rec = *rec;
    memcpy (job->cred, spec->cred, sizeof job->cred);
    job->reqs = calloc (spec->req_count, sizeof *job->reqs);
    assert (job->reqs);
    memcpy (job->reqs, spec->reqs, spec->req_count * sizeof *job->reqs);
    job->req_count = spec->req_count;
    job->reservation = spec->component ? resv_named (svc, spec->component->reservation)
                                       : (struct rsv_id){0}; /* none in a simulation */
    job->licence = calloc (spec->licence_count + 1, sizeof *job->licence);
    assert (job->licence);
    memcpy (job->licence, spec->licence, spec->licence_count * sizeof *job->licence);
    job->licence_count = spec->licence_count;
    job->not_before = spec->job->not_before_us ? spec->job->not_before_us : TIME_US_NONE;
    job->core_flags = spec->core_flags;
    job->attrs = attrs_by_qos (svc, job);
    job->deadline = spec->job->deadline_us;
    job->stages = spec->component && spec->component->n_stage_in > 0;
    job->stages_out = spec->component && spec->component->n_stage_out > 0;
    HASH_ADD (hh, svc->jobs, rec.number, sizeof job->rec.number, job);
    ports_mark (svc, job->rec.port, true);
    return job;
}

void svc_job_forget (struct svc *svc, struct site_job *job)
{
    forecast_forget (svc, job->rec.number);
    staging_leave (svc, job);
    HASH_DEL (svc->jobs, job);
    ports_mark (svc, job->rec.port, false);
    store_job_free (&job->rec);
    free (job->reqs);
    depends_forget (svc, job);
    free (job->licence);
    free (job);
}

struct site_part *svc_part_add (struct svc *svc, const struct store_part *rec,
                                struct site_job *job)
{
    struct site_part *part = calloc (1, sizeof *part);
    assert (part);
    part->svc = svc;
    part->rec = *rec;
    part->job = job;
    job->part = part;
    HASH_ADD (hh, svc->parts, rec.job, sizeof part->rec.job, part);
    return part;
}

void svc_part_forget (struct svc *svc, struct site_part *part)
{
    HASH_DEL (svc->parts, part);
    if (part->job)
        part->job->part = NULL;
    if (part->timer)
        event_free (part->timer);
    store_part_free (&part->rec);
    free (part);
}

/* Every job came through a metascheduler that has the grid's id; others are the site's own. */
static uint32_t attrs_of (const struct site_job *job)
{
    return (*job->rec.grid_job_id ? JOBATTR_GRID : 0) |
           (job->rec.part ? JOBATTR_COALLOCATED : 0) | job->attrs;
}

struct rsv_id svc_reservation_of (struct svc *svc, struct rsv_id asked, uint32_t qos)
{
    const struct policy_qos *of = policy_qos (svc->settings->policy, qos);
    return asked.v || !of || !of->use_reserved ? asked : resv_named (svc, of->use_reserved);
}

struct who svc_who (struct svc *svc, const struct site_job *job)
{
    struct who who = {.walltime = job->rec.walltime, .procs = job->rec.procs,
                      .attrs = attrs_of (job),
                      .named = svc_reservation_of (svc, job->reservation, job->cred[CRED_QOS])};
    memcpy (who.cred, job->cred, sizeof who.cred);
    return who;
}

static struct job_spec core_spec_of (struct svc *svc, const struct site_job *job)
{
    struct job_spec spec = {
        .id = {job->rec.number},
        .submit = job->rec.submit,
        .not_before = job->not_before,
        .walltime_limit = job->rec.walltime,
        .req_count = job->req_count,
        .licence_count = job->licence_count,
        .licence = job->licence,
        .req = job->reqs,
        .reservation = svc_reservation_of (svc, job->reservation, job->cred[CRED_QOS]),
        .attrs = attrs_of (job),
    };
    memcpy (spec.cred, job->cred, sizeof spec.cred);
    spec.holds = job->depends ? HOLD_DEPENDENCY : 0;
    spec.flags = job->core_flags | (job->part ? JOB_FIRM : 0);
    spec.deadline = job->deadline;
    spec.data_at = job->data_at;
    spec.array = job->rec.array;
    spec.array_limit = job->rec.array_limit;
    return spec;
}

int svc_cluster_modify (struct svc *svc, struct site_job *job, struct err *err)
{
    struct job_spec spec = core_spec_of (svc, job);
    struct job_view view;
    int rc = cluster_job_get (svc->cluster, spec.id, &view, err);
    if (rc != 0)
        return rc;
    spec.holds = view.spec->holds;
    spec.flags = view.spec->flags;
    spec.system_priority = view.spec->system_priority;
    return cluster_job_modify (svc->cluster, &spec, svc_now (svc), err);
}

int svc_cluster_submit (struct svc *svc, struct site_job *job, struct err *err)
{
    struct job_spec spec = core_spec_of (svc, job);
    int rc = cluster_job_submit (svc->cluster, &spec, svc_now (svc), err);
    job->in_cluster = rc == 0;
    if (rc == 0)
        forecast_arrived (svc, job);
    return rc;
}

/* --- recovery ----------------------------------------------------------------------------- */

static void recover_running (struct svc *svc, struct site_job *job)
{
    struct err err = {0};
    time_us now = svc_now (svc);
    struct job_id id = {job->rec.number};
    arena_reset (svc->call_arena);
    struct allocation a = placement_parse (svc, job->rec.placement, svc->call_arena);
    time_us started = job->rec.start ? evict_effective_start (job) : now;
    if (!job->in_cluster)
        return;
    if (job->rec.suspended_at && job->rec.state == STORE_JOB_RUNNING) {
        if (evict_restore (svc, job, &a, &err) != 0 ||
            admin_suspended_restore (svc, job, &err) != 0)
            log_event (svc->log, LOG_LEVEL_ERROR, "svc", "nodes_not_regained",
                       "job=%s.%llu error=\"%s\"", svc->site, (unsigned long long)job->rec.number,
                       err.text);
        return;
    }
    if (cluster_job_start (svc->cluster, id, &a, started, now, &err) != 0 ||
        (job->rec.state == STORE_JOB_RUNNING &&
         cluster_job_running (svc->cluster, id, started, now, &err) != 0) ||
        (job->rec.backfilled && cluster_job_backfilled_set (svc->cluster, id, now, &err) != 0))
        log_event (svc->log, LOG_LEVEL_ERROR, "svc", "nodes_not_regained",
                   "job=%s.%llu error=\"%s\"", svc->site, (unsigned long long)job->rec.number,
                   err.text);
}

/* A queued job's deferral, and the nodes it keeps after a failed start. */
static int recover_queued (struct svc *svc, const struct site_job *job, struct err *err)
{
    struct job_id id = {job->rec.number};
    time_us now = svc_now (svc), until = 0;
    struct err lost = {0};
    int rc = 0;
    if (job->rec.deferred_until > now)
        rc = cluster_job_defer (svc->cluster, id, job->rec.deferred_until, now, err);
    if (rc == 0)
        rc = local_store_retry_get (svc->store, job->rec.number, &until, err);
    if (rc != 0 || until <= now || !job->rec.placement)
        return rc;
    arena_reset (svc->call_arena);
    struct allocation a = placement_parse (svc, job->rec.placement, svc->call_arena);
    if (cluster_job_retry_keep (svc->cluster, id, &a, until, now, &lost) != 0)
        log_event (svc->log, LOG_LEVEL_WARN, "svc", "nodes_not_kept", "job=%s.%llu error=\"%s\"",
                   svc->site, (unsigned long long)job->rec.number, lost.text);
    return 0;
}

/* One job as it was when the daemon died. The store's record is taken over. */
int svc_job_recover (void *arg, struct store_job *rec, struct err *err)
{
    struct svc *svc = arg;
    struct jobspec spec;
    int rc = jobspec_load (svc, rec, &spec, err);
    if (rc != 0) {
        store_job_free (rec);
        return rc;
    }
    struct site_job *job = svc_job_add (svc, rec, &spec);
    if (!rec->part) /* of a part when it is known how far it came */
        staging_regain (svc, job, &spec);
    jobspec_free (&spec);
    rc = native_restore (svc, job, err);
    if (rc == 0 && rec->part) /* more with its part */
        return payqos_restore (svc, job, err);
    if (rc == 0)
        rc = depends_load (svc, job, err);
    if (rc == 0)
        rc = admin_sets_restore (svc, job, err);
    if (rc == 0)
        rc = payqos_restore (svc, job, err);
    if (rc == 0)
        rc = svc_cluster_submit (svc, job, err);
    if (rc == 0 && job->rec.state == STORE_JOB_QUEUED)
        rc = admin_restore (svc, job, err);
    if (rc != 0)
        return rc;
    if (job->rec.state == STORE_JOB_QUEUED)
        return recover_queued (svc, job, err);
    recover_running (svc, job);
    return 0;
}

/* Which of the records, in one of the rounds of recover_work. */
struct recovery {
    struct svc *svc;
    bool part, running;
};

static int recover_job (void *arg, struct store_job *rec, struct err *err)
{
    const struct recovery *r = arg;
    if (rec->part == r->part)
        return svc_job_recover (r->svc, rec, err);
    store_job_free (rec);
    return 0;
}

static int recover_part (void *arg, struct store_part *rec, struct err *err)
{
    const struct recovery *r = arg;
    const struct site_job *job = svc_job (r->svc, rec->job);
    if (!job || (job->rec.state == STORE_JOB_RUNNING) == r->running)
        return coalloc_recover (r->svc, rec, err);
    store_part_free (rec);
    return 0;
}

/* What is promised before what runs: a job that is past its limit, of whose end nobody has told yet, would
 * seem to be in the way of whoever comes after it. */
static int recover_work (struct svc *svc, struct err *err)
{
    struct recovery parts = {svc, true, false}, running = {svc, true, true}, ordinary = {svc, false, false};
    int rc = local_store_jobs_live (svc->store, recover_job, &parts, err);
    if (rc == 0)
        rc = local_store_parts_live (svc->store, recover_part, &parts, err);
    if (rc == 0)
        rc = local_store_jobs_live (svc->store, recover_job, &ordinary, err);
    if (rc == 0)
        rc = local_store_parts_live (svc->store, recover_part, &running, err);
    return rc;
}

static int recover_hold (void *arg, struct store_hold *hold, struct err *err)
{
    struct svc *svc = arg;
    (void)err;
    if (svc->bank)
        bank_link_hold (svc->bank, hold);
    return 0;
}

/* It waited for a bank that the configuration no longer names. */
static void forget_hold (struct svc *svc, struct site_job *job)
{
    struct err err = {0};
    int rc = svc_begin (svc, &err);
    if (rc == 0)
        rc = life_hold_return (svc, job, "the site has no bank", &err);
    if (rc == 0)
        rc = svc_job_write (svc, job, false, NULL, 0, &err);
    svc_commit (svc, rc, &err);
}

/* A refusal was taken in, and we died before what follows from it: the bank is asked anew. */
static void regain_hold (struct svc *svc, struct site_job *job)
{
    struct err err = {0};
    bool wanted = true;
    int rc = local_store_hold_wanted (svc->store, job->rec.hold_key, &wanted, &err);
    if (rc == 0 && !wanted)
        life_hold_again (svc, job, svc_begin (svc, &err), &err);
}

/* Jobs that the resource manager has, or should have, by now. */
static void recover_launches (struct svc *svc)
{
    struct site_job *job, *next;
    HASH_ITER (hh, svc->jobs, job, next)
    {
        struct err err = {0};
        char id[SITE_ID_MAX];
        if (job->rec.hold_asked && job->rec.state == STORE_JOB_STARTING && !svc->bank)
            forget_hold (svc, job);
        else if (job->rec.hold_asked && job->rec.state == STORE_JOB_STARTING && !job->part)
            regain_hold (svc, job);
        bool due = job->rec.state == STORE_JOB_RUNNING ||
                   (job->rec.state == STORE_JOB_STARTING && !job->rec.hold_asked) ||
                   (job->rm.native && job->rec.stop == STORE_STOP_CANCEL);
        if (!due)
            continue;
        site_id (svc, job->rec.number, id);
        int rc = job->rm.native ? 0 : svc->rm.ops->adopt (svc->rm.self, id, job->rec.incarnation, &err);
        if (rc == 0 && job->rm.native && job->rec.state == STORE_JOB_STARTING)
            rc = life_launch (svc, job, &err);
        if (rc == 0)
            rc = evict_recover (svc, job, &err);
        else if (rc == ERR_NOT_FOUND && job->part &&
                 svc_now (svc) > job->rec.launch_at + svc->settings->start_grace) {
            svc_reason (job, "NoShow", "the site was down when its group started");
            life_end_surely (svc, job, STORE_JOB_FAILED);
            continue;
        } else if (rc == ERR_NOT_FOUND && life_too_late (svc, job)) {
            life_requeue (svc, job, 0, deferral_none);
            continue;
        } else if (rc == ERR_NOT_FOUND && job->rec.state == STORE_JOB_STARTING)
            rc = life_launch (svc, job, &err); /* decided, but never handed over */
        log_event (svc->log, rc == 0 ? LOG_LEVEL_INFO : LOG_LEVEL_ERROR, "svc", "job_regained",
                   "job=%s incarnation=%u%s%s", id, job->rec.incarnation, rc ? " error=" : "",
                   rc ? err.text : "");
    }
}

/* What happened while nobody looked. */
static void recover_depends (struct svc *svc)
{
    struct site_job *job, *next;
    HASH_ITER (hh, svc->jobs, job, next)
        if (job->depends)
            depends_settle (svc, job);
}

static int recover (struct svc *svc, struct err *err)
{
    int rc = resv_recover (svc, err); /* first: what ran inside one does again */
    resv_standing_regain (svc);
    if (rc == 0)
        rc = resv_charge_recover (svc, err);
    if (rc == 0)
        rc = recover_work (svc, err);
    if (rc == 0)
        rc = local_store_holds (svc->store, recover_hold, svc, err);
    if (rc == 0)
        rc = stageout_recover (svc, err);
    if (rc != 0)
        return err_prefix (err, "recovery");
    recover_depends (svc);
    staging_recovered (svc);
    recover_launches (svc);
    contact_look (svc);
    fairshare_file_load (svc);
    return 0;
}

/* --- creation ----------------------------------------------------------------------------- */

static const struct rpc_method methods[] = {
    {"Query", RPC_ALLOW (PRINCIPAL_META), false, 2 << 20, jobs_query},
    {"Prepare", RPC_ALLOW (PRINCIPAL_META), false, 2 << 20, coalloc_prepare},
    {"Commit", RPC_ALLOW (PRINCIPAL_META), false, 0, coalloc_commit},
    {"Abort", RPC_ALLOW (PRINCIPAL_META), false, 0, coalloc_abort},
    {"Ready", RPC_ALLOW (PRINCIPAL_META), false, 0, coalloc_ready},
    {"Start", RPC_ALLOW (PRINCIPAL_META), false, 1 << 20, coalloc_start},
    {"Release", RPC_ALLOW (PRINCIPAL_META), false, 0, coalloc_release},
    {"Submit", RPC_ALLOW (PRINCIPAL_META), false, 2 << 20, jobs_submit},
    {"Job", RPC_ALLOW (PRINCIPAL_META) | RPC_ALLOW (PRINCIPAL_USER) |
                RPC_ALLOW (PRINCIPAL_OPERATOR), false, 0, jobs_job},
    {"Cancel", RPC_ALLOW (PRINCIPAL_META) | RPC_ALLOW (PRINCIPAL_USER) |
                   RPC_ALLOW (PRINCIPAL_OPERATOR), false, 0, jobs_cancel},
    {"Output", RPC_ALLOW (PRINCIPAL_USER) | RPC_ALLOW (PRINCIPAL_OPERATOR), true, 0, output_serve},
    {"Hold", RPC_ALLOW (PRINCIPAL_META), false, 0, admin_hold_job},
    {"Renew", RPC_ALLOW (PRINCIPAL_META), false, 2 << 20, renew_handle},
    {NULL, 0, false, 0, NULL},
};

/* A site of no grid: no metascheduler is served. */
static const struct rpc_method methods_alone[] = {
    {"Job", RPC_ALLOW (PRINCIPAL_USER) | RPC_ALLOW (PRINCIPAL_OPERATOR), false, 0, jobs_job},
    {"Cancel", RPC_ALLOW (PRINCIPAL_USER) | RPC_ALLOW (PRINCIPAL_OPERATOR), false, 0, jobs_cancel},
    {"Output", RPC_ALLOW (PRINCIPAL_USER) | RPC_ALLOW (PRINCIPAL_OPERATOR), true, 0, output_serve},
    {NULL, 0, false, 0, NULL},
};

static void boot_id_read (char out[40])
{
    int fd = open ("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read (fd, out, 36);
    if (fd >= 0)
        close (fd);
    out[n > 0 ? n : 0] = 0;
}

/* What others are told: ADVERTISE, else LISTEN with the port that was really opened. */
static void server_name (struct svc *svc, const struct settings *settings)
{
    snprintf (svc->server, sizeof svc->server, "%.150s",
              settings->advertise ? settings->advertise
                                  : settings->listen ? settings->listen : "localhost:0");
    snprintf (svc->host, sizeof svc->host, "%.127s", svc->server);
    char *colon = strrchr (svc->host, ':');
    if (colon)
        *colon = 0;
    if (!settings->advertise)
        snprintf (svc->server, sizeof svc->server, "%s:%u", svc->host,
                  rpcserver_port (daemon_server (svc->daemon)));
}

/* Beside this program (a build), in rm/ below it (a build tree), else where it was installed. */
static void supervise_path (const struct settings *settings, char *out, size_t cap)
{
    static const char *const places[] = {"nui-supervise", "rm/nui-supervise"};
    char self[2048];
    ssize_t n = readlink ("/proc/self/exe", self, sizeof self - 1);
    if (settings->supervise) {
        snprintf (out, cap, "%s", settings->supervise);
        return;
    }
    self[n > 0 ? n : 0] = 0;
    char *slash = strrchr (self, '/');
    for (size_t i = 0; slash && i < 2; i++) {
        snprintf (out, cap, "%.*s/%s", (int)(slash - self), self, places[i]);
        if (access (out, X_OK) == 0)
            return;
    }
    snprintf (out, cap, "%s/nui-supervise", NUI_LIBEXECDIR);
}

static int rm_open (struct svc *svc, const struct settings *settings, struct err *err)
{
    if (settings->mode.mode == MODE_SIMULATION)
        return simulate_create (svc, settings, err);
    char supervise[4096], jobs[4096], group[STORE_NAME_MAX + 16];
    supervise_path (settings, supervise, sizeof supervise);
    if (settings->job_dir)
        snprintf (jobs, sizeof jobs, "%s", settings->job_dir);
    else
        snprintf (jobs, sizeof jobs, "%s/jobs", daemon_state_dir (svc->daemon));
    /* Two sites of one name on a machine (two grids of a test) must not kill each other's jobs. */
    uint32_t hash = 2166136261u;
    for (const char *c = jobs; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 16777619u;
    snprintf (group, sizeof group, "nui-%s-%08x", svc->site, hash);
    struct rm_embedded_config config = {
        .base = svc->base,
        .log = svc->log,
        .job_dir = jobs,
        .supervise_path = supervise,
        .kill_grace = settings->kill_grace,
        .cgroups = settings->cgroups,
        .cgroup_name = group,
        .on_event = life_on_rm_event,
        .arg = svc,
    };
    snprintf (svc->job_dir, sizeof svc->job_dir, "%s", jobs);
    const struct settings_slurm *s = &settings->slurm;
    struct rm_slurm_config slurm = {
        .base = svc->base,
        .log = svc->log,
        .server = s->server,
        .key_file = s->key,
        .user = s->user,
        .partition = s->partition,
        .slurm_conf = s->conf,
        .bin_dir = s->bin,
        .completions = s->completions,
        .sacct = s->sacct,
        .usage = s->usage,
        .since = native_settled (svc),
        .site = s->mirror ? svc->site : NULL,
        .observe = settings->mode.mode == MODE_TEST,
        .poll = s->poll,
        .patience = s->patience,
        .token_life = s->token_life,
        .job_dir = jobs,
        .on_event = life_on_rm_event,
        .arg = svc,
    };
    if (settings->rm_type == SETTINGS_RM_SLURM)
        return rm_slurm_create (&slurm, &svc->rm, err);
    return rm_embedded_create (&config, &svc->rm, err);
}

static int state_open (struct svc *svc, const struct settings *settings, struct err *err)
{
    char path[4096];
    struct cluster_options options = {0};
    if (settings->mode.mode != MODE_SIMULATION) /* which may be repeated */
        random_bytes (&options.seed, sizeof options.seed);
    bool simulation = settings->mode.mode == MODE_SIMULATION;
    bool mirror = settings->mode.mode == MODE_TEST && settings->mode.production;
    bool scratch = simulation || mirror;
    snprintf (path, sizeof path, "%s/%s.db", daemon_state_dir (svc->daemon),
              simulation ? "simulation" : mirror ? "mirror" : "local");
    int rc = scratch ? local_store_scratch (path, &svc->store, err)
                     : local_store_open (path, &svc->store, err);
    if (rc == 0 && settings->gridmap)
        rc = gridmap_open (settings->gridmap, svc->log, &svc->gridmap, err);
    if (rc == 0)
        rc = rm_open (svc, settings, err);
    if (rc != 0)
        return rc;
    svc->cluster = cluster_create (settings->policy, &options, err);
    if (!svc->cluster)
        return err->code;
    place_open (&svc->place, svc->cluster, svc->names, svc->features, node_by_name, svc);
    return svc_nodes_apply (svc, settings, err);
}

int svc_create (struct daemon *daemon, struct cred_names *names, const struct settings *settings,
                struct svc **out, struct err *err)
{
    struct err local = {0};
    struct svc *svc = calloc (1, sizeof *svc);
    if (!svc)
        return err_set (err, ERR_NOMEM, "service: no memory");
    svc->daemon = daemon;
    svc->base = daemon_base (daemon);
    svc->log = daemon_log (daemon);
    svc->settings = settings;
    svc->names = names;
    svc->schedule.stop_at = SCHEDULE_NEVER;
    svc->features = strtab_create ();
    svc->rsv_names = strtab_create ();
    names->rsv_name = resv_name;
    names->rsv_self = svc;
    resv_standing_open (svc);
    svc->call_arena = arena_create (0);
    svc->report_arena = arena_create (0);
    snprintf (svc->site, sizeof svc->site, "%.63s", daemon_name (daemon));
    boot_id_read (svc->boot_id);
    (void)uname (&svc->kernel);
    int rc = 0;
    if (settings->site_name && strcmp (settings->site_name, svc->site) != 0)
        rc = err_set (&local, ERR_INVALID, "SITENAME is %s but the certificate is of site %s",
                      settings->site_name, svc->site);
    if (rc == 0) {
        server_name (svc, settings);
        pass_init (svc);
        rc = state_open (svc, settings, &local);
    }
    if (rc == 0)
        rc = stats_open (svc, &local);
    if (rc == 0)
        rc = notify_open (svc, &local);
    if (rc == 0)
        rc = forecast_open (svc, &local);
    if (rc == 0)
        rc = links_open (svc, settings, &local);
    if (rc == 0)
        rc = mode_create (svc, settings, &local);
    if (rc == 0)
        rc = staging_open (svc, settings, &local);
    if (rc == 0)
        rc = recover (svc, &local);
    if (rc == 0)
        rc = follow_open (svc, settings, &local);
    if (rc == 0)
        rc = rpcserver_add_service (daemon_server (daemon), &nui__local__v1__local__descriptor,
                                    svc->meta ? methods : methods_alone, svc, &local);
    if (rc == 0)
        rc = admin_serve (svc, &local);
    if (rc == 0)
        rc = admin_stats_serve (svc, &local);
    if (rc != 0) {
        svc_destroy (svc);
        return err_set (err, rc, "%s", local.text);
    }
    statdir_open (svc);
    if (svc->sim)
        simulate_run (svc->sim);
    else
        pass_wake (svc);
    log_event (svc->log, LOG_LEVEL_INFO, "svc", "site_ready",
               "site=%s mode=%s server=%s nodes=%u jobs=%u bank=%s metas=%u", svc->site,
               server_mode_name (settings->mode.mode), svc->server, svc->node_count,
               HASH_COUNT (svc->jobs), svc->bank ? settings->bank : "none",
               svc->meta ? settings->meta_count : 0);
    *out = svc;
    return 0;
}

static bool same_text (const char *a, const char *b)
{
    return a == b || (a && b && strcmp (a, b) == 0);
}

int svc_reload (struct svc *svc, const struct settings *settings, struct err *err)
{
    const struct settings *old = svc->settings;
    if (!same_text (old->bank, settings->bank) || old->meta_count != settings->meta_count)
        return err_set (err, ERR_CONFLICT, "META and BANK change with a restart only");
    for (uint32_t i = 0; i < old->meta_count; i++)
        if (strcmp (old->metas[i], settings->metas[i]) != 0)
            return err_set (err, ERR_CONFLICT, "META and BANK change with a restart only");
    if (!same_text (old->gridmap, settings->gridmap))
        return err_set (err, ERR_CONFLICT, "GRIDMAP changes with a restart only (its content is "
                                           "looked at by itself)");
    if (settings->site_name && strcmp (settings->site_name, svc->site) != 0)
        return err_set (err, ERR_CONFLICT, "SITENAME cannot change");
    if (settings->mode.mode != old->mode.mode)
        return err_set (err, ERR_CONFLICT, "the mode changes from %s to %s with a restart only",
                        server_mode_name (old->mode.mode), server_mode_name (settings->mode.mode));
    if (staging_reload (svc, settings, err) != 0)
        return err ? err->code : ERR_INVALID;
    forecast_policy_changes (svc);
    int rc = cluster_policy_set (svc->cluster, settings->policy, svc_now (svc), err);
    if (rc == 0 && svc_nodes_apply (svc, settings, err) != 0) {
        struct err again = {0};
        rc = err ? err->code : ERR_INVALID;
        if (cluster_policy_set (svc->cluster, old->policy, svc_now (svc), &again) != 0 ||
            svc_nodes_apply (svc, old, &again) != 0)
            log_event (svc->log, LOG_LEVEL_ERROR, "svc", "old_settings_not_restored",
                       "error=\"%s\"", again.text);
        return rc;
    }
    if (rc == 0 && svc->sim)
        rc = simulate_reload (svc->sim, settings, err);
    if (rc != 0)
        return rc;
    svc->settings = settings;
    links_reload (svc, settings);
    server_name (svc, settings);
    deferral_nodes_changed (svc);
    deferral_qos_changed (svc);
    pass_init (svc);
    pass_wake (svc);
    return 0;
}

void svc_draining (struct svc *svc)
{
    output_draining (svc);
}

void svc_destroy (struct svc *svc)
{
    struct site_job *job, *next_job;
    struct site_part *part, *next_part;
    struct site_node *node, *next_node;
    if (!svc)
        return;
    svc->closing = true;
    if (svc->cluster && svc->store)
        fairshare_file_save (svc);
    notify_close (svc);
    stats_close (svc);
    forecast_close (svc);
    statdir_close (svc);
    output_draining (svc);
    evict_free (svc);
    links_close (svc);
    HASH_ITER (hh, svc->parts, part, next_part)
    {
        for (uint32_t i = 0; i < part->waiter_count; i++)
            rpccall_finish (part->waiter[i], RPC_UNAVAILABLE, "the site is stopping");
        svc_part_forget (svc, part);
    }
    HASH_ITER (hh, svc->jobs, job, next_job)
        svc_job_forget (svc, job);
    stageout_close (svc);
    staging_close (svc);
    if (svc->rm.ops)
        svc->rm.ops->destroy (svc->rm.self);
    purge_close (svc); /* what it waited for comes from the resource manager */
    simulate_destroy (svc->sim);
    follow_close (svc);
    mode_destroy (svc->mode);
    cluster_destroy (svc->cluster);
    gridmap_close (svc->gridmap);
    local_store_close (svc->store);
    HASH_ITER (hh, svc->nodes, node, next_node)
    {
        HASH_DEL (svc->nodes, node);
        free (node->name);
        free (node->address);
        free (node->type);
        free (node->partition);
        for (int i = 0; i < SETS; i++)
            free (node->set[i]);
        free (node);
    }
    free (svc->node_by_id);
    pass_close (svc);
    if (svc->resume_event)
        event_free (svc->resume_event);
    if (svc->usage_event)
        event_free (svc->usage_event);
    if (svc->place.column)
        place_close (&svc->place);
    resv_free_all (svc);
    resv_charge_free (svc);
    standing_destroy (svc->standing);
    svc->names->rsv_name = NULL;
    strtab_destroy (svc->features);
    strtab_destroy (svc->rsv_names);
    arena_destroy (svc->call_arena);
    arena_destroy (svc->report_arena);
    free (svc);
}
