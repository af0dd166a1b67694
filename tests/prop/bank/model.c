#include "tests/prop/bank/model_i.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const char *const names[M_ACCOUNTS] = {"a0", "a1", "a2", "a3", "a4",
                                               "a5", "a6", "a7", "a8", "a9"};

const char *model_account_name (int account)
{
    return names[account];
}

long long model_price (long long procs, long long seconds, long long ppm)
{
    /* credits * 1e6 = micro-credits; whole seconds at ppm: nothing to be rounded */
    return (long long)((__int128)procs * seconds * ppm);
}

long long model_room (const struct model_alloc *a)
{
    return a->posted - a->held + a->limit;
}

/* Indices of an account's allocations, the one that ends first first. */
static int sorted (const struct model *m, int account, int *out)
{
    int n = 0;
    for (int i = 0; i < m->allocs; i++)
        if (m->alloc[i].account == account)
            out[n++] = i;
    for (int i = 0; i < n; i++)
        for (int k = i + 1; k < n; k++) {
            const struct model_alloc *a = &m->alloc[out[i]], *b = &m->alloc[out[k]];
            if (b->end < a->end || (b->end == a->end && b->id < a->id)) {
                int t = out[i];
                out[i] = out[k];
                out[k] = t;
            }
        }
    return n;
}

static long long available (const struct model *m, int account, bool *overdrawn, bool *any)
{
    long long sum = 0;
    *overdrawn = *any = false;
    for (int i = 0; i < m->allocs; i++) {
        const struct model_alloc *a = &m->alloc[i];
        if (a->account != account)
            continue;
        if (model_room (a) < 0)
            *overdrawn = true;
        if (a->begin == 0)
            *any = true;
        if (a->begin == 0 || model_room (a) < 0)
            sum += model_room (a);
    }
    return sum;
}

int model_candidates (const struct model *m, int asked, int *out)
{
    int n = 1, depth[M_ACCOUNTS] = {0};
    out[0] = asked;
    for (int i = 0; i < n; i++)
        for (int f = 0; depth[i] < 4 && f < m->fallbacks[out[i]]; f++) {
            int next = m->fallback[out[i]][f];
            bool seen = false;
            for (int k = 0; k < n; k++)
                seen = seen || out[k] == next;
            if (!seen) {
                depth[n] = depth[i] + 1;
                out[n++] = next;
            }
        }
    return n;
}

bool model_overdrawn (const struct model *m, int account)
{
    bool overdrawn, any;
    available (m, account, &overdrawn, &any);
    return overdrawn;
}

bool model_is_member (const struct model *m, int user, int account)
{
    return m->member[user][m->project[account]];
}

const char *model_cannot (const struct model *m, int account, int user, long long amount,
                          long long *shortfall)
{
    bool overdrawn, any;
    *shortfall = amount;
    if (!model_is_member (m, user, account))
        return "NotMember";
    if (m->closed[account])
        return "AccountClosed";
    long long have = available (m, account, &overdrawn, &any);
    *shortfall = amount - have;
    if (overdrawn)
        return "AccountOverdrawn";
    if (amount <= (have > 0 ? have : 0))
        return NULL;
    return any ? "InsufficientFunds" : "NoAllocation";
}

/* Of the allocations listed, those below their limit are repaid by another one, at most so much. */
static void repay (struct model *m, const int *list, int n, struct model_alloc *from,
                   long long most)
{
    if (most > from->posted - from->held)
        most = from->posted - from->held;
    for (int i = 0; i < n && most > 0; i++) {
        struct model_alloc *a = &m->alloc[list[i]];
        long long pay = model_room (a) < 0 ? -model_room (a) : 0;
        if (a == from)
            continue;
        if (pay > most)
            pay = most;
        a->posted += pay;
        from->posted -= pay;
        most -= pay;
    }
}

