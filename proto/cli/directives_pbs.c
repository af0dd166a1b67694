/* directives_pbs: what each option of qsub means here, Torque's, PBS Professional's and Moab's msub's together.
 * jobspec_directives.c calls it for #PBS and #MSUB lines, and msub for its own -l. Where the two families use a letter
 * differently (-J, -t), each spelling is understood. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "proto/cli/directives_i.h"

/* "512mb", "2gb", "100" (bytes), "64kw" (words of eight bytes), as text in MB, rounded up. */
static const char *size_mb (struct directives *d, const char *text, struct err *err)
{
    static const char units[] = "kmgt";
    char *end;
    errno = 0;
    unsigned long long n = strtoull (text, &end, 10);
    const char *unit = *end ? strchr (units, *end | 0x20) : NULL;
    int shift = unit ? 10 * (int)(unit - units + 1) : 0;
    end += unit != NULL;
    int words = (*end | 0x20) == 'w' ? 3 : 0;
    end += (*end | 0x20) == 'b' || words;
    if (end == text || *text == '-' || *end || errno || n >> (60 - shift - words)) {
        err_set (err, ERR_INVALID, "'%s' is not a size such as 512mb or 2gb", text);
        return NULL;
    }
    unsigned long long mb = ((n << (shift + words)) + (1 << 20) - 1) >> 20;
    return arena_printf (d->spec->arena, "%llu", mb ? mb : 1);
}

static int memory_take (struct directives *d, const char *name, const char *key, const char *value,
                        struct err *err)
{
    const char *mb = size_mb (d, value, err);
    return mb ? directives_memory (d, name, key, mb, err) : err->code;
}

static const char *number_text (struct directives *d, uint64_t n)
{
    return arena_printf (d->spec->arena, "%llu", (unsigned long long)n);
}

static int several_kinds (struct err *err, const char *value)
{
    return err_set (err, ERR_INVALID,
                    "'%s': nodes of several kinds are said by --req, or by components", value);
}

/* "2:ppn=4:gpus=1:bigmem" */
static int take_nodes (struct directives *d, char *value, struct err *err)
{
    uint64_t nodes, ppn = 1;
    const char *features = "", *gpus = NULL, *whole = arena_strdup (d->spec->arena, value);
    if (strchr (value, '+'))
        return several_kinds (err, value);
    char *rest = value, *first = strsep (&rest, ":");
    if (uint_parse (first, "nodes", 1, 1u << 20, &nodes, err) < 0)
        return err_set (err, ERR_INVALID, "nodes=%s: wanted a number of nodes; --hosts names some",
                        whole);
    while (rest) {
        char *piece = strsep (&rest, ":");
        if (strncmp (piece, "ppn=", 4) == 0) {
            if (uint_parse (piece + 4, "ppn", 1, 1u << 16, &ppn, err) < 0)
                return err->code;
        } else if (strncmp (piece, "gpus=", 5) == 0)
            gpus = piece + 5;
        else if (strchr (piece, '='))
            return err_set (err, ERR_INVALID, "nodes=%s: there is no '%s' here", whole, piece);
        else
            features =
                arena_printf (d->spec->arena, "%s%s%s", features, *features ? "," : "", piece);
    }
    int rc = jobspec_set (d->spec, "nodes", first, err);
    if (rc == 0)
        rc = jobspec_set (d->spec, "tpn", number_text (d, ppn), err);
    if (rc == 0)
        rc = jobspec_set (d->spec, "tasks", number_text (d, nodes * ppn), err);
    if (rc == 0 && *features)
        rc = jobspec_set (d->spec, "features", features, err);
    if (rc == 0 && gpus)
        rc = directives_gres (d, "gpus=", "gpus-per-node", gpus, err);
    return rc;
}

/* "4": one node with so many processors. */
static int take_ncpus (struct directives *d, char *value, struct err *err)
{
    int rc = jobspec_set (d->spec, "tasks", "1", err);
    return rc == 0 ? jobspec_set (d->spec, "procs-per-task", value, err) : rc;
}

static int take_access (struct directives *d, char *value, struct err *err)
{
    char *upper = value;
    for (char *s = upper; *s; s++)
        *s = (char)(*s >= 'a' && *s <= 'z' ? *s - 0x20 : *s);
    return jobspec_set (d->spec, "node-access", upper, err);
}

