/* Keys of hand-overs in the store. meta/job/seal.c reads them at start and writes what it fetched. */
#include "meta/store/keys.h"

#include <string.h>

#include "meta/store/metastore_i.h"

int keys_load (struct metastore *store, struct handover_key out[KEYS_MAX], uint32_t *count,
               struct err *err)
{
    struct store_stmt *q = store_stmt (
        store->store, "SELECT number, bytes FROM handover_key ORDER BY number DESC LIMIT ?1");
    int rc;
    *count = 0;
    store_bind_int (q, 1, KEYS_MAX);
    while ((rc = store_step (q, err)) > 0 && *count < KEYS_MAX) {
        size_t len = 0;
        const void *bytes = store_col_blob (q, 1, &len);
        struct handover_key *key = &out[*count];
        if (len != sizeof key->bytes)
            continue;
        key->number = (uint64_t)store_col_int (q, 0);
        memcpy (key->bytes, bytes, sizeof key->bytes);
        (*count)++;
    }
    store_reset (q);
    return rc < 0 ? rc : 0;
}

int keys_replace (struct metastore *store, const struct handover_key *key, uint32_t count,
                  struct err *err)
{
    int rc = store_begin (store->store, err);
    if (rc == 0)
        rc = store_exec (store->store, "DELETE FROM handover_key", err);
    for (uint32_t i = 0; i < count && rc == 0; i++) {
        struct store_stmt *q =
            store_stmt (store->store, "INSERT INTO handover_key (number, bytes) VALUES (?1, ?2)");
        store_bind_int (q, 1, (int64_t)key[i].number);
        store_bind_blob (q, 2, key[i].bytes, sizeof key[i].bytes);
        rc = store_run (q, err);
    }
    if (rc == 0)
        rc = store_commit (store->store, err);
    if (rc)
        store_rollback (store->store);
    return rc;
}
