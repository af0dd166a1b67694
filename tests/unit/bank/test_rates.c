/* What jobs are priced at, against the real nui-bank: quotes that keep their rates, and what a card looks
 * at, one after the other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "proto/base/clock.h"
#include "proto/rpc/envelope.h"
#include "tests/unit/bank/bankworld.h"

#define TEXT(s) ((char *)(uintptr_t)(s))
#define CREDIT MICRO_PER_CREDIT

static int fresh (void **state)
{
    return world_fresh (state, "rates", "QUOTELIMIT 1:00:00\n");
}

static struct bankd_reply call (struct world *w, enum bankd_who who, const char *method,
                                const ProtobufCMessage *m)
{
    struct bankd_reply reply = bankd_call (&w->d, who, method, m);
    if (reply.err.code)
        fail_msg ("%s: %s", method, reply.err.text);
    return reply;
}

static void refused (struct bankd_reply reply, int code, const char *part)
{
    if (reply.err.code != code || !strstr (reply.err.text, part))
        fail_msg ("got %d '%s', wanted %d '%s'", reply.err.code, reply.err.text, code, part);
    bankd_reply_free (&reply);
}

/* A new card; "kind name=ppm" each. */
static void publish (struct world *w, const char *site, int64_t ppm, const char *factors)
{
    uint8_t key[16];
    char words[512], *rest = NULL;
    Nui__Bank__V1__RateFactor factor[16], *factors_of[16];
    Nui__Bank__V1__RateSetRequest m = NUI__BANK__V1__RATE_SET_REQUEST__INIT;
    m.key = bankd_key (&w->d, key);
    m.site = TEXT (site);
    m.multiplier_ppm = ppm;
    m.factors = factors_of;
    snprintf (words, sizeof (words), "%s", factors);
    for (char *word = strtok_r (words, ";", &rest); word; word = strtok_r (NULL, ";", &rest)) {
        char *name = strchr (word, ' '), *value = strrchr (word, '=');
        *name = *value = '\0';
        nui__bank__v1__rate_factor__init (&factor[m.n_factors]);
        factor[m.n_factors].kind = word;
        factor[m.n_factors].name = name + 1;
        factor[m.n_factors].ppm = (int64_t)(strtod (value + 1, NULL) * 1e6 + 0.5);
        factors_of[m.n_factors] = &factor[m.n_factors];
        m.n_factors++;
    }
    struct bankd_reply reply = call (w, WHO_OPS, "RateSet", &m.base);
    bankd_reply_free (&reply);
}

/* ---- quotes that keep their rates ---- */

static Nui__Bank__V1__QuoteRequest keep (struct world *w, Nui__Common__V1__Envelope *envelope,
                                         Nui__Bank__V1__PriceItem **item, size_t items,
                                         duration_us time, uint8_t key[16])
{
    Nui__Bank__V1__QuoteRequest m = NUI__BANK__V1__QUOTE_REQUEST__INIT;
    for (size_t i = 0; i < items; i++) {
        nui__bank__v1__price_item__init (item[i]);
        item[i]->site = TEXT (i ? "beta" : "alpha");
        item[i]->procs = 2;
        item[i]->walltime_us = 100 * US_PER_S;
    }
    m.key = bankd_key (&w->d, key);
    m.envelope = envelope;
    m.items = item;
    m.n_items = items;
    m.keep_us = time;
    return m;
}

/* Alice's quote for alpha, or for both sites; its name in id. */
static void kept (struct world *w, size_t sites, duration_us time, bool reusable, char id[32])
{
    struct bankd_job job = {.account = "phys"};
    Nui__Common__V1__Envelope *envelope = bankd_sign (&w->d, WHO_ALICE, &job);
    Nui__Bank__V1__PriceItem item[2], *items[] = {&item[0], &item[1]};
    uint8_t key[16];
    Nui__Bank__V1__QuoteRequest m = keep (w, envelope, items, sites, time, key);
    m.reusable = reusable;
    struct bankd_reply reply = call (w, WHO_ALICE, "Quote", &m.base);
    const Nui__Bank__V1__QuoteReply *q = (void *)reply.message;
    assert_true (q->expires_us > 0);
    snprintf (id, 32, "%s", q->quote_id);
    bankd_reply_free (&reply);
    envelope_free (envelope);
}

