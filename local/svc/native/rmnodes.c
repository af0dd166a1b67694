/* Nodes that the resource manager tells of: they are the site's nodes, and NODECFG lines of their
 * names add what it does not know (speed, priority, address of peers). What it said last is kept in
 * the store, so that after a restart running jobs have their nodes before it has answered. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "local/svc/native/native.h"
#include "local/svc/nodes.h"
#include "local/svc/svc_i.h"
#include "proto/base/strbuf.h"

static const char blob[] = "rm_nodes", licences_blob[] = "rm_licences";

static char *dup_or_null (const char *text)
{
    return text && *text ? strdup (text) : NULL;
}

static const struct nodeconf_node *configured (const struct settings *settings, const char *name)
{
    for (uint32_t i = 0; i < settings->nodes.node_count; i++)
        if (strcmp (settings->nodes.node[i].name, name) == 0)
            return &settings->nodes.node[i];
    return NULL;
}

/* Slurm prefers the lowest weight, NODEALLOCATIONPOLICY PRIORITY the highest priority. */
static void node_fill (const struct settings *settings, const struct rm_node *from,
                       struct nodeconf_node *out)
{
    const struct nodeconf_node *also = configured (settings, from->name);
    nodeconf_node_default (&settings->nodes, out);
    if (also) {
        nodeconf_node_clear (out);
        nodeconf_node_copy (also, out);
        free (out->name);
    }
    if (!out->has_priority)
        out->priority = -from->weight;
    out->name = strdup (from->name);
    out->procs = from->procs;
    out->mem_mb = from->memory_mb < INT32_MAX ? from->memory_mb : INT32_MAX;
    out->disk_mb = from->disk_mb < INT32_MAX ? from->disk_mb : INT32_MAX;
    free (out->features);
    out->features = dup_or_null (from->features);
    if (!out->gres)
        out->gres = dup_or_null (from->gres);
    if (!out->classes)
        out->classes = dup_or_null (from->classes);
    if (!out->address)
        out->address = dup_or_null (from->address);
}

/* "name procs mem disk weight features address gres classes", '-' for nothing. */
void rmnodes_remember (struct svc *svc)
{
    uint32_t count;
    const struct rm_node *list = svc->rm.ops->nodes (svc->rm.self, &count);
    struct strbuf b = STRBUF_INIT;
    struct err err = {0};
    for (uint32_t i = 0; i < count; i++)
        strbuf_printf (&b, "%s %u %lld %lld %lld %s %s %s %s\n", list[i].name, list[i].procs,
                       (long long)list[i].memory_mb, (long long)list[i].disk_mb,
                       (long long)list[i].weight, *list[i].features ? list[i].features : "-",
                       *list[i].address ? list[i].address : "-", *list[i].gres ? list[i].gres : "-",
                       *list[i].classes ? list[i].classes : "-");
    int rc = svc_begin (svc, &err);
    if (rc == 0)
        rc = local_store_blob_put (svc->store, blob, strbuf_text (&b), b.len, &err);
    if (rc == 0 && svc->rm.ops->licences) {
        const char *licences = svc->rm.ops->licences (svc->rm.self);
        rc = local_store_blob_put (svc->store, licences_blob, licences, strlen (licences), &err);
    }
    svc_commit (svc, rc, &err);
    strbuf_free (&b);
}

static struct nodeconf_node *recall (struct svc *svc, const struct settings *settings,
                                     uint32_t *count_out)
{
    void *bytes = NULL;
    size_t len = 0;
    *count_out = 0;
    struct nodeconf_node *nodes = calloc (1, sizeof *nodes);
    assert (nodes);
    if (local_store_blob_get (svc->store, blob, &bytes, &len, NULL) != 0)
        return nodes;
    char *save = NULL;
    for (char *line = strtok_r (bytes, "\n", &save); line; line = strtok_r (NULL, "\n", &save)) {
        char name[STORE_NAME_MAX], features[1024], address[256], gres[1024] = "-",
                                                                 classes[1024] = "-";
        long long mem, disk, weight;
        struct rm_node n = {.state = RM_NODE_DOWN, .reason = "", .gres = "", .classes = ""};
        if (sscanf (line, "%63s %u %lld %lld %lld %1023s %255s %1023s %1023s", name, &n.procs, &mem,
                    &disk, &weight, features, address, gres, classes) < 7)
            break;
        n.name = name;
        n.memory_mb = mem;
        n.disk_mb = disk;
        n.weight = weight;
        n.features = strcmp (features, "-") == 0 ? "" : features;
        n.address = strcmp (address, "-") == 0 ? "" : address;
        n.gres = strcmp (gres, "-") == 0 ? "" : gres;
        n.classes = strcmp (classes, "-") == 0 ? "" : classes;
        nodes = realloc (nodes, (*count_out + 1) * sizeof *nodes);
        assert (nodes);
        node_fill (settings, &n, &nodes[(*count_out)++]);
    }
    free (bytes);
    return nodes;
}

