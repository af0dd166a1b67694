/* mauitrace: Maui's workload trace (44 fields) and resource trace (21 fields).
 *
 * What a job asks of its nodes (features, operating system, architecture, network, least memory and
 * disk, class) becomes one feature number each, and a node of the resource trace has the numbers of
 * what it satisfies. Called by workload.c and by who wants the machine; what the simulator writes in this format is
 * local/sim/mauitrace_write.c. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "local/trace/workload_i.h"
#include "proto/base/mem.h"
#include "proto/base/strbuf.h"

enum { RESOURCE_FIELDS = 21, NAME_MAX_BYTES = 256 };

enum trace_field {
    T_NAME,
    T_NODES,
    T_TASKS,
    T_USER,
    T_GROUP,
    T_WCLIMIT,
    T_STATE,
    T_CLASS,
    T_SUBMIT,
    T_DISPATCH,
    T_START,
    T_COMPLETE,
    T_NET,
    T_ARCH,
    T_OPSYS,
    T_MEM_CMP,
    T_MEM,
    T_DISK_CMP,
    T_DISK,
    T_FEATURES,
    T_SYSQUEUE,
    T_TASKS_ALLOC,
    T_TPN,
    T_QOS,
    T_FLAGS,
    T_ACCOUNT,
    T_COMMAND,
    T_COMMENT,
    T_BYPASS,
    T_PSUTIL,
    T_PARTITION,
    T_DPROCS,
    T_DMEM,
    T_DDISK,
    T_DSWAP,
    T_START_DATE,
    T_END_DATE,
    T_HOSTS,
    T_RM,
    T_HOST_MASK,
    T_RESERVATION,
    T_SET,
    T_APP,
    T_RES1,
};
static_assert (T_RES1 + 1 == MAUITRACE_FIELDS, "44 fields");

static bool is_none (const char *text)
{
    return !*text || strcmp (text, "[NONE]") == 0 || strcmp (text, "-") == 0;
}

static uint32_t cred_of (struct workload *w, enum cred_kind kind, const char *name)
{
    return is_none (name) ? CRED_NONE : strtab_intern (w->names->tab[kind], name);
}

/* Calls use for each of "[a][b:3]": the name, and the number after ':' (-1 without). */
static int brackets (char *text, int (*use) (void *self, const char *name, int64_t number),
                     void *self)
{
    for (char *at = text; (at = strchr (at, '[')) != NULL;) {
        char *end = strchr (++at, ']');
        if (!end)
            return 0;
        *end = 0;
        char *colon = strchr (at, ':');
        int64_t number = -1;
        if (colon) {
            *colon = 0;
            number = strtoll (colon + 1, NULL, 10);
        }
        if (*at && strcmp (at, "NONE") != 0) {
            int rc = use (self, at, number);
            if (rc)
                return rc;
        }
        at = end + 1;
    }
    return 0;
}

struct job_line {
    struct workload_reader *reader;
    struct workload_job *job;
    struct err *err;
};

static int constrain (struct job_line *l, const char *prefix, const char *text)
{
    char name[NAME_MAX_BYTES];
    uint32_t number;
    snprintf (name, sizeof name, "%s%s", prefix, text);
    int rc = workload_constraint (l->reader->workload, name, &number, l->err);
    if (rc)
        return line_error (l->reader, l->err, "asks for more kinds of nodes than %d", FEATURES_MAX);
    l->job->req.features.word[number / 64] |= UINT64_C (1) << (number % 64);
    return 0;
}

static int use_feature (void *self, const char *name, int64_t number)
{
    (void)number;
    return constrain (self, "", name);
}

static int use_class (void *self, const char *name, int64_t number)
{
    struct job_line *l = self;
    (void)number;
    l->job->cred[CRED_CLASS] = cred_of (l->reader->workload, CRED_CLASS, name);
    return constrain (l, "class:", name);
}

/* ">=" "512M": least (or most, or exact) memory or disk of a node. */
static int constrain_amount (struct job_line *l, const char *what, const char *cmp,
                             const char *amount)
{
    char text[NAME_MAX_BYTES];
    int64_t mb;
    if (is_none (amount) || strcmp (cmp, "NC") == 0)
        return 0;
    if (memory_parse (amount, &mb, NULL))
        return line_error (l->reader, l->err, "'%.40s' is no amount of %s", amount, what);
    if (mb == 0 && (strcmp (cmp, ">=") == 0 || strcmp (cmp, ">") == 0))
        return 0;
    snprintf (text, sizeof text, "%s%.2s%lld", what, cmp, (long long)mb);
    return constrain (l, "", text);
}

