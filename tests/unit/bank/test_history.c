/* Whatever is changed in the database by hand is seen: each column of each table that there is, a row taken away, a row
 * put there. As the database's superuser, with triggers and checks out of the way; seen by nui verify --rules, or by
 * nui verify with an anchor. A table or a column that is new is found by itself; one that needs a row to be tested
 * says so. */
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

#include "bank/store/statements.h"
#include "proto/base/clock.h"
#include "proto/base/strbuf.h"
#include "proto/rpc/envelope.h"
#include "tests/unit/bank/bankd.h"
#include "tests/unit/bank/pg_fixture.h"

#define TEXT(literal) ((char *)(uintptr_t)(literal))

/* What nothing sees, and why nobody needs to: nui-verify(1) says the same. */
static const char *const unseen[] = {
    "another schema_version.name",        /* what a migration was, in words: its number counts */
    "another schema_version.applied_at",  /* and when it was applied */
    "that a row is gone from checkpoint", /* sums that are kept for speed alone … */
    "another checkpoint_run.at",          /* … and how far they were looked for */
    "that a row is gone from checkpoint_run",
    "another handover.one",    /* what hand-overs are checked by is no part of the ledger, and in no
                                  proof: */
    "another handover.secret", /* another one, or none, shows in holds that are refused */
    "that a row is gone from handover",
    "a row more in handover",
};

struct world {
    struct pg_fixture *pg;
    struct bankd d;
    const char *conninfo;
    PGconn *sql;
    char anchors[300];
    char out[65536];
    int missed;
};

static int nui (struct world *w, const char *who, const char *words)
{
    char command[2048];
    snprintf (command, sizeof (command), "NUI_CONFIG=%s/%s.cfg '%s' %s 2>&1", w->d.dir, who,
              NUI_PROGRAM, words);
    FILE *p = popen (command, "r");
    assert_non_null (p);
    size_t len = fread (w->out, 1, sizeof (w->out) - 1, p);
    w->out[len] = '\0';
    int status = pclose (p);
    return WIFEXITED (status) ? WEXITSTATUS (status) : -1;
}

static void must (struct world *w, const char *who, const char *words)
{
    if (nui (w, who, words) != 0)
        fail_msg ("nui %s as %s: %.700s", words, who, w->out);
}

static void write_config (struct world *w, const char *who)
{
    char path[512];
    snprintf (path, sizeof (path), "%s/%s.cfg", w->d.dir, who);
    FILE *f = fopen (path, "w");
    assert_non_null (f);
    fprintf (f, "GRID test\nCA ca.pem\nCRL ca.crl\nCERT %s.pem\nKEY %s.key\nBANK %s\n", who, who,
             w->d.target);
    fclose (f);
}

static void write_configs (struct world *w)
{
    write_config (w, "alice");
    write_config (w, "bob");
    write_config (w, "nsf");
    write_config (w, "ops");
}

static void call (struct world *w, enum bankd_who who, const char *method,
                  const ProtobufCMessage *m)
{
    struct bankd_reply reply = bankd_call (&w->d, who, method, m);
    assert_string_equal ("", reply.err.text);
    bankd_reply_free (&reply);
}

/* A signed job is held for, charged, and given back in part. */
static void run_a_job (struct world *w)
{
    uint8_t key[16];
    char words[80];
    struct bankd_job job = {.account = "phys"};
    Nui__Bank__V1__HoldRequest hold = NUI__BANK__V1__HOLD_REQUEST__INIT;
    Nui__Bank__V1__ChargeRequest charge = NUI__BANK__V1__CHARGE_REQUEST__INIT;
    hold.component = charge.component = TEXT ("main");
    for (int i = 0; i < 2; i++) {
        hold.key = bankd_key (&w->d, key);
        hold.envelope = bankd_sign (&w->d, WHO_ALICE, &job);
        hold.site_job_id = TEXT (i ? "alpha.2" : "alpha.1");
        hold.procs = 1;
        hold.walltime_us = 30 * US_PER_S;
        call (w, WHO_ALPHA, "Hold", &hold.base);
        envelope_free (hold.envelope);
    }
    charge.key = bankd_key (&w->d, key);
    charge.hold_id = TEXT ("hold.1");
    charge.site_job_id = TEXT ("alpha.1");
    charge.sequence = 1;
    charge.procs = 1;
    charge.end_us = clock_now_us ();
    charge.start_us = charge.end_us - 5 * US_PER_S;
    charge.final = charge.successful = true;
    call (w, WHO_ALPHA, "Charge", &charge.base);
    char *op = pg_fixture_value (w->sql, "SELECT op_id FROM charge");
    snprintf (words, sizeof (words), "refund %s 2 -d failed", op);
    must (w, "nsf", words);
    free (op);
}

