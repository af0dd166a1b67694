/* gridsim: the engines of all sites side by side, the one with the earliest moment going first,
 * and the metascheduler's part between them. grid.c calls it. It has no policy of its own:
 * choices are meta/core/choose.h's, starts are each site's core's. */
#include "local/sim/grid/gridsim.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "local/core/query.h"
#include "local/estimate/estimator.h"
#include "local/sim/engine.h"
#include "proto/base/mem.h"
#include "proto/base/rng.h"

enum {
    SLOTS_PER_JOB = 2, /* places in a site's array for every job of the grid, on the average */
    LOOK_AHEAD = 64,   /* waiting jobs of a site that are looked at for a move */
    OFFER_INTERVALS = 64,
};
#define HORIZON (366 * 86400 * US_PER_S)
#define DRAW_WORK UINT64_C (100000)

struct run;

struct site {
    struct run *run;
    uint32_t index;
    struct engine *engine;
    struct engine_setup setup;
    struct engine_source source;
    struct engine_summary summary;
    struct node_spec *node;
    uint32_t *copies;
    struct engine_job *slot; /* what was given to the site, in order */
    struct engine_result *result;
    uint64_t *owner; /* [slot] job * GRIDSIM_PARTS + part */
    uint64_t cap, given, taken;
    struct estimator *estimator;
    bool changed;      /* since it was last looked at for moves */
    bool ended;        /* something ended there in this moment */
    uint64_t promised; /* processors of halves that wait for their moment */
};

struct half {
    uint32_t site;
    uint32_t procs;
    struct req req;
    struct rsv_id rsv; /* 0: none */
    bool started;
};

struct group { /* a co-allocated job, from its promise to its end */
    uint64_t job;
    uint64_t whose,
        instead; /* its number in the cores, and of the slot that it comes instead of; 0: none */
    time_us start;
    uint32_t ended;
    struct half half[GRIDSIM_PARTS];
};

struct run {
    const struct gridsim_setup *setup;
    struct gridsim_result *result;
    struct gridsim_summary *summary;
    struct site *site;
    struct arena *arena;
    struct group **promise; /* not yet started, by start */
    uint64_t promise_count, promise_cap;
    struct group **group; /* [job]; NULL: an ordinary one */
    uint64_t rsv;         /* the last id given */
    time_us now;
    uint64_t done;
    struct err err; /* of a callback */
    int rc;
};

/* --- a site's source of jobs -------------------------------------------------------------- */

static struct job_known known_of (const struct site *site, uint64_t slot)
{
    struct job_known known = {.procs = site->slot[slot].procs, .limit = site->slot[slot].limit};
    memcpy (known.cred, site->slot[slot].cred, sizeof known.cred);
    return known;
}

static time_us source_next (void *self)
{
    struct site *site = self;
    return site->taken < site->given ? site->run->now : TIME_US_MAX;
}

static int source_take (void *self, struct cluster *cluster, time_us now, uint64_t index,
                        bool *taken_out, struct err *err)
{
    struct site *site = self;
    (void)cluster;
    (void)err;
    assert (index == site->taken);
    struct job_known known = known_of (site, index);
    estimator_arrived (site->estimator, &known, now);
    site->taken++;
    *taken_out = true;
    return 0;
}

static void source_started (void *self, uint64_t index, time_us now)
{
    struct site *site = self;
    uint64_t job = site->owner[index] / GRIDSIM_PARTS;
    struct gridsim_result *result = &site->run->result[job];
    struct group *group = site->run->group[job];
    if (group)
        group->half[site->owner[index] % GRIDSIM_PARTS].started = true;
    else {
        struct job_known known = known_of (site, index);
        estimator_started (site->estimator, &known, now - site->slot[index].submit);
    }
    result->start = now;
}

/* The reservation of a half goes with it; where the job used its whole limit it is gone already. */
static void half_ended (struct site *site, struct group *group, uint32_t part, time_us now)
{
    struct run *run = site->run;
    struct err err = {0};
    int rc = cluster_rsv_release (engine_cluster (site->engine), group->half[part].rsv, now, &err);
    if (rc && rc != ERR_NOT_FOUND && !run->rc) {
        run->rc = rc;
        run->err = err;
    }
    if (++group->ended == GRIDSIM_PARTS)
        run->done++;
}

