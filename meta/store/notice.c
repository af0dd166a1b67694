/* What webhooks are to be told, until they have taken it: in order for each URL. */
#include "meta/store/notice.h"

#include <string.h>

#include "meta/store/metastore_i.h"

static int count (struct store *db, uint64_t *out, struct err *err)
{
    struct store_stmt *q = store_stmt (db, "SELECT count(*) FROM notice");
    int rc = store_step (q, err);
    if (rc < 0)
        return rc;
    *out = (uint64_t)store_col_int (q, 0);
    store_reset (q);
    return 0;
}

int notice_put (struct metastore *store, const struct notice_row *row, struct err *err)
{
    struct store *db = store->store;
    uint64_t waiting = 0;
    int rc = count (db, &waiting, err);
    if (rc)
        return rc;
    if (waiting >= NOTICES_MAX)
        return err_set (err, ERR_LIMIT, "%d notices wait", NOTICES_MAX);
    /* Not before the others of its URL. */
    struct store_stmt *q = store_stmt (
        db, "INSERT INTO notice (url, key, body, tries, next_us, created_us) VALUES (?1, ?2, ?3, 0,"
            " coalesce ((SELECT max(next_us) FROM notice WHERE url = ?1), ?5), ?4)");
    store_bind_text (q, 1, row->url);
    store_bind_uuid (q, 2, &row->key);
    store_bind_text (q, 3, row->body);
    store_bind_int (q, 4, row->created);
    store_bind_int (q, 5, row->due);
    return store_run (q, err);
}

int notice_due (struct metastore *store, time_us now, const char *const *not_these, uint32_t n,
                struct arena *arena, struct notice_row *out, struct err *err)
{
    struct store_stmt *q =
        store_stmt (store->store, "SELECT sequence, url, key, body, tries, created_us FROM notice"
                                  " WHERE next_us <= ?1 ORDER BY sequence");
    int rc;
    store_bind_int (q, 1, now);
    while ((rc = store_step (q, err)) > 0) {
        const char *url = store_col_text (q, 1);
        bool busy = false;
        for (uint32_t i = 0; i < n; i++)
            busy = busy || strcmp (url, not_these[i]) == 0;
        if (busy)
            continue;
        out->sequence = (uint64_t)store_col_int (q, 0);
        out->url = arena_strdup (arena, url);
        store_col_uuid (q, 2, &out->key);
        out->body = arena_strdup (arena, store_col_text (q, 3));
        out->tries = (uint32_t)store_col_int (q, 4);
        out->created = store_col_int (q, 5);
        break;
    }
    store_reset (q);
    return rc;
}

int notice_next (struct metastore *store, time_us *out, struct err *err)
{
    struct store_stmt *q =
        store_stmt (store->store, "SELECT next_us FROM notice ORDER BY next_us LIMIT 1");
    int rc = store_step (q, err);
    *out = rc > 0 ? store_col_int (q, 0) : TIME_US_NONE;
    store_reset (q);
    return rc < 0 ? rc : 0;
}

int notice_later (struct metastore *store, const struct notice_row *row, time_us until,
                  struct err *err)
{
    struct store_stmt *q =
        store_stmt (store->store, "UPDATE notice SET next_us = ?2, tries = tries + (sequence = ?3)"
                                  " WHERE url = ?1");
    store_bind_text (q, 1, row->url);
    store_bind_int (q, 2, until);
    store_bind_int (q, 3, (int64_t)row->sequence);
    return store_run (q, err);
}

int notice_together (struct metastore *store, const struct notice_row *first, struct arena *arena,
                     struct notice_row **rows_out, uint32_t *count_out, struct err *err)
{
    struct store_stmt *q =
        store_stmt (store->store, "SELECT sequence, body, created_us FROM notice WHERE url = ?1"
                                  " AND sequence >= ?2 ORDER BY sequence LIMIT ?3");
    int rc;
    *rows_out = arena_array (arena, NOTICES_TOGETHER, sizeof **rows_out);
    *count_out = 0;
    store_bind_text (q, 1, first->url);
    store_bind_int (q, 2, (int64_t)first->sequence);
    store_bind_int (q, 3, NOTICES_TOGETHER);
    while ((rc = store_step (q, err)) > 0)
        (*rows_out)[(*count_out)++] =
            (struct notice_row){.sequence = (uint64_t)store_col_int (q, 0),
                                .url = first->url,
                                .body = arena_strdup (arena, store_col_text (q, 1)),
                                .created = store_col_int (q, 2)};
    store_reset (q);
    return rc < 0 ? rc : 0;
}

int notice_delete (struct metastore *store, const struct notice_row *row, uint64_t upto,
                   struct err *err)
{
    struct store_stmt *q = store_stmt (
        store->store, "DELETE FROM notice WHERE url = ?1 AND sequence BETWEEN ?2 AND ?3");
    store_bind_text (q, 1, row->url);
    store_bind_int (q, 2, (int64_t)row->sequence);
    store_bind_int (q, 3, (int64_t)upto);
    return store_run (q, err);
}
