/* Asks the candidate sites of a job for exact answers, and the bank for prices, in as few round trips as there can be. Called
 * before a job is taken, when it is placed, and when it might move; it never gives a job to a site. */
#include "meta/place/survey.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "meta/job/check.h"
#include "meta/place/gridlicence.h"
#include "meta/job/sites.h"
#include "meta/job/soon.h"
#include "proto/base/strbuf.h"
#include "proto/base/text.h"
#include "proto/job/element.h"
#include "proto/job/jobcheck.h"
#include "proto/rpc/pbcopy.h"

#define QUERY_TIMEOUT (5 * US_PER_S)
#define QUOTE_TIMEOUT (5 * US_PER_S)

/* ---- asking */

struct query_call {
    struct survey *survey;
    uint32_t offer;
};

struct quote_call {
    struct survey *survey;
    uint32_t first; /* of its items, which are offers that are quoted, in their order */
};

void survey_destroy (struct survey *survey)
{
    if (!survey)
        return;
    for (uint32_t i = 0; i < survey->offer_count; i++) {
        free (survey->offer[i].starts);
        if (survey->offer[i].forecast)
            nui__common__v1__forecast__free_unpacked (survey->offer[i].forecast, NULL);
    }
    free (survey->offer);
    free (survey->rest);
    survey_sets_free (survey);
    if (survey->envelope)
        nui__common__v1__envelope__free_unpacked (survey->envelope, NULL);
    if (survey->job)
        nui__common__v1__job__free_unpacked (survey->job, NULL);
    free (survey);
}

static void text_copy (char *out, size_t cap, const char *text)
{
    size_t len = text ? strlen (text) : 0;
    if (len >= cap) { /* cut between characters, not within one */
        len = cap - 1;
        while (len && ((unsigned char)text[len] & 0xc0) == 0x80)
            len--;
    }
    if (len)
        memcpy (out, text, len);
    out[len] = '\0';
}

static void reason_copy (struct coalloc_reason *out, const Nui__Common__V1__Reason *reason)
{
    text_copy (out->code, sizeof out->code, reason ? reason->code : NULL);
    text_copy (out->text, sizeof out->text, reason ? reason->text : NULL);
}

/* Where the bank's price is less than the site takes it would be refused when it is to start: it is no offer. */
static void too_cheap (struct survey_offer *offer)
{
    char least[QUANTITY_TEXT_MAX], pays[QUANTITY_TEXT_MAX];
    if (!offer->priced || !offer->feasible || offer->price >= offer->price_least)
        return;
    offer->feasible = false;
    text_copy (offer->reason.code, sizeof offer->reason.code, "MinPrice");
    text_printf (offer->reason.text, sizeof offer->reason.text,
                 "takes the job for no less than %s (its GRIDCFG MINPRICE), and the price is %s",
                 credit_format (offer->price_least, least), credit_format (offer->price, pays));
}

static void survey_finish (struct survey *survey)
{
    for (uint32_t i = 0; i < survey->offer_count; i++)
        too_cheap (&survey->offer[i]);
    survey->metad->surveys--;
    survey->done (survey->arg, survey);
}

/* It will never run there. */
static bool offer_never (const struct survey_offer *offer)
{
    return offer->answered && !offer->feasible;
}

bool survey_may_run (const struct survey *survey)
{
    for (uint32_t i = 0; i < survey->offer_count; i++)
        if (!offer_never (&survey->offer[i]))
            return true;
    return false;
}

/* What the bank is told of it, which it may have been told otherwise before the site answered. */
static void reply_take_priced (struct survey_offer *offer, const Nui__Local__V1__QueryReply *reply,
                               struct site *site)
{
    uint32_t procs = reply->procs ? reply->procs : offer->procs;
    text_copy (site->machine, sizeof site->machine, reply->machine);
    offer->differs = procs != offer->procs || strcmp (site->machine, offer->machine) != 0;
    offer->procs = procs;
    memcpy (offer->machine, site->machine, sizeof offer->machine);
}

