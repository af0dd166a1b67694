/* The model's other half: what agencies and operators do, quotes and reconciliation. */
#include <assert.h>
#include <stdio.h>

#include "tests/prop/bank/model_i.h"

void model_carry (struct model *m, int alloc, long long cap, long long end, char *out)
{
    struct model_alloc *old = &m->alloc[alloc], *fresh = &m->alloc[m->allocs];
    long long free = old->posted - old->held;
    if (cap < 0 || m->closed[old->account]) {
        sprintf (out, cap < 0 ? "error -1" : "error -2");
        return;
    }
    if (end <= old->end || old->end <= m->now || free <= 0 || model_overdrawn (m, old->account)) {
        sprintf (out, "error -7");
        return;
    }
    long long amount = cap && cap < free ? cap : free;
    m->allocs++;
    assert (m->allocs < M_ALLOCS);
    *fresh = (struct model_alloc){.account = old->account,
                                  .id = m->next_alloc++,
                                  .begin = old->begin,
                                  .end = end,
                                  .at_once = old->at_once,
                                  .posted = amount,
                                  .granted = amount,
                                  .grant = old->grant,
                                  .from = old->from,
                                  .giver = old->giver,
                                  .scope = old->scope};
    old->posted -= amount;
    old->granted -= amount;
    if (fresh->begin <= m->now)
        model_repay (m, fresh, amount);
    sprintf (out, "done alloc.%lld", fresh->id);
}

void model_close (struct model *m, int account, char *out)
{
    int list[M_ALLOCS], n = model_sorted (m, account, list);
    if (!m->account_is[account] || m->closed[account]) {
        sprintf (out, m->account_is[account] ? "error -7" : "error -2");
        return;
    }
    for (int i = 0; i < n; i++)
        if (m->alloc[list[i]].begin <= m->now)
            model_repay (m, &m->alloc[list[i]], m->alloc[list[i]].posted);
    m->closed[account] = true;
    for (int i = 0; i < n; i++) {
        struct model_alloc *a = &m->alloc[list[i]];
        long long free = a->end > m->now && a->posted > a->held ? a->posted - a->held : 0;
        model_ended (m, a);
        a->granted -= free; /* what comes back later is gone otherwise */
        m->returned -= free;
    }
    sprintf (out, "done account.%lld", m->account_id[account]);
}

void model_reopen (struct model *m, int account, char *out)
{
    if (!m->account_is[account] || !m->closed[account]) {
        sprintf (out, m->account_is[account] ? "error -7" : "error -2");
        return;
    }
    m->closed[account] = false;
    sprintf (out, "done account.%lld", m->account_id[account]);
}

void model_freeze (struct model *m, int what, int which, struct model_actor by, bool undo,
                   char *out)
{
    bool is = what == 0   ? m->user_is[which]
              : what == 1 ? m->account_is[which]
              : what == 2 ? m->project_is[which]
                          : which <= m->grants;
    bool *frozen = what == 0   ? &m->frozen_user[which]
                   : what == 1 ? &m->frozen_account[which]
                   : what == 2 ? &m->frozen_project[which]
                               : &m->frozen_grant[which];
    if (!is || *frozen != undo) {
        sprintf (out, is ? "error -3" : "error -2");
        return;
    }
    *frozen = !undo;
    m->froze[what][which] = by.user >= 0 ? by.user : by.agency >= 0 ? M_USERS + by.agency : -1;
    sprintf (out, "done");
}

void model_project (struct model *m, int project, int parent, int agency, char *out)
{
    if (m->project_is[project] || (parent >= 0 && !m->project_is[parent])) {
        sprintf (out, m->project_is[project] ? "error -3" : "error -2");
        return;
    }
    m->project_is[project] = true;
    m->parent[project] = parent;
    m->maker[project] = agency;
    m->project_id[project] = m->next_project++;
    sprintf (out, "done project.%lld", m->project_id[project]);
}

void model_move (struct model *m, int project, int parent, char *out)
{
    bool loop = false;
    if (!m->project_is[project] || (parent >= 0 && !m->project_is[parent])) {
        sprintf (out, "error -2");
        return;
    }
    for (int p = parent; p >= 0; p = m->parent[p])
        loop = loop || p == project;
    if (loop || m->parent[project] == parent) {
        sprintf (out, loop ? "error -7" : "error -3");
        return;
    }
    m->parent[project] = parent;
    sprintf (out, "done project.%lld", m->project_id[project]);
}

void model_rename (struct model *m, int account, int name, char *out)
{
    int owner = name >= 0 ? m->name_of[name] - 1 : name == -1 ? account : -2 - name;
    bool has = m->account_is[account] && m->renamed[account] == (name < 0 ? 0 : name + 1);
    bool none = owner < 0 || !m->account_is[owner];
    if (!m->account_is[account] || m->closed[account]) {
        sprintf (out, m->account_is[account] ? "error -7" : "error -2");
        return;
    }
    if (!none && (owner != account || has)) {
        sprintf (out, "error -3");
        return;
    }
    m->renamed[account] = name < 0 ? 0 : name + 1;
    if (name >= 0)
        m->name_of[name] = account + 1;
    sprintf (out, "done account.%lld", m->account_id[account]);
}

