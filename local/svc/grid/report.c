/* What metaschedulers are told of the cluster: nodes, free capacity, queue, estimates. Called by the link before each report leaves; it
 * decides nothing. */
#include <stdlib.h>
#include <string.h>

#include "local/core/query.h"
#include "local/svc/forecast/forecast.h"
#include "local/svc/grid/grid.h"
#include "local/svc/nodes.h"
#include "local/svc/svc_i.h"

enum { WINDOWS_MAX = 64, SIZES_MAX = 24, DURATIONS_MAX = 10 };
static const duration_us table_durations[DURATIONS_MAX] = {
    60 * US_PER_S,         600 * US_PER_S,        1800 * US_PER_S,      3600 * US_PER_S,
    4 * 3600 * US_PER_S,   12 * 3600 * US_PER_S,  24 * 3600 * US_PER_S, 72 * 3600 * US_PER_S,
    168 * 3600 * US_PER_S, 720 * 3600 * US_PER_S,
};

static void nodes_fill (struct svc *svc, Nui__Meta__V1__SiteReport *report)
{
    struct resources configured, dedicated;
    for (uint32_t i = 0; i < svc->node_count; i++) {
        struct node_view v;
        if (cluster_node_get (svc->cluster, (struct node_id){i}, &v, NULL) != 0 ||
            !svc->node_by_id[i]->configured)
            continue;
        uint32_t procs = (uint32_t)v.spec.configured.v[RES_PROCS];
        report->nodes_total++;
        report->procs_total += procs;
        if (v.state != NODE_UP)
            continue;
        report->nodes_up++;
        report->procs_up += procs;
        if (procs > report->procs_per_node_max)
            report->procs_per_node_max = procs;
        if (v.spec.configured.v[RES_MEM_MB] > report->memory_per_node_max_mb)
            report->memory_per_node_max_mb = v.spec.configured.v[RES_MEM_MB];
    }
    cluster_totals (svc->cluster, &configured, &dedicated);
    int64_t in_use = dedicated.v[RES_PROCS];
    report->procs_free = in_use < report->procs_up ? report->procs_up - (uint32_t)in_use : 0;
    report->jobs_running = cluster_job_count (svc->cluster, JOB_RUNNING) +
                           cluster_job_count (svc->cluster, JOB_STARTING);
    report->jobs_queued = cluster_job_count (svc->cluster, JOB_IDLE);
}

static void windows_fill (struct svc *svc, time_us now, Nui__Meta__V1__SiteReport *report)
{
    struct arena *arena = svc->report_arena;
    struct window *list;
    uint32_t count;
    if (query_windows (svc->cluster, NULL, true, now, arena, &list, &count, NULL) != 0)
        return;
    if (count > WINDOWS_MAX)
        count = WINDOWS_MAX;
    report->windows = arena_array (arena, count + 1, sizeof (void *));
    for (uint32_t i = 0; i < count; i++) {
        Nui__Meta__V1__BackfillWindow *w = arena_new (arena, Nui__Meta__V1__BackfillWindow);
        nui__meta__v1__backfill_window__init (w);
        w->procs = list[i].procs > UINT32_MAX ? UINT32_MAX : (uint32_t)list[i].procs;
        w->nodes = list[i].nodes;
        w->end_us = list[i].length == TIME_US_MAX ? INT64_MAX : now + list[i].length;
        report->windows[report->n_windows++] = w;
    }
}

/* One processor, two, four … and all of them. */
static uint32_t sizes_of (uint32_t procs, uint32_t out[SIZES_MAX])
{
    uint32_t n = 0;
    for (uint64_t s = 1; s < procs && n < SIZES_MAX - 1; s *= 2)
        out[n++] = (uint32_t)s;
    if (procs)
        out[n++] = procs;
    return n;
}

static void table_fill (struct svc *svc, time_us now, Nui__Meta__V1__SiteReport *report)
{
    struct arena *arena = svc->report_arena;
    uint32_t sizes[SIZES_MAX];
    uint32_t size_count = sizes_of (report->procs_up, sizes);
    time_us start[SIZES_MAX * DURATIONS_MAX];
    if (size_count == 0 || query_table (svc->cluster, sizes, size_count, table_durations,
                                        DURATIONS_MAX, 0, true, now, start, NULL) != 0)
        return;
    report->estimates = arena_array (arena, SIZES_MAX * DURATIONS_MAX, sizeof (void *));
    for (uint32_t s = 0; s < size_count; s++)
        for (uint32_t d = 0; d < DURATIONS_MAX; d++) {
            time_us at = start[s * DURATIONS_MAX + d];
            Nui__Meta__V1__StartEstimate *e = arena_new (arena, Nui__Meta__V1__StartEstimate);
            nui__meta__v1__start_estimate__init (e);
            e->procs = sizes[s];
            e->walltime_us = table_durations[d];
            e->start_us = at == TIME_US_NONE || at > now + svc->settings->horizon ? 0 : at;
            struct estimate expected;
            time_us made;
            if (e->start_us &&
                forecast_table (svc, sizes[s], table_durations[d], &expected, &made)) {
                e->median_us = made + expected.median;
                e->low95_us = made + expected.low95;
                e->high95_us = made + expected.high95;
            }
            report->estimates[report->n_estimates++] = e;
        }
}

static void features_fill (struct svc *svc, Nui__Meta__V1__SiteReport *report)
{
    uint32_t count = strtab_count (svc->features);
    report->features = arena_array (svc->report_arena, count + 1, sizeof (char *));
    for (uint32_t i = 0; i < count; i++)
        report->features[report->n_features++] = (char *)strtab_name (svc->features, i);
}

static void numbers_fill (struct svc *svc, Nui__Meta__V1__SiteReport *report)
{
    struct grid_number *n, *next;
    report->grid_numbers =
        arena_array (svc->report_arena, HASH_COUNT (svc->grid_numbers) + 1, sizeof (void *));
    HASH_ITER (hh, svc->grid_numbers, n, next) {
        Nui__Meta__V1__GridNumber *out = arena_new (svc->report_arena, Nui__Meta__V1__GridNumber);
        nui__meta__v1__grid_number__init (out);
        out->metascheduler = n->meta;
        out->number = n->number;
        report->grid_numbers[report->n_grid_numbers++] = out;
    }
}

void report_fill (void *arg, Nui__Meta__V1__SiteReport *report)
{
    struct svc *svc = arg;
    time_us now = svc_now (svc);
    arena_reset (svc->report_arena);
    report->site = svc->site;
    report->server = svc->server;
    report->schedule_version = cluster_version (svc->cluster);
    report->now_us = now;
    numbers_fill (svc, report);
    nodes_fill (svc, report);
    features_fill (svc, report);
    windows_fill (svc, now, report);
    table_fill (svc, now, report);
    report->records = forecast_records (svc, svc->report_arena, &report->n_records);
}
