/* softstart: promises keep soft limits (Maui's "earliest policy start"). A job is promised no
 * moment at which what runs until then and what was promised before it would take its people over a
 * soft limit: when that moment came it could not start, and nobody else had been let in. */
#include "local/core/pass.h"

struct moment {
    struct pass *p;
    const struct limits_job *job;
    struct limits_suppose suppose;
    uint32_t run_at; /* running jobs before this have ended by then */
    bool *there;     /* promises that have begun by then and not ended */
};

static time_us run_end (const struct pass *p, uint32_t i)
{
    return effective_end (p->c, p->c->run[i].end, p->now);
}

static bool within (struct moment *m, time_us t, struct limits_violation *v)
{
    return limits_active_check (m->p->c->limits, m->job, LIMIT_SOFT, t / US_PER_S, v) == 0;
}

/* What jobs of one credential give back of one sum until they have ended. */
struct relief {
    enum cred_kind kind;
    enum limit_kind limit;
    int64_t less;
};

/* Of what runs, do jobs of the credential whose limit is broken that will have ended by t give back
 * enough? */
static bool relief_find (const struct moment *m, time_us t, const struct limits_violation *broken,
                         struct relief *out)
{
    const struct cluster *c = m->p->c;
    int64_t need = broken->usage + broken->request - broken->value, less = 0;
    uint32_t kind = broken->object;

    if (kind >= CRED_KINDS || broken->cross || broken->limit == LIMIT_PS ||
        broken->limit == LIMIT_WC || broken->limit == LIMIT_MINPROC)
        return false;
    for (uint32_t i = 0; i < c->run_count && less < need && run_end (m->p, i) <= t; i++) {
        const struct limits_job *lj = &c->lj[c->run[i].slot];
        if (lj->cred[kind] == m->job->cred[kind])
            less += limits_request (lj, broken->limit);
    }
    *out = (struct relief){(enum cred_kind)kind, broken->limit, less};
    return less >= need;
}

/* Would that be enough for one broken limit after the other? m has the promises of that moment. A
 * quick yes, or not known. */
static bool relieved (struct moment *m, time_us t, struct limits_violation *broken)
{
    enum { MOST = 2 * CRED_KINDS };
    struct relief relief[MOST];
    uint32_t count = 0;
    bool good = false, more = true;

    while (!good && more && count < MOST) {
        more = relief_find (m, t, broken, &relief[count]);
        for (uint32_t i = 0; i < count; i++)
            more = more &&
                   (relief[i].kind != relief[count].kind || relief[i].limit != relief[count].limit);
        if (!more)
            break;
        limits_suppose_less (&m->suppose, relief[count].kind, relief[count].limit,
                             relief[count].less);
        count++;
        good = within (m, m->p->now, broken);
    }
    while (count-- > 0)
        limits_suppose_less (&m->suppose, relief[count].kind, relief[count].limit,
                             -relief[count].less);
    return good;
}

/* Goes on to t. True: something changed that the job counts against. */
static bool promises_go (struct moment *m, time_us t)
{
    const struct pass *p = m->p;
    bool changed = false;

    for (uint32_t i = 0; i < p->plan->reservation_count; i++) {
        const struct plan_reservation *r = &p->plan->reservation[i];
        bool there = r->start <= t && t < r->end;
        if (there != m->there[i])
            changed |= limits_suppose (&m->suppose, &p->c->lj[p->promised_slot[i]],
                                       r->end / US_PER_S, there ? 1 : -1);
        m->there[i] = there;
    }
    return changed;
}

static bool running_go (struct moment *m, time_us t)
{
    const struct cluster *c = m->p->c;
    bool changed = false;

    for (; m->run_at < c->run_count && run_end (m->p, m->run_at) <= t; m->run_at++)
        changed |= limits_suppose (&m->suppose, &c->lj[c->run[m->run_at].slot],
                                   c->run[m->run_at].end / US_PER_S, -1);
    return changed;
}

/* The next moment after t at which something ends, of a running job or a promise. */
static time_us next_end (const struct moment *m, time_us t)
{
    const struct pass *p = m->p;
    time_us next = m->run_at < p->c->run_count ? run_end (p, m->run_at) : TIME_US_MAX;

    for (uint32_t i = 0; i < p->plan->reservation_count; i++) {
        if (p->plan->reservation[i].end > t && p->plan->reservation[i].end < next)
            next = p->plan->reservation[i].end;
    }
    return next;
}

static time_us search (struct pass *p, uint32_t slot, time_us from)
{
    struct moment m;
    time_us t = from;
    struct limits_violation broken;
    bool good;

    m.p = p;
    m.job = &p->c->lj[slot];
    m.run_at = 0;
    m.there = arena_array (p->scratch, p->plan->reservation_count, sizeof *m.there);
    limits_suppose_open (p->c->limits, &m.suppose, m.job);
    /* If it is good even though nothing that runs now has ended, the rest need not be looked at. */
    good = !promises_go (&m, t) || within (&m, p->now, &broken) || relieved (&m, t, &broken);
    if (!good) {
        (void)running_go (&m, t);
        good = within (&m, t, NULL);
    }
    while (!good && (t = next_end (&m, t)) != TIME_US_MAX) {
        bool changed = running_go (&m, t);
        good = (promises_go (&m, t) || changed) && within (&m, t, NULL);
    }
    limits_suppose_close (&m.suppose);
    return t;
}

time_us softstart_from (struct pass *p, uint32_t slot, time_us from)
{
    bool bound =
        !p->plain && p->plan->reservation_count > 0 && (p->c->hot[slot].limited & LIMITED_ACTIVE);

    return bound ? search (p, slot, from) : from;
}
