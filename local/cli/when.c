/* showbf, showstart: when something could start. */
#include <stdlib.h>
#include <string.h>

#include "local/cli/local_cli.h"

/* --- showbf ------------------------------------------------------------------------------- */

void showbf_text (const Nui__Local__V1__WindowsReply *r, bool noheader, struct strbuf *out)
{
    char a[QUANTITY_TEXT_MAX];
    if (!noheader)
        strbuf_printf (out, "backfill window (user: '%s' group: '%s' partition: %s) %s\n\n",
                       *r->user ? r->user : "[ALL]", *r->group ? r->group : "[ALL]",
                       *r->partition ? r->partition : "ALL", moment_text (r->now_us, a));
    if (r->n_windows == 0)
        strbuf_puts (out, "no procs available\n");
    if (r->limit)
        strbuf_printf (out, "(%s)\n", r->limit->text);
    for (size_t i = 0; i < r->n_windows; i++) {
        const Nui__Local__V1__Window *w = r->windows[i];
        const char *s = w->procs == 1 ? "" : "s";
        if (w->length_us)
            strbuf_printf (out, "%3llu proc%s available for %13s\n", (unsigned long long)w->procs,
                           s, span_text (w->length_us, a));
        else
            strbuf_printf (out, "%3llu proc%s available with no timelimit\n",
                           (unsigned long long)w->procs, s);
    }
    if (!noheader)
        strbuf_puts (out, "\n\n\n");
}

static bool stands_on (const Nui__Local__V1__Reservation *r, const char *node)
{
    for (size_t i = 0; i < r->n_nodes; i++)
        if (strcmp (r->nodes[i]->node, node) == 0)
            return true;
    return false;
}

/* The first reservation that begins on this node after now. */
static const Nui__Local__V1__Reservation *first_on (const struct reservations *rsv,
                                                    const char *node, int64_t now_us)
{
    const Nui__Local__V1__Reservation *first = NULL;
    for (uint32_t i = 0; i < rsv->count; i++) {
        const Nui__Local__V1__Reservation *r = rsv->item[i];
        if (r->start_us > now_us && (!first || r->start_us < first->start_us) &&
            stands_on (r, node))
            first = r;
    }
    return first;
}

/* By partition and features; what else was asked for is of windows over several nodes. */
static bool node_wanted (const Nui__Local__V1__NodeInfo *n,
                         const Nui__Local__V1__WindowsRequest *wanted)
{
    const char *partition = *n->partition ? n->partition : "DEFAULT";
    if (*wanted->partition && strcmp (wanted->partition, "ALL") != 0 &&
        strcmp (wanted->partition, partition) != 0)
        return false;
    for (size_t w = 0; w < wanted->n_features; w++) {
        size_t f = 0;
        while (f < n->n_features && strcmp (n->features[f], wanted->features[w]) != 0)
            f++;
        if (f == n->n_features)
            return false;
    }
    return true;
}

static void showbf_nodes_text (const struct nodes *nodes, const struct reservations *rsv,
                               struct strbuf *out)
{
    char a[QUANTITY_TEXT_MAX];
    for (uint32_t i = 0; i < nodes->count; i++) {
        const Nui__Local__V1__NodeInfo *n = nodes->item[i];
        const Nui__Local__V1__Reservation *r = first_on (rsv, n->name, nodes->now_us);
        if (strcmp (n->state, "Idle") != 0 && strcmp (n->state, "Running") != 0)
            strbuf_printf (out, "node %s is unavailable (state '%s')\n", n->name, n->state);
        else if (r)
            strbuf_printf (out, "node %s is blocked by reservation %s in %s\n", n->name, r->name,
                           span_text (r->start_us - nodes->now_us, a));
    }
    strbuf_putc (out, '\n');
}

