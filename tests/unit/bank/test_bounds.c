/* The user's signature bounds every amount: what a site or a metascheduler asks for beyond it is refused, what a site
 * says that it used beyond it is disputed, and no account loses more than its user signed. Through the daemon, with
 * real signatures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "proto/base/clock.h"
#include "proto/rpc/envelope.h"
#include "tests/unit/bank/bankworld.h"

#define TEXT(s) ((char *)(uintptr_t)(s))
#define CREDIT MICRO_PER_CREDIT
#define DAY 86400

/* Clocks do not count: a job may be charged for what is still to come. */
static int fresh (void **state)
{
    return world_fresh (state, "bounds", "");
}

static int fresh_heard (void **state)
{
    char config[512];
    bankd_hear (&((struct world *)*state)->heard, config);
    strcat (config, "NOTIFICATIONEVENTS ReconOpen\n");
    return world_fresh (state, "heard", config);
}

static int fresh_clocks (void **state)
{
    return world_fresh (state, "clocks", "CHARGETOLERANCE 0:01:00\n");
}

static int fresh_window (void **state)
{
    return world_fresh (state, "window", "CHARGETOLERANCE 0:01:00\nREPLAYWINDOW 1:00:00\n");
}

static Nui__Common__V1__Envelope *sign (struct world *w, struct bankd_job job)
{
    job.account = "rich";
    return bankd_sign (&w->d, WHO_ALICE, &job);
}

struct ask {
    const char *part, *job, *hold;
    uint64_t procs;
    int64_t seconds, ago; /* of a charge: it began so long ago */
    uint32_t incarnation;
    bool failed, partial;
    int64_t pe, memory_mb; /* as the site says, with a processor equivalent for each thousandth */
    uint32_t gpus;
};

/* What the site says of it beside processors and time. */
struct asked {
    Nui__Bank__V1__Asked m;
    Nui__Common__V1__GenericResource gpu, *gres;
};

static Nui__Bank__V1__Asked *asked_fill (const struct ask *ask, struct asked *a)
{
    nui__bank__v1__asked__init (&a->m);
    nui__common__v1__generic_resource__init (&a->gpu);
    a->m.pe_milli = ask->pe * 1000;
    a->m.memory_mb = ask->memory_mb;
    a->gpu.name = TEXT ("gpu");
    a->gpu.count = ask->gpus;
    a->gres = &a->gpu;
    a->m.gres = &a->gres;
    a->m.n_gres = ask->gpus > 0;
    return &a->m;
}

/* The hold's id, or "" where it is refused for words. */
static void hold (struct world *w, Nui__Common__V1__Envelope *envelope, struct ask ask,
                  const char *words, char id[32])
{
    Nui__Bank__V1__HoldRequest m = NUI__BANK__V1__HOLD_REQUEST__INIT;
    uint8_t key[16];
    char got[512] = "";
    enum bankd_who who = ask.job[0] == 'b' ? WHO_BETA : WHO_ALPHA;
    m.key = bankd_key (&w->d, key);
    m.envelope = envelope;
    m.grid_job_id = TEXT ("grid.1");
    m.site_job_id = TEXT (ask.job);
    m.component = TEXT (ask.part ? ask.part : "main");
    m.procs = ask.procs;
    m.walltime_us = ask.seconds * US_PER_S;
    m.incarnation = ask.incarnation;
    struct asked asked;
    m.asked = asked_fill (&ask, &asked);
    struct bankd_reply reply = bankd_call (&w->d, who, "Hold", &m.base);
    const Nui__Bank__V1__HoldReply *h = (void *)reply.message;
    bool granted = h && h->granted;
    if (!h)
        snprintf (got, sizeof (got), "%s", reply.err.text);
    else if (!granted)
        snprintf (got, sizeof (got), "%s: %s", h->reason->code, h->reason->text);
    if (granted ? *words != '\0' : !*words || !strstr (got, words))
        fail_msg ("%s: got '%s', wanted '%s'", ask.job, got, words);
    snprintf (id, 32, "%s", granted ? h->hold_id : "");
    bankd_reply_free (&reply);
}

/* What a charge took in all, and of it is disputed. */
static void charge (struct world *w, Nui__Common__V1__Envelope *envelope, struct ask ask,
                    int64_t charged, int64_t disputed)
{
    Nui__Bank__V1__ChargeRequest m = NUI__BANK__V1__CHARGE_REQUEST__INIT;
    uint8_t key[16];
    m.key = bankd_key (&w->d, key);
    m.hold_id = TEXT (ask.hold ? ask.hold : "");
    m.envelope = ask.hold ? NULL : envelope;
    m.grid_job_id = TEXT ("grid.1");
    m.site_job_id = TEXT (ask.job);
    m.component = TEXT (ask.part ? ask.part : "main");
    m.incarnation = ask.incarnation;
    m.procs = ask.procs;
    m.start_us = clock_now_us () - ask.ago * US_PER_S;
    m.end_us = m.start_us + ask.seconds * US_PER_S;
    m.final = !ask.partial;
    m.successful = m.final && !ask.failed;
    struct asked asked;
    m.asked = asked_fill (&ask, &asked);
    struct bankd_reply reply =
        bankd_call (&w->d, ask.job[0] == 'b' ? WHO_BETA : WHO_ALPHA, "Charge", &m.base);
    assert_string_equal (reply.err.text, "");
    const Nui__Bank__V1__ChargeReply *r = (void *)reply.message;
    if (r->charged_micro != charged * CREDIT || r->disputed_micro != disputed * CREDIT)
        fail_msg ("%s: charged %.6f, disputed %.6f; wanted %lld and %lld", ask.job,
                  (double)r->charged_micro / CREDIT, (double)r->disputed_micro / CREDIT,
                  (long long)charged, (long long)disputed);
    bankd_reply_free (&reply);
}

