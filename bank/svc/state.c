/* The state of all objects as one root, so that a block, and with it an anchor, says what there was: every STATEINTERVAL
 * in which something was recorded, and when somebody asks for the proof of an object, the lines of all objects are read
 * in one snapshot, and an operation of kind "state" records their root. Nothing waits for it: what it names is the state
 * as it was when a block was the newest. */
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "bank/svc/notify.h"
#include "bank/svc/service_impl.h"
#include "proto/base/clock.h"

#define CLIENT "bank:state"

enum { ROWS_MAX = 256 };

/* Of people who are nobody's office: one look at a time for all of them, so long apart as nine of it take, so that they
 * have a tenth of the reading connection at most; one who waits may not ask for another. */
enum { PEOPLE_SHARE = 10, PEOPLE_WAIT_MAX = 256 };

struct state {
    struct bank_service *svc;
    struct event *timer;
    int64_t op, block; /* the last one that was recorded, and the block that holds it; 0: none */
    struct audit_state is;
    uint32_t asked;              /* looks that are under way */
    STAILQ_HEAD (, look) people; /* that wait; the first is under way when looking is set */
    uint32_t people_count;
    bool looking;
    struct event *turn; /* of the next one */
    bool gone;          /* destroyed: the last answer frees it */
};

struct look {
    STAILQ_ENTRY (look) link;
    char *who; /* NULL: no office is asked of it */
    char *table, *key;
    duration_us began;
    struct state *state;
    struct work *work; /* that asked for a proof, or for an anchor; NULL: it was time */
    bool anchor;
    struct audit_state is;
    int64_t op;
    char text[AUDIT_STATE_TEXT_MAX];
    struct ledger_request req;
};

static void people_end (struct look *look)
{
    struct state *state = look->state;
    duration_us rest = (clock_monotonic_us () - look->began) * (PEOPLE_SHARE - 1);
    struct timeval after = {.tv_sec = rest / US_PER_S, .tv_usec = rest % US_PER_S};
    if (!state->gone) {
        STAILQ_REMOVE_HEAD (&state->people, link);
        state->people_count--;
        state->looking = false;
        evtimer_add (state->turn, &after);
    }
    free (look->who);
    free (look->table);
    free (look->key);
}

static void look_end (struct look *look, const struct err *err)
{
    struct state *state = look->state;
    if (look->who)
        people_end (look);
    if (look->work)
        work_fail (look->work, err);
    else if (err->code && !state->gone)
        log_event (state->svc->log, LOG_LEVEL_WARN, "bank", "state_not_recorded", "why=%s",
                   log_quote (err->text, (char[ERR_TEXT_MAX]){0}, ERR_TEXT_MAX));
    if (!look->work && !state->gone)
        notify_state (state->svc->notify, err->code ? err->text : NULL);
    free (look);
    if (--state->asked == 0 && state->gone)
        free (state);
}

static void on_proof (void *arg, const struct err *err, const struct audit_block *block,
                      const struct audit_op *op, uint32_t count, const char *lines)
{
    struct look *look = arg;
    struct state *state = look->state;
    struct block in;
    struct err mine = *err;
    if (!mine.code && !state->gone && block_decode (block->body, BLOCK_BYTES, &in, &mine) == 0) {
        state->op = look->op;
        state->block = in.number;
        state->is = look->is;
    }
    if (!mine.code && look->work && look->anchor)
        blocks_give (look->work);
    else if (!mine.code && look->work)
        proof_give (look->work, look->op, block, op, count, lines);
    if (!mine.code)
        look->work = NULL;
    look_end (look, &mine);
}

static void state_prove (struct look *look)
{
    auditread_proof (look->state->svc->reader, "", look->op, on_proof, look);
}

