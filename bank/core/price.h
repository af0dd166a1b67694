/* price: what a job costs. Pure.
 *
 * Amount in micro-credits = procs * walltime_us * multiplier_ppm / 1e6, computed in 128 bits and
 * rounded once: up for a hold, down for a charge. So a charge for no more than what was asked, at
 * the same rate, never exceeds its hold (rule P4 of the bank's design). */
#ifndef NUI_BANK_CORE_PRICE_H
#define NUI_BANK_CORE_PRICE_H

#include "proto/base/quantity.h"

#define PRICE_PROCS_MAX INT64_C (100000000)
#define PRICE_TIME_US_MAX (INT64_C (3660) * 86400 * US_PER_S) /* ten years */
#define PRICE_PPM_MAX INT64_C (1000000000000)                 /* a million credits per second */
#define PRICE_AMOUNT_MAX (INT64_MAX / 4) /* sums of a few amounts stay in 64 bits */

enum price_rounding { PRICE_HOLD, PRICE_CHARGE };

enum { PRICE_FORMULA_MAX = 160 };

/* ERR_INVALID for quantities that are negative or past their bound (zero procs too), ERR_LIMIT when
 * the amount would pass PRICE_AMOUNT_MAX. */
int price_compute (int64_t procs, duration_us time, int64_t ppm, enum price_rounding rounding,
                   credit_micro *amount_out, struct err *err);

/* "8 procs * 3600 s * 1.25 = 36000 credits". */
char *price_formula (int64_t procs, duration_us time, int64_t ppm, credit_micro amount,
                     char buf[PRICE_FORMULA_MAX]);

#endif
