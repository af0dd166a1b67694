/* Restage: files that could not be taken away from the sites of a job are tried once more; the sites
 * remember which (local/svc/files/stageout.h) and do it. */
#include <stdlib.h>

#include "meta/svc/handlers.h"
#include "meta/job/job.h"
#include "meta/job/sites.h"
#include "proto/rpc/pbcopy.h"

#define RESTAGE_TIMEOUT (10 * US_PER_S)

typedef Nui__Meta__V1__RestagePart Part;

struct restaging {
    struct rpccall *call;
    struct arena *arena;
    Nui__Meta__V1__RestageReply reply; /* the sites' replies in it are the heap's */
    uint32_t waiting;
    enum rpc_status status; /* of the first that refused */
};

struct asking {
    struct restaging *restaging;
    Part *part;
};

static void part_refused (struct restaging *r, Part *part, enum rpc_status status, const char *text)
{
    part->reason = arena_new (r->arena, Nui__Common__V1__Reason);
    nui__common__v1__reason__init (part->reason);
    part->reason->code = (char *)"Refused";
    part->reason->text = arena_strdup (r->arena, text);
    if (r->status == RPC_OK)
        r->status = status;
}

/* Once nobody is waited for. Where every site refused, the first one's word is the answer. */
static void finish (struct restaging *r)
{
    const char *refused = NULL;
    bool done = false;
    if (--r->waiting > 0)
        return;
    for (size_t i = 0; i < r->reply.n_parts; i++) {
        done = done || r->reply.parts[i]->reply;
        if (!refused && r->reply.parts[i]->reason)
            refused = r->reply.parts[i]->reason->text;
    }
    if (done || !refused)
        rpccall_reply (r->call, &r->reply.base);
    else
        rpccall_finish (r->call, r->status, refused);
    for (size_t i = 0; i < r->reply.n_parts; i++)
        if (r->reply.parts[i]->reply)
            nui__local__v1__restage_reply__free_unpacked (r->reply.parts[i]->reply, NULL);
    arena_destroy (r->arena);
    free (r);
}

static void site_answered (void *arg, const struct rpc_result *result)
{
    struct asking *asking = arg;
    struct restaging *r = asking->restaging;
    Part *part = asking->part;
    if (result->status == RPC_OK)
        part->reply = (Nui__Local__V1__RestageReply *)pbcopy (result->reply);
    if (!part->reply)
        part_refused (r, part, result->status == RPC_OK ? RPC_RESOURCE_EXHAUSTED : result->status,
                      result->status == RPC_OK ? "no memory for the site's answer"
                                               : result->message);
    finish (r);
}

static void site_ask (struct restaging *r, const struct gridjob *job, const struct jobpart *from,
                      bool look)
{
    struct site *site = site_find (job->metad, from->site);
    Part *part = arena_new (r->arena, Part);
    struct asking *asking = arena_new (r->arena, struct asking);
    Nui__Local__V1__RestageRequest request = NUI__LOCAL__V1__RESTAGE_REQUEST__INIT;
    nui__meta__v1__restage_part__init (part);
    part->component = arena_strdup (r->arena, from->name);
    part->site = arena_strdup (r->arena, from->site);
    r->reply.parts[r->reply.n_parts++] = part;
    if (!site) {
        part_refused (r, part, RPC_UNAVAILABLE, "the site is not configured any more");
        return;
    }
    *asking = (struct asking){r, part};
    request.job_id = (char *)(uintptr_t)from->site_job_id;
    request.look = look;
    r->waiting++;
    link_call (site->link, "Restage", &request.base, RESTAGE_TIMEOUT, site_answered, asking);
}

void on_restage (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    const Nui__Meta__V1__RestageRequest *request = (const Nui__Meta__V1__RestageRequest *)message;
    struct metad *metad = self;
    char uri[PRINCIPAL_URI_MAX];
    struct err err;
    err_clear (&err);
    struct gridjob *job = job_of_request (metad, call, request->grid_job_id);
    if (!job)
        return;
    struct restaging *r = NULL;
    if (!job->part[0].site_job_id[0])
        err_set (&err, ERR_CONFLICT, "job %s has not been given to a site", job->id);
    else if (!(r = calloc (1, sizeof *r)))
        err_set (&err, ERR_NOMEM, "no memory");
    if (!r) {
        rpccall_fail (call, &err);
        return;
    }
    r->call = call;
    r->arena = arena_create (0);
    r->waiting = 1;
    nui__meta__v1__restage_reply__init (&r->reply);
    r->reply.parts = arena_array (r->arena, job->part_count, sizeof *r->reply.parts);
    if (!request->look)
        log_event (metad->log, LOG_LEVEL_INFO, "submit", "restage", "job=%s by=%s", job->id,
                   principal_uri (rpccall_peer (call), uri));
    for (uint32_t p = 0; p < job->part_count; p++)
        if (job->part[p].site_job_id[0])
            site_ask (r, job, &job->part[p], request->look);
    finish (r);
}
