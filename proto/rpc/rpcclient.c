/* rpcclient: the queue of calls, their deadlines, back-off and what is sent again; the
 * connection itself is rpclink.c's. Commands use the blocking form, links of daemons the other
 * one. A daemon must never call a blocking form: its loop would stand still. */
#include "proto/rpc/rpcclient.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <utlist.h>

#include "proto/base/clock.h"
#include "proto/base/text.h"
#include "proto/rpc/pbguard.h"
#include "proto/rpc/rpcclient_i.h"

enum {
    BACKOFF_FIRST_MS = 100,
    BACKOFF_MAX_S = 10,
    TIMEOUT_DEFAULT_S = 30,
    REPLY_BYTES_MAX_DEFAULT = 4 << 20,
    RESENDS_MAX = 16, /* of one call, whatever its deadline allows */
};

/* ---- calls */

static void call_free (struct rpccallout *call)
{
    event_del (&call->ev_deadline);
    grpcwire_reader_clear (&call->reader);
    if (call->reply)
        protobuf_c_message_free_unpacked (call->reply, NULL);
    free (call->body);
    free (call->request);
    free (call->delegation);
    free (call->message);
    free (call);
}

/* Decides the outcome; done is called from the loop. The call must be on no list. */
void client_call_finish (struct rpccallout *call, enum rpc_status status, const char *message)
{
    struct rpcclient *client = call->client;

    assert (!call->link);
    event_del (&call->ev_deadline);
    call->status = status;
    if (message) {
        free (call->message);
        call->message = strdup (message);
    }
    if (call->has_status) /* a server that answers ends the back-off */
        client->failures = 0;
    bool first = !client->finished;
    DL_APPEND (client->finished, call);
    if (first && client->depth == 0)
        event_active (&client->ev_finished, EV_TIMEOUT, 0);
}

static void finish_with_target (struct rpccallout *call, enum rpc_status status, const char *why)
{
    char text[ERR_TEXT_MAX + 300];

    text_printf (text, sizeof (text), "%s: %s", call->client->target, why);
    client_call_finish (call, status, text);
}

static void unpack_reply (struct rpccallout *call)
{
    struct err err;

    if (call->status != RPC_OK || call->streaming)
        return;
    call->reply = pbguard_unpack (call->output, call->body, call->body_len, &err);
    if (!call->reply) {
        call->status = RPC_INTERNAL;
        free (call->message);
        call->message = strdup (err.text);
    }
}

static void client_leave (struct rpcclient *client)
{
    if (--client->depth == 0 && client->destroyed)
        free (client);
}

void client_deliver (struct rpcclient *client)
{
    if (!client->finished)
        return;
    client->depth++;
    while (client->finished) {
        struct rpccallout *call = client->finished;
        DL_DELETE (client->finished, call);
        unpack_reply (call);
        const struct rpc_result result = {.status = (enum rpc_status)call->status,
                                          .message = call->message ? call->message : "",
                                          .reply = call->reply,
                                          .answered = call->answered};
        call->done (call->arg, &result);
        call_free (call);
    }
    client_leave (client);
}

static void on_finished (evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    client_deliver (arg);
}

/* ---- the queue and the connection */

static void client_connect (struct rpcclient *client)
{
    duration_us wait = client->retry_at - clock_monotonic_us ();
    struct timeval tv = {wait / US_PER_S, wait % US_PER_S};

    if (client->current || !client->waiting)
        return;
    if (wait <= 0)
        rpclink_open (client);
    if (!client->current && client->waiting) {
        if (wait <= 0)
            tv = (struct timeval){0, BACKOFF_FIRST_MS * 1000};
        if (!event_pending (&client->ev_retry, EV_TIMEOUT, NULL))
            event_add (&client->ev_retry, &tv);
    }
}

static void on_retry (evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    client_connect (arg);
}

static void client_wait (struct rpccallout *call)
{
    DL_APPEND (call->client->waiting, call);
    client_connect (call->client);
}

/* Full jitter: anywhere up to the bound, which doubles. */
static void back_off (struct rpcclient *client)
{
    unsigned doublings = client->failures < 20 ? client->failures : 20;
    duration_us bound = client->backoff_first;
    uint64_t r;

    while (doublings-- > 0 && bound < client->backoff_max)
        bound *= 2;
    if (bound > client->backoff_max)
        bound = client->backoff_max;
    random_bytes (&r, sizeof (r));
    client->retry_at = clock_monotonic_us () + 1 + (duration_us)(r % (uint64_t)bound);
    client->failures++;
}

