/* directives_slurm: what each option of sbatch means here. jobspec_directives.c calls it for #SBATCH lines. Names and
 * meanings are those of sbatch(1). */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "proto/cli/directives_i.h"

/* A bare number is minutes, "M:S" has seconds. */
static int take_time (struct directives *d, const char *name, char *value, struct err *err)
{
    (void)name;
    bool bare = *value && strspn (value, "0123456789") == strlen (value);
    return jobspec_set (d->spec, "time",
                        bare ? arena_printf (d->spec->arena, "%s:00", value) : value, err);
}

/* "now+1hour", "noon", "16:00", "2026-11-21T14:30": also of --deadline. */
static const char *moment_of (struct directives *d, const char *value, struct err *err)
{
    static const struct {
        const char *word, *clock;
    } words[] = {{"midnight", "00:00"}, {"noon", "12:00"}, {"teatime", "16:00"}, {"fika", "15:00"}};
    static const struct {
        const char *unit;
        unsigned seconds;
    } units[] = {{"", 1},         {"second", 1},    {"seconds", 1},   {"minute", 60},
                 {"minutes", 60}, {"hour", 3600},   {"hours", 3600},  {"day", 86400},
                 {"days", 86400}, {"week", 604800}, {"weeks", 604800}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcasecmp (value, words[i].word) == 0)
            return words[i].clock;
    if (strncasecmp (value, "now+", 4) != 0)
        return value;
    size_t digits = strspn (value + 4, "0123456789");
    for (size_t i = 0; digits && digits < 8 && i < sizeof units / sizeof *units; i++)
        if (strcasecmp (value + 4 + digits, units[i].unit) == 0)
            return arena_printf (d->spec->arena, "+%lld",
                                 atoll (value + 4) * (long long)units[i].seconds);
    err_set (err, ERR_INVALID, "'%s' is no moment such as now+2hours, 16:00 or 2026-11-21T14:30",
             value);
    return NULL;
}

static int take_moment (struct directives *d, const char *name, char *value, struct err *err)
{
    const char *moment = moment_of (d, value, err);
    const char *key = strcmp (name, "--deadline") == 0 ? "deadline" : "after";
    return moment ? jobspec_set (d->spec, key, moment, err) : err->code;
}

/* "2", "2-2"; between two numbers it would be Slurm that chooses. */
static int take_nodes (struct directives *d, const char *name, char *value, struct err *err)
{
    (void)name;
    char *most = strchr (value, '-');
    if (most)
        *most++ = '\0';
    if (most && strcmp (value, most) != 0)
        return err_set (err, ERR_INVALID,
                        "%s to %s nodes: wanted one number (--trl offers several sizes)", value,
                        *most ? most : "any number of");
    return jobspec_set (d->spec, "nodes", value, err);
}

/* "a&b" and "a,b" are all of them. */
static int take_constraint (struct directives *d, const char *name, char *value, struct err *err)
{
    (void)name;
    if (strpbrk (value, "|[]()*!"))
        return err_set (err, ERR_INVALID,
                        "'%s': only features that are all wanted can be said, as in a&b", value);
    for (char *s = value; *s; s++)
        if (*s == '&')
            *s = ',';
    return jobspec_set (d->spec, "features", value, err);
}

static int take_memory (struct directives *d, const char *name, char *value, struct err *err)
{
    if (strcmp (value, "0") == 0)
        return err_set (err, ERR_INVALID,
                        "all memory of a node is had with --exclusive; else say how much");
    return directives_memory (
        d, name, strcmp (name, "--mem") == 0 ? "mem-per-node" : "mem-per-proc", value, err);
}

static int take_tmp (struct directives *d, const char *name, char *value, struct err *err)
{
    (void)name;
    return jobspec_set (d->spec, "disk-per-node", value, err);
}

