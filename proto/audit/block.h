/* block: what makes a change of the bank's history visible. Each transaction of the ledger's writer
 * is a block: the Merkle root over its operations, chained to the block before it and signed by the
 * bank. Whoever keeps one block (an anchor) can tell later whether anything up to it was changed.
 *
 * A leaf is one operation with its entries, in an encoding of our own: integers as 8 bytes, most
 * significant first, texts and bytes as their length and then themselves. After the operations comes one leaf with
 * all lines that say what they made of the bank's tables. Pure. */
#ifndef NUI_AUDIT_BLOCK_H
#define NUI_AUDIT_BLOCK_H

#include "proto/audit/merkle.h"
#include "proto/base/err.h"
#include "proto/base/quantity.h"
#include "proto/base/strbuf.h"
#include "proto/hash/sha256.h"

/* Signed before a block's body: a signature of a block is good for nothing else. */
#define BLOCK_DOMAIN "nui-block-v1"

struct audit_entry {
    uint32_t leg;
    char layer;                                      /* 'P' or 'H' */
    int64_t unit, account_id, allocation_id, amount; /* micro-units */
    time_us effective_at, recorded_at;
};

struct audit_op {
    int64_t id;
    const char *client;
    uint8_t key[16];
    uint8_t hash[MERKLE_BYTES]; /* of the canonical request */
    const char *kind, *on_behalf, *site, *job, *note;
    time_us effective_at, recorded_at;
    int64_t status;
    const void *outcome;
    size_t outcome_len;
    const struct audit_entry *entry;
    uint32_t entry_count;
};

/* Lines of a text, none of "". */
size_t audit_lines (const char *text);
/* The leaf of a block's lines, as they come: texts of one or more lines, without the newline at their end. A block
 * without lines has no such leaf. _end frees it. */
EVP_MD_CTX *audit_lines_begin (void);
void audit_lines_add (EVP_MD_CTX *leaf, const char *text, size_t len);
struct merkle_hash audit_lines_end (EVP_MD_CTX *leaf);
/* The leaf of one line of a state. scratch is overwritten. */
struct merkle_hash audit_line_leaf (const char *line, size_t len, struct strbuf *scratch);

/* scratch is overwritten. */
struct merkle_hash audit_leaf (const struct audit_op *op, struct strbuf *scratch);

/* What an operation of kind "state" says in its note: the root over the lines of all objects, in the order of their
 * bytes, as they were when a block was the newest. */
struct audit_state {
    struct merkle_hash root;
    int64_t rows, block;
};
enum { AUDIT_STATE_TEXT_MAX = 160 };
char *audit_state_format (const struct audit_state *state, char buf[AUDIT_STATE_TEXT_MAX]);
/* ERR_INVALID for another text. */
int audit_state_parse (const char *text, struct audit_state *state, struct err *err);

struct block {
    int64_t number;   /* 1, 2 … */
    int64_t first_op; /* operations first_op … first_op + ops - 1 */
    int64_t ops;
    time_us recorded_at;
    struct merkle_hash prev; /* the link of the block before it; zero for the first */
    struct merkle_hash root; /* over its operations, and the leaf of its lines */
};

enum { BLOCK_BYTES = 4 * 8 + 2 * MERKLE_BYTES };

/* What is signed. */
void block_encode (const struct block *block, uint8_t body[BLOCK_BYTES]);
/* ERR_INVALID for another length or numbers that no block has. */
int block_decode (const void *body, size_t len, struct block *block, struct err *err);
/* What the next block names as its prev. */
struct merkle_hash block_link (const struct block *block);

#endif
