/* committer: queue, batches, two connections, and what happens when one of them is lost. The
 * service and the methods that change something submit to it. Nothing is answered before its
 * COMMIT has returned, nothing is decided on a view that might not be the ledger's, and the loop
 * never waits for PostgreSQL. */
#include "bank/store/committer.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "bank/store/busy.h"
#include "bank/store/load.h"
#include "bank/store/setup.h"
#include "bank/store/statements.h"
#include "bank/store/write.h"
#include "proto/base/clock.h"

/* How long a request of unknown outcome waits for the database to come back. */
#define UNKNOWN_WAIT_US (10 * US_PER_S)

#define CLOCK_AHEAD                                                                                 \
    "the bank's clock is %s ahead: nothing is written until it is right, or an operator says that " \
    "it is (nui clock accept)"
enum { LOOK_S = 5 };

struct item {
    STAILQ_ENTRY (item) link;
    const struct ledger_request *req;
    committer_check_f check; /* NULL: nothing to be checked (any more) */
    committer_done_f done;
    void *arg;
    struct ledger_outcome outcome;
    const void *bytes; /* of a new answer, in the batch's arena */
    size_t len;
    bool alone; /* decide it by itself: its batch was refused by PostgreSQL once, or it changes what
                   all others look at */
    bool known; /* nothing of it may be taken to be new: see load_want_request */
    bool decided; /* its batch was sent to be written: the outcome may be unknown */
    duration_us unknown_since;
};

STAILQ_HEAD (item_list, item);

/* Of the newest batch; NONE: it was sent to be written, or there is none. WAIT: it needs what is in the database, in
 * which nothing of the batches before it may be missing. */
enum phase { PHASE_NONE, PHASE_WAIT, PHASE_LOAD, PHASE_LOAD_MORE, PHASE_ROLLBACK };

/* The connections that write. The second is for batches behind another one, and done without while it is not up. */
enum { FIRST, SECOND, SIDES };

/* The view is thrown away when it has grown to this. */
enum { KNOWN_BYTES_MAX = 64 << 20 };

/* A batch of OVERLAP_MIN is followed by the next one before its COMMIT has returned. Fewer are done
 * before it would help: the lone caller's processor has no other call to work on. FOLLOW_MAX that
 * are queued do not wait for more. */
enum { OVERLAP_MIN = 16, FOLLOW_MAX = 256, BATCHES_MAX = 4 };

/* What the next batch goes on from. */
struct tip {
    struct ledger_ids next;
    struct seal_tip seal;
};

struct batch {
    struct committer *committer;
    struct item_list items;
    uint32_t count;
    unsigned side; /* on which it is written */
    /* Its COMMIT was sent; of one beside the one before it, on another side, that is when that one is committed. */
    bool closed;
    struct pgbatch_result rows; /* of the statements before those, when one failed */
    struct write_rest rest;
    struct busy *busy;
    struct arena *arena;
    struct load *load;
    time_us now; /* when it is recorded */
    struct tip after;
    struct err unsealed; /* why its block could not be signed: it was rolled back */
    bool unsure;         /* for what a check found, and not for want of a signature */
};

struct side {
    struct setup setup; /* first: it is the argument of the connection's callbacks */
    struct committer *committer;
    struct pgloop *loop;
};

struct committer {
    struct side side[SIDES];
    struct committer_config config;
    struct event *turn; /* once per turn of the loop when something is queued */
    struct event *patience;
    struct item_list queue;
    uint32_t queued;
    struct batch batch[BATCHES_MAX]; /* a ring: the oldest is being written, the others follow it */
    unsigned oldest, live;           /* an index, and how many there are */
    enum phase phase;
    unsigned rolling;         /* sides that have not answered their ROLLBACK */
    struct arena *known;      /* of what the view keeps between batches */
    struct ledger_view *view; /* NULL: nothing is known yet */
    struct recent *recent;
    struct tip sure;        /* after the last batch that was committed */
    struct ledger_ids next; /* after the newest batch that was sent; likewise seal.tip */
    struct moment moment;
    struct event *look; /* at the clock, whether or not anything is asked */
    bool ahead, behind; /* as it was told */
    struct event *pulse;
    duration_us pulse_sent; /* 0: none is under way */
    duration_us committed;  /* when the database was last known to commit; 0: not since it is up */
    struct seal seal;
    char refusal[ERR_TEXT_MAX];
    struct strbuf scratch;
    char why[ERR_TEXT_MAX];
    struct committer_stats stats;
};

