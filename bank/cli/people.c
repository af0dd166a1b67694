/* nui project, user, account, rate: what agencies and operators set up. */
#include <stdio.h>
#include <string.h>

#include "bank/cli/util.h"

enum { FALLBACKS_MAX = 16 };

/* ---- project ---- */

static int project_member (struct cli_context *ctx, const char *project, const char *user,
                           const char *role, bool remove)
{
    char uri[PRINCIPAL_URI_MAX], sentence[512];
    uint8_t key[16];
    struct err err = {0};
    if (bank_identity (ctx, user, uri, &err) < 0)
        return cli_fail ("project", &err);
    Nui__Bank__V1__MemberRequest request = NUI__BANK__V1__MEMBER_REQUEST__INIT;
    request.key = bank_key (key);
    request.project = bank_text (project);
    request.identity = uri;
    request.role = bank_text (role);
    request.remove = remove;
    if (remove)
        snprintf (sentence, sizeof (sentence), "%s is no longer in project %s", uri, project);
    else
        snprintf (sentence, sizeof (sentence), "%s is %s of project %s", uri, role, project);
    return bank_do (ctx, "project", "Member", &request.base, sentence);
}

static int project_create (struct cli_context *ctx, const char *name, const char *description,
                           const char *parent)
{
    char sentence[256];
    uint8_t key[16];
    Nui__Bank__V1__ProjectCreateRequest request = NUI__BANK__V1__PROJECT_CREATE_REQUEST__INIT;
    request.key = bank_key (key);
    request.name = bank_text (name);
    request.description = bank_text (description);
    request.parent = bank_text (parent);
    snprintf (sentence, sizeof (sentence), "created project %s", name);
    return bank_do (ctx, "project", "ProjectCreate", &request.base, sentence);
}

static int project_move (struct cli_context *ctx, const char *name, const char *parent, const char *reason)
{
    char sentence[256];
    uint8_t key[16];
    Nui__Bank__V1__ProjectMoveRequest request = NUI__BANK__V1__PROJECT_MOVE_REQUEST__INIT;
    request.key = bank_key (key);
    request.name = bank_text (name);
    request.parent = bank_text (parent);
    request.reason = bank_text (reason);
    snprintf (sentence, sizeof (sentence), "project %.64s is part of %.64s now", name, parent[0] ? parent : "none");
    return bank_do (ctx, "project", "ProjectMove", &request.base, sentence);
}

int cmd_project (struct cli_context *ctx, int argc, char **argv)
{
    static const struct table_column columns[] = {{"name", "Project", TABLE_TEXT, 0},
                                                  {"detail", "Detail", TABLE_TEXT, 0}};
    struct args {
        const char *description, *role, *add, *remove, *parent;
    } args = {.description = ""};
    static const struct cli_option options[] = {
        {"description", 'd', CLI_OPT_STRING, offsetof (struct args, description), 0, 0},
        {"parent", 0, CLI_OPT_STRING, offsetof (struct args, parent), 0, 0},
        {"role", 0, CLI_OPT_STRING, offsetof (struct args, role), 0, 0},
        {"add-user", 0, CLI_OPT_STRING, offsetof (struct args, add), 0, 0},
        {"remove-user", 0, CLI_OPT_STRING, offsetof (struct args, remove), 0, 0},
        {0}};
    struct cli_operands o;
    int rc;
    if (!cli_options (ctx, options, 0, &args, argc, argv, &o, &rc))
        return rc;
    const char *verb = o.count ? o.item[0] : "";
    bool described = args.description[0] || args.parent,
         members = args.role || args.add || args.remove;
    if (strcmp (verb, "list") == 0 && o.count == 1 && !described && !members)
        return bank_list (ctx, argv[0], "project", columns, 2);
    if (strcmp (verb, "create") == 0 && o.count == 2 && !members)
        return project_create (ctx, o.item[1], args.description, args.parent ? args.parent : "");
    if (strcmp (verb, "move") == 0 && o.count == 2 && args.parent && !members)
        return project_move (ctx, o.item[1], args.parent, args.description);
    if (strcmp (verb, "modify") == 0 && o.count == 2 && args.add && !args.remove && !described)
        return project_member (ctx, o.item[1], args.add, args.role ? args.role : "member", false);
    if (strcmp (verb, "modify") == 0 && o.count == 2 && args.remove && !args.add && !args.role &&
        !described)
        return project_member (ctx, o.item[1], args.remove, "", true);
    if (strcmp (verb, "add-user") == 0 && o.count == 3 && !described && !args.add && !args.remove)
        return project_member (ctx, o.item[1], o.item[2], args.role ? args.role : "member", false);
    if (strcmp (verb, "remove-user") == 0 && o.count == 3 && !described && !members)
        return project_member (ctx, o.item[1], o.item[2], "", true);
    return cli_usage (
        argv[0],
        "say create NAME [--parent PROJECT] [--description TEXT], list, add-user PROJECT USER "
        "[--role lead], remove-user PROJECT USER or move PROJECT --parent PROJECT");
}

