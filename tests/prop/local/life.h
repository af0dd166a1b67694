/* life: a random life of a site for test_life.c: its policy, nodes and events, all from one seed,
 * and what must hold after each pass. A check fails the test. */
#ifndef NUI_TESTS_PROP_LOCAL_LIFE_H
#define NUI_TESTS_PROP_LOCAL_LIFE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "local/core/pass.h"
#include "local/core/query.h"

enum {
    NODES_MOST = 9,
    ACTIVE_MOST = 400,
    DIMS = 4,
    CLASS_COLUMN = RES_GRES0,    /* initiators of class 1 */
    JOBS_COLUMN = RES_GRES0 + 1, /* NODECFG MAXJOB */
    RICH_DIMS = RES_GRES0 + 2,
    LICENCES = 2,
    PARTITION_PROCS = 4,
    INSIDE = 1, /* a QoS: QFLAGS USERESERVED */
};

struct life {
    uint64_t seed;
    struct cred_names names;
    struct policy *policy;
    struct cluster *twin[2];
    struct arena *arena[2];
    struct plan plan[2];
    uint32_t nodes;
    uint64_t next_job, next_rsv;
    time_us now;
    bool unit;
    bool rich; /* classes, partitions, node sets, licences, who shares a node */
    uint32_t dims;
    int32_t licence[LICENCES];
    uint32_t nodeset; /* every job's; 0: none */
    bool mandatory;
    uint32_t hosts;
};

/* --- life_make.c ---------------------------------------------------------------------------- */

/* From low to high. */
int64_t life_pick (struct life *l, int64_t low, int64_t high);
/* l->seed decides; the policy is l->policy. */
void life_policy_make (struct life *l);
/* Both twins, with the same nodes. */
void life_site_make (struct life *l);
/* Classes, partitions, node sets, licences (l->rich). */
void life_site_enrich (struct life *l);
/* One more thing happens, to both. */
void life_event (struct life *l);

/* --- life_check.c --------------------------------------------------------------------------- */

void life_check_question (struct life *l);
void life_check_over_commitment (const struct life *l);
void life_check_sets (const struct life *l);
void life_check_access (const struct life *l);
void life_check_inside (const struct life *l);
void life_check_limits (const struct life *l);
void life_check_partitions (const struct life *l);
void life_check_down (const struct life *l);
void life_check_soft_promises (const struct life *l);

#endif