static void on_turn (evutil_socket_t fd, short what, void *arg);
static void on_patience (evutil_socket_t fd, short what, void *arg);

static struct moment_now clocks (const struct committer *c)
{
    return c->config.clock ? c->config.clock ()
                           : (struct moment_now){clock_now_us (), clock_monotonic_us ()};
}

/* What has changed is said once. */
static void clock_look (struct committer *c)
{
    struct moment_now now = clocks (c);
    duration_us ahead = moment_ahead (&c->moment, now), behind = moment_behind (&c->moment, now);
    char by[QUANTITY_TEXT_MAX], why[ERR_TEXT_MAX];
    if ((behind > 0) != c->behind)
        log_event (c->config.log, LOG_LEVEL_WARN, "bank",
                   behind ? "clock_behind" : "clock_caught_up", "by=%s text=\"the ledger %s\"",
                   duration_format (behind, by),
                   behind ? "goes on from its last moment until the clock has come there"
                          : "goes by the clock again");
    c->behind = behind > 0;
    if ((ahead > 0) == c->ahead)
        return;
    c->ahead = ahead > 0;
    snprintf (why, sizeof (why), CLOCK_AHEAD, duration_format (ahead, by));
    log_event (c->config.log, c->ahead ? LOG_LEVEL_ERROR : LOG_LEVEL_WARN, "bank",
               c->ahead ? "clock_ahead" : "clock_believed", "text=\"%s\"",
               c->ahead ? why : "the clock is believed: writing again");
    if (c->config.on_clock)
        c->config.on_clock (c->config.arg, c->ahead ? why : NULL);
}

static void committed_note (struct committer *c, duration_us when)
{
    bool first = c->committed == 0;
    c->committed = when;
    if (first && c->config.on_pulse)
        c->config.on_pulse (c->config.arg);
}

static void on_pulsed (void *arg, const struct pgbatch_result *result)
{
    struct committer *c = arg;
    if (result->end == PGBATCH_OK && c->pulse_sent)
        committed_note (c, c->pulse_sent);
    c->pulse_sent = 0;
}

/* What is being written shows it as well. */
static void pulse_send (struct committer *c)
{
    if (!c->config.pulse || c->pulse_sent || c->live > 0 || c->phase == PHASE_ROLLBACK ||
        !committer_is_up (c))
        return;
    c->pulse_sent = clock_monotonic_us ();
    pgbatch_begin (c->side[FIRST].loop, on_pulsed, c);
    pgbatch_add (c->side[FIRST].loop, ST_PULSE, NULL);
    pgbatch_submit (c->side[FIRST].loop);
}

static void on_pulse (evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    pulse_send (arg);
}

duration_us committer_silence (const struct committer *c)
{
    return c->committed ? clock_monotonic_us () - c->committed : INT64_MAX;
}

const char *committer_refusal (const struct committer *c)
{
    return c->refusal;
}

void committer_pulse (struct committer *c, duration_us every)
{
    struct timeval tv = {(time_t)(every / US_PER_S), (suseconds_t)(every % US_PER_S)};
    c->config.pulse = every;
    if (every)
        event_add (c->pulse, &tv);
    else
        event_del (c->pulse);
}

static void on_look (evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    clock_look (arg);
}

static time_us moment (struct committer *c)
{
    clock_look (c);
    return moment_next (&c->moment, clocks (c));
}

time_us committer_now (const struct committer *c)
{
    time_us now = moment_is (&c->moment, clocks (c));
    return now > c->moment.last ? now : c->moment.last;
}

duration_us committer_clock_ahead (struct committer *c)
{
    clock_look (c);
    return moment_ahead (&c->moment, clocks (c));
}

