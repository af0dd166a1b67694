#include "meta/store/votes.h"

#include <string.h>

#include "meta/store/metastore_i.h"
#include "proto/base/clock.h"

/* ---- the single log */

static int decision_record (struct metastore *store, const uint8_t transaction[16],
                            enum decision proposal, enum decision *decided, struct err *err)
{
    struct store_stmt *q =
        store_stmt (store->store, "INSERT INTO decision (txn, decision, at_us) VALUES (?1, ?2, ?3)"
                                  " ON CONFLICT (txn) DO NOTHING");
    store_bind_blob (q, 1, transaction, 16);
    store_bind_int (q, 2, proposal);
    store_bind_int (q, 3, clock_now_us ());
    int rc = store_run (q, err);
    if (rc)
        return rc;
    q = store_stmt (store->store, "SELECT decision FROM decision WHERE txn = ?1");
    store_bind_blob (q, 1, transaction, 16);
    rc = store_step (q, err);
    if (rc < 0)
        return rc;
    *decided = rc && store_col_int (q, 0) == DECISION_COMMIT ? DECISION_COMMIT : DECISION_ABORT;
    store_reset (q);
    return 0;
}

static void decision_propose (void *self, const struct decision_ask *ask,
                              void (*done) (void *arg, enum decision decided, bool failed),
                              void *arg)
{
    enum decision decided = DECISION_ABORT;
    int rc = decision_record (self, ask->transaction, ask->proposal, &decided, NULL);
    done (arg, decided, rc != 0);
}

static void decision_forget (void *self, const uint8_t transaction[16])
{
    struct metastore *store = self;
    struct store_stmt *q = store_stmt (store->store, "DELETE FROM decision WHERE txn = ?1");
    store_bind_blob (q, 1, transaction, 16);
    store_run (q, NULL); /* what stays is harmless */
}

struct decision_log metastore_decision_log (struct metastore *store)
{
    static const struct decision_log_ops ops = {decision_propose, decision_forget};
    return (struct decision_log){&ops, store};
}

/* ---- votes */

#define VOTE_COLUMNS "txn, owner, leader, prior, promised, accepted, decision, over, transfer"

static const char *text_of (struct store_stmt *q, int at, struct arena *arena)
{
    const char *text = store_col_text (q, at);
    return arena_strdup (arena, text ? text : "");
}

static void vote_col (struct store_stmt *q, struct arena *arena, struct vote_row *row)
{
    size_t len = 0;
    const void *bytes = store_col_blob (q, 0, &len);
    memset (row, 0, sizeof *row);
    if (len == sizeof row->transaction)
        memcpy (row->transaction, bytes, len);
    row->owner = text_of (q, 1, arena);
    row->leader = text_of (q, 2, arena);
    row->prior = text_of (q, 3, arena);
    row->vote.promised = (uint64_t)store_col_int (q, 4);
    row->vote.voted = !store_col_is_null (q, 5);
    row->vote.accepted = (uint64_t)store_col_int (q, 5);
    row->vote.decision = store_col_int (q, 6) ? DECISION_COMMIT : DECISION_ABORT;
    row->vote.over = store_col_int (q, 7) != 0;
    bytes = store_col_blob (q, 8, &len);
    if (len) {
        void *copy = arena_alloc (arena, len);
        memcpy (copy, bytes, len);
        row->transfer = (struct metastore_blob){copy, len};
    }
}

static int votes_col (struct store_stmt *q, struct arena *arena, struct vote_row **rows_out,
                      uint32_t *count_out, struct err *err)
{
    struct vote_row *rows = NULL;
    uint32_t count = 0, cap = 0;
    int rc;
    while ((rc = store_step (q, err)) > 0) {
        if (count == cap) {
            struct vote_row *grown = arena_array (arena, cap ? 2 * (size_t)cap : 16, sizeof *grown);
            if (count)
                memcpy (grown, rows, count * sizeof *grown);
            rows = grown;
            cap = cap ? 2 * cap : 16;
        }
        vote_col (q, arena, &rows[count++]);
    }
    *rows_out = rows;
    *count_out = count;
    return rc;
}

