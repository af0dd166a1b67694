/* nui anchor, verify, proof: the bank's history, checked here and not by the bank. */
#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bank/cli/util.h"
#include "proto/audit/anchor.h"
#include "proto/rpc/envelope.h"
#include "proto/rpc/pbguard.h"

enum { BLOCKS_A_CALL = 200, OPERATIONS_A_CALL = 500, PROOF_BYTES_MAX = 4 << 20 };

/* ---- one block ---- */

static int block_open (struct cli_context *ctx, const Nui__Bank__V1__Block *message,
                       struct block *block, struct err *err)
{
    struct tlsid *id = cli_identity (ctx, err);
    return id ? anchor_open (id, message, block, err) : err->code;
}

/* The leaf of an operation as the bank sent it; a message out of shape gives a leaf that fits
 * nowhere. */
static struct merkle_hash leaf_of (const Nui__Bank__V1__LedgerOperation *m, struct strbuf *scratch)
{
    struct audit_entry *entry = calloc (m->n_entries + 1, sizeof (*entry));
    struct audit_op op = {.id = m->id,
                          .client = m->client,
                          .kind = m->kind,
                          .on_behalf = m->on_behalf,
                          .site = m->site,
                          .job = m->job,
                          .note = m->note,
                          .effective_at = m->effective_us,
                          .recorded_at = m->recorded_us,
                          .status = m->status,
                          .outcome = m->outcome.data,
                          .outcome_len = m->outcome.len,
                          .entry = entry,
                          .entry_count = (uint32_t)m->n_entries};
    if (!entry)
        abort ();
    if (m->key.len == sizeof (op.key))
        memcpy (op.key, m->key.data, sizeof (op.key));
    if (m->hash.len == sizeof (op.hash))
        memcpy (op.hash, m->hash.data, sizeof (op.hash));
    for (size_t i = 0; i < m->n_entries; i++) {
        const Nui__Bank__V1__LedgerEntry *e = m->entries[i];
        entry[i] = (struct audit_entry){.leg = e->leg,
                                        .layer = e->layer[0],
                                        .unit = e->unit,
                                        .account_id = e->account,
                                        .allocation_id = e->allocation,
                                        .amount = e->amount_micro,
                                        .effective_at = e->effective_us,
                                        .recorded_at = e->recorded_us};
    }
    struct merkle_hash leaf = audit_leaf (&op, scratch);
    free (entry);
    return leaf;
}

/* ---- anchors ---- */

static int anchor_run (struct cli_context *ctx, const struct cli_said *said)
{
    static const struct table_column columns[] = {{"block", "Block", TABLE_INT},
                                                  {"recorded", "Recorded", TABLE_TIME},
                                                  {"operations", "Operations up to", TABLE_INT},
                                                  {"link", "Link", TABLE_TEXT}};
    const char *save = said_text (said, "save");
    Nui__Bank__V1__BlocksRequest request = NUI__BANK__V1__BLOCKS_REQUEST__INIT;
    struct err err = {0};
    struct block block;
    int rc;
    request.limit = 1;
    request.state = true;
    Nui__Bank__V1__BlocksReply *reply =
        (Nui__Bank__V1__BlocksReply *)cli_answer (ctx, said, &request.base, &rc);
    if (!reply)
        return rc;
    if (reply->n_blocks == 0)
        err_set (&err, ERR_NOT_FOUND, "the bank has recorded nothing yet");
    else if (block_open (ctx, reply->blocks[0], &block, &err) == 0 && save)
        anchor_append (save, reply->blocks[0], &block, &err);
    nui__bank__v1__blocks_reply__free_unpacked (reply, NULL);
    if (err.code)
        return cli_fail ("anchor", &err);
    struct table *table = TABLE_CREATE (columns);
    table_int (table, block.number);
    table_time (table, block.recorded_at);
    table_int (table, block.first_op + block.ops - 1);
    table_text (table, anchor_of (&block).link);
    table_end_row (table);
    rc = table_print_record (table, ctx);
    table_destroy (table);
    return rc;
}