static void extend (struct world *w, const char *id, int64_t seconds, const char *words)
{
    Nui__Bank__V1__ExtendRequest m = NUI__BANK__V1__EXTEND_REQUEST__INIT;
    uint8_t key[16];
    m.key = bankd_key (&w->d, key);
    m.hold_id = TEXT (id);
    m.walltime_us = seconds * US_PER_S;
    struct bankd_reply reply = bankd_call (&w->d, WHO_ALPHA, "Extend", &m.base);
    assert_string_equal (reply.err.text, "");
    const Nui__Bank__V1__ExtendReply *r = (void *)reply.message;
    if (r->granted ? *words != '\0' : !*words || !strstr (r->reason->text, words))
        fail_msg ("%s to %lld s: got '%s', wanted '%s'", id, (long long)seconds,
                  r->granted ? "granted" : r->reason->text, words);
    bankd_reply_free (&reply);
}

static void site_set (struct world *w, uint64_t node_procs, int64_t overrun_s,
                      int64_t proc_memory_mb)
{
    Nui__Bank__V1__SiteSetRequest m = NUI__BANK__V1__SITE_SET_REQUEST__INIT;
    uint8_t key[16];
    m.key = bankd_key (&w->d, key);
    m.site = TEXT ("alpha");
    m.keep_claims = m.keep_refunds = m.set_node_procs = m.set_overrun = m.set_proc_memory = true;
    m.node_procs = node_procs;
    m.proc_memory_mb = proc_memory_mb;
    m.overrun_us = overrun_s * US_PER_S;
    struct bankd_reply reply = bankd_call (&w->d, WHO_OPS, "SiteSet", &m.base);
    assert_string_equal (reply.err.text, "");
    bankd_reply_free (&reply);
}

/* What she is told that the job may be held for at most, at site alpha, for its day. */
static void most (struct world *w, Nui__Common__V1__Envelope *envelope, int64_t procs)
{
    Nui__Bank__V1__QuoteRequest m = NUI__BANK__V1__QUOTE_REQUEST__INIT;
    Nui__Bank__V1__PriceItem item = NUI__BANK__V1__PRICE_ITEM__INIT, *items[] = {&item};
    item.site = TEXT ("alpha");
    m.envelope = envelope;
    m.n_items = 1;
    m.items = items;
    struct bankd_reply reply = bankd_call (&w->d, WHO_ALICE, "Quote", &m.base);
    assert_string_equal (reply.err.text, "");
    assert_int_equal (procs * DAY * CREDIT,
                      ((Nui__Bank__V1__QuoteReply *)reply.message)->prices[0]->amount_micro);
    bankd_reply_free (&reply);
}

/* What alice's account has lost. */
static void paid (struct world *w, int64_t credits)
{
    assert_int_equal (credits * CREDIT,
                      pg_fixture_number (
                          w->sql, "SELECT sum (granted - posted) FROM bank.balance b JOIN "
                                  "bank.allocation l ON l.id = b.allocation_id JOIN bank.account a "
                                  "ON a.id = l.account_id WHERE a.project_id IS NOT NULL"));
}

static void again (struct world *w)
{
    bankd_stop (&w->d, SIGKILL);
    bankd_start (&w->d, NUI_BANK_PROGRAM);
    assert_true (bankd_wait_serving (&w->d, true));
}

/* Seen: signed for 1 task and 60 s, held for 1,000 processors. */
static void processors (void **state)
{
    struct world *w = *state;
    Nui__Common__V1__Envelope *job =
        sign (w, (struct bankd_job){.procs = 1, .walltime_us = 60 * US_PER_S});
    char id[32];
    hold (w, job, (struct ask){.job = "alpha.1", .procs = 1000, .seconds = 60},
          "BeyondSigned: 1000 processors asked, the user signed for at most 1 (site alpha "
          "has registered no --node-procs with the bank, nui site modify)",
          id);
    hold (w, job, (struct ask){.job = "alpha.1", .procs = 1, .seconds = 61},
          "BeyondSigned: 00:01:01 asked, the user signed a walltime of 00:01:00", id);
    hold (w, job, (struct ask){.job = "alpha.1", .procs = 1, .seconds = 60}, "", id);
    envelope_free (job);
}

/* Seen: the same by HoldGroup, from the metascheduler. */
static void groups (void **state)
{
    struct world *w = *state;
    Nui__Common__V1__Envelope *job = sign (w, (struct bankd_job){.procs = 4, .two = true});
    for (int beyond = 1; beyond >= 0; beyond--) {
        Nui__Bank__V1__HoldGroupRequest m = NUI__BANK__V1__HOLD_GROUP_REQUEST__INIT;
        Nui__Bank__V1__HoldRequest h[2], *holds[2] = {&h[0], &h[1]};
        uint8_t key[16];
        m.key = bankd_key (&w->d, key);
        m.envelope = job;
        m.n_holds = 2;
        m.holds = holds;
        for (int i = 0; i < 2; i++) {
            nui__bank__v1__hold_request__init (&h[i]);
            h[i].site = TEXT (i ? "beta" : "alpha");
            h[i].grid_job_id = TEXT ("grid.1");
            h[i].site_job_id = TEXT (i ? "beta.1" : "alpha.1");
            h[i].component = TEXT (i ? "other" : "main");
            h[i].procs = i && beyond ? 500 : 4;
            h[i].walltime_us = 60 * US_PER_S;
        }
        struct bankd_reply reply = bankd_call (&w->d, WHO_META, "HoldGroup", &m.base);
        assert_string_equal (reply.err.text, "");
        const Nui__Bank__V1__HoldGroupReply *r = (void *)reply.message;
        assert_int_equal (r->granted, !beyond);
        if (beyond)
            assert_string_equal (r->reason->code, "BeyondSigned");
        bankd_reply_free (&reply);
    }
    envelope_free (job);
}

