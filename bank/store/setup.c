/* setup: the plain statements of a fresh connection, one after another: session, standby or not,
 * locks, migrations, where the ledger stands. Committer, reader and checkpointer begin with it.
 * The ledger's writer does nothing before both its advisory locks are held, and a schema newer
 * than the program is left alone. */
#include "bank/store/setup.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bank/store/migrations.h"
#include "proto/base/strbuf.h"
#include "proto/base/text.h"

/* The keys of the locks. The first is the writer's. Its second connection has the other: who becomes the writer waits
 * for that one's end too, since it may still be committing. */
#define LOCK_KEY "22085085163218539"
#define SECOND_KEY "22085085163218540"

#define SCHEMA_BEGIN                                                                               \
    "CREATE SCHEMA IF NOT EXISTS bank; CREATE TABLE IF NOT EXISTS bank.schema_version "            \
    "(version integer PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL)"

#define SESSION                                                                                    \
    "SET search_path = bank, pg_catalog; SET client_encoding = 'UTF8'; SET jit = off; "            \
    "SET synchronous_commit = on; SET statement_timeout = '60s'; "                                 \
    "SET idle_in_transaction_session_timeout = '60s'; SET lock_timeout = '30s'; "

/* The writer's statements are all "for each element of an array, one index probe", whatever the
 * planner believes of the tables' sizes: a plan made while they were nearly empty is kept for as
 * long as the connection lives, and a sequential scan in it gets slower with every operation
 * (measured: 337 pairs/s after two seconds, 139 after ten). */
#define WRITER                                                                                     \
    SESSION "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; "                 \
            "SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_bitmapscan = off"

#define READER SESSION "SET default_transaction_read_only = on"
#define BACKGROUND SESSION "SET plan_cache_mode = force_custom_plan"

static bool failed (struct setup *setup, const PGresult *result, const char *what)
{
    ExecStatusType status = PQresultStatus (result);
    if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK)
        return false;
    char why[ERR_TEXT_MAX];
    text_printf (why, sizeof (why), "%s: %s", what,
                 result ? PQresultErrorMessage (result) : "no answer");
    pgloop_fail (setup->loop, why);
    return true;
}

static void take_hex (const PGresult *result, int col, uint8_t out[32])
{
    const char *hex = PQgetvalue (result, 0, col);
    for (int i = 0; i < 32; i++)
        out[i] = (uint8_t)strtoul ((char[3]){hex[2 * i], hex[2 * i + 1], '\0'}, NULL, 16);
}

static void on_unsealed (void *arg, const PGresult *result)
{
    struct setup *setup = arg;
    if (failed (setup, result, "cannot read what no block holds yet"))
        return;
    strbuf_clear (&setup->unsealed);
    for (int i = 0; i < PQntuples (result); i++) {
        strbuf_puts (&setup->unsealed, i ? "\n" : "");
        strbuf_puts (&setup->unsealed, PQgetvalue (result, i, 0));
    }
    if (PQntuples (result) > 0)
        log_event (setup->log, LOG_LEVEL_INFO, "bank", "unsealed", "lines=%d", PQntuples (result));
    setup->ready (setup->arg);
    pgloop_ready (setup->loop);
}

static void on_block (void *arg, const PGresult *result)
{
    struct setup *setup = arg;
    if (failed (setup, result, "cannot read the chain of blocks"))
        return;
    setup->last = (struct block){0};
    if (PQntuples (result) > 0) {
        int64_t n[4];
        for (int i = 0; i < 4; i++)
            n[i] = strtoll (PQgetvalue (result, 0, i), NULL, 10);
        setup->last =
            (struct block){.number = n[0], .first_op = n[1], .ops = n[2], .recorded_at = n[3]};
        take_hex (result, 4, setup->last.prev.b);
        take_hex (result, 5, setup->last.root.b);
    }
    pgloop_exec (setup->loop, "SELECT line FROM unsealed ORDER BY id", on_unsealed);
}

static void on_ids (void *arg, const PGresult *result)
{
    struct setup *setup = arg;
    if (failed (setup, result, "cannot read the ledger"))
        return;
    int64_t *id = (int64_t *)&setup->next;
    static_assert (sizeof (setup->next) == 13 * sizeof (int64_t), "one column per kind of id");
    for (int i = 0; i < 13; i++)
        id[i] = strtoll (PQgetvalue (result, 0, i), NULL, 10) + 1;
    setup->last_recorded = strtoll (PQgetvalue (result, 0, 13), NULL, 10);
    setup->database_now = strtoll (PQgetvalue (result, 0, 14), NULL, 10);
    if (PQgetlength (result, 0, 15) != 2 * (int)sizeof (setup->secret)) {
        pgloop_fail (setup->loop, "the secret of hand-overs is not there (table handover)");
        return;
    }
    take_hex (result, 15, setup->secret);
    setup->has_secret = true;
    pgloop_exec (setup->loop,
                 "SELECT number, first_op, ops, recorded_at, encode (prev, 'hex'), "
                 "encode (root, 'hex') FROM block ORDER BY number DESC LIMIT 1",
                 on_block);
}

