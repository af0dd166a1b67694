/* users: who submits until a job is taken or refused, and asks until it has ended. */
#include "grid_i.h"

#include "proto/base/clock.h"
#include "proto/job/element.h"
#include "proto/rpc/envelope.h"

static void job_next (void *arg);

static void job_again (struct ujob *job, duration_us after)
{
    todo_set (&job->next, sim.now + after + (duration_us)sim_below ((uint64_t)after + 1));
}

static bool uncertain (const struct rpc_result *result)
{
    return result->status == RPC_UNAVAILABLE || result->status == RPC_DEADLINE_EXCEEDED ||
           result->status == RPC_CANCELLED || result->status == RPC_INTERNAL ||
           result->status == RPC_UNKNOWN;
}

/* Any of a group may be asked. */
static void another_member (struct ujob *job)
{
    if (w.shape.group && !job->stays && sim_chance (50))
        snprintf (job->meta, sizeof job->meta, "meta%u", 1 + (unsigned)sim_below (w.shape.metas));
}

/* It has a name: of an array each has one, and asks for itself from now on. */
static void named (struct ujob *job, const char *id)
{
    for (uint32_t k = 0; k < job->array; k++) {
        snprintf (job[k].id, sizeof job[k].id, "%.*s[%u]", (int)strcspn (id, "["), id, k + 1);
        memcpy (job[k].meta, job->meta, sizeof job->meta);
        job_again (&job[k], 2 * SEC);
    }
    if (!job->array) {
        snprintf (job->id, sizeof job->id, "%s", id);
        job_again (job, 2 * SEC);
    }
    TRACE ("user   job %u is %s of %s", (unsigned)(job - w.job), id, job->meta);
}

static void submitted (void *arg, const struct rpc_result *result)
{
    struct ujob *job = arg;
    uint32_t member = (uint32_t)(job->meta[4] - '1');
    job->asking = false;
    job->unsure &= ~(1u << member);
    if (result->status == RPC_OK) {
        const Nui__Meta__V1__SubmitReply *r = (const Nui__Meta__V1__SubmitReply *)result->reply;
        named (job, r->grid_job_id);
    } else if (uncertain (result)) {
        job->unsure |= 1u << member;
        another_member (job);
        job_again (job, 2 * SEC);
    } else if (job->unsure) { /* it may be another's, and then it is no refusal */
        snprintf (job->meta, sizeof job->meta, "meta%d", 1 + __builtin_ctz (job->unsure));
        job_again (job, 2 * SEC);
    } else {
        for (uint32_t k = 0; k < (job->array ? job->array : 1); k++) {
            job[k].over = true;
            job[k].state = NUI__META__V1__GRID_JOB_STATE__GRID_REFUSED;
            snprintf (job[k].reason, sizeof job[k].reason, "%s", result->message);
        }
        coverage_count ("job refused at submission");
        TRACE ("user   job %u is refused: %s", (unsigned)(job - w.job), result->message);
    }
}

const char *grid_state_name (Nui__Meta__V1__GridJobState state)
{
    return protobuf_c_enum_descriptor_get_value (&nui__meta__v1__grid_job_state__descriptor,
                                                 (int)state)
        ->name;
}

static void told (void *arg, const struct rpc_result *result)
{
    struct ujob *job = arg;
    job->asking = false;
    if (result->status != RPC_OK) {
        TRACE ("user   job %u at %s: %s", (unsigned)(job - w.job), job->meta, result->message);
        bool behind = w.shape.group && result->status == RPC_NOT_FOUND; /* it was away */
        CHECK (uncertain (result) || behind, "%s at %s: %s", job->id, job->meta, result->message);
        another_member (job);
        job_again (job, 2 * SEC);
        return;
    }
    const Nui__Meta__V1__JobStatus *status = (const Nui__Meta__V1__JobStatus *)result->reply;
    job->state = status->state;
    job->attempts = status->attempts;
    snprintf (job->reason, sizeof job->reason, "%s: %s", status->reason ? status->reason->code : "",
              status->reason ? status->reason->text : "");
    job->over = status->state >= NUI__META__V1__GRID_JOB_STATE__GRID_COMPLETED;
    if (!job->over) {
        job_again (job, 5 * SEC);
        return;
    }
    CHECK (!job->end || job->end == job->state,
           "%s tells that %s is %s (%s), and it was told to be %s", job->meta, job->id,
           grid_state_name (job->state), job->reason, grid_state_name (job->end));
    job->end = job->state;
    const char *code = status->reason ? status->reason->code : "";
    coverage_count ("job %s%s%s", grid_state_name (job->state), *code ? ": " : "", code);
    TRACE ("user   job %u ends %d (%s)", (unsigned)(job - w.job), (int)job->state, job->reason);
}

