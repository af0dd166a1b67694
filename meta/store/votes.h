/* votes: what decides co-allocations, on disk, in the metastore's database.
 *
 * Of a metascheduler alone it is one log: the first proposal for a transaction stands. Of one in a
 * group each member keeps its vote for every transaction of the group, with what it would need to go
 * on with it, until its leader says that it is over; and of its own jobs which another leads now, and
 * of those that it took over from whom. Everything is durable when a call returns 0. */
#ifndef NUI_META_STORE_VOTES_H
#define NUI_META_STORE_VOTES_H

#include "meta/core/decision.h"
#include "meta/core/quorum.h"
#include "meta/store/metastore.h"

/* The single durable log; valid as long as the store. */
struct decision_log metastore_decision_log (struct metastore *store);

struct vote_row {
    uint8_t transaction[16];
    const char *owner;              /* who began it */
    const char *leader;             /* to whom the last vote was given; at first its owner */
    const char *prior;              /* who led before; "": nobody */
    struct vote vote;
    struct metastore_blob transfer; /* what takes over needs; packed nui.meta.v1.Transfer */
};

/* ERR_NOT_FOUND: never heard of, or forgotten. */
int metastore_vote_load (struct metastore *store, const uint8_t transaction[16],
                         struct arena *arena, struct vote_row *out, struct err *err);
int metastore_vote_save (struct metastore *store, const struct vote_row *row, struct err *err);
/* Nothing more is to be decided. Nothing happens to one that is not there. */
int metastore_vote_over (struct metastore *store, const uint8_t transaction[16], struct err *err);
/* Those that are not over: of one leader, with ids above `after` (NULL: from the first), ascending; all
 * that one owned or led before and another leads now; and those of one leader that no live job here is about (a scan). */
int metastore_votes_open (struct metastore *store, const char *leader, const uint8_t *after,
                          uint32_t limit, struct arena *arena, struct vote_row **rows_out,
                          uint32_t *count_out, struct err *err);
int metastore_votes_lost (struct metastore *store, const char *once, struct arena *arena,
                          struct vote_row **rows_out, uint32_t *count_out, struct err *err);
int metastore_votes_orphaned (struct metastore *store, const char *leader, struct arena *arena,
                              struct vote_row **rows_out, uint32_t *count_out, struct err *err);
/* Forgets what has been over since before that moment. */
int metastore_votes_purge (struct metastore *store, time_us before, struct err *err);

/* Who leads a job, if not simply the one to whom it was submitted. */
struct lead_row {
    uint64_t job;
    uint64_t ballot;        /* by which it was taken over last; above it sites see no older leader */
    const char *led_by;     /* "": this metascheduler */
    const char *led_as;     /* its id there; "" while it is not known */
    const char *origin;     /* "": here */
    uint64_t origin_job;
    bool told;              /* its origin knows how it ended */
};

int metastore_lead_save (struct metastore *store, const struct lead_row *row, struct err *err);
/* ERR_NOT_FOUND: nothing special about it. */
int metastore_lead_load (struct metastore *store, uint64_t job, struct arena *arena,
                         struct lead_row *out, struct err *err);
/* What was taken over from that origin and is led here, and whose end it does not know yet. */
int metastore_lead_untold (struct metastore *store, const char *origin, struct arena *arena,
                           struct lead_row **rows_out, uint32_t *count_out, struct err *err);
int metastore_lead_told (struct metastore *store, const char *origin, uint64_t origin_job,
                         struct err *err);

#endif
