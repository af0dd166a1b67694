/* The model: who may see and change what, and what is read of the ledger. */
#include <assert.h>
#include <string.h>

#include "tests/prop/bank/model_i.h"

enum { M_PAYERS = M_ACCOUNTS + M_PROJECTS, M_SHARES = 4096, M_KEYS = 8, M_KEY = 24 };

static bool leads (const struct model *m, int user, int project)
{
    for (; project >= 0; project = m->parent[project])
        if (m->lead[user][project])
            return true;
    return false;
}

bool model_may (const struct model *m, int user, int project, bool manager_may)
{
    return (manager_may && m->manager[user]) || (project >= 0 && leads (m, user, project));
}

/* ---- agencies: what they made with what is below it, and what they gave ---- */

bool model_made (const struct model *m, int agency, int project)
{
    if (project < 0 || !m->project_is[project])
        return true;
    for (; project >= 0; project = m->parent[project])
        if (m->maker[project] == agency)
            return true;
    return false;
}

bool model_made_of (const struct model *m, int agency, int account)
{
    return !m->account_is[account] || model_made (m, agency, m->project[account]);
}

bool model_gave (const struct model *m, int agency, int alloc)
{
    return agency < 0 || alloc < 0 || m->alloc[alloc].giver == agency;
}

bool model_gave_grant (const struct model *m, int agency, long long grant)
{
    return grant <= 0 || grant > m->grants || m->grant_funder[grant] == agency;
}

bool model_paid (const struct model *m, int agency, long long charge)
{
    const struct model_charge *c = &m->charge[charge - 1];
    for (int i = 0; i < c->legs; i++)
        if (c->leg[i].alloc < 0 || m->alloc[c->leg[i].alloc].giver != agency)
            return false;
    return true;
}

bool model_pays (const struct model *m, int agency, int account)
{
    int own = 0, all = 0;
    for (int i = 0; i < m->allocs; i++)
        if (m->alloc[i].account == account) {
            all++;
            own += m->alloc[i].giver == agency;
        }
    return model_made_of (m, agency, account) || (all && own == all);
}

bool model_pays_all (const struct model *m, int agency, int account)
{
    for (int i = 0; i < m->allocs; i++)
        if (m->alloc[i].account == account && m->alloc[i].giver != agency &&
            (m->alloc[i].posted || m->alloc[i].held))
            return false;
    return model_pays (m, agency, account);
}

bool model_thaws (const struct model *m, struct model_actor by, int what, int which)
{
    static const int office = -1;
    const bool *frozen = what == 0   ? m->frozen_user
                         : what == 1 ? m->frozen_account
                         : what == 2 ? m->frozen_project
                                     : m->frozen_grant;
    int who = by.user >= 0 ? by.user : by.agency >= 0 ? M_USERS + by.agency : office;
    return !frozen[which] || m->froze[what][which] == who;
}

static bool sees_all (const struct model *m, int user)
{
    return user < 0 || m->manager[user] || m->auditor[user];
}

static bool sees (const struct model *m, int user, int project)
{
    return sees_all (m, user) || m->member[user][project] || leads (m, user, project);
}

static int project_of (const struct model *m, int account)
{
    return account < M_ACCOUNTS ? m->project[account] : account - M_ACCOUNTS;
}

static bool account_seen (const struct model *m, int user, int account)
{
    bool is = account < M_ACCOUNTS ? m->account_is[account] : m->debt_is[account - M_ACCOUNTS];
    return is && sees (m, user, project_of (m, account));
}

/* ---- statements ---- */

static void note (struct model *m, struct model_line *of, long long posted, long long held)
{
    of->posted += posted;
    of->held += held;
    if (posted || held)
        of->at = m->now;
}

void model_note (struct model *m, const char *kind)
{
    struct model_line of[M_PAYERS] = {0};
    for (int i = 0; i < m->allocs; i++) {
        struct model_alloc *a = &m->alloc[i];
        note (m, &of[a->account], a->posted - a->noted_posted, a->held - a->noted_held);
        a->noted_posted = a->posted;
        a->noted_held = a->held;
    }
    for (int p = 0; p < M_PROJECTS; p++) {
        note (m, &of[M_ACCOUNTS + p], m->debt[p] - m->debt_noted[p], 0);
        m->debt_noted[p] = m->debt[p];
    }
    for (int i = 0; i < M_PAYERS; i++)
        if (of[i].at) {
            assert (m->lines < M_LINES);
            of[i].account = i;
            of[i].kind = kind;
            m->line[m->lines++] = of[i];
        }
}

