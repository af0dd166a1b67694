/* shape: kinds of tasks, interned so that one answer serves all jobs that are alike. */
#include "local/core/state.h"
#include "proto/base/fnv.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static bool shape_same (const struct shape *s, const struct req *b, const struct needs *needs,
                        uint32_t access)
{
    const struct req *a = &s->req;

    return s->access == access && a->tasks_per_node == b->tasks_per_node &&
           a->exclusive == b->exclusive && memcmp (&a->task, &b->task, sizeof a->task) == 0 &&
           memcmp (&a->features, &b->features, sizeof a->features) == 0 &&
           memcmp (&s->needs, needs, sizeof *needs) == 0 && a->hosts == b->hosts &&
           a->node_procs == b->node_procs &&
           memcmp (&a->exclude, &b->exclude, sizeof a->exclude) == 0 &&
           memcmp (&a->prefer, &b->prefer, sizeof a->prefer) == 0;
}

static bool features_none (const struct features *f)
{
    uint64_t any = 0;

    for (uint32_t w = 0; w < FEATURES_MAX / 64; w++)
        any |= f->word[w];
    return any == 0;
}

static void shape_describe (struct cluster *c, struct shape *s)
{
    s->dim_count = 0;
    for (uint32_t d = 0; d < c->dims; d++) {
        if (s->req.task.v[d] > 0)
            s->dim[s->dim_count++] = (uint8_t)d;
    }
    s->procs = s->req.task.v[RES_PROCS];
    s->shift =
        (s->procs & (s->procs - 1)) ? UINT8_MAX : (uint8_t)__builtin_ctz ((unsigned)s->procs);
    s->everywhere = s->needs.partitions == 0 && s->needs.classes == 0 &&
                    s->needs.class_hosts == 0 && s->needs.speed_ppm == 0 && s->needs.group == 0 &&
                    s->req.hosts == 0 && s->req.node_procs == 0 &&
                    features_none (&s->req.features) && features_none (&s->req.exclude);
    s->prefers = !features_none (&s->req.prefer);
    s->special = s->req.exclusive || c->job_column || s->needs.access == ACCESS_SINGLETASK;
    s->simple = s->everywhere && !s->special && s->needs.owner == 0 && s->req.tasks_per_node == 0 &&
                s->dim_count == 1 && s->dim[0] == RES_PROCS && s->req.task.v[RES_PROCS] == 1 &&
                !s->prefers;
    s->fit_serial = s->now_serial = s->late_serial = s->barred_version = 0;
    s->never_serial = 0;
    s->shut_serial = 0;
}

static uint32_t shape_hash (const struct req *req, const struct needs *needs)
{
    uint64_t hash = req->tasks_per_node * UINT64_C (31) + req->exclusive;

    hash = (hash ^ needs->partitions ^ needs->classes * 3) * UINT64_C (0x9E3779B97F4A7C15);
    hash = (hash ^ needs->group ^ (uint64_t)needs->owner << 32) * UINT64_C (0x9E3779B97F4A7C15);
    hash ^=
        (uint64_t)(uint32_t)needs->speed_ppm << 16 ^ req->hosts ^ (uint64_t)req->node_procs << 32;

    for (uint32_t d = 0; d < RES_MAX; d++)
        hash = fnv_word (hash, (uint32_t)req->task.v[d]);
    for (uint32_t w = 0; w < FEATURES_MAX / 64; w++)
        hash = (hash ^ req->features.word[w]) * UINT64_C (0x9E3779B97F4A7C15);
    return (uint32_t)(hash >> 40) % SHAPE_BUCKETS;
}

static void shape_unlink (struct cluster *c, uint32_t at)
{
    uint32_t *link = &c->shape_bucket[c->shape[at].bucket];

    while (*link != at)
        link = &c->shape[*link].next;
    *link = c->shape[at].next;
}

void shape_release (struct cluster *c, uint32_t shape)
{
    assert (c->shape[shape].refs > 0);
    if (--c->shape[shape].refs == 0)
        c->shape_unused++;
}

/* The twin has the nodes, which are the same for all who ask. */
static void shape_empty (struct cluster *c, uint32_t at)
{
    struct shape *s = &c->shape[at];

    if (s->twin == SLOT_NONE)
        free (s->nodes.word);
    else
        shape_release (c, s->twin);
    s->nodes = (struct bitset){0, NULL};
    s->twin = SLOT_NONE;
}