static const struct cli_option anchor_options[] = {
    {"save", 0, CLI_OPT_STRING, "FILE", "adds the block, with the bank's signature, as a line"},
    {0}};

static const struct cli_form anchor_forms[] = {{"[--save FILE]", anchor_run, .method = "Blocks"},
                                               {0}};

const struct cli_command anchor_command = {
    .name = "anchor",
    .group = CLI_BANK,
    .summary = "the newest block of the bank's history, to be kept outside the bank",
    .forms = anchor_forms,
    .options = anchor_options,
    .service = &bank_service,
    .example = "nui anchor --save anchors",
};

/* ---- verify ---- */

struct verifier {
    struct cli_context *ctx;
    bool headers;
    struct anchor *anchor;
    size_t anchors, anchors_met;
    struct block last; /* number 0: none yet */
    int64_t from, first_op, blocks, operations;
    /* operations fetched and not yet used */
    Nui__Bank__V1__OperationsReply *page;
    size_t page_at;
    /* likewise lines */
    Nui__Bank__V1__ContentsReply *content;
    size_t content_at;
    struct strbuf scratch;
    struct cli_progress *progress;
};

static void anchor_take (void *arg, const struct anchor *anchor)
{
    struct verifier *v = arg;
    v->anchor = realloc (v->anchor, (v->anchors + 1) * sizeof (*anchor));
    if (!v->anchor)
        abort ();
    v->anchor[v->anchors++] = *anchor;
}

static int anchors_read (struct verifier *v, const char *path, struct err *err)
{
    if (anchor_each (path, anchor_take, v, err) == 0 && v->anchors == 0)
        err_set (err, ERR_INVALID, "%.200s holds no anchor", path);
    return err->code;
}

static int meet_anchors (struct verifier *v, struct err *err)
{
    struct anchor last = anchor_of (&v->last);
    for (size_t i = 0; i < v->anchors; i++) {
        if (v->anchor[i].number != v->last.number)
            continue;
        if (strcmp (last.link, v->anchor[i].link) != 0)
            return err_set (err, ERR_CONFLICT,
                            "block %lld is not the one that the anchor was taken of: the history "
                            "up to it was rewritten",
                            (long long)v->last.number);
        v->anchors_met++;
    }
    return 0;
}

/* The next operation in order of numbers, or NULL with err. */
static const Nui__Bank__V1__LedgerOperation *next_op (struct verifier *v, int64_t id,
                                                      struct err *err)
{
    if (!v->page || v->page_at == v->page->n_operations) {
        Nui__Bank__V1__OperationsRequest request = NUI__BANK__V1__OPERATIONS_REQUEST__INIT;
        if (v->page)
            nui__bank__v1__operations_reply__free_unpacked (v->page, NULL);
        request.from_id = id;
        request.limit = OPERATIONS_A_CALL;
        v->page_at = 0;
        v->page =
            (Nui__Bank__V1__OperationsReply *)bank_call (v->ctx, "Operations", &request.base, err);
        if (!v->page)
            return NULL;
    }
    if (v->page_at == v->page->n_operations || v->page->operations[v->page_at]->id != id) {
        err_set (err, ERR_CONFLICT, "operation %lld is missing: block %lld holds it", (long long)id,
                 (long long)v->last.number);
        return NULL;
    }
    return v->page->operations[v->page_at++];
}

