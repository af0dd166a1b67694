/* pgloop: libpq's non-blocking calls driven by libevent: connect, prepare, send batches, hand
 * results back in order. Committer, reader and checkpointer each have their own. It never waits,
 * and never sends a batch again by itself: what became of one when the connection went only its
 * owner can find out. */
#include "bank/store/pgloop.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "proto/base/clock.h"
#include "proto/base/strbuf.h"
#include "proto/base/text.h"

enum state { ST_IDLE, ST_WAITING, ST_CONNECTING, ST_SETUP, ST_PREPARING, ST_UP };

enum { BACKOFF_FIRST_MS = 50, BACKOFF_MAX_MS = 3000, CONNECT_TIMEOUT_S = 15 };

struct pgbatch {
    STAILQ_ENTRY (pgbatch) link;
    PGresult *result[PGBATCH_QUERIES_MAX];
    unsigned count; /* queries sent */
    unsigned at;    /* queries answered */
    bool failed;
    char sqlstate[6];
    struct err err;
    void (*mark) (void *arg); /* NULL: none, or called */
    unsigned mark_at;         /* when so many were answered */
    pgbatch_done_f done;
    void *arg;
};

STAILQ_HEAD (batch_list, pgbatch);

struct pgloop {
    struct pgloop_config config;
    enum state state;
    PGconn *conn;
    struct event *read_event, *write_event; /* on the connection's socket */
    struct event *timer;                    /* back-off, connect time-out */
    struct event *poke;                     /* look at the connection again from the loop */
    unsigned backoff_ms;
    bool broken;
    pgloop_exec_f exec_done;
    PGresult *exec_result;
    struct pgbatch *open;   /* being filled */
    struct batch_list sent; /* waiting for their answers, in order */
};

static void on_read (evutil_socket_t fd, short what, void *arg);
static void on_write (evutil_socket_t fd, short what, void *arg);
static void on_timer (evutil_socket_t fd, short what, void *arg);
static void on_poke (evutil_socket_t fd, short what, void *arg);

struct pgloop *pgloop_create (const struct pgloop_config *config, struct err *err)
{
    struct pgloop *loop = calloc (1, sizeof (*loop));
    if (!loop) {
        err_set (err, ERR_NOMEM, "%s: out of memory", config->label);
        return NULL;
    }
    loop->config = *config;
    loop->backoff_ms = BACKOFF_FIRST_MS;
    STAILQ_INIT (&loop->sent);
    loop->timer = evtimer_new (config->base, on_timer, loop);
    loop->poke = event_new (config->base, -1, 0, on_poke, loop);
    if (!loop->timer || !loop->poke) {
        err_set (err, ERR_NOMEM, "%s: out of memory", config->label);
        pgloop_destroy (loop);
        return NULL;
    }
    return loop;
}

static void unwatch (struct pgloop *loop)
{
    if (loop->read_event)
        event_free (loop->read_event);
    if (loop->write_event)
        event_free (loop->write_event);
    loop->read_event = loop->write_event = NULL;
}

static void batch_free (struct pgbatch *batch)
{
    for (unsigned i = 0; i < batch->count; i++)
        PQclear (batch->result[i]);
    free (batch);
}

static void disconnect (struct pgloop *loop)
{
    unwatch (loop);
    evtimer_del (loop->timer);
    PQclear (loop->exec_result);
    loop->exec_result = NULL;
    loop->exec_done = NULL;
    PQfinish (loop->conn);
    loop->conn = NULL;
    loop->broken = false;
}

void pgloop_destroy (struct pgloop *loop)
{
    if (!loop)
        return;
    disconnect (loop);
    struct pgbatch *batch;
    while ((batch = STAILQ_FIRST (&loop->sent))) {
        STAILQ_REMOVE_HEAD (&loop->sent, link);
        batch_free (batch);
    }
    if (loop->timer)
        event_free (loop->timer);
    if (loop->poke)
        event_free (loop->poke);
    free (loop);
}

bool pgloop_is_up (const struct pgloop *loop)
{
    return loop->state == ST_UP && !loop->broken;
}

