/* limits: counts what each credential's jobs use, and checks a job against all limits that
 * apply. Whatever starts, ends or queues a job tells it, and the pass asks it for each job, so a
 * check never walks over jobs. What was added must be removed with the same values, or a count
 * never comes back to zero. */
#include "local/core/limits.h"
#include "proto/base/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* What the jobs of one object use, by enum limit_kind. Of active jobs, PS and WC are sums of
 * procs * end and of end (in seconds), so that what is left at any moment is one subtraction; of
 * idle ones, what they ask. MINPROC stays 0. */
struct usage {
    int64_t v[LIMIT_KINDS];
};

/* The limits of one record so that a check is the same for every kind: usage + request > limit.
 * Where there is none, NO_LIMIT; MINPROC is negated, as its request is. */
#define NO_LIMIT (INT64_MAX / 2)
struct plain_limits {
    int64_t active[LIMIT_LEVELS][LIMIT_KINDS];
    int64_t idle[LIMIT_KINDS];
};

struct usage_table {
    uint32_t count;
    struct usage *usage;
};

/* Usage of pairs of credentials, of two kinds (first < second): open addressing, never shrinks. */
struct pair_table {
    bool used; /* some rule of the policy is about these two kinds */
    uint32_t count;
    uint32_t cap;  /* a power of two, or 0 */
    uint64_t *key; /* 0: free, else (first id << 32 | second id) + 1 */
    struct usage *usage;
};

struct scope {
    struct usage_table table[LIMIT_OBJECTS];
    struct pair_table pair[CRED_KINDS][CRED_KINDS];
    bool any_cross;
    bool any[LIMIT_OBJECTS]; /* some record of the kind has a limit of this scope */
    uint32_t kinds;          /* bits 1u << limit_kind that some record has */
};

struct limits {
    const struct policy *policy;
    bool any_idle;    /* some idle limit is set somewhere; without one nothing is counted */
    bool any_special; /* some QoS has overrides or flags: checks must look */
    bool overrides, idle_overrides; /* … which count everybody's jobs, whatever their own QoS */
    struct plain_limits *plain[LIMIT_OBJECTS]; /* by place of the record in the policy */
    struct scope active;
    struct scope idle;
    struct scope nobody; /* active before anybody was: which limits there are, and no usage */
};

/* --- usage ------------------------------------------------------------------------------- */

/* What a job adds to each sum; ps and wc as the scope counts them. */
static void request_fill (int64_t r[LIMIT_KINDS], const struct limits_job *job, int64_t ps,
                          int64_t wc)
{
    r[LIMIT_JOB] = 1;
    r[LIMIT_PROC] = job->procs;
    r[LIMIT_NODE] = job->nodes;
    r[LIMIT_PS] = ps;
    r[LIMIT_PE] = job->pe_micro;
    r[LIMIT_MEM] = job->mem_mb;
    r[LIMIT_WC] = wc;
    r[LIMIT_MINPROC] = 0;
}

static void usage_change (struct usage *u, const int64_t change[LIMIT_KINDS])
{
    for (int k = 0; k < LIMIT_KINDS; k++)
        u->v[k] += change[k];
}

static void table_grow (struct usage_table *t, uint32_t count)
{
    uint32_t grown = t->count * 2 > count ? t->count * 2 : count + 15;
    t->usage = mem_resize (t->usage, grown * sizeof t->usage[0]);
    memset (t->usage + t->count, 0, (grown - t->count) * sizeof t->usage[0]);
    t->count = grown;
}

static struct usage *table_at (struct usage_table *t, uint32_t id)
{
    if (id >= t->count)
        table_grow (t, id + 1);
    return &t->usage[id];
}

static uint64_t pair_key (uint32_t first, uint32_t second)
{
    return ((uint64_t)first << 32 | second) + 1;
}

static uint32_t pair_slot (const struct pair_table *t, uint64_t key)
{
    uint64_t hash = key * UINT64_C (0x9e3779b97f4a7c15);
    uint32_t slot = (uint32_t)(hash >> 32) & (t->cap - 1);
    while (t->key[slot] && t->key[slot] != key)
        slot = (slot + 1) & (t->cap - 1);
    return slot;
}

static void pair_grow (struct pair_table *t)
{
    struct pair_table old = *t;
    t->cap = old.cap ? old.cap * 2 : 64;
    t->key = mem_zero (t->cap, sizeof t->key[0]);
    t->usage = mem_zero (t->cap, sizeof t->usage[0]);
    for (uint32_t i = 0; i < old.cap; i++) {
        if (!old.key[i])
            continue;
        uint32_t slot = pair_slot (t, old.key[i]);
        t->key[slot] = old.key[i];
        t->usage[slot] = old.usage[i];
    }
    free (old.key);
    free (old.usage);
}

