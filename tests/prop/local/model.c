/* model: a queue, pass by pass, for test_model.c: who may start, who is promised what, who fills the rest.
 * What nodes have is model_room.c's, limits are model_limit.c's. */
#include "tests/prop/local/model_i.h"

#include <assert.h>
#include <stdlib.h>

/* --- limits ---------------------------------------------------------------------------------- */

static struct model_crowd crowd (struct model *m, int64_t at)
{
    return (struct model_crowd){m->node, m->node_count, m->job, m->job_count,
                                m->rule, m->until,      at};
}

/* With what runs, and at a moment to come with what is promised, too. */
static bool within (struct model *m, int index, int64_t at, bool promises, bool soft)
{
    struct model_crowd c = crowd (m, at);

    for (int i = 0; i < m->job_count; i++) {
        int64_t from = m->state[i] == RUNNING                             ? m->job[i].start
                       : promises && i != index && m->mark[i] == PROMISED ? m->promise[i]
                                                                          : FOREVER;
        int64_t until = plus (from, m->job[i].limit);
        m->until[i] = from <= at && from != FOREVER && until > at ? until : 0;
    }
    return model_within (&c, index, false, soft);
}

/* The next moment after t at which a job that runs or is promised something ends by its limit. */
static int64_t next_end (const struct model *m, int64_t t)
{
    int64_t next = FOREVER;

    for (int i = 0; i < m->taken_count; i++) {
        if (m->owner[i] != NOBODY && m->taken[i].end > t && m->taken[i].end < next)
            next = m->taken[i].end;
    }
    return next;
}

/* --- one job ------------------------------------------------------------------------------------ */

static void start (struct model *m, int index)
{
    m->state[index] = RUNNING;
    m->job[index].start = m->now;
}

/* Is there a moment with room at all? Nothing is taken. */
static bool ever (struct model *m, int index)
{
    int before = m->taken_count;
    int64_t at = m->rule->late ? late_earliest (m, index, m->now) : earliest (m, index, m->now);

    m->taken_count = before;
    return at != FOREVER;
}

/* The earliest moment with room at which soft limits are kept, too. Where there is room but limits are not
 * kept, it is tried again when a job ends. */
static bool promise (struct model *m, int index)
{
    int before = m->taken_count;
    int64_t from = m->now, at;

    while ((at = m->rule->late ? late_earliest (m, index, from) : earliest (m, index, from)) !=
           FOREVER) {
        if (within (m, index, at, true, true)) {
            m->promise[index] = at;
            m->mark[index] = PROMISED;
            return true;
        }
        m->taken_count = before;
        for (from = next_end (m, at); from != FOREVER && !within (m, index, from, true, true);)
            from = next_end (m, from);
        if (from == FOREVER)
            return false;
    }
    return false;
}

static bool admitted (const struct model *m, int index)
{
    for (int i = 0; i < m->taken_count; i++) {
        if (admits (m->taken[i].admits, &m->job[index]))
            return true;
    }
    return false;
}

/* A window says how long nodes stay free for those whom no reservation admits; others need their limit. */
static bool try_now (struct model *m, int index, int64_t length)
{
    int64_t end = plus (m->now, m->job[index].limit);
    bool own = length == 0 || admitted (m, index);
    bool fits = m->rule->late ? late_place (m, index, m->now)
                              : place (m, index, m->now, end, own ? end : plus (m->now, length));

    if (fits)
        start (m, index);
    return fits;
}
/* Of those that wait with this mark: the next to be tried after `after`, largest first or as they came. */
static int next_of (const struct model *m, enum mark mark, int64_t length, int after)
{
    int best = -1;

    for (int i = 0; i < m->job_count; i++) {
        int64_t size = m->job[i].tasks * m->job[i].procs, than;
        if (m->state[i] != QUEUED || m->mark[i] != mark || (length && m->job[i].limit > length))
            continue;
        if (m->rule->backfill == MODEL_FIRSTFIT) {
            if (i > after)
                return i;
            continue;
        }
        than = after < 0 ? FOREVER : m->job[after].tasks * m->job[after].procs;
        if (size > than || (size == than && i <= after))
            continue;
        if (best < 0 || size > m->job[best].tasks * m->job[best].procs)
            best = i;
    }
    return best;
}

static void fill (struct model *m, int64_t length, enum mark mark)
{
    for (int i = next_of (m, mark, length, -1); i >= 0; i = next_of (m, mark, length, i)) {
        if (within (m, i, m->now, false, mark == WAITS))
            (void)try_now (m, i, length);
    }
}

static void backfill (struct model *m, enum mark mark)
{
    if (m->rule->late) {
        fill (m, 0, mark);
    } else if (m->rule->longest_first) {
        for (int64_t w = FOREVER; w > 0; w = window (m, 0, w))
            fill (m, w, mark);
    } else {
        for (int64_t w = window (m, 1, 0);; w = window (m, w + 1, 0)) {
            fill (m, w, mark);
            if (w == FOREVER)
                break;
        }
    }
}

