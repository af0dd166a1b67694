/* Usage over a period, in sums and record by record, open holds, and what jobs were charged. */
#include <string.h>

#include "bank/store/fundread.h"
#include "bank/svc/service_impl.h"

enum { JOBS_MAX = 1000 };

static void on_usage (void *arg, const struct err *err, const struct reader_usage *row,
                      uint32_t count)
{
    struct work *work = arg;
    if (work_failed (work, err))
        return;
    Nui__Bank__V1__UsageReply reply = NUI__BANK__V1__USAGE_REPLY__INIT;
    reply.from_us = work->from;
    reply.to_us = work->to;
    reply.n_lines = count;
    reply.lines = arena_array (work->arena, count, sizeof (*reply.lines));
    for (uint32_t i = 0; i < count; i++) {
        Nui__Bank__V1__UsageLine *line = arena_new (work->arena, Nui__Bank__V1__UsageLine);
        nui__bank__v1__usage_line__init (line);
        char **key[READER_KEYS] = {&line->user,   &line->project, &line->site, &line->account,
                                   &line->funder, &line->grant,   &line->qos,  &line->machine,
                                   &line->job,    &line->period};
        for (int k = 0; k < READER_KEYS; k++)
            *key[k] = unconst (row[i].key[k]);
        line->jobs = (uint64_t)row[i].jobs;
        line->runs = (uint64_t)row[i].runs;
        line->proc_seconds = row[i].proc_s;
        line->charged_micro = row[i].charged;
        line->refunded_micro = row[i].refunded;
        line->charged_wide = unconst (row[i].charged_wide);
        line->refunded_wide = unconst (row[i].refunded_wide);
        line->net_wide = unconst (row[i].net_wide);
        reply.lines[i] = line;
    }
    work_reply (work, &reply.base);
}

static int by_read (const Nui__Bank__V1__UsageRequest *m, unsigned *by, struct err *err)
{
    static const char *const name[] = {"user",  "project", "site",    "account", "funder",
                                       "grant", "qos",     "machine", "job",     "day",
                                       "week",  "month",   NULL};
    unsigned periods = 0;
    for (size_t i = 0; i < m->n_by; i++) {
        int k = 0;
        while (name[k] && strcmp (m->by[i], name[k]) != 0)
            k++;
        if (!name[k])
            return err_set (err, ERR_INVALID,
                            "usage: '%.40s' is none of user, project, site, account, funder, "
                            "grant, qos, machine, job, day, week, month",
                            m->by[i]);
        periods += k >= 9;
        *by |= (unsigned)READER_BY_USER << k;
    }
    if (periods > 1)
        return err_set (err, ERR_INVALID, "usage: by day, by week or by month, not several");
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
    if (work_failed (work, err))
        return;
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
    work_reply (work, &reply.base);
}

void handle_hold_list (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct bank_service *svc = self;
    struct work *work = work_create (svc, call, request);
    const Nui__Bank__V1__HoldListRequest *m = work->request;
    struct err err = {0};
    work->now = committer_now (work->svc->committer);
    if ((m->account[0] && name_check ("account", m->account, &err) < 0) ||
        (m->site[0] && name_check ("site", m->site, &err) < 0))
        work_fail (work, &err);
    else
        reader_holds (svc->reader, viewer (work), viewer_site (work), m->account, m->site,
                      m->stale ? work->now : TIME_US_MAX, on_holds, work);
}

static void on_jobs (void *arg, const struct err *err, const struct fund_job *job, uint32_t count)
{
    struct work *work = arg;
    if (work_failed (work, err))
        return;
    Nui__Bank__V1__JobListReply reply = NUI__BANK__V1__JOB_LIST_REPLY__INIT;
    reply.n_jobs = count;
    reply.jobs = arena_array (work->arena, count, sizeof (*reply.jobs));
    for (uint32_t i = 0; i < count; i++) {
        Nui__Bank__V1__JobRecord *out = arena_new (work->arena, Nui__Bank__V1__JobRecord);
        nui__bank__v1__job_record__init (out);
        out->number = (uint64_t)job[i].number;
        out->site = unconst (job[i].job.site);
        out->site_job_id = unconst (job[i].job.site_job);
        out->component = unconst (job[i].job.component);
        out->incarnation = (uint32_t)job[i].job.incarnation;
        out->grid_job_id = unconst (job[i].job.grid_job);
        out->user = unconst (job[i].identity);
        out->account = unconst (job[i].account);
        out->procs = (uint64_t)job[i].procs;
        out->start_us = job[i].start;
        out->end_us = job[i].end;
        out->charged_micro = job[i].total;
        out->refunded_micro = job[i].refunded;
        out->final = job[i].final;
        if (job[i].hold_id)
            out->hold_id = arena_printf (work->arena, "hold.%lld", (long long)job[i].hold_id);
        out->charges = (uint32_t)job[i].charges;
        out->op_id = (uint64_t)job[i].op_id;
        out->formula = unconst (job[i].formula);
        out->recorded_us = job[i].recorded;
        out->rate_version = (uint32_t)job[i].rate_version;
        out->rate_due = (uint32_t)job[i].rate_due;
        out->expired_use = job[i].expired_use;
        out->by_hand = unconst (job[i].by_hand);
        reply.jobs[i] = out;
    }
    work_reply (work, &reply.base);
}

