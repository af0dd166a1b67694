/* pgloop: one PostgreSQL connection on a libevent loop, never blocking.
 *
 * Life of a connection: connect, setup (the owner runs plain statements one after another), then
 * pipeline mode with the statements prepared: up. Lost connections are made again with back-off.
 * In pipeline mode work is sent as batches: prepared statements ended by a Sync. A batch ends when
 * the server's answer to its Sync is there, so what it committed is committed.
 *
 * Callbacks run from the event loop, never inside a call of the owner's. */
#ifndef NUI_BANK_STORE_PGLOOP_H
#define NUI_BANK_STORE_PGLOOP_H

#include <event2/event.h>
#include <libpq-fe.h>
#include <stdbool.h>

#include "bank/store/pgarg.h"
#include "proto/base/err.h"
#include "proto/base/log.h"

struct pgloop;

enum { PGBATCH_QUERIES_MAX = 64 }; /* more than there are statements that write */

/* Where all parameters are arrays of "unnest (…) AS n", this is prepared as a SELECT of one unnest per column,
 * which PostgreSQL takes value by value: in FROM it would write each column to a store of its own first (measured:
 * 1.3 us for a row of eight columns, not 0.35). A second time it is prepared as "(VALUES (…)) AS n", for when there
 * is one row: starting an unnest of twenty columns costs more than the row does. */
struct pgstmt {
    const char *name;
    const char *sql;
};

enum { PGWITH_MAX = 8, PGWITH_PARAMS_MAX = 96 };

/* Statements for rows of their own each (no two of one row) that are also prepared as one, "WITH w0 AS (…), … the
 * last", each with one row but the last: a lone request pays for starting and ending one statement, not eight. */
struct pgwith {
    const char *name;
    unsigned count;
    unsigned stmt[PGWITH_MAX];
};

struct pgloop_config {
    struct event_base *base;
    struct log *log;
    const char *label;         /* in the log and as application_name: "nui-bank committer" */
    const char *conninfo;      /* libpq's */
    const struct pgstmt *stmt; /* prepared when setup is done; stmt_count of them */
    unsigned stmt_count;
    const struct pgwith *with;
    unsigned with_count;
    /* Connected: use pgloop_exec, then pgloop_ready. */
    void (*setup) (void *arg);
    void (*up) (void *arg);
    /* Called once per connection that was up, after its batches ended LOST, and for each failed
     * attempt to connect; why is one sentence. */
    void (*down) (void *arg, const char *why);
    void *arg;
};

struct pgloop *pgloop_create (const struct pgloop_config *config, struct err *err);
void pgloop_destroy (struct pgloop *loop);
void pgloop_start (struct pgloop *loop); /* begins to connect; later calls do nothing */
/* Ends the connection, and its batches LOST, until the next start; down is not called. */
void pgloop_stop (struct pgloop *loop);
bool pgloop_is_up (const struct pgloop *loop);

/* ---- setup: one at a time ---- */

/* result is the last statement's, or one with an error status; valid during the call. */
typedef void (*pgloop_exec_f) (void *arg, const PGresult *result);
void pgloop_exec (struct pgloop *loop, const char *sql, pgloop_exec_f done);
void pgloop_ready (struct pgloop *loop);
/* Gives up this connection and tries again later. */
void pgloop_fail (struct pgloop *loop, const char *why);

/* ---- batches ---- */

enum pgbatch_end {
    PGBATCH_OK,
    PGBATCH_FAILED, /* the server refused a statement: see sqlstate and err */
    PGBATCH_LOST,   /* the connection went before the answer: outcome unknown */
};

struct pgbatch_result {
    enum pgbatch_end end;
    PGresult *const *result; /* one per query that was added, when end is OK */
    unsigned count;
    char sqlstate[6];
    struct err err;
};

typedef void (*pgbatch_done_f) (void *arg, const struct pgbatch_result *result);

/* A batch is begun, filled and submitted without returning to the loop. Needs pgloop_is_up. */
void pgbatch_begin (struct pgloop *loop, pgbatch_done_f done, void *arg);
void pgbatch_add (struct pgloop *loop, unsigned stmt, const struct pgargs *args);
/* With the first count parameters of args only: never as one row. */
void pgbatch_add_first (struct pgloop *loop, unsigned stmt, const struct pgargs *args,
                        unsigned count);
/* One statement for those of config.with[with], where their args, which stand by the statement's number, fit:
 * each has one row, the last one or more. */
bool pgwith_fits (const struct pgwith *with, struct pgargs *const *args_by_stmt);
void pgbatch_add_with (struct pgloop *loop, unsigned with, struct pgargs *const *args_by_stmt);
/* mark is called, with the batch's arg, when all that was added before has been done, unless
 * something failed. */
void pgbatch_mark (struct pgloop *loop, void (*mark) (void *arg));
/* Sends what was added so far: the server begins with it while the rest is being made. */
void pgbatch_push (struct pgloop *loop);
void pgbatch_submit (struct pgloop *loop);

#endif
