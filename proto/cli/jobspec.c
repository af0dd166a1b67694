#include "proto/cli/jobspec.h"

#include <assert.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "proto/cli/stageoption.h"
#include "proto/rpc/jobshape.h"
#include "proto/rpc/jobstage.h"

enum { REQS_MORE = 63 };
#define RETRY_DELAY_US (10 * US_PER_S)

struct text_list {
    const char **item;
    size_t count;
    size_t cap;
};

/* What a component, or the defaults of all, was told; NULL and -1 mean "not told". */
struct part {
    const char *name;
    int64_t tasks, nodes, tpn, procs_per_task, mem_mb, swap_mb, disk_mb;
    int64_t walltime_us;
    bool offset_set;
    int64_t offset_us;
    struct text_list features, liked, sites, env, gres, licences, partitions, stage_in, stage_out;
    struct part *req[REQS_MORE]; /* further reqs, each with what a req may have */
    uint32_t req_count;
    const char *qos, *class, *output, *error, *nodeset, *hosts, *exclude, *node_access, *trl, *reservation;
    const char *script_path;
};

struct jobspec {
    struct arena *arena;
    time_us now;
    const char *account, *name;
    time_us after, start_by, deadline;
    duration_us valid;
    const char *depend, *flags, *prefer, *quote; /* as given */
    bool held, walltime_optional;
    credit_micro cost_max;
    int64_t retries, retry_delay_us;
    const char *retry_on, *on_site_loss, *notify;
    struct part defaults;
    struct part component[JOBSPEC_COMPONENTS_MAX];
    uint32_t component_count;
    bool components_closed; /* an earlier source gave the list: later ones don't add to it */
    struct text_list args;
};

static struct part part_unset (const char *name)
{
    return (struct part){.name = name,
                         .tasks = -1,
                         .nodes = -1,
                         .tpn = -1,
                         .procs_per_task = -1,
                         .mem_mb = -1,
                         .swap_mb = -1,
                         .disk_mb = -1,
                         .walltime_us = -1};
}

struct jobspec *jobspec_create (struct arena *arena, time_us now)
{
    struct jobspec *spec = arena_new (arena, struct jobspec);
    spec->arena = arena;
    spec->now = now;
    spec->after = TIME_US_NONE;
    spec->start_by = TIME_US_NONE;
    spec->deadline = TIME_US_NONE;
    spec->cost_max = -1;
    spec->retries = spec->retry_delay_us = -1;
    spec->defaults = part_unset (NULL);
    return spec;
}

void jobspec_walltime_optional (struct jobspec *spec)
{
    spec->walltime_optional = true;
}

static int list_add (struct jobspec *spec, struct text_list *list, const char *text,
                     struct err *err)
{
    if (list->count == JOBSPEC_LIST_MAX)
        return err_set (err, ERR_LIMIT, "a list may have %d entries", JOBSPEC_LIST_MAX);
    if (list->count == list->cap) {
        size_t cap = list->cap ? list->cap * 2 : 8;
        const char **grown = arena_array (spec->arena, cap, sizeof *grown);
        if (list->count)
            memcpy (grown, list->item, list->count * sizeof *grown);
        list->item = grown;
        list->cap = cap;
    }
    list->item[list->count++] = text;
    return 0;
}

/* Splits at commas; empty pieces are refused. */
static int list_split (struct jobspec *spec, struct text_list *list, const char *key,
                       const char *text, bool names, struct err *err)
{
    char *copy = arena_strdup (spec->arena, text);
    for (char *rest = copy; rest;) {
        char *piece = strsep (&rest, ",");
        if (!*piece)
            return err_set (err, ERR_INVALID, "--%s: empty name in '%s'", key, text);
        if (names && name_check (key, piece, err) < 0)
            return err->code;
        if (list_add (spec, list, piece, err) < 0)
            return err_prefix (err, "--%s", key);
    }
    return 0;
}

static int set_count (int64_t *slot, const char *key, const char *value, uint64_t max,
                      struct err *err)
{
    uint64_t n;
    if (uint_parse (value, key, 1, max, &n, err) < 0)
        return err->code = ERR_INVALID; /* out of range is as wrong as malformed */
    if (*slot < 0)
        *slot = (int64_t)n;
    return 0;
}

static int set_text (struct jobspec *spec, const char **slot, const char *key, const char *value,
                     struct err *err)
{
    if (!*value)
        return err_set (err, ERR_INVALID, "--%s needs a value", key);
    if (strlen (value) > 1024)
        return err_set (err, ERR_LIMIT, "--%s may have 1024 characters", key);
    if (!*slot)
        *slot = arena_strdup (spec->arena, value);
    return 0;
}

static int set_name (struct jobspec *spec, const char **slot, const char *key, const char *value,
                     struct err *err)
{
    if (name_check (key, value, err) < 0)
        return err ? err->code : ERR_INVALID;
    return set_text (spec, slot, key, value, err);
}

/* A file name inside the job's directory: relative, without "..". */
static int set_file (struct jobspec *spec, const char **slot, const char *key, const char *value,
                     struct err *err)
{
    if (*value == '/' || strstr (value, ".."))
        return err_set (err, ERR_INVALID,
                        "--%s: '%s' must be a name inside the job's directory at the site", key,
                        value);
    return set_text (spec, slot, key, value, err);
}

static int set_env (struct jobspec *spec, struct part *part, const char *value, struct err *err)
{
    const char *equals = strchr (value, '=');
    size_t len = equals ? (size_t)(equals - value) : strlen (value);
    if (len == 0)
        return err_set (err, ERR_INVALID, "--env: '%s' is not NAME=VALUE or NAME", value);
    for (size_t i = 0; i < part->env.count; i++)
        if (!strncmp (part->env.item[i], value, len) && part->env.item[i][len] == '=')
            return 0;
    if (equals)
        return list_add (spec, &part->env, arena_strdup (spec->arena, value), err);
    const char *mine = getenv (value);
    if (!mine)
        return err_set (err, ERR_INVALID, "--env: %s is not in your environment", value);
    return list_add (spec, &part->env, arena_printf (spec->arena, "%s=%s", value, mine), err);
}