static void source_ended (void *self, uint64_t index, time_us now)
{
    struct site *site = self;
    uint64_t job = site->owner[index] / GRIDSIM_PARTS;
    struct job_known known = known_of (site, index);
    duration_us run = site->slot[index].run;
    estimator_ended (site->estimator, &known,
                     run < site->slot[index].limit ? run : site->slot[index].limit);
    site->run->result[job].end = now;
    site->ended = true;
    if (site->run->group[job])
        half_ended (site, site->run->group[job], site->owner[index] % GRIDSIM_PARTS, now);
    else
        site->run->done++;
}

/* --- giving a job to a site --------------------------------------------------------------- */

void gridsim_visitor (const struct gridsim_site *home, const uint32_t from[CRED_KINDS],
                      struct cred_names *names, uint32_t to[CRED_KINDS])
{
    static const enum cred_kind travels[] = {CRED_USER, CRED_GROUP, CRED_ACCOUNT};
    for (int kind = 0; kind < CRED_KINDS; kind++)
        to[kind] = CRED_NONE;
    for (size_t i = 0; i < sizeof travels / sizeof travels[0]; i++) {
        enum cred_kind kind = travels[i];
        char name[256];
        if (from[kind] == CRED_NONE)
            continue;
        snprintf (name, sizeof name, "%s.%s", home->name,
                  cred_name (home->names, kind, from[kind]));
        to[kind] = strtab_intern (names->tab[kind], name);
    }
}

/* At home as it is; elsewhere under its home's name. */
static void creds_map (const struct run *run, const struct gridsim_job *job, uint32_t to,
                       uint32_t cred[CRED_KINDS])
{
    const struct gridsim_site *site = &run->setup->site[to];
    bool denied;
    if (to == job->home)
        memcpy (cred, job->job->cred, sizeof job->job->cred);
    else
        gridsim_visitor (&run->setup->site[job->home], job->job->cred, site->names, cred);
    cred[CRED_QOS] = policy_qos_resolve (site->policy, cred, &denied);
}

static bool mobile (const struct gridsim_job *job)
{
    static const struct features none;
    const struct req *r = &job->job->req;
    struct resources only = {.v = {[RES_PROCS] = 1}};
    return memcmp (&r->task, &only, sizeof only) == 0 && r->tasks_per_node == 0 &&
           memcmp (&r->features, &none, sizeof none) == 0 &&
           memcmp (&r->exclude, &none, sizeof none) == 0;
}

static bool may_run (const struct run *run, const struct gridsim_job *job, uint32_t site,
                     uint32_t procs)
{
    return site == job->home ||
           (mobile (job) && (int64_t)procs <= run->setup->site[site].machine->procs);
}

/* What the site would get; req is the job's own or a half's. */
static struct engine_job job_for (const struct run *run, const struct gridsim_job *job,
                                  uint32_t site, const struct req *req, uint32_t procs)
{
    const struct workload_job *from = job->job;
    struct engine_job to = {.submit = job->submit,
                            .limit = from->limit,
                            .run = from->run,
                            .procs = procs,
                            .req_count = 1,
                            .req = req,
                            .used_known = from->used_known,
                            .used_micro = from->used_micro};
    creds_map (run, job, site, to.cred);
    return to;
}

static bool has_room (const struct site *site)
{
    return site->given < site->cap;
}

/* The metascheduler hears it. */
static bool heard (const struct run *run, uint32_t site)
{
    const struct gridsim_site *s = &run->setup->site[site];
    return run->now < s->silent_from || run->now >= s->silent_until;
}

/* Gives it and lets the site have its pass. */
static int give (struct run *run, uint64_t job, uint32_t part, uint32_t to, struct engine_job what,
                 struct err *err)
{
    struct site *site = &run->site[to];
    if (!has_room (site))
        return err_set (err, ERR_LIMIT, "site %s got more than %llu jobs",
                        run->setup->site[to].name, (unsigned long long)site->cap);
    uint64_t slot = site->given++;
    what.number = slot + 1;
    site->slot[slot] = what;
    site->owner[slot] = job * GRIDSIM_PARTS + part;
    if (!run->group[job])
        run->result[job].site = to;
    site->changed = true;
    return engine_turn (site->engine, run->now, err);
}

