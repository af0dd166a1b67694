#include "bank/store/committer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "bank/store/load.h"
#include "bank/store/setup.h"
#include "bank/store/statements.h"
#include "bank/store/write.h"
#include "proto/base/clock.h"

/* How long a request of unknown outcome waits for the database to come back. */
#define UNKNOWN_WAIT_US (10 * US_PER_S)

struct item {
    STAILQ_ENTRY (item) link;
    const struct ledger_request *req;
    committer_done_f done;
    void *arg;
    struct ledger_outcome outcome;
    const void *bytes; /* of a new answer, in the batch's arena */
    size_t len;
    bool alone;   /* its batch was refused by PostgreSQL once: decide it by itself */
    bool known;   /* nothing of it may be taken to be new: see load_want_request */
    bool decided; /* its batch was sent to be written: the outcome may be unknown */
    duration_us unknown_since;
};

STAILQ_HEAD (item_list, item);

enum phase { PHASE_NONE, PHASE_LOAD, PHASE_LOAD_MORE, PHASE_WRITE, PHASE_ROLLBACK };

/* The view is thrown away when it has grown to this. */
enum { KNOWN_BYTES_MAX = 64 << 20 };

struct committer {
    struct setup setup; /* first: it is the argument of the connection's callbacks */
    struct committer_config config;
    struct pgloop *loop;
    struct event *turn; /* once per turn of the loop when something is queued */
    struct event *patience;
    struct item_list queue;
    uint32_t queued;
    struct item_list flight; /* the batch being decided */
    uint32_t flying;
    enum phase phase;
    struct arena *arena; /* of a batch */
    struct arena *known; /* of what the view keeps between batches */
    struct load *load;
    struct ledger_view *view; /* NULL: nothing is known yet */
    struct recent *recent;
    struct ledger_ids next;
    time_us last; /* the last moment given out */
    struct seal seal;
    struct strbuf scratch;
    char why[ERR_TEXT_MAX];
    struct committer_stats stats;
};

static void on_turn (evutil_socket_t fd, short what, void *arg);
static void on_patience (evutil_socket_t fd, short what, void *arg);

static time_us moment (struct committer *c)
{
    time_us now = clock_now_us ();
    c->last = now > c->last ? now : c->last + 1;
    return c->last;
}

time_us committer_horizon (struct committer *c)
{
    return c->phase != PHASE_NONE && c->view ? c->view->now : moment (c);
}

struct committer_stats committer_stats (const struct committer *c)
{
    return c->stats;
}

bool committer_is_up (const struct committer *c)
{
    return pgloop_is_up (c->loop);
}

static void schedule (struct committer *c)
{
    if (c->phase == PHASE_NONE && !STAILQ_EMPTY (&c->queue) && pgloop_is_up (c->loop))
        event_active (c->turn, 0, 0);
}

/* ---- the connection ---- */

static void on_setup (void *arg)
{
    struct committer *c = arg;
    setup_begin (&c->setup);
}

static void on_ready (void *arg)
{
    struct committer *c = arg;
    c->next = c->setup.next;
    if (c->setup.last_recorded > c->last)
        c->last = c->setup.last_recorded;
    c->seal.number = c->setup.last.number;
    c->seal.link = c->setup.last.number ? block_link (&c->setup.last) : (struct merkle_hash){{0}};
    c->seal.signer_known = false;
}

static void on_up (void *arg)
{
    struct committer *c = arg;
    c->why[0] = '\0';
    event_del (c->patience);
    log_event (c->config.log, LOG_LEVEL_INFO, "bank", "serving", "next_op=%lld",
               (long long)c->next.op);
    c->config.state (c->config.arg, true, "");
    schedule (c);
}

/* Forgets all that is known. */
static void drop_view (struct committer *c)
{
    ledger_view_destroy (c->view);
    c->view = NULL;
    c->load = NULL;
    recent_forget (c->recent);
    arena_reset (c->arena);
    arena_reset (c->known);
    c->phase = PHASE_NONE;
}

/* A view for the next batch. What the last ones loaded and changed is still true: nobody else
 * writes while this connection holds the writer's lock. */
