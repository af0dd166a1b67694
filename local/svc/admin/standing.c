/* diagnose -s: what SRCFG asks for, and what stands for it. */
#include <string.h>

#include "local/svc/admin/admin.h"
#include "local/svc/caller.h"
#include "local/svc/resv/resv.h"
#include "local/svc/svc_i.h"

/* --- standing reservations ---------------------------------------------------------------- */

static char *days_text (uint32_t days, struct arena *arena)
{
    static const char *const name[] = {"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"};
    char text[40] = "";
    size_t n = 0;
    if ((days & 0x7f) == 0x7f)
        return (char *)"ALL";
    for (int d = 0; d < 7; d++)
        if (days >> d & 1)
            n += (size_t)snprintf (text + n, sizeof text - n, "%s%s", n ? "," : "", name[d]);
    return arena_strdup (arena, text);
}

static char *task_text (const struct policy_standing *s, struct arena *arena)
{
    static const char *const name[] = {"PROCS", "MEM", "SWAP", "DISK"};
    static const int column[] = {RES_PROCS, RES_MEM_MB, RES_SWAP_MB, RES_DISK_MB};
    char text[120] = "PROCS:-1";
    size_t n = s->whole ? strlen (text) : 0;
    for (int i = s->whole ? 1 : 0; i < 4; i++)
        if (s->task.v[column[i]])
            n += (size_t)snprintf (text + n, sizeof text - n, "%s%s:%d", n ? "," : "", name[i],
                                   s->task.v[column[i]]);
    return arena_strdup (arena, text);
}

void admin_standing_asked (struct svc *svc, const struct policy_standing *s, struct arena *arena,
                           Nui__Local__V1__StandingRow *out)
{
    static const char *const period[] = {"DAY", "WEEK", "INFINITY"};
    nui__local__v1__standing_row__init (out);
    out->name = (char *)s->name;
    out->period = (char *)period[s->period];
    out->days = days_text (s->days, arena);
    out->start_us = (s->period == STANDING_WEEK ? s->week_start_s : s->start_s) * US_PER_S;
    out->end_us = (s->period == STANDING_WEEK ? s->week_end_s : s->end_s) * US_PER_S;
    out->depth = s->depth;
    out->resources = s->hosts ? (char *)s->hosts : arena_printf (arena, "TASKS==%u", s->tasks);
    out->task = task_text (s, arena);
    out->features = (char *)(s->features ? s->features : "");
    out->partition = (char *)(s->partition ? s->partition : "");
    out->acl = admin_resv_acl_words (svc, s->acl, s->acl_count, arena);
    out->n_acl = s->acl_count;
    out->flags = admin_resv_flag_words (s->flags, arena, &out->n_flags);
    if (s->owned)
        out->owner = admin_resv_owner_text (svc, &s->owner, arena);
    out->tasks = s->tasks;
    out->priority = s->priority;
}

static void row_fill (struct svc *svc, const struct policy_standing *s, struct arena *arena,
                      Nui__Local__V1__StandingRow *out)
{
    time_us start, end;
    admin_standing_asked (svc, s, arena, out);
    if (standing_window (s, svc_now (svc), 0, &start, &end))
        out->next_us = start;
    uint32_t rsvs = cluster_rsv_list (svc->cluster, NULL, 0);
    struct rsv_id *id = arena_array (arena, rsvs + 1, sizeof *id);
    out->reservations = arena_array (arena, rsvs + 1, sizeof *out->reservations);
    rsvs = cluster_rsv_list (svc->cluster, id, rsvs);
    for (uint32_t i = 0; i < rsvs; i++) {
        struct standing_view view;
        if (standing_get (svc->standing, svc->cluster, id[i].v, &view) &&
            strcmp (view.policy->name, s->name) == 0)
            out->reservations[out->n_reservations++] =
                arena_strdup (arena, resv_name (svc, id[i].v));
    }
}

void admin_standing (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct svc *svc = self;
    const struct policy *policy = cluster_policy (svc->cluster);
    Nui__Local__V1__StandingReply reply = NUI__LOCAL__V1__STANDING_REPLY__INIT;
    struct admin_caller caller;
    struct err err = {0};
    const char *name = ((const Nui__Local__V1__StandingRequest *)request)->name;
    admin_who (svc, call, &caller);
    if (admin_require (&caller, ADMIN_INFO, "diagnosis of standing reservations", &err) != 0) {
        rpccall_fail (call, &err);
        return;
    }
    arena_reset (svc->call_arena);
    reply.now_us = svc_now (svc);
    reply.rows = arena_array (svc->call_arena, policy->standing_count + 1, sizeof *reply.rows);
    for (uint32_t i = 0; i < policy->standing_count; i++) {
        if (*name && strcmp (name, policy->standing[i].name) != 0)
            continue;
        reply.rows[reply.n_rows] = arena_new (svc->call_arena, Nui__Local__V1__StandingRow);
        row_fill (svc, &policy->standing[i], svc->call_arena, reply.rows[reply.n_rows++]);
    }
    if (*name && reply.n_rows == 0) {
        err_set (&err, ERR_NOT_FOUND, "no SRCFG[%.63s] is configured", name);
        rpccall_fail (call, &err);
        return;
    }
    rpccall_reply (call, &reply.base);
}