/* What the newest block made of the tables, from a line on, or NULL with err. */
static const Nui__Bank__V1__BlockContent *next_content (struct verifier *v, int64_t line,
                                                        struct err *err)
{
    if (!v->content || v->content_at == v->content->n_blocks) {
        Nui__Bank__V1__ContentsRequest request = NUI__BANK__V1__CONTENTS_REQUEST__INIT;
        if (v->content)
            nui__bank__v1__contents_reply__free_unpacked (v->content, NULL);
        request.from_number = v->last.number;
        request.from_line = line;
        v->content_at = 0;
        v->content =
            (Nui__Bank__V1__ContentsReply *)bank_call (v->ctx, "Contents", &request.base, err);
        if (!v->content)
            return NULL;
    }
    const Nui__Bank__V1__BlockContent *content =
        v->content_at < v->content->n_blocks ? v->content->blocks[v->content_at] : NULL;
    if (!content || content->number != v->last.number || content->first_line != line ||
        (line < content->count && content->n_lines == 0)) {
        err_set (err, ERR_CONFLICT, "what block %lld made of the bank's tables is missing",
                 (long long)v->last.number);
        return NULL;
    }
    v->content_at++;
    return content;
}

/* The leaf of the newest block's lines, which comes after those of its operations; returns how many that are, 0 or 1. */
static size_t lines_leaf (struct verifier *v, struct merkle_hash *leaf, struct err *err)
{
    EVP_MD_CTX *hash = audit_lines_begin ();
    const Nui__Bank__V1__BlockContent *content;
    int64_t line = 0;
    do {
        content = next_content (v, line, err);
        if (!content)
            break;
        for (size_t i = 0; i < content->n_lines; i++)
            audit_lines_add (hash, content->lines[i], strlen (content->lines[i]));
        line += (int64_t)content->n_lines;
    } while (line < content->count);
    *leaf = audit_lines_end (hash);
    return line > 0;
}

static int check_root (struct verifier *v, struct err *err)
{
    const struct block *block = &v->last;
    struct merkle_hash *leaf = calloc ((size_t)block->ops + 1, sizeof (*leaf)), root;
    if (!leaf)
        return err_set (err, ERR_NOMEM, "out of memory");
    for (int64_t i = 0; i < block->ops && !err->code; i++) {
        const Nui__Bank__V1__LedgerOperation *op = next_op (v, block->first_op + i, err);
        if (op)
            leaf[i] = leaf_of (op, &v->scratch);
    }
    size_t leaves = (size_t)block->ops;
    if (!err->code)
        leaves += lines_leaf (v, leaf + block->ops, err);
    if (!err->code) {
        root = merkle_root (leaf, leaves);
        if (!merkle_equal (&root, &block->root))
            err_set (err, ERR_CONFLICT,
                     "block %lld: its operations %lld to %lld, their entries, or what they made of "
                     "the bank's tables, are not those that the bank signed",
                     (long long)block->number, (long long)block->first_op,
                     (long long)(block->first_op + block->ops - 1));
    }
    free (leaf);
    return err->code;
}

static int check_block (struct verifier *v, const Nui__Bank__V1__Block *message, struct err *err)
{
    struct block block, before = v->last;
    if (block_open (v->ctx, message, &block, err) < 0)
        return err->code;
    v->last = block;
    if (before.number) {
        struct merkle_hash link = block_link (&before);
        if (block.number != before.number + 1 || block.first_op != before.first_op + before.ops ||
            block.recorded_at < before.recorded_at || !merkle_equal (&link, &block.prev))
            return err_set (err, ERR_CONFLICT, "block %lld does not follow block %lld",
                            (long long)block.number, (long long)before.number);
    } else {
        static const struct merkle_hash none;
        v->first_op = block.first_op;
        if (block.number != v->from || (block.number == 1 && !merkle_equal (&block.prev, &none)))
            return err_set (err, ERR_CONFLICT, "the chain does not begin with block %lld",
                            (long long)v->from);
    }
    if ((!v->headers && check_root (v, err) < 0) || meet_anchors (v, err) < 0)
        return err->code;
    v->blocks++;
    v->operations += block.ops;
    cli_progress_update (v->progress, (uint64_t)v->blocks);
    return 0;
}