/* --- where to ------------------------------------------------------------------------------ */

/* Whether the site would start it at once, its promises kept. */
static int starts_now (struct run *run, uint32_t site, const struct engine_job *what, bool *now_out,
                       struct err *err)
{
    struct who who = {.walltime = what->limit, .procs = what->procs};
    struct query query = {.req_count = 1,
                          .req = what->req,
                          .duration = what->limit,
                          .from = run->now,
                          .until = run->now,
                          .queue = true,
                          .who = &who};
    struct slot slot;
    memcpy (who.cred, what->cred, sizeof who.cred);
    arena_reset (run->arena);
    int rc = query_earliest (engine_cluster (run->site[site].engine), &query, run->now, run->arena,
                             &slot, err);
    *now_out = rc == 0 && slot.start == run->now;
    return rc;
}

/* The site's estimate; of a job that waits there (spec NULL), or of one that would come. */
static int expected_start (struct run *run, uint32_t index, struct job_id id,
                           const struct job_spec *spec, time_us *start_out, struct err *err)
{
    struct site *site = &run->site[index];
    struct cluster *cluster = engine_cluster (site->engine);
    struct estimate estimate;
    int rc = estimator_see (site->estimator, cluster, run->now, err);
    if (rc == 0)
        rc =
            estimator_ask (site->estimator, ESTIMATE_SIMULATION, cluster, id, spec, &estimate, err);
    *start_out = rc == 0 ? run->now + estimate.median : TIME_US_NONE;
    return rc == ERR_NOT_FOUND ? 0 : rc; /* it may not start there as things are */
}

/* Exactly, whether it would start at once there; else its start is not known yet. */
static int candidate_ask (struct run *run, uint32_t site, const struct engine_job *what,
                          struct choose_candidate *out, struct err *err)
{
    struct resources all, dedicated;
    bool now = false;
    int rc = 0;
    cluster_totals (engine_cluster (run->site[site].engine), &all, &dedicated);
    *out = (struct choose_candidate){
        .site = site, .start = TIME_US_NONE, .walltime = what->limit, .funded = true};
    if (all.v[RES_PROCS] > dedicated.v[RES_PROCS])
        out->free_procs = (uint32_t)(all.v[RES_PROCS] - dedicated.v[RES_PROCS]);
    if (out->free_procs >= what->procs)
        rc = starts_now (run, site, what, &now, err);
    if (now)
        out->start = run->now;
    return rc;
}

static int candidate_estimate (struct run *run, const struct engine_job *what,
                               struct choose_candidate *candidate, struct err *err)
{
    struct job_spec spec = {.id = {run->site[candidate->site].given + 1},
                            .submit = what->submit,
                            .not_before = TIME_US_NONE,
                            .walltime_limit = what->limit,
                            .req_count = 1,
                            .req = what->req};
    memcpy (spec.cred, what->cred, sizeof spec.cred);
    return expected_start (run, candidate->site, spec.id, &spec, &candidate->start, err);
}

/* Estimates are asked for only where no site would start it at once. */
static int place (struct run *run, uint64_t index, struct err *err)
{
    const struct gridsim_job *job = &run->setup->job[index];
    struct choose_candidate candidate[GRIDSIM_SITES_MAX] = {0};
    struct engine_job what[GRIDSIM_SITES_MAX];
    const struct choose_bounds anything = {0};
    uint32_t count = 0, sites = run->setup->place ? run->setup->site_count : 0;
    int rc = 0;
    for (uint32_t s = 0; s < sites && !rc; s++) {
        if (!may_run (run, job, s, job->job->procs) || !has_room (&run->site[s]) || !heard (run, s))
            continue;
        what[count] = job_for (run, job, s, &job->job->req, job->job->procs);
        rc = candidate_ask (run, s, &what[count], &candidate[count], err);
        count++;
    }
    uint32_t best = choose_single (candidate, count, &anything);
    for (uint32_t i = 0; i < count && best == UINT32_MAX && !rc; i++)
        rc = candidate_estimate (run, &what[i], &candidate[i], err);
    if (rc)
        return rc;
    if (best == UINT32_MAX)
        best = choose_single (candidate, count, &anything);
    if (best != UINT32_MAX)
        return give (run, index, 0, candidate[best].site, what[best], err);
    return give (run, index, 0, job->home,
                 job_for (run, job, job->home, &job->job->req, job->job->procs), err);
}

