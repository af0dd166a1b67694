/* play_slurm: answers as a recorded slurmrestd did, and keeps jobs, nodes and reservations between them. */
#include "tests/unit/local_rm/play_slurm.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

/* --- what was recorded -------------------------------------------------------------------- */

static const json_t *said (const struct play_slurm *play, const char *name)
{
    json_t *line = json_object_get (play->said, name);
    if (!line)
        fprintf (stderr, "%s has no %s\n", play->version, name);
    assert (line);
    return line;
}

static json_t *said_answer (const struct play_slurm *play, const char *name)
{
    return json_deep_copy (json_object_get (said (play, name), "answer"));
}

/* The only job of an answer, to be changed. */
static json_t *said_job (const struct play_slurm *play, const char *name)
{
    json_t *answer = json_object_get (said (play, name), "answer");
    json_t *job = json_array_get (json_object_get (answer, "jobs"), 0);
    assert (job);
    return json_deep_copy (job);
}

static int give_json (json_t *doc, struct strbuf *body, int status)
{
    char *text = json_is_string (doc) ? strdup (json_string_value (doc)) : json_dumps (doc, 0);
    strbuf_puts (body, text);
    free (text);
    json_decref (doc);
    return status;
}

static int give (const struct play_slurm *play, const char *name, struct strbuf *body)
{
    return give_json (said_answer (play, name), body,
                      (int)json_integer_value (json_object_get (said (play, name), "status")));
}

/* The real one offered others, too. */
static void only_version (struct play_slurm *play)
{
    json_t *paths = json_object_get (json_object_get (said (play, "openapi"), "answer"), "paths");
    json_t *value;
    const char *path;
    char prefix[32];
    void *next;
    snprintf (prefix, sizeof prefix, "/slurm/%s/", play->version);
    json_object_foreach_safe (paths, next, path,
                              value) if (strncmp (path, prefix, strlen (prefix)) != 0)
        json_object_del (paths, path);
}

void play_init (struct play_slurm *play, const char *data)
{
    char path[512], *line = NULL;
    size_t cap = 0;
    *play = (struct play_slurm){.said = json_object (), .jobs = json_array (), .changed = 1};
    snprintf (path, sizeof path, NUI_SLURM_DATA "/%s.jsonl", data);
    FILE *f = fopen (path, "r");
    assert (f);
    while (getline (&line, &cap, f) > 0) {
        json_t *one = json_loads (line, JSON_DECODE_ANY, NULL);
        assert (one);
        json_object_set_new (play->said, json_string_value (json_object_get (one, "name")), one);
    }
    free (line);
    fclose (f);
    snprintf (play->version, sizeof play->version, "%s", strchr (data, '-') + 1);
    play->number = atoi (play->version + 5);
    only_version (play);
    json_t *nodes = json_object_get (said (play, "nodes"), "answer");
    play->nodes = json_deep_copy (json_object_get (nodes, "nodes"));
    play->reservations = json_array ();
}

void play_free (struct play_slurm *play)
{
    json_decref (play->said);
    json_decref (play->jobs);
    json_decref (play->nodes);
    json_decref (play->reservations);
}

/* --- fields ------------------------------------------------------------------------------- */

int64_t play_number (const json_t *record, const char *field)
{
    json_t *v = json_object_get (record, field);
    if (!json_is_object (v))
        return json_integer_value (v);
    return json_is_true (json_object_get (v, "set"))
               ? json_integer_value (json_object_get (v, "number"))
               : -1;
}

const char *play_text (const json_t *record, const char *field)
{
    json_t *v = json_object_get (record, field);
    v = json_is_array (v) ? json_array_get (v, 0) : v;
    return json_is_string (v) ? json_string_value (v) : "";
}

void play_set (json_t *record, const char *field, int64_t value)
{
    json_t *v = json_object_get (record, field);
    json_object_set_new (record, field,
                         json_is_object (v) ? json_pack ("{s:b, s:b, s:I}", "set", 1, "infinite", 0,
                                                         "number", (json_int_t)value)
                                            : json_integer (value));
}

void play_set_text (json_t *record, const char *field, const char *value)
{
    json_t *v = json_object_get (record, field);
    json_object_set_new (record, field,
                         json_is_array (v) ? json_pack ("[s]", value) : json_string (value));
}

