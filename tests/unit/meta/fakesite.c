/* The sites of fakegrid.h: the methods of nui.local.v1 as a site must answer them, the faults that a test asks for, and what is
 * reported to nui-meta. */
#include "tests/unit/meta/fakegrid.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <openssl/sha.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/clock.h"
#include "proto/job/element.h"
#include "proto/job/handover.h"
#include "proto/rpc/receipt.h"

/* ---- events towards nui-meta */

static void report_done (void *arg, const struct rpc_result *result)
{
    struct fakesite *site = arg;
    site->reports_outstanding--;
    if (result->status != RPC_OK)
        return;
    uint64_t acked = ((const Nui__Meta__V1__ReportReply *)result->reply)->events_acked;
    while (site->event_count && site->event_first <= acked) {
        nui__local__v1__job_info__free_unpacked (site->event[0], NULL);
        site->event_count--;
        site->event_first++;
        memmove (site->event, site->event + 1, site->event_count * sizeof *site->event);
    }
}

void fake_report (struct fakesite *site)
{
    Nui__Meta__V1__SiteReport report = NUI__META__V1__SITE_REPORT__INIT;
    Nui__Meta__V1__JobEvent events[256];
    Nui__Meta__V1__JobEvent *list[256];
    Nui__Meta__V1__StartEstimate cell = NUI__META__V1__START_ESTIMATE__INIT;
    Nui__Meta__V1__StartEstimate *cells[1] = {&cell};
    char server[64];
    if (!site->meta)
        return;
    snprintf (server, sizeof server, "127.0.0.1:%u", rpcserver_port (site->server));
    report.site = site->name;
    report.server = server;
    report.now_us = clock_now_us ();
    report.nodes_total = report.nodes_up = site->procs;
    report.procs_total = report.procs_up = report.procs_free = site->procs;
    report.procs_per_node_max = site->procs;
    report.memory_per_node_max_mb = 1024;
    cell.procs = site->procs;
    cell.walltime_us = 86400 * US_PER_S;
    cell.start_us = report.now_us + site->start_estimate;
    report.n_estimates = 1;
    report.estimates = cells;
    for (uint32_t i = 0; i < site->event_count; i++) {
        nui__meta__v1__job_event__init (&events[i]);
        events[i].sequence = site->event_first + i;
        events[i].job = site->event[i];
        list[i] = &events[i];
    }
    report.n_events = site->event_count;
    report.events = list;
    Nui__Meta__V1__GridNumber number = NUI__META__V1__GRID_NUMBER__INIT, *numbers[] = {&number};
    number.metascheduler = (char *)site->taken_of;
    number.number = site->taken;
    report.events_next = site->events_next;
    if (site->restored) {
        report.events_from = site->event_count ? site->event_first : 0;
        report.events_next = site->event_first + site->event_count;
    }
    report.n_grid_numbers = site->taken_of != NULL;
    report.grid_numbers = numbers;
    struct rpccallout_config call = {.service = &nui__meta__v1__meta__descriptor,
                                     .method = "Report",
                                     .request = &report.base,
                                     .timeout = 2 * US_PER_S,
                                     .idempotent = true,
                                     .done = report_done,
                                     .arg = site};
    site->reports_outstanding++;
    rpcclient_start (site->meta, &call);
}

void fake_restored (struct fakesite *site)
{
    while (site->event_count)
        nui__local__v1__job_info__free_unpacked (site->event[--site->event_count], NULL);
    site->event_first = 1;
    site->single_count = site->number = 0;
    site->restored = true;
}

static void job_event (struct fakesite *site, const char *grid_job_id, const char *component,
                       uint32_t attempt, uint32_t number, Nui__Local__V1__JobState state,
                       const uint8_t *transaction)
{
    Nui__Local__V1__JobInfo info = NUI__LOCAL__V1__JOB_INFO__INIT;
    char id[64];
    snprintf (id, sizeof id, "%s.%u", site->name, number);
    info.site_job_id = id;
    info.grid_job_id = (char *)grid_job_id;
    info.component = (char *)component;
    info.attempt = attempt;
    info.state = state;
    info.change = clock_monotonic_us ();
    info.start_us = clock_now_us ();
    if (state >= NUI__LOCAL__V1__JOB_STATE__JOB_COMPLETED)
        info.end_us = clock_now_us ();
    if (transaction)
        info.transaction = (ProtobufCBinaryData){16, (uint8_t *)transaction};
    size_t len = nui__local__v1__job_info__get_packed_size (&info);
    uint8_t *bytes = malloc (len + 1);
    nui__local__v1__job_info__pack (&info, bytes);
    assert_true (site->event_count < 256);
    site->event[site->event_count++] = nui__local__v1__job_info__unpack (NULL, len, bytes);
    free (bytes);
    fake_report (site);
}

