/* rpcrequest: see the header; the one place where a request's bytes become a message. */
#include "proto/rpc/rpcrequest.h"

#include "proto/rpc/pbguard.h"

uint32_t rpcrequest_bytes_max (const struct rpc_method *method)
{
    return method->request_bytes_max ? method->request_bytes_max : RPCREQUEST_BYTES_MAX;
}

/* A daemon's word is not refused as a whole for one bad character: it would say the same for ever. */
static bool rpcrequest_mends (enum principal_kind kind)
{
    return kind == PRINCIPAL_SITE || kind == PRINCIPAL_META || kind == PRINCIPAL_BANK;
}

ProtobufCMessage *rpcrequest_unpack (const struct rpc_method *method,
                                     const ProtobufCMessageDescriptor *input,
                                     enum principal_kind caller, uint8_t *bytes, size_t len,
                                     const char **mended_out, struct err *err)
{
    *mended_out = NULL;
    return pbguard_request (input, bytes, len,
                            method->request_bytes_max > RPCREQUEST_LIST_BYTES ? PBGUARD_FIELDS_MANY
                                                                              : PBGUARD_FIELDS,
                            rpcrequest_mends (caller) ? mended_out : NULL, err);
}
