/* What becomes of grants, splits, deposits, names of accounts and places of projects: by the real nui against the real
 * nui-bank, with what statements and funders' pages then say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/clock.h"
#include "tests/unit/bank/bankcli.h"
#include "tests/unit/bank/bankworld.h"

static char out[32768];

static void says (struct world *w, const char *who, const char *words, int code, const char *part)
{
    bankcli_says (&w->d, out, sizeof (out), who, words, code, part);
}

static void also (const char *part)
{
    if (!strstr (out, part))
        fail_msg ("it does not say '%s':\n%s", part, out);
}

/* The account lasers is of a project below physics, which lena leads; alice leads optics. */
static int fresh (void **state)
{
    static const char *const who[] = {"alice", "bob", "nsf", "ops", "lena", "mara"};
    if (world_fresh (state, "awards", "") < 0)
        return -1;
    struct world *w = *state;
    for (size_t i = 0; i < sizeof (who) / sizeof (who[0]); i++)
        bankcli_config (&w->d, who[i]);
    says (w, "nsf", "user create lena", 0, "user.3");
    says (w, "nsf", "project add-user physics lena --role lead", 0, "lead of project physics");
    says (w, "lena", "project create optics --parent physics", 0, "project.2");
    says (w, "lena", "project add-user optics alice --role lead", 0, "lead of project optics");
    says (w, "alice", "account create lasers --project optics", 0, "created account lasers");
    says (w, "nsf", "funder create nsf", 0, "funder.1");
    return 0;
}

static int closed (void **state)
{
    struct world *w = *state;
    says (w, "ops", "verify", 0, "as signed");
    says (w, "ops", "verify --rules", 0, "");
    return world_closed (state);
}

static void deposited_twice (void **state)
{
    struct world *w = *state;
    says (w, "nsf", "deposit -A phys 10 --reference 'PO 17'", 0, "deposited 10 credits");
    says (w, "nsf", "deposit -A phys 10 --reference 'PO 17'", 1,
          "account phys has got a deposit of reference PO 17 already, alloc.");
    says (w, "nsf", "deposit -A rich 10 --reference 'PO 17'", 0,
          "deposited 10 credits"); /* a part of it */
    says (w, "nsf", "deposit -A phys 10 --reference 'PO 17' --again", 0, "deposited 10 credits");
    says (w, "nsf", "deposit -A phys 10 --again", 2, "--reference TEXT");
    says (w, "nsf", "deposit -A phys 10", 0, "deposited 10 credits");
    says (w, "nsf", "deposit -A phys 10", 0, "deposited 10 credits");
    says (w, "alice", "balance -A phys --csv --noheader", 0, "phys,physics,1040,0,0,1040,0");
    assert_int_equal (
        2, pg_fixture_number (
               w->sql, "SELECT count (*) FROM bank.allocation l JOIN bank.account a ON "
                       "a.id = l.account_id WHERE l.reference = 'PO 17' AND a.name = 'phys'"));
}

/* The newest allocation of an account. */
static long long newest (struct world *w, const char *account)
{
    char sql[256];
    snprintf (sql, sizeof (sql),
              "SELECT max (l.id) FROM bank.allocation l JOIN bank.account a ON a.id = l.account_id "
              "WHERE a.name = '%s'",
              account);
    return pg_fixture_number (w->sql, sql);
}

/* A part of an allocation of phys for lasers. */
static void split (struct world *w, long long alloc, const char *amount)
{
    char words[256];
    snprintf (words, sizeof (words), "split --from phys --to lasers --allocation alloc.%lld %s",
              alloc, amount);
    says (w, "lena", words, 0, "gave ");
}

