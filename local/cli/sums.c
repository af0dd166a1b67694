/* What is read out of sums over jobs. */
#include <math.h>

#include "local/cli/stats_cli.h"

int site_stats (struct cli_context *ctx, const char *site, const char *method, const void *request,
                bool idempotent, void *reply_out, struct err *err)
{
    struct rpcclient *client = cli_site (ctx, site, err);
    if (!client)
        return err->code;
    return rpcclient_call (client, &nui__local__v1__stats__descriptor, method, request,
                           SITE_CALL_TIMEOUT_S * US_PER_S, idempotent, reply_out, err);
}

int site_stats_stream (struct cli_context *ctx, const char *site, const char *method,
                       const void *request, void (*fn) (void *arg, const ProtobufCMessage *message),
                       void *arg, struct err *err)
{
    struct rpcclient *client = cli_site (ctx, site, err);
    if (!client)
        return err->code;
    return rpcclient_stream (client, &nui__local__v1__stats__descriptor, method, request,
                             SITE_CALL_TIMEOUT_S * US_PER_S, fn, arg, err);
}

double hours_of (int64_t us)
{
    return (double)us / 3600e6;
}

double share_of (double part, double whole)
{
    return whole > 0 ? 100 * part / whole : 0;
}

double sums_xfactor (const Nui__Local__V1__JobSums *s)
{
    return s->jobs ? (double)s->xfactor_ppm / 1e6 / (double)s->jobs : 0;
}

double sums_queue_hours (const Nui__Local__V1__JobSums *s)
{
    return s->jobs ? hours_of (s->queue_us) / (double)s->jobs : 0;
}

double sums_accuracy (const Nui__Local__V1__JobSums *s)
{
    return s->jobs ? (double)s->accuracy_ppm / 1e4 / (double)s->jobs : 0;
}

double sums_efficiency (const Nui__Local__V1__JobSums *s)
{
    return share_of ((double)s->ps_used_us, (double)s->ps_run_us);
}

void sums_add (Nui__Local__V1__JobSums *s, const Nui__Local__V1__JobSums *m)
{
    s->jobs += m->jobs;
    s->successful += m->successful;
    s->ps_asked_us += m->ps_asked_us;
    s->ps_run_us += m->ps_run_us;
    s->ps_used_us += m->ps_used_us;
    s->queue_us += m->queue_us;
    if (m->queue_max_us > s->queue_max_us)
        s->queue_max_us = m->queue_max_us;
    s->procs += m->procs;
    s->xfactor_ppm += m->xfactor_ppm;
    if (m->xfactor_max_ppm > s->xfactor_max_ppm)
        s->xfactor_max_ppm = m->xfactor_max_ppm;
    s->xfactor_procs_ppm += m->xfactor_procs_ppm;
    s->xfactor_ps_milli += m->xfactor_ps_milli;
    s->bypass += m->bypass;
    if (m->bypass_max > s->bypass_max)
        s->bypass_max = m->bypass_max;
    s->accuracy_ppm += m->accuracy_ppm;
    s->backfilled += m->backfilled;
    s->ps_backfilled_us += m->ps_backfilled_us;
    s->qos_met += m->qos_met;
    s->preempted += m->preempted;
    s->ps_lost_us += m->ps_lost_us;
}

const struct table_column sums_columns[SUMS_COLUMNS] = {
    {"jobs", "Jobs", TABLE_INT, 0},
    {"jobs_percent", "Jobs%", TABLE_PPM, 2},
    {"successful", "Successful", TABLE_INT, 0},
    {"ph_requested", "PHReq", TABLE_PPM, 2},
    {"ph_requested_percent", "PHReq%", TABLE_PPM, 2},
    {"ph_dedicated", "PHDed", TABLE_PPM, 2},
    {"ph_dedicated_percent", "PHDed%", TABLE_PPM, 2},
    {"avg_xfactor", "AvgXF", TABLE_PPM, 2},
    {"max_xfactor", "MaxXF", TABLE_PPM, 2},
    {"avg_queue_hours", "AvgQH", TABLE_PPM, 2},
    {"max_queue_hours", "MaxQH", TABLE_PPM, 2},
    {"efficiency", "Effic", TABLE_PPM, 2},
    {"wc_accuracy", "WCAcc", TABLE_PPM, 2},
    {"backfilled", "BFJobs", TABLE_INT, 0},
    {"avg_bypass", "AvgBP", TABLE_PPM, 2},
    {"preempted", "Preempted", TABLE_INT, 0},
    {"qos_delivered", "QOSDel", TABLE_PPM, 2},
};

static void decimal (struct table *t, double value)
{
    table_ppm (t, (int64_t)llround (value * 1e6));
}

void sums_cells (struct table *t, const Nui__Local__V1__JobSums *s,
                 const Nui__Local__V1__JobSums *total)
{
    table_int (t, (int64_t)s->jobs);
    decimal (t, share_of ((double)s->jobs, (double)total->jobs));
    table_int (t, (int64_t)s->successful);
    decimal (t, hours_of (s->ps_asked_us));
    decimal (t, share_of ((double)s->ps_asked_us, (double)total->ps_asked_us));
    decimal (t, hours_of (s->ps_run_us));
    decimal (t, share_of ((double)s->ps_run_us, (double)total->ps_run_us));
    decimal (t, sums_xfactor (s));
    decimal (t, (double)s->xfactor_max_ppm / 1e6);
    decimal (t, sums_queue_hours (s));
    decimal (t, hours_of (s->queue_max_us));
    decimal (t, sums_efficiency (s));
    decimal (t, sums_accuracy (s));
    table_int (t, (int64_t)s->backfilled);
    decimal (t, s->jobs ? (double)s->bypass / (double)s->jobs : 0);
    table_int (t, (int64_t)s->preempted);
    decimal (t, share_of ((double)s->qos_met, (double)s->jobs));
}
