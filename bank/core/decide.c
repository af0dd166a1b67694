/* The door: keys and answers given before (rule I1), then the operation. */
#include "bank/core/ledger_impl.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

const char *ledger_kind_name (enum ledger_kind kind)
{
    static const char *const name[] = {
        [LEDGER_HOLD] = "hold",
        [LEDGER_CHARGE] = "charge",
        [LEDGER_RELEASE] = "release",
        [LEDGER_DEPOSIT] = "deposit",
        [LEDGER_PROJECT_CREATE] = "project-create",
        [LEDGER_USER_CREATE] = "user-create",
        [LEDGER_MEMBER] = "member",
        [LEDGER_ACCOUNT_CREATE] = "account-create",
        [LEDGER_ACCOUNT_MODIFY] = "account-modify",
        [LEDGER_RATE_SET] = "rate-set",
        [LEDGER_STATE] = "state",
        [LEDGER_EXPIRE] = "expire",
        [LEDGER_WITHDRAW] = "withdraw",
        [LEDGER_TRANSFER] = "transfer",
        [LEDGER_REFUND] = "refund",
        [LEDGER_LIMIT_SET] = "limit-set",
        [LEDGER_SITE_SET] = "site-set",
        [LEDGER_HOLD_GROUP] = "hold-group",
        [LEDGER_EXTEND] = "extend",
        [LEDGER_ACCOUNT_CLOSE] = "account-close",
        [LEDGER_CARRY_FORWARD] = "carry-forward",
        [LEDGER_FUNDER_CREATE] = "funder-create",
        [LEDGER_GRANT] = "grant",
        [LEDGER_SPLIT] = "split",
        [LEDGER_ROLE_SET] = "role-set",
        [LEDGER_RECON] = "reconcile",
        [LEDGER_RECON_SET] = "reconcile-set",
        [LEDGER_QUOTE] = "quote",
        [LEDGER_QUOTE_CANCEL] = "quote-cancel",
        [LEDGER_BEGIN] = "begin",
        [LEDGER_CLOCK] = "clock-accept",
        [LEDGER_ACCOUNT_REOPEN] = "account-reopen",
        [LEDGER_FREEZE] = "freeze",
        [LEDGER_SPLIT_BACK] = "split-back",
        [LEDGER_GRANT_EXTEND] = "grant-extend",
        [LEDGER_GRANT_AMEND] = "grant-amend",
        [LEDGER_GRANT_REVOKE] = "grant-revoke",
        [LEDGER_ACCOUNT_RENAME] = "account-rename",
        [LEDGER_PROJECT_MOVE] = "project-move",
    };
    assert ((size_t)kind < sizeof (name) / sizeof (name[0]));
    return name[kind];
}

void outcome_refuse (struct ledger_view *view, struct ledger_outcome *out, int code, bool record,
                     const char *fmt, ...)
{
    va_list ap;
    va_start (ap, fmt);
    out->text = arena_vprintf (view->arena, fmt, ap);
    va_end (ap);
    out->code = code;
    out->record = record;
}

static void journal_add (struct journal *j, char layer, int64_t account, int64_t alloc,
                         credit_micro amount)
{
    for (uint32_t i = 0; i < j->legs.count; i++) {
        struct ledger_entry *entry = j->legs.item[i];
        if (entry->layer == layer && entry->allocation_id == alloc) {
            bool over = __builtin_add_overflow (entry->amount, amount, &entry->amount);
            assert (!over);
            return;
        }
    }
    struct ledger_entry *entry = arena_new (j->view->arena, struct ledger_entry);
    *entry = (struct ledger_entry){.layer = layer,
                                   .account_id = account,
                                   .allocation_id = alloc,
                                   .amount = amount,
                                   .effective_at = j->effective_at};
    vec_push (j->view, &j->legs, entry);
}

void journal_move (struct journal *j, char layer, int64_t from_account, int64_t from_alloc,
                   int64_t to_account, int64_t to_alloc, credit_micro amount)
{
    assert (amount >= 0);
    if (amount == 0)
        return;
    journal_add (j, layer, from_account, from_alloc, -amount);
    journal_add (j, layer, to_account, to_alloc, amount);
}

