/* nui site, rate: what sites may do, and what they cost. */
#include <string.h>

#include "bank/cli/util.h"
#include "proto/cli/message.h"

/* ---- site ---- */

/* yes or no into the field of that name, which is not kept as it is then. */
static int take_yes_no (struct cli_context *ctx, const struct cli_said *said,
                        const struct cli_option *option, ProtobufCMessage *request, struct err *err)
{
    const char *text = said_value (said, option)->text;
    bool yes = strcmp (text, "yes") == 0;
    (void)ctx;
    if (!yes && strcmp (text, "no") != 0)
        return err_set (err, ERR_INVALID, "--%s takes yes|no, not '%.80s'", option->name, text);
    const char *keep = arena_printf (said->arena, "keep_%s", option->name);
    message_set_integer (request, message_field (request->descriptor, option->name), yes);
    message_set_integer (request, message_field (request->descriptor, keep), false);
    return 0;
}

/* A bound, which stays as it is unless set_… is true. */
static int take_bound (struct cli_context *ctx, const struct cli_said *said,
                       const struct cli_option *option, ProtobufCMessage *request, struct err *err)
{
    const char *set = arena_printf (said->arena, "set_%s", option->name);
    (void)ctx, (void)err;
    message_set_integer (request, message_field (request->descriptor, option->name),
                         said_value (said, option)->number);
    message_set_integer (request, message_field (request->descriptor, set), true);
    return 0;
}

static int site_modify (struct cli_context *ctx, const struct cli_said *said)
{
    static const char *const of_refunds[] = {"refund-cap", "refund-minimum", "refund-window"};
    static const char *const of_charges[] = {"node-procs", "proc-memory", "overrun"};
    const char *claims = said_text (said, "claims"), *refunds = said_text (said, "refunds");
    bool bounds = false, given = false;
    for (int i = 0; i < 3; i++) {
        bounds |= said_given (said, of_refunds[i]);
        given |= said_given (said, of_charges[i]);
    }
    if (!said->given)
        return cli_usage (
            "site", "say what is to change: --claims yes|no, --refunds yes|no, --refund-cap, "
                    "--refund-minimum, --refund-window, --node-procs, --proc-memory or --overrun");
    const char *sentence = arena_printf (
        said->arena, "site {site}%s%s%s%s%s",
        !claims                       ? ""
        : strcmp (claims, "yes") == 0 ? " may name users of jobs that nobody signed"
                                      : " may not name users of jobs that nobody signed",
        claims && refunds ? ";" : "",
        !refunds                       ? ""
        : strcmp (refunds, "yes") == 0 ? " gives back what it failed"
                                       : " keeps what it charged",
        !bounds             ? ""
        : claims || refunds ? "; bounds of refunds set"
                            : " has other bounds of refunds",
        !given                        ? ""
        : claims || refunds || bounds ? "; bounds of what it may charge set"
                                      : " has other bounds of what it may charge");
    int code;
    const ProtobufCMessage *request = cli_request (ctx, said, &code);
    return request ? cli_send_request (ctx, said, request, sentence) : code;
}

static const struct cli_option site_options[] = {
    {"claims", 0, CLI_OPT_STRING, "yes|no",
     "whether the site's word is enough for whose job it is, where nobody signed it (jobs given to its own "
     "cluster); no at first",
     .take = take_yes_no},
    {"refunds", 0, CLI_OPT_STRING, "yes|no",
     "whether what a job was charged that lost a node is given back by itself; no at first",
     .take = take_yes_no},
    {"refund-cap", 0, CLI_OPT_DURATION, "TIME",
     "at most what so much of the job's time cost; 0: no bound", .take = take_bound},
    {"refund-minimum", 0, CLI_OPT_CREDITS, "CREDITS", "less is not given back", .max = INT64_MAX,
     .take = take_bound},
    {"refund-window", 0, CLI_OPT_DURATION, "TIME",
     "nothing where the last charge comes later after the job's end; 0: no bound",
     .take = take_bound},
    {"node-procs", 0, CLI_OPT_INT, "N",
     "it gives nodes whole, of so many processors: jobs may be charged for the nodes that they need; 0: it does not",
     .max = 100000000, .take = take_bound},
    {"proc-memory", 0, CLI_OPT_MEMORY, "SIZE",
     "memory that goes with a processor, where it charges processor equivalents",
     .take = take_bound},
    {"overrun", 0, CLI_OPT_DURATION, "TIME",
     "jobs may run, and be charged, so long beyond their walltime", .take = take_bound},
    {0}};

static const struct table_column site_columns[] = {{"site", "Site", TABLE_TEXT, .from = "name"},
                                                   {"detail", "Detail", TABLE_TEXT}};

static const struct cli_form site_forms[] = {
    {"modify SITE [--claims yes|no] [--refunds yes|no] [--refund-cap TIME] [--refund-minimum CREDITS] "
     "[--refund-window TIME] [--node-procs N] [--proc-memory SIZE] [--overrun TIME]",
     site_modify, .method = "SiteSet", .fields = "keep_claims=true keep_refunds=true"},
    {"list", .method = "List", .fields = "kind=site", CLI_COLUMNS (site_columns)},
    {0}};

const struct cli_command site_command = {
    .name = "site",
    .group = CLI_BANK,
    .summary = "what sites may do beyond settling signed jobs, and what they owe for failures",
    .forms = site_forms,
    .options = site_options,
    .service = &bank_service,
    .example = "nui site modify alpha --claims yes",
};

/* ---- rate ---- */

static void jobs_cell (struct table *table, const ProtobufCMessage *message)
{
    table_text (table,
                ((const Nui__Bank__V1__Rate *)message)->successful_only ? "successful" : "all");
}