void client_call_resend (struct rpccallout *call)
{
    assert (!call->link);
    call->ever_sent = true;
    if (++call->resends > RESENDS_MAX) {
        finish_with_target (call, RPC_UNAVAILABLE, "the server refused the call again and again");
        return;
    }
    grpcwire_reader_clear (&call->reader);
    free (call->body);
    free (call->message);
    call->body = NULL;
    call->body_len = 0;
    call->message = NULL;
    call->has_status = call->has_message = call->grpc_content = false;
    call->http_status = 0;
    call->header_bytes = 0;
    client_wait (call);
}

void client_link_up (struct rpclink *link)
{
    struct rpcclient *client = link->client;

    client->last.code = 0;
    while (client->current == link && client->waiting) {
        struct rpccallout *call = client->waiting;
        DL_DELETE (client->waiting, call);
        if (!rpclink_submit (link, call))
            client_wait (call);
    }
}

void client_link_going (struct rpclink *link)
{
    struct rpcclient *client = link->client;

    link->going = true;
    if (client && client->current == link) {
        client->current = NULL;
        client_connect (client);
    }
}

/* Who we are is not good, or there is no place for us. */
static enum rpc_status refusal_status (const struct err *why)
{
    return why->code == ERR_LIMIT ? RPC_UNAVAILABLE : RPC_UNAUTHENTICATED;
}

/* The calls that were on the link when it went. */
static void fail_link_calls (struct rpclink *link, const struct err *why, bool refused)
{
    char text[ERR_TEXT_MAX + 64];

    while (link->calls) {
        struct rpccallout *call = link->calls;
        DL_DELETE (link->calls, call);
        call->link = NULL;
        if (refused) {
            finish_with_target (call, refusal_status (why), why->text);
        } else if (!call->begun) {
            client_call_resend (call);
        } else if (call->idempotent && !(call->streaming && call->header_bytes > 0)) {
            client_call_resend (call);
        } else {
            text_printf (text, sizeof (text), "%s; whether the call took effect is not known",
                         why->text);
            finish_with_target (call, RPC_UNAVAILABLE, text);
        }
    }
}

/* Calls that wait: a refusal ends them all; a server that is down ends those that never ran, while
 * those that must be sent again wait for it within their deadline. */
static void fail_waiting (struct rpcclient *client, const struct err *why, bool refused,
                          bool reached)
{
    struct rpccallout *call, *tmp;

    DL_FOREACH_SAFE (client->waiting, call, tmp) {
        if (!refused && call->ever_sent)
            continue;
        /* Reached but lost in the handshake: a server that is just restarting does that. */
        if (!refused && reached && call->resends < 3) {
            call->resends++;
            continue;
        }
        DL_DELETE (client->waiting, call);
        finish_with_target (call, refused ? refusal_status (why) : RPC_UNAVAILABLE, why->text);
    }
}

void client_link_down (struct rpclink *link, const struct err *why)
{
    struct rpcclient *client = link->client;
    bool orderly = link->going && why->code == 0;
    bool refused = (why->code == ERR_UNAUTHENTIC || why->code == ERR_LIMIT) && !link->proven;
    char quoted[2 * ERR_TEXT_MAX];

    link->going = true;
    if (client->current == link)
        client->current = NULL;
    if (!orderly) {
        client->last = *why;
        back_off (client);
        log_event (client->log, refused ? LOG_LEVEL_WARN : LOG_LEVEL_INFO, "rpc", "server_lost",
                   "target=%s reason=%s", client->target,
                   log_quote (why->text, quoted, sizeof (quoted)));
    }
    /* First those that wait: what comes off the link may be put among them. */
    if (!link->proven && !orderly)
        fail_waiting (client, why, refused, link->reached || link->up);
    fail_link_calls (link, why, refused);
    client_connect (client);
    if (link->proven && client->lost && !client->destroyed)
        client->lost (client->arg);
}

/* ---- the interface */

