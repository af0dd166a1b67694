/* slurm_parse: turns one job or node of an answer, still JSON, into plain records of our own.
 * slurm_poll.c, slurm_nodes.c and slurm_done.c call it. It decides nothing, keeps nothing and
 * does no I/O; a field that is missing or absurd is an error that names it, never a guess. */
#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "local/rm/slurm/slurm_i.h"
#include "proto/base/strbuf.h"
#include "proto/base/text.h"

/* --- jobs --------------------------------------------------------------------------------- */

static const struct {
    const char *word;
    enum slurm_state state;
} states[] = {
    {"PENDING", SLURM_PENDING},      {"REQUEUED", SLURM_PENDING},
    {"REQUEUE_HOLD", SLURM_PENDING}, {"REQUEUE_FED", SLURM_PENDING},
    {"SPECIAL_EXIT", SLURM_PENDING}, {"RESV_DEL_HOLD", SLURM_PENDING},
    {"RUNNING", SLURM_RUNNING},      {"CONFIGURING", SLURM_RUNNING},
    {"COMPLETING", SLURM_RUNNING},   {"RESIZING", SLURM_RUNNING},
    {"SIGNALING", SLURM_RUNNING},    {"STAGE_OUT", SLURM_RUNNING},
    {"STOPPED", SLURM_SUSPENDED},    {"SUSPENDED", SLURM_SUSPENDED},
    {"COMPLETED", SLURM_ENDED},      {"CANCELLED", SLURM_ENDED},
    {"FAILED", SLURM_ENDED},         {"TIMEOUT", SLURM_ENDED},
    {"NODE_FAIL", SLURM_ENDED},      {"PREEMPTED", SLURM_ENDED},
    {"BOOT_FAIL", SLURM_ENDED},      {"DEADLINE", SLURM_ENDED},
    {"OUT_OF_MEMORY", SLURM_ENDED},  {"REVOKED", SLURM_ENDED},
};

static enum slurm_state state_of_word (const char *word)
{
    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        if (strcmp (states[i].word, word) == 0)
            return states[i].state;
    return SLURM_NONE;
}

/* v0.0.40 and later give a state and its flags, in no order that means something; before, the flag stood in place of
 * the state, and still does here. What is being completed shows its end, or that it waits again, later. */
static const char *state_of_list (const json_t *list)
{
    static const char *const flags[] = {"COMPLETING",    "REVOKED",     "REQUEUED",
                                        "REQUEUE_HOLD",  "REQUEUE_FED", "SPECIAL_EXIT",
                                        "RESV_DEL_HOLD", "STOPPED"};
    const char *word, *main = "";
    json_t *one;
    size_t i;
    for (size_t f = 0; f < sizeof flags / sizeof *flags; f++)
        json_array_foreach (list, i, one)
        {
            word = json_string_value (one);
            if (word && strcmp (word, flags[f]) == 0)
                return flags[f];
        }
    json_array_foreach (list, i, one)
    {
        word = json_string_value (one);
        if (word && (!*main || state_of_word (main) == SLURM_NONE))
            main = word;
    }
    return main;
}

int slurm_parse_state (const json_t *object, const char *what, const char *field, char word[24],
                       enum slurm_state *out, struct err *err)
{
    const json_t *list = json_object_get (object, field);
    const char *found;
    if (json_is_array (list))
        found = state_of_list (list);
    else if (slurm_text (object, what, field, true, &found, err) != 0)
        return err->code;
    *out = state_of_word (found);
    text_printf (word, 24, "%.23s", found);
    return *out != SLURM_NONE
               ? 0
               : err_set (err, ERR_INVALID,
                          "slurmrestd: %s is in the state \"%.40s\", which is not known", what,
                          found);
}

/* As wait(2) gives it: a number, or from v0.0.40 on {"return_code": 3, "signal": {"id": 15}}. */
static int exit_status_of (const json_t *object, const char *what, int32_t *out, struct err *err)
{
    json_t *code = json_object_get (object, "exit_code");
    int64_t value = 0, signo = 0;
    int rc;
    if (json_is_object (code)) {
        json_t *signal = json_object_get (code, "signal");
        rc = slurm_int (code, what, "return_code", true, 0, &value, err);
        if (rc == 0)
            rc = slurm_int (signal, what, "id", false, 0, &signo, err);
        value = signo > 0 && signo < 127 ? signo : (value & 0xff) << 8;
    } else {
        rc = slurm_int (object, what, "exit_code", false, 0, &value, err);
    }
    *out = (int32_t)value;
    return rc;
}

