/* nui project, user, account, funder, role, freeze, unfreeze: what agencies and operators set up. Each form is one call, built
 * and told as its row says (proto/cli/request.h); only what is more than that has a function. */
#include <string.h>

#include "bank/cli/util.h"
#include "proto/cli/message.h"

enum { FALLBACKS_MAX = 16 };

/* ---- project ---- */

static const struct table_column project_columns[] = {{"name", "Project", TABLE_TEXT},
                                                      {"detail", "Detail", TABLE_TEXT}};

static const struct cli_option project_options[] = {
    {"parent", 0, CLI_OPT_STRING, "PROJECT", "that it is a part of; '' for none"},
    {"description", 'd', CLI_OPT_STRING, "TEXT", "of a new project; why it is moved"},
    {"role", 0, CLI_OPT_STRING, "member|lead", "of a user in the project (member)"},
    {"add-user", 0, CLI_OPT_STRING, "USER", "as add-user"},
    {"remove-user", 0, CLI_OPT_STRING, "USER", "as remove-user"},
    {0}};

#define MEMBER_IS "{identity} is {role} of project {project}"
#define MEMBER_IS_NOT "{identity} is no longer in project {project}"

static const struct cli_form project_forms[] = {
    {"create NAME [--parent PROJECT] [--description TEXT]", .method = "ProjectCreate",
     .sentence = "created project {name}"},
    {"list", .method = "List", .fields = "kind=project", CLI_COLUMNS (project_columns)},
    {"add-user PROJECT USER [--role lead]", .method = "Member",
     .fields = "identity=USER role=member", .sentence = MEMBER_IS},
    {"remove-user PROJECT USER", .method = "Member", .fields = "identity=USER remove=true",
     .sentence = MEMBER_IS_NOT},
    {"move PROJECT --parent PROJECT [--description TEXT]", .method = "ProjectMove",
     .fields = "name=PROJECT reason=--description",
     .sentence = "project {name} is part of {parent|none} now"},
    {"modify PROJECT --add-user USER [--role lead]", .method = "Member",
     .fields = "identity=--add-user role=member", .sentence = MEMBER_IS},
    {"modify PROJECT --remove-user USER", .method = "Member",
     .fields = "identity=--remove-user remove=true", .sentence = MEMBER_IS_NOT},
    {0}};

const struct cli_command project_command = {
    .name = "project",
    .group = CLI_BANK,
    .summary = "projects and who is in them",
    .text = "USER is a name in this grid or a whole identity, nui://GRID/user/NAME.",
    .forms = project_forms,
    .options = project_options,
    .service = &bank_service,
    .example = "nui project add-user physics alice --role lead",
};

/* ---- user ---- */

static const struct table_column user_columns[] = {
    {"identity", "Identity", TABLE_TEXT, .from = "name"},
    {"projects", "Projects", TABLE_TEXT, .from = "project"},
    {"roles", "Roles", TABLE_TEXT, .from = "detail"}};

static const struct cli_form user_forms[] = {
    {"create NAME-OR-IDENTITY", .method = "UserCreate", .fields = "identity=NAME-OR-IDENTITY",
     .sentence = "created user {identity}"},
    {"list", .method = "List", .fields = "kind=user", CLI_COLUMNS (user_columns)},
    {0}};

const struct cli_command user_command = {
    .name = "user",
    .group = CLI_BANK,
    .summary = "people the bank knows",
    .forms = user_forms,
    .service = &bank_service,
    .example = "nui user create alice",
};

/* ---- account ---- */

static const struct table_column account_columns[] = {{"name", "Account", TABLE_TEXT},
                                                      {"project", "Project", TABLE_TEXT},
                                                      {"detail", "Detail", TABLE_TEXT}};

/* The parts of a list "a,b", in said's arena. */
static int words_split (const struct cli_said *said, const struct cli_option *option, char **part,
                        int max, struct err *err)
{
    char *words = arena_strdup (said->arena, said_value (said, option)->text);
    int count = bank_split (words, part, max);
    if (count < 0)
        err_set (err, ERR_LIMIT, "--%s takes at most %d names", option->name, max);
    return count;
}

