/* grid: reads the file of sites, cuts their logs to one stretch of time, and makes the runs:
 * each site alone, all as one, with a metascheduler. gridcmd.c calls it. All runs get the same
 * jobs, or their figures could not be compared. */
#include "local/sim/grid/grid.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "local/conf/policyconf.h"
#include "proto/base/clock.h"
#include "proto/base/mem.h"
#include "proto/conf/conf.h"

/* --- the file ----------------------------------------------------------------------------- */

static int site_record (void *target, const char *index, void **record_out, struct err *err)
{
    struct grid *grid = target;
    for (uint32_t i = 0; i < grid->site_count; i++) {
        if (strcmp (grid->site[i].name, index) == 0) {
            *record_out = &grid->site[i];
            return 0;
        }
    }
    if (grid->site_count == GRIDSIM_SITES_MAX)
        return err_set (err, ERR_LIMIT, "more than %d sites", GRIDSIM_SITES_MAX);
    struct grid_site *site = &grid->site[grid->site_count];
    if (strlen (index) >= sizeof site->name)
        return err_set (err, ERR_INVALID, "a site's name has at most %zu letters",
                        sizeof site->name - 1);
    grid->site_count++;
    memcpy (site->name, index, strlen (index) + 1);
    cred_names_init (&site->names);
    *record_out = site;
    return 0;
}

static const struct conf_param site_attrs[] = {
    {.name = "WORKLOAD", .type = CONF_PATH, .offset = offsetof (struct grid_site, workload_path)},
    {.name = "CONFIG", .type = CONF_PATH, .offset = offsetof (struct grid_site, config_path)},
    {.name = "RESOURCES", .type = CONF_PATH, .offset = offsetof (struct grid_site, resources_path)},
    {.name = "NODES",
     .type = CONF_INT,
     .offset = offsetof (struct grid_site, nodes),
     .min = 1,
     .max = NODES_MAX},
    {.name = "PROCSPERNODE",
     .type = CONF_INT,
     .offset = offsetof (struct grid_site, procs_per_node),
     .min = 1,
     .max = 1 << 20},
    {.name = "JOBS", .type = CONF_STRING, .offset = offsetof (struct grid_site, jobs)},
    {.name = "SILENT", .type = CONF_STRING, .offset = offsetof (struct grid_site, silent)},
    {.name = NULL},
};

static const struct conf_param params[] = {
    {.name = "SITECFG", .type = CONF_RECORD, .attrs = site_attrs, .record = site_record},
    {.name = "POOLCONFIG", .type = CONF_PATH, .offset = offsetof (struct grid, pool_config)},
    {.name = "MOVEGAIN",
     .type = CONF_DURATION,
     .offset = offsetof (struct grid, moves.gain),
     .min = 1,
     .max = 366 * 86400 * US_PER_S,
     .initial = "1:00"},
    {.name = "MOVESHARE",
     .type = CONF_PPM,
     .offset = offsetof (struct grid, moves.share_ppm),
     .min = 0,
     .max = 1000000,
     .initial = "0.20"},
    {.name = "SLIDE",
     .type = CONF_BOOL,
     .offset = offsetof (struct grid, slide),
     .initial = "TRUE"},
    {.name = NULL},
};

/* "10:00:00..1:00:00:00" */
static int silence_read (struct grid_site *site, struct err *err)
{
    char from[64];
    const char *dots = site->silent ? strstr (site->silent, "..") : NULL;
    if (!site->silent)
        return 0;
    snprintf (from, sizeof from, "%.*s", dots ? (int)(dots - site->silent) : 0, site->silent);
    if (!dots || duration_parse (from, &site->silent_from, err) < 0 ||
        duration_parse (dots + 2, &site->silent_until, err) < 0 || site->silent_from < 0 ||
        site->silent_until <= site->silent_from)
        return err_set (err, ERR_INVALID,
                        "SITECFG[%s] SILENT=%.60s: wanted from when until when after the "
                        "beginning, as in 10:00:00..20:00:00",
                        site->name, site->silent);
    return 0;
}

