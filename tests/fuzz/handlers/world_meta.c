/* nui-meta, one of a group of three, with sites that report and jobs that are placed, co-allocated and watched. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "meta/conf/config.h"
#include "meta/svc/metad.h"
#include "proto/base/clock.h"
#include "proto/rpc/envelope.h"
#include "proto/rpc/pbcopy.h"
#include "tests/fuzz/handlers/world.h"

enum { SITES_LARGE = 200, SITES_SMALL = 3, JOBS_LARGE = 2000, JOBS_SMALL = 10, ESTIMATES = 64 };
enum { ARRAY = 10000, ARRAY_RANGES = 4096, PATIENCE_MS = 30, PATIENCE_ARRAY_MS = 60000 };

static const struct inproc_caller callers[] = {
    {PRINCIPAL_USER, "alice", false, 0},  {PRINCIPAL_SITE, "alpha", false, 0},
    {PRINCIPAL_META, "meta2", false, 0},  {PRINCIPAL_USER, "bob", false, 0},
    {PRINCIPAL_OPERATOR, "op", false, 0}, {PRINCIPAL_SITE, "nowhere", false, 0},
    {PRINCIPAL_META, "rival", false, 0},  {PRINCIPAL_AGENCY, "nsf", false, 0},
    {PRINCIPAL_BANK, "bank", false, 0},   {PRINCIPAL_NONE, NULL, false, 0},
};

static const struct world_stranger strangers[] = {
    {"Peers", {PRINCIPAL_META, "rival", false, 0}}, /* a metascheduler, but not of this group */
    {"Peers", {PRINCIPAL_META, "meta", false, 0}},  /* who has stolen our own name */
    {"Peers", {PRINCIPAL_USER, "alice", false, 0}},
    {NULL, {0}},
};

static struct meta {
    struct ground *ground;
    struct tlsid *id;
    struct conf *conf;
    struct metad_config *config;
    struct metad *metad;
    char dir[256], text[32768];
    uint64_t jobs;
} meta;

/* ---- whom it asks */

static ProtobufCMessage *query_answer (void)
{
    Nui__Local__V1__QueryReply reply = NUI__LOCAL__V1__QUERY_REPLY__INIT;
    Nui__Common__V1__Interval interval = NUI__COMMON__V1__INTERVAL__INIT,
                              *intervals[] = {&interval};
    reply.feasible = true;
    reply.procs = 1;
    reply.now_us = clock_now_us ();
    reply.start_estimate_us = interval.begin_us = reply.now_us + 60 * US_PER_S;
    interval.end_us = reply.now_us + 86400 * US_PER_S;
    reply.start_intervals = intervals;
    reply.n_start_intervals = 1;
    return pbcopy (&reply.base);
}

static ProtobufCMessage *prepare_answer (const char *site, const Nui__Local__V1__PrepareRequest *r)
{
    Nui__Local__V1__PrepareReply reply = NUI__LOCAL__V1__PREPARE_REPLY__INIT;
    Nui__Common__V1__Peer peer = NUI__COMMON__V1__PEER__INIT;
    char id[80];
    snprintf (id, sizeof id, "%.60s.%llu", site, (unsigned long long)++meta.jobs);
    reply.granted = true;
    reply.site_job_id = id;
    reply.lease_left_us = r->lease_us;
    reply.procs = 1;
    peer.component = r->part->component;
    peer.site = (char *)(uintptr_t)site;
    reply.peer = &peer;
    return pbcopy (&reply.base);
}

static ProtobufCMessage *quote_answer (const Nui__Bank__V1__QuoteRequest *r)
{
    Nui__Bank__V1__QuoteReply reply = NUI__BANK__V1__QUOTE_REPLY__INIT;
    Nui__Bank__V1__Price price = NUI__BANK__V1__PRICE__INIT,
                         **prices = calloc (r->n_items + 1, sizeof *prices);
    if (!prices)
        abort ();
    price.amount_micro = 1000000;
    price.funded = reply.funded = true;
    price.account = reply.account = (char *)(uintptr_t) "phys";
    for (size_t i = 0; i < r->n_items; i++)
        prices[reply.n_prices++] = &price;
    reply.prices = prices;
    ProtobufCMessage *out = pbcopy (&reply.base);
    free (prices);
    return out;
}