static void batch_finish (struct pgbatch *batch, enum pgbatch_end end, const char *why)
{
    struct pgbatch_result result = {.end = end, .result = batch->result, .count = batch->count};
    memcpy (result.sqlstate, batch->sqlstate, sizeof (result.sqlstate));
    result.err = batch->err;
    if (end == PGBATCH_LOST)
        err_set (&result.err, ERR_UNAVAILABLE, "%s", why);
    if (batch->done)
        batch->done (batch->arg, &result);
    batch_free (batch);
}

static void arm (struct pgloop *loop, unsigned ms)
{
    struct timeval tv = {ms / 1000, (long)(ms % 1000) * 1000};
    evtimer_add (loop->timer, &tv);
}

static void lose_batches (struct pgloop *loop, const char *why)
{
    struct batch_list lost = STAILQ_HEAD_INITIALIZER (lost);
    STAILQ_CONCAT (&lost, &loop->sent);
    struct pgbatch *batch;
    while ((batch = STAILQ_FIRST (&lost))) {
        STAILQ_REMOVE_HEAD (&lost, link);
        batch_finish (batch, PGBATCH_LOST, why);
    }
}

/* The connection is of no use any more: ends what was sent, tells the owner, waits, tries again. */
static void lose (struct pgloop *loop, const char *why)
{
    char text[ERR_TEXT_MAX];
    text_printf (text, sizeof (text), "%s", why);
    for (char *end = text + strlen (text); end > text && (end[-1] == '\n' || end[-1] == ' ');)
        *--end = '\0';
    for (char *c = text; *c; c++)
        if (*c == '\n' || *c == '\t')
            *c = ' ';
    disconnect (loop);
    loop->state = ST_WAITING;
    uint8_t jitter;
    random_bytes (&jitter, 1);
    arm (loop, loop->backoff_ms / 2 + loop->backoff_ms * jitter / 512);
    loop->backoff_ms =
        loop->backoff_ms * 2 > BACKOFF_MAX_MS ? BACKOFF_MAX_MS : loop->backoff_ms * 2;
    lose_batches (loop, text);
    char quoted[ERR_TEXT_MAX];
    log_event (loop->config.log, LOG_LEVEL_WARN, "pg", "down", "connection=%s why=%s",
               log_quote (loop->config.label, (char[128]){0}, 128),
               log_quote (text, quoted, sizeof (quoted)));
    loop->config.down (loop->config.arg, text);
}

static void watch (struct pgloop *loop, bool writing)
{
    int fd = PQsocket (loop->conn);
    if (!loop->read_event || event_get_fd (loop->read_event) != fd) {
        unwatch (loop);
        loop->read_event = event_new (loop->config.base, fd, EV_READ | EV_PERSIST, on_read, loop);
        loop->write_event = event_new (loop->config.base, fd, EV_WRITE, on_write, loop);
        assert (loop->read_event && loop->write_event);
        /* Before calls, where the base has priorities: a burst of them must not let the server wait
         * for the rest of a batch. */
        event_priority_set (loop->read_event, 0);
        event_priority_set (loop->write_event, 0);
        event_add (loop->read_event, NULL);
    }
    if (writing)
        event_add (loop->write_event, NULL);
}

static void flush (struct pgloop *loop)
{
    int rc = PQflush (loop->conn);
    if (rc < 0) {
        loop->broken = true;
        event_active (loop->poke, 0, 0);
        return;
    }
    watch (loop, rc > 0);
}

static void connect_poll (struct pgloop *loop)
{
    PostgresPollingStatusType status = PQconnectPoll (loop->conn);
    switch (status) {
    case PGRES_POLLING_OK:
        evtimer_del (loop->timer);
        if (PQsetnonblocking (loop->conn, 1) != 0) {
            lose (loop, "cannot make the connection non-blocking");
            return;
        }
        loop->state = ST_SETUP;
        unwatch (loop);
        watch (loop, false);
        loop->config.setup (loop->config.arg);
        return;
    case PGRES_POLLING_READING:
    case PGRES_POLLING_WRITING:
        /* The socket may be another one than before, even with the same number. */
        unwatch (loop);
        watch (loop, status == PGRES_POLLING_WRITING);
        return;
    default:
        lose (loop, PQerrorMessage (loop->conn));
    }
}

