/* showgrid: jobs by size and length, a statistic in each cell. */
#include <math.h>
#include <string.h>
#include <strings.h>

#include "local/cli/stats_cli.h"

/* --- the statistics ----------------------------------------------------------------------- */

struct grid_stat {
    const char *name;
    const char *title;
    bool count; /* a whole number alone */
    double (*value) (const Nui__Local__V1__JobSums *s, const Nui__Local__V1__JobSums *all);
    void (*footer) (const Nui__Local__V1__JobSums *all, struct strbuf *out);
};

static double xf_mean (const Nui__Local__V1__JobSums *s, const Nui__Local__V1__JobSums *all)
{
    (void)all;
    return sums_xfactor (s);
}

static double xf_max (const Nui__Local__V1__JobSums *s, const Nui__Local__V1__JobSums *all)
{
    (void)all;
    return (double)s->xfactor_max_ppm / 1e6;
}

static double queue_mean (const Nui__Local__V1__JobSums *s, const Nui__Local__V1__JobSums *all)
{
    (void)all;
    return sums_queue_hours (s);
}

static double queue_max (const Nui__Local__V1__JobSums *s, const Nui__Local__V1__JobSums *all)
{
    (void)all;
    return hours_of (s->queue_max_us);
}

static double bypass_mean (const Nui__Local__V1__JobSums *s, const Nui__Local__V1__JobSums *all)
{
    (void)all;
    return s->jobs ? (double)s->bypass / (double)s->jobs : 0;
}

static double bypass_max (const Nui__Local__V1__JobSums *s, const Nui__Local__V1__JobSums *all)
{
    (void)all;
    return (double)s->bypass_max;
}

static double job_count (const Nui__Local__V1__JobSums *s, const Nui__Local__V1__JobSums *all)
{
    (void)all;
    return (double)s->jobs;
}

static double ph_asked (const Nui__Local__V1__JobSums *s, const Nui__Local__V1__JobSums *all)
{
    return share_of ((double)s->ps_asked_us, (double)all->ps_asked_us);
}

static double ph_run (const Nui__Local__V1__JobSums *s, const Nui__Local__V1__JobSums *all)
{
    return share_of ((double)s->ps_run_us, (double)all->ps_run_us);
}

/* Weighted by what was asked for, as Maui has it here (in showstats it is the mean over jobs). */
static double accuracy (const Nui__Local__V1__JobSums *s, const Nui__Local__V1__JobSums *all)
{
    (void)all;
    return share_of ((double)s->ps_run_us, (double)s->ps_asked_us);
}

static double bf_jobs (const Nui__Local__V1__JobSums *s, const Nui__Local__V1__JobSums *all)
{
    (void)all;
    return share_of ((double)s->backfilled, (double)s->jobs);
}

static double bf_hours (const Nui__Local__V1__JobSums *s, const Nui__Local__V1__JobSums *all)
{
    (void)all;
    return share_of ((double)s->ps_backfilled_us, (double)s->ps_run_us);
}

static double efficiency (const Nui__Local__V1__JobSums *s, const Nui__Local__V1__JobSums *all)
{
    (void)all;
    return sums_efficiency (s);
}

static double qos (const Nui__Local__V1__JobSums *s, const Nui__Local__V1__JobSums *all)
{
    (void)all;
    return share_of ((double)s->qos_met, (double)s->jobs);
}

static void foot (struct strbuf *out, const char *label, int decimals, double value)
{
    char text[48];
    snprintf (text, sizeof text, "%.*f", decimals, value);
    int room = 35 - (int)strlen (label);
    strbuf_printf (out, "%s%*s\n", label, room > 9 ? room : 9, text);
}

static void xf_foot (const Nui__Local__V1__JobSums *all, struct strbuf *out)
{
    double ps_s = (double)all->ps_run_us / 1e6;
    foot (out, "Job Weighted XFactor:", 4, sums_xfactor (all));
    foot (out, "Proc Weighted XFactor:", 4,
          all->procs ? (double)all->xfactor_procs_ppm / 1e6 / (double)all->procs : 0);
    foot (out, "PS Weighted XFactor:", 4,
          ps_s > 0 ? (double)all->xfactor_ps_milli / 1e3 / ps_s : 0);
}

