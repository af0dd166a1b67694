/* outbox: the tables and statements of what waits for a peer. local_store.c calls it inside its
 * own transactions, since state and message must become durable together. Nothing is deleted
 * before the peer has acknowledged it or its refusal was kept as a dead letter. */
#include "proto/store/outbox.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* next_seq and acked outlive the messages, so that a number is never used twice. */
const char outbox_schema[] = OUTBOX_SCHEMA;

struct position {
    uint64_t next_seq;
    uint64_t acked;
};

/* A destination nobody wrote to yet has {1, 0}. */
static int read_position (struct store *store, const char *destination, struct position *out,
                          struct err *err)
{
    struct store_stmt *q =
        store_stmt (store, "SELECT next_seq, acked FROM outbox_state WHERE destination = ?1");
    store_bind_text (q, 1, destination);
    int rc = store_step (q, err);
    if (rc < 0)
        return rc;
    *out = (struct position){1, 0};
    if (rc == 1) {
        out->next_seq = (uint64_t)store_col_int (q, 0);
        out->acked = (uint64_t)store_col_int (q, 1);
    }
    store_reset (q);
    return 0;
}

static int insert_message (struct store *store, const char *destination, uint64_t seq,
                           const char *kind, const struct uuid *key, const void *payload,
                           size_t payload_len, time_us now, struct err *err)
{
    struct store_stmt *q = store_stmt (
        store, "INSERT INTO outbox_state (destination, next_seq, acked) VALUES (?1, ?2 + 1, 0)"
               " ON CONFLICT (destination) DO UPDATE SET next_seq = ?2 + 1");
    store_bind_text (q, 1, destination);
    store_bind_int (q, 2, (int64_t)seq);
    int rc = store_run (q, err);
    if (rc < 0)
        return rc;
    q = store_stmt (store, "INSERT INTO outbox (destination, seq, kind, key, created_us, payload)"
                           " VALUES (?1, ?2, ?3, ?4, ?5, ?6)");
    store_bind_text (q, 1, destination);
    store_bind_int (q, 2, (int64_t)seq);
    store_bind_text (q, 3, kind);
    store_bind_uuid (q, 4, key);
    store_bind_int (q, 5, now);
    store_bind_blob (q, 6, payload, payload_len);
    return store_run (q, err);
}

static int key_waits (struct store *store, const char *destination, const struct uuid *key,
                      struct err *err)
{
    struct store_stmt *q =
        store_stmt (store, "SELECT 1 FROM outbox WHERE destination = ?1 AND key = ?2");
    store_bind_text (q, 1, destination);
    store_bind_uuid (q, 2, key);
    int rc = store_step (q, err);
    store_reset (q);
    return rc;
}

int outbox_append (struct store *store, const char *destination, const char *kind,
                   const struct uuid *key, const void *payload, size_t payload_len, time_us now,
                   uint64_t *seq_out, struct err *err)
{
    struct position at;
    char text[QUANTITY_TEXT_MAX];
    if (!store_in_transaction (store))
        return err_set (err, ERR_INTERNAL, "outbox: append to %s outside a transaction",
                        destination);
    if (strlen (kind) >= sizeof ((struct outbox_message *)NULL)->kind)
        return err_set (err, ERR_LIMIT, "outbox: kind '%.64s…' is too long", kind);
    if (payload_len > OUTBOX_PAYLOAD_MAX)
        return err_set (err, ERR_LIMIT, "outbox: message of %zu bytes to %s, at most %d",
                        payload_len, destination, OUTBOX_PAYLOAD_MAX);
    int rc = read_position (store, destination, &at, err);
    if (rc < 0)
        return rc;
    if (at.next_seq - at.acked > OUTBOX_PENDING_MAX)
        return err_set (err, ERR_LIMIT, "outbox: %d messages to %s wait already",
                        OUTBOX_PENDING_MAX, destination);
    /* Looked up first: a failed insert would leave the transaction half done. */
    rc = key_waits (store, destination, key, err);
    if (rc < 0)
        return rc;
    if (rc == 1)
        return err_set (err, ERR_EXISTS, "outbox: a message to %s with key %s waits already",
                        destination, uuid_format (key, text));
    rc =
        insert_message (store, destination, at.next_seq, kind, key, payload, payload_len, now, err);
    if (rc == 0 && seq_out)
        *seq_out = at.next_seq;
    return rc;
}

