/* Reconciliation: a site's records, the bank's and Slurm's, compared. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bank/cli/recon.h"

#define TEXT(s) ((char *)(uintptr_t)(s))
#define S US_PER_S

enum { MAX = 16 };

/* Books of 1000 s … 2000 s, at 5000 s. */
struct world {
    struct arena *arena;
    struct recon_books books;
    struct recon_run run[MAX];
    struct recon_job job[MAX];
    Nui__Local__V1__OpenRun *open[MAX];
    Nui__Bank__V1__HoldItem *hold[MAX];
    struct recon_row *row;
    uint32_t count;
};

static int setup (void **state)
{
    struct world *w = calloc (1, sizeof (*w));
    w->arena = arena_create (0);
    w->books = (struct recon_books){.arena = w->arena,
                                    .run = w->run,
                                    .job = w->job,
                                    .open = w->open,
                                    .hold = w->hold,
                                    .holds_settled = true,
                                    .first = 1 * S,
                                    .from = 1000 * S,
                                    .to = 2000 * S,
                                    .now = 5000 * S,
                                    .late = 3600 * S};
    *state = w;
    return 0;
}

static int teardown (void **state)
{
    struct world *w = *state;
    arena_destroy (w->arena);
    free (w);
    return 0;
}

static bool out_of (const struct world *w, time_us end)
{
    return end < w->books.from || end >= w->books.to;
}

/* Told to the bank, which answered 8 credits. */
static Nui__Local__V1__Run *run (struct world *w, const char *job, uint32_t incarnation,
                                 int64_t start_s, int64_t end_s)
{
    Nui__Bank__V1__ChargeRequest *c = arena_new (w->arena, Nui__Bank__V1__ChargeRequest);
    Nui__Local__V1__Run *m = arena_new (w->arena, Nui__Local__V1__Run);
    nui__bank__v1__charge_request__init (c);
    nui__local__v1__run__init (m);
    c->site_job_id = TEXT (job);
    c->incarnation = incarnation;
    c->procs = 4;
    c->start_us = start_s * S;
    c->end_us = end_s * S;
    m->charge = c;
    m->message = 7 + w->books.run_count;
    m->answered = true;
    m->charged_micro = 8000000;
    w->run[w->books.run_count++] = (struct recon_run){m, out_of (w, c->end_us)};
    return m;
}

static Nui__Bank__V1__JobRecord *job (struct world *w, const char *site_job, uint32_t incarnation,
                                      int64_t start_s, int64_t end_s)
{
    Nui__Bank__V1__JobRecord *m = arena_new (w->arena, Nui__Bank__V1__JobRecord);
    nui__bank__v1__job_record__init (m);
    m->number = w->books.job_count + 1;
    m->op_id = 100 + m->number;
    m->site_job_id = TEXT (site_job);
    m->incarnation = incarnation;
    m->procs = 4;
    m->start_us = start_s * S;
    m->end_us = m->recorded_us = end_s * S;
    m->charged_micro = 8000000;
    m->charges = 1;
    m->final = true;
    w->job[w->books.job_count++] = (struct recon_job){m, out_of (w, m->end_us)};
    return m;
}

static Nui__Bank__V1__HoldItem *hold (struct world *w, const char *id, const char *site_job,
                                      int64_t expires_s)
{
    Nui__Bank__V1__HoldItem *m = arena_new (w->arena, Nui__Bank__V1__HoldItem);
    nui__bank__v1__hold_item__init (m);
    m->hold_id = TEXT (id);
    m->site_job_id = TEXT (site_job);
    m->expires_us = expires_s * S;
    m->left_micro = 3;
    w->hold[w->books.hold_count++] = m;
    return m;
}

static Nui__Local__V1__OpenRun *live (struct world *w, const char *site_job, const char *hold_id)
{
    Nui__Local__V1__OpenRun *m = arena_new (w->arena, Nui__Local__V1__OpenRun);
    nui__local__v1__open_run__init (m);
    m->site_job_id = TEXT (site_job);
    m->hold_id = TEXT (hold_id);
    w->open[w->books.open_count++] = m;
    return m;
}

