/* query: answers questions by a timeline of the cluster, and keeps one for those that follow
 * while nothing changes. The daemon (showbf, estimates, co-allocation) and the simulators call
 * it. A question promises nothing and reserves nothing: the answer holds until the next event. */
#include "local/core/query.h"

#include "local/core/timeline.h"

#include <string.h>

/* A timeline grows a little with every question that is asked of it. */
enum { QUESTIONS_MAX = 2000 };

static uint32_t classes (const struct cluster *c)
{
    return c->access ? c->access->count : 0;
}

/* A long queue is asked about more often than anything in it changes: each submission is a question. */
static struct timeline *timeline_of_queue (struct cluster *c, time_us now)
{
    struct asked_last *last = &c->asked;
    if (!last->arena || last->settled != c->settled || last->classes != classes (c) ||
        last->uses >= QUESTIONS_MAX || !timeline_forward (last->timeline, now)) {
        if (!last->arena)
            last->arena = arena_create (0);
        arena_reset (last->arena);
        last->timeline = timeline_make (c, last->arena, now, true, (struct rsv_id){0});
        last->settled = c->settled;
        last->classes = classes (c);
        last->uses = 0;
    }
    last->uses++;
    return last->timeline;
}

/* What every question begins with: checked reqs as shapes, and a timeline. */
struct asked {
    uint32_t shape[REQS_MAX];
    struct wanted w;
    struct timeline *tl;
    time_us from;
};

static int ask (struct cluster *c, const struct query *q, time_us now, struct arena *arena,
                struct asked *out, struct err *err)
{
    if (q->req_count < 1 || q->req_count > REQS_MAX)
        return err_set (err, ERR_INVALID, "query: %u reqs, must be 1 to %d", q->req_count,
                        REQS_MAX);
    if (q->duration <= 0)
        return err_set (err, ERR_INVALID, "query: the duration must be positive");
    for (uint32_t r = 0; r < q->req_count; r++) {
        int wrong = req_check (c, &q->req[r], r, err);
        if (wrong != 0)
            return wrong;
    }
    int rc = reqs_together (q->req, q->req_count, err);
    if (rc == 0)
        rc = licences_check (c, q->licence, q->licence_count, err);
    if (rc != 0)
        return rc;
    cluster_settle (c);
    if (now < c->now)
        now = c->now;
    for (uint32_t r = 0; r < q->req_count; r++) {
        out->shape[r] =
            shape_intern (c, &q->req[r], access_of (c, q->who), q->who ? q->who->cred : NULL);
        (void)shape_refresh (c, out->shape[r]);
    }
    out->w = (struct wanted){q->req_count, q->req, out->shape, q->licence_count, q->licence};
    if (q->queue && !q->inside.v && !q->instead)
        out->tl = timeline_of_queue (c, now);
    else if (q->instead)
        out->tl = timeline_without (c, arena, now, q->queue, q->instead);
    else
        out->tl = timeline_make (c, arena, now, q->queue, q->inside);
    out->from = q->from > now ? q->from : now;
    return 0;
}

static void answered (struct cluster *c, const struct query *q, struct asked *a)
{
    for (uint32_t r = 0; r < q->req_count; r++)
        shape_release (c, a->shape[r]);
}

/* Why not at `at`. Reservations that keep it out are named where that is now. */
static struct reason refusal (struct cluster *c, const struct query *q, struct asked *a, time_us at,
                              time_us now)
{
    struct reason why = {.code = REASON_RESOURCES, .clears = TIME_US_NONE};

    if (!timeline_licensed (a->tl, &a->w, at, time_add (at, q->duration)))
        return licences_reason (c, q->licence, q->licence_count);
    for (uint32_t r = 0; r < q->req_count; r++) {
        const struct shape *s = &c->shape[a->shape[r]];
        why.which = (uint8_t)r;
        why.need = q->req[r].tasks;
        if (s->fit_max < q->req[r].tasks) {
            why.code = REASON_NEVER_FITS;
            why.have = (int64_t)s->fit_max;
            return why;
        }
        why.code = shape_in_set (c, s) ? REASON_NODE_SET : REASON_RESOURCES;
        why.have = (int64_t)timeline_count (a->tl, s, at, q->duration, q->req[r].tasks);
        if (why.have >= why.need)
            continue;
        uint64_t moment = timeline_count (a->tl, s, at, 1, q->req[r].tasks);
        if (moment >= q->req[r].tasks) {
            why.code = REASON_PROMISED;
            why.have = (int64_t)moment;
            why.length = q->duration;
        } else if (why.code == REASON_RESOURCES && at <= now &&
                   access_barred_now (c, a->shape[r], (uint64_t)(why.need - why.have), &why.rsv)) {
            why.code = REASON_BARRED;
        }
        return why;
    }
    return why;
}