/* A message from columns seq, kind, key, created_us, payload. */
static int message_take (struct store_stmt *q, const char *destination, struct outbox_message *out,
                         struct err *err)
{
    struct outbox_message m = {.seq = (uint64_t)store_col_int (q, 0),
                               .created = store_col_int (q, 3)};
    const char *kind = store_col_text (q, 1);
    const void *bytes = store_col_blob (q, 4, &m.payload_len);
    if (!kind || strlen (kind) >= sizeof m.kind || !store_col_uuid (q, 2, &m.key))
        return err_set (err, ERR_IO, "outbox: message %llu to %s is damaged",
                        (unsigned long long)m.seq, destination);
    memcpy (m.kind, kind, strlen (kind) + 1);
    m.payload = malloc (m.payload_len + 1);
    assert (m.payload);
    if (m.payload_len)
        memcpy (m.payload, bytes, m.payload_len);
    *out = m;
    return 1;
}

/* The first row of a SELECT of what is after a number to a destination; as store_step. */
static int row_after (struct store_stmt *q, const char *destination, uint64_t after,
                      struct err *err)
{
    store_bind_text (q, 1, destination);
    store_bind_int (q, 2, after > INT64_MAX ? INT64_MAX : (int64_t)after);
    return store_step (q, err);
}

int outbox_next (struct store *store, const char *destination, uint64_t after,
                 struct outbox_message *out, struct err *err)
{
    struct store_stmt *q =
        store_stmt (store, "SELECT seq, kind, key, created_us, payload FROM outbox"
                           " WHERE destination = ?1 AND seq > ?2 ORDER BY seq LIMIT 1");
    int rc = row_after (q, destination, after, err);
    if (rc <= 0)
        return rc;
    rc = message_take (q, destination, out, err);
    store_reset (q);
    return rc;
}

void outbox_message_clear (struct outbox_message *message)
{
    free (message->payload);
    message->payload = NULL;
    message->payload_len = 0;
}

/* Kinds other than `only` stay; NULL: none does. */
static int delete_up_to (struct store *store, const char *destination, uint64_t up_to,
                         const char *only, struct err *err)
{
    struct store_stmt *q = store_stmt (
        store, only ? "DELETE FROM outbox WHERE destination = ?1 AND seq <= ?2 AND kind = ?3"
                    : "DELETE FROM outbox WHERE destination = ?1 AND seq <= ?2");
    store_bind_text (q, 1, destination);
    store_bind_int (q, 2, (int64_t)up_to);
    if (only)
        store_bind_text (q, 3, only);
    int rc = store_run (q, err);
    if (rc < 0)
        return rc;
    q = store_stmt (store, "UPDATE outbox_state SET acked = ?2 WHERE destination = ?1");
    store_bind_text (q, 1, destination);
    store_bind_int (q, 2, (int64_t)up_to);
    return store_run (q, err);
}

static int ack (struct store *store, const char *destination, uint64_t up_to, const char *only,
                struct err *err)
{
    struct position at;
    int rc = read_position (store, destination, &at, err);
    if (rc < 0)
        return rc;
    if (up_to >= at.next_seq)
        return err_set (err, ERR_INVALID, "outbox: %s acknowledges message %llu, %llu is the last",
                        destination, (unsigned long long)up_to,
                        (unsigned long long)(at.next_seq - 1));
    if (up_to <= at.acked)
        return 0;
    bool own = !store_in_transaction (store);
    if (own && (rc = store_begin (store, err)) < 0)
        return rc;
    rc = delete_up_to (store, destination, up_to, only, err);
    if (!own)
        return rc;
    if (rc == 0)
        return store_commit (store, err);
    store_rollback (store);
    return rc;
}

