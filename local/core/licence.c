/* licence: floating licences, which no node has: free ones as steps in time, like a lane. */
#include "local/core/timeline_state.h"

#include <assert.h>

/* --- the cluster's ---------------------------------------------------------------------------- */

int licences_check (const struct cluster *c, const struct licence *list, uint32_t count,
                    struct err *err)
{
    uint64_t seen = 0;

    static_assert (LICENCES_MAX <= 64, "a bit for each kind");
    if (count > LICENCES_MAX)
        return err_set (err, ERR_LIMIT, "%u licences, at most %d", count, LICENCES_MAX);
    for (uint32_t i = 0; i < count; i++) {
        if (list[i].kind >= c->licence_kinds)
            return err_set (err, ERR_INVALID, "licence %u: there are %u kinds", list[i].kind,
                            c->licence_kinds);
        if (list[i].count < 1)
            return err_set (err, ERR_INVALID, "licence %u: %d asked, at least 1", list[i].kind,
                            list[i].count);
        if (seen >> list[i].kind & 1)
            return err_set (err, ERR_INVALID, "licence %u is asked for twice", list[i].kind);
        seen |= UINT64_C (1) << list[i].kind;
    }
    return 0;
}

uint32_t licences_lack (const struct cluster *c, const struct licence *list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (c->licence_free[list[i].kind] < list[i].count)
            return list[i].kind;
    }
    return UINT32_MAX;
}

int licences_left (const struct cluster *c, const struct licence *list, uint32_t count,
                   struct err *err)
{
    uint32_t kind = licences_lack (c, list, count);

    if (kind != UINT32_MAX)
        return err_set (err, ERR_CONFLICT, "licence %u: %d are free", kind, c->licence_free[kind]);
    return 0;
}

struct reason licences_reason (const struct cluster *c, const struct licence *list, uint32_t count)
{
    struct reason why = {.code = REASON_LICENCES, .clears = TIME_US_NONE};

    for (uint32_t i = 0; i < count; i++) {
        uint32_t kind = list[i].kind;
        bool never = c->licence_total[kind] < list[i].count;
        if (why.need && !never && c->licence_free[kind] >= list[i].count)
            continue;
        why.which = (uint8_t)kind;
        why.need = list[i].count;
        why.have = never ? c->licence_total[kind] : c->licence_free[kind];
        why.code = never ? REASON_NEVER_LICENCES : REASON_LICENCES;
        if (never)
            break;
    }
    return why;
}

void licences_apply (struct cluster *c, const struct job *job, int sign)
{
    for (uint32_t i = 0; i < job->spec.licence_count; i++)
        c->licence_free[job->spec.licence[i].kind] += sign * job->spec.licence[i].count;
}

void cluster_licence_get (const struct cluster *c, uint32_t kind, int32_t *total_out,
                          int32_t *free_out)
{
    assert (kind < c->licence_kinds);
    *total_out = c->licence_total[kind];
    *free_out = c->licence_free[kind];
}

/* --- the timeline's ----------------------------------------------------------------------------- */

static uint32_t step_at_time (const struct timeline *tl, time_us t)
{
    uint32_t low = 0, high = tl->licence_count;

    while (high - low > 1) {
        uint32_t mid = low + (high - low) / 2;
        if (tl->licence[mid].t <= t)
            low = mid;
        else
            high = mid;
    }
    return low;
}

static void step_insert (struct timeline *tl, uint32_t at, time_us t, const int32_t *like)
{
    uint32_t kinds = tl->c->licence_kinds;

    if (tl->licence_count == tl->licence_cap) {
        uint32_t cap = tl->licence_cap ? tl->licence_cap * 2 : 64;
        struct licence_step *more = arena_alloc (tl->arena, cap * sizeof *more);
        if (tl->licence_count)
            memcpy (more, tl->licence, tl->licence_count * sizeof *more);
        tl->licence = more;
        tl->licence_cap = cap;
    }
    memmove (tl->licence + at + 1, tl->licence + at,
             (tl->licence_count - at) * sizeof *tl->licence);
    tl->licence[at] =
        (struct licence_step){t, arena_memdup (tl->arena, like, kinds * sizeof *like)};
    tl->licence_count++;
}

static uint32_t licence_split (struct timeline *tl, time_us t)
{
    uint32_t i = step_at_time (tl, t);

    if (tl->licence[i].t >= t)
        return i;
    step_insert (tl, i + 1, t, tl->licence[i].free);
    return i + 1;
}

void licences_take (struct timeline *tl, const struct licence *list, uint32_t count, time_us start,
                    time_us end, int sign)
{
    uint32_t i, stop;

    if (count == 0 || end <= tl->now)
        return;
    i = start <= tl->now ? 0 : licence_split (tl, start);
    stop = end == TIME_US_MAX ? tl->licence_count : licence_split (tl, end);
    for (; i < stop; i++) {
        for (uint32_t k = 0; k < count; k++)
            tl->licence[i].free[list[k].kind] -= sign * list[k].count;
    }
}

/* What is free now; running jobs give theirs back when their nodes come free. */
void licences_open (struct timeline *tl)
{
    const struct cluster *c = tl->c;

    if (c->licence_kinds == 0)
        return;
    step_insert (tl, 0, tl->now, c->licence_free);
    for (uint32_t i = 0; i < c->run_count; i++) {
        const struct job *job = job_at (c, c->run[i].slot);
        time_us end;
        if (job->spec.licence_count == 0)
            continue;
        end = effective_end (c, c->run[i].end, tl->now);
        licences_take (tl, job->spec.licence, job->spec.licence_count, end, TIME_US_MAX, -1);
    }
}

static bool enough (const struct licence_step *step, const struct wanted *w)
{
    for (uint32_t k = 0; k < w->licence_count; k++) {
        if (step->free[w->licence[k].kind] < w->licence[k].count)
            return false;
    }
    return true;
}

bool timeline_licensed (const struct timeline *tl, const struct wanted *w, time_us start,
                        time_us end)
{
    if (w->licence_count == 0)
        return true;
    for (uint32_t i = step_at_time (tl, start); i < tl->licence_count && tl->licence[i].t < end;
         i++) {
        if (!enough (&tl->licence[i], w))
            return false;
    }
    return true;
}

time_us timeline_licences_from (const struct timeline *tl, const struct wanted *w, time_us from,
                                duration_us duration)
{
    time_us at = from;
    uint32_t i;

    if (w->licence_count == 0)
        return from;
    for (i = step_at_time (tl, from); i < tl->licence_count; i++) {
        if (tl->licence[i].t >= time_add (at, duration))
            return at;
        if (!enough (&tl->licence[i], w))
            at = i + 1 < tl->licence_count ? tl->licence[i + 1].t : TIME_US_MAX;
    }
    return at;
}
