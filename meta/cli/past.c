/* Makes jobs of the bank's records of runs: those with one id are one job, each of its components with its last run. Called
 * by jobs. */
#include "meta/cli/past.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "proto/nui/v1/bank.pb-c.h"

enum { PAST_PAGE = 1000 };

typedef Nui__Meta__V1__JobStatus Status;
typedef Nui__Meta__V1__ComponentStatus Component;
typedef Nui__Bank__V1__JobRecord Record;

/* By id; of those that the metascheduler has, without its index. */
struct past_job {
    UT_hash_handle hh;
    Status *status; /* NULL: it is on another page */
    char id[];
};

struct past {
    struct past_job *jobs;
    const char *user; /* NULL: whoever it is */
    Nui__Meta__V1__JobsReply *page;
    size_t cap;
};

static struct past_job *past_find (struct past *past, const char *id, size_t len)
{
    struct past_job *job = NULL;
    HASH_FIND (hh, past->jobs, id, len, job);
    return job;
}

static struct past_job *past_add (struct past *past, const char *id, size_t len)
{
    struct past_job *job = calloc (1, sizeof *job + len + 1);
    assert (job);
    memcpy (job->id, id, len);
    HASH_ADD_KEYPTR (hh, past->jobs, job->id, len, job);
    return job;
}

static size_t past_base (const char *id)
{
    return strcspn (id, "[");
}

static char *past_text (const char *text)
{
    char *copy = strdup (text);
    assert (copy);
    return copy;
}

static Status *past_status (struct past *past, const Record *record)
{
    Nui__Meta__V1__JobsReply *page = past->page;
    Status *s = calloc (1, sizeof *s);
    if (page->n_jobs == past->cap) {
        past->cap = past->cap ? 2 * past->cap : 64;
        page->jobs = realloc (page->jobs, past->cap * sizeof *page->jobs);
    }
    assert (s && page->jobs);
    nui__meta__v1__job_status__init (s);
    s->grid_job_id = past_text (record->grid_job_id);
    s->submitter = past_text (record->user);
    s->account = past_text (record->account);
    s->start_us = record->start_us;
    page->jobs[page->n_jobs++] = s;
    return s;
}

static Component *past_component (Status *s, const char *name)
{
    for (size_t i = 0; i < s->n_components; i++)
        if (strcmp (s->components[i]->name, name) == 0)
            return s->components[i];
    Component *c = calloc (1, sizeof *c);
    s->components = realloc (s->components, (s->n_components + 1) * sizeof *s->components);
    assert (c && s->components);
    nui__meta__v1__component_status__init (c);
    c->name = past_text (name);
    c->site = past_text ("");
    c->job = calloc (1, sizeof *c->job);
    assert (c->job);
    nui__local__v1__job_info__init (c->job);
    s->components[s->n_components++] = c;
    return c;
}

/* A run: of a job of the grid, that the metascheduler did not tell of. */
static void past_take (struct past *past, const Record *record)
{
    const char *id = record->grid_job_id;
    if (!*id || (past->user && strcmp (record->user, past->user) != 0) ||
        past_find (past, id, past_base (id)))
        return;
    /* Another key than any id without an index, which is how those of the other pages are listed. */
    char key[256];
    int len = snprintf (key, sizeof key, "run %s", id);
    if (len < 0 || (size_t)len >= sizeof key)
        return;
    struct past_job *job = past_find (past, key, (size_t)len);
    if (!job) {
        job = past_add (past, key, (size_t)len);
        job->status = past_status (past, record);
    }
    Status *s = job->status;
    Component *c = past_component (s, record->component);
    free (c->site);
    c->site = past_text (record->site);
    c->job->procs = (uint32_t)record->procs;
    s->start_us = record->start_us < s->start_us ? record->start_us : s->start_us;
    s->end_us = record->end_us > s->end_us ? record->end_us : s->end_us;
}

static int past_ask (struct cli_context *ctx, const struct job_filter *filter, time_us forgotten,
                     struct past *past, struct err *err)
{
    Nui__Bank__V1__JobListRequest request = NUI__BANK__V1__JOB_LIST_REQUEST__INIT;
    struct rpcclient *bank = cli_bank (ctx, err);
    size_t n = PAST_PAGE;
    request.from_us = filter->period.from;
    request.to_us = forgotten + 1;
    request.limit = PAST_PAGE;
    while (n == PAST_PAGE) {
        ProtobufCMessage *message = NULL;
        if (!bank ||
            rpcclient_call (bank, &nui__bank__v1__bank__descriptor, "JobList", &request.base,
                            GRID_CALL_TIMEOUT_S * US_PER_S, true, &message, err) < 0)
            return err->code;
        const Nui__Bank__V1__JobListReply *reply = (const Nui__Bank__V1__JobListReply *)message;
        n = reply->n_jobs;
        for (size_t i = 0; i < n; i++) {
            request.after = reply->jobs[i]->number;
            past_take (past, reply->jobs[i]);
        }
        protobuf_c_message_free_unpacked (message, NULL);
    }
    return 0;
}

static void past_known (struct past *past, const struct job_pages *pages)
{
    for (uint32_t p = 0; p < pages->count; p++)
        for (size_t i = 0; i < pages->page[p]->n_jobs; i++) {
            const char *id = pages->page[p]->jobs[i]->grid_job_id;
            if (!past_find (past, id, past_base (id)))
                past_add (past, id, past_base (id));
        }
}

int past_read (struct cli_context *ctx, const struct job_filter *filter, bool all,
               time_us forgotten, struct job_pages *pages, uint64_t *found_out, struct err *err)
{
    struct past past = {0};
    struct past_job *job, *next;
    char uri[PRINCIPAL_URI_MAX];
    struct tlsid *me = cli_identity (ctx, err);
    *found_out = 0;
    if (!me)
        return err->code;
    if (pages->count == JOB_PAGES_MAX)
        return err_set (err, ERR_LIMIT, "so many jobs were looked at already");
    past.user = all ? NULL : principal_uri (tlsid_self (me), uri);
    past.page = calloc (1, sizeof *past.page);
    assert (past.page);
    nui__meta__v1__jobs_reply__init (past.page);
    past_known (&past, pages);
    int rc = past_ask (ctx, filter, forgotten, &past, err);
    for (size_t i = 0; i < past.page->n_jobs; i++)
        *found_out += job_filter_wants (filter, past.page->jobs[i]);
    pages->page[pages->count++] = past.page;
    pages->found += *found_out;
    HASH_ITER (hh, past.jobs, job, next) {
        HASH_DEL (past.jobs, job);
        free (job);
    }
    return rc;
}
