/* sacct: reads the output of sacct line by line, in place. nui reconcile --sacct calls it. The
 * text comes from another program: a header without a needed column, or a line that cannot be
 * read, ends it with the line's number, since a job passed over would look like one that never
 * ran. */
#include "bank/cli/sacct.h"

#include <string.h>

enum field {
    F_ID,
    F_SUBMIT,
    F_START,
    F_END,
    F_PROCS,
    F_ELAPSED,
    F_USER,
    F_ACCOUNT,
    F_STATE,
    FIELDS
};

static const struct {
    const char *name;
    enum field field;
    bool better; /* than the other one of that meaning */
} known[] = {{"JobIDRaw", F_ID, true},      {"JobID", F_ID, false},
             {"Submit", F_SUBMIT, true},    {"Start", F_START, true},
             {"End", F_END, true},          {"AllocCPUS", F_PROCS, true},
             {"NCPUS", F_PROCS, false},     {"ElapsedRaw", F_ELAPSED, true},
             {"Elapsed", F_ELAPSED, false}, {"User", F_USER, true},
             {"Account", F_ACCOUNT, true},  {"State", F_STATE, true}};

enum { COLUMNS_MAX = 256 };

/* The next cell of a line, which is cut there; NULL: there is none. */
static char *cell (char **rest)
{
    char *at = *rest, *bar = at ? strchr (at, '|') : NULL;
    if (bar)
        *bar = '\0';
    *rest = bar ? bar + 1 : NULL;
    return at;
}

static int header_read (const char *name, char *line, int column[FIELDS], struct err *err)
{
    static const char *const must[FIELDS] = {
        [F_ID] = "JobIDRaw", [F_END] = "End", [F_PROCS] = "AllocCPUS", [F_ELAPSED] = "ElapsedRaw"};
    for (int f = 0; f < FIELDS; f++)
        column[f] = -1;
    int at = 0;
    for (char *word; (word = cell (&line)) && at < COLUMNS_MAX; at++)
        for (size_t k = 0; k < sizeof (known) / sizeof (known[0]); k++)
            if (strcmp (word, known[k].name) == 0 &&
                (known[k].better || column[known[k].field] < 0))
                column[known[k].field] = at;
    for (int f = 0; f < FIELDS; f++)
        if (must[f] && column[f] < 0)
            return err_set (err, ERR_INVALID,
                            "%s: its first line names no field %s; print it with sacct --parsable2 "
                            "--format=JobIDRaw,Submit,Start,End,AllocCPUS,ElapsedRaw,User,Account,"
                            "State as nui-reconcile(1) says",
                            name, must[f]);
    return 0;
}

static bool is_moment (const char *text)
{
    return text[0] && strcmp (text, "Unknown") != 0 && strcmp (text, "None") != 0;
}

static int moment_read (const char *text, time_us *out, struct err *err)
{
    *out = 0;
    return is_moment (text) ? time_parse (text, 0, out, err) : 0;
}

/* ERR_NOT_FOUND: a step, or a job that has not ended. */
static int job_read (char *line, const int column[FIELDS], struct sacct_job *out, struct err *err)
{
    const char *value[FIELDS] = {"", "", "", "", "", "", "", "", ""};
    uint64_t procs;
    int at = 0, rc;
    for (char *word; (word = cell (&line)) && at < COLUMNS_MAX; at++)
        for (int f = 0; f < FIELDS; f++)
            if (column[f] == at)
                value[f] = word;
    if (strchr (value[F_ID], '.') || !is_moment (value[F_END]))
        return ERR_NOT_FOUND;
    if (!value[F_ID][0])
        return err_set (err, ERR_INVALID, "a job without an id");
    *out = (struct sacct_job){.id = value[F_ID],
                              .user = value[F_USER],
                              .account = value[F_ACCOUNT],
                              .state = value[F_STATE]};
    if ((rc = moment_read (value[F_SUBMIT], &out->submit, err)) < 0 ||
        (rc = moment_read (value[F_START], &out->start, err)) < 0 ||
        (rc = moment_read (value[F_END], &out->end, err)) < 0 ||
        (rc = uint_parse (value[F_PROCS], "processors", 0, 100000000, &procs, err)) < 0 ||
        (rc = duration_parse (value[F_ELAPSED], &out->elapsed, err)) < 0)
        return rc;
    out->procs = (int64_t)procs;
    return 0;
}

int sacct_parse (const char *name, char *text, struct arena *arena, struct sacct_job **out,
                 uint32_t *count_out, struct err *err)
{
    uint32_t lines = 1, count = 0, number = 1;
    int column[FIELDS];
    for (const char *p = text; *p; p++)
        lines += *p == '\n';
    if (lines > SACCT_JOBS_MAX)
        return err_set (err, ERR_LIMIT, "%s: more than %d lines", name, SACCT_JOBS_MAX);
    *out = arena_array (arena, lines, sizeof (**out));
    for (char *line = text, *next; line; line = next, number++) {
        next = strchr (line, '\n');
        if (next)
            *next++ = '\0';
        size_t len = strlen (line);
        if (len && line[len - 1] == '\r')
            line[len - 1] = '\0';
        if (number > 1 && !line[0])
            continue;
        int rc = number == 1 ? header_read (name, line, column, err)
                             : job_read (line, column, &(*out)[count], err);
        if (rc < 0 && rc != ERR_NOT_FOUND)
            return number == 1 ? rc : err_prefix (err, "%s line %u", name, number);
        count += number > 1 && rc == 0;
    }
    *count_out = count;
    return 0;
}
