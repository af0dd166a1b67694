/* showhold, setdeadline, mrsvctl: commands of forms that stand on what the others have: the queue, a change of a job,
 * reservations. */
#include <string.h>
#include <strings.h>

#include "local/cli/local_cli.h"
#include "proto/cli/message.h"

/* --- showhold --------------------------------------------------------------------------------- */

static const struct table_column hold_columns[] = {
    {"job_id", "JobName", TABLE_TEXT},
    {"user", "User", TABLE_TEXT},
    {"holds", "Hold", TABLE_TEXT},
    {"submit_time", "QueueTime", TABLE_TIME},
    {"reason", "Reason", TABLE_TEXT, .from = "reason.text"},
};

static int showhold_run (struct cli_context *ctx, const struct cli_said *said)
{
    Nui__Local__V1__QueueRequest request = NUI__LOCAL__V1__QUEUE_REQUEST__INIT;
    struct queue q = {.arena = said->arena, .totals = {.site = (char *)""}};
    struct err err = {0};
    request.section = NUI__LOCAL__V1__QUEUE_SECTION__SECTION_BLOCKED;
    if (said_given (said, "user"))
        request.user = (char *)said_text (said, "user");
    if (queue_fetch (ctx, said_text (said, "site"), &request, &q, &err) < 0)
        return cli_fail ("showhold", &err);
    struct table *t = TABLE_CREATE (hold_columns);
    for (uint32_t i = 0; i < q.count; i++)
        if (q.row[i].n_holds)
            TABLE_ROW (t, &q.row[i]);
    return table_print_done (t, ctx);
}

static const struct cli_option showhold_options[] = {
    {"user", 'u', CLI_OPT_STRING, "USER", "jobs of one account only"},
    SITE_SAID,
    {0},
};

static const struct cli_form showhold_forms[] = {{"[-u USER] [--site NAME]", showhold_run}, {0}};

const struct cli_command showhold_command = {
    .name = "showhold",
    .group = CLI_CLUSTER,
    .summary = "jobs that are held, by which holds, and why",
    .forms = showhold_forms,
    .options = showhold_options,
    .service = &site_service,
    .text = "Plain users see their own jobs.",
    .example = "nui showhold",
};

/* --- setdeadline ------------------------------------------------------------------------------ */

static int setdeadline_run (struct cli_context *ctx, const struct cli_said *said)
{
    return modify_all (ctx, "setdeadline", said_text (said, "site"), "deadline",
                       said_operand (said, 0), said->operands.item + 1, said->operands.count - 1,
                       "job deadline adjusted");
}

static const struct cli_option setdeadline_options[] = {SITE_SAID, {0}};

static const struct cli_form setdeadline_forms[] = {{"TIME JOB… [--site NAME]", setdeadline_run},
                                                    {0}};

const struct cli_command setdeadline_command = {
    .name = "setdeadline",
    .group = CLI_CLUSTER,
    .summary = "say when waiting jobs have to be done",
    .forms = setdeadline_forms,
    .options = setdeadline_options,
    .service = &site_service,
    .text =
        "TIME is 14:30, 17:00_04/14 or +2:00:00; 0: none. A job that cannot end by then any more is\n"
        "cancelled. One's own jobs; everybody's for ADMIN1 and ADMIN2.",
    .example = "nui setdeadline +8:00:00 alpha.17",
};

/* --- mrsvctl ---------------------------------------------------------------------------------- */

