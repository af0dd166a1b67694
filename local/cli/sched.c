/* schedctl: how far scheduling goes; the end of the daemon; its nodes as Maui's resource trace. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "local/cli/local_cli.h"

#define ACT(name) NUI__LOCAL__V1__SCHEDULE_REQUEST__ACT__##name

struct sched_args {
    const char *stop, *step, *resume, *modify, *site;
    bool kill, recycle, nodes, wait, list;
};

#define AT(field) offsetof (struct sched_args, field)
static const struct cli_option sched_options[] = {
    {"stop", 's', CLI_OPT_OPTIONAL, "[N|TIME]",
     "stop when N iterations have been, or at TIME (default: at once)", AT (stop)},
    {"step", 'S', CLI_OPT_OPTIONAL, "[N|LENGTH]",
     "run N iterations more, or for LENGTH (default 1), then stop", AT (step)},
    {"resume", 'r', CLI_OPT_OPTIONAL, "[TIME]", "run on, at once or at TIME", AT (resume)},
    {"kill", 'k', CLI_OPT_FLAG, NULL, "end nui-local; jobs run on", AT (kill)},
    {"recycle", 'R', CLI_OPT_FLAG, NULL, "let it begin again with its configuration read anew",
     AT (recycle)},
    {"nodes", 'n', CLI_OPT_FLAG, NULL, "the nodes in the format of Maui's resource trace",
     AT (nodes)},
    {"list", 'l', CLI_OPT_FLAG, NULL,
     "the parameters in force, as showconfig; with a PARAMETER that one", AT (list)},
    {"modify", 'm', CLI_OPT_STRING, "'PARAMETER VALUE'", "change one at once, as changeparam",
     AT (modify)},
    {"wait", 'w', CLI_OPT_FLAG, NULL, "come back when it has stopped", AT (wait)},
    SITE_OPTION (struct sched_args),
    {0},
};

/* "10", "10I"; "" is `none`. */
static int iterations_parse (const char *text, uint64_t none, uint64_t *out, struct err *err)
{
    char digits[32];
    size_t n = strlen (text);
    *out = none;
    if (n == 0)
        return 0;
    if (text[n - 1] == 'I' || text[n - 1] == 'i')
        n--;
    snprintf (digits, sizeof digits, "%.*s", (int)(n < 31 ? n : 31), text);
    return uint_parse (digits, "iterations", 0, INT64_MAX, out, err);
}

/* Iterations are plain numbers; a moment or a duration has one of these. */
static bool is_time (const char *text)
{
    return strpbrk (text, ":+@") != NULL;
}

static void status_text (const Nui__Local__V1__ScheduleReply *r, struct strbuf *out)
{
    char a[QUANTITY_TEXT_MAX];
    strbuf_printf (out, "mode %s, iteration %llu, %s", r->mode, (unsigned long long)r->iteration,
                   r->over      ? "nothing is left to simulate"
                   : r->stopped ? "scheduling is stopped"
                                : "scheduling goes on");
    if (r->resume_at_us)
        strbuf_printf (out, " until %s", moment_text (r->resume_at_us, a));
    else if (!r->stopped && r->stop_at_us)
        strbuf_printf (out, " until %s", moment_text (r->stop_at_us, a));
    strbuf_putc (out, '\n');
    for (size_t i = 0; i < r->n_acts; i++)
        strbuf_printf (out, "%s %s\n", strcmp (r->mode, "TEST") == 0 ? "would" : "asks to",
                       r->acts[i]);
    if (r->started > 0)
        strbuf_printf (out, "started there since: %llu, as here would be: %llu\n",
                       (unsigned long long)r->started, (unsigned long long)r->alike);
    for (size_t i = 0; i < r->n_differences; i++)
        strbuf_printf (out, "%s\n", r->differences[i]);
}

