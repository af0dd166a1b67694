/* jobs: the list of jobs, those that wait and run, and what ran before. The daemon gives pages of all that there are;
 * which of them are wanted, in which columns and order, is seen to here, so that no question costs it more than a page. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "meta/cli/grid.h"
#include "meta/cli/past.h"
#include "meta/cli/select.h"
#include "proto/base/clock.h"
#include "proto/nui/v1/bank.pb-c.h"

enum { LIMIT_DEFAULT = 1000 };

static const struct table_column jobs_columns[] = {
    {"job_id", "JOB", TABLE_TEXT, 0},
    {"name", "NAME", TABLE_TEXT, 0},
    {"user", "USER", TABLE_TEXT, 0, .spare = 4},
    {"account", "ACCOUNT", TABLE_TEXT, 0, .spare = 5},
    {"state", "STATE", TABLE_TEXT, 0},
    {"sites", "SITES", TABLE_TEXT, 0},
    {"procs", "PROCS", TABLE_INT, 0, .spare = 3},
    {"submit_time", "SUBMITTED", TABLE_TIME, 0, .spare = 6},
    {"start_time", "START", TABLE_TIME, 0, .spare = 1},
    {"end_time", "END", TABLE_TIME, 0, .spare = 7},
    {"elapsed", "ELAPSED", TABLE_DURATION, 0, .spare = 2},
    {"exit_code", "EXIT", TABLE_INT, 0, .spare = 3},
    {"price_max", "PRICE<=", TABLE_CREDITS, 0, .spare = 8},
    {"reason", "REASON", TABLE_TEXT, 0},
    /* with --start */
    {"expected", "EXPECTED", TABLE_TIME, 0},
    {"earliest", "19OF20FROM", TABLE_TIME, 0, .spare = 2},
    {"latest", "TO", TABLE_TIME, 0, .spare = 2},
    /* with --cost */
    {"charged", "CHARGED", TABLE_CREDITS, 0},
};
enum {
    JOBS_COLUMNS = sizeof jobs_columns / sizeof *jobs_columns,
    JOBS_ALWAYS = JOBS_COLUMNS - 4,
    JOBS_START = 3,
};
#define JOBS_EXPECTED "job_id,name,user,state,sites,procs,expected,earliest,latest,reason"
static const char jobs_waiting[] = "Pending,Queued,Reserved";

struct jobs_args {
    bool all, ended, totals, elements, cost, start;
    uint64_t limit;
    struct job_filter filter;
    const char *columns, *sort;
    struct table_column column[JOBS_COLUMNS]; /* of the table, as long as it is there */
};

static const struct cli_option jobs_options[] = {
    {"all", 'a', CLI_OPT_FLAG, NULL, "everybody's (operators)", offsetof (struct jobs_args, all)},
    {"ended", 'e', CLI_OPT_FLAG, NULL, "also those that have ended",
     offsetof (struct jobs_args, ended)},
    {"from", 0, CLI_OPT_PAST, "TIME", "that had not ended by then (and ended ones)",
     offsetof (struct jobs_args, filter.period.from)},
    {"to", 0, CLI_OPT_PAST, "TIME", "that were submitted before (and ended ones)",
     offsetof (struct jobs_args, filter.period.to)},
    {"period", 0, CLI_OPT_PERIOD, "PERIOD", "both: a month or a day, 2026-11, yesterday",
     offsetof (struct jobs_args, filter.period)},
    {"state", 's', CLI_OPT_STRING, "A,B", "only in these states: Running, Failed, ...",
     offsetof (struct jobs_args, filter.state)},
    {"site", 0, CLI_OPT_STRING, "A,B", "only with a component at one of these",
     offsetof (struct jobs_args, filter.site)},
    {"name", 'N', CLI_OPT_STRING, "PATTERN", "only called so: run-*",
     offsetof (struct jobs_args, filter.name)},
    {"account", 'A', CLI_OPT_STRING, "A,B", "only paid by one of these",
     offsetof (struct jobs_args, filter.account)},
    {"user", 'u', CLI_OPT_STRING, "A,B", "with --all: only of these users",
     offsetof (struct jobs_args, filter.user)},
    {"format", 'o', CLI_OPT_STRING, "COLUMN,..", "only these columns, named as in --json",
     offsetof (struct jobs_args, columns)},
    {"sort", 0, CLI_OPT_STRING, "[-]COLUMN", "ordered by it; -: the largest first",
     offsetof (struct jobs_args, sort)},
    {"elements", 0, CLI_OPT_FLAG, NULL, "each job of an array, and not one line for all of it",
     offsetof (struct jobs_args, elements)},
    {"start", 0, CLI_OPT_FLAG, NULL, "those that wait, by when each is expected to start",
     offsetof (struct jobs_args, start)},
    {"cost", 0, CLI_OPT_FLAG, NULL, "what the bank has charged for each, less what it gave back",
     offsetof (struct jobs_args, cost)},
    {"totals", 0, CLI_OPT_FLAG, NULL, "a last line: jobs, processors, processor-hours",
     offsetof (struct jobs_args, totals)},
    {"limit", 0, CLI_OPT_COUNT, "N", "the newest N (default 1000)",
     offsetof (struct jobs_args, limit), 1, 100000},
    {0},
};