/* "USER==john,GROUP==staff" into the lists of setres. */
static int take_acl (struct cli_context *ctx, const struct cli_said *said,
                     const struct cli_option *option, ProtobufCMessage *request, struct err *err)
{
    Nui__Local__V1__SetResRequest *r = (Nui__Local__V1__SetResRequest *)request;
    const struct {
        const char *kind;
        char **list;
    } known[] = {{"USER", &r->users},       {"GROUP", &r->groups},
                 {"ACCOUNT", &r->accounts}, {"ACCT", &r->accounts},
                 {"CLASS", &r->classes},    {"QUEUE", &r->classes},
                 {"QOS", &r->qos},          {"DURATION", &r->job_duration},
                 {"PROC", &r->job_procs},   {"JATTR", &r->job_attributes}};
    char *save = NULL, *text = arena_strdup (said->arena, said_value (said, option)->text);
    (void)ctx;
    for (char *word = strtok_r (text, ",", &save); word; word = strtok_r (NULL, ",", &save)) {
        size_t n = strspn (word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"), k = 0;
        char *value = word + n;
        while (k < sizeof known / sizeof *known &&
               (strlen (known[k].kind) != n || strncasecmp (known[k].kind, word, n) != 0))
            k++;
        bool compares = k < sizeof known / sizeof *known &&
                        (known[k].list == &r->job_duration || known[k].list == &r->job_procs);
        if (k == sizeof known / sizeof *known || !*value || !strchr ("=<>:", *value))
            return err_set (err, ERR_INVALID,
                            "-a '%.60s': wanted USER==NAME, GROUP==, ACCOUNT==, "
                            "CLASS==, QOS==, DURATION<= or PROC<=",
                            word);
        if (!compares)
            value += strspn (value, "=:");
        *known[k].list =
            arena_printf (said->arena, "%s%s%s", *known[k].list, **known[k].list ? ":" : "", value);
    }
    return 0;
}

/* -t 4: so many tasks. */
static int take_tasks (struct cli_context *ctx, const struct cli_said *said,
                       const struct cli_option *option, ProtobufCMessage *request, struct err *err)
{
    (void)ctx, (void)err;
    ((Nui__Local__V1__SetResRequest *)request)->expression = arena_printf (
        said->arena, "TASKS==%llu", (unsigned long long)said_value (said, option)->count);
    return 0;
}

static int mrsvctl_create (struct cli_context *ctx, const struct cli_said *said)
{
    if (said_given (said, "hosts") == said_given (said, "tasks"))
        return cli_usage ("mrsvctl", "-c: say -h HOSTS or -t TASKS");
    return setres_send (ctx, "mrsvctl", said);
}

static int mrsvctl_list (struct cli_context *ctx, const struct cli_said *said)
{
    Nui__Local__V1__ReservationsRequest request = NUI__LOCAL__V1__RESERVATIONS_REQUEST__INIT;
    struct reservations rsv = {.arena = arena_create (0)};
    struct strbuf out = STRBUF_INIT;
    struct err err = {0};
    int code;
    if (reservations_ask (ctx, said_text (said, "site"), &request, &rsv, &err) < 0) {
        code = cli_fail ("mrsvctl", &err);
    } else if (cli_format (ctx) == CLI_TABLE) {
        showres_text (&rsv, (struct showres_look){.noheader = cli_noheader (ctx)}, &out);
        code = cli_output (&out);
    } else {
        code = table_print_done (reservations_table (&rsv, false), ctx);
    }
    strbuf_free (&out);
    reservations_free (&rsv);
    return code;
}

static int mrsvctl_query (struct cli_context *ctx, const struct cli_said *said)
{
    const char *name = said_operand (said, 0);
    return diagnose_reservations (ctx, said_text (said, "site"),
                                  strcasecmp (name, "ALL") == 0 ? NULL : name);
}

static int mrsvctl_release (struct cli_context *ctx, const struct cli_said *said)
{
    struct table *t = TABLE_CREATE (release_columns);
    int all = CLI_OK;
    for (int i = 0; i < said->operands.count; i++)
        all = worse (
            all, release_one (ctx, "mrsvctl", said_text (said, "site"), said->operands.item[i], t));
    if (cli_format (ctx) != CLI_TABLE)
        return worse (all, table_print_done (t, ctx));
    table_destroy (t);
    return all;
}

static const struct cli_option mrsvctl_options[] = {
    {"create", 'c', CLI_OPT_FLAG, NULL, "as setres"},
    {"list", 'l', CLI_OPT_FLAG, NULL, "as showres"},
    {"query", 'q', CLI_OPT_FLAG, NULL, "as diagnose -r, of one or ALL"},
    {"release", 'r', CLI_OPT_FLAG, NULL, "as releaseres"},
    {"acl", 'a', CLI_OPT_STRING, "KIND==NAME,…",
     "who may use it: USER==john,GROUP==staff; also ACCOUNT, CLASS, QOS, DURATION<=, PROC<=",
     .take = take_acl},
    {"hosts", 'h', CLI_OPT_STRING, "HOSTS", "ALL, n[1-4] or a regular expression",
     .field = "expression"},
    {"tasks", 't', CLI_OPT_COUNT, "N", "or so many tasks where there is room", .min = 1,
     .max = 1 << 20, .take = take_tasks},
    {"start", 's', CLI_OPT_STRING, "TIME", "14:30, 17:00_04/14, +2:00:00 (default: now)",
     .take = take_moment},
    {"end", 'e', CLI_OPT_STRING, "TIME", "its end", .take = take_moment},
    {"duration", 'd', CLI_OPT_DURATION, "TIME", "or its length"},
    {"name", 'n', CLI_OPT_STRING, "NAME", "its name begins so"},
    {"features", 'f', CLI_OPT_STRING, "LIST", "tasks on nodes with these"},
    {"flags", 'F', CLI_OPT_STRING, "LIST", "as setres -x"},
    SITE_SAID,
    {0},
};

static const struct cli_form mrsvctl_forms[] = {
    {"-c [-a ACL] [-h HOSTS] [-t N] [-s TIME] [-e TIME] [-d TIME] [-n NAME] [-f LIST] [-F LIST] "
     "[--site NAME]",
     mrsvctl_create, .method = "SetRes"},
    {"-l [--site NAME]", mrsvctl_list},
    {"-q RESERVATION [--site NAME]", mrsvctl_query},
    {"-r RESERVATION… [--site NAME]", mrsvctl_release},
    {0}};

const struct cli_command mrsvctl_command = {
    .name = "mrsvctl",
    .group = CLI_CLUSTER,
    .summary = "reservations: made, listed, diagnosed, released",
    .forms = mrsvctl_forms,
    .options = mrsvctl_options,
    .service = &site_service,
    .text = "The same as setres, showres, diagnose -r and releaseres, in other words.",
    .example = "nui mrsvctl -c -a USER==john -t 4 -d 1:00:00",
};