int metastore_vote_load (struct metastore *store, const uint8_t transaction[16],
                         struct arena *arena, struct vote_row *out, struct err *err)
{
    struct store_stmt *q =
        store_stmt (store->store, "SELECT " VOTE_COLUMNS " FROM vote WHERE txn = ?1");
    store_bind_blob (q, 1, transaction, 16);
    int rc = store_step (q, err);
    if (rc < 0)
        return rc;
    if (rc == 0)
        return err_set (err, ERR_NOT_FOUND, "no vote for this transaction");
    vote_col (q, arena, out);
    store_reset (q);
    return 0;
}

int metastore_vote_save (struct metastore *store, const struct vote_row *row, struct err *err)
{
    struct store_stmt *q = store_stmt (
        store->store, "INSERT INTO vote (" VOTE_COLUMNS ", at_us)"
                      " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT (txn) DO UPDATE SET"
                      " leader = excluded.leader, prior = excluded.prior, promised = excluded.promised,"
                      " accepted = excluded.accepted, decision = excluded.decision,"
                      " over = excluded.over, transfer = excluded.transfer");
    store_bind_blob (q, 1, row->transaction, sizeof row->transaction);
    store_bind_text (q, 2, row->owner);
    store_bind_text (q, 3, row->leader);
    store_bind_text (q, 4, row->prior ? row->prior : "");
    store_bind_int (q, 5, (int64_t)row->vote.promised);
    if (row->vote.voted)
        store_bind_int (q, 6, (int64_t)row->vote.accepted);
    store_bind_int (q, 7, row->vote.decision);
    store_bind_int (q, 8, row->vote.over);
    if (row->transfer.len)
        store_bind_blob (q, 9, row->transfer.bytes, row->transfer.len);
    store_bind_int (q, 10, clock_now_us ());
    return store_run (q, err);
}

int metastore_vote_over (struct metastore *store, const uint8_t transaction[16], struct err *err)
{
    struct store_stmt *q = store_stmt (
        store->store,
        "UPDATE vote SET over = 1, transfer = NULL, at_us = ?2 WHERE txn = ?1 AND over = 0");
    store_bind_blob (q, 1, transaction, 16);
    store_bind_int (q, 2, clock_now_us ());
    return store_run (q, err);
}

int metastore_votes_open (struct metastore *store, const char *leader, const uint8_t *after,
                          uint32_t limit, struct arena *arena, struct vote_row **rows_out,
                          uint32_t *count_out, struct err *err)
{
    struct store_stmt *q =
        store_stmt (store->store, "SELECT " VOTE_COLUMNS " FROM vote WHERE over = 0 AND leader = ?1"
                                  " AND txn > ?2 ORDER BY txn LIMIT ?3");
    store_bind_text (q, 1, leader);
    store_bind_blob (q, 2, after ? after : (const uint8_t[16]){0}, 16);
    store_bind_int (q, 3, limit);
    return votes_col (q, arena, rows_out, count_out, err);
}

int metastore_votes_lost (struct metastore *store, const char *once, struct arena *arena,
                          struct vote_row **rows_out, uint32_t *count_out, struct err *err)
{
    struct store_stmt *q =
        store_stmt (store->store, "SELECT " VOTE_COLUMNS
                                  " FROM vote WHERE over = 0 AND leader <> ?1"
                                  " AND (owner = ?1 OR prior = ?1)");
    store_bind_text (q, 1, once);
    return votes_col (q, arena, rows_out, count_out, err);
}

