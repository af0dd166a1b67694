/* local_store: the schema's steps (schema.c), and the statements for live jobs, parts, holds,
 * outboxes and named values. The service and the links call it. Whatever changes state must
 * stand between begin and commit; nothing may be told to anyone before it is durable. A released
 * schema step is never changed. */
#include "local/store/local_store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "local/store/local_store_i.h"
#include "proto/store/row.h"
#include "proto/base/text.h"
#include "proto/store/outbox.h"

static const char *const schema_steps[] = {
    local_schema,
    "ALTER TABLE part ADD COLUMN replaces BLOB NOT NULL"
    " DEFAULT x'00000000000000000000000000000000';",
    "ALTER TABLE rsv ADD COLUMN grid TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE rsv ADD COLUMN part INTEGER NOT NULL DEFAULT 0;",
    "ALTER TABLE part ADD COLUMN wanted BLOB;",
    NULL,
};

int local_store_open (const char *path, struct local_store **out, struct err *err)
{
    struct err local = {0};
    struct local_store *store = calloc (1, sizeof *store);
    if (!store)
        return err_set (err, ERR_NOMEM, "store: no memory");
    store->db = store_open (path, schema_steps, &local);
    if (!store->db) {
        free (store);
        return err_set (err, local.code, "%s", local.text);
    }
    *out = store;
    return 0;
}

void local_store_reserve (struct local_store *store)
{
    store_reserve (store->db);
}

int local_store_scratch (const char *path, struct local_store **out, struct err *err)
{
    static const char *const tails[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < 3; i++) {
        char file[4200];
        snprintf (file, sizeof file, "%s%s", path, tails[i]);
        if (unlink (file) != 0 && errno != ENOENT)
            return err_set (err, ERR_IO, "database %s: %s", file, strerror (errno));
    }
    int rc = local_store_open (path, out, err);
    return rc == 0 ? store_relax ((*out)->db, err) : rc;
}

void local_store_close (struct local_store *store)
{
    if (!store)
        return;
    store_close (store->db);
    free (store);
}

int local_store_begin (struct local_store *store, struct err *err)
{
    return store_begin (store->db, err);
}

int local_store_commit (struct local_store *store, struct err *err)
{
    return store_commit (store->db, err);
}

void local_store_rollback (struct local_store *store)
{
    store_rollback (store->db);
}

int local_store_next (struct local_store *store, const char *counter, uint64_t *out,
                      struct err *err)
{
    struct store_stmt *q =
        store_stmt (store->db, "INSERT INTO counter (name, value) VALUES (?1, 1) "
                               "ON CONFLICT (name) DO UPDATE SET value = value + 1 "
                               "RETURNING value");
    store_bind_text (q, 1, counter);
    int rc = store_step (q, err);
    if (rc < 0)
        return rc;
    *out = (uint64_t)store_col_int (q, 0);
    return store_run (q, err);
}

int local_store_next_above (struct local_store *store, const char *counter, uint64_t value,
                            struct err *err)
{
    struct store_stmt *q =
        store_stmt (store->db, "INSERT INTO counter (name, value) VALUES (?1, ?2) "
                               "ON CONFLICT (name) DO UPDATE SET value = max (value, ?2)");
    store_bind_text (q, 1, counter);
    store_bind_int (q, 2, (int64_t)value);
    return store_run (q, err);
}

/* --- small helpers ------------------------------------------------------------------------ */

static void col_name (struct store_stmt *q, int at, char out[STORE_NAME_MAX])
{
    const char *text = store_col_text (q, at);
    snprintf (out, STORE_NAME_MAX, "%s", text ? text : "");
}

static void *col_blob_dup (struct store_stmt *q, int at, size_t *len_out)
{
    size_t len = 0;
    const void *bytes = store_col_blob (q, at, &len);
    *len_out = len;
    if (store_col_is_null (q, at))
        return NULL;
    char *copy = malloc (len + 1);
    if (copy && len)
        memcpy (copy, bytes, len);
    if (copy)
        copy[len] = 0;
    return copy;
}

/* --- jobs --------------------------------------------------------------------------------- */

void store_job_free (struct store_job *job)
{
    free (job->submitter);
    free (job->reason_text);
    free (job->placement);
    job->submitter = job->reason_text = job->placement = NULL;
}