static void xf_max_foot (const Nui__Local__V1__JobSums *all, struct strbuf *out)
{
    foot (out, "Overall Max XFactor:", 4, xf_max (all, all));
}

static void queue_foot (const Nui__Local__V1__JobSums *all, struct strbuf *out)
{
    foot (out, "Job Weighted QueueTime:", 4, sums_queue_hours (all));
}

static void start_foot (const Nui__Local__V1__JobSums *all, struct strbuf *out)
{
    foot (out, "Overall Est Start Time:", 4, sums_queue_hours (all));
}

static void queue_max_foot (const Nui__Local__V1__JobSums *all, struct strbuf *out)
{
    foot (out, "Overall Max QueueTime:", 4, queue_max (all, all));
}

static void bypass_foot (const Nui__Local__V1__JobSums *all, struct strbuf *out)
{
    foot (out, "Job Weighted Bypass:", 4, bypass_mean (all, all));
}

static void bypass_max_foot (const Nui__Local__V1__JobSums *all, struct strbuf *out)
{
    foot (out, "Overall Max Bypass:", 0, (double)all->bypass_max);
}

static void count_foot (const Nui__Local__V1__JobSums *all, struct strbuf *out)
{
    foot (out, "Total Jobs:", 0, (double)all->jobs);
}

static void asked_foot (const Nui__Local__V1__JobSums *all, struct strbuf *out)
{
    foot (out, "Total PH Requested:", 2, hours_of (all->ps_asked_us));
}

static void run_foot (const Nui__Local__V1__JobSums *all, struct strbuf *out)
{
    foot (out, "Total PH Run:", 2, hours_of (all->ps_run_us));
}

static void accuracy_foot (const Nui__Local__V1__JobSums *all, struct strbuf *out)
{
    foot (out, "Overall WallClock Accuracy:", 3, accuracy (all, all));
}

static void bf_jobs_foot (const Nui__Local__V1__JobSums *all, struct strbuf *out)
{
    foot (out, "Total BackFill Jobs:", 0, (double)all->backfilled);
}

static void bf_hours_foot (const Nui__Local__V1__JobSums *all, struct strbuf *out)
{
    foot (out, "Total BackFill PH Run:", 2, hours_of (all->ps_backfilled_us));
}

static void efficiency_foot (const Nui__Local__V1__JobSums *all, struct strbuf *out)
{
    foot (out, "Overall Job Efficiency:", 3, sums_efficiency (all));
}

static void qos_foot (const Nui__Local__V1__JobSums *all, struct strbuf *out)
{
    foot (out, "Overall QOS Delivered:", 3, qos (all, all));
}

static const struct grid_stat grid_stat[] = {
    {"AVGXFACTOR", "Average XFactor Grid", false, xf_mean, xf_foot},
    {"MAXXFACTOR", "Maximum XFactor", false, xf_max, xf_max_foot},
    {"AVGQTIME", "Average QueueTime (hours)", false, queue_mean, queue_foot},
    {"MAXQTIME", "Maximum QueueTime (hours)", false, queue_max, queue_max_foot},
    {"AVGBYPASS", "Average Bypass Count", false, bypass_mean, bypass_foot},
    {"MAXBYPASS", "Maximum Bypass Count", false, bypass_max, bypass_max_foot},
    {"JOBCOUNT", "Job Count (jobs)", true, job_count, count_foot},
    {"PHREQUEST", "ProcHour Request (percent of total)", false, ph_asked, asked_foot},
    {"PHRUN", "ProcHour Run (percent of total)", false, ph_run, run_foot},
    {"WCACCURACY", "WallClock Accuracy (percent)", false, accuracy, accuracy_foot},
    {"BFCOUNT", "BackFill Jobs (percent of jobs run)", false, bf_jobs, bf_jobs_foot},
    {"BFPHRUN", "BackFill ProcHour Run (percent of ProcHours run)", false, bf_hours, bf_hours_foot},
    {"JOBEFFICIENCY", "Job Efficiency (percent)", false, efficiency, efficiency_foot},
    {"QOSDELIVERED", "Quality of Service Delivered (percent)", false, qos, qos_foot},
    {"ESTSTARTTIME", "Estimated Start Time (hours)", false, queue_mean, start_foot},
};
enum { GRID_STATS = sizeof grid_stat / sizeof *grid_stat };

