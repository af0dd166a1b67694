/* The IRI Facility API v1, facility and status: the grid is the facility, its clusters are the sites, each with one compute
 * resource, and "grid" is the resource where the metascheduler chooses. A site that does not report is an unplanned
 * incident. All of it is one snapshot of the metascheduler's sites. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "meta/gate/gate.h"
#include "proto/base/clock.h"

#define SNAPSHOT_FOR_US US_PER_S

typedef Nui__Meta__V1__SitesReply SitesReply;
typedef Nui__Meta__V1__SiteState SiteState;

char *iri_uri (struct ask *ask, const char *fmt, ...)
{
    const char *host = ask_header (ask, MHD_HTTP_HEADER_HOST);
    struct strbuf path = STRBUF_INIT;
    va_list ap;
    va_start (ap, fmt);
    strbuf_vprintf (&path, fmt, ap);
    va_end (ap);
    const union MHD_ConnectionInfo *tls =
        MHD_get_connection_info (ask->connection, MHD_CONNECTION_INFO_PROTOCOL);
    return arena_printf (ask->arena, "http%s://%.200s/api/v1/%s", tls ? "s" : "",
                         host ? host : ask->gate->name, strbuf_move (&path, ask->arena));
}

json_t *iri_time (time_us at)
{
    char text[40];
    time_t s = (time_t)(at / US_PER_S);
    struct tm tm;
    gmtime_r (&s, &tm);
    strftime (text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm);
    return json_string (text);
}

void iri_answer (struct ask *ask, json_t *items, const char *id)
{
    struct err err = {0};
    int64_t offset, limit;
    if (id) {
        size_t i;
        json_t *item;
        json_array_foreach (items, i, item)
        {
            if (strcmp (json_string_value (json_object_get (item, "id")), id) == 0) {
                ask_json (ask, MHD_HTTP_OK, json_incref (item));
                json_decref (items);
                return;
            }
        }
        json_decref (items);
        ask_problem (ask, MHD_HTTP_NOT_FOUND, "there is no '%.100s' here", id);
        return;
    }
    if (ask_number (ask, "offset", 0, INT32_MAX, 0, &offset, &err) < 0 ||
        ask_number (ask, "limit", 1, GATE_PAGE_MAX, GATE_PAGE_DEFAULT, &limit, &err) < 0) {
        json_decref (items);
        ask_problem (ask, MHD_HTTP_BAD_REQUEST, "%s", err.text);
        return;
    }
    json_t *page = json_array ();
    for (size_t i = (size_t)offset; i < json_array_size (items) && i < (size_t)(offset + limit);
         i++)
        json_array_append (page, json_array_get (items, i));
    json_decref (items);
    ask_json (ask, MHD_HTTP_OK, page);
}

/* ---- the snapshot */

static void snapshot_come (struct ask *ask, const struct rpc_result *result)
{
    void (*then) (struct ask * ask, const SitesReply *sites);
    struct gate *gate = ask->gate;
    if (result->status != RPC_OK) {
        ask_failed (ask, result);
        return;
    }
    size_t len = protobuf_c_message_get_packed_size (result->reply);
    uint8_t *bytes = malloc (len + 1);
    if (!bytes)
        abort ();
    protobuf_c_message_pack (result->reply, bytes);
    if (gate->snapshot)
        nui__meta__v1__sites_reply__free_unpacked (gate->snapshot, NULL);
    gate->snapshot = nui__meta__v1__sites_reply__unpack (NULL, len, bytes);
    gate->snapshot_at = clock_monotonic_us ();
    free (bytes);
    memcpy (&then, ask->more, sizeof then);
    then (ask, gate->snapshot);
}

void iri_snapshot (struct ask *ask, void (*then) (struct ask *ask, const SitesReply *sites))
{
    struct gate *gate = ask->gate;
    if (gate->snapshot && clock_monotonic_us () - gate->snapshot_at < SNAPSHOT_FOR_US) {
        then (ask, gate->snapshot);
        return;
    }
    Nui__Meta__V1__SitesRequest *request = arena_array (ask->arena, 1, sizeof *request);
    nui__meta__v1__sites_request__init (request);
    ask->more = arena_array (ask->arena, 1, sizeof then);
    memcpy (ask->more, &then, sizeof then);
    ask_call (ask, &nui__meta__v1__meta__descriptor, "Sites", &request->base, snapshot_come);
}

static json_t *reported (const struct gate *gate, const SiteState *site)
{
    return iri_time (site->reported_us ? site->reported_us : gate->started);
}

static json_t *words (const char *one)
{
    return one ? json_pack ("[s]", one) : json_array ();
}

/* ---- facility */

static void facility_of (struct ask *ask, const SitesReply *sites)
{
    const struct gate_config *config = ask->gate->config;
    json_t *uris = json_array ();
    for (size_t i = 0; i < sites->n_sites; i++)
        json_array_append_new (
            uris, json_string (iri_uri (ask, "facility/sites/%s", sites->sites[i]->name)));
    ask_json (ask, MHD_HTTP_OK,
              json_pack (
                  "{s:s, s:s, s:o, s:s, s:s, s:s?, s:s, s:o}", "id", ask->gate->grid, "name",
                  config->facility ? config->facility : ask->gate->grid, "last_modified",
                  iri_time (ask->gate->started), "short_name", ask->gate->grid, "organization_name",
                  config->organisation ? config->organisation : ask->gate->grid, "support_uri",
                  config->support, "self_uri", iri_uri (ask, "facility"), "site_uris", uris));
}

