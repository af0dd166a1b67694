/* Which metaschedulers this site speaks to. Asked for each call of one; it places, starts and ends nothing.
 *
 * A certificate says who a metascheduler is, not that this site's administrator wants its jobs. Wanted are those that the
 * file names (METAGROUP, GRIDCFG[name], PEERCAP[name]) and whoever shows its certificate where META says, when this site
 * connects there itself. That name is kept with the address, so that a site that is started while a metascheduler cannot
 * be reached does not turn it away. An address has one name, the last that was seen there. While one of META has never
 * been reached nobody can say that a stranger is not the one: it is told to come again, and told no from then on. */
#include <stdlib.h>
#include <string.h>

#include "local/svc/grid/grid.h"
#include "local/svc/job/jobs.h"
#include "local/svc/svc_i.h"
#include "proto/base/text.h"

struct named {
    char at[SETTINGS_METAS_MAX][STORE_NAME_MAX]; /* by META's order; "": never reached */
};

static void named_key (const struct svc *svc, uint32_t at, char out[300])
{
    text_printf (out, 300, "meta %.280s", svc->settings->metas[at]);
}

void named_met (struct svc *svc, uint32_t at, const char *meta)
{
    char key[300], *kept = svc->named->at[at];
    struct err err = {0};
    if (!*meta || strcmp (kept, meta) == 0)
        return;
    named_key (svc, at, key);
    int rc = svc_begin (svc, &err);
    if (rc == 0)
        rc = local_store_blob_put (svc->store, key, meta, strlen (meta), &err);
    if (svc_commit (svc, rc, &err) != 0)
        return; /* with its next answer */
    log_event (svc->log, LOG_LEVEL_INFO, "meta", "named", "address=%s name=%s before=%s",
               svc->settings->metas[at], meta, *kept ? kept : "none");
    text_printf (kept, STORE_NAME_MAX, "%.63s", meta);
}

/* The name at an address: as the connection shows it, else as it was kept. */
static const char *named_at (const struct svc *svc, uint32_t at)
{
    const char *shown = meta_link_server (svc->meta, at);
    return *shown ? shown : svc->named->at[at];
}

/* Whether this site speaks to it: ERR_DENIED, or ERR_UNAVAILABLE while an address of META has never been reached. */
static int named_check (const struct svc *svc, const char *meta, struct err *err)
{
    const char *unknown = NULL;
    if (settings_names (svc->settings, meta))
        return 0;
    for (uint32_t i = 0; i < svc->settings->meta_count; i++) {
        const char *name = named_at (svc, i);
        if (strcmp (name, meta) == 0)
            return 0;
        if (!*name && !unknown)
            unknown = svc->settings->metas[i];
    }
    if (unknown)
        return err_set (
            err, ERR_UNAVAILABLE,
            "site %s has not reached META %.100s yet and cannot tell whether that is metascheduler %.63s",
            svc->site, unknown, meta);
    return err_set (
        err, ERR_DENIED,
        "site %s does not serve metascheduler %.63s: none of META has that name, and no METAGROUP, GRIDCFG or "
        "PEERCAP says it",
        svc->site, meta);
}

bool named_admits (struct svc *svc, struct rpccall *call)
{
    const struct principal *peer = rpccall_peer (call);
    struct err err = {0};
    if (peer->kind != PRINCIPAL_META || named_check (svc, peer->name, &err) == 0)
        return true;
    jobs_refuse (svc, call, &err);
    return false;
}

int named_open (struct svc *svc, struct err *err)
{
    svc->named = calloc (1, sizeof *svc->named);
    if (!svc->named)
        return err_set (err, ERR_NOMEM, "names of metaschedulers: no memory");
    for (uint32_t i = 0; i < svc->settings->meta_count; i++) {
        char key[300];
        void *name = NULL;
        size_t len = 0;
        named_key (svc, i, key);
        int rc = local_store_blob_get (svc->store, key, &name, &len, err);
        if (rc == 0)
            text_printf (svc->named->at[i], STORE_NAME_MAX, "%.*s", len < 63 ? (int)len : 63,
                         (const char *)name);
        free (name);
        if (rc != 0 && rc != ERR_NOT_FOUND)
            return rc;
    }
    err_clear (err);
    return 0;
}

void named_close (struct svc *svc)
{
    free (svc->named);
    svc->named = NULL;
}
