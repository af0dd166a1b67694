/* The model's prices. */
#include "tests/prop/bank/model_i.h"

#include <stddef.h>

int model_factor_of (const struct model_factor *f, int name, bool *missing)
{
    bool any = false;
    *missing = false;
    for (int i = 0; i <= M_NAMES; i++)
        any = any || f->of[i] >= 0;
    if (name >= 0 && f->of[name] >= 0)
        return f->of[name];
    if (f->of[M_NAMES] >= 0)
        return f->of[M_NAMES];
    *missing = any && name >= 0;
    return 1000;
}

bool model_nodes (const struct model_card *card, const long long *nodes, bool hold,
                  struct model_terms *out)
{
    const struct model_factor *f = &card->nodes;
    bool any = false, missing;
    int dearest = 0;
    out->weight = out->procs = 0;
    for (int i = 0; i <= M_NAMES; i++) {
        any = any || f->of[i] >= 0;
        dearest = f->of[i] > dearest ? f->of[i] : dearest;
    }
    if (!any)
        return true;
    for (int i = 0; i < M_NAMES; i++) {
        if (nodes[i] == 0)
            continue;
        out->weight += nodes[i] * model_factor_of (f, i, &missing);
        out->procs += nodes[i];
        if (missing) {
            out->weight = out->procs = 0;
            return false;
        }
    }
    if (out->procs == 0) {
        out->procs = 1;
        out->weight = hold ? dearest : f->of[M_NAMES] >= 0 ? f->of[M_NAMES] : 1000;
    }
    return true;
}

bool model_terms (const struct model_card *card, const struct model_ask *ask, bool hold,
                  struct model_terms *out)
{
    bool missing, whole = true;
    *out = (struct model_terms){.card = card, .qos = 1000, .group = 1000, .machine = 1000};
    out->qos = model_factor_of (&card->qos, ask->qos, &missing);
    whole = whole && !missing;
    out->machine = model_factor_of (&card->machine, ask->machine, &missing);
    whole = whole && !missing;
    whole = model_nodes (card, ask->nodes, hold, out) && whole;
    if (ask->coreserved && card->group >= 0)
        out->group = card->group;
    return whole;
}

/* Quarters of a second of [from, from + quarters), each at what it costs. */
static __int128 banded (const struct model *m, const struct model_card *card, long long from,
                        long long quarters, bool hold)
{
    __int128 sum = 0;
    int dear = card && card->band > 1000 ? card->band : 1000;
    if (hold || !card || card->band < 0)
        return (__int128)quarters * (hold ? dear : 1000);
    for (long long q = from; q < from + quarters; q++)
        sum += q >= m->band_from && q < m->band_to ? card->band : 1000;
    return sum;
}

long long model_price (const struct model *m, const struct model_terms *t,
                       const struct model_ask *ask, bool hold)
{
    const struct model_card *card = t->card;
    long long work = ask->procs * ask->seconds * 1000;
    if (ask->seconds == 0)
        return 0;
    if (card && card->measure == M_PE && ask->pe)
        work = ask->pe * ask->seconds;
    if (card && card->measure == M_CPU && !hold && ask->cpu && ask->cpu * 1000 < work)
        work = ask->cpu * 1000;
    __int128 over = (__int128)(card ? card->base : 1000000) * work *
                    banded (m, card, ask->start * 4 + 1, ask->seconds * 4, hold);
    over *= (__int128)t->qos * t->group * t->machine * (t->procs ? t->weight : 1000);
    /* Thousandths of work, of the time's, of three multipliers and of the nodes'. */
    __int128 under = (__int128)1000 * (ask->seconds * 4) * 1000 * 1000000000 * 1000 *
                     (t->procs ? t->procs : 1);
    return (long long)((over + (hold ? under - 1 : 0)) / under);
}

const struct model_card *model_card_at (const struct model *m, int site, long long at, int *version)
{
    for (int v = m->cards[site]; v > 0; v--)
        if (m->card[site][v - 1].from <= at) {
            *version = v;
            return &m->card[site][v - 1];
        }
    *version = 0;
    return NULL;
}