static void reply_take (struct survey_offer *offer, const Nui__Local__V1__QueryReply *reply,
                        struct site *site)
{
    size_t count = reply->n_start_intervals;
    offer->answered = true;
    offer->feasible = reply->feasible;
    reason_copy (&offer->reason, reply->reason);
    offer->start_estimate = reply->start_estimate_us;
    offer->forecast =
        (Nui__Common__V1__Forecast *)pbcopy ((const ProtobufCMessage *)reply->forecast);
    offer->nodes = reply->nodes;
    offer->price_least = reply->price_least_micro;
    if (offer->feasible)
        reply_take_priced (offer, reply, site);
    if (count > CHOOSE_INTERVALS_MAX)
        count = CHOOSE_INTERVALS_MAX;
    offer->starts = calloc (count + 1, sizeof *offer->starts);
    for (size_t i = 0; offer->starts && i < count; i++)
        offer->starts[offer->start_count++] = (struct choose_interval){
            reply->start_intervals[i]->begin_us, reply->start_intervals[i]->end_us};
}

void funding_text (const Nui__Bank__V1__QuoteReply *reply, struct coalloc_reason *out)
{
    struct strbuf text = STRBUF_INIT;
    const char *code = "InsufficientFunds";
    char amount[QUANTITY_TEXT_MAX];
    for (size_t i = 0; i < reply->n_candidates; i++) {
        const Nui__Bank__V1__FundingCandidate *c = reply->candidates[i];
        strbuf_printf (&text, "%s%saccount %s: %s", i ? "; " : "", c->fallback ? "fallback " : "",
                       c->account, c->reason ? c->reason->text : "");
        if (c->shortfall_micro > 0)
            strbuf_printf (&text, " (short by %s)", credit_format (c->shortfall_micro, amount));
    }
    for (size_t i = 0; i < reply->n_prices && !text.len; i++)
        if (reply->prices[i]->reason) { /* there is nothing to be paid */
            code = reply->prices[i]->reason->code;
            strbuf_puts (&text, reply->prices[i]->reason->text);
        }
    text_copy (out->code, sizeof out->code, code);
    text_copy (out->text, sizeof out->text,
               text.len ? strbuf_text (&text) : "no account covers the price");
    strbuf_free (&text);
}

static void quote_failed (struct survey *survey, const struct rpc_result *result)
{
    survey->priced = false;
    survey->bank_refused = result->status != RPC_UNAVAILABLE &&
                           result->status != RPC_DEADLINE_EXCEEDED &&
                           result->status != RPC_CANCELLED;
    text_copy (survey->bank.code, sizeof survey->bank.code,
               survey->bank_refused ? "BankRefused" : "BankDown");
    text_printf (survey->bank.text, sizeof survey->bank.text,
                 survey->bank_refused ? "the bank refused: %.300s"
                                      : "the bank does not answer (%.300s)",
                 result->message);
}

static void prices_take (struct survey *survey, const Nui__Bank__V1__QuoteReply *reply,
                         uint32_t first)
{
    uint32_t item = 0;
    bool unfunded = false;
    for (uint32_t i = 0; i < survey->offer_count && item < first + reply->n_prices; i++) {
        struct survey_offer *offer = &survey->offer[i];
        if (!offer->quoted || item++ < first)
            continue;
        const Nui__Bank__V1__Price *price = reply->prices[item - 1 - first];
        offer->priced = true;
        offer->price = price->amount_micro;
        offer->funded = price->funded;
        text_copy (offer->account, sizeof offer->account, price->account);
        unfunded = unfunded || !price->funded;
    }
    survey->group_funded = reply->funded;
    survey->group_price = reply->total_micro;
    if ((unfunded || (survey->group_quoted && !reply->funded)) && !survey->bank.code[0])
        funding_text (reply, &survey->bank);
}

Nui__Bank__V1__PriceItem *price_item (const JobMessage *job, const struct survey_offer *offer,
                                      struct arena *arena)
{
    const ComponentMessage *component = job->components[offer->part];
    Nui__Bank__V1__PriceItem *item = arena_new (arena, Nui__Bank__V1__PriceItem);
    nui__bank__v1__price_item__init (item);
    item->site = arena_strdup (arena, offer->site_name);
    item->component = component->name;
    item->procs = offer->procs;
    item->walltime_us = jobshape_walltime (component, offer->shape);
    item->shape = offer->shape;
    item->qos = component->qos;
    item->class_ = component->class_;
    item->machine = arena_strdup (arena, offer->machine);
    return item;
}

