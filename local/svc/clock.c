/* The moment that the schedule counts from: the wall clock, or a simulation's. Everything in local/svc asks it; it asks
 * nobody. A clock that was ahead and is set right takes the schedule back with it, or all that begins would be long over. */
#include "local/svc/svc_i.h"
#include "proto/base/clock.h"

/* What an adjustment of the clock may take back without a word; by more it was set. */
enum { SET_BACK_US = 1000000 };

time_us svc_now (const struct svc *svc)
{
    return svc->sim ? svc->simulated_now : clock_now_us ();
}

void svc_clock_settle (struct svc *svc)
{
    time_us now = svc_now (svc), seen = cluster_now (svc->cluster);
    if (seen == TIME_US_NONE || seen - now < SET_BACK_US)
        return;
    log_event (svc->log, LOG_LEVEL_WARN, "svc", "clock_set_back", "by_ms=%lld",
               (long long)((seen - now) / 1000));
    cluster_clock_back (svc->cluster, now);
}