static int per_task (struct job_line *l, int kind, const char *text)
{
    int64_t mb;
    if (is_none (text))
        return 0;
    if (memory_parse (text, &mb, NULL) || mb > INT32_MAX)
        return line_error (l->reader, l->err, "'%.40s' is no amount per task", text);
    l->job->req.task.v[kind] = (int32_t)mb;
    return 0;
}

static int integer (const struct workload_reader *r, char **field, int at, int64_t *out,
                    struct err *err)
{
    int64_t us;
    if (!seconds_parse (field[at], &us))
        return line_error (r, err, "field %d, '%.40s', is no number", at + 1, field[at]);
    *out = us / US_PER_S;
    return 0;
}

static int job_shape (struct job_line *l, char **field)
{
    struct workload_job *job = l->job;
    struct workload_reader *r = l->reader;
    int64_t nodes = 0, tasks = 0, tpn = 0, dprocs = 0;
    int rc;
    if ((rc = integer (r, field, T_NODES, &nodes, l->err)) ||
        (rc = integer (r, field, T_TASKS, &tasks, l->err)) ||
        (rc = integer (r, field, T_TPN, &tpn, l->err)) ||
        (rc = integer (r, field, T_DPROCS, &dprocs, l->err)))
        return rc;
    if (tasks <= 0)
        tasks = nodes * (tpn > 0 ? tpn : 1);
    if (dprocs <= 0)
        dprocs = 1;
    if (tasks > TASKS_MAX || dprocs > TASKS_MAX || tasks * dprocs > TASKS_MAX || tpn > TASKS_MAX)
        return line_error (r, l->err, "%lld tasks of %lld processors are too many",
                           (long long)tasks, (long long)dprocs);
    job->req.tasks = tasks > 0 ? (uint32_t)tasks : 0;
    job->req.tasks_per_node = tpn > 0 ? (uint32_t)tpn : 0;
    job->req.task.v[RES_PROCS] = (int32_t)dprocs;
    job->procs = job->req.tasks * (uint32_t)dprocs;
    if ((rc = per_task (l, RES_MEM_MB, field[T_DMEM])) ||
        (rc = per_task (l, RES_DISK_MB, field[T_DDISK])) ||
        (rc = per_task (l, RES_SWAP_MB, field[T_DSWAP])) ||
        (rc = brackets (field[T_FEATURES], use_feature, l)) ||
        (rc = brackets (field[T_CLASS], use_class, l)) ||
        (rc = constrain_amount (l, "mem", field[T_MEM_CMP], field[T_MEM])) ||
        (rc = constrain_amount (l, "disk", field[T_DISK_CMP], field[T_DISK])))
        return rc;
    if (!is_none (field[T_OPSYS]) && (rc = constrain (l, "opsys:", field[T_OPSYS])))
        return rc;
    if (!is_none (field[T_ARCH]) && (rc = constrain (l, "arch:", field[T_ARCH])))
        return rc;
    if (!is_none (field[T_NET]) && (rc = constrain (l, "net:", field[T_NET])))
        return rc;
    return 0;
}

