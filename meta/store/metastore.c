#include "meta/store/metastore_i.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const steps[] = {
    "CREATE TABLE state (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;"
    "INSERT INTO state VALUES ('epoch', 0);"
    "CREATE TABLE job ("
    " number INTEGER PRIMARY KEY AUTOINCREMENT,"
    " uuid BLOB NOT NULL, submitter TEXT NOT NULL, name TEXT NOT NULL, account TEXT NOT NULL,"
    " envelope BLOB NOT NULL, submit_us INTEGER NOT NULL, state INTEGER NOT NULL,"
    " ended INTEGER NOT NULL, reason_code TEXT NOT NULL, reason_text TEXT NOT NULL,"
    " start_us INTEGER NOT NULL, start_is_estimate INTEGER NOT NULL, end_us INTEGER NOT NULL,"
    " price INTEGER NOT NULL, attempts INTEGER NOT NULL, change INTEGER NOT NULL,"
    " cancel_wanted INTEGER NOT NULL, site TEXT NOT NULL, site_attempt INTEGER NOT NULL,"
    " place INTEGER NOT NULL, UNIQUE (submitter, uuid));"
    "CREATE INDEX job_live ON job (number) WHERE ended = 0;"
    "CREATE INDEX job_owner ON job (submitter, number);"
    "CREATE TABLE component ("
    " job INTEGER NOT NULL REFERENCES job (number), idx INTEGER NOT NULL, name TEXT NOT NULL,"
    " site TEXT NOT NULL, site_job_id TEXT NOT NULL, info BLOB, peer BLOB,"
    " PRIMARY KEY (job, idx)) WITHOUT ROWID;"
    "CREATE TABLE coalloc ("
    " job INTEGER PRIMARY KEY REFERENCES job (number), phase INTEGER NOT NULL,"
    " tries INTEGER NOT NULL, cancel_wanted INTEGER NOT NULL, ran INTEGER NOT NULL,"
    " decided INTEGER NOT NULL, outcome INTEGER NOT NULL, reason_code TEXT NOT NULL,"
    " reason_text TEXT NOT NULL, created_us INTEGER NOT NULL, txn BLOB NOT NULL,"
    " start_token BLOB NOT NULL, slot_start_us INTEGER NOT NULL, start_at_us INTEGER NOT NULL,"
    " not_before_us INTEGER NOT NULL, deadline_us INTEGER NOT NULL, expires_us INTEGER NOT NULL,"
    " cost_max INTEGER NOT NULL);"
    "CREATE TABLE coalloc_part ("
    " job INTEGER NOT NULL REFERENCES coalloc (job), idx INTEGER NOT NULL, name TEXT NOT NULL,"
    " site TEXT NOT NULL, offset_us INTEGER NOT NULL, walltime_us INTEGER NOT NULL,"
    " state INTEGER NOT NULL, attempt INTEGER NOT NULL, price INTEGER NOT NULL,"
    " ended INTEGER NOT NULL, hint_site TEXT NOT NULL, hint_start_us INTEGER NOT NULL,"
    " PRIMARY KEY (job, idx)) WITHOUT ROWID;"
    "CREATE TABLE decision (txn BLOB PRIMARY KEY, decision INTEGER NOT NULL,"
    " at_us INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE site (name TEXT PRIMARY KEY, acked INTEGER NOT NULL) WITHOUT ROWID;",
    /* Sizes to choose from; the latest start; what is preferred. */
    "ALTER TABLE job ADD COLUMN shape INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE coalloc_part ADD COLUMN shape INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE coalloc ADD COLUMN not_after_us INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE coalloc ADD COLUMN prefer INTEGER NOT NULL DEFAULT 0;",
    "ALTER TABLE job ADD COLUMN held INTEGER NOT NULL DEFAULT 0;",
    /* Moves. */
    "ALTER TABLE job ADD COLUMN attempt_last INTEGER NOT NULL DEFAULT 0;"
    "UPDATE job SET attempt_last = site_attempt;"
    "ALTER TABLE job ADD COLUMN move_stage INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE job ADD COLUMN move_site TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE job ADD COLUMN move_job_id TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE job ADD COLUMN move_attempt INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE job ADD COLUMN move_shape INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE job ADD COLUMN move_price INTEGER NOT NULL DEFAULT 0;",
    "ALTER TABLE component ADD COLUMN answers BLOB;",
    "ALTER TABLE job ADD COLUMN retries INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE job ADD COLUMN retry_us INTEGER NOT NULL DEFAULT 0;",
    /* A group of coordinators (votes.h). accepted NULL: promised, not voted. */
    "CREATE TABLE vote ("
    " txn BLOB PRIMARY KEY, owner TEXT NOT NULL, leader TEXT NOT NULL, prior TEXT NOT NULL,"
    " promised INTEGER NOT NULL,"
    " accepted INTEGER, decision INTEGER NOT NULL, over INTEGER NOT NULL, transfer BLOB,"
    " at_us INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE INDEX vote_open ON vote (leader, txn) WHERE over = 0;"
    "CREATE INDEX vote_old ON vote (at_us) WHERE over = 1;"
    "CREATE TABLE lead ("
    " job INTEGER PRIMARY KEY REFERENCES job (number), ballot INTEGER NOT NULL,"
    " led_by TEXT NOT NULL, led_as TEXT NOT NULL, origin TEXT NOT NULL, origin_job INTEGER NOT NULL,"
    " told INTEGER NOT NULL);"
    "CREATE INDEX lead_untold ON lead (origin) WHERE told = 0;",
    /* A second record of a job: an earlier slot. */
    "CREATE TABLE record ("
    " job INTEGER NOT NULL REFERENCES job (number), role INTEGER NOT NULL, phase INTEGER NOT NULL,"
    " tries INTEGER NOT NULL, cancel_wanted INTEGER NOT NULL, ran INTEGER NOT NULL,"
    " decided INTEGER NOT NULL, outcome INTEGER NOT NULL, reason_code TEXT NOT NULL,"
    " reason_text TEXT NOT NULL, created_us INTEGER NOT NULL, txn BLOB NOT NULL,"
    " start_token BLOB NOT NULL, slot_start_us INTEGER NOT NULL, start_at_us INTEGER NOT NULL,"
    " not_before_us INTEGER NOT NULL, deadline_us INTEGER NOT NULL, expires_us INTEGER NOT NULL,"
    " cost_max INTEGER NOT NULL, not_after_us INTEGER NOT NULL, prefer INTEGER NOT NULL,"
    " PRIMARY KEY (job, role)) WITHOUT ROWID;"
    "INSERT INTO record SELECT job, 0, phase, tries, cancel_wanted, ran, decided, outcome, reason_code,"
    " reason_text, created_us, txn, start_token, slot_start_us, start_at_us, not_before_us, deadline_us,"
    " expires_us, cost_max, not_after_us, prefer FROM coalloc;"
    "CREATE TABLE part ("
    " job INTEGER NOT NULL REFERENCES job (number), role INTEGER NOT NULL, idx INTEGER NOT NULL,"
    " name TEXT NOT NULL, site TEXT NOT NULL, offset_us INTEGER NOT NULL, walltime_us INTEGER NOT NULL,"
    " state INTEGER NOT NULL, attempt INTEGER NOT NULL, price INTEGER NOT NULL, ended INTEGER NOT NULL,"
    " hint_site TEXT NOT NULL, hint_start_us INTEGER NOT NULL, shape INTEGER NOT NULL,"
    " PRIMARY KEY (job, role, idx)) WITHOUT ROWID;"
    "INSERT INTO part SELECT job, 0, idx, name, site, offset_us, walltime_us, state, attempt, price, ended,"
    " hint_site, hint_start_us, shape FROM coalloc_part;"
    "DROP TABLE coalloc_part;"
    "DROP TABLE coalloc;"
    "ALTER TABLE record RENAME TO coalloc;"
    "ALTER TABLE part RENAME TO coalloc_part;"
    "ALTER TABLE component ADD COLUMN next_job_id TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE component ADD COLUMN next_peer BLOB;",
    "ALTER TABLE job ADD COLUMN contact_us INTEGER NOT NULL DEFAULT 0;",
    /* What webhooks are to be told (notice.h). */
    "CREATE TABLE notice (sequence INTEGER PRIMARY KEY AUTOINCREMENT, url TEXT NOT NULL, key BLOB NOT NULL,"
    " body TEXT NOT NULL, tries INTEGER NOT NULL, next_us INTEGER NOT NULL, created_us INTEGER NOT NULL);"
    "CREATE INDEX notice_next ON notice (next_us);"
    "CREATE INDEX notice_url ON notice (url, next_us);",
    /* In a group each member has every job, and one leads it (votes.h). What another had taken over before is
     * that one's, under a number of its own. */
    "UPDATE job SET ended = 1, state = 6, reason_code = 'TakenOver',"
    " reason_text = 'taken over by another metascheduler before the upgrade: ask there'"
    " WHERE ended = 0 AND number IN (SELECT job FROM lead WHERE led_by <> '');"
    "DROP TABLE vote;"
    "DROP TABLE lead;"
    "CREATE TABLE lead (job INTEGER PRIMARY KEY, leader TEXT NOT NULL, promised INTEGER NOT NULL,"
    " accepted INTEGER NOT NULL, stands INTEGER NOT NULL, open INTEGER NOT NULL);"
    "CREATE INDEX lead_open ON lead (leader, job) WHERE open = 1;",
    /* In which order jobs came to be over here, and how far each other member's order was followed. */
    "ALTER TABLE lead ADD COLUMN place INTEGER NOT NULL DEFAULT 0;"
    "UPDATE lead SET place = job WHERE open = 0;"
    "CREATE UNIQUE INDEX lead_place ON lead (place) WHERE place > 0;"
    "CREATE TABLE followed (member TEXT PRIMARY KEY, place INTEGER NOT NULL) WITHOUT ROWID;",
    /* keys.h */
    "CREATE TABLE handover_key (number INTEGER PRIMARY KEY, bytes BLOB NOT NULL);",
    NULL,
};

