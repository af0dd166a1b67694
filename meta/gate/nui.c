/* The gate's own API beside IRI's: the gRPC contract as JSON, method by method as routes.c says, so that whatever a gRPC
 * caller may ask a program may. Nothing is decided here. */
#include "meta/gate/gate.h"

#include <stdlib.h>
#include <string.h>

#include "meta/gate/pbjson.h"

static void rpc_done (struct ask *ask, const struct rpc_result *result)
{
    if (result->status == RPC_OK)
        ask_json (ask, MHD_HTTP_OK, pbjson_write (result->reply));
    else
        ask_failed (ask, result);
}

struct query {
    ProtobufCMessage *request;
    struct err *err;
    int rc;
};

static enum MHD_Result query_set (void *arg, enum MHD_ValueKind kind, const char *key,
                                  const char *value)
{
    struct query *query = arg;
    (void)kind;
    if (query->rc == 0)
        query->rc = pbjson_set (query->request, key, value ? value : "", query->err);
    return query->rc == 0 ? MHD_YES : MHD_NO;
}

/* The request, from path, query and body. NULL with err; the caller frees it. */
static ProtobufCMessage *rpc_request (struct ask *ask, const struct route_rpc *rpc, struct err *err)
{
    const ProtobufCMethodDescriptor *method =
        protobuf_c_service_descriptor_get_method_by_name (rpc->service, rpc->method);
    ProtobufCMessage *request = rpc->body && ask->json ? pbjson_read (method->input, ask->json, err)
                                                       : pbjson_new (method->input);
    struct query query = {.request = request, .err = err};
    if (!request)
        return NULL;
    for (int i = 0; i < 2 && rpc->field[i] && query.rc == 0; i++)
        query.rc = pbjson_set (request, rpc->field[i], ask->argument[i], err);
    if (query.rc == 0)
        MHD_get_connection_values (ask->connection, MHD_GET_ARGUMENT_KIND, query_set, &query);
    if (query.rc == 0)
        return request;
    protobuf_c_message_free_unpacked (request, NULL);
    return NULL;
}

static void request_free (struct ask *ask, const struct rpc_result *result)
{
    ProtobufCMessage *request = ask->more;
    rpc_done (ask, result);
    protobuf_c_message_free_unpacked (request, NULL);
}

void nui_rpc (struct ask *ask)
{
    struct err err = {0};
    ProtobufCMessage *request = rpc_request (ask, ask->route->rpc, &err);
    if (!request) {
        ask_problem (ask, MHD_HTTP_BAD_REQUEST, "%s", err.text);
        return;
    }
    ask->more = request;
    ask_call (ask, ask->route->rpc->service, ask->route->rpc->method, request, request_free);
}

static json_t *texts (char *const *text, size_t count)
{
    json_t *list = json_array ();
    for (size_t i = 0; i < count; i++)
        json_array_append_new (list, json_string (text[i]));
    return list;
}

void nui_whoami (struct ask *ask)
{
    const GateDelegation *d = ask->token->says;
    char uri[PRINCIPAL_URI_MAX];
    ask_json (ask, MHD_HTTP_OK,
              json_pack ("{s:s, s:s, s:s, s:o, s:b, s:I, s:o, s:o, s:o}", "identity",
                         principal_uri (&ask->token->user, uri), "gate", d->gate, "grid", d->grid,
                         "expires", iri_time (d->expires_us), "change", d->change, "jobs_max",
                         (json_int_t)d->jobs_max, "cost_max_micro",
                         json_sprintf ("%lld", (long long)d->cost_max_micro), "accounts",
                         texts (d->accounts, d->n_accounts), "sites",
                         texts (d->sites, d->n_sites)));
}

void nui_openapi (struct ask *ask)
{
    ask_text (ask, MHD_HTTP_OK, "application/json", ask->gate->openapi,
              strlen (ask->gate->openapi));
}
