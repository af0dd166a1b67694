#include "../base/unit.h"

#include <string.h>

#include "proto/store/outbox.h"
#include "scratch.h"

static const char *const steps[] = {outbox_schema, NULL};

static struct uuid key_of (uint32_t n)
{
    struct uuid u = {{0}};
    memcpy (u.b, &n, sizeof n);
    return u;
}

static uint64_t append (struct store *store, const char *to, uint32_t n)
{
    struct err err = {0};
    struct uuid key = key_of (n);
    uint64_t seq = 0;
    assert_ok (store_begin (store, &err), err);
    assert_ok (outbox_append (store, to, "charge", &key, &n, sizeof n, 1000 + n, &seq, &err), err);
    assert_ok (store_commit (store, &err), err);
    return seq;
}

static void in_order_per_destination (void **state)
{
    struct scratch *s = *state;
    struct err err = {0};
    struct store *store = store_open (s->db, steps, &err);
    if (!store)
        fail_msg ("%s", err.text);
    struct outbox_message m;
    assert_int_equal (outbox_next (store, "bank", 0, &m, &err), 0);
    for (uint32_t n = 1; n <= 5; n++)
        assert_int_equal (append (store, "bank", n), n);
    assert_int_equal (append (store, "meta", 1), 1);
    for (uint32_t n = 1; n <= 5; n++) {
        assert_int_equal (outbox_next (store, "bank", n - 1, &m, &err), 1);
        assert_int_equal (m.seq, n);
        assert_string_equal (m.kind, "charge");
        assert_int_equal (m.payload_len, 4);
        assert_memory_equal (m.payload, &n, 4);
        assert_int_equal (m.created, 1000 + n);
        struct uuid key = key_of (n);
        assert_memory_equal (m.key.b, key.b, 16);
        outbox_message_clear (&m);
    }
    assert_int_equal (outbox_next (store, "bank", 5, &m, &err), 0);
    assert_int_equal (outbox_next (store, "bank", UINT64_MAX, &m, &err), 0);
    uint64_t count;
    time_us oldest;
    assert_ok (outbox_pending (store, "bank", &count, &oldest, &err), err);
    assert_int_equal (count, 5);
    assert_int_equal (oldest, 1001);
    assert_ok (outbox_ack (store, "bank", 3, &err), err);
    assert_ok (outbox_ack (store, "bank", 2, &err), err);
    assert_int_equal (outbox_next (store, "bank", 0, &m, &err), 1);
    assert_int_equal (m.seq, 4);
    outbox_message_clear (&m);
    assert_int_equal (outbox_ack (store, "bank", 6, &err), ERR_INVALID);
    assert_int_equal (outbox_ack (store, "nobody", 1, &err), ERR_INVALID);
    assert_ok (outbox_ack (store, "nobody", 0, &err), err);
    assert_ok (outbox_pending (store, "meta", &count, NULL, &err), err);
    assert_int_equal (count, 1);
    store_close (store);
}

static void numbers_go_on_after_everything_was_acknowledged (void **state)
{
    struct scratch *s = *state;
    struct err err = {0};
    struct store *store = store_open (s->db, steps, &err);
    append (store, "bank", 1);
    append (store, "bank", 2);
    assert_ok (outbox_ack (store, "bank", 2, &err), err);
    store_close (store);
    store = store_open (s->db, steps, &err);
    uint64_t count;
    time_us oldest;
    assert_ok (outbox_pending (store, "bank", &count, &oldest, &err), err);
    assert_int_equal (count, 0);
    assert_true (oldest == TIME_US_NONE);
    assert_int_equal (append (store, "bank", 3), 3);
    /* A key is free again once its message was delivered. */
    assert_int_equal (append (store, "bank", 1), 4);
    store_close (store);
}