/* -S: a line for each node that has something free for as long as is wanted. */
static void showbf_table_text (const struct nodes *nodes, const struct reservations *rsv,
                               const Nui__Local__V1__WindowsRequest *wanted, bool noheader,
                               struct strbuf *out)
{
    char a[QUANTITY_TEXT_MAX];
    if (!noheader)
        strbuf_puts (out,
                     "HostName            Procs   Memory     Disk     Swap   Time Available\n"
                     "----------          -----   ------     ----     ----   --------------\n");
    for (uint32_t i = 0; i < nodes->count; i++) {
        const Nui__Local__V1__NodeInfo *n = nodes->item[i];
        const Nui__Local__V1__Reservation *r = first_on (rsv, n->name, nodes->now_us);
        int64_t procs = (int64_t)n->procs - n->dedicated_procs;
        int64_t length = r ? r->start_us - nodes->now_us : INT64_MAX;
        bool there = strcmp (n->state, "Idle") == 0 || strcmp (n->state, "Running") == 0;
        if (!there || procs <= 0 || length < wanted->duration_us || !node_wanted (n, wanted))
            continue;
        strbuf_printf (out, "%-18s %6lld %8lld %8lld %8lld   %14s\n", n->name, (long long)procs,
                       (long long)(n->memory_mb - n->dedicated_memory_mb),
                       (long long)(n->disk_mb - n->dedicated_disk_mb),
                       (long long)(n->swap_mb - n->dedicated_swap_mb),
                       r ? span_text (length, a) : "INFINITY");
    }
}

static void length_cell (struct table *t, const ProtobufCMessage *message)
{
    int64_t length_us = ((const Nui__Local__V1__Window *)message)->length_us;
    table_duration (t, length_us ? length_us : TIME_US_MAX);
}

static const struct table_column window_columns[] = {
    {"procs", "Procs", TABLE_INT},
    {"nodes", "Nodes", TABLE_INT},
    {"length", "Length", TABLE_DURATION, .cell = length_cell},
};

struct showbf_args {
    const char *user, *group, *account, *class, *qos, *partition, *features, *site;
    const char *memory;
    duration_us duration;
    uint64_t nodes, procs;
    bool verbose, everybody, table, by_memory;
};

#define AT(field) offsetof (struct showbf_args, field)
static const struct cli_option showbf_options[] = {
    {"user", 'u', CLI_OPT_STRING, "USER", "as this user would see it,", AT (user)},
    {"group", 'g', CLI_OPT_STRING, "GROUP", "this group,", AT (group)},
    {"account", 'a', CLI_OPT_STRING, "ACCOUNT", "account,", AT (account)},
    {"class", 'c', CLI_OPT_STRING, "CLASS", "class,", AT (class)},
    {"qos", 'q', CLI_OPT_STRING, "QOS", "QoS", AT (qos)},
    {"duration", 'd', CLI_OPT_DURATION, "TIME", "only windows at least so long", AT (duration)},
    {"everybody", 'A', CLI_OPT_FLAG, NULL, "as if nobody had a limit", AT (everybody)},
    {"partition", 'p', CLI_OPT_STRING, "NAME", "only nodes of this partition (ALL: all),",
     AT (partition)},
    {"features", 'f', CLI_OPT_STRING, "A,B", "with all of these features,", AT (features)},
    {"memory", 'm', CLI_OPT_STRING, "[OP]SIZE",
     "with so much memory: >=512 (or 512), >512, ==512, <=512, <512", AT (memory)},
    {"procs", 'r', CLI_OPT_COUNT, "N", "only windows of at least so many processors", AT (procs), 1,
     UINT32_MAX},
    {"nodes", 'n', CLI_OPT_COUNT, "N", "only windows of at least so many nodes", AT (nodes), 1,
     UINT32_MAX},
    {"table", 'S', CLI_OPT_FLAG, NULL,
     "node by node: what is free there, and until when: for administrators (ADMIN3)", AT (table)},
    {"by-memory", 'M', CLI_OPT_FLAG, NULL, "the same, those with most free memory first",
     AT (by_memory)},
    {"verbose", 'v', CLI_OPT_FLAG, NULL,
     "also why each node gives no more: for administrators (ADMIN3)", AT (verbose)},
    SITE_OPTION (struct showbf_args),
    {0},
};
#undef AT

enum { SHOWBF_FEATURES_MAX = 32 };

/* "fast,big" or "fast:big" into list; false: too many. Cuts the text up. */
static bool features_split (char *text, char *list[SHOWBF_FEATURES_MAX], size_t *count)
{
    char *save = NULL;
    for (char *w = strtok_r (text, ",:", &save); w; w = strtok_r (NULL, ",:", &save)) {
        if (*count == SHOWBF_FEATURES_MAX)
            return false;
        list[(*count)++] = w;
    }
    return true;
}

static int showbf_print (struct cli_context *ctx, const Nui__Local__V1__WindowsReply *r)
{
    struct strbuf out = STRBUF_INIT;
    int rc;
    if (cli_format (ctx) == CLI_TABLE) {
        showbf_text (r, cli_noheader (ctx), &out);
        rc = cli_output (&out);
    } else {
        rc = TABLE_SHOW (ctx, window_columns, r->windows, r->n_windows);
    }
    strbuf_free (&out);
    return rc;
}

