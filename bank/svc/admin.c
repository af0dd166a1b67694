/* Writing calls of agencies and operators. */
#include <string.h>

#include "bank/svc/service_impl.h"

void handle_project_create (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    const Nui__Bank__V1__ProjectCreateRequest *m = (const void *)request;
    struct work *work = write_begin (self, call, request, LEDGER_PROJECT_CREATE, &m->key,
                                     &nui__bank__v1__done_reply__descriptor);
    want_text (work, "the description", m->description, DESCRIPTION_MAX_BYTES);
    want_name (work, "project", m->name);
    if (m->parent[0])
        want_name (work, "project", m->parent);
    work->req.project.name = m->name;
    work->req.project.parent = m->parent;
    work->req.project.description = m->description;
    write_submit (work);
}

void handle_user_create (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    const Nui__Bank__V1__UserCreateRequest *m = (const void *)request;
    struct work *work = write_begin (self, call, request, LEDGER_USER_CREATE, &m->key,
                                     &nui__bank__v1__done_reply__descriptor);
    want_user (work, m->identity);
    work->req.user.identity = m->identity;
    write_submit (work);
}

void handle_member (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    const Nui__Bank__V1__MemberRequest *m = (const void *)request;
    struct work *work = write_begin (self, call, request, LEDGER_MEMBER, &m->key,
                                     &nui__bank__v1__done_reply__descriptor);
    want_name (work, "project", m->project);
    want_user (work, m->identity);
    want_text (work, "role", m->role, 32);
    work->req.member.project = m->project;
    work->req.member.identity = m->identity;
    work->req.member.role = m->role;
    work->req.member.remove = m->remove;
    write_submit (work);
}

/* A name that may be left out. */
static int name_or_none (const char *what, const char *name, struct err *err)
{
    return name[0] ? name_check (what, name, err) : 0;
}

static int account_fallbacks (struct work *work, char **plain, size_t plain_count,
                              Nui__Bank__V1__Fallback **more, size_t more_count, struct err *err)
{
    size_t count = plain_count + more_count;
    if (plain_count > LEDGER_FALLBACKS_MAX || count > LEDGER_FALLBACKS_MAX)
        return err_set (err, ERR_LIMIT, "%zu fallbacks, an account has at most %d", count,
                        LEDGER_FALLBACKS_MAX);
    struct ledger_fallback_ask *list = arena_array (work->arena, count, sizeof (*list));
    for (size_t i = 0; i < count; i++) {
        const Nui__Bank__V1__Fallback *m = i < plain_count ? NULL : more[i - plain_count];
        list[i] = (struct ledger_fallback_ask){m ? m->account : plain[i], m ? m->site : "",
                                               m ? m->qos : ""};
        if (name_check ("fallback account", list[i].account, err) < 0 ||
            name_or_none ("site", list[i].site, err) < 0 ||
            name_or_none ("QoS", list[i].qos, err) < 0)
            return err->code;
    }
    work->req.account.fallbacks = list;
    work->req.account.fallback_count = (uint32_t)count;
    return 0;
}

static int scope_read (struct work *work, const char *kind, const char *name,
                       struct ledger_scope *scope, struct err *err)
{
    if (ledger_scope_parse (kind, name, scope, err) < 0)
        return err->code;
    bool person = scope->kind == LEDGER_SCOPE_USER && strcmp (scope->name, "ANY") != 0 &&
                  strcmp (scope->name, "MEMBERS") != 0;
    return person ? user_check (work, scope->name, err) : 0;
}

static int account_users (struct work *work, char **users, size_t count, struct err *err)
{
    if (count > LEDGER_SCOPES_MAX)
        return err_set (err, ERR_LIMIT, "%zu users, an account names at most %d", count,
                        LEDGER_SCOPES_MAX);
    struct ledger_scope *scope = arena_array (work->arena, count, sizeof (*scope));
    for (size_t i = 0; i < count; i++)
        if (scope_read (work, "user", users[i], &scope[i], err) < 0)
            return err->code;
    work->req.account.scopes = (struct ledger_scopes){scope, (uint32_t)count};
    return 0;
}

