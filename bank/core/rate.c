/* Rate cards: published once, never changed; what one says about a job. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bank/core/ledger_impl.h"

/* ---- what a card says ---- */

/* The factor of a kind for a name, else for "*"; NULL when the card has none of the kind, with
 * *missing set when it has others. */
static const struct ledger_factor *factor_of (const struct ledger_rate *rate,
                                              enum ledger_factor_kind kind, const char *name,
                                              bool *missing)
{
    const struct ledger_factor *best = NULL;
    bool others = false;
    for (uint32_t i = 0; i < rate->factor_count; i++) {
        const struct ledger_factor *factor = &rate->factor[i];
        if (factor->kind != kind)
            continue;
        others = true;
        if (strcmp (factor->name, name) == 0 || (!best && strcmp (factor->name, "*") == 0))
            best = factor;
    }
    *missing = others && !best;
    return best;
}

/* A multiplier; a job without the name at hand is at "*" or at 1. */
static bool multiplier (struct ledger_view *view, const struct ledger_rate *rate,
                        enum ledger_factor_kind kind, const char *what, const char *name,
                        int64_t *ppm_out, const char **why_out)
{
    bool missing;
    const struct ledger_factor *factor = factor_of (rate, kind, name ? name : "", &missing);
    *ppm_out = factor ? factor->ppm : PRICE_ONE;
    if (!missing || !name || !name[0])
        return true;
    *why_out = arena_printf (view->arena, "the rates of site %s have none for %s %s", rate->site,
                             what, name);
    return false;
}

/* Adds units * parts; saturates beyond what price_compute accepts. */
static void extra_add (struct price_terms *terms, int64_t units, __int128 parts)
{
    const int64_t most = PRICE_PPM_MAX * PRICE_PARTS + 1;
    __int128 all = terms->extra_parts + units * parts;
    terms->extra_parts = all > most ? most : (int64_t)all;
}

/* Nodes that nobody named: the dearest for a hold, so that no charge exceeds it for that; for a charge
 * as nodes that the card does not name, or 1. */
static int64_t nodes_unsaid (const struct ledger_rate *rate, enum price_rounding rounding)
{
    int64_t dearest = 0, other = PRICE_ONE;
    for (uint32_t i = 0; i < rate->factor_count; i++) {
        const struct ledger_factor *factor = &rate->factor[i];
        if (factor->kind != LEDGER_FACTOR_NODES)
            continue;
        dearest = factor->ppm > dearest ? factor->ppm : dearest;
        if (strcmp (factor->name, "*") == 0)
            other = factor->ppm;
    }
    return rounding == PRICE_HOLD ? dearest : other;
}

static bool rate_machine (struct ledger_view *view, const struct ledger_rate *rate,
                          const char *machine, struct price_terms *terms, const char **why_out)
{
    return multiplier (view, rate, LEDGER_FACTOR_MACHINE, "machine", machine, &terms->machine_ppm,
                       why_out);
}

bool rate_nodes (struct ledger_view *view, const struct ledger_rate *rate,
                 const struct ledger_nodes *nodes, uint32_t count, enum price_rounding rounding,
                 struct price_terms *terms, const char **why_out)
{
    bool missing, any = false;
    unsigned __int128 weight = 0;
    uint64_t procs = 0;
    for (uint32_t i = 0; i < rate->factor_count && !any; i++)
        any = rate->factor[i].kind == LEDGER_FACTOR_NODES;
    terms->node_weight = terms->node_procs = 0;
    for (uint32_t i = 0; i < count && any; i++) {
        const struct ledger_factor *factor =
            factor_of (rate, LEDGER_FACTOR_NODES, nodes[i].type, &missing);
        if (!factor) {
            *why_out = arena_printf (view->arena, "the rates of site %s have none for node type %s",
                                     rate->site, nodes[i].type[0] ? nodes[i].type : "''");
            return false;
        }
        procs += (uint64_t)nodes[i].procs;
        weight += (unsigned __int128)nodes[i].procs * (uint64_t)factor->ppm;
    }
    if (any && procs) {
        terms->node_weight = (uint64_t)weight; /* the service bounds both */
        terms->node_procs = procs;
    } else if (any) {
        terms->node_weight = (uint64_t)nodes_unsaid (rate, rounding);
        terms->node_procs = 1;
    }
    return true;
}