static void reconcile (struct world *w)
{
    uint8_t key[16];
    Nui__Bank__V1__Finding finding = NUI__BANK__V1__FINDING__INIT, *findings = &finding;
    Nui__Bank__V1__ReconRecordRequest recon = NUI__BANK__V1__RECON_RECORD_REQUEST__INIT;
    finding.class_ = TEXT ("LATE");
    finding.site_job_id = TEXT ("alpha.9");
    finding.since_us = clock_now_us ();
    recon.key = bankd_key (&w->d, key);
    recon.site = TEXT ("alpha");
    recon.findings = &findings;
    recon.n_findings = 1;
    call (w, WHO_OPS, "ReconRecord", &recon.base);
    must (w, "ops", "reconcile own 1 --owner alice");
}

/* A row in each table. */
static void fill (struct world *w)
{
    bankd_found (&w->d);
    must (w, "nsf", "funder create nsf -d science");
    must (w, "nsf", "grant create 1000 -A phys --reference PHY-1 --end +30:00:00:00");
    must (w, "nsf", "project create optics --parent physics");
    must (w, "nsf", "user create mara");
    must (w, "ops", "role grant mara manager");
    must (w, "nsf", "project add-user physics mara --role lead");
    must (w, "nsf", "project remove-user physics mara");
    must (w, "nsf", "account create own --project physics --users alice --fallback rich");
    must (w, "nsf", "deposit -A own 100 --for site=alpha");
    must (w, "nsf", "allocation modify alloc.5 --credit-limit 50");
    must (w, "ops", "deposit -A own 1 --reference PO-1");
    must (w, "ops", "account create before --project physics");
    must (w, "ops", "account rename before after -d clearer");
    must (w, "ops", "account create lasers --project optics");
    must (w, "ops", "split --from phys --to lasers 10");
    must (w, "nsf", "grant extend grant.1 --end +60:00:00:00 --reason late");
    must (w, "nsf", "grant amend grant.1 1100 --reason more");
    must (w, "nsf", "grant create 5 -A phys --reference PHY-2");
    must (w, "nsf", "grant revoke grant.2 --reason mistyped");
    must (w, "ops", "project create lab");
    must (w, "ops", "project move lab --parent optics");
    must (w, "ops", "freeze account:own --reason audit");
    must (w, "ops", "unfreeze account:own");
    must (w, "ops", "rate set delta 2 --qos high=2 --qos '*=1'");
    must (w, "ops", "site modify alpha --claims yes");
    run_a_job (w);
    must (w, "alice", "quote -t 1:40 --site alpha -A phys --keep 1:00:00");
    must (w, "alice", "quote -t 1:40 --site alpha -A phys --keep 1:00:00");
    must (w, "ops",
          "hold create -A phys --user alice -t 10 --part alpha/alpha.301/1 --quote quote.1");
    must (w, "alice", "quote cancel quote.2");
    reconcile (w);
    for (int i = 0; i < 2400 && !pg_fixture_number (w->sql, "SELECT count (*) FROM checkpoint");
         i++)
        usleep (50000);
    char words[400];
    snprintf (words, sizeof (words), "anchor --save %s", w->anchors);
    must (w, "nsf", words);
}

