/* nodeconf: reads NODECFG into one record per node, names still as texts. settings.c and
 * policyconf_load.c read it with the rest of the file; place.c turns the names into the core's
 * numbers. It changes no cluster, and a node the resource manager does not know is no error
 * here. */
#include "local/conf/nodeconf.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "local/conf/items.h"
#include "local/conf/priorityf.h"
#include "proto/base/hostlist.h"
#include "proto/base/text.h"

/* --- attributes ----------------------------------------------------------------------------- */

static int memory_set (int64_t *field, const struct conf_value *value, struct err *err)
{
    int64_t mb;
    int rc = memory_parse (value->text, &mb, err);
    if (rc == 0 && mb > INT32_MAX)
        return err_set (err, ERR_LIMIT, "at most %d MB", INT32_MAX);
    if (rc == 0)
        *field = mb;
    return rc;
}

static struct nodeconf_node *node_of (void *target)
{
    return &((struct nodeconf_line *)target)->node;
}

static int set_mem (void *target, const struct conf_value *value, struct err *err)
{
    return memory_set (&node_of (target)->mem_mb, value, err);
}

static int set_swap (void *target, const struct conf_value *value, struct err *err)
{
    return memory_set (&node_of (target)->swap_mb, value, err);
}

static int set_disk (void *target, const struct conf_value *value, struct err *err)
{
    return memory_set (&node_of (target)->disk_mb, value, err);
}

static int set_speed (void *target, const struct conf_value *value, struct err *err)
{
    int64_t ppm;
    int rc = ppm_parse (value->text, "SPEED", &ppm, err);
    if (rc == 0 && (ppm < 1000 || ppm > 1000 * INT64_C (1000000)))
        return err_set (err, ERR_INVALID, "SPEED from 0.001 to 1000");
    if (rc == 0)
        node_of (target)->speed_ppm = ppm;
    return rc;
}

static int set_load (void *target, const struct conf_value *value, struct err *err)
{
    int64_t ppm;
    int rc = ppm_parse (value->text, "MAXLOAD", &ppm, err);
    if (rc == 0 && (ppm < 1000 || ppm / 1000 > INT32_MAX))
        return err_set (err, ERR_INVALID, "MAXLOAD is a load average above 0");
    if (rc == 0)
        node_of (target)->max_load_milli = ppm / 1000;
    return rc;
}

static int set_priority (void *target, const struct conf_value *value, struct err *err)
{
    node_of (target)->has_priority = true;
    return int_parse (value->text, "PRIORITY", -1000000000, 1000000000, &node_of (target)->priority,
                      err);
}

/* Commas part features and networks; what is in between may be anything. */
static int words_check (const char *list, struct err *err)
{
    for (const char *at = list; *at; at += *at == ',') {
        size_t len = strcspn (at, ",");
        if (len > NODECONF_FEATURE_MAX)
            return err_set (err, ERR_LIMIT, "a feature's name of %zu characters", len);
        at += len;
    }
    return 0;
}

static int any_text (const char *text, struct err *err)
{
    (void)text;
    (void)err;
    return 0;
}

#define TEXT(function, field, check)                                                               \
    static int function (void *target, const struct conf_value *value, struct err *err)            \
    {                                                                                              \
        if (check (value->text, err) != 0)                                                         \
            return err->code;                                                                      \
        free (node_of (target)->field);                                                            \
        node_of (target)->field = strdup (value->text);                                            \
        return 0;                                                                                  \
    }

static int sum_check (const char *text, struct err *err)
{
    struct node_priority weights;
    return priorityf_parse (text, &weights, err);
}

static int partition_check (const char *text, struct err *err)
{
    return name_check ("partition", text, err);
}

static int type_check (const char *text, struct err *err)
{
    return name_check ("node type", text, err);
}

TEXT (set_features, features, words_check)
TEXT (set_networks, networks, words_check)
TEXT (set_address, address, any_text)
TEXT (set_agent, agent, any_text)
TEXT (set_gres, gres, items_check)
TEXT (set_classes, classes, items_check)
TEXT (set_priorityf, priorityf, sum_check)
TEXT (set_partition, partition, partition_check)
TEXT (set_type, type, type_check)

#define AT(field) offsetof (struct nodeconf_line, node.field)
#define CALL(key, function)                                                                        \
    {                                                                                              \
        .name = key, .type = CONF_CALL, .set = function                                            \
    }
#define COUNT(key, field)                                                                          \
    {                                                                                              \
        .name = key, .type = CONF_INT, .offset = AT (field), .min = 1, .max = 1 << 20              \
    }
