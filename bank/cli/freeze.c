/* nui freeze, unfreeze: users, accounts, projects and grants for which nothing new is held. */
#include <stdio.h>
#include <string.h>

#include "bank/cli/util.h"

static int freeze_send (struct cli_context *ctx, const char *command, char *target, const char *reason,
                        bool undo)
{
    char uri[PRINCIPAL_URI_MAX], sentence[600];
    struct err err = {0};
    uint8_t key[16];
    /* account:phys, or a grant's number as it is. */
    char *colon = strchr (target, ':');
    const char *what = target, *name = colon ? colon + 1 : target;
    if (colon && strncmp (target, "nui://", 6) != 0)
        *colon = '\0';
    else if (strncmp (target, "grant.", 6) == 0)
        what = "grant";
    else
        return cli_usage (command, "'%.80s' is not user:NAME, account:NAME, project:NAME or grant.7", target);
    if (strcmp (what, "user") == 0 && bank_identity (ctx, name, uri, &err) < 0)
        return cli_fail (command, &err);
    Nui__Bank__V1__FreezeRequest request = NUI__BANK__V1__FREEZE_REQUEST__INIT;
    request.key = bank_key (key);
    request.what = bank_text (what);
    request.name = strcmp (what, "user") == 0 ? uri : bank_text (name);
    request.reason = bank_text (reason);
    request.undo = undo;
    snprintf (sentence, sizeof (sentence), "%.16s %.255s is %s", what, request.name,
              undo ? "no longer frozen" : "frozen: nothing new is held for it; what runs goes on");
    return bank_do (ctx, command, "Freeze", &request.base, sentence);
}

static int freeze_command (struct cli_context *ctx, int argc, char **argv, bool undo)
{
    struct args {
        const char *reason;
    } args = {.reason = ""};
    static const struct cli_option options[] = {
        {"reason", 0, CLI_OPT_STRING, offsetof (struct args, reason), 0, 0}, {0}};
    struct cli_operands o;
    int rc;
    if (!cli_options (ctx, options, 0, &args, argc, argv, &o, &rc))
        return rc;
    if (o.count != 1 || (!undo && !args.reason[0]))
        return cli_usage (argv[0], "say nui %s user:NAME|account:NAME|project:NAME|grant.7 %s",
                          undo ? "unfreeze" : "freeze", undo ? "[--reason TEXT]" : "--reason TEXT");
    return freeze_send (ctx, argv[0], o.item[0], args.reason, undo);
}

int cmd_freeze (struct cli_context *ctx, int argc, char **argv)
{
    return freeze_command (ctx, argc, argv, false);
}

int cmd_unfreeze (struct cli_context *ctx, int argc, char **argv)
{
    return freeze_command (ctx, argc, argv, true);
}