/* ---- the fake site's methods */

static bool before_call (struct fakesite *site, struct rpccall *call, const char *method,
                         uint32_t *counter)
{
    struct fakegrid *grid = site->grid;
    (*counter)++;
    if (!grid->killed && strcmp (grid->kill_on, method) == 0 && grid->kill_after-- == 0) {
        grid->killed = true;
        fake_meta_kill (grid);
    }
    if (strcmp (site->mute, method) == 0) {
        rpccall_finish (call, RPC_UNAVAILABLE, "mute");
        return false;
    }
    if (strcmp (site->invalid, method) == 0) {
        rpccall_finish (call, RPC_INVALID_ARGUMENT, "it makes no sense here");
        return false;
    }
    return true;
}

static struct fake_part *part_find (struct fakesite *site, const Nui__Local__V1__Part *name)
{
    for (uint32_t i = 0; i < site->part_count; i++) {
        struct fake_part *part = &site->part[i];
        if (memcmp (part->transaction, name->transaction.data, 16) == 0 &&
            strcmp (part->component, name->component) == 0 && part->attempt == name->attempt)
            return part;
    }
    return NULL;
}

static struct fake_part *part_new (struct fakesite *site, const Nui__Local__V1__Part *name,
                                   enum fake_state state)
{
    assert_true (site->part_count < FAKE_PARTS_MAX);
    struct fake_part *part = &site->part[site->part_count++];
    memset (part, 0, sizeof *part);
    memcpy (part->transaction, name->transaction.data, 16);
    snprintf (part->component, sizeof part->component, "%s", name->component);
    part->attempt = name->attempt;
    part->state = state;
    part->site = site;
    part->number = ++site->number;
    return part;
}

/* What a site is given it can hold for, and what it is only asked about it cannot; and it says when it was taken. */
static void handed_over (const struct fakesite *site, const struct rpccall *call,
                         const Nui__Common__V1__Envelope *envelope, const char *component)
{
    struct handover about = {
        .grid = rpccall_peer (call)->grid, .site = site->name, .component = component};
    struct err err = {0};
    Nui__Common__V1__Job *job = element_unpack (envelope, &err);
    assert_non_null (job);
    about.uuid = job->uuid;
    sha256 (envelope->body.data, envelope->body.len, about.hash);
    time_us received = 0;
    if (receipt_read (site->id, envelope, clock_now_us (), &received, &err))
        fail_msg ("%s", err.text);
    if (handover_check (site->grid->secret, envelope->handover, &about, clock_now_us (), &err))
        fail_msg ("%s", err.text);
    nui__common__v1__job__free_unpacked (job, NULL);
}

static void query_answer (struct fakesite *site, struct rpccall *call,
                          const Nui__Local__V1__QueryRequest *request)
{
    Nui__Local__V1__QueryReply reply = NUI__LOCAL__V1__QUERY_REPLY__INIT;
    Nui__Common__V1__Interval interval = NUI__COMMON__V1__INTERVAL__INIT;
    Nui__Common__V1__Interval *intervals[1] = {&interval};
    Nui__Common__V1__Reason reason = NUI__COMMON__V1__REASON__INIT;
    assert_null (request->envelope->handover);
    Nui__Common__V1__Job *job = nui__common__v1__job__unpack (NULL, request->envelope->body.len,
                                                              request->envelope->body.data);
    assert_non_null (job);
    reply.feasible = !site->infeasible;
    reason.code = (char *)"Denied";
    reason.text = (char *)"no account here";
    if (site->infeasible)
        reply.reason = &reason;
    interval.begin_us = request->window_begin_us + site->start_estimate + site->since_report;
    interval.end_us = request->window_end_us;
    reply.n_start_intervals = 1;
    reply.start_intervals = intervals;
    Nui__Local__V1__Together together = NUI__LOCAL__V1__TOGETHER__INIT, *steps[] = {&together};
    if (request->n_others && site->room) {
        together.begin_us = interval.begin_us;
        together.end_us = interval.end_us;
        together.members = site->room;
        reply.together = steps;
        reply.n_together = 1;
        reply.together_looked = (uint32_t)request->n_others + 1;
        reply.together_until_us = interval.end_us;
    }
    reply.start_estimate_us = clock_now_us () + site->start_estimate + site->since_report;
    reply.procs = site->query_procs ? site->query_procs : job->components[0]->reqs[0]->tasks;
    reply.machine = (char *)(site->machine ? site->machine : "");
    reply.price_least_micro = site->price_least;
    rpccall_reply (call, &reply.base);
    nui__common__v1__job__free_unpacked (job, NULL);
}