/* --- moving ----------------------------------------------------------------------------------- */

/* One waiting job of `from`, when `to` could start it at once and that is clearly sooner. */
static int move_one (struct run *run, uint32_t from, struct job_id id, uint32_t to, bool *moved_out,
                     struct err *err)
{
    struct site *site = &run->site[from];
    uint64_t slot = id.v - 1, index = site->owner[slot] / GRIDSIM_PARTS;
    const struct gridsim_job *job = &run->setup->job[index];
    struct gridsim_result *result = &run->result[index];
    time_us stays;
    bool now;
    *moved_out = false;
    if (run->group[index] || result->moves == GRIDSIM_MOVES_MAX || !has_room (&run->site[to]) ||
        !may_run (run, job, to, job->job->procs))
        return 0;
    struct engine_job what = job_for (run, job, to, &job->job->req, job->job->procs);
    int rc = starts_now (run, to, &what, &now, err);
    if (rc || !now)
        return rc;
    rc = expected_start (run, from, id, NULL, &stays, err);
    if (rc || !choose_moves (stays, run->now, run->now, &run->setup->moves))
        return rc;
    rc = engine_withdraw (site->engine, slot, run->now, err);
    if (rc)
        return rc;
    run->summary->moved += result->moves++ == 0;
    *moved_out = true;
    return give (run, index, 0, to, what, err);
}

/* What is free at `to` after its own pass is offered to the others' queues, in their order. */
static int moves_to (struct run *run, uint32_t to, struct err *err)
{
    struct job_id waiting[LOOK_AHEAD];
    int rc = 0;
    for (uint32_t from = 0; from < run->setup->site_count && !rc; from++) {
        struct cluster *cluster = engine_cluster (run->site[from].engine);
        uint32_t count = from == to || !heard (run, from)
                             ? 0
                             : cluster_job_list (cluster, JOB_IDLE, waiting, LOOK_AHEAD);
        bool left = false;
        count = count < LOOK_AHEAD ? count : LOOK_AHEAD;
        for (uint32_t i = 0; i < count && !rc; i++) {
            struct resources all, dedicated;
            bool moved;
            cluster_totals (engine_cluster (run->site[to].engine), &all, &dedicated);
            uint32_t procs = run->site[from].slot[waiting[i].v - 1].procs;
            if ((int64_t)procs > (int64_t)all.v[RES_PROCS] - dedicated.v[RES_PROCS])
                continue;
            rc = move_one (run, from, waiting[i], to, &moved, err);
            left = left || (rc == 0 && moved);
        }
        if (left && !rc) /* those behind may start now */
            rc = engine_turn (run->site[from].engine, run->now, err);
    }
    return rc;
}

static int moves (struct run *run, struct err *err)
{
    int rc = 0;
    for (uint32_t s = 0; s < run->setup->site_count && !rc; s++) {
        if (!run->site[s].changed || !heard (run, s))
            continue;
        run->site[s].changed = false;
        rc = moves_to (run, s, err);
        run->site[s].changed = false;
    }
    return rc;
}

/* --- co-allocation ---------------------------------------------------------------------------- */

/* Whether the job is among those that are co-allocated: the same for any larger share. */
static bool chosen (const struct run *run, uint64_t index)
{
    struct rng rng;
    if (run->setup->coallocate <= 0 || run->setup->job[index].job->procs < GRIDSIM_PARTS ||
        run->setup->site_count < 2 || !mobile (&run->setup->job[index]))
        return false;
    rng_seed (&rng, run->setup->seed, index + 1);
    return rng_unit (&rng) < run->setup->coallocate;
}