static int check_chain (struct verifier *v, struct err *err)
{
    int64_t newest = 0;
    bool more = true;
    while (more && !err->code) {
        Nui__Bank__V1__BlocksRequest request = NUI__BANK__V1__BLOCKS_REQUEST__INIT;
        request.from_number = v->last.number ? v->last.number + 1 : v->from;
        request.limit = BLOCKS_A_CALL;
        Nui__Bank__V1__BlocksReply *reply =
            (Nui__Bank__V1__BlocksReply *)bank_call (v->ctx, "Blocks", &request.base, err);
        if (!reply)
            return err->code;
        newest = reply->newest;
        if (!v->progress)
            v->progress = cli_progress_start ("blocks", (uint64_t)(newest - v->from + 1));
        if (reply->n_blocks == 0 && request.from_number <= newest)
            err_set (err, ERR_CONFLICT, "block %lld is missing", (long long)request.from_number);
        for (size_t i = 0; i < reply->n_blocks && !err->code; i++)
            check_block (v, reply->blocks[i], err);
        more = reply->n_blocks > 0 && v->last.number < newest;
        nui__bank__v1__blocks_reply__free_unpacked (reply, NULL);
    }
    if (!err->code && v->anchors_met < v->anchors)
        for (size_t i = 0; i < v->anchors; i++)
            if (v->anchor[i].number > v->last.number || v->anchor[i].number < v->from)
                return err_set (err, ERR_CONFLICT,
                                "an anchor was taken of block %lld, the blocks looked at are %lld "
                                "to %lld",
                                (long long)v->anchor[i].number, (long long)v->from,
                                (long long)v->last.number);
    return err->code;
}

static int print_chain (struct verifier *v)
{
    static const struct table_column columns[] = {
        {"blocks", "Blocks", TABLE_INT, 0},        {"operations", "Operations", TABLE_INT, 0},
        {"first_operation", "From", TABLE_INT, 0}, {"last_operation", "To", TABLE_INT, 0},
        {"anchors", "Anchors met", TABLE_INT, 0},  {"recorded", "Last recorded", TABLE_TIME, 0},
        {"link", "Link", TABLE_TEXT, 0},           {"contents", "Contents", TABLE_TEXT, 0}};
    struct table *table = table_create (columns, 8);
    table_int (table, v->blocks);
    table_int (table, v->operations);
    table_int (table, v->first_op);
    table_int (table, v->last.first_op + v->last.ops - 1);
    table_int (table, (int64_t)v->anchors_met);
    table_time (table, v->last.recorded_at);
    table_text (table, anchor_of (&v->last).link);
    table_text (table, v->headers ? "not looked at" : "as signed");
    table_end_row (table);
    int rc = table_print_record (table, v->ctx);
    table_destroy (table);
    return rc;
}

/* The rules as the bank's database computes them. */
static void example_cell (struct table *table, const ProtobufCMessage *message)
{
    const Nui__Bank__V1__LedgerRule *rule = (const Nui__Bank__V1__LedgerRule *)message;
    table_text (table, rule->broken ? rule->example : NULL);
}

static int verify_rules (struct cli_context *ctx, const struct cli_said *said)
{
    static const struct table_column columns[] = {
        {"rule", "Rule", TABLE_TEXT},
        {"checked", "Checked", TABLE_INT},
        {"broken", "Broken", TABLE_INT},
        {"example", "Example", TABLE_TEXT, .cell = example_cell}};
    Nui__Bank__V1__LedgerCheckRequest request = NUI__BANK__V1__LEDGER_CHECK_REQUEST__INIT;
    struct err err = {0};
    uint64_t broken = 0;
    int rc;
    Nui__Bank__V1__LedgerCheckReply *reply =
        (Nui__Bank__V1__LedgerCheckReply *)cli_answer (ctx, said, &request.base, &rc);
    if (!reply)
        return rc;
    rc = TABLE_SHOW (ctx, columns, reply->rules, reply->n_rules);
    for (size_t i = 0; i < reply->n_rules; i++)
        broken += reply->rules[i]->broken;
    nui__bank__v1__ledger_check_reply__free_unpacked (reply, NULL);
    if (broken) {
        err_set (&err, ERR_CONFLICT, "the ledger breaks its rules in %llu places",
                 (unsigned long long)broken);
        return cli_fail ("verify", &err);
    }
    return rc;
}

