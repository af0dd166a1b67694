/* clocksapart: one bound and one line in the log for all who compare clocks: nui-local and nui-meta with the bank's,
 * nui-meta with the sites', and the client that shows it. */
#include "proto/base/clocksapart.h"

#include <stdio.h>

bool clocks_differ (duration_us ahead)
{
    return ahead > CLOCKS_APART_MAX || ahead < -CLOCKS_APART_MAX;
}

static const char *clocks_amount (duration_us ahead, char by[QUANTITY_TEXT_MAX])
{
    return duration_format (ahead < 0 ? -ahead : ahead, by);
}

const char *clocks_text (duration_us ahead, const char *word, char out[64])
{
    char by[QUANTITY_TEXT_MAX];
    if (!clocks_differ (ahead))
        return NULL;
    snprintf (out, 64, "%.40s %.20s", clocks_amount (ahead, by), ahead < 0 ? "behind" : word);
    return out;
}

bool clocks_keep (duration_us *kept, duration_us ahead, struct log *log, const char *area,
                  const char *whose)
{
    char by[QUANTITY_TEXT_MAX];
    bool differ = clocks_differ (ahead), changed = differ != clocks_differ (*kept);
    *kept = ahead;
    if (changed)
        log_event (log, LOG_LEVEL_WARN, area, differ ? "clock_differs" : "clock_agrees", "%s%s=%s",
                   whose, ahead < 0 ? "behind" : "ahead", clocks_amount (ahead, by));
    return changed;
}