/* What the group has already is not in its way. */
static struct query half_query (const struct run *run, const struct group *group,
                                const struct engine_job *what)
{
    return (struct query){.req_count = 1,
                          .req = what->req,
                          .duration = what->limit,
                          .from = run->now,
                          .until = run->now + HORIZON,
                          .instead = group->instead,
                          .queue = true};
}

/* QUERY: in which intervals could this half start at that site? */
static int half_offer (struct run *run, const struct group *group, const struct engine_job *what,
                       uint32_t part, uint32_t site, struct choose_offer *offer, struct err *err)
{
    struct query query = half_query (run, group, what);
    struct interval *interval;
    uint32_t count;
    int rc = query_intervals (engine_cluster (run->site[site].engine), &query, run->now,
                              OFFER_INTERVALS, run->arena, &interval, &count, err);
    if (rc)
        return rc;
    struct choose_interval *starts = arena_alloc (run->arena, (count + 1) * sizeof *starts);
    for (uint32_t i = 0; i < count; i++)
        starts[i] = (struct choose_interval){interval[i].begin, interval[i].end};
    *offer = (struct choose_offer){.part = part,
                                   .site = site,
                                   .procs = what->procs,
                                   .not_before = TIME_US_NONE,
                                   .starts = starts,
                                   .start_count = count};
    return 0;
}

/* The first half at home, the other at any other site: the earliest common start, not after not_after (0: any). */
static int group_choose (struct run *run, struct group *group, time_us not_after, bool *found_out,
                         struct err *err)
{
    const struct gridsim_job *job = &run->setup->job[group->job];
    struct choose_part part[GRIDSIM_PARTS] = {{.name = "first", .walltime = job->job->limit},
                                              {.name = "second", .walltime = job->job->limit}};
    struct choose_offer offer[GRIDSIM_PARTS * GRIDSIM_SITES_MAX];
    struct choose_problem problem = {.part = part,
                                     .part_count = GRIDSIM_PARTS,
                                     .offer = offer,
                                     .now = run->now,
                                     .not_after = not_after};
    struct choose_result choice;
    struct err none = {0};
    int rc = 0;
    arena_reset (run->arena);
    for (uint32_t s = 0; s < run->setup->site_count && !rc; s++) {
        uint32_t p = s == job->home ? 0 : 1;
        struct half *half = &group->half[p];
        if (!may_run (run, job, s, half->procs) || !has_room (&run->site[s]) || !heard (run, s))
            continue;
        struct engine_job what = job_for (run, job, s, &half->req, half->procs);
        rc = half_offer (run, group, &what, p, s, &offer[problem.offer_count++], err);
    }
    if (rc)
        return rc;
    *found_out =
        problem.offer_count >= GRIDSIM_PARTS && choose_group (&problem, &choice, &none) == 0;
    for (uint32_t p = 0; p < GRIDSIM_PARTS && *found_out; p++)
        group->half[p].site = offer[choice.offer[p]].site;
    if (*found_out)
        group->start = choice.start;
    return 0;
}

/* PREPARE and COMMIT of one half; of one that comes forward beside, and over, what it has. */
static int half_reserve (struct run *run, struct group *group, uint32_t part, struct err *err)
{
    struct half *half = &group->half[part];
    const struct gridsim_job *job = &run->setup->job[group->job];
    struct cluster *cluster = engine_cluster (run->site[half->site].engine);
    struct engine_job what = job_for (run, job, half->site, &half->req, half->procs);
    struct query query = half_query (run, group, &what);
    struct who who = {.walltime = what.limit, .procs = what.procs, .attrs = JOBATTR_COALLOCATED};
    struct slot slot;
    bool granted;
    arena_reset (run->arena);
    int rc = query_slot (cluster, &query, group->start, run->now, run->arena, &granted, &slot, err);
    if (rc)
        return rc;
    if (!granted)
        return err_set (err, ERR_INTERNAL, "site %s refuses a start that it offered",
                        run->setup->site[half->site].name);
    struct rsv_id id = {++run->rsv};
    memcpy (who.cred, what.cred, sizeof who.cred);
    struct rsv_spec spec = {.id = id,
                            .whose = group->whose,
                            .instead = group->instead,
                            .kind = RSV_COURTESY,
                            .start = group->start,
                            .end = group->start + what.limit,
                            .req_count = 1,
                            .req = &half->req,
                            .who = &who};
    rc = cluster_rsv_create (cluster, &spec, &slot.allocation, run->now, err);
    half->rsv = id;
    return rc ? rc : cluster_rsv_commit (cluster, id, run->now, err);
}