static const struct row_column job_columns[] = {
    ROW (struct store_job, number, ROW_KEY),
    ROW (struct store_job, state, 0),
    ROW (struct store_job, grid_job_id, ROW_ONCE),
    ROW (struct store_job, component, ROW_ONCE),
    ROW (struct store_job, component_index, ROW_ONCE),
    ROW (struct store_job, attempt, ROW_ONCE),
    ROW (struct store_job, part, ROW_ONCE),
    ROW_AS (struct store_job, transaction, "txn", ROW_ONCE),
    ROW_OWN (struct store_job, submitter, "submitter", ROW_ONCE | ROW_NOT_NULL),
    ROW (struct store_job, local_account, 0),
    ROW (struct store_job, pay_account, 0),
    ROW (struct store_job, reason_code, 0),
    ROW_OWN (struct store_job, reason_text, "reason_text", 0),
    ROW (struct store_job, incarnation, 0),
    ROW (struct store_job, start_failures, 0),
    ROW (struct store_job, procs, 0),
    ROW_AS (struct store_job, walltime, "walltime_us", 0),
    ROW_AS (struct store_job, submit, "submit_us", ROW_ONCE),
    ROW_AS (struct store_job, start, "start_us", 0),
    ROW_AS (struct store_job, end, "end_us", 0),
    ROW (struct store_job, exit_code, 0),
    ROW (struct store_job, hold_key, 0),
    ROW (struct store_job, hold_asked, 0),
    ROW (struct store_job, hold_id, 0),
    ROW_AS (struct store_job, amount, "amount_micro", 0),
    ROW_OWN (struct store_job, placement, "placement", 0),
    ROW_AS (struct store_job, stop, "cancel_wanted", 0), /* the column is older than preemption */
    ROW (struct store_job, ever_told, 0),
    ROW (struct store_job, change, 0),
    ROW_AS (struct store_job, deferred_until, "deferred_until_us", 0),
    ROW_AS (struct store_job, launch_at, "launch_at_us", 0),
    ROW (struct store_job, port, 0),
    ROW (struct store_job, backfilled, 0),
    ROW (struct store_job, defer_count, 0),
    ROW (struct store_job, checkpoints, 0),
    ROW_AS (struct store_job, suspended_at, "suspended_at_us", 0),
    ROW_AS (struct store_job, halted, "halted_us", 0),
    ROW_AS (struct store_job, array, "array_of", 0),
    ROW (struct store_job, array_index, 0),
    ROW (struct store_job, array_limit, 0),
    ROW (struct store_job, shape, ROW_ONCE),
    ROW (struct store_job, meta, ROW_ONCE),
    ROW_AS (struct store_job, contact, "contact_us", ROW_ONCE),
};
static const struct row_table job_table = ROW_TABLE ("job", job_columns);

int local_store_job_put (struct local_store *store, const struct store_job *job,
                         const void *envelope, size_t envelope_len, struct err *err)
{
    /* Not a replace: that would take the envelope with it. */
    int rc = store_row_write (store->db, &job_table, ROW_PUT, NULL, job, err);
    if (rc != 0 || !envelope)
        return rc;
    struct store_stmt *q =
        store_stmt (store->db, "INSERT INTO envelope (number, bytes) VALUES (?1, ?2) "
                               "ON CONFLICT (number) DO UPDATE SET bytes = ?2");
    store_bind_int (q, 1, (int64_t)job->number);
    store_bind_blob (q, 2, envelope, envelope_len);
    return store_run (q, err);
}

static void job_of_row (struct store_stmt *q, struct store_job *job)
{
    *job = (struct store_job){0};
    store_row_take (q, &job_table, NULL, job, NULL);
}

static int job_one (struct store_stmt *q, struct store_job *out, struct err *err)
{
    int rc = store_step (q, err);
    if (rc < 0)
        return rc;
    if (rc == 0)
        return err_set (err, ERR_NOT_FOUND, "no such job at this site");
    job_of_row (q, out);
    store_reset (q);
    return 0;
}

int local_store_job_get (struct local_store *store, uint64_t number, struct store_job *out,
                         struct err *err)
{
    struct store_stmt *q = store_row_select (store->db, &job_table, " FROM job WHERE number = ?1");
    store_bind_int (q, 1, (int64_t)number);
    return job_one (q, out, err);
}

/* Jobs from before the column have no metascheduler's name: there was one. */
#define OF_META(param)                                                                             \
    "(" param " = '' OR meta = '' OR instr (' ' || " param " || ' ', ' ' || meta || ' '))"

