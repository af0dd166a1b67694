/* Shared by the reader's files. */
#ifndef NUI_BANK_STORE_READER_IMPL_H
#define NUI_BANK_STORE_READER_IMPL_H

#include <sys/queue.h>

#include "bank/store/load.h"
#include "bank/store/reader.h"
#include "bank/store/setup.h"
#include "bank/store/statements.h"

typedef void (*reader_any_f) (void);

enum read_kind {
    READ_BALANCE,
    READ_STATEMENT,
    READ_LIST,
    READ_RATES,
    READ_ENDED,
    READ_USAGE,
    READ_HOLDS,
    READ_QUOTE,
    READ_OTHER /* of another file: done.other */
};

struct read {
    LIST_ENTRY (read) link;
    struct reader *reader;
    enum read_kind kind;
    struct arena *arena;
    struct load *load;
    struct ledger_view *view;
    struct ledger_quote *quote;
    time_us now;
    const char *who, *account; /* of a balance that waits for the turn's end */
    struct err early;          /* refused before it was sent */
    struct event *later;
    union {
        void (*balance) (void *, const struct err *, const struct reader_alloc *, uint32_t);
        void (*statement) (void *, const struct err *, const struct reader_statement *);
        void (*list) (void *, const struct err *, const struct reader_item *, uint32_t);
        void (*rates) (void *, const struct err *, const struct reader_rate *, uint32_t);
        void (*ended) (void *, const struct err *, const int64_t *, uint32_t);
        void (*usage) (void *, const struct err *, const struct reader_usage *, uint32_t);
        void (*holds) (void *, const struct err *, const struct reader_hold *, uint32_t);
        /* Answers and need not free. */
        void (*other) (struct read *read, struct err *err, PGresult *const *res);
        void (*quote) (void *, const struct err *, struct ledger_quote *);
    } done;
    reader_any_f any; /* the caller's, of done.other */
    void *arg;
};

LIST_HEAD (read_list, read);

enum { READER_BALANCES_MAX = 256, READ_ARENA_BYTES = 1024 /* at first: most are a balance */ };

struct reader {
    struct setup setup; /* first: the argument of the connection's callbacks */
    struct event_base *base;
    duration_us (*silence) (void *arg); /* NULL: nobody looks */
    duration_us silence_max;
    struct log *log;
    struct pgloop *loop;
    struct read_list reads;
    uint32_t waiting;
    struct read *asked[READER_BALANCES_MAX]; /* balances, sent together at the end of this turn */
    uint32_t asked_count;
    bool frozen; /* something was once: balances are asked for with it */
    struct event *turn;
    void (*state) (void *arg, bool up);
    void *arg;
    char why[ERR_TEXT_MAX];
};

struct read *read_new (struct reader *reader, enum read_kind kind, void *arg);
/* False when it cannot be sent now: the refusal follows from the loop. */
bool read_sendable (struct read *read);
/* A read of another file, begun; NULL when it cannot be sent now. done: the caller's. */
struct read *read_start (struct reader *reader, reader_any_f done, void *arg,
                         void (*other) (struct read *, struct err *, PGresult *const *));
void read_free (struct read *read);
struct err read_err (const struct pgbatch_result *result); /* code 0: there are results */
void read_add (struct read *read, enum read_stmt stmt, struct pgargs *args);
/* A read of one statement: begun, and on its way. */
void read_send_one (struct read *read, enum read_stmt stmt, struct pgargs *args);

/* ---- balanceread.c ---- */

void balanceread_give (struct read *read, const struct err *err, const PGresult *res);
void balanceread_turn (evutil_socket_t fd, short what, void *arg);

#endif
