/* merkle: hash trees over a list of leaves, as RFC 9162 (section 2.1) defines them: SHA-256, a mark
 * of zero before a leaf's content and one before two children, so that neither passes for the other.
 * Pure. */
#ifndef NUI_AUDIT_MERKLE_H
#define NUI_AUDIT_MERKLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MERKLE_BYTES = 32, MERKLE_PATH_MAX = 64, MERKLE_LEAF_MARK = 0, MERKLE_NODE_MARK = 1 };

struct merkle_hash {
    uint8_t b[MERKLE_BYTES];
};

/* Plain SHA-256. */
struct merkle_hash merkle_digest (const void *bytes, size_t len);
/* marked: MERKLE_LEAF_MARK, then the content; len counts both. */
struct merkle_hash merkle_leaf (const void *marked, size_t len);
/* Of count leaves; the hash of nothing when count is 0. */
struct merkle_hash merkle_root (const struct merkle_hash *leaf, size_t count);
/* The siblings from leaf index up to the root; returns how many. index < count. */
size_t merkle_path (const struct merkle_hash *leaf, size_t count, size_t index,
                    struct merkle_hash path[MERKLE_PATH_MAX]);
/* Whether a leaf at index of count, with this path, gives the root. */
bool merkle_path_holds (const struct merkle_hash *leaf, size_t count, size_t index,
                        const struct merkle_hash *path, size_t path_len,
                        const struct merkle_hash *root);
bool merkle_equal (const struct merkle_hash *a, const struct merkle_hash *b);
/* Lower-case hexadecimal. */
char *merkle_text (const struct merkle_hash *hash, char buf[2 * MERKLE_BYTES + 1]);

#endif
