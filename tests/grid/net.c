/* net: proto/rpc's client and server over a network that loses, repeats, delays and cuts.
 *
 * A request that is lost ends as UNAVAILABLE (the connection broke) or by its deadline; either way
 * its caller does not know whether it arrived. What arrives twice is the transport's own resend of
 * a call that is marked idempotent. Nothing is checked of TLS: a peer is the machine that calls. */
#include "sim.h"

#include <utlist.h>

struct rpcclient {
    struct machine *machine;
    char target[64];         /* a machine's name */
    struct principal server; /* which its certificate says, too */
    struct rpccallout *calls;
};

struct rpccallout {
    uint64_t number;
    struct rpcclient *client;
    const ProtobufCMethodDescriptor *method;
    void (*done) (void *arg, const struct rpc_result *result);
    void *arg;
    struct todo deadline;
    struct rpccallout *prev, *next;
};

/* A request on its way, or at its server. */
struct rpccall {
    struct machine *server, *caller;
    uint64_t callout;
    char target[64];
    const ProtobufCServiceDescriptor *service;
    unsigned method;
    uint8_t *bytes;
    size_t len;
    struct principal peer;
    duration_us deadline;
    ProtobufCMessage *request;
    void (*on_cancel) (void *arg);
    void *on_cancel_arg;
    bool cancelled;
    struct rpccall *prev, *next; /* of its server's open ones */
};

struct answer {
    struct machine *caller;
    uint64_t callout;
    enum rpc_status status;
    char *message;
    uint8_t *bytes;
    size_t len;
};

static uint64_t callout_number;

static void *must (void *p)
{
    if (!p)
        abort ();
    return p;
}

/* what: a request, or "'s answer". */
static duration_us delay (const char *method, const char *what)
{
    if (sim_chance (sim.slow_percent)) {
        coverage_count ("late %s%s", method, what);
        return (duration_us)sim_below (20 * SEC);
    }
    if (sim.latency)
        return sim.latency;
    return MS / 4 + (duration_us)sim_below (20 * MS);
}

/* Whether it does not arrive. */
static bool is_lost (const struct machine *from, const struct machine *to, const char *method,
                     const char *what)
{
    bool cut = sim.cut[machine_index (from)][machine_index (to)];
    bool silenced = !*what && sim.silenced && strcmp (sim.silenced, method) == 0;
    if (!cut && !silenced && !sim_chance (sim.loss_percent))
        return false;
    coverage_count ("%s %s%s", cut ? "cut" : "lost", method, what);
    sim.lost++;
    return true;
}

/* ---- the caller's end */

static struct rpccallout *
    *callouts; /* open ones, by number; a sparse ring would do: there are few */
static size_t callout_count, callout_cap;

static struct rpccallout *callout_find (uint64_t number)
{
    for (size_t i = 0; i < callout_count; i++)
        if (callouts[i]->number == number)
            return callouts[i];
    return NULL;
}

static void callout_end (struct rpccallout *out, enum rpc_status status, const char *message,
                         const ProtobufCMessage *reply)
{
    struct rpc_result result = {
        .status = status, .message = message ? message : "", .reply = reply, .answered = true};
    todo_drop (&out->deadline);
    for (size_t i = 0; i < callout_count; i++)
        if (callouts[i] == out)
            callouts[i] = callouts[--callout_count];
    DL_DELETE (out->client->calls, out);
    out->done (out->arg, &result);
    free (out);
}

static void deadline_passed (void *arg)
{
    sim.timeouts++;
    callout_end (arg, RPC_DEADLINE_EXCEEDED, "no answer in time", NULL);
}

/* Whether it may send: what led to that is durable, and it did not die of making it so. */
static bool gate_passed (const struct machine *machine)
{
    struct err err = {0};
    return !machine->dying &&
           (!machine->gate || machine->gate->open (machine->gate->self, &err) == 0) &&
           !machine->dying;
}

static void answer_free (struct answer *a)
{
    free (a->message);
    free (a->bytes);
    free (a);
}

static void answer_arrives (void *arg)
{
    struct answer *a = arg;
    struct rpccallout *out = callout_find (a->callout);
    if (!out || (a->caller->program && !a->caller->self)) {
        answer_free (a);
        return;
    }
    struct machine *before = sim.self;
    sim.self = a->caller;
    a->caller->ran = true;
    sim.method = out->method->name;
    sim.answer = true;
    ProtobufCMessage *reply =
        a->status == RPC_OK
            ? protobuf_c_message_unpack (out->method->output, NULL, a->len, a->bytes)
            : NULL;
    callout_end (out, a->status, a->message, reply);
    if (reply)
        protobuf_c_message_free_unpacked (reply, NULL);
    sim.self = before;
    answer_free (a);
}

