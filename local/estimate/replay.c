/* replay: copies the cluster step by step and runs the core's pass on the copy, moment after
 * moment. simulate.c makes its draws with it where forward.c does not do. It never changes the
 * site's cluster, and it stops within a slice, so that the daemon goes on answering. */
#include "local/estimate/replay.h"

#include <stdlib.h>
#include <string.h>

#include "local/core/copy.h"
#include "local/core/plan.h"
#include "local/core/query.h"
#include "local/estimate/endings.h"
#include "proto/base/mem.h"

/* Rough costs in units of forward_work (some nanoseconds). */
enum { WORK_NODE = 100, WORK_JOB = 250, WORK_PASS = 1000, WORK_IDLE = 20, WORK_PASS_NODE = 4 };
/* STEP_JOBS: of a step of a pass (plan_step). WORK_STEP: what one costs, beyond STEPS_FREE and those that only look
 * at idle jobs. PASSES_MAX: while passes evict jobs, more follow at the same moment. */
enum { STEP_JOBS = 256, STEPS_FREE = 16, WORK_STEP = 75000, PASSES_MAX = 8 };

enum { NODES_AT_ONCE = 128 };

/* A cluster like another, with the jobs of the scene; made step by step. */
struct copying {
    const struct cluster *from; /* NULL: done */
    struct cluster *to;
    uint32_t job; /* the next: running ones, then waiting ones */
    bool sited;   /* nodes and reservations are there */
};

struct replay {
    struct arena *arena;   /* of replay_take */
    struct cluster *kept;  /* what draws are copied from */
    struct copying taking; /* of kept */
    bool *gone;            /* of running jobs, then waiting ones: left before they were copied */
    struct arena *pass_arena;
    const struct scene *scene;
    uint32_t node_count;
    struct fairshare_state fairshare;
    uint64_t last_id;
    /* the draw */
    struct cluster *cluster;
    struct copying copying; /* of cluster */
    const struct forward_setup *setup;
    replay_next *next;
    time_us *starts;
    uint64_t *id_key; /* waiting jobs by id: sorted, and their places */
    uint32_t *id_place;
    struct endings endings;
    duration_us *late_run; /* of jobs that came later, by id - last_id - 1 */
    uint32_t late_count, late_cap;
    time_us now;
    time_us arrival;
    struct forward_job coming;
    struct job_known known;
    uint32_t left, ghosts;
    uint64_t work, extra;
    uint32_t steps_free; /* of the pass */
    bool begun;          /* the copy stands */
    struct plan plan;    /* of the pass that is being made … */
    bool planning;       /* … if one is */
    uint32_t passes_due; /* at this moment */
    bool over;
    struct err err;
};

struct replay *replay_create (void)
{
    struct replay *r = mem_zero (1, sizeof *r);

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
    endings_free (&r->endings);
    free (r->late_run);
    free (r);
}

/* --- copies ------------------------------------------------------------------------------------ */