int local_store_job_find (struct local_store *store, const char *meta, const char *grid_job_id,
                          const char *component, struct store_job *out, struct err *err)
{
    struct store_stmt *q = store_row_select (
        store->db, &job_table,
        " FROM job WHERE grid_job_id = ?1 AND "
        "(?2 = '' OR component = ?2) AND " OF_META ("?3") " ORDER BY number DESC LIMIT 1");
    store_bind_text (q, 1, grid_job_id);
    store_bind_text (q, 2, component);
    store_bind_text (q, 3, meta);
    return job_one (q, out, err);
}

int local_store_job_by_attempt (struct local_store *store, const char *meta,
                                const char *grid_job_id, const char *component, uint32_t attempt,
                                struct store_job *out, struct err *err)
{
    struct store_stmt *q = store_row_select (store->db, &job_table,
                                             " FROM job WHERE grid_job_id = ?1 AND component = ?2 "
                                             "AND attempt = ?3 AND part = 0 AND " OF_META ("?4"));
    store_bind_text (q, 1, grid_job_id);
    store_bind_text (q, 2, component);
    store_bind_int (q, 3, attempt);
    store_bind_text (q, 4, meta);
    return job_one (q, out, err);
}

int local_store_submission_get (struct local_store *store, const uint8_t uuid[16],
                                uint64_t *number_out, struct err *err)
{
    struct store_stmt *q = store_stmt (store->db, "SELECT number FROM submission WHERE uuid = ?1");
    store_bind_blob (q, 1, uuid, 16);
    int rc = store_step (q, err);
    if (rc < 0)
        return rc;
    if (rc == 0)
        return err_set (err, ERR_NOT_FOUND, "no such submission");
    *number_out = (uint64_t)store_col_int (q, 0);
    store_reset (q);
    return 0;
}

int local_store_submission_put (struct local_store *store, const uint8_t uuid[16], uint64_t number,
                                struct err *err)
{
    struct store_stmt *q =
        store_stmt (store->db, "INSERT INTO submission (uuid, number) VALUES (?1, ?2)");
    store_bind_blob (q, 1, uuid, 16);
    store_bind_int (q, 2, (int64_t)number);
    return store_run (q, err);
}

int local_store_envelope (struct local_store *store, uint64_t number, void **out, size_t *len_out,
                          struct err *err)
{
    struct store_stmt *q = store_stmt (store->db, "SELECT bytes FROM envelope WHERE number = ?1");
    store_bind_int (q, 1, (int64_t)number);
    int rc = store_step (q, err);
    if (rc < 0)
        return rc;
    if (rc == 0)
        return err_set (err, ERR_NOT_FOUND, "job %llu has no stored envelope",
                        (unsigned long long)number);
    *out = col_blob_dup (q, 0, len_out);
    store_reset (q);
    return 0;
}

int local_store_jobs_live (struct local_store *store,
                           int (*fn) (void *arg, struct store_job *job, struct err *err), void *arg,
                           struct err *err)
{
    struct store_stmt *q =
        store_row_select (store->db, &job_table, " FROM job WHERE state < 5 ORDER BY number");
    int rc;
    while ((rc = store_step (q, err)) == 1) {
        struct store_job job;
        job_of_row (q, &job);
        rc = fn (arg, &job, err);
        if (rc != 0) {
            store_reset (q);
            break;
        }
    }
    return rc;
}

/* --- parts -------------------------------------------------------------------------------- */

void store_part_free (struct store_part *part)
{
    free (part->answer);
    free (part->start);
    free (part->wanted);
    part->answer = part->start = part->wanted = NULL;
}

static const struct row_column part_columns[] = {
    ROW_AS (struct store_part, transaction, "txn", ROW_KEY),
    ROW (struct store_part, component, ROW_KEY),
    ROW (struct store_part, attempt, ROW_KEY),
    ROW (struct store_part, state, 0),
    ROW (struct store_part, job, 0),
    ROW (struct store_part, caller, 0),
    ROW (struct store_part, was_held, 0),
    ROW (struct store_part, token_hash, 0),
    ROW (struct store_part, request_hash, 0),
    ROW_AS (struct store_part, slot_start, "slot_start_us", 0),
    ROW_AS (struct store_part, lease_end_boottime, "lease_end_boottime_us", 0),
    ROW (struct store_part, boot_id, 0),
    ROW (struct store_part, start_accepted, 0),
    ROW (struct store_part, replaces, 0),
    ROW_DATA (struct store_part, answer, answer_len, "answer", 0),
    ROW_DATA (struct store_part, start, start_len, "start", 0),
    ROW_DATA (struct store_part, wanted, wanted_len, "wanted", 0),
};
static const struct row_table part_table = ROW_TABLE ("part", part_columns);

