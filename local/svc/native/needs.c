/* native_needs: what a job of the resource manager's own needs, in our terms. */
#include <stdlib.h>
#include <string.h>

#include "local/svc/job/jobspec.h"
#include "local/svc/native/native.h"
#include "local/svc/svc_i.h"
#include "proto/base/hostlist.h"
#include "proto/base/text.h"

const char native_component[] = "main";

/* --- what cannot be said ------------------------------------------------------------------ */

static void misfit_set (struct native_misfit *m, const char *fmt, ...)
    __attribute__ ((format (printf, 2, 3)));
static void misfit_set (struct native_misfit *m, const char *fmt, ...)
{
    va_list ap;
    if (*m->text)
        return;
    va_start (ap, fmt);
    text_vprintf (m->text, sizeof m->text, fmt, ap);
    va_end (ap);
}

/* "a&b": all of them. Alternatives and counts are Slurm's own. */
static void features_fill (const struct rm_native *n, struct arena *arena,
                           Nui__Common__V1__Req *req, struct native_misfit *misfit)
{
    if (!*n->features)
        return;
    if (strpbrk (n->features, "|[]()*")) {
        misfit_set (misfit,
                    "asks for the features '%.100s': only features joined by & are understood",
                    n->features);
        return;
    }
    char *text = arena_strdup (arena, n->features), *save = NULL;
    req->features = arena_array (arena, strlen (text) / 2 + 2, sizeof *req->features);
    for (char *w = strtok_r (text, "&,", &save); w; w = strtok_r (NULL, "&,", &save))
        req->features[req->n_features++] = w;
}

/* --- resources ---------------------------------------------------------------------------- */

/* "gpu:2,gpu.tesla:2" → name and count, one after the other; false at the end. */
static bool gres_next (const char **at, char name[STORE_NAME_MAX], uint32_t *count)
{
    int used = 0;
    while (**at == ',')
        (*at)++;
    if (sscanf (*at, "%63[^:,]:%u%n", name, count, &used) != 2)
        return false;
    *at += used;
    return true;
}

/* Of each node, of each task, of the whole job: counted for a task of the req, which is a node's share
 * where the number of nodes is known. */
static void gres_fill (const struct rm_native *n, uint32_t nodes, struct arena *arena,
                       Nui__Common__V1__Req *req, struct native_misfit *misfit)
{
    const char *const list[] = {n->gres_per_node, n->gres_per_task, n->gres_per_job};
    uint32_t cap = 0;
    for (int kind = 0; kind < 3; kind++)
        cap += (uint32_t)strlen (list[kind]) / 2 + 1;
    req->gres = arena_array (arena, cap, sizeof *req->gres);
    for (int kind = 0; kind < 3; kind++) {
        char name[STORE_NAME_MAX];
        uint32_t count;
        for (const char *at = list[kind]; gres_next (&at, name, &count);) {
            uint32_t tasks = n->tasks ? n->tasks : 1;
            if (kind == 1 && nodes > 0)
                count *= (tasks + nodes - 1) / nodes;
            if (kind == 2 && (nodes == 0 || count % nodes != 0)) {
                misfit_set (misfit,
                            "asks for %u %.60s of the whole job (--gpus), which only a number of "
                            "nodes (-N) that divides them can place",
                            count, name);
                return;
            }
            if (kind == 2)
                count /= nodes;
            Nui__Common__V1__GenericResource *g =
                arena_new (arena, Nui__Common__V1__GenericResource);
            nui__common__v1__generic_resource__init (g);
            g->count = count;
            g->name = arena_strdup (arena, name);
            req->gres[req->n_gres++] = g;
        }
    }
}

/* "matlab:2,ansys". */
static void licences_fill (const struct rm_native *n, struct arena *arena,
                           Nui__Common__V1__Component *c, struct native_misfit *misfit)
{
    char *text = arena_strdup (arena, n->licences), *save = NULL;
    if (strchr (text, '|')) {
        misfit_set (misfit, "asks for the licences '%.100s': alternatives are not understood",
                    text);
        return;
    }
    c->licences = arena_array (arena, strlen (text) / 2 + 2, sizeof *c->licences);
    for (char *w = strtok_r (text, ",; ", &save); w; w = strtok_r (NULL, ",; ", &save)) {
        Nui__Common__V1__GenericResource *g = arena_new (arena, Nui__Common__V1__GenericResource);
        char *count = strpbrk (w, ":=");
        nui__common__v1__generic_resource__init (g);
        g->count = count ? (uint32_t)strtoul (count + 1, NULL, 10) : 1;
        if (count)
            *count = 0;
        g->name = w;
        c->licences[c->n_licences++] = g;
    }
}

