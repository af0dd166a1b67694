/* PSI/J's JobSpec as a job of ours and back. What a JobSpec says and a job has no field for (working directory, files of the
 * streams, commands before and after) is done by the script that is made of it; the JobSpec itself stands in that script as
 * a comment, so it is under the signature and comes back as it was given. */
#include "meta/gate/gate.h"

#include <ctype.h>
#include <string.h>

#include "proto/base/text.h"

#define SPEC_MARK "#NUI-JOBSPEC "
#define MB (INT64_C (1) << 20)
enum { WALLTIME_DEFAULT_S = 3600, SPEC_NUMBER_MAX = 10000000 };

typedef Nui__Common__V1__Component Component;
typedef Nui__Common__V1__Req Req;
typedef Nui__Common__V1__Job Job;

struct reading {
    struct arena *arena;
    Job *job;
    Component *component;
    Req *req;
    struct strbuf script;
    struct err *err;
};

static int wrong (struct reading *r, const char *name, const char *wanted)
{
    return err_set (r->err, ERR_INVALID, "%s: wanted %s", name, wanted);
}

/* A text that may be absent or null; it is no line break's, as names and paths are. *out NULL: not there. */
static int text_of (struct reading *r, json_t *object, const char *name, const char **out)
{
    json_t *value = json_object_get (object, name);
    *out = NULL;
    if (!value || json_is_null (value))
        return 0;
    *out = json_string_value (value);
    return *out && **out ? 0 : wrong (r, name, "a text");
}

static int count_of (struct reading *r, json_t *object, const char *name, int64_t most,
                     int64_t *out)
{
    json_t *value = json_object_get (object, name);
    *out = 0;
    if (!value || json_is_null (value))
        return 0;
    *out = json_integer_value (value);
    return json_is_integer (value) && *out >= 1 && *out <= most
               ? 0
               : wrong (r, name, "a whole number from 1 on");
}

/* Only what is known: a field that would be ignored is refused. */
static int known_only (struct reading *r, json_t *object, const char *what,
                       const char *const *names)
{
    const char *key;
    json_t *value;
    json_object_foreach (object, key, value)
    {
        size_t i = 0;
        while (names[i] && strcmp (names[i], key) != 0)
            i++;
        if (!names[i] && !json_is_null (value))
            return err_set (r->err, ERR_INVALID, "%s has no field '%.60s'", what, key);
    }
    return 0;
}

static json_t *object_of (json_t *spec, const char *name)
{
    json_t *value = json_object_get (spec, name);
    return json_is_object (value) ? value : NULL;
}

/* Quoted for sh. */
static void shell_quote (struct strbuf *out, const char *text)
{
    strbuf_putc (out, '\'');
    for (; *text; text++)
        if (*text == '\'')
            strbuf_puts (out, "'\\''");
        else
            strbuf_putc (out, *text);
    strbuf_putc (out, '\'');
}

static int read_resources (struct reading *r, json_t *resources)
{
    static const char *const names[] = {"node_count",
                                        "process_count",
                                        "processes_per_node",
                                        "cpu_cores_per_process",
                                        "gpu_cores_per_process",
                                        "exclusive_node_use",
                                        "memory",
                                        NULL};
    int64_t nodes, tasks, per_node, cores, gpus, memory;
    json_t *alone = json_object_get (resources, "exclusive_node_use");
    if (known_only (r, resources, "resources", names) < 0 ||
        count_of (r, resources, "node_count", SPEC_NUMBER_MAX, &nodes) < 0 ||
        count_of (r, resources, "process_count", SPEC_NUMBER_MAX, &tasks) < 0 ||
        count_of (r, resources, "processes_per_node", SPEC_NUMBER_MAX, &per_node) < 0 ||
        count_of (r, resources, "cpu_cores_per_process", SPEC_NUMBER_MAX, &cores) < 0 ||
        count_of (r, resources, "gpu_cores_per_process", SPEC_NUMBER_MAX, &gpus) < 0 ||
        count_of (r, resources, "memory", INT64_MAX / 2, &memory) < 0)
        return r->err->code;
    if (alone && !json_is_boolean (alone))
        return wrong (r, "exclusive_node_use", "true or false");
    if (nodes && per_node && tasks && tasks != nodes * per_node)
        return err_set (r->err, ERR_INVALID,
                        "process_count %lld is not node_count %lld times processes_per_node %lld",
                        (long long)tasks, (long long)nodes, (long long)per_node);
    tasks = tasks ? tasks : (nodes ? nodes : 1) * (per_node ? per_node : 1);
    if (tasks > SPEC_NUMBER_MAX)
        return wrong (r, "process_count", "at most 10000000");
    r->req->tasks = (uint32_t)tasks;
    r->req->nodes = (uint32_t)nodes;
    r->req->tasks_per_node = (uint32_t)per_node;
    r->req->procs_per_task = cores ? (uint32_t)cores : 1;
    r->req->memory_mb =
        (memory + MB * tasks - 1) / (MB * tasks); /* of the job: each task's share */
    if (json_is_true (alone))
        r->component->node_access = (char *)(uintptr_t) "SINGLEJOB";
    if (gpus) {
        Nui__Common__V1__GenericResource *g = arena_array (r->arena, 1, sizeof *g);
        nui__common__v1__generic_resource__init (g);
        g->name = (char *)(uintptr_t) "gpu";
        g->count = (uint32_t)gpus;
        r->req->gres = arena_array (r->arena, 1, sizeof (void *));
        r->req->gres[0] = g;
        r->req->n_gres = 1;
    }
    return 0;
}

