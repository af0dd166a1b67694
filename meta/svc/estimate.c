/* The answer to Estimate: each way to run the job, best first. It only reads a survey, and reserves nothing. */
#include "meta/svc/estimate.h"

#include <stdlib.h>
#include <string.h>

#include "meta/core/choose.h"
#include "meta/job/check.h"
#include "meta/place/gridlicence.h"
#include "proto/job/jobcheck.h"

#define QUOTE_TIMEOUT (5 * US_PER_S)

typedef Nui__Meta__V1__Candidate Candidate;

struct estimate {
    struct rpccall *call;
    struct survey *survey;
    struct arena *arena;
    struct gridlicence_view *licences; /* NULL: the job needs none of the grid's */
    Candidate **candidate;
    uint32_t count;
    uint32_t outstanding; /* quotes under way */
};

struct quote_call {
    struct estimate *estimate;
    Candidate *candidate;
};

static Nui__Common__V1__Reason *reason_message (struct arena *arena, const char *code,
                                                const char *text)
{
    Nui__Common__V1__Reason *reason = arena_new (arena, Nui__Common__V1__Reason);
    nui__common__v1__reason__init (reason);
    reason->code = arena_strdup (arena, code);
    reason->text = arena_strdup (arena, text);
    return reason;
}

static Candidate *candidate_add (struct estimate *estimate, uint32_t sites)
{
    Candidate *candidate = arena_new (estimate->arena, Candidate);
    nui__meta__v1__candidate__init (candidate);
    candidate->n_sites = sites;
    candidate->sites = arena_array (estimate->arena, sites, sizeof *candidate->sites);
    candidate->tasks = arena_array (estimate->arena, sites, sizeof *candidate->tasks);
    for (uint32_t i = 0; i < sites; i++)
        candidate->sites[i] = (char *)protobuf_c_empty_string;
    estimate->candidate[estimate->count++] = candidate;
    return candidate;
}

static int text_compare (const Candidate *a, const Candidate *b)
{
    for (size_t i = 0; i < a->n_sites && i < b->n_sites; i++) {
        int order = strcmp (a->sites[i], b->sites[i]);
        if (order)
            return order;
    }
    return 0;
}

static bool candidate_better (const Candidate *a, const Candidate *b, enum choose_prefer prefer)
{
    if (a->feasible != b->feasible)
        return a->feasible;
    if (!a->feasible)
        return text_compare (a, b) < 0;
    if (a->funded != b->funded)
        return a->funded;
    /* Of completions, since a combination's parts may differ in length; the number stays open. */
    struct choose_candidate ca = {0, a->completion_us, 0, a->price_micro, a->funded, a->free_procs};
    struct choose_candidate cb = {0, b->completion_us, 0, b->price_micro, b->funded, b->free_procs};
    return choose_better (&ca, &cb, prefer);
}

/* Stable, so that what is alike keeps the order of the sites' numbers, as in choose_single. */
static void candidates_sort (Candidate **list, uint32_t count, enum choose_prefer prefer)
{
    for (uint32_t i = 1; i < count; i++) {
        Candidate *moved = list[i];
        uint32_t at = i;
        for (; at > 0 && candidate_better (moved, list[at - 1], prefer); at--)
            list[at] = list[at - 1];
        list[at] = moved;
    }
}

/* The size of part p: the tasks of its first req, which are different in each size. */
static void tasks_set (const struct survey *survey, Candidate *candidate, uint32_t p,
                       uint32_t shape)
{
    candidate->tasks[p] = jobshape_tasks (survey->job->components[p], shape, 0);
    candidate->n_tasks = candidate->n_sites;
}

/* The dearest way, whatever is chosen later: each component at its dearest site, in its dearest size. */
static void price_most (const struct survey *survey, Nui__Meta__V1__EstimateReply *reply)
{
    credit_micro most[COALLOC_PARTS_MAX] = {0};
    bool priced[COALLOC_PARTS_MAX] = {false};
    for (uint32_t i = 0; i < survey->offer_count; i++) {
        const struct survey_offer *offer = &survey->offer[i];
        if (!offer->priced)
            continue;
        priced[offer->part] = true;
        most[offer->part] = offer->price > most[offer->part] ? offer->price : most[offer->part];
    }
    reply->priced = true;
    for (uint32_t p = 0; p < survey->part_count; p++) {
        reply->priced = reply->priced && priced[p];
        if (credit_add (reply->price_most_micro, most[p], &reply->price_most_micro, NULL) < 0)
            reply->price_most_micro = INT64_MAX;
    }
}