static int take_features (struct directives *d, char *value, struct err *err)
{
    for (char *s = value; *s; s++)
        if (*s == ':')
            *s = ',';
    return jobspec_set (d->spec, "features", value, err);
}

static int take_select (struct directives *d, char *value, struct err *err)
{
    (void)err;
    d->select = value;
    return 0;
}

static int take_place (struct directives *d, char *value, struct err *err)
{
    (void)err;
    d->place = value;
    return 0;
}

static int take_job_memory (struct directives *d, char *value, struct err *err)
{
    return memory_take (d, "mem=", "mem-per-job", value, err);
}

static int take_process_memory (struct directives *d, char *value, struct err *err)
{
    return memory_take (d, "pmem=", "mem", value, err);
}

static int take_waits (struct directives *d, char *value, struct err *err)
{
    return directives_depend (d, "depend", value, err);
}

#define LIMIT_NOTE "this limit is not set; memory and wallclock time are kept to what was asked"

static const struct resource {
    const char *name, *key;
    int (*fn) (struct directives *d, char *value, struct err *err);
    const char *noted;
} resources[] = {
    {"advres", "reservation", NULL, NULL},
    {"cput", NULL, NULL, LIMIT_NOTE},
    {"depend", NULL, take_waits, NULL},
    {"feature", NULL, take_features, NULL},
    {"gres", "gres", NULL, NULL},
    {"host", "hosts", NULL, NULL},
    {"mem", NULL, take_job_memory, NULL},
    {"naccesspolicy", NULL, take_access, NULL},
    {"ncpus", NULL, take_ncpus, NULL},
    {"nice", NULL, NULL, "the site's policy alone says how its processors are shared"},
    {"nodes", NULL, take_nodes, NULL},
    {"nodeset", "nodeset", NULL, NULL},
    {"partition", "partition", NULL, NULL},
    {"pcput", NULL, NULL, LIMIT_NOTE},
    {"place", NULL, take_place, NULL},
    {"pmem", NULL, take_process_memory, NULL},
    {"procs", "tasks", NULL, NULL},
    {"pvmem", NULL, NULL, LIMIT_NOTE},
    {"qos", "qos", NULL, NULL},
    {"select", NULL, take_select, NULL},
    {"software", "licence", NULL, NULL},
    {"tpn", "tpn", NULL, NULL},
    {"vmem", NULL, NULL, LIMIT_NOTE},
    {"walltime", "time", NULL, NULL},
};

static int resource_take (struct directives *d, char *item, struct err *err)
{
    char *value = strchr (item, '=');
    if (!value || !value[1])
        return err_set (err, ERR_INVALID, "'%s' is not name=value", item);
    *value++ = '\0';
    for (size_t i = 0; i < sizeof resources / sizeof *resources; i++) {
        const struct resource *r = &resources[i];
        if (strcmp (r->name, item) != 0)
            continue;
        if (r->noted)
            directives_note (d, item, r->noted);
        return r->fn    ? r->fn (d, value, err)
               : r->key ? jobspec_set (d->spec, r->key, value, err)
                        : 0;
    }
    return err_set (err, ERR_INVALID, "there is no resource '%s' here", item);
}

/* A comma parts two resources where a word and '=' follow it: "depend=afterok:1,afterany:2" is one. */
int directives_pbs_resources (struct directives *d, const char *name, char *value, struct err *err)
{
    (void)name;
    for (char *item = value; item;) {
        char *next = item;
        while ((next = strchr (next, ','))) {
            size_t word = strspn (next + 1, "abcdefghijklmnopqrstuvwxyz_0123456789");
            if (word && next[1 + word] == '=')
                break;
            next++;
        }
        if (next)
            *next++ = '\0';
        if (resource_take (d, item, err) < 0)
            return err_prefix (err, "-l");
        item = next;
    }
    return 0;
}

/* -j: the other stream goes where this one goes. */
static void join_streams (struct directives *d)
{
    const char *out = d->spec->defaults.output ? d->spec->defaults.output : "stdout",
               *error = d->spec->defaults.error ? d->spec->defaults.error : "stderr";
    if (d->join && strcmp (d->join, "oe") == 0)
        d->spec->defaults.error = out;
    else if (d->join)
        d->spec->defaults.output = error;
}

