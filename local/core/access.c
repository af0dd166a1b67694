/* access: sorts credentials into classes that all ACLs treat alike, and keeps that up to date.
 * Questions, reasons, preemption and the making of a timeline ask it. Nobody may decide
 * elsewhere whom an ACL admits, or a pass and showbf would differ. */
#include "local/core/access.h"

#include <stdlib.h>
#include <string.h>

#include "local/core/timeline.h"

enum { CLASS_BUCKETS = 1024, MEMO_FIRST = 1024 };

/* What ACLs can tell apart of somebody. */
struct access_key {
    uint32_t cred[CRED_KINDS];
    uint32_t range[2]; /* of durations, processors */
    uint32_t attrs;
    uint64_t named;
};

struct access_memo {
    struct access_key key;
    uint32_t class; /* + 1; 0: empty */
};

/* --- tables over all ACLs ------------------------------------------------------------------- */

static int by_value (const void *a, const void *b)
{
    const int64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static void bounds_make (struct access *a, uint32_t which, uint8_t type)
{
    uint32_t n = 0, kept = 0;

    for (uint32_t i = 0; i < a->count; i++) {
        for (uint32_t k = 0; k < a->open[i]->spec.acl_count; k++)
            n += a->open[i]->spec.acl[k].type == type;
    }
    free (a->bound[which]);
    a->bound[which] = mem_alloc ((n + 1) * sizeof *a->bound[which]);
    n = 0;
    for (uint32_t i = 0; i < a->count; i++) {
        for (uint32_t k = 0; k < a->open[i]->spec.acl_count; k++) {
            if (a->open[i]->spec.acl[k].type == type)
                a->bound[which][n++] = a->open[i]->spec.acl[k].value;
        }
    }
    qsort (a->bound[which], n, sizeof *a->bound[which], by_value);
    for (uint32_t i = 0; i < n; i++) {
        if (i == 0 || a->bound[which][i] != a->bound[which][i - 1])
            a->bound[which][kept++] = a->bound[which][i];
    }
    a->bound_count[which] = kept;
}

/* Everything between two bounds is alike, and each bound is a range of its own. */
static uint32_t range_of (const struct access *a, uint32_t which, int64_t value)
{
    uint32_t low = 0, high = a->bound_count[which];

    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (a->bound[which][mid] < value)
            low = mid + 1;
        else
            high = mid;
    }
    return 2 * low + (low < a->bound_count[which] && a->bound[which][low] == value);
}

/* The entries for credentials of one kind, of the owner too. */
static void each_cred (const struct access *a, uint8_t kind,
                       void (*fn) (void *arg, uint32_t cred, uint32_t rsv), void *arg)
{
    for (uint32_t i = 0; i < a->count; i++) {
        const struct rsv_spec *spec = &a->open[i]->spec;
        for (uint32_t k = 0; k < spec->acl_count; k++) {
            if (spec->acl[k].type == kind)
                fn (arg, (uint32_t)spec->acl[k].value, i);
        }
        if (spec->owned && spec->owner.type == kind)
            fn (arg, (uint32_t)spec->owner.value, i);
    }
}

struct filling {
    uint32_t most;
    uint32_t *first, *list;
};

static void most_of (void *arg, uint32_t cred, uint32_t rsv)
{
    struct filling *f = arg;

    (void)rsv;
    f->most = cred + 1 > f->most ? cred + 1 : f->most;
}

static void count_one (void *arg, uint32_t cred, uint32_t rsv)
{
    (void)rsv;
    ((struct filling *)arg)->first[cred + 2]++;
}

static void put_one (void *arg, uint32_t cred, uint32_t rsv)
{
    struct filling *f = arg;

    f->list[f->first[cred + 1]++] = rsv;
}