/* Every component has exactly one site that could run it: the items are the group. */
static bool one_way (const struct survey *survey)
{
    bool seen[COALLOC_PARTS_MAX] = {false};
    uint32_t parts = 0;
    for (uint32_t i = 0; i < survey->offer_count; i++) {
        const struct survey_offer *offer = &survey->offer[i];
        if (offer_never (offer))
            continue;
        if (seen[offer->part])
            return false;
        seen[offer->part] = true;
        parts++;
    }
    return survey->part_count > 1 && parts == survey->part_count;
}

static void quote_done (void *arg, const struct rpc_result *result);

static void unprice (struct survey_offer *offer)
{
    offer->quoted = offer->priced = offer->funded = offer->differs = false;
    offer->price = 0;
    offer->account[0] = '\0';
}

/* Whatever the bank has said before is forgotten. */
static void quote_ask (struct survey *survey)
{
    Nui__Bank__V1__QuoteRequest request = NUI__BANK__V1__QUOTE_REQUEST__INIT;
    struct arena *arena = arena_create (0);
    Nui__Bank__V1__PriceItem **items = arena_array (arena, survey->offer_count + 1u, sizeof *items);
    uint32_t count = 0;
    for (uint32_t i = 0; i < survey->offer_count; i++) {
        struct survey_offer *offer = &survey->offer[i];
        unprice (offer);
        if (offer_never (offer))
            continue;
        offer->quoted = true;
        items[count++] = price_item (survey->job, offer, arena);
    }
    request.envelope = survey->envelope;
    request.all_of = survey->group_quoted = one_way (survey);
    survey->priced = true; /* unless one of them fails */
    survey->bank_refused = false;
    survey->bank = (struct coalloc_reason){"", ""};
    for (uint32_t first = 0; first < count; first += SURVEY_QUOTE_ITEMS_MAX) {
        struct quote_call *call = malloc (sizeof *call);
        if (!call)
            abort ();
        *call = (struct quote_call){survey, first};
        request.items = items + first;
        request.n_items =
            count - first < SURVEY_QUOTE_ITEMS_MAX ? count - first : SURVEY_QUOTE_ITEMS_MAX;
        survey->quoting++;
        link_call (survey->metad->bank, "Quote", &request.base, QUOTE_TIMEOUT, quote_done, call);
    }
    arena_destroy (arena);
}

/* Whether the bank would say the same of what the sites have answered. It may have priced what will never run, too:
 * not where something is unfunded, since its reasons speak of all that it was asked. Its silence stands. */
static bool quote_stands (const struct survey *survey)
{
    bool more = false, paid = survey->priced && (!survey->group_quoted || survey->group_funded);
    if ((survey->bank.code[0] && !survey->priced && !survey->bank_refused) ||
        !survey_may_run (survey))
        return true;
    for (uint32_t i = 0; i < survey->offer_count; i++) {
        const struct survey_offer *offer = &survey->offer[i];
        if (!offer_never (offer) && (!offer->quoted || offer->differs))
            return false;
        more = more || (offer_never (offer) && offer->quoted);
        paid = paid && (offer_never (offer) || offer->funded);
    }
    return paid || !more;
}

/* All sites have answered and the bank: nothing is left, or it is asked (anew). */
static void survey_settle (struct survey *survey)
{
    if (survey->outstanding || survey->quoting)
        return;
    if (!survey->metad->stopping && !quote_stands (survey)) {
        quote_ask (survey);
        return;
    }
    for (uint32_t i = 0; i < survey->offer_count; i++) {
        struct survey_offer *offer = &survey->offer[i];
        if (!offer_never (offer) || !offer->quoted)
            continue;
        unprice (offer);
        survey->group_quoted = false;
        if (survey->priced) /* then all is funded but what will never run */
            survey->bank = (struct coalloc_reason){"", ""};
    }
    survey->priced = survey->priced && survey_may_run (survey);
    survey_finish (survey);
}

static void quote_done (void *arg, const struct rpc_result *result)
{
    struct quote_call *call = arg;
    struct survey *survey = call->survey;
    survey->quoting--;
    if (result->status == RPC_OK)
        prices_take (survey, (const Nui__Bank__V1__QuoteReply *)result->reply, call->first);
    else
        quote_failed (survey, result);
    free (call);
    survey_settle (survey);
}

