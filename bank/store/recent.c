/* recent: copies of fresh holds in small sets, the newest first. The committer notes and
 * forgets, load.c takes. It must never hold what another writer could have changed: when in
 * doubt all is forgotten, which costs a look-up and nothing else. */
#include "bank/store/recent.h"

#include <stdlib.h>
#include <string.h>

#include "bank/store/busy.h"
#include "proto/base/quantity.h"

enum { TEXTS = 8 };

/* Newest first, then NULL; each hold is one piece of memory with its legs and texts. */
struct set {
    struct ledger_hold *hold[RECENT_WAYS];
};

struct recent {
    struct set set[RECENT_SETS];
};

/* The texts of a hold, in one order. */
static void texts_of (struct ledger_hold *hold, const char **text[TEXTS])
{
    const char **all[TEXTS] = {&hold->job.site,     &hold->job.site_job, &hold->job.component,
                               &hold->job.grid_job, &hold->identity,     &hold->qos,
                               &hold->machine,      &hold->nodes};
    memcpy (text, all, sizeof (all));
}

static uint32_t set_of (const struct ledger_job *job)
{
    uint64_t hash = fnv_job (FNV_BEGIN, job);
    return (uint32_t)((hash ^ hash >> 32) % RECENT_SETS);
}

struct recent *recent_create (void)
{
    struct recent *recent = calloc (1, sizeof (*recent));
    if (!recent)
        abort ();
    return recent;
}

void recent_forget (struct recent *recent)
{
    for (int i = 0; i < RECENT_SETS; i++)
        for (int way = 0; way < RECENT_WAYS; way++)
            free (recent->set[i].hold[way]);
    memset (recent, 0, sizeof (*recent));
}

void recent_destroy (struct recent *recent)
{
    if (!recent)
        return;
    recent_forget (recent);
    free (recent);
}

static bool same_job (const struct ledger_job *a, const struct ledger_job *b)
{
    return a->incarnation == b->incarnation && strcmp (a->site_job, b->site_job) == 0 &&
           strcmp (a->component, b->component) == 0 && strcmp (a->site, b->site) == 0;
}

/* Where the set has the job's hold, or its end. */
static int way_of (const struct set *set, const struct ledger_job *job)
{
    int way = 0;
    while (way < RECENT_WAYS && set->hold[way] && !same_job (&set->hold[way]->job, job))
        way++;
    return way;
}

static void forget (struct recent *recent, const struct ledger_job *job)
{
    struct set *set = &recent->set[set_of (job)];
    int way = way_of (set, job);
    if (way == RECENT_WAYS)
        return;
    free (set->hold[way]);
    memmove (&set->hold[way], &set->hold[way + 1],
             (size_t)(RECENT_WAYS - 1 - way) * sizeof (set->hold[0]));
    set->hold[RECENT_WAYS - 1] = NULL;
}

static void put (struct set *set, struct ledger_hold *hold)
{
    free (set->hold[RECENT_WAYS - 1]);
    memmove (&set->hold[1], &set->hold[0], (RECENT_WAYS - 1) * sizeof (set->hold[0]));
    set->hold[0] = hold;
}

static void keep (struct recent *recent, const struct ledger_hold *hold)
{
    struct ledger_hold from = *hold;
    const char **text[TEXTS];
    size_t bytes = sizeof (from) + hold->leg_count * sizeof (*hold->leg);
    texts_of (&from, text);
    for (int i = 0; i < TEXTS; i++)
        bytes += strlen (*text[i]) + 1;
    struct ledger_hold *copy = malloc (bytes);
    if (!copy)
        return;
    char *at = (char *)(copy + 1);
    *copy = from;
    copy->is_new = copy->dirty = copy->extended = false;
    copy->leg = (struct ledger_leg *)(void *)at;
    memcpy (at, hold->leg, hold->leg_count * sizeof (*hold->leg));
    at += hold->leg_count * sizeof (*hold->leg);
    for (uint32_t i = 0; i < copy->leg_count; i++)
        copy->leg[i].is_new = false;
    texts_of (copy, text);
    for (int i = 0; i < TEXTS; i++) {
        size_t len = strlen (*text[i]) + 1;
        *text[i] = memcpy (at, *text[i], len);
        at += len;
    }
    forget (recent, &copy->job);
    put (&recent->set[set_of (&copy->job)], copy);
}

bool recent_take (const struct recent *recent, const struct ledger_request *req,
                  struct ledger_view *view)
{
    const struct ledger_job *job = &req->charge.job;
    const struct set *set = &recent->set[set_of (job)];
    int way = way_of (set, job);
    const struct ledger_hold *known = way < RECENT_WAYS ? set->hold[way] : NULL;
    char prefix[8];
    uint64_t number;
    if (!known || id_parse (req->charge.hold_id, prefix, sizeof (prefix), &number, NULL) < 0 ||
        strcmp (prefix, "hold") != 0 || number != (uint64_t)known->id ||
        !ledger_within_hold (req, known))
        return false;
    if (ledger_hold_by_id (view, known->id))
        return true; /* named twice */
    struct ledger_hold *hold = ledger_add_hold (view, known->id);
    const char **text[TEXTS];
    *hold = *known;
    hold->leg = arena_memdup (view->arena, known->leg, known->leg_count * sizeof (*known->leg));
    texts_of (hold, text);
    for (int i = 0; i < TEXTS; i++)
        *text[i] = arena_strdup (view->arena, *text[i]);
    ledger_index_hold (view, hold);
    return true;
}

void recent_note (struct recent *recent, const struct ledger_view *view)
{
    for (uint32_t i = 0; i < view->usages.count; i++)
        forget (recent, &((const struct ledger_usage *)view->usages.item[i])->job);
    for (uint32_t i = 0; i < view->holds.count; i++)
        forget (recent, &((const struct ledger_hold *)view->holds.item[i])->job);
    for (uint32_t i = 0; i < view->holds.count; i++) {
        const struct ledger_hold *hold = view->holds.item[i];
        if (hold->is_new && hold->open && !ledger_usage_of (view, &hold->job))
            keep (recent, hold);
    }
}