void slurm_end_of (const char *word, int32_t exit_status, struct rm_status *out)
{
    out->ended = true;
    out->exit_code =
        WIFSIGNALED (exit_status) ? 128 + WTERMSIG (exit_status) : WEXITSTATUS (exit_status);
    if (strcmp (word, "TIMEOUT") == 0 || strcmp (word, "DEADLINE") == 0) {
        out->end = RM_END_TIMEOUT;
    } else if (strcmp (word, "CANCELLED") == 0 || strcmp (word, "PREEMPTED") == 0 ||
               strcmp (word, "REVOKED") == 0) {
        out->end = RM_END_CANCELLED;
    } else if (strcmp (word, "NODE_FAIL") == 0 || strcmp (word, "BOOT_FAIL") == 0) {
        out->end = RM_END_NODE_FAILURE;
        text_printf (out->text, sizeof out->text, "Slurm says %s", word);
    } else if (strcmp (word, "OUT_OF_MEMORY") == 0) {
        out->end = RM_END_SIGNALLED;
        out->exit_code = 128 + 9;
    } else {
        out->end = WIFSIGNALED (exit_status) ? RM_END_SIGNALLED : RM_END_EXITED;
    }
}

/* As v0.0.41 and later have it: processors of each node. */
static int placement_of_list (const json_t *list, const char *what, struct strbuf *b,
                              struct err *err)
{
    json_t *node;
    size_t i;
    json_array_foreach (list, i, node)
    {
        const char *name;
        int64_t count;
        if (slurm_text (node, what, "name", true, &name, err) != 0 ||
            slurm_int (json_object_get (node, "cpus"), what, "count", true, 0, &count, err) != 0)
            return err->code;
        strbuf_printf (b, "%s%s:%lld", b->len ? "," : "", name, (long long)count);
    }
    return 0;
}

/* Processors of each node that the job has: "n1:2,n2:1". To v0.0.40 cores are told, which are scaled. */
static int placement_of (const json_t *object, const char *what, int64_t procs, struct arena *arena,
                         const char **out, struct err *err)
{
    struct strbuf b = STRBUF_INIT;
    json_t *resources = json_object_get (object, "job_resources"), *node;
    json_t *list = json_object_get (resources, "allocated_nodes");
    json_t *nodes = json_object_get (resources, "nodes");
    int64_t all = 0;
    size_t i;
    *out = "";
    if (json_is_object (nodes) &&
        placement_of_list (json_object_get (nodes, "allocation"), what, &b, err) != 0) {
        strbuf_free (&b);
        return ERR_INVALID;
    }
    for (int round = 0; round < 2; round++)
        json_array_foreach (list, i, node)
        {
            const char *name, *key, *core_key;
            json_t *socket, *core;
            int64_t cores = 0;
            if (slurm_text (node, what, "nodename", true, &name, err) != 0) {
                strbuf_free (&b);
                return ERR_INVALID;
            }
            json_object_foreach (json_object_get (node, "sockets"), key, socket)
                json_object_foreach (json_object_get (socket, "cores"), core_key, core) cores +=
                core != NULL && !json_is_null (core);
            if (round == 0)
                all += cores;
            else
                strbuf_printf (
                    &b, "%s%s:%lld", b.len ? "," : "", name,
                    (long long)(all > 0 && procs >= all ? cores * (procs / all) : cores));
        }
    *out = strbuf_move (&b, arena);
    return 0;
}

/* "qos:high" among the words of a comment: the QoS of a Slurm without accounting, which has none.
 */
static const char *comment_qos (const char *comment, struct arena *arena)
{
    const char *at = comment;
    while ((at = strcasestr (at, "qos:"))) {
        if (at == comment || isspace ((unsigned char)at[-1]) || at[-1] == ',') {
            size_t n = strspn (at + 4, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                       "0123456789_.-");
            char *qos = arena_alloc (arena, n + 1);
            memcpy (qos, at + 4, n);
            qos[n] = 0;
            return qos;
        }
        at += 4;
    }
    return "";
}

