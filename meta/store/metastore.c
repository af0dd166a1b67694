/* The metascheduler's store: its schema, and its records as tables of columns (proto/store/row.h): jobs, their components, their
 * co-allocation records, how far each site was heard. It decides nothing; votes.c and jobrows.c are the group's part of it. */
#include "meta/store/metastore_i.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/job/element.h"
#include "proto/store/row.h"

/* A step that was released is never changed. */
static const char *const steps[] = {
    "CREATE TABLE state (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;"
    "INSERT INTO state VALUES ('epoch', 0);"

    /* --- jobs: shape, which of its sizes was chosen; move_…, of one that is on its way to another site; retry…, when a site
     * is asked again; contact_us, when its site last spoke of it. */
    "CREATE TABLE job ("
    " number INTEGER PRIMARY KEY AUTOINCREMENT,"
    " uuid BLOB NOT NULL, submitter TEXT NOT NULL, name TEXT NOT NULL, account TEXT NOT NULL,"
    " envelope BLOB NOT NULL, submit_us INTEGER NOT NULL, state INTEGER NOT NULL,"
    " ended INTEGER NOT NULL, reason_code TEXT NOT NULL, reason_text TEXT NOT NULL,"
    " start_us INTEGER NOT NULL, start_is_estimate INTEGER NOT NULL, end_us INTEGER NOT NULL,"
    " price INTEGER NOT NULL, attempts INTEGER NOT NULL, change INTEGER NOT NULL,"
    " cancel_wanted INTEGER NOT NULL, site TEXT NOT NULL, site_attempt INTEGER NOT NULL,"
    " place INTEGER NOT NULL, shape INTEGER NOT NULL DEFAULT 0, held INTEGER NOT NULL DEFAULT 0,"
    " attempt_last INTEGER NOT NULL DEFAULT 0, move_stage INTEGER NOT NULL DEFAULT 0,"
    " move_site TEXT NOT NULL DEFAULT '', move_job_id TEXT NOT NULL DEFAULT '',"
    " move_attempt INTEGER NOT NULL DEFAULT 0, move_shape INTEGER NOT NULL DEFAULT 0,"
    " move_price INTEGER NOT NULL DEFAULT 0, retries INTEGER NOT NULL DEFAULT 0,"
    " retry_us INTEGER NOT NULL DEFAULT 0, contact_us INTEGER NOT NULL DEFAULT 0,"
    " UNIQUE (submitter, uuid));"
    "CREATE INDEX job_live ON job (number) WHERE ended = 0;"
    "CREATE INDEX job_owner ON job (submitter, number);"
    /* next_…: where its earlier slot is. */
    "CREATE TABLE component ("
    " job INTEGER NOT NULL REFERENCES job (number), idx INTEGER NOT NULL, name TEXT NOT NULL,"
    " site TEXT NOT NULL, site_job_id TEXT NOT NULL, info BLOB, peer BLOB, answers BLOB,"
    " next_job_id TEXT NOT NULL DEFAULT '', next_peer BLOB,"
    " PRIMARY KEY (job, idx)) WITHOUT ROWID;"

    /* --- co-allocations (core/coalloc.h). role: the record in force, or of an earlier slot. */
    "CREATE TABLE coalloc ("
    " job INTEGER NOT NULL REFERENCES job (number), role INTEGER NOT NULL, phase INTEGER NOT NULL,"
    " tries INTEGER NOT NULL, cancel_wanted INTEGER NOT NULL, ran INTEGER NOT NULL,"
    " decided INTEGER NOT NULL, outcome INTEGER NOT NULL, reason_code TEXT NOT NULL,"
    " reason_text TEXT NOT NULL, created_us INTEGER NOT NULL, txn BLOB NOT NULL,"
    " start_token BLOB NOT NULL, slot_start_us INTEGER NOT NULL, start_at_us INTEGER NOT NULL,"
    " not_before_us INTEGER NOT NULL, deadline_us INTEGER NOT NULL, expires_us INTEGER NOT NULL,"
    " cost_max INTEGER NOT NULL, not_after_us INTEGER NOT NULL, prefer INTEGER NOT NULL,"
    " PRIMARY KEY (job, role)) WITHOUT ROWID;"
    "CREATE TABLE coalloc_part ("
    " job INTEGER NOT NULL REFERENCES job (number), role INTEGER NOT NULL, idx INTEGER NOT NULL,"
    " name TEXT NOT NULL, site TEXT NOT NULL, offset_us INTEGER NOT NULL, walltime_us INTEGER NOT NULL,"
    " state INTEGER NOT NULL, attempt INTEGER NOT NULL, price INTEGER NOT NULL, ended INTEGER NOT NULL,"
    " hint_site TEXT NOT NULL, hint_start_us INTEGER NOT NULL, shape INTEGER NOT NULL,"
    " PRIMARY KEY (job, role, idx)) WITHOUT ROWID;"
    "CREATE TABLE decision (txn BLOB PRIMARY KEY, decision INTEGER NOT NULL,"
    " at_us INTEGER NOT NULL) WITHOUT ROWID;"

    /* --- sites, and a group's members (votes.h): each has every job, and one leads it. place: in which order jobs came to be
     * over here; followed: how far each other member's order was followed. */
    "CREATE TABLE site (name TEXT PRIMARY KEY, acked INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE lead (job INTEGER PRIMARY KEY, leader TEXT NOT NULL, promised INTEGER NOT NULL,"
    " accepted INTEGER NOT NULL, stands INTEGER NOT NULL, open INTEGER NOT NULL,"
    " place INTEGER NOT NULL DEFAULT 0);"
    "CREATE INDEX lead_open ON lead (leader, job) WHERE open = 1;"
    "CREATE UNIQUE INDEX lead_place ON lead (place) WHERE place > 0;"
    "CREATE TABLE followed (member TEXT PRIMARY KEY, place INTEGER NOT NULL) WITHOUT ROWID;"

    /* --- what webhooks are to be told (notice.h), and the secret of hand-overs (keys.h) */
    "CREATE TABLE notice (sequence INTEGER PRIMARY KEY AUTOINCREMENT, url TEXT NOT NULL, key BLOB NOT NULL,"
    " body TEXT NOT NULL, tries INTEGER NOT NULL, next_us INTEGER NOT NULL, created_us INTEGER NOT NULL);"
    "CREATE INDEX notice_next ON notice (next_us);"
    "CREATE INDEX notice_url ON notice (url, next_us);"
    "CREATE TABLE handover_key (number INTEGER PRIMARY KEY, bytes BLOB NOT NULL);",

    /* --- arrays that were signed as one: array_of, the number of the first, which alone has the envelope where others have
     * the same and it is here; element, 1 + the index */
    "ALTER TABLE job ADD COLUMN array_of INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE job ADD COLUMN element INTEGER NOT NULL DEFAULT 0;"
    "CREATE UNIQUE INDEX job_element ON job (array_of, element) WHERE array_of > 0;"
    "CREATE INDEX job_array_live ON job (array_of) WHERE ended = 0 AND array_of > 0;",

    /* --- arrays that were taken, and of which not all jobs are there yet (svc/arrive.h); and what a user is shown by pages,
     * however many ended jobs, jobs of arrays or jobs of others there are */
    "CREATE TABLE arriving (array INTEGER PRIMARY KEY);"
    "CREATE INDEX job_owner_live ON job (submitter, number) WHERE ended = 0;"
    "CREATE INDEX job_single_live ON job (submitter, number) WHERE ended = 0 AND array_of = 0;"
    "CREATE INDEX job_folded ON job (submitter, number) WHERE array_of = 0 OR array_of = number;",

    /* --- which site took its part of a group back that was firm, for as long as the group lives */
    "ALTER TABLE coalloc ADD COLUMN broke TEXT NOT NULL DEFAULT '';",

    /* --- jobs by when they ended (past.h); or their signatures did, which nobody noted before: a month at most. State's
     * key "forgotten" is when the last of those ended that are not here any more */
    "ALTER TABLE job ADD COLUMN expires_us INTEGER NOT NULL DEFAULT 0;"
    "UPDATE job SET expires_us = submit_us + 2592000000000;"
    "CREATE INDEX job_past ON job (max (end_us, expires_us)) WHERE ended = 1;",
    NULL,
};

