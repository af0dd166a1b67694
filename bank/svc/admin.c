/* Writing calls of agencies and operators. */
#include <string.h>

#include "bank/svc/service_impl.h"

enum { DESCRIPTION_MAX_BYTES = 1024 };

/* An identity that the bank may know: a user of this grid. */
static int user_check (const struct work *work, const char *identity, struct err *err)
{
    struct principal p;
    if (principal_parse (identity, &p, err) < 0)
        return err->code;
    if (p.kind != PRINCIPAL_USER)
        return err_set (err, ERR_INVALID, "'%.200s' is not a user's identity", identity);
    if (strcmp (p.grid, tlsid_self (work->svc->id)->grid) != 0)
        return err_set (err, ERR_INVALID, "'%.200s' is of another grid", identity);
    return 0;
}

static void submit_or_fail (struct work *work, int rc, const struct err *err)
{
    if (rc < 0)
        work_fail (work, err);
    else
        request_submit (work);
}

void handle_project_create (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    const Nui__Bank__V1__ProjectCreateRequest *m = (const void *)request;
    struct work *work = work_create (self, call, m);
    struct err err = {0};
    int rc = request_begin (work, LEDGER_PROJECT_CREATE, &m->key,
                            &nui__bank__v1__done_reply__descriptor, &err);
    if (rc == 0)
        rc = text_check ("the description", m->description, DESCRIPTION_MAX_BYTES, &err);
    if (rc == 0)
        rc = name_check ("project", m->name, &err);
    work->req.project.name = m->name;
    work->req.project.description = m->description;
    submit_or_fail (work, rc, &err);
}

void handle_user_create (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    const Nui__Bank__V1__UserCreateRequest *m = (const void *)request;
    struct work *work = work_create (self, call, m);
    struct err err = {0};
    int rc = request_begin (work, LEDGER_USER_CREATE, &m->key,
                            &nui__bank__v1__done_reply__descriptor, &err);
    if (rc == 0)
        rc = user_check (work, m->identity, &err);
    work->req.user.identity = m->identity;
    submit_or_fail (work, rc, &err);
}

void handle_member (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    const Nui__Bank__V1__MemberRequest *m = (const void *)request;
    struct work *work = work_create (self, call, m);
    struct err err = {0};
    int rc =
        request_begin (work, LEDGER_MEMBER, &m->key, &nui__bank__v1__done_reply__descriptor, &err);
    if (rc == 0)
        rc = name_check ("project", m->project, &err);
    if (rc == 0)
        rc = user_check (work, m->identity, &err);
    if (rc == 0)
        rc = text_check ("role", m->role, 32, &err);
    work->req.member.project = m->project;
    work->req.member.identity = m->identity;
    work->req.member.role = m->role;
    work->req.member.remove = m->remove;
    submit_or_fail (work, rc, &err);
}

static int account_names (struct work *work, const char *name, char **fallbacks, size_t count,
                          struct err *err)
{
    if (count > LEDGER_FALLBACKS_MAX)
        return err_set (err, ERR_LIMIT, "%zu fallbacks, an account has at most %d", count,
                        LEDGER_FALLBACKS_MAX);
    if (name_check ("account", name, err) < 0)
        return err->code;
    for (size_t i = 0; i < count; i++)
        if (name_check ("fallback account", fallbacks[i], err) < 0)
            return err->code;
    work->req.account.name = name;
    work->req.account.project = "";
    work->req.account.fallbacks = (const char *const *)fallbacks;
    work->req.account.fallback_count = (uint32_t)count;
    return 0;
}

void handle_account_create (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    const Nui__Bank__V1__AccountCreateRequest *m = (const void *)request;
    struct work *work = work_create (self, call, m);
    struct err err = {0};
    int rc = request_begin (work, LEDGER_ACCOUNT_CREATE, &m->key,
                            &nui__bank__v1__done_reply__descriptor, &err);
    if (rc == 0)
        rc = account_names (work, m->name, m->fallbacks, m->n_fallbacks, &err);
    if (rc == 0)
        rc = name_check ("project", m->project, &err);
    work->req.account.project = m->project;
    submit_or_fail (work, rc, &err);
}

void handle_account_modify (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    const Nui__Bank__V1__AccountModifyRequest *m = (const void *)request;
    struct work *work = work_create (self, call, m);
    struct err err = {0};
    int rc = request_begin (work, LEDGER_ACCOUNT_MODIFY, &m->key,
                            &nui__bank__v1__done_reply__descriptor, &err);
    if (rc == 0)
        rc = account_names (work, m->name, m->fallbacks, m->n_fallbacks, &err);
    submit_or_fail (work, rc, &err);
}

