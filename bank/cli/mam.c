/* mam-*: commands of Moab Accounting Manager as links of nui, with the options and the raw output by which programs
 * written for it (Waldur's site agent) drive this bank. An account of theirs is a project here, its organization the
 * project above, its funds the project's accounts, by their numbers. Called by the client only; nothing is kept here. */
#include <string.h>

#include "bank/cli/util.h"
#include "proto/base/clock.h"
#include "proto/cli/message.h"

enum { FIELDS_MAX = 8 };

/* ---- what they list ---- */

/* Columns that may be shown, and those that were asked for, in their order. */
struct mam_list {
    const char *const *field;
    int show[FIELDS_MAX];
    uint32_t count;
    struct table_column columns[FIELDS_MAX];
    struct table *table;
    struct strbuf raw;
    bool is_raw;
};

/* One cell of a raw line. What would end the cell or the line for whoever reads it (also Unicode's line ends and the
 * control characters of two bytes) is a space, so that a description cannot add records of its own. */
static void raw_cell (struct strbuf *out, const char *text)
{
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        size_t wide = p[0] == 0xc2 && p[1] >= 0x80 && p[1] <= 0x9f                     ? 2
                      : p[0] == 0xe2 && p[1] == 0x80 && (p[2] == 0xa8 || p[2] == 0xa9) ? 3
                                                                                       : 0;
        if (wide)
            p += wide - 1;
        strbuf_putc (out, wide || *p < 0x20 || *p == 0x7f || *p == '|' ? ' ' : (char)*p);
    }
}

static bool list_begin (struct mam_list *list, struct cli_context *ctx, const struct cli_said *said,
                        const char *const *field, int *rc)
{
    const char *name = said->command->name, *show = said_text (said, "show");
    char *part[FIELDS_MAX];
    *list = (struct mam_list){.field = field, .is_raw = said_flag (said, "raw")};
    int count = 0;
    if (show)
        count = bank_split (arena_strdup (said->arena, show), part, FIELDS_MAX);
    else
        for (; field[count]; count++)
            part[count] = bank_text (field[count]);
    if (count < 1) {
        *rc = cli_usage (name, "--show takes 1 to %d names of columns", FIELDS_MAX);
        return false;
    }
    if (list->is_raw && cli_format (ctx) != CLI_TABLE) {
        *rc = cli_usage (name, "--raw is a form of its own, without --json or --csv");
        return false;
    }
    for (int i = 0; i < count; i++) {
        int k = 0;
        while (field[k] && strcmp (field[k], part[i]) != 0)
            k++;
        if (!field[k]) {
            *rc = cli_usage (name, "there is no column '%.40s' (see --help)", part[i]);
            return false;
        }
        list->show[list->count] = k;
        list->columns[list->count++] = (struct table_column){field[k], field[k], TABLE_TEXT};
    }
    if (said_flag (said, "quiet"))
        cli_set_noheader (ctx, true);
    for (uint32_t i = 0; list->is_raw && !cli_noheader (ctx) && i < list->count; i++)
        strbuf_printf (&list->raw, "%s%s", field[list->show[i]], i + 1 < list->count ? "|" : "\n");
    list->table = table_create (list->columns, list->count);
    return true;
}

/* cell: one for each column that there is. */
static void list_row (struct mam_list *list, const char *const *cell)
{
    for (uint32_t i = 0; i < list->count; i++) {
        const char *text = cell[list->show[i]];
        if (list->is_raw) {
            raw_cell (&list->raw, text);
            strbuf_putc (&list->raw, i + 1 < list->count ? '|' : '\n');
        } else {
            table_text (list->table, text);
        }
    }
    if (!list->is_raw)
        table_end_row (list->table);
}

static int list_end (struct mam_list *list, struct cli_context *ctx)
{
    int rc = list->is_raw ? cli_output (&list->raw) : table_print (list->table, ctx);
    table_destroy (list->table);
    strbuf_free (&list->raw);
    return rc;
}

/* ---- what the bank has ---- */

/* Of that kind; NULL: *rc, told. Free with protobuf_c_message_free_unpacked. */
static Nui__Bank__V1__ListReply *bank_list (struct cli_context *ctx, const struct cli_said *said,
                                            const char *kind, int *rc)
{
    Nui__Bank__V1__ListRequest m = NUI__BANK__V1__LIST_REQUEST__INIT;
    struct err err = {0};
    m.kind = bank_text (kind);
    ProtobufCMessage *reply = bank_call (ctx, "List", &m.base, &err);
    if (!reply)
        *rc = cli_fail (said->command->name, &err);
    return (Nui__Bank__V1__ListReply *)reply;
}

