/* defer: the rule by which a job that cannot be run is deferred or held. Daemon and simulator
 * ask it, with the counts that they keep. It changes no job and knows no clock. */
#include "local/core/defer.h"

#include <assert.h>

const char *defer_reason_name (enum defer_reason reason)
{
    static const char *const name[DEFER_REASONS] = {
        [DEFER_NOT] = "",
        [DEFER_NO_RESOURCES] = "NoResources",
        [DEFER_SYSTEM_LIMITS] = "SystemLimitsExceeded",
        [DEFER_POLICY_VIOLATION] = "PolicyViolation",
        [DEFER_BANK_FAILURE] = "BankFailure",
        [DEFER_CANNOT_DEBIT] = "CannotDebitAccount",
        [DEFER_RM_FAILURE] = "RMFailure",
        [DEFER_RM_REJECT] = "RMReject",
        [DEFER_QOS_ACCESS] = "QOSAccess",
        [DEFER_ADMIN] = "Admin",
    };

    assert (reason < DEFER_REASONS);
    return name[reason];
}

struct deferral defer_next (const struct policy *policy, uint32_t count, time_us now)
{
    struct deferral d = {TIME_US_NONE, false};

    if (policy->defer_time == 0)
        return d;
    d.batch_hold = count >= policy->defer_count;
    d.until = now > TIME_US_MAX - policy->defer_time ? TIME_US_MAX : now + policy->defer_time;
    return d;
}

struct deferral defer_start_failed (const struct policy *policy, uint32_t failures, uint32_t count,
                                    time_us now)
{
    if (failures < policy->defer_start_count)
        return (struct deferral){TIME_US_NONE, false};
    return defer_next (policy, count, now);
}