static void on_recorded (void *arg, const struct err *err, const void *bytes, size_t len)
{
    struct look *look = arg;
    struct err mine = *err;
    Nui__Bank__V1__DoneReply *done =
        mine.code ? NULL : nui__bank__v1__done_reply__unpack (NULL, len, bytes);
    long long op = 0;
    if (done && sscanf (done->id, "op.%lld", &op) == 1)
        look->op = op;
    else if (!mine.code)
        err_set (&mine, ERR_INTERNAL, "a state was recorded as no operation");
    if (done)
        nui__bank__v1__done_reply__free_unpacked (done, NULL);
    if (mine.code || look->state->gone)
        look_end (look, &mine);
    else
        state_prove (look);
}

/* The rows that were asked for, with their ways up. */
static void rows_put (struct work *work, const struct audit_objects *objects,
                      const struct merkle_hash *leaf)
{
    struct merkle_hash path[MERKLE_PATH_MAX];
    for (uint32_t i = 0; i < objects->count && work->row_count < ROWS_MAX; i++) {
        if (!objects->named[i])
            continue;
        Nui__Bank__V1__StateRow *row = arena_new (work->arena, Nui__Bank__V1__StateRow);
        nui__bank__v1__state_row__init (row);
        row->line = arena_strdup (work->arena, objects->line[i]);
        row->index = i;
        row->n_path = merkle_path (leaf, objects->count, i, path);
        row->path = arena_array (work->arena, row->n_path, sizeof (*row->path));
        for (size_t k = 0; k < row->n_path; k++)
            row->path[k] = (ProtobufCBinaryData){
                MERKLE_BYTES, arena_memdup (work->arena, path[k].b, MERKLE_BYTES)};
        if (!work->rows)
            work->rows = arena_array (work->arena, ROWS_MAX, sizeof (*work->rows));
        work->rows[work->row_count++] = row;
    }
}

static void state_root (struct look *look, const struct audit_objects *objects)
{
    struct strbuf scratch = STRBUF_INIT;
    struct merkle_hash *leaf = calloc (objects->count + 1, sizeof (*leaf));
    if (!leaf)
        abort ();
    for (uint32_t i = 0; i < objects->count; i++)
        leaf[i] = audit_line_leaf (objects->line[i], strlen (objects->line[i]), &scratch);
    look->is = (struct audit_state){.root = merkle_root (leaf, objects->count),
                                    .rows = objects->count,
                                    .block = objects->newest};
    if (look->work)
        rows_put (look->work, objects, leaf);
    strbuf_free (&scratch);
    free (leaf);
}

static void on_objects (void *arg, const struct err *err, const struct audit_objects *objects)
{
    struct look *look = arg;
    struct state *state = look->state;
    struct err mine = *err;
    if (!mine.code && !state->gone)
        state_root (look, objects);
    if (!mine.code && look->work && !look->anchor && look->work->row_count == 0)
        err_set (&mine, ERR_NOT_FOUND,
                 "there is no such object, or it concerns no account that you see");
    if (mine.code || state->gone) {
        look_end (look, &mine);
        return;
    }
    bool same = state->op && objects->newest == state->block && look->is.rows == state->is.rows &&
                merkle_equal (&look->is.root, &state->is.root);
    if (same && !look->work) {
        look_end (look, &mine);
    } else if (same) {
        look->is = state->is;
        look->op = state->op;
        state_prove (look);
    } else {
        look->req =
            (struct ledger_request){.kind = LEDGER_STATE,
                                    .client = CLIENT,
                                    .on_behalf = CLIENT,
                                    .state.text = audit_state_format (&look->is, look->text)};
        uuid_make (&look->req.key);
        if (committer_submit (state->svc->committer, &look->req, NULL, on_recorded, look, &mine) <
            0)
            look_end (look, &mine);
    }
}

static struct look *look_new (struct state *state, struct work *work, bool anchor)
{
    struct look *look = calloc (1, sizeof (*look));
    if (!look)
        abort ();
    look->state = state;
    look->work = work;
    look->anchor = anchor;
    return look;
}

static void state_look (struct state *state, struct work *work, bool anchor, const char *table,
                        const char *key)
{
    state->asked++;
    auditread_state (state->svc->reader, work && !anchor ? viewer (work) : "", table, key,
                     on_objects, look_new (state, work, anchor));
}

