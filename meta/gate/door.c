/* The gate's HTTP listeners, which are libmicrohttpd's on the daemon's loop: a request is read whole, bounded in size, time and
 * rate, its bearer is checked, its route is run; what was answered is sent. Here ends what is HTTP: routes see asks. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "meta/gate/gate.h"
#include "proto/base/clock.h"
#include "proto/base/text.h"
#include "proto/hash/sha256.h"
#include "proto/metrics/httploop.h"
#include "proto/rpc/connshare.h"

enum { DOOR_SILENT_S = 60, DOOR_MEMORY = 32 * 1024, DOOR_INCREMENT = 1024, ETAG_BYTES = 12 };

struct door {
    struct gate *gate;
    struct httploop *http;
    char *key, *cert;
};

/* libmicrohttpd looks at what was resumed in its next run, of which nobody but us knows that it is due. */
void door_resume (struct gate *gate, struct MHD_Connection *connection)
{
    MHD_resume_connection (connection);
    for (int i = 0; i < 2; i++)
        if (gate->door[i])
            httploop_soon (gate->door[i]->http);
}

/* ---- the answer */

static void ask_finish (struct ask *ask, unsigned status, struct MHD_Response *response)
{
    if (ask->done) { /* the client's connection ends instead */
        MHD_destroy_response (response);
        return;
    }
    ask->done = true;
    ask->status = status;
    ask->response = response;
    ask->gate->answered[status / 100 % 6]++;
    metrics_observe (&ask->gate->times, clock_monotonic_us () - ask->begun);
    if (ask->suspended) {
        ask->suspended = false;
        door_resume (ask->gate, ask->connection);
    }
}

