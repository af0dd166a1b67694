/* signed: which signed jobs have been taken here, for whom and under what name.
 *
 * A user's signature says what may run, not how often: whoever holds the envelope could hand it over
 * again. A row is written in the transaction that takes the job for the first time and stays at least
 * until the signature has expired; after that the expiry refuses it. One row per job, two for none. */
#ifndef NUI_LOCAL_STORE_SIGNED_H
#define NUI_LOCAL_STORE_SIGNED_H

#include "local/store/local_store.h"

enum { SIGNED_PURGE_MAX = 500 };

struct store_signed {
    uint8_t uuid[16];                 /* of the signed job; with its submitter the key */
    const char *submitter;            /* identity URI; not set by signed_get */
    uint8_t hash[STORE_HASH_LEN];     /* SHA-256 of the signed bytes */
    char meta[STORE_NAME_MAX];        /* who handed it over, */
    char grid_job_id[STORE_NAME_MAX]; /* and as what */
    time_us until;                    /* of the signature */
};

/* ERR_NOT_FOUND. */
int signed_get (struct local_store *store, const char *submitter, const uint8_t uuid[16],
                struct store_signed *out, struct err *err);
/* In a transaction: inserts; of one that is there only a later `until` is taken. */
int signed_put (struct local_store *store, const struct store_signed *row, struct err *err);
/* The highest N of the jobs grid.N of each metascheduler. Reads all of them. */
int signed_numbers (struct local_store *store,
                    void (*each) (void *arg, const char *meta, uint64_t number), void *arg,
                    struct err *err);
/* In a transaction: up to SIGNED_PURGE_MAX rows that expired before and no job of which is left. */
int signed_purge (struct local_store *store, time_us before, struct err *err);

#endif