void iri_facility (struct ask *ask)
{
    iri_snapshot (ask, facility_of);
}

static void sites_of (struct ask *ask, const SitesReply *sites)
{
    const struct gate_config *config = ask->gate->config;
    json_t *items = json_array ();
    for (size_t i = 0; i < sites->n_sites; i++) {
        const SiteState *site = sites->sites[i];
        json_array_append_new (
            items,
            json_pack ("{s:s, s:s, s:s, s:o, s:s, s:s, s:o}", "id", site->name, "name", site->name,
                       "short_name", site->name, "last_modified", reported (ask->gate, site),
                       "operating_organization",
                       config->organisation ? config->organisation : ask->gate->grid, "self_uri",
                       iri_uri (ask, "facility/sites/%s", site->name), "resource_uris",
                       words (iri_uri (ask, "status/resources/%s", site->name))));
    }
    iri_answer (ask, items, ask->argument[0]);
}

void iri_sites (struct ask *ask)
{
    iri_snapshot (ask, sites_of);
}

/* ---- status */

static const char *status_of (const SiteState *site)
{
    if (!site->up)
        return site->reported_us ? "down" : "unknown";
    return site->report && site->report->nodes_up < site->report->nodes_total ? "degraded" : "up";
}

static json_t *resource (struct ask *ask, const char *name, const char *status, json_t *modified,
                         const char *site, const char *about)
{
    return json_pack ("{s:s, s:s, s:s, s:o, s:s, s:s, s:s, s:[s], s:s, s:s, s:[s]}", "id", name,
                      "name", name, "description", about, "last_modified", modified, "group",
                      ask->gate->grid, "current_status", status, "resource_type", "compute",
                      "supported_endpoints", "compute", "self_uri",
                      iri_uri (ask, "status/resources/%s", name), "site_uri",
                      iri_uri (ask, "facility/sites/%s", site), "capability_uris",
                      iri_uri (ask, "account/capabilities/processors"));
}

static void resources_of (struct ask *ask, const SitesReply *sites)
{
    json_t *items = json_array ();
    unsigned up = 0;
    for (size_t i = 0; i < sites->n_sites; i++) {
        const SiteState *site = sites->sites[i];
        const Nui__Meta__V1__SiteReport *r = site->report;
        char *about = arena_printf (ask->arena, "%u of %u processors free, %u jobs run, %u wait",
                                    r ? r->procs_free : 0, r ? r->procs_total : 0,
                                    r ? r->jobs_running : 0, r ? r->jobs_queued : 0);
        up += site->up;
        json_array_append_new (items, resource (ask, site->name, status_of (site),
                                                reported (ask->gate, site), site->name, about));
    }
    const char *all = up == sites->n_sites ? "up" : up ? "degraded" : "down";
    if (sites->n_sites)
        json_array_append_new (items, resource (ask, "grid", all, iri_time (clock_now_us ()),
                                                sites->sites[0]->name,
                                                "all sites: the metascheduler chooses"));
    const char *kind = ask_query (ask, "resource_type");
    if (kind && strcmp (kind, "compute") != 0)
        json_array_clear (items);
    iri_answer (ask, items, ask->argument[0]);
}

void iri_resources (struct ask *ask)
{
    iri_snapshot (ask, resources_of);
}

/* Of the sites that do not report: since when, as far as that is known. */
static void silent_of (struct ask *ask, const SitesReply *sites, bool events)
{
    json_t *items = json_array ();
    for (size_t i = 0; i < sites->n_sites; i++) {
        const SiteState *site = sites->sites[i];
        char *id = arena_printf (ask->arena, "silent-%s-%lld", site->name,
                                 (long long)(site->reported_us / US_PER_S));
        char *name = arena_printf (ask->arena, "site %s does not report", site->name);
        if (site->up)
            continue;
        json_t *common = json_pack ("{s:s, s:s, s:o, s:s}", "id", id, "name", name, "last_modified",
                                    reported (ask->gate, site), "status", "down");
        json_t *more =
            events
                ? json_pack ("{s:o, s:s, s:s, s:s}", "occurred_at", reported (ask->gate, site),
                             "self_uri", iri_uri (ask, "status/events/%s", id), "resource_uri",
                             iri_uri (ask, "status/resources/%s", site->name), "incident_uri",
                             iri_uri (ask, "status/incidents/%s", id))
                : json_pack ("{s:o, s:n, s:s, s:s, s:s, s:[s], s:[s]}", "start",
                             reported (ask->gate, site), "end", "type", "unplanned", "resolution",
                             "unresolved", "self_uri", iri_uri (ask, "status/incidents/%s", id),
                             "event_uris", iri_uri (ask, "status/events/%s", id), "resource_uris",
                             iri_uri (ask, "status/resources/%s", site->name));
        json_object_update (common, more);
        json_decref (more);
        json_array_append_new (items, common);
    }
    iri_answer (ask, items, ask->argument[0]);
}

static void incidents_of (struct ask *ask, const SitesReply *sites)
{
    silent_of (ask, sites, false);
}

static void events_of (struct ask *ask, const SitesReply *sites)
{
    silent_of (ask, sites, true);
}

void iri_incidents (struct ask *ask)
{
    iri_snapshot (ask, incidents_of);
}

void iri_events (struct ask *ask)
{
    iri_snapshot (ask, events_of);
}

/* What takes long here is a job: there are no tasks beside. */
void iri_tasks (struct ask *ask)
{
    iri_answer (ask, json_array (), ask->argument[0]);
}
