/* reconrows: reads the differences the bank has kept, records new ones and closes those that are
 * settled, by calls to the bank. nui reconcile calls it. It moves no credit: closing a row says
 * that somebody looked, and why. */
#include "bank/cli/reconrows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/clock.h"
#include "proto/rpc/tlsid.h"

enum { PAGE = 1000 };

/* --- reading ---------------------------------------------------------------------------------- */

static int finding_cmp (const Nui__Bank__V1__Finding *a, const Nui__Bank__V1__Finding *b)
{
    int c = strcmp (a->class_, b->class_);
    c = c ? c : strcmp (a->site_job_id, b->site_job_id);
    c = c ? c : strcmp (a->component, b->component);
    c = c ? c : strcmp (a->hold_id, b->hold_id);
    c = c ? c : (a->incarnation > b->incarnation) - (a->incarnation < b->incarnation);
    return c ? c : (a->charge_op_id > b->charge_op_id) - (a->charge_op_id < b->charge_op_id);
}

static int by_finding (const void *a, const void *b)
{
    const Nui__Bank__V1__ReconRow *x = *(const Nui__Bank__V1__ReconRow *const *)a,
                                  *y = *(const Nui__Bank__V1__ReconRow *const *)b;
    int c = finding_cmp (x->finding, y->finding);
    return c ? c : (x->row > y->row) - (x->row < y->row);
}

int reconrows_read (struct cli_context *ctx, const char *site, bool closed_too, struct arena *arena,
                    struct reconrows *out, struct err *err)
{
    Nui__Bank__V1__ReconListRequest request = NUI__BANK__V1__RECON_LIST_REQUEST__INIT;
    const Nui__Bank__V1__ReconListReply *reply;
    uint32_t cap = 0, pages_cap = 0;
    request.site = bank_text (site ? site : "");
    request.closed = closed_too;
    do {
        ProtobufCMessage *message = bank_call (ctx, "ReconList", &request.base, err);
        if (!message)
            return err->code;
        reply = (Nui__Bank__V1__ReconListReply *)message;
        out->page = bank_grown (arena, out->page, out->pages, &pages_cap, 1, sizeof (*out->page));
        out->page[out->pages++] = message;
        out->row =
            bank_grown (arena, out->row, out->count, &cap, reply->n_rows, sizeof (*out->row));
        for (size_t i = 0; i < reply->n_rows; i++)
            if (reply->rows[i]->finding)
                out->row[out->count++] = reply->rows[i];
        if (reply->n_rows)
            request.after = reply->rows[reply->n_rows - 1]->row;
    } while (reply->n_rows == PAGE);
    if (out->count)
        qsort (out->row, out->count, sizeof (*out->row), by_finding);
    return 0;
}

void reconrows_free (struct reconrows *rows)
{
    for (uint32_t i = 0; i < rows->pages; i++)
        protobuf_c_message_free_unpacked (rows->page[i], NULL);
}

static void finding_fill (const struct recon_row *row, Nui__Bank__V1__Finding *f)
{
    nui__bank__v1__finding__init (f);
    f->class_ = bank_text (recon_class_name (row->kind));
    f->site_job_id = bank_text (row->site_job);
    f->component = bank_text (row->component);
    f->incarnation = row->incarnation;
    f->hold_id = bank_text (row->hold_id);
    f->charge_op_id = row->charge_op;
    f->user = bank_text (row->user);
    f->account = bank_text (row->account);
    f->amount_micro = row->amount;
    f->site_ps_us = row->site_ps_us;
    f->bank_ps_us = row->bank_ps_us;
    f->since_us = row->since;
    f->text = bank_text (row->text);
}

const Nui__Bank__V1__ReconRow *reconrows_of (const struct reconrows *rows,
                                             const struct recon_row *found)
{
    Nui__Bank__V1__Finding f;
    uint32_t low = 0, high = rows->count;
    finding_fill (found, &f);
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (finding_cmp (rows->row[mid]->finding, &f) <= 0)
            low = mid + 1;
        else
            high = mid;
    }
    const Nui__Bank__V1__ReconRow *row = low ? rows->row[low - 1] : NULL;
    if (!row || finding_cmp (row->finding, &f) != 0 || strcmp (row->state, "gone") == 0)
        return NULL;
    bool same = row->finding->amount_micro == f.amount_micro &&
                row->finding->site_ps_us == f.site_ps_us &&
                row->finding->bank_ps_us == f.bank_ps_us;
    return strcmp (row->state, "open") == 0 || same ? row : NULL;
}

/* --- writing ---------------------------------------------------------------------------------- */

static bool looked_for (const struct recon_books *books, int kind)
{
    if (kind == RECON_STALE_HOLD)
        return books->holds_settled;
    return kind < RECON_UNSEEN || books->has_slurm;
}

int reconrows_record (struct cli_context *ctx, const char *site, const struct recon_books *books,
                      const struct recon_row *row, uint32_t count, struct err *err)
{
    Nui__Bank__V1__ReconRecordRequest request = NUI__BANK__V1__RECON_RECORD_REQUEST__INIT;
    Nui__Bank__V1__Finding *f = arena_array (books->arena, count, sizeof (*f));
    char *classes[RECON_CLASSES];
    uint8_t key[16];
    request.key = bank_key (key);
    request.site = bank_text (site);
    request.from_us = books->from;
    request.to_us = books->to;
    request.classes = classes;
    for (int kind = 0; kind < RECON_CLASSES; kind++)
        if (looked_for (books, kind))
            classes[request.n_classes++] = bank_text (recon_class_name ((enum recon_class)kind));
    request.findings = arena_array (books->arena, count, sizeof (*request.findings));
    request.n_findings = count;
    for (uint32_t i = 0; i < count; i++) {
        finding_fill (&row[i], &f[i]);
        request.findings[i] = &f[i];
    }
    ProtobufCMessage *reply = bank_call (ctx, "ReconRecord", &request.base, err);
    if (!reply)
        return err->code;
    const Nui__Bank__V1__ReconRecordReply *m = (Nui__Bank__V1__ReconRecordReply *)reply;
    if (cli_format (ctx) == CLI_TABLE)
        fprintf (stderr, "nui reconcile: %u rows opened, %u open as before, %u gone\n", m->opened,
                 m->open, m->gone);
    protobuf_c_message_free_unpacked (reply, NULL);
    return 0;
}

