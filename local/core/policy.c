/* policy: builds a policy with Maui's defaults, hands down what is said for DEFAULT, and seals
 * it. The readers in local/conf edit; everything else only reads. A sealed policy must never
 * change: passes, simulations and estimates share it. */
#include "local/core/policy.h"
#include "local/core/types.h"

#include <assert.h>
#include <string.h>

static const char *const kind_name[CRED_KINDS] = {"user", "group", "account", "class", "qos"};

static const char *const component_name[PRIO_COMPONENTS] = {"CRED", "FS",   "RES",
                                                            "SERV", "TARG", "USAGE"};

static const struct {
    const char *name;
    enum prio_component component;
} sub_info[PRIO_SUBS] = {
    [PRIO_USER] = {"USER", PRIO_CRED},
    [PRIO_GROUP] = {"GROUP", PRIO_CRED},
    [PRIO_ACCOUNT] = {"ACCOUNT", PRIO_CRED},
    [PRIO_CLASS] = {"CLASS", PRIO_CRED},
    [PRIO_QOS] = {"QOS", PRIO_CRED},
    [PRIO_FSUSER] = {"FSUSER", PRIO_FS},
    [PRIO_FSGROUP] = {"FSGROUP", PRIO_FS},
    [PRIO_FSACCOUNT] = {"FSACCOUNT", PRIO_FS},
    [PRIO_FSCLASS] = {"FSCLASS", PRIO_FS},
    [PRIO_FSQOS] = {"FSQOS", PRIO_FS},
    [PRIO_NODE] = {"NODE", PRIO_RES},
    [PRIO_PROC] = {"PROC", PRIO_RES},
    [PRIO_MEM] = {"MEM", PRIO_RES},
    [PRIO_SWAP] = {"SWAP", PRIO_RES},
    [PRIO_DISK] = {"DISK", PRIO_RES},
    [PRIO_PS] = {"PS", PRIO_RES},
    [PRIO_PE] = {"PE", PRIO_RES},
    [PRIO_WALLTIME] = {"WALLTIME", PRIO_RES},
    [PRIO_UPROC] = {"UPROC", PRIO_RES},
    [PRIO_UJOB] = {"UJOB", PRIO_RES},
    [PRIO_QUEUETIME] = {"QUEUETIME", PRIO_SERV},
    [PRIO_XFACTOR] = {"XFACTOR", PRIO_SERV},
    [PRIO_BYPASS] = {"BYPASS", PRIO_SERV},
    [PRIO_SPVIOLATION] = {"SPVIOLATION", PRIO_SERV},
    [PRIO_TARGETQUEUETIME] = {"TARGETQUEUETIME", PRIO_TARG},
    [PRIO_TARGETXFACTOR] = {"TARGETXFACTOR", PRIO_TARG},
    [PRIO_CONSUMED] = {"CONSUMED", PRIO_USAGE},
    [PRIO_REMAINING] = {"REMAINING", PRIO_USAGE},
    [PRIO_PERCENT] = {"PERCENT", PRIO_USAGE},
    [PRIO_EXECUTIONTIME] = {"EXECUTIONTIME", PRIO_USAGE},
};

static const char *const limit_name[LIMIT_KINDS] = {"MAXJOB", "MAXPROC", "MAXNODE", "MAXPS",
                                                    "MAXPE",  "MAXMEM",  "MAXWC",   "MINPROC"};

void cred_names_init (struct cred_names *names)
{
    names->rsv_name = NULL;
    names->rsv_self = NULL;
    for (int k = 0; k < CRED_KINDS; k++) {
        names->tab[k] = strtab_create ();
        uint32_t id = strtab_intern (names->tab[k], "DEFAULT");
        assert (id == CRED_DEFAULT);
    }
    names->partition = strtab_create ();
    (void)strtab_intern (names->partition, "DEFAULT");
    names->licence = strtab_create ();
}

void cred_names_free (struct cred_names *names)
{
    for (int k = 0; k < CRED_KINDS; k++) {
        strtab_destroy (names->tab[k]);
        names->tab[k] = NULL;
    }
    strtab_destroy (names->partition);
    strtab_destroy (names->licence);
    names->partition = names->licence = NULL;
}