static int set_walltime (struct part *part, const char *value, struct err *err)
{
    duration_us d;
    int rc = duration_parse (value, &d, err);
    if (rc < 0)
        return err_prefix (err, "--time");
    if (d < US_PER_S || d > INT64_C (366) * 86400 * US_PER_S)
        return err_set (err, ERR_INVALID, "--time: '%s' is not between a second and a year", value);
    if (part->walltime_us < 0)
        part->walltime_us = d;
    return 0;
}

static int set_offset (struct part *part, const char *value, struct err *err)
{
    bool minus = *value == '-';
    duration_us d;
    if (duration_parse (value + (minus || *value == '+'), &d, err) < 0 || d > 86400 * US_PER_S)
        return err_set (err, ERR_INVALID, "offset: '%s' is not a duration of at most a day", value);
    if (!part->offset_set)
        part->offset_us = minus ? -d : d;
    part->offset_set = true;
    return 0;
}

static int part_set (struct jobspec *spec, struct part *part, const char *key, const char *value,
                     struct err *err);

/* "tasks=24,mem=128M" or with '/' in place of ',': one more req beside what the job itself says. */
static int set_req (struct jobspec *spec, struct part *part, const char *value, struct err *err)
{
    static const char *const keys[] = {"tasks", "nodes", "tpn",  "procs-per-task", "mem",
                                       "swap",  "disk",  "gres", "features",       "like", NULL};
    char *rest = arena_strdup (spec->arena, value);
    struct part *req = arena_new (spec->arena, struct part);
    int rc = 0;

    if (part->req_count == REQS_MORE)
        return err_set (err, ERR_LIMIT, "--req: a job may have %d reqs", REQS_MORE + 1);
    *req = part_unset (NULL);
    while (rc == 0 && rest && *rest) {
        char *piece = strsep (&rest, ",/"), *equals = strchr (piece, '=');
        bool known = false;
        if (equals)
            *equals++ = '\0';
        for (size_t i = 0; equals && keys[i]; i++)
            known = known || !strcmp (keys[i], piece);
        if (!known)
            return err_set (err, ERR_INVALID,
                            "--req: '%s' is not tasks, nodes, tpn, procs-per-task, mem, swap, disk, gres, "
                            "features or like with a value",
                            piece);
        rc = part_set (spec, req, piece, equals, err);
    }
    if (rc < 0)
        return err_prefix (err, "--req");
    part->req[part->req_count++] = req;
    return 0;
}

static int set_memory (int64_t *field, const char *key, const char *value, struct err *err)
{
    int64_t mb;
    if (memory_parse (value, &mb, err) < 0)
        return err_prefix (err, "--%s", key);
    if (*field < 0)
        *field = mb;
    return 0;
}

/* Keys that a component may have. ERR_NOT_FOUND when key is none of them. */
static int part_set (struct jobspec *spec, struct part *part, const char *key, const char *value,
                     struct err *err)
{
    if (!strcmp (key, "tasks"))
        return set_count (&part->tasks, key, value, 1u << 20, err);
    if (!strcmp (key, "nodes"))
        return set_count (&part->nodes, key, value, 1u << 20, err);
    if (!strcmp (key, "tpn"))
        return set_count (&part->tpn, key, value, 1u << 16, err);
    if (!strcmp (key, "procs-per-task"))
        return set_count (&part->procs_per_task, key, value, 1u << 16, err);
    if (!strcmp (key, "mem"))
        return set_memory (&part->mem_mb, key, value, err);
    if (!strcmp (key, "swap"))
        return set_memory (&part->swap_mb, key, value, err);
    if (!strcmp (key, "disk"))
        return set_memory (&part->disk_mb, key, value, err);
    if (!strcmp (key, "time"))
        return set_walltime (part, value, err);
    if (!strcmp (key, "offset"))
        return set_offset (part, value, err);
    if (!strcmp (key, "features"))
        return part->features.count ? 0 : list_split (spec, &part->features, key, value, true, err);
    if (!strcmp (key, "like"))
        return part->liked.count ? 0 : list_split (spec, &part->liked, key, value, true, err);
    if (!strcmp (key, "site"))
        return part->sites.count ? 0 : list_split (spec, &part->sites, key, value, true, err);
    if (!strcmp (key, "gres"))
        return part->gres.count ? 0 : list_split (spec, &part->gres, key, value, false, err);
    if (!strcmp (key, "licence"))
        return part->licences.count ? 0
                                    : list_split (spec, &part->licences, key, value, false, err);
    if (!strcmp (key, "partition"))
        return part->partitions.count
                   ? 0
                   : list_split (spec, &part->partitions, key, value, true, err);
    if (!strcmp (key, "nodeset"))
        return set_text (spec, &part->nodeset, key, value, err);
    if (!strcmp (key, "hosts"))
        return set_text (spec, &part->hosts, key, value, err);
    if (!strcmp (key, "exclude"))
        return set_text (spec, &part->exclude, key, value, err);
    if (!strcmp (key, "node-access"))
        return set_name (spec, &part->node_access, key, value, err);
    if (!strcmp (key, "reservation"))
        return set_name (spec, &part->reservation, key, value, err);
    if (!strcmp (key, "req"))
        return set_req (spec, part, value, err);
    if (!strcmp (key, "trl"))
        return set_text (spec, &part->trl, key, value, err);
    if (!strcmp (key, "env"))
        return set_env (spec, part, value, err);
    if (!strcmp (key, "stage-in"))
        return list_add (spec, &part->stage_in, arena_strdup (spec->arena, value), err);
    if (!strcmp (key, "stage-out"))
        return list_add (spec, &part->stage_out, arena_strdup (spec->arena, value), err);
    if (!strcmp (key, "qos"))
        return set_name (spec, &part->qos, key, value, err);
    if (!strcmp (key, "class"))
        return set_name (spec, &part->class, key, value, err);
    if (!strcmp (key, "output"))
        return set_file (spec, &part->output, key, value, err);
    if (!strcmp (key, "error"))
        return set_file (spec, &part->error, key, value, err);
    if (!strcmp (key, "script"))
        return set_text (spec, &part->script_path, key, value, err);
    return err_set (err, ERR_NOT_FOUND, "there is no '%s'", key);
}

