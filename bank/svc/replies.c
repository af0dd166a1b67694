/* Outcomes as reply messages: packed once, stored with the operation, sent as stored. */
#include "bank/svc/service_impl.h"

static void pack (const ProtobufCMessage *message, struct strbuf *bytes)
{
    uint8_t small[512];
    size_t len = protobuf_c_message_get_packed_size (message);
    if (len <= sizeof (small)) {
        protobuf_c_message_pack (message, small);
        strbuf_append (bytes, small, len);
        return;
    }
    struct arena *arena = arena_create (len);
    uint8_t *big = arena_alloc (arena, len);
    protobuf_c_message_pack (message, big);
    strbuf_append (bytes, big, len);
    arena_destroy (arena);
}

static Nui__Common__V1__Reason *reason_message (struct arena *arena, const char *code,
                                                const char *text)
{
    Nui__Common__V1__Reason *reason = arena_new (arena, Nui__Common__V1__Reason);
    nui__common__v1__reason__init (reason);
    reason->code = unconst (code);
    reason->text = unconst (text);
    return reason;
}

static Nui__Common__V1__Reason *reply_reason (struct arena *arena, const struct ledger_outcome *out)
{
    return reason_message (arena, out->hold.reason_code, out->hold.reason_text);
}

static Nui__Bank__V1__FundingCandidate **
reply_candidates (struct arena *arena, const struct ledger_candidate *candidate, uint32_t count)
{
    Nui__Bank__V1__FundingCandidate **list = arena_array (arena, count, sizeof (*list));
    for (uint32_t i = 0; i < count; i++) {
        Nui__Bank__V1__FundingCandidate *c = arena_new (arena, Nui__Bank__V1__FundingCandidate);
        nui__bank__v1__funding_candidate__init (c);
        c->account = unconst (candidate[i].account);
        c->reason = reason_message (arena, candidate[i].code, candidate[i].text);
        c->available_micro = candidate[i].available;
        c->shortfall_micro = candidate[i].shortfall;
        c->fallback = candidate[i].fallback;
        list[i] = c;
    }
    return list;
}

static void hold_granted (Nui__Bank__V1__HoldReply *reply, const struct ledger_granted *item)
{
    reply->granted = true;
    reply->hold_id = unconst (item->hold_id);
    reply->account = unconst (item->account);
    reply->amount_micro = item->amount;
    reply->fallback = item->fallback;
    reply->expires_us = item->expires;
    reply->qos = unconst (item->qos);
}

static void encode_hold (const struct ledger_outcome *out, struct strbuf *bytes)
{
    Nui__Bank__V1__HoldReply reply = NUI__BANK__V1__HOLD_REPLY__INIT;
    struct arena *arena = arena_create (0);
    if (out->hold.granted)
        hold_granted (&reply, &out->hold.item[0]);
    else
        reply.reason = reply_reason (arena, out);
    reply.n_candidates = out->hold.candidate_count;
    reply.candidates = reply_candidates (arena, out->hold.candidate, out->hold.candidate_count);
    pack (&reply.base, bytes);
    arena_destroy (arena);
}

static void encode_group (const struct ledger_outcome *out, struct strbuf *bytes)
{
    Nui__Bank__V1__HoldGroupReply reply = NUI__BANK__V1__HOLD_GROUP_REPLY__INIT;
    struct arena *arena = arena_create (0);
    reply.granted = out->hold.granted;
    if (out->hold.granted) {
        reply.n_holds = out->hold.count;
        reply.holds = arena_array (arena, out->hold.count, sizeof (*reply.holds));
        for (uint32_t i = 0; i < out->hold.count; i++) {
            reply.holds[i] = arena_new (arena, Nui__Bank__V1__HoldReply);
            nui__bank__v1__hold_reply__init (reply.holds[i]);
            hold_granted (reply.holds[i], &out->hold.item[i]);
        }
    } else {
        reply.reason = reply_reason (arena, out);
        reply.refused = out->hold.refused;
    }
    reply.n_candidates = out->hold.candidate_count;
    reply.candidates = reply_candidates (arena, out->hold.candidate, out->hold.candidate_count);
    pack (&reply.base, bytes);
    arena_destroy (arena);
}