/* What the rows come to. */
struct jobs_sum {
    uint64_t jobs, procs;
    int64_t proc_seconds;
    credit_micro charged;
};

/* ---- what the bank says */

/* Of a user's job, "URI grid.42"; of an array all of it as well. */
struct cost {
    UT_hash_handle hh;
    credit_micro net;
    char job[PRINCIPAL_URI_MAX + 64];
};

static void cost_add (struct cost **costs, const char *user, const char *job, size_t len,
                      credit_micro net)
{
    char key[sizeof (*costs)->job];
    struct cost *cost;
    snprintf (key, sizeof key, "%s %.*s", user, (int)len, job);
    HASH_FIND_STR (*costs, key, cost);
    if (!cost) {
        cost = calloc (1, sizeof *cost);
        assert (cost);
        strcpy (cost->job, key);
        HASH_ADD_STR (*costs, job, cost);
    }
    cost->net += net;
}

static const struct cost *cost_of (struct cost *costs, const Nui__Meta__V1__JobStatus *s)
{
    char key[sizeof costs->job];
    struct cost *cost;
    size_t len = s->array ? strcspn (s->grid_job_id, "[") : strlen (s->grid_job_id);
    snprintf (key, sizeof key, "%s %.*s", s->submitter, (int)len, s->grid_job_id);
    HASH_FIND_STR (costs, key, cost);
    return cost;
}

static void costs_free (struct cost *costs)
{
    struct cost *cost, *next;
    HASH_ITER (hh, costs, cost, next) {
        HASH_DEL (costs, cost);
        free (cost);
    }
}

/* Of all jobs that were charged since the oldest of the list was submitted. */
static int costs_read (struct cli_context *ctx, time_us from, struct cost **costs, struct err *err)
{
    static char *by[] = {(char *)"job", (char *)"user"};
    Nui__Bank__V1__UsageRequest request = NUI__BANK__V1__USAGE_REQUEST__INIT;
    ProtobufCMessage *message = NULL;
    struct rpcclient *bank = cli_bank (ctx, err);
    request.by = by;
    request.n_by = 2;
    request.from_us = from;
    if (!bank || rpcclient_call (bank, &nui__bank__v1__bank__descriptor, "Usage", &request.base,
                                 GRID_CALL_TIMEOUT_S * US_PER_S, true, &message, err) < 0)
        return err->code;
    const Nui__Bank__V1__UsageReply *reply = (const Nui__Bank__V1__UsageReply *)message;
    for (size_t i = 0; i < reply->n_lines; i++) {
        const Nui__Bank__V1__UsageLine *line = reply->lines[i];
        credit_micro net = line->charged_micro - line->refunded_micro;
        size_t whole = strlen (line->job), base = strcspn (line->job, "[");
        cost_add (costs, line->user, line->job, whole, net);
        if (base < whole)
            cost_add (costs, line->user, line->job, base, net);
    }
    protobuf_c_message_free_unpacked (message, NULL);
    return 0;
}

static time_us oldest_of (const struct job_pages *pages)
{
    time_us oldest = TIME_US_MAX;
    for (uint32_t p = 0; p < pages->count; p++)
        for (size_t i = 0; i < pages->page[p]->n_jobs; i++) {
            const Nui__Meta__V1__JobStatus *s = pages->page[p]->jobs[i];
            time_us since = s->submit_us ? s->submit_us : s->start_us;
            oldest = since < oldest ? since : oldest;
        }
    return oldest == TIME_US_MAX ? 0 : oldest;
}

/* ---- the list */

static bool has_run (const Nui__Meta__V1__JobStatus *s)
{
    return s->start_us && !s->start_is_estimate &&
           (s->end_us || s->state == NUI__META__V1__GRID_JOB_STATE__GRID_RUNNING);
}

/* The first exit code of a component that is not 0. */
static int32_t exit_of (const Nui__Meta__V1__JobStatus *s)
{
    int32_t code = 0;
    for (size_t i = 0; i < s->n_components && code == 0; i++)
        code = s->components[i]->job ? s->components[i]->job->exit_code : 0;
    return code;
}

