/* signed: the table of signed jobs that were taken. svc/grid/replay.c looks and writes, in the
 * transaction that takes the job. A row must not go before its signature has expired, or the
 * same envelope could be run again. */
#include "local/store/signed.h"

#include <stdio.h>
#include <string.h>

#include "local/store/local_store_i.h"

int signed_get (struct local_store *store, const char *submitter, const uint8_t uuid[16],
                struct store_signed *out, struct err *err)
{
    struct store_stmt *q =
        store_stmt (store->db, "SELECT hash, meta, grid_job_id, until_us FROM signed "
                               "WHERE uuid = ?1 AND submitter = ?2");
    size_t len = 0;
    store_bind_blob (q, 1, uuid, 16);
    store_bind_text (q, 2, submitter);
    int rc = store_step (q, err);
    if (rc == 1) {
        const void *hash = store_col_blob (q, 0, &len);
        *out = (struct store_signed){.until = store_col_int (q, 3)};
        memcpy (out->uuid, uuid, sizeof out->uuid);
        if (len == sizeof out->hash)
            memcpy (out->hash, hash, len);
        snprintf (out->meta, sizeof out->meta, "%s", store_col_text (q, 1));
        snprintf (out->grid_job_id, sizeof out->grid_job_id, "%s", store_col_text (q, 2));
    }
    store_reset (q);
    if (rc < 0)
        return rc;
    return rc == 1 ? 0 : err_set (err, ERR_NOT_FOUND, "this signed job was not taken here");
}

int signed_put (struct local_store *store, const struct store_signed *row, struct err *err)
{
    struct store_stmt *q = store_stmt (
        store->db, "INSERT INTO signed (uuid, submitter, hash, meta, grid_job_id, until_us) "
                   "VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (uuid, submitter) DO UPDATE "
                   "SET until_us = excluded.until_us WHERE excluded.until_us > until_us");
    store_bind_blob (q, 1, row->uuid, sizeof row->uuid);
    store_bind_text (q, 2, row->submitter);
    store_bind_blob (q, 3, row->hash, sizeof row->hash);
    store_bind_text (q, 4, row->meta);
    store_bind_text (q, 5, row->grid_job_id);
    store_bind_int (q, 6, row->until);
    return store_run (q, err);
}

int signed_numbers (struct local_store *store,
                    void (*each) (void *arg, const char *meta, uint64_t number), void *arg,
                    struct err *err)
{
    struct store_stmt *q =
        store_stmt (store->db, "SELECT meta, max (CAST (substr (grid_job_id, 6) AS INTEGER)) "
                               "FROM signed WHERE grid_job_id LIKE 'grid.%' GROUP BY meta");
    int rc;
    while ((rc = store_step (q, err)) == 1)
        each (arg, store_col_text (q, 0), (uint64_t)store_col_int (q, 1));
    store_reset (q);
    return rc;
}

int signed_purge (struct local_store *store, time_us before, struct err *err)
{
    struct uuid gone[SIGNED_PURGE_MAX];
    uint32_t count = 0;
    struct store_stmt *q = store_stmt (
        store->db, "DELETE FROM signed WHERE (uuid, submitter) IN (SELECT uuid, submitter FROM "
                   "signed s WHERE until_us < ?1 AND NOT EXISTS (SELECT 1 FROM job j WHERE "
                   "j.grid_job_id = s.grid_job_id AND j.meta = s.meta) LIMIT ?2) RETURNING uuid");
    store_bind_int (q, 1, before);
    store_bind_int (q, 2, SIGNED_PURGE_MAX);
    int rc;
    while ((rc = store_step (q, err)) == 1)
        if (count < SIGNED_PURGE_MAX && store_col_uuid (q, 0, &gone[count]))
            count++;
    for (uint32_t i = 0; rc == 0 && i < count; i++) {
        q = store_stmt (store->db, "DELETE FROM epoch WHERE txn = ?1");
        store_bind_uuid (q, 1, &gone[i]);
        rc = store_run (q, err);
    }
    return rc;
}
