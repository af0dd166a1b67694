/* slurm_json: cuts a stream of JSON into the objects of its arrays, byte by byte, and reads
 * typed fields from one. slurm_rest.c feeds it, the parsers read. It never holds a whole answer,
 * and an object beyond its bound is an error. */
#include "local/rm/slurm/slurm_json.h"

#include <stdio.h>
#include <string.h>

#include "proto/base/text.h"

enum { DEPTH_MAX = 1000 };

void slurm_split_init (struct slurm_split *split)
{
    *split = (struct slurm_split){0};
}

void slurm_split_free (struct slurm_split *split)
{
    strbuf_free (&split->object);
}

static int object_end (struct slurm_split *split,
                       int (*fn) (void *arg, const char *key, json_t *object, struct err *err),
                       void *arg, struct err *err)
{
    json_error_t why;
    json_t *object = json_loadb (split->object.data, split->object.len, 0, &why);
    split->collecting = false;
    strbuf_clear (&split->object);
    if (!object)
        return err_set (err, ERR_INVALID, "slurmrestd: an entry of \"%s\" is no JSON: %s",
                        split->key, why.text);
    int rc = fn (arg, split->key, object, err);
    json_decref (object);
    return rc;
}

static void key_byte (struct slurm_split *split, char c)
{
    if ((split->depth == 1 || (split->paths && split->depth == 2)) &&
        split->text_len < sizeof split->text - 1)
        split->text[split->text_len++] = c;
}

/* One byte outside of strings. Returns 1 when it ended an object of an array. */
static int structure (struct slurm_split *split, char c)
{
    switch (c) {
    case '"':
        split->string = true;
        if (split->depth < 3) /* a deeper one is no key of ours */
            split->text_len = 0;
        break;
    case '{':
    case '[':
        split->depth++;
        if (split->depth == 2) {
            split->text[split->text_len] = 0;
            memcpy (split->key, split->text, sizeof split->key);
            split->array = c == '[';
            split->paths = c == '{' && strcmp (split->key, "paths") == 0;
        }
        if (split->depth == 3 && (split->array || split->paths) && c == '{') {
            split->text[split->text_len] = 0;
            memcpy (split->name, split->text, sizeof split->name);
            split->collecting = true;
        }
        break;
    case '}':
    case ']':
        split->depth--;
        if (split->depth == 0)
            split->done = true;
        return split->depth == 2 && split->collecting;
    default:
        break;
    }
    return 0;
}

/* Bytes of the object under way. */
static int collect (struct slurm_split *split, const char *bytes, size_t len, struct err *err)
{
    if (split->object.len + len > SLURM_OBJECT_MAX)
        return err_set (err, ERR_LIMIT, "slurmrestd: an entry of \"%s\" is longer than %d bytes",
                        split->key, SLURM_OBJECT_MAX);
    strbuf_append (&split->object, bytes, len);
    return 0;
}

static void string_byte (struct slurm_split *split, char c)
{
    if (split->escape)
        split->escape = false;
    else if (c == '\\')
        split->escape = true;
    else if (c == '"')
        split->string = false;
    if (split->string && !split->escape)
        key_byte (split, c);
}

int slurm_split_feed (struct slurm_split *split, const char *bytes, size_t len,
                      int (*fn) (void *arg, const char *key, json_t *object, struct err *err),
                      void *arg, struct err *err)
{
    size_t from = 0, i = 0; /* from: of the object under way */
    while (!split->begun && i < len && strchr (" \n\r\t", bytes[i]))
        i++;
    if (!split->begun && i < len && bytes[i] != '{')
        return err_set (err, ERR_INVALID, "slurmrestd answered something that is no JSON object");
    for (; i < len && !split->done; i++) {
        bool collecting = split->collecting;
        split->begun = true;
        if (split->string) {
            string_byte (split, bytes[i]);
            continue;
        }
        bool ended = structure (split, bytes[i]) != 0;
        if (split->depth > DEPTH_MAX)
            return err_set (err, ERR_LIMIT, "slurmrestd: an answer of more than %d levels",
                            DEPTH_MAX);
        if (split->collecting && !collecting)
            from = i;
        if (!ended)
            continue;
        int rc = collect (split, bytes + from, i + 1 - from, err);
        if (rc == 0)
            rc = object_end (split, fn, arg, err);
        if (rc != 0)
            return rc;
    }
    return split->collecting ? collect (split, bytes + from, len - from, err) : 0;
}

