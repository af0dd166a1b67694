/* prop: a random run. prop_draw.c draws its operations, prop_bank.c sends and compares them. */
#ifndef NUI_TESTS_PROP_BANK_PROP_H
#define NUI_TESTS_PROP_BANK_PROP_H

#include <time.h>

#include "tests/prop/bank/model.h"
#include "tests/unit/bank/bankrig.h"
#include "tests/unit/bank/pg_fixture.h"

enum { PAST_MAX = 4096, WITHOUT_MAX = 4096, SCOPES_OF_ONE = 16 };

/* Tick 0 is 11:52 of some day; cards may have another price from 12:00 to 12:20. */
#define EPOCH (INT64_C (1893498720) * US_PER_S)
#define BAND "12:00-12:20"
enum { BAND_FROM = 8 * 60 * 4, BAND_TO = 28 * 60 * 4 }; /* quarters of a second from tick 0 */

struct sent {
    struct ledger_request req;
    char job[32], hold[32];
    char jobs[M_GROUP][32];
    struct ledger_hold_ask group[M_GROUP];
    struct ledger_quote quote;
    struct ledger_quote_item item[M_SITES];
    struct ledger_fallback_ask fallback[M_FALLBACKS];
    struct ledger_finding finding[M_FINDINGS];
    struct ledger_nodes nodes[M_GROUP][M_NAMES];
    struct ledger_scope scope[SCOPES_OF_ONE];
    struct ledger_factor factor[16];
    char *kind[M_KINDS];
    char want[2048];
    struct answer answer;
};

struct run {
    struct pg_fixture *pg;
    const char *conninfo;
    struct bankrig rig;
    PGconn *sql;
    struct model *model;
    uint64_t rng, seed;
    struct {
        long long first, last;
    } without[WITHOUT_MAX];
    int without_count, without_at;
    struct sent *past[PAST_MAX];
    int past_count;
    long long ops, kills, replays;
    /* Charges, allocations, quotes and rows of the batches that were answered. */
    int charged, granted, quoted, opened;
};

extern const char *const prop_users[M_USERS], *const prop_sites[M_SITES],
    *const prop_projects[M_PROJECTS];

uint64_t draw (struct run *r, uint64_t below);
/* The next operation, with the answer that the model gives. */
struct sent *prop_make (struct run *r);

#endif
