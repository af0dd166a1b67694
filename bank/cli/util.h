/* Shared inside bank/cli: one blocking call to the bank, and options that several commands have. */
#ifndef NUI_BANK_CLI_UTIL_H
#define NUI_BANK_CLI_UTIL_H

#include "proto/base/arena.h"
#include "proto/cli/client.h"
#include "proto/cli/request.h"
#include "proto/cli/table.h"
#include "proto/nui/v1/bank.pb-c.h"

/* NULL, with err filled, on failure. Free with protobuf_c_message_free_unpacked. */
ProtobufCMessage *bank_call (struct cli_context *ctx, const char *method,
                             const ProtobufCMessage *request, struct err *err);
/* A fresh idempotency key in buf. */
ProtobufCBinaryData bank_key (uint8_t buf[16]);
/* The last part of an identity, for tables. */
const char *bank_short_name (const char *identity);
/* Splits "a,b" in place; returns the number of parts, at most max (more: -1). */
int bank_split (char *text, char **part, int max);
/* The list, with room for so many more of that size. */
void *bank_grown (struct arena *arena, void *list, uint32_t count, uint32_t *cap, size_t more,
                  size_t size);
/* The bank, for forms that are one call. */
extern const struct cli_service bank_service;

enum { BANK_SCOPES_MAX = 64, BANK_NODE_TYPES_MAX = 32 };

/* --account, else ACCOUNT of nui.cfg; false after a usage error. */
bool bank_account (struct cli_context *ctx, const struct cli_said *said, char **account_out,
                   int *rc);

/* Options that several commands have. */
cli_take
    bank_take_scopes; /* --for: "site=alpha", "user=-bob", "qos=ANY"; users by name or identity */
cli_take bank_take_nodes; /* --node-type: "fat=4", into `asked` */
cli_take bank_take_claim; /* --user, with --account, into `claim` */
#define BANK_SCOPE_OPTION                                                                          \
    {                                                                                              \
        "for", 0, CLI_OPT_LIST, "KIND=NAME",                                                       \
            "whom and what they are for, repeated: user=, site=, machine=, qos=; -NAME excludes, " \
            "ANY and MEMBERS",                                                                     \
            .take = bank_take_scopes                                                               \
    }
#define BANK_DESCRIPTION_OPTION                                                                    \
    {                                                                                              \
        "description", 'd', CLI_OPT_STRING, "TEXT", "for the statement"                            \
    }
#define BANK_PERIOD_OPTIONS                                                                        \
    {"from", 0, CLI_OPT_PAST, "TIME", "from the beginning when left out"},                         \
        {"to", 0, CLI_OPT_PAST, "TIME", "exclusive; until now when left out"},                     \
    {                                                                                              \
        "period", 0, CLI_OPT_PERIOD, "PERIOD",                                                     \
            "both at once: a month (2026-11), a day (2026-11-21), yesterday"                       \
    }
/* What rates may look at, and what a job asked for. */
#define BANK_JOB_OPTIONS                                                                           \
    {"qos", 'q', CLI_OPT_STRING, "NAME", "quality of service,"},                                   \
        {"class", 'c', CLI_OPT_STRING, "NAME", "class,"},                                          \
        {"machine", 0, CLI_OPT_STRING, "NAME", "machine: what rates may look at"},                 \
    {                                                                                              \
        "node-type", 0, CLI_OPT_LIST, "NAME=PROCS",                                                \
            "processors on nodes of each type; else those of the dearest", .take = bank_take_nodes \
    }

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

extern const struct cli_command balance_command;
extern const struct cli_command statement_command;
extern const struct cli_command quote_command;
extern const struct cli_command deposit_command;
extern const struct cli_command withdraw_command;
extern const struct cli_command transfer_command;
extern const struct cli_command refund_command;
extern const struct cli_command allocation_command;
/* A form: allocations of an account, or of all. */
int balance_allocations (struct cli_context *ctx, const struct cli_said *said);
extern const struct cli_command usage_command;
extern const struct cli_command hold_command;
extern const struct cli_command anchor_command;
extern const struct cli_command verify_command;
extern const struct cli_command proof_command;
extern const struct cli_command project_command;
extern const struct cli_command user_command;
extern const struct cli_command account_command;
extern const struct cli_command freeze_command;
extern const struct cli_command unfreeze_command;
extern const struct cli_command site_command;
extern const struct cli_command charge_command;
extern const struct cli_command funder_command;
extern const struct cli_command grant_command;
extern const struct cli_command split_command;
extern const struct cli_command role_command;
extern const struct cli_command reconcile_command;
extern const struct cli_command clock_command;
extern const struct cli_command rate_command;

#endif
