/* What one nui-meta can do: bench_meta [SITES [JOBS [MEMBERS [CALLS]]]]
 * (1000, 100000, 1, 64; CALLS: how many users wait for the answer to a Submit at a time).
 *
 * The real daemon as a process of its own; the sites and the bank are played here, one loop for all. They
 * remember nothing: every part is granted, every job accepted, and jobs wait at their sites for ever.
 *
 *   reports      each site sends its report (64 estimates, 16 windows) every 10 s, as nui-local does:
 *                nui-meta's CPU time per report, and as a share of a core for all sites
 *   co-reserved  jobs of two components at any two sites, from Submit until both are firm
 *   placed       jobs of one component at any site, from Submit until a site has them, until JOBS live
 *   array        one Submit of ARRAY jobs signed as one, held to one at a time, and its cancel: CPU time of each
 *                until it is answered
 *   restart      kill -9, then from exec until a call is answered and until a job can be placed again
 *
 * Sites answer what they have reported, one of ten something later: there it has become busy since.
 * With MEMBERS (3, 5 or 7) it leads a group of so many: the others keep what it does, and are not told of sites.
 *
 * Reports go on all the time. Both programs share the machine, so that rates are also given as CPU time
 * of nui-meta per job: what a core of its own would do. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/base/clock.h"
#include "proto/base/rng.h"
#include "proto/nui/v1/bank.pb-c.h"
#include "proto/nui/v1/local.pb-c.h"
#include "proto/nui/v1/meta.pb-c.h"
#include "proto/rpc/envelope.h"
#include "proto/job/handover.h"
#include "proto/rpc/rpcclient.h"
#include "proto/rpc/rpcserver.h"
#include "tests/interop/testca.h"

enum {
    MEMBERS_MAX = 7,
    SITES_MAX = 1000,
    CELLS = 64,
    WINDOWS = 16,
    REPORT_S = 10,
    PAIRS = 4000,
    STALE_PERCENT = 10,
    ARRAY = 10000,
    ARRAY_SCRIPT = 100 << 10
};

#define CHECK(cond, text)                                                                          \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            fprintf (stderr, "bench_meta: %s\n", (text));                                          \
            exit (1);                                                                              \
        }                                                                                          \
    } while (0)

struct site {
    struct bench *b;
    char name[16];
    struct tlsid *id;
    struct rpcserver *server;
    struct rpcclient *meta;
    struct event *timer;
    bool reporting;
    time_us soonest; /* of its last report */
};

struct bench {
    struct event_base *base;
    char *dir;
    struct testca *ca;
    struct tlsid *bank_id, *alice_id;
    struct rpcserver *bank;
    struct site *site;
    uint32_t sites;
    uint32_t members; /* metaschedulers that decide together; the first is asked and told */
    uint16_t port[MEMBERS_MAX];
    pid_t meta_pid, other_pid[MEMBERS_MAX];
    char target[64];
    struct rpcclient *alice;
    /* what was seen */
    uint64_t reports, serial, firm, placed, questions;
    struct rng rng;
    /* what is being submitted */
    bool array; /* the next is one */
    uint32_t components, to_send, in_flight, in_flight_max, refused;
};

/* --- the daemon ------------------------------------------------------------------------------- */

static double cpu_of (pid_t pid)
{
    char path[64], text[1024];
    unsigned long user = 0, system = 0;
    FILE *file;

    snprintf (path, sizeof path, "/proc/%d/stat", (int)pid);
    file = fopen (path, "r");
    CHECK (file && fgets (text, sizeof text, file), "nui-meta is gone: see meta.log");
    fclose (file);
    CHECK (sscanf (strrchr (text, ')') + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
                   &user, &system) == 2,
           "/proc/PID/stat reads oddly");
    return (double)(user + system) / (double)sysconf (_SC_CLK_TCK);
}

static double cpu_s (const struct bench *b)
{
    return cpu_of (b->meta_pid);
}