/* ---- user ---- */

int cmd_user (struct cli_context *ctx, int argc, char **argv)
{
    static const struct table_column columns[] = {{"identity", "Identity", TABLE_TEXT, 0},
                                                  {"projects", "Projects", TABLE_TEXT, 0},
                                                  {"roles", "Roles", TABLE_TEXT, 0}};
    static const struct cli_option options[] = {{0}};
    struct cli_operands o;
    struct err err = {0};
    char uri[PRINCIPAL_URI_MAX], sentence[512];
    uint8_t key[16];
    int rc;
    if (!cli_options (ctx, options, 0, NULL, argc, argv, &o, &rc))
        return rc;
    const char *verb = o.count ? o.item[0] : "";
    if (strcmp (verb, "list") == 0 && o.count == 1)
        return bank_list (ctx, argv[0], "user", columns, 3);
    if (strcmp (verb, "create") != 0 || o.count != 2)
        return cli_usage (argv[0], "say create NAME-OR-IDENTITY or list");
    if (bank_identity (ctx, o.item[1], uri, &err) < 0)
        return cli_fail (argv[0], &err);
    Nui__Bank__V1__UserCreateRequest request = NUI__BANK__V1__USER_CREATE_REQUEST__INIT;
    request.key = bank_key (key);
    request.identity = uri;
    snprintf (sentence, sizeof (sentence), "created user %s", uri);
    return bank_do (ctx, argv[0], "UserCreate", &request.base, sentence);
}

/* ---- account ---- */

/* Fallbacks as words: [SITE:]ACCOUNT[@QOS]. */
struct fallback_words {
    Nui__Bank__V1__Fallback fallback[FALLBACKS_MAX], *message[FALLBACKS_MAX];
    char text[2048];
    size_t count;
};

static int fallbacks_read (const char *words, struct fallback_words *out, struct err *err)
{
    char *part[FALLBACKS_MAX];
    int count = -1;
    if (strlen (words) < sizeof (out->text))
        count = bank_split (strcpy (out->text, words), part, FALLBACKS_MAX);
    if (count < 0)
        return err_set (err, ERR_LIMIT, "--fallback takes at most %d accounts", FALLBACKS_MAX);
    out->count = (size_t)count;
    for (int i = 0; i < count; i++) {
        char *account = strchr (part[i], ':'), *qos = strchr (part[i], '@');
        nui__bank__v1__fallback__init (&out->fallback[i]);
        if (qos) {
            *qos++ = '\0';
            out->fallback[i].qos = qos;
        }
        if (account && (!qos || account < qos)) {
            *account++ = '\0';
            out->fallback[i].site = part[i];
        } else {
            account = part[i];
        }
        out->fallback[i].account = account;
        out->message[i] = &out->fallback[i];
    }
    return 0;
}

