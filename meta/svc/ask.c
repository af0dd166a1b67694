/* The methods by which users look at jobs and sites, and cancel: Jobs, Status, Watch, Cancel, Sites, WhoAmI. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "meta/lead/forward.h"
#include "meta/group/group.h"
#include "meta/svc/array.h"
#include "meta/svc/handlers.h"
#include "meta/job/job.h"
#include "meta/lead/lead.h"
#include "meta/place/arrays.h"
#include "meta/job/peers.h"
#include "meta/job/seal.h"
#include "meta/single/single.h"
#include "meta/store/past.h"
#include "meta/job/sites.h"

/* An answer is made in one turn of the loop: PAGE_WORK is what a job in memory costs, so many times. */
enum { JOBS_LIMIT_DEFAULT = 1000, JOBS_LIMIT_MAX = 2000 };
enum { PAGE_WORK = 1600, WORK_OF_LOADED = 4, ELEMENTS_OF_WORK = 8 };

/* Of a job that is not here. */
static void ask_absent (struct metad *metad, const char *text, struct err *err)
{
    char when[QUANTITY_TEXT_MAX];
    time_us forgotten = 0;
    if (past_forgotten (metad->store, &forgotten, NULL) == 0 && forgotten)
        err_set (err, ERR_NOT_FOUND,
                 "there is no job %.60s, or it is another's, or it ended before %s and is not kept "
                 "here any more (nui jobs --from asks the bank)",
                 text, time_format_iso (forgotten, when));
    else
        err_set (err, ERR_NOT_FOUND, "there is no job %.60s, or it is another's", text);
}

/* The job that is named; or the first of an array, or of which several are. */
static struct gridjob *job_find (struct metad *metad, const struct rpccall *call, const char *text,
                                 struct element_id *id, bool *array_out, struct err *err)
{
    const struct principal *peer = rpccall_peer (call);
    char uri[PRINCIPAL_URI_MAX];
    uint32_t index;
    if (element_id_parse (text, id, err))
        return NULL;
    uint64_t number = id->number;
    if (strcmp (id->prefix, "grid") != 0 || number > INT64_MAX) {
        err_set (err, ERR_INVALID, "'%.60s' is not a grid job; those are grid.1, grid.2 …", text);
        return NULL;
    }
    bool single = element_id_single (id, &index);
    struct gridjob *job = NULL;
    if (!single || metastore_element_find (metad->store, id->number, index, &number, err) == 0)
        job = job_get (metad, number, err);
    if (job && peer->kind != PRINCIPAL_OPERATOR &&
        strcmp (principal_uri (peer, uri), job->submitter) != 0)
        job = NULL;
    if (!job && err->code == ERR_NOT_FOUND)
        peers_unsure (metad, number, err);
    if (!job && (err->code == ERR_NONE || err->code == ERR_NOT_FOUND))
        ask_absent (metad, text, err);
    if (job && id->range_count && job->array != id->number) {
        err_set (err, ERR_NOT_FOUND, "grid.%" PRIu64 " is no array", id->number);
        return NULL;
    }
    *array_out = job && !single && job->array == id->number;
    return job;
}

struct gridjob *job_or_array (struct metad *metad, struct rpccall *call, const char *text,
                              struct element_id *id, bool *array_out)
{
    struct err err;
    err_clear (&err);
    struct gridjob *job = job_find (metad, call, text, id, array_out, &err);
    if (!job)
        rpccall_fail (call, &err);
    return job;
}

struct gridjob *job_of_request (struct metad *metad, struct rpccall *call, const char *text)
{
    struct element_id id;
    struct err err;
    bool array;
    struct gridjob *job = job_or_array (metad, call, text, &id, &array);
    if (!job || !array)
        return job;
    err_set (&err, ERR_INVALID, "%.60s is an array: one of its jobs is needed, as in %s", text,
             job->id);
    rpccall_fail (call, &err);
    return NULL;
}

