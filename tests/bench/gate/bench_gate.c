/* Submit and Status by REST through a real nui-gate and by gRPC at a real nui-meta, by turns, on connections that stay, one at
 * a time and, of Status, FLIGHT at a time: prints what each costs in CPU time, of the caller and of all daemons together, and the ratio. The script `run`
 * makes the grid.
 *
 *     bench_gate META:PORT GATE_PORT TOKEN CA CERT KEY COUNT PID... */
#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "proto/base/clock.h"
#include "proto/base/strbuf.h"
#include "proto/nui/v1/meta.pb-c.h"
#include "proto/rpc/envelope.h"
#include "proto/rpc/rpcclient.h"

enum { ROUNDS = 7, FLIGHT = 64, ANSWER_MAX = 1 << 20 };

struct bench {
    struct event_base *base;
    struct tlsid *me;
    struct rpcclient *meta;
    int gate, many[FLIGHT];
    unsigned open; /* calls in flight */
    const char *token;
    char **pid;
    int pids;
    char job[64];
    char answer[ANSWER_MAX];
};

static void die (const char *what, const char *why)
{
    fprintf (stderr, "bench_gate: %s: %s\n", what, why);
    exit (1);
}

/* ---- CPU */

/* Nanoseconds that a process has computed. */
static int64_t cpu_of (const char *pid)
{
    char path[64];
    int64_t ns = -1;
    snprintf (path, sizeof path, "/proc/%s/schedstat", pid);
    FILE *file = fopen (path, "r");
    if (!file || fscanf (file, "%" SCNd64, &ns) != 1)
        die (path, "cannot be read");
    fclose (file);
    return ns;
}

static int64_t cpu_all (const struct bench *b)
{
    struct timespec mine;
    clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &mine);
    int64_t sum = mine.tv_sec * INT64_C (1000000000) + mine.tv_nsec;
    for (int i = 0; i < b->pids; i++)
        sum += cpu_of (b->pid[i]);
    return sum;
}

/* ---- a job that waits */

static Nui__Common__V1__Envelope *job_sign (struct bench *b)
{
    Nui__Common__V1__Job job = NUI__COMMON__V1__JOB__INIT;
    Nui__Common__V1__Component part = NUI__COMMON__V1__COMPONENT__INIT, *parts[] = {&part};
    Nui__Common__V1__Req req = NUI__COMMON__V1__REQ__INIT, *reqs[] = {&req};
    Nui__Common__V1__Envelope *envelope = NULL;
    char uri[PRINCIPAL_URI_MAX], script[] = "#!/bin/sh\n";
    uint8_t uuid[16], body[2048];
    struct err err;
    random_bytes (uuid, sizeof uuid);
    req.tasks = 1;
    part.name = (char *)"main";
    part.walltime_us = 60 * US_PER_S;
    part.script = (ProtobufCBinaryData){sizeof script - 1, (uint8_t *)script};
    part.n_reqs = 1;
    part.reqs = reqs;
    job.grid = (char *)(uintptr_t)tlsid_self (b->me)->grid;
    job.submitter = principal_uri (tlsid_self (b->me), uri);
    job.uuid = (ProtobufCBinaryData){sizeof uuid, uuid};
    job.created_us = clock_now_us ();
    job.expires_us = job.created_us + 86400 * US_PER_S;
    job.account = (char *)"phys";
    job.cost_max_micro = 100000000;
    job.held = true;
    job.n_components = 1;
    job.components = parts;
    size_t len = nui__common__v1__job__pack (&job, body);
    if (envelope_sign (b->me, body, len, &envelope, &err) < 0)
        die ("signing", err.text);
    return envelope;
}

/* ---- by gRPC */