static int parse_target (struct rpcclient *c, struct err *err)
{
    const char *t = c->target, *colon = strrchr (t, ':');
    struct sockaddr_un sun;
    uint64_t port;
    int rc;

    if (strncmp (t, "unix:", 5) == 0) {
        c->unix_path = c->target + 5;
        if (c->unix_path[0] != '/' || strlen (c->unix_path) >= sizeof (sun.sun_path))
            return err_set (err, ERR_INVALID, "server \"%s\": not of the form unix:/path", t);
        return 0;
    }
    if (!colon || colon == t)
        return err_set (err, ERR_INVALID, "server \"%s\": not of the form host:port", t);
    if ((rc = uint_parse (colon + 1, "port", 1, 65535, &port, err)) < 0)
        return err_prefix (err, "server \"%s\"", t);
    bool bracket = t[0] == '[' && colon[-1] == ']';
    c->host = strndup (t + bracket, (size_t)(colon - t) - 2 * (size_t)bracket);
    c->port = strdup (colon + 1);
    if (!c->host || !c->port)
        return err_set (err, ERR_NOMEM, "out of memory");
    if (!c->id)
        return err_set (err, ERR_INVALID, "server \"%s\": a certificate is needed", t);
    return rc;
}

struct rpcclient *rpcclient_create (const struct rpcclient_config *config, struct err *err)
{
    struct rpcclient *c = calloc (1, sizeof (*c));

    if (!c) {
        err_set (err, ERR_NOMEM, "out of memory");
        return NULL;
    }
    c->base = config->base;
    c->id = config->id;
    c->log = config->log;
    c->expect_kind = config->expect_kind;
    c->backoff_first = config->backoff_first ? config->backoff_first : BACKOFF_FIRST_MS * 1000;
    c->gate = config->gate;
    c->lost = config->lost;
    c->arg = config->arg;
    c->mend_text = config->mend_text;
    c->slow = config->slow;
    c->backoff_max = config->backoff_max ? config->backoff_max : BACKOFF_MAX_S * US_PER_S;
    evtimer_assign (&c->ev_finished, c->base, on_finished, c);
    evtimer_assign (&c->ev_retry, c->base, on_retry, c);
    c->target = strdup (config->target);
    c->expect_name = config->expect_name ? strdup (config->expect_name) : NULL;
    c->callbacks = rpclink_callbacks ();
    if (!c->target || (config->expect_name && !c->expect_name) || !c->callbacks ||
        nghttp2_option_new (&c->option) != 0) {
        err_set (err, ERR_NOMEM, "out of memory");
        goto fail;
    }
    nghttp2_option_set_no_closed_streams (c->option, 1);
    if (parse_target (c, err) < 0)
        goto fail;
    return c;

fail:
    rpcclient_destroy (c);
    return NULL;
}

void rpcclient_destroy (struct rpcclient *client)
{
    struct rpclink *link;
    struct rpccallout *call;

    if (!client || client->destroyed)
        return;
    client->destroyed = true;
    client->depth++;
    DL_FOREACH (client->links, link) {
        while ((call = link->calls)) {
            rpclink_drop (call);
            client_call_finish (call, RPC_CANCELLED, "the client was closed");
        }
    }
    while ((call = client->waiting)) {
        DL_DELETE (client->waiting, call);
        client_call_finish (call, RPC_CANCELLED, "the client was closed");
    }
    while (client->links)
        rpclink_kill (client->links);
    client_deliver (client);
    event_del (&client->ev_finished);
    event_del (&client->ev_retry);
    if (client->dns)
        evdns_base_free (client->dns, 0);
    nghttp2_session_callbacks_del (client->callbacks);
    nghttp2_option_del (client->option);
    free (client->target);
    free (client->host);
    free (client->port);
    free (client->expect_name);
    client_leave (client);
}

const struct principal *rpcclient_server (const struct rpcclient *client)
{
    return &client->server;
}

bool rpcclient_connected (const struct rpcclient *client)
{
    return client->current && client->current->proven;
}

nghttp2_session *rpcclient_session (struct rpcclient *client)
{
    return client->current && client->current->up ? h2conn_session (client->current->h2) : NULL;
}

static void on_deadline (evutil_socket_t fd, short what, void *arg)
{
    struct rpccallout *call = arg;
    struct rpcclient *client = call->client;

    (void)fd, (void)what;
    if (call->link) {
        rpclink_drop (call);
        client_call_finish (call, RPC_DEADLINE_EXCEEDED, "the deadline passed");
        return;
    }
    DL_DELETE (client->waiting, call);
    if (client->last.code) /* it never reached the server, and this is why */
        finish_with_target (call, RPC_UNAVAILABLE, client->last.text);
    else
        finish_with_target (call, RPC_DEADLINE_EXCEEDED,
                            "the deadline passed before the server could be reached");
}

