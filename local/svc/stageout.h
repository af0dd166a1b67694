/* stageout: files of jobs that have ended, on their way out (the mover is local/stage).
 *
 * That they are to be taken is durable with the job's end (local/store/leaving.h), and goes on
 * after a restart. The job has ended: it is charged, its nodes are free; its reason is StageOut
 * until the last file is gone, then none, or StageOutFailed. Its files are not purged before. */
#ifndef NUI_LOCAL_SVC_STAGEOUT_H
#define NUI_LOCAL_SVC_STAGEOUT_H

#include "local/svc/svc_i.h"

/* In the transaction that ends a job that ran; sets its reason, where it ended well. */
int stageout_write (struct svc *svc, struct site_job *job, struct err *err);
/* After that; nothing happens where nothing was written. */
void stageout_begin (struct svc *svc, uint64_t number);
int stageout_recover (struct svc *svc, struct err *err);
void stageout_close (struct svc *svc);
void stageout_info (const struct svc *svc, uint64_t number, struct arena *arena,
                    Nui__Local__V1__JobInfo *out);

#endif
