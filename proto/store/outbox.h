/* outbox: messages that must reach a peer, kept in the same database as the state they tell of.
 *
 * Appended inside the caller's transaction, so that state and message are durable together; sent
 * by a link (at least once, in order); deleted when the peer acknowledged. Sequence numbers are
 * contiguous from 1 per destination and never reused, also across restarts: the receiver tells
 * repeated messages by them, and each carries an idempotency key.
 *
 * Appending, taking and acknowledging are O(log n). At most OUTBOX_PENDING_MAX messages wait per
 * destination; one more is ERR_LIMIT. */
#ifndef NUI_STORE_OUTBOX_H
#define NUI_STORE_OUTBOX_H

#include "proto/store/store.h"

enum { OUTBOX_PAYLOAD_MAX = 1 << 20, OUTBOX_PENDING_MAX = 1000000 };

/* A migration step to put into the array given to store_open. */
extern const char outbox_schema[];

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
/* The oldest message with seq > after (0: the oldest unacknowledged); 1, 0 when none waits, or an
 * error. Free it with outbox_message_clear. */
int outbox_next (struct store *store, const char *destination, uint64_t after,
                 struct outbox_message *out, struct err *err);
/* Deletes everything up to and including seq; already acknowledged is fine, never sent is
 * ERR_INVALID. Its own transaction unless one is open. */
int outbox_ack (struct store *store, const char *destination, uint64_t up_to, struct err *err);
/* How many wait, and since when (TIME_US_NONE when none); each may be NULL. */
int outbox_pending (struct store *store, const char *destination, uint64_t *count_out,
                    time_us *oldest_out, struct err *err);
void outbox_message_clear (struct outbox_message *message);

#endif
