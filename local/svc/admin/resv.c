/* setres, releaseres. */
#include <stdlib.h>
#include <string.h>

#include "local/svc/admin/admin.h"
#include "local/svc/caller.h"
#include "local/svc/job.h"
#include "local/svc/job/jobs.h"
#include "local/svc/job/life.h"
#include "local/svc/nodes.h"
#include "local/svc/resv/resv.h"
#include "local/svc/svc_i.h"
#include "proto/base/strbuf.h"
#include "proto/base/text.h"

static char *lists_text (const Nui__Local__V1__SetResRequest *r)
{
    const struct {
        const char *type, *value;
    } list[] = {
        {"USERS", r->users},           {"GROUPS", r->groups},   {"ACCOUNTS", r->accounts},
        {"CLASSES", r->classes},       {"QOS", r->qos},         {"JOBATTRS", r->job_attributes},
        {"DURATION", r->job_duration}, {"PROCS", r->job_procs},
    };
    struct strbuf b = STRBUF_INIT;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (*list[i].value)
            strbuf_printf (&b, "%s %s\n", list[i].type, list[i].value);
    strbuf_text (&b);
    return strbuf_steal (&b);
}

/* The first name of a list, without its modifiers. */
static void first_name (const char *list, char out[STORE_NAME_MAX])
{
    list += strspn (list, "!*,: ");
    snprintf (out, STORE_NAME_MAX, "%.*s", (int)strcspn (list, "+-=!*,: "), list);
}

static void name_begin (const struct admin_caller *caller, const Nui__Local__V1__SetResRequest *r,
                        char out[STORE_NAME_MAX])
{
    const char *list[] = {r->users, r->groups, r->accounts, r->classes, r->qos};
    text_printf (out, STORE_NAME_MAX, "%.50s", r->name);
    for (size_t i = 0; i < 5 && !*out; i++)
        first_name (list[i], out);
    if (!*out)
        text_printf (out, STORE_NAME_MAX, "%.50s", *caller->login ? caller->login : "system");
}

/* Lists are one line each in the store. */
static int line_check (const Nui__Local__V1__SetResRequest *r, struct err *err)
{
    const char *text[] = {r->users, r->groups,         r->accounts,     r->classes,
                          r->qos,   r->job_attributes, r->job_duration, r->job_procs};
    for (size_t i = 0; i < sizeof text / sizeof *text; i++)
        if (strpbrk (text[i], "\r\n"))
            return err_set (err, ERR_INVALID, "an access list is one line");
    return 0;
}

static int record_fill (struct svc *svc, const struct admin_caller *caller,
                        const Nui__Local__V1__SetResRequest *r, struct store_rsv *rec,
                        struct err *err)
{
    time_us now = svc_now (svc);
    int rc = line_check (r, err);
    if (rc == 0)
        rc = acl_flags (r->flags, &rec->flags, err);
    if (rc != 0)
        return rc;
    if (!*r->expression)
        return err_set (err, ERR_INVALID, "which nodes: ALL, a host list, TASKS==n or TASKS>=n");
    if (r->start_us < 0 || r->end_us < 0 || r->duration_us < 0)
        return err_set (err, ERR_INVALID, "a time before 1970, or a negative duration");
    rec->start = r->start_us ? r->start_us : now;
    rec->end = r->end_us ? r->end_us : TIME_US_MAX;
    if (r->duration_us && r->duration_us < TIME_US_MAX - rec->start)
        rec->end = rec->start + r->duration_us;
    if (r->end_us && r->duration_us && rec->end != r->end_us)
        return err_set (err, ERR_INVALID, "say an end or a duration, not both");
    name_begin (caller, r, rec->name);
    rec->acl = lists_text (r);
    rec->expression = strdup (r->expression);
    rec->features = strdup (r->features);
    rec->resources = strdup (r->resources);
    rec->tasks_per_node = r->tasks_per_node;
    rc = resv_charge_parse (svc, r->charge, r->owner, caller->login, rec, err);
    if (rc != 0)
        return rc;
    text_printf (rec->owner, sizeof rec->owner, "%.78s", r->owner);
    text_printf (rec->partition, sizeof rec->partition, "%.63s", r->partition);
    return 0;
}