/* A project's own account, not one that the bank keeps for it. */
static bool is_fund (const Nui__Bank__V1__ListItem *account)
{
    return account->number > 0;
}

/* Theirs are gone once deleted; here a project stays, with all its accounts closed. */
static bool project_ended (const Nui__Bank__V1__ListReply *accounts, const char *project)
{
    bool closed = false;
    for (size_t i = 0; i < accounts->n_items; i++)
        if (is_fund (accounts->items[i]) && strcmp (accounts->items[i]->project, project) == 0) {
            if (!accounts->items[i]->closed)
                return false;
            closed = true;
        }
    return closed;
}

/* By the number that mam-list-funds shows; of that project, or of any. NULL: *rc, told. In the arena. */
static char *fund_account (struct cli_context *ctx, const struct cli_said *said,
                           const char *project, int *rc)
{
    uint64_t number = (uint64_t)said_number (said, "fund");
    Nui__Bank__V1__ListReply *accounts = bank_list (ctx, said, "account", rc);
    char *name = NULL;
    if (!accounts)
        return NULL;
    for (size_t i = 0; i < accounts->n_items && !name; i++)
        if (accounts->items[i]->number == number &&
            (!project || strcmp (accounts->items[i]->project, project) == 0))
            name = arena_strdup (said->arena, accounts->items[i]->name);
    protobuf_c_message_free_unpacked (&accounts->base, NULL);
    if (!name) {
        struct err err = {0};
        if (project)
            err_set (&err, ERR_NOT_FOUND, "account %.64s has no fund %llu", project,
                     (unsigned long long)number);
        else
            err_set (&err, ERR_NOT_FOUND, "there is no fund %llu", (unsigned long long)number);
        *rc = cli_fail (said->command->name, &err);
    }
    return name;
}

/* Whether the project is among "a,b". */
static bool is_among (const char *list, const char *name)
{
    size_t len = strlen (name);
    for (const char *p = list; *p; p += strcspn (p, ","), p += *p == ',')
        if (strncmp (p, name, len) == 0 && (p[len] == ',' || !p[len]))
            return true;
    return false;
}

/* A user of this grid by name, any other whole: two grids may both have an alice. */
static const char *user_name (struct cli_context *ctx, const char *identity)
{
    static const char scheme[] = "nui://";
    struct err err = {0};
    const char *grid = cli_grid (ctx, &err);
    size_t head = sizeof scheme - 1, len = grid ? strlen (grid) : 0;
    bool ours = grid && strncmp (identity, scheme, head) == 0 &&
                strncmp (identity + head, grid, len) == 0 &&
                strncmp (identity + head + len, "/user/", 6) == 0;
    return ours ? identity + head + len + 6 : identity;
}

/* ---- lists ---- */

static int accounts_run (struct cli_context *ctx, const struct cli_said *said)
{
    static const char *const field[] = {"Name", "Description", "Organization", "Id", NULL};
    const char *wanted = said_text (said, "account");
    struct mam_list list;
    int rc = CLI_OK;
    Nui__Bank__V1__ListReply *accounts, *projects = NULL;
    accounts = bank_list (ctx, said, "account", &rc);
    if (accounts)
        projects = bank_list (ctx, said, "project", &rc);
    if (projects && list_begin (&list, ctx, said, field, &rc)) {
        for (size_t i = 0; i < projects->n_items; i++) {
            const Nui__Bank__V1__ListItem *p = projects->items[i];
            if ((wanted && strcmp (p->name, wanted) != 0) || project_ended (accounts, p->name))
                continue;
            list_row (&list,
                      (const char *const[]){
                          p->name, p->description, p->parent[0] ? p->parent : p->name,
                          arena_printf (said->arena, "%llu", (unsigned long long)p->number)});
        }
        rc = list_end (&list, ctx);
    }
    protobuf_c_message_free_unpacked ((ProtobufCMessage *)projects, NULL);
    protobuf_c_message_free_unpacked ((ProtobufCMessage *)accounts, NULL);
    return rc;
}

