/* local_store: what nui-local must not forget, in one SQLite file.
 *
 * Jobs, co-allocated parts with their stored answers and tombstones, epochs, holds that the bank has
 * been asked for, the outboxes to bank and metascheduler, counters, fairshare. Records are plain
 * values; the service keeps live ones in memory and writes every change through here inside
 * local_store_begin … local_store_commit: what commit returned 0 for survives anything.
 *
 * Blocking, one thread. Strings in records that are pointers are malloc'ed and owned by the record. */
#ifndef NUI_LOCAL_STORE_LOCAL_STORE_H
#define NUI_LOCAL_STORE_LOCAL_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/err.h"
#include "proto/base/quantity.h"

enum { STORE_NAME_MAX = 64, STORE_TRANSACTION_LEN = 16, STORE_HASH_LEN = 32 };

/* Numbers are those of nui.local.v1.JobState. */
enum store_job_state {
    STORE_JOB_QUEUED = 1,
    STORE_JOB_RESERVED = 2, /* a part, prepared or firm */
    STORE_JOB_STARTING = 3,
    STORE_JOB_RUNNING = 4,
    STORE_JOB_COMPLETED = 5,
    STORE_JOB_FAILED = 6,
    STORE_JOB_CANCELLED = 7,
    STORE_JOB_TIMEOUT = 8,
    STORE_JOB_REFUSED = 9,
};

static inline bool store_job_ended (enum store_job_state state)
{
    return state >= STORE_JOB_COMPLETED;
}

enum store_stop {
    STORE_STOP_NONE = 0,
    STORE_STOP_CANCEL = 1,
    STORE_STOP_PREEMPT = 2,    /* it waits in the queue again */
    STORE_STOP_LIMIT = 3,      /* it ran past its limit */
    STORE_STOP_CHECKPOINT = 4, /* nothing yet: CHECKPOINTHOOK is asked first */
};

struct store_job {
    uint64_t number; /* of "alpha.17" */
    enum store_job_state state;
    char grid_job_id[STORE_NAME_MAX];
    char meta[STORE_NAME_MAX]; /* the metascheduler whose job it is; "": none, or not known */
    duration_us contact;       /* it ends when that one has not heard of us for so long; 0: never */
    char component[STORE_NAME_MAX];
    uint32_t component_index; /* in the signed job */
    uint32_t shape;           /* of the component */
    uint32_t attempt;
    bool part; /* co-allocated: see struct store_part */
    uint8_t transaction[STORE_TRANSACTION_LEN];
    char *submitter; /* identity URI */
    char local_account[STORE_NAME_MAX];
    char pay_account[STORE_NAME_MAX]; /* as the bank said; before: as the job asks */
    char reason_code[STORE_NAME_MAX];
    char *reason_text; /* NULL: none */
    uint32_t incarnation;
    uint32_t start_failures;
    uint32_t procs;
    duration_us walltime;
    time_us submit;
    time_us start; /* 0: not started */
    time_us end;
    int32_t exit_code;
    uint8_t hold_key[16];
    bool hold_asked; /* a row in holds has this key */
    char hold_id[STORE_NAME_MAX];
    credit_micro amount;
    char *placement;      /* "alpha01:2:0,alpha02:1:0" = host:tasks:req; NULL: none */
    enum store_stop stop; /* what the resource manager was asked to end it for */
    bool ever_told;       /* the metascheduler has been sent an event of it */
    uint64_t change;
    time_us deferred_until; /* 0: not */
    time_us launch_at;      /* START's moment; 0: ordinary */
    uint32_t port;
    bool backfilled;      /* started past others that waited */
    uint32_t defer_count; /* times it was deferred */
    uint32_t checkpoints; /* that were made of it */
    time_us suspended_at; /* 0: it is not */
    duration_us halted;   /* for so long it was suspended before */
    uint64_t array;       /* the same for all jobs of an array; 0: none */
    uint32_t array_index;
    uint32_t array_limit; /* how many of its array run at one time; 0: any number */
};

void store_job_free (struct store_job *job); /* what it owns */

enum store_part_state {
    STORE_PART_PREPARING = 1,
    STORE_PART_PREPARED = 2,
    STORE_PART_FIRM = 3,
    STORE_PART_ABORTED = 4, /* also the tombstone of what never came */
    STORE_PART_EXPIRED = 5,
    STORE_PART_RELEASED = 6,
    STORE_PART_REFUSED = 7, /* the answer was NO */
};

