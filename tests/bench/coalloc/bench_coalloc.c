/* Time from submit to all-committed over a running grid, as a user sees it.
 *
 *   bench_coalloc META CA CRL CERT KEY GRID ACCOUNT STATEDIR ROUNDS SITE[,SITE…]…
 *
 * For each list of sites: ROUNDS jobs with one component per site and a start an hour ahead (so that
 * nothing is launched); the clock runs from sending Submit until Watch shows the job RESERVED; the job
 * is then cancelled and its end awaited. Beside it, in the same run: one round trip of an RPC to the
 * same daemon (WhoAmI), and one durable write (4 KiB, fdatasync) in STATEDIR. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/base/clock.h"
#include "proto/nui/v1/meta.pb-c.h"
#include "proto/rpc/envelope.h"
#include "proto/rpc/rpcclient.h"

enum { SITES_MAX = 64, SAMPLES_MAX = 10000 };

#define CHECK(cond, text)                                                                          \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            fprintf (stderr, "bench_coalloc: %s\n", (text));                                       \
            exit (1);                                                                              \
        }                                                                                          \
    } while (0)

struct bench {
    struct event_base *base;
    struct tlsid *id;
    struct rpcclient *meta;
    const char *grid, *account;
    char uri[PRINCIPAL_URI_MAX];
};

static int compare (const void *pa, const void *pb)
{
    duration_us a = *(const duration_us *)pa, b = *(const duration_us *)pb;
    return a < b ? -1 : a > b;
}

static duration_us quantile (duration_us *sample, uint32_t count, uint32_t percent)
{
    qsort (sample, count, sizeof *sample, compare);
    return sample[(uint64_t)(count - 1) * percent / 100];
}

static duration_us round_trip (struct bench *b)
{
    static duration_us sample[200];
    for (uint32_t i = 0; i < 200; i++) {
        Nui__Meta__V1__WhoAmIRequest request = NUI__META__V1__WHO_AM_IREQUEST__INIT;
        ProtobufCMessage *reply = NULL;
        struct err err;
        duration_us begin = clock_monotonic_us ();
        int rc = rpcclient_call (b->meta, &nui__meta__v1__meta__descriptor, "WhoAmI", &request.base,
                                 5 * US_PER_S, true, &reply, &err);
        CHECK (rc == 0, err.text);
        sample[i] = clock_monotonic_us () - begin;
        protobuf_c_message_free_unpacked (reply, NULL);
    }
    return quantile (sample, 200, 50);
}

static duration_us durable_write (const char *dir)
{
    static duration_us sample[100];
    static char block[4096];
    char path[4096];
    snprintf (path, sizeof path, "%s/bench.XXXXXX", dir);
    int fd = mkstemp (path);
    CHECK (fd >= 0, "cannot write in STATEDIR");
    for (uint32_t i = 0; i < 100; i++) {
        duration_us begin = clock_monotonic_us ();
        CHECK (write (fd, block, sizeof block) == sizeof block && fdatasync (fd) == 0, "write");
        sample[i] = clock_monotonic_us () - begin;
    }
    close (fd);
    unlink (path);
    return quantile (sample, 100, 50);
}

static Nui__Common__V1__Envelope *envelope_make (struct bench *b, char **site, uint32_t count)
{
    static Nui__Common__V1__Component component[SITES_MAX];
    static Nui__Common__V1__Component *components[SITES_MAX];
    static char name[SITES_MAX][16];
    Nui__Common__V1__Req req = NUI__COMMON__V1__REQ__INIT;
    Nui__Common__V1__Req *reqs[1] = {&req};
    Nui__Common__V1__Job job = NUI__COMMON__V1__JOB__INIT;
    Nui__Common__V1__Envelope *envelope = NULL;
    char script[] = "#!/bin/sh\ntrue\n";
    struct uuid uuid;
    struct err err;
    uuid_make (&uuid);
    req.tasks = 1;
    job.grid = (char *)b->grid;
    job.submitter = b->uri;
    job.uuid = (ProtobufCBinaryData){sizeof uuid.b, uuid.b};
    job.created_us = clock_now_us ();
    job.expires_us = job.created_us + 3600 * US_PER_S;
    job.not_before_us = job.created_us + 3600 * US_PER_S;
    job.account = (char *)b->account;
    for (uint32_t i = 0; i < count; i++) {
        nui__common__v1__component__init (&component[i]);
        snprintf (name[i], sizeof name[i], "c%u", i);
        component[i].name = name[i];
        component[i].n_reqs = 1;
        component[i].reqs = reqs;
        component[i].n_sites = 1;
        component[i].sites = &site[i];
        component[i].walltime_us = 60 * US_PER_S;
        component[i].script = (ProtobufCBinaryData){sizeof script - 1, (uint8_t *)script};
        components[i] = &component[i];
    }
    job.n_components = count;
    job.components = components;
    size_t len = nui__common__v1__job__get_packed_size (&job);
    uint8_t *body = malloc (len);
    CHECK (body, "no memory");
    nui__common__v1__job__pack (&job, body);
    CHECK (envelope_sign (b->id, body, len, &envelope, &err) == 0, err.text);
    free (body);
    return envelope;
}

struct watching {
    struct bench *b;
    duration_us reserved_at;
    bool ended;
    char id[32];
    uint32_t attempts;
};

static void cancelled (void *arg, const struct rpc_result *result)
{
    (void)arg;
    CHECK (result->status == RPC_OK, result->message);
}

static void on_status (void *arg, const ProtobufCMessage *message)
{
    const Nui__Meta__V1__JobStatus *status = (const Nui__Meta__V1__JobStatus *)message;
    struct watching *w = arg;
    if (status->state == NUI__META__V1__GRID_JOB_STATE__GRID_REFUSED)
        CHECK (0, status->reason->text);
    if (status->state != NUI__META__V1__GRID_JOB_STATE__GRID_RESERVED || w->reserved_at)
        return;
    w->reserved_at = clock_monotonic_us ();
    w->attempts = status->attempts;
    Nui__Meta__V1__JobRequest request = NUI__META__V1__JOB_REQUEST__INIT;
    request.grid_job_id = w->id;
    struct rpccallout_config call = {.service = &nui__meta__v1__meta__descriptor,
                                     .method = "Cancel",
                                     .request = &request.base,
                                     .idempotent = true,
                                     .done = cancelled};
    rpcclient_start (w->b->meta, &call);
}

static duration_us one_job (struct bench *b, char **site, uint32_t count, uint32_t *retries)
{
    Nui__Meta__V1__SubmitRequest request = NUI__META__V1__SUBMIT_REQUEST__INIT;
    Nui__Meta__V1__JobRequest watch = NUI__META__V1__JOB_REQUEST__INIT;
    struct watching w = {.b = b};
    ProtobufCMessage *reply = NULL;
    struct err err;
    request.envelope = envelope_make (b, site, count);
    duration_us begin = clock_monotonic_us ();
    int rc = rpcclient_call (b->meta, &nui__meta__v1__meta__descriptor, "Submit", &request.base,
                             30 * US_PER_S, true, &reply, &err);
    CHECK (rc == 0, err.text);
    snprintf (w.id, sizeof w.id, "%s", ((Nui__Meta__V1__SubmitReply *)reply)->grid_job_id);
    protobuf_c_message_free_unpacked (reply, NULL);
    envelope_free (request.envelope);
    watch.grid_job_id = w.id;
    rc = rpcclient_stream (b->meta, &nui__meta__v1__meta__descriptor, "Watch", &watch.base,
                           120 * US_PER_S, on_status, &w, &err);
    CHECK (rc == 0, err.text);
    CHECK (w.reserved_at, "the job ended before it was reserved");
    *retries += w.attempts - 1;
    return w.reserved_at - begin;
}

static void run (struct bench *b, char *list, uint32_t rounds, const char *statedir)
{
    static duration_us sample[SAMPLES_MAX];
    char *site[SITES_MAX];
    uint32_t count = 0, retries = 0;
    for (char *at = strtok (list, ","); at && count < SITES_MAX; at = strtok (NULL, ","))
        site[count++] = at;
    one_job (b, site, count, &retries); /* connections, caches */
    retries = 0;
    duration_us rtt = round_trip (b);
    for (uint32_t i = 0; i < rounds; i++)
        sample[i] = one_job (b, site, count, &retries);
    duration_us disk = durable_write (statedir);
    duration_us p50 = quantile (sample, rounds, 50);
    duration_us p95 = quantile (sample, rounds, 95);
    double bound = 3.0 * (double)rtt + 2.0 * (double)disk;
    printf ("%5u %8.2f %8.2f %8.3f %9.3f %10.1f %11.1f %8u\n", count, (double)p50 / 1e3,
            (double)p95 / 1e3, (double)rtt / 1e3, (double)disk / 1e3, (double)p50 / (double)rtt,
            (double)p50 / bound, retries);
    fflush (stdout);
}