/* act: that of the request */
static void schedctl_text (const Nui__Local__V1__ScheduleReply *r, int act, struct strbuf *out)
{
    char span[QUANTITY_TEXT_MAX], when[QUANTITY_TEXT_MAX];
    unsigned long long at = r->stop_at > r->iteration ? r->stop_at : r->iteration;
    if (act == ACT (KILL)) {
        strbuf_puts (out, "nui-local shuts down\n\n");
        return;
    }
    if (act == ACT (RECYCLE)) {
        strbuf_puts (out, "nui-local begins again\n\n");
        return;
    }
    if (act == ACT (STATUS))
        status_text (r, out);
    else if (r->resume_at_us)
        strbuf_printf (out, "scheduling will resume in %s at %s\n\n",
                       span_text (r->resume_at_us - r->now_us, span),
                       moment_text (r->resume_at_us, when));
    else if (r->stopped)
        strbuf_printf (out, "scheduling will stop immediately at iteration %llu\n\n", at);
    else if (r->stop_at_us)
        strbuf_printf (out, "scheduling will stop in %s at %s\n\n",
                       span_text (r->stop_at_us - r->now_us, span),
                       moment_text (r->stop_at_us, when));
    else if (r->stop_at == 0)
        strbuf_puts (out, "scheduling will resume immediately\n\n");
    if (!r->stopped && r->stop_at > 0) {
        duration_us left = INT64_MAX / 4;
        if (r->interval_us > 0 && at - r->iteration < (uint64_t)(left / r->interval_us))
            left = (duration_us)(at - r->iteration) * r->interval_us;
        strbuf_printf (out, "scheduling will stop in %s at iteration %llu\n\n",
                       span_text (left, span), at);
    }
}

/* "a; b", nothing for none. */
static void cell_list (struct table *t, char *const *list, size_t count)
{
    struct strbuf b = STRBUF_INIT;
    for (size_t i = 0; i < count; i++)
        strbuf_printf (&b, "%s%s", i ? "; " : "", list[i]);
    table_text (t, count ? strbuf_text (&b) : NULL);
    strbuf_free (&b);
}

static struct table *sched_table (const Nui__Local__V1__ScheduleReply *r)
{
    static const struct table_column columns[] = {
        {"mode", "Mode", TABLE_TEXT, 0},
        {"iteration", "Iteration", TABLE_INT, 0},
        {"stopped", "Stopped", TABLE_BOOL, 0},
        {"stop_at", "StopAt", TABLE_INT, 0},
        {"stop_time", "StopTime", TABLE_TIME, 0},
        {"resume_time", "ResumeTime", TABLE_TIME, 0},
        {"time", "Time", TABLE_TIME, 0},
        {"interval", "Interval", TABLE_DURATION, 0},
        {"over", "Over", TABLE_BOOL, 0},
        {"acts", "Acts", TABLE_TEXT, 0},
        {"started", "Started", TABLE_INT, 0},
        {"alike", "Alike", TABLE_INT, 0},
        {"differences", "Differences", TABLE_TEXT, 0},
    };
    struct table *t = table_create (columns, sizeof columns / sizeof *columns);
    table_text (t, r->mode);
    table_int (t, (int64_t)r->iteration);
    table_bool (t, r->stopped);
    if (r->stop_at > 0)
        table_int (t, (int64_t)r->stop_at);
    else
        table_null (t);
    cell_moment (t, r->stop_at_us);
    cell_moment (t, r->resume_at_us);
    cell_moment (t, r->now_us);
    table_duration (t, r->interval_us);
    table_bool (t, r->over);
    cell_list (t, r->acts, r->n_acts);
    table_int (t, (int64_t)r->started);
    table_int (t, (int64_t)r->alike);
    cell_list (t, r->differences, r->n_differences);
    table_end_row (t);
    return t;
}

static void bracketed (char *const *item, size_t count, struct strbuf *out)
{
    for (size_t i = 0; i < count; i++)
        strbuf_printf (out, "[%s]", item[i]);
    strbuf_puts (out, count ? " " : "[NONE] ");
}