struct store_part {
    uint8_t transaction[STORE_TRANSACTION_LEN];
    char component[STORE_NAME_MAX];
    uint32_t attempt;
    enum store_part_state state;
    uint64_t job;                /* 0: none */
    char caller[STORE_NAME_MAX]; /* the metascheduler's name: its cap */
    bool was_held;               /* what the first ABORT found */
    uint8_t token_hash[STORE_HASH_LEN];
    uint8_t request_hash[STORE_HASH_LEN];
    time_us slot_start;
    duration_us lease_end_boottime; /* on CLOCK_BOOTTIME of boot_id */
    char boot_id[40];
    bool start_accepted;
    uint8_t
        replaces[STORE_TRANSACTION_LEN]; /* of the parts that it comes instead of; zeros: none */
    void *answer;                        /* packed PrepareReply; NULL while preparing */
    size_t answer_len;
    void *start; /* packed StartRequest once accepted */
    size_t start_len;
    void *
        wanted; /* packed Envelope: other terms that it is to have (coalloc/change.c); NULL: none */
    size_t wanted_len;
};

void store_part_free (struct store_part *part);

/* A hold the bank was asked for and has not answered. */
struct store_hold {
    uint8_t key[16];
    uint64_t job;
    bool wanted;   /* false: give it back when it turns out to be granted */
    void *request; /* packed nui.bank.v1.HoldRequest, sent again unchanged */
    size_t request_len;
};

void store_hold_free (struct store_hold *hold);

enum store_outbox { STORE_OUTBOX_BANK, STORE_OUTBOX_META, STORE_OUTBOX_NOTIFY, STORE_OUTBOXES };

#define STORE_ITEM_VOID "void" /* nothing to be said */
#define STORE_ITEM_PART "part" /* a charge that a later one of its run says again */

struct store_item {
    uint64_t sequence; /* contiguous from 1 in its box */
    char kind[16];     /* "charge", "part", "release"; "job"; STORE_ITEM_VOID */
    void *payload;
    size_t payload_len;
};

struct local_store;

int local_store_open (const char *path, struct local_store **out, struct err *err);
/* Keeps room for what is written on a full disk (store.h). */
void local_store_reserve (struct local_store *store);
/* For a simulation: begun anew each time, and not kept from a power cut. */
int local_store_scratch (const char *path, struct local_store **out, struct err *err);
void local_store_close (struct local_store *store);

/* Every write happens between these. Commit is durable when it returns 0; on an error nothing of the
 * transaction has happened. */
int local_store_begin (struct local_store *store, struct err *err);
int local_store_commit (struct local_store *store, struct err *err);
void local_store_rollback (struct local_store *store);

/* The next value of a durable counter ("job", "change", "rsv"), from 1. */
int local_store_next (struct local_store *store, const char *counter, uint64_t *out,
                      struct err *err);

/* The counter's next value is above this. */
int local_store_next_above (struct local_store *store, const char *counter, uint64_t value,
                            struct err *err);

/* Inserts or replaces. The envelope (packed) is written only when not NULL. */
int local_store_job_put (struct local_store *store, const struct store_job *job,
                         const void *envelope, size_t envelope_len, struct err *err);
int local_store_job_get (struct local_store *store, uint64_t number, struct store_job *out,
                         struct err *err);
/* By grid id: the newest of that component and of these metaschedulers (with spaces between; "" any).
 * ERR_NOT_FOUND. */
int local_store_job_find (struct local_store *store, const char *meta, const char *grid_job_id,
                          const char *component, struct store_job *out, struct err *err);
/* An ordinary job by what makes Submit idempotent. ERR_NOT_FOUND. */
int local_store_job_by_attempt (struct local_store *store, const char *meta,
                                const char *grid_job_id, const char *component, uint32_t attempt,
                                struct store_job *out, struct err *err);
/* What msub sent, by the uuid its client gave it. ERR_NOT_FOUND. */
int local_store_submission_get (struct local_store *store, const uint8_t uuid[16],
                                uint64_t *number_out, struct err *err);
int local_store_submission_put (struct local_store *store, const uint8_t uuid[16], uint64_t number,
                                struct err *err);
/* malloc'ed. */
int local_store_envelope (struct local_store *store, uint64_t number, void **out, size_t *len_out,
                          struct err *err);
