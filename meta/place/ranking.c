/* Whom to ask first: the candidate sites of a job's components by what they last reported (survey.h).
 *
 * Jobs come in rows of the same kind, and a thousand sites are ranked for each: what was found for such a
 * component is kept until any site reports again, or one of those found has been silent for too long. */
#include "meta/place/survey.h"

#include <stdlib.h>
#include <string.h>

#include "meta/job/check.h"
#include "meta/job/sites.h"
#include "proto/job/jobcheck.h"

enum { MEMOS = 8, KEY_BYTES_MAX = 512 };

struct ranked {
    struct survey_pair pair;
    time_us completion;
};

/* What was found for a component, while reports is still metad's and the moment before `until`. */
struct memo {
    uint8_t key[KEY_BYTES_MAX];
    size_t key_len; /* 0: nothing */
    uint64_t reports;
    duration_us until;
    struct survey_pair *pair;
    uint32_t count;
};

struct ranking {
    struct memo memo[MEMOS];
    uint32_t next; /* that is given up for another */
};

static int ranked_compare (const void *pa, const void *pb)
{
    const struct ranked *a = pa;
    const struct ranked *b = pb;
    if (a->completion != b->completion)
        return a->completion < b->completion ? -1 : 1;
    if (a->pair.site != b->pair.site) /* they are kept by name */
        return (int)a->pair.site - (int)b->pair.site;
    return (int)a->pair.shape - (int)b->pair.shape;
}

/* Lomuto's: returns where the middle one belongs. No two are alike. */
static uint32_t ranked_split (struct ranked *r, uint32_t count)
{
    struct ranked pivot = r[count / 2], swap;
    uint32_t below = 0;
    r[count / 2] = r[count - 1];
    for (uint32_t i = 0; i + 1 < count; i++) {
        if (ranked_compare (&r[i], &pivot) > 0)
            continue;
        swap = r[below];
        r[below++] = r[i];
        r[i] = swap;
    }
    r[count - 1] = r[below];
    r[below] = pivot;
    return below;
}

/* The first `wanted`, in order; the rest in none. */
static void ranked_first (struct ranked *r, uint32_t count, uint32_t wanted)
{
    uint32_t lo = 0, hi = count;
    while (wanted < hi && hi - lo > 1) {
        uint32_t at = lo + ranked_split (r + lo, hi - lo);
        if (at < wanted)
            lo = at + 1;
        else
            hi = at;
    }
    qsort (r, wanted < count ? wanted : count, sizeof *r, ranked_compare);
}

/* By the site's report; TIME_US_MAX where it says nothing of this size. */
static time_us report_completion (const struct site *site, uint64_t procs, duration_us walltime)
{
    time_us start = choose_report_start (site->table, site->cells, (uint32_t)procs, walltime);
    return start == TIME_US_NONE ? TIME_US_MAX : start + walltime;
}

time_us ranking_completion (const struct metad *metad, const JobMessage *job,
                            const struct survey_pair *pair)
{
    const struct site *site = metad->site[pair->site];
    const ComponentMessage *component = job->components[0];
    duration_us walltime = jobshape_walltime (component, pair->shape);
    time_us now = clock_now_us (), least = job->not_before_us > now ? job->not_before_us : now,
            completion;
    if (!site->report)
        return TIME_US_MAX;
    completion = report_completion (site, jobcheck_procs (component, pair->shape), walltime);
    return completion > least + walltime ? completion : least + walltime;
}

static bool is_refused (const char *name, const char (*refused_by)[COALLOC_NAME_MAX],
                        uint32_t refused_count)
{
    for (uint32_t i = 0; i < refused_count; i++)
        if (strcmp (refused_by[i], name) == 0)
            return true;
    return false;
}

/* The sites to choose from, by number; *until: when the first of them will have been silent for too long. */
struct worth {
    uint32_t *site, count;
    duration_us until;
};

static struct worth worth_asking (struct metad *metad, const char (*refused_by)[COALLOC_NAME_MAX],
                                  uint32_t refused_count, struct arena *arena)
{
    struct worth worth = {arena_array (arena, metad->site_count + 1u, sizeof *worth.site), 0,
                          INT64_MAX};
    duration_us now_mono = clock_monotonic_us ();
    for (uint32_t i = 0; i < metad->site_count; i++) {
        if (!site_worth_asking (metad, metad->site[i], now_mono) ||
            is_refused (metad->site[i]->name, refused_by, refused_count))
            continue;
        duration_us silent_at = site_asked_until (metad, metad->site[i]);
        worth.until = silent_at < worth.until ? silent_at : worth.until;
        worth.site[worth.count++] = i;
    }
    return worth;
}