static const struct conf_param nodeconf_attrs[] = {
    COUNT ("PROCS", procs),
    CALL ("MEM", set_mem),
    CALL ("SWAP", set_swap),
    CALL ("DISK", set_disk),
    CALL ("FEATURES", set_features),
    CALL ("NETWORK", set_networks),
    CALL ("SPEED", set_speed),
    CALL ("PRIORITY", set_priority),
    CALL ("PRIORITYF", set_priorityf),
    CALL ("ADDRESS", set_address),
    CALL ("AGENT", set_agent),
    CALL ("PARTITION", set_partition),
    CALL ("NODETYPE", set_type),
    CALL ("GRES", set_gres),
    CALL ("CLASS", set_classes),
    CALL ("MAXLOAD", set_load),
    COUNT ("MAXJOB", max_jobs),
    COUNT ("MAXJOBPERUSER", max_jobs_per_user),
    COUNT ("MAXPROCPERUSER", max_procs_per_user),
    CONF_TOLD ("PROCSPEED", "SPEED says how fast a node is, 1 for the usual one"),
    CONF_TOLD ("FRAME", "TOPOLOGYFILE says which nodes are near each other"),
    CONF_TOLD ("RACK", "TOPOLOGYFILE says which nodes are near each other"),
    CONF_TOLD ("SLOT", "TOPOLOGYFILE says which nodes are near each other"),
    CONF_TOLD ("SIZE", "TOPOLOGYFILE says which nodes are near each other"),
    CONF_TOLD ("OS", "a node's FEATURES say what jobs may ask for"),
    CONF_TOLD ("ARCH", "a node's FEATURES say what jobs may ask for"),
    CONF_TOLD ("ACCESS", "NODEACCESSPOLICY says who may share a node"),
    CONF_TOLD ("CHARGERATE", "what a node costs is in the bank's rate cards"),
    CONF_TOLD ("LOGLEVEL", "LOGLEVEL is the daemon's"),
    CONF_TOLD ("RMLIST", "there is one resource manager"),
    CONF_TOLD ("MAXPROC", "PROCS says how many processors of a node may be given out"),
    CONF_TOLD ("RESOURCES", "PROCS, MEM, SWAP, DISK and GRES say what a node has"),
    CONF_TOLD ("RACKID", "TOPOLOGYFILE says which nodes are near each other"),
    {.name = NULL},
};
#undef AT

/* --- lines ---------------------------------------------------------------------------------- */

static const struct nodeconf_node nothing = {.procs = -1,
                                             .mem_mb = -1,
                                             .swap_mb = -1,
                                             .disk_mb = -1,
                                             .speed_ppm = -1,
                                             .max_jobs = -1,
                                             .max_jobs_per_user = -1,
                                             .max_procs_per_user = -1,
                                             .max_load_milli = -1};

static int node_record (void *target, const char *index, void **record_out, struct err *err)
{
    struct nodeconf *nodes = target;
    for (uint32_t i = 0; i < nodes->line_count; i++)
        if (strcasecmp (nodes->line[i].hosts, index) == 0) {
            *record_out = &nodes->line[i];
            return 0;
        }
    struct nodeconf_line *more = realloc (nodes->line, (nodes->line_count + 1) * sizeof *more);
    if (!more)
        return err_set (err, ERR_NOMEM, "no memory for nodes");
    nodes->line = more;
    more[nodes->line_count] = (struct nodeconf_line){.hosts = strdup (index), .node = nothing};
    *record_out = &more[nodes->line_count++];
    return 0;
}

static const struct nodeconf_line *line_named (const struct nodeconf *nodes, const char *name)
{
    for (uint32_t i = 0; i < nodes->line_count; i++)
        if (strcasecmp (nodes->line[i].hosts, name) == 0)
            return &nodes->line[i];
    return NULL;
}

static int64_t or_else (int64_t own, int64_t from, int64_t otherwise)
{
    return own >= 0 ? own : from >= 0 ? from : otherwise;
}

static char *text_or (const char *own, const char *from)
{
    return own ? strdup (own) : from ? strdup (from) : NULL;
}