bool rate_terms (struct ledger_view *view, const struct ledger_rate *rate,
                 const struct ledger_ask *ask, enum price_rounding rounding,
                 struct price_terms *terms, const char **why_out)
{
    bool whole = true, missing;
    *terms = price_terms_plain (rate->ppm);
    terms->measure = rate->measure;
    terms->band = rate->band;
    terms->band_count = rate->band_count;
    whole &= multiplier (view, rate, LEDGER_FACTOR_QOS, "QoS", ask->qos, &terms->qos_ppm, why_out);
    whole &= multiplier (view, rate, LEDGER_FACTOR_CLASS, "class", ask->class_, &terms->class_ppm,
                         why_out);
    whole &= rate_machine (view, rate, ask->machine, terms, why_out);
    whole &= rate_nodes (view, rate, ask->nodes, ask->nodes_count, rounding, terms, why_out);
    const struct ledger_factor *memory = factor_of (rate, LEDGER_FACTOR_MEMORY, "*", &missing);
    if (memory && ask->memory_mb > 0)
        extra_add (terms, ask->memory_mb, memory->ppm); /* per 1024 MB, in 1024ths */
    for (uint32_t i = 0; i < ask->gres_count; i++) {
        const struct ledger_factor *gres =
            factor_of (rate, LEDGER_FACTOR_GRES, ask->gres[i].name, &missing);
        if (gres && ask->gres[i].count > 0)
            extra_add (terms, ask->gres[i].count, (__int128)gres->ppm * PRICE_PARTS);
        if (missing) {
            *why_out = arena_printf (view->arena, "the rates of site %s have none for gres %s",
                                     rate->site, ask->gres[i].name);
            whole = false;
        }
    }
    const struct ledger_factor *group = factor_of (rate, LEDGER_FACTOR_GROUP, "*", &missing);
    if (group && ask->coreserved)
        terms->group_ppm = group->ppm;
    return whole;
}

const struct ledger_rate *rate_version (const struct ledger_view *view, const char *site,
                                        uint32_t version)
{
    for (uint32_t i = 0; i < view->rates.count; i++) {
        const struct ledger_rate *rate = view->rates.item[i];
        if (rate->version == version && strcmp (rate->site, site) == 0)
            return rate;
    }
    return NULL;
}

/* ---- publishing ---- */

static const char *const factor_name[LEDGER_FACTORS] = {
    [LEDGER_FACTOR_QOS] = "qos",         [LEDGER_FACTOR_CLASS] = "class",
    [LEDGER_FACTOR_GRES] = "gres",       [LEDGER_FACTOR_MEMORY] = "memory",
    [LEDGER_FACTOR_GROUP] = "group",     [LEDGER_FACTOR_BAND] = "time",
    [LEDGER_FACTOR_MACHINE] = "machine", [LEDGER_FACTOR_NODES] = "nodetype",
};

const char *ledger_factor_name (enum ledger_factor_kind kind)
{
    return factor_name[kind];
}

int ledger_factor_parse (const char *text, enum ledger_factor_kind *out, struct err *err)
{
    for (int i = 0; i < LEDGER_FACTORS; i++)
        if (strcmp (text, factor_name[i]) == 0) {
            *out = (enum ledger_factor_kind)i;
            return 0;
        }
    return err_set (err, ERR_INVALID,
                    "rate: '%.40s' is none of qos, class, gres, memory, group, "
                    "time, machine, nodetype",
                    text);
}

