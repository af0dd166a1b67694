/* reader: queues what is asked, sends it on a connection whose session cannot write, and calls
 * back from the loop. The methods that list or quote call it; auditread, fundread, quoteread and
 * balanceread are parts of it. It never blocks, and each call is answered exactly once, also
 * when the connection is lost. */
#include "bank/store/reader.h"

#include <stdlib.h>
#include <string.h>

#include "bank/store/reader_impl.h"

static void on_setup (void *arg)
{
    setup_begin (&((struct reader *)arg)->setup);
}

static void on_ready (void *arg)
{
    (void)arg;
}

void reader_silence (struct reader *reader, duration_us (*silence) (void *arg), duration_us bound)
{
    reader->silence = silence;
    reader->silence_max = bound;
}

static void on_up (void *arg)
{
    struct reader *reader = arg;
    reader->why[0] = '\0';
    reader->state (reader->arg, true);
}

static void on_down (void *arg, const char *why)
{
    struct reader *reader = arg;
    strncpy (reader->why, why, sizeof (reader->why) - 1);
    reader->state (reader->arg, false);
}

static void give (struct read *read, struct err *err, const struct pgbatch_result *result);

struct reader *reader_create (struct event_base *base, struct log *log, const char *conninfo,
                              void (*state) (void *arg, bool up), void *arg, struct err *err)
{
    struct reader *reader = calloc (1, sizeof (*reader));
    if (!reader) {
        err_set (err, ERR_NOMEM, "reader: out of memory");
        return NULL;
    }
    struct pgloop_config config = {.base = base,
                                   .log = log,
                                   .label = "nui-bank reader",
                                   .conninfo = conninfo,
                                   .stmt = bank_stmt,
                                   .stmt_count = BANK_STMT_ALL,
                                   .setup = on_setup,
                                   .up = on_up,
                                   .down = on_down,
                                   .arg = reader};
    reader->base = base;
    reader->log = log;
    reader->state = state;
    reader->arg = arg;
    LIST_INIT (&reader->reads);
    reader->turn = event_new (base, -1, 0, balanceread_turn, reader);
    if (!reader->turn)
        abort ();
    reader->loop = pgloop_create (&config, err);
    if (!reader->loop) {
        event_free (reader->turn);
        free (reader);
        return NULL;
    }
    reader->setup =
        (struct setup){.loop = reader->loop, .log = log, .ready = on_ready, .arg = reader};
    return reader;
}

void read_free (struct read *read)
{
    LIST_REMOVE (read, link);
    read->reader->waiting--;
    if (read->later)
        event_free (read->later);
    arena_destroy (read->arena);
    free (read);
}

void reader_destroy (struct reader *reader)
{
    if (!reader)
        return;
    event_free (reader->turn);
    pgloop_destroy (reader->loop);
    struct read *read;
    struct err err = {0};
    err_set (&err, ERR_UNAVAILABLE, "the bank stops: ask again");
    while ((read = LIST_FIRST (&reader->reads)))
        give (read, &err, NULL);
    free (reader);
}

void reader_start (struct reader *reader)
{
    pgloop_start (reader->loop);
}

bool reader_is_up (const struct reader *reader)
{
    return pgloop_is_up (reader->loop);
}

/* ---- results ---- */

static void give_statement (struct read *read, struct err *err, PGresult *const *res)
{
    struct reader_statement st = {0};
    if (!err->code && PQntuples (res[0]) == 0)
        err_set (err, ERR_NOT_FOUND,
                 "there is no such account, or you are not a member of its project");
    if (!err->code && PQntuples (res[2]) > READER_LINES_MAX)
        err_set (err, ERR_LIMIT, "more than %d operations in this period: ask for a shorter one",
                 READER_LINES_MAX);
    if (err->code) {
        read->done.statement (read->arg, err, NULL);
        return;
    }
    st.account = pgres_text (res[0], 0, 1, read->arena);
    for (int i = 0; i < READER_STATEMENT_SUMS; i++) {
        st.sum[i] = pgres_i64 (res[1], 0, i);
        st.wide[i] = pgres_text (res[1], 0, READER_STATEMENT_SUMS + i, read->arena);
    }
    st.line_count = (uint32_t)PQntuples (res[2]);
    struct reader_line *line = arena_array (read->arena, st.line_count, sizeof (*line));
    for (uint32_t i = 0; i < st.line_count; i++) {
        int r = (int)i;
        line[i] = (struct reader_line){.op_id = (uint64_t)pgres_i64 (res[2], r, 0),
                                       .at = pgres_i64 (res[2], r, 1),
                                       .kind = pgres_text (res[2], r, 2, read->arena),
                                       .job = pgres_text (res[2], r, 3, read->arena),
                                       .site = pgres_text (res[2], r, 4, read->arena),
                                       .note = pgres_text (res[2], r, 5, read->arena),
                                       .who = pgres_text (res[2], r, 6, read->arena),
                                       .posted = pgres_i64 (res[2], r, 7),
                                       .held = pgres_i64 (res[2], r, 8),
                                       .posted_wide = pgres_text (res[2], r, 9, read->arena),
                                       .held_wide = pgres_text (res[2], r, 10, read->arena)};
    }
    st.line = line;
    read->done.statement (read->arg, err, &st);
}

