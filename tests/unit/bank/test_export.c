/* nui usage --format, the real nui against the real nui-bank: what sites tell of runs reaches the formats of other
 * systems whole. The readers here are of the formats' own rules, not of ours: which keys, which columns, which names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "proto/base/clock.h"
#include "proto/rpc/envelope.h"
#include "tests/unit/bank/bankcli.h"
#include "tests/unit/bank/pg_fixture.h"

#define TEXT(s) ((char *)(uintptr_t)(s))

struct world {
    struct pg_fixture *pg;
    struct bankd d;
    time_us start;     /* of the runs; whole seconds */
    uint64_t sequence; /* of the site's outbox */
    char out[65536];
};

static void says (struct world *w, const char *who, const char *words, int code, const char *part)
{
    bankcli_says (&w->d, w->out, sizeof (w->out), who, words, code, part);
}

/* A run of 2 processors that its site tells all of: so far, or at its end. */
static uint64_t charge (struct world *w, Nui__Common__V1__Envelope *envelope, const char *hold,
                        const char *job, int seconds, bool final, const Nui__Bank__V1__Ran *ran)
{
    Nui__Bank__V1__ChargeRequest m = NUI__BANK__V1__CHARGE_REQUEST__INIT;
    uint8_t key[16];
    m.key = bankd_key (&w->d, key);
    m.sequence = ++w->sequence;
    m.envelope = *hold ? NULL : envelope;
    m.hold_id = TEXT (hold);
    m.grid_job_id = TEXT ("grid.1");
    m.site_job_id = TEXT (job);
    m.component = TEXT ("main");
    m.procs = 2;
    m.start_us = w->start;
    m.end_us = w->start + seconds * US_PER_S;
    m.cpu_us = seconds * US_PER_S * 3 / 2;
    m.final = m.successful = final;
    m.ran = (Nui__Bank__V1__Ran *)(uintptr_t)ran;
    struct bankd_reply reply = bankd_call (&w->d, WHO_ALPHA, "Charge", &m.base);
    assert_string_equal ("", reply.err.text);
    uint64_t op = ((Nui__Bank__V1__ChargeReply *)reply.message)->op_id;
    bankd_reply_free (&reply);
    return op;
}

static void hold (struct world *w, Nui__Common__V1__Envelope *envelope, const char *job,
                  char id[32])
{
    Nui__Bank__V1__HoldRequest m = NUI__BANK__V1__HOLD_REQUEST__INIT;
    uint8_t key[16];
    m.key = bankd_key (&w->d, key);
    m.envelope = envelope;
    m.grid_job_id = TEXT ("grid.1");
    m.site_job_id = TEXT (job);
    m.component = TEXT ("main");
    m.procs = 2;
    m.start_us = w->start;
    m.walltime_us = 90000 * US_PER_S;
    struct bankd_reply reply = bankd_call (&w->d, WHO_ALPHA, "Hold", &m.base);
    assert_string_equal ("", reply.err.text);
    snprintf (id, 32, "%s", ((Nui__Bank__V1__HoldReply *)reply.message)->hold_id);
    assert_string_not_equal ("", id);
    bankd_reply_free (&reply);
}

/* alpha.1, without a hold, and alpha.2, held for and charged in two parts, of which the first is given back. */
static int up (void **state)
{
    struct world *w = calloc (1, sizeof (*w));
    struct bankd_job job = {.account = "rich", .walltime_us = 90000 * US_PER_S};
    Nui__Bank__V1__Ran ran = NUI__BANK__V1__RAN__INIT;
    char id[32], words[64];
    w->pg = pg_fixture_start (false);
    if (!w->pg)
        return -1;
    bankd_open (&w->d, NUI_BANK_PROGRAM, pg_fixture_database (w->pg, "export"), "");
    bankcli_config (&w->d, "alice");
    bankcli_config (&w->d, "bob");
    bankcli_config (&w->d, "nsf");
    bankcli_config (&w->d, "ops");
    *state = w;
    if (!bankd_wait_serving (&w->d, true))
        return -1;
    bankd_found (&w->d);
    says (w, "nsf", "deposit -A rich 100000", 0, "deposited");
    w->start = clock_now_us () / US_PER_S * US_PER_S +
               US_PER_S; /* whole, and not before the rates are in force */
    ran.nodes = 2;
    ran.memory_mb = 200;
    ran.submitted_us = w->start - 30 * US_PER_S;
    ran.local_user = TEXT ("games");
    ran.class_ = TEXT ("batch");
    Nui__Common__V1__Envelope *first = bankd_sign (&w->d, WHO_ALICE, &job),
                              *second = bankd_sign (&w->d, WHO_ALICE, &job);
    charge (w, first, "", "alpha.1", 60, true, &ran);
    hold (w, second, "alpha.2", id);
    uint64_t part = charge (w, second, id, "alpha.2", 100, false, &ran);
    charge (w, second, id, "alpha.2", 3700, true, NULL);
    envelope_free (first);
    envelope_free (second);
    snprintf (words, sizeof words, "refund %" PRIu64 " 20.5 -d 'a slow disk'", part);
    says (w, "nsf", words, 0, "refunded 20.5");
    return 0;
}