/* Where nodes are given whole: what the job says that it accepts, else as the site's are registered. */
static void whole_nodes (void **state)
{
    struct world *w = *state;
    char id[32];
    Nui__Common__V1__Envelope *loose = sign (w, (struct bankd_job){.procs = 2, .tasks = 10}),
                              *nodes =
                                  sign (w, (struct bankd_job){.procs = 1, .tasks = 8, .nodes = 4}),
                              *accepts = sign (
                                  w, (struct bankd_job){.procs = 1, .tasks = 2, .procs_max = 12});
    hold (w, loose, (struct ask){.job = "alpha.1", .procs = 21, .seconds = 60}, "at most 20", id);
    hold (w, accepts, (struct ask){.job = "alpha.3", .procs = 13, .seconds = 60}, "at most 12", id);
    most (w, loose, 20);
    most (w, accepts, 12);
    site_set (w, 16, 0, 0);
    again (w);
    most (w, loose, 32);
    most (w, nodes, 64);
    most (w, accepts, 12);
    hold (w, loose, (struct ask){.job = "alpha.1", .procs = 33, .seconds = 60}, "at most 32", id);
    hold (w, loose, (struct ask){.job = "alpha.1", .procs = 32, .seconds = 60}, "", id);
    hold (w, nodes, (struct ask){.job = "alpha.2", .procs = 65, .seconds = 60}, "at most 64", id);
    hold (w, nodes, (struct ask){.job = "alpha.2", .procs = 64, .seconds = 60}, "", id);
    hold (w, accepts, (struct ask){.job = "alpha.3", .procs = 13, .seconds = 60}, "at most 12", id);
    hold (w, accepts, (struct ask){.job = "alpha.3", .procs = 12, .seconds = 60}, "", id);
    envelope_free (loose);
    envelope_free (nodes);
    envelope_free (accepts);
}

/* Seen: Extend looked at neither the signed walltime nor the most that the job may cost. */
static void longer (void **state)
{
    struct world *w = *state;
    Nui__Common__V1__Envelope *job =
        sign (w, (struct bankd_job){
                     .procs = 2, .walltime_us = 1000 * US_PER_S, .cost_max_micro = 1000 * CREDIT});
    char id[32];
    hold (w, job, (struct ask){.job = "alpha.1", .procs = 2, .seconds = 100}, "", id);
    again (w);
    extend (w, id, 1001, "the user signed a walltime of 00:16:40");
    extend (w, id, 501, "costs 1002 credits, the job allows at most 1000");
    extend (w, id, 500, "");
    extend (w, id, 501, "costs 1002 credits");
    envelope_free (job);
}

/* What a job may cost is for its parts together, and for its runs together, also those that a killed bank has made. */
static void cost (void **state)
{
    struct world *w = *state;
    struct bankd_job two = {.procs = 2, .two = true, .cost_max_micro = 500 * CREDIT},
                     retried = {.procs = 2, .retries = 3, .cost_max_micro = 500 * CREDIT};
    Nui__Common__V1__Envelope *job = sign (w, two);
    char a[32], b[32];
    hold (w, job, (struct ask){.job = "alpha.1", .procs = 2, .seconds = 150}, "", a);
    hold (
        w, job, (struct ask){.job = "alpha.2", .part = "other", .procs = 2, .seconds = 101},
        "CostExceeded: costs 202 credits, the job allows at most 500, 300 of them for what it has had",
        b);
    hold (w, job, (struct ask){.job = "alpha.2", .part = "other", .procs = 2, .seconds = 100}, "",
          b);
    extend (w, b, 101, "costs 502 credits, the job allows at most 500, 300 of them");
    extend (w, a, 151, "at most 500, 200 of them for what it has had");
    charge (w, NULL, (struct ask){.job = "alpha.1", .hold = a, .procs = 2, .seconds = 50}, 100, 0);
    extend (w, b, 200, "");
    envelope_free (job);

    job = sign (w, retried);
    hold (w, job, (struct ask){.job = "alpha.11", .procs = 2, .seconds = 100}, "", a);
    charge (w, NULL,
            (struct ask){.job = "alpha.11", .hold = a, .procs = 2, .seconds = 100, .failed = true},
            200, 0);
    again (w);
    hold (w, job, (struct ask){.job = "alpha.12", .procs = 2, .seconds = 151}, "CostExceeded", a);
    /* Without a hold likewise: what is beyond is disputed. */
    charge (w, job, (struct ask){.job = "alpha.13", .procs = 2, .seconds = 100, .failed = true},
            200, 0);
    charge (w, job, (struct ask){.job = "alpha.14", .procs = 2, .seconds = 100}, 200, 100);
    envelope_free (job);
    paid (w, 100 + 500);
}

static int64_t rows (struct world *w, const char *where)
{
    char sql[512];
    snprintf (sql, sizeof (sql),
              "SELECT count (*) FROM bank.recon_row r WHERE class = 'DISPUTED' AND %s", where);
    return pg_fixture_number (w->sql, sql);
}

