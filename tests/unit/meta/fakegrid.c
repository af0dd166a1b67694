/* The grid of fakegrid.h: nui-meta as a process, the played bank, and a user's calls. Its sites are in fakesite.c. */
#include "tests/unit/meta/fakegrid.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bank/core/ledger.h"
#include "proto/base/clock.h"
#include "meta/place/survey.h"
#include "proto/rpc/envelope.h"
#include "proto/job/handover.h"
#include "tests/interop/testca.h"

/* ---- the fake bank */

static void quote_note (struct fakegrid *grid, const Nui__Bank__V1__QuoteRequest *request)
{
    size_t len = strlen (grid->quoted), cap = sizeof grid->quoted;
    if (request->all_of)
        len += (size_t)snprintf (grid->quoted + len, cap - len, "all ");
    for (size_t i = 0; i < request->n_items; i++) {
        const Nui__Bank__V1__PriceItem *item = request->items[i];
        if (len < cap - 100)
            len += (size_t)snprintf (grid->quoted + len, cap - len, "%s%s:%u%s%s", i ? " " : "",
                                     item->site, (unsigned)item->procs, *item->machine ? "@" : "",
                                     item->machine);
    }
    snprintf (grid->quoted + len, cap - len, ";");
}

static_assert ((int)SURVEY_QUOTE_ITEMS_MAX <= (int)LEDGER_QUOTE_ITEMS_MAX,
               "the bank prices what it is asked");

static const struct fakesite *quoted_site (const struct fakegrid *grid, const char *name)
{
    for (uint32_t s = 0; s < grid->sites; s++)
        if (strcmp (name, grid->site[s].name) == 0)
            return &grid->site[s];
    fail_msg ("there is no site %s", name);
    return NULL;
}

static void on_quote (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    struct fakegrid *grid = self;
    const Nui__Bank__V1__QuoteRequest *request = (const Nui__Bank__V1__QuoteRequest *)message;
    Nui__Bank__V1__QuoteReply reply = NUI__BANK__V1__QUOTE_REPLY__INIT;
    Nui__Bank__V1__Price price[LEDGER_QUOTE_ITEMS_MAX];
    Nui__Bank__V1__Price *prices[LEDGER_QUOTE_ITEMS_MAX];
    Nui__Bank__V1__FundingCandidate candidate = NUI__BANK__V1__FUNDING_CANDIDATE__INIT;
    Nui__Bank__V1__FundingCandidate *candidates[1] = {&candidate};
    Nui__Common__V1__Reason reason = NUI__COMMON__V1__REASON__INIT;
    char why[64];
    grid->calls_quote++;
    quote_note (grid, request);
    if (grid->bank_mute) {
        rpccall_finish (call, RPC_UNAVAILABLE, "mute");
        return;
    }
    assert_true (request->n_items > 0 && request->n_items <= LEDGER_QUOTE_ITEMS_MAX);
    reply.funded = grid->bank_funded;
    for (size_t i = 0; i < request->n_items; i++) {
        const Nui__Bank__V1__PriceItem *item = request->items[i];
        const struct fakesite *site = quoted_site (grid, item->site);
        int64_t rate = grid->bank_rate[site - grid->site] * (*item->machine ? 3 : 1);
        nui__bank__v1__price__init (&price[i]);
        price[i].amount_micro = (int64_t)item->procs * item->walltime_us * rate;
        price[i].funded = grid->bank_funded && !site->unfunded;
        price[i].account = (char *)"proj";
        prices[i] = &price[i];
        reply.total_micro += price[i].amount_micro;
        reply.funded = reply.funded && !site->unfunded;
        if (!price[i].funded && !reply.n_candidates) { /* of the first, as the bank's */
            candidate.account = (char *)"proj";
            candidate.shortfall_micro = 5 * MICRO_PER_CREDIT;
            reason.code = (char *)"InsufficientFunds";
            snprintf (why, sizeof why, "nothing left%s%s", site->unfunded ? " for " : "",
                      site->unfunded ? site->name : "");
            reason.text = why;
            candidate.reason = &reason;
            reply.n_candidates = 1;
            reply.candidates = candidates;
        }
    }
    reply.n_prices = request->n_items;
    reply.prices = prices;
    reply.account = (char *)"proj";
    rpccall_reply (call, &reply.base);
}

