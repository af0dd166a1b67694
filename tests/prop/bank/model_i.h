/* Shared by the model's files. */
#ifndef NUI_TESTS_PROP_BANK_MODEL_I_H
#define NUI_TESTS_PROP_BANK_MODEL_I_H

#include "tests/prop/bank/model.h"

/* ---- model_price.c ---- */

/* What a card says of a job, and the job. */
struct model_terms {
    const struct model_card *card;  /* NULL: none, at 1 */
    int qos, class, group, machine; /* hundredths */
    long long weight, procs;        /* of nodes by type: hundredths * processors; procs 0: none */
    long long extra; /* per second, in 1024ths of a ppm: memory and generic resources */
};
/* Names of QoS and machine, node types as in ask; false when the card has others of a kind only. */
bool model_terms (const struct model_card *card, const struct model_ask *ask, bool hold,
                  struct model_terms *out);
struct model_terms model_plain (void); /* at 1, without a card */
bool model_nodes (const struct model_card *card, const long long *nodes, bool hold,
                  struct model_terms *out);
int model_factor_of (const struct model_factor *f, int name, bool *missing);
/* Up for a hold, down for a charge. */
long long model_price (const struct model *m, const struct model_terms *t,
                       const struct model_ask *ask, bool hold);
const struct model_card *model_card_at (const struct model *m, int site, long long at,
                                        int *version);

/* ---- model_pay.c ---- */

/* Whose job, where, with what, when. */
struct model_funding {
    int user, site, machine, qos;
    long long at;
};
long long model_room (const struct model_alloc *a);
/* Indices of an account's allocations, in the order in which they pay. */
int model_sorted (const struct model *m, int account, int *out);
bool model_may_use (const struct model *m, int account, int user);
bool model_usable (const struct model *m, const struct model_alloc *a,
                   const struct model_funding *f);
bool model_overdrawn (const struct model *m, int account);
/* The account, its project or one above, or the user (-1: not looked at). */
bool model_frozen (const struct model *m, int account, int user);
struct model_candidate {
    int account, qos; /* qos -1: the job's */
};
/* The account asked for and what it falls back to at a site. */
int model_candidates (const struct model *m, int asked, int site, struct model_candidate *out);
/* Why an account cannot pay; NULL when it can. */
const char *model_cannot (const struct model *m, int account, const struct model_funding *f,
                          long long amount, long long *shortfall);
/* Allocations of the account that are below their limit, then what the project owes, are repaid by
 * another one, at most so much. */
void model_repay (struct model *m, struct model_alloc *from, long long most);
/* What is left of one that has ended goes; whether anything moved. */
bool model_ended (struct model *m, struct model_alloc *a);

/* ---- model_hold.c ---- */

/* Their index; -1: none. */
int model_usage_of (const struct model *m, int site, long long job, long long incarnation);
int model_open_hold_of (const struct model *m, int site, long long job, long long incarnation);
/* The rates that a hold pinned. */
struct model_terms model_hold_terms (const struct model *m, const struct model_hold *h, bool hold);
/* The card that a job is priced at, at a moment; NULL, and why not. */
const struct model_card *model_card_of (const struct model *m, const struct model_ask *ask,
                                        int user, long long at, int *version, const char **why);
void model_pin_use (struct model *m, const struct model_ask *ask);

/* ---- model_bounds.c ---- */

long long model_most_procs (const struct model *m, const struct model_signature *s, int site);
long long model_most_pe (const struct model *m, int site, long long procs, long long memory);
/* A hold asks for more than was signed. */
bool model_beyond (const struct model *m, const struct model_ask *ask);
bool model_own (const struct model *m, const struct model_ask *ask, const struct model_hold *h,
                struct model_ask *own);
long long model_spent (const struct model *m, const struct model_signature *s, int user,
                       const struct model_ask *but);
/* Why the signature does not stand for it, of a request's holds that number; NULL: it does. when: it must not have
 * expired then. */
const char *model_unsigned (const struct model *m, const struct model_ask *all, int at, int user,
                            long long when);

#endif
