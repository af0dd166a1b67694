/* reader: balances, statements, lists and quotes over a second connection that cannot write.
 *
 * Results are valid during the callback only. who is the identity whose memberships limit what is
 * seen; "" sees everything. Every call ends with exactly one callback, from the loop. */
#ifndef NUI_BANK_STORE_READER_H
#define NUI_BANK_STORE_READER_H

#include <event2/event.h>

#include "bank/core/ledger.h"
#include "proto/base/log.h"

enum { READER_LINES_MAX = 10000, READER_WAITING_MAX = 4096 };

struct reader;

struct reader_alloc {
    const char *account, *project;
    int64_t id; /* 0: the account has no allocation */
    time_us valid_from, valid_to;
    credit_micro credit_limit, granted, settled, posted, held;
    const char *description;
    const char *frozen, *grant_frozen; /* "": it is not */
};

struct reader_line {
    uint64_t op_id;
    time_us at;
    const char *kind, *job, *site, *note, *who;
    credit_micro posted, held;
    const char *posted_wide, *held_wide;
};

/* Sums: at most what 64 bits hold, and as text (in credits) where they are beyond; else "". */
enum reader_statement_sum {
    READER_OPENING_POSTED,
    READER_OPENING_HELD,
    READER_CLOSING_POSTED,
    READER_CLOSING_HELD,
    READER_GRANTED,
    READER_CHARGED,
    READER_AVAILABLE, /* at the end: posted, less held, with credit limits */
    READER_STATEMENT_SUMS
};

struct reader_statement {
    const char *account; /* its name now */
    credit_micro sum[READER_STATEMENT_SUMS];
    const char *wide[READER_STATEMENT_SUMS];
    const struct reader_line *line;
    uint32_t line_count;
};

struct reader_item {
    const char *name, *project, *detail;
    /* Of projects and accounts only. */
    int64_t number;
    const char *parent, *description;
    bool closed;
};

struct reader_rate {
    const char *site;
    int64_t ppm;
    time_us from;
    uint32_t version;
    const char *measure;
    bool successful_only;
    const struct ledger_factor *factor;
    uint32_t factor_count;
};

/* What usage is grouped by; of the last three at most one. */
enum reader_by {
    READER_BY_USER = 1,
    READER_BY_PROJECT = 2,
    READER_BY_SITE = 4,
    READER_BY_ACCOUNT = 8,
    READER_BY_FUNDER = 16,
    READER_BY_GRANT = 32,
    READER_BY_QOS = 64,
    READER_BY_MACHINE = 128,
    READER_BY_JOB = 256,
    READER_BY_DAY = 512,
    READER_BY_WEEK = 1024,
    READER_BY_MONTH = 2048,
};
enum { READER_KEYS = 10 };

/* In the order of enum reader_by, the last one a period's first day; "" where not grouped by. */
struct reader_usage {
    const char *key[READER_KEYS];
    int64_t jobs, runs;             /* a job may run at several sites, and again */
    int64_t proc_s;                 /* what was charged for, shared out to those who paid */
    credit_micro charged, refunded; /* at their bounds where these say more */
    const char *charged_wide, *refunded_wide, *net_wide; /* credits beyond 64 bits; else "" */
};

struct reader_hold {
    int64_t id;
    const char *account, *identity;
    struct ledger_job job;
    credit_micro amount, left;
    time_us start, expires;
};

/* state is told when the connection comes and goes. */
struct reader *reader_create (struct event_base *base, struct log *log, const char *conninfo,
                              void (*state) (void *arg, bool up), void *arg, struct err *err);
void reader_destroy (struct reader *reader);
/* Beyond the bound nothing is answered: it says since when the database was not known to commit. */
void reader_silence (struct reader *reader, duration_us (*silence) (void *arg), duration_us bound);
void reader_start (struct reader *reader); /* once the schema is there */
bool reader_is_up (const struct reader *reader);

/* All of these: err->code 0 or why not. Rows are ordered by account, then end of validity. */
void reader_balance (struct reader *reader, const char *who, const char *account,
                     void (*done) (void *arg, const struct err *err, const struct reader_alloc *row,
                                   uint32_t count),
                     void *arg);
/* [from, to) by the moment of recording. ERR_NOT_FOUND for an account that who does not see,
 * ERR_LIMIT for more than READER_LINES_MAX operations. */
void reader_statement (struct reader *reader, const char *who, const char *account, time_us from,
                       time_us to,
                       void (*done) (void *arg, const struct err *err,
                                     const struct reader_statement *statement),
                       void *arg);
enum reader_list { READER_PROJECTS, READER_USERS, READER_ACCOUNTS, READER_SITES, READER_FUNDERS };
void reader_list (struct reader *reader, const char *who, enum reader_list kind,
                  void (*done) (void *arg, const struct err *err, const struct reader_item *item,
                                uint32_t count),
                  void *arg);
void reader_rates (struct reader *reader, const char *site,
                   void (*done) (void *arg, const struct err *err, const struct reader_rate *rate,
                                 uint32_t count),
                   void *arg);
/* Allocations that have begun since they were made, and that the bank has not noticed yet. */
void reader_begun (struct reader *reader, time_us now,
                   void (*done) (void *arg, const struct err *err, const int64_t *allocation_id,
                                 uint32_t count),
                   void *arg);
/* Allocations that ended before now with something left (at most 256). */
void reader_ended (struct reader *reader, time_us now,
                   void (*done) (void *arg, const struct err *err, const int64_t *allocation_id,
                                 uint32_t count),
                   void *arg);
/* What was charged and refunded in [from, to) by the moment of recording; account "": all that who
 * sees. ERR_LIMIT for more than READER_LINES_MAX rows, here and for holds. */
void reader_usage (struct reader *reader, const char *who, const char *account, time_us from,
                   time_us to, unsigned by,
                   void (*done) (void *arg, const struct err *err, const struct reader_usage *row,
                                 uint32_t count),
                   void *arg);
/* Open holds that expired at a moment or earlier (at most 256). */
void reader_stale (struct reader *reader, time_us expired,
                   void (*done) (void *arg, const struct err *err, const int64_t *hold_id,
                                 uint32_t count),
                   void *arg);
/* First the newest operation, then charges to be given back, by their operations, of jobs whose last
 * charge is due to be since that operation (at most 255). */
void reader_refunds (struct reader *reader, int64_t since_op,
                     void (*done) (void *arg, const struct err *err, const int64_t *op,
                                   uint32_t count),
                     void *arg);
/* Open holds that expire at a moment or earlier; own: a site's name that sees its own, or NULL; of one
 * site, or "". */
void reader_holds (struct reader *reader, const char *who, const char *own, const char *account,
                   const char *site, time_us expired,
                   void (*done) (void *arg, const struct err *err, const struct reader_hold *row,
                                 uint32_t count),
                   void *arg);
/* quote must stay valid until done; it is filled there. */
void reader_quote (struct reader *reader, struct ledger_quote *quote, time_us now,
                   void (*done) (void *arg, const struct err *err, struct ledger_quote *quote),
                   void *arg);

#endif
