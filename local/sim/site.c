/* site: builds nodes, classes and node sets by local/conf's own readers, and keeps SRCFG's
 * reservations while a run goes on. simcmd.c calls it. What a maui.cfg means must not be
 * interpreted anew here, or simulation and daemon would differ. */
#include "local/sim/site.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "local/conf/place.h"
#include "local/conf/standing.h"
#include "proto/base/mem.h"
#include "proto/base/strbuf.h"

struct simsite {
    const struct nodeconf *conf;
    const struct policy *policy;
    const struct workload *workload;
    const struct machine *machine;
    void (*note) (void *self, const char *sentence);
    void *note_self;
    struct nodeconf_node *node; /* as the core gets them */
    struct node_spec *traced;   /* of each: what its trace says that NODECFG has no word for */
    uint32_t count;
    struct strtab *name; /* number is the node's */
    bool others;         /* nodes that NODECFG does not name: --nodes or a trace has its own */
    struct engine_site engine;
    /* of the run */
    struct strtab *features;
    struct place place;
    struct standing *standing;
};

struct machine *simsite_machine (const struct nodeconf *nodes)
{
    struct arena *arena = arena_create (0);
    struct machine *m = arena_new (arena, struct machine);
    m->arena = arena;
    m->group = arena_array (arena, nodes->node_count + 1, sizeof *m->group);
    m->name = arena_array (arena, nodes->node_count + 1, sizeof *m->name);
    m->group_count = m->node_count = nodes->node_count;
    for (uint32_t i = 0; i < nodes->node_count; i++) {
        m->group[i].copies = 1;
        m->group[i].spec.partition = 1;
        m->group[i].spec.speed_ppm = (int32_t)nodes->node[i].speed_ppm;
        m->group[i].spec.configured.v[RES_PROCS] = (int32_t)nodes->node[i].procs;
        m->procs += nodes->node[i].procs;
        m->name[i] = nodes->node[i].name;
    }
    return m;
}

static bool classes_placed (const struct policy *policy)
{
    for (uint32_t i = 0; i < policy->cred_count[CRED_CLASS]; i++) {
        const struct policy_class *c = policy->cred[CRED_CLASS][i].class;
        if (c && (c->host_list || c->nodeset || c->default_features || c->exclude_features ||
                  c->node_access))
            return true;
    }
    return false;
}

static bool qos_placed (const struct policy *policy)
{
    for (uint32_t i = 0; i < policy->cred_count[CRED_QOS]; i++)
        if (policy->cred[CRED_QOS][i].qos->features)
            return true;
    return false;
}

bool simsite_needed (const struct nodeconf *nodes, const struct policy *policy)
{
    return nodes->line_count > 0 || nodes->topology || policy->nodeset_policy ||
           policy->standing_count > 0 || classes_placed (policy) || qos_placed (policy);
}

/* --- nodes -------------------------------------------------------------------------------- */

static const struct nodeconf_node *configured (const struct nodeconf *conf, const char *name)
{
    for (uint32_t i = 0; i < conf->node_count; i++)
        if (strcmp (conf->node[i].name, name) == 0)
            return &conf->node[i];
    return NULL;
}

/* What the trace, or --nodes, says goes before NODECFG; features add up. */
static void node_take (struct simsite *site, uint32_t n, const struct node_spec *spec,
                       const char *name, const char *features)
{
    const struct nodeconf_node *also = configured (site->conf, name);
    struct nodeconf_node *out = &site->node[n];
    site->others = site->others || !also;
    if (also)
        nodeconf_node_copy (also, out);
    else
        nodeconf_node_default (site->conf, out);
    nodeconf_node_traced (out, name, spec, site->machine->described);
    (void)strtab_intern (site->name, name);
    site->traced[n] = *spec;
    if (!site->machine->described)
        return;
    if (!out->classes)
        out->classes = machine_classes (site->machine, spec, site->workload->names);
    if (*features) {
        struct strbuf b = STRBUF_INIT;
        strbuf_printf (&b, "%s%s%s", features, out->features ? "," : "",
                       out->features ? out->features : "");
        free (out->features);
        out->features = strbuf_steal (&b);
    }
}

static void nodes_take (struct simsite *site)
{
    const struct machine *m = site->machine;
    site->node = calloc (m->node_count + 1, sizeof *site->node);
    site->traced = calloc (m->node_count + 1, sizeof *site->traced);
    site->name = strtab_create ();
    assert (site->node && site->traced && site->name);
    for (uint32_t g = 0; g < m->group_count; g++)
        for (uint32_t i = 0; i < m->group[g].copies; i++, site->count++) {
            char own[24];
            snprintf (own, sizeof own, "node%u", site->count + 1);
            node_take (site, site->count, &m->group[g].spec, m->name ? m->name[site->count] : own,
                       m->features ? m->features[site->count] : "");
        }
}