static void classes_text (const Nui__Local__V1__NodeInfo *n, struct strbuf *out)
{
    for (size_t i = 0; i < n->n_classes; i++) {
        struct node_class c = node_class (n, i);
        strbuf_printf (out, "[%s:%lld]", c.name, c.all);
    }
    strbuf_puts (out, n->n_classes ? " " : "[NONE] ");
}

/* -n: the nodes in Maui's own format, for SIMRESOURCETRACEFILE. */
static void node_trace_text (const struct nodes *nodes, struct strbuf *out)
{
    for (uint32_t i = 0; i < nodes->count; i++) {
        const Nui__Local__V1__NodeInfo *n = nodes->item[i];
        bool up = strcmp (n->state, "Down") != 0 && strcmp (n->state, "Drained") != 0;
        strbuf_printf (out, "COMPUTENODE %s 0 %s [DEFAULT] %lldM %lldM %lldM %u 1 %u 0 ",
                       up ? "AVAILABLE" : "DEFINED", n->name, (long long)n->swap_mb,
                       (long long)n->memory_mb, (long long)n->disk_mb, n->procs, i + 1);
        strbuf_printf (out, "%s %s ", or_none (n->opsys), or_none (n->arch));
        bracketed (n->features, n->n_features, out);
        classes_text (n, out);
        bracketed (n->networks, n->n_networks, out);
        strbuf_printf (out, "%.6g [NONE] [NONE] [NONE]\n", n->speed_ppm / 1e6);
    }
}

static int print_nodes (struct cli_context *ctx, const char *site)
{
    struct nodes nodes = {.arena = arena_create (0)};
    struct strbuf out = STRBUF_INIT;
    struct err err = {0};
    int code;
    if (nodes_fetch (ctx, site, NULL, &nodes, &err) < 0) {
        code = cli_fail ("schedctl", &err);
    } else if (cli_format (ctx) == CLI_TABLE) {
        node_trace_text (&nodes, &out);
        code = cli_output (&out);
    } else {
        struct table *t = nodes_table (&nodes);
        code = table_print (t, ctx);
        table_destroy (t);
    }
    nodes_free (&nodes);
    strbuf_free (&out);
    return code;
}

/* What the options ask for, as the request says it; moments are the schedule's. */
static int act_of (struct cli_context *ctx, const struct sched_args *a,
                   Nui__Local__V1__ScheduleRequest *r, int *act, struct err *err)
{
    int wishes = (a->stop != NULL) + (a->step != NULL) + (a->resume != NULL) + a->kill +
                 a->recycle + a->nodes + a->list + (a->modify != NULL);
    *act = ACT (STATUS);
    if (wishes > 1)
        return err_set (err, ERR_INVALID, "say one of -s, -S, -r, -k, -R, -n, -l and -m");
    if (a->stop) {
        *act = ACT (STOP);
        return is_time (a->stop) ? site_time (ctx, a->site, a->stop, &r->at_us, err)
                                 : iterations_parse (a->stop, 0, &r->count, err);
    }
    if (a->step) {
        *act = ACT (STEP);
        return is_time (a->step) ? duration_parse (a->step + (*a->step == '+'), &r->for_us, err)
                                 : iterations_parse (a->step, 1, &r->count, err);
    }
    if (a->resume && *a->resume) {
        *act = ACT (RESUME);
        return site_time (ctx, a->site, a->resume, &r->at_us, err);
    }
    *act = a->resume    ? ACT (RESUME)
           : a->kill    ? ACT (KILL)
           : a->recycle ? ACT (RECYCLE)
                        : ACT (STATUS);
    return 0;
}

/* --wait: until it has stopped. */
static int wait_stopped (struct cli_context *ctx, const char *site,
                         Nui__Local__V1__ScheduleReply **reply, struct err *err)
{
    Nui__Local__V1__ScheduleRequest request = NUI__LOCAL__V1__SCHEDULE_REQUEST__INIT;
    struct timespec nap = {.tv_nsec = 20000000};
    while (!(*reply)->stopped) {
        nanosleep (&nap, NULL);
        Nui__Local__V1__ScheduleReply *next = NULL;
        if (site_admin (ctx, site, "Schedule", &request, true, &next, err) < 0)
            return err->code;
        nui__local__v1__schedule_reply__free_unpacked (*reply, NULL);
        *reply = next;
    }
    return 0;
}

