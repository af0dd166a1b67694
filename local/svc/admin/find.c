/* A job by the name that people use, and whether the caller may see or change it. Called by every command about one job. */
#include <string.h>

#include "local/svc/admin/admin.h"
#include "local/svc/caller.h"
#include "local/svc/job.h"
#include "local/svc/job/jobs.h"
#include "local/svc/svc_i.h"

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
