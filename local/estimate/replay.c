#include "local/estimate/replay.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "local/core/copy.h"
#include "local/core/plan.h"
#include "local/core/query.h"

/* Rough costs in units of forward_work (some nanoseconds). */
enum { WORK_NODE = 60, WORK_JOB = 150, WORK_PASS = 1000, WORK_IDLE = 10, WORK_PASS_NODE = 2 };

struct ending {
    time_us at;
    struct job_id id;
};

struct replay {
    struct arena *arena; /* of replay_take */
    struct cluster *kept; /* what draws are copied from */
    struct arena *pass_arena;
    const struct scene *scene;
    uint32_t node_count;
    struct fairshare_state fairshare;
    uint64_t last_id;
    /* the draw */
    struct cluster *cluster;
    const struct forward_setup *setup;
    replay_next *next;
    time_us *starts;
    uint64_t *id_key; /* waiting jobs by id: sorted, and their places */
    uint32_t *id_place;
    struct ending *heap;
    uint32_t heap_count, heap_cap;
    duration_us *late_run; /* of jobs that came later, by id - last_id - 1 */
    uint32_t late_count, late_cap;
    time_us now;
    time_us arrival;
    struct forward_job coming;
    struct job_known known;
    uint32_t left, ghosts;
    uint64_t work;
    bool over;
};

struct replay *replay_create (void)
{
    struct replay *r = calloc (1, sizeof *r);

    assert (r && "out of memory");
    r->arena = arena_create (0);
    r->pass_arena = arena_create (0);
    return r;
}

void replay_destroy (struct replay *r)
{
    if (r == NULL)
        return;
    cluster_destroy (r->cluster);
    cluster_destroy (r->kept);
    arena_destroy (r->arena);
    arena_destroy (r->pass_arena);
    free (r->heap);
    free (r->late_run);
    free (r);
}

static void *room (void *list, uint32_t *cap, uint32_t need, size_t size)
{
    if (need <= *cap)
        return list;
    *cap = need + need / 2 + 16;
    list = realloc (list, *cap * size);
    assert (list && "out of memory");
    return list;
}

/* --- copies ------------------------------------------------------------------------------------ */

static int rsvs_copy (const struct cluster *from, struct cluster *to, time_us now,
                      struct err *err)
{
    uint32_t count = cluster_rsv_list (from, NULL, 0);
    struct rsv_id *id = malloc ((count + 1) * sizeof *id);
    struct rsv_view v;
    int rc = 0;

    assert (id && "out of memory");
    count = cluster_rsv_list (from, id, count);
    for (uint32_t i = 0; i < count && rc == 0; i++) {
        rc = cluster_rsv_get (from, id[i], &v, err);
        if (rc == 0 && v.spec->end > now)
            rc = cluster_rsv_create (to, v.spec, &v.allocation, now, err);
    }
    free (id);
    return rc;
}

static int running_copy (const struct cluster *from, struct cluster *to, struct job_id id,
                         time_us now, struct err *err)
{
    struct job_spec spec;
    struct job_view v;
    int rc = cluster_job_get (from, id, &v, err);

    if (rc)
        return rc;
    spec = *v.spec;
    spec.holds = 0;
    rc = cluster_job_submit (to, &spec, now, err);
    if (rc == 0)
        rc = cluster_job_start (to, id, &v.allocation, v.start, now, err);
    if (rc == 0)
        rc = cluster_job_running (to, id, v.start, now, err);
    return rc;
}

static int waiting_copy (const struct cluster *from, struct cluster *to, struct job_id id,
                         const struct job_spec *asked, time_us now, struct err *err)
{
    struct job_view v;
    int rc;

    if (asked && asked->id.v == id.v)
        return cluster_job_submit (to, asked, now, err);
    rc = cluster_job_get (from, id, &v, err);
    return rc ? rc : cluster_job_submit (to, v.spec, now, err);
}

/* A new cluster like `from`, with the jobs of the scene. */
static struct cluster *copy_make (struct replay *r, const struct cluster *from,
                                  const struct job_spec *asked, struct err *err)
{
    const struct scene *s = r->scene;
    struct cluster *to = cluster_create (s->policy, NULL, err);
    int rc;

    if (to == NULL)
        return NULL;
    rc = cluster_copy_site (from, to, s->now, err);
    if (rc == 0)
        rc = fairshare_import (cluster_fairshare (to), &r->fairshare, err);
    fairshare_advance (cluster_fairshare (to), s->now);
    if (rc == 0) /* before the jobs that may run inside them */
        rc = rsvs_copy (from, to, s->now, err);
    for (uint32_t i = 0; i < s->running_count && rc == 0; i++)
        rc = running_copy (from, to, s->running[i].id, s->now, err);
    for (uint32_t i = 0; i < s->waiting_count && rc == 0; i++)
        rc = waiting_copy (from, to, s->waiting[i].id, asked, s->now, err);
    if (rc == 0)
        return to;
    cluster_destroy (to);
    return NULL;
}

