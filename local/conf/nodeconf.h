/* nodeconf: NODECFG, as it stands in the file: what the site says of its nodes, and floating licences.
 *
 *     NODECFG[DEFAULT]       MEM=64G CLASS=batch PRIORITYF='SPEED + .01*AMEM'
 *     NODECFG[node[001-128]] PROCS=8 CLASS=batch:8,special:4 MAXJOB=8 GRES=tape:2 PARTITION=old
 *     NODECFG[GLOBAL]        GRES=matlab:5
 *
 * DEFAULT holds for what a node's own line does not say. GLOBAL is no node: its generic resources float.
 * Names and texts are owned. Limits: NODECONF_NODES_MAX. */
#ifndef NUI_LOCAL_CONF_NODECONF_H
#define NUI_LOCAL_CONF_NODECONF_H

#include "local/core/types.h"
#include "proto/conf/conf.h"

enum { NODECONF_NODES_MAX = 100000, NODECONF_FEATURE_MAX = 250 };

struct nodeconf_node { /* -1 or NULL: not said */
    char *name;
    int64_t procs, mem_mb, swap_mb, disk_mb;
    int64_t speed_ppm;
    int64_t priority;
    int64_t max_jobs, max_jobs_per_user, max_procs_per_user;
    int64_t max_load_milli;
    bool has_priority;
    char *features;  /* "a,b" */
    char *networks;  /* "ethernet,myrinet" */
    char *address;   /* host name or address for peers; NULL: this server's own */
    char *agent;     /* host:port of its nui-node; NULL: it is this machine */
    char *partition; /* NULL: DEFAULT */
    char *type;      /* for the bank's rates; NULL: none */
    char *gres;      /* "tape:2,gpu" */
    char *classes;   /* "batch:8,special:4"; NULL: every class */
    char *priorityf; /* "SPEED - 10*LOAD" */
};

/* One line names many nodes. */
struct nodeconf_line {
    char *hosts;           /* as written */
    uint32_t first, count; /* its nodes */
    struct nodeconf_node node;
};

struct nodeconf {
    struct nodeconf_line *line;
    uint32_t line_count;
    struct nodeconf_node *node; /* in the file's order; everything is said */
    uint32_t node_count;
    char *global_gres;         /* NULL: no floating licences */
    const char *topology_file; /* TOPOLOGYFILE; the conf's */
    char *topology;            /* what stands in it; NULL: none */
};

extern const struct conf_param nodeconf_params[]; /* of a struct nodeconf */
/* NODECFG and TOPOLOGYFILE of a file: names expanded, defaults filled in. nodes is zeroed first; to be
 * freed by the caller, also after an error. */
int nodeconf_read (struct conf *conf, struct nodeconf *nodes, struct err *err);
/* A node that no line names: as DEFAULT says. */
void nodeconf_node_default (const struct nodeconf *nodes, struct nodeconf_node *out);
/* What a resource trace says of a node goes before that: its name and processors and, where the trace
 * describes nodes, memory, swap, disk and speed. */
void nodeconf_node_traced (struct nodeconf_node *node, const char *name,
                           const struct node_spec *spec, bool described);
void nodeconf_free (struct nodeconf *nodes);
void nodeconf_node_copy (const struct nodeconf_node *from, struct nodeconf_node *out);
void nodeconf_node_clear (struct nodeconf_node *node);

#endif
