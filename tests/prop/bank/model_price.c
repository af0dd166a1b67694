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
    return M_ONE;
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
        out->weight = hold ? dearest : f->of[M_NAMES] >= 0 ? f->of[M_NAMES] : M_ONE;
    }
    return true;
}

/* What a job's memory and generic resources cost; false when the card has none for one of these. */
static bool extra_of (const struct model_card *card, const struct model_ask *ask, long long *out)
{
    bool missing, whole = true;
    *out = card->memory >= 0 ? ask->memory * card->memory : 0;
    for (int i = 0; i < M_NAMES; i++) {
        if (ask->gres[i] == 0)
            continue;
        bool some = card->gres.of[0] >= 0 || card->gres.of[1] >= 0 || card->gres.of[M_NAMES] >= 0;
        int ppm = model_factor_of (&card->gres, i, &missing);
        whole = whole && !missing;
        *out += some && !missing ? 1024 * ask->gres[i] * ppm : 0;
    }
    return whole;
}

bool model_terms (const struct model_card *card, const struct model_ask *ask, bool hold,
                  struct model_terms *out)
{
    bool missing, whole;
    *out = model_plain ();
    out->card = card;
    out->qos = model_factor_of (&card->qos, ask->qos, &missing);
    whole = !missing;
    out->class = model_factor_of (&card->class, ask->class, &missing);
    whole = whole && !missing;
    out->machine = model_factor_of (&card->machine, ask->machine, &missing);
    whole = whole && !missing;
    whole = model_nodes (card, ask->nodes, hold, out) && whole;
    whole = extra_of (card, ask, &out->extra) && whole;
    if (ask->coreserved && card->group >= 0)
        out->group = card->group;
    return whole;
}

struct model_terms model_plain (void)
{
    return (struct model_terms){.qos = M_ONE, .class = M_ONE, .group = M_ONE, .machine = M_ONE};
}

/* Quarters of a second of [from, from + quarters), each at what it costs. */
static __int128 banded (const struct model *m, const struct model_card *card, long long from,
                        long long quarters, bool hold)
{
    __int128 sum = 0;
    int dear = card && card->band > M_ONE ? card->band : M_ONE;
    if (hold || !card || card->band < 0)
        return (__int128)quarters * (hold ? dear : M_ONE);
    for (long long q = from; q < from + quarters; q++)
        sum += q >= m->band_from && q < m->band_to ? card->band : M_ONE;
    return sum;
}

/* Exact, and rounded once. */
long long model_price (const struct model *m, const struct model_terms *t,
                       const struct model_ask *ask, bool hold)
{
    const struct model_card *card = t->card;
    long long work = ask->procs * ask->seconds * 1000, part = t->procs ? t->procs : 1;
    if (ask->seconds == 0)
        return 0;
    if (card && card->measure == M_PE && ask->pe)
        work = ask->pe * ask->seconds;
    if (card && card->measure == M_CPU && !hold && ask->cpu && ask->cpu * 1000 < work)
        work = ask->cpu * 1000;
    __int128 over = (__int128)(card ? card->base : 1000000) * work * 1024 +
                    (__int128)t->extra * ask->seconds * 1000;
    over *= banded (m, card, ask->start * 4 + 1, ask->seconds * 4, hold);
    over *= (__int128)t->qos * t->class * t->group * t->machine;
    over *= t->procs ? t->weight : M_ONE;
    /* Thousandths of work, 1024ths of memory, hundredths of the time's, of four multipliers and of the
     * nodes', means over time and nodes. */
    __int128 under = (__int128)1000 * 1024 * M_ONE * M_ONE * M_ONE * M_ONE * M_ONE * M_ONE *
                     (ask->seconds * 4) * part;
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