static double others_cpu_s (const struct bench *b)
{
    double sum = 0;

    for (uint32_t i = 1; i < b->members; i++)
        sum += cpu_of (b->other_pid[i]);
    return sum;
}

static double memory_mb (const struct bench *b)
{
    char path[64], line[256];
    unsigned long kb = 0;
    FILE *file;

    snprintf (path, sizeof path, "/proc/%d/status", (int)b->meta_pid);
    file = fopen (path, "r");
    while (file && fgets (line, sizeof line, file) && sscanf (line, "VmRSS: %lu", &kb) != 1)
        ;
    if (file)
        fclose (file);
    return (double)kb / 1024;
}

static void turn (struct bench *b)
{
    struct timeval tick = {0, 10000};

    event_base_loopexit (b->base, &tick);
    event_base_loop (b->base, EVLOOP_ONCE);
}

static bool port_known (struct bench *b)
{
    char path[512];
    unsigned port = 0;
    FILE *file;

    snprintf (path, sizeof path, "%s/meta.port", b->dir);
    file = fopen (path, "r");
    if (file == NULL)
        return false;
    if (fscanf (file, "%u", &port) != 1)
        port = 0;
    fclose (file);
    snprintf (b->target, sizeof b->target, "127.0.0.1:%u", port);
    return port > 0;
}

/* The first is "meta", as alone. */
static const char *member_name (uint32_t member, char name[16])
{
    snprintf (name, 16, member ? "meta%u" : "meta", member + 1);
    return name;
}

static void config_write (struct bench *b, uint32_t member)
{
    char path[512], name[16];
    FILE *file;

    member_name (member, name);
    snprintf (path, sizeof path, "%s/%s.cfg", b->dir, name);
    file = fopen (path, "w");
    CHECK (file, "cannot write the configuration");
    fprintf (file,
             "GRID demo\nLISTEN 127.0.0.1:%u\nPORTFILE %s.port\nPIDFILE %s.pidfile\n"
             "LOGFILE %s.log\nLOGLEVEL warn\nSTATEDIR %s-state\nCA ca.pem\nCRL ca.crl\n"
             "CERT %s.pem\nKEY %s.key\nBANK 127.0.0.1:%u\n",
             b->port[member], name, name, name, name, name, name, rpcserver_port (b->bank));
    for (uint32_t i = 0; i < b->sites; i++)
        fprintf (file, "SITECFG[%s] SERVER=127.0.0.1:%u\n", b->site[i].name,
                 rpcserver_port (b->site[i].server));
    for (uint32_t i = 0; b->members > 1 && i < b->members; i++)
        fprintf (file, "METACFG[%s] SERVER=127.0.0.1:%u\n", member_name (i, name), b->port[i]);
    CHECK (fclose (file) == 0, "cannot write the configuration");
}

static struct rpcclient *client (struct bench *b, struct tlsid *id)
{
    struct rpcclient_config config = {.base = b->base,
                                      .id = id,
                                      .target = b->target,
                                      .expect_kind = PRINCIPAL_META,
                                      .backoff_max = 200000};
    struct err err = {0};
    struct rpcclient *made = rpcclient_create (&config, &err);

    CHECK (made, err.text);
    return made;
}

static pid_t member_start (struct bench *b, uint32_t member)
{
    char config[512], name[16];

    snprintf (config, sizeof config, "%s/%s.cfg", b->dir, member_name (member, name));
    pid_t pid = fork ();
    CHECK (pid >= 0, "cannot fork");
    if (pid == 0) {
        prctl (PR_SET_PDEATHSIG, SIGKILL);
        execl (NUI_META_BIN, "nui-meta", "--config", config, "--foreground", (char *)NULL);
        _exit (127);
    }
    return pid;
}

