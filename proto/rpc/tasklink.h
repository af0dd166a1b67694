/* tasklink: between `nui run` in a job's script and nui-tasks on another host of the job: TLS 1.3 with the job's own secret as
 * pre-shared key, so that nobody but the job's processes can speak on it. Frames of a type, a length and bytes. Blocking; one
 * thread for each link. Limits: TASKLINK_FRAME_MAX. */
#ifndef NUI_RPC_TASKLINK_H
#define NUI_RPC_TASKLINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/err.h"

enum { TASKLINK_FRAME_MAX = 1 << 20, TASKLINK_SECRET = 32 };

/* What a frame is. RUN: count of arguments as a decimal word, the arguments, then NAME=value; all end with NUL. */
enum tasklink_type {
    TASKLINK_RUN = 1,
    TASKLINK_SIGNAL, /* a byte: its number */
    TASKLINK_STDOUT,
    TASKLINK_STDERR,
    TASKLINK_END, /* a byte: the exit code */
};

struct tasklink;

/* From 64 hexadecimal digits. */
int tasklink_secret (const char *hex, uint8_t out[TASKLINK_SECRET], struct err *err);
int tasklink_connect (const char *host, const char *port, const uint8_t secret[TASKLINK_SECRET],
                      struct tasklink **out, struct err *err);
/* fd is the link's from now on, also after an error. */
int tasklink_accept (int fd, const uint8_t secret[TASKLINK_SECRET], struct tasklink **out,
                     struct err *err);
void tasklink_close (struct tasklink *link); /* NULL is a no-op */
int tasklink_fd (const struct tasklink *link);
/* Something is there to be read although the descriptor does not say so. */
bool tasklink_pending (const struct tasklink *link);
/* False: the other end is gone. */
bool tasklink_send (struct tasklink *link, enum tasklink_type type, const void *bytes, size_t len);
/* The next frame, in the link until the next call; false: the other end is gone, or speaks something else. */
bool tasklink_next (struct tasklink *link, enum tasklink_type *type, const uint8_t **bytes,
                    size_t *len);

#endif
