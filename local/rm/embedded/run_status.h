/* run_status: how a run began and ended, as it stands in its directory (`started`, `status`: see
 * supervise_file.h). Blocking, durable. */
#ifndef NUI_LOCAL_RM_EMBEDDED_RUN_STATUS_H
#define NUI_LOCAL_RM_EMBEDDED_RUN_STATUS_H

#include "local/rm/rm.h"

void run_status_read (int dir, struct rm_status *out);
/* That it began at status->start. 0, or -1 with errno. */
int run_started_write (int dir, const struct rm_status *status);
/* That it ended; start and cpu_time too. 0, or -1 with errno. */
int run_status_write (int dir, const struct rm_status *status);
enum rm_end run_end_of (const char *name); /* what nobody knows: a node failure */

#endif
