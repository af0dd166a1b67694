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
