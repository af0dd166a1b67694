/* checkpoint: a timer and a connection of its own, one statement per look. The service starts
 * it. It never blocks, and changes no balance and no entry: its sums only make reading quicker,
 * so that one that was not made costs time and nothing else. */
#include "bank/store/checkpoint.h"

#include <stdlib.h>

#include "bank/store/setup.h"
#include "proto/base/arena.h"

static const struct timeval period = {.tv_sec = 5}, at_once = {0};

/* $1 moment, entries that are enough, operations at most. One row: whether there is more to look at. With
 * each look, room in the journal for the operations to come, and a step of the walk that forgets signed jobs. */
static const struct pgstmt statements[] = {
    {"checkpoint",
     "WITH span AS (SELECT lo, least (lo + ($1::bigint[])[3], (SELECT coalesce (max (o.id), 0) FROM op o "
     "  WHERE o.id >= lo AND o.recorded_at < ($1::bigint[])[1])) AS hi "
     "  FROM (SELECT coalesce (max (upto_op), 0) AS lo FROM checkpoint_run) r), "
     "moved AS (SELECT DISTINCT e.account_id FROM span s JOIN entry e ON e.op_id > s.lo AND e.op_id <= s.hi), "
     "made AS (INSERT INTO checkpoint SELECT m.account_id, ($1::bigint[])[1], "
     "  coalesce (c.posted, 0) + n.posted, coalesce (c.held, 0) + n.held, coalesce (c.entries, 0) + n.entries "
     "  FROM moved m LEFT JOIN LATERAL (SELECT * FROM checkpoint k WHERE k.account_id = m.account_id "
     "  ORDER BY k.at DESC LIMIT 1) c ON true CROSS JOIN LATERAL (SELECT "
     "  coalesce (sum (e.amount) FILTER (WHERE e.layer = 'P'), 0)::bigint AS posted, "
     "  coalesce (sum (e.amount) FILTER (WHERE e.layer = 'H'), 0)::bigint AS held, count (*) AS entries "
     "  FROM entry e WHERE e.account_id = m.account_id AND e.recorded_at >= coalesce (c.at, 0) "
     "  AND e.recorded_at < ($1::bigint[])[1]) n WHERE n.entries >= ($1::bigint[])[2] "
     "  ON CONFLICT DO NOTHING), "
     "looked AS (INSERT INTO checkpoint_run SELECT hi, ($1::bigint[])[1] FROM span WHERE hi > lo "
     "  ON CONFLICT DO NOTHING) "
     "SELECT hi - lo >= ($1::bigint[])[3] FROM span"},
    {"entry_room", "SELECT entry_room ()"},
    {"signed_forget",
     "SELECT (signed_forget (($1::bigint[])[1], ($1::bigint[])[2], ($1::bigint[])[3])).*"},
};

struct checkpointer {
    struct setup setup; /* first: the argument of the connection's callbacks */
    struct pgloop *loop;
    struct log *log;
    struct committer *committer;
    struct event *timer;
    struct arena *arena;
    int64_t entries;
    duration_us window; /* signed jobs are forgotten so long after their expiry */
    int64_t block;      /* of the walk over them */
    bool busy;
};

static void on_setup (void *arg)
{
    setup_begin (arg);
}

static void on_ready (void *arg)
{
    (void)arg;
}

static void on_up (void *arg)
{
    struct checkpointer *c = arg;
    evtimer_add (c->timer, &period);
}

static void on_down (void *arg, const char *why)
{
    (void)arg;
    (void)why; /* the loop has logged it, and connects again */
}

static void on_forgotten (struct checkpointer *c, const PGresult *res)
{
    c->block = pgres_i64 (res, 0, 0);
    if (pgres_i64 (res, 0, 1))
        log_event (c->log, LOG_LEVEL_INFO, "bank", "signed_jobs_forgotten", "holds=%lld",
                   (long long)pgres_i64 (res, 0, 1));
}

