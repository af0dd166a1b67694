/* What a job asks for beside processors and time, for the bank's rates. */
#include <math.h>
#include <string.h>

#include "local/core/priority.h"
#include "local/svc/job.h"
#include "local/svc/job/charge.h"
#include "local/svc/job/jobspec.h"
#include "local/svc/nodes.h"
#include "local/svc/svc_i.h"

static void add_gres (struct bank_asked *out, const char *name, uint64_t count)
{
    size_t i = 0;
    while (i < out->message.n_gres && strcmp (out->gres[i].name, name) != 0)
        i++;
    if (i == BANK_GRES_MAX)
        return; /* more kinds than a job may ask for */
    if (i == out->message.n_gres) {
        nui__common__v1__generic_resource__init (&out->gres[i]);
        out->gres[i].name = (char *)name;
        out->item[i] = &out->gres[i];
        out->message.n_gres++;
    }
    uint64_t sum = out->gres[i].count + count;
    out->gres[i].count = sum > UINT32_MAX ? UINT32_MAX : (uint32_t)sum;
}

void bank_asked_fill (const struct svc *svc, const struct jobspec *spec, struct bank_asked *out)
{
    const Nui__Common__V1__Component *component = spec->component;
    struct resources have, dedicated;
    *out = (struct bank_asked){.message = NUI__BANK__V1__ASKED__INIT};
    out->message.gres = out->item;
    for (size_t i = 0; i < component->n_reqs; i++) {
        const Nui__Common__V1__Req *req = component->reqs[i];
        out->message.memory_mb += req->memory_mb * req->tasks;
        for (size_t k = 0; k < req->n_gres; k++)
            add_gres (out, req->gres[k]->name, (uint64_t)req->gres[k]->count * req->tasks);
    }
    cluster_totals (svc->cluster, &have, &dedicated);
    struct priority_totals totals = {.procs = have.v[RES_PROCS], .mem_mb = have.v[RES_MEM_MB]};
    out->message.pe_milli =
        (int64_t)llround (1000 * priority_pe (spec->procs, out->message.memory_mb, 0, 0, &totals));
}

static void add_node (struct bank_asked *out, const char *type, int64_t procs)
{
    size_t i = 0;
    while (i < out->message.n_nodes && strcmp (out->nodes[i].type, type) != 0)
        i++;
    if (i == BANK_NODE_TYPES_MAX)
        i--; /* more types than a job may name: as the last of them */
    if (i == out->message.n_nodes) {
        nui__bank__v1__node_share__init (&out->nodes[i]);
        out->nodes[i].type = (char *)type;
        out->node[i] = &out->nodes[i];
        out->message.n_nodes++;
    }
    out->nodes[i].procs += procs;
}

void bank_nodes_fill (const struct svc *svc, const struct site_job *job, const struct jobspec *spec,
                      struct bank_asked *out)
{
    const char *at = job->rec.placement;
    struct site_node *node;
    unsigned tasks, req;
    out->message.nodes = out->node;
    while (svc->node_types && placement_next (svc, &at, &node, &tasks, &req)) {
        const Nui__Common__V1__Req *r =
            req < spec->component->n_reqs ? spec->component->reqs[req] : NULL;
        int64_t procs = (int64_t)tasks * (r && r->procs_per_task ? r->procs_per_task : 1);
        if (node && procs > 0)
            add_node (out, node->type ? node->type : "DEFAULT", procs);
    }
}

const char *bank_machine (const struct svc *svc, const struct site_job *job)
{
    const char *at = job ? job->rec.placement : NULL;
    struct site_node *node;
    unsigned tasks, req;
    if (strcmp (svc->settings->am.machine, "PARTITION") != 0)
        return svc->settings->am.machine;
    if (!placement_next (svc, &at, &node, &tasks, &req) || !node)
        return "";
    return node->partition ? node->partition : "DEFAULT";
}