/* -m 'PARAMETER VALUE', or the value in words of its own. */
static int sched_param (struct cli_context *ctx, const struct sched_args *args,
                        const struct cli_operands *ops)
{
    struct strbuf line = STRBUF_INIT;
    strbuf_puts (&line, args->modify);
    for (int i = 0; i < ops->count; i++)
        strbuf_printf (&line, " %s", ops->item[i]);
    int code = strchr (strbuf_text (&line), ' ')
                   ? param_change (ctx, "schedctl", args->site, strbuf_text (&line))
                   : cli_usage ("schedctl", "-m %s: name a parameter and its value", args->modify);
    strbuf_free (&line);
    return code;
}

static int schedctl_run (struct cli_context *ctx, int argc, char **argv)
{
    struct sched_args args = {0};
    struct cli_operands ops;
    Nui__Local__V1__ScheduleRequest request = NUI__LOCAL__V1__SCHEDULE_REQUEST__INIT;
    Nui__Local__V1__ScheduleReply *reply = NULL;
    struct strbuf out = STRBUF_INIT;
    struct err err = {0};
    int exit_code, act;
    if (!cli_options (ctx, sched_options, 0, &args, argc, argv, &ops, &exit_code))
        return exit_code;
    if (args.modify)
        return sched_param (ctx, &args, &ops);
    if (ops.count > (args.list ? 1 : 0))
        return cli_usage ("schedctl", "it takes options only");
    if (args.list)
        return config_list (ctx, "schedctl", args.site, false, ops.count ? ops.item[0] : NULL);
    if (act_of (ctx, &args, &request, &act, &err) != 0)
        return cli_usage ("schedctl", "%s", err.text);
    if (args.nodes)
        return print_nodes (ctx, args.site);
    request.act = (Nui__Local__V1__ScheduleRequest__Act)act;
    if (site_admin (ctx, args.site, "Schedule", &request, false, &reply, &err) < 0)
        return cli_fail ("schedctl", &err);
    if (cli_format (ctx) == CLI_TABLE)
        schedctl_text (reply, act, &out);
    int code = CLI_OK;
    if (args.wait && act != ACT (KILL) && act != ACT (RECYCLE) &&
        wait_stopped (ctx, args.site, &reply, &err) != 0) {
        code = cli_fail ("schedctl", &err);
    } else if (cli_format (ctx) == CLI_TABLE) {
        code = cli_output (&out);
    } else {
        struct table *t = sched_table (reply);
        code = table_print (t, ctx);
        table_destroy (t);
    }
    nui__local__v1__schedule_reply__free_unpacked (reply, NULL);
    strbuf_free (&out);
    return code;
}

const struct cli_command schedctl_command = {
    .name = "schedctl",
    .group = CLI_CLUSTER,
    .summary = "stop, step, resume or end the scheduler",
    .run = schedctl_run,
    .help =
        "nui schedctl [-s [N[I] | TIME] | -S [N[I] | DURATION] | -r [TIME] | -k | -R | -n] [-w]\n"
        "             [--site NAME]\n"
        "       nui schedctl -l [PARAMETER] | -m 'PARAMETER VALUE' [--site NAME]",
    .text =
        "Without an option: mode, iteration, and whether it is stopped. While it is, nothing is\n"
        "started; jobs run on and commands work. In a SIMULATION an iteration is RMPOLLINTERVAL of\n"
        "its time, elsewhere a scheduling pass. For ADMIN1; its state and -n for ADMIN3.\n"
        "\n"
        "TIME is 17:00, 17:00_04/14 or +2:00:00 and LENGTH 2:00:00, by the schedule's clock; a plain\n"
        "number counts iterations.",
    .options = sched_options,
    .example = "nui schedctl -S 10 --wait",
};
