/* The moment that the schedule counts from: the wall clock, or a simulation's. Everything in local/svc asks it; it asks
 * nobody. */
#include "local/svc/svc_i.h"
#include "proto/base/clock.h"

time_us svc_now (const struct svc *svc)
{
    return svc->sim ? svc->simulated_now : clock_now_us ();
}
