/* forget: jobs that were over longer ago than JOBHISTORYTIME are taken off the disk, some at a time. Over means ended, and the
 * signature's time, too: whoever sent that again would have the job run once more. None goes that is watched or that a live
 * job waits for; of an array all go or none. The bank has what was charged for them. */
#ifndef NUI_META_SVC_FORGET_H
#define NUI_META_SVC_FORGET_H

#include "meta/job/job.h"

extern const struct metad_part forget_part;

#endif