struct query_later {
    struct fakesite *site;
    struct rpccall *call;
    const Nui__Local__V1__QueryRequest *request;
};

static void on_query_later (evutil_socket_t fd, short what, void *arg)
{
    struct query_later *later = arg;
    (void)fd, (void)what;
    later->site->queries_open--;
    query_answer (later->site, later->call, later->request);
    free (later);
}

static void on_query (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    struct fakesite *site = self;
    const Nui__Local__V1__QueryRequest *request = (const Nui__Local__V1__QueryRequest *)message;
    if (!before_call (site, call, "Query", &site->calls_query))
        return;
    if (!site->query_later) {
        query_answer (site, call, request);
        return;
    }
    const struct timeval soon = {0, 5000};
    struct query_later *later = malloc (sizeof *later);
    assert_non_null (later);
    *later = (struct query_later){site, call, request};
    if (++site->queries_open > site->queries_most)
        site->queries_most = site->queries_open;
    event_base_once (site->grid->base, -1, EV_TIMEOUT, on_query_later, later, &soon);
}

static void prepare_reply (struct fakesite *site, struct rpccall *call,
                           const struct fake_part *part)
{
    Nui__Local__V1__PrepareReply reply = NUI__LOCAL__V1__PREPARE_REPLY__INIT;
    Nui__Common__V1__Peer peer = NUI__COMMON__V1__PEER__INIT;
    char *hosts[1] = {(char *)"127.0.0.1"};
    char id[64];
    snprintf (id, sizeof id, "%s.%u", site->name, part->number);
    peer.component = (char *)part->component;
    peer.site = site->name;
    peer.n_hosts = 1;
    peer.hosts = hosts;
    peer.port = 1000 + part->number;
    reply.granted = true;
    reply.site_job_id = id;
    reply.peer = &peer;
    reply.amount_micro = 7 * MICRO_PER_CREDIT;
    reply.lease_left_us = 30 * US_PER_S;
    rpccall_reply (call, &reply.base);
}

static void on_prepare (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    struct fakesite *site = self;
    const Nui__Local__V1__PrepareRequest *request = (const Nui__Local__V1__PrepareRequest *)message;
    Nui__Local__V1__PrepareReply reply = NUI__LOCAL__V1__PREPARE_REPLY__INIT;
    Nui__Common__V1__Reason reason = NUI__COMMON__V1__REASON__INIT;
    if (!before_call (site, call, "Prepare", &site->calls_prepare))
        return;
    handed_over (site, call, request->envelope, request->part->component);
    struct fake_part *part = part_find (site, request->part);
    if (part && part->state != FAKE_TOMB) {
        prepare_reply (site, call, part);
        return;
    }
    if (part || site->prepare_no) {
        reason.code = (char *)(part ? "Aborted" : "NoResources");
        reason.text = (char *)"not here, not now";
        reply.reason = &reason;
        if (!part) {
            site->prepare_no--;
            reply.next_feasible_us = request->slot_start_us + site->next_feasible;
        }
        rpccall_reply (call, &reply.base);
        return;
    }
    part = part_new (site, request->part, FAKE_PREPARED);
    part->slot = request->slot_start_us;
    snprintf (part->grid_job_id, sizeof part->grid_job_id, "%s", request->grid_job_id);
    assert_int_equal (request->start_token_hash.len, 32);
    memcpy (part->token_hash, request->start_token_hash.data, 32);
    prepare_reply (site, call, part);
}

