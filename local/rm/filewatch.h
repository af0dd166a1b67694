/* filewatch: wakes whoever waits for a file or a directory to change.
 *
 * All that a process watches is in one inotify instance, of which a user, root too, may have 128. What changed wakes an
 * event of the owner's, at a later turn of the loop and once for many changes; when the kernel lost some, it wakes
 * everybody. Several may watch one file. Adding costs a call of the kernel's, a change a look in a hash table. */
#ifndef NUI_LOCAL_RM_FILEWATCH_H
#define NUI_LOCAL_RM_FILEWATCH_H

#include <event2/event.h>
#include <stdint.h>

#include "proto/base/err.h"

struct filewatch;
struct filewatch_one; /* a path that somebody watches */

/* Takes nothing of the kernel's until it is opened. */
struct filewatch *filewatch_create (struct event_base *base);
/* NULL is a no-op. Nothing is watched any more. */
void filewatch_destroy (struct filewatch *watch);

/* The instance is there, or ERR_IO; again is no-op. */
int filewatch_open (struct filewatch *watch, struct err *err);

/* mask: of inotify(7). wake, which stays the caller's, is made active (EV_TIMEOUT). Opens the instance where nobody did. */
int filewatch_add (struct filewatch *watch, const char *path, uint32_t mask, struct event *wake,
                   struct filewatch_one **out, struct err *err);
/* Before wake is freed. NULL is a no-op. */
void filewatch_remove (struct filewatch_one *one);

#endif