/* ---- opening */

static int epoch_advance (struct metastore *store, struct err *err)
{
    int rc = store_exec (store->store, "UPDATE state SET value = value + 1 WHERE key = 'epoch'",
                         err);
    if (rc)
        return rc;
    struct store_stmt *q =
        store_stmt (store->store, "SELECT value FROM state WHERE key = 'epoch'");
    rc = store_step (q, err);
    if (rc < 0)
        return rc;
    if (rc == 0)
        return err_set (err, ERR_INTERNAL, "the store has no epoch");
    store->epoch = (uint64_t)store_col_int (q, 0);
    store_reset (q);
    /* Decisions that no live record will ask for any more. */
    return store_exec (store->store,
                       "DELETE FROM decision WHERE txn NOT IN (SELECT txn FROM coalloc WHERE"
                       " job IN (SELECT number FROM job WHERE ended = 0))",
                       err);
}

struct metastore *metastore_open (const char *path, struct err *err)
{
    struct metastore *store = calloc (1, sizeof *store);
    if (!store) {
        err_set (err, ERR_NOMEM, "no memory for the store");
        return NULL;
    }
    store->store = store_open (path, steps, err);
    if (!store->store || epoch_advance (store, err) || store_defer (store->store, err)) {
        metastore_close (store);
        return NULL;
    }
    store_reserve (store->store);
    return store;
}

