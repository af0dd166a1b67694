#include "tests/prop/bank/model_i.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const char *const names[M_ACCOUNTS] = {"a0", "a1", "a2", "a3",  "a4",  "a5", "a6",
                                              "a7", "a8", "a9", "a10", "a11", "a12"};

const char *model_account_name (int account)
{
    return names[account];
}

/* ---- who pays ---- */

long long model_room (const struct model_alloc *a)
{
    return a->posted - a->held + a->limit;
}

static int narrow (const struct model_scope *s)
{
    int n = 0;
    for (int k = 0; k < M_SCOPES; k++)
        n += s->named[k] != 0;
    return n;
}

/* Indices of an account's allocations, in the order in which they pay. */
static int sorted (const struct model *m, int account, int *out)
{
    int n = 0;
    for (int i = 0; i < m->allocs; i++) {
        const struct model_alloc *a = &m->alloc[i];
        if (a->account != account)
            continue;
        int at = n++;
        for (; at > 0; at--) {
            const struct model_alloc *b = &m->alloc[out[at - 1]];
            if (b->end < a->end || (b->end == a->end && narrow (&b->scope) >= narrow (&a->scope)))
                break;
            out[at] = out[at - 1];
        }
        out[at] = i;
    }
    return n;
}

static bool member (const struct model *m, int user, int account)
{
    return user >= 0 && m->member[user][m->project[account]];
}

/* name -1: not said. */
static bool admits (const struct model_scope *s, int kind, int name, bool is_member, bool unsaid)
{
    unsigned bit = name >= 0 ? 1U << name : 0;
    if (s->excluded[kind] & bit)
        return false;
    if (!s->named[kind] && !s->any[kind] && !(kind == M_USER && s->members))
        return unsaid;
    return s->named[kind] & bit || s->any[kind] || (kind == M_USER && s->members && is_member);
}

static bool may_use (const struct model *m, int account, int user)
{
    bool is = member (m, user, account);
    return admits (&m->users[account], M_USER, user, is, is);
}

static bool valid (const struct model_alloc *a, long long at)
{
    return a->begin <= at && at < a->end;
}

static bool usable (const struct model *m, const struct model_alloc *a,
                    const struct model_funding *f)
{
    return valid (a, f->at) &&
           admits (&a->scope, M_USER, f->user, member (m, f->user, a->account), true) &&
           admits (&a->scope, M_SITE, f->site, false, true) &&
           admits (&a->scope, M_MACHINE, f->machine, false, true) &&
           admits (&a->scope, M_QOS, f->qos, false, true);
}

bool model_overdrawn (const struct model *m, int account)
{
    for (int i = 0; i < m->allocs; i++)
        if (m->alloc[i].account == account && model_room (&m->alloc[i]) < 0)
            return true;
    return false;
}

int model_candidates (const struct model *m, int asked, int site, struct model_candidate *out)
{
    int n = 1, depth[M_ACCOUNTS] = {0};
    out[0] = (struct model_candidate){asked, -1};
    for (int i = 0; i < n; i++) {
        int from = out[i].account, list = -1;
        for (int f = 0; f < m->fallbacks[from]; f++)
            if (m->fallback[from][f].site == site)
                list = site;
        for (int f = 0; depth[i] < 4 && f < m->fallbacks[from]; f++) {
            int next = m->fallback[from][f].account, qos = m->fallback[from][f].qos;
            bool seen = m->fallback[from][f].site != list;
            for (int k = 0; k < n; k++)
                seen = seen || out[k].account == next;
            if (!seen) {
                depth[n] = depth[i] + 1;
                out[n++] = (struct model_candidate){next, qos >= 0 ? qos : out[i].qos};
            }
        }
    }
    return n;
}

const char *model_cannot (const struct model *m, int account, const struct model_funding *f,
                          long long amount, long long *shortfall)
{
    long long have = 0, debt = -m->debt[m->project[account]];
    bool any_valid = false, any_usable = false;
    *shortfall = amount;
    if (!may_use (m, account, f->user))
        return member (m, f->user, account) ? "NotUser" : "NotMember";
    if (m->closed[account])
        return "AccountClosed";
    for (int i = 0; i < m->allocs; i++) {
        const struct model_alloc *a = &m->alloc[i];
        if (a->account != account)
            continue;
        any_valid = any_valid || valid (a, f->at);
        any_usable = any_usable || usable (m, a, f);
        if (usable (m, a, f) || model_room (a) < 0)
            have += model_room (a);
    }
    *shortfall = debt && amount < have ? debt : amount - have + debt;
    if (model_overdrawn (m, account))
        return "AccountOverdrawn";
    if (debt)
        return "ProjectInDebt";
    if (amount <= (have > 0 ? have : 0))
        return NULL;
    return any_usable ? "InsufficientFunds" : any_valid ? "OutOfScope" : "NoAllocation";
}

