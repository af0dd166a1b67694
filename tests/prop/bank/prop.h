/* prop: a random run. prop_draw.c draws its operations, prop_bank.c sends and compares them. */
#ifndef NUI_TESTS_PROP_BANK_PROP_H
#define NUI_TESTS_PROP_BANK_PROP_H

#include <time.h>

#include "bank/store/reader.h"
#include "tests/prop/bank/model.h"
#include "tests/unit/bank/bankrig.h"
#include "tests/unit/bank/pg_fixture.h"

enum { PAST_MAX = 4096, WITHOUT_MAX = 4096, SCOPES_OF_ONE = 16 };

/* Tick 0 is 11:52 of some day; cards may have another price from 12:00 to 12:20. */
#define EPOCH (INT64_C (1893498720) * US_PER_S)
#define BAND "12:00-12:20"
enum { BAND_FROM = 8 * 60 * 4, BAND_TO = 28 * 60 * 4 }; /* quarters of a second from tick 0 */

/* What a job of a request names. */
struct named {
    struct ledger_nodes nodes[M_NAMES];
    struct ledger_gres gres[M_NAMES];
    char grid_job[16];
};

struct sent {
    struct ledger_request req;
    char job[32], hold[32];
    char jobs[M_GROUP][32];
    struct ledger_hold_ask group[M_GROUP];
    struct ledger_signature signature;
    struct ledger_quote quote;
    struct ledger_quote_item item[M_SITES];
    struct ledger_fallback_ask fallback[M_FALLBACKS];
    struct ledger_finding finding[M_FINDINGS];
    struct named named[M_GROUP];
    struct ledger_scope scope[SCOPES_OF_ONE];
    struct ledger_factor factor[24];
    char *kind[M_KINDS];
    char want[2048];
    struct answer answer;
    bool kept;      /* may be sent again later */
    bool forgotten; /* the bank does not remember its answer */
};

struct run {
    struct pg_fixture *pg;
    struct bankrig rig;
    struct reader *reader;
    bool reader_up;
    struct check *check;
    struct model *model;
    uint64_t rng, seed;
    struct {
        long long first, last;
    } without[WITHOUT_MAX];
    int without_count, without_at;
    struct sent *past[PAST_MAX];
    int past_count;
    int as;                    /* the user who asks for what is drawn; -1: an office */
    int agency;                /* the agency that does; -1: a user, or the bank's own office */
    long long wall;            /* what the bank's machine shows, in ticks */
    long long shift, believed; /* its clock's error, and the one that was vouched for */
    long long believed_at;     /* when */
    long long skew[M_SITES];   /* how far the sites' clocks are ahead */
    long long steps, vouched;  /* of the clock, and those that an operator said were right */
    long long ops, whole; /* of this ledger: operations, and how often everything was looked at */
    long long all, time, holds, charges, batches, kills, replays, reads;
    /* Charges, allocations, quotes and rows of the batches that were answered. */
    int charged, granted, quoted, opened;
    long long charge_op[M_CHARGES]; /* of each charge, by its number */
};

extern const char *const prop_users[M_USERS], *const prop_sites[M_SITES],
                                                  *const prop_projects[M_PROJECTS],
                                                      *const prop_funders[M_FUNDERS],
                                                          *const prop_qos[M_NAMES],
                                                              *const prop_classes[M_NAMES],
                                                                  *const prop_machines[M_NAMES],
                                                                      *const prop_nodes[M_NAMES],
                                                                          *const prop_gres[M_NAMES];

/* ---- prop_bank.c ---- */

/* s: the request that it is about, or NULL. */
void prop_die (struct run *r, const char *what, const struct sent *s) __attribute__ ((noreturn));

/* ---- prop_draw.c ---- */

uint64_t draw (struct run *r, uint64_t below);
bool one_in (struct run *r, uint64_t n);
int draw_account (struct run *r);
int draw_user (struct run *r);
struct model_ask draw_ask (struct run *r);
struct ledger_scopes draw_scopes (struct run *r, bool users_only, struct model_scope *scope,
                                  struct sent *s);
int draw_alloc (struct run *r, int account); /* of the account, with luck; -1: none is named */
int64_t alloc_id (const struct run *r, int alloc);
time_us edge (long long tick); /* what begins or ends then: see model.h */
struct ledger_ask ledger_ask_of (const struct model_ask *ask, struct named *named, const char *job);
/* Makes the request that of a user or an agency, where it is to be; true when that may not. own: it is about the agency's
 * own. */
bool refused (struct run *r, struct sent *s, int project, bool manager_may, bool own);
/* One of its names. */
const char *draw_named (struct run *r, int account);
/* The next operation, with the answer that the model gives: any, of jobs, holds alone, or what offices and leads do. */
enum prop_kind { PROP_ANY, PROP_DAILY, PROP_HOLDS, PROP_OFFICE };
struct sent *prop_make (struct run *r, enum prop_kind kind);

/* ---- prop_office.c ---- */

void make_office (struct run *r, struct sent *s);
void make_quote (struct run *r, struct sent *s);
void make_cancel (struct run *r, struct sent *s);
void make_recon (struct run *r, struct sent *s);

/* ---- prop_read.c ---- */

/* One of what can be read, as somebody, compared with the model. */
void prop_read (struct run *r);

/* ---- prop_check.c ---- */

struct check *check_open (const char *conninfo);
void check_close (struct check *c);
PGconn *check_sql (struct check *c); /* for other questions */
/* Compares balances with the model, and what must hold of the journal: of all that has come since it was
 * asked last, or, whole, from the beginning. */
void check_step (struct run *r, bool whole);

#endif