void model_deposit (struct model *m, int account, long long amount, long long begin, long long end,
                    int funder, long long grant, char *out)
{
    if (funder == 2 || amount <= 0) {
        sprintf (out, funder == 2 ? "error -2" : "error -1");
        return;
    }
    if (m->closed[account] || grant > m->grants) {
        sprintf (out, m->closed[account] ? "error -7" : "error -2");
        return;
    }
    int list[M_ALLOCS], n = sorted (m, account, list);
    struct model_alloc *fresh = &m->alloc[m->allocs++];
    assert (m->allocs < M_ALLOCS);
    *fresh = (struct model_alloc){.account = account,
                                  .id = m->next_alloc++,
                                  .begin = begin,
                                  .end = end,
                                  .posted = amount,
                                  .granted = amount,
                                  .grant = funder ? ++m->grants : grant};
    if (begin == 0)
        repay (m, list, n, fresh, amount);
    if (funder)
        sprintf (out, "done grant.%lld,alloc.%lld", m->grants, fresh->id);
    else
        sprintf (out, "done alloc.%lld", fresh->id);
}

static int usage_of (const struct model *m, int site, long long job, long long incarnation)
{
    for (int i = 0; i < m->usages; i++)
        if (m->usage[i].site == site && m->usage[i].job == job &&
            m->usage[i].incarnation == incarnation)
            return i;
    return -1;
}

static int open_hold_of (const struct model *m, int site, long long job, long long incarnation)
{
    for (int i = 0; i < m->holds; i++)
        if (m->hold[i].open && m->hold[i].site == site && m->hold[i].job == job &&
            m->hold[i].incarnation == incarnation)
            return i;
    return -1;
}

/* Legs for an amount that the account has. */
static void place (struct model *m, struct model_hold *h, long long amount)
{
    int mine[M_ALLOCS], k = sorted (m, h->account, mine);
    long long left = amount;
    for (int i = 0; i < k && left > 0; i++) {
        struct model_alloc *a = &m->alloc[mine[i]];
        if (a->begin != 0 || model_room (a) <= 0)
            continue;
        long long take = model_room (a) < left ? model_room (a) : left;
        assert (h->legs < M_LEGS);
        a->held += take;
        h->alloc[h->legs] = mine[i];
        h->kept[h->legs++] = take;
        left -= take;
    }
}

void model_extend (struct model *m, int site, long long hold, long long seconds, char *out)
{
    struct model_hold *h = hold > 0 && hold <= m->holds ? &m->hold[hold - 1] : NULL;
    long long shortfall;
    if (!h || (site >= 0 && h->site != site)) {
        sprintf (out, "error -2");
        return;
    }
    if (!h->open) {
        sprintf (out, "error -7");
        return;
    }
    if (seconds <= h->seconds) {
        sprintf (out, "error -1");
        return;
    }
    long long more = model_price (h->procs, seconds, h->rate) - h->amount;
    const char *why = model_cannot (m, h->account, h->user, more, &shortfall);
    if (why) {
        sprintf (out, "refused %s %s:%s:%lld", why, names[h->account], why, shortfall);
        return;
    }
    place (m, h, more);
    h->amount += more;
    h->seconds = seconds;
    sprintf (out, "extended hold.%lld %lld %s%s", hold, h->amount, names[h->account],
             h->account != h->asked ? " fallback" : "");
}

long long model_rate_of (const struct model *m, const struct model_ask *ask, int user,
                         const char **why)
{
    const struct model_pin *pin = ask->quote ? &m->pin[ask->quote - 1] : NULL;
    *why = NULL;
    if (!pin)
        *why = m->rate[ask->site] < 0 ? "NoRate" : NULL;
    else if (ask->quote > m->pins)
        *why = "NoQuote";
    else if (pin->user != user)
        *why = "QuoteForeign";
    else if (pin->ended)
        *why = "QuoteExpired";
    else if (!pin->reusable && pin->used && pin->job != ask->job)
        *why = "QuoteUsed";
    else if (pin->rate[ask->site] < 0)
        *why = "QuoteSite";
    return *why ? -1 : ask->quote ? pin->rate[ask->site] : m->rate[ask->site];
}

