/* softstart: promises keep soft limits (reference a3, "earliest policy start"). A job is promised no
 * moment at which what runs until then and what was promised before it would take its people over a
 * soft limit: when that moment came it could not start, and nobody else had been let in. */
#include "local/core/pass.h"

/* Could the two ever count against the same limit? */
static bool shared (const struct pass *p, const uint32_t a[CRED_KINDS], const uint32_t b[CRED_KINDS])
{
    if (p->policy->system_limits.active_mask)
        return true;
    for (int k = 0; k < CRED_KINDS; k++) {
        if (a[k] != CRED_NONE && a[k] == b[k])
            return true;
    }
    return false;
}

static bool promise_shares (const struct pass *p, uint32_t i, uint32_t slot)
{
    uint32_t other = p->promised_slot[i];

    return (p->c->hot[other].limited & LIMITED_ACTIVE) &&
           shared (p, p->c->lj[other].cred, p->c->lj[slot].cred);
}

static void promise_count (struct pass *p, uint32_t i, bool add)
{
    const struct plan_reservation *r = &p->plan->reservation[i];
    const struct limits_job *lj = &p->c->lj[p->promised_slot[i]];

    if (add)
        limits_active_add (p->c->limits, lj, r->end / US_PER_S);
    else
        limits_active_remove (p->c->limits, lj, r->end / US_PER_S);
}

bool softstart_free (struct pass *p, uint32_t slot)
{
    struct cluster *c = p->c;
    uint32_t *some, count = 0;
    bool within;

    if (p->plain || p->plan->reservation_count == 0 || !(c->hot[slot].limited & LIMITED_ACTIVE))
        return true;
    some = arena_alloc (p->scratch, p->plan->reservation_count * sizeof *some);
    for (uint32_t i = 0; i < p->plan->reservation_count; i++) {
        if (promise_shares (p, i, slot))
            some[count++] = i;
    }
    if (count == 0)
        return true;
    /* All that runs and all that is promised at once: within that, within at any moment. */
    for (uint32_t i = 0; i < count; i++)
        promise_count (p, some[i], true);
    within = limits_active_check (c->limits, &c->lj[slot], LIMIT_SOFT, p->now_s, NULL) == 0;
    for (uint32_t i = 0; i < count; i++)
        promise_count (p, some[i], false);
    return within;
}

/* The next moment after t at which something ends, of a running job or a promise. */
static time_us next_end (const struct pass *p, uint32_t run_at, time_us t)
{
    const struct cluster *c = p->c;
    time_us next = TIME_US_MAX;

    for (; run_at < c->run_count && next == TIME_US_MAX; run_at++) {
        time_us end = effective_end (c, c->run[run_at].end, p->now);
        next = end > t ? end : next;
    }
    for (uint32_t i = 0; i < p->plan->reservation_count; i++) {
        if (p->plan->reservation[i].end > t && p->plan->reservation[i].end < next)
            next = p->plan->reservation[i].end;
    }
    return next;
}

/* Counts what is there at t, and only that; *run_at: so many running jobs have been left out. */
static void state_at (struct pass *p, uint32_t slot, time_us t, uint32_t *run_at, bool *counted)
{
    struct cluster *c = p->c;

    for (; *run_at < c->run_count && effective_end (c, c->run[*run_at].end, p->now) <= t;
         *run_at += 1) {
        uint32_t other = c->run[*run_at].slot;
        if ((c->hot[other].limited & LIMITED_ACTIVE) &&
            shared (p, c->lj[other].cred, c->lj[slot].cred))
            limits_active_remove (c->limits, &c->lj[other], c->run[*run_at].end / US_PER_S);
    }
    for (uint32_t i = 0; i < p->plan->reservation_count; i++) {
        const struct plan_reservation *r = &p->plan->reservation[i];
        bool there = r->start <= t && t < r->end && promise_shares (p, i, slot);
        if (there != counted[i])
            promise_count (p, i, there);
        counted[i] = there;
    }
}

time_us softstart_from (struct pass *p, uint32_t slot, time_us from)
{
    struct cluster *c = p->c;
    bool *counted = arena_array (p->scratch, p->plan->reservation_count + 1, sizeof *counted);
    uint32_t run_at = 0;
    time_us t = from;

    for (; t != TIME_US_MAX; t = next_end (p, run_at, t)) {
        state_at (p, slot, t, &run_at, counted);
        if (limits_active_check (c->limits, &c->lj[slot], LIMIT_SOFT, t / US_PER_S, NULL) == 0)
            break;
    }
    while (run_at > 0) { /* as it was */
        uint32_t other = c->run[--run_at].slot;
        if ((c->hot[other].limited & LIMITED_ACTIVE) &&
            shared (p, c->lj[other].cred, c->lj[slot].cred))
            limits_active_add (c->limits, &c->lj[other], c->run[run_at].end / US_PER_S);
    }
    for (uint32_t i = 0; i < p->plan->reservation_count; i++) {
        if (counted[i])
            promise_count (p, i, false);
    }
    return t;
}
