/* shape: kinds of tasks, interned so that one answer serves all jobs that are alike. */
#include "local/core/state.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static bool shape_same (const struct req *a, const struct req *b)
{
    return a->tasks_per_node == b->tasks_per_node && a->partition == b->partition &&
           a->exclusive == b->exclusive &&
           memcmp (&a->task, &b->task, sizeof a->task) == 0 &&
           memcmp (&a->features, &b->features, sizeof a->features) == 0;
}

static void shape_describe (struct cluster *c, struct shape *s)
{
    s->dim_count = 0;
    for (uint32_t d = 0; d < c->dims; d++) {
        if (s->req.task.v[d] > 0)
            s->dim[s->dim_count++] = (uint8_t)d;
    }
    s->procs = s->req.task.v[RES_PROCS];
    s->shift = (s->procs & (s->procs - 1)) ? UINT8_MAX : (uint8_t)__builtin_ctz ((unsigned)s->procs);
    s->everywhere = s->req.partition == PARTITION_ANY;
    for (uint32_t w = 0; w < FEATURES_MAX / 64; w++)
        s->everywhere = s->everywhere && s->req.features.word[w] == 0;
    s->simple = s->everywhere && !s->req.exclusive && s->req.tasks_per_node == 0 &&
                s->dim_count == 1 && s->dim[0] == RES_PROCS && s->req.task.v[RES_PROCS] == 1;
    s->fit_serial = 0;
}

static uint32_t shape_hash (const struct req *req)
{
    uint64_t hash = req->tasks_per_node * UINT64_C (31) + req->partition * 2 + req->exclusive;

    for (uint32_t d = 0; d < RES_MAX; d++)
        hash = (hash ^ (uint32_t)req->task.v[d]) * UINT64_C (0x100000001B3);
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

/* A place for a new shape: one that nobody uses any more, or a new one. */
static uint32_t shape_place (struct cluster *c)
{
    uint32_t at;

    if (c->shape_unused == 0 || c->shape_unused < c->shape_count / 2) {
        c->shape = grow (c->shape, &c->shape_cap, c->shape_count + 1, sizeof *c->shape);
        memset (&c->shape[c->shape_count], 0, sizeof *c->shape);
        return c->shape_count++;
    }
    for (at = 0; c->shape[at].refs; at++)
        ;
    shape_unlink (c, at);
    c->shape_unused--;
    return at;
}

uint32_t shape_intern (struct cluster *c, const struct req *req, uint32_t access)
{
    uint32_t bucket, at = c->shape_last;

    if (at >= c->shape_count || c->shape[at].access != access ||
        !shape_same (&c->shape[at].req, req)) {
        bucket = (shape_hash (req) + access) % SHAPE_BUCKETS;
        at = c->shape_bucket[bucket];
        while (at != SLOT_NONE &&
               (c->shape[at].access != access || !shape_same (&c->shape[at].req, req)))
            at = c->shape[at].next;
        if (at == SLOT_NONE) {
            at = shape_place (c);
            c->shape[at].req = *req;
            c->shape[at].req.tasks = 0;
            c->shape[at].access = access;
            c->shape[at].bucket = bucket;
            c->shape[at].next = c->shape_bucket[bucket];
            c->shape_bucket[bucket] = at;
            shape_describe (c, &c->shape[at]);
            c->shape_unused++;
        }
        c->shape_last = at;
    }
    if (c->shape[at].refs++ == 0)
        c->shape_unused--;
    return at;
}

void shape_release (struct cluster *c, uint32_t shape)
{
    assert (c->shape[shape].refs > 0);
    if (--c->shape[shape].refs == 0)
        c->shape_unused++;
}

static bool node_has (const struct cluster *c, const struct shape *s, uint32_t node)
{
    const struct node_spec *spec = &c->node[node];

    if (s->req.partition != PARTITION_ANY && s->req.partition != spec->partition)
        return false;
    for (uint32_t w = 0; w < FEATURES_MAX / 64; w++) {
        if (s->req.features.word[w] & ~spec->features.word[w])
            return false;
    }
    return true;
}

struct shape *shape_refresh (struct cluster *c, uint32_t shape)
{
    struct shape *s = &c->shape[shape];

    if (s->fit_serial == c->node_serial)
        return s;
    s->fit_serial = c->node_serial;
    s->fit_max = 0;
    if (!s->everywhere) {
        uint32_t words = bitset_words (c->node_count);
        free (s->nodes.word);
        s->nodes.bit_count = c->node_count;
        s->nodes.word = calloc (words ? words : 1, sizeof *s->nodes.word);
        assert (s->nodes.word && "out of memory");
    }
    for (uint32_t n = 0; n < c->node_count; n++) {
        if (c->node_state[n] != NODE_UP || !node_has (c, s, n))
            continue;
        if (!s->everywhere)
            bitset_set (&s->nodes, n);
        s->fit_max += shape_fit (c, s, n, row (c, c->cap, n));
    }
    return s;
}
