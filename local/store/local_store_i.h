/* local_store_i: what the sources of local/store share. */
#ifndef NUI_LOCAL_STORE_LOCAL_STORE_I_H
#define NUI_LOCAL_STORE_LOCAL_STORE_I_H

#include "local/store/local_store.h"
#include "proto/store/store.h"

struct local_store {
    struct store *db;
};

const char *store_box_name (enum store_outbox box);
extern const char local_schema[]; /* schema.c */

#endif
