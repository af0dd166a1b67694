/* status, sites, whoami: what there is, as tables. jobs has a file of its own. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "meta/cli/grid.h"
#include "meta/cli/select.h"
#include "proto/base/clock.h"
#include "proto/base/clocksapart.h"
#include "proto/base/text.h"
#include "proto/cli/estimaterecord.h"
#include "proto/cli/transfers.h"
#include "proto/rpc/tlsid.h"

enum { SITE_PATIENCE_S = 3 };

static time_us time_or_none (int64_t t)
{
    return t ? t : TIME_US_NONE;
}

static const char *text_or_null (const char *text)
{
    return text && *text ? text : NULL;
}

static const char *reason_text (const Nui__Common__V1__Reason *reason)
{
    return reason ? text_or_null (reason->text) : NULL;
}

/* For commands without options and operands of their own: true, or what to return in *code. */
static bool alone (struct cli_context *ctx, int argc, char **argv, int *code)
{
    static const struct cli_option options[] = {{0}};
    struct cli_operands operands;
    if (!cli_options (ctx, options, 0, NULL, argc, argv, &operands, code))
        return false;
    if (operands.count)
        *code = cli_usage (argv[0], "'%s' is one too many", operands.item[0]);
    return operands.count == 0;
}

/* ---- status */

static const struct table_column status_columns[] = {
    {"job_id", "Job", TABLE_TEXT, 0},
    {"name", "Name", TABLE_TEXT, 0},
    {"submitter", "Submitter", TABLE_TEXT, 0},
    {"account", "Account", TABLE_TEXT, 0},
    {"state", "State", TABLE_TEXT, 0},
    {"reason", "Reason", TABLE_TEXT, 0},
    {"submit_time", "Submitted", TABLE_TIME, 0},
    {"start_time", "Start", TABLE_TIME, 0},
    {"start_is_estimate", "Start is estimate", TABLE_BOOL, 0},
    {"end_time", "End", TABLE_TIME, 0},
    {"exit", "Exit", TABLE_TEXT, 0},
    {"charged", "Charged", TABLE_CREDITS, 0},
    {"files_until", "Files kept until", TABLE_TIME, 0},
    {"price_max", "Price at most", TABLE_CREDITS, 0},
    {"cost_bound", "Signed for at most", TABLE_CREDITS, 0},
    {"attempts", "Co-reservation attempts", TABLE_INT, 0},
    {"retries", "Run again", TABLE_INT, 0},
    {"expected_median", "Expected", TABLE_TIME, 0},
    {"expected_low50", "  half the time from", TABLE_TIME, 0},
    {"expected_high50", "  to", TABLE_TIME, 0},
    {"expected_low95", "  19 times of 20 from", TABLE_TIME, 0},
    {"expected_high95", "  to", TABLE_TIME, 0},
    {"confidence", "Confidence", TABLE_TEXT, 0},
    {"moved", "Estimate moved", TABLE_TEXT, 0},
    {"expected_without", "No estimate because", TABLE_TEXT, 0},
};

const Nui__Common__V1__Forecast *grid_forecast_of (const Nui__Meta__V1__JobStatus *s)
{
    bool reserved = s->n_components > 1 || s->state == NUI__META__V1__GRID_JOB_STATE__GRID_RESERVED;
    if (reserved && !s->end_us && s->components[0]->job)
        return s->components[0]->job->start_us ? NULL : s->components[0]->job->forecast;
    if (s->state != NUI__META__V1__GRID_JOB_STATE__GRID_QUEUED || s->n_components != 1 ||
        !s->components[0]->job)
        return NULL;
    return s->components[0]->job->forecast;
}

static void forecast_cells (struct table *t, const Nui__Common__V1__Forecast *f)
{
    if (!f) {
        for (int i = 0; i < 8; i++)
            table_null (t);
        return;
    }
    table_time (t, time_or_none (f->median_us));
    table_time (t, time_or_none (f->low50_us));
    table_time (t, time_or_none (f->high50_us));
    table_time (t, time_or_none (f->low95_us));
    table_time (t, time_or_none (f->high95_us));
    table_text (t, f->certain ? "certain" : text_or_null (f->confidence));
    table_text (t, text_or_null (f->moved));
    table_text (t, text_or_null (f->without));
}

