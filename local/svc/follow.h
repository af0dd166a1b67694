/* follow: TEST beside a production scheduler (PRODUCTION). What its store has is read at the beginning
 * and with each poll: jobs that wait and run, holds and priorities, reservations, what is set on nodes.
 * So plans are those that production would make with this configuration; of what runs there only what
 * production says is believed. Nothing is ever written there, and no resource manager is asked.
 *
 * Its own store is a scratch file, begun anew each time. */
#ifndef NUI_LOCAL_SVC_FOLLOW_H
#define NUI_LOCAL_SVC_FOLLOW_H

#include "local/svc/svc_i.h"

/* 0 without PRODUCTION. */
int follow_open (struct svc *svc, const struct settings *settings, struct err *err);

#endif
