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
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bank/core/ledger.h"
#include "proto/base/clock.h"
#include "meta/place/survey.h"
#include "proto/rpc/envelope.h"
#include "proto/job/element.h"
#include "proto/job/handover.h"
#include "tests/interop/testca.h"

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

/* What a site is given it can hold for, and what it is only asked about it cannot. */
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
    if (handover_check (site->grid->secret, envelope->handover, &about, clock_now_us (), &err))
        fail_msg ("%s", err.text);
    nui__common__v1__job__free_unpacked (job, NULL);
}

static void on_query (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    struct fakesite *site = self;
    const Nui__Local__V1__QueryRequest *request = (const Nui__Local__V1__QueryRequest *)message;
    Nui__Local__V1__QueryReply reply = NUI__LOCAL__V1__QUERY_REPLY__INIT;
    Nui__Common__V1__Interval interval = NUI__COMMON__V1__INTERVAL__INIT;
    Nui__Common__V1__Interval *intervals[1] = {&interval};
    Nui__Common__V1__Reason reason = NUI__COMMON__V1__REASON__INIT;
    if (!before_call (site, call, "Query", &site->calls_query))
        return;
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
static const struct rpc_method local_methods[] = {
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

/* ---- the fake bank */

static void quote_note (struct fakegrid *grid, const Nui__Bank__V1__QuoteRequest *request)
{
    size_t len = strlen (grid->quoted), cap = sizeof grid->quoted;
    if (request->all_of)
        len += (size_t)snprintf (grid->quoted + len, cap - len, "all ");
    for (size_t i = 0; i < request->n_items; i++) {
        const Nui__Bank__V1__PriceItem *item = request->items[i];
        if (len < cap - 100)
            len += (size_t)snprintf (grid->quoted + len, cap - len, "%s%s:%u%s%s", i ? " " : "",
                                     item->site, (unsigned)item->procs, *item->machine ? "@" : "",
                                     item->machine);
    }
    snprintf (grid->quoted + len, cap - len, ";");
}

static_assert ((int)SURVEY_QUOTE_ITEMS_MAX <= (int)LEDGER_QUOTE_ITEMS_MAX,
               "the bank prices what it is asked");

static const struct fakesite *quoted_site (const struct fakegrid *grid, const char *name)
{
    for (uint32_t s = 0; s < grid->sites; s++)
        if (strcmp (name, grid->site[s].name) == 0)
            return &grid->site[s];
    fail_msg ("there is no site %s", name);
    return NULL;
}

static void on_quote (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    struct fakegrid *grid = self;
    const Nui__Bank__V1__QuoteRequest *request = (const Nui__Bank__V1__QuoteRequest *)message;
    Nui__Bank__V1__QuoteReply reply = NUI__BANK__V1__QUOTE_REPLY__INIT;
    Nui__Bank__V1__Price price[LEDGER_QUOTE_ITEMS_MAX];
    Nui__Bank__V1__Price *prices[LEDGER_QUOTE_ITEMS_MAX];
    Nui__Bank__V1__FundingCandidate candidate = NUI__BANK__V1__FUNDING_CANDIDATE__INIT;
    Nui__Bank__V1__FundingCandidate *candidates[1] = {&candidate};
    Nui__Common__V1__Reason reason = NUI__COMMON__V1__REASON__INIT;
    char why[64];
    grid->calls_quote++;
    quote_note (grid, request);
    if (grid->bank_mute) {
        rpccall_finish (call, RPC_UNAVAILABLE, "mute");
        return;
    }
    assert_true (request->n_items > 0 && request->n_items <= LEDGER_QUOTE_ITEMS_MAX);
    reply.funded = grid->bank_funded;
    for (size_t i = 0; i < request->n_items; i++) {
        const Nui__Bank__V1__PriceItem *item = request->items[i];
        const struct fakesite *site = quoted_site (grid, item->site);
        int64_t rate = grid->bank_rate[site - grid->site] * (*item->machine ? 3 : 1);
        nui__bank__v1__price__init (&price[i]);
        price[i].amount_micro = (int64_t)item->procs * item->walltime_us * rate;
        price[i].funded = grid->bank_funded && !site->unfunded;
        price[i].account = (char *)"proj";
        prices[i] = &price[i];
        reply.total_micro += price[i].amount_micro;
        reply.funded = reply.funded && !site->unfunded;
        if (!price[i].funded && !reply.n_candidates) { /* of the first, as the bank's */
            candidate.account = (char *)"proj";
            candidate.shortfall_micro = 5 * MICRO_PER_CREDIT;
            reason.code = (char *)"InsufficientFunds";
            snprintf (why, sizeof why, "nothing left%s%s", site->unfunded ? " for " : "",
                      site->unfunded ? site->name : "");
            reason.text = why;
            candidate.reason = &reason;
            reply.n_candidates = 1;
            reply.candidates = candidates;
        }
    }
    reply.n_prices = request->n_items;
    reply.prices = prices;
    reply.account = (char *)"proj";
    rpccall_reply (call, &reply.base);
}

static void on_handover_key (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    struct fakegrid *grid = self;
    Nui__Bank__V1__HandoverKeyReply reply = NUI__BANK__V1__HANDOVER_KEY_REPLY__INIT;
    Nui__Bank__V1__HandoverKey item = NUI__BANK__V1__HANDOVER_KEY__INIT, *items[] = {&item};
    struct handover_key key;
    (void)message;
    grid->calls_key++;
    if (grid->bank_keyless) {
        rpccall_finish (call, RPC_UNAVAILABLE, "no database");
        return;
    }
    handover_derive (grid->secret, rpccall_peer (call)->grid, rpccall_peer (call)->name,
                     handover_number (clock_now_us ()), &key);
    item.key = key.number;
    item.secret = (ProtobufCBinaryData){sizeof key.bytes, key.bytes};
    reply.keys = items;
    reply.n_keys = 1;
    rpccall_reply (call, &reply.base);
}

static const struct rpc_method bank_methods[] = {
    {.name = "HandoverKey", .allow = META, .handler = on_handover_key},
    {.name = "Quote", .allow = META, .request_bytes_max = 1 << 20, .handler = on_quote},
    {.name = NULL},
};

/* ---- the grid */

static struct rpcserver *serve (struct fakegrid *grid, struct tlsid *id,
                                const ProtobufCServiceDescriptor *service,
                                const struct rpc_method *methods, void *self)
{
    struct rpcserver_config config = {.base = grid->base, .id = id, .listen = "127.0.0.1:0"};
    struct err err;
    struct rpcserver *server = rpcserver_create (&config, &err);
    assert_non_null (server);
    assert_int_equal (rpcserver_add_service (server, service, methods, self, &err), 0);
    return server;
}

struct fakegrid *fake_create (uint32_t sites)
{
    static const char *const first[] = {"alpha", "beta", "gamma"};
    struct fakegrid *grid = calloc (1, sizeof *grid);
    assert_true (sites <= FAKE_SITES_MAX);
    grid->sites = sites;
    memset (grid->secret, 7, sizeof grid->secret);
    grid->base = event_base_new ();
    grid->dir = testca_dir ();
    grid->ca = testca_create (grid->dir, "ca");
    testca_write_crl (grid->ca, -86400, 7 * 86400);
    grid->alice_id = testca_identity (grid->ca, "demo", "user", "alice");
    grid->bob_id = testca_identity (grid->ca, "demo", "user", "bob");
    grid->operator_id = testca_identity (grid->ca, "demo", "operator", "ops");
    grid->bank_id = testca_identity (grid->ca, "demo", "bank", "bank");
    tlsid_destroy (testca_identity (grid->ca, "demo", "meta", "meta"));
    grid->bank_funded = true;
    grid->bank = serve (grid, grid->bank_id, &nui__bank__v1__bank__descriptor, bank_methods, grid);
    for (uint32_t s = 0; s < grid->sites; s++) {
        struct fakesite *site = &grid->site[s];
        site->grid = grid;
        if (s < FAKE_SITES)
            snprintf (site->name, sizeof site->name, "%s", first[s]);
        else
            snprintf (site->name, sizeof site->name, "more%02u", s);
        site->procs = 8;
        site->event_first = 1;
        site->id = testca_identity (grid->ca, "demo", "site", site->name);
        site->server =
            serve (grid, site->id, &nui__local__v1__local__descriptor, local_methods, site);
        grid->bank_rate[s] = 1;
    }
    return grid;
}

static void config_write (struct fakegrid *grid)
{
    char path[512];
    snprintf (path, sizeof path, "%s/meta.cfg", grid->dir);
    FILE *f = fopen (path, "w");
    assert_non_null (f);
    fprintf (f,
             "GRID demo\nLISTEN 127.0.0.1:0\nPORTFILE meta.port\nPIDFILE meta.pidfile\n"
             "LOGFILE meta.log\nLOGLEVEL debug\nSTATEDIR meta-state\nCA ca.pem\nCRL ca.crl\n"
             "CERT meta.pem\nKEY meta.key\nBANK 127.0.0.1:%u\nCOALLOCLEAD 1\nBARRIERTIMEOUT 5\n"
             "PREPARETIMEOUT 2\nLEASETIME 4\n",
             rpcserver_port (grid->bank));
    for (uint32_t s = 0; s < grid->sites; s++)
        fprintf (f, "SITECFG[%s] SERVER=127.0.0.1:%u\n", grid->site[s].name,
                 rpcserver_port (grid->site[s].server));
    fclose (f);
}

void fake_meta_config (struct fakegrid *grid, const char *text)
{
    char path[512], fresh[512];
    if (!text) {
        config_write (grid);
        return;
    }
    snprintf (path, sizeof path, "%s/meta.cfg", grid->dir);
    snprintf (fresh, sizeof fresh, "%s/meta.cfg.new", grid->dir);
    FILE *f = fopen (fresh, "w");
    assert_non_null (f);
    fputs (text, f);
    fclose (f);
    assert_int_equal (rename (fresh, path), 0);
}

void fake_until (struct fakegrid *grid, bool (*cond) (void *arg), void *arg, duration_us timeout)
{
    duration_us deadline = clock_monotonic_us () + 4 * timeout; /* against hangs only */
    while (!cond (arg)) {
        struct timeval tick = {0, 20000};
        assert_true (clock_monotonic_us () < deadline);
        event_base_loopexit (grid->base, &tick);
        event_base_loop (grid->base, EVLOOP_ONCE);
    }
}

static struct rpcclient *client (struct fakegrid *grid, struct tlsid *id)
{
    char target[64];
    struct err err;
    snprintf (target, sizeof target, "127.0.0.1:%u", grid->meta_port);
    struct rpcclient_config config = {.base = grid->base,
                                      .id = id,
                                      .target = target,
                                      .expect_kind = PRINCIPAL_META,
                                      .backoff_max = 200000};
    struct rpcclient *made = rpcclient_create (&config, &err);
    assert_non_null (made);
    return made;
}

static bool port_known (void *arg)
{
    struct fakegrid *grid = arg;
    char path[512];
    unsigned port = 0;
    snprintf (path, sizeof path, "%s/meta.port", grid->dir);
    FILE *f = fopen (path, "r");
    if (!f)
        return false;
    bool got = fscanf (f, "%u", &port) == 1 && port > 0;
    fclose (f);
    grid->meta_port = (uint16_t)port;
    return got;
}

static bool reports_done (void *arg)
{
    struct fakegrid *grid = arg;
    for (uint32_t s = 0; s < grid->sites; s++)
        if (grid->site[s].reports_outstanding)
            return false;
    return true;
}

static void clients_drop (struct fakegrid *grid)
{
    rpcclient_destroy (grid->alice);
    rpcclient_destroy (grid->bob);
    rpcclient_destroy (grid->operator_);
    grid->alice = grid->bob = grid->operator_ = NULL;
    for (uint32_t s = 0; s < grid->sites; s++) {
        struct rpcclient *meta = grid->site[s].meta;
        grid->site[s].meta = NULL;
        rpcclient_destroy (meta);
    }
}

void fake_meta_start (struct fakegrid *grid)
{
    char path[512], config[512];
    config_write (grid);
    clients_drop (grid);
    snprintf (path, sizeof path, "%s/meta.port", grid->dir);
    unlink (path);
    snprintf (config, sizeof config, "%s/meta.cfg", grid->dir);
    grid->meta_pid = fork ();
    assert_true (grid->meta_pid >= 0);
    if (grid->meta_pid == 0) {
        struct rlimit few = {.rlim_max = RLIM_INFINITY};
        prctl (PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nobody behind */
        getrlimit (RLIMIT_NOFILE, &few);
        few.rlim_cur = 512; /* what it may have is more, and it has to ask for it */
        setrlimit (RLIMIT_NOFILE, &few);
        execl (NUI_META_BIN, "nui-meta", "--config", config, "--foreground", (char *)NULL);
        _exit (127);
    }
    fake_until (grid, port_known, grid, 20 * US_PER_S);
    grid->alice = client (grid, grid->alice_id);
    grid->bob = client (grid, grid->bob_id);
    grid->operator_ = client (grid, grid->operator_id);
    for (uint32_t s = 0; s < grid->sites; s++) {
        grid->site[s].meta = client (grid, grid->site[s].id);
        fake_report (&grid->site[s]);
    }
    fake_until (grid, reports_done, grid, 10 * US_PER_S);
}

void fake_meta_kill (struct fakegrid *grid)
{
    assert_true (grid->meta_pid > 0);
    assert_int_equal (kill (grid->meta_pid, SIGKILL), 0);
    waitpid (grid->meta_pid, NULL, 0);
    grid->meta_pid = 0;
}

static bool meta_gone (void *arg)
{
    struct fakegrid *grid = arg;
    int status = 0;
    if (waitpid (grid->meta_pid, &status, WNOHANG) != grid->meta_pid)
        return false;
    grid->meta_pid = 0;
    assert_true (WIFEXITED (status));
    assert_int_equal (WEXITSTATUS (status), 0);
    return true;
}

void fake_meta_stop (struct fakegrid *grid)
{
    assert_int_equal (kill (grid->meta_pid, SIGTERM), 0);
    fake_until (grid, meta_gone, grid, 20 * US_PER_S);
}

static void state_remove (const char *dir)
{
    static const char *const names[] = {"meta.sqlite", "meta.sqlite-wal", "meta.sqlite-shm", ""};
    char path[512];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf (path, sizeof path, "%s/meta-state/%s", dir, names[i]);
        remove (path);
    }
}

void fake_destroy (struct fakegrid *grid)
{
    if (grid->meta_pid > 0)
        fake_meta_stop (grid);
    clients_drop (grid);
    for (uint32_t s = 0; s < grid->sites; s++) {
        struct fakesite *site = &grid->site[s];
        for (uint32_t p = 0; p < site->part_count; p++)
            if (site->part[p].timer)
                event_free (site->part[p].timer);
        for (uint32_t i = 0; i < site->event_count; i++)
            nui__local__v1__job_info__free_unpacked (site->event[i], NULL);
        rpcserver_destroy (site->server);
        tlsid_destroy (site->id);
    }
    rpcserver_destroy (grid->bank);
    tlsid_destroy (grid->bank_id);
    tlsid_destroy (grid->alice_id);
    tlsid_destroy (grid->bob_id);
    tlsid_destroy (grid->operator_id);
    testca_destroy (grid->ca);
    state_remove (grid->dir);
    testca_remove (grid->dir);
    event_base_free (grid->base);
    free (grid);
}

/* ---- jobs */

Nui__Common__V1__Envelope *fake_envelope (struct fakegrid *grid, struct tlsid *signer,
                                          const char *submitter, const struct fake_job *spec)
{
    Nui__Common__V1__Job job = NUI__COMMON__V1__JOB__INIT;
    Nui__Common__V1__Component component[8];
    Nui__Common__V1__Component *components[8];
    Nui__Common__V1__Req req[8];
    Nui__Common__V1__Req *reqs[8];
    char name[8][16];
    Nui__Common__V1__Envelope *envelope = NULL;
    struct uuid uuid;
    struct err err;
    (void)grid;
    uuid_make (&uuid);
    job.grid = (char *)"demo";
    job.submitter = (char *)submitter;
    job.uuid = (ProtobufCBinaryData){16, (uint8_t *)(spec->uuid ? spec->uuid : uuid.b)};
    job.created_us = spec->uuid ? 1 : clock_now_us ();
    job.expires_us = spec->uuid ? INT64_MAX : clock_now_us () + 3600 * US_PER_S;
    job.name = (char *)(spec->name ? spec->name : "test");
    job.account = (char *)"proj";
    job.deadline_us = spec->deadline_us;
    job.cost_max_micro = spec->cost_max_micro;
    Nui__Common__V1__Dependency depend = NUI__COMMON__V1__DEPENDENCY__INIT, *depends[] = {&depend};
    depend.kind = (char *)"afterany";
    depend.job_id = (char *)spec->after_end_of;
    job.n_depends = spec->after_end_of != NULL;
    job.depends = depends;
    for (uint32_t i = 0; i < spec->n; i++) {
        nui__common__v1__component__init (&component[i]);
        nui__common__v1__req__init (&req[i]);
        snprintf (name[i], sizeof name[i], "c%u", i);
        req[i].tasks = spec->procs;
        reqs[i] = &req[i];
        component[i].name = name[i];
        component[i].n_reqs = 1;
        component[i].reqs = &reqs[i];
        component[i].walltime_us = spec->walltime_s * US_PER_S;
        if (!spec->no_script)
            component[i].script = (ProtobufCBinaryData){3, (uint8_t *)"#!\n"};
        if (spec->sites[i]) {
            component[i].n_sites = 1;
            component[i].sites = (char **)&spec->sites[i];
        }
        components[i] = &component[i];
    }
    Nui__Common__V1__IndexRange range = NUI__COMMON__V1__INDEX_RANGE__INIT, *ranges[] = {&range};
    range.from = 1;
    range.to = spec->array;
    job.indexes = ranges;
    job.n_indexes = spec->array > 0;
    job.array_limit = spec->array > 0;
    job.n_components = spec->n;
    job.components = components;
    size_t len = nui__common__v1__job__get_packed_size (&job);
    uint8_t *body = malloc (len + 1);
    nui__common__v1__job__pack (&job, body);
    assert_int_equal (envelope_sign (signer, body, len, &envelope, &err), 0);
    free (body);
    return envelope;
}

int fake_submit (struct fakegrid *grid, const struct fake_job *job, char id_out[32],
                 struct err *err)
{
    Nui__Meta__V1__SubmitRequest request = NUI__META__V1__SUBMIT_REQUEST__INIT;
    ProtobufCMessage *reply = NULL;
    request.envelope = fake_envelope (grid, grid->alice_id, "nui://demo/user/alice", job);
    int rc = rpcclient_call (grid->alice, &nui__meta__v1__meta__descriptor, "Submit", &request.base,
                             (grid->impatient ? 3 : 60) * US_PER_S, true, &reply, err);
    envelope_free (request.envelope);
    if (rc == 0) {
        snprintf (id_out, 32, "%s", ((Nui__Meta__V1__SubmitReply *)reply)->grid_job_id);
        protobuf_c_message_free_unpacked (reply, NULL);
    }
    return rc;
}

Nui__Meta__V1__JobStatus *fake_status (struct fakegrid *grid, const char *id)
{
    Nui__Meta__V1__JobRequest request = NUI__META__V1__JOB_REQUEST__INIT;
    ProtobufCMessage *reply = NULL;
    struct err err;
    request.grid_job_id = (char *)id;
    int rc = rpcclient_call (grid->alice, &nui__meta__v1__meta__descriptor, "Status", &request.base,
                             10 * US_PER_S, true, &reply, &err);
    if (rc)
        print_error ("%s\n", err.text);
    assert_int_equal (rc, 0);
    return (Nui__Meta__V1__JobStatus *)reply;
}

static void say_again (struct fakegrid *grid)
{
    for (uint32_t s = 0; s < grid->sites; s++) {
        struct fakesite *site = &grid->site[s];
        if (!site->reports_outstanding && (site->event_count || site->restored))
            fake_report (site);
    }
}

void fake_until_state (struct fakegrid *grid, const char *id, Nui__Meta__V1__GridJobState state)
{
    duration_us deadline = clock_monotonic_us () + 30 * US_PER_S;
    for (;;) {
        Nui__Meta__V1__JobStatus *status = fake_status (grid, id);
        bool there = status->state == state;
        bool late = clock_monotonic_us () > deadline;
        if (late)
            print_error ("%s is in state %d (%s: %s), not %d\n", id, (int)status->state,
                         status->reason->code, status->reason->text, (int)state);
        nui__meta__v1__job_status__free_unpacked (status, NULL);
        assert_false (late);
        if (there)
            return;
        say_again (grid);
        struct timeval tick = {0, 20000};
        event_base_loopexit (grid->base, &tick);
        event_base_loop (grid->base, 0);
    }
}

bool fake_nothing_held (const struct fakegrid *grid)
{
    for (uint32_t s = 0; s < grid->sites; s++)
        for (uint32_t p = 0; p < grid->site[s].part_count; p++) {
            enum fake_state state = grid->site[s].part[p].state;
            if (state == FAKE_PREPARED || state == FAKE_FIRM || state == FAKE_RUNNING)
                return false;
        }
    return true;
}