/* ---- what ends, what is owed, what repays ---- */

static long long repay_one (long long room, long long *posted, struct model_alloc *from,
                            long long most)
{
    long long pay = room < 0 ? -room : 0;
    pay = pay < most ? pay : most;
    *posted += pay;
    from->posted -= pay;
    return pay;
}

/* Allocations of the account that are below their limit, then what the project owes, are repaid by
 * another one, at most so much. */
static void repay (struct model *m, struct model_alloc *from, long long most)
{
    int list[M_ALLOCS], n = sorted (m, from->account, list), p = m->project[from->account];
    if (most > from->posted - from->held)
        most = from->posted - from->held;
    for (int i = 0; i < n && most > 0; i++) {
        struct model_alloc *a = &m->alloc[list[i]];
        if (a != from)
            most -= repay_one (model_room (a), &a->posted, from, most);
    }
    if (most > 0)
        repay_one (m->debt[p], &m->debt[p], from, most);
}

/* Whether anything moved. */
static bool ended (struct model *m, struct model_alloc *a)
{
    int p = m->project[a->account];
    if (a->end > m->now)
        return false;
    if (a->posted > a->held) {
        m->expired += a->posted - a->held;
        a->posted = a->held;
        return true;
    }
    if (a->posted >= 0 || a->held)
        return false;
    if (!m->debt_is[p]) { /* an account and its allocation */
        m->debt_is[p] = true;
        m->next_alloc++;
        m->next_account++;
    }
    m->debt[p] += a->posted;
    a->posted = 0;
    return true;
}

void model_expire (struct model *m, int alloc, char *out)
{
    if (ended (m, &m->alloc[alloc]))
        sprintf (out, "done alloc.%lld", m->alloc[alloc].id);
    else
        sprintf (out, "error -7");
}

static struct model_alloc *alloc_new (struct model *m, int account, long long begin, long long end,
                                      long long amount, long long grant,
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
                              .scope = *scope};
    return a;
}

void model_deposit (struct model *m, int account, long long amount, long long begin, long long end,
                    int funder, long long grant, const struct model_scope *scope, char *out)
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
    if (!m->account_is[account] || m->closed[account] || grant > m->grants) {
        sprintf (out, m->account_is[account] && m->closed[account] ? "error -7" : "error -2");
        return;
    }
    struct model_alloc *fresh =
        alloc_new (m, account, begin, end, amount, funder >= 0 ? ++m->grants : grant, scope);
    fresh->at_once = at_once;
    if (begin <= m->now)
        repay (m, fresh, amount);
    if (funder >= 0)
        sprintf (out, "done grant.%lld,alloc.%lld", m->grants, fresh->id);
    else
        sprintf (out, "done alloc.%lld", fresh->id);
}

/* ---- holds ---- */

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
static void place (struct model *m, struct model_hold *h, const struct model_funding *f,
                   long long amount)
{
    int mine[M_ALLOCS], k = sorted (m, h->account, mine);
    long long left = amount;
    for (int i = 0; i < k && left > 0; i++) {
        struct model_alloc *a = &m->alloc[mine[i]];
        if (!usable (m, a, f) || model_room (a) <= 0)
            continue;
        long long take = model_room (a) < left ? model_room (a) : left;
        assert (h->legs < M_LEGS);
        a->held += take;
        h->alloc[h->legs] = mine[i];
        h->kept[h->legs++] = take;
        left -= take;
    }
}

/* The job of a hold, and the rates that it pinned. */
static struct model_ask hold_ask (const struct model_hold *h)
{
    struct model_ask ask = {.site = h->site,
                            .qos = h->qos,
                            .machine = h->machine,
                            .procs = h->procs,
                            .seconds = h->seconds,
                            .start = h->start,
                            .pe = h->pe};
    memcpy (ask.nodes, h->nodes, sizeof (ask.nodes));
    return ask;
}