static struct usage *pair_at (struct pair_table *t, uint32_t first, uint32_t second)
{
    if ((t->count + 1) * 2 > t->cap)
        pair_grow (t);
    uint64_t key = pair_key (first, second);
    uint32_t slot = pair_slot (t, key);
    if (!t->key[slot]) {
        t->key[slot] = key;
        t->count++;
    }
    return &t->usage[slot];
}

static void scope_change (struct scope *s, const struct limits_job *job, int64_t ps, int64_t wc,
                          int64_t sign)
{
    int64_t change[LIMIT_KINDS];
    request_fill (change, job, ps, wc);
    for (int k = 0; k < LIMIT_KINDS; k++)
        change[k] *= sign;
    for (int k = 0; k < CRED_KINDS; k++) {
        if (job->cred[k] != CRED_NONE)
            usage_change (table_at (&s->table[k], job->cred[k]), change);
    }
    usage_change (table_at (&s->table[LIMIT_OBJECT_SYSTEM], 0), change);
    if (!s->any_cross)
        return;
    for (int a = 0; a < CRED_KINDS; a++) {
        for (int b = a + 1; b < CRED_KINDS; b++) {
            if (s->pair[a][b].used && job->cred[a] != CRED_NONE && job->cred[b] != CRED_NONE)
                usage_change (pair_at (&s->pair[a][b], job->cred[a], job->cred[b]), change);
        }
    }
}

static void scope_clear (struct scope *s)
{
    for (int o = 0; o < LIMIT_OBJECTS; o++) {
        if (s->table[o].count)
            memset (s->table[o].usage, 0, s->table[o].count * sizeof s->table[o].usage[0]);
    }
    for (int a = 0; a < CRED_KINDS; a++) {
        for (int b = 0; b < CRED_KINDS; b++) {
            struct pair_table *t = &s->pair[a][b];
            if (t->cap) {
                memset (t->key, 0, t->cap * sizeof t->key[0]);
                memset (t->usage, 0, t->cap * sizeof t->usage[0]);
                t->count = 0;
            }
        }
    }
}

static void scope_free (struct scope *s)
{
    for (int o = 0; o < LIMIT_OBJECTS; o++)
        free (s->table[o].usage);
    for (int a = 0; a < CRED_KINDS; a++) {
        for (int b = 0; b < CRED_KINDS; b++) {
            free (s->pair[a][b].key);
            free (s->pair[a][b].usage);
        }
    }
}

static void cross_note (struct limits *l, enum cred_kind kind, const struct policy_cross *c)
{
    int a = kind < c->other_kind ? (int)kind : (int)c->other_kind;
    int b = kind < c->other_kind ? (int)c->other_kind : (int)kind;
    struct scope *s = c->idle ? &l->idle : &l->active;
    s->pair[a][b].used = true;
    s->any_cross = true;
    l->any_idle = l->any_idle || c->idle;
}

static void plain_fill (struct plain_limits *plain, const struct policy_limits *from)
{
    for (int k = 0; k < LIMIT_KINDS; k++) {
        int64_t sign = k == LIMIT_MINPROC ? -1 : 1;
        for (int level = 0; level < LIMIT_LEVELS; level++) {
            bool set = (from->active_mask >> k) & 1 && from->active[level][k] != LIMIT_UNLIMITED;
            plain->active[level][k] = set ? sign * from->active[level][k] : NO_LIMIT;
        }
        bool set = (from->idle_mask >> k) & 1 && from->idle[k] != LIMIT_UNLIMITED;
        plain->idle[k] = set ? sign * from->idle[k] : NO_LIMIT;
    }
}

static bool qos_special (const struct policy_qos *q)
{
    bool special = q->flags & (QOS_IGNALL | QOS_IGNUSER);
    for (int o = 0; o < LIMIT_OBJECTS; o++)
        special = special || q->ignore_active[o] || q->ignore_idle[o];
    return special || q->override.active_mask || q->override.idle_mask;
}