/* One chunk of select: its counts, and what each task of it needs. */
struct chunk {
    uint64_t count, ncpus, mpiprocs, ngpus;
    const char *mem, *features, *threads;
};

static int chunk_piece (struct directives *d, struct chunk *c, char *piece, struct err *err)
{
    char *value = strchr (piece, '=');
    if (!value)
        return err_set (err, ERR_INVALID, "'%s' is not name=value", piece);
    *value++ = '\0';
    if (strcmp (piece, "ncpus") == 0)
        return uint_parse (value, piece, 1, 1u << 16, &c->ncpus, err);
    if (strcmp (piece, "mpiprocs") == 0)
        return uint_parse (value, piece, 1, 1u << 16, &c->mpiprocs, err);
    if (strcmp (piece, "ngpus") == 0)
        return uint_parse (value, piece, 0, 1u << 10, &c->ngpus, err);
    if (strcmp (piece, "ompthreads") == 0) {
        c->threads = value;
        return 0;
    }
    if (strcmp (piece, "mem") == 0)
        return (c->mem = size_mb (d, value, err)) ? 0 : err->code;
    if (strcasecmp (value, "true") != 0)
        return err_set (err, ERR_INVALID, "there is no resource '%s' of a chunk here", piece);
    c->features =
        arena_printf (d->spec->arena, "%s%s%s", c->features, *c->features ? "," : "", piece);
    return 0;
}

/* A chunk lies on one node: its tasks share it out. */
static int chunk_set (struct directives *d, const struct chunk *c, bool scattered, struct err *err)
{
    if (c->ncpus % c->mpiprocs != 0)
        return err_set (err, ERR_INVALID, "ncpus=%llu are not shared out evenly to mpiprocs=%llu",
                        (unsigned long long)c->ncpus, (unsigned long long)c->mpiprocs);
    int rc = jobspec_set (d->spec, "tasks", number_text (d, c->count * c->mpiprocs), err);
    if (rc == 0)
        rc = jobspec_set (d->spec, "procs-per-task", number_text (d, c->ncpus / c->mpiprocs), err);
    if (rc == 0 && (scattered || c->mpiprocs > 1)) {
        rc = jobspec_set (d->spec, "nodes", number_text (d, c->count), err);
        if (rc == 0)
            rc = jobspec_set (d->spec, "tpn", number_text (d, c->mpiprocs), err);
    }
    /* What is said for a chunk is for its tasks together, which are a node's or, one to a chunk, the task's. */
    bool per_node = scattered || c->mpiprocs > 1;
    if (rc == 0 && c->mem)
        rc = directives_memory (d, "mem=", per_node ? "mem-per-node" : "mem", c->mem, err);
    if (rc == 0 && c->ngpus)
        rc = directives_gres (d, "ngpus=", per_node ? "gpus-per-node" : "gpus-per-task",
                              number_text (d, c->ngpus), err);
    if (rc == 0 && *c->features)
        rc = jobspec_set (d->spec, "features", c->features, err);
    if (rc == 0 && c->threads)
        rc = jobspec_set (d->spec, "env",
                          arena_printf (d->spec->arena, "OMP_NUM_THREADS=%s", c->threads), err);
    return rc;
}

/* "scatter:excl" */
static int place_take (struct directives *d, bool *scattered, bool *packed, struct err *err)
{
    char *rest = d->place ? arena_strdup (d->spec->arena, d->place) : NULL;
    int rc = 0;
    while (rest && rc == 0) {
        const char *word = strsep (&rest, ":");
        if (strcmp (word, "scatter") == 0 || strcmp (word, "vscatter") == 0)
            *scattered = true;
        else if (strcmp (word, "pack") == 0)
            *packed = true;
        else if (strcmp (word, "excl") == 0 || strcmp (word, "exclhost") == 0)
            rc = jobspec_set (d->spec, "node-access", "SINGLEJOB", err);
        else if (strcmp (word, "shared") == 0)
            rc = jobspec_set (d->spec, "node-access", "SHARED", err);
        else if (strcmp (word, "free") != 0)
            rc = err_set (err, ERR_INVALID, "place=%s: '%s' cannot be had here", d->place, word);
    }
    return rc;
}