/* [SITE:]ACCOUNT[@QOS],…; what is not said stays as it is where an account is changed. */
static int take_fallbacks (struct cli_context *ctx, const struct cli_said *said,
                           const struct cli_option *option, ProtobufCMessage *request,
                           struct err *err)
{
    char *part[FALLBACKS_MAX];
    int count = words_split (said, option, part, FALLBACKS_MAX, err);
    Nui__Bank__V1__Fallback **list = arena_array (said->arena, FALLBACKS_MAX, sizeof *list);
    (void)ctx;
    for (int i = 0; i < count; i++) {
        char *account = strchr (part[i], ':'), *qos = strchr (part[i], '@');
        list[i] = (Nui__Bank__V1__Fallback *)message_new (&nui__bank__v1__fallback__descriptor,
                                                          said->arena);
        if (qos) {
            *qos++ = '\0';
            list[i]->qos = qos;
        }
        if (account && (!qos || account < qos)) {
            *account++ = '\0';
            list[i]->site = part[i];
        } else {
            account = part[i];
        }
        list[i]->account = account;
    }
    if (count >= 0)
        message_set_list (request, "site_fallbacks", list, (size_t)count);
    const ProtobufCFieldDescriptor *keep = message_field (request->descriptor, "keep_fallbacks");
    if (keep)
        message_set_integer (request, keep, false);
    return count < 0 ? err->code : 0;
}

/* Names, "-name", ANY, MEMBERS. */
static int take_users (struct cli_context *ctx, const struct cli_said *said,
                       const struct cli_option *option, ProtobufCMessage *request, struct err *err)
{
    char *part[BANK_SCOPES_MAX], word[PRINCIPAL_URI_MAX + 2];
    int count = words_split (said, option, part, BANK_SCOPES_MAX, err);
    char **list = arena_array (said->arena, BANK_SCOPES_MAX, sizeof *list);
    for (int i = 0; i < count; i++) {
        if (bank_user_scope (ctx, part[i], word, sizeof word, err) < 0)
            return err->code;
        list[i] = arena_strdup (said->arena, word);
    }
    if (count >= 0)
        message_set_list (request, "users", list, (size_t)count);
    const ProtobufCFieldDescriptor *set = message_field (request->descriptor, "set_users");
    if (set)
        message_set_integer (request, set, true);
    return count < 0 ? err->code : 0;
}

static int account_close (struct cli_context *ctx, const struct cli_said *said)
{
    const char *name = said_operand (said, 0);
    if (!said_flag (said, "yes"))
        return cli_usage (
            "account",
            "closing %.64s gives back what it has left; say nui account close %.64s --yes", name,
            name);
    return cli_send (ctx, said);
}

static const struct cli_option account_options[] = {
    {"project", 'p', CLI_OPT_STRING, "PROJECT", "whose members may use it"},
    {"fallback", 0, CLI_OPT_STRING, "LIST",
     "[SITE:]ACCOUNT[@QOS],…: tried in this order when it cannot pay, at that site, with that QoS; '' for none",
     .take = take_fallbacks},
    {"users", 0, CLI_OPT_STRING, "LIST", "NAME,-NAME,ANY,MEMBERS: who may use it (MEMBERS)",
     .take = take_users},
    {"description", 'd', CLI_OPT_STRING, "TEXT", "why, for the history", .field = "reason"},
    {"yes", 'y', CLI_OPT_FLAG, NULL, "closes it: what is left goes back to where it came from"},
    {0}};

static const struct cli_form account_forms[] = {
    {"create NAME --project PROJECT [--fallback LIST] [--users LIST]", .method = "AccountCreate",
     .sentence = "created account {name} of project {project}"},
    {"modify NAME --fallback LIST [--users LIST]", .method = "AccountModify",
     .fields = "keep_fallbacks=true", .sentence = "account {name} has {site_fallbacks#fallback}"},
    {"modify NAME --users LIST", .method = "AccountModify", .fields = "keep_fallbacks=true",
     .sentence = "account {name} is for {users|MEMBERS}"},
    {"rename NAME NEW-NAME [--description TEXT]", .method = "AccountRename",
     .fields = "to=NEW-NAME",
     .sentence = "account {name} is {to} now; the old name goes on meaning it"},
    {"close NAME [--yes] [--description TEXT]", account_close, .method = "AccountClose",
     .sentence = "closed account {name}"},
    {"reopen NAME [--description TEXT]", .method = "AccountReopen",
     .sentence = "account {name} is open again"},
    {"list", .method = "List", .fields = "kind=account", CLI_COLUMNS (account_columns)},
    {0}};

const struct cli_command account_command = {
    .name = "account",
    .group = CLI_BANK,
    .summary = "accounts of projects, who may use them, and where they fall back to",
    .forms = account_forms,
    .options = account_options,
    .service = &bank_service,
    .example = "nui account create phys --project physics --fallback reserve@low,beta:spare",
};