/* "relation exists already, skipping" and the like. */
static void on_notice (void *arg, const char *message)
{
    struct pgloop *loop = arg;
    char quoted[ERR_TEXT_MAX];
    log_event (loop->config.log, LOG_LEVEL_DEBUG, "pg", "notice", "text=%s",
               log_quote (message, quoted, sizeof (quoted)));
}

static void connect_begin (struct pgloop *loop)
{
    const char *keyword[] = {"dbname", "fallback_application_name", NULL};
    const char *value[] = {loop->config.conninfo, loop->config.label, NULL};
    loop->conn = PQconnectStartParams (keyword, value, 1);
    loop->state = ST_CONNECTING;
    if (!loop->conn || PQstatus (loop->conn) == CONNECTION_BAD) {
        lose (loop, loop->conn ? PQerrorMessage (loop->conn) : "out of memory");
        return;
    }
    PQsetNoticeProcessor (loop->conn, on_notice, loop);
    arm (loop, CONNECT_TIMEOUT_S * 1000);
    watch (loop, true);
}

void pgloop_start (struct pgloop *loop)
{
    if (loop->state != ST_IDLE)
        return;
    loop->state = ST_WAITING;
    arm (loop, 0);
}

void pgloop_stop (struct pgloop *loop)
{
    disconnect (loop);
    loop->state = ST_IDLE;
    loop->backoff_ms = BACKOFF_FIRST_MS;
    lose_batches (loop, "stopped");
}

static void on_timer (evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct pgloop *loop = arg;
    if (loop->state == ST_WAITING)
        connect_begin (loop);
    else
        lose (loop, "no answer from PostgreSQL in time");
}

void pgloop_fail (struct pgloop *loop, const char *why)
{
    lose (loop, why);
}

/* ---- setup ---- */

void pgloop_exec (struct pgloop *loop, const char *sql, pgloop_exec_f done)
{
    assert (loop->state == ST_SETUP && !loop->exec_done);
    loop->exec_done = done;
    if (!PQsendQuery (loop->conn, sql))
        loop->broken = true;
    flush (loop);
}

static void setup_results (struct pgloop *loop)
{
    while (loop->exec_done && !PQisBusy (loop->conn)) {
        PGresult *result = PQgetResult (loop->conn);
        if (result) {
            /* The last one counts, or the first error. */
            ExecStatusType kept = PQresultStatus (loop->exec_result);
            if (loop->exec_result && kept != PGRES_COMMAND_OK && kept != PGRES_TUPLES_OK) {
                PQclear (result);
            } else {
                PQclear (loop->exec_result);
                loop->exec_result = result;
            }
            continue;
        }
        pgloop_exec_f done = loop->exec_done;
        PGresult *last = loop->exec_result;
        loop->exec_done = NULL;
        loop->exec_result = NULL;
        done (loop->config.arg, last);
        PQclear (last);
        if (loop->state != ST_SETUP)
            return;
    }
}

static void prepared (void *arg, const struct pgbatch_result *result)
{
    struct pgloop *loop = arg;
    if (result->end == PGBATCH_LOST)
        return; /* lose has told the owner */
    if (result->end == PGBATCH_FAILED) {
        loop->broken = true;
        log_event (loop->config.log, LOG_LEVEL_ERROR, "pg", "prepare_failed", "why=%s",
                   log_quote (result->err.text, (char[ERR_TEXT_MAX]){0}, ERR_TEXT_MAX));
        event_active (loop->poke, 0, 0);
        return;
    }
    loop->backoff_ms = BACKOFF_FIRST_MS;
    loop->state = ST_UP;
    loop->config.up (loop->config.arg);
}

static const char *row_name (const struct pgstmt *stmt, char out[64])
{
    snprintf (out, 64, "%s_row", stmt->name);
    return out;
}

