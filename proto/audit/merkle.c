/* merkle: computes a tree's root and the paths that prove a leaf. block.c and the bank's seal
 * build with it; nui audit checks what the bank sends, so merkle_path_holds must take any path,
 * too long or too short, without believing it or reading past its end. */
#include "proto/audit/merkle.h"

#include <assert.h>
#include <string.h>

#include "proto/hash/sha256.h"

struct merkle_hash merkle_digest (const void *bytes, size_t len)
{
    struct merkle_hash hash;
    sha256 (bytes, len, hash.b);
    return hash;
}

struct merkle_hash merkle_leaf (const void *marked, size_t len)
{
    assert (len > 0 && *(const uint8_t *)marked == MERKLE_LEAF_MARK);
    return merkle_digest (marked, len);
}

static struct merkle_hash node (const struct merkle_hash *left, const struct merkle_hash *right)
{
    uint8_t both[1 + 2 * MERKLE_BYTES] = {MERKLE_NODE_MARK};
    memcpy (both + 1, left->b, MERKLE_BYTES);
    memcpy (both + 1 + MERKLE_BYTES, right->b, MERKLE_BYTES);
    return merkle_digest (both, sizeof (both));
}

/* Leaves left of the root: the largest power of two below count. */
static size_t split (size_t count)
{
    size_t k = 1;
    while (2 * k < count)
        k *= 2;
    return k;
}

struct merkle_hash merkle_root (const struct merkle_hash *leaf, size_t count)
{
    if (count == 0)
        return merkle_digest ("", 0);
    if (count == 1)
        return leaf[0];
    size_t k = split (count);
    struct merkle_hash left = merkle_root (leaf, k), right = merkle_root (leaf + k, count - k);
    return node (&left, &right);
}

size_t merkle_path (const struct merkle_hash *leaf, size_t count, size_t index,
                    struct merkle_hash path[MERKLE_PATH_MAX])
{
    assert (index < count);
    if (count == 1)
        return 0;
    size_t k = split (count), len;
    if (index < k) {
        len = merkle_path (leaf, k, index, path);
        path[len] = merkle_root (leaf + k, count - k);
    } else {
        len = merkle_path (leaf + k, count - k, index - k, path);
        path[len] = merkle_root (leaf, k);
    }
    return len + 1;
}

/* The root that the path's first *used hashes give; false when the path is too short. */
static bool climb (struct merkle_hash *hash, size_t count, size_t index,
                   const struct merkle_hash *path, size_t path_len, size_t *used)
{
    if (count == 1)
        return true;
    size_t k = split (count);
    bool left = index < k;
    if (!climb (hash, left ? k : count - k, left ? index : index - k, path, path_len, used) ||
        *used == path_len)
        return false;
    const struct merkle_hash *sibling = &path[(*used)++];
    *hash = left ? node (hash, sibling) : node (sibling, hash);
    return true;
}

bool merkle_path_holds (const struct merkle_hash *leaf, size_t count, size_t index,
                        const struct merkle_hash *path, size_t path_len,
                        const struct merkle_hash *root)
{
    struct merkle_hash hash = *leaf;
    size_t used = 0;
    return index < count && climb (&hash, count, index, path, path_len, &used) &&
           used == path_len && merkle_equal (&hash, root);
}

bool merkle_equal (const struct merkle_hash *a, const struct merkle_hash *b)
{
    return memcmp (a->b, b->b, MERKLE_BYTES) == 0;
}

char *merkle_text (const struct merkle_hash *hash, char buf[2 * MERKLE_BYTES + 1])
{
    static const char digit[] = "0123456789abcdef";
    for (int i = 0; i < MERKLE_BYTES; i++) {
        buf[2 * i] = digit[hash->b[i] >> 4];
        buf[2 * i + 1] = digit[hash->b[i] & 15];
    }
    buf[2 * MERKLE_BYTES] = '\0';
    return buf;
}