static int by_free_memory (const void *a, const void *b)
{
    const Nui__Local__V1__NodeInfo *const *x = a, *const *y = b;
    int64_t xm = (*x)->memory_mb - (*x)->dedicated_memory_mb;
    int64_t ym = (*y)->memory_mb - (*y)->dedicated_memory_mb;
    return xm != ym ? (xm > ym ? -1 : 1) : strcmp ((*x)->name, (*y)->name);
}

/* -S, -M, -v: of the nodes and what is promised on them. */
static int showbf_nodes (struct cli_context *ctx, const struct showbf_args *args,
                         const Nui__Local__V1__WindowsRequest *wanted, struct strbuf *out,
                         struct err *err)
{
    struct nodes nodes = {.arena = arena_create (0)};
    struct reservations rsv = {.arena = arena_create (0)};
    int rc = nodes_fetch (ctx, args->site, NULL, &nodes, err);
    if (rc == 0)
        rc = reservations_fetch (ctx, args->site, NULL, NULL, true, &rsv, err);
    if (rc == 0 && args->by_memory)
        qsort (nodes.item, nodes.count, sizeof *nodes.item, by_free_memory);
    if (rc == 0 && (args->table || args->by_memory))
        showbf_table_text (&nodes, &rsv, wanted, cli_noheader (ctx), out);
    if (rc == 0 && args->verbose)
        showbf_nodes_text (&nodes, &rsv, out);
    nodes_free (&nodes);
    reservations_free (&rsv);
    return rc;
}

/* ">=512M" into its sign and MB. */
static int memory_bound_parse (const char *text, Nui__Local__V1__WindowsRequest *out,
                               struct err *err)
{
    static const char *const sign[] = {">=", "<=", "==", ">", "<"};
    for (int i = 0; i < 5 && !*out->memory_is; i++)
        if (strncmp (text, sign[i], strlen (sign[i])) == 0)
            out->memory_is = (char *)sign[i];
    return memory_parse (text + strlen (out->memory_is), &out->memory_mb, err);
}

static int request_of (const struct showbf_args *args, char *features[SHOWBF_FEATURES_MAX],
                       Nui__Local__V1__WindowsRequest *out, struct err *err)
{
    const char *given[] = {args->user,  args->group, args->account,
                           args->class, args->qos,   args->partition};
    char **field[] = {&out->user,   &out->group, &out->account,
                      &out->class_, &out->qos,   &out->partition};
    for (size_t i = 0; i < sizeof given / sizeof *given; i++)
        if (given[i])
            *field[i] = (char *)given[i];
    if (args->features && !features_split ((char *)args->features, features, &out->n_features))
        return err_set (err, ERR_INVALID, "-f: at most %d features", SHOWBF_FEATURES_MAX);
    out->features = features;
    out->duration_us = args->duration;
    out->nodes = (uint32_t)args->nodes;
    out->procs = (uint32_t)args->procs;
    out->everybody = args->everybody;
    return args->memory ? memory_bound_parse (args->memory, out, err) : 0;
}

static int showbf_run (struct cli_context *ctx, int argc, char **argv)
{
    struct showbf_args args = {0};
    struct cli_operands operands;
    struct err err = {0};
    Nui__Local__V1__WindowsRequest request = NUI__LOCAL__V1__WINDOWS_REQUEST__INIT;
    Nui__Local__V1__WindowsReply *reply = NULL;
    struct strbuf notes = STRBUF_INIT;
    char *features[SHOWBF_FEATURES_MAX];
    int exit_code;
    if (!cli_options (ctx, showbf_options, 0, &args, argc, argv, &operands, &exit_code))
        return exit_code;
    bool table = args.table || args.by_memory;
    if (operands.count > 0)
        return cli_usage ("showbf", "'%s' is too much: there are options only", operands.item[0]);
    if ((args.verbose || table) && cli_format (ctx) != CLI_TABLE)
        return cli_usage ("showbf",
                          "-v, -S and -M are tables only: diagnose -n and showres -n have --json");
    if (args.everybody && (args.user || args.group || args.account || args.class || args.qos))
        return cli_usage ("showbf", "-A is for everybody: without -u, -g, -a, -c and -q");
    if (request_of (&args, features, &request, &err) != 0)
        return cli_usage ("showbf", "%s", err.text);
    if (site_admin (ctx, args.site, "Windows", &request, true, &reply, &err) < 0)
        return cli_fail ("showbf", &err);
    if ((args.verbose || table) && showbf_nodes (ctx, &args, &request, &notes, &err) < 0) {
        exit_code = cli_fail ("showbf", &err); /* before anything is printed */
    } else {
        exit_code = table ? CLI_OK : showbf_print (ctx, reply);
        if (exit_code == CLI_OK && notes.len > 0)
            exit_code = cli_output (&notes);
    }
    strbuf_free (&notes);
    nui__local__v1__windows_reply__free_unpacked (reply, NULL);
    return exit_code;
}