/* The node's own words, then DEFAULT's, then the program's. */
static void node_fill (const struct nodeconf *nodes, const struct nodeconf_node *own,
                       struct nodeconf_node *out)
{
    const struct nodeconf_line *line = line_named (nodes, "DEFAULT");
    const struct nodeconf_node *from = line ? &line->node : &nothing;
    *out = (struct nodeconf_node){
        .procs = or_else (own->procs, from->procs, 1),
        .mem_mb = or_else (own->mem_mb, from->mem_mb, 0),
        .swap_mb = or_else (own->swap_mb, from->swap_mb, 0),
        .disk_mb = or_else (own->disk_mb, from->disk_mb, 0),
        .speed_ppm = or_else (own->speed_ppm, from->speed_ppm, 1000000),
        .has_priority = own->has_priority || from->has_priority,
        .priority = own->has_priority ? own->priority : from->priority,
        .max_jobs = or_else (own->max_jobs, from->max_jobs, 0),
        .max_jobs_per_user = or_else (own->max_jobs_per_user, from->max_jobs_per_user, 0),
        .max_procs_per_user = or_else (own->max_procs_per_user, from->max_procs_per_user, 0),
        .max_load_milli = or_else (own->max_load_milli, from->max_load_milli, 0),
        .features = text_or (own->features, from->features),
        .networks = text_or (own->networks, from->networks),
        .address = text_or (own->address, from->address),
        .agent = text_or (own->agent, NULL), /* a host of its own */
        .partition = text_or (own->partition, from->partition),
        .type = text_or (own->type, from->type),
        .gres = text_or (own->gres, from->gres),
        .classes = text_or (own->classes, from->classes),
        .priorityf = text_or (own->priorityf, from->priorityf),
    };
}

void nodeconf_node_default (const struct nodeconf *nodes, struct nodeconf_node *out)
{
    node_fill (nodes, &nothing, out);
}

void nodeconf_node_traced (struct nodeconf_node *node, const char *name,
                           const struct node_spec *spec, bool described)
{
    free (node->name);
    node->name = strdup (name);
    assert (node->name);
    node->procs = spec->configured.v[RES_PROCS];
    if (!described)
        return;
    node->mem_mb = spec->configured.v[RES_MEM_MB];
    node->swap_mb = spec->configured.v[RES_SWAP_MB];
    node->disk_mb = spec->configured.v[RES_DISK_MB];
    node->speed_ppm = spec->speed_ppm;
}

static int name_compare (const void *a, const void *b)
{
    return strcmp (*(const char *const *)a, *(const char *const *)b);
}

static int names_check (const struct nodeconf *nodes, struct err *err)
{
    const char **name = calloc (nodes->node_count + 1, sizeof *name);
    int rc = name ? 0 : err_set (err, ERR_NOMEM, "no memory for nodes");
    for (uint32_t i = 0; rc == 0 && i < nodes->node_count; i++)
        name[i] = nodes->node[i].name;
    if (rc == 0)
        qsort (name, nodes->node_count, sizeof *name, name_compare);
    for (uint32_t i = 1; rc == 0 && i < nodes->node_count; i++)
        if (strcmp (name[i - 1], name[i]) == 0)
            rc = err_set (err, ERR_INVALID, "NODECFG: node %s is configured twice", name[i]);
    free (name);
    return rc;
}

static int line_expand (struct nodeconf *nodes, struct nodeconf_line *line, struct arena *arena,
                        struct err *err)
{
    const char **names;
    uint32_t count;
    int rc = hostlist_expand (line->hosts, arena, &names, &count, err);
    if (rc != 0)
        return err_prefix (err, "NODECFG");
    if (nodes->node_count + count > NODECONF_NODES_MAX)
        return err_set (err, ERR_LIMIT, "NODECFG: more than %d nodes", NODECONF_NODES_MAX);
    struct nodeconf_node *more =
        realloc (nodes->node, (nodes->node_count + count + 1) * sizeof *more);
    if (!more)
        return err_set (err, ERR_NOMEM, "no memory for nodes");
    nodes->node = more;
    line->first = nodes->node_count;
    line->count = count;
    for (uint32_t i = 0; i < count; i++) {
        if (name_check ("node", names[i], err) != 0)
            return err_prefix (err, "NODECFG[%.60s]", line->hosts);
        struct nodeconf_node *node = &more[nodes->node_count++];
        node_fill (nodes, &line->node, node);
        node->name = strdup (names[i]);
        if (node->agent && node->agent[0] == ':') { /* the host has the node's name */
            char target[256];
            text_printf (target, sizeof target, "%s%s", names[i], node->agent);
            free (node->agent);
            node->agent = strdup (target);
        }
    }
    return 0;
}

static int nodeconf_expand (struct nodeconf *nodes, struct err *err)
{
    struct arena *arena = arena_create (0);
    const struct nodeconf_line *global = line_named (nodes, "GLOBAL");
    int rc = 0;
    if (global && global->node.gres)
        nodes->global_gres = strdup (global->node.gres);
    for (uint32_t l = 0; rc == 0 && l < nodes->line_count; l++) {
        if (strcasecmp (nodes->line[l].hosts, "DEFAULT") != 0 && &nodes->line[l] != global)
            rc = line_expand (nodes, &nodes->line[l], arena, err);
    }
    if (rc == 0)
        rc = names_check (nodes, err);
    arena_destroy (arena);
    return rc;
}