/* Users as words: names, "-name", ANY, MEMBERS. */
struct user_words {
    char text[2048], word[BANK_SCOPES_MAX][PRINCIPAL_URI_MAX + 2], *message[BANK_SCOPES_MAX];
    size_t count;
};

static int users_read (struct cli_context *ctx, const char *words, struct user_words *out,
                       struct err *err)
{
    char *part[BANK_SCOPES_MAX];
    int count = -1;
    if (strlen (words) < sizeof (out->text))
        count = bank_split (strcpy (out->text, words), part, BANK_SCOPES_MAX);
    if (count < 0)
        return err_set (err, ERR_LIMIT, "--users takes at most %d users", BANK_SCOPES_MAX);
    out->count = (size_t)count;
    for (int i = 0; i < count; i++) {
        if (bank_user_scope (ctx, part[i], out->word[i], sizeof (out->word[i]), err) < 0)
            return err->code;
        out->message[i] = out->word[i];
    }
    return 0;
}

struct account_args {
    const char *project, *fallback, *users, *reason;
    bool yes;
};

static int account_create (struct cli_context *ctx, const char *name,
                           const struct account_args *args, struct fallback_words *fallbacks,
                           struct user_words *users)
{
    char sentence[256];
    uint8_t key[16];
    Nui__Bank__V1__AccountCreateRequest request = NUI__BANK__V1__ACCOUNT_CREATE_REQUEST__INIT;
    request.key = bank_key (key);
    request.name = bank_text (name);
    request.project = bank_text (args->project);
    request.n_site_fallbacks = fallbacks->count;
    request.site_fallbacks = fallbacks->message;
    request.n_users = users->count;
    request.users = users->message;
    snprintf (sentence, sizeof (sentence), "created account %.64s of project %.64s", name,
              args->project);
    return bank_do (ctx, "account", "AccountCreate", &request.base, sentence);
}

static int account_modify (struct cli_context *ctx, const char *name,
                           const struct account_args *args, struct fallback_words *fallbacks,
                           struct user_words *users)
{
    char sentence[256];
    uint8_t key[16];
    Nui__Bank__V1__AccountModifyRequest request = NUI__BANK__V1__ACCOUNT_MODIFY_REQUEST__INIT;
    request.key = bank_key (key);
    request.name = bank_text (name);
    request.keep_fallbacks = !args->fallback;
    request.n_site_fallbacks = fallbacks->count;
    request.site_fallbacks = fallbacks->message;
    request.set_users = args->users != NULL;
    request.n_users = users->count;
    request.users = users->message;
    if (args->fallback)
        snprintf (sentence, sizeof (sentence), "account %.64s has %zu fallback%s", name,
                  fallbacks->count, fallbacks->count == 1 ? "" : "s");
    else
        snprintf (sentence, sizeof (sentence), "account %.64s is for %.128s", name,
                  users->count ? args->users : "MEMBERS");
    return bank_do (ctx, "account", "AccountModify", &request.base, sentence);
}

static int account_close (struct cli_context *ctx, const char *name, const char *reason)
{
    char sentence[256];
    uint8_t key[16];
    Nui__Bank__V1__AccountCloseRequest request = NUI__BANK__V1__ACCOUNT_CLOSE_REQUEST__INIT;
    request.key = bank_key (key);
    request.name = bank_text (name);
    request.reason = bank_text (reason);
    snprintf (sentence, sizeof (sentence), "closed account %.64s", name);
    return bank_do (ctx, "account", "AccountClose", &request.base, sentence);
}

static int account_reopen (struct cli_context *ctx, const char *name, const char *reason)
{
    char sentence[256];
    uint8_t key[16];
    Nui__Bank__V1__AccountReopenRequest request = NUI__BANK__V1__ACCOUNT_REOPEN_REQUEST__INIT;
    request.key = bank_key (key);
    request.name = bank_text (name);
    request.reason = bank_text (reason);
    snprintf (sentence, sizeof (sentence), "account %.64s is open again", name);
    return bank_do (ctx, "account", "AccountReopen", &request.base, sentence);
}