/* A job, or all of an array that it is the first of. */
static Nui__Meta__V1__JobStatus *status_of (struct gridjob *job, bool elements, struct arena *arena)
{
    struct element_id whole = {.number = job->array};
    Nui__Meta__V1__JobStatus *status = NULL;
    if (job->array && !elements)
        status = array_status (job, &whole, "", false, arena, NULL);
    return status ? status : job_status (job, arena);
}

/* One answer to Jobs, from its newest job on. */
struct jobs_page {
    struct arena *arena;
    Nui__Meta__V1__JobsReply reply;
    uint32_t limit, work;
};

static void page_open (struct jobs_page *page, uint32_t limit, uint32_t most)
{
    page->arena = arena_create (0);
    page->limit = limit;
    page->work = 0;
    nui__meta__v1__jobs_reply__init (&page->reply);
    page->reply.jobs = arena_array (page->arena, most + 1u, sizeof *page->reply.jobs);
}

/* Whether there is room for one more. */
static bool page_open_for (struct jobs_page *page)
{
    page->reply.more = page->work >= PAGE_WORK;
    return !page->reply.more && page->reply.n_jobs < page->limit;
}

static void page_add (struct jobs_page *page, struct metad *metad, uint64_t number, bool elements)
{
    page->work += job_live (metad, number) ? 1 : WORK_OF_LOADED;
    struct gridjob *job = job_get (metad, number, NULL);
    page->reply.first = number;
    if (!job)
        return;
    Nui__Meta__V1__JobStatus *status = status_of (job, elements, page->arena);
    if (status->array)
        page->work += status->array->count / ELEMENTS_OF_WORK;
    page->reply.jobs[page->reply.n_jobs++] = status;
}

/* From `from` on they are newest first; they are told newest last. */
static void page_close (struct jobs_page *page, struct metad *metad, struct rpccall *call,
                        size_t from)
{
    Nui__Meta__V1__JobsReply *reply = &page->reply;
    for (size_t low = from, high = reply->n_jobs; low + 1 < high; low++) {
        Nui__Meta__V1__JobStatus *swap = reply->jobs[low];
        reply->jobs[low] = reply->jobs[--high];
        reply->jobs[high] = swap;
    }
    past_forgotten (metad->store, &reply->forgotten_us, NULL);
    rpccall_reply (call, &reply->base);
    arena_destroy (page->arena);
}

/* Those of an array that the request names. */
static void array_jobs (struct metad *metad, struct rpccall *call,
                        const Nui__Meta__V1__JobsRequest *request)
{
    struct jobs_page page;
    struct element_id id;
    struct element_row *row = NULL;
    struct err err;
    bool array;
    uint32_t count = 0;
    err_clear (&err);
    uint32_t limit =
        request->limit && request->limit < JOBS_LIMIT_MAX ? request->limit : JOBS_LIMIT_MAX;
    struct gridjob *job = job_or_array (metad, call, request->grid_job_id, &id, &array);
    if (!job)
        return;
    page_open (&page, limit, limit);
    if (array && metastore_array_list (metad->store, id.number, page.arena, &row, &count, &err)) {
        rpccall_fail (call, &err);
        arena_destroy (page.arena);
        return;
    }
    page.work = count / ELEMENTS_OF_WORK / 2;
    if (!array)
        page.reply.jobs[page.reply.n_jobs++] = job_status (job, page.arena);
    for (uint32_t i = count; i-- > 0;) { /* numbers ascend with the indexes */
        bool live = row[i].state < NUI__META__V1__GRID_JOB_STATE__GRID_COMPLETED;
        if ((request->before && row[i].number >= request->before) || (!live && !request->ended) ||
            !element_id_has (&id, row[i].index))
            continue;
        if (!page_open_for (&page))
            break;
        page_add (&page, metad, row[i].number, true);
    }
    page_close (&page, metad, call, 0);
}