struct getter { /* so that a row of fields reads as a row */
    const json_t *object;
    const char *what;
    struct arena *arena;
    struct err *err;
    int rc;
};

static int64_t number (struct getter *g, const char *field, bool required, int64_t otherwise)
{
    int64_t v = otherwise;
    if (g->rc == 0)
        g->rc = slurm_int (g->object, g->what, field, required, otherwise, &v, g->err);
    return v;
}

/* Not less than 0, and not so much that reckoning with it could overflow. */
static int64_t amount (struct getter *g, const char *field, bool required)
{
    static const int64_t most = INT64_C (1) << 40;
    int64_t v = number (g, field, required, 0);
    if (g->rc == 0 && (v < 0 || v > most))
        g->rc = err_set (g->err, ERR_INVALID,
                         "slurmrestd: field \"%s\" of %s is %lld, wanted 0 to %lld", field, g->what,
                         (long long)v, (long long)most);
    return g->rc == 0 ? v : 0;
}

static time_us moment (struct getter *g, const char *field, bool required)
{
    return amount (g, field, required) * US_PER_S;
}

static const char *text (struct getter *g, const char *field, bool required)
{
    const char *v = "";
    if (g->rc == 0)
        g->rc = slurm_text (g->object, g->what, field, required, &v, g->err);
    return g->rc == 0 ? arena_strdup (g->arena, v) : "";
}

static const char *words (struct getter *g, const char *field)
{
    struct strbuf b = STRBUF_INIT;
    if (g->rc == 0)
        g->rc = slurm_words (g->object, g->what, field, &b, g->err);
    return strbuf_move (&b, g->arena);
}

/* How many; 0: not said. Slurm's own words for that are the greatest of 16 and of 32 bits, and the one before. */
static uint32_t how_many (struct getter *g, const char *field, bool required, int64_t otherwise)
{
    int64_t v = number (g, field, required, otherwise);
    if (g->rc != 0 || v < 0 || v == UINT16_MAX || v == UINT16_MAX - 1 || v == UINT32_MAX ||
        v == UINT32_MAX - 1)
        return 0;
    if (v > INT32_MAX)
        g->rc = err_set (g->err, ERR_INVALID,
                         "slurmrestd: field \"%s\" of %s is %lld, wanted at most %d", field,
                         g->what, (long long)v, INT32_MAX);
    return g->rc == 0 ? (uint32_t)v : 0;
}

static void ids_fill (struct getter *g, struct slurm_seen *out)
{
    int64_t job = amount (g, "job_id", true);
    int64_t array = amount (g, "array_job_id", false);
    int64_t task = number (g, "array_task_id", false, -1);
    out->number = job;
    out->array_id = array;
    out->tasks = text (g, "array_task_string", false);
    if (array > 0 && task >= 0)
        out->native.rm_id = arena_printf (g->arena, "%lld_%lld", (long long)array, (long long)task);
    else
        out->native.rm_id = arena_printf (g->arena, "%lld", (long long)job);
    out->native.array_limit = array > 0 ? how_many (g, "array_max_tasks", false, 0) : 0;
    out->native.array_id = array > 0 ? arena_printf (g->arena, "%lld", (long long)array) : "";
}

/* --- generic resources -------------------------------------------------------------------- */

struct gres_sum {
    char name[SLURM_WORD_MAX];
    int64_t count;
};

/* "2", "4K(S:0-1)": how many. */
static int64_t gres_count (const char *text)
{
    static const char suffixes[] = "KMGT";
    enum { COUNT_MAX = 1 << 24 };
    char *end;
    int64_t v = strtoll (text, &end, 10);
    const char *suffix = *end ? strchr (suffixes, toupper ((unsigned char)*end)) : NULL;
    for (int i = suffix ? (int)(suffix - suffixes) : -1; i >= 0 && v < COUNT_MAX; i--)
        v *= 1024;
    return v < 0 ? 0 : v > COUNT_MAX ? COUNT_MAX : v;
}

