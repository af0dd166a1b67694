/* watch and output: what a job does, and what it prints. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "meta/cli/grid.h"

/* ---- watch */

enum { WATCH_PATIENCE_S = 120 };

struct watch {
    struct cli_context *ctx;
    Nui__Meta__V1__GridJobState state;
    char *last; /* line printed before; the same one is not printed again */
    int code;
};

static void watch_line (const Nui__Meta__V1__JobStatus *s, struct strbuf *line)
{
    struct strbuf state = STRBUF_INIT;
    grid_state_text (s, &state);
    strbuf_printf (line, "%-10s %-9s", s->grid_job_id, strbuf_text (&state));
    strbuf_free (&state);
    for (size_t i = 0; s->array && i < s->array->n_sites; i++)
        strbuf_printf (line, "%s%s", i ? "," : "  ", s->array->sites[i]);
    for (size_t i = 0; i < s->n_components; i++) {
        const Nui__Meta__V1__ComponentStatus *c = s->components[i];
        if (!c->site || !*c->site)
            continue;
        strbuf_printf (line, "  %s%s%s", s->n_components > 1 ? c->name : "",
                       s->n_components > 1 ? "@" : "", c->site);
        if (c->job)
            strbuf_printf (line, " %s %s", c->job->site_job_id,
                           grid_part_state_name (c->job->state));
    }
    char when[QUANTITY_TEXT_MAX];
    if (!grid_state_ended (s->state) && s->start_us)
        strbuf_printf (line, "  %s %s", s->start_is_estimate ? "expected" : "start",
                       time_format_table (s->start_us, when));
    if (s->reason && s->reason->text && *s->reason->text)
        strbuf_printf (line, "  (%s)", s->reason->text);
}

/* One record per change: a JSON object, or a CSV row (the header before the first). */
static void watch_record (struct watch *w, const Nui__Meta__V1__JobStatus *s, struct strbuf *out)
{
    static const struct table_column columns[] = {
        {"job_id", "", TABLE_TEXT, 0},     {"state", "", TABLE_TEXT, 0},
        {"start_time", "", TABLE_TIME, 0}, {"end_time", "", TABLE_TIME, 0},
        {"reason", "", TABLE_TEXT, 0},
    };
    struct table *table = table_create (columns, sizeof columns / sizeof *columns);
    table_text (table, s->grid_job_id);
    struct strbuf state = STRBUF_INIT;
    grid_state_text (s, &state);
    table_text (table, strbuf_text (&state));
    strbuf_free (&state);
    table_time (table, s->start_us ? s->start_us : TIME_US_NONE);
    table_time (table, s->end_us ? s->end_us : TIME_US_NONE);
    table_text (table, s->reason ? s->reason->text : NULL);
    table_end_row (table);
    if (cli_format (w->ctx) == CLI_JSON) {
        struct jsonout json = jsonout_make (out);
        table_to_json_row (table, 0, &json);
    } else
        table_to_csv (table, w->last || cli_noheader (w->ctx), out);
    while (out->len && out->data[out->len - 1] == '\n')
        out->data[--out->len] = '\0';
    table_destroy (table);
}

static void watch_message (void *arg, const ProtobufCMessage *message)
{
    struct watch *w = arg;
    const Nui__Meta__V1__JobStatus *s = (const Nui__Meta__V1__JobStatus *)message;
    w->state = s->state;
    struct strbuf out = STRBUF_INIT;
    if (cli_format (w->ctx) == CLI_TABLE)
        watch_line (s, &out);
    else
        watch_record (w, s, &out);
    if (!w->last || strcmp (w->last, strbuf_text (&out))) {
        if (puts (strbuf_text (&out)) == EOF || fflush (stdout) == EOF)
            w->code = CLI_FAILED;
        free (w->last);
        w->last = strbuf_steal (&out);
    }
    strbuf_free (&out);
}

int grid_watch (struct cli_context *ctx, const char *command, const char *grid_job_id,
                Nui__Meta__V1__GridJobState *state_out)
{
    struct watch watch = {.ctx = ctx};
    struct err err;
    err_clear (&err);
    struct metas *metas = cli_metas (ctx, &err);
    if (!metas)
        return cli_fail (command, &err);
    char id[2 * QUANTITY_TEXT_MAX];
    snprintf (id, sizeof id, "%s", grid_job_id);
    Nui__Meta__V1__JobRequest request = NUI__META__V1__JOB_REQUEST__INIT;
    request.grid_job_id = id;
    int rc = metas_stream (metas, &nui__meta__v1__meta__descriptor, "Watch", &request.base,
                           watch_message, &watch, &err);
    free (watch.last);
    *state_out = watch.state;
    return rc < 0 ? cli_fail (command, &err) : watch.code;
}

