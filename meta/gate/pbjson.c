/* Protobuf messages as JSON, read and written field by field as their descriptors say. Used by the gate for all that is not the
 * IRI API; it knows no message by name. */
#include "meta/gate/pbjson.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef ProtobufCFieldDescriptor Field;

enum { PBJSON_DEPTH_MAX = 16 };

static size_t size_of (ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return 8;
    case PROTOBUF_C_TYPE_BOOL:
        return sizeof (protobuf_c_boolean);
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        return sizeof (void *);
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof (ProtobufCBinaryData);
    default:
        return 4;
    }
}

/* ---- writing */

static json_t *bytes_json (const ProtobufCBinaryData *bytes)
{
    char *text = malloc (bytes->len / 3 * 4 + 8);
    if (!text)
        abort ();
    text[0] = '\0';
    EVP_EncodeBlock ((unsigned char *)text, bytes->data, (int)bytes->len);
    json_t *json = json_string (text);
    free (text);
    return json;
}

static json_t *number_text (bool is_signed, uint64_t value)
{
    char text[32];
    if (is_signed)
        snprintf (text, sizeof text, "%lld", (long long)value);
    else
        snprintf (text, sizeof text, "%llu", (unsigned long long)value);
    return json_string (text);
}

static json_t *value_json (const Field *f, const void *at)
{
    const ProtobufCEnumValue *word;
    switch (f->type) {
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        return number_text (true, *(const uint64_t *)at);
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        return number_text (false, *(const uint64_t *)at);
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        return json_integer (*(const uint32_t *)at);
    case PROTOBUF_C_TYPE_BOOL:
        return json_boolean (*(const protobuf_c_boolean *)at);
    case PROTOBUF_C_TYPE_DOUBLE:
        return json_real (*(const double *)at);
    case PROTOBUF_C_TYPE_FLOAT:
        return json_real ((double)*(const float *)at);
    case PROTOBUF_C_TYPE_STRING:
        return json_string (*(char *const *)at ? *(char *const *)at : "");
    case PROTOBUF_C_TYPE_BYTES:
        return bytes_json (at);
    case PROTOBUF_C_TYPE_MESSAGE:
        return *(ProtobufCMessage *const *)at ? pbjson_write (*(ProtobufCMessage *const *)at)
                                              : NULL;
    case PROTOBUF_C_TYPE_ENUM:
        word = protobuf_c_enum_descriptor_get_value (f->descriptor, *(const int *)at);
        return word ? json_string (word->name) : json_integer (*(const int *)at);
    default:
        return json_integer (*(const int32_t *)at);
    }
}

json_t *pbjson_write (const ProtobufCMessage *message)
{
    json_t *object = json_object ();
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const Field *f = &message->descriptor->fields[i];
        const char *at = (const char *)message + f->offset;
        if (f->label == PROTOBUF_C_LABEL_REPEATED) {
            size_t count =
                *(const size_t *)(const void *)((const char *)message + f->quantifier_offset);
            json_t *list = json_array ();
            for (size_t k = 0; k < count; k++)
                json_array_append_new (list, value_json (f, *(const char *const *)(const void *)at +
                                                                k * size_of (f->type)));
            json_object_set_new (object, f->name, list);
            continue;
        }
        json_t *value = value_json (f, at);
        if (value)
            json_object_set_new (object, f->name, value);
    }
    return object;
}

/* ---- reading */

static int number_read (const Field *f, json_t *json, uint64_t *out, struct err *err)
{
    bool negative = f->type == PROTOBUF_C_TYPE_INT64 || f->type == PROTOBUF_C_TYPE_INT32 ||
                    f->type == PROTOBUF_C_TYPE_SINT64 || f->type == PROTOBUF_C_TYPE_SINT32;
    bool wide = size_of (f->type) == 8;
    const char *text = json_string_value (json);
    char *end = NULL, digits[32];
    if (json_is_integer (json)) {
        snprintf (digits, sizeof digits, "%lld", (long long)json_integer_value (json));
        text = digits;
    }
    if (!text || !*text || strspn (text, negative ? "-0123456789" : "0123456789") != strlen (text))
        return err_set (err, ERR_INVALID, "%s: wanted a %s number", f->name,
                        negative ? "whole" : "whole, not negative");
    errno = 0;
    *out = negative ? (uint64_t)strtoll (text, &end, 10) : strtoull (text, &end, 10);
    bool fits = wide || (negative ? (int64_t)*out == (int32_t)*out : *out <= UINT32_MAX);
    return errno == 0 && *end == '\0' && fits
               ? 0
               : err_set (err, ERR_INVALID, "%s: %.40s is out of range", f->name, text);
}