void journal_close (struct journal *j)
{
    uint32_t leg = 0;
    __int128 sum[2] = {0, 0};
    for (uint32_t i = 0; i < j->legs.count; i++) {
        struct ledger_entry *entry = j->legs.item[i];
        if (entry->amount == 0)
            continue;
        entry->op_id = j->view->next.op;
        entry->leg = leg++;
        sum[entry->layer == 'H'] += entry->amount;
        vec_push (j->view, &j->view->entries, entry);
    }
    assert (sum[0] == 0 && sum[1] == 0);
}

/* Over what has no gap any more. */
static void site_ack_advance (struct ledger_site *site)
{
    uint32_t done = 0;
    while (done < site->ahead_count && site->ahead[done] == site->acked + 1) {
        site->acked++;
        done++;
    }
    site->ahead_count -= done;
    memmove (&site->ahead[0], &site->ahead[done], site->ahead_count * sizeof (site->ahead[0]));
}

uint64_t site_ack_note (struct ledger_site *site, uint64_t sequence)
{
    if (sequence <= site->acked)
        return site->acked;
    uint32_t i = 0;
    while (i < site->ahead_count && site->ahead[i] < sequence)
        i++;
    if (i < site->ahead_count && site->ahead[i] == sequence)
        return site->acked;
    /* So far beyond a gap nothing will fill it: the site has long been told that it is there, and has no more of it
     * (site: bank_link's window is far smaller). */
    if (site->ahead_count == LEDGER_AHEAD_MAX) {
        site->acked = site->ahead[0] - 1;
        site_ack_advance (site);
        site->dirty = true;
        return site_ack_note (site, sequence);
    }
    memmove (&site->ahead[i + 1], &site->ahead[i],
             (site->ahead_count - i) * sizeof (site->ahead[0]));
    site->ahead[i] = sequence;
    site->ahead_count++;
    site_ack_advance (site);
    site->dirty = true;
    return site->acked;
}

/* True when the key was used before: the answer is in out. */
static bool answered_before (struct ledger_view *view, const struct ledger_request *req,
                             struct ledger_outcome *out)
{
    const struct ledger_op *op = ledger_op_of (view, req->client, &req->key);
    if (!op)
        return false;
    if (op->kind != req->kind || memcmp (op->hash, req->hash, LEDGER_HASH_BYTES) != 0) {
        outcome_refuse (view, out, ERR_CONFLICT, false,
                        "the key of this %s was used before for another request (op %lld, %s)",
                        ledger_kind_name (req->kind), (long long)op->id,
                        ledger_kind_name (op->kind));
        return true;
    }
    out->replayed = true;
    out->code = op->status;
    out->stored = op->outcome;
    out->stored_len = op->outcome_len;
    if (op->status)
        out->text =
            arena_printf (view->arena, "%.*s", (int)op->outcome_len, (const char *)op->outcome);
    return true;
}