static int conf_fill (struct grid *grid, const char *path, struct err *err)
{
    grid->conf = conf_read_file (path, err);
    if (!grid->conf || conf_table_read (grid->conf, params, grid, err) ||
        conf_finish (grid->conf, err))
        return err->code;
    if (grid->site_count < 2)
        return err_set (err, ERR_INVALID, "%s: a grid has two sites or more (SITECFG)", path);
    for (uint32_t i = 0; i < grid->site_count; i++) {
        const struct grid_site *site = &grid->site[i];
        if (!site->workload_path || !site->config_path)
            return err_set (err, ERR_INVALID, "%s: SITECFG[%s] needs WORKLOAD= and CONFIG=", path,
                            site->name);
        if (site->resources_path && site->nodes)
            return err_set (err, ERR_INVALID,
                            "%s: SITECFG[%s]: RESOURCES and NODES both describe the machine", path,
                            site->name);
        if (site->procs_per_node && !site->nodes)
            return err_set (err, ERR_INVALID, "%s: SITECFG[%s]: PROCSPERNODE goes with NODES", path,
                            site->name);
    }
    return 0;
}

static int machine_make (struct grid_site *site, struct err *err)
{
    int64_t nodes = site->nodes ? site->nodes : site->workload->header_procs;
    if (site->resources_path)
        site->machine = machine_read (site->resources_path, site->workload, err);
    else if (nodes > 0 && nodes <= NODES_MAX)
        site->machine = machine_uniform (
            (uint32_t)nodes, site->procs_per_node ? (uint32_t)site->procs_per_node : 1, err);
    else
        return err_set (err, ERR_INVALID,
                        "%s does not say how large its machine is (MaxProcs); give NODES= or "
                        "RESOURCES=",
                        site->workload_path);
    return site->machine ? 0 : err->code;
}

static int site_read (struct grid_site *site, void (*note) (void *self, const char *text),
                      void *self, struct err *err)
{
    struct workload_range range;
    struct conf *conf = NULL;
    int rc = workload_range_parse (site->jobs, &range, err);
    if (rc)
        return err_prefix (err, "SITECFG[%s] JOBS", site->name);
    rc = silence_read (site, err);
    if (rc)
        return rc;
    site->workload = workload_read (site->workload_path, &range, &site->names, err);
    if (!site->workload)
        return err->code;
    rc = machine_make (site, err);
    if (rc)
        return rc;
    workload_fit (site->workload, site->machine);
    if (site->workload->count == 0)
        return err_set (err, ERR_INVALID, "%s: no job fits the machine of %lld processors",
                        site->workload_path, (long long)site->machine->procs);
    rc = policy_conf_load (site->config_path, &site->names, &site->policy, &conf, err);
    for (uint32_t n = 0; !rc && note && n < conf_note_count (conf); n++)
        note (self, conf_note (conf, n));
    conf_destroy (conf);
    return rc;
}

static int by_submit (const void *a, const void *b)
{
    const struct gridsim_job *x = a, *y = b;
    if (x->submit != y->submit)
        return x->submit < y->submit ? -1 : 1;
    if (x->home != y->home)
        return x->home < y->home ? -1 : 1;
    return x->job < y->job ? -1 : x->job > y->job;
}

/* One time for all: every log's first submission is the beginning. */
static void jobs_merge (struct grid *grid)
{
    uint64_t all = 0;
    grid->period = TIME_US_MAX;
    for (uint32_t s = 0; s < grid->site_count; s++) {
        const struct workload *w = grid->site[s].workload;
        duration_us length = w->job[w->count - 1].submit - w->job[0].submit;
        grid->period = length < grid->period ? length : grid->period;
        all += w->count;
    }
    grid->job = mem_zero (all + 1, sizeof grid->job[0]);
    for (uint32_t s = 0; s < grid->site_count; s++) {
        struct grid_site *site = &grid->site[s];
        const struct workload *w = site->workload;
        for (uint64_t i = 0; i < w->count; i++) {
            time_us submit = w->job[i].submit - w->job[0].submit;
            if (submit > grid->period) {
                grid->left_out += w->count - i;
                break;
            }
            grid->job[grid->count++] = (struct gridsim_job){&w->job[i], submit, s};
            site->jobs_count++;
        }
    }
    qsort (grid->job, grid->count, sizeof grid->job[0], by_submit);
}

