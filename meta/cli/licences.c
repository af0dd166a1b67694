/* licences: what the grid's floating licences are in use and reserved for, through time. */
#include <stdlib.h>

#include "meta/cli/grid.h"
#include "proto/base/clock.h"

typedef Nui__Meta__V1__LicenceState State;

static const struct table_column all_columns[] = {
    {"licence", "LICENCE", TABLE_TEXT, 0},  {"count", "COUNT", TABLE_INT, 0},
    {"in_use", "INUSE", TABLE_INT, 0},      {"reserved", "RESERVED", TABLE_INT, 0},
    {"free", "FREE", TABLE_INT, 0},         {"all_free_time", "ALLFREE", TABLE_TIME, 0},
    {"grid_count", "INGRID", TABLE_INT, 0},
};

static uint32_t left (const State *s, uint32_t reserved)
{
    return reserved < s->count ? s->count - reserved : 0;
}

/* What is in use is reserved as well; here each licence is counted once, so that a row adds up. */
static void all_row (struct table *t, const State *s)
{
    uint32_t all = s->n_steps ? s->steps[0]->reserved : 0, now = all > s->in_use ? all : s->in_use;
    const Nui__Meta__V1__LicenceStep *last = s->n_steps ? s->steps[s->n_steps - 1] : NULL;
    table_text (t, s->name);
    table_int (t, s->count);
    table_int (t, s->in_use);
    table_int (t, now - s->in_use);
    table_int (t, left (s, now));
    if (last && last->reserved == 0)
        table_time (t, last->from_us);
    else
        table_null (t);
    table_int (t, s->grid_count);
    table_end_row (t);
}

static const struct table_column one_columns[] = {
    {"from_time", "FROM", TABLE_TIME, 0},   {"to_time", "TO", TABLE_TIME, 0},
    {"reserved", "RESERVED", TABLE_INT, 0}, {"free", "FREE", TABLE_INT, 0},
    {"jobs", "JOBS", TABLE_TEXT, 0},
};

static const char *user_of (const char *uri)
{
    const char *slash = strrchr (uri, '/');
    return slash ? slash + 1 : uri;
}

/* "grid.4:3(alice),grid.7:1(bob)": who of those that are shown has some at that moment. */
static void jobs_cell (struct table *t, const State *s, time_us at)
{
    struct strbuf text = STRBUF_INIT;
    for (size_t i = 0; i < s->n_uses; i++) {
        const Nui__Meta__V1__LicenceUse *use = s->uses[i];
        if (use->begin_us <= at && at < use->end_us)
            strbuf_printf (&text, "%s%s:%u(%s)", text.len ? "," : "", use->grid_job_id, use->count,
                           user_of (use->submitter));
    }
    table_text (t, text.len ? strbuf_text (&text) : NULL);
    strbuf_free (&text);
}

static void one_rows (struct table *t, const State *s)
{
    for (size_t i = 0; i < s->n_steps; i++) {
        table_time (t, s->steps[i]->from_us);
        if (i + 1 < s->n_steps)
            table_time (t, s->steps[i + 1]->from_us);
        else
            table_null (t);
        table_int (t, s->steps[i]->reserved);
        table_int (t, left (s, s->steps[i]->reserved));
        jobs_cell (t, s, s->steps[i]->from_us);
        table_end_row (t);
    }
}

static int licences_run (struct cli_context *ctx, int argc, char **argv)
{
    struct cli_operands operands;
    struct err err;
    int code;
    err_clear (&err);
    if (!cli_options (ctx, NULL, 0, NULL, argc, argv, &operands, &code))
        return code;
    if (operands.count > 1)
        return cli_usage (argv[0], "'%s' is one too many", operands.item[1]);
    Nui__Meta__V1__LicencesRequest request = NUI__META__V1__LICENCES_REQUEST__INIT;
    ProtobufCMessage *reply = NULL;
    if (operands.count)
        request.licence = (char *)operands.item[0];
    if (grid_call (ctx, "Licences", &request.base, &reply, &err) < 0)
        return cli_fail (argv[0], &err);
    const Nui__Meta__V1__LicencesReply *answer = (const Nui__Meta__V1__LicencesReply *)reply;
    struct table *t = operands.count
                          ? table_create (one_columns, sizeof one_columns / sizeof *one_columns)
                          : table_create (all_columns, sizeof all_columns / sizeof *all_columns);
    for (size_t i = 0; i < answer->n_licences; i++)
        if (operands.count)
            one_rows (t, answer->licences[i]);
        else
            all_row (t, answer->licences[i]);
    code = table_print (t, ctx);
    table_destroy (t);
    protobuf_c_message_free_unpacked (reply, NULL);
    return code;
}

const struct cli_command licences_command = {
    .name = "licences",
    .group = CLI_USERS,
    .summary = "licences of the grid, in use and reserved",
    .run = licences_run,
    .help = "nui licences [LICENCE]",
    .text =
        "Of each licence that the grid counts: how many there are, how many running jobs have, how many\n"
        "are reserved now beside these, how many are free, and from when on all are. Of one: how many are reserved from\n"
        "when to when, and by which of your jobs (of operators: by whose).",
    .example = "nui licences matlab",
};
