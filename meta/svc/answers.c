#include "meta/svc/answers.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "meta/svc/gridlicence.h"
#include "proto/base/clock.h"
#include "proto/rpc/jobshape.h"

typedef Nui__Meta__V1__SiteAnswer Answer;
typedef Nui__Meta__V1__SiteAnswers Answers;

static char *copy (const char *text)
{
    char *out = strdup (text);
    assert (out && "out of memory");
    return out;
}

static Answer *answer_make (const struct gridjob *job, const struct survey_offer *offer,
                            struct gridlicence_view *view, time_us now)
{
    const ComponentMessage *component = job->job->components[offer->part];
    time_us least = job->job->not_before_us ? job->job->not_before_us + component->offset_us : 0;
    Answer *a = malloc (sizeof *a);
    Nui__Common__V1__Reason *reason = malloc (sizeof *reason);
    assert (a && reason && "out of memory");
    nui__meta__v1__site_answer__init (a);
    nui__common__v1__reason__init (reason);
    a->site = copy (offer->site_name);
    a->tasks = jobshape_tasks (component, offer->shape, 0);
    a->feasible = offer->answered && offer->feasible;
    struct coalloc_reason why = {"SiteDown", "the site did not answer"};
    if (offer->answered)
        why = offer->reason;
    if (a->feasible)
        a->start_us = view ? gridlicence_start (view, offer, least, &why) : survey_start_of (offer, least);
    reason->code = copy (why.code);
    reason->text = copy (why.text);
    a->reason = reason;
    a->price_micro = offer->priced ? offer->price : 0;
    a->asked_us = now;
    return a;
}

static bool is_asked (const struct survey *survey, uint32_t part, const char *site)
{
    for (uint32_t i = 0; i < survey->offer_count; i++)
        if (survey->offer[i].part == part && strcmp (survey->offer[i].site_name, site) == 0)
            return true;
    return false;
}

static void part_take (struct gridjob *job, uint32_t p, const struct survey *survey,
                       struct gridlicence_view *view, time_us now)
{
    struct jobpart *part = &job->part[p];
    Answers *before = part->answers, *all = malloc (sizeof *all);
    assert (all && "out of memory");
    nui__meta__v1__site_answers__init (all);
    all->answers =
        calloc (survey->offer_count + (before ? before->n_answers : 0) + 1, sizeof (Answer *));
    assert (all->answers && "out of memory");
    for (uint32_t i = 0; i < survey->offer_count; i++)
        if (survey->offer[i].part == p)
            all->answers[all->n_answers++] = answer_make (job, &survey->offer[i], view, now);
    for (size_t i = 0; before && i < before->n_answers;) {
        if (is_asked (survey, p, before->answers[i]->site)) {
            i++;
        } else {
            all->answers[all->n_answers++] = before->answers[i];
            before->answers[i] = before->answers[--before->n_answers];
        }
    }
    if (before)
        nui__meta__v1__site_answers__free_unpacked (before, NULL);
    part->answers = all;
    part->dirty = true;
}

void answers_take (struct gridjob *job, const struct survey *survey)
{
    time_us now = clock_now_us ();
    struct arena *arena = arena_create (0);
    struct gridlicence_view *view = job_is_group (job) ? gridlicence_view (survey, arena) : NULL;
    for (uint32_t p = 0; p < job->part_count; p++)
        part_take (job, p, survey, view, now);
    arena_destroy (arena);
}