static struct MHD_Response *response_of (const char *type, const void *bytes, size_t len)
{
    struct MHD_Response *r =
        MHD_create_response_from_buffer (len, (void *)(uintptr_t)bytes, MHD_RESPMEM_MUST_COPY);
    if (!r)
        abort ();
    MHD_add_response_header (r, "Cache-Control", "private, no-cache");
    MHD_add_response_header (r, "X-Content-Type-Options", "nosniff");
    if (type)
        MHD_add_response_header (r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    return r;
}

/* A GET that has it already is told so. */
static bool has_already (struct ask *ask, const void *bytes, size_t len, char etag[40])
{
    uint8_t hash[SHA256_BYTES];
    const char *given = ask_header (ask, MHD_HTTP_HEADER_IF_NONE_MATCH);
    char *out = etag;
    sha256 (bytes, len, hash);
    *out++ = '"';
    for (int i = 0; i < ETAG_BYTES; i++)
        out += sprintf (out, "%02x", hash[i]);
    strcpy (out, "\"");
    return given && strstr (given, etag);
}

void ask_text (struct ask *ask, unsigned status, const char *type, const void *bytes, size_t len)
{
    char etag[40] = "";
    bool tagged = status == MHD_HTTP_OK && strcmp (ask->verb, "GET") == 0;
    bool same = tagged && has_already (ask, bytes, len, etag);
    struct MHD_Response *r = response_of (same ? NULL : type, bytes, same ? 0 : len);
    if (tagged)
        MHD_add_response_header (r, MHD_HTTP_HEADER_ETAG, etag);
    if (ask->total) {
        char total[32];
        snprintf (total, sizeof total, "%lld", (long long)ask->total);
        MHD_add_response_header (r, "Nui-Total-Bytes", total);
    }
    if (status == MHD_HTTP_UNAUTHORIZED)
        MHD_add_response_header (r, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer realm=\"nui\"");
    if (status == MHD_HTTP_TOO_MANY_REQUESTS || status == MHD_HTTP_SERVICE_UNAVAILABLE)
        MHD_add_response_header (r, MHD_HTTP_HEADER_RETRY_AFTER, "1");
    ask_finish (ask, same ? MHD_HTTP_NOT_MODIFIED : status, r);
}

void ask_json (struct ask *ask, unsigned status, json_t *json)
{
    char *text = json_dumps (json, JSON_COMPACT | JSON_ENCODE_ANY);
    bool problem = status >= 400;
    json_decref (json);
    if (!text)
        abort ();
    ask_text (ask, status, problem ? "application/problem+json" : "application/json", text,
              strlen (text));
    free (text);
}

void ask_empty (struct ask *ask, unsigned status)
{
    ask_finish (ask, status, response_of (NULL, "", 0));
}

void ask_stream (struct ask *ask, struct MHD_Response *response)
{
    ask_finish (ask, MHD_HTTP_OK, response);
}

void ask_problem (struct ask *ask, unsigned status, const char *fmt, ...)
{
    struct strbuf raw = STRBUF_INIT;
    char text[ERR_TEXT_MAX];
    va_list ap;
    va_start (ap, fmt);
    strbuf_vprintf (&raw, fmt, ap);
    va_end (ap);
    text_printf (text, sizeof text, "%s", strbuf_text (&raw));
    strbuf_free (&raw);
    json_t *problem = json_pack ("{s:s, s:i, s:s, s:s, s:s}", "type", "about:blank", "status",
                                 (int)status, "title", MHD_get_reason_phrase_for (status), "detail",
                                 text, "instance", ask->url);
    if (!problem) /* the path is no text */
        problem = json_pack ("{s:s, s:i, s:s, s:s, s:s}", "type", "about:blank", "status",
                             (int)status, "title", MHD_get_reason_phrase_for (status), "detail",
                             "the request is not UTF-8", "instance", "/");
    ask_json (ask, status, problem);
}

static unsigned http_status (enum rpc_status status)
{
    static const unsigned codes[] = {
        [RPC_OK] = 200,
        [RPC_CANCELLED] = 503,
        [RPC_UNKNOWN] = 500,
        [RPC_INVALID_ARGUMENT] = 400,
        [RPC_DEADLINE_EXCEEDED] = 504,
        [RPC_NOT_FOUND] = 404,
        [RPC_ALREADY_EXISTS] = 409,
        [RPC_PERMISSION_DENIED] = 403,
        [RPC_RESOURCE_EXHAUSTED] = 422,
        [RPC_FAILED_PRECONDITION] = 409,
        [RPC_ABORTED] = 409,
        [RPC_OUT_OF_RANGE] = 400,
        [RPC_UNIMPLEMENTED] = 501,
        [RPC_INTERNAL] = 500,
        [RPC_UNAVAILABLE] = 503,
        [RPC_DATA_LOSS] = 500,
        [RPC_UNAUTHENTICATED] = 401,
    };
    return (unsigned)status < sizeof codes / sizeof *codes ? codes[status] : 500;
}

void ask_fail (struct ask *ask, const struct err *err)
{
    ask_problem (ask, http_status (rpc_status_of_err (err->code)), "%s", err->text);
}

void ask_failed (struct ask *ask, const struct rpc_result *result)
{
    ask_problem (ask, http_status (result->status), "%s", result->message);
}

/* ---- calls */

static void ask_call_begin (struct ask *ask, struct rpcclient *client,
                            const ProtobufCServiceDescriptor *service);

static void call_done (void *arg, const struct rpc_result *result)
{
    struct ask *ask = arg;
    struct gate *gate = ask->gate;
    ask->call = NULL;
    if (result->status == RPC_UNAVAILABLE && ask->tried < gate->config->meta_count &&
        !gate->stopping) { /* of a group another answers for it; all that is asked may be repeated */
        gate->meta_now = (gate->meta_now + 1) % gate->config->meta_count;
        ask_call_begin (ask, gate->meta[gate->meta_now], &nui__meta__v1__meta__descriptor);
        return;
    }
    ask->then (ask, result);
}

static void ask_call_begin (struct ask *ask, struct rpcclient *client,
                            const ProtobufCServiceDescriptor *service)
{
    const struct rpccallout_config config = {.service = service,
                                             .method = ask->method,
                                             .request = ask->retry,
                                             .timeout = ask->gate->config->timeout,
                                             .idempotent = true,
                                             .reply_bytes_max = 16 << 20,
                                             .delegation = ask->token->header,
                                             .done = call_done,
                                             .arg = ask};
    if (service == &nui__meta__v1__meta__descriptor)
        ask->tried++;
    ask->call = rpcclient_start (client, &config);
    if (!ask->call)
        ask_problem (ask, MHD_HTTP_SERVICE_UNAVAILABLE, "the gate is being stopped");
}

void ask_call (struct ask *ask, const ProtobufCServiceDescriptor *service, const char *method,
               const ProtobufCMessage *request,
               void (*then) (struct ask *ask, const struct rpc_result *result))
{
    struct gate *gate = ask->gate;
    bool meta = service == &nui__meta__v1__meta__descriptor;
    ask->method = method;
    ask->retry = request;
    ask->then = then;
    ask->tried = meta ? 0 : UINT32_MAX;
    ask_call_begin (ask, meta ? gate->meta[gate->meta_now] : gate->bank, service);
}

/* ---- the request */

const char *ask_query (struct ask *ask, const char *name)
{
    return MHD_lookup_connection_value (ask->connection, MHD_GET_ARGUMENT_KIND, name);
}

const char *ask_header (struct ask *ask, const char *name)
{
    return MHD_lookup_connection_value (ask->connection, MHD_HEADER_KIND, name);
}

int ask_number (struct ask *ask, const char *name, int64_t least, int64_t most, int64_t initial,
                int64_t *out, struct err *err)
{
    const char *text = ask_query (ask, name);
    uint64_t value;
    *out = initial;
    if (!text)
        return 0;
    int rc = uint_parse (text, name, (uint64_t)least, (uint64_t)most, &value, err);
    if (rc == 0)
        *out = (int64_t)value;
    return rc;
}

/* Who asks, by the token; false: answered. */
static bool ask_admit (struct ask *ask)
{
    static const char bearer[] = "Bearer ";
    struct gate *gate = ask->gate;
    const char *given = ask_header (ask, MHD_HTTP_HEADER_AUTHORIZATION);
    struct err err = {0};
    if (!given || strncasecmp (given, bearer, sizeof bearer - 1) != 0) {
        ask_problem (ask, MHD_HTTP_UNAUTHORIZED,
                     "a bearer token is needed: nui delegate --gate %s makes one", gate->name);
        return false;
    }
    ask->token = tokens_check (gate->tokens, given + sizeof bearer - 1, clock_now_us (), &err);
    if (!ask->token) {
        ask_fail (ask, &err);
        return false;
    }
    struct connshare_party *who =
        connshare_party (gate->shares, ask->token->user.name, clock_monotonic_us ());
    bool ok = connshare_call (gate->shares, who, clock_monotonic_us ());
    connshare_leave (gate->shares, who);
    if (!ok)
        ask_problem (ask, MHD_HTTP_TOO_MANY_REQUESTS, "more than %lld requests a second",
                     (long long)gate->config->requests_per_s);
    return ok;
}

static bool ask_parse (struct ask *ask)
{
    json_error_t where;
    if (ask->body.len > GATE_BODY_MAX) {
        ask_problem (ask, MHD_HTTP_CONTENT_TOO_LARGE, "a request has at most %d bytes",
                     GATE_BODY_MAX);
        return false;
    }
    if (ask->body.len == 0)
        return true;
    ask->json = json_loadb (ask->body.data, ask->body.len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY,
                            &where);
    if (!ask->json)
        ask_problem (ask, MHD_HTTP_BAD_REQUEST, "line %d, column %d: %s", where.line, where.column,
                     where.text);
    return ask->json != NULL;
}

static void ask_dispatch (struct ask *ask)
{
    bool other = false;
    ask->dispatched = true;
    ask->route = ask->gate->find (ask, &other);
    if (!ask->route)
        ask_problem (ask, other ? MHD_HTTP_METHOD_NOT_ALLOWED : MHD_HTTP_NOT_FOUND,
                     other ? "this path is not for %s" : "there is nothing here for %s", ask->verb);
    else if ((ask->route->open || ask_admit (ask)) && ask_parse (ask))
        ask->route->run (ask);
}

static struct ask *ask_begin (struct gate *gate, struct MHD_Connection *connection, const char *url,
                              const char *verb)
{
    struct ask *ask = calloc (1, sizeof *ask);
    if (!ask)
        return NULL;
    ask->gate = gate;
    ask->connection = connection;
    ask->arena = arena_create (0);
    ask->url = arena_strdup (ask->arena, url);
    ask->verb = strcmp (verb, "HEAD") == 0 ? "GET" : arena_strdup (ask->arena, verb);
    ask->begun = clock_monotonic_us ();
    DL_APPEND (gate->asks, ask);
    return ask;
}

static void ask_free (void *arg, struct MHD_Connection *connection, void **state,
                      enum MHD_RequestTerminationCode code)
{
    struct ask *ask = *state;
    (void)arg, (void)connection, (void)code;
    if (!ask)
        return;
    DL_DELETE (ask->gate->asks, ask);
    if (ask->response)
        MHD_destroy_response (ask->response);
    token_unref (ask->token);
    strbuf_free (&ask->body);
    json_decref (ask->json);
    arena_destroy (ask->arena);
    free (ask);
    *state = NULL;
}

static enum MHD_Result door_request (void *arg, struct MHD_Connection *c, const char *url,
                                     const char *verb, const char *version, const char *upload,
                                     size_t *upload_size, void **state)
{
    struct door *door = arg;
    struct ask *ask = *state;
    (void)version;
    if (!ask) { /* the headers alone: whether a body follows is not known yet */
        *state = ask_begin (door->gate, c, url, verb);
        return *state ? MHD_YES : MHD_NO;
    }
    if (*upload_size > 0) {
        if (ask->body.len <= GATE_BODY_MAX) /* what is beyond is read, and thrown away */
            strbuf_append (&ask->body, upload, *upload_size);
        *upload_size = 0;
        return MHD_YES;
    }
    if (!ask->dispatched)
        ask_dispatch (ask);
    if (ask->response)
        return MHD_queue_response (c, ask->status, ask->response);
    ask->suspended = true;
    MHD_suspend_connection (c);
    return MHD_YES;
}

/* ---- listening */

static int door_address (const char *listen, bool tls, struct sockaddr_storage *out,
                         struct err *err)
{
    if (!httploop_address (listen, out))
        return err_set (err, ERR_INVALID, "%s %s: an address and a port are wanted",
                        tls ? "HTTPS" : "HTTP", listen);
    return tls || httploop_address_is_loopback (out)
               ? 0
               : err_set (err, ERR_INVALID,
                          "HTTP %s: without TLS only this machine itself is served, as "
                          "127.0.0.1:8480; others by HTTPS",
                          listen);
}

int door_check (const char *listen, bool tls, struct err *err)
{
    struct sockaddr_storage address;
    return door_address (listen, tls, &address, err);
}

static struct httploop *door_loop (const struct gate *gate, int i)
{
    return gate->door[i] ? gate->door[i]->http : NULL;
}

unsigned door_connections (const struct gate *gate)
{
    return httploop_connections (door_loop (gate, 0)) + httploop_connections (door_loop (gate, 1));
}

void door_turn_all (struct gate *gate)
{
    for (int i = 0; i < 2; i++)
        if (gate->door[i])
            httploop_turn (gate->door[i]->http);
}

static char *file_text (const char *path, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    char part[4096];
    FILE *file = fopen (path, "r");
    if (!file) {
        err_set (err, ERR_INVALID, "%.200s cannot be read: %s", path, strerror (errno));
        return NULL;
    }
    for (size_t n; (n = fread (part, 1, sizeof part, file)) > 0;)
        strbuf_append (&text, part, n);
    fclose (file);
    return strbuf_steal (&text);
}

static struct MHD_Daemon *door_start (struct door *door, const struct sockaddr_storage *address,
                                      bool tls)
{
    const struct gate_config *config = door->gate->config;
    struct MHD_OptionItem secure[] = {
        {MHD_OPTION_HTTPS_MEM_KEY, 0, door->key},
        {MHD_OPTION_HTTPS_MEM_CERT, 0, door->cert},
        {MHD_OPTION_HTTPS_PRIORITIES, 0,
         (void *)(uintptr_t) "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"},
        {MHD_OPTION_END, 0, NULL}};
    struct MHD_OptionItem none[] = {{MHD_OPTION_END, 0, NULL}};
    unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME |
                     (address->ss_family == AF_INET6 ? MHD_USE_IPv6 : 0) | (tls ? MHD_USE_TLS : 0);
    return MHD_start_daemon (flags, 0, NULL, NULL, door_request, door, MHD_OPTION_SOCK_ADDR,
                             address, MHD_OPTION_CONNECTION_LIMIT, (unsigned)config->connections,
                             MHD_OPTION_PER_IP_CONNECTION_LIMIT, (unsigned)config->per_address,
                             MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)DOOR_SILENT_S,
                             MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)DOOR_MEMORY,
                             MHD_OPTION_CONNECTION_MEMORY_INCREMENT, (size_t)DOOR_INCREMENT,
                             MHD_OPTION_NOTIFY_COMPLETED, ask_free, NULL, MHD_OPTION_ARRAY,
                             tls ? secure : none, MHD_OPTION_END);
}

struct door *door_open (struct gate *gate, const char *listen, bool tls, struct err *err)
{
    struct sockaddr_storage address;
    struct door *door = calloc (1, sizeof *door);
    if (!door)
        abort ();
    door->gate = gate;
    if (door_address (listen, tls, &address, err) < 0 ||
        (tls && (!(door->key = file_text (gate->config->https_key, err)) ||
                 !(door->cert = file_text (gate->config->https_cert, err))))) {
        door_close (door);
        return NULL;
    }
    door->http = httploop_create (gate->base, door_start (door, &address, tls));
    if (!door->http) {
        err_set (err, ERR_IO, "%s %s: cannot listen there: %s", tls ? "HTTPS" : "HTTP", listen,
                 strerror (errno));
        door_close (door);
        return NULL;
    }
    return door;
}

uint16_t door_port (const struct door *door)
{
    return door ? httploop_port (door->http) : 0;
}

void door_close (struct door *door)
{
    if (!door)
        return;
    httploop_destroy (door->http);
    free (door->key), free (door->cert);
    free (door);
}
