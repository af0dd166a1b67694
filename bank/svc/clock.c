/* The bank's clock: what it shows, and an operator's word that it is right. */
#include "bank/svc/service_impl.h"

void handle_clock (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct bank_service *svc = self;
    Nui__Bank__V1__ClockReply reply = NUI__BANK__V1__CLOCK_REPLY__INIT;
    (void)request;
    reply.ahead_us = committer_clock_ahead (svc->committer);
    committer_clock (svc->committer, &reply.now_us, &reply.moment_us);
    rpccall_reply (call, &reply.base);
}

void handle_clock_accept (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    const Nui__Bank__V1__ClockAcceptRequest *m = (const void *)request;
    struct work *work = write_begin (self, call, request, LEDGER_CLOCK, &m->key,
                                     &nui__bank__v1__done_reply__descriptor);
    want_text (work, "reason", m->reason, 1024);
    work->req.clock.ahead = committer_clock_ahead (work->svc->committer);
    work->req.clock.reason = m->reason;
    if (!work->err.code && !m->reason[0])
        err_set (&work->err, ERR_INVALID, "say why the clock is right");
    if (!work->err.code && !work->req.clock.ahead)
        err_set (&work->err, ERR_CONFLICT,
                 "the bank's clock is believed: there is nothing to accept");
    write_submit (work);
}