static void kind_prepare (struct limits *l, enum cred_kind kind)
{
    const struct policy *p = l->policy;
    l->plain[kind] = mem_zero (p->cred_count[kind], sizeof l->plain[kind][0]);
    for (uint32_t i = 0; i < p->cred_count[kind]; i++) {
        const struct policy_cred *c = &p->cred[kind][i];
        plain_fill (&l->plain[kind][i], &c->limits);
        l->active.any[kind] = l->active.any[kind] || c->limits.active_mask;
        l->idle.any[kind] = l->idle.any[kind] || c->limits.idle_mask;
        l->active.kinds |= c->limits.active_mask;
        l->idle.kinds |= c->limits.idle_mask;
        l->any_idle = l->any_idle || c->limits.idle_mask || (c->qos && c->qos->override.idle_mask);
        l->any_special = l->any_special || (c->qos && qos_special (c->qos));
        l->overrides = l->overrides || (c->qos && c->qos->override.active_mask);
        l->idle_overrides = l->idle_overrides || (c->qos && c->qos->override.idle_mask);
        for (uint32_t x = 0; x < c->cross_count; x++)
            cross_note (l, kind, &c->cross[x]);
    }
}

struct limits *limits_create (const struct policy *policy)
{
    assert (policy->sealed);
    struct limits *l = mem_zero (1, sizeof *l);
    l->policy = policy;
    l->any_idle = policy->system_limits.idle_mask != 0;
    for (int k = 0; k < CRED_KINDS; k++)
        kind_prepare (l, (enum cred_kind)k);
    struct plain_limits *system = mem_zero (1, sizeof *system);
    plain_fill (system, &policy->system_limits);
    l->plain[LIMIT_OBJECT_SYSTEM] = system;
    l->active.any[LIMIT_OBJECT_SYSTEM] = policy->system_limits.active_mask != 0;
    l->idle.any[LIMIT_OBJECT_SYSTEM] = policy->system_limits.idle_mask != 0;
    l->active.kinds |= policy->system_limits.active_mask;
    l->idle.kinds |= policy->system_limits.idle_mask;
    l->nobody = l->active;
    return l;
}

void limits_destroy (struct limits *l)
{
    if (!l)
        return;
    for (int o = 0; o < LIMIT_OBJECTS; o++)
        free (l->plain[o]);
    scope_free (&l->active);
    scope_free (&l->idle);
    free (l);
}

void limits_clear (struct limits *l)
{
    scope_clear (&l->active);
    scope_clear (&l->idle);
}

void limits_idle_clear (struct limits *l)
{
    if (l->any_idle)
        scope_clear (&l->idle);
}

void limits_active_add (struct limits *l, const struct limits_job *job, int64_t end_s)
{
    scope_change (&l->active, job, job->procs * end_s, end_s, 1);
}

void limits_active_remove (struct limits *l, const struct limits_job *job, int64_t end_s)
{
    scope_change (&l->active, job, job->procs * end_s, end_s, -1);
}

/* --- what if ----------------------------------------------------------------------------- */

static void row_open (struct limits_suppose *s, struct usage *u, int first, int second)
{
    s->row[s->count].usage = u;
    s->row[s->count].first = (uint8_t)first;
    s->row[s->count].second = (uint8_t)second;
    memcpy (s->row[s->count].saved, u->v, sizeof u->v);
    s->count++;
}

/* Twice: what makes a row may move the others. */
static void rows_open (struct limits *l, struct limits_suppose *s)
{
    struct scope *a = &l->active;

    s->count = 0;
    for (int k = 0; k < CRED_KINDS; k++) {
        if ((a->any[k] || l->any_special) && s->job->cred[k] != CRED_NONE)
            row_open (s, table_at (&a->table[k], s->job->cred[k]), k, CRED_KINDS);
    }
    if (a->any[LIMIT_OBJECT_SYSTEM])
        row_open (s, table_at (&a->table[LIMIT_OBJECT_SYSTEM], 0), CRED_KINDS, CRED_KINDS);
    for (int i = 0; i < CRED_KINDS && a->any_cross; i++) {
        for (int k = i + 1; k < CRED_KINDS; k++) {
            if (a->pair[i][k].used && s->job->cred[i] != CRED_NONE && s->job->cred[k] != CRED_NONE)
                row_open (s, pair_at (&a->pair[i][k], s->job->cred[i], s->job->cred[k]), i, k);
        }
    }
}

void limits_suppose_open (struct limits *l, struct limits_suppose *s, const struct limits_job *job)
{
    s->job = job;
    rows_open (l, s);
    rows_open (l, s);
}

void limits_suppose_less (struct limits_suppose *s, enum cred_kind kind, enum limit_kind limit,
                          int64_t amount)
{
    for (uint32_t i = 0; i < s->count; i++) {
        if (s->row[i].first == kind && s->row[i].second == CRED_KINDS)
            ((struct usage *)s->row[i].usage)->v[limit] -= amount;
    }
}