static int set_time (struct jobspec *spec, time_us *slot, const char *key, const char *value,
                     struct err *err)
{
    time_us t;
    if (time_parse (value, spec->now, &t, err) < 0)
        return err_prefix (err, "--%s", key);
    if (*slot == TIME_US_NONE)
        *slot = t;
    return 0;
}

static int set_delay (int64_t *slot, const char *key, const char *value, struct err *err)
{
    duration_us d;
    if (duration_parse (value, &d, err) < 0 || d > 3600 * US_PER_S)
        return err_set (err, ERR_INVALID, "--%s: '%s' is not a duration of at most an hour", key, value);
    if (*slot < 0)
        *slot = d;
    return 0;
}

int jobspec_set (struct jobspec *spec, const char *key, const char *value, struct err *err)
{
    struct err local;
    err = err ? err : &local;
    if (!strcmp (key, "account"))
        return set_name (spec, &spec->account, key, value, err);
    if (!strcmp (key, "name"))
        return set_name (spec, &spec->name, key, value, err);
    if (!strcmp (key, "after"))
        return set_time (spec, &spec->after, key, value, err);
    if (!strcmp (key, "deadline"))
        return set_time (spec, &spec->deadline, key, value, err);
    if (!strcmp (key, "start-by"))
        return set_time (spec, &spec->start_by, key, value, err);
    if (!strcmp (key, "valid")) {
        if (duration_parse (value, &spec->valid, err) < 0 || spec->valid < US_PER_S ||
            spec->valid > JOB_VALID_MAX_DAYS * INT64_C (86400) * US_PER_S)
            return err_set (err, ERR_INVALID, "--valid '%s' is no time up to %d days", value,
                            JOB_VALID_MAX_DAYS);
        return 0;
    }
    if (!strcmp (key, "prefer")) {
        if (strcmp (value, "earliest") && strcmp (value, "cheapest"))
            return err_set (err, ERR_INVALID, "--prefer: '%s' is not earliest or cheapest", value);
        return set_text (spec, &spec->prefer, key, value, err);
    }
    if (!strcmp (key, "quote")) {
        char prefix[8];
        uint64_t number;
        if (id_parse (value, prefix, sizeof prefix, &number, NULL) < 0 || strcmp (prefix, "quote"))
            return err_set (err, ERR_INVALID, "--quote: '%.64s' is not a quote, such as quote.7", value);
        return set_text (spec, &spec->quote, key, value, err);
    }
    if (!strcmp (key, "depend"))
        return set_text (spec, &spec->depend, key, value, err);
    if (!strcmp (key, "flags"))
        return set_text (spec, &spec->flags, key, value, err);
    if (!strcmp (key, "hold")) {
        spec->held = true;
        return 0;
    }
    if (!strcmp (key, "max-cost")) {
        credit_micro c;
        if (credit_parse (value, &c, err) < 0)
            return err_prefix (err, "--max-cost");
        if (c <= 0)
            return err_set (err, ERR_INVALID, "--max-cost: '%s' is not above zero", value);
        if (spec->cost_max < 0)
            spec->cost_max = c;
        return 0;
    }
    if (!strcmp (key, "retries"))
        return set_count (&spec->retries, key, value, 100, err);
    if (!strcmp (key, "retry-on"))
        return set_text (spec, &spec->retry_on, key, value, err);
    if (!strcmp (key, "retry-delay"))
        return set_delay (&spec->retry_delay_us, key, value, err);
    if (!strcmp (key, "on-site-loss")) {
        if (strcmp (value, "report") && strcmp (value, "resubmit"))
            return err_set (err, ERR_INVALID, "--on-site-loss: '%s' is not report or resubmit", value);
        return set_text (spec, &spec->on_site_loss, key, value, err);
    }
    if (!strcmp (key, "notify")) {
        if (strncmp (value, "http://", 7) && strncmp (value, "https://", 8))
            return err_set (err, ERR_INVALID, "--notify: '%s' is no http:// or https:// URL", value);
        return set_text (spec, &spec->notify, key, value, err);
    }
    if (!strcmp (key, "component"))
        return spec->components_closed ? 0 : jobspec_component (spec, value, err);
    if (!strcmp (key, "offset"))
        return err_set (err, ERR_INVALID, "offset belongs to a component");
    return part_set (spec, &spec->defaults, key, value, err);
}

static struct part *component_add (struct jobspec *spec, const char *name, struct err *err)
{
    if (name_check ("component", name, err) < 0)
        return NULL;
    for (uint32_t i = 0; i < spec->component_count; i++)
        if (!strcmp (spec->component[i].name, name)) {
            err_set (err, ERR_INVALID, "component '%s' is given twice", name);
            return NULL;
        }
    if (spec->component_count == JOBSPEC_COMPONENTS_MAX) {
        err_set (err, ERR_LIMIT, "a job may have %d components", JOBSPEC_COMPONENTS_MAX);
        return NULL;
    }
    struct part *part = &spec->component[spec->component_count++];
    *part = part_unset (arena_strdup (spec->arena, name));
    return part;
}

int jobspec_component (struct jobspec *spec, const char *text, struct err *err)
{
    struct err local;
    err = err ? err : &local;
    char *copy = arena_strdup (spec->arena, text);
    char *rest = copy;
    char *name = strsep (&rest, ":");
    struct part *part = component_add (spec, name, err);
    if (!part)
        return err->code;
    while (rest && *rest) {
        char *equals = strchr (rest, '=');
        if (!equals || equals == rest)
            return err_set (err, ERR_INVALID,
                            "component '%s': '%s' is not key=value (as in "
                            "left:site=alpha,tasks=2)",
                            name, rest);
        *equals = '\0';
        char *key = rest, *value = equals + 1;
        /* The value ends at the comma before the next "key=". */
        char *end = value;
        for (rest = NULL; (end = strchr (end, ',')); end++) {
            size_t word = strcspn (end + 1, ",=");
            if (end[1 + word] == '=' && !stageoption_piece (end + 1, word)) {
                *end = '\0';
                rest = end + 1;
                break;
            }
        }
        int rc = part_set (spec, part, key, value, err);
        if (rc == ERR_NOT_FOUND)
            return err_set (err, ERR_INVALID, "component '%s' has no key '%s'", name, key);
        if (rc < 0)
            return err_prefix (err, "component '%s'", name);
    }
    return 0;
}

