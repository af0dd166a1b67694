/* bankworld: one PostgreSQL for all tests of a program, and for each a fresh database with the real
 * nui-bank before it, founded (bankd_found). cmocka's set-up and tear-down. */
#ifndef NUI_TESTS_BANK_BANKWORLD_H
#define NUI_TESTS_BANK_BANKWORLD_H

#include "tests/unit/bank/bankd.h"
#include "tests/unit/bank/pg_fixture.h"

struct world {
    struct pg_fixture *pg;
    struct bankd d;
    PGconn *sql;              /* as the owner of the schema */
    struct bankd_heard heard; /* where the test asked for it: bankd_hear */
    int jobs;                 /* that the test has named so far */
};

int world_up (void **state);
int world_down (void **state);
/* The database is called after the program's tests; config: more lines for nui-bank. */
int world_fresh (void **state, const char *name, const char *config);
/* Fails the test where nui-bank does not end well. */
int world_closed (void **state);

#endif
