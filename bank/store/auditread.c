/* auditread: the reader's statements on blocks, operations, proofs and the ledger's rules. The
 * methods of svc/audit.c, svc/state.c and svc/funders.c call it. It only reads and never blocks;
 * where a list is for auditors only, the statement that says who is one goes first. */
#include "bank/store/auditread.h"

#include <assert.h>
#include <string.h>

#include "bank/store/reader_impl.h"

/* The callbacks' types differ: each is kept as a general one and called as what it is. */
#define GIVE(read, type) ((type)(read)->any)

static const void *bytes_at (const PGresult *res, int row, int col, size_t *len)
{
    *len = (size_t)PQgetlength (res, row, col);
    return PQgetvalue (res, row, col);
}

static void take_hash (const PGresult *res, int row, int col, uint8_t out[MERKLE_BYTES])
{
    assert (PQgetlength (res, row, col) == MERKLE_BYTES);
    memcpy (out, PQgetvalue (res, row, col), MERKLE_BYTES);
}

static struct audit_block *take_blocks (struct arena *arena, const PGresult *res)
{
    int count = PQntuples (res);
    struct audit_block *out = arena_array (arena, (size_t)count, sizeof (*out));
    for (int i = 0; i < count; i++) {
        struct block block = {.number = pgres_i64 (res, i, 0),
                              .first_op = pgres_i64 (res, i, 1),
                              .ops = pgres_i64 (res, i, 2),
                              .recorded_at = pgres_i64 (res, i, 3)};
        take_hash (res, i, 4, block.prev.b);
        take_hash (res, i, 5, block.root.b);
        block_encode (&block, out[i].body);
        out[i].signature = bytes_at (res, i, 6, &out[i].signature_len);
        out[i].chain = bytes_at (res, i, 7, &out[i].chain_len);
    }
    return out;
}

/* Operations ascending, and their entries in the same order. */
static struct audit_op *take_ops (struct arena *arena, const PGresult *ops, const PGresult *entries)
{
    int count = PQntuples (ops), total = PQntuples (entries), at = 0;
    struct audit_op *out = arena_array (arena, (size_t)count, sizeof (*out));
    struct audit_entry *entry = arena_array (arena, (size_t)total, sizeof (*entry));
    for (int i = 0; i < total; i++)
        entry[i] = (struct audit_entry){.leg = (uint32_t)pgres_i64 (entries, i, 1),
                                        .layer = PQgetvalue (entries, i, 2)[0],
                                        .unit = pgres_i64 (entries, i, 3),
                                        .account_id = pgres_i64 (entries, i, 4),
                                        .allocation_id = pgres_i64 (entries, i, 5),
                                        .amount = pgres_i64 (entries, i, 6),
                                        .effective_at = pgres_i64 (entries, i, 7),
                                        .recorded_at = pgres_i64 (entries, i, 8)};
    for (int i = 0; i < count; i++) {
        struct audit_op *op = &out[i];
        *op = (struct audit_op){.id = pgres_i64 (ops, i, 0),
                                .client = pgres_text (ops, i, 1, arena),
                                .kind = pgres_text (ops, i, 4, arena),
                                .on_behalf = pgres_text (ops, i, 5, arena),
                                .site = pgres_text (ops, i, 6, arena),
                                .job = pgres_text (ops, i, 7, arena),
                                .note = pgres_text (ops, i, 8, arena),
                                .effective_at = pgres_i64 (ops, i, 9),
                                .recorded_at = pgres_i64 (ops, i, 10),
                                .status = pgres_i64 (ops, i, 11)};
        assert (PQgetlength (ops, i, 2) == sizeof (op->key));
        memcpy (op->key, PQgetvalue (ops, i, 2), sizeof (op->key));
        take_hash (ops, i, 3, op->hash);
        op->outcome = bytes_at (ops, i, 12, &op->outcome_len);
        while (at < total && pgres_i64 (entries, at, 0) < op->id)
            at++; /* of an operation that is not there: the leaves will not fit */
        op->entry = entry + at;
        while (at < total && pgres_i64 (entries, at, 0) == op->id) {
            at++;
            op->entry_count++;
        }
    }
    return out;
}

static void give_blocks (struct read *read, struct err *err, PGresult *const *res)
{
    const struct audit_block *block = res ? take_blocks (read->arena, res[0]) : NULL;
    int64_t newest = res && PQntuples (res[1]) ? pgres_i64 (res[1], 0, 0) : 0;
    GIVE (read, auditread_blocks_f)
    (read->arg, err, block, res ? (uint32_t)PQntuples (res[0]) : 0, newest);
}

static struct pgargs *range (struct read *read, int64_t from, int64_t limit)
{
    struct pgargs *args = pgargs_create (read->arena, "i");
    pgargs_i64 (args, 0, from);
    pgargs_i64 (args, 0, limit);
    return args;
}

void auditread_blocks (struct reader *reader, int64_t from, uint32_t limit, auditread_blocks_f done,
                       void *arg)
{
    struct read *read = read_start (reader, (reader_any_f)done, arg, give_blocks);
    if (!read)
        return;
    read_add (read, RD_BLOCKS, range (read, from, limit));
    read_add (read, RD_BLOCKS, range (read, 0, 1));
    pgbatch_submit (reader->loop);
}

/* The first answer of a batch that is for auditors: refused without a row. */
static bool audits (PGresult *const *res, struct err *err)
{
    if (!err->code && PQntuples (res[0]) == 0)
        err_set (err, ERR_DENIED, "the whole ledger is for auditors, agencies and operators");
    return !err->code;
}

static void ask_audits (struct read *read, const char *who)
{
    struct pgargs *args = pgargs_create (read->arena, "t");
    pgargs_text (args, 0, who);
    read_add (read, RD_AUDITS, args);
}