void metastore_close (struct metastore *store)
{
    if (!store)
        return;
    store_close (store->store);
    free (store);
}

uint64_t metastore_epoch (const struct metastore *store)
{
    return store->epoch;
}

int metastore_begin (struct metastore *store, struct err *err)
{
    return store_begin (store->store, err);
}

int metastore_commit (struct metastore *store, struct err *err)
{
    return store_commit (store->store, err);
}

bool metastore_unsynced (const struct metastore *store)
{
    return store_unsynced (store->store);
}

int metastore_sync (struct metastore *store, struct err *err)
{
    return store_sync (store->store, err);
}

void metastore_rollback (struct metastore *store)
{
    store_rollback (store->store);
}

/* ---- jobs */

static const char *text_or_empty (const char *text)
{
    return text ? text : "";
}

int metastore_job_find_uuid (struct metastore *store, const char *submitter,
                             const struct uuid *uuid, uint64_t *number_out, struct err *err)
{
    struct store_stmt *q = store_stmt (
        store->store, "SELECT number FROM job WHERE submitter = ?1 AND uuid = ?2");
    store_bind_text (q, 1, submitter);
    store_bind_uuid (q, 2, uuid);
    int rc = store_step (q, err);
    if (rc < 0)
        return rc;
    if (rc == 0)
        return err_set (err, ERR_NOT_FOUND, "no job with this uuid");
    *number_out = (uint64_t)store_col_int (q, 0);
    store_reset (q);
    return 0;
}

