/* The grid's licences through time. What is reserved is read from the records of the live jobs each time it is asked, and
 * kept nowhere else: a second table could differ from them, or be lost. */
#include "meta/place/gridlicence.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "meta/job/peers.h"
#include "proto/base/text.h"
#include "proto/job/jobcheck.h"

enum { STEPS_MAX = 1000 };

typedef Nui__Common__V1__GenericResource Asked;

struct gridlicence_view {
    const struct survey *survey;
    struct arena *arena;
    struct licence_booking *booking;
    uint32_t count;
    struct licence_change *scratch;
};

/* ---- names and numbers */

static uint32_t find (const struct metad *metad, const char *name)
{
    const struct metad_config *config = metad->config;
    for (uint32_t i = 0; i < config->licence_count; i++)
        if (strcmp (config->licence[i].name, name) == 0)
            return i;
    return UINT32_MAX;
}

/* What this metascheduler gives out: in a group what is left over goes to the first ones. */
static uint32_t share (const struct metad *metad, uint32_t licence)
{
    uint32_t count = (uint32_t)metad->config->licence[licence].count;
    const struct peers *peers = metad->peers;
    if (!peers)
        return count;
    return count / peers->count + (peers->self < count % peers->count);
}

static uint32_t asked_count (const Asked *asked)
{
    return asked->count ? asked->count : 1;
}

static uint64_t component_asks (const struct metad *metad, const ComponentMessage *component,
                                uint32_t licence)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < component->n_licences; i++)
        if (find (metad, component->licences[i]->name) == licence)
            sum += asked_count (component->licences[i]);
    return sum;
}

/* Of all components: they may run at one time. */
static uint64_t job_asks (const struct metad *metad, const JobMessage *job, uint32_t licence)
{
    uint64_t sum = 0;
    for (size_t c = 0; c < job->n_components; c++)
        sum += component_asks (metad, job->components[c], licence);
    return sum;
}

bool gridlicence_asked (const struct metad *metad, const JobMessage *job)
{
    for (size_t c = 0; c < job->n_components; c++)
        for (size_t i = 0; i < job->components[c]->n_licences; i++)
            if (find (metad, job->components[c]->licences[i]->name) != UINT32_MAX)
                return true;
    return false;
}

int gridlicence_check (const struct metad *metad, const JobMessage *job, struct err *err)
{
    const struct metad_config *config = metad->config;
    bool any = false;
    for (uint32_t l = 0; l < config->licence_count; l++) {
        uint64_t asks = job_asks (metad, job, l);
        any = any || asks;
        if (asks > share (metad, l))
            return err_set (err, ERR_LIMIT, "the job asks for %llu of licence %s, %s %u",
                            (unsigned long long)asks, config->licence[l].name,
                            metad->peers ? "this metascheduler gives out" : "the grid has",
                            share (metad, l));
    }
    if (any && job->array_limit)
        return err_set (err, ERR_INVALID,
                        "an array whose jobs ask for licences of the grid cannot be limited "
                        "to some at a time: each is reserved for a moment");
    return 0;
}

char **gridlicence_named (const struct metad *metad, const ComponentMessage *component,
                          struct arena *arena, size_t *count_out)
{
    char **name = arena_array (arena, component->n_licences + 1, sizeof *name);
    *count_out = 0;
    for (size_t i = 0; i < component->n_licences; i++)
        if (find (metad, component->licences[i]->name) != UINT32_MAX)
            name[(*count_out)++] = component->licences[i]->name;
    return name;
}

/* ---- what is reserved */

static void gridlicence_job_listed (struct gridjob *job)
{
    for (size_t c = 0; c < job->job->n_components && !job->licensed; c++)
        job->licensed = job->job->components[c]->n_licences > 0;
    if (job->licensed)
        DL_APPEND2 (job->metad->licensed, job, licensed_prev, licensed_next);
}

static void gridlicence_job_unlisted (struct gridjob *job)
{
    if (job->licensed)
        DL_DELETE2 (job->metad->licensed, job, licensed_prev, licensed_next);
    job->licensed = false;
}