void committer_clock_accept (struct committer *c)
{
    moment_accept (&c->moment, clocks (c));
    c->moment.accepted = true;
    clock_look (c);
}

void committer_clock_bound (struct committer *c, duration_us bound)
{
    c->moment.bound = bound;
}

void committer_clock (struct committer *c, time_us *now_out, time_us *last_out)
{
    *now_out = clocks (c).wall;
    *last_out = c->moment.last;
}

/* Of those under way; 0 is the oldest. */
static struct batch *nth (struct committer *c, unsigned n)
{
    return &c->batch[(c->oldest + n) % BATCHES_MAX];
}

static struct batch *oldest (struct committer *c)
{
    return nth (c, 0);
}

static struct batch *newest (struct committer *c)
{
    return nth (c, c->live - 1);
}

static uint32_t flying (const struct committer *c)
{
    uint32_t sum = 0;
    for (unsigned i = 0; i < BATCHES_MAX; i++)
        sum += c->batch[i].count;
    return sum;
}

time_us committer_horizon (struct committer *c)
{
    return c->live ? oldest (c)->now : moment (c);
}

struct committer_stats committer_stats (const struct committer *c)
{
    struct committer_stats stats = c->stats;
    stats.under_way = c->live;
    return stats;
}

bool committer_is_up (const struct committer *c)
{
    return pgloop_is_up (c->side[FIRST].loop);
}

bool committer_has_second (const struct committer *c)
{
    return pgloop_is_up (c->side[SECOND].loop);
}

static struct pgloop *loop_of (const struct committer *c, const struct batch *b)
{
    return c->side[b->side].loop;
}

static bool must_drop_view (const struct committer *c)
{
    return c->view && (c->view->admin || arena_used_bytes (c->known) > KNOWN_BYTES_MAX);
}

/* Whether a batch under way, but for the newest that is being made, names what a request does. */
static bool is_busy (struct committer *c, const struct ledger_request *req, unsigned but)
{
    for (unsigned i = 0; i + but < c->live; i++)
        if (busy_has (nth (c, i)->busy, req))
            return true;
    return false;
}

/* On which side the next batch is written. Beside the newest one is quicker than behind it: two processes of
 * PostgreSQL work at a time. */
static unsigned next_side (struct committer *c)
{
    return c->live && committer_has_second (c) ? !newest (c)->side : FIRST;
}

/* Whether a batch may be begun now: behind others only where it can be committed after them, and beside one only
 * if it needs nothing of what that one writes. */
static bool may_start (struct committer *c)
{
    const struct item *next = STAILQ_FIRST (&c->queue);
    if (c->phase != PHASE_NONE || !next || !committer_is_up (c))
        return false;
    if (!c->live)
        return true;
    if (c->live == BATCHES_MAX || next->alone || newest (c)->unsealed.code || must_drop_view (c))
        return false;
    unsigned side = next_side (c);
    for (unsigned i = 0; i < c->live; i++) {
        const struct batch *b = nth (c, i);
        if (b->side == side && !b->closed) /* its transaction is open */
            return false;
    }
    return side == newest (c)->side || !is_busy (c, next->req, 0);
}

/* So many queued ones are a batch: any when nothing is under way, else as many as the newest has,
 * so that batches do not get ever smaller. */
static uint32_t enough (struct committer *c)
{
    if (!c->live)
        return 1;
    uint32_t count = newest (c)->count;
    return count < OVERLAP_MIN ? OVERLAP_MIN : count > FOLLOW_MAX ? FOLLOW_MAX : count;
}

static void schedule (struct committer *c)
{
    if (c->queued >= enough (c) && may_start (c))
        event_active (c->turn, 0, 0);
}

/* ---- the connection ---- */

static void on_setup (void *arg)
{
    struct side *side = arg;
    setup_begin (&side->setup);
}

/* To where the ledger stands. */
static void go_back (struct committer *c)
{
    c->next = c->sure.next;
    c->seal.tip = c->sure.seal;
}