static void on_handover_key (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    struct fakegrid *grid = self;
    Nui__Bank__V1__HandoverKeyReply reply = NUI__BANK__V1__HANDOVER_KEY_REPLY__INIT;
    Nui__Bank__V1__HandoverKey item = NUI__BANK__V1__HANDOVER_KEY__INIT, *items[] = {&item};
    struct handover_key key;
    (void)message;
    grid->calls_key++;
    if (grid->bank_keyless) {
        rpccall_finish (call, RPC_UNAVAILABLE, "no database");
        return;
    }
    handover_derive (grid->secret, rpccall_peer (call)->grid, rpccall_peer (call)->name,
                     handover_number (clock_now_us ()), &key);
    item.key = key.number;
    item.secret = (ProtobufCBinaryData){sizeof key.bytes, key.bytes};
    reply.keys = items;
    reply.n_keys = 1;
    rpccall_reply (call, &reply.base);
}

static const struct rpc_method bank_methods[] = {
    {.name = "HandoverKey", .allow = RPC_ALLOW (PRINCIPAL_META), .handler = on_handover_key},
    {.name = "Quote",
     .allow = RPC_ALLOW (PRINCIPAL_META),
     .request_bytes_max = 1 << 20,
     .handler = on_quote},
    {.name = NULL},
};

/* ---- the grid */

static struct rpcserver *serve (struct fakegrid *grid, struct tlsid *id,
                                const ProtobufCServiceDescriptor *service,
                                const struct rpc_method *methods, void *self)
{
    struct rpcserver_config config = {.base = grid->base, .id = id, .listen = "127.0.0.1:0"};
    struct err err;
    struct rpcserver *server = rpcserver_create (&config, &err);
    assert_non_null (server);
    assert_int_equal (rpcserver_add_service (server, service, methods, self, &err), 0);
    return server;
}

struct fakegrid *fake_create (uint32_t sites)
{
    static const char *const first[] = {"alpha", "beta", "gamma"};
    struct fakegrid *grid = calloc (1, sizeof *grid);
    assert_true (sites <= FAKE_SITES_MAX);
    grid->sites = sites;
    memset (grid->secret, 7, sizeof grid->secret);
    grid->base = event_base_new ();
    grid->dir = testca_dir ();
    grid->ca = testca_create (grid->dir, "ca");
    testca_write_crl (grid->ca, -86400, 7 * 86400);
    grid->alice_id = testca_identity (grid->ca, "demo", "user", "alice");
    grid->bob_id = testca_identity (grid->ca, "demo", "user", "bob");
    grid->operator_id = testca_identity (grid->ca, "demo", "operator", "ops");
    grid->bank_id = testca_identity (grid->ca, "demo", "bank", "bank");
    tlsid_destroy (testca_identity (grid->ca, "demo", "meta", "meta"));
    grid->bank_funded = true;
    grid->bank = serve (grid, grid->bank_id, &nui__bank__v1__bank__descriptor, bank_methods, grid);
    for (uint32_t s = 0; s < grid->sites; s++) {
        struct fakesite *site = &grid->site[s];
        site->grid = grid;
        if (s < FAKE_SITES)
            snprintf (site->name, sizeof site->name, "%s", first[s]);
        else
            snprintf (site->name, sizeof site->name, "more%02u", s);
        site->procs = 8;
        site->event_first = 1;
        site->id = testca_identity (grid->ca, "demo", "site", site->name);
        site->server =
            serve (grid, site->id, &nui__local__v1__local__descriptor, fake_site_methods, site);
        grid->bank_rate[s] = 1;
    }
    return grid;
}

static void config_write (struct fakegrid *grid)
{
    char path[512];
    snprintf (path, sizeof path, "%s/meta.cfg", grid->dir);
    FILE *f = fopen (path, "w");
    assert_non_null (f);
    fprintf (f,
             "GRID demo\nLISTEN 127.0.0.1:0\nPORTFILE meta.port\nPIDFILE meta.pidfile\n"
             "LOGFILE meta.log\nLOGLEVEL debug\nSTATEDIR meta-state\nCA ca.pem\nCRL ca.crl\n"
             "CERT meta.pem\nKEY meta.key\nBANK 127.0.0.1:%u\nCOALLOCLEAD 1\nBARRIERTIMEOUT 5\n"
             "PREPARETIMEOUT 2\nLEASETIME 4\n",
             rpcserver_port (grid->bank));
    for (uint32_t s = 0; s < grid->sites; s++)
        fprintf (f, "SITECFG[%s] SERVER=127.0.0.1:%u\n", grid->site[s].name,
                 rpcserver_port (grid->site[s].server));
    fclose (f);
}

