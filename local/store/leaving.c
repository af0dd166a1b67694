#include "local/store/leaving.h"

#include "local/store/local_store_i.h"

const char leaving_schema[] =
    "CREATE TABLE leaving (number INTEGER PRIMARY KEY REFERENCES job (number) ON DELETE CASCADE);";

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

int leaving_has (struct local_store *store, uint64_t number, bool *out, struct err *err)
{
    struct store_stmt *q = store_stmt (store->db, "SELECT 1 FROM leaving WHERE number = ?1");
    store_bind_int (q, 1, (int64_t)number);
    int rc = store_step (q, err);
    *out = rc == 1;
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
