/* standing: what SRCFG[x] says of a standing reservation. Plain values;
 * local/conf reads them and keeps the reservations (standing.c there knows the calendar). */
#ifndef NUI_LOCAL_CORE_STANDING_H
#define NUI_LOCAL_CORE_STANDING_H

#include "local/core/types.h"

enum standing_period { STANDING_DAY, STANDING_WEEK, STANDING_INFINITY };

enum { STANDINGS_MAX = 1000, STANDING_DEPTH_MAX = 366 };

struct policy_standing {
    char name[64];
    uint64_t hash; /* of all that the file says of it */
    uint32_t line;
    struct acl_entry *acl;
    uint32_t acl_count;
    bool owned;
    struct acl_entry owner;
    const char *charge_account; /* pays for what it keeps idle; NULL: nobody */
    const char *charge_user;    /* in whose name; never NULL where an account is */
    const char *hosts;          /* a host expression; NULL: any */
    const char *features;       /* NULL: none */
    const char *partition;      /* NULL: any */
    uint32_t days;              /* bit 0: Sunday */
    uint32_t depth;             /* so many of its times at once */
    enum standing_period period;
    int64_t start_s, end_s;           /* after midnight; end_s > start_s */
    int64_t week_start_s, week_end_s; /* after Sunday's midnight */
    uint32_t flags;                   /* enum rsv_flag */
    int64_t priority;                 /* higher ones find their nodes first */
    uint32_t tasks;                   /* 0: all of its hosts */
    uint32_t tasks_per_node;
    bool whole; /* a task is a whole node */
    struct resources task;
    duration_us idle; /* given up for this time when nobody has used it so long; 0: never */
    duration_us busy; /* BUSYTIME: where free nodes do not suffice, those that jobs leave so soon */
};

#endif