int metastore_job_insert (struct metastore *store, const struct job_row *row, uint64_t *number_out,
                          struct err *err)
{
    int rc = metastore_job_find_uuid (store, row->submitter, &row->uuid, number_out, err);
    if (rc == 0)
        return err_set (err, ERR_EXISTS, "a job with this uuid is there");
    if (rc != ERR_NOT_FOUND)
        return rc;
    struct store_stmt *q = store_stmt (
        store->store,
        "INSERT INTO job (uuid, submitter, name, account, envelope, submit_us, state, ended,"
        " reason_code, reason_text, start_us, start_is_estimate, end_us, price, attempts, change,"
        " cancel_wanted, site, site_attempt, place, held, number)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, ?8, ?9, 0, 0, 0, 0, 0, ?12, 0, '', 0, 0, ?10, ?11)");
    store_bind_uuid (q, 1, &row->uuid);
    store_bind_text (q, 2, row->submitter);
    store_bind_text (q, 3, text_or_empty (row->name));
    store_bind_text (q, 4, text_or_empty (row->account));
    store_bind_blob (q, 5, row->envelope.bytes, row->envelope.len);
    store_bind_int (q, 6, row->submit_us);
    store_bind_int (q, 7, row->state);
    store_bind_text (q, 8, text_or_empty (row->reason_code));
    store_bind_text (q, 9, text_or_empty (row->reason_text));
    store_bind_int (q, 10, row->held);
    if (row->number)
        store_bind_int (q, 11, (int64_t)row->number);
    store_bind_int (q, 12, (int64_t)row->change);
    rc = store_run (q, err);
    if (rc == 0)
        *number_out = (uint64_t)store_last_id (store->store);
    return rc;
}

int metastore_job_number (struct metastore *store, uint32_t members, uint32_t self, uint64_t *number_out,
                          struct err *err)
{
    struct store_stmt *q =
        store_stmt (store->store, "SELECT ifnull (max (seq), 0) FROM sqlite_sequence WHERE name = 'job'");
    int rc = store_step (q, err);
    if (rc < 0)
        return rc;
    uint64_t last = rc ? (uint64_t)store_col_int (q, 0) : 0;
    store_reset (q);
    *number_out = last + 1 + (self + members - last % members) % members;
    return 0;
}

int metastore_job_number_pass (struct metastore *store, uint64_t number, bool *lost_out, struct err *err)
{
    uint64_t next = 0;
    int rc = metastore_job_number (store, 1, 0, &next, err);
    *lost_out = rc == 0 && next <= number;
    if (!*lost_out)
        return rc;
    struct store_stmt *q = store_stmt (store->store, next > 1 ? "UPDATE sqlite_sequence SET seq = ?1 WHERE name = 'job'"
                                                              : "INSERT INTO sqlite_sequence (name, seq) VALUES ('job', ?1)");
    store_bind_int (q, 1, (int64_t)number);
    return store_run (q, err);
}

int metastore_job_envelope_put (struct metastore *store, uint64_t number,
                                const struct metastore_blob *envelope, struct err *err)
{
    struct store_stmt *q =
        store_stmt (store->store, "UPDATE job SET envelope = ?2 WHERE number = ?1");
    store_bind_int (q, 1, (int64_t)number);
    store_bind_blob (q, 2, envelope->bytes, envelope->len);
    return store_run (q, err);
}

int metastore_job_update (struct metastore *store, const struct job_row *row, struct err *err)
{
    struct store_stmt *q = store_stmt (
        store->store,
        "UPDATE job SET state = ?2, ended = ?3, reason_code = ?4, reason_text = ?5, start_us = ?6,"
        " start_is_estimate = ?7, end_us = ?8, price = ?9, attempts = ?10, change = ?11,"
        " cancel_wanted = ?12, site = ?13, site_attempt = ?14, place = ?15, shape = ?16, held = ?17,"
        " attempt_last = ?18, move_stage = ?19, move_site = ?20, move_job_id = ?21,"
        " move_attempt = ?22, move_shape = ?23, move_price = ?24, retries = ?25, retry_us = ?26,"
        " contact_us = ?27"
        " WHERE number = ?1");
    store_bind_int (q, 1, (int64_t)row->number);
    store_bind_int (q, 2, row->state);
    store_bind_int (q, 3, row->ended);
    store_bind_text (q, 4, text_or_empty (row->reason_code));
    store_bind_text (q, 5, text_or_empty (row->reason_text));
    store_bind_int (q, 6, row->start_us);
    store_bind_int (q, 7, row->start_is_estimate);
    store_bind_int (q, 8, row->end_us);
    store_bind_int (q, 9, row->price);
    store_bind_int (q, 10, row->attempts);
    store_bind_int (q, 11, (int64_t)row->change);
    store_bind_int (q, 12, row->cancel_wanted);
    store_bind_text (q, 13, text_or_empty (row->site));
    store_bind_int (q, 14, row->site_attempt);
    store_bind_int (q, 15, row->place);
    store_bind_int (q, 16, row->shape);
    store_bind_int (q, 17, row->held);
    store_bind_int (q, 18, row->attempt_last);
    store_bind_int (q, 19, row->move_stage);
    store_bind_text (q, 20, text_or_empty (row->move_site));
    store_bind_text (q, 21, text_or_empty (row->move_job_id));
    store_bind_int (q, 22, row->move_attempt);
    store_bind_int (q, 23, row->move_shape);
    store_bind_int (q, 24, row->move_price);
    store_bind_int (q, 25, row->retries);
    store_bind_int (q, 26, row->retry_us);
    store_bind_int (q, 27, row->contact_us);
    return store_run (q, err);
}