void on_jobs (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    const Nui__Meta__V1__JobsRequest *request = (const Nui__Meta__V1__JobsRequest *)message;
    struct metad *metad = self;
    const struct principal *peer = rpccall_peer (call);
    char uri[PRINCIPAL_URI_MAX];
    const char *submitter = request->all_users ? NULL : principal_uri (peer, uri);
    struct jobs_page page;
    struct err err;
    uint64_t *number = NULL;
    uint32_t count = 0, untold = 0;
    uint32_t limit = request->limit ? request->limit : JOBS_LIMIT_DEFAULT;
    err_clear (&err);
    if (request->all_users && peer->kind != PRINCIPAL_OPERATOR) {
        rpccall_finish (call, RPC_PERMISSION_DENIED, "only operators see the jobs of all users");
        return;
    }
    if (limit > JOBS_LIMIT_MAX)
        limit = JOBS_LIMIT_MAX;
    if (request->grid_job_id[0]) {
        array_jobs (metad, call, request);
        return;
    }
    struct arena *arena = arena_create (0);
    if ((request->elements ? metastore_job_list : metastore_job_list_folded) (
            metad->store, submitter, request->ended, request->before, limit, arena, &number, &count,
            &err)) {
        rpccall_fail (call, &err);
        arena_destroy (arena);
        return;
    }
    struct gridjob **hidden =
        request->ended || request->before ? NULL : lead_hidden (metad, arena, &untold);
    page_open (&page, UINT32_MAX, count + untold);
    for (uint32_t i = 0; i < untold && page.work < PAGE_WORK / 2; i++)
        if (!submitter || strcmp (hidden[i]->submitter, submitter) == 0) {
            page.reply.jobs[page.reply.n_jobs++] = job_status (hidden[i], page.arena);
            page.work++;
        }
    size_t from = page.reply.n_jobs;
    for (uint32_t i = count; i-- > 0 && page_open_for (&page);)
        page_add (&page, metad, number[i], request->elements);
    page_close (&page, metad, call, from);
    arena_destroy (arena);
}

void on_status (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    const Nui__Meta__V1__JobRequest *request = (const Nui__Meta__V1__JobRequest *)message;
    struct element_id id;
    struct err err;
    bool array;
    struct gridjob *job = job_or_array (self, call, request->grid_job_id, &id, &array);
    if (!job)
        return;
    err_clear (&err);
    struct arena *arena = arena_create (0);
    Nui__Meta__V1__JobStatus *status =
        array ? array_status (job, &id, request->grid_job_id, true, arena, &err)
              : job_status (job, arena);
    if (status)
        rpccall_reply (call, &status->base);
    else
        rpccall_fail (call, &err);
    arena_destroy (arena);
}

void on_watch (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    const Nui__Meta__V1__JobRequest *request = (const Nui__Meta__V1__JobRequest *)message;
    struct gridjob *job = job_of_request (self, call, request->grid_job_id);
    if (job)
        job_watch (job, call);
}

/* ---- cancel */

static void cancel_answer (struct rpccall *call, uint64_t as, bool cancelled)
{
    Nui__Meta__V1__CancelReply reply = NUI__META__V1__CANCEL_REPLY__INIT;
    reply.cancelled = cancelled;
    reply.count = cancelled;
    if (as)
        rpccall_reply (call, &reply.base);
    else
        rpccall_finish (call, RPC_UNAVAILABLE,
                        "another metascheduler of the group goes on with the job: try again");
}

static void cancel_voted (void *arg, uint64_t as)
{
    cancel_answer (arg, as, true);
}

/* It ended before it was cancelled. */
static void cancel_late (void *arg, uint64_t as)
{
    cancel_answer (arg, as, false);
}

static void cancel_here (struct gridjob *job, const char *by, struct rpccall *call)
{
    struct metad *metad = job->metad;
    uint64_t number = job->number;
    log_event (metad->log, LOG_LEVEL_INFO, "submit", "cancel", "job=%s by=%s", job->id, by);
    if (job_is_group (job))
        group_cancel (job, by);
    else
        single_cancel (job, by);
    job = job_live (metad, number);
    if (job && job->cancel_wanted)
        lead_then (job, cancel_voted, call);
    else if (job && job->reloaded) /* it could not be written down */
        rpccall_finish (call, RPC_UNAVAILABLE,
                        "too few metaschedulers of the group answer now: try again");
    else
        rpccall_finish (call, RPC_UNAVAILABLE, "the metascheduler cannot write its state");
}