static int rsvs_copy (const struct cluster *from, struct cluster *to, time_us now, struct err *err)
{
    uint32_t count = cluster_rsv_list (from, NULL, 0);
    struct rsv_id *id = mem_alloc ((count + 1) * sizeof *id);
    struct rsv_view v;
    int rc = 0;

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

static int copy_begin (struct replay *r, struct copying *c, const struct cluster *from,
                       struct err *err)
{
    *c = (struct copying){.to = cluster_create (r->scene->policy, NULL, err)};
    if (c->to == NULL)
        return err->code;
    c->from = from;
    return 0;
}

/* Nodes; with the last of them all that is not a job: reservations before jobs that run inside. */
static int site_step (struct replay *r, struct copying *c, struct err *err)
{
    time_us now = r->scene->now;
    int rc = cluster_copy_nodes (c->from, c->to, NODES_AT_ONCE, now, err);

    r->work += NODES_AT_ONCE * WORK_NODE;
    if (rc || cluster_node_count (c->to) < cluster_node_count (c->from))
        return rc;
    rc = cluster_copy_site (c->from, c->to, now, err);
    if (rc == 0)
        rc = fairshare_import (cluster_fairshare (c->to), &r->fairshare, err);
    fairshare_advance (cluster_fairshare (c->to), now);
    if (rc == 0)
        rc = rsvs_copy (c->from, c->to, now, err);
    c->sited = true;
    return rc;
}

static int job_step (struct replay *r, struct copying *c, struct err *err)
{
    const struct scene *s = r->scene;
    bool taking = c == &r->taking;
    uint32_t job = c->job++, running = s->running_count;
    int rc;

    r->work += WORK_JOB;
    if (r->gone[job])
        return 0;
    if (job < running)
        rc = running_copy (c->from, c->to, s->running[job].id, s->now, err);
    else
        rc = waiting_copy (c->from, c->to, s->waiting[job - running].id, taking ? s->asked : NULL,
                           s->now, err);
    if (rc == 0 || !taking || cluster_version (c->from) == s->version)
        return rc;
    err_clear (err); /* things have happened since the scene was read */
    r->gone[job] = true;
    return 0;
}

/* 0: go on. */
static int copy_step (struct replay *r, struct copying *c, struct err *err)
{
    int rc = 0;

    if (!c->sited)
        rc = site_step (r, c, err);
    else if (c->job < r->scene->running_count + r->scene->waiting_count)
        rc = job_step (r, c, err);
    else
        c->from = NULL;
    return rc;
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
    int rc;

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
    r->gone =
        arena_array (r->arena, scene->running_count + scene->waiting_count + 1, sizeof *r->gone);
    rc = copy_begin (r, &r->taking, cluster, err);
    r->kept = r->taking.to;
    return rc;
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
    endings_add (&r->endings, r->now + run, id.v);
}

static void preempted (struct replay *r, struct job_id id)
{
    if (!endings_remove (&r->endings, id.v))
        return;
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

/* Work of the draw, and what a slice is cut by besides. */
static uint64_t spent (const struct replay *r)
{
    return r->work + r->extra;
}

/* Makes the pass that is due, step by step, until so much is spent. A pass that makes many reservations needs many
 * steps: they are extra, so that what bounds a draw is the same however its passes are cut up. True: it is over. */
static bool pass_go (struct replay *r, uint64_t enough)
{
    bool more = true;
    int rc = 0;

    while (r->passes_due > 0) {
        if (!r->planning) {
            arena_reset (r->pass_arena);
            rc = plan_begin (r->cluster, r->now, r->pass_arena, &r->plan, &r->err);
            r->steps_free = STEPS_FREE + cluster_job_count (r->cluster, JOB_IDLE) / STEP_JOBS;
        }
        r->planning = true;
        for (more = true; rc == 0 && more;) {
            if (spent (r) >= enough)
                return false;
            rc = plan_step (r->cluster, STEP_JOBS, &more, &r->err);
            if (r->steps_free > 0)
                r->steps_free--;
            else
                r->extra += WORK_STEP;
        }
        r->planning = false;
        if (rc != 0 || plan_commit (r->cluster, &r->plan, &r->err) != 0) {
            r->over = true;
            return true;
        }
        for (uint32_t i = 0; i < r->plan.start_count; i++)
            started (r, r->plan.start[i].job);
        for (uint32_t i = 0; i < r->plan.preempt_count; i++)
            preempted (r, r->plan.preempt[i]);
        r->passes_due = r->plan.preempt_count > 0 ? r->passes_due - 1 : 0;
        r->work += WORK_PASS + (uint64_t)r->node_count * WORK_PASS_NODE +
                   (uint64_t)cluster_job_count (r->cluster, JOB_IDLE) * WORK_IDLE;
    }
    ghosts_look (r);
    return true;
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
    r->late_run = mem_grow (r->late_run, &r->late_cap, r->late_count + 1, sizeof *r->late_run);
    r->late_run[r->late_count++] = r->coming.run;
    (void)cluster_job_submit (r->cluster, &spec, r->now, NULL); /* past a limit nobody comes */
    arrival_take (r);
}

void replay_begin (struct replay *r, const struct forward_setup *setup, replay_next *next,
                   time_us *starts)
{
    r->setup = setup;
    r->next = next;
    r->starts = starts;
    r->now = setup->now;
    r->endings.count = r->late_count = 0;
    r->work = r->extra = 0;
    err_clear (&r->err);
    for (uint32_t i = 0; i < setup->job_count; i++)
        starts[i] = TIME_US_NONE;
    for (uint32_t i = 0; i < setup->ghost_count; i++)
        setup->ghost[i].start = TIME_US_NONE;
    r->ghosts = setup->ghost_count;
    cluster_destroy (r->cluster);
    r->over = copy_begin (r, &r->copying, r->kept, &r->err) != 0;
    r->cluster = r->copying.to;
    r->begun = r->planning = false;
    r->passes_due = 0;
}

/* The copy stands. */
static void draw_begin (struct replay *r)
{
    const struct forward_setup *s = r->setup;
    const bool *gone = r->gone + r->scene->running_count;

    for (uint32_t i = 0; i < r->scene->running_count; i++)
        endings_add (&r->endings, s->run[i].end, r->scene->running[i].id.v);
    r->begun = true;
    r->left = s->job_count;
    for (uint32_t i = 0; i < s->job_count; i++)
        r->left -= gone[i];
    if (s->target != UINT32_MAX && gone[s->target])
        r->over = true;
    arrival_take (r);
    r->passes_due = PASSES_MAX;
}

/* Copies what is not yet copied. True: all is; false: enough for this time, or it failed. */
static bool copies_go (struct replay *r, uint64_t enough)
{
    int rc = 0;

    while (rc == 0 && (r->taking.from || r->copying.from) && r->work < enough) {
        if (r->taking.from)
            rc = copy_step (r, &r->taking, &r->err);
        else
            rc = copy_step (r, &r->copying, &r->err);
    }
    r->over = rc != 0;
    return rc == 0 && !r->taking.from && !r->copying.from;
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
    uint64_t enough = spent (r) + work;

    if (!r->begun && !r->over && !copies_go (r, enough))
        return r->over;
    if (!r->begun && !r->over)
        draw_begin (r);
    while (!r->over) {
        time_us at, wake;
        if (r->passes_due > 0 && !pass_go (r, enough))
            return false;
        if (is_over (r))
            break;
        at = endings_next (&r->endings);
        at = r->arrival < at ? r->arrival : at;
        wake = cluster_next_wakeup (r->cluster, r->now);
        at = wake < at ? wake : at;
        if (at == TIME_US_MAX || at > r->setup->until)
            break;
        if (spent (r) >= enough)
            return false;
        r->now = at > r->now ? at : r->now;
        while (endings_next (&r->endings) <= r->now)
            (void)cluster_job_end (r->cluster, (struct job_id){endings_pop (&r->endings).id},
                                   r->now, NULL);
        while (r->arrival <= r->now)
            join (r);
        r->passes_due = PASSES_MAX;
    }
    cluster_destroy (r->cluster);
    r->cluster = NULL;
    return true;
}

uint64_t replay_work (const struct replay *r)
{
    return r->work;
}

uint64_t replay_extra (const struct replay *r)
{
    return r->extra;
}

int replay_status (const struct replay *r, struct err *err)
{
    if (r->err.code && err)
        *err = r->err;
    return r->err.code;
}
