/* slurm_api: reads slurmrestd's description of itself, path by path, and chooses a version. slurm_rest.c calls it. A
 * version counts only by what the description says of it, since sites choose their plugins (slurmrestd -s, -d). */
#include "local/rm/slurm/slurm_api.h"

#include <stdio.h>
#include <string.h>

#include "proto/base/text.h"

/* The newest first. v0.0.39 is left out: each Slurm that has it has v0.0.38 or v0.0.40 as well. */
static const int api_known[] = {45, 44, 43, 42, 41, 40, 38, 37};

static struct slurm_api *api_of (struct slurm_offers *offers, const char *name)
{
    for (unsigned i = 0; i < offers->count; i++)
        if (strcmp (offers->api[i].name, name) == 0)
            return &offers->api[i];
    if (offers->count == SLURM_API_OFFERS_MAX)
        return NULL;
    struct slurm_api *api = &offers->api[offers->count++];
    *api = (struct slurm_api){0};
    text_printf (api->name, sizeof api->name, "%s", name);
    if (sscanf (name, "v0.0.%d", &api->number) != 1)
        api->number = 0;
    return api;
}

static bool api_takes_since (const json_t *path)
{
    json_t *one;
    size_t i;
    json_array_foreach (json_object_get (json_object_get (path, "get"), "parameters"), i, one)
    {
        const char *name = json_string_value (json_object_get (one, "name"));
        if (name && strcmp (name, "update_time") == 0)
            return true;
    }
    return false;
}

void slurm_offers_take (struct slurm_offers *offers, const char *path, const json_t *object)
{
    char name[SLURM_API_NAME_MAX], rest[64];
    if (sscanf (path, "/slurm/%15[^/]/%63s", name, rest) != 2)
        return;
    size_t len = strlen (rest);
    if (rest[len - 1] == '/') /* from v0.0.40 on lists end in one */
        rest[len - 1] = 0;
    struct slurm_api *api = api_of (offers, name);
    if (!api)
        return;
    if (strcmp (rest, "jobs") == 0) {
        api->usable = true;
        api->jobs_since = api_takes_since (object);
    } else if (strcmp (rest, "nodes") == 0) {
        api->nodes_since = api_takes_since (object);
    } else if (strcmp (rest, "jobs/state") == 0) {
        api->jobs_state = true;
    } else if (strcmp (rest, "reservation") == 0) {
        api->resv_create = json_object_get (object, "post") != NULL;
    } else if (strncmp (rest, "reservation/", 12) == 0) {
        api->resv_delete = json_object_get (object, "delete") != NULL;
    } else if (strcmp (rest, "job/{job_id}/requeue") == 0) {
        api->requeue = true;
    }
}

void slurm_offers_list (const struct slurm_offers *offers, char *out, size_t cap)
{
    size_t len = 0;
    *out = 0;
    for (unsigned i = 0; i < offers->count; i++)
        if (offers->api[i].usable && len + SLURM_API_NAME_MAX + 3 < cap)
            len += (size_t)snprintf (out + len, cap - len, "%s%s", len ? ", " : "",
                                     offers->api[i].name);
}

int slurm_offers_choose (const struct slurm_offers *offers, struct slurm_api *out, struct err *err)
{
    char offered[SLURM_API_OFFERS_MAX * (SLURM_API_NAME_MAX + 2)];
    for (size_t k = 0; k < sizeof api_known / sizeof *api_known; k++)
        for (unsigned i = 0; i < offers->count; i++)
            if (offers->api[i].usable && offers->api[i].number == api_known[k]) {
                *out = offers->api[i];
                return 0;
            }
    slurm_offers_list (offers, offered, sizeof offered);
    return err_set (
        err, ERR_UNSUPPORTED, "slurmrestd offers %s, and this program knows " SLURM_API_KNOWN,
        *offered ? offered : "no version of its API (its options -s and -d choose them)");
}