int query_earliest (struct cluster *c, const struct query *q, time_us now, struct arena *arena,
                    struct slot *out, struct err *err)
{
    struct asked a;
    int rc = ask (c, q, now, arena, &a, err);

    if (rc != 0)
        return rc;
    memset (out, 0, sizeof *out);
    out->reason = (struct reason){.code = REASON_NONE, .clears = TIME_US_NONE};
    if (!narrow_place (a.tl, arena, &a.w, 0, q->duration, a.from, q->until, CHOICE_POLICY,
                       &out->start, &out->allocation))
        out->start = TIME_US_NONE;
    /* What comes again is in the timeline for its next times only: after the last of them is no moment. */
    if (out->start != a.from && !q->inside.v &&
        never_recurs_why (c, &a.w, q->duration, &out->reason)) {
        out->start = TIME_US_NONE;
        out->allocation = (struct allocation){0};
    } else if (out->start != a.from) {
        out->reason = refusal (c, q, &a, a.from, now);
        if (out->start == TIME_US_NONE && q->until == TIME_US_MAX &&
            (out->reason.code == REASON_RESOURCES || out->reason.code == REASON_PROMISED ||
             out->reason.code == REASON_BARRED))
            out->reason = never_why (a.tl, &a.w);
        out->reason.clears = out->start;
    }
    answered (c, q, &a);
    return 0;
}

int query_slot (struct cluster *c, const struct query *q, time_us start, time_us now,
                struct arena *arena, bool *granted, struct slot *out, struct err *err)
{
    struct asked a;
    int rc = ask (c, q, now, arena, &a, err);

    if (rc != 0)
        return rc;
    if (start < now) {
        answered (c, q, &a);
        return err_set (err, ERR_INVALID, "query: the slot has begun already");
    }
    memset (out, 0, sizeof *out);
    out->reason = (struct reason){.code = REASON_NONE, .clears = TIME_US_NONE};
    out->start = start;
    *granted =
        timeline_choose (a.tl, arena, &a.w, start, q->duration, CHOICE_POLICY, &out->allocation);
    if (!*granted) {
        out->reason = refusal (c, q, &a, start, now);
        if (!timeline_place (a.tl, arena, &a.w, q->duration, start, q->until, CHOICE_POLICY,
                             &out->start, &out->allocation))
            out->start = TIME_US_NONE;
        out->reason.clears = out->start;
    }
    answered (c, q, &a);
    return 0;
}

/* --- intervals ---------------------------------------------------------------------------- */

struct collect {
    struct interval *list;
    uint32_t count, max;
};

static bool collect_one (void *self, time_us begin, time_us end)
{
    struct collect *into = self;

    if (into->count == into->max)
        return false;
    into->list[into->count++] = (struct interval){begin, end};
    return true;
}

/* Where counting is not enough: whether all fits together, moment by moment. */
static void intervals_together (struct cluster *c, const struct query *q, struct asked *a,
                                struct arena *arena, struct collect *into)
{
    time_us at = a->from, since = TIME_US_NONE, next;
    struct allocation ignored;
    uint32_t bounds = timeline_bounds (a->tl);