static void factors_cell (struct table *table, const ProtobufCMessage *message)
{
    const Nui__Bank__V1__Rate *rate = (const Nui__Bank__V1__Rate *)message;
    struct strbuf text = STRBUF_INIT;
    char number[QUANTITY_TEXT_MAX];
    for (size_t k = 0; k < rate->n_factors; k++)
        strbuf_printf (&text, "%s%s %s=%s", k ? "; " : "", rate->factors[k]->kind,
                       rate->factors[k]->name, credit_format (rate->factors[k]->ppm, number));
    table_text (table, text.len ? strbuf_text (&text) : NULL);
    strbuf_free (&text);
}

static const struct table_column rate_columns[] = {
    {"site", "Site", TABLE_TEXT},
    {"version", "Version", TABLE_INT},
    {"multiplier", "Multiplier", TABLE_PPM, 6},
    {"from", "From", TABLE_TIME},
    {"measure", "Measure", TABLE_TEXT},
    {"jobs", "Jobs", TABLE_TEXT, .cell = jobs_cell},
    {"rates", "Rates", TABLE_TEXT, .cell = factors_cell}};

enum { FACTORS_MAX = 256 };

/* "high=2", or "1.2" for --memory and --group, of which there is one each. The option's field is the factor's kind. */
static int take_factors (struct cli_context *ctx, const struct cli_said *said,
                         const struct cli_option *option, ProtobufCMessage *message,
                         struct err *err)
{
    Nui__Bank__V1__RateSetRequest *request = (Nui__Bank__V1__RateSetRequest *)message;
    const struct cli_list *words = &said_value (said, option)->list;
    const char *kind = option->field ? option->field : option->name;
    bool named = strcmp (kind, "memory") != 0 && strcmp (kind, "group") != 0;
    (void)ctx;
    if (!request->factors)
        request->factors = arena_array (said->arena, FACTORS_MAX, sizeof *request->factors);
    for (uint32_t i = 0; i < words->count; i++) {
        const char *text = words->item[i], *equals = strrchr (text, '=');
        if (named != (equals != NULL) || (named && (equals == text || equals - text > 63)))
            return err_set (err, ERR_INVALID,
                            named ? "--%s takes NAME=RATE, not '%.80s'"
                                  : "--%s takes a number, not '%.80s'",
                            option->name, text);
        if (request->n_factors == FACTORS_MAX)
            return err_set (err, ERR_LIMIT, "at most %d rates", FACTORS_MAX);
        Nui__Bank__V1__RateFactor *factor = (Nui__Bank__V1__RateFactor *)message_new (
            &nui__bank__v1__rate_factor__descriptor, said->arena);
        factor->kind = bank_text (kind);
        factor->name = named ? arena_printf (said->arena, "%.*s", (int)(equals - text), text)
                             : bank_text ("*");
        if (ppm_parse (named ? equals + 1 : text, kind, &factor->ppm, err) < 0)
            return err->code;
        request->factors[request->n_factors++] = factor;
    }
    return 0;
}

/* In the order in which a card lists them. */
static const struct cli_option rate_options[] = {
    {"measure", 0, CLI_OPT_STRING, "WHAT",
     "processor-seconds dedicated (wall), used (cpu), or equivalents (pe)"},
    {"successful-only", 0, CLI_OPT_FLAG, NULL, "other jobs are charged nothing"},
    {"qos", 0, CLI_OPT_LIST, "NAME=X", "jobs of that QoS cost X times as much; NAME *: of others",
     .take = take_factors},
    {"class", 0, CLI_OPT_LIST, "NAME=X", "likewise, of that class", .take = take_factors},
    {"gres", 0, CLI_OPT_LIST, "NAME=RATE",
     "credits per second for one of a generic resource beside", .take = take_factors},
    {"time", 0, CLI_OPT_LIST, "TIME=X", "so does time in it, in UTC: 'Mon-Fri 08:00-18:00=1.5'",
     .take = take_factors},
    {"machine", 0, CLI_OPT_LIST, "NAME=X", "of the site, where it has several",
     .take = take_factors},
    {"node-type", 0, CLI_OPT_LIST, "NAME=X",
     "by the processors that the job has on nodes of each type", .field = "nodetype",
     .take = take_factors},
    {"memory", 0, CLI_OPT_LIST, "RATE", "credits per 1024 MB and second beside",
     .take = take_factors},
    {"group", 0, CLI_OPT_LIST, "X", "so do jobs that reserve several sites for one moment",
     .take = take_factors},
    {"from", 0, CLI_OPT_TIME, "TIME", "when it begins (now); never in the past"},
    {0}};

static const struct cli_form rate_forms[] = {
    {"set SITE MULTIPLIER [--from TIME] [--measure WHAT] [--successful-only] [--qos NAME=X]… [--class NAME=X]… "
     "[--time TIME=X]… [--machine NAME=X]… [--node-type NAME=X]… [--group X] [--memory RATE] [--gres NAME=RATE]…",
     .method = "RateSet",
     .sentence = "site {site} costs {multiplier} credits per processor-second"},
    {"list [SITE]", .method = "RateList", CLI_COLUMNS (rate_columns)},
    {0}};

const struct cli_command rate_command = {
    .name = "rate",
    .group = CLI_BANK,
    .summary = "what a processor-second costs at a site",
    .text = "MULTIPLIER is credits per processor-second, up to six decimals.",
    .forms = rate_forms,
    .options = rate_options,
    .service = &bank_service,
    .example = "nui rate set alpha 1.25 --from 2027-01-01T00:00",
};