static const struct table_column component_columns[] = {
    {"component", "COMPONENT", TABLE_TEXT, 0},
    {"site", "SITE", TABLE_TEXT, 0},
    {"site_job_id", "SITEJOB", TABLE_TEXT, 0},
    {"state", "STATE", TABLE_TEXT, 0},
    {"procs", "PROCS", TABLE_INT, 0, .spare = 4},
    {"hosts", "HOSTS", TABLE_TEXT, 0, .spare = 3},
    {"start_time", "START", TABLE_TIME, 0, .spare = 2},
    {"end_time", "END", TABLE_TIME, 0, .spare = 1},
    {"exit_code", "EXIT", TABLE_INT, 0},
    {"account", "ACCOUNT", TABLE_TEXT, 0, .spare = 6},
    {"held", "HELD", TABLE_CREDITS, 0, .spare = 5},
    {"charged", "CHARGED", TABLE_CREDITS, 0, .spare = 4},
    {"reason", "REASON", TABLE_TEXT, 0},
};

static const struct table_column answer_columns[] = {
    {"component", "COMPONENT", TABLE_TEXT, 0},
    {"site", "SITE", TABLE_TEXT, 0},
    {"tasks", "TASKS", TABLE_INT, 0, .spare = 1},
    {"possible_time", "POSSIBLE", TABLE_TIME, 0},
    {"price_max", "PRICE<=", TABLE_CREDITS, 0, .spare = 2},
    {"asked_time", "ASKED", TABLE_TIME, 0, .spare = 3},
    {"reason", "REASON", TABLE_TEXT, 0},
};

/* What each site said when it was asked last: the first reason why it is not sooner there. */
static struct table *answers_table (const Nui__Meta__V1__JobStatus *s)
{
    struct table *t = table_create (answer_columns, sizeof answer_columns / sizeof *answer_columns);
    for (size_t i = 0; i < s->n_components; i++) {
        for (size_t k = 0; k < s->components[i]->n_answers; k++) {
            const Nui__Meta__V1__SiteAnswer *a = s->components[i]->answers[k];
            table_text (t, s->components[i]->name);
            table_text (t, a->site);
            table_int (t, a->tasks);
            table_time (t, time_or_none (a->start_us));
            if (a->price_micro)
                table_credits (t, a->price_micro);
            else
                table_null (t);
            table_time (t, a->asked_us);
            table_text (t, reason_text (a->reason));
            table_end_row (t);
        }
    }
    return t;
}

static bool waits (const Nui__Meta__V1__JobStatus *s)
{
    return s->state == NUI__META__V1__GRID_JOB_STATE__GRID_PENDING ||
           s->state == NUI__META__V1__GRID_JOB_STATE__GRID_QUEUED ||
           s->state == NUI__META__V1__GRID_JOB_STATE__GRID_RESERVED;
}

/* "exit code 7", "killed by signal 9 (Killed)", of the first component that did not end well. */
static void exit_cell (struct table *t, const Nui__Meta__V1__JobStatus *s)
{
    enum { SIGNAL_BASE = 128 };
    const Nui__Meta__V1__ComponentStatus *c = NULL;
    for (size_t i = 0; i < s->n_components && (!c || c->job->exit_code == 0); i++)
        if (s->components[i]->job && s->components[i]->job->start_us &&
            s->components[i]->job->end_us)
            c = s->components[i];
    if (!c || !s->end_us) {
        table_null (t);
        return;
    }
    int code = c->job->exit_code;
    const char *of = s->n_components > 1 && code ? c->name : "", *colon = *of ? ": " : "";
    if (code > SIGNAL_BASE && code < SIGNAL_BASE + NSIG)
        table_printf (t, "%s%skilled by signal %d (%s)", of, colon, code - SIGNAL_BASE,
                      strsignal (code - SIGNAL_BASE));
    else
        table_printf (t, "%s%sexit code %d", of, colon, code);
}

