#include "tests/unit/bank/bankd.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "proto/base/clock.h"
#include "proto/nui/v1/health.pb-c.h"
#include "proto/rpc/envelope.h"
#include "proto/rpc/pbcopy.h"

static const struct {
    const char *name, *uri;
} people[WHO_COUNT] = {
    [WHO_ALPHA] = {"alpha", "nui://test/site/alpha"},
    [WHO_BETA] = {"beta", "nui://test/site/beta"},
    [WHO_META] = {"meta", "nui://test/meta/meta"},
    [WHO_ALICE] = {"alice", ALICE_URI},
    [WHO_BOB] = {"bob", BOB_URI},
    [WHO_NSF] = {"nsf", "nui://test/agency/nsf"},
    [WHO_OPS] = {"ops", "nui://test/operator/ops"},
    [WHO_LENA] = {"lena", LENA_URI},
    [WHO_MARA] = {"mara", MARA_URI},
    [WHO_OTTO] = {"otto", OTTO_URI},
};

static void pause_ms (long ms)
{
    struct timespec ts = {0, ms * 1000000};
    nanosleep (&ts, NULL);
}

static void write_config (const struct bankd *d, const char *database, const char *more)
{
    char path[512];
    snprintf (path, sizeof (path), "%s/nui-bank.cfg", d->dir);
    FILE *f = fopen (path, "w");
    assert (f);
    fprintf (
        f,
        "GRID test\nLISTEN 127.0.0.1:0\nPORTFILE port\nPIDFILE pid\nLOGFILE bank.log\n"
        "STATEDIR state\nCA ca.pem\nCRL ca.crl\nCERT bank.pem\nKEY bank.key\nDATABASE %s\n%s%s",
        database, more,
        /* most tests do not wait for their jobs */
        strstr (more, "CHARGETOLERANCE") ? "" : "CHARGETOLERANCE 1:00:00:00\n");
    fclose (f);
}

static void read_port (struct bankd *d)
{
    char path[512], text[64] = "";
    duration_us deadline = clock_monotonic_us () + 120 * US_PER_S;
    snprintf (path, sizeof (path), "%s/port", d->dir);
    for (;;) {
        FILE *f = fopen (path, "r");
        if (f && fgets (text, sizeof (text), f)) {
            fclose (f);
            break;
        }
        if (f)
            fclose (f);
        int status;
        if (clock_monotonic_us () > deadline || waitpid (d->pid, &status, WNOHANG) == d->pid) {
            fprintf (stderr, "bankd: nui-bank did not start, see %s/bank.log\n", d->dir);
            abort ();
        }
        pause_ms (10);
    }
    snprintf (d->target, sizeof (d->target), "127.0.0.1:%d",
              atoi (strrchr (text, ':') ? strrchr (text, ':') + 1 : text));
}

void bankd_start (struct bankd *d, const char *program)
{
    char config[512], port[512], err[512];
    snprintf (config, sizeof (config), "%s/nui-bank.cfg", d->dir);
    snprintf (port, sizeof (port), "%s/port", d->dir);
    snprintf (err, sizeof (err), "%s/stderr", d->dir);
    unlink (port);
    pid_t parent = getpid ();
    d->pid = fork ();
    assert (d->pid >= 0);
    if (d->pid == 0) {
        int fd = open (err, O_WRONLY | O_CREAT | O_APPEND, 0600);
        dup2 (fd, 2);
        prctl (PR_SET_PDEATHSIG, SIGKILL);
        if (getppid () != parent)
            _exit (127);
        execl (program, program, "--config", config, (char *)NULL);
        _exit (127);
    }
    read_port (d);
    for (int who = 0; who < WHO_COUNT; who++) {
        struct rpcclient_config c = {
            .base = d->base, .id = d->id[who], .target = d->target, .expect_kind = PRINCIPAL_BANK};
        struct err why = {0};
        rpcclient_destroy (d->client[who]);
        d->client[who] = rpcclient_create (&c, &why);
        assert (d->client[who]);
    }
}

void bankd_open (struct bankd *d, const char *program, const char *database, const char *more)
{
    *d = (struct bankd){.dir = testca_dir (), .base = event_base_new ()};
    d->ca = testca_create (d->dir, "ca");
    struct testca_cert bank = {.name = "bank", .uri = "nui://test/bank/bank"};
    testca_issue (d->ca, &bank);
    for (int who = 0; who < WHO_COUNT; who++) {
        struct testca_cert cert = {.name = people[who].name, .uri = people[who].uri};
        testca_issue (d->ca, &cert);
        d->id[who] = testca_tlsid (d->dir, "ca", people[who].name, false);
    }
    write_config (d, database, more);
    bankd_start (d, program);
}

