/* What is forgotten of the past, and how far: jobs by when they ended. It decides nothing. */
#include "meta/store/past.h"

#include "meta/store/jobrows.h"
#include "meta/store/metastore_i.h"

/* As the index job_past has it. */
#define OVER "max (end_us, expires_us)"

int past_list (struct metastore *store, time_us before, const struct past_row *after,
               uint32_t limit, struct arena *arena, struct past_row **rows_out, uint32_t *count_out,
               struct err *err)
{
    struct past_row *rows = arena_array (arena, limit, sizeof *rows);
    struct store_stmt *q = store_stmt (
        store->store, "SELECT " OVER ", end_us, number, array_of FROM job WHERE ended = 1 AND " OVER
                      " < ?1 AND " OVER " >= ?2 AND (" OVER " > ?2 OR number > ?3) ORDER BY " OVER
                      ", number LIMIT ?4");
    uint32_t count = 0;
    int rc;
    store_bind_int (q, 1, before);
    store_bind_int (q, 2, after->over);
    store_bind_int (q, 3, (int64_t)after->number);
    store_bind_int (q, 4, limit);
    while ((rc = store_step (q, err)) > 0 && count < limit)
        rows[count++] =
            (struct past_row){store_col_int (q, 0), store_col_int (q, 1),
                              (uint64_t)store_col_int (q, 2), (uint64_t)store_col_int (q, 3)};
    store_reset (q);
    *rows_out = rows;
    *count_out = count;
    return rc < 0 ? rc : 0;
}

/* Whether there is no row. */
static int none (struct store_stmt *q, bool *none_out, struct err *err)
{
    int rc = store_step (q, err);
    if (rc > 0)
        store_reset (q);
    *none_out = rc == 0;
    return rc < 0 ? rc : 0;
}

int past_array_over (struct metastore *store, uint64_t array, time_us before, bool *over_out,
                     struct err *err)
{
    struct store_stmt *q = store_stmt (
        store->store, "SELECT 1 WHERE EXISTS (SELECT 1 FROM arriving WHERE array = ?1)"
                      " OR EXISTS (SELECT 1 FROM job WHERE array_of = ?1 AND array_of > 0"
                      " AND ended = 0)"
                      " OR EXISTS (SELECT 1 FROM job WHERE array_of = ?1 AND array_of > 0"
                      " AND " OVER " >= ?2)");
    store_bind_int (q, 1, (int64_t)array);
    store_bind_int (q, 2, before);
    return none (q, over_out, err);
}

int past_array_last (struct metastore *store, uint64_t array, bool *last_out, struct err *err)
{
    struct store_stmt *q =
        store_stmt (store->store, "SELECT 1 FROM job WHERE array_of = ?1 AND array_of > 0"
                                  " AND number <> ?1 LIMIT 1");
    store_bind_int (q, 1, (int64_t)array);
    return none (q, last_out, err);
}

int past_forget (struct metastore *store, const struct past_row *row, struct err *err)
{
    int rc = metastore_rows_delete (store, row->number, err);
    if (rc)
        return rc;
    struct store_stmt *q = store_stmt (
        store->store, "INSERT INTO state VALUES ('forgotten', ?1) ON CONFLICT (key) DO UPDATE"
                      " SET value = max (value, excluded.value)");
    store_bind_int (q, 1, row->end);
    return store_run (q, err);
}

int past_forgotten (struct metastore *store, time_us *end_out, struct err *err)
{
    struct store_stmt *q =
        store_stmt (store->store, "SELECT value FROM state WHERE key = 'forgotten'");
    int rc = store_step (q, err);
    *end_out = rc > 0 ? store_col_int (q, 0) : 0;
    if (rc > 0)
        store_reset (q);
    return rc < 0 ? rc : 0;
}
