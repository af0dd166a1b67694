/* settings_grid: GRIDCFG, what a site lets metaschedulers take of it.
 *
 * One record for each metascheduler, or DEFAULT for those that have none; what a record does not say is as
 * DEFAULT's line above it says. What Maui has words for is not here: nodes and hours are reservations whose list
 * has !GRID (SRCFG), what runs at one time is a limit of the QoS that QDEF gives. */
#ifndef NUI_LOCAL_SVC_SETTINGS_GRID_H
#define NUI_LOCAL_SVC_SETTINGS_GRID_H

#include "proto/conf/conf.h"

/* 0 or NULL: not limited. Strings are the conf's. */
struct settings_grid {
    char *meta;                /* "DEFAULT" or its name; owned */
    duration_us lease;         /* MAXLEASE */
    duration_us ahead;         /* MAXAHEAD: a slot begins no later than this from now */
    duration_us wall;          /* MAXJOBWALLTIME */
    int64_t procs_each;        /* MAXPROCPERJOB: of one component */
    int64_t procs;             /* MAXPROC: of slots and running jobs, at any moment */
    int64_t share;             /* SHARE: the same in percent of the site's processors */
    credit_micro price;        /* MINPRICE: per processor-second */
    const char *qos_default;   /* QDEF: of jobs that ask for none */
    const char *qos;           /* QLIST, and so on: names, !names, "ALL" */
    const char *users;         /* identities or local accounts */
    const char *accounts;
    const char *classes;
};

extern const struct conf_param settings_grid_attrs[];

/* Whether a list has a place for either name: no !name that fits, and one that does, or "ALL", or no other
 * entry. text NULL: it has. */
bool settings_grid_lists (const char *text, const char *name, const char *other);
/* ERR_INVALID for an entry that can be no name. */
int settings_grid_check (const struct settings_grid *grid, struct err *err);

#endif
