#include "local/store/runs.h"

#include "local/store/local_store_i.h"

const char runs_schema[] =
    "CREATE TABLE run (sequence INTEGER PRIMARY KEY AUTOINCREMENT, site_job TEXT NOT NULL,"
    " end_us INTEGER NOT NULL, untold TEXT NOT NULL, message INTEGER NOT NULL,"
    " charged_micro INTEGER NOT NULL, user TEXT NOT NULL, rm_id TEXT NOT NULL,"
    " rm_submit_us INTEGER NOT NULL, request BLOB NOT NULL);"
    "CREATE INDEX run_by_end ON run (end_us, sequence);"
    "CREATE INDEX run_by_job ON run (site_job);"
    "CREATE UNIQUE INDEX run_by_message ON run (message) WHERE message > 0;";

int runs_add (struct local_store *store, const struct store_run *run, struct err *err)
{
    struct store_stmt *q = store_stmt (
        store->db, "INSERT INTO run (site_job, end_us, untold, message, charged_micro, user, rm_id, "
                   "rm_submit_us, request) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)");
    store_bind_text (q, 1, run->site_job);
    store_bind_int (q, 2, run->end);
    store_bind_text (q, 3, run->untold);
    store_bind_int (q, 4, (int64_t)run->message);
    store_bind_int (q, 5, run->charged);
    store_bind_text (q, 6, run->user);
    store_bind_text (q, 7, run->rm_id);
    store_bind_int (q, 8, run->rm_submit);
    store_bind_blob (q, 9, run->request, run->request_len);
    return store_run (q, err);
}

int runs_answered (struct local_store *store, uint64_t message, credit_micro charged,
                   struct err *err)
{
    struct store_stmt *q =
        store_stmt (store->db, "UPDATE run SET charged_micro = ?2 WHERE message = ?1 AND message > 0");
    store_bind_int (q, 1, (int64_t)message);
    store_bind_int (q, 2, charged);
    return store_run (q, err);
}

#define RUN_COLUMNS                                                                                \
    "SELECT sequence, site_job, end_us, untold, message, charged_micro, user, rm_id, "             \
    "rm_submit_us, request FROM run "

static struct store_run run_of_row (struct store_stmt *q)
{
    struct store_run run = {.sequence = (uint64_t)store_col_int (q, 0),
                            .site_job = store_col_text (q, 1),
                            .end = store_col_int (q, 2),
                            .untold = store_col_text (q, 3),
                            .message = (uint64_t)store_col_int (q, 4),
                            .charged = store_col_int (q, 5),
                            .user = store_col_text (q, 6),
                            .rm_id = store_col_text (q, 7),
                            .rm_submit = store_col_int (q, 8)};
    run.request = store_col_blob (q, 9, &run.request_len);
    return run;
}

int runs_message_set (struct local_store *store, uint64_t message, uint64_t instead, struct err *err)
{
    struct store_stmt *q =
        store_stmt (store->db, "UPDATE run SET message = ?2 WHERE message = ?1 AND message > 0");
    store_bind_int (q, 1, (int64_t)message);
    store_bind_int (q, 2, (int64_t)instead);
    return store_run (q, err);
}

int runs_of_message (struct local_store *store, uint64_t message,
                     void (*fn) (void *arg, const struct store_run *run), void *arg, struct err *err)
{
    struct store_stmt *q = store_stmt (store->db, RUN_COLUMNS "WHERE message = ?1 AND message > 0");
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
    struct store_stmt *q = store_stmt (
        store->db,
        site_job ? RUN_COLUMNS "WHERE site_job = ?6 AND (end_us, sequence) > (?3, ?4) "
                               "ORDER BY end_us, sequence LIMIT ?5"
                 : RUN_COLUMNS "WHERE end_us >= ?1 AND (?2 = 0 OR end_us < ?2) AND "
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
        store->db, "DELETE FROM run WHERE sequence IN (SELECT sequence FROM run WHERE end_us < ?1 "
                   "AND (message = 0 OR charged_micro >= 0 OR message IN (SELECT seq FROM outbox_dead "
                   "WHERE destination = 'bank')) ORDER BY end_us LIMIT ?2)");
    store_bind_int (q, 1, before);
    store_bind_int (q, 2, limit);
    return store_run (q, err);
}