static void finish (struct estimate *estimate)
{
    Nui__Meta__V1__EstimateReply reply = NUI__META__V1__ESTIMATE_REPLY__INIT;
    price_most (estimate->survey, &reply);
    candidates_sort (estimate->candidate, estimate->count, job_prefer (estimate->survey->job));
    reply.n_candidates = estimate->count;
    reply.candidates = estimate->candidate;
    rpccall_reply (estimate->call, &reply.base);
    survey_destroy (estimate->survey);
    arena_destroy (estimate->arena);
    free (estimate);
}

static void funds_unknown (struct estimate *estimate, Candidate *candidate)
{
    const struct coalloc_reason *bank = &estimate->survey->bank;
    candidate->funds_reason = reason_message (estimate->arena, bank->code, bank->text);
}

/* ---- one component: a candidate per site */

/* The earliest moment that the site could promise now: a reservation made then is kept. */
static time_us latest_of (const struct survey_offer *offer, time_us not_before)
{
    for (uint32_t i = 0; i < offer->start_count; i++)
        if (offer->starts[i].end >= not_before)
            return offer->starts[i].begin > not_before ? offer->starts[i].begin : not_before;
    return 0;
}

/* Which bound of the job a start that the site promises does not keep, and by how much. */
static Nui__Common__V1__Reason *out_of_bounds (struct estimate *estimate, const JobMessage *job,
                                               time_us start, duration_us walltime,
                                               credit_micro price)
{
    struct arena *arena = estimate->arena;
    char is[QUANTITY_TEXT_MAX], bound[QUANTITY_TEXT_MAX];
    if (job->cost_max_micro && price > job->cost_max_micro)
        return reason_message (arena, "TooExpensive",
                               arena_printf (arena, "costs %s, the job's bound is %s",
                                             credit_format (price, is),
                                             credit_format (job->cost_max_micro, bound)));
    if (job->not_after_us && start > job->not_after_us)
        return reason_message (arena, "TooLate",
                               arena_printf (arena, "starts at %s, the job's latest start is %s",
                                             time_format_table (start, is),
                                             time_format_table (job->not_after_us, bound)));
    return reason_message (arena, "Deadline",
                           arena_printf (arena, "ends at %s, the job's deadline is %s",
                                         time_format_table (start + walltime, is),
                                         time_format_table (job->deadline_us, bound)));
}

static void site_candidate (struct estimate *estimate, const struct survey_offer *offer)
{
    const struct survey *survey = estimate->survey;
    const struct site *site = survey->metad->site[offer->site];
    const JobMessage *job = survey->job;
    Candidate *candidate = candidate_add (estimate, 1);
    candidate->sites[0] = arena_strdup (estimate->arena, offer->site_name);
    tasks_set (survey, candidate, 0, offer->shape);
    candidate->free_procs = site->report ? site->report->procs_free : 0;
    candidate->reason = reason_message (estimate->arena, offer->reason.code, offer->reason.text);
    if (!offer->answered || !offer->feasible)
        return;
    time_us promised = survey_start_of (offer, job->not_before_us);
    candidate->start_us = survey_expected_of (survey, offer, job->not_before_us);
    candidate->latest_us = latest_of (offer, job->not_before_us);
    if (estimate->licences) { /* it gets a slot, and no place in the queue */
        struct coalloc_reason why = offer->reason;
        time_us soonest = clock_now_us () + survey->metad->config->policy.lead;
        promised =
            gridlicence_start (estimate->licences, offer,
                               job->not_before_us > soonest ? job->not_before_us : soonest, &why);
        candidate->start_us = candidate->latest_us = promised;
        candidate->reason = reason_message (estimate->arena, why.code, why.text);
    }
    duration_us walltime = jobshape_walltime (job->components[0], offer->shape);
    candidate->completion_us = candidate->start_us + walltime;
    candidate->forecast = offer->forecast;
    candidate->feasible = promised != 0 &&
                          (!job->deadline_us || promised + walltime <= job->deadline_us) &&
                          (!job->not_after_us || promised <= job->not_after_us) &&
                          (!job->cost_max_micro || offer->price <= job->cost_max_micro);
    if (!candidate->feasible && promised)
        candidate->reason = out_of_bounds (estimate, job, promised, walltime, offer->price);
    else if (!candidate->feasible && !estimate->licences)
        candidate->reason =
            reason_message (estimate->arena, "NoResources", "no start within the site's horizon");
    candidate->price_micro = offer->price;
    candidate->funded = offer->priced && offer->funded;
    candidate->account = arena_strdup (estimate->arena, offer->account);
    if (!candidate->funded)
        funds_unknown (estimate, candidate);
}

