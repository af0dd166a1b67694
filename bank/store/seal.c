/* seal: hashes a batch's operations and lines to a Merkle root, chains it to the block before
 * and has it signed. The committer makes the block, write.c sends its rows before the COMMIT. No
 * new operation is committed without its block, and a signature that fails ends the batch. */
#include "bank/store/seal.h"

#include <assert.h>
#include <string.h>

#include "bank/store/content.h"

/* A view's operations and entries stand in the order in which they were decided. */
struct cursor {
    const struct ledger_view *view;
    uint32_t entry;
    struct strbuf *scratch;
};

static struct merkle_hash leaf_of (struct cursor *at, const struct ledger_op *op)
{
    const struct ledger_view *view = at->view;
    uint32_t count = 0, first = at->entry;
    while (first + count < view->entries.count &&
           ((const struct ledger_entry *)view->entries.item[first + count])->op_id == op->id)
        count++;
    struct audit_entry *entry = arena_array (view->arena, count, sizeof (*entry));
    for (uint32_t i = 0; i < count; i++) {
        const struct ledger_entry *e = view->entries.item[first + i];
        entry[i] = (struct audit_entry){.leg = e->leg,
                                        .layer = e->layer,
                                        .unit = LEDGER_UNIT_CREDIT,
                                        .account_id = e->account_id,
                                        .allocation_id = e->allocation_id,
                                        .amount = e->amount,
                                        .effective_at = e->effective_at,
                                        .recorded_at = view->now};
    }
    at->entry = first + count;
    struct audit_op leaf = {.id = op->id,
                            .client = op->client,
                            .kind = ledger_kind_name (op->kind),
                            .on_behalf = op->on_behalf,
                            .site = op->site,
                            .job = op->job,
                            .note = op->note,
                            .effective_at = op->effective_at,
                            .recorded_at = view->now,
                            .status = op->status,
                            .outcome = op->outcome,
                            .outcome_len = op->outcome_len,
                            .entry = entry,
                            .entry_count = count};
    memcpy (leaf.key, op->key.b, sizeof (leaf.key));
    memcpy (leaf.hash, op->hash, sizeof (leaf.hash));
    return audit_leaf (&leaf, at->scratch);
}

static struct merkle_hash lines_leaf (struct strbuf *objects, struct strbuf *rows)
{
    EVP_MD_CTX *leaf = audit_lines_begin ();
    if (objects->len)
        audit_lines_add (leaf, strbuf_text (objects), objects->len);
    if (rows->len)
        audit_lines_add (leaf, strbuf_text (rows), rows->len);
    return audit_lines_end (leaf);
}

static int sign (struct seal *seal, const struct block *block, struct arena *arena, struct err *err)
{
    uint8_t body[BLOCK_BYTES];
    struct seal_mark mark;
    struct seal_tip *tip = &seal->tip;
    block_encode (block, body);
    if (seal->sign (seal->arg, body, &mark, err) < 0)
        return err->code;
    struct merkle_hash signer = merkle_digest (mark.chain, mark.chain_len);
    if (!tip->signer_known || !merkle_equal (&tip->signer, &signer)) {
        seal->signer_row = pgargs_create (arena, "bb");
        pgargs_bytes (seal->signer_row, 0, signer.b, MERKLE_BYTES);
        pgargs_bytes (seal->signer_row, 1, mark.chain, mark.chain_len);
        pgargs_seal (seal->signer_row);
    }
    struct pgargs *row = seal->block_row = pgargs_create (arena, "iiiibbbbt");
    pgargs_i64 (row, 0, block->number);
    pgargs_i64 (row, 1, block->first_op);
    pgargs_i64 (row, 2, block->ops);
    pgargs_i64 (row, 3, block->recorded_at);
    pgargs_bytes (row, 4, block->prev.b, MERKLE_BYTES);
    pgargs_bytes (row, 5, block->root.b, MERKLE_BYTES);
    pgargs_bytes (row, 6, signer.b, MERKLE_BYTES);
    pgargs_bytes (row, 7, mark.signature, mark.signature_len);
    pgargs_text (row, 8, strbuf_text (&seal->rows));
    pgargs_seal (row);
    *tip = (struct seal_tip){.number = block->number,
                             .link = block_link (block),
                             .signer = signer,
                             .signer_known = true,
                             .unsealed = tip->unsealed && !seal->drop_unsealed};
    return 0;
}

void seal_begin (struct seal *seal, bool has_block)
{
    strbuf_clear (&seal->objects);
    seal->drop_unsealed = has_block && seal->tip.unsealed;
    if (seal->drop_unsealed)
        strbuf_append (&seal->objects, seal->unsealed->data, seal->unsealed->len);
}

void seal_free (struct seal *seal)
{
    strbuf_free (&seal->scratch);
    strbuf_free (&seal->objects);
    strbuf_free (&seal->rows);
}

int seal_make (struct seal *seal, const struct ledger_view *view, struct err *err)
{
    struct cursor at = {.view = view, .scratch = &seal->scratch};
    struct block block = {
        .number = seal->tip.number + 1, .recorded_at = view->now, .prev = seal->tip.link};
    seal->block_row = seal->signer_row = NULL;
    strbuf_clear (&seal->rows);
    for (unsigned stmt = 0; stmt < BANK_STMT_COUNT; stmt++)
        content_add_direct (&seal->rows, stmt, seal->written[stmt]);
    bool lines = seal->objects.len || seal->rows.len;
    struct merkle_hash *leaf = arena_array (view->arena, view->ops.count + 1, sizeof (*leaf));
    for (uint32_t i = 0; i < view->ops.count; i++) {
        const struct ledger_op *op = view->ops.item[i];
        if (!op->is_new)
            continue;
        if (block.ops == 0)
            block.first_op = op->id;
        assert (op->id == block.first_op + block.ops);
        leaf[block.ops++] = leaf_of (&at, op);
    }
    assert (at.entry == view->entries.count);
    if (block.ops == 0) {
        assert (!lines);
        return 0;
    }
    if (lines)
        leaf[block.ops] = lines_leaf (&seal->objects, &seal->rows);
    block.root = merkle_root (leaf, (size_t)block.ops + lines);
    return sign (seal, &block, view->arena, err);
}

void seal_send (const struct seal *seal, struct pgloop *loop)
{
    if (seal->signer_row)
        pgbatch_add (loop, ST_ADD_SIGNER, seal->signer_row);
    if (seal->block_row)
        pgbatch_add (loop, ST_ADD_BLOCK, seal->block_row);
    if (seal->block_row && seal->drop_unsealed)
        pgbatch_add (loop, ST_DROP_UNSEALED, NULL);
}