static int file_read (struct jobspec *spec, const char *path, size_t bytes_max, char **data_out,
                      size_t *len_out, struct err *err)
{
    FILE *f = fopen (path, "rb");
    if (!f)
        return err_set (err, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO, "cannot read %s: %s", path,
                        strerror (errno));
    char *data = arena_alloc (spec->arena, bytes_max + 1);
    size_t len = fread (data, 1, bytes_max + 1, f);
    int failed = ferror (f);
    fclose (f);
    if (failed)
        return err_set (err, ERR_IO, "cannot read %s", path);
    if (len > bytes_max)
        return err_set (err, ERR_LIMIT, "%s is larger than %zu bytes", path, bytes_max);
    data[len] = '\0';
    *data_out = data;
    *len_out = len;
    return 0;
}

/* ---- JSON */

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
    int rc = part ? part_set (spec, part, key, text, err) : jobspec_set (spec, key, text, err);
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
    return part ? part_set (spec, part, key, joined, err) : jobspec_set (spec, key, joined, err);
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
        struct part *part = component_add (spec, name, err);
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
        if (list_add (spec, &spec->args, arena_strdup (spec->arena, json_string_value (item)),
                      err) < 0)
            return err_prefix (err, "'args'");
    }
    return 0;
}

int jobspec_json (struct jobspec *spec, const char *path, struct err *err)
{
    struct err local;
    err = err ? err : &local;
    char *data;
    size_t len;
    int rc = file_read (spec, path, JOBSPEC_SCRIPT_MAX, &data, &len, err);
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

/* ---- the script and its directives */

int jobspec_script (struct jobspec *spec, const char *path, char *const *args, int arg_count,
                    struct err *err)
{
    struct err local;
    err = err ? err : &local;
    spec->defaults.script_path = arena_strdup (spec->arena, path);
    for (int i = 0; i < arg_count; i++)
        if (list_add (spec, &spec->args, arena_strdup (spec->arena, args[i]), err) < 0)
            return err_prefix (err, "arguments of the script");
    char *data;
    size_t len;
    return file_read (spec, path, JOBSPEC_SCRIPT_MAX, &data, &len, err);
}

/* A foreign option and the key it means; minutes: a bare number of -t is minutes (Slurm). */
struct foreign {
    const char *short_name, *long_name, *key;
};

static const struct foreign native_options[] = {
    {"-A", "--account", "account"},
    {"-q", "--qos", "qos"},
    {"-p", "--class", "class"},
    {"-n", "--tasks", "tasks"},
    {"-N", "--nodes", "nodes"},
    {NULL, "--tpn", "tpn"},
    {NULL, "--mem", "mem"},
    {NULL, "--swap", "swap"},
    {NULL, "--disk", "disk"},
    {NULL, "--like", "like"},
    {"-t", "--time", "time"},
    {"-C", "--features", "features"},
    {NULL, "--site", "site"},
    {NULL, "--after", "after"},
    {NULL, "--start-by", "start-by"},
    {NULL, "--valid", "valid"},
    {NULL, "--deadline", "deadline"},
    {NULL, "--prefer", "prefer"},
    {NULL, "--trl", "trl"},
    {NULL, "--gres", "gres"},
    {"-L", "--licence", "licence"},
    {NULL, "--partition", "partition"},
    {NULL, "--nodeset", "nodeset"},
    {NULL, "--hosts", "hosts"},
    {NULL, "--node-access", "node-access"},
    {NULL, "--req", "req"},
    {NULL, "--depend", "depend"},
    {NULL, "--flags", "flags"},
    {NULL, "--name", "name"},
    {"-o", "--output", "output"},
    {"-e", "--error", "error"},
    {NULL, "--env", "env"},
    {NULL, "--stage-in", "stage-in"},
    {NULL, "--stage-out", "stage-out"},
    {NULL, "--max-cost", "max-cost"},
    {NULL, "--quote", "quote"},
    {NULL, "--component", "component"},
    {NULL, "--procs-per-task", "procs-per-task"},
    {NULL, "--reservation", "reservation"},
    {NULL, "--gres", "gres"},
    {NULL, "--licence", "licence"},
    {NULL, "--partition", "partition"},
    {NULL, "--nodeset", "nodeset"},
    {"-w", "--hosts", "hosts"},
    {"-x", "--exclude", "exclude"},
    {NULL, "--node-access", "node-access"},
    {NULL, "--req", "req"},
    {NULL, NULL, NULL},
};

static const struct foreign slurm_options[] = {
    {"-A", "--account", "account"},
    {"-q", "--qos", "qos"},
    {"-p", "--partition", "class"},
    {"-n", "--ntasks", "tasks"},
    {"-N", "--nodes", "nodes"},
    {NULL, "--ntasks-per-node", "tpn"},
    {"-c", "--cpus-per-task", "procs-per-task"},
    {NULL, "--mem-per-task", "mem"},
    {"-t", "--time", "time"},
    {"-C", "--constraint", "features"},
    {"-J", "--job-name", "name"},
    {"-o", "--output", "output"},
    {"-e", "--error", "error"},
    {"-d", "--dependency", "depend"},
    {NULL, "--reservation", "reservation"},
    {"-w", "--nodelist", "hosts"},
    {"-x", "--exclude", "exclude"},
    {"-L", "--licenses", "licence"},
    {NULL, NULL, NULL},
};

static const struct foreign pbs_options[] = {
    {"-A", NULL, "account"}, {"-q", NULL, "class"}, {"-N", NULL, "name"}, {"-o", NULL, "output"},
    {"-e", NULL, "error"},   {"-l", NULL, "-l"},    {NULL, NULL, NULL},
};

static const struct foreign *foreign_find (const struct foreign *table, const char *word,
                                           size_t len)
{
    for (; table->key; table++) {
        if (table->short_name && strlen (table->short_name) == len &&
            !strncmp (table->short_name, word, len))
            return table;
        if (table->long_name && strlen (table->long_name) == len &&
            !strncmp (table->long_name, word, len))
            return table;
    }
    return NULL;
}

/* Next word of a directive, quotes removed; NULL at the end or at a comment. */
static char *word_next (char **cursor)
{
    char *s = *cursor + strspn (*cursor, " \t\r");
    if (!*s || *s == '#')
        return NULL;
    char *start = s, *out = s;
    char quote = '\0';
    for (; *s && (quote || !strchr (" \t\r", *s)); s++) {
        if (quote ? *s == quote : *s == '"' || *s == '\'')
            quote = quote ? '\0' : *s;
        else
            *out++ = *s;
    }
    *cursor = *s ? s + 1 : s;
    *out = '\0';
    return start;
}

/* Slurm: a bare number of --time is minutes, "M:S" has seconds. */
static const char *slurm_time (struct jobspec *spec, const char *value)
{
    if (*value && strspn (value, "0123456789") == strlen (value))
        return arena_printf (spec->arena, "%s:00", value);
    return value;
}

/* -l nodes=2:ppn=4,walltime=1:00:00,mem=512mb */
static int pbs_resources (struct jobspec *spec, char *list, FILE *warn, struct err *err)
{
    for (char *rest = list; rest;) {
        char *item = strsep (&rest, ",");
        char *value = strchr (item, '=');
        if (!value)
            return err_set (err, ERR_INVALID, "-l '%s' is not name=value", item);
        *value++ = '\0';
        int rc = 0;
        if (!strcmp (item, "walltime"))
            rc = jobspec_set (spec, "time", value, err);
        else if (!strcmp (item, "nodes")) {
            char *more = value;
            const char *nodes = strsep (&more, ":");
            const char *ppn = more && !strncmp (more, "ppn=", 4) ? more + 4 : "1";
            uint64_t n, p;
            if ((rc = uint_parse (nodes, "nodes", 1, 1u << 20, &n, err)) == 0 &&
                (rc = uint_parse (ppn, "ppn", 1, 1u << 16, &p, err)) == 0 &&
                (rc = jobspec_set (spec, "nodes", nodes, err)) == 0 &&
                (rc = jobspec_set (spec, "tpn", ppn, err)) == 0) {
                const char *tasks = arena_printf (spec->arena, "%llu", (unsigned long long)(n * p));
                rc = jobspec_set (spec, "tasks", tasks, err);
            }
        } else if (!strcmp (item, "procs"))
            rc = jobspec_set (spec, "tasks", value, err);
        else if (!strcmp (item, "pmem")) {
            size_t len = strlen (value);
            if (len && (value[len - 1] == 'b' || value[len - 1] == 'B'))
                value[len - 1] = '\0';
            rc = jobspec_set (spec, "mem", value, err);
        } else if (!strcmp (item, "advres"))
            rc = jobspec_set (spec, "reservation", value, err);
        else if (warn)
            fprintf (warn, "nui: note: -l %s is not understood and has no effect\n", item);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int jobspec_resources (struct jobspec *spec, const char *list, FILE *warn, struct err *err)
{
    return pbs_resources (spec, arena_strdup (spec->arena, list), warn, err);
}

enum dialect { DIALECT_NUI, DIALECT_SLURM, DIALECT_PBS, DIALECT_MSUB };

static int directive_line (struct jobspec *spec, enum dialect dialect, char *line, FILE *warn,
                           struct err *err)
{
    static const char *const mark[] = {"#NUI", "#SBATCH", "#PBS", "#MSUB"};
    const struct foreign *table = dialect == DIALECT_NUI     ? native_options
                                  : dialect == DIALECT_SLURM ? slurm_options
                                                             : pbs_options;
    char *cursor = line;
    for (char *word; (word = word_next (&cursor));) {
        char *equals = !strncmp (word, "--", 2) ? strchr (word, '=') : NULL;
        size_t len = equals ? (size_t)(equals - word) : strlen (word);
        const struct foreign *option = foreign_find (table, word, len);
        char *value = equals ? equals + 1 : NULL;
        if (!option && len > 2 && word[0] == '-' && word[1] != '-') {
            option = foreign_find (table, word, 2); /* -n4 */
            value = word + 2;
        }
        if (!option) {
            if (dialect == DIALECT_NUI)
                return err_set (err, ERR_INVALID, "#NUI: there is no option %s", word);
            if (warn)
                fprintf (warn, "nui: note: %s %s is not understood and has no effect\n",
                         mark[dialect], word);
            break; /* what follows on the line may be its value */
        }
        if (!value && !(value = word_next (&cursor)))
            return err_set (err, ERR_INVALID, "%s: %s needs a value", mark[dialect], word);
        int rc;
        if (!strcmp (option->key, "-l"))
            rc = pbs_resources (spec, value, warn, err);
        else if (dialect == DIALECT_SLURM && !strcmp (option->key, "time"))
            rc = jobspec_set (spec, "time", slurm_time (spec, value), err);
        else
            rc = jobspec_set (spec, option->key, value, err);
        if (rc < 0)
            return err_prefix (err, "%s", mark[dialect]);
    }
    return 0;
}

/* The directive lines of one dialect, up to the first line that is neither comment nor empty. */
static int directives_of (struct jobspec *spec, enum dialect dialect, const char *script,
                          FILE *warn, uint32_t *count_out, struct err *err)
{
    static const char *const mark[] = {"#NUI", "#SBATCH", "#PBS", "#MSUB"};
    size_t mark_len = strlen (mark[dialect]);
    char *copy = arena_strdup (spec->arena, script);
    uint32_t line_number = 0;
    *count_out = 0;
    for (char *rest = copy; rest;) {
        char *line = strsep (&rest, "\n");
        line_number++;
        line += strspn (line, " \t\r");
        if (!*line)
            continue;
        if (*line != '#')
            break;
        if (strncmp (line, mark[dialect], mark_len) || !strchr (" \t", line[mark_len]))
            continue;
        ++*count_out;
        if (directive_line (spec, dialect, line + mark_len, warn, err) < 0)
            return err_prefix (err, "line %u", line_number);
    }
    return 0;
}

int jobspec_directives (struct jobspec *spec, FILE *warn, struct err *err)
{
    struct err local;
    err = err ? err : &local;
    const char *path = spec->defaults.script_path;
    if (!path)
        return 0;
    char *script;
    size_t len;
    int rc = file_read (spec, path, JOBSPEC_SCRIPT_MAX, &script, &len, err);
    if (rc < 0)
        return rc;
    spec->components_closed = spec->component_count > 0;
    uint32_t count = 0;
    rc = directives_of (spec, DIALECT_NUI, script, warn, &count, err);
    if (rc == 0 && count == 0)
        rc = directives_of (spec, DIALECT_SLURM, script, warn, &count, err);
    if (rc == 0 && count == 0)
        rc = directives_of (spec, DIALECT_PBS, script, warn, &count, err);
    if (rc == 0 && count == 0)
        rc = directives_of (spec, DIALECT_MSUB, script, warn, &count, err);
    return rc < 0 ? err_prefix (err, "%s", path) : 0;
}

/* ---- the message */

static char **text_array (struct jobspec *spec, const struct text_list *own,
                          const struct text_list *fallback, size_t *count_out)
{
    const struct text_list *from = own->count ? own : fallback;
    char **out = arena_array (spec->arena, from->count + 1, sizeof *out);
    for (size_t i = 0; i < from->count; i++)
        out[i] = arena_strdup (spec->arena, from->item[i]);
    *count_out = from->count;
    return out;
}

static int64_t pick (int64_t own, int64_t fallback, int64_t otherwise)
{
    return own >= 0 ? own : fallback >= 0 ? fallback : otherwise;
}

static char *pick_text (const char *own, const char *fallback)
{
    const char *text = own ? own : fallback ? fallback : "";
    return (char *)(uintptr_t)text;
}

/* "matlab:2,tape": names with counts. */
static Nui__Common__V1__GenericResource **
resources_build (struct jobspec *spec, const char *key, const struct text_list *own,
                 const struct text_list *defaults, size_t *count_out, struct err *err)
{
    const struct text_list *list = own->count ? own : defaults;
    Nui__Common__V1__GenericResource **out =
        arena_array (spec->arena, list->count + 1, sizeof *out);
    *count_out = list->count;
    for (size_t i = 0; i < list->count; i++) {
        char *name = arena_strdup (spec->arena, list->item[i]), *colon = strchr (name, ':');
        uint64_t count = 1;
        if (colon)
            *colon++ = '\0';
        if ((colon && uint_parse (colon, key, 1, 1u << 20, &count, err) < 0) ||
            name_check (key, name, err) < 0) {
            err_prefix (err, "--%s", key);
            return NULL;
        }
        out[i] = arena_new (spec->arena, Nui__Common__V1__GenericResource);
        nui__common__v1__generic_resource__init (out[i]);
        out[i]->name = name;
        out[i]->count = (uint32_t)count;
    }
    return out;
}

static Nui__Common__V1__Req *req_build (struct jobspec *spec, const struct part *part,
                                        const struct part *d, struct err *err)
{
    Nui__Common__V1__Req *req = arena_new (spec->arena, Nui__Common__V1__Req);
    nui__common__v1__req__init (req);
    int64_t nodes = pick (part->nodes, d->nodes, 0);
    int64_t tpn = pick (part->tpn, d->tpn, 0);
    int64_t tasks = pick (part->tasks, d->tasks, -1);
    if (tasks < 0)
        tasks = nodes && tpn ? nodes * tpn : nodes ? nodes : 1;
    if (nodes > tasks) {
        err_set (err, ERR_INVALID, "%lld nodes for %lld tasks: each node needs a task",
                 (long long)nodes, (long long)tasks);
        return NULL;
    }
    if (nodes && tpn && nodes * tpn < tasks) {
        err_set (err, ERR_INVALID, "%lld tasks do not fit on %lld nodes with %lld tasks each",
                 (long long)tasks, (long long)nodes, (long long)tpn);
        return NULL;
    }
    req->tasks = (uint32_t)tasks;
    req->nodes = (uint32_t)nodes;
    req->tasks_per_node = (uint32_t)tpn;
    req->procs_per_task = (uint32_t)pick (part->procs_per_task, d->procs_per_task, 1);
    req->memory_mb = pick (part->mem_mb, d->mem_mb, 0);
    req->swap_mb = pick (part->swap_mb, d->swap_mb, 0);
    req->disk_mb = pick (part->disk_mb, d->disk_mb, 0);
    req->features = text_array (spec, &part->features, &d->features, &req->n_features);
    req->liked = text_array (spec, &part->liked, &d->liked, &req->n_liked);
    req->gres = resources_build (spec, "gres", &part->gres, &d->gres, &req->n_gres, err);
    return req->n_gres && !req->gres ? NULL : req;
}

/* The job's own req, then those that --req adds. */
static int reqs_build (struct jobspec *spec, const struct part *part,
                       Nui__Common__V1__Component *c, struct err *err)
{
    const struct part *more = part->req_count ? part : &spec->defaults;
    struct part none = part_unset (NULL);
    c->reqs = arena_array (spec->arena, more->req_count + 1, sizeof *c->reqs);
    for (uint32_t i = 0; i <= more->req_count; i++) {
        c->reqs[i] = i ? req_build (spec, more->req[i - 1], &none, err)
                       : req_build (spec, part, &spec->defaults, err);
        if (!c->reqs[i])
            return err->code;
    }
    c->n_reqs = more->req_count + 1;
    return 0;
}

static int script_build (struct jobspec *spec, const struct part *part, bool optional,
                         Nui__Common__V1__Component *c, struct err *err)
{
    const char *path = part->script_path ? part->script_path : spec->defaults.script_path;
    if (!path)
        return optional ? 0 : err_set (err, ERR_INVALID, "no script is given");
    char *data;
    size_t len;
    int rc = file_read (spec, path, JOBSPEC_SCRIPT_MAX, &data, &len, err);
    if (rc < 0)
        return rc;
    if (!len)
        return err_set (err, ERR_INVALID, "%s is empty", path);
    c->script.data = (uint8_t *)data;
    c->script.len = len;
    return 0;
}

/* The component's own variables, then those of all that it does not set itself. */
static int env_build (struct jobspec *spec, const struct part *part, Nui__Common__V1__Component *c,
                      struct err *err)
{
    struct part both = *part;
    both.env.item = NULL;
    both.env.count = both.env.cap = 0;
    for (size_t i = 0; i < part->env.count; i++)
        if (set_env (spec, &both, part->env.item[i], err) < 0)
            return err->code;
    for (size_t i = 0; i < spec->defaults.env.count; i++)
        if (set_env (spec, &both, spec->defaults.env.item[i], err) < 0)
            return err->code;
    c->env = text_array (spec, &both.env, &both.env, &c->n_env);
    return 0;
}

static bool target_known (const Nui__Common__V1__Component *c, const char *path)
{
    for (size_t i = 0; i < c->n_stage_in; i++)
        if (!strcmp (c->stage_in[i]->path, path))
            return true;
    return false;
}

/* The component's own files, else those of all. What another source names again was given before. */
static int stage_build (struct jobspec *spec, const struct part *part, Nui__Common__V1__Component *c,
                        struct err *err)
{
    const struct part *d = &spec->defaults;
    const struct text_list *in = part->stage_in.count ? &part->stage_in : &d->stage_in;
    const struct text_list *out = part->stage_out.count ? &part->stage_out : &d->stage_out;
    c->stage_in = arena_array (spec->arena, in->count + 1, sizeof *c->stage_in);
    c->stage_out = arena_array (spec->arena, out->count + 1, sizeof *c->stage_out);
    for (size_t i = 0; i < in->count; i++) {
        Nui__Common__V1__Transfer *t = stageoption_in (in->item[i], spec->arena, err);
        if (!t)
            return err->code;
        if (!target_known (c, t->path))
            c->stage_in[c->n_stage_in++] = t;
    }
    for (size_t i = 0; i < out->count; i++) {
        Nui__Common__V1__Transfer *t = stageoption_out (out->item[i], spec->arena, err);
        if (!t)
            return err->code;
        c->stage_out[c->n_stage_out++] = t;
    }
    return jobstage_check (c, err);
}

/* "8,16,32" or "8@2:00:00,16@1:00:00", in a component with '/' for the comma: tasks, and how long with
 * so many. The first is what the rest of the component is for. */
static int shapes_build (struct jobspec *spec, const struct part *part,
                         Nui__Common__V1__Component *c, struct err *err)
{
    const char *text = part->trl ? part->trl : part->tasks < 0 ? spec->defaults.trl : NULL;
    if (!text)
        return 0;
    if (part->tasks >= 0 || (part->trl == NULL && spec->defaults.tasks >= 0))
        return err_set (err, ERR_INVALID, "--trl and --tasks both say how many tasks");
    if (c->reqs[0]->nodes)
        return err_set (err, ERR_INVALID, "--trl cannot be spread over a number of --nodes");
    char *rest = arena_strdup (spec->arena, text);
    duration_us given = c->walltime_us;
    c->shapes = arena_array (spec->arena, strlen (text) + 1, sizeof *c->shapes);
    for (uint32_t i = 0; rest; i++) {
        char *one = strsep (&rest, ",/"), *at = strchr (one, '@');
        uint64_t tasks;
        duration_us walltime = given;
        if (at)
            *at++ = '\0';
        if (uint_parse (one, "trl", 1, 1u << 20, &tasks, err) < 0 ||
            (at && duration_parse (at, &walltime, err) < 0)) {
            err->code = ERR_INVALID;
            return err_prefix (err, "--trl '%s': wanted TASKS[@DURATION],...", text);
        }
        if (walltime < US_PER_S)
            return err_set (err, ERR_INVALID, "--trl '%s': no walltime is given for %s tasks", text, one);
        if (i == 0) {
            c->reqs[0]->tasks = (uint32_t)tasks;
            c->walltime_us = walltime;
            continue;
        }
        Nui__Common__V1__Shape *shape = arena_new (spec->arena, Nui__Common__V1__Shape);
        nui__common__v1__shape__init (shape);
        shape->tasks = (uint32_t)tasks;
        shape->walltime_us = walltime;
        c->shapes[c->n_shapes++] = shape;
        if (jobshape_check (c, (uint32_t)c->n_shapes, err) < 0)
            return err_prefix (err, "--trl '%s'", text);
    }
    return 0;
}

/* "these!but not these" */
static char *hosts_build (struct jobspec *spec, const char *these, const char *but)
{
    return arena_printf (spec->arena, "%s%s%s", these ? these : "", but ? "!" : "",
                         but ? but : "");
}

static Nui__Common__V1__Component *component_build (struct jobspec *spec, const struct part *part,
                                                    bool script_optional, struct err *err)
{
    const struct part *d = &spec->defaults;
    Nui__Common__V1__Component *c = arena_new (spec->arena, Nui__Common__V1__Component);
    nui__common__v1__component__init (c);
    c->name = pick_text (part->name, NULL);
    c->walltime_us = pick (part->walltime_us, d->walltime_us, -1);
    if (c->walltime_us < 0 && (spec->walltime_optional ||
                               ((part->trl || d->trl) && strchr (part->trl ? part->trl : d->trl, '@'))))
        c->walltime_us = 0; /* the site's default; or each size has its own */
    if (c->walltime_us < 0) {
        err_set (err, ERR_INVALID, "no walltime is given (--time, as in -t 1:00:00)");
        return NULL;
    }
    c->offset_us = part->offset_us;
    c->licences = resources_build (spec, "licence", &part->licences, &d->licences,
                                   &c->n_licences, err);
    c->partitions = text_array (spec, &part->partitions, &d->partitions, &c->n_partitions);
    c->nodeset = (char *)(part->nodeset ? part->nodeset : d->nodeset ? d->nodeset : "");
    c->hosts = hosts_build (spec, part->hosts ? part->hosts : d->hosts,
                            part->exclude ? part->exclude : d->exclude);
    c->node_access =
        (char *)(part->node_access ? part->node_access : d->node_access ? d->node_access : "");
    c->reservation = pick_text (part->reservation, d->reservation);
    if (!c->licences || reqs_build (spec, part, c, err) < 0 || shapes_build (spec, part, c, err) < 0)
        return NULL;
    c->sites = text_array (spec, &part->sites, &d->sites, &c->n_sites);
    c->args = text_array (spec, &spec->args, &spec->args, &c->n_args);
    c->qos = pick_text (part->qos, d->qos);
    c->class_ = pick_text (part->class, d->class);
    c->stdout_name = pick_text (part->output, d->output);
    c->stderr_name = pick_text (part->error, d->error);
    if (env_build (spec, part, c, err) < 0 || stage_build (spec, part, c, err) < 0 ||
        script_build (spec, part, script_optional, c, err) < 0)
        return NULL;
    return c;
}

/* "afterok:alpha.3:alpha.4,after:grid.7": pairs of a kind and a job. */
static int depends_build (struct jobspec *spec, Nui__Common__V1__Job *job, struct err *err)
{
    char *text = arena_strdup (spec->arena, spec->depend ? spec->depend : ""), *rest = NULL;
    job->depends = arena_array (spec->arena, strlen (text) / 2 + 1, sizeof *job->depends);
    for (char *one = strtok_r (text, ",", &rest); one; one = strtok_r (NULL, ",", &rest)) {
        char *ids = strchr (one, ':'), *more = NULL;
        if (ids)
            *ids++ = '\0';
        if (!ids || !*ids || !*one)
            return err_set (err, ERR_INVALID,
                            "--depend '%s': wanted KIND:JOB, as in afterok:alpha.3", spec->depend);
        for (char *id = strtok_r (ids, ":", &more); id; id = strtok_r (NULL, ":", &more)) {
            char prefix[64];
            uint64_t number;
            if (id_parse (id, prefix, sizeof prefix, &number, err) < 0)
                return err_prefix (err, "--depend");
            Nui__Common__V1__Dependency *d = arena_new (spec->arena, Nui__Common__V1__Dependency);
            nui__common__v1__dependency__init (d);
            d->kind = one;
            d->job_id = id;
            job->depends[job->n_depends++] = d;
        }
    }
    return 0;
}

/* "75,100-120" into each of them. */
static int codes_build (struct jobspec *spec, Nui__Common__V1__Retry *retry, struct err *err)
{
    enum { CODE_MAX = 255 };
    char *rest = arena_strdup (spec->arena, spec->retry_on);
    bool wanted[CODE_MAX + 1] = {false};
    while (rest) {
        char *first = strsep (&rest, ","), *last = strchr (first, '-');
        uint64_t from, to;
        if (last)
            *last++ = '\0';
        if (uint_parse (first, "code", 1, CODE_MAX, &from, err) < 0 ||
            uint_parse (last ? last : first, "code", from, CODE_MAX, &to, err) < 0)
            return err_set (err, ERR_INVALID,
                            "--retry-on '%s': wanted exit codes from 1 to 255, as in 75,100-120",
                            spec->retry_on);
        for (uint64_t c = from; c <= to; c++)
            wanted[c] = true;
    }
    retry->exit_codes = arena_array (spec->arena, CODE_MAX, sizeof *retry->exit_codes);
    for (uint32_t c = 1; c <= CODE_MAX; c++)
        if (wanted[c])
            retry->exit_codes[retry->n_exit_codes++] = c;
    return 0;
}

static int retry_build (struct jobspec *spec, Nui__Common__V1__Job *job, struct err *err)
{
    if (spec->retries < 0)
        return spec->retry_on || spec->retry_delay_us >= 0
                   ? err_set (err, ERR_INVALID, "--retry-on and --retry-delay need --retries")
                   : 0;
    job->retry = arena_new (spec->arena, Nui__Common__V1__Retry);
    nui__common__v1__retry__init (job->retry);
    job->retry->times = (uint32_t)spec->retries;
    job->retry->delay_us = spec->retry_delay_us >= 0 ? spec->retry_delay_us : RETRY_DELAY_US;
    return spec->retry_on ? codes_build (spec, job->retry, err) : 0;
}

static void flags_build (struct jobspec *spec, Nui__Common__V1__Job *job)
{
    char *text = arena_strdup (spec->arena, spec->flags ? spec->flags : ""), *rest = NULL;
    job->flags = arena_array (spec->arena, strlen (text) / 2 + 1, sizeof *job->flags);
    for (char *one = strtok_r (text, ", ", &rest); one; one = strtok_r (NULL, ", ", &rest))
        job->flags[job->n_flags++] = one;
}

int jobspec_build (struct jobspec *spec, bool script_optional, Nui__Common__V1__Job **job_out,
                   struct err *err)
{
    struct err local;
    err = err ? err : &local;
    Nui__Common__V1__Job *job = arena_new (spec->arena, Nui__Common__V1__Job);
    nui__common__v1__job__init (job);
    job->name = pick_text (spec->name, NULL);
    job->account = pick_text (spec->account, NULL);
    job->not_before_us = spec->after == TIME_US_NONE ? 0 : spec->after;
    job->deadline_us = spec->deadline == TIME_US_NONE ? 0 : spec->deadline;
    job->expires_us = spec->valid; /* from when it is signed on: job_options_build */
    job->not_after_us = spec->start_by == TIME_US_NONE ? 0 : spec->start_by;
    job->prefer = pick_text (spec->prefer, NULL);
    job->quote_id = pick_text (spec->quote, NULL);
    job->on_site_loss = pick_text (spec->on_site_loss, NULL);
    job->notify_url = pick_text (spec->notify, NULL);
    if (job->not_after_us && (job->not_after_us < spec->now || job->not_after_us < job->not_before_us))
        return err_set (err, ERR_INVALID, "--start-by is in the past or before --after");
    if (job->deadline_us && job->deadline_us <= spec->now)
        return err_set (err, ERR_INVALID, "--deadline is in the past");
    if (job->deadline_us && job->not_before_us >= job->deadline_us)
        return err_set (err, ERR_INVALID, "--after is not before --deadline");
    job->cost_max_micro = spec->cost_max < 0 ? 0 : spec->cost_max;
    job->held = spec->held;
    flags_build (spec, job);
    if (depends_build (spec, job, err) < 0 || retry_build (spec, job, err) < 0)
        return err->code;
    struct part only = part_unset ("main");
    const struct part *parts = spec->component_count ? spec->component : &only;
    job->n_components = spec->component_count ? spec->component_count : 1;
    job->components = arena_array (spec->arena, job->n_components, sizeof *job->components);
    for (size_t i = 0; i < job->n_components; i++) {
        job->components[i] = component_build (spec, &parts[i], script_optional, err);
        if (!job->components[i])
            return spec->component_count ? err_prefix (err, "component '%s'", parts[i].name)
                                         : err->code;
    }
    *job_out = job;
    return 0;
}