int local_store_part_put (struct local_store *store, const struct store_part *part, struct err *err)
{
    /* A replace, so that part_touched says when it was written last. */
    return store_row_write (store->db, &part_table, ROW_REPLACE, NULL, part, err);
}

static void part_of_row (struct store_stmt *q, struct store_part *part)
{
    *part = (struct store_part){0};
    store_row_take (q, &part_table, NULL, part, NULL);
}

int local_store_part_get (struct local_store *store, const uint8_t *transaction,
                          const char *component, uint32_t attempt, struct store_part *out,
                          struct err *err)
{
    struct store_stmt *q = store_row_select (
        store->db, &part_table, " FROM part WHERE txn = ?1 AND component = ?2 AND attempt = ?3");
    store_bind_blob (q, 1, transaction, STORE_TRANSACTION_LEN);
    store_bind_text (q, 2, component);
    store_bind_int (q, 3, attempt);
    int rc = store_step (q, err);
    if (rc < 0)
        return rc;
    if (rc == 0)
        return err_set (err, ERR_NOT_FOUND, "no such part");
    part_of_row (q, out);
    store_reset (q);
    return 0;
}

int local_store_parts_live (struct local_store *store,
                            int (*fn) (void *arg, struct store_part *part, struct err *err),
                            void *arg, struct err *err)
{
    struct store_stmt *q =
        store_row_select (store->db, &part_table, " FROM part WHERE state < 4 ORDER BY job");
    int rc;
    while ((rc = store_step (q, err)) == 1) {
        struct store_part part;
        part_of_row (q, &part);
        rc = fn (arg, &part, err);
        if (rc != 0) {
            store_reset (q);
            break;
        }
    }
    return rc;
}

int local_store_epoch_get (struct local_store *store, const uint8_t *transaction, uint64_t *out,
                           struct err *err)
{
    struct store_stmt *q = store_stmt (store->db, "SELECT value FROM epoch WHERE txn = ?1");
    store_bind_blob (q, 1, transaction, STORE_TRANSACTION_LEN);
    int rc = store_step (q, err);
    if (rc < 0)
        return rc;
    *out = rc ? (uint64_t)store_col_int (q, 0) : 0;
    store_reset (q);
    return 0;
}

int local_store_epoch_put (struct local_store *store, const uint8_t *transaction, uint64_t epoch,
                           struct err *err)
{
    struct store_stmt *q =
        store_stmt (store->db, "INSERT OR REPLACE INTO epoch (txn, value) VALUES (?1, ?2)");
    store_bind_blob (q, 1, transaction, STORE_TRANSACTION_LEN);
    store_bind_int (q, 2, (int64_t)epoch);
    return store_run (q, err);
}

/* --- holds -------------------------------------------------------------------------------- */

void store_hold_free (struct store_hold *hold)
{
    free (hold->request);
    hold->request = NULL;
}

static const struct row_column hold_columns[] = {
    ROW (struct store_hold, key, ROW_KEY),
    ROW (struct store_hold, job, 0),
    ROW (struct store_hold, wanted, 0),
    ROW_DATA (struct store_hold, request, request_len, "request", ROW_NOT_NULL),
};
static const struct row_table hold_table = ROW_TABLE ("hold", hold_columns);

int local_store_hold_put (struct local_store *store, const struct store_hold *hold, struct err *err)
{
    return store_row_write (store->db, &hold_table, ROW_REPLACE, NULL, hold, err);
}

int local_store_hold_unwant (struct local_store *store, const uint8_t key[16], struct err *err)
{
    struct store_stmt *q = store_stmt (store->db, "UPDATE hold SET wanted = 0 WHERE key = ?1");
    store_bind_blob (q, 1, key, 16);
    return store_run (q, err);
}

int local_store_hold_delete (struct local_store *store, const uint8_t key[16], struct err *err)
{
    struct store_stmt *q = store_stmt (store->db, "DELETE FROM hold WHERE key = ?1");
    store_bind_blob (q, 1, key, 16);
    return store_run (q, err);
}

