#include "local/svc/svc_i.h"
#include "proto/base/clock.h"

time_us svc_now (const struct svc *svc)
{
    (void)svc;
    return clock_now_us ();
}
