#include "local/svc/admin.h"

#include <pwd.h>
#include <stdarg.h>
#include <string.h>

#include "proto/base/clock.h"
#include "proto/base/text.h"

/* --- who may what ------------------------------------------------------------------------- */

static bool listed (const struct settings_admins *list, const struct admin_caller *caller)
{
    if (list->all && caller->login[0])
        return true;
    for (uint32_t i = 0; i < list->count; i++)
        if (strcmp (list->who[i], caller->name) == 0)
            return true;
    return false;
}

void admin_who (struct svc *svc, struct rpccall *call, struct admin_caller *out)
{
    const struct principal *peer = rpccall_peer (call);
    uint32_t uid = UINT32_MAX;
    *out = (struct admin_caller){.level = ADMIN_NONE};
    out->local = rpccall_is_local (call, &uid);
    if (out->local) {
        snprintf (out->name, sizeof out->name, "%s", peer->name);
        text_printf (out->login, sizeof out->login, "%.63s", peer->name);
    } else {
        const char *account = gridmap_account (svc->gridmap, principal_uri (peer, out->name));
        text_printf (out->login, sizeof out->login, "%.63s", account ? account : "");
    }
    for (int level = ADMIN_INFO; level >= ADMIN_FULL; level--)
        if (listed (&svc->settings->admin[level - 1], out))
            out->level = (enum admin_level)level;
    if (out->local && uid == 0)
        out->level = ADMIN_FULL;
    else if (!out->local && peer->kind == PRINCIPAL_OPERATOR && out->level > ADMIN_INFO)
        out->level = ADMIN_INFO;
}

/* On the socket the account counts; with a certificate the identity that submitted the job. */
bool admin_owns (const struct admin_caller *caller, const struct store_job *rec)
{
    if (caller->local)
        return strcmp (caller->login, rec->local_account) == 0;
    return rec->submitter && strcmp (caller->name, rec->submitter) == 0;
}

int admin_require (const struct admin_caller *caller, enum admin_level level, const char *what,
                   struct err *err)
{
    if (caller->level <= level)
        return 0;
    if (caller->level == ADMIN_NONE)
        return err_set (err, ERR_DENIED, "%s is for administrators (ADMIN%d), %.120s is none", what,
                        (int)level, caller->name);
    return err_set (err, ERR_DENIED, "%s is for ADMIN%d, %.120s is ADMIN%d", what, (int)level,
                    caller->name, (int)caller->level);
}

/* In the queue's records, or out of the history when it is purged. */
static int job_find (struct svc *svc, const char *id, struct store_job *out, struct err *err)
{
    struct err other = {0};
    uint64_t number;
    bool bare = *id && strspn (id, "0123456789") == strlen (id);
    int rc = !bare ? jobs_find (svc, NULL, id, "", out, err)
                   : uint_parse (id, "job", 1, INT64_MAX, &number, err);
    if (rc == 0 && bare)
        rc = local_store_job_get (svc->store, number, out, err);
    if (rc == ERR_NOT_FOUND && admin_purged_find (svc, id, out, &other) == 0)
        return 0;
    if (rc == ERR_NOT_FOUND && bare)
        err_set (err, rc, "job %s.%s is not known at site %s", svc->site, id, svc->site);
    return rc;
}

int admin_job (struct svc *svc, const struct admin_caller *caller, const char *id,
               enum admin_level level, struct store_job *rec_out, struct site_job **live_out,
               struct err *err)
{
    int rc = job_find (svc, id, rec_out, err);
    if (rc != 0)
        return rc;
    if (caller->level > level && !admin_owns (caller, rec_out)) {
        store_job_free (rec_out);
        return err_set (err, ERR_DENIED,
                        "job %.80s is not yours; %s other people's jobs is for ADMIN%d", id,
                        level == ADMIN_INFO ? "seeing" : "changing", (int)level);
    }
    *live_out = svc_job (svc, rec_out->number);
    return 0;
}

/* --- the audit log ------------------------------------------------------------------------ */

static int audit_write (struct svc *svc, const struct admin_caller *caller, bool own,
                        const char *what, struct err *err)
{
    char quoted[600];
    int rc = own ? svc_begin (svc, err) : 0;
    if (rc == 0)
        rc = local_store_audit (svc->store, clock_now_us (), caller->name, what, err);
    if (own)
        rc = svc_commit (svc, rc, err);
    if (rc == 0)
        log_event (svc->log, LOG_LEVEL_INFO, "audit", "change", "who=%s level=%d what=%s",
                   caller->name, (int)caller->level, log_quote (what, quoted, sizeof quoted));
    return rc;
}

int admin_audit (struct svc *svc, const struct admin_caller *caller, struct err *err,
                 const char *fmt, ...)
{
    char what[512];
    va_list ap;
    va_start (ap, fmt);
    text_vprintf (what, sizeof what, fmt, ap);
    va_end (ap);
    return audit_write (svc, caller, true, what, err);
}

int admin_audit_in (struct svc *svc, const struct admin_caller *caller, struct err *err,
                    const char *fmt, ...)
{
    char what[512];
    va_list ap;
    va_start (ap, fmt);
    text_vprintf (what, sizeof what, fmt, ap);
    va_end (ap);
    return audit_write (svc, caller, false, what, err);
}

/* --- the service -------------------------------------------------------------------------- */

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