    (void)c;
    while (at <= q->until && into->count < into->max) {
        bool fits = timeline_choose (a->tl, arena, &a->w, at, q->duration, CHOICE_POLICY, &ignored);
        if (fits && since == TIME_US_NONE)
            since = at;
        if (!fits && since != TIME_US_NONE) {
            (void)collect_one (into, since, at - 1);
            since = TIME_US_NONE;
        }
        next = timeline_next_bound (a->tl, bounds, at, q->duration);
        if (next == TIME_US_MAX)
            break;
        at = next;
    }
    if (since != TIME_US_NONE)
        (void)collect_one (into, since, q->until);
}

int query_intervals (struct cluster *c, const struct query *q, time_us now, uint32_t max,
                     struct arena *arena, struct interval **out, uint32_t *count_out,
                     struct err *err)
{
    struct asked a;
    struct collect into = {NULL, 0, max};
    int rc = ask (c, q, now, arena, &a, err);

    if (rc != 0)
        return rc;
    into.list = arena_array (arena, max ? max : 1, sizeof *into.list);
    if (timeline_countable (a.tl, &a.w))
        timeline_starts (a.tl, &c->shape[a.shape[0]], q->req[0].tasks, q->duration, a.from,
                         q->until, collect_one, &into);
    else
        intervals_together (c, q, &a, arena, &into);
    answered (c, q, &a);
    *out = into.list;
    *count_out = into.count;
    return 0;
}

/* --- several together ----------------------------------------------------------------------- */

/* A question under way: of each member what is asked and where it was put. */
struct together {
    const struct query_member *member;
    struct asked *asked;
    struct allocation *place;
    uint32_t looked;
    struct timeline *tl;
    struct arena *arena;
    uint64_t work, each; /* done; of one member at one moment */
};

/* How many of the first fit when the common moment is `at`. Leaves the timeline as it was. */
static uint32_t together_fit (struct together *t, time_us at)
{
    uint32_t fit = 0;

    while (fit < t->looked) {
        const struct query_member *m = &t->member[fit];
        time_us start = time_add (at, m->offset);
        t->work += t->each;
        if (!timeline_choose (t->tl, t->arena, &t->asked[fit].w, start, m->query.duration,
                              CHOICE_POLICY, &t->place[fit]))
            break;
        timeline_take (t->tl, &t->asked[fit].w, &t->place[fit], start,
                       time_add (start, m->query.duration), 1);
        fit++;
    }
    for (uint32_t i = fit; i-- > 0;) {
        time_us start = time_add (at, t->member[i].offset);
        timeline_take (t->tl, &t->asked[i].w, &t->place[i], start,
                       time_add (start, t->member[i].query.duration), -1);
    }
    return fit;
}

/* The next common moment at which that may be another number. */
static time_us together_next (struct together *t, uint32_t bounds, time_us at)
{
    time_us next = TIME_US_MAX;

    for (uint32_t i = 0; i < t->looked; i++) {
        time_us bound = timeline_next_bound (t->tl, bounds, time_add (at, t->member[i].offset),
                                             t->member[i].query.duration);
        t->work += bounds / 8;
        if (bound != TIME_US_MAX && bound - t->member[i].offset < next)
            next = bound - t->member[i].offset;
    }
    return next;
}

static void together_sweep (struct together *t, time_us from, time_us until, uint32_t enough,
                            uint32_t room, struct query_set *out)
{
    uint32_t bounds = timeline_bounds (t->tl), last = UINT32_MAX;
    time_us at = from;

    out->until = until;
    while (at <= until) {
        uint32_t fit = together_fit (t, at);
        time_us next = together_next (t, bounds, at), end = next > until ? until : next - 1;
        bool more = fit > 0 && fit != last;
        if (fit > 0 && fit == last)
            out->step[out->count - 1].end = end;
        if (more && (out->count == room || (enough == 0 && fit == t->looked))) {
            out->until = at - 1;
            return;
        }
        if (more) {
            out->step[out->count++] = (struct query_step){at, end, fit};
            enough -= fit == t->looked;
        }
        last = fit;
        at = end == INT64_MAX ? INT64_MAX : end + 1;
        if (end >= until)
            return;
        if (t->work >= QUERY_SET_WORK) {
            out->until = end;
            return;
        }
    }
}