static const char *row_begin (const struct pgstmt *stmt)
{
    const char *from = strstr (stmt->sql, "unnest ("), *to = from ? strchr (from, ')') : NULL;
    return to && strncmp (to, ") AS n", 6) == 0 ? from : NULL;
}

/* "… unnest ($1::bigint[], $2::text[]) AS …" as "… (VALUES ($1::bigint, $2::text)) AS …" where is_row, else as
 * "… (SELECT unnest ($1::bigint[]), unnest ($2::text[])) AS …". */
static void rows_sql (const struct pgstmt *stmt, bool is_row, struct strbuf *out)
{
    const char *from = row_begin (stmt), *to = strchr (from, ')');
    strbuf_append (out, stmt->sql, (size_t)(from - stmt->sql));
    strbuf_puts (out, is_row ? "(VALUES (" : "(SELECT unnest (");
    for (const char *c = from + strlen ("unnest ("); c < to; c++) {
        if (!is_row && *c == ',')
            strbuf_puts (out, "), unnest (");
        else if (!is_row || (*c != '[' && *c != ']'))
            strbuf_putc (out, *c);
    }
    strbuf_puts (out, ")");
    strbuf_puts (out, to);
}

static void prepare_as (struct pgloop *loop, const char *name, const char *sql)
{
    if (!PQsendPrepare (loop->conn, name, sql, 0, NULL))
        loop->broken = true;
    loop->open->count++;
}

static void prepare (struct pgloop *loop, const struct pgstmt *stmt)
{
    char name[64];
    struct strbuf sql = STRBUF_INIT;
    if (!row_begin (stmt)) {
        prepare_as (loop, stmt->name, stmt->sql);
        return;
    }
    rows_sql (stmt, false, &sql);
    prepare_as (loop, stmt->name, strbuf_text (&sql));
    strbuf_clear (&sql);
    rows_sql (stmt, true, &sql);
    prepare_as (loop, row_name (stmt, name), strbuf_text (&sql));
    strbuf_free (&sql);
}

/* A statement of a WITH: its parameters follow those of the ones before it. */
static unsigned with_sql (const struct pgstmt *stmt, bool is_row, unsigned from, struct strbuf *out)
{
    struct strbuf sql = STRBUF_INIT;
    unsigned count = 0;
    rows_sql (stmt, is_row, &sql);
    for (const char *c = strbuf_text (&sql); *c;) {
        strbuf_putc (out, *c);
        if (*c++ != '$')
            continue;
        char *end;
        unsigned number = (unsigned)strtoul (c, &end, 10);
        count = number > count ? number : count;
        strbuf_printf (out, "%u", from + number);
        c = end;
    }
    strbuf_free (&sql);
    return from + count;
}

static void prepare_with (struct pgloop *loop, const struct pgwith *with)
{
    struct strbuf sql = STRBUF_INIT;
    unsigned params = 0;
    for (unsigned i = 0; i < with->count; i++) {
        bool last = i + 1 == with->count;
        if (!last)
            strbuf_printf (&sql, "%s w%u AS (", i ? "," : "WITH", i);
        params = with_sql (&loop->config.stmt[with->stmt[i]], !last, params, &sql);
        strbuf_puts (&sql, last ? "" : ")\n");
    }
    assert (params <= PGWITH_PARAMS_MAX);
    prepare_as (loop, with->name, strbuf_text (&sql));
    strbuf_free (&sql);
}

void pgloop_ready (struct pgloop *loop)
{
    assert (loop->state == ST_SETUP && !loop->exec_done);
    loop->state = ST_PREPARING;
    if (!PQenterPipelineMode (loop->conn)) {
        loop->broken = true;
        event_active (loop->poke, 0, 0);
        return;
    }
    /* More statements than a batch may hold are prepared in several; the last one reports. */
    for (unsigned i = 0; i < loop->config.stmt_count;) {
        unsigned end = i + (PGBATCH_QUERIES_MAX - PGWITH_MAX) / 2; /* some are prepared twice */
        if (end > loop->config.stmt_count)
            end = loop->config.stmt_count;
        pgbatch_begin (loop, end == loop->config.stmt_count ? prepared : NULL, loop);
        for (unsigned k = 0; k < loop->config.with_count && i == 0; k++)
            prepare_with (loop, &loop->config.with[k]);
        for (; i < end; i++)
            prepare (loop, &loop->config.stmt[i]);
        pgbatch_submit (loop);
    }
}