int local_store_hold_wanted (struct local_store *store, const uint8_t key[16], bool *out,
                             struct err *err)
{
    struct store_stmt *q = store_stmt (store->db, "SELECT wanted FROM hold WHERE key = ?1");
    store_bind_blob (q, 1, key, 16);
    int rc = store_step (q, err);
    if (rc < 0)
        return rc;
    *out = rc == 1 && store_col_int (q, 0) != 0;
    store_reset (q);
    return 0;
}

int local_store_holds (struct local_store *store,
                       int (*fn) (void *arg, struct store_hold *hold, struct err *err), void *arg,
                       struct err *err)
{
    struct store_stmt *q = store_row_select (store->db, &hold_table, " FROM hold ORDER BY job");
    int rc;
    while ((rc = store_step (q, err)) == 1) {
        struct store_hold hold = {0};
        store_row_take (q, &hold_table, NULL, &hold, NULL);
        rc = fn (arg, &hold, err);
        store_hold_free (&hold);
        if (rc != 0) {
            store_reset (q);
            break;
        }
    }
    return rc;
}

/* --- outboxes ----------------------------------------------------------------------------- */

const char *store_box_name (enum store_outbox box)
{
    static const char *const name[] = {"bank", "meta", "notify"};
    return name[box];
}

int local_store_outbox_put (struct local_store *store, enum store_outbox box, const char *kind,
                            const struct uuid *key, const void *payload, size_t payload_len,
                            time_us now, uint64_t *sequence_out, struct err *err)
{
    return outbox_append (store->db, store_box_name (box), kind, key, payload, payload_len, now,
                          sequence_out, err);
}

int local_store_outbox_read (struct local_store *store, enum store_outbox box, uint64_t after,
                             uint32_t limit, void (*fn) (void *arg, const struct store_item *item),
                             void *arg, struct err *err)
{
    for (uint32_t i = 0; i < limit; i++) {
        struct outbox_message message = {0};
        int rc = outbox_next (store->db, store_box_name (box), after, &message, err);
        if (rc <= 0)
            return rc;
        struct store_item item = {.sequence = message.seq,
                                  .payload = message.payload,
                                  .payload_len = message.payload_len};
        text_printf (item.kind, sizeof item.kind, "%.15s", message.kind);
        fn (arg, &item);
        after = message.seq;
        outbox_message_clear (&message);
    }
    return 0;
}

int local_store_outbox_dead (struct local_store *store, enum store_outbox box, uint64_t after,
                             uint32_t limit,
                             void (*fn) (void *arg, const struct store_item *item,
                                         const char *reason),
                             void *arg, struct err *err)
{
    for (uint32_t i = 0; i < limit; i++) {
        struct outbox_dead dead = {0};
        int rc = outbox_dead_next (store->db, store_box_name (box), after, &dead, err);
        if (rc <= 0)
            return rc;
        struct store_item item = {.sequence = dead.message.seq,
                                  .payload = dead.message.payload,
                                  .payload_len = dead.message.payload_len};
        text_printf (item.kind, sizeof item.kind, "%.15s", dead.message.kind);
        fn (arg, &item, dead.reason);
        after = dead.message.seq;
        outbox_dead_clear (&dead);
    }
    return 0;
}

int local_store_outbox_dead_count (struct local_store *store, enum store_outbox box, uint64_t *out,
                                   struct err *err)
{
    return outbox_dead_count (store->db, store_box_name (box), out, err);
}

int local_store_outbox_bury (struct local_store *store, enum store_outbox box, uint64_t sequence,
                             int code, const char *reason, time_us now, struct err *err)
{
    return outbox_bury (store->db, store_box_name (box), sequence, code, reason, now, err);
}

int local_store_outbox_ack_keep (struct local_store *store, enum store_outbox box,
                                 uint64_t sequence, struct err *err)
{
    return outbox_ack_keep (store->db, store_box_name (box), sequence, STORE_ITEM_PART, err);
}

int local_store_outbox_position (struct local_store *store, enum store_outbox box,
                                 uint64_t *acked_out, uint64_t *last_out, struct err *err)
{
    return outbox_position (store->db, store_box_name (box), acked_out, last_out, err);
}

int local_store_outbox_renumber (struct local_store *store, enum store_outbox box, uint64_t base,
                                 struct err *err)
{
    return outbox_renumber (store->db, store_box_name (box), base, err);
}

int local_store_outbox_ack (struct local_store *store, enum store_outbox box, uint64_t sequence,
                            struct err *err)
{
    return outbox_ack (store->db, store_box_name (box), sequence, err);
}

