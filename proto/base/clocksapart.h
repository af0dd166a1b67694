/* clocksapart: how far another daemon's clock may be from this one's before somebody should hear of it.
 *
 * Pure, but for the line in the log. The difference is positive where the other is ahead. */
#ifndef NUI_BASE_CLOCKSAPART_H
#define NUI_BASE_CLOCKSAPART_H

#include <stdbool.h>

#include "proto/base/log.h"
#include "proto/base/quantity.h"

#define CLOCKS_APART_MAX (60 * US_PER_S)

bool clocks_differ (duration_us ahead);
/* "02:00:00 ahead", or another word for that; NULL: no further apart than they may be. */
const char *clocks_text (duration_us ahead, const char *word, char out[64]);
/* Keeps what was measured, and says in the log when the difference begins and when it ends; `whose` begins the line's
 * fields ("site=alpha ", ""). True: it did either. */
bool clocks_keep (duration_us *kept, duration_us ahead, struct log *log, const char *area,
                  const char *whose);

#endif