static const char *available_of (const struct cli_said *said,
                                 const Nui__Bank__V1__BalanceReply *balances, const char *account)
{
    char *text = arena_alloc (said->arena, QUANTITY_TEXT_MAX);
    for (size_t i = 0; i < balances->n_balances; i++) {
        const Nui__Bank__V1__Balance *b = balances->balances[i];
        if (strcmp (b->account, account) == 0)
            return b->available_wide[0] ? b->available_wide
                                        : credit_format (b->available_micro, text);
    }
    return "0";
}

static bool is_member (const Nui__Bank__V1__ListReply *users, const char *identity,
                       const char *project)
{
    for (size_t i = 0; i < users->n_items; i++)
        if (strcmp (users->items[i]->name, identity) == 0)
            return is_among (users->items[i]->project, project);
    return false;
}

static int funds_run (struct cli_context *ctx, const struct cli_said *said)
{
    static const char *const field[] = {"Id", "Name", "Constraints", "Balance", NULL};
    const char *wanted = said_text (said, "account"), *user = said_text (said, "user");
    Nui__Bank__V1__BalanceRequest ask = NUI__BANK__V1__BALANCE_REQUEST__INIT;
    Nui__Bank__V1__ListReply *accounts, *users = NULL;
    ProtobufCMessage *balances = NULL;
    char identity[PRINCIPAL_URI_MAX];
    struct mam_list list;
    struct err err = {0};
    int rc = CLI_OK;
    if (user && cli_identity_of (ctx, user, identity, &err) < 0)
        return cli_fail (said->command->name, &err);
    accounts = bank_list (ctx, said, "account", &rc);
    if (accounts && user)
        users = bank_list (ctx, said, "user", &rc);
    if (rc == CLI_OK && !(balances = bank_call (ctx, "Balance", &ask.base, &err)))
        rc = cli_fail (said->command->name, &err);
    if (rc == CLI_OK && list_begin (&list, ctx, said, field, &rc)) {
        for (size_t i = 0; i < accounts->n_items; i++) {
            const Nui__Bank__V1__ListItem *a = accounts->items[i];
            if (!is_fund (a) || a->closed || (wanted && strcmp (a->project, wanted) != 0) ||
                (user && !is_member (users, identity, a->project)))
                continue;
            list_row (&list,
                      (const char *const[]){
                          arena_printf (said->arena, "%llu", (unsigned long long)a->number),
                          a->name, arena_printf (said->arena, "Account=%s", a->project),
                          available_of (said, (Nui__Bank__V1__BalanceReply *)balances, a->name)});
        }
        rc = list_end (&list, ctx);
    }
    protobuf_c_message_free_unpacked (balances, NULL);
    protobuf_c_message_free_unpacked ((ProtobufCMessage *)users, NULL);
    protobuf_c_message_free_unpacked ((ProtobufCMessage *)accounts, NULL);
    return rc;
}

static int users_run (struct cli_context *ctx, const struct cli_said *said)
{
    static const char *const field[] = {"Name", "DefaultAccount", NULL};
    const char *wanted = said_text (said, "account");
    struct mam_list list;
    int rc = CLI_OK;
    Nui__Bank__V1__ListReply *users = bank_list (ctx, said, "user", &rc);
    if (!users)
        return rc;
    if (list_begin (&list, ctx, said, field, &rc)) {
        for (size_t i = 0; i < users->n_items; i++)
            if (is_among (users->items[i]->project, wanted))
                list_row (&list,
                          (const char *const[]){user_name (ctx, users->items[i]->name), wanted});
        rc = list_end (&list, ctx);
    }
    protobuf_c_message_free_unpacked (&users->base, NULL);
    return rc;
}

/* A day's end is the end of that day; what has not come yet is now. */
static int moments_read (const struct cli_said *said, Nui__Bank__V1__UsageRequest *m,
                         struct err *err)
{
    const char *start = said_text (said, "start"), *end = said_text (said, "end");
    time_us now = clock_now_us (), from, to;
    struct err other = {0};
    if (start) {
        if (period_parse (start, now, &from, &to, &other) < 0 &&
            time_parse_past (start, now, &from, err) < 0)
            return err->code;
        m->from_us = from;
    }
    if (end) {
        if (period_parse (end, now, &from, &to, &other) < 0 &&
            time_parse_past (end, now, &to, err) < 0)
            return err->code;
        m->to_us = to < now ? to : 0;
    }
    return 0;
}