int mauitrace_line (struct workload_reader *r, char *line, struct err *err)
{
    char *field[MAUITRACE_FIELDS];
    if (!workload_place (r))
        return 0;
    uint32_t count = fields_split (line, field, MAUITRACE_FIELDS);
    if (count != MAUITRACE_FIELDS)
        return line_error (r, err, "%u fields, a job of Maui's workload trace has %d", count,
                           MAUITRACE_FIELDS);
    int64_t submit = 0, start = 0, complete = 0, start_date = 0, end_date = 0;
    duration_us limit = 0;
    int rc;
    if ((rc = integer (r, field, T_SUBMIT, &submit, err)) ||
        (rc = integer (r, field, T_START, &start, err)) ||
        (rc = integer (r, field, T_COMPLETE, &complete, err)) ||
        (rc = integer (r, field, T_START_DATE, &start_date, err)) ||
        (rc = integer (r, field, T_END_DATE, &end_date, err)))
        return rc;
    if (duration_parse (field[T_WCLIMIT], &limit, NULL) || limit < 0)
        return line_error (r, err, "wallclock limit '%.40s' is no duration", field[T_WCLIMIT]);

    struct workload *w = r->workload;
    struct workload_job job = {.number = r->place};
    struct job_line l = {r, &job, err};
    for (int k = 0; k < CRED_KINDS; k++)
        job.cred[k] = CRED_NONE;
    if ((rc = job_shape (&l, field)))
        return rc;
    job.name = arena_strdup (w->arena, field[T_NAME]);
    job.cred[CRED_USER] = cred_of (w, CRED_USER, field[T_USER]);
    job.cred[CRED_GROUP] = cred_of (w, CRED_GROUP, field[T_GROUP]);
    job.cred[CRED_ACCOUNT] = cred_of (w, CRED_ACCOUNT, field[T_ACCOUNT]);
    field[T_QOS][strcspn (field[T_QOS], ":")] = 0; /* requested:delivered */
    job.cred[CRED_QOS] = cred_of (w, CRED_QOS, field[T_QOS]);
    job.submit = (start_date > submit ? start_date : submit) * US_PER_S;
    job.run = (complete - start) * US_PER_S;
    job.began = start * US_PER_S;
    job.deadline = end_date > 0 && end_date < MAUITRACE_NO_END_S ? end_date * US_PER_S : 0;
    job.limit = limit > 0 ? limit : 1;
    if (job.run > limit)
        job.run = limit;

    if (start <= 0 || complete < start || strcmp (field[T_STATE], "NotRun") == 0)
        workload_skip (r, SKIP_NO_RUN_TIME);
    else if (job.procs == 0)
        workload_skip (r, SKIP_NO_PROCESSORS);
    else if (submit <= 0)
        workload_skip (r, SKIP_NO_SUBMIT_TIME);
    else if (!is_none (field[T_HOST_MASK]) || !is_none (field[T_RESERVATION]))
        workload_skip (r, SKIP_PLACE);
    else {
        char *end;
        double used_s = strtod (field[T_PSUTIL], &end); /* processor-seconds */
        /* 0.00 is what a resource manager leaves that does not measure. */
        if (end != field[T_PSUTIL] && *end == 0 && used_s > 0 && complete > start)
            workload_used (&job, used_s / (double)(complete - start));
        workload_add (r, &job);
    }
    return 0;
}

/* --- resource trace ---------------------------------------------------------------------- */

enum resource_field {
    R_KEY,
    R_STATE,
    R_TIME,
    R_NAME,
    R_RM,
    R_SWAP,
    R_MEM,
    R_DISK,
    R_PROCS,
    R_OPSYS = 12,
    R_ARCH,
    R_FEATURES,
    R_CLASSES,
    R_NETS,
    R_SPEED,
};

struct node_line {
    const struct workload *workload;
    struct strbuf own; /* features as they stand, "std,bigmem" */
    struct machine *machine;
    struct node_spec *spec;
    const char *prefix;
    bool any_class;
    struct err *err;
};

static void has (struct node_line *l, const char *prefix, const char *text)
{
    char name[NAME_MAX_BYTES];
    snprintf (name, sizeof name, "%s%s", prefix, text);
    for (uint32_t i = 0; i < l->workload->constraint_count; i++) {
        if (strcmp (l->workload->constraint[i], name) == 0)
            l->spec->features.word[i / 64] |= UINT64_C (1) << (i % 64);
    }
}

static int has_named (void *self, const char *name, int64_t number)
{
    struct node_line *l = self;
    (void)number;
    if (!*l->prefix)
        strbuf_printf (&l->own, "%s%s", l->own.len ? "," : "", name);
    has (l, l->prefix, name);
    return 0;
}

static int has_class (void *self, const char *name, int64_t initiators)
{
    struct node_line *l = self;
    struct machine *m = l->machine;
    l->any_class = true;
    has (l, "class:", name);
    if (initiators < 0)
        return 0;
    uint32_t id = strtab_intern (l->workload->names->tab[CRED_CLASS], name);
    uint32_t c = 0;
    while (c < m->gres_kinds && m->gres_class[c] != id)
        c++;
    if (c == m->gres_kinds) {
        if (m->gres_kinds == RES_MAX - RES_GRES0)
            return err_set (l->err, ERR_LIMIT, "initiators of more than %d classes",
                            RES_MAX - RES_GRES0);
        m->gres_class[m->gres_kinds++] = id;
    }
    l->spec->configured.v[RES_GRES0 + c] = initiators > INT32_MAX ? INT32_MAX : (int32_t)initiators;
    return 0;
}