static bool wave_ask (struct survey *survey);

static void query_done (void *arg, const struct rpc_result *result)
{
    struct query_call *call = arg;
    struct survey *survey = call->survey;
    struct survey_offer *offer = &survey->offer[call->offer];
    free (call);
    if (result->status == RPC_OK) {
        reply_take (offer, (const Nui__Local__V1__QueryReply *)result->reply,
                    survey->metad->site[offer->site]);
    } else {
        bool silent = result->status == RPC_UNAVAILABLE || result->status == RPC_CANCELLED ||
                      result->status == RPC_DEADLINE_EXCEEDED;
        offer->answered = !silent;
        text_copy (offer->reason.code, sizeof offer->reason.code, silent ? "SiteDown" : "Refused");
        text_copy (offer->reason.text, sizeof offer->reason.text, result->message);
    }
    if (--survey->outstanding)
        return;
    if (survey->metad->stopping || !wave_ask (survey))
        survey_settle (survey);
}

static void nobody_to_ask (void *arg)
{
    survey_finish (arg);
}

static void query_ask (struct survey *survey, uint32_t index)
{
    Nui__Local__V1__QueryRequest request = NUI__LOCAL__V1__QUERY_REQUEST__INIT;
    struct survey_offer *offer = &survey->offer[index];
    const ComponentMessage *component = survey->job->components[offer->part];
    struct query_call *call = malloc (sizeof *call);
    time_us now = clock_now_us (), least = survey->job->not_before_us;
    if (!call)
        abort ();
    *call = (struct query_call){survey, index};
    if (least)
        least += component->offset_us; /* its own start lies so long after the common moment */
    request.envelope = survey->envelope;
    request.component = component->name;
    request.shape = offer->shape;
    request.depends_met = true; /* when it is placed they have happened */
    request.replaces = survey_replaces (survey);
    request.window_begin_us = least > now ? least : now;
    request.window_end_us = request.window_begin_us + survey->metad->config->horizon;
    struct arena *arena = component->n_licences ? arena_create (0) : NULL;
    if (arena)
        request.grid_licences =
            gridlicence_named (survey->metad, component, arena, &request.n_grid_licences);
    survey->outstanding++;
    link_call (survey->metad->site[offer->site]->link, "Query", &request.base, QUERY_TIMEOUT,
               query_done, call);
    arena_destroy (arena);
}

static void offer_add (struct survey *survey, const struct survey_pair *pair)
{
    if (survey->offer_count == survey->offer_cap) {
        survey->offer_cap = survey->offer_cap ? 2 * survey->offer_cap : 16;
        survey->offer = realloc (survey->offer, survey->offer_cap * sizeof *survey->offer);
        if (!survey->offer)
            abort ();
    }
    struct survey_offer *offer = &survey->offer[survey->offer_count++];
    const struct site *site = survey->metad->site[pair->site];
    memset (offer, 0, sizeof *offer);
    offer->part = pair->part;
    offer->site = pair->site;
    offer->shape = pair->shape;
    text_copy (offer->site_name, sizeof offer->site_name, site->name);
    offer->procs = (uint32_t)jobcheck_procs (survey->job->components[pair->part], pair->shape);
    memcpy (offer->machine, site->machine, sizeof offer->machine);
}

static bool part_possible (const struct survey *survey, uint32_t part)
{
    for (uint32_t i = 0; i < survey->offer_count; i++)
        if (survey->offer[i].part == part && survey->offer[i].answered && survey->offer[i].feasible)
            return true;
    return false;
}

static bool price_matters (const JobMessage *job)
{
    return (job->cost_max_micro && !job->cost_default) || job_prefer (job) == CHOOSE_CHEAPEST;
}

static bool many_wait (const struct survey *survey)
{
    return survey->metad->surveys > SURVEY_MANY;
}

