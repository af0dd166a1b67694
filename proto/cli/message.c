/* message: fields of protobuf messages by name. Called by table.c and request.c; it reads and writes
 * only fields of the type that the descriptor says, and asserts that they are asked for as such. */
#include "proto/cli/message.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_MAX_BYTES = 64 };

static const ProtobufCFieldDescriptor *field_with (const ProtobufCMessageDescriptor *type,
                                                   const char *name, int length, const char *end)
{
    char text[NAME_MAX_BYTES];
    snprintf (text, sizeof text, "%.*s%s", length, name, end);
    for (char *c = text; *c; c++)
        *c = *c == '-' ? '_' : *c;
    return protobuf_c_message_descriptor_get_field_by_name (type, text);
}

const ProtobufCFieldDescriptor *message_field (const ProtobufCMessageDescriptor *type,
                                               const char *name)
{
    static const char *const end[] = {"", "_id", "_micro", "_us", "_ppm", "_mb", "_milli"};
    int length = (int)strlen (name);
    for (size_t i = 0; i < sizeof end / sizeof *end; i++) {
        const ProtobufCFieldDescriptor *field = field_with (type, name, length, end[i]);
        if (field)
            return field;
    }
    bool moment = length > 5 && strcmp (name + length - 5, "_time") == 0;
    return moment ? field_with (type, name, length - 5, "_us") : NULL;
}

bool message_field_ends (const ProtobufCFieldDescriptor *field, const char *end)
{
    size_t all = strlen (field->name), part = strlen (end);
    return all >= part && strcmp (field->name + all - part, end) == 0;
}

void *message_at (const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    return (char *)(uintptr_t)message + field->offset;
}

const ProtobufCMessage *message_follow (const ProtobufCMessage *message, const char *path,
                                        const ProtobufCFieldDescriptor **field_out)
{
    char name[NAME_MAX_BYTES];
    for (const char *dot; (dot = strchr (path, '.')); path = dot + 1) {
        snprintf (name, sizeof name, "%.*s", (int)(dot - path), path);
        const ProtobufCFieldDescriptor *field = message_field (message->descriptor, name);
        assert (field && field->type == PROTOBUF_C_TYPE_MESSAGE &&
                field->label != PROTOBUF_C_LABEL_REPEATED);
        memcpy (&message, message_at (message, field), sizeof message);
        if (!message)
            return NULL;
    }
    *field_out = message_field (message->descriptor, path);
    if (!*field_out)
        fprintf (stderr, "nui: %s has no field '%s'\n", message->descriptor->name, path);
    assert (*field_out);
    return message;
}

/* Bytes of an integer's C type. */
static size_t integer_size (const ProtobufCFieldDescriptor *field)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_ENUM:
        return 4;
    case PROTOBUF_C_TYPE_BOOL:
        return sizeof (protobuf_c_boolean);
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        return 8;
    default:
        assert (!"the field is no integer");
        return 0;
    }
}

int64_t message_integer (const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    const void *at = message_at (message, field);
    protobuf_c_boolean yes;
    int32_t small;
    uint32_t plain;
    int64_t large;
    if (field->type == PROTOBUF_C_TYPE_BOOL) {
        memcpy (&yes, at, sizeof yes);
        return yes;
    }
    if (integer_size (field) == 8) {
        memcpy (&large, at, sizeof large);
        return large;
    }
    memcpy (&small, at, sizeof small);
    memcpy (&plain, at, sizeof plain);
    bool is_plain = field->type == PROTOBUF_C_TYPE_UINT32 || field->type == PROTOBUF_C_TYPE_FIXED32;
    return is_plain ? (int64_t)plain : small;
}

void message_set_integer (ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                          int64_t value)
{
    void *at = message_at (message, field);
    protobuf_c_boolean yes = value != 0;
    uint32_t small = (uint32_t)value;
    if (field->type == PROTOBUF_C_TYPE_BOOL)
        memcpy (at, &yes, sizeof yes);
    else if (integer_size (field) == 8)
        memcpy (at, &value, sizeof value);
    else
        memcpy (at, &small, sizeof small);
}

void message_set_list (ProtobufCMessage *message, const char *name, void *items, size_t count)
{
    const ProtobufCFieldDescriptor *field = message_field (message->descriptor, name);
    assert (field && field->label == PROTOBUF_C_LABEL_REPEATED);
    memcpy (message_at (message, field), &items, sizeof items);
    memcpy ((char *)message + field->quantifier_offset, &count, sizeof count);
}

size_t message_list (const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                     void **items_out)
{
    size_t count;
    assert (field->label == PROTOBUF_C_LABEL_REPEATED);
    memcpy (items_out, message_at (message, field), sizeof *items_out);
    memcpy (&count, (const char *)message + field->quantifier_offset, sizeof count);
    return count;
}

const char *message_word (const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                          struct arena *arena)
{
    const ProtobufCEnumDescriptor *type = field->descriptor;
    const ProtobufCEnumValue *value =
        protobuf_c_enum_descriptor_get_value (type, (int)message_integer (message, field));
    size_t common = strlen (type->values[0].name);
    for (unsigned i = 1; i < type->n_values; i++)
        while (strncmp (type->values[0].name, type->values[i].name, common) != 0)
            common--;
    while (common && type->values[0].name[common - 1] != '_')
        common--;
    char *word = arena_strdup (arena, value ? value->name + common : "unknown");
    for (char *c = word; *c; c++)
        *c = (char)tolower ((unsigned char)*c);
    return word;
}

const char *message_text (const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                          const char *between, struct arena *arena)
{
    const char *text;
    assert (field->type == PROTOBUF_C_TYPE_STRING);
    if (field->label != PROTOBUF_C_LABEL_REPEATED) {
        memcpy (&text, message_at (message, field), sizeof text);
        return text ? text : "";
    }
    void *items;
    size_t count = message_list (message, field, &items);
    char *const *item = items;
    text = count ? item[0] : "";
    for (size_t i = 1; i < count; i++)
        text = arena_printf (arena, "%s%s%s", text, between, item[i]);
    return text;
}

const char *message_wide (const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    const char *text = NULL;
    int length = (int)strlen (field->name) - (int)strlen ("_micro");
    const ProtobufCFieldDescriptor *wide =
        message_field_ends (field, "_micro")
            ? field_with (message->descriptor, field->name, length, "_wide")
            : NULL;
    if (wide)
        memcpy (&text, message_at (message, wide), sizeof text);
    return text ? text : "";
}

const ProtobufCFieldDescriptor *message_rows (const ProtobufCMessageDescriptor *type)
{
    for (unsigned i = 0; i < type->n_fields; i++)
        if (type->fields[i].label == PROTOBUF_C_LABEL_REPEATED &&
            type->fields[i].type == PROTOBUF_C_TYPE_MESSAGE)
            return &type->fields[i];
    return NULL;
}

ProtobufCMessage *message_new (const ProtobufCMessageDescriptor *type, struct arena *arena)
{
    ProtobufCMessage *message = arena_zalloc (arena, type->sizeof_message);
    type->message_init (message);
    return message;
}