/* What is neither spent nor held goes back, by who gave it: not by who got it. */
static void split_back (void **state)
{
    struct world *w = *state;
    char words[256];
    says (w, "lena", "split --from phys --to lasers 400", 0, "gave 400 credits");
    long long alloc = newest (w, "lasers");
    says (w, "ops", "hold create -A lasers --user alice -t 1:40 --part alpha/alpha.1/1", 0, "100");
    snprintf (words, sizeof (words), "split back alloc.%lld 350 -d unused", alloc);
    says (w, "lena", words, 1, "350 credits asked, 300 of account lasers can be taken out");
    snprintf (words, sizeof (words), "split back alloc.%lld 50 -d unused", alloc);
    says (w, "alice", words, 3, "neither an allocation manager nor a lead of the project");
    says (w, "bob", words, 3, "");
    says (w, "lena", words, 0, "took back 50 of alloc.");
    says (w, "alice", "statement -A lasers --csv", 0, ",split-back,,,-50,0,lena,");
    also ("back to phys: unused");
    says (w, "lena", "statement -A phys --csv", 0, ",split-back,,,50,0,lena,");
    snprintf (words, sizeof (words), "split back alloc.%lld", alloc);
    says (w, "nsf", words, 0,
          "took back what is not used of alloc."); /* its own deposit, which lena split */
    says (w, "lena", words, 1, "has nothing that is neither spent nor held");
    says (w, "ops", "deposit -A phys 5", 0, "deposited 5 credits");
    split (w, newest (w, "phys"), "5");
    snprintf (words, sizeof (words), "split back alloc.%lld", newest (w, "lasers"));
    says (w, "nsf", words, 3, "it is about what others gave");
    says (w, "ops", words, 0, "took back what is not used of alloc.");
    says (w, "ops", "withdraw -A phys 5", 0, "");
    says (w, "alice", "balance -A lasers --csv --noheader", 0, "lasers,optics,100,0,100,0,0");
    says (w, "alice", "balance -A phys --csv --noheader", 0, "phys,physics,900,0,0,900,0");
    snprintf (words, sizeof (words), "split back alloc.%lld 1", newest (w, "phys"));
    says (w, "ops", words, 5, "was not split off another one");
    says (w, "ops", "split back alloc.999", 5, "alloc.999 is not there");
    says (w, "lena", "split back", 2, "back ALLOCATION [AMOUNT]");
    /* Frozen, it stays where it is; a closed account gets nothing. */
    says (w, "lena", "split --from phys --to lasers 40", 0, "gave 40 credits");
    snprintf (words, sizeof (words), "split back alloc.%lld", newest (w, "lasers"));
    says (w, "ops", "freeze account:lasers --reason audit", 0, "frozen");
    says (w, "lena", words, 1, "account lasers is frozen");
    says (w, "ops", "unfreeze account:lasers", 0, "");
    says (w, "ops", "account close phys --yes", 0, "");
    says (w, "ops", words, 1, "account phys is closed");
}

/* A later end, for what ends with the grant. */
static void extended (void **state)
{
    struct world *w = *state;
    says (w, "nsf", "grant create 1000 -A phys --reference G1 --end 2040-01-01T00:00:00Z", 0,
          "grant.1");
    /* What the bank froze its funder does not thaw; what it froze itself it does. */
    says (w, "ops", "freeze grant.1 --reason audit", 0, "frozen");
    says (w, "nsf", "unfreeze grant.1", 3, "nui unfreeze:");
    says (w, "ops", "unfreeze grant.1", 0, "no longer frozen");
    says (w, "nsf", "freeze grant.1 --reason mine", 0, "frozen");
    says (w, "nsf", "unfreeze grant.1", 0, "no longer frozen");
    long long alloc = newest (w, "phys");
    split (w, alloc, "100");
    split (w, alloc, "50 --end 2039-01-01T00:00:00Z");
    says (w, "nsf", "grant extend grant.1 --end 2039-06-01T00:00:00Z --reason late", 1,
          "grant.1 does not end before 2040-01-01T00:00:00Z");
    says (w, "nsf", "grant extend grant.1 --end 2041-01-01T00:00:00Z", 2, "with --reason TEXT");
    says (w, "lena", "grant extend grant.1 --end 2041-01-01T00:00:00Z --reason late", 3, "");
    says (w, "nsf", "grant extend grant.9 --end 2041-01-01T00:00:00Z --reason late", 5,
          "no grant grant.9");
    says (w, "nsf",
          "grant extend grant.1 --end 2041-01-01T00:00:00Z --reason 'the laser came late'", 0,
          "grant.1 ends 2041-01-01T00:00:00Z now (grant.1)");
    says (w, "nsf", "grant list --csv --noheader", 0, ",2041-01-01T00:00:00Z,2,");
    says (w, "alice", "balance -A lasers --allocations --csv", 0, ",2041-01-01T00:00:00Z,");
    also (",2039-01-01T00:00:00Z,");
    says (w, "alice", "statement -A lasers --csv", 0, "grant-extend,,,0,0,nsf,");
    also (
        "grant.1 extended from 2040-01-01T00:00:00Z to 2041-01-01T00:00:00Z: the laser came late");
    says (w, "nsf", "grant statement grant.1", 0,
          "grant-extend by nui://test/agency/nsf: grant.1 extended from");
    says (w, "nsf", "grant create 10 -A phys --reference G2", 0, "grant.2");
    says (w, "nsf", "grant extend grant.2 --end 2041-01-01T00:00:00Z --reason late", 1,
          "grant.2 has no end");
}