static void give_list (struct read *read, const struct err *err, const PGresult *res)
{
    uint32_t count = res ? (uint32_t)PQntuples (res) : 0;
    struct reader_item *item = arena_array (read->arena, count, sizeof (*item));
    for (uint32_t i = 0; i < count; i++)
        item[i] = (struct reader_item){pgres_text (res, (int)i, 0, read->arena),
                                       pgres_text (res, (int)i, 1, read->arena),
                                       pgres_text (res, (int)i, 2, read->arena),
                                       0,
                                       "",
                                       "",
                                       false};
    for (uint32_t i = 0; i < count && PQnfields (res) > 3; i++) {
        item[i].number = pgres_i64 (res, (int)i, 3);
        item[i].parent = pgres_text (res, (int)i, 4, read->arena);
        item[i].description = pgres_text (res, (int)i, 5, read->arena);
        item[i].closed = pgres_bool (res, (int)i, 6);
    }
    read->done.list (read->arg, err, item, count);
}

static void give_rates (struct read *read, const struct err *err, const PGresult *res)
{
    uint32_t count = res ? (uint32_t)PQntuples (res) : 0;
    struct reader_rate *rate = arena_array (read->arena, count, sizeof (*rate));
    for (uint32_t i = 0; i < count; i++) {
        struct ledger_factor factor[LEDGER_FACTORS_MAX];
        int r = (int)i;
        rate[i] = (struct reader_rate){.site = pgres_text (res, r, 0, read->arena),
                                       .ppm = pgres_i64 (res, r, 1),
                                       .from = pgres_i64 (res, r, 2),
                                       .version = (uint32_t)pgres_i64 (res, r, 3),
                                       .measure = pgres_text (res, r, 4, read->arena),
                                       .successful_only = pgres_bool (res, r, 5)};
        rate[i].factor_count = load_factors (pgres_text (res, r, 6, read->arena), factor);
        rate[i].factor =
            arena_memdup (read->arena, factor, rate[i].factor_count * sizeof (*factor));
    }
    read->done.rates (read->arg, err, rate, count);
}

static void give_ended (struct read *read, const struct err *err, const PGresult *res)
{
    uint32_t count = res ? (uint32_t)PQntuples (res) : 0;
    int64_t *id = arena_array (read->arena, count, sizeof (*id));
    for (uint32_t i = 0; i < count; i++)
        id[i] = pgres_i64 (res, (int)i, 0);
    read->done.ended (read->arg, err, id, count);
}

static void too_many (struct err *err, const PGresult *res)
{
    if (res && PQntuples (res) > READER_LINES_MAX)
        err_set (err, ERR_LIMIT, "more than %d lines: ask for one account, or a shorter period",
                 READER_LINES_MAX);
}