int outbox_ack (struct store *store, const char *destination, uint64_t up_to, struct err *err)
{
    return ack (store, destination, up_to, NULL, err);
}

int outbox_ack_keep (struct store *store, const char *destination, uint64_t up_to, const char *drop,
                     struct err *err)
{
    return ack (store, destination, up_to, drop ? drop : "", err);
}

int outbox_forget (struct store *store, const char *destination, time_us before, uint32_t limit,
                   struct err *err)
{
    struct position at;
    int rc = read_position (store, destination, &at, err);
    if (rc < 0)
        return rc;
    struct store_stmt *q = store_stmt (
        store, "DELETE FROM outbox WHERE destination = ?1 AND seq IN (SELECT seq FROM outbox"
               " WHERE destination = ?1 AND seq <= ?2 AND created_us < ?3 ORDER BY seq LIMIT ?4)");
    store_bind_text (q, 1, destination);
    store_bind_int (q, 2, (int64_t)at.acked);
    store_bind_int (q, 3, before);
    store_bind_int (q, 4, limit);
    return store_run (q, err);
}

int outbox_position (struct store *store, const char *destination, uint64_t *acked_out,
                     uint64_t *last_out, struct err *err)
{
    struct position at;
    int rc = read_position (store, destination, &at, err);
    if (rc == 0 && acked_out)
        *acked_out = at.acked;
    if (rc == 0 && last_out)
        *last_out = at.next_seq - 1;
    return rc;
}

