/* The model: charges and releases. */
#include "tests/prop/bank/model_i.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* An outbox's number: the highest up to which all have arrived. 0 is none. */
static void arrived (struct model *m, int site, unsigned long long sequence)
{
    if (sequence <= m->acked[site])
        return;
    assert (sequence - m->acked[site] <= M_AHEAD);
    m->ahead[site][sequence - m->acked[site] - 1] = true;
    while (m->ahead[site][0]) {
        memmove (m->ahead[site], m->ahead[site] + 1, M_AHEAD - 1);
        m->ahead[site][M_AHEAD - 1] = false;
        m->acked[site]++;
    }
}

static void leg (struct model *m, int alloc, long long amount, bool overrun)
{
    struct model_charge *c = &m->charge[m->charges];
    if (amount <= 0)
        return;
    assert (m->charges < M_CHARGES - 1 && c->legs < M_LEGS);
    c->leg[c->legs].alloc = alloc;
    c->leg[c->legs].amount = amount;
    c->leg[c->legs].refunded = 0;
    c->leg[c->legs++].overrun = overrun;
}

static void take (struct model *m, struct model_alloc *a, int site, long long amount, bool overrun)
{
    leg (m, (int)(a - m->alloc), amount, overrun);
    a->posted -= amount;
    a->settled += amount;
    m->earned[site] += amount;
}

static long long close_hold (struct model *m, struct model_hold *h)
{
    long long released = 0;
    for (int i = 0; h->open && i < h->legs; i++) {
        m->alloc[h->alloc[i]].held -= h->kept[i];
        released += h->kept[i];
        model_repay (m, &m->alloc[h->alloc[i]], h->kept[i]);
        h->kept[i] = 0;
        model_ended (m, &m->alloc[h->alloc[i]]);
    }
    h->open = false;
    return released;
}

/* Takes x from wherever rule C3 says. */
static void pay (struct model *m, struct model_hold *h, int account, const struct model_funding *f,
                 long long x)
{
    for (int i = 0; h && i < h->legs; i++) {
        long long part = h->kept[i] < x ? h->kept[i] : x;
        h->kept[i] -= part;
        m->alloc[h->alloc[i]].held -= part;
        take (m, &m->alloc[h->alloc[i]], f->site, part, false);
        x -= part;
    }
    int mine[M_ALLOCS], k = account < 0 ? 0 : model_sorted (m, account, mine), first = -1;
    bool closed = account >= 0 && m->closed[account];
    for (int i = 0; i < k; i++) {
        struct model_alloc *a = &m->alloc[mine[i]];
        if (!model_usable (m, a, f))
            continue;
        first = first < 0 ? mine[i] : first;
        long long have = a->posted - a->held, part = have <= 0 || closed ? 0 : have < x ? have : x;
        take (m, a, f->site, part, false);
        x -= part;
    }
    for (int i = 0; i < k; i++) { /* then on credit */
        struct model_alloc *a = &m->alloc[mine[i]];
        long long room = model_room (a);
        long long part = !model_usable (m, a, f) || room <= 0 || closed ? 0 : room < x ? room : x;
        take (m, a, f->site, part, false);
        x -= part;
    }
    if (first < 0 && k > 0)
        first = mine[k - 1];
    if (h && h->legs)
        first = h->alloc[0];
    if (x > 0 && first >= 0) {
        take (m, &m->alloc[first], f->site, x, true);
    } else if (x > 0) {
        leg (m, -1, x, false);
        m->suspense += x;
        m->earned[f->site] += x;
    }
}

/* Nobody's: it waits, and a person looks at it. */
static void dispute (struct model *m, const struct model_ask *ask, long long x)
{
    leg (m, -1, x, false);
    m->suspense += x;
    m->earned[ask->site] += x;
    assert (m->rows < M_ROWS - 1);
    m->row[m->rows++] = (struct model_row){.site = ask->site,
                                           .kind = M_KINDS,
                                           .job = ask->job,
                                           .amount = x,
                                           .since = m->now,
                                           .state = M_OPEN};
}

