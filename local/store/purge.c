#include "local/store/purge.h"

#include <assert.h>

#include "local/store/local_store_i.h"

static int one_int (struct store_stmt *q, uint64_t *out, struct err *err)
{
    int rc = store_step (q, err);
    if (rc < 0)
        return rc;
    *out = rc == 1 ? (uint64_t)store_col_int (q, 0) : 0;
    store_reset (q);
    return 0;
}

int purge_mark_take (struct local_store *store, struct purge_mark *out, struct err *err)
{
    int rc = one_int (store_stmt (store->db, "SELECT value FROM counter WHERE name = 'change'"),
                      &out->change, err);
    if (rc == 0)
        rc = one_int (store_stmt (store->db, "SELECT next_seq - 1 FROM outbox_state "
                                             "WHERE destination = 'meta'"),
                      &out->event, err);
    return rc;
}

int purge_mark_reached (struct local_store *store, const struct purge_mark *mark, bool *out,
                        struct err *err)
{
    uint64_t acked = 0;
    int rc = one_int (store_stmt (store->db, "SELECT acked FROM outbox_state "
                                             "WHERE destination = 'meta'"),
                      &acked, err);
    *out = rc == 0 && acked >= mark->event;
    return rc;
}

enum { PURGE_MAX = 1000 };

static int candidates (struct local_store *store, const struct purge_mark *mark, time_us before,
                       uint32_t limit, uint64_t *number, uint32_t *count, struct err *err)
{
    struct store_stmt *q = store_stmt (
        store->db, "SELECT number FROM job WHERE state >= 5 AND end_us < ?1 AND change <= ?2 AND "
                   "NOT EXISTS (SELECT 1 FROM hold WHERE hold.job = job.number) "
                   "ORDER BY end_us LIMIT ?3");
    int rc;
    store_bind_int (q, 1, before);
    store_bind_int (q, 2, (int64_t)mark->change);
    store_bind_int (q, 3, limit);
    *count = 0;
    while ((rc = store_step (q, err)) == 1)
        number[(*count)++] = (uint64_t)store_col_int (q, 0);
    return rc;
}

/* job_admin and envelope go with the job (ON DELETE CASCADE); its part is then a tombstone. */
static int forget (struct local_store *store, uint64_t number, struct err *err)
{
    struct store_stmt *q = store_stmt (store->db, "DELETE FROM job WHERE number = ?1");
    store_bind_int (q, 1, (int64_t)number);
    return store_run (q, err);
}

/* Parts without a job, and the epoch of a transaction that has none left. */
static int tombstones (struct local_store *store, time_us before, uint32_t limit, uint32_t *count,
                       struct err *err)
{
    struct uuid txn[PURGE_MAX];
    struct store_stmt *q = store_stmt (
        store->db,
        "DELETE FROM part WHERE (txn, component, attempt) IN (SELECT txn, component, attempt "
        "FROM part WHERE state >= 4 AND touched_us < ?1 AND "
        "NOT EXISTS (SELECT 1 FROM job WHERE job.number = part.job) LIMIT ?2) RETURNING txn");
    int rc;
    static_assert (sizeof txn->b == STORE_TRANSACTION_LEN, "a transaction is a UUID");
    store_bind_int (q, 1, before);
    store_bind_int (q, 2, limit);
    *count = 0;
    while ((rc = store_step (q, err)) == 1)
        if (*count < limit && store_col_uuid (q, 0, &txn[*count]))
            (*count)++;
    for (uint32_t i = 0; rc == 0 && i < *count; i++) {
        q = store_stmt (store->db, "DELETE FROM epoch WHERE txn = ?1 AND NOT EXISTS "
                                   "(SELECT 1 FROM part WHERE part.txn = ?1)");
        store_bind_uuid (q, 1, &txn[i]);
        rc = store_run (q, err);
    }
    return rc;
}

int purge_jobs (struct local_store *store, const struct purge_mark *mark, time_us before,
                uint32_t limit, void (*fn) (void *arg, uint64_t number), void *arg,
                uint32_t *count_out, struct err *err)
{
    uint64_t number[PURGE_MAX];
    uint32_t count = 0, stones = 0;
    *count_out = 0;
    if (limit > PURGE_MAX)
        limit = PURGE_MAX;
    int rc = candidates (store, mark, before, limit, number, &count, err);
    for (uint32_t i = 0; rc == 0 && i < count; i++) {
        rc = forget (store, number[i], err);
        if (rc == 0)
            fn (arg, number[i]);
    }
    if (rc == 0)
        rc = tombstones (store, before, limit, &stones, err);
    *count_out = count + stones;
    return rc;
}
