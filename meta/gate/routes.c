/* What the gate answers, path by path: the table from which requests find their way and the OpenAPI document is made. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "meta/gate/gate.h"
#include "meta/gate/pbjson.h"

#define IRI "/api/v1/"
#define NUI "/api/v1/nui/"
#define META(method_, ...)                                                                         \
    .run = nui_rpc, .rpc = &(const struct route_rpc)                                               \
    {                                                                                              \
        .service = &nui__meta__v1__meta__descriptor, .method = method_, __VA_ARGS__                \
    }
#define BANK(method_, ...)                                                                         \
    .run = nui_rpc, .rpc = &(const struct route_rpc)                                               \
    {                                                                                              \
        .service = &nui__bank__v1__bank__descriptor, .method = method_, __VA_ARGS__                \
    }

const struct route routes[] = {
    /* IRI Facility API v1 */
    {"GET", IRI "facility", iri_facility, .summary = "The grid."},
    {"GET", IRI "facility/sites", iri_sites, .summary = "Its clusters."},
    {"GET", IRI "facility/sites/{}", iri_sites, .summary = "One of them."},
    {"GET", IRI "status/resources", iri_resources, .summary = "Where jobs can run."},
    {"GET", IRI "status/resources/{}", iri_resources, .summary = "One of them."},
    {"GET", IRI "compute/resources", iri_resources, .summary = "Where jobs can run."},
    {"GET", IRI "status/incidents", iri_incidents, .summary = "Sites that do not report."},
    {"GET", IRI "status/incidents/{}", iri_incidents, .summary = "One of them."},
    {"GET", IRI "status/events", iri_events, .summary = "Likewise, as events."},
    {"GET", IRI "status/events/{}", iri_events, .summary = "One of them."},
    {"GET", IRI "account/capabilities", iri_capabilities, .summary = "What is paid for."},
    {"GET", IRI "account/capabilities/{}", iri_capabilities, .summary = "One of them."},
    {"GET", IRI "account/projects", iri_projects, .summary = "Projects that you may see."},
    {"GET", IRI "account/projects/{}", iri_projects, .summary = "One of them."},
    {"GET", IRI "account/projects/{}/project_allocations", iri_allocations,
     .summary = "Accounts of a project."},
    {"GET", IRI "account/projects/{}/project_allocations/{}", iri_allocations,
     .summary = "One of them."},
    {"GET", IRI "account/projects/{}/project_allocations/{}/user_allocations", iri_allocations,
     .summary = "Your part of it."},
    {"GET", IRI "account/projects/{}/project_allocations/{}/user_allocations/{}", iri_allocations,
     .summary = "One of them."},
    {"POST", IRI "compute/job/{}", iri_submit, .summary = "Submits a JobSpec."},
    {"PUT", IRI "compute/job/{}/{}", iri_update, .summary = "409: a signed job is not changed."},
    {"GET", IRI "compute/status/{}/{}", iri_job, .summary = "One job."},
    {"POST", IRI "compute/status/{}", iri_jobs, .summary = "Your jobs, the newest first."},
    {"DELETE", IRI "compute/cancel/{}/{}", iri_cancel, .summary = "Cancels a job."},
    {"GET", IRI "task", iri_tasks, .summary = "None: what takes long is a job."},
    {"GET", IRI "task/{}", iri_tasks, .summary = "None."},
    /* Nui's own */
    {"GET", NUI "whoami", nui_whoami, .summary = "Who you are here, and what the token allows."},
    {"GET", NUI "sites", META ("Sites"), .summary = "The sites as they report."},
    {"GET", NUI "licences", META ("Licences"), .summary = "The grid's floating licences."},
    {"GET", NUI "jobs", META ("Jobs"), .summary = "Your jobs; before: the next page."},
    {"POST", NUI "jobs", submit_run,
     .summary = "Submits {\"envelope\": ...} as its user signed it, or {\"job\": ...}."},
    {"POST", NUI "estimate", estimate_run,
     .summary = "When and where it would start, and for how much."},
    {"GET", NUI "jobs/{}", META ("Status", .field = {"grid_job_id"}), .summary = "One job."},
    {"DELETE", NUI "jobs/{}", META ("Cancel", .field = {"grid_job_id"}), .summary = "Cancels it."},
    {"POST", NUI "jobs/{}/hold", META ("Hold", .field = {"grid_job_id"}, .body = true),
     .summary = "{\"held\": true}: it does not start."},
    {"POST", NUI "jobs/{}/renew", META ("Renew", .field = {"grid_job_id"}, .body = true),
     .summary = "The signed job; with a delegation that its user signed it goes on for longer."},
    {"POST", NUI "jobs/{}/restage", META ("Restage", .field = {"grid_job_id"}, .body = true),
     .summary = "Tries once more to take its files away."},
    {"GET", NUI "jobs/{}/events", events_run, .summary = "Its states as server-sent events."},
    {"GET", NUI "jobs/{}/output", files_output,
     .summary = "Its output until now: component, stream, offset."},
    {"GET", NUI "jobs/{}/files", files_run,
     .summary = "Its files at the site; with path one of them from offset on; component."},
    {"PUT", NUI "contents", META ("Put", .body = true),
     .summary = "Some of what a file holds that travels with jobs."},
    {"GET", NUI "balance", BANK ("Balance"), .summary = "Accounts and what is left."},
    {"GET", NUI "statement", BANK ("Statement"), .summary = "An account, line by line."},
    {"GET", NUI "usage", BANK ("Usage"), .summary = "What was charged, grouped."},
    {"GET", NUI "holds", BANK ("HoldList"), .summary = "What is held for jobs."},
    {"GET", NUI "quotes", BANK ("QuoteList"), .summary = "Quotes that keep their rates."},
    {"GET", NUI "grants", BANK ("GrantList"), .summary = "Grants that you may see."},
    {"GET", "/openapi.json", nui_openapi, .open = true, .summary = "This document."},
    {0},
};