/* The row is somebody's, and closed by the refund that gives back to nobody what nobody had paid. */
static void settle (struct world *w)
{
    Nui__Bank__V1__ReconListRequest list = NUI__BANK__V1__RECON_LIST_REQUEST__INIT;
    Nui__Bank__V1__ReconSetRequest set = NUI__BANK__V1__RECON_SET_REQUEST__INIT;
    Nui__Bank__V1__RefundRequest refund = NUI__BANK__V1__REFUND_REQUEST__INIT;
    uint8_t key[16];
    struct bankd_reply reply = bankd_call (&w->d, WHO_OPS, "ReconList", &list.base);
    assert_string_equal (reply.err.text, "");
    const Nui__Bank__V1__ReconListReply *r = (void *)reply.message;
    assert_int_equal (r->n_rows, 1);
    const Nui__Bank__V1__Finding *f = r->rows[0]->finding;
    assert_string_equal (f->class_, "DISPUTED");
    refund.key = bankd_key (&w->d, key);
    refund.charge_op_id = (uint64_t)f->charge_op_id;
    refund.amount_micro = f->amount_micro;
    refund.reason = TEXT ("never ran");
    struct bankd_reply done = bankd_call (&w->d, WHO_OPS, "Refund", &refund.base);
    assert_string_equal (done.err.text, "");
    bankd_reply_free (&done);
    int64_t op = pg_fixture_number (w->sql, "SELECT max (id) FROM bank.op WHERE kind = 'refund'");
    set.row = r->rows[0]->row;
    for (int i = 0; i < 2; i++) {
        set.key = bankd_key (&w->d, key);
        set.owner = TEXT (i ? "" : "nui://test/operator/ops");
        set.close = i;
        set.op_id = i ? (uint64_t)op : 0;
        set.note = TEXT (i ? "" : "mine");
        done = bankd_call (&w->d, WHO_OPS, "ReconSet", &set.base);
        assert_string_equal (done.err.text, "");
        bankd_reply_free (&done);
    }
    bankd_reply_free (&reply);
    reply = bankd_call (&w->d, WHO_OPS, "ReconList", &list.base);
    assert_int_equal (((const Nui__Bank__V1__ReconListReply *)reply.message)->n_rows, 0);
    bankd_reply_free (&reply);
}

/* Seen: 1,000 processors for a day on a hold for 60 s took 86,400,000 credits. Running beyond the limits is not lost,
 * it is disputed. */
static void beyond_its_hold (void **state)
{
    struct world *w = *state;
    Nui__Common__V1__Envelope *job =
        sign (w, (struct bankd_job){.procs = 1, .walltime_us = 60 * US_PER_S});
    char id[32];
    hold (w, job, (struct ask){.job = "alpha.1", .procs = 1, .seconds = 60}, "", id);
    charge (w, NULL, (struct ask){.job = "alpha.1", .hold = id, .procs = 1000, .seconds = DAY - 10},
            86390000, 86390000 - 60);
    paid (w, 60);
    assert_int_equal (
        1,
        rows (w, "site = 'alpha' AND site_job = 'alpha.1' AND hold = 'hold.1' AND account = 'rich' "
                 "AND identity = 'nui://test/user/alice' AND bank_ps = 60000000 AND "
                 "note LIKE '%1000 processors, 1 are allowed%'"));
    assert_int_equal (
        1, pg_fixture_number (
               w->sql,
               "SELECT count (*) FROM bank.op WHERE kind = 'charge' AND "
               "note LIKE '%of which 86389940 credits are disputed, beyond what "
               "was signed: ran 23:59:50, 00:01:00 are allowed (site alpha has registered no "
               "--overrun with the bank, nui site modify), 1000 processors, 1 are allowed (site "
               "alpha has registered no --node-procs with the bank, nui site modify)%'"));
    bankd_wait_heard (
        &w->heard,
        "ReconOpen|alpha|rows of reconciliation with site alpha are nobody's (1; nui reconcile list), "
        "the first: ran 23:59:50, 00:01:00 are allowed",
        1);
    settle (w);
    paid (w, 60);
    bankd_wait_heard (
        &w->heard,
        "ReconOwned|alpha|every row of reconciliation with site alpha has an owner or is closed|test",
        1);
    bankd_wait_heard (&w->heard, "|", 2);
    envelope_free (job);
}

/* A site may be registered to let jobs run on; partial charges say the same as one. */
static void overrun (void **state)
{
    struct world *w = *state;
    Nui__Common__V1__Envelope *job =
        sign (w, (struct bankd_job){.procs = 2, .walltime_us = 60 * US_PER_S});
    char id[32];
    site_set (w, 0, 30, 0);
    hold (w, job, (struct ask){.job = "alpha.1", .procs = 2, .seconds = 60}, "", id);
    charge (w, NULL,
            (struct ask){.job = "alpha.1", .hold = id, .procs = 2, .seconds = 80, .partial = true},
            160, 0);
    again (w);
    charge (w, NULL,
            (struct ask){.job = "alpha.1", .hold = id, .procs = 2, .seconds = 100, .partial = true},
            40, 20);
    charge (w, NULL, (struct ask){.job = "alpha.1", .hold = id, .procs = 2, .seconds = 110}, 20,
            20);
    paid (w, 180);
    assert_int_equal (2, rows (w, "true"));
    envelope_free (job);
}

