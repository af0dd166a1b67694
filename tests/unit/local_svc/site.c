#include "site.h"
#include "tests/unit/tmpdir.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pwd.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SITE_LIMIT_S = 600 }; /* of any wait: against hangs only */

static char certs_dir[64];
static const char *const accounts[] = {"games", "nobody"};

/* --- certificates, once for all tests ----------------------------------------------------- */

static void shell (const char *fmt, ...) __attribute__ ((format (printf, 1, 2)));
static void shell (const char *fmt, ...)
{
    char command[4096];
    va_list ap;
    va_start (ap, fmt);
    vsnprintf (command, sizeof command, fmt, ap);
    va_end (ap);
    if (system (command) != 0)
        fail_msg ("failed: %s", command);
}

int site_group_setup (void **state)
{
    (void)state;
    snprintf (certs_dir, sizeof certs_dir, "%s/nui-test-svc-ca-XXXXXX", tmpdir ());
    assert_non_null (mkdtemp (certs_dir));
    static const char *const who[] = {"site alpha", "bank bank",  "meta meta", "meta rival",
                                      "meta third", "user alice", "user bob",  "operator op"};
    shell ("%s init %s/ca --grid test > /dev/null", NUI_CA, certs_dir);
    shell ("%s init %s/other --grid test > /dev/null", NUI_CA, certs_dir);
    for (size_t i = 0; i < sizeof who / sizeof *who; i++) {
        char kind[32], name[32];
        sscanf (who[i], "%31s %31s", kind, name);
        shell ("%s issue %s/ca %s %s --out %s/%s %s > /dev/null", NUI_CA, certs_dir, kind, name,
               certs_dir, name, kind[0] == 'u' || kind[0] == 'o' ? "" : "--host 127.0.0.1");
    }
    shell ("%s issue %s/other user alice --out %s/mallory > /dev/null", NUI_CA, certs_dir,
           certs_dir);
    return 0;
}

static int remove_one (const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove (path);
}

