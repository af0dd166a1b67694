/* clock: where shells (never cores) get time and random bytes from. */
#ifndef NUI_BASE_CLOCK_H
#define NUI_BASE_CLOCK_H

#include <stddef.h>

#include "proto/base/quantity.h"

time_us clock_now_us (void);               /* UTC wall clock */
duration_us clock_monotonic_us (void);     /* CLOCK_BOOTTIME: survives suspend, never steps */
void random_bytes (void *out, size_t len); /* getrandom; aborts if the kernel refuses */
void uuid_make (struct uuid *out);         /* version 4 */

#endif
