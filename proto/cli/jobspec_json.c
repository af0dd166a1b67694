/* A job from a file of JSON, whose keys are the options' long names. */
#include <jansson.h>
#include <string.h>

#include "proto/cli/jobspec_i.h"

static int json_value (struct jobspec *spec, struct part *part, const char *key, json_t *value,
                       struct err *err)
{
    const char *text = NULL;
    if (json_is_string (value))
        text = json_string_value (value);
    else if (json_is_integer (value))
        text = arena_printf (spec->arena, "%lld", (long long)json_integer_value (value));
    else
        return err_set (err, ERR_INVALID, "'%s' must be text or a whole number", key);
    int rc =
        part ? jobspec_part_set (spec, part, key, text, err) : jobspec_set (spec, key, text, err);
    return rc == ERR_NOT_FOUND ? err_set (err, ERR_INVALID, "there is no key '%s'", key) : rc;
}

static int json_entry (struct jobspec *spec, struct part *part, const char *key, json_t *value,
                       struct err *err)
{
    if (!json_is_array (value))
        return json_value (spec, part, key, value, err);
    bool each = !strcmp (key, "env") || !strncmp (key, "stage-", 6);
    if (!each && strcmp (key, "site") && strcmp (key, "features") && strcmp (key, "like"))
        return err_set (err, ERR_INVALID, "'%s' cannot be a list", key);
    const char *joined = "";
    size_t i;
    json_t *item;
    json_array_foreach (value, i, item)
    {
        if (!json_is_string (item))
            return err_set (err, ERR_INVALID, "'%s' must be a list of texts", key);
        if (each) {
            int rc = json_value (spec, part, key, item, err);
            if (rc < 0)
                return rc;
        }
        joined =
            arena_printf (spec->arena, "%s%s%s", joined, i ? "," : "", json_string_value (item));
    }
    if (each)
        return 0;
    return part ? jobspec_part_set (spec, part, key, joined, err)
                : jobspec_set (spec, key, joined, err);
}

static int json_components (struct jobspec *spec, json_t *list, struct err *err)
{
    if (!json_is_array (list))
        return err_set (err, ERR_INVALID, "'components' must be a list");
    if (spec->components_closed || spec->component_count)
        return 0;
    size_t i;
    json_t *item;
    json_array_foreach (list, i, item)
    {
        const char *name = json_string_value (json_object_get (item, "name"));
        if (!name)
            return err_set (err, ERR_INVALID, "component %zu has no 'name'", i + 1);
        struct part *part = jobspec_component_add (spec, name, err);
        if (!part)
            return err->code;
        const char *key;
        json_t *value;
        json_object_foreach (item, key, value)
        {
            if (strcmp (key, "name") && json_entry (spec, part, key, value, err) < 0)
                return err_prefix (err, "component '%s'", name);
        }
    }
    return 0;
}

static int json_args (struct jobspec *spec, json_t *list, struct err *err)
{
    if (!json_is_array (list))
        return err_set (err, ERR_INVALID, "'args' must be a list of texts");
    if (spec->args.count)
        return 0;
    size_t i;
    json_t *item;
    json_array_foreach (list, i, item)
    {
        if (!json_is_string (item))
            return err_set (err, ERR_INVALID, "'args' must be a list of texts");
        if (jobspec_list_add (spec, &spec->args,
                              arena_strdup (spec->arena, json_string_value (item)), err) < 0)
            return err_prefix (err, "'args'");
    }
    return 0;
}

int jobspec_json (struct jobspec *spec, const char *path, struct err *err)
{
    spec->source = 1;
    struct err local;
    err = err ? err : &local;
    char *data;
    size_t len;
    int rc = jobspec_file_read (spec, path, JOBSPEC_SCRIPT_MAX, &data, &len, err);
    if (rc < 0)
        return rc;
    json_error_t where;
    json_t *root = json_loadb (data, len, JSON_REJECT_DUPLICATES, &where);
    if (!root)
        return err_set (err, ERR_INVALID, "%s, line %d: %s", path, where.line, where.text);
    if (!json_is_object (root))
        rc = err_set (err, ERR_INVALID, "a job must be an object");
    const char *key;
    json_t *value;
    json_object_foreach (root, key, value)
    {
        if (!strcmp (key, "components"))
            rc = json_components (spec, value, err);
        else if (!strcmp (key, "args"))
            rc = json_args (spec, value, err);
        else
            rc = json_entry (spec, NULL, key, value, err);
        if (rc < 0)
            break;
    }
    json_decref (root);
    if (rc < 0)
        return err_prefix (err, "%s", path);
    spec->components_closed = spec->component_count > 0;
    return 0;
}
