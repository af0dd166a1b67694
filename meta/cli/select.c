/* Which jobs a command means: filters, pages of jobs, and ids made of what was found. Called by jobs, status, restage and
 * act.c. */
#include "meta/cli/select.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "proto/job/element.h"

enum { PAGE = 500, RANGES_MAX = 40, ID_TEXT_MAX = 1000 };

/* ---- filters */

const char *job_user_name (const char *uri)
{
    const char *slash = strrchr (uri, '/');
    return slash ? slash + 1 : uri;
}

static bool listed (const char *list, const char *word)
{
    size_t len = strlen (word);
    for (const char *at = list; at; at = strchr (at, ',')) {
        at += *at == ',';
        if (strncasecmp (at, word, len) == 0 && (at[len] == ',' || !at[len]))
            return true;
    }
    return false;
}

static bool pattern_listed (const char *list, const char *word)
{
    bool found = false;
    char *copy = strdup (list), *rest = copy;
    if (!copy)
        abort ();
    while (rest && !found)
        found = fnmatch (strsep (&rest, ","), word, 0) == 0;
    free (copy);
    return found;
}

static bool at_site (const Nui__Meta__V1__JobStatus *s, const char *list)
{
    for (size_t i = 0; s->array && i < s->array->n_sites; i++)
        if (listed (list, s->array->sites[i]))
            return true;
    for (size_t i = 0; i < s->n_components; i++)
        if (*s->components[i]->site && listed (list, s->components[i]->site))
            return true;
    return false;
}

/* Of an array any of it may be. */
static bool in_state (const Nui__Meta__V1__JobStatus *s, const char *list)
{
    for (size_t i = 0; s->array && i < s->array->n_counts; i++)
        if (listed (list, grid_state_name (s->array->counts[i]->state)))
            return true;
    return !s->array && listed (list, grid_state_name (s->state));
}

bool job_filter_wants (const struct job_filter *filter, const Nui__Meta__V1__JobStatus *s)
{
    const struct cli_period *period = &filter->period;
    return (!period->from || !s->end_us || s->end_us >= period->from) &&
           (!period->to || (s->submit_us ? s->submit_us : s->start_us) < period->to) &&
           (!filter->state || in_state (s, filter->state)) &&
           (!filter->site || at_site (s, filter->site)) &&
           (!filter->name || fnmatch (filter->name, s->name, 0) == 0) &&
           (!filter->account || listed (filter->account, s->account)) &&
           (!filter->user || pattern_listed (filter->user, job_user_name (s->submitter)));
}

int job_filter_check (const char *command, const struct job_filter *filter)
{
    char copy[256], *rest = copy, known[256] = "";
    if (!filter->state)
        return CLI_OK;
    snprintf (copy, sizeof copy, "%s", filter->state);
    for (int k = NUI__META__V1__GRID_JOB_STATE__GRID_PENDING;
         k <= NUI__META__V1__GRID_JOB_STATE__GRID_REFUSED; k++)
        snprintf (known + strlen (known), sizeof known - strlen (known), "%s%s", *known ? "," : "",
                  grid_state_name ((Nui__Meta__V1__GridJobState)k));
    while (rest) {
        const char *word = strsep (&rest, ",");
        if (!listed (known, word) || !*word)
            return cli_usage (command, "--state: there is no state '%s'; there are %s", word,
                              known);
    }
    return CLI_OK;
}

/* ---- pages */

int job_pages_read (struct cli_context *ctx, Nui__Meta__V1__JobsRequest *request,
                    const struct job_filter *filter, uint64_t wanted, struct job_pages *pages,
                    struct err *err)
{
    request->limit = PAGE;
    for (pages->more = true; pages->more && pages->found < wanted;) {
        ProtobufCMessage *reply = NULL;
        if (pages->count == JOB_PAGES_MAX)
            return 0;
        if (grid_call (ctx, "Jobs", &request->base, &reply, err) < 0)
            return err->code;
        Nui__Meta__V1__JobsReply *page = (Nui__Meta__V1__JobsReply *)reply;
        pages->page[pages->count++] = page;
        for (size_t i = 0; i < page->n_jobs; i++)
            pages->found += job_filter_wants (filter, page->jobs[i]);
        request->before = page->first;
        pages->more = (page->more || page->n_jobs >= PAGE) && request->before > 1;
    }
    return 0;
}

