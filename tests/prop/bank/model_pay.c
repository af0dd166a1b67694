/* The model: who pays, in which order; what ends, what is owed, what repays. */
#include "tests/prop/bank/model_i.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const char *const names[M_ACCOUNTS] = {"a0", "a1", "a2", "a3",  "a4",  "a5", "a6",
                                              "a7", "a8", "a9", "a10", "a11", "a12"};

static const char *const renames[M_RENAMES] = {
    "n0",  "n1",  "n2",  "n3",  "n4",  "n5",  "n6",  "n7",  "n8",  "n9",  "n10", "n11",
    "n12", "n13", "n14", "n15", "n16", "n17", "n18", "n19", "n20", "n21", "n22", "n23"};

const char *model_new_name (int name)
{
    return renames[name];
}

const char *model_first_name (int account)
{
    return names[account];
}

const char *model_account_name (const struct model *m, int account)
{
    return m->renamed[account] ? renames[m->renamed[account] - 1] : names[account];
}

const char *model_any_name (const struct model *m, int account, unsigned luck)
{
    const char *list[M_RENAMES + 1] = {names[account]};
    unsigned n = 1;
    for (int i = 0; i < M_RENAMES; i++)
        if (m->name_of[i] == account + 1)
            list[n++] = renames[i];
    return luck % 4 ? model_account_name (m, account) : list[luck / 4 % n];
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
int model_sorted (const struct model *m, int account, int *out)
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

bool model_may_use (const struct model *m, int account, int user)
{
    bool is = member (m, user, account);
    return admits (&m->users[account], M_USER, user, is, is);
}

static bool valid (const struct model_alloc *a, long long at)
{
    return a->begin <= at && at < a->end;
}

bool model_usable (const struct model *m, const struct model_alloc *a,
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

bool model_frozen (const struct model *m, int account, int user)
{
    bool is = m->frozen_account[account] || (user >= 0 && m->frozen_user[user]);
    for (int p = m->project[account]; p >= 0; p = m->parent[p])
        is = is || m->frozen_project[p];
    return is;
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
    bool any_valid = false, any_usable = false, any_frozen = false;
    *shortfall = amount;
    if (!model_may_use (m, account, f->user))
        return member (m, f->user, account) ? "NotUser" : "NotMember";
    if (m->closed[account])
        return "AccountClosed";
    if (model_frozen (m, account, f->user))
        return "Frozen";
    for (int i = 0; i < m->allocs; i++) {
        const struct model_alloc *a = &m->alloc[i];
        if (a->account != account)
            continue;
        any_valid = any_valid || valid (a, f->at);
        bool frozen = a->grant && m->frozen_grant[a->grant];
        any_usable = any_usable || (model_usable (m, a, f) && !frozen);
        any_frozen = any_frozen || (model_usable (m, a, f) && frozen && model_room (a) > 0);
        if ((model_usable (m, a, f) && !frozen) || model_room (a) < 0)
            have += model_room (a);
    }
    long long below = 0;
    for (int i = 0; i < m->allocs; i++)
        if (m->alloc[i].account == account && model_room (&m->alloc[i]) < 0)
            below -= model_room (&m->alloc[i]);
    *shortfall = (amount - have < below ? below : amount - have) + debt;
    if (model_overdrawn (m, account))
        return "AccountOverdrawn";
    if (debt)
        return "ProjectInDebt";
    if (amount <= (have > 0 ? have : 0))
        return NULL;
    return any_frozen   ? "Frozen"
           : any_usable ? "InsufficientFunds"
           : any_valid  ? "OutOfScope"
                        : "NoAllocation";
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
void model_repay (struct model *m, struct model_alloc *from, long long most)
{
    int list[M_ALLOCS], n = model_sorted (m, from->account, list), p = m->project[from->account];
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
bool model_ended (struct model *m, struct model_alloc *a)
{
    int p = m->project[a->account];
    if (a->end > m->now && !m->closed[a->account])
        return false;
    if (a->posted > a->held) {
        *(a->end > m->now ? &m->returned : &m->expired) += a->posted - a->held;
        a->posted = a->held;
        return true;
    }
    if (a->posted >= 0 || a->held)
        return false;
    if (!m->debt_is[p]) { /* an account and its allocation */
        m->debt_is[p] = true;
        m->debt_alloc[p] = m->next_alloc++;
        m->next_account++;
    }
    m->debt[p] += a->posted;
    a->posted = 0;
    return true;
}
