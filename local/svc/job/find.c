/* The job that a call names, and whether its caller may have it: by certificate, by account on the socket. */
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "local/svc/job/jobs.h"
#include "local/svc/svc_i.h"
#include "proto/base/text.h"
#include "proto/job/element.h"

/* Its metascheduler is told neither that it is here nor that it is not. */
static int stray_check (const struct svc *svc, const char *job_id, struct err *err)
{
    for (const struct svc_stray *s = svc->strays; s; s = s->hh.next)
        if (strcmp (s->job_id, job_id) == 0)
            return err_set (
                err, ERR_UNAVAILABLE,
                "job %.80s came after the moment to which site %s was restored, and is being ended",
                job_id, svc->site);
    return 0;
}

int jobs_find (struct svc *svc, const struct rpccall *call, const char *job_id,
               const char *component, struct store_job *out, struct err *err)
{
    struct element_id id;
    const struct principal *peer = call ? rpccall_peer (call) : NULL;
    const char *meta = peer && peer->kind == PRINCIPAL_META ? peer->name : "";
    int rc = element_id_parse (job_id, &id, err);
    if (rc != 0)
        return rc;
    if (strcmp (id.prefix, svc->site) == 0 && !id.range_count && id.number <= INT64_MAX)
        rc = local_store_job_get (svc->store, id.number, out, err);
    else
        rc = local_store_job_find (svc->store, settings_speakers (svc->settings, meta), job_id,
                                   component, out, err);
    if (rc == ERR_NOT_FOUND && stray_check (svc, job_id, err) != 0)
        return ERR_UNAVAILABLE;
    if (rc == ERR_NOT_FOUND)
        return err_set (err, rc, "job %.80s is not known at site %s", job_id, svc->site);
    return rc;
}

int jobs_allowed (struct svc *svc, struct rpccall *call, const struct store_job *rec, unsigned who,
                  struct err *err)
{
    const struct principal *peer = rpccall_peer (call);
    char uri[PRINCIPAL_URI_MAX];
    uint32_t uid;
    if (rpccall_is_local (call, &uid)) {
        struct passwd pw, *found = NULL;
        char buf[4096];
        if (uid == 0 && (who & JOBS_OPERATOR))
            return 0;
        if ((who & JOBS_OWNER) &&
            getpwnam_r (rec->local_account, &pw, buf, sizeof buf, &found) == 0 && found &&
            found->pw_uid == uid)
            return 0;
    } else if (peer->kind == PRINCIPAL_OPERATOR) {
        if (who & JOBS_OPERATOR)
            return 0;
    } else if (peer->kind == PRINCIPAL_META) {
        if ((who & JOBS_META) && settings_speaks_for (svc->settings, peer->name, rec->meta))
            return 0;
    } else if ((who & JOBS_OWNER) && rec->submitter &&
               strcmp (principal_uri (peer, uri), rec->submitter) == 0) {
        return 0;
    }
    return err_set (err, ERR_DENIED, "job %s.%llu is not yours", svc->site,
                    (unsigned long long)rec->number);
}

void jobs_refuse (struct svc *svc, struct rpccall *call, const struct err *err)
{
    char quoted[ERR_TEXT_MAX];
    if (err->code == ERR_UNAUTHENTIC || err->code == ERR_DENIED)
        log_event (svc->log, LOG_LEVEL_WARN, "trust", "refused", "caller=%s why=%s",
                   rpccall_peer (call)->name, log_quote (err->text, quoted, sizeof quoted));
    rpccall_fail (call, err);
}
