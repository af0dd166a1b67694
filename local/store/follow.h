/* follow: a store that follows another one, of the production scheduler: its live jobs with what was
 * set on them, and what administrators set on nodes. The other is only ever read. */
#ifndef NUI_LOCAL_STORE_FOLLOW_H
#define NUI_LOCAL_STORE_FOLLOW_H

#include "local/store/local_store.h"

/* path: the other's database, of the same version as this. What it knows of fairshare is taken over at
 * once. ERR_IO, ERR_CONFLICT. */
int follow_attach (struct local_store *store, const char *path, struct err *err);

struct follow_changes {
    uint64_t *gone; /* jobs that were here, and have ended or are otherwise now */
    uint64_t *come; /* jobs that are new, or otherwise: as the store has them now */
    uint32_t gone_count, come_count;
    bool nodes;        /* something else is set on nodes */
    bool reservations; /* there are others */
};
/* Reads what has changed there since the last time and has it here, in one transaction. site: its
 * name, of "alpha.17". The lists are to be freed with follow_changes_free, also after an error. */
int follow_read (struct local_store *store, const char *site, struct follow_changes *out,
                 struct err *err);
void follow_changes_free (struct follow_changes *changes);

#endif