/* Sites that were not asked: too small by their report, or silent. */
static void sites_unasked (struct estimate *estimate)
{
    const struct survey *survey = estimate->survey;
    for (uint32_t i = 0; i < survey->metad->site_count; i++) {
        struct coalloc_reason why;
        if (!survey_unasked (survey, 0, i, &why))
            continue;
        Candidate *candidate = candidate_add (estimate, 1);
        candidate->sites[0] = arena_strdup (estimate->arena, survey->metad->site[i]->name);
        candidate->reason = reason_message (estimate->arena, why.code, why.text);
    }
}

/* ---- several: the best combination, and the best with each other site in turn */

static bool combination_known (const struct estimate *estimate, const Candidate *candidate)
{
    for (uint32_t i = 0; i + 1 < estimate->count; i++)
        if (text_compare (estimate->candidate[i], candidate) == 0 &&
            memcmp (estimate->candidate[i]->tasks, candidate->tasks,
                    candidate->n_sites * sizeof *candidate->tasks) == 0)
            return true;
    return false;
}

/* What keeps the combination from an earlier moment: the part that can start last, for its site's reason or
 * for want of a licence. */
static void reason_of_last (struct estimate *estimate, const struct choose_problem *problem,
                            const struct choose_result *result, Candidate *candidate)
{
    const struct survey *survey = estimate->survey;
    time_us now = clock_now_us () + survey->metad->config->policy.lead, last = now;
    for (uint32_t i = 0; i < survey->offer_count; i++) {
        const struct survey_offer *offer = &survey->offer[i];
        const struct choose_offer *chosen = &problem->offer[result->offer[offer->part]];
        const ComponentMessage *component = survey->job->components[offer->part];
        time_us least = survey->job->not_before_us + component->offset_us;
        struct coalloc_reason why = offer->reason;
        if (chosen->site != offer->site || chosen->shape != offer->shape)
            continue;
        least = least > now ? least : now;
        time_us start = estimate->licences
                            ? gridlicence_start (estimate->licences, offer, least, &why)
                            : latest_of (offer, least);
        if (start - component->offset_us <= last || !why.text[0])
            continue;
        last = start - component->offset_us;
        candidate->reason =
            reason_message (estimate->arena, why.code,
                            arena_printf (estimate->arena, "%s at %s: %s", component->name,
                                          offer->site_name, why.text));
    }
}

static void combination_add (struct estimate *estimate, const struct choose_problem *problem,
                             const struct choose_result *result)
{
    const struct survey *survey = estimate->survey;
    Candidate *candidate = candidate_add (estimate, survey->part_count);
    for (uint32_t p = 0; p < survey->part_count; p++) {
        const struct choose_offer *offer = &problem->offer[result->offer[p]];
        const struct site *site = survey->metad->site[offer->site];
        const struct choose_part *part = &problem->part[p];
        time_us end = result->start + part->offset + offer->walltime;
        bool seen = false;
        candidate->sites[p] = arena_strdup (estimate->arena, site->name);
        tasks_set (survey, candidate, p, offer->shape);
        for (uint32_t k = 0; k < p; k++)
            seen = seen || strcmp (candidate->sites[k], site->name) == 0;
        if (!seen && site->report)
            candidate->free_procs += site->report->procs_free;
        if (end > candidate->completion_us)
            candidate->completion_us = end;
    }
    reason_of_last (estimate, problem, result, candidate);
    candidate->feasible = true;
    candidate->start_us = result->start;
    candidate->price_micro = result->price;
    if (combination_known (estimate, candidate))
        estimate->count--;
}