static void open_view (struct committer *c)
{
    if (c->view && (c->view->admin || arena_used_bytes (c->known) > KNOWN_BYTES_MAX))
        drop_view (c);
    if (!c->view)
        c->view = ledger_view_create (c->known, 0);
    ledger_view_again (c->view, c->arena, moment (c));
    arena_reset (c->arena); /* the last batch's; only now does nothing point into it any more */
}

static void finish (struct committer *c, struct item *item, const struct err *err,
                    const void *bytes, size_t len)
{
    (void)c;
    static const struct err none;
    item->done (item->arg, err ? err : &none, bytes, len);
    free (item);
}

/* Puts the batch back at the head of the queue, in order. */
static void requeue (struct committer *c)
{
    struct item *item;
    STAILQ_FOREACH (item, &c->flight, link)
    item->known |= item->decided;
    STAILQ_CONCAT (&c->flight, &c->queue);
    STAILQ_CONCAT (&c->queue, &c->flight);
    c->queued += c->flying;
    c->flying = 0;
}

/* Answers those that wait in vain: all that were never written, and, once patience ends, the rest.
 */
static void give_up (struct committer *c)
{
    struct item_list keep = STAILQ_HEAD_INITIALIZER (keep), all = STAILQ_HEAD_INITIALIZER (all);
    duration_us now = clock_monotonic_us ();
    struct err err = {0};
    struct item *item;
    err_set (&err, ERR_UNAVAILABLE, "the bank's database is away (%s); send the same request again",
             c->why);
    STAILQ_CONCAT (&all, &c->queue);
    c->queued = 0;
    while ((item = STAILQ_FIRST (&all))) {
        STAILQ_REMOVE_HEAD (&all, link);
        if (item->decided && now - item->unknown_since < UNKNOWN_WAIT_US) {
            STAILQ_INSERT_TAIL (&keep, item, link);
            c->queued++;
        } else {
            finish (c, item, &err, NULL, 0);
        }
    }
    STAILQ_CONCAT (&keep, &c->queue);
    STAILQ_CONCAT (&c->queue, &keep);
    if (c->queued && !evtimer_pending (c->patience, NULL)) {
        struct timeval tv = {1, 0};
        evtimer_add (c->patience, &tv);
    }
}

static void on_patience (evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct committer *c = arg;
    if (!pgloop_is_up (c->loop))
        give_up (c);
}

static void on_down (void *arg, const char *why)
{
    struct committer *c = arg;
    strncpy (c->why, why, sizeof (c->why) - 1);
    if (c->phase != PHASE_NONE)
        requeue (c);
    drop_view (c);
    c->config.state (c->config.arg, false, c->why);
    give_up (c);
}

struct committer *committer_create (const struct committer_config *config, struct err *err)
{
    struct committer *c = calloc (1, sizeof (*c));
    if (!c) {
        err_set (err, ERR_NOMEM, "committer: out of memory");
        return NULL;
    }
    c->config = *config;
    c->seal.sign = config->sign;
    c->seal.arg = config->arg;
    STAILQ_INIT (&c->queue);
    STAILQ_INIT (&c->flight);
    c->arena = arena_create (1 << 20);
    c->known = arena_create (1 << 20);
    c->recent = recent_create ();
    c->turn = event_new (config->base, -1, 0, on_turn, c);
    c->patience = evtimer_new (config->base, on_patience, c);
    struct pgloop_config loop = {.base = config->base,
                                 .log = config->log,
                                 .label = "nui-bank committer",
                                 .conninfo = config->conninfo,
                                 .stmt = bank_stmt,
                                 .stmt_count = BANK_STMT_ALL,
                                 .setup = on_setup,
                                 .up = on_up,
                                 .down = on_down,
                                 .arg = c};
    c->loop = pgloop_create (&loop, err);
    if (!c->loop || !c->turn || !c->patience) {
        committer_destroy (c);
        return NULL;
    }
    c->setup = (struct setup){
        .loop = c->loop, .log = config->log, .kind = SETUP_WRITER, .ready = on_ready, .arg = c};
    pgloop_start (c->loop);
    return c;
}

