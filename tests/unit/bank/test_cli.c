/* The bank's commands of the real nui against the real nui-bank: output, exit codes, bad input. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "proto/base/clock.h"
#include "proto/rpc/envelope.h"
#include "tests/unit/bank/bankcli.h"
#include "tests/unit/bank/pg_fixture.h"

struct world {
    struct pg_fixture *pg;
    struct bankd d;
    const char *conninfo;
    char out[16384];
};

static int up (void **state)
{
    struct world *w = calloc (1, sizeof (*w));
    w->pg = pg_fixture_start (false);
    if (!w->pg)
        return -1;
    w->conninfo = pg_fixture_database (w->pg, "cli");
    bankd_open (&w->d, NUI_BANK_PROGRAM, w->conninfo, "CHECKPOINTENTRIES 2\n");
    bankcli_config (&w->d, "alice");
    bankcli_config (&w->d, "bob");
    bankcli_config (&w->d, "nsf");
    bankcli_config (&w->d, "ops");
    bankcli_config (&w->d, "lena");
    bankcli_config (&w->d, "mara");
    bankcli_config (&w->d, "otto");
    *state = w;
    return bankd_wait_serving (&w->d, true) ? 0 : -1;
}

static int down (void **state)
{
    struct world *w = *state;
    bankd_close (&w->d);
    pg_fixture_stop (w->pg);
    free (w);
    return 0;
}

static int nui (struct world *w, const char *who, const char *words)
{
    return bankcli_run (&w->d, w->out, sizeof (w->out), who, words);
}

static void says (struct world *w, const char *who, const char *words, int code, const char *part)
{
    bankcli_says (&w->d, w->out, sizeof (w->out), who, words, code, part);
}

/* As somebody with the database's superuser could. */
static void tamper (struct world *w, const char *sql)
{
    PGconn *conn = pg_fixture_connect (w->conninfo);
    PGresult *res = PQexec (conn, "SET session_replication_role = replica"); /* no triggers */
    PQclear (res);
    res = PQexec (conn, sql);
    assert_string_equal (PQresultErrorMessage (res), "");
    assert_string_not_equal (PQcmdTuples (res), "0");
    PQclear (res);
    PQfinish (conn);
}

/* By weasyprint, where that is installed; else one sentence, and no file. */
static void printed_as_pdf (struct world *w)
{
    char file[300], words[400], *path = strdup (getenv ("PATH")), head[6] = "";
    snprintf (file, sizeof (file), "%s/page.pdf", w->d.dir);
    snprintf (words, sizeof (words), "grant statement grant.1 --pdf %s", file);
    setenv ("PATH", w->d.dir, 1);
    says (w, "nsf", words, 1, "weasyprint is not installed");
    assert_int_equal (-1, access (file, F_OK));
    setenv ("PATH", path, 1);
    says (w, "nsf", "grant statement grant.1 --pdf /nowhere/page.pdf", 1,
          "cannot write /nowhere/page.pdf");
    if (system ("command -v weasyprint >/dev/null") == 0) {
        says (w, "nsf", words, 0, "");
        FILE *f = fopen (file, "r");
        assert_non_null (f);
        assert_int_equal (5, fread (head, 1, 5, f));
        assert_string_equal (head, "%PDF-");
        assert_int_equal (0, fseek (f, 0, SEEK_END));
        assert_true (ftell (f) > 5000);
        fclose (f);
        unlink (file);
    } else {
        print_message ("weasyprint is not installed: no page was printed as PDF\n");
    }
    free (path);
}

static void setting_up (void **state)
{
    struct world *w = *state;
    says (w, "nsf", "project create physics -d 'high energy'", 0,
          "created project physics (project.1)");
    says (w, "nsf", "project create physics", 1, "exists already");
    says (w, "nsf", "user create alice", 0, "nui://test/user/alice");
    says (w, "nsf", "user create nui://test/user/bob", 0, "user.2");
    says (w, "nsf", "project add-user physics alice --role lead", 0, "lead of project physics");
    says (w, "nsf", "project add-user physics carol", 5, "no user");
    says (w, "nsf", "project modify physics --add-user bob", 0, "bob is member");
    says (w, "nsf", "project remove-user physics bob", 0, "no longer");
    says (w, "nsf", "account create reserve --project physics", 0, "account reserve");
    says (w, "nsf", "account create phys --project physics --fallback reserve", 0, "account phys");
    says (w, "nsf", "account modify reserve --fallback phys", 1, "loop");
    says (w, "nsf", "account list", 0, "falls back to reserve");
    says (w, "ops", "rate set alpha 1", 0, "1 credits per processor-second");
    says (w, "ops", "rate set beta 1.25", 0, "beta");
    says (w, "alice", "rate list --csv", 0, "beta,1,1.25");
    says (
        w, "ops",
        "rate set delta 2 --measure pe --successful-only --qos high=2 --qos '*=1' --class gpu=1.5 "
        "--time 'Sat,Sun 00:00-24:00=0.5' --group 1.2 --memory 0.1 --gres gpu=10",
        0, "site delta costs 2 credits");
    says (w, "alice", "rate list delta --csv --noheader", 0,
          ",pe,successful,\"qos high=2; qos *=1; class gpu=1.5; gres gpu=10; time Sat,Sun "
          "00:00-24:00=0.5; memory *=0.1; group *=1.2");
    says (w, "ops", "rate set delta 2 --qos high", 2, "NAME=RATE");
    says (w, "ops", "rate set delta 2 --qos high=2 --qos high=3", 1, "is there twice");
    says (w, "ops", "rate set delta 2 --qos high=-1", 1, "out of bounds");
    says (w, "ops", "rate set delta 2 --memory gpu=2", 2, "takes a number");
    says (w, "ops", "rate set delta 2 --time 'noon=2'", 1, "no time of day");
    says (w, "ops", "rate set delta 2 --measure gold", 1, "none of wall, cpu, pe");
    says (w, "alice", "site modify alpha --claims yes", 3, "nui site:");
    says (w, "ops", "site modify alpha --claims perhaps", 2, "yes|no");
    says (w, "ops", "site modify alpha --refund-cap 20000:00:00:00", 1, "ten years");
    says (w, "ops", "site modify alpha --refund-minimum -1", 2, "refund-minimum");
    says (
        w, "ops",
        "site modify alpha --refunds yes --refund-cap 4:00:00 --refund-minimum 50 --refund-window "
        "14:00:00:00",
        0, "site alpha gives back what it failed; bounds of refunds set");
    says (w, "nsf", "site list --csv", 0,
          "at most what 14400 s cost, from 50 credits on, charged within 1209600 s");
    says (w, "ops", "site modify alpha --refund-cap 0", 0,
          "site alpha has other bounds of refunds");
    says (w, "nsf", "site list --csv", 0, "what it failed is given back, from 50 credits on");
    says (w, "ops", "site modify alpha --refunds no", 0, "keeps what it charged");
    says (w, "ops", "site modify alpha --claims yes", 0, "site alpha may name users");
    says (w, "alice", "site list --csv --noheader", 0,
          "alpha,may name users of jobs that nobody signed\nbeta,needs signed jobs\n"
          "delta,needs signed jobs\n");
    says (w, "nsf", "deposit -A phys 1000.5 -d 'PHY-17'", 0,
          "deposited 1000.5 credits to phys (alloc.");
    says (w, "nsf", "deposit -A reserve 5000 --start +1:00:00", 0, "alloc.");
    says (w, "alice", "project list", 0, "nui://test/user/alice (lead)");
    says (w, "alice", "user list --json", 0, "\"identity\": \"nui://test/user/alice\"");
}

