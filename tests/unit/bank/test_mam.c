/* mam-*, as links of the real nui against the real nui-bank: the calls that Waldur's site agent makes, word for word (a
 * description that it split at its spaces, too), and what it reads of the answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/base/clock.h"
#include "proto/rpc/envelope.h"
#include "tests/unit/bank/bankcli.h"
#include "tests/unit/bank/pg_fixture.h"

struct world {
    struct pg_fixture *pg;
    struct bankd d;
    char out[16384];
};

static const char *const links[] = {
    "list-accounts", "list-funds",  "list-users", "list-usagerecords", "create-account",
    "create-fund",   "delete-fund", "deposit",    "modify-account",    "delete-account"};

static int up (void **state)
{
    struct world *w = calloc (1, sizeof (*w));
    char path[512];
    w->pg = pg_fixture_start (false);
    if (!w->pg)
        return -1;
    bankd_open (&w->d, NUI_BANK_PROGRAM, pg_fixture_database (w->pg, "mam"), "");
    bankcli_config (&w->d, "alice");
    bankcli_config (&w->d, "nsf");
    bankcli_config (&w->d, "ops");
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        snprintf (path, sizeof (path), "%s/mam-%s", w->d.dir, links[i]);
        assert_int_equal (0, symlink (NUI_PROGRAM, path));
    }
    *state = w;
    return bankd_wait_serving (&w->d, true) ? 0 : -1;
}

static int down (void **state)
{
    struct world *w = *state;
    char path[512];
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        snprintf (path, sizeof (path), "%s/mam-%s", w->d.dir, links[i]);
        unlink (path);
    }
    bankd_close (&w->d);
    pg_fixture_stop (w->pg);
    free (w);
    return 0;
}

/* The exit code; what it says is in out. */
static int mam (struct world *w, const char *who, const char *words)
{
    char command[2048];
    snprintf (command, sizeof (command), "NUI_CONFIG=%s/%s.cfg %s/mam-%s 2>&1", w->d.dir, who,
              w->d.dir, words);
    FILE *p = popen (command, "r");
    assert_non_null (p);
    w->out[fread (w->out, 1, sizeof (w->out) - 1, p)] = '\0';
    int status = pclose (p);
    return WIFEXITED (status) ? WEXITSTATUS (status) : -1;
}

/* Exactly that, and 0. */
static void gives (struct world *w, const char *words, const char *all)
{
    int rc = mam (w, "nsf", words);
    if (rc != 0 || strcmp (w->out, all) != 0)
        fail_msg ("mam-%s: exit %d; it printed:\n%sand not:\n%s", words, rc, w->out, all);
}

static void refused (struct world *w, const char *who, const char *words, int code,
                     const char *part)
{
    int rc = mam (w, who, words);
    if (rc != code || !strstr (w->out, part))
        fail_msg ("mam-%s: exit %d, wanted %d and '%s'; it printed:\n%s", words, rc, code, part,
                  w->out);
}

static void does (struct world *w, const char *words)
{
    refused (w, "nsf", words, 0, "");
}

#define ACCOUNTS "list-accounts --raw --quiet --show Name,Description,Organization"

static void accounts (void **state)
{
    struct world *w = *state;
    gives (w, ACCOUNTS, "");
    does (w, "create-account -a c_uni -d '\"University\"' -o c_uni");
    does (w, "create-account -a a_phys -d '\"High' energy 'physics\"' -o c_uni");
    does (w, "create-account -a a_bio -d biology -o c_bio");
    gives (w, ACCOUNTS,
           "a_bio|biology|c_bio\na_phys|High energy physics|c_uni\nc_bio||c_bio\n"
           "c_uni|University|c_uni\n");
    gives (w, ACCOUNTS " -a a_phys", "a_phys|High energy physics|c_uni\n");
    gives (w, ACCOUNTS " -a nobody", "");
    gives (w, "list-accounts --raw --show Organization,Name -a a_bio",
           "Organization|Name\nc_bio|a_bio\n");
    gives (w, "list-accounts --csv --show Name,Organization -a a_bio",
           "Name,Organization\na_bio,c_bio\n");
    refused (w, "nsf", "create-account -a a_phys -d twice -o c_uni", 1, "exists already");
    refused (w, "nsf", "create-account -a a_chem -d two words -o c_uni", 2, "'words'");
    refused (w, "alice", "create-account -a a_chem -d none -o c_uni", 3, "nui mam-create-account:");
    refused (w, "nsf", "list-accounts --raw --show Colour", 2, "no column 'Colour'");
    refused (w, "nsf", "list-accounts --raw --json", 2, "--raw");
}