/* Of a charge: what it costs, and what of it is the user's. */
struct tariff {
    long long total, own;
    bool beyond;        /* it was not signed for here at all */
    bool known, quoted; /* a card has all for it; it is a quote's */
};

static struct tariff tariff_of (const struct model *m, const struct model_ask *ask,
                                const struct model_hold *h, int user, bool final)
{
    struct model_ask own;
    struct model_terms t = model_plain (), had;
    struct model_ask job = *ask;
    struct tariff out = {.known = true};
    const char *why;
    int version;
    if (h) {
        t = model_hold_terms (m, h, false);
        job.pe = ask->pe ? ask->pe : h->pe;
        had = t;
        if ((ask->nodes[0] || ask->nodes[1]) && model_nodes (t.card, ask->nodes, false, &had))
            t = had;
    } else {
        const struct model_card *card = NULL;
        if (ask->quote)
            card = model_card_of (m, ask, user, ask->start, &version, &why);
        out.quoted = card != NULL;
        if (!card)
            card = model_card_at (m, ask->site, ask->start, &version);
        out.known = card && model_terms (card, ask, false, &t);
    }
    out.total = out.own = model_price (m, &t, &job, false);
    out.beyond = !h && ask->signature.is &&
                 (ask->signature.elsewhere || model_unsigned (m, ask, 0, user, ask->start));
    if (out.beyond)
        out.own = 0;
    else if (model_own (m, &job, h, &own))
        out.own = model_price (m, &t, &own, false);
    out.own = out.own < out.total ? out.own : out.total;
    if (t.card && ((t.card->successful_only && !(final && ask->successful)) ||
                   (t.card->measure == M_CPU && !final && ask->cpu == 0)))
        out.total = out.own = 0;
    const struct model_signature *s = h ? &h->signature : &ask->signature;
    if (!out.beyond && s->is && s->cost_max && !(h && out.own <= h->amount)) {
        long long most = s->cost_max - model_spent (m, s, h ? h->user : user, ask);
        most = most < 0 ? 0 : most;
        most = h && most < h->amount ? h->amount : most;
        out.own = out.own < most ? out.own : most;
    }
    return out;
}

/* Who pays for what nothing held; -1: nobody can be named. */
static int unheld_payer (const struct model *m, const struct model_ask *ask, int account,
                         const struct model_funding *f, long long total)
{
    struct model_candidate list[M_ACCOUNTS];
    long long shortfall;
    if (!m->account_is[account] || !model_may_use (m, account, f->user) ||
        (ask->claimed && !m->claims[ask->site]))
        return -1;
    if (model_frozen (m, account, f->user))
        return account;
    int n = model_candidates (m, account, ask->site, list);
    for (int i = 0; i < n; i++)
        if (!model_cannot (m, list[i].account, f, total, &shortfall))
            return list[i].account;
    return account;
}

/* R4. The use ended a quarter of a second after its tick. */
static long long due (const struct model *m, const struct model_ask *ask, long long total)
{
    const struct model_policy *p = &m->policy[ask->site];
    if (!p->on || (p->window && m->now - (ask->start + ask->seconds) > p->window))
        return 0;
    if (p->cap && ask->seconds > p->cap)
        total = (long long)((__int128)total * p->cap / ask->seconds);
    return total >= p->minimum ? total : 0;
}