/* Seconds from exec until it answers. */
static double meta_start (struct bench *b)
{
    char path[512];
    Nui__Meta__V1__WhoAmIRequest request = NUI__META__V1__WHO_AM_IREQUEST__INIT;
    struct err err = {0};
    time_us begin = clock_monotonic_us ();

    snprintf (path, sizeof path, "%s/meta.port", b->dir);
    unlink (path);
    b->meta_pid = member_start (b, 0);
    while (!port_known (b)) {
        CHECK (waitpid (b->meta_pid, NULL, WNOHANG) == 0, "nui-meta did not start: see meta.log");
        turn (b);
    }
    b->alice = client (b, b->alice_id);
    CHECK (rpcclient_call (b->alice, &nui__meta__v1__meta__descriptor, "WhoAmI", &request.base,
                           300 * US_PER_S, true, NULL, &err) == 0,
           err.text);
    return (double)(clock_monotonic_us () - begin) / 1e6;
}

static void meta_kill (struct bench *b)
{
    kill (b->meta_pid, SIGKILL);
    waitpid (b->meta_pid, NULL, 0);
    b->meta_pid = 0;
    rpcclient_destroy (b->alice);
    b->alice = NULL;
    for (uint32_t i = 0; i < b->sites; i++) {
        struct rpcclient *meta = b->site[i].meta;
        b->site[i].meta = NULL;
        evtimer_del (b->site[i].timer);
        rpcclient_destroy (meta);
    }
}

/* --- reports ---------------------------------------------------------------------------------- */

static void reported (void *arg, const struct rpc_result *result)
{
    struct site *site = arg;

    site->reporting = false;
    if (site->meta == NULL)
        return; /* it was killed */
    CHECK (result->status == RPC_OK, result->message);
    site->b->reports++;
}

static void report (evutil_socket_t fd, short what, void *arg)
{
    struct site *site = arg;
    struct timeval next = {REPORT_S, 0};
    Nui__Meta__V1__SiteReport r = NUI__META__V1__SITE_REPORT__INIT;
    Nui__Meta__V1__StartEstimate cell[CELLS], *cells[CELLS];
    Nui__Meta__V1__BackfillWindow window[WINDOWS], *windows[WINDOWS];
    char server[64];

    (void)fd;
    (void)what;
    evtimer_add (site->timer, &next);
    if (site->reporting)
        return;
    snprintf (server, sizeof server, "127.0.0.1:%u", rpcserver_port (site->server));
    r.site = site->name;
    r.server = server;
    r.now_us = clock_now_us ();
    r.nodes_total = r.nodes_up = 100;
    r.procs_total = r.procs_up = 1600;
    r.procs_free = 16;
    r.procs_per_node_max = 16;
    r.memory_per_node_max_mb = 64000;
    site->soonest = INT64_MAX;
    for (uint32_t i = 0; i < CELLS; i++) {
        nui__meta__v1__start_estimate__init (&cell[i]);
        cell[i].procs = 1u << (i % 8);
        cell[i].walltime_us = (600 << (i / 8)) * US_PER_S;
        cell[i].start_us = r.now_us + (int64_t)rng_below (&site->b->rng, 3600) * US_PER_S;
        cells[i] = &cell[i];
        if (cell[i].start_us < site->soonest)
            site->soonest = cell[i].start_us;
    }
    for (uint32_t i = 0; i < WINDOWS; i++) {
        nui__meta__v1__backfill_window__init (&window[i]);
        windows[i] = &window[i];
    }
    r.n_estimates = CELLS;
    r.estimates = cells;
    r.n_windows = WINDOWS;
    r.windows = windows;
    struct rpccallout_config call = {.service = &nui__meta__v1__meta__descriptor,
                                     .method = "Report",
                                     .request = &r.base,
                                     .timeout = 60 * US_PER_S,
                                     .idempotent = true,
                                     .done = reported,
                                     .arg = site};
    site->reporting = true;
    rpcclient_start (site->meta, &call);
}