/* As a superuser could. The checks of columns are in the way of some changes that must be tried. */
static void unlock (struct world *w)
{
    pg_fixture_run (
        w->sql,
        "SET session_replication_role = replica; DO $$ DECLARE c record; BEGIN "
        "FOR c IN SELECT conname, conrelid::regclass AS t FROM pg_constraint WHERE contype = 'c' AND "
        "  connamespace = 'bank'::regnamespace AND conrelid <> 0 AND coninhcount = 0 LOOP "
        "  EXECUTE format ('ALTER TABLE %s DROP CONSTRAINT %I', c.t, c.conname); END LOOP; "
        "FOR c IN SELECT conname, contypid::regtype AS t FROM pg_constraint WHERE contype = 'c' AND "
        "  connamespace = 'bank'::regnamespace AND contypid <> 0 LOOP "
        "  EXECUTE format ('ALTER DOMAIN %s DROP CONSTRAINT %I', c.t, c.conname); END LOOP; END $$");
}

/* What breaks the rules; "" when nothing does. */
static const char *rules (struct world *w)
{
    PGresult *res = PQexec (w->sql, bank_stmt[BANK_STMT_COUNT + RD_LEDGER_CHECKS].sql);
    w->out[0] = '\0';
    if (PQresultStatus (res) != PGRES_TUPLES_OK)
        snprintf (w->out, sizeof (w->out), "%s", PQresultErrorMessage (res));
    for (int i = 0; i < PQntuples (res) && !w->out[0]; i++)
        if (strcmp (PQgetvalue (res, i, 2), "0") != 0)
            snprintf (w->out, sizeof (w->out), "%s: %s", PQgetvalue (res, i, 0),
                      PQgetvalue (res, i, 3));
    PQclear (res);
    return w->out;
}

/* What breaks the rules, or the chain; "" when nothing sees anything. */
static const char *sees (struct world *w)
{
    char words[400];
    if (*rules (w))
        return w->out;
    snprintf (words, sizeof (words), "verify --anchor %s", w->anchors);
    if (nui (w, "ops", words) == 0)
        w->out[0] = '\0';
    return w->out;
}

/* Of a change that was made in a transaction: true when it was taken back. What the rules do not see is committed, for
 * the chain is looked at from elsewhere. */
static bool judge (struct world *w, const char *what, const char *table, const char *column)
{
    char name[200];
    snprintf (name, sizeof (name), "%s %s%s%s", what, table, *column ? "." : "", column);
    if (*rules (w)) {
        pg_fixture_run (w->sql, "ROLLBACK");
        return true;
    }
    pg_fixture_run (w->sql, "COMMIT");
    if (*sees (w))
        return false;
    for (size_t i = 0; i < sizeof (unseen) / sizeof (unseen[0]); i++)
        if (strcmp (unseen[i], name) == 0)
            return false;
    print_message ("nothing sees %s\n", name);
    w->missed++;
    return false;
}

/* Another value of a column's type, as SQL. */
static const char *other_value (const char *type, char out[400], const char *col)
{
    static const struct {
        const char *type, *sql;
    } of[] = {
        {"bigint",
         "CASE WHEN %1$s > 9000000000000000000 THEN %1$s - 1000003 ELSE coalesce (%1$s, 0) + 1000003 END"},
        {"integer", "coalesce (%1$s, 0) + 101"},
        {"smallint", "coalesce (%1$s, 0) + 101"},
        {"text", "coalesce (%1$s, '') || 'x'"},
        {"\"char\"", "CASE %1$s WHEN 'P' THEN 'H' ELSE 'P' END::\"char\""},
        {"boolean", "NOT coalesce (%1$s, false)"},
        {"bytea",
         "CASE WHEN coalesce (length (%1$s), 0) = 0 THEN '\\x01'::bytea ELSE set_byte (%1$s, 0, get_byte "
         "(%1$s, 0) # 170) END"},
        {"timestamp with time zone", "%1$s + interval '400 days'"},
    };
    for (size_t i = 0; i < sizeof (of) / sizeof (of[0]); i++)
        if (strcmp (of[i].type, type) == 0) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
            snprintf (out, 400, of[i].sql, col);
#pragma GCC diagnostic pop
            return out;
        }
    fail_msg ("other_value: teach me a column of type %s", type);
    return NULL;
}

