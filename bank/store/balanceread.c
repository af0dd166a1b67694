/* Balances of one account each, those of a turn of the loop by one statement: at most as much work for
 * PostgreSQL as one SELECT per caller, and far less when many ask at once. What few accounts have, a former name or
 * something that is frozen, is asked for where the statement says so or has found nothing. */
#include <stdlib.h>

#include "bank/store/reader_impl.h"

/* What one statement asks for, in the arena of its last read: that one is answered last. */
struct together {
    uint32_t count;
    bool all; /* by RD_BALANCES_ALL */
    struct read *read[];
};
enum { COL_FROZEN = 11 }; /* a boolean; of RD_BALANCES_ALL two texts */

static struct reader_alloc row_of (struct arena *arena, const PGresult *res, int r, bool all)
{
    return (struct reader_alloc){.account = pgres_text (res, r, 0, arena),
                                 .project = pgres_text (res, r, 1, arena),
                                 .id = pgres_i64 (res, r, 2),
                                 .valid_from = pgres_i64 (res, r, 3),
                                 .valid_to = pgres_i64 (res, r, 4),
                                 .credit_limit = pgres_i64 (res, r, 5),
                                 .description = pgres_text (res, r, 6, arena),
                                 .granted = pgres_i64 (res, r, 7),
                                 .settled = pgres_i64 (res, r, 8),
                                 .posted = pgres_i64 (res, r, 9),
                                 .held = pgres_i64 (res, r, 10),
                                 .frozen = all ? pgres_text (res, r, COL_FROZEN, arena) : "",
                                 .grant_frozen =
                                     all ? pgres_text (res, r, COL_FROZEN + 1, arena) : ""};
}

/* Rows [from, to) of a result. */
static void give (struct read *read, const struct err *err, const PGresult *res, int from, int to,
                  bool all)
{
    struct reader_alloc *row = arena_array (read->arena, (size_t)(to - from), sizeof (*row));
    for (int r = from; r < to; r++)
        row[r - from] = row_of (read->arena, res, r, all);
    read->done.balance (read->arg, err, row, (uint32_t)(to - from));
}

void balanceread_give (struct read *read, const struct err *err, const PGresult *res)
{
    give (read, err, res, 0, res ? PQntuples (res) : 0, true);
}

static void send_all (struct reader *reader, struct read *const *read, uint32_t count, bool all);

static void on_balances (void *arg, const struct pgbatch_result *result)
{
    const struct together *asked = arg;
    struct read *again[READER_BALANCES_MAX];
    struct reader *reader = asked->read[0]->reader;
    struct err err = read_err (result);
    const PGresult *res = err.code ? NULL : result->result[0];
    bool all = asked->all;
    int rows = res ? PQntuples (res) : 0, at = 0, number = all ? COL_FROZEN + 2 : COL_FROZEN + 1;
    uint32_t count = asked->count, left = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct read *read = asked->read[i];
        int from = at;
        while (at < rows && pgres_i64 (res, at, number) == (int64_t)i)
            at++;
        if (res && !all && (at == from || pgres_bool (res, from, COL_FROZEN))) {
            reader->frozen = reader->frozen || at > from;
            again[left++] = read;
            continue;
        }
        give (read, &err, res, from, at, all);
        read_free (read);
    }
    if (left)
        send_all (reader, again, left, true);
}

static void send_all (struct reader *reader, struct read *const *read, uint32_t count, bool all)
{
    struct arena *arena = read[count - 1]->arena;
    struct together *together =
        arena_alloc (arena, sizeof (*together) + count * sizeof (together->read[0]));
    struct pgargs *args = pgargs_create (arena, "tti");
    together->count = count;
    together->all = all;
    for (uint32_t i = 0; i < count; i++) {
        together->read[i] = read[i];
        pgargs_text (args, 0, read[i]->who);
        pgargs_text (args, 1, read[i]->account);
        pgargs_i64 (args, 2, i);
    }
    pgargs_seal (args);
    pgbatch_begin (reader->loop, on_balances, together);
    pgbatch_add (reader->loop, BANK_STMT_COUNT + (all ? RD_BALANCES_ALL : RD_BALANCES), args);
    pgbatch_submit (reader->loop);
}

static void send_asked (struct reader *reader)
{
    uint32_t count = reader->asked_count;
    reader->asked_count = 0;
    send_all (reader, reader->asked, count, reader->frozen);
}

void balanceread_turn (evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct reader *reader = arg;
    if (reader->asked_count == 0)
        return;
    if (pgloop_is_up (reader->loop)) {
        send_asked (reader);
        return;
    }
    for (uint32_t i = 0; i < reader->asked_count; i++)
        read_sendable (reader->asked[i]); /* refuses it */
    reader->asked_count = 0;
}

void reader_balance (struct reader *reader, const char *who, const char *account,
                     void (*done) (void *arg, const struct err *err, const struct reader_alloc *row,
                                   uint32_t count),
                     void *arg)
{
    struct read *read = read_new (reader, READ_BALANCE, arg);
    read->done.balance = done;
    if (!read_sendable (read))
        return;
    if (!account[0]) {
        struct pgargs *args = pgargs_create (read->arena, "t");
        pgargs_text (args, 0, who);
        read_send_one (read, RD_BALANCE, args);
        return;
    }
    read->who = arena_strdup (read->arena, who);
    read->account = arena_strdup (read->arena, account);
    reader->asked[reader->asked_count++] = read;
    if (reader->asked_count == READER_BALANCES_MAX)
        send_asked (reader);
    else
        event_active (reader->turn, 0, 0);
}