const struct cli_command showbf_command = {
    .name = "showbf",
    .group = CLI_CLUSTER,
    .summary = "what is free now, and for how long",
    .run = showbf_run,
    .help =
        "nui showbf [-A | -u USER -g GROUP -a ACCOUNT -c CLASS -q QOS] [-d DURATION] [-S | -M] [-v]\n"
        "           [-p PARTITION] [-f FEATURES] [-m [OP]SIZE] [-n NODES] [-r PROCS] [--site NAME]",
    .text =
        "Backfill windows: processors that can be used at once without moving anybody's reservation.\n"
        "Longer windows are within the shorter ones. Nothing is offered to someone whose limit is\n"
        "reached (yours, unless others are named).",
    .options = showbf_options,
    .example = "nui showbf -d 2:00:00",
};

/* --- showstart ---------------------------------------------------------------------------- */

void showstart_text (const Nui__Local__V1__StartTimeReply *r, const char *name, struct strbuf *out)
{
    char a[QUANTITY_TEXT_MAX], b[QUANTITY_TEXT_MAX];
    int64_t end = r->start_us + r->walltime_us;
    strbuf_printf (out, "job %s requires %u procs for %s\n", name, r->procs,
                   span_text (r->walltime_us, a));
    strbuf_printf (out, "Earliest start in     %12s on %s\n",
                   span_text (r->start_us - r->now_us, a), moment_text (r->start_us, b));
    strbuf_printf (out, "Earliest completion in%12s on %s\n", span_text (end - r->now_us, a),
                   moment_text (end, b));
    strbuf_puts (out, "Best Partition: DEFAULT\n\n");
}

/* Which methods -e names; Maui's and Moab's words are understood. */
static const char *const method_words[][2] = {
    {"limits", "rsv"}, {"priority", "prio"}, {"history", "hist"}, {"simulation", "sim"}};
enum { METHODS = sizeof method_words / sizeof *method_words };

/* false: it is none. list has room for METHODS. */
static bool methods_parse (const char *word, char **list, size_t *count)
{
    *count = 0;
    for (int m = 0; m < METHODS; m++) {
        if (strcmp (word, "all") == 0 || strcmp (word, method_words[m][0]) == 0 ||
            strcmp (word, method_words[m][1]) == 0)
            list[(*count)++] = (char *)method_words[m][0];
    }
    return *count > 0;
}

static const struct table_column forecast_columns[] = {
    {"method", "Method", TABLE_TEXT, 0},        {"median", "Median", TABLE_TIME, 0},
    {"low50", "From50%", TABLE_TIME, 0},        {"high50", "To50%", TABLE_TIME, 0},
    {"low95", "From95%", TABLE_TIME, 0},        {"high95", "To95%", TABLE_TIME, 0},
    {"certain", "Certain", TABLE_BOOL, 0},      {"confidence", "Confidence", TABLE_TEXT, 0},
    {"without", "None because", TABLE_TEXT, 0},
};

static int forecasts_print (struct cli_context *ctx, const Nui__Local__V1__StartTimeReply *r)
{
    return TABLE_SHOW (ctx, forecast_columns, r->forecasts, r->n_forecasts);
}

static const struct table_column start_columns[] = {
    {"job_id", "JobName", TABLE_TEXT, 0},
    {"procs", "Procs", TABLE_INT, 0},
    {"walltime", "WCLimit", TABLE_DURATION, 0},
    {"start_time", "Start", TABLE_TIME, 0},
    {"completion_time", "Completion", TABLE_TIME, 0},
    {"reason", "Reason", TABLE_TEXT, 0},
};

