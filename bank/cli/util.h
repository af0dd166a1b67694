/* Shared inside bank/cli: one blocking call to the bank. */
#ifndef NUI_BANK_CLI_UTIL_H
#define NUI_BANK_CLI_UTIL_H

#include "proto/base/arena.h"
#include "proto/cli/client.h"
#include "proto/cli/options.h"
#include "proto/cli/table.h"
#include "proto/nui/v1/bank.pb-c.h"

/* NULL, with err filled, on failure. Free with protobuf_c_message_free_unpacked. */
ProtobufCMessage *bank_call (struct cli_context *ctx, const char *method,
                             const ProtobufCMessage *request, struct err *err);
/* A fresh idempotency key in buf. */
ProtobufCBinaryData bank_key (uint8_t buf[16]);
/* "alice" -> "nui://<my grid>/user/alice"; an identity stays as it is. */
int bank_identity (struct cli_context *ctx, const char *text, char buf[PRINCIPAL_URI_MAX],
                   struct err *err);
/* The last part of an identity, for tables. */
const char *bank_short_name (const char *identity);
/* Splits "a,b" in place; returns the number of parts, at most max (more: -1). */
int bank_split (char *text, char **part, int max);
/* The list, with room for so many more of that size. */
void *bank_grown (struct arena *arena, void *list, uint32_t count, uint32_t *cap, size_t more,
                  size_t size);
/* Calls a method that answers DoneReply and prints what was done as one sentence or record. */
int bank_do (struct cli_context *ctx, const char *command, const char *method,
             const ProtobufCMessage *request, const char *sentence);

/* Prints what the bank lists of a kind: name, (project,) detail. */
int bank_list (struct cli_context *ctx, const char *command, const char *kind,
               const struct table_column *columns, uint32_t count);
/* An amount of credits above zero; false after a usage error. */
bool bank_amount (const char *command, const char *text, credit_micro *amount, int *rc);

enum { BANK_SCOPES_MAX = 64 };
struct bank_scopes {
    Nui__Bank__V1__Scope scope[BANK_SCOPES_MAX], *message[BANK_SCOPES_MAX];
    char word[BANK_SCOPES_MAX][PRINCIPAL_URI_MAX + 16];
    size_t count;
};
enum { BANK_NODE_TYPES_MAX = 32 };
struct bank_nodes {
    Nui__Bank__V1__Asked asked;
    Nui__Bank__V1__NodeShare share[BANK_NODE_TYPES_MAX], *message[BANK_NODE_TYPES_MAX];
    char type[BANK_NODE_TYPES_MAX][64];
};
/* From --node-type words: "fat=4". */
int bank_nodes (const struct cli_list *words, struct bank_nodes *out, struct err *err);
/* From --for words: "site=alpha", "user=-bob", "qos=ANY"; users by name or identity. */
int bank_scopes (struct cli_context *ctx, const struct cli_list *words, struct bank_scopes *out,
                 struct err *err);
/* "bob", "-bob", "ANY", "MEMBERS" or an identity -> as the bank wants it. */
int bank_user_scope (struct cli_context *ctx, const char *word, char *buf, size_t size,
                     struct err *err);

/* funderpage.c: a grant's statement as a page to be printed, with its burn-down; and as tables. */
int funder_page (const Nui__Bank__V1__GrantStatementReply *st, const char *file);
int funder_pdf (const Nui__Bank__V1__GrantStatementReply *st, const char *file);
int funder_table (struct cli_context *ctx, const Nui__Bank__V1__GrantStatementReply *st);

/* protobuf-c's strings are not const though it never writes them. */
static inline char *bank_text (const char *text)
{
    return (char *)(uintptr_t)text;
}

int cmd_balance (struct cli_context *ctx, int argc, char **argv);
int cmd_statement (struct cli_context *ctx, int argc, char **argv);
int cmd_quote (struct cli_context *ctx, int argc, char **argv);
int cmd_deposit (struct cli_context *ctx, int argc, char **argv);
int cmd_withdraw (struct cli_context *ctx, int argc, char **argv);
int cmd_transfer (struct cli_context *ctx, int argc, char **argv);
int cmd_refund (struct cli_context *ctx, int argc, char **argv);
int cmd_allocation (struct cli_context *ctx, int argc, char **argv);
/* Balances of an account, or of all (NULL), by account or by allocation. */
int balance_show (struct cli_context *ctx, const char *command, const char *account,
                  bool allocations);
int cmd_usage (struct cli_context *ctx, int argc, char **argv);
int cmd_hold (struct cli_context *ctx, int argc, char **argv);
int cmd_anchor (struct cli_context *ctx, int argc, char **argv);
int cmd_verify (struct cli_context *ctx, int argc, char **argv);
int cmd_proof (struct cli_context *ctx, int argc, char **argv);
int cmd_project (struct cli_context *ctx, int argc, char **argv);
int cmd_user (struct cli_context *ctx, int argc, char **argv);
int cmd_account (struct cli_context *ctx, int argc, char **argv);
int cmd_freeze (struct cli_context *ctx, int argc, char **argv);
int cmd_unfreeze (struct cli_context *ctx, int argc, char **argv);
int cmd_site (struct cli_context *ctx, int argc, char **argv);
int cmd_charge (struct cli_context *ctx, int argc, char **argv);
int cmd_funder (struct cli_context *ctx, int argc, char **argv);
int cmd_grant (struct cli_context *ctx, int argc, char **argv);
int cmd_split (struct cli_context *ctx, int argc, char **argv);
int cmd_role (struct cli_context *ctx, int argc, char **argv);
int cmd_reconcile (struct cli_context *ctx, int argc, char **argv);
int cmd_clock (struct cli_context *ctx, int argc, char **argv);
int cmd_rate (struct cli_context *ctx, int argc, char **argv);

#endif