static void looking (void **state)
{
    struct world *w = *state;
    json_error_t error;
    says (w, "alice", "balance", 0, "Scheduled");
    assert_int_equal (0, nui (w, "alice", "balance -A phys --json"));
    json_t *rows = json_loads (w->out, 0, &error);
    assert_non_null (rows);
    json_t *row = json_array_get (rows, 0);
    assert_string_equal ("phys", json_string_value (json_object_get (row, "account")));
    assert_true (json_number_value (json_object_get (row, "granted")) == 1000.5);
    assert_true (json_number_value (json_object_get (row, "held")) == 0);
    assert_true (json_number_value (json_object_get (row, "available")) == 1000.5);
    json_decref (rows);
    says (w, "alice", "balance -A reserve --csv --noheader", 0, "reserve,physics,0,0,0,0,5000");
    says (w, "alice", "balance --allocations", 0, "PHY-17");
    says (w, "alice", "statement -A phys", 0, "posted 1000.5 - held 0 = available 1000.5");
    assert_int_equal (0, nui (w, "alice", "statement -A phys --json"));
    json_t *st = json_loads (w->out, 0, &error);
    assert_non_null (st);
    assert_int_equal (1, json_array_size (json_object_get (st, "lines")));
    assert_true (json_number_value (json_object_get (st, "closing_posted")) == 1000.5);
    json_decref (st);
    says (w, "alice", "quote -n 8 -t 1:40 --site alpha,beta -A phys", 0,
          "8 procs * 100 s * 1.25 = 1000 credits");
    says (w, "alice", "quote -n 8 -t 1:40 --site gamma -A phys", 0, "no rate in force");
    says (w, "alice", "quote -n 800 -t 1:40 --site alpha -A phys", 0, "short");
}

static void correcting (void **state)
{
    struct world *w = *state;
    uint8_t key[16];
    says (w, "nsf", "account create chem --project physics", 0, "account chem");
    says (w, "nsf", "withdraw -A phys 0.5 -d back", 0, "withdrew 0.5 credits from phys (op.");
    says (w, "nsf", "withdraw -A phys 1000.000001", 1, "1000 of account phys can be taken out");
    says (w, "nsf", "withdraw -A reserve 1", 1, "0 of account reserve"); /* not begun */
    says (w, "nsf", "withdraw -A phys 0", 2, "more than nothing");
    says (w, "nsf", "withdraw -A phys 1 --allocation hold.1", 1, "is not an allocation");
    says (w, "alice", "withdraw -A phys 1", 3, "nui withdraw:");
    says (w, "nsf", "transfer --from phys --to chem 100", 0,
          "moved 100 credits from phys to chem (alloc.");
    says (w, "nsf", "transfer --from phys --to phys 100", 1, "to itself");
    says (w, "nsf", "transfer --from phys --to nobody 100", 5, "no account nobody");
    says (w, "nsf", "transfer --from phys 100", 2, "--to");
    says (w, "alice", "transfer --from phys --to chem 1", 3, "nui transfer:");
    says (w, "alice", "balance -A chem --csv --noheader", 0, "chem,physics,100,0,0,100,0");
    says (w, "alice", "allocation list -A chem", 0, "from phys alloc.");
    /* A job is charged, and given back twice. */
    struct bankd_job job = {.account = "chem"};
    Nui__Bank__V1__ChargeRequest m = NUI__BANK__V1__CHARGE_REQUEST__INIT;
    m.key = bankd_key (&w->d, key);
    m.envelope = bankd_sign (&w->d, WHO_ALICE, &job);
    m.site_job_id = (char *)(uintptr_t) "alpha.1";
    m.procs = 1;
    m.start_us = clock_now_us ();
    m.end_us = m.start_us + 60 * US_PER_S;
    m.final = m.successful = true;
    struct bankd_reply reply = bankd_call (&w->d, WHO_ALPHA, "Charge", &m.base);
    assert_string_equal ("", reply.err.text);
    bankd_reply_free (&reply);
    envelope_free (m.envelope);
    json_error_t error;
    assert_int_equal (0, nui (w, "alice", "statement -A chem --json"));
    json_t *st = json_loads (w->out, 0, &error), *line;
    long long op = 0;
    size_t i;
    json_array_foreach (
        json_object_get (st, "lines"), i,
        line) if (strcmp (json_string_value (json_object_get (line, "kind")), "charge") == 0) op =
        json_integer_value (json_object_get (line, "op"));
    json_decref (st);
    assert_true (op > 0);
    char words[128];
    says (w, "alice", "usage --csv --noheader", 0, "nui://test/user/alice,chem,1,60,0,60");
    says (w, "bob", "usage --csv --noheader", 0, "");
    assert_string_equal ("", w->out); /* not in the project */
    snprintf (words, sizeof (words), "refund %lld 20 -d 'node failure'", op);
    says (w, "alice", words, 3, "nui refund:");
    says (w, "nsf", words, 0, "refunded 20 credits of charge");
    snprintf (words, sizeof (words), "refund %lld 40.000001", op);
    says (w, "nsf", words, 1, "40 of charge");
    snprintf (words, sizeof (words), "refund %lld --csv --noheader", op);
    says (w, "nsf", words, 0, ",40,0");
    says (w, "nsf", words, 1, "0 of charge");
    says (w, "nsf", "refund 999999", 5, "is no charge");
    says (w, "nsf", "refund hold.1", 2, "nui statement shows it");
    says (w, "alice", "balance -A chem --csv --noheader", 0, "chem,physics,100,0,0,100,0");
    says (w, "alice", "statement -A chem", 0, "node failure");
    says (w, "nsf", "usage --by site,project --json", 0, "\"refunded\": 60");
    says (w, "nsf", "usage --by site --csv", 0,
          "site,jobs,charged,refunded,net,proc_hours\nalpha,1,60,60,0,0.016667");
    says (w, "nsf", "usage --by site -A phys --csv --noheader", 0, "");
    assert_string_equal ("", w->out);
    says (w, "nsf", "usage --to 2001-01-01T00:00:00Z --csv --noheader", 0, "");
    assert_string_equal ("", w->out);
    says (w, "nsf", "usage --by colour", 2, "user,project,site,account");
    says (w, "nsf", "usage --from 2030-01-01T00:00:00Z", 1, "ends before it begins");
    /* What is held. */
    Nui__Bank__V1__HoldRequest hold = NUI__BANK__V1__HOLD_REQUEST__INIT;
    hold.key = bankd_key (&w->d, key);
    hold.envelope = bankd_sign (&w->d, WHO_ALICE, &job);
    hold.site_job_id = (char *)(uintptr_t) "alpha.2";
    hold.procs = 1;
    hold.walltime_us = 30 * US_PER_S;
    reply = bankd_call (&w->d, WHO_ALPHA, "Hold", &hold.base);
    assert_string_equal ("", reply.err.text);
    bankd_reply_free (&reply);
    envelope_free (hold.envelope);
    says (w, "alice", "hold list -A chem --csv --noheader", 0,
          "hold.1,chem,nui://test/user/alice,alpha,,alpha.2,30,30,");
    says (w, "alice", "hold list --stale --csv --noheader", 0, "");
    assert_string_equal ("", w->out);
    /* As if the job had ended an hour ago. */
    PGconn *sql = pg_fixture_connect (w->conninfo);
    PQclear (PQexec (sql, "UPDATE bank.hold SET expires_at = expires_at - 3600000000"));
    PQfinish (sql);
    says (w, "alice", "hold list --stale --csv --noheader", 0, ",true");
    says (w, "bob", "hold list --csv --noheader", 0, "");
    assert_string_equal ("", w->out);
    says (w, "nsf", "hold", 2, "say list");
    Nui__Bank__V1__ReleaseRequest release = NUI__BANK__V1__RELEASE_REQUEST__INIT;
    release.key = bankd_key (&w->d, key);
    release.hold_id = (char *)(uintptr_t) "hold.1";
    reply = bankd_call (&w->d, WHO_ALPHA, "Release", &release.base);
    assert_string_equal ("", reply.err.text);
    bankd_reply_free (&reply);
    says (w, "nsf", "hold list --csv --noheader", 0, "");
    assert_string_equal ("", w->out);
    says (w, "ops", "verify --rules", 1, "hold 1: expires_at is ");
    tamper (w, "UPDATE bank.hold SET expires_at = expires_at + 3600000000");
    /* Credit. */
    says (w, "alice", "allocation list -A chem --csv --noheader", 0, "alloc.");
    char id[32] = "";
    assert_int_equal (1, sscanf (w->out, "chem,%31[^,]", id));
    snprintf (words, sizeof (words), "allocation modify %s --credit-limit 50", id);
    says (w, "alice", words, 3, "nui allocation:");
    says (w, "nsf", words, 0, "may go 50 credits below zero");
    says (w, "alice", "balance -A chem --csv --noheader", 0, "chem,physics,100,0,0,150,0");
    says (w, "nsf", "withdraw -A chem 101", 1, "100 of account chem can be taken out");
    says (w, "nsf", "allocation modify alloc.999999 --credit-limit 50", 5, "no allocation");
    says (w, "nsf", "allocation modify alloc.7 --credit-limit -- -1", 2, "");
    /* For what follows. */
    says (w, "nsf", "withdraw -A chem 100", 0, "withdrew");
    says (w, "nsf", "deposit -A phys 100.5", 0, "alloc.");
}