static void goes_with_its_transaction (void **state)
{
    struct scratch *s = *state;
    struct err err = {0};
    struct store *store = store_open (s->db, steps, &err);
    struct uuid key = key_of (1);
    assert_int_equal (outbox_append (store, "bank", "x", &key, "", 0, 0, NULL, &err), ERR_INTERNAL);
    assert_ok (store_begin (store, &err), err);
    assert_ok (outbox_append (store, "bank", "x", &key, NULL, 0, 0, NULL, &err), err);
    store_rollback (store);
    struct outbox_message m;
    assert_int_equal (outbox_next (store, "bank", 0, &m, &err), 0);
    assert_int_equal (append (store, "bank", 1), 1);
    /* The same key again, and what is still good in that transaction stays good. */
    assert_ok (store_begin (store, &err), err);
    assert_int_equal (outbox_append (store, "bank", "x", &key, "", 0, 0, NULL, &err), ERR_EXISTS);
    key = key_of (2);
    assert_ok (outbox_append (store, "bank", "x", &key, "", 0, 0, NULL, &err), err);
    assert_ok (outbox_ack (store, "bank", 1, &err), err);
    assert_ok (store_commit (store, &err), err);
    assert_int_equal (outbox_next (store, "bank", 0, &m, &err), 1);
    assert_int_equal (m.seq, 2);
    assert_int_equal (m.payload_len, 0);
    outbox_message_clear (&m);
    store_close (store);
}

static void refuse (struct store *store, uint64_t seq, const char *why)
{
    struct err err = {0};
    assert_ok (store_begin (store, &err), err);
    assert_ok (outbox_bury (store, "bank", seq, ERR_NOT_FOUND, why, 77, &err), err);
    assert_ok (store_commit (store, &err), err);
}

/* One that is refused for good does not hold up the rest, is kept with its reason, and leaves no gap. */
static void dead_letters (void **state)
{
    struct scratch *s = *state;
    struct err err = {0};
    struct store *store = store_open (s->db, steps, &err);
    struct outbox_message m;
    struct outbox_dead dead;
    uint64_t count;
    for (uint32_t n = 1; n <= 3; n++)
        append (store, "bank", n);
    assert_int_equal (outbox_bury (store, "bank", 2, ERR_INVALID, "x", 1, &err), ERR_INTERNAL);
    refuse (store, 2, "no such hold");
    assert_int_equal (outbox_dead_next (store, "bank", 0, &dead, &err), 1);
    assert_int_equal (dead.message.seq, 2);
    assert_string_equal (dead.message.kind, "charge");
    assert_int_equal (dead.message.payload_len, 4);
    assert_string_equal (dead.reason, "no such hold");
    assert_int_equal (dead.code, ERR_NOT_FOUND);
    assert_int_equal (dead.died, 77);
    outbox_dead_clear (&dead);
    assert_int_equal (outbox_dead_next (store, "bank", 2, &dead, &err), 0);
    assert_int_equal (outbox_next (store, "bank", 1, &m, &err), 1);
    assert_int_equal (m.seq, 2);
    assert_string_equal (m.kind, OUTBOX_VOID);
    assert_int_equal (m.payload_len, 0);
    outbox_message_clear (&m);
    assert_ok (outbox_ack (store, "bank", 3, &err), err);
    assert_ok (outbox_dead_count (store, "bank", &count, &err), err);
    assert_int_equal (count, 1);
    assert_ok (store_begin (store, &err), err);
    assert_int_equal (outbox_bury (store, "bank", 2, ERR_INVALID, "again", 1, &err), ERR_NOT_FOUND);
    store_rollback (store);
    assert_ok (outbox_dead_forget (store, "bank", 77, 10, &err), err);
    assert_ok (outbox_dead_count (store, "bank", &count, &err), err);
    assert_int_equal (count, 1);
    assert_ok (outbox_dead_forget (store, "bank", 78, 10, &err), err);
    assert_ok (outbox_dead_count (store, "bank", &count, &err), err);
    assert_int_equal (count, 0);
    store_close (store);
}

