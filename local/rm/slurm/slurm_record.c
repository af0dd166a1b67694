/* slurm_record: parses lines of the completion file and of sacct into ends of jobs. slurm_done.c
 * calls it for jobs that Slurm itself has forgotten. Users write parts of these lines: what a
 * name could have forged is not believed, and another source is asked. */
#include "local/rm/slurm/slurm_record.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Ends of runs that go on: the job waits again. */
static bool goes_on (const char *state)
{
    static const char *const words[] = {"REQUEUED", "PENDING", "RUNNING", "SUSPENDED", "RESIZING"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp (state, words[i]) == 0)
            return true;
    return false;
}

/* All but the rest of a long text that is its last member. */
static void clear (struct slurm_record *out)
{
    memset (out, 0, offsetof (struct slurm_record, nodes) + 1);
    out->cpu_time = -1;
}

static uint32_t procs_of (const char *text)
{
    long long procs = strtoll (text, NULL, 10);
    return procs > 0 && procs < INT32_MAX ? (uint32_t)procs : 1;
}

static duration_us minutes_of (const char *text) /* "UNLIMITED" is 0 */
{
    long long minutes = strtoll (text, NULL, 10);
    return minutes > 0 && minutes < INT32_MAX ? minutes * 60 * US_PER_S : 0;
}

static void exit_of (const char *text, struct slurm_record *out)
{
    int code = 0, signo = 0;
    sscanf (text, "%9d:%9d", &code, &signo);
    out->exit_code = code & 255;
    out->signo = signo & 127;
}

/* --- the completion file ------------------------------------------------------------------ */

/* Value of NAME= among blank-separated words; copied. "" when it is not there. */
static bool word_of (const char *line, const char *name, char *out, size_t cap)
{
    size_t len = strlen (name);
    *out = 0;
    for (const char *p = line; (p = strstr (p, name)); p += len) {
        if ((p != line && p[-1] != ' ') || p[len] != '=')
            continue;
        size_t n = strcspn (p + len + 1, " \n");
        snprintf (out, cap, "%.*s", (int)(n < cap ? n : cap - 1), p + len + 1);
        return true;
    }
    return false;
}

static const char *said_twice (const char *line)
{
    static const char *const once[] = {
        "JobId",   "UserId",     "JobState", "TimeLimit", "StartTime",  "EndTime",    "NodeList",
        "ProcCnt", "SubmitTime", "ExitCode", "Account",   "ArrayJobId", "ArrayTaskId"};
    for (size_t i = 0; i < sizeof once / sizeof *once; i++) {
        char key[32];
        snprintf (key, sizeof key, " %s=", once[i]);
        const char *first = i == 0 ? line : strstr (line, key);
        if (first && *first && strstr (first + 1, key))
            return once[i];
    }
    return NULL;
}

/* "2026-11-21T13:40:00" in Slurm's local time, which is taken for ours; 0: "Unknown", "None". */
static time_us moment_of (const char *text)
{
    struct tm tm = {.tm_isdst = -1};
    if (!strptime (text, "%Y-%m-%dT%H:%M:%S", &tm) || tm.tm_year < 70)
        return 0;
    time_t t = mktime (&tm);
    return t > 0 ? (time_us)t * US_PER_S : 0;
}

/* "games(5)" → "games". */
static void plain_of (const char *line, const char *field, char out[SLURM_RECORD_WORD_MAX])
{
    word_of (line, field, out, SLURM_RECORD_WORD_MAX);
    out[strcspn (out, "(")] = 0;
}

enum slurm_record_is slurm_record_completion (const char *line, struct slurm_record *out,
                                              const char **field_out)
{
    char number[40], array[40], task[40], start[40], end[40], word[40];
    clear (out);
    bool named = word_of (line, "JobId", number, sizeof number);
    bool of_array = word_of (line, "ArrayJobId", array, sizeof array) &&
                    word_of (line, "ArrayTaskId", task, sizeof task);
    snprintf (out->id, sizeof out->id, "%s%s%s", of_array ? array : number, of_array ? "_" : "",
              of_array ? task : "");
    out->number = strtoll (number, NULL, 10);
    if ((*field_out = said_twice (line)))
        return RECORD_DOUBTFUL;
    if (!named || !word_of (line, "JobState", out->state, sizeof out->state) ||
        !word_of (line, "StartTime", start, sizeof start) ||
        !word_of (line, "EndTime", end, sizeof end) || goes_on (out->state))
        return RECORD_NONE;
    out->start = moment_of (start);
    out->end = moment_of (end);
    word_of (line, "SubmitTime", word, sizeof word);
    out->submit = moment_of (word);
    word_of (line, "ExitCode", word, sizeof word);
    exit_of (word, out);
    out->ran = word_of (line, "NodeList", out->nodes, sizeof out->nodes) && *out->nodes &&
               strcmp (out->nodes, "(null)") != 0;
    plain_of (line, "Name", out->name);
    plain_of (line, "UserId", out->user);
    plain_of (line, "GroupId", out->group);
    plain_of (line, "Account", out->account);
    plain_of (line, "QOS", out->qos);
    plain_of (line, "Partition", out->partition);
    word_of (line, "ProcCnt", word, sizeof word);
    out->procs = procs_of (word);
    word_of (line, "TimeLimit", word, sizeof word);
    out->walltime = minutes_of (word);
    return RECORD_END;
}

