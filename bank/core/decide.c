/* The door: what operations there are, keys and answers given before (rule I1), then the operation. All of this folder
 * is called from here, and nothing of it calls back. */
#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "bank/core/ledger_impl.h"

static void decide_state (struct ledger_view *view, const struct ledger_request *req,
                          struct ledger_outcome *out)
{
    out->note = req->state.text;
    out->done.id = arena_printf (view->arena, "op.%lld", (long long)view->next.op);
}

/* A member of the request that is of that type. */
#define MEMBER(of, member, type)                                                                   \
    {                                                                                              \
        OF_##of, offsetof (struct ledger_request, member) *                                        \
                     _Generic(((struct ledger_request *)0)->member, type : 1)                      \
    }
#define NAME(of, member) MEMBER (of, member, const char *)
#define NUMBER(of, member) MEMBER (of, member, int64_t)

static const struct operation operation[] = {
    [LEDGER_HOLD] = {"hold", decide_hold, .daily = true},
    [LEDGER_CHARGE] = {"charge", decide_charge, .daily = true},
    [LEDGER_RELEASE] = {"release", decide_release, .daily = true,
                        .needs = {NAME (HOLD, release.hold_id), NAME (SITE, release.site)}},
    [LEDGER_DEPOSIT] = {"deposit", decide_deposit, .manager = true,
                        .agency = {NUMBER (GRANT, deposit.grant_id)},
                        .needs = {NUMBER (GRANT, deposit.grant_id),
                                  NAME (ACCOUNT, deposit.account)}},
    [LEDGER_PROJECT_CREATE] = {"project-create", decide_project, .manager = true,
                               .lead = NAME (PROJECT, project.parent),
                               .agency = {NAME (PROJECT, project.parent)},
                               .needs = {NAME (PROJECT, project.name),
                                         NAME (PROJECT, project.parent)}},
    [LEDGER_USER_CREATE] = {"user-create", decide_user, .manager = true,
                            .needs = {NAME (PERSON, user.identity)}},
    [LEDGER_MEMBER] = {"member", decide_member, .manager = true,
                       .lead = NAME (PROJECT, member.project),
                       .agency = {NAME (PROJECT, member.project)},
                       .needs = {NAME (PROJECT, member.project), NAME (PERSON, member.identity)}},
    [LEDGER_ACCOUNT_CREATE] = {"account-create", decide_account_create, .manager = true,
                               .lead = NAME (PROJECT, account.project),
                               .agency = {NAME (PROJECT, account.project)},
                               .needs = {NAME (PROJECT, account.project),
                                         NAME (ACCOUNT, account.name)}},
    [LEDGER_ACCOUNT_MODIFY] = {"account-modify", decide_account_modify, .manager = true,
                               .lead = NAME (ACCOUNT, account.name),
                               .agency = {NAME (ACCOUNT, account.name)},
                               .needs = {NAME (ACCOUNT, account.name)}},
    [LEDGER_RATE_SET] = {"rate-set", decide_rate, .manager = true, .agency = {{.of = OF_BANK}},
                         .needs = {NAME (SITE, rate.site)}},
    [LEDGER_STATE] = {"state", decide_state, .daily = true},
    [LEDGER_EXPIRE] = {"expire", decide_expire, .daily = true, .manager = true,
                       .agency = {NUMBER (ALLOC, expire.allocation_id)},
                       .needs = {NUMBER (ALLOC, expire.allocation_id)}},
    [LEDGER_WITHDRAW] = {"withdraw", decide_withdraw, .manager = true,
                         .agency = {NUMBER (ALLOC, withdraw.allocation_id)},
                         .needs = {NAME (ACCOUNT, withdraw.account)}},
    [LEDGER_TRANSFER] = {"transfer", decide_transfer, .manager = true,
                         .agency = {NUMBER (ALLOC, transfer.allocation_id)},
                         .needs = {NAME (ACCOUNT, transfer.from), NAME (ACCOUNT, transfer.to)}},
    [LEDGER_REFUND] = {"refund", decide_refund, .manager = true,
                       .agency = {NUMBER (CHARGE, refund.charge_op)},
                       .needs = {NUMBER (CHARGE, refund.charge_op)}},
    [LEDGER_LIMIT_SET] = {"limit-set", decide_limit, .manager = true,
                          .agency = {NUMBER (ALLOC, limit.allocation_id)},
                          .needs = {NUMBER (ALLOC, limit.allocation_id)}},
    [LEDGER_SITE_SET] = {"site-set", decide_site, .manager = true, .agency = {{.of = OF_BANK}},
                         .needs = {NAME (SITE, site.site)}},
    [LEDGER_HOLD_GROUP] = {"hold-group", decide_hold_group, .daily = true},
    [LEDGER_EXTEND] = {"extend", decide_extend, .daily = true,
                       .needs = {NAME (HOLD, extend.hold_id)}},
    [LEDGER_ACCOUNT_CLOSE] = {"account-close", decide_account_close, .manager = true,
                              .agency = {NAME (WHOLE, close.name)},
                              .needs = {NAME (ACCOUNT, close.name)}},
    [LEDGER_CARRY_FORWARD] = {"carry-forward", decide_carry, .manager = true,
                              .agency = {NUMBER (ALLOC, carry.allocation_id)},
                              .needs = {NUMBER (ALLOC, carry.allocation_id)}},
    [LEDGER_FUNDER_CREATE] = {"funder-create", decide_funder,
                              .needs = {NAME (FUNDER, funder.name)}},
    [LEDGER_GRANT] = {"grant", decide_grant,
                      .needs = {NAME (FUNDER, deposit.funder), NAME (ACCOUNT, deposit.account)}},
    [LEDGER_SPLIT] = {"split", decide_split, .manager = true, .lead = NAME (ACCOUNT, transfer.from),
                      .agency = {NUMBER (ALLOC, transfer.allocation_id)},
                      .needs = {NAME (ACCOUNT, transfer.from), NAME (ACCOUNT, transfer.to)}},
    [LEDGER_ROLE_SET] = {"role-set", decide_role, .manager = true, .agency = {{.of = OF_BANK}},
                         .needs = {NAME (PERSON, role.identity)}},
    [LEDGER_RECON] = {"reconcile", decide_recon, .daily = false},
    [LEDGER_RECON_SET] = {"reconcile-set", decide_recon_set, .daily = false},
    [LEDGER_QUOTE] = {"quote", decide_quote, .daily = true, .asker = true},
    [LEDGER_QUOTE_CANCEL] = {"quote-cancel", decide_quote_cancel, .daily = true, .manager = true,
                             .asker = true, .lead = NUMBER (QUOTE, quote_cancel.id),
                             .needs = {NUMBER (QUOTE, quote_cancel.id)}},
    [LEDGER_BEGIN] = {"begin", decide_begin, .daily = true,
                      .needs = {NUMBER (ALLOC, begin.allocation_id)}},
    [LEDGER_TOLD] = {"told", decide_told, .daily = true,
                     .needs = {NUMBER (ALLOC, told.allocation_id)}},
    [LEDGER_CLOCK] = {"clock-accept", decide_clock, .daily = false},
    [LEDGER_ACCOUNT_REOPEN] = {"account-reopen", decide_account_reopen, .manager = true,
                               .agency = {NAME (WHOLE, close.name)},
                               .needs = {NAME (ACCOUNT, close.name)}},
    [LEDGER_FREEZE] = {"freeze", decide_freeze, .manager = true, .lead = {.of = OF_FROZEN},
                       .agency = {{.of = OF_FROZEN}}},
    [LEDGER_SPLIT_BACK] = {"split-back", decide_split_back, .manager = true,
                           .lead = NUMBER (ALLOC, split_back.allocation_id),
                           .agency = {NUMBER (ALLOC, split_back.allocation_id)},
                           .needs = {NUMBER (ALLOC, split_back.allocation_id)}},
    [LEDGER_GRANT_EXTEND] = {"grant-extend", decide_grant_extend,
                             .agency = {NUMBER (GRANT, award.grant_id)},
                             .needs = {NUMBER (GRANT, award.grant_id)}},
    [LEDGER_GRANT_AMEND] = {"grant-amend", decide_grant_amend,
                            .agency = {NUMBER (GRANT, award.grant_id)},
                            .needs = {NUMBER (GRANT, award.grant_id)}},
    [LEDGER_GRANT_REVOKE] = {"grant-revoke", decide_grant_revoke,
                             .agency = {NUMBER (GRANT, award.grant_id)},
                             .needs = {NUMBER (GRANT, award.grant_id)}},
    [LEDGER_ACCOUNT_RENAME] = {"account-rename", decide_account_rename, .manager = true,
                               .lead = NAME (ACCOUNT, rename.name),
                               .agency = {NAME (ACCOUNT, rename.name)},
                               .needs = {NAME (ACCOUNT, rename.name), NAME (ACCOUNT, rename.to)}},
    [LEDGER_PROJECT_MOVE] = {"project-move", decide_project_move, .manager = true,
                             .agency = {NAME (PROJECT, move.name), NAME (PROJECT, move.parent)},
                             .needs = {NAME (PROJECT, move.name), NAME (PROJECT, move.parent)}},
};
static_assert (sizeof (operation) / sizeof (operation[0]) == LEDGER_KINDS, "a row for each kind");

const struct operation *operation_of (enum ledger_kind kind)
{
    assert ((size_t)kind < LEDGER_KINDS && operation[kind].decide);
    return &operation[kind];
}

const char *ledger_kind_name (enum ledger_kind kind)
{
    return operation_of (kind)->name;
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
    const struct operation *row = operation_of (req->kind);
    *out = (struct ledger_outcome){.operation = row->name,
                                   .site = "",
                                   .job = "",
                                   .note = "",
                                   .text = "",
                                   .effective_at = view->now,
                                   .op_id = view->next.op};
    if (answered_before (view, req, out))
        return;
    if (req->refused.code) {
        outcome_refuse (view, out, req->refused.code, false, "%s", req->refused.text);
        return;
    }
    if (rights_refused (view, req, row, out))
        return;
    out->record = true;
    row->decide (view, req, out);
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
    view->admin |= !operation_of (req->kind)->daily;
}