/* Every job that has not ended, by number; record and its strings are the callback's to keep. */
int local_store_jobs_live (struct local_store *store,
                           int (*fn) (void *arg, struct store_job *job, struct err *err), void *arg,
                           struct err *err);

int local_store_part_put (struct local_store *store, const struct store_part *part,
                          struct err *err);
int local_store_part_get (struct local_store *store, const uint8_t *transaction,
                          const char *component, uint32_t attempt, struct store_part *out,
                          struct err *err);
/* Parts that are preparing, prepared or firm. */
int local_store_parts_live (struct local_store *store,
                            int (*fn) (void *arg, struct store_part *part, struct err *err),
                            void *arg, struct err *err);

/* Highest epoch seen for a transaction; 0: none. */
int local_store_epoch_get (struct local_store *store, const uint8_t *transaction, uint64_t *out,
                           struct err *err);
int local_store_epoch_put (struct local_store *store, const uint8_t *transaction, uint64_t epoch,
                           struct err *err);

int local_store_hold_put (struct local_store *store, const struct store_hold *hold,
                          struct err *err);
/* The answer will not be used: give back what turns out to be granted. */
int local_store_hold_unwant (struct local_store *store, const uint8_t key[16], struct err *err);
/* false also when there is no such row. */
int local_store_hold_wanted (struct local_store *store, const uint8_t key[16], bool *out,
                             struct err *err);
int local_store_hold_delete (struct local_store *store, const uint8_t key[16], struct err *err);
int local_store_holds (struct local_store *store,
                       int (*fn) (void *arg, struct store_hold *hold, struct err *err), void *arg,
                       struct err *err);

/* Appends; the sequence is given here (sequence_out may be NULL). key is the message's idempotency
 * key. */
int local_store_outbox_put (struct local_store *store, enum store_outbox box, const char *kind,
                            const struct uuid *key, const void *payload, size_t payload_len,
                            time_us now, uint64_t *sequence_out, struct err *err);
/* Up to `limit` items, oldest first; payloads are valid during the callback. */
int local_store_outbox_read (struct local_store *store, enum store_outbox box, uint64_t after,
                             uint32_t limit, void (*fn) (void *arg, const struct store_item *item),
                             void *arg, struct err *err);
/* Everything up to and including sequence has arrived. */
int local_store_outbox_ack (struct local_store *store, enum store_outbox box, uint64_t sequence,
                            struct err *err);
/* The same; it stays readable until it is purged, but for messages that a later one says again. */
int local_store_outbox_ack_keep (struct local_store *store, enum store_outbox box,
                                 uint64_t sequence, struct err *err);
int local_store_outbox_position (struct local_store *store, enum store_outbox box,
                                 uint64_t *acked_out, uint64_t *last_out, struct err *err);
/* In a transaction. The addressee knows numbers up to base: see outbox_renumber. */
int local_store_outbox_renumber (struct local_store *store, enum store_outbox box, uint64_t base,
                                 struct err *err);
/* In a transaction: a dead letter, see proto/store/outbox.h; its number stays as STORE_ITEM_VOID. */
int local_store_outbox_bury (struct local_store *store, enum store_outbox box, uint64_t sequence,
                             int code, const char *reason, time_us now, struct err *err);
int local_store_outbox_dead (struct local_store *store, enum store_outbox box, uint64_t after,
                             uint32_t limit,
                             void (*fn) (void *arg, const struct store_item *item,
                                         const char *reason),
                             void *arg, struct err *err);
int local_store_outbox_dead_count (struct local_store *store, enum store_outbox box, uint64_t *out,
                                   struct err *err);

/* Appends to the audit log: who did what. */
int local_store_audit (struct local_store *store, time_us now, const char *who, const char *what,
                       struct err *err);

/* What administrators set on a live job; absent: nothing (all 0). */
struct store_job_admin {
    uint32_t holds;   /* user 1, system 2, batch 4 */
    int32_t priority; /* setspri */
    bool absolute;
};
int local_store_job_admin_put (struct local_store *store, uint64_t number,
                               const struct store_job_admin *admin, struct err *err);
int local_store_job_admin_get (struct local_store *store, uint64_t number,
                               struct store_job_admin *out, struct err *err);

/* RESERVATIONRETRYTIME: until when the job keeps the nodes of its placement; 0: it does not. */
int local_store_retry_put (struct local_store *store, uint64_t job, time_us until, struct err *err);
int local_store_retry_get (struct local_store *store, uint64_t job, time_us *until_out,
                           struct err *err);