static bool array_over (const Nui__Meta__V1__JobStatus *s)
{
    for (size_t i = 0; i < s->array->n_counts; i++)
        if (!grid_state_ended (s->array->counts[i]->state))
            return false;
    return true;
}

/* How many are in which state, when that changes: asked once a second, since thousands may change in one. */
static int array_watch (struct cli_context *ctx, const char *command, char *id,
                        Nui__Meta__V1__GridJobState *state_out)
{
    struct watch watch = {.ctx = ctx};
    Nui__Meta__V1__JobRequest request = NUI__META__V1__JOB_REQUEST__INIT;
    struct err err;
    bool over = false;
    request.grid_job_id = id;
    for (uint32_t silent = 0; !over && watch.code == CLI_OK;) {
        ProtobufCMessage *reply = NULL;
        err_clear (&err);
        int rc = grid_call (ctx, "Status", &request.base, &reply, &err);
        if (rc == 0) {
            silent = 0;
            watch_message (&watch, reply);
            over = array_over ((Nui__Meta__V1__JobStatus *)reply);
            protobuf_c_message_free_unpacked (reply, NULL);
        } else if (rc != ERR_UNAVAILABLE || ++silent > WATCH_PATIENCE_S) {
            watch.code = cli_fail (command, &err);
        }
        if (!over && watch.code == CLI_OK)
            sleep (1);
    }
    free (watch.last);
    *state_out = watch.state;
    return watch.code;
}

static int watch_run (struct cli_context *ctx, int argc, char **argv)
{
    struct cli_operands operands;
    int code;
    char id[GRID_ID_MAX];
    bool array;
    if (!cli_options (ctx, NULL, 0, NULL, argc, argv, &operands, &code))
        return code;
    if (operands.count != 1)
        return cli_usage (argv[0], "one job is needed, as in nui watch grid.42");
    code = grid_job_operand (ctx, argv[0], operands.item[0], id, sizeof id);
    if (code != CLI_OK)
        return code;
    Nui__Meta__V1__GridJobState state = NUI__META__V1__GRID_JOB_STATE__GRID_UNSET;
    code = grid_names_array (ctx, argv[0], id, &array);
    if (code == CLI_OK)
        code = (array ? array_watch (ctx, argv[0], id, &state)
                      : grid_watch (ctx, argv[0], id, &state));
    if (code == CLI_OK && state != NUI__META__V1__GRID_JOB_STATE__GRID_COMPLETED)
        code = CLI_FAILED;
    return code;
}

const struct cli_command watch_command = {
    .name = "watch",
    .group = CLI_USERS,
    .summary = "follow a job until it has ended",
    .run = watch_run,
    .help = "nui watch JOB",
    .text =
        "One line for each change; of an array, or of some of it, how many are in which state. Exit code 0 when the job completed, 1 when it ended otherwise.",
};

/* ---- output */

struct output_args {
    bool error;
    bool follow;
    const char *save; /* a directory; NULL: to standard output */
};

struct output_sink {
    FILE *file;
    int failed; /* errno of the first write that failed: what comes after that is not written; 0 */
};

static void output_message (void *arg, const ProtobufCMessage *message)
{
    struct output_sink *sink = arg;
    const Nui__Common__V1__OutputChunk *chunk = (const Nui__Common__V1__OutputChunk *)message;
    if (sink->failed || chunk->data.len == 0)
        return;
    if (fwrite (chunk->data.data, 1, chunk->data.len, sink->file) != chunk->data.len ||
        fflush (sink->file) == EOF)
        sink->failed = errno;
}

