/* The model: what moves credits but holds and charges. */
#include "tests/prop/bank/model_i.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

void model_expire (struct model *m, int alloc, char *out)
{
    if (model_ended (m, &m->alloc[alloc]))
        sprintf (out, "done alloc.%lld", m->alloc[alloc].id);
    else
        sprintf (out, "error -7");
}

void model_begin (struct model *m, int alloc, char *out)
{
    struct model_alloc *a = &m->alloc[alloc];
    if (a->begin > m->now) {
        sprintf (out, "error -7");
        return;
    }
    model_repay (m, a, a->posted);
    sprintf (out, "done alloc.%lld", a->id);
}

static struct model_alloc *alloc_new (struct model *m, int account, long long begin, long long end,
                                      long long amount, long long grant, int giver,
                                      const struct model_scope *scope)
{
    struct model_alloc *a = &m->alloc[m->allocs++];
    assert (m->allocs < M_ALLOCS);
    *a = (struct model_alloc){.account = account,
                              .id = m->next_alloc++,
                              .begin = begin,
                              .end = end,
                              .posted = amount,
                              .granted = amount,
                              .grant = grant,
                              .giver = grant ? m->grant_funder[grant] : giver,
                              .scope = *scope};
    return a;
}

void model_deposit (struct model *m, int account, long long amount, long long begin, long long end,
                    int funder, int reference, long long grant, int agency,
                    const struct model_scope *scope, char *out)
{
    bool at_once = begin == 0;
    begin = at_once ? m->now : begin;
    if (funder >= 0 && !m->funder_is[funder]) {
        sprintf (out, "error -2");
        return;
    }
    if (amount <= 0 || end <= begin || end <= m->now) {
        sprintf (out, "error -1");
        return;
    }
    if (funder >= 0 && reference >= 0 && m->referred[funder][reference]) {
        sprintf (out, "error -3");
        return;
    }
    bool shut = m->account_is[account] && m->closed[account];
    if (!m->account_is[account] || shut || grant > m->grants || m->revoked[grant]) {
        sprintf (out,
                 shut || (m->account_is[account] && grant <= m->grants) ? "error -7" : "error -2");
        return;
    }
    if (funder >= 0) {
        m->grant_funder[++m->grants] = funder;
        m->grant_alloc[m->grants] = m->allocs;
    }
    struct model_alloc *fresh =
        alloc_new (m, account, begin, end, amount, funder >= 0 ? m->grants : grant, agency, scope);
    fresh->at_once = at_once;
    if (begin <= m->now)
        model_repay (m, fresh, amount);
    if (funder >= 0)
        sprintf (out, "done grant.%lld,alloc.%lld", m->grants, fresh->id);
    else
        sprintf (out, "done alloc.%lld", fresh->id);
}

/* Shares of an account's credits that are there and free; 0, and the error, when there are too few. */
static int shares (struct model *m, int account, bool moves, int only, long long amount, int agency,
                   int *alloc, long long *part, char *out)
{
    int list[M_ALLOCS], n = model_sorted (m, account, list), count = 0;
    bool shut = model_overdrawn (m, account) || m->debt[m->project[account]] < 0 ||
                (moves && model_frozen (m, account, -1));
    for (int i = 0; i < n && amount > 0 && !shut; i++) {
        struct model_alloc *a = &m->alloc[list[i]];
        long long have = a->posted - a->held;
        bool meant = only >= 0 ? list[i] == only : a->begin <= m->now;
        if (!meant || a->end <= m->now || have <= 0 || !model_gave (m, agency, list[i]) ||
            (moves && a->grant && m->frozen_grant[a->grant]))
            continue;
        alloc[count] = list[i];
        part[count] = have < amount ? have : amount;
        amount -= part[count++];
    }
    if (amount > 0 || shut)
        sprintf (out, "error -7");
    return amount > 0 || shut ? 0 : count;
}

static bool not_open (const struct model *m, int account, char *out)
{
    if (m->account_is[account] && !m->closed[account])
        return false;
    sprintf (out, m->account_is[account] ? "error -7" : "error -2");
    return true;
}

void model_withdraw (struct model *m, int account, int only, long long amount, int agency,
                     char *out)
{
    int alloc[M_ALLOCS];
    long long part[M_ALLOCS];
    if (amount <= 0) {
        sprintf (out, "error -1");
        return;
    }
    if (not_open (m, account, out))
        return;
    int n = shares (m, account, false, only, amount, agency, alloc, part, out);
    for (int i = 0; i < n; i++) {
        m->alloc[alloc[i]].posted -= part[i];
        m->alloc[alloc[i]].granted -= part[i];
        sprintf (out, "done");
    }
}