int directives_pbs_finish (struct directives *d, struct err *err)
{
    struct chunk c = {.count = 1, .ncpus = 1, .mpiprocs = 1, .features = ""};
    bool scattered = false, packed = false;
    char *rest = d->select;
    join_streams (d);
    if (place_take (d, &scattered, &packed, err) < 0)
        return err->code;
    if (!rest)
        return packed ? jobspec_set (d->spec, "nodes", "1", err) : 0;
    if (strchr (rest, '+'))
        return several_kinds (err, rest);
    if (*rest >= '0' && *rest <= '9' &&
        uint_parse (strsep (&rest, ":"), "select", 1, 1u << 20, &c.count, err) < 0)
        return err->code;
    while (rest)
        if (chunk_piece (d, &c, strsep (&rest, ":"), err) < 0)
            return err_prefix (err, "-l select");
    if (packed && c.count > 1) { /* all chunks on one node are one larger chunk */
        c.mpiprocs *= c.count;
        c.ncpus *= c.count;
        c.ngpus *= c.count;
        if (c.mem)
            c.mem = number_text (d, strtoull (c.mem, NULL, 10) * c.count);
        c.count = 1;
    }
    return chunk_set (d, &c, scattered || packed, err) < 0 ? err_prefix (err, "-l select") : 0;
}

/* "[[[[CC]YY]MM]DD]hhmm[.SS]" */
static int take_after (struct directives *d, const char *name, char *value, struct err *err)
{
    (void)name;
    size_t digits = strspn (value, "0123456789");
    const char *seconds = value[digits] == '.' ? value + digits + 1 : "00";
    if (digits < 4 || digits > 12 || digits % 2 || strlen (seconds) != 2 ||
        strspn (seconds, "0123456789") != 2 || (value[digits] && value[digits] != '.'))
        return err_set (err, ERR_INVALID, "'%s' is not a moment [[[[CC]YY]MM]DD]hhmm[.SS]", value);
    time_t now = (time_t)(d->spec->now / US_PER_S);
    struct tm today;
    char full[16];
    localtime_r (&now, &today);
    strftime (full, sizeof full, "%Y%m%d", &today);
    const char *clock = value + digits - 4;
    if (digits == 4)
        return jobspec_set (
            d->spec, "after",
            arena_printf (d->spec->arena, "%.2s:%.2s:%.2s", clock, clock + 2, seconds), err);
    memcpy (full + 12 - digits, value, digits - 4);
    return jobspec_set (d->spec, "after",
                        arena_printf (d->spec->arena, "%.4s-%.2s-%.2sT%.2s:%.2s:%.2s", full,
                                      full + 4, full + 6, clock, clock + 2, seconds),
                        err);
}

/* "batch@server" */
static int take_queue (struct directives *d, const char *name, char *value, struct err *err)
{
    (void)name;
    if (strchr (value, '@'))
        return err_set (err, ERR_INVALID, "'%s': --site says which cluster, -q which queue there",
                        value);
    return jobspec_set (d->spec, "class", value, err);
}

static int take_join (struct directives *d, const char *name, char *value, struct err *err)
{
    (void)name;
    bool oe = strcmp (value, "oe") == 0;
    if (!oe && strcmp (value, "eo") != 0 && strcmp (value, "n") != 0)
        return err_set (err, ERR_INVALID, "'%s' is not oe, eo or n", value);
    d->join = *value == 'n' ? NULL : oe ? "oe" : "eo";
    return 0;
}

static int take_whole_nodes (struct directives *d, const char *name, char *value, struct err *err)
{
    (void)name, (void)value;
    return jobspec_set (d->spec, "node-access", "SINGLEJOB", err);
}

static int take_rerun (struct directives *d, const char *name, char *value, struct err *err)
{
    (void)name;
    if (strcmp (value, "y") != 0 && strcmp (value, "n") != 0)
        return err_set (err, ERR_INVALID, "'%s' is not y or n", value);
    return *value == 'n' ? jobspec_set (d->spec, "flags", "NORESTART", err) : 0;
}

/* "/bin/bash@host,/bin/sh": the first without a host. */
static int take_shell (struct directives *d, const char *name, char *value, struct err *err)
{
    (void)name;
    value[strcspn (value, ",@")] = '\0';
    if (*value != '/')
        return err_set (err, ERR_INVALID, "'%s' is not the path of a program", value);
    if (!d->spec->interpreter)
        d->spec->interpreter = arena_strdup (d->spec->arena, value);
    return 0;
}

