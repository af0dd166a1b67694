/* outbox: messages that must reach a peer, kept in the same database as the state they tell of.
 *
 * Appended inside the caller's transaction, so that state and message are durable together; sent
 * by a link (at least once, in order); deleted when the peer acknowledged. Sequence numbers are
 * contiguous from 1 per destination and never reused, also across restarts: the receiver tells
 * repeated messages by them, and each carries an idempotency key.
 *
 * A message that its addressee will never accept becomes a dead letter, with the reason: its number goes on as an
 * empty message of kind OUTBOX_VOID, so that those behind it are not held up and numbers stay contiguous. Messages
 * that have arrived may be kept for a while: an addressee that was restored to an earlier moment gets them again.
 *
 * Appending, taking and acknowledging are O(log n). At most OUTBOX_PENDING_MAX messages wait per
 * destination; one more is ERR_LIMIT. */
#ifndef NUI_STORE_OUTBOX_H
#define NUI_STORE_OUTBOX_H

#include "proto/store/store.h"

enum { OUTBOX_PAYLOAD_MAX = 1 << 20, OUTBOX_PENDING_MAX = 1000000 };

#define OUTBOX_VOID "void" /* the kind of a number that has nothing to say */

/* What the schema of a store with outboxes contains; as a step of its own, or inside one. Dead letters lie apart from the
 * messages, so that whoever takes those never meets one. */
extern const char outbox_schema[];
#define OUTBOX_SCHEMA                                                                              \
    "CREATE TABLE outbox_state (destination TEXT PRIMARY KEY, next_seq INTEGER NOT NULL,"          \
    " acked INTEGER NOT NULL) WITHOUT ROWID;"                                                      \
    "CREATE TABLE outbox (destination TEXT NOT NULL REFERENCES outbox_state (destination),"        \
    " seq INTEGER NOT NULL, kind TEXT NOT NULL, key BLOB NOT NULL, created_us INTEGER NOT NULL,"   \
    " payload BLOB NOT NULL, PRIMARY KEY (destination, seq)) WITHOUT ROWID;"                       \
    "CREATE UNIQUE INDEX outbox_key ON outbox (destination, key);"                                 \
    "CREATE TABLE outbox_dead (destination TEXT NOT NULL, seq INTEGER NOT NULL, kind TEXT"         \
    " NOT NULL, key BLOB NOT NULL, created_us INTEGER NOT NULL, payload BLOB NOT NULL,"            \
    " code INTEGER NOT NULL, reason TEXT NOT NULL, died_us INTEGER NOT NULL,"                      \
    " PRIMARY KEY (destination, seq)) WITHOUT ROWID;"

struct outbox_message {
    uint64_t seq;
    char kind[64];
    struct uuid key;
    time_us created;
    void *payload; /* owned */
    size_t payload_len;
};

/* Outside a transaction: ERR_INTERNAL. A key that already waits there: ERR_EXISTS. kind is a short
 * word of the caller's ("charge"). seq_out may be NULL. */
int outbox_append (struct store *store, const char *destination, const char *kind,
                   const struct uuid *key, const void *payload, size_t payload_len, time_us now,
                   uint64_t *seq_out, struct err *err);
/* The oldest message with seq > after (0: the oldest there is); 1, 0 when there is none, or an
 * error. Free it with outbox_message_clear. */
int outbox_next (struct store *store, const char *destination, uint64_t after,
                 struct outbox_message *out, struct err *err);
/* Deletes everything up to and including seq; already acknowledged is fine, never sent is
 * ERR_INVALID. Its own transaction unless one is open. */
int outbox_ack (struct store *store, const char *destination, uint64_t up_to, struct err *err);
/* As outbox_ack, but what was acknowledged stays, except messages of the kind `drop` (NULL: of none). */
int outbox_ack_keep (struct store *store, const char *destination, uint64_t up_to, const char *drop,
                     struct err *err);
/* Deletes at most limit of those kept that were appended before. */
int outbox_forget (struct store *store, const char *destination, time_us before, uint32_t limit,
                   struct err *err);
/* The highest number acknowledged, and the highest given; each may be NULL. */
int outbox_position (struct store *store, const char *destination, uint64_t *acked_out,
                     uint64_t *last_out, struct err *err);
/* In a transaction. The addressee knows numbers up to `base` that were given here and forgotten (this store was
 * restored to an earlier moment): what waits gets numbers behind it, in order. Nothing when base is not ahead. */
int outbox_renumber (struct store *store, const char *destination, uint64_t base, struct err *err);

/* In a transaction: a dead letter. code is of enum err_code. ERR_NOT_FOUND. */
int outbox_bury (struct store *store, const char *destination, uint64_t seq, int code,
                 const char *reason, time_us now, struct err *err);
struct outbox_dead {
    struct outbox_message message; /* as it was */
    int code;
    char *reason; /* owned */
    time_us died;
};
/* The first with seq > after; 1, 0 or an error. Free it with outbox_dead_clear. */
int outbox_dead_next (struct store *store, const char *destination, uint64_t after,
                      struct outbox_dead *out, struct err *err);
int outbox_dead_count (struct store *store, const char *destination, uint64_t *out,
                       struct err *err);
/* Deletes at most limit of those that died before. */
int outbox_dead_forget (struct store *store, const char *destination, time_us before,
                        uint32_t limit, struct err *err);
void outbox_dead_clear (struct outbox_dead *dead);

/* How many wait, and since when (TIME_US_NONE when none); each may be NULL. */
int outbox_pending (struct store *store, const char *destination, uint64_t *count_out,
                    time_us *oldest_out, struct err *err);
void outbox_message_clear (struct outbox_message *message);

#endif
