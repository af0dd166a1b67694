/* profiler: a report over the job history; showaudit: who changed what. */
#include <stdlib.h>
#include <string.h>

#include "local/cli/stats_cli.h"

/* --- profiler ----------------------------------------------------------------------------- */

struct profile_row {
    char *name;
    int64_t at_us;
    Nui__Local__V1__JobSums sums;
};

struct profile {
    struct arena *arena;
    struct profile_row *row;
    uint32_t count, cap;
    int64_t first_us, last_us;
    uint64_t looked_at;
    bool complete;
};

static void on_chunk (void *arg, const ProtobufCMessage *message)
{
    struct profile *p = arg;
    const Nui__Local__V1__ProfileChunk *c = (const Nui__Local__V1__ProfileChunk *)message;
    p->first_us = c->first_end_us;
    p->last_us = c->last_end_us;
    p->looked_at = c->looked_at;
    p->complete = c->last;
    if (p->count + c->n_rows > p->cap) {
        uint32_t cap = (p->count + (uint32_t)c->n_rows) * 2;
        struct profile_row *more = arena_array (p->arena, cap, sizeof *more);
        if (p->count)
            memcpy (more, p->row, p->count * sizeof *more);
        p->row = more;
        p->cap = cap;
    }
    for (size_t i = 0; i < c->n_rows; i++) {
        struct profile_row *row = &p->row[p->count++];
        row->name = arena_strdup (p->arena, c->rows[i]->name);
        row->at_us = c->rows[i]->at_us;
        nui__local__v1__job_sums__init (&row->sums);
        if (c->rows[i]->sums)
            sums_add (&row->sums, c->rows[i]->sums);
    }
}

/* By time where there is one, else the most dedicated time first. */
static int by_weight (const void *a, const void *b)
{
    const struct profile_row *x = a, *y = b;
    if (x->at_us != y->at_us)
        return x->at_us < y->at_us ? -1 : 1;
    if (x->sums.ps_run_us != y->sums.ps_run_us)
        return x->sums.ps_run_us > y->sums.ps_run_us ? -1 : 1;
    return strcmp (x->name, y->name);
}

static void total_of (const struct profile *p, Nui__Local__V1__JobSums *out)
{
    nui__local__v1__job_sums__init (out);
    for (uint32_t i = 0; i < p->count; i++)
        sums_add (out, &p->row[i].sums);
}

static const char *row_name (const struct profile_row *row, const char *by, char *buf)
{
    if (row->at_us) {
        moment_text (row->at_us, buf);
        buf[strcmp (by, "day") == 0 ? 10 : 16] = 0; /* "Sun Sep  9", "Sun Sep  9 03:00" */
        return buf;
    }
    return *row->name ? row->name : "ALL";
}

static void profile_text (const struct profile *p, const char *by, bool noheader,
                          struct strbuf *out)
{
    Nui__Local__V1__JobSums all;
    char a[QUANTITY_TEXT_MAX], b[QUANTITY_TEXT_MAX];
    total_of (p, &all);
    if (!noheader)
        strbuf_printf (out,
                       "profile of %llu jobs that ended from %s to %s\n\n"
                       "%-16s    Jobs      %%      PHReq      %%      PHDed      %%  AvgXF  MaxXF  "
                       "AvgQH  MaxQH  Effic  WCAcc\n",
                       (unsigned long long)all.jobs, moment_text (p->first_us, a),
                       moment_text (p->last_us, b), *by ? by : "all");
    for (uint32_t i = 0; i < p->count; i++) {
        const Nui__Local__V1__JobSums *s = &p->row[i].sums;
        strbuf_printf (out,
                       "%-16s %7llu %6.2f %10.2f %6.2f %10.2f %6.2f %6.2f %6.2f %6.2f %6.2f "
                       "%6.2f %6.2f\n",
                       row_name (&p->row[i], by, a), (unsigned long long)s->jobs,
                       share_of ((double)s->jobs, (double)all.jobs), hours_of (s->ps_asked_us),
                       share_of ((double)s->ps_asked_us, (double)all.ps_asked_us),
                       hours_of (s->ps_run_us),
                       share_of ((double)s->ps_run_us, (double)all.ps_run_us), sums_xfactor (s),
                       (double)s->xfactor_max_ppm / 1e6, sums_queue_hours (s),
                       hours_of (s->queue_max_us), sums_efficiency (s), sums_accuracy (s));
    }
    if (!noheader)
        strbuf_putc (out, '\n');
}