/* --- fields ------------------------------------------------------------------------------- */

static const char *type_name (const json_t *v)
{
    static const char *const names[] = {
        [JSON_OBJECT] = "an object",    [JSON_ARRAY] = "a list",  [JSON_STRING] = "a text",
        [JSON_INTEGER] = "a number",    [JSON_REAL] = "a number", [JSON_TRUE] = "a truth value",
        [JSON_FALSE] = "a truth value", [JSON_NULL] = "null",
    };
    return names[json_typeof (v)];
}

static int field_of (const json_t *o, const char *what, const char *field, bool required,
                     json_t **out, struct err *err)
{
    json_t *v = json_object_get (o, field);
    *out = v && !json_is_null (v) ? v : NULL;
    if (!v && required)
        return err_set (err, ERR_INVALID, "slurmrestd: %s has no field \"%s\"", what, field);
    return 0;
}

int slurm_int (const json_t *o, const char *what, const char *field, bool required,
               int64_t otherwise, int64_t *out, struct err *err)
{
    json_t *v;
    *out = otherwise;
    int rc = field_of (o, what, field, required, &v, err);
    if (rc != 0 || !v)
        return rc;
    if (json_is_object (v)) {
        json_t *number = json_object_get (v, "number");
        if (!json_is_integer (number))
            return err_set (err, ERR_INVALID, "slurmrestd: field \"%s\" of %s holds no number",
                            field, what);
        if (json_is_true (json_object_get (v, "set")) &&
            !json_is_true (json_object_get (v, "infinite")))
            *out = json_integer_value (number);
        return 0;
    }
    if (json_is_real (v) && json_real_value (v) > -9e18 && json_real_value (v) < 9e18)
        *out = (int64_t)json_real_value (v);
    else if (json_is_integer (v))
        *out = json_integer_value (v);
    else
        return err_set (err, ERR_INVALID, "slurmrestd: field \"%s\" of %s is %s, wanted a number",
                        field, what, type_name (v));
    return 0;
}

int slurm_text (const json_t *o, const char *what, const char *field, bool required,
                const char **out, struct err *err)
{
    json_t *v;
    *out = "";
    int rc = field_of (o, what, field, required, &v, err);
    if (rc != 0 || !v)
        return rc;
    if (json_is_array (v)) /* of words, the main one first: a state and its flags */
        v = json_array_get (v, 0);
    if (v && !json_is_string (v))
        return err_set (err, ERR_INVALID, "slurmrestd: field \"%s\" of %s is %s, wanted a text",
                        field, what, type_name (v));
    if (v)
        *out = json_string_value (v);
    return 0;
}

int slurm_words (const json_t *o, const char *what, const char *field, struct strbuf *out,
                 struct err *err)
{
    json_t *v = json_object_get (o, field), *one;
    const char *word;
    size_t i;
    if (!json_is_array (v)) {
        int rc = slurm_text (o, what, field, false, &word, err);
        if (rc == 0)
            strbuf_puts (out, word);
        return rc;
    }
    json_array_foreach (v, i, one)
    {
        if (!json_is_string (one))
            return err_set (err, ERR_INVALID,
                            "slurmrestd: an entry of the list \"%s\" of %s is %s, wanted a text",
                            field, what, type_name (one));
        strbuf_printf (out, "%s%s", i ? "," : "", json_string_value (one));
    }
    return 0;
}

bool slurm_has_word (const json_t *o, const char *field, const char *word)
{
    json_t *v = json_object_get (o, field), *one;
    size_t i;
    if (json_is_string (v))
        return strcasecmp (json_string_value (v), word) == 0;
    json_array_foreach (v, i, one) if (json_is_string (one) &&
                                       strcasecmp (json_string_value (one), word) == 0) return true;
    return false;
}

bool slurm_error_of (const json_t *entry, int64_t *number, char *text, size_t cap)
{
    static const char *const numbers[] = {"error_number", "error_code", "errno"};
    static const char *const words[] = {"error", "description"};
    const char *said = NULL;
    *number = 0;
    for (size_t i = 0; i < 3 && *number == 0; i++)
        *number = json_integer_value (json_object_get (entry, numbers[i]));
    for (size_t i = 0; i < 2 && !said; i++)
        said = json_string_value (json_object_get (entry, words[i]));
    text_printf (text, cap, "%s", said ? said : "an error without words");
    return *number != 0;
}