static Nui__Common__V1__Envelope *sign (struct world *w, enum bankd_who who, const char *quote)
{
    struct bankd_job job = {.account = "phys", .quote = quote, .retries = 2};
    return bankd_sign (&w->d, who, &job);
}

/* A hold for 2 processors and 100 s at a site: its price in credits, or -1 with the reason's code and
 * sentence in why. */
static int64_t hold (struct world *w, enum bankd_who site, Nui__Common__V1__Envelope *envelope,
                     char id[32], char why[256])
{
    Nui__Bank__V1__HoldRequest m = NUI__BANK__V1__HOLD_REQUEST__INIT;
    uint8_t key[16];
    char name[32];
    snprintf (name, sizeof (name), "%s.%d", site == WHO_ALPHA ? "alpha" : "beta", ++w->jobs);
    m.key = bankd_key (&w->d, key);
    m.envelope = envelope;
    m.grid_job_id = TEXT ("grid.42");
    m.site_job_id = name;
    m.component = TEXT ("main");
    m.procs = 2;
    m.walltime_us = 100 * US_PER_S;
    struct bankd_reply reply = call (w, site, "Hold", &m.base);
    const Nui__Bank__V1__HoldReply *h = (void *)reply.message;
    int64_t amount = h->granted ? h->amount_micro / CREDIT : -1;
    snprintf (id, 32, "%s", h->hold_id);
    snprintf (why, 256, "%s: %s", h->granted ? "" : h->reason->code,
              h->granted ? "" : h->reason->text);
    bankd_reply_free (&reply);
    return amount;
}

static void expect (struct world *w, enum bankd_who site, Nui__Common__V1__Envelope *envelope,
                    int64_t credits, const char *part)
{
    char id[32], why[256];
    int64_t got = hold (w, site, envelope, id, why);
    if (got != credits || !strstr (why, part))
        fail_msg ("%lld credits '%s', wanted %lld '%s'", (long long)got, why, (long long)credits,
                  part);
}

/* What is charged without a hold (envelope), or with one: credits. */
static int64_t charge (struct world *w, Nui__Common__V1__Envelope *envelope, const char *held,
                       const char *job, time_us start)
{
    Nui__Bank__V1__ChargeRequest m = NUI__BANK__V1__CHARGE_REQUEST__INIT;
    Nui__Bank__V1__Ran ran = NUI__BANK__V1__RAN__INIT;
    uint8_t key[16];
    ran.nodes = 2;
    ran.memory_mb = 300;
    ran.submitted_us = start - US_PER_S;
    ran.local_user = TEXT ("games");
    ran.class_ = TEXT ("batch");
    m.ran = &ran;
    m.cpu_us = 70 * US_PER_S;
    m.key = bankd_key (&w->d, key);
    m.envelope = envelope;
    m.hold_id = TEXT (held);
    m.grid_job_id = TEXT ("grid.42");
    m.site_job_id = TEXT (job);
    m.component = TEXT ("main");
    m.procs = 2;
    m.start_us = start;
    m.end_us = start + 50 * US_PER_S;
    m.final = m.successful = true;
    struct bankd_reply reply = call (w, WHO_ALPHA, "Charge", &m.base);
    int64_t charged = ((Nui__Bank__V1__ChargeReply *)reply.message)->charged_micro / CREDIT;
    bankd_reply_free (&reply);
    return charged;
}

static void quote_keeps_its_rates (void **state)
{
    struct world *w = *state;
    char quote[32], id[32], why[256];
    kept (w, 2, 600 * US_PER_S, false, quote);
    assert_string_equal (quote, "quote.1");
    publish (w, "alpha", 3000000, "");
    publish (w, "beta", 5000000, "");
    Nui__Common__V1__Envelope *with = sign (w, WHO_ALICE, quote),
                              *without = sign (w, WHO_ALICE, NULL),
                              *late = sign (w, WHO_ALICE, quote);
    expect (w, WHO_ALPHA, without, 600, "");
    /* Both parts of a job have it, and it is charged so; the price follows what is asked for. */
    assert_int_equal (200, hold (w, WHO_ALPHA, with, id, why));
    expect (w, WHO_BETA, with, 250, "");
    char name[32];
    snprintf (name, sizeof (name), "alpha.%d", w->jobs - 1);
    assert_int_equal (100, charge (w, NULL, id, name, clock_now_us ()));
    /* What was used is no other job's. */
    expect (w, WHO_ALPHA, late, -1, "QuoteUsed: quote.1 is for one job, and grid.42 has used it");
    /* Also not after a restart of the bank; the job itself may be held again. */
    bankd_stop (&w->d, SIGKILL);
    bankd_start (&w->d, NUI_BANK_PROGRAM);
    assert_true (bankd_wait_serving (&w->d, true));
    expect (w, WHO_ALPHA, late, -1, "QuoteUsed");
    expect (w, WHO_ALPHA, with, 200, "");
    /* The journal says what was at a quote. */
    assert_int_equal (3, pg_fixture_number (w->sql, "SELECT count (*) FROM quote_use"));
    assert_int_equal (3, pg_fixture_number (w->sql, "SELECT count (*) FROM op WHERE note LIKE "
                                                    "'%, at the rates of quote.1'"));
    envelope_free (with);
    envelope_free (without);
    envelope_free (late);
}

