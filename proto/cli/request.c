/* request: from what was said to a call and its answer. Called by said.c for forms without a function, and by those
 * functions. It never guesses: a word that no field of the request stands for is an error of the program. */
#include "proto/cli/request.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/arena.h"
#include "proto/base/clock.h"
#include "proto/cli/message.h"
#include "proto/cli/table.h"

enum { NAME_BYTES = 64 };

int cli_identity_of (struct cli_context *ctx, const char *text, char buf[PRINCIPAL_URI_MAX],
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

/* --- which field ---------------------------------------------------------------------------- */

/* The next "field=WORD" of a form's fields; NULL: no more. */
static const char *fields_next (const char *rest, char field[NAME_BYTES], char word[NAME_BYTES])
{
    while (rest && *rest == ' ')
        rest++;
    if (!rest || !*rest)
        return NULL;
    size_t name = strcspn (rest, "="), all = strcspn (rest, " ");
    assert (name < all && all - name < NAME_BYTES && name < NAME_BYTES);
    snprintf (field, NAME_BYTES, "%.*s", (int)name, rest);
    snprintf (word, NAME_BYTES, "%.*s", (int)(all - name - 1), rest + name + 1);
    return rest + all;
}

/* The first of "a|b" that the message has. */
static const ProtobufCFieldDescriptor *field_of_names (const ProtobufCMessageDescriptor *type,
                                                       const char *names)
{
    char name[NAME_BYTES];
    for (const char *at = names; *at; at += strcspn (at, "|"), at += *at == '|') {
        snprintf (name, sizeof name, "%.*s", (int)strcspn (at, "|"), at);
        const ProtobufCFieldDescriptor *field = message_field (type, name);
        if (field)
            return field;
    }
    return NULL;
}

/* word: as it stands in the form; names: fields it may fill where the form does not say. */
static const ProtobufCFieldDescriptor *field_for (const struct cli_form *form,
                                                  const ProtobufCMessageDescriptor *type,
                                                  const char *word, const char *names)
{
    char field[NAME_BYTES], of[NAME_BYTES];
    for (const char *at = form->fields; (at = fields_next (at, field, of));)
        if (strcmp (of, word) == 0)
            return message_field (type, field);
    return field_of_names (type, names);
}

/* --- its value -------------------------------------------------------------------------------- */

static void text_set (ProtobufCMessage *request, const ProtobufCFieldDescriptor *field,
                      const char *text)
{
    memcpy (message_at (request, field), &text, sizeof text);
}

/* Texts are of their field's type: credits, millionths, numbers, an identity. */
static int word_set (struct cli_context *ctx, const struct cli_said *said, const char *name,
                     const char *text, const ProtobufCFieldDescriptor *field,
                     ProtobufCMessage *request, struct err *err)
{
    char uri[PRINCIPAL_URI_MAX];
    int64_t number = 0;
    uint64_t count = 0;
    int rc = 0;
    if (field->type == PROTOBUF_C_TYPE_STRING && strcmp (field->name, "identity") == 0) {
        if ((rc = cli_identity_of (ctx, text, uri, err)) == 0)
            text_set (request, field, arena_strdup (said->arena, uri));
        return rc;
    }
    if (field->type == PROTOBUF_C_TYPE_STRING) {
        text_set (request, field, text);
        return 0;
    }
    if (message_field_ends (field, "_micro")) {
        rc = credit_parse (text, &number, err);
        if (rc == 0 && number <= 0)
            rc = err_set (err, ERR_INVALID, "the amount must be more than nothing");
    } else if (message_field_ends (field, "_ppm")) {
        rc = ppm_parse (text, name, &number, err);
        if (rc == 0 && number < 0)
            rc = err_set (err, ERR_INVALID, "%s must not be negative", name);
    } else {
        rc = uint_parse (text, name, 0, INT64_MAX, &count, err);
        number = (int64_t)count;
    }
    if (rc == 0)
        message_set_integer (request, field, number);
    return rc;
}

static int option_set (struct cli_context *ctx, const struct cli_said *said,
                       const struct cli_option *o, const ProtobufCFieldDescriptor *field,
                       ProtobufCMessage *request, struct err *err)
{
    const union cli_value *value = said_value (said, o);
    if (o->type == CLI_OPT_STRING)
        return word_set (ctx, said, o->name, value->text, field, request, err);
    if (o->type == CLI_OPT_LIST) {
        assert (field->type == PROTOBUF_C_TYPE_STRING);
        message_set_list (request, field->name, (void *)(uintptr_t)value->list.item,
                          value->list.count);
        return 0;
    }
    assert (o->type != CLI_OPT_PERIOD && o->type != CLI_OPT_OPTIONAL);
    message_set_integer (request, field, o->type == CLI_OPT_FLAG ? value->flag : value->number);
    return 0;
}

/* --- the request ------------------------------------------------------------------------------- */

static void key_set (const struct cli_said *said, ProtobufCMessage *request)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name (request->descriptor, "key");
    if (!field || field->type != PROTOBUF_C_TYPE_BYTES)
        return;
    struct uuid uuid;
    uuid_make (&uuid);
    ProtobufCBinaryData key = {sizeof uuid.b, arena_memdup (said->arena, uuid.b, sizeof uuid.b)};
    memcpy (message_at (request, field), &key, sizeof key);
}

