/* Shared by the model's files. */
#ifndef NUI_TESTS_PROP_BANK_MODEL_I_H
#define NUI_TESTS_PROP_BANK_MODEL_I_H

#include "tests/prop/bank/model.h"

long long model_price (long long procs, long long seconds, long long ppm);
long long model_room (const struct model_alloc *a);
bool model_overdrawn (const struct model *m, int account);
bool model_is_member (const struct model *m, int user, int account);
/* The account asked for and what it falls back to. */
int model_candidates (const struct model *m, int asked, int *out);
/* Why an account cannot pay; NULL when it can. */
const char *model_cannot (const struct model *m, int account, int user, long long amount,
                          long long *shortfall);
/* What a job is priced at; -1, and why not. */
long long model_rate_of (const struct model *m, const struct model_ask *ask, int user,
                         const char **why);
void model_pin_use (struct model *m, const struct model_ask *ask);

#endif
