/* jobspec_directives: finds the directives of a script, takes each apart into option and value, and does what the
 * dialect's table says of it. joboptions calls it once the command line is read, whose word is the last. A directive is
 * honoured, or refuses the job with one sentence; with a note passes only what changes nothing that is computed. */
#include <stdlib.h>
#include <string.h>

#include "proto/cli/directives_i.h"
#include "proto/job/mailaddress.h"

enum dialect { DIALECT_NUI, DIALECT_SLURM, DIALECT_PBS, DIALECT_MSUB, DIALECTS };

static const char *const dialect_mark[DIALECTS] = {"#NUI", "#SBATCH", "#PBS", "#MSUB"};

/* Letters of nui submit; its long options are jobspec_set's keys. */
static const struct directive directives_nui[] = {
    {'A', "account", .key = "account"},
    {'q', "qos", .key = "qos"},
    {'p', "class", .key = "class"},
    {'n', "tasks", .key = "tasks"},
    {'N', "nodes", .key = "nodes"},
    {'t', "time", .key = "time"},
    {'C', "features", .key = "features"},
    {'L', "licence", .key = "licence"},
    {'o', "output", .key = "output"},
    {'e', "error", .key = "error"},
    {'w', "hosts", .key = "hosts"},
    {'x', "exclude", .key = "exclude"},
    {'a', "array", .key = "array"},
    {'H', "hold", NO_VALUE, .key = "hold"},
    {0},
};

static const struct directive *const dialect_table[DIALECTS] = {directives_nui, directives_slurm,
                                                                directives_pbs, directives_pbs};

void directives_note (const struct directives *d, const char *name, const char *text)
{
    if (d->note)
        fprintf (d->note, "nui: note: %s %s: %s\n", d->mark, name, text);
}

int directives_memory (struct directives *d, const char *name, const char *key, const char *value,
                       struct err *err)
{
    if (d->memory && strcmp (d->memory, name) != 0)
        return err_set (err, ERR_INVALID, "%s and %s both say how much memory", d->memory, name);
    d->memory = arena_strdup (d->spec->arena, name);
    return jobspec_set (d->spec, key, value, err);
}

int directives_gres (struct directives *d, const char *name, const char *key, const char *value,
                     struct err *err)
{
    if (d->gres)
        return err_set (err, ERR_INVALID,
                        "%s and %s both ask for generic resources: say all in one", d->gres, name);
    d->gres = arena_strdup (d->spec->arena, name);
    return jobspec_set (d->spec, key, value, err);
}

int directives_depend (struct directives *d, const char *name, char *value, struct err *err)
{
    static const char *const kinds[] = {"after",
                                        "afterany",
                                        "afterok",
                                        "afternotok",
                                        "before",
                                        "beforeany",
                                        "beforeok",
                                        "beforenotok",
                                        "jobstart",
                                        "jobcomplete",
                                        "jobsuccessfulcomplete",
                                        "jobfailedcomplete"};
    (void)name;
    char *copy = arena_strdup (d->spec->arena, value), *rest = NULL;
    for (char *one = strtok_r (copy, ",", &rest); one; one = strtok_r (NULL, ",", &rest)) {
        size_t len = strcspn (one, ":");
        bool known = false;
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
            known = known || (strlen (kinds[i]) == len && strncmp (kinds[i], one, len) == 0);
        if (!known || strpbrk (one, "?+"))
            return err_set (err, ERR_INVALID,
                            "'%s' cannot be waited for: jobs wait by after, afterany, afterok and "
                            "afternotok, for all of those named",
                            one);
    }
    return jobspec_set (d->spec, "depend", value, err);
}

int directives_mail (struct directives *d, const char *key, const char *value, struct err *err)
{
    d->spec->mail_perhaps = d->spec->mail_perhaps || !d->spec->mail;
    return jobspec_set (d->spec, key, value, err);
}

/* Mail is a comfort: a job that asks for some that cannot be sent runs without. */
static void directives_mail_finish (struct directives *d)
{
    struct jobspec *spec = d->spec;
    const char *url;
    struct err err;
    if (!spec->mail_perhaps)
        return;
    url = spec->mail && spec->mail_to && !spec->notify
              ? arena_printf (spec->arena, "mailto:%s?on=%s", spec->mail_to, spec->mail)
              : NULL;
    if (url && mailaddress_check (url, &err) == 0)
        return;
    if (spec->mail)
        directives_note (d, "mail",
                         url ? err.text
                         : spec->notify
                             ? "--notify tells how it fares, and no mail"
                             : "no mail is sent: the script does not say to which address");
    spec->mail = spec->mail_to = NULL;
}