const char *cred_kind_name (enum cred_kind kind)
{
    assert (kind < CRED_KINDS);
    return kind_name[kind];
}

const char *cred_name (const struct cred_names *names, enum cred_kind kind, uint32_t id)
{
    const char *name = id == CRED_NONE ? NULL : strtab_name (names->tab[kind], id);
    return name ? name : "[NONE]";
}

const char *prio_component_name (enum prio_component component)
{
    assert (component < PRIO_COMPONENTS);
    return component_name[component];
}

const char *prio_sub_name (enum prio_sub sub)
{
    assert (sub < PRIO_SUBS);
    return sub_info[sub].name;
}

enum prio_component prio_sub_component (enum prio_sub sub)
{
    assert (sub < PRIO_SUBS);
    return sub_info[sub].component;
}

const char *limit_kind_name (enum limit_kind kind)
{
    assert (kind < LIMIT_KINDS);
    return limit_name[kind];
}

static void policy_defaults (struct policy *p)
{
    for (int c = 0; c < PRIO_COMPONENTS; c++)
        p->component_weight[c] = 1;
    p->sub_weight[PRIO_QUEUETIME] = 1;
    p->xf_min_wclimit_s = -1;
    p->accrual = ACCRUAL_QUEUEPOLICY;

    p->fs_policy = FS_NONE;
    p->fs_interval = 24 * 3600 * US_PER_S;
    p->fs_depth = 7;
    p->fs_decay = 1.0;

    p->system_max_proc_per_job = -1;
    p->system_max_wall_s_per_job = -1;
    p->system_max_ps_per_job = -1;
    p->default_wall_s = 10 * 24 * 3600;
    p->system_qdef = CRED_NONE;

    p->reservation_policy = RESERVATION_CURRENTHIGHEST;
    p->reservation_threshold = THRESHOLD_NONE;
    p->reservation_binding = BINDING_EARLY;

    p->backfill_policy = BACKFILL_FIRSTFIT;
    p->backfill_metric = BFMETRIC_PROCS;
    p->backfill_max_schedules = 10000;
    p->backfill_window_order = BFWINDOW_WIDESTFIRST;
    p->node_allocation = NODEALLOC_LASTAVAILABLE;
    p->node_access = ACCESS_SHARED;

    p->poll_interval = 60 * US_PER_S;
    p->defer_time = 3600 * US_PER_S;
    p->data_grace = 600 * US_PER_S;
    p->defer_count = 24;
    p->defer_start_count = 1;

    p->preempt_policy = PREEMPT_REQUEUE;
    p->wcviolation_action = WCVIOLATION_CANCEL;
}

struct policy *policy_create (const struct cred_names *names)
{
    struct arena *arena = arena_create (0);
    struct policy *p = arena_new (arena, struct policy);
    p->arena = arena;
    p->names = names;
    policy_defaults (p);
    for (int k = 0; k < CRED_KINDS; k++)
        policy_cred_edit (p, (enum cred_kind)k, CRED_DEFAULT);
    return p;
}

void policy_destroy (struct policy *policy)
{
    if (policy)
        arena_destroy (policy->arena);
}

static void index_grow (struct policy *p, enum cred_kind kind, uint32_t id)
{
    if (id < p->cred_index_count[kind])
        return;
    uint32_t count = p->cred_index_count[kind] * 2;
    if (count <= id)
        count = id + 16;
    uint32_t *index = arena_array (p->arena, count, sizeof index[0]);
    if (p->cred_index_count[kind])
        memcpy (index, p->cred_index[kind], p->cred_index_count[kind] * sizeof index[0]);
    p->cred_index[kind] = index;
    p->cred_index_count[kind] = count;
}

struct policy_cred *policy_cred_edit (struct policy *p, enum cred_kind kind, uint32_t id)
{
    assert (!p->sealed && kind < CRED_KINDS && id != CRED_NONE);
    index_grow (p, kind, id);
    uint32_t at = p->cred_index[kind][id];
    if (at > 0 || (id == CRED_DEFAULT && p->cred_count[kind] > 0))
        return &p->cred[kind][at];