static int read_custom (struct reading *r, json_t *custom)
{
    const char *key;
    json_t *value;
    json_object_foreach (custom, key, value)
    {
        const char *text = json_string_value (value);
        if (!text)
            return wrong (r, "custom_attributes", "texts");
        if (strcmp (key, "nui.max_cost") == 0) {
            if (credit_parse (text, &r->job->cost_max_micro, r->err) < 0)
                return err_prefix (r->err, "nui.max_cost");
        } else if (strcmp (key, "nui.quote") == 0)
            r->job->quote_id = arena_strdup (r->arena, text);
        else if (strcmp (key, "nui.qos") == 0)
            r->component->qos = arena_strdup (r->arena, text);
        else if (strncmp (key, "nui.", 4) == 0)
            return err_set (
                r->err, ERR_INVALID,
                "custom_attributes: '%.60s' is none of nui.max_cost, nui.quote, nui.qos", key);
    }
    return 0;
}

static int read_attributes (struct reading *r, json_t *attributes)
{
    static const char *const names[] = {"duration",       "queue_name",        "account",
                                        "reservation_id", "custom_attributes", NULL};
    int64_t seconds;
    const char *queue, *account, *reservation;
    json_t *custom = json_object_get (attributes, "custom_attributes");
    if (known_only (r, attributes, "attributes", names) < 0 ||
        count_of (r, attributes, "duration", INT64_MAX / US_PER_S, &seconds) < 0 ||
        text_of (r, attributes, "queue_name", &queue) < 0 ||
        text_of (r, attributes, "account", &account) < 0 ||
        text_of (r, attributes, "reservation_id", &reservation) < 0)
        return r->err->code;
    if (seconds)
        r->component->walltime_us = seconds * US_PER_S;
    if (queue)
        r->component->class_ = arena_strdup (r->arena, queue);
    if (account)
        r->job->account = arena_strdup (r->arena, account);
    if (reservation)
        r->component->reservation = arena_strdup (r->arena, reservation);
    return json_is_object (custom) ? read_custom (r, custom) : 0;
}

static int read_lists (struct reading *r, json_t *spec)
{
    json_t *args = json_object_get (spec, "arguments"),
           *env = json_object_get (spec, "environment");
    Component *c = r->component;
    const char *key;
    json_t *value;
    if ((args && !json_is_array (args) && !json_is_null (args)) ||
        (env && !json_is_object (env) && !json_is_null (env)))
        return wrong (r, "arguments, environment", "a list and an object");
    c->args = arena_array (r->arena, json_array_size (args) + 1, sizeof (char *));
    c->env = arena_array (r->arena, json_object_size (env) + 1, sizeof (char *));
    for (size_t i = 0; i < json_array_size (args); i++) {
        const char *text = json_string_value (json_array_get (args, i));
        if (!text)
            return wrong (r, "arguments", "texts");
        c->args[c->n_args++] = arena_strdup (r->arena, text);
    }
    json_object_foreach (env, key, value)
    {
        if (!json_is_string (value) || !*key || strchr (key, '='))
            return wrong (r, "environment", "texts by name");
        c->env[c->n_env++] = arena_printf (r->arena, "%s=%s", key, json_string_value (value));
    }
    return 0;
}

