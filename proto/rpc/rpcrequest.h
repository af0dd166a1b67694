/* rpcrequest: what a server takes of a request's bytes, whatever carried them: how many, and the message in them.
 * Pure. The transport (rpccall.c) and what stands in for it in tests ask the same. */
#ifndef NUI_RPC_RPCREQUEST_H
#define NUI_RPC_RPCREQUEST_H

#include "proto/rpc/rpcserver.h"

enum {
    RPCREQUEST_BYTES_MAX = 64 * 1024, /* of a method that says nothing else */
    RPCREQUEST_LIST_BYTES =
        2 << 20, /* who takes more takes lists: more fields are unpacked (pbguard.h) */
};

uint32_t rpcrequest_bytes_max (const struct rpc_method *method);
/* Guarded (pbguard.h); NULL with ERR_INVALID or ERR_LIMIT. The text of a daemon (`caller`) is mended in place, and
 * *mended_out names the first such field, else it is NULL. */
ProtobufCMessage *rpcrequest_unpack (const struct rpc_method *method,
                                     const ProtobufCMessageDescriptor *input,
                                     enum principal_kind caller, uint8_t *bytes, size_t len,
                                     const char **mended_out, struct err *err);

#endif