/* libmicrohttpd has decoded the path: a slash in a name cannot be told from one between names, and no name has one. */
static bool route_split (struct ask *ask)
{
    char *copy = arena_strdup (ask->arena, ask->url), *save = NULL;
    ask->segments = 0;
    for (char *part = strtok_r (copy, "/", &save); part; part = strtok_r (NULL, "/", &save)) {
        if (ask->segments == GATE_SEGMENTS_MAX)
            return false;
        ask->segment[ask->segments++] = part;
    }
    return true;
}

static bool route_fits (struct ask *ask, const struct route *route)
{
    const char *at = route->path;
    uint32_t arguments = 0;
    for (uint32_t i = 0; i < ask->segments; i++) {
        if (*at != '/')
            return false;
        size_t len = strcspn (++at, "/");
        if (len == 2 && strncmp (at, "{}", 2) == 0)
            ask->argument[arguments++] = ask->segment[i];
        else if (len == 0 || strlen (ask->segment[i]) != len ||
                 strncmp (at, ask->segment[i], len) != 0)
            return false;
        at += len;
    }
    for (uint32_t i = arguments; i < sizeof ask->argument / sizeof *ask->argument; i++)
        ask->argument[i] = NULL;
    return *at == '\0';
}

const struct route *route_find (struct ask *ask, bool *other_out)
{
    *other_out = false;
    if (!route_split (ask) || ask->segments == 0)
        return NULL;
    for (const struct route *route = routes; route->path; route++) {
        if (!route_fits (ask, route))
            continue;
        if (strcmp (route->verb, ask->verb) == 0)
            return route;
        *other_out = true;
    }
    return NULL;
}

/* ---- the document */

static json_t *parameter (const char *name, const char *in, bool required, json_t *schema)
{
    return json_pack ("{s:s, s:s, s:b, s:o}", "name", name, "in", in, "required", required,
                      "schema", schema);
}

/* "/a/{}/b" as "/a/{arg1}/b", with its parameters. */
static char *path_name (const struct route *route, json_t *parameters)
{
    struct strbuf out = STRBUF_INIT;
    int n = 0;
    for (const char *c = route->path; *c; c++) {
        char name[16];
        if (c[0] != '{') {
            strbuf_putc (&out, *c);
            continue;
        }
        snprintf (name, sizeof name, "arg%d", ++n);
        strbuf_printf (&out, "{%s}", name);
        json_array_append_new (
            parameters, parameter (name, "path", true, json_pack ("{s:s}", "type", "string")));
        c++;
    }
    return strbuf_steal (&out);
}