/* What has arrived is kept for an addressee that forgets it, without waiting any more. */
static void kept_messages (void **state)
{
    struct scratch *s = *state;
    struct err err = {0};
    struct store *store = store_open (s->db, steps, &err);
    struct outbox_message m;
    uint64_t count, acked, last;
    time_us oldest;
    for (uint32_t n = 1; n <= 4; n++)
        append (store, "bank", n);
    assert_ok (outbox_ack_keep (store, "bank", 3, NULL, &err), err);
    assert_ok (outbox_pending (store, "bank", &count, &oldest, &err), err);
    assert_int_equal (count, 1);
    assert_int_equal (oldest, 1004);
    assert_ok (outbox_position (store, "bank", &acked, &last, &err), err);
    assert_int_equal (acked, 3);
    assert_int_equal (last, 4);
    assert_int_equal (outbox_next (store, "bank", 1, &m, &err), 1);
    assert_int_equal (m.seq, 2);
    outbox_message_clear (&m);
    assert_ok (outbox_forget (store, "bank", 1003, 10, &err), err); /* of those appended before */
    assert_int_equal (outbox_next (store, "bank", 0, &m, &err), 1);
    assert_int_equal (m.seq, 3);
    outbox_message_clear (&m);
    assert_ok (outbox_forget (store, "bank", 2000, 10, &err), err); /* one that waits stays */
    assert_int_equal (outbox_next (store, "bank", 0, &m, &err), 1);
    assert_int_equal (m.seq, 4);
    outbox_message_clear (&m);
    assert_ok (outbox_ack_keep (store, "bank", 4, "charge", &err), err); /* of this kind none */
    assert_int_equal (outbox_next (store, "bank", 0, &m, &err), 0);
    store_close (store);
}

/* An older copy of this store: the addressee has had the numbers that it would give again. */
static void renumbered (void **state)
{
    struct scratch *s = *state;
    struct err err = {0};
    struct store *store = store_open (s->db, steps, &err);
    struct outbox_message m;
    uint64_t acked, last;
    for (uint32_t n = 1; n <= 5; n++)
        append (store, "bank", n);
    assert_ok (outbox_ack (store, "bank", 2, &err), err);
    assert_ok (outbox_renumber (store, "bank", 5, &err), err); /* not ahead: nothing */
    assert_ok (outbox_renumber (store, "bank", 40, &err), err);
    assert_ok (outbox_position (store, "bank", &acked, &last, &err), err);
    assert_int_equal (acked, 40);
    assert_int_equal (last, 43);
    for (uint32_t n = 3; n <= 5; n++) {
        assert_int_equal (outbox_next (store, "bank", 37 + n, &m, &err), 1);
        assert_int_equal (m.seq, 38 + n);
        assert_memory_equal (m.payload, &n, 4);
        outbox_message_clear (&m);
    }
    assert_int_equal (append (store, "bank", 6), 44);
    assert_int_equal (outbox_renumber (store, "bank", UINT64_MAX, &err), ERR_LIMIT);
    store_close (store);
}

static void limits (void **state)
{
    struct scratch *s = *state;
    struct err err = {0};
    struct store *store = store_open (s->db, steps, &err);
    struct uuid key = key_of (1);
    char kind[65];
    memset (kind, 'k', 64);
    kind[64] = '\0';
    char *big = calloc (1, OUTBOX_PAYLOAD_MAX + 1);
    assert_ok (store_begin (store, &err), err);
    assert_int_equal (outbox_append (store, "bank", kind, &key, "", 0, 0, NULL, &err), ERR_LIMIT);
    assert_int_equal (
        outbox_append (store, "bank", "x", &key, big, OUTBOX_PAYLOAD_MAX + 1, 0, NULL, &err),
        ERR_LIMIT);
    assert_ok (
        outbox_append (store, "bank", kind + 1, &key, big, OUTBOX_PAYLOAD_MAX, 0, NULL, &err), err);
    assert_ok (store_commit (store, &err), err);
    /* As if a million waited. */
    assert_ok (store_exec (store, "UPDATE outbox_state SET next_seq = 1000001", &err), err);
    key = key_of (2);
    assert_ok (store_begin (store, &err), err);
    assert_int_equal (outbox_append (store, "bank", "x", &key, "", 0, 0, NULL, &err), ERR_LIMIT);
    store_rollback (store);
    assert_ok (outbox_ack (store, "bank", 1, &err), err);
    append (store, "bank", 2);
    free (big);
    store_close (store);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown (f, scratch_setup, scratch_teardown)
        T (in_order_per_destination),
        T (numbers_go_on_after_everything_was_acknowledged),
        T (goes_with_its_transaction),
        T (dead_letters),
        T (kept_messages),
        T (renumbered),
        T (limits),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