void reply_quote (struct arena *arena, const struct ledger_quote *quote, const char *id,
                  time_us expires, Nui__Bank__V1__QuoteReply *reply)
{
    nui__bank__v1__quote_reply__init (reply);
    reply->n_prices = quote->item_count;
    reply->prices = arena_array (arena, quote->item_count, sizeof (*reply->prices));
    for (uint32_t i = 0; i < quote->item_count; i++) {
        Nui__Bank__V1__Price *price = arena_new (arena, Nui__Bank__V1__Price);
        nui__bank__v1__price__init (price);
        price->amount_micro = quote->item[i].amount;
        price->formula =
            unconst (quote->item[i].reason ? quote->item[i].reason : quote->item[i].formula);
        price->funded = quote->item[i].funded;
        price->account = unconst (quote->item[i].account);
        if (quote->item[i].reason)
            price->reason = reason_message (arena, quote->item[i].code, quote->item[i].reason);
        reply->prices[i] = price;
    }
    reply->total_micro = quote->total;
    reply->funded = quote->funded;
    reply->account = unconst (quote->paying);
    reply->n_candidates = quote->candidate_count;
    reply->candidates = reply_candidates (arena, quote->candidate, quote->candidate_count);
    reply->quote_id = unconst (id);
    reply->expires_us = expires;
}

static void encode_quote (const struct ledger_outcome *out, struct strbuf *bytes)
{
    Nui__Bank__V1__QuoteReply reply;
    struct arena *arena = arena_create (0);
    reply_quote (arena, out->quote.answer, out->quote.id, out->quote.expires, &reply);
    pack (&reply.base, bytes);
    arena_destroy (arena);
}

static void encode_extend (const struct ledger_outcome *out, struct strbuf *bytes)
{
    Nui__Bank__V1__ExtendReply reply = NUI__BANK__V1__EXTEND_REPLY__INIT;
    struct arena *arena = arena_create (0);
    reply.granted = out->hold.granted;
    if (out->hold.granted) {
        reply.amount_micro = out->hold.item[0].amount;
        reply.added_micro = out->hold.added;
        reply.expires_us = out->hold.item[0].expires;
    } else {
        reply.reason = reply_reason (arena, out);
    }
    reply.n_candidates = out->hold.candidate_count;
    reply.candidates = reply_candidates (arena, out->hold.candidate, out->hold.candidate_count);
    pack (&reply.base, bytes);
    arena_destroy (arena);
}

void reply_encode (void *arg, const struct ledger_request *req, const struct ledger_outcome *out,
                   struct strbuf *bytes)
{
    (void)arg;
    Nui__Bank__V1__ChargeReply charge = NUI__BANK__V1__CHARGE_REPLY__INIT;
    Nui__Bank__V1__ReleaseReply release = NUI__BANK__V1__RELEASE_REPLY__INIT;
    Nui__Bank__V1__DepositReply deposit = NUI__BANK__V1__DEPOSIT_REPLY__INIT;
    Nui__Bank__V1__DoneReply done = NUI__BANK__V1__DONE_REPLY__INIT;
    Nui__Bank__V1__RefundReply refund = NUI__BANK__V1__REFUND_REPLY__INIT;
    Nui__Bank__V1__ReconRecordReply recon = NUI__BANK__V1__RECON_RECORD_REPLY__INIT;
    switch (req->kind) {
    case LEDGER_HOLD:
        encode_hold (out, bytes);
        return;
    case LEDGER_HOLD_GROUP:
        encode_group (out, bytes);
        return;
    case LEDGER_EXTEND:
        encode_extend (out, bytes);
        return;
    case LEDGER_QUOTE:
        encode_quote (out, bytes);
        return;
    case LEDGER_CHARGE:
        charge.charged_micro = out->charge.charged;
        charge.total_micro = out->charge.total;
        charge.released_micro = out->charge.released;
        charge.account = unconst (out->charge.account);
        charge.acked_sequence = out->charge.acked;
        charge.op_id = (uint64_t)out->op_id;
        charge.disputed_micro = out->charge.disputed;
        pack (&charge.base, bytes);
        return;
    case LEDGER_RELEASE:
        release.released_micro = out->release.released;
        release.acked_sequence = out->release.acked;
        release.op_id = (uint64_t)out->op_id;
        pack (&release.base, bytes);
        return;
    case LEDGER_DEPOSIT:
        deposit.allocation_id = unconst (out->done.id);
        pack (&deposit.base, bytes);
        return;
    case LEDGER_REFUND:
        refund.refunded_micro = out->refund.refunded;
        refund.left_micro = out->refund.left;
        refund.op_id = (uint64_t)out->op_id;
        pack (&refund.base, bytes);
        return;
    case LEDGER_RECON:
        recon.opened = out->recon.opened;
        recon.open = out->recon.open;
        recon.gone = out->recon.gone;
        pack (&recon.base, bytes);
        return;
    default:
        done.id = unconst (out->done.id);
        pack (&done.base, bytes);
    }
}
