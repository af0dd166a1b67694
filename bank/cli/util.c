/* What the bank's commands share. Called by every file of this folder. */
#include "bank/cli/util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/clock.h"
#include "proto/cli/message.h"

ProtobufCMessage *bank_call (struct cli_context *ctx, const char *method,
                             const ProtobufCMessage *request, struct err *err)
{
    struct rpcclient *bank = cli_bank (ctx, err);
    ProtobufCMessage *reply = NULL;
    if (!bank)
        return NULL;
    /* Safe to send again: what changes something carries a key. */
    if (rpcclient_call (bank, &nui__bank__v1__bank__descriptor, method, request, 30 * US_PER_S,
                        true, &reply, err) < 0)
        return NULL;
    return reply;
}

ProtobufCBinaryData bank_key (uint8_t buf[16])
{
    struct uuid uuid;
    uuid_make (&uuid);
    memcpy (buf, uuid.b, sizeof (uuid.b));
    return (ProtobufCBinaryData){sizeof (uuid.b), buf};
}

const char *bank_short_name (const char *identity)
{
    const char *slash = strrchr (identity, '/');
    return slash ? slash + 1 : identity;
}

void *bank_grown (struct arena *arena, void *list, uint32_t count, uint32_t *cap, size_t more,
                  size_t size)
{
    if (list && count + more <= *cap)
        return list;
    *cap = (uint32_t)((count + more) * 2);
    void *fresh = arena_array (arena, *cap, size);
    if (count)
        memcpy (fresh, list, count * size);
    return fresh;
}

int bank_split (char *text, char **part, int max)
{
    int count = 0;
    char *rest = NULL;
    for (char *p = strtok_r (text, ",", &rest); p; p = strtok_r (NULL, ",", &rest)) {
        if (count == max)
            return -1;
        part[count++] = p;
    }
    return count;
}

static ProtobufCMessage *service_call (struct cli_context *ctx, const struct cli_said *said,
                                       const char *method, const ProtobufCMessage *request,
                                       struct err *err)
{
    (void)said;
    return bank_call (ctx, method, request, err);
}

const struct cli_service bank_service = {&nui__bank__v1__bank__descriptor, service_call};

bool bank_account (struct cli_context *ctx, const struct cli_said *said, char **account_out,
                   int *rc)
{
    struct err err = {0};
    const char *account = said_text (said, "account");
    if (!account && cli_config (ctx, &err) < 0) {
        *rc = cli_fail (said->command->name, &err);
        return false;
    }
    account = account ? account : cli_account (ctx);
    *account_out = bank_text (account);
    if (!account)
        *rc = cli_usage (said->command->name, "name an account with -A");
    return account != NULL;
}

int bank_user_scope (struct cli_context *ctx, const char *word, char *buf, size_t size,
                     struct err *err)
{
    bool exclude = word[0] == '-';
    char uri[PRINCIPAL_URI_MAX];
    word += exclude;
    if (strcmp (word, "ANY") == 0 || strcmp (word, "MEMBERS") == 0)
        snprintf (uri, sizeof (uri), "%s", word);
    else if (cli_identity_of (ctx, word, uri, err) < 0)
        return err->code;
    snprintf (buf, size, "%s%s", exclude ? "-" : "", uri);
    return 0;
}

int bank_take_scopes (struct cli_context *ctx, const struct cli_said *said,
                      const struct cli_option *option, ProtobufCMessage *request, struct err *err)
{
    const struct cli_list *words = &said_value (said, option)->list;
    Nui__Bank__V1__Scope **list = arena_array (said->arena, BANK_SCOPES_MAX, sizeof *list);
    for (uint32_t i = 0; i < words->count; i++) {
        const char *word = words->item[i], *name = strchr (word, '=');
        char who[PRINCIPAL_URI_MAX + 2];
        if (i == BANK_SCOPES_MAX)
            return err_set (err, ERR_LIMIT, "at most %d of --for", BANK_SCOPES_MAX);
        if (!name || name - word > 8 || strlen (name) > PRINCIPAL_URI_MAX)
            return err_set (err, ERR_INVALID,
                            "--for takes user=, site=, machine= or qos= and a "
                            "name, -NAME or ANY");
        list[i] =
            (Nui__Bank__V1__Scope *)message_new (&nui__bank__v1__scope__descriptor, said->arena);
        list[i]->kind = arena_printf (said->arena, "%.*s", (int)(name - word), word);
        list[i]->name = bank_text (name + 1);
        if (strcmp (list[i]->kind, "user") == 0) {
            if (bank_user_scope (ctx, name + 1, who, sizeof who, err) < 0)
                return err->code;
            list[i]->name = arena_strdup (said->arena, who);
        }
    }
    message_set_list (request, "scopes", list, words->count);
    return 0;
}

/* A message that a field of the request is to hold, which is made when first needed. */
static ProtobufCMessage *part_of (const struct cli_said *said, ProtobufCMessage *request,
                                  const char *name)
{
    const ProtobufCFieldDescriptor *field = message_field (request->descriptor, name);
    ProtobufCMessage *part = message_new (field->descriptor, said->arena);
    memcpy (message_at (request, field), &part, sizeof part);
    return part;
}

int bank_take_nodes (struct cli_context *ctx, const struct cli_said *said,
                     const struct cli_option *option, ProtobufCMessage *request, struct err *err)
{
    const struct cli_list *words = &said_value (said, option)->list;
    Nui__Bank__V1__Asked *asked = (Nui__Bank__V1__Asked *)part_of (said, request, "asked");
    (void)ctx;
    if (words->count > BANK_NODE_TYPES_MAX)
        return err_set (err, ERR_LIMIT, "at most %d node types", BANK_NODE_TYPES_MAX);
    asked->nodes = arena_array (said->arena, words->count, sizeof *asked->nodes);
    for (uint32_t i = 0; i < words->count; i++) {
        const char *text = words->item[i], *equals = strchr (text, '=');
        char *end = NULL;
        long procs = equals ? strtol (equals + 1, &end, 10) : 0;
        if (procs < 1 || *end || equals == text || equals - text > 63)
            return err_set (err, ERR_INVALID, "--node-type takes NAME=PROCESSORS, not '%.80s'",
                            text);
        Nui__Bank__V1__NodeShare *share = (Nui__Bank__V1__NodeShare *)message_new (
            &nui__bank__v1__node_share__descriptor, said->arena);
        share->type = arena_printf (said->arena, "%.*s", (int)(equals - text), text);
        share->procs = procs;
        asked->nodes[asked->n_nodes++] = share;
    }
    return 0;
}

int bank_take_claim (struct cli_context *ctx, const struct cli_said *said,
                     const struct cli_option *option, ProtobufCMessage *request, struct err *err)
{
    Nui__Bank__V1__SiteClaim *claim = (Nui__Bank__V1__SiteClaim *)part_of (said, request, "claim");
    char uri[PRINCIPAL_URI_MAX];
    if (cli_identity_of (ctx, said_value (said, option)->text, uri, err) < 0)
        return err->code;
    claim->identity = arena_strdup (said->arena, uri);
    claim->account = bank_text (said_text (said, "account"));
    return 0;
}
