/* jobspec: reads each source of a job's description into one set of parts; jobspec_build.c makes
 * the message of them. joboptions calls it. A script is only read for its directives, never run,
 * and what is unknown or malformed is refused rather than passed over. */
#include "proto/cli/jobspec_i.h"
#include "proto/job/jobsignal.h"
#include "proto/job/mailaddress.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "proto/cli/command.h"
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

void jobspec_inputs (struct jobspec *spec, struct inputs *inputs)
{
    spec->inputs = inputs;
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

/* A key: what reads its value, and into what of struct part, or of struct jobspec. */
struct key {
    const char *name;
    int (*set) (struct jobspec *spec, void *slot, const struct key *key, const char *value,
                struct err *err);
    size_t at;
    uint32_t max;        /* of a count */
    enum amount_per per; /* what an amount is for */
    const char *word[2]; /* one of which it is */
};

#define SETTER(name)                                                                               \
    static int name (struct jobspec *spec, void *slot, const struct key *key, const char *value,   \
                     struct err *err)

SETTER (set_count)
{
    (void)spec;
    uint64_t n;
    int64_t *count = slot;
    if (uint_parse (value, key->name, 1, key->max, &n, err) < 0)
        return err->code = ERR_INVALID; /* out of range is as wrong as malformed */
    if (*count < 0)
        *count = (int64_t)n;
    return 0;
}

SETTER (set_text)
{
    const char **text = slot;
    if (!*value)
        return err_set (err, ERR_INVALID, "--%s needs a value", key->name);
    if (strlen (value) > 1024)
        return err_set (err, ERR_LIMIT, "--%s may have 1024 characters", key->name);
    if (!*text)
        *text = arena_strdup (spec->arena, value);
    return 0;
}

SETTER (set_name)
{
    if (name_check (key->name, value, err) < 0)
        return err->code;
    return set_text (spec, slot, key, value, err);
}

/* A file name inside the job's directory: relative, without "..". */
SETTER (set_file)
{
    if (*value == '/' || strstr (value, ".."))
        return err_set (err, ERR_INVALID,
                        "--%s: '%s' must be a name inside the job's directory at the site",
                        key->name, value);
    return set_text (spec, slot, key, value, err);
}

SETTER (set_directory)
{
    if (*value != '/' && strcmp (value, "~") != 0 && strncmp (value, "~/", 2) != 0)
        return err_set (err, ERR_INVALID,
                        "--chdir: '%s': wanted a path at the site: /PATH or ~/PATH", value);
    return set_text (spec, slot, key, value, err);
}

SETTER (set_signal)
{
    struct jobsignal wanted;
    if (jobsignal_parse (value, &wanted, err) < 0)
        return err_prefix (err, "--signal");
    return set_text (spec, slot, key, value, err);
}

SETTER (set_word)
{
    if (strcmp (value, key->word[0]) != 0 && strcmp (value, key->word[1]) != 0)
        return err_set (err, ERR_INVALID, "--%s: '%s' is not %s or %s", key->name, value,
                        key->word[0], key->word[1]);
    return set_text (spec, slot, key, value, err);
}

SETTER (set_flag)
{
    (void)spec, (void)key, (void)value, (void)err;
    *(bool *)slot = true;
    return 0;
}

SETTER (set_names)
{
    struct text_list *list = slot;
    return list->count ? 0 : list_split (spec, list, key->name, value, true, err);
}

SETTER (set_list)
{
    struct text_list *list = slot;
    return list->count ? 0 : list_split (spec, list, key->name, value, false, err);
}

/* Behind its source: see stage_build. */
SETTER (set_one_more)
{
    (void)key;
    return jobspec_list_add (spec, slot,
                             arena_printf (spec->arena, "%c%s", '0' + spec->source, value), err);
}

SETTER (set_input)
{
    (void)key;
    return *value ? jobspec_list_add (spec, slot, arena_strdup (spec->arena, value), err)
                  : err_set (err, ERR_INVALID, "--input: name a file, a folder, or none");
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

SETTER (set_env)
{
    (void)key;
    return jobspec_env_set (spec, slot, value, err);
}

SETTER (set_walltime)
{
    (void)spec, (void)key;
    duration_us d, *walltime = slot;
    if (duration_parse (value, &d, err) < 0)
        return err_prefix (err, "--time");
    if (d < US_PER_S || d > INT64_C (366) * 86400 * US_PER_S)
        return err_set (err, ERR_INVALID, "--time: '%s' is not between a second and a year", value);
    if (*walltime < 0)
        *walltime = d;
    return 0;
}

SETTER (set_offset)
{
    (void)spec, (void)key;
    struct part *part = slot;
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
SETTER (set_req)
{
    struct part *part = slot;
    static const char *const words[] = {"tasks",    "nodes", "tpn",  "procs-per-task",
                                        "mem",      "swap",  "disk", "gres",
                                        "features", "like",  NULL};
    (void)key;
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
        for (size_t i = 0; equals && words[i]; i++)
            known = known || !strcmp (words[i], piece);
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

SETTER (set_memory)
{
    (void)spec;
    int64_t mb, *field = slot;
    if (memory_parse (value, &mb, err) < 0)
        return err_prefix (err, "--%s", key->name);
    if (*field < 0)
        *field = mb;
    return 0;
}

SETTER (set_mem)
{
    struct part *part = slot;
    if (part->mem_mb < 0)
        part->mem_per = key->per;
    return set_memory (spec, &part->mem_mb, key, value, err);
}

SETTER (set_disk)
{
    struct part *part = slot;
    if (part->disk_mb < 0)
        part->disk_per = key->per;
    return set_memory (spec, &part->disk_mb, key, value, err);
}

SETTER (set_gres)
{
    struct part *part = slot;
    if (part->gres.count == 0)
        part->gres_per = key->per;
    return set_list (spec, &part->gres, key, value, err);
}

/* "2", "a100:2", "a100:1,v100:1" into gpu:2, gpu.a100:2 and so on: of the job, unless the key says otherwise. */
SETTER (set_gpus)
{
    struct part *part = slot;
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
        if (uint_parse (count ? count : "1", key->name, 1, 1u << 20, &n, err) < 0 ||
            (type && !*type))
            return err_set (err, ERR_INVALID, "--%s: '%s' is not a number such as 2 or a100:2",
                            key->name, value);
        list = arena_printf (spec->arena, "%s%sgpu%s%s:%llu", list, *list ? "," : "",
                             type ? "." : "", type ? type : "", (unsigned long long)n);
    }
    part->gres_per = key->per;
    return list_split (spec, &part->gres, key->name, list, false, err);
}

SETTER (set_time)
{
    time_us t, *slot_at = slot;
    if (time_parse (value, spec->now, &t, err) < 0)
        return err_prefix (err, "--%s", key->name);
    if (*slot_at == TIME_US_NONE)
        *slot_at = t;
    return 0;
}

SETTER (set_delay)
{
    (void)spec;
    duration_us d, *delay = slot;
    if (duration_parse (value, &d, err) < 0 || d > 3600 * US_PER_S)
        return err_set (err, ERR_INVALID, "--%s: '%s' is not a duration of at most an hour",
                        key->name, value);
    if (*delay < 0)
        *delay = d;
    return 0;
}

SETTER (set_valid)
{
    (void)spec, (void)key;
    duration_us *valid = slot;
    if (duration_parse (value + (*value == '+'), valid, err) < 0 || *valid < US_PER_S ||
        *valid > JOB_VALID_MAX_DAYS * INT64_C (86400) * US_PER_S)
        return err_set (err, ERR_INVALID, "--valid '%s' is no time up to %d days", value,
                        JOB_VALID_MAX_DAYS);
    return 0;
}

SETTER (set_quote)
{
    char prefix[8];
    uint64_t number;
    if (id_parse (value, prefix, sizeof prefix, &number, NULL) < 0 || strcmp (prefix, "quote") != 0)
        return err_set (err, ERR_INVALID, "--quote: '%.64s' is not a quote, such as quote.7",
                        value);
    return set_text (spec, slot, key, value, err);
}

SETTER (set_notify)
{
    if (strncmp (value, "http://", 7) != 0 && strncmp (value, "https://", 8) != 0)
        return err_set (err, ERR_INVALID, "--notify: '%s' is no http:// or https:// URL", value);
    return set_text (spec, slot, key, value, err);
}

SETTER (set_mail)
{
    char *copy = arena_strdup (spec->arena, value), *rest = copy;
    for (char *word; (word = strsep (&rest, ","));)
        if (!(mailaddress_event (word) & MAIL_ALL))
            return err_set (err, ERR_INVALID,
                            "--mail: '%s' is none of begin, end, fail, requeue, all", word);
    return set_text (spec, slot, key, value, err);
}

SETTER (set_cost)
{
    (void)spec, (void)key;
    credit_micro c = 0, *most = slot;
    bool none = strcasecmp (value, "none") == 0;
    if (!none && credit_parse (value, &c, err) < 0)
        return err_prefix (err, "--max-cost");
    if (!none && c <= 0)
        return err_set (err, ERR_INVALID, "--max-cost: '%s' is not above zero", value);
    if (*most < 0)
        *most = c;
    return 0;
}

SETTER (set_component)
{
    (void)slot, (void)key;
    return spec->components_closed ? 0 : jobspec_component (spec, value, err);
}

SETTER (refuse_offset)
{
    (void)spec, (void)slot, (void)key, (void)value;
    return err_set (err, ERR_INVALID, "offset belongs to a component");
}

#define PART(field) offsetof (struct part, field)
#define JOB(field) offsetof (struct jobspec, field)

static const struct key part_keys[] = {
    {"tasks", set_count, PART (tasks), .max = 1u << 20},
    {"nodes", set_count, PART (nodes), .max = 1u << 20},
    {"tpn", set_count, PART (tpn), .max = 1u << 16},
    {"procs-per-task", set_count, PART (procs_per_task), .max = 1u << 16},
    {"procs-max", set_count, PART (procs_max), .max = 100000000},
    {"mem", set_mem},
    {"mem-per-proc", set_mem, .per = PER_PROC},
    {"mem-per-node", set_mem, .per = PER_NODE},
    {"mem-per-job", set_mem, .per = PER_JOB},
    {"swap", set_memory, PART (swap_mb)},
    {"disk", set_disk},
    {"disk-per-node", set_disk, .per = PER_NODE},
    {"gres", set_gres},
    {"gres-per-node", set_gres, .per = PER_NODE},
    {"gres-per-job", set_gres, .per = PER_JOB},
    {"gpus", set_gpus, .per = PER_JOB},
    {"gpus-per-node", set_gpus, .per = PER_NODE},
    {"gpus-per-task", set_gpus, .per = PER_TASK},
    {"time", set_walltime, PART (walltime_us)},
    {"offset", set_offset},
    {"features", set_names, PART (features)},
    {"like", set_names, PART (liked)},
    {"site", set_names, PART (sites)},
    {"licence", set_list, PART (licences)},
    {"partition", set_names, PART (partitions)},
    {"nodeset", set_text, PART (nodeset)},
    {"hosts", set_text, PART (hosts)},
    {"exclude", set_text, PART (exclude)},
    {"node-access", set_name, PART (node_access)},
    {"reservation", set_name, PART (reservation)},
    {"req", set_req},
    {"trl", set_text, PART (trl)},
    {"env", set_env},
    {"input", set_input, PART (inputs)},
    {"stage-in", set_one_more, PART (stage_in)},
    {"stage-out", set_one_more, PART (stage_out)},
    {"qos", set_name, PART (qos)},
    {"class", set_name, PART (class)},
    {"output", set_file, PART (output)},
    {"error", set_file, PART (error)},
    {"chdir", set_directory, PART (directory)},
    {"signal", set_signal, PART (signal)},
    {"script", set_text, PART (script_path)},
    {0},
};

static const struct key job_keys[] = {
    {"account", set_name, JOB (account)},
    {"name", set_name, JOB (name)},
    {"after", set_time, JOB (after)},
    {"deadline", set_time, JOB (deadline)},
    {"start-by", set_time, JOB (start_by)},
    {"valid", set_valid, JOB (valid)},
    {"prefer", set_word, JOB (prefer), .word = {"earliest", "cheapest"}},
    {"quote", set_quote, JOB (quote)},
    {"depend", set_text, JOB (depend)},
    {"flags", set_text, JOB (flags)},
    {"hold", set_flag, JOB (held)},
    {"array", set_text, JOB (array)},
    {"env-all", set_flag, JOB (env_all)},
    {"max-cost", set_cost, JOB (cost_max)},
    {"retries", set_count, JOB (retries), .max = 100},
    {"retry-on", set_text, JOB (retry_on)},
    {"retry-delay", set_delay, JOB (retry_delay_us)},
    {"on-site-loss", set_word, JOB (on_site_loss), .word = {"report", "resubmit"}},
    {"on-failure", set_word, JOB (on_failure), .word = {"cancel", "continue"}},
    {"notify", set_notify, JOB (notify)},
    {"mail", set_mail, JOB (mail)},
    {"mail-to", set_text, JOB (mail_to)},
    {"component", set_component},
    {"offset", refuse_offset},
    {0},
};

static int set_key (struct jobspec *spec, const struct key *keys, void *into, const char *key,
                    const char *value, struct err *err)
{
    for (; keys->name; keys++)
        if (!strcmp (keys->name, key))
            return keys->set (spec, (char *)into + keys->at, keys, value, err);
    return err_set (err, ERR_NOT_FOUND, "there is no '%s'", key);
}

int jobspec_part_set (struct jobspec *spec, struct part *part, const char *key, const char *value,
                      struct err *err)
{
    return set_key (spec, part_keys, part, key, value, err);
}

int jobspec_set (struct jobspec *spec, const char *key, const char *value, struct err *err)
{
    struct err local;
    err = err ? err : &local;
    int rc = set_key (spec, job_keys, spec, key, value, err);
    return rc != ERR_NOT_FOUND ? rc : jobspec_part_set (spec, &spec->defaults, key, value, err);
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

int jobspec_wrap (struct jobspec *spec, const char *command, struct err *err)
{
    if (spec->defaults.script_path || spec->args.count)
        return err_set (err, ERR_INVALID,
                        "--wrap makes the script: no other can be named beside it, and no argument "
                        "of one");
    if (strspn (command, " \t\n") == strlen (command))
        return err_set (err, ERR_INVALID, "--wrap: wanted a command, such as --wrap='sleep 10'");
    if (strlen (command) > JOBSPEC_SCRIPT_MAX)
        return err_set (err, ERR_LIMIT, "--wrap: the command is larger than %d bytes",
                        JOBSPEC_SCRIPT_MAX);
    spec->wrapped = arena_printf (spec->arena, "#!/bin/sh\n# made by --wrap\n\n%s\n", command);
    return jobspec_set (spec, "name", "wrap", err);
}