static void expected_cells (struct table *table, const Nui__Meta__V1__JobStatus *s)
{
    const Nui__Common__V1__Forecast *f = grid_forecast_of (s);
    const int64_t moment[JOBS_START] = {f && f->median_us      ? f->median_us
                                        : s->start_is_estimate ? s->start_us
                                                               : 0,
                                        f ? f->low95_us : 0, f ? f->high95_us : 0};
    for (int i = 0; i < JOBS_START; i++)
        table_time (table, moment[i] ? moment[i] : TIME_US_NONE);
}

static void jobs_row (struct table *table, const Nui__Meta__V1__JobStatus *s, time_us now,
                      struct cost *costs, const struct jobs_args *args, struct jobs_sum *sum)
{
    struct strbuf sites = STRBUF_INIT, state = STRBUF_INIT;
    uint64_t procs = 0;
    for (size_t i = 0; i < s->n_components; i++) {
        if (*s->components[i]->site)
            strbuf_printf (&sites, "%s%s", sites.len ? "+" : "", s->components[i]->site);
        procs += s->components[i]->job ? s->components[i]->job->procs : 0;
    }
    for (size_t i = 0; s->array && i < s->array->n_sites; i++)
        strbuf_printf (&sites, "%s%s", i ? "," : "", s->array->sites[i]);
    duration_us elapsed = has_run (s) ? (s->end_us ? s->end_us : now) - s->start_us : 0;
    table_text (table, s->grid_job_id);
    table_text (table, *s->name ? s->name : NULL);
    table_text (table, job_user_name (s->submitter));
    table_text (table, *s->account ? s->account : NULL);
    grid_state_text (s, &state);
    table_text (table, strbuf_text (&state));
    strbuf_free (&state);
    table_text (table, sites.len ? strbuf_text (&sites) : NULL);
    if (procs)
        table_int (table, (int64_t)procs);
    else
        table_null (table);
    table_time (table, s->submit_us ? s->submit_us : TIME_US_NONE);
    table_time (table, s->start_us ? s->start_us : TIME_US_NONE);
    table_time (table, s->end_us ? s->end_us : TIME_US_NONE);
    if (has_run (s))
        table_duration (table, elapsed);
    else
        table_null (table);
    if (has_run (s) && s->end_us && !s->array && s->state)
        table_int (table, exit_of (s));
    else
        table_null (table);
    if (s->state)
        table_credits (table, s->price_micro);
    else
        table_null (table);
    table_text (table, s->reason && *s->reason->text ? s->reason->text : NULL);
    const struct cost *charged = cost_of (costs, s);
    if (args->start)
        expected_cells (table, s);
    if (args->cost && charged)
        table_credits (table, charged->net);
    else if (args->cost)
        table_null (table);
    sum->charged += charged ? charged->net : 0;
    table_end_row (table);
    strbuf_free (&sites);
    sum->jobs++;
    sum->procs += procs;
    sum->proc_seconds += (int64_t)procs * (elapsed / US_PER_S);
}

static struct table *jobs_table (struct jobs_args *args, const struct job_pages *pages,
                                 struct cost *costs, struct jobs_sum *sum)
{
    uint32_t n = JOBS_ALWAYS + (args->start ? JOBS_START : 0);
    memcpy (args->column, jobs_columns, sizeof args->column);
    if (args->cost)
        args->column[n++] = jobs_columns[JOBS_COLUMNS - 1];
    struct table *table = table_create (args->column, n);
    uint64_t skip = pages->found > args->limit ? pages->found - args->limit : 0;
    time_us now = clock_now_us ();
    for (uint32_t p = pages->count; p-- > 0;)
        for (size_t i = 0; i < pages->page[p]->n_jobs; i++)
            if (job_filter_wants (&args->filter, pages->page[p]->jobs[i])) {
                if (skip)
                    skip--;
                else
                    jobs_row (table, pages->page[p]->jobs[i], now, costs, args, sum);
            }
    return table;
}