void fake_meta_config (struct fakegrid *grid, const char *text)
{
    char path[512], fresh[512];
    if (!text) {
        config_write (grid);
        return;
    }
    snprintf (path, sizeof path, "%s/meta.cfg", grid->dir);
    snprintf (fresh, sizeof fresh, "%s/meta.cfg.new", grid->dir);
    FILE *f = fopen (fresh, "w");
    assert_non_null (f);
    fputs (text, f);
    fclose (f);
    assert_int_equal (rename (fresh, path), 0);
}

void fake_wait (struct fakegrid *grid, const char *what, bool (*cond) (void *arg), void *arg,
                duration_us timeout)
{
    duration_us deadline = clock_monotonic_us () + 20 * timeout;
    while (!cond (arg)) {
        struct timeval tick = {0, 20000};
        if (clock_monotonic_us () >= deadline)
            fail_msg ("%s: not so within %lld s", what, (long long)(20 * timeout / US_PER_S));
        event_base_loopexit (grid->base, &tick);
        event_base_loop (grid->base, EVLOOP_ONCE);
    }
}

static struct rpcclient *client (struct fakegrid *grid, struct tlsid *id)
{
    char target[64];
    struct err err;
    snprintf (target, sizeof target, "127.0.0.1:%u", grid->meta_port);
    struct rpcclient_config config = {.base = grid->base,
                                      .id = id,
                                      .target = target,
                                      .expect_kind = PRINCIPAL_META,
                                      .backoff_max = 200000};
    struct rpcclient *made = rpcclient_create (&config, &err);
    assert_non_null (made);
    return made;
}

static bool port_known (void *arg)
{
    struct fakegrid *grid = arg;
    char path[512];
    unsigned port = 0;
    snprintf (path, sizeof path, "%s/meta.port", grid->dir);
    FILE *f = fopen (path, "r");
    if (!f)
        return false;
    bool got = fscanf (f, "%u", &port) == 1 && port > 0;
    fclose (f);
    grid->meta_port = (uint16_t)port;
    return got;
}

static bool reports_done (void *arg)
{
    struct fakegrid *grid = arg;
    for (uint32_t s = 0; s < grid->sites; s++)
        if (grid->site[s].reports_outstanding)
            return false;
    return true;
}

static void clients_drop (struct fakegrid *grid)
{
    rpcclient_destroy (grid->alice);
    rpcclient_destroy (grid->bob);
    rpcclient_destroy (grid->operator_);
    grid->alice = grid->bob = grid->operator_ = NULL;
    for (uint32_t s = 0; s < grid->sites; s++) {
        struct rpcclient *meta = grid->site[s].meta;
        grid->site[s].meta = NULL;
        rpcclient_destroy (meta);
    }
}

