/* showq: the queue in Maui's columns. */
#include <stdlib.h>
#include <string.h>

#include "local/cli/local_cli.h"

#define ACTIVE NUI__LOCAL__V1__QUEUE_SECTION__SECTION_ACTIVE
#define IDLE NUI__LOCAL__V1__QUEUE_SECTION__SECTION_IDLE
#define BLOCKED NUI__LOCAL__V1__QUEUE_SECTION__SECTION_BLOCKED

/* --- collecting --------------------------------------------------------------------------- */

static void text_keep (struct arena *arena, char **text)
{
    if (**text)
        *text = arena_strdup (arena, *text);
    else
        *text = (char *)"";
}

static void row_keep (struct queue *q, const Nui__Local__V1__QueueJob *in)
{
    if (q->count == q->cap) {
        uint32_t cap = q->cap ? q->cap * 2 : 256;
        Nui__Local__V1__QueueJob *more = arena_alloc (q->arena, cap * sizeof *more);
        if (q->count)
            memcpy (more, q->row, q->count * sizeof *more);
        q->row = more;
        q->cap = cap;
    }
    Nui__Local__V1__QueueJob *row = &q->row[q->count++];
    *row = *in;
    char **texts[] = {&row->job_id, &row->state, &row->user, &row->group,       &row->account,
                      &row->class_, &row->qos,   &row->host, &row->grid_job_id, &row->partition};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        text_keep (q->arena, texts[i]);
    row->features = arena_array (q->arena, in->n_features + 1, sizeof *row->features);
    for (size_t i = 0; i < in->n_features; i++)
        row->features[i] = arena_strdup (q->arena, in->features[i]);
    row->holds = arena_array (q->arena, in->n_holds + 1, sizeof *row->holds);
    for (size_t i = 0; i < in->n_holds; i++)
        row->holds[i] = arena_strdup (q->arena, in->holds[i]);
    if (in->reason) {
        row->reason = arena_memdup (q->arena, in->reason, sizeof *in->reason);
        text_keep (q->arena, &row->reason->code);
        text_keep (q->arena, &row->reason->text);
    }
}

void queue_add (struct queue *q, const Nui__Local__V1__QueueChunk *chunk)
{
    if (chunk->totals) {
        q->totals = *chunk->totals;
        text_keep (q->arena, &q->totals.site);
    }
    for (size_t i = 0; i < chunk->n_jobs; i++)
        row_keep (q, chunk->jobs[i]);
    if (chunk->last)
        q->hidden = chunk->hidden;
}

/* A merge of equals must not change their order: the place decides. */
struct placed {
    int64_t end;
    uint32_t at;
};