struct grid *grid_read (const char *path, void (*note) (void *self, const char *text), void *self,
                        struct err *err)
{
    struct grid *grid = mem_zero (1, sizeof *grid);
    grid->site = mem_zero (GRIDSIM_SITES_MAX, sizeof grid->site[0]);
    int rc = conf_fill (grid, path, err);
    for (uint32_t i = 0; i < grid->site_count && !rc; i++)
        rc = site_read (&grid->site[i], note, self, err);
    if (rc) {
        grid_destroy (grid);
        return NULL;
    }
    jobs_merge (grid);
    if (!grid->pool_config)
        grid->pool_config = grid->site[0].config_path;
    return grid;
}

void grid_destroy (struct grid *grid)
{
    if (!grid)
        return;
    for (uint32_t i = 0; i < grid->site_count; i++) {
        policy_destroy (grid->site[i].policy);
        workload_destroy (grid->site[i].workload);
        machine_destroy (grid->site[i].machine);
        cred_names_free (&grid->site[i].names);
    }
    conf_destroy (grid->conf);
    free (grid->site);
    free (grid->job);
    free (grid);
}

/* --- a run ---------------------------------------------------------------------------------- */

static struct gridsim_site site_of (struct grid_site *from)
{
    return (struct gridsim_site){from->name,    &from->names,      from->policy,
                                 from->machine, from->silent_from, from->silent_until};
}

/* All machines as one, all users apart. */
struct pool {
    struct machine machine;
    struct cred_names names;
    struct policy *policy;
    struct workload_job *work;
    struct gridsim_job *job;
    struct gridsim_site site;
};

static int pool_make (const struct grid *grid, struct pool *pool, struct err *err)
{
    uint32_t groups = 0;
    cred_names_init (&pool->names);
    for (uint32_t s = 0; s < grid->site_count; s++)
        groups += grid->site[s].machine->group_count;
    pool->machine.group = mem_zero (groups, sizeof pool->machine.group[0]);
    pool->work = mem_zero (grid->count + 1, sizeof pool->work[0]);
    pool->job = mem_zero (grid->count + 1, sizeof pool->job[0]);
    for (uint32_t s = 0; s < grid->site_count; s++) {
        const struct machine *m = grid->site[s].machine;
        for (uint32_t g = 0; g < m->group_count; g++)
            pool->machine.group[pool->machine.group_count++] = m->group[g];
        pool->machine.node_count += m->node_count;
        pool->machine.procs += m->procs;
    }
    for (uint64_t i = 0; i < grid->count; i++) {
        const struct gridsim_job *from = &grid->job[i];
        struct workload_job *to = &pool->work[i];
        *to = *from->job;
        to->req = (struct req){.tasks = from->job->procs};
        to->req.task.v[RES_PROCS] = 1;
        struct gridsim_site home = site_of (&grid->site[from->home]);
        gridsim_visitor (&home, from->job->cred, &pool->names, to->cred);
        pool->job[i] = (struct gridsim_job){to, from->submit, 0};
    }
    int rc = policy_conf_load (grid->pool_config, &pool->names, &pool->policy, NULL, err);
    pool->site = (struct gridsim_site){
        .name = "pool", .names = &pool->names, .policy = pool->policy, .machine = &pool->machine};
    return rc;
}

static void pool_free (struct pool *pool)
{
    policy_destroy (pool->policy);
    cred_names_free (&pool->names);
    free (pool->machine.group);
    free (pool->work);
    free (pool->job);
}