static void cancel_told (void *arg, const struct rpc_result *result)
{
    struct ujob *job = arg;
    job->asking = false;
    job->cancelled = result->status == RPC_OK;
    if (job->cancelled)
        coverage_add ("total arrays cancelled as one", job->array > 0);
    else
        another_member (job);
    job_again (job, SEC);
}

static void job_next (void *arg)
{
    struct ujob *job = arg;
    Nui__Meta__V1__SubmitRequest submit = NUI__META__V1__SUBMIT_REQUEST__INIT;
    Nui__Meta__V1__JobRequest ask = NUI__META__V1__JOB_REQUEST__INIT;
    char whole[sizeof job->id];
    if (job->asking || job->over || (job->before && !job->id[0]))
        return;
    job->asking = true;
    submit.envelope = job->envelope;
    ask.grid_job_id = job->id;
    if (job->array && job->cancel && !job->cancelled) {
        snprintf (whole, sizeof whole, "%.*s", (int)strcspn (job->id, "["), job->id);
        ask.grid_job_id = whole;
    }
    if (!job->id[0])
        net_call (w.user, job->meta, &nui__meta__v1__meta__descriptor, "Submit", &submit.base,
                  15 * SEC, submitted, job);
    else if (job->cancel && !job->cancelled)
        net_call (w.user, job->meta, &nui__meta__v1__meta__descriptor, "Cancel", &ask.base,
                  10 * SEC, cancel_told, job);
    else
        net_call (w.user, job->meta, &nui__meta__v1__meta__descriptor, "Status", &ask.base,
                  10 * SEC, told, job);
}

static Nui__Common__V1__Component *component_make (const struct grid_ask *ask, uint32_t p)
{
    Nui__Common__V1__Component *c = malloc (sizeof *c);
    Nui__Common__V1__Req *req = malloc (sizeof *req);
    char name[16], list[128];
    nui__common__v1__component__init (c);
    nui__common__v1__req__init (req);
    snprintf (name, sizeof name, "part%u", p);
    c->name = strdup (name);
    req->tasks = ask->tasks[p];
    c->reqs = malloc (sizeof *c->reqs);
    c->reqs[0] = req;
    c->n_reqs = 1;
    c->walltime_us = ask->walltime;
    if (ask->licences) {
        c->licences = malloc (sizeof *c->licences);
        c->licences[0] = malloc (sizeof **c->licences);
        nui__common__v1__generic_resource__init (c->licences[0]);
        c->licences[0]->name = strdup ("cad");
        c->licences[0]->count = ask->licences;
        c->n_licences = 1;
    }
    c->script.data = (uint8_t *)strdup ("#!/bin/sh\n");
    c->script.len = 10;
    snprintf (list, sizeof list, "%s", ask->sites[p] ? ask->sites[p] : "");
    c->sites = calloc (GRID_SITES_MAX, sizeof *c->sites);
    char *keep = NULL;
    for (char *site = strtok_r (list, ",", &keep); site; site = strtok_r (NULL, ",", &keep))
        c->sites[c->n_sites++] = strdup (site);
    return c;
}