/* --- the run -------------------------------------------------------------------------------- */

static bool node_find (void *self, const char *name, struct node_id *out)
{
    uint32_t n = strtab_find (((struct simsite *)self)->name, name);
    *out = (struct node_id){n};
    return n != STRTAB_NONE;
}

static const char *node_name (void *self, uint32_t node)
{
    return strtab_name (((struct simsite *)self)->name, node);
}

static uint32_t feature_of (void *self, const char *name)
{
    return strtab_find (((struct simsite *)self)->features, name);
}

static uint32_t partition_of (void *self, const char *name)
{
    const struct simsite *site = self;
    uint32_t at = strtab_find (site->workload->names->partition, name);
    return at == STRTAB_NONE ? PARTITION_ANY : at + 1;
}

static void told (void *self, const char *sentence)
{
    const struct simsite *site = self;
    if (site->note)
        site->note (site->note_self, sentence);
}

static void absent (void *self, const char *key, const char *index, const char *why, bool closed)
{
    (void)closed; /* nothing is run, so nothing has to be kept off */
    char text[ERR_TEXT_MAX + 160];
    snprintf (text, sizeof text, "%s%s%.60s%s: %s; left out here", key, index ? "[" : "",
              index ? index : "", index ? "]" : "", why);
    told (self, text);
}

static void run_close (struct simsite *site)
{
    standing_destroy (site->standing);
    if (site->place.column)
        place_close (&site->place);
    strtab_destroy (site->features);
    memset (&site->place, 0, sizeof site->place);
    site->standing = NULL;
    site->features = NULL;
}

static int nodes_add (struct simsite *site, struct cluster *cluster, time_us now, struct err *err)
{
    int rc =
        place_prepare (&site->place, site->node, site->count, site->conf->global_gres, now, err);
    for (uint32_t n = 0; rc == 0 && n < site->count; n++) {
        struct node_spec spec;
        rc = place_node (&site->place, &site->node[n], &spec, err);
        for (uint32_t w = 0; rc == 0 && w < FEATURES_MAX / 64; w++)
            spec.features.word[w] |= site->traced[n].features.word[w];
        if (rc == 0)
            rc = cluster_node_add (cluster, &spec, now, NULL, err);
    }
    if (rc == 0)
        rc = cluster_job_column_set (cluster, site->place.job_column, now, err);
    return rc == 0 ? place_apply (&site->place, site->policy, site->conf->topology, now, err) : rc;
}

/* What jobs of the log ask of nodes has its numbers there already: they come first. */
static int furnish (void *self, struct cluster *cluster, time_us now, struct err *err)
{
    struct simsite *site = self;
    struct standing_site standing = {.self = site,
                                     .node_name = node_name,
                                     .feature = feature_of,
                                     .partition = partition_of,
                                     .note = told};
    run_close (site);
    site->features = strtab_create ();
    for (uint32_t c = 0; c < site->workload->constraint_count; c++)
        (void)strtab_intern (site->features, site->workload->constraint[c]);
    place_open (&site->place, cluster, site->workload->names, site->features, node_find, site);
    site->place.node_name = node_name;
    site->place.absent = site->others ? absent : NULL;
    site->place.nothing_runs = true;
    site->standing = standing_create (&standing);
    return nodes_add (site, cluster, now, err);
}

static void roll (void *self, struct cluster *cluster, time_us now)
{
    standing_roll (((struct simsite *)self)->standing, cluster, now);
}

struct simsite *simsite_create (const struct nodeconf *nodes, const struct policy *policy,
                                const struct workload *workload, const struct machine *machine,
                                void (*note) (void *self, const char *sentence), void *self)
{
    struct simsite *site = mem_zero (1, sizeof *site);
    site->conf = nodes;
    site->policy = policy;
    site->workload = workload;
    site->machine = machine;
    site->note = note;
    site->note_self = self;
    site->engine = (struct engine_site){
        .self = site, .furnish = furnish, .roll = policy->standing_count ? roll : NULL};
    nodes_take (site);
    return site;
}

void simsite_destroy (struct simsite *site)
{
    if (!site)
        return;
    run_close (site);
    for (uint32_t n = 0; n < site->count; n++)
        nodeconf_node_clear (&site->node[n]);
    free (site->node);
    free (site->traced);
    strtab_destroy (site->name);
    free (site);
}

const char *simsite_rsv_name (void *self, uint64_t rsv)
{
    struct simsite *site = self;
    struct standing_view view;
    return standing_get (site->standing, site->place.cluster, rsv, &view) ? view.policy->name
                                                                          : NULL;
}

const struct engine_site *simsite_engine (struct simsite *site)
{
    return site ? &site->engine : NULL;
}