/* "CLASS job remedy;…" */
static void expect (struct world *w, const char *want)
{
    char got[2000] = "";
    w->count = recon_compare (&w->books, &w->row);
    for (uint32_t i = 0; i < w->count; i++)
        snprintf (got + strlen (got), sizeof (got) - strlen (got), "%s%s %s %s", i ? "; " : "",
                  recon_class_name (w->row[i].kind), w->row[i].site_job,
                  recon_remedy_name (w->row[i].remedy));
    assert_string_equal (got, want);
}

static void test_agreement (void **state)
{
    struct world *w = *state;
    expect (w, "");
    run (w, "a.2", 0, 1000, 1100);
    run (w, "a.1", 1, 1200, 1300);
    run (w, "a.1", 0, 1000, 1100);
    job (w, "a.1", 0, 1000, 1100);
    job (w, "a.2", 0, 1000, 1100);
    job (w, "a.1", 1, 1200, 1300);
    Nui__Local__V1__Run *free_of_charge = run (w, "a.3", 0, 900, 1000);
    free_of_charge->untold = TEXT ("NotCharged");
    free_of_charge->message = 0;
    expect (w, "");
}

static void test_missing (void **state)
{
    struct world *w = *state;
    run (w, "a.1", 0, 1000, 1100);
    run (w, "a.2", 0, 1000, 1100)->answered = false;
    Nui__Local__V1__Run *nobody = run (w, "a.3", 0, 1000, 1100);
    nobody->untold = TEXT ("NobodyToCharge");
    nobody->message = 0;
    job (w, "a.4", 0, 1000, 1100);
    job (w, "a.5", 0, 1000, 1100)->refunded_micro = 8000000; /* settled by hand */
    job (w, "a.6", 0, 1000, 1100)->by_hand = TEXT ("ops");
    run (w, "a.7", 0, 1000, 1100);
    job (w, "a.7", 0, 1000, 1100)->by_hand =
        TEXT ("ops"); /* as the site says, and said all the same */
    Nui__Bank__V1__JobRecord *back = job (w, "a.8", 0, 1000, 1100);
    back->by_hand = TEXT ("ops");
    back->refunded_micro = back->charged_micro;
    expect (w, "MISSING_AT_BANK a.1 charge; MISSING_AT_BANK a.2 wait; MISSING_AT_BANK a.3 decide; "
               "MISSING_AT_SITE a.4 decide; BY_HAND a.6 decide; BY_HAND a.7 decide");
    assert_int_equal (w->row[0].site_ps_us, 400 * S);
    assert_int_equal (w->row[0].bank_ps_us, -1);
    assert_string_equal (w->row[4].text,
                         "charged by hand by ops, and the site has no record of it");
    assert_string_equal (w->row[5].text, "charged by hand by ops");
    assert_int_equal (w->row[3].amount, 8000000);
    assert_int_equal (w->row[3].charge_op, 101);
}

/* What the other side has outside of the period is no stranger, and has no row of its own. */
static void test_edges (void **state)
{
    struct world *w = *state;
    const char **bank, **site;
    uint32_t at_site;
    run (w, "a.1", 0, 1900, 1999);
    run (w, "a.2", 0, 1900, 1999);
    run (w, "a.2", 1, 1900, 1999);
    job (w, "b.1", 0, 1500, 1600);
    assert_int_equal (recon_strangers (&w->books, &bank, &site, &at_site), 2);
    assert_string_equal (bank[0], "a.1");
    assert_string_equal (bank[1], "a.2");
    assert_int_equal (at_site, 1);
    assert_string_equal (site[0], "b.1");
    job (w, "a.1", 0, 1900, 2100);
    run (w, "b.1", 0, 900, 999);
    run (w, "c.1", 0, 900, 999);
    expect (w, "MISSING_AT_BANK a.2 charge; MISSING_AT_BANK a.2 charge; AMOUNT_DIFF a.1 decide; "
               "AMOUNT_DIFF b.1 decide");
}

