/* auditread: blocks, operations and the ledger's rules, as the reading connection sees them.
 *
 * Results are valid during the callback only; every call ends with exactly one, from the loop. */
#ifndef NUI_BANK_STORE_AUDITREAD_H
#define NUI_BANK_STORE_AUDITREAD_H

#include "bank/store/reader.h"
#include "proto/audit/block.h"

struct audit_block {
    uint8_t body[BLOCK_BYTES];
    const void *chain, *signature; /* chain: an Envelope with certificates only */
    size_t chain_len, signature_len;
};

struct audit_rule {
    const char *rule;
    uint64_t checked, broken;
    const char *example;
};

/* Ascending from a number on; from 0: the newest only. newest 0: there is none. */
typedef void (*auditread_blocks_f) (void *arg, const struct err *err,
                                    const struct audit_block *block, uint32_t count,
                                    int64_t newest);
void auditread_blocks (struct reader *reader, int64_t from, uint32_t limit, auditread_blocks_f done,
                       void *arg);
typedef void (*auditread_ops_f) (void *arg, const struct err *err, const struct audit_op *op,
                                 uint32_t count);
/* ERR_DENIED, here and for the rules, for people who are no auditors. */
void auditread_ops (struct reader *reader, const char *who, int64_t from, uint32_t limit,
                    auditread_ops_f done, void *arg);
/* What a block made of the bank's tables. */
struct audit_content {
    int64_t number;
    const char *lines; /* "": none */
};
/* Of blocks from a number on, ascending. ERR_DENIED as above. */
typedef void (*auditread_contents_f) (void *arg, const struct err *err,
                                      const struct audit_content *content, uint32_t count);
void auditread_contents (struct reader *reader, const char *who, int64_t from, uint32_t limit,
                         auditread_contents_f done, void *arg);
/* The block that holds an operation, with all its operations and its lines. ERR_NOT_FOUND for one that is in no
 * block, or concerns no account that who sees. */
typedef void (*auditread_proof_f) (void *arg, const struct err *err,
                                   const struct audit_block *block, const struct audit_op *op,
                                   uint32_t count, const char *lines);
void auditread_proof (struct reader *reader, const char *who, int64_t op, auditread_proof_f done,
                      void *arg);
/* The lines of all objects, in the order of their bytes, as they are when a block is the newest; named: those of an
 * object that who sees. */
struct audit_objects {
    const char *const *line;
    const bool *named;
    uint32_t count;
    int64_t newest;
};
typedef void (*auditread_state_f) (void *arg, const struct err *err,
                                   const struct audit_objects *objects);
void auditread_state (struct reader *reader, const char *who, const char *table, const char *key,
                      auditread_state_f done, void *arg);
/* Each rule over the whole ledger, in one snapshot. */
typedef void (*auditread_rules_f) (void *arg, const struct err *err, const struct audit_rule *rule,
                                   uint32_t count);
void auditread_rules (struct reader *reader, const char *who, auditread_rules_f done, void *arg);

#endif