static void on_version (void *arg, const PGresult *result);

static void read_version (struct setup *setup)
{
    pgloop_exec (setup->loop, "SELECT coalesce (max (version), 0) FROM schema_version", on_version);
}

static void on_migrated (void *arg, const PGresult *result)
{
    struct setup *setup = arg;
    if (failed (setup, result, "cannot migrate the schema"))
        return;
    log_event (setup->log, LOG_LEVEL_INFO, "bank", "migrated", "to=%s",
               bank_migrations[setup->at].name);
    read_version (setup);
}

static void on_version (void *arg, const PGresult *result)
{
    struct setup *setup = arg;
    if (failed (setup, result, "cannot read the schema's version"))
        return;
    int version = atoi (PQgetvalue (result, 0, 0)), newest = 0, next = -1;
    for (int i = 0; bank_migrations[i].version; i++) {
        newest = bank_migrations[i].version;
        if (next < 0 && newest > version)
            next = i;
    }
    if (version > newest) {
        char why[ERR_TEXT_MAX];
        snprintf (why, sizeof (why),
                  "the database has schema version %d, this nui-bank knows up to %d: "
                  "it was made by a newer one",
                  version, newest);
        pgloop_fail (setup->loop, why);
        return;
    }
    if (next < 0) {
        pgloop_exec (setup->loop,
                     "SELECT entry_room (); "
                     "SELECT (SELECT coalesce (max (id), 0) FROM op), "
                     "(SELECT coalesce (max (id), 0) FROM hold), "
                     "(SELECT coalesce (max (id), 0) FROM usage), "
                     "(SELECT coalesce (max (id), 0) FROM charge), "
                     "(SELECT max (id) FROM allocation), (SELECT max (id) FROM account), "
                     "(SELECT coalesce (max (id), 0) FROM project), "
                     "(SELECT coalesce (max (id), 0) FROM person), "
                     "(SELECT coalesce (max (id), 0) FROM membership), "
                     "(SELECT coalesce (max (id), 0) FROM funder), "
                     "(SELECT coalesce (max (id), 0) FROM award), "
                     "(SELECT coalesce (max (id), 0) FROM recon_row), "
                     "(SELECT coalesce (max (id), 0) FROM quote), "
                     "(SELECT coalesce (max (recorded_at), 0) FROM op), "
                     "(extract (epoch FROM clock_timestamp ()) * 1000000)::bigint, "
                     "(SELECT encode (secret, 'hex') FROM handover)",
                     on_ids);
        return;
    }
    struct strbuf sql = STRBUF_INIT;
    setup->at = next;
    strbuf_printf (&sql, "BEGIN; %s; INSERT INTO schema_version VALUES (%d, '%s', now ()); COMMIT",
                   bank_migrations[next].sql, bank_migrations[next].version,
                   bank_migrations[next].name);
    pgloop_exec (setup->loop, strbuf_text (&sql), on_migrated);
    strbuf_free (&sql);
}

/* Where somebody else owns the schema (nui-bank --schema) this role may make none. */
static void on_found (void *arg, const PGresult *result);

static void on_schema (void *arg, const PGresult *result)
{
    struct setup *setup = arg;
    if (!failed (setup, result, "cannot prepare the database"))
        read_version (setup);
}

static void on_lock (void *arg, const PGresult *result)
{
    struct setup *setup = arg;
    if (failed (setup, result, "cannot lock the ledger"))
        return;
    if (PQgetvalue (result, 0, 0)[0] != 't') {
        pgloop_fail (setup->loop, "another nui-bank writes to this database: waiting for its lock");
        return;
    }
    pgloop_exec (setup->loop,
                 "SELECT pg_advisory_unlock (" SECOND_KEY
                 "); SELECT to_regclass ('bank.schema_version') IS NOT NULL",
                 on_found);
}

static void on_second_lock (void *arg, const PGresult *result)
{
    struct setup *setup = arg;
    if (failed (setup, result, "cannot lock the ledger"))
        return;
    if (PQgetvalue (result, 0, 0)[0] != 't') {
        pgloop_fail (setup->loop, "another nui-bank has the lock of the second connection");
        return;
    }
    setup->ready (setup->arg);
    pgloop_ready (setup->loop);
}