static void on_commit (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    struct fakesite *site = self;
    const Nui__Local__V1__CommitRequest *request = (const Nui__Local__V1__CommitRequest *)message;
    Nui__Local__V1__CommitReply reply = NUI__LOCAL__V1__COMMIT_REPLY__INIT;
    if (!before_call (site, call, "Commit", &site->calls_commit))
        return;
    struct fake_part *part = part_find (site, request->part);
    if (part && part->state == FAKE_PREPARED && site->commit_expired) {
        site->commit_expired--;
        part->state = FAKE_EXPIRED;
    }
    if (part && part->state == FAKE_PREPARED) {
        part->state = FAKE_FIRM;
        part->was_firm = true;
    }
    reply.outcome = !part                         ? NUI__LOCAL__V1__COMMIT_REPLY__OUTCOME__UNKNOWN
                    : part->was_firm              ? NUI__LOCAL__V1__COMMIT_REPLY__OUTCOME__FIRM
                    : part->state == FAKE_EXPIRED ? NUI__LOCAL__V1__COMMIT_REPLY__OUTCOME__EXPIRED
                                                  : NUI__LOCAL__V1__COMMIT_REPLY__OUTCOME__ABORTED;
    reply.reservation_id = (char *)"r.1";
    rpccall_reply (call, &reply.base);
}

static void on_abort (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    struct fakesite *site = self;
    const Nui__Local__V1__AbortRequest *request = (const Nui__Local__V1__AbortRequest *)message;
    Nui__Local__V1__AbortReply reply = NUI__LOCAL__V1__ABORT_REPLY__INIT;
    if (!before_call (site, call, "Abort", &site->calls_abort))
        return;
    struct fake_part *part = part_find (site, request->part);
    if (!part)
        part = part_new (site, request->part, FAKE_TOMB);
    reply.was_held = part->state == FAKE_PREPARED;
    reply.refused_firm = part->was_firm;
    if (part->state == FAKE_PREPARED)
        part->state = FAKE_TOMB;
    rpccall_reply (call, &reply.base);
}

static void on_ready (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    struct fakesite *site = self;
    const Nui__Local__V1__ReadyRequest *request = (const Nui__Local__V1__ReadyRequest *)message;
    Nui__Local__V1__ReadyReply reply = NUI__LOCAL__V1__READY_REPLY__INIT;
    if (!before_call (site, call, "Ready", &site->calls_ready))
        return;
    struct fake_part *part = part_find (site, request->part);
    reply.ready = part && part->was_firm && !site->not_ready;
    if (site->not_ready)
        site->not_ready--;
    rpccall_reply (call, &reply.base);
}

static void part_timer (evutil_socket_t fd, short what, void *arg)
{
    struct fake_part *part = arg;
    struct fakesite *site = part->site;
    struct timeval soon = {0, 50000};
    (void)fd;
    (void)what;
    if (part->state == FAKE_FIRM) {
        part->state = FAKE_RUNNING;
        site->launches++;
        job_event (site, part->grid_job_id, part->component, part->attempt, part->number,
                   NUI__LOCAL__V1__JOB_STATE__JOB_RUNNING, part->transaction);
        if (!site->hold_runs)
            evtimer_add (part->timer, &soon);
    } else if (part->state == FAKE_RUNNING) {
        part->state = FAKE_ENDED;
        job_event (site, part->grid_job_id, part->component, part->attempt, part->number,
                   NUI__LOCAL__V1__JOB_STATE__JOB_COMPLETED, part->transaction);
    }
}

/* Every part of the transaction, wherever it is, must have become firm. */
static void all_firm_check (struct fakegrid *grid, const Nui__Local__V1__StartRequest *request)
{
    for (size_t i = 0; i < request->n_peers; i++) {
        bool firm = false;
        for (uint32_t s = 0; s < grid->sites; s++)
            for (uint32_t p = 0; p < grid->site[s].part_count; p++) {
                const struct fake_part *part = &grid->site[s].part[p];
                firm =
                    firm || (part->was_firm &&
                             memcmp (part->transaction, request->part->transaction.data, 16) == 0 &&
                             strcmp (part->component, request->peers[i]->component) == 0);
            }
        if (!firm)
            grid->violations++;
    }
}

