/* Who asks for something, what administrators' levels let him do, and the audit log in which each change is written down with
 * what it changes. Called by the rooms that people's calls come to (admin, reservations); it decides nothing about jobs. */
#include "local/svc/caller.h"

#include <pwd.h>
#include <stdarg.h>
#include <string.h>

#include "local/svc/svc_i.h"
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
