/* bench_nui certs DIR | server DIR | client DIR PORT INFLIGHT SECONDS
 *
 * 64-byte echo over mTLS on one connection, with our server or client. The client prints
 * "calls_per_s client_cpu_us_per_call". */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "proto/base/clock.h"
#include "proto/rpc/rpcclient.h"
#include "tests/interop/echo.pb-c.h"
#include "tests/interop/echoserver.h"
#include "tests/interop/testca.h"

static int certs (const char *dir)
{
    struct testca *ca = testca_create (dir, "ca");

    testca_issue (ca, &(struct testca_cert){
                          .name = "alpha", .uri = "nui://test/site/alpha", .dns_localhost = true});
    testca_issue (ca, &(struct testca_cert){.name = "alice", .uri = "nui://test/user/alice"});
    testca_destroy (ca);
    return 0;
}

static void on_term (evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    event_base_loopbreak (arg);
}

static int server (const char *dir)
{
    struct event_base *base = event_base_new ();
    struct tlsid *id = testca_tlsid (dir, "ca", "alpha", true);
    const struct rpcserver_config config = {.base = base, .id = id, .listen = "127.0.0.1:0"};
    struct err err;
    struct rpcserver *s = rpcserver_create (&config, &err);
    struct echoserver echo = {.base = base};

    if (!s || echoserver_add (&echo, s, &err) < 0) {
        fprintf (stderr, "bench_nui: %s\n", err.text);
        return 1;
    }
    struct event *term = evsignal_new (base, SIGTERM, on_term, base);
    event_add (term, NULL);
    printf ("%u\n", rpcserver_port (s));
    fflush (stdout);
    event_base_dispatch (base);
    event_free (term);
    rpcserver_destroy (s);
    tlsid_destroy (id);
    event_base_free (base);
    return 0;
}

struct load {
    struct rpcclient *client;
    Nui__Test__V1__EchoRequest request;
    uint64_t done, running;
    bool stop;
};

static void next (struct load *load);

static void on_done (void *arg, const struct rpc_result *result)
{
    struct load *load = arg;

    if (result->status != RPC_OK) {
        fprintf (stderr, "bench_nui: %d %s\n", result->status, result->message);
        exit (1);
    }
    load->done++;
    load->running--;
    if (!load->stop)
        next (load);
}

static void next (struct load *load)
{
    const struct rpccallout_config config = {.service = &nui__test__v1__echo__descriptor,
                                             .method = "Echo",
                                             .request = &load->request.base,
                                             .done = on_done,
                                             .arg = load};

    load->running++;
    rpcclient_start (load->client, &config);
}

static double cpu_us (void)
{
    struct rusage ru;

    getrusage (RUSAGE_SELF, &ru);
    return (double)(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) * 1e6 +
           (double)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec);
}

static void run_for (struct event_base *base, duration_us us)
{
    duration_us end = clock_monotonic_us () + us;

    while (clock_monotonic_us () < end)
        event_base_loop (base, EVLOOP_ONCE);
}

static int client (const char *dir, const char *port, int in_flight, int seconds)
{
    static char text[65];
    struct load load = {.request = NUI__TEST__V1__ECHO_REQUEST__INIT};
    struct event_base *base = event_base_new ();
    struct tlsid *id = testca_tlsid (dir, "ca", "alice", true);
    struct err err;
    char target[64];

    snprintf (target, sizeof (target), "127.0.0.1:%s", port);
    const struct rpcclient_config config = {
        .base = base, .id = id, .target = target, .expect_kind = PRINCIPAL_SITE};
    load.client = rpcclient_create (&config, &err);
    if (!load.client) {
        fprintf (stderr, "bench_nui: %s\n", err.text);
        return 1;
    }
    memset (text, 'x', 64);
    load.request.text = text;
    for (int i = 0; i < in_flight; i++)
        next (&load);
    run_for (base, 500000); /* warm */
    uint64_t from = load.done;
    duration_us begin = clock_monotonic_us ();
    double cpu = cpu_us ();
    run_for (base, seconds * US_PER_S);
    double calls = (double)(load.done - from);
    printf ("%.0f %.2f\n", calls * 1e6 / (double)(clock_monotonic_us () - begin),
            (cpu_us () - cpu) / calls);
    load.stop = true;
    while (load.running > 0)
        event_base_loop (base, EVLOOP_ONCE);
    rpcclient_destroy (load.client);
    tlsid_destroy (id);
    event_base_free (base);
    return 0;
}

int main (int argc, char **argv)
{
    if (argc == 3 && strcmp (argv[1], "certs") == 0)
        return certs (argv[2]);
    if (argc == 3 && strcmp (argv[1], "server") == 0)
        return server (argv[2]);
    if (argc == 6 && strcmp (argv[1], "client") == 0)
        return client (argv[2], argv[3], atoi (argv[4]), atoi (argv[5]));
    fprintf (stderr,
             "usage: bench_nui certs DIR | server DIR | client DIR PORT INFLIGHT SECONDS\n");
    return 2;
}