/* "mem>=512" and its kin. */
static void has_amounts (struct node_line *l)
{
    for (uint32_t i = 0; i < l->workload->constraint_count; i++) {
        const char *text = l->workload->constraint[i];
        bool mem = strncmp (text, "mem", 3) == 0;
        size_t at = mem ? 3 : strncmp (text, "disk", 4) == 0 ? 4 : 0;
        if (!at || !strchr ("<>=", text[at]))
            continue;
        int64_t have = l->spec->configured.v[mem ? RES_MEM_MB : RES_DISK_MB];
        char op = text[at];
        bool or_equal = text[at + 1] == '=';
        int64_t want = strtoll (text + at + 1 + or_equal, NULL, 10);
        if ((op == '>' && have > want) || (op == '<' && have < want) ||
            ((or_equal || op == '=') && have == want))
            l->spec->features.word[i / 64] |= UINT64_C (1) << (i % 64);
    }
}

static int node_amount (struct linereader *lines, const char *text, int32_t *out, struct err *err)
{
    int64_t mb;
    if (memory_parse (text, &mb, NULL) || mb > INT32_MAX)
        return err_set (err, ERR_INVALID, "%s line %llu: '%.40s' is no amount in MB",
                        linereader_path (lines), (unsigned long long)linereader_number (lines),
                        text);
    *out = (int32_t)mb;
    return 0;
}

static int node_fields (struct node_line *l, struct linereader *lines, char **field)
{
    struct node_spec *spec = l->spec;
    uint64_t procs;
    int rc;
    if ((rc = node_amount (lines, field[R_SWAP], &spec->configured.v[RES_SWAP_MB], l->err)) ||
        (rc = node_amount (lines, field[R_MEM], &spec->configured.v[RES_MEM_MB], l->err)) ||
        (rc = node_amount (lines, field[R_DISK], &spec->configured.v[RES_DISK_MB], l->err)))
        return rc;
    if ((rc = uint_parse (field[R_PROCS], "processors", 1, 1 << 20, &procs, l->err)))
        return err_prefix (l->err, "%s line %llu", linereader_path (lines),
                           (unsigned long long)linereader_number (lines));
    int64_t speed_ppm = 1000000;
    if (!is_none (field[R_SPEED]) && ppm_parse (field[R_SPEED], "speed", &speed_ppm, l->err))
        return err_prefix (l->err, "%s line %llu", linereader_path (lines),
                           (unsigned long long)linereader_number (lines));
    spec->configured.v[RES_PROCS] = (int32_t)procs;
    spec->partition = 1;
    spec->speed_ppm = speed_ppm > 0 && speed_ppm < INT32_MAX ? (int32_t)speed_ppm : 1000000;

    l->prefix = "";
    brackets (field[R_FEATURES], has_named, l);
    l->prefix = "net:";
    brackets (field[R_NETS], has_named, l);
    if (!is_none (field[R_OPSYS]))
        has (l, "opsys:", field[R_OPSYS]);
    if (!is_none (field[R_ARCH]))
        has (l, "arch:", field[R_ARCH]);
    has_amounts (l);
    if ((rc = brackets (field[R_CLASSES], has_class, l)))
        return rc;
    return 0;
}

/* A node that names no class takes all. */
static void all_classes (struct node_line *l)
{
    for (uint32_t i = 0; i < l->workload->constraint_count; i++) {
        if (strncmp (l->workload->constraint[i], "class:", 6) == 0)
            l->spec->features.word[i / 64] |= UINT64_C (1) << (i % 64);
    }
}

struct node_growth {
    struct machine_group *group;
    bool *any_class;
    uint32_t cap;
    const char **name, **features; /* of each node */
    uint32_t node_cap;
};

static void node_name (struct machine *m, struct node_growth *g, const char *name,
                       struct node_line *l)
{
    if (m->node_count == g->node_cap) {
        g->node_cap = g->node_cap ? g->node_cap * 2 : 256;
        g->name = mem_resize (g->name, g->node_cap * sizeof *g->name);
        g->features = mem_resize (g->features, g->node_cap * sizeof *g->features);
    }
    g->name[m->node_count] = arena_strdup (m->arena, name);
    g->features[m->node_count] = arena_strdup (m->arena, strbuf_text (&l->own));
}