static bool same (const struct limits_suppose *s, const struct limits_job *other, uint32_t kind)
{
    return kind == CRED_KINDS || other->cred[kind] == s->job->cred[kind];
}

bool limits_suppose (struct limits_suppose *s, const struct limits_job *other, int64_t end_s,
                     int64_t sign)
{
    int64_t change[LIMIT_KINDS];
    bool any = false;

    for (uint32_t i = 0; i < s->count; i++) {
        if (!same (s, other, s->row[i].first) || !same (s, other, s->row[i].second))
            continue;
        if (!any) {
            request_fill (change, other, other->procs * end_s * sign, end_s * sign);
            for (int k = 0; k < LIMIT_KINDS; k++)
                change[k] *= k == LIMIT_PS || k == LIMIT_WC ? 1 : sign;
        }
        usage_change (s->row[i].usage, change);
        any = true;
    }
    return any;
}

void limits_suppose_close (struct limits_suppose *s)
{
    for (uint32_t i = 0; i < s->count; i++)
        memcpy (((struct usage *)s->row[i].usage)->v, s->row[i].saved, sizeof s->row[i].saved);
    s->count = 0;
}

void limits_idle_add (struct limits *l, const struct limits_job *job)
{
    if (l->any_idle)
        scope_change (&l->idle, job, job->procs * job->wclimit_s, job->wclimit_s, 1);
}

void limits_idle_remove (struct limits *l, const struct limits_job *job)
{
    if (l->any_idle)
        scope_change (&l->idle, job, job->procs * job->wclimit_s, job->wclimit_s, -1);
}

/* --- checks ------------------------------------------------------------------------------ */

/* now_s 0 for idle jobs: their sums are not ends. Jobs past their limits have nothing left. */
static int64_t usage_of (const struct usage *u, enum limit_kind limit, int64_t now_s)
{
    int64_t value = u->v[limit];
    if (limit == LIMIT_PS)
        value -= u->v[LIMIT_PROC] * now_s;
    if (limit == LIMIT_WC)
        value -= u->v[LIMIT_JOB] * now_s;
    return value > 0 ? value : 0;
}

int64_t limits_request (const struct limits_job *job, enum limit_kind limit)
{
    switch (limit) {
    case LIMIT_JOB:
        return 1;
    case LIMIT_PROC:
    case LIMIT_MINPROC:
        return job->procs;
    case LIMIT_NODE:
        return job->nodes;
    case LIMIT_PE:
        return job->pe_micro;
    case LIMIT_MEM:
        return job->mem_mb;
    case LIMIT_PS:
        return job->procs * job->wclimit_s;
    case LIMIT_WC:
        return job->wclimit_s;
    case LIMIT_KINDS:
        break;
    }
    return 0;
}

static bool passes (enum limit_kind limit, int64_t value, int64_t usage, int64_t request)
{
    if (limit == LIMIT_MINPROC)
        return request >= value;
    return value == LIMIT_UNLIMITED || usage + request <= value;
}

static const struct usage no_usage;

static const struct usage *usage_at (const struct scope *s, uint32_t object, uint32_t id)
{
    return id < s->table[object].count ? &s->table[object].usage[id] : &no_usage;
}

static const struct usage *pair_usage (const struct scope *s, enum cred_kind a, uint32_t a_id,
                                       enum cred_kind b, uint32_t b_id)
{
    const struct pair_table *t = a < b ? &s->pair[a][b] : &s->pair[b][a];
    if (!t->cap)
        return &no_usage;
    uint32_t slot = pair_slot (t, a < b ? pair_key (a_id, b_id) : pair_key (b_id, a_id));
    return t->key[slot] ? &t->usage[slot] : &no_usage;
}

/* One object's plain limits: value[] where mask has the bit, the QoS's override first. */
static int object_check (const struct scope *s, const struct limits_job *job, uint32_t object,
                         uint32_t id, uint32_t mask, uint32_t override_mask,
                         const int64_t value[LIMIT_KINDS], const int64_t override[LIMIT_KINDS],
                         int64_t now_s, struct limits_violation *v)
{
    const struct usage *u = usage_at (s, object, id);
    for (mask |= override_mask; mask; mask &= mask - 1) {
        enum limit_kind limit = (enum limit_kind)__builtin_ctz (mask);
        bool by_override = (override_mask >> limit) & 1;
        int64_t most = by_override ? override[limit] : value[limit];
        int64_t usage = usage_of (u, limit, now_s), request = limits_request (job, limit);
        if (passes (limit, most, usage, request))
            continue;
        if (v) {
            v->limit = limit;
            v->object = object;
            v->id = id;
            v->by_override = by_override;
            v->value = most;
            v->usage = usage;
            v->request = request;
        }
        return ERR_LIMIT;
    }
    return 0;
}