int scopes_read (struct work *work, Nui__Bank__V1__Scope **scopes, size_t count,
                 struct ledger_scopes *out, struct err *err)
{
    if (count > LEDGER_SCOPES_MAX)
        return err_set (err, ERR_LIMIT, "%zu scopes, an allocation has at most %d", count,
                        LEDGER_SCOPES_MAX);
    struct ledger_scope *scope = arena_array (work->arena, count, sizeof (*scope));
    for (size_t i = 0; i < count; i++)
        if (scope_read (work, scopes[i]->kind, scopes[i]->name, &scope[i], err) < 0)
            return err->code;
    *out = (struct ledger_scopes){scope, (uint32_t)count};
    return 0;
}

void handle_account_create (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    const Nui__Bank__V1__AccountCreateRequest *m = (const void *)request;
    struct work *work = write_begin (self, call, request, LEDGER_ACCOUNT_CREATE, &m->key,
                                     &nui__bank__v1__done_reply__descriptor);
    want_name (work, "account", m->name);
    want_name (work, "project", m->project);
    if (good (work))
        account_fallbacks (work, m->fallbacks, m->n_fallbacks, m->site_fallbacks,
                           m->n_site_fallbacks, &work->err);
    if (good (work))
        account_users (work, m->users, m->n_users, &work->err);
    work->req.account.name = m->name;
    work->req.account.project = m->project;
    write_submit (work);
}

void handle_account_modify (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    const Nui__Bank__V1__AccountModifyRequest *m = (const void *)request;
    struct work *work = write_begin (self, call, request, LEDGER_ACCOUNT_MODIFY, &m->key,
                                     &nui__bank__v1__done_reply__descriptor);
    want_name (work, "account", m->name);
    if (good (work))
        account_fallbacks (work, m->fallbacks, m->n_fallbacks, m->site_fallbacks,
                           m->n_site_fallbacks, &work->err);
    if (good (work))
        account_users (work, m->users, m->n_users, &work->err);
    if (good (work) &&
        ((m->keep_fallbacks && work->req.account.fallback_count) || (!m->set_users && m->n_users)))
        err_set (&work->err, ERR_INVALID, "account: a list that is to be kept is there too");
    work->req.account.name = m->name;
    work->req.account.project = "";
    work->req.account.keep_fallbacks = m->keep_fallbacks;
    work->req.account.keep_scopes = !m->set_users;
    write_submit (work);
}

void handle_deposit (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    const Nui__Bank__V1__DepositRequest *m = (const void *)request;
    struct work *work = write_begin (self, call, request, LEDGER_DEPOSIT, &m->key,
                                     &nui__bank__v1__deposit_reply__descriptor);
    want_name (work, "account", m->account);
    want_text (work, "the description", m->description, DESCRIPTION_MAX_BYTES);
    if (good (work))
        scopes_read (work, m->scopes, m->n_scopes, &work->req.deposit.scopes, &work->err);
    want_number (work, "grant", m->grant_id, true, &work->req.deposit.grant_id);
    want_text (work, "the reference", m->reference, DESCRIPTION_MAX_BYTES);
    work->req.deposit.reference = m->reference;
    work->req.deposit.again = m->again;
    work->req.deposit.account = m->account;
    work->req.deposit.amount = m->amount_micro;
    work->req.deposit.valid_from = m->valid_from_us;
    work->req.deposit.valid_to = m->valid_to_us;
    work->req.deposit.description = m->description;
    write_submit (work);
}

static int factors_read (struct work *work, const Nui__Bank__V1__RateSetRequest *m, struct err *err)
{
    struct ledger_factor *factor = arena_array (work->arena, m->n_factors, sizeof (*factor));
    for (size_t i = 0; i < m->n_factors; i++) {
        factor[i].name = m->factors[i]->name;
        factor[i].ppm = m->factors[i]->ppm;
        if (ledger_factor_parse (m->factors[i]->kind, &factor[i].kind, err) < 0)
            return err->code;
    }
    work->req.rate.factor = factor;
    work->req.rate.factor_count = (uint32_t)m->n_factors;
    return 0;
}

void handle_rate_set (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    const Nui__Bank__V1__RateSetRequest *m = (const void *)request;
    struct work *work = write_begin (self, call, request, LEDGER_RATE_SET, &m->key,
                                     &nui__bank__v1__done_reply__descriptor);
    want_name (work, "site", m->site);
    const struct principal *peer = rpccall_peer (call);
    if (good (work) && peer->kind == PRINCIPAL_SITE && strcmp (peer->name, m->site) != 0)
        err_set (&work->err, ERR_DENIED, "site %s has no say in the rates of site %.80s",
                 peer->name, m->site);
    if (good (work) && m->measure[0])
        price_measure_parse (m->measure, &work->req.rate.measure, &work->err);
    if (good (work) && m->n_factors > LEDGER_FACTORS_MAX)
        err_set (&work->err, ERR_LIMIT, "rate: %zu rates, a card has at most %d", m->n_factors,
                 LEDGER_FACTORS_MAX);
    if (good (work))
        factors_read (work, m, &work->err);
    work->req.rate.successful_only = m->successful_only;
    work->req.rate.site = m->site;
    work->req.rate.ppm = m->multiplier_ppm;
    work->req.rate.from = m->from_us;
    write_submit (work);
}