static void on_found (void *arg, const PGresult *result)
{
    struct setup *setup = arg;
    if (failed (setup, result, "cannot look for the schema"))
        return;
    if (PQgetvalue (result, 0, 0)[0] == 't')
        read_version (setup);
    else
        pgloop_exec (setup->loop, SCHEMA_BEGIN, on_schema);
}

/* A standby has what its primary had a while ago. */
static void on_recovery (void *arg, const PGresult *result)
{
    struct setup *setup = arg;
    if (failed (setup, result, "cannot ask whether it is a standby"))
        return;
    if (PQgetvalue (result, 0, 0)[0] == 't') {
        pgloop_fail (setup->loop,
                     "DATABASE leads to a standby, which may be behind: waiting for the primary");
        return;
    }
    setup->ready (setup->arg);
    pgloop_ready (setup->loop);
}

static void on_session (void *arg, const PGresult *result)
{
    struct setup *setup = arg;
    if (failed (setup, result, "cannot set up the session"))
        return;
    if (setup->kind == SETUP_WRITER) {
        pgloop_exec (setup->loop,
                     "SELECT pg_try_advisory_lock (" LOCK_KEY
                     ") AND pg_try_advisory_lock (" SECOND_KEY ")",
                     on_lock);
        return;
    }
    if (setup->kind == SETUP_SECOND) {
        pgloop_exec (setup->loop, "SELECT pg_try_advisory_lock (" SECOND_KEY ")", on_second_lock);
        return;
    }
    if (setup->kind == SETUP_READER) {
        pgloop_exec (setup->loop, "SELECT pg_is_in_recovery ()", on_recovery);
        return;
    }
    setup->ready (setup->arg);
    pgloop_ready (setup->loop);
}

void setup_begin (struct setup *setup)
{
    static const char *const session[] = {[SETUP_READER] = READER,
                                          [SETUP_WRITER] = WRITER,
                                          [SETUP_SECOND] = WRITER,
                                          [SETUP_BACKGROUND] = BACKGROUND};
    pgloop_exec (setup->loop, session[setup->kind], on_session);
}

/* What the service does and nothing more: rows of the journal are added, never changed; all that no job does is
 * changed by the schema's owner, as a block's lines say (0003_history.sql). */
static const char rights[] =
    "REVOKE ALL ON ALL TABLES IN SCHEMA bank FROM %1$s;\n"
    "GRANT USAGE ON SCHEMA bank TO %1$s;\n"
    "GRANT SELECT ON ALL TABLES IN SCHEMA bank TO %1$s;\n"
    "SELECT format ('GRANT INSERT ON bank.%%I TO %1$s', t) FROM unnest (bank.direct_tables ()) t \\gexec\n"
    "GRANT DELETE ON bank.unsealed TO %1$s;\n"
    "GRANT UPDATE (granted, settled, posted, held) ON bank.balance TO %1$s;\n"
    "GRANT UPDATE (open, amount, walltime_us, expires_at) ON bank.hold TO %1$s;\n"
    "GRANT UPDATE (settled, released) ON bank.hold_leg TO %1$s;\n"
    "GRANT UPDATE (procs, end_at, total, final, disputed) ON bank.usage TO %1$s;\n"
    "GRANT UPDATE (acked, ahead) ON bank.site_ack TO %1$s;\n"
    "GRANT EXECUTE ON FUNCTION bank.entry_room () TO %1$s;\n"
    "GRANT EXECUTE ON FUNCTION bank.signed_forget (bigint, bigint, bigint) TO %1$s;\n"
    "SELECT format ('REVOKE ALL ON %%s FROM %1$s', inhrelid::regclass) FROM pg_inherits\n"
    "    WHERE inhparent = 'bank.entry'::regclass \\gexec\n";

void setup_script (const char *role, struct strbuf *out)
{
    strbuf_printf (out, "\\set ON_ERROR_STOP on\n%s;\nSET search_path = bank, pg_catalog;\n",
                   SCHEMA_BEGIN);
    for (int i = 0; bank_migrations[i].version; i++) {
        const struct bank_migration *m = &bank_migrations[i];
        strbuf_printf (out,
                       "SELECT NOT EXISTS (SELECT FROM schema_version WHERE version >= %d) AS todo "
                       "\\gset\n\\if :todo\nBEGIN;\n",
                       m->version);
        strbuf_puts (out, m->sql);
        strbuf_printf (
            out, "\nINSERT INTO schema_version VALUES (%d, '%s', now ());\nCOMMIT;\n\\endif\n",
            m->version, m->name);
    }
    strbuf_printf (out, rights, role);
}
