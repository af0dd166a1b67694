/* The model: what a user's signature bounds, of one hold or charge and of all that a signed job has had. */
#include "tests/prop/bank/model_i.h"

#include <string.h>

static long long least (long long a, long long b)
{
    return a < b ? a : b;
}

/* Processors: of the tasks; of whole nodes as many as the job accepts, else as the nodes that it needs have. */
long long model_most_procs (const struct model *m, const struct model_signature *s, int site)
{
    long long each = m->given[site].procs, most = s->procs;
    if (s->procs_max)
        return s->procs_max > most ? s->procs_max : most;
    if (!each)
        return most;
    long long whole = s->nodes * each, room = each;
    if (!s->nodes) {
        while (room > 0 && room % s->task)
            room--; /* what tasks fill of a node */
        room = room ? room : each;
        for (long long left = s->procs; left > 0; left -= room)
            whole += each;
    }
    return whole > most ? whole : most;
}

/* Thousandths of processor equivalents. */
long long model_most_pe (const struct model *m, int site, long long procs, long long memory)
{
    long long pe = procs * 1000, one = m->given[site].memory;
    long long by_memory = one ? (memory * 1000 + one - 1) / one : 0;
    return by_memory > pe ? by_memory : pe;
}

bool model_beyond (const struct model *m, const struct model_ask *ask)
{
    const struct model_signature *s = &ask->signature;
    return s->is && (ask->procs > model_most_procs (m, s, ask->site) || ask->seconds > s->seconds);
}

static void begin_at (struct model_ask *own, long long at)
{
    if (own->start >= at)
        return;
    own->seconds -= least (at - own->start, own->seconds);
    own->start = at;
}

/* What of a charge was signed for; whether that is less. */
bool model_own (const struct model *m, const struct model_ask *ask, const struct model_hold *h,
                struct model_ask *own)
{
    const struct model_signature *s = h ? &h->signature : &ask->signature;
    *own = *ask;
    /* Draws are all ahead of the bank's clock or not at all. */
    if (ask->start >= m->now + ask->tolerance)
        own->seconds = 0;
    if (s->is) {
        long long procs = h ? h->procs : model_most_procs (m, s, ask->site);
        long long pe = !h      ? model_most_pe (m, ask->site, procs, ask->memory)
                       : h->pe ? h->pe
                               : h->procs * 1000;
        if (h && ask->named)
            begin_at (own, h->start - ask->tolerance);
        if (!h)
            begin_at (own, s->created - ask->tolerance);
        own->seconds =
            least (own->seconds, (h ? h->seconds : s->seconds) + m->given[ask->site].overrun);
        own->procs = least (own->procs, procs);
        own->pe = least (own->pe, pe);
        own->cpu = least (own->cpu, own->procs * own->seconds);
    }
    return own->seconds != ask->seconds || own->procs != ask->procs || own->start != ask->start ||
           own->cpu != ask->cpu || own->pe != ask->pe;
}

/* ---- all of a signed job ---- */

static bool of_job (const struct model_signature *a, int user, const struct model_signature *b,
                    int other)
{
    return a->is && user == other && a->uuid == b->uuid;
}

/* What a hold keeps of it, or what was charged if that is more. but: a run that is left out. */
long long model_spent (const struct model *m, const struct model_signature *s, int user,
                       const struct model_ask *but)
{
    long long sum = 0;
    for (int i = 0; i < m->usages; i++) { /* runs, held for or not */
        const struct model_usage *u = &m->usage[i];
        bool mine = of_job (&u->signature, u->user, s, user);
        for (int k = 0; k < m->holds && !mine; k++)
            mine = of_job (&m->hold[k].signature, m->hold[k].user, s, user) &&
                   m->hold[k].site == u->site && m->hold[k].job == u->job &&
                   m->hold[k].incarnation == u->incarnation;
        if (mine && !(but && u->site == but->site && u->job == but->job &&
                      u->incarnation == but->incarnation))
            sum += u->total - u->disputed;
    }
    for (int i = 0; i < m->holds; i++) { /* and what they may still come to */
        const struct model_hold *h = &m->hold[i];
        if (!h->open || !of_job (&h->signature, h->user, s, user) ||
            (but && h->site == but->site && h->job == but->job &&
             h->incarnation == but->incarnation))
            continue;
        int u = model_usage_of (m, h->site, h->job, h->incarnation);
        long long paid = u < 0 ? 0 : m->usage[u].total - m->usage[u].disputed;
        sum += h->amount > paid ? h->amount - paid : 0;
    }
    return sum;
}