/* One of each name, in bounds, and a time of day that can be read. */
static int factor_check (const struct ledger_factor *all, uint32_t at, struct err *err)
{
    const struct ledger_factor *factor = &all[at];
    bool adds = factor->kind == LEDGER_FACTOR_GRES || factor->kind == LEDGER_FACTOR_MEMORY;
    struct price_band band;
    if (factor->ppm < 0 || factor->ppm > (adds ? PRICE_PPM_MAX : PRICE_FACTOR_MAX))
        return err_set (err, ERR_INVALID, "rate: %s %.60s is out of bounds",
                        factor_name[factor->kind], factor->name);
    for (uint32_t i = 0; i < at; i++)
        if (all[i].kind == factor->kind && strcmp (all[i].name, factor->name) == 0)
            return err_set (err, ERR_INVALID, "rate: %s %.60s is there twice",
                            factor_name[factor->kind], factor->name);
    switch (factor->kind) {
    case LEDGER_FACTOR_BAND:
        return price_band_parse (factor->name, factor->ppm, &band, err);
    case LEDGER_FACTOR_MEMORY:
    case LEDGER_FACTOR_GROUP:
        return strcmp (factor->name, "*") == 0
                   ? 0
                   : err_set (err, ERR_INVALID, "rate: %s takes no name",
                              factor_name[factor->kind]);
    default:
        return strcmp (factor->name, "*") == 0
                   ? 0
                   : name_check (factor_name[factor->kind], factor->name, err);
    }
}

void ledger_rate_factors (struct arena *arena, struct ledger_rate *rate,
                          const struct ledger_factor *factor, uint32_t count)
{
    struct ledger_factor *copy = arena_array (arena, count, sizeof (*copy));
    struct price_band *band = arena_array (arena, count, sizeof (*band));
    rate->factor = copy;
    rate->band = band;
    rate->factor_count = count;
    rate->band_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct err err;
        copy[i] = factor[i];
        copy[i].name = arena_strdup (arena, factor[i].name);
        if (factor[i].kind == LEDGER_FACTOR_BAND &&
            price_band_parse (factor[i].name, factor[i].ppm, &band[rate->band_count], &err) == 0)
            rate->band_count++;
    }
}

static bool card_refused (struct ledger_view *view, const struct ledger_request *req,
                          struct ledger_outcome *out)
{
    char text[QUANTITY_TEXT_MAX];
    struct err err = {0};
    uint32_t bands = 0;
    if (req->rate.ppm < 0 || req->rate.ppm > PRICE_PPM_MAX)
        err_set (&err, ERR_INVALID, "rate: a multiplier of %s is out of bounds",
                 credit_format (req->rate.ppm, text));
    if (req->rate.factor_count > LEDGER_FACTORS_MAX)
        err_set (&err, ERR_LIMIT, "rate: %u rates, a card has at most %d", req->rate.factor_count,
                 LEDGER_FACTORS_MAX);
    for (uint32_t i = 0; i < req->rate.factor_count && !err.code; i++) {
        bands += req->rate.factor[i].kind == LEDGER_FACTOR_BAND;
        if (factor_check (req->rate.factor, i, &err) == 0 && bands > PRICE_BANDS_MAX)
            err_set (&err, ERR_LIMIT, "rate: more than %d times of day", PRICE_BANDS_MAX);
    }
    if (err.code)
        outcome_refuse (view, out, err.code, false, "%s", err.text);
    return err.code != 0;
}

/* The site's own account exists from its first rate on. */
static void site_account (struct ledger_view *view, struct ledger_site *site)
{
    if (site->earned_account_id != LEDGER_ID_SITES)
        return;
    struct ledger_account *account = ledger_add_account (
        view, view->next.account++, arena_printf (view->arena, "site:%s", site->name));
    account->is_new = true;
    account->op_id = view->next.op;
    struct ledger_alloc *alloc =
        ledger_add_alloc (view, view->next.allocation++, account->id, 0, TIME_US_MAX);
    alloc->description = arena_printf (view->arena, "earned by site %s", site->name);
    alloc_touch (view, alloc);
    alloc->is_new = true;
    alloc->op_id = view->next.op;
    site->earned_account_id = account->id;
    site->earned_alloc_id = alloc->id;
}