/* See committer.h: numbers_per_s. By whichever clock is ahead. */
static void numbers_leap (const struct committer *c, time_us database_now, time_us last,
                          struct ledger_ids *next)
{
    time_us machine = clocks (c).wall, now = machine > database_now ? machine : database_now;
    if (last == 0 || now <= last)
        return;
    int64_t leap = (int64_t)((__int128)(now - last) * c->config.numbers_per_s / US_PER_S);
    next->hold += leap;
    next->allocation += leap;
    next->grant += leap;
    next->quote += leap;
}

static void on_ready (void *arg)
{
    struct committer *c = arg;
    const struct setup *setup = &c->side[FIRST].setup;
    moment_begin (&c->moment, clocks (c), setup->database_now, setup->last_recorded);
    clock_look (c);
    c->sure =
        (struct tip){.next = setup->next,
                     .seal = {.number = setup->last.number, .unsealed = setup->unsealed.len > 0}};
    numbers_leap (c, setup->database_now, setup->last_recorded, &c->sure.next);
    if (setup->last.number)
        c->sure.seal.link = block_link (&setup->last);
    go_back (c);
}

static void on_second_ready (void *arg)
{
    (void)arg;
}

static void on_up (void *arg)
{
    struct side *side = arg;
    struct committer *c = side->committer;
    if (side == &c->side[SECOND])
        return;
    pgloop_start (c->side[SECOND].loop);
    c->why[0] = '\0';
    event_del (c->patience);
    log_event (c->config.log, LOG_LEVEL_INFO, "bank", "serving", "next_op=%lld",
               (long long)c->next.op);
    c->config.state (c->config.arg, true, "");
    pulse_send (c);
    schedule (c);
}

/* Forgets all that is known. */
static void drop_view (struct committer *c)
{
    ledger_view_destroy (c->view);
    c->view = NULL;
    recent_forget (c->recent);
    arena_reset (c->known);
}

/* A view for the next batch. What the last ones loaded and changed is still true, or will be when
 * they are committed, and if they are not, this one is not either: nobody else writes while this
 * connection holds the writer's lock. */
static void open_view (struct committer *c, struct batch *b)
{
    if (must_drop_view (c))
        drop_view (c);
    if (!c->view)
        c->view = ledger_view_create (c->known, 0);
    b->now = moment (c);
    ledger_view_again (c->view, b->arena, b->now);
    arena_reset (b->arena); /* of a batch that has ended: nothing points into it any more */
}

static void finish (struct committer *c, struct item *item, const struct err *err,
                    const void *bytes, size_t len)
{
    (void)c;
    static const struct err none;
    item->done (item->arg, err ? err : &none, bytes, len);
    free (item);
}

/* Puts the batches back at the head of the queue, in order, and goes back to what is committed. */
static void requeue (struct committer *c)
{
    struct item_list all = STAILQ_HEAD_INITIALIZER (all);
    struct item *item;
    for (; c->live; c->live--, c->oldest = (c->oldest + 1) % BATCHES_MAX) {
        struct batch *b = oldest (c);
        STAILQ_FOREACH (item, &b->items, link)
            item->known |= item->decided;
        STAILQ_CONCAT (&all, &b->items);
        c->queued += b->count;
        b->count = 0;
    }
    STAILQ_CONCAT (&all, &c->queue);
    STAILQ_CONCAT (&c->queue, &all);
    go_back (c);
    drop_view (c);
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
    if (!committer_is_up (c))
        give_up (c);
}

/* A batch on the second side may have been committed, and what is behind it is lost: both begin anew. Without one
 * the other goes on alone. */
static void on_second_down (struct committer *c)
{
    bool used = c->phase == PHASE_ROLLBACK;
    for (unsigned i = 0; i < c->live; i++)
        used |= nth (c, i)->side == SECOND;
    if (used && committer_is_up (c))
        pgloop_fail (c->side[FIRST].loop, "the second connection that writes was lost");
}