/* Once the bank has charged all of it. */
static void charged_cell (struct table *t, const Nui__Meta__V1__JobStatus *s)
{
    credit_micro sum = 0;
    bool known = s->end_us != 0;
    for (size_t i = 0; i < s->n_components && known; i++) {
        const Nui__Local__V1__JobInfo *job = s->components[i]->job;
        known = job && job->charged;
        sum += known ? job->charged_micro : 0;
    }
    if (known)
        table_credits (t, sum);
    else
        table_null (t);
}

/* The first moment at which a site may take a directory of it away; 0: none does. */
static time_us files_until (const Nui__Meta__V1__JobStatus *s)
{
    time_us first = 0;
    for (size_t i = 0; i < s->n_components; i++) {
        const Nui__Local__V1__JobInfo *job = s->components[i]->job;
        if (s->end_us && job && job->kept_us && (!first || job->kept_us < first))
            first = job->kept_us;
    }
    return first;
}

/* Which job, whose, and its state: of a job and of an array alike. */
static void whose_cells (struct table *t, const Nui__Meta__V1__JobStatus *s)
{
    table_text (t, s->grid_job_id);
    table_text (t, text_or_null (s->name));
    table_text (t, s->submitter);
    table_text (t, text_or_null (s->account));
    table_text (t, grid_state_name (s->state));
}

static void price_cells (struct table *t, const Nui__Meta__V1__JobStatus *s)
{
    table_credits (t, s->price_micro);
    if (s->cost_max_micro)
        table_credits (t, s->cost_max_micro);
    else
        table_null (t);
}

static struct table *status_record (const Nui__Meta__V1__JobStatus *s)
{
    struct table *t = table_create (status_columns, sizeof status_columns / sizeof *status_columns);
    whose_cells (t, s);
    table_text (t, reason_text (s->reason));
    table_time (t, s->submit_us);
    table_time (t, time_or_none (s->start_us));
    table_bool (t, s->start_is_estimate);
    table_time (t, time_or_none (s->end_us));
    exit_cell (t, s);
    charged_cell (t, s);
    table_time (t, time_or_none (files_until (s)));
    price_cells (t, s);
    table_int (t, s->attempts);
    table_int (t, s->retries);
    forecast_cells (t, grid_forecast_of (s));
    table_end_row (t);
    return t;
}

static bool has_code (const Nui__Local__V1__JobInfo *job, const char *code)
{
    return job && job->reason && !strcmp (job->reason->code, code);
}

/* It has ended well, and its files are being taken away. */
static bool leaving (const Nui__Local__V1__JobInfo *job)
{
    return job->state == NUI__LOCAL__V1__JOB_STATE__JOB_COMPLETED &&
           !strcmp (job->stage_out, "Leaving");
}

static void component_row (struct table *t, const Nui__Meta__V1__ComponentStatus *c)
{
    const Nui__Local__V1__JobInfo *job = c->job;
    table_text (t, c->name);
    table_text (t, text_or_null (c->site));
    if (!job) {
        for (size_t i = 2; i < sizeof component_columns / sizeof *component_columns; i++)
            table_null (t);
        table_end_row (t);
        return;
    }
    table_text (t, text_or_null (job->site_job_id));
    table_text (t, leaving (job) ? "StageOut" : grid_part_state_name (job->state));
    table_int (t, job->procs);
    struct strbuf hosts = STRBUF_INIT;
    for (size_t i = 0; i < job->n_hosts; i++)
        strbuf_printf (&hosts, "%s%s", i ? "," : "", job->hosts[i]);
    table_text (t, hosts.len ? strbuf_text (&hosts) : NULL);
    strbuf_free (&hosts);
    table_time (t, time_or_none (job->start_us));
    table_time (t, time_or_none (job->end_us));
    if (job->end_us)
        table_int (t, job->exit_code);
    else
        table_null (t);
    table_text (t, text_or_null (job->account));
    table_credits (t, job->held_micro);
    if (job->charged)
        table_credits (t, job->charged_micro);
    else
        table_null (t);
    table_text (t, reason_text (job->reason));
    table_end_row (t);
}

/* What the site itself knows better: how far its files are, what the bank has charged. The metascheduler hears of a job
 * when something else changes. */