void model_user (struct model *m, int user, char *out)
{
    if (m->user_is[user]) {
        sprintf (out, "error -3");
        return;
    }
    m->user_is[user] = true;
    sprintf (out, "done user.%lld", m->next_user++);
}

void model_funder (struct model *m, int funder, char *out)
{
    if (m->funder_is[funder]) {
        sprintf (out, "error -3");
        return;
    }
    m->funder_is[funder] = true;
    sprintf (out, "done funder.%lld", m->next_funder++);
}

void model_account (struct model *m, int account, int project, const struct model_scope *users,
                    char *out)
{
    if (!m->project_is[project] || m->account_is[account]) {
        sprintf (out, m->project_is[project] ? "error -3" : "error -2");
        return;
    }
    m->account_is[account] = true;
    m->account_id[account] = m->next_account++;
    m->project[account] = project;
    m->users[account] = *users;
    sprintf (out, "done account.%lld", m->account_id[account]);
}

void model_account_users (struct model *m, int account, const struct model_scope *users, char *out)
{
    if (!m->account_is[account] || m->closed[account]) {
        sprintf (out, m->closed[account] ? "error -7" : "error -2");
        return;
    }
    m->users[account] = *users;
    sprintf (out, "done account.%lld", m->account_id[account]);
}

void model_member (struct model *m, int user, int project, bool lead, bool remove, int by,
                   char *out)
{
    bool is = m->member[user][project], same = is && m->lead[user][project] == lead;
    if (!m->user_is[user] || !m->project_is[project]) {
        sprintf (out, "error -2");
        return;
    }
    int leads = 0;
    for (int u = 0; u < M_USERS; u++)
        leads += m->member[u][project] && m->lead[u][project];
    if (by == user && is && m->lead[user][project] && (remove || !lead) && leads == 1) {
        sprintf (out, "error -7");
        return;
    }
    if (remove ? !is : same) {
        sprintf (out, remove ? "error -2" : "error -3");
        return;
    }
    m->member[user][project] = !remove;
    m->lead[user][project] = !remove && lead;
    if (!remove)
        m->member_id[user][project] = m->next_member++;
    sprintf (out, "done membership.%lld", m->member_id[user][project]);
}

void model_role (struct model *m, int user, bool manager, bool remove, char *out)
{
    bool *role = manager ? &m->manager[user] : &m->auditor[user];
    if (!m->user_is[user] || *role != remove) {
        sprintf (out, m->user_is[user] ? "error -3" : "error -2");
        return;
    }
    *role = !remove;
    sprintf (out, "done");
}

/* Whether one can be come to from the other along fallbacks. */
static bool leads_to (const struct model *m, int from, int to, int steps)
{
    if (from == to)
        return true;
    for (int i = 0; steps > 0 && i < m->fallbacks[from]; i++)
        if (leads_to (m, m->fallback[from][i].account, to, steps - 1))
            return true;
    return false;
}

static int longest (const struct model *m, int account)
{
    int most = 0;
    for (int i = 0; i < m->fallbacks[account]; i++) {
        int below = longest (m, m->fallback[account][i].account);
        most = below > most ? below : most;
    }
    return most + 1;
}

void model_fallbacks (struct model *m, int account, const int *fallback, const int *site,
                      const int *qos, int count, char *out)
{
    for (int i = 1; i < count; i++) /* whatever name it goes by */
        if (fallback[i] == fallback[0] && site[i] == site[0]) {
            sprintf (out, "error -1");
            return;
        }
    if (!m->account_is[account] || m->closed[account]) {
        sprintf (out, m->closed[account] ? "error -7" : "error -2");
        return;
    }
    for (int i = 0; i < count; i++) {
        bool loop = leads_to (m, fallback[i], account, 3);
        bool none = m->closed[fallback[i]] || !m->account_is[fallback[i]];
        if (loop || none || longest (m, fallback[i]) > 4) {
            sprintf (out, loop ? "error -7" : none ? "error -2" : "error -6");
            return;
        }
    }
    for (int i = 0; i < count; i++) {
        m->fallback[account][i].account = fallback[i];
        m->fallback[account][i].site = site[i];
        m->fallback[account][i].qos = qos[i];
    }
    m->fallbacks[account] = count;
    /* No circle, however long, can have come about. */
    assert (longest (m, account) <= M_ACCOUNTS);
    sprintf (out, "done account.%lld", m->account_id[account]);
}

void model_rate (struct model *m, int site, const struct model_card *card, char *out)
{
    struct model_card *fresh = &m->card[site][m->cards[site]];
    if (card->from && card->from <= m->now) { /* half a second before its tick */
        sprintf (out, "error -1");
        return;
    }
    assert (m->cards[site] < M_CARDS - 1);
    *fresh = *card;
    fresh->from = card->from ? card->from : m->now;
    sprintf (out, "done s%d.%d", site, ++m->cards[site]);
}

