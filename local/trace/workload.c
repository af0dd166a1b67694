/* workload: reads a log of either format line by line (swf.c, mauitrace.c), checks and sorts the
 * jobs. nui sim, the laboratory and the daemon's SIMULATION call it. A job that cannot be
 * simulated is never dropped silently: it is counted by its reason. */
#include "local/trace/workload.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "local/trace/workload_i.h"
#include "proto/base/mem.h"
#include "proto/base/strbuf.h"

const char *workload_skip_text (enum workload_skip reason)
{
    static const char *const text[SKIP_REASONS] = {
        [SKIP_NO_RUN_TIME] = "no run time",
        [SKIP_NO_PROCESSORS] = "no processors",
        [SKIP_NO_SUBMIT_TIME] = "no submit time",
        [SKIP_TOO_LARGE] = "larger than the machine",
        [SKIP_NO_NODES] = "no nodes with what its tasks ask",
        [SKIP_PLACE] = "asks for hosts by name or for a reservation",
    };
    return text[reason];
}

uint32_t fields_split (char *line, char **field, uint32_t max)
{
    uint32_t count = 0;
    char *at = line;
    for (;;) {
        while (*at == ' ' || *at == '\t')
            at++;
        if (!*at)
            return count;
        if (count < max)
            field[count] = at;
        count++;
        while (*at && *at != ' ' && *at != '\t')
            at++;
        if (*at)
            *at++ = 0;
    }
}

bool seconds_parse (const char *text, int64_t *us_out)
{
    bool negative = *text == '-';
    const char *at = text + negative;
    int64_t value = 0;
    if (!isdigit ((unsigned char)*at))
        return false;
    for (; isdigit ((unsigned char)*at); at++) {
        if (value > INT64_MAX / (20 * US_PER_S))
            return false;
        value = value * 10 + (*at - '0');
    }
    value *= US_PER_S;
    if (*at == '.') {
        int64_t unit = US_PER_S / 10;
        for (at++; isdigit ((unsigned char)*at); at++) {
            value += unit * (*at - '0');
            unit /= 10;
        }
    }
    *us_out = negative ? -value : value;
    return *at == 0;
}

int line_error (const struct workload_reader *r, struct err *err, const char *fmt, ...)
{
    char text[ERR_TEXT_MAX];
    va_list ap;
    va_start (ap, fmt);
    vsnprintf (text, sizeof text, fmt, ap);
    va_end (ap);
    return err_set (err, ERR_INVALID, "%s line %llu: %s", linereader_path (r->lines),
                    (unsigned long long)linereader_number (r->lines), text);
}

bool workload_place (struct workload_reader *r)
{
    r->place++;
    bool inside = r->place >= r->range.first && r->place <= r->range.last;
    r->workload->read += inside;
    return inside;
}

void workload_add (struct workload_reader *r, const struct workload_job *job)
{
    struct workload *w = r->workload;
    if (w->count == r->cap) {
        r->cap = r->cap ? r->cap * 2 : 4096;
        w->job = mem_resize (w->job, r->cap * sizeof w->job[0]);
    }
    w->job[w->count++] = *job;
}

void workload_used (struct workload_job *job, double procs)
{
    job->used_known = true;
    job->used_micro = (int64_t)((procs < job->procs ? procs : job->procs) * 1e6 + .5);
}

void workload_skip (struct workload_reader *r, enum workload_skip reason)
{
    r->workload->skipped[reason]++;
}

int workload_constraint (struct workload *w, const char *text, uint32_t *number_out,
                         struct err *err)
{
    for (uint32_t i = 0; i < w->constraint_count; i++) {
        if (strcmp (w->constraint[i], text) == 0) {
            *number_out = i;
            return 0;
        }
    }
    if (w->constraint_count == FEATURES_MAX)
        return err_set (err, ERR_LIMIT, "jobs ask for more than %d kinds of nodes", FEATURES_MAX);
    *number_out = w->constraint_count;
    w->constraint[w->constraint_count++] = arena_strdup (w->arena, text);
    return 0;
}

