/* The methods of nui.local.v1.Admin. Called once, when the service is opened; nothing in this room calls it. */
#include "local/svc/admin/admin.h"
#include "local/svc/svc_i.h"

#define PEOPLE (RPC_ALLOW (PRINCIPAL_USER) | RPC_ALLOW (PRINCIPAL_OPERATOR))

static const struct rpc_method methods[] = {
    {"Queue", PEOPLE, true, 0, admin_queue},
    {"CheckJob", PEOPLE, false, 0, admin_check_job},
    {"CancelJob", PEOPLE, false, 0, admin_cancel_job},
    {"Windows", PEOPLE, false, 0, admin_windows},
    {"StartTime", PEOPLE, false, 0, admin_start_time},
    {"Nodes", PEOPLE, true, 0, admin_nodes},
    {"Reservations", PEOPLE, true, 0, admin_reservations},
    {"Standing", PEOPLE, false, 0, admin_standing},
    {"SetRes", PEOPLE, false, 0, admin_set_res},
    {"ReleaseRes", PEOPLE, false, 0, admin_release_res},
    {"SetHold", PEOPLE, false, 0, admin_set_hold},
    {"SetPriority", PEOPLE, false, 0, admin_set_priority},
    {"RunJob", PEOPLE, false, 0, admin_run_job},
    {"Priorities", PEOPLE, true, 0, admin_priorities},
    {"Fairshare", PEOPLE, false, 0, admin_fairshare},
    {"Credentials", PEOPLE, false, 0, admin_credentials},
    {"Config", PEOPLE, false, 0, admin_config},
    {"Schedule", PEOPLE, false, 0, admin_schedule},
    {"ControlJob", PEOPLE, false, 0, admin_control_job},
    {"ModifyJob", PEOPLE, false, 0, admin_modify_job},
    {"SetNode", PEOPLE, false, 0, admin_set_node},
    {"ChangeParam", PEOPLE, false, 0, admin_change_param},
    {"SubmitJob", PEOPLE, false, 2 << 20, admin_submit},
    {NULL, 0, false, 0, NULL},
};

int admin_serve (struct svc *svc, struct err *err)
{
    return rpcserver_add_service (daemon_server (svc->daemon), &nui__local__v1__admin__descriptor,
                                  methods, svc, err);
}
