/* model: the bank's rules written a second time, as plainly as possible, to be compared with the
 * real one. Arrays and loops only; shares no code with bank/core. Answers are text as bankrig
 * writes it, errors "error CODE". Moments: everything happens "now"; a charge's use is after every
 * allocation that has begun has begun. */
#ifndef NUI_TESTS_PROP_BANK_MODEL_H
#define NUI_TESTS_PROP_BANK_MODEL_H

#include <stdbool.h>
#include <stdint.h>

enum {
    M_ACCOUNTS = 8,
    M_USERS = 3,
    M_SITES = 3,
    M_ALLOCS = 4096,
    M_HOLDS = 65536,
    M_LEGS = 64,
    M_FALLBACKS = 3,
    M_CHARGES = 16384
};

struct model_alloc {
    int account;
    long long id, begin, end; /* begin 0: valid now; else later */
    long long posted, held, granted, settled, limit;
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
    bool member[M_USERS][M_ACCOUNTS];
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

void model_deposit (struct model *m, int account, long long amount, long long begin, long long end,
                    char *out);
void model_hold (struct model *m, int site, long long job, long long incarnation, int account,
                 int user, long long procs, long long seconds, char *out);
/* hold: its number, or 0. */
void model_charge (struct model *m, int site, long long job, long long incarnation, long long hold,
                   int account, int user, long long procs, long long seconds, bool final,
                   char *out);
void model_withdraw (struct model *m, int account, long long amount, char *out);
void model_transfer (struct model *m, int from, int to, long long amount, char *out);
/* charge: its number from 1; amount 0: all that is left. */
void model_refund (struct model *m, long long charge, long long amount, char *out);
void model_limit (struct model *m, int alloc, long long limit, char *out);
/* To so many seconds in all. site -1: an operator asks. */
void model_extend (struct model *m, int site, long long hold, long long seconds, char *out);
void model_release (struct model *m, int site, long long hold, char *out);

#endif