static void cred_index_make (struct access *a, uint8_t kind)
{
    struct filling f = {0};

    each_cred (a, kind, most_of, &f);
    f.first = mem_zero (f.most + 3, sizeof *f.first);
    each_cred (a, kind, count_one, &f);
    for (uint32_t i = 0; i < f.most; i++)
        f.first[i + 2] += f.first[i + 1];
    f.list = mem_alloc ((f.first[f.most + 1] + 1) * sizeof *f.list);
    each_cred (a, kind, put_one, &f);
    free (a->first[kind]);
    free (a->list[kind]);
    a->first[kind] = f.first;
    a->list[kind] = f.list;
    a->cred_count[kind] = f.most;
}

static bool always_looked_at (const struct rsv_spec *spec)
{
    if (spec->flags & RSV_PREEMPTEE)
        return true;
    for (uint32_t k = 0; k < spec->acl_count; k++) {
        if (spec->acl[k].type >= CRED_KINDS && !spec->acl[k].deny)
            return true;
    }
    return false;
}

static void memo_clear (struct access *a)
{
    for (uint32_t i = 0; i < a->class_count; i++)
        free (a->class[i].grant);
    a->class_count = 1; /* class 0 */
    a->class = mem_grow (a->class, &a->class_cap, 1, sizeof *a->class);
    a->class[0] = (struct access_class){.next = UINT32_MAX};
    memset (a->bucket, 0xFF, CLASS_BUCKETS * sizeof *a->bucket);
    memset (a->memo, 0, a->memo_cap * sizeof *a->memo);
    a->memo_count = 0;
}

static struct access *access_create (void)
{
    struct access *a = mem_zero (1, sizeof *a);

    a->bucket = mem_alloc (CLASS_BUCKETS * sizeof *a->bucket);
    a->memo_cap = MEMO_FIRST;
    a->memo = mem_zero (a->memo_cap, sizeof *a->memo);
    memo_clear (a);
    return a;
}

void access_free (struct access *a)
{
    if (a == NULL)
        return;
    for (uint32_t i = 0; i < a->class_count; i++)
        free (a->class[i].grant);
    for (int k = 0; k < CRED_KINDS; k++) {
        free (a->first[k]);
        free (a->list[k]);
    }
    free (a->bound[0]);
    free (a->bound[1]);
    free (a->open);
    free (a->always);
    free (a->single);
    free (a->stamp);
    free (a->class);
    free (a->bucket);
    free (a->memo);
    free (a->fence_first);
    free (a->fence);
    free (a->fenced);
    free (a->fenced_at);
    free (a);
}

void access_changed (struct cluster *c)
{
    if (c->access == NULL)
        c->access = access_create ();
    c->access->dirty = true;
}

static void tables_make (struct cluster *c)
{
    struct access *a = c->access;

    a->count = 0;
    a->open = mem_grow (a->open, &a->cap, c->rsv_count + 1, sizeof (struct rsv *));
    for (uint32_t i = 0; i < c->rsv_count; i++) {
        if (c->rsv[i]->spec.kind == RSV_ADMIN)
            a->open[a->count++] = c->rsv[i];
    }
    for (uint8_t k = 0; k < CRED_KINDS; k++)
        cred_index_make (a, k);
    bounds_make (a, 0, ACL_DURATION);
    bounds_make (a, 1, ACL_PROCS);
    free (a->always);
    free (a->single);
    free (a->stamp);
    a->always = mem_alloc ((a->count + 1) * sizeof *a->always);
    a->single = mem_alloc ((a->count + 1) * sizeof *a->single);
    a->stamp = mem_zero (a->count + 1, sizeof *a->stamp);
    a->stamp_now = a->always_count = a->single_count = 0;
    for (uint32_t i = 0; i < a->count; i++) {
        if (a->open[i]->spec.flags & RSV_SINGLEUSE)
            a->single[a->single_count++] = i;
        if (always_looked_at (&a->open[i]->spec))
            a->always[a->always_count++] = i;
    }
    memo_clear (a);
}

/* --- classes -------------------------------------------------------------------------------- */