static void promise_add (struct run *run, struct group *group)
{
    if (run->promise_count == run->promise_cap) {
        run->promise_cap = run->promise_cap ? run->promise_cap * 2 : 64;
        run->promise = mem_resize (run->promise, run->promise_cap * sizeof run->promise[0]);
    }
    uint64_t i = run->promise_count++;
    for (; i > 0 && run->promise[i - 1]->start < group->start; i--) /* the next one last */
        run->promise[i] = run->promise[i - 1];
    run->promise[i] = group;
    for (uint32_t p = 0; p < GRIDSIM_PARTS; p++)
        run->site[group->half[p].site].promised += group->half[p].procs;
}

/* *taken_out false: it is an ordinary job after all. */
static int coallocate (struct run *run, uint64_t index, bool *taken_out, struct err *err)
{
    const struct gridsim_job *job = &run->setup->job[index];
    struct group *group = mem_zero (1, sizeof *group);
    group->job = index;
    for (uint32_t p = 0; p < GRIDSIM_PARTS; p++) {
        struct half *half = &group->half[p];
        half->procs = (job->job->procs + (p == 0)) / GRIDSIM_PARTS;
        half->req = job->job->req;
        half->req.tasks = half->procs;
    }
    int rc = group_choose (run, group, 0, taken_out, err);
    if (rc || !*taken_out) {
        run->summary->no_slot += rc == 0;
        free (group);
        return rc;
    }
    run->group[index] = group;
    run->result[index].coallocated = true;
    run->result[index].site = job->home;
    run->summary->coallocated++;
    group->whose = run->rsv + 1; /* its first reservation's */
    for (uint32_t p = 0; p < GRIDSIM_PARTS && !rc; p++)
        rc = half_reserve (run, group, p, err);
    promise_add (run, group);
    return rc;
}

/* The latest moment that is worth the change, as nui-meta has it (meta/group/slide.c); 0: none. */
static time_us slide_latest (const struct run *run, const struct group *group)
{
    const struct choose_move_policy *moves = &run->setup->moves;
    duration_us wait = group->start - run->now, gain = wait / 1000000 * moves->share_ppm;
    if (gain < moves->gain / 6)
        gain = moves->gain / 6;
    if (gain > moves->gain)
        gain = moves->gain;
    return wait > gain ? group->start - gain : 0;
}

/* An earlier slot for a group, also where it lies over the one that it has. */
static int slide_one (struct run *run, uint64_t place, struct err *err)
{
    struct group *group = run->promise[place], old = *group;
    time_us latest = slide_latest (run, group);
    bool found = false;
    group->instead = old.whose;
    int rc = latest ? group_choose (run, group, latest, &found, err) : 0;
    if (rc || !found)
        return rc;
    group->whose = run->rsv + 1;
    for (uint32_t p = 0; p < GRIDSIM_PARTS && !rc; p++) {
        struct half *half = &group->half[p];
        rc = half_reserve (run, group, p, err);
        if (!rc)
            rc = cluster_rsv_release (engine_cluster (run->site[old.half[p].site].engine),
                                      old.half[p].rsv, run->now, err);
        run->site[old.half[p].site].promised -= half->procs;
    }
    memmove (run->promise + place, run->promise + place + 1,
             (--run->promise_count - place) * sizeof (struct group *));
    promise_add (run, group);
    run->summary->moved += run->result[group->job].moves++ == 0;
    for (uint32_t p = 0; p < GRIDSIM_PARTS && !rc; p++) /* what it gave up others may have */
        rc = engine_turn (run->site[old.half[p].site].engine, run->now, err);
    return rc;
}

static bool slide_may (const struct run *run, const struct group *group)
{
    bool ended = false;
    for (uint32_t p = 0; p < GRIDSIM_PARTS; p++)
        ended = ended || run->site[group->half[p].site].ended;
    return ended;
}

