#include "proto/audit/block.h"

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