/* Reports begin, spread over their interval, and each site has been heard. */
static void reports_begin (struct bench *b)
{
    uint64_t until = b->reports + b->sites;

    for (uint32_t i = 0; i < b->sites; i++) {
        b->site[i].meta = client (b, b->site[i].id);
        struct timeval at = {(time_t)(i * REPORT_S / b->sites), (suseconds_t)(i * 1000 % 1000000)};
        evtimer_add (b->site[i].timer, &at);
    }
    while (b->reports < until)
        turn (b);
}

/* --- what sites and the bank answer ------------------------------------------------------------ */

static void on_query (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    const Nui__Local__V1__QueryRequest *request = (const Nui__Local__V1__QueryRequest *)message;
    struct site *site = self;
    Nui__Local__V1__QueryReply reply = NUI__LOCAL__V1__QUERY_REPLY__INIT;
    Nui__Common__V1__Interval one = NUI__COMMON__V1__INTERVAL__INIT, *list[1] = {&one};

    one.begin_us =
        site->soonest > request->window_begin_us ? site->soonest : request->window_begin_us;
    if (rng_below (&site->b->rng, 100) < STALE_PERCENT)
        one.begin_us += (int64_t)rng_below (&site->b->rng, 600) * US_PER_S;
    site->b->questions++;
    one.end_us = request->window_end_us;
    reply.feasible = true;
    reply.n_start_intervals = 1;
    reply.start_intervals = list;
    reply.start_estimate_us = one.begin_us;
    reply.procs = reply.nodes = 1;
    reply.now_us = clock_now_us ();
    rpccall_reply (call, &reply.base);
}

static void on_prepare (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    const Nui__Local__V1__PrepareRequest *request = (const Nui__Local__V1__PrepareRequest *)message;
    struct site *site = self;
    Nui__Local__V1__PrepareReply reply = NUI__LOCAL__V1__PREPARE_REPLY__INIT;
    Nui__Common__V1__Peer peer = NUI__COMMON__V1__PEER__INIT;
    char *hosts[1] = {(char *)"127.0.0.1"}, id[64];

    snprintf (id, sizeof id, "%s.%llu", site->name, (unsigned long long)++site->b->serial);
    peer.component = request->part->component;
    peer.site = site->name;
    peer.n_hosts = 1;
    peer.hosts = hosts;
    peer.port = 7000;
    reply.granted = true;
    reply.site_job_id = id;
    reply.peer = &peer;
    reply.account = (char *)"proj";
    reply.amount_micro = 1000000;
    reply.lease_left_us = 30 * US_PER_S;
    reply.procs = 1;
    rpccall_reply (call, &reply.base);
}

static void on_commit (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    struct site *site = self;
    Nui__Local__V1__CommitReply reply = NUI__LOCAL__V1__COMMIT_REPLY__INIT;

    (void)message;
    site->b->firm++;
    reply.outcome = NUI__LOCAL__V1__COMMIT_REPLY__OUTCOME__FIRM;
    reply.reservation_id = (char *)"r.1";
    rpccall_reply (call, &reply.base);
}

static void on_accept (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    struct site *site = self;
    Nui__Local__V1__SubmitReply reply = NUI__LOCAL__V1__SUBMIT_REPLY__INIT;
    char id[64];

    (void)message;
    snprintf (id, sizeof id, "%s.%llu", site->name, (unsigned long long)++site->b->serial);
    site->b->placed++;
    reply.accepted = true;
    reply.site_job_id = id;
    reply.start_estimate_us = clock_now_us () + 3600 * US_PER_S;
    rpccall_reply (call, &reply.base);
}

static void on_quote (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    const Nui__Bank__V1__QuoteRequest *request = (const Nui__Bank__V1__QuoteRequest *)message;
    Nui__Bank__V1__QuoteReply reply = NUI__BANK__V1__QUOTE_REPLY__INIT;
    Nui__Bank__V1__Price *price = calloc (request->n_items + 1, sizeof *price);
    Nui__Bank__V1__Price **list = calloc (request->n_items + 1, sizeof *list);

    (void)self;
    CHECK (price && list, "no memory");
    for (size_t i = 0; i < request->n_items; i++) {
        nui__bank__v1__price__init (&price[i]);
        price[i].amount_micro = 1000000;
        price[i].funded = true;
        price[i].account = (char *)"proj";
        list[i] = &price[i];
    }
    reply.n_prices = request->n_items;
    reply.prices = list;
    reply.total_micro = (int64_t)request->n_items * 1000000;
    reply.funded = true;
    reply.account = (char *)"proj";
    rpccall_reply (call, &reply.base);
    free (price);
    free (list);
}

