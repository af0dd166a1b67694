/* Usage over a period, and open holds. */
#include <string.h>

#include "bank/svc/service_impl.h"
#include "proto/base/clock.h"

static void on_usage (void *arg, const struct err *err, const struct reader_usage *row,
                      uint32_t count)
{
    struct work *work = arg;
    if (err->code) {
        work_fail (work, err);
        return;
    }
    Nui__Bank__V1__UsageReply reply = NUI__BANK__V1__USAGE_REPLY__INIT;
    reply.from_us = work->from;
    reply.to_us = work->to;
    reply.n_lines = count;
    reply.lines = arena_array (work->arena, count, sizeof (*reply.lines));
    for (uint32_t i = 0; i < count; i++) {
        Nui__Bank__V1__UsageLine *line = arena_new (work->arena, Nui__Bank__V1__UsageLine);
        nui__bank__v1__usage_line__init (line);
        line->user = unconst (row[i].user);
        line->project = unconst (row[i].project);
        line->site = unconst (row[i].site);
        line->account = unconst (row[i].account);
        line->jobs = (uint64_t)row[i].jobs;
        line->charged_micro = row[i].charged;
        line->refunded_micro = row[i].refunded;
        reply.lines[i] = line;
    }
    rpccall_reply (work->call, &reply.base);
    work_destroy (work);
}

static int by_read (const Nui__Bank__V1__UsageRequest *m, unsigned *by, struct err *err)
{
    static const char *const name[] = {"user", "project", "site", "account"};
    for (size_t i = 0; i < m->n_by; i++) {
        int k = 0;
        while (k < 4 && strcmp (m->by[i], name[k]) != 0)
            k++;
        if (k == 4)
            return err_set (err, ERR_INVALID,
                            "usage: '%.40s' is none of user, project, site, account", m->by[i]);
        *by |= (unsigned)READER_BY_USER << k;
    }
    return 0;
}

void handle_usage (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct bank_service *svc = self;
    struct work *work = work_create (svc, call, request);
    const Nui__Bank__V1__UsageRequest *m = work->request;
    struct err err = {0};
    unsigned by = 0;
    if ((m->account[0] && name_check ("account", m->account, &err) < 0) ||
        by_read (m, &by, &err) < 0 || period_read (work, m->from_us, m->to_us, "usage", &err) < 0)
        work_fail (work, &err);
    else
        reader_usage (svc->reader, viewer (work), m->account, work->from, work->to, by, on_usage,
                      work);
}

static void on_holds (void *arg, const struct err *err, const struct reader_hold *row,
                      uint32_t count)
{
    struct work *work = arg;
    if (err->code) {
        work_fail (work, err);
        return;
    }
    Nui__Bank__V1__HoldListReply reply = NUI__BANK__V1__HOLD_LIST_REPLY__INIT;
    reply.n_holds = count;
    reply.holds = arena_array (work->arena, count, sizeof (*reply.holds));
    for (uint32_t i = 0; i < count; i++) {
        Nui__Bank__V1__HoldItem *item = arena_new (work->arena, Nui__Bank__V1__HoldItem);
        nui__bank__v1__hold_item__init (item);
        item->hold_id = arena_printf (work->arena, "hold.%lld", (long long)row[i].id);
        item->account = unconst (row[i].account);
        item->user = unconst (row[i].identity);
        item->site = unconst (row[i].job.site);
        item->grid_job_id = unconst (row[i].job.grid_job);
        item->site_job_id = unconst (row[i].job.site_job);
        item->component = unconst (row[i].job.component);
        item->incarnation = (uint32_t)row[i].job.incarnation;
        item->amount_micro = row[i].amount;
        item->left_micro = row[i].left;
        item->start_us = row[i].start;
        item->expires_us = row[i].expires;
        item->stale = row[i].expires <= work->now;
        reply.holds[i] = item;
    }
    rpccall_reply (work->call, &reply.base);
    work_destroy (work);
}

void handle_hold_list (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct bank_service *svc = self;
    struct work *work = work_create (svc, call, request);
    const Nui__Bank__V1__HoldListRequest *m = work->request;
    struct err err = {0};
    work->now = clock_now_us ();
    if (m->account[0] && name_check ("account", m->account, &err) < 0)
        work_fail (work, &err);
    else
        reader_holds (svc->reader, viewer (work), m->account, m->stale ? work->now : TIME_US_MAX,
                      on_holds, work);
}