static int bytes_read (const Field *f, json_t *json, ProtobufCBinaryData *out, struct err *err)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *text = json_string_value (json);
    size_t len = text ? strlen (text) : 0, digits = text ? strspn (text, alphabet) : 0;
    size_t pad = text ? strspn (text + digits, "=") : 0;
    if (!text || len % 4 != 0 || digits + pad != len || pad > 2)
        return err_set (err, ERR_INVALID, "%s: wanted bytes as base64", f->name);
    *out = (ProtobufCBinaryData){0, NULL};
    if (len == 0)
        return 0;
    out->data = malloc (len);
    if (!out->data)
        abort ();
    out->len = (size_t)EVP_DecodeBlock (out->data, (const unsigned char *)text, (int)len) - pad;
    return 0;
}

static int text_read (const Field *f, json_t *json, char **out, struct err *err)
{
    const char *text = json_string_value (json);
    if (!text)
        return err_set (err, ERR_INVALID, "%s: wanted a text", f->name);
    *out = strdup (text);
    if (!*out)
        abort ();
    return 0;
}

static int enum_read (const Field *f, json_t *json, int *out, struct err *err)
{
    const ProtobufCEnumValue *word =
        json_is_string (json)
            ? protobuf_c_enum_descriptor_get_value_by_name (f->descriptor, json_string_value (json))
            : NULL;
    if (!word)
        return err_set (err, ERR_INVALID, "%s: wanted one of its words", f->name);
    *out = word->value;
    return 0;
}

static ProtobufCMessage *read_within (const ProtobufCMessageDescriptor *descriptor, json_t *json,
                                      unsigned depth, struct err *err);

static int value_read (const Field *f, json_t *json, void *at, unsigned depth, struct err *err)
{
    uint64_t number;
    switch (f->type) {
    case PROTOBUF_C_TYPE_BOOL:
        if (!json_is_boolean (json))
            return err_set (err, ERR_INVALID, "%s: wanted true or false", f->name);
        *(protobuf_c_boolean *)at = json_is_true (json);
        return 0;
    case PROTOBUF_C_TYPE_DOUBLE:
        if (!json_is_number (json))
            return err_set (err, ERR_INVALID, "%s: wanted a number", f->name);
        *(double *)at = json_number_value (json);
        return 0;
    case PROTOBUF_C_TYPE_STRING:
        return text_read (f, json, at, err);
    case PROTOBUF_C_TYPE_BYTES:
        return bytes_read (f, json, at, err);
    case PROTOBUF_C_TYPE_ENUM:
        return enum_read (f, json, at, err);
    case PROTOBUF_C_TYPE_MESSAGE:
        *(ProtobufCMessage **)at = read_within (f->descriptor, json, depth + 1, err);
        return *(ProtobufCMessage **)at ? 0 : err_prefix (err, "%s", f->name);
    default:
        if (number_read (f, json, &number, err) < 0)
            return err->code;
        memcpy (at, &number, size_of (f->type)); /* little end first */
        return 0;
    }
}

static int list_read (const Field *f, json_t *json, ProtobufCMessage *message, unsigned depth,
                      struct err *err)
{
    size_t *count = (size_t *)(void *)((char *)message + f->quantifier_offset), wanted;
    char **items = (char **)(void *)((char *)message + f->offset);
    if (!json_is_array (json))
        return err_set (err, ERR_INVALID, "%s: wanted a list", f->name);
    wanted = json_array_size (json);
    *items = wanted ? calloc (wanted, size_of (f->type)) : NULL;
    if (wanted && !*items)
        abort ();
    for (size_t i = 0; i < wanted; i++) {
        if (value_read (f, json_array_get (json, i), *items + i * size_of (f->type), depth, err) <
            0)
            return err->code; /* what is there is freed with the message */
        *count = i + 1;
    }
    return 0;
}

ProtobufCMessage *pbjson_new (const ProtobufCMessageDescriptor *descriptor)
{
    ProtobufCMessage *message = malloc (descriptor->sizeof_message);
    if (!message)
        abort ();
    protobuf_c_message_init (descriptor, message);
    return message;
}

