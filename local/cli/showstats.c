/* showstats, resetstats. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "local/cli/stats_cli.h"

/* --- the system --------------------------------------------------------------------------- */

static void of_line (struct strbuf *out, const char *label, uint64_t part, uint64_t whole)
{
    strbuf_printf (out, "%-30s%10llu/%-10llu(%.3f%%)\n", label, (unsigned long long)part,
                   (unsigned long long)whole, share_of ((double)part, (double)whole));
}

static void hours_line (struct strbuf *out, const char *label, int64_t part, int64_t whole)
{
    strbuf_printf (out, "%-30s%10.2f/%-10.2f(%.3f%%)\n", label, hours_of (part), hours_of (whole),
                   share_of ((double)part, (double)whole));
}

static void mean_line (struct strbuf *out, const char *label, double mean, double most)
{
    strbuf_printf (out, "%-30s%10.2f/%-9.2f\n", label, mean, most);
}

static char *clock_text (int64_t t_us, char *buf, size_t cap)
{
    time_t seconds = (time_t)(t_us / US_PER_S);
    struct tm tm;
    localtime_r (&seconds, &tm);
    strftime (buf, cap, "%a %b %e %H:%M:%S %Y", &tm);
    return buf;
}

void summary_text (const Nui__Local__V1__SummaryReply *r, bool verbose, struct strbuf *out)
{
    const Nui__Local__V1__JobSums *s = r->completed;
    char a[QUANTITY_TEXT_MAX], b[QUANTITY_TEXT_MAX];
    double procs = r->procs ? r->procs : 1;
    strbuf_putc (out, '\n');
    if (verbose)
        strbuf_printf (out, "current scheduler time: %s (%lld)\n",
                       clock_text (r->now_us, a, sizeof a), (long long)(r->now_us / US_PER_S));
    strbuf_printf (out, "maui active for %13s  stats initialized on %s\n",
                   span_text ((r->now_us - r->started_us) / US_PER_S * US_PER_S, a),
                   moment_text (r->since_us, b));
    if (verbose)
        strbuf_printf (out, "statistics for iteration %5llu  scheduler started on %s\n",
                       (unsigned long long)r->passes, moment_text (r->started_us, a));
    strbuf_putc (out, '\n');
    of_line (out, "Eligible/Idle Jobs:", r->eligible_jobs, r->idle_jobs);
    strbuf_printf (out, "%-30s%10llu\n", "Active Jobs:", (unsigned long long)r->active_jobs);
    of_line (out, "Successful/Completed Jobs:", s->successful, s->jobs);
    if (verbose)
        strbuf_printf (out, "%-30s%10llu\n", "Preempt Jobs:", (unsigned long long)s->preempted);
    mean_line (out, "Avg/Max QTime (Hours):", sums_queue_hours (s), hours_of (s->queue_max_us));
    mean_line (out, "Avg/Max XFactor:", sums_xfactor (s), (double)s->xfactor_max_ppm / 1e6);
    if (verbose)
        mean_line (out, "Avg/Max Bypass:", s->jobs ? (double)s->bypass / (double)s->jobs : 0,
                   (double)s->bypass_max);
    strbuf_putc (out, '\n');
    hours_line (out, "Dedicated/Total ProcHours:", r->dedicated_ps_us, r->available_ps_us);
    if (verbose)
        hours_line (out, "Preempt/Dedicated ProcHours:", s->ps_lost_us, r->dedicated_ps_us);
    strbuf_putc (out, '\n');
    of_line (out, "Current Active/Total Procs:", r->procs_active, r->procs);
    if (verbose)
        of_line (out, "Current Active/Total Nodes:", r->nodes_active, r->nodes);
    strbuf_printf (out, "\n%-30s%9.3f%%\n%-30s%9.3f%%\n",
                   "Avg WallClock Accuracy:", sums_accuracy (s),
                   "Avg Job Proc Efficiency:", sums_efficiency (s));
    if (verbose && r->least_ppm >= 0)
        strbuf_printf (out, "%-30s%9.3f%% (on iteration %llu)\n",
                       "Min System Utilization:", r->least_ppm / 1e4,
                       (unsigned long long)r->least_pass);
    strbuf_printf (out, "%-30s%10.2f/%-8.2f\n",
                   "Est/Avg Backlog (Hours):", (double)r->backlog_ps / 3600 / procs,
                   (double)r->backlog_average_ps / 3600 / procs);
}