static void quote_refused (void **state)
{
    struct world *w = *state;
    char ended[32], one[32], many[32];
    kept (w, 1, 1, false, ended);
    kept (w, 1, 600 * US_PER_S, false, one);
    kept (w, 1, 600 * US_PER_S, true, many);
    Nui__Common__V1__Envelope *e = sign (w, WHO_ALICE, ended);
    expect (w, WHO_ALPHA, e, -1, "QuoteExpired: quote.1 ended");
    envelope_free (e);
    e = sign (w, WHO_BOB, one);
    expect (w, WHO_ALPHA, e, -1, "QuoteForeign: quote.2 was not made for " BOB_URI);
    envelope_free (e);
    e = sign (w, WHO_ALICE, one);
    expect (w, WHO_BETA, e, -1, "QuoteSite: quote.2 keeps no rates of site beta");
    envelope_free (e);
    e = sign (w, WHO_ALICE, "quote.99");
    expect (w, WHO_ALPHA, e, -1, "NoQuote: there is no quote.99");
    envelope_free (e);
    e = sign (w, WHO_ALICE, "hold.1; DROP TABLE quote");
    expect (w, WHO_ALPHA, e, -1, "NoQuote: what the job names as its quote is none");
    envelope_free (e);
    publish (w, "alpha", 2000000, "");
    for (int i = 0; i < 3; i++) {
        e = sign (w, WHO_ALICE, many);
        expect (w, WHO_ALPHA, e, 200, "");
        envelope_free (e);
    }
    /* None of the refused has used it. */
    e = sign (w, WHO_ALICE, one);
    expect (w, WHO_ALPHA, e, 200, "");
    envelope_free (e);
}

/* How quotes are asked for: bounds, keys, and what is priced at one. */
static void quote_asked (void **state)
{
    struct world *w = *state;
    Nui__Common__V1__Envelope *envelope = sign (w, WHO_ALICE, NULL);
    Nui__Bank__V1__PriceItem item[2], *items[] = {&item[0], &item[1]};
    uint8_t key[16], a[1024], b[1024];
    Nui__Bank__V1__QuoteRequest m = keep (w, envelope, items, 1, 60 * US_PER_S, key);
    struct bankd_reply first = call (w, WHO_META, "Quote", &m.base);
    publish (w, "alpha", 7000000, "");
    struct bankd_reply again = call (w, WHO_META, "Quote", &m.base);
    size_t len = protobuf_c_message_pack (first.message, a);
    assert_int_equal (len, protobuf_c_message_pack (again.message, b));
    assert_memory_equal (a, b, len);
    assert_int_equal (1, pg_fixture_number (w->sql, "SELECT count (*) FROM quote"));
    m.reusable = true;
    refused (bankd_call (&w->d, WHO_META, "Quote", &m.base), ERR_CONFLICT, "used before");
    /* A price at a quote, and no quote from one. */
    Nui__Common__V1__Envelope *named = sign (w, WHO_ALICE, "quote.1");
    m = keep (w, named, items, 1, 0, key);
    struct bankd_reply price = call (w, WHO_ALICE, "Quote", &m.base);
    const Nui__Bank__V1__QuoteReply *q = (void *)price.message;
    assert_int_equal (q->prices[0]->amount_micro, 200 * CREDIT);
    assert_string_equal (q->quote_id, "");
    m = keep (w, named, items, 1, US_PER_S, key);
    refused (bankd_call (&w->d, WHO_ALICE, "Quote", &m.base), ERR_INVALID, "not by another one");
    m = keep (w, envelope, items, 1, 3601 * US_PER_S, key);
    refused (bankd_call (&w->d, WHO_ALICE, "Quote", &m.base), ERR_LIMIT, "at most for 1:00:00");
    m = keep (w, envelope, items, 1, -1, key);
    refused (bankd_call (&w->d, WHO_ALICE, "Quote", &m.base), ERR_LIMIT, "cannot be kept");
    m = keep (w, envelope, items, 1, US_PER_S, key);
    m.key.len = 3;
    refused (bankd_call (&w->d, WHO_ALICE, "Quote", &m.base), ERR_INVALID, "16");
    m = keep (w, envelope, items, 2, US_PER_S, key);
    items[1]->site = TEXT ("gamma");
    refused (bankd_call (&w->d, WHO_ALICE, "Quote", &m.base), ERR_CONFLICT, "no rate in force");
    m = keep (w, envelope, items, 1, US_PER_S, key);
    refused (bankd_call (&w->d, WHO_BOB, "Quote", &m.base), ERR_DENIED, "not by you");
    assert_int_equal (1, pg_fixture_number (w->sql, "SELECT count (*) FROM quote"));
    bankd_reply_free (&first);
    bankd_reply_free (&again);
    bankd_reply_free (&price);
    envelope_free (named);
    envelope_free (envelope);
}