static bool holds (const struct coalloc_record *record)
{
    return record && record->phase >= COALLOC_PREPARE && record->phase != COALLOC_ENDED;
}

/* START has been written down: it may have left. */
static bool was_let_go (const struct coalloc_record *record)
{
    return record->phase >= COALLOC_START && record->start_at != 0;
}

static bool part_over (enum part_state state)
{
    return state == PART_ENDED || state == PART_GONE || state == PART_REFUSED;
}

static void record_list (const struct gridjob *job, const struct coalloc_record *record,
                         time_us now, struct licence_booking *out, uint32_t *count)
{
    bool let_go = was_let_go (record);
    time_us common = let_go ? record->start_at : record->slot_start;
    for (uint32_t p = 0; p < record->part_count; p++) {
        const ComponentMessage *component = job->job->components[p];
        const struct coalloc_part *part = &record->part[p];
        time_us begin = common + part->offset;
        for (size_t i = 0; i < component->n_licences && !part_over (part->state); i++) {
            uint32_t licence = find (job->metad, component->licences[i]->name);
            if (licence == UINT32_MAX)
                continue;
            if (!let_go && begin < now) /* it waits at the barrier */
                begin = now;
            out[(*count)++] = (struct licence_booking){licence,
                                                       asked_count (component->licences[i]),
                                                       begin,
                                                       licence_end (begin, part->walltime, now),
                                                       job->number,
                                                       let_go,
                                                       record == job->slide};
        }
    }
}

static struct licence_booking *list (const struct metad *metad, struct arena *arena,
                                     uint32_t *count)
{
    time_us now = clock_now_us ();
    size_t most = 1;
    struct gridjob *job;
    DL_FOREACH2 (metad->licensed, job, licensed_next)
    for (size_t c = 0; c < job->job->n_components; c++)
        most += 2 * job->job->components[c]->n_licences;
    struct licence_booking *out = arena_array (arena, most, sizeof *out);
    *count = 0;
    DL_FOREACH2 (metad->licensed, job, licensed_next)
    {
        if (job_ended (job) || (job_is_elsewhere (job) && !job_is_own (job)))
            continue;
        if (holds (job->record))
            record_list (job, job->record, now, out, count);
        if (holds (job->slide))
            record_list (job, job->slide, now, out, count);
    }
    return out;
}

/* ---- CHOOSE */

struct gridlicence_view *gridlicence_view (const struct survey *survey, struct arena *arena)
{
    if (!gridlicence_asked (survey->metad, survey->job))
        return NULL;
    struct gridlicence_view *view = arena_alloc (arena, sizeof *view);
    view->survey = survey;
    view->arena = arena;
    view->booking = list (survey->metad, arena, &view->count);
    view->scratch = arena_array (arena, 2 * (size_t)view->count + 1, sizeof *view->scratch);
    return view;
}

static struct licence_need need_of (const struct metad *metad, const JobMessage *job,
                                    uint32_t licence)
{
    uint64_t asks = job_asks (metad, job, licence);
    return (struct licence_need){licence, asks > UINT32_MAX ? UINT32_MAX : (uint32_t)asks,
                                 share (metad, licence)};
}

/* Where one licence is there throughout, within what the offer's moments span. */
static uint32_t licence_alone (struct gridlicence_view *view, const struct survey_offer *offer,
                               const struct licence_need *need, struct choose_interval *out)
{
    const struct survey *survey = view->survey;
    duration_us walltime = jobshape_walltime (survey->job->components[offer->part], offer->shape);
    return licence_starts (view->booking, view->count, survey->asker, need, walltime,
                           offer->starts[0].begin, offer->starts[offer->start_count - 1].end,
                           view->scratch, out, CHOOSE_INTERVALS_MAX);
}