/* --- named values ------------------------------------------------------------------------- */

int local_store_rm_job_put (struct local_store *store, uint64_t number,
                            const struct store_rm_job *job, struct err *err)
{
    struct store_stmt *q = store_stmt (
        store->db, "INSERT INTO rm_job (number, rm_id, submit_us, native) VALUES (?1, ?2, ?3, ?4) "
                   "ON CONFLICT (number) DO UPDATE SET rm_id = ?2, submit_us = ?3, native = ?4");
    store_bind_int (q, 1, (int64_t)number);
    store_bind_text (q, 2, job->rm_id);
    store_bind_int (q, 3, job->submit);
    store_bind_int (q, 4, job->native);
    return store_run (q, err);
}

int local_store_rm_job_get (struct local_store *store, uint64_t number, struct store_rm_job *out,
                            struct err *err)
{
    struct store_stmt *q =
        store_stmt (store->db, "SELECT rm_id, submit_us, native FROM rm_job WHERE number = ?1");
    store_bind_int (q, 1, (int64_t)number);
    int rc = store_step (q, err);
    if (rc < 0)
        return rc;
    if (rc == 0)
        return err_set (err, ERR_NOT_FOUND, "job %llu has no name at the resource manager",
                        (unsigned long long)number);
    *out =
        (struct store_rm_job){.submit = store_col_int (q, 1), .native = store_col_int (q, 2) != 0};
    col_name (q, 0, out->rm_id);
    store_reset (q);
    return 0;
}

int local_store_rm_job_find (struct local_store *store, const char *rm_id, time_us submit,
                             uint64_t *number_out, struct err *err)
{
    struct store_stmt *q =
        store_stmt (store->db, "SELECT max (number) FROM rm_job WHERE rm_id = ?1 "
                               "AND submit_us = ?2");
    store_bind_text (q, 1, rm_id);
    store_bind_int (q, 2, submit);
    int rc = store_step (q, err);
    if (rc < 0)
        return rc;
    *number_out = rc == 1 ? (uint64_t)store_col_int (q, 0) : 0;
    store_reset (q);
    return *number_out ? 0
                       : err_set (err, ERR_NOT_FOUND,
                                  "job %s of the resource manager is not "
                                  "known",
                                  rm_id);
}

int local_store_blob_put (struct local_store *store, const char *name, const void *bytes,
                          size_t len, struct err *err)
{
    struct store_stmt *q =
        store_stmt (store->db, "INSERT OR REPLACE INTO blob (name, value) VALUES (?1, ?2)");
    store_bind_text (q, 1, name);
    store_bind_blob (q, 2, bytes, len);
    return store_run (q, err);
}

int local_store_blob_get (struct local_store *store, const char *name, void **out, size_t *len_out,
                          struct err *err)
{
    struct store_stmt *q = store_stmt (store->db, "SELECT value FROM blob WHERE name = ?1");
    store_bind_text (q, 1, name);
    int rc = store_step (q, err);
    if (rc < 0)
        return rc;
    if (rc == 0)
        return err_set (err, ERR_NOT_FOUND, "nothing stored as %s", name);
    *out = col_blob_dup (q, 0, len_out);
    store_reset (q);
    return 0;
}

/* --- administrators ----------------------------------------------------------------------- */

int local_store_audit (struct local_store *store, time_us now, const char *who, const char *what,
                       struct err *err)
{
    struct store_stmt *q = store_stmt (store->db, "INSERT INTO audit (at_us, who, what) "
                                                  "VALUES (?1, ?2, ?3)");
    store_bind_int (q, 1, now);
    store_bind_text (q, 2, who);
    store_bind_text (q, 3, what);
    return store_run (q, err);
}

static const struct row_column admin_columns[] = {
    ROW (struct store_job_admin, holds, 0),
    ROW (struct store_job_admin, priority, 0),
    ROW (struct store_job_admin, absolute, 0),
};
static const struct row_table admin_table = ROW_TABLE ("job_admin", admin_columns, "number");

int local_store_job_admin_put (struct local_store *store, uint64_t number,
                               const struct store_job_admin *admin, struct err *err)
{
    return store_row_write (store->db, &admin_table, ROW_REPLACE, &(int64_t){(int64_t)number},
                            admin, err);
}