void model_site (struct model *m, int site, bool claims, const struct model_policy *policy,
                 const struct model_given *given, char *out)
{
    m->claims[site] = claims;
    m->policy[site] = *policy;
    m->given[site] = *given;
    sprintf (out, "done");
}

/* Who would pay for one job now; -1: nobody. */
static int payer_of (const struct model *m, const struct model_ask *ask, int account, int user,
                     const struct model_card *card)
{
    struct model_candidate list[M_ACCOUNTS];
    bool frozen = m->account_is[account] && model_may_use (m, account, user) &&
                  model_frozen (m, account, user);
    int cans =
        m->account_is[account] && !frozen ? model_candidates (m, account, ask->site, list) : 0;
    for (int k = 0; k < cans; k++) {
        struct model_ask job = *ask;
        struct model_terms t;
        long long shortfall;
        job.qos = list[k].qos >= 0 ? list[k].qos : ask->qos;
        struct model_funding f = {user, job.site, job.machine, job.qos, m->now};
        if (model_terms (card, &job, true, &t) &&
            !model_cannot (m, list[k].account, &f, model_price (m, &t, &job, true), &shortfall))
            return list[k].account;
    }
    return -1;
}

void model_quote (struct model *m, const struct model_ask *ask, int count, int account, int user,
                  bool reusable, long long keep, char *out)
{
    struct model_pin *pin = &m->pin[m->pins];
    struct model_terms t[M_SITES];
    long long total = 0, amount[M_SITES];
    *pin = (struct model_pin){.user = user,
                              .account = m->account_is[account] ? account : -1,
                              .reusable = reusable,
                              .expires = m->now + keep};
    for (int i = 0; i < count; i++) {
        const struct model_card *card =
            model_card_at (m, ask[i].site, m->now, &pin->card[ask[i].site]);
        if (!card || !model_terms (card, &ask[i], true, &t[i])) {
            sprintf (out, "error -7");
            return;
        }
        total += amount[i] = model_price (m, &t[i], &ask[i], true);
    }
    m->pins++;
    assert (m->pins < M_PINS);
    int n = sprintf (out, "quote.%d total %lld", m->pins, total);
    for (int i = 0; i < count; i++) {
        int payer = payer_of (m, &ask[i], account, user, t[i].card);
        n += sprintf (out + n, " %lld:%s", amount[i],
                      payer < 0 ? "" : model_account_name (m, payer));
    }
}

void model_quote_cancel (struct model *m, long long quote, char *out)
{
    struct model_pin *pin = quote <= m->pins ? &m->pin[quote - 1] : NULL;
    int code = 0;
    if (!pin)
        code = -2;
    else if (pin->cancelled)
        code = -3;
    else if ((pin->used && !pin->reusable) || pin->expires <= m->now)
        code = -7;
    if (code) {
        sprintf (out, "error %d", code);
        return;
    }
    pin->cancelled = true;
    pin->cancelled_at = m->now;
    sprintf (out, "done quote.%lld", quote);
}

void model_recon (struct model *m, int site, const struct model_row *found, int count,
                  unsigned kinds, long long from, long long to, char *out)
{
    int opened = 0, open = 0, gone = 0, before = m->rows;
    bool seen[M_ROWS] = {false};
    for (int i = 0; i < count; i++) {
        int r = before - 1;
        while (r >= 0 && (m->row[r].site != site || m->row[r].kind != found[i].kind ||
                          m->row[r].job != found[i].job))
            r--;
        bool same = r >= 0 && m->row[r].amount == found[i].amount;
        if (r >= 0 && (m->row[r].state == M_OPEN || (m->row[r].state == M_CLOSED && same))) {
            seen[r] = true;
            open += m->row[r].state == M_OPEN;
        } else {
            m->row[m->rows] = found[i];
            m->row[m->rows].site = site;
            m->row[m->rows++].state = M_OPEN;
            assert (m->rows < M_ROWS);
            opened++;
        }
    }
    for (int r = 0; r < before; r++)
        if (m->row[r].site == site && m->row[r].state == M_OPEN && !seen[r] &&
            m->row[r].since >= from && m->row[r].since < to && kinds & 1u << m->row[r].kind) {
            m->row[r].state = M_GONE;
            gone++;
        }
    sprintf (out, "opened %d open %d gone %d", opened, open, gone);
}

void model_recon_set (struct model *m, long long row, bool close, bool op_known, char *out)
{
    if (row > m->rows || (close && !op_known && m->row[row - 1].state == M_OPEN)) {
        sprintf (out, "error -2");
        return;
    }
    if (m->row[row - 1].state != M_OPEN) {
        sprintf (out, "error -7");
        return;
    }
    if (close)
        m->row[row - 1].state = M_CLOSED;
    sprintf (out, "done row.%lld", row);
}