static bool one_of (const char *kind, const char *const *list)
{
    while (*list && strcmp (kind, *list) != 0)
        list++;
    return *list != NULL;
}

void model_statement (const struct model *m, int user, int account, long long from, long long to,
                      FILE *out)
{
    static const char *const comes[] = {
        "deposit",       "grant",      "withdraw",    "transfer",     "split",
        "account-close", "split-back", "grant-amend", "grant-revoke", NULL};
    static const char *const goes[] = {"charge", "refund", NULL};
    long long opening[2] = {0, 0}, closing[2] = {0, 0}, granted = 0, charged = 0;
    if (!account_seen (m, user, account)) {
        fprintf (out, "error -2");
        return;
    }
    for (int i = 0; i < m->lines; i++) {
        const struct model_line *l = &m->line[i];
        if (l->account != account || l->at >= to)
            continue;
        closing[0] += l->posted;
        closing[1] += l->held;
        opening[0] += l->at < from ? l->posted : 0;
        opening[1] += l->at < from ? l->held : 0;
        if (l->at < from)
            continue;
        if (l->posted || l->held)
            fprintf (out, "%s %lld %lld; ", l->kind, l->posted, l->held);
        granted += one_of (l->kind, comes) ? l->posted : 0;
        charged -= one_of (l->kind, goes) ? l->posted : 0;
    }
    fprintf (out, "opening %lld %lld closing %lld %lld granted %lld charged %lld", opening[0],
             opening[1], closing[0], closing[1], granted, charged);
}

/* ---- balances ---- */

void model_balance (const struct model *m, int user, int account, FILE *out)
{
    int list[M_ALLOCS], n = 0;
    if (!account_seen (m, user, account))
        return;
    for (int i = 0; i < m->allocs; i++) { /* by their end, then by number */
        if (m->alloc[i].account != account)
            continue;
        int at = n++;
        for (; at > 0 && m->alloc[list[at - 1]].end > m->alloc[i].end; at--)
            list[at] = list[at - 1];
        list[at] = i;
    }
    for (int i = 0; i < n; i++) {
        const struct model_alloc *a = &m->alloc[list[i]];
        fprintf (out, "alloc.%lld granted %lld settled %lld posted %lld held %lld limit %lld; ",
                 a->id, a->granted, a->settled, a->posted, a->held, a->limit);
    }
    if (n == 0)
        fprintf (out, "empty; ");
}

/* ---- usage ---- */

struct share {
    char key[M_KEYS][M_KEY];
    int usage[M_SHARES];
    int usages;
    long long charged, refunded;
};

static void key_of (const struct model *m, const struct model_charge *c, int alloc, unsigned by,
                    char key[M_KEYS][M_KEY])
{
    const struct model_usage *u = &m->usage[c->usage];
    const struct model_alloc *a = alloc < 0 ? NULL : &m->alloc[alloc];
    memset (key, 0, sizeof (char[M_KEYS][M_KEY]));
    if (by & M_BY_USER)
        snprintf (key[0], M_KEY, u->user < 0 ? "s%d" : "nui://t/user/u%d",
                  u->user < 0 ? u->site : u->user);
    if (by & M_BY_PROJECT && a)
        snprintf (key[1], M_KEY, "p%d", m->project[a->account]);
    if (by & M_BY_SITE)
        snprintf (key[2], M_KEY, "s%d", u->site);
    if (by & M_BY_ACCOUNT)
        snprintf (key[3], M_KEY, "%s", a ? model_account_name (m, a->account) : "bank:suspense");
    if (by & M_BY_FUNDER && a && a->grant)
        snprintf (key[4], M_KEY, "%s", m->grant_funder[a->grant] ? "g" : "f");
    if (by & M_BY_GRANT && a && a->grant)
        snprintf (key[5], M_KEY, "grant.%lld", a->grant);
    if (by & M_BY_QOS && u->qos >= 0)
        snprintf (key[6], M_KEY, "q%d", u->qos);
    if (by & M_BY_MACHINE && u->machine >= 0)
        snprintf (key[7], M_KEY, "m%d", u->machine);
}

/* Finds or makes its place, in the order of keys. */
static struct share *share_of (struct share *list, int *count, char key[M_KEYS][M_KEY])
{
    int at = 0, cmp = -1;
    for (; at < *count; at++) {
        cmp = 0;
        for (int k = 0; k < M_KEYS && cmp == 0; k++)
            cmp = strcmp (list[at].key[k], key[k]);
        if (cmp >= 0)
            break;
    }
    if (at < *count && cmp == 0)
        return &list[at];
    assert (*count < M_SHARES / 8);
    memmove (&list[at + 1], &list[at], (size_t)(*count - at) * sizeof (*list));
    ++*count;
    memset (&list[at], 0, sizeof (*list));
    memcpy (list[at].key, key, sizeof (list[at].key));
    return &list[at];
}

