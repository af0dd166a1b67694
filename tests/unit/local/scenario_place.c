/* Nodes and what jobs ask of them, by the names that the configuration gives: local/conf/place. */
#include <stdlib.h>
#include <string.h>

#include "local/conf/items.h"
#include "tests/unit/local/scenario.h"

static bool node_find (void *self, const char *name, struct node_id *out)
{
    const struct scenario *s = self;

    for (uint32_t i = 0; i < s->node_count; i++) {
        if (strcmp (s->node[i].name, name) == 0) {
            *out = (struct node_id){i}; /* they are added in this order */
            return true;
        }
    }
    return false;
}

/* NODECFG's words for the node, and in their place those of [nodes]. */
static struct nodeconf_node conf_of (const struct scenario *s, const struct scn_node *n)
{
    struct nodeconf_node conf;
    const struct nodeconf_node *own = NULL;

    for (uint32_t i = 0; i < s->nodeconf.node_count; i++) {
        if (strcmp (s->nodeconf.node[i].name, n->name) == 0)
            own = &s->nodeconf.node[i];
    }
    if (own)
        nodeconf_node_copy (own, &conf);
    else
        nodeconf_node_default (&s->nodeconf, &conf);
    free (conf.name);
    conf.name = strdup (n->name);
    if (n->procs_said)
        conf.procs = n->spec.configured.v[RES_PROCS];
    if (n->spec.configured.v[RES_MEM_MB])
        conf.mem_mb = n->spec.configured.v[RES_MEM_MB];
    if (n->spec.configured.v[RES_SWAP_MB])
        conf.swap_mb = n->spec.configured.v[RES_SWAP_MB];
    if (n->spec.configured.v[RES_DISK_MB])
        conf.disk_mb = n->spec.configured.v[RES_DISK_MB];
    if (n->speed_said)
        conf.speed_ppm = n->spec.speed_ppm;
    if (n->priority_said)
        conf.priority = n->spec.priority;
    return conf;
}

static void node_add (struct scenario *s, struct scn_node *n, const struct nodeconf_node *conf)
{
    struct err err = {0};
    struct node_spec spec;

    scenario_must (s, s->config_line, place_node (&s->place, conf, &spec, &err), &err);
    for (uint32_t w = 0; w < FEATURES_MAX / 64; w++)
        spec.features.word[w] |= n->spec.features.word[w];
    if (n->spec.partition)
        spec.partition = n->spec.partition;
    scenario_must (s, 0, cluster_node_add (s->cluster, &spec, s->now, &n->id, &err), &err);
    scenario_must (s, 0, cluster_node_state_set (s->cluster, n->id, n->state, s->now, &err), &err);
}

void scenario_place_nodes (struct scenario *s)
{
    struct nodeconf_node *conf = calloc (s->node_count + 1, sizeof *conf);
    struct err err = {0};

    if (!conf)
        abort ();
    place_open (&s->place, s->cluster, &s->names, s->features, node_find, s);
    for (uint32_t i = 0; i < s->node_count; i++)
        conf[i] = conf_of (s, &s->node[i]);
    scenario_must (
        s, s->config_line,
        place_prepare (&s->place, conf, s->node_count, s->nodeconf.global_gres, s->now, &err),
        &err);
    for (uint32_t i = 0; i < s->node_count; i++) {
        node_add (s, &s->node[i], &conf[i]);
        nodeconf_node_clear (&conf[i]);
    }
    free (conf);
    scenario_must (s, s->config_line,
                   cluster_job_column_set (s->cluster, s->place.job_column, s->now, &err), &err);
    scenario_must (s, s->config_line,
                   place_apply (&s->place, s->policy, s->nodeconf.topology, s->now, &err), &err);
}

static void gres (struct scenario *s, struct scn_job *j, uint32_t r)
{
    const char *at = j->gres[r] ? j->gres[r] : "";
    char name[64];
    int64_t count;
    struct err err = {0};
    int rc;

    while (item_next (&at, name, &count, &err, &rc)) {
        uint32_t column, kind;
        if (!place_gres (&s->place, name, &column, &kind) || !column)
            scenario_bad (s, 0, "job %s: no node has %s", j->name, name);
        j->req[r].task.v[column] = count < 0 ? 1 : (int32_t)count;
    }
    scenario_must (s, 0, rc, &err);
}

static void licences (struct scenario *s, struct scn_job *j)
{
    const char *at = j->licences ? j->licences : "";
    char name[64];
    int64_t count;
    struct err err = {0};
    int rc;

    while (item_next (&at, name, &count, &err, &rc)) {
        uint32_t column, kind;
        if (!place_gres (&s->place, name, &column, &kind) || column)
            scenario_bad (s, 0, "job %s: there is no licence %s", j->name, name);
        j->licence[j->spec.licence_count++] =
            (struct licence){kind, count < 0 ? 1 : (int32_t)count};
    }
    scenario_must (s, 0, rc, &err);
    j->spec.licence = j->licence;
}

void scenario_place_job (struct scenario *s, struct scn_job *j)
{
    uint32_t hosts = 0, nodeset = NODESET_SITE;
    struct err err = {0};

    j->spec.licence_count = 0;
    licences (s, j);
    if (j->hosts)
        scenario_must (s, 0, place_hosts (&s->place, j->hosts, &hosts, &err), &err);
    if (j->nodeset)
        scenario_must (s, 0, place_nodeset (&s->place, s->policy, j->nodeset, &nodeset, &err),
                       &err);
    for (uint32_t r = 0; r < j->spec.req_count; r++) {
        gres (s, j, r);
        j->req[r].hosts = hosts;
        j->req[r].nodeset = nodeset;
        if (s->policy->node_match == NODEMATCH_EXACTPROC && j->req[r].tasks_per_node)
            j->req[r].node_procs = j->req[r].tasks_per_node * (uint32_t)j->req[r].task.v[RES_PROCS];
    }
    if (j->spec.cred[CRED_CLASS] != CRED_NONE)
        scenario_must (
            s, 0, place_class (&s->place, s->policy, j->spec.cred[CRED_CLASS], s->now, &err), &err);
}
