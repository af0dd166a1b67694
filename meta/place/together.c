/* Asks sites whether several parts of a job fit together there, once a choice would send them there. Called between the answers
 * of a survey and the choice (group, estimates, a job's bounds at its Submit); each answer enters the next choice
 * (choose.h), so that a refusal is no surprise. It chooses nothing, and reserves nothing. */
#include "meta/place/survey.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "meta/job/sites.h"
#include "meta/place/gridlicence.h"
#include "proto/base/clock.h"
#include "proto/job/jobcheck.h"

#define QUERY_TIMEOUT (5 * US_PER_S)

struct set_call {
    struct survey *survey;
    uint32_t set;
    uint32_t part; /* that is asked about first: moments are its own starts */
};

void survey_sets_free (struct survey *survey)
{
    for (uint32_t i = 0; i < survey->set_count; i++)
        free ((void *)survey->set[i].step);
    free (survey->set);
    survey->set = NULL;
    survey->set_count = 0;
}

/* ---- who is like whom */

/* All that a site reads of a component when it looks for a place, and where it may go. */
static uint8_t *kind_key (const ComponentMessage *component, size_t *len, struct arena *arena)
{
    ComponentMessage read = *component;
    read.name = read.stdout_name = read.stderr_name = (char *)protobuf_c_empty_string;
    read.script = (ProtobufCBinaryData){0, NULL};
    read.n_args = read.n_env = read.n_stage_out = 0;
    *len = nui__common__v1__component__get_packed_size (&read);
    uint8_t *key = arena_alloc (arena, *len + 1);
    nui__common__v1__component__pack (&read, key);
    return key;
}

uint32_t *survey_kinds (const JobMessage *job, struct arena *arena)
{
    uint32_t *kind = arena_array (arena, job->n_components + 1, sizeof *kind);
    uint8_t **key = arena_array (arena, job->n_components + 1, sizeof *key);
    size_t *len = arena_array (arena, job->n_components + 1, sizeof *len);
    for (uint32_t p = 0; p < job->n_components; p++) {
        key[p] = kind_key (job->components[p], &len[p], arena);
        kind[p] = p + 1;
        for (uint32_t q = 0; q < p && kind[p] == p + 1; q++)
            if (len[q] == len[p] && memcmp (key[q], key[p], len[p]) == 0)
                kind[p] = kind[q];
    }
    return kind;
}

/* ---- asking */

static void survey_asked (struct survey *survey)
{
    if (--survey->outstanding)
        return;
    survey->metad->surveys--;
    survey->done (survey->arg, survey);
}

static void steps_take (struct choose_set *set, const Nui__Local__V1__QueryReply *reply,
                        duration_us offset)
{
    size_t count = reply->n_together;
    if (count > CHOOSE_INTERVALS_MAX)
        count = CHOOSE_INTERVALS_MAX;
    struct choose_step *step = calloc (count + 1, sizeof *step);
    assert (step && "out of memory");
    for (size_t i = 0; i < count; i++) {
        const Nui__Local__V1__Together *t = reply->together[i];
        if (t->begin_us < 0 || t->end_us < t->begin_us ||
            (set->step_count && t->begin_us - offset <= step[set->step_count - 1].end))
            continue; /* nothing that is ascending */
        step[set->step_count++] = (struct choose_step){
            t->begin_us - offset,
            t->end_us == INT64_MAX ? INT64_MAX : t->end_us - offset,
            t->members < set->count ? t->members : set->count,
        };
    }
    set->step = step;
}

/* A site that does not answer, or is too old for such a question, is taken at its word for each part alone. */
static void set_done (void *arg, const struct rpc_result *result)
{
    struct set_call *call = arg;
    struct survey *survey = call->survey;
    struct choose_set *set = &survey->set[call->set];
    duration_us offset = survey->job->components[call->part]->offset_us;
    set->until = INT64_MAX;
    if (result->status == RPC_OK) {
        const Nui__Local__V1__QueryReply *reply = (const Nui__Local__V1__QueryReply *)result->reply;
        set->looked = reply->together_looked < set->count ? reply->together_looked : set->count;
        if (!reply->feasible)
            set->looked = 0;
        if (set->looked) {
            steps_take (set, reply, offset);
            set->until = reply->together_until_us - offset;
            if (set->until < set->from)
                set->until = set->from;
        }
    }
    free (call);
    survey_asked (survey);
}

/* They stay where they are: problems point to them. */
static struct choose_set *set_add (struct survey *survey)
{
    if (!survey->set)
        survey->set = calloc (SURVEY_SETS_MAX, sizeof *survey->set);
    assert (survey->set && "out of memory");
    struct choose_set *set = &survey->set[survey->set_count++];
    memset (set, 0, sizeof *set);
    return set;
}

