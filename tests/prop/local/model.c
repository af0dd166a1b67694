#include "tests/prop/local/model.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define FOREVER INT64_MAX

enum state { FUTURE, QUEUED, RUNNING, ENDED };

/* What somebody has on one node from when to when: running jobs and promises alike. */
struct taken {
    int node, procs, mem;
    int64_t start, end;
};

struct model {
    const struct model_node *node;
    int node_count;
    struct model_job *job;
    int job_count;
    const struct model_rule *rule;
    enum state *state;
    bool *promised;
    struct taken *taken;
    int taken_count, taken_running;
    int *owner; /* of taken[i] while running */
    int64_t now;
};

static int64_t plus (int64_t a, int64_t b)
{
    return b == FOREVER || a > FOREVER - b ? FOREVER : a + b;
}

/* Tasks of j that a node could run at one moment. */
static int fit_at (const struct model *m, int n, const struct model_job *j, int64_t t)
{
    int procs = m->node[n].procs, mem = m->node[n].mem, fit;

    for (int i = 0; i < m->taken_count; i++) {
        const struct taken *k = &m->taken[i];
        if (k->node == n && k->start <= t && t < k->end) {
            procs -= k->procs;
            mem -= k->mem;
        }
    }
    fit = procs / j->procs;
    if (j->mem && mem / j->mem < fit)
        fit = mem / j->mem;
    return fit < 0 ? 0 : fit;
}

/* … and through [start, end): at its beginning and wherever something begins. */
static int fit_through (const struct model *m, int n, const struct model_job *j, int64_t start,
                        int64_t end)
{
    int fit = fit_at (m, n, j, start);

    for (int i = 0; i < m->taken_count; i++) {
        int64_t t = m->taken[i].start;
        if (m->taken[i].node == n && t > start && t < end && fit_at (m, n, j, t) < fit)
            fit = fit_at (m, n, j, t);
    }
    return fit;
}

static void take (struct model *m, int n, const struct model_job *j, int tasks, int64_t start,
                  int64_t end, int owner)
{
    m->taken[m->taken_count] = (struct taken){n, tasks * j->procs, tasks * j->mem, start, end};
    m->owner[m->taken_count++] = owner;
}

/* Places j over [start, end), asking for nodes that stay free until `until`; false: no room. */
static bool place (struct model *m, int index, int64_t start, int64_t end, int64_t until)
{
    const struct model_job *j = &m->job[index];
    int left = j->tasks, room = 0;

    for (int n = 0; n < m->node_count; n++)
        room += fit_through (m, n, j, start, until);
    if (room < left)
        return false;
    for (int n = 0; n < m->node_count && left > 0; n++) {
        int fit = fit_through (m, n, j, start, until);
        if (fit > left)
            fit = left;
        if (fit > 0)
            take (m, n, j, fit, start, end, index);
        left -= fit;
    }
    return true;
}

