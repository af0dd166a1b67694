/* interop_server DIR LISTEN: our server with the echo service. Prints "port N" when it listens;
 * drains and ends on SIGTERM. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/interop/echoserver.h"
#include "tests/interop/testca.h"

struct main {
    struct event_base *base;
    struct rpcserver *server;
};

static void on_drained (void *arg)
{
    struct main *m = arg;

    event_base_loopbreak (m->base);
}

static void on_term (evutil_socket_t fd, short what, void *arg)
{
    struct main *m = arg;

    (void)fd, (void)what;
    rpcserver_drain (m->server, 20 * US_PER_S, on_drained, m);
}

int main (int argc, char **argv)
{
    struct main m = {0};
    struct echoserver echo = {0};
    struct err err;

    if (argc != 3) {
        fprintf (stderr, "usage: interop_server DIR LISTEN\n");
        return 2;
    }
    m.base = echo.base = event_base_new ();
    struct tlsid *id = testca_tlsid (argv[1], "ca", "alpha", true);
    const struct rpcserver_config config = {.base = m.base, .id = id, .listen = argv[2]};
    m.server = rpcserver_create (&config, &err);
    if (!m.server || echoserver_add (&echo, m.server, &err) < 0) {
        fprintf (stderr, "interop_server: %s\n", err.text);
        return 1;
    }
    struct event *term = evsignal_new (m.base, SIGTERM, on_term, &m);
    event_add (term, NULL);
    printf ("port %u\n", rpcserver_port (m.server));
    fflush (stdout);
    event_base_dispatch (m.base);
    event_free (term);
    rpcserver_destroy (m.server);
    tlsid_destroy (id);
    event_base_free (m.base);
    return echo.open == 0 ? 0 : 1;
}