static uint32_t part_rank (const ComponentMessage *component, const struct metad *metad,
                           const struct worth *worth, struct arena *arena, struct survey_pair **out)
{
    uint32_t count = 0, shapes = (uint32_t)component->n_shapes + 1;
    struct ranked *ranked =
        arena_alloc (arena, ((size_t)worth->count * shapes + 1) * sizeof *ranked);
    for (uint32_t s = 0; s < shapes; s++) {
        uint64_t procs = jobcheck_procs (component, s);
        duration_us walltime = jobshape_walltime (component, s);
        for (uint32_t i = 0; i < worth->count; i++) {
            const struct site *at = metad->site[worth->site[i]];
            if (!component_allows (component, at->name) ||
                component_fits (component, procs, at, NULL))
                continue;
            ranked[count++] = (struct ranked){
                {0, worth->site[i], s}, at->report ? report_completion (at, procs, walltime) : 0};
        }
    }
    ranked_first (ranked, count, SURVEY_RANKED * shapes);
    *out = arena_alloc (arena, (count + 1) * sizeof **out);
    for (uint32_t i = 0; i < count; i++)
        (*out)[i] = ranked[i].pair;
    return count;
}

/* ---- what is kept */

/* All that ranking reads of a component, as bytes; 0: more than is kept. */
static size_t key_of (const ComponentMessage *component, uint8_t key[KEY_BYTES_MAX])
{
    ComponentMessage read = NUI__COMMON__V1__COMPONENT__INIT;
    read.n_reqs = component->n_reqs;
    read.reqs = component->reqs;
    read.n_shapes = component->n_shapes;
    read.shapes = component->shapes;
    read.walltime_us = component->walltime_us;
    read.n_sites = component->n_sites;
    read.sites = component->sites;
    size_t len = nui__common__v1__component__get_packed_size (&read);
    return len <= KEY_BYTES_MAX ? nui__common__v1__component__pack (&read, key) : 0;
}

static const struct memo *memo_find (const struct metad *metad, const uint8_t *key, size_t len)
{
    const struct ranking *ranking = metad->ranking;
    for (uint32_t i = 0; ranking && len && i < MEMOS; i++) {
        const struct memo *memo = &ranking->memo[i];
        if (memo->key_len == len && memo->reports == metad->reports &&
            memcmp (memo->key, key, len) == 0)
            return clock_monotonic_us () < memo->until ? memo : NULL;
    }
    return NULL;
}

static void memo_keep (struct metad *metad, const uint8_t *key, size_t len,
                       const struct worth *worth, const struct survey_pair *pair, uint32_t count)
{
    if (!len || (!metad->ranking && !(metad->ranking = calloc (1, sizeof *metad->ranking))))
        return;
    struct memo *memo = &metad->ranking->memo[metad->ranking->next++ % MEMOS];
    memo->key_len = 0;
    struct survey_pair *kept = realloc (memo->pair, (count + 1) * sizeof *kept);
    if (!kept)
        return;
    memcpy (kept, pair, count * sizeof *kept);
    memcpy (memo->key, key, len);
    memo->pair = kept;
    memo->count = count;
    memo->reports = metad->reports;
    memo->until = worth->until;
    memo->key_len = len;
}

static void ranking_close (struct metad *metad)
{
    for (uint32_t i = 0; metad->ranking && i < MEMOS; i++)
        free (metad->ranking->memo[i].pair);
    free (metad->ranking);
    metad->ranking = NULL;
}

uint32_t survey_candidates (struct metad *metad, const JobMessage *job,
                            const char (*refused_by)[COALLOC_NAME_MAX], uint32_t refused_count,
                            struct arena *arena, struct survey_pair **out)
{
    const struct survey_pair *of_part[COALLOC_PARTS_MAX];
    uint32_t count[COALLOC_PARTS_MAX], all = 0;
    struct worth worth = {NULL, 0, 0};
    for (uint32_t p = 0; p < job->n_components; p++) {
        uint8_t key[KEY_BYTES_MAX];
        size_t len = refused_count ? 0 : key_of (job->components[p], key);
        const struct memo *memo = memo_find (metad, key, len);
        if (memo) {
            /* Copied: a memo lives until the next component is ranked. */
            of_part[p] = arena_memdup (arena, memo->pair, (memo->count + 1) * sizeof *memo->pair);
            count[p] = memo->count;
        } else {
            struct survey_pair *pair;
            if (!worth.site)
                worth = worth_asking (metad, refused_by, refused_count, arena);
            count[p] = part_rank (job->components[p], metad, &worth, arena, &pair);
            memo_keep (metad, key, len, &worth, pair, count[p]);
            of_part[p] = pair;
        }
        all += count[p];
    }
    struct survey_pair *pair = *out = arena_alloc (arena, (all + 1) * sizeof **out);
    for (uint32_t p = 0; p < job->n_components; p++)
        for (uint32_t i = 0; i < count[p]; i++, pair++) {
            *pair = of_part[p][i];
            pair->part = p;
        }
    return all;
}

const struct metad_part ranking_part = {.close = ranking_close};