/* ---- funder ---- */

static const struct cli_option funder_options[] = {
    {"description", 'd', CLI_OPT_STRING, "TEXT", "who it is"}, {0}};

static const struct table_column funder_columns[] = {{"name", "Funder", TABLE_TEXT},
                                                     {"detail", "Detail", TABLE_TEXT}};

static const struct cli_form funder_forms[] = {
    {"create NAME [--description TEXT]", .method = "FunderCreate",
     .sentence = "created funder {name}"},
    {"list", .method = "List", .fields = "kind=funder", CLI_COLUMNS (funder_columns)},
    {0}};

const struct cli_command funder_command = {
    .name = "funder",
    .group = CLI_BANK,
    .summary = "who gives grants",
    .forms = funder_forms,
    .options = funder_options,
    .service = &bank_service,
    .example = "nui funder create nsf -d 'science foundation'",
};

/* ---- role ---- */

static const struct table_column role_columns[] = {{"identity", "Identity", TABLE_TEXT},
                                                   {"role", "Role", TABLE_TEXT}};

static const struct cli_form role_forms[] = {
    {"grant USER ROLE", .method = "RoleSet", .fields = "identity=USER",
     .sentence = "{identity} is {role} of the bank"},
    {"revoke USER ROLE", .method = "RoleSet", .fields = "identity=USER remove=true",
     .sentence = "{identity} is no longer {role} of the bank"},
    {"list", .method = "RoleList", CLI_COLUMNS (role_columns)},
    {0}};

const struct cli_command role_command = {
    .name = "role",
    .group = CLI_BANK,
    .summary = "who manages allocations, and who audits",
    .text = "ROLE is manager or auditor.",
    .forms = role_forms,
    .service = &bank_service,
    .example = "nui role grant carol auditor",
};

/* ---- freeze, unfreeze ---- */

/* account:phys, or a grant's number as it is. */
static int freeze_run (struct cli_context *ctx, const struct cli_said *said)
{
    const char *command = said->command->name, *target = said_operand (said, 0),
               *colon = strchr (target, ':');
    char uri[PRINCIPAL_URI_MAX];
    struct err err = {0};
    int code;
    Nui__Bank__V1__FreezeRequest *request =
        (Nui__Bank__V1__FreezeRequest *)cli_request (ctx, said, &code);
    if (!request)
        return code;
    request->name = arena_strdup (said->arena, colon ? colon + 1 : target);
    if (colon && strncmp (target, "nui://", 6) != 0)
        request->what = arena_printf (said->arena, "%.*s", (int)(colon - target), target);
    else if (strncmp (target, "grant.", 6) == 0)
        request->what = bank_text ("grant");
    else
        return cli_usage (
            command, "'%.80s' is not user:NAME, account:NAME, project:NAME or grant.7", target);
    if (strcmp (request->what, "user") == 0) {
        if (cli_identity_of (ctx, request->name, uri, &err) < 0)
            return cli_fail (command, &err);
        request->name = uri;
    }
    return cli_send_request (ctx, said, &request->base, NULL);
}

static const struct cli_option freeze_options[] = {
    {"reason", 0, CLI_OPT_STRING, "TEXT",
     "why: whoever is refused reads it; for the history when it ends"},
    {0}};

#define FREEZE_TARGET "user:NAME|account:NAME|project:NAME|grant.7"

static const struct cli_form freeze_forms[] = {
    {FREEZE_TARGET " --reason TEXT", freeze_run, .method = "Freeze",
     .sentence = "{what} {name} is frozen: nothing new is held for it; what runs goes on"},
    {0}};

const struct cli_command freeze_command = {
    .name = "freeze",
    .group = CLI_BANK,
    .summary = "holds nothing new for a user, an account, a project or a grant",
    .forms = freeze_forms,
    .options = freeze_options,
    .service = &bank_service,
    .example = "nui freeze account:phys --reason 'audit until Friday'",
};

static const struct cli_form unfreeze_forms[] = {{FREEZE_TARGET " [--reason TEXT]", freeze_run,
                                                  .method = "Freeze", .fields = "undo=true",
                                                  .sentence = "{what} {name} is no longer frozen"},
                                                 {0}};

const struct cli_command unfreeze_command = {
    .name = "unfreeze",
    .group = CLI_BANK,
    .summary = "ends that",
    .forms = unfreeze_forms,
    .options = freeze_options,
    .service = &bank_service,
    .example = "nui unfreeze account:phys",
};