static void cancel (struct gridjob *job, const char *by, bool forwarded, struct rpccall *call)
{
    PeerRequest request = NUI__META__V1__PEER_REQUEST__INIT;
    request.by = (char *)by;
    if (job_over (job))
        cancel_answer (call, job->number, false);
    else if (job_untold (job) && !job_is_elsewhere (job))
        lead_then (job, cancel_late, call);
    else if (forward_not (job, "Cancel", &request, forwarded, call))
        cancel_here (job, by, call);
}

struct array_cancel {
    struct metad *metad;
    struct rpccall *call;
    struct votes_join *votes;
    char by[PRINCIPAL_URI_MAX];
    uint64_t array;
    uint32_t count;
    struct err why; /* of one that is not */
};

static void array_cancel_voted (void *arg, bool stands)
{
    struct array_cancel *cancelled = arg;
    Nui__Meta__V1__CancelReply reply = NUI__META__V1__CANCEL_REPLY__INIT;
    reply.cancelled = cancelled->count > 0;
    reply.count = cancelled->count;
    if (cancelled->why.code && cancelled->count)
        err_prefix (&cancelled->why, "only %u of them are cancelled", cancelled->count);
    if (cancelled->why.code)
        rpccall_fail (cancelled->call, &cancelled->why);
    else if (stands)
        rpccall_reply (cancelled->call, &reply.base);
    else
        rpccall_finish (cancelled->call, RPC_UNAVAILABLE,
                        "another metascheduler of the group goes on with some of them: try again");
    free (cancelled);
}

/* Another of the group has answered for one that it leads. */
static void array_cancel_answered (void *arg, const struct rpc_result *result)
{
    struct array_cancel *cancelled = arg;
    const Nui__Meta__V1__CancelReply *reply = (const Nui__Meta__V1__CancelReply *)result->reply;
    if (result->status == RPC_OK)
        cancelled->count += reply->cancelled;
    else
        err_set (&cancelled->why, rpc_err_of_status (result->status), "%.300s", result->message);
    votes_came (cancelled->votes, 1);
}

/* What is led elsewhere is cancelled there. Returns whether it is led here. */
static bool array_cancel_here (struct array_cancel *cancelled, struct gridjob *job)
{
    PeerRequest request = NUI__META__V1__PEER_REQUEST__INIT;
    struct err err;
    err_clear (&err);
    if (job_led_here (job, &err) == 0)
        return true;
    if (err.code != ERR_CONFLICT) {
        cancelled->why = err;
        return false;
    }
    request.by = cancelled->by;
    votes_expect (cancelled->votes);
    forward_send (job, "Cancel", &request, array_cancel_answered, cancelled);
    return false;
}

/* Those that are reserved for their licences have a record each, the others are written together. */
static int array_cancel_write (struct metad *metad, const uint64_t *live, uint32_t count,
                               const char *by, struct err *err)
{
    struct arena *arena = arena_create (0);
    uint64_t *number = arena_array (arena, count + 1u, sizeof *number);
    uint32_t plain = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct gridjob *job = job_live (metad, live[i]);
        if (job && job_is_group (job))
            group_cancel (job, by);
        else if (job)
            number[plain++] = live[i];
    }
    int rc = single_cancel_all (metad, number, plain, by, err);
    arena_destroy (arena);
    return rc;
}

static int array_cancel_some (void *arg, const struct element_row *row, uint32_t count,
                              struct err *err)
{
    struct array_cancel *cancelled = arg;
    struct metad *metad = cancelled->metad;
    struct arena *arena = arena_create (0);
    uint64_t *live = arena_array (arena, count + 1u, sizeof *live);
    uint32_t lives = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct gridjob *job = array_job (metad, &row[i]);
        if (job && array_cancel_here (cancelled, job))
            live[lives++] = row[i].number;
    }
    int rc = array_cancel_write (metad, live, lives, cancelled->by, err);
    for (uint32_t i = 0; i < lives && rc == 0; i++) {
        struct gridjob *job = job_live (metad, live[i]);
        if (job && job->cancel_wanted) {
            cancelled->count++;
            votes_add (cancelled->votes, job);
        }
    }
    arena_destroy (arena);
    return rc;
}

