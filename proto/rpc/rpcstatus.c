/* enum err_code <-> gRPC status: one table, read both ways. */
#include "proto/rpc/rpcserver.h"

/* The first row with a status is its way back. */
static const struct {
    int err_code;
    enum rpc_status status;
} table[] = {
    {ERR_NONE, RPC_OK},
    {ERR_INVALID, RPC_INVALID_ARGUMENT},
    {ERR_NOT_FOUND, RPC_NOT_FOUND},
    {ERR_EXISTS, RPC_ALREADY_EXISTS},
    {ERR_DENIED, RPC_PERMISSION_DENIED},
    {ERR_UNAUTHENTIC, RPC_UNAUTHENTICATED},
    {ERR_LIMIT, RPC_RESOURCE_EXHAUSTED},
    {ERR_CONFLICT, RPC_FAILED_PRECONDITION},
    {ERR_FUNDS, RPC_FAILED_PRECONDITION},
    {ERR_UNAVAILABLE, RPC_UNAVAILABLE},
    {ERR_TIMEOUT, RPC_DEADLINE_EXCEEDED},
    {ERR_INTERNAL, RPC_INTERNAL},
    {ERR_IO, RPC_INTERNAL},
    {ERR_NOMEM, RPC_RESOURCE_EXHAUSTED},
    {ERR_UNSUPPORTED, RPC_UNIMPLEMENTED},
    /* only from others, never sent by us */
    {ERR_UNAVAILABLE, RPC_CANCELLED},
    {ERR_INTERNAL, RPC_UNKNOWN},
    {ERR_CONFLICT, RPC_ABORTED},
    {ERR_INVALID, RPC_OUT_OF_RANGE},
    {ERR_IO, RPC_DATA_LOSS},
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
