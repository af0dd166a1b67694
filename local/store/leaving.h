/* leaving: jobs that have ended and whose files are still to be taken away. */
#ifndef NUI_LOCAL_STORE_LEAVING_H
#define NUI_LOCAL_STORE_LEAVING_H

#include "local/store/local_store.h"

/* In a transaction. The row goes with the job, too. */
int leaving_put (struct local_store *store, uint64_t number, struct err *err);
int leaving_delete (struct local_store *store, uint64_t number, struct err *err);
int leaving_has (struct local_store *store, uint64_t number, bool *out, struct err *err);
/* Every one of them, by number. */
int leaving_each (struct local_store *store, void (*fn) (void *arg, uint64_t number), void *arg,
                  struct err *err);

#endif
