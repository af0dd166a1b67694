/* votes: what decides, on disk, in the metastore's database.
 *
 * Of a metascheduler alone it is one log of decisions: the first proposal for a transaction stands. In a group it is
 * who leads which job, and what this member has promised and taken of it (core/quorum.h); the state itself is
 * the job's own rows. Everything is durable when a call returns 0. */
#ifndef NUI_META_STORE_VOTES_H
#define NUI_META_STORE_VOTES_H

#include "meta/core/decision.h"
#include "meta/core/quorum.h"
#include "meta/store/metastore.h"

/* The single durable log; valid as long as the store. */
struct decision_log metastore_decision_log (struct metastore *store);

struct lead_row {
    uint64_t job;
    const char *leader; /* whose state was taken last, or who says that it leads; "": not known */
    struct vote vote;   /* its version is the job's own change number; 0: the job is not here */
    bool stands;        /* a majority is known to have had some state of it */
    bool open;          /* no majority is known here to have its end */
    uint64_t place; /* in the list of those that are not open, by when that or they changed last; 0:
                       open. Never saved */
};

/* ERR_NOT_FOUND: never heard of, or not of the group. */
int metastore_lead_load (struct metastore *store, uint64_t job, struct arena *arena,
                         struct lead_row *out, struct err *err);
/* But for the version. */
int metastore_lead_save (struct metastore *store, const struct lead_row *row, struct err *err);
/* Its state as it is becomes the next version. ERR_NOT_FOUND. */
int metastore_lead_version (struct metastore *store, uint64_t job, struct err *err);
int metastore_lead_stands (struct metastore *store, uint64_t job, struct err *err);
int metastore_lead_closed (struct metastore *store, uint64_t job,
                           struct err *err); /* a majority has its end */
int metastore_lead_leader (struct metastore *store, uint64_t job, const char *leader,
                           struct err *err);
/* Those that are not open, behind that place, in their order. */
int metastore_leads_over (struct metastore *store, uint64_t after, uint32_t limit,
                          struct arena *arena, struct lead_row **rows_out, uint32_t *count_out,
                          struct err *err);
int metastore_leads_over_last (struct metastore *store, uint64_t *place_out,
                               struct err *err); /* 0: there is none */
/* Up to which place of another member's list everything is here. */
int metastore_followed_load (struct metastore *store, const char *member, uint64_t *place_out,
                             struct err *err);
int metastore_followed_save (struct metastore *store, const char *member, uint64_t place,
                             struct err *err);
/* Open ones of one leader, numbers above `after`, ascending. */
int metastore_leads_open (struct metastore *store, const char *leader, uint64_t after,
                          uint32_t limit, struct arena *arena, struct lead_row **rows_out,
                          uint32_t *count_out, struct err *err);

#endif
