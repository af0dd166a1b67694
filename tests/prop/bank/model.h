/* model: the bank's rules written a second time, as plainly as possible, to be compared with the
 * real one. Arrays and loops only; shares no code with bank/core. Answers are text as bankrig
 * writes it, errors "error CODE".
 *
 * Time is counted in ticks (seconds). What is asked for begins and ends half a second before its
 * tick, use a quarter of a second after it, so that no two moments that are compared are equal. */
#ifndef NUI_TESTS_PROP_BANK_MODEL_H
#define NUI_TESTS_PROP_BANK_MODEL_H

#include <stdbool.h>
#include <stdint.h>

enum {
    M_ACCOUNTS = 13, /* the last three are made on the way */
    M_PROJECTS = 4,  /* p1 is below p0; p2 and p3 are made on the way */
    M_USERS = 4,     /* u3 is made on the way */
    M_FUNDERS = 2,   /* the second is made on the way */
    M_SITES = 3,
    M_NAMES = 2, /* of QoS, of machines, of node types */
    M_CARDS = 2048,
    M_ALLOCS = 8192,
    M_HOLDS = 65536,
    M_LEGS = 256,
    M_FALLBACKS = 3,
    M_CHARGES = 16384,
    M_PINS = 4096,
    M_ROWS = 8192,
    M_GROUP = 3,
    M_FINDINGS = 4,
    M_KINDS = 3, /* of findings */
    M_AHEAD = 8, /* outbox numbers beyond the last one */
};
#define M_NEVER INT64_MAX

/* For whom or what: of each kind, who is named, who is excluded; "ANY", and "MEMBERS" of users. */
enum { M_USER, M_SITE, M_MACHINE, M_QOS, M_SCOPES };
struct model_scope {
    unsigned named[M_SCOPES], excluded[M_SCOPES];
    bool any[M_SCOPES], members;
};

/* Of a card: thousandths for each name, then for any other; -1: it says nothing. */
struct model_factor {
    int of[M_NAMES + 1];
};

struct model_card {
    long long from, base; /* ppm */
    enum { M_WALL, M_CPU, M_PE } measure;
    bool successful_only;
    struct model_factor qos, machine, nodes;
    int group, band; /* thousandths; -1: none; the band is [band_from, band_to) of every day */
};

struct model_ask {
    int site, qos, machine; /* -1: not said */
    long long job, incarnation, procs, seconds, quote; /* quote 0: none */
    long long start; /* of a hold: at least now; of a charge: whenever */
    long long nodes[M_NAMES], pe, cpu;
    bool claimed, coreserved, successful, site_failed;
};

/* What a site's failures are given back, in ticks; 0: no bound. */
struct model_policy {
    bool on;
    long long cap, minimum, window;
};

/* A quote that keeps its rates. */
struct model_pin {
    int user;
    bool reusable, used, cancelled;
    long long job, expires, cancelled_at;
    int card[M_SITES]; /* version; 0: not of this site */
};

/* A row of reconciliation. */
struct model_row {
    int site, kind;
    long long job, amount, since;
    enum { M_OPEN, M_CLOSED, M_GONE } state;
};

struct model_alloc {
    int account;
    long long id, begin, end;
    bool at_once; /* it begins at the tick itself: when it was asked for */
    long long posted, held, granted, settled, limit;
    long long grant; /* 0: none */
    struct model_scope scope;
};

struct model_charge {
    int site, legs, usage;
    long long amount;
    struct {
        int alloc; /* -1: suspense */
        long long amount, refunded;
        bool overrun;
    } leg[M_LEGS];
};

struct model_hold {
    int site, account, asked, user, qos, machine, card;
    int qos_milli, group_milli; /* pinned */
    long long job, incarnation, procs, seconds, amount, start, pe;
    long long nodes[M_NAMES];
    bool open;
    int legs;
    int alloc[M_LEGS];
    long long kept[M_LEGS]; /* of each leg, still held */
};

struct model_usage {
    int site, account, user; /* account -1: suspense; user -1: the site itself */
    long long job, incarnation, total, due; /* due: to be given back of all of it */
    bool final;
};