/* A plain name in the job's directory is the site's to fill; any other path the script's. */
static bool is_plain (const char *path, const char *directory)
{
    return !directory && !strchr (path, '/') && path[0] != '.';
}

static void redirect (struct strbuf *out, const char *sign, const char *path)
{
    strbuf_printf (out, "exec %s ", sign);
    shell_quote (out, path);
    strbuf_putc (out, '\n');
}

static int read_script (struct reading *r, json_t *spec)
{
    const char *executable, *directory, *in, *out, *error, *before, *after, *launcher, *name;
    if (text_of (r, spec, "executable", &executable) < 0 ||
        text_of (r, spec, "directory", &directory) < 0 ||
        text_of (r, spec, "stdin_path", &in) < 0 || text_of (r, spec, "stdout_path", &out) < 0 ||
        text_of (r, spec, "stderr_path", &error) < 0 ||
        text_of (r, spec, "pre_launch", &before) < 0 ||
        text_of (r, spec, "post_launch", &after) < 0 ||
        text_of (r, spec, "launcher", &launcher) < 0 || text_of (r, spec, "name", &name) < 0)
        return r->err->code;
    if (!executable)
        return wrong (r, "executable", "the program to run");
    if (launcher && strcmp (launcher, "single") != 0)
        return err_set (r->err, ERR_UNSUPPORTED,
                        "launcher '%.40s': only single; a script may call another itself",
                        launcher);
    if (json_is_object (json_object_get (spec, "container")))
        return err_set (r->err, ERR_UNSUPPORTED,
                        "container: no site of the grid offers one; a script may call it itself");
    if (name)
        r->job->name = arena_strdup (r->arena, name);
    char *line = json_dumps (spec, JSON_COMPACT | JSON_SORT_KEYS);
    strbuf_printf (&r->script, "#!/bin/sh\n" SPEC_MARK "%s\n", line ? line : "{}");
    free (line);
    if (out && is_plain (out, directory))
        r->component->stdout_name = arena_strdup (r->arena, out), out = NULL;
    if (error && is_plain (error, directory))
        r->component->stderr_name = arena_strdup (r->arena, error), error = NULL;
    if (directory) {
        strbuf_puts (&r->script, "cd ");
        shell_quote (&r->script, directory);
        strbuf_puts (&r->script, " || exit 1\n");
    }
    if (in)
        redirect (&r->script, "<", in);
    if (out)
        redirect (&r->script, ">", out);
    if (error)
        redirect (&r->script, "2>", error);
    if (before)
        strbuf_printf (&r->script, "%s\n", before);
    if (!after)
        strbuf_puts (&r->script, "exec ");
    shell_quote (&r->script, executable);
    strbuf_puts (&r->script, " \"$@\"\n");
    if (after)
        strbuf_printf (&r->script, "nui_code=$?\n%s\nexit $nui_code\n", after);
    return 0;
}

static void job_make (struct reading *r, const char *site)
{
    Component *c = arena_array (r->arena, 1, sizeof *c);
    Req *req = arena_array (r->arena, 1, sizeof *req);
    r->job = arena_array (r->arena, 1, sizeof *r->job);
    nui__common__v1__job__init (r->job);
    nui__common__v1__component__init (c);
    nui__common__v1__req__init (req);
    req->tasks = req->procs_per_task = 1;
    c->name = (char *)(uintptr_t) "main";
    c->walltime_us = WALLTIME_DEFAULT_S * US_PER_S;
    c->n_reqs = 1;
    c->reqs = arena_array (r->arena, 1, sizeof (void *));
    c->reqs[0] = req;
    if (site) {
        c->n_sites = 1;
        c->sites = arena_array (r->arena, 1, sizeof (char *));
        c->sites[0] = arena_strdup (r->arena, site);
    }
    r->job->n_components = 1;
    r->job->components = arena_array (r->arena, 1, sizeof (void *));
    r->job->components[0] = c;
    r->component = c;
    r->req = req;
}