int bankd_stop (struct bankd *d, int sig)
{
    int status = 0;
    kill (d->pid, sig);
    while (waitpid (d->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    d->pid = 0;
    return status;
}

void bankd_close (struct bankd *d)
{
    if (d->pid)
        bankd_stop (d, SIGTERM);
    for (int who = 0; who < WHO_COUNT; who++) {
        rpcclient_destroy (d->client[who]);
        tlsid_destroy (d->id[who]);
    }
    event_base_free (d->base);
    testca_destroy (d->ca);
    char command[600];
    snprintf (command, sizeof (command), "rm -rf '%s/state'", d->dir);
    if (system (command) != 0)
        perror ("bankd: rm");
    testca_remove (d->dir);
}

bool bankd_wait_serving (struct bankd *d, bool serving)
{
    Grpc__Health__V1__HealthCheckRequest req = GRPC__HEALTH__V1__HEALTH_CHECK_REQUEST__INIT;
    duration_us deadline = clock_monotonic_us () + 120 * US_PER_S;
    while (clock_monotonic_us () < deadline) {
        ProtobufCMessage *reply = NULL;
        struct err err = {0};
        if (rpcclient_call (d->client[WHO_OPS], &grpc__health__v1__health__descriptor, "Check",
                            &req.base, 5 * US_PER_S, true, &reply, &err) == 0) {
            bool now = ((Grpc__Health__V1__HealthCheckResponse *)reply)->status ==
                       GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVING;
            protobuf_c_message_free_unpacked (reply, NULL);
            if (now == serving)
                return true;
        }
        pause_ms (20);
    }
    return false;
}

static struct bankd_reply call_as_is (struct bankd *d, enum bankd_who who, const char *method,
                                      const ProtobufCMessage *request)
{
    struct bankd_reply reply = {0};
    rpcclient_call (d->client[who], &nui__bank__v1__bank__descriptor, method, request,
                    30 * US_PER_S, true, &reply.message, &reply.err);
    return reply;
}

static const struct handover_key *handover_key_of (struct bankd *d)
{
    Nui__Bank__V1__HandoverKeyRequest request = NUI__BANK__V1__HANDOVER_KEY_REQUEST__INIT;
    if (d->key.number)
        return &d->key;
    struct bankd_reply reply = call_as_is (d, WHO_META, "HandoverKey", &request.base);
    if (reply.err.code)
        return NULL;
    const Nui__Bank__V1__HandoverKey *key =
        ((Nui__Bank__V1__HandoverKeyReply *)reply.message)->keys[0];
    assert (key->secret.len == sizeof (d->key.bytes));
    memcpy (d->key.bytes, key->secret.data, sizeof (d->key.bytes));
    d->key.number = key->key;
    bankd_reply_free (&reply);
    return &d->key;
}

Nui__Common__V1__HandOver *bankd_handover (struct bankd *d,
                                           const Nui__Common__V1__Envelope *envelope,
                                           const char *part, const char *site, time_us expires,
                                           struct arena *arena)
{
    const struct handover_key *key = handover_key_of (d);
    Nui__Common__V1__Job *job =
        nui__common__v1__job__unpack (NULL, envelope->body.len, envelope->body.data);
    Nui__Common__V1__HandOver *out = NULL;
    if (key && job) {
        struct handover about = {.grid = "test",
                                 .metascheduler = tlsid_self (d->id[WHO_META])->name,
                                 .site = site,
                                 .component = *part ? part : job->components[0]->name,
                                 .uuid = job->uuid};
        sha256 (envelope->body.data, envelope->body.len, about.hash);
        out = handover_seal (key, &about, expires, arena);
    }
    if (job)
        nui__common__v1__job__free_unpacked (job, NULL);
    return out;
}

void bankd_hand_over (struct bankd *d, Nui__Common__V1__Envelope *envelope, const char *site)
{
    struct arena *arena = arena_create (0);
    Nui__Common__V1__HandOver *sealed = bankd_handover (d, envelope, "", site, INT64_MAX, arena);
    assert (sealed);
    envelope->handover = (Nui__Common__V1__HandOver *)pbcopy (&sealed->base);
    arena_destroy (arena);
}

struct bankd_reply bankd_call (struct bankd *d, enum bankd_who who, const char *method,
                               const ProtobufCMessage *request)
{
    bool hold = strcmp (method, "Hold") == 0, site = who == WHO_ALPHA || who == WHO_BETA;
    if (!site || d->keep_envelopes || (!hold && strcmp (method, "Charge") != 0))
        return call_as_is (d, who, method, request);
    Nui__Bank__V1__HoldRequest h = NUI__BANK__V1__HOLD_REQUEST__INIT;
    Nui__Bank__V1__ChargeRequest c = NUI__BANK__V1__CHARGE_REQUEST__INIT;
    if (hold)
        h = *(const Nui__Bank__V1__HoldRequest *)(const void *)request;
    else
        c = *(const Nui__Bank__V1__ChargeRequest *)(const void *)request;
    Nui__Common__V1__Envelope given, **envelope = hold ? &h.envelope : &c.envelope;
    if (!*envelope || (*envelope)->handover)
        return call_as_is (d, who, method, request);
    struct arena *arena = arena_create (0);
    given = **envelope;
    given.handover = bankd_handover (d, &given, hold ? h.component : c.component,
                                     tlsid_self (d->id[who])->name, INT64_MAX, arena);
    *envelope = &given;
    struct bankd_reply reply = call_as_is (d, who, method, hold ? &h.base : &c.base);
    arena_destroy (arena);
    return reply;
}

void bankd_reply_free (struct bankd_reply *reply)
{
    if (reply->message)
        protobuf_c_message_free_unpacked (reply->message, NULL);
    reply->message = NULL;
}

ProtobufCBinaryData bankd_key (struct bankd *d, uint8_t buf[16])
{
    uint64_t n = ++d->keys;
    memset (buf, 0x5a, 16);
    memcpy (buf, &n, sizeof (n));
    return (ProtobufCBinaryData){16, buf};
}

Nui__Common__V1__Envelope *bankd_sign (struct bankd *d, enum bankd_who who,
                                       const struct bankd_job *job)
{
    Nui__Common__V1__Job m = NUI__COMMON__V1__JOB__INIT;
    Nui__Common__V1__Component c = NUI__COMMON__V1__COMPONENT__INIT,
                               other = NUI__COMMON__V1__COMPONENT__INIT,
                               *components[] = {&c, &other};
    Nui__Common__V1__Req r = NUI__COMMON__V1__REQ__INIT, *reqs[] = {&r};
    Nui__Common__V1__Retry retry = NUI__COMMON__V1__RETRY__INIT;
    Nui__Common__V1__Envelope *out = NULL;
    struct err err = {0};
    uint8_t body[4096], uuid[16];
    random_bytes (uuid, sizeof (uuid));
    if (job->uuid)
        memcpy (uuid, job->uuid, sizeof (uuid));
    m.grid = (char *)(uintptr_t)(job->grid ? job->grid : "test");
    char *flags[] = {(char *)(uintptr_t)job->flag};
    m.n_flags = job->flag != NULL;
    m.flags = flags;
    m.submitter = (char *)(uintptr_t)(job->submitter ? job->submitter : people[who].uri);
    m.uuid = (ProtobufCBinaryData){sizeof (uuid), uuid};
    m.account = (char *)(uintptr_t)job->account;
    m.created_us = clock_now_us () - job->age_us;
    m.expires_us = job->expires_us;
    retry.times = job->retries;
    m.retry = &retry;
    m.cost_max_micro = job->cost_max_micro;
    m.quote_id = (char *)(uintptr_t)(job->quote ? job->quote : "");
    m.n_components = job->two ? 2 : 1;
    m.components = components;
    c.name = (char *)(uintptr_t) "main";
    other.name = (char *)(uintptr_t) "other";
    c.walltime_us = job->walltime_us ? job->walltime_us : 86400 * US_PER_S;
    other.walltime_us = c.walltime_us;
    other.n_reqs = 1;
    other.reqs = reqs;
    c.n_sites = job->site_count;
    c.sites = (char **)(uintptr_t)job->sites;
    c.n_reqs = 1;
    c.reqs = reqs;
    r.tasks = job->tasks ? job->tasks : 1;
    r.nodes = job->nodes;
    r.procs_per_task = job->procs ? job->procs : 8;
    c.procs_max = job->procs_max;
    r.memory_mb = job->memory_mb;
    Nui__Common__V1__GenericResource gpu = NUI__COMMON__V1__GENERIC_RESOURCE__INIT, *gres = &gpu;
    gpu.name = (char *)(uintptr_t) "gpu";
    gpu.count = job->gpus;
    r.n_gres = job->gpus > 0;
    r.gres = &gres;
    Nui__Common__V1__GenericResource floating = NUI__COMMON__V1__GENERIC_RESOURCE__INIT,
                                     *licences = &floating;
    floating.name = (char *)(uintptr_t)job->licence;
    floating.count = 1;
    c.n_licences = job->licence != NULL;
    c.licences = &licences;
    size_t len = nui__common__v1__job__pack (&m, body);
    assert (len < sizeof (body));
    if (envelope_sign (d->id[who], body, len, &out, &err) < 0) {
        fprintf (stderr, "bankd: %s\n", err.text);
        abort ();
    }
    return out;
}

static void must (struct bankd *d, const char *method, const ProtobufCMessage *request)
{
    enum bankd_who who = strcmp (method, "RateSet") == 0 ? WHO_OPS : WHO_NSF;
    struct bankd_reply reply = bankd_call (d, who, method, request);
    if (reply.err.code) {
        fprintf (stderr, "bankd: %s: %s\n", method, reply.err.text);
        abort ();
    }
    bankd_reply_free (&reply);
}

#define TEXT(s) ((char *)(uintptr_t)(s))

void bankd_hear (struct bankd_heard *heard, char config_out[512])
{
    char path[128];
    snprintf (heard->place, sizeof (heard->place), "/tmp/nui-heard-XXXXXX");
    assert (mkdtemp (heard->place));
    snprintf (path, sizeof (path), "%s/program", heard->place);
    FILE *f = fopen (path, "w");
    assert (f);
    fprintf (f, "#!/bin/sh\necho \"$1|$2|$3|$NUI_GRID\" >> %s/heard\n", heard->place);
    fclose (f);
    chmod (path, 0700);
    snprintf (config_out, 512, "NOTIFICATIONPROGRAM %s\nNOTIFICATIONACCOUNT %s\n", path,
              getpwuid (geteuid ())->pw_name);
}

void bankd_wait_heard (const struct bankd_heard *heard, const char *part, int count)
{
    char path[128], line[1024];
    snprintf (path, sizeof (path), "%s/heard", heard->place);
    duration_us deadline = clock_monotonic_us () + 60 * US_PER_S;
    for (int found = 0; clock_monotonic_us () < deadline; pause_ms (100)) {
        FILE *f = fopen (path, "r");
        found = 0;
        while (f && fgets (line, sizeof (line), f))
            found += strstr (line, part) != NULL;
        if (f)
            fclose (f);
        if (found == count)
            return;
        assert (found < count);
    }
    fprintf (stderr, "bankd: not heard %d times within 60 s: '%s'; see %s\n", count, part, path);
    abort ();
}

void bankd_found (struct bankd *d)
{
    uint8_t key[16];
    Nui__Bank__V1__ProjectCreateRequest project = NUI__BANK__V1__PROJECT_CREATE_REQUEST__INIT;
    project.key = bankd_key (d, key);
    project.name = TEXT ("physics");
    must (d, "ProjectCreate", &project.base);
    const char *users[] = {ALICE_URI, BOB_URI};
    for (int i = 0; i < 2; i++) {
        Nui__Bank__V1__UserCreateRequest user = NUI__BANK__V1__USER_CREATE_REQUEST__INIT;
        user.key = bankd_key (d, key);
        user.identity = TEXT (users[i]);
        must (d, "UserCreate", &user.base);
    }
    Nui__Bank__V1__MemberRequest member = NUI__BANK__V1__MEMBER_REQUEST__INIT;
    member.key = bankd_key (d, key);
    member.project = TEXT ("physics");
    member.identity = TEXT (ALICE_URI);
    must (d, "Member", &member.base);
    Nui__Bank__V1__AccountCreateRequest account = NUI__BANK__V1__ACCOUNT_CREATE_REQUEST__INIT;
    account.key = bankd_key (d, key);
    account.project = TEXT ("physics");
    account.name = TEXT ("rich");
    must (d, "AccountCreate", &account.base);
    char *fallbacks[] = {TEXT ("rich")};
    account.key = bankd_key (d, key);
    account.name = TEXT ("phys");
    account.n_fallbacks = 1;
    account.fallbacks = fallbacks;
    must (d, "AccountCreate", &account.base);
    const char *sites[] = {"alpha", "beta"};
    for (int i = 0; i < 2; i++) {
        Nui__Bank__V1__RateSetRequest rate = NUI__BANK__V1__RATE_SET_REQUEST__INIT;
        rate.key = bankd_key (d, key);
        rate.site = TEXT (sites[i]);
        rate.multiplier_ppm = 1000000 + i * 250000;
        must (d, "RateSet", &rate.base);
        Nui__Bank__V1__DepositRequest deposit = NUI__BANK__V1__DEPOSIT_REQUEST__INIT;
        deposit.key = bankd_key (d, key);
        deposit.account = TEXT (i ? "rich" : "phys");
        deposit.amount_micro = (i ? 100000 : 1000) * MICRO_PER_CREDIT;
        must (d, "Deposit", &deposit.base);
    }
}
