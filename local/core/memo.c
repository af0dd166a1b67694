/* memo: reservations that the last pass made and that would come out the same.
 *
 * A pass makes its reservations anew, in order. One would be the same as last time if nothing has
 * changed on the nodes that could give it an earlier start or other nodes. What changed is few
 * nodes: those of jobs that ended before their limits (freed until then), of jobs that started
 * since (taken until theirs), and of promises before it that are no longer there, are new, or are
 * at another moment or place than last time; and the licences that these had. Anything else makes
 * the memo void. The result is the same as from scratch: tests compare them. */
#include "local/core/pass.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void memo_void (struct planner *pl)
{
    pl->memo_valid = false;
    pl->changed_count = 0;
    pl->licences_changed = 0;
}

void memo_free (struct planner *pl)
{
    free (pl->memo);
    free (pl->memo_next);
    free (pl->changed);
    free (pl->changed_at);
}

/* One entry per node and direction, until the latest moment. What changed_at says of a node is true
 * only if the entry it names is the node's. */
static void changed_add (struct planner *pl, struct changed_node one)
{
    uint32_t *at;
    uint32_t known = pl->changed_at_cap, place = one.node * 2 + one.freed;

    if (place >= known) {
        pl->changed_at =
            mem_grow (pl->changed_at, &pl->changed_at_cap, place + 1, sizeof *pl->changed_at);
        memset (pl->changed_at + known, 0, (pl->changed_at_cap - known) * sizeof *pl->changed_at);
    }
    at = &pl->changed_at[place];
    if (*at < pl->changed_count && pl->changed[*at].node == one.node &&
        pl->changed[*at].freed == one.freed) {
        if (one.until > pl->changed[*at].until)
            pl->changed[*at].until = one.until;
        return;
    }
    *at = pl->changed_count;
    pl->changed[pl->changed_count++] = one;
}

void memo_changed (struct planner *pl, const struct allocation *a, time_us until, bool freed)
{
    enum { CHANGED_MAX = 1024 }; /* more is not worth following */

    if (!pl->memo_valid)
        return;
    if (pl->changed_count + a->count > CHANGED_MAX) {
        memo_void (pl);
        return;
    }
    pl->changed = mem_grow (pl->changed, &pl->changed_cap, pl->changed_count + a->count + 1,
                            sizeof *pl->changed);
    for (uint32_t i = 0; i < a->count; i++)
        changed_add (pl, (struct changed_node){a->item[i].node.v, until, freed});
}

void memo_licences (struct planner *pl, const struct licence *list, uint32_t count)
{
    static_assert (LICENCES_MAX <= 64, "one bit each");

    for (uint32_t i = 0; i < count; i++)
        pl->licences_changed |= UINT64_C (1) << list[i].kind;
}

const uint64_t *memo_awake (struct pass *p)
{
    const struct cluster *c = p->c;
    const struct planner *pl = p->planner;
    uint32_t words = bitset_words (c->node_count);
    uint64_t *awake = arena_array (p->scratch, words + 1, sizeof *awake);

    memcpy (awake, c->open.word, words * sizeof *awake);
    for (uint32_t i = 0; i < pl->changed_count; i++)
        awake[pl->changed[i].node >> 6] |= UINT64_C (1) << (pl->changed[i].node & 63);
    return awake;
}

void memo_open (struct pass *p)
{
    const struct cluster *c = p->c;
    struct planner *pl = p->planner;

    pl->memo_next_count = 0;
    pl->fences_moved = false;
    if (p->room != ROOM_TIMELINE || p->late || narrows (c) ||
        (c->run_count && c->run[0].end <= p->now))
        memo_void (pl); /* not followed there; or some job is past its limit */
    p->chain = pl->memo_valid;
}

static bool uses (const struct allocation *a, uint32_t node)
{
    for (uint32_t i = 0; i < a->count; i++) {
        if (a->item[i].node.v == node)
            return true;
    }
    return false;
}

enum outcome { OUTCOME_OPEN, OUTCOME_START_SAME, OUTCOME_SAME };

/* Is a choice made by how much room others have, so that any change may make it another? */
static bool weighs_room (const struct cluster *c, const struct shape *s)
{
    return s->needs.group || c->policy->node_allocation == NODEALLOC_LOCAL ||
           c->policy->task_distribution != TASKDIST_DEFAULT;
}

/* Could the freed node add so many tasks wherever it may, so that there is room earlier? If not,
 * that is known of the next time as well. gain: by place in trail.below. */
static bool gains (const struct memo *m, const uint64_t *gain, uint32_t tasks)
{
    for (uint32_t i = 0; i < m->trail.below_count; i++) {
        if (m->trail.below[i].most >= UINT64_MAX - gain[i] ||
            m->trail.below[i].most + gain[i] >= tasks)
            return true;
    }
    return false;
}

