/* Writing calls about funders, grants and their ways, closed accounts, roles. */
#include <string.h>

#include "bank/svc/service_impl.h"

void handle_funder_create (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    const Nui__Bank__V1__FunderCreateRequest *m = (const void *)request;
    struct work *work = write_begin (self, call, request, LEDGER_FUNDER_CREATE, &m->key,
                                     &nui__bank__v1__done_reply__descriptor);
    want_name (work, "funder", m->name);
    want_text (work, "the description", m->description, DESCRIPTION_MAX_BYTES);
    work->req.funder.name = m->name;
    work->req.funder.description = m->description;
    write_submit (work);
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
    struct work *work = write_begin (self, call, request, LEDGER_GRANT, &m->key,
                                     &nui__bank__v1__done_reply__descriptor);
    if (good (work))
        funder_of (work, m->funder, &work->req.deposit.funder, &work->err);
    want_name (work, "account", m->account);
    want_text (work, "the reference", m->reference, DESCRIPTION_MAX_BYTES);
    if (good (work) && !m->reference[0])
        err_set (&work->err, ERR_INVALID, "grant: it needs a reference, such as its number");
    want_text (work, "the description", m->description, DESCRIPTION_MAX_BYTES);
    if (good (work))
        scopes_read (work, m->scopes, m->n_scopes, &work->req.deposit.scopes, &work->err);
    work->req.deposit.account = m->account;
    work->req.deposit.reference = m->reference;
    work->req.deposit.again = m->again;
    work->req.deposit.amount = m->amount_micro;
    work->req.deposit.valid_from = m->valid_from_us;
    work->req.deposit.valid_to = m->valid_to_us;
    work->req.deposit.description = m->description;
    write_submit (work);
}

void handle_split (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    const Nui__Bank__V1__SplitRequest *m = (const void *)request;
    struct work *work = write_begin (self, call, request, LEDGER_SPLIT, &m->key,
                                     &nui__bank__v1__done_reply__descriptor);
    want_name (work, "account", m->from_account);
    want_name (work, "account", m->to_account);
    want_text (work, "the description", m->description, DESCRIPTION_MAX_BYTES);
    want_number (work, "alloc", m->allocation_id, true, &work->req.transfer.allocation_id);
    if (good (work) && (m->valid_from_us < 0 || m->valid_to_us < 0))
        err_set (&work->err, ERR_INVALID, "split: a moment before 1970");
    work->req.transfer.from = m->from_account;
    work->req.transfer.to = m->to_account;
    work->req.transfer.amount = m->amount_micro;
    work->req.transfer.valid_from = m->valid_from_us;
    work->req.transfer.valid_to = m->valid_to_us;
    work->req.transfer.description = m->description;
    write_submit (work);
}

void handle_carry_forward (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    const Nui__Bank__V1__CarryForwardRequest *m = (const void *)request;
    struct work *work = write_begin (self, call, request, LEDGER_CARRY_FORWARD, &m->key,
                                     &nui__bank__v1__done_reply__descriptor);
    want_number (work, "alloc", m->allocation_id, false, &work->req.carry.allocation_id);
    want_text (work, "the description", m->description, DESCRIPTION_MAX_BYTES);
    work->req.carry.cap = m->cap_micro;
    work->req.carry.valid_to = m->valid_to_us;
    work->req.carry.description = m->description;
    write_submit (work);
}

void handle_expire (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    const Nui__Bank__V1__ExpireRequest *m = (const void *)request;
    struct work *work = write_begin (self, call, request, LEDGER_EXPIRE, &m->key,
                                     &nui__bank__v1__done_reply__descriptor);
    want_number (work, "alloc", m->allocation_id, false, &work->req.expire.allocation_id);
    want_text (work, "the description", m->description, DESCRIPTION_MAX_BYTES);
    work->req.expire.description = m->description;
    write_submit (work);
}

static void close_or_reopen (struct work *work, const char *name, const char *reason)
{
    want_name (work, "account", name);
    want_text (work, "the reason", reason, DESCRIPTION_MAX_BYTES);
    work->req.close.name = name;
    work->req.close.reason = reason;
    write_submit (work);
}

void handle_account_close (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    const Nui__Bank__V1__AccountCloseRequest *m = (const void *)request;
    close_or_reopen (write_begin (self, call, request, LEDGER_ACCOUNT_CLOSE, &m->key,
                                  &nui__bank__v1__done_reply__descriptor),
                     m->name, m->reason);
}

void handle_account_reopen (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    const Nui__Bank__V1__AccountReopenRequest *m = (const void *)request;
    close_or_reopen (write_begin (self, call, request, LEDGER_ACCOUNT_REOPEN, &m->key,
                                  &nui__bank__v1__done_reply__descriptor),
                     m->name, m->reason);
}

void handle_freeze (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    const Nui__Bank__V1__FreezeRequest *m = (const void *)request;
    struct work *work = write_begin (self, call, request, LEDGER_FREEZE, &m->key,
                                     &nui__bank__v1__done_reply__descriptor);
    int what = 0;
    while (what < LEDGER_FREEZABLES &&
           strcmp (m->what, ledger_freezable_name ((enum ledger_freezable)what)) != 0)
        what++;
    if (good (work) && what == LEDGER_FREEZABLES)
        err_set (&work->err, ERR_INVALID, "'%.40s' is none of user, account, project, grant",
                 m->what);
    if (what == LEDGER_FREEZE_USER)
        want_user (work, m->name);
    else if (what == LEDGER_FREEZE_GRANT)
        want_number (work, "grant", m->name, false, &work->req.freeze.grant_id);
    else
        want_name (work, m->what, m->name);
    want_text (work, "the reason", m->reason, DESCRIPTION_MAX_BYTES);
    work->req.freeze.what = (enum ledger_freezable)what;
    work->req.freeze.name = m->name;
    work->req.freeze.reason = m->reason;
    work->req.freeze.undo = m->undo;
    write_submit (work);
}

void handle_role_set (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    const Nui__Bank__V1__RoleSetRequest *m = (const void *)request;
    struct work *work = write_begin (self, call, request, LEDGER_ROLE_SET, &m->key,
                                     &nui__bank__v1__done_reply__descriptor);
    want_user (work, m->identity);
    if (good (work) && strcmp (m->role, "manager") == 0)
        work->req.role.role = LEDGER_ROLE_MANAGER;
    else if (good (work) && strcmp (m->role, "auditor") == 0)
        work->req.role.role = LEDGER_ROLE_AUDITOR;
    else if (good (work))
        err_set (&work->err, ERR_INVALID, "'%.40s' is neither manager nor auditor", m->role);
    work->req.role.identity = m->identity;
    work->req.role.remove = m->remove;
    write_submit (work);
}