static void site_asked (struct cli_context *ctx, Nui__Meta__V1__ComponentStatus *c)
{
    Nui__Local__V1__JobInfo *job = c->job;
    ProtobufCMessage *now = NULL;
    struct rpcclient *site = NULL;
    if (!job || (!job->end_us && !job->n_transfers && !has_code (job, "StageIn") &&
                 job->state != NUI__LOCAL__V1__JOB_STATE__JOB_RESERVED))
        return;
    Nui__Local__V1__JobRequest request = NUI__LOCAL__V1__JOB_REQUEST__INIT;
    request.job_id = job->site_job_id;
    if (*c->site_server)
        site = grid_site_open (ctx, c, NULL);
    if (site && rpcclient_call (site, &nui__local__v1__local__descriptor, "Job", &request.base,
                                SITE_PATIENCE_S * US_PER_S, true, &now, NULL) == 0) {
        Nui__Local__V1__JobInfo *own = (Nui__Local__V1__JobInfo *)now;
        job->charged = own->charged;
        job->charged_micro = own->charged_micro;
        job->kept_us = own->kept_us;
        Nui__Common__V1__TransferInfo **transfers = job->transfers;
        size_t count = job->n_transfers;
        job->transfers = own->transfers;
        job->n_transfers = own->n_transfers;
        own->transfers = transfers;
        own->n_transfers = count;
    }
    if (now)
        protobuf_c_message_free_unpacked (now, NULL);
    rpcclient_destroy (site);
}

static const struct table_column array_columns[] = {
    {"state", "STATE", TABLE_TEXT, 0},
    {"count", "COUNT", TABLE_INT, 0},
    {"indexes", "INDEXES", TABLE_TEXT, 0},
};

static const struct table_column whole_columns[] = {
    {"job_id", "Job", TABLE_TEXT, 0},
    {"name", "Name", TABLE_TEXT, 0},
    {"submitter", "Submitter", TABLE_TEXT, 0},
    {"account", "Account", TABLE_TEXT, 0},
    {"state", "State", TABLE_TEXT, 0},
    {"jobs", "Jobs", TABLE_INT, 0},
    {"limit", "At one time", TABLE_INT, 0},
    {"sites", "Sites", TABLE_TEXT, 0},
    {"submit_time", "Submitted", TABLE_TIME, 0},
    {"start_time", "First start", TABLE_TIME, 0},
    {"end_time", "Last end", TABLE_TIME, 0},
    {"price_max", "Price at most", TABLE_CREDITS, 0},
    {"cost_bound", "Each signed for at most", TABLE_CREDITS, 0},
};

static struct table *whole_record (const Nui__Meta__V1__JobStatus *s)
{
    struct table *t = TABLE_CREATE (whole_columns);
    struct strbuf sites = STRBUF_INIT;
    for (size_t i = 0; i < s->array->n_sites; i++)
        strbuf_printf (&sites, "%s%s", i ? "," : "", s->array->sites[i]);
    whose_cells (t, s);
    table_int (t, s->array->count);
    if (s->array->limit)
        table_int (t, s->array->limit);
    else
        table_null (t);
    table_text (t, text_or_null (strbuf_text (&sites)));
    table_time (t, s->submit_us);
    table_time (t, time_or_none (s->start_us));
    table_time (t, time_or_none (s->end_us));
    price_cells (t, s);
    table_end_row (t);
    strbuf_free (&sites);
    return t;
}

/* An array, or a part of one: how many of it are in which state. */
static int array_print (struct cli_context *ctx, const Nui__Meta__V1__JobStatus *s,
                        struct jsonout *json)
{
    struct table *record = whole_record (s), *states = TABLE_CREATE (array_columns);
    int code;
    for (size_t i = 0; i < s->array->n_counts; i++) {
        table_text (states, grid_state_name (s->array->counts[i]->state));
        table_int (states, s->array->counts[i]->count);
        table_text (states, text_or_null (s->array->counts[i]->indexes));
        table_end_row (states);
    }
    if (json) {
        jsonout_object (json);
        jsonout_key (json, "job");
        table_to_json_row (record, 0, json);
        jsonout_key (json, "array");
        table_to_json (states, json);
        jsonout_end (json);
        code = CLI_OK;
    } else if (cli_format (ctx) == CLI_CSV) {
        code = table_print (states, ctx);
    } else {
        code = table_print_record (record, ctx);
        putchar ('\n');
        if (code == CLI_OK)
            code = table_print (states, ctx);
    }
    table_destroy (states);
    table_destroy (record);
    return code;
}