struct nodeconf_node *rmnodes_list (struct svc *svc, const struct settings *settings,
                                    uint32_t *count_out)
{
    *count_out = 0;
    if (!svc->rm.ops->nodes)
        return NULL;
    const struct rm_node *list = svc->rm.ops->nodes (svc->rm.self, count_out);
    if (*count_out == 0)
        return recall (svc, settings, count_out);
    struct nodeconf_node *nodes = calloc (*count_out, sizeof *nodes);
    assert (nodes);
    for (uint32_t i = 0; i < *count_out; i++)
        node_fill (settings, &list[i], &nodes[i]);
    return nodes;
}

char *rmnodes_licences (struct svc *svc, const struct settings *settings)
{
    const char *own = settings->nodes.global_gres ? settings->nodes.global_gres : "";
    const char *theirs = svc->rm.ops->licences ? svc->rm.ops->licences (svc->rm.self) : "";
    void *bytes = NULL;
    size_t len = 0;
    struct strbuf b = STRBUF_INIT;
    if (svc->rm.ops->licences && !*theirs && svc->rm.ops->fresh &&
        !svc->rm.ops->fresh (svc->rm.self) &&
        local_store_blob_get (svc->store, licences_blob, &bytes, &len, NULL) == 0)
        strbuf_append (&b, bytes, len);
    free (bytes);
    strbuf_printf (&b, "%s,%s", theirs, own); /* the configuration has the last word */
    strbuf_text (&b);
    return strbuf_steal (&b);
}

void rmnodes_free (struct nodeconf_node *nodes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        nodeconf_node_clear (&nodes[i]);
    free (nodes);
}

const struct rm_node *rmnodes_told (struct svc *svc, const char *name)
{
    uint32_t low = 0, high;
    if (!svc->rm.ops->nodes)
        return NULL;
    const struct rm_node *list = svc->rm.ops->nodes (svc->rm.self, &high);
    while (low < high) { /* they are sorted by strverscmp */
        uint32_t middle = (low + high) / 2;
        int order = strverscmp (list[middle].name, name);
        if (order == 0)
            return &list[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

const char *rmnodes_reason (struct svc *svc, const char *name)
{
    const struct rm_node *told = rmnodes_told (svc, name);
    bool drained;
    const char *why = told                    ? told->reason
                      : svc->rm.ops->node_why ? svc->rm.ops->node_why (svc->rm.self, name, &drained)
                                              : "";
    return why ? why : "";
}

enum node_state rmnodes_state (struct svc *svc, const char *name)
{
    if (!svc->rm.ops->nodes) {
        bool drained = false;
        const char *why =
            svc->rm.ops->node_why ? svc->rm.ops->node_why (svc->rm.self, name, &drained) : NULL;
        return why && drained                              ? NODE_DRAINED
               : svc->rm.ops->node_up (svc->rm.self, name) ? NODE_UP
                                                           : NODE_DOWN;
    }
    const struct rm_node *node = rmnodes_told (svc, name);
    return !node                            ? NODE_DOWN
           : node->state == RM_NODE_UP      ? NODE_UP
           : node->state == RM_NODE_DRAINED ? NODE_DRAINED
                                            : NODE_DOWN;
}

void rmnodes_loads (struct svc *svc)
{
    uint32_t count;
    const struct rm_node *list = svc->rm.ops->nodes (svc->rm.self, &count);
    for (uint32_t i = 0; i < count; i++) {
        const struct site_node *node = svc_node (svc, list[i].name);
        struct resources used = {{0}};
        struct node_view view;
        if (!node || cluster_node_get (svc->cluster, node->id, &view, NULL) != 0)
            continue;
        if (list[i].load_milli >= 0 && list[i].load_milli != view.load_milli)
            (void)cluster_node_load_set (svc->cluster, node->id, list[i].load_milli, svc_now (svc),
                                         NULL);
        if (list[i].memory_used_mb < 0)
            continue;
        used.v[RES_MEM_MB] =
            list[i].memory_used_mb < INT32_MAX ? (int32_t)list[i].memory_used_mb : INT32_MAX;
        (void)cluster_node_used_set (svc->cluster, node->id, &used, svc_now (svc), NULL);
    }
}