/* What a job waits for: kind is enum depend_kind, target a job of this site. A row goes when it is met. */
int local_store_depend_put (struct local_store *store, uint64_t job, int kind, uint64_t target,
                            struct err *err);
int local_store_depend_met (struct local_store *store, uint64_t job, int kind, uint64_t target,
                            struct err *err);
int local_store_depends (struct local_store *store, uint64_t job,
                         int (*fn) (void *arg, int kind, uint64_t target), void *arg,
                         struct err *err);

/* What the resource manager calls a job: see rm.h. */
struct store_rm_job {
    char rm_id[STORE_NAME_MAX];
    time_us submit; /* with rm_id: never twice */
    bool native;    /* it came from there */
};
int local_store_rm_job_put (struct local_store *store, uint64_t number,
                            const struct store_rm_job *job, struct err *err);
/* ERR_NOT_FOUND. */
int local_store_rm_job_get (struct local_store *store, uint64_t number, struct store_rm_job *out,
                            struct err *err);
/* The newest job of that name and moment. ERR_NOT_FOUND. */
int local_store_rm_job_find (struct local_store *store, const char *rm_id, time_us submit,
                             uint64_t *number_out, struct err *err);

/* An administrator's reservation, as it was asked for and where it lies. Strings are malloc'ed. */
struct store_rsv {
    uint64_t number;
    char name[STORE_NAME_MAX];
    time_us start;
    time_us end;    /* TIME_US_MAX: none */
    uint32_t flags; /* enum rsv_flag */
    char *acl;      /* "USER bob+ …": one list per line, type first */
    char *expression;
    char *features;
    char *resources;
    char *placement; /* "alpha01:2:0,…" */
    char owner[STORE_NAME_MAX + 16];
    char partition[STORE_NAME_MAX];
    uint32_t tasks_wanted;
    uint32_t tasks_per_node;
    uint64_t used_by;                /* SINGLEUSE */
    char charge[2 * STORE_NAME_MAX]; /* "phys:bob": who pays for what it keeps idle; "": nobody */
    char grid[STORE_NAME_MAX];       /* of a co-reservation: the group; else "" */
    uint64_t part;                   /* and the co-allocated part with which it goes; 0: none */
};
void store_rsv_free (struct store_rsv *rsv); /* what it owns */
int local_store_rsv_put (struct local_store *store, const struct store_rsv *rsv, struct err *err);
int local_store_rsv_delete (struct local_store *store, uint64_t number, struct err *err);
/* All, by number; the callback keeps what it gets. */
int local_store_rsvs (struct local_store *store,
                      int (*fn) (void *arg, struct store_rsv *rsv, struct err *err), void *arg,
                      struct err *err);

/* Processors that a reservation keeps idle since a moment, and who is to be charged for them. */
struct store_idle {
    uint64_t core; /* its number in the core */
    char name[STORE_NAME_MAX];
    char account[STORE_NAME_MAX];
    /* nui://grid/user/bob; "": not known to the grid map, so that nobody pays */
    char identity[256];
    time_us since;
    time_us end; /* of the reservation; TIME_US_MAX: none */
    uint32_t procs;
};
int local_store_idle_put (struct local_store *store, const struct store_idle *idle,
                          struct err *err);
int local_store_idle_delete (struct local_store *store, uint64_t core, struct err *err);
int local_store_idles (struct local_store *store,
                       void (*fn) (void *arg, const struct store_idle *idle), void *arg,
                       struct err *err);

/* What administrators set, by object and name; an empty value is none. */
enum store_set { STORE_SET_JOB = 1, STORE_SET_NODE = 2 };
int local_store_set_put (struct local_store *store, enum store_set kind, const char *object,
                         const char *name, const char *value, struct err *err);
/* Of one object. */
int local_store_sets (struct local_store *store, enum store_set kind, const char *object,
                      void (*fn) (void *arg, const char *name, const char *value), void *arg,
                      struct err *err);

/* One named value ("fairshare"). get: ERR_NOT_FOUND; malloc'ed. */
int local_store_blob_put (struct local_store *store, const char *name, const void *bytes,
                          size_t len, struct err *err);
int local_store_blob_get (struct local_store *store, const char *name, void **out, size_t *len_out,
                          struct err *err);

#endif