static uint64_t mixed (uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C (0x9E3779B97F4A7C15);
    return hash ^ hash >> 29;
}

static uint32_t class_intern (struct access *a, const struct grant *grant, uint32_t count)
{
    uint64_t hash = count;
    uint32_t at, bucket;
    struct access_class *own;

    if (count == 0)
        return 0;
    for (uint32_t i = 0; i < count; i++)
        hash = mixed (hash, (uint64_t)grant[i].rsv << 8 | grant[i].affinity);
    bucket = (uint32_t)(hash >> 32) % CLASS_BUCKETS;
    for (at = a->bucket[bucket]; at != UINT32_MAX; at = a->class[at].next) {
        own = &a->class[at];
        uint32_t i = 0;
        while (own->count == count && i < count && own->grant[i].rsv == grant[i].rsv &&
               own->grant[i].affinity == grant[i].affinity)
            i++;
        if (own->count == count && i == count)
            return at;
    }
    at = a->class_count++;
    a->class = mem_grow (a->class, &a->class_cap, a->class_count, sizeof *a->class);
    own = &a->class[at];
    *own = (struct access_class){.count = count, .next = a->bucket[bucket]};
    own->grant = mem_copy (grant, count * sizeof *grant);
    a->bucket[bucket] = at;
    return at;
}

static int by_place (const void *a, const void *b)
{
    const struct grant *x = a, *y = b;

    return (x->rsv > y->rsv) - (x->rsv < y->rsv);
}

struct asking {
    struct access *a;
    const struct who *who;
    struct grant *grant;
    uint32_t count;
};

static void ask_one (struct asking *q, uint32_t at)
{
    uint8_t affinity;

    if (q->a->stamp[at] == q->a->stamp_now)
        return;
    q->a->stamp[at] = q->a->stamp_now;
    if (access_admits (&q->a->open[at]->spec, q->who, &affinity))
        q->grant[q->count++] = (struct grant){at, affinity};
}

static uint32_t class_find (struct access *a, const struct who *who)
{
    struct grant few[64];
    struct asking q = {a, who, few, 0};
    uint32_t class;

    if (a->count > 64)
        q.grant = mem_alloc (a->count * sizeof *q.grant);
    a->stamp_now++;
    for (int k = 0; k < CRED_KINDS; k++) {
        uint32_t id = who->cred[k];
        if (id >= a->cred_count[k])
            continue;
        for (uint32_t i = a->first[k][id]; i < a->first[k][id + 1]; i++)
            ask_one (&q, a->list[k][i]);
    }
    for (uint32_t i = 0; i < a->always_count; i++)
        ask_one (&q, a->always[i]);
    qsort (q.grant, q.count, sizeof *q.grant, by_place);
    class = class_intern (a, q.grant, q.count);
    if (q.grant != few)
        free (q.grant);
    return class;
}

static struct access_key key_of (const struct access *a, const struct who *who)
{
    struct access_key key;

    memset (&key, 0, sizeof key);
    for (int k = 0; k < CRED_KINDS; k++) {
        uint32_t id = who->cred[k];
        key.cred[k] =
            id < a->cred_count[k] && a->first[k][id + 1] > a->first[k][id] ? id : CRED_NONE;
    }
    key.range[0] = range_of (a, 0, who->walltime);
    key.range[1] = range_of (a, 1, who->procs);
    key.attrs = who->attrs;
    key.named = who->named.v;
    return key;
}

static struct access_memo *memo_place (struct access *a, const struct access_key *key)
{
    uint64_t hash = 0;
    uint32_t i;

    for (int k = 0; k < CRED_KINDS; k++)
        hash = mixed (hash, key->cred[k]);
    hash = mixed (hash, (uint64_t)key->range[0] << 32 | key->range[1]);
    hash = mixed (mixed (hash, key->attrs), key->named);
    i = (uint32_t)(hash >> 32) & (a->memo_cap - 1);
    while (a->memo[i].class != 0 && memcmp (&a->memo[i].key, key, sizeof *key) != 0)
        i = (i + 1) & (a->memo_cap - 1);
    return &a->memo[i];
}