static int usagerecords_run (struct cli_context *ctx, const struct cli_said *said)
{
    static const char *const field[] = {"Account", "User", "Charge", "Instance", NULL};
    static const char *const by[] = {"project", "user", "job"};
    const char *wanted = said_text (said, "account");
    Nui__Bank__V1__UsageRequest m = NUI__BANK__V1__USAGE_REQUEST__INIT;
    char *keys[3] = {bank_text (by[0]), bank_text (by[1]), bank_text (by[2])};
    struct mam_list list;
    struct err err = {0};
    int rc = CLI_OK;
    m.by = keys;
    m.n_by = 3;
    if (moments_read (said, &m, &err) < 0)
        return cli_fail (said->command->name, &err);
    ProtobufCMessage *message = bank_call (ctx, "Usage", &m.base, &err);
    if (!message)
        return cli_fail (said->command->name, &err);
    const Nui__Bank__V1__UsageReply *reply = (Nui__Bank__V1__UsageReply *)message;
    if (list_begin (&list, ctx, said, field, &rc)) {
        for (size_t i = 0; i < reply->n_lines; i++) {
            const Nui__Bank__V1__UsageLine *l = reply->lines[i];
            char text[QUANTITY_TEXT_MAX];
            credit_micro net = 0;
            if (wanted && strcmp (l->project, wanted) != 0)
                continue;
            if (!l->net_wide[0])
                __builtin_sub_overflow (l->charged_micro, l->refunded_micro, &net);
            list_row (&list, (const char *const[]){
                                 l->project, user_name (ctx, l->user),
                                 l->net_wide[0] ? l->net_wide : credit_format (net, text), l->job});
        }
        rc = list_end (&list, ctx);
    }
    protobuf_c_message_free_unpacked (message, NULL);
    return rc;
}

/* ---- changes ---- */

/* A call before the one that is told of; what is there already is as good. False: *rc, told. */
static bool made_before (struct cli_context *ctx, const struct cli_said *said, const char *method,
                         const ProtobufCMessage *request, int *rc)
{
    struct err err = {0};
    ProtobufCMessage *reply = bank_call (ctx, method, request, &err);
    protobuf_c_message_free_unpacked (reply, NULL);
    if (reply || err.code == ERR_EXISTS)
        return true;
    *rc = cli_fail (said->command->name, &err);
    return false;
}

/* Of a description in quotes that its caller split at spaces: '"high' energy' 'physics"'. NULL: these words are no such. */
static char *description_joined (const struct cli_said *said)
{
    const char *first = said_text (said, "description");
    struct strbuf all = STRBUF_INIT;
    strbuf_puts (&all, first ? first : "");
    for (int i = 0; i < said->operands.count; i++)
        strbuf_printf (&all, " %s", said_operand (said, i));
    size_t len = all.len;
    const char *text = strbuf_text (&all);
    char *joined = NULL;
    if (len >= 2 && text[0] == '"' && text[len - 1] == '"')
        joined = arena_printf (said->arena, "%.*s", (int)(len - 2), text + 1);
    else if (said->operands.count == 0)
        joined = arena_strdup (said->arena, text);
    strbuf_free (&all);
    return joined;
}

static int create_account_run (struct cli_context *ctx, const struct cli_said *said)
{
    const char *name = said_text (said, "account"), *above = said_text (said, "organization");
    Nui__Bank__V1__ProjectCreateRequest m = NUI__BANK__V1__PROJECT_CREATE_REQUEST__INIT;
    uint8_t key[16];
    int rc = CLI_OK;
    m.description = description_joined (said);
    if (!m.description)
        return cli_usage (said->command->name, "'%.80s' is more than one description",
                          said_operand (said, 0));
    if (above && strcmp (above, name) != 0) {
        Nui__Bank__V1__ProjectCreateRequest up = NUI__BANK__V1__PROJECT_CREATE_REQUEST__INIT;
        up.key = bank_key (key);
        up.name = m.parent = bank_text (above);
        if (!made_before (ctx, said, "ProjectCreate", &up.base, &rc))
            return rc;
    }
    m.key = bank_key (key);
    m.name = bank_text (name);
    return cli_send_request (ctx, said, &m.base, NULL);
}

/* A project's account of its own name. */
static int create_fund_run (struct cli_context *ctx, const struct cli_said *said)
{
    Nui__Bank__V1__AccountCreateRequest m = NUI__BANK__V1__ACCOUNT_CREATE_REQUEST__INIT;
    uint8_t key[16];
    m.key = bank_key (key);
    m.name = m.project = bank_text (said_text (said, "account"));
    return cli_send_request (ctx, said, &m.base, NULL);
}