/* Of the rules about one (limit, kind), one for the job's own credential comes before one for each.
 */
static bool cross_applies (const struct policy_cred *c, uint32_t at, const struct limits_job *job)
{
    const struct policy_cross *x = &c->cross[at];
    uint32_t other = job->cred[x->other_kind];
    if (other == CRED_NONE)
        return false;
    if (x->other_id != CRED_NONE)
        return x->other_id == other;
    for (uint32_t i = 0; i < c->cross_count; i++) {
        const struct policy_cross *y = &c->cross[i];
        if (y->idle == x->idle && y->limit == x->limit && y->other_kind == x->other_kind &&
            y->other_id == other)
            return false;
    }
    return true;
}

static int cross_check (const struct limits *l, const struct scope *s, bool idle,
                        const struct limits_job *job, enum limit_level level, int64_t now_s,
                        struct limits_violation *v)
{
    for (int k = 0; k < CRED_KINDS; k++) {
        if (job->cred[k] == CRED_NONE)
            continue;
        const struct policy_cred *c = policy_cred (l->policy, (enum cred_kind)k, job->cred[k]);
        for (uint32_t i = 0; i < c->cross_count; i++) {
            const struct policy_cross *x = &c->cross[i];
            if (x->idle != idle || !cross_applies (c, i, job))
                continue;
            const struct usage *u = pair_usage (s, (enum cred_kind)k, job->cred[k], x->other_kind,
                                                job->cred[x->other_kind]);
            int64_t usage = usage_of (u, x->limit, now_s), request = limits_request (job, x->limit);
            if (passes (x->limit, x->value[level], usage, request))
                continue;
            if (v)
                *v = (struct limits_violation){v->scope,      level,
                                               x->limit,      (uint32_t)k,
                                               job->cred[k],  true,
                                               x->other_kind, job->cred[x->other_kind],
                                               false,         x->value[level],
                                               usage,         request};
            return ERR_LIMIT;
        }
    }
    return 0;
}

static const struct policy_qos *job_qos (const struct limits *l, const struct limits_job *job)
{
    uint32_t qos = job->cred[CRED_QOS];
    return policy_qos (l->policy, qos == CRED_NONE ? CRED_DEFAULT : qos);
}

static bool over (const struct usage *u, const int64_t most[LIMIT_KINDS],
                  const int64_t request[LIMIT_KINDS], enum limit_kind kind)
{
    return u->v[kind] + request[kind] > most[kind];
}

/* Whether no limit of this object forbids it, of those kinds that are in use at all; request has
 * MINPROC negated. */
static bool object_passes (const struct usage *u, const int64_t most[LIMIT_KINDS],
                           const int64_t request[LIMIT_KINDS], int64_t now_s, uint32_t kinds)
{
    bool fails = false;
    if (kinds & (1u << LIMIT_PS | 1u << LIMIT_WC)) {
        int64_t ps = u->v[LIMIT_PS] - u->v[LIMIT_PROC] * now_s;
        int64_t wc = u->v[LIMIT_WC] - u->v[LIMIT_JOB] * now_s;
        fails = (ps > 0 ? ps : 0) + request[LIMIT_PS] > most[LIMIT_PS];
        fails |= (wc > 0 ? wc : 0) + request[LIMIT_WC] > most[LIMIT_WC];
    }
    if (kinds & (1u << LIMIT_JOB | 1u << LIMIT_PROC)) {
        fails |= over (u, most, request, LIMIT_JOB);
        fails |= over (u, most, request, LIMIT_PROC);
    }
    if (kinds & (1u << LIMIT_NODE | 1u << LIMIT_PE | 1u << LIMIT_MEM)) {
        fails |= over (u, most, request, LIMIT_NODE);
        fails |= over (u, most, request, LIMIT_PE);
        fails |= over (u, most, request, LIMIT_MEM);
    }
    if (kinds & 1u << LIMIT_MINPROC)
        fails |= request[LIMIT_MINPROC] > most[LIMIT_MINPROC];
    return !fails;
}

/* The common case in a few nanoseconds for each kind that has limits: no cross limit, no QoS with
 * privileges. false: scope_check must look. */