/* Where something has ended those who wait for their moment look for an earlier one, the next one first. */
static int slides (struct run *run, struct err *err)
{
    int rc = 0;
    for (uint64_t i = run->promise_count; i-- > 0 && !rc;)
        if (slide_may (run, run->promise[i]))
            rc = slide_one (run, i, err);
    for (uint32_t s = 0; s < run->setup->site_count; s++)
        run->site[s].ended = false;
    return rc;
}

/* START of those whose moment has come. */
static int promises_keep (struct run *run, struct err *err)
{
    int rc = 0;
    while (run->promise_count && run->promise[run->promise_count - 1]->start <= run->now && !rc) {
        struct group *group = run->promise[--run->promise_count];
        const struct gridsim_job *job = &run->setup->job[group->job];
        for (uint32_t p = 0; p < GRIDSIM_PARTS && !rc; p++) {
            struct half *half = &group->half[p];
            struct engine_job what = job_for (run, job, half->site, &half->req, half->procs);
            what.inside = half->rsv;
            run->site[half->site].promised -= half->procs;
            rc = give (run, group->job, p, half->site, what, err);
            if (!rc && !half->started)
                rc = err_set (err, ERR_INTERNAL, "site %s did not start what it had promised",
                              run->setup->site[half->site].name);
        }
    }
    return rc;
}

/* --- the run ------------------------------------------------------------------------------ */

static int arrive (struct run *run, uint64_t index, struct err *err)
{
    bool taken = false;
    int rc = chosen (run, index) ? coallocate (run, index, &taken, err) : 0;
    return rc || taken ? rc : place (run, index, err);
}

static time_us next_event (const struct run *run, uint64_t next)
{
    time_us at = next < run->setup->count ? run->setup->job[next].submit : TIME_US_MAX;
    if (run->promise_count && run->promise[run->promise_count - 1]->start < at)
        at = run->promise[run->promise_count - 1]->start;
    for (uint32_t s = 0; s < run->setup->site_count; s++) {
        time_us own = engine_next (run->site[s].engine);
        at = own < at ? own : at;
    }
    return at;
}

/* Processors that nothing uses from now until `until`, and promised halves beside them that would. */
static void held_idle_add (struct run *run, time_us until)
{
    const struct gridsim_setup *s = run->setup;
    time_us last = s->count ? s->job[s->count - 1].submit : 0;
    until = until < last ? until : last;
    for (uint32_t i = 0; i < s->site_count && until > run->now; i++) {
        struct resources all, dedicated;
        if (!run->site[i].promised)
            continue;
        cluster_totals (engine_cluster (run->site[i].engine), &all, &dedicated);
        double idle = (double)(all.v[RES_PROCS] - dedicated.v[RES_PROCS]);
        double wait = (double)run->site[i].promised;
        run->summary->held_idle += (idle < wait ? idle : wait) * (double)(until - run->now);
    }
}

/* One moment: what ends, what was promised, what arrives, what moves. */
static int moment (struct run *run, uint64_t *next, struct err *err)
{
    int rc = 0;
    for (uint32_t s = 0; s < run->setup->site_count && !rc; s++) {
        if (engine_next (run->site[s].engine) > run->now)
            continue;
        run->site[s].changed = true;
        rc = engine_turn (run->site[s].engine, run->now, err);
    }
    if (!rc)
        rc = promises_keep (run, err);
    while (!rc && *next < run->setup->count && run->setup->job[*next].submit <= run->now)
        rc = arrive (run, (*next)++, err);
    if (!rc && run->setup->slide)
        rc = slides (run, err);
    if (!rc)
        rc = promises_keep (run, err); /* of a group that can begin at once */
    if (!rc && run->setup->place && run->setup->move)
        rc = moves (run, err);
    if (!rc && run->rc) {
        *err = run->err;
        rc = run->rc;
    }
    if (run->setup->progress)
        run->setup->progress (run->setup->self, run->done);
    return rc;
}