static const struct table_column summary_columns[] = {
    {"site", "Site", TABLE_TEXT, 0},
    {"time", "Time", TABLE_TIME, 0},
    {"active_for", "Active", TABLE_DURATION, 0},
    {"started_time", "Started", TABLE_TIME, 0},
    {"since_time", "Since", TABLE_TIME, 0},
    {"iteration", "Iteration", TABLE_INT, 0},
    {"eligible_jobs", "Eligible", TABLE_INT, 0},
    {"idle_jobs", "Idle", TABLE_INT, 0},
    {"active_jobs", "ActiveJobs", TABLE_INT, 0},
    {"completed_jobs", "Completed", TABLE_INT, 0},
    {"successful_jobs", "Successful", TABLE_INT, 0},
    {"preempted_jobs", "Preempted", TABLE_INT, 0},
    {"avg_queue_hours", "AvgQH", TABLE_PPM, 2},
    {"max_queue_hours", "MaxQH", TABLE_PPM, 2},
    {"avg_xfactor", "AvgXF", TABLE_PPM, 2},
    {"max_xfactor", "MaxXF", TABLE_PPM, 2},
    {"avg_bypass", "AvgBP", TABLE_PPM, 2},
    {"max_bypass", "MaxBP", TABLE_INT, 0},
    {"ph_dedicated", "PHDed", TABLE_PPM, 2},
    {"ph_total", "PHTotal", TABLE_PPM, 2},
    {"ph_preempted", "PHPreempt", TABLE_PPM, 2},
    {"procs_active", "ActiveProcs", TABLE_INT, 0},
    {"procs", "Procs", TABLE_INT, 0},
    {"nodes_active", "ActiveNodes", TABLE_INT, 0},
    {"nodes", "Nodes", TABLE_INT, 0},
    {"wc_accuracy", "WCAcc", TABLE_PPM, 3},
    {"efficiency", "Effic", TABLE_PPM, 3},
    {"min_utilization", "MinUtil", TABLE_PPM, 3},
    {"min_utilization_iteration", "OnIteration", TABLE_INT, 0},
    {"backlog_hours", "Backlog", TABLE_PPM, 2},
    {"avg_backlog_hours", "AvgBacklog", TABLE_PPM, 2},
};

static void decimal (struct table *t, double value)
{
    table_ppm (t, (int64_t)llround (value * 1e6));
}

static int summary_record (struct cli_context *ctx, const Nui__Local__V1__SummaryReply *r)
{
    struct table *t =
        table_create (summary_columns, sizeof summary_columns / sizeof *summary_columns);
    const Nui__Local__V1__JobSums *s = r->completed;
    double procs = r->procs ? r->procs : 1;
    table_text (t, r->site);
    table_time (t, r->now_us);
    table_duration (t, r->now_us - r->started_us);
    table_time (t, r->started_us);
    table_time (t, r->since_us);
    table_int (t, (int64_t)r->passes);
    table_int (t, (int64_t)r->eligible_jobs);
    table_int (t, (int64_t)r->idle_jobs);
    table_int (t, (int64_t)r->active_jobs);
    table_int (t, (int64_t)s->jobs);
    table_int (t, (int64_t)s->successful);
    table_int (t, (int64_t)s->preempted);
    decimal (t, sums_queue_hours (s));
    decimal (t, hours_of (s->queue_max_us));
    decimal (t, sums_xfactor (s));
    decimal (t, (double)s->xfactor_max_ppm / 1e6);
    decimal (t, s->jobs ? (double)s->bypass / (double)s->jobs : 0);
    table_int (t, (int64_t)s->bypass_max);
    decimal (t, hours_of (r->dedicated_ps_us));
    decimal (t, hours_of (r->available_ps_us));
    decimal (t, hours_of (s->ps_lost_us));
    table_int (t, r->procs_active);
    table_int (t, r->procs);
    table_int (t, r->nodes_active);
    table_int (t, r->nodes);
    decimal (t, sums_accuracy (s));
    decimal (t, sums_efficiency (s));
    if (r->least_ppm >= 0)
        decimal (t, r->least_ppm / 1e4);
    else
        table_null (t);
    table_int (t, (int64_t)r->least_pass);
    decimal (t, (double)r->backlog_ps / 3600 / procs);
    decimal (t, (double)r->backlog_average_ps / 3600 / procs);
    table_end_row (t);
    int rc = table_print_record (t, ctx);
    table_destroy (t);
    return rc;
}