/* Seen, of charges without a hold: a site that was not named, thrice; a part that there is not. */
static void unheld (void **state)
{
    struct world *w = *state;
    const char *sites[] = {"beta"};
    Nui__Common__V1__Envelope
        *elsewhere = sign (w, (struct bankd_job){.procs = 1, .sites = sites, .site_count = 1}),
        *job = sign (w, (struct bankd_job){.procs = 1, .walltime_us = 60 * US_PER_S}),
        *part = sign (w, (struct bankd_job){.procs = 1}),
        *foreign = sign (w, (struct bankd_job){.procs = 1, .grid = "elsewhere"});
    char names[3][32], id[32];
    for (int i = 0; i < 3; i++) {
        snprintf (names[i], sizeof (names[i]), "alpha.%d", i + 1);
        charge (w, elsewhere, (struct ask){.job = names[i], .procs = 1, .seconds = 50}, 50, 50);
    }
    charge (w, part, (struct ask){.job = "alpha.4", .part = "third", .procs = 1, .seconds = 50}, 50,
            50);
    charge (w, foreign, (struct ask){.job = "alpha.5", .procs = 1, .seconds = 50}, 50, 50);
    paid (w, 0);
    assert_int_equal (5, rows (w, "account = 'bank:suspense' AND bank_ps = 0"));
    /* What was signed is paid for, once; whatever its site calls it, and however often. */
    charge (w, job, (struct ask){.job = "alpha.6", .procs = 3, .seconds = 100}, 300, 240);
    paid (w, 60);
    again (w);
    charge (w, job, (struct ask){.job = "alpha.7", .procs = 1, .seconds = 50}, 50, 50);
    charge (w, job, (struct ask){.job = "alpha.6", .procs = 1, .seconds = 50, .incarnation = 1}, 50,
            50);
    hold (w, job, (struct ask){.job = "alpha.8", .procs = 1, .seconds = 50}, "RunsUsedUp", id);
    paid (w, 60);
    envelope_free (elsewhere);
    envelope_free (job);
    envelope_free (part);
    envelope_free (foreign);
}

/* Nobody handed it over, or the bank does not know who signed it: recorded, and disputed whole, not refused for good. */
static void unheld_unsigned (void **state)
{
    struct world *w = *state;
    Nui__Common__V1__Envelope *kept = sign (w, (struct bankd_job){.procs = 1}), *foreign;
    struct testca *other = testca_create (w->d.dir, "other");
    struct testca_cert cert = {.name = "alice-elsewhere", .uri = ALICE_URI};
    struct tlsid *alice = w->d.id[WHO_ALICE];
    testca_issue (other, &cert);
    w->d.id[WHO_ALICE] = testca_tlsid (w->d.dir, "other", "alice-elsewhere", false);
    foreign = sign (w, (struct bankd_job){.procs = 1});
    tlsid_destroy (w->d.id[WHO_ALICE]);
    w->d.id[WHO_ALICE] = alice;
    w->d.keep_envelopes = true;
    charge (w, kept, (struct ask){.job = "alpha.1", .procs = 1, .seconds = 50}, 50, 50);
    w->d.keep_envelopes = false;
    assert_int_equal (
        1,
        rows (
            w,
            "account = 'bank:suspense' AND bank_ps = 0 AND site_job = 'alpha.1' AND note LIKE '%hand%'"));
    charge (w, foreign, (struct ask){.job = "alpha.2", .procs = 1, .seconds = 50}, 50, 50);
    assert_int_equal (
        1, rows (w, "account = 'bank:suspense' AND bank_ps = 0 AND site_job = 'alpha.2' AND "
                    "identity = 'nui://test/site/alpha' AND note LIKE 'no user''s signature: %'"));
    paid (w, 0);
    /* The signed one with its hand-over, later, is the user's. */
    charge (w, kept, (struct ask){.job = "alpha.3", .procs = 1, .seconds = 50}, 50, 0);
    paid (w, 50);
    envelope_free (kept);
    envelope_free (foreign);
    testca_destroy (other);
}

/* What the bank could not tell whose it was, is told by a person: the row's refund and a charge by hand settle it. */
static void unknown_settled (void **state)
{
    struct world *w = *state;
    struct tlsid *alice = w->d.id[WHO_ALICE];
    struct testca *other = testca_create (w->d.dir, "other");
    struct testca_cert cert = {.name = "alice-elsewhere", .uri = ALICE_URI};
    testca_issue (other, &cert);
    w->d.id[WHO_ALICE] = testca_tlsid (w->d.dir, "other", "alice-elsewhere", false);
    Nui__Common__V1__Envelope *foreign = sign (w, (struct bankd_job){.procs = 1});
    tlsid_destroy (w->d.id[WHO_ALICE]);
    w->d.id[WHO_ALICE] = alice;
    charge (w, foreign, (struct ask){.job = "alpha.2", .procs = 1, .seconds = 50}, 50, 50);
    settle (w);
    paid (w, 0);
    envelope_free (foreign);
    testca_destroy (other);
}

/* Seen: paid for by its hold, and then again without one. */
static void used_up (void **state)
{
    struct world *w = *state;
    Nui__Common__V1__Envelope *job = sign (w, (struct bankd_job){.procs = 2});
    char id[32];
    hold (w, job, (struct ask){.job = "alpha.1", .procs = 2, .seconds = 100}, "", id);
    charge (w, job, (struct ask){.job = "beta.1", .procs = 2, .seconds = 100}, 250,
            250); /* it is held at alpha */
    charge (w, NULL, (struct ask){.job = "alpha.1", .hold = id, .procs = 2, .seconds = 100}, 200,
            0);
    charge (w, job, (struct ask){.job = "alpha.2", .procs = 2, .seconds = 100}, 200, 200);
    paid (w, 200);
    envelope_free (job);
}