#define META RPC_ALLOW (PRINCIPAL_META)
static const struct rpc_method site_methods[] = {
    {.name = "Query", .allow = META, .request_bytes_max = 1 << 20, .handler = on_query},
    {.name = "Prepare", .allow = META, .request_bytes_max = 1 << 20, .handler = on_prepare},
    {.name = "Commit", .allow = META, .handler = on_commit},
    {.name = "Submit", .allow = META, .request_bytes_max = 1 << 20, .handler = on_accept},
    {.name = NULL},
};
/* No hold is made here: any key will do. */
static void on_handover_key (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    Nui__Bank__V1__HandoverKeyReply reply = NUI__BANK__V1__HANDOVER_KEY_REPLY__INIT;
    Nui__Bank__V1__HandoverKey item = NUI__BANK__V1__HANDOVER_KEY__INIT, *items[] = {&item};
    uint8_t secret[HANDOVER_KEY_BYTES] = {0};
    (void)self;
    (void)message;
    item.key = handover_number (clock_now_us ());
    item.secret = (ProtobufCBinaryData){sizeof secret, secret};
    reply.keys = items;
    reply.n_keys = 1;
    rpccall_reply (call, &reply.base);
}

static const struct rpc_method bank_methods[] = {
    {.name = "HandoverKey", .allow = META, .handler = on_handover_key},
    {.name = "Quote", .allow = META, .request_bytes_max = 1 << 20, .handler = on_quote},
    {.name = NULL},
};

/* --- the grid ----------------------------------------------------------------------------------- */

static struct rpcserver *serve (struct bench *b, struct tlsid *id,
                                const ProtobufCServiceDescriptor *service,
                                const struct rpc_method *methods, void *self)
{
    struct rpcserver_config config = {.base = b->base, .id = id, .listen = "127.0.0.1:0"};
    struct err err = {0};
    struct rpcserver *server = rpcserver_create (&config, &err);

    CHECK (server && rpcserver_add_service (server, service, methods, self, &err) == 0, err.text);
    return server;
}

