/* The numbers of delegations: each job that the gate signs takes one, durably, before it is sent; a request that comes again
 * with its Idempotency-Key has the one that it had. Losing this file costs nothing but numbers: the metascheduler refuses
 * another job of the same uuid, and the bank pays one. */
#include "meta/gate/gate.h"

#include <stdlib.h>
#include <string.h>

#include "proto/store/store.h"

struct numbers {
    struct store *store;
};

static const char *const steps[] = {
    "CREATE TABLE series (series BLOB PRIMARY KEY, next INTEGER NOT NULL, expires INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE request (series BLOB NOT NULL REFERENCES series ON DELETE CASCADE, key TEXT NOT NULL, digest BLOB NOT NULL,"
    " number INTEGER NOT NULL, PRIMARY KEY (series, key)) WITHOUT ROWID;"
    "CREATE INDEX series_expires ON series (expires);",
    NULL};

struct numbers *numbers_open (const char *path, struct err *err)
{
    struct store *store = store_open (path, steps, err);
    struct numbers *numbers = store ? calloc (1, sizeof *numbers) : NULL;
    if (store && !numbers)
        abort ();
    if (numbers)
        numbers->store = store;
    return numbers;
}

void numbers_close (struct numbers *numbers)
{
    if (!numbers)
        return;
    store_close (numbers->store);
    free (numbers);
}

/* 1: found; 0: the key is new. */
static int known (struct numbers *numbers, const ProtobufCBinaryData *series, const char *key,
                  const uint8_t digest[32], uint32_t *out, struct err *err)
{
    size_t len;
    struct store_stmt *q = store_stmt (
        numbers->store, "SELECT number, digest FROM request WHERE series = ?1 AND key = ?2");
    store_bind_blob (q, 1, series->data, series->len);
    store_bind_text (q, 2, key);
    int rc = store_step (q, err);
    if (rc <= 0)
        return rc;
    *out = (uint32_t)store_col_int (q, 0);
    const void *was = store_col_blob (q, 1, &len);
    bool same = len == 32 && memcmp (was, digest, 32) == 0;
    store_reset (q);
    return same ? 1
                : err_set (err, ERR_CONFLICT,
                           "this Idempotency-Key was used for another request before");
}

static int take (struct numbers *numbers, const GateDelegation *says, const char *key,
                 const uint8_t digest[32], uint32_t *out, struct err *err)
{
    struct store_stmt *q =
        store_stmt (numbers->store, "INSERT INTO series (series, next, expires) VALUES (?1, 1, ?2)"
                                    " ON CONFLICT (series) DO UPDATE SET next = next + 1"
                                    " RETURNING next - 1");
    store_bind_blob (q, 1, says->series.data, says->series.len);
    store_bind_int (q, 2, says->expires_us);
    int rc = store_step (q, err);
    if (rc < 0)
        return rc;
    *out = (uint32_t)store_col_int (q, 0);
    rc = store_run (q, err);
    if (rc == 0 && *out >= says->jobs_max)
        rc = err_set (err, ERR_LIMIT, "the delegation is for %u jobs, and all were signed",
                      says->jobs_max);
    if (rc < 0 || !key)
        return rc;
    q = store_stmt (numbers->store,
                    "INSERT INTO request (series, key, digest, number) VALUES (?1, ?2, ?3, ?4)");
    store_bind_blob (q, 1, says->series.data, says->series.len);
    store_bind_text (q, 2, key);
    store_bind_blob (q, 3, digest, 32);
    store_bind_int (q, 4, *out);
    return store_run (q, err);
}

int numbers_take (struct numbers *numbers, const GateDelegation *says, const char *key,
                  const uint8_t digest[32], time_us now, uint32_t *number_out, struct err *err)
{
    int rc = store_begin (numbers->store, err);
    if (rc < 0)
        return rc;
    struct store_stmt *q = store_stmt (numbers->store, "DELETE FROM series WHERE expires < ?1");
    store_bind_int (q, 1, now);
    rc = store_run (q, err);
    if (rc == 0 && key)
        rc = known (numbers, &says->series, key, digest, number_out, err);
    if (rc == 0)
        rc = take (numbers, says, key, digest, number_out, err);
    if (rc >= 0)
        return store_commit (numbers->store, err);
    store_rollback (numbers->store);
    return rc;
}