const struct choose_interval *gridlicence_starts (struct gridlicence_view *view,
                                                  const struct survey_offer *offer,
                                                  uint32_t *count_out)
{
    const struct choose_interval *now = offer->starts;
    *count_out = offer->start_count;
    if (!view)
        return now;
    const struct metad *metad = view->survey->metad;
    const ComponentMessage *component = view->survey->job->components[offer->part];
    for (uint32_t l = 0; l < metad->config->licence_count && *count_out; l++) {
        if (!component_asks (metad, component, l))
            continue;
        struct licence_need need = need_of (metad, view->survey->job, l);
        struct choose_interval *alone =
            arena_array (view->arena, CHOOSE_INTERVALS_MAX, sizeof *alone);
        struct choose_interval *both =
            arena_array (view->arena, CHOOSE_INTERVALS_MAX, sizeof *both);
        uint32_t count = licence_alone (view, offer, &need, alone);
        *count_out = licence_both (now, *count_out, alone, count, both, CHOOSE_INTERVALS_MAX);
        now = both;
    }
    return now;
}

static time_us first_from (const struct choose_interval *v, uint32_t count, time_us from)
{
    for (uint32_t i = 0; i < count; i++)
        if (v[i].end >= from)
            return v[i].begin > from ? v[i].begin : from;
    return 0;
}

static void reason_fill (struct gridlicence_view *view, const struct survey_offer *offer,
                         time_us wanted, struct coalloc_reason *reason)
{
    const struct metad *metad = view->survey->metad;
    const ComponentMessage *component = view->survey->job->components[offer->part];
    time_us latest = wanted;
    for (uint32_t l = 0; l < metad->config->licence_count; l++) {
        if (!component_asks (metad, component, l))
            continue;
        struct licence_need need = need_of (metad, view->survey->job, l);
        struct choose_interval *alone =
            arena_array (view->arena, CHOOSE_INTERVALS_MAX, sizeof *alone);
        time_us free = first_from (alone, licence_alone (view, offer, &need, alone), wanted);
        struct licence_step step[1];
        char when[QUANTITY_TEXT_MAX];
        if (free && free <= latest)
            continue;
        latest = free ? free : INT64_MAX;
        licence_steps (view->booking, view->count, l, wanted, view->scratch, step, 1);
        uint64_t left = step[0].booked < need.total ? need.total - step[0].booked : 0;
        snprintf (reason->code, sizeof reason->code, "Licence");
        text_printf (reason->text, sizeof reason->text,
                     "waits for %u of licence %s: %llu of %u free%s, %s%s", need.count,
                     metad->config->licence[l].name, (unsigned long long)left, need.total,
                     left >= need.count ? " but not for so long" : "",
                     free ? "enough from " : "not enough in the site's horizon",
                     free ? time_format_table (free, when) : "");
    }
}

time_us gridlicence_start (struct gridlicence_view *view, const struct survey_offer *offer,
                           time_us not_before, struct coalloc_reason *reason)
{
    uint32_t count;
    time_us wanted = first_from (offer->starts, offer->start_count, not_before);
    const struct choose_interval *with = gridlicence_starts (view, offer, &count);
    time_us start = first_from (with, count, not_before);
    if (wanted && start != wanted)
        reason_fill (view, offer, wanted, reason);
    return start;
}

/* ---- START, and what is given back */

bool gridlicence_withhold (const struct gridjob *job, const struct coalloc_record *record)
{
    const struct metad *metad = job->metad;
    bool withhold = false;
    if (!job->licensed || record->ran) /* or an earlier coordinator let it go */
        return false;
    struct arena *arena = arena_create (0);
    uint32_t count = 0;
    struct licence_booking *booking = list (metad, arena, &count);
    for (uint32_t l = 0; l < metad->config->licence_count && !withhold; l++) {
        struct licence_need need = need_of (metad, job->job, l);
        withhold = need.count && !licence_fits (booking, count, job->number, &need);
    }
    arena_destroy (arena);
    return withhold;
}

static void gridlicence_job_saved (struct gridjob *job, bool with_record)
{
    struct gridjob *other;
    (void)with_record;
    if (!job->licensed || !job_ended (job) || job->saved_state == job->state)
        return;
    DL_FOREACH2 (job->metad->licensed, other, licensed_next)
    {
        if (other == job || job_ended (other) || !other->record ||
            other->record->phase != COALLOC_READY)
            continue;
        other->look_mono = clock_monotonic_us ();
        job_timer (other, 0);
    }
}