/* --- jobs --------------------------------------------------------------------------------- */

json_t *play_job (struct play_slurm *play, unsigned number)
{
    json_t *job = json_array_get (play->jobs, number - 1);
    return json_is_object (job) ? job : NULL;
}

static void changed (struct play_slurm *play)
{
    play->changed = time (NULL);
}

unsigned play_sbatch (struct play_slurm *play, const char *user, unsigned nodes, unsigned tasks)
{
    json_t *job = said_job (play, "job-waiting");
    json_array_append_new (play->jobs, job);
    unsigned number = (unsigned)json_array_size (play->jobs);
    static const char *const none[] = {"features", "licenses", "tres_per_node", "comment"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        play_set_text (job, none[i], "");
    play_set (job, "job_id", number);
    play_set (job, "node_count", nodes);
    play_set (job, "max_nodes", nodes);
    play_set (job, "tasks", tasks);
    play_set (job, "cpus", tasks);
    play_set (job, "submit_time", time (NULL));
    play_set_text (job, "user_name", user);
    play_set_text (job, "required_nodes", "");
    changed (play);
    return number;
}

/* Fields of a job's own, over those of the record it is made into. */
static void job_becomes (struct play_slurm *play, unsigned number, const char *name)
{
    static const char *const own[] = {
        "job_id",      "name",           "user_name",  "comment",    "partition",
        "submit_time", "cpus",           "tasks",      "node_count", "max_nodes",
        "priority",    "required_nodes", "features",   "licenses",   "tres_per_node",
        "time_limit",  "restart_cnt",    "start_time", "nodes",      "job_resources"};
    json_t *was = json_incref (play_job (play, number)), *is = said_job (play, name);
    bool ran = strcmp (play_text (was, "nodes"), "") != 0;
    size_t count = sizeof own / sizeof *own;
    for (size_t i = 0; i < (ran ? count : count - 3); i++)
        json_object_set (is, own[i], json_object_get (was, own[i]));
    json_decref (was);
    json_array_set_new (play->jobs, number - 1, is);
    changed (play);
}

/* One entry for each node, as the recorded one is. */
static json_t *resources_of (const json_t *recorded, const char *nodes, int64_t procs_each)
{
    json_t *resources = json_deep_copy (recorded), *in = resources;
    const char *key = "allocated_nodes", *name = "nodename";
    if (json_is_object (json_object_get (resources, "nodes"))) {
        in = json_object_get (resources, "nodes");
        key = "allocation";
        name = "name";
    }
    json_t *pattern = json_incref (json_array_get (json_object_get (in, key), 0));
    json_t *list = json_array ();
    for (const char *p = nodes; *p; p += strcspn (p, ","), p += *p == ',') {
        json_t *node = json_deep_copy (pattern), *cpus = json_object_get (node, "cpus");
        json_object_set_new (node, name, json_stringn (p, strcspn (p, ",")));
        if (cpus) {
            json_object_set_new (cpus, "count", json_integer (procs_each));
        } else {
            json_t *cores = json_object ();
            for (int64_t c = 0; c < procs_each; c++) {
                char core[8];
                snprintf (core, sizeof core, "%d", (int)c);
                json_object_set_new (cores, core, json_string ("allocated"));
            }
            json_object_set_new (node, "sockets", json_pack ("{s:{s:o}}", "0", "cores", cores));
        }
        json_array_append_new (list, node);
    }
    json_object_set_new (in, key, list);
    json_decref (pattern);
    return resources;
}

void play_runs (struct play_slurm *play, unsigned number, const char *nodes)
{
    unsigned count = 1;
    for (const char *p = nodes; *p; p++)
        count += *p == ',';
    job_becomes (play, number, "job-running");
    json_t *job = play_job (play, number);
    json_object_set_new (job, "job_resources",
                         resources_of (json_object_get (job, "job_resources"), nodes,
                                       play_number (job, "tasks") / count));
    play_set_text (job, "nodes", nodes);
    play_set (job, "start_time", time (NULL));
}

void play_state (struct play_slurm *play, unsigned number, const char *state)
{
    play_set_text (play_job (play, number), "job_state", state);
    changed (play);
}

void play_ends (struct play_slurm *play, unsigned number, const char *state, int exit_code,
                int signo)
{
    job_becomes (play, number, signo ? "job-killed" : "job-failed");
    json_t *job = play_job (play, number), *code = json_object_get (job, "exit_code");
    play_set_text (job, "job_state", state);
    play_set (job, "end_time", time (NULL) + 1);
    if (!json_is_object (code))
        play_set (job, "exit_code", signo ? signo : exit_code << 8);
    else if (signo)
        play_set (json_object_get (code, "signal"), "id", signo);
    else
        play_set (code, "return_code", exit_code);
}

void play_forget (struct play_slurm *play, unsigned number)
{
    json_array_set_new (play->jobs, number - 1, json_null ());
    changed (play);
}

void play_node (struct play_slurm *play, const char *name, const char *state, const char *reason)
{
    json_t *one;
    size_t i;
    json_array_foreach (play->nodes, i, one)
    {
        if (strcmp (play_text (one, "name"), name) != 0)
            continue;
        bool drain = strcmp (state, "drain") == 0;
        if (json_is_array (json_object_get (one, "state")))
            json_object_set_new (one, "state",
                                 drain ? json_pack ("[s,s]", "IDLE", "DRAIN")
                                       : json_pack ("[s]", *state == 'd' ? "DOWN" : "IDLE"));
        else {
            play_set_text (one, "state", drain ? "idle" : state);
            json_object_set_new (one, "state_flags",
                                 drain ? json_pack ("[s]", "DRAIN") : json_array ());
        }
        play_set_text (one, "reason", reason);
    }
    changed (play);
}

/* --- changes through the API -------------------------------------------------------------- */

/* What Slurm wants of a field: 's' text, 'i' number, 'n' {"set", "number"}, 'l' list or text, 'b' truth, 'o' object. */
static const struct {
    const char *field, *before, *since; /* v0.0.40 */
} wanted[] = {{"partition", "s", "s"},
              {"comment", "s", "s"},
              {"name", "s", "s"},
              {"tasks", "i", "i"},
              {"cpus_per_task", "i", "i"},
              {"hold", "b", "b"},
              {"requeue", "b", "b"},
              {"reservation", "s", "s"},
              {"account", "s", "s"},
              {"qos", "s", "s"},
              {"script", "", "s"},
              {"node_list", "s", ""},
              {"required_nodes", "", "l"},
              {"nodes", "s", "s"},
              {"minimum_nodes", "", "i"},
              {"maximum_nodes", "", "i"},
              {"time_limit", "i", "n"},
              {"memory_per_cpu", "i", "n"},
              {"begin_time", "s", "n"},
              {"environment", "o", "l"},
              {"current_working_directory", "s", "s"},
              {"standard_output", "s", "s"},
              {"standard_error", "s", "s"}};

static bool type_is (const json_t *v, char type)
{
    switch (type) {
    case 's':
        return json_is_string (v);
    case 'i':
        return json_is_integer (v);
    case 'n':
        return json_is_integer (json_object_get (v, "number")) &&
               json_is_true (json_object_get (v, "set"));
    case 'l':
        return json_is_array (v) || json_is_string (v);
    case 'b':
        return json_is_boolean (v);
    default:
        return json_is_object (v);
    }
}

/* Is each field one that this version has, and of its type? *unknown: the first that is not, is none of its fields. */
static bool fields_good (struct play_slurm *play, const json_t *job, bool *unknown)
{
    const char *field;
    json_t *value;
    json_object_foreach ((json_t *)job, field, value)
    {
        const char *type = "";
        for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
            if (strcmp (wanted[i].field, field) == 0)
                type = play->number < 40 ? wanted[i].before : wanted[i].since;
        if (*type && type_is (value, *type))
            continue;
        snprintf (play->passed_over, sizeof play->passed_over, "%.63s", field);
        *unknown = !*type;
        return false;
    }
    return true;
}

/* number: of the job that was made all the same; 0: none was. */
static int passed_over (struct play_slurm *play, const char *under, unsigned number,
                        struct strbuf *body)
{
    char source[128];
    const char *name = number ? "submit-unknown-field" : "submit-wrong-type";
    json_t *doc = said_answer (play, name);
    json_t *one = json_array_get (json_object_get (doc, "warnings"), 0);
    if (one) {
        snprintf (source, sizeof source, "#/%s%s/", under, play->passed_over);
        json_object_set_new (one, "source", json_string (source));
    }
    if (number)
        json_object_set_new (doc, "job_id", json_integer (number));
    return give_json (doc, body,
                      (int)json_integer_value (json_object_get (said (play, name), "status")));
}

static int put_off (struct strbuf *body)
{
    strbuf_puts (body,
                 "{\"errors\":[{\"description\":\"\",\"error_number\":11,\"error\":\"Resource "
                 "temporarily unavailable\",\"source\":\"slurm_update_job2()\"}]}");
    return 500;
}

/* "n1,n2" of a text or a list. */
static void hosts_text (const json_t *v, struct strbuf *out)
{
    json_t *one;
    size_t i;
    if (json_is_string (v))
        strbuf_puts (out, json_string_value (v));
    json_array_foreach (v, i, one)
        strbuf_printf (out, "%s%s", i ? "," : "", json_string_value (one));
}

static void hold (struct play_slurm *play, json_t *job, bool on, bool by_root)
{
    (void)play;
    if (strcmp (play_text (job, "job_state"), "PENDING") == 0)
        play_set_text (job, "state_reason",
                       !on       ? "None"
                       : by_root ? "JobHeldAdmin"
                                 : "JobHeldUser");
    play_set (job, "priority", on ? 0 : 1000);
}

static int update (struct play_slurm *play, unsigned number, const json_t *said_of,
                   struct strbuf *body)
{
    json_t *job = play_job (play, number), *v;
    struct strbuf hosts = STRBUF_INIT;
    play->updates++;
    if (play->busy > 0) {
        play->busy--;
        return put_off (body);
    }
    if (!job)
        return give (play, "job-update-unknown", body);
    bool unknown = false;
    if (!fields_good (play, said_of, &unknown))
        return passed_over (play, "", 0, body);
    if ((v = json_object_get (said_of, "partition")))
        play_set_text (job, "partition", json_string_value (v));
    if ((v = json_object_get (said_of, "hold")))
        hold (play, job, json_is_true (v), true);
    v = json_object_get (said_of, play->number < 40 ? "node_list" : "required_nodes");
    hosts_text (v, &hosts);
    if (v)
        play_set_text (job, "required_nodes", strbuf_text (&hosts));
    if (strcmp (play_text (job, "partition"), "nui") == 0 && hosts.len > 0 && !play->stuck &&
        strcmp (play_text (job, "job_state"), "PENDING") == 0 && play_number (job, "priority") != 0)
        play_runs (play, number, strbuf_text (&hosts));
    strbuf_free (&hosts);
    changed (play);
    return give (play, "job-start", body);
}

static bool partition_known (const struct play_slurm *play, const char *name)
{
    json_t *list =
        json_object_get (json_object_get (said (play, "partitions"), "answer"), "partitions");
    json_t *one;
    size_t i;
    json_array_foreach (list, i, one) if (strcmp (play_text (one, "name"), name) == 0) return true;
    return false;
}

static int submit (struct play_slurm *play, const json_t *doc, struct strbuf *body)
{
    json_t *job = json_object_get (doc, "job"), *v;
    play->submitted++;
    if (play->number >= 40 ? !json_object_get (job, "script") : !json_object_get (doc, "script"))
        return give (play, "submit-bad", body);
    if ((v = json_object_get (job, "partition")) && !partition_known (play, json_string_value (v)))
        return give (play, "submit-bad", body);
    bool unknown = play->surprised;
    bool good = fields_good (play, job, &unknown) && !unknown;
    if (!good && (play->number < 40 || !unknown))
        return passed_over (play, "job/", 0, body);
    unsigned number = play_sbatch (play, "root", 1,
                                   (unsigned)json_integer_value (json_object_get (job, "tasks")));
    json_t *record = play_job (play, number);
    play_set_text (record, "partition", v ? json_string_value (v) : "batch");
    play_set_text (record, "comment", json_string_value (json_object_get (job, "comment")));
    play_set_text (record, "name", json_string_value (json_object_get (job, "name")));
    if (!good)
        return passed_over (play, "job/", number, body);
    json_t *answer = said_answer (play, "submit");
    json_object_set_new (answer, "job_id", json_integer (number));
    return give_json (answer, body, 200);
}

static int cancel (struct play_slurm *play, unsigned number, const char *query, struct strbuf *body)
{
    json_t *job = play_job (play, number);
    if (!job)
        return give (play, "job-update-unknown", body);
    if (!*query) {
        bool ran = strcmp (play_text (job, "nodes"), "") != 0;
        job_becomes (play, number, "job-cancelled");
        job = play_job (play, number);
        play_set_text (job, "job_state", "CANCELLED");
        play_set (job, "end_time", time (NULL) + 1);
        if (!ran) {
            play_set_text (job, "nodes", "");
            play_set (job, "start_time", time (NULL));
            json_object_set_new (job, "job_resources", json_null ());
        }
    }
    return give (play, "job-cancel", body);
}

/* --- lists -------------------------------------------------------------------------------- */

/* An answer of that name, with other entries. */
static int give_list (struct play_slurm *play, const char *name, const char *key, json_t *entries,
                      struct strbuf *body)
{
    json_t *answer = said_answer (play, name);
    json_object_set_new (answer, key, entries);
    return give_json (answer, body, 200);
}

static json_t *jobs_there (struct play_slurm *play)
{
    json_t *list = json_array (), *one;
    size_t i;
    json_array_foreach (play->jobs, i, one) if (json_is_object (one)) json_array_append (list, one);
    return list;
}

/* Whose update_time, "uts" before it, is that or later? */
static bool unchanged_since (const struct play_slurm *play, const char *query)
{
    const char *at = strstr (query, "update_time=");
    if (!at)
        return false;
    at += strlen ("update_time=");
    at += strncmp (at, "uts", 3) == 0 ? 3 : 0;
    return strtoll (at, NULL, 10) > play->changed;
}

static int give_jobs (struct play_slurm *play, const char *query, struct strbuf *body)
{
    const char *since = strstr (query, "update_time=");
    if (since && play->number >= 40 && strncmp (since + 12, "uts", 3) != 0)
        play->unknown++; /* v0.0.41 refuses it without that */
    if (unchanged_since (play, query)) {
        play->unchanged++;
        return give (play, "jobs-unchanged", body);
    }
    play->whole++;
    return give_list (play, "job-waiting", "jobs", jobs_there (play), body);
}

/* Of those in "job_id=1,2", or all. */
static int give_states (struct play_slurm *play, const char *query, struct strbuf *body)
{
    const char *at = strstr (query, "job_id=");
    json_t *list = json_array (), *one;
    char id[24], word[28];
    size_t i;
    play->states++;
    json_array_foreach (play->jobs, i, one)
    {
        snprintf (id, sizeof id, "%zu", i + 1);
        snprintf (word, sizeof word, "%s,", id);
        bool in = !at || strncmp (at + 7, word, strlen (word)) == 0;
        for (const char *p = at; p && !in && (p = strstr (p, ",")); p++)
            in = strncmp (p + 1, id, strlen (id)) == 0 && strchr (",", p[1 + strlen (id)]);
        in = in || (at && strcmp (at + 7, id) == 0);
        if (json_is_object (one) && in)
            json_array_append_new (list, json_pack ("{s:s, s:O}", "job_id", id, "state",
                                                    json_object_get (one, "job_state")));
    }
    return give_list (play, "jobs-state", "jobs", list, body);
}

static int about_job (struct play_slurm *play, const char *method, const char *path,
                      const char *query, const json_t *doc, struct strbuf *body)
{
    char *rest;
    if (strcmp (path, "submit") == 0)
        return submit (play, doc, body);
    unsigned number = (unsigned)strtoul (path, &rest, 10);
    if (strcmp (method, "POST") == 0)
        return update (play, number, doc, body);
    if (strcmp (method, "DELETE") == 0)
        return cancel (play, number, query, body);
    if (strcmp (rest, "/requeue") == 0)
        return give (play, "job-start", body);
    play->fields++;
    if (!play_job (play, number))
        return give (play, "job-unknown", body);
    return give_list (play, "job-waiting", "jobs", json_pack ("[O]", play_job (play, number)),
                      body);
}

/* --- reservations ------------------------------------------------------------------------- */

static size_t reservation_find (const struct play_slurm *play, const char *name)
{
    json_t *one;
    size_t i;
    json_array_foreach (play->reservations, i,
                        one) if (strcmp (play_text (one, "name"), name) == 0) return i;
    return SIZE_MAX;
}

static int reservation_put (struct play_slurm *play, const json_t *doc, struct strbuf *body)
{
    json_t *answer = said_answer (play, "reservations");
    const char *name = play_text (doc, "name");
    size_t at = reservation_find (play, name);
    struct strbuf users = STRBUF_INIT, nodes = STRBUF_INIT;
    json_t *made =
        at == SIZE_MAX
            ? json_deep_copy (json_array_get (json_object_get (answer, "reservations"), 0))
            : json_deep_copy (json_array_get (play->reservations, at));
    json_decref (answer);
    hosts_text (json_object_get (doc, "users"), &users);
    hosts_text (json_object_get (doc, "node_list"), &nodes);
    play_set_text (made, "name", name);
    if (users.len)
        play_set_text (made, "users", strbuf_text (&users));
    if (nodes.len)
        play_set_text (made, "node_list", strbuf_text (&nodes));
    if (json_object_get (doc, "start_time"))
        play_set (made, "start_time", play_number (doc, "start_time"));
    if (json_object_get (doc, "end_time"))
        play_set (made, "end_time", play_number (doc, "end_time"));
    if (at == SIZE_MAX)
        json_array_append_new (play->reservations, made);
    else
        json_array_set_new (play->reservations, at, made);
    strbuf_free (&users);
    strbuf_free (&nodes);
    return give (play, "reservation-make", body);
}

static int about_reservation (struct play_slurm *play, const char *method, const char *what,
                              const json_t *doc, struct strbuf *body)
{
    if (strcmp (what, "reservation") == 0)
        return reservation_put (play, doc, body);
    if (strcmp (what, "reservations") == 0)
        return give_list (play, "reservations", "reservations", json_incref (play->reservations),
                          body);
    size_t at = reservation_find (play, what + strlen ("reservation/"));
    if (strcmp (method, "DELETE") != 0 || at == SIZE_MAX)
        return give (play, "reservation-delete-unknown", body);
    json_array_remove (play->reservations, at);
    return give (play, "reservation-delete", body);
}

int play_answer (void *arg, const char *method, const char *path, const char *query,
                 const char *sent, struct strbuf *body)
{
    struct play_slurm *play = arg;
    char version[16], what[128];
    if (strcmp (path, "/openapi/v3") == 0)
        return give (play, "openapi", body);
    if (sscanf (path, "/slurm/%15[^/]/%127s", version, what) != 2 ||
        strcmp (version, play->version) != 0) {
        play->unknown++;
        return 404;
    }
    if (play->token_refused)
        return give (play, play->token_refused, body);
    if (play->down) {
        strbuf_puts (body,
                     "{\"errors\":[{\"error_number\":1800,\"error\":\"Unable to contact slurm "
                     "controller (connect failure)\"}]}");
        return 500;
    }
    json_t *doc = *sent ? json_loads (sent, 0, NULL) : NULL;
    int status = 404;
    if (strcmp (what, "jobs") == 0)
        status = give_jobs (play, query, body);
    else if (strcmp (what, "jobs/state/") == 0 && play->number > 40)
        status = give_states (play, query, body);
    else if (strcmp (what, "nodes") == 0 && unchanged_since (play, query))
        status = give (play, "nodes-unchanged", body);
    else if (strcmp (what, "nodes") == 0)
        status = give_list (play, "nodes", "nodes", json_incref (play->nodes), body);
    else if (strcmp (what, "partitions") == 0 || strcmp (what, "licenses") == 0)
        status = give (play, what, body);
    else if (strncmp (what, "reservation", 11) == 0)
        status = about_reservation (play, method, what, doc, body);
    else if (strncmp (what, "job/", 4) == 0)
        status = about_job (play, method, what + 4, query, doc, body);
    else
        play->unknown++;
    json_decref (doc);
    return status;
}