/* A description adds neither columns nor records, whatever its reader takes for the end of a line. */
static void forged (void **state)
{
    struct world *w = *state;
    does (w, "create-account -a a_evil -d 'x|y\xe2\x80\xa8"
             "a_phys|mine|z\xc2\x85.' -o c_uni");
    gives (w, ACCOUNTS " -a a_evil", "a_evil|x y a_phys mine z .|c_uni\n");
}

static void charged (struct world *w)
{
    struct bankd_job job = {.account = "a_phys"};
    Nui__Bank__V1__ChargeRequest m = NUI__BANK__V1__CHARGE_REQUEST__INIT;
    uint8_t key[16];
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
}

#define RECORDS "list-usagerecords --raw --quiet --show Account,User,Charge -a a_phys"

static void funds (void **state)
{
    struct world *w = *state;
    char words[256], today[32];
    int fund = 0;
    gives (w, "list-funds --raw --quiet -a a_phys --show Id", "");
    does (w, "create-fund -a a_phys");
    does (w, "create-fund -a a_bio");
    does (w, "list-funds --raw --quiet -a a_phys --show Id");
    assert_int_equal (1, sscanf (w->out, "%d\n", &fund));
    snprintf (words, sizeof (words), "deposit -a a_phys -z 1000 -f %d", fund);
    does (w, words);
    refused (w, "alice", words, 5, "has no fund"); /* that she may see */
    snprintf (words, sizeof (words), "deposit -a a_bio -z 1000 -f %d", fund);
    refused (w, "nsf", words, 5, "account a_bio has no fund");
    refused (w, "nsf", "delete-fund -f 99999", 5, "no fund 99999");
    gives (w, "list-funds --raw --quiet -u alice -a a_phys --show Constraints,Balance", "");
    does (w, "modify-account --add-user +alice -a a_phys");
    gives (w, "list-funds --raw --quiet -u alice -a a_phys --show Constraints,Balance",
           "Account=a_phys|1000\n");
    gives (w, "list-users -a a_phys --raw --show Name,DefaultAccount --quiet", "alice|a_phys\n");
    gives (w, "list-users -a a_bio --raw --show Name,DefaultAccount --quiet", "");
    gives (w, RECORDS " -s 2001-01-01 -e 2001-01-31", "");
    bankcli_says (&w->d, w->out, sizeof (w->out), "ops", "rate set alpha 1", 0, "");
    charged (w);
    time_t now = time (NULL);
    struct tm tm;
    strftime (today, sizeof (today), "%Y-%m-%d", localtime_r (&now, &tm));
    snprintf (words, sizeof (words), RECORDS " -s 2001-01-01 -e %s", today);
    gives (w, words, "a_phys|alice|60\n");
    now += 40 * 24 * 3600;
    strftime (today, sizeof (today), "%Y-%m-%d", localtime_r (&now, &tm));
    snprintf (words, sizeof (words), RECORDS " -s 2001-01-01 -e %s", today);
    gives (w, words, "a_phys|alice|60\n");
    gives (w, RECORDS " -s 2001-01-01 -e 2001-01-31", "");
    refused (w, "nsf", RECORDS " -s noon", 1, "noon");
    gives (w, "list-funds --raw --quiet -u alice -a a_phys --show Constraints,Balance",
           "Account=a_phys|940\n");
    does (w, "modify-account --del-user alice -a a_phys");
    gives (w, "list-users -a a_phys --raw --show Name,DefaultAccount --quiet", "");
}

/* As the agent does it: the account first, then the fund, where it still finds one. */
static void deleted (void **state)
{
    struct world *w = *state;
    char words[64];
    int fund = 0;
    does (w, "delete-account -a a_phys");
    gives (w, "list-funds --raw --quiet -a a_phys --show Id", "");
    gives (w, ACCOUNTS " -a a_phys", "");
    does (w, "list-funds --raw --quiet -a a_bio --show Id");
    assert_int_equal (1, sscanf (w->out, "%d\n", &fund));
    snprintf (words, sizeof (words), "delete-fund -f %d", fund);
    does (w, words);
    gives (w, "list-funds --raw --quiet -a a_bio --show Id", "");
    refused (w, "nsf", "delete-account -a nobody", 5, "nobody");
    bankcli_says (&w->d, w->out, sizeof (w->out), "ops", "verify --rules", 0, "");
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (accounts),
        cmocka_unit_test (forged),
        cmocka_unit_test (funds),
        cmocka_unit_test (deleted),
    };
    signal (SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests (tests, up, down);
}
