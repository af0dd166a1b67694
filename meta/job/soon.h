/* soon: what the loop is to call, and not its caller from inside: an answer that needs no call, say. In order, each once; what
 * waits when the metascheduler ends is called then, so that whoever owns something by it can free it.
 *
 * One event and a queue per metascheduler. Adding costs one allocation, and no room is left over: no failure. */
#ifndef NUI_META_JOB_SOON_H
#define NUI_META_JOB_SOON_H

#include <event2/event.h>

struct soon;

struct soon *soon_create (struct event_base *base);
/* In the next turn of the loop, also where this is called from one that is called. */
void soon_call (struct soon *soon, void (*call) (void *arg), void *arg);
/* Calls what is left, and what that adds; then it is gone. NULL is a no-op. */
void soon_end (struct soon *soon);

#endif