static void charge_decided (struct model *m, const struct model_ask *ask, long long hold,
                            int account, int user, bool final, char *out)
{
    struct model_hold *h = NULL;
    int site = ask->site;
    long long released = 0, job = ask->job, incarnation = ask->incarnation;
    if (ask->start + ask->seconds - m->now > 86400) {
        sprintf (out, "error -1");
        return;
    }
    if (hold > 0) {
        h = hold <= m->holds ? &m->hold[hold - 1] : NULL;
        if (!h || h->site != site) {
            sprintf (out, "error -2");
            return;
        }
        if (h->job != job || h->incarnation != incarnation) {
            sprintf (out, "error -7");
            return;
        }
    } else {
        int open = model_open_hold_of (m, site, job, incarnation);
        h = open >= 0 ? &m->hold[open] : NULL;
    }
    if (ask->procs < 1) {
        sprintf (out, "error -1");
        return;
    }
    struct tariff t = tariff_of (m, ask, h, user, final);
    int u = model_usage_of (m, site, job, incarnation);
    if (u >= 0 && m->usage[u].final) {
        if (final)
            sprintf (out, "error -7");
        else
            sprintf (out, "charged 0 total %lld released 0 %s", m->usage[u].total,
                     m->usage[u].account < 0 ? "bank:suspense"
                                             : model_account_name (m, m->usage[u].account));
        return;
    }
    struct model_funding f = {h        ? h->user
                              : u >= 0 ? m->usage[u].user
                                       : user,
                              site, h ? h->machine : ask->machine, h ? h->qos : ask->qos,
                              ask->start + ask->seconds};
    int payer = h                      ? h->account
                : u >= 0               ? m->usage[u].account
                : t.known && !t.beyond ? unheld_payer (m, ask, account, &f, t.own)
                                       : -1;
    if (u < 0) {
        u = m->usages++;
        m->usage[u] = (struct model_usage){.site = site,
                                           .account = payer,
                                           .user = f.user,
                                           .qos = f.qos,
                                           .machine = f.machine,
                                           .start = ask->start,
                                           .end = ask->start + ask->seconds,
                                           .job = job,
                                           .incarnation = incarnation};
        if (!h && payer >= 0)
            m->usage[u].signature = ask->signature;
    }
    if (t.quoted)
        model_pin_use (m, ask);
    long long x = t.total > m->usage[u].total ? t.total - m->usage[u].total : 0;
    m->charge[m->charges] =
        (struct model_charge){.site = site, .usage = u, .amount = x, .at = m->now};
    long long paid = m->usage[u].total - m->usage[u].disputed;
    long long own = t.own > paid ? t.own - paid : 0;
    own = own < x ? own : x;
    pay (m, h, payer, &f, own);
    if (x > own)
        dispute (m, ask, x - own);
    m->usage[u].disputed += x - own;
    m->charges++;
    m->usage[u].total += x;
    m->usage[u].procs = ask->procs;
    if (ask->start + ask->seconds > m->usage[u].end)
        m->usage[u].end = ask->start + ask->seconds;
    m->usage[u].final = final;
    m->usage[u].well = final && ask->successful;
    m->usage[u].due = final && ask->site_failed ? due (m, ask, m->usage[u].total) : 0;
    if (final && h)
        released = close_hold (m, h);
    struct model_charge *c = &m->charge[m->charges - 1];
    for (int i = 0; i < c->legs && payer >= 0 && m->closed[payer]; i++)
        if (c->leg[i].alloc >= 0)
            model_ended (m, &m->alloc[c->leg[i].alloc]);
    sprintf (out, "charged %lld total %lld released %lld %s", x, m->usage[u].total, released,
             payer < 0 ? "bank:suspense" : model_account_name (m, payer));
}

void model_charge (struct model *m, const struct model_ask *ask, long long hold, int account,
                   int user, bool final, unsigned long long sequence, char *out)
{
    charge_decided (m, ask, hold, account, user, final, out);
    arrived (m, ask->site, sequence);
    if (strncmp (out, "error", 5) != 0)
        sprintf (out + strlen (out), " acked %llu", m->acked[ask->site]);
}

void model_release (struct model *m, int site, long long hold, unsigned long long sequence,
                    char *out)
{
    struct model_hold *h = hold > 0 && hold <= m->holds ? &m->hold[hold - 1] : NULL;
    bool known = h && (site < 0 || h->site == site);
    if (site >= 0)
        arrived (m, site, sequence);
    if (known)
        sprintf (out, "released %lld acked %llu", close_hold (m, h), site < 0 ? 0 : m->acked[site]);
    else
        sprintf (out, "error -2");
}
