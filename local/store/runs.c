/* runs: the table of what each run used and what the bank answered. svc/job/charge.c adds rows
 * in the transaction that ends a run, the link to the bank adds its answers, listings read. A
 * row that the bank has not answered is never purged. */
#include "local/store/runs.h"

#include "local/store/local_store_i.h"
#include "proto/store/row.h"

static const struct row_column run_columns[] = {
    ROW (struct store_run, site_job, 0),
    ROW_AS (struct store_run, end, "end_us", 0),
    ROW (struct store_run, untold, 0),
    ROW (struct store_run, message, 0),
    ROW_AS (struct store_run, charged, "charged_micro", 0),
    ROW (struct store_run, user, 0),
    ROW (struct store_run, rm_id, 0),
    ROW_AS (struct store_run, rm_submit, "rm_submit_us", 0),
    ROW_DATA (struct store_run, request, request_len, "request", ROW_NOT_NULL),
};
static const struct row_table run_table = ROW_TABLE ("run", run_columns, "sequence");

int runs_add (struct local_store *store, const struct store_run *run, struct err *err)
{
    return store_row_write (store->db, &run_table, ROW_INSERT, NULL, run, err);
}

int runs_answered (struct local_store *store, uint64_t message, credit_micro charged,
                   struct err *err)
{
    struct store_stmt *q = store_stmt (
        store->db, "UPDATE run SET charged_micro = ?2 WHERE message = ?1 AND message > 0");
    store_bind_int (q, 1, (int64_t)message);
    store_bind_int (q, 2, charged);
    return store_run (q, err);
}

static struct store_run run_of_row (struct store_stmt *q)
{
    struct store_run run = {.sequence = (uint64_t)store_col_int (q, 0)};
    store_row_take (q, &run_table, NULL, &run, NULL);
    return run;
}

int runs_message_set (struct local_store *store, uint64_t message, uint64_t instead,
                      struct err *err)
{
    struct store_stmt *q =
        store_stmt (store->db, "UPDATE run SET message = ?2 WHERE message = ?1 AND message > 0");
    store_bind_int (q, 1, (int64_t)message);
    store_bind_int (q, 2, (int64_t)instead);
    return store_run (q, err);
}

int runs_of_message (struct local_store *store, uint64_t message,
                     void (*fn) (void *arg, const struct store_run *run), void *arg,
                     struct err *err)
{
    struct store_stmt *q =
        store_row_select (store->db, &run_table, " FROM run WHERE message = ?1 AND message > 0");
    store_bind_int (q, 1, (int64_t)message);
    int rc = store_step (q, err);
    if (rc == 1) {
        struct store_run run = run_of_row (q);
        fn (arg, &run);
    }
    if (rc >= 0)
        store_reset (q);
    return rc;
}

int runs_read (struct local_store *store, time_us from, time_us until, const char *site_job,
               const struct runs_after *after, uint32_t limit,
               void (*fn) (void *arg, const struct store_run *run), void *arg, struct err *err)
{
    struct store_stmt *q = store_row_select (
        store->db, &run_table,
        site_job ? " FROM run WHERE site_job = ?6 AND (end_us, sequence) > (?3, ?4) "
                   "ORDER BY end_us, sequence LIMIT ?5"
                 : " FROM run WHERE end_us >= ?1 AND (?2 = 0 OR end_us < ?2) AND "
                   "(end_us, sequence) > (?3, ?4) ORDER BY end_us, sequence LIMIT ?5");
    int rc;
    if (!site_job) {
        store_bind_int (q, 1, from);
        store_bind_int (q, 2, until);
    }
    store_bind_int (q, 3, after->end);
    store_bind_int (q, 4, (int64_t)after->sequence);
    store_bind_int (q, 5, limit);
    if (site_job)
        store_bind_text (q, 6, site_job);
    while ((rc = store_step (q, err)) == 1) {
        struct store_run run = run_of_row (q);
        fn (arg, &run);
    }
    return rc;
}

int runs_of_rm_after (struct local_store *store, const char *rm_id, time_us moment, struct err *err)
{
    struct store_stmt *q =
        store_stmt (store->db, "SELECT 1 FROM run WHERE end_us > ?1 AND rm_id = ?2 LIMIT 1");
    store_bind_int (q, 1, moment);
    store_bind_text (q, 2, rm_id);
    int rc = store_step (q, err);
    store_reset (q);
    return rc;
}

int runs_first (struct local_store *store, time_us *out, struct err *err)
{
    struct store_stmt *q = store_stmt (store->db, "SELECT min (end_us) FROM run");
    int rc = store_step (q, err);
    *out = rc == 1 && !store_col_is_null (q, 0) ? store_col_int (q, 0) : 0;
    store_reset (q);
    return rc < 0 ? rc : 0;
}

int runs_purge (struct local_store *store, time_us before, uint32_t limit, struct err *err)
{
    struct store_stmt *q = store_stmt (
        store->db,
        "DELETE FROM run WHERE sequence IN (SELECT sequence FROM run WHERE end_us < ?1 "
        "AND (message = 0 OR charged_micro >= 0 OR message IN (SELECT seq FROM outbox_dead "
        "WHERE destination = 'bank')) ORDER BY end_us LIMIT ?2)");
    store_bind_int (q, 1, before);
    store_bind_int (q, 2, limit);
    return store_run (q, err);
}