static int by_time (const void *a, const void *b)
{
    const int64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

enum { NOBODY = -1 }; /* owns what is reserved */

static void blocks_take (struct model *m)
{
    for (int i = 0; i < m->rule->block_count; i++) {
        const struct model_block *b = &m->rule->block[i];
        m->taken[m->taken_count] =
            (struct taken){b->node, m->node[b->node].procs, 0, b->start, b->end};
        m->owner[m->taken_count++] = NOBODY;
    }
    m->taken_running = m->taken_count;
}

/* The first of now and all ends at which j can be placed. */
static bool promise (struct model *m, int index)
{
    int count = 0;
    int64_t *at = malloc ((size_t)(m->taken_count + 1) * sizeof *at);
    bool done = false;

    at[count++] = m->now;
    for (int i = 0; i < m->taken_count; i++)
        at[count++] = m->taken[i].end;
    qsort (at, (size_t)count, sizeof *at, by_time);
    for (int i = 0; i < count && !done; i++) {
        if (at[i] >= m->now && at[i] != FOREVER) {
            int64_t end = plus (at[i], m->job[index].limit);
            done = place (m, index, at[i], end, end);
        }
    }
    free (at);
    m->promised[index] = done;
    return done;
}

static void start (struct model *m, int index)
{
    m->state[index] = RUNNING;
    m->job[index].start = m->now;
}

/* --- late binding: processors are all alike, promises are numbers ------------------------------ */

static int late_free (const struct model *m, int64_t t)
{
    int free = 0;

    for (int n = 0; n < m->node_count; n++)
        free += m->node[n].procs;
    for (int i = 0; i < m->taken_count; i++) {
        if (m->taken[i].start <= t && t < m->taken[i].end)
            free -= m->taken[i].procs;
    }
    return free;
}

static bool late_place (struct model *m, int index, int64_t begin)
{
    const struct model_job *j = &m->job[index];
    int64_t end = plus (begin, j->limit);

    if (late_free (m, begin) < j->tasks)
        return false;
    for (int i = 0; i < m->taken_count; i++) {
        int64_t t = m->taken[i].start;
        if (t > begin && t < end && late_free (m, t) < j->tasks)
            return false;
    }
    take (m, 0, j, j->tasks, begin, end, index);
    return true;
}

static bool late_promise (struct model *m, int index)
{
    int64_t best = FOREVER;
    int count = m->taken_count;

    for (int i = 0; i < count; i++) {
        int64_t t = m->taken[i].end;
        if (t > m->now && t < best && late_place (m, index, t)) {
            m->taken_count--; /* only tried */
            best = t;
        }
    }
    m->promised[index] = best != FOREVER && late_place (m, index, best);
    return m->promised[index];
}

/* --- the pass ------------------------------------------------------------------------------------ */

static bool try_now (struct model *m, int index, int64_t length)
{
    int64_t end = plus (m->now, m->job[index].limit);
    bool fits = m->rule->late ? late_place (m, index, m->now)
                              : place (m, index, m->now, end, length ? plus (m->now, length) : end);

    if (fits)
        start (m, index);
    return fits;
}

/* Is less of anything free on the node from t on than just before? */
static bool less_from (const struct model *m, int n, int64_t t)
{
    int procs = 0, mem = 0;

    for (int i = 0; i < m->taken_count; i++) {
        const struct taken *k = &m->taken[i];
        if (k->node == n && k->start == t) {
            procs += k->procs;
            mem += k->mem;
        }
        if (k->node == n && k->end == t) {
            procs -= k->procs;
            mem -= k->mem;
        }
    }
    return procs > 0 || mem > 0;
}

/* The shortest window of at least `least`, or the longest shorter than `below`: how long idle nodes
 * keep all that is free on them now. */
static int64_t window (const struct model *m, int64_t least, int64_t below)
{
    static const struct model_job one = {.procs = 1, .tasks = 1};
    int64_t best = below ? 0 : FOREVER;

    for (int n = 0; n < m->node_count; n++) {
        for (int i = 0; i < m->taken_count; i++) {
            int64_t t = m->taken[i].start, length = t - m->now;
            if (m->taken[i].node != n || t <= m->now || !less_from (m, n, t) ||
                fit_through (m, n, &one, m->now, t) == 0)
                continue;
            if (below ? length < below && length > best : length >= least && length < best)
                best = length;
        }
    }
    return best;
}

static void fill (struct model *m, int64_t length)
{
    for (;;) {
        int best = -1;
        for (int i = 0; i < m->job_count; i++) {
            if (m->state[i] != QUEUED || m->promised[i] || (length && m->job[i].limit > length))
                continue;
            if (m->rule->backfill == MODEL_FIRSTFIT) {
                (void)try_now (m, i, length);
                continue;
            }
            int before = m->taken_count;
            bool fits = try_now (m, i, length);
            if (fits) { /* only tried */
                m->state[i] = QUEUED;
                m->taken_count = before;
                m->job[i].start = -1;
            }
            if (fits && (best < 0 || m->job[i].tasks * m->job[i].procs >
                                         m->job[best].tasks * m->job[best].procs))
                best = i;
        }
        if (best < 0)
            return;
        (void)try_now (m, best, length);
    }
}

static void backfill (struct model *m)
{
    if (m->rule->late) {
        fill (m, 0);
    } else if (m->rule->longest_first) {
        for (int64_t w = FOREVER; w > 0; w = window (m, 0, w))
            fill (m, w);
    } else {
        for (int64_t w = window (m, 1, 0);; w = window (m, w + 1, 0)) {
            fill (m, w);
            if (w == FOREVER)
                break;
        }
    }
}

/* Is there no moment for it, with all that stands and is promised? */
static bool never (struct model *m, int index)
{
    int before = m->taken_count;
    bool found = m->rule->late ? late_promise (m, index) : promise (m, index);

    m->taken_count = before; /* only tried */
    m->promised[index] = false;
    return !found;
}

static bool pass (struct model *m)
{
    int running = 0, depth = m->rule->backfill == MODEL_NONE ? 0 : m->rule->depth;

    for (int i = 0; i < m->job_count; i++) {
        running += m->state[i] == RUNNING;
        m->promised[i] = false;
    }
    m->taken_count = m->taken_running;
    for (int i = 0; i < m->job_count; i++) {
        if (m->state[i] != QUEUED || try_now (m, i, 0))
            continue;
        if (m->rule->backfill == MODEL_NONE ? never (m, i) : false)
            continue; /* who can never run holds nobody up … */
        if (depth <= 0)
            break;
        depth -= m->rule->late ? late_promise (m, i) : promise (m, i); /* … and uses up nothing */
    }
    if (m->rule->backfill != MODEL_NONE)
        backfill (m);
    m->taken_running = 0; /* keep what runs, forget promises */
    for (int i = 0; i < m->taken_count; i++) {
        if (m->owner[i] != NOBODY && m->state[m->owner[i]] != RUNNING)
            continue;
        m->owner[m->taken_running] = m->owner[i];
        m->taken[m->taken_running++] = m->taken[i];
    }
    m->taken_count = m->taken_running;
    for (int i = 0; i < m->job_count; i++)
        running -= m->state[i] == RUNNING;
    return running < 0;
}

static int64_t blocks_next (const struct model *m, int64_t next)
{
    for (int i = 0; i < m->rule->block_count; i++) {
        const struct model_block *b = &m->rule->block[i];
        if (b->start > m->now && b->start < next)
            next = b->start;
        if (b->end > m->now && b->end < next)
            next = b->end;
    }
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

void model_run (const struct model_node *node, int node_count, struct model_job *job, int job_count,
                const struct model_rule *rule)
{
    struct model m = {node, node_count, job, job_count, rule, NULL, NULL, NULL, 0, 0, NULL, 0};
    size_t most = (size_t)(job_count + 1) * (size_t)(node_count + 1) + (size_t)rule->block_count;

    m.state = calloc ((size_t)job_count + 1, sizeof *m.state);
    m.promised = calloc ((size_t)job_count + 1, sizeof *m.promised);
    m.taken = malloc (most * sizeof *m.taken);
    m.owner = malloc (most * sizeof *m.owner);
    assert (m.state && m.promised && m.taken && m.owner);
    for (int i = 0; i < job_count; i++)
        job[i].start = -1;
    blocks_take (&m);
    for (;;) {
        int64_t next = FOREVER;
        for (int i = 0; i < job_count; i++) {
            int64_t t = m.state[i] == FUTURE    ? job[i].submit
                        : m.state[i] == RUNNING ? job[i].start + job[i].run
                                                : FOREVER;
            next = t < next ? t : next;
        }
        next = blocks_next (&m, next);
        if (next == FOREVER)
            break;
        m.now = next;
        for (int i = 0; i < job_count; i++) {
            if (m.state[i] == RUNNING && job[i].start + job[i].run == next)
                end_job (&m, i);
            else if (m.state[i] == FUTURE && job[i].submit == next)
                m.state[i] = QUEUED;
        }
        while (pass (&m) &&
               rule->block_count) { /* where there are reservations, until nobody starts */
        }
    }
    free (m.state);
    free (m.promised);
    free (m.taken);
    free (m.owner);
}