int grid_stat_find (const char *name)
{
    for (int i = 0; i < GRID_STATS; i++)
        if (strcasecmp (grid_stat[i].name, name) == 0)
            return i;
    return -1;
}

const char *grid_stat_names (void)
{
    return "AVGXFACTOR, MAXXFACTOR, AVGQTIME, MAXQTIME, AVGBYPASS, MAXBYPASS, JOBCOUNT, PHREQUEST, "
           "PHRUN, WCACCURACY, BFCOUNT, BFPHRUN, JOBEFFICIENCY or QOSDELIVERED";
}

bool grid_stat_is_start (int stat)
{
    return strcmp (grid_stat[stat].name, "ESTSTARTTIME") == 0;
}

/* --- the matrix --------------------------------------------------------------------------- */

void grid_clear (struct grid *g)
{
    for (uint32_t r = 0; r < GRID_MAX; r++)
        for (uint32_t c = 0; c < GRID_MAX; c++)
            nui__local__v1__job_sums__init (&g->cell[r][c]);
}

void grid_add (struct grid *g, uint32_t row, uint32_t column, const Nui__Local__V1__JobSums *sums)
{
    if (row < GRID_MAX && column < GRID_MAX)
        sums_add (&g->cell[row][column], sums);
}

struct grid_extent {
    uint32_t rows, columns;
};

static struct grid_extent extent_of (const struct grid *g)
{
    struct grid_extent e = {GRID_ROWS, GRID_COLUMNS};
    for (uint32_t r = 0; r < GRID_MAX; r++)
        for (uint32_t c = 0; c < GRID_MAX; c++)
            if (g->cell[r][c].jobs) {
                e.rows = r + 1 > e.rows ? r + 1 : e.rows;
                e.columns = c + 1 > e.columns ? c + 1 : e.columns;
            }
    return e;
}

static void row_sum (const struct grid *g, uint32_t row, Nui__Local__V1__JobSums *out)
{
    nui__local__v1__job_sums__init (out);
    for (uint32_t c = 0; c < GRID_MAX; c++)
        sums_add (out, &g->cell[row][c]);
}

static void column_sum (const struct grid *g, uint32_t column, Nui__Local__V1__JobSums *out)
{
    nui__local__v1__job_sums__init (out);
    for (uint32_t r = 0; r < GRID_MAX; r++)
        sums_add (out, &g->cell[r][column]);
}

static void whole_sum (const struct grid *g, Nui__Local__V1__JobSums *out)
{
    Nui__Local__V1__JobSums row;
    nui__local__v1__job_sums__init (out);
    for (uint32_t r = 0; r < GRID_MAX; r++) {
        row_sum (g, r, &row);
        sums_add (out, &row);
    }
}

static int64_t column_us (uint32_t column)
{
    return (120 * US_PER_S) << column;
}

static void cell_print (struct strbuf *out, const struct grid_stat *stat,
                        const Nui__Local__V1__JobSums *s, const Nui__Local__V1__JobSums *all)
{
    if (!s->jobs)
        strbuf_puts (out, "[------------]");
    else if (stat->count)
        strbuf_printf (out, "[%10llu  ]", (unsigned long long)s->jobs);
    else
        strbuf_printf (out, "[%7.2f %4llu]", stat->value (s, all), (unsigned long long)s->jobs);
}

/* Hours, however many: "68:16:00". */
static void column_title (struct strbuf *out, uint32_t column)
{
    long long s = column_us (column) / US_PER_S;
    strbuf_printf (out, "[%4lld:%02lld:%02lld  ]", s / 3600, s / 60 % 60, s % 60);
}