static void grpc_submit (struct bench *b)
{
    Nui__Meta__V1__SubmitRequest request = NUI__META__V1__SUBMIT_REQUEST__INIT;
    ProtobufCMessage *reply = NULL;
    struct err err = {0};
    request.envelope = job_sign (b);
    if (rpcclient_call (b->meta, &nui__meta__v1__meta__descriptor, "Submit", &request.base, 0, true,
                        &reply, &err) < 0)
        die ("Submit", err.text);
    snprintf (b->job, sizeof b->job, "%s", ((Nui__Meta__V1__SubmitReply *)reply)->grid_job_id);
    protobuf_c_message_free_unpacked (reply, NULL);
    envelope_free (request.envelope);
}

static void grpc_status (struct bench *b)
{
    Nui__Meta__V1__JobRequest request = NUI__META__V1__JOB_REQUEST__INIT;
    ProtobufCMessage *reply = NULL;
    struct err err = {0};
    request.grid_job_id = b->job;
    if (rpcclient_call (b->meta, &nui__meta__v1__meta__descriptor, "Status", &request.base, 0, true,
                        &reply, &err) < 0)
        die ("Status", err.text);
    protobuf_c_message_free_unpacked (reply, NULL);
}

static void one_done (void *arg, const struct rpc_result *result)
{
    struct bench *b = arg;
    if (result->status != RPC_OK)
        die ("Status", result->message);
    b->open--;
}

static void grpc_many (struct bench *b)
{
    Nui__Meta__V1__JobRequest request = NUI__META__V1__JOB_REQUEST__INIT;
    request.grid_job_id = b->job;
    const struct rpccallout_config config = {.service = &nui__meta__v1__meta__descriptor,
                                             .method = "Status",
                                             .request = &request.base,
                                             .done = one_done,
                                             .arg = b};
    for (b->open = 0; b->open < FLIGHT; b->open++)
        rpcclient_start (b->meta, &config);
    while (b->open)
        event_base_loop (b->base, EVLOOP_ONCE);
}

/* ---- by REST */

static void rest_send (struct bench *b, int fd, const char *verb, const char *path,
                       const char *body)
{
    struct strbuf out = STRBUF_INIT;
    strbuf_printf (&out, "%s %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n", verb, path,
                   b->token);
    strbuf_printf (&out, "Content-Length: %zu\r\n\r\n%s", strlen (body), body);
    if (send (fd, out.data, out.len, 0) != (ssize_t)out.len)
        die ("the gate", "cannot be written to");
    strbuf_free (&out);
}

static void rest_take (struct bench *b, int fd, const char *wanted)
{
    size_t have = 0;
    for (;;) {
        ssize_t n = recv (fd, b->answer + have, sizeof b->answer - 1 - have, 0);
        if (n <= 0)
            die ("the gate", "closed the connection");
        have += (size_t)n;
        b->answer[have] = '\0';
        const char *end = strstr (b->answer, "\r\n\r\n");
        const char *length = strstr (b->answer, "Content-Length: ");
        if (end && length &&
            have >= (size_t)(end + 4 - b->answer) + strtoul (length + 16, NULL, 10))
            break;
    }
    if (strncmp (b->answer, wanted, strlen (wanted)) != 0)
        die ("the gate", b->answer);
}

static void base64_put (struct strbuf *out, const ProtobufCBinaryData *bytes)
{
    char text[8192];
    if (bytes->len * 4 / 3 + 8 > sizeof text)
        die ("the envelope", "is too large");
    EVP_EncodeBlock ((unsigned char *)text, bytes->data, (int)bytes->len);
    strbuf_printf (out, "\"%s\"", text);
}

static void rest_submit (struct bench *b)
{
    Nui__Common__V1__Envelope *envelope = job_sign (b);
    struct strbuf body = STRBUF_INIT;
    strbuf_puts (&body, "{\"envelope\":{\"body\":");
    base64_put (&body, &envelope->body);
    strbuf_puts (&body, ",\"signature\":");
    base64_put (&body, &envelope->signature);
    strbuf_puts (&body, ",\"chain\":[");
    for (size_t i = 0; i < envelope->n_chain; i++) {
        if (i)
            strbuf_putc (&body, ',');
        base64_put (&body, &envelope->chain[i]);
    }
    strbuf_puts (&body, "]}}");
    rest_send (b, b->gate, "POST", "/api/v1/nui/jobs", body.data);
    rest_take (b, b->gate, "HTTP/1.1 201");
    strbuf_free (&body);
    envelope_free (envelope);
}