/* What an allocation's number is in what was printed: "… (alloc.12)". */
static const char *printed (struct world *w, const char *prefix, char id[32])
{
    const char *at = strstr (w->out, prefix);
    assert_non_null (at);
    size_t len = strspn (at + strlen (prefix), "0123456789") + strlen (prefix);
    assert_true (len < 32);
    memcpy (id, at, len);
    id[len] = '\0';
    return id;
}

/* A funder's grant goes down a tree of projects, pays for a job on its way, and is reported on. */
static void granting (void **state)
{
    struct world *w = *state;
    char words[768], id[32], file[512];
    says (w, "alice", "funder create nsf", 3, "nui funder:");
    says (w, "nsf", "funder create nsf -d 'science & <money>'", 0, "created funder nsf (funder.1)");
    says (w, "nsf", "funder create nsf", 1, "exists already");
    says (w, "nsf", "user create lena", 0, "lena");
    says (w, "nsf", "user create mara", 0, "mara");
    says (w, "nsf", "user create otto", 0, "otto");
    says (w, "nsf", "project create earth", 0, "project earth");
    says (w, "nsf", "project create ocean --parent nowhere", 5, "no project nowhere");
    says (w, "nsf", "project create ocean --parent earth", 0, "project ocean");
    says (w, "nsf", "project add-user earth lena --role lead", 0, "lead of project earth");
    says (w, "lena", "project create tides --parent ocean", 0, "project tides");
    says (w, "lena", "project create mine", 3, "neither an allocation manager nor a lead");
    says (w, "lena", "project add-user tides lena", 0, "member of project tides");
    says (w, "lena", "account create earth --project earth", 0, "account earth");
    says (w, "lena", "account create ocean --project ocean", 0, "account ocean");
    says (w, "lena", "account create tides --project tides", 0, "account tides");
    says (w, "nsf", "grant create 1000 -A earth", 2, "say create");
    says (w, "nsf", "grant create 1000 -A earth --reference 'EAR-1' --funder other", 3, "other");
    says (w, "nsf", "grant create 1000 -A earth --reference EAR-1 --end +30:00:00:00", 0,
          "granted 1000 credits to earth (grant.1,alloc.");
    says (w, "lena", "split --from earth --to ocean 1000.5", 1, "1000 of account earth");
    says (w, "lena", "split --from earth --to ocean 600 --end +60:00:00:00", 1, "not within");
    says (w, "lena", "split --from earth --to ocean 600 --end +20:00:00:00", 0, "gave 600 credits");
    says (w, "lena", "split --from ocean --to earth 10", 1, "is split downwards");
    says (w, "lena", "split --from ocean --to phys 10", 1, "is split downwards");
    says (w, "alice", "split --from ocean --to tides 10", 3, "nui split:");
    says (w, "lena", "split --from ocean --to tides 100", 0, "gave 100 credits");
    says (w, "lena", "balance --csv --noheader", 0, "earth,earth,400,0,0,400,0,\n");
    says (w, "lena", "balance --csv --noheader", 0, "tides,tides,100,0,0,100,0,\n");
    says (w, "alice", "balance -A tides", 5, "not a member");
    says (w, "nsf", "grant list --csv --noheader", 0, "grant.1,nsf,EAR-1,earth,1000,0,0,1000,0,");
    /* A job of it, placed and charged by hand. */
    says (w, "lena", "hold create -A tides --user lena -t 50 --part alpha/alpha.77/1", 3,
          "nui hold:");
    says (w, "ops", "hold create -A tides --user lena -t 50 --part alpha/alpha.77", 2,
          "PROCESSORS");
    says (w, "ops",
          "hold create -A tides --user lena -t 90 --part alpha/alpha.101/1 --part beta/beta.401/1",
          1, "InsufficientFunds");
    says (
        w, "ops",
        "hold create -A tides --user lena -t 10 --part alpha/alpha.101/2 --part beta/beta.401/2 --csv "
        "--noheader",
        0, "beta,25,tides,false,");
    printed (w, "hold.", id);
    snprintf (words, sizeof (words), "hold extend %s -t 20 --csv --noheader", id);
    says (w, "lena", words, 3, "nui hold:");
    says (w, "ops", words, 0, ",40,20,");
    snprintf (words, sizeof (words), "hold extend %s -t 200", id);
    says (w, "ops", words, 1, "InsufficientFunds");
    snprintf (
        words, sizeof (words),
        "charge --site alpha --site-job alpha.101 -n 2 --hold %s --start 2026-01-05T10:00:00Z --end "
        "2026-01-05T10:00:15Z --csv --noheader",
        id);
    says (w, "lena", words, 3, "nui charge:");
    says (w, "ops", words, 0, "alpha.101,30,10,tides");
    says (w, "ops", "hold list -A tides --csv --noheader", 0, ",beta,");
    printed (w, "hold.", id);
    snprintf (words, sizeof (words), "hold release %s -d 'never ran' --csv --noheader", id);
    says (w, "ops", words, 0, ",0,25,");
    says (w, "ops", "hold list -A tides --csv --noheader", 0, "");
    assert_string_equal ("", w->out);
    says (w, "nsf", "usage --by funder,grant,month --csv --noheader", 0, "nsf,grant.1,20");
    says (w, "nsf", "usage --by funder,day,month", 1, "not several");
    says (w, "nsf", "grant list --funder nsf --csv --noheader", 0, "earth,1000,30,0,970,0,");
    says (w, "lena", "grant statement grant.1 --csv --noheader", 0, ",1000,30,970\n");
    says (w, "alice", "grant statement grant.1", 5, "do not see");
    says (w, "nsf", "grant statement grant.9", 5, "no grant.9");
    snprintf (file, sizeof (file), "%s/page.html", w->d.dir);
    snprintf (words, sizeof (words), "grant statement grant.1 --html %s", file);
    says (w, "nsf", words, 0, "");
    char page[32768] = "";
    FILE *f = fopen (file, "r");
    assert_non_null (f);
    assert_true (fread (page, 1, sizeof (page) - 1, f) > 1000);
    fclose (f);
    assert_non_null (strstr (page, "<h1>EAR-1</h1>"));
    assert_non_null (
        strstr (page, "<td>tides</td><td>tides</td><td>alpha</td><td class='n'>1</td>"));
    assert_non_null (strstr (page, "<path class='left' d='M"));
    unlink (file);
    says (w, "nsf", "grant statement grant.1 --html /nowhere/page.html", 1, "cannot write");
    printed_as_pdf (w);
    /* Into the next year, and closed. */
    says (w, "lena", "allocation list -A ocean --csv --noheader", 0, "alloc.");
    printed (w, "alloc.", id);
    snprintf (words, sizeof (words), "allocation carry-forward %s --until +25:00:00:00 --cap 200",
              id);
    says (w, "lena", words, 3, "nui allocation:");
    says (w, "nsf", words, 0, "carried alloc.");
    snprintf (words, sizeof (words), "allocation carry-forward %s --until +1:00:00:00", id);
    says (w, "nsf", words, 1, "does not end before");
    says (w, "lena", "balance -A ocean --csv --noheader", 0, "ocean,ocean,500,0,0,500,0");
    says (w, "lena", "account close ocean --yes", 3, "nui account:");
    says (w, "nsf", "account close ocean", 2, "say nui account close ocean --yes");
    says (w, "nsf", "account close ocean --yes -d 'year is over'", 0, "closed account ocean");
    says (w, "nsf", "account close ocean -y", 1, "is closed");
    says (w, "nsf", "account reopen ocean", 0, "account ocean is open again");
    says (w, "nsf", "account reopen ocean", 1, "is not closed");
    says (w, "nsf", "account close ocean -y", 0, "closed account ocean");
    /* Frozen, with who and why wherever it is listed; what a manager froze a lead does not thaw. */
    says (w, "ops", "freeze account:phys", 2, "--reason TEXT");
    says (w, "ops", "freeze phys --reason x", 2, "is not user:NAME, account:NAME");
    says (w, "ops", "freeze account:phys --reason 'an audit'", 0,
          "nothing new is held for it; what runs goes on");
    says (w, "ops", "freeze account:phys --reason again", 1,
          "by nui://test/operator/ops: an audit");
    says (w, "ops", "account list", 0, "by nui://test/operator/ops: an audit");
    says (w, "ops", "balance", 0, "by nui://test/operator/ops: an audit");
    for (int i = 0; i < 2; i++) /* the first of all that asks of one, and the next */
        says (w, "ops", "balance -A phys", 0, "by nui://test/operator/ops: an audit");
    says (w, "lena", "unfreeze account:phys", 3, "nui unfreeze:");
    says (w, "ops", "unfreeze account:phys", 0, "account phys is no longer frozen");
    says (w, "ops", "balance -A phys", 0, "phys");
    assert_null (strstr (w->out, "an audit"));
    says (w, "ops", "freeze account:earth --reason theirs", 0, "account earth is frozen");
    says (w, "lena", "unfreeze account:earth", 3, "nui unfreeze:");
    says (w, "ops", "unfreeze account:earth", 0, "no longer frozen");
    says (w, "lena", "freeze account:earth --reason mine", 0, "account earth is frozen");
    says (w, "lena", "unfreeze account:earth", 0, "no longer frozen");
    says (w, "ops", "freeze user:alice --reason leave", 0, "user nui://test/user/alice is frozen");
    says (w, "ops", "user list", 0, "by nui://test/operator/ops: leave");
    says (w, "ops", "unfreeze user:alice", 0, "no longer frozen");
    says (w, "ops", "freeze grant.1 --reason review", 0, "grant grant.1 is frozen");
    says (w, "ops", "grant list", 0, "by nui://test/operator/ops: review");
    says (w, "ops", "unfreeze grant.1", 0, "no longer frozen");
    says (w, "nsf", "deposit -A ocean 5", 1, "is closed");
    says (w, "nsf", "account list --csv --noheader", 0, "ocean,ocean,closed");
    says (w, "nsf", "grant list --csv --noheader", 0, "earth,500,30,0,470,0,");
}

