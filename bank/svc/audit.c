/* The chain of blocks: signed here, and shown to those who want to check it themselves. */
#include <assert.h>
#include <string.h>

#include "bank/store/auditread.h"
#include "bank/svc/service_impl.h"
#include "proto/rpc/envelope.h"

enum { BLOCKS_MAX = 500, OPERATIONS_MAX = 500, CONTENTS_MAX = 100, CONTENT_BYTES_MAX = 1 << 20 };

/* ---- signing ---- */

static void pack (const ProtobufCMessage *message, struct strbuf *out)
{
    uint8_t *bytes = malloc (protobuf_c_message_get_packed_size (message) + 1);
    if (!bytes)
        abort ();
    strbuf_clear (out);
    strbuf_append (out, bytes, protobuf_c_message_pack (message, bytes));
    free (bytes);
}

int audit_sign (void *arg, const uint8_t body[BLOCK_BYTES], struct seal_mark *mark, struct err *err)
{
    struct bank_service *svc = arg;
    Nui__Common__V1__Envelope *signed_ = NULL;
    Nui__Common__V1__Envelope chain = NUI__COMMON__V1__ENVELOPE__INIT;
    if (envelope_sign_for (svc->id, BLOCK_DOMAIN, body, BLOCK_BYTES, &signed_, err) < 0)
        return err->code;
    chain.n_chain = signed_->n_chain;
    chain.chain = signed_->chain;
    pack (&chain.base, &svc->signer);
    strbuf_clear (&svc->signature);
    strbuf_append (&svc->signature, signed_->signature.data, signed_->signature.len);
    envelope_free (signed_);
    *mark = (struct seal_mark){.chain = strbuf_text (&svc->signer),
                               .chain_len = svc->signer.len,
                               .signature = strbuf_text (&svc->signature),
                               .signature_len = svc->signature.len};
    return 0;
}

/* ---- messages ---- */

static ProtobufCBinaryData view_of (const void *bytes, size_t len)
{
    return (ProtobufCBinaryData){.data = (uint8_t *)(uintptr_t)bytes, .len = len};
}

/* The chain's certificates are unpacked into the arena. */
static void *in_arena (void *arena, size_t size)
{
    return arena_alloc (arena, size);
}

static void not_freed (void *arena, void *p)
{
    (void)arena;
    (void)p;
}

Nui__Bank__V1__Block *block_message (struct arena *arena, const struct audit_block *block)
{
    ProtobufCAllocator allocator = {in_arena, not_freed, arena};
    Nui__Bank__V1__Block *out = arena_new (arena, Nui__Bank__V1__Block);
    nui__bank__v1__block__init (out);
    out->envelope = nui__common__v1__envelope__unpack (&allocator, block->chain_len, block->chain);
    if (!out->envelope) { /* somebody has changed it: without a chain it will not verify */
        out->envelope = arena_new (arena, Nui__Common__V1__Envelope);
        nui__common__v1__envelope__init (out->envelope);
    }
    out->envelope->body = view_of (arena_memdup (arena, block->body, BLOCK_BYTES), BLOCK_BYTES);
    out->envelope->signature = view_of (block->signature, block->signature_len);
    return out;
}

static Nui__Bank__V1__LedgerOperation *op_message (struct arena *arena, const struct audit_op *op)
{
    Nui__Bank__V1__LedgerOperation *out = arena_new (arena, Nui__Bank__V1__LedgerOperation);
    nui__bank__v1__ledger_operation__init (out);
    out->id = op->id;
    out->client = unconst (op->client);
    out->key = view_of (op->key, sizeof (op->key));
    out->hash = view_of (op->hash, sizeof (op->hash));
    out->kind = unconst (op->kind);
    out->on_behalf = unconst (op->on_behalf);
    out->site = unconst (op->site);
    out->job = unconst (op->job);
    out->note = unconst (op->note);
    out->effective_us = op->effective_at;
    out->recorded_us = op->recorded_at;
    out->status = op->status;
    out->outcome = view_of (op->outcome, op->outcome_len);
    out->n_entries = op->entry_count;
    out->entries = arena_array (arena, op->entry_count, sizeof (*out->entries));
    for (uint32_t i = 0; i < op->entry_count; i++) {
        const struct audit_entry *e = &op->entry[i];
        Nui__Bank__V1__LedgerEntry *entry = arena_new (arena, Nui__Bank__V1__LedgerEntry);
        nui__bank__v1__ledger_entry__init (entry);
        entry->leg = e->leg;
        entry->layer = arena_printf (arena, "%c", e->layer);
        entry->unit = e->unit;
        entry->account = e->account_id;
        entry->allocation = e->allocation_id;
        entry->amount_micro = e->amount;
        entry->effective_us = e->effective_at;
        entry->recorded_us = e->recorded_at;
        out->entries[i] = entry;
    }
    return out;
}