const struct metad_part gridlicence_part = {
    .job_listed = gridlicence_job_listed,
    .job_unlisted = gridlicence_job_unlisted,
    .job_saved = gridlicence_job_saved,
};

/* ---- nui licences */

static void uses_fill (const struct metad *metad, const struct principal *peer, const char *uri,
                       uint32_t licence, const struct licence_booking *booking, uint32_t count,
                       struct arena *arena, Nui__Meta__V1__LicenceState *state)
{
    state->uses = arena_array (arena, count + 1u, sizeof *state->uses);
    for (uint32_t i = 0; i < count; i++) {
        const struct licence_booking *b = &booking[i];
        struct gridjob *job =
            b->licence == licence && !b->other ? job_live ((struct metad *)metad, b->owner) : NULL;
        if (!job || (peer->kind != PRINCIPAL_OPERATOR && strcmp (job->submitter, uri) != 0))
            continue;
        Nui__Meta__V1__LicenceUse *use = arena_new (arena, Nui__Meta__V1__LicenceUse);
        nui__meta__v1__licence_use__init (use);
        use->grid_job_id = job->id;
        use->submitter = job->submitter;
        use->count = b->count;
        use->begin_us = b->begin;
        use->end_us = b->end;
        use->in_use = b->let_go;
        state->uses[state->n_uses++] = use;
    }
}

static void steps_fill (uint32_t licence, const struct licence_booking *booking, uint32_t count,
                        struct arena *arena, Nui__Meta__V1__LicenceState *state)
{
    struct licence_change *scratch = arena_array (arena, 2 * (size_t)count + 1, sizeof *scratch);
    struct licence_step *step = arena_array (arena, STEPS_MAX, sizeof *step);
    state->n_steps =
        licence_steps (booking, count, licence, clock_now_us (), scratch, step, STEPS_MAX);
    state->steps = arena_array (arena, state->n_steps, sizeof *state->steps);
    for (size_t i = 0; i < state->n_steps; i++) {
        state->steps[i] = arena_new (arena, Nui__Meta__V1__LicenceStep);
        nui__meta__v1__licence_step__init (state->steps[i]);
        state->steps[i]->from_us = step[i].from;
        state->steps[i]->reserved = (uint32_t)step[i].booked;
    }
}

void on_licences (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    const Nui__Meta__V1__LicencesRequest *request = (const Nui__Meta__V1__LicencesRequest *)message;
    struct metad *metad = self;
    const struct metad_config *config = metad->config;
    const struct principal *peer = rpccall_peer (call);
    Nui__Meta__V1__LicencesReply reply = NUI__META__V1__LICENCES_REPLY__INIT;
    char uri[PRINCIPAL_URI_MAX];
    uint32_t count = 0;
    struct err err;
    if (request->licence[0] && find (metad, request->licence) == UINT32_MAX) {
        err_set (&err, ERR_NOT_FOUND, "the grid has no licence %.60s", request->licence);
        rpccall_fail (call, &err);
        return;
    }
    struct arena *arena = arena_create (0);
    struct licence_booking *booking = list (metad, arena, &count);
    principal_uri (peer, uri);
    reply.licences = arena_array (arena, config->licence_count + 1u, sizeof *reply.licences);
    for (uint32_t l = 0; l < config->licence_count; l++) {
        if (request->licence[0] && strcmp (request->licence, config->licence[l].name) != 0)
            continue;
        Nui__Meta__V1__LicenceState *state = arena_new (arena, Nui__Meta__V1__LicenceState);
        nui__meta__v1__licence_state__init (state);
        state->name = (char *)config->licence[l].name;
        state->count = share (metad, l);
        state->grid_count = (uint32_t)config->licence[l].count;
        state->in_use = (uint32_t)licence_in_use (booking, count, l, 0);
        steps_fill (l, booking, count, arena, state);
        uses_fill (metad, peer, uri, l, booking, count, arena, state);
        reply.licences[reply.n_licences++] = state;
    }
    rpccall_reply (call, &reply.base);
    arena_destroy (arena);
}
