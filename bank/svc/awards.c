/* Writing calls about what becomes of grants, splits, accounts' names and projects' places. */
#include "bank/svc/service_impl.h"

void handle_split_back (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    const Nui__Bank__V1__SplitBackRequest *m = (const void *)request;
    struct work *work = write_begin (self, call, request, LEDGER_SPLIT_BACK, &m->key,
                                     &nui__bank__v1__done_reply__descriptor);
    want_number (work, "alloc", m->allocation_id, false, &work->req.split_back.allocation_id);
    want_text (work, "the description", m->description, DESCRIPTION_MAX_BYTES);
    work->req.split_back.amount = m->amount_micro;
    work->req.split_back.description = m->description;
    write_submit (work);
}

static struct work *award_begin (void *self, struct rpccall *call, const ProtobufCMessage *request,
                                 enum ledger_kind kind, const ProtobufCBinaryData *key,
                                 const char *grant, const char *reason)
{
    struct work *work =
        write_begin (self, call, request, kind, key, &nui__bank__v1__done_reply__descriptor);
    want_number (work, "grant", grant, false, &work->req.award.grant_id);
    want_text (work, "the reason", reason, DESCRIPTION_MAX_BYTES);
    work->req.award.reason = reason;
    return work;
}

void handle_grant_extend (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    const Nui__Bank__V1__GrantExtendRequest *m = (const void *)request;
    struct work *work =
        award_begin (self, call, request, LEDGER_GRANT_EXTEND, &m->key, m->grant_id, m->reason);
    work->req.award.valid_to = m->valid_to_us;
    write_submit (work);
}

void handle_grant_amend (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    const Nui__Bank__V1__GrantAmendRequest *m = (const void *)request;
    struct work *work =
        award_begin (self, call, request, LEDGER_GRANT_AMEND, &m->key, m->grant_id, m->reason);
    work->req.award.amount = m->amount_micro;
    write_submit (work);
}

void handle_grant_revoke (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    const Nui__Bank__V1__GrantRevokeRequest *m = (const void *)request;
    write_submit (
        award_begin (self, call, request, LEDGER_GRANT_REVOKE, &m->key, m->grant_id, m->reason));
}

void handle_account_rename (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    const Nui__Bank__V1__AccountRenameRequest *m = (const void *)request;
    struct work *work = write_begin (self, call, request, LEDGER_ACCOUNT_RENAME, &m->key,
                                     &nui__bank__v1__done_reply__descriptor);
    want_name (work, "account", m->name);
    want_name (work, "account", m->to);
    want_text (work, "the reason", m->reason, DESCRIPTION_MAX_BYTES);
    work->req.rename.name = m->name;
    work->req.rename.to = m->to;
    work->req.rename.reason = m->reason;
    write_submit (work);
}

void handle_project_move (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    const Nui__Bank__V1__ProjectMoveRequest *m = (const void *)request;
    struct work *work = write_begin (self, call, request, LEDGER_PROJECT_MOVE, &m->key,
                                     &nui__bank__v1__done_reply__descriptor);
    want_name (work, "project", m->name);
    if (m->parent[0])
        want_name (work, "project", m->parent);
    want_text (work, "the reason", m->reason, DESCRIPTION_MAX_BYTES);
    work->req.move.name = m->name;
    work->req.move.parent = m->parent;
    work->req.move.reason = m->reason;
    write_submit (work);
}
