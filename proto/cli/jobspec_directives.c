/* Directives in a script: our own, Slurm's, PBS's and Moab's. */
#include <stdlib.h>
#include <string.h>

#include "proto/cli/jobspec_i.h"

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
    {NULL, "--procs-max", "procs-max"},
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
    {NULL, "--procs-max", "procs-max"},
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
    int rc = jobspec_file_read (spec, path, JOBSPEC_SCRIPT_MAX, &script, &len, err);
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
