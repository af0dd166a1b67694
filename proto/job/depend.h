/* depend: jobs that wait for others. Pure.
 *
 * Maui's names and those of batch systems: after (jobstart), afterany (jobcomplete), afterok
 * (jobsuccessfulcomplete), afternotok (jobfailedcomplete); before, beforeany, beforeok, beforenotok say
 * the same of the other job: it waits for this one. The caller knows the jobs' states. */
#ifndef NUI_JOB_DEPEND_H
#define NUI_JOB_DEPEND_H

#include <stdbool.h>

enum depend_kind {                        /* numbers are stored */
                   DEPEND_AFTER = 1,      /* it has started */
                   DEPEND_AFTERANY = 2,   /* it has ended */
                   DEPEND_AFTEROK = 3,    /* … with exit code 0 */
                   DEPEND_AFTERNOTOK = 4, /* … otherwise, or was cancelled */
};

enum depend_target {                        /* the job that is waited for */
                     DEPEND_TARGET_WAITS,   /* has not started */
                     DEPEND_TARGET_STARTED, /* runs, or ran before it was sent back to the queue */
                     DEPEND_TARGET_SUCCEEDED,
                     DEPEND_TARGET_FAILED,    /* ended in any other way after it had started */
                     DEPEND_TARGET_CANCELLED, /* ended before it started */
};

enum depend_verdict { DEPEND_MET, DEPEND_WAITS, DEPEND_NEVER };

enum depend_verdict depend_check (enum depend_kind kind, enum depend_target target);

/* Any of the names above, in any case; *before_out: the other way round. False: no such name. */
bool depend_kind_parse (const char *name, enum depend_kind *kind_out, bool *before_out);
const char *depend_kind_name (enum depend_kind kind); /* "after", "afterany" … */

#endif
