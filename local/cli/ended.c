/* showq -c: jobs that have ended at one site, out of its history. A day's, unless a time is said. */
#include <string.h>

#include "local/cli/local_cli.h"
#include "local/cli/stats_cli.h"
#include "proto/base/clock.h"
#include "proto/nui/v1/stats.pb-c.h"

#define ENDED_SINCE (86400 * US_PER_S)

static void elapsed_cell (struct table *t, const ProtobufCMessage *message)
{
    const Nui__Local__V1__EndedJob *j = (const Nui__Local__V1__EndedJob *)message;
    if (j->start_us)
        table_duration (t, j->end_us - j->start_us);
    else
        table_null (t);
}

static void exit_cell (struct table *t, const ProtobufCMessage *message)
{
    const Nui__Local__V1__EndedJob *j = (const Nui__Local__V1__EndedJob *)message;
    if (j->start_us)
        table_int (t, j->exit_code);
    else
        table_null (t);
}

static const struct table_column ended_columns[] = {
    {"job_id", "JobName", TABLE_TEXT},
    {"name", "Name", TABLE_TEXT},
    {"user", "User", TABLE_TEXT},
    {"state", "State", TABLE_TEXT},
    {"exit_code", "CCode", TABLE_INT, .cell = exit_cell},
    {"procs", "Procs", TABLE_INT, .spare = 1},
    {"elapsed", "WallTime", TABLE_DURATION, .cell = elapsed_cell},
    {"end_time", "EndTime", TABLE_TIME, .from = "end"},
    {"grid_job_id", "GridJob", TABLE_TEXT, .spare = 2},
    {"account", "Account", TABLE_TEXT, .spare = 3},
    {"class", "Class", TABLE_TEXT, .spare = 5},
    {"qos", "QoS", TABLE_TEXT, .spare = 5},
    {"walltime", "WCLimit", TABLE_DURATION, .spare = 6},
    {"submit_time", "QueueTime", TABLE_TIME, .from = "submit", .spare = 8},
    {"start_time", "StartTime", TABLE_TIME, .from = "start", .spare = 7},
    {"hosts", "Hosts", TABLE_TEXT, .spare = 4},
    {"reason_code", "Code", TABLE_TEXT, .spare = 1},
};

struct ended {
    struct table *table;
    bool complete;
};

static void ended_on_chunk (void *arg, const ProtobufCMessage *message)
{
    struct ended *ended = arg;
    const Nui__Local__V1__ProfileChunk *chunk = (const Nui__Local__V1__ProfileChunk *)message;
    for (size_t i = 0; i < chunk->n_jobs; i++)
        table_message (ended->table, &chunk->jobs[i]->base, NULL);
    ended->complete = chunk->last;
}

int ended_show (struct cli_context *ctx, const char *site, const char *user,
                const struct cli_period *period)
{
    Nui__Local__V1__ProfileRequest request = NUI__LOCAL__V1__PROFILE_REQUEST__INIT;
    struct ended ended = {.table = TABLE_CREATE (ended_columns)};
    struct err err = {0};
    request.by = (char *)(uintptr_t) "job";
    request.user = (char *)(uintptr_t)(user ? user : "");
    request.from_us = period->from || period->to ? period->from : clock_now_us () - ENDED_SINCE;
    request.until_us = period->to;
    int rc = site_stats_stream (ctx, site, "Profile", &request, ended_on_chunk, &ended, &err);
    if (rc == 0 && !ended.complete)
        rc = err_set (&err, ERR_INTERNAL, "the site could not read its history: see its log");
    int code = rc < 0 ? cli_fail ("showq", &err) : table_print (ended.table, ctx);
    table_destroy (ended.table);
    return code;
}
