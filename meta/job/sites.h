/* sites: who there is. */
#ifndef NUI_META_JOB_SITES_H
#define NUI_META_JOB_SITES_H

#include "meta/job/hub.h"

/* Makes the table agree with the configuration: new sites get a link, changed servers a new one. */
int sites_configure (struct metad *metad, struct err *err);
void sites_disconnect (struct metad *metad);
void sites_destroy (struct metad *metad);
/* NULL when there is no such configured site. */
struct site *site_find (struct metad *metad, const char *name);
bool site_up (const struct site *site);
/* Up, or not heard of yet in the first 30 s of this process: worth asking. */
bool site_worth_asking (const struct metad *metad, const struct site *site, duration_us now_mono);
/* The monotonic moment from which it is not, unless it reports. */
duration_us site_asked_until (const struct metad *metad, const struct site *site);
/* Since its last report, or since we began. */
duration_us site_silent_for (const struct metad *metad, const struct site *site);
/* Where users reach its nui.local.v1 service: as it says itself, else as configured. */
const char *site_server (const struct site *site);

#endif