/* An allocation that has ended is settled at once, as an operation of who asks; never before. The daemon's own look
 * may come first: then the next one shows it. */
static void expiring (void **state)
{
    struct world *w = *state;
    char id[32], words[200];
    bool shown = false;
    says (w, "nsf", "account create brief --project earth", 0, "account brief");
    says (w, "nsf", "allocation expire alloc.999", 5,
          "nui allocation: there is no allocation alloc.999");
    says (w, "nsf", "allocation expire tides", 1, "'tides' is not an allocation, such as alloc.7");
    says (w, "nsf", "allocation expire alloc.1 --cap 5", 2, "expire ALLOCATION");
    says (w, "nsf", "allocation expire", 2, "expire ALLOCATION");
    says (w, "nsf", "deposit -A brief 70 --end +1:00:00:00", 0, "alloc.");
    printed (w, "alloc.", id);
    snprintf (words, sizeof (words), "allocation expire %s", id);
    says (w, "nsf", words, 1, "has not ended yet");
    says (w, "lena", words, 3, "nui allocation:");
    says (w, "nsf", "balance -A brief --csv --noheader", 0, "brief,earth,70,0,0,70,0");
    for (int i = 0; i < 10 && !shown; i++) {
        time_us end = (clock_now_us () / US_PER_S + 2) * US_PER_S;
        snprintf (words, sizeof (words), "deposit -A brief 30 --end @%lld",
                  (long long)(end / US_PER_S));
        if (nui (w, "nsf", words) != 0 && strstr (w->out, "ended already"))
            continue; /* a slow machine */
        printed (w, "alloc.", id);
        while (clock_now_us () <= end)
            usleep (10000);
        snprintf (words, sizeof (words), "allocation expire %s -d 'year is over' --json", id);
        shown = nui (w, "nsf", words) == 0;
        if (!shown && !strstr (w->out, "has ended, and nothing is left of it"))
            fail_msg ("nui %s: %s", words, w->out);
    }
    assert_true (shown);
    json_t *done = json_loads (w->out, 0, NULL);
    assert_non_null (done);
    assert_string_equal (id, json_string_value (json_object_get (done, "id")));
    assert_int_equal (
        0, strncmp (json_string_value (json_object_get (done, "done")), "expired alloc.", 14));
    json_decref (done);
    says (w, "nsf", "balance -A brief --csv --noheader", 0, "brief,earth,70,0,0,70,0");
    snprintf (words, sizeof (words), "%s ended: year is over", id);
    says (w, "nsf", "statement -A brief --csv --noheader", 0, words);
    snprintf (words, sizeof (words), "allocation expire %s", id);
    says (w, "nsf", words, 1, "nothing is left of it");
}