static void on_down (void *arg, const char *why)
{
    struct side *side = arg;
    struct committer *c = side->committer;
    if (side == &c->side[SECOND]) {
        on_second_down (c);
        return;
    }
    strncpy (c->why, why, sizeof (c->why) - 1);
    requeue (c);
    c->phase = PHASE_NONE;
    c->committed = 0;
    pgloop_stop (c->side[SECOND].loop);
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
    c->moment.bound = config->clock_bound;
    c->seal.sign = config->sign;
    c->seal.arg = config->arg;
    c->seal.unsealed = &c->side[FIRST].setup.unsealed;
    STAILQ_INIT (&c->queue);
    for (int i = 0; i < BATCHES_MAX; i++) {
        STAILQ_INIT (&c->batch[i].items);
        c->batch[i].committer = c;
        c->batch[i].arena = arena_create (1 << 20);
        c->batch[i].busy = busy_create ();
    }
    c->known = arena_create (1 << 20);
    c->recent = recent_create ();
    c->turn = event_new (config->base, -1, 0, on_turn, c);
    c->patience = evtimer_new (config->base, on_patience, c);
    c->look = event_new (config->base, -1, EV_PERSIST, on_look, c);
    c->pulse = event_new (config->base, -1, EV_PERSIST, on_pulse, c);
    static const struct timeval look = {LOOK_S, 0};
    static const struct {
        const char *label;
        enum setup_kind kind;
        void (*ready) (void *arg);
    } sides[SIDES] = {[FIRST] = {"nui-bank committer", SETUP_WRITER, on_ready},
                      [SECOND] = {"nui-bank second committer", SETUP_SECOND, on_second_ready}};
    for (int i = 0; i < SIDES; i++) {
        struct side *side = &c->side[i];
        struct pgloop_config loop = {.base = config->base,
                                     .log = config->log,
                                     .label = sides[i].label,
                                     .conninfo = config->conninfo,
                                     .stmt = bank_stmt,
                                     .stmt_count = BANK_STMT_ALL,
                                     .with = bank_with,
                                     .with_count = BANK_WITH_COUNT,
                                     .setup = on_setup,
                                     .up = on_up,
                                     .down = on_down,
                                     .arg = side};
        side->committer = c;
        side->loop = pgloop_create (&loop, err);
        if (!side->loop || !c->turn || !c->patience || !c->look || !c->pulse ||
            event_add (c->look, &look) < 0) {
            committer_destroy (c);
            return NULL;
        }
        side->setup = (struct setup){.loop = side->loop,
                                     .log = config->log,
                                     .kind = sides[i].kind,
                                     .ready = sides[i].ready,
                                     .arg = c};
    }
    committer_pulse (c, config->pulse);
    pgloop_start (c->side[FIRST].loop);
    return c;
}

void committer_destroy (struct committer *c)
{
    if (!c)
        return;
    for (int i = 0; i < SIDES; i++)
        pgloop_destroy (c->side[i].loop);
    requeue (c);
    struct item *item;
    struct err err = {0};
    err_set (&err, ERR_UNAVAILABLE, "the bank stops; send the same request again");
    while ((item = STAILQ_FIRST (&c->queue))) {
        STAILQ_REMOVE_HEAD (&c->queue, link);
        finish (c, item, &err, NULL, 0);
    }
    for (int i = 0; i < BATCHES_MAX; i++) {
        arena_destroy (c->batch[i].arena);
        busy_destroy (c->batch[i].busy);
    }
    arena_destroy (c->known);
    recent_destroy (c->recent);
    if (c->turn)
        event_free (c->turn);
    if (c->patience)
        event_free (c->patience);
    if (c->look)
        event_free (c->look);
    if (c->pulse)
        event_free (c->pulse);
    strbuf_free (&c->side[FIRST].setup.unsealed);
    seal_free (&c->seal);
    strbuf_free (&c->scratch);
    free (c);
}

const uint8_t *committer_secret (const struct committer *c)
{
    const struct setup *setup = &c->side[FIRST].setup;
    return setup->has_secret ? setup->secret : NULL;
}

bool committer_is_idle (const struct committer *c)
{
    return c->queued == 0 && c->live == 0;
}