static int delete_fund_run (struct cli_context *ctx, const struct cli_said *said)
{
    Nui__Bank__V1__AccountCloseRequest m = NUI__BANK__V1__ACCOUNT_CLOSE_REQUEST__INIT;
    uint8_t key[16];
    int rc = CLI_OK;
    m.name = fund_account (ctx, said, NULL, &rc);
    if (!m.name)
        return rc;
    m.key = bank_key (key);
    return cli_send_request (ctx, said, &m.base, NULL);
}

static int deposit_run (struct cli_context *ctx, const struct cli_said *said)
{
    Nui__Bank__V1__DepositRequest m = NUI__BANK__V1__DEPOSIT_REQUEST__INIT;
    uint8_t key[16];
    int rc = CLI_OK;
    m.account = fund_account (ctx, said, said_text (said, "account"), &rc);
    if (!m.account)
        return rc;
    m.key = bank_key (key);
    m.amount_micro = said_number (said, "amount");
    return cli_send_request (ctx, said, &m.base, NULL);
}

/* Theirs says +NAME for a user whom the account admits; one whom the bank does not know yet is made known. */
static int modify_account_run (struct cli_context *ctx, const struct cli_said *said)
{
    const char *user = said_text (said, "add-user");
    Nui__Bank__V1__MemberRequest m = NUI__BANK__V1__MEMBER_REQUEST__INIT;
    Nui__Bank__V1__UserCreateRequest known = NUI__BANK__V1__USER_CREATE_REQUEST__INIT;
    char identity[PRINCIPAL_URI_MAX];
    uint8_t key[16];
    struct err err = {0};
    int rc = CLI_OK;
    m.remove = !user;
    if (!user)
        user = said_text (said, "del-user");
    else
        user += user[0] == '+';
    if (cli_identity_of (ctx, user, identity, &err) < 0)
        return cli_fail (said->command->name, &err);
    known.key = bank_key (key);
    known.identity = m.identity = identity;
    if (!m.remove && !made_before (ctx, said, "UserCreate", &known.base, &rc))
        return rc;
    m.key = bank_key (key);
    m.project = bank_text (said_text (said, "account"));
    m.role = bank_text ("member");
    return cli_send_request (ctx, said, &m.base, NULL);
}

/* ---- the table ---- */

#define MAM_ACCOUNT                                                                                \
    {                                                                                              \
        "account", 'a', CLI_OPT_STRING, "ACCOUNT", "a project of this bank", .field = "name"       \
    }
#define MAM_SHOW(names)                                                                            \
    {"raw", 0, CLI_OPT_FLAG, NULL, "columns by |, for programs"},                                  \
        {"quiet", 0, CLI_OPT_FLAG, NULL, "without the header"},                                    \
    {                                                                                              \
        "show", 0, CLI_OPT_STRING, "COLUMNS", "some of " names ", in this order (all)"             \
    }
#define MAM_COMMAND(id, word, sum, opts, like)                                                     \
    static const struct cli_command id##_command = {.name = "mam-" word,                           \
                                                    .group = CLI_MAM,                              \
                                                    .summary = sum,                                \
                                                    .forms = id##_forms,                           \
                                                    .options = opts,                               \
                                                    .service = &bank_service,                      \
                                                    .example = "mam-" word " " like}

static const struct cli_option accounts_options[] = {
    MAM_SHOW ("Name,Description,Organization,Id"), MAM_ACCOUNT, {0}};
static const struct cli_form accounts_forms[] = {
    {"[--raw] [--quiet] [--show COLUMNS] [-a ACCOUNT]", accounts_run}, {0}};
MAM_COMMAND (accounts, "list-accounts", "accounts: projects, what they are part of",
             accounts_options, "--raw --quiet --show Name,Organization");

static const struct cli_option funds_options[] = {
    MAM_SHOW ("Id,Name,Constraints,Balance"),
    MAM_ACCOUNT,
    {"user", 'u', CLI_OPT_STRING, "USER", "of accounts that this user is in"},
    {0}};
static const struct cli_form funds_forms[] = {
    {"[--raw] [--quiet] [--show COLUMNS] [-a ACCOUNT] [-u USER]", funds_run}, {0}};
MAM_COMMAND (funds, "list-funds", "their funds, and what these have available", funds_options,
             "--raw --quiet -a physics --show Id");

static const struct cli_option users_options[] = {
    MAM_SHOW ("Name,DefaultAccount"), MAM_ACCOUNT, {0}};