void decide_rate (struct ledger_view *view, const struct ledger_request *req,
                  struct ledger_outcome *out)
{
    char text[QUANTITY_TEXT_MAX];
    time_us from = req->rate.from ? req->rate.from : view->now;
    uint32_t version = 0;
    if (name_refused (view, "site", req->rate.site, out) || card_refused (view, req, out))
        return;
    out->site = req->rate.site;
    if (from < view->now) {
        char now[QUANTITY_TEXT_MAX];
        outcome_refuse (
            view, out, ERR_INVALID, false,
            "rate: it would begin in the past, %s is the bank's now; what was published stays",
            time_format_iso (view->now, now));
        return;
    }
    for (uint32_t i = 0; i < view->rates.count; i++) {
        const struct ledger_rate *rate = view->rates.item[i];
        if (strcmp (rate->site, req->rate.site) == 0 && rate->version > version)
            version = rate->version;
    }
    site_account (view, ledger_site_of (view, req->rate.site));
    struct ledger_rate *rate = ledger_add_rate (view, req->rate.site, version + 1);
    rate->from = from;
    rate->ppm = req->rate.ppm;
    rate->measure = req->rate.measure;
    rate->successful_only = req->rate.successful_only;
    ledger_rate_factors (view->arena, rate, req->rate.factor, req->rate.factor_count);
    rate->is_new = true;
    rate->op_id = view->next.op;
    out->note = arena_printf (view->arena, "multiplier %s, %u rates more, %s, %s jobs",
                              credit_format (req->rate.ppm, text), rate->factor_count,
                              price_measure_name (rate->measure),
                              rate->successful_only ? "successful" : "all");
    out->done.id = arena_printf (view->arena, "%s.%u", req->rate.site, version + 1);
}

/* Types are names: they have neither blank nor "=". */
const char *nodes_text (struct ledger_view *view, const struct ledger_ask *ask)
{
    const char *text = "";
    for (uint32_t i = 0; i < ask->nodes_count; i++)
        text = arena_printf (view->arena, "%s%s%s=%lld", text, i ? " " : "", ask->nodes[i].type,
                             (long long)ask->nodes[i].procs);
    return text;
}

bool nodes_same (const struct ledger_ask *ask, const char *text)
{
    for (uint32_t i = 0; i < ask->nodes_count; i++) {
        char part[QUANTITY_TEXT_MAX];
        int len = snprintf (part, sizeof (part), "=%lld", (long long)ask->nodes[i].procs);
        size_t type = strlen (ask->nodes[i].type);
        if (i && *text++ != ' ')
            return false;
        if (strncmp (text, ask->nodes[i].type, type) != 0 ||
            strncmp (text + type, part, (size_t)len) != 0)
            return false;
        text += type + (size_t)len;
    }
    return !*text;
}

static uint32_t nodes_read (struct ledger_view *view, const char *text,
                            struct ledger_nodes out[LEDGER_NODE_TYPES_MAX])
{
    char *rest = NULL;
    uint32_t count = 0;
    if (!text[0])
        return 0;
    for (char *part = strtok_r (arena_strdup (view->arena, text), " ", &rest); part;
         part = strtok_r (NULL, " ", &rest)) {
        char *procs = strchr (part, '=');
        assert (procs && count < LEDGER_NODE_TYPES_MAX);
        *procs = '\0';
        out[count++] = (struct ledger_nodes){part, strtoll (procs + 1, NULL, 10)};
    }
    return count;
}

struct price_terms hold_terms (struct ledger_view *view, const struct ledger_hold *hold,
                               enum price_rounding rounding)
{
    struct ledger_nodes nodes[LEDGER_NODE_TYPES_MAX];
    const char *why; /* it was priced so once */
    const struct ledger_rate *card = rate_version (view, hold->job.site, hold->rate_version);
    struct price_terms terms = price_terms_plain (hold->rate_ppm);
    if (card) {
        terms.measure = card->measure;
        terms.band = card->band;
        terms.band_count = card->band_count;
        rate_machine (view, card, hold->machine, &terms, &why);
        rate_nodes (view, card, nodes, nodes_read (view, hold->nodes, nodes), rounding, &terms,
                    &why);
    }
    terms.extra_parts = hold->extra_parts;
    terms.qos_ppm = hold->qos_ppm;
    terms.class_ppm = hold->class_ppm;
    terms.group_ppm = hold->group_ppm;
    return terms;
}
