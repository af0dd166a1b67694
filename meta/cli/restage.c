/* restage: files that could not be taken away from where a job ran are tried once more. */
#include <string.h>

#include "meta/cli/grid.h"
#include "meta/cli/select.h"
#include "proto/cli/transfers.h"

struct restage_options {
    bool list;
    const char *site;
};

static const struct cli_option options[] = {
    {"list", 'l', CLI_OPT_FLAG, NULL, NULL, offsetof (struct restage_options, list)},
    {"site", 0, CLI_OPT_STRING, NULL, NULL, offsetof (struct restage_options, site)},
    {0},
};

/* A job of one site, from the site itself. */
static int at_site (struct cli_context *ctx, const struct restage_options *given, char *id,
                    struct table *files, struct err *err)
{
    Nui__Local__V1__RestageRequest request = NUI__LOCAL__V1__RESTAGE_REQUEST__INIT;
    ProtobufCMessage *message = NULL;
    struct rpcclient *site = cli_site (ctx, given->site, err);
    request.job_id = id;
    request.look = given->list;
    if (!site)
        return err->code;
    int rc = rpcclient_call (site, &nui__local__v1__local__descriptor, "Restage", &request.base,
                             GRID_CALL_TIMEOUT_S * US_PER_S, true, &message, err);
    if (rc != 0)
        return rc;
    const Nui__Local__V1__RestageReply *reply = (const Nui__Local__V1__RestageReply *)message;
    transfers_rows (files, reply->component, reply->transfers, reply->n_transfers);
    protobuf_c_message_free_unpacked (message, NULL);
    return 0;
}

/* Of all its sites; what one of several sites refuses is said. */
static int at_grid (struct cli_context *ctx, const char *command, bool list, char *id,
                    struct table *files, bool *refused, struct err *err)
{
    Nui__Meta__V1__RestageRequest request = NUI__META__V1__RESTAGE_REQUEST__INIT;
    ProtobufCMessage *message = NULL;
    request.grid_job_id = id;
    request.look = list;
    int rc = grid_call (ctx, "Restage", &request.base, &message, err);
    if (rc != 0)
        return rc;
    const Nui__Meta__V1__RestageReply *reply = (const Nui__Meta__V1__RestageReply *)message;
    for (size_t i = 0; i < reply->n_parts; i++) {
        const Nui__Meta__V1__RestagePart *part = reply->parts[i];
        if (part->reply) {
            transfers_rows (files, part->component, part->reply->transfers,
                            part->reply->n_transfers);
            continue;
        }
        *refused = true;
        fprintf (stderr, "nui %s: component %s at %s: %s\n", command, part->component, part->site,
                 part->reason ? part->reason->text : "no answer");
    }
    protobuf_c_message_free_unpacked (message, NULL);
    return 0;
}

static int restage (struct cli_context *ctx, const char *command,
                    const struct restage_options *given, const char *text, struct table *files)
{
    char id[2 * QUANTITY_TEXT_MAX];
    struct err err;
    uint32_t before = table_row_count (files);
    bool refused = false;
    err_clear (&err);
    if (grid_job_id (ctx, text, id, sizeof id, &err) < 0)
        return cli_usage (command, "%s", err.text);
    int rc = given->site || strncmp (id, "grid.", 5) != 0
                 ? at_site (ctx, given, id, files, &err)
                 : at_grid (ctx, command, given->list, id, files, &refused, &err);
    if (rc == 0 && !refused && table_row_count (files) == before)
        rc = err_set (&err, ERR_CONFLICT, "no file of job %s has failed to be taken away", id);
    return rc != 0 ? cli_fail (command, &err) : refused ? CLI_FAILED : CLI_OK;
}

/* Of an array, or of some of it, each that has files left; most have none. */
static int restage_array (struct cli_context *ctx, const char *command,
                          const struct restage_options *given, const char *text,
                          struct table *files)
{
    const struct select_args all = {0};
    struct cli_operands one = {1, (char *[]){(char *)(uintptr_t)text}};
    struct arena *arena = arena_create (0);
    struct selection selection;
    struct err err;
    uint32_t before = table_row_count (files);
    bool refused = false;
    err_clear (&err);
    int code = select_jobs (ctx, command, &all, &one, SELECT_EACH, true, arena, &selection);
    for (uint32_t i = 0; code == CLI_OK && i < selection.count; i++) {
        int rc = at_grid (ctx, command, given->list, selection.id[i], files, &refused, &err);
        if (rc != 0 && rc != ERR_CONFLICT && rc != ERR_NOT_FOUND)
            code = cli_fail (command, &err);
    }
    if (code == CLI_OK && !refused && table_row_count (files) == before) {
        err_set (&err, ERR_CONFLICT, "no file of %s has failed to be taken away", text);
        code = cli_fail (command, &err);
    }
    arena_destroy (arena);
    return code == CLI_OK && refused ? CLI_FAILED : code;
}

static int restage_run (struct cli_context *ctx, int argc, char **argv)
{
    struct restage_options given = {0};
    struct cli_operands operands;
    int code, all = CLI_OK;
    if (!cli_options (ctx, options, 0, &given, argc, argv, &operands, &code))
        return code;
    if (!operands.count)
        return cli_usage (argv[0], "at least one job is needed, as in nui restage grid.42");
    struct table *files = transfers_table ();
    for (int i = 0; i < operands.count; i++) {
        bool array = false;
        code = given.site ? CLI_OK : grid_names_array (ctx, argv[0], operands.item[i], &array);
        if (code == CLI_OK)
            code =
                (array ? restage_array : restage) (ctx, argv[0], &given, operands.item[i], files);
        all = all == CLI_OK ? code : all;
    }
    code = table_row_count (files) || cli_format (ctx) != CLI_TABLE ? table_print (files, ctx)
                                                                    : CLI_OK;
    table_destroy (files);
    return all == CLI_OK ? code : all;
}

const struct cli_command restage_command = {
    .name = "restage",
    .group = CLI_USERS,
    .summary = "take files away once more that could not be",
    .run = restage_run,
    .help = "nui restage [options] JOB...",
    .text =
        "Begins the transfers of --stage-out that failed once more, while the sites still keep the\n"
        "files, and shows them. JOB: of the grid, or of one site (alpha.17).",
    .options = options,
    .example = "nui restage --list grid.42",
};
