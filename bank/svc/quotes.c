/* Kept quotes: listed and cancelled. */
#include <string.h>

#include "bank/store/quoteread.h"
#include "bank/svc/service_impl.h"

enum { QUOTES_MAX = 500 };

static Nui__Bank__V1__QuoteState state_of (const struct quote_row *row, time_us now)
{
    if (row->cancelled)
        return NUI__BANK__V1__QUOTE_STATE__QUOTE_CANCELLED;
    if (row->job[0] && !row->reusable)
        return NUI__BANK__V1__QUOTE_STATE__QUOTE_USED;
    return row->expires <= now ? NUI__BANK__V1__QUOTE_STATE__QUOTE_EXPIRED
                               : NUI__BANK__V1__QUOTE_STATE__QUOTE_OPEN;
}

static void on_quotes (void *arg, const struct err *err, const struct quote_row *row,
                       uint32_t count)
{
    struct work *work = arg;
    const Nui__Bank__V1__QuoteListRequest *m = work->request;
    struct err mine = *err;
    if (!mine.code && count == 0 && m->quote_id[0])
        err_set (&mine, ERR_NOT_FOUND, "there is no %.80s that keeps rates, or it is not yours",
                 m->quote_id);
    if (work_failed (work, &mine))
        return;
    Nui__Bank__V1__QuoteListReply reply = NUI__BANK__V1__QUOTE_LIST_REPLY__INIT;
    reply.quotes = arena_array (work->arena, count, sizeof (*reply.quotes));
    Nui__Bank__V1__QuoteItem *item = NULL;
    for (uint32_t i = 0; i < count; i++) {
        if (i == 0 || row[i].id != row[i - 1].id) {
            item = arena_new (work->arena, Nui__Bank__V1__QuoteItem);
            nui__bank__v1__quote_item__init (item);
            item->quote_id = arena_printf (work->arena, "quote.%lld", (long long)row[i].id);
            item->number = (uint64_t)row[i].id;
            item->user = unconst (row[i].identity);
            item->account = unconst (row[i].account);
            item->made_us = row[i].made;
            item->expires_us = row[i].expires;
            item->reusable = row[i].reusable;
            item->job = unconst (row[i].job);
            item->state = state_of (&row[i], work->now);
            item->sites = arena_array (work->arena, count - i, sizeof (*item->sites));
            reply.quotes[reply.n_quotes++] = item;
        }
        Nui__Bank__V1__QuoteSite *site = arena_new (work->arena, Nui__Bank__V1__QuoteSite);
        nui__bank__v1__quote_site__init (site);
        site->site = unconst (row[i].site);
        site->rate_version = (uint32_t)row[i].rate_version;
        site->priced = row[i].price >= 0;
        site->price_micro = site->priced ? row[i].price : 0;
        item->sites[item->n_sites++] = site;
    }
    work_reply (work, &reply.base);
}

void handle_quote_list (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct bank_service *svc = self;
    struct work *work = work_create (svc, call, request);
    const Nui__Bank__V1__QuoteListRequest *m = work->request;
    struct quotes_ask ask = {.account = m->account, .limit = QUOTES_MAX};
    struct err err = {0};
    work->now = committer_now (work->svc->committer);
    ask.open_at = m->all || m->quote_id[0] ? 0 : work->now;
    ask.after = m->after < INT64_MAX ? (int64_t)m->after : INT64_MAX;
    if ((m->account[0] && name_check ("account", m->account, &err) < 0) ||
        number_parse ("quote", m->quote_id, true, &ask.id, &err) < 0)
        work_fail (work, &err);
    else
        quoteread (svc->reader, viewer (work), &ask, on_quotes, work);
}

void handle_quote_cancel (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    const Nui__Bank__V1__QuoteCancelRequest *m = (const void *)request;
    struct work *work = write_begin (self, call, request, LEDGER_QUOTE_CANCEL, &m->key,
                                     &nui__bank__v1__done_reply__descriptor);
    want_number (work, "quote", m->quote_id, false, &work->req.quote_cancel.id);
    write_submit (work);
}