/* Seen: after a job ended well, incarnation 1, 2, … got holds without limit. What its site starts again because it
 * did not end well does, so often. */
static void incarnations (void **state)
{
    struct world *w = *state;
    Nui__Common__V1__Envelope *well = sign (w, (struct bankd_job){.procs = 1}),
                              *evicted = sign (w, (struct bankd_job){.procs = 1}),
                              *once = sign (w, (struct bankd_job){.procs = 1, .flag = "NORESTART"});
    char id[32];
    hold (w, well, (struct ask){.job = "alpha.1", .procs = 1, .seconds = 10}, "", id);
    charge (w, NULL, (struct ask){.job = "alpha.1", .hold = id, .procs = 1, .seconds = 10}, 10, 0);
    for (uint32_t i = 1; i < 3; i++)
        hold (
            w, well, (struct ask){.job = "alpha.1", .procs = 1, .seconds = 10, .incarnation = i},
            "RunsUsedUp: part main of this signed job has ended well as often as its user signed for (1)",
            id);
    struct ask run = {.job = "alpha.2", .procs = 1, .seconds = 10, .failed = true};
    for (; run.incarnation <= 16; run.incarnation++) {
        hold (w, evicted, run, "", id);
        run.hold = id;
        charge (w, NULL, run, 10, 0);
    }
    again (w);
    hold (w, evicted, run,
          "RunsUsedUp: site alpha has started part main of this signed job 17 times: it may 17",
          id);
    run = (struct ask){.job = "alpha.3", .procs = 1, .seconds = 10, .failed = true};
    hold (w, once, run, "", id);
    run.hold = id;
    charge (w, NULL, run, 10, 0);
    run.incarnation = 1;
    hold (w, once, run, "RunsUsedUp", id);
    envelope_free (well);
    envelope_free (evicted);
    envelope_free (once);
}

/* Seen: a charge that ends 24 hours ahead, for an expired job; and before its hold was made. */
static void clocks (void **state)
{
    struct world *w = *state;
    Nui__Common__V1__Envelope
        *job = sign (w, (struct bankd_job){.procs = 1}),
        *ahead = sign (w, (struct bankd_job){.procs = 1, .age_us = 1000 * US_PER_S}),
        *expired = sign (w, (struct bankd_job){.procs = 1,
                                               .age_us = 1000 * US_PER_S,
                                               .expires_us = clock_now_us () - 500 * US_PER_S}),
        *late = sign (w, (struct bankd_job){.procs = 1, .age_us = 1000 * US_PER_S});
    char id[32];
    /* An hour before its hold, for an hour: of that at most the minute that clocks may differ by. */
    hold (w, job, (struct ask){.job = "alpha.1", .procs = 1, .seconds = 7200}, "", id);
    charge (w, NULL,
            (struct ask){.job = "alpha.1", .hold = id, .procs = 1, .seconds = 3000, .ago = 3600},
            3000, 3000);
    paid (w, 0);
    assert_int_equal (1, rows (w, "note LIKE 'began 0%before its hold'"));
    charge (w, expired, (struct ask){.job = "alpha.2", .procs = 1, .seconds = 50, .ago = 100}, 50,
            50);
    charge (w, expired, (struct ask){.job = "alpha.3", .procs = 1, .seconds = 50, .ago = 600}, 50,
            0);
    charge (w, late, (struct ask){.job = "alpha.4", .procs = 1, .seconds = 50, .ago = 5000}, 50,
            50);
    paid (w,
          0); /* not disputed, but older than the site's rate: it waits on bank:suspense for that */
    Nui__Bank__V1__ChargeRequest m = NUI__BANK__V1__CHARGE_REQUEST__INIT;
    uint8_t key[16];
    m.key = bankd_key (&w->d, key);
    m.envelope = ahead;
    m.site_job_id = TEXT ("alpha.5");
    m.component = TEXT ("main");
    m.procs = 1;
    m.start_us = clock_now_us ();
    m.end_us = m.start_us + (DAY - 10) * US_PER_S;
    m.final = m.successful = true;
    struct bankd_reply reply = bankd_call (&w->d, WHO_ALPHA, "Charge", &m.base);
    assert_string_equal (reply.err.text, "");
    const Nui__Bank__V1__ChargeReply *r = (void *)reply.message;
    assert_int_equal (r->charged_micro, (DAY - 10) * CREDIT);
    int64_t own = r->charged_micro - r->disputed_micro;
    assert_in_range (own, 60 * CREDIT, 120 * CREDIT);
    assert_int_equal (1, rows (w, "note LIKE 'ended 23:5%ahead of the bank''s clock'"));
    bankd_reply_free (&reply);
    envelope_free (job);
    envelope_free (ahead);
    envelope_free (expired);
    envelope_free (late);
}

/* What a job was charged before its expiry is forgotten a window later: what is told then cannot be paid for again. */
static void forgotten (void **state)
{
    struct world *w = *state;
    Nui__Common__V1__Envelope *known = sign (w, (struct bankd_job){.procs = 1,
                                                                   .age_us = 2 * 3600 * US_PER_S -
                                                                             600 * US_PER_S}),
                              *job = sign (
                                  w, (struct bankd_job){.procs = 1, .age_us = 3 * 3600 * US_PER_S});
    charge (w, known, (struct ask){.job = "alpha.1", .procs = 1, .seconds = 50, .ago = 6000}, 50,
            0);
    charge (w, job, (struct ask){.job = "alpha.2", .procs = 1, .seconds = 50, .ago = 9000}, 50, 50);
    assert_int_equal (
        1,
        rows (w, "site_job = 'alpha.2' AND note LIKE 'so long after the signed job''s expiry %'"));
    envelope_free (known);
    envelope_free (job);
}