/* "A,B=1" */
static int take_variables (struct directives *d, const char *name, char *value, struct err *err)
{
    (void)name;
    int rc = 0;
    while (value && rc == 0)
        rc = jobspec_set (d->spec, "env", strsep (&value, ","), err);
    return rc;
}

/* -W: attributes, of which a job here has "depend". */
static int take_attribute (struct directives *d, const char *name, char *value, struct err *err)
{
    if (strncmp (value, "depend=", 7) == 0)
        return directives_depend (d, name, value + 7, err);
    if (strncmp (value, "group_list=", 11) == 0 || strncmp (value, "block=", 6) == 0) {
        directives_note (d, value, "it is the site's affair, or the waiting command's");
        return 0;
    }
    return err_set (err, ERR_INVALID, "'%s' cannot be said here%s", value,
                    strncmp (value, "stage", 5) == 0 ? ": --stage-in and --stage-out move files"
                                                     : "");
}

/* "abe", "n": aborted, begun, ended. */
static int take_mail (struct directives *d, const char *name, char *value, struct err *err)
{
    static const char letters[] = "abefpnj";
    static const char *const ours[] = {"fail", "begin", "end", "fail", "", "", ""};
    const char *list = "";
    (void)name;
    for (const char *at, *s = value; *s; s++) {
        if (!(at = strchr (letters, *s)))
            return err_set (err, ERR_INVALID, "'%s' is not some of a, b, e, or n", value);
        if (*ours[at - letters])
            list =
                arena_printf (d->spec->arena, "%s%s%s", list, *list ? "," : "", ours[at - letters]);
    }
    return *list ? directives_mail (d, "mail", list, err) : 0;
}

/* "me@here.example,she@there.example" */
static int take_mail_user (struct directives *d, const char *name, char *value, struct err *err)
{
    char *more = strchr (value, ',');
    if (more) {
        *more = '\0';
        directives_note (d, name, "mail goes to the first address only");
    }
    return directives_mail (d, "mail-to", value, err);
}

const struct directive directives_pbs[] = {
    {'A', NULL, .key = "account"},
    {'a', NULL, .fn = take_after},
    {'C', NULL, .refused = "directives begin with #PBS"},
    {'c', NULL, .noted = "whether a job is checkpointed, its site says"},
    {'D', NULL, .refused = "there is no other root directory for a job"},
    {'d', NULL, .fn = directives_directory},
    {'e', NULL, .key = "error"},
    {'f', NULL, NO_VALUE, .noted = "whether it runs again, -r says"},
    {'h', NULL, NO_VALUE, .key = "hold"},
    {'I', NULL, NO_VALUE, .refused = "a script cannot be typed"},
    {'J', NULL, .key = "array"},
    {'j', NULL, .fn = take_join},
    {'k', NULL, .noted = "both streams are files in the job's directory from the first line on"},
    {'l', NULL, .fn = directives_pbs_resources},
    {'M', NULL, .fn = take_mail_user},
    {'m', NULL, .fn = take_mail},
    {'N', NULL, .key = "name"},
    {'n', NULL, NO_VALUE, .fn = take_whole_nodes},
    {'o', NULL, .key = "output"},
    {'P', NULL, .key = "account"},
    {'p', NULL, .noted = "the site's policy alone says in which order jobs run"},
    {'q', NULL, .fn = take_queue},
    {'R', NULL, .noted = "both streams are files in the job's directory"},
    {'r', NULL, .fn = take_rerun},
    {'S', NULL, .fn = take_shell},
    {'T', NULL, .refused = "a job has no prologue of its own"},
    {'t', NULL, .key = "array"},
    {'u', NULL, .refused = "whose job it is, its signature says"},
    {'V', NULL, NO_VALUE, .key = "env-all"},
    {'v', NULL, .fn = take_variables},
    {'W', NULL, .fn = take_attribute},
    {'w', NULL, .fn = directives_directory},
    {'X', NULL, NO_VALUE, .refused = "a job has no display"},
    {'x', NULL, .refused = "a script is given by its name"},
    {'z', NULL, .takes = NO_VALUE},
    {0},
};