static int down (void **state)
{
    struct world *w = *state;
    bankd_close (&w->d);
    pg_fixture_stop (w->pg);
    free (w);
    return 0;
}

/* ---- as rows ---- */

static json_t *rows (struct world *w)
{
    json_error_t error;
    says (w, "nsf", "usage --format json", 0, "");
    json_t *list = json_loads (w->out, 0, &error);
    assert_non_null (list);
    return list;
}

static void row_says (json_t *row, const char *text)
{
    json_error_t error;
    json_t *wanted = json_loads (text, 0, &error), *value;
    const char *key;
    assert_non_null (wanted);
    json_object_foreach (wanted, key, value) if (!json_equal (value, json_object_get (row, key)))
        fail_msg ("%s of %s", key, json_dumps (row, 0));
    json_decref (wanted);
}

/* One for each charge and refund, in the order of recording, and they sum up to what usage says. */
static void is_complete (void **state)
{
    struct world *w = *state;
    json_t *list = rows (w), *row;
    double sum = 0;
    size_t i;
    assert_int_equal (4, json_array_size (list));
    json_array_foreach (list, i, row) sum += json_number_value (json_object_get (row, "amount")) +
                                             json_number_value (json_object_get (row, "disputed"));
    row_says (
        json_array_get (list, 0),
        "{\"site_job\": \"alpha.1\", \"amount\": 120, \"procs\": 2, \"nodes\": 2, "
        "\"memory_mb\": 200, \"local_user\": \"games\", \"class\": \"batch\", "
        "\"cpu\": \"00:01:30\", \"final\": true, \"walltime\": \"00:00:00\", \"job\": \"grid.1\", "
        "\"account\": \"rich\", \"project\": \"physics\", "
        "\"user\": \"nui://test/user/alice\"}");
    row_says (json_array_get (list, 1),
              "{\"site_job\": \"alpha.2\", \"amount\": 200, \"final\": false, "
              "\"walltime\": \"1:01:00:00\"}");
    /* A charge that does not say it, of a site that is older. */
    row_says (json_array_get (list, 2),
              "{\"site_job\": \"alpha.2\", \"amount\": 7200, \"final\": true, \"nodes\": 0, "
              "\"local_user\": null, \"class\": null, \"submitted\": null}");
    row_says (json_array_get (list, 3), "{\"site_job\": \"alpha.2\", \"amount\": -20.5}");
    assert_true (json_equal (json_object_get (json_array_get (list, 1), "op"),
                             json_object_get (json_array_get (list, 3), "charge")));
    assert_true (json_equal (json_object_get (json_array_get (list, 1), "end"),
                             json_object_get (json_array_get (list, 2), "since")));
    says (w, "nsf", "usage --by project --csv --noheader", 0,
          "physics,1,7520,20.5,7499.5,2.088889");
    assert_true (sum == 7499.5);
    json_decref (list);
}

static void is_seen_by_its_own (void **state)
{
    struct world *w = *state;
    says (w, "alice", "usage --format csv --noheader", 0, "alpha.1,main");
    says (w, "bob", "usage --format csv --noheader", 0, "");
    assert_string_equal ("", w->out);
    says (w, "nsf", "usage --format csv --noheader -A phys", 0, "");
    assert_string_equal ("", w->out);
    says (w, "nsf", "usage --format csv --noheader --site beta", 0, "");
    assert_string_equal ("", w->out);
    says (w, "nsf", "usage --format apel --to 2001-01-01T00:00:00Z", 0, "");
    assert_string_equal ("", w->out); /* no message rather than an empty one */
}

/* ---- APEL ---- */