static ProtobufCMessage *answer (const char *target, const char *method,
                                 const ProtobufCMessage *request)
{
    char site[64];
    snprintf (site, sizeof site, "%.*s", (int)strcspn (target, ":"), target);
    if (strcmp (method, "Query") == 0)
        return query_answer ();
    if (strcmp (method, "Prepare") == 0)
        return prepare_answer (site, (const Nui__Local__V1__PrepareRequest *)(const void *)request);
    if (strcmp (method, "Quote") == 0)
        return quote_answer ((const Nui__Bank__V1__QuoteRequest *)(const void *)request);
    if (strcmp (method, "Commit") == 0) {
        Nui__Local__V1__CommitReply reply = NUI__LOCAL__V1__COMMIT_REPLY__INIT;
        reply.outcome = NUI__LOCAL__V1__COMMIT_REPLY__OUTCOME__FIRM;
        return pbcopy (&reply.base);
    }
    if (strcmp (method, "Submit") == 0) {
        Nui__Local__V1__SubmitReply reply = NUI__LOCAL__V1__SUBMIT_REPLY__INIT;
        char id[80];
        snprintf (id, sizeof id, "%.60s.%llu", site, (unsigned long long)++meta.jobs);
        reply.accepted = true;
        reply.site_job_id = id;
        return pbcopy (&reply.base);
    }
    if (strcmp (method, "Vote") == 0) {
        Nui__Meta__V1__VoteReply reply = NUI__META__V1__VOTE_REPLY__INIT;
        reply.granted = true;
        return pbcopy (&reply.base);
    }
    if (strcmp (method, "Beat") == 0) {
        Nui__Meta__V1__BeatReply reply = NUI__META__V1__BEAT_REPLY__INIT;
        return pbcopy (&reply.base);
    }
    if (strcmp (method, "HandoverKey") == 0) {
        Nui__Bank__V1__HandoverKeyReply reply = NUI__BANK__V1__HANDOVER_KEY_REPLY__INIT;
        Nui__Bank__V1__HandoverKey key = NUI__BANK__V1__HANDOVER_KEY__INIT, *keys[] = {&key};
        static uint8_t secret[32] = {1};
        key.key = 1;
        key.begins_us = clock_now_us () - 3600 * US_PER_S;
        key.ends_us = clock_now_us () + 30 * 86400 * US_PER_S;
        key.secret = (ProtobufCBinaryData){sizeof secret, secret};
        reply.keys = keys;
        reply.n_keys = 1;
        return pbcopy (&reply.base);
    }
    return NULL;
}

/* ---- what there is */

static void name_of (uint32_t site, char out[32])
{
    static const char *const first[] = {"alpha", "beta"};
    if (site < 2)
        snprintf (out, 32, "%s", first[site]);
    else
        snprintf (out, 32, "site%03u", site);
}

static void report (uint32_t site, bool large)
{
    Nui__Meta__V1__SiteReport r = NUI__META__V1__SITE_REPORT__INIT;
    Nui__Meta__V1__StartEstimate estimate[ESTIMATES], *estimates[ESTIMATES];
    char name[32], server[40];
    name_of (site, name);
    snprintf (server, sizeof server, "%s:1", name);
    r.site = name;
    r.server = server;
    r.now_us = clock_now_us ();
    r.nodes_total = r.nodes_up = 1000;
    r.procs_total = r.procs_up = r.procs_free = 4000;
    r.procs_per_node_max = 4;
    r.memory_per_node_max_mb = 4096;
    for (uint32_t i = 0; i < (large ? ESTIMATES : 4); i++) {
        nui__meta__v1__start_estimate__init (&estimate[i]);
        estimate[i].procs = 1u << i % 12;
        estimate[i].walltime_us = (1 + i / 12) * 3600 * US_PER_S;
        estimate[i].start_us = r.now_us + (i + site) * 60 * US_PER_S;
        estimates[r.n_estimates++] = &estimate[i];
    }
    r.estimates = estimates;
    struct inproc_caller caller = {PRINCIPAL_SITE, name, false, 0};
    protobuf_c_message_free_unpacked (inproc_must ("Meta.Report", &caller, &r.base), NULL);
}