static struct metastore_blob blob_col (struct store_stmt *q, int at, struct arena *arena)
{
    struct metastore_blob blob = {NULL, 0};
    const void *bytes = store_col_blob (q, at, &blob.len);
    if (blob.len)
        blob.bytes = arena_memdup (arena, bytes, blob.len);
    return blob;
}

static const char *text_col (struct store_stmt *q, int at, struct arena *arena)
{
    return arena_strdup (arena, text_or_empty (store_col_text (q, at)));
}

int metastore_job_load (struct metastore *store, uint64_t number, struct arena *arena,
                        struct job_row *out, struct err *err)
{
    struct store_stmt *q = store_stmt (
        store->store,
        "SELECT uuid, submitter, name, account, envelope, submit_us, state, ended, reason_code,"
        " reason_text, start_us, start_is_estimate, end_us, price, attempts, change,"
        " cancel_wanted, site, site_attempt, place, shape, held, attempt_last, move_stage, move_site,"
        " move_job_id, move_attempt, move_shape, move_price, retries, retry_us, contact_us FROM job"
        " WHERE number = ?1");
    store_bind_int (q, 1, (int64_t)number);
    int rc = store_step (q, err);
    if (rc < 0)
        return rc;
    if (rc == 0)
        return err_set (err, ERR_NOT_FOUND, "there is no job %llu", (unsigned long long)number);
    memset (out, 0, sizeof *out);
    out->number = number;
    store_col_uuid (q, 0, &out->uuid);
    out->submitter = text_col (q, 1, arena);
    out->name = text_col (q, 2, arena);
    out->account = text_col (q, 3, arena);
    out->envelope = blob_col (q, 4, arena);
    out->submit_us = store_col_int (q, 5);
    out->state = (int32_t)store_col_int (q, 6);
    out->ended = store_col_int (q, 7) != 0;
    out->reason_code = text_col (q, 8, arena);
    out->reason_text = text_col (q, 9, arena);
    out->start_us = store_col_int (q, 10);
    out->start_is_estimate = store_col_int (q, 11) != 0;
    out->end_us = store_col_int (q, 12);
    out->price = store_col_int (q, 13);
    out->attempts = (uint32_t)store_col_int (q, 14);
    out->change = (uint64_t)store_col_int (q, 15);
    out->cancel_wanted = store_col_int (q, 16) != 0;
    out->site = text_col (q, 17, arena);
    out->site_attempt = (uint32_t)store_col_int (q, 18);
    out->place = (int32_t)store_col_int (q, 19);
    out->shape = (uint32_t)store_col_int (q, 20);
    out->held = store_col_int (q, 21) != 0;
    out->attempt_last = (uint32_t)store_col_int (q, 22);
    out->move_stage = (int32_t)store_col_int (q, 23);
    out->move_site = text_col (q, 24, arena);
    out->move_job_id = text_col (q, 25, arena);
    out->move_attempt = (uint32_t)store_col_int (q, 26);
    out->move_shape = (uint32_t)store_col_int (q, 27);
    out->move_price = store_col_int (q, 28);
    out->retries = (uint32_t)store_col_int (q, 29);
    out->retry_us = store_col_int (q, 30);
    out->contact_us = store_col_int (q, 31);
    store_reset (q);
    return 0;
}

int metastore_job_list (struct metastore *store, const char *submitter, bool ended, uint32_t limit,
                        struct arena *arena, uint64_t **numbers_out, uint32_t *count_out,
                        struct err *err)
{
    /* Two texts each, so that every form has its index. */
    struct store_stmt *q = store_stmt (
        store->store,
        submitter
            ? (ended ? "SELECT number FROM job WHERE submitter = ?1 ORDER BY number DESC LIMIT ?2"
                     : "SELECT number FROM job WHERE ended = 0 AND submitter = ?1"
                       " ORDER BY number DESC LIMIT ?2")
            : (ended ? "SELECT number FROM job WHERE ?1 IS NULL ORDER BY number DESC LIMIT ?2"
                     : "SELECT number FROM job WHERE ended = 0 AND ?1 IS NULL"
                       " ORDER BY number DESC LIMIT ?2"));
    store_bind_text (q, 1, submitter);
    store_bind_int (q, 2, limit);
    uint64_t *numbers = NULL;
    uint32_t count = 0, cap = 0;
    int rc;
    while ((rc = store_step (q, err)) > 0) {
        if (count == cap) {
            uint64_t *grown = arena_array (arena, cap ? 2 * (size_t)cap : 64, sizeof *grown);
            if (count)
                memcpy (grown, numbers, count * sizeof *grown);
            numbers = grown;
            cap = cap ? 2 * cap : 64;
        }
        numbers[count++] = (uint64_t)store_col_int (q, 0);
    }
    if (rc < 0)
        return rc;
    for (uint32_t i = 0; i < count / 2; i++) {
        uint64_t swap = numbers[i];
        numbers[i] = numbers[count - 1 - i];
        numbers[count - 1 - i] = swap;
    }
    *numbers_out = numbers;
    *count_out = count;
    return 0;
}