/* From the site itself, which checks that the job is ours. */
static int output_of (struct cli_context *ctx, const char *command,
                      const Nui__Meta__V1__ComponentStatus *c, bool error, bool follow, FILE *to)
{
    struct err err;
    err_clear (&err);
    if (!c->job || !*c->job->site_job_id || !*c->site) {
        err_set (&err, ERR_CONFLICT, "component %s has not been placed on a site", c->name);
        return cli_fail (command, &err);
    }
    struct rpcclient *site =
        *c->site_server ? grid_site_open (ctx, c, &err) : cli_site (ctx, c->site, &err);
    if (!site)
        return cli_fail (command, &err);
    Nui__Local__V1__OutputRequest request = NUI__LOCAL__V1__OUTPUT_REQUEST__INIT;
    request.job_id = c->job->site_job_id;
    request.stream = error ? (char[]){"stderr"} : (char[]){"stdout"};
    request.follow = follow;
    struct output_sink sink = {to, 0};
    int rc = rpcclient_stream (site, &nui__local__v1__local__descriptor, "Output", &request.base,
                               follow ? INT64_MAX : GRID_CALL_TIMEOUT_S * US_PER_S, output_message,
                               &sink, &err);
    if (*c->site_server) /* else it is the context's */
        rpcclient_destroy (site);
    if (sink.failed)
        rc = err_set (&err, ERR_IO, "what %s wrote cannot be written here: %s", c->job->site_job_id,
                      strerror (sink.failed));
    return rc < 0 ? cli_fail (command, &err) : CLI_OK;
}

/* One stream into a file of its own, which is there whole or not at all. */
static int output_file (struct cli_context *ctx, const char *command,
                        const Nui__Meta__V1__ComponentStatus *c, bool error, bool follow,
                        const char *path)
{
    struct strbuf part = STRBUF_INIT;
    struct err err;
    strbuf_printf (&part, "%s.part", path);
    FILE *file = fopen (strbuf_text (&part), "w");
    int code = file ? output_of (ctx, command, c, error, follow, file) : CLI_FAILED;
    bool told = file && code != CLI_OK;
    if (file && fclose (file) == EOF)
        code = CLI_FAILED;
    if (code == CLI_OK && rename (strbuf_text (&part), path) != 0)
        code = CLI_FAILED;
    if (code == CLI_OK)
        printf ("%s\n", path);
    else if (!told) {
        err_set (&err, ERR_IO, "%s: %s", path, strerror (errno));
        code = cli_fail (command, &err);
    }
    if (code != CLI_OK)
        unlink (strbuf_text (&part));
    strbuf_free (&part);
    return code;
}

/* grid.42.out and grid.42.err, of several components grid.42.left.out … */
static int output_save (struct cli_context *ctx, const char *command,
                        const Nui__Meta__V1__JobStatus *status,
                        const Nui__Meta__V1__ComponentStatus *c, const struct output_args *args)
{
    int code = CLI_OK;
    for (int error = 0; error < 2 && code == CLI_OK; error++) {
        struct strbuf path = STRBUF_INIT;
        bool several = status->n_components > 1;
        strbuf_printf (&path, "%s/%s%s%s.%s", args->save, status->grid_job_id, several ? "." : "",
                       several ? c->name : "", error ? "err" : "out");
        struct err err;
        code = grid_folders_make (args->save, "", &err) == 0
                   ? output_file (ctx, command, c, error, args->follow, strbuf_text (&path))
                   : cli_fail (command, &err);
        strbuf_free (&path);
    }
    return code;
}

static int output_all (struct cli_context *ctx, const char *command,
                       const Nui__Meta__V1__JobStatus *status, const char *component,
                       const struct output_args *args)
{
    bool found = false;
    int code = CLI_OK;
    if (status->array) {
        struct err err;
        err_set (&err, ERR_INVALID, "%s is an array: one of its jobs is needed, as in grid.42[3]",
                 status->grid_job_id);
        return cli_fail (command, &err);
    }
    for (size_t i = 0; i < status->n_components && code == CLI_OK; i++) {
        const Nui__Meta__V1__ComponentStatus *c = status->components[i];
        if (component && strcmp (component, c->name))
            continue;
        if (!args->save && !component && status->n_components > 1 && !cli_noheader (ctx))
            printf ("%s==> %s @ %s <==\n", found ? "\n" : "", c->name, c->site);
        found = true;
        code = args->save ? output_save (ctx, command, status, c, args)
                          : output_of (ctx, command, c, args->error, args->follow, stdout);
    }
    if (!found) {
        struct err err;
        err_set (&err, ERR_NOT_FOUND, "job %s has no component '%s'", status->grid_job_id,
                 component ? component : "");
        return cli_fail (command, &err);
    }
    return code;
}