static int site_make (struct run *run, uint32_t index, struct err *err)
{
    struct site *site = &run->site[index];
    const struct machine *m = run->setup->site[index].machine;
    struct estimator_options options = {.draws =
                                            run->setup->draws ? run->setup->draws : GRIDSIM_DRAWS,
                                        .work = DRAW_WORK,
                                        .seed = run->setup->seed};
    site->run = run;
    site->index = index;
    site->cap = run->setup->count * SLOTS_PER_JOB + 64;
    site->slot = mem_zero (site->cap, sizeof site->slot[0]);
    site->result = mem_zero (site->cap, sizeof site->result[0]);
    site->owner = mem_zero (site->cap, sizeof site->owner[0]);
    site->node = mem_zero (m->group_count + 1, sizeof site->node[0]);
    site->copies = mem_zero (m->group_count + 1, sizeof site->copies[0]);
    for (uint64_t i = 0; i < site->cap; i++)
        site->slot[i].number = i + 1;
    for (uint32_t g = 0; g < m->group_count; g++) {
        site->node[g] = m->group[g].spec;
        site->copies[g] = m->group[g].copies;
    }
    site->source =
        (struct engine_source){site, source_next, source_take, source_started, source_ended};
    site->setup = (struct engine_setup){.policy = run->setup->site[index].policy,
                                        .source = &site->source,
                                        .node = site->node,
                                        .node_copies = site->copies,
                                        .node_group_count = m->group_count,
                                        .gres_kinds = m->gres_kinds,
                                        .seed = run->setup->seed};
    site->estimator = estimator_create (&options);
    site->engine =
        engine_create (&site->setup, site->slot, site->cap, site->result, &site->summary, err);
    return site->engine ? 0 : err->code;
}

static void run_free (struct run *run)
{
    for (uint32_t s = 0; s < run->setup->site_count; s++) {
        struct site *site = &run->site[s];
        engine_destroy (site->engine);
        if (site->estimator)
            estimator_destroy (site->estimator);
        free (site->slot);
        free (site->result);
        free (site->owner);
        free (site->node);
        free (site->copies);
    }
    for (uint64_t i = 0; i < run->setup->count; i++)
        free (run->group[i]);
    free (run->group);
    free (run->promise);
    free (run->site);
    arena_destroy (run->arena);
}

static void summarise (struct run *run)
{
    const struct gridsim_setup *s = run->setup;
    double used = 0, procs = 0;
    for (uint32_t i = 0; i < s->site_count; i++)
        procs += (double)s->site[i].machine->procs;
    time_us first = s->count ? s->job[0].submit : 0,
            last = s->count ? s->job[s->count - 1].submit : 0;
    for (uint64_t i = 0; i < s->count; i++) {
        const struct gridsim_result *r = &run->result[i];
        if (r->end == TIME_US_NONE) {
            run->summary->never++;
            continue;
        }
        run->summary->away += !r->coallocated && r->site != s->job[i].home;
        time_us end = r->end < last ? r->end : last;
        if (end > r->start)
            used += (double)s->job[i].job->procs * (double)(end - r->start);
    }
    double span = procs * (double)(last - first);
    run->summary->utilisation = span > 0 ? used / span : 0;
    run->summary->held_idle = span > 0 ? run->summary->held_idle / span : 0;
}

int gridsim_run (const struct gridsim_setup *setup, struct gridsim_result *result,
                 struct gridsim_summary *summary, struct err *err)
{
    struct run run = {.setup = setup, .result = result, .summary = summary, .now = TIME_US_NONE};
    uint64_t next = 0;
    time_us at;
    int rc = 0;
    memset (summary, 0, sizeof *summary);
    run.arena = arena_create (0);
    run.site = mem_zero (setup->site_count + 1, sizeof run.site[0]);
    run.group = mem_zero (setup->count + 1, sizeof run.group[0]);
    for (uint64_t i = 0; i < setup->count; i++)
        result[i] = (struct gridsim_result){
            .start = TIME_US_NONE, .end = TIME_US_NONE, .site = setup->job[i].home};
    for (uint32_t s = 0; s < setup->site_count && !rc; s++)
        rc = site_make (&run, s, err);
    while (!rc && (at = next_event (&run, next)) != TIME_US_MAX) {
        held_idle_add (&run, at);
        run.now = at;
        rc = moment (&run, &next, err);
    }
    if (!rc)
        summarise (&run);
    run_free (&run);
    return rc;
}
