/* jobspec: reads each source of a job's description into one set of parts; jobspec_build.c makes
 * the message of them. joboptions calls it. A script is only read for its directives, never run,
 * and what is unknown or malformed is refused rather than passed over. */
#include "proto/cli/jobspec_i.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "proto/cli/stageoption.h"

struct part jobspec_part_unset (const char *name)
{
    return (struct part){.name = name,
                         .tasks = -1,
                         .nodes = -1,
                         .tpn = -1,
                         .procs_per_task = -1,
                         .procs_max = -1,
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
    spec->defaults = jobspec_part_unset (NULL);
    return spec;
}

void jobspec_walltime_optional (struct jobspec *spec)
{
    spec->walltime_optional = true;
}

const char *jobspec_array (const struct jobspec *spec)
{
    return spec->array;
}

int jobspec_list_add (struct jobspec *spec, struct text_list *list, const char *text,
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
        if (jobspec_list_add (spec, list, piece, err) < 0)
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

int jobspec_env_set (struct jobspec *spec, struct part *part, const char *value, struct err *err)
{
    const char *equals = strchr (value, '=');
    size_t len = equals ? (size_t)(equals - value) : strlen (value);
    if (len == 0)
        return err_set (err, ERR_INVALID, "--env: '%s' is not NAME=VALUE or NAME", value);
    for (size_t i = 0; i < part->env.count; i++)
        if (!strncmp (part->env.item[i], value, len) && part->env.item[i][len] == '=')
            return 0;
    if (equals)
        return jobspec_list_add (spec, &part->env, arena_strdup (spec->arena, value), err);
    const char *mine = getenv (value);
    if (!mine)
        return err_set (err, ERR_INVALID, "--env: %s is not in your environment", value);
    return jobspec_list_add (spec, &part->env, arena_printf (spec->arena, "%s=%s", value, mine),
                             err);
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

/* "tasks=24,mem=128M" or with '/' in place of ',': one more req beside what the job itself says. */
static int set_req (struct jobspec *spec, struct part *part, const char *value, struct err *err)
{
    static const char *const keys[] = {"tasks",    "nodes", "tpn",  "procs-per-task",
                                       "mem",      "swap",  "disk", "gres",
                                       "features", "like",  NULL};
    char *rest = arena_strdup (spec->arena, value);
    struct part *req = arena_new (spec->arena, struct part);
    int rc = 0;

    if (part->req_count == REQS_MORE)
        return err_set (err, ERR_LIMIT, "--req: a job may have %d reqs", REQS_MORE + 1);
    *req = jobspec_part_unset (NULL);
    while (rc == 0 && rest && *rest) {
        char *piece = strsep (&rest, ",/"), *equals = strchr (piece, '=');
        bool known = false;
        if (equals)
            *equals++ = '\0';
        for (size_t i = 0; equals && keys[i]; i++)
            known = known || !strcmp (keys[i], piece);
        if (!known)
            return err_set (
                err, ERR_INVALID,
                "--req: '%s' is not tasks, nodes, tpn, procs-per-task, mem, swap, disk, gres, "
                "features or like with a value",
                piece);
        rc = jobspec_part_set (spec, req, piece, equals, err);
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

/* "mem-per-node" says "mem", for a node. */
static enum amount_per amount_per (const char *key, size_t len)
{
    static const char *const per[] = {
        [PER_PROC] = "-per-proc", [PER_NODE] = "-per-node", [PER_JOB] = "-per-job"};
    for (size_t i = PER_PROC; i <= PER_JOB; i++)
        if (!strcmp (key + len, per[i]))
            return (enum amount_per)i;
    return PER_TASK;
}

/* "2", "a100:2", "a100:1,v100:1" into gpu:2, gpu.a100:2 and so on: of the job, unless the key says otherwise. */
static int set_gpus (struct jobspec *spec, struct part *part, const char *key, const char *value,
                     struct err *err)
{
    const char *list = "";
    if (part->gres.count)
        return 0;
    for (char *rest = arena_strdup (spec->arena, value); rest;) {
        char *count = strsep (&rest, ","), *type = NULL;
        uint64_t n;
        if (*count < '0' || *count > '9') {
            type = count;
            count = strchr (count, ':');
            if (count)
                *count++ = '\0';
        }
        if (uint_parse (count ? count : "1", key, 1, 1u << 20, &n, err) < 0 || (type && !*type))
            return err_set (err, ERR_INVALID, "--%s: '%s' is not a number such as 2 or a100:2", key,
                            value);
        list = arena_printf (spec->arena, "%s%sgpu%s%s:%llu", list, *list ? "," : "",
                             type ? "." : "", type ? type : "", (unsigned long long)n);
    }
    part->gres_per = !strcmp (key, "gpus-per-task")   ? PER_TASK
                     : !strcmp (key, "gpus-per-node") ? PER_NODE
                                                      : PER_JOB;
    return list_split (spec, &part->gres, key, list, false, err);
}

/* Keys "mem", "disk" and "gres", with what they are for. ERR_NOT_FOUND: it is none of them. */
static int set_amount (struct jobspec *spec, struct part *part, const char *key, const char *value,
                       struct err *err)
{
    if (!strcmp (key, "gpus") || !strcmp (key, "gpus-per-node") || !strcmp (key, "gpus-per-task"))
        return set_gpus (spec, part, key, value, err);
    size_t len = strcspn (key, "-");
    enum amount_per per = amount_per (key, len);
    if (key[len] && per == PER_TASK)
        return ERR_NOT_FOUND;
    if (len == 3 && !strncmp (key, "mem", 3)) {
        if (part->mem_mb < 0)
            part->mem_per = per;
        return set_memory (&part->mem_mb, key, value, err);
    }
    if (len == 4 && !strncmp (key, "disk", 4) && (per == PER_TASK || per == PER_NODE)) {
        if (part->disk_mb < 0)
            part->disk_per = per;
        return set_memory (&part->disk_mb, key, value, err);
    }
    if (len == 4 && !strncmp (key, "gres", 4) && per != PER_PROC) {
        if (part->gres.count)
            return 0;
        part->gres_per = per;
        return list_split (spec, &part->gres, key, value, false, err);
    }
    return ERR_NOT_FOUND;
}

/* Keys that a component may have. ERR_NOT_FOUND when key is none of them. */
int jobspec_part_set (struct jobspec *spec, struct part *part, const char *key, const char *value,
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
    if (!strcmp (key, "procs-max"))
        return set_count (&part->procs_max, key, value, 100000000, err);
    int rc = set_amount (spec, part, key, value, err);
    if (rc != ERR_NOT_FOUND)
        return rc;
    if (!strcmp (key, "swap"))
        return set_memory (&part->swap_mb, key, value, err);
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
    if (!strcmp (key, "licence"))
        return part->licences.count ? 0
                                    : list_split (spec, &part->licences, key, value, false, err);
    if (!strcmp (key, "partition"))
        return part->partitions.count ? 0
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
        return jobspec_env_set (spec, part, value, err);
    if (!strcmp (key, "stage-in"))
        return jobspec_list_add (spec, &part->stage_in, arena_strdup (spec->arena, value), err);
    if (!strcmp (key, "stage-out"))
        return jobspec_list_add (spec, &part->stage_out, arena_strdup (spec->arena, value), err);
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
        return err_set (err, ERR_INVALID, "--%s: '%s' is not a duration of at most an hour", key,
                        value);
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
        if (duration_parse (value + (*value == '+'), &spec->valid, err) < 0 ||
            spec->valid < US_PER_S || spec->valid > JOB_VALID_MAX_DAYS * INT64_C (86400) * US_PER_S)
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
            return err_set (err, ERR_INVALID, "--quote: '%.64s' is not a quote, such as quote.7",
                            value);
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
    if (!strcmp (key, "array"))
        return set_text (spec, &spec->array, key, value, err);
    if (!strcmp (key, "env-all")) {
        spec->env_all = true;
        return 0;
    }
    if (!strcmp (key, "max-cost")) {
        credit_micro c = 0;
        bool none = strcasecmp (value, "none") == 0;
        if (!none && credit_parse (value, &c, err) < 0)
            return err_prefix (err, "--max-cost");
        if (!none && c <= 0)
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
            return err_set (err, ERR_INVALID, "--on-site-loss: '%s' is not report or resubmit",
                            value);
        return set_text (spec, &spec->on_site_loss, key, value, err);
    }
    if (!strcmp (key, "notify")) {
        if (strncmp (value, "http://", 7) && strncmp (value, "https://", 8))
            return err_set (err, ERR_INVALID, "--notify: '%s' is no http:// or https:// URL",
                            value);
        return set_text (spec, &spec->notify, key, value, err);
    }
    if (!strcmp (key, "component"))
        return spec->components_closed ? 0 : jobspec_component (spec, value, err);
    if (!strcmp (key, "offset"))
        return err_set (err, ERR_INVALID, "offset belongs to a component");
    return jobspec_part_set (spec, &spec->defaults, key, value, err);
}

struct part *jobspec_component_add (struct jobspec *spec, const char *name, struct err *err)
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
    *part = jobspec_part_unset (arena_strdup (spec->arena, name));
    return part;
}

int jobspec_component (struct jobspec *spec, const char *text, struct err *err)
{
    struct err local;
    err = err ? err : &local;
    char *copy = arena_strdup (spec->arena, text);
    char *rest = copy;
    char *name = strsep (&rest, ":");
    struct part *part = jobspec_component_add (spec, name, err);
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
        int rc = jobspec_part_set (spec, part, key, value, err);
        if (rc == ERR_NOT_FOUND)
            return err_set (err, ERR_INVALID, "component '%s' has no key '%s'", name, key);
        if (rc < 0)
            return err_prefix (err, "component '%s'", name);
    }
    return 0;
}

int jobspec_file_read (struct jobspec *spec, const char *path, size_t bytes_max, char **data_out,
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

int jobspec_script (struct jobspec *spec, const char *path, char *const *args, int arg_count,
                    struct err *err)
{
    struct err local;
    err = err ? err : &local;
    spec->defaults.script_path = arena_strdup (spec->arena, path);
    for (int i = 0; i < arg_count; i++)
        if (jobspec_list_add (spec, &spec->args, arena_strdup (spec->arena, args[i]), err) < 0)
            return err_prefix (err, "arguments of the script");
    char *data;
    size_t len;
    return jobspec_file_read (spec, path, JOBSPEC_SCRIPT_MAX, &data, &len, err);
}