/* "gpu:2", "gpu:a100:2", "shard", "none": in our words gpu:2, gpu.a100:2, shard:1. */
static int take_gres (struct directives *d, const char *name, char *value, struct err *err)
{
    const char *list = "";
    for (char *rest = value; rest;) {
        char *piece = strsep (&rest, ","), *part[3] = {NULL};
        const char *whole = arena_strdup (d->spec->arena, piece);
        int n = 0;
        if (strncmp (piece, "gres:", 5) == 0 || strncmp (piece, "gres/", 5) == 0)
            piece += 5;
        if (strcmp (piece, "none") == 0)
            continue;
        while (piece && n < 3)
            part[n++] = strsep (&piece, ":=");
        bool counted = n > 1 && *part[n - 1] >= '0' && *part[n - 1] <= '9';
        const char *count = counted ? part[--n] : "1";
        if (piece || n > 2 || !*part[0] || strpbrk (whole, "()"))
            return err_set (err, ERR_INVALID, "'%s' is not a resource such as gpu:2 or gpu:a100:2",
                            whole);
        list = arena_printf (d->spec->arena, "%s%s%s%s%s:%s", list, *list ? "," : "", part[0],
                             n == 2 ? "." : "", n == 2 ? part[1] : "", count);
    }
    return *list ? directives_gres (d, name, "gres-per-node", list, err) : 0;
}

static int take_gpus (struct directives *d, const char *name, char *value, struct err *err)
{
    return directives_gres (d, name, name[1] == 'G' ? "gpus" : name + 2, value, err);
}

static int take_exclusive (struct directives *d, const char *name, char *value, struct err *err)
{
    (void)name;
    if (value && strcmp (value, "user") != 0)
        return err_set (err, ERR_INVALID, "'%s': wanted nothing, or user", value);
    return jobspec_set (d->spec, "node-access", value ? "SINGLEUSER" : "SINGLEJOB", err);
}

static int take_oversubscribe (struct directives *d, const char *name, char *value, struct err *err)
{
    (void)name, (void)value;
    return jobspec_set (d->spec, "node-access", "SHARED", err);
}

/* "NONE", "ALL", "A,B=1", "ALL,B=1". */
static int take_export (struct directives *d, const char *name, char *value, struct err *err)
{
    (void)name;
    int rc = 0;
    for (char *rest = value; rest && rc == 0;) {
        char *one = strsep (&rest, ",");
        if (strcasecmp (one, "ALL") == 0)
            rc = jobspec_set (d->spec, "env-all", "", err);
        else if (strcasecmp (one, "NONE") != 0 && strcasecmp (one, "NIL") != 0)
            rc = jobspec_set (d->spec, "env", one, err);
    }
    return rc;
}

static int take_no_requeue (struct directives *d, const char *name, char *value, struct err *err)
{
    (void)name, (void)value;
    return jobspec_set (d->spec, "flags", "NORESTART", err);
}

static int take_input (struct directives *d, const char *name, char *value, struct err *err)
{
    (void)d, (void)name;
    return strcmp (value, "/dev/null") == 0
               ? 0
               : err_set (err, ERR_INVALID,
                          "standard input is empty: read %s in the script, and bring it by "
                          "--stage-in",
                          value);
}

static int take_invalid_depend (struct directives *d, const char *name, char *value,
                                struct err *err)
{
    (void)d, (void)name;
    return strcasecmp (value, "yes") == 0
               ? 0
               : err_set (err, ERR_INVALID,
                          "a job whose dependency can never be fulfilled ends with that reason");
}

/* "BEGIN,END,FAIL": what has no like here is told at the end, or is the metascheduler's own affair. */
static int take_mail (struct directives *d, const char *name, char *value, struct err *err)
{
    static const struct {
        const char *word, *ours;
    } words[] = {{"NONE", ""},
                 {"BEGIN", "begin"},
                 {"END", "end"},
                 {"FAIL", "fail"},
                 {"REQUEUE", "requeue"},
                 {"ALL", "all"},
                 {"INVALID_DEPEND", "fail"},
                 {"STAGE_OUT", "end"},
                 {"TIME_LIMIT", "fail"},
                 {"TIME_LIMIT_90", ""},
                 {"TIME_LIMIT_80", ""},
                 {"TIME_LIMIT_50", ""},
                 {"ARRAY_TASKS", ""}};
    enum { WORDS = sizeof words / sizeof *words };
    const char *list = "";
    for (char *rest = value; rest;) {
        const char *one = strsep (&rest, ",");
        size_t i = 0;
        while (i < WORDS && strcasecmp (words[i].word, one) != 0)
            i++;
        if (i == WORDS)
            return err_set (err, ERR_INVALID, "'%s' is no kind of mail", one);
        if (strncmp (words[i].word, "TIME_LIMIT_", 11) == 0)
            directives_note (d, name, "no mail comes before the time limit");
        if (*words[i].ours)
            list = arena_printf (d->spec->arena, "%s%s%s", list, *list ? "," : "", words[i].ours);
    }
    return *list ? directives_mail (d, "mail", list, err) : 0;
}

