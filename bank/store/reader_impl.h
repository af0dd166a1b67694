/* Shared by reader.c and auditread.c. */
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
    struct err early; /* refused before it was sent */
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

struct reader {
    struct setup setup; /* first: the argument of the connection's callbacks */
    struct event_base *base;
    struct log *log;
    struct pgloop *loop;
    struct read_list reads;
    uint32_t waiting;
    void (*state) (void *arg, bool up);
    void *arg;
    char why[ERR_TEXT_MAX];
};

struct read *read_new (struct reader *reader, enum read_kind kind, void *arg);
/* False when it cannot be sent now: the refusal follows from the loop. */
bool read_sendable (struct read *read);
/* Begins a batch whose results go to the read's done; fill and submit it. */
void read_begin (struct read *read);
/* A read of another file, begun; NULL when it cannot be sent now. done: the caller's. */
struct read *read_start (struct reader *reader, reader_any_f done, void *arg,
                         void (*other) (struct read *, struct err *, PGresult *const *));
void read_add (struct read *read, enum read_stmt stmt, struct pgargs *args);

#endif