/* ---- calls ---- */

static void on_blocks (void *arg, const struct err *err, const struct audit_block *block,
                       uint32_t count, int64_t newest)
{
    struct work *work = arg;
    if (work_failed (work, err))
        return;
    Nui__Bank__V1__BlocksReply reply = NUI__BANK__V1__BLOCKS_REPLY__INIT;
    reply.newest = newest;
    reply.n_blocks = count;
    reply.blocks = arena_array (work->arena, count, sizeof (*reply.blocks));
    for (uint32_t i = 0; i < count; i++)
        reply.blocks[i] = block_message (work->arena, &block[i]);
    work_reply (work, &reply.base);
}

static uint32_t limit_of (uint32_t asked, uint32_t max)
{
    return asked == 0 || asked > max ? max : asked;
}

/* Whether a number may be asked for; the call is answered when not. */
static bool number_ok (struct work *work, int64_t number, int64_t least)
{
    struct err err = {0};
    if (number >= least && number <= INT64_MAX - OPERATIONS_MAX)
        return true;
    err_set (&err, ERR_INVALID, "audit: %lld is no number of a block or an operation",
             (long long)number);
    work_fail (work, &err);
    return false;
}

void blocks_give (struct work *work)
{
    const Nui__Bank__V1__BlocksRequest *m = work->request;
    auditread_blocks (work->svc->reader, m->from_number, limit_of (m->limit, BLOCKS_MAX), on_blocks,
                      work);
}

void handle_blocks (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct bank_service *svc = self;
    struct work *work = work_create (svc, call, request);
    const Nui__Bank__V1__BlocksRequest *m = work->request;
    if (!number_ok (work, m->from_number, 0))
        return;
    enum principal_kind kind = rpccall_peer (call)->kind;
    /* All objects are read for it: whoever else asks has the last root that there is. */
    if (m->state && m->from_number == 0 && (kind == PRINCIPAL_OPERATOR || kind == PRINCIPAL_AGENCY))
        state_anchor (svc->state, work);
    else
        blocks_give (work);
}

static void on_ops (void *arg, const struct err *err, const struct audit_op *op, uint32_t count)
{
    struct work *work = arg;
    if (work_failed (work, err))
        return;
    Nui__Bank__V1__OperationsReply reply = NUI__BANK__V1__OPERATIONS_REPLY__INIT;
    reply.n_operations = count;
    reply.operations = arena_array (work->arena, count, sizeof (*reply.operations));
    for (uint32_t i = 0; i < count; i++)
        reply.operations[i] = op_message (work->arena, &op[i]);
    work_reply (work, &reply.base);
}

void handle_operations (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct bank_service *svc = self;
    struct work *work = work_create (svc, call, request);
    const Nui__Bank__V1__OperationsRequest *m = work->request;
    if (number_ok (work, m->from_id, 1))
        auditread_ops (svc->reader, viewer (work), m->from_id, limit_of (m->limit, OPERATIONS_MAX),
                       on_ops, work);
}

/* As many of a block's lines as fit, from one on; takes them off *left, and says whether that was all. */
static bool content_fill (struct arena *arena, const char *text, int64_t from, size_t *left,
                          Nui__Bank__V1__BlockContent *out)
{
    out->count = (int64_t)audit_lines (text);
    out->first_line = from;
    out->lines = arena_array (arena, (size_t)out->count, sizeof (*out->lines));
    for (int64_t i = 0; i < out->count; i++) {
        size_t len = strcspn (text, "\n");
        if (i >= from) {
            if (out->n_lines && len > *left)
                return false;
            *left -= len < *left ? len : *left;
            out->lines[out->n_lines++] = arena_printf (arena, "%.*s", (int)len, text);
        }
        text += len + 1;
    }
    return true;
}

static void on_contents (void *arg, const struct err *err, const struct audit_content *content,
                         uint32_t count)
{
    struct work *work = arg;
    const Nui__Bank__V1__ContentsRequest *m = work->request;
    if (work_failed (work, err))
        return;
    Nui__Bank__V1__ContentsReply reply = NUI__BANK__V1__CONTENTS_REPLY__INIT;
    size_t left = CONTENT_BYTES_MAX;
    bool all = true;
    reply.blocks = arena_array (work->arena, count, sizeof (*reply.blocks));
    for (uint32_t i = 0; i < count && left > 0 && all; i++) {
        Nui__Bank__V1__BlockContent *out = arena_new (work->arena, Nui__Bank__V1__BlockContent);
        nui__bank__v1__block_content__init (out);
        out->number = content[i].number;
        int64_t from = content[i].number == m->from_number ? m->from_line : 0;
        all = content_fill (work->arena, content[i].lines, from, &left, out);
        reply.blocks[reply.n_blocks++] = out;
    }
    work_reply (work, &reply.base);
}