static int take_mail_user (struct directives *d, const char *name, char *value, struct err *err)
{
    (void)name;
    return directives_mail (d, "mail-to", value, err);
}

#define LAYOUT "how tasks lie on a node's sockets and cores is the site's affair"
#define TUNING "there is no such knob here: it runs without"
#define NO_PART "the job would get other nodes than it asks for: that cannot be said here"

const struct directive directives_slurm[] = {
    {'A', "account", .key = "account"},
    {0, "acctg-freq", .noted = TUNING},
    {'a', "array", .key = "array"},
    {0, "batch", .refused = NO_PART},
    {0, "bb", .refused = "there are no burst buffers here: --stage-in brings files"},
    {0, "bbf", .refused = "there are no burst buffers here: --stage-in brings files"},
    {'b', "begin", .fn = take_moment},
    {'D', "chdir", .fn = directives_directory},
    {0, "cluster-constraint", .refused = NO_PART},
    {'M', "clusters", .key = "site"},
    {0, "comment", .noted = "it is not kept"},
    {'C', "constraint", .fn = take_constraint},
    {0, "container", .refused = "containers cannot be started here: call one in the script"},
    {0, "container-id", .refused = "containers cannot be started here: call one in the script"},
    {0, "contiguous", NO_VALUE, .refused = NO_PART},
    {'S', "core-spec", .refused = NO_PART},
    {0, "cores-per-socket", .refused = NO_PART},
    {0, "cpu-freq", .noted = TUNING},
    {0, "cpus-per-gpu", .refused = "say --cpus-per-task"},
    {'c', "cpus-per-task", .key = "procs-per-task"},
    {0, "deadline", .fn = take_moment},
    {0, "delay-boot", .noted = TUNING},
    {'d', "dependency", .fn = directives_depend},
    {'m', "distribution", .noted = LAYOUT},
    {'e', "error", .key = "error"},
    {'x', "exclude", .key = "exclude"},
    {0, "exclusive", PERHAPS_A_VALUE, .fn = take_exclusive},
    {0, "export", .fn = take_export},
    {0, "export-file", .refused = "name the variables: --export=NAME=VALUE,..."},
    {0, "extra", .noted = "it is not kept"},
    {'B', "extra-node-info", .refused = NO_PART},
    {0, "get-user-env", PERHAPS_A_VALUE,
     .refused = "no login environment is read at the site: set it up in the script"},
    {0, "gid", .refused = "whose job it is, its signature says"},
    {0, "gpu-bind", .noted = LAYOUT},
    {0, "gpu-freq", .noted = TUNING},
    {'G', "gpus", .fn = take_gpus},
    {0, "gpus-per-node", .fn = take_gpus},
    {0, "gpus-per-socket", .refused = "say --gpus-per-node or --gpus-per-task"},
    {0, "gpus-per-task", .fn = take_gpus},
    {0, "gres", .fn = take_gres},
    {0, "gres-flags", .noted = LAYOUT},
    {0, "hint", .noted = LAYOUT},
    {'H', "hold", NO_VALUE, .key = "hold"},
    {0, "ignore-pbs", .takes = NO_VALUE},
    {'i', "input", .fn = take_input},
    {'J', "job-name", .key = "name"},
    {0, "kill-on-invalid-dep", .fn = take_invalid_depend},
    {'L', "licenses", .key = "licence"},
    {0, "mail-type", .fn = take_mail},
    {0, "mail-user", .fn = take_mail_user},
    {0, "mcs-label", .refused = "there are no such labels here"},
    {0, "mem", .fn = take_memory},
    {0, "mem-bind", .noted = LAYOUT},
    {0, "mem-per-cpu", .fn = take_memory},
    {0, "mem-per-gpu", .refused = "say --mem or --mem-per-cpu"},
    {0, "mincpus", .refused = NO_PART},
    {0, "network", .refused = NO_PART},
    {0, "nice", PERHAPS_A_VALUE, .noted = "the site's policy alone says in which order jobs run"},
    {'k', "no-kill", PERHAPS_A_VALUE, .refused = "a job that loses a node ends, or runs again"},
    {0, "no-requeue", NO_VALUE, .fn = take_no_requeue},
    {'F', "nodefile", .refused = "name the nodes: --nodelist=n[1-4]"},
    {'w', "nodelist", .key = "hosts"},
    {'N', "nodes", .fn = take_nodes},
    {'n', "ntasks", .key = "tasks"},
    {0, "ntasks-per-core", .noted = LAYOUT},
    {0, "ntasks-per-gpu", .refused = "say --ntasks and --gpus-per-task"},
    {0, "ntasks-per-node", .key = "tpn"},
    {0, "ntasks-per-socket", .noted = LAYOUT},
    {0, "oom-kill-step", PERHAPS_A_VALUE, .noted = TUNING},
    {0, "open-mode", .noted = "each run of a job has a directory, and files, of its own"},
    {'o', "output", .key = "output"},
    {'O', "overcommit", NO_VALUE, .refused = "each task has a processor of its own"},
    {'s', "oversubscribe", NO_VALUE, .fn = take_oversubscribe},
    {0, "parsable", .takes = NO_VALUE},
    {'p', "partition", .key = "class"},
    {0, "power", .noted = TUNING},
    {0, "prefer", .key = "like"},
    {0, "priority", .noted = "the site's policy alone says in which order jobs run"},
    {0, "profile", .noted = TUNING},
    {0, "propagate", PERHAPS_A_VALUE, .noted = "limits are the site's"},
    {'q', "qos", .key = "qos"},
    {'Q', "quiet", .takes = NO_VALUE},
    {0, "reboot", NO_VALUE, .refused = "nodes are not booted for a job"},
    {0, "requeue", .takes = NO_VALUE},
    {0, "reservation", .key = "reservation"},
    {0, "resv-ports", PERHAPS_A_VALUE, .refused = "a job has the one port of NUI_PORT"},
    {0, "segment", .refused = NO_PART},
    {0, "signal", .key = "signal"},
    {0, "sockets-per-node", .refused = NO_PART},
    {0, "spread-job", NO_VALUE, .noted = TUNING},
    {0, "stepmgr", NO_VALUE, .noted = TUNING},
    {0, "switches", .noted = TUNING},
    {0, "test-only", NO_VALUE, .refused = "nui estimate asks without submitting"},
    {0, "thread-spec", .refused = NO_PART},
    {0, "threads-per-core", .noted = LAYOUT},
    {'t', "time", .fn = take_time},
    {0, "time-min", .noted = "it gets all of its --time"},
    {0, "tmp", .fn = take_tmp},
    {0, "tres-bind", .noted = LAYOUT},
    {0, "tres-per-task", .refused = "say --cpus-per-task and --gpus-per-task"},
    {0, "uid", .refused = "whose job it is, its signature says"},
    {0, "use-min-nodes", NO_VALUE, .noted = TUNING},
    {'v', "verbose", .takes = NO_VALUE},
    {'W', "wait", NO_VALUE, .noted = "the command returns at once: nui submit --wait waits"},
    {.name = "wait-all-nodes"},
    {0, "wckey", .noted = "it is not kept"},
    {0, "wrap", .refused = "there is a script already: nui submit --wrap is for a job without one"},
    {0},
};

/* Slurm writes both streams to the file of --output where --error names none. */
int directives_slurm_finish (struct directives *d, struct err *err)
{
    if (d->error_told || !d->spec->defaults.output)
        return 0;
    return jobspec_set (d->spec, "error", d->spec->defaults.output, err);
}
