/* standing: keeps the reservations that SRCFG asks for in a cluster, by the local calendar.
 *
 * For the daemon, the simulation and the policy book alike: standing_roll before each pass. What it made
 * is found again by its number: RSV_STANDING_BASE, which of the policy's, and when it begins. Instances
 * end with their time; those whose text in the configuration has changed are made anew, others keep
 * their nodes. One that has too few nodes tries again each time. Cost: O(instances), and a placing for
 * each that is new or short. */
#ifndef NUI_LOCAL_CONF_STANDING_H
#define NUI_LOCAL_CONF_STANDING_H

#include "local/core/cluster.h"
#include "local/core/standing.h"

#define RSV_STANDING_BASE (UINT64_C (1) << 63)

struct standing;

struct standing_site { /* what the shell knows */
    void *self;
    const char *(*node_name) (void *self, uint32_t node);
    /* STRTAB_NONE: no node has it */
    uint32_t (*feature) (void *self, const char *name);
    uint32_t (*partition) (void *self, const char *name); /* 0: there is none */
    /* What jobs may ask for by name; may be NULL. */
    struct rsv_id (*named) (void *self, const char *name);
    void (*note) (void *self, const char *sentence); /* may be NULL */
};

struct standing *standing_create (const struct standing_site *site);
void standing_destroy (struct standing *standing); /* NULL is a no-op; the cluster's stay */

/* Everything as it should be now. Changes nothing where nothing has to change. */
void standing_roll (struct standing *standing, struct cluster *cluster, time_us now);

/* The nodes of all of them as lines of text (malloc'ed), so that they have the same ones after a restart:
 * to be given to standing_regain before the first roll. NULL: as at the last call. */
char *standing_lines (struct standing *standing, const struct cluster *cluster);
/* Those whose text in the configuration is the same get these nodes, if they still can. */
void standing_regain (struct standing *standing, const char *lines);

struct standing_view {
    const struct policy_standing *policy;
    uint32_t index;  /* of its times, the first that is not over is 0: "name.0.0" */
    uint32_t wanted; /* tasks, or nodes where they are whole */
    uint32_t have;   /* of them, on nodes that are up */
    struct rsv_id rsv;
};
/* The reservation of this number; false: not a standing one. */
bool standing_get (const struct standing *standing, const struct cluster *cluster, uint64_t rsv,
                   struct standing_view *out);

/* When a time of it begins and ends; k counts from the one that is going on or comes next. False: none
 * within a year. For tests too. */
bool standing_window (const struct policy_standing *s, time_us now, uint32_t k, time_us *start,
                      time_us *end);

#endif