/* A site's jobs are named after it: none can be charged as another's. */
static void job_ids (void **state)
{
    static const char *const bad[] = {"beta.1",   "alpha",      "alpha.",      "alpha.x",
                                      "alpha.01", "alphabet.1", "alpha.john.1"};
    struct world *w = *state;
    uint8_t key[16];
    for (size_t i = 0; i < sizeof (bad) / sizeof (bad[0]); i++) {
        Nui__Bank__V1__ChargeRequest m = NUI__BANK__V1__CHARGE_REQUEST__INIT;
        m.key = bankd_key (&w->d, key);
        m.site_job_id = TEXT (bad[i]);
        m.component = TEXT ("main");
        struct bankd_reply reply = bankd_call (&w->d, WHO_ALPHA, "Charge", &m.base);
        assert_int_equal (ERR_INVALID, reply.err.code);
        assert_non_null (strstr (reply.err.text, "is no job of site alpha"));
        Nui__Bank__V1__HoldRequest h = NUI__BANK__V1__HOLD_REQUEST__INIT;
        h.key = bankd_key (&w->d, key);
        h.site_job_id = TEXT (bad[i]);
        reply = bankd_call (&w->d, WHO_ALPHA, "Hold", &h.base);
        assert_int_equal (ERR_INVALID, reply.err.code);
        assert_non_null (strstr (reply.err.text, "is no job of site alpha"));
    }
    Nui__Bank__V1__SiteClaim claim = NUI__BANK__V1__SITE_CLAIM__INIT;
    claim.identity = TEXT (ALICE_URI);
    claim.account = TEXT ("phys");
    Nui__Bank__V1__ChargeRequest idle =
        NUI__BANK__V1__CHARGE_REQUEST__INIT; /* what a reservation kept idle */
    idle.key = bankd_key (&w->d, key);
    idle.site_job_id = TEXT ("alpha.john.1");
    idle.component = TEXT ("idle");
    idle.claim = &claim;
    idle.procs = 1;
    idle.end_us = clock_now_us ();
    idle.start_us = idle.end_us - 10 * US_PER_S;
    idle.final = true;
    struct bankd_reply reply = bankd_call (&w->d, WHO_ALPHA, "Charge", &idle.base);
    assert_string_equal ("", reply.err.text);
    bankd_reply_free (&reply);
}

static void rate (struct world *w, const char *measure, int64_t memory_ppm, int64_t gpu_ppm)
{
    Nui__Bank__V1__RateSetRequest m = NUI__BANK__V1__RATE_SET_REQUEST__INIT;
    Nui__Bank__V1__RateFactor memory = NUI__BANK__V1__RATE_FACTOR__INIT,
                              gpu = NUI__BANK__V1__RATE_FACTOR__INIT, *factors[] = {&memory, &gpu};
    uint8_t key[16];
    m.key = bankd_key (&w->d, key);
    m.site = TEXT ("alpha");
    m.multiplier_ppm = 1000000;
    m.measure = TEXT (measure);
    memory.kind = TEXT ("memory");
    memory.name = TEXT ("*");
    memory.ppm = memory_ppm;
    gpu.kind = TEXT ("gres");
    gpu.name = TEXT ("gpu");
    gpu.ppm = gpu_ppm;
    m.n_factors = memory_ppm ? 2 : 0;
    m.factors = factors;
    struct bankd_reply reply = bankd_call (&w->d, WHO_OPS, "RateSet", &m.base);
    assert_string_equal (reply.err.text, "");
    bankd_reply_free (&reply);
}

static void held (struct world *w, int64_t credits)
{
    assert_int_equal (
        credits * CREDIT,
        pg_fixture_number (w->sql, "SELECT amount FROM bank.hold ORDER BY id DESC LIMIT 1"));
}

/* Where processor equivalents are charged, memory is worth processors: as many as what was signed is, by the memory
 * that the site registered for one, in a hold, in its charge, and in a charge without one. */
static void equivalents (void **state)
{
    struct world *w = *state;
    struct bankd_job signed_ = {.procs = 1, .memory_mb = 4000, .walltime_us = 60 * US_PER_S};
    Nui__Common__V1__Envelope *job = sign (w, signed_), *unheld = sign (w, signed_);
    char id[32];
    site_set (w, 0, 0, 1000);
    rate (w, "pe", 0, 0);
    hold (w, job, (struct ask){.job = "alpha.1", .procs = 1, .seconds = 60, .pe = 100}, "", id);
    held (w, 4 * 60);
    again (w);
    charge (w, NULL,
            (struct ask){.job = "alpha.1", .hold = id, .procs = 1, .seconds = 60, .pe = 100},
            100 * 60, 96 * 60);
    charge (w, unheld, (struct ask){.job = "alpha.2", .procs = 1, .seconds = 60, .pe = 100},
            100 * 60, 96 * 60);
    paid (w, 2 * 4 * 60);
    assert_int_equal (2, rows (w, "note LIKE '%more processor equivalents than were held%'"));
    envelope_free (job);
    envelope_free (unheld);
}