void handle_deposit (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    const Nui__Bank__V1__DepositRequest *m = (const void *)request;
    struct work *work = work_create (self, call, m);
    struct err err = {0};
    int rc = request_begin (work, LEDGER_DEPOSIT, &m->key,
                            &nui__bank__v1__deposit_reply__descriptor, &err);
    if (rc == 0)
        rc = name_check ("account", m->account, &err);
    if (rc == 0)
        rc = text_check ("the description", m->description, DESCRIPTION_MAX_BYTES, &err);
    work->req.deposit.account = m->account;
    work->req.deposit.amount = m->amount_micro;
    work->req.deposit.valid_from = m->valid_from_us;
    work->req.deposit.valid_to = m->valid_to_us;
    work->req.deposit.description = m->description;
    submit_or_fail (work, rc, &err);
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
    struct work *work = work_create (self, call, m);
    struct err err = {0};
    int rc = request_begin (work, LEDGER_RATE_SET, &m->key, &nui__bank__v1__done_reply__descriptor,
                            &err);
    if (rc == 0)
        rc = name_check ("site", m->site, &err);
    if (rc == 0 && m->measure[0])
        rc = price_measure_parse (m->measure, &work->req.rate.measure, &err);
    if (rc == 0 && m->n_factors > LEDGER_FACTORS_MAX)
        rc = err_set (&err, ERR_LIMIT, "rate: %zu rates, a card has at most %d", m->n_factors,
                      LEDGER_FACTORS_MAX);
    if (rc == 0)
        rc = factors_read (work, m, &err);
    work->req.rate.successful_only = m->successful_only;
    work->req.rate.site = m->site;
    work->req.rate.ppm = m->multiplier_ppm;
    work->req.rate.from = m->from_us;
    submit_or_fail (work, rc, &err);
}

void handle_site_set (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    const Nui__Bank__V1__SiteSetRequest *m = (const void *)request;
    struct work *work = work_create (self, call, m);
    struct err err = {0};
    int rc = request_begin (work, LEDGER_SITE_SET, &m->key, &nui__bank__v1__done_reply__descriptor,
                            &err);
    if (rc == 0)
        rc = name_check ("site", m->site, &err);
    work->req.site.site = m->site;
    work->req.site.claims = m->claims;
    submit_or_fail (work, rc, &err);
}

/* "alloc.7"; "" is 0 where that is allowed. */
static int alloc_parse (const char *text, bool optional, int64_t *id_out, struct err *err)
{
    char prefix[8];
    uint64_t number;
    *id_out = 0;
    if (optional && !text[0])
        return 0;
    if (id_parse (text, prefix, sizeof (prefix), &number, NULL) < 0 ||
        strcmp (prefix, "alloc") != 0 || number == 0 || number > INT64_MAX)
        return err_set (err, ERR_INVALID, "'%.64s' is not an allocation, such as alloc.7", text);
    *id_out = (int64_t)number;
    return 0;
}

void handle_withdraw (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    const Nui__Bank__V1__WithdrawRequest *m = (const void *)request;
    struct work *work = work_create (self, call, m);
    struct err err = {0};
    int rc = request_begin (work, LEDGER_WITHDRAW, &m->key, &nui__bank__v1__done_reply__descriptor,
                            &err);
    if (rc == 0)
        rc = name_check ("account", m->account, &err);
    if (rc == 0)
        rc = text_check ("the description", m->description, DESCRIPTION_MAX_BYTES, &err);
    if (rc == 0)
        rc = alloc_parse (m->allocation_id, true, &work->req.withdraw.allocation_id, &err);
    work->req.withdraw.account = m->account;
    work->req.withdraw.amount = m->amount_micro;
    work->req.withdraw.description = m->description;
    submit_or_fail (work, rc, &err);
}

void handle_transfer (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    const Nui__Bank__V1__TransferRequest *m = (const void *)request;
    struct work *work = work_create (self, call, m);
    struct err err = {0};
    int rc = request_begin (work, LEDGER_TRANSFER, &m->key, &nui__bank__v1__done_reply__descriptor,
                            &err);
    if (rc == 0)
        rc = name_check ("account", m->from_account, &err);
    if (rc == 0)
        rc = name_check ("account", m->to_account, &err);
    if (rc == 0)
        rc = text_check ("the description", m->description, DESCRIPTION_MAX_BYTES, &err);
    if (rc == 0)
        rc = alloc_parse (m->allocation_id, true, &work->req.transfer.allocation_id, &err);
    work->req.transfer.from = m->from_account;
    work->req.transfer.to = m->to_account;
    work->req.transfer.amount = m->amount_micro;
    work->req.transfer.description = m->description;
    submit_or_fail (work, rc, &err);
}

void handle_refund (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    const Nui__Bank__V1__RefundRequest *m = (const void *)request;
    struct work *work = work_create (self, call, m);
    struct err err = {0};
    int rc = request_begin (work, LEDGER_REFUND, &m->key, &nui__bank__v1__refund_reply__descriptor,
                            &err);
    if (rc == 0)
        rc = text_check ("the reason", m->reason, DESCRIPTION_MAX_BYTES, &err);
    if (rc == 0 && (m->charge_op_id == 0 || m->charge_op_id > INT64_MAX))
        rc = err_set (&err, ERR_INVALID, "refund: the request names no charge");
    work->req.refund.charge_op = (int64_t)m->charge_op_id;
    work->req.refund.amount = m->amount_micro;
    work->req.refund.reason = m->reason;
    submit_or_fail (work, rc, &err);
}

void handle_allocation_modify (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    const Nui__Bank__V1__AllocationModifyRequest *m = (const void *)request;
    struct work *work = work_create (self, call, m);
    struct err err = {0};
    int rc = request_begin (work, LEDGER_LIMIT_SET, &m->key, &nui__bank__v1__done_reply__descriptor,
                            &err);
    if (rc == 0)
        rc = alloc_parse (m->allocation_id, false, &work->req.limit.allocation_id, &err);
    work->req.limit.credit_limit = m->credit_limit_micro;
    submit_or_fail (work, rc, &err);
}