int local_store_job_admin_get (struct local_store *store, uint64_t number,
                               struct store_job_admin *out, struct err *err)
{
    struct store_stmt *q =
        store_row_select (store->db, &admin_table, " FROM job_admin WHERE number = ?1");
    *out = (struct store_job_admin){0};
    store_bind_int (q, 1, (int64_t)number);
    int rc = store_step (q, err);
    if (rc > 0) {
        store_row_take (q, &admin_table, NULL, out, NULL);
        store_reset (q);
    }
    return rc < 0 ? rc : 0;
}

/* --- nodes kept after a failed start ------------------------------------------------------ */

int local_store_retry_put (struct local_store *store, uint64_t job, time_us until, struct err *err)
{
    struct store_stmt *q = store_stmt (store->db, "INSERT INTO retry (number, until_us) VALUES "
                                                  "(?1, ?2) ON CONFLICT (number) DO UPDATE SET "
                                                  "until_us = ?2");
    store_bind_int (q, 1, (int64_t)job);
    store_bind_int (q, 2, until);
    return store_run (q, err);
}

int local_store_retry_get (struct local_store *store, uint64_t job, time_us *until_out,
                           struct err *err)
{
    struct store_stmt *q = store_stmt (store->db, "SELECT until_us FROM retry WHERE number = ?1");
    *until_out = 0;
    store_bind_int (q, 1, (int64_t)job);
    int rc = store_step (q, err);
    if (rc == 1) {
        *until_out = store_col_int (q, 0);
        store_reset (q);
    }
    return rc < 0 ? rc : 0;
}

/* --- what jobs wait for ------------------------------------------------------------------- */

int local_store_depend_put (struct local_store *store, uint64_t job, int kind, uint64_t target,
                            struct err *err)
{
    struct store_stmt *q = store_stmt (
        store->db, "INSERT OR IGNORE INTO depend (job, kind, target) VALUES (?1, ?2, ?3)");
    store_bind_int (q, 1, (int64_t)job);
    store_bind_int (q, 2, kind);
    store_bind_int (q, 3, (int64_t)target);
    return store_run (q, err);
}

int local_store_depend_met (struct local_store *store, uint64_t job, int kind, uint64_t target,
                            struct err *err)
{
    struct store_stmt *q =
        store_stmt (store->db, "DELETE FROM depend WHERE job = ?1 AND kind = ?2 AND target = ?3");
    store_bind_int (q, 1, (int64_t)job);
    store_bind_int (q, 2, kind);
    store_bind_int (q, 3, (int64_t)target);
    return store_run (q, err);
}

int local_store_depends (struct local_store *store, uint64_t job,
                         int (*fn) (void *arg, int kind, uint64_t target), void *arg,
                         struct err *err)
{
    struct store_stmt *q = store_stmt (
        store->db, "SELECT kind, target FROM depend WHERE job = ?1 ORDER BY kind, target");
    int rc;
    store_bind_int (q, 1, (int64_t)job);
    while ((rc = store_step (q, err)) == 1) {
        rc = fn (arg, (int)store_col_int (q, 0), (uint64_t)store_col_int (q, 1));
        if (rc != 0) {
            store_reset (q);
            return rc;
        }
    }
    return rc;
}

int local_store_set_put (struct local_store *store, enum store_set kind, const char *object,
                         const char *name, const char *value, struct err *err)
{
    struct store_stmt *q = store_stmt (
        store->db, *value ? "INSERT OR REPLACE INTO admin_set (kind, object, name, value) VALUES "
                            "(?1, ?2, ?3, ?4)"
                          : "DELETE FROM admin_set WHERE kind = ?1 AND object = ?2 AND name = ?3");
    store_bind_int (q, 1, kind);
    store_bind_text (q, 2, object);
    store_bind_text (q, 3, name);
    if (*value)
        store_bind_text (q, 4, value);
    return store_run (q, err);
}

int local_store_sets (struct local_store *store, enum store_set kind, const char *object,
                      void (*fn) (void *arg, const char *name, const char *value), void *arg,
                      struct err *err)
{
    struct store_stmt *q = store_stmt (
        store->db,
        "SELECT name, value FROM admin_set WHERE kind = ?1 AND object = ?2 ORDER BY name");
    store_bind_int (q, 1, kind);
    store_bind_text (q, 2, object);
    int rc;
    while ((rc = store_step (q, err)) == 1)
        fn (arg, store_col_text (q, 0), store_col_text (q, 1));
    return rc;
}