static int machine_line (struct machine *m, struct node_growth *g, struct strtab *seen,
                         const struct workload *w, struct linereader *lines, char *line,
                         struct err *err)
{
    char *field[RESOURCE_FIELDS];
    uint32_t count = fields_split (line, field, RESOURCE_FIELDS);
    const char *path = linereader_path (lines);
    unsigned long long number = linereader_number (lines);
    if (strcmp (field[R_KEY], "VERSION") == 0)
        return 0;
    if (count != RESOURCE_FIELDS || strcmp (field[R_KEY], "COMPUTENODE") != 0)
        return err_set (err, ERR_INVALID,
                        "%s line %llu: a line of Maui's resource trace is COMPUTENODE and %d more "
                        "fields, this one has %u in all",
                        path, number, RESOURCE_FIELDS - 1, count);
    if (strtab_find (seen, field[R_NAME]) != STRTAB_NONE)
        return err_set (err, ERR_UNSUPPORTED,
                        "%s line %llu: node %.64s changes over time, which is not simulated", path,
                        number, field[R_NAME]);
    strtab_intern (seen, field[R_NAME]);
    if (strcmp (field[R_STATE], "AVAILABLE") != 0)
        return 0;
    if (m->node_count == NODES_MAX)
        return err_set (err, ERR_LIMIT, "%s: more than %d nodes", path, NODES_MAX);
    if (m->group_count == g->cap) {
        g->cap = g->cap ? g->cap * 2 : 256;
        g->group = mem_resize (g->group, g->cap * sizeof g->group[0]);
        g->any_class = mem_resize (g->any_class, g->cap * sizeof g->any_class[0]);
    }
    struct node_spec spec = {.partition = 1};
    struct node_line l = {
        .workload = w, .own = STRBUF_INIT, .machine = m, .spec = &spec, .err = err};
    int rc = node_fields (&l, lines, field);
    if (!rc)
        node_name (m, g, field[R_NAME], &l);
    strbuf_free (&l.own);
    if (rc)
        return rc;
    if (!l.any_class)
        all_classes (&l);
    m->node_count++;
    m->procs += spec.configured.v[RES_PROCS];
    if (m->group_count && g->any_class[m->group_count - 1] == l.any_class &&
        memcmp (&g->group[m->group_count - 1].spec, &spec, sizeof spec) == 0) {
        g->group[m->group_count - 1].copies++;
        return 0;
    }
    g->any_class[m->group_count] = l.any_class;
    g->group[m->group_count++] = (struct machine_group){spec, 1};
    return 0;
}

struct machine *machine_read (const char *path, const struct workload *workload, struct err *err)
{
    struct linereader *lines = linereader_open (path, err);
    if (!lines)
        return NULL;
    struct arena *arena = arena_create (0);
    struct machine *m = arena_new (arena, struct machine);
    struct node_growth growth = {0};
    struct strtab *seen = strtab_create ();
    m->arena = arena;
    m->described = true;
    int rc;
    char *line;
    while ((rc = linereader_next (lines, &line, err)) == 0 && line) {
        while (*line == ' ' || *line == '\t')
            line++;
        if (*line && *line != '#' &&
            (rc = machine_line (m, &growth, seen, workload, lines, line, err)))
            break;
    }
    if (!rc && m->node_count == 0)
        rc = err_set (err, ERR_INVALID, "%s: no node is AVAILABLE", path);
    if (!rc) {
        /* A node without classes has initiators for all its processors. */
        for (uint32_t g = 0; g < m->group_count; g++) {
            for (uint32_t c = 0; c < m->gres_kinds && !growth.any_class[g]; c++)
                growth.group[g].spec.configured.v[RES_GRES0 + c] =
                    growth.group[g].spec.configured.v[RES_PROCS];
        }
        m->group = arena_memdup (arena, growth.group, m->group_count * sizeof m->group[0]);
        m->name = arena_memdup (arena, growth.name, m->node_count * sizeof *m->name);
        m->features = arena_memdup (arena, growth.features, m->node_count * sizeof *m->features);
    }
    free (growth.group);
    free (growth.any_class);
    free (growth.name);
    free (growth.features);
    strtab_destroy (seen);
    linereader_close (lines);
    if (rc) {
        machine_destroy (m);
        return NULL;
    }
    return m;
}
