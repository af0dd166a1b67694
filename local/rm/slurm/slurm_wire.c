/* slurm_wire: a request about a job, written in the shape of v0.0.38, in that of v0.0.40 and later. slurm_rest.c calls
 * it. It changes how things are said and never what; a field that it does not know is as it was. */
#include "local/rm/slurm/slurm_wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* {"set": true, "number": N}, {"set": true, "infinite": true}. */
static json_t *number_of (int64_t v)
{
    return json_pack ("{s:b, s:b, s:I}", "set", 1, "infinite", v < 0, "number",
                      (json_int_t)(v < 0 ? 0 : v));
}

/* "n1,n2" as ["n1", "n2"]. */
static json_t *list_of (const char *text)
{
    json_t *list = json_array ();
    for (const char *p = text; *p; p += strcspn (p, ","), p += *p == ',')
        json_array_append_new (list, json_stringn (p, strcspn (p, ",")));
    return list;
}

/* {"A": "b"} as ["A=b"]. */
static json_t *environment_of (json_t *object)
{
    json_t *list = json_array (), *value;
    const char *name;
    json_object_foreach (object, name, value)
        json_array_append_new (list, json_sprintf ("%s=%s", name, json_string_value (value)));
    return list;
}

/* "2-4" as the two numbers. */
static void nodes_put (json_t *job, const char *range)
{
    char *end;
    long least = strtol (range, &end, 10), most = *end == '-' ? strtol (end + 1, NULL, 10) : least;
    json_object_set_new (job, "minimum_nodes", json_integer (least));
    json_object_set_new (job, "maximum_nodes", json_integer (most));
    json_object_del (job, "nodes");
}

/* "B:10@60" as three fields. */
static void signal_put (json_t *job, const char *text)
{
    bool script = strncmp (text, "B:", 2) == 0;
    const char *number = script ? text + 2 : text, *at = strchr (number, '@');
    json_object_set_new (job, "kill_warning_flags",
                         script ? json_pack ("[s]", "BATCH_JOB") : json_array ());
    json_object_set_new (job, "kill_warning_signal", json_stringn (number, strcspn (number, "@")));
    json_object_set_new (job, "kill_warning_delay", number_of (at ? atol (at + 1) : 60));
    json_object_del (job, "signal");
}

static void numbers_wrap (json_t *job)
{
    static const char *const fields[] = {"time_limit", "memory_per_cpu", "memory_per_node",
                                         "priority"};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        json_t *v = json_object_get (job, fields[i]);
        if (json_is_integer (v))
            json_object_set_new (job, fields[i], number_of (json_integer_value (v)));
    }
}

static void job_convert (json_t *job, time_us now)
{
    json_t *nodes = json_object_get (job, "nodes"), *hosts = json_object_get (job, "node_list");
    json_t *env = json_object_get (job, "environment");
    char *signal = NULL;
    if (json_unpack (job, "{s:s}", "signal", &signal) == 0 && (signal = strdup (signal))) {
        signal_put (job, signal);
        free (signal);
    }
    if (json_is_string (nodes))
        nodes_put (job, json_string_value (nodes));
    if (json_is_string (hosts)) {
        json_object_set_new (job, "required_nodes", list_of (json_string_value (hosts)));
        json_object_del (job, "node_list");
    }
    if (json_is_object (env))
        json_object_set_new (job, "environment", environment_of (env));
    if (json_is_string (
            json_object_get (job, "begin_time"))) /* "now": the only word that is used */
        json_object_set_new (job, "begin_time", number_of (now / US_PER_S));
    numbers_wrap (job);
}

json_t *slurm_wire_job (json_t *body, int version, time_us now)
{
    json_t *job = json_object_get (body, "job"), *script = json_object_get (body, "script");
    if (version < SLURM_API_LISTS)
        return body;
    if (!job) {
        job_convert (body, now);
        return body;
    }
    job_convert (job, now);
    if (script) {
        json_object_set (job, "script", script);
        json_object_del (body, "script");
    }
    return body;
}