/* --- the file ----------------------------------------------------------------------------------- */

const struct conf_param nodeconf_params[] = {
    {.name = "NODECFG",
     .type = CONF_RECORD,
     .attrs = nodeconf_attrs,
     .record = node_record,
     .help = "a node"},
    {.name = "TOPOLOGYFILE",
     .type = CONF_PATH,
     .offset = offsetof (struct nodeconf, topology_file),
     .help = "how the nodes are connected"},
    {.name = NULL},
};

static int topology_load (struct nodeconf *nodes, struct err *err)
{
    enum { TOPOLOGY_BYTES_MAX = 16 << 20 };
    FILE *file = fopen (nodes->topology_file, "r");
    int rc = 0;
    if (!file)
        return err_set (err, ERR_NOT_FOUND, "TOPOLOGYFILE %s cannot be read", nodes->topology_file);
    nodes->topology = malloc (TOPOLOGY_BYTES_MAX + 1);
    if (!nodes->topology)
        rc = err_set (err, ERR_NOMEM, "no memory for TOPOLOGYFILE");
    size_t len = rc == 0 ? fread (nodes->topology, 1, TOPOLOGY_BYTES_MAX, file) : 0;
    if (rc == 0 && (ferror (file) || len == TOPOLOGY_BYTES_MAX))
        rc = err_set (err, ERR_IO, "TOPOLOGYFILE %s cannot be read, or is longer than %d bytes",
                      nodes->topology_file, TOPOLOGY_BYTES_MAX);
    if (rc == 0) {
        char *shorter = realloc (nodes->topology, len + 1);
        nodes->topology = shorter ? shorter : nodes->topology;
        nodes->topology[len] = '\0';
    }
    fclose (file);
    return rc;
}

/* NODECFG[node*] of a file of Maui's: whom it means is not known before the nodes are. */
static void patterns_tell (struct conf *conf)
{
    struct arena *arena = arena_create (0);
    for (uint32_t i = 0; i < conf_entry_count (conf); i++) {
        const struct conf_entry *e = conf_entry (conf, i);
        const char **name;
        uint32_t count;
        if (strcasecmp (e->key, "NODECFG") != 0 || !e->index ||
            hostlist_expand (e->index, arena, &name, &count, NULL) != ERR_INVALID)
            continue;
        conf_note_add (
            &(struct conf_value){.conf = conf, .key = e->key, .index = e->index, .line = e->line},
            "is no list of nodes, as node[1-4],gpu1 is; it has no effect");
        conf_drop (conf, i);
    }
    arena_destroy (arena);
}

int nodeconf_read (struct conf *conf, struct nodeconf *nodes, struct err *err)
{
    memset (nodes, 0, sizeof *nodes);
    if (conf_is_lenient (conf))
        patterns_tell (conf);
    int rc = conf_table_read (conf, nodeconf_params, nodes, err);
    if (rc == 0)
        rc = nodeconf_expand (nodes, err);
    if (rc == 0 && nodes->topology_file)
        rc = topology_load (nodes, err);
    return rc;
}

void nodeconf_node_copy (const struct nodeconf_node *from, struct nodeconf_node *out)
{
    *out = *from;
    out->name = text_or (from->name, NULL);
    out->features = text_or (from->features, NULL);
    out->networks = text_or (from->networks, NULL);
    out->address = text_or (from->address, NULL);
    out->agent = text_or (from->agent, NULL);
    out->partition = text_or (from->partition, NULL);
    out->type = text_or (from->type, NULL);
    out->gres = text_or (from->gres, NULL);
    out->classes = text_or (from->classes, NULL);
    out->priorityf = text_or (from->priorityf, NULL);
}

void nodeconf_node_clear (struct nodeconf_node *node)
{
    free (node->name);
    free (node->features);
    free (node->networks);
    free (node->address);
    free (node->agent);
    free (node->partition);
    free (node->type);
    free (node->gres);
    free (node->classes);
    free (node->priorityf);
    memset (node, 0, sizeof *node);
}

void nodeconf_free (struct nodeconf *nodes)
{
    for (uint32_t i = 0; i < nodes->line_count; i++) {
        free (nodes->line[i].hosts);
        nodeconf_node_clear (&nodes->line[i].node);
    }
    for (uint32_t i = 0; i < nodes->node_count; i++)
        nodeconf_node_clear (&nodes->node[i]);
    free (nodes->line);
    free (nodes->node);
    free (nodes->global_gres);
    free (nodes->topology);
    memset (nodes, 0, sizeof *nodes);
}