static bool passes_plainly (const struct limits *l, const struct scope *s, bool idle,
                            const struct limits_job *job, enum limit_level level, int64_t now_s)
{
    if (l->any_special || s->any_cross)
        return false;
    int64_t request[LIMIT_KINDS];
    request_fill (request, job, job->procs * job->wclimit_s, job->wclimit_s);
    request[LIMIT_MINPROC] = -(int64_t)job->procs;
    for (uint32_t o = 0; o < LIMIT_OBJECTS; o++) {
        uint32_t id = o < CRED_KINDS ? job->cred[o] : 0;
        if (!s->any[o] || id == CRED_NONE)
            continue;
        uint32_t at = 0;
        if (o < CRED_KINDS && id < l->policy->cred_index_count[o])
            at = l->policy->cred_index[o][id];
        const struct plain_limits *plain = &l->plain[o][at];
        if (!object_passes (usage_at (s, o, id), idle ? plain->idle : plain->active[level], request,
                            now_s, s->kinds))
            return false;
    }
    return true;
}

static int scope_check (const struct limits *l, const struct scope *s, bool idle,
                        const struct limits_job *job, enum limit_level level, int64_t now_s,
                        struct limits_violation *v)
{
    if (passes_plainly (l, s, idle, job, level, now_s))
        return 0;
    const struct policy_qos *qos = job_qos (l, job);
    if (v)
        *v = (struct limits_violation){.scope = idle ? LIMIT_SCOPE_IDLE : LIMIT_SCOPE_ACTIVE,
                                       .level = level};
    if (qos->flags & QOS_IGNALL)
        return 0;
    for (uint32_t o = 0; o < LIMIT_OBJECTS; o++) {
        uint32_t id = o < CRED_KINDS ? job->cred[o] : 0;
        if (id == CRED_NONE || (o < CRED_KINDS && (qos->flags & QOS_IGNUSER)))
            continue;
        const struct policy_limits *own =
            o < CRED_KINDS ? &policy_cred (l->policy, (enum cred_kind)o, id)->limits
                           : &l->policy->system_limits;
        /* The override is for limits set elsewhere: not for the QoS's own, nor the system's. */
        bool overridable = o < CRED_KINDS && o != CRED_QOS;
        const struct policy_limits *ov = &qos->override;
        uint32_t ignore = idle ? qos->ignore_idle[o] : qos->ignore_active[o];
        uint32_t mask = (idle ? own->idle_mask : own->active_mask) & ~ignore;
        uint32_t ov_mask = overridable ? (idle ? ov->idle_mask : ov->active_mask) & ~ignore : 0;
        if (!(mask | ov_mask))
            continue;
        int rc = object_check (s, job, o, id, mask, ov_mask, idle ? own->idle : own->active[level],
                               idle ? ov->idle : ov->active[level], now_s, v);
        if (rc)
            return rc;
    }
    if (s->any_cross && !(qos->flags & QOS_IGNUSER))
        return cross_check (l, s, idle, job, level, now_s, v);
    return 0;
}

int limits_never_check (const struct limits *l, const struct limits_job *job,
                        struct limits_violation *v)
{
    return scope_check (l, &l->nobody, false, job, LIMIT_HARD, 0, v);
}

int limits_active_check (const struct limits *l, const struct limits_job *job,
                         enum limit_level level, int64_t now_s, struct limits_violation *v)
{
    return scope_check (l, &l->active, false, job, level, now_s, v);
}

/* --- many at once ------------------------------------------------------------------------- */

/* What jobs of each credential may still ask, by the kinds that are limited at all; where there may be
 * no further job, nothing. */
struct slack {
    uint32_t kinds;
    uint8_t kind[LIMIT_KINDS];
    uint32_t count[LIMIT_OBJECTS]; /* 0: not limited; the last row is of all credentials beyond */
    int64_t *row[LIMIT_OBJECTS];
};

static void slack_row (const struct limits *l, const struct slack *k, uint32_t object, uint32_t id,
                       uint32_t place, enum limit_level level, int64_t now_s, int64_t *out)
{
    const struct usage *u = usage_at (&l->active, object, id);
    const struct plain_limits *plain = &l->plain[object][place];

    for (uint32_t i = 0; i < k->kinds; i++) {
        enum limit_kind kind = (enum limit_kind)k->kind[i];
        out[i] =
            plain->active[level][kind] - (kind == LIMIT_MINPROC ? 0 : usage_of (u, kind, now_s));
        if (plain->active[level][LIMIT_JOB] <= usage_of (u, LIMIT_JOB, now_s))
            out[i] = INT64_MIN; /* not one more job */
    }
}

