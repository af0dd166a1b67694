/* local_store_i: what the sources of local/store share. */
#ifndef NUI_LOCAL_STORE_LOCAL_STORE_I_H
#define NUI_LOCAL_STORE_LOCAL_STORE_I_H

#include "local/store/local_store.h"
#include "proto/store/store.h"

struct local_store {
    struct store *db;
};

const char *store_box_name (enum store_outbox box);
extern const char estimates_schema[], later_schema[]; /* estimates.c */
extern const char history_schema[];                   /* a step of the schema: see history.c */
extern const char runs_schema[];                      /* runs.c */
extern const char signed_schema[];                    /* signed.c */
extern const char leaving_schema[], leaving_failed_schema[]; /* leaving.c */

#endif