/* ---- components */

int metastore_component_save (struct metastore *store, uint64_t number,
                              const struct component_row *row, struct err *err)
{
    struct store_stmt *q = store_stmt (
        store->store,
        "INSERT INTO component (job, idx, name, site, site_job_id, info, peer, answers, next_job_id,"
        " next_peer) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"
        " ON CONFLICT (job, idx) DO UPDATE SET"
        " site = excluded.site, site_job_id = excluded.site_job_id, info = excluded.info,"
        " peer = excluded.peer, answers = excluded.answers, next_job_id = excluded.next_job_id,"
        " next_peer = excluded.next_peer");
    store_bind_int (q, 1, (int64_t)number);
    store_bind_int (q, 2, row->index);
    store_bind_text (q, 3, text_or_empty (row->name));
    store_bind_text (q, 4, text_or_empty (row->site));
    store_bind_text (q, 5, text_or_empty (row->site_job_id));
    if (row->info.len)
        store_bind_blob (q, 6, row->info.bytes, row->info.len);
    if (row->peer.len)
        store_bind_blob (q, 7, row->peer.bytes, row->peer.len);
    if (row->answers.len)
        store_bind_blob (q, 8, row->answers.bytes, row->answers.len);
    store_bind_text (q, 9, text_or_empty (row->next_job_id));
    if (row->next_peer.len)
        store_bind_blob (q, 10, row->next_peer.bytes, row->next_peer.len);
    return store_run (q, err);
}

int metastore_component_load (struct metastore *store, uint64_t number, struct arena *arena,
                              struct component_row **rows_out, uint32_t *count_out,
                              struct err *err)
{
    struct store_stmt *q =
        store_stmt (store->store, "SELECT idx, name, site, site_job_id, info, peer, answers,"
                                  " next_job_id, next_peer FROM component WHERE job = ?1 ORDER BY idx");
    struct component_row *rows = arena_array (arena, COALLOC_PARTS_MAX, sizeof *rows);
    uint32_t count = 0;
    int rc;
    store_bind_int (q, 1, (int64_t)number);
    while ((rc = store_step (q, err)) > 0 && count < COALLOC_PARTS_MAX) {
        struct component_row *row = &rows[count++];
        row->index = (uint32_t)store_col_int (q, 0);
        row->name = text_col (q, 1, arena);
        row->site = text_col (q, 2, arena);
        row->site_job_id = text_col (q, 3, arena);
        row->info = blob_col (q, 4, arena);
        row->peer = blob_col (q, 5, arena);
        row->answers = blob_col (q, 6, arena);
        row->next_job_id = text_col (q, 7, arena);
        row->next_peer = blob_col (q, 8, arena);
    }
    store_reset (q);
    if (rc < 0)
        return rc;
    *rows_out = rows;
    *count_out = count;
    return 0;
}

/* ---- co-allocation records */

static int part_save (struct metastore *store, uint64_t number, enum metastore_role role, uint32_t index,
                      const struct coalloc_part *part, struct err *err)
{
    struct store_stmt *q = store_stmt (
        store->store,
        "INSERT OR REPLACE INTO coalloc_part (job, idx, name, site, offset_us, walltime_us, state,"
        " attempt, price, ended, hint_site, hint_start_us, shape, role)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)");
    store_bind_int (q, 1, (int64_t)number);
    store_bind_int (q, 2, index);
    store_bind_text (q, 3, part->name);
    store_bind_text (q, 4, part->site);
    store_bind_int (q, 5, part->offset);
    store_bind_int (q, 6, part->walltime);
    store_bind_int (q, 7, part->state);
    store_bind_int (q, 8, part->attempt);
    store_bind_int (q, 9, part->price);
    store_bind_int (q, 10, part->ended);
    store_bind_text (q, 11, part->hint_site);
    store_bind_int (q, 12, part->hint_start);
    store_bind_int (q, 13, part->shape);
    store_bind_int (q, 14, role);
    return store_run (q, err);
}