static int account_rename (struct cli_context *ctx, const char *name, const char *to, const char *reason)
{
    char sentence[256];
    uint8_t key[16];
    Nui__Bank__V1__AccountRenameRequest request = NUI__BANK__V1__ACCOUNT_RENAME_REQUEST__INIT;
    request.key = bank_key (key);
    request.name = bank_text (name);
    request.to = bank_text (to);
    request.reason = bank_text (reason);
    snprintf (sentence, sizeof (sentence), "account %.64s is %.64s now; the old name goes on meaning it", name, to);
    return bank_do (ctx, "account", "AccountRename", &request.base, sentence);
}

int cmd_account (struct cli_context *ctx, int argc, char **argv)
{
    static const struct table_column columns[] = {{"name", "Account", TABLE_TEXT, 0},
                                                  {"project", "Project", TABLE_TEXT, 0},
                                                  {"detail", "Detail", TABLE_TEXT, 0}};
    struct account_args args = {0};
    static const struct cli_option options[] = {
        {"project", 'p', CLI_OPT_STRING, offsetof (struct account_args, project), 0, 0},
        {"fallback", 0, CLI_OPT_STRING, offsetof (struct account_args, fallback), 0, 0},
        {"users", 0, CLI_OPT_STRING, offsetof (struct account_args, users), 0, 0},
        {"description", 'd', CLI_OPT_STRING, offsetof (struct account_args, reason), 0, 0},
        {"yes", 'y', CLI_OPT_FLAG, offsetof (struct account_args, yes), 0, 0},
        {0}};
    struct fallback_words fallbacks = {.count = 0};
    struct user_words users = {.count = 0};
    struct cli_operands o;
    struct err err = {0};
    int rc;
    if (!cli_options (ctx, options, 0, &args, argc, argv, &o, &rc))
        return rc;
    if ((args.fallback && fallbacks_read (args.fallback, &fallbacks, &err) < 0) ||
        (args.users && users_read (ctx, args.users, &users, &err) < 0))
        return cli_usage (argv[0], "%s", err.text);
    const char *verb = o.count ? o.item[0] : "";
    bool lists = args.fallback || args.users;
    if (strcmp (verb, "list") == 0 && o.count == 1 && !args.project && !lists && !args.reason)
        return bank_list (ctx, argv[0], "account", columns, 3);
    if (strcmp (verb, "create") == 0 && o.count == 2 && args.project && !args.reason)
        return account_create (ctx, o.item[1], &args, &fallbacks, &users);
    if (strcmp (verb, "modify") == 0 && o.count == 2 && lists && !args.project && !args.reason)
        return account_modify (ctx, o.item[1], &args, &fallbacks, &users);
    if (strcmp (verb, "close") == 0 && o.count == 2 && !lists && !args.project && !args.yes)
        return cli_usage (argv[0], "closing %.64s gives back what it has left; say nui account close %.64s --yes",
                          o.item[1], o.item[1]);
    if (strcmp (verb, "close") == 0 && o.count == 2 && !lists && !args.project)
        return account_close (ctx, o.item[1], args.reason ? args.reason : "");
    if (strcmp (verb, "reopen") == 0 && o.count == 2 && !lists && !args.project && !args.yes)
        return account_reopen (ctx, o.item[1], args.reason ? args.reason : "");
    if (strcmp (verb, "rename") == 0 && o.count == 3 && !lists && !args.project && !args.yes)
        return account_rename (ctx, o.item[1], o.item[2], args.reason ? args.reason : "");
    return cli_usage (argv[0],
                      "say create NAME --project PROJECT [--fallback LIST] [--users LIST], modify NAME --fallback LIST "
                      "| --users LIST, rename NAME NEW-NAME, close NAME --yes, reopen NAME or list");
}

/* ---- site ---- */