/* Names of licences that the metascheduler counts for any of them. */
static char **licences_of (const struct survey *survey, const struct choose_set *set,
                           struct arena *arena, size_t *count_out)
{
    size_t all = 0;
    for (uint32_t m = 0; m < set->count; m++)
        all += survey->job->components[set->part[m]]->n_licences;
    char **name = arena_array (arena, all + 1, sizeof *name);
    *count_out = 0;
    for (uint32_t m = 0; m < set->count; m++) {
        size_t count;
        char **of =
            gridlicence_named (survey->metad, survey->job->components[set->part[m]], arena, &count);
        for (size_t i = 0; i < count; i++)
            name[(*count_out)++] = of[i];
    }
    return name;
}

static void set_ask (struct survey *survey, uint32_t index)
{
    struct arena *arena = arena_create (0);
    const struct choose_set *set = &survey->set[index];
    const JobMessage *job = survey->job;
    const ComponentMessage *first = job->components[set->part[0]];
    Nui__Local__V1__QueryRequest request = NUI__LOCAL__V1__QUERY_REQUEST__INIT;
    struct set_call *call = malloc (sizeof *call);
    assert (call && "out of memory");
    *call = (struct set_call){survey, index, set->part[0]};
    request.envelope = survey->envelope;
    request.component = first->name;
    request.shape = set->shape[0];
    request.depends_met = true;
    request.replaces = survey_replaces (survey);
    request.window_begin_us = set->from + first->offset_us;
    request.window_end_us = clock_now_us () + survey->metad->config->horizon;
    request.grid_licences = licences_of (survey, set, arena, &request.n_grid_licences);
    request.others = arena_array (arena, set->count, sizeof *request.others);
    for (uint32_t m = 1; m < set->count; m++) {
        Nui__Local__V1__QueryMember *other = arena_new (arena, Nui__Local__V1__QueryMember);
        nui__local__v1__query_member__init (other);
        other->component = job->components[set->part[m]]->name;
        other->shape = set->shape[m];
        request.others[request.n_others++] = other;
    }
    survey->outstanding++;
    link_call (survey->metad->site[set->site]->link, "Query", &request.base, QUERY_TIMEOUT,
               set_done, call);
    arena_destroy (arena);
}

/* ---- what is in doubt */

/* It has reported so much free, and they are to start now: a NO is unlikely, and would only cost a try. */
static bool surely_free (const struct survey *survey, const struct choose_set *set, uint64_t procs,
                         time_us now)
{
    const SiteReport *report = survey->metad->site[set->site]->report;
    return report && report->procs_free >= procs && set->from <= now + US_PER_S;
}

static bool set_known (const struct survey *survey, const struct choose_set *set)
{
    for (uint32_t i = 0; i + 1 < survey->set_count; i++) {
        const struct choose_set *old = &survey->set[i];
        if (old->site == set->site && old->from == set->from && old->count == set->count &&
            memcmp (old->part, set->part, set->count * sizeof *set->part) == 0 &&
            memcmp (old->shape, set->shape, set->count * sizeof *set->shape) == 0)
            return true;
    }
    return false;
}

/* One choice's doubts become questions. */
static void doubts_add (struct survey *survey, const struct survey_choice *choice, bool lenient)
{
    const struct choose_problem *problem = choice->problem;
    uint32_t site[CHOOSE_PARTS_MAX], count = choose_doubts (problem, &choice->result, site);
    for (uint32_t i = 0; i < count && survey->set_count < SURVEY_SETS_MAX; i++) {
        struct choose_set *set = set_add (survey);
        uint64_t procs = 0;
        set->site = site[i];
        set->from = choice->result.start;
        for (uint32_t p = 0; p < problem->part_count; p++) {
            const struct choose_offer *offer = &problem->offer[choice->result.offer[p]];
            if (offer->site != site[i])
                continue;
            set->part[set->count] = p;
            set->shape[set->count++] = offer->shape;
            procs += offer->procs;
        }
        if (set_known (survey, set) || (lenient && surely_free (survey, set, procs, problem->now)))
            survey->set_count--;
    }
}

bool survey_together (struct survey *survey, const struct survey_choice *choice, uint32_t count,
                      bool lenient, void (*done) (void *arg, struct survey *survey), void *arg)
{
    uint32_t first = survey->set_count;
    if (survey->rounds >= SURVEY_ROUNDS || survey->metad->stopping)
        return false;
    for (uint32_t i = 0; i < count; i++)
        doubts_add (survey, &choice[i], lenient);
    if (survey->set_count == first)
        return false;
    survey->rounds++;
    survey->done = done;
    survey->arg = arg;
    survey->metad->surveys++;
    survey->outstanding = 1; /* holds it open while the questions go out */
    for (uint32_t i = first; i < survey->set_count; i++)
        set_ask (survey, i);
    survey->outstanding--;
    return true;
}

bool survey_sure (const struct survey_choice *choice)
{
    uint32_t site[CHOOSE_PARTS_MAX];
    return choose_doubts (choice->problem, &choice->result, site) == 0;
}