    if (p->cred_count[kind] == p->cred_cap[kind]) {
        uint32_t cap = p->cred_cap[kind] ? p->cred_cap[kind] * 2 : 8;
        struct policy_cred *grown = arena_array (p->arena, cap, sizeof grown[0]);
        if (p->cred_count[kind])
            memcpy (grown, p->cred[kind], p->cred_count[kind] * sizeof grown[0]);
        p->cred[kind] = grown;
        p->cred_cap[kind] = cap;
    }
    at = p->cred_count[kind]++;
    p->cred_index[kind][id] = at;
    struct policy_cred *cred = &p->cred[kind][at];
    cred->id = id;
    cred->qdef = CRED_NONE;
    if (kind == CRED_QOS)
        cred->qos = arena_new (p->arena, struct policy_qos);
    return cred;
}

void policy_qlist_set (struct policy *p, struct policy_cred *cred, const uint32_t *qos,
                       uint32_t count, enum qlist_mode mode)
{
    assert (!p->sealed);
    cred->qlist = arena_memdup (p->arena, qos, count * sizeof qos[0]);
    cred->qlist_count = count;
    cred->qlist_mode = mode;
    cred->set |= CRED_SET_QLIST;
}

static bool cross_same (const struct policy_cross *a, const struct policy_cross *b)
{
    return a->idle == b->idle && a->limit == b->limit && a->other_kind == b->other_kind &&
           a->other_id == b->other_id;
}

static void cross_append (struct policy *p, struct policy_cred *cred,
                          const struct policy_cross *cross)
{
    struct policy_cross *grown = arena_array (p->arena, cred->cross_count + 1, sizeof grown[0]);
    if (cred->cross_count)
        memcpy (grown, cred->cross, cred->cross_count * sizeof grown[0]);
    grown[cred->cross_count++] = *cross;
    cred->cross = grown;
}

void policy_cross_set (struct policy *p, struct policy_cred *cred, const struct policy_cross *cross)
{
    assert (!p->sealed);
    for (uint32_t i = 0; i < cred->cross_count; i++) {
        if (cross_same (&cred->cross[i], cross)) {
            cred->cross[i] = *cross;
            return;
        }
    }
    cross_append (p, cred, cross);
}

void policy_bucket_set (struct policy *p, uint32_t bucket, uint32_t depth, const uint32_t *qos,
                        uint32_t qos_count)
{
    assert (!p->sealed && bucket < POLICY_BUCKETS_MAX);
    struct policy_bucket *b = &p->bucket[bucket];
    b->used = true;
    b->depth = depth;
    b->qos_count = qos_count;
    b->qos = arena_memdup (p->arena, qos, qos_count * sizeof qos[0]);
    if (bucket >= p->bucket_count)
        p->bucket_count = bucket + 1;
}

/* --- sealing ----------------------------------------------------------------------------- */

static void limits_inherit (struct policy_limits *own, const struct policy_limits *from)
{
    for (int l = 0; l < LIMIT_KINDS; l++) {
        uint32_t bit = 1u << l;
        if (!(own->active_mask & bit) && (from->active_mask & bit)) {
            own->active[LIMIT_SOFT][l] = from->active[LIMIT_SOFT][l];
            own->active[LIMIT_HARD][l] = from->active[LIMIT_HARD][l];
        }
        if (!(own->idle_mask & bit) && (from->idle_mask & bit))
            own->idle[l] = from->idle[l];
        if (!(own->per_job_mask & bit) && (from->per_job_mask & bit))
            own->per_job[l] = from->per_job[l];
    }
    own->active_mask |= from->active_mask;
    own->idle_mask |= from->idle_mask;
    own->per_job_mask |= from->per_job_mask;
}

