/* jobrows: all that the store has of a job, row by row as it is there, for the other metaschedulers of a group.
 *
 * What is written so at another member is the same job: it is shown from there, and goes on from there. All members
 * have the same version of the schema; rows of another are refused. */
#ifndef NUI_META_STORE_JOBROWS_H
#define NUI_META_STORE_JOBROWS_H

#include "meta/store/metastore.h"
#include "proto/nui/v1/meta.pb-c.h"

/* The rows, in the arena. whole false: without the envelope, which is most of them. ERR_NOT_FOUND. */
int metastore_rows_load (struct metastore *store, uint64_t job, bool whole, struct arena *arena,
                         Nui__Meta__V1__StoredRow ***rows_out, size_t *count_out, struct err *err);
/* In the place of what is here of it; in a transaction of the caller's. ERR_NOT_FOUND: they come without the
 * envelope, and it is not here. ERR_EXISTS: what was signed is here as another job (*other_out), or
 * this number is another's (*other_out is the same). ERR_INVALID: not rows of this job. */
int metastore_rows_save (struct metastore *store, uint64_t job,
                         Nui__Meta__V1__StoredRow *const *rows, size_t count, uint64_t *other_out,
                         struct err *err);
/* Whether they say that it has. */
bool metastore_rows_ended (Nui__Meta__V1__StoredRow *const *rows, size_t count);
/* Forgets the job. */
int metastore_rows_delete (struct metastore *store, uint64_t job, struct err *err);

#endif