static void on_made (void *arg, const struct pgbatch_result *result)
{
    struct checkpointer *c = arg;
    c->busy = false;
    if (result->end == PGBATCH_FAILED)
        log_event (c->log, LOG_LEVEL_WARN, "bank", "no_checkpoint", "why=%s",
                   log_quote (result->err.text, (char[ERR_TEXT_MAX]){0}, ERR_TEXT_MAX));
    if (result->end == PGBATCH_OK && pgres_bool (result->result[1], 0, 0))
        log_event (c->log, LOG_LEVEL_INFO, "bank", "partition_made", "table=entry");
    if (result->end == PGBATCH_OK)
        on_forgotten (c, result->result[2]);
    bool more = result->end == PGBATCH_OK && PQntuples (result->result[0]) == 1 &&
                pgres_bool (result->result[0], 0, 0);
    evtimer_add (c->timer, more ? &at_once : &period);
}

static void on_timer (evutil_socket_t fd, short what, void *arg)
{
    struct checkpointer *c = arg;
    (void)fd;
    (void)what;
    if (c->busy || !pgloop_is_up (c->loop))
        return;
    if (!committer_is_up (c->committer)) {
        evtimer_add (c->timer, &period);
        return;
    }
    c->busy = true;
    arena_reset (c->arena);
    struct pgargs *args = pgargs_create (c->arena, "i");
    pgargs_i64 (args, 0, committer_horizon (c->committer));
    pgargs_i64 (args, 0, c->entries);
    pgargs_i64 (args, 0, CHECKPOINT_OPS);
    pgargs_seal (args);
    struct pgargs *walk = pgargs_create (c->arena, "i");
    pgargs_i64 (walk, 0, committer_horizon (c->committer) - c->window);
    pgargs_i64 (walk, 0, c->block);
    pgargs_i64 (walk, 0, FORGET_BLOCKS);
    pgargs_seal (walk);
    pgbatch_begin (c->loop, on_made, c);
    pgbatch_add (c->loop, 0, args);
    pgbatch_add (c->loop, 1, NULL);
    pgbatch_add (c->loop, 2, walk);
    pgbatch_submit (c->loop);
}

struct checkpointer *checkpointer_create (struct event_base *base, struct log *log,
                                          const char *conninfo, struct committer *committer,
                                          int64_t entries, duration_us window, struct err *err)
{
    struct checkpointer *c = calloc (1, sizeof (*c));
    if (!c)
        abort ();
    struct pgloop_config config = {.base = base,
                                   .log = log,
                                   .label = "nui-bank checkpoints",
                                   .conninfo = conninfo,
                                   .stmt = statements,
                                   .stmt_count = sizeof (statements) / sizeof (*statements),
                                   .setup = on_setup,
                                   .up = on_up,
                                   .down = on_down,
                                   .arg = c};
    c->log = log;
    c->committer = committer;
    c->entries = entries;
    c->window = window;
    c->arena = arena_create (0);
    c->timer = evtimer_new (base, on_timer, c);
    c->loop = c->timer ? pgloop_create (&config, err) : NULL;
    if (!c->loop) {
        checkpointer_destroy (c);
        return NULL;
    }
    c->setup = (struct setup){
        .loop = c->loop, .log = log, .kind = SETUP_BACKGROUND, .ready = on_ready, .arg = c};
    return c;
}

void checkpointer_start (struct checkpointer *c)
{
    pgloop_start (c->loop);
}

void checkpointer_settings (struct checkpointer *c, int64_t entries, duration_us window)
{
    c->entries = entries;
    c->window = window;
}

void checkpointer_destroy (struct checkpointer *c)
{
    if (!c)
        return;
    if (c->loop)
        pgloop_destroy (c->loop);
    if (c->timer)
        event_free (c->timer);
    arena_destroy (c->arena);
    free (c);
}