/* What do the changes leave of this promise? What freed nodes could add earlier is added to m. */
static enum outcome judge (struct pass *p, struct memo *m, const struct shape *s,
                           const struct job *job)
{
    struct planner *pl = p->planner;
    duration_us limit = job->spec.walltime_limit;
    uint64_t gain[BELOW_MAX] = {0};
    bool nodes_same = true;

    for (uint32_t i = 0; i < pl->changed_count; i++) {
        const struct changed_node *n = &pl->changed[i];
        if (!shape_suits (p->c, s, n->node))
            continue;
        if (n->freed) {
            time_us before = n->until < m->start ? n->until : m->start;
            uint32_t most = timeline_most (p->tl, s, n->node, before, limit);
            for (uint32_t k = 0; k < m->trail.below_count; k++)
                gain[k] += m->trail.below[k].from < before ? most : 0;
        }
        if (n->until <= m->start || !nodes_same)
            continue;
        nodes_same = !uses (&job->reserved, n->node) && !weighs_room (p->c, s) &&
                     !timeline_preferred (p->tl, s, n->node, m->start, limit, &m->trail);
    }
    if (gains (m, gain, job->spec.req[0].tasks))
        return OUTCOME_OPEN;
    for (uint32_t k = 0; k < m->trail.below_count; k++)
        m->trail.below[k].most += gain[k];
    return nodes_same ? OUTCOME_SAME : OUTCOME_START_SAME;
}

static void note (struct pass *p, const struct memo *m)
{
    struct planner *pl = p->planner;

    pl->memo_next = mem_grow (pl->memo_next, &pl->memo_next_cap, pl->memo_next_count + 1,
                              sizeof *pl->memo_next);
    pl->memo_next[pl->memo_next_count++] = *m;
}

/* The job has its old start on partly other nodes: these have changed for those behind it. False:
 * too many to follow. */
static bool nodes_differ (struct pass *p, const struct job *job, const struct allocation *a,
                          time_us end)
{
    struct planner *pl = p->planner;
    int64_t *tasks = arena_array (p->scratch, p->c->node_count + 1, sizeof *tasks);
    uint32_t differ = 0;

    for (uint32_t i = 0; i < job->reserved.count; i++)
        tasks[job->reserved.item[i].node.v] += job->reserved.item[i].tasks;
    for (uint32_t i = 0; i < a->count; i++)
        tasks[a->item[i].node.v] -= a->item[i].tasks;
    for (uint32_t pass = 0; pass < 2; pass++) {
        const struct allocation *list = pass ? a : &job->reserved;
        for (uint32_t i = 0; i < list->count; i++) {
            struct placement one = list->item[i];
            struct allocation few = {1, &one};
            int64_t more = tasks[one.node.v]; /* > 0: freed; < 0: taken */
            if (more == 0 || (more > 0) != (pass == 0))
                continue;
            if (++differ > 128)
                return false;
            memo_changed (pl, &few, end, more > 0);
        }
    }
    return pl->memo_valid;
}

/* What a node is worth is a matter of itself alone, and what frees it is only what it has. */
static bool memo_follows (const struct cluster *c)
{
    return !c->sharing && !c->measured && c->policy->node_allocation != NODEALLOC_CONTIGUOUS &&
           !(c->policy->node_allocation == NODEALLOC_PRIORITY && c->worth_moves);
}

static bool licences_same (const struct planner *pl, const struct job *job)
{
    for (uint32_t i = 0; i < job->spec.licence_count; i++) {
        if (pl->licences_changed >> job->spec.licence[i].kind & 1)
            return false;
    }
    return true;
}

/* The last pass promised this, and it is not promised in its turn now. */
static bool dropped (struct pass *p, const struct memo *m)
{
    uint32_t slot = map_find (&p->c->map, m->job.v);
    const struct job *job = slot == SLOT_NONE ? NULL : job_at (p->c, slot);

    if (job == NULL || job->reserved_start != m->start)
        return false;
    timeline_wake (p->tl);
    memo_changed (p->planner, &job->reserved, time_add (m->start, job->spec.walltime_limit), true);
    memo_licences (p->planner, job->spec.licence, job->spec.licence_count);
    return p->planner->memo_valid;
}

/* Looks for the job in what is left of the last pass's list. Those that stood before it are dropped
 * here: they started, or come later. */
static void seek (struct pass *p, const struct job *job)
{
    enum { AHEAD_MOST = 64 };
    const struct planner *pl = p->planner;
    uint32_t at = p->memo_at;

    p->memo = NULL;
    p->chain = p->chain && pl->memo_valid && !pl->fences_moved;
    while (p->chain && at < pl->memo_count && at < p->memo_at + AHEAD_MOST &&
           pl->memo[at].job.v != job->spec.id.v)
        at++;
    if (!p->chain || at == pl->memo_count || at == p->memo_at + AHEAD_MOST)
        return;
    for (; p->memo_at < at && p->chain; p->memo_at++)
        p->chain = dropped (p, &pl->memo[p->memo_at]);
    p->memo_at = at + 1;
    if (p->chain && pl->memo[at].start == job->reserved_start)
        p->memo = &pl->memo[at];
    else
        p->chain = false;
}