static void slack_make (const struct limits *l, struct slack *k, enum limit_level level,
                        int64_t now_s)
{
    memset (k, 0, sizeof *k);
    for (uint8_t kind = 0; kind < LIMIT_KINDS; kind++) {
        if (kind != LIMIT_JOB && (l->active.kinds >> kind) & 1)
            k->kind[k->kinds++] = kind;
    }
    if (k->kinds == 0)
        k->kind[k->kinds++] = LIMIT_PROC; /* to carry MAXJOB */
    for (uint32_t o = 0; o < LIMIT_OBJECTS; o++) {
        uint32_t named = o < CRED_KINDS ? l->policy->cred_index_count[o] : 1;
        uint32_t used = l->active.table[o].count;
        if (!l->active.any[o])
            continue;
        k->count[o] = (named > used ? named : used) + 1;
        k->row[o] = mem_alloc ((size_t)k->count[o] * k->kinds * sizeof *k->row[o]);
        for (uint32_t id = 0; id < k->count[o]; id++) {
            uint32_t place = o < CRED_KINDS && id < named ? l->policy->cred_index[o][id] : 0;
            slack_row (l, k, o, id, place, level, now_s, k->row[o] + (size_t)id * k->kinds);
        }
    }
}

/* The usual limits: MAXJOB, in what is left of the rest, and MAXPROC. */
static uint8_t slack_allows_procs (const struct slack *k, const struct limits_job *job)
{
    int64_t most = INT64_MAX;

    for (uint32_t o = 0; o < LIMIT_OBJECTS; o++) {
        uint32_t id = o < CRED_KINDS ? job->cred[o] : 0;
        if (k->count[o] == 0 || id == CRED_NONE)
            continue;
        int64_t slack = k->row[o][id < k->count[o] ? id : k->count[o] - 1];
        most = slack < most ? slack : most;
    }
    return job->procs <= most;
}

static uint8_t slack_allows (const struct slack *k, const struct limits_job *job)
{
    int64_t request[LIMIT_KINDS];

    for (uint32_t i = 0; i < k->kinds; i++) {
        enum limit_kind kind = (enum limit_kind)k->kind[i];
        request[i] = kind == LIMIT_MINPROC ? -(int64_t)job->procs : limits_request (job, kind);
    }
    for (uint32_t o = 0; o < LIMIT_OBJECTS; o++) {
        uint32_t id = o < CRED_KINDS ? job->cred[o] : 0;
        if (k->count[o] == 0 || id == CRED_NONE)
            continue;
        const int64_t *slack =
            k->row[o] + (size_t)(id < k->count[o] ? id : k->count[o] - 1) * k->kinds;
        for (uint32_t i = 0; i < k->kinds; i++) {
            if (request[i] > slack[i])
                return 0;
        }
    }
    return 1;
}

void limits_active_check_many (const struct limits *l, const struct limits_job *job, uint32_t count,
                               enum limit_level level, int64_t now_s, uint8_t *ok)
{
    struct slack k;

    if (l->any_special || l->active.any_cross) {
        for (uint32_t i = 0; i < count; i++)
            ok[i] = limits_active_check (l, &job[i], level, now_s, NULL) == 0;
        return;
    }
    slack_make (l, &k, level, now_s);
    for (uint32_t i = 0; i < count; i++)
        ok[i] = k.kinds == 1 && k.kind[0] == LIMIT_PROC ? slack_allows_procs (&k, &job[i])
                                                        : slack_allows (&k, &job[i]);
    for (uint32_t o = 0; o < LIMIT_OBJECTS; o++)
        free (k.row[o]);
}

int limits_idle_check (const struct limits *l, const struct limits_job *job,
                       struct limits_violation *v)
{
    return l->any_idle ? scope_check (l, &l->idle, true, job, LIMIT_HARD, 0, v) : 0;
}