void job_pages_free (struct job_pages *pages)
{
    for (uint32_t i = 0; i < pages->count; i++)
        nui__meta__v1__jobs_reply__free_unpacked (pages->page[i], NULL);
}

/* ---- ids of what was found */

struct found {
    int rank;
    uint64_t number;
    uint32_t index; /* UINT32_MAX: of no array */
};

struct finding {
    struct found *found;
    uint32_t count, cap;
};

static void finding_add (struct finding *f, enum select_order order,
                         const Nui__Meta__V1__JobStatus *s)
{
    struct element_id id;
    struct found found = {0, 0, UINT32_MAX};
    if (element_id_parse (s->grid_job_id, &id, NULL) < 0)
        return;
    found.number = id.number;
    if (id.range_count)
        (void)element_id_single (&id, &found.index);
    if (order == SELECT_WAITING_FIRST)
        found.rank = s->state == NUI__META__V1__GRID_JOB_STATE__GRID_PENDING  ? 0
                     : s->state == NUI__META__V1__GRID_JOB_STATE__GRID_QUEUED ? 1
                                                                              : 2;
    if (f->count == f->cap) {
        f->cap = f->cap ? 2 * f->cap : 256;
        f->found = realloc (f->found, f->cap * sizeof *f->found);
        if (!f->found)
            abort ();
    }
    f->found[f->count++] = found;
}

static int found_compare (const void *left, const void *right)
{
    const struct found *a = left, *b = right;
    return a->rank != b->rank       ? (a->rank > b->rank) - (a->rank < b->rank)
           : a->number != b->number ? (a->number > b->number) - (a->number < b->number)
                                    : (a->index > b->index) - (a->index < b->index);
}

/* How many of an array from that place on are named by one id. */
static uint32_t array_run (const struct finding *f, uint32_t at, enum select_order order,
                           uint32_t *index)
{
    uint32_t n = 0;
    for (uint32_t i = at;
         i < f->count && f->found[i].index != UINT32_MAX &&
         f->found[i].number == f->found[at].number && f->found[i].rank == f->found[at].rank;
         i++)
        index[n++] = f->found[i].index;
    return order == SELECT_EACH ? n > 0 : element_ranges_fit (index, n, RANGES_MAX);
}

/* The same job may have been found twice, by two operands or pages. */
static void finding_sort (struct finding *f)
{
    uint32_t kept = 0;
    if (f->count)
        qsort (f->found, f->count, sizeof *f->found, found_compare);
    for (uint32_t i = 0; i < f->count; i++)
        if (!kept || found_compare (&f->found[kept - 1], &f->found[i]) != 0)
            f->found[kept++] = f->found[i];
    f->count = kept;
}

static void finding_name (struct finding *f, enum select_order order, struct arena *arena,
                          struct selection *out)
{
    uint32_t *index = arena_array (arena, f->count + 1u, sizeof *index);
    finding_sort (f);
    out->id = arena_array (arena, f->count + 1u, sizeof *out->id);
    out->jobs = f->count;
    for (uint32_t i = 0, n; i < f->count; i += n) {
        struct strbuf text = STRBUF_INIT;
        strbuf_printf (&text, "grid.%llu", (unsigned long long)f->found[i].number);
        n = array_run (f, i, order, index);
        if (n) {
            strbuf_printf (&text, "[");
            element_ranges_text (index, n, ID_TEXT_MAX, &text);
            strbuf_printf (&text, "]");
        } else {
            n = 1;
        }
        out->id[out->count++] = arena_strdup (arena, strbuf_text (&text));
        strbuf_free (&text);
    }
}

/* ---- finding */