static void qos_inherit (struct policy_cred *own, const struct policy_cred *from)
{
    struct policy_qos *q = own->qos;
    const struct policy_qos *d = from->qos;
    if (!(own->set & CRED_SET_QTWEIGHT))
        q->qtweight = d->qtweight;
    if (!(own->set & CRED_SET_XFWEIGHT))
        q->xfweight = d->xfweight;
    if (!(own->set & CRED_SET_QTTARGET))
        q->qttarget_min = d->qttarget_min;
    if (!(own->set & CRED_SET_XFTARGET))
        q->xftarget = d->xftarget;
    if (!(own->set & CRED_SET_QFLAGS)) {
        q->flags = d->flags;
        q->use_reserved = d->use_reserved;
        q->ignore_job = d->ignore_job;
        memcpy (q->ignore_active, d->ignore_active, sizeof q->ignore_active);
        memcpy (q->ignore_idle, d->ignore_idle, sizeof q->ignore_idle);
    }
    if (!(own->set & CRED_SET_FEATURES))
        q->features = d->features;
    limits_inherit (&q->override, &d->override);
    for (int l = 0; l < LIMIT_KINDS; l++) {
        uint32_t bit = 1u << l;
        if (!(q->job_override_mask & bit) && (d->job_override_mask & bit))
            q->job_override[l] = d->job_override[l];
    }
    q->job_override_mask |= d->job_override_mask;
}

static void cred_inherit (struct policy *p, struct policy_cred *own, const struct policy_cred *from)
{
    if (!(own->set & CRED_SET_PRIORITY))
        own->priority = from->priority;
    if (!(own->set & CRED_SET_FSTARGET)) {
        own->fs_target = from->fs_target;
        own->fs_target_type = from->fs_target_type;
    }
    if (!(own->set & CRED_SET_QLIST)) {
        own->qlist = from->qlist;
        own->qlist_count = from->qlist_count;
        own->qlist_mode = from->qlist_mode;
    }
    if (!(own->set & CRED_SET_QDEF))
        own->qdef = from->qdef;
    if (!(own->set & CRED_SET_PLIST)) {
        own->plist = from->plist;
        own->plist_mode = from->plist_mode;
    }
    if (!(own->set & CRED_SET_PDEF))
        own->pdef = from->pdef;
    if (!(own->set & CRED_SET_FLAGS))
        own->flags = from->flags;
    policy_class_inherit (own, from);
    limits_inherit (&own->limits, &from->limits);
    if (own->qos)
        qos_inherit (own, from);
    /* A rule of DEFAULT counts where the credential has none for all, or for that one, of its own.
     */
    uint32_t own_count = own->cross_count;
    for (uint32_t i = 0; i < from->cross_count; i++) {
        bool replaced = false;
        for (uint32_t j = 0; j < own_count && !replaced; j++)
            replaced = own->cross[j].idle == from->cross[i].idle &&
                       own->cross[j].limit == from->cross[i].limit &&
                       own->cross[j].other_kind == from->cross[i].other_kind &&
                       (own->cross[j].other_id == CRED_NONE ||
                        own->cross[j].other_id == from->cross[i].other_id);
        if (!replaced)
            cross_append (p, own, &from->cross[i]);
    }
}

static int cred_check (const struct policy *p, enum cred_kind kind, const struct policy_cred *c,
                       struct err *err)
{
    if (p->fs_ratio && c->fs_target_type != FS_TARGET_NONE && !(c->fs_target > 0))
        return err_set (err, ERR_INVALID, "%s %s: FSTARGET of 0 has no ratio, as FSPOLICY asks",
                        kind_name[kind], cred_name (p->names, kind, c->id));
    for (int l = 0; l < LIMIT_KINDS; l++) {
        int64_t soft = c->limits.active[LIMIT_SOFT][l], hard = c->limits.active[LIMIT_HARD][l];
        bool wrong = l == LIMIT_MINPROC ? soft < hard : soft > hard;
        if ((c->limits.active_mask & (1u << l)) && wrong)
            return err_set (err, ERR_INVALID,
                            "%s %s: the soft %s limit is looser than the hard one", kind_name[kind],
                            cred_name (p->names, kind, c->id), limit_name[l]);
    }
    return 0;
}

