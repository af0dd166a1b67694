/* statements: the SQL of the ledger. Parameters are arrays; one statement serves a whole batch.
 *
 * Lookups go through LATERAL … LIMIT 1 so that each element is one index probe whatever the
 * planner believes about sizes. Pure data. */
#ifndef NUI_BANK_STORE_STATEMENTS_H
#define NUI_BANK_STORE_STATEMENTS_H

#include "bank/store/pgloop.h"

enum bank_stmt {
    ST_BEGIN,
    ST_COMMIT,
    ST_PULSE,
    ST_ROLLBACK,
    /* load: the parameters of ST_HOLDS and ST_USAGES are one set, those of ST_ACCOUNTS and
     * ST_ALLOCS another */
    ST_OPS,
    ST_HOLDS,
    ST_USAGES,
    ST_ACCOUNTS,
    ST_ALLOCS,
    ST_RATES,
    ST_SITES,
    ST_MEMBERS,
    ST_PROJECTS,
    ST_FUNDERS,
    ST_GRANTS,
    ST_PAID,
    ST_RECONS, /* their parameters are one set */
    ST_MOVES,
    ST_QUOTES,
    ST_SIGNED,
    ST_FREEZES,
    /* write */
    ST_NEW_OPS, /* fails when one of them is there: PG_NO_NUMBER */
    ST_NEW_JOBS,
    ST_NEW_SIGNED,
    ST_AFTER, /* fails when a block is not there */
    ST_ADD_OP,
    ST_ADD_CHANGE, /* all objects: see content.h */
    ST_PUT_BALANCE,
    ST_ADD_QUOTE,
    ST_ADD_QUOTE_CARD,
    ST_ADD_QUOTE_USE,
    ST_ADD_QUOTE_CANCEL,
    ST_PUT_HOLD, /* first: a job's hold may end and another of it begin in one batch */
    ST_ADD_HOLD,
    ST_ADD_NEW_HOLD, /* as ST_NEW_JOBS and ST_ADD_HOLD */
    ST_LENGTHEN_HOLD,
    ST_ADD_LEG,
    ST_PUT_LEG,
    ST_ADD_USAGE,
    ST_PUT_USAGE,
    ST_ADD_CHARGE,
    ST_ADD_CHARGE_LEG,
    ST_ADD_REFUND,
    ST_ADD_RECON,
    ST_ADD_RECON_EVENT,
    ST_ADD_SIGNED,
    ST_ADD_NEW_SIGNED, /* as ST_NEW_SIGNED and ST_ADD_SIGNED */
    ST_ADD_ENTRY,
    ST_PUT_ACK,
    ST_DROP_UNSEALED,
    ST_ADD_SIGNER,
    ST_ADD_BLOCK,
    BANK_STMT_COUNT
};

/* The reading connection's own. */
enum read_stmt {
    RD_BALANCE,
    RD_BALANCES,
    RD_BALANCES_ALL,
    RD_KEEP_PLAN, /* in a batch, for what follows in it */
    RD_STATEMENT_SUMS,
    RD_STATEMENT_LINES,
    RD_ACCOUNT_SEEN,
    RD_PROJECTS,
    RD_USERS,
    RD_ACCOUNTS,
    RD_SITES,
    RD_RATES,
    RD_ENDED,
    RD_BEGUN,
    RD_NEAR,
    RD_USAGE,
    RD_HOLDS,
    RD_BLOCKS,
    RD_BLOCK_OF,
    RD_OPS,
    RD_OP_ENTRIES,
    RD_BLOCK_OPS,
    RD_BLOCK_CONTENT,
    RD_CONTENTS,
    RD_STATE,
    RD_BLOCK_ENTRIES,
    RD_OP_SEEN,
    RD_LEDGER_CHECKS,
    RD_FUNDERS,
    RD_AUDITS,
    RD_STALE,
    RD_REFUNDS,
    RD_ROLES,
    RD_GRANTS,
    RD_GRANT_DAYS,
    RD_GRANT_EVENTS,
    RD_GRANT_SHARES,
    RD_JOBS,
    RD_JOBS_OF,
    RD_RECORDS,
    RD_RECONS,
    RD_UNOWNED,
    RD_FIGURES,
    RD_QUOTES,
    READ_STMT_COUNT
};
/* Prepared on every connection; the reading ones are at BANK_STMT_COUNT + enum read_stmt. */
enum { BANK_STMT_ALL = BANK_STMT_COUNT + READ_STMT_COUNT };
extern const struct pgstmt bank_stmt[BANK_STMT_ALL];

/* What a lone request writes as one statement. */
enum bank_with { WITH_HOLD, WITH_LOCAL_HOLD, WITH_CHARGE, BANK_WITH_COUNT };
extern const struct pgwith bank_with[BANK_WITH_COUNT];

/* How PostgreSQL refuses the text of ST_NEW_OPS, ST_NEW_JOBS and ST_NEW_SIGNED as a number; and a key
 * that is there. */
#define PG_NO_NUMBER "22P02"
#define PG_UNIQUE "23505"

#endif