int committer_submit (struct committer *c, const struct ledger_request *req,
                      committer_check_f check, committer_done_f done, void *arg, struct err *err)
{
    if (!committer_is_up (c))
        return err_set (err, ERR_UNAVAILABLE,
                        "the bank's database is away (%s); send the same request again",
                        c->why[0] ? c->why : "not connected yet");
    duration_us ahead = req->kind == LEDGER_CLOCK ? 0 : committer_clock_ahead (c);
    char by[QUANTITY_TEXT_MAX];
    if (ahead)
        return err_set (err, ERR_UNAVAILABLE, CLOCK_AHEAD, duration_format (ahead, by));
    if (c->queued + flying (c) >= COMMITTER_QUEUE_MAX)
        return err_set (err, ERR_UNAVAILABLE,
                        "the bank has %u requests in its queue: send the same "
                        "request again later",
                        c->queued + flying (c));
    struct item *item = calloc (1, sizeof (*item));
    if (!item)
        return err_set (err, ERR_NOMEM, "committer: out of memory");
    item->req = req;
    item->check = check;
    item->alone = req->kind == LEDGER_PROJECT_MOVE;
    item->done = done;
    item->arg = arg;
    STAILQ_INSERT_TAIL (&c->queue, item, link);
    c->queued++;
    schedule (c);
    return 0;
}

/* ---- one batch ---- */

static void answer_all (struct committer *c, struct batch *b)
{
    struct item *item;
    while ((item = STAILQ_FIRST (&b->items))) {
        STAILQ_REMOVE_HEAD (&b->items, link);
        struct err err = {0};
        const struct ledger_outcome *out = &item->outcome;
        c->stats.requests++;
        c->stats.replays += out->replayed;
        if (out->code)
            err_set (&err, out->code, "%s", out->text);
        finish (c, item, &err, out->replayed ? out->stored : item->bytes,
                out->replayed ? out->stored_len : item->len);
    }
    b->count = 0;
    c->stats.batches++;
    c->refusal[0] = '\0';
}

static bool worth_trying_again (const char *sqlstate)
{
    /* Serialisation and deadlock, lock time-out: another session was in the way for a moment. */
    return strncmp (sqlstate, "40", 2) == 0 || strcmp (sqlstate, "55P03") == 0;
}

static void on_rolled_back (void *arg, const struct pgbatch_result *result)
{
    struct side *side = arg;
    struct committer *c = side->committer;
    if (result->end == PGBATCH_LOST || --c->rolling > 0)
        return; /* on_down follows, or the other side's answer */
    c->phase = PHASE_NONE;
    schedule (c);
}

/* Nothing of the oldest batch was written, so nothing of those after it may be: their transactions are open on the
 * other side, or their statements fail in the one that is still open in its failed state, or for want of the block
 * before theirs (ST_AFTER). Their answers come before the ROLLBACK's and are not listened to. */
static void give_back (struct committer *c)
{
    requeue (c);
    c->phase = PHASE_ROLLBACK;
    if (!committer_is_up (c))
        return;
    c->rolling = 0;
    for (int i = 0; i < SIDES; i++) {
        struct pgloop *loop = c->side[i].loop;
        if (!pgloop_is_up (loop))
            continue;
        c->rolling++;
        pgbatch_begin (loop, on_rolled_back, &c->side[i]);
        pgbatch_add (loop, ST_ROLLBACK, NULL);
        pgbatch_submit (loop);
    }
}

/* The oldest batch was refused. One request gets the error; several are tried again one by one. */
static void batch_failed (struct committer *c, const char *sqlstate, const struct err *why)
{
    struct batch *b = oldest (c);
    struct item *item = STAILQ_FIRST (&b->items);
    log_event (c->config.log, LOG_LEVEL_ERROR, "bank", "batch_failed", "requests=%u why=%s",
               b->count, log_quote (why->text, (char[ERR_TEXT_MAX]){0}, ERR_TEXT_MAX));
    c->stats.retries++;
    if (item && b->count == 1 && !worth_trying_again (sqlstate)) {
        struct err err = {0};
        /* Class 53 is "insufficient resources": a full disk, too many connections. */
        bool full = strncmp (sqlstate, "53", 2) == 0;
        err_set (&err, full ? ERR_UNAVAILABLE : ERR_INTERNAL, "%s", why->text);
        memcpy (c->refusal, err.text, sizeof (c->refusal));
        STAILQ_REMOVE_HEAD (&b->items, link);
        b->count = 0;
        finish (c, item, &err, NULL, 0);
    } else {
        STAILQ_FOREACH (item, &b->items, link)
            item->alone = true;
    }
    give_back (c);
}