int metastore_votes_orphaned (struct metastore *store, const char *leader, struct arena *arena,
                              struct vote_row **rows_out, uint32_t *count_out, struct err *err)
{
    struct store_stmt *q =
        store_stmt (store->store, "SELECT " VOTE_COLUMNS " FROM vote WHERE over = 0 AND leader = ?1"
                                  " AND txn NOT IN (SELECT txn FROM coalloc WHERE"
                                  " job IN (SELECT number FROM job WHERE ended = 0))");
    store_bind_text (q, 1, leader);
    return votes_col (q, arena, rows_out, count_out, err);
}

int metastore_votes_purge (struct metastore *store, time_us before, struct err *err)
{
    struct store_stmt *q =
        store_stmt (store->store, "DELETE FROM vote WHERE over = 1 AND at_us < ?1");
    store_bind_int (q, 1, before);
    return store_run (q, err);
}

/* ---- who leads a job */

#define LEAD_COLUMNS "job, ballot, led_by, led_as, origin, origin_job, told"

static void lead_col (struct store_stmt *q, struct arena *arena, struct lead_row *row)
{
    row->job = (uint64_t)store_col_int (q, 0);
    row->ballot = (uint64_t)store_col_int (q, 1);
    row->led_by = text_of (q, 2, arena);
    row->led_as = text_of (q, 3, arena);
    row->origin = text_of (q, 4, arena);
    row->origin_job = (uint64_t)store_col_int (q, 5);
    row->told = store_col_int (q, 6) != 0;
}

int metastore_lead_save (struct metastore *store, const struct lead_row *row, struct err *err)
{
    struct store_stmt *q = store_stmt (
        store->store, "INSERT OR REPLACE INTO lead (" LEAD_COLUMNS ")"
                      " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)");
    store_bind_int (q, 1, (int64_t)row->job);
    store_bind_int (q, 2, (int64_t)row->ballot);
    store_bind_text (q, 3, row->led_by);
    store_bind_text (q, 4, row->led_as);
    store_bind_text (q, 5, row->origin);
    store_bind_int (q, 6, (int64_t)row->origin_job);
    store_bind_int (q, 7, row->told);
    return store_run (q, err);
}

int metastore_lead_load (struct metastore *store, uint64_t job, struct arena *arena,
                         struct lead_row *out, struct err *err)
{
    struct store_stmt *q =
        store_stmt (store->store, "SELECT " LEAD_COLUMNS " FROM lead WHERE job = ?1");
    store_bind_int (q, 1, (int64_t)job);
    int rc = store_step (q, err);
    if (rc < 0)
        return rc;
    if (rc == 0)
        return err_set (err, ERR_NOT_FOUND, "job %llu was not taken over", (unsigned long long)job);
    lead_col (q, arena, out);
    store_reset (q);
    return 0;
}

int metastore_lead_untold (struct metastore *store, const char *origin, struct arena *arena,
                           struct lead_row **rows_out, uint32_t *count_out, struct err *err)
{
    enum { AT_ONCE = 64 };
    struct store_stmt *q = store_stmt (
        store->store, "SELECT " LEAD_COLUMNS " FROM lead WHERE told = 0 AND origin = ?1"
                      " AND led_by = '' ORDER BY (SELECT ended FROM job WHERE number = lead.job) DESC,"
                      " job LIMIT ?2");
    store_bind_text (q, 1, origin);
    store_bind_int (q, 2, AT_ONCE);
    struct lead_row *rows = arena_array (arena, AT_ONCE, sizeof *rows);
    uint32_t count = 0;
    int rc;
    while ((rc = store_step (q, err)) > 0)
        lead_col (q, arena, &rows[count++]);
    *rows_out = rows;
    *count_out = count;
    return rc;
}

int metastore_lead_told (struct metastore *store, const char *origin, uint64_t origin_job,
                         struct err *err)
{
    struct store_stmt *q = store_stmt (
        store->store, "UPDATE lead SET told = 1 WHERE origin = ?1 AND origin_job = ?2 AND told = 0");
    store_bind_text (q, 1, origin);
    store_bind_int (q, 2, (int64_t)origin_job);
    return store_run (q, err);
}