static int profile_rows (struct cli_context *ctx, const struct profile *p)
{
    static struct table_column columns[SUMS_COLUMNS + 2] = {
        {"name", "Name", TABLE_TEXT, 0},
        {"time", "Time", TABLE_TIME, 0},
    };
    Nui__Local__V1__JobSums all;
    memcpy (columns + 2, sums_columns, sizeof sums_columns);
    struct table *t = table_create (columns, SUMS_COLUMNS + 2);
    total_of (p, &all);
    for (uint32_t i = 0; i < p->count; i++) {
        if (p->row[i].at_us) {
            table_null (t);
            table_time (t, p->row[i].at_us);
        } else {
            table_text (t, *p->row[i].name ? p->row[i].name : "ALL");
            table_null (t);
        }
        sums_cells (t, &p->row[i].sums, &all);
        table_end_row (t);
    }
    int rc = table_print (t, ctx);
    table_destroy (t);
    return rc;
}

static int profile_grid (struct cli_context *ctx, const struct profile *p, int stat)
{
    static struct grid grid;
    unsigned row, column;
    grid_clear (&grid);
    grid.since_us = p->first_us;
    for (uint32_t i = 0; i < p->count; i++)
        if (sscanf (p->row[i].name, "%u %u", &row, &column) == 2)
            grid_add (&grid, row, column, &p->row[i].sums);
    return grid_print (ctx, &grid, stat);
}

struct profiler_args {
    const char *user, *group, *account, *class, *qos, *by, *grid, *site;
    const char *begin, *end;
    time_us from, until;
};

#define AT(field) offsetof (struct profiler_args, field)
static const struct cli_option profiler_options[] = {
    {"begin", 'b', CLI_OPT_STRING, "TIME", "ended at or after TIME; +N and -N are from now",
     AT (begin)},
    {"end", 'e', CLI_OPT_STRING, "TIME", "ended before TIME", AT (end)},
    {"user", 'u', CLI_OPT_STRING, "USER", "only jobs of this user,", AT (user)},
    {"group", 'g', CLI_OPT_STRING, "GROUP", "group,", AT (group)},
    {"account", 'A', CLI_OPT_STRING, "ACCOUNT", "account,", AT (account)},
    {"class", 'c', CLI_OPT_STRING, "CLASS", "class,", AT (class)},
    {"qos", 'Q', CLI_OPT_STRING, "QOS", "QoS", AT (qos)},
    {"by", 'p', CLI_OPT_STRING, "BY",
     "a line for each user, group, account, class, qos, day or hour", AT (by)},
    {"matrix", 'm', CLI_OPT_STRING, "STATISTIC", "by size and length, as showgrid", AT (grid)},
    SITE_OPTION (struct profiler_args),
    {0},
};
#undef AT

static int profile_fetch (struct cli_context *ctx, const struct profiler_args *args,
                          struct profile *p, struct err *err)
{
    Nui__Local__V1__ProfileRequest request = NUI__LOCAL__V1__PROFILE_REQUEST__INIT;
    const char *given[] = {args->user,  args->group, args->account,
                           args->class, args->qos,   args->grid ? "grid" : args->by};
    char **field[] = {&request.user,   &request.group, &request.account,
                      &request.class_, &request.qos,   &request.by};
    for (size_t i = 0; i < sizeof given / sizeof *given; i++)
        if (given[i])
            *field[i] = (char *)(uintptr_t)given[i];
    request.from_us = args->from;
    request.until_us = args->until;
    int rc = site_stats_stream (ctx, args->site, "Profile", &request, on_chunk, p, err);
    if (rc == 0 && !p->complete)
        rc = err_set (err, ERR_INTERNAL, "the site could not read its history: see its log");
    return rc;
}

static int profile_report (struct cli_context *ctx, const char *command,
                           const struct profiler_args *args, int stat)
{
    struct profile p = {.arena = arena_create (0)};
    struct strbuf out = STRBUF_INIT;
    struct err err = {0};
    int exit_code;
    if (profile_fetch (ctx, args, &p, &err) < 0) {
        exit_code = cli_fail (command, &err);
    } else if (args->grid) {
        exit_code = profile_grid (ctx, &p, stat);
    } else {
        if (p.count > 0)
            qsort (p.row, p.count, sizeof *p.row, by_weight);
        if (cli_format (ctx) == CLI_TABLE) {
            profile_text (&p, args->by ? args->by : "", cli_noheader (ctx), &out);
            exit_code = cli_output (&out);
        } else {
            exit_code = profile_rows (ctx, &p);
        }
    }
    strbuf_free (&out);
    arena_destroy (p.arena);
    return exit_code;
}

int profile_days (struct cli_context *ctx, const char *site)
{
    struct profiler_args args = {.by = "day", .site = site};
    return profile_report (ctx, "showstats", &args, 0);
}