static void share_add (const struct model *m, struct share *list, int *count, int charge, int alloc,
                       unsigned by, long long charged, long long refunded)
{
    const struct model_charge *c = &m->charge[charge];
    char key[M_KEYS][M_KEY];
    key_of (m, c, alloc, by, key);
    struct share *s = share_of (list, count, key);
    int i = 0;
    while (i < s->usages && s->usage[i] != c->usage)
        i++;
    if (i == s->usages) {
        assert (s->usages < M_SHARES);
        s->usage[s->usages++] = c->usage;
    }
    s->charged += charged;
    s->refunded += refunded;
}

/* Suspense is of no project: who sees everything sees it. */
static bool share_seen (const struct model *m, int user, int account, int alloc)
{
    if (alloc < 0)
        return account < 0 && sees_all (m, user);
    return (account < 0 || m->alloc[alloc].account == account) &&
           sees (m, user, m->project[m->alloc[alloc].account]);
}

void model_usage (const struct model *m, int user, int account, long long from, long long to,
                  unsigned by, FILE *out)
{
    static struct share list[M_SHARES / 8 + 1];
    int count = 0;
    for (int i = 0; i < m->charges; i++)
        for (int k = 0; k < m->charge[i].legs; k++)
            if (m->charge[i].at >= from && m->charge[i].at < to &&
                share_seen (m, user, account, m->charge[i].leg[k].alloc))
                share_add (m, list, &count, i, m->charge[i].leg[k].alloc, by,
                           m->charge[i].leg[k].amount, 0);
    for (int i = 0; i < m->refunds; i++)
        if (m->refund[i].at >= from && m->refund[i].at < to &&
            share_seen (m, user, account, m->refund[i].alloc))
            share_add (m, list, &count, m->refund[i].charge, m->refund[i].alloc, by, 0,
                       m->refund[i].amount);
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < M_KEYS; k++)
            fprintf (out, "%s|", list[i].key[k]);
        fprintf (out, "%d charged %lld refunded %lld; ", list[i].usages, list[i].charged,
                 list[i].refunded);
    }
}

/* ---- what waits ---- */

static long long expires (const struct model_hold *h)
{
    return h->start + h->seconds + 600;
}

void model_open_holds (const struct model *m, int user, int account, int site, long long expired,
                       FILE *out)
{
    int list[M_ALLOCS], n = 0;
    for (int i = 0; i < m->holds; i++) {
        const struct model_hold *h = &m->hold[i];
        if (!h->open || expires (h) > expired || (account >= 0 && h->account != account) ||
            (site >= 0 && h->site != site) || !sees (m, user, m->project[h->account]))
            continue;
        assert (n < M_ALLOCS);
        int at = n++;
        for (; at > 0 && expires (&m->hold[list[at - 1]]) > expires (h); at--)
            list[at] = list[at - 1];
        list[at] = i;
    }
    for (int i = 0; i < n; i++) {
        const struct model_hold *h = &m->hold[list[i]];
        long long left = 0;
        for (int k = 0; k < h->legs; k++)
            left += h->kept[k];
        fprintf (out, "hold.%d %s u%d s%d j.%lld %lld %lld %lld; ", list[i] + 1,
                 model_account_name (m, h->account), h->user, h->site, h->job, h->incarnation,
                 h->amount, left);
    }
}

void model_ends (const struct model *m, FILE *out)
{
    int list[M_ALLOCS], n = 0;
    for (int i = 0; i < m->allocs; i++) {
        const struct model_alloc *a = &m->alloc[i];
        if (a->end > m->now || !(a->posted > a->held || (a->posted < 0 && a->held == 0)))
            continue;
        int at = n++;
        for (; at > 0 && m->alloc[list[at - 1]].end > a->end; at--)
            list[at] = list[at - 1];
        list[at] = i;
    }
    for (int i = 0; i < n && i < 256; i++)
        fprintf (out, "alloc.%lld; ", m->alloc[list[i]].id);
}

void model_grant (const struct model *m, long long grant, FILE *out)
{
    long long charged = 0, left = 0;
    for (int i = 0; i < m->allocs; i++)
        if (m->alloc[i].grant == grant) {
            charged += m->alloc[i].settled;
            left += m->alloc[i].posted;
        }
    fprintf (out, "charged %lld shares %lld left %lld", charged, charged, left);
}