/* To another amount: never below what is spent or held, wherever it was passed on to. */
static void amended (void **state)
{
    struct world *w = *state;
    says (w, "nsf", "grant create 1000 -A phys --reference G1", 0, "grant.1");
    split (w, newest (w, "phys"), "400");
    says (w, "ops", "hold create -A lasers --user alice -t 1:40 --part alpha/alpha.1/1", 0, "100");
    says (w, "nsf", "grant amend grant.1 1000 --reason same", 1,
          "grant.1 is of that amount already");
    says (w, "nsf", "grant amend grant.1 0 --reason none", 2, "more than nothing");
    says (w, "nsf", "grant amend grant.1 1500 --reason 'a second year'", 0,
          "grant.1 is of 1500 credits now");
    says (w, "lena", "balance -A phys --csv --noheader", 0,
          "phys,physics,2100,0,0,2100,0"); /* 1000 others */
    says (
        w, "nsf", "grant amend grant.1 99 --reason cut", 1,
        "1400 of the 1500 credits of grant.1 are neither spent, held nor ended: it cannot be of 99");
    says (w, "nsf", "grant amend grant.1 300 --reason cut", 0, "grant.1 is of 300 credits now");
    says (w, "lena", "balance -A phys --csv --noheader", 0, "phys,physics,1000,0,0,1000,0");
    says (w, "lena", "balance -A lasers --csv --noheader", 0, "lasers,optics,300,0,100,200,0");
    says (w, "nsf", "grant amend grant.1 100 --reason cut", 0, "");
    says (w, "nsf", "grant list --csv --noheader", 0, "grant.1,nsf,G1,phys,100,0,100,0,0,");
    says (w, "alice", "statement -A lasers --csv", 0, ",grant-amend,,,-100,0,nsf,");
    also ("grant.1 amended from 300 to 100 credits: cut");
    also ("grant.1 amended from 1000 to 1500 credits: a second year"); /* of all that have a part */
    says (w, "nsf", "grant amend grant.1 200 --reason back", 0, "");
    says (w, "lena", "balance -A phys --csv --noheader", 0, "phys,physics,1100,0,0,1100,0");
    says (w, "ops", "account close phys --yes", 0, "");
    says (w, "nsf", "grant amend grant.1 300 --reason more", 1,
          "phys, which grant.1 was given to, is closed");
}

/* Of an agency's page: read it whole. */
static void page_of (struct world *w, const char *grant, char *text, size_t size)
{
    char words[400], file[300];
    snprintf (file, sizeof (file), "%s/page.html", w->d.dir);
    snprintf (words, sizeof (words), "grant statement %s --html %s", grant, file);
    says (w, "nsf", words, 0, "");
    FILE *f = fopen (file, "r");
    assert_non_null (f);
    text[fread (text, 1, size - 1, f)] = '\0';
    fclose (f);
}

