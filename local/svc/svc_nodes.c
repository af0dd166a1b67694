/* A site's nodes: what they are by the configuration, the resource manager and by what was set. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "local/svc/memory/memory.h"
#include "local/svc/native/native.h"
#include "local/svc/nodes.h"
#include "local/svc/svc_i.h"

bool svc_node_by_name (void *self, const char *name, struct node_id *out)
{
    const struct site_node *node = svc_node (self, name);
    if (node)
        *out = node->id;
    return node != NULL;
}

enum { SET_STATE, SET_FEATURES, SET_PRIORITY, SET_SPEED, SET_REASON, SETS };

static const char *const set_names[SETS] = {"state", "features", "priority", "speed", "reason"};
static_assert (sizeof ((struct site_node *)0)->set / sizeof (char *) == SETS, "a place for each");

char *svc_node_set (struct site_node *node, const char *name, const char *value)
{
    for (int i = 0; i < SETS; i++)
        if (strcmp (set_names[i], name) == 0) {
            char *before = node->set[i];
            node->set[i] = *value ? strdup (value) : NULL;
            return before;
        }
    return NULL;
}

/* What administrators set of it, over what is configured. */
static struct nodeconf_node node_wanted (const struct site_node *node,
                                         const struct nodeconf_node *n)
{
    struct nodeconf_node wanted = *n;
    if (node && node->set[SET_FEATURES])
        wanted.features = node->set[SET_FEATURES];
    if (node && node->set[SET_PRIORITY])
        wanted.priority = strtoll (node->set[SET_PRIORITY], NULL, 10);
    if (node && node->set[SET_SPEED])
        (void)ppm_parse (node->set[SET_SPEED], "speed", &wanted.speed_ppm, NULL);
    return wanted;
}

static void node_set_loaded (void *arg, const char *name, const char *value)
{
    free (svc_node_set (arg, name, value));
}

int svc_node_sets_load (struct svc *svc, struct site_node *node, struct err *err)
{
    for (size_t i = 0; i < sizeof node->set / sizeof *node->set; i++) {
        free (node->set[i]);
        node->set[i] = NULL;
    }
    return local_store_sets (svc->store, STORE_SET_NODE, node->name, node_set_loaded, node, err);
}

const char *svc_node_aside (const struct site_node *node)
{
    return node->set[SET_REASON];
}

const char *svc_node_reason (struct svc *svc, const struct site_node *node)
{
    const char *theirs = rmnodes_reason (svc, node->name);
    return *theirs || !node->set[SET_REASON] ? theirs : node->set[SET_REASON];
}

int svc_node_set_aside (struct svc *svc, struct site_node *node, const char *reason,
                        struct err *err)
{
    const char *const value[][2] = {{set_names[SET_STATE], "drained"},
                                    {set_names[SET_REASON], reason}};
    int rc = svc_begin (svc, err);
    for (int i = 0; rc == 0 && i < 2; i++)
        rc = local_store_set_put (svc->store, STORE_SET_NODE, node->name, value[i][0], value[i][1],
                                  err);
    rc = svc_commit (svc, rc, err);
    if (rc != 0)
        return rc;
    for (int i = 0; i < 2; i++)
        free (svc_node_set (node, value[i][0], value[i][1]));
    return svc_nodes_apply (svc, svc->settings, err);
}

static void text_replace (char **text, const char *with)
{
    free (*text);
    *text = with ? strdup (with) : NULL;
}

static int node_add (struct svc *svc, const struct nodeconf_node *n, const struct node_spec *spec,
                     time_us now, struct err *err)
{
    struct node_id id;
    int rc = cluster_node_add (svc->cluster, spec, now, &id, err);
    if (rc != 0)
        return rc;
    struct site_node *node = calloc (1, sizeof *node);
    struct site_node **more = realloc (svc->node_by_id, (id.v + 1) * sizeof *more);
    assert (node && more);
    svc->node_by_id = more;
    more[id.v] = node;
    svc->node_count = id.v + 1;
    node->name = strdup (n->name);
    node->id = id;
    HASH_ADD_KEYPTR (hh, svc->nodes, node->name, strlen (node->name), node);
    rc = svc_node_sets_load (svc, node, err);
    struct nodeconf_node wanted = node_wanted (node, n);
    struct node_spec changed;
    if (rc == 0)
        rc = place_node (&svc->place, &wanted, &changed, err);
    return rc == 0 ? cluster_node_update (svc->cluster, id, &changed, now, err) : rc;
}

static const char *nodes_name (void *self, uint32_t node)
{
    return ((struct svc *)self)->node_by_id[node]->name;
}

/* Of a file of Maui's, or of nodes that are the resource manager's: what place.c left out, or a class that has no node. */
static void nodes_absent (void *self, const char *key, const char *index, const char *why,
                          bool closed)
{
    const struct svc *svc = self;
    log_event (svc->log, LOG_LEVEL_INFO, "svc", closed ? "class_closed" : "left_out",
               "parameter=%s%s%.60s error=\"%s\"", key, index ? ":" : "", index ? index : "", why);
}

