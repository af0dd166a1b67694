/* Writing calls about funders, grants and their ways, closed accounts, roles. */
#include <string.h>

#include "bank/svc/service_impl.h"

void handle_funder_create (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    const Nui__Bank__V1__FunderCreateRequest *m = (const void *)request;
    struct work *work = work_create (self, call, m);
    struct err err = {0};
    int rc = request_begin (work, LEDGER_FUNDER_CREATE, &m->key,
                            &nui__bank__v1__done_reply__descriptor, &err);
    if (rc == 0)
        rc = name_check ("funder", m->name, &err);
    if (rc == 0)
        rc = text_check ("the description", m->description, DESCRIPTION_MAX_BYTES, &err);
    work->req.funder.name = m->name;
    work->req.funder.description = m->description;
    submit_or_fail (work, rc, &err);
}

/* An agency gives in its own name. */
static int funder_of (struct work *work, const char *named, const char **out, struct err *err)
{
    const struct principal *peer = rpccall_peer (work->call);
    *out = named[0] || peer->kind != PRINCIPAL_AGENCY ? named : peer->name;
    if (peer->kind == PRINCIPAL_AGENCY && strcmp (*out, peer->name) != 0)
        return err_set (err, ERR_DENIED, "agency %s gives no grants of %.80s", peer->name, named);
    return name_check ("funder", *out, err);
}

void handle_grant (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    const Nui__Bank__V1__GrantRequest *m = (const void *)request;
    struct work *work = work_create (self, call, m);
    struct err err = {0};
    int rc =
        request_begin (work, LEDGER_GRANT, &m->key, &nui__bank__v1__done_reply__descriptor, &err);
    if (rc == 0)
        rc = funder_of (work, m->funder, &work->req.deposit.funder, &err);
    if (rc == 0)
        rc = name_check ("account", m->account, &err);
    if (rc == 0)
        rc = text_check ("the reference", m->reference, DESCRIPTION_MAX_BYTES, &err);
    if (rc == 0 && !m->reference[0])
        rc = err_set (&err, ERR_INVALID, "grant: it needs a reference, such as its number");
    if (rc == 0)
        rc = text_check ("the description", m->description, DESCRIPTION_MAX_BYTES, &err);
    if (rc == 0)
        rc = scopes_read (work, m->scopes, m->n_scopes, &work->req.deposit.scopes, &err);
    work->req.deposit.account = m->account;
    work->req.deposit.reference = m->reference;
    work->req.deposit.amount = m->amount_micro;
    work->req.deposit.valid_from = m->valid_from_us;
    work->req.deposit.valid_to = m->valid_to_us;
    work->req.deposit.description = m->description;
    submit_or_fail (work, rc, &err);
}

void handle_split (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    const Nui__Bank__V1__SplitRequest *m = (const void *)request;
    struct work *work = work_create (self, call, m);
    struct err err = {0};
    int rc =
        request_begin (work, LEDGER_SPLIT, &m->key, &nui__bank__v1__done_reply__descriptor, &err);
    if (rc == 0)
        rc = name_check ("account", m->from_account, &err);
    if (rc == 0)
        rc = name_check ("account", m->to_account, &err);
    if (rc == 0)
        rc = text_check ("the description", m->description, DESCRIPTION_MAX_BYTES, &err);
    if (rc == 0)
        rc =
            number_parse ("alloc", m->allocation_id, true, &work->req.transfer.allocation_id, &err);
    if (rc == 0 && (m->valid_from_us < 0 || m->valid_to_us < 0))
        rc = err_set (&err, ERR_INVALID, "split: a moment before 1970");
    work->req.transfer.from = m->from_account;
    work->req.transfer.to = m->to_account;
    work->req.transfer.amount = m->amount_micro;
    work->req.transfer.valid_from = m->valid_from_us;
    work->req.transfer.valid_to = m->valid_to_us;
    work->req.transfer.description = m->description;
    submit_or_fail (work, rc, &err);
}

void handle_carry_forward (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    const Nui__Bank__V1__CarryForwardRequest *m = (const void *)request;
    struct work *work = work_create (self, call, m);
    struct err err = {0};
    int rc = request_begin (work, LEDGER_CARRY_FORWARD, &m->key,
                            &nui__bank__v1__done_reply__descriptor, &err);
    if (rc == 0)
        rc = number_parse ("alloc", m->allocation_id, false, &work->req.carry.allocation_id, &err);
    if (rc == 0)
        rc = text_check ("the description", m->description, DESCRIPTION_MAX_BYTES, &err);
    work->req.carry.cap = m->cap_micro;
    work->req.carry.valid_to = m->valid_to_us;
    work->req.carry.description = m->description;
    submit_or_fail (work, rc, &err);
}

void handle_account_close (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    const Nui__Bank__V1__AccountCloseRequest *m = (const void *)request;
    struct work *work = work_create (self, call, m);
    struct err err = {0};
    int rc = request_begin (work, LEDGER_ACCOUNT_CLOSE, &m->key,
                            &nui__bank__v1__done_reply__descriptor, &err);
    if (rc == 0)
        rc = name_check ("account", m->name, &err);
    if (rc == 0)
        rc = text_check ("the reason", m->reason, DESCRIPTION_MAX_BYTES, &err);
    work->req.close.name = m->name;
    work->req.close.reason = m->reason;
    submit_or_fail (work, rc, &err);
}

void handle_role_set (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    const Nui__Bank__V1__RoleSetRequest *m = (const void *)request;
    struct work *work = work_create (self, call, m);
    struct err err = {0};
    int rc = request_begin (work, LEDGER_ROLE_SET, &m->key, &nui__bank__v1__done_reply__descriptor,
                            &err);
    if (rc == 0)
        rc = user_check (work, m->identity, &err);
    if (rc == 0 && strcmp (m->role, "manager") == 0)
        work->req.role.role = LEDGER_ROLE_MANAGER;
    else if (rc == 0 && strcmp (m->role, "auditor") == 0)
        work->req.role.role = LEDGER_ROLE_AUDITOR;
    else if (rc == 0)
        rc = err_set (&err, ERR_INVALID, "'%.40s' is neither manager nor auditor", m->role);
    work->req.role.identity = m->identity;
    work->req.role.remove = m->remove;
    submit_or_fail (work, rc, &err);
}