static int by_end (const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    if (x->end != y->end)
        return x->end < y->end ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

void queue_sort (struct queue *q)
{
    struct placed *order = arena_array (q->arena, q->count + 1, sizeof *order);
    Nui__Local__V1__QueueJob *sorted = arena_array (q->arena, q->count + 1, sizeof *sorted);
    for (uint32_t i = 0; i < q->count; i++)
        order[i] = (struct placed){q->row[i].section == ACTIVE ? q->row[i].end_us : INT64_MAX, i};
    qsort (order, q->count, sizeof *order, by_end);
    for (uint32_t i = 0; i < q->count; i++)
        sorted[i] = q->row[order[i].at];
    q->row = sorted;
    q->cap = q->count;
}

/* --- tables as Maui prints them ------------------------------------------------------------ */

static double percent (uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

static duration_us remaining (const struct queue *q, const Nui__Local__V1__QueueJob *row)
{
    return row->end_us ? row->end_us - q->totals.now_us : row->walltime_us;
}

const char *partition_short (const char *partition, char out[4])
{
    snprintf (out, 4, "%.3s", *partition ? partition : "ALL");
    return out;
}

static void line_end (const Nui__Local__V1__QueueJob *r, bool verbose, struct strbuf *out)
{
    if (verbose)
        strbuf_printf (out, "  %12s %10s %8s", *r->account ? r->account : "-",
                       *r->class_ ? r->class_ : "-", *r->qos ? r->qos : "-");
    strbuf_putc (out, '\n');
}

/* What a title ends with, and the empty line below. */
static const char *title_end (bool verbose)
{
    return verbose ? "       ACCOUNT      CLASS      QOS\n\n" : "\n\n";
}

static uint32_t plain_rows (const struct queue *q, Nui__Local__V1__QueueSection section,
                            bool verbose, struct strbuf *out)
{
    char span[QUANTITY_TEXT_MAX], moment[QUANTITY_TEXT_MAX];
    uint32_t n = 0;
    for (uint32_t i = 0; i < q->count; i++) {
        const Nui__Local__V1__QueueJob *r = &q->row[i];
        if (r->section != section)
            continue;
        bool active = section == ACTIVE;
        strbuf_printf (out, "%-18s %8s %10s %5u %11s  %19s", r->job_id, r->user, r->state, r->procs,
                       span_text (active ? remaining (q, r) : r->walltime_us, span),
                       moment_text (active ? r->start_us : r->submit_us, moment));
        line_end (r, verbose, out);
        n++;
    }
    return n;
}

static void all_text (const struct queue *q, bool verbose, bool noheader, struct strbuf *out)
{
    static const char title[] = "JOBNAME            USERNAME      STATE  PROC     WCLIMIT"
                                "            QUEUETIME";
    const char *end = title_end (verbose);
    const Nui__Local__V1__QueueTotals *t = &q->totals;
    uint32_t active, idle, blocked;
    if (!noheader)
        strbuf_printf (out,
                       "ACTIVE JOBS--------------------\n"
                       "JOBNAME            USERNAME      STATE  PROC   REMAINING"
                       "            STARTTIME%s",
                       end);
    active = plain_rows (q, ACTIVE, verbose, out);
    if (!noheader)
        strbuf_printf (out,
                       "\n%6u Active Jobs%8u of %4u Processors Active (%.2f%%)\n"
                       "%26u of %4u Nodes Active      (%.2f%%)\n\n"
                       "IDLE JOBS----------------------\n%s%s",
                       active, t->procs_active, t->procs, percent (t->procs_active, t->procs),
                       t->nodes_active, t->nodes, percent (t->nodes_active, t->nodes), title, end);
    idle = plain_rows (q, IDLE, verbose, out);
    if (!noheader)
        strbuf_printf (out, "\n%u Idle Jobs\n\nBLOCKED JOBS----------------\n%s%s", idle, title,
                       end);
    blocked = plain_rows (q, BLOCKED, verbose, out);
    if (!noheader)
        strbuf_printf (out,
                       "\nTotal Jobs: %u   Active Jobs: %u   Idle Jobs: %u   Blocked Jobs: %u\n",
                       active + idle + blocked, active, idle, blocked);
}

static void qos_short (const char *qos, char out[3])
{
    snprintf (out, 3, "%s", *qos ? qos : "-");
}

static char active_mark (const Nui__Local__V1__QueueJob *r)
{
    return r->backfilled && r->preemptible ? '*' : r->backfilled ? '+' : r->preemptible ? '-' : ' ';
}

static void running_text (const struct queue *q, bool verbose, bool noheader, struct strbuf *out)
{
    char span[QUANTITY_TEXT_MAX], moment[QUANTITY_TEXT_MAX], qos[3], par[4];
    const Nui__Local__V1__QueueTotals *t = &q->totals;
    uint32_t n = 0;
    if (!noheader)
        strbuf_printf (out,
                       "           JobName  S Par  Effic  XFactor  Q      User    Group    MHost"
                       " Procs   Remaining            StartTime%s",
                       title_end (verbose));
    for (uint32_t i = 0; i < q->count; i++) {
        const Nui__Local__V1__QueueJob *r = &q->row[i];
        if (r->section != ACTIVE)
            continue;
        qos_short (r->qos, qos);
        strbuf_printf (out, "%18s%c %c %3s ------ %8.1f %2s %9s %8s %8s %5u %11s  %19s", r->job_id,
                       active_mark (r), r->state[0], partition_short (r->partition, par),
                       r->xfactor_milli / 1000.0, qos, r->user, r->group, r->host, r->procs,
                       span_text (remaining (q, r), span), moment_text (r->start_us, moment));
        line_end (r, verbose, out);
        n++;
    }
    if (!noheader)
        strbuf_printf (out, "\n%3u Jobs  %6u of %5u Processors Active (%.2f%%)\n", n,
                       t->procs_active, t->procs, percent (t->procs_active, t->procs));
}

static void waiting_text (const struct queue *q, bool verbose, bool noheader, struct strbuf *out)
{
    char span[QUANTITY_TEXT_MAX], moment[QUANTITY_TEXT_MAX], qos[3];
    double hours = 0;
    uint32_t n = 0;
    if (!noheader)
        strbuf_printf (out,
                       "           JobName    Priority  XFactor  Q      User    Group  Procs"
                       "     WCLimit     Class      SystemQueueTime%s",
                       title_end (verbose));
    for (uint32_t i = 0; i < q->count; i++) {
        const Nui__Local__V1__QueueJob *r = &q->row[i];
        if (r->section != IDLE)
            continue;
        qos_short (r->qos, qos);
        strbuf_printf (out, "%18s%c %10lld %8.1f %2s %9s %8s %6u %11s %9s  %19s", r->job_id,
                       r->reserved_us ? '*' : ' ', (long long)r->priority,
                       r->xfactor_milli / 1000.0, qos, r->user, r->group, r->procs,
                       span_text (r->walltime_us, span), *r->class_ ? r->class_ : "-",
                       moment_text (r->submit_us, moment));
        line_end (r, verbose, out);
        hours += (double)r->procs * (double)(r->walltime_us / US_PER_S) / 3600;
        n++;
    }
    if (!noheader)
        strbuf_printf (out, "\nJobs: %u  Total Backlog: %6.2f ProcHours  (%.2f Hours)\n", n, hours,
                       q->totals.procs ? hours / q->totals.procs : 0);
}

static void stuck_text (const struct queue *q, bool noheader, struct strbuf *out)
{
    if (!noheader)
        strbuf_puts (out, "           JobName      User               Reason\n\n");
    for (uint32_t i = 0; i < q->count; i++) {
        const Nui__Local__V1__QueueJob *r = &q->row[i];
        if (r->section == BLOCKED)
            strbuf_printf (out, "%18s %9s %s\n", r->job_id, r->user,
                           r->reason ? r->reason->text : "-");
    }
}

void queue_text (const struct queue *q, enum queue_view view, bool verbose, bool noheader,
                 struct strbuf *out)
{
    switch (view) {
    case QUEUE_RUNNING:
        running_text (q, verbose, noheader, out);
        break;
    case QUEUE_WAITING:
        waiting_text (q, verbose, noheader, out);
        break;
    case QUEUE_STUCK:
        stuck_text (q, noheader, out);
        break;
    default:
        all_text (q, verbose, noheader, out);
        break;
    }
    if (q->hidden && !noheader)
        strbuf_printf (out, "\n%u jobs of other people are not shown: that is for administrators\n",
                       q->hidden);
}

/* --- JSON and CSV ------------------------------------------------------------------------- */

static void remaining_cell (struct table *t, const ProtobufCMessage *message)
{
    const Nui__Local__V1__QueueJob *r = (const Nui__Local__V1__QueueJob *)message;
    if (r->section == ACTIVE)
        table_duration (t, remaining (table_beside (t), r));
    else
        table_null (t);
}

static const struct table_column columns[] = {
    {"section", "Section", TABLE_TEXT},
    {"job_id", "JobName", TABLE_TEXT},
    {"grid_job_id", "GridJob", TABLE_TEXT},
    {"user", "User", TABLE_TEXT},
    {"group", "Group", TABLE_TEXT},
    {"account", "Account", TABLE_TEXT},
    {"class", "Class", TABLE_TEXT},
    {"qos", "QoS", TABLE_TEXT},
    {"state", "State", TABLE_TEXT},
    {"procs", "Procs", TABLE_INT},
    {"remaining", "Remaining", TABLE_DURATION, .cell = remaining_cell},
    {"walltime", "WCLimit", TABLE_DURATION},
    {"submit_time", "QueueTime", TABLE_TIME},
    {"start_time", "StartTime", TABLE_TIME},
    {"priority", "Priority", TABLE_INT},
    {"xfactor", "XFactor", TABLE_PPM, 1},
    {"host", "MHost", TABLE_TEXT},
    {"backfilled", "Backfilled", TABLE_BOOL},
    {"preemptible", "Preemptible", TABLE_BOOL},
    {"reserved_start", "Reserved", TABLE_TIME, .from = "reserved"},
    {"reason_code", "Code", TABLE_TEXT, .from = "reason.code"},
    {"reason", "Reason", TABLE_TEXT, .from = "reason.text"},
    {"partition", "Par", TABLE_TEXT},
    {"holds", "Hold", TABLE_TEXT},
};

static const char *const section_name[] = {"", "active", "idle", "blocked"};

struct table *queue_table (const struct queue *q)
{
    struct table *t = TABLE_CREATE (columns);
    table_set_beside (t, q);
    for (uint32_t i = 0; i < q->count; i++)
        TABLE_ROW (t, &q->row[i]);
    return t;
}

static void queue_json (const struct queue *q, const struct table *t, struct strbuf *out)
{
    struct jsonout j = jsonout_make (out);
    jsonout_object (&j);
    jsonout_key (&j, "site");
    jsonout_text (&j, q->totals.site);
    jsonout_key (&j, "time");
    jsonout_time (&j, q->totals.now_us);
    for (Nui__Local__V1__QueueSection s = ACTIVE; s <= BLOCKED; s++) {
        jsonout_key (&j, section_name[s]);
        jsonout_array (&j);
        for (uint32_t i = 0; i < q->count; i++)
            if (q->row[i].section == s)
                table_to_json_row (t, i, &j);
        jsonout_end (&j);
    }
    jsonout_key (&j, "procs");
    jsonout_uint (&j, q->totals.procs);
    jsonout_key (&j, "procs_active");
    jsonout_uint (&j, q->totals.procs_active);
    jsonout_key (&j, "nodes");
    jsonout_uint (&j, q->totals.nodes);
    jsonout_key (&j, "nodes_active");
    jsonout_uint (&j, q->totals.nodes_active);
    jsonout_key (&j, "hidden");
    jsonout_uint (&j, q->hidden);
    jsonout_end (&j);
}

/* --- the command -------------------------------------------------------------------------- */

static void on_chunk (void *arg, const ProtobufCMessage *message)
{
    queue_add (arg, (const Nui__Local__V1__QueueChunk *)message);
}

int queue_fetch (struct cli_context *ctx, const char *site,
                 const Nui__Local__V1__QueueRequest *request, struct queue *out, struct err *err)
{
    struct rpcclient *client = cli_site (ctx, site, err);
    if (!client)
        return err->code;
    int rc = rpcclient_stream (client, &nui__local__v1__admin__descriptor, "Queue", &request->base,
                               SITE_CALL_TIMEOUT_S * US_PER_S, on_chunk, out, err);
    queue_sort (out);
    return rc;
}

struct showq_args {
    bool running, idle, blocked, all, completed, verbose;
    struct cli_period period;
    const char *user, *partition, *site;
};

static const struct cli_option showq_options[] = {
    {"running", 'r', CLI_OPT_FLAG, NULL,
     "active jobs only, with where they run and their XFactor; marks: + backfilled, - preemptible, * both",
     offsetof (struct showq_args, running)},
    {"idle", 'i', CLI_OPT_FLAG, NULL, "idle jobs only, in order of priority; * has a reservation",
     offsetof (struct showq_args, idle)},
    {"completed", 'c', CLI_OPT_FLAG, NULL,
     "jobs that have ended, in the last day or in the time that is said",
     offsetof (struct showq_args, completed)},
    {"from", 0, CLI_OPT_PAST, "TIME", "with -c: that had not ended before",
     offsetof (struct showq_args, period.from)},
    {"to", 0, CLI_OPT_PAST, "TIME", "with -c: that ended before",
     offsetof (struct showq_args, period.to)},
    {"period", 0, CLI_OPT_PERIOD, "PERIOD", "with -c: both: a month or a day, 2026-11, yesterday",
     offsetof (struct showq_args, period)},
    {"blocked", 'b', CLI_OPT_FLAG, NULL, "blocked jobs only, each with its reason",
     offsetof (struct showq_args, blocked)},
    {"all", 'a', CLI_OPT_FLAG, NULL, "all three, one below the other (default)",
     offsetof (struct showq_args, all)},
    {"user", 'u', CLI_OPT_STRING, "USER", "jobs of one account only",
     offsetof (struct showq_args, user)},
    {"partition", 'p', CLI_OPT_STRING, "NAME",
     "jobs that run in this partition, or wait and may run there",
     offsetof (struct showq_args, partition)},
    {"verbose", 'v', CLI_OPT_FLAG, NULL, "with account, class and QoS behind each line",
     offsetof (struct showq_args, verbose)},
    SITE_OPTION (struct showq_args),
    {0},
};

static int queue_print (struct cli_context *ctx, const struct queue *q, enum queue_view view,
                        bool verbose)
{
    struct strbuf out = STRBUF_INIT;
    if (cli_format (ctx) == CLI_TABLE) {
        queue_text (q, view, verbose, cli_noheader (ctx), &out);
    } else {
        struct table *t = queue_table (q);
        if (cli_format (ctx) == CLI_JSON)
            queue_json (q, t, &out);
        else
            table_to_csv (t, cli_noheader (ctx), &out);
        table_destroy (t);
    }
    int rc = cli_output (&out);
    strbuf_free (&out);
    return rc;
}

static int showq_run (struct cli_context *ctx, int argc, char **argv)
{
    struct showq_args args = {0};
    struct cli_operands operands;
    struct err err = {0};
    int exit_code;
    if (!cli_options (ctx, showq_options, 0, &args, argc, argv, &operands, &exit_code))
        return exit_code;
    if (operands.count > 0)
        return cli_usage ("showq", "'%s' is too much: there are options only", operands.item[0]);
    if (args.running + args.idle + args.blocked + args.all + args.completed > 1)
        return cli_usage ("showq", "one of -r, -i, -b, -c and -a at a time");
    if (!args.completed && (args.period.from || args.period.to))
        return cli_usage ("showq", "a time is of those that have ended: -c");
    if (args.completed)
        return ended_show (ctx, args.site, args.user, &args.period);
    struct queue q = {.arena = arena_create (1 << 20), .totals = {.site = (char *)""}};
    Nui__Local__V1__QueueRequest request = NUI__LOCAL__V1__QUEUE_REQUEST__INIT;
    request.section = args.running   ? ACTIVE
                      : args.idle    ? IDLE
                      : args.blocked ? BLOCKED
                                     : NUI__LOCAL__V1__QUEUE_SECTION__SECTION_UNSET;
    if (args.user)
        request.user = (char *)args.user;
    if (args.partition)
        request.partition = (char *)args.partition;
    int rc = queue_fetch (ctx, args.site, &request, &q, &err);
    enum queue_view view = args.running   ? QUEUE_RUNNING
                           : args.idle    ? QUEUE_WAITING
                           : args.blocked ? QUEUE_STUCK
                                          : QUEUE_ALL;
    exit_code = rc < 0 ? cli_fail ("showq", &err) : queue_print (ctx, &q, view, args.verbose);
    arena_destroy (q.arena);
    return exit_code;
}

const struct cli_command showq_command = {
    .name = "showq",
    .group = CLI_CLUSTER,
    .summary = "the queue: active, idle and blocked jobs",
    .run = showq_run,
    .help = "nui showq [-a | -r | -i | -b] [-v] [-u USER] [-p PARTITION] [--site NAME]\n"
            "nui showq -c [--period PERIOD | --from TIME --to TIME] [-u USER] [--site NAME]",
    .text = "Plain users see their own jobs; how many others there are is said.",
    .options = showq_options,
    .example = "nui showq -b",
};
