/* What jobs used and what the bank was told of it: the site's side of a reconciliation. */
#include <string.h>

#include "local/store/runs.h"
#include "local/svc/admin/admin.h"
#include "local/svc/caller.h"
#include "local/svc/job.h"
#include "local/svc/job/jobs.h"
#include "local/svc/svc_i.h"

enum { RUNS_MAX = 1000, LEAVING_MAX = 10000 };

struct page {
    struct svc *svc;
    struct arena *arena;
    Nui__Local__V1__RunsReply reply;
    size_t open_cap;
};

static void on_run (void *arg, const struct store_run *r)
{
    struct page *p = arg;
    Nui__Local__V1__Run *out = arena_new (p->arena, Nui__Local__V1__Run);
    nui__local__v1__run__init (out);
    out->sequence = r->sequence;
    out->charge = nui__bank__v1__charge_request__unpack (NULL, r->request_len, r->request);
    out->untold = arena_strdup (p->arena, r->untold);
    out->message = r->message;
    out->answered = r->charged >= 0;
    out->charged_micro = r->charged >= 0 ? r->charged : 0;
    out->user = arena_strdup (p->arena, r->user);
    out->rm_id = arena_strdup (p->arena, r->rm_id);
    out->rm_submit_us = r->rm_submit;
    p->reply.runs[p->reply.n_runs++] = out;
}

static Nui__Local__V1__OpenRun *open_add (struct page *p)
{
    Nui__Local__V1__OpenRun *out = arena_new (p->arena, Nui__Local__V1__OpenRun);
    nui__local__v1__open_run__init (out);
    if (p->reply.n_open == p->open_cap) {
        size_t cap = p->open_cap * 2 + 64;
        Nui__Local__V1__OpenRun **more = arena_array (p->arena, cap, sizeof *more);
        if (p->reply.n_open)
            memcpy (more, p->reply.open, p->reply.n_open * sizeof *more);
        p->reply.open = more;
        p->open_cap = cap;
    }
    p->reply.open[p->reply.n_open++] = out;
    return out;
}

/* A hold that is being given back. */
static void on_message (void *arg, const struct store_item *item)
{
    struct page *p = arg;
    if (strcmp (item->kind, "release") != 0)
        return;
    Nui__Bank__V1__ReleaseRequest *m =
        nui__bank__v1__release_request__unpack (NULL, item->payload_len, item->payload);
    if (m)
        open_add (p)->hold_id = arena_strdup (p->arena, m->hold_id);
    nui__bank__v1__release_request__free_unpacked (m, NULL);
}

/* One that the bank was asked for: whether it was granted is not known here. */
static int on_asked (void *arg, struct store_hold *hold, struct err *err)
{
    struct page *p = arg;
    Nui__Bank__V1__HoldRequest *m =
        nui__bank__v1__hold_request__unpack (NULL, hold->request_len, hold->request);
    (void)err;
    if (m) {
        Nui__Local__V1__OpenRun *out = open_add (p);
        out->site_job_id = arena_strdup (p->arena, m->site_job_id);
        out->component = arena_strdup (p->arena, m->component);
        out->incarnation = m->incarnation;
    }
    nui__bank__v1__hold_request__free_unpacked (m, NULL);
    return 0;
}

static int open_fill (struct page *p, struct err *err)
{
    struct site_job *job, *next;
    HASH_ITER (hh, p->svc->jobs, job, next) {
        char id[SITE_ID_MAX];
        if (!*job->rec.hold_id)
            continue;
        Nui__Local__V1__OpenRun *out = open_add (p);
        out->site_job_id = arena_strdup (p->arena, site_id (p->svc, job->rec.number, id));
        out->component = job->rec.component;
        out->incarnation = job->rec.incarnation;
        out->hold_id = job->rec.hold_id;
    }
    uint64_t acked = 0;
    int rc = local_store_holds (p->svc->store, on_asked, p, err);
    if (rc == 0)
        rc = local_store_outbox_position (p->svc->store, STORE_OUTBOX_BANK, &acked, NULL, err);
    return rc == 0 ? local_store_outbox_read (p->svc->store, STORE_OUTBOX_BANK, acked, LEAVING_MAX,
                                              on_message, p, err)
                   : rc;
}

struct refusal {
    struct arena *arena;
    Nui__Local__V1__Run *run;
};

static void on_dead (void *arg, const struct store_item *item, const char *reason)
{
    struct refusal *r = arg;
    if (item->sequence == r->run->message)
        r->run->refused = arena_strdup (r->arena, reason);
}

static int refused_fill (struct page *p, Nui__Local__V1__Run *run, struct err *err)
{
    struct refusal r = {p->arena, run};
    if (run->answered || !run->message)
        return 0;
    return local_store_outbox_dead (p->svc->store, STORE_OUTBOX_BANK, run->message - 1, 1, on_dead,
                                    &r, err);
}

void admin_stats_runs (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct svc *svc = self;
    const Nui__Local__V1__RunsRequest *r = (const Nui__Local__V1__RunsRequest *)request;
    struct page p = {
        .svc = svc, .arena = svc->call_arena, .reply = NUI__LOCAL__V1__RUNS_REPLY__INIT};
    struct runs_after after = {r->after_end_us, r->after};
    bool first = !r->after && !r->after_end_us;
    struct admin_caller caller;
    struct err err = {0};
    uint32_t limit = r->limit && r->limit < RUNS_MAX ? r->limit : RUNS_MAX;
    time_us since = 0;
    admin_who (svc, call, &caller);
    arena_reset (svc->call_arena);
    if (first) /* before any run, whatever clock it was written by */
        after.end = INT64_MIN;
    int rc = admin_require (&caller, ADMIN_INFO, "what jobs were charged", &err);
    p.reply.runs = arena_array (p.arena, limit, sizeof *p.reply.runs);
    if (rc == 0)
        rc = runs_read (svc->store, r->from_us, r->until_us,
                        *r->site_job_id ? r->site_job_id : NULL, &after, limit, on_run, &p, &err);
    if (rc == 0 && first && !*r->site_job_id)
        rc = open_fill (&p, &err);
    if (rc == 0)
        rc = runs_first (svc->store, &p.reply.first_us, &err);
    if (rc == 0)
        rc = local_store_outbox_waiting (svc->store, STORE_OUTBOX_BANK, &p.reply.waiting, &since,
                                         &err);
    p.reply.waiting_since_us = since;
    p.reply.waiting_why = arena_strdup (p.arena, svc->bank ? bank_link_denied (svc->bank) : "");
    if (rc == 0)
        rc = local_store_outbox_dead_count (svc->store, STORE_OUTBOX_BANK, &p.reply.refused, &err);
    for (size_t i = 0; i < p.reply.n_runs && rc == 0 && p.reply.refused; i++)
        rc = refused_fill (&p, p.reply.runs[i], &err);
    if (rc == 0)
        rpccall_reply (call, &p.reply.base);
    else
        jobs_refuse (svc, call, &err);
    for (size_t i = 0; i < p.reply.n_runs; i++)
        nui__bank__v1__charge_request__free_unpacked (p.reply.runs[i]->charge, NULL);
}
