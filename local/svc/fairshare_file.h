/* fairshare_file: recorded usage in the store, by names (numbers differ from run to run).
 *
 * Written at every poll and with the end of a job, so that a kill -9 loses at most a second of what
 * ended jobs used; running jobs are charged from the last record on when they are found again. Under
 * FSPOLICY UTILIZEDPS it also holds how far each running job's use was measured. */
#ifndef NUI_LOCAL_SVC_FAIRSHARE_FILE_H
#define NUI_LOCAL_SVC_FAIRSHARE_FILE_H

struct svc;

void fairshare_file_load (struct svc *svc); /* a missing or unreadable record is logged, not fatal */
void fairshare_file_save (struct svc *svc); /* in a transaction of its own; a failure is logged */

#endif
