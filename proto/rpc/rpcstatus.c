/* enum err_code <-> gRPC status: one table, read both ways. */
#include "proto/rpc/rpcserver.h"

/* The first row with a status is its way back, and says whether the same request will be refused for ever. */
static const struct {
    int err_code;
    enum rpc_status status;
    bool for_ever;
} table[] = {
    {ERR_NONE, RPC_OK, false},
    {ERR_INVALID, RPC_INVALID_ARGUMENT, true},
    {ERR_NOT_FOUND, RPC_NOT_FOUND, true},
    {ERR_EXISTS, RPC_ALREADY_EXISTS, true},
    {ERR_DENIED, RPC_PERMISSION_DENIED, true},
    {ERR_UNAUTHENTIC, RPC_UNAUTHENTICATED, true},
    {ERR_LIMIT, RPC_RESOURCE_EXHAUSTED, false},
    {ERR_CONFLICT, RPC_FAILED_PRECONDITION, true},
    {ERR_FUNDS, RPC_FAILED_PRECONDITION, true},
    {ERR_UNAVAILABLE, RPC_UNAVAILABLE, false},
    {ERR_TIMEOUT, RPC_DEADLINE_EXCEEDED, false},
    {ERR_INTERNAL, RPC_INTERNAL, false},
    {ERR_IO, RPC_INTERNAL, false},
    {ERR_NOMEM, RPC_RESOURCE_EXHAUSTED, false},
    {ERR_UNSUPPORTED, RPC_UNIMPLEMENTED,
     false}, /* an older peer: nothing may be lost while it is replaced */
    /* only from others, never sent by us */
    {ERR_UNAVAILABLE, RPC_CANCELLED, false},
    {ERR_INTERNAL, RPC_UNKNOWN, false},
    {ERR_CONFLICT, RPC_ABORTED, false},
    {ERR_INVALID, RPC_OUT_OF_RANGE, true},
    {ERR_IO, RPC_DATA_LOSS, false},
};

enum rpc_status rpc_status_of_err (int err_code)
{
    for (size_t i = 0; i < sizeof (table) / sizeof (table[0]); i++) {
        if (table[i].err_code == err_code)
            return table[i].status;
    }
    return RPC_UNKNOWN;
}

int rpc_err_of_status (enum rpc_status status)
{
    for (size_t i = 0; i < sizeof (table) / sizeof (table[0]); i++) {
        if (table[i].status == status)
            return table[i].err_code;
    }
    return ERR_INTERNAL;
}

bool rpc_status_is_final (enum rpc_status status)
{
    for (size_t i = 0; i < sizeof (table) / sizeof (table[0]); i++) {
        if (table[i].status == status)
            return table[i].for_ever;
    }
    return false;
}