void fake_meta_start (struct fakegrid *grid)
{
    char path[512], config[512];
    config_write (grid);
    clients_drop (grid);
    snprintf (path, sizeof path, "%s/meta.port", grid->dir);
    unlink (path);
    snprintf (config, sizeof config, "%s/meta.cfg", grid->dir);
    grid->meta_pid = fork ();
    assert_true (grid->meta_pid >= 0);
    if (grid->meta_pid == 0) {
        struct rlimit few = {.rlim_max = RLIM_INFINITY};
        prctl (PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nobody behind */
        getrlimit (RLIMIT_NOFILE, &few);
        few.rlim_cur = 512; /* what it may have is more, and it has to ask for it */
        setrlimit (RLIMIT_NOFILE, &few);
        execl (NUI_META_BIN, "nui-meta", "--config", config, "--foreground", (char *)NULL);
        _exit (127);
    }
    fake_until (grid, port_known, grid, 20 * US_PER_S);
    grid->alice = client (grid, grid->alice_id);
    grid->bob = client (grid, grid->bob_id);
    grid->operator_ = client (grid, grid->operator_id);
    for (uint32_t s = 0; s < grid->sites; s++) {
        grid->site[s].meta = client (grid, grid->site[s].id);
        fake_report (&grid->site[s]);
    }
    fake_until (grid, reports_done, grid, 10 * US_PER_S);
}

void fake_meta_kill (struct fakegrid *grid)
{
    assert_true (grid->meta_pid > 0);
    assert_int_equal (kill (grid->meta_pid, SIGKILL), 0);
    waitpid (grid->meta_pid, NULL, 0);
    grid->meta_pid = 0;
}

static bool meta_gone (void *arg)
{
    struct fakegrid *grid = arg;
    int status = 0;
    if (waitpid (grid->meta_pid, &status, WNOHANG) != grid->meta_pid)
        return false;
    grid->meta_pid = 0;
    assert_true (WIFEXITED (status));
    assert_int_equal (WEXITSTATUS (status), 0);
    return true;
}

void fake_meta_stop (struct fakegrid *grid)
{
    assert_int_equal (kill (grid->meta_pid, SIGTERM), 0);
    fake_until (grid, meta_gone, grid, 20 * US_PER_S);
}

static void state_remove (const char *dir)
{
    static const char *const names[] = {"meta.sqlite", "meta.sqlite-wal", "meta.sqlite-shm", ""};
    char path[512];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf (path, sizeof path, "%s/meta-state/%s", dir, names[i]);
        remove (path);
    }
}

void fake_destroy (struct fakegrid *grid)
{
    if (grid->meta_pid > 0)
        fake_meta_stop (grid);
    clients_drop (grid);
    for (uint32_t s = 0; s < grid->sites; s++) {
        struct fakesite *site = &grid->site[s];
        for (uint32_t p = 0; p < site->part_count; p++)
            if (site->part[p].timer)
                event_free (site->part[p].timer);
        for (uint32_t i = 0; i < site->event_count; i++)
            nui__local__v1__job_info__free_unpacked (site->event[i], NULL);
        rpcserver_destroy (site->server);
        tlsid_destroy (site->id);
    }
    rpcserver_destroy (grid->bank);
    tlsid_destroy (grid->bank_id);
    tlsid_destroy (grid->alice_id);
    tlsid_destroy (grid->bob_id);
    tlsid_destroy (grid->operator_id);
    testca_destroy (grid->ca);
    state_remove (grid->dir);
    testca_remove (grid->dir);
    event_base_free (grid->base);
    free (grid);
}

/* ---- jobs */

Nui__Common__V1__Envelope *fake_envelope (struct fakegrid *grid, struct tlsid *signer,
                                          const char *submitter, const struct fake_job *spec)
{
    Nui__Common__V1__Job job = NUI__COMMON__V1__JOB__INIT;
    Nui__Common__V1__Component component[8];
    Nui__Common__V1__Component *components[8];
    Nui__Common__V1__Req req[8];
    Nui__Common__V1__Req *reqs[8];
    char name[8][16];
    Nui__Common__V1__Envelope *envelope = NULL;
    struct uuid uuid;
    struct err err;
    (void)grid;
    uuid_make (&uuid);
    job.grid = (char *)"demo";
    job.submitter = (char *)submitter;
    job.uuid = (ProtobufCBinaryData){16, (uint8_t *)(spec->uuid ? spec->uuid : uuid.b)};
    job.created_us = spec->uuid ? 1 : clock_now_us ();
    job.expires_us = spec->uuid ? INT64_MAX : clock_now_us () + 3600 * US_PER_S;
    job.name = (char *)(spec->name ? spec->name : "test");
    job.account = (char *)"proj";
    job.deadline_us = spec->deadline_us;
    job.held = spec->held;
    job.cost_max_micro = spec->cost_max_micro;
    Nui__Common__V1__Dependency depend = NUI__COMMON__V1__DEPENDENCY__INIT, *depends[] = {&depend};
    depend.kind = (char *)"afterany";
    depend.job_id = (char *)spec->after_end_of;
    job.n_depends = spec->after_end_of != NULL;
    job.depends = depends;
    for (uint32_t i = 0; i < spec->n; i++) {
        nui__common__v1__component__init (&component[i]);
        nui__common__v1__req__init (&req[i]);
        snprintf (name[i], sizeof name[i], "c%u", i);
        req[i].tasks = spec->procs;
        reqs[i] = &req[i];
        component[i].name = name[i];
        component[i].n_reqs = 1;
        component[i].reqs = &reqs[i];
        component[i].walltime_us = spec->walltime_s * US_PER_S;
        if (!spec->no_script)
            component[i].script = (ProtobufCBinaryData){3, (uint8_t *)"#!\n"};
        if (spec->sites[i]) {
            component[i].n_sites = 1;
            component[i].sites = (char **)&spec->sites[i];
        }
        components[i] = &component[i];
    }
    Nui__Common__V1__IndexRange range = NUI__COMMON__V1__INDEX_RANGE__INIT, *ranges[] = {&range};
    range.from = 1;
    range.to = spec->array;
    job.indexes = ranges;
    job.n_indexes = spec->array > 0;
    job.array_limit = spec->array > 0 && !spec->array_free;
    job.n_components = spec->n;
    job.components = components;
    size_t len = nui__common__v1__job__get_packed_size (&job);
    uint8_t *body = malloc (len + 1);
    nui__common__v1__job__pack (&job, body);
    assert_int_equal (envelope_sign (signer, body, len, &envelope, &err), 0);
    free (body);
    return envelope;
}