static void start_batch (struct committer *c);

/* The oldest batch is as good as written: what has come since is decided upon it. */
static void on_early (void *arg)
{
    struct committer *c = ((struct batch *)arg)->committer;
    if (c->live == 1 && may_start (c))
        start_batch (c);
}

/* Whether nothing says by now that the oldest batch cannot be committed; else it is given back. */
static bool is_good (struct committer *c, const struct pgbatch_result *result)
{
    struct batch *b = oldest (c);
    bool good = result->end != PGBATCH_FAILED && !b->unsealed.code && !b->unsure;
    if (load_was_wrong (b->load, result) || b->unsure)
        give_back (c);
    else if (!good)
        batch_failed (c, result->sqlstate, b->unsealed.code ? &b->unsealed : &result->err);
    return good;
}

static void on_written (void *arg, const struct pgbatch_result *result);
static void load_batch (struct committer *c);

/* The batch before this one is committed: so may this one be, if nothing of it has failed. */
static void close_batch (struct batch *b)
{
    struct pgloop *loop = loop_of (b->committer, b);
    if (b->closed || b->rows.end == PGBATCH_FAILED || b->unsealed.code || b->unsure)
        return;
    pgbatch_begin (loop, on_written, b);
    write_last (&b->rest, loop);
    pgbatch_submit (loop);
    b->closed = true;
}

/* What stood behind a batch that is committed, and was not closed. */
static void go_on (struct committer *c)
{
    if (c->phase == PHASE_WAIT && c->live == 1) {
        c->phase = PHASE_LOAD;
        load_batch (c);
    } else if (!oldest (c)->closed) {
        is_good (c, &oldest (c)->rows);
    }
}

/* All but the last statements of a batch beside another one. */
static void on_rows (void *arg, const struct pgbatch_result *result)
{
    struct batch *b = arg;
    if (b->committer->phase != PHASE_ROLLBACK && result->end == PGBATCH_FAILED)
        b->rows = *result;
}

static void on_written (void *arg, const struct pgbatch_result *result)
{
    struct batch *b = arg;
    struct committer *c = b->committer;
    if (result->end == PGBATCH_LOST)
        return; /* on_down puts the batches back */
    if (c->phase == PHASE_ROLLBACK) {
        if (result->end == PGBATCH_OK) /* though it was given back */
            pgloop_fail (c->side[FIRST].loop,
                         "a batch was written behind one that was not: reading anew");
        return;
    }
    assert (b == oldest (c));
    /* COMMIT succeeds in a transaction that has failed, and rolls it back. */
    if (!is_good (c, b->rows.end == PGBATCH_FAILED ? &b->rows : result))
        return;
    committed_note (c, clock_monotonic_us ());
    c->sure = b->after;
    c->oldest = (c->oldest + 1) % BATCHES_MAX;
    c->live--;
    if (c->live)
        close_batch (oldest (c)); /* before the answers: PostgreSQL waits for it */
    answer_all (c, b);
    if (c->live)
        go_on (c);
    else if (c->view->admin)
        drop_view (c);
    schedule (c);
}

static void decide (struct committer *c, struct batch *b)
{
    duration_us now = clock_monotonic_us ();
    struct item *item;
    c->view->next = c->next;
    STAILQ_FOREACH (item, &b->items, link) {
        struct ledger_outcome *out = &item->outcome;
        item->bytes = NULL; /* of an earlier time */
        item->len = 0;
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
            item->bytes = arena_memdup (b->arena, strbuf_text (&c->scratch), item->len);
        }
        ledger_record (c->view, item->req, out, item->bytes, item->len);
    }
}