/* "yes", "no"; NULL leaves it as it is. */
static bool yes_or_no (const char *text, protobuf_c_boolean *value, protobuf_c_boolean *keep)
{
    *keep = !text;
    *value = text && strcmp (text, "yes") == 0;
    return !text || *value || strcmp (text, "no") == 0;
}

int cmd_site (struct cli_context *ctx, int argc, char **argv)
{
    static const struct table_column columns[] = {{"site", "Site", TABLE_TEXT, 0},
                                                  {"detail", "Detail", TABLE_TEXT, 0}};
    struct args {
        const char *claims, *refunds;
        duration_us cap, window;
        credit_micro minimum;
        int64_t node_procs, proc_memory;
        duration_us overrun;
    } args = {.cap = -1, .window = -1, .minimum = -1, .node_procs = -1, .proc_memory = -1, .overrun = -1};
    static const struct cli_option options[] = {
        {"claims", 0, CLI_OPT_STRING, offsetof (struct args, claims), 0, 0},
        {"refunds", 0, CLI_OPT_STRING, offsetof (struct args, refunds), 0, 0},
        {"refund-cap", 0, CLI_OPT_DURATION, offsetof (struct args, cap), 0, 0},
        {"refund-minimum", 0, CLI_OPT_CREDITS, offsetof (struct args, minimum), 0, 0},
        {"refund-window", 0, CLI_OPT_DURATION, offsetof (struct args, window), 0, 0},
        {"node-procs", 0, CLI_OPT_INT, offsetof (struct args, node_procs), 0, 100000000},
        {"proc-memory", 0, CLI_OPT_MEMORY, offsetof (struct args, proc_memory), 0, 0},
        {"overrun", 0, CLI_OPT_DURATION, offsetof (struct args, overrun), 0, 0},
        {0}};
    struct cli_operands o;
    char sentence[256];
    uint8_t key[16];
    int rc;
    if (!cli_options (ctx, options, 0, &args, argc, argv, &o, &rc))
        return rc;
    const char *verb = o.count ? o.item[0] : "";
    bool bounds = args.cap >= 0 || args.minimum >= 0 || args.window >= 0;
    bool given = args.node_procs >= 0 || args.proc_memory >= 0 || args.overrun >= 0;
    bool any = args.claims || args.refunds || bounds || given;
    if (strcmp (verb, "list") == 0 && o.count == 1 && !any)
        return bank_list (ctx, argv[0], "site", columns, 2);
    Nui__Bank__V1__SiteSetRequest request = NUI__BANK__V1__SITE_SET_REQUEST__INIT;
    if (strcmp (verb, "modify") != 0 || o.count != 2 || !any ||
        !yes_or_no (args.claims, &request.claims, &request.keep_claims) ||
        !yes_or_no (args.refunds, &request.refunds, &request.keep_refunds))
        return cli_usage (argv[0], "say modify SITE --claims yes|no --refunds yes|no, with "
                                   "--refund-cap, --refund-minimum, --refund-window, or "
                                   "--node-procs, --proc-memory, --overrun, or list");
    request.set_node_procs = args.node_procs >= 0;
    request.node_procs = args.node_procs > 0 ? (uint64_t)args.node_procs : 0;
    request.set_proc_memory = args.proc_memory >= 0;
    request.proc_memory_mb = args.proc_memory > 0 ? args.proc_memory : 0;
    request.set_overrun = args.overrun >= 0;
    request.overrun_us = args.overrun > 0 ? args.overrun : 0;
    request.set_refund_minimum = args.minimum >= 0;
    request.refund_minimum_micro = args.minimum > 0 ? args.minimum : 0;
    request.set_refund_cap = args.cap >= 0;
    request.refund_cap_us = args.cap > 0 ? args.cap : 0;
    request.set_refund_window = args.window >= 0;
    request.refund_window_us = args.window > 0 ? args.window : 0;
    request.key = bank_key (key);
    request.site = o.item[1];
    snprintf (sentence, sizeof (sentence), "site %.64s%s%s%s%s%s", o.item[1],
              !args.claims        ? ""
              : request.claims    ? " may name users of jobs that nobody signed"
                                  : " may not name users of jobs that nobody signed",
              args.claims && args.refunds ? ";" : "",
              !args.refunds     ? ""
              : request.refunds ? " gives back what it failed"
                                : " keeps what it charged",
              !bounds                        ? ""
              : args.claims || args.refunds ? "; bounds of refunds set"
                                            : " has other bounds of refunds",
              !given                                  ? ""
              : args.claims || args.refunds || bounds ? "; bounds of what it may charge set"
                                                      : " has other bounds of what it may charge");
    return bank_do (ctx, argv[0], "SiteSet", &request.base, sentence);
}