int fake_submit (struct fakegrid *grid, const struct fake_job *job, char id_out[32],
                 struct err *err)
{
    Nui__Meta__V1__SubmitRequest request = NUI__META__V1__SUBMIT_REQUEST__INIT;
    ProtobufCMessage *reply = NULL;
    request.envelope = fake_envelope (grid, grid->alice_id, "nui://demo/user/alice", job);
    int rc = rpcclient_call (grid->alice, &nui__meta__v1__meta__descriptor, "Submit", &request.base,
                             (grid->impatient ? 3 : 60) * US_PER_S, true, &reply, err);
    envelope_free (request.envelope);
    if (rc == 0) {
        snprintf (id_out, 32, "%s", ((Nui__Meta__V1__SubmitReply *)reply)->grid_job_id);
        protobuf_c_message_free_unpacked (reply, NULL);
    }
    return rc;
}

Nui__Meta__V1__JobStatus *fake_status (struct fakegrid *grid, const char *id)
{
    Nui__Meta__V1__JobRequest request = NUI__META__V1__JOB_REQUEST__INIT;
    ProtobufCMessage *reply = NULL;
    struct err err;
    request.grid_job_id = (char *)id;
    int rc = rpcclient_call (grid->alice, &nui__meta__v1__meta__descriptor, "Status", &request.base,
                             10 * US_PER_S, true, &reply, &err);
    if (rc)
        print_error ("%s\n", err.text);
    assert_int_equal (rc, 0);
    return (Nui__Meta__V1__JobStatus *)reply;
}

static void say_again (struct fakegrid *grid)
{
    for (uint32_t s = 0; s < grid->sites; s++) {
        struct fakesite *site = &grid->site[s];
        if (!site->reports_outstanding && (site->event_count || site->restored))
            fake_report (site);
    }
}

void fake_until_state (struct fakegrid *grid, const char *id, Nui__Meta__V1__GridJobState state)
{
    duration_us deadline = clock_monotonic_us () + 600 * US_PER_S;
    for (;;) {
        Nui__Meta__V1__JobStatus *status = fake_status (grid, id);
        bool there = status->state == state;
        bool late = clock_monotonic_us () > deadline;
        if (late)
            print_error ("%s is in state %d (%s: %s), not %d\n", id, (int)status->state,
                         status->reason->code, status->reason->text, (int)state);
        nui__meta__v1__job_status__free_unpacked (status, NULL);
        assert_false (late);
        if (there)
            return;
        say_again (grid);
        struct timeval tick = {0, 20000};
        event_base_loopexit (grid->base, &tick);
        event_base_loop (grid->base, 0);
    }
}

bool fake_nothing_held (const struct fakegrid *grid)
{
    for (uint32_t s = 0; s < grid->sites; s++)
        for (uint32_t p = 0; p < grid->site[s].part_count; p++) {
            enum fake_state state = grid->site[s].part[p].state;
            if (state == FAKE_PREPARED || state == FAKE_FIRM || state == FAKE_RUNNING)
                return false;
        }
    return true;
}