struct by_id {
    uint64_t id;
    uint32_t place;
};

static int id_order (const void *a, const void *b)
{
    const struct by_id *x = a, *y = b;

    return (x->id > y->id) - (x->id < y->id);
}

static void ids_sort (struct replay *r)
{
    uint32_t n = r->scene->waiting_count;
    struct by_id *list = arena_array (r->arena, n + 1, sizeof *list);

    r->id_key = arena_array (r->arena, n + 1, sizeof *r->id_key);
    r->id_place = arena_array (r->arena, n + 1, sizeof *r->id_place);
    for (uint32_t i = 0; i < n; i++)
        list[i] = (struct by_id){r->scene->waiting[i].id.v, i};
    qsort (list, n, sizeof *list, id_order);
    for (uint32_t i = 0; i < n; i++) {
        r->id_key[i] = list[i].id;
        r->id_place[i] = list[i].place;
    }
}

int replay_take (struct replay *r, const struct scene *scene, struct cluster *cluster,
                 struct err *err)
{
    cluster_destroy (r->cluster);
    cluster_destroy (r->kept);
    r->cluster = r->kept = NULL;
    arena_reset (r->arena);
    r->scene = scene;
    r->node_count = cluster_node_count (cluster);
    r->last_id = 0;
    for (uint32_t i = 0; i < scene->running_count; i++)
        r->last_id = scene->running[i].id.v > r->last_id ? scene->running[i].id.v : r->last_id;
    for (uint32_t i = 0; i < scene->waiting_count; i++)
        r->last_id = scene->waiting[i].id.v > r->last_id ? scene->waiting[i].id.v : r->last_id;
    fairshare_export (cluster_fairshare (cluster), r->arena, &r->fairshare);
    ids_sort (r);
    r->kept = copy_make (r, cluster, scene->asked, err);
    return r->kept ? 0 : err ? err->code : ERR_INTERNAL;
}

/* --- running jobs ------------------------------------------------------------------------------ */

static void heap_push (struct replay *r, struct ending one)
{
    uint32_t i = r->heap_count++;

    r->heap = room (r->heap, &r->heap_cap, r->heap_count, sizeof *r->heap);
    for (; i > 0 && one.at < r->heap[(i - 1) / 2].at; i = (i - 1) / 2)
        r->heap[i] = r->heap[(i - 1) / 2];
    r->heap[i] = one;
}

static struct ending heap_pop (struct replay *r)
{
    struct ending top = r->heap[0], last = r->heap[--r->heap_count];
    uint32_t i = 0, child;

    while ((child = 2 * i + 1) < r->heap_count) {
        if (child + 1 < r->heap_count && r->heap[child + 1].at < r->heap[child].at)
            child++;
        if (r->heap[child].at >= last.at)
            break;
        r->heap[i] = r->heap[child];
        i = child;
    }
    r->heap[i] = last;
    return top;
}

/* --- the draw --------------------------------------------------------------------------------- */

/* The place among the waiting; UINT32_MAX: it came later (or ran before: preempted). */
static uint32_t place_of (const struct replay *r, uint64_t id)
{
    uint32_t low = 0, high = r->scene->waiting_count;

    while (low < high) {
        uint32_t mid = (low + high) / 2;
        if (r->id_key[mid] == id)
            return r->id_place[mid];
        if (r->id_key[mid] < id)
            low = mid + 1;
        else
            high = mid;
    }
    return UINT32_MAX;
}

static void started (struct replay *r, struct job_id id)
{
    uint32_t place = place_of (r, id.v);
    struct job_view v;
    duration_us run;

    if (cluster_job_get (r->cluster, id, &v, NULL) != 0)
        return;
    run = v.spec->walltime_limit;
    if (place != UINT32_MAX) {
        if (r->starts[place] == TIME_US_NONE) {
            r->starts[place] = r->now;
            r->left--;
        }
        run = r->setup->job[place].run < run ? r->setup->job[place].run : run;
    } else if (id.v > r->last_id && id.v - r->last_id - 1 < r->late_count) {
        run = r->late_run[id.v - r->last_id - 1] < run ? r->late_run[id.v - r->last_id - 1] : run;
    }
    (void)cluster_job_running (r->cluster, id, r->now, r->now, NULL);
    heap_push (r, (struct ending){r->now + run, id});
}

static void preempted (struct replay *r, struct job_id id)
{
    uint32_t i = 0;

    while (i < r->heap_count && r->heap[i].id.v != id.v)
        i++;
    if (i == r->heap_count)
        return;
    r->heap[i].at = TIME_US_NONE;
    for (; i > 0; i = (i - 1) / 2) {
        struct ending moved = r->heap[i];
        r->heap[i] = r->heap[(i - 1) / 2];
        r->heap[(i - 1) / 2] = moved;
    }
    (void)heap_pop (r);
    if (cluster_job_preempt (r->cluster, id, r->now, NULL) != 0) /* one that must not run twice */
        (void)cluster_job_end (r->cluster, id, r->now, NULL);
}