static int verify_run (struct cli_context *ctx, const struct cli_said *said)
{
    const char *anchor = said_text (said, "anchor");
    int64_t from = said_given (said, "from") ? said_number (said, "from") : 1;
    struct verifier v = {.ctx = ctx, .headers = said_flag (said, "headers"), .from = from};
    struct err err = {0};
    if (!anchor || anchors_read (&v, anchor, &err) == 0)
        check_chain (&v, &err);
    if (v.progress)
        cli_progress_end (v.progress);
    if (v.page)
        nui__bank__v1__operations_reply__free_unpacked (v.page, NULL);
    if (v.content)
        nui__bank__v1__contents_reply__free_unpacked (v.content, NULL);
    strbuf_free (&v.scratch);
    free (v.anchor);
    if (!err.code && v.blocks == 0)
        err_set (&err, ERR_NOT_FOUND, "there is no block %lld", (long long)from);
    return err.code ? cli_fail ("verify", &err) : print_chain (&v);
}

static const struct cli_option verify_options[] = {
    {"from", 0, CLI_OPT_INT, "BLOCK", "from this block on, trusting what it follows (1)", .min = 1,
     .max = INT64_MAX},
    {"headers", 0, CLI_OPT_FLAG, NULL, "signatures and links only, not the operations"},
    {"anchor", 0, CLI_OPT_STRING, "FILE", "the history must hold every anchor of the file"},
    {"rules", 0, CLI_OPT_FLAG, NULL, "the ledger's rules instead, recomputed over all of it"},
    {0}};

static const struct cli_form verify_forms[] = {
    {"[--from BLOCK] [--headers] [--anchor FILE]", verify_run},
    {"--rules", verify_rules, .method = "LedgerCheck"},
    {0}};

const struct cli_command verify_command = {
    .name = "verify",
    .group = CLI_BANK,
    .summary = "recompute the bank's history, block by block",
    .forms = verify_forms,
    .options = verify_options,
    .service = &bank_service,
    .example = "nui verify --anchor anchors",
};

/* ---- proofs ---- */

/* The rows of an object, under the root that the operation's note names. */
static int proof_rows (const Nui__Bank__V1__ProofReply *proof, struct err *err)
{
    struct audit_state state;
    struct strbuf scratch = STRBUF_INIT;
    if (proof->n_rows == 0)
        return 0;
    if (strcmp (proof->operation->kind, "state") != 0)
        return err_set (err, ERR_CONFLICT, "operation %lld records no state",
                        (long long)proof->operation->id);
    if (audit_state_parse (proof->operation->note, &state, err) < 0)
        return err->code;
    for (size_t i = 0; i < proof->n_rows && !err->code; i++) {
        const Nui__Bank__V1__StateRow *row = proof->rows[i];
        struct merkle_hash path[MERKLE_PATH_MAX] = {0},
                           leaf = audit_line_leaf (row->line, strlen (row->line), &scratch);
        size_t len = row->n_path < MERKLE_PATH_MAX ? row->n_path : MERKLE_PATH_MAX;
        for (size_t k = 0; k < len; k++)
            if (row->path[k].len == MERKLE_BYTES)
                memcpy (path[k].b, row->path[k].data, MERKLE_BYTES);
        if (row->index < 0 || !merkle_path_holds (&leaf, (size_t)state.rows, (size_t)row->index,
                                                  path, len, &state.root))
            err_set (err, ERR_CONFLICT, "%.200s is not in the state that operation %lld recorded",
                     row->line, (long long)proof->operation->id);
    }
    strbuf_free (&scratch);
    return err->code;
}

