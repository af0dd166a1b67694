/* Fuzz target: a client's bytes against a whole server, over its Unix socket.
 *
 * The input is what follows the client's connection preface. Handlers answer at once, stream, or
 * keep the call until it is cancelled; nothing may be left when the connection is gone. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "proto/rpc/rpcserver_i.h"
#include "tests/interop/echo.pb-c.h"

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size);

static unsigned kept; /* calls that wait for their cancel hook */

static void handle_echo (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    const Nui__Test__V1__EchoRequest *req = (const Nui__Test__V1__EchoRequest *)request;
    Nui__Test__V1__EchoReply reply = NUI__TEST__V1__ECHO_REPLY__INIT;

    (void)self;
    reply.text = req->text;
    reply.data = req->data;
    rpccall_reply (call, &reply.base);
}

static void handle_stream (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    const Nui__Test__V1__EchoRequest *req = (const Nui__Test__V1__EchoRequest *)request;
    Nui__Test__V1__EchoReply reply = NUI__TEST__V1__ECHO_REPLY__INIT;

    (void)self;
    reply.text = req->text;
    for (uint32_t i = 0; i < req->count % 64; i++)
        (void)rpccall_send (call, &reply.base);
    rpccall_finish (call, (enum rpc_status) (req->status % 17), req->text);
}

static void on_cancel (void *arg)
{
    kept--;
    rpccall_finish (arg, RPC_CANCELLED, NULL);
}

static void handle_hang (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    (void)self, (void)request;
    kept++;
    rpccall_on_cancel (call, on_cancel, call);
}

static const struct rpc_method methods[] = {
    {.name = "Echo", .allow = RPC_ALLOW_ANY, .handler = handle_echo},
    {.name = "Closed", .allow = RPC_ALLOW (PRINCIPAL_BANK), .handler = handle_echo},
    {.name = "Hang", .allow = RPC_ALLOW_ANY, .handler = handle_hang},
    {.name = "Stream", .allow = RPC_ALLOW_ANY, .server_streaming = true, .handler = handle_stream},
    {.name = NULL},
};

struct target {
    struct event_base *base;
    struct rpcserver *server;
    struct sockaddr_un sun;
};

static void target_up (struct target *t)
{
    struct err err;

    t->base = event_base_new ();
    const char *tmp = getenv ("TMPDIR");
    t->sun.sun_family = AF_UNIX;
    snprintf (t->sun.sun_path, sizeof (t->sun.sun_path), "%.80s/nui-fuzz-%d", tmp ? tmp : P_tmpdir,
              (int)getpid ());
    const struct rpcserver_config config = {.base = t->base, .unix_path = t->sun.sun_path};
    t->server = rpcserver_create (&config, &err);
    assert (t->server);
    int rc =
        rpcserver_add_service (t->server, &nui__test__v1__echo__descriptor, methods, NULL, &err);
    assert (rc == 0);
}

static void target_down (struct target *t)
{
    rpcserver_destroy (t->server);
    event_base_free (t->base);
    memset (t, 0, sizeof (*t));
}

static void feed (struct target *t, const uint8_t *data, size_t size)
{
    static const char preface[] = NGHTTP2_CLIENT_MAGIC "\0\0\0\4\0\0\0\0";
    uint8_t waste[65536];
    int fd = socket (AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    ssize_t n;

    assert (fd >= 0 && connect (fd, (struct sockaddr *)&t->sun, sizeof (t->sun)) == 0);
    n = send (fd, preface, NGHTTP2_CLIENT_MAGIC_LEN + 9, MSG_NOSIGNAL);
    assert (n == NGHTTP2_CLIENT_MAGIC_LEN + 9);
    for (unsigned quiet = 0; quiet < 3;) {
        quiet++;
        n = size > 0 ? send (fd, data, size, MSG_NOSIGNAL) : 0;
        if (n > 0) {
            data += n;
            size -= (size_t)n;
            quiet = 0;
        } else if (n < 0 && errno != EAGAIN) {
            size = 0;
        }
        event_base_loop (t->base, EVLOOP_NONBLOCK);
        if (recv (fd, waste, sizeof (waste), 0) > 0)
            quiet = 0;
    }
    close (fd);
    while (rpcserver_connections (t->server) > 0)
        event_base_loop (t->base, EVLOOP_ONCE);
    assert (kept == 0 && rpcserver_buffered (t->server) == 0);
}

static struct target target; /* kept from input to input: making one costs more than an input */

static void at_exit (void)
{
    if (target.server)
        target_down (&target);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    static unsigned runs;

    if (runs == 0)
        atexit (at_exit);
    if (!target.server)
        target_up (&target);
    feed (&target, data, size);
    if (++runs % 64 == 0) /* so that the server's own end is exercised too */
        target_down (&target);
    return 0;
}