static char *ask (struct world *w, const char *fmt, ...) __attribute__ ((format (printf, 2, 3)));
static char *ask (struct world *w, const char *fmt, ...)
{
    struct strbuf sql = STRBUF_INIT;
    va_list ap;
    va_start (ap, fmt);
    strbuf_vprintf (&sql, fmt, ap);
    va_end (ap);
    PGresult *res = PQexec (w->sql, strbuf_text (&sql));
    ExecStatusType status = PQresultStatus (res);
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
        fail_msg ("%s: %s", strbuf_text (&sql), PQresultErrorMessage (res));
    char *out =
        PQntuples (res) ? strdup (PQgetisnull (res, 0, 0) ? "" : PQgetvalue (res, 0, 0)) : NULL;
    PQclear (res);
    strbuf_free (&sql);
    return out;
}

/* The row is named by where it lies; it moves when it is changed. */
static void each_column (struct world *w, const char *table)
{
    PGresult *cols = PQexecParams (
        w->sql,
        "SELECT quote_ident (a.attname), format_type (coalesce (nullif (t.typbasetype, 0), t.oid), -1) FROM "
        "pg_attribute a JOIN pg_type t ON t.oid = a.atttypid WHERE a.attrelid = ('bank.' || quote_ident ($1))::regclass "
        "AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum",
        1, NULL, (const char *const[]){table}, NULL, NULL, 0);
    assert_true (PQntuples (cols) > 0);
    for (int i = 0; i < PQntuples (cols); i++) {
        char other[400], *at, *old, *now;
        const char *col = PQgetvalue (cols, i, 0);
        at = ask (w, "SELECT ctid FROM %s ORDER BY ctid LIMIT 1", table);
        old = ask (w, "SELECT quote_nullable (%s::text) FROM %s WHERE ctid = '%s'", col, table, at);
        pg_fixture_run (w->sql, "BEGIN");
        now = ask (w, "UPDATE %s SET %s = %s WHERE ctid = '%s' RETURNING ctid", table, col,
                   other_value (PQgetvalue (cols, i, 1), other, col), at);
        if (!judge (w, "another", table, col))
            free (ask (w, "UPDATE %s SET %s = %s WHERE ctid = '%s'", table, col, old, now));
        free (at);
        free (old);
        free (now);
    }
    PQclear (cols);
}

/* One row less, and one more: like the first, but for its keys. */
static void each_row (struct world *w, const char *table)
{
    free (ask (w, "DROP TABLE IF EXISTS kept"));
    free (ask (w, "CREATE TEMP TABLE kept AS SELECT * FROM %s ORDER BY ctid LIMIT 1", table));
    pg_fixture_run (w->sql, "BEGIN");
    free (ask (w, "DELETE FROM %s WHERE ctid = (SELECT ctid FROM %s ORDER BY ctid LIMIT 1)", table,
               table));
    if (!judge (w, "that a row is gone from", table, ""))
        free (ask (w, "INSERT INTO %s SELECT * FROM kept ON CONFLICT DO NOTHING", table));
    PGresult *keys = PQexecParams (
        w->sql,
        "SELECT DISTINCT quote_ident (a.attname), format_type (coalesce (nullif (t.typbasetype, 0), t.oid), -1) FROM "
        "pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey) JOIN pg_type t ON "
        "t.oid = a.atttypid WHERE i.indrelid = ('bank.' || quote_ident ($1))::regclass AND i.indisunique",
        1, NULL, (const char *const[]){table}, NULL, NULL, 0);
    for (int i = 0; i < PQntuples (keys); i++) {
        char other[400];
        free (ask (w, "UPDATE kept SET %s = %s", PQgetvalue (keys, i, 0),
                   other_value (PQgetvalue (keys, i, 1), other, PQgetvalue (keys, i, 0))));
    }
    PQclear (keys);
    pg_fixture_run (w->sql, "BEGIN");
    char *at = ask (w, "INSERT INTO %s SELECT * FROM kept RETURNING ctid", table);
    if (!judge (w, "a row more in", table, ""))
        free (ask (w, "DELETE FROM %s WHERE ctid = '%s'", table, at));
    free (at);
}