static int proof_check (struct cli_context *ctx, const Nui__Bank__V1__ProofReply *proof,
                        struct block *block, struct err *err)
{
    struct merkle_hash path[MERKLE_PATH_MAX] = {0}, leaf;
    struct strbuf scratch = STRBUF_INIT;
    if (!proof->block || !proof->operation || proof->n_path > MERKLE_PATH_MAX)
        return err_set (err, ERR_INVALID, "this is no proof");
    if (block_open (ctx, proof->block, block, err) < 0)
        return err->code;
    for (size_t i = 0; i < proof->n_path; i++)
        if (proof->path[i].len == MERKLE_BYTES)
            memcpy (path[i].b, proof->path[i].data, MERKLE_BYTES);
    leaf = leaf_of (proof->operation, &scratch);
    strbuf_free (&scratch);
    if (proof->operation->id < block->first_op || proof->leaves < block->ops ||
        !merkle_path_holds (&leaf, (size_t)proof->leaves,
                            (size_t)(proof->operation->id - block->first_op), path, proof->n_path,
                            &block->root))
        return err_set (err, ERR_CONFLICT,
                        "operation %lld is not one that the bank signed in block %lld",
                        (long long)proof->operation->id, (long long)block->number);
    return proof_rows (proof, err);
}

static int proof_save (const char *path, const Nui__Bank__V1__ProofReply *proof, struct err *err)
{
    size_t len = nui__bank__v1__proof_reply__get_packed_size (proof);
    uint8_t *bytes = malloc (len + 1);
    FILE *file = fopen (path, "we");
    bool ok = bytes && file;
    if (ok) {
        nui__bank__v1__proof_reply__pack (proof, bytes);
        ok = fwrite (bytes, 1, len, file) == len;
    }
    if (file && fclose (file) != 0)
        ok = false;
    free (bytes);
    return ok ? 0 : err_set (err, ERR_IO, "cannot write %.200s: %s", path, strerror (errno));
}

static Nui__Bank__V1__ProofReply *proof_load (const char *path, struct err *err)
{
    Nui__Bank__V1__ProofReply *proof = NULL;
    uint8_t *bytes = malloc (PROOF_BYTES_MAX);
    FILE *file = fopen (path, "re");
    if (!bytes || !file) {
        err_set (err, ERR_IO, "cannot read %.200s: %s", path, strerror (errno));
    } else {
        size_t len = fread (bytes, 1, PROOF_BYTES_MAX, file);
        proof = (Nui__Bank__V1__ProofReply *)pbguard_unpack (
            &nui__bank__v1__proof_reply__descriptor, bytes, len, err);
        if (!proof)
            err_set (err, ERR_INVALID, "%.200s holds no proof", path);
    }
    if (file)
        fclose (file);
    free (bytes);
    return proof;
}

static int proof_print (struct cli_context *ctx, const Nui__Bank__V1__ProofReply *proof,
                        const struct block *block)
{
    static const struct table_column columns[] = {{"operation", "Operation", TABLE_INT, 0},
                                                  {"kind", "Kind", TABLE_TEXT, 0},
                                                  {"at", "Recorded", TABLE_TIME, 0},
                                                  {"who", "Who", TABLE_TEXT, 0},
                                                  {"job", "Job", TABLE_TEXT, 0},
                                                  {"site", "Site", TABLE_TEXT, 0},
                                                  {"description", "Description", TABLE_TEXT, 0},
                                                  {"block", "In block", TABLE_INT, 0},
                                                  {"link", "Link", TABLE_TEXT, 0}};
    const Nui__Bank__V1__LedgerOperation *op = proof->operation;
    struct table *table = table_create (columns, 9);
    table_int (table, op->id);
    table_text (table, op->kind);
    table_time (table, op->recorded_us);
    table_text (table, strstr (op->client, "/operator/") ? op->client : op->on_behalf);
    table_text (table, op->job);
    table_text (table, op->site);
    table_text (table, op->note);
    table_int (table, block->number);
    table_text (table, anchor_of (block).link);
    table_end_row (table);
    int rc = table_print_record (table, ctx);
    table_destroy (table);
    return rc;
}

