/* interop_client DIR TARGET cases: our client against a server of another make, one line per case.
 * interop_client DIR TARGET load N: N calls, 16 in flight, over whatever happens to the server;
 * prints "done=N failed=M". Exit 1 when anything failed. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/rpc/rpcclient.h"
#include "tests/interop/echo.pb-c.h"
#include "tests/interop/testca.h"

static struct event_base *base;
static struct rpcclient *client;
static unsigned bad;

#define CHECK(what)                                                                                \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            printf ("  line %d: not so: %s\n", __LINE__, #what);                                   \
            bad++;                                                                                 \
        }                                                                                          \
    } while (0)

#define REQUEST NUI__TEST__V1__ECHO_REQUEST__INIT

struct outcome {
    bool done;
    enum rpc_status status;
    char message[ERR_TEXT_MAX], text[256];
    size_t data_len;
    unsigned messages;
};

static void on_message (void *arg, const ProtobufCMessage *message)
{
    struct outcome *o = arg;

    CHECK (((const Nui__Test__V1__EchoReply *)message)->number == o->messages);
    o->messages++;
}

static void on_done (void *arg, const struct rpc_result *result)
{
    const Nui__Test__V1__EchoReply *reply = (const Nui__Test__V1__EchoReply *)result->reply;
    struct outcome *o = arg;

    o->done = true;
    o->status = result->status;
    snprintf (o->message, sizeof (o->message), "%s", result->message);
    if (reply) {
        snprintf (o->text, sizeof (o->text), "%s", reply->text);
        o->data_len = reply->data.len;
    }
}

static struct rpccallout *start (struct outcome *o, const char *method,
                                 const Nui__Test__V1__EchoRequest *request, duration_us timeout)
{
    const struct rpccallout_config config = {.service = &nui__test__v1__echo__descriptor,
                                             .method = method,
                                             .request = &request->base,
                                             .timeout = timeout,
                                             .reply_bytes_max = 8 << 20,
                                             .on_message =
                                                 strcmp (method, "Stream") == 0 ? on_message : NULL,
                                             .done = on_done,
                                             .arg = o};

    memset (o, 0, sizeof (*o));
    return rpcclient_start (client, &config);
}

static void finish (struct outcome *o)
{
    while (!o->done)
        event_base_loop (base, EVLOOP_ONCE);
}

static void call (struct outcome *o, const char *method, const Nui__Test__V1__EchoRequest *request,
                  duration_us timeout)
{
    start (o, method, request, timeout);
    finish (o);
}

static void case_unary (void)
{
    Nui__Test__V1__EchoRequest request = REQUEST;
    struct outcome o;

    request.text = (char *)"mahalo \xf0\x9f\x8c\xba";
    call (&o, "Echo", &request, 0);
    CHECK (o.status == RPC_OK);
    CHECK (strcmp (o.text, request.text) == 0);
    request.text = (char *)"";
    call (&o, "Echo", &request, 0);
    CHECK (o.status == RPC_OK && o.text[0] == '\0');
}

static void case_status (void)
{
    Nui__Test__V1__EchoRequest request = REQUEST;
    struct outcome o;

    request.text = (char *)"Fehler: 5 € zu wenig, 100 %\nzweite Zeile";
    for (uint32_t s = 1; s <= 16; s++) {
        request.status = s;
        call (&o, "Fail", &request, 0);
        CHECK (o.status == s);
        CHECK (strcmp (o.message, request.text) == 0);
    }
    request.text = (char *)"";
    call (&o, "Fail", &request, 0);
    CHECK (o.status == 16 && o.message[0] == '\0');
    call (&o, "Absent", &request, 0);
    CHECK (o.status == RPC_UNIMPLEMENTED);
}

static void case_stream (void)
{
    Nui__Test__V1__EchoRequest request = REQUEST;
    struct outcome o;

    request.count = 1000;
    request.bytes_each = 3000;
    call (&o, "Stream", &request, 0);
    CHECK (o.status == RPC_OK && o.messages == 1000);
    request.count = 0;
    call (&o, "Stream", &request, 0);
    CHECK (o.status == RPC_OK && o.messages == 0);
    request.count = 3; /* and then an error */
    request.status = RPC_ABORTED;
    request.text = (char *)"genug ✓";
    call (&o, "Stream", &request, 0);
    CHECK (o.status == RPC_ABORTED && o.messages == 3);
    CHECK (strcmp (o.message, "genug ✓") == 0);
}