/* Who may use an account and an allocation, fallbacks of sites, roles. */
static void scoping (void **state)
{
    struct world *w = *state;
    says (w, "nsf", "account create own --project earth --users lena,-mara", 0, "account own");
    says (w, "nsf", "account create bad --project earth --users -ANY", 1, "excludes everyone");
    says (w, "nsf", "account modify own --users lena,lena", 1, "named twice");
    says (w, "nsf", "account list --csv --noheader", 0,
          "own,earth,\"for nui://test/user/lena, -nui://test/user/mara\"");
    says (w, "nsf", "deposit -A own 100 --for site=alpha --for user=lena", 0, "alloc.");
    says (w, "nsf", "deposit -A own 100 --for colour=red", 1, "none of user, site, machine, qos");
    says (w, "nsf", "deposit -A own 100 --for red", 2, "--for takes");
    says (w, "ops", "hold create -A own --user lena -t 10 --part beta/beta.201/1", 1, "OutOfScope");
    says (w, "ops", "hold create -A own --user mara -t 10 --part alpha/alpha.201/1", 1,
          "NotMember");
    says (w, "nsf", "project add-user earth mara", 0, "mara");
    says (w, "ops", "hold create -A own --user mara -t 10 --part alpha/alpha.201/1", 1, "NotUser");
    says (w, "nsf", "account modify own --fallback beta:earth@low,earth", 0, "2 fallbacks");
    says (w, "nsf", "account list --csv --noheader", 0, "falls back to beta:earth@low, earth;");
    says (w, "nsf", "account modify earth --fallback own", 1, "a loop");
    says (w, "ops", "rate set beta 1 --qos low=0.5 --qos '*=1'", 0, "beta");
    says (w, "ops", "hold create -A own --user lena -t 10 --part beta/beta.202/4 --csv --noheader",
          0, "beta,20,earth,true,low,");
    says (w, "ops", "hold create -A own --user lena -t 200 --part alpha/alpha.203/4", 1,
          "no account can pay 800 credits: own (");
    says (w, "ops", "hold create -A own --user lena -t 200 --part alpha/alpha.203/4", 1,
          "earth, a fallback (");
    says (w, "alice", "role grant alice manager", 3, "nui role:");
    says (w, "ops", "role grant mara manager", 0, "mara is manager of the bank");
    says (w, "ops", "role grant mara manager", 1, "already");
    says (w, "ops", "role grant mara king", 1, "neither manager nor auditor");
    says (w, "ops", "role grant otto auditor", 0, "otto is auditor");
    says (w, "mara", "deposit -A own 1 -d bonus", 0, "deposited 1 credits");
    says (w, "otto", "deposit -A own 1", 3, "nui deposit:");
    says (w, "otto", "role list --csv --noheader", 0, "mara,manager\n");
    says (w, "otto", "verify", 0, "as signed");
    says (w, "otto", "balance -A own --csv --noheader", 0, "own,earth,101,");
    says (w, "ops", "role revoke mara manager", 0, "no longer manager");
    says (w, "mara", "deposit -A own 1", 3, "nui deposit:");
}

