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
#include <stdio.h>

enum {
    M_ACCOUNTS = 13, /* the last three are made on the way */
    M_RENAMES = 24,  /* names that accounts may get */
    M_PROJECTS = 4,  /* p1 is below p0; p2 and p3 are made on the way */
    M_USERS = 4,     /* u3 is made on the way */
    M_FUNDERS = 2,   /* agencies; the second is a funder on the way only */
    M_SITES = 3,
    M_NAMES = 2, /* of QoS, of classes, of machines, of node types, of generic resources */
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
    M_KINDS = 3,      /* of findings */
    M_AHEAD = 8,      /* outbox numbers beyond the last one */
    M_METAS = 3,      /* the first one is "": not said */
    M_ONE = 100,      /* a multiplier of 1 */
    M_LINES = 131072, /* of all statements */
    M_REFUNDS = 16384,
};
#define M_NEVER INT64_MAX

/* For whom or what: of each kind, who is named, who is excluded; "ANY", and "MEMBERS" of users. */
enum { M_USER, M_SITE, M_MACHINE, M_QOS, M_SCOPES };
enum { M_FREEZABLES = 4 }; /* users, accounts, projects, grants */
struct model_scope {
    unsigned named[M_SCOPES], excluded[M_SCOPES];
    bool any[M_SCOPES], members;
};

/* Of a card: hundredths for each name (of generic resources ppm), then for any other; -1: it says
 * nothing. */
struct model_factor {
    int of[M_NAMES + 1];
};

struct model_card {
    long long from, base; /* ppm */
    enum { M_WALL, M_CPU, M_PE } measure;
    bool successful_only;
    struct model_factor qos, class, machine, nodes, gres;
    int group, band; /* hundredths; -1: none; the band is [band_from, band_to) of every day */
    int memory;      /* ppm per 1024 MB; -1: none */
};

/* What was signed. Who signed the same uuid twice with another content did wrong. */
struct model_signature {
    bool is;
    int uuid, content, grid_job, meta, part;
    bool by_group;          /* of metaschedulers */
    bool parts;             /* it has several */
    int live_max, runs_max; /* of the part: places at a time, runs that may end well */
    long long expires;      /* 0: never */
    long long cost_max;
    /* Of the part: processors, those that it accepts of whole nodes (0: not said), nodes (0: as many as its tasks
     * need), processors of a task, seconds, and how often its site may start it again. */
    long long procs, procs_max, nodes, task, seconds;
    int restarts;
    long long created; /* of a charge without a hold … */
    bool elsewhere;    /* … at a site, or of a part, that was not signed for */
};

struct model_ask {
    int site, qos, class, machine;                     /* -1: not said */
    long long job, incarnation, procs, seconds, quote; /* quote 0: none */
    long long start; /* of a hold: at least now; of a charge: whenever */
    long long nodes[M_NAMES], gres[M_NAMES], memory, pe, cpu;
    struct model_signature signature;
    bool claimed, coreserved, successful, site_failed;
    bool named;          /* of a charge: it names its hold */
    long long tolerance; /* of a charge: that clocks may differ by */
};

/* What an operator has registered of a site; 0: nothing. */
struct model_given {
    long long procs, memory, overrun;
};

/* What a site's failures are given back, in ticks; 0: no bound. */
struct model_policy {
    bool on;
    long long cap, minimum, window;
};

/* A quote that keeps its rates. */
struct model_pin {
    int user, account; /* -1: there was none of that name */
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
    int from;        /* the allocation that it was split off: its index and 1; 0: none */
    int giver;       /* the agency that gave it; -1: the bank, or a grant of none */
    struct model_scope scope;
    long long noted_posted, noted_held; /* in the statements */
};

struct model_charge {
    int site, legs, usage;
    long long amount, at;
    struct {
        int alloc; /* -1: suspense */
        long long amount, refunded;
        bool overrun;
    } leg[M_LEGS];
};

struct model_hold {
    int site, account, asked, user, qos, machine, card;
    int qos_rate, class_rate, group_rate; /* pinned, as is what memory and resources cost */
    long long extra;
    long long job, incarnation, procs, seconds, amount, start, pe;
    long long nodes[M_NAMES];
    struct model_signature signature;
    bool open;
    int legs;
    int alloc[M_LEGS];
    long long kept[M_LEGS]; /* of each leg, still held */
};

