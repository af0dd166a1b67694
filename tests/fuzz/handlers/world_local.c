/* nui-local of site alpha: nodes, a queue, running jobs, parts that are prepared and firm, reservations. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "local/svc/svc.h"
#include "proto/base/clock.h"
#include "proto/hash/sha256.h"
#include "proto/nui/v1/admin.pb-c.h"
#include "proto/nui/v1/bank.pb-c.h"
#include "proto/nui/v1/local.pb-c.h"
#include "proto/nui/v1/meta.pb-c.h"
#include "proto/rpc/envelope.h"
#include "tests/fuzz/handlers/world.h"

static const struct inproc_caller callers[] = {
    {PRINCIPAL_META, "meta", false, 0},   {PRINCIPAL_USER, "alice", false, 0},
    {PRINCIPAL_USER, "root", true, 0},    {PRINCIPAL_META, "third", false, 0},
    {PRINCIPAL_OPERATOR, "op", false, 0}, {PRINCIPAL_USER, "bob", false, 0},
    {PRINCIPAL_USER, "games", true, 5},   {PRINCIPAL_USER, "nobody", true, 65534},
    {PRINCIPAL_SITE, "beta", false, 0},   {PRINCIPAL_AGENCY, "nsf", false, 0},
    {PRINCIPAL_NONE, NULL, false, 0},
};

static struct local {
    struct ground *ground;
    struct tlsid *id;
    struct cred_names names;
    struct conf *conf;
    struct settings *settings;
    struct svc *svc;
    char dir[256], text[2048];
    uint64_t acked, holds;
} local;

/* ---- whom the site asks */

static ProtobufCMessage *copy (const ProtobufCMessage *message)
{
    size_t len = protobuf_c_message_get_packed_size (message);
    uint8_t *bytes = malloc (len + 1);
    if (!bytes)
        abort ();
    protobuf_c_message_pack (message, bytes);
    ProtobufCMessage *out = protobuf_c_message_unpack (message->descriptor, NULL, len, bytes);
    free (bytes);
    return out;
}

static ProtobufCMessage *hold_granted (void)
{
    Nui__Bank__V1__HoldReply reply = NUI__BANK__V1__HOLD_REPLY__INIT;
    char id[32];
    snprintf (id, sizeof id, "hold.%llu", (unsigned long long)++local.holds);
    reply.granted = true;
    reply.hold_id = id;
    reply.amount_micro = 60000000;
    reply.account = (char *)(uintptr_t) "phys";
    return copy (&reply.base);
}

static ProtobufCMessage *answer (const char *target, const char *method,
                                 const ProtobufCMessage *request)
{
    (void)target;
    if (strcmp (method, "Hold") == 0)
        return hold_granted ();
    if (strcmp (method, "Charge") == 0) {
        Nui__Bank__V1__ChargeReply reply = NUI__BANK__V1__CHARGE_REPLY__INIT;
        reply.acked_sequence =
            ((const Nui__Bank__V1__ChargeRequest *)(const void *)request)->sequence;
        return copy (&reply.base);
    }
    if (strcmp (method, "Release") == 0) {
        Nui__Bank__V1__ReleaseReply reply = NUI__BANK__V1__RELEASE_REPLY__INIT;
        reply.acked_sequence =
            ((const Nui__Bank__V1__ReleaseRequest *)(const void *)request)->sequence;
        return copy (&reply.base);
    }
    if (strcmp (method, "Report") == 0) {
        const Nui__Meta__V1__SiteReport *r =
            (const Nui__Meta__V1__SiteReport *)(const void *)request;
        Nui__Meta__V1__ReportReply reply = NUI__META__V1__REPORT_REPLY__INIT;
        reply.metascheduler = (char *)(uintptr_t) "meta";
        reply.events_acked = r->n_events ? r->events[r->n_events - 1]->sequence : 0;
        return copy (&reply.base);
    }
    return NULL;
}

/* ---- configuration */

static int settings_of (struct conf *conf, struct settings **out, struct err *err)
{
    int rc = settings_read (conf, &local.names, -1, out, err);
    return rc != 0 ? rc : conf_finish (conf, err);
}

static int reload (struct conf *conf, struct err *err)
{
    struct settings *fresh = NULL;
    int rc = settings_of (conf, &fresh, err);
    if (rc == 0)
        rc = svc_reload (local.svc, fresh, err);
    if (rc != 0) {
        settings_destroy (fresh);
        return rc;
    }
    settings_destroy (local.settings);
    conf_destroy (local.conf);
    local.settings = fresh;
    local.conf = conf;
    inproc_conf_set (conf);
    return 0;
}

/* ---- what there is */

static void submit (uint64_t number, uint32_t tasks, int64_t walltime_us)
{
    Nui__Local__V1__SubmitRequest r = NUI__LOCAL__V1__SUBMIT_REQUEST__INIT;
    char id[32];
    r.envelope = plain_job (
        local.ground,
        &(struct plain_job){.number = number, .tasks = tasks, .walltime_us = walltime_us});
    r.component = (char *)(uintptr_t) "main";
    snprintf (id, sizeof id, "grid.%llu", (unsigned long long)number);
    r.grid_job_id = id;
    protobuf_c_message_free_unpacked (inproc_must ("Local.Submit", &callers[0], &r.base), NULL);
    envelope_free (r.envelope);
}