void grid_text (const struct grid *g, int at, bool noheader, struct strbuf *out)
{
    const struct grid_stat *stat = &grid_stat[at];
    struct grid_extent e = extent_of (g);
    Nui__Local__V1__JobSums all, part;
    char a[QUANTITY_TEXT_MAX];
    whole_sum (g, &all);
    if (!noheader) {
        strbuf_printf (out, "\n\nstatistics since %s\n\n%s\n\n[ PROCS ]",
                       moment_text (g->since_us, a), stat->title);
        for (uint32_t c = 0; c < e.columns; c++)
            column_title (out, c);
        strbuf_puts (out, "[     TOTAL  ]\n");
    }
    for (uint32_t r = 0; r < e.rows; r++) {
        strbuf_printf (out, "[%5llu  ]", 1ULL << r);
        for (uint32_t c = 0; c < e.columns; c++)
            cell_print (out, stat, &g->cell[r][c], &all);
        row_sum (g, r, &part);
        cell_print (out, stat, &part, &all);
        strbuf_putc (out, '\n');
    }
    strbuf_puts (out, "[ TOTAL ]");
    for (uint32_t c = 0; c < e.columns; c++) {
        column_sum (g, c, &part);
        cell_print (out, stat, &part, &all);
    }
    strbuf_putc (out, '\n');
    if (noheader)
        return;
    stat->footer (&all, out);
    foot (out, "Total Samples:", 0, (double)all.jobs);
    strbuf_puts (out, "\n\n\n");
}

/* --- JSON and CSV: one row for each cell with jobs, and the totals ------------------------- */

static const struct table_column grid_columns[] = {
    {"statistic", "Statistic", TABLE_TEXT, 0},  {"procs", "Procs", TABLE_INT, 0},
    {"walltime", "WCLimit", TABLE_DURATION, 0}, {"jobs", "Jobs", TABLE_INT, 0},
    {"value", "Value", TABLE_PPM, 2},
};

static void grid_cell (struct table *t, const struct grid_stat *stat, int64_t procs, int64_t limit,
                       const Nui__Local__V1__JobSums *s, const Nui__Local__V1__JobSums *all)
{
    if (!s->jobs && (procs || limit))
        return;
    table_text (t, stat->name);
    if (procs)
        table_int (t, procs);
    else
        table_null (t);
    if (limit)
        table_duration (t, limit);
    else
        table_null (t);
    table_int (t, (int64_t)s->jobs);
    if (s->jobs)
        table_ppm (t, (int64_t)llround (stat->value (s, all) * 1e6));
    else
        table_null (t);
    table_end_row (t);
}

static int grid_rows (struct cli_context *ctx, const struct grid *g, int at)
{
    const struct grid_stat *stat = &grid_stat[at];
    struct table *t = table_create (grid_columns, sizeof grid_columns / sizeof *grid_columns);
    Nui__Local__V1__JobSums all, part;
    whole_sum (g, &all);
    for (uint32_t r = 0; r < GRID_MAX; r++) {
        for (uint32_t c = 0; c < GRID_MAX; c++)
            grid_cell (t, stat, INT64_C (1) << r, column_us (c), &g->cell[r][c], &all);
        row_sum (g, r, &part);
        grid_cell (t, stat, INT64_C (1) << r, 0, &part, &all);
    }
    for (uint32_t c = 0; c < GRID_MAX; c++) {
        column_sum (g, c, &part);
        grid_cell (t, stat, 0, column_us (c), &part, &all);
    }
    grid_cell (t, stat, 0, 0, &all, &all);
    int rc = table_print (t, ctx);
    table_destroy (t);
    return rc;
}

int grid_print (struct cli_context *ctx, const struct grid *g, int stat)
{
    struct strbuf out = STRBUF_INIT;
    int rc;
    if (cli_format (ctx) != CLI_TABLE)
        return grid_rows (ctx, g, stat);
    grid_text (g, stat, cli_noheader (ctx), &out);
    rc = cli_output (&out);
    strbuf_free (&out);
    return rc;
}

/* --- the command -------------------------------------------------------------------------- */

