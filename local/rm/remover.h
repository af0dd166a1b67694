/* remover: takes away the directories (jobdir.h) of jobs that ended long ago: rm_ops.forget for any
 * resource manager that keeps them. By rm(1), which is safe where others write and does not hold the
 * loop; one call at a time. */
#ifndef NUI_LOCAL_RM_REMOVER_H
#define NUI_LOCAL_RM_REMOVER_H

#include <event2/event.h>

#include "local/rm/rm.h"
#include "proto/base/log.h"

struct remover;

/* dir: job_dir, open; the caller's, for as long as this lives. */
struct remover *remover_create (struct event_base *base, struct log *log, const char *job_dir,
                                int dir);
void remover_destroy (struct remover *remover); /* NULL is a no-op; no callback comes any more */
/* As rm_ops.forget. */
int remover_go (struct remover *remover, const struct rm_gone *jobs, uint32_t count,
                void (*done) (void *arg, bool ok), void *arg, struct err *err);

#endif
