/* Reservations in the store. */
#include "local/store/local_store.h"

#include <stdlib.h>

#include "local/store/local_store_i.h"
#include "proto/store/row.h"

void store_rsv_free (struct store_rsv *rsv)
{
    free (rsv->acl);
    free (rsv->expression);
    free (rsv->features);
    free (rsv->resources);
    free (rsv->placement);
    rsv->acl = rsv->expression = rsv->features = rsv->resources = rsv->placement = NULL;
}

static const struct row_column rsv_columns[] = {
    ROW (struct store_rsv, number, ROW_KEY),
    ROW (struct store_rsv, name, 0),
    ROW_AS (struct store_rsv, start, "start_us", 0),
    ROW_AS (struct store_rsv, end, "end_us", 0),
    ROW (struct store_rsv, flags, 0),
    ROW_OWN (struct store_rsv, acl, "acl", ROW_NOT_NULL),
    ROW_OWN (struct store_rsv, expression, "expression", ROW_NOT_NULL),
    ROW_OWN (struct store_rsv, features, "features", ROW_NOT_NULL),
    ROW_OWN (struct store_rsv, resources, "resources", ROW_NOT_NULL),
    ROW_OWN (struct store_rsv, placement, "placement", ROW_NOT_NULL),
    ROW (struct store_rsv, owner, 0),
    ROW (struct store_rsv, partition, 0),
    ROW (struct store_rsv, tasks_wanted, 0),
    ROW (struct store_rsv, tasks_per_node, 0),
    ROW (struct store_rsv, used_by, 0),
    ROW (struct store_rsv, charge, 0),
    ROW (struct store_rsv, grid, 0),
    ROW (struct store_rsv, part, 0),
};
static const struct row_table rsv_table = ROW_TABLE ("rsv", rsv_columns);

int local_store_rsv_put (struct local_store *store, const struct store_rsv *rsv, struct err *err)
{
    return store_row_write (store->db, &rsv_table, ROW_REPLACE, NULL, rsv, err);
}

int local_store_rsv_delete (struct local_store *store, uint64_t number, struct err *err)
{
    struct store_stmt *q = store_stmt (store->db, "DELETE FROM rsv WHERE number = ?1");
    store_bind_int (q, 1, (int64_t)number);
    return store_run (q, err);
}

int local_store_rsvs (struct local_store *store,
                      int (*fn) (void *arg, struct store_rsv *rsv, struct err *err), void *arg,
                      struct err *err)
{
    struct store_stmt *q = store_row_select (store->db, &rsv_table, " FROM rsv ORDER BY number");
    int rc;
    while ((rc = store_step (q, err)) == 1) {
        struct store_rsv rsv = {0};
        store_row_take (q, &rsv_table, NULL, &rsv, NULL);
        rc = fn (arg, &rsv, err);
        if (rc != 0) {
            store_reset (q);
            break;
        }
    }
    return rc;
}

/* --- what they keep idle ---------------------------------------------------------------------- */

static const struct row_column idle_columns[] = {
    ROW (struct store_idle, core, ROW_KEY),
    ROW (struct store_idle, name, 0),
    ROW (struct store_idle, account, 0),
    ROW (struct store_idle, identity, 0),
    ROW_AS (struct store_idle, since, "since_us", 0),
    ROW_AS (struct store_idle, end, "end_us", 0),
    ROW (struct store_idle, procs, 0),
};
static const struct row_table idle_table = ROW_TABLE ("rsv_idle", idle_columns);

int local_store_idle_put (struct local_store *store, const struct store_idle *idle, struct err *err)
{
    return store_row_write (store->db, &idle_table, ROW_REPLACE, NULL, idle, err);
}

int local_store_idle_delete (struct local_store *store, uint64_t core, struct err *err)
{
    struct store_stmt *q = store_stmt (store->db, "DELETE FROM rsv_idle WHERE core = ?1");
    store_bind_int (q, 1, (int64_t)core);
    return store_run (q, err);
}

int local_store_idles (struct local_store *store,
                       void (*fn) (void *arg, const struct store_idle *idle), void *arg,
                       struct err *err)
{
    struct store_stmt *q =
        store_row_select (store->db, &idle_table, " FROM rsv_idle ORDER BY core");
    int rc;
    while ((rc = store_step (q, err)) == 1) {
        struct store_idle idle;
        store_row_take (q, &idle_table, NULL, &idle, NULL);
        fn (arg, &idle);
    }
    return rc;
}
