/* quoteread: the reader's statement on quotes that keep their rates. The method of svc/quotes.c
 * calls it. It only reads and never blocks. */
#include "bank/store/quoteread.h"

#include "bank/store/reader_impl.h"

static void give_quotes (struct read *read, struct err *err, PGresult *const *res)
{
    uint32_t count = res ? (uint32_t)PQntuples (res[0]) : 0;
    struct quote_row *row = arena_array (read->arena, count, sizeof (*row));
    for (uint32_t i = 0; i < count; i++) {
        int r = (int)i;
        row[i] = (struct quote_row){.id = pgres_i64 (res[0], r, 0),
                                    .identity = pgres_text (res[0], r, 1, read->arena),
                                    .account = pgres_text (res[0], r, 2, read->arena),
                                    .made = pgres_i64 (res[0], r, 3),
                                    .expires = pgres_i64 (res[0], r, 4),
                                    .cancelled = pgres_i64 (res[0], r, 5),
                                    .reusable = pgres_bool (res[0], r, 6),
                                    .job = pgres_text (res[0], r, 7, read->arena),
                                    .site = pgres_text (res[0], r, 8, read->arena),
                                    .rate_version = pgres_i64 (res[0], r, 9),
                                    .price = pgres_i64 (res[0], r, 10)};
    }
    ((quoteread_f)read->any) (read->arg, err, row, count);
}

void quoteread (struct reader *reader, const char *who, const struct quotes_ask *ask,
                quoteread_f done, void *arg)
{
    struct read *read = read_start (reader, (reader_any_f)done, arg, give_quotes);
    if (!read)
        return;
    struct pgargs *args = pgargs_create (read->arena, "tti");
    pgargs_text (args, 0, who);
    if (ask->account[0])
        pgargs_text (args, 1, ask->account);
    pgargs_i64 (args, 2, ask->after);
    pgargs_i64 (args, 2, ask->limit);
    pgargs_i64 (args, 2, ask->id);
    pgargs_i64 (args, 2, ask->open_at);
    read_add (read, RD_QUOTES, args);
    pgbatch_submit (reader->loop);
}