static void gres_add (struct gres_sum *sum, uint32_t *count, uint32_t cap, const char *name,
                      int64_t more)
{
    uint32_t i = 0;
    while (i < *count && strcmp (sum[i].name, name) != 0)
        i++;
    if (i == cap)
        return;
    if (i == *count) {
        snprintf (sum[i].name, sizeof sum[i].name, "%s", name);
        sum[(*count)++].count = 0;
    }
    sum[i].count += more;
}

/* One of the list: "gpu", "gpu:2", "gpu:tesla", "gpu:tesla:2(S:0-1)". */
static void gres_take (char *word, struct gres_sum *sum, uint32_t *used, uint32_t cap)
{
    char full[2 * SLURM_WORD_MAX], *part[3] = {NULL}, *save = NULL;
    uint32_t parts = 0;
    int64_t count = 1;
    if (strncmp (word, "gres", 4) == 0 && (word[4] == ':' || word[4] == '/'))
        word += 5;
    word[strcspn (word, "(")] = 0;
    for (char *p = strtok_r (word, ":=", &save); p && parts < 3; p = strtok_r (NULL, ":=", &save))
        part[parts++] = p;
    if (parts > 1 && isdigit ((unsigned char)*part[parts - 1]))
        count = gres_count (part[--parts]);
    if (parts == 0)
        return;
    gres_add (sum, used, cap, part[0], count);
    if (parts > 1) {
        text_printf (full, sizeof full, "%.60s.%.60s", part[0], part[1]);
        gres_add (sum, used, cap, full, count);
    }
}

void slurm_gres (const char *text, struct strbuf *out)
{
    enum { KINDS_MAX = 32 };
    struct gres_sum sum[KINDS_MAX];
    uint32_t used = 0;
    char *copy = strdup (text), *at = copy;
    assert (copy);
    for (char *word = at; *word; word = at) { /* commas within (S:0,1) part nothing */
        int depth = 0;
        while (*at && (*at != ',' || depth > 0)) {
            depth += *at == '(' ? 1 : *at == ')' ? -1 : 0;
            at++;
        }
        if (*at)
            *at++ = 0;
        gres_take (word, sum, &used, KINDS_MAX);
    }
    free (copy);
    for (uint32_t i = 0; i < used; i++)
        strbuf_printf (out, "%s%s:%lld", i ? "," : "", sum[i].name, (long long)sum[i].count);
}

static const char *gres (struct getter *g, const char *field)
{
    struct strbuf b = STRBUF_INIT;
    slurm_gres (text (g, field, false), &b);
    return strbuf_move (&b, g->arena);
}

/* --- jobs, continued ---------------------------------------------------------------------- */

static void needs_fill (struct getter *g, struct rm_native *n)
{
    n->nodes_min = how_many (g, "node_count", true, 0);
    n->nodes_max = how_many (g, "max_nodes", false, 0);
    n->tasks = how_many (g, "tasks", false, 0);
    n->tasks_per_node = how_many (g, "tasks_per_node", false, 0);
    n->procs = how_many (g, "cpus", true, 1);
    n->procs_per_node_min = how_many (g, "minimum_cpus_per_node", false, 0);
    n->memory_per_node_mb = amount (g, "memory_per_node", false);
    n->memory_per_proc_mb = amount (g, "memory_per_cpu", false);
    n->exclusive = slurm_has_word (g->object, "shared", "none");
    n->features = text (g, "features", false);
    n->gres_per_node = gres (g, "tres_per_node");
    n->gres_per_task = gres (g, "tres_per_task");
    n->gres_per_job = gres (g, "tres_per_job");
    n->licences = text (g, "licenses", false);
    n->hosts = text (g, "required_nodes", false);
    n->hosts_excluded = text (g, "excluded_nodes", false);
    int64_t minutes = amount (g, "time_limit", false);
    n->walltime = minutes < UINT32_MAX - 1 ? minutes * 60 * US_PER_S : 0; /* as null: none */
}