/* ---- rate ---- */

static int rate_list (struct cli_context *ctx, const char *site)
{
    static const struct table_column columns[] = {{"site", "Site", TABLE_TEXT, 0},
                                                  {"version", "Version", TABLE_INT, 0},
                                                  {"multiplier", "Multiplier", TABLE_PPM, 6},
                                                  {"from", "From", TABLE_TIME, 0},
                                                  {"measure", "Measure", TABLE_TEXT, 0},
                                                  {"jobs", "Jobs", TABLE_TEXT, 0},
                                                  {"rates", "Rates", TABLE_TEXT, 0}};
    struct err err = {0};
    Nui__Bank__V1__RateListRequest request = NUI__BANK__V1__RATE_LIST_REQUEST__INIT;
    request.site = bank_text (site);
    ProtobufCMessage *message = bank_call (ctx, "RateList", &request.base, &err);
    if (!message)
        return cli_fail ("rate", &err);
    const Nui__Bank__V1__RateListReply *reply = (Nui__Bank__V1__RateListReply *)message;
    struct table *table = table_create (columns, 7);
    struct strbuf factors = STRBUF_INIT;
    for (size_t i = 0; i < reply->n_rates; i++) {
        table_text (table, reply->rates[i]->site);
        table_int (table, reply->rates[i]->version);
        table_ppm (table, reply->rates[i]->multiplier_ppm);
        table_time (table, reply->rates[i]->from_us);
        table_text (table, reply->rates[i]->measure);
        table_text (table, reply->rates[i]->successful_only ? "successful" : "all");
        strbuf_clear (&factors);
        for (size_t k = 0; k < reply->rates[i]->n_factors; k++) {
            const Nui__Bank__V1__RateFactor *factor = reply->rates[i]->factors[k];
            char number[QUANTITY_TEXT_MAX];
            strbuf_printf (&factors, "%s%s %s=%s", k ? "; " : "", factor->kind, factor->name,
                           credit_format (factor->ppm, number));
        }
        table_text (table, factors.len ? strbuf_text (&factors) : NULL);
        table_end_row (table);
    }
    strbuf_free (&factors);
    int rc = table_print (table, ctx);
    table_destroy (table);
    protobuf_c_message_free_unpacked (message, NULL);
    return rc;
}

enum { FACTOR_KINDS = 8, FACTORS_MAX = 256 };

/* The last two have no name: there is one of each. */
static const char *const factor_kind[FACTOR_KINDS] = {
    "qos", "class", "gres", "time", "machine", "nodetype", "memory", "group"};

struct rate_words {
    Nui__Bank__V1__RateFactor factor[FACTORS_MAX], *message[FACTORS_MAX];
    char name[FACTORS_MAX][64];
    uint32_t count;
};

