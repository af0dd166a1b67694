/* Reservations in the store. */
#include "local/store/local_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "local/store/local_store_i.h"
#include "proto/store/store.h"

void store_rsv_free (struct store_rsv *rsv)
{
    free (rsv->acl);
    free (rsv->expression);
    free (rsv->features);
    free (rsv->resources);
    free (rsv->placement);
    rsv->acl = rsv->expression = rsv->features = rsv->resources = rsv->placement = NULL;
}

static const char *text_of (const char *text)
{
    return text ? text : "";
}

int local_store_rsv_put (struct local_store *store, const struct store_rsv *rsv, struct err *err)
{
    struct store_stmt *q = store_stmt (
        store->db, "INSERT OR REPLACE INTO rsv (number, name, start_us, end_us, flags, acl, "
                   "expression, features, resources, placement, owner, partition, "
                   "tasks_wanted, tasks_per_node, used_by, charge) VALUES (?1, ?2, ?3, ?4, ?5, "
                   "?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)");
    int at = 0;
    store_bind_int (q, ++at, (int64_t)rsv->number);
    store_bind_text (q, ++at, rsv->name);
    store_bind_int (q, ++at, rsv->start);
    store_bind_int (q, ++at, rsv->end);
    store_bind_int (q, ++at, rsv->flags);
    store_bind_text (q, ++at, text_of (rsv->acl));
    store_bind_text (q, ++at, text_of (rsv->expression));
    store_bind_text (q, ++at, text_of (rsv->features));
    store_bind_text (q, ++at, text_of (rsv->resources));
    store_bind_text (q, ++at, text_of (rsv->placement));
    store_bind_text (q, ++at, rsv->owner);
    store_bind_text (q, ++at, rsv->partition);
    store_bind_int (q, ++at, rsv->tasks_wanted);
    store_bind_int (q, ++at, rsv->tasks_per_node);
    store_bind_int (q, ++at, (int64_t)rsv->used_by);
    store_bind_text (q, ++at, rsv->charge);
    return store_run (q, err);
}

int local_store_rsv_delete (struct local_store *store, uint64_t number, struct err *err)
{
    struct store_stmt *q = store_stmt (store->db, "DELETE FROM rsv WHERE number = ?1");
    store_bind_int (q, 1, (int64_t)number);
    return store_run (q, err);
}

static char *col_copy (struct store_stmt *q, int at)
{
    const char *text = store_col_text (q, at);
    return strdup (text ? text : "");
}

static void rsv_of_row (struct store_stmt *q, struct store_rsv *rsv)
{
    int at = 0;
    *rsv = (struct store_rsv){0};
    rsv->number = (uint64_t)store_col_int (q, at++);
    snprintf (rsv->name, sizeof rsv->name, "%s", text_of (store_col_text (q, at++)));
    rsv->start = store_col_int (q, at++);
    rsv->end = store_col_int (q, at++);
    rsv->flags = (uint32_t)store_col_int (q, at++);
    rsv->acl = col_copy (q, at++);
    rsv->expression = col_copy (q, at++);
    rsv->features = col_copy (q, at++);
    rsv->resources = col_copy (q, at++);
    rsv->placement = col_copy (q, at++);
    snprintf (rsv->owner, sizeof rsv->owner, "%s", text_of (store_col_text (q, at++)));
    snprintf (rsv->partition, sizeof rsv->partition, "%s", text_of (store_col_text (q, at++)));
    rsv->tasks_wanted = (uint32_t)store_col_int (q, at++);
    rsv->tasks_per_node = (uint32_t)store_col_int (q, at++);
    rsv->used_by = (uint64_t)store_col_int (q, at++);
    snprintf (rsv->charge, sizeof rsv->charge, "%s", text_of (store_col_text (q, at++)));
}

int local_store_rsvs (struct local_store *store,
                      int (*fn) (void *arg, struct store_rsv *rsv, struct err *err), void *arg,
                      struct err *err)
{
    struct store_stmt *q = store_stmt (
        store->db, "SELECT number, name, start_us, end_us, flags, acl, expression, features, "
                   "resources, placement, owner, partition, tasks_wanted, "
                   "tasks_per_node, used_by, charge FROM rsv ORDER BY number");
    int rc;
    while ((rc = store_step (q, err)) == 1) {
        struct store_rsv rsv;
        rsv_of_row (q, &rsv);
        rc = fn (arg, &rsv, err);
        if (rc != 0) {
            store_reset (q);
            break;
        }
    }
    return rc;
}

/* --- what they keep idle ---------------------------------------------------------------------- */

int local_store_idle_put (struct local_store *store, const struct store_idle *idle, struct err *err)
{
    struct store_stmt *q =
        store_stmt (store->db, "INSERT OR REPLACE INTO rsv_idle (core, name, account, identity, "
                               "since_us, end_us, procs) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)");
    store_bind_int (q, 1, (int64_t)idle->core);
    store_bind_text (q, 2, idle->name);
    store_bind_text (q, 3, idle->account);
    store_bind_text (q, 4, idle->identity);
    store_bind_int (q, 5, idle->since);
    store_bind_int (q, 6, idle->end);
    store_bind_int (q, 7, idle->procs);
    return store_run (q, err);
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
        store_stmt (store->db, "SELECT core, name, account, identity, since_us, end_us, procs "
                               "FROM rsv_idle ORDER BY core");
    int rc;
    while ((rc = store_step (q, err)) == 1) {
        struct store_idle idle = {.core = (uint64_t)store_col_int (q, 0),
                                  .since = store_col_int (q, 4),
                                  .end = store_col_int (q, 5),
                                  .procs = (uint32_t)store_col_int (q, 6)};
        snprintf (idle.name, sizeof idle.name, "%s", text_of (store_col_text (q, 1)));
        snprintf (idle.account, sizeof idle.account, "%s", text_of (store_col_text (q, 2)));
        snprintf (idle.identity, sizeof idle.identity, "%s", text_of (store_col_text (q, 3)));
        fn (arg, &idle);
    }
    return rc;
}
