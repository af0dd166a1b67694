/* place: names of the configuration to the numbers of the core's placement: features, partitions,
 * generic resources, class initiators, floating licences, lists of hosts, node sets, switches.
 *
 * One per cluster, for as long as that lives: numbers never change, so that a reload is the same calls
 * again with the new texts. In order: place_prepare with all nodes; place_node for each before it is
 * given to the cluster; then place_apply. The caller owns everything it gives; the place owns its tables. */
#ifndef NUI_LOCAL_CONF_PLACE_H
#define NUI_LOCAL_CONF_PLACE_H

#include "local/conf/nodeconf.h"
#include "local/core/cluster.h"
#include "proto/base/strtab.h"

struct place {
    struct cluster *cluster;
    struct cred_names *names;
    struct strtab *features; /* shared with the caller: number is the feature's */
    /* A node's number by its name; false: there is none. */
    bool (*node_find) (void *self, const char *name, struct node_id *out);
    /* And the other way; NULL: a class's HOSTLIST is a list of names, and no pattern. */
    const char *(*node_name) (void *self, uint32_t node);
    /* Told of a restriction that names what is not here: left out, or closed, a class that has no node then;
     * NULL: it is refused. */
    void (*absent) (void *self, const char *key, const char *index, const char *why, bool closed);
    bool nothing_runs; /* a simulation: also those that keep jobs off nodes */
    void *self;
    /* own */
    struct strtab *column; /* number n is column RES_GRES0 + n: "tape", "class:batch", "jobs" */
    struct strtab *class;  /* number is the bit of node_spec.classes */
    struct strtab *sw;     /* switches of the topology file */
    uint32_t job_column;   /* 0: nobody counts jobs */
    uint64_t counted;      /* classes (bits) whose initiators are counted somewhere */
};

void place_open (struct place *place, struct cluster *cluster, struct cred_names *names,
                 struct strtab *features,
                 bool (*node_find) (void *self, const char *name, struct node_id *out), void *self);
void place_close (struct place *place);

/* Columns for all that these nodes count; licences. */
int place_prepare (struct place *place, const struct nodeconf_node *node, uint32_t count,
                   const char *global_gres, time_us now, struct err *err);
/* All that is said of a node, as the core has it. */
int place_node (struct place *place, const struct nodeconf_node *node, struct node_spec *out,
                struct err *err);
/* Classes, the site's node set, switches: once all nodes are there. topology: the text of the topology
 * file, NULL for none. */
int place_apply (struct place *place, const struct policy *policy, const char *topology,
                 time_us now, struct err *err);

/* The same for one class, new since (a job names it). */
int place_class (struct place *place, const struct policy *policy, uint32_t class, time_us now,
                 struct err *err);
/* ERR_NOT_FOUND, with what is not here: its class's HOSTLIST or DEFAULT.FEATURES leave a job no node. features: it asks for
 * some itself, in place of its class's. */
int place_class_open (struct place *place, const struct policy *policy,
                      const uint32_t cred[CRED_KINDS], bool features, struct err *err);

/* "ONEOF:FEATURE:a:b" (NODESET of a job or class) to an id; the rest as the policy says. */
int place_nodeset (struct place *place, const struct policy *policy, const char *text,
                   uint32_t *id_out, struct err *err);
/* "node[1-4],m1" to an id; "node[1-4]!node2": but not this one; "!node2": any but this one. */
int place_hosts (struct place *place, const char *text, uint32_t *id_out, struct err *err);
/* What a generic resource is here: a column of nodes (*column_out > 0), a licence (*licence_out), or
 * neither, false. */
bool place_gres (const struct place *place, const char *name, uint32_t *column_out,
                 uint32_t *licence_out);
/* What there is, or what is asked for, of a type (gpu.a100) is there, or asked for, of the whole (gpu) as well. */
void place_gres_whole (const struct place *place, struct resources *resources);
/* The column of a class's initiators; 0: they are not counted. */
uint32_t place_class_column (const struct place *place, const char *class);
/* The name of a generic resource's column; NULL when it is not one (class initiators, jobs). */
const char *place_gres_name (const struct place *place, uint32_t column);

#endif