struct model {
    long long now;
    long long band_from, band_to; /* of the one day, in quarters of a second from tick 0 */
    struct model_card card[M_SITES][M_CARDS];
    int cards[M_SITES];
    bool claims[M_SITES];
    struct model_policy policy[M_SITES];
    bool account_is[M_ACCOUNTS], project_is[M_PROJECTS], user_is[M_USERS], funder_is[M_FUNDERS];
    int parent[M_PROJECTS]; /* -1: none */
    int project[M_ACCOUNTS];
    bool closed[M_ACCOUNTS];
    struct model_scope users[M_ACCOUNTS];
    long long account_id[M_ACCOUNTS];
    bool member[M_USERS][M_PROJECTS];
    long long member_id[M_USERS][M_PROJECTS], next_member, grants;
    struct model_pin pin[M_PINS];
    int pins;
    struct model_row row[M_ROWS];
    int rows;
    struct {
        int account, site, qos; /* site -1: sites without a list of their own; qos -1: the job's */
    } fallback[M_ACCOUNTS][M_FALLBACKS];
    int fallbacks[M_ACCOUNTS];
    struct model_alloc alloc[M_ALLOCS];
    int allocs;
    long long next_alloc, next_account, next_project, next_user, next_funder;
    bool debt_is[M_PROJECTS];
    long long debt[M_PROJECTS]; /* what is posted there: never above zero */
    struct model_hold hold[M_HOLDS];
    int holds;
    struct model_usage usage[M_HOLDS];
    int usages;
    struct model_charge charge[M_CHARGES];
    int charges;
    long long suspense, expired, earned[M_SITES];
    unsigned long long acked[M_SITES];
    bool ahead[M_SITES][M_AHEAD]; /* acked + 1 + i has arrived */
};

const char *model_account_name (int account);

/* ---- model.c: holds, charges, and what moves credits ---- */

/* funder: -1 none, else which; grant: an earlier one, or 0. begin, end: ticks, 0 now, M_NEVER. */
void model_deposit (struct model *m, int account, long long amount, long long begin, long long end,
                    int funder, long long grant, const struct model_scope *scope, char *out);
/* One, or several of which all are held or none. */
void model_holds (struct model *m, const struct model_ask *ask, int count, int account, int user,
                  char *out);
/* hold: its number, or 0. Its seconds are what was used, since its start. */
void model_charge (struct model *m, const struct model_ask *ask, long long hold, int account,
                   int user, bool final, unsigned long long sequence, char *out);
/* alloc: its index; -1: those that are valid now. */
void model_withdraw (struct model *m, int account, int alloc, long long amount, char *out);
void model_transfer (struct model *m, int from, int to, int alloc, long long amount, char *out);
/* begin, end: of what arrives; 0: as what it comes from. */
void model_split (struct model *m, int from, int to, int alloc, long long amount, long long begin,
                  long long end, char *out);
/* charge: its number from 1; amount 0: all that is left. */
void model_refund (struct model *m, long long charge, long long amount, char *out);
/* What the policy for its site says. */
void model_refund_due (struct model *m, long long charge, char *out);
void model_limit (struct model *m, int alloc, long long limit, char *out);
/* To so many seconds in all. site -1: an operator asks. */
void model_extend (struct model *m, int site, long long hold, long long seconds, char *out);
/* site -1: the bank itself asks. */
void model_release (struct model *m, int site, long long hold, unsigned long long sequence,
                    char *out);
void model_expire (struct model *m, int alloc, char *out);

/* ---- model_office.c ---- */

/* alloc: its index; cap 0: all. */
void model_carry (struct model *m, int alloc, long long cap, long long end, char *out);
void model_close (struct model *m, int account, char *out);
void model_project (struct model *m, int project, int parent, char *out);
void model_user (struct model *m, int user, char *out);
void model_funder (struct model *m, int funder, char *out);
void model_account (struct model *m, int account, int project, const struct model_scope *users,
                    char *out);
void model_account_users (struct model *m, int account, const struct model_scope *users, char *out);
void model_member (struct model *m, int user, int project, bool remove, char *out);
void model_fallbacks (struct model *m, int account, const int *fallback, const int *site,
                      const int *qos, int count, char *out);
void model_rate (struct model *m, int site, const struct model_card *card, char *out);
void model_site (struct model *m, int site, bool claims, const struct model_policy *policy,
                 char *out);
/* Of some sites; keep: for so many ticks. */
void model_quote (struct model *m, const struct model_ask *ask, int count, int account, int user,
                  bool reusable, long long keep, char *out);
void model_quote_cancel (struct model *m, long long quote, char *out);
/* kinds: a bit for each that was looked for; rows since [from, to). */
void model_recon (struct model *m, int site, const struct model_row *found, int count,
                  unsigned kinds, long long from, long long to, char *out);
/* op 0: explained; else one that there is, or not. */
void model_recon_set (struct model *m, long long row, bool close, bool op_known, char *out);

#endif
