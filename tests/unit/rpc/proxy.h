/* proxy: a TCP relay before the server that can be cut, as a network does. */
#ifndef NUI_TESTS_UNIT_RPC_PROXY_H
#define NUI_TESTS_UNIT_RPC_PROXY_H

#include "tests/unit/rpc/rig.h"

struct proxy;

/* Puts itself in the place of rig->target. */
struct proxy *proxy_up (struct rig *rig);
/* Ends every relayed connection; both sides see it. */
void proxy_cut (struct proxy *proxy);
const unsigned *proxy_accepted (const struct proxy *proxy); /* how many, counting on */
void proxy_down (struct proxy *proxy);

#endif