static struct model_terms hold_terms (const struct model *m, const struct model_hold *h, bool hold)
{
    bool missing;
    struct model_terms t = {.card = &m->card[h->site][h->card - 1],
                            .qos = h->qos_milli,
                            .group = h->group_milli};
    t.machine = model_factor_of (&t.card->machine, h->machine, &missing);
    model_nodes (t.card, h->nodes, hold, &t);
    return t;
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
    struct model_terms t = hold_terms (m, h, true);
    struct model_ask longer = hold_ask (h);
    longer.seconds = seconds;
    long long whole = model_price (m, &t, &longer, true);
    long long more = whole > h->amount ? whole - h->amount : 0;
    struct model_funding f = {h->user, h->site, h->machine, h->qos,
                              m->now > h->start ? m->now : h->start};
    const char *why = model_cannot (m, h->account, &f, more, &shortfall);
    if (why) {
        sprintf (out, "refused %s %s:%s:%lld", why, names[h->account], why, shortfall);
        return;
    }
    place (m, h, &f, more);
    h->amount += more;
    h->seconds = seconds;
    sprintf (out, "extended hold.%lld %lld %s%s", hold, h->amount, names[h->account],
             h->account != h->asked ? " fallback" : "");
}

const struct model_card *model_card_of (const struct model *m, const struct model_ask *ask,
                                        int user, long long at, int *version, const char **why)
{
    const struct model_pin *pin = ask->quote ? &m->pin[ask->quote - 1] : NULL;
    *why = NULL;
    *version = 0;
    if (!pin) {
        const struct model_card *card = model_card_at (m, ask->site, at, version);
        *why = card ? NULL : "NoRate";
        return card;
    }
    if (ask->quote > m->pins)
        *why = "NoQuote";
    else if (pin->user != user)
        *why = "QuoteForeign";
    else if (pin->cancelled && pin->cancelled_at <= at)
        *why = "QuoteCancelled";
    else if (pin->expires <= at)
        *why = "QuoteExpired";
    else if (!pin->reusable && pin->used && pin->job != ask->job)
        *why = "QuoteUsed";
    else if (!pin->card[ask->site])
        *why = "QuoteSite";
    if (*why)
        return NULL;
    *version = pin->card[ask->site];
    return &m->card[ask->site][*version - 1];
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
    struct model_terms t;
    int version;
    if (ask->procs < 1 || ask->seconds < 1) {
        sprintf (out, "error -1");
        return true;
    }
    int u = usage_of (m, ask->site, ask->job, ask->incarnation);
    const struct model_card *card = model_card_of (m, ask, user, m->now, &version, &why);
    if (!why && !model_terms (card, ask, true, &t))
        why = "NoRate";
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

/* Whether an account is among those that may pay at a site, and at which QoS. */
static bool listed (const struct model *m, int asked, int account, int site, int *qos)
{
    struct model_candidate list[M_ACCOUNTS];
    int n = model_candidates (m, asked, site, list);
    for (int i = 0; i < n; i++)
        if (list[i].account == account) {
            *qos = list[i].qos;
            return true;
        }
    return false;
}

/* All on one account, after the holds that there are; else why one of them cannot be, and none is. */
static const char *place_all (struct model *m, const struct model_ask *ask, int count, int account,
                              int asked, int user, long long *shortfall)
{
    const char *why = NULL;
    int i = 0;
    for (; i < count && !why; i++) {
        struct model_hold *h = &m->hold[m->holds + i];
        struct model_ask job = ask[i];
        struct model_terms t;
        int version, qos = -1;
        const struct model_card *card = model_card_of (m, &job, user, m->now, &version, &why);
        model_terms (card, &job, true, &t);
        *shortfall = model_price (m, &t, &job, true); /* at the job's own QoS */
        if (!listed (m, asked, account, job.site, &qos) && count > 1) {
            why = "NotFallback";
            continue;
        }
        job.qos = qos >= 0 ? qos : job.qos;
        if (!model_terms (card, &job, true, &t)) {
            why = "NoRate";
            continue;
        }
        *h = (struct model_hold){.site = job.site,
                                 .account = account,
                                 .asked = asked,
                                 .user = user,
                                 .qos = job.qos,
                                 .machine = job.machine,
                                 .card = version,
                                 .qos_milli = t.qos,
                                 .group_milli = t.group,
                                 .procs = job.procs,
                                 .seconds = job.seconds,
                                 .job = job.job,
                                 .incarnation = job.incarnation,
                                 .start = job.start > m->now ? job.start : m->now,
                                 .pe = job.pe,
                                 .amount = model_price (m, &t, &job, true),
                                 .open = true};
        memcpy (h->nodes, job.nodes, sizeof (h->nodes));
        struct model_funding f = {user, job.site, job.machine, job.qos, h->start};
        why = model_cannot (m, account, &f, h->amount, shortfall);
        if (!why)
            place (m, h, &f, h->amount);
    }
    for (i -= why != NULL; why && i > 0; i--)
        for (int k = 0; k < m->hold[m->holds + i - 1].legs; k++)
            m->alloc[m->hold[m->holds + i - 1].alloc[k]].held -= m->hold[m->holds + i - 1].kept[k];
    return why;
}

/* What the job costs at its own QoS: what a refusal of an unknown account says. */
static long long own_price (const struct model *m, const struct model_ask *ask, int user)
{
    const char *why;
    struct model_terms t;
    int version;
    model_terms (model_card_of (m, ask, user, m->now, &version, &why), ask, true, &t);
    return model_price (m, &t, ask, true);
}

void model_holds (struct model *m, const struct model_ask *ask, int count, int account, int user,
                  char *out)
{
    struct model_candidate list[M_ACCOUNTS];
    int n = model_candidates (m, account, ask[0].site, list), payer = -1;
    char refusal[1024] = "", code[64] = "";
    long long shortfall;
    assert (m->holds + count < M_HOLDS);
    for (int i = 0; i < count; i++)
        if (forbidden (m, &ask[i], user, out))
            return;
    if (!m->account_is[account]) {
        sprintf (out, "refused NoAccount %s:NoAccount:%lld", names[account],
                 own_price (m, &ask[0], user));
        return;
    }
    for (int i = 0; i < n && payer < 0; i++) {
        const char *why = place_all (m, ask, count, list[i].account, account, user, &shortfall);
        if (!why) {
            payer = list[i].account;
        } else {
            sprintf (refusal + strlen (refusal), " %s:%s:%lld", names[list[i].account], why,
                     shortfall);
            sprintf (code, "%s", n == 1 ? why : "InsufficientFunds");
        }
    }
    if (payer < 0) {
        sprintf (out, "refused %s%s", code, refusal);
        return;
    }
    for (int i = 0; i < count; i++, m->holds++) {
        int qos = -1;
        listed (m, account, payer, ask[i].site, &qos);
        model_pin_use (m, &ask[i]);
        sprintf (i ? out + strlen (out) : out, "%shold.%d %lld %s%s%s%s", i ? "; " : "granted ",
                 m->holds + 1, m->hold[m->holds].amount, names[payer],
                 payer != account ? " fallback" : "", qos >= 0 ? " at " : "",
                 qos < 0    ? ""
                 : qos == 0 ? "q0"
                            : "q1");
    }
}

/* ---- charges ---- */

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
        h->kept[i] = 0;
        ended (m, &m->alloc[h->alloc[i]]);
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
    int mine[M_ALLOCS], k = account < 0 ? 0 : sorted (m, account, mine), first = -1;
    for (int i = 0; i < k; i++) {
        struct model_alloc *a = &m->alloc[mine[i]];
        if (!usable (m, a, f))
            continue;
        first = first < 0 ? mine[i] : first;
        long long have = a->posted - a->held, part = have <= 0 ? 0 : have < x ? have : x;
        take (m, a, f->site, part, false);
        x -= part;
    }
    for (int i = 0; i < k; i++) { /* then on credit */
        struct model_alloc *a = &m->alloc[mine[i]];
        long long room = model_room (a);
        long long part = !usable (m, a, f) || room <= 0 ? 0 : room < x ? room : x;
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

/* Of a charge: what it costs. */
struct tariff {
    long long total;
    bool known, quoted; /* a card has all for it; it is a quote's */
};

static struct tariff tariff_of (const struct model *m, const struct model_ask *ask,
                                const struct model_hold *h, int user, bool final)
{
    struct model_terms t = {.qos = 1000, .group = 1000, .machine = 1000}, had;
    struct model_ask job = *ask;
    struct tariff out = {.known = true};
    const char *why;
    int version;
    if (h) {
        t = hold_terms (m, h, false);
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
    out.total = model_price (m, &t, &job, false);
    if (t.card && ((t.card->successful_only && !(final && ask->successful)) ||
                   (t.card->measure == M_CPU && !final && ask->cpu == 0)))
        out.total = 0;
    return out;
}

/* Who pays for what nothing held; -1: nobody can be named. */
static int unheld_payer (const struct model *m, const struct model_ask *ask, int account,
                         const struct model_funding *f, long long total)
{
    struct model_candidate list[M_ACCOUNTS];
    long long shortfall;
    if (!m->account_is[account] || m->closed[account] || !may_use (m, account, f->user) ||
        (ask->claimed && !m->claims[ask->site]))
        return -1;
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
        int open = open_hold_of (m, site, job, incarnation);
        h = open >= 0 ? &m->hold[open] : NULL;
    }
    if (ask->procs < 1) {
        sprintf (out, "error -1");
        return;
    }
    struct tariff t = tariff_of (m, ask, h, user, final);
    int u = usage_of (m, site, job, incarnation);
    if (u >= 0 && m->usage[u].final) {
        if (final)
            sprintf (out, "error -7");
        else
            sprintf (out, "charged 0 total %lld released 0 %s", m->usage[u].total,
                     m->usage[u].account < 0 ? "bank:suspense" : names[m->usage[u].account]);
        return;
    }
    struct model_funding f = {h        ? h->user
                              : u >= 0 ? m->usage[u].user
                                       : user,
                              site, h ? h->machine : ask->machine, h ? h->qos : ask->qos,
                              ask->start + ask->seconds};
    int payer = h        ? h->account
                : u >= 0 ? m->usage[u].account
                : t.known ? unheld_payer (m, ask, account, &f, t.total)
                          : -1;
    if (u < 0) {
        u = m->usages++;
        m->usage[u] = (struct model_usage){.site = site,
                                           .account = payer,
                                           .user = f.user,
                                           .job = job,
                                           .incarnation = incarnation};
    }
    if (t.quoted)
        model_pin_use (m, ask);
    long long x = t.total > m->usage[u].total ? t.total - m->usage[u].total : 0;
    m->charge[m->charges] = (struct model_charge){.site = site, .usage = u, .amount = x};
    pay (m, h, payer, &f, x);
    m->charges++;
    m->usage[u].total += x;
    m->usage[u].final = final;
    m->usage[u].due = final && ask->site_failed ? due (m, ask, m->usage[u].total) : 0;
    if (final && h)
        released = close_hold (m, h);
    sprintf (out, "charged %lld total %lld released %lld %s", x, m->usage[u].total, released,
             payer < 0 ? "bank:suspense" : names[payer]);
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

/* ---- corrections ---- */

/* Shares of an account's credits that are there and free; 0, and the error, when there are too few. */
static int shares (struct model *m, int account, int only, long long amount, int *alloc,
                   long long *part, char *out)
{
    int list[M_ALLOCS], n = sorted (m, account, list), count = 0;
    bool shut = model_overdrawn (m, account) || m->debt[m->project[account]] < 0;
    for (int i = 0; i < n && amount > 0 && !shut; i++) {
        struct model_alloc *a = &m->alloc[list[i]];
        long long have = a->posted - a->held;
        bool meant = only >= 0 ? list[i] == only : a->begin <= m->now;
        if (!meant || a->end <= m->now || have <= 0)
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

void model_withdraw (struct model *m, int account, int only, long long amount, char *out)
{
    int alloc[M_ALLOCS];
    long long part[M_ALLOCS];
    if (amount <= 0) {
        sprintf (out, "error -1");
        return;
    }
    if (not_open (m, account, out))
        return;
    int n = shares (m, account, only, amount, alloc, part, out);
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
    return !early && *end <= a->end && *begin < *end && *end > m->now;
}

static bool is_below (const struct model *m, int to, int from)
{
    for (; to >= 0; to = m->parent[to])
        if (to == from)
            return true;
    return false;
}

static void move (struct model *m, int from, int to, int only, long long amount, bool split,
                  long long begin, long long end, char *out)
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
    int n = shares (m, from, only, amount, alloc, part, out);
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
        struct model_alloc *fresh = alloc_new (m, to, b, e, part[i], a->grant, &a->scope);
        fresh->at_once = a->at_once && !begin;
        a->posted -= part[i];
        a->granted -= part[i];
        if (b <= m->now)
            repay (m, fresh, part[i]);
        sprintf (i ? out + strlen (out) : out, "%salloc.%lld", i ? "," : "done ", fresh->id);
    }
}

void model_transfer (struct model *m, int from, int to, int alloc, long long amount, char *out)
{
    move (m, from, to, alloc, amount, false, 0, 0, out);
}

void model_split (struct model *m, int from, int to, int alloc, long long amount, long long begin,
                  long long end, char *out)
{
    move (m, from, to, alloc, amount, true, begin, end, out);
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
            if (c->leg[i].alloc < 0) {
                m->suspense -= x;
                continue;
            }
            struct model_alloc *a = &m->alloc[c->leg[i].alloc];
            a->posted += x;
            a->settled -= x;
            repay (m, a, x);
            ended (m, a);
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