/* What is unspent goes, what is held pays for its jobs, and nothing comes back to be spent. */
static void revoked (void **state)
{
    struct world *w = *state;
    static char page[65536];
    says (w, "nsf", "grant create 1000 -A phys --reference G1", 0, "grant.1");
    split (w, newest (w, "phys"), "400.000001");
    says (w, "nsf", "grant create 5 -A phys --reference later --start 2040-01-01T00:00:00Z", 0,
          "grant.2");
    says (w, "ops", "hold create -A lasers --user alice -t 1:40 --part alpha/alpha.1/1", 0, "100");
    says (w, "lena", "grant revoke grant.1 --reason fraud", 3, "");
    says (w, "nsf", "grant revoke grant.1", 2, "--reason");
    says (w, "nsf", "grant revoke grant.1 --reason 'the project ended'", 0, "grant.1 is revoked");
    says (w, "lena", "balance -A phys --csv --noheader", 0, "phys,physics,1000,0,0,1000,5");
    says (w, "lena", "balance -A lasers --csv --noheader", 0,
          "lasers,optics,100,0,100,0,0"); /* what the hold keeps */
    says (w, "nsf", "grant list --csv --noheader", 0, "grant.1,nsf,G1,phys,100,0,100,0,0,");
    also ("by nui://test/agency/nsf: the project ended");
    says (w, "ops", "hold create -A lasers --user alice -t 1 --part alpha/alpha.2/1", 1,
          "NoAllocation");
    /* The job uses 40 of its 100: the others end with the grant. */
    char words[256], start[QUANTITY_TEXT_MAX], end[QUANTITY_TEXT_MAX];
    time_us now = clock_now_us ();
    snprintf (words, sizeof (words),
              "charge --site alpha --site-job alpha.1 --hold hold.1 -n 1 --start %s --end %s",
              time_format_iso (now - 50 * US_PER_S, start),
              time_format_iso (now - 10 * US_PER_S, end));
    says (w, "ops", words, 0, "40");
    says (w, "nsf", "grant list --csv --noheader", 0, "grant.1,nsf,G1,phys,100,40,0,0,60,");
    says (w, "alice", "statement -A lasers --csv", 0, ",grant-revoke,,,-300.000001,0,nsf,");
    also ("grant.1 revoked, 900 credits taken back: the project ended");
    says (w, "nsf", "grant revoke grant.1 --reason again", 1, "grant.1 was revoked");
    says (w, "nsf", "grant amend grant.1 2000 --reason again", 1, "grant.1 was revoked");
    says (w, "nsf", "grant extend grant.1 --end 2041-01-01T00:00:00Z --reason again", 1,
          "grant.1 was revoked");
    says (w, "nsf", "deposit -A phys 1 --grant grant.1", 1, "grant.1 was revoked");
    says (w, "nsf", "grant create 1000 -A phys --reference G1", 1,
          "has given a grant of reference G1 already");
    page_of (w, "grant.1", page, sizeof (page));
    assert_non_null (
        strstr (page, "grant-revoke: grant.1 revoked, 900 credits taken back: the project ended"));
    assert_non_null (strstr (page, "<td class='n'>100</td>")); /* granted, in the period */
    /* One that has not begun is gone too. */
    says (w, "nsf", "grant revoke grant.2 --reason typo", 0, "grant.2 is revoked");
    says (w, "lena", "balance -A phys --csv --noheader", 0, "phys,physics,1000,0,0,1000,0");
}