struct apel {
    int records;
    long long wall, cpu, proc_s; /* sums */
};

/* By the format's list of keys, of which six must be there, and its checks. */
static struct apel apel_read (const char *text)
{
    static const char head[] = "APEL-individual-job-message: v0.3\n";
    static const char *const key[] = {"Site",
                                      "LocalJobId",
                                      "WallDuration",
                                      "CpuDuration",
                                      "StartTime",
                                      "EndTime",
                                      "SubmitHost",
                                      "MachineName",
                                      "Queue",
                                      "LocalUserId",
                                      "GlobalUserName",
                                      "FQAN",
                                      "Processors",
                                      "NodeCount",
                                      "InfrastructureDescription",
                                      "InfrastructureType",
                                      "MemoryReal",
                                      "MemoryVirtual",
                                      "ServiceLevelType",
                                      "ServiceLevel"};
    enum { KEYS = sizeof key / sizeof *key, MANDATORY = 6 };
    struct apel sum = {0};
    char value[KEYS][128] = {{0}}, name[64], said[128];
    assert_memory_equal (text, head, sizeof head - 1);
    for (text += sizeof head - 1; *text; text = strchr (text, '\n') + 1) {
        assert_non_null (strchr (text, '\n'));
        if (strncmp (text, "%%\n", 3) == 0) {
            for (int i = 0; i < MANDATORY; i++)
                if (!*value[i])
                    fail_msg ("a record has no %s", key[i]);
            long long wall = atoll (value[2]), start = atoll (value[4]), end = atoll (value[5]);
            assert_true (start > 0 && start <= end && end - start == wall);
            assert_int_equal (!*value[18], !*value[19]); /* both or none */
            sum.records++;
            sum.wall += wall;
            sum.cpu += atoll (value[3]);
            sum.proc_s += wall * atoll (value[12]);
            memset (value, 0, sizeof value);
            continue;
        }
        assert_int_equal (2, sscanf (text, "%63[^:]: %127[^\n]", name, said));
        int i = 0;
        while (i < KEYS && strcmp (key[i], name) != 0)
            i++;
        if (i == KEYS || *value[i])
            fail_msg ("'%s' is no key of the format, or there twice", name);
        snprintf (value[i], sizeof value[i], "%s", said);
    }
    for (int i = 0; i < KEYS; i++)
        assert_string_equal ("", value[i]); /* the last record is ended, too */
    return sum;
}

static void apel (void **state)
{
    struct world *w = *state;
    char wanted[1024];
    long long start = (long long)(w->start / US_PER_S);
    says (w, "nsf", "usage --format apel --as ALPHA-HPC --benchmark hepscore23=15.3", 0, "");
    struct apel sum = apel_read (w->out);
    assert_int_equal (2, sum.records); /* of the run that was charged in parts one */
    assert_int_equal (3760, sum.wall);
    assert_int_equal (5640, sum.cpu);
    assert_int_equal (7520, sum.proc_s); /* as many as were charged for */
    snprintf (wanted, sizeof wanted,
              "Site: ALPHA-HPC\nSubmitHost: test/nui\nMachineName: alpha\nQueue: batch\n"
              "LocalJobId: alpha.1\nLocalUserId: games\n"
              "GlobalUserName: /DC=nui/O=test/CN=alice\n"
              "FQAN: /physics/Role=NULL/Capability=NULL\nWallDuration: 60\nCpuDuration: 90\n"
              "Processors: 2\nNodeCount: 2\nStartTime: %lld\nEndTime: %lld\n"
              "InfrastructureDescription: NUI\nInfrastructureType: grid\nMemoryReal: 204800\n"
              "ServiceLevelType: hepscore23\nServiceLevel: 15.3\n%%%%\n",
              start, start + 60);
    assert_non_null (strstr (w->out, wanted));
    says (w, "nsf", "usage --format apel", 0, "Site: alpha\n");
    assert_int_equal (2, apel_read (w->out).records);
    assert_null (strstr (w->out, "ServiceLevel"));
    says (w, "nsf", "usage --format apel --benchmark hepscore=15.3", 2, "hepscore23=");
    says (w, "nsf", "usage --format apel --benchmark hepspec=0", 2, "hepspec=");
    says (w, "nsf", "usage --format csv --benchmark hepspec=2", 2, "for --format apel");
    says (w, "nsf", "usage --format gold", 2, "apel, apel-summary, xdmod, access, csv or json");
    says (w, "nsf", "usage --format csv -o /tmp", 2, "for messages");
    says (w, "nsf", "usage --format apel --json", 2, "without --json or --csv");
}

