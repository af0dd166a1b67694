/* model: the bank's rules written a second time, as plainly as possible, to be compared with the
 * real one. Arrays and loops only; shares no code with bank/core. Answers are text as bankrig
 * writes it, errors "error CODE". Moments: everything happens "now"; a charge's use is after every
 * allocation that has begun has begun. */
#ifndef NUI_TESTS_PROP_BANK_MODEL_H
#define NUI_TESTS_PROP_BANK_MODEL_H

#include <stdbool.h>
#include <stdint.h>

enum {
    M_ACCOUNTS = 10,
    M_PROJECTS = 2, /* p1 is below p0 */
    M_USERS = 3,
    M_SITES = 3,
    M_ALLOCS = 4096,
    M_HOLDS = 65536,
    M_LEGS = 64,
    M_FALLBACKS = 3,
    M_CHARGES = 16384,
    M_PINS = 4096,
    M_ROWS = 8192,
    M_GROUP = 3,
    M_FINDINGS = 4,
    M_KINDS = 3, /* of findings */
};

struct model_ask {
    int site;
    long long job, incarnation, procs, seconds, quote; /* quote 0: none */
    bool claimed;
};

/* A quote that keeps its rates. */
struct model_pin {
    int user;
    bool reusable, ended, used;
    long long job, rate[M_SITES]; /* -1: not of this site */
};

/* A row of reconciliation. */
struct model_row {
    int site, kind;
    long long job, amount, since;
    enum { M_OPEN, M_CLOSED, M_GONE } state;
};

struct model_alloc {
    int account;
    long long id, begin, end; /* begin 0: valid now; else later */
    long long posted, held, granted, settled, limit;
    long long grant; /* 0: none */
};

struct model_charge {
    int site, legs;
    struct {
        int alloc; /* -1: suspense */
        long long amount, refunded;
        bool overrun;
    } leg[M_LEGS];
};

struct model_hold {
    int site, account, asked, user;
    long long job, incarnation, procs, seconds, amount, rate;
    bool open;
    int legs;
    int alloc[M_LEGS];
    long long kept[M_LEGS]; /* of each leg, still held */
};

struct model_usage {
    int site, account; /* account -1: suspense */
    long long job, incarnation, total;
    bool final;
};

struct model {
    long long rate[M_SITES]; /* ppm; -1: none */
    int card[M_SITES];       /* newest version */
    bool claims[M_SITES];
    int project[M_ACCOUNTS];
    bool closed[M_ACCOUNTS];
    long long account_id[M_ACCOUNTS];
    bool member[M_USERS][M_PROJECTS];
    long long member_id[M_USERS][M_PROJECTS], next_member, grants;
    struct model_pin pin[M_PINS];
    int pins;
    struct model_row row[M_ROWS];
    int rows;
    int fallback[M_ACCOUNTS][M_FALLBACKS], fallbacks[M_ACCOUNTS];
    struct model_alloc alloc[M_ALLOCS];
    int allocs;
    long long next_alloc;
    struct model_hold hold[M_HOLDS];
    int holds;
    struct model_usage usage[M_HOLDS];
    int usages;
    struct model_charge charge[M_CHARGES];
    int charges;
    long long suspense, earned[M_SITES];
    unsigned long long acked[M_SITES];
};

const char *model_account_name (int account);

/* funder: 0 none, 1 one that there is, 2 one that there is not; grant: an earlier one, or 0. */
void model_deposit (struct model *m, int account, long long amount, long long begin, long long end,
                    int funder, long long grant, char *out);
/* One, or several of which all are held or none. */
void model_holds (struct model *m, const struct model_ask *ask, int count, int account, int user,
                  char *out);
/* hold: its number, or 0. Its seconds are what was used. */
void model_charge (struct model *m, const struct model_ask *ask, long long hold, int account,
                   int user, bool final, char *out);
void model_withdraw (struct model *m, int account, long long amount, char *out);
void model_transfer (struct model *m, int from, int to, long long amount, char *out);
/* charge: its number from 1; amount 0: all that is left. */
void model_refund (struct model *m, long long charge, long long amount, char *out);
void model_limit (struct model *m, int alloc, long long limit, char *out);
/* To so many seconds in all. site -1: an operator asks. */
void model_extend (struct model *m, int site, long long hold, long long seconds, char *out);
void model_release (struct model *m, int site, long long hold, char *out);

/* ---- model_office.c ---- */

void model_split (struct model *m, int from, int to, long long amount, char *out);
/* alloc: its index; cap 0: all. */
void model_carry (struct model *m, int alloc, long long cap, long long end, char *out);
void model_close (struct model *m, int account, char *out);
void model_member (struct model *m, int user, int project, bool remove, char *out);
void model_fallbacks (struct model *m, int account, const int *fallback, int count, char *out);
void model_rate (struct model *m, int site, long long ppm, char *out);
void model_claims (struct model *m, int site, bool claims, char *out);
/* Of some sites, for the same processors and seconds at each; ended: at once. */
void model_quote (struct model *m, const struct model_ask *ask, int count, int account, int user,
                  bool reusable, bool ended, char *out);
/* kinds: a bit for each that was looked for; rows since [from, to). */
void model_recon (struct model *m, int site, const struct model_row *found, int count,
                  unsigned kinds, long long from, long long to, char *out);
/* op 0: explained; else one that there is, or not. */
void model_recon_set (struct model *m, long long row, bool close, bool op_known, char *out);

#endif