/* Memory and generic resources are what was signed, whatever the site says of them. */
static void memory_and_gres (void **state)
{
    struct world *w = *state;
    struct bankd_job signed_ = {
        .procs = 1, .memory_mb = 2048, .gpus = 2, .walltime_us = 60 * US_PER_S};
    Nui__Common__V1__Envelope *job = sign (w, signed_), *unheld = sign (w, signed_);
    struct ask much = {.procs = 1, .seconds = 60, .memory_mb = 1 << 20, .gpus = 50};
    char id[32];
    rate (w, "wall", 3 * 1000000, 10 * 1000000); /* 1 + 2 * 3 + 2 * 10 a second */
    much.job = "alpha.1";
    hold (w, job, much, "", id);
    held (w, 27 * 60);
    much.hold = id;
    charge (w, NULL, much, 27 * 60, 0);
    much.job = "alpha.2";
    much.hold = NULL;
    charge (w, unheld, much, 27 * 60, 0);
    paid (w, 2 * 27 * 60);
    envelope_free (job);
    envelope_free (unheld);
}

static void refused (struct bankd_reply reply, int code, const char *words)
{
    if (reply.err.code != code || !strstr (reply.err.text, words))
        fail_msg ("%d '%s', wanted %d '%s'", reply.err.code, reply.err.text, code, words);
    bankd_reply_free (&reply);
}

/* A hold is its site's, and pays for the job that it was made for: another site neither gives it back, nor makes it
 * longer, nor has anything paid from it; nor has its own site another job paid. */
static void others_holds (void **state)
{
    struct world *w = *state;
    Nui__Common__V1__Envelope *job =
        sign (w, (struct bankd_job){.procs = 1, .walltime_us = 60 * US_PER_S});
    Nui__Bank__V1__ReleaseRequest release = NUI__BANK__V1__RELEASE_REQUEST__INIT;
    Nui__Bank__V1__ExtendRequest longer = NUI__BANK__V1__EXTEND_REQUEST__INIT;
    Nui__Bank__V1__ChargeRequest m = NUI__BANK__V1__CHARGE_REQUEST__INIT;
    uint8_t key[16];
    char id[32];
    hold (w, job, (struct ask){.job = "alpha.1", .procs = 1, .seconds = 50}, "", id);
    release.key = bankd_key (&w->d, key);
    release.hold_id = id;
    refused (bankd_call (&w->d, WHO_BETA, "Release", &release.base), ERR_NOT_FOUND,
             "site beta has no hold hold.1");
    release.key = bankd_key (&w->d, key);
    release.site_job_id = TEXT ("alpha.2");
    refused (bankd_call (&w->d, WHO_ALPHA, "Release", &release.base), ERR_NOT_FOUND,
             "site alpha has no hold hold.1 for job alpha.2");
    longer.key = bankd_key (&w->d, key);
    longer.hold_id = id;
    longer.walltime_us = 60 * US_PER_S;
    refused (bankd_call (&w->d, WHO_BETA, "Extend", &longer.base), ERR_NOT_FOUND,
             "there is no hold hold.1");
    m.hold_id = id;
    m.component = TEXT ("main");
    m.procs = 1;
    m.start_us = clock_now_us ();
    m.end_us = m.start_us + 10 * US_PER_S;
    m.final = m.successful = true;
    m.key = bankd_key (&w->d, key);
    m.site_job_id = TEXT ("beta.1");
    refused (bankd_call (&w->d, WHO_BETA, "Charge", &m.base), ERR_NOT_FOUND,
             "site beta has no hold hold.1");
    m.key = bankd_key (&w->d, key);
    m.site_job_id = TEXT ("alpha.2");
    refused (bankd_call (&w->d, WHO_ALPHA, "Charge", &m.base), ERR_CONFLICT,
             "hold.1 was placed for job alpha.1 component 'main' incarnation 0, not for alpha.2");
    assert_int_equal (1, pg_fixture_number (w->sql, "SELECT count (*) FROM bank.hold WHERE open"));
    paid (w, 0);
    charge (w, NULL, (struct ask){.job = "alpha.1", .hold = id, .procs = 1, .seconds = 50}, 50, 0);
    paid (w, 50);
    envelope_free (job);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown (processors, fresh, world_closed),
        cmocka_unit_test_setup_teardown (groups, fresh, world_closed),
        cmocka_unit_test_setup_teardown (whole_nodes, fresh, world_closed),
        cmocka_unit_test_setup_teardown (longer, fresh, world_closed),
        cmocka_unit_test_setup_teardown (cost, fresh, world_closed),
        cmocka_unit_test_setup_teardown (beyond_its_hold, fresh_heard, world_closed),
        cmocka_unit_test_setup_teardown (overrun, fresh, world_closed),
        cmocka_unit_test_setup_teardown (unheld, fresh, world_closed),
        cmocka_unit_test_setup_teardown (unheld_unsigned, fresh, world_closed),
        cmocka_unit_test_setup_teardown (unknown_settled, fresh, world_closed),
        cmocka_unit_test_setup_teardown (used_up, fresh, world_closed),
        cmocka_unit_test_setup_teardown (incarnations, fresh, world_closed),
        cmocka_unit_test_setup_teardown (clocks, fresh_clocks, world_closed),
        cmocka_unit_test_setup_teardown (forgotten, fresh_window, world_closed),
        cmocka_unit_test_setup_teardown (job_ids, fresh, world_closed),
        cmocka_unit_test_setup_teardown (equivalents, fresh, world_closed),
        cmocka_unit_test_setup_teardown (memory_and_gres, fresh, world_closed),
        cmocka_unit_test_setup_teardown (others_holds, fresh, world_closed),
    };
    signal (SIGPIPE, SIG_IGN);
    cmocka_set_test_filter (getenv ("NUI_TEST_ONLY"));
    return cmocka_run_group_tests (tests, world_up, world_down);
}
