/* instead: a co-allocated part that is to come instead of another of its job (the group goes to an earlier slot) may lie where
 * that one lies: only one of the two is ever used, so together they take, on each node and at each moment, what the larger
 * takes. timeline_make and the check of a new reservation call it. Nothing is kept: once one half is released the other is a
 * reservation like any other.
 *
 * Several parts may come instead of several. What one of them has found covered by a part is not found by the next. */
#include <string.h>

#include "local/core/timeline_state.h"

struct cover {
    const struct rsv *rsv;
    uint32_t *tasks; /* of each item of its allocation: not used yet */
    int32_t *licences;
};

/* Those that may be given up; spec has a free hand on them. */
static uint32_t instead_covers (struct timeline *tl, uint64_t whose, struct cover **out)
{
    const struct cluster *c = tl->c;
    uint32_t count = 0;

    *out = arena_array (tl->arena, c->rsv_count + 1, sizeof **out);
    for (uint32_t i = 0; i < c->rsv_count; i++) {
        const struct rsv *rsv = c->rsv[i];
        struct cover *cover = *out + count;
        if (rsv->spec.kind == RSV_ADMIN || rsv->spec.whose != whose || rsv->spec.end <= tl->now)
            continue;
        cover->rsv = rsv;
        cover->tasks = arena_array (tl->arena, rsv->allocation.count + 1, sizeof *cover->tasks);
        for (uint32_t k = 0; k < rsv->allocation.count; k++)
            cover->tasks[k] = rsv->allocation.item[k].tasks;
        cover->licences =
            arena_array (tl->arena, rsv->spec.licence_count + 1, sizeof *cover->licences);
        for (uint32_t k = 0; k < rsv->spec.licence_count; k++)
            cover->licences[k] = rsv->spec.licence[k].count;
        count++;
    }
    return count;
}

static bool instead_alike (const struct req *a, const struct req *b)
{
    return a->exclusive == b->exclusive && memcmp (&a->task, &b->task, sizeof a->task) == 0;
}

/* What the reservation and this cover both have, taken off the cover and off what is left of the reservation. */
static struct allocation instead_common (struct timeline *tl, struct cover *cover,
                                         const struct rsv_spec *spec, const struct allocation *a,
                                         uint32_t *left)
{
    const struct allocation *theirs = &cover->rsv->allocation;
    struct allocation common = {.item = arena_array (tl->arena, a->count + 1, sizeof *common.item)};
    uint32_t *head = arena_array (tl->arena, tl->node_count + 1, sizeof *head);
    uint32_t *next = arena_array (tl->arena, theirs->count + 1, sizeof *next);

    for (uint32_t k = theirs->count; k-- > 0;) { /* 1 + the first item of each node */
        next[k] = head[theirs->item[k].node.v];
        head[theirs->item[k].node.v] = k + 1;
    }
    for (uint32_t i = 0; i < a->count; i++) {
        const struct req *req = &spec->req[a->item[i].req];
        uint32_t found = 0;
        for (uint32_t k = head[a->item[i].node.v]; k && left[i]; k = next[k - 1]) {
            uint32_t *have = &cover->tasks[k - 1], both = *have < left[i] ? *have : left[i];
            if (!instead_alike (req, &cover->rsv->spec.req[theirs->item[k - 1].req]))
                continue;
            *have -= both;
            left[i] -= both;
            found += both;
        }
        if (found) {
            common.item[common.count] = a->item[i];
            common.item[common.count++].tasks = found;
        }
    }
    return common;
}

static uint32_t instead_licences (struct cover *cover, const struct rsv_spec *spec, int32_t *left,
                                  struct licence *common)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < spec->licence_count; i++)
        for (uint32_t k = 0; k < cover->rsv->spec.licence_count; k++) {
            int32_t both = cover->licences[k] < left[i] ? cover->licences[k] : left[i];
            if (cover->rsv->spec.licence[k].kind != spec->licence[i].kind || both <= 0)
                continue;
            cover->licences[k] -= both;
            left[i] -= both;
            common[count++] = (struct licence){spec->licence[i].kind, both};
        }
    return count;
}

/* Gives the timeline back what the reservation need not take of its own. spare false: only takes it off the covers. */
static void instead_one (struct timeline *tl, struct cover *cover, uint32_t count,
                         const struct rsv_spec *spec, const struct allocation *a, bool spare)
{
    uint32_t *left = arena_array (tl->arena, a->count + 1, sizeof *left);
    int32_t *licences = arena_array (tl->arena, spec->licence_count + 1, sizeof *licences);

    for (uint32_t i = 0; i < a->count; i++)
        left[i] = a->item[i].tasks;
    for (uint32_t i = 0; i < spec->licence_count; i++)
        licences[i] = spec->licence[i].count;
    for (uint32_t k = 0; k < count; k++) {
        const struct rsv_spec *theirs = &cover[k].rsv->spec;
        struct rsv_spec shared = *spec;
        struct licence *common = arena_array (
            tl->arena, (size_t)spec->licence_count * theirs->licence_count + 1, sizeof *common);
        shared.start = spec->start > theirs->start ? spec->start : theirs->start;
        shared.end = spec->end < theirs->end ? spec->end : theirs->end;
        if (shared.start >= shared.end)
            continue;
        struct allocation both = instead_common (tl, &cover[k], spec, a, left);
        shared.licence_count = instead_licences (&cover[k], spec, licences, common);
        shared.licence = common;
        if (spare)
            rsv_take (tl, &shared, &both, -1);
    }
}

/* Where nodes are shared by who is there, a part lies beside the other. */
static bool instead_may (const struct cluster *c, const struct rsv_spec *spec)
{
    return spec->kind != RSV_ADMIN && spec->instead && !c->sharing;
}

/* Those before `upto` that come instead of the same; then this one. */
static void instead_after (struct timeline *tl, uint32_t upto, const struct rsv_spec *spec,
                           const struct allocation *a)
{
    const struct cluster *c = tl->c;
    struct cover *cover;
    uint32_t count = instead_covers (tl, spec->instead, &cover);

    for (uint32_t i = 0; i < upto && count; i++) {
        const struct rsv *other = c->rsv[i];
        if (other->spec.kind != RSV_ADMIN && other->spec.instead == spec->instead &&
            other->spec.end > tl->now)
            instead_one (tl, cover, count, &other->spec, &other->allocation, false);
    }
    if (count)
        instead_one (tl, cover, count, spec, a, true);
}

void instead_enter (struct timeline *tl, uint64_t without)
{
    const struct cluster *c = tl->c;

    for (uint32_t i = 0; i < c->rsv_count; i++) {
        const struct rsv *rsv = c->rsv[i];
        if (instead_may (c, &rsv->spec) && rsv->spec.instead != without && rsv->spec.end > tl->now)
            instead_after (tl, i, &rsv->spec, &rsv->allocation);
    }
}

void instead_spare (struct timeline *tl, const struct rsv_spec *spec, const struct allocation *a)
{
    if (instead_may (tl->c, spec))
        instead_after (tl, tl->c->rsv_count, spec, a);
}
