/* The model: holds, alone and in groups, and what makes them longer. */
#include "tests/prop/bank/model_i.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

int model_usage_of (const struct model *m, int site, long long job, long long incarnation)
{
    for (int i = 0; i < m->usages; i++)
        if (m->usage[i].site == site && m->usage[i].job == job &&
            m->usage[i].incarnation == incarnation)
            return i;
    return -1;
}

int model_open_hold_of (const struct model *m, int site, long long job, long long incarnation)
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
    int mine[M_ALLOCS], k = model_sorted (m, h->account, mine);
    long long left = amount;
    for (int i = 0; i < k && left > 0; i++) {
        struct model_alloc *a = &m->alloc[mine[i]];
        bool frozen = a->grant && m->frozen_grant[a->grant];
        if (!model_usable (m, a, f) || frozen || model_room (a) <= 0)
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

struct model_terms model_hold_terms (const struct model *m, const struct model_hold *h, bool hold)
{
    bool missing;
    struct model_terms t = {.card = &m->card[h->site][h->card - 1],
                            .qos = h->qos_rate,
                            .class = h->class_rate,
                            .group = h->group_rate,
                            .extra = h->extra};
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
    struct model_terms t = model_hold_terms (m, h, true);
    struct model_ask longer = hold_ask (h);
    longer.seconds = seconds;
    long long whole = model_price (m, &t, &longer, true);
    long long more = whole > h->amount ? whole - h->amount : 0;
    const struct model_signature *s = &h->signature;
    struct model_ask own = {.site = h->site, .job = h->job, .incarnation = h->incarnation};
    if (s->is && seconds > s->seconds) {
        sprintf (out, "refused BeyondSigned");
        return;
    }
    if (s->is && s->cost_max &&
        h->amount + more + model_spent (m, s, h->user, &own) > s->cost_max) {
        sprintf (out, "refused CostExceeded");
        return;
    }
    struct model_funding f = {h->user, h->site, h->machine, h->qos,
                              m->now > h->start ? m->now : h->start};
    const char *why = model_cannot (m, h->account, &f, more, &shortfall);
    if (why) {
        sprintf (out, "refused %s %s:%s:%lld", why, model_account_name (m, h->account), why,
                 shortfall);
        return;
    }
    place (m, h, &f, more);
    h->amount += more;
    h->seconds = seconds;
    sprintf (out, "extended hold.%lld %lld %s%s", hold, h->amount,
             model_account_name (m, h->account), h->account != h->asked ? " fallback" : "");
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
static bool forbidden (const struct model *m, const struct model_ask *all, int at, int user,
                       char *out)
{
    const struct model_ask *ask = &all[at];
    const char *why;
    struct model_terms t;
    int version;
    if (ask->procs < 1 || ask->seconds < 1) {
        sprintf (out, "error -1");
        return true;
    }
    int u = model_usage_of (m, ask->site, ask->job, ask->incarnation);
    const struct model_card *card = model_card_of (m, ask, user, m->now, &version, &why);
    if (!why && !model_terms (card, ask, true, &t))
        why = "NoRate";
    if (!why && model_open_hold_of (m, ask->site, ask->job, ask->incarnation) >= 0)
        why = "HoldExists";
    if (!why && ask->claimed && !m->claims[ask->site])
        why = "NotSigned";
    if (!why && u >= 0 && m->usage[u].final)
        why = "JobClosed";
    if (!why && model_beyond (m, ask))
        why = "BeyondSigned";
    if (!why && ask->signature.is)
        why = model_unsigned (m, all, at, user, m->now);
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
                              int asked, int user, long long most, long long *shortfall)
{
    const char *why = NULL;
    long long total = 0;
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
                                 .qos_rate = t.qos,
                                 .class_rate = t.class,
                                 .group_rate = t.group,
                                 .extra = t.extra,
                                 .procs = job.procs,
                                 .seconds = job.seconds,
                                 .job = job.job,
                                 .incarnation = job.incarnation,
                                 .start = job.start > m->now ? job.start : m->now,
                                 .pe = job.pe,
                                 .signature = job.signature,
                                 .amount = model_price (m, &t, &job, true),
                                 .open = true};
        memcpy (h->nodes, job.nodes, sizeof (h->nodes));
        total += h->amount;
        if (total > most) {
            why = "CostExceeded";
            continue;
        }
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

/* What the signed job may still cost; INT64_MAX: no bound. */
static long long left (const struct model *m, const struct model_ask *ask, int user)
{
    const struct model_signature *s = &ask->signature;
    if (!s->is || !s->cost_max)
        return INT64_MAX;
    long long spent = model_spent (m, s, user, NULL);
    return spent < s->cost_max ? s->cost_max - spent : 0;
}

/* What a site says that memory is worth counts as far as it was registered. */
static void clip (const struct model *m, struct model_ask *ask)
{
    long long most = model_most_pe (m, ask->site, ask->procs, ask->memory);
    if (ask->signature.is && ask->pe > most)
        ask->pe = most;
}

void model_holds (struct model *m, const struct model_ask *given, int count, int account, int user,
                  char *out)
{
    struct model_ask ask[M_GROUP];
    for (int i = 0; i < count; i++) {
        ask[i] = given[i];
        clip (m, &ask[i]);
    }
    struct model_candidate list[M_ACCOUNTS];
    int n = model_candidates (m, account, ask[0].site, list), payer = -1;
    char refusal[1024] = "", code[64] = "";
    long long shortfall;
    assert (m->holds + count < M_HOLDS);
    long long total = 0, most = left (m, &ask[0], user);
    for (int i = 0; i < count; i++) {
        if (forbidden (m, ask, i, user, out))
            return;
        total += own_price (m, &ask[i], user);
    }
    if (total > most) {
        sprintf (out, "refused CostExceeded");
        return;
    }
    if (!m->account_is[account]) {
        sprintf (out, "refused NoAccount %s:NoAccount:%lld", model_account_name (m, account),
                 own_price (m, &ask[0], user));
        return;
    }
    if (model_may_use (m, account, user) && model_frozen (m, account, user)) {
        sprintf (out, "refused Frozen %s:Frozen:%lld", model_account_name (m, account),
                 own_price (m, &ask[0], user));
        return;
    }
    for (int i = 0; i < n && payer < 0; i++) {
        const char *why =
            place_all (m, ask, count, list[i].account, account, user, most, &shortfall);
        if (!why) {
            payer = list[i].account;
        } else {
            sprintf (refusal + strlen (refusal), " %s:%s:%lld",
                     model_account_name (m, list[i].account), why, shortfall);
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
                 m->holds + 1, m->hold[m->holds].amount, model_account_name (m, payer),
                 payer != account ? " fallback" : "", qos >= 0 ? " at " : "",
                 qos < 0    ? ""
                 : qos == 0 ? "q0"
                            : "q1");
    }
}