static void memo_grow (struct access *a)
{
    struct access_memo *old = a->memo;
    uint32_t cap = a->memo_cap;

    a->memo_cap *= 2;
    a->memo = mem_zero (a->memo_cap, sizeof *a->memo);
    for (uint32_t i = 0; i < cap; i++) {
        if (old[i].class)
            *memo_place (a, &old[i].key) = old[i];
    }
    free (old);
}

/* With what its QoS says of it. IGNSRMAXTIME: it counts as short as can be. */
static struct who with_qos (const struct cluster *c, struct who who)
{
    uint32_t flags = policy_job_flags (c->policy, who.cred);

    who.attrs |= (flags & QOS_PREEMPTOR ? JOBATTR_PREEMPTOR : 0) |
                 (flags & QOS_PREEMPTEE ? JOBATTR_PREEMPTEE : 0);
    if (flags & QOS_IGNSRMAXTIME)
        who.walltime = 1;
    return who;
}

uint32_t access_of (struct cluster *c, const struct who *asking)
{
    struct access *a = c->access;
    struct access_key key;
    struct access_memo *memo;
    struct who own, *who = &own;

    if (a == NULL || a->count == 0 || asking == NULL)
        return 0;
    own = with_qos (c, *asking);
    key = key_of (a, who);
    memo = memo_place (a, &key);
    if (memo->class == 0) {
        if (a->memo_count * 2 >= a->memo_cap) {
            memo_grow (a);
            memo = memo_place (a, &key);
        }
        memo->class = class_find (a, who) + 1;
        memo->key = key;
        a->memo_count++;
    }
    return memo->class - 1;
}

uint32_t access_shared (struct cluster *c)
{
    struct access *a = c->access;
    struct grant *grant;
    uint32_t count = 0, class;

    if (a == NULL || a->count == 0)
        return 0;
    grant = mem_alloc (a->count * sizeof *grant);
    for (uint32_t i = 0; i < a->count; i++) {
        if (a->open[i]->spec.flags & RSV_SHARED)
            grant[count++] = (struct grant){i, AFFINITY_NEUTRAL};
    }
    class = class_intern (a, grant, count);
    free (grant);
    return class;
}

struct who access_who (const struct cluster *c, const struct job *job)
{
    struct who who = {.walltime = job->spec.walltime_limit,
                      .procs = job->procs,
                      .attrs = job->spec.attrs,
                      .named = job->spec.reservation};

    who.attrs |= (job->spec.flags & JOB_PREEMPTOR ? JOBATTR_PREEMPTOR : 0) |
                 (job->spec.flags & JOB_PREEMPTEE ? JOBATTR_PREEMPTEE : 0) |
                 (job->spec.flags & JOB_NORESTART ? 0 : JOBATTR_RESTARTABLE);
    memcpy (who.cred, job->spec.cred, sizeof who.cred);
    return with_qos (c, who);
}

uint32_t access_of_job (struct cluster *c, const struct job *job)
{
    struct who who;

    if (c->access == NULL || c->access->count == 0)
        return 0;
    who = access_who (c, job);
    return access_of (c, &who);
}

const struct grant *access_grant (const struct access *a, uint32_t class, uint32_t rsv)
{
    const struct access_class *own = &a->class[class];
    uint32_t low = 0, high = own->count;

    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (own->grant[mid].rsv < rsv)
            low = mid + 1;
        else
            high = mid;
    }
    return low < own->count && own->grant[low].rsv == rsv ? &own->grant[low] : NULL;
}

/* --- fences --------------------------------------------------------------------------------- */