int site_group_teardown (void **state)
{
    (void)state;
    return nftw (certs_dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static struct tlsid *identity (const char *name, const char *ca)
{
    struct err err = {0};
    char file[4][160];
    snprintf (file[0], 160, "%s/%s/ca.pem", certs_dir, ca);
    snprintf (file[1], 160, "%s/%s/cert.pem", certs_dir, name);
    snprintf (file[2], 160, "%s/%s/key.pem", certs_dir, name);
    snprintf (file[3], 160, "%s/%s/crl.pem", certs_dir, ca);
    struct tlsid_config config = {file[0], file[1], file[2], file[3]};
    struct tlsid *id = tlsid_create (&config, &err);
    if (!id)
        fail_msg ("%s", err.text);
    return id;
}

/* --- the bank ----------------------------------------------------------------------------- */

static void hex (const ProtobufCBinaryData *data, char out[33])
{
    for (size_t i = 0; i < 16; i++)
        snprintf (out + 2 * i, 3, "%02x", i < data->len ? data->data[i] : 0);
}

static void hold_answer (struct site *s, struct rpccall *call, const char *key)
{
    Nui__Bank__V1__HoldReply reply = NUI__BANK__V1__HOLD_REPLY__INIT;
    Nui__Common__V1__Reason reason = NUI__COMMON__V1__REASON__INIT;
    char id[64];
    if (s->mood == BANK_REFUSES) {
        reason.code = (char *)"InsufficientFunds";
        reason.text = (char *)"account chem lacks 12 credits";
        reply.reason = &reason;
        rpccall_reply (call, &reply.base);
        return;
    }
    unsigned n = 0;
    while (n < s->holds && strcmp (s->granted_key[n], key) != 0)
        n++;
    if (n == s->holds) /* the same key again: the same hold */
        snprintf (s->granted_key[s->holds++], 33, "%s", key);
    snprintf (id, sizeof id, "hold.%u", n + 1);
    reply.granted = true;
    reply.hold_id = id;
    reply.amount_micro = 60000000;
    reply.account = (char *)"chem";
    reply.expires_us = s->hold_lifetime_us ? clock_now_us () + s->hold_lifetime_us : 0;
    if (s->bank_loses_answers)
        rpccall_finish (call, RPC_UNAVAILABLE, "connection lost");
    else
        rpccall_reply (call, &reply.base);
}

static void bank_hold (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    struct site *s = self;
    const Nui__Bank__V1__HoldRequest *r = (const Nui__Bank__V1__HoldRequest *)message;
    char key[33];
    assert_int_equal (r->key.len, 16);
    assert_non_null (r->envelope);
    hex (&r->key, key);
    s->hold_calls++;
    if (s->mood == BANK_SILENT) {
        snprintf (s->silent_key[s->silent_count], 33, "%s", key);
        s->silent[s->silent_count++] = call;
        return;
    }
    hold_answer (s, call, key);
}

void bank_speak (struct site *s)
{
    unsigned count = s->silent_count;
    s->silent_count = 0;
    for (unsigned i = 0; i < count; i++)
        hold_answer (s, s->silent[i], s->silent_key[i]);
}

bool site_logged (struct site *s, void *words)
{
    char path[128], line[1024];
    bool found = false;
    snprintf (path, sizeof path, "%s/log", s->dir);
    FILE *f = fopen (path, "r");
    while (f && !found && fgets (line, sizeof line, f))
        found = strstr (line, words) != NULL;
    if (f)
        fclose (f);
    return found;
}

static void bank_charge (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    struct site *s = self;
    const Nui__Bank__V1__ChargeRequest *r = (const Nui__Bank__V1__ChargeRequest *)message;
    Nui__Bank__V1__ChargeReply reply = NUI__BANK__V1__CHARGE_REPLY__INIT;
    bool seen = false;
    s->charge_calls++;
    if (s->charge_status) {
        rpccall_finish (call, (enum rpc_status)s->charge_status, "not \"here\"");
        return;
    }
    for (unsigned i = 0; i < s->charges; i++)
        seen = seen || s->charge[i].sequence == r->sequence;
    if (!seen) {
        struct kept_charge *c = &s->charge[s->charges++];
        snprintf (c->hold_id, sizeof c->hold_id, "%s", r->hold_id);
        snprintf (c->job, sizeof c->job, "%s", r->site_job_id);
        c->sequence = r->sequence;
        c->procs = r->procs;
        c->start_us = r->start_us;
        c->end_us = r->end_us;
        c->final = r->final;
        c->successful = r->successful;
        if (r->ran) {
            c->nodes = r->ran->nodes;
            c->submitted_us = r->ran->submitted_us;
            snprintf (c->local_user, sizeof c->local_user, "%s", r->ran->local_user);
            snprintf (c->queue, sizeof c->queue, "%s", r->ran->class_);
        }
    }
    reply.acked_sequence = r->sequence;
    reply.disputed_micro = s->disputed_micro;
    if (s->bank_loses_answers)
        rpccall_finish (call, RPC_UNAVAILABLE, "connection lost");
    else
        rpccall_reply (call, &reply.base);
}

static void bank_release (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    struct site *s = self;
    const Nui__Bank__V1__ReleaseRequest *r = (const Nui__Bank__V1__ReleaseRequest *)message;
    Nui__Bank__V1__ReleaseReply reply = NUI__BANK__V1__RELEASE_REPLY__INIT;
    bool seen = false;
    for (unsigned i = 0; i < s->releases; i++)
        seen = seen || s->released_sequence[i] == r->sequence;
    if (!seen) {
        s->released_sequence[s->releases] = r->sequence;
        snprintf (s->released[s->releases++], 64, "%s", r->hold_id);
    }
    reply.acked_sequence = r->sequence;
    rpccall_reply (call, &reply.base);
}

static void bank_clock (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    const struct site *s = self;
    Nui__Bank__V1__ClockReply reply = NUI__BANK__V1__CLOCK_REPLY__INIT;
    (void)message;
    reply.now_us = clock_now_us () + s->bank_ahead_us;
    rpccall_reply (call, &reply.base);
}

static const struct rpc_method bank_methods[] = {
    {"Clock", RPC_ALLOW (PRINCIPAL_SITE), false, 0, bank_clock},
    {"Hold", RPC_ALLOW (PRINCIPAL_SITE), false, 2 << 20, bank_hold},
    {"Charge", RPC_ALLOW (PRINCIPAL_SITE), false, 0, bank_charge},
    {"Release", RPC_ALLOW (PRINCIPAL_SITE), false, 0, bank_release},
    {NULL, 0, false, 0, NULL},
};

/* --- the metascheduler -------------------------------------------------------------------- */

static bool report_is_good (const struct site *s, const Nui__Meta__V1__SiteReport *report)
{
    bool good = !s->meta_refuses || *s->meta_refuses;
    for (size_t i = 0; i < report->n_events && s->meta_refuses; i++)
        good = good && !(report->events[i]->job &&
                         strcmp (report->events[i]->job->site_job_id, s->meta_refuses) == 0);
    return good;
}

static void meta_report (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    struct site *s = self;
    Nui__Meta__V1__ReportReply reply = NUI__META__V1__REPORT_REPLY__INIT;
    uint8_t *bytes = malloc (protobuf_c_message_get_packed_size (message) + 1);
    size_t len = protobuf_c_message_pack (message, bytes);
    nui__meta__v1__site_report__free_unpacked (s->report, NULL);
    s->report = nui__meta__v1__site_report__unpack (NULL, len, bytes);
    free (bytes);
    s->reports++;
    if (!report_is_good (s, s->report)) {
        s->reports_refused++;
        rpccall_finish (call, RPC_INVALID_ARGUMENT, "no \"report\"");
        return;
    }
    for (size_t i = 0; i < s->report->n_events; i++) {
        Nui__Meta__V1__JobEvent *e = s->report->events[i];
        if (e->sequence <= s->acked)
            continue;
        if (e->sequence != s->acked + 1)
            s->gap = e->sequence;
        s->acked = e->sequence;
        if (e->job) /* one of another metascheduler goes empty */
            s->event[s->events++ % KEPT_MAX] = e->job;
        e->job = NULL;
    }
    reply.metascheduler = (char *)"meta";
    reply.events_acked = s->meta_forgets ? 0 : s->acked;
    rpccall_reply (call, &reply.base);
}

static void third_report (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    const Nui__Meta__V1__SiteReport *report = (const Nui__Meta__V1__SiteReport *)message;
    Nui__Meta__V1__ReportReply reply = NUI__META__V1__REPORT_REPLY__INIT;
    struct site *s = self;
    s->third_reports++;
    for (size_t i = 0; i < report->n_events; i++)
        s->third_told += report->events[i]->job != NULL;
    reply.metascheduler = (char *)"third";
    if (report->n_events)
        reply.events_acked = report->events[report->n_events - 1]->sequence;
    rpccall_reply (call, &reply.base);
}

static const struct rpc_method third_methods[] = {
    {"Report", RPC_ALLOW (PRINCIPAL_SITE), false, 4 << 20, third_report},
    {NULL, 0, false, 0, NULL},
};

static const struct rpc_method meta_methods[] = {
    {"Report", RPC_ALLOW (PRINCIPAL_SITE), false, 4 << 20, meta_report},
    {NULL, 0, false, 0, NULL},
};

/* --- processes ---------------------------------------------------------------------------- */

static struct rpcserver *serve (struct site *s, struct tlsid *id,
                                const ProtobufCServiceDescriptor *service,
                                const struct rpc_method *methods)
{
    struct err err = {0};
    struct rpcserver_config config = {.base = s->base, .id = id, .listen = "127.0.0.1:0"};
    struct rpcserver *server = rpcserver_create (&config, &err);
    if (!server || rpcserver_add_service (server, service, methods, s, &err) != 0)
        fail_msg ("%s", err.text);
    return server;
}

static struct rpcclient *client (struct site *s, struct tlsid *id, const char *target)
{
    struct err err = {0};
    struct rpcclient_config config = {.base = s->base,
                                      .id = id,
                                      .target = target,
                                      .expect_kind = id ? PRINCIPAL_SITE : PRINCIPAL_NONE,
                                      .backoff_max = US_PER_S / 5};
    struct rpcclient *c = rpcclient_create (&config, &err);
    if (!c)
        fail_msg ("%s", err.text);
    return c;
}

static const char *account (size_t i)
{
    return geteuid () == 0 ? accounts[i] : getpwuid (geteuid ())->pw_name;
}

static void config_write (struct site *s, const char *extra)
{
    char path[128], third[64] = "";
    if (s->third_serves)
        snprintf (third, sizeof third, " 127.0.0.1:%u", rpcserver_port (s->third_server));
    snprintf (path, sizeof path, "%s/gridmap", s->dir);
    FILE *f = fopen (path, "w");
    fprintf (f, "# who is who\n\"nui://test/user/alice\" %s\n", account (0));
    fclose (f);
    snprintf (path, sizeof path, "%s/alpha.cfg", s->dir);
    f = fopen (path, "w");
    fprintf (f,
             "GRID test\nLISTEN 127.0.0.1:%u\nPORTFILE port\nPIDFILE pid\nLOGFILE log\n"
             "LOGLEVEL debug\nSTATEDIR state\nCA %s/ca/ca.pem\nCRL %s/ca/crl.pem\n"
             "CERT %s/alpha/cert.pem\nKEY %s/alpha/key.pem\nSITENAME alpha\n"
             "META 127.0.0.1:%u%s\nBANK 127.0.0.1:%u\nGRIDMAP gridmap\nSOCKET sock\nJOBDIR jobs\n"
             "PORTRANGE 21000-21999\nRMCFG[base] TYPE=EMBEDDED\nKILLGRACE 00:00:01\n"
             "NODECFG[alpha[01-04]] PROCS=2 MEM=4G FEATURES=fast\n%s%s\n",
             s->port, certs_dir, certs_dir, certs_dir, certs_dir, s->meta_port, third, s->bank_port,
             s->rival_unnamed ? "" : "PEERCAP[rival] HOLDS=1024\n", extra ? extra : "");
    fclose (f);
}

bool site_listens (struct site *s)
{
    char path[128];
    int port = 0;
    snprintf (path, sizeof path, "%s/port", s->dir);
    FILE *f = fopen (path, "r");
    bool known = f && fscanf (f, "%d", &port) == 1;
    if (f)
        fclose (f);
    if (known)
        s->port = (uint16_t)port;
    return known;
}

static void wait_port (struct site *s)
{
    duration_us until = clock_monotonic_us () + SITE_LIMIT_S * US_PER_S;
    while (clock_monotonic_us () < until) {
        int status;
        if (site_listens (s))
            return;
        if (waitpid (s->pid, &status, WNOHANG) == s->pid) {
            s->pid = 0;
            shell ("cat %s/log >&2", s->dir);
            fail_msg ("nui-local ended at once");
        }
        event_base_loop (s->base, EVLOOP_NONBLOCK);
        usleep (2000);
    }
    fail_msg ("nui-local did not come up within %d s", SITE_LIMIT_S);
}

static void spawn (struct site *s);

/* It speaks to nobody of META whom it has not met. */
static bool has_met_meta (struct site *s, void *arg)
{
    (void)arg;
    return s->reports && (s->third_reports || !s->third_serves);
}

void site_start (struct site *s, const char *extra_config)
{
    char target[64];
    config_write (s, extra_config);
    s->extra = extra_config;
    spawn (s);
    wait_port (s);
    if (s->as_meta)
        return; /* the same port as before */
    snprintf (target, sizeof target, "127.0.0.1:%u", s->port);
    s->as_meta = client (s, s->ids[1], target);
    s->as_alice = client (s, s->ids[2], target);
    s->as_bob = client (s, s->ids[3], target);
    s->as_operator = client (s, s->ids[4], target);
    s->as_rival = client (s, s->ids[6], target);
    snprintf (target, sizeof target, "unix:%.50s/sock", s->dir);
    s->as_local = client (s, NULL, target);
    if (s->meta_server)
        site_wait (s, has_met_meta, NULL, "the first report");
}

void site_kill (struct site *s)
{
    if (s->pid <= 0)
        return;
    int status = 0;
    kill (s->pid, SIGKILL);
    waitpid (s->pid, &status, 0);
    s->pid = 0;
    if (!WIFSIGNALED (status) || WTERMSIG (status) != SIGKILL) {
        shell ("tail -40 %s/log >&2", s->dir);
        fail_msg ("nui-local had ended by itself, with wait status %#x", (unsigned)status);
    }
}

static void spawn (struct site *s)
{
    char path[128];
    snprintf (path, sizeof path, "%s/port", s->dir);
    unlink (path); /* it is there again when it listens */
    snprintf (path, sizeof path, "%s/alpha.cfg", s->dir);
    s->pid = fork ();
    if (s->pid == 0) {
        execl (NUI_LOCAL_PROGRAM, "nui-local", "--config", path, (char *)NULL);
        _exit (127);
    }
}

void site_restart (struct site *s)
{
    site_kill (s);
    config_write (s, s->extra);
    spawn (s); /* on the same port: clients come back by themselves */
}

int site_setup (void **state)
{
    struct site *s = calloc (1, sizeof *s);
    snprintf (s->dir, sizeof s->dir, "%s/nui-test-svc-XXXXXX", tmpdir ());
    assert_non_null (mkdtemp (s->dir));
    chmod (s->dir, 0711);
    s->base = event_base_new ();
    s->ids[0] = identity ("bank", "ca");
    s->ids[1] = identity ("meta", "ca");
    s->ids[2] = identity ("alice", "ca");
    s->ids[3] = identity ("bob", "ca");
    s->ids[4] = identity ("op", "ca");
    s->ids[5] = identity ("mallory", "other");
    s->ids[6] = identity ("rival", "ca");
    s->ids[7] = identity ("third", "ca");
    s->bank_server = serve (s, s->ids[0], &nui__bank__v1__bank__descriptor, bank_methods);
    s->meta_server = serve (s, s->ids[1], &nui__meta__v1__meta__descriptor, meta_methods);
    s->third_server = serve (s, s->ids[7], &nui__meta__v1__meta__descriptor, third_methods);
    s->bank_port = rpcserver_port (s->bank_server);
    s->meta_port = rpcserver_port (s->meta_server);
    *state = s;
    return 0;
}

/* Nothing may go on running because a test failed. */
static void jobs_end (struct site *s)
{
    char command[256];
    snprintf (command, sizeof command,
              "for f in %s/jobs/*/started; do [ -e \"$f\" ] || continue; "
              "kill -9 -$(sed -n s/pid=//p \"$f\") 2> /dev/null; done; true",
              s->dir);
    shell ("%s", command);
}

int site_teardown (void **state)
{
    struct site *s = *state;
    char path[128], line[512];
    int bad = 0;
    if (s->pid > 0) {
        int status = 0;
        pid_t ended = 0;
        duration_us until = clock_monotonic_us () + SITE_LIMIT_S * US_PER_S;
        bool asked = false; /* only when it listens: before, it may not have its handler yet */
        while (ended == 0 && clock_monotonic_us () < until) {
            if (!asked && site_listens (s))
                asked = kill (s->pid, SIGTERM) == 0;
            event_base_loop (s->base, EVLOOP_NONBLOCK);
            usleep (2000);
            ended = waitpid (s->pid, &status, WNOHANG);
        }
        if (ended == 0) {
            fprintf (stderr, "nui-local did not end within %d s\n", SITE_LIMIT_S);
            kill (s->pid, SIGKILL);
            waitpid (s->pid, &status, 0);
        }
        bad = status;
        if (bad)
            fprintf (stderr, "nui-local ended with wait status %#x\n", (unsigned)status);
    }
    snprintf (path, sizeof path, "%s/log", s->dir);
    FILE *f = fopen (path, "r");
    while (f && fgets (line, sizeof line, f))
        if (strstr (line, "core_disagrees") || strstr (line, "not_regained") ||
            strstr (line, "not_written")) {
            fprintf (stderr, "%s", line);
            bad = 1;
        }
    if (f)
        fclose (f);
    if (s->gap) {
        fprintf (stderr, "the site's events jumped to %llu\n", (unsigned long long)s->gap);
        bad = 1;
    }
    struct rpcclient *clients[] = {s->as_meta,     s->as_alice, s->as_bob,
                                   s->as_operator, s->as_local, s->as_rival};
    for (size_t i = 0; i < sizeof clients / sizeof *clients; i++)
        if (clients[i])
            rpcclient_destroy (clients[i]);
    for (unsigned i = 0; i < s->silent_count; i++)
        rpccall_finish (s->silent[i], RPC_UNAVAILABLE, NULL);
    rpcserver_destroy (s->bank_server);
    rpcserver_destroy (s->meta_server);
    rpcserver_destroy (s->third_server);
    for (size_t i = 0; i < sizeof s->ids / sizeof *s->ids; i++)
        tlsid_destroy (s->ids[i]);
    nui__meta__v1__site_report__free_unpacked (s->report, NULL);
    for (unsigned i = 0; i < s->events && i < KEPT_MAX; i++)
        nui__local__v1__job_info__free_unpacked (s->event[i], NULL);
    event_base_free (s->base);
    jobs_end (s);
    if (getenv ("NUI_TEST_KEEP"))
        print_message ("kept: %s\n", s->dir);
    else
        nftw (s->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free (s);
    return bad;
}

static void on_tick (evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    (void)arg;
}

void site_wait (struct site *s, bool (*check) (struct site *s, void *arg), void *arg,
                const char *what)
{
    duration_us until = clock_monotonic_us () + SITE_LIMIT_S * US_PER_S;
    struct event *tick = event_new (s->base, -1, EV_PERSIST, on_tick, NULL);
    struct timeval often = {0, 5000};
    event_add (tick, &often);
    while (!check (s, arg) && clock_monotonic_us () < until)
        event_base_loop (s->base, EVLOOP_ONCE);
    event_free (tick);
    if (!check (s, arg)) {
        shell ("tail -40 %s/log >&2", s->dir);
        fail_msg ("not within %d s: %s", SITE_LIMIT_S, what);
    }
}

/* --- jobs and calls ----------------------------------------------------------------------- */

Nui__Common__V1__Envelope *job_envelope (struct site *s, const struct job_make *make)
{
    static const struct {
        const char *name;
        int id;
    } signers[] = {{"alice", 2}, {"bob", 3}, {"mallory", 5}};
    struct err err = {0};
    struct uuid uuid;
    char who[64];
    const char *signer = make->signer ? make->signer : "alice";
    Nui__Common__V1__Job job = NUI__COMMON__V1__JOB__INIT;
    Nui__Common__V1__Component component = NUI__COMMON__V1__COMPONENT__INIT;
    Nui__Common__V1__Req req = NUI__COMMON__V1__REQ__INIT;
    Nui__Common__V1__Req *reqs[] = {&req};
    char *features[] = {(char *)make->feature};
    snprintf (who, sizeof who, "nui://test/user/%s",
              strcmp (signer, "mallory") == 0 ? "alice" : signer);
    uuid_make (&uuid);
    job.grid = (char *)(make->grid ? make->grid : "test");
    job.cost_any = !make->boundless;
    job.submitter = (char *)(make->submitter ? make->submitter : who);
    if (make->uuid)
        memcpy (uuid.b, make->uuid, sizeof uuid.b);
    component.hosts = (char *)(make->hosts ? make->hosts : "");
    job.uuid.data = uuid.b;
    job.uuid.len = sizeof uuid.b;
    job.created_us = clock_now_us () + make->created_in;
    job.expires_us = job.created_us + (make->expires_in ? make->expires_in : 3600 * US_PER_S);
    job.account = (char *)(make->account ? make->account : "chem");
    job.n_components = 1;
    component.name = (char *)(make->component ? make->component : "main");
    component.n_reqs = 1;
    component.reqs = reqs;
    component.walltime_us = make->walltime ? make->walltime : 60 * US_PER_S;
    component.script.data = (uint8_t *)make->script;
    component.script.len = make->reserve ? 0 : strlen (make->script);
    Nui__Common__V1__Reserve reserve = NUI__COMMON__V1__RESERVE__INIT;
    reserve.changes = (ProtobufCBinaryData){make->changes ? 16 : 0, (uint8_t *)make->changes};
    job.reserve = make->reserve ? &reserve : NULL;
    req.tasks = make->tasks ? make->tasks : 1;
    component.qos = (char *)(make->qos ? make->qos : "");
    component.class_ = (char *)(make->queue ? make->queue : "");
    char *flags[] = {(char *)make->flag};
    Nui__Common__V1__Dependency depend = NUI__COMMON__V1__DEPENDENCY__INIT;
    Nui__Common__V1__Dependency *depends[] = {&depend};
    depend.kind = (char *)make->depend_kind;
    depend.job_id = (char *)make->depend_on;
    job.n_flags = make->flag ? 1 : 0;
    job.flags = flags;
    job.n_depends = make->depend_kind ? 1 : 0;
    job.depends = depends;
    job.held = make->held;
    job.array_id.data = (uint8_t *)make->array;
    job.array_id.len = make->array ? 16 : 0;
    job.array_index = make->array_index;
    job.array_limit = make->array_limit;
    req.n_features = make->feature ? 1 : 0;
    req.features = features;
    static char twin_name[3][8] = {"twin0", "twin1", "twin2"};
    Nui__Common__V1__Component twin[3], *all[4] = {&component, &twin[0], &twin[1], &twin[2]};
    assert_true (make->twins <= 3);
    for (uint32_t i = 0; i < make->twins; i++) {
        twin[i] = component;
        twin[i].name = twin_name[i];
    }
    job.n_components += make->twins;
    job.components = all;
    size_t len = nui__common__v1__job__get_packed_size (&job);
    uint8_t *body = malloc (len);
    nui__common__v1__job__pack (&job, body);
    Nui__Common__V1__Envelope *envelope = NULL;
    for (size_t i = 0; i < 3; i++)
        if (strcmp (signers[i].name, signer) == 0 &&
            envelope_sign (s->ids[signers[i].id], body, len, &envelope, &err) != 0)
            fail_msg ("%s", err.text);
    free (body);
    assert_non_null (envelope);
    return envelope;
}

int site_call (struct rpcclient *c, const char *method, const void *request, void *reply_out,
               struct err *err)
{
    struct err local = {0};
    duration_us until = clock_monotonic_us () + SITE_AWAY_MAX;
    int rc;
    err = err ? err : &local;
    do /* the site is away: as a metascheduler does, the same again */
        rc = rpcclient_call (c, &nui__local__v1__local__descriptor, method, request, SITE_AWAY_MAX,
                             true, reply_out, err);
    while (rc == ERR_UNAVAILABLE && clock_monotonic_us () < until);
    return rc;
}

void free_message (void *message)
{
    if (message)
        protobuf_c_message_free_unpacked (message, NULL);
}

void site_submit (struct site *s, const char *grid_id, const struct job_make *make, char out[64])
{
    Nui__Local__V1__SubmitRequest request = NUI__LOCAL__V1__SUBMIT_REQUEST__INIT;
    Nui__Local__V1__SubmitReply *reply = NULL;
    struct err err = {0};
    request.envelope = job_envelope (s, make);
    request.component = (char *)(make->component ? make->component : "main");
    request.grid_job_id = (char *)grid_id;
    request.attempt = 1;
    if (site_call (s->as_meta, "Submit", &request, &reply, &err) != 0)
        fail_msg ("submit: %s", err.text);
    if (!reply->accepted)
        fail_msg ("submit: %s", reply->reason ? reply->reason->text : "?");
    snprintf (out, 64, "%s", reply->site_job_id);
    free_message (reply);
    envelope_free (request.envelope);
}

const Nui__Local__V1__JobInfo *site_last_event (struct site *s, const char *site_job_id)
{
    for (unsigned i = s->events; i-- > 0;)
        if (strcmp (s->event[i % KEPT_MAX]->site_job_id, site_job_id) == 0)
            return s->event[i % KEPT_MAX];
    return NULL;
}

int site_told (struct site *s, const char *site_job_id)
{
    const Nui__Local__V1__JobInfo *e = site_last_event (s, site_job_id);
    return e ? (int)e->state : 0;
}

struct told {
    const char *id;
    int state;
};

static bool is_told (struct site *s, void *arg)
{
    const struct told *t = arg;
    return site_told (s, t->id) == t->state;
}

void site_wait_state (struct site *s, const char *site_job_id, int state)
{
    struct told t = {site_job_id, state};
    char what[100];
    snprintf (what, sizeof what, "%s in state %d", site_job_id, state);
    site_wait (s, is_told, &t, what);
}

struct collected {
    char *text;
    size_t len;
    bool eof;
};

static void on_chunk (void *arg, const ProtobufCMessage *message)
{
    struct collected *c = arg;
    const Nui__Common__V1__OutputChunk *chunk = (const Nui__Common__V1__OutputChunk *)message;
    c->text = realloc (c->text, c->len + chunk->data.len + 1);
    if (chunk->data.len)
        memcpy (c->text + c->len, chunk->data.data, chunk->data.len);
    c->len += chunk->data.len;
    c->text[c->len] = 0;
    c->eof = chunk->eof;
}

char *site_output (struct rpcclient *c, const char *job_id, struct err *err)
{
    struct collected got = {0};
    struct err local = {0};
    Nui__Local__V1__OutputRequest request = NUI__LOCAL__V1__OUTPUT_REQUEST__INIT;
    request.job_id = (char *)job_id;
    request.follow = true;
    if (rpcclient_stream (c, &nui__local__v1__local__descriptor, "Output", &request.base,
                          20 * US_PER_S, on_chunk, &got, err ? err : &local) != 0) {
        free (got.text);
        return NULL;
    }
    assert_true (got.eof);
    return got.text;
}