/* Those of the array, the first of which is signed for all. */
static void array_make (struct ujob *first, const struct grid_ask *ask)
{
    struct err err = {0};
    CHECK (w.job_count + ask->array - 1 <= GRID_JOBS_MAX, "too many jobs");
    first->array = ask->array;
    first->limit = ask->limit;
    w.job_count += ask->array - 1;
    for (uint32_t k = 0; k < ask->array; k++) {
        if (k) {
            first[k] = *first;
            first[k].envelope = NULL;
            first[k].array = 0;
            first[k].before = k;
            first[k].next.arg = &first[k];
        }
        first->envelope->element = 1 + (k + 1);
        Nui__Common__V1__Job *one = element_unpack (first->envelope, &err);
        if (!one)
            sim_fail ("%s", err.text);
        memcpy (first[k].uuid, one->uuid.data, sizeof first[k].uuid);
        nui__common__v1__job__free_unpacked (one, NULL);
    }
    first->envelope->element = 0;
}

static void array_sign (Nui__Common__V1__Job *body, const struct grid_ask *ask)
{
    body->indexes = malloc (sizeof *body->indexes);
    body->indexes[0] = malloc (sizeof **body->indexes);
    nui__common__v1__index_range__init (body->indexes[0]);
    body->indexes[0]->from = 1;
    body->indexes[0]->to = ask->array;
    body->n_indexes = 1;
    body->array_limit = ask->limit;
}

/* One after the other, each of them as much later as it may have to. */
static void standing_moments (Nui__Common__V1__Job *body, const struct grid_ask *ask)
{
    if (!ask->array)
        return;
    body->reserve->starts_us = malloc (ask->array * sizeof *body->reserve->starts_us);
    for (uint32_t k = 0; k < ask->array; k++)
        body->reserve->starts_us[body->reserve->n_starts_us++] =
            body->created_us + 20 * SEC + k * (ask->walltime + 5 * SEC);
    body->not_before_us = body->reserve->starts_us[0];
    body->not_after_us = body->not_before_us + 120 * SEC;
}

uint32_t grid_submit (const char *meta, const struct grid_ask *ask)
{
    CHECK (w.job_count < GRID_JOBS_MAX, "too many jobs");
    struct ujob *job = &w.job[w.job_count++];
    Nui__Common__V1__Job *body = malloc (sizeof *body);
    struct uuid uuid;
    struct err err = {0};
    memset (job, 0, sizeof *job);
    nui__common__v1__job__init (body);
    uuid_make (&uuid);
    memcpy (job->uuid, uuid.b, sizeof job->uuid);
    if (ask->array)
        array_sign (body, ask);
    body->grid = strdup ("test");
    body->submitter = strdup ("nui://test/user/alice");
    body->account = strdup ("phys");
    body->uuid.data = memcpy (malloc (16), uuid.b, 16);
    body->uuid.len = 16;
    body->created_us = sim.epoch + sim.now;
    body->expires_us = body->created_us + 24 * 3600 * SEC;
    body->not_after_us = ask->not_after ? body->created_us + ask->not_after : 0;
    job->resubmit = ask->resubmit;
    body->on_site_loss = strdup (ask->resubmit ? "resubmit" : "");
    body->components = calloc (ask->parts, sizeof *body->components);
    for (uint32_t p = 0; p < ask->parts; p++)
        body->components[body->n_components++] = component_make (ask, p);
    for (uint32_t p = 0; p < ask->parts && ask->reserve; p++) {
        free (body->components[p]->script.data);
        body->components[p]->script = (ProtobufCBinaryData){0, NULL};
    }
    if (ask->reserve) {
        body->reserve = malloc (sizeof *body->reserve);
        nui__common__v1__reserve__init (body->reserve);
        standing_moments (body, ask);
    }
    job->reserve = ask->reserve;
    size_t len = nui__common__v1__job__get_packed_size (body);
    uint8_t *bytes = malloc (len);
    nui__common__v1__job__pack (body, bytes);
    if (envelope_sign (w.user->id, bytes, len, &job->envelope, &err))
        sim_fail ("%s", err.text);
    free (bytes);
    nui__common__v1__job__free_unpacked (body, NULL);
    job->parts = ask->parts;
    job->licences = ask->licences;
    snprintf (job->meta, sizeof job->meta, "%s", meta);
    job->next = (struct todo){.fn = job_next, .arg = job};
    if (ask->array)
        array_make (job, ask);
    todo_set (&job->next, sim.now);
    return (uint32_t)(job - w.job);
}