/* The highest first: a number is free before the one below it wants it. */
static int numbers_shift (struct store *store, const char *destination, uint64_t above,
                          uint64_t last, uint64_t by, struct err *err)
{
    for (uint64_t seq = last; seq > above; seq--) {
        struct store_stmt *q =
            store_stmt (store, "UPDATE outbox SET seq = ?3 WHERE destination = ?1 AND seq = ?2");
        store_bind_text (q, 1, destination);
        store_bind_int (q, 2, (int64_t)seq);
        store_bind_int (q, 3, (int64_t)(seq + by));
        int rc = store_run (q, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int outbox_renumber (struct store *store, const char *destination, uint64_t base, struct err *err)
{
    struct position at;
    int rc = read_position (store, destination, &at, err);
    if (rc < 0 || base < at.next_seq)
        return rc;
    if (base >= INT64_MAX - OUTBOX_PENDING_MAX)
        return err_set (err, ERR_LIMIT, "outbox: %s knows message %llu, which cannot be",
                        destination, (unsigned long long)base);
    uint64_t by = base - at.acked; /* the first that waits is the next after base */
    rc = numbers_shift (store, destination, at.acked, at.next_seq - 1, by, err);
    if (rc < 0)
        return rc;
    struct store_stmt *q = store_stmt (
        store, "INSERT INTO outbox_state (destination, next_seq, acked) VALUES (?1, ?2, ?3)"
               " ON CONFLICT (destination) DO UPDATE SET next_seq = ?2, acked = ?3");
    store_bind_text (q, 1, destination);
    store_bind_int (q, 2, (int64_t)(at.next_seq + by));
    store_bind_int (q, 3, (int64_t)base);
    return store_run (q, err);
}

int outbox_pending (struct store *store, const char *destination, uint64_t *count_out,
                    time_us *oldest_out, struct err *err)
{
    struct position at;
    int rc = read_position (store, destination, &at, err);
    if (rc < 0)
        return rc;
    uint64_t count = at.next_seq - 1 - at.acked;
    time_us oldest = TIME_US_NONE;
    if (count > 0) {
        struct store_stmt *q = store_stmt (
            store,
            "SELECT created_us FROM outbox WHERE destination = ?1 AND seq > ?2 ORDER BY seq LIMIT 1");
        store_bind_text (q, 1, destination);
        store_bind_int (q, 2, (int64_t)at.acked);
        rc = store_step (q, err);
        if (rc < 0)
            return rc;
        if (rc == 1)
            oldest = store_col_int (q, 0);
        store_reset (q);
    }
    if (count_out)
        *count_out = count;
    if (oldest_out)
        *oldest_out = oldest;
    return 0;
}

/* --- dead letters ------------------------------------------------------------------------- */

int outbox_bury (struct store *store, const char *destination, uint64_t seq, int code,
                 const char *reason, time_us now, struct err *err)
{
    if (!store_in_transaction (store))
        return err_set (err, ERR_INTERNAL, "outbox: bury outside a transaction");
    struct store_stmt *q = store_stmt (
        store,
        "INSERT INTO outbox_dead (destination, seq, kind, key, created_us, payload, code,"
        " reason, died_us) SELECT destination, seq, kind, key, created_us, payload, ?3, ?4, ?5"
        " FROM outbox WHERE destination = ?1 AND seq = ?2 RETURNING seq");
    store_bind_text (q, 1, destination);
    store_bind_int (q, 2, (int64_t)seq);
    store_bind_int (q, 3, code);
    store_bind_text (q, 4, reason);
    store_bind_int (q, 5, now);
    int rc = store_step (q, err);
    store_reset (q);
    if (rc < 0)
        return rc;
    if (rc == 0)
        return err_set (err, ERR_NOT_FOUND, "outbox: there is no message %llu to %s",
                        (unsigned long long)seq, destination);
    q = store_stmt (store, "UPDATE outbox SET kind = '" OUTBOX_VOID "', payload = x''"
                           " WHERE destination = ?1 AND seq = ?2");
    store_bind_text (q, 1, destination);
    store_bind_int (q, 2, (int64_t)seq);
    return store_run (q, err);
}

int outbox_dead_next (struct store *store, const char *destination, uint64_t after,
                      struct outbox_dead *out, struct err *err)
{
    struct store_stmt *q = store_stmt (
        store, "SELECT seq, kind, key, created_us, payload, code, reason, died_us FROM outbox_dead"
               " WHERE destination = ?1 AND seq > ?2 ORDER BY seq LIMIT 1");
    int rc = row_after (q, destination, after, err);
    if (rc <= 0)
        return rc;
    struct outbox_dead dead = {.code = (int)store_col_int (q, 5), .died = store_col_int (q, 7)};
    rc = message_take (q, destination, &dead.message, err);
    if (rc == 1) {
        dead.reason = strdup (store_col_text (q, 6));
        assert (dead.reason);
        *out = dead;
    }
    store_reset (q);
    return rc;
}

int outbox_dead_count (struct store *store, const char *destination, uint64_t *out, struct err *err)
{
    struct store_stmt *q =
        store_stmt (store, "SELECT count(*) FROM outbox_dead WHERE destination = ?1");
    store_bind_text (q, 1, destination);
    int rc = store_step (q, err);
    if (rc < 0)
        return rc;
    *out = (uint64_t)store_col_int (q, 0);
    store_reset (q);
    return 0;
}

int outbox_dead_forget (struct store *store, const char *destination, time_us before,
                        uint32_t limit, struct err *err)
{
    struct store_stmt *q = store_stmt (
        store,
        "DELETE FROM outbox_dead WHERE destination = ?1 AND seq IN (SELECT seq FROM outbox_dead"
        " WHERE destination = ?1 AND died_us < ?2 ORDER BY seq LIMIT ?3)");
    store_bind_text (q, 1, destination);
    store_bind_int (q, 2, before);
    store_bind_int (q, 3, limit);
    return store_run (q, err);
}

void outbox_dead_clear (struct outbox_dead *dead)
{
    outbox_message_clear (&dead->message);
    free (dead->reason);
    dead->reason = NULL;
}