static void give_usage (struct read *read, struct err *err, const PGresult *res)
{
    too_many (err, res);
    uint32_t count = res && !err->code ? (uint32_t)PQntuples (res) : 0;
    struct reader_usage *row = arena_array (read->arena, count, sizeof (*row));
    for (uint32_t i = 0; i < count; i++)
        row[i] = (struct reader_usage){
            .key = {0},
            .jobs = pgres_i64 (res, (int)i, READER_KEYS),
            .charged = pgres_i64 (res, (int)i, READER_KEYS + 1),
            .refunded = pgres_i64 (res, (int)i, READER_KEYS + 2),
            .charged_wide = pgres_text (res, (int)i, READER_KEYS + 3, read->arena),
            .refunded_wide = pgres_text (res, (int)i, READER_KEYS + 4, read->arena),
            .net_wide = pgres_text (res, (int)i, READER_KEYS + 5, read->arena),
            .runs = pgres_i64 (res, (int)i, READER_KEYS + 6),
            .proc_s = pgres_i64 (res, (int)i, READER_KEYS + 7)};
    for (uint32_t i = 0; i < count; i++)
        for (int k = 0; k < READER_KEYS; k++)
            row[i].key[k] = pgres_text (res, (int)i, k, read->arena);
    read->done.usage (read->arg, err, row, count);
}

static void give_holds (struct read *read, struct err *err, const PGresult *res)
{
    too_many (err, res);
    uint32_t count = res && !err->code ? (uint32_t)PQntuples (res) : 0;
    struct reader_hold *row = arena_array (read->arena, count, sizeof (*row));
    for (uint32_t i = 0; i < count; i++) {
        int r = (int)i;
        row[i] = (struct reader_hold){.id = pgres_i64 (res, r, 0),
                                      .account = pgres_text (res, r, 1, read->arena),
                                      .identity = pgres_text (res, r, 2, read->arena),
                                      .job = {.site = pgres_text (res, r, 3, read->arena),
                                              .grid_job = pgres_text (res, r, 4, read->arena),
                                              .site_job = pgres_text (res, r, 5, read->arena),
                                              .component = pgres_text (res, r, 6, read->arena),
                                              .incarnation = pgres_i64 (res, r, 7)},
                                      .amount = pgres_i64 (res, r, 8),
                                      .left = pgres_i64 (res, r, 9),
                                      .start = pgres_i64 (res, r, 10),
                                      .expires = pgres_i64 (res, r, 11)};
    }
    read->done.holds (read->arg, err, row, count);
}

static void give_quote (struct read *read, struct err *err, const struct pgbatch_result *result)
{
    if (!err->code) {
        load_take (read->load, result);
        ledger_quote (read->view, read->quote, err);
    }
    read->done.quote (read->arg, err, read->quote);
    ledger_view_destroy (read->view);
}

static void give (struct read *read, struct err *err, const struct pgbatch_result *result)
{
    PGresult *const *res = err->code ? NULL : result->result;
    switch (read->kind) {
    case READ_BALANCE:
        balanceread_give (read, err, res ? res[0] : NULL);
        break;
    case READ_STATEMENT:
        give_statement (read, err, res ? res + 1 : NULL); /* the first is RD_KEEP_PLAN's */
        break;
    case READ_LIST:
        give_list (read, err, res ? res[0] : NULL);
        break;
    case READ_RATES:
        give_rates (read, err, res ? res[0] : NULL);
        break;
    case READ_ENDED:
        give_ended (read, err, res ? res[0] : NULL);
        break;
    case READ_USAGE:
        give_usage (read, err, res ? res[0] : NULL);
        break;
    case READ_HOLDS:
        give_holds (read, err, res ? res[0] : NULL);
        break;
    case READ_QUOTE:
        give_quote (read, err, result);
        break;
    case READ_OTHER:
        read->done.other (read, err, res);
        break;
    }
    read_free (read);
}

struct err read_err (const struct pgbatch_result *result)
{
    struct err err = {0};
    if (result->end == PGBATCH_LOST)
        err_set (&err, ERR_UNAVAILABLE, "the bank's database went away: ask again");
    else if (result->end == PGBATCH_FAILED)
        err = result->err;
    return err;
}

static void on_read (void *arg, const struct pgbatch_result *result)
{
    struct err err = read_err (result);
    give (arg, &err, result);
}

/* ---- requests ---- */

static void on_later (evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct read *read = arg;
    give (read, &read->early, NULL);
}

struct read *read_new (struct reader *reader, enum read_kind kind, void *arg)
{
    struct read *read = calloc (1, sizeof (*read));
    if (!read)
        abort ();
    read->reader = reader;
    read->kind = kind;
    read->arena = arena_create (READ_ARENA_BYTES);
    read->arg = arg;
    LIST_INSERT_HEAD (&reader->reads, read, link);
    reader->waiting++;
    return read;
}

