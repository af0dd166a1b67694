/* token: the bearer tokens of nui-delegate(1): base64url of a user's delegation to this gate, a dot, base64url of the secret
 * of which it has the hash. Those that were found good lately are remembered by digest, for a minute at most. */
#ifndef NUI_META_GATE_TOKEN_H
#define NUI_META_GATE_TOKEN_H

#include "proto/rpc/gatedeleg.h"

struct token {
    struct principal user;
    ProtobufCBinaryData delegation; /* as signed */
    char *header;                   /* base64 of it, for calls */
    GateDelegation *says;
    time_us until; /* look again then */
    uint8_t digest[32];
    unsigned refs;
};

struct tokens;
struct tokens *tokens_create (struct tlsid *id);
void tokens_destroy (struct tokens *tokens);
/* ERR_UNAUTHENTIC with the reason. token_unref it. */
struct token *tokens_check (struct tokens *tokens, const char *bearer, time_us now,
                            struct err *err);
void token_unref (struct token *token); /* NULL is a no-op */

#endif
