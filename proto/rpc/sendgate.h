/* sendgate: what must be so before a byte leaves. A daemon that makes the changes of many calls durable with one write
 * gives one to its server and its clients: what is submitted waits until the loop has taken in all that has
 * arrived, then the gate is opened once, and all of it goes out. */
#ifndef NUI_RPC_SENDGATE_H
#define NUI_RPC_SENDGATE_H

#include <stdbool.h>

#include "proto/base/err.h"

struct sendgate {
    bool (*shut) (void *self); /* something was changed that is not durable yet */
    /* Makes it so; at once where nothing waits. On failure nothing is sent, and the connection ends. */
    int (*open) (void *self, struct err *err);
    void *self;
};

#endif