static int showstats_system (struct cli_context *ctx, const char *site, bool verbose)
{
    Nui__Local__V1__SummaryRequest request = NUI__LOCAL__V1__SUMMARY_REQUEST__INIT;
    Nui__Local__V1__SummaryReply *reply = NULL;
    struct strbuf out = STRBUF_INIT;
    struct err err = {0};
    int rc;
    if (site_stats (ctx, site, "Summary", &request, true, &reply, &err) < 0)
        return cli_fail ("showstats", &err);
    if (cli_format (ctx) == CLI_TABLE) {
        summary_text (reply, verbose, &out);
        rc = cli_output (&out);
    } else {
        rc = summary_record (ctx, reply);
    }
    strbuf_free (&out);
    nui__local__v1__summary_reply__free_unpacked (reply, NULL);
    return rc;
}

/* --- by credential ------------------------------------------------------------------------ */

void sums_text (const Nui__Local__V1__SumsReply *r, const char *kind, bool noheader,
                struct strbuf *out)
{
    const char *label = strcmp (kind, "account") == 0 ? "acct" : kind;
    const Nui__Local__V1__JobSums *all = r->total;
    char a[QUANTITY_TEXT_MAX];
    if (!noheader)
        strbuf_printf (
            out,
            "statistics initialized %s\n\n"
            "         |------ Active ------|--------------------------------- Completed "
            "-----------------------------------|\n"
            "%-8s  Jobs Procs ProcHours Jobs    %%    PHReq    %%    PHDed    %%   FSTgt "
            " AvgXF  MaxXF  AvgQH  Effic  WCAcc\n",
            moment_text (r->since_us, a), label);
    for (size_t i = 0; i < r->n_rows; i++) {
        const Nui__Local__V1__SumsRow *row = r->rows[i];
        const Nui__Local__V1__JobSums *s = row->completed;
        strbuf_printf (
            out, "%-8s %5llu %5llu %9.2f %4llu %6.2f %6.1f %6.2f %6.1f %6.2f ", row->name,
            (unsigned long long)row->active_jobs, (unsigned long long)row->active_procs,
            hours_of (row->active_ps_us), (unsigned long long)s->jobs,
            share_of ((double)s->jobs, (double)all->jobs), hours_of (s->ps_asked_us),
            share_of ((double)s->ps_asked_us, (double)all->ps_asked_us), hours_of (s->ps_run_us),
            share_of ((double)s->ps_run_us, (double)all->ps_run_us));
        if (*row->target_type)
            strbuf_printf (out, "%5.2f", row->target);
        else
            strbuf_puts (out, "-----");
        strbuf_printf (out, " %6.2f %6.2f %6.2f %6.2f %6.2f\n", sums_xfactor (s),
                       (double)s->xfactor_max_ppm / 1e6, sums_queue_hours (s), sums_efficiency (s),
                       sums_accuracy (s));
    }
    if (!noheader)
        strbuf_puts (out, "\n\n");
    if (r->hidden && !noheader)
        strbuf_printf (out, "%u others are not shown: that is for administrators\n", r->hidden);
}

