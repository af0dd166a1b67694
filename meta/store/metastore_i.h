/* What the store's files share. */
#ifndef NUI_META_STORE_METASTORE_I_H
#define NUI_META_STORE_METASTORE_I_H

#include "meta/store/metastore.h"
#include "proto/store/store.h"

struct metastore {
    struct store *store;
    uint64_t epoch;
};

/* Of a job of an array: its envelope is where the array's first is, if that one has the same and is here. */
int metastore_envelope_share (struct metastore *store, uint64_t job, struct err *err);

#endif
