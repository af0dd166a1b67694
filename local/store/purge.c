/* purge: the statements that take a mark and delete what lies before it. The service's memory
 * room calls it, a few rows at a time. A job must never go before every metascheduler has
 * acknowledged its end. */
#include "local/store/purge.h"

#include <assert.h>

#include "local/store/local_store_i.h"
#include "proto/store/outbox.h"

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

int purge_candidates (struct local_store *store, const struct purge_mark *mark, time_us before,
                      struct purge_job out[PURGE_MAX], uint32_t *count_out, struct err *err)
{
    struct store_stmt *q = store_stmt (
        store->db, "SELECT number, incarnation FROM job WHERE state >= 5 AND end_us < ?1 AND "
                   "change <= ?2 AND NOT EXISTS (SELECT 1 FROM hold WHERE hold.job = job.number) "
                   "AND NOT EXISTS (SELECT 1 FROM leaving WHERE leaving.number = job.number) "
                   "ORDER BY end_us LIMIT ?3");
    int rc;
    store_bind_int (q, 1, before);
    store_bind_int (q, 2, (int64_t)mark->change);
    store_bind_int (q, 3, PURGE_MAX);
    *count_out = 0;
    while ((rc = store_step (q, err)) == 1)
        out[(*count_out)++] =
            (struct purge_job){(uint64_t)store_col_int (q, 0), (uint32_t)store_col_int (q, 1)};
    return rc;
}

/* job_admin and envelope go with the job (ON DELETE CASCADE); its part is then a tombstone. */
int purge_forget (struct local_store *store, const struct purge_job *jobs, uint32_t count,
                  struct err *err)
{
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < count; i++) {
        struct store_stmt *q =
            store_stmt (store->db, "DELETE FROM job WHERE number = ?1 AND state >= 5");
        store_bind_int (q, 1, (int64_t)jobs[i].number);
        rc = store_run (q, err);
    }
    return rc;
}

int purge_messages (struct local_store *store, time_us arrived, time_us dead, uint32_t limit,
                    struct err *err)
{
    int rc = outbox_forget (store->db, store_box_name (STORE_OUTBOX_BANK), arrived, limit, err);
    for (int box = 0; rc == 0 && box < STORE_OUTBOXES; box++)
        rc = outbox_dead_forget (store->db, store_box_name ((enum store_outbox)box), dead, limit,
                                 err);
    return rc;
}

int purge_tombstones (struct local_store *store, time_us before, uint32_t *count, struct err *err)
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
    store_bind_int (q, 2, PURGE_MAX);
    *count = 0;
    while ((rc = store_step (q, err)) == 1)
        if (*count < PURGE_MAX && store_col_uuid (q, 0, &txn[*count]))
            (*count)++;
    for (uint32_t i = 0; rc == 0 && i < *count; i++) {
        q = store_stmt (store->db, "DELETE FROM epoch WHERE txn = ?1 AND NOT EXISTS "
                                   "(SELECT 1 FROM part WHERE part.txn = ?1)");
        store_bind_uuid (q, 1, &txn[i]);
        rc = store_run (q, err);
    }
    return rc;
}