int query_set (struct cluster *c, const struct query_member *member, uint32_t count, time_us from,
               time_us until, uint32_t enough, time_us now, struct arena *arena,
               struct query_set *out, struct err *err)
{
    enum { STEPS_MAX = 256 };
    struct together t = {.member = member, .arena = arena};
    uint32_t asked = 0;
    int rc = 0;

    *out = (struct query_set){.step = arena_array (arena, STEPS_MAX, sizeof *out->step)};
    t.asked = arena_array (arena, count + 1, sizeof *t.asked);
    t.place = arena_array (arena, count + 1, sizeof *t.place);
    for (; rc == 0 && asked < count; asked += rc == 0)
        rc = ask (c, &member[asked].query, now, arena, &t.asked[asked], err);
    if (rc == 0) {
        t.tl = t.asked[0].tl;
        t.each = c->node_count + 64;
        t.looked = QUERY_SET_WORK / t.each < count ? (uint32_t)(QUERY_SET_WORK / t.each) : count;
        t.looked = t.looked < 2 && count >= 2 ? 2 : t.looked;
        out->looked = t.looked;
        together_sweep (&t, from, until, enough, STEPS_MAX, out);
        c->asked.uses += (uint32_t)(t.work / t.each) / 4;
    }
    for (uint32_t i = 0; i < asked; i++)
        answered (c, &member[i].query, &t.asked[i]);
    return rc;
}

/* --- windows and tables --------------------------------------------------------------------- */

int query_windows (struct cluster *c, const struct who *who, bool queue, time_us now,
                   struct arena *arena, struct window **out, uint32_t *count_out, struct err *err)
{
    return query_windows_on (c, who, NULL, queue, now, arena, out, count_out, err);
}

int query_windows_on (struct cluster *c, const struct who *who, const struct allocation *only,
                      bool queue, time_us now, struct arena *arena, struct window **out,
                      uint32_t *count_out, struct err *err)
{
    struct timeline *tl;
    struct window *list = NULL;
    uint32_t count = 0, cap = 0;
    duration_us least = 1;

    (void)err;
    cluster_settle (c);
    tl = timeline_make (c, arena, now < c->now ? c->now : now, queue, (struct rsv_id){0});
    timeline_view (tl, access_of (c, who));
    if (only)
        timeline_restrict (tl, only);
    for (;;) {
        struct window w = {timeline_window (tl, least), 0, 0};
        timeline_free (tl, w.length, &w.nodes, &w.procs);
        if (count == cap) {
            struct window *more = arena_array (arena, cap ? cap * 2 : 8, sizeof *more);
            if (count)
                memcpy (more, list, count * sizeof *list);
            list = more;
            cap = cap ? cap * 2 : 8;
        }
        if (w.procs > 0)
            list[count++] = w;
        if (w.length == TIME_US_MAX || w.procs == 0)
            break;
        least = w.length + 1;
    }
    *out = list;
    *count_out = count;
    return 0;
}

int query_table (struct cluster *c, const uint32_t *sizes, uint32_t size_count,
                 const duration_us *durations, uint32_t duration_count, int32_t mem_mb, bool queue,
                 time_us now, time_us *start_out, struct err *err)
{
    struct req req = {.tasks = 1};
    struct query q = {.req_count = 1,
                      .req = &req,
                      .duration = 1,
                      .from = TIME_US_NONE,
                      .until = TIME_US_MAX,
                      .queue = queue};
    struct arena *arena = arena_create (0);
    struct asked a;
    int rc;

    req.task.v[RES_PROCS] = 1;
    req.task.v[RES_MEM_MB] = mem_mb;
    rc = ask (c, &q, now, arena, &a, err);
    if (rc == 0) {
        for (uint32_t s = 0; s < size_count; s++) {
            for (uint32_t d = 0; d < duration_count; d++) {
                time_us *at = &start_out[s * duration_count + d];
                if (!timeline_earliest (a.tl, &c->shape[a.shape[0]], sizes[s], durations[d], a.from,
                                        TIME_US_MAX, at))
                    *at = TIME_US_NONE;
            }
        }
        answered (c, &q, &a);
    }
    arena_destroy (arena);
    return rc;
}