bool read_sendable (struct read *read)
{
    struct reader *reader = read->reader;
    char text[QUANTITY_TEXT_MAX];
    duration_us silence = reader->silence ? reader->silence (reader->arg) : 0;
    if (!pgloop_is_up (reader->loop))
        err_set (&read->early, ERR_UNAVAILABLE, "the bank's database is away (%s): ask again",
                 reader->why[0] ? reader->why : "not connected yet");
    else if (silence > reader->silence_max)
        err_set (
            &read->early, ERR_UNAVAILABLE,
            "the bank's database has committed nothing %s%s: another may have taken its place, and what it shows "
            "may be old: ask again later",
            silence == INT64_MAX ? "yet" : "for ",
            silence == INT64_MAX ? "" : duration_format (silence, text));
    else if (reader->waiting > READER_WAITING_MAX)
        err_set (&read->early, ERR_UNAVAILABLE,
                 "the bank has %u questions to answer: ask again later", reader->waiting);
    else
        return true;
    read->later = event_new (reader->base, -1, 0, on_later, read);
    if (!read->later)
        abort ();
    event_active (read->later, 0, 0);
    return false;
}

/* Begins a batch whose results go to the read's done; fill and submit it. */
static void read_begin (struct read *read)
{
    pgbatch_begin (read->reader->loop, on_read, read);
}

void read_add (struct read *read, enum read_stmt stmt, struct pgargs *args)
{
    pgargs_seal (args);
    pgbatch_add (read->reader->loop, BANK_STMT_COUNT + stmt, args);
}

struct read *read_start (struct reader *reader, reader_any_f done, void *arg,
                         void (*other) (struct read *, struct err *, PGresult *const *))
{
    struct read *read = read_new (reader, READ_OTHER, arg);
    read->done.other = other;
    read->any = done;
    if (!read_sendable (read))
        return NULL;
    read_begin (read);
    return read;
}

void read_send_one (struct read *read, enum read_stmt stmt, struct pgargs *args)
{
    read_begin (read);
    read_add (read, stmt, args);
    pgbatch_submit (read->reader->loop);
}

void reader_statement (struct reader *reader, const char *who, const char *account, time_us from,
                       time_us to,
                       void (*done) (void *arg, const struct err *err,
                                     const struct reader_statement *statement),
                       void *arg)
{
    struct read *read = read_new (reader, READ_STATEMENT, arg);
    read->done.statement = done;
    if (!read_sendable (read))
        return;
    struct pgargs *args = pgargs_create (read->arena, "tti");
    pgargs_text (args, 0, who);
    pgargs_text (args, 1, account);
    pgargs_i64 (args, 2, from);
    pgargs_i64 (args, 2, to);
    pgargs_i64 (args, 2, READER_LINES_MAX + 1);
    pgargs_seal (args);
    pgbatch_begin (reader->loop, on_read, read);
    pgbatch_add (reader->loop, BANK_STMT_COUNT + RD_KEEP_PLAN, NULL);
    pgbatch_add_first (reader->loop, BANK_STMT_COUNT + RD_ACCOUNT_SEEN, args, 2);
    pgbatch_add (reader->loop, BANK_STMT_COUNT + RD_STATEMENT_SUMS, args);
    pgbatch_add (reader->loop, BANK_STMT_COUNT + RD_STATEMENT_LINES, args);
    pgbatch_submit (reader->loop);
}

void reader_list (struct reader *reader, const char *who, enum reader_list kind,
                  void (*done) (void *arg, const struct err *err, const struct reader_item *item,
                                uint32_t count),
                  void *arg)
{
    static const enum read_stmt stmt[] = {RD_PROJECTS, RD_USERS, RD_ACCOUNTS, RD_SITES, RD_FUNDERS};
    struct read *read = read_new (reader, READ_LIST, arg);
    read->done.list = done;
    if (!read_sendable (read))
        return;
    struct pgargs *args = pgargs_create (read->arena, "t");
    pgargs_text (args, 0, who);
    read_send_one (read, stmt[kind], args);
}

void reader_rates (struct reader *reader, const char *site,
                   void (*done) (void *arg, const struct err *err, const struct reader_rate *rate,
                                 uint32_t count),
                   void *arg)
{
    struct read *read = read_new (reader, READ_RATES, arg);
    read->done.rates = done;
    if (!read_sendable (read))
        return;
    struct pgargs *args = pgargs_create (read->arena, "t");
    if (site[0])
        pgargs_text (args, 0, site);
    read_send_one (read, RD_RATES, args);
}

