/* Time of nodes and of the system: how long they were up and busy, how much waited. Added up in each pass, at each poll and before
 * whatever changes nodes; nobody is asked for a job here. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "local/svc/job.h"
#include "local/svc/memory/memory.h"
#include "local/svc/nodes.h"
#include "local/svc/svc_i.h"
#include "proto/base/strbuf.h"

static const char blob_name[] = "usage";

/* --- time of nodes ------------------------------------------------------------------------ */

static struct stats_node *node_at (struct stats *s, uint32_t id)
{
    if (id >= s->node_count) {
        struct stats_node *more = realloc (s->node, (id + 1) * sizeof *more);
        assert (more);
        memset (more + s->node_count, 0, (id + 1 - s->node_count) * sizeof *more);
        s->node = more;
        s->node_count = id + 1;
    }
    return &s->node[id];
}

/* Since when it is as it is: what the names of states tell apart. */
static void state_look (struct stats_node *node, const struct node_view *view, time_us now)
{
    bool full = view->dedicated.v[RES_PROCS] >= view->spec.configured.v[RES_PROCS];
    uint8_t load = view->job_count == 0 ? 0 : full ? 2 : 1;
    if (node->since != 0 && node->state == view->state && node->load == load)
        return;
    node->since = now;
    node->state = (uint8_t)view->state;
    node->load = load;
}

void stats_advance (struct svc *svc, time_us now)
{
    struct stats *s = svc->stats;
    int64_t dt = now - s->at;
    if (s->at == 0 || dt <= 0) { /* the first time; a clock that was set back adds nothing */
        s->at = s->at == 0 || dt < 0 ? now : s->at;
        return;
    }
    s->at = now;
    for (uint32_t n = 0; n < svc->node_count; n++) {
        struct stats_node *node = node_at (s, n);
        struct node_view view;
        if (!svc->node_by_id[n]->configured ||
            cluster_node_get (svc->cluster, (struct node_id){n}, &view, NULL) != 0)
            continue;
        state_look (node, &view, now);
        node->total_us += dt;
        int64_t used = view.dedicated.v[RES_PROCS];
        if (view.state == NODE_UP) {
            node->up_us += dt;
            s->node_up_us += dt;
            s->available_ps += dt * view.spec.configured.v[RES_PROCS];
        } else {
            s->available_ps += dt * used; /* drained: what runs there still counts */
        }
        s->dedicated_ps += dt * used;
        if (used > 0) {
            node->busy_us += dt;
            s->node_busy_us += dt;
        }
    }
}

void stats_settle (struct svc *svc)
{
    time_us now = svc_now (svc);
    if (svc->stats && now - svc->stats->at >= US_PER_S / 10)
        stats_advance (svc, now);
}

static void stats_pass (struct svc *svc)
{
    time_us now = svc->pass_at;
    struct stats *s = svc->stats;
    struct resources configured, dedicated;
    stats_advance (svc, now);
    cluster_totals (svc->cluster, &configured, &dedicated);
    if (configured.v[RES_PROCS] <= 0)
        return;
    int32_t ppm = (int32_t)((int64_t)dedicated.v[RES_PROCS] * 1000000 / configured.v[RES_PROCS]);
    if (s->least_ppm < 0 || ppm < s->least_ppm) {
        s->least_ppm = ppm;
        s->least_pass = svc->schedule.iteration + (svc->sim ? 0 : 1); /* it is being counted */
    }
}

int64_t stats_backlog_ps (struct svc *svc)
{
    struct site_job *job, *next;
    int64_t ps = 0;
    HASH_ITER (hh, svc->jobs, job, next)
        if (job->rec.state == STORE_JOB_QUEUED)
            ps += (int64_t)job->rec.procs * (job->rec.walltime / US_PER_S);
    return ps;
}

/* --- on disk ------------------------------------------------------------------------------ */

static int save (struct svc *svc, struct err *err)
{
    struct stats *s = svc->stats;
    struct strbuf b = STRBUF_INIT;
    strbuf_printf (&b, "%lld %lld %lld %lld %lld %lld %lld %d %llu\n", (long long)s->since,
                   (long long)s->available_ps, (long long)s->dedicated_ps, (long long)s->node_up_us,
                   (long long)s->node_busy_us, (long long)s->backlog_us, (long long)s->backlog_ps,
                   s->least_ppm, (unsigned long long)s->least_pass);
    for (uint32_t n = 0; n < s->node_count && n < svc->node_count; n++)
        strbuf_printf (&b, "%s %lld %lld %lld\n", svc->node_by_id[n]->name,
                       (long long)s->node[n].total_us, (long long)s->node[n].up_us,
                       (long long)s->node[n].busy_us);
    int rc = local_store_blob_put (svc->store, blob_name, b.data, b.len, err);
    strbuf_free (&b);
    return rc;
}