/* C5: the bank was away when the job began. A charge is never refused for its quote. */
static void quote_unheld (void **state)
{
    struct world *w = *state;
    char one[32], ended[32];
    kept (w, 1, 600 * US_PER_S, false, one);
    kept (w, 1, 1, false, ended);
    publish (w, "alpha", 4000000, "");
    Nui__Common__V1__Envelope *with = sign (w, WHO_ALICE, one), *late = sign (w, WHO_ALICE, ended),
                              *other = sign (w, WHO_ALICE, one);
    time_us start = clock_now_us ();
    assert_int_equal (100, charge (w, with, "", "alpha.801", start));
    assert_int_equal (400, charge (w, late, "", "alpha.802", start));
    assert_int_equal (400, charge (w, other, "", "alpha.803", start));
    assert_int_equal (1, pg_fixture_number (w->sql, "SELECT count (*) FROM charge WHERE formula "
                                                    "LIKE '%at the rates of quote.1'"));
    assert_int_equal (2,
                      pg_fixture_number (w->sql, "SELECT count (*) FROM charge WHERE formula LIKE "
                                                 "'%quote.2 ended%' OR formula LIKE "
                                                 "'%quote.1 is for one job%'"));
    /* Reconciliation knows what it was due. */
    Nui__Bank__V1__JobListRequest list = NUI__BANK__V1__JOB_LIST_REQUEST__INIT;
    struct bankd_reply reply = call (w, WHO_ALPHA, "JobList", &list.base);
    const Nui__Bank__V1__JobListReply *jobs = (void *)reply.message;
    assert_int_equal (jobs->n_jobs, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal (jobs->jobs[i]->rate_version, i ? 2 : 1);
        assert_int_equal (jobs->jobs[i]->rate_due, i ? 2 : 1);
    }
    bankd_reply_free (&reply);
    /* What a charge tells of its run beside what it is priced by. */
    Nui__Bank__V1__UsageRecordsRequest ask = NUI__BANK__V1__USAGE_RECORDS_REQUEST__INIT;
    reply = call (w, WHO_ALPHA, "UsageRecords", &ask.base);
    const Nui__Bank__V1__UsageRecordsReply *told = (void *)reply.message;
    assert_int_equal (told->n_records, 3);
    const Nui__Bank__V1__UsageRecord *r = told->records[1];
    assert_string_equal (r->site_job_id, "alpha.802");
    assert_int_equal (r->amount_micro, 400 * CREDIT);
    assert_int_equal (r->op_id, r->charge_op_id);
    assert_true (r->start_us == start && r->since_us == start &&
                 r->end_us == start + 50 * US_PER_S);
    assert_int_equal (r->cpu_us, 70 * US_PER_S);
    assert_int_equal (r->ran->nodes, 2);
    assert_int_equal (r->ran->memory_mb, 300);
    assert_true (r->ran->submitted_us == start - US_PER_S);
    assert_string_equal (r->ran->local_user, "games");
    assert_string_equal (r->ran->class_, "batch");
    bankd_reply_free (&reply);
    envelope_free (with);
    envelope_free (late);
    envelope_free (other);
}