typedef void reader_ids_f (void *arg, const struct err *err, const int64_t *id, uint32_t count);

/* The ids that a statement finds for one moment, or since one id. */
static void read_ids (struct reader *reader, enum read_stmt stmt, int64_t moment,
                      reader_ids_f *done, void *arg)
{
    struct read *read = read_new (reader, READ_ENDED, arg);
    read->done.ended = done;
    if (!read_sendable (read))
        return;
    struct pgargs *args = pgargs_create (read->arena, "i");
    pgargs_i64 (args, 0, moment);
    read_send_one (read, stmt, args);
}

void reader_ended (struct reader *reader, time_us now,
                   void (*done) (void *arg, const struct err *err, const int64_t *allocation_id,
                                 uint32_t count),
                   void *arg)
{
    read_ids (reader, RD_ENDED, now, done, arg);
}

void reader_begun (struct reader *reader, time_us now,
                   void (*done) (void *arg, const struct err *err, const int64_t *allocation_id,
                                 uint32_t count),
                   void *arg)
{
    read_ids (reader, RD_BEGUN, now, done, arg);
}

void reader_usage (struct reader *reader, const char *who, const char *account, time_us from,
                   time_us to, unsigned by,
                   void (*done) (void *arg, const struct err *err, const struct reader_usage *row,
                                 uint32_t count),
                   void *arg)
{
    struct read *read = read_new (reader, READ_USAGE, arg);
    read->done.usage = done;
    if (!read_sendable (read))
        return;
    struct pgargs *args = pgargs_create (read->arena, "tti");
    pgargs_text (args, 0, who);
    if (account[0])
        pgargs_text (args, 1, account);
    pgargs_i64 (args, 2, from);
    pgargs_i64 (args, 2, to);
    pgargs_i64 (args, 2, READER_LINES_MAX + 1);
    for (unsigned bit = READER_BY_USER; bit <= READER_BY_MONTH; bit *= 2)
        pgargs_i64 (args, 2, (by & bit) != 0);
    read_send_one (read, RD_USAGE, args);
}

void reader_stale (struct reader *reader, time_us expired,
                   void (*done) (void *arg, const struct err *err, const int64_t *hold_id,
                                 uint32_t count),
                   void *arg)
{
    read_ids (reader, RD_STALE, expired, done, arg);
}

void reader_refunds (struct reader *reader, int64_t since_op,
                     void (*done) (void *arg, const struct err *err, const int64_t *op,
                                   uint32_t count),
                     void *arg)
{
    read_ids (reader, RD_REFUNDS, since_op, done, arg);
}

void reader_holds (struct reader *reader, const char *who, const char *own, const char *account,
                   const char *site, time_us expired,
                   void (*done) (void *arg, const struct err *err, const struct reader_hold *row,
                                 uint32_t count),
                   void *arg)
{
    struct read *read = read_new (reader, READ_HOLDS, arg);
    read->done.holds = done;
    if (!read_sendable (read))
        return;
    struct pgargs *args = pgargs_create (read->arena, "ttit");
    pgargs_text (args, 0, who);
    if (own)
        pgargs_text (args, 0, own);
    if (account[0])
        pgargs_text (args, 1, account);
    pgargs_i64 (args, 2, expired);
    pgargs_i64 (args, 2, READER_LINES_MAX + 1);
    if (site[0])
        pgargs_text (args, 3, site);
    read_send_one (read, RD_HOLDS, args);
}

void reader_quote (struct reader *reader, struct ledger_quote *quote, time_us now,
                   void (*done) (void *arg, const struct err *err, struct ledger_quote *quote),
                   void *arg)
{
    struct read *read = read_new (reader, READ_QUOTE, arg);
    read->done.quote = done;
    read->quote = quote;
    read->now = now;
    if (!read_sendable (read))
        return;
    read->view = ledger_view_create (read->arena, now);
    read->load = load_create (read->arena, read->view);
    load_want_quote (read->load, quote);
    pgbatch_begin (reader->loop, on_read, read);
    load_send (read->load, reader->loop);
    pgbatch_submit (reader->loop);
}