/* The request with its prefix, checked; on failure the call's outcome is decided. */
static bool pack_request (struct rpccallout *call, const ProtobufCMessage *request)
{
    size_t len = protobuf_c_message_get_packed_size (request);
    const char *mended = NULL;
    struct err err;

    call->request = len < UINT32_MAX ? malloc (GRPCWIRE_PREFIX_LEN + len) : NULL;
    if (!call->request) {
        client_call_finish (call, RPC_RESOURCE_EXHAUSTED, "out of memory for the request");
        return false;
    }
    grpcwire_prefix_put (call->request, (uint32_t)len);
    protobuf_c_message_pack (request, call->request + GRPCWIRE_PREFIX_LEN);
    call->request_len = GRPCWIRE_PREFIX_LEN + len;
    void *body = call->request + GRPCWIRE_PREFIX_LEN;
    int rc = call->client->mend_text ? pbguard_mend (request->descriptor, body, len, &mended, &err)
                                     : pbguard_check (request->descriptor, body, len, &err);
    if (rc < 0) {
        client_call_finish (call, rpc_status_of_err (err.code), err.text);
        return false;
    }
    if (mended)
        log_event (call->client->log, LOG_LEVEL_WARN, "rpc", "text_mended", "message=%s field=%s",
                   request->descriptor->name, mended);
    return true;
}

struct rpccallout *rpcclient_start (struct rpcclient *client,
                                    const struct rpccallout_config *config)
{
    const ProtobufCMethodDescriptor *method =
        protobuf_c_service_descriptor_get_method_by_name (config->service, config->method);
    duration_us timeout = config->timeout ? config->timeout : TIMEOUT_DEFAULT_S * US_PER_S;
    struct rpccallout *call;

    assert (method && config->request->descriptor == method->input && config->done);
    if (client->destroyed)
        return NULL;
    call = calloc (1, sizeof (*call));
    assert (call);
    call->client = client;
    call->output = method->output;
    call->idempotent = config->idempotent;
    call->streaming = config->on_message != NULL;
    call->on_message = config->on_message;
    call->done = config->done;
    call->arg = config->arg;
    call->reader.max = config->reply_bytes_max ? config->reply_bytes_max : REPLY_BYTES_MAX_DEFAULT;
    call->delegation = config->delegation ? strdup (config->delegation) : NULL;
    assert (!config->delegation == !call->delegation);
    call->deadline = INT64_MAX;
    evtimer_assign (&call->ev_deadline, client->base, on_deadline, call);
    int n =
        snprintf (call->path, sizeof (call->path), "/%s/%s", config->service->name, config->method);
    assert (n > 0 && (size_t)n < sizeof (call->path));
    if (!pack_request (call, config->request))
        return call;
    if (timeout != INT64_MAX) {
        const struct timeval tv = {timeout > 0 ? timeout / US_PER_S : 0,
                                   timeout > 0 ? timeout % US_PER_S : 0};
        call->deadline = clock_monotonic_us () + timeout;
        event_add (&call->ev_deadline, &tv);
    }
    if (!client->current || !client->current->up || !rpclink_submit (client->current, call))
        client_wait (call);
    return call;
}

void rpccallout_cancel (struct rpccallout *callout)
{
    struct rpccallout *call;

    if (callout->link) {
        rpclink_drop (callout);
    } else {
        DL_FOREACH (callout->client->finished, call) {
            if (call == callout)
                return; /* already over; done is about to be called */
        }
        DL_DELETE (callout->client->waiting, callout);
    }
    client_call_finish (callout, RPC_CANCELLED, "cancelled");
}

/* ---- the blocking form */

struct waiter {
    struct rpcclient *client;
    struct rpccallout *call;
    bool over, heard, answered;
    ProtobufCMessage *reply;
    enum rpc_status status;
    char text[ERR_TEXT_MAX];
    void (*on_message) (void *arg, const ProtobufCMessage *message);
    void *arg;
};