void model_pin_use (struct model *m, const struct model_ask *ask)
{
    struct model_pin *pin = ask->quote ? &m->pin[ask->quote - 1] : NULL;
    if (!pin || pin->used)
        return;
    pin->used = true;
    pin->job = ask->job;
}

/* What forbids it whatever the funds are. */
static bool forbidden (const struct model *m, const struct model_ask *ask, int user, char *out)
{
    const char *why;
    if (ask->procs < 1 || ask->seconds < 1) {
        sprintf (out, "error -1");
        return true;
    }
    int u = usage_of (m, ask->site, ask->job, ask->incarnation);
    model_rate_of (m, ask, user, &why);
    if (!why && open_hold_of (m, ask->site, ask->job, ask->incarnation) >= 0)
        why = "HoldExists";
    if (!why && ask->claimed && !m->claims[ask->site])
        why = "NotSigned";
    if (!why && u >= 0 && m->usage[u].final)
        why = "JobClosed";
    if (why)
        sprintf (out, "refused %s", why);
    return why != NULL;
}

/* All on one account, after the holds that there are; else why one of them cannot be, and none is. */
static const char *place_all (struct model *m, const struct model_ask *ask, int count, int account,
                              int asked, int user, long long *shortfall)
{
    const char *why = NULL;
    int i = 0;
    for (; i < count && !why; i++) {
        struct model_hold *h = &m->hold[m->holds + i];
        long long rate = model_rate_of (m, &ask[i], user, &why);
        *h = (struct model_hold){.site = ask[i].site,
                                 .account = account,
                                 .asked = asked,
                                 .user = user,
                                 .procs = ask[i].procs,
                                 .seconds = ask[i].seconds,
                                 .job = ask[i].job,
                                 .incarnation = ask[i].incarnation,
                                 .amount = model_price (ask[i].procs, ask[i].seconds, rate),
                                 .rate = rate,
                                 .open = true};
        why = model_cannot (m, account, user, h->amount, shortfall);
        if (!why)
            place (m, h, h->amount);
    }
    for (; why && i > 0; i--)
        for (int k = 0; k < m->hold[m->holds + i - 1].legs; k++)
            m->alloc[m->hold[m->holds + i - 1].alloc[k]].held -= m->hold[m->holds + i - 1].kept[k];
    return why;
}

void model_holds (struct model *m, const struct model_ask *ask, int count, int account, int user,
                  char *out)
{
    int list[M_ACCOUNTS], n = model_candidates (m, account, list), payer = -1;
    char refusal[1024] = "", code[64] = "";
    long long shortfall;
    assert (m->holds + count < M_HOLDS);
    for (int i = 0; i < count; i++) {
        if (forbidden (m, &ask[i], user, out))
            return;
        for (int k = 0; k < i; k++)
            if (ask[k].site == ask[i].site && ask[k].job == ask[i].job &&
                ask[k].incarnation == ask[i].incarnation) {
                sprintf (out, "error -1");
                return;
            }
    }
    for (int i = 0; i < n && payer < 0; i++) {
        const char *why = place_all (m, ask, count, list[i], account, user, &shortfall);
        if (!why) {
            payer = list[i];
        } else {
            sprintf (refusal + strlen (refusal), " %s:%s:%lld", names[list[i]], why, shortfall);
            sprintf (code, "%s", n == 1 ? why : "InsufficientFunds");
        }
    }
    if (payer < 0) {
        sprintf (out, "refused %s%s", code, refusal);
        return;
    }
    for (int i = 0; i < count; i++, m->holds++) {
        model_pin_use (m, &ask[i]);
        sprintf (i ? out + strlen (out) : out, "%shold.%d %lld %s%s", i ? "; " : "granted ",
                 m->holds + 1, m->hold[m->holds].amount, names[payer],
                 payer != account ? " fallback" : "");
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
        h->kept[i] = 0;
    }
    h->open = false;
    return released;
}