/* An account's old name is nobody else's, and its statement goes back to the beginning. */
static void renamed (void **state)
{
    struct world *w = *state;
    says (w, "ops", "hold create -A phys --user alice -t 1:40 --part alpha/alpha.1/1", 0, "100");
    says (w, "bob", "account rename phys stolen", 3, "");
    says (w, "lena", "account rename phys rich", 1, "account rich exists already");
    says (w, "lena", "account rename nothing other", 3, "");
    says (w, "ops", "account rename nothing other", 5, "no account nothing");
    says (w, "lena", "account rename phys photons -d 'clearer'", 0, "account phys is photons now");
    says (w, "alice", "statement -A photons --csv", 0, "phys renamed to photons: clearer");
    also (",hold,");
    also (",account-rename,,,0,0,lena,");
    says (w, "alice", "statement -A phys", 0, "Account photons:"); /* as it is known from before */
    says (w, "alice", "balance -A phys --csv --noheader", 0, "photons,physics,1000,0,100,900,0");
    says (w, "alice", "hold list -A phys --csv --noheader", 0, "hold.1,photons,");
    says (w, "alice", "account list", 0, "was phys");
    /* Jobs that were signed for the old name are paid for. */
    says (w, "ops", "hold create -A phys --user alice -t 1:40 --part alpha/alpha.2/1", 0,
          "photons");
    /* Somebody who takes the name over would read all that. */
    says (w, "nsf", "project create thieves", 0, "");
    says (w, "nsf", "project add-user thieves bob --role lead", 0, "");
    says (w, "bob", "account create phys --project thieves", 1, "account phys exists already");
    says (w, "bob", "account create mine --project thieves", 0, "");
    says (w, "bob", "account rename mine phys", 1, "account phys is account photons now");
    says (w, "bob", "statement -A phys", 5, "");
    /* Back again, and on: all names stay its own. */
    says (w, "lena", "account rename photons phys", 0, "");
    says (w, "lena", "account rename phys quanta", 0, "");
    says (w, "alice", "statement -A photons", 0, "Account quanta:");
    says (w, "bob", "account rename mine photons", 1, "account photons is account quanta now");
    /* Two names are one account. */
    says (w, "ops", "transfer --from phys --to quanta 1", 1,
          "transfer: from account phys to itself");
    says (w, "lena", "split --from photons --to quanta 1", 1,
          "split: from account photons to itself");
    says (w, "ops", "account modify rich --fallback phys,quanta", 1,
          "fallback quanta is named twice");
}

/* Another place in the tree: whoever leads above there leads it, and nobody else. */
static void moved (void **state)
{
    struct world *w = *state;
    says (w, "nsf", "project create chemistry", 0, "project.3");
    says (w, "nsf", "project add-user chemistry bob --role lead", 0, "");
    says (w, "bob", "project move optics --parent chemistry", 3, "");
    says (w, "lena", "project move optics --parent chemistry", 3, "");
    says (w, "nsf", "project move physics --parent optics", 1, "a loop");
    says (w, "nsf", "project move physics --parent physics", 1, "a loop");
    says (w, "nsf", "project move optics --parent nothing", 5, "no project nothing");
    says (w, "nsf", "project move optics --parent physics", 1, "is part of physics already");
    says (w, "nsf", "project move optics", 2, "move PROJECT --parent PROJECT");
    split (w, newest (w, "phys"), "7");
    says (w, "lena", "balance -A lasers", 0, "lasers");
    says (w, "bob", "account modify lasers --users ANY", 3, "");
    says (w, "nsf", "project move optics --parent chemistry -d 'new institute'", 0,
          "project optics is part of chemistry now");
    says (w, "nsf", "project list", 0, "part of chemistry");
    says (w, "bob", "account modify lasers --users ANY", 0, "");
    says (w, "lena", "account modify lasers --users ANY", 3, "");
    assert_int_equal (0, bankcli_run (&w->d, out, sizeof (out), "lena", "balance --csv"));
    assert_null (strstr (out, "lasers"));
    says (w, "lena", "split --from phys --to lasers 1", 1,
          "project optics is not below project physics");
    char words[128];
    snprintf (words, sizeof (words), "split back alloc.%lld", newest (w, "lasers"));
    says (w, "lena", words, 1,
          "project optics is no longer below project physics: what was split stays there");
    says (w, "alice", "statement -A lasers --csv", 0, "optics moved to chemistry: new institute");
    says (w, "nsf", "project move optics --parent ''", 0, "project optics is part of none now");
    says (w, "bob", "account modify lasers --users ANY", 3, "");
    /* As deep as the tree may be, not deeper, with all that is below. */
    for (int i = 0; i < 8; i++) {
        snprintf (words, sizeof (words), "project create d%d%s%s", i, i ? " --parent d" : "",
                  i ? (char[]){(char)('0' + i - 1), 0} : "");
        says (w, "nsf", words, 0, "");
    }
    says (w, "ops", "project create below --parent optics", 0, "");
    says (w, "nsf", "project move optics --parent d6", 3, "a project of others");
    says (w, "ops", "project move optics --parent d7", 1, "more than 8 deep");
    says (w, "ops", "project move optics --parent d6", 0, "part of d6");
}

