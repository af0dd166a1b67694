/* native_parse: lines of NAME=value, or JSON, to nodes and jobs. rm_native.c calls it with the whole of what a program
 * printed. It believes nothing by halves. */
#include "local/rm/native/native_parse.h"

#include <ctype.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "proto/base/strbuf.h"
#include "proto/base/text.h"

enum { ATTRS_MAX = 64 };

struct attr {
    const char *name, *value;
};

struct reader {
    struct arena *arena;
    const char *what; /* "nodes" */
    int (*take) (struct reader *r, const char *id, const struct attr *attr, uint32_t count,
                 struct err *err);
    uint32_t count, cap;
    struct rm_node *node;
    struct native_seen *job;
    const char *licences;
};

bool native_id_good (const char *id)
{
    size_t len = strlen (id);
    return len > 0 && len < NATIVE_ID_MAX && *id != '-' &&
           strspn (id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._[]-") ==
               len;
}

/* --- lines -------------------------------------------------------------------------------- */

/* One word: up to an unquoted ';' or blank, its quotes and backslashes taken away. */
static char *word_take (char **at)
{
    char *out = *at, *to = out, quote = 0;
    for (; **at && (quote || !strchr ("; \t\r", **at)); (*at)++) {
        if (**at == '\\' && (*at)[1])
            *to++ = *++*at;
        else if (quote ? **at == quote : **at == '"' || **at == '\'')
            quote = quote ? 0 : **at;
        else
            *to++ = **at;
    }
    *at += **at != 0;
    *to = 0;
    return out;
}

static uint32_t words_read (char *line, struct attr attr[ATTRS_MAX], const char **bad)
{
    uint32_t count = 0;
    for (char *at = line; *at;) {
        char *word = word_take (&at), *equals = strchr (word, '=');
        if (!*word)
            continue;
        if (!equals || equals == word || count == ATTRS_MAX) {
            *bad = word;
            return 0;
        }
        *equals = 0;
        attr[count++] = (struct attr){word, equals + 1};
    }
    return count;
}

static const char *attr_get (const struct attr *attr, uint32_t count, const char *name)
{
    for (uint32_t i = 0; i < count; i++)
        if (strcasecmp (attr[i].name, name) == 0)
            return attr[i].value;
    return "";
}

static int line_bad (const char *what, uint32_t line, const char *word, struct err *err)
{
    return err_set (err, ERR_INVALID, "%s, line %u: '%.60s' is not understood", what, line, word);
}

/* "SC=0 COUNT=3 RESPONSE=the rest of the line". */
static int head_read (char *line, const char *what, int64_t *count, const char **job_id,
                      struct err *err)
{
    struct attr attr[ATTRS_MAX];
    const char *bad = line;
    int64_t sc = 0;
    char *response = strcasestr (line, "RESPONSE=");
    const char *said = response ? response + strlen ("RESPONSE=") : "";
    if (response)
        *response = 0;
    uint32_t n = words_read (line, attr, &bad);
    const char *code = attr_get (attr, n, "SC"), *number = attr_get (attr, n, "COUNT");
    if (!*code)
        return err_set (err, ERR_INVALID, "%s: the answer begins with '%.60s', wanted SC=0", what,
                        bad);
    if (int_parse (code, "SC", -1000000, 1000000, &sc, err) != 0 ||
        (*number && int_parse (number, "COUNT", 0, NATIVE_ENTRIES_MAX, count, err) != 0))
        return err->code;
    if (job_id)
        *job_id = attr_get (attr, n, "JOBID");
    return sc < 0 ? err_set (err, ERR_CONFLICT, "%s: SC=%lld %.200s", what, (long long)sc, said)
                  : 0;
}

static int lines_read (struct reader *r, char *text, bool counted, struct err *err)
{
    int64_t wanted = -1;
    uint32_t line = 0;
    size_t len = strlen (text);
    if (len == 0 || text[len - 1] != '\n')
        return err_set (err, ERR_INVALID, "%s: %s", r->what,
                        len ? "the last line is cut short" : "nothing was said");
    for (char *next, *at = text; *at; at = next) {
        struct attr attr[ATTRS_MAX];
        const char *bad = at;
        next = strchr (at, '\n');
        *next++ = 0;
        int rc = line++ == 0 ? head_read (at, r->what, &wanted, NULL, err) : 0;
        if (rc != 0)
            return rc;
        at += strspn (at, " \t\r");
        if (line == 1 || !*at || *at == '#')
            continue;
        char *id = word_take (&at);
        uint32_t n = words_read (at, attr, &bad);
        if (n == 0 || !native_id_good (id))
            return line_bad (r->what, line, native_id_good (id) ? bad : id, err);
        if ((rc = r->take (r, id, attr, n, err)) != 0)
            return rc;
    }
    if (wanted < 0 && (counted || r->count == 0))
        return err_set (err, ERR_INVALID, "%s: %s without COUNT may be a list that was cut short",
                        r->what, r->count ? "a file" : "an empty list");
    if (wanted >= 0 && wanted != r->count)
        return err_set (err, ERR_INVALID, "%s: COUNT=%lld was announced, and %u came", r->what,
                        (long long)wanted, r->count);
    return 0;
}

/* --- JSON --------------------------------------------------------------------------------- */

static const char *json_word (const json_t *v, struct arena *arena)
{
    struct strbuf b = STRBUF_INIT;
    const json_t *one;
    size_t i;
    if (json_is_string (v))
        return arena_strdup (arena, json_string_value (v));
    if (json_is_integer (v))
        return arena_printf (arena, "%lld", (long long)json_integer_value (v));
    if (json_is_real (v))
        return arena_printf (arena, "%f", json_real_value (v));
    if (json_is_array (v))
        json_array_foreach (v, i, one)
            strbuf_printf (&b, "%s%s", i ? ":" : "", json_word (one, arena));
    return strbuf_move (&b, arena);
}

static int json_entry (struct reader *r, const json_t *object, struct err *err)
{
    struct attr attr[ATTRS_MAX];
    uint32_t n = 0;
    const char *key, *id = json_string_value (json_object_get (object, "id"));
    json_t *value;
    if (!id || !native_id_good (id) || json_object_size (object) > ATTRS_MAX)
        return err_set (err, ERR_INVALID, "%s: an entry without a good \"id\"", r->what);
    json_object_foreach ((json_t *)object, key,
                         value) if (strcmp (key, "id") != 0 && !json_is_null (value)) attr[n++] =
        (struct attr){arena_strdup (r->arena, key), json_word (value, r->arena)};
    return r->take (r, arena_strdup (r->arena, id), attr, n, err);
}

static int json_read (struct reader *r, const char *text, size_t len, struct err *err)
{
    json_error_t why;
    json_t *root = json_loadb (text, len, JSON_REJECT_DUPLICATES, &why);
    const json_t *list = json_object_get (root, r->what), *entry;
    size_t i;
    int rc = 0;
    if (!root)
        return err_set (err, ERR_INVALID, "%s: no JSON: %.100s", r->what, why.text);
    if (json_integer_value (json_object_get (root, "sc")) < 0)
        rc = err_set (err, ERR_CONFLICT, "%s: %.200s", r->what,
                      json_is_string (json_object_get (root, "response"))
                          ? json_string_value (json_object_get (root, "response"))
                          : "refused");
    else if (!json_is_array (list))
        rc = err_set (err, ERR_INVALID, "%s: no list \"%s\" in the answer", r->what, r->what);
    else
        json_array_foreach (list, i, entry) if (rc == 0) rc = json_entry (r, entry, err);
    json_decref (root);
    return rc;
}

static int all_read (struct reader *r, const char *text, size_t len, bool counted, struct err *err)
{
    size_t blank = strspn (text, " \t\r\n");
    if (!text_ok (text, len))
        return err_set (err, ERR_INVALID, "%s: the answer is no text", r->what);
    if (text[blank] == '{')
        return json_read (r, text, len, err);
    return lines_read (r, arena_memdup (r->arena, text, len + 1), counted, err);
}

/* --- values ------------------------------------------------------------------------------- */

struct entry {
    const char *id;
    const struct attr *attr;
    uint32_t count;
    struct err *err;
};

static const char *get (const struct entry *e, const char *name)
{
    return attr_get (e->attr, e->count, name);
}

/* otherwise where it is not said. */
static int64_t number (const struct entry *e, const char *name, int64_t min, int64_t max,
                       int64_t otherwise)
{
    struct err why = {0};
    int64_t value = otherwise;
    const char *text = get (e, name);
    if (*text && e->err->code == 0 && int_parse (text, name, min, max, &value, &why) != 0)
        err_set (e->err, ERR_INVALID, "%.63s: %.200s", e->id, why.text);
    return value;
}

static time_us moment (const struct entry *e, const char *name)
{
    return number (e, name, 0, INT64_C (1) << 40, 0) * US_PER_S;
}

/* "[batch:5][x]", "a:b", "a,b" → names joined by sep, counts and brackets away. */
static const char *names (const struct entry *e, const char *name, char sep, struct arena *arena)
{
    struct strbuf b = STRBUF_INIT;
    const char *text = get (e, name);
    bool brackets = *text == '[';
    for (const char *p = text; *p;) {
        p += strspn (p, brackets ? "[] " : ":, ");
        size_t len = strcspn (p, brackets ? "]" : ":, "),
               plain = strcspn (p, brackets ? ":]" : ":, ");
        if (plain > 0)
            strbuf_printf (&b, "%s%.*s", b.len ? (char[]){sep, 0} : "", (int)plain, p);
        p += len;
    }
    return strbuf_move (&b, arena);
}

static bool among (const char *word, const char *const *list)
{
    for (; *list; list++)
        if (strcasecmp (word, *list) == 0)
            return true;
    return false;
}

static void *room (struct reader *r, void *list, size_t size)
{
    if (r->count < r->cap)
        return list;
    r->cap = r->cap ? 2 * r->cap : 64;
    void *more = arena_array (r->arena, r->cap, size);
    if (r->count)
        memcpy (more, list, r->count * size);
    return more;
}

/* --- nodes -------------------------------------------------------------------------------- */

static int node_take (struct reader *r, const char *id, const struct attr *attr, uint32_t count,
                      struct err *err)
{
    static const char *const up[] = {"Idle", "Running", "Busy", NULL}, *const drained[] = {
                                                                           "Draining", "Drained",
                                                                           NULL};
    struct entry e = {id, attr, count, err};
    enum { MB_MAX = INT32_MAX };
    const char *state = get (&e, "STATE");
    if (r->count == NATIVE_ENTRIES_MAX)
        return err_set (err, ERR_LIMIT, "more than %d nodes", NATIVE_ENTRIES_MAX);
    if (strcmp (id, "GLOBAL") == 0) {
        r->licences = get (&e, "CRES");
        return 0;
    }
    if (name_check ("node", id, err) != 0)
        return err->code;
    r->node = room (r, r->node, sizeof *r->node);
    struct rm_node *n = &r->node[r->count++];
    int64_t memory = number (&e, "CMEMORY", 0, MB_MAX, 0),
            free_mb = number (&e, "AMEMORY", 0, MB_MAX, -1);
    *n = (struct rm_node){.name = id,
                          .procs = (uint32_t)number (&e, "CPROC", 1, NATIVE_PROCS_MAX, 0)};
    if (n->procs == 0 && err->code == 0)
        err_set (err, ERR_INVALID, "node %.63s has no CPROC", id);
    if (number (&e, "APROC", 0, NATIVE_PROCS_MAX, 0) > n->procs && err->code == 0)
        err_set (err, ERR_INVALID,
                 "node %.63s has more processors free (APROC) than it has (CPROC)", id);
    n->state = among (state, up)        ? RM_NODE_UP
               : among (state, drained) ? RM_NODE_DRAINED
                                        : RM_NODE_DOWN;
    n->reason = n->state == RM_NODE_UP ? ""
                : *get (&e, "CAT")     ? get (&e, "CAT")
                : *state               ? state
                                       : "no STATE";
    n->memory_mb = memory;
    n->disk_mb = number (&e, "CDISK", 0, MB_MAX, 0);
    n->memory_used_mb = free_mb >= 0 && free_mb <= memory ? memory - free_mb : -1;
    n->load_milli =
        *get (&e, "CPULOAD") ? (int32_t)(strtod (get (&e, "CPULOAD"), NULL) * 1000) : -1;
    n->features = names (&e, "FEATURE", ',', r->arena);
    n->classes = names (&e, "CCLASS", ',', r->arena);
    n->gres = get (&e, "CRES");
    n->address = "";
    return err->code;
}

static int node_order (const void *a, const void *b)
{
    const struct rm_node *x = a, *y = b;
    return strverscmp (x->name, y->name);
}

int native_parse_nodes (const char *text, size_t len, bool counted, struct arena *arena,
                        struct rm_node **out, uint32_t *count_out, const char **licences_out,
                        struct err *err)
{
    struct err why = {0};
    struct reader r = {.arena = arena, .what = "nodes", .take = node_take, .licences = ""};
    int rc = all_read (&r, text, len, counted, &why);
    if (r.count > 1)
        qsort (r.node, r.count, sizeof *r.node, node_order);
    for (uint32_t i = 1; rc == 0 && i < r.count; i++)
        if (strcmp (r.node[i].name, r.node[i - 1].name) == 0)
            rc = err_set (&why, ERR_INVALID, "node %.63s is there twice", r.node[i].name);
    if (rc != 0)
        return err_set (err, rc, "%s", why.text);
    *out = r.node;
    *count_out = r.count;
    *licences_out = r.licences;
    return 0;
}

/* --- jobs --------------------------------------------------------------------------------- */

/* "n1:n1:n2", each with so many processors, as "n1:2,n2:1". */
static const char *placement (const struct entry *e, int64_t procs, struct arena *arena)
{
    struct strbuf b = STRBUF_INIT;
    const char *text = names (e, "TASKLIST", ',', arena);
    for (const char *p = text; *p;) {
        size_t len = strcspn (p, ",");
        int64_t same = 0;
        const char *q = p;
        for (; strncmp (q, p, len) == 0 && (q[len] == ',' || !q[len]); same++)
            q += len + (q[len] == ',');
        strbuf_printf (&b, "%s%.*s:%lld", b.len ? "," : "", (int)len, p, (long long)(same * procs));
        p = q;
    }
    return strbuf_move (&b, arena);
}

static int job_take (struct reader *r, const char *id, const struct attr *attr, uint32_t count,
                     struct err *err)
{
    static const char *const pending[] = {"Idle",      "Hold",     "UserHold", "SystemHold",
                                          "BatchHold", "Deferred", NULL},
                             *const running[] = {"Running", "Starting", NULL},
                             *const ended[] = {"Completed", "Removed", "Cancelled",
                                               "Canceled",  "Vacated", NULL};
    struct entry e = {id, attr, count, err};
    const char *state = get (&e, "STATE");
    if (r->count == NATIVE_ENTRIES_MAX)
        return err_set (err, ERR_LIMIT, "more than %d jobs", NATIVE_ENTRIES_MAX);
    r->job = room (r, r->job, sizeof *r->job);
    struct native_seen *s = &r->job[r->count++];
    struct rm_native *n = &s->native;
    *s = (struct native_seen){.cpu_time = -1};
    s->state = among (state, pending)                 ? NATIVE_PENDING
               : among (state, running)               ? NATIVE_RUNNING
               : strcasecmp (state, "Suspended") == 0 ? NATIVE_SUSPENDED
               : among (state, ended)                 ? NATIVE_ENDED
                                                      : NATIVE_NONE;
    if (s->state == NATIVE_NONE)
        return err_set (err, ERR_INVALID, "job %.63s has the state '%.40s', which is not known", id,
                        state);
    if (name_check ("UNAME", get (&e, "UNAME"), NULL) != 0)
        return err_set (err, ERR_INVALID, "job %.63s has no good UNAME", id);
    s->removed = s->state == NATIVE_ENDED && strcasecmp (state, "Completed") != 0;
    s->exit_code = (int32_t)number (&e, "EXITCODE", INT32_MIN, INT32_MAX, 0);
    s->end = moment (&e, "COMPLETETIME");
    s->dispatch = moment (&e, "DISPATCHTIME");
    int64_t cpu = number (&e, "CPUTIME", 0, INT64_C (1) << 40, -1);
    s->cpu_time = cpu < 0 ? -1 : cpu * US_PER_S;
    int64_t each = number (&e, "DPROCS", 1, NATIVE_PROCS_MAX, 1),
            tasks = number (&e, "TASKS", 1, NATIVE_PROCS_MAX, 1);
    if (each * tasks > NATIVE_PROCS_MAX && err->code == 0)
        err_set (err, ERR_LIMIT, "job %.63s wants more than %d processors", id, NATIVE_PROCS_MAX);
    *n = (struct rm_native){
        .rm_id = id,
        .submit = moment (&e, "QUEUETIME"),
        .state = s->state == NATIVE_PENDING ? RM_NATIVE_PENDING : RM_NATIVE_RUNNING,
        .name = get (&e, "NAME"),
        .user = get (&e, "UNAME"),
        .group = get (&e, "GNAME"),
        .account = get (&e, "ACCOUNT"),
        .qos = get (&e, "QOS"),
        .class_name = names (&e, "RCLASS", ',', r->arena),
        .nodes_min = (uint32_t)number (&e, "NODES", 0, NATIVE_ENTRIES_MAX, 0),
        .tasks = (uint32_t)tasks,
        .procs = (uint32_t)(each * tasks),
        .memory_per_proc_mb = (number (&e, "RMEM", 0, INT32_MAX, 0) + each - 1) / each,
        .walltime = number (&e, "WCLIMIT", -1, INT64_C (1) << 32, 0) * US_PER_S,
        .begin = moment (&e, "STARTDATE"),
        .features = names (&e, "RFEATURES", '&', r->arena),
        .licences = "",
        .hosts = names (&e, "HOSTLIST", ',', r->arena),
        .hosts_excluded = names (&e, "EXCLUDE_HOSTLIST", ',', r->arena),
        .gres_per_node = "",
        .gres_per_task = get (&e, "GRES"),
        .gres_per_job = "",
        .dependency = "",
        .array_id = "",
        .held_user = strcasecmp (state, "UserHold") == 0,
        .held_admin = strcasecmp (state, "UserHold") != 0 && strcasestr (state, "Hold"),
        .start = s->state == NATIVE_PENDING ? 0 : moment (&e, "STARTTIME"),
    };
    n->nodes_max = n->nodes_min;
    n->walltime = n->walltime < 0 ? 0 : n->walltime;
    n->placement = s->state == NATIVE_PENDING ? "" : placement (&e, each, r->arena);
    if (err->code == 0 && n->submit == 0)
        err_set (err, ERR_INVALID, "job %.63s has no QUEUETIME", id);
    if (err->code == 0 && (s->state == NATIVE_RUNNING || s->state == NATIVE_SUSPENDED) &&
        n->start == 0)
        err_set (err, ERR_INVALID, "job %.63s runs and has no STARTTIME", id);
    if (err->code == 0 && s->end < n->start && s->state == NATIVE_ENDED && n->start)
        err_set (err, ERR_INVALID, "job %.63s ended before it began", id);
    return err->code;
}

static int job_order (const void *a, const void *b)
{
    const struct native_seen *x = a, *y = b;
    return strverscmp (x->native.rm_id, y->native.rm_id);
}

int native_parse_jobs (const char *text, size_t len, bool counted, struct arena *arena,
                       struct native_seen **out, uint32_t *count_out, struct err *err)
{
    struct err why = {0};
    struct reader r = {.arena = arena, .what = "jobs", .take = job_take};
    int rc = all_read (&r, text, len, counted, &why);
    if (r.count > 1)
        qsort (r.job, r.count, sizeof *r.job, job_order);
    for (uint32_t i = 1; rc == 0 && i < r.count; i++)
        if (strcmp (r.job[i].native.rm_id, r.job[i - 1].native.rm_id) == 0)
            rc = err_set (&why, ERR_INVALID, "job %.63s is there twice", r.job[i].native.rm_id);
    if (rc != 0)
        return err_set (err, rc, "%s", why.text);
    *out = r.job;
    *count_out = r.count;
    return 0;
}

int native_parse_result (const char *text, size_t len, struct arena *arena, const char **job_id_out,
                         struct err *err)
{
    int64_t count;
    *job_id_out = "";
    if (!text_ok (text, len))
        return err_set (err, ERR_INVALID, "the answer is no text");
    char *line = arena_memdup (arena, text, len + 1);
    line[strcspn (line, "\n")] = 0;
    int rc = head_read (line, "the call", &count, job_id_out, err);
    if (rc == 0 && **job_id_out && !native_id_good (*job_id_out))
        rc = err_set (err, ERR_INVALID, "'%.60s' is no job's name", *job_id_out);
    return rc;
}