static ProtobufCMessage *read_within (const ProtobufCMessageDescriptor *descriptor, json_t *json,
                                      unsigned depth, struct err *err)
{
    const char *key;
    json_t *value;
    int rc = 0;
    if (!json_is_object (json) || depth > PBJSON_DEPTH_MAX) {
        err_set (err, ERR_INVALID, "wanted an object");
        return NULL;
    }
    ProtobufCMessage *message = pbjson_new (descriptor);
    json_object_foreach (json, key, value)
    {
        const Field *f = protobuf_c_message_descriptor_get_field_by_name (descriptor, key);
        if (json_is_null (value))
            continue;
        if (!f)
            rc = err_set (err, ERR_INVALID, "there is no field '%.60s'", key);
        else if (f->label == PROTOBUF_C_LABEL_REPEATED)
            rc = list_read (f, value, message, depth, err);
        else
            rc = value_read (f, value, (char *)message + f->offset, depth, err);
        if (rc < 0)
            break;
    }
    if (rc == 0)
        return message;
    protobuf_c_message_free_unpacked (message, NULL);
    return NULL;
}

ProtobufCMessage *pbjson_read (const ProtobufCMessageDescriptor *descriptor, json_t *json,
                               struct err *err)
{
    return read_within (descriptor, json, 0, err);
}

int pbjson_set (ProtobufCMessage *message, const char *field, const char *text, struct err *err)
{
    const Field *f = protobuf_c_message_descriptor_get_field_by_name (message->descriptor, field);
    if (!f || f->type == PROTOBUF_C_TYPE_MESSAGE || f->type == PROTOBUF_C_TYPE_BYTES)
        return err_set (err, ERR_NOT_FOUND, "there is no parameter '%.60s'", field);
    json_t *json = f->type != PROTOBUF_C_TYPE_BOOL ? json_string (text)
                   : strcmp (text, "true") == 0    ? json_true ()
                   : strcmp (text, "false") == 0   ? json_false ()
                                                   : json_string (text);
    if (!json)
        return err_set (err, ERR_INVALID, "%s: no text", field);
    int rc;
    if (f->label == PROTOBUF_C_LABEL_REPEATED) {
        json_t *list = json_array ();
        char *copy = strdup (text), *save = NULL;
        for (char *word = strtok_r (copy, ",", &save); word; word = strtok_r (NULL, ",", &save))
            json_array_append_new (list, json_string (word));
        rc = list_read (f, list, message, 0, err);
        free (copy);
        json_decref (list);
    } else {
        rc = value_read (f, json, (char *)message + f->offset, 0, err);
    }
    json_decref (json);
    return rc;
}

/* ---- schemas */

static json_t *field_schema (const Field *f, json_t *schemas)
{
    json_t *list;
    switch (f->type) {
    case PROTOBUF_C_TYPE_BOOL:
        return json_pack ("{s:s}", "type", "boolean");
    case PROTOBUF_C_TYPE_STRING:
        return json_pack ("{s:s}", "type", "string");
    case PROTOBUF_C_TYPE_BYTES:
        return json_pack ("{s:s, s:s}", "type", "string", "contentEncoding", "base64");
    case PROTOBUF_C_TYPE_MESSAGE:
        return pbjson_schema (f->descriptor, schemas);
    case PROTOBUF_C_TYPE_DOUBLE:
    case PROTOBUF_C_TYPE_FLOAT:
        return json_pack ("{s:s}", "type", "number");
    case PROTOBUF_C_TYPE_ENUM:
        list = json_array ();
        for (unsigned i = 0; i < ((const ProtobufCEnumDescriptor *)f->descriptor)->n_values; i++)
            json_array_append_new (
                list,
                json_string (((const ProtobufCEnumDescriptor *)f->descriptor)->values[i].name));
        return json_pack ("{s:s, s:o}", "type", "string", "enum", list);
    default:
        return size_of (f->type) == 8
                   ? json_pack ("{s:s, s:s}", "type", "string", "pattern", "^-?[0-9]+$")
                   : json_pack ("{s:s}", "type", "integer");
    }
}

json_t *pbjson_schema (const ProtobufCMessageDescriptor *descriptor, json_t *schemas)
{
    char ref[200];
    if (!json_object_get (schemas, descriptor->name)) {
        json_t *properties = json_object ();
        json_object_set_new (schemas, descriptor->name,
                             json_pack ("{s:s, s:b, s:o}", "type", "object", "additionalProperties",
                                        0, "properties", properties));
        for (unsigned i = 0; i < descriptor->n_fields; i++) {
            const Field *f = &descriptor->fields[i];
            json_t *schema = field_schema (f, schemas);
            if (f->label == PROTOBUF_C_LABEL_REPEATED)
                schema = json_pack ("{s:s, s:o}", "type", "array", "items", schema);
            json_object_set_new (properties, f->name, schema);
        }
    }
    snprintf (ref, sizeof ref, "#/components/schemas/%s", descriptor->name);
    return json_pack ("{s:s}", "$ref", ref);
}