static void on_start (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    struct fakesite *site = self;
    const Nui__Local__V1__StartRequest *request = (const Nui__Local__V1__StartRequest *)message;
    Nui__Local__V1__StartReply reply = NUI__LOCAL__V1__START_REPLY__INIT;
    uint8_t hash[32];
    if (!before_call (site, call, "Start", &site->calls_start))
        return;
    struct fake_part *part = part_find (site, request->part);
    all_firm_check (site->grid, request);
    SHA256 (request->start_token.data, request->start_token.len, hash);
    reply.accepted = part && part->was_firm && memcmp (hash, part->token_hash, 32) == 0 &&
                     part->state != FAKE_RELEASED;
    if (reply.accepted && !part->timer) {
        time_us wait = request->start_us - clock_now_us ();
        wait = wait > 0 ? wait : 0;
        struct timeval tv = {(time_t)(wait / US_PER_S), (suseconds_t)(wait % US_PER_S)};
        part->launch = request->start_us;
        part->timer = evtimer_new (site->grid->base, part_timer, part);
        evtimer_add (part->timer, &tv);
    }
    rpccall_reply (call, &reply.base);
}

static void on_release (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    struct fakesite *site = self;
    const Nui__Local__V1__ReleaseRequest *request = (const Nui__Local__V1__ReleaseRequest *)message;
    Nui__Local__V1__ReleaseReply reply = NUI__LOCAL__V1__RELEASE_REPLY__INIT;
    if (!before_call (site, call, "Release", &site->calls_release))
        return;
    struct fake_part *part = part_find (site, request->part);
    if (part && part->state != FAKE_ENDED && part->state != FAKE_RELEASED) {
        reply.released = true;
        part->state = FAKE_RELEASED;
        if (part->timer)
            evtimer_del (part->timer);
        job_event (site, part->grid_job_id, part->component, part->attempt, part->number,
                   NUI__LOCAL__V1__JOB_STATE__JOB_CANCELLED, part->transaction);
    }
    rpccall_reply (call, &reply.base);
}

static struct fake_single *single_find (struct fakesite *site, const char *id, uint32_t attempt)
{
    for (uint32_t i = 0; i < site->single_count; i++)
        if (strcmp (site->single[i].grid_job_id, id) == 0 &&
            (!attempt || site->single[i].attempt == attempt))
            return &site->single[i];
    return NULL;
}

static void on_local_submit (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    struct fakesite *site = self;
    const Nui__Local__V1__SubmitRequest *request = (const Nui__Local__V1__SubmitRequest *)message;
    Nui__Local__V1__SubmitReply reply = NUI__LOCAL__V1__SUBMIT_REPLY__INIT;
    Nui__Common__V1__Reason reason = NUI__COMMON__V1__REASON__INIT;
    char id[64];
    if (!before_call (site, call, "Submit", &site->calls_submit))
        return;
    handed_over (site, call, request->envelope, request->component);
    site->submit_released = request->released;
    if (site->submit_no) {
        site->submit_no--;
        reason.code = (char *)"Full";
        reason.text = (char *)"the queue is full";
        reply.reason = &reason;
        rpccall_reply (call, &reply.base);
        return;
    }
    struct fake_single *job = single_find (site, request->grid_job_id, request->attempt);
    if (!job) {
        assert_true (site->single_count < FAKE_SINGLES_MAX);
        job = &site->single[site->single_count++];
        snprintf (job->grid_job_id, sizeof job->grid_job_id, "%s", request->grid_job_id);
        snprintf (job->component, sizeof job->component, "%s", request->component);
        job->attempt = request->attempt;
        job->number = ++site->number;
        job->ended = false;
        if (!site->hold_runs) {
            job_event (site, job->grid_job_id, job->component, job->attempt, job->number,
                       NUI__LOCAL__V1__JOB_STATE__JOB_RUNNING, NULL);
            job_event (site, job->grid_job_id, job->component, job->attempt, job->number,
                       NUI__LOCAL__V1__JOB_STATE__JOB_COMPLETED, NULL);
        }
    }
    snprintf (id, sizeof id, "%s.%u", site->name, job->number);
    reply.accepted = true;
    reply.site_job_id = id;
    rpccall_reply (call, &reply.base);
}