/* from NULL: it is the transport itself that tells. */
static void answer_send (struct machine *from, struct machine *caller, uint64_t callout,
                         const char *method, enum rpc_status status, const char *message,
                         const ProtobufCMessage *reply)
{
    struct answer *a = must (calloc (1, sizeof *a));
    *a = (struct answer){.caller = caller, .callout = callout, .status = status};
    a->message = must (strdup (message ? message : ""));
    if (reply) {
        a->len = protobuf_c_message_get_packed_size (reply);
        a->bytes = must (malloc (a->len + 1));
        protobuf_c_message_pack (reply, a->bytes);
    }
    sim.messages++;
    if (from && is_lost (from, caller, method, "'s answer")) {
        answer_free (a);
        return;
    }
    todo_once (NULL, sim.now + delay (method, "'s answer"), answer_arrives, a);
}

/* ---- the server's end */

static void call_free (struct rpccall *call)
{
    if (call->request)
        protobuf_c_message_free_unpacked (call->request, NULL);
    free (call->bytes);
    free (call);
}

static const char *method_name (const struct rpccall *call)
{
    return call->service->methods[call->method].name;
}

static void call_end (struct rpccall *call, enum rpc_status status, const char *message,
                      const ProtobufCMessage *reply)
{
    struct machine *server = call->server;
    DL_DELETE (server->calls, call);
    if (gate_passed (server)) {
        if (reply && sim.on_reply)
            sim.on_reply (server, method_name (call), call->request, reply);
        answer_send (server, call->caller, call->callout, method_name (call), status, message,
                     reply);
    }
    call_free (call);
}

static const struct rpc_method *handler_of (const struct machine *server,
                                            const struct rpccall *call, void **self)
{
    for (uint32_t i = 0; i < server->service_count; i++) {
        if (server->service[i].descriptor != call->service)
            continue;
        *self = server->service[i].self;
        for (const struct rpc_method *m = server->service[i].methods; m->name; m++)
            if (strcmp (m->name, method_name (call)) == 0)
                return m;
    }
    return NULL;
}

static void request_arrives (void *arg)
{
    struct rpccall *call = arg;
    struct machine *server = machine_find (call->target);
    void *self = NULL;
    if (!server || !machine_up (server)) {
        coverage_count ("down %s", method_name (call));
        answer_send (NULL, call->caller, call->callout, method_name (call), RPC_UNAVAILABLE,
                     "connection refused", NULL);
        call_free (call);
        return;
    }
    call->server = server;
    DL_APPEND (server->calls, call);
    struct machine *before = sim.self;
    sim.self = server;
    server->ran = true;
    sim.method = method_name (call);
    sim.answer = false;
    const struct rpc_method *m = handler_of (server, call, &self);
    call->request = protobuf_c_message_unpack (call->service->methods[call->method].input, NULL,
                                               call->len, call->bytes);
    CHECK (call->request, "a request cannot be read");
    if (!m)
        rpccall_finish (call, RPC_UNIMPLEMENTED, "no such method");
    else if (!(m->allow & RPC_ALLOW (call->peer.kind)))
        rpccall_finish (call, RPC_PERMISSION_DENIED, "not for this kind of caller");
    else
        m->handler (self, call, call->request);
    sim.self = before;
}

void net_drop (void (*fn) (void *arg), void *arg)
{
    if (fn == answer_arrives)
        answer_free (arg);
    else if (fn == request_arrives)
        call_free (arg);
}

void net_calls_drop (struct machine *machine)
{
    while (machine->calls) {
        struct rpccall *call = machine->calls;
        DL_DELETE (machine->calls, call);
        call_free (call);
    }
}

ProtobufCMessage *rpccall_take (struct rpccall *call)
{
    ProtobufCMessage *request = call->request;
    call->request = NULL;
    return request;
}

const struct principal *rpccall_peer (const struct rpccall *call)
{
    return &call->peer;
}

bool rpccall_is_local (const struct rpccall *call, uint32_t *uid_out)
{
    (void)call;
    (void)uid_out;
    return false;
}

void rpccall_on_cancel (struct rpccall *call, void (*fn) (void *arg), void *arg)
{
    call->on_cancel = fn;
    call->on_cancel_arg = arg;
}

void rpccall_on_ready (struct rpccall *call, void (*fn) (void *arg), void *arg)
{
    (void)call;
    (void)fn;
    (void)arg;
}

bool rpccall_send (struct rpccall *call, const ProtobufCMessage *message)
{
    (void)call;
    (void)message;
    return true;
}

void rpccall_reply (struct rpccall *call, const ProtobufCMessage *message)
{
    call_end (call, RPC_OK, NULL, message);
}

void rpccall_finish (struct rpccall *call, enum rpc_status status, const char *message)
{
    call_end (call, status, message, NULL);
}

void rpccall_fail (struct rpccall *call, const struct err *err)
{
    call_end (call, rpc_status_of_err (err->code), err->text, NULL);
}

int rpcserver_add_service (struct rpcserver *server, const ProtobufCServiceDescriptor *descriptor,
                           const struct rpc_method *methods, void *self, struct err *err)
{
    struct machine *machine = (struct machine *)server;
    (void)err;
    CHECK (machine->service_count < SERVICES_MAX, "too many services");
    machine->service[machine->service_count++] = (struct service){descriptor, methods, self};
    return 0;
}

void rpcserver_set_gate (struct rpcserver *server, const struct sendgate *gate)
{
    ((struct machine *)server)->gate = gate;
}