/* A place for a new shape: one that nobody uses any more, or a new one. */
static uint32_t shape_place (struct cluster *c)
{
    uint32_t at;

    if (c->shape_unused == 0 || c->shape_unused < c->shape_count / 2) {
        c->shape = grow_lines (c->shape, &c->shape_cap, c->shape_count + 1, sizeof *c->shape);
        memset (&c->shape[c->shape_count], 0, sizeof *c->shape);
        c->shape[c->shape_count].twin = SLOT_NONE;
        return c->shape_count++;
    }
    for (at = 0; c->shape[at].refs; at++)
        ;
    shape_unlink (c, at);
    c->shape_unused--;
    shape_empty (c, at);
    return at;
}

static uint32_t shape_find (struct cluster *c, const struct req *req, const struct needs *needs,
                            uint32_t access)
{
    uint32_t bucket, at = c->shape_last;

    if (at >= c->shape_count || !shape_same (&c->shape[at], req, needs, access)) {
        bucket = (shape_hash (req, needs) + access) % SHAPE_BUCKETS;
        at = c->shape_bucket[bucket];
        while (at != SLOT_NONE && !shape_same (&c->shape[at], req, needs, access))
            at = c->shape[at].next;
        if (at == SLOT_NONE) {
            uint32_t twin = access ? shape_find (c, req, needs, 0) : SLOT_NONE;
            at = shape_place (c);
            c->shape[at].twin = twin;
            c->shape[at].req = *req;
            c->shape[at].needs = *needs;
            c->shape[at].access = access;
            c->shape[at].bucket = bucket;
            c->shape[at].next = c->shape_bucket[bucket];
            c->shape_bucket[bucket] = at;
            shape_describe (c, &c->shape[at]);
            c->shape_unused++;
        }
        c->shape_last = at;
    }
    if (c->shape[at].refs++ == 0) {
        c->shape_unused--;
        c->shape_serial++;
    }
    return at;
}

uint32_t shape_intern (struct cluster *c, const struct req *asked, uint32_t access,
                       const uint32_t *cred)
{
    struct needs needs;
    struct req req;

    needs_resolve (c, asked, cred, &req, &needs);
    return shape_find (c, &req, &needs, access);
}

uint32_t shape_for_access (struct cluster *c, uint32_t shape, uint32_t access)
{
    struct req req = c->shape[shape].req;
    struct needs needs = c->shape[shape].needs;

    return shape_find (c, &req, &needs, access);
}

uint32_t shape_narrowed (struct cluster *c, uint32_t shape, uint64_t partitions, int32_t speed_ppm)
{
    struct req req = c->shape[shape].req;
    struct needs needs = c->shape[shape].needs;

    if (partitions)
        needs.partitions = partitions;
    needs.speed_ppm = speed_ppm;
    return shape_find (c, &req, &needs, c->shape[shape].access);
}

uint64_t shape_group_most (struct cluster *c, const struct shape *s, const struct node_group *group,
                           node_lost_fn lost, const void *self)
{
    uint64_t *sum = mem_zero (group->count + 1, sizeof *sum), most = 0;

    for (uint32_t n = bitset_next (&s->nodes, 0); n < c->node_count;
         n = bitset_next (&s->nodes, n + 1)) {
        uint32_t fit = shape_fit (c, s, n, row (c, c->cap, n)) - (lost ? lost (self, c, s, n) : 0);
        for (uint32_t i = group->first[n]; i < group->first[n + 1]; i++)
            sum[group->member[i]] += fit;
    }
    for (uint32_t i = 0; i < group->count; i++)
        most = sum[i] > most ? sum[i] : most;
    free (sum);
    return most;
}

struct shape *shape_refresh (struct cluster *c, uint32_t shape)
{
    struct shape *s = &c->shape[shape];
    const struct node_group *group;

    if (s->fit_serial == c->node_serial)
        return s;
    s->fit_serial = c->node_serial;
    s->fit_max = 0;
    if (s->twin != SLOT_NONE) {
        const struct shape *twin = shape_refresh (c, s->twin);
        s->fit_max = twin->fit_max;
        s->nodes = twin->nodes;
        return s;
    }
    if (!s->everywhere) {
        uint32_t words = bitset_words (c->node_count);
        free (s->nodes.word);
        s->nodes.bit_count = c->node_count;
        s->nodes.word = mem_zero (words ? words : 1, sizeof *s->nodes.word);
    }
    group = s->needs.group ? group_refresh (c, s->needs.group) : NULL;
    for (uint32_t n = 0; n < c->node_count; n++) {
        if (!node_plannable (c, n) || !needs_met (c, s, n) ||
            (group && !bitset_test (&group->all, n)))
            continue;
        if (!s->everywhere)
            bitset_set (&s->nodes, n);
        s->fit_max += shape_fit (c, s, n, row (c, c->cap, n));
    }
    if (group)
        s->fit_max = shape_group_most (c, s, group, NULL, NULL);
    return s;
}
