/* child: runs a program beside the loop, and says how it ended.
 *
 * For helpers that are no jobs: an administrator's hook, the removal of old files. Each is in a
 * session of its own with an empty signal mask, stdin and stdout on /dev/null, and is killed (with
 * its group) at its limit. One thread, libevent. */
#ifndef NUI_CHILD_CHILD_H
#define NUI_CHILD_CHILD_H

#include <event2/event.h>

#include "proto/base/arena.h"
#include "proto/base/err.h"
#include "proto/base/quantity.h"

struct child;

/* Words before a program's own, so that it runs as that account with no way back (setpriv(1)); none where we are not
 * root, or the account is. The texts are the arena's. */
enum { CHILD_AS_MAX = 6 };
uint32_t child_as (const char *account, struct arena *arena, const char *argv[CHILD_AS_MAX],
                   struct err *err);

/* exit_code: its own, or 128 + signal; timed_out: it was killed at its limit. The child is gone. */
typedef void (*child_fn) (void *arg, int exit_code, bool timed_out);

/* argv[0] is the program's path; both arrays end with NULL and are read before this returns. The
 * callback comes from the loop, never from here. NULL with err when it could not be started. */
struct child *child_run (struct event_base *base, const char *const *argv, const char *const *envp,
                         duration_us limit, child_fn fn, void *arg, struct err *err);
/* The same, and what it prints to stdout, of which more than `most` bytes are not wanted: it is killed then. */
struct child_said {
    int exit_code;
    bool timed_out, flooded;
    const char *text; /* NUL-terminated; holds during the call */
    size_t len;
};
typedef void (*child_said_fn) (void *arg, const struct child_said *said);
struct child *child_ask (struct event_base *base, const char *const *argv, const char *const *envp,
                         duration_us limit, size_t most, child_said_fn fn, void *arg,
                         struct err *err);
/* Kills it; no callback. NULL is a no-op. */
void child_kill (struct child *child);

#endif