static void terms_told (void *arg, const struct rpc_result *result)
{
    struct ujob *job = arg;
    TRACE ("user   job %u's other terms: %s", (unsigned)(job - w.job),
           result->status == RPC_OK ? "done" : result->message);
    job->changed = result->status == RPC_OK ? 1 : uncertain (result) && !job->over ? 0 : 2;
    coverage_add ("total other terms taken", job->changed == 1);
    coverage_add ("total other terms refused", job->changed == 2);
    if (!job->changed)
        another_member (job);
    if (!job->changed)
        todo_set (&job->terms_next, sim.now + 2 * SEC);
}

static void terms_ask (void *arg)
{
    struct ujob *job = arg;
    Nui__Meta__V1__SubmitRequest submit = NUI__META__V1__SUBMIT_REQUEST__INIT;
    submit.envelope = job->terms;
    net_call (w.user, job->meta, &nui__meta__v1__meta__descriptor, "Submit", &submit.base, 15 * SEC,
              terms_told, job);
}

void grid_change (uint32_t number, duration_us walltime)
{
    struct ujob *job = &w.job[number];
    struct err err = {0};
    struct uuid uuid;
    Nui__Common__V1__Job *body = element_unpack (job->envelope, &err);
    CHECK (body && body->reserve && !job->terms, "job %u cannot have other terms", number);
    body->reserve->changes = body->uuid;
    uuid_make (&uuid);
    body->uuid.data = memcpy (malloc (16), uuid.b, 16);
    body->created_us = sim.epoch + sim.now;
    body->not_before_us = body->not_after_us = 0;
    for (size_t i = 0; i < body->n_components; i++)
        body->components[i]->walltime_us = walltime;
    size_t len = nui__common__v1__job__get_packed_size (body);
    uint8_t *bytes = malloc (len);
    nui__common__v1__job__pack (body, bytes);
    if (envelope_sign (w.user->id, bytes, len, &job->terms, &err))
        sim_fail ("%s", err.text);
    free (bytes);
    nui__common__v1__job__free_unpacked (body, NULL);
    job->terms_next = (struct todo){.fn = terms_ask, .arg = job};
    todo_set (&job->terms_next, sim.now);
}

int grid_changed (uint32_t job)
{
    return w.job[job].changed;
}

void grid_cancel (uint32_t job)
{
    struct ujob *first = &w.job[job];
    first->cancel = true;
    for (uint32_t k = 1; k < first->array; k++)
        first[k].cancel = first[k].cancelled = true; /* with the first */
    if (!first->over && !first->asking)
        todo_set (&first->next, sim.now);
}

void grid_ask_at (uint32_t job, const char *meta)
{
    snprintf (w.job[job].meta, sizeof w.job[job].meta, "%s", meta);
    w.job[job].stays = true;
    w.job[job].over = false;
    w.job[job].state = 0;
    if (!w.job[job].asking)
        todo_set (&w.job[job].next, sim.now);
}

Nui__Meta__V1__GridJobState grid_state (uint32_t job)
{
    return w.job[job].state;
}

const char *grid_reason (uint32_t job)
{
    return w.job[job].reason;
}

const char *grid_id (uint32_t job)
{
    return w.job[job].id;
}

bool grid_job_over (uint32_t job)
{
    bool over = w.job[job].over;
    for (uint32_t k = 1; k < w.job[job].array; k++)
        over = over && w.job[job + k].over;
    return over;
}

uint32_t grid_attempts (uint32_t job)
{
    return w.job[job].attempts;
}

uint32_t grid_launches (uint32_t job)
{
    return w.job[job].launches;
}