int jobspec_read (json_t *spec, const char *site, struct arena *arena, Job **out, struct err *err)
{
    static const char *const names[] = {
        "executable",  "container",           "arguments",   "directory",
        "name",        "inherit_environment", "environment", "stdin_path",
        "stdout_path", "stderr_path",         "resources",   "attributes",
        "pre_launch",  "post_launch",         "launcher",    NULL};
    struct reading r = {.arena = arena, .err = err};
    json_t *resources = object_of (spec, "resources"), *attributes = object_of (spec, "attributes");
    if (!json_is_object (spec))
        return err_set (err, ERR_INVALID, "wanted a JobSpec, which is an object");
    job_make (&r, site);
    int rc = known_only (&r, spec, "a JobSpec", names);
    if (rc == 0)
        rc = read_script (&r, spec);
    if (rc == 0)
        rc = read_lists (&r, spec);
    if (rc == 0 && resources)
        rc = read_resources (&r, resources);
    if (rc == 0 && attributes)
        rc = read_attributes (&r, attributes);
    if (rc == 0) {
        r.component->script.len = r.script.len;
        r.component->script.data = arena_alloc (arena, r.script.len + 1);
        memcpy (r.component->script.data, r.script.data, r.script.len);
        *out = r.job;
    }
    strbuf_free (&r.script);
    return rc;
}

/* ---- back */

static json_t *kept_spec (const Component *c)
{
    static const char mark[] = SPEC_MARK;
    const char *script = (const char *)c->script.data, *end = script + c->script.len;
    const char *line = script ? memchr (script, '\n', c->script.len) : NULL;
    if (!line || (size_t)(end - ++line) < sizeof mark - 1 ||
        memcmp (line, mark, sizeof mark - 1) != 0)
        return NULL;
    line += sizeof mark - 1;
    const char *stop = memchr (line, '\n', (size_t)(end - line));
    return json_loadb (line, stop ? (size_t)(stop - line) : (size_t)(end - line), 0, NULL);
}

static json_t *text_or_null (const char *text)
{
    return *text ? json_string (text) : json_null ();
}

json_t *jobspec_write (const Job *job)
{
    if (job->n_components == 0)
        return json_null ();
    const Component *c = job->components[0];
    json_t *kept = kept_spec (c);
    if (kept)
        return kept;
    json_t *args = json_array (), *env = json_object (), *resources = json_object ();
    for (size_t i = 0; i < c->n_args; i++)
        json_array_append_new (args, json_string (c->args[i]));
    for (size_t i = 0; i < c->n_env; i++) {
        const char *equals = strchr (c->env[i], '=');
        if (equals) {
            char name[256];
            text_printf (name, sizeof name, "%.*s", (int)(equals - c->env[i]), c->env[i]);
            json_object_set_new (env, name, json_string (equals + 1));
        }
    }
    if (c->n_reqs) {
        const Req *req = c->reqs[0];
        json_object_set_new (resources, "process_count", json_integer (req->tasks));
        json_object_set_new (resources, "cpu_cores_per_process",
                             json_integer (req->procs_per_task ? req->procs_per_task : 1));
        if (req->nodes)
            json_object_set_new (resources, "node_count", json_integer (req->nodes));
        if (req->tasks_per_node)
            json_object_set_new (resources, "processes_per_node",
                                 json_integer (req->tasks_per_node));
        if (req->memory_mb)
            json_object_set_new (resources, "memory",
                                 json_integer (req->memory_mb * MB * req->tasks));
    }
    json_object_set_new (resources, "exclusive_node_use",
                         json_boolean (strcmp (c->node_access, "SINGLEJOB") == 0));
    json_t *attributes = json_pack (
        "{s:o, s:o, s:o, s:o}", "duration",
        c->walltime_us >= US_PER_S ? json_integer (c->walltime_us / US_PER_S) : json_null (),
        "queue_name", text_or_null (c->class_), "account", text_or_null (job->account),
        "reservation_id", text_or_null (c->reservation));
    return json_pack ("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "executable", "/bin/sh",
                      "arguments", args, "environment", env, "name", text_or_null (job->name),
                      "stdout_path", text_or_null (c->stdout_name), "stderr_path",
                      text_or_null (c->stderr_name), "resources", resources, "attributes",
                      attributes);
}