static void node_load (struct svc *svc, char *line)
{
    char name[STORE_NAME_MAX];
    long long total, up, busy;
    if (sscanf (line, "%63s %lld %lld %lld", name, &total, &up, &busy) != 4)
        return;
    struct site_node *node;
    HASH_FIND_STR (svc->nodes, name, node);
    if (node)
        *node_at (svc->stats, node->id.v) =
            (struct stats_node){.total_us = total, .up_us = up, .busy_us = busy};
}

static int load (struct svc *svc, struct err *err)
{
    struct stats *s = svc->stats;
    long long v[7];
    unsigned long long pass;
    int least;
    void *bytes = NULL;
    size_t len = 0;
    int rc = local_store_blob_get (svc->store, blob_name, &bytes, &len, err);
    if (rc == ERR_NOT_FOUND) { /* the first start */
        err_clear (err);
        rc = svc_begin (svc, err);
        if (rc == 0)
            rc = save (svc, err);
        return svc_commit (svc, rc, err);
    }
    if (rc != 0)
        return rc;
    char *rest = NULL, *line = strtok_r (bytes, "\n", &rest);
    if (line && sscanf (line, "%lld %lld %lld %lld %lld %lld %lld %d %llu", &v[0], &v[1], &v[2],
                        &v[3], &v[4], &v[5], &v[6], &least, &pass) == 9) {
        s->since = v[0];
        s->available_ps = v[1];
        s->dedicated_ps = v[2];
        s->node_up_us = v[3];
        s->node_busy_us = v[4];
        s->backlog_us = v[5];
        s->backlog_ps = v[6];
        s->least_ppm = least;
        s->least_pass = pass;
        while ((line = strtok_r (NULL, "\n", &rest)))
            node_load (svc, line);
    } else {
        log_event (svc->log, LOG_LEVEL_ERROR, "stats", "usage_unreadable", "bytes=%zu", len);
    }
    free (bytes);
    return 0;
}

static int stats_open (struct svc *svc, struct err *err)
{
    struct stats *s = calloc (1, sizeof *s);
    assert (s);
    svc->stats = s;
    s->since = s->started = s->at = svc_now (svc);
    s->least_ppm = -1;
    return load (svc, err);
}

static void save_now (struct svc *svc)
{
    struct err err = {0};
    char quoted[300];
    int rc = svc_begin (svc, &err);
    if (rc == 0)
        rc = save (svc, &err);
    if (svc_commit (svc, rc, &err) != 0)
        log_event (svc->log, LOG_LEVEL_ERROR, "stats", "not_saved", "error=%s",
                   log_quote (err.text, quoted, sizeof quoted));
}

static void stats_close (struct svc *svc)
{
    if (!svc->stats)
        return;
    if (svc->cluster && svc->store) {
        stats_advance (svc, svc_now (svc));
        save_now (svc);
    }
    free (svc->stats->node);
    free (svc->stats);
    svc->stats = NULL;
}

static void stats_poll (struct svc *svc)
{
    struct stats *s = svc->stats;
    time_us now = svc_now (svc);
    int64_t dt = svc->settings->policy->poll_interval;
    stats_advance (svc, now);
    s->backlog_us += dt;
    s->backlog_ps += stats_backlog_ps (svc) * (dt / US_PER_S);
    save_now (svc);
}

int stats_begin_anew (struct svc *svc, const char *who, const char *what, struct err *err)
{
    struct stats *s = svc->stats;
    struct stats before = *s;
    time_us now = svc_now (svc);
    stats_advance (svc, now);
    struct stats_node *kept = s->node;
    s->node = NULL;
    s->node_count = 0;
    s->since = now;
    s->available_ps = s->dedicated_ps = s->node_up_us = s->node_busy_us = 0;
    s->backlog_us = s->backlog_ps = 0;
    s->least_ppm = -1;
    int rc = svc_begin (svc, err);
    if (rc == 0)
        rc = stats_reset (svc->store, err);
    if (rc == 0)
        rc = save (svc, err);
    if (rc == 0)
        rc = local_store_audit (svc->store, now, who, what, err);
    rc = svc_commit (svc, rc, err);
    if (rc != 0) { /* as it was */
        free (s->node);
        *s = before;
        s->node = kept;
        return rc;
    }
    free (kept);
    return 0;
}

const struct svc_listener stats_listener = {
    .open = stats_open, .pass_done = stats_pass, .polled = stats_poll, .stop = stats_close};