static void test_differences (void **state)
{
    struct world *w = *state;
    run (w, "a.1", 0, 1000, 1100)->charge->procs = 5;
    job (w, "a.1", 0, 1000, 1100);
    run (w, "a.2", 0, 1000, 1101);
    job (w, "a.2", 0, 1000, 1100);
    run (w, "a.3", 0, 1000, 1100)->charged_micro = 7999999;
    job (w, "a.3", 0, 1000, 1100);
    run (w, "a.4", 0, 1000, 1100);
    job (w, "a.4", 0, 1000, 1050)->final = false;
    run (w, "a.5", 0, 1000, 1100)->answered = false;
    job (w, "a.5", 0, 1000, 1050)->final = false;
    run (w, "a.6", 0, 1000, 1100);
    job (w, "a.6", 0, 1000, 1100)->recorded_us = 4701 * S;
    run (w, "a.7", 0, 1000, 1100);
    job (w, "a.7", 0, 1000, 1100)->rate_due = 2;
    run (w, "a.8", 0, 1000, 1100);
    job (w, "a.8", 0, 1000, 1100)->expired_use = true;
    expect (w,
            "AMOUNT_DIFF a.1 decide; AMOUNT_DIFF a.2 decide; AMOUNT_DIFF a.3 decide; "
            "AMOUNT_DIFF a.4 charge; AMOUNT_DIFF a.5 wait; LATE a.6 decide; RATE_DIFF a.7 decide; "
            "EXPIRED_USE a.8 decide");
    assert_string_equal (w->row[2].text, "amount: the site was told 7.999999, the bank has 8");
}

static void test_duplicates (void **state)
{
    struct world *w = *state;
    run (w, "a.1", 0, 1000, 1100);
    job (w, "a.1", 0, 1000, 1100);
    job (w, "a.1", 1, 1050, 1150); /* the same time: twice */
    job (w, "a.1", 2, 1100, 1150); /* another time */
    job (w, "a.1", 3, 1000, 1001)->charges = 2;
    job (w, "a.9", 0, 1099, 1200)->grid_job_id = TEXT ("a.1"); /* under another name */
    job (w, "a.8", 0, 1000, 1100)->component = TEXT ("other");
    expect (w, "MISSING_AT_SITE a.1 decide; MISSING_AT_SITE a.8 decide; DUPLICATE a.1 refund; "
               "DUPLICATE a.1 decide; DUPLICATE a.9 refund");
    assert_int_equal (w->row[2].incarnation, 1);
    assert_int_equal (w->row[2].charge_op, 102);
}

static void test_holds (void **state)
{
    struct world *w = *state;
    hold (w, "hold.1", "a.1", 9000); /* may still come */
    hold (w, "hold.2", "a.2", 4000);
    hold (w, "hold.3", "a.3", 4000);
    live (w, "a.3", "");
    hold (w, "hold.4", "a.4", 4000);
    live (w, "", "hold.4"); /* on its way back */
    hold (w, "hold.5", "a.5", 9000);
    run (w, "a.5", 0, 1000, 1100);
    job (w, "a.5", 0, 1000, 1100);
    hold (w, "hold.6", "a.6", 9000);
    run (w, "a.6", 0, 1000, 1100)->answered = false;
    expect (w, "MISSING_AT_BANK a.6 wait; STALE_HOLD a.2 release; STALE_HOLD a.5 release");
    assert_string_equal (w->row[1].hold_id, "hold.2");
    assert_int_equal (w->row[1].amount, 3);
    w->books.holds_settled = false;
    expect (w, "MISSING_AT_BANK a.6 wait");
}

static const char sacct_text[] =
    "State|JobID|JobIDRaw|Submit|Start|End|AllocCPUS|Elapsed|ElapsedRaw|User\n"
    "COMPLETED|17|17|1970-01-01T00:16:00Z|1970-01-01T00:16:40Z|1970-01-01T00:18:20Z|4|00:01:40|100|bob\n"
    "COMPLETED|17.batch|17.batch|||1970-01-01T00:18:20Z|4|00:01:40|100|\n"
    "FAILED|18_2|19|1970-01-01T00:16:00Z|1970-01-01T00:16:40Z|1970-01-01T00:18:20Z|8|00:01:40|100|eve\n"
    "RUNNING|20|20|1970-01-01T00:16:00Z|1970-01-01T00:16:40Z|Unknown|8|00:01:40|100|eve\n"
    "\n";