/* ---- opening */

static int epoch_advance (struct metastore *store, struct err *err)
{
    int rc =
        store_exec (store->store, "UPDATE state SET value = value + 1 WHERE key = 'epoch'", err);
    if (rc)
        return rc;
    struct store_stmt *q = store_stmt (store->store, "SELECT value FROM state WHERE key = 'epoch'");
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

enum { ARRAY_SITES_MAX = 64 };

#define JOB(field, flags) ROW (struct job_row, field, flags)

static const struct row_column job_columns[] = {
    JOB (uuid, ROW_ONCE),
    JOB (submitter, ROW_ONCE),
    JOB (name, ROW_ONCE),
    JOB (account, ROW_ONCE),
    ROW_DATA (struct job_row, envelope.bytes, envelope.len, "envelope", ROW_ONCE),
    JOB (submit_us, ROW_ONCE),
    JOB (expires_us, ROW_ONCE),
    JOB (state, 0),
    JOB (ended, 0),
    JOB (reason_code, 0),
    JOB (reason_text, 0),
    JOB (start_us, 0),
    JOB (start_is_estimate, 0),
    JOB (end_us, 0),
    JOB (price, 0),
    JOB (attempts, 0),
    JOB (change, 0),
    JOB (cancel_wanted, 0),
    JOB (site, 0),
    JOB (site_attempt, 0),
    JOB (place, 0),
    JOB (shape, 0),
    JOB (held, 0),
    JOB (attempt_last, 0),
    JOB (retries, 0),
    JOB (retry_us, 0),
    JOB (contact_us, 0),
    JOB (move_stage, 0),
    JOB (move_site, 0),
    JOB (move_job_id, 0),
    JOB (move_attempt, 0),
    JOB (move_shape, 0),
    JOB (move_price, 0),
    ROW_AS (struct job_row, array, "array_of", ROW_ONCE),
    JOB (element, ROW_ONCE),
};
static const struct row_table job_table = ROW_TABLE ("job", job_columns, "number");

int metastore_job_find_uuid (struct metastore *store, const char *submitter,
                             const struct uuid *uuid, uint64_t *number_out, struct err *err)
{
    struct store_stmt *q =
        store_stmt (store->store, "SELECT number FROM job WHERE submitter = ?1 AND uuid = ?2");
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
    const int64_t number = (int64_t)row->number;
    rc = store_row_write (store->store, &job_table, ROW_INSERT, number ? &number : NULL, row, err);
    if (rc == 0)
        *number_out = (uint64_t)store_last_id (store->store);
    return rc;
}

int metastore_job_number (struct metastore *store, uint32_t members, uint32_t self,
                          uint64_t *number_out, struct err *err)
{
    struct store_stmt *q = store_stmt (
        store->store, "SELECT ifnull (max (seq), 0) FROM sqlite_sequence WHERE name = 'job'");
    int rc = store_step (q, err);
    if (rc < 0)
        return rc;
    uint64_t last = rc ? (uint64_t)store_col_int (q, 0) : 0;
    store_reset (q);
    *number_out = last + 1 + (self + members - last % members) % members;
    return 0;
}

int metastore_job_number_pass (struct metastore *store, uint64_t number, bool *lost_out,
                               struct err *err)
{
    uint64_t next = 0;
    int rc = metastore_job_number (store, 1, 0, &next, err);
    *lost_out = rc == 0 && next <= number;
    if (!*lost_out)
        return rc;
    struct store_stmt *q = store_stmt (
        store->store, next > 1 ? "UPDATE sqlite_sequence SET seq = ?1 WHERE name = 'job'"
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
    int rc = store_run (q, err);
    return rc == 0 ? metastore_envelope_share (store, number, err) : rc;
}

int metastore_job_update (struct metastore *store, const struct job_row *row, struct err *err)
{
    const int64_t number = (int64_t)row->number;
    return store_row_write (store->store, &job_table, ROW_UPDATE, &number, row, err);
}

int metastore_job_load (struct metastore *store, uint64_t number, struct arena *arena,
                        struct job_row *out, struct err *err)
{
    struct store_stmt *q =
        store_row_select (store->store, &job_table, " FROM job WHERE number = ?1");
    store_bind_int (q, 1, (int64_t)number);
    int rc = store_step (q, err);
    if (rc < 0)
        return rc;
    if (rc == 0)
        return err_set (err, ERR_NOT_FOUND, "there is no job %llu", (unsigned long long)number);
    memset (out, 0, sizeof *out);
    out->number = number;
    rc = store_row_take (q, &job_table, arena, out, err);
    store_reset (q);
    return rc;
}

/* The numbers that a query gives, newest first, as they are wanted: ascending. */
static int numbers_take (struct store_stmt *q, struct arena *arena, uint64_t **numbers_out,
                         uint32_t *count_out, struct err *err)
{
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

static void list_bind (struct store_stmt *q, const char *submitter, uint64_t before, uint32_t limit)
{
    store_bind_text (q, 1, submitter);
    store_bind_int (q, 2, limit);
    store_bind_int (q, 3, before && before < INT64_MAX ? (int64_t)before : INT64_MAX);
}

int metastore_job_list (struct metastore *store, const char *submitter, bool ended, uint64_t before,
                        uint32_t limit, struct arena *arena, uint64_t **numbers_out,
                        uint32_t *count_out, struct err *err)
{
    /* Two texts each, so that every form has its index. */
    struct store_stmt *q = store_stmt (
        store->store,
        submitter ? (ended ? "SELECT number FROM job WHERE submitter = ?1 AND number < ?3"
                             " ORDER BY number DESC LIMIT ?2"
                           : "SELECT number FROM job INDEXED BY job_owner_live WHERE ended = 0"
                             " AND submitter = ?1 AND number < ?3 ORDER BY number DESC LIMIT ?2")
                  : (ended ? "SELECT number FROM job WHERE ?1 IS NULL AND number < ?3"
                             " ORDER BY number DESC LIMIT ?2"
                           : "SELECT number FROM job WHERE ended = 0 AND ?1 IS NULL AND number < ?3"
                             " ORDER BY number DESC LIMIT ?2"));
    list_bind (q, submitter, before, limit);
    return numbers_take (q, arena, numbers_out, count_out, err);
}

/* ---- arrays */

/* Of an array that has live jobs the first may have ended. Each array is one step, however many jobs it has. */
#define LIVE_ARRAYS(below)                                                                         \
    "SELECT max (array_of) FROM job WHERE ended = 0 AND array_of > 0 AND array_of < " below
#define LIVE_FOLDED(index, whose)                                                                          \
    "SELECT number FROM job INDEXED BY " index " WHERE ended = 0 AND array_of = 0 AND " whose              \
    " AND number < ?3 UNION ALL SELECT n FROM (WITH RECURSIVE a (n) AS (" LIVE_ARRAYS (                    \
        "?3") " UNION ALL SELECT (" LIVE_ARRAYS ("a.n") ") FROM a WHERE n > 0) SELECT n, submitter FROM a" \
                                                        " JOIN job ON number = n WHERE " whose             \
                                                        ") ORDER BY 1 DESC LIMIT ?2"

int metastore_job_list_folded (struct metastore *store, const char *submitter, bool ended,
                               uint64_t before, uint32_t limit, struct arena *arena,
                               uint64_t **numbers_out, uint32_t *count_out, struct err *err)
{
    struct store_stmt *q = store_stmt (
        store->store, submitter
                          ? (ended ? "SELECT number FROM job WHERE submitter = ?1 AND number < ?3"
                                     " AND (array_of = 0 OR array_of = number)"
                                     " ORDER BY number DESC LIMIT ?2"
                                   : LIVE_FOLDED ("job_single_live", "submitter = ?1"))
                          : (ended ? "SELECT number FROM job WHERE ?1 IS NULL AND number < ?3"
                                     " AND array_of IN (0, number) ORDER BY number DESC LIMIT ?2"
                                   : LIVE_FOLDED ("job_live", "?1 IS NULL")));
    list_bind (q, submitter, before, limit);
    return numbers_take (q, arena, numbers_out, count_out, err);
}

int metastore_array_list (struct metastore *store, uint64_t array, struct arena *arena,
                          struct element_row **rows_out, uint32_t *count_out, struct err *err)
{
    struct store_stmt *q = store_stmt (
        store->store, "SELECT number, element, state FROM job WHERE array_of = ?1 AND array_of > 0"
                      " ORDER BY element");
    struct element_row *rows = arena_array (arena, ELEMENTS_MAX, sizeof *rows);
    uint32_t count = 0;
    int rc;
    store_bind_int (q, 1, (int64_t)array);
    while ((rc = store_step (q, err)) > 0 && count < ELEMENTS_MAX)
        rows[count++] =
            (struct element_row){(uint64_t)store_col_int (q, 0), (uint32_t)store_col_int (q, 1) - 1,
                                 (int32_t)store_col_int (q, 2)};
    store_reset (q);
    *rows_out = rows;
    *count_out = count;
    return rc < 0 ? rc : 0;
}

int metastore_element_find (struct metastore *store, uint64_t array, uint32_t index,
                            uint64_t *number_out, struct err *err)
{
    struct store_stmt *q =
        store_stmt (store->store,
                    "SELECT number FROM job WHERE array_of = ?1 AND array_of > 0 AND element = ?2");
    store_bind_int (q, 1, (int64_t)array);
    store_bind_int (q, 2, (int64_t)index + 1);
    int rc = store_step (q, err);
    if (rc < 0)
        return rc;
    if (rc == 0)
        return err_set (err, ERR_NOT_FOUND, "there is no job %u of array %llu", index,
                        (unsigned long long)array);
    *number_out = (uint64_t)store_col_int (q, 0);
    store_reset (q);
    return 0;
}

static void about_site (struct array_row *out, const char *site, struct arena *arena)
{
    uint32_t i = out->site_count;
    while (i > 0 && strcmp (out->site[i - 1], site) > 0)
        i--;
    if (!*site || out->site_count == ARRAY_SITES_MAX || (i && strcmp (out->site[i - 1], site) == 0))
        return;
    memmove (&out->site[i + 1], &out->site[i], (out->site_count - i) * sizeof *out->site);
    out->site[i] = arena_strdup (arena, site);
    out->site_count++;
}

/* Summed up here: SQLite would sort them first. */
int metastore_array_about (struct metastore *store, uint64_t array, struct arena *arena,
                           struct array_row *out, struct err *err)
{
    struct store_stmt *q = store_stmt (
        store->store, "SELECT site, start_us * (start_is_estimate = 0), end_us, ended, price"
                      " FROM job WHERE array_of = ?1 AND array_of > 0");
    char last[COALLOC_NAME_MAX] = "";
    bool live = false;
    int rc;
    *out = (struct array_row){.site = arena_array (arena, ARRAY_SITES_MAX, sizeof *out->site)};
    store_bind_int (q, 1, (int64_t)array);
    while ((rc = store_step (q, err)) > 0) {
        const char *site = store_col_text (q, 0);
        time_us begin = store_col_int (q, 1), end = store_col_int (q, 2);
        if (strcmp (site, last) != 0) {
            about_site (out, site, arena);
            snprintf (last, sizeof last, "%s", site);
        }
        if (begin > 0 && (!out->begin || begin < out->begin))
            out->begin = begin;
        out->end = end > out->end ? end : out->end;
        live = live || !store_col_int (q, 3);
        out->price += store_col_int (q, 4);
    }
    if (live)
        out->end = 0;
    return rc;
}

int metastore_arriving_put (struct metastore *store, uint64_t array, struct err *err)
{
    struct store_stmt *q =
        store_stmt (store->store, "INSERT OR IGNORE INTO arriving (array) VALUES (?1)");
    store_bind_int (q, 1, (int64_t)array);
    return store_run (q, err);
}

int metastore_arriving_drop (struct metastore *store, uint64_t array, struct err *err)
{
    struct store_stmt *q = store_stmt (store->store, "DELETE FROM arriving WHERE array = ?1");
    store_bind_int (q, 1, (int64_t)array);
    return store_run (q, err);
}

int metastore_arriving_list (struct metastore *store, struct arena *arena, uint64_t **numbers_out,
                             uint32_t *count_out, struct err *err)
{
    struct store_stmt *q =
        store_stmt (store->store, "SELECT array FROM arriving ORDER BY array DESC");
    return numbers_take (q, arena, numbers_out, count_out, err);
}

/* ---- components */

#define PART(field, flags) ROW (struct component_row, field, flags)
#define PART_BLOB(field) ROW_DATA (struct component_row, field.bytes, field.len, #field, 0)

static const struct row_column component_columns[] = {
    ROW_AS (struct component_row, index, "idx", ROW_KEY),
    PART (name, ROW_ONCE),
    PART (site, 0),
    PART (site_job_id, 0),
    PART_BLOB (info),
    PART_BLOB (peer),
    PART_BLOB (answers),
    PART (next_job_id, 0),
    PART_BLOB (next_peer),
};
static const struct row_table component_table = ROW_TABLE ("component", component_columns, "job");

int metastore_component_save (struct metastore *store, uint64_t number,
                              const struct component_row *row, struct err *err)
{
    return store_row_write (store->store, &component_table, ROW_PUT, &(int64_t){(int64_t)number},
                            row, err);
}

int metastore_component_load (struct metastore *store, uint64_t number, struct arena *arena,
                              struct component_row **rows_out, uint32_t *count_out, struct err *err)
{
    struct store_stmt *q = store_row_select (store->store, &component_table,
                                             " FROM component WHERE job = ?1 ORDER BY idx");
    struct component_row *rows = arena_array (arena, COALLOC_PARTS_MAX, sizeof *rows);
    uint32_t count = 0;
    int rc;
    store_bind_int (q, 1, (int64_t)number);
    while ((rc = store_step (q, err)) > 0 && count < COALLOC_PARTS_MAX)
        store_row_take (q, &component_table, arena, &rows[count++], err);
    store_reset (q);
    if (rc < 0)
        return rc;
    *rows_out = rows;
    *count_out = count;
    return 0;
}

/* ---- co-allocation records */

#define RECORD(field, column, flags) ROW_AS (struct coalloc_record, field, column, flags)
#define MEMBER(field, column) ROW_AS (struct coalloc_part, field, column, 0)

/* The bounds are written once, but for those that its owner can renew, or sign anew (group/terms.c). */
static const struct row_column record_columns[] = {
    RECORD (phase, "phase", 0),
    RECORD (tries, "tries", 0),
    RECORD (cancel_wanted, "cancel_wanted", 0),
    RECORD (ran, "ran", 0),
    RECORD (decided, "decided", 0),
    RECORD (outcome, "outcome", 0),
    RECORD (reason.code, "reason_code", 0),
    RECORD (reason.text, "reason_text", 0),
    RECORD (broke, "broke", 0),
    RECORD (created, "created_us", ROW_ONCE),
    RECORD (transaction, "txn", 0),
    RECORD (start_token, "start_token", 0),
    RECORD (slot_start, "slot_start_us", 0),
    RECORD (start_at, "start_at_us", 0),
    RECORD (not_before, "not_before_us", ROW_ONCE),
    RECORD (deadline, "deadline_us", ROW_ONCE),
    RECORD (expires, "expires_us", 0),
    RECORD (cost_max, "cost_max", 0),
    RECORD (not_after, "not_after_us", ROW_ONCE),
    RECORD (prefer, "prefer", ROW_ONCE),
};
static const struct row_table record_table = ROW_TABLE ("coalloc", record_columns, "job", "role");

static const struct row_column member_columns[] = {
    MEMBER (name, "name"),           MEMBER (site, "site"),
    MEMBER (offset, "offset_us"),    MEMBER (walltime, "walltime_us"),
    MEMBER (state, "state"),         MEMBER (attempt, "attempt"),
    MEMBER (price, "price"),         MEMBER (ended, "ended"),
    MEMBER (hint_site, "hint_site"), MEMBER (hint_start, "hint_start_us"),
    MEMBER (shape, "shape"),
};
static const struct row_table member_table =
    ROW_TABLE ("coalloc_part", member_columns, "job", "role", "idx");

int metastore_coalloc_save (struct metastore *store, uint64_t number, enum metastore_role role,
                            const struct coalloc_record *record, struct err *err)
{
    int64_t key[] = {(int64_t)number, role, 0};
    int rc = store_row_write (store->store, &record_table, ROW_PUT, key, record, err);
    for (; key[2] < record->part_count && rc == 0; key[2]++)
        rc =
            store_row_write (store->store, &member_table, ROW_PUT, key, &record->part[key[2]], err);
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

static int members_load (struct metastore *store, uint64_t number, enum metastore_role role,
                         struct coalloc_record *record, struct err *err)
{
    struct store_stmt *q =
        store_row_select (store->store, &member_table,
                          " FROM coalloc_part WHERE job = ?1 AND role = ?2 ORDER BY idx");
    uint32_t seen = 0;
    int rc;
    store_bind_int (q, 1, (int64_t)number);
    store_bind_int (q, 2, role);
    while ((rc = store_step (q, err)) > 0) {
        if (seen >= record->part_count || store_col_int (q, 2) != seen)
            break;
        store_row_take (q, &member_table, NULL, &record->part[seen++], err);
    }
    store_reset (q);
    if (rc < 0)
        return rc;
    if (rc > 0 || seen != record->part_count)
        return err_set (err, ERR_IO, "the co-allocation record of job %llu is damaged",
                        (unsigned long long)number);
    return 0;
}

static int members_count (struct metastore *store, uint64_t number, enum metastore_role role,
                          uint32_t *out, struct err *err)
{
    struct store_stmt *q =
        store_stmt (store->store, "SELECT count(*) FROM coalloc_part WHERE job = ?1 AND role = ?2");
    store_bind_int (q, 1, (int64_t)number);
    store_bind_int (q, 2, role);
    int rc = store_step (q, err);
    if (rc <= 0)
        return rc;
    *out = (uint32_t)store_col_int (q, 0);
    store_reset (q);
    return 0;
}

int metastore_coalloc_load (struct metastore *store, uint64_t number, enum metastore_role role,
                            struct coalloc_record **record_out, struct err *err)
{
    uint32_t count = 0;
    int rc = members_count (store, number, role, &count, err);
    if (rc)
        return rc;
    struct store_stmt *q = store_row_select (store->store, &record_table,
                                             " FROM coalloc WHERE job = ?1 AND role = ?2");
    store_bind_int (q, 1, (int64_t)number);
    store_bind_int (q, 2, role);
    rc = store_step (q, err);
    if (rc < 0)
        return rc;
    if (rc == 0)
        return err_set (err, ERR_NOT_FOUND, "job %llu is not co-allocated",
                        (unsigned long long)number);
    struct coalloc_record *record = coalloc_create (count, err);
    rc = record ? store_row_take (q, &record_table, NULL, record, err) : ERR_IO;
    store_reset (q);
    if (rc == 0)
        rc = members_load (store, number, role, record, err);
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