static uint32_t ceil_div (uint64_t a, uint64_t b)
{
    return (uint32_t)((a + b - 1) / b);
}

static int64_t largest_node (const struct svc *svc)
{
    int64_t largest = 0;
    for (uint32_t i = 0; i < svc->node_count; i++) {
        struct node_view view;
        if (cluster_node_get (svc->cluster, (struct node_id){i}, &view, NULL) == 0 &&
            view.spec.configured.v[RES_PROCS] > largest)
            largest = view.spec.configured.v[RES_PROCS];
    }
    return largest;
}

/* Of how many nodes it is to have a share; 0: of any number. `named` are those of -w. */
static uint32_t nodes_wanted (const struct svc *svc, const struct rm_native *n, uint32_t named)
{
    uint32_t nodes = n->nodes_max && n->nodes_max == n->nodes_min ? n->nodes_max : 0;
    if (nodes == 0 && n->nodes_min > 1)
        nodes = n->nodes_min;
    if (nodes == 0 && n->tasks_per_node && n->tasks > n->tasks_per_node)
        nodes = ceil_div (n->tasks, n->tasks_per_node);
    /* What is asked of each node needs nodes: one, where the job fits on one. */
    bool per_node =
        n->memory_per_node_mb > 0 || *n->gres_per_node || *n->gres_per_job || n->exclusive;
    if (nodes == 0 && per_node && n->procs <= largest_node (svc))
        nodes = 1;
    return nodes < named ? named : nodes;
}

/* Whole shares of nodes where their number is said, else tasks that may be anywhere. */
static void req_fill (const struct rm_native *n, uint32_t nodes, Nui__Common__V1__Req *req)
{
    uint32_t procs = n->procs ? n->procs : 1;
    req->memory_mb = n->memory_per_node_mb;
    if (nodes > 0) {
        req->tasks = nodes;
        req->tasks_per_node = 1;
        req->procs_per_task = ceil_div (procs, nodes);
        if (n->procs_per_node_min > req->procs_per_task)
            req->procs_per_task = n->procs_per_node_min;
    } else {
        req->tasks = n->tasks && procs % n->tasks == 0 ? n->tasks : procs;
        req->procs_per_task = procs / req->tasks;
    }
    if (!req->memory_mb)
        req->memory_mb = n->memory_per_proc_mb * req->procs_per_task;
}

/* --- nodes by name ------------------------------------------------------------------------ */

/* -w and -x. A list of nodes that the core knows, 0: none. */
struct named {
    uint32_t count;  /* of -w */
    uint32_t hosts;  /* of -w */
    uint32_t others; /* neither of -w nor of -x, where either is said */
};

static int named_read (struct svc *svc, const char *text, bool *in, struct node_id *list,
                       uint32_t *count, struct native_misfit *misfit)
{
    struct err err = {0};
    struct arena *arena = arena_create (0);
    const char **name;
    uint32_t n;
    int rc = hostlist_expand (text, arena, &name, &n, &err);
    for (uint32_t i = 0; rc == 0 && i < n; i++) {
        struct node_id id;
        if (!svc->place.node_find (svc->place.self, name[i], &id)) {
            if (list)
                rc = err_set (&err, ERR_NOT_FOUND, "asks for the node %.60s, which is not here",
                              name[i]);
        } else if (!in[id.v]) {
            in[id.v] = true;
            if (list)
                list[(*count)++] = id;
        }
    }
    arena_destroy (arena);
    if (rc != 0)
        misfit_set (misfit, "%s", err.text);
    return rc;
}

static void named_find (struct svc *svc, const struct rm_native *n, struct arena *arena,
                        struct named *out, struct native_misfit *misfit)
{
    struct err err = {0};
    *out = (struct named){0};
    if (!*n->hosts && !*n->hosts_excluded)
        return;
    bool *in = arena_array (arena, svc->node_count + 1, sizeof *in);
    struct node_id *list = arena_array (arena, svc->node_count + 1, sizeof *list);
    uint32_t rest = 0;
    if (named_read (svc, n->hosts, in, list, &out->count, misfit) != 0 ||
        named_read (svc, n->hosts_excluded, in, NULL, NULL, misfit) != 0)
        return;
    int rc = out->count > 0
                 ? cluster_hosts_define (svc->cluster, list, out->count, &out->hosts, &err)
                 : 0;
    for (uint32_t i = 0; i < svc->node_count; i++)
        if (!in[i])
            list[rest++] = (struct node_id){i};
    if (rc == 0)
        rc = cluster_hosts_define (svc->cluster, list, rest, &out->others, &err);
    if (rc != 0)
        misfit_set (misfit, "%s", err.text);
}