static int sums_rows (struct cli_context *ctx, const Nui__Local__V1__SumsReply *r)
{
    static struct table_column columns[SUMS_COLUMNS + 6] = {
        {"name", "Name", TABLE_TEXT, 0},
        {"active_jobs", "ActiveJobs", TABLE_INT, 0},
        {"active_procs", "ActiveProcs", TABLE_INT, 0},
        {"active_proc_hours", "ActivePH", TABLE_PPM, 2},
        {"fs_target", "FSTgt", TABLE_PPM, 2},
        {"fs_target_type", "FSType", TABLE_TEXT, 0},
    };
    memcpy (columns + 6, sums_columns, sizeof sums_columns);
    struct table *t = table_create (columns, SUMS_COLUMNS + 6);
    for (size_t i = 0; i < r->n_rows; i++) {
        const Nui__Local__V1__SumsRow *row = r->rows[i];
        table_text (t, row->name);
        table_int (t, (int64_t)row->active_jobs);
        table_int (t, (int64_t)row->active_procs);
        decimal (t, hours_of (row->active_ps_us));
        if (*row->target_type)
            decimal (t, row->target);
        else
            table_null (t);
        cell_text (t, row->target_type);
        sums_cells (t, row->completed, r->total);
        table_end_row (t);
    }
    int rc = table_print (t, ctx);
    table_destroy (t);
    return rc;
}

static int showstats_sums (struct cli_context *ctx, const char *site, const char *kind,
                           const char *name)
{
    Nui__Local__V1__SumsRequest request = NUI__LOCAL__V1__SUMS_REQUEST__INIT;
    Nui__Local__V1__SumsReply *reply = NULL;
    struct strbuf out = STRBUF_INIT;
    struct err err = {0};
    int rc;
    request.kind = (char *)(uintptr_t)kind;
    if (name)
        request.name = (char *)(uintptr_t)name;
    if (site_stats (ctx, site, "Sums", &request, true, &reply, &err) < 0)
        return cli_fail ("showstats", &err);
    if (cli_format (ctx) == CLI_TABLE) {
        sums_text (reply, kind, cli_noheader (ctx), &out);
        rc = cli_output (&out);
    } else {
        rc = sums_rows (ctx, reply);
    }
    strbuf_free (&out);
    nui__local__v1__sums_reply__free_unpacked (reply, NULL);
    return rc;
}

/* --- nodes -------------------------------------------------------------------------------- */

struct node_total {
    uint32_t nodes, procs, up, busy;
    int64_t total_us, up_us, busy_us;
};

static void total_add (struct node_total *t, const Nui__Local__V1__NodeSumsRow *n)
{
    t->nodes++;
    t->procs += n->procs;
    t->up += strcmp (n->state, "Down") != 0 && strcmp (n->state, "Drained") != 0;
    t->busy += strcmp (n->state, "Busy") == 0;
    t->total_us += n->total_us;
    t->up_us += n->up_us;
    t->busy_us += n->busy_us;
}

static int by_memory (const void *a, const void *b)
{
    const Nui__Local__V1__NodeSumsRow *x = a, *y = b;
    if (x->memory_mb != y->memory_mb)
        return x->memory_mb < y->memory_mb ? -1 : 1;
    return strcmp (x->name, y->name);
}

static void memory_line (struct strbuf *out, const char *label, const struct node_total *t,
                         const struct node_total *all)
{
    strbuf_printf (out, "%8s %5u %7.2f %9.0f %7.2f %10.0f %7.2f\n", label, t->procs,
                   share_of (t->procs, all->procs), hours_of (t->up_us),
                   share_of ((double)t->up_us, (double)all->up_us), hours_of (t->busy_us),
                   share_of ((double)t->busy_us, (double)all->busy_us));
}

static void current_text (struct strbuf *out, const struct node_total *t)
{
    strbuf_printf (out, "%6.2f%% Avail  %6.2f%% Busy  (Current: %6.2f%% Avail  %6.2f%% Busy)\n",
                   share_of ((double)t->up_us, (double)t->total_us),
                   share_of ((double)t->busy_us, (double)t->up_us), share_of (t->up, t->nodes),
                   share_of (t->busy, t->nodes));
}