/* Is the node kept from the job for good, from before it could have ended? */
static bool shut (const struct model *m, int n, const struct model_job *j)
{
    for (int i = 0; i < m->rule->block_count; i++) {
        const struct model_block *b = &m->rule->block[i];
        if ((b->nodes >> n & 1) && b->end == FOREVER && b->start < plus (m->now, j->limit) &&
            !admits (b->admits, j))
            return true;
    }
    return false;
}

/* Its tasks that the node takes when idle. */
static int fit_idle (const struct model *m, int n, const struct model_job *j)
{
    int fit = m->node[n].procs / j->procs;

    return j->mem && m->node[n].mem / j->mem < fit ? m->node[n].mem / j->mem : fit;
}

/* More than the whole machine, or (others: beside) than what others do not keep of it for ever. */
static bool too_large (const struct model *m, const struct model_job *j, bool others)
{
    int room = 0;

    for (int n = 0; n < m->node_count; n++)
        room += others && shut (m, n, j) ? 0 : fit_idle (m, n, j);
    return room < j->tasks;
}

/* Does a time of the block, in any week, meet [at, at + limit)? Looked at moment by moment. */
static bool meets (const struct model_block *b, int64_t at, int64_t limit)
{
    for (int64_t t = at; b->period && t < at + limit && t < at + b->period; t++) {
        int64_t phase = ((t - b->start) % b->period + b->period) % b->period;
        if (phase < b->end - b->start)
            return true;
    }
    return false;
}

/* Is there no moment in a week at which blocks that come again, with those for good, leave it enough? */
static bool never_between (const struct model *m, const struct model_job *j)
{
    int64_t span = 0;

    for (int i = 0; i < m->rule->block_count; i++)
        span = m->rule->block[i].period > span ? m->rule->block[i].period : span;
    for (int64_t at = 0; at < span; at++) {
        int room = 0;
        for (int n = 0; n < m->node_count; n++) {
            bool closed = false;
            for (int i = 0; i < m->rule->block_count; i++) {
                const struct model_block *b = &m->rule->block[i];
                closed = closed ||
                         ((b->nodes >> n & 1) && !admits (b->admits, j) &&
                          ((b->end == FOREVER && b->start < m->now) || meets (b, at, j->limit)));
            }
            room += closed ? 0 : fit_idle (m, n, j);
        }
        if (room >= j->tasks)
            return false;
    }
    return span > 0;
}

/* Who is looked at in this pass. Limits of idle jobs are filled in order; who can never run takes nobody's
 * place there. */
static void mark_all (struct model *m)
{
    int64_t *idle = calloc ((size_t)m->job_count + 1, sizeof *idle);
    int64_t *nobody = calloc ((size_t)m->job_count + 1, sizeof *nobody);
    struct model_crowd waiting = crowd (m, 0), empty = waiting;

    assert (idle && nobody);
    waiting.until = idle;
    empty.until = nobody;
    for (int i = 0; i < m->job_count; i++)
        m->mark[i] = OUT;
    for (int i = 0; i < m->job_count; i++) {
        bool lost = m->state[i] == QUEUED &&
                    (too_large (m, &m->job[i], true) || never_between (m, &m->job[i]));
        if (m->state[i] != QUEUED || !model_alone (&waiting, i) ||
            too_large (m, &m->job[i], false) || !model_within (&empty, i, false, false) ||
            (!lost && !model_within (&waiting, i, true, false)))
            continue;
        idle[i] = !lost;
        m->mark[i] = within (m, i, m->now, false, true)    ? WAITS
                     : within (m, i, m->now, false, false) ? OVER_SOFT
                                                           : OUT;
    }
    free (idle);
    free (nobody);
}

/* In order of priority, to the first job that can have neither nodes nor a promise. */
static void walk (struct model *m)
{
    int depth = m->rule->backfill == MODEL_NONE ? 0 : m->rule->depth;

    for (int i = 0; i < m->job_count; i++) {
        if (m->state[i] != QUEUED || m->mark[i] != WAITS)
            continue;
        if (!within (m, i, m->now, false, true)) {
            m->mark[i] = OVER_SOFT;
            continue;
        }
        if (try_now (m, i, 0))
            continue;
        if (never_between (m, &m->job[i])) {
            m->mark[i] = OUT;
            continue;
        }
        if (m->rule->backfill == MODEL_NONE && !ever (m, i))
            continue; /* who can never run holds nobody up … */
        if (depth <= 0)
            return;
        if (promise (m, i))
            depth--; /* … and uses up nothing */
        else
            m->mark[i] = TRIED;
    }
}