/* Written twice it is the same file, where and as the sender looks for it. */
static void queue (void **state)
{
    struct world *w = *state;
    char words[512], names[512], text[8192];
    snprintf (words, sizeof words, "usage --format apel -o %s/outgoing", w->d.dir);
    says (w, "nsf", words, 1, "cannot make"); /* a folder of the sender's, which makes it */
    snprintf (names, sizeof names, "mkdir %s/outgoing", w->d.dir);
    assert_int_equal (0, system (names));
    snprintf (names, sizeof names,
              "cd %s/outgoing && find . -type f | grep -E '^\\./[0-9a-f]{8}/[0-9a-f]{14}$' | wc -l"
              " && find . -type f | wc -l && cat */*",
              w->d.dir);
    for (int i = 0; i < 2; i++) {
        says (w, "nsf", words, 0, "");
        assert_string_equal ("", w->out);
        FILE *p = popen (names, "r");
        assert_non_null (p);
        text[fread (text, 1, sizeof text - 1, p)] = '\0';
        assert_int_equal (0, pclose (p));
        assert_memory_equal (text, "1\n1\n", 4);
        assert_int_equal (2, apel_read (text + 4).records);
    }
    snprintf (names, sizeof names, "rm -r %s/outgoing", w->d.dir);
    assert_int_equal (0, system (names));
}

/* The first moment of the month of that one, or of the one after it. */
static time_us month_start (time_us at, int after)
{
    time_t t = (time_t)(at / US_PER_S);
    struct tm tm;
    gmtime_r (&t, &tm);
    tm = (struct tm){.tm_year = tm.tm_year, .tm_mon = tm.tm_mon + after, .tm_mday = 1};
    return timegm (&tm) * US_PER_S;
}

/* Runs of a month together, each once: by the moment at which they ended, and whole however they were charged. */
static void apel_summary (void **state)
{
    struct world *w = *state;
    static const char *const key[] = {"Site",
                                      "Month",
                                      "Year",
                                      "WallDuration",
                                      "CpuDuration",
                                      "NumberOfJobs",
                                      "GlobalUserName",
                                      "VO",
                                      "VOGroup",
                                      "VORole",
                                      "SubmitHost",
                                      "InfrastructureType",
                                      "ServiceLevelType",
                                      "ServiceLevel",
                                      "NodeCount",
                                      "Processors",
                                      "EarliestEndTime",
                                      "LatestEndTime"};
    enum { KEYS = sizeof key / sizeof *key };
    char words[256], name[64], said[128];
    long long sum[KEYS] = {0};
    int there[KEYS] = {0}, records = 0;
    time_us from = month_start (w->start + 60 * US_PER_S, 0),
            to = month_start (w->start + 3700 * US_PER_S, 1);
    snprintf (words, sizeof words, "usage --format apel-summary --as A --from @%lld --to @%lld",
              (long long)(from / US_PER_S), (long long)(to / US_PER_S));
    says (w, "nsf", words, 0, "APEL-summary-job-message: v0.2\n");
    assert_memory_equal (w->out, "APEL-summary-job-message: v0.2\n", 31);
    for (const char *at = w->out + 31; *at; at = strchr (at, '\n') + 1) {
        assert_non_null (strchr (at, '\n'));
        if (strncmp (at, "%%\n", 3) == 0) {
            records++;
            for (int i = 0; i < 6; i++)
                assert_int_equal (there[i], records); /* must be in each */
            continue;
        }
        assert_int_equal (2, sscanf (at, "%63[^:]: %127[^\n]", name, said));
        int i = 0;
        while (i < KEYS && strcmp (key[i], name) != 0)
            i++;
        assert_true (i < KEYS);
        there[i]++;
        sum[i] += atoll (said);
    }
    assert_int_equal (2, records); /* of other numbers of nodes */
    assert_int_equal (3760, sum[3]);
    assert_int_equal (5640, sum[4]);
    assert_int_equal (2, sum[5]);
    snprintf (words, sizeof words, "usage --format apel-summary --from @%lld --to @%lld",
              (long long)(month_start (from, -1) / US_PER_S), (long long)(from / US_PER_S));
    says (w, "nsf", words, 0, "");
    assert_string_equal ("", w->out); /* of the month before */
    says (w, "nsf", "usage --format apel-summary", 2, "whole months");
    says (w, "nsf", "usage --format apel-summary --period 2026-11-21", 2, "whole months");
}