/* Rows with as much memory as the first; adds them up. */
static uint32_t class_of (const struct node_sums *n, uint32_t from, struct node_total *out)
{
    uint32_t to = from;
    *out = (struct node_total){0};
    while (to < n->count && n->row[to].memory_mb == n->row[from].memory_mb)
        total_add (out, &n->row[to++]);
    return to;
}

static void node_sums_text (const struct node_sums *n, bool noheader, struct strbuf *out)
{
    struct node_total all = {0}, t;
    char label[24];
    if (n->count > 0)
        qsort (n->row, n->count, sizeof *n->row, by_memory);
    for (uint32_t i = 0; i < n->count; i++)
        total_add (&all, &n->row[i]);
    if (!noheader)
        strbuf_puts (out, "\n\nNode Memory Breakdown:\n\n"
                          "  Memory  Proc Percent  UpNHours Percent BusyNHours Percent\n");
    for (uint32_t i = 0; i < n->count;) {
        uint32_t from = i;
        i = class_of (n, i, &t);
        snprintf (label, sizeof label, "%lld", (long long)n->row[from].memory_mb);
        memory_line (out, label, &t, &all);
    }
    memory_line (out, "TOTAL", &all, &all);
    if (!noheader)
        strbuf_puts (out, "\n\nNode Statistics\n\n");
    for (uint32_t i = 0; i < n->count;) {
        uint32_t from = i;
        i = class_of (n, i, &t);
        if (!noheader)
            strbuf_printf (out,
                           "%lldMB Nodes\n            NodeName Available      Busy NodeState\n",
                           (long long)n->row[from].memory_mb);
        for (uint32_t k = from; k < i; k++) {
            const Nui__Local__V1__NodeSumsRow *r = &n->row[k];
            strbuf_printf (out, "%20s   %6.2f%%   %6.2f%% %9s\n", r->name,
                           share_of ((double)r->up_us, (double)r->total_us),
                           share_of ((double)r->busy_us, (double)r->up_us), r->state);
        }
        strbuf_printf (out, "Summary: %4u %lldMB Nodes  ", t.nodes,
                       (long long)n->row[from].memory_mb);
        current_text (out, &t);
        strbuf_putc (out, '\n');
    }
    strbuf_printf (out, "System Summary: %4u Nodes  ", all.nodes);
    current_text (out, &all);
    if (!noheader)
        strbuf_puts (out, "\n\n");
}

static const struct table_column node_columns[] = {
    {"node", "NodeName", TABLE_TEXT, 0},
    {"state", "NodeState", TABLE_TEXT, 0},
    {"memory", "Memory", TABLE_INT, 0},
    {"procs", "Procs", TABLE_INT, 0},
    {"procs_dedicated", "Dedicated", TABLE_INT, 0},
    {"total_time", "Total", TABLE_DURATION, 0},
    {"up_time", "Up", TABLE_DURATION, 0},
    {"busy_time", "Busy", TABLE_DURATION, 0},
    {"available_percent", "Available", TABLE_PPM, 2},
    {"busy_percent", "Busy%", TABLE_PPM, 2},
};

static int node_rows (struct cli_context *ctx, const struct node_sums *n)
{
    struct table *t = table_create (node_columns, sizeof node_columns / sizeof *node_columns);
    for (uint32_t i = 0; i < n->count; i++) {
        const Nui__Local__V1__NodeSumsRow *r = &n->row[i];
        table_text (t, r->name);
        table_text (t, r->state);
        table_int (t, r->memory_mb);
        table_int (t, r->procs);
        table_int (t, r->dedicated_procs);
        table_duration (t, r->total_us);
        table_duration (t, r->up_us);
        table_duration (t, r->busy_us);
        decimal (t, share_of ((double)r->up_us, (double)r->total_us));
        decimal (t, share_of ((double)r->busy_us, (double)r->up_us));
        table_end_row (t);
    }
    int rc = table_print (t, ctx);
    table_destroy (t);
    return rc;
}

