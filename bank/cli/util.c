#include "bank/cli/util.h"

#include <stdio.h>
#include <string.h>

#include "proto/base/clock.h"

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

int bank_identity (struct cli_context *ctx, const char *text, char buf[PRINCIPAL_URI_MAX],
                   struct err *err)
{
    struct principal p = {.kind = PRINCIPAL_USER};
    if (strstr (text, "://")) {
        if (principal_parse (text, &p, err) < 0)
            return err->code;
        principal_uri (&p, buf);
        return 0;
    }
    const char *grid = cli_grid (ctx, err);
    if (!grid || name_check ("user", text, err) < 0)
        return err->code;
    snprintf (p.grid, sizeof (p.grid), "%s", grid);
    snprintf (p.name, sizeof (p.name), "%s", text);
    principal_uri (&p, buf);
    return 0;
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

int bank_do (struct cli_context *ctx, const char *command, const char *method,
             const ProtobufCMessage *request, const char *sentence)
{
    static const struct table_column columns[] = {{"id", "Id", TABLE_TEXT, 0},
                                                  {"done", "Done", TABLE_TEXT, 0}};
    struct err err = {0};
    ProtobufCMessage *reply = bank_call (ctx, method, request, &err);
    if (!reply)
        return cli_fail (command, &err);
    const char *id = reply->descriptor == &nui__bank__v1__deposit_reply__descriptor
                         ? ((Nui__Bank__V1__DepositReply *)reply)->allocation_id
                         : ((Nui__Bank__V1__DoneReply *)reply)->id;
    int rc = CLI_OK;
    if (cli_format (ctx) == CLI_TABLE) {
        struct strbuf text = STRBUF_INIT;
        strbuf_printf (&text, "%s (%s)\n", sentence, id);
        rc = cli_output (&text);
        strbuf_free (&text);
    } else {
        struct table *table = table_create (columns, 2);
        table_text (table, id);
        table_text (table, sentence);
        table_end_row (table);
        rc = table_print_record (table, ctx);
        table_destroy (table);
    }
    protobuf_c_message_free_unpacked (reply, NULL);
    return rc;
}

int bank_list (struct cli_context *ctx, const char *command, const char *kind,
               const struct table_column *columns, uint32_t count)
{
    struct err err = {0};
    Nui__Bank__V1__ListRequest request = NUI__BANK__V1__LIST_REQUEST__INIT;
    request.kind = bank_text (kind);
    ProtobufCMessage *message = bank_call (ctx, "List", &request.base, &err);
    if (!message)
        return cli_fail (command, &err);
    const Nui__Bank__V1__ListReply *reply = (Nui__Bank__V1__ListReply *)message;
    struct table *table = table_create (columns, count);
    for (size_t i = 0; i < reply->n_items; i++) {
        table_text (table, reply->items[i]->name);
        if (count == 3)
            table_text (table, reply->items[i]->project);
        table_text (table, reply->items[i]->detail);
        table_end_row (table);
    }
    int rc = table_print (table, ctx);
    table_destroy (table);
    protobuf_c_message_free_unpacked (message, NULL);
    return rc;
}

bool bank_amount (const char *command, const char *text, credit_micro *amount, int *rc)
{
    struct err err = {0};
    if (credit_parse (text, amount, &err) < 0)
        *rc = cli_usage (command, "%s", err.text);
    else if (*amount <= 0)
        *rc = cli_usage (command, "the amount must be more than nothing");
    else
        return true;
    return false;
}

int bank_user_scope (struct cli_context *ctx, const char *word, char *buf, size_t size,
                     struct err *err)
{
    bool exclude = word[0] == '-';
    char uri[PRINCIPAL_URI_MAX];
    word += exclude;
    if (strcmp (word, "ANY") == 0 || strcmp (word, "MEMBERS") == 0)
        snprintf (uri, sizeof (uri), "%s", word);
    else if (bank_identity (ctx, word, uri, err) < 0)
        return err->code;
    snprintf (buf, size, "%s%s", exclude ? "-" : "", uri);
    return 0;
}

int bank_scopes (struct cli_context *ctx, const struct cli_list *words, struct bank_scopes *out,
                 struct err *err)
{
    out->count = 0;
    for (uint32_t i = 0; i < words->count; i++) {
        const char *word = words->item[i], *name = strchr (word, '=');
        char *buf = out->word[i];
        if (i == BANK_SCOPES_MAX)
            return err_set (err, ERR_LIMIT, "at most %d of --for", BANK_SCOPES_MAX);
        if (!name || name - word > 8 || strlen (name) > PRINCIPAL_URI_MAX)
            return err_set (err, ERR_INVALID,
                            "--for takes user=, site=, machine= or qos= and a "
                            "name, -NAME or ANY");
        snprintf (buf, 16, "%.*s", (int)(name - word), word);
        nui__bank__v1__scope__init (&out->scope[i]);
        out->scope[i].kind = buf;
        out->scope[i].name = buf + 16;
        if (strcmp (buf, "user") != 0)
            snprintf (buf + 16, PRINCIPAL_URI_MAX, "%s", name + 1);
        else if (bank_user_scope (ctx, name + 1, buf + 16, PRINCIPAL_URI_MAX, err) < 0)
            return err->code;
        out->message[out->count++] = &out->scope[i];
    }
    return 0;
}

int bank_nodes (const struct cli_list *words, struct bank_nodes *out, struct err *err)
{
    nui__bank__v1__asked__init (&out->asked);
    out->asked.nodes = out->message;
    if (words->count > BANK_NODE_TYPES_MAX)
        return err_set (err, ERR_LIMIT, "at most %d node types", BANK_NODE_TYPES_MAX);
    for (uint32_t i = 0; i < words->count; i++) {
        const char *text = words->item[i], *equals = strchr (text, '=');
        char *end = NULL;
        nui__bank__v1__node_share__init (&out->share[i]);
        long procs = equals ? strtol (equals + 1, &end, 10) : 0;
        if (procs < 1 || *end || equals == text || equals - text > 63)
            return err_set (err, ERR_INVALID, "--node-type takes NAME=PROCESSORS, not '%.80s'", text);
        snprintf (out->type[i], sizeof (out->type[i]), "%.*s", (int)(equals - text), text);
        out->share[i].type = out->type[i];
        out->share[i].procs = procs;
        out->message[out->asked.n_nodes++] = &out->share[i];
    }
    return 0;
}