/* Takes x from wherever rule C3 says. */
static void pay (struct model *m, struct model_hold *h, int account, int site, long long x)
{
    for (int i = 0; h && i < h->legs; i++) {
        long long part = h->kept[i] < x ? h->kept[i] : x;
        h->kept[i] -= part;
        m->alloc[h->alloc[i]].held -= part;
        take (m, &m->alloc[h->alloc[i]], site, part, false);
        x -= part;
    }
    int mine[M_ALLOCS], k = account < 0 ? 0 : sorted (m, account, mine), first = -1;
    for (int i = 0; i < k; i++) {
        struct model_alloc *a = &m->alloc[mine[i]];
        if (a->begin != 0)
            continue;
        first = first < 0 ? mine[i] : first;
        long long have = a->posted - a->held, part = have <= 0 ? 0 : have < x ? have : x;
        take (m, a, site, part, false);
        x -= part;
    }
    for (int i = 0; i < k; i++) { /* then on credit */
        struct model_alloc *a = &m->alloc[mine[i]];
        long long part = a->begin || model_room (a) <= 0 ? 0 : model_room (a) < x ? model_room (a) : x;
        take (m, a, site, part, false);
        x -= part;
    }
    if (first < 0 && k > 0)
        first = mine[k - 1];
    if (h && h->legs)
        first = h->alloc[0];
    if (x > 0 && first >= 0) {
        take (m, &m->alloc[first], site, x, true);
    } else if (x > 0) {
        leg (m, -1, x, false);
        m->suspense += x;
        m->earned[site] += x;
    }
}

void model_charge (struct model *m, const struct model_ask *ask, long long hold, int account,
                   int user, bool final, char *out)
{
    struct model_hold *h = NULL;
    int site = ask->site;
    long long released = 0, shortfall, job = ask->job, incarnation = ask->incarnation;
    const char *no_quote = NULL;
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
        int open = open_hold_of (m, site, job, incarnation);
        h = open >= 0 ? &m->hold[open] : NULL;
    }
    /* A job that began past its quote's end, or cannot have it, is charged at the card. */
    long long rate = h ? h->rate : model_rate_of (m, ask, user, &no_quote);
    bool quoted = !h && ask->quote && !no_quote;
    if (!h && !quoted)
        rate = m->rate[site];
    bool priced = rate >= 0;
    rate = priced ? rate : 1000000;
    if (ask->procs < 1) {
        sprintf (out, "error -1");
        return;
    }
    long long total = model_price (ask->procs, ask->seconds, rate);
    int u = usage_of (m, site, job, incarnation);
    if (u >= 0 && m->usage[u].final) {
        if (final)
            sprintf (out, "error -7");
        else
            sprintf (out, "charged 0 total %lld released 0 %s acked %llu", m->usage[u].total,
                     m->usage[u].account < 0 ? "bank:suspense" : names[m->usage[u].account],
                     m->acked[site]);
        return;
    }
    int payer = -1;
    if (h) {
        payer = h->account;
    } else if (u >= 0) {
        payer = m->usage[u].account;
    } else if (priced && account >= 0 && model_is_member (m, user, account) && !m->closed[account] &&
               (!ask->claimed || m->claims[site])) {
        int list[M_ACCOUNTS], n = model_candidates (m, account, list);
        for (int i = 0; i < n && payer < 0; i++)
            if (!model_cannot (m, list[i], user, total, &shortfall))
                payer = list[i];
        if (payer < 0)
            payer = account;
    }
    if (u < 0) {
        u = m->usages++;
        m->usage[u] = (struct model_usage){
            .site = site, .account = payer, .job = job, .incarnation = incarnation};
    }
    if (quoted)
        model_pin_use (m, ask);
    long long x = total > m->usage[u].total ? total - m->usage[u].total : 0;
    m->charge[m->charges] = (struct model_charge){.site = site};
    pay (m, h, payer, site, x);
    m->charges++;
    m->usage[u].total += x;
    m->usage[u].final = final;
    if (final && h)
        released = close_hold (m, h);
    sprintf (out, "charged %lld total %lld released %lld %s acked %llu", x, m->usage[u].total,
             released, payer < 0 ? "bank:suspense" : names[payer], m->acked[site]);
}