static void filled (void **state)
{
    struct world *w = *state;
    fill (w);
    assert_string_equal ("", sees (w));
}

static void every_column (void **state)
{
    struct world *w = *state;
    unlock (w);
    PGresult *tables = PQexec (
        w->sql,
        "SELECT quote_ident (relname) FROM pg_class WHERE relnamespace = "
        "'bank'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition ORDER BY relname");
    assert_true (PQntuples (tables) > 30);
    for (int i = 0; i < PQntuples (tables); i++) {
        const char *table = PQgetvalue (tables, i, 0);
        char *rows = ask (w, "SELECT count (*) FROM %s", table);
        if (strcmp (table, "unsealed") != 0) {
            if (strcmp (rows, "0") == 0)
                fail_msg ("fill () above makes no row of table %s: a change of it cannot be tried",
                          table);
            each_column (w, table);
            each_row (w, table);
            if (*sees (w))
                fail_msg ("%s was not put back: %s", table, w->out);
        }
        free (rows);
    }
    PQclear (tables);
    assert_int_equal (0, w->missed);
}

static void says (struct world *w, const char *who, const char *words, int code, const char *part)
{
    int got = nui (w, who, words);
    if (got != code || !strstr (w->out, part))
        fail_msg ("nui %s as %s: exit %d, wanted %d and '%s': %.700s", words, who, got, code, part,
                  w->out);
}

/* What an object is, under a root that the chain holds. */
static void objects (void **state)
{
    struct world *w = *state;
    char words[400], proof[300];
    snprintf (proof, sizeof (proof), "%s/object", w->d.dir);
    snprintf (words, sizeof (words), "proof account:phys --save %s", proof);
    says (w, "alice", words, 0, "\"name\": \"phys\"");
    says (w, "ops", "proof account:phys", 0, "\"name\": \"phys\"");
    long long states = pg_fixture_number (w->sql, "SELECT count (*) FROM op WHERE kind = 'state'");
    assert_int_equal (1, states); /* nothing had changed */
    says (w, "ops", "proof allocation:phys", 0, "\"credit_limit\"");
    says (w, "ops", "proof rate:delta/1", 0, "2000000");
    says (w, "alice", "proof rate:delta", 0, "2000000");
    says (w, "ops", "proof role:mara", 0, "\"role\": \"manager\"");
    says (w, "ops", "proof membership:alice", 0, "\"project_id\": 1");
    says (w, "ops", "proof fallback:own", 0, "\"fallback_id\"");
    says (w, "ops", "proof grant:1", 0, "PHY-1");
    says (w, "ops", "proof site:alpha", 0, "\"claims\": true");
    says (w, "ops", "proof hold:2", 0, "\"open\": true");
    says (w, "ops", "proof hold:1", 5,
          "no such object"); /* it has ended: the history tells of it */
    says (w, "alice", "proof role:mara", 5, "no such object");
    says (w, "bob", "proof account:phys", 5, "no account that you see");
    says (w, "ops", "proof account:nobody", 5, "no such object");
    says (w, "ops", "proof :phys", 1, "names no object");
    assert_int_equal (states,
                      pg_fixture_number (w->sql, "SELECT count (*) FROM op WHERE kind = 'state'"));
    must (w, "nsf", "allocation modify alloc.5 --credit-limit 51");
    says (w, "ops", "proof limit:5", 0, "\"credit_limit\": 51000000");
    assert_int_equal (states + 1,
                      pg_fixture_number (w->sql, "SELECT count (*) FROM op WHERE kind = 'state'"));
    must (w, "ops", "verify");
    says (w, "ops", "verify --rules", 0, "");
    /* An operator's or an agency's anchor is of the present state, which is recorded once. */
    must (w, "nsf", "allocation modify alloc.5 --credit-limit 52");
    says (w, "bob", "anchor", 0, "");
    assert_int_equal (states + 1,
                      pg_fixture_number (w->sql, "SELECT count (*) FROM op WHERE kind = 'state'"));
    says (w, "ops", "anchor", 0, "");
    assert_int_equal (states + 2,
                      pg_fixture_number (w->sql, "SELECT count (*) FROM op WHERE kind = 'state'"));
    assert_int_equal (
        1, pg_fixture_number (
               w->sql,
               "SELECT ((SELECT kind FROM op WHERE id = b.first_op + b.ops - 1) = 'state')::int "
               "FROM block b ORDER BY number DESC LIMIT 1"));
    says (w, "nsf", "anchor", 0, "");
    assert_int_equal (states + 2,
                      pg_fixture_number (w->sql, "SELECT count (*) FROM op WHERE kind = 'state'"));
    /* Whoever has the file can check it; one that says something else is none. */
    snprintf (words, sizeof (words), "proof --check %s", proof);
    says (w, "bob", words, 0, "\"name\": \"phys\"");
    char bytes[65536];
    FILE *f = fopen (proof, "r+");
    assert_non_null (f);
    size_t len = fread (bytes, 1, sizeof (bytes), f);
    char *at = memmem (bytes, len, "\"name\": \"phys\"", 14);
    assert_non_null (at);
    fseek (f, at - bytes + 9, SEEK_SET);
    fputc ('q', f);
    fclose (f);
    says (w, "bob", words, 1, "is not in the state that operation");
}