static bool check (struct item *item)
{
    committer_check_f f = item->check;
    item->check = NULL;
    return !f || f (item->arg);
}

/* The only request that is written unchecked; of several each was checked when the batch was made. */
static bool is_sure (struct batch *b)
{
    struct item *item = STAILQ_FIRST (&b->items);
    return check (item) ||
           (err_set (&b->unsealed, ERR_UNAUTHENTIC, "%s", item->req->refused.text), false);
}

/* All is there: decides, and sends what was decided to be written. */
static void write_batch (struct committer *c)
{
    struct batch *b = newest (c);
    struct pgloop *loop = loop_of (c, b);
    bool behind = c->live > 1;
    b->closed = !behind || b->side == nth (c, c->live - 2)->side;
    b->rows = (struct pgbatch_result){.end = PGBATCH_OK};
    c->stats.behind += behind;
    c->stats.beside += !b->closed;
    pgbatch_begin (loop, b->closed ? on_written : on_rows, b);
    write_open (c->view, b->load, behind && b->closed ? c->seal.tip.number : 0, loop);
    decide (c, b);
    write_rows (c->view, b->load, c->view->next.op - c->next.op,
                b->count >= OVERLAP_MIN ? on_early : NULL, b->closed ? NULL : &b->rest, &c->seal,
                loop);
    b->unsealed = (struct err){0};
    b->unsure = !is_sure (b);
    bool good = !b->unsure && seal_make (&c->seal, c->view, &b->unsealed) == 0;
    write_close (good ? &c->seal : NULL, b->closed, loop);
    pgbatch_submit (loop);
    c->phase = PHASE_NONE;
    c->next = c->view->next;
    b->after = (struct tip){.next = c->next, .seal = c->seal.tip};
    recent_note (c->recent, c->view);
}

static void on_loaded (void *arg, const struct pgbatch_result *result)
{
    struct batch *b = arg; /* the only one: those before it have ended */
    struct committer *c = b->committer;
    if (result->end == PGBATCH_LOST || c->phase == PHASE_ROLLBACK)
        return;
    if (result->end == PGBATCH_FAILED) {
        batch_failed (c, result->sqlstate, &result->err);
        return;
    }
    load_take (b->load, result);
    if (c->phase == PHASE_LOAD && load_more (b->load)) {
        c->phase = PHASE_LOAD_MORE;
        load_batch (c);
        return;
    }
    write_batch (c);
}

static void load_batch (struct committer *c)
{
    struct batch *b = newest (c);
    pgbatch_begin (loop_of (c, b), on_loaded, b);
    load_send (b->load, loop_of (c, b));
    pgbatch_submit (loop_of (c, b));
}

static void start_batch (struct committer *c)
{
    struct item *item;
    unsigned side = next_side (c);
    bool beside = c->live && side != newest (c)->side;
    c->live++;
    struct batch *b = newest (c);
    b->side = side;
    b->closed = true;
    busy_clear (b->busy);
    open_view (c, b);
    b->load = load_create (b->arena, c->view);
    while (b->count < COMMITTER_BATCH_MAX && (item = STAILQ_FIRST (&c->queue))) {
        if ((item->alone && b->count > 0) || (beside && is_busy (c, item->req, 1)))
            break;
        STAILQ_REMOVE_HEAD (&c->queue, link);
        STAILQ_INSERT_TAIL (&b->items, item, link);
        c->queued--;
        b->count++;
        if (b->count > 1 || c->queued > 0)
            check (item); /* others would be decided in vain with one that is not good */
        busy_add (b->busy, item->req);
        load_want_request (b->load, item->req, item->known ? NULL : c->recent);
        if (item->alone)
            break;
    }
    if (b->count > c->stats.batch_max)
        c->stats.batch_max = b->count;
    if (!load_more (b->load)) {
        write_batch (c);
        return;
    }
    c->phase = beside ? PHASE_WAIT : PHASE_LOAD;
    if (!beside)
        load_batch (c);
}

static void on_turn (evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct committer *c = arg;
    while (c->queued >= enough (c) && may_start (c))
        start_batch (c);
}
