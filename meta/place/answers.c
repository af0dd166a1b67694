/* What sites said of a job when they were asked last, kept with its components for nui status. */
#include "meta/place/survey.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "meta/place/gridlicence.h"
#include "proto/base/clock.h"
#include "proto/base/text.h"
#include "proto/job/jobcheck.h"

enum { UNASKED_SITES_MAX = 32 };

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
        a->start_us =
            view ? gridlicence_start (view, offer, least, &why) : survey_start_of (offer, least);
    if (least > now && a->start_us == least) {
        char when[QUANTITY_TEXT_MAX];
        snprintf (why.code, sizeof why.code, "NotBefore");
        text_printf (why.text, sizeof why.text, "not before %s, as the job asks",
                     time_format_table (least, when));
    }
    reason->code = copy (why.code);
    reason->text = copy (why.text);
    a->reason = reason;
    a->price_micro = offer->priced ? offer->price : 0;
    a->asked_us = now;
    return a;
}

/* A site that cannot run it, or was not asked for another reason. */
static Answer *answer_unasked (const struct gridjob *job, uint32_t part, uint32_t site,
                               const struct coalloc_reason *why, time_us now)
{
    struct survey_offer offer = {.part = part, .site = site, .answered = true, .reason = *why};
    snprintf (offer.site_name, sizeof offer.site_name, "%s", job->metad->site[site]->name);
    return answer_make (job, &offer, NULL, now);
}

static bool is_asked (const struct survey *survey, uint32_t part, const char *site)
{
    for (uint32_t i = 0; i < survey->offer_count; i++)
        if (survey->offer[i].part == part && strcmp (survey->offer[i].site_name, site) == 0)
            return true;
    return false;
}

static bool is_known (const Answers *before, const char *site)
{
    for (size_t i = 0; before && i < before->n_answers; i++)
        if (strcmp (before->answers[i]->site, site) == 0)
            return true;
    return false;
}

/* In a grid of many sites those that were asked are told of. */
static bool asks_few (const struct survey *survey)
{
    return survey->metad->site_count <= UNASKED_SITES_MAX;
}

static void part_take (struct gridjob *job, uint32_t p, const struct survey *survey,
                       struct gridlicence_view *view, time_us now)
{
    struct jobpart *part = &job->part[p];
    Answers *before = part->answers, *all = malloc (sizeof *all);
    assert (all && "out of memory");
    nui__meta__v1__site_answers__init (all);
    all->answers =
        calloc (survey->offer_count + UNASKED_SITES_MAX + (before ? before->n_answers : 0) + 1,
                sizeof (Answer *));
    assert (all->answers && "out of memory");
    for (uint32_t i = 0; i < survey->offer_count; i++)
        if (survey->offer[i].part == p)
            all->answers[all->n_answers++] = answer_make (job, &survey->offer[i], view, now);
    for (uint32_t i = 0; i < survey->metad->site_count && asks_few (survey); i++) {
        struct coalloc_reason why;
        if (survey_unasked (survey, p, i, &why) && !is_known (before, survey->metad->site[i]->name))
            all->answers[all->n_answers++] = answer_unasked (job, p, i, &why, now);
    }
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

void answers_forget (struct gridjob *job)
{
    survey_destroy (job->survey);
    job->survey = NULL;
}

const struct metad_part answers_part = {.job_freed = answers_forget};