static void on_nodes (void *arg, const ProtobufCMessage *message)
{
    struct node_sums *n = arg;
    const Nui__Local__V1__NodeSumsChunk *c = (const Nui__Local__V1__NodeSumsChunk *)message;
    n->since_us = c->since_us;
    if (n->count + c->n_nodes > n->cap) {
        uint32_t cap = (n->count + (uint32_t)c->n_nodes) * 2;
        Nui__Local__V1__NodeSumsRow *more = arena_array (n->arena, cap, sizeof *more);
        if (n->count)
            memcpy (more, n->row, n->count * sizeof *more);
        n->row = more;
        n->cap = cap;
    }
    for (size_t i = 0; i < c->n_nodes; i++) {
        Nui__Local__V1__NodeSumsRow *row = &n->row[n->count++];
        *row = *c->nodes[i];
        row->name = arena_strdup (n->arena, row->name);
        row->state = arena_strdup (n->arena, row->state);
    }
}

static int showstats_nodes (struct cli_context *ctx, const char *site)
{
    Nui__Local__V1__NodeSumsRequest request = NUI__LOCAL__V1__NODE_SUMS_REQUEST__INIT;
    struct node_sums nodes = {.arena = arena_create (0)};
    struct strbuf out = STRBUF_INIT;
    struct err err = {0};
    int rc;
    if (site_stats_stream (ctx, site, "NodeSums", &request, on_nodes, &nodes, &err) < 0) {
        rc = cli_fail ("showstats", &err);
    } else if (cli_format (ctx) == CLI_TABLE) {
        node_sums_text (&nodes, cli_noheader (ctx), &out);
        rc = cli_output (&out);
    } else {
        rc = node_rows (ctx, &nodes);
    }
    strbuf_free (&out);
    arena_destroy (nodes.arena);
    return rc;
}

/* --- the commands ------------------------------------------------------------------------- */

struct showstats_args {
    bool user, group, account, class, qos, nodes, system, verbose, scheduler, days, grid;
    const char *site;
};

#define AT(field) offsetof (struct showstats_args, field)
static const struct cli_option showstats_options[] = {
    {"users", 'u', CLI_OPT_FLAG, NULL, "by user, or only the one that is named", AT (user)},
    {"groups", 'g', CLI_OPT_FLAG, NULL, "by group, likewise", AT (group)},
    {"accounts", 'a', CLI_OPT_FLAG, NULL, "by account, likewise", AT (account)},
    {"classes", 'c', CLI_OPT_FLAG, NULL, "by class, likewise", AT (class)},
    {"qos", 'q', CLI_OPT_FLAG, NULL, "by QoS, likewise", AT (qos)},
    {"nodes", 'n', CLI_OPT_FLAG, NULL, "by node: how long it was up, how long busy", AT (nodes)},
    {"system", 's', CLI_OPT_FLAG, NULL, "the whole system (default)", AT (system)},
    {"scheduler", 'S', CLI_OPT_FLAG, NULL, "the scheduler: mode, iterations, jobs, as diagnose -S",
     AT (scheduler)},
    {"days", 'd', CLI_OPT_FLAG, NULL, "the jobs that ended, day by day, as profiler -p day",
     AT (days)},
    {"fairshare", 'f', CLI_OPT_FLAG, NULL,
     "usage against fairshare targets, as diagnose -f; with a STATISTIC the matrix of showgrid",
     AT (grid)},
    {"verbose", 'v', CLI_OPT_FLAG, NULL, "with preemption, bypass and the lowest utilization",
     AT (verbose)},
    SITE_OPTION (struct showstats_args),
    {0},
};
#undef AT