static bool pass (struct model *m)
{
    int running = 0;

    for (int i = 0; i < m->job_count; i++) {
        running += m->state[i] == RUNNING;
        m->promise[i] = FOREVER;
    }
    m->taken_count = m->taken_running;
    blocks_take (m);
    mark_all (m);
    walk (m);
    if (m->rule->backfill != MODEL_NONE) {
        backfill (m, WAITS);
        backfill (m, OVER_SOFT);
    }
    m->taken_running = 0; /* keep what runs, forget promises */
    for (int i = 0; i < m->taken_count; i++) {
        if (m->owner[i] == NOBODY || m->state[m->owner[i]] != RUNNING)
            continue;
        m->owner[m->taken_running] = m->owner[i];
        m->taken[m->taken_running++] = m->taken[i];
    }
    m->taken_count = m->taken_running;
    for (int i = 0; i < m->job_count; i++)
        running -= m->state[i] == RUNNING;
    return running < 0;
}

static void sooner (int64_t t, int64_t now, int64_t *next)
{
    if (t > now && t < *next)
        *next = t;
}

/* When time alone may let somebody start. */
static int64_t next_by_time (const struct model *m)
{
    const struct model_rule *rule = m->rule;
    int64_t next = FOREVER, start, end;
    bool waits = false, runs = false, comes = false;

    for (int i = 0; i < m->job_count; i++) {
        waits = waits || m->state[i] == QUEUED;
        runs = runs || m->state[i] == RUNNING;
        comes = comes || m->state[i] == FUTURE;
    }
    if (!waits || (!runs && !comes && m->now - m->last > rule->patience))
        return FOREVER;
    for (int i = 0; i < rule->block_count; i++) {
        for (int k = 0; k < rule->block[i].depth; k++) {
            if (block_time (&rule->block[i], m->now, k, &start, &end)) {
                sooner (start, m->now, &next);
                sooner (end, m->now, &next);
            }
        }
    }
    for (int i = 0; i < m->job_count && (rule->block_count || model_timed (rule)); i++) {
        if (m->state[i] == QUEUED)
            sooner (m->promise[i], m->now, &next);
    }
    if (runs && model_timed (rule))
        sooner (m->job[0].submit + ((m->now - m->job[0].submit) / rule->poll + 1) * rule->poll,
                m->now, &next);
    return next;
}

static void end_job (struct model *m, int index)
{
    int kept = 0;

    m->state[index] = ENDED;
    for (int i = 0; i < m->taken_running; i++) {
        if (m->owner[i] == index)
            continue;
        m->owner[kept] = m->owner[i];
        m->taken[kept++] = m->taken[i];
    }
    m->taken_count = m->taken_running = kept;
}

/* The next moment at which something happens; FOREVER: nothing will. */
static int64_t next_moment (const struct model *m)
{
    int64_t next = next_by_time (m);

    for (int i = 0; i < m->job_count; i++) {
        int64_t t = m->state[i] == FUTURE    ? m->job[i].submit
                    : m->state[i] == RUNNING ? m->job[i].start + m->job[i].run
                                             : FOREVER;
        next = t < next ? t : next;
    }
    return next;
}

static void happen (struct model *m)
{
    for (int i = 0; i < m->job_count; i++) {
        bool ends = m->state[i] == RUNNING && m->job[i].start + m->job[i].run == m->now;
        bool comes = m->state[i] == FUTURE && m->job[i].submit == m->now;
        if (ends)
            end_job (m, i);
        else if (comes)
            m->state[i] = QUEUED;
        m->last = ends || comes ? m->now : m->last;
    }
}

void model_run (const struct model_node *node, int node_count, struct model_job *job, int job_count,
                const struct model_rule *rule)
{
    struct model m = {.node = node,
                      .node_count = node_count,
                      .job = job,
                      .job_count = job_count,
                      .rule = rule,
                      .now = -1};
    size_t jobs = (size_t)job_count + 1, most = jobs * (size_t)(node_count + 1);

    for (int i = 0; i < rule->block_count; i++)
        most += (size_t)rule->block[i].depth * (size_t)node_count;
    m.state = calloc (jobs, sizeof *m.state);
    m.mark = calloc (jobs, sizeof *m.mark);
    m.promise = calloc (jobs, sizeof *m.promise);
    m.until = calloc (jobs, sizeof *m.until);
    m.taken = malloc (most * sizeof *m.taken);
    m.owner = malloc (most * sizeof *m.owner);
    assert (m.state && m.mark && m.promise && m.until && m.taken && m.owner);
    for (int i = 0; i < job_count; i++) {
        job[i].start = -1;
        m.promise[i] = FOREVER;
    }
    while ((m.now = next_moment (&m)) != FOREVER) {
        happen (&m);
        while (pass (&m) && (rule->block_count || rule->limit_count)) {
            /* where there are reservations or limits, until nobody starts */
        }
    }
    free (m.state);
    free (m.mark);
    free (m.promise);
    free (m.until);
    free (m.taken);
    free (m.owner);
}