int metastore_coalloc_save (struct metastore *store, uint64_t number, enum metastore_role role,
                            const struct coalloc_record *record, struct err *err)
{
    struct store_stmt *q = store_stmt (
        store->store,
        "INSERT INTO coalloc (job, phase, tries, cancel_wanted, ran, decided, outcome,"
        " reason_code, reason_text, created_us, txn, start_token, slot_start_us, start_at_us,"
        " not_before_us, deadline_us, expires_us, cost_max, not_after_us, prefer, role)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17,"
        " ?18, ?19, ?20, ?21) ON CONFLICT (job, role) DO UPDATE SET"
        " phase = excluded.phase, tries = excluded.tries, cancel_wanted = excluded.cancel_wanted,"
        " ran = excluded.ran, decided = excluded.decided, outcome = excluded.outcome,"
        " reason_code = excluded.reason_code, reason_text = excluded.reason_text,"
        " txn = excluded.txn, start_token = excluded.start_token,"
        " slot_start_us = excluded.slot_start_us, start_at_us = excluded.start_at_us");
    store_bind_int (q, 1, (int64_t)number);
    store_bind_int (q, 2, record->phase);
    store_bind_int (q, 3, record->tries);
    store_bind_int (q, 4, record->cancel_wanted);
    store_bind_int (q, 5, record->ran);
    store_bind_int (q, 6, record->decided);
    store_bind_int (q, 7, record->outcome);
    store_bind_text (q, 8, record->reason.code);
    store_bind_text (q, 9, record->reason.text);
    store_bind_int (q, 10, record->created);
    store_bind_blob (q, 11, record->transaction, sizeof record->transaction);
    store_bind_blob (q, 12, record->start_token, sizeof record->start_token);
    store_bind_int (q, 13, record->slot_start);
    store_bind_int (q, 14, record->start_at);
    store_bind_int (q, 15, record->not_before);
    store_bind_int (q, 16, record->deadline);
    store_bind_int (q, 17, record->expires);
    store_bind_int (q, 18, record->cost_max);
    store_bind_int (q, 19, record->not_after);
    store_bind_int (q, 20, record->prefer);
    store_bind_int (q, 21, role);
    int rc = store_run (q, err);
    for (uint32_t p = 0; p < record->part_count && rc == 0; p++)
        rc = part_save (store, number, role, p, &record->part[p], err);
    return rc;
}

int metastore_coalloc_drop (struct metastore *store, uint64_t number, enum metastore_role role,
                            struct err *err)
{
    static const char *const text[] = {"DELETE FROM coalloc_part WHERE job = ?1 AND role = ?2",
                                       "DELETE FROM coalloc WHERE job = ?1 AND role = ?2"};
    int rc = 0;
    for (size_t i = 0; i < sizeof text / sizeof *text && rc == 0; i++) {
        struct store_stmt *q = store_stmt (store->store, text[i]);
        store_bind_int (q, 1, (int64_t)number);
        store_bind_int (q, 2, role);
        rc = store_run (q, err);
    }
    return rc;
}

static void name_col (struct store_stmt *q, int at, char *out, size_t cap)
{
    snprintf (out, cap, "%s", text_or_empty (store_col_text (q, at)));
}

static int bytes_col (struct store_stmt *q, int at, void *out, size_t len, struct err *err)
{
    size_t have = 0;
    const void *bytes = store_col_blob (q, at, &have);
    if (have != len)
        return err_set (err, ERR_IO, "a co-allocation record is damaged: %zu bytes, not %zu", have,
                        len);
    memcpy (out, bytes, len);
    return 0;
}

static int record_col (struct store_stmt *q, struct coalloc_record *record, struct err *err)
{
    record->phase = (enum coalloc_phase)store_col_int (q, 0);
    record->tries = (uint32_t)store_col_int (q, 1);
    record->cancel_wanted = store_col_int (q, 2) != 0;
    record->ran = store_col_int (q, 3) != 0;
    record->decided = store_col_int (q, 4) != 0;
    record->outcome = (enum coalloc_outcome)store_col_int (q, 5);
    name_col (q, 6, record->reason.code, sizeof record->reason.code);
    name_col (q, 7, record->reason.text, sizeof record->reason.text);
    record->created = store_col_int (q, 8);
    int rc = bytes_col (q, 9, record->transaction, sizeof record->transaction, err);
    if (rc == 0)
        rc = bytes_col (q, 10, record->start_token, sizeof record->start_token, err);
    record->slot_start = store_col_int (q, 11);
    record->start_at = store_col_int (q, 12);
    record->not_before = store_col_int (q, 13);
    record->deadline = store_col_int (q, 14);
    record->expires = store_col_int (q, 15);
    record->cost_max = store_col_int (q, 16);
    record->not_after = store_col_int (q, 18);
    record->prefer = (enum choose_prefer)store_col_int (q, 19);
    return rc;
}