/* New ones are added, others changed, absent ones are down. */
static int nodes_apply (struct svc *svc, const struct settings *settings,
                        const struct nodeconf_node *nodes, uint32_t count, struct err *err)
{
    time_us now = svc_now (svc);
    int rc = 0;
    if (svc->stats)
        stats_advance (svc, now);
    for (uint32_t i = 0; i < svc->node_count; i++)
        svc->node_by_id[i]->configured = false;
    svc->node_types = false;
    svc->place.node_name = nodes_name;
    svc->place.absent = settings->maui_file || settings->rm_kind->has_nodes ? nodes_absent : NULL;
    char *licences = rmnodes_licences (svc, settings);
    rc = place_prepare (&svc->place, nodes, count, licences, now, err);
    free (licences);
    for (uint32_t i = 0; rc == 0 && i < count; i++) {
        const struct nodeconf_node *n = &nodes[i];
        struct node_spec spec;
        struct site_node *node = svc_node (svc, n->name);
        struct nodeconf_node wanted = node_wanted (node, n);
        rc = place_node (&svc->place, &wanted, &spec, err);
        if (rc == 0 && node)
            rc = cluster_node_update (svc->cluster, node->id, &spec, now, err);
        else if (rc == 0)
            rc = node_add (svc, n, &spec, now, err);
        if (rc != 0)
            break;
        node = svc_node (svc, n->name);
        node->configured = true;
        text_replace (&node->address, n->address);
        text_replace (&node->type, n->type);
        svc->node_types |= n->type != NULL;
        text_replace (&node->partition, n->partition);
    }
    if (rc == 0)
        rc = cluster_job_column_set (svc->cluster, svc->place.job_column, now, err);
    if (rc == 0)
        rc = place_apply (&svc->place, settings->policy, settings->nodes.topology, now, err);
    for (uint32_t i = 0; rc == 0 && i < svc->node_count; i++) {
        struct site_node *node = svc->node_by_id[i];
        struct node_view view;
        if (!node->configured && cluster_node_get (svc->cluster, node->id, &view, NULL) == 0) {
            view.spec.gone = 1;
            rc = cluster_node_update (svc->cluster, node->id, &view.spec, now, err);
        }
    }
    for (uint32_t i = 0; rc == 0 && i < svc->node_count; i++) {
        struct site_node *node = svc->node_by_id[i];
        enum node_state state = node->configured ? rmnodes_state (svc, node->name) : NODE_DOWN;
        const char *set = node->set[SET_STATE];
        if (set && strcmp (set, "down") == 0)
            state = NODE_DOWN;
        else if (set && state == NODE_UP)
            state = NODE_DRAINED;
        rc = cluster_node_state_set (svc->cluster, node->id, state, now, err);
    }
    return rc;
}

int svc_nodes_apply (struct svc *svc, const struct settings *settings, struct err *err)
{
    uint32_t count;
    struct nodeconf_node *theirs = rmnodes_list (svc, settings, &count);
    int rc =
        theirs ? nodes_apply (svc, settings, theirs, count, err)
               : nodes_apply (svc, settings, settings->nodes.node, settings->nodes.node_count, err);
    rmnodes_free (theirs, count);
    return rc;
}

/* Tells of a node whose state is another than the core has. */
static void node_tell (struct svc *svc, const char *name)
{
    char quoted[300];
    enum node_state before = NODE_UP, now = rmnodes_state (svc, name);
    struct node_view view;
    const struct site_node *node = svc_node (svc, name);
    if (node && cluster_node_get (svc->cluster, node->id, &view, NULL) == 0)
        before = view.state;
    if (now != before)
        log_event (svc->log, now == NODE_UP ? LOG_LEVEL_INFO : LOG_LEVEL_WARN, "node", "state",
                   "node=%s state=%s reason=%s", name,
                   now == NODE_UP        ? "up"
                   : now == NODE_DRAINED ? "drained"
                                         : "down",
                   log_quote (rmnodes_reason (svc, name), quoted, sizeof quoted));
}

void svc_nodes_changed (struct svc *svc)
{
    uint32_t count = 0;
    struct err err = {0};
    const struct rm_node *list =
        svc->rm.ops->nodes ? svc->rm.ops->nodes (svc->rm.self, &count) : NULL;
    for (uint32_t i = 0; i < count; i++)
        node_tell (svc, list[i].name);
    for (uint32_t i = 0; !list && i < svc->node_count; i++)
        if (svc->node_by_id[i]->configured)
            node_tell (svc, svc->node_by_id[i]->name);
    if (svc_nodes_apply (svc, svc->settings, &err) != 0)
        log_event (svc->log, LOG_LEVEL_ERROR, "svc", "nodes_not_applied", "error=\"%s\"", err.text);
    if (!list)
        return;
    rmnodes_remember (svc);
    rmnodes_loads (svc);
}

void svc_nodes_free (struct svc *svc)
{
    struct site_node *node, *next_node;
    HASH_ITER (hh, svc->nodes, node, next_node) {
        HASH_DEL (svc->nodes, node);
        free (node->name);
        free (node->address);
        free (node->type);
        free (node->partition);
        free (node->failed);
        for (int i = 0; i < SETS; i++)
            free (node->set[i]);
        free (node);
    }
    free (svc->node_by_id);
}
