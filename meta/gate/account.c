/* The IRI Facility API v1, accounts: a project of the bank is a project, each of its accounts that the caller may see a project
 * allocation. Credits are processor-seconds at rate 1; the API's unit is the node hour, here that of one processor: credits /
 * 3600, and the exact credits beside it. */
#include <stdlib.h>
#include <string.h>

#include "meta/gate/gate.h"
#include "proto/base/clock.h"

typedef Nui__Bank__V1__Balance Balance;

static const double micro_per_hour = 3600.0 * 1000000.0;

void iri_capabilities (struct ask *ask)
{
    json_t *one =
        json_pack ("{s:s, s:s, s:s, s:o, s:[s], s:s}", "id", "processors", "name", "processors",
                   "description", "node_hours are hours of one processor at rate 1: 3600 credits",
                   "last_modified", iri_time (ask->gate->started), "units", "node_hours",
                   "self_uri", iri_uri (ask, "account/capabilities/processors"));
    iri_answer (ask, json_pack ("[o]", one), ask->argument[0]);
}

static void projects_come (struct ask *ask, const struct rpc_result *result)
{
    const Nui__Bank__V1__ListReply *reply = (const Nui__Bank__V1__ListReply *)result->reply;
    char uri[PRINCIPAL_URI_MAX];
    if (result->status != RPC_OK) {
        ask_failed (ask, result);
        return;
    }
    json_t *items = json_array ();
    for (size_t i = 0; i < reply->n_items; i++) {
        const Nui__Bank__V1__ListItem *item = reply->items[i];
        json_array_append_new (
            items, json_pack ("{s:s, s:s, s:s, s:[s], s:o, s:s}", "id", item->name, "name",
                              item->name, "description", item->detail, "user_ids",
                              principal_uri (&ask->token->user, uri), "last_modified",
                              iri_time (ask->gate->started), "self_uri",
                              iri_uri (ask, "account/projects/%s", item->name)));
    }
    iri_answer (ask, items, ask->argument[0]);
}

void iri_projects (struct ask *ask)
{
    Nui__Bank__V1__ListRequest *request = arena_array (ask->arena, 1, sizeof *request);
    nui__bank__v1__list_request__init (request);
    request->kind = (char *)(uintptr_t) "project";
    ask_call (ask, &nui__bank__v1__bank__descriptor, "List", &request->base, projects_come);
}

static json_t *entries (struct ask *ask, const Balance *b)
{
    char text[QUANTITY_TEXT_MAX];
    char *granted = arena_strdup (ask->arena, credit_format (b->granted_micro, text));
    char *settled = arena_strdup (ask->arena, credit_format (b->settled_micro, text));
    char *held = arena_strdup (ask->arena, credit_format (b->held_micro, text));
    char *available = arena_strdup (ask->arena, credit_format (b->available_micro, text));
    return json_pack ("[{s:f, s:f, s:s, s:s, s:s, s:s, s:s}]", "allocation",
                      (double)b->granted_micro / micro_per_hour, "usage",
                      (double)b->settled_micro / micro_per_hour, "unit", "node_hours",
                      "nui.granted", granted, "nui.settled", settled, "nui.held", held,
                      "nui.available", available);
}

/* {project}/project_allocations[/{account}[/user_allocations[/{user}]]]: an account has no part for each user. */
static void allocations_come (struct ask *ask, const struct rpc_result *result)
{
    const Nui__Bank__V1__BalanceReply *reply = (const Nui__Bank__V1__BalanceReply *)result->reply;
    const char *project = ask->argument[0], *account = ask->argument[1];
    bool users = strstr (ask->route->path, "user_allocations") != NULL, found = false;
    char uri[PRINCIPAL_URI_MAX];
    if (result->status != RPC_OK) {
        ask_failed (ask, result);
        return;
    }
    json_t *items = json_array ();
    for (size_t i = 0; i < reply->n_balances; i++) {
        const Balance *b = reply->balances[i];
        char *at = iri_uri (ask, "account/projects/%s/project_allocations/%s", project, b->account);
        if (strcmp (b->project, project) != 0)
            continue;
        found = true;
        if (!users)
            json_array_append_new (
                items,
                json_pack ("{s:s, s:o, s:s, s:s}", "id", b->account, "entries", entries (ask, b),
                           "project_uri", iri_uri (ask, "account/projects/%s", project),
                           "capability_uri", iri_uri (ask, "account/capabilities/processors")));
        else if (strcmp (b->account, account) == 0)
            json_array_append_new (
                items, json_pack ("{s:s, s:s, s:o, s:s}", "id", ask->token->user.name, "user_id",
                                  principal_uri (&ask->token->user, uri), "entries",
                                  entries (ask, b), "project_allocation_uri", at));
    }
    if (!found || (users && json_array_size (items) == 0)) {
        json_decref (items);
        ask_problem (ask, MHD_HTTP_NOT_FOUND, "you have no account there");
    } else {
        iri_answer (ask, items, users ? ask->argument[2] : account);
    }
}

void iri_allocations (struct ask *ask)
{
    Nui__Bank__V1__BalanceRequest *request = arena_array (ask->arena, 1, sizeof *request);
    nui__bank__v1__balance_request__init (request);
    ask_call (ask, &nui__bank__v1__bank__descriptor, "Balance", &request->base, allocations_come);
}