/* Where there is json, into it. */
static int status_print (struct cli_context *ctx, const Nui__Meta__V1__JobStatus *s,
                         struct jsonout *json)
{
    if (s->array)
        return array_print (ctx, s, json);
    struct table *files = transfers_table ();
    for (size_t i = 0; i < s->n_components; i++) {
        Nui__Meta__V1__ComponentStatus *c = s->components[i];
        site_asked (ctx, c);
        if (c->job)
            transfers_rows (files, c->name, c->job->transfers, c->job->n_transfers);
    }
    struct table *record = status_record (s);
    struct table *parts =
        table_create (component_columns, sizeof component_columns / sizeof *component_columns);
    for (size_t i = 0; i < s->n_components; i++)
        component_row (parts, s->components[i]);
    struct table *answers = answers_table (s);
    int code;
    if (json) {
        jsonout_object (json);
        jsonout_key (json, "job");
        table_to_json_row (record, 0, json);
        jsonout_key (json, "components");
        table_to_json (parts, json);
        jsonout_key (json, "answers");
        table_to_json (answers, json);
        jsonout_key (json, "transfers");
        table_to_json (files, json);
        jsonout_end (json);
        code = CLI_OK;
    } else if (cli_format (ctx) == CLI_CSV)
        code = table_print (parts, ctx);
    else {
        code = table_print_record (record, ctx);
        putchar ('\n');
        if (code == CLI_OK)
            code = table_print (parts, ctx);
        if (code == CLI_OK && table_row_count (files)) {
            putchar ('\n');
            code = table_print (files, ctx);
        }
        if (code == CLI_OK && waits (s) && table_row_count (answers)) {
            putchar ('\n');
            code = table_print (answers, ctx);
        }
    }
    table_destroy (files);
    table_destroy (answers);
    table_destroy (parts);
    table_destroy (record);
    return code;
}

static int status_one (struct cli_context *ctx, const char *command, char *id, struct jsonout *json)
{
    Nui__Meta__V1__JobRequest request = NUI__META__V1__JOB_REQUEST__INIT;
    ProtobufCMessage *reply = NULL;
    struct err err;
    err_clear (&err);
    request.grid_job_id = id;
    if (grid_call (ctx, "Status", &request.base, &reply, &err) < 0)
        return cli_fail (command, &err);
    int code = status_print (ctx, (Nui__Meta__V1__JobStatus *)reply, json);
    protobuf_c_message_free_unpacked (reply, NULL);
    return code;
}

/* As JSON one that was named is an object, several, and what a filter found, are a list. */
static int status_all (struct cli_context *ctx, const char *command,
                       const struct selection *selection)
{
    struct strbuf out = STRBUF_INIT;
    struct jsonout json = jsonout_make (&out);
    const bool list = selection->filtered || selection->count > 1;
    const bool is_json = cli_format (ctx) == CLI_JSON;
    int code = CLI_OK;
    if (is_json && list)
        jsonout_array (&json);
    for (uint32_t i = 0; i < selection->count; i++) {
        if (i && !is_json)
            putchar ('\n');
        int one = status_one (ctx, command, selection->id[i], is_json ? &json : NULL);
        code = code == CLI_OK ? one : code;
    }
    if (is_json && list)
        jsonout_end (&json);
    if (is_json && out.len) {
        int written = cli_output (&out);
        code = code == CLI_OK ? written : code;
    }
    strbuf_free (&out);
    return code;
}

static const struct cli_option status_options[] = {SELECT_FILTERS, {0}};

static int status_run (struct cli_context *ctx, int argc, char **argv)
{
    struct select_args args = {0};
    struct selection selection;
    struct cli_operands operands;
    int code;
    if (!cli_options (ctx, status_options, 0, &args, argc, argv, &operands, &code))
        return code;
    struct arena *arena = arena_create (0);
    code = select_jobs (ctx, argv[0], &args, &operands, SELECT_WHOLE, args.filter.state != NULL,
                        arena, &selection);
    if (code == CLI_OK && cli_format (ctx) == CLI_CSV && selection.count > 1)
        code = cli_usage (argv[0], "--csv is of one job: these are %u; nui jobs --csv lists many",
                          selection.count);
    if (code == CLI_OK)
        code = status_all (ctx, argv[0], &selection);
    arena_destroy (arena);
    return code;
}

