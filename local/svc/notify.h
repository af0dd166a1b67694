/* notify: tells the administrator what should not wait for the next look: a job that failed, a node
 * that is down, a bank that does not answer, denies or has another past, a reservation that has lost nodes.
 *
 * Each notification is a message of the store's outbox, written with what it tells of, so that none
 * is lost; NOTIFICATIONPROGRAM and NOTIFICATIONURL get them in order, each at least once, one at a
 * time, beside the loop. What fails is tried again a few times and then dropped, with a line in the
 * log. Without program and URL nothing is written. */
#ifndef NUI_LOCAL_SVC_NOTIFY_H
#define NUI_LOCAL_SVC_NOTIFY_H

#include "local/svc/svc_i.h"

/* The bank answered, or did not. */
void notify_bank (struct svc *svc, bool answers);
/* Its history is not, or is again, the one that was kept (local/link/anchors.h). */
void notify_history (struct svc *svc, bool rewritten);

#endif