/* ---- what a card looks at ---- */

struct asked {
    const char *qos, *class_, *machine;
    int64_t pe_milli, memory_mb, gpus;
    const char *types[3]; /* "fat=4" */
    duration_us cpu;
    bool failed, group;
};

static void asked_fill (const struct asked *a, Nui__Bank__V1__Asked *m,
                        Nui__Bank__V1__NodeShare *share, Nui__Bank__V1__NodeShare **shares,
                        char names[3][32])
{
    nui__bank__v1__asked__init (m);
    m->pe_milli = a->pe_milli;
    m->nodes = shares;
    for (int i = 0; i < 3 && a->types[i]; i++) {
        nui__bank__v1__node_share__init (&share[i]);
        assert_int_equal (2, sscanf (a->types[i], "%31[^=]=%" SCNd64, names[i], &share[i].procs));
        share[i].type = names[i];
        shares[i] = &share[i];
        m->n_nodes++;
    }
}

/* Credits held for 4 processors and 100 s, and then charged for 50 s of them; held -1: not granted, with the
 * reason in why. */
struct cost {
    int64_t held, charged;
    char why[256];
};

static struct cost cost_of (struct world *w, const struct asked *at_hold,
                            const struct asked *at_charge)
{
    struct bankd_job job = {.account = "rich",
                            .memory_mb = at_hold->memory_mb,
                            .gpus = (uint32_t)at_hold->gpus,
                            .two = at_hold->group};
    Nui__Common__V1__Envelope *envelope = bankd_sign (&w->d, WHO_ALICE, &job);
    Nui__Bank__V1__HoldRequest h = NUI__BANK__V1__HOLD_REQUEST__INIT;
    Nui__Bank__V1__ChargeRequest c = NUI__BANK__V1__CHARGE_REQUEST__INIT;
    Nui__Bank__V1__Asked asked;
    Nui__Bank__V1__NodeShare share[3], *shares[3];
    struct cost cost = {.held = -1};
    uint8_t key[16];
    char name[32], names[3][32];
    snprintf (name, sizeof (name), "alpha.%d", ++w->jobs);
    asked_fill (at_hold, &asked, share, shares, names);
    h.key = bankd_key (&w->d, key);
    h.envelope = envelope;
    h.grid_job_id = h.site_job_id = name;
    h.component = TEXT ("main");
    h.procs = 4;
    h.walltime_us = 100 * US_PER_S;
    h.asked = &asked;
    h.qos = TEXT (at_hold->qos ? at_hold->qos : "");
    h.class_ = TEXT (at_hold->class_ ? at_hold->class_ : "");
    h.machine = TEXT (at_hold->machine ? at_hold->machine : "");
    struct bankd_reply reply = call (w, WHO_ALPHA, "Hold", &h.base);
    Nui__Bank__V1__HoldReply *r = (void *)reply.message;
    snprintf (cost.why, sizeof (cost.why), "%s", r->reason ? r->reason->text : "");
    if (r->granted) {
        cost.held = r->amount_micro / CREDIT;
        asked_fill (at_charge, &asked, share, shares, names);
        c.key = bankd_key (&w->d, key);
        c.hold_id = r->hold_id;
        c.grid_job_id = c.site_job_id = name;
        c.component = TEXT ("main");
        c.procs = 4;
        c.start_us = clock_now_us ();
        c.end_us = c.start_us + 50 * US_PER_S;
        c.cpu_us = at_charge->cpu;
        c.final = true;
        c.successful = !at_charge->failed;
        c.asked = &asked;
        struct bankd_reply charged = call (w, WHO_ALPHA, "Charge", &c.base);
        cost.charged = ((Nui__Bank__V1__ChargeReply *)charged.message)->charged_micro / CREDIT;
        bankd_reply_free (&charged);
    }
    bankd_reply_free (&reply);
    envelope_free (envelope);
    return cost;
}

static void costs (struct world *w, const struct asked *hold_asked,
                   const struct asked *charge_asked, int64_t held, int64_t charged)
{
    struct cost got = cost_of (w, hold_asked, charge_asked);
    if (got.held != held || got.charged != charged)
        fail_msg ("held %lld, charged %lld (%s), wanted %lld and %lld", (long long)got.held,
                  (long long)got.charged, got.why, (long long)held, (long long)charged);
}

