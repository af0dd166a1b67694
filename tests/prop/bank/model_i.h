/* Shared by the model's files. */
#ifndef NUI_TESTS_PROP_BANK_MODEL_I_H
#define NUI_TESTS_PROP_BANK_MODEL_I_H

#include "tests/prop/bank/model.h"

/* ---- model_price.c ---- */

/* What a card says of a job, and the job. */
struct model_terms {
    const struct model_card *card; /* NULL: none, at 1 */
    int qos, group, machine;       /* thousandths */
    long long weight, procs;       /* of nodes by type: thousandths * processors; procs 0: none */
};
/* Names of QoS and machine, node types as in ask; false when the card has others of a kind only. */
bool model_terms (const struct model_card *card, const struct model_ask *ask, bool hold,
                  struct model_terms *out);
bool model_nodes (const struct model_card *card, const long long *nodes, bool hold,
                  struct model_terms *out);
int model_factor_of (const struct model_factor *f, int name, bool *missing);
/* Up for a hold, down for a charge. */
long long model_price (const struct model *m, const struct model_terms *t,
                       const struct model_ask *ask, bool hold);
const struct model_card *model_card_at (const struct model *m, int site, long long at, int *version);

/* ---- model.c ---- */

/* Whose job, where, with what, when. */
struct model_funding {
    int user, site, machine, qos;
    long long at;
};
long long model_room (const struct model_alloc *a);
bool model_overdrawn (const struct model *m, int account);
struct model_candidate {
    int account, qos; /* qos -1: the job's */
};
/* The account asked for and what it falls back to at a site. */
int model_candidates (const struct model *m, int asked, int site, struct model_candidate *out);
/* Why an account cannot pay; NULL when it can. */
const char *model_cannot (const struct model *m, int account, const struct model_funding *f,
                          long long amount, long long *shortfall);
/* The card that a job is priced at, at a moment; NULL, and why not. */
const struct model_card *model_card_of (const struct model *m, const struct model_ask *ask,
                                        int user, long long at, int *version, const char **why);
void model_pin_use (struct model *m, const struct model_ask *ask);

#endif