/* The rows of an object. */
static int proof_print_rows (struct cli_context *ctx, const Nui__Bank__V1__ProofReply *proof,
                             const struct block *block)
{
    static const struct table_column columns[] = {{"row", "Row", TABLE_TEXT, 0},
                                                  {"operation", "Operation", TABLE_INT, 0},
                                                  {"at", "Recorded", TABLE_TIME, 0},
                                                  {"block", "In block", TABLE_INT, 0},
                                                  {"link", "Link", TABLE_TEXT, 0}};
    struct table *table = table_create (columns, 5);
    for (size_t i = 0; i < proof->n_rows; i++) {
        table_text (table, proof->rows[i]->line);
        table_int (table, proof->operation->id);
        table_time (table, proof->operation->recorded_us);
        table_int (table, block->number);
        table_text (table, anchor_of (block).link);
        table_end_row (table);
    }
    int rc = table_print (table, ctx);
    table_destroy (table);
    return rc;
}

/* What must hold of a proof beside its path: it is of what was asked. */
static int proof_is_of (const Nui__Bank__V1__ProofReply *proof,
                        const Nui__Bank__V1__ProofRequest *asked, struct err *err)
{
    if (asked->object[0] && proof->n_rows == 0)
        return err_set (err, ERR_CONFLICT, "the bank proved no object");
    if (asked->op_id && (uint64_t)proof->operation->id != asked->op_id)
        return err_set (err, ERR_CONFLICT, "the bank proved operation %lld instead",
                        (long long)proof->operation->id);
    return 0;
}

static int proof_run (struct cli_context *ctx, const struct cli_said *said)
{
    const char *save = said_text (said, "save"), *check = said_text (said, "check"),
               *what = said_operand (said, 0);
    Nui__Bank__V1__ProofRequest request = NUI__BANK__V1__PROOF_REQUEST__INIT;
    Nui__Bank__V1__ProofReply *proof;
    struct err err = {0};
    struct block block;
    if (what && strchr (what, ':'))
        request.object = bank_text (what);
    else if (what && uint_parse (what, "operation", 1, INT64_MAX, &request.op_id, &err) < 0)
        return cli_usage ("proof", "say OPERATION or KIND:NAME [--save FILE], or --check FILE");
    proof = check ? proof_load (check, &err)
                  : (Nui__Bank__V1__ProofReply *)bank_call (ctx, "Proof", &request.base, &err);
    if (proof && proof_check (ctx, proof, &block, &err) == 0 &&
        proof_is_of (proof, &request, &err) == 0 && save)
        proof_save (save, proof, &err);
    int rc = err.code        ? cli_fail ("proof", &err)
             : proof->n_rows ? proof_print_rows (ctx, proof, &block)
                             : proof_print (ctx, proof, &block);
    if (proof)
        nui__bank__v1__proof_reply__free_unpacked (proof, NULL);
    return rc;
}

static const struct cli_option proof_options[] = {
    {"save", 0, CLI_OPT_STRING, "FILE", "keeps the proof"},
    {"check", 0, CLI_OPT_STRING, "FILE", "checks one that was kept; asks nobody"},
    {0}};

static const struct cli_form proof_forms[] = {
    {"OPERATION [--save FILE]", proof_run}, {"--check FILE [--save FILE]", proof_run}, {0}};

const struct cli_command proof_command = {
    .name = "proof",
    .group = CLI_BANK,
    .summary = "show that an operation is in the bank's signed history",
    .text =
        "OPERATION is its number, as nui statement shows it, or KIND:NAME: what the bank has of an object.",
    .forms = proof_forms,
    .options = proof_options,
    .example = "nui proof 812 --save proof.812",
};
