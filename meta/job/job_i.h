/* job_i: what the files of a job (job.c, job_store.c, job_watch.c) know of each other. */
#ifndef NUI_META_JOB_JOB_I_H
#define NUI_META_JOB_JOB_I_H

#include "meta/job/job.h"

/* job.c: under that number it is found from now on, or not any more. */
void job_list (struct gridjob *job, uint64_t number);
void job_unlist (struct gridjob *job);

/* job_store.c: in memory as it is on disk; NULL with ERR_NOT_FOUND, or what is damaged. */
struct gridjob *job_load (struct metad *metad, uint64_t number, struct err *err);

/* job_watch.c */
void job_watchers_tell (struct gridjob *job);
/* What watched the job in memory before watches this one; NULL: they are refused. */
void job_watchers_take (struct metad *metad, struct gridjob *job, struct watcher *watchers,
                        const struct err *why);

#endif
