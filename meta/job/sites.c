/* The table of sites: made from the configuration, kept for the life of the daemon, one link to each. A site that leaves the
 * configuration is marked only: jobs may still be there. */
#include "meta/job/sites.h"

#include <stdlib.h>
#include <string.h>

static int site_compare (const void *a, const void *b)
{
    return strcmp ((*(struct site *const *)a)->name, (*(struct site *const *)b)->name);
}

static struct site *site_any (struct metad *metad, const char *name)
{
    for (uint32_t lo = 0, hi = metad->site_count; lo < hi;) {
        uint32_t mid = lo + (hi - lo) / 2;
        int order = strcmp (metad->site[mid]->name, name);
        if (order == 0)
            return metad->site[mid];
        if (order < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

struct site *site_find (struct metad *metad, const char *name)
{
    struct site *site = site_any (metad, name);
    return site && site->configured ? site : NULL;
}

static int site_add (struct metad *metad, const char *name, struct err *err)
{
    struct site **grown = realloc (metad->site, (metad->site_count + 1) * sizeof *grown);
    struct site *site = calloc (1, sizeof *site);
    if (grown)
        metad->site = grown;
    if (!grown || !site) {
        free (site);
        return err_set (err, ERR_NOMEM, "no memory for site %s", name);
    }
    memcpy (site->name, name, strlen (name) + 1);
    int rc = metastore_site_acked (metad->store, name, &site->acked, err);
    if (rc) {
        free (site);
        return rc;
    }
    metad->site[metad->site_count++] = site;
    qsort (metad->site, metad->site_count, sizeof *metad->site, site_compare);
    return 0;
}

int sites_configure (struct metad *metad, struct err *err)
{
    const struct metad_config *config = metad->config;
    struct link_env env = {metad->base, metad->id, metad->log, &metad->gate};
    metad->reports++;
    for (uint32_t i = 0; i < metad->site_count; i++)
        metad->site[i]->configured = false;
    for (uint32_t i = 0; i < config->site_count; i++) {
        const struct metad_site_config *wanted = &config->site[i];
        int rc = site_any (metad, wanted->name) ? 0 : site_add (metad, wanted->name, err);
        if (rc)
            return rc;
        struct site *site = site_any (metad, wanted->name);
        site->configured = true;
        if (site->link && strcmp (link_server (site->link), wanted->server) == 0)
            continue;
        struct link *fresh = link_to_site (&env, wanted->name, wanted->server, err);
        if (!fresh)
            return err ? err->code : ERR_INTERNAL;
        struct link *old = site->link;
        site->link = fresh; /* first: the calls that end with the old one may ask again at once */
        link_destroy (old);
    }
    return 0;
}

void sites_disconnect (struct metad *metad)
{
    for (uint32_t i = 0; i < metad->site_count; i++) {
        link_destroy (metad->site[i]->link);
        metad->site[i]->link = NULL;
    }
}

void sites_destroy (struct metad *metad)
{
    sites_disconnect (metad);
    for (uint32_t i = 0; i < metad->site_count; i++) {
        struct site *site = metad->site[i];
        if (site->report)
            nui__meta__v1__site_report__free_unpacked (site->report, NULL);
        free (site->table);
        free (site->inquiry);
        free (site);
    }
    free (metad->site);
    metad->site = NULL;
    metad->site_count = 0;
}

bool site_up (const struct site *site)
{
    return site->reported_us && clock_monotonic_us () - site->reported_mono <= SITE_UP_S * US_PER_S;
}

duration_us site_silent_for (const struct metad *metad, const struct site *site)
{
    return clock_monotonic_us () - (site->reported_us ? site->reported_mono : metad->started_mono);
}

bool site_worth_asking (const struct metad *metad, const struct site *site, duration_us now_mono)
{
    return site->configured && now_mono < site_asked_until (metad, site);
}

duration_us site_asked_until (const struct metad *metad, const struct site *site)
{
    return (site->reported_us ? site->reported_mono : metad->started_mono) + SITE_UP_S * US_PER_S +
           1;
}

const char *site_server (const struct site *site)
{
    if (site->report && site->report->server[0])
        return site->report->server;
    return site->link ? link_server (site->link) : "";
}
