/* anchor: a block of the bank's history, as somebody outside the bank keeps it: a line of text
 *
 *   nui-anchor-v1 NUMBER LINK BLOCK
 *
 * with the block's number, its link (the SHA-256 of all up to it, in hexadecimal) and the block itself with
 * the bank's signature and certificates (base64). Whoever has the line can show later that something before
 * it was changed (nui-verify(1)). */
#ifndef NUI_AUDIT_ANCHOR_H
#define NUI_AUDIT_ANCHOR_H

#include "proto/audit/block.h"
#include "proto/nui/v1/bank.pb-c.h"
#include "proto/rpc/tlsid.h"

struct anchor {
    int64_t number;
    char link[2 * MERKLE_BYTES + 1];
};

/* The block of a message whose signature is the bank's and holds. ERR_CONFLICT. */
int anchor_open (struct tlsid *id, const Nui__Bank__V1__Block *message, struct block *out,
                 struct err *err);
struct anchor anchor_of (const struct block *block);
/* Adds a line to the file, made when there is none; on disk on return. ERR_IO. */
int anchor_append (const char *path, const Nui__Bank__V1__Block *message, const struct block *block,
                   struct err *err);
/* Calls fn for each line. ERR_NOT_FOUND without the file; ERR_IO; ERR_INVALID with file and line: this is
 * no anchor; a last line without its end was never told of, and is none. */
int anchor_each (const char *path, void (*fn) (void *arg, const struct anchor *anchor), void *arg,
                 struct err *err);

#endif