/* What the metascheduler does not have any more; what is said of it. */
static void jobs_past (struct cli_context *ctx, const struct jobs_args *args,
                       struct job_pages *pages)
{
    const struct job_filter *f = &args->filter;
    time_us forgotten = pages->count ? pages->page[0]->forgotten_us : 0;
    char when[QUANTITY_TEXT_MAX];
    uint64_t found = 0;
    struct err err;
    err_clear (&err);
    if (!forgotten || f->period.from > forgotten || pages->more || pages->found > args->limit)
        return;
    time_format_iso (forgotten, when);
    if (!f->period.from)
        fprintf (stderr,
                 "nui jobs: of those that ended by %s some are not kept here any more: --from "
                 "TIME asks the bank for them\n",
                 when);
    else if (f->state || f->name)
        fprintf (stderr,
                 "nui jobs: of those that ended by %s some are not kept here any more, and the "
                 "bank knows neither their names nor their states\n",
                 when);
    else if (past_read (ctx, f, args->all, forgotten, pages, &found, &err) < 0)
        fprintf (stderr,
                 "nui jobs: of those that ended by %s some are not kept here any more, and the "
                 "bank cannot be asked: %s\n",
                 when, err.text);
    else if (found)
        fprintf (stderr,
                 "nui jobs: %llu of them, ended by %s, %s from the bank's books: without name, "
                 "state and exit code\n",
                 (unsigned long long)found, when, found == 1 ? "is" : "are");
}

/* Whether "a,charged" or "-charged" asks for it. */
static bool names_cost (const char *columns)
{
    return columns && strstr (columns, "charged");
}

static int jobs_run (struct cli_context *ctx, int argc, char **argv)
{
    struct jobs_args args = {0};
    struct cli_operands operands;
    struct job_pages *pages;
    struct jobs_sum sum = {0};
    struct cost *costs = NULL;
    char credits[QUANTITY_TEXT_MAX];
    struct err err;
    int code;
    err_clear (&err);
    if (!cli_options (ctx, jobs_options, 0, &args, argc, argv, &operands, &code))
        return code;
    if (operands.count)
        return cli_usage (argv[0], "'%s' is one too many; nui status explains one job",
                          operands.item[0]);
    if (args.start && (args.ended || args.filter.state))
        return cli_usage (argv[0], "--start is of those that wait, whatever their state");
    if (args.filter.user && !args.all)
        return cli_usage (argv[0], "--user is for --all: without it these are your own");
    if (job_filter_check (argv[0], &args.filter) != CLI_OK)
        return CLI_USAGE;
    args.limit = args.limit ? args.limit : LIMIT_DEFAULT;
    args.cost = args.cost || names_cost (args.columns) || names_cost (args.sort);
    pages = calloc (1, sizeof *pages);
    assert (pages);
    struct table *table = NULL;
    Nui__Meta__V1__JobsRequest request = NUI__META__V1__JOBS_REQUEST__INIT;
    request.all_users = args.all;
    request.ended =
        args.ended || args.filter.period.from || args.filter.period.to || args.filter.state;
    request.elements = args.elements;
    if (args.start) {
        args.filter.state = jobs_waiting;
        args.sort = args.sort ? args.sort : "expected";
        args.columns = args.columns ? args.columns
                       : args.cost  ? JOBS_EXPECTED ",charged"
                                    : JOBS_EXPECTED;
    }
    if (job_pages_read (ctx, &request, &args.filter, args.limit, pages, &err) < 0) {
        code = cli_fail (argv[0], &err);
        goto out;
    }
    if (request.ended)
        jobs_past (ctx, &args, pages);
    if (args.cost && costs_read (ctx, oldest_of (pages), &costs, &err) < 0)
        fprintf (stderr, "nui jobs: what they cost is not known: %s\n", err.text);
    table = jobs_table (&args, pages, costs, &sum);
    if (table_arrange (table, args.columns, args.sort, &err) < 0) {
        code = cli_usage (argv[0], "%s", err.text);
        goto out;
    }
    code = table_print (table, ctx);
    if (args.totals && cli_format (ctx) == CLI_TABLE)
        printf ("%llu job%s, %llu processors, %lld.%02lld processor-hours%s%s%s\n",
                (unsigned long long)sum.jobs, sum.jobs == 1 ? "" : "s",
                (unsigned long long)sum.procs, (long long)sum.proc_seconds / 3600,
                (long long)sum.proc_seconds % 3600 / 36, costs ? ", " : "",
                costs ? credit_format (sum.charged, credits) : "", costs ? " credits" : "");
    if (pages->found > args.limit || pages->more)
        fprintf (stderr, "nui jobs: there may be older ones: --limit N looks further\n");
out:
    table_destroy (table);
    costs_free (costs);
    job_pages_free (pages);
    free (pages);
    return code;
}

const struct cli_command jobs_command = {
    .name = "jobs",
    .group = CLI_USERS,
    .summary = "list jobs, also what ran before",
    .run = jobs_run,
    .help = "nui jobs [options]",
    .text =
        "Lists your jobs that have not ended; with --ended, a period or states also those that have.\n"
        "The newest stand last.",
    .options = jobs_options,
    .example = "nui jobs --period 2026-11 --state Failed,Cancelled\n"
               "nui jobs --start\n"
               "nui jobs --ended --format job_id,elapsed,procs,exit_code --sort -elapsed --totals",
};