struct asked {
    int ended, refused;
    char why[ERR_TEXT_MAX];
};

static void on_asked (void *arg, const struct rpc_result *result)
{
    struct asked *asked = arg;
    asked->ended++;
    asked->refused += result->status != RPC_OK;
    if (result->status != RPC_OK)
        snprintf (asked->why, sizeof (asked->why), "%s", result->message);
}

/* All objects are read for the proof of one: of people one at a time each; offices need not wait. */
static void one_at_a_time (void **state)
{
    struct world *w = *state;
    Nui__Bank__V1__ProofRequest m = NUI__BANK__V1__PROOF_REQUEST__INIT;
    static const struct {
        enum bankd_who who;
        int calls, refused;
    } ask[] = {{WHO_ALICE, 4, 3}, {WHO_OPS, 4, 0}, {WHO_ALICE, 1, 0}};
    m.object = (char *)(uintptr_t) "rate:alpha";
    for (size_t i = 0; i < sizeof (ask) / sizeof (ask[0]); i++) {
        struct asked asked = {0};
        for (int n = 0; n < ask[i].calls; n++)
            assert_non_null (rpcclient_start (
                w->d.client[ask[i].who],
                &(struct rpccallout_config){.service = &nui__bank__v1__bank__descriptor,
                                            .method = "Proof",
                                            .request = &m.base,
                                            .timeout = 60 * US_PER_S,
                                            .done = on_asked,
                                            .arg = &asked}));
        while (asked.ended < ask[i].calls)
            event_base_loop (w->d.base, EVLOOP_ONCE);
        assert_int_equal (ask[i].refused, asked.refused);
        if (ask[i].refused)
            assert_non_null (strstr (asked.why, "one at a time"));
    }
}

/* What there was once is under a root as well: other lines that give the same in the end, or another root. */
static void earlier (struct world *w, const char *change)
{
    pg_fixture_run (w->sql, "BEGIN");
    pg_fixture_run (w->sql, "SET LOCAL session_replication_role = replica");
    pg_fixture_run (w->sql, change);
    if (!strstr (rules (w), "states that were recorded are what the history says: op."))
        fail_msg ("not seen: %s: '%s'", change, w->out);
    pg_fixture_run (w->sql, "ROLLBACK");
    assert_string_equal ("", rules (w));
}