void committer_destroy (struct committer *c)
{
    if (!c)
        return;
    pgloop_destroy (c->loop);
    requeue (c);
    struct item *item;
    struct err err = {0};
    err_set (&err, ERR_UNAVAILABLE, "the bank stops; send the same request again");
    while ((item = STAILQ_FIRST (&c->queue))) {
        STAILQ_REMOVE_HEAD (&c->queue, link);
        finish (c, item, &err, NULL, 0);
    }
    ledger_view_destroy (c->view);
    arena_destroy (c->arena);
    arena_destroy (c->known);
    recent_destroy (c->recent);
    if (c->turn)
        event_free (c->turn);
    if (c->patience)
        event_free (c->patience);
    strbuf_free (&c->seal.scratch);
    strbuf_free (&c->scratch);
    free (c);
}

int committer_submit (struct committer *c, const struct ledger_request *req, committer_done_f done,
                      void *arg, struct err *err)
{
    if (!pgloop_is_up (c->loop))
        return err_set (err, ERR_UNAVAILABLE,
                        "the bank's database is away (%s); send the same request again",
                        c->why[0] ? c->why : "not connected yet");
    if (c->queued + c->flying >= COMMITTER_QUEUE_MAX)
        return err_set (err, ERR_UNAVAILABLE,
                        "the bank has %u requests in its queue: send the same "
                        "request again later",
                        c->queued + c->flying);
    struct item *item = calloc (1, sizeof (*item));
    if (!item)
        return err_set (err, ERR_NOMEM, "committer: out of memory");
    item->req = req;
    item->done = done;
    item->arg = arg;
    STAILQ_INSERT_TAIL (&c->queue, item, link);
    c->queued++;
    schedule (c);
    return 0;
}

/* ---- one batch ---- */

/* The batch is over; its items were taken out of flight. */
static void next_batch (struct committer *c)
{
    if (c->view->admin)
        drop_view (c);
    c->phase = PHASE_NONE;
    schedule (c);
}

static void answer_all (struct committer *c)
{
    struct item_list ready = STAILQ_HEAD_INITIALIZER (ready);
    struct item *item;
    STAILQ_CONCAT (&ready, &c->flight);
    c->flying = 0;
    while ((item = STAILQ_FIRST (&ready))) {
        STAILQ_REMOVE_HEAD (&ready, link);
        struct err err = {0};
        const struct ledger_outcome *out = &item->outcome;
        c->stats.requests++;
        c->stats.replays += out->replayed;
        if (out->code)
            err_set (&err, out->code, "%s", out->text);
        finish (c, item, &err, out->replayed ? out->stored : item->bytes,
                out->replayed ? out->stored_len : item->len);
    }
    c->stats.batches++;
    next_batch (c);
}

static bool worth_trying_again (const char *sqlstate)
{
    /* Serialisation and deadlock, lock time-out: another session was in the way for a moment. */
    return strncmp (sqlstate, "40", 2) == 0 || strcmp (sqlstate, "55P03") == 0;
}

/* PostgreSQL refused the batch: nothing of it was written. One alone gets the error; several are
 * tried again one by one. */
static void batch_failed (struct committer *c, const struct pgbatch_result *result)
{
    struct item *item = STAILQ_FIRST (&c->flight);
    log_event (c->config.log, LOG_LEVEL_ERROR, "bank", "batch_failed", "requests=%u why=%s",
               c->flying, log_quote (result->err.text, (char[ERR_TEXT_MAX]){0}, ERR_TEXT_MAX));
    c->stats.retries++;
    if (item && c->flying == 1 && !worth_trying_again (result->sqlstate)) {
        struct err err = {0};
        /* Class 53 is "insufficient resources": a full disk, too many connections. */
        bool full = strncmp (result->sqlstate, "53", 2) == 0;
        err_set (&err, full ? ERR_UNAVAILABLE : ERR_INTERNAL, "%s", result->err.text);
        STAILQ_REMOVE_HEAD (&c->flight, link);
        c->flying = 0;
        finish (c, item, &err, NULL, 0);
    } else {
        STAILQ_FOREACH (item, &c->flight, link)
        item->alone = true;
        requeue (c);
    }
    /* The transaction is still open in its failed state. */
    drop_view (c);
    c->phase = PHASE_ROLLBACK;
}