void handle_contents (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct bank_service *svc = self;
    struct work *work = work_create (svc, call, request);
    const Nui__Bank__V1__ContentsRequest *m = work->request;
    if (number_ok (work, m->from_number, 1))
        auditread_contents (svc->reader, viewer (work), m->from_number, CONTENTS_MAX, on_contents,
                            work);
}

void proof_give (struct work *work, int64_t id, const struct audit_block *block,
                 const struct audit_op *op, uint32_t count, const char *lines)
{
    uint32_t index = 0;
    struct err err = {0};
    while (index < count && op[index].id != id)
        index++;
    if (index == count) {
        err_set (&err, ERR_INTERNAL, "the block of operation %lld does not hold it", (long long)id);
        work_fail (work, &err);
        return;
    }
    struct strbuf scratch = STRBUF_INIT;
    size_t leaves = count + (*lines != '\0');
    struct merkle_hash *leaf = arena_array (work->arena, leaves, sizeof (*leaf));
    struct merkle_hash *path = arena_array (work->arena, MERKLE_PATH_MAX, sizeof (*path));
    for (uint32_t i = 0; i < count; i++)
        leaf[i] = audit_leaf (&op[i], &scratch);
    if (*lines) {
        EVP_MD_CTX *of_lines = audit_lines_begin ();
        audit_lines_add (of_lines, lines, strlen (lines));
        leaf[count] = audit_lines_end (of_lines);
    }
    strbuf_free (&scratch);
    Nui__Bank__V1__ProofReply reply = NUI__BANK__V1__PROOF_REPLY__INIT;
    reply.n_path = merkle_path (leaf, leaves, index, path);
    reply.leaves = (int64_t)leaves;
    reply.path = arena_array (work->arena, reply.n_path, sizeof (*reply.path));
    for (size_t i = 0; i < reply.n_path; i++)
        reply.path[i] = view_of (path[i].b, MERKLE_BYTES);
    reply.operation = op_message (work->arena, &op[index]);
    reply.block = block_message (work->arena, block);
    reply.n_rows = work->row_count;
    reply.rows = work->rows;
    work_reply (work, &reply.base);
}

static void on_proof (void *arg, const struct err *err, const struct audit_block *block,
                      const struct audit_op *op, uint32_t count, const char *lines)
{
    struct work *work = arg;
    const Nui__Bank__V1__ProofRequest *m = work->request;
    if (!work_failed (work, err))
        proof_give (work, (int64_t)m->op_id, block, op, count, lines);
}

void handle_proof (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct bank_service *svc = self;
    struct work *work = work_create (svc, call, request);
    const Nui__Bank__V1__ProofRequest *m = work->request;
    int64_t op = m->op_id > INT64_MAX ? -1 : (int64_t)m->op_id;
    if (m->object[0])
        state_proof (svc->state, work, m->object);
    else if (number_ok (work, op, 1))
        auditread_proof (svc->reader, viewer (work), op, on_proof, work);
}

static void on_rules (void *arg, const struct err *err, const struct audit_rule *rule,
                      uint32_t count)
{
    struct work *work = arg;
    if (work_failed (work, err))
        return;
    Nui__Bank__V1__LedgerCheckReply reply = NUI__BANK__V1__LEDGER_CHECK_REPLY__INIT;
    reply.n_rules = count;
    reply.rules = arena_array (work->arena, count, sizeof (*reply.rules));
    for (uint32_t i = 0; i < count; i++) {
        Nui__Bank__V1__LedgerRule *out = arena_new (work->arena, Nui__Bank__V1__LedgerRule);
        nui__bank__v1__ledger_rule__init (out);
        out->rule = unconst (rule[i].rule);
        out->checked = rule[i].checked;
        out->broken = rule[i].broken;
        out->example = unconst (rule[i].example);
        reply.rules[i] = out;
    }
    work_reply (work, &reply.base);
}

void handle_ledger_check (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct bank_service *svc = self;
    struct work *work = work_create (svc, call, request);
    auditread_rules (svc->reader, viewer (work), on_rules, work);
}