const struct cli_command status_command = {
    .name = "status",
    .group = CLI_USERS,
    .summary = "everything about jobs, with the reason they wait",
    .run = status_run,
    .help = "nui status [options] [JOB...]",
    .text =
        "Each job and each of its components: where, since when, why it waits or how it ended. Options\n"
        "say which, of those that are named or of all of yours that have not ended.",
    .options = status_options,
    .example = "nui status grid.42\n"
               "nui status --state Pending --name 'run-*'",
};

/* ---- sites */

static const struct table_column sites_columns[] = {
    {"site", "SITE", TABLE_TEXT, 0},
    {"state", "STATE", TABLE_TEXT, 0},
    {"nodes_up", "NODES", TABLE_INT, 0},
    {"nodes_total", "OF", TABLE_INT, 0},
    {"procs_free", "FREE", TABLE_INT, 0},
    {"procs_total", "PROCS", TABLE_INT, 0},
    {"procs_per_node_max", "PERNODE", TABLE_INT, 0},
    {"jobs_running", "RUNNING", TABLE_INT, 0},
    {"jobs_queued", "QUEUED", TABLE_INT, 0},
    {"estimate_coverage_95", "IN95%", TABLE_PPM, 2},
    {"estimate_median_error", "ESTERROR", TABLE_DURATION, 0},
    {"report_age", "REPORTED", TABLE_DURATION, 0},
    {"clock", "CLOCK", TABLE_TEXT, 0},
    {"server", "SERVER", TABLE_TEXT, 0, .spare = 1},
};

static void sites_row (struct table *table, const Nui__Meta__V1__SiteState *s, time_us now)
{
    char clock[64];
    table_text (table, s->name);
    table_text (table, s->up ? "Up" : "Down");
    if (!s->report || !s->reported_us) {
        for (int i = 0; i < 11; i++)
            table_null (table);
    } else {
        table_int (table, s->report->nodes_up);
        table_int (table, s->report->nodes_total);
        table_int (table, s->report->procs_free);
        table_int (table, s->report->procs_total);
        table_int (table, s->report->procs_per_node_max);
        table_int (table, s->report->jobs_running);
        table_int (table, s->report->jobs_queued);
        const Nui__Common__V1__EstimateRecord *all =
            s->report->n_records && s->report->records[0]->uncertain ? s->report->records[0] : NULL;
        if (all) {
            table_ppm (table, all->coverage95_ppm);
            table_duration (table, all->median_error_us);
        } else {
            table_null (table);
            table_null (table);
        }
        table_duration (table, now > s->reported_us ? now - s->reported_us : 0);
        table_text (table, clocks_text (s->clock_ahead_us, "ahead", clock));
    }
    table_text (table, text_or_null (s->server));
    table_end_row (table);
}

static const struct table_column record_columns[] = {
    {"site", "SITE", TABLE_TEXT, 0},          {"class", "CLASS", TABLE_TEXT, 0},
    {"answers", "ANSWERS", TABLE_TEXT, 0},    {"scored", "SCORED", TABLE_INT, 0},
    {"uncertain", "UNCERTAIN", TABLE_INT, 0}, {"coverage_50", "IN50%", TABLE_PPM, 2},
    {"coverage_95", "IN95%", TABLE_PPM, 2},   {"median_error", "ERROR", TABLE_DURATION, 0},
    {"bias_s", "BIAS", TABLE_PPM, 0},         {"earned", "EARNED", TABLE_BOOL, 0},
};

/* How each site's estimates held, all and by class. */
static int records_print (struct cli_context *ctx, const Nui__Meta__V1__SitesReply *answer)
{
    struct table *t = table_create (record_columns, sizeof record_columns / sizeof *record_columns);
    for (size_t i = 0; i < answer->n_sites; i++) {
        const Nui__Meta__V1__SiteState *s = answer->sites[i];
        for (size_t k = 0; s->report && k < s->report->n_records; k++) {
            table_text (t, s->name);
            estimate_record_cells (t, s->report->records[k]);
            table_end_row (t);
        }
    }
    int code = table_print (t, ctx);
    table_destroy (t);
    return code;
}