int policy_seal (struct policy *p, struct err *err)
{
    assert (!p->sealed);
    if (p->fs_depth < 1 || p->fs_depth > FS_DEPTH_MAX)
        return err_set (err, ERR_INVALID, "FSDEPTH must be 1 to %d", FS_DEPTH_MAX);
    if (p->fs_interval <= 0)
        return err_set (err, ERR_INVALID, "FSINTERVAL must be longer than nothing");
    if (!(p->fs_decay >= 0 && p->fs_decay <= 1))
        return err_set (err, ERR_INVALID, "FSDECAY must be 0 to 1");
    for (int k = 0; k < CRED_KINDS; k++) {
        for (uint32_t i = 0; i < p->cred_count[k]; i++) {
            int rc = cred_check (p, (enum cred_kind)k, &p->cred[k][i], err);
            if (rc)
                return rc;
        }
        for (uint32_t i = 1; i < p->cred_count[k]; i++)
            cred_inherit (p, &p->cred[k][i], &p->cred[k][0]);
    }
    if (!p->bucket_count)
        policy_bucket_set (p, 0, 1, NULL, 0);
    p->sealed = true;
    return 0;
}

uint32_t policy_job_flags (const struct policy *p, const uint32_t cred[CRED_KINDS])
{
    const struct policy_qos *qos = policy_qos (p, cred[CRED_QOS]);
    uint32_t flags = qos ? qos->flags : 0;
    for (int k = 0; k < CRED_KINDS && p->flags_said; k++)
        if (cred[k] != CRED_NONE)
            flags |= policy_cred (p, (enum cred_kind)k, cred[k])->flags;
    return flags;
}

uint32_t policy_bucket_of (const struct policy *p, uint32_t qos)
{
    for (uint32_t b = 0; b < p->bucket_count; b++) {
        if (!p->bucket[b].used)
            continue;
        if (p->bucket[b].qos_count == 0)
            return b;
        for (uint32_t i = 0; i < p->bucket[b].qos_count; i++) {
            if (p->bucket[b].qos[i] == qos)
                return b;
        }
    }
    return UINT32_MAX;
}

/* --- which QoS a job gets ---------------------------------------------------------------- */

static bool qlist_has (const struct policy_cred *c, uint32_t qos)
{
    for (uint32_t i = 0; i < c->qlist_count; i++) {
        if (c->qlist[i] == qos)
            return true;
    }
    return false;
}

/* Union of all lists; a list with & must contain the QoS as well; a list with ^ alone decides. */
static bool qos_allowed (const struct policy *p, const uint32_t cred[CRED_KINDS], uint32_t qos)
{
    static const enum cred_kind order[] = {CRED_USER, CRED_GROUP, CRED_ACCOUNT, CRED_CLASS};
    bool allowed = qos == CRED_DEFAULT || qos == p->system_qdef;
    for (uint32_t i = 0; i < p->system_qlist_count; i++)
        allowed = allowed || p->system_qlist[i] == qos;
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        if (cred[order[i]] == CRED_NONE)
            continue;
        const struct policy_cred *c = policy_cred (p, order[i], cred[order[i]]);
        if (c->qlist_count && c->qlist_mode == QLIST_EXCLUSIVE)
            return qlist_has (c, qos);
        allowed = allowed || qlist_has (c, qos) || c->qdef == qos;
    }
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        if (cred[order[i]] == CRED_NONE)
            continue;
        const struct policy_cred *c = policy_cred (p, order[i], cred[order[i]]);
        if (c->qlist_count && c->qlist_mode == QLIST_INTERSECT && !qlist_has (c, qos))
            return false;
    }
    return allowed;
}

uint32_t policy_qos_resolve (const struct policy *p, const uint32_t cred[CRED_KINDS],
                             bool *denied_out)
{
    static const enum cred_kind order[] = {CRED_USER, CRED_GROUP, CRED_ACCOUNT, CRED_CLASS};
    uint32_t asked = cred[CRED_QOS];
    *denied_out = false;
    if (asked != CRED_NONE) {
        if (qos_allowed (p, cred, asked))
            return asked;
        *denied_out = true;
    }
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        if (cred[order[i]] == CRED_NONE)
            continue;
        uint32_t qdef = policy_cred (p, order[i], cred[order[i]])->qdef;
        if (qdef != CRED_NONE)
            return qdef;
    }
    return p->system_qdef != CRED_NONE ? p->system_qdef : CRED_DEFAULT;
}