static void query_parameters (const struct route_rpc *rpc, const ProtobufCMessageDescriptor *input,
                              json_t *parameters)
{
    for (unsigned i = 0; i < input->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &input->fields[i];
        bool taken = strcmp (f->name, "unused") == 0;
        for (int k = 0; k < 2 && rpc->field[k]; k++)
            taken |= strcmp (rpc->field[k], f->name) == 0;
        if (!taken && f->type != PROTOBUF_C_TYPE_MESSAGE && f->type != PROTOBUF_C_TYPE_BYTES)
            json_array_append_new (
                parameters,
                parameter (f->name, "query", false,
                           json_pack ("{s:s}", "type",
                                      f->type == PROTOBUF_C_TYPE_BOOL ? "boolean" : "string")));
    }
}

static json_t *content (json_t *schema)
{
    return json_pack ("{s:{s:{s:o}}}", "content", "application/json", "schema", schema);
}

static json_t *operation (const struct route *route, json_t *parameters, json_t *schemas)
{
    json_t *ok = json_pack ("{s:s}", "description", route->summary);
    json_t *bad =
        json_pack ("{s:s, s:{s:{s:{s:s}}}}", "description", "RFC 9457", "content",
                   "application/problem+json", "schema", "$ref", "#/components/schemas/Problem");
    json_t *op = json_pack ("{s:s, s:o, s:{s:o, s:o}}", "summary", route->summary, "parameters",
                            parameters, "responses", "2XX", ok, "default", bad);
    const ProtobufCMethodDescriptor *method =
        route->rpc ? protobuf_c_service_descriptor_get_method_by_name (route->rpc->service,
                                                                       route->rpc->method)
                   : NULL;
    const ProtobufCMessageDescriptor *body = method && route->rpc->body ? method->input : NULL;
    const ProtobufCMessageDescriptor *reply = method ? method->output : NULL;
    if (route->run == submit_run || route->run == estimate_run) {
        json_t *job = pbjson_schema (&nui__common__v1__job__descriptor, schemas);
        json_t *envelope = pbjson_schema (&nui__common__v1__envelope__descriptor, schemas);
        json_object_set_new (
            op, "requestBody",
            content (json_pack ("{s:s, s:{s:o, s:o, s:{s:s}}}", "type", "object", "properties",
                                "job", job, "envelope", envelope, "keyed", "type", "boolean")));
        reply = route->run == submit_run ? &nui__meta__v1__submit_reply__descriptor
                                         : &nui__meta__v1__estimate_reply__descriptor;
    }
    if (method && !body)
        query_parameters (route->rpc, method->input, parameters);
    if (body)
        json_object_set_new (op, "requestBody", content (pbjson_schema (body, schemas)));
    if (reply) {
        json_t *with = content (pbjson_schema (reply, schemas));
        json_object_update (ok, with);
        json_decref (with);
    } else if (strncmp (route->path, NUI, sizeof NUI - 1) != 0 && !route->open) {
        json_object_set_new (
            op, "externalDocs",
            json_pack ("{s:s}", "url", "https://github.com/doe-iri/iri-facility-api-docs"));
    }
    if (route->open)
        json_object_set_new (op, "security", json_array ());
    return op;
}

json_t *openapi_make (const struct gate *gate)
{
    json_t *paths = json_object (), *schemas = json_object ();
    json_object_set_new (schemas, "Problem",
                         json_pack ("{s:s, s:{s:{s:s}, s:{s:s}, s:{s:s}, s:{s:s}, s:{s:s}}}",
                                    "type", "object", "properties", "type", "type", "string",
                                    "status", "type", "integer", "title", "type", "string",
                                    "detail", "type", "string", "instance", "type", "string"));
    for (const struct route *route = routes; route->path; route++) {
        json_t *parameters = json_array ();
        char *name = path_name (route, parameters), verb[16] = "";
        json_t *path = json_object_get (paths, name);
        for (size_t i = 0; route->verb[i] && i < sizeof verb - 1; i++)
            verb[i] = (char)(route->verb[i] | 0x20);
        if (!path) {
            path = json_object ();
            json_object_set_new (paths, name, path);
        }
        json_object_set_new (path, verb, operation (route, parameters, schemas));
        free (name);
    }
    return json_pack ("{s:s, s:{s:s, s:s, s:s}, s:[{s:[]}], s:o, s:{s:o, s:{s:{s:s, s:s}}}}",
                      "openapi", "3.1.0", "info", "title", "nui-gate", "version", NUI_VERSION,
                      "description", gate->grid, "security", "bearer", "paths", paths, "components",
                      "schemas", schemas, "securitySchemes", "bearer", "type", "http", "scheme",
                      "bearer");
}