/* What would still fit behind everybody. */
static void ghosts_look (struct replay *r)
{
    struct window *list;
    uint32_t count;

    if (r->ghosts == 0 ||
        query_windows (r->cluster, NULL, true, r->now, r->pass_arena, &list, &count, NULL) != 0)
        return;
    for (uint32_t i = 0; i < r->setup->ghost_count; i++) {
        struct forward_ghost *g = &r->setup->ghost[i];
        for (uint32_t w = 0; w < count && g->start == TIME_US_NONE; w++) {
            if (list[w].procs >= g->procs && list[w].length >= g->limit) {
                g->start = r->now;
                r->ghosts--;
            }
        }
    }
}

static void pass (struct replay *r)
{
    struct plan plan;
    bool again = true;

    for (int tries = 0; again && tries < 8; tries++) {
        struct err err = {0};
        again = false;
        arena_reset (r->pass_arena);
        if (plan_compute (r->cluster, r->now, r->pass_arena, &plan, &err) != 0 ||
            plan_commit (r->cluster, &plan, &err) != 0) {
            r->over = true;
            return;
        }
        for (uint32_t i = 0; i < plan.start_count; i++)
            started (r, plan.start[i].job);
        for (uint32_t i = 0; i < plan.preempt_count; i++)
            preempted (r, plan.preempt[i]);
        again = plan.preempt_count > 0;
        r->work += WORK_PASS + (uint64_t)r->node_count * WORK_PASS_NODE +
                   (uint64_t)cluster_job_count (r->cluster, JOB_IDLE) * WORK_IDLE;
    }
    ghosts_look (r);
}

static void arrival_take (struct replay *r)
{
    if (r->setup->next == NULL || !r->next (r->setup->self, &r->arrival, &r->coming, &r->known))
        r->arrival = TIME_US_MAX;
}

static void join (struct replay *r)
{
    struct req req = {.tasks = r->known.procs};
    struct job_spec spec = {.id = {r->last_id + 1 + r->late_count},
                            .submit = r->now,
                            .not_before = TIME_US_NONE,
                            .walltime_limit = r->known.limit,
                            .req_count = 1,
                            .req = &req};

    memcpy (spec.cred, r->known.cred, sizeof spec.cred);
    req.task.v[RES_PROCS] = 1;
    r->late_run = room (r->late_run, &r->late_cap, r->late_count + 1, sizeof *r->late_run);
    r->late_run[r->late_count++] = r->coming.run;
    (void)cluster_job_submit (r->cluster, &spec, r->now, NULL); /* past a limit nobody comes */
    arrival_take (r);
}

void replay_begin (struct replay *r, const struct forward_setup *setup, replay_next *next,
                   time_us *starts)
{
    struct err err = {0};

    r->setup = setup;
    r->next = next;
    r->starts = starts;
    r->now = setup->now;
    r->heap_count = r->late_count = 0;
    r->work = 0;
    r->left = setup->job_count;
    r->ghosts = setup->ghost_count;
    for (uint32_t i = 0; i < setup->job_count; i++)
        starts[i] = TIME_US_NONE;
    for (uint32_t i = 0; i < setup->ghost_count; i++)
        setup->ghost[i].start = TIME_US_NONE;
    cluster_destroy (r->cluster);
    r->cluster = copy_make (r, r->kept, NULL, &err);
    r->work += (uint64_t)r->node_count * WORK_NODE +
               (uint64_t)(r->scene->running_count + r->scene->waiting_count) * WORK_JOB;
    r->over = r->cluster == NULL;
    if (r->over)
        return;
    for (uint32_t i = 0; i < r->scene->running_count; i++)
        heap_push (r, (struct ending){setup->run[i].end, r->scene->running[i].id});
    arrival_take (r);
    pass (r);
}

static bool is_over (const struct replay *r)
{
    if (r->over)
        return true;
    if (r->setup->target != UINT32_MAX)
        return r->starts[r->setup->target] != TIME_US_NONE;
    return r->left == 0 && r->ghosts == 0;
}

bool replay_go (struct replay *r, uint64_t work)
{
    uint64_t enough = r->work + work;

    while (!is_over (r)) {
        time_us at = r->heap_count ? r->heap[0].at : TIME_US_MAX, wake;
        at = r->arrival < at ? r->arrival : at;
        wake = cluster_next_wakeup (r->cluster, r->now);
        at = wake < at ? wake : at;
        if (at == TIME_US_MAX || at > r->setup->until)
            break;
        if (r->work >= enough)
            return false;
        r->now = at > r->now ? at : r->now;
        while (r->heap_count && r->heap[0].at <= r->now)
            (void)cluster_job_end (r->cluster, heap_pop (r).id, r->now, NULL);
        while (r->arrival <= r->now)
            join (r);
        pass (r);
    }
    cluster_destroy (r->cluster);
    r->cluster = NULL;
    return true;
}

uint64_t replay_work (const struct replay *r)
{
    return r->work;
}