/* A part of an allocation's time: 0 is where it begins or ends. */
static bool within (const struct model *m, const struct model_alloc *a, long long *begin,
                    long long *end)
{
    bool early = *begin && *begin < a->begin + a->at_once;
    *begin = *begin ? *begin : a->begin;
    *end = *end ? *end : a->end;
    return !early && *end <= a->end && *begin<*end && * end> m->now;
}

static bool is_below (const struct model *m, int to, int from)
{
    for (; to >= 0; to = m->parent[to])
        if (to == from)
            return true;
    return false;
}

static void move (struct model *m, int from, int to, int only, long long amount, bool split,
                  long long begin, long long end, int agency, char *out)
{
    int alloc[M_ALLOCS];
    long long part[M_ALLOCS];
    if (amount <= 0 || from == to) {
        sprintf (out, "error -1");
        return;
    }
    if (not_open (m, from, out) || not_open (m, to, out))
        return;
    if (split && !is_below (m, m->project[to], m->project[from])) {
        sprintf (out, "error -7");
        return;
    }
    int n = shares (m, from, true, only, amount, agency, alloc, part, out);
    for (int i = 0; i < n; i++) {
        long long b = begin, e = end;
        if (!within (m, &m->alloc[alloc[i]], &b, &e)) {
            sprintf (out, "error -7");
            return;
        }
    }
    for (int i = 0; i < n; i++) {
        struct model_alloc *a = &m->alloc[alloc[i]];
        long long b = begin, e = end;
        within (m, a, &b, &e);
        struct model_alloc *fresh = alloc_new (m, to, b, e, part[i], a->grant, a->giver, &a->scope);
        fresh->at_once = a->at_once && !begin;
        fresh->from = split ? alloc[i] + 1 : 0;
        a->posted -= part[i];
        a->granted -= part[i];
        if (b <= m->now)
            model_repay (m, fresh, part[i]);
        sprintf (i ? out + strlen (out) : out, "%salloc.%lld", i ? "," : "done ", fresh->id);
    }
}

void model_transfer (struct model *m, int from, int to, int alloc, long long amount, int agency,
                     char *out)
{
    move (m, from, to, alloc, amount, false, 0, 0, agency, out);
}

void model_split (struct model *m, int from, int to, int alloc, long long amount, long long begin,
                  long long end, int agency, char *out)
{
    move (m, from, to, alloc, amount, true, begin, end, agency, out);
}

void model_split_back (struct model *m, int alloc, long long amount, int agency, char *out)
{
    struct model_alloc *a = &m->alloc[alloc], *s = a->from ? &m->alloc[a->from - 1] : NULL;
    int list[M_ALLOCS];
    long long part[M_ALLOCS];
    if (amount < 0) {
        sprintf (out, "error -1");
        return;
    }
    if (!s) {
        sprintf (out, "error -2");
        return;
    }
    if (not_open (m, s->account, out))
        return;
    if (!is_below (m, m->project[a->account], m->project[s->account]) || s->end <= m->now ||
        (amount == 0 && a->posted <= a->held)) {
        sprintf (out, "error -7");
        return;
    }
    amount = amount ? amount : a->posted - a->held;
    if (shares (m, a->account, true, alloc, amount, agency, list, part, out) == 0)
        return;
    a->posted -= amount;
    a->granted -= amount;
    s->posted += amount;
    s->granted += amount;
    if (s->begin <= m->now)
        model_repay (m, s, amount);
    sprintf (out, "done alloc.%lld", s->id);
}

/* ---- what becomes of grants ---- */

static bool grant_shut (const struct model *m, long long grant, char *out)
{
    if (grant <= m->grants && !m->revoked[grant])
        return false;
    sprintf (out, grant > m->grants ? "error -2" : "error -7");
    return true;
}

void model_extend_grant (struct model *m, long long grant, long long end, char *out)
{
    long long last = 0;
    if (grant_shut (m, grant, out))
        return;
    for (int i = 0; i < m->allocs; i++)
        if (m->alloc[i].grant == grant && m->alloc[i].end > last)
            last = m->alloc[i].end;
    sprintf (out, last <= m->now || end <= last ? "error -7" : "done grant.%lld", grant);
    for (int i = 0; i < m->allocs && last > m->now && end > last; i++)
        if (m->alloc[i].grant == grant && m->alloc[i].end == last)
            m->alloc[i].end = end;
}

static long long grant_free (const struct model *m, const struct model_alloc *a)
{
    bool owes = model_overdrawn (m, a->account) || m->debt[m->project[a->account]] < 0;
    return owes || a->end <= m->now || a->posted <= a->held ? 0 : a->posted - a->held;
}