static void submit (uint64_t number, uint32_t components)
{
    Nui__Meta__V1__SubmitRequest r = NUI__META__V1__SUBMIT_REQUEST__INIT;
    r.envelope =
        plain_job (meta.ground, &(struct plain_job){.number = number, .components = components});
    protobuf_c_message_free_unpacked (inproc_must ("Meta.Submit", &callers[0], &r.base), NULL);
    envelope_free (r.envelope);
}

/* ---- arrays as large as they may be: one is there, one has ended, one comes new */

static char array_id[64];

static void array_submit (uint64_t number, char id_out[64])
{
    Nui__Meta__V1__SubmitRequest r = NUI__META__V1__SUBMIT_REQUEST__INIT;
    r.envelope = plain_job (meta.ground, &(struct plain_job){.number = number, .array = ARRAY});
    Nui__Meta__V1__SubmitReply *reply =
        (Nui__Meta__V1__SubmitReply *)inproc_must ("Meta.Submit", &callers[0], &r.base);
    snprintf (id_out, 64, "%.*s", (int)strcspn (reply->grid_job_id, "["), reply->grid_job_id);
    nui__meta__v1__submit_reply__free_unpacked (reply, NULL);
    envelope_free (r.envelope);
}

static void arrays_open (void)
{
    Nui__Meta__V1__JobRequest r = NUI__META__V1__JOB_REQUEST__INIT;
    char ended[64];
    inproc_patience (PATIENCE_ARRAY_MS);
    array_submit (900001, ended);
    r.grid_job_id = ended;
    protobuf_c_message_free_unpacked (inproc_must ("Meta.Cancel", &callers[0], &r.base), NULL);
    array_submit (900002, array_id);
    inproc_patience (PATIENCE_MS);
}

static void packed (struct wire *out, const ProtobufCMessage *message)
{
    out->len = protobuf_c_message_get_packed_size (message);
    free (out->bytes);
    out->bytes = malloc (out->len + 1);
    if (!out->bytes)
        abort ();
    out->cap = out->len + 1;
    protobuf_c_message_pack (message, out->bytes);
}

static void submit_of (struct wire *out, const struct plain_job *job)
{
    Nui__Meta__V1__SubmitRequest r = NUI__META__V1__SUBMIT_REQUEST__INIT;
    r.envelope = plain_job (meta.ground, job);
    packed (out, &r.base);
    envelope_free (r.envelope);
}

static void make_array (struct wire *out, uint64_t number)
{
    submit_of (out, &(struct plain_job){.number = number, .array = ARRAY});
}

static void make_ranges (struct wire *out, uint64_t number)
{
    submit_of (out, &(struct plain_job){
                        .number = number, .array = 2 * ARRAY_RANGES, .ranges = ARRAY_RANGES});
}

static void make_id (struct wire *out, uint64_t number)
{
    Nui__Meta__V1__JobRequest r = NUI__META__V1__JOB_REQUEST__INIT;
    (void)number;
    r.grid_job_id = array_id;
    packed (out, &r.base);
}

static void make_jobs (struct wire *out, bool of_array, bool elements)
{
    Nui__Meta__V1__JobsRequest r = NUI__META__V1__JOBS_REQUEST__INIT;
    r.grid_job_id = of_array ? array_id : (char *)protobuf_c_empty_string;
    r.elements = elements;
    r.ended = true;
    r.limit = 2000;
    packed (out, &r.base);
}

static void make_jobs_of (struct wire *out, uint64_t number)
{
    (void)number;
    make_jobs (out, true, false);
}

static void make_jobs_each (struct wire *out, uint64_t number)
{
    Nui__Meta__V1__JobsRequest r = NUI__META__V1__JOBS_REQUEST__INIT;
    (void)number;
    r.elements = r.ended = true;
    r.limit = 2000;
    r.before = strtoull (array_id + strlen ("grid."), NULL, 10); /* those that have ended */
    packed (out, &r.base);
}

static void make_jobs_all (struct wire *out, uint64_t number)
{
    (void)number;
    make_jobs (out, false, false);
}

