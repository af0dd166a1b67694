/* metastore: what a metascheduler must not forget, in SQLite.
 *
 * Jobs of the grid with their signed envelopes, the record of each co-allocation, what the sites
 * said last of each component, how far each site's events have been applied, and the epoch. Rows are
 * plain structs; text and blobs that a load returns live in the arena given. Writes outside
 * metastore_begin/commit are transactions of their own. What the outermost call returned 0 for is whole, and
 * outlives a kill -9; the machine's end only after the next metastore_sync: nothing may leave before it (the gate
 * in svc/metad.c). One thread. */
#ifndef NUI_META_STORE_METASTORE_H
#define NUI_META_STORE_METASTORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "meta/core/coalloc.h"
#include "proto/base/arena.h"
#include "proto/base/err.h"
#include "proto/base/quantity.h"

struct metastore;

struct metastore_blob {
    const void *bytes;
    size_t len;
};

struct job_row {
    uint64_t number;
    struct uuid uuid;
    const char *submitter; /* identity URI */
    const char *name;
    const char *account;
    struct metastore_blob envelope; /* packed; written once */
    time_us submit_us;
    time_us expires_us; /* its signature: before that it may be sent again */
    int32_t state;      /* nui.meta.v1.GridJobState */
    bool ended;
    const char *reason_code;
    const char *reason_text;
    time_us start_us;
    bool start_is_estimate;
    time_us end_us;
    credit_micro price;
    uint32_t attempts;
    uint64_t change;
    bool cancel_wanted;
    /* Ordinary jobs: where it was sent. */
    const char *site;
    uint32_t site_attempt;
    int32_t place;  /* enum single_phase of the service */
    uint32_t shape; /* which of its sizes */
    int32_t held;   /* enum job_hold of the service */
    uint32_t attempt_last;
    uint32_t retries;       /* how often it was run again */
    time_us retry_us;       /* not before; 0: none */
    duration_us contact_us; /* for so long without contact a site keeps it; 0: for ever */
    /* Its move to another site; stage 0: none. */
    int32_t move_stage;
    const char *move_site;
    const char *move_job_id;
    uint32_t move_attempt;
    uint32_t move_shape;
    credit_micro move_price;
    uint64_t
        array; /* of an array that was signed as one: the number of its first job; 0: of none */
    uint32_t element; /* 1 + its index */
};

/* One of an array, as on disk. */
struct element_row {
    uint64_t number;
    uint32_t index;
    int32_t state;
};

struct component_row {
    uint32_t index;
    const char *name;
    const char *site;
    const char *site_job_id;
    struct metastore_blob info; /* packed JobInfo as last heard; may be empty */
    struct metastore_blob peer; /* packed Peer, from PREPARE; may be empty */
    const char *next_job_id;    /* the same of an earlier slot being prepared */
    struct metastore_blob next_peer;
    struct metastore_blob answers; /* packed SiteAnswers; may be empty */
};

struct metastore *metastore_open (const char *path, struct err *err);
void metastore_close (struct metastore *store); /* NULL is a no-op */
/* Grows by one with every open: fences what an earlier process still has under way. */
uint64_t metastore_epoch (const struct metastore *store);

int metastore_begin (struct metastore *store, struct err *err);
int metastore_commit (struct metastore *store, struct err *err);
void metastore_rollback (struct metastore *store);
/* As store_unsynced and store_sync. */
bool metastore_unsynced (const struct metastore *store);
int metastore_sync (struct metastore *store, struct err *err);

/* The next number of member `self` (from 0) of a group: no two members have the same. */
/* From now on numbers are above this one; *lost_out says whether they were not. */
int metastore_job_number_pass (struct metastore *store, uint64_t number, bool *lost_out,
                               struct err *err);
int metastore_job_number (struct metastore *store, uint32_t members, uint32_t self,
                          uint64_t *number_out, struct err *err);
