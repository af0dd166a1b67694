/* contact: how long ago each metascheduler heard of this site, and what ends here when that is too long. */
#ifndef NUI_LOCAL_SVC_CONTACT_H
#define NUI_LOCAL_SVC_CONTACT_H

#include "local/svc/svc_i.h"

#define CONTACT_LOST "ContactLost" /* the reason of what was ended for it */

int contact_open (struct svc *svc, struct err *err); /* after the store */
void contact_close (struct svc *svc);
/* It has acknowledged a report that left at that moment of the monotonic clock. */
void contact_heard (struct svc *svc, const char *meta, duration_us sent);
#endif
