/* What the store's files share. */
#ifndef NUI_META_STORE_METASTORE_I_H
#define NUI_META_STORE_METASTORE_I_H

#include "meta/store/metastore.h"
#include "proto/store/store.h"

struct metastore {
    struct store *store;
    uint64_t epoch;
};

#endif