/* What nobody says: "remove=true". */
static void constants_set (const struct cli_said *said, ProtobufCMessage *request)
{
    char name[NAME_BYTES], word[NAME_BYTES];
    for (const char *at = said->form->fields; (at = fields_next (at, name, word));) {
        if (!islower ((unsigned char)word[0]))
            continue;
        const ProtobufCFieldDescriptor *field = message_field (request->descriptor, name);
        assert (field);
        if (field->type == PROTOBUF_C_TYPE_STRING)
            text_set (request, field, arena_strdup (said->arena, word));
        else
            message_set_integer (request, field, strcmp (word, "true") == 0);
    }
}

static int period_set (const struct cli_period *period, ProtobufCMessage *request)
{
    message_set_integer (request, message_field (request->descriptor, "from"), period->from);
    message_set_integer (request, message_field (request->descriptor, "to"), period->to);
    return 0;
}

static int options_set (struct cli_context *ctx, const struct cli_said *said,
                        ProtobufCMessage *request, struct err *err)
{
    char word[NAME_BYTES];
    int rc = 0;
    for (const struct cli_option *o = said->command->options; rc == 0 && o && !cli_option_ends (o);
         o++) {
        if (!(said->given & (UINT64_C (1) << (o - said->command->options))))
            continue;
        snprintf (word, sizeof word, "--%s", o->name);
        const ProtobufCFieldDescriptor *field =
            field_for (said->form, request->descriptor, word, o->field ? o->field : o->name);
        assert ((o->take || field || o->type == CLI_OPT_PERIOD || said->form->run) &&
                "the request has no field for an option");
        if (o->take)
            rc = o->take (ctx, said, o, request, err);
        else if (o->type == CLI_OPT_PERIOD)
            rc = period_set (&said_value (said, o)->period, request);
        else if (field)
            rc = option_set (ctx, said, o, field, request, err);
    }
    return rc;
}

static int operands_set (struct cli_context *ctx, const struct cli_said *said,
                         ProtobufCMessage *request, struct err *err)
{
    char lower[NAME_BYTES];
    int rc = 0;
    for (int i = 0; i < said->operands.count && rc == 0; i++) {
        const char *name = said_operand_name (said, i);
        snprintf (lower, sizeof lower, "%s", name);
        for (char *c = lower; *c; c++)
            *c = (char)tolower ((unsigned char)*c);
        const ProtobufCFieldDescriptor *field =
            field_for (said->form, request->descriptor, name, lower);
        assert ((field || said->form->run) && "the request has no field for an operand");
        if (field)
            rc = word_set (ctx, said, lower, said->operands.item[i], field, request, err);
    }
    return rc;
}

static const ProtobufCMethodDescriptor *method_of (const struct cli_said *said)
{
    const ProtobufCMethodDescriptor *method = protobuf_c_service_descriptor_get_method_by_name (
        said->command->service->descriptor, said->form->method);
    assert (method && "the service has no method of this name");
    return method;
}

ProtobufCMessage *cli_request (struct cli_context *ctx, const struct cli_said *said, int *code_out)
{
    return cli_fill (ctx, said, method_of (said)->input, code_out);
}

ProtobufCMessage *cli_fill (struct cli_context *ctx, const struct cli_said *said,
                            const ProtobufCMessageDescriptor *type, int *code_out)
{
    struct err err = {0};
    ProtobufCMessage *request = message_new (type, said->arena);
    key_set (said, request);
    constants_set (said, request);
    if (operands_set (ctx, said, request, &err) == 0 && options_set (ctx, said, request, &err) == 0)
        return request;
    *code_out = err.code == ERR_INVALID || err.code == ERR_LIMIT
                    ? cli_usage (said->command->name, "%s", err.text)
                    : cli_fail (said->command->name, &err);
    return NULL;
}

ProtobufCMessage *cli_answer (struct cli_context *ctx, const struct cli_said *said,
                              const ProtobufCMessage *request, int *code_out)
{
    struct err err = {0};
    ProtobufCMessage *reply =
        said->command->service->call (ctx, said, said->form->method, request, &err);
    if (!reply)
        *code_out = cli_fail (said->command->name, &err);
    return reply;
}

/* --- the answer --------------------------------------------------------------------------------- */