void handle_site_set (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    const Nui__Bank__V1__SiteSetRequest *m = (const void *)request;
    struct work *work = write_begin (self, call, request, LEDGER_SITE_SET, &m->key,
                                     &nui__bank__v1__done_reply__descriptor);
    want_name (work, "site", m->site);
    work->req.site.site = m->site;
    work->req.site.claims = m->claims;
    work->req.site.keep_claims = m->keep_claims;
    work->req.site.refunds = (struct ledger_refunds){m->refunds, m->refund_cap_us,
                                                     m->refund_minimum_micro, m->refund_window_us};
    work->req.site.keep_refunds = m->keep_refunds;
    work->req.site.keep_cap = !m->set_refund_cap;
    work->req.site.keep_minimum = !m->set_refund_minimum;
    work->req.site.keep_window = !m->set_refund_window;
    if (good (work) && m->node_procs > INT64_MAX)
        err_set (&work->err, ERR_INVALID, "site: processors of a node are out of bounds");
    work->req.site.given =
        (struct ledger_nodes_given){(int64_t)m->node_procs, m->proc_memory_mb, m->overrun_us};
    work->req.site.set_procs = m->set_node_procs;
    work->req.site.set_memory = m->set_proc_memory;
    work->req.site.set_overrun = m->set_overrun;
    write_submit (work);
}

void handle_withdraw (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    const Nui__Bank__V1__WithdrawRequest *m = (const void *)request;
    struct work *work = write_begin (self, call, request, LEDGER_WITHDRAW, &m->key,
                                     &nui__bank__v1__done_reply__descriptor);
    want_name (work, "account", m->account);
    want_text (work, "the description", m->description, DESCRIPTION_MAX_BYTES);
    want_number (work, "alloc", m->allocation_id, true, &work->req.withdraw.allocation_id);
    work->req.withdraw.account = m->account;
    work->req.withdraw.amount = m->amount_micro;
    work->req.withdraw.description = m->description;
    write_submit (work);
}

void handle_transfer (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    const Nui__Bank__V1__TransferRequest *m = (const void *)request;
    struct work *work = write_begin (self, call, request, LEDGER_TRANSFER, &m->key,
                                     &nui__bank__v1__done_reply__descriptor);
    want_name (work, "account", m->from_account);
    want_name (work, "account", m->to_account);
    want_text (work, "the description", m->description, DESCRIPTION_MAX_BYTES);
    want_number (work, "alloc", m->allocation_id, true, &work->req.transfer.allocation_id);
    work->req.transfer.from = m->from_account;
    work->req.transfer.to = m->to_account;
    work->req.transfer.amount = m->amount_micro;
    work->req.transfer.description = m->description;
    write_submit (work);
}

void handle_refund (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    const Nui__Bank__V1__RefundRequest *m = (const void *)request;
    struct work *work = write_begin (self, call, request, LEDGER_REFUND, &m->key,
                                     &nui__bank__v1__refund_reply__descriptor);
    want_text (work, "the reason", m->reason, DESCRIPTION_MAX_BYTES);
    if (good (work) && (m->charge_op_id == 0 || m->charge_op_id > INT64_MAX))
        err_set (&work->err, ERR_INVALID, "refund: the request names no charge");
    work->req.refund.charge_op = (int64_t)m->charge_op_id;
    work->req.refund.amount = m->amount_micro;
    work->req.refund.reason = m->reason;
    write_submit (work);
}

void handle_allocation_modify (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    const Nui__Bank__V1__AllocationModifyRequest *m = (const void *)request;
    struct work *work = write_begin (self, call, request, LEDGER_LIMIT_SET, &m->key,
                                     &nui__bank__v1__done_reply__descriptor);
    want_number (work, "alloc", m->allocation_id, false, &work->req.limit.allocation_id);
    work->req.limit.credit_limit = m->credit_limit_micro;
    write_submit (work);
}
