/* What reconciliation found: kept, owned, closed, listed. */
#include <string.h>

#include "bank/store/fundread.h"
#include "bank/svc/service_impl.h"

enum { ROWS_MAX = 1000, WORD_MAX_BYTES = 256 };

static int finding_read (const Nui__Bank__V1__Finding *m, struct ledger_finding *f, struct err *err)
{
    const struct {
        const char *what, *text;
        size_t max;
    } text[] = {{"class", m->class_, 32},
                {"site job", m->site_job_id, WORD_MAX_BYTES},
                {"component", m->component, WORD_MAX_BYTES},
                {"hold", m->hold_id, 32},
                {"user", m->user, PRINCIPAL_URI_MAX},
                {"account", m->account, WORD_MAX_BYTES},
                {"text", m->text, DESCRIPTION_MAX_BYTES}};
    for (size_t i = 0; i < sizeof (text) / sizeof (text[0]); i++)
        if (text_check (text[i].what, text[i].text, text[i].max, err) < 0)
            return err->code;
    if (!m->class_[0] || m->charge_op_id > INT64_MAX || m->site_ps_us < -1 || m->bank_ps_us < -1)
        return err_set (err, ERR_INVALID, "reconcile: a finding of job %.80s is out of bounds",
                        m->site_job_id);
    *f = (struct ledger_finding){.kind = m->class_,
                                 .site_job = m->site_job_id,
                                 .component = m->component,
                                 .hold = m->hold_id,
                                 .identity = m->user,
                                 .account = m->account,
                                 .text = m->text,
                                 .incarnation = m->incarnation,
                                 .charge_op = (int64_t)m->charge_op_id,
                                 .amount = m->amount_micro,
                                 .site_ps = m->site_ps_us,
                                 .bank_ps = m->bank_ps_us,
                                 .since = m->since_us};
    return 0;
}

void handle_recon_record (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    const Nui__Bank__V1__ReconRecordRequest *m = (const void *)request;
    struct work *work = write_begin (self, call, request, LEDGER_RECON, &m->key,
                                     &nui__bank__v1__recon_record_reply__descriptor);
    want_name (work, "site", m->site);
    if (good (work) &&
        (m->n_findings > LEDGER_FINDINGS_MAX || m->n_classes > LEDGER_FINDING_KINDS_MAX))
        err_set (&work->err, ERR_LIMIT, "reconcile: %zu findings, at most %d are taken at once",
                 m->n_findings, LEDGER_FINDINGS_MAX);
    struct ledger_finding *item =
        arena_array (work->arena, good (work) ? m->n_findings : 0, sizeof (*item));
    for (size_t i = 0; i < m->n_findings && good (work); i++)
        finding_read (m->findings[i], &item[i], &work->err);
    work->req.recon.site = m->site;
    work->req.recon.from = m->from_us;
    work->req.recon.to = m->to_us;
    work->req.recon.kind = m->classes;
    work->req.recon.kind_count = (uint32_t)m->n_classes;
    work->req.recon.item = item;
    work->req.recon.count = (uint32_t)m->n_findings;
    write_submit (work);
}

void handle_recon_set (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    const Nui__Bank__V1__ReconSetRequest *m = (const void *)request;
    struct work *work = write_begin (self, call, request, LEDGER_RECON_SET, &m->key,
                                     &nui__bank__v1__done_reply__descriptor);
    want_text (work, "the note", m->note, DESCRIPTION_MAX_BYTES);
    want_text (work, "the owner", m->owner, PRINCIPAL_URI_MAX);
    if (good (work) && (m->row > INT64_MAX || m->op_id > INT64_MAX || m->close == !!m->owner[0]))
        err_set (&work->err, ERR_INVALID, "reconcile: a row gets an owner or is closed");
    if (good (work) && m->close && !m->op_id && !m->note[0])
        err_set (&work->err, ERR_INVALID,
                 "reconcile: row %llu is closed by an operation, or by a note that explains it",
                 (unsigned long long)m->row);
    work->req.recon_set.row_id = (int64_t)m->row;
    work->req.recon_set.owner = m->owner;
    work->req.recon_set.close = m->close;
    work->req.recon_set.cured_op = (int64_t)m->op_id;
    work->req.recon_set.note = m->note;
    write_submit (work);
}

static Nui__Bank__V1__ReconRow *row_message (struct arena *arena, const struct fund_recon *r)
{
    const struct ledger_finding *f = &r->row.finding;
    Nui__Bank__V1__ReconRow *out = arena_new (arena, Nui__Bank__V1__ReconRow);
    Nui__Bank__V1__Finding *m = arena_new (arena, Nui__Bank__V1__Finding);
    nui__bank__v1__recon_row__init (out);
    nui__bank__v1__finding__init (m);
    m->class_ = unconst (f->kind);
    m->site_job_id = unconst (f->site_job);
    m->component = unconst (f->component);
    m->incarnation = (uint32_t)f->incarnation;
    m->hold_id = unconst (f->hold);
    m->charge_op_id = (uint64_t)f->charge_op;
    m->user = unconst (f->identity);
    m->account = unconst (f->account);
    m->amount_micro = f->amount;
    m->site_ps_us = f->site_ps;
    m->bank_ps_us = f->bank_ps;
    m->since_us = f->since;
    m->text = unconst (f->text);
    out->row = (uint64_t)r->row.id;
    out->site = unconst (r->row.site);
    out->finding = m;
    out->opened_us = r->opened;
    out->owner = unconst (r->row.owner);
    out->state = unconst (r->state);
    out->closed_us = r->closed;
    out->op_id = (uint64_t)r->cured_op;
    out->note = unconst (r->note);
    return out;
}

static void on_rows (void *arg, const struct err *err, const struct fund_recon *row, uint32_t count)
{
    struct work *work = arg;
    if (work_failed (work, err))
        return;
    Nui__Bank__V1__ReconListReply reply = NUI__BANK__V1__RECON_LIST_REPLY__INIT;
    reply.n_rows = count;
    reply.rows = arena_array (work->arena, count, sizeof (*reply.rows));
    for (uint32_t i = 0; i < count; i++)
        reply.rows[i] = row_message (work->arena, &row[i]);
    work_reply (work, &reply.base);
}

void handle_recon_list (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct bank_service *svc = self;
    struct work *work = work_create (svc, call, request);
    const Nui__Bank__V1__ReconListRequest *m = work->request;
    struct err err = {0};
    uint32_t limit = m->limit && m->limit < ROWS_MAX ? m->limit : ROWS_MAX;
    if (m->site[0] && name_check ("site", m->site, &err) < 0) {
        work_fail (work, &err);
    } else if (m->after > INT64_MAX) {
        err_set (&err, ERR_INVALID, "reconcile: there is no such row");
        work_fail (work, &err);
    } else {
        fundread_recons (svc->reader, viewer (work), viewer_site (work), m->site, m->closed,
                         (int64_t)m->after, limit, on_rows, work);
    }
}