static void part_col (struct store_stmt *q, struct coalloc_part *part)
{
    name_col (q, 1, part->name, sizeof part->name);
    name_col (q, 2, part->site, sizeof part->site);
    part->offset = store_col_int (q, 3);
    part->walltime = store_col_int (q, 4);
    part->state = (enum part_state)store_col_int (q, 5);
    part->attempt = (uint32_t)store_col_int (q, 6);
    part->price = store_col_int (q, 7);
    part->ended = (enum coalloc_outcome)store_col_int (q, 8);
    name_col (q, 9, part->hint_site, sizeof part->hint_site);
    part->hint_start = store_col_int (q, 10);
    part->shape = (uint32_t)store_col_int (q, 11);
}

static int parts_load (struct metastore *store, uint64_t number, enum metastore_role role,
                       struct coalloc_record *record, struct err *err)
{
    struct store_stmt *q = store_stmt (
        store->store, "SELECT idx, name, site, offset_us, walltime_us, state, attempt, price, ended,"
                      " hint_site, hint_start_us, shape FROM coalloc_part WHERE job = ?1 AND role = ?2"
                      " ORDER BY idx");
    uint32_t seen = 0;
    int rc;
    store_bind_int (q, 1, (int64_t)number);
    store_bind_int (q, 2, role);
    while ((rc = store_step (q, err)) > 0) {
        uint64_t index = (uint64_t)store_col_int (q, 0);
        if (index != seen || seen >= record->part_count)
            break;
        part_col (q, &record->part[seen++]);
    }
    store_reset (q);
    if (rc < 0)
        return rc;
    if (rc > 0 || seen != record->part_count)
        return err_set (err, ERR_IO, "the co-allocation record of job %llu is damaged",
                        (unsigned long long)number);
    return 0;
}

int metastore_coalloc_load (struct metastore *store, uint64_t number, enum metastore_role role,
                            struct coalloc_record **record_out, struct err *err)
{
    struct store_stmt *q = store_stmt (
        store->store,
        "SELECT phase, tries, cancel_wanted, ran, decided, outcome, reason_code, reason_text,"
        " created_us, txn, start_token, slot_start_us, start_at_us, not_before_us, deadline_us,"
        " expires_us, cost_max, (SELECT count(*) FROM coalloc_part p WHERE p.job = c.job"
        " AND p.role = c.role), not_after_us, prefer FROM coalloc c WHERE job = ?1 AND role = ?2");
    store_bind_int (q, 1, (int64_t)number);
    store_bind_int (q, 2, role);
    int rc = store_step (q, err);
    if (rc < 0)
        return rc;
    if (rc == 0)
        return err_set (err, ERR_NOT_FOUND, "job %llu is not co-allocated",
                        (unsigned long long)number);
    struct coalloc_record *record = coalloc_create ((uint32_t)store_col_int (q, 17), err);
    if (record)
        rc = record_col (q, record, err);
    store_reset (q);
    if (!record)
        return ERR_IO;
    if (rc == 0)
        rc = parts_load (store, number, role, record, err);
    if (rc) {
        coalloc_destroy (record);
        return rc;
    }
    *record_out = record;
    return 0;
}

/* ---- how far sites have been heard */

int metastore_site_acked (struct metastore *store, const char *site, uint64_t *sequence_out,
                          struct err *err)
{
    struct store_stmt *q = store_stmt (store->store, "SELECT acked FROM site WHERE name = ?1");
    store_bind_text (q, 1, site);
    int rc = store_step (q, err);
    if (rc < 0)
        return rc;
    *sequence_out = rc ? (uint64_t)store_col_int (q, 0) : 0;
    store_reset (q);
    return 0;
}

int metastore_site_ack (struct metastore *store, const char *site, uint64_t sequence,
                        struct err *err)
{
    struct store_stmt *q =
        store_stmt (store->store, "INSERT INTO site VALUES (?1, ?2)"
                                  " ON CONFLICT (name) DO UPDATE SET acked = excluded.acked");
    store_bind_text (q, 1, site);
    store_bind_int (q, 2, (int64_t)sequence);
    return store_run (q, err);
}