static void refused (void **state)
{
    struct world *w = *state;
    says (w, "alice", "deposit -A phys 10", 3, "nui deposit:");
    says (w, "nsf", "deposit -A nobody 10", 5, "no account nobody");
    says (w, "nsf", "deposit -A phys ten", 2, "ten");
    says (w, "nsf", "deposit -A phys -- -10", 2, "more than nothing");
    says (w, "nsf", "deposit -A phys 0", 2, "more than nothing");
    says (w, "nsf", "deposit -A phys 0.0000001", 2, "0.0000001");
    says (w, "nsf", "deposit -A phys 99999999999999999999", 2, "");
    says (w, "nsf", "deposit 10", 2, "nui deposit -A ACCOUNT AMOUNT");
    says (w, "nsf", "deposit -A phys 10 --end 2001-01-01T00:00:00Z", 1, "ended already");
    says (w, "bob", "balance -A phys", 5, "not a member");
    says (w, "bob", "statement -A phys", 5, "not a member");
    says (w, "bob", "quote -n 1 -t 10 --site alpha -A phys", 0, "not a member");
    says (w, "alice", "balance --acount phys", 2, "account");
    says (w, "alice", "quote -n 1 --site alpha -A phys", 2, "-t");
    says (w, "alice", "quote -n 1 -t soon --site alpha -A phys", 2, "soon");
    says (w, "alice", "statement -A phys --from yesterdayish", 2, "yesterdayish");
    says (w, "ops", "rate set alpha cheap", 2, "cheap");
    says (w, "ops", "rate set alpha 1 --from 2001-01-01T00:00:00Z", 1, "past");
    says (w, "nsf", "account create 'a b' --project physics", 1, "a b");
    says (w, "nsf", "user", 2, "say create");
    says (w, "nsf", "user create nui://other/user/eve", 1, "another grid");
    says (w, "alice", "balance --help", 0, "usage: nui balance");
}

/* Writes a saved anchor again as another's: of the same block, with another link. */
static void forged_anchor (const char *saved, const char *forged)
{
    char line[8192];
    FILE *in = fopen (saved, "r"), *out = fopen (forged, "w");
    assert_non_null (in);
    assert_non_null (out);
    assert_non_null (fgets (line, sizeof (line), in));
    assert_non_null (strchr (line, '\n'));
    char *link = strchr (strchr (line, ' ') + 1, ' ') + 1; /* VERSION NUMBER LINK BLOCK */
    *link = *link == '0' ? '1' : '0';
    assert_true (fputs (line, out) >= 0);
    fclose (in);
    assert_int_equal (0, fclose (out));
}

static void audited (void **state)
{
    struct world *w = *state;
    char words[1200], anchors[600], proof[600], newest[80], last[200];
    snprintf (anchors, sizeof (anchors), "%s/anchors", w->d.dir);
    says (w, "ops", "verify", 0, "as signed");
    says (w, "ops", "verify --csv --noheader", 0, ",1,"); /* from the first operation on */
    says (w, "ops", "verify --rules", 0, "balances are the sums of their entries");
    says (w, "alice", "verify", 3, "nui verify:");
    says (w, "alice", "verify --rules", 3, "nui verify:");
    says (w, "alice", "verify --headers", 0, "not looked at");
    says (w, "ops", "verify --from 3", 0, "as signed");
    says (w, "ops", "verify --from 99999", 5, "no block 99999");
    snprintf (words, sizeof (words), "anchor --save %s", anchors);
    says (w, "nsf", words, 0, "Link");
    says (w, "alice", "anchor --csv --noheader", 0, ",");
    assert_int_equal (1, sscanf (w->out, "%79[^,]", newest));
    says (w, "nsf", "deposit -A phys 1", 0, "alloc."); /* one block more */
    snprintf (words, sizeof (words), "verify --anchor %s", anchors);
    says (w, "ops", words, 0, "Anchors met");
    snprintf (proof, sizeof (proof), "%s/forged", w->d.dir);
    forged_anchor (anchors, proof);
    snprintf (words, sizeof (words), "verify --anchor %s", proof);
    says (w, "ops", words, 1, "the history up to it was rewritten");
    says (w, "ops", "verify --anchor /dev/null", 1, "holds no anchor");
    snprintf (words, sizeof (words), "verify --anchor %s/ops.cfg", w->d.dir);
    says (w, "ops", words, 1, "line 1: this is no anchor");
    /* A line of a statement, with its proof. */
    snprintf (proof, sizeof (proof), "%s/proof", w->d.dir);
    snprintf (words, sizeof (words), "proof 1 --save %s", proof);
    says (w, "alice", words, 5, "concerns no account"); /* a project's creation moves nothing */
    says (w, "alice", "statement -A phys --csv --noheader", 0, "deposit");
    assert_int_equal (0, nui (w, "alice", "statement -A phys --json"));
    json_error_t error;
    json_t *st = json_loads (w->out, 0, &error), *lines = json_object_get (st, "lines");
    long long op = json_integer_value (
        json_object_get (json_array_get (lines, json_array_size (lines) - 1), "op"));
    json_decref (st);
    snprintf (words, sizeof (words), "proof %lld --save %s", op, proof);
    says (w, "alice", words, 0, "In block");
    says (w, "bob", words, 5, "concerns no account");
    snprintf (words, sizeof (words), "proof --check %s", proof);
    says (w, "bob", words, 0, "In block"); /* whoever has the file can check it */
    says (w, "bob", "proof --check /dev/null", 1, "no proof");
    says (w, "bob", "proof", 2, "OPERATION");
    says (w, "bob", "proof 0", 2, "OPERATION");
    says (w, "alice", "proof 999999", 5, "no such operation");
    FILE *file = fopen (proof, "r+");
    assert_non_null (file);
    fseek (file, 30, SEEK_SET);
    fputc ('x', file);
    fclose (file);
    says (w, "bob", words, 1, "nui proof:");
    /* Each change of the database shows, and where. */
    tamper (w, "UPDATE bank.op SET note = note || '!' WHERE id = 14");
    says (w, "ops", "verify", 1, "are not those that the bank signed");
    assert_non_null (strstr (w->out, "14"));
    tamper (w, "UPDATE bank.op SET note = left (note, -1) WHERE id = 14");
    says (w, "ops", "verify", 0, "as signed");
    snprintf (last, sizeof (last), "UPDATE bank.entry SET amount = 2 * amount WHERE op_id = %lld",
              op);
    tamper (w, last); /* still zero in sum */
    says (w, "ops", "verify", 1, "are not those that the bank signed");
    says (w, "ops", "verify --rules", 1, "breaks its rules in ");
    snprintf (last, sizeof (last), "UPDATE bank.entry SET amount = amount / 2 WHERE op_id = %lld",
              op);
    tamper (w, last);
    tamper (w, "UPDATE bank.balance SET posted = posted + 1 WHERE allocation_id = "
               "(SELECT min (allocation_id) FROM bank.balance)");
    says (w, "ops", "verify", 0, "as signed"); /* derived: no part of the history */
    says (w, "ops", "verify --rules", 1, "alloc.");
    tamper (w, "UPDATE bank.balance SET posted = posted - 1 WHERE allocation_id = "
               "(SELECT min (allocation_id) FROM bank.balance)");
    says (w, "ops", "verify --rules", 0, "");
    tamper (w, "UPDATE bank.block SET recorded_at = recorded_at + 1 WHERE number = 5");
    says (w, "alice", "verify --headers", 1, "block 5: the signature does not fit");
    tamper (w, "UPDATE bank.block SET recorded_at = recorded_at - 1 WHERE number = 5");
    tamper (w, "UPDATE bank.block SET signature = (SELECT signature FROM bank.block b WHERE "
               "b.number = 4) WHERE number = 5");
    says (w, "alice", "verify --headers", 1, "block 5: the signature does not fit");
    tamper (w, "DELETE FROM bank.block WHERE number = 5");
    says (w, "alice", "verify --headers", 1, "block 6 does not follow block 4");
    /* A history cut off at its end is whole in itself; who kept an anchor sees it. */
    tamper (w, "DELETE FROM bank.block WHERE number >= 5");
    says (w, "alice", "verify --headers", 0, "not looked at");
    snprintf (words, sizeof (words), "verify --headers --anchor %s", anchors);
    says (w, "alice", words, 1, "an anchor was taken of block ");
    assert_non_null (strstr (w->out, newest));
}

