/* showconfig: what is in force, as lines that maui.cfg could hold. The tables of parameters say it (conf_show); what is
 * of this machine (paths, addresses, identity) is left out unless it is asked for. Called by the admin service. */
#include "local/svc/admin/admin.h"
#include "local/svc/caller.h"
#include "local/svc/job/jobs.h"
#include "local/svc/svc_i.h"
#include "proto/conf/conf.h"
#include "proto/rpc/daemon.h"

struct config_lines {
    struct arena *arena;
    Nui__Local__V1__ConfigReply *reply;
    size_t room;
    bool all;
};

static void config_add (void *arg, const struct conf_param *param, const char *name,
                        const char *value)
{
    struct config_lines *l = arg;
    Nui__Local__V1__ConfigReply *r = l->reply;
    if (!l->all && (param->type == CONF_PATH || (param->flags & CONF_F_PLACE)))
        return;
    if (r->n_parameters == l->room) {
        Nui__Local__V1__Parameter **more = arena_array (l->arena, 2 * l->room + 64, sizeof *more);
        for (size_t i = 0; i < r->n_parameters; i++)
            more[i] = r->parameters[i];
        r->parameters = more;
        l->room = 2 * l->room + 64;
    }
    Nui__Local__V1__Parameter *p = arena_new (l->arena, Nui__Local__V1__Parameter);
    nui__local__v1__parameter__init (p);
    p->name = arena_strdup (l->arena, name);
    p->value = arena_strdup (l->arena, value);
    r->parameters[r->n_parameters++] = p;
}

void admin_config (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct svc *svc = self;
    const Nui__Local__V1__ConfigRequest *r = (const Nui__Local__V1__ConfigRequest *)request;
    Nui__Local__V1__ConfigReply reply = NUI__LOCAL__V1__CONFIG_REPLY__INIT;
    struct config_lines lines = {.arena = svc->call_arena, .reply = &reply, .all = r->all};
    struct admin_caller caller;
    struct err err = {0};
    admin_who (svc, call, &caller);
    if (admin_require (&caller, ADMIN_INFO, "the configuration", &err) != 0) {
        jobs_refuse (svc, call, &err);
        return;
    }
    arena_reset (svc->call_arena);
    conf_show (daemon_conf (svc->daemon), svc->call_arena, config_add, &lines);
    rpccall_reply (call, &reply.base);
}
