/* A reservation as it is shown: access list, flags and owner in words, and all that the listing says of one. Called by showres
 * and diagnose. */
#include <string.h>

#include "local/core/access.h"
#include "local/svc/admin/admin.h"
#include "local/svc/job.h"
#include "local/svc/resv/resv.h"
#include "local/svc/svc_i.h"

char **admin_resv_acl_words (struct svc *svc, const struct acl_entry *acl, uint32_t count,
                             struct arena *arena)
{
    char text[ACL_TEXT_MAX];
    char **out = arena_array (arena, count + 1, sizeof *out);
    for (uint32_t i = 0; i < count; i++)
        out[i] = arena_strdup (arena, acl_entry_text (&acl[i], svc->names, text));
    return out;
}

char **admin_resv_flag_words (uint32_t flags, struct arena *arena, size_t *count)
{
    char **out = arena_array (arena, 32, sizeof *out);
    for (uint32_t bit = 0; bit < 32; bit++)
        if ((flags & (1u << bit)) && acl_flag_name (1u << bit))
            out[(*count)++] = (char *)acl_flag_name (1u << bit);
    return out;
}

char *admin_resv_owner_text (struct svc *svc, const struct acl_entry *owner, struct arena *arena)
{
    char text[ACL_TEXT_MAX];
    acl_entry_text (owner, svc->names, text);
    text[strlen (text) - 1] = 0; /* no affinity */
    return arena_strdup (arena, text);
}

/* Processors on its nodes that jobs have which it admits. */
static uint32_t active_procs (struct svc *svc, const struct rsv_view *view)
{
    struct site_job *job, *next;
    uint32_t procs = 0;
    uint8_t affinity;
    time_us now = svc_now (svc);
    if (view->spec->start > now || view->spec->end <= now)
        return 0;
    HASH_ITER (hh, svc->jobs, job, next) {
        struct job_view jv;
        struct who who = svc_who (svc, job);
        if (!job->in_cluster || !access_admits (view->spec, &who, &affinity) ||
            cluster_job_get (svc->cluster, (struct job_id){job->rec.number}, &jv, NULL) != 0)
            continue;
        for (uint32_t i = 0; i < jv.allocation.count; i++)
            for (uint32_t k = 0; k < view->allocation.count; k++)
                if (view->allocation.item[k].node.v == jv.allocation.item[i].node.v)
                    procs += jv.allocation.item[i].tasks *
                             (uint32_t)jv.spec->req[jv.allocation.item[i].req].task.v[RES_PROCS];
    }
    return procs;
}

static void spec_fill (struct svc *svc, const struct rsv_spec *spec, struct arena *arena,
                       Nui__Local__V1__Reservation *out)
{
    out->acl = admin_resv_acl_words (svc, spec->acl, spec->acl_count, arena);
    out->n_acl = spec->acl_count;
    out->flags = admin_resv_flag_words (spec->flags, arena, &out->n_flags);
    if (spec->owned)
        out->owner = admin_resv_owner_text (svc, &spec->owner, arena);
}

static void standing_fill (const struct standing_view *view, struct svc *svc, struct arena *arena,
                           Nui__Local__V1__Reservation *out)
{
    const struct policy_standing *s = view->policy;
    out->asked = arena_new (arena, Nui__Local__V1__StandingRow);
    admin_standing_asked (svc, s, arena, out->asked);
    out->task = out->asked->task;
    out->name = arena_strdup (arena, resv_name (svc, view->rsv.v));
    out->type = (char *)"User";
    out->state = (char *)"";
    out->standing = (char *)s->name;
    out->resources =
        s->hosts ? arena_strdup (arena, s->hosts) : arena_printf (arena, "TASKS==%u", s->tasks);
    out->features = (char *)(s->features ? s->features : "");
    out->tasks_wanted = view->wanted;
    out->tasks_up = view->have;
}

bool admin_resv_fill (struct svc *svc, uint64_t core, struct arena *arena,
                      Nui__Local__V1__Reservation *out)
{
    struct rsv_view view;
    const struct site_rsv *rsv = resv_of_core (svc, core);
    struct standing_view standing;
    char id[SITE_ID_MAX];
    bool stands = standing_get (svc->standing, svc->cluster, core, &standing);
    if ((!rsv && !stands) ||
        cluster_rsv_get (svc->cluster, (struct rsv_id){core}, &view, NULL) != 0)
        return false;
    spec_fill (svc, view.spec, arena, out);
    out->charge = resv_charge_text (svc, core, arena);
    if (stands) {
        standing_fill (&standing, svc, arena, out);
        out->active_procs = active_procs (svc, &view);
        return true;
    }
    out->name = (char *)rsv->rec.name;
    out->type = (char *)"User";
    out->state = (char *)"";
    out->resources = rsv->rec.expression;
    out->features = rsv->rec.features;
    out->task = rsv->rec.resources && *rsv->rec.resources ? rsv->rec.resources
                : rsv->rec.tasks_wanted                   ? (char *)"PROCS:1"
                                                          : (char *)"PROCS:-1";
    out->group = (char *)rsv->rec.grid;
    out->tasks_wanted = rsv->rec.tasks_wanted;
    out->tasks_up = resv_tasks_up (svc, &view.allocation, false);
    out->active_procs = active_procs (svc, &view);
    if (view.used_by.v)
        out->used_by = arena_strdup (arena, site_id (svc, view.used_by.v, id));
    return true;
}