static void waiting_fill (struct getter *g, struct slurm_seen *out, const char *our_partition)
{
    struct rm_native *n = &out->native;
    out->reason = text (g, "state_reason", false);
    out->priority = number (g, "priority", false, 1);
    n->dependency = text (g, "dependency", false);
    n->begin = strcmp (out->reason, "BeginTime") == 0 ? moment (g, "eligible_time", false) : 0;
    bool held = out->state == SLURM_PENDING && out->priority == 0;
    n->held_user = held && strcmp (out->reason, "JobHeldUser") == 0;
    /* In our partition a held job is one that was requeued: our own guard. */
    n->held_admin = held && !n->held_user && strcmp (out->partition, our_partition) != 0;
}

int slurm_parse_job (const json_t *object, const char *our_partition, struct arena *arena,
                     struct slurm_seen *out, struct err *err)
{
    char what[48];
    struct getter g = {.object = object, .what = "a job", .arena = arena, .err = err};
    struct rm_native *n = &out->native;
    *out = (struct slurm_seen){0};
    ids_fill (&g, out);
    snprintf (what, sizeof what, "job %s", g.rc == 0 ? n->rm_id : "?");
    g.what = what;
    if (g.rc == 0)
        g.rc = slurm_parse_state (object, what, "job_state", out->word, &out->state, err);
    n->state = out->state == SLURM_PENDING ? RM_NATIVE_PENDING : RM_NATIVE_RUNNING;
    out->partition = text (&g, "partition", true);
    n->submit = moment (&g, "submit_time", true);
    n->name = text (&g, "name", false);
    n->user = text (&g, "user_name", true);
    n->group = text (&g, "group_name", false);
    n->account = text (&g, "account", false);
    n->qos = text (&g, "qos", false);
    n->class_name = out->partition;
    out->comment = text (&g, "comment", false);
    needs_fill (&g, n);
    waiting_fill (&g, out, our_partition);
    out->restarts = how_many (&g, "restart_cnt", false, 0);
    if (g.rc == 0)
        g.rc = exit_status_of (object, what, &out->exit_status, err);
    const char *nodes = text (&g, "nodes", false);
    n->placement = "";
    if (out->state != SLURM_PENDING && *nodes) {
        n->start = moment (&g, "start_time", true);
        if (g.rc == 0)
            g.rc = placement_of (object, what, n->procs, arena, &n->placement, err);
    }
    if (out->state == SLURM_ENDED)
        out->end = moment (&g, "end_time", true);
    if (g.rc != 0)
        return g.rc;
    if (!*n->qos)
        n->qos = comment_qos (out->comment, arena);
    return 0;
}

uint32_t slurm_tasks_each (const char *list, uint32_t cap, void (*fn) (void *arg, uint32_t task),
                           void *arg)
{
    uint32_t count = 0;
    const char *p = list;
    while (*p && *p != '%') {
        char *end;
        unsigned long from = strtoul (p, &end, 10), to = from, step = 1;
        if (end == p)
            break;
        if (*end == '-')
            to = strtoul (end + 1, &end, 10);
        if (*end == ':')
            step = strtoul (end + 1, &end, 10);
        for (unsigned long t = from; t <= to && step > 0 && count < cap; t += step, count++)
            fn (arg, (uint32_t)t);
        p = *end == ',' ? end + 1 : end;
        if (*end && *end != ',' && *end != '%')
            break;
    }
    return count;
}

/* --- nodes -------------------------------------------------------------------------------- */

void slurm_node_free (struct slurm_node *node)
{
    if (node)
        free (node->text);
    free (node);
}

bool slurm_class_ours (const char *only, const char *name)
{
    size_t len = strlen (name);
    for (const char *p = only; p && (p = strstr (p, name)); p += len)
        if (len > 0 && p[-1] == ',' && p[len] == ',') /* it begins with a comma */
            return true;
    return !only;
}

/* Partitions but ours, as classes: "batch,debug". */
static void classes_of (const json_t *object, const char *our_partition, const char *only,
                        struct strbuf *out)
{
    json_t *one;
    size_t i, before = out->len;
    json_array_foreach (json_object_get (object, "partitions"), i, one)
    {
        const char *name = json_string_value (one);
        if (name && strcmp (name, our_partition) != 0 && slurm_class_ours (only, name))
            strbuf_printf (out, "%s%s", out->len > before ? "," : "", name);
    }
}