static int system_job_check (const struct limits *l, const struct limits_job *job,
                             const struct policy_qos *qos, struct limits_violation *v)
{
    static const enum limit_kind kind[] = {LIMIT_PROC, LIMIT_WC, LIMIT_PS};
    const int64_t most[] = {l->policy->system_max_proc_per_job,
                            l->policy->system_max_wall_s_per_job, l->policy->system_max_ps_per_job};
    for (int i = 0; i < 3; i++) {
        bool by_override = qos->job_override_mask & (1u << kind[i]);
        int64_t value = by_override ? qos->job_override[kind[i]] : most[i];
        int64_t request = limits_request (job, kind[i]);
        if (value < 0 || request <= value || (qos->ignore_job & (1u << kind[i])))
            continue;
        if (v)
            *v = (struct limits_violation){.scope = LIMIT_SCOPE_JOB,
                                           .level = LIMIT_HARD,
                                           .limit = kind[i],
                                           .object = LIMIT_OBJECT_SYSTEM,
                                           .by_override = by_override,
                                           .value = value,
                                           .request = request};
        return ERR_LIMIT;
    }
    return 0;
}

/* What one credential, or SYSCFG, lets a job have. */
static int object_job_check (const struct limits_job *job, uint32_t object, uint32_t id,
                             const struct policy_limits *own, struct limits_violation *v)
{
    for (int k = 0; k < LIMIT_KINDS; k++) {
        int64_t request = limits_request (job, (enum limit_kind)k);
        if (!((own->per_job_mask >> k) & 1) || own->per_job[k] == LIMIT_UNLIMITED ||
            request <= own->per_job[k])
            continue;
        if (v)
            *v = (struct limits_violation){.scope = LIMIT_SCOPE_JOB,
                                           .level = LIMIT_HARD,
                                           .limit = (enum limit_kind)k,
                                           .object = object,
                                           .id = id,
                                           .value = own->per_job[k],
                                           .request = request};
        return ERR_LIMIT;
    }
    return 0;
}

int limits_job_check (const struct limits *l, const struct limits_job *job,
                      struct limits_violation *v)
{
    const struct policy_qos *qos = job_qos (l, job);
    int rc = 0;
    if (qos->flags & QOS_IGNALL)
        return 0;
    if (!(qos->flags & QOS_IGNSYSTEM))
        rc = system_job_check (l, job, qos, v);
    if (rc == 0 && !(qos->flags & QOS_IGNSYSTEM))
        rc = object_job_check (job, LIMIT_OBJECT_SYSTEM, 0, &l->policy->system_limits, v);
    for (uint32_t k = 0; k < CRED_KINDS && rc == 0 && !(qos->flags & QOS_IGNUSER); k++) {
        if (job->cred[k] != CRED_NONE)
            rc = object_job_check (
                job, k, job->cred[k],
                &policy_cred (l->policy, (enum cred_kind)k, job->cred[k])->limits, v);
    }
    return rc;
}

bool limits_any_job (const struct limits *l, const uint32_t cred[CRED_KINDS])
{
    const struct policy *p = l->policy;
    const struct policy_qos *qos = policy_qos (p, cred[CRED_QOS]);
    if (p->system_max_proc_per_job >= 0 || p->system_max_wall_s_per_job >= 0 ||
        p->system_max_ps_per_job >= 0 || p->system_limits.per_job_mask ||
        (qos && qos->job_override_mask))
        return true;
    for (int k = 0; k < CRED_KINDS; k++)
        if (cred[k] != CRED_NONE &&
            policy_cred (p, (enum cred_kind)k, cred[k])->limits.per_job_mask)
            return true;
    return false;
}

static bool any_limit (const struct limits *l, const uint32_t cred[CRED_KINDS], bool idle)
{
    const struct policy_limits *sys = &l->policy->system_limits;
    if (idle ? sys->idle_mask || l->idle_overrides : sys->active_mask || l->overrides)
        return true;
    for (int k = 0; k < CRED_KINDS; k++) {
        if (cred[k] == CRED_NONE && k != CRED_QOS)
            continue;
        const struct policy_cred *c = policy_cred (l->policy, (enum cred_kind)k,
                                                   cred[k] == CRED_NONE ? CRED_DEFAULT : cred[k]);
        if (idle ? c->limits.idle_mask : c->limits.active_mask)
            return true;
        for (uint32_t i = 0; i < c->cross_count; i++) {
            if (c->cross[i].idle == idle)
                return true;
        }
    }
    return false;
}

bool limits_any_active (const struct limits *l, const uint32_t cred[CRED_KINDS])
{
    return any_limit (l, cred, false);
}

bool limits_any_idle (const struct limits *l, const uint32_t cred[CRED_KINDS])
{
    return l->any_idle && any_limit (l, cred, true);
}

int64_t limits_active_usage (const struct limits *l, uint32_t object, uint32_t id,
                             enum limit_kind limit, int64_t now_s)
{
    assert (object < LIMIT_OBJECTS);
    return usage_of (usage_at (&l->active, object, id), limit, now_s);
}