/* The next candidate of an ordinary job has reported an earlier end than any answer so far. */
static bool next_is_better (const struct survey *survey)
{
    const JobMessage *job = survey->job;
    const struct survey_pair *next = survey->rest;
    time_us best = TIME_US_MAX;
    if (survey->part_count > 1 || !survey->rest_count || price_matters (job) ||
        survey->offer_count >= (many_wait (survey) ? SURVEY_SHORTLIST : SURVEY_ASKED_MAX))
        return false;
    for (uint32_t i = 0; i < survey->offer_count; i++) {
        const struct survey_offer *offer = &survey->offer[i];
        time_us start = survey_start_of (offer, job->not_before_us);
        if (!offer->feasible || !start)
            continue;
        start += jobshape_walltime (job->components[0], offer->shape);
        best = start < best ? start : best;
    }
    return best != TIME_US_MAX &&
           ranking_completion (survey->metad, job, next) < best - SURVEY_WORTH;
}

/* How many of a part's candidates are asked in this wave. */
static uint32_t wave_most (const struct survey *survey, uint32_t part)
{
    const JobMessage *job = survey->job;
    uint64_t most = price_matters (job) ? SURVEY_SHORTLIST_PRICE : SURVEY_SHORTLIST;
    if (!price_matters (job) && many_wait (survey))
        most /= 2;
    most += job->n_components - 1;
    for (uint32_t i = 0; i < survey->wave && most < CHOOSE_OFFERS_MAX; i++)
        most *= 4;
    most *= job->components[part]->n_shapes + 1;
    return most < CHOOSE_OFFERS_MAX ? (uint32_t)most : CHOOSE_OFFERS_MAX;
}

/* Asks the next candidates of the parts that nobody can run so far, or as soon; false: there are none. */
static bool wave_ask (struct survey *survey)
{
    uint32_t first = survey->offer_count, left = 0, room = CHOOSE_OFFERS_MAX - first;
    uint32_t least = room / survey->part_count; /* so that none takes all */
    if (survey->rest_count == 0 || room == 0)
        return false;
    for (uint32_t i = 0, end; i < survey->rest_count; i = end) {
        uint32_t part = survey->rest[i].part, most = wave_most (survey, part);
        bool wanted = !part_possible (survey, part) || next_is_better (survey);
        if (most > least)
            most = least;
        for (end = i; end < survey->rest_count && survey->rest[end].part == part; end++) {
            if (wanted && end - i < most)
                offer_add (survey, &survey->rest[end]);
            else
                survey->rest[left++] = survey->rest[end];
        }
    }
    survey->rest_count = left;
    survey->wave++;
    if (first == 0 && survey->offer_count && survey->part_count > 1)
        quote_ask (survey); /* beside the questions: one way to all of them and back */
    for (uint32_t i = first; i < survey->offer_count; i++)
        query_ask (survey, i);
    return survey->offer_count > first;
}

/* The caller's messages may go away while the answers are on their way. */
static void messages_copy (struct survey *survey, const EnvelopeMessage *envelope)
{
    survey->envelope = (EnvelopeMessage *)pbcopy (&envelope->base);
    survey->job = element_unpack (envelope, NULL);
    if (!survey->envelope || !survey->job)
        abort ();
}

ProtobufCBinaryData survey_replaces (const struct survey *survey)
{
    static const uint8_t none[sizeof survey->replaces];
    bool some = memcmp (survey->replaces, none, sizeof none) != 0;
    return (ProtobufCBinaryData){some ? sizeof none : 0, (uint8_t *)survey->replaces};
}

void survey_start (struct metad *metad, const EnvelopeMessage *envelope, const JobMessage *job,
                   const struct survey_pair *pair, uint32_t pair_count, uint32_t wave,
                   void (*done) (void *arg, struct survey *survey), void *arg)
{
    survey_start_instead (metad, envelope, job, pair, pair_count, wave, NULL, done, arg);
}

void survey_start_instead (struct metad *metad, const EnvelopeMessage *envelope,
                           const JobMessage *job, const struct survey_pair *pair,
                           uint32_t pair_count, uint32_t wave, const uint8_t replaces[16],
                           void (*done) (void *arg, struct survey *survey), void *arg)
{
    struct survey *survey = calloc (1, sizeof *survey);
    if (!survey || !(survey->rest = malloc ((pair_count + 1u) * sizeof *survey->rest)))
        abort ();
    survey->metad = metad;
    metad->surveys++;
    survey->part_count = (uint32_t)job->n_components;
    survey->done = done;
    survey->arg = arg;
    messages_copy (survey, envelope);
    if (pair_count)
        memcpy (survey->rest, pair, pair_count * sizeof *pair);
    survey->rest_count = pair_count;
    survey->wave = wave;
    if (replaces)
        memcpy (survey->replaces, replaces, sizeof survey->replaces);
    if (!wave_ask (survey))
        soon_call (metad->soon, nobody_to_ask, survey);
}