static void array_cancel_done (void *arg, int rc, const struct err *err)
{
    struct array_cancel *cancelled = arg;
    if (!cancelled->metad->stopping)
        array_turns (cancelled->metad, cancelled->array, true);
    if (rc)
        cancelled->why = *err;
    votes_close (cancelled->votes);
}

/* Those that wait before those that run, and none gets its turn meanwhile, so that none takes the place of one that was
 * ended. One that is killed before it has answered has cancelled some of them. */
static void array_cancel (struct metad *metad, struct rpccall *call, const struct element_id *id,
                          const char *by)
{
    struct arena *arena = arena_create (0);
    struct array_cancel *cancelled = calloc (1, sizeof *cancelled);
    struct element_row *row = NULL;
    struct err err;
    uint32_t count = 0;
    if (!cancelled)
        abort ();
    err_clear (&err);
    *cancelled = (struct array_cancel){.metad = metad, .call = call, .array = id->number};
    snprintf (cancelled->by, sizeof cancelled->by, "%s", by);
    int rc = array_named (metad, id, arena, &row, &count, &err);
    log_event (metad->log, LOG_LEVEL_INFO, "submit", "cancel", "job=grid.%llu of=%u by=%s",
               (unsigned long long)id->number, count, by);
    if (rc) {
        rpccall_fail (call, &err);
        free (cancelled);
    } else {
        array_turns (metad, id->number, false);
        cancelled->votes = votes_begin (array_cancel_voted, cancelled);
        struct array_work work = {
            .some = array_cancel_some, .done = array_cancel_done, .arg = cancelled};
        array_each (metad, &work, row, count);
    }
    arena_destroy (arena);
}

void on_cancel (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    const Nui__Meta__V1__JobRequest *request = (const Nui__Meta__V1__JobRequest *)message;
    char uri[PRINCIPAL_URI_MAX];
    struct element_id id;
    bool array;
    struct gridjob *job = job_or_array (self, call, request->grid_job_id, &id, &array);
    if (!job)
        return;
    principal_uri (rpccall_peer (call), uri);
    if (array)
        array_cancel (self, call, &id, uri);
    else
        cancel (job, uri, false, call);
}

void on_peer_cancel (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    const PeerRequest *request = (const PeerRequest *)message;
    struct gridjob *job = forward_job (self, call, request);
    if (job)
        cancel (job, request->by, true, call);
}

void on_sites (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    struct metad *metad = self;
    struct arena *arena = arena_create (0);
    Nui__Meta__V1__SitesReply reply = NUI__META__V1__SITES_REPLY__INIT;
    (void)message;
    reply.sites = arena_array (arena, metad->site_count + 1u, sizeof *reply.sites);
    reply.bank_clock_ahead_us = seal_bank_clock (metad);
    for (uint32_t i = 0; i < metad->site_count; i++) {
        struct site *site = metad->site[i];
        if (!site->configured)
            continue;
        Nui__Meta__V1__SiteState *state = arena_new (arena, Nui__Meta__V1__SiteState);
        nui__meta__v1__site_state__init (state);
        state->name = site->name;
        state->server = arena_strdup (arena, site_server (site));
        state->up = site_up (site);
        state->reported_us = site->reported_us;
        state->clock_ahead_us = site->clock_ahead;
        state->report = site->report;
        reply.sites[reply.n_sites++] = state;
    }
    rpccall_reply (call, &reply.base);
    arena_destroy (arena);
}

void on_whoami (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    const struct principal *peer = rpccall_peer (call);
    Nui__Meta__V1__WhoAmIReply reply = NUI__META__V1__WHO_AM_IREPLY__INIT;
    char uri[PRINCIPAL_URI_MAX];
    (void)self;
    (void)message;
    reply.identity = principal_uri (peer, uri);
    reply.kind = (char *)principal_kind_name (peer->kind);
    reply.grid = (char *)peer->grid;
    rpccall_reply (call, &reply.base);
}