/* *word_out: the state or flag that says so. */
static enum rm_node_state node_state_of (const json_t *object, const char *state,
                                         const char **word_out)
{
    static const char *const down[] = {"down", "error", "unknown", "future", "invalid"};
    static const struct {
        const char *flag;
        enum rm_node_state is;
    } flags[] = {{"NOT_RESPONDING", RM_NODE_DOWN},
                 {"POWER_DOWN", RM_NODE_DOWN},
                 {"POWERED_DOWN", RM_NODE_DOWN},
                 {"POWERING_DOWN", RM_NODE_DOWN},
                 {"INVALID_REG", RM_NODE_DOWN},
                 {"FAIL", RM_NODE_DOWN},
                 {"DOWN", RM_NODE_DOWN},
                 {"DRAIN", RM_NODE_DRAINED},
                 {"MAINTENANCE", RM_NODE_DRAINED},
                 {"REBOOT_REQUESTED", RM_NODE_DRAINED},
                 {"REBOOT_ISSUED", RM_NODE_DRAINED}};
    *word_out = state;
    for (size_t i = 0; i < sizeof down / sizeof *down; i++)
        if (strcasecmp (state, down[i]) == 0)
            return RM_NODE_DOWN;
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (slurm_has_word (object, "state_flags", flags[i].flag) ||
            slurm_has_word (object, "state", flags[i].flag)) {
            *word_out = flags[i].flag;
            return flags[i].is;
        }
    return RM_NODE_UP;
}

/* Appends a string and its NUL; returns where it begins. */
static size_t put (struct strbuf *b, const char *value)
{
    size_t at = b->len;
    strbuf_append (b, value, strlen (value) + 1);
    return at;
}

struct slurm_node *slurm_parse_node (const json_t *object, const char *our_partition,
                                     const char *only, struct err *err)
{
    char what[96] = "a node";
    struct arena *arena = arena_create (0);
    struct getter g = {.object = object, .what = what, .arena = arena, .err = err};
    struct strbuf b = STRBUF_INIT, classes = STRBUF_INIT;
    struct slurm_node *node = calloc (1, sizeof *node);
    assert (node);
    const char *name = text (&g, "name", true);
    text_printf (what, sizeof what, "node %.60s", name);
    const char *state = text (&g, "state", true);
    const char *features = words (&g, "active_features");
    if (!*features)
        features = words (&g, "features");
    const char *reason = text (&g, "reason", false);
    const char *resources = gres (&g, "gres");
    const char *address = text (&g, "address", false);
    struct rm_node *n = &node->node;
    n->procs = how_many (&g, "cpus", true, 1);
    n->memory_mb = amount (&g, "real_memory", true);
    n->disk_mb = amount (&g, "temporary_disk", false);
    int64_t threads = number (&g, "threads", false, 1);
    node->threads = threads > 0 && threads < 1024 ? (uint32_t)threads : 1;
    n->weight = number (&g, "weight", false, 1);
    int64_t load = number (&g, "cpu_load", false, -1);
    n->load_milli = load >= 0 && load < INT32_MAX / 10 ? (int32_t)load * 10 : -1;
    int64_t free_mb = number (&g, "free_memory", false, -1);
    if (free_mb < 0)
        free_mb = number (&g, "free_mem", false, -1); /* from v0.0.40 on */
    n->memory_used_mb = free_mb >= 0 && free_mb <= n->memory_mb ? n->memory_mb - free_mb : -1;
    n->state = g.rc == 0 ? node_state_of (object, state, &state) : RM_NODE_DOWN;
    if (n->state != RM_NODE_UP && !*reason)
        reason = state; /* it was found so, and nobody has said more */
    classes_of (object, our_partition, only, &classes);
    size_t at[6] = {put (&b, name),
                    put (&b, reason),
                    put (&b, features),
                    put (&b, resources),
                    put (&b, strbuf_text (&classes)),
                    put (&b, address)};
    node->text = strbuf_steal (&b);
    const char **const field[6] = {&n->name, &n->reason,  &n->features,
                                   &n->gres, &n->classes, &n->address};
    for (size_t i = 0; i < 6; i++)
        *field[i] = node->text + at[i];
    strbuf_free (&classes);
    arena_destroy (arena);
    if (g.rc == 0)
        return node;
    slurm_node_free (node);
    return NULL;
}