struct model_usage {
    int site, account, user;                /* account -1: suspense; user -1: the site itself */
    int qos, machine;                       /* -1: not said */
    long long job, incarnation, total, due; /* due: to be given back of all of it */
    long long disputed;                     /* of total */
    struct model_signature signature;       /* of a signed job that ran without a hold */
    long long procs, start, end;
    bool final, well;
};

/* A line of an account's statement. account: M_ACCOUNTS and a project: what that owes. */
struct model_line {
    int account;
    const char *kind;
    long long at, posted, held;
};

struct model_refund {
    int charge, alloc; /* alloc -1: suspense */
    long long at, amount;
};

struct model {
    long long now;
    long long band_from, band_to; /* of the one day, in quarters of a second from tick 0 */
    struct model_card card[M_SITES][M_CARDS];
    int cards[M_SITES];
    bool claims[M_SITES];
    struct model_policy policy[M_SITES];
    struct model_given given[M_SITES];
    bool account_is[M_ACCOUNTS], project_is[M_PROJECTS], user_is[M_USERS], funder_is[M_FUNDERS];
    int parent[M_PROJECTS]; /* -1: none */
    int maker[M_PROJECTS];  /* the agency that made it; -1: none */
    int project[M_ACCOUNTS];
    bool closed[M_ACCOUNTS];
    int renamed[M_ACCOUNTS]; /* its name now: of M_RENAMES and 1; 0: the first one */
    int name_of[M_RENAMES];  /* the account that has, or had, the name, and 1; 0: none */
    bool frozen_user[M_USERS], frozen_account[M_ACCOUNTS], frozen_project[M_PROJECTS],
        frozen_grant[M_ALLOCS];
    int froze[M_FREEZABLES][M_ALLOCS]; /* who: see model_actor */
    long long returned;                /* given back by accounts that were closed before */
    struct model_scope users[M_ACCOUNTS];
    long long account_id[M_ACCOUNTS], project_id[M_PROJECTS];
    bool member[M_USERS][M_PROJECTS], lead[M_USERS][M_PROJECTS];
    bool manager[M_USERS], auditor[M_USERS];
    long long member_id[M_USERS][M_PROJECTS], next_member, grants;
    int grant_funder[M_ALLOCS], grant_alloc[M_ALLOCS]; /* alloc: that it was given as */
    bool revoked[M_ALLOCS];
    bool referred[M_FUNDERS][M_SITES]; /* the funder has given a grant of that reference */
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
    long long debt_noted[M_PROJECTS], debt_alloc[M_PROJECTS];
    struct model_hold hold[M_HOLDS];
    int holds;
    struct model_usage usage[M_HOLDS];
    int usages;
    struct model_charge charge[M_CHARGES];
    int charges;
    struct model_refund refund[M_REFUNDS];
    int refunds;
    struct model_line line[M_LINES];
    int lines;
    long long suspense, expired, earned[M_SITES];
    unsigned long long acked[M_SITES];
    bool ahead[M_SITES][M_AHEAD]; /* acked + 1 + i has arrived */
};

/* What it is called now. */
const char *model_account_name (const struct model *m, int account);
/* Any of the names that mean it; luck: which of them. */
const char *model_any_name (const struct model *m, int account, unsigned luck);
/* One that accounts may get. */
const char *model_new_name (int name);
const char *model_first_name (int account);
/* Who acts: a user, an agency, or (both -1) the bank's own office. */
struct model_actor {
    int user, agency;
};

/* ---- model_hold.c, model_charge.c, model_move.c ---- */

/* funder: -1 none, else which; reference: of a grant, that may not have been given; -1: whatever. grant: an earlier one, or 0. begin, end: ticks, 0 now, M_NEVER. */
void model_deposit (struct model *m, int account, long long amount, long long begin, long long end,
                    int funder, int reference, long long grant, int agency,
                    const struct model_scope *scope, char *out);
/* One, or several of which all are held or none. */
void model_holds (struct model *m, const struct model_ask *ask, int count, int account, int user,
                  char *out);
/* hold: its number, or 0. Its seconds are what was used, since its start. */
void model_charge (struct model *m, const struct model_ask *ask, long long hold, int account,
                   int user, bool final, unsigned long long sequence, char *out);
/* alloc: its index; -1: those that are valid now. agency: takes what it gave; -1: anything. */
void model_withdraw (struct model *m, int account, int alloc, long long amount, int agency,
                     char *out);
void model_transfer (struct model *m, int from, int to, int alloc, long long amount, int agency,
                     char *out);
/* begin, end: of what arrives; 0: as what it comes from. */
void model_split (struct model *m, int from, int to, int alloc, long long amount, long long begin,
                  long long end, int agency, char *out);