static void waiter_done (void *arg, const struct rpc_result *result)
{
    struct waiter *w = arg;

    w->over = true;
    w->status = result->status;
    w->answered = result->answered;
    text_printf (w->text, sizeof (w->text), "%s", result->message);
    if (result->reply) { /* ours now */
        w->reply = w->call->reply;
        w->call->reply = NULL;
    }
}

static void waiter_message (void *arg, const ProtobufCMessage *message)
{
    struct waiter *w = arg;

    w->heard = true;
    w->on_message (w->arg, message);
}

/* Whoever waits at a terminal is told for whom. */
static void waiter_slow (evutil_socket_t fd, short what, void *arg)
{
    struct waiter *w = arg;
    void (*slow) (const char *target) = w->client->slow;

    (void)fd;
    (void)what;
    w->client->slow = NULL;
    if (slow && !w->heard)
        slow (w->client->target);
}

static const char *status_text (enum rpc_status status)
{
    static const char *const names[] = {"ok",
                                        "cancelled",
                                        "unknown error",
                                        "invalid argument",
                                        "deadline exceeded",
                                        "not found",
                                        "already exists",
                                        "permission denied",
                                        "resource exhausted",
                                        "failed precondition",
                                        "aborted",
                                        "out of range",
                                        "unimplemented",
                                        "internal error",
                                        "unavailable",
                                        "data loss",
                                        "unauthenticated"};

    return names[status];
}

static int waiter_run (struct rpcclient *client, struct waiter *w,
                       const struct rpccallout_config *config, struct err *err)
{
    static const char funds[] = "funds: ";

    struct event slow;

    w->client = client;
    w->call = rpcclient_start (client, config);
    if (!w->call)
        return err_set (err, ERR_UNAVAILABLE, "the client was closed");
    evtimer_assign (&slow, client->base, waiter_slow, w);
    if (client->slow)
        evtimer_add (&slow, &(struct timeval){.tv_sec = RPCCLIENT_SLOW_US / US_PER_S});
    while (!w->over) {
        if (event_base_loop (client->base, EVLOOP_ONCE) < 0) { /* called from inside the loop */
            evtimer_del (&slow);
            rpccallout_cancel (w->call);
            client_deliver (client);
            return err_set (err, ERR_INTERNAL, "a blocking call inside the event loop");
        }
    }
    evtimer_del (&slow);
    if (w->status == RPC_OK)
        return 0;
    if (w->status == RPC_FAILED_PRECONDITION && strncmp (w->text, funds, sizeof (funds) - 1) == 0)
        return err_set (err, ERR_FUNDS, "%s", w->text + sizeof (funds) - 1);
    if (w->status == RPC_DEADLINE_EXCEEDED && !w->answered && config->timeout >= US_PER_S)
        return err_set (err, ERR_TIMEOUT, "%s: no answer within %lld s (%s)", client->target,
                        (long long)(config->timeout / US_PER_S), w->text);
    return err_set (err, rpc_err_of_status (w->status), "%s",
                    w->text[0] ? w->text : status_text (w->status));
}

int rpcclient_call (struct rpcclient *client, const ProtobufCServiceDescriptor *service,
                    const char *method, const ProtobufCMessage *request, duration_us timeout,
                    bool idempotent, ProtobufCMessage **reply_out, struct err *err)
{
    struct waiter w = {0};
    const struct rpccallout_config config = {.service = service,
                                             .method = method,
                                             .request = request,
                                             .timeout = timeout,
                                             .idempotent = idempotent,
                                             .done = waiter_done,
                                             .arg = &w};
    int rc = waiter_run (client, &w, &config, err);

    if (rc == 0 && reply_out)
        *reply_out = w.reply;
    else if (w.reply)
        protobuf_c_message_free_unpacked (w.reply, NULL);
    return rc;
}

int rpcclient_stream (struct rpcclient *client, const ProtobufCServiceDescriptor *service,
                      const char *method, const ProtobufCMessage *request, duration_us timeout,
                      void (*on_message) (void *arg, const ProtobufCMessage *message), void *arg,
                      struct err *err)
{
    struct waiter w = {.on_message = on_message, .arg = arg};
    const struct rpccallout_config config = {.service = service,
                                             .method = method,
                                             .request = request,
                                             .timeout = timeout,
                                             .on_message = waiter_message,
                                             .done = waiter_done,
                                             .arg = &w};

    return waiter_run (client, &w, &config, err);
}