int directives_directory (struct directives *d, const char *name, char *value, struct err *err)
{
    (void)name;
    if (strcmp (value, ".") == 0 || strcmp (value, "./") == 0)
        return 0;
    if (*value == '/' || *value == '~')
        return jobspec_set (d->spec, "chdir", value, err);
    return err_set (err, ERR_INVALID,
                    "%s is a directory of the machine where the job is submitted: say a path at "
                    "the site, /PATH or ~/PATH, or take the line away and bring the files that it "
                    "needs by --input",
                    value);
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

static const struct directive *by_letter (const struct directive *table, char letter)
{
    for (; table->letter || table->name; table++)
        if (table->letter == letter)
            return table;
    return NULL;
}

static const struct directive *by_name (const struct directive *table, const char *name, size_t len)
{
    for (; table->letter || table->name; table++)
        if (table->name && strlen (table->name) == len && strncmp (table->name, name, len) == 0)
            return table;
    return NULL;
}

static int directive_do (struct directives *d, const struct directive *option, const char *name,
                         char *value, struct err *err)
{
    int rc = 0;
    if (option->refused)
        rc = err_set (err, ERR_INVALID, "%s", option->refused);
    else if (option->fn)
        rc = option->fn (d, name, value, err);
    else if (option->key)
        rc = jobspec_set (d->spec, option->key, value ? value : "", err);
    else if (option->noted)
        directives_note (d, name, option->noted);
    if (option->key && strcmp (option->key, "error") == 0)
        d->error_told = true;
    return rc < 0 ? err_prefix (err, "%s %s", d->mark, name) : 0;
}

/* "--name=value", "--name value", "-n4", "-n 4": one option of a line, from its first word on. */
static int option_read (struct directives *d, const struct directive *table, char *word,
                        char **cursor, struct err *err)
{
    const struct directive *option;
    struct directive own = {0};
    char *value = NULL, *name = word;
    if (strncmp (word, "--", 2) == 0) {
        value = strchr (word, '=');
        size_t len = value ? (size_t)(value++ - word) : strlen (word);
        name = arena_printf (d->spec->arena, "%.*s", (int)len, word);
        option = by_name (table, name + 2, len - 2);
        if (!option && table == directives_nui) {
            own.key = name + 2;
            option = &own;
        }
    } else {
        option = word[0] == '-' && word[1] ? by_letter (table, word[1]) : NULL;
        name = arena_printf (d->spec->arena, "%.2s", word);
        value = word[0] == '-' && word[1] && word[2] ? word + 2 : NULL;
    }
    if (!option)
        return err_set (err, ERR_INVALID, "%s: there is no option %s", d->mark, word);
    if (option->takes == NO_VALUE && value)
        return err_set (err, ERR_INVALID, "%s: %s takes no value", d->mark, name);
    if (option->takes == A_VALUE && !value && !(value = word_next (cursor)))
        return err_set (err, ERR_INVALID, "%s: %s needs a value", d->mark, name);
    int rc = directive_do (d, option, name, value, err);
    return rc == ERR_NOT_FOUND && option == &own
               ? err_set (err, ERR_INVALID, "%s: there is no option %s", d->mark, name)
               : rc;
}

/* Slurm and PBS call a job after its script where it has no name. */
static void name_after_script (struct jobspec *spec)
{
    const char *path = spec->defaults.script_path, *slash = strrchr (path, '/');
    struct err ignored = {0};
    (void)jobspec_set (spec, "name", slash ? slash + 1 : path,
                       &ignored); /* a name like "run 2.sh" is none here */
}

/* The directive lines of one dialect, up to the first line that is neither comment nor empty. */
static int directives_of (struct directives *d, enum dialect dialect, const char *script,
                          uint32_t *count_out, struct err *err)
{
    size_t mark_len = strlen (dialect_mark[dialect]);
    char *copy = arena_strdup (d->spec->arena, script);
    uint32_t line_number = 0;
    d->mark = dialect_mark[dialect];
    *count_out = 0;
    for (char *rest = copy; rest;) {
        char *line = strsep (&rest, "\n");
        line_number++;
        line += strspn (line, " \t\r");
        if (!*line)
            continue;
        if (*line != '#')
            break;
        if (strncmp (line, d->mark, mark_len) || !strchr (" \t", line[mark_len]))
            continue;
        ++*count_out;
        char *cursor = line + mark_len;
        for (char *word; (word = word_next (&cursor));)
            if (option_read (d, dialect_table[dialect], word, &cursor, err) < 0)
                return err_prefix (err, "line %u", line_number);
    }
    if (*count_out == 0 || dialect == DIALECT_NUI)
        return 0;
    name_after_script (d->spec);
    directives_mail_finish (d);
    return dialect == DIALECT_SLURM ? directives_slurm_finish (d, err)
                                    : directives_pbs_finish (d, err);
}

int jobspec_resources (struct jobspec *spec, const char *list, FILE *note, struct err *err)
{
    struct directives d = {.spec = spec, .mark = "msub", .note = note};
    int rc = directives_pbs_resources (&d, "-l", arena_strdup (spec->arena, list), err);
    return rc < 0 ? rc : directives_pbs_finish (&d, err);
}

int jobspec_directives (struct jobspec *spec, FILE *note, struct err *err)
{
    spec->source = 2;
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
    struct directives d = {.spec = spec, .note = note, .error_told = spec->defaults.error != NULL};
    uint32_t count = 0;
    for (int dialect = 0; dialect < DIALECTS && rc == 0 && count == 0; dialect++)
        rc = directives_of (&d, (enum dialect)dialect, script, &count, err);
    return rc < 0 ? err_prefix (err, "%s", path) : 0;
}