static void prepare (uint64_t number, bool commit)
{
    Nui__Local__V1__PrepareRequest r = NUI__LOCAL__V1__PREPARE_REQUEST__INIT;
    Nui__Local__V1__CommitRequest c = NUI__LOCAL__V1__COMMIT_REQUEST__INIT;
    Nui__Local__V1__Part part = NUI__LOCAL__V1__PART__INIT;
    uint8_t transaction[16] = {0}, hash[SHA256_BYTES];
    char id[32];
    memcpy (transaction, &number, sizeof number);
    transaction[15] = 1; /* as wire.c's are */
    memset (hash, 0, sizeof hash);
    part.transaction = (ProtobufCBinaryData){sizeof transaction, transaction};
    part.component = (char *)(uintptr_t) "main";
    part.attempt = part.epoch = 1;
    r.part = c.part = &part;
    r.envelope = plain_job (local.ground, &(struct plain_job){.number = 5000 + number});
    snprintf (id, sizeof id, "grid.%llu", (unsigned long long)(5000 + number));
    r.grid_job_id = id;
    r.slot_start_us = clock_now_us () + 600 * US_PER_S;
    r.lease_us = 5 * US_PER_S;
    r.start_token_hash = (ProtobufCBinaryData){sizeof hash, hash};
    protobuf_c_message_free_unpacked (inproc_must ("Local.Prepare", &callers[0], &r.base), NULL);
    envelope_free (r.envelope);
    if (commit)
        protobuf_c_message_free_unpacked (inproc_must ("Local.Commit", &callers[0], &c.base), NULL);
}

static void reserve (const char *expression)
{
    Nui__Local__V1__SetResRequest r = NUI__LOCAL__V1__SET_RES_REQUEST__INIT;
    r.start_us = clock_now_us () + 7200 * US_PER_S;
    r.duration_us = 3600 * US_PER_S;
    r.users = (char *)(uintptr_t) "games";
    r.expression = (char *)(uintptr_t)expression;
    protobuf_c_message_free_unpacked (inproc_must ("Admin.SetRes", &callers[2], &r.base), NULL);
}

static void local_open (struct ground *ground, bool large)
{
    struct err err = {0};
    uint32_t nodes = large ? 1000 : 16, jobs = large ? 1000 : 24;
    local.ground = ground;
    if (!local.id) {
        testca_issue (ground->ca,
                      &(struct testca_cert){.name = "alpha", .uri = "nui://test/site/alpha"});
        local.id = testca_tlsid (ground->dir, "ca", "alpha", true);
    }
    ground_clear (ground, local.dir);
    snprintf (
        local.text, sizeof local.text,
        "SITENAME alpha\nMETA meta:1\nBANK bank:1\nGRIDMAP %s/gridmap\nJOBDIR %s/jobs\nSTATDIR %s/stats\n"
        "PORTRANGE 20000-20999\nRMCFG[base] TYPE=EMBEDDED\nCGROUPS FALSE\nADVERTISE alpha:1\n"
        "NODECFG[alpha[0001-%04u]] PROCS=4 MEM=4G FEATURES=fast CLASS=batch,debug\nADMIN2 nobody\nBANKPATIENCE 4\n"
        "STAGEHOSTS *\nRESERVATIONDEPTH[0] 4\nPEERCAP[third] HOLDS=64\nQOSCFG[high] PRIORITY=10\n",
        ground->dir, local.dir, local.dir, nodes);
    struct inproc_config config = {.id = local.id,
                                   .dir = local.dir,
                                   .conf_text = local.text,
                                   .reload = reload,
                                   .answer = answer};
    inproc_open (&config);
    cred_names_init (&local.names);
    local.conf = conf_parse (local.text, strlen (local.text), "the test", &err);
    if (!local.conf || settings_of (local.conf, &local.settings, &err) != 0 ||
        svc_create (inproc_daemon (), &local.names, local.settings, &local.svc, &err) != 0) {
        fprintf (stderr, "world_local: %s\n", err.text);
        abort ();
    }
    inproc_conf_set (local.conf);
    for (uint32_t i = 1; i <= jobs; i++)
        submit (i, large ? 1 + i % 64 : 1 + i % 8, (600 + i % 7200) * US_PER_S);
    prepare (1, true);
    prepare (2, false);
    reserve ("alpha[0001-0002]");
    reserve ("TASKS==4");
}

static void local_close (void)
{
    svc_draining (local.svc);
    svc_destroy (local.svc);
    inproc_close ();
    settings_destroy (local.settings);
    conf_destroy (local.conf);
    cred_names_free (&local.names);
}

struct world world = {.name = "nui-local",
                      .signers = {.site = "alpha", .local = true},
                      .callers = callers,
                      .open = local_open,
                      .close = local_close};
