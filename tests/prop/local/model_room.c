/* model_room: who has what on each node from when to when, as a list, for model.c. Each question walks all
 * of it at each moment that matters. */
#include "tests/prop/local/model_i.h"

#include <assert.h>
#include <stdlib.h>

int64_t plus (int64_t a, int64_t b)
{
    return b == FOREVER || a > FOREVER - b ? FOREVER : a + b;
}

bool admits (uint32_t users, const struct model_job *j)
{
    return j->cred[MODEL_USER] >= 0 && (users >> j->cred[MODEL_USER] & 1);
}

/* Tasks of j that a node could run at one moment. */
static int fit_at (const struct model *m, int n, const struct model_job *j, int64_t t)
{
    int procs = m->node[n].procs, mem = m->node[n].mem, fit;

    for (int i = 0; i < m->taken_count; i++) {
        const struct taken *k = &m->taken[i];
        if (k->node == n && k->start <= t && t < k->end && !admits (k->admits, j)) {
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
    m->taken[m->taken_count] = (struct taken){n, tasks * j->procs, tasks * j->mem, start, end, 0};
    m->owner[m->taken_count++] = owner;
}

/* Is the node in a reservation then that admits the job? */
static bool invited (const struct model *m, int n, const struct model_job *j, int64_t start,
                     int64_t end)
{
    for (int i = 0; i < m->taken_count; i++) {
        const struct taken *k = &m->taken[i];
        if (k->node == n && k->start < end && k->end > start && admits (k->admits, j))
            return true;
    }
    return false;
}

/* Places j over [start, end), asking for nodes that stay free until `until`; false: no room. */
bool place (struct model *m, int index, int64_t start, int64_t end, int64_t until)
{
    const struct model_job *j = &m->job[index];
    int left = j->tasks, room = 0;
    int taken = m->taken_count;

    for (int n = 0; n < m->node_count; n++)
        room += fit_through (m, n, j, start, until);
    if (room < left)
        return false;
    for (int i = 0; i < 2 * m->node_count && left > 0; i++) {
        int n = i % m->node_count, fit;
        if (invited (m, n, j, start, until) != (i < m->node_count))
            continue;
        fit = fit_through (m, n, j, start, until);
        if (fit > left)
            fit = left;
        if (fit > 0)
            take (m, n, j, fit, start, end, index);
        left -= fit;
    }
    assert (left == 0 && m->taken_count > taken);
    return true;
}

static int by_time (const void *a, const void *b)
{
    const int64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static void block_take (struct model *m, const struct model_block *b, int64_t start, int64_t end)
{
    for (int n = 0; n < m->node_count; n++) {
        if (!(b->nodes >> n & 1))
            continue;
        m->taken[m->taken_count] = (struct taken){n, m->node[n].procs, 0, start, end, b->admits};
        m->owner[m->taken_count++] = NOBODY;
    }
}

/* The k-th of its times, the first that is not over being 0. */
bool block_time (const struct model_block *b, int64_t now, int k, int64_t *start, int64_t *end)
{
    int64_t turn = 0;

    if (b->period && b->end <= now)
        turn = (now - b->end) / b->period + 1;
    *start = b->start + (turn + k) * b->period;
    *end = plus (b->end, (turn + k) * b->period);
    return *end > now && (k == 0 || b->period);
}

void blocks_take (struct model *m)
{
    int64_t start, end;

    for (int i = 0; i < m->rule->block_count; i++) {
        const struct model_block *b = &m->rule->block[i];
        for (int k = 0; k < b->depth; k++) {
            if (block_time (b, m->now, k, &start, &end))
                block_take (m, b, start, end);
        }
    }
}

/* The first of `from` and all ends after it at which j can be placed; it is. */
int64_t earliest (struct model *m, int index, int64_t from)
{
    int count = 0;
    int64_t *at = malloc ((size_t)(m->taken_count + 1) * sizeof *at), found = FOREVER;

    assert (at);
    at[count++] = from;
    for (int i = 0; i < m->taken_count; i++)
        at[count++] = m->taken[i].end;
    qsort (at, (size_t)count, sizeof *at, by_time);
    for (int i = 0; i < count && found == FOREVER; i++) {
        if (at[i] >= from && at[i] != FOREVER) {
            int64_t end = plus (at[i], m->job[index].limit);
            found = place (m, index, at[i], end, end) ? at[i] : FOREVER;
        }
    }
    free (at);
    return found;
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

bool late_place (struct model *m, int index, int64_t begin)
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

int64_t late_earliest (struct model *m, int index, int64_t from)
{
    int64_t best = FOREVER;
    int count = m->taken_count;

    for (int i = -1; i < count; i++) {
        int64_t t = i < 0 ? from : m->taken[i].end;
        if (t >= from && t < best && late_place (m, index, t)) {
            m->taken_count--; /* only tried */
            best = t;
        }
    }
    if (best != FOREVER)
        (void)late_place (m, index, best);
    return best;
}

/* --- windows ------------------------------------------------------------------------------------ */

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
int64_t window (const struct model *m, int64_t least, int64_t below)
{
    static const struct model_job one = {.procs = 1, .tasks = 1, .cred = {-1, -1, -1, -1, 0}};
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