/* Sums beyond 64 bits of micro-credits are exact: of a grant over many accounts, of what an account may promise with its
 * credit limits, and of what its jobs hold. */
static void beyond (void **state)
{
    struct world *w = *state;
    static char page[65536];
    char words[256];
    for (int i = 0; i < 11; i++) {
        snprintf (words, sizeof (words), "account create a%d --project physics", i);
        says (w, "nsf", words, 0, "");
        snprintf (words, sizeof (words),
                  i ? "deposit -A a%d 900000000000.000001 --grant grant.1"
                    : "grant create 900000000000.000001 -A a%d --reference huge",
                  i);
        says (w, "nsf", words, 0, "");
        says (w, "nsf", "deposit -A rich 1", 0, "");
        snprintf (words, sizeof (words),
                  "allocation modify alloc.%lld --credit-limit 1000000000000", newest (w, "rich"));
        says (w, "nsf", words, 0, "");
    }
    says (w, "nsf", "grant list --csv --noheader", 0,
          "grant.1,nsf,huge,a0,9900000000000.000011,0,0,9900000000000.000011,0,");
    says (w, "nsf", "grant statement grant.1 --csv --noheader", 0,
          ",9900000000000.000011,0,9900000000000.000011\n");
    page_of (w, "grant.1", page, sizeof (page));
    assert_non_null (strstr (
        page, "<td>Granted</td><td class='n'>9\u2009900\u2009000\u2009000\u2009000.000011</td>"));
    assert_non_null (strstr (page, "<td>Expired, or owed before</td><td class='n'>0</td>"));
    assert_non_null (strstr (
        page,
        "<td>Left at its end</td><td class='n'>9\u2009900\u2009000\u2009000\u2009000.000011</td>"));
    says (w, "nsf", "grant amend grant.1 5 --reason cut", 1, "grant.1 is of more than can be told");
    says (w, "alice", "balance -A rich --csv --noheader", 0,
          "rich,physics,100011,0,0,11000000100011,0");
    says (w, "alice", "statement -A rich", 0, "posted 100011 - held 0 = available 11000000100011.");
    for (int i = 0; i < 10; i++) {
        snprintf (words, sizeof (words),
                  "hold create -A rich --user alice -t 2:46:39 --part alpha/alpha.%d/100000000",
                  i + 1);
        says (w, "ops", words, 0, "999900000000");
    }
    says (w, "alice", "balance -A rich --csv --noheader", 0,
          "rich,physics,100011,0,9999000000000,1001000100011,0");
    says (w, "alice", "statement -A rich", 0,
          "posted 100011 - held 9999000000000 = available 1001000100011.");
    says (w, "alice", "statement -A rich --json", 0, "\"closing_held\": 9999000000000,");
    says (w, "alice", "statement -A rich --csv", 0, "closing,,,100011,9999000000000,");
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown (deposited_twice, fresh, closed),
        cmocka_unit_test_setup_teardown (split_back, fresh, closed),
        cmocka_unit_test_setup_teardown (extended, fresh, closed),
        cmocka_unit_test_setup_teardown (amended, fresh, closed),
        cmocka_unit_test_setup_teardown (revoked, fresh, closed),
        cmocka_unit_test_setup_teardown (renamed, fresh, closed),
        cmocka_unit_test_setup_teardown (moved, fresh, closed),
        cmocka_unit_test_setup_teardown (beyond, fresh, closed),
    };
    signal (SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests (tests, world_up, world_down);
}