/* ---- batches ---- */

void pgbatch_begin (struct pgloop *loop, pgbatch_done_f done, void *arg)
{
    assert (!loop->open && loop->conn);
    loop->open = calloc (1, sizeof (*loop->open));
    assert (loop->open);
    loop->open->done = done;
    loop->open->arg = arg;
}

void pgbatch_add (struct pgloop *loop, unsigned stmt, const struct pgargs *args)
{
    const char *value[PGARGS_MAX];
    int length[PGARGS_MAX];
    char name[64];
    assert (stmt < loop->config.stmt_count);
    if (!args || pgargs_rows (args) != 1 || !row_begin (&loop->config.stmt[stmt])) {
        pgbatch_add_first (loop, stmt, args, args ? args->count : 0);
        return;
    }
    assert (loop->open && loop->open->count < PGBATCH_QUERIES_MAX);
    pgargs_row (args, value, length);
    if (!PQsendQueryPrepared (loop->conn, row_name (&loop->config.stmt[stmt], name),
                              (int)args->count, value, length, args->format, 1))
        loop->broken = true;
    loop->open->count++;
}

void pgbatch_add_first (struct pgloop *loop, unsigned stmt, const struct pgargs *args,
                        unsigned count)
{
    assert (loop->open && loop->open->count < PGBATCH_QUERIES_MAX &&
            stmt < loop->config.stmt_count);
    if (!PQsendQueryPrepared (loop->conn, loop->config.stmt[stmt].name, (int)count,
                              args ? args->value : NULL, args ? args->length : NULL,
                              args ? args->format : NULL, 1))
        loop->broken = true;
    loop->open->count++;
}

bool pgwith_fits (const struct pgwith *with, struct pgargs *const *args_by_stmt)
{
    for (unsigned i = 0; i < with->count; i++) {
        const struct pgargs *args = args_by_stmt[with->stmt[i]];
        if (!args || (pgargs_rows (args) != 1 && i + 1 < with->count))
            return false;
    }
    return true;
}

void pgbatch_add_with (struct pgloop *loop, unsigned with, struct pgargs *const *args_by_stmt)
{
    const struct pgwith *w = &loop->config.with[with];
    const char *value[PGWITH_PARAMS_MAX];
    int length[PGWITH_PARAMS_MAX], format[PGWITH_PARAMS_MAX];
    unsigned count = 0;
    assert (with < loop->config.with_count && loop->open->count < PGBATCH_QUERIES_MAX);
    for (unsigned i = 0; i < w->count; i++) {
        const struct pgargs *args = args_by_stmt[w->stmt[i]];
        assert (count + args->count <= PGWITH_PARAMS_MAX);
        if (i + 1 < w->count) {
            pgargs_row (args, value + count, length + count);
        } else {
            memcpy (value + count, args->value, args->count * sizeof (*value));
            memcpy (length + count, args->length, args->count * sizeof (*length));
        }
        for (unsigned k = 0; k < args->count; k++)
            format[count++] = 1;
    }
    if (!PQsendQueryPrepared (loop->conn, w->name, (int)count, value, length, format, 1))
        loop->broken = true;
    loop->open->count++;
}

void pgbatch_mark (struct pgloop *loop, void (*mark) (void *arg))
{
    assert (loop->open && !loop->open->mark && loop->open->count > 0);
    loop->open->mark = mark;
    loop->open->mark_at = loop->open->count;
    if (!PQsendFlushRequest (loop->conn)) /* else the server keeps its answers until the end */
        loop->broken = true;
}

void pgbatch_push (struct pgloop *loop)
{
    assert (loop->open);
    if (!loop->broken)
        flush (loop);
}

