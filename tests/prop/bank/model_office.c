/* The model's other half: what agencies and operators do, quotes and reconciliation. */
#include <assert.h>
#include <stdio.h>

#include "tests/prop/bank/model_i.h"

void model_split (struct model *m, int from, int to, long long amount, char *out)
{
    if (m->closed[from] || m->closed[to] || (m->project[from] == 1 && m->project[to] == 0))
        sprintf (out, "error -7");
    else
        model_transfer (m, from, to, amount, out);
}

void model_carry (struct model *m, int alloc, long long cap, long long end, char *out)
{
    struct model_alloc *old = &m->alloc[alloc], *fresh = &m->alloc[m->allocs];
    long long free = old->posted - old->held;
    if (cap < 0 || m->closed[old->account]) {
        sprintf (out, cap < 0 ? "error -1" : "error -2");
        return;
    }
    if (end <= old->end || free <= 0 || model_overdrawn (m, old->account)) {
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
                                  .posted = amount,
                                  .granted = amount,
                                  .grant = old->grant};
    old->posted -= amount;
    old->granted -= amount;
    sprintf (out, "done alloc.%lld", fresh->id);
}

void model_close (struct model *m, int account, char *out)
{
    bool busy = m->closed[account];
    for (int i = 0; i < m->allocs; i++)
        busy = busy || (m->alloc[i].account == account &&
                        (m->alloc[i].held || m->alloc[i].posted < 0));
    if (busy) {
        sprintf (out, "error -7");
        return;
    }
    for (int i = 0; i < m->allocs; i++)
        if (m->alloc[i].account == account) {
            m->alloc[i].granted -= m->alloc[i].posted;
            m->alloc[i].posted = 0;
        }
    m->closed[account] = true;
    sprintf (out, "done account.%lld", m->account_id[account]);
}

void model_member (struct model *m, int user, int project, bool remove, char *out)
{
    bool is = m->member[user][project];
    if (is != remove) {
        sprintf (out, remove ? "error -2" : "error -3");
        return;
    }
    m->member[user][project] = !remove;
    if (!remove)
        m->member_id[user][project] = m->next_member++;
    sprintf (out, "done membership.%lld", m->member_id[user][project]);
}

/* Whether one can be come to from the other along fallbacks. */
static bool leads_to (const struct model *m, int from, int to, int steps)
{
    if (from == to)
        return true;
    for (int i = 0; steps > 0 && i < m->fallbacks[from]; i++)
        if (leads_to (m, m->fallback[from][i], to, steps - 1))
            return true;
    return false;
}

static int longest (const struct model *m, int account)
{
    int most = 0;
    for (int i = 0; i < m->fallbacks[account]; i++) {
        int below = longest (m, m->fallback[account][i]);
        most = below > most ? below : most;
    }
    return most + 1;
}

void model_fallbacks (struct model *m, int account, const int *fallback, int count, char *out)
{
    if (m->closed[account]) {
        sprintf (out, "error -7");
        return;
    }
    for (int i = 0; i < count; i++) {
        bool loop = leads_to (m, fallback[i], account, 3), closed = m->closed[fallback[i]];
        if (loop || closed || longest (m, fallback[i]) > 4) {
            sprintf (out, loop ? "error -7" : closed ? "error -2" : "error -6");
            return;
        }
    }
    for (int i = 0; i < count; i++)
        m->fallback[account][i] = fallback[i];
    m->fallbacks[account] = count;
    /* No circle, however long, can have come about. */
    assert (longest (m, account) <= M_ACCOUNTS);
    sprintf (out, "done account.%lld", m->account_id[account]);
}

void model_rate (struct model *m, int site, long long ppm, char *out)
{
    m->rate[site] = ppm;
    sprintf (out, "done s%d.%d", site, ++m->card[site]);
}

void model_claims (struct model *m, int site, bool claims, char *out)
{
    m->claims[site] = claims;
    sprintf (out, "done");
}

void model_quote (struct model *m, const struct model_ask *ask, int count, int account, int user,
                  bool reusable, bool ended, char *out)
{
    struct model_pin *pin = &m->pin[m->pins];
    long long total = 0;
    int n = 0;
    *pin = (struct model_pin){user, reusable, ended, false, 0, {-1, -1, -1}};
    for (int i = 0; i < count; i++) {
        if (ask[i].procs < 1 || ask[i].seconds < 1) {
            sprintf (out, "error -1");
            return;
        }
        if (m->rate[ask[i].site] < 0) {
            sprintf (out, "error -7");
            return;
        }
        pin->rate[ask[i].site] = m->rate[ask[i].site];
        total += model_price (ask[i].procs, ask[i].seconds, m->rate[ask[i].site]);
    }
    m->pins++;
    assert (m->pins < M_PINS);
    n = sprintf (out, "quote.%d total %lld", m->pins, total);
    for (int i = 0; i < count; i++) {
        int list[M_ACCOUNTS], k = 0, cans = model_candidates (m, account, list);
        long long shortfall, amount = model_price (ask[i].procs, ask[i].seconds,
                                                   m->rate[ask[i].site]);
        while (k < cans && model_cannot (m, list[k], user, amount, &shortfall))
            k++;
        n += sprintf (out + n, " %lld:%s", amount, k < cans ? model_account_name (list[k]) : "");
    }
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