/* ---- Open XDMoD ---- */

/* 26 columns; no step (a dot in the number), no job without nodes; moments in UTC. */
static void xdmod (void **state)
{
    struct world *w = *state;
    char *line, *next, *column[27], wanted[64];
    int lines = 0;
    time_t start = (time_t)(w->start / US_PER_S);
    struct tm tm;
    says (w, "nsf", "usage --format xdmod --as alpha-hpc", 0, "");
    for (line = w->out; *line; line = next, lines++) {
        int n = 0;
        next = strchr (line, '\n');
        assert_non_null (next);
        *next++ = '\0';
        for (char *at = line; at && n < 27; at = strchr (at, '|'), at = at ? at + 1 : NULL) {
            if (n > 0)
                at[-1] = '\0';
            column[n++] = at;
        }
        assert_int_equal (26, n);
        assert_string_equal (lines ? "2" : "1", column[0]);
        assert_int_equal (strlen (column[1]), strspn (column[1], "0123456789"));
        assert_string_equal ("alpha-hpc", column[2]);
        assert_string_equal (lines ? "" : "batch", column[3]);
        assert_string_equal ("rich", column[5]);
        assert_string_equal ("physics", column[6]);
        assert_string_equal (lines ? "alice" : "games", column[8]);
        strftime (wanted, sizeof wanted, "%Y-%m-%dT%H:%M:%S", gmtime_r (&start, &tm));
        assert_string_equal (wanted, column[12]);
        assert_string_equal (lines ? "01:01:40" : "00:01:00", column[14]);
        assert_string_equal ("COMPLETED", column[16]);
        assert_string_equal (lines ? "1" : "2", column[17]);
        assert_string_equal ("2", column[18]);
        assert_string_equal (lines ? "1-01:00:00" : "", column[23]);
        assert_string_not_equal ("None assigned", column[24]);
        assert_string_equal ("grid.1", column[25]);
    }
    assert_int_equal (2, lines);
}

/* ---- ACCESS ---- */

/* One message of what was used and one of adjustments; charges less adjustments are the ledger's sum. */
static void access_messages (void **state)
{
    struct world *w = *state;
    const char *at;
    double sum = 0;
    says (w, "nsf", "usage --format access", 0, "");
    at = w->out;
    for (int m = 0; m < 2; m++) {
        json_error_t error;
        json_t *message = json_loads (at, JSON_DISABLE_EOF_CHECK, &error), *r;
        size_t i;
        assert_non_null (message);
        at += error.position;
        assert_string_equal (m ? "Adjustment" : "Compute",
                             json_string_value (json_object_get (message, "UsageType")));
        json_t *list = json_object_get (message, "Records");
        assert_int_equal (m ? 1 : 3, json_array_size (list));
        json_array_foreach (list, i, r)
        {
            const char *charge = json_string_value (json_object_get (r, "Charge"));
            sum += (m ? -1 : 1) * atof (charge);
            assert_string_equal ("physics",
                                 json_string_value (json_object_get (r, "LocalProjectID")));
        }
        if (m)
            row_says (json_array_get (list, 0),
                      "{\"AdjustmentType\": \"refund\", \"Charge\": \"20.500000\", "
                      "\"Username\": \"games\", \"Resource\": \"alpha\"}");
        else
            row_says (json_array_get (list, 0),
                      "{\"Charge\": \"120.000000\", \"Username\": \"games\", \"Attributes\": "
                      "{\"NodeCount\": 2, \"CpuCoreCount\": 2, \"JobName\": \"grid.1\", "
                      "\"Memory\": \"200MB\", \"Queue\": \"batch\"}}");
        json_decref (message);
    }
    assert_int_equal (strspn (at, " \n"), strlen (at)); /* and nothing more */
    assert_true (sum == 7499.5);
}

int main (void)
{
    signal (SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (is_complete),    cmocka_unit_test (is_seen_by_its_own),
        cmocka_unit_test (apel),           cmocka_unit_test (apel_summary),
        cmocka_unit_test (queue),          cmocka_unit_test (xdmod),
        cmocka_unit_test (access_messages)};
    return cmocka_run_group_tests (tests, up, down);
}