/* "high=2", or "1.2" for a kind without names. */
static int factor_add (struct rate_words *words, int kind, const char *text, struct err *err)
{
    const char *equals = strrchr (text, '=');
    bool named = kind < FACTOR_KINDS - 2;
    if (named != (equals != NULL) || (named && (equals == text || equals - text > 63)))
        return err_set (err, ERR_INVALID,
                        named ? "--%s takes NAME=RATE, not '%.80s'"
                              : "--%s takes a number, not '%.80s'",
                        factor_kind[kind], text);
    if (words->count == FACTORS_MAX)
        return err_set (err, ERR_LIMIT, "at most %d rates", FACTORS_MAX);
    Nui__Bank__V1__RateFactor *factor = &words->factor[words->count];
    char *name = words->name[words->count];
    nui__bank__v1__rate_factor__init (factor);
    snprintf (name, 64, "%.*s", named ? (int)(equals - text) : 1, named ? text : "*");
    factor->kind = bank_text (factor_kind[kind]);
    factor->name = name;
    if (ppm_parse (named ? equals + 1 : text, factor_kind[kind], &factor->ppm, err) < 0)
        return err->code;
    words->message[words->count++] = factor;
    return 0;
}

int cmd_rate (struct cli_context *ctx, int argc, char **argv)
{
    struct args {
        time_us from;
        const char *measure;
        bool successful;
        struct cli_list kind[FACTOR_KINDS]; /* in the order of factor_kind */
    } args = {.measure = ""};
    static const struct cli_option options[] = {
        {"from", 0, CLI_OPT_TIME, offsetof (struct args, from), 0, 0},
        {"measure", 0, CLI_OPT_STRING, offsetof (struct args, measure), 0, 0},
        {"successful-only", 0, CLI_OPT_FLAG, offsetof (struct args, successful), 0, 0},
        {"qos", 0, CLI_OPT_LIST, offsetof (struct args, kind[0]), 0, 0},
        {"class", 0, CLI_OPT_LIST, offsetof (struct args, kind[1]), 0, 0},
        {"gres", 0, CLI_OPT_LIST, offsetof (struct args, kind[2]), 0, 0},
        {"time", 0, CLI_OPT_LIST, offsetof (struct args, kind[3]), 0, 0},
        {"machine", 0, CLI_OPT_LIST, offsetof (struct args, kind[4]), 0, 0},
        {"node-type", 0, CLI_OPT_LIST, offsetof (struct args, kind[5]), 0, 0},
        {"memory", 0, CLI_OPT_LIST, offsetof (struct args, kind[6]), 0, 0},
        {"group", 0, CLI_OPT_LIST, offsetof (struct args, kind[7]), 0, 0},
        {0}};
    struct cli_operands o;
    struct err err = {0};
    char sentence[256];
    uint8_t key[16];
    int64_t ppm;
    int rc;
    if (!cli_options (ctx, options, 0, &args, argc, argv, &o, &rc))
        return rc;
    const char *verb = o.count ? o.item[0] : "";
    if (strcmp (verb, "list") == 0 && o.count <= 2 && !args.from)
        return rate_list (ctx, o.count == 2 ? o.item[1] : "");
    if (strcmp (verb, "set") != 0 || o.count != 3)
        return cli_usage (argv[0], "say set SITE MULTIPLIER [--from TIME] or list [SITE]");
    if (ppm_parse (o.item[2], "the multiplier", &ppm, &err) < 0)
        return cli_usage (argv[0], "%s", err.text);
    if (ppm < 0)
        return cli_usage (argv[0], "the multiplier must not be negative");
    Nui__Bank__V1__RateSetRequest request = NUI__BANK__V1__RATE_SET_REQUEST__INIT;
    request.key = bank_key (key);
    request.site = o.item[1];
    request.multiplier_ppm = ppm;
    request.from_us = args.from;
    request.measure = bank_text (args.measure);
    request.successful_only = args.successful;
    struct rate_words words = {0};
    for (int kind = 0; kind < FACTOR_KINDS; kind++)
        for (uint32_t i = 0; i < args.kind[kind].count; i++)
            if (factor_add (&words, kind, args.kind[kind].item[i], &err) < 0)
                return cli_usage (argv[0], "%s", err.text);
    request.n_factors = words.count;
    request.factors = words.message;
    snprintf (sentence, sizeof (sentence), "site %s costs %s credits per processor-second",
              o.item[1], o.item[2]);
    return bank_do (ctx, argv[0], "RateSet", &request.base, sentence);
}