/* Soft limits still keep it from each earlier moment with room, and they allow the one that it had.
 */
static bool detours_same (struct pass *p, uint32_t slot, const struct memo *m)
{
    for (uint32_t i = 0; i < m->detours; i++) {
        if (softstart_from (p, slot, m->detour[i].start) < m->detour[i].from)
            return false;
    }
    return softstart_from (p, slot, m->start) == m->start;
}

/* Nodes at the old start: mostly the old ones, and some of those that changed. */
static bool choose_again (struct pass *p, const struct job *job, const struct memo *m,
                          struct allocation *nodes)
{
    const struct planner *pl = p->planner;
    struct wanted w = wanted_job (job);
    struct bitset few = {
        p->c->node_count,
        arena_array (p->scratch, bitset_words (p->c->node_count) + 1, sizeof *few.word)};

    for (uint32_t i = 0; i < job->reserved.count; i++)
        bitset_set (&few, job->reserved.item[i].node.v);
    for (uint32_t i = 0; i < pl->changed_count; i++)
        bitset_set (&few, pl->changed[i].node);
    *timeline_trail (p->tl) = m->trail;
    return timeline_choose_again (p->tl, p->arena, &w, m->start, job->spec.walltime_limit, &few,
                                  nodes) ||
           timeline_choose (p->tl, p->arena, &w, m->start, job->spec.walltime_limit, CHOICE_POLICY,
                            nodes);
}

/* What was freed since can only help, and what was started respected all promises; what was
 * promised before it may be on other nodes now, though. */
time_us memo_bound (const struct pass *p)
{
    return p->memo ? p->memo->start : TIME_US_MAX;
}

bool memo_reuse (struct pass *p, uint32_t slot)
{
    struct job *job = job_at (p->c, slot);
    const struct shape *s = &p->c->shape[job->shape[0]];
    struct allocation nodes = job->reserved;
    struct wanted w = wanted_job (job);
    struct memo m;
    enum outcome outcome;
    time_us end;

    seek (p, job);
    if (p->memo == NULL || job->spec.req_count != 1 || !licences_same (p->planner, job) ||
        !memo_follows (p->c))
        return false;
    m = *p->memo;
    if (m.start <= p->now)
        return false;
    outcome = judge (p, &m, s, job);
    if (outcome == OUTCOME_OPEN || !detours_same (p, slot, &m))
        return false;
    end = time_add (m.start, job->spec.walltime_limit);
    if (outcome == OUTCOME_START_SAME) {
        timeline_wake (p->tl);
        if (!choose_again (p, job, &m, &nodes))
            return false;
        m.trail.worst_key = timeline_trail (p->tl)->worst_key;
        m.trail.worst_node = timeline_trail (p->tl)->worst_node;
        m.trail.worst_affinity = timeline_trail (p->tl)->worst_affinity;
        p->chain = nodes_differ (p, job, &nodes, end);
    }
    timeline_take (p->tl, &w, &nodes, m.start, end, 1);
    p->planner->kept.same += outcome == OUTCOME_SAME;
    p->planner->kept.moved += outcome == OUTCOME_START_SAME;
    note (p, &m);
    pass_reserved (p, slot, m.start, &nodes);
    return true;
}

/* It has a promise that it had not, or at another moment. */
static bool moved (struct pass *p, const struct job *job, time_us start, const struct allocation *a)
{
    struct planner *pl = p->planner;

    if (p->memo)
        (void)dropped (p, p->memo);
    memo_changed (pl, a, time_add (start, job->spec.walltime_limit), false);
    memo_licences (pl, job->spec.licence, job->spec.licence_count);
    return p->chain && pl->memo_valid;
}

void memo_lost (struct pass *p)
{
    if (p->memo)
        p->chain = dropped (p, p->memo) && p->chain;
}

void memo_made (struct pass *p, uint32_t slot, time_us start, const struct allocation *a)
{
    const struct job *job = job_at (p->c, slot);
    struct memo m = {.job = job->spec.id, .start = start, .trail = *timeline_trail (p->tl)};

    m.detours = p->detours;
    if (m.detours < DETOURS_MAX)
        memcpy (m.detour, p->detour, m.detours * sizeof *m.detour);
    if (job->spec.req_count != 1 || m.detours >= DETOURS_MAX)
        m.trail.below[0].most = UINT64_MAX;
    p->planner->kept.made++;
    if (p->memo && start == p->memo->start)
        p->chain = nodes_differ (p, job, a, time_add (start, job->spec.walltime_limit));
    else
        p->chain = moved (p, job, start, a);
    note (p, &m);
}

void memo_keep (struct planner *pl)
{
    struct memo *list = pl->memo;
    uint32_t cap = pl->memo_cap;

    pl->memo = pl->memo_next;
    pl->memo_cap = pl->memo_next_cap;
    pl->memo_count = pl->memo_next_count;
    pl->memo_next = list;
    pl->memo_next_cap = cap;
    pl->changed_count = 0;
    pl->licences_changed = 0;
    pl->memo_valid = true;
}
