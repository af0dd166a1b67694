/* leaving: the tables of ended jobs whose files still go out. svc/files/stageout.c calls it,
 * within its transactions, and takes its rows up again after a restart. A row goes only when its
 * files have left or their failure is written down. */
#include "local/store/leaving.h"

#include "local/store/local_store_i.h"
#include "proto/store/row.h"

static int run_one (struct local_store *store, const char *sql, uint64_t number, struct err *err)
{
    struct store_stmt *q = store_stmt (store->db, sql);
    store_bind_int (q, 1, (int64_t)number);
    return store_run (q, err);
}

int leaving_put (struct local_store *store, uint64_t number, struct err *err)
{
    return run_one (store, "INSERT OR IGNORE INTO leaving (number) VALUES (?1)", number, err);
}

int leaving_delete (struct local_store *store, uint64_t number, struct err *err)
{
    return run_one (store, "DELETE FROM leaving WHERE number = ?1", number, err);
}

int leaving_state (struct local_store *store, uint64_t number, enum leaving *out, struct err *err)
{
    struct store_stmt *q =
        store_stmt (store->db, "SELECT EXISTS (SELECT 1 FROM leaving WHERE number = ?1),"
                               " EXISTS (SELECT 1 FROM leaving_failed WHERE number = ?1)");
    store_bind_int (q, 1, (int64_t)number);
    int rc = store_step (q, err);
    if (rc == 1)
        *out = store_col_int (q, 0)   ? LEAVING_NOW
               : store_col_int (q, 1) ? LEAVING_FAILED
                                      : LEAVING_NOTHING;
    store_reset (q);
    return rc < 0 ? rc : 0;
}

int leaving_each (struct local_store *store, void (*fn) (void *arg, uint64_t number), void *arg,
                  struct err *err)
{
    struct store_stmt *q = store_stmt (store->db, "SELECT number FROM leaving ORDER BY number");
    int rc;
    while ((rc = store_step (q, err)) == 1)
        fn (arg, (uint64_t)store_col_int (q, 0));
    return rc;
}

static const struct row_column file_columns[] = {
    ROW (struct leaving_file, place, ROW_KEY), ROW (struct leaving_file, path, 0),
    ROW (struct leaving_file, url, 0),         ROW (struct leaving_file, text, 0),
    ROW (struct leaving_file, bytes, 0),       ROW (struct leaving_file, bytes_done, 0),
};
static const struct row_table file_table = ROW_TABLE ("leaving_failed", file_columns, "number");

int leaving_failed_put (struct local_store *store, uint64_t number, const struct leaving_file *file,
                        struct err *err)
{
    return store_row_write (store->db, &file_table, ROW_REPLACE, &(int64_t){(int64_t)number}, file,
                            err);
}

int leaving_failed_clear (struct local_store *store, uint64_t number, struct err *err)
{
    return run_one (store, "DELETE FROM leaving_failed WHERE number = ?1", number, err);
}

int leaving_failed_each (struct local_store *store, uint64_t number,
                         void (*fn) (void *arg, const struct leaving_file *file), void *arg,
                         struct err *err)
{
    struct store_stmt *q = store_row_select (
        store->db, &file_table, " FROM leaving_failed WHERE number = ?1 ORDER BY place");
    int rc;
    store_bind_int (q, 1, (int64_t)number);
    while ((rc = store_step (q, err)) == 1) {
        struct leaving_file file;
        store_row_take (q, &file_table, NULL, &file, NULL);
        fn (arg, &file);
    }
    return rc;
}