struct sites_args {
    bool estimates;
};

static const struct cli_option sites_options[] = {
    {"estimates", 'e', CLI_OPT_FLAG, NULL, "that in full, for each site and class",
     offsetof (struct sites_args, estimates)},
    {0},
};

static int sites_run (struct cli_context *ctx, int argc, char **argv)
{
    struct sites_args args = {0};
    struct cli_operands operands;
    struct err err;
    int code;
    err_clear (&err);
    if (!cli_options (ctx, sites_options, 0, &args, argc, argv, &operands, &code))
        return code;
    if (operands.count)
        return cli_usage (argv[0], "'%s' is one too many", operands.item[0]);
    Nui__Meta__V1__SitesRequest request = NUI__META__V1__SITES_REQUEST__INIT;
    ProtobufCMessage *reply = NULL;
    if (grid_call (ctx, "Sites", &request.base, &reply, &err) < 0)
        return cli_fail (argv[0], &err);
    const Nui__Meta__V1__SitesReply *answer = (const Nui__Meta__V1__SitesReply *)reply;
    if (args.estimates) {
        code = records_print (ctx, answer);
        protobuf_c_message_free_unpacked (reply, NULL);
        return code;
    }
    struct table *table =
        table_create (sites_columns, sizeof sites_columns / sizeof *sites_columns);
    for (size_t i = 0; i < answer->n_sites; i++)
        sites_row (table, answer->sites[i], clock_now_us ());
    code = table_print (table, ctx);
    char clock[64];
    if (clocks_text (answer->bank_clock_ahead_us, "ahead of", clock))
        fprintf (stderr, "nui sites: the bank's clock is %s the metascheduler's\n", clock);
    table_destroy (table);
    protobuf_c_message_free_unpacked (reply, NULL);
    return code;
}

const struct cli_command sites_command = {
    .name = "sites",
    .group = CLI_USERS,
    .summary = "sites, their state and what is free",
    .run = sites_run,
    .help = "nui sites [--estimates]",
    .text =
        "Down: no report for 30 seconds. IN95%, ESTERROR: how its start-time estimates held in\n"
        "the last four weeks.",
    .options = sites_options,
};

/* ---- whoami */

static const struct table_column whoami_columns[] = {
    {"identity", "Identity", TABLE_TEXT, 0},
    {"kind", "Kind", TABLE_TEXT, 0},
    {"grid", "Grid", TABLE_TEXT, 0},
    {"certificate_end_time", "Certificate ends", TABLE_TIME, 0},
    {"certificate_left", "It lasts", TABLE_DURATION, 0},
};

static int whoami_run (struct cli_context *ctx, int argc, char **argv)
{
    struct err err;
    int code;
    err_clear (&err);
    if (!alone (ctx, argc, argv, &code))
        return code;
    Nui__Meta__V1__WhoAmIRequest request = NUI__META__V1__WHO_AM_IREQUEST__INIT;
    ProtobufCMessage *reply = NULL;
    struct tlsid *me = cli_identity (ctx, &err);
    if (!me || grid_call (ctx, "WhoAmI", &request.base, &reply, &err) < 0)
        return cli_fail (argv[0], &err);
    const Nui__Meta__V1__WhoAmIReply *answer = (const Nui__Meta__V1__WhoAmIReply *)reply;
    time_us end = tlsid_cert_end (me), now = clock_now_us ();
    struct table *table =
        table_create (whoami_columns, sizeof whoami_columns / sizeof *whoami_columns);
    table_text (table, answer->identity);
    table_text (table, answer->kind);
    table_text (table, answer->grid);
    table_time (table, time_or_none (end));
    table_duration (table, end > now ? end - now : 0);
    table_end_row (table);
    code = table_print_record (table, ctx);
    table_destroy (table);
    protobuf_c_message_free_unpacked (reply, NULL);
    return code;
}

const struct cli_command whoami_command = {
    .name = "whoami",
    .group = CLI_USERS,
    .summary = "my identity as the grid sees it",
    .run = whoami_run,
    .help = "nui whoami",
};
