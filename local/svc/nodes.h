/* nodes: the site's nodes, by the configuration, the resource manager and what administrators set (svc_nodes.c), and
 * where jobs are, as text (placement.c). */
#ifndef NUI_LOCAL_SVC_NODES_H
#define NUI_LOCAL_SVC_NODES_H

#include "local/svc/svc_i.h"

struct site_node {
    char *name;
    char *address;          /* NULL: the server's own */
    char *type, *partition; /* for the bank; NULL: none, DEFAULT */
    struct node_id id;
    bool configured; /* still in the configuration */
    /* by administrators: state, features, priority, speed; NULL: as configured. The last is of NODEFAILUREUSERS: why
     * nui-local drained it itself */
    char *set[5];
    char *
        failed; /* whose jobs failed here, none having ended well since: ",alice,bob,"; NULL: nobody's (job/blame.c) */
    UT_hash_handle hh; /* by name */
};

/* One of "state", "features", "priority", "speed" in place of what is configured ("": no more); returns
 * what was set before, malloc'ed, or NULL. In force after svc_nodes_apply. */
char *svc_node_set (struct site_node *node, const char *name, const char *value);
/* Drained by nui-local itself, durably, for that reason, until an administrator sets its state; in force at once. */
int svc_node_set_aside (struct svc *svc, struct site_node *node, const char *reason,
                        struct err *err);
/* That reason; NULL: it is not. */
const char *svc_node_aside (const struct site_node *node);
/* Why it is not up; "": nobody says. Holds until the next event of the resource manager, or change of the node. */
const char *svc_node_reason (struct svc *svc, const struct site_node *node);
/* What administrators set of a node, as the store has it now. */
int svc_node_sets_load (struct svc *svc, struct site_node *node, struct err *err);
/* The configuration's or the resource manager's nodes and licences, in force. */
int svc_nodes_apply (struct svc *svc, const struct settings *settings, struct err *err);
void svc_nodes_free (struct svc *svc);
/* The resource manager tells of them anew: in force now, and remembered. */
void svc_nodes_changed (struct svc *svc);
struct site_node *svc_node (const struct svc *svc, const char *name); /* NULL: there is none */
/* For place_open: whether there is such a node; self is the svc. */
bool svc_node_by_name (void *self, const char *name, struct node_id *out);
/* "alpha01:2:0,…" and back; nodes that are no longer configured are left out. */
char *placement_text (struct svc *svc, const struct allocation *allocation);
struct allocation placement_parse (struct svc *svc, const char *text, struct arena *arena);
/* The part of it at *text, which then is at the next one; false: there is none. A node that is no longer
 * configured is NULL. */
bool placement_next (const struct svc *svc, const char **text, struct site_node **node_out,
                     unsigned *tasks_out, unsigned *req_out);
const char *node_address (struct svc *svc, const char *node_name);

#endif