/* amount 0: all that is free. */
void model_split_back (struct model *m, int alloc, long long amount, int agency, char *out);
void model_extend_grant (struct model *m, long long grant, long long end, char *out);
void model_amend (struct model *m, long long grant, long long amount, char *out);
void model_revoke (struct model *m, long long grant, char *out);
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
void model_begin (struct model *m, int alloc, char *out);

/* ---- model_office.c ---- */

/* alloc: its index; cap 0: all. */
void model_carry (struct model *m, int alloc, long long cap, long long end, char *out);
void model_close (struct model *m, int account, char *out);
void model_reopen (struct model *m, int account, char *out);
/* what: 0 a user, 1 an account, 2 a project, 3 a grant. */
void model_freeze (struct model *m, int what, int which, struct model_actor by, bool undo,
                   char *out);
/* agency: that makes it, or -1. */
void model_project (struct model *m, int project, int parent, int agency, char *out);
/* parent -1: to the top. */
void model_move (struct model *m, int project, int parent, char *out);
/* name: of M_RENAMES; -1: its first one; below that another account's first one, -2 - account. */
void model_rename (struct model *m, int account, int name, char *out);
void model_user (struct model *m, int user, char *out);
void model_funder (struct model *m, int funder, char *out);
void model_account (struct model *m, int account, int project, const struct model_scope *users,
                    char *out);
void model_account_users (struct model *m, int account, const struct model_scope *users, char *out);
void model_member (struct model *m, int user, int project, bool lead, bool remove, int by,
                   char *out);
/* Allocation manager, or else auditor. */
void model_role (struct model *m, int user, bool manager, bool remove, char *out);
void model_fallbacks (struct model *m, int account, const int *fallback, const int *site,
                      const int *qos, int count, char *out);
void model_rate (struct model *m, int site, const struct model_card *card, char *out);
void model_site (struct model *m, int site, bool claims, const struct model_policy *policy,
                 const struct model_given *given, char *out);
/* Of some sites; keep: for so many ticks. */
void model_quote (struct model *m, const struct model_ask *ask, int count, int account, int user,
                  bool reusable, long long keep, char *out);
void model_quote_cancel (struct model *m, long long quote, char *out);
/* kinds: a bit for each that was looked for; rows since [from, to). */
void model_recon (struct model *m, int site, const struct model_row *found, int count,
                  unsigned kinds, long long from, long long to, char *out);
/* op 0: explained; else one that there is, or not. */
void model_recon_set (struct model *m, long long row, bool close, bool op_known, char *out);

/* ---- model_read.c ---- */

/* Whether a user may change something of a project (-1: of none), as its lead or one above it, or, if
 * these may, as an allocation manager. */
bool model_may (const struct model *m, int user, int project, bool manager_may);
/* What is an agency's own; what is not there is refused as that, so it may. Numbers may be of nothing (-1, 0). */
bool model_made (const struct model *m, int agency, int project);
bool model_made_of (const struct model *m, int agency, int account);
bool model_gave (const struct model *m, int agency, int alloc);
bool model_gave_grant (const struct model *m, int agency, long long grant);
bool model_paid (const struct model *m, int agency, long long charge);
bool model_pays (const struct model *m, int agency, int account);
bool model_pays_all (const struct model *m, int agency, int account);
/* What somebody froze only they thaw, but for the bank's own. */
bool model_thaws (const struct model *m, struct model_actor by, int what, int which);
/* Notes in the statements what was done to any account since it was called last. */
void model_note (struct model *m, const char *kind);
/* Each writes what is read as text. user -1: one who sees everything. */
void model_balance (const struct model *m, int user, int account, FILE *out);
void model_statement (const struct model *m, int user, int account, long long from, long long to,
                      FILE *out);
enum {
    M_BY_USER = 1,
    M_BY_PROJECT = 2,
    M_BY_SITE = 4,
    M_BY_ACCOUNT = 8,
    M_BY_FUNDER = 16,
    M_BY_GRANT = 32,
    M_BY_QOS = 64,
    M_BY_MACHINE = 128
};
/* account -1: all. */
void model_usage (const struct model *m, int user, int account, long long from, long long to,
                  unsigned by, FILE *out);
/* Open holds that expire at a moment or before. */
void model_open_holds (const struct model *m, int user, int account, int site, long long expired,
                       FILE *out);
/* Allocations that have ended with something left to do. */
void model_grant (const struct model *m, long long grant, FILE *out);
void model_ends (const struct model *m, FILE *out);

#endif