/* Shares of an account's credits that are there and free; false when there are too few. */
static int shares (struct model *m, int account, long long amount, int *alloc, long long *part,
                   char *out)
{
    int list[M_ALLOCS], n = sorted (m, account, list), count = 0;
    bool overdrawn, any;
    available (m, account, &overdrawn, &any);
    for (int i = 0; i < n && amount > 0 && !overdrawn; i++) {
        struct model_alloc *a = &m->alloc[list[i]];
        long long have = a->posted - a->held;
        if (a->begin != 0 || have <= 0)
            continue;
        alloc[count] = list[i];
        part[count] = have < amount ? have : amount;
        amount -= part[count++];
    }
    if (amount > 0 || overdrawn)
        sprintf (out, "error -7");
    return amount > 0 || overdrawn ? 0 : count;
}

void model_withdraw (struct model *m, int account, long long amount, char *out)
{
    int alloc[M_ALLOCS];
    long long part[M_ALLOCS];
    if (amount <= 0 || m->closed[account]) {
        sprintf (out, amount <= 0 ? "error -1" : "error -7");
        return;
    }
    int n = shares (m, account, amount, alloc, part, out);
    for (int i = 0; i < n; i++) {
        m->alloc[alloc[i]].posted -= part[i];
        m->alloc[alloc[i]].granted -= part[i];
        sprintf (out, "done");
    }
}

void model_transfer (struct model *m, int from, int to, long long amount, char *out)
{
    int alloc[M_ALLOCS], list[M_ALLOCS];
    long long part[M_ALLOCS];
    if (amount <= 0 || from == to) {
        sprintf (out, "error -1");
        return;
    }
    if (m->closed[from] || m->closed[to]) {
        sprintf (out, "error -7");
        return;
    }
    int n = shares (m, from, amount, alloc, part, out);
    for (int i = 0; i < n; i++) {
        struct model_alloc *a = &m->alloc[alloc[i]], *fresh = &m->alloc[m->allocs];
        int others = sorted (m, to, list);
        m->allocs++;
        *fresh = (struct model_alloc){.account = to,
                                      .id = m->next_alloc++,
                                      .begin = a->begin,
                                      .end = a->end,
                                      .posted = part[i],
                                      .granted = part[i],
                                      .grant = a->grant};
        a->posted -= part[i];
        a->granted -= part[i];
        repay (m, list, others, fresh, part[i]);
        sprintf (i ? out + strlen (out) : out, "%salloc.%lld", i ? "," : "done ", fresh->id);
    }
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
            int i = pass ? c->legs - 1 - k : k, list[M_ALLOCS];
            if (c->leg[i].overrun != (pass == 0))
                continue;
            long long x = c->leg[i].amount - c->leg[i].refunded;
            x = x < amount ? x : amount;
            amount -= x;
            c->leg[i].refunded += x;
            m->earned[c->site] -= x;
            if (c->leg[i].alloc < 0) {
                m->suspense -= x;
                continue;
            }
            struct model_alloc *a = &m->alloc[c->leg[i].alloc];
            a->posted += x;
            a->settled -= x;
            repay (m, list, sorted (m, a->account, list), a, x);
        }
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

void model_release (struct model *m, int site, long long hold, char *out)
{
    struct model_hold *h = hold > 0 && hold <= m->holds ? &m->hold[hold - 1] : NULL;
    if (!h || h->site != site) {
        sprintf (out, "error -2");
        return;
    }
    sprintf (out, "released %lld acked %llu", close_hold (m, h), m->acked[site]);
}
