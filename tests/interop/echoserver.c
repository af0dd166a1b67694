#include "tests/interop/echoserver.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/interop/echo.pb-c.h"

/* A call that is answered later: Sleep, Hang, Stream. */
struct later {
    struct echoserver *echo;
    struct rpccall *call;
    const Nui__Test__V1__EchoRequest *request;
    struct event *timer;
    uint32_t next;
    uint8_t *data;
};

static void later_free (struct later *l)
{
    l->echo->open--;
    if (l->timer)
        event_free (l->timer);
    free (l->data);
    free (l);
}

static struct later *later_new (struct echoserver *echo, struct rpccall *call,
                                const ProtobufCMessage *request)
{
    struct later *l = calloc (1, sizeof (*l));

    assert (l);
    l->echo = echo;
    l->call = call;
    l->request = (const Nui__Test__V1__EchoRequest *)request;
    echo->calls++;
    echo->open++;
    return l;
}

static void on_cancel (void *arg)
{
    struct later *l = arg;
    struct rpccall *call = l->call;

    l->echo->cancelled++;
    later_free (l);
    rpccall_finish (call, RPC_CANCELLED, NULL);
}

static void echo_echo (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    const Nui__Test__V1__EchoRequest *req = (const Nui__Test__V1__EchoRequest *)request;
    struct echoserver *echo = self;
    Nui__Test__V1__EchoReply reply = NUI__TEST__V1__ECHO_REPLY__INIT;
    char uri[PRINCIPAL_URI_MAX];

    echo->calls++;
    reply.text = req->text;
    reply.data = req->data;
    char stats[64];
    if (req->count == 2) { /* asked for by tests in another process */
        snprintf (stats, sizeof (stats), "open=%u cancelled=%u", echo->open, echo->cancelled);
        reply.text = stats;
    }
    if (req->count == 3)
        reply.text = (char *)"cut here: \xc3";
    if (req->count > 0)
        reply.peer = principal_uri (rpccall_peer (call), uri);
    rpccall_reply (call, &reply.base);
}

static void echo_fail (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    const Nui__Test__V1__EchoRequest *req = (const Nui__Test__V1__EchoRequest *)request;
    struct echoserver *echo = self;

    echo->calls++;
    rpccall_finish (call, (enum rpc_status)req->status, req->text);
}

static void on_slept (evutil_socket_t fd, short what, void *arg)
{
    struct later *l = arg;
    struct rpccall *call = l->call;
    Nui__Test__V1__EchoReply reply = NUI__TEST__V1__ECHO_REPLY__INIT;

    (void)fd, (void)what;
    reply.text = l->request->text;
    rpccall_reply (call, &reply.base);
    later_free (l);
}

static void echo_sleep (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct later *l = later_new (self, call, request);
    const struct timeval tv = {(time_t)(l->request->delay_us / 1000000),
                               (suseconds_t)(l->request->delay_us % 1000000)};

    rpccall_on_cancel (call, on_cancel, l);
    l->timer = event_new (l->echo->base, -1, 0, on_slept, l);
    event_add (l->timer, &tv);
}

static void echo_hang (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    rpccall_on_cancel (call, on_cancel, later_new (self, call, request));
}

static void produce (void *arg)
{
    struct later *l = arg;
    struct rpccall *call = l->call;
    Nui__Test__V1__EchoReply reply = NUI__TEST__V1__ECHO_REPLY__INIT;
    bool more = true;

    reply.text = l->request->text;
    reply.data.data = l->data;
    reply.data.len = l->request->bytes_each;
    while (more && l->next < l->request->count) {
        reply.number = l->next++;
        l->echo->produced += l->request->bytes_each;
        more = rpccall_send (call, &reply.base);
    }
    if (l->next == l->request->count) {
        later_free (l);
        rpccall_finish (call, RPC_OK, NULL);
    }
}

static void echo_stream (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct later *l = later_new (self, call, request);

    l->data = calloc (1, l->request->bytes_each + 1);
    assert (l->data);
    rpccall_on_cancel (call, on_cancel, l);
    rpccall_on_ready (call, produce, l);
    produce (l);
}

static const struct rpc_method methods[] = {
    {.name = "Echo", .allow = RPC_ALLOW_ANY, .handler = echo_echo},
    {.name = "Fail", .allow = RPC_ALLOW_ANY, .handler = echo_fail},
    {.name = "Sleep", .allow = RPC_ALLOW_ANY, .handler = echo_sleep},
    {.name = "Hang", .allow = RPC_ALLOW_ANY, .handler = echo_hang},
    {.name = "Big",
     .allow = RPC_ALLOW_ANY,
     .request_bytes_max = (4 << 20) + 1024,
     .handler = echo_echo},
    {.name = "Closed", .allow = RPC_ALLOW (PRINCIPAL_OPERATOR), .handler = echo_echo},
    {.name = "Stream", .allow = RPC_ALLOW_ANY, .server_streaming = true, .handler = echo_stream},
    {.name = NULL},
};

int echoserver_add (struct echoserver *echo, struct rpcserver *server, struct err *err)
{
    return rpcserver_add_service (server, &nui__test__v1__echo__descriptor, methods, echo, err);
}
