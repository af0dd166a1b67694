/* Jobs that have ended, out of the history: what is said of them once the queue has forgotten their
 * credentials, and all there is once they are purged. */
#include <stdlib.h>
#include <string.h>

#include "local/store/history.h"
#include "local/svc/admin/admin.h"
#include "local/svc/svc_i.h"
#include "proto/job/element.h"

static void record_fill (const struct history_job *h, struct store_job *out)
{
    *out = (struct store_job){.number = h->number,
                              .state = h->state,
                              .procs = h->procs,
                              .walltime = h->walltime,
                              .submit = h->submit,
                              .start = h->start,
                              .end = h->end,
                              .exit_code = h->exit_code,
                              .incarnation = h->starts,
                              .backfilled = h->backfilled};
    out->submitter = strdup (h->submitter);
    snprintf (out->grid_job_id, sizeof out->grid_job_id, "%s", h->grid_job_id);
    snprintf (out->local_account, sizeof out->local_account, "%s", h->user);
    snprintf (out->pay_account, sizeof out->pay_account, "%s", h->account);
    snprintf (out->reason_code, sizeof out->reason_code, "%s", h->reason_code);
}

int admin_purged_find (struct svc *svc, const char *id, struct store_job *out, struct err *err)
{
    struct element_id named = {.number = 0};
    struct history_job h;
    struct arena *arena = arena_create (0);
    bool bare = *id && strspn (id, "0123456789") == strlen (id);
    int rc = bare ? uint_parse (id, "job", 1, INT64_MAX, &named.number, err)
                  : element_id_parse (id, &named, err);
    if (rc == 0 && named.number <= INT64_MAX && !named.range_count &&
        (bare || strcmp (named.prefix, svc->site) == 0))
        rc = history_of_job (svc->store, named.number, arena, &h, err);
    else if (rc == 0)
        rc = history_of_grid_job (svc->store, id, arena, &h, err);
    if (rc == 0)
        record_fill (&h, out);
    arena_destroy (arena);
    return rc;
}

/* "a:b" */
static void hosts_fill (const char *hosts, struct arena *arena, Nui__Local__V1__JobReq *req)
{
    char *text = arena_strdup (arena, hosts), *save = NULL;
    size_t cap = 1;
    for (const char *p = text; *p; p++)
        cap += *p == ':';
    req->nodes = arena_array (arena, cap, sizeof *req->nodes);
    for (char *w = strtok_r (text, ":", &save); w; w = strtok_r (NULL, ":", &save)) {
        Nui__Local__V1__NodeTasks *node = arena_new (arena, Nui__Local__V1__NodeTasks);
        nui__local__v1__node_tasks__init (node);
        node->node = w; /* how many tasks each had is not kept */
        req->nodes[req->n_nodes++] = node;
    }
}

static void words_fill (const char *list, struct arena *arena, Nui__Local__V1__JobReq *req)
{
    char *text = arena_strdup (arena, list), *save = NULL;
    size_t cap = 1;
    for (const char *p = text; *p; p++)
        cap += *p == ',';
    req->features = arena_array (arena, cap, sizeof *req->features);
    for (char *w = strtok_r (text, ",", &save); w; w = strtok_r (NULL, ",", &save))
        req->features[req->n_features++] = w;
}

static Nui__Local__V1__JobReq *req_of (const struct history_job *h, struct arena *arena)
{
    Nui__Local__V1__JobReq *r = arena_new (arena, Nui__Local__V1__JobReq);
    nui__local__v1__job_req__init (r);
    r->tasks = h->tasks;
    r->tasks_per_node = h->tasks_per_node;
    r->procs = (uint32_t)h->task_procs;
    r->memory_mb = h->mem_mb;
    r->swap_mb = h->swap_mb;
    r->disk_mb = h->disk_mb;
    words_fill (h->features, arena, r);
    hosts_fill (h->hosts, arena, r);
    return r;
}

void admin_ended_fill (struct svc *svc, uint64_t number, struct arena *arena,
                       Nui__Local__V1__JobDetail *out)
{
    struct history_job h;
    if (history_of_job (svc->store, number, arena, &h, NULL) != 0)
        return; /* it ended before there was a history, or longer ago than HISTORYTIME */
    out->job->group = (char *)h.group;
    out->job->class_ = (char *)h.class_name;
    out->job->qos = (char *)h.qos;
    out->job->eligible_us = h.eligible;
    out->job->backfilled = h.backfilled;
    out->bypass = h.bypass;
    out->reqs = arena_array (arena, 1, sizeof *out->reqs);
    out->reqs[0] = req_of (&h, arena);
    out->n_reqs = 1;
}