static void grant_take (struct model *m, struct model_alloc *a, long long *most)
{
    long long take = grant_free (m, a);
    take = take < *most ? take : *most;
    a->posted -= take;
    a->granted -= take;
    *most -= take;
}

void model_amend (struct model *m, long long grant, long long amount, char *out)
{
    long long total = 0, free = 0;
    if (amount <= 0) {
        sprintf (out, "error -1");
        return;
    }
    if (grant_shut (m, grant, out))
        return;
    struct model_alloc *first = &m->alloc[m->grant_alloc[grant]];
    for (int i = 0; i < m->allocs; i++)
        if (m->alloc[i].grant == grant) {
            total += m->alloc[i].granted;
            free += grant_free (m, &m->alloc[i]);
        }
    bool gone = first->end <= m->now || m->closed[first->account];
    if (amount == total || (amount > total ? gone : free < total - amount)) {
        sprintf (out, amount == total ? "error -3" : "error -7");
        return;
    }
    if (amount > total) {
        first->posted += amount - total;
        first->granted += amount - total;
        if (first->begin <= m->now)
            model_repay (m, first, amount - total);
    }
    long long less = amount < total ? total - amount : 0;
    grant_take (m, first, &less);
    for (int i = m->allocs - 1; i >= 0; i--)
        if (m->alloc[i].grant == grant)
            grant_take (m, &m->alloc[i], &less);
    sprintf (out, "done grant.%lld", grant);
}

void model_revoke (struct model *m, long long grant, char *out)
{
    if (grant_shut (m, grant, out))
        return;
    for (int i = 0; i < m->allocs; i++) {
        struct model_alloc *a = &m->alloc[i];
        if (a->grant != grant || a->end <= m->now)
            continue;
        if (a->begin <= m->now)
            model_repay (m, a, a->posted);
        long long free = a->posted > a->held ? a->posted - a->held : 0;
        a->posted -= free;
        a->granted -= free;
        a->limit = 0;
        a->end = a->begin <= m->now ? m->now : a->begin;
        model_ended (m, a);
    }
    m->revoked[grant] = true;
    sprintf (out, "done grant.%lld", grant);
}

void model_refund (struct model *m, long long charge, long long amount, char *out)
{
    struct model_charge *c = &m->charge[charge - 1];
    long long left = 0;
    for (int i = 0; i < c->legs; i++)
        left += c->leg[i].amount - c->leg[i].refunded;
    if (amount < 0) {
        sprintf (out, "error -1");
        return;
    }
    if (c->legs == 0) { /* of a charge of nothing the bank knows nothing to give back */
        sprintf (out, "error -2");
        return;
    }
    amount = amount ? amount : left;
    if (amount > left || left == 0) {
        sprintf (out, "error -7");
        return;
    }
    sprintf (out, "refunded %lld left %lld", amount, left - amount);
    for (int pass = 0; pass < 2; pass++)
        for (int k = 0; k < c->legs; k++) {
            int i = pass ? c->legs - 1 - k : k;
            if (c->leg[i].overrun != (pass == 0))
                continue;
            long long x = c->leg[i].amount - c->leg[i].refunded;
            x = x < amount ? x : amount;
            if (x == 0)
                continue;
            amount -= x;
            c->leg[i].refunded += x;
            m->earned[c->site] -= x;
            assert (m->refunds < M_REFUNDS);
            m->refund[m->refunds++] =
                (struct model_refund){(int)charge - 1, c->leg[i].alloc, m->now, x};
            if (c->leg[i].alloc < 0) {
                m->suspense -= x;
                continue;
            }
            struct model_alloc *a = &m->alloc[c->leg[i].alloc];
            a->posted += x;
            a->settled -= x;
            model_repay (m, a, x);
            model_ended (m, a);
        }
}

void model_refund_due (struct model *m, long long charge, char *out)
{
    const struct model_charge *c = &m->charge[charge - 1];
    long long most = m->usage[c->usage].due, left = 0;
    for (int i = (int)charge; i < m->charges; i++)
        most -= m->charge[i].usage == c->usage ? m->charge[i].amount : 0;
    most = most < c->amount ? most : c->amount;
    for (int i = 0; i < c->legs; i++)
        left += c->leg[i].amount - c->leg[i].refunded;
    most = most < left ? most : left;
    if (c->legs && most <= 0)
        sprintf (out, "error -7");
    else
        model_refund (m, charge, c->legs ? most : 0, out);
}

void model_limit (struct model *m, int alloc, long long limit, char *out)
{
    if (limit < 0) {
        sprintf (out, "error -1");
        return;
    }
    m->alloc[alloc].limit = limit;
    sprintf (out, "done alloc.%lld", m->alloc[alloc].id);
}