/* ---- what the answers mean */

time_us survey_start_of (const struct survey_offer *offer, time_us not_before)
{
    if (!not_before && offer->start_estimate)
        return offer->start_estimate;
    for (uint32_t i = 0; i < offer->start_count; i++)
        if (offer->starts[i].end >= not_before)
            return offer->starts[i].begin > not_before ? offer->starts[i].begin : not_before;
    if (!offer->start_estimate)
        return 0;
    return offer->start_estimate > not_before ? offer->start_estimate : not_before;
}

/* How first answers held, of such jobs. */
static struct choose_record record_of (const SiteReport *report, const char *class_name)
{
    struct choose_record record[2], *all = NULL, *of_class = NULL;
    for (size_t i = 0; report && i < report->n_records; i++) {
        const Nui__Common__V1__EstimateRecord *r = report->records[i];
        bool of_all = !*r->class_;
        if (strcmp (r->answers, "first") != 0 || (!of_all && strcmp (r->class_, class_name) != 0))
            continue;
        record[of_all] =
            (struct choose_record){r->uncertain, r->coverage95_ppm, r->bias_us, r->earned};
        *(of_all ? &all : &of_class) = &record[of_all];
    }
    return choose_record_of (all, of_class);
}

time_us survey_expected_of (const struct survey *survey, const struct survey_offer *offer,
                            time_us not_before)
{
    const SiteReport *report = survey->metad->site[offer->site]->report;
    time_us promised = survey_start_of (offer, not_before);
    if (!offer->forecast || !offer->forecast->median_us)
        return promised;
    struct choose_record record = record_of (report, survey->job->components[offer->part]->class_);
    time_us expected =
        choose_expected (offer->forecast->median_us, promised, offer->forecast->made_us, &record);
    return expected > not_before ? expected : not_before;
}

/* Why a site that was not asked cannot run the part; false when it might. */
static bool site_never (const ComponentMessage *component, const struct site *site, char *text,
                        size_t cap)
{
    struct err err;
    err_clear (&err);
    if (component_fits_some (component, site, &err) == 0)
        return false;
    text_copy (text, cap, err.text);
    return true;
}

bool survey_complete (const struct survey *survey, uint32_t part)
{
    struct metad *metad = survey->metad;
    const ComponentMessage *component = survey->job->components[part];
    for (uint32_t i = 0; i < metad->site_count; i++) {
        const struct site *site = metad->site[i];
        bool heard = false;
        char text[COALLOC_TEXT_MAX];
        if (!site->configured || !component_allows (component, site->name) ||
            site_never (component, site, text, sizeof text))
            continue;
        for (uint32_t k = 0; k < survey->offer_count; k++) {
            const struct survey_offer *offer = &survey->offer[k];
            if (offer->part != part || offer->site != i)
                continue;
            if (!offer->answered || (offer->feasible && !offer->priced))
                return false;
            heard = true;
        }
        if (!heard)
            return false;
    }
    return true;
}

bool survey_unasked (const struct survey *survey, uint32_t part, uint32_t index,
                     struct coalloc_reason *reason)
{
    struct metad *metad = survey->metad;
    const struct site *site = metad->site[index];
    const ComponentMessage *component = survey->job->components[part];
    char text[COALLOC_TEXT_MAX];
    for (uint32_t i = 0; i < survey->offer_count; i++)
        if (survey->offer[i].part == part && survey->offer[i].site == index)
            return false;
    if (!site->configured || !component_allows (component, site->name))
        return false;
    bool never = site_never (component, site, text, sizeof text);
    bool silent = !site_worth_asking (metad, site, clock_monotonic_us ());
    text_copy (reason->code, sizeof reason->code,
               never    ? "NeverFits"
               : silent ? "SiteDown"
                        : "NotAsked");
    text_copy (reason->text, sizeof reason->text,
               never    ? text
               : silent ? "the site does not report"
                        : "other sites promise an earlier end");
    return true;
}