static void reply_fill (struct svc *svc, const struct site_rsv *rsv,
                        Nui__Local__V1__SetResReply *reply)
{
    struct allocation a = placement_parse (svc, rsv->rec.placement, svc->call_arena);
    reply->name = (char *)rsv->rec.name;
    reply->start_us = rsv->rec.start;
    reply->end_us = rsv->rec.end == TIME_US_MAX ? 0 : rsv->rec.end;
    reply->nodes = arena_array (svc->call_arena, a.count + 1, sizeof *reply->nodes);
    for (uint32_t i = 0; i < a.count; i++) {
        Nui__Local__V1__NodeTasks *t = arena_new (svc->call_arena, Nui__Local__V1__NodeTasks);
        nui__local__v1__node_tasks__init (t);
        t->node = svc->node_by_id[a.item[i].node.v]->name;
        t->tasks = a.item[i].tasks;
        reply->tasks += t->tasks;
        reply->nodes[reply->n_nodes++] = t;
    }
}

void admin_set_res (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct svc *svc = self;
    const Nui__Local__V1__SetResRequest *r = (const Nui__Local__V1__SetResRequest *)request;
    Nui__Local__V1__SetResReply reply = NUI__LOCAL__V1__SET_RES_REPLY__INIT;
    struct admin_caller caller;
    struct store_rsv rec = {0};
    struct site_rsv *rsv = NULL;
    struct err err = {0};
    admin_who (svc, call, &caller);
    arena_reset (svc->call_arena);
    int rc = admin_require (&caller, ADMIN_JOBS, "making a reservation", &err);
    if (rc == 0)
        rc = record_fill (svc, &caller, r, &rec, &err);
    if (rc == 0)
        rc = resv_create (svc, &caller, &rec, &rsv, &err);
    if (rc == 0) {
        reply_fill (svc, rsv, &reply);
        rpccall_reply (call, &reply.base);
    } else {
        jobs_refuse (svc, call, &err);
    }
    store_rsv_free (&rec);
}

/* This site's part of a co-reservation ends; its metascheduler hears of it and ends the others: they stand together. */
static int group_release (struct svc *svc, const struct admin_caller *caller, struct site_rsv *rsv,
                          struct err *err)
{
    struct site_job *job = svc_job (svc, rsv->rec.part);
    char text[300];
    int rc =
        admin_audit (svc, caller, err, "releaseres %s of group %s", rsv->rec.name, rsv->rec.grid);
    text_printf (text, sizeof text, "released at site %.60s by %.60s", svc->site, caller->login);
    if (rc == 0 && job)
        rc = life_cancel (svc, job, "Released", text, err);
    return rc;
}

void admin_release_res (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct svc *svc = self;
    const Nui__Local__V1__ReleaseResRequest *r = (const Nui__Local__V1__ReleaseResRequest *)request;
    Nui__Local__V1__ReleaseResReply reply = NUI__LOCAL__V1__RELEASE_RES_REPLY__INIT;
    struct admin_caller caller;
    struct err err = {0};
    char name[STORE_NAME_MAX * 2];
    admin_who (svc, call, &caller);
    arena_reset (svc->call_arena);
    int rc = admin_require (&caller, ADMIN_JOBS, "releasing a reservation", &err);
    struct site_rsv *rsv = rc == 0 ? resv_find (svc, r->name) : NULL;
    if (rc == 0 && !rsv)
        rsv = resv_of_group (svc, r->name);
    if (rc == 0 && !rsv)
        rc = resv_core (svc, r->name)
                 ? err_set (&err, ERR_CONFLICT,
                            "%.80s is a standing reservation: the configuration's SRCFG says how "
                            "long it is",
                            r->name)
                 : err_set (&err, ERR_NOT_FOUND, "cannot locate reservation '%.80s'", r->name);
    snprintf (name, sizeof name, "%s", r->name);
    if (rc == 0 && rsv->rec.part)
        rc = group_release (svc, &caller, rsv, &err);
    else if (rc == 0)
        rc = resv_release (svc, &caller, rsv, &err);
    if (rc != 0) {
        jobs_refuse (svc, call, &err);
        return;
    }
    reply.name = name;
    reply.type = (char *)"User";
    rpccall_reply (call, &reply.base);
}
