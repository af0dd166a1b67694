/* occupy: whose jobs are on a node at each moment, where it matters: SINGLEUSER nodes and limits of one
 * user on a node. Lists are short (the jobs of one node); asked at the beginning of a step they hold for
 * all of it, since whoever comes or goes makes a step. */
#include "local/core/timeline_state.h"

void occupants_open (struct timeline *tl)
{
    tl->who = arena_new (tl->arena, struct occupants);
    tl->who->head = arena_array (tl->arena, tl->node_count + 1, sizeof *tl->who->head);
}

void occupant_add (struct timeline *tl, uint32_t node, const struct occupant *one)
{
    struct occupants *who = tl->who;
    uint32_t at;

    if (who->spare) {
        at = who->spare - 1;
        who->spare = who->list[at].next;
    } else {
        if (who->count == who->cap) {
            uint32_t cap = who->cap ? who->cap * 2 : 256;
            struct occupant *more = arena_alloc (tl->arena, cap * sizeof *more);
            if (who->count)
                memcpy (more, who->list, who->count * sizeof *more);
            who->list = more;
            who->cap = cap;
        }
        at = who->count++;
    }
    who->list[at] = *one;
    who->list[at].next = who->head[node];
    who->head[node] = at + 1;
}

static bool same (const struct occupant *a, const struct occupant *b)
{
    return a->owner == b->owner && a->procs == b->procs && a->access == b->access &&
           a->start == b->start && a->end == b->end;
}

/* One that is not there (a part of a reservation given back) is no matter. */
void occupant_remove (struct timeline *tl, uint32_t node, const struct occupant *one)
{
    struct occupants *who = tl->who;

    for (uint32_t *link = &who->head[node]; *link; link = &who->list[*link - 1].next) {
        uint32_t at = *link - 1;
        if (!same (&who->list[at], one))
            continue;
        *link = who->list[at].next;
        who->list[at].next = who->spare;
        who->spare = at + 1;
        return;
    }
}

uint32_t occupants_fit (const struct timeline *tl, const struct shape *s, uint32_t node, time_us t,
                        uint32_t fit)
{
    const struct occupants *who = tl->who;
    const struct node_spec *spec = &tl->c->node[node];
    uint32_t jobs = 0;
    uint64_t procs = 0;

    if (s->needs.owner == 0)
        return fit;
    for (uint32_t at = who->head[node]; at; at = who->list[at - 1].next) {
        const struct occupant *o = &who->list[at - 1];
        if (o->start > t || o->end <= t || o->owner == 0)
            continue;
        if (o->owner == s->needs.owner) {
            jobs++;
            procs += o->procs;
        } else if (o->access == ACCESS_SINGLEUSER || s->needs.access == ACCESS_SINGLEUSER) {
            return 0;
        }
    }
    if (spec->max_jobs_per_user && jobs >= spec->max_jobs_per_user)
        return 0;
    if (spec->max_procs_per_user) {
        uint64_t left = procs < spec->max_procs_per_user ? spec->max_procs_per_user - procs : 0;
        uint64_t most = left / (uint32_t)s->procs;
        fit = most < fit ? (uint32_t)most : fit;
    }
    return fit;
}

bool occupants_begin (const struct timeline *tl, uint32_t node, time_us t)
{
    for (uint32_t at = tl->who->head[node]; at; at = tl->who->list[at - 1].next) {
        if (tl->who->list[at - 1].start == t)
            return true;
    }
    return false;
}