static const struct model_signature *any (const struct model *m, const struct model_signature *s,
                                          int user, bool held)
{
    for (int i = 0; i < m->holds; i++)
        if (of_job (&m->hold[i].signature, m->hold[i].user, s, user))
            return &m->hold[i].signature;
    for (int i = 0; i < m->usages && !held; i++)
        if (of_job (&m->usage[i].signature, m->usage[i].user, s, user))
            return &m->usage[i].signature;
    return NULL;
}

/* A signed job is paid for as what it first was, and then also after its expiry. */
static const char *replayed (const struct model *m, const struct model_signature *s, int user,
                             long long at)
{
    const struct model_signature *known = any (m, s, user, false), *first = any (m, s, user, true);
    if (!known)
        return s->expires && s->expires <= at ? "JobExpired" : NULL;
    if (known->content != s->content)
        return "Replayed";
    if (!first)
        return NULL;
    bool other_job = first->grid_job != s->grid_job && !s->by_group;
    bool other_meta = first->meta && s->meta && first->meta != s->meta;
    return other_job || other_meta ? "Replayed" : NULL;
}

struct had {
    int well, starts;
    long long used;
};

/* Once for each run, however often it was held for: its last row counts. */
static void had_run (const struct model *m, const struct model_ask *ask, int site, long long job,
                     long long incarnation, struct had *had)
{
    int u = model_usage_of (m, site, job, incarnation);
    bool same = site == ask->site && job == ask->job;
    if (u < 0 || (same && incarnation == ask->incarnation))
        return;
    had->well += m->usage[u].well;
    had->starts += same;
    if (!same && m->usage[u].final)
        had->used += m->usage[u].procs * (m->usage[u].end - m->usage[u].start);
}

/* What one signature pays for: a part at so many places at a time, run well so often, started again so often by its
 * site, with the time of one run more. */
static const char *too_many (const struct model *m, const struct model_ask *all, int at, int user)
{
    const struct model_ask *ask = &all[at];
    const struct model_signature *s = &ask->signature;
    struct had had = {0};
    int live = 0;
    for (int i = 0; i < m->holds; i++) {
        const struct model_hold *h = &m->hold[i];
        if (!of_job (&h->signature, h->user, s, user) || h->signature.part != s->part)
            continue;
        bool later = false, same = h->site == ask->site && h->job == ask->job;
        for (int k = i + 1; k < m->holds; k++)
            later |= of_job (&m->hold[k].signature, m->hold[k].user, s, user) &&
                     m->hold[k].site == h->site && m->hold[k].job == h->job &&
                     m->hold[k].incarnation == h->incarnation;
        if (!later)
            had_run (m, ask, h->site, h->job, h->incarnation, &had);
        live += !same && h->open && h->start + h->seconds + 600 >= m->now;
    }
    for (int i = 0; i < m->usages; i++) {
        const struct model_usage *u = &m->usage[i];
        bool held = false;
        if (!of_job (&u->signature, u->user, s, user) || u->signature.part != s->part)
            continue;
        for (int k = 0; k < m->holds; k++)
            held |= of_job (&m->hold[k].signature, m->hold[k].user, s, user) &&
                    m->hold[k].site == u->site && m->hold[k].job == u->job &&
                    m->hold[k].incarnation == u->incarnation;
        if (!held)
            had_run (m, ask, u->site, u->job, u->incarnation, &had);
    }
    for (int i = 0; i < at; i++)
        live += all[i].signature.part == s->part;
    if (live >= s->live_max)
        return "HeldElsewhere";
    bool spent = had.used >= ask->procs * ask->seconds * (s->runs_max + 1);
    return had.well >= s->runs_max || spent || had.starts > s->restarts ? "RunsUsedUp" : NULL;
}

const char *model_unsigned (const struct model *m, const struct model_ask *all, int at, int user,
                            long long when)
{
    const char *why = replayed (m, &all[at].signature, user, when);
    return why ? why : too_many (m, all, at, user);
}