static void problem_bounds (const struct survey *survey, struct choose_problem *problem)
{
    const struct metad_config *config = survey->metad->config;
    problem->now = clock_now_us () + config->policy.lead;
    problem->not_before = survey->job->not_before_us;
    problem->not_after = survey->job->not_after_us;
    problem->deadline = survey->job->deadline_us;
    problem->prefer = job_prefer (survey->job);
    problem->cost_max = survey->job->cost_max_micro;
}

/* The same problem with the part of that offer only there. */
static const struct choose_problem *
problem_with (struct estimate *estimate, const struct choose_problem *problem, uint32_t fixed)
{
    struct choose_problem *narrow = arena_memdup (estimate->arena, problem, sizeof *problem);
    narrow->offer = arena_array (estimate->arena, problem->offer_count, sizeof *narrow->offer);
    narrow->offer_count = 0;
    for (uint32_t o = 0; o < problem->offer_count; o++)
        if (o == fixed || problem->offer[o].part != problem->offer[fixed].part)
            narrow->offer[narrow->offer_count++] = problem->offer[o];
    return narrow;
}

static void combination_none (struct estimate *estimate, const struct err *why)
{
    const struct survey *survey = estimate->survey;
    Candidate *candidate = candidate_add (estimate, survey->part_count);
    candidate->reason = reason_message (estimate->arena, "NoCommonSlot", why->text);
    for (uint32_t p = 0; p < survey->part_count; p++) {
        struct coalloc_reason reason = {"", ""};
        if (survey_part (survey, p, &reason) != SURVEY_POSSIBLE) {
            candidate->reason = reason_message (estimate->arena, reason.code, reason.text);
            return;
        }
    }
    if (!survey->priced)
        candidate->reason = reason_message (estimate->arena, survey->bank.code, survey->bank.text);
}

static void combination_quoted (void *arg, const struct rpc_result *result)
{
    struct quote_call *call = arg;
    struct estimate *estimate = call->estimate;
    Candidate *candidate = call->candidate;
    free (call);
    if (result->status == RPC_OK) {
        const Nui__Bank__V1__QuoteReply *reply = (const Nui__Bank__V1__QuoteReply *)result->reply;
        candidate->funded = reply->funded;
        candidate->price_micro = reply->total_micro;
        candidate->account = arena_strdup (estimate->arena, reply->account);
        if (!reply->funded) {
            struct coalloc_reason reason;
            funding_text (reply, &reason);
            candidate->funds_reason = reason_message (estimate->arena, reason.code, reason.text);
        }
    } else {
        candidate->funds_reason = reason_message (estimate->arena, "BankDown", result->message);
    }
    if (--estimate->outstanding == 0)
        finish (estimate);
}

static void combination_quote (struct estimate *estimate, Candidate *candidate)
{
    const struct survey *survey = estimate->survey;
    Nui__Bank__V1__QuoteRequest request = NUI__BANK__V1__QUOTE_REQUEST__INIT;
    struct quote_call *call = malloc (sizeof *call);
    if (!call)
        abort ();
    *call = (struct quote_call){estimate, candidate};
    request.envelope = survey->envelope;
    request.all_of = true;
    request.items = arena_array (estimate->arena, survey->part_count, sizeof *request.items);
    for (uint32_t p = 0; p < survey->part_count; p++)
        for (uint32_t i = 0; i < survey->offer_count; i++)
            if (survey->offer[i].part == p &&
                strcmp (survey->offer[i].site_name, candidate->sites[p]) == 0 &&
                jobshape_tasks (survey->job->components[p], survey->offer[i].shape, 0) ==
                    candidate->tasks[p])
                request.items[request.n_items++] =
                    price_item (survey->job, &survey->offer[i], estimate->arena);
    estimate->outstanding++;
    link_call (survey->metad->bank, "Quote", &request.base, QUOTE_TIMEOUT, combination_quoted,
               call);
}