void pgbatch_submit (struct pgloop *loop)
{
    assert (loop->open);
    if (!PQpipelineSync (loop->conn))
        loop->broken = true;
    STAILQ_INSERT_TAIL (&loop->sent, loop->open, link);
    loop->open = NULL;
    if (loop->broken)
        event_active (loop->poke, 0, 0);
    else
        flush (loop);
}

static void keep_result (struct pgbatch *batch, PGresult *result)
{
    ExecStatusType status = PQresultStatus (result);
    assert (batch->at < batch->count);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK && !batch->failed) {
        const char *state = PQresultErrorField (result, PG_DIAG_SQLSTATE);
        const char *text = PQresultErrorField (result, PG_DIAG_MESSAGE_PRIMARY);
        batch->failed = true;
        snprintf (batch->sqlstate, sizeof (batch->sqlstate), "%s", state ? state : "");
        err_set (&batch->err, ERR_INTERNAL, "PostgreSQL: %s (%s)",
                 text ? text : PQresultErrorMessage (result), batch->sqlstate);
    }
    PQclear (batch->result[batch->at]);
    batch->result[batch->at] = result;
}

static void at_mark (struct pgbatch *batch)
{
    void (*mark) (void *arg) = batch->mark;
    if (!mark || batch->at != batch->mark_at || batch->failed)
        return;
    batch->mark = NULL;
    mark (batch->arg);
}

static void batch_results (struct pgloop *loop)
{
    PGconn *conn = loop->conn;
    while (loop->conn == conn && !STAILQ_EMPTY (&loop->sent) && !PQisBusy (conn)) {
        struct pgbatch *batch = STAILQ_FIRST (&loop->sent);
        PGresult *result = PQgetResult (conn);
        if (!result) {
            batch->at++;
            if (batch->at > batch->count) { /* the connection has nothing more for us */
                loop->broken = true;
                return;
            }
            at_mark (batch);
            continue;
        }
        if (PQresultStatus (result) == PGRES_PIPELINE_SYNC) {
            PQclear (result);
            STAILQ_REMOVE_HEAD (&loop->sent, link);
            batch_finish (batch, batch->failed ? PGBATCH_FAILED : PGBATCH_OK, "");
            continue;
        }
        if (batch->at >= batch->count) { /* a fatal message outside any query: the server goes */
            PQclear (result);
            loop->broken = true;
            return;
        }
        keep_result (batch, result);
    }
}

static void look (struct pgloop *loop)
{
    if (!loop->conn)
        return;
    if (loop->broken) {
        lose (loop, PQerrorMessage (loop->conn)[0] ? PQerrorMessage (loop->conn)
                                                   : "the connection to PostgreSQL broke");
        return;
    }
    if (loop->state == ST_SETUP)
        setup_results (loop);
    else
        batch_results (loop);
    if (!loop->conn)
        return;
    if (loop->broken || PQstatus (loop->conn) == CONNECTION_BAD)
        lose (loop, PQerrorMessage (loop->conn)[0] ? PQerrorMessage (loop->conn)
                                                   : "the connection to PostgreSQL broke");
}

static void on_poke (evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct pgloop *loop = arg;
    if (loop->conn && loop->state > ST_CONNECTING)
        look (loop);
}

static void on_read (evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct pgloop *loop = arg;
    if (loop->state == ST_CONNECTING) {
        connect_poll (loop);
        return;
    }
    if (!PQconsumeInput (loop->conn)) {
        /* Answers that came before the end still count. */
        char why[ERR_TEXT_MAX];
        text_printf (why, sizeof (why), "%s", PQerrorMessage (loop->conn));
        PGconn *conn = loop->conn;
        if (loop->state != ST_SETUP)
            batch_results (loop);
        if (loop->conn == conn)
            lose (loop, why);
        return;
    }
    PGconn *conn = loop->conn;
    flush (loop);
    look (loop);
    if (loop->conn == conn && PQsocket (conn) >= 0)
        watch (loop, false);
}

static void on_write (evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct pgloop *loop = arg;
    if (loop->state == ST_CONNECTING)
        connect_poll (loop);
    else
        flush (loop);
}
