/* seal: the block that a batch's operations make. */
#ifndef NUI_BANK_STORE_SEAL_H
#define NUI_BANK_STORE_SEAL_H

#include "bank/core/ledger.h"
#include "bank/store/pgloop.h"
#include "proto/audit/block.h"

/* A signature over a block's body. What the pointers name lives until the next call. */
struct seal_mark {
    const void *chain; /* of the signer: an Envelope with certificates only */
    size_t chain_len;
    const void *signature;
    size_t signature_len;
};

/* Signs a block's body (BLOCK_DOMAIN); a negative err code with err filled when it cannot. */
typedef int (*seal_sign_f) (void *arg, const uint8_t body[BLOCK_BYTES], struct seal_mark *mark,
                            struct err *err);

/* Where the chain stands, after a batch. */
struct seal_tip {
    int64_t number;          /* of the last block; 0: none */
    struct merkle_hash link; /* of that block */
    struct merkle_hash signer;
    bool signer_known; /* its row was written */
};

struct seal {
    seal_sign_f sign;
    void *arg;
    struct seal_tip tip;
    struct pgargs *block_row, *signer_row; /* of the last block made; NULL: nothing to add */
    struct strbuf scratch;
};

/* Makes the block of the view's new operations, if any, and moves the tip on to it; back, when the
 * batch is not committed, is the caller's. */
int seal_make (struct seal *seal, const struct ledger_view *view, struct err *err);
/* Adds its rows to the open batch, between BEGIN and COMMIT. */
void seal_send (const struct seal *seal, struct pgloop *loop);

#endif