/* Both send each part to the same site, in the same size. */
static bool same_way (const struct survey_choice *a, const struct survey_choice *b)
{
    for (uint32_t p = 0; p < a->problem->part_count; p++) {
        const struct choose_offer *x = &a->problem->offer[a->result.offer[p]];
        const struct choose_offer *y = &b->problem->offer[b->result.offer[p]];
        if (x->site != y->site || x->shape != y->shape)
            return false;
    }
    return true;
}

static void combinations_done (struct estimate *estimate);

static void combinations_again (void *arg, struct survey *survey)
{
    struct estimate *estimate = arg;
    estimate->survey = survey;
    combinations_done (estimate);
}

/* The best way, and the best with each other site in turn. False: sites are asked whether they can run several parts of
 * one of these together, and combinations_again is called with their answers. */
static bool combinations (struct estimate *estimate)
{
    const struct survey *survey = estimate->survey;
    struct choose_problem *problem = arena_new (estimate->arena, struct choose_problem);
    struct survey_choice *way =
        arena_array (estimate->arena, ESTIMATE_COMBINATIONS_MAX + 1, sizeof *way);
    uint32_t *index, count;
    struct err why;
    err_clear (&why);
    survey_problem (survey, estimate->arena, problem, &index);
    problem_bounds (survey, problem);
    way[0].problem = problem;
    if (choose_group (problem, &way[0].result, &why)) {
        combination_none (estimate, &why);
        return true;
    }
    count = 1;
    for (uint32_t o = 0; o < problem->offer_count && count < ESTIMATE_COMBINATIONS_MAX; o++) {
        way[count].problem = problem_with (estimate, problem, o);
        bool fresh = choose_group (way[count].problem, &way[count].result, NULL) == 0;
        for (uint32_t i = 0; i < count && fresh; i++)
            fresh = !same_way (&way[i], &way[count]);
        count += fresh;
    }
    if (survey_together (estimate->survey, way, count, false, combinations_again, estimate))
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (survey_sure (&way[i])) /* else there was no end of asking */
            combination_add (estimate, way[i].problem, &way[i].result);
    if (estimate->count == 0) {
        err_set (&why, ERR_NOT_FOUND, "too many combinations of sites to ask for all of them");
        combination_none (estimate, &why);
    }
    return true;
}

static void combinations_done (struct estimate *estimate)
{
    if (!combinations (estimate))
        return;
    uint32_t count = estimate->count;
    estimate->outstanding = 1; /* holds it open while the quotes go out */
    for (uint32_t i = 0; i < count; i++)
        if (estimate->candidate[i]->feasible)
            combination_quote (estimate, estimate->candidate[i]);
    if (--estimate->outstanding == 0)
        finish (estimate);
}

void estimate_answer (struct rpccall *call, struct survey *survey, bool bound_only)
{
    struct estimate *estimate = calloc (1, sizeof *estimate);
    if (!estimate) {
        rpccall_finish (call, RPC_RESOURCE_EXHAUSTED, "no memory for an estimate");
        survey_destroy (survey);
        return;
    }
    estimate->call = call;
    estimate->survey = survey;
    estimate->arena = arena_create (0);
    estimate->licences = gridlicence_view (survey, estimate->arena);
    estimate->candidate = arena_array (estimate->arena,
                                       survey->metad->site_count + survey->offer_count +
                                           ESTIMATE_COMBINATIONS_MAX + 2u,
                                       sizeof *estimate->candidate);
    if (bound_only) {
        finish (estimate);
        return;
    }
    if (survey->part_count == 1) {
        for (uint32_t i = 0; i < survey->offer_count; i++)
            site_candidate (estimate, &survey->offer[i]);
        sites_unasked (estimate);
        finish (estimate);
        return;
    }
    combinations_done (estimate);
}