/* What says most of the part at that site: a size that could run, else one that did not answer. */
static const struct survey_offer *offer_of (const struct survey *survey, uint32_t part,
                                            uint32_t site)
{
    const struct survey_offer *best = NULL;
    for (uint32_t i = 0; i < survey->offer_count; i++) {
        const struct survey_offer *offer = &survey->offer[i];
        if (offer->part != part || offer->site != site)
            continue;
        if (offer->answered && offer->feasible)
            return offer;
        if (!best || (best->answered && !offer->answered))
            best = offer;
    }
    return best;
}

enum survey_verdict survey_part (const struct survey *survey, uint32_t part,
                                 struct coalloc_reason *reason)
{
    struct metad *metad = survey->metad;
    const ComponentMessage *component = survey->job->components[part];
    struct strbuf never = STRBUF_INIT;
    struct strbuf silent = STRBUF_INIT;
    enum survey_verdict verdict = part_possible (survey, part) ? SURVEY_POSSIBLE : SURVEY_NEVER;
    for (uint32_t i = 0; i < metad->site_count && verdict != SURVEY_POSSIBLE; i++) {
        const struct site *site = metad->site[i];
        const struct survey_offer *offer = offer_of (survey, part, i);
        char text[COALLOC_TEXT_MAX];
        if (!site->configured || !component_allows (component, site->name))
            continue;
        if (offer && offer->answered) {
            strbuf_printf (&never, "%s%s: %s", never.len ? "; " : "", site->name,
                           offer->reason.text);
        } else if (site_never (component, site, text, sizeof text)) {
            strbuf_printf (&never, "%s%s", never.len ? "; " : "", text);
        } else {
            strbuf_printf (&silent, "%s%s", silent.len ? ", " : "", site->name);
        }
    }
    if (verdict == SURVEY_NEVER && silent.len) {
        verdict = SURVEY_SILENT;
        text_copy (reason->code, sizeof reason->code, "SiteDown");
        text_printf (reason->text, sizeof reason->text, "component %s waits for %.200s: no answer",
                     component->name, strbuf_text (&silent));
    } else if (verdict == SURVEY_NEVER) {
        text_copy (reason->code, sizeof reason->code, "Infeasible");
        text_printf (reason->text, sizeof reason->text, "component %s can never run: %.300s",
                     component->name,
                     never.len ? strbuf_text (&never) : "no configured site is allowed");
    }
    strbuf_free (&never);
    strbuf_free (&silent);
    return verdict;
}

void survey_problem (const struct survey *survey, struct arena *arena,
                     struct choose_problem *problem, uint32_t **index_out)
{
    struct choose_part *part = arena_array (arena, survey->part_count, sizeof *part);
    uint32_t *kind = survey_kinds (survey->job, arena);
    memset (problem, 0, sizeof *problem);
    for (uint32_t p = 0; p < survey->part_count; p++)
        part[p] = (struct choose_part){survey->job->components[p]->name,
                                       survey->job->components[p]->offset_us,
                                       survey->job->components[p]->walltime_us, kind[p]};
    problem->set = survey->set;
    problem->set_count = survey->set_count;
    problem->part = part;
    problem->part_count = survey->part_count;
    problem->offer = arena_array (arena, survey->offer_count + 1u, sizeof *problem->offer);
    *index_out = arena_array (arena, survey->offer_count + 1u, sizeof **index_out);
    struct gridlicence_view *view = gridlicence_view (survey, arena);
    for (uint32_t i = 0; i < survey->offer_count; i++) {
        const struct survey_offer *offer = &survey->offer[i];
        const struct site *site = survey->metad->site[offer->site];
        if (!offer->answered || !offer->feasible || !offer->priced)
            continue;
        uint32_t start_count;
        const struct choose_interval *starts = gridlicence_starts (view, offer, &start_count);
        (*index_out)[problem->offer_count] = i;
        problem->offer[problem->offer_count++] = (struct choose_offer){
            .part = offer->part,
            .site = offer->site,
            .shape = offer->shape,
            .walltime = jobshape_walltime (survey->job->components[offer->part], offer->shape),
            .procs = offer->procs,
            .site_procs = site->report ? site->report->procs_total : 0,
            .price = offer->price,
            .not_before = TIME_US_NONE,
            .starts = starts,
            .start_count = start_count};
    }
}