static void test_sacct (void **state)
{
    struct world *w = *state;
    struct sacct_job *got;
    struct err err = {0};
    uint32_t count = 0;
    char *text = arena_strdup (w->arena, sacct_text);
    assert_int_equal (sacct_parse ("f", text, w->arena, &got, &count, &err), 0);
    assert_int_equal (count, 2);
    assert_string_equal (got[1].id, "19");
    assert_string_equal (got[1].user, "eve");
    assert_string_equal (got[1].account, "");
    assert_int_equal (got[0].end, 1100 * S);
    assert_int_equal (got[0].elapsed, 100 * S);

    static const char *const bad[][2] = {
        {"", "JobIDRaw"},
        {"JobID|End|AllocCPUS\n", "ElapsedRaw"},
        {"JobID|End|NCPUS|Elapsed\n7|yesterday|1|1\n", "f line 2"},
        {"JobID|End|NCPUS|Elapsed\n\n7|1970-01-01T00:18:20Z|-1|1\n", "f line 3"},
        {"JobID|End|NCPUS|Elapsed\n|1970-01-01T00:18:20Z|1|1\n", "without an id"},
        {"JobID|End|NCPUS|Elapsed\n8|1970-01-01T00:18:20Z\n", "processors"}};
    for (size_t i = 0; i < sizeof (bad) / sizeof (bad[0]); i++) {
        err_clear (&err);
        text = arena_strdup (w->arena, bad[i][0]);
        assert_true (sacct_parse ("f", text, w->arena, &got, &count, &err) < 0);
        if (!strstr (err.text, bad[i][1]))
            fail_msg ("%s: %s", bad[i][1], err.text);
    }
}

static void slurm_run (struct world *w, const char *job_id, const char *rm_id, int64_t start_s,
                       int64_t end_s)
{
    run (w, job_id, 0, start_s, end_s)->rm_id = TEXT (rm_id);
    job (w, job_id, 0, start_s, end_s);
}

static void test_slurm (void **state)
{
    struct world *w = *state;
    const struct sacct_job slurm[] = {
        {.id = "1",
         .state = "",
         .user = "",
         .account = "",
         .start = 1000 * S,
         .end = 1101 * S,
         .procs = 4,
         .elapsed = 101 * S}, /* within two seconds */
        {.id = "2",
         .state = "COMPLETED",
         .user = "bob",
         .account = "x",
         .start = 1000 * S,
         .end = 1100 * S,
         .procs = 4,
         .elapsed = 100 * S},
        {.id = "1",
         .state = "",
         .user = "",
         .account = "",
         .start = 1500 * S,
         .end = 1600 * S,
         .procs = 4,
         .elapsed = 100 * S}, /* the number came round again */
        {.id = "3",
         .state = "",
         .user = "",
         .account = "",
         .start = 1000 * S,
         .end = 1100 * S,
         .procs = 5,
         .elapsed = 100 * S},
        {.id = "4", .state = "", .user = "", .account = "", .end = 1100 * S, .procs = 4},
        {.id = "5",
         .state = "",
         .user = "",
         .account = "",
         .start = 1990 * S,
         .end = 2001 * S,
         .procs = 4,
         .elapsed = 11 * S}};
    w->books.slurm = slurm;
    w->books.slurm_count = sizeof (slurm) / sizeof (slurm[0]);
    w->books.has_slurm = true;
    slurm_run (w, "a.1", "1", 1000, 1100);
    slurm_run (w, "a.3", "3", 1000, 1100);
    slurm_run (w, "a.6", "6", 1000, 1100);
    slurm_run (w, "a.7", "", 1000, 1100);
    expect (w, "UNSEEN 1 decide; UNSEEN 2 decide; NOT_IN_SLURM a.6 decide; SLURM_DIFF a.3 decide");
    assert_int_equal (w->row[0].site_ps_us, 400 * S);
    assert_string_equal (w->row[1].user, "bob");
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown (test_agreement, setup, teardown),
        cmocka_unit_test_setup_teardown (test_missing, setup, teardown),
        cmocka_unit_test_setup_teardown (test_edges, setup, teardown),
        cmocka_unit_test_setup_teardown (test_differences, setup, teardown),
        cmocka_unit_test_setup_teardown (test_duplicates, setup, teardown),
        cmocka_unit_test_setup_teardown (test_holds, setup, teardown),
        cmocka_unit_test_setup_teardown (test_sacct, setup, teardown),
        cmocka_unit_test_setup_teardown (test_slurm, setup, teardown),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