/* One field as a sentence has it; "" for none, nothing and no moment. */
static const char *spelled (const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                            struct arena *arena)
{
    char *buf = arena_alloc (arena, QUANTITY_TEXT_MAX);
    void *items;
    if (field->type == PROTOBUF_C_TYPE_STRING)
        return message_text (message, field, " ", arena);
    if (field->label == PROTOBUF_C_LABEL_REPEATED) /* how many */
        return arena_printf (arena, "%zu", message_list (message, field, &items));
    int64_t number = message_integer (message, field);
    if (number == 0 && !message_field_ends (field, "_ppm"))
        return message_field_ends (field, "_micro") ? "0" : "";
    if (message_field_ends (field, "_micro") || message_field_ends (field, "_ppm"))
        return credit_format (number, buf);
    return message_field_ends (field, "_us") ? time_format_iso (number, buf)
                                             : arena_printf (arena, "%lld", (long long)number);
}

static char *sentence_of (const char *template, struct arena *arena,
                          const ProtobufCMessage *request, const ProtobufCMessage *reply)
{
    struct strbuf out = STRBUF_INIT;
    char name[NAME_BYTES];
    for (const char *at = template; *at;) {
        size_t plain = strcspn (at, "{");
        strbuf_append (&out, at, plain);
        at += plain;
        if (!*at)
            break;
        size_t length = strcspn (++at, "|#}"), all = strcspn (at, "}");
        snprintf (name, sizeof name, "%.*s", (int)length, at);
        const ProtobufCFieldDescriptor *field = message_field (reply->descriptor, name);
        const ProtobufCMessage *of = field ? reply : request;
        if (!field)
            field = message_field (request->descriptor, name);
        assert (field && "a sentence names a field that there is not");
        const char *text = spelled (of, field, arena);
        if (at[length] == '#')
            strbuf_printf (&out, "%s %.*s%s", text, (int)(all - length - 1), at + length + 1,
                           strcmp (text, "1") ? "s" : "");
        else if (length < all && (!*text || strcmp (text, "0") == 0))
            strbuf_append (&out, at + length + 1, all - length - 1);
        else
            strbuf_puts (&out, text);
        at += all + 1;
    }
    return strbuf_move (&out, arena);
}

/* The reply's first field where that is a text: what it was booked as. */
static const char *id_of (const ProtobufCMessage *reply, struct arena *arena)
{
    const ProtobufCMessageDescriptor *type = reply->descriptor;
    bool is_text = type->n_fields > 0 && type->fields[0].type == PROTOBUF_C_TYPE_STRING;
    return is_text ? message_text (reply, &type->fields[0], "", arena) : "";
}

static int rows_print (struct cli_context *ctx, const struct cli_form *form,
                       const ProtobufCMessage *reply, const ProtobufCFieldDescriptor *list)
{
    void *items;
    size_t count = message_list (reply, list, &items);
    return table_show (ctx, form->columns, form->column_count, items, count);
}

static int record_print (struct cli_context *ctx, const struct cli_form *form,
                         const ProtobufCMessage *request, const ProtobufCMessage *reply)
{
    struct table *table = table_create (form->columns, form->column_count);
    table_message (table, reply, request);
    int rc = table_print_record (table, ctx);
    table_destroy (table);
    return rc;
}

static int done_print (struct cli_context *ctx, const char *id, const char *sentence)
{
    static const struct table_column columns[] = {{"id", "Id", TABLE_TEXT},
                                                  {"done", "Done", TABLE_TEXT}};
    struct table *table = table_create (columns, 2);
    table_text (table, id);
    table_text (table, sentence);
    table_end_row (table);
    int rc = table_print_record (table, ctx);
    table_destroy (table);
    return rc;
}

static int answer_print (struct cli_context *ctx, const struct cli_said *said, const char *template,
                         const ProtobufCMessage *request, const ProtobufCMessage *reply)
{
    const struct cli_form *form = said->form;
    const ProtobufCFieldDescriptor *list = message_rows (reply->descriptor);
    if (form->columns && list)
        return rows_print (ctx, form, reply, list);
    if (form->columns && (!template || cli_format (ctx) != CLI_TABLE))
        return record_print (ctx, form, request, reply);
    const char *sentence = sentence_of (template, said->arena, request, reply),
               *id = id_of (reply, said->arena);
    if (cli_format (ctx) != CLI_TABLE)
        return done_print (ctx, id, sentence);
    struct strbuf text = STRBUF_INIT;
    strbuf_puts (&text, sentence);
    if (*id)
        strbuf_printf (&text, " (%s)", id);
    strbuf_putc (&text, '\n');
    int rc = cli_output (&text);
    strbuf_free (&text);
    return rc;
}

int cli_send (struct cli_context *ctx, const struct cli_said *said)
{
    int code;
    ProtobufCMessage *request = cli_request (ctx, said, &code);
    return request ? cli_send_request (ctx, said, request, said->form->sentence) : code;
}

int cli_send_request (struct cli_context *ctx, const struct cli_said *said,
                      const ProtobufCMessage *request, const char *sentence)
{
    int code;
    ProtobufCMessage *reply = cli_answer (ctx, said, request, &code);
    if (!reply)
        return code;
    code = answer_print (ctx, said, sentence ? sentence : said->form->sentence, request, reply);
    protobuf_c_message_free_unpacked (reply, NULL);
    return code;
}