static int showstats_run (struct cli_context *ctx, int argc, char **argv)
{
    struct showstats_args args = {0};
    struct cli_operands ops;
    int exit_code;
    if (!cli_options (ctx, showstats_options, 0, &args, argc, argv, &ops, &exit_code))
        return exit_code;
    const char *kind = args.user      ? "user"
                       : args.group   ? "group"
                       : args.account ? "account"
                       : args.class   ? "class"
                       : args.qos     ? "qos"
                                      : NULL;
    if (args.user + args.group + args.account + args.class + args.qos + args.nodes + args.system +
            args.grid + args.scheduler + args.days >
        1)
        return cli_usage ("showstats",
                          "one of -u, -g, -a, -c, -q, -n, -s, -S, -d and -f at a time");
    if (ops.count > (kind || args.grid ? 1 : 0))
        return cli_usage ("showstats", "'%s' is too much", ops.item[ops.count - 1]);
    if (args.verbose && (kind || args.nodes || args.grid || args.scheduler || args.days))
        return cli_usage ("showstats", "-v is for the system's summary");
    if (kind)
        return showstats_sums (ctx, args.site, kind, ops.count ? ops.item[0] : NULL);
    if (args.nodes)
        return showstats_nodes (ctx, args.site);
    if (args.grid)
        return ops.count ? showgrid_print (ctx, "showstats", args.site, ops.item[0])
                         : diagnose_fairshare (ctx, args.site, NULL);
    if (args.scheduler)
        return diagnose_scheduler (ctx, args.site);
    if (args.days)
        return profile_days (ctx, args.site);
    return showstats_system (ctx, args.site, args.verbose);
}

const struct cli_command showstats_command = {
    .name = "showstats",
    .group = CLI_CLUSTER,
    .summary = "statistics: the system, users, groups, accounts, classes, QoS, nodes",
    .run = showstats_run,
    .help =
        "nui showstats [-v] | -u [USER] | -g [GROUP] | -a [ACCOUNT] | -c [CLASS] | -q [QOS] | -n |\n"
        "              -S | -d | -f [STATISTIC] [--site NAME]",
    .text =
        "Since the last resetstats, over jobs that have ended; Active is the present moment, with\n"
        "the processor-hours left until the limits.\n"
        "\n"
        "For administrators (ADMIN3); -u shows plain users their own line.",
    .options = showstats_options,
    .example = "nui showstats -u",
};

struct site_args {
    const char *site;
};

static const struct cli_option site_options[] = {
    SITE_OPTION (struct site_args),
    {0},
};

static const struct table_column reset_columns[] = {{"reset_time", "Reset", TABLE_TIME, 0}};

static int resetstats_run (struct cli_context *ctx, int argc, char **argv)
{
    struct site_args args = {0};
    struct cli_operands ops;
    struct err err = {0};
    Nui__Local__V1__ResetRequest request = NUI__LOCAL__V1__RESET_REQUEST__INIT;
    Nui__Local__V1__ResetReply *reply = NULL;
    char a[QUANTITY_TEXT_MAX];
    int exit_code;
    if (!cli_options (ctx, site_options, 0, &args, argc, argv, &ops, &exit_code))
        return exit_code;
    if (ops.count > 0)
        return cli_usage ("resetstats", "'%s' is too much", ops.item[0]);
    if (site_stats (ctx, args.site, "Reset", &request, false, &reply, &err) < 0)
        return cli_fail ("resetstats", &err);
    exit_code = CLI_OK;
    if (cli_format (ctx) == CLI_TABLE) {
        printf ("statistics reset on %s\n\n", moment_text (reply->at_us, a));
    } else {
        struct table *t = table_create (reset_columns, 1);
        table_time (t, reply->at_us);
        table_end_row (t);
        exit_code = table_print_record (t, ctx);
        table_destroy (t);
    }
    nui__local__v1__reset_reply__free_unpacked (reply, NULL);
    return exit_code;
}

const struct cli_command resetstats_command = {
    .name = "resetstats",
    .group = CLI_CLUSTER,
    .summary = "begin the statistics anew",
    .run = resetstats_run,
    .help = "nui resetstats [--site NAME]",
    .text =
        "What showstats and showgrid add up begins at zero. The job history, and with it profiler,\n"
        "stays as it is. For ADMIN1.",
    .options = site_options,
    .example = "nui resetstats",
};