static void give_ops (struct read *read, struct err *err, PGresult *const *res)
{
    bool may = audits (res, err);
    GIVE (read, auditread_ops_f)
    (read->arg, err, may ? take_ops (read->arena, res[1], res[2]) : NULL,
     may ? (uint32_t)PQntuples (res[1]) : 0);
}

void auditread_ops (struct reader *reader, const char *who, int64_t from, uint32_t limit,
                    auditread_ops_f done, void *arg)
{
    struct read *read = read_start (reader, (reader_any_f)done, arg, give_ops);
    if (!read)
        return;
    ask_audits (read, who);
    read_add (read, RD_OPS, range (read, from, from + limit));
    read_add (read, RD_OP_ENTRIES, range (read, from, from + limit));
    pgbatch_submit (reader->loop);
}

static void give_contents (struct read *read, struct err *err, PGresult *const *res)
{
    uint32_t count = audits (res, err) ? (uint32_t)PQntuples (res[1]) : 0;
    struct audit_content *content = arena_array (read->arena, count, sizeof (*content));
    for (uint32_t i = 0; i < count; i++)
        content[i] = (struct audit_content){.number = pgres_i64 (res[1], (int)i, 0),
                                            .lines = pgres_text (res[1], (int)i, 1, read->arena)};
    GIVE (read, auditread_contents_f) (read->arg, err, content, count);
}

void auditread_contents (struct reader *reader, const char *who, int64_t from, uint32_t limit,
                         auditread_contents_f done, void *arg)
{
    struct read *read = read_start (reader, (reader_any_f)done, arg, give_contents);
    if (!read)
        return;
    ask_audits (read, who);
    read_add (read, RD_CONTENTS, range (read, from, limit));
    pgbatch_submit (reader->loop);
}

static void give_proof (struct read *read, struct err *err, PGresult *const *res)
{
    if (!err->code && PQntuples (res[0]) == 0)
        err_set (err, ERR_NOT_FOUND,
                 "there is no such operation in the chain, or it concerns no account that you see");
    if (err->code || PQntuples (res[1]) == 0) {
        if (!err->code)
            err_set (err, ERR_NOT_FOUND, "that operation was recorded before the chain began");
        GIVE (read, auditread_proof_f) (read->arg, err, NULL, NULL, 0, "");
        return;
    }
    GIVE (read, auditread_proof_f)
    (read->arg, err, take_blocks (read->arena, res[1]), take_ops (read->arena, res[2], res[3]),
     (uint32_t)PQntuples (res[2]), pgres_text (res[4], 0, 1, read->arena));
}

void auditread_proof (struct reader *reader, const char *who, int64_t op, auditread_proof_f done,
                      void *arg)
{
    struct read *read = read_start (reader, (reader_any_f)done, arg, give_proof);
    if (!read)
        return;
    struct pgargs *seen = pgargs_create (read->arena, "ti");
    pgargs_text (seen, 0, who);
    pgargs_i64 (seen, 1, op);
    read_add (read, RD_OP_SEEN, seen);
    read_add (read, RD_BLOCK_OF, range (read, op, 0));
    read_add (read, RD_BLOCK_OPS, range (read, op, 0));
    read_add (read, RD_BLOCK_ENTRIES, range (read, op, 0));
    read_add (read, RD_BLOCK_CONTENT, range (read, op, 0));
    pgbatch_submit (reader->loop);
}

static void give_state (struct read *read, struct err *err, PGresult *const *res)
{
    uint32_t count = err->code ? 0 : (uint32_t)PQntuples (res[0]);
    const char **line = arena_array (read->arena, count, sizeof (*line));
    bool *named = arena_array (read->arena, count, sizeof (*named));
    for (uint32_t i = 0; i < count; i++) {
        line[i] = PQgetvalue (res[0], (int)i, 1);
        named[i] = pgres_bool (res[0], (int)i, 2);
    }
    struct audit_objects objects = {line, named, count, count ? pgres_i64 (res[0], 0, 0) : 0};
    GIVE (read, auditread_state_f) (read->arg, err, &objects);
}

void auditread_state (struct reader *reader, const char *who, const char *table, const char *key,
                      auditread_state_f done, void *arg)
{
    struct read *read = read_start (reader, (reader_any_f)done, arg, give_state);
    if (!read)
        return;
    struct pgargs *args = pgargs_create (read->arena, "tt");
    pgargs_text (args, 0, who);
    pgargs_text (args, 1, table);
    pgargs_text (args, 1, key);
    read_add (read, RD_STATE, args);
    pgbatch_submit (reader->loop);
}

static void give_rules (struct read *read, struct err *err, PGresult *const *res)
{
    uint32_t count = audits (res, err) ? (uint32_t)PQntuples (res[1]) : 0;
    struct audit_rule *rule = arena_array (read->arena, count, sizeof (*rule));
    for (uint32_t i = 0; i < count; i++)
        rule[i] = (struct audit_rule){.rule = pgres_text (res[1], (int)i, 0, read->arena),
                                      .checked = (uint64_t)pgres_i64 (res[1], (int)i, 1),
                                      .broken = (uint64_t)pgres_i64 (res[1], (int)i, 2),
                                      .example = pgres_text (res[1], (int)i, 3, read->arena)};
    GIVE (read, auditread_rules_f) (read->arg, err, rule, count);
}

void auditread_rules (struct reader *reader, const char *who, auditread_rules_f done, void *arg)
{
    struct read *read = read_start (reader, (reader_any_f)done, arg, give_rules);
    if (!read)
        return;
    ask_audits (read, who);
    pgbatch_add (reader->loop, BANK_STMT_COUNT + RD_LEDGER_CHECKS, NULL);
    pgbatch_submit (reader->loop);
}