/* All that are wanted of one operand, or of all jobs ("" for it). */
static int find_of (struct cli_context *ctx, const struct select_args *args, char *operand,
                    enum select_order order, bool ended, struct finding *f, struct err *err)
{
    Nui__Meta__V1__JobsRequest request = NUI__META__V1__JOBS_REQUEST__INIT;
    struct job_pages *pages = calloc (1, sizeof *pages);
    if (!pages)
        abort ();
    request.all_users = args->filter.user != NULL;
    request.ended = ended;
    request.elements = true;
    request.grid_job_id = operand;
    int rc = job_pages_read (ctx, &request, &args->filter, UINT64_MAX, pages, err);
    for (uint32_t p = 0; p < pages->count && rc == 0; p++)
        for (size_t i = 0; i < pages->page[p]->n_jobs; i++) {
            const Nui__Meta__V1__JobStatus *s = pages->page[p]->jobs[i];
            if (job_filter_wants (&args->filter, s) && (ended || !grid_state_ended (s->state)))
                finding_add (f, order, s);
        }
    if (rc == 0 && pages->more)
        rc = err_set (err, ERR_LIMIT, "more than %d jobs have to be looked at: name some of them",
                      JOB_PAGES_MAX * PAGE);
    job_pages_free (pages);
    free (pages);
    return rc;
}

static int select_found (struct cli_context *ctx, const char *command,
                         const struct select_args *args, char *const *operand, int operands,
                         enum select_order order, bool ended, struct arena *arena,
                         struct selection *out)
{
    struct finding finding = {0};
    struct err err;
    int rc = 0;
    err_clear (&err);
    if (!operands)
        rc = find_of (ctx, args, (char[]){""}, order, ended, &finding, &err);
    for (int i = 0; i < operands && rc == 0; i++)
        rc = find_of (ctx, args, operand[i], order, ended, &finding, &err);
    if (rc == 0) {
        out->filtered = true;
        finding_name (&finding, order, arena, out);
    }
    free (finding.found);
    if (rc == 0 && !out->count)
        rc = err_set (&err, ERR_NOT_FOUND, "no job%s is like that",
                      ended ? "" : " that has not ended");
    return rc ? cli_fail (command, &err) : CLI_OK;
}

int select_jobs (struct cli_context *ctx, const char *command, const struct select_args *args,
                 const struct cli_operands *operands, enum select_order order, bool ended,
                 struct arena *arena, struct selection *out)
{
    const struct job_filter *f = &args->filter;
    const bool filter = f->name || f->state || f->site || f->account || f->user;
    *out = (struct selection){0};
    if (args->all && operands->count)
        return cli_usage (command, "--all, or the names of jobs: not both");
    if (!filter && !args->all && !operands->count)
        return cli_usage (command,
                          "which jobs? name them, as in nui %s grid.42, or say --all, or what "
                          "they are like, as in --state Pending",
                          command);
    if (job_filter_check (command, f) != CLI_OK)
        return CLI_USAGE;
    out->id = arena_array (arena, (size_t)operands->count + 1, sizeof *out->id);
    for (int i = 0; i < operands->count; i++) {
        out->id[i] = arena_alloc (arena, GRID_ID_MAX);
        int code = grid_job_operand (ctx, command, operands->item[i], out->id[i], GRID_ID_MAX);
        if (code != CLI_OK)
            return code;
    }
    if (!filter && !args->all && order != SELECT_EACH) {
        out->count = (uint32_t)operands->count;
        return CLI_OK;
    }
    return select_found (ctx, command, args, out->id, operands->count, order, ended, arena, out);
}

int select_confirm (const char *command, const char *what, const struct select_args *args,
                    const struct selection *selection)
{
    char answer[64] = "";
    if (!selection->filtered || selection->jobs <= SELECT_ASK_ABOVE || args->yes)
        return CLI_OK;
    if (!isatty (STDIN_FILENO) || !isatty (STDERR_FILENO)) {
        fprintf (stderr, "nui %s: these are %u jobs: --yes says that all of them are meant\n",
                 command, selection->jobs);
        return CLI_USAGE;
    }
    fprintf (stderr, "nui %s: %s %u jobs? [y/N] ", command, what, selection->jobs);
    if (fgets (answer, sizeof answer, stdin) && strncasecmp (answer, "y", 1) == 0)
        return CLI_OK;
    fprintf (stderr, "nui %s: nothing was done\n", command);
    return CLI_FAILED;
}