void handle_job_list (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct bank_service *svc = self;
    struct work *work = work_create (svc, call, request);
    const Nui__Bank__V1__JobListRequest *m = work->request;
    struct err err = {0};
    struct fund_jobs_ask ask = {.own = viewer_site (work),
                                .site = m->site,
                                .site_job = m->site_job_id,
                                .from = m->from_us,
                                .to = m->to_us ? m->to_us : TIME_US_MAX,
                                .after = (int64_t)m->after,
                                .limit = m->limit && m->limit < JOBS_MAX ? m->limit : JOBS_MAX};
    if (ask.own && !ask.site[0])
        ask.site = ask.own;
    if (m->site[0] && name_check ("site", m->site, &err) < 0) {
        work_fail (work, &err);
    } else if (ask.from < 0 || ask.to < ask.from || ask.after < 0) {
        err_set (&err, ERR_INVALID, "jobs: the period ends before it begins");
        work_fail (work, &err);
    } else if (ask.site_job[0] && !ask.site[0]) {
        err_set (&err, ERR_INVALID, "jobs: of which site is job %.80s?", ask.site_job);
        work_fail (work, &err);
    } else {
        fundread_jobs (svc->reader, viewer (work), &ask, on_jobs, work);
    }
}

static void on_records (void *arg, const struct err *err, const struct fund_record *record,
                        uint32_t count)
{
    struct work *work = arg;
    if (work_failed (work, err))
        return;
    Nui__Bank__V1__UsageRecordsReply reply = NUI__BANK__V1__USAGE_RECORDS_REPLY__INIT;
    reply.from_us = work->from;
    reply.to_us = work->to;
    reply.n_records = count;
    reply.records = arena_array (work->arena, count, sizeof (*reply.records));
    for (uint32_t i = 0; i < count; i++) {
        const struct fund_record *r = &record[i];
        Nui__Bank__V1__UsageRecord *out = arena_new (work->arena, Nui__Bank__V1__UsageRecord);
        Nui__Bank__V1__Ran *ran = arena_new (work->arena, Nui__Bank__V1__Ran);
        nui__bank__v1__usage_record__init (out);
        nui__bank__v1__ran__init (ran);
        out->op_id = (uint64_t)r->op_id;
        out->recorded_us = r->recorded;
        out->charge_op_id = (uint64_t)r->charge_op;
        out->amount_micro = r->paid;
        out->disputed_micro = r->disputed;
        out->site = unconst (r->job.site);
        out->site_job_id = unconst (r->job.site_job);
        out->component = unconst (r->job.component);
        out->incarnation = (uint32_t)r->job.incarnation;
        out->grid_job_id = unconst (r->job.grid_job);
        out->user = unconst (r->identity);
        out->account = unconst (r->account);
        out->project = unconst (r->project);
        out->qos = unconst (r->qos);
        out->machine = unconst (r->machine);
        out->procs = (uint64_t)r->procs;
        out->since_us = r->since;
        out->start_us = r->start;
        out->end_us = r->end;
        out->final = r->final;
        out->successful = r->successful;
        out->cpu_us = r->cpu;
        out->walltime_us = r->walltime;
        ran->nodes = (uint64_t)r->ran.nodes;
        ran->memory_mb = r->ran.memory_mb;
        ran->submitted_us = r->ran.submitted;
        ran->local_user = unconst (r->ran.local_user);
        ran->class_ = unconst (r->ran.queue);
        out->ran = ran;
        reply.records[i] = out;
    }
    work_reply (work, &reply.base);
}

void handle_usage_records (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct bank_service *svc = self;
    struct work *work = work_create (svc, call, request);
    const Nui__Bank__V1__UsageRecordsRequest *m = work->request;
    struct err err = {0};
    struct fund_records_ask ask = {.own = viewer_site (work),
                                   .site = m->site,
                                   .account = m->account,
                                   .after = (int64_t)m->after,
                                   .limit = m->limit && m->limit < JOBS_MAX ? m->limit : JOBS_MAX};
    if (ask.own && !ask.site[0])
        ask.site = ask.own;
    if (m->after > INT64_MAX)
        err_set (&err, ERR_INVALID, "records: there is no operation %llu",
                 (unsigned long long)m->after);
    if (err.code || (m->account[0] && name_check ("account", m->account, &err) < 0) ||
        (m->site[0] && name_check ("site", m->site, &err) < 0) ||
        period_read (work, m->from_us, m->to_us, "records", &err) < 0) {
        work_fail (work, &err);
        return;
    }
    ask.from = work->from;
    ask.to = work->to;
    fundread_records (svc->reader, viewer (work), &ask, on_records, work);
}