static const struct cli_form users_forms[] = {
    {"[--raw] [--quiet] [--show COLUMNS] -a ACCOUNT", users_run}, {0}};
MAM_COMMAND (users, "list-users", "who is in an account", users_options, "-a physics --raw");

static const struct cli_option records_options[] = {
    MAM_SHOW ("Account,User,Charge,Instance"),
    MAM_ACCOUNT,
    {"start", 's', CLI_OPT_STRING, "TIME", "from the beginning when left out"},
    {"end", 'e', CLI_OPT_STRING, "TIME", "a day is counted whole; until now when left out"},
    {0}};
static const struct cli_form records_forms[] = {
    {"[--raw] [--quiet] [--show COLUMNS] [-a ACCOUNT] [-s TIME] [-e TIME]", usagerecords_run}, {0}};
MAM_COMMAND (records, "list-usagerecords", "what jobs were charged, less what was given back",
             records_options, "--raw --quiet -a physics -s 2026-11-01 -e 2026-11-30");

static const struct cli_option create_account_options[] = {
    MAM_ACCOUNT,
    {"description", 'd', CLI_OPT_STRING, "TEXT", "what it is"},
    {"organization", 'o', CLI_OPT_STRING, "NAME", "the project above it, made where there is none"},
    {0}};
static const struct cli_form create_account_forms[] = {
    {"-a ACCOUNT [-d TEXT] [-o NAME] [WORD…]", create_account_run, .method = "ProjectCreate",
     .sentence = "created account {name}"},
    {0}};
MAM_COMMAND (create_account, "create-account", "makes an account", create_account_options,
             "-a physics -d 'high energy' -o science");

static const struct cli_option account_options[] = {MAM_ACCOUNT, {0}};
static const struct cli_form create_fund_forms[] = {
    {"-a ACCOUNT", create_fund_run, .method = "AccountCreate",
     .sentence = "created a fund of account {name}"},
    {0}};
MAM_COMMAND (create_fund, "create-fund", "makes an account's fund", account_options, "-a physics");

static const struct cli_form delete_account_forms[] = {
    {"-a ACCOUNT", .method = "AccountClose", .sentence = "closed account {name}"}, {0}};
MAM_COMMAND (delete_account, "delete-account", "closes an account's fund; what is left goes back",
             account_options, "-a physics");

#define MAM_FUND                                                                                   \
    {                                                                                              \
        "fund", 'f', CLI_OPT_COUNT, "ID", "as mam-list-funds shows it", .min = 1                   \
    }
static const struct cli_option fund_options[] = {MAM_FUND, {0}};
static const struct cli_form delete_fund_forms[] = {
    {"-f ID", delete_fund_run, .method = "AccountClose", .sentence = "closed fund {name}"}, {0}};
MAM_COMMAND (delete_fund, "delete-fund", "closes a fund; what is left goes back", fund_options,
             "-f 7");

static const struct cli_option deposit_options[] = {
    MAM_ACCOUNT, {"amount", 'z', CLI_OPT_CREDITS, "CREDITS", "how much"}, MAM_FUND, {0}};
static const struct cli_form mam_deposit_forms[] = {
    {"-a ACCOUNT -z CREDITS -f ID", deposit_run, .method = "Deposit",
     .sentence = "deposited {amount} credits to {account} ({allocation})"},
    {0}};
MAM_COMMAND (mam_deposit, "deposit", "gives a fund credits", deposit_options,
             "-a physics -z 1000 -f 7");

static const struct cli_option modify_options[] = {
    {"add-user", 0, CLI_OPT_STRING, "USER", "may use it from now on; a + before it is left out"},
    {"del-user", 0, CLI_OPT_STRING, "USER", "no longer"},
    MAM_ACCOUNT,
    {0}};
static const struct cli_form modify_forms[] = {
    {"--add-user USER -a ACCOUNT", modify_account_run, .method = "Member",
     .sentence = "{identity} is in account {project}"},
    {"--del-user USER -a ACCOUNT", modify_account_run, .method = "Member",
     .sentence = "{identity} is no longer in account {project}"},
    {0}};
MAM_COMMAND (modify, "modify-account", "who is in an account", modify_options,
             "--add-user +alice -a physics");

const struct cli_command *const mam_commands[] = {
    &accounts_command,
    &funds_command,
    &users_command,
    &records_command,
    &create_account_command,
    &create_fund_command,
    &delete_account_command,
    &delete_fund_command,
    &mam_deposit_command,
    &modify_command,
    NULL,
};