static void people_next (evutil_socket_t fd, short what, void *arg)
{
    struct state *state = arg;
    struct look *look = STAILQ_FIRST (&state->people);
    (void)fd;
    (void)what;
    if (!look || state->looking)
        return;
    state->looking = true;
    state->asked++;
    look->began = clock_monotonic_us ();
    auditread_state (state->svc->reader, look->who, look->table, look->key, on_objects, look);
}

static void people_look (struct state *state, struct work *work, const char *table, const char *key)
{
    struct err err = {0};
    struct look *look;
    STAILQ_FOREACH (look, &state->people, link)
        if (strcmp (look->who, viewer (work)) == 0) {
            err_set (
                &err, ERR_LIMIT,
                "the proof of an object, which all of the bank is read for, is on its way to you: one at a time");
            work_fail (work, &err);
            return;
        }
    if (state->people_count >= PEOPLE_WAIT_MAX) {
        err_set (&err, ERR_UNAVAILABLE, "%d wait for the proof of an object: ask again later",
                 PEOPLE_WAIT_MAX);
        work_fail (work, &err);
        return;
    }
    look = look_new (state, work, false);
    look->who = strdup (viewer (work));
    look->table = strdup (table);
    look->key = strdup (key);
    if (!look->who || !look->table || !look->key)
        abort ();
    STAILQ_INSERT_TAIL (&state->people, look, link);
    state->people_count++;
    if (!state->looking && !evtimer_pending (state->turn, NULL))
        event_active (state->turn, EV_TIMEOUT, 0);
}

void state_proof (struct state *state, struct work *work, const char *object)
{
    const char *colon = strchr (object, ':');
    struct err err = {0};
    if (!colon || colon == object || !colon[1] || strlen (object) > 512) {
        err_set (&err, ERR_INVALID, "'%.80s' names no object, such as account:phys or rate:alpha",
                 object);
        work_fail (work, &err);
        return;
    }
    const char *table = arena_printf (work->arena, "%.*s", (int)(colon - object), object);
    if (*viewer (work))
        people_look (state, work, table, colon + 1);
    else
        state_look (state, work, false, table, colon + 1);
}

void state_anchor (struct state *state, struct work *work)
{
    state_look (state, work, true, "", "");
}

static void on_timer (evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct state *state = arg;
    struct bank_service *svc = state->svc;
    if (!state->asked && reader_is_up (svc->reader) && committer_is_up (svc->committer))
        state_look (state, NULL, false, "", "");
    state_settings (state);
}

void state_settings (struct state *state)
{
    struct timeval after = {(time_t)(state->svc->limits.state / US_PER_S),
                            (suseconds_t)(state->svc->limits.state % US_PER_S)};
    evtimer_add (state->timer, &after);
}

struct state *state_create (struct bank_service *svc)
{
    struct state *state = calloc (1, sizeof (*state));
    if (!state)
        abort ();
    state->svc = svc;
    state->timer = evtimer_new (svc->base, on_timer, state);
    STAILQ_INIT (&state->people);
    state->turn = evtimer_new (svc->base, people_next, state);
    if (!state->timer || !state->turn)
        abort ();
    state_settings (state);
    return state;
}

void state_destroy (struct state *state)
{
    if (!state)
        return;
    struct err err = {0};
    err_set (&err, ERR_UNAVAILABLE, "the bank is being stopped");
    event_free (state->timer);
    event_free (state->turn);
    for (struct look *look; (look = STAILQ_FIRST (&state->people));) {
        STAILQ_REMOVE_HEAD (&state->people, link);
        if (state->looking) { /* its answer frees it */
            state->looking = false;
            continue;
        }
        work_fail (look->work, &err);
        look->work = NULL;
        free (look->who);
        free (look->table);
        free (look->key);
        free (look);
    }
    state->gone = true;
    if (state->asked == 0)
        free (state);
}
