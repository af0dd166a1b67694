/* estimates: hooks an estimator into a replay, asks at each submission, scores at each start,
 * and writes the CSV. simcmd.c calls it for --estimates. No job's real run time may reach the
 * estimator before the job has ended. */
#include "local/sim/estimates.h"

#include <stdlib.h>
#include <string.h>

#include "proto/base/clock.h"
#include "proto/base/mem.h"

struct asking {
    const struct workload *workload;
    const struct simrun *run;
    struct estimator *estimator;
    struct estimates *out;
    struct estimate (*raw)[ESTIMATE_METHODS]; /* of job i */
    struct err err;                           /* the first failure */
    int rc;
};

static struct job_known known_of (const struct asking *a, uint64_t index)
{
    const struct workload_job *job = &a->workload->job[index];
    struct job_known known = {.procs = job->procs, .limit = job->limit};

    memcpy (known.cred, job->cred, sizeof known.cred);
    known.cred[CRED_QOS] = a->run->qos[index];
    return known;
}

static void ask (struct asking *a, struct cluster *cluster, uint64_t index, int method)
{
    struct estimates_summary *sum = &a->out->method[method];
    duration_us begun = clock_monotonic_us ();
    double ms;

    a->rc = estimator_ask (a->estimator, (enum estimate_method)method, cluster,
                           (struct job_id){a->workload->job[index].number}, NULL,
                           &a->raw[index][method], &a->err);
    estimator_correct (a->estimator, (enum estimate_method)method, &a->raw[index][method],
                       &a->out->row[index].given[method]);
    ms = (double)(clock_monotonic_us () - begun) / 1e3;
    sum->ms_mean += ms; /* divided at the end */
    sum->ms_max = ms > sum->ms_max ? ms : sum->ms_max;
}

static void arrived (void *self, struct cluster *cluster, uint64_t index, time_us now)
{
    struct asking *a = self;
    struct job_known known = known_of (a, index);

    if (a->rc)
        return;
    a->out->row[index].asked = now;
    a->rc = estimator_see (a->estimator, cluster, now, &a->err);
    for (int m = 0; m < ESTIMATE_METHODS && a->rc == 0; m++)
        ask (a, cluster, index, m);
    estimator_arrived (a->estimator, &known, now);
}

static void started (void *self, uint64_t index, time_us now)
{
    struct asking *a = self;
    struct estimates_row *row = &a->out->row[index];
    struct job_known known = known_of (a, index);

    if (row->wait >= 0) /* preempted, and begun anew: the first start is what was asked about */
        return;
    row->wait = now - row->asked;
    estimator_started (a->estimator, &known, row->wait);
    for (int m = 0; m < ESTIMATE_METHODS; m++) {
        score_add (&a->out->method[m].score, &row->given[m], row->wait);
        estimator_score (a->estimator, (enum estimate_method)m, &a->raw[index][m], row->wait);
    }
}

static void ended (void *self, uint64_t index, time_us now)
{
    struct asking *a = self;
    struct job_known known = known_of (a, index);

    (void)now;
    estimator_ended (a->estimator, &known, a->workload->job[index].run);
}

int estimates_replay (const struct workload *w, const struct machine *m,
                      const struct policy *policy, const struct engine_site *site, duration_us tick,
                      uint64_t seed, simrun_progress *progress, void *self, struct simrun *run,
                      struct estimates *out, struct err *err)
{
    struct estimator_options options = {.seed = seed};
    struct asking a = {.workload = w, .run = run, .out = out};
    struct engine_hooks hooks = {
        .self = &a, .arrived = arrived, .started = started, .ended = ended};
    int rc;

    memset (out, 0, sizeof *out);
    out->count = w->count;
    out->row = mem_zero (w->count + 1, sizeof *out->row);
    a.raw = mem_zero (w->count + 1, sizeof *a.raw);
    for (uint64_t i = 0; i < w->count; i++) {
        out->row[i].asked = TIME_US_NONE;
        out->row[i].wait = -1;
    }
    a.estimator = estimator_create (&options);
    rc = simrun_replay_hooked (w, m, policy, site, tick, seed, progress, self, &hooks, run, err);
    if (rc == 0 && a.rc) {
        rc = a.rc;
        *err = a.err;
        simrun_free (run);
    }
    estimator_destroy (a.estimator);
    free (a.raw);
    for (int i = 0; i < ESTIMATE_METHODS; i++)
        out->method[i].ms_mean /= w->count ? (double)w->count : 1;
    if (rc)
        estimates_free (out);
    return rc;
}

void estimates_free (struct estimates *e)
{
    free (e->row);
    memset (e, 0, sizeof *e);
}

/* --- output ----------------------------------------------------------------------------------- */

static void seconds_put (struct strbuf *out, duration_us d)
{
    strbuf_printf (out, ",%lld", (long long)((d + US_PER_S / 2) / US_PER_S));
}

void estimates_csv (struct strbuf *out, const struct workload *w, const struct estimates *e)
{
    strbuf_puts (out, "job_id,asked,wait,method,median,low50,high50,low95,high95,certain,draws\n");
    for (uint64_t i = 0; i < e->count; i++) {
        const struct estimates_row *row = &e->row[i];
        for (int m = 0; m < ESTIMATE_METHODS && row->asked != TIME_US_NONE; m++) {
            const struct estimate *g = &row->given[m];
            if (w->job[i].name)
                strbuf_puts (out, w->job[i].name);
            else
                strbuf_printf (out, "%llu", (unsigned long long)w->job[i].number);
            seconds_put (out, row->asked);
            if (row->wait >= 0)
                seconds_put (out, row->wait);
            else
                strbuf_putc (out, ',');
            strbuf_printf (out, ",%s", estimate_method_name ((enum estimate_method)m));
            seconds_put (out, g->median);
            seconds_put (out, g->low50);
            seconds_put (out, g->high50);
            seconds_put (out, g->low95);
            seconds_put (out, g->high95);
            strbuf_printf (out, ",%s,%u\n", g->certain ? "yes" : "no", g->draws);
        }
    }
}