static void costs_not (struct world *w, const struct asked *asked, const char *why)
{
    struct cost got = cost_of (w, asked, asked);
    if (got.held != -1 || !strstr (got.why, why))
        fail_msg ("held %lld '%s', wanted '%s'", (long long)got.held, got.why, why);
}

/* Each with a card that says nothing else: 4 processors for 100 s are 400 credits, for 50 s 200. */
static void every_factor (void **state)
{
    struct world *w = *state;
    const struct asked plain = {0};
    costs (w, &plain, &plain, 400, 200);
    publish (w, "alpha", 2500000, "");
    costs (w, &plain, &plain, 1000, 500);

    const struct asked high = {.qos = "high"}, low = {.qos = "low"};
    publish (w, "alpha", 1000000, "qos high=3;qos *=0.5");
    costs (w, &high, &plain, 1200, 600);
    costs (w, &low, &plain, 200, 100);
    publish (w, "alpha", 1000000, "qos high=3");
    costs_not (w, &low, "have none for QoS low");

    const struct asked gpu_class = {.class_ = "gpu"}, batch = {.class_ = "batch"};
    publish (w, "alpha", 1000000, "class gpu=2");
    costs (w, &gpu_class, &plain, 800, 400);
    costs_not (w, &batch, "have none for class batch");

    const struct asked gpus = {.gpus = 3}, memory = {.memory_mb = 2048};
    publish (w, "alpha", 1000000, "gres gpu=5");
    costs (w, &gpus, &plain, 1900, 950); /* 400 + 3 * 5 * 100 */
    publish (w, "alpha", 1000000, "gres tape=5");
    costs_not (w, &gpus, "have none for gres gpu");
    publish (w, "alpha", 1000000, "memory *=0.5");
    costs (w, &memory, &plain, 500, 250); /* 400 + 2 * 0.5 * 100 */

    const struct asked group = {.group = true};
    publish (w, "alpha", 1000000, "group *=1.5");
    costs (w, &group, &plain, 600, 300);
    costs (w, &plain, &plain, 400, 200);

    /* A hold at the dearest time; a charge at that of its use, here the whole week. */
    publish (w, "alpha", 1000000, "time Mon-Sun 00:00-24:00=0.5");
    costs (w, &plain, &plain, 400, 100);
    publish (w, "alpha", 1000000, "time Mon-Sun 00:00-24:00=2");
    costs (w, &plain, &plain, 800, 400);

    const struct asked phoenix = {.machine = "phoenix"}, other = {.machine = "old"};
    publish (w, "alpha", 1000000, "machine phoenix=2");
    costs (w, &phoenix, &plain, 800, 400);
    costs (w, &plain, &plain, 400, 200);
    costs_not (w, &other, "have none for machine old");
    publish (w, "alpha", 1000000, "machine phoenix=2;machine *=3");
    costs (w, &other, &plain, 1200, 600);
}

/* P3: by the processors on nodes of each type. */
static void node_types (void **state)
{
    struct world *w = *state;
    const struct asked plain = {0}, fat = {.types = {"fat=4"}},
                       mixed = {.types = {"fat=1", "thin=3"}}, old = {.types = {"old=1", "fat=3"}},
                       twice = {.types = {"fat=1", "fat=3"}};
    publish (w, "alpha", 1000000, "nodetype fat=4;nodetype thin=1");
    costs (w, &fat, &plain, 1600, 800);
    costs (w, &mixed, &plain, 700, 350); /* the mean is (4 + 3 * 1) / 4 */
    costs_not (w, &old, "have none for node type old");
    /* Not known: the dearest is held; charged is what it had, at the card that was pinned. */
    costs (w, &plain, &mixed, 1600, 350);
    costs (w, &plain, &plain, 1600, 200);
    costs (w, &mixed, &fat, 700, 800); /* it had others: an overrun */
    costs (w, &mixed, &old, 700, 350); /* the card has nothing for it */
    publish (w, "alpha", 1000000, "nodetype fat=4;nodetype *=2");
    costs (w, &old, &plain, 1400, 700); /* (2 + 3 * 4) / 4 */
    /* Not what a person would call a rate of node types. */
    Nui__Common__V1__Envelope *envelope = sign (w, WHO_ALICE, NULL);
    Nui__Bank__V1__HoldRequest m = NUI__BANK__V1__HOLD_REQUEST__INIT;
    Nui__Bank__V1__Asked asked;
    Nui__Bank__V1__NodeShare share[3], *shares[3];
    uint8_t key[16];
    char names[3][32];
    m.key = bankd_key (&w->d, key);
    m.envelope = envelope;
    m.site_job_id = TEXT ("alpha.900");
    m.procs = 4;
    m.walltime_us = US_PER_S;
    m.asked = &asked;
    asked_fill (&twice, &asked, share, shares, names);
    refused (bankd_call (&w->d, WHO_ALPHA, "Hold", &m.base), ERR_INVALID, "is there twice");
    asked_fill (&fat, &asked, share, shares, names);
    share[0].procs = -1;
    refused (bankd_call (&w->d, WHO_ALPHA, "Hold", &m.base), ERR_INVALID, "out of bounds");
    share[0].procs = INT64_MAX;
    refused (bankd_call (&w->d, WHO_ALPHA, "Hold", &m.base), ERR_INVALID, "out of bounds");
    share[0].procs = 4;
    share[0].type = TEXT ("fat=1 thin");
    refused (bankd_call (&w->d, WHO_ALPHA, "Hold", &m.base), ERR_INVALID, "node type");
    envelope_free (envelope);
}