/* An ACL reservation has one req and names each node once: cluster_rsv_create sees to it. */
static void fence_put (struct cluster *c, uint32_t place, const struct placement *p, uint32_t *fill)
{
    struct access *a = c->access;
    const struct rsv_spec *spec = &a->open[place]->spec;
    struct fence *one = &a->fence[a->fence_first[p->node.v] + fill[p->node.v]++];

    memset (one, 0, sizeof *one);
    one->rsv = place;
    one->start = spec->start;
    one->end = spec->end;
    for (uint32_t d = 0; d < c->dims; d++)
        one->keep.v[d] = (int32_t)p->tasks * spec->req[0].task.v[d];
    one->whole = (spec->flags & RSV_DEDICATEDNODE) || spec->req[0].exclusive ||
                 one->keep.v[RES_PROCS] >= row (c, c->cap, p->node.v)[RES_PROCS];
    if (!one->whole)
        one->part = a->part_count++;
}

static void fences_make (struct cluster *c)
{
    struct access *a = c->access;
    uint32_t *fill = mem_zero (c->node_count + 1, sizeof *fill), total;

    free (a->fence_first);
    free (a->fence);
    free (a->fenced);
    free (a->fenced_at);
    a->fence_first = mem_zero (c->node_count + 2, sizeof *a->fence_first);
    a->fenced_at = mem_zero (c->node_count + 1, sizeof *a->fenced_at);
    a->fenced = mem_alloc ((c->node_count + 1) * sizeof *a->fenced);
    for (uint32_t r = 0; r < a->count; r++) {
        for (uint32_t i = 0; i < a->open[r]->allocation.count; i++)
            a->fence_first[a->open[r]->allocation.item[i].node.v + 1]++;
    }
    a->fenced_count = 0;
    for (uint32_t n = 0; n < c->node_count; n++) {
        if (a->fence_first[n + 1] > 0) {
            a->fenced[a->fenced_count++] = n;
            a->fenced_at[n] = a->fenced_count;
        }
        a->fence_first[n + 1] += a->fence_first[n];
    }
    total = a->fence_first[c->node_count];
    a->fence = mem_alloc ((total + 1) * sizeof *a->fence);
    a->part_count = 0;
    for (uint32_t r = 0; r < a->count; r++) {
        for (uint32_t i = 0; i < a->open[r]->allocation.count; i++)
            fence_put (c, r, &a->open[r]->allocation.item[i], fill);
    }
    free (fill);
    a->fences_dirty = false;
}

/* --- all up to date -------------------------------------------------------------------------- */

/* The job's shapes are those of its class. */
static void job_settle (struct cluster *c, uint32_t slot)
{
    struct job *job = job_at (c, slot);
    uint32_t access = access_of_job (c, job);

    if (access == job->access)
        return;
    job->access = access;
    for (uint32_t r = 0; r < job->spec.req_count; r++) {
        uint32_t old = job->shape[r];
        job->shape[r] = shape_for_access (c, old, access);
        shape_release (c, old);
    }
    if (job->spec.req_count == 1)
        c->hot[slot].shape = job->shape[0];
}

void access_settle (struct cluster *c)
{
    struct access *a = c->access;

    if (a == NULL || (!a->dirty && !a->fences_dirty))
        return;
    if (a->dirty) {
        a->dirty = false;
        tables_make (c);
        c->shape_serial++; /* classes have other numbers … */
        c->lasting++;      /* … and what is known of shapes for good is of those */
        for (uint32_t i = 0; i < c->idle_count; i++)
            job_settle (c, c->idle[i]);
        for (uint32_t i = 0; i < c->run_count; i++)
            job_settle (c, c->run[i].slot);
        for (uint32_t i = 0; i < c->suspended_count; i++)
            job_settle (c, c->suspended[i]);
    }
    fences_make (c);
}

/* --- why not -------------------------------------------------------------------------------- */

/* Tasks of the shape for which there is room in reservations that do not let it in; the first of these. */
static uint64_t barred_count (const struct cluster *c, const struct shape *s,
                              struct rsv_id *rsv_out)
{
    const struct access *a = c->access;
    uint64_t tasks = 0;