static void earlier_roots (void **state)
{
    struct world *w = *state;
    assert_true (pg_fixture_number (w->sql, "SELECT count (*) FROM op WHERE kind = 'state'") >= 3);
    earlier (
        w,
        "UPDATE op SET note = overlay (note PLACING CASE substr (note, 19, 1) WHEN 'a' THEN 'b' ELSE 'a' END FROM 19 FOR 1) "
        "WHERE id = (SELECT min (id) FROM op WHERE kind = 'state')");
    assert_int_equal (
        1,
        pg_fixture_number (w->sql, "SELECT count (*) FROM change WHERE objects LIKE '%51000000%'"));
    earlier (
        w, "UPDATE change SET objects = replace (objects, '51000000', '77000000')"); /* and 52 after
                                                                                        it */
}

/* Without being asked. */
static void root_in_time (void **state)
{
    struct world *w = *state;
    FILE *f;
    char path[300];
    snprintf (path, sizeof (path), "%s/nui-bank.cfg", w->d.dir);
    f = fopen (path, "a");
    assert_non_null (f);
    fprintf (f, "STATEINTERVAL 1\n");
    fclose (f);
    long long before = pg_fixture_number (w->sql, "SELECT count (*) FROM op WHERE kind = 'state'"),
              now = before;
    bankd_stop (&w->d, SIGTERM);
    bankd_start (&w->d, NUI_BANK_PROGRAM);
    assert_true (bankd_wait_serving (&w->d, true));
    write_configs (w);
    for (int i = 0; i < 1200 && now == before; i++) {
        usleep (50000);
        now = pg_fixture_number (w->sql, "SELECT count (*) FROM op WHERE kind = 'state'");
    }
    assert_int_equal (before + 1, now);
}

/* Who makes herself a manager and tells the next block that she always was one. */
static void forged (void **state)
{
    struct world *w = *state;
    pg_fixture_run (
        w->sql,
        "SET session_replication_role = replica; "
        "INSERT INTO bank_role SELECT 1, id, 'manager', true FROM person WHERE identity LIKE '%alice'; "
        "INSERT INTO unsealed (line) SELECT (jsonb_build_object ('was', 'bank_role') || "
        "to_jsonb (r))::text FROM bank_role r WHERE op_id = 1");
    assert_non_null (strstr (sees (w), "no line waits for its block"));
    bankd_stop (&w->d, SIGTERM);
    bankd_start (&w->d, NUI_BANK_PROGRAM);
    assert_true (bankd_wait_serving (&w->d, true));
    write_configs (w); /* it has another port */
    must (w, "nsf", "deposit -A phys 1");
    assert_int_equal (0, pg_fixture_number (w->sql, "SELECT count (*) FROM unsealed"));
    /* Within a minute of a migration that may be. */
    pg_fixture_run (w->sql, "UPDATE schema_version SET applied_at = applied_at - interval '1 day'");
    assert_non_null (strstr (sees (w), "what was there before is told of after a migration only"));
}

static int up (void **state)
{
    struct world *w = calloc (1, sizeof (*w));
    w->pg = pg_fixture_start (false);
    if (!w->pg)
        return -1;
    w->conninfo = pg_fixture_database (w->pg, "history");
    bankd_open (&w->d, NUI_BANK_PROGRAM, w->conninfo, "CHECKPOINTENTRIES 2\n");
    write_configs (w);
    snprintf (w->anchors, sizeof (w->anchors), "%s/anchors", w->d.dir);
    w->sql = pg_fixture_connect (w->conninfo);
    *state = w;
    return bankd_wait_serving (&w->d, true) ? 0 : -1;
}

static int down (void **state)
{
    struct world *w = *state;
    PQfinish (w->sql);
    bankd_close (&w->d);
    pg_fixture_stop (w->pg);
    free (w);
    return 0;
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (filled),        cmocka_unit_test (objects),
        cmocka_unit_test (one_at_a_time), cmocka_unit_test (earlier_roots),
        cmocka_unit_test (every_column),  cmocka_unit_test (root_in_time),
        cmocka_unit_test (forged)};
    signal (SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests (tests, up, down);
}
