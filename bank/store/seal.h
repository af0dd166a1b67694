/* seal: the block that a batch's operations make, with the lines of what they made of the tables (content.h). */
#ifndef NUI_BANK_STORE_SEAL_H
#define NUI_BANK_STORE_SEAL_H

#include "bank/core/ledger.h"
#include "bank/store/statements.h"
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
    bool unsealed;     /* lines of migrations are in no block yet */
};

struct seal {
    seal_sign_f sign;
    void *arg;
    struct seal_tip tip;
    const struct strbuf *unsealed; /* those lines */
    /* Of the batch: lines of objects, and the rows that are written otherwise, by statement; NULL: none. */
    struct strbuf objects;
    struct pgargs *written[BANK_STMT_COUNT];
    struct pgargs *block_row, *signer_row; /* of the last block made; NULL: nothing to add */
    bool drop_unsealed;                    /* it tells of them */
    struct strbuf scratch, rows;
};

/* For a new batch: its objects are none yet but those that migrations left, where it will have a block. */
void seal_begin (struct seal *seal, bool has_block);
/* Makes the block of the view's new operations, if any, and moves the tip on to it; back, when the
 * batch is not committed, is the caller's. */
int seal_make (struct seal *seal, const struct ledger_view *view, struct err *err);
/* Adds its rows to the open batch, between BEGIN and COMMIT. */
void seal_send (const struct seal *seal, struct pgloop *loop);
void seal_free (struct seal *seal);

#endif