/* A site's word for what memory is worth counts as far as an operator has registered it. */
static void proc_memory (struct world *w, int64_t mb)
{
    Nui__Bank__V1__SiteSetRequest m = NUI__BANK__V1__SITE_SET_REQUEST__INIT;
    uint8_t key[16];
    m.key = bankd_key (&w->d, key);
    m.site = TEXT ("alpha");
    m.keep_claims = m.keep_refunds = m.set_proc_memory = true;
    m.proc_memory_mb = mb;
    struct bankd_reply reply = call (w, WHO_OPS, "SiteSet", &m.base);
    bankd_reply_free (&reply);
}

/* DEBITALLWC and the like: what is measured, and which jobs pay. */
static void policies (void **state)
{
    struct world *w = *state;
    const struct asked plain = {0}, failed = {.failed = true}, cpu = {.cpu = 30 * US_PER_S},
                       much = {.cpu = 900 * US_PER_S}, pe = {.pe_milli = 6500, .memory_mb = 6500};
    proc_memory (w, 1000);
    costs (w, &plain, &failed, 400, 200);
    costs (w, &plain, &cpu, 400, 200);
    costs (w, &pe, &plain, 400, 200);
    Nui__Bank__V1__RateSetRequest m = NUI__BANK__V1__RATE_SET_REQUEST__INIT;
    uint8_t key[16];
    m.site = TEXT ("alpha");
    m.multiplier_ppm = 1000000;
    m.successful_only = true;
    m.key = bankd_key (&w->d, key);
    struct bankd_reply reply = call (w, WHO_OPS, "RateSet", &m.base);
    bankd_reply_free (&reply);
    costs (w, &plain, &plain, 400, 200);
    costs (w, &plain, &failed, 400, 0);
    m.successful_only = false;
    m.measure = TEXT ("cpu");
    m.key = bankd_key (&w->d, key);
    reply = call (w, WHO_OPS, "RateSet", &m.base);
    bankd_reply_free (&reply);
    costs (w, &plain, &cpu, 400, 30);
    costs (w, &plain, &much, 400, 200); /* never more than was dedicated */
    costs (w, &plain, &plain, 400, 200);
    m.measure = TEXT ("pe");
    m.key = bankd_key (&w->d, key);
    reply = call (w, WHO_OPS, "RateSet", &m.base);
    bankd_reply_free (&reply);
    costs (w, &pe, &plain, 650, 325);
    costs (w, &plain, &plain, 400, 200);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown (quote_keeps_its_rates, fresh, world_closed),
        cmocka_unit_test_setup_teardown (quote_refused, fresh, world_closed),
        cmocka_unit_test_setup_teardown (quote_asked, fresh, world_closed),
        cmocka_unit_test_setup_teardown (quote_unheld, fresh, world_closed),
        cmocka_unit_test_setup_teardown (every_factor, fresh, world_closed),
        cmocka_unit_test_setup_teardown (node_types, fresh, world_closed),
        cmocka_unit_test_setup_teardown (policies, fresh, world_closed),
    };
    return cmocka_run_group_tests (tests, world_up, world_down);
}