static int profiler_run (struct cli_context *ctx, int argc, char **argv)
{
    struct profiler_args args = {0};
    struct cli_operands ops;
    struct err err = {0};
    int exit_code, stat = 0;
    if (!cli_options (ctx, profiler_options, 0, &args, argc, argv, &ops, &exit_code))
        return exit_code;
    if (ops.count > 0)
        return cli_usage ("profiler", "'%s' is too much: there are options only", ops.item[0]);
    if (args.by && args.grid)
        return cli_usage ("profiler", "one of -p and -m at a time");
    if ((args.begin && site_time (ctx, args.site, args.begin, &args.from, &err) != 0) ||
        (args.end && site_time (ctx, args.site, args.end, &args.until, &err) != 0))
        return cli_usage ("profiler", "%s", err.text);
    if (args.grid && ((stat = grid_stat_find (args.grid)) < 0 || grid_stat_is_start (stat)))
        return cli_usage ("profiler", "'%s' is no statistic: wanted %s", args.grid,
                          grid_stat_names ());
    return profile_report (ctx, "profiler", &args, stat);
}

const struct cli_command profiler_command = {
    .name = "profiler",
    .group = CLI_CLUSTER,
    .summary = "a report over a time frame of the job history",
    .run = profiler_run,
    .help =
        "nui profiler [-b TIME] [-e TIME] [-u USER] [-g GROUP] [-A ACCOUNT] [-c CLASS] [-Q QOS]\n"
        "             [-p BY | -m STATISTIC] [--site NAME]",
    .text = "Over jobs that ended within the time frame, whatever resetstats did.\n"
            "\n"
            "For administrators (ADMIN3); -u with one's own name is for everybody.",
    .options = profiler_options,
    .example = "nui profiler -b -7:00:00:00 -p day",
};

/* --- showaudit ---------------------------------------------------------------------------- */

struct showaudit_args {
    const char *user, *text, *site;
    time_us from, until;
    uint64_t limit;
};

#define AT(field) offsetof (struct showaudit_args, field)
static const struct cli_option showaudit_options[] = {
    {"user", 'u', CLI_OPT_STRING, "WHO", "by this login name or identity only", AT (user)},
    {"match", 'm', CLI_OPT_STRING, "TEXT", "only what has TEXT in it: a job's id, a command",
     AT (text)},
    {"begin", 'b', CLI_OPT_PAST, "TIME", "at or after TIME; +N and -N are from now", AT (from)},
    {"end", 'e', CLI_OPT_PAST, "TIME", "before TIME", AT (until)},
    {"limit", 'n', CLI_OPT_COUNT, "COUNT", "so many at most (100)", AT (limit), 1, 1000000},
    SITE_OPTION (struct showaudit_args),
    {0},
};
#undef AT

static const struct table_column audit_columns[] = {
    {"sequence", "No", TABLE_INT, 0},
    {"time", "When", TABLE_TIME, 0},
    {"who", "Who", TABLE_TEXT, 0},
    {"what", "What", TABLE_TEXT, 0},
};

static void on_audit (void *arg, const ProtobufCMessage *message)
{
    const Nui__Local__V1__AuditChunk *c = (const Nui__Local__V1__AuditChunk *)message;
    struct table *t = arg;
    for (size_t i = 0; i < c->n_rows; i++) {
        table_int (t, (int64_t)c->rows[i]->sequence);
        table_time (t, c->rows[i]->at_us);
        table_text (t, c->rows[i]->who);
        table_text (t, c->rows[i]->what);
        table_end_row (t);
    }
}

static int showaudit_run (struct cli_context *ctx, int argc, char **argv)
{
    struct showaudit_args args = {0};
    struct cli_operands ops;
    struct err err = {0};
    Nui__Local__V1__AuditRequest request = NUI__LOCAL__V1__AUDIT_REQUEST__INIT;
    int exit_code;
    if (!cli_options (ctx, showaudit_options, 0, &args, argc, argv, &ops, &exit_code))
        return exit_code;
    if (ops.count > 0)
        return cli_usage ("showaudit", "'%s' is too much: there are options only", ops.item[0]);
    if (args.user)
        request.who = (char *)(uintptr_t)args.user;
    if (args.text)
        request.text = (char *)(uintptr_t)args.text;
    request.from_us = args.from;
    request.until_us = args.until;
    request.limit = (uint32_t)args.limit;
    struct table *t = table_create (audit_columns, 4);
    if (site_stats_stream (ctx, args.site, "Audit", &request, on_audit, t, &err) < 0)
        exit_code = cli_fail ("showaudit", &err);
    else
        exit_code = table_print (t, ctx);
    table_destroy (t);
    return exit_code;
}

const struct cli_command showaudit_command = {
    .name = "showaudit",
    .group = CLI_CLUSTER,
    .summary = "who changed what, and when",
    .run = showaudit_run,
    .help = "nui showaudit [-u WHO] [-m TEXT] [-b TIME] [-e TIME] [-n COUNT] [--site NAME]",
    .text = "Every change that a person made, newest first.\n"
            "\n"
            "For administrators (ADMIN3); -u with one's own name is for everybody.",
    .options = showaudit_options,
    .example = "nui showaudit -m alpha.17",
};