uint16_t rpcserver_port (const struct rpcserver *server)
{
    (void)server;
    return 1;
}

/* ---- clients */

struct rpcclient *rpcclient_create (const struct rpcclient_config *config, struct err *err)
{
    struct rpcclient *client = must (calloc (1, sizeof *client));
    (void)err;
    client->machine = sim.self;
    snprintf (client->target, sizeof client->target, "%s", config->target);
    client->target[strcspn (client->target, ":")] = '\0';
    snprintf (client->server.name, sizeof client->server.name, "%s", client->target);
    return client;
}

void rpcclient_destroy (struct rpcclient *client)
{
    if (!client)
        return;
    while (client->calls)
        callout_end (client->calls, RPC_CANCELLED, "the client is gone", NULL);
    free (client);
}

bool rpcclient_connected (const struct rpcclient *client)
{
    (void)client;
    return true;
}

const struct principal *rpcclient_server (const struct rpcclient *client)
{
    return &client->server;
}

static unsigned method_of (const ProtobufCServiceDescriptor *service, const char *name)
{
    for (unsigned i = 0; i < service->n_methods; i++)
        if (strcmp (service->methods[i].name, name) == 0)
            return i;
    sim_fail ("%s has no method %s", service->name, name);
}

static void request_send (const struct rpccallout *out, const struct rpccallout_config *config)
{
    struct machine *to = machine_find (out->client->target);
    struct rpccall *call = must (calloc (1, sizeof *call));
    call->caller = out->client->machine;
    call->callout = out->number;
    memcpy (call->target, out->client->target, sizeof call->target);
    call->service = config->service;
    call->method = method_of (config->service, config->method);
    call->len = protobuf_c_message_get_packed_size (config->request);
    call->bytes = must (malloc (call->len + 1));
    protobuf_c_message_pack (config->request, call->bytes);
    call->peer.kind = call->caller->kind;
    snprintf (call->peer.grid, sizeof call->peer.grid, "test");
    snprintf (call->peer.name, sizeof call->peer.name, "%s", call->caller->name);
    call->deadline = INT64_MAX;
    sim.messages++;
    if (to && is_lost (call->caller, to, config->method, "")) {
        if (sim_chance (50)) /* the connection breaks, and the caller is told */
            answer_send (NULL, call->caller, call->callout, config->method, RPC_UNAVAILABLE,
                         "connection lost", NULL);
        call_free (call);
        return;
    }
    todo_once (NULL, sim.now + delay (config->method, ""), request_arrives, call);
}

struct rpccallout *rpcclient_start (struct rpcclient *client,
                                    const struct rpccallout_config *config)
{
    struct rpccallout *out = must (calloc (1, sizeof *out));
    duration_us timeout = config->timeout ? config->timeout : 30 * SEC;
    out->number = ++callout_number;
    out->client = client;
    out->method = &config->service->methods[method_of (config->service, config->method)];
    out->done = config->done;
    out->arg = config->arg;
    out->deadline = (struct todo){.machine = client->machine, .fn = deadline_passed, .arg = out};
    DL_APPEND (client->calls, out);
    if (callout_count == callout_cap) {
        callout_cap = callout_cap ? 2 * callout_cap : 256;
        callouts = must (realloc (callouts, callout_cap * sizeof *callouts));
    }
    callouts[callout_count++] = out;
    if (timeout != INT64_MAX)
        todo_set (&out->deadline, sim.now + timeout);
    if (!gate_passed (client->machine)) /* nothing of it reaches the network any more */
        return out;
    request_send (out, config);
    if (config->idempotent && sim_chance (sim.twice_percent)) {
        sim.repeated++;
        coverage_count ("twice %s", config->method);
        request_send (out, config);
    }
    return out;
}

void rpccallout_cancel (struct rpccallout *out)
{
    callout_end (out, RPC_CANCELLED, "cancelled", NULL);
}

/* ---- the world's own calls */

struct net_call {
    struct rpcclient *client;
    void (*done) (void *arg, const struct rpc_result *result);
    void *arg;
};

static void net_call_done (void *arg, const struct rpc_result *result)
{
    struct net_call *call = arg;
    struct rpcclient *client = call->client;
    call->done (call->arg, result);
    free (client); /* it had this one call */
    free (call);
}

void net_call (struct machine *from, const char *to, const ProtobufCServiceDescriptor *service,
               const char *method, const ProtobufCMessage *request, duration_us timeout,
               void (*done) (void *arg, const struct rpc_result *result), void *arg)
{
    struct machine *before = sim.self;
    struct net_call *call = must (calloc (1, sizeof *call));
    sim.self = from;
    call->client = rpcclient_create (&(struct rpcclient_config){.target = to}, NULL);
    call->done = done;
    call->arg = arg;
    struct rpccallout_config config = {.service = service,
                                       .method = method,
                                       .request = request,
                                       .timeout = timeout,
                                       .idempotent = true,
                                       .done = net_call_done,
                                       .arg = call};
    rpcclient_start (call->client, &config);
    sim.self = before;
}
