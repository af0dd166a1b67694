/* TEST beside a production scheduler (PRODUCTION). What its store has is read at the beginning
 * and with each poll: jobs that wait and run, holds and priorities, reservations, what is set on nodes.
 * So plans are those that production would make with this configuration; of what runs there only what
 * production says is believed. Nothing is ever written there, and no resource manager is asked.
 *
 * Its own store is a scratch file, begun anew each time. Listens for polls. */
#include "local/svc/modes/modes.h"

#include <stdlib.h>

#include "local/store/follow.h"
#include "local/svc/job.h"
#include "local/svc/job/life.h"
#include "local/svc/memory/memory.h"
#include "local/svc/nodes.h"
#include "local/svc/resv/resv.h"
#include "local/svc/svc_i.h"

struct follow {
    uint64_t followed; /* how often */
};

static void jobs_change (struct svc *svc, const struct follow_changes *c)
{
    for (uint32_t i = 0; i < c->gone_count; i++) {
        struct site_job *job = svc_job (svc, c->gone[i]);
        if (job)
            life_drop (svc, job);
    }
    for (uint32_t i = 0; i < c->come_count; i++) {
        struct err err = {0};
        struct store_job rec;
        char id[SITE_ID_MAX];
        int rc = local_store_job_get (svc->store, c->come[i], &rec, &err);
        if (rc == 0)
            rc = svc_job_recover (svc, &rec, &err);
        if (rc != 0)
            log_event (svc->log, LOG_LEVEL_WARN, "mode", "not_followed_job", "job=%s error=\"%s\"",
                       site_id (svc, c->come[i], id), err.text);
    }
}

static int nodes_change (struct svc *svc, struct err *err)
{
    for (uint32_t n = 0; n < svc->node_count; n++) {
        int rc = svc_node_sets_load (svc, svc->node_by_id[n], err);
        if (rc != 0)
            return rc;
    }
    return svc_nodes_apply (svc, svc->settings, err);
}

static int follow (struct svc *svc, struct err *err)
{
    struct follow_changes c;
    int rc = follow_read (svc->store, svc->site, &c, err);
    if (rc == 0 && c.nodes)
        rc = nodes_change (svc, err);
    if (rc == 0 && c.reservations) {
        resv_forget_all (svc);
        rc = resv_recover (svc, err);
    }
    if (rc == 0) {
        jobs_change (svc, &c);
        svc->follow->followed++;
        log_event (svc->log, LOG_LEVEL_DEBUG, "mode", "followed", "gone=%u come=%u", c.gone_count,
                   c.come_count);
    }
    follow_changes_free (&c);
    return rc;
}

int follow_open (struct svc *svc, const struct settings *settings, struct err *err)
{
    char path[4200];
    if (settings->mode.mode != MODE_TEST || !settings->mode.production)
        return 0;
    svc->follow = calloc (1, sizeof *svc->follow);
    if (!svc->follow)
        return err_set (err, ERR_NOMEM, "follow: no memory");
    snprintf (path, sizeof path, "%s/local.db", settings->mode.production);
    int rc = follow_attach (svc->store, path, err);
    if (rc == 0) {
        fairshare_file_load (svc);
        rc = follow (svc, err);
    }
    return rc == 0 ? 0 : err_prefix (err, "PRODUCTION");
}

static void follow_close (struct svc *svc)
{
    free (svc->follow);
    svc->follow = NULL;
}

static void follow_poll (struct svc *svc)
{
    struct err err = {0};
    if (svc->follow && follow (svc, &err) != 0)
        log_event (svc->log, LOG_LEVEL_ERROR, "mode", "not_followed", "error=\"%s\"", err.text);
}

const struct svc_listener follow_listener = {.polled = follow_poll, .close = follow_close};