    *rsv_out = (struct rsv_id){0};
    for (uint32_t i = 0; i < a->fenced_count; i++) {
        uint32_t node = a->fenced[i];
        const struct fence *by = NULL;
        for (uint32_t k = a->fence_first[node]; k < a->fence_first[node + 1] && !by; k++) {
            const struct fence *f = &a->fence[k];
            if (f->start <= c->now && f->end > c->now &&
                (a->open[f->rsv]->used_by.v || !access_grant (a, s->access, f->rsv)))
                by = f;
        }
        if (by == NULL || c->node_state[node] != NODE_UP || !shape_suits (c, s, node))
            continue;
        tasks += shape_fit (c, s, node, row (c, c->free, node));
        if (rsv_out->v == 0 && tasks > 0)
            *rsv_out = a->open[by->rsv]->spec.id;
    }
    return tasks;
}

/* Is there anything that could bar it, and is what is known of the shape true? */
static bool may_be_barred (const struct cluster *c, uint32_t shape)
{
    return c->access && c->access->count > 0 && !c->access->dirty && !c->access->fences_dirty &&
           shape != SLOT_NONE && c->shape[shape].fit_serial == c->node_serial;
}

bool access_barred (const struct cluster *c, uint32_t shape, uint64_t missing,
                    struct rsv_id *rsv_out)
{
    struct shape *s;

    if (!may_be_barred (c, shape))
        return false;
    s = &c->shape[shape];
    if (s->barred_version != c->version) {
        s->barred_version = c->version;
        s->barred_tasks = barred_count (c, s, &s->barred_rsv);
    }
    if (s->barred_tasks < missing)
        return false;
    *rsv_out = s->barred_rsv;
    return true;
}

bool access_barred_now (const struct cluster *c, uint32_t shape, uint64_t missing,
                        struct rsv_id *rsv_out)
{
    struct rsv_id rsv;

    if (!may_be_barred (c, shape) || barred_count (c, &c->shape[shape], &rsv) < missing)
        return false;
    *rsv_out = rsv;
    return true;
}

/* --- SINGLEUSE -------------------------------------------------------------------------------- */

bool rsv_lies_on (const struct rsv *rsv, const struct job *job)
{
    for (uint32_t i = 0; i < job->allocation.count; i++) {
        for (uint32_t k = 0; k < rsv->allocation.count; k++) {
            if (rsv->allocation.item[k].node.v == job->allocation.item[i].node.v)
                return true;
        }
    }
    return false;
}

/* --- OWNERPREEMPT ------------------------------------------------------------------------------- */

static bool owns (const struct rsv_spec *spec, const struct job *job)
{
    return spec->owner.type < CRED_KINDS && job->spec.cred[spec->owner.type] != CRED_NONE &&
           (int64_t)job->spec.cred[spec->owner.type] == spec->owner.value;
}

bool access_owner (const struct cluster *c, const struct job *job)
{
    for (uint32_t i = 0; c->access && i < c->rsv_count; i++) {
        const struct rsv_spec *spec = &c->rsv[i]->spec;
        if ((spec->flags & RSV_OWNERPREEMPT) && spec->owned && spec->start <= c->now &&
            spec->end > c->now && owns (spec, job))
            return true;
    }
    return false;
}

bool access_owner_evicts (const struct cluster *c, const struct job *job, const struct job *victim)
{
    for (uint32_t i = 0; c->access && i < c->rsv_count; i++) {
        const struct rsv_spec *spec = &c->rsv[i]->spec;
        if ((spec->flags & RSV_OWNERPREEMPT) && spec->owned && spec->start <= c->now &&
            spec->end > c->now && owns (spec, job) && !owns (spec, victim) &&
            rsv_lies_on (c->rsv[i], victim))
            return true;
    }
    return false;
}