static int showstart_print (struct cli_context *ctx, const Nui__Local__V1__StartTimeReply *r,
                            const char *name)
{
    struct strbuf out = STRBUF_INIT;
    int rc;
    if (cli_format (ctx) == CLI_TABLE) {
        showstart_text (r, name, &out);
        rc = cli_output (&out);
        strbuf_free (&out);
        return rc;
    }
    struct table *t = table_create (start_columns, 6);
    table_text (t, name);
    table_int (t, r->procs);
    table_duration (t, r->walltime_us);
    table_time (t, r->start_us);
    table_time (t, r->start_us + r->walltime_us);
    cell_text (t, r->reason);
    table_end_row (t);
    rc = table_print_record (t, ctx);
    table_destroy (t);
    return rc;
}

struct start_args {
    const char *site;
    const char *estimate;
};

static const struct cli_option start_options[] = {
    SITE_OPTION (struct start_args),
    {"estimate", 'e', CLI_OPT_STRING, "METHOD",
     "also estimates with their intervals: limits, priority, history, simulation, or all; rsv, prio, hist "
     "and sim are the same",
     offsetof (struct start_args, estimate)},
    {0},
};

/* "8@1:00:00" */
static int shape_parse (const char *text, const char *at, Nui__Local__V1__StartTimeRequest *out,
                        struct err *err)
{
    char procs[24];
    uint64_t n;
    duration_us d;
    snprintf (procs, sizeof procs, "%.*s", (int)(at - text < 20 ? at - text : 20), text);
    int rc = uint_parse (procs, "processors", 1, UINT32_MAX, &n, err);
    if (rc == 0)
        rc = duration_parse (at + 1, &d, err);
    if (rc == 0 && (d <= 0 || d == TIME_US_MAX))
        rc = err_set (err, ERR_INVALID, "'%s': the duration must be a time above zero", text);
    if (rc == 0) {
        out->procs = (uint32_t)n;
        out->walltime_us = d;
    }
    return rc;
}

static int showstart_run (struct cli_context *ctx, int argc, char **argv)
{
    struct start_args args = {0};
    char *methods[METHODS];
    struct cli_operands operands;
    struct err err = {0};
    Nui__Local__V1__StartTimeRequest request = NUI__LOCAL__V1__START_TIME_REQUEST__INIT;
    Nui__Local__V1__StartTimeReply *reply = NULL;
    int exit_code;
    if (!cli_options (ctx, start_options, 0, &args, argc, argv, &operands, &exit_code))
        return exit_code;
    if (operands.count != 1)
        return cli_usage ("showstart", "name one job, or PROCS@DURATION");
    if (args.estimate && !methods_parse (args.estimate, methods, &request.n_methods))
        return cli_usage ("showstart", "-e %s: one of all, limits, priority, history, simulation",
                          args.estimate);
    request.methods = methods;
    const char *at = strchr (operands.item[0], '@');
    if (at && shape_parse (operands.item[0], at, &request, &err) < 0)
        return cli_usage ("showstart", "%s", err.text);
    if (!at)
        request.job_id = operands.item[0];
    char site[SITE_NAME_CAP];
    if ((!at && site_of_grid_job (ctx, request.job_id, site, &args.site, &err) < 0) ||
        site_admin (ctx, args.site, "StartTime", &request, true, &reply, &err) < 0)
        return cli_fail ("showstart", &err);
    const char *name = at ? operands.item[0] : reply->job_id;
    if (args.estimate && cli_format (ctx) != CLI_TABLE) {
        exit_code = forecasts_print (ctx, reply);
    } else if (reply->start_us) {
        exit_code = showstart_print (ctx, reply, name);
        if (exit_code == CLI_OK && args.estimate)
            exit_code = forecasts_print (ctx, reply);
    } else {
        err_set (&err, ERR_CONFLICT, "cannot determine earliest start time for job '%s': %s", name,
                 *reply->reason ? reply->reason : "there is none");
        exit_code = cli_fail ("showstart", &err);
    }
    nui__local__v1__start_time_reply__free_unpacked (reply, NULL);
    return exit_code;
}

const struct cli_command showstart_command = {
    .name = "showstart",
    .group = CLI_CLUSTER,
    .summary = "when a job, or one of a shape, will start at the earliest",
    .run = showstart_run,
    .help = "nui showstart [-e METHOD] [--site NAME] JOB | PROCS@DURATION",
    .text = "By the reservations that the schedule holds and the wallclock limits of what runs.",
    .options = start_options,
    .example = "nui showstart 8@1:00:00",
};