static int compare_wait (const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double seconds (duration_us us)
{
    return (double)us / US_PER_S;
}

static void measure (const struct grid *grid, const struct grid_run *base, struct grid_run *run)
{
    enum { SHORT_S = 10 }; /* bounded slowdown, as simstats.h */
    double *wait = mem_alloc ((grid->count + 1) * sizeof wait[0]);
    uint64_t groups = 0, locals = 0;
    for (uint64_t i = 0; i < grid->count; i++) {
        const struct gridsim_result *r = &run->result[i];
        if (r->end == TIME_US_NONE)
            continue;
        double waited = seconds (r->start - grid->job[i].submit), ran = seconds (r->end - r->start);
        double slow = (waited + ran) / (ran > SHORT_S ? ran : SHORT_S);
        wait[run->ended++] = waited;
        run->mean_wait_s += waited;
        run->mean_slowdown += slow > 1 ? slow : 1;
        if (r->coallocated) {
            groups++;
            run->group_wait_s += waited;
            run->group_response_s += waited + ran;
            continue;
        }
        locals++;
        run->local_wait_s += waited;
        if (base && base->result[i].end != TIME_US_NONE)
            run->local_extra_s += waited - seconds (base->result[i].start - grid->job[i].submit);
    }
    qsort (wait, run->ended, sizeof wait[0], compare_wait);
    run->p95_wait_s = run->ended ? wait[(run->ended - 1) * 95 / 100] : 0;
    run->mean_wait_s /= run->ended ? (double)run->ended : 1;
    run->mean_slowdown /= run->ended ? (double)run->ended : 1;
    run->group_wait_s /= groups ? (double)groups : 1;
    run->group_response_s /= groups ? (double)groups : 1;
    run->local_wait_s /= locals ? (double)locals : 1;
    run->local_extra_s /= locals ? (double)locals : 1;
    free (wait);
}

static void label_set (struct grid_run *run)
{
    static const char *const name[] = {"isolated", "one pool", "placed", "placed and moved"};
    if (run->kind == GRID_SHARED)
        snprintf (run->label, sizeof run->label, "%g %% co-allocated", run->share * 100);
    else
        snprintf (run->label, sizeof run->label, "%s", name[run->kind]);
}

int grid_run (const struct grid *grid, enum grid_kind kind, double share,
              const struct grid_run *base, uint64_t seed,
              void (*progress) (void *self, uint64_t jobs_done), void *self, struct grid_run *out,
              struct err *err)
{
    struct gridsim_site site[GRIDSIM_SITES_MAX];
    struct pool pool = {0};
    struct gridsim_setup setup = {.site = site,
                                  .site_count = grid->site_count,
                                  .job = grid->job,
                                  .count = grid->count,
                                  .place = kind == GRID_PLACED || kind == GRID_MOVED,
                                  .move = kind == GRID_MOVED,
                                  .moves = grid->moves,
                                  .slide = grid->slide,
                                  .coallocate = kind == GRID_SHARED ? share : 0,
                                  .seed = seed,
                                  .self = self,
                                  .progress = progress};
    duration_us begun = clock_monotonic_us ();
    int rc = 0;
    *out = (struct grid_run){.kind = kind, .share = share};
    out->result = mem_zero (grid->count + 1, sizeof out->result[0]);
    for (uint32_t s = 0; s < grid->site_count; s++)
        site[s] = site_of (&grid->site[s]);
    if (kind == GRID_POOL) {
        rc = pool_make (grid, &pool, err);
        setup.site = &pool.site;
        setup.site_count = 1;
        setup.job = pool.job;
    }
    if (!rc)
        rc = gridsim_run (&setup, out->result, &out->summary, err);
    if (kind == GRID_POOL)
        pool_free (&pool);
    if (rc) {
        grid_run_free (out);
        return rc;
    }
    out->wall_s = seconds (clock_monotonic_us () - begun);
    label_set (out);
    measure (grid, base, out);
    return 0;
}

void grid_run_free (struct grid_run *run)
{
    free (run->result);
    memset (run, 0, sizeof *run);
}
