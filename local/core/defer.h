/* defer: what becomes of a job that cannot be run for a reason of its own. Pure.
 *
 * It is deferred: DEFERTIME long nobody looks at it. After DEFERCOUNT times it gets a batch hold, which
 * an administrator releases. A failed start defers it from the DEFERSTARTCOUNTth on; before, it is
 * tried again at once. DEFERTIME 0: never deferred. The caller keeps the counts. */
#ifndef NUI_LOCAL_CORE_DEFER_H
#define NUI_LOCAL_CORE_DEFER_H

#include "local/core/policy.h"

enum defer_reason {
    DEFER_NOT,
    DEFER_NO_RESOURCES,     /* more than the whole machine has */
    DEFER_SYSTEM_LIMITS,    /* over a limit per job */
    DEFER_POLICY_VIOLATION, /* its reservation is due, and it is over a soft limit by now */
    DEFER_BANK_FAILURE,     /* the bank does not hold what it would cost */
    DEFER_CANNOT_DEBIT,     /* its account may not be debited */
    DEFER_RM_FAILURE,       /* the resource manager could not start it */
    DEFER_RM_REJECT,        /* … did not want to */
    DEFER_QOS_ACCESS,       /* its QoS is not for its credentials */
    DEFER_ADMIN,
    DEFER_REASONS
};
/* "NoResources", "SystemLimitsExceeded" …, as Maui names them. */
const char *defer_reason_name (enum defer_reason reason);

struct deferral {
    time_us until;   /* TIME_US_NONE: not deferred */
    bool batch_hold; /* once too often: until it is released */
};
/* count: how many times it was deferred before. */
struct deferral defer_next (const struct policy *policy, uint32_t count, time_us now);
/* failures: starts that failed in a row, this one among them. */
struct deferral defer_start_failed (const struct policy *policy, uint32_t failures, uint32_t count,
                                    time_us now);

#endif
