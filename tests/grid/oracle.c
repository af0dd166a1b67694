/* oracle: at the end of a world, when all has healed, a job is submitted beside others that run, and what becomes of it is held
 * against a search over all sites and moments. It knows only how many processors each site has and until when which are in
 * use, and nothing of how the metaschedulers choose. */
#include "grid_i.h"

enum { ENDS_MAX = 64, BUSY_MAX = GRID_SITES_MAX };

static const char *const sites[] = {"alpha", "beta", "gamma", "delta"};
static const char *const metas[] = {"meta1", "meta2", "meta3", "meta4", "meta5"};

/* What is free at a site: all of it but what runs there, until its limit. */
struct room {
    uint32_t procs, count;
    struct {
        time_us until;
        uint32_t procs;
    } busy[ENDS_MAX];
};

static bool healthy (void)
{
    for (uint32_t i = 0; i < sim.machine_count; i++)
        if (sim.machine[i].wall_offset || (sim.machine[i].program && !sim.machine[i].self))
            return false;
    return true;
}

static bool all_over (void *arg)
{
    (void)arg;
    for (uint32_t j = 0; j < w.job_count; j++)
        if (!w.job[j].over)
            return false;
    return healthy () && bank_holds_open () == 0;
}

static bool launched (void *arg)
{
    return grid_launches (*(uint32_t *)arg) > 0;
}

static bool all_launched (void *arg)
{
    const uint32_t *job = arg;
    for (; *job != UINT32_MAX; job++)
        if (grid_launches (*job) == 0)
            return false;
    return true;
}

static bool over (void *arg)
{
    return grid_job_over (*(uint32_t *)arg);
}

static const char *any_meta (void)
{
    return metas[sim_below (w.shape.metas)];
}

/* Jobs of one component on some of the sites, each for so long that the probe may have to wait. */
static bool make_busy (void)
{
    uint32_t job[BUSY_MAX + 1], count = 0;
    for (uint32_t s = 0; s < w.shape.sites; s++) {
        struct grid_ask ask = {.parts = 1, .sites = {sites[s]}};
        ask.tasks[0] = 1 + (uint32_t)sim_below (w.shape.nodes[s] * GRID_NODE_PROCS);
        ask.walltime = (60 + (duration_us)sim_below (120)) * SEC;
        if (sim_chance (70))
            job[count++] = grid_submit (any_meta (), &ask);
    }
    job[count] = UINT32_MAX;
    bool all = grid_until (all_launched, job, 120 * SEC);
    sim_run (sim.now + SEC); /* a site knows of it a little later */
    return all;
}

static void room_look (struct room *room, uint32_t s)
{
    struct svc *svc = svc_of (machine_find (sites[s]));
    memset (room, 0, sizeof *room);
    room->procs = w.shape.nodes[s] * GRID_NODE_PROCS;
    for (const struct site_job *job = svc ? svc->jobs : NULL; job; job = job->hh.next) {
        if (job->rec.state != STORE_JOB_RUNNING || room->count == ENDS_MAX)
            continue;
        room->busy[room->count].procs = job->rec.procs;
        room->busy[room->count++].until = job->rec.start + job->rec.walltime;
    }
}

static bool allowed (const struct grid_ask *ask, uint32_t part, uint32_t site)
{
    return !ask->sites[part] || strstr (ask->sites[part], sites[site]);
}

/* Whether some assignment of all parts finds the processors that are free from `at` on. */
static bool fits_at (const struct room *room, const struct grid_ask *ask, time_us at)
{
    uint32_t ways = 1;
    for (uint32_t p = 0; p < ask->parts; p++)
        ways *= w.shape.sites;
    for (uint32_t way = 0; way < ways; way++) {
        uint32_t used[GRID_SITES_MAX] = {0}, rest = way;
        bool all = true;
        for (uint32_t p = 0; p < ask->parts; p++, rest /= w.shape.sites) {
            used[rest % w.shape.sites] += ask->tasks[p];
            all = all && allowed (ask, p, rest % w.shape.sites);
        }
        for (uint32_t s = 0; s < w.shape.sites; s++) {
            for (uint32_t b = 0; b < room[s].count; b++)
                used[s] += room[s].busy[b].until > at ? room[s].busy[b].procs : 0;
            all = all && used[s] <= room[s].procs;
        }
        if (all)
            return true;
    }
    return false;
}

/* The first moment at which it could begin; 0: never. What is in use only becomes less. */
static time_us first_of_all (const struct room *room, const struct grid_ask *ask, time_us now)
{
    time_us first = fits_at (room, ask, now) ? now : 0;
    for (uint32_t s = 0; s < w.shape.sites && first != now; s++)
        for (uint32_t b = 0; b < room[s].count; b++) {
            time_us end = room[s].busy[b].until;
            if (end > now && (!first || end < first) && fits_at (room, ask, end))
                first = end;
        }
    return first;
}

void oracle_probe (void)
{
    /* A start is chosen COALLOCLEAD ahead; sites report, and are asked again, meanwhile; a message is
     * given up after seconds. */
    static const duration_us slack = 45 * SEC;
    static char list[GRID_PARTS_MAX][64];
    struct grid_ask ask = {.parts = 2 + (uint32_t)sim_below (GRID_PARTS_MAX - 1)};
    struct room room[GRID_SITES_MAX] = {0};
    if (w.shape.balance < 1000 * 1000000LL || !grid_until (all_over, NULL, 900 * SEC) ||
        w.job_count + BUSY_MAX + 1 > GRID_JOBS_MAX)
        return;
    sim_run (sim.now + 30 * SEC); /* what had died has reported again */
    if (!make_busy ())
        return;
    ask.walltime = (8 + (duration_us)sim_below (20)) * SEC;
    for (uint32_t p = 0; p < ask.parts; p++) {
        ask.tasks[p] = 1 + (uint32_t)sim_below (3);
        snprintf (list[p], sizeof list[p], "%s,%s", sites[sim_below (w.shape.sites)],
                  sites[sim_below (w.shape.sites)]);
        ask.sites[p] = sim_chance (30) ? list[p] : NULL;
    }
    for (uint32_t s = 0; s < w.shape.sites; s++)
        room_look (&room[s], s);
    time_us now = sim.epoch + sim.now, first = first_of_all (room, &ask, now);
    uint32_t job = grid_submit (any_meta (), &ask);
    coverage_count (!first         ? "oracle: never possible"
                    : first == now ? "oracle: possible at once"
                                   : "oracle: possible later");
    TRACE ("oracle job %u can begin in %.1f s", job, first ? (double)(first - now) / 1e6 : -1.);
    if (!first) {
        CHECK (grid_until (over, &job, 300 * SEC), "job %u can never run, and waits: %s", job,
               grid_reason (job));
        CHECK (grid_launches (job) == 0, "job %u runs, and no search finds where", job);
        return;
    }
    CHECK (grid_until (launched, &job, first - now + slack),
           "job %u could begin %.0f s after its submission, and does not: %s", job,
           (double)(first - now) / 1e6, grid_reason (job));
}