static void on_rolled_back (void *arg, const struct pgbatch_result *result)
{
    struct committer *c = arg;
    if (result->end == PGBATCH_LOST)
        return; /* on_down follows */
    c->phase = PHASE_NONE;
    schedule (c);
}

static void rollback (struct committer *c)
{
    if (!pgloop_is_up (c->loop))
        return;
    pgbatch_begin (c->loop, on_rolled_back, c);
    pgbatch_add (c->loop, ST_ROLLBACK, NULL);
    pgbatch_submit (c->loop);
}

static void on_written (void *arg, const struct pgbatch_result *result)
{
    struct committer *c = arg;
    if (result->end == PGBATCH_LOST)
        return; /* on_down puts the batch back */
    if (load_was_wrong (c->load, result)) {
        requeue (c);
        drop_view (c);
        c->phase = PHASE_ROLLBACK;
        rollback (c);
        return;
    }
    if (result->end == PGBATCH_FAILED) {
        batch_failed (c, result);
        rollback (c);
        return;
    }
    c->next = c->view->next;
    seal_committed (&c->seal);
    recent_note (c->recent, c->view);
    answer_all (c);
}

static void decide (struct committer *c)
{
    duration_us now = clock_monotonic_us ();
    struct item *item;
    c->view->next = c->next;
    STAILQ_FOREACH (item, &c->flight, link)
    {
        struct ledger_outcome *out = &item->outcome;
        ledger_decide (c->view, item->req, out);
        item->decided = true; /* the whole batch keeps its order when it must be decided again */
        item->unknown_since = now;
        if (!out->record)
            continue;
        if (out->code) {
            item->bytes = out->text;
            item->len = strlen (out->text);
        } else {
            strbuf_clear (&c->scratch);
            c->config.encode (c->config.arg, item->req, out, &c->scratch);
            item->len = c->scratch.len;
            item->bytes = arena_memdup (c->arena, strbuf_text (&c->scratch), item->len);
        }
        ledger_record (c->view, item->req, out, item->bytes, item->len);
    }
}

static void load_batch (struct committer *c);

/* All is there: decides, and sends what was decided to be written. */
static void write_batch (struct committer *c)
{
    struct pgbatch_result unsigned_ = {.end = PGBATCH_FAILED};
    decide (c);
    if (seal_make (&c->seal, c->view, &unsigned_.err) < 0) {
        batch_failed (c, &unsigned_);
        rollback (c);
        return;
    }
    c->phase = PHASE_WRITE;
    pgbatch_begin (c->loop, on_written, c);
    write_send (c->view, c->load, &c->seal, c->loop);
    pgbatch_submit (c->loop);
}

static void on_loaded (void *arg, const struct pgbatch_result *result)
{
    struct committer *c = arg;
    if (result->end == PGBATCH_LOST)
        return;
    if (result->end == PGBATCH_FAILED) {
        batch_failed (c, result);
        rollback (c);
        return;
    }
    load_take (c->load, result);
    if (c->phase == PHASE_LOAD && load_more (c->load)) {
        c->phase = PHASE_LOAD_MORE;
        load_batch (c);
        return;
    }
    write_batch (c);
}

static void load_batch (struct committer *c)
{
    pgbatch_begin (c->loop, on_loaded, c);
    load_send (c->load, c->loop);
    pgbatch_submit (c->loop);
}

static void on_turn (evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct committer *c = arg;
    struct item *item;
    if (c->phase != PHASE_NONE || STAILQ_EMPTY (&c->queue) || !pgloop_is_up (c->loop))
        return;
    open_view (c);
    c->load = load_create (c->arena, c->view);
    while (c->flying < COMMITTER_BATCH_MAX && (item = STAILQ_FIRST (&c->queue))) {
        if (item->alone && c->flying > 0)
            break;
        STAILQ_REMOVE_HEAD (&c->queue, link);
        STAILQ_INSERT_TAIL (&c->flight, item, link);
        c->queued--;
        c->flying++;
        load_want_request (c->load, item->req, item->known ? NULL : c->recent);
        if (item->alone)
            break;
    }
    if (c->flying > c->stats.batch_max)
        c->stats.batch_max = c->flying;
    if (!load_more (c->load)) {
        write_batch (c);
        return;
    }
    c->phase = PHASE_LOAD;
    load_batch (c);
}