/* key is where the request's key goes. */
static Nui__Bank__V1__ReconSetRequest close_request (uint64_t row, uint64_t op, const char *note,
                                                     uint8_t key[16])
{
    Nui__Bank__V1__ReconSetRequest request = NUI__BANK__V1__RECON_SET_REQUEST__INIT;
    request.key = bank_key (key);
    request.row = row;
    request.close = true;
    request.op_id = op;
    request.note = bank_text (note);
    return request;
}

int reconrows_close (struct cli_context *ctx, uint64_t row, uint64_t op, const char *note,
                     struct err *err)
{
    uint8_t key[16];
    Nui__Bank__V1__ReconSetRequest request = close_request (row, op, note, key);
    ProtobufCMessage *reply = bank_call (ctx, "ReconSet", &request.base, err);
    if (!reply)
        return err->code;
    protobuf_c_message_free_unpacked (reply, NULL);
    return 0;
}

/* --- commands --------------------------------------------------------------------------------- */

static int by_number (const void *a, const void *b)
{
    const Nui__Bank__V1__ReconRow *x = *(const Nui__Bank__V1__ReconRow *const *)a,
                                  *y = *(const Nui__Bank__V1__ReconRow *const *)b;
    return (x->row > y->row) - (x->row < y->row);
}

static void row_cells (struct cli_context *ctx, struct table *table, time_us now,
                       const Nui__Bank__V1__ReconRow *r)
{
    bool people = cli_format (ctx) == CLI_TABLE;
    table_int (table, (int64_t)r->row);
    table_text (table, *r->owner ? people ? bank_short_name (r->owner) : r->owner : NULL);
    table_text (table, r->site);
    table_text (table, r->finding->class_);
    table_text (table, r->finding->site_job_id);
    table_int (table, r->finding->incarnation);
    table_text (table, *r->finding->user
                           ? people ? bank_short_name (r->finding->user) : r->finding->user
                           : NULL);
    table_text (table, *r->finding->account ? r->finding->account : NULL);
    table_credits (table, r->finding->amount_micro);
    table_time (table, r->opened_us);
    table_duration (table, (r->closed_us ? r->closed_us : now) - r->opened_us);
    table_text (table, r->state);
    if (r->op_id)
        table_int (table, (int64_t)r->op_id);
    else
        table_null (table);
    table_text (table, *r->note ? r->note : r->finding->text);
    table_end_row (table);
}

int reconrows_list (struct cli_context *ctx, const char *site, bool all)
{
    static const struct table_column columns[] = {{"row", "Row", TABLE_INT, 0},
                                                  {"owner", "Owner", TABLE_TEXT, 0},
                                                  {"site", "Site", TABLE_TEXT, 0},
                                                  {"class", "Class", TABLE_TEXT, 0},
                                                  {"site_job", "SiteJob", TABLE_TEXT, 0},
                                                  {"incarnation", "Inc", TABLE_INT, 0},
                                                  {"user", "User", TABLE_TEXT, 0},
                                                  {"account", "Account", TABLE_TEXT, 0},
                                                  {"amount", "Amount", TABLE_CREDITS, 0},
                                                  {"opened", "Opened", TABLE_TIME, 0},
                                                  {"age", "Age", TABLE_DURATION, 0},
                                                  {"state", "State", TABLE_TEXT, 0},
                                                  {"op", "Op", TABLE_INT, 0},
                                                  {"note", "Note", TABLE_TEXT, 0}};
    struct arena *arena = arena_create (0);
    struct reconrows rows = {0};
    struct err err = {0};
    int rc;
    if (reconrows_read (ctx, site, all, arena, &rows, &err) < 0) {
        rc = cli_fail ("reconcile", &err);
    } else {
        struct table *table = table_create (columns, sizeof (columns) / sizeof (columns[0]));
        if (rows.count)
            qsort (rows.row, rows.count, sizeof (*rows.row), by_number);
        for (uint32_t i = 0; i < rows.count; i++)
            row_cells (ctx, table, clock_now_us (), rows.row[i]);
        rc = table_print (table, ctx);
        table_destroy (table);
    }
    reconrows_free (&rows);
    arena_destroy (arena);
    return rc;
}

int reconrows_own (struct cli_context *ctx, const struct cli_said *said)
{
    struct err err = {0};
    int code;
    Nui__Bank__V1__ReconSetRequest *request =
        (Nui__Bank__V1__ReconSetRequest *)cli_request (ctx, said, &code);
    char uri[PRINCIPAL_URI_MAX];
    const char *owner = said_text (said, "owner");
    struct tlsid *me = owner ? NULL : cli_identity (ctx, &err);
    if (!request)
        return code;
    if (owner ? cli_identity_of (ctx, owner, uri, &err) < 0 : !me)
        return cli_fail ("reconcile", &err);
    request->owner = me ? principal_uri (tlsid_self (me), uri) : uri;
    return cli_send_request (
        ctx, said, &request->base,
        arena_printf (said->arena, "row {row} is %s's", bank_short_name (uri)));
}