static void case_big (void)
{
    Nui__Test__V1__EchoRequest request = REQUEST;
    struct outcome o;

    request.data.len = 3 << 20;
    request.data.data = calloc (1, 6 << 20);
    call (&o, "Big", &request, 0);
    CHECK (o.status == RPC_OK && o.data_len == 3 << 20);
    request.data.len = 6 << 20; /* over what the server takes */
    call (&o, "Big", &request, 0);
    CHECK (o.status == RPC_RESOURCE_EXHAUSTED);
    request.data.len = 100;
    call (&o, "Big", &request, 0);
    CHECK (o.status == RPC_OK && o.data_len == 100);
    free (request.data.data);
}

static void case_deadline (void)
{
    Nui__Test__V1__EchoRequest request = REQUEST;
    struct outcome o;

    request.delay_us = 5000000;
    call (&o, "Sleep", &request, 100000);
    CHECK (o.status == RPC_DEADLINE_EXCEEDED);
    request.delay_us = 1000;
    call (&o, "Sleep", &request, 5000000);
    CHECK (o.status == RPC_OK);
    call (&o, "Sleep", &request, INT64_MAX);
    CHECK (o.status == RPC_OK);
}

static void case_cancel (void)
{
    Nui__Test__V1__EchoRequest request = REQUEST;
    struct outcome o;

    request.delay_us = 5000000;
    for (int i = 0; i < 200; i++) {
        struct rpccallout *c = start (&o, "Sleep", &request, 0);
        event_base_loop (base, EVLOOP_NONBLOCK);
        rpccallout_cancel (c);
        finish (&o);
        CHECK (o.status == RPC_CANCELLED);
    }
    call (&o, "Echo", &request, 0);
    CHECK (o.status == RPC_OK);
}

static void case_many (void)
{
    enum { COUNT = 500 };
    static struct outcome o[COUNT];
    Nui__Test__V1__EchoRequest request = REQUEST;

    for (int i = 0; i < COUNT; i++)
        start (&o[i], "Echo", &request, 0);
    for (int i = 0; i < COUNT; i++) {
        finish (&o[i]);
        CHECK (o[i].status == RPC_OK);
    }
}

static const struct {
    const char *name;
    void (*run) (void);
} cases[] = {{"unary", case_unary}, {"status", case_status},     {"stream", case_stream},
             {"big", case_big},     {"deadline", case_deadline}, {"cancel", case_cancel},
             {"many", case_many}};

static void run_cases (void)
{
    for (size_t i = 0; i < sizeof (cases) / sizeof (cases[0]); i++) {
        unsigned before = bad;
        cases[i].run ();
        printf ("%s %s\n", bad == before ? "ok" : "FAILED", cases[i].name);
        fflush (stdout);
    }
}

struct load {
    unsigned started, done, failed, wanted;
};

static void load_next (struct load *load);

static void load_done (void *arg, const struct rpc_result *result)
{
    struct load *load = arg;

    load->done++;
    if (result->status != RPC_OK) {
        load->failed++;
        printf ("  %d %s\n", result->status, result->message);
    }
    if (load->done % 100 == 0) { /* tells the script how far we are */
        printf ("at %u\n", load->done);
        fflush (stdout);
    }
    if (load->started < load->wanted)
        load_next (load);
}

static void load_next (struct load *load)
{
    Nui__Test__V1__EchoRequest request = REQUEST;
    const struct rpccallout_config config = {.service = &nui__test__v1__echo__descriptor,
                                             .method = "Sleep",
                                             .request = &request.base,
                                             .done = load_done,
                                             .arg = load};

    request.delay_us = 10000;
    load->started++;
    rpcclient_start (client, &config);
}

static void run_load (unsigned wanted)
{
    struct load load = {.wanted = wanted};

    for (int i = 0; i < 16; i++)
        load_next (&load);
    while (load.done < wanted)
        event_base_loop (base, EVLOOP_ONCE);
    printf ("done=%u failed=%u\n", load.done, load.failed);
    bad += load.failed;
}

int main (int argc, char **argv)
{
    struct err err;

    if (argc < 4) {
        fprintf (stderr, "usage: interop_client DIR TARGET cases | load N\n");
        return 2;
    }
    base = event_base_new ();
    struct tlsid *id = testca_tlsid (argv[1], "ca", "alice", true);
    const struct rpcclient_config config = {.base = base,
                                            .id = id,
                                            .target = argv[2],
                                            .expect_kind = PRINCIPAL_SITE,
                                            .expect_name = "alpha"};
    client = rpcclient_create (&config, &err);
    if (!client) {
        fprintf (stderr, "interop_client: %s\n", err.text);
        return 1;
    }
    if (strcmp (argv[3], "load") == 0 && argc == 5)
        run_load ((unsigned)atoi (argv[4]));
    else
        run_cases ();
    rpcclient_destroy (client);
    tlsid_destroy (id);
    event_base_free (base);
    return bad > 0;
}