/* When a job of each size and length would start that came now: as showstart says it. */
static int starts_fetch (struct cli_context *ctx, const char *site, struct grid *g, struct err *err)
{
    enum { SHORTEST_S = 120 };
    for (uint32_t row = 0; row < GRID_ROWS; row++)
        for (uint32_t column = 0; column < GRID_COLUMNS; column++) {
            Nui__Local__V1__StartTimeRequest request = NUI__LOCAL__V1__START_TIME_REQUEST__INIT;
            Nui__Local__V1__StartTimeReply *reply = NULL;
            Nui__Local__V1__JobSums one = NUI__LOCAL__V1__JOB_SUMS__INIT;
            request.procs = UINT32_C (1) << row;
            request.walltime_us = ((int64_t)SHORTEST_S << column) * US_PER_S;
            if (site_admin (ctx, site, "StartTime", &request, true, &reply, err) < 0)
                return err->code;
            g->since_us = reply->now_us;
            one.jobs = 1;
            one.queue_us = reply->start_us - reply->now_us;
            if (reply->start_us) /* 0: there is no room ever, nor for more of them */
                grid_add (g, row, column, &one);
            bool never = reply->start_us == 0;
            nui__local__v1__start_time_reply__free_unpacked (reply, NULL);
            if (never)
                return 0;
        }
    return 0;
}

int showgrid_print (struct cli_context *ctx, const char *command, const char *site,
                    const char *name)
{
    static struct grid grid; /* large for a stack */
    Nui__Local__V1__GridRequest request = NUI__LOCAL__V1__GRID_REQUEST__INIT;
    Nui__Local__V1__GridReply *reply = NULL;
    struct err err = {0};
    int stat = grid_stat_find (name);
    if (stat < 0)
        return cli_usage (command, "'%s' is no statistic: wanted %s, or ESTSTARTTIME", name,
                          grid_stat_names ());
    grid_clear (&grid);
    if (grid_stat_is_start (stat))
        return starts_fetch (ctx, site, &grid, &err) < 0 ? cli_fail (command, &err)
                                                         : grid_print (ctx, &grid, stat);
    if (site_stats (ctx, site, "Grid", &request, true, &reply, &err) < 0)
        return cli_fail (command, &err);
    grid.since_us = reply->since_us;
    for (size_t i = 0; i < reply->n_cells; i++)
        if (reply->cells[i]->sums)
            grid_add (&grid, reply->cells[i]->row, reply->cells[i]->column, reply->cells[i]->sums);
    nui__local__v1__grid_reply__free_unpacked (reply, NULL);
    return grid_print (ctx, &grid, stat);
}

struct showgrid_args {
    const char *site;
};

static const struct cli_option showgrid_options[] = {
    SITE_OPTION (struct showgrid_args),
    {0},
};

static int showgrid_run (struct cli_context *ctx, int argc, char **argv)
{
    struct showgrid_args args = {0};
    struct cli_operands ops;
    int exit_code;
    if (!cli_options (ctx, showgrid_options, 0, &args, argc, argv, &ops, &exit_code))
        return exit_code;
    if (ops.count != 1)
        return cli_usage ("showgrid", "name one statistic: %s", grid_stat_names ());
    return showgrid_print (ctx, "showgrid", args.site, ops.item[0]);
}

const struct cli_command showgrid_command = {
    .name = "showgrid",
    .group = CLI_CLUSTER,
    .summary = "a statistic of ended jobs, by their size and length",
    .run = showgrid_run,
    .help = "nui showgrid [--site NAME] STATISTIC",
    .text =
        "A matrix: processors by wallclock limit; in each cell the value and how many jobs it is\n"
        "over. STATISTIC is one of\n"
        "\n"
        "  AVGXFACTOR MAXXFACTOR     expansion factor\n"
        "  AVGQTIME MAXQTIME         queue time, hours\n"
        "  AVGBYPASS MAXBYPASS       how often others were backfilled past them\n"
        "  JOBCOUNT                  how many\n"
        "  PHREQUEST PHRUN           processor-hours asked for, run: percent of all\n"
        "  WCACCURACY                run time in percent of the limit\n"
        "  BFCOUNT BFPHRUN           backfilled: percent of jobs, of processor-hours run\n"
        "  JOBEFFICIENCY             processor time used in percent of dedicated\n"
        "  QOSDELIVERED              percent whose QoS's targets were met\n"
        "  ESTSTARTTIME              hours until a job that came now would start\n"
        "\n"
        "For administrators (ADMIN3).",
    .options = showgrid_options,
    .example = "nui showgrid AVGQTIME",
};