void ledger_decide (struct ledger_view *view, const struct ledger_request *req,
                    struct ledger_outcome *out)
{
    *out = (struct ledger_outcome){
        .site = "", .job = "", .note = "", .text = "", .effective_at = view->now, .op_id = view->next.op};
    if (answered_before (view, req, out))
        return;
    if (req->refused.code) {
        outcome_refuse (view, out, req->refused.code, false, "%s", req->refused.text);
        return;
    }
    if (rights_refused (view, req, out))
        return;
    out->record = true;
    switch (req->kind) {
    case LEDGER_HOLD:
        decide_hold (view, req, out);
        return;
    case LEDGER_CHARGE:
        decide_charge (view, req, out);
        return;
    case LEDGER_RELEASE:
        decide_release (view, req, out);
        return;
    case LEDGER_DEPOSIT:
        decide_deposit (view, req, out);
        return;
    case LEDGER_PROJECT_CREATE:
        decide_project (view, req, out);
        return;
    case LEDGER_USER_CREATE:
        decide_user (view, req, out);
        return;
    case LEDGER_MEMBER:
        decide_member (view, req, out);
        return;
    case LEDGER_ACCOUNT_CREATE:
        decide_account_create (view, req, out);
        return;
    case LEDGER_ACCOUNT_MODIFY:
        decide_account_modify (view, req, out);
        return;
    case LEDGER_STATE:
        out->note = req->state.text;
        out->done.id = arena_printf (view->arena, "op.%lld", (long long)view->next.op);
        return;
    case LEDGER_RATE_SET:
        decide_rate (view, req, out);
        return;
    case LEDGER_EXPIRE:
        decide_expire (view, req, out);
        return;
    case LEDGER_WITHDRAW:
        decide_withdraw (view, req, out);
        return;
    case LEDGER_TRANSFER:
        decide_transfer (view, req, out);
        return;
    case LEDGER_REFUND:
        decide_refund (view, req, out);
        return;
    case LEDGER_LIMIT_SET:
        decide_limit (view, req, out);
        return;
    case LEDGER_SITE_SET:
        decide_site (view, req, out);
        return;
    case LEDGER_HOLD_GROUP:
        decide_hold_group (view, req, out);
        return;
    case LEDGER_EXTEND:
        decide_extend (view, req, out);
        return;
    case LEDGER_ACCOUNT_CLOSE:
        decide_account_close (view, req, out);
        return;
    case LEDGER_CARRY_FORWARD:
        decide_carry (view, req, out);
        return;
    case LEDGER_FUNDER_CREATE:
        decide_funder (view, req, out);
        return;
    case LEDGER_GRANT:
        decide_grant (view, req, out);
        return;
    case LEDGER_SPLIT:
        decide_split (view, req, out);
        return;
    case LEDGER_ROLE_SET:
        decide_role (view, req, out);
        return;
    case LEDGER_RECON:
        decide_recon (view, req, out);
        return;
    case LEDGER_RECON_SET:
        decide_recon_set (view, req, out);
        return;
    case LEDGER_QUOTE:
        decide_quote (view, req, out);
        return;
    case LEDGER_QUOTE_CANCEL:
        decide_quote_cancel (view, req, out);
        return;
    case LEDGER_ACCOUNT_REOPEN:
        decide_account_reopen (view, req, out);
        return;
    case LEDGER_FREEZE:
        decide_freeze (view, req, out);
        return;
    case LEDGER_BEGIN:
        decide_begin (view, req, out);
        return;
    case LEDGER_CLOCK:
        decide_clock (view, req, out);
        return;
    case LEDGER_SPLIT_BACK:
        decide_split_back (view, req, out);
        return;
    case LEDGER_GRANT_EXTEND:
        decide_grant_extend (view, req, out);
        return;
    case LEDGER_GRANT_AMEND:
        decide_grant_amend (view, req, out);
        return;
    case LEDGER_GRANT_REVOKE:
        decide_grant_revoke (view, req, out);
        return;
    case LEDGER_ACCOUNT_RENAME:
        decide_account_rename (view, req, out);
        return;
    case LEDGER_PROJECT_MOVE:
        decide_project_move (view, req, out);
        return;
    case LEDGER_KINDS:
        break;
    }
    assert (!"a kind of operation that does not exist");
}

/* Changes nothing but holds, usages and balances. */
static bool is_daily (enum ledger_kind kind)
{
    return kind == LEDGER_STATE || /* not even these */
           kind == LEDGER_HOLD || kind == LEDGER_CHARGE || kind == LEDGER_RELEASE ||
           kind == LEDGER_EXPIRE || kind == LEDGER_HOLD_GROUP || kind == LEDGER_EXTEND ||
           kind == LEDGER_QUOTE || kind == LEDGER_QUOTE_CANCEL || kind == LEDGER_BEGIN;
}

void ledger_record (struct ledger_view *view, const struct ledger_request *req,
                    const struct ledger_outcome *out, const void *bytes, size_t len)
{
    assert (out->record && !out->replayed);
    struct ledger_op *op = ledger_add_op (view, req->client, &req->key);
    op->id = view->next.op++;
    op->kind = req->kind;
    op->on_behalf = req->on_behalf;
    memcpy (op->hash, req->hash, LEDGER_HASH_BYTES);
    op->site = out->site;
    op->job = out->job;
    op->note = out->note;
    op->effective_at = out->effective_at;
    op->status = out->code;
    op->outcome = arena_memdup (view->arena, bytes, len);
    op->outcome_len = len;
    op->is_new = true;
    view->admin |= !is_daily (req->kind);
}