static void rest_status (struct bench *b)
{
    char path[128];
    snprintf (path, sizeof path, "/api/v1/compute/status/grid/%s", b->job);
    rest_send (b, b->gate, "GET", path, "");
    rest_take (b, b->gate, "HTTP/1.1 200");
}

static void rest_many (struct bench *b)
{
    char path[128];
    snprintf (path, sizeof path, "/api/v1/compute/status/grid/%s", b->job);
    for (int i = 0; i < FLIGHT; i++)
        rest_send (b, b->many[i], "GET", path, "");
    for (int i = 0; i < FLIGHT; i++)
        rest_take (b, b->many[i], "HTTP/1.1 200");
}

/* ---- */

static double cost_us (struct bench *b, void (*call) (struct bench *b), int count)
{
    int64_t before = cpu_all (b);
    for (int i = 0; i < count; i++)
        call (b);
    return (double)(cpu_all (b) - before) / 1000.0 / count;
}

static int compare (const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void versus (struct bench *b, const char *name, void (*grpc) (struct bench *b),
                    void (*other) (struct bench *b), int count)
{
    double g[ROUNDS], r[ROUNDS], ratio[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        g[i] = cost_us (b, grpc, count);
        r[i] = cost_us (b, other, count);
        ratio[i] = r[i] / g[i];
    }
    qsort (g, ROUNDS, sizeof *g, compare);
    qsort (r, ROUNDS, sizeof *r, compare);
    qsort (ratio, ROUNDS, sizeof *ratio, compare);
    printf ("%-10s gRPC %7.0f us CPU   REST %7.0f us CPU   ratio %.2f (%.2f to %.2f)\n", name,
            g[ROUNDS / 2], r[ROUNDS / 2], ratio[ROUNDS / 2], ratio[0], ratio[ROUNDS - 1]);
}

static int gate_connect (const char *port)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons ((uint16_t)atoi (port)),
                             .sin_addr.s_addr = htonl (INADDR_LOOPBACK)};
    int fd = socket (AF_INET, SOCK_STREAM, 0), on = 1;
    if (fd < 0 || connect (fd, (struct sockaddr *)&at, sizeof at) < 0)
        die ("the gate", "cannot be reached");
    setsockopt (fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

int main (int argc, char **argv)
{
    static struct bench b;
    struct err err = {0};
    if (argc < 9)
        die ("usage", "META:PORT GATE_PORT TOKEN CA CERT KEY COUNT PID...");
    const struct tlsid_config files = {
        .ca_file = argv[4], .cert_file = argv[5], .key_file = argv[6]};
    b.base = event_base_new ();
    b.me = tlsid_create (&files, &err);
    if (!b.me)
        die ("certificate", err.text);
    const struct rpcclient_config config = {
        .base = b.base, .id = b.me, .target = argv[1], .expect_kind = PRINCIPAL_META};
    b.meta = rpcclient_create (&config, &err);
    if (!b.meta)
        die ("metascheduler", err.text);
    b.gate = gate_connect (argv[2]);
    b.token = argv[3];
    b.pid = argv + 8;
    b.pids = argc - 8;
    int count = atoi (argv[7]);
    grpc_submit (&b);
    grpc_status (&b);
    rest_status (&b);
    for (int i = 0; i < FLIGHT; i++)
        b.many[i] = gate_connect (argv[2]);
    versus (&b, "Status", grpc_status, rest_status, 10 * count);
    versus (&b, "Status, 64", grpc_many, rest_many, count);
    versus (&b, "Submit", grpc_submit, rest_submit, count);
    close (b.gate);
    rpcclient_destroy (b.meta);
    tlsid_destroy (b.me);
    event_base_free (b.base);
    return 0;
}