int main (int argc, char **argv)
{
    struct bench b = {0};
    struct err err = {0};
    CHECK (argc >= 11, "META CA CRL CERT KEY GRID ACCOUNT STATEDIR ROUNDS SITE[,SITE...]...");
    struct tlsid_config identity = {argv[2], argv[4], argv[5], argv[3]};
    b.grid = argv[6];
    b.account = argv[7];
    uint32_t rounds = (uint32_t)strtoul (argv[9], NULL, 10);
    CHECK (rounds > 0 && rounds <= SAMPLES_MAX, "ROUNDS: 1 to 10000");
    b.base = event_base_new ();
    b.id = tlsid_create (&identity, &err);
    CHECK (b.id, err.text);
    principal_uri (tlsid_self (b.id), b.uri);
    struct rpcclient_config config = {
        .base = b.base, .id = b.id, .target = argv[1], .expect_kind = PRINCIPAL_META};
    b.meta = rpcclient_create (&config, &err);
    CHECK (b.meta, err.text);
    printf ("submit to all-committed, %u jobs each; bound: 3 round trips + 2 durable writes\n",
            rounds);
    printf ("%5s %8s %8s %8s %9s %10s %11s %8s\n", "sites", "p50 ms", "p95 ms", "rtt ms",
            "write ms", "x rtt", "x bound", "retries");
    for (int i = 10; i < argc; i++)
        run (&b, argv[i], rounds, argv[8]);
    rpcclient_destroy (b.meta);
    tlsid_destroy (b.id);
    event_base_free (b.base);
    return 0;
}