static uint16_t free_port (void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl (INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int fd = socket (AF_INET, SOCK_STREAM, 0);

    CHECK (fd >= 0 && bind (fd, (struct sockaddr *)&at, len) == 0 &&
               getsockname (fd, (struct sockaddr *)&at, &len) == 0,
           "no free port");
    close (fd);
    return ntohs (at.sin_port);
}

static void grid_make (struct bench *b)
{
    struct rlimit files = {0};

    /* A socket for each site to listen on, and two connections with each. */
    CHECK (getrlimit (RLIMIT_NOFILE, &files) == 0 && files.rlim_max >= 4 * b->sites + 100,
           "too few files may be open (ulimit -Hn)");
    b->base = event_base_new ();
    b->dir = testca_dir ();
    b->ca = testca_create (b->dir, "ca");
    rng_seed (&b->rng, 1, 0);
    testca_write_crl (b->ca, -86400, 7 * 86400);
    b->alice_id = testca_identity (b->ca, "demo", "user", "alice");
    b->bank_id = testca_identity (b->ca, "demo", "bank", "bank");
    for (uint32_t i = 0; i < b->members; i++) {
        char name[16];
        tlsid_destroy (testca_identity (b->ca, "demo", "meta", member_name (i, name)));
        b->port[i] = b->members > 1 ? free_port () : 0; /* the others have to know it */
    }
    b->bank = serve (b, b->bank_id, &nui__bank__v1__bank__descriptor, bank_methods, b);
    b->site = calloc (b->sites, sizeof *b->site);
    CHECK (b->site, "no memory");
    for (uint32_t i = 0; i < b->sites; i++) {
        struct site *site = &b->site[i];
        site->b = b;
        snprintf (site->name, sizeof site->name, "s%03u", i);
        site->id = testca_identity (b->ca, "demo", "site", site->name);
        site->server = serve (b, site->id, &nui__local__v1__local__descriptor, site_methods, site);
        site->timer = evtimer_new (b->base, report, site);
    }
    for (uint32_t i = 0; i < b->members; i++)
        config_write (b, i);
    for (uint32_t i = 1; i < b->members; i++)
        b->other_pid[i] = member_start (b, i);
}

static void grid_free (struct bench *b)
{
    static const char *const state[] = {"meta.sqlite", "meta.sqlite-wal", "meta.sqlite-shm", ""};
    char path[512], name[16];

    meta_kill (b);
    for (uint32_t i = 0; i < b->sites; i++) {
        event_free (b->site[i].timer);
        rpcserver_destroy (b->site[i].server);
        tlsid_destroy (b->site[i].id);
    }
    rpcserver_destroy (b->bank);
    tlsid_destroy (b->bank_id);
    tlsid_destroy (b->alice_id);
    testca_destroy (b->ca);
    for (uint32_t m = 0; m < b->members; m++) {
        if (m > 0) {
            kill (b->other_pid[m], SIGKILL);
            waitpid (b->other_pid[m], NULL, 0);
        }
        for (size_t i = 0; i < sizeof state / sizeof *state; i++) {
            snprintf (path, sizeof path, "%s/%s-state/%s", b->dir, member_name (m, name), state[i]);
            remove (path);
        }
    }
    testca_remove (b->dir);
    event_base_free (b->base);
    free (b->site);
}

/* --- jobs --------------------------------------------------------------------------------------- */

static Nui__Common__V1__Envelope *envelope (struct bench *b)
{
    static char *name[2] = {(char *)"a", (char *)"b"};
    Nui__Common__V1__Job job = NUI__COMMON__V1__JOB__INIT;
    Nui__Common__V1__Component component[2], *components[2];
    Nui__Common__V1__Req req = NUI__COMMON__V1__REQ__INIT, *reqs[1] = {&req};
    Nui__Common__V1__Envelope *made = NULL;
    struct uuid uuid;
    struct err err = {0};
    static uint8_t body[ARRAY_SCRIPT + 2048];
    static uint8_t script[ARRAY_SCRIPT];
    size_t len;

    uuid_make (&uuid);
    req.tasks = 1;
    job.grid = (char *)"demo";
    job.submitter = (char *)"nui://demo/user/alice";
    job.uuid = (ProtobufCBinaryData){sizeof uuid.b, uuid.b};
    job.created_us = clock_now_us ();
    job.expires_us = job.created_us + 86400 * US_PER_S;
    job.not_before_us = b->components > 1 ? job.created_us + 7200 * US_PER_S : 0;
    job.account = (char *)"proj";
    for (uint32_t i = 0; i < b->components; i++) {
        nui__common__v1__component__init (&component[i]);
        component[i].name = name[i];
        component[i].n_reqs = 1;
        component[i].reqs = reqs;
        component[i].walltime_us = 600 * US_PER_S;
        component[i].script = (ProtobufCBinaryData){15, (uint8_t *)"#!/bin/sh\ntrue\n"};
        components[i] = &component[i];
    }
    job.n_components = b->components;
    job.components = components;
    Nui__Common__V1__IndexRange range = NUI__COMMON__V1__INDEX_RANGE__INIT, *ranges[1] = {&range};
    range.from = range.step = 1;
    range.to = ARRAY;
    if (b->array) {
        job.n_indexes = 1;
        job.indexes = ranges;
        job.array_limit = 1;
        memset (script, '\n', sizeof script);
        memcpy (script, "#!/bin/sh\ntrue\n", 15);
        component[0].script = (ProtobufCBinaryData){sizeof script, script};
    }
    len = nui__common__v1__job__get_packed_size (&job);
    CHECK (len <= sizeof body, "the job is too large");
    nui__common__v1__job__pack (&job, body);
    CHECK (envelope_sign (b->alice_id, body, len, &made, &err) == 0, err.text);
    return made;
}

static void submit_more (struct bench *b);

static void submitted (void *arg, const struct rpc_result *result)
{
    struct bench *b = arg;

    if (b->refused++ == 0 && result->status != RPC_OK)
        fprintf (stderr, "bench_meta: %s\n", result->message);
    b->refused -= result->status == RPC_OK;
    b->in_flight--;
    submit_more (b);
}

static void submit_more (struct bench *b)
{
    while (b->to_send > 0 && b->in_flight < b->in_flight_max) {
        Nui__Meta__V1__SubmitRequest request = NUI__META__V1__SUBMIT_REQUEST__INIT;
        struct rpccallout_config call = {.service = &nui__meta__v1__meta__descriptor,
                                         .method = "Submit",
                                         .request = &request.base,
                                         .timeout = 60 * US_PER_S,
                                         .idempotent = true,
                                         .done = submitted,
                                         .arg = b};
        request.envelope = envelope (b);
        b->to_send--;
        b->in_flight++;
        rpcclient_start (b->alice, &call);
        envelope_free (request.envelope);
    }
}

/* So many jobs, until `seen` has grown by `each` per job. */
static void jobs_run (struct bench *b, const char *what, uint32_t components, uint32_t count,
                      const uint64_t *seen, uint32_t each, double floor)
{
    uint64_t until = *seen + (uint64_t)count * each, questions = b->questions;
    double begin_cpu = cpu_s (b), begin_others = others_cpu_s (b), wall, cpu;
    time_us begin = clock_monotonic_us (), told = begin;

    b->components = components;
    b->to_send = count;
    submit_more (b);
    while (*seen < until) {
        turn (b);
        CHECK (b->refused == 0, "a job was refused");
        if (clock_monotonic_us () - told < 10 * US_PER_S)
            continue;
        told = clock_monotonic_us ();
        fprintf (stderr, "  %s: %llu to go\n", what, (unsigned long long)((until - *seen) / each));
    }
    wall = (double)(clock_monotonic_us () - begin) / 1e6;
    cpu = cpu_s (b) - begin_cpu;
    printf (
        "%-12s %9u %10.0f /s %8.0f us CPU each: %6.0f /s on a core (floor %.0f, ratio %.2f), %.1f questions\n",
        what, count, count / wall, cpu / count * 1e6, count / cpu, floor, count / wall / floor,
        (double)(b->questions - questions) / count);
    if (b->members > 1)
        printf ("%-12s %9u %13s %8.0f us CPU each, together\n", "  the others", b->members - 1, "",
                (others_cpu_s (b) - begin_others) / count * 1e6);
    fflush (stdout);
}

/* Its CPU time until the answer is there, and how long that took. */
static void *array_call (struct bench *b, const char *method, const ProtobufCMessage *request)
{
    ProtobufCMessage *reply = NULL;
    struct err err = {0};
    double begin_cpu = cpu_s (b);
    time_us begin = clock_monotonic_us ();

    CHECK (rpcclient_call (b->alice, &nui__meta__v1__meta__descriptor, method, request,
                           300 * US_PER_S, true, &reply, &err) == 0,
           err.text);
    printf ("array %-6s %9u %10.2f s     %8.2f s CPU (bound 1 of CPU, ratio %.2f)\n", method, ARRAY,
            (double)(clock_monotonic_us () - begin) / 1e6, cpu_s (b) - begin_cpu,
            1 / (cpu_s (b) - begin_cpu + 1e-9));
    fflush (stdout);
    return reply;
}

static void array_run (struct bench *b)
{
    Nui__Meta__V1__SubmitRequest submit = NUI__META__V1__SUBMIT_REQUEST__INIT;
    Nui__Meta__V1__JobRequest cancel = NUI__META__V1__JOB_REQUEST__INIT;

    b->components = 1;
    b->array = true;
    submit.envelope = envelope (b);
    b->array = false;
    double before = memory_mb (b);
    Nui__Meta__V1__SubmitReply *id = array_call (b, "Submit", &submit.base);
    envelope_free (submit.envelope);
    printf ("array %-6s %9u %10.0f MB more, for a script of %d kB\n", "memory", ARRAY,
            memory_mb (b) - before, ARRAY_SCRIPT >> 10);
    cancel.grid_job_id = id->grid_job_id;
    Nui__Meta__V1__CancelReply *done = array_call (b, "Cancel", &cancel.base);
    CHECK (done->count >= ARRAY - 1, "not all of the array were cancelled");
    nui__meta__v1__submit_reply__free_unpacked (id, NULL);
    nui__meta__v1__cancel_reply__free_unpacked (done, NULL);
}

static void reports_run (struct bench *b, uint32_t seconds)
{
    double begin_cpu = cpu_s (b), cpu, wall;
    uint64_t before = b->reports;
    time_us begin = clock_monotonic_us ();

    while (clock_monotonic_us () - begin < (duration_us)seconds * US_PER_S)
        turn (b);
    cpu = cpu_s (b) - begin_cpu;
    wall = (double)(clock_monotonic_us () - begin) / 1e6;
    printf ("%-12s %9u %10.0f /s %8.0f us CPU each: %6.2f %% of a core (bound 10, ratio %.2f)\n",
            "reports", b->sites, (double)(b->reports - before) / wall,
            cpu / (double)(b->reports - before) * 1e6, cpu / wall * 100, .1 * wall / cpu);
    fflush (stdout);
}

int main (int argc, char **argv)
{
    struct bench b = {.sites = argc > 1 ? (uint32_t)strtoul (argv[1], NULL, 10) : 1000};
    uint32_t jobs = argc > 2 ? (uint32_t)strtoul (argv[2], NULL, 10) : 100000;
    double seconds;

    b.members = argc > 3 ? (uint32_t)strtoul (argv[3], NULL, 10) : 1;
    b.in_flight_max = argc > 4 ? (uint32_t)strtoul (argv[4], NULL, 10) : 64;
    CHECK (b.sites >= 2 && b.sites <= SITES_MAX && jobs >= 1000 && b.members % 2 == 1 &&
               b.members <= MEMBERS_MAX && b.in_flight_max >= 1,
           "bench_meta [SITES [JOBS [MEMBERS [CALLS]]]]");
    signal (SIGPIPE, SIG_IGN);
    grid_make (&b);
    meta_start (&b);
    reports_begin (&b);
    printf ("nui-meta between %u played sites, %u calls in flight\n", b.sites, b.in_flight_max);
    reports_run (&b, 2 * REPORT_S);
    array_run (&b);
    jobs_run (&b, "co-reserved", 2, PAIRS < jobs / 4 ? PAIRS : jobs / 4, &b.firm, 2, 200);
    jobs_run (&b, "placed", 1, jobs / 10, &b.placed, 1, 2000);
    jobs_run (&b, "… all live", 1, jobs - jobs / 10, &b.placed, 1, 2000);
    printf ("%-12s %9.0f MB\n", "memory", memory_mb (&b));
    reports_run (&b, 2 * REPORT_S);
    if (b.members > 1) { /* killed, it would be taken over from */
        grid_free (&b);
        return 0;
    }
    meta_kill (&b);
    seconds = meta_start (&b);
    printf ("%-12s %9.2f s until it answers (bound 10)\n", "restart", seconds);
    reports_begin (&b);
    jobs_run (&b, "placed", 1, jobs / 100, &b.placed, 1, 2000);
    grid_free (&b);
    return 0;
}