/* The next checkpoint of account phys that is younger than a moment. */
static long long checkpoint_of_phys (struct world *w, long long after)
{
    char sql[300];
    long long at = 0;
    PGconn *conn = pg_fixture_connect (w->conninfo);
    snprintf (sql, sizeof (sql),
              "SELECT coalesce (max (c.at), 0) FROM bank.checkpoint c JOIN bank.account a ON "
              "a.id = c.account_id WHERE a.name = 'phys' AND c.at > %lld",
              after);
    for (int i = 0; i < 1200 && !(at = pg_fixture_number (conn, sql)); i++)
        usleep (50000);
    PQfinish (conn);
    assert_true (at > 0);
    return at;
}

/* A statement's opening is the same with the sums that were kept and without, and so are all that follow. */
static void checkpointed (void **state)
{
    struct world *w = *state;
    char words[200], *with;
    long long first = checkpoint_of_phys (w, 0);
    says (w, "nsf", "deposit -A phys 3", 0, "alloc.");
    says (w, "nsf", "deposit -A phys 4", 0, "alloc.");
    long long at = checkpoint_of_phys (w, first);
    says (w, "ops", "verify --rules", 0, "checkpoints are the sums of the entries before them");
    snprintf (words, sizeof (words), "statement -A phys --json --from @%lld --to @%lld",
              at / 1000000 + 1, at / 1000000 + 2);
    while (time (NULL) <= at / 1000000 + 2)
        usleep (50000);
    assert_int_equal (0, nui (w, "alice", words));
    with = strdup (w->out);
    tamper (w, "UPDATE bank.checkpoint c SET posted = posted + 7000000 FROM bank.account a "
               "WHERE a.id = c.account_id AND a.name = 'phys'");
    says (w, "ops", "verify --rules", 1, "acct ");
    assert_int_equal (0, nui (w, "alice", words));
    assert_string_not_equal (w->out, with); /* it is looked at */
    tamper (w, "DELETE FROM bank.checkpoint");
    assert_int_equal (0, nui (w, "alice", words));
    assert_string_equal (w->out, with);
    says (w, "nsf", "deposit -A phys 5", 0, "alloc.");
    checkpoint_of_phys (w, at); /* from the first entry on, once more */
    says (w, "ops", "verify --rules", 0, "checkpoints are the sums of the entries before them");
    free (with);
}

/* Rates that a quote keeps. */
static void quoting (void **state)
{
    struct world *w = *state;
    says (
        w, "alice", "quote -t 1:40 --site alpha -A phys --keep 1:00:00 --csv", 0,
        "account,formula,quote,expires\nalpha,100,true,phys,1 procs * 100 s * 1 = 100 credits,quote.1,");
    says (w, "alice", "quote -t 1:40 --site alpha -A phys --keep 8:00:00:00", 1,
          "at most for 7:00:00:00");
    says (w, "alice", "quote -t 1:40 --site alpha -A phys --reusable", 2, "--keep");
    says (w, "alice", "quote -t 1:40 --site gamma -A phys --keep 1", 1, "no rate in force");
    says (w, "ops", "rate set alpha 4", 0, "4 credits");
    says (w, "ops",
          "hold create -A phys --user alice -t 10 --part alpha/alpha.301/1 --quote quote.1", 0,
          "10");
    says (w, "ops",
          "hold create -A phys --user alice -t 10 --part alpha/alpha.302/1 --quote quote.1", 1,
          "QuoteUsed: quote.1 is for one job, and alpha.301 has used it");
    says (w, "ops",
          "hold create -A phys --user alice -t 10 --part alpha/alpha.302/1 --quote nothing", 1,
          "quotes are named as quote.7 is");
}

/* What was kept is listed, shown and cancelled; what is cancelled is used no more. */
static void quotes_kept (void **state)
{
    struct world *w = *state;
    says (w, "alice", "quote -t 1:40 -n 2 --site alpha,beta -A phys --keep 1:00:00 --reusable", 0,
          "quote.2");
    says (w, "alice", "quote -t 1:40 --site alpha -A phys --keep 1:00:00", 0, "quote.3");
    assert_int_equal (0, nui (w, "alice", "quote list --csv"));
    static const char head[] = "quote,user,account,site,price,card,state,expires,reusable,job\n"
                               "quote.2,nui://test/user/alice,phys,alpha,800,2,open,";
    assert_memory_equal (w->out, head, sizeof (head) - 1);
    assert_null (strstr (w->out, "quote.1,"));
    says (w, "alice", "quote list --csv", 0,
          "\nquote.2,nui://test/user/alice,phys,beta,200,2,open,");
    says (w, "alice", "quote list", 0, "Quote    User   Account  Site   Price  Card  State ");
    says (w, "alice", "quote list --all --csv", 0,
          "quote.1,nui://test/user/alice,phys,alpha,100,1,used,");
    says (w, "alice", "quote show quote.1 --csv", 0, ",false,alpha.301\n");
    says (w, "alice", "quote list -A reserve --csv --noheader", 0, "");
    assert_string_equal (w->out, "");
    says (w, "ops", "quote list --all --csv --noheader -A phys", 0, "quote.3,");
    says (w, "bob", "quote list --all --csv --noheader", 0, "");
    assert_string_equal (w->out, "");
    says (w, "bob", "quote show quote.2", 5,
          "there is no quote.2 that keeps rates, or it is not yours");
    says (w, "bob", "quote cancel quote.2", 3,
          "neither the quote's user nor an allocation manager nor a lead");
    says (w, "ops",
          "hold create -A phys --user alice -t 10 --part alpha/alpha.303/1 --quote quote.2", 0,
          "40");
    says (w, "alice", "quote cancel quote.2", 0, "cancelled (quote.2)");
    says (w, "ops",
          "hold create -A phys --user alice -t 10 --part alpha/alpha.304/1 --quote quote.2", 1,
          "QuoteCancelled: quote.2 was cancelled");
    says (w, "alice", "quote show quote.2 --csv", 0, ",alpha,800,2,cancelled,");
    says (w, "alice", "quote cancel quote.2", 1, "cancelled already");
    says (w, "alice", "quote cancel quote.1", 1,
          "quote.1 cannot be cancelled: alpha.301 has used it");
    says (w, "ops", "quote cancel quote.3", 0, "cancelled (quote.3)");
    says (w, "alice", "quote list --csv --noheader", 0, "");
    assert_string_equal (w->out, "");
    says (w, "alice", "quote cancel quote.77", 5, "there is no quote.77");
    says (w, "alice", "quote cancel hold.1", 1, "'hold.1' is not a quote, such as quote.7");
    says (w, "alice", "quote cancel", 2, "cancel QUOTE");
    says (w, "alice", "quote list -t 1:40", 2, "list [-A ACCOUNT]");
    says (w, "alice", "quote -t 1:40 --site alpha --all", 2, "--all is for");
}

