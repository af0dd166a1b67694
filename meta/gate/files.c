/* What a job wrote: its output and the files of its directory, from the site that has the component, which the gate asks for
 * the user as it asks the metascheduler. One answer has at most FILES_BYTES_MAX; the rest is asked for from there on. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "meta/gate/gate.h"
#include "meta/gate/pbjson.h"

enum { FILES_BYTES_MAX = 8 << 20 };

struct reading {
    struct strbuf bytes;
    int64_t whole; /* bytes of the file; -1: not said */
    bool cut;      /* enough was read: the call was ended */
};

static void taken (struct ask *ask, const ProtobufCBinaryData *data)
{
    struct reading *reading = ask->more;
    size_t room = FILES_BYTES_MAX - reading->bytes.len, n = data->len < room ? data->len : room;
    strbuf_append (&reading->bytes, data->data, n);
    if (reading->bytes.len == FILES_BYTES_MAX && !reading->cut) {
        reading->cut = true;
        rpccallout_cancel (ask->call);
    }
}

static void output_chunk (void *arg, const ProtobufCMessage *message)
{
    taken (arg, &((const Nui__Common__V1__OutputChunk *)message)->data);
}

static void file_chunk (void *arg, const ProtobufCMessage *message)
{
    struct ask *ask = arg;
    const Nui__Local__V1__FetchChunk *chunk = (const Nui__Local__V1__FetchChunk *)message;
    ((struct reading *)ask->more)->whole = chunk->bytes;
    taken (ask, &chunk->data);
}

static void reading_done (void *arg, const struct rpc_result *result)
{
    struct ask *ask = arg;
    struct reading *reading = ask->more;
    ask->call = NULL;
    if (result->status == RPC_OK || reading->cut) {
        if (reading->whole >= 0)
            ask->total = reading->whole;
        ask_text (ask, MHD_HTTP_OK, "application/octet-stream", strbuf_text (&reading->bytes),
                  reading->bytes.len);
    } else {
        ask_failed (ask, result);
    }
    strbuf_free (&reading->bytes);
}

static void list_done (void *arg, const struct rpc_result *result)
{
    struct ask *ask = arg;
    ask->call = NULL;
    if (result->status == RPC_OK)
        ask_json (ask, MHD_HTTP_OK, pbjson_write (result->reply));
    else
        ask_failed (ask, result);
}

static void site_call (struct ask *ask, struct rpcclient *client, const char *method,
                       const ProtobufCMessage *request,
                       void (*on_message) (void *arg, const ProtobufCMessage *message))
{
    struct reading *reading = arena_array (ask->arena, 1, sizeof *reading);
    const struct rpccallout_config config = {.service = &nui__local__v1__local__descriptor,
                                             .method = method,
                                             .request = request,
                                             .timeout = ask->gate->config->timeout,
                                             .idempotent = true,
                                             .delegation = ask->token->header,
                                             .on_message = on_message,
                                             .done = on_message ? reading_done : list_done,
                                             .arg = ask};
    *reading = (struct reading){.whole = -1};
    ask->more = reading;
    ask->call = rpcclient_start (client, &config);
}

/* The component that is asked about; without a name the first. NULL: answered. */
static const Nui__Meta__V1__ComponentStatus *part_of (struct ask *ask,
                                                      const Nui__Meta__V1__JobStatus *job)
{
    const char *name = ask_query (ask, "component");
    for (size_t i = 0; i < job->n_components; i++) {
        const Nui__Meta__V1__ComponentStatus *part = job->components[i];
        if (name && strcmp (part->name, name) != 0)
            continue;
        if (*part->site_server && part->job)
            return part;
        ask_problem (ask, MHD_HTTP_CONFLICT, "component %s of %s has no site yet", part->name,
                     job->grid_job_id);
        return NULL;
    }
    ask_problem (ask, MHD_HTTP_NOT_FOUND, "%s has no such component", job->grid_job_id);
    return NULL;
}

static void placed (struct ask *ask, const struct rpc_result *result)
{
    Nui__Local__V1__OutputRequest output = NUI__LOCAL__V1__OUTPUT_REQUEST__INIT;
    Nui__Local__V1__FetchRequest fetch = NUI__LOCAL__V1__FETCH_REQUEST__INIT;
    Nui__Local__V1__FilesRequest files = NUI__LOCAL__V1__FILES_REQUEST__INIT;
    const char *stream = ask_query (ask, "stream"), *path = ask_query (ask, "path");
    struct err err = {0};
    int64_t offset;
    if (result->status != RPC_OK) {
        ask_failed (ask, result);
        return;
    }
    const Nui__Meta__V1__ComponentStatus *part =
        part_of (ask, (const Nui__Meta__V1__JobStatus *)result->reply);
    if (!part)
        return;
    struct rpcclient *client = sites_client (ask->gate, part->site, part->site_server, &err);
    if (!client || ask_number (ask, "offset", 0, INT64_MAX, 0, &offset, &err) < 0) {
        ask_fail (ask, &err);
        return;
    }
    output.job_id = fetch.job_id = files.job_id = part->job->site_job_id;
    output.component = fetch.component = files.component = part->name;
    output.offset = fetch.offset = offset;
    if (ask->route->run == files_output) {
        output.stream = (char *)(uintptr_t)(stream ? stream : "stdout");
        site_call (ask, client, "Output", &output.base, output_chunk);
    } else if (path) {
        fetch.path = (char *)(uintptr_t)path;
        site_call (ask, client, "Fetch", &fetch.base, file_chunk);
    } else {
        site_call (ask, client, "Files", &files.base, NULL);
    }
}

void files_output (struct ask *ask)
{
    Nui__Meta__V1__JobRequest *request = arena_array (ask->arena, 1, sizeof *request);
    nui__meta__v1__job_request__init (request);
    request->grid_job_id = ask->argument[0];
    ask_call (ask, &nui__meta__v1__meta__descriptor, "Status", &request->base, placed);
}

void files_run (struct ask *ask)
{
    files_output (ask);
}