/* The uuid makes it idempotent: ERR_EXISTS with the number of the job that is there. row->number 0: the next. */
int metastore_job_insert (struct metastore *store, const struct job_row *row, uint64_t *number_out,
                          struct err *err);
int metastore_job_find_uuid (struct metastore *store, const char *submitter,
                             const struct uuid *uuid, uint64_t *number_out, struct err *err);
/* Everything but uuid, submitter, name, account, envelope and submit time. */
/* Its envelope, once more. */
int metastore_job_envelope_put (struct metastore *store, uint64_t number,
                                const struct metastore_blob *envelope, struct err *err);
int metastore_job_update (struct metastore *store, const struct job_row *row, struct err *err);
int metastore_job_load (struct metastore *store, uint64_t number, struct arena *arena,
                        struct job_row *out, struct err *err);
/* Of an array: ascending; none, where there is none. */
int metastore_array_list (struct metastore *store, uint64_t array, struct arena *arena,
                          struct element_row **rows_out, uint32_t *count_out, struct err *err);
/* The number of the job of that index; ERR_NOT_FOUND. */
int metastore_element_find (struct metastore *store, uint64_t array, uint32_t index,
                            uint64_t *number_out, struct err *err);
/* What its jobs come to: their sites, what they cost at most, when the first began and, where all have ended, the last
 * ended (0: not yet). */
struct array_row {
    char **site;
    uint32_t site_count;
    credit_micro price;
    time_us begin, end;
};
int metastore_array_about (struct metastore *store, uint64_t array, struct arena *arena,
                           struct array_row *out, struct err *err);
/* Arrays of which not all jobs are there yet. A call in the transaction that is open, or one of its own. */
int metastore_arriving_put (struct metastore *store, uint64_t array, struct err *err);
int metastore_arriving_drop (struct metastore *store, uint64_t array, struct err *err);
int metastore_arriving_list (struct metastore *store, struct arena *arena, uint64_t **numbers_out,
                             uint32_t *count_out, struct err *err);
/* As metastore_job_list; of each array only its first, where any of it matches. */
int metastore_job_list_folded (struct metastore *store, const char *submitter, bool ended,
                               uint64_t before, uint32_t limit, struct arena *arena,
                               uint64_t **numbers_out, uint32_t *count_out, struct err *err);
/* Numbers, ascending, of the newest `limit` below `before` (0: of all) that match: ended ones too, only submitter's
 * (NULL: all). */
int metastore_job_list (struct metastore *store, const char *submitter, bool ended, uint64_t before,
                        uint32_t limit, struct arena *arena, uint64_t **numbers_out,
                        uint32_t *count_out, struct err *err);

int metastore_component_save (struct metastore *store, uint64_t number,
                              const struct component_row *row, struct err *err);
int metastore_component_load (struct metastore *store, uint64_t number, struct arena *arena,
                              struct component_row **rows_out, uint32_t *count_out,
                              struct err *err);

/* Which record of a job: the one that counts, or that of an earlier slot, being got or given up.
 * Stored as numbers: never renumber. */
enum metastore_role { METASTORE_PRESENT = 0, METASTORE_SLIDE = 1 };

int metastore_coalloc_save (struct metastore *store, uint64_t number, enum metastore_role role,
                            const struct coalloc_record *record, struct err *err);
int metastore_coalloc_drop (struct metastore *store, uint64_t number, enum metastore_role role,
                            struct err *err);
/* ERR_NOT_FOUND when the job has none. The caller destroys *record_out. */
int metastore_coalloc_load (struct metastore *store, uint64_t number, enum metastore_role role,
                            struct coalloc_record **record_out, struct err *err);

/* Highest contiguous event sequence of a site that is applied; 0 for a new site. */
int metastore_site_acked (struct metastore *store, const char *site, uint64_t *sequence_out,
                          struct err *err);
int metastore_site_ack (struct metastore *store, const char *site, uint64_t sequence,
                        struct err *err);

#endif