/* --- sacct -------------------------------------------------------------------------------- */

/* The name is last: it may have anything in it. */
enum {
    F_ID,
    F_NUMBER,
    F_SUBMIT,
    F_START,
    F_END,
    F_STATE,
    F_EXIT,
    F_NODES,
    F_USER,
    F_GROUP,
    F_ACCOUNT,
    F_QOS,
    F_PARTITION,
    F_PROCS,
    F_LIMIT,
    F_CPU,
    F_NAME,
    FIELDS
};
const char slurm_record_sacct_fields[] = "JobID,JobIDRaw,Submit,Start,End,State,ExitCode,NodeList,"
                                         "User,Group,Account,QOS,Partition,AllocCPUS,"
                                         "TimelimitRaw,TotalCPU,JobName";

static time_us seconds_of (const char *text) /* "Unknown" is 0 */
{
    long long s = strtoll (text, NULL, 10);
    return s > 0 && s < INT64_MAX / US_PER_S ? s * US_PER_S : 0;
}

/* Digits at *text, at most six; false: there are none, or more. */
static bool digits_of (const char **text, int64_t *out)
{
    size_t n = strspn (*text, "0123456789");
    *out = n > 0 && n <= 6 ? strtoll (*text, NULL, 10) : 0;
    *text += n;
    return n > 0 && n <= 6;
}

/* "2-03:04:05", "01:02:03", "02:03.456"; -1: something else, or nothing: "00:00:00" is what it says
 * when nothing was measured. */
static duration_us cpu_of (const char *text)
{
    int64_t days = 0, part = 0, seconds = 0, thousandths = 0;
    int parts = 1;
    if (!digits_of (&text, &part))
        return -1;
    if (*text == '-') {
        days = part;
        text++;
        if (!digits_of (&text, &part))
            return -1;
    }
    seconds = part;
    for (; *text == ':' && parts < 3; parts++) {
        text++;
        if (!digits_of (&text, &part))
            return -1;
        seconds = seconds * 60 + part;
    }
    if (*text == '.') {
        text++;
        if (!digits_of (&text, &thousandths))
            return -1;
    }
    duration_us cpu = (days * 86400 + seconds) * US_PER_S + thousandths * 1000;
    return *text == 0 && parts > 1 && cpu > 0 ? cpu : -1;
}

enum slurm_record_is slurm_record_sacct (char *line, struct slurm_record *out)
{
    char *field[FIELDS] = {NULL}, *save = line;
    for (int i = 0; i < F_NAME; i++)
        field[i] = strsep (&save, "|");
    field[F_NAME] = save;
    clear (out);
    if (!save || strchr (field[F_ID], '.'))
        return RECORD_NONE;                            /* a step */
    field[F_STATE][strcspn (field[F_STATE], " ")] = 0; /* "CANCELLED by 1000" */
    const struct {
        int from;
        char *to;
        size_t cap;
    } text[] = {{F_ID, out->id, sizeof out->id},
                {F_STATE, out->state, sizeof out->state},
                {F_NODES, out->nodes, sizeof out->nodes},
                {F_USER, out->user, sizeof out->user},
                {F_GROUP, out->group, sizeof out->group},
                {F_ACCOUNT, out->account, sizeof out->account},
                {F_QOS, out->qos, sizeof out->qos},
                {F_PARTITION, out->partition, sizeof out->partition},
                {F_NAME, out->name, sizeof out->name}};
    for (size_t i = 0; i < sizeof text / sizeof *text; i++)
        snprintf (text[i].to, text[i].cap, "%s", field[text[i].from]);
    if (goes_on (out->state))
        return RECORD_NONE;
    out->number = strtoll (field[F_NUMBER], NULL, 10);
    out->submit = seconds_of (field[F_SUBMIT]);
    out->start = seconds_of (field[F_START]);
    out->end = seconds_of (field[F_END]);
    exit_of (field[F_EXIT], out);
    out->ran = *out->nodes && strcmp (out->nodes, "None assigned") != 0;
    out->procs = procs_of (field[F_PROCS]);
    out->walltime = minutes_of (field[F_LIMIT]);
    out->cpu_time = cpu_of (field[F_CPU]);
    return RECORD_END;
}
