#include "local/svc/simulate.h"
#include "proto/base/clock.h"

time_us svc_now (const struct svc *svc)
{
    return svc->sim ? simulate_now (svc->sim) : clock_now_us ();
}