static int output_job (struct cli_context *ctx, const char *command, const char *id,
                       const char *component, const struct output_args *args)
{
    struct err err;
    err_clear (&err);
    Nui__Meta__V1__JobRequest request = NUI__META__V1__JOB_REQUEST__INIT;
    request.grid_job_id = (char *)id;
    ProtobufCMessage *reply = NULL;
    if (grid_call (ctx, "Status", &request.base, &reply, &err) < 0)
        return cli_fail (command, &err);
    int code = output_all (ctx, command, (Nui__Meta__V1__JobStatus *)reply, component, args);
    protobuf_c_message_free_unpacked (reply, NULL);
    return code;
}

/* A job of a cluster itself, alpha.17: nobody else is asked. */
static int output_site_job (struct cli_context *ctx, const char *command, const char *id,
                            const char *component, const struct output_args *args)
{
    char site[PRINCIPAL_NAME_MAX];
    uint64_t number;
    Nui__Local__V1__JobInfo job = NUI__LOCAL__V1__JOB_INFO__INIT;
    Nui__Meta__V1__ComponentStatus c = NUI__META__V1__COMPONENT_STATUS__INIT, *only = &c;
    Nui__Meta__V1__JobStatus status = NUI__META__V1__JOB_STATUS__INIT;
    struct err err;
    err_clear (&err);
    if (id_parse (id, site, sizeof site, &number, &err) < 0)
        return cli_fail (command, &err);
    job.site_job_id = status.grid_job_id = (char *)(uintptr_t)id;
    c.name = (char[]){"main"};
    c.site = site;
    c.job = &job;
    status.components = &only;
    status.n_components = 1;
    return output_all (ctx, command, &status, component, args);
}

int grid_output_save (struct cli_context *ctx, const char *command, const char *grid_job_id,
                      const char *directory)
{
    struct output_args args = {.save = directory};
    return output_job (ctx, command, grid_job_id, NULL, &args);
}

static const struct cli_option output_options[] = {
    {"stderr", 0, CLI_OPT_FLAG, NULL, "standard error instead of standard output",
     offsetof (struct output_args, error)},
    {"follow", 'f', CLI_OPT_FLAG, NULL, "until the job has ended",
     offsetof (struct output_args, follow)},
    {"save", 0, CLI_OPT_STRING, "DIR", "both streams of each component, into files of DIR",
     offsetof (struct output_args, save)},
    {0},
};

static int output_run (struct cli_context *ctx, int argc, char **argv)
{
    struct output_args args = {0};
    struct cli_operands operands;
    struct err err;
    int code;
    char id[2 * QUANTITY_TEXT_MAX];
    err_clear (&err);
    if (!cli_options (ctx, output_options, 0, &args, argc, argv, &operands, &code))
        return code;
    if (cli_format (ctx) != CLI_TABLE)
        return cli_usage (argv[0], "what a job printed has no other format");
    if (args.save && (args.error || args.follow))
        return cli_usage (argv[0], "--save brings both streams of what is there now");
    if (operands.count < 1 || (!args.save && operands.count > 2))
        return cli_usage (argv[0], "a job, and perhaps a component, as in nui output grid.42 left");
    int jobs = args.save ? operands.count : 1;
    code = CLI_OK;
    for (int i = 0; i < jobs; i++) {
        int one = grid_job_operand (ctx, argv[0], operands.item[i], id, sizeof id);
        if (one != CLI_OK)
            return one;
        const char *component = !args.save && operands.count == 2 ? operands.item[1] : NULL;
        one = strncmp (id, "grid.", 5) == 0 ? output_job (ctx, argv[0], id, component, &args)
                                            : output_site_job (ctx, argv[0], id, component, &args);
        code = code == CLI_OK ? one : code;
    }
    return code;
}

const struct cli_command output_command = {
    .name = "output",
    .group = CLI_USERS,
    .summary = "what a job printed",
    .run = output_run,
    .help = "nui output [options] JOB [COMPONENT]\n"
            "nui output --save DIR JOB...",
    .text =
        "Read from the site itself, which gives it only to the job's owner. A job of one cluster alone is\n"
        "named as there, alpha.17, and needs no metascheduler.",
    .options = output_options,
};