static void no_answer (void **state)
{
    struct world *w = *state;
    bankd_stop (&w->d, SIGKILL);
    says (w, "alice", "balance", 4, "nui balance:");
    bankd_start (&w->d, NUI_BANK_PROGRAM);
}

/* Ten charges of nearly all that one may be are more than 64 bits: the sum is exact all the same, and the statement and the
 * proof of a charge by hand name the operator. */
static void beyond (void **state)
{
    struct world *w = *state;
    char words[300];
    for (int i = 0; i < 10; i++) {
        snprintf (words, sizeof (words),
                  "charge --site gamma --site-job gamma.%d -n 100000000 --user alice -A nowhere "
                  "--start 2026-01-02T03:00:00Z --end 2026-01-02T05:46:39Z",
                  i + 1);
        says (w, "ops", words, 0, "999900000000");
    }
    says (w, "ops", "usage --by site --csv --noheader", 0,
          "gamma,10,9999000000000,0,9999000000000,");
    says (w, "nsf", "deposit -A phys 1000000000001", 1, "more than 1000000000000");
    char start[QUANTITY_TEXT_MAX], end[QUANTITY_TEXT_MAX];
    time_us now = clock_now_us ();
    snprintf (
        words, sizeof (words),
        "charge --site alpha --site-job alpha.990 -n 1 --user alice -A phys --start %s --end %s",
        time_format_iso (now - 3 * US_PER_S, start), time_format_iso (now - 2 * US_PER_S, end));
    says (w, "ops", words, 0, "Account:   phys");
    says (w, "alice", "statement -A phys --csv", 0, "nui://test/operator/ops");
    /* Nor is it the user's own in sums; what is given back of it counts with it. */
    says (w, "ops", "usage -A phys --by user,site --csv --noheader", 0,
          "nui://test/operator/ops,alpha,1,");
    snprintf (words, sizeof (words), "%.200s", strstr (w->out, "nui://test/operator/ops,alpha,1,"));
    long long charged = strtoll (words + strlen ("nui://test/operator/ops,alpha,1,"), NULL, 10);
    assert_true (charged > 0);
    assert_int_equal (0, nui (w, "ops", "statement -A phys --csv --noheader"));
    char *line = w->out, *last = NULL;
    while ((line = strstr (line, ",charge,alpha.990,")))
        last = line++;
    assert_non_null (last);
    snprintf (words, sizeof (words), "%.*s", (int)strcspn (last, "\n"), last);
    if (!strstr (words, "nui://test/operator/ops")) /* in its own line, not in another's */
        fail_msg ("the line of a charge by hand is not the operator's: %s", words);
    while (last > w->out && last[-1] != '\n' && last[-1] != ',')
        last--;
    long long op = strtoll (last, NULL, 10);
    snprintf (words, sizeof (words), "proof %lld", op);
    says (w, "alice", words, 0, "nui://test/operator/ops");
    assert_null (strstr (w->out, "nui://test/user/alice")); /* not her act */
    snprintf (words, sizeof (words), "refund %lld 1 -d mistyped", op);
    says (w, "ops", words, 0, "1");
    snprintf (words, sizeof (words), "nui://test/operator/ops,alpha,1,%lld,1,%lld,", charged,
              charged - 1);
    says (w, "ops", "usage -A phys --by user,site --csv --noheader", 0, words);
    says (w, "ops", "usage -A phys --by user", 0, "nui://test/operator/ops");
}

/* A clock time is the last such moment, and what was understood is said before it is booked: what comes up in an hour was
 * yesterday. */
static void clock_times (void **state)
{
    struct world *w = *state;
    enum { HOUR = 3600, DAY = 24 * HOUR };
    char words[300], from[QUANTITY_TEXT_MAX], to[QUANTITY_TEXT_MAX], clock[2][8];
    time_t start = time (NULL) + HOUR, end = start + HOUR;
    struct tm tm;
    strftime (clock[0], sizeof clock[0], "%H:%M", localtime_r (&start, &tm));
    strftime (clock[1], sizeof clock[1], "%H:%M", localtime_r (&end, &tm));
    start -= start % 60 + DAY;
    end -= end % 60 + DAY;
    snprintf (
        words, sizeof (words),
        "charge --site alpha --site-job alpha.991 -n 1 --user alice -A phys --start %s --end %s",
        clock[0], clock[1]);
    assert_int_equal (nui (w, "ops", words), 0);
    snprintf (words, sizeof (words),
              "nui charge: job alpha.991 of site alpha, 1 processors from %s to %s (1:00:00)\n",
              time_format_iso ((time_us)start * US_PER_S, from),
              time_format_iso ((time_us)end * US_PER_S, to));
    if (strncmp (w->out, words, strlen (words)) != 0)
        fail_msg ("'%s' does not begin with '%s'", w->out, words);
    assert_non_null (strstr (w->out, "Charged:   3600"));
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (setting_up),  cmocka_unit_test (looking),
        cmocka_unit_test (correcting),  cmocka_unit_test (granting),
        cmocka_unit_test (expiring),    cmocka_unit_test (scoping),
        cmocka_unit_test (refused),     cmocka_unit_test (checkpointed),
        cmocka_unit_test (audited),     cmocka_unit_test (quoting),
        cmocka_unit_test (quotes_kept), cmocka_unit_test (beyond),
        cmocka_unit_test (clock_times), cmocka_unit_test (no_answer),
    };
    signal (SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests (tests, up, down);
}
