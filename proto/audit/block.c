/* block: spells operations, lines of tables and whole blocks as bytes. The bank makes blocks
 * with it (bank/store/seal.c) and nui audit checks them with it, so both hash the same bytes.
 * The encoding must never change for a version that exists: every block ever signed would seem
 * forged. */
#include "proto/audit/block.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put_i64 (uint8_t *at, int64_t v)
{
    for (int i = 0; i < 8; i++)
        at[i] = (uint8_t)((uint64_t)v >> (56 - 8 * i));
}

static int64_t take_i64 (const uint8_t *at)
{
    uint64_t v = 0;
    for (int i = 0; i < 8; i++)
        v = v << 8 | at[i];
    return (int64_t)v;
}

static void add_i64 (struct strbuf *out, int64_t v)
{
    uint8_t bytes[8];
    put_i64 (bytes, v);
    strbuf_append (out, (const char *)bytes, sizeof (bytes));
}

static void add_bytes (struct strbuf *out, const void *bytes, size_t len)
{
    add_i64 (out, (int64_t)len);
    strbuf_append (out, bytes, len);
}

static void add_text (struct strbuf *out, const char *text)
{
    add_bytes (out, text, strlen (text));
}

struct merkle_hash audit_leaf (const struct audit_op *op, struct strbuf *scratch)
{
    static const char mark = MERKLE_LEAF_MARK;
    strbuf_clear (scratch);
    strbuf_append (scratch, &mark, 1);
    add_text (scratch, "nui-op-v1");
    add_i64 (scratch, op->id);
    add_text (scratch, op->client);
    add_bytes (scratch, op->key, sizeof (op->key));
    add_bytes (scratch, op->hash, sizeof (op->hash));
    add_text (scratch, op->kind);
    add_text (scratch, op->on_behalf);
    add_text (scratch, op->site);
    add_text (scratch, op->job);
    add_text (scratch, op->note);
    add_i64 (scratch, op->effective_at);
    add_i64 (scratch, op->recorded_at);
    add_i64 (scratch, op->status);
    add_bytes (scratch, op->outcome, op->outcome_len);
    add_i64 (scratch, op->entry_count);
    for (uint32_t i = 0; i < op->entry_count; i++) {
        const struct audit_entry *entry = &op->entry[i];
        add_i64 (scratch, entry->leg);
        add_i64 (scratch, entry->layer);
        add_i64 (scratch, entry->unit);
        add_i64 (scratch, entry->account_id);
        add_i64 (scratch, entry->allocation_id);
        add_i64 (scratch, entry->amount);
        add_i64 (scratch, entry->effective_at);
        add_i64 (scratch, entry->recorded_at);
    }
    return merkle_leaf (strbuf_text (scratch), scratch->len);
}

size_t audit_lines (const char *text)
{
    size_t count = *text != '\0';
    for (; (text = strchr (text, '\n')); text++)
        count++;
    return count;
}

struct merkle_hash audit_line_leaf (const char *line, size_t len, struct strbuf *scratch)
{
    static const char mark = MERKLE_LEAF_MARK;
    strbuf_clear (scratch);
    strbuf_append (scratch, &mark, 1);
    add_text (scratch, "nui-row-v1");
    add_bytes (scratch, line, len);
    return merkle_leaf (strbuf_text (scratch), scratch->len);
}

/* One leaf for all: a leaf and a node each cost several times what hashing a line does. */
EVP_MD_CTX *audit_lines_begin (void)
{
    static const char head[] = "\0\0\0\0\0\0\0\0\013nui-rows-v1"; /* the mark, a length, a text */
    static_assert (sizeof (head) == 1 + 8 + 11 + 1 && MERKLE_LEAF_MARK == 0, "as add_text has it");
    EVP_MD_CTX *leaf = sha256_begin ();
    sha256_add (leaf, head, sizeof (head) - 1);
    return leaf;
}

void audit_lines_add (EVP_MD_CTX *leaf, const char *text, size_t len)
{
    sha256_add (leaf, text, len);
    sha256_add (leaf, "\n", 1);
}

struct merkle_hash audit_lines_end (EVP_MD_CTX *leaf)
{
    struct merkle_hash hash;
    sha256_end (leaf, hash.b);
    return hash;
}

#define STATE_TEXT "nui-state-v1 root="

char *audit_state_format (const struct audit_state *state, char buf[AUDIT_STATE_TEXT_MAX])
{
    char root[2 * MERKLE_BYTES + 1];
    snprintf (buf, AUDIT_STATE_TEXT_MAX, STATE_TEXT "%s rows=%lld block=%lld",
              merkle_text (&state->root, root), (long long)state->rows, (long long)state->block);
    return buf;
}

int audit_state_parse (const char *text, struct audit_state *state, struct err *err)
{
    long long rows = 0, block = 0;
    char again[AUDIT_STATE_TEXT_MAX], hex[2 * MERKLE_BYTES + 1] = "";
    *state = (struct audit_state){0};
    sscanf (text, STATE_TEXT "%64[0-9a-f] rows=%lld block=%lld", hex, &rows, &block);
    for (int i = 0; i < MERKLE_BYTES && strlen (hex) == 2 * MERKLE_BYTES; i++)
        state->root.b[i] = (uint8_t)strtoul ((char[3]){hex[2 * i], hex[2 * i + 1], '\0'}, NULL, 16);
    state->rows = rows;
    state->block = block;
    if (rows < 0 || block < 0 || strcmp (audit_state_format (state, again), text) != 0)
        return err_set (err, ERR_INVALID, "'%.100s' names no state", text);
    return 0;
}

void block_encode (const struct block *block, uint8_t body[BLOCK_BYTES])
{
    put_i64 (body, block->number);
    put_i64 (body + 8, block->first_op);
    put_i64 (body + 16, block->ops);
    put_i64 (body + 24, block->recorded_at);
    memcpy (body + 32, block->prev.b, MERKLE_BYTES);
    memcpy (body + 32 + MERKLE_BYTES, block->root.b, MERKLE_BYTES);
}

int block_decode (const void *body, size_t len, struct block *block, struct err *err)
{
    const uint8_t *at = body;
    if (len != BLOCK_BYTES)
        return err_set (err, ERR_INVALID, "a block of %zu bytes, not %d", len, BLOCK_BYTES);
    *block = (struct block){.number = take_i64 (at),
                            .first_op = take_i64 (at + 8),
                            .ops = take_i64 (at + 16),
                            .recorded_at = take_i64 (at + 24)};
    memcpy (block->prev.b, at + 32, MERKLE_BYTES);
    memcpy (block->root.b, at + 32 + MERKLE_BYTES, MERKLE_BYTES);
    if (block->number < 1 || block->first_op < 1 || block->ops < 1 ||
        block->ops > INT64_MAX - block->first_op)
        return err_set (err, ERR_INVALID, "a block with numbers that no block has");
    return 0;
}

struct merkle_hash block_link (const struct block *block)
{
    uint8_t body[BLOCK_BYTES];
    block_encode (block, body);
    return merkle_digest (body, sizeof (body));
}