static void make_hold (struct wire *out, uint64_t number)
{
    Nui__Meta__V1__HoldRequest r = NUI__META__V1__HOLD_REQUEST__INIT;
    (void)number;
    r.grid_job_id = array_id;
    r.held = true;
    packed (out, &r.base);
}

static void make_renew (struct wire *out, uint64_t number)
{
    Nui__Meta__V1__RenewRequest r = NUI__META__V1__RENEW_REQUEST__INIT;
    (void)number;
    r.grid_job_id = array_id;
    packed (out, &r.base);
}

static const struct world_more more[] = {
    {"Meta.Submit", "an array", make_array},
    {"Meta.Submit", "an array of many ranges", make_ranges},
    {"Meta.Status", "an array", make_id},
    {"Meta.Jobs", "those of an array", make_jobs_of},
    {"Meta.Jobs", "each that has ended", make_jobs_each},
    {"Meta.Jobs", "with arrays", make_jobs_all},
    {"Meta.Hold", "an array", make_hold},
    {"Meta.Renew", "an array", make_renew},
    {"Meta.Cancel", "an array", make_id},
    {NULL, NULL, NULL},
};

static void config_text (uint32_t sites)
{
    size_t len = (size_t)snprintf (
        meta.text, sizeof meta.text,
        "BANK bank:1\nLEASETIME 12\nMOVEINTERVAL 30\nNOTIFICATIONALLOW https://example.org/\n"
        "GRIDLICENSE[cad] COUNT=5\nTAKEOVERTIME 6\n");
    for (int m = 1; m <= 3; m++)
        len += (size_t)snprintf (meta.text + len, sizeof meta.text - len,
                                 "METACFG[meta%s] SERVER=meta%s:1\n",
                                 m == 1   ? ""
                                 : m == 2 ? "2"
                                          : "3",
                                 m == 1   ? ""
                                 : m == 2 ? "2"
                                          : "3");
    for (uint32_t s = 0; s < sites; s++) {
        char name[32];
        name_of (s, name);
        len += (size_t)snprintf (meta.text + len, sizeof meta.text - len,
                                 "SITECFG[%s] SERVER=%s:1\n", name, name);
    }
}

static void meta_open (struct ground *ground, bool large)
{
    struct err err = {0};
    uint32_t sites = large ? SITES_LARGE : SITES_SMALL, jobs = large ? JOBS_LARGE : JOBS_SMALL;
    meta.ground = ground;
    if (!meta.id) {
        testca_issue (ground->ca,
                      &(struct testca_cert){.name = "meta", .uri = "nui://test/meta/meta"});
        meta.id = testca_tlsid (ground->dir, "ca", "meta", true);
    }
    ground_clear (ground, meta.dir);
    config_text (sites);
    struct inproc_config config = {.id = meta.id,
                                   .dir = meta.dir,
                                   .conf_text = meta.text,
                                   .answer = answer,
                                   .patience_ms = PATIENCE_MS};
    inproc_open (&config);
    meta.conf = conf_parse (meta.text, strlen (meta.text), "the test", &err);
    meta.config = meta.conf ? metad_config_read (meta.conf, &err) : NULL;
    struct metad_env env = {
        .base = inproc_base (), .id = meta.id, .grid = "test", .state_dir = meta.dir};
    meta.metad = meta.config ? metad_create (&env, meta.config, &err) : NULL;
    if (!meta.metad || metad_serve (meta.metad, daemon_server (inproc_daemon ()), &err) != 0) {
        fprintf (stderr, "world_meta: %s\n", err.text);
        abort ();
    }
    for (uint32_t s = 0; s < sites; s++)
        report (s, large);
    for (uint32_t j = 1; j <= jobs; j++)
        submit (j, j % 8 == 0 ? 2 : 0);
    if (large)
        arrays_open ();
}

static void meta_close (void)
{
    metad_drain (meta.metad);
    metad_destroy (meta.metad);
    inproc_close ();
    metad_config_destroy (meta.config);
    conf_destroy (meta.conf);
}

struct world world = {.name = "nui-meta",
                      .callers = callers,
                      .strangers = strangers,
                      .more = more,
                      .open = meta_open,
                      .close = meta_close};