/* Of what is here, under a key that the bank has now. */
static void on_local_renew (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    struct fakesite *site = self;
    const Nui__Local__V1__RenewRequest *request = (const Nui__Local__V1__RenewRequest *)message;
    Nui__Local__V1__RenewReply reply = NUI__LOCAL__V1__RENEW_REPLY__INIT;
    if (!before_call (site, call, "Renew", &site->calls_renew))
        return;
    handed_over (site, call, request->envelope, request->component);
    assert_non_null (single_find (site, request->grid_job_id, 0));
    snprintf (site->renewed, sizeof site->renewed, "%s", request->grid_job_id);
    reply.done = true;
    rpccall_reply (call, &reply.base);
}

static void on_local_cancel (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    struct fakesite *site = self;
    const Nui__Local__V1__JobRequest *request = (const Nui__Local__V1__JobRequest *)message;
    Nui__Local__V1__CancelReply reply = NUI__LOCAL__V1__CANCEL_REPLY__INIT;
    if (!before_call (site, call, "Cancel", &site->calls_cancel))
        return;
    snprintf (site->cancelled_for, sizeof site->cancelled_for, "%.79s", request->by);
    for (uint32_t i = 0; i < site->single_count; i++) {
        struct fake_single *job = &site->single[i];
        char id[64];
        snprintf (id, sizeof id, "%s.%u", site->name, job->number);
        if (strcmp (request->job_id, id) != 0 && strcmp (request->job_id, job->grid_job_id) != 0)
            continue;
        reply.cancelled = !job->ended;
        job->ended = true;
        job_event (site, job->grid_job_id, job->component, job->attempt, job->number,
                   NUI__LOCAL__V1__JOB_STATE__JOB_CANCELLED, NULL);
    }
    rpccall_reply (call, &reply.base);
}

void fake_job_event (struct fakesite *site, Nui__Local__V1__JobState told)
{
    const struct fake_single *job = &site->single[site->single_count - 1];
    job_event (site, job->grid_job_id, job->component, job->attempt, job->number, told, NULL);
    fake_report (site);
}

static void on_local_job (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    struct fakesite *site = self;
    const Nui__Local__V1__JobRequest *request = (const Nui__Local__V1__JobRequest *)message;
    Nui__Local__V1__JobInfo info = NUI__LOCAL__V1__JOB_INFO__INIT;
    char id[64];
    if (!before_call (site, call, "Job", &site->calls_job))
        return;
    if (site->denies ||
        (site->denies_numbers && strncmp (request->job_id, site->name, strlen (site->name)) == 0)) {
        rpccall_finish (call, RPC_PERMISSION_DENIED, "job is not yours");
        return;
    }
    for (uint32_t i = 0; i < site->single_count && !site->forgets; i++) {
        struct fake_single *job = &site->single[i];
        snprintf (id, sizeof id, "%s.%u", site->name, job->number);
        if (strcmp (request->job_id, id) != 0 && strcmp (request->job_id, job->grid_job_id) != 0)
            continue;
        info.site_job_id = id;
        info.grid_job_id = job->grid_job_id;
        info.component = job->component;
        info.attempt = job->attempt;
        info.state = site->tells;
        info.change = clock_monotonic_us ();
        info.start_us = clock_now_us ();
        rpccall_reply (call, &info.base);
        return;
    }
    rpccall_finish (call, RPC_NOT_FOUND, "no such job");
}

#define META RPC_ALLOW (PRINCIPAL_META)
const struct rpc_method fake_site_methods[] = {
    {.name = "Job", .allow = META, .handler = on_local_job},
    {.name = "Query", .allow = META, .request_bytes_max = 1 << 20, .handler = on_query},
    {.name = "Prepare", .allow = META, .request_bytes_max = 1 << 20, .handler = on_prepare},
    {.name = "Commit", .allow = META, .handler = on_commit},
    {.name = "Abort", .allow = META, .handler = on_abort},
    {.name = "Ready", .allow = META, .handler = on_ready},
    {.name = "Start", .allow = META, .handler = on_start},
    {.name = "Release", .allow = META, .handler = on_release},
    {.name = "Submit", .allow = META, .request_bytes_max = 1 << 20, .handler = on_local_submit},
    {.name = "Cancel", .allow = META, .handler = on_local_cancel},
    {.name = "Renew", .allow = META, .request_bytes_max = 1 << 20, .handler = on_local_renew},
    {.name = NULL},
};