/* --- the job ------------------------------------------------------------------------------ */

/* The Job, packed in the arena. With -w and more nodes than that names, these are a req of their own. */
static size_t job_pack (struct svc *svc, const struct rm_native *n, const struct named *named,
                        struct arena *arena, uint8_t **bytes_out, struct native_misfit *misfit)
{
    Nui__Common__V1__Job job = NUI__COMMON__V1__JOB__INIT;
    Nui__Common__V1__Component c = NUI__COMMON__V1__COMPONENT__INIT, *components[] = {&c};
    Nui__Common__V1__Req req = NUI__COMMON__V1__REQ__INIT, more, *reqs[] = {&req, &more};
    const char *identity = gridmap_identity (svc->gridmap, n->user);
    uint32_t nodes = nodes_wanted (svc, n, named->count);
    req_fill (n, nodes, &req);
    features_fill (n, arena, &req, misfit);
    gres_fill (n, nodes, arena, &req, misfit);
    licences_fill (n, arena, &c, misfit);
    more = req;
    c.name = (char *)native_component;
    c.n_reqs = 1;
    c.reqs = reqs;
    if (named->count > 0 && named->count < nodes) {
        req.tasks = named->count;
        more.tasks = nodes - named->count;
        c.n_reqs = 2;
    }
    c.walltime_us = n->walltime;
    c.class_ = (char *)n->class_name;
    c.qos = (char *)n->qos;
    job.grid = (char *)daemon_grid (svc->daemon);
    job.submitter = identity ? (char *)identity : (char *)"";
    job.name = (char *)n->name;
    job.account = (char *)n->account;
    job.created_us = n->submit;
    job.not_before_us = n->begin;
    job.n_components = 1;
    job.components = components;
    size_t len = nui__common__v1__job__get_packed_size (&job);
    *bytes_out = arena_alloc (arena, len + 1);
    nui__common__v1__job__pack (&job, *bytes_out);
    return len;
}

int native_spec (struct svc *svc, const struct rm_native *n, struct arena *arena,
                 struct jobspec *spec, uint8_t **envelope_out, size_t *len_out,
                 struct native_misfit *misfit, struct err *err)
{
    static const struct rm_native nothing = {.name = "",
                                             .group = "",
                                             .account = "",
                                             .qos = "",
                                             .class_name = "",
                                             .features = "",
                                             .gres_per_node = "",
                                             .gres_per_task = "",
                                             .gres_per_job = "",
                                             .licences = "",
                                             .hosts = "",
                                             .hosts_excluded = "",
                                             .procs = 1};
    struct err why = {0};
    struct named named;
    Nui__Common__V1__Envelope envelope = NUI__COMMON__V1__ENVELOPE__INIT;
    named_find (svc, n, arena, &named, misfit);
    for (int attempt = 0; attempt < 2; attempt++) {
        struct rm_native plain = nothing;
        plain.rm_id = n->rm_id;
        plain.submit = n->submit;
        plain.user = n->user;
        plain.walltime = n->walltime;
        if (attempt)
            named = (struct named){0};
        envelope.body.len =
            job_pack (svc, attempt ? &plain : n, &named, arena, &envelope.body.data, misfit);
        Nui__Common__V1__Job *job =
            nui__common__v1__job__unpack (NULL, envelope.body.len, envelope.body.data);
        if (!job)
            return err_set (err, ERR_INTERNAL, "job %s of the resource manager cannot be packed",
                            n->rm_id);
        if (jobspec_unsigned (svc, job, n->user, spec, &why) == 0)
            break;
        misfit_set (misfit, "%s", why.text);
        if (attempt == 1)
            return err_set (err, why.code, "%s", why.text);
    }
    if (spec->never_fits)
        misfit_set (misfit, "%s", spec->never_text);
    for (uint32_t i = 0; i < spec->req_count; i++) {
        spec->reqs[i].exclusive = n->exclusive;
        spec->reqs[i].hosts = i == 0 && named.count > 0 ? named.hosts : named.others;
    }
    *len_out = nui__common__v1__envelope__get_packed_size (&envelope);
    *envelope_out = arena_alloc (arena, *len_out + 1);
    nui__common__v1__envelope__pack (&envelope, *envelope_out);
    return 0;
}
