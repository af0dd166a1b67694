/* echoserver: the test service's handlers, for unit tests, interop and the benchmark. */
#ifndef NUI_TESTS_INTEROP_ECHOSERVER_H
#define NUI_TESTS_INTEROP_ECHOSERVER_H

#include "proto/rpc/rpcserver.h"

struct echoserver {
    struct event_base *base;
    unsigned calls;     /* begun */
    unsigned cancelled; /* cancel hooks called */
    unsigned open;      /* begun and not finished */
    uint64_t produced;  /* bytes given to rpccall_send */
};

int echoserver_add (struct echoserver *echo, struct rpcserver *server, struct err *err);

#endif