static int job_order (const void *a, const void *b)
{
    const struct workload_job *x = a, *y = b;
    if (x->submit != y->submit)
        return x->submit < y->submit ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

static int number_order (const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Numbers break ties, so each may be there once. */
static int numbers_check (const struct workload *w, const char *path, struct err *err)
{
    uint64_t *number = mem_alloc ((w->count + 1) * sizeof number[0]);
    bool ascending = true;
    for (uint64_t i = 0; i < w->count; i++) {
        number[i] = w->job[i].number;
        ascending = ascending && (i == 0 || number[i] > number[i - 1]);
    }
    int rc = 0;
    if (!ascending)
        qsort (number, w->count, sizeof number[0], number_order);
    for (uint64_t i = 1; i < w->count && !rc; i++) {
        if (number[i] == number[i - 1])
            rc = err_set (err, ERR_INVALID, "%s: job number %llu is there twice", path,
                          (unsigned long long)number[i]);
    }
    free (number);
    return rc;
}

static uint32_t fields_count (const char *line)
{
    static const char blanks[] = " \t";
    uint32_t count = 0;
    for (line += strspn (line, blanks); *line; count++) {
        line += strcspn (line, blanks);
        line += strspn (line, blanks);
    }
    return count;
}

static int lines_read (struct workload_reader *r, struct err *err)
{
    bool maui = false, known = false;
    for (;;) {
        char *line;
        int rc = linereader_next (r->lines, &line, err);
        if (rc || !line)
            return rc;
        while (*line == ' ' || *line == '\t')
            line++;
        if (*line == ';')
            swf_header (r, line);
        if (!*line || *line == ';' || *line == '#')
            continue;
        bool version = strncmp (line, "VERSION", 7) == 0;
        if (!known) {
            maui = version || fields_count (line) == MAUITRACE_FIELDS;
            known = true;
            if (!maui && !isdigit ((unsigned char)*line))
                return line_error (r, err,
                                   "neither a job of the Standard Workload Format (%d numbers) nor "
                                   "one of Maui's workload trace (%d fields)",
                                   SWF_FIELDS, MAUITRACE_FIELDS);
        }
        if (maui && version)
            continue;
        rc = maui ? mauitrace_line (r, line, err) : swf_line (r, line, err);
        if (rc)
            return rc;
        if (r->place >= r->range.last)
            return 0;
    }
}

struct workload *workload_read (const char *path, const struct workload_range *range,
                                struct cred_names *names, struct err *err)
{
    struct workload_reader r = {.range = *range};
    r.lines = linereader_open (path, err);
    if (!r.lines)
        return NULL;
    struct workload *w = mem_zero (1, sizeof *w);
    w->arena = arena_create (0);
    w->names = names;
    r.workload = w;
    int rc = lines_read (&r, err);
    if (!rc)
        rc = numbers_check (w, path, err);
    if (!rc && w->count == 0)
        rc = err_set (err, ERR_INVALID, "%s: no job that could run%s", path,
                      w->read ? "" : " (no job at all in the range)");
    linereader_close (r.lines);
    if (rc) {
        workload_destroy (w);
        return NULL;
    }
    qsort (w->job, w->count, sizeof w->job[0], job_order);
    return w;
}

void workload_destroy (struct workload *w)
{
    if (!w)
        return;
    arena_destroy (w->arena);
    free (w->job);
    free (w);
}

/* --- machine ----------------------------------------------------------------------------- */

struct machine *machine_uniform (uint32_t nodes, uint32_t procs_per_node, struct err *err)
{
    if (nodes < 1 || nodes > NODES_MAX) {
        err_set (err, ERR_INVALID, "%u nodes: from 1 to %d are possible", nodes, NODES_MAX);
        return NULL;
    }
    struct arena *arena = arena_create (0);
    struct machine *m = arena_new (arena, struct machine);
    m->arena = arena;
    m->group = arena_new (arena, struct machine_group);
    m->group_count = 1;
    m->node_count = nodes;
    m->procs = (int64_t)nodes * procs_per_node;
    m->group->copies = nodes;
    m->group->spec.configured.v[RES_PROCS] = (int32_t)procs_per_node;
    m->group->spec.partition = 1;
    m->group->spec.speed_ppm = 1000000;
    return m;
}

void machine_destroy (struct machine *m)
{
    if (m)
        arena_destroy (m->arena);
}

char *machine_classes (const struct machine *m, const struct node_spec *node,
                       const struct cred_names *names)
{
    struct strbuf b = STRBUF_INIT;
    bool counted = false;
    for (uint32_t c = 0; c < m->gres_kinds; c++)
        counted = counted || node->configured.v[RES_GRES0 + c] != node->configured.v[RES_PROCS];
    for (uint32_t c = 0; counted && c < m->gres_kinds; c++)
        if (node->configured.v[RES_GRES0 + c] > 0)
            strbuf_printf (&b, "%s%s:%d", b.len ? "," : "",
                           strtab_name (names->tab[CRED_CLASS], m->gres_class[c]),
                           node->configured.v[RES_GRES0 + c]);
    if (b.len)
        return strbuf_steal (&b);
    strbuf_free (&b);
    return NULL;
}

static uint32_t tasks_on (const struct node_spec *node, const struct req *req)
{
    for (size_t i = 0; i < sizeof req->features.word / sizeof req->features.word[0]; i++) {
        if (req->features.word[i] & ~node->features.word[i])
            return 0;
    }
    int32_t most = INT32_MAX;
    for (int k = 0; k < RES_MAX; k++) {
        if (req->task.v[k] > 0 && node->configured.v[k] / req->task.v[k] < most)
            most = node->configured.v[k] / req->task.v[k];
    }
    if (req->tasks_per_node)
        return most >= (int32_t)req->tasks_per_node ? req->tasks_per_node : 0;
    return (uint32_t)most;
}

static bool fits (const struct machine *m, const struct req *req)
{
    uint64_t tasks = 0;
    for (uint32_t g = 0; g < m->group_count; g++)
        tasks += (uint64_t)m->group[g].copies * tasks_on (&m->group[g].spec, req);
    return tasks >= req->tasks;
}

void workload_fit (struct workload *w, const struct machine *m)
{
    uint64_t kept = 0;
    for (uint64_t i = 0; i < w->count; i++) {
        struct workload_job job = w->job[i];
        if (!m->described) {
            memset (&job.req.features, 0, sizeof job.req.features);
            for (int k = RES_MEM_MB; k < RES_MAX; k++)
                job.req.task.v[k] = 0;
        }
        for (uint32_t c = 0; c < m->gres_kinds; c++) {
            if (m->gres_class[c] == job.cred[CRED_CLASS])
                job.req.task.v[RES_GRES0 + c] = 1;
        }
        if (job.procs > m->procs)
            w->skipped[SKIP_TOO_LARGE]++;
        else if (!fits (m, &job.req))
            w->skipped[SKIP_NO_NODES]++;
        else
            w->job[kept++] = job;
    }
    w->count = kept;
}

int workload_range_parse (const char *text, struct workload_range *out, struct err *err)
{
    char first[QUANTITY_TEXT_MAX];
    *out = (struct workload_range){1, UINT64_MAX};
    if (!text)
        return 0;
    const char *dots = strstr (text, "..");
    size_t len = dots ? (size_t)(dots - text) : strlen (text);
    if (len >= sizeof first)
        return err_set (err, ERR_INVALID, "%.40s: a range is A..B", text);
    memcpy (first, text, len);
    first[len] = 0;
    if (!dots || (len && uint_parse (first, "the first job", 1, UINT64_MAX, &out->first, NULL)) ||
        (dots[2] && uint_parse (dots + 2, "the last job", 1, UINT64_MAX, &out->last, NULL)) ||
        out->first > out->last)
        return err_set (err, ERR_INVALID,
                        "%.40s: a range is A..B, places in the log counted from 1", text);
    return 0;
}
