/* The mover, by the configuration, and the directories in which files lie until their job is
 * launched. */
#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/child/child.h"
#include "local/rm/jobdir.h"
#include "local/svc/files/staging.h"
#include "local/svc/files/staging_i.h"
#include "local/svc/svc_i.h"

enum { REMOVE_LIMIT_S = 600 };

/* Directories that are being removed. */
struct removal {
    struct svc *svc;
    struct child *child;
    struct removal *next;
};

/* --- the mover's configuration -------------------------------------------------------------- */

static struct stage_config config_of (const struct svc *svc, const struct settings *settings,
                                      char *state, size_t cap)
{
    const struct settings_stage *s = &settings->stage;
    snprintf (state, cap, "%s/stage", daemon_state_dir (svc->daemon));
    return (struct stage_config){
        .state_dir = state,
        .root = s->roots.item,
        .root_count = s->roots.count,
        .host = s->hosts.item,
        .host_count = s->hosts.count,
        .credentials = s->credentials,
        .known_hosts = s->known_hosts,
        .ca = s->ca,
        .transfers_max = (uint32_t)s->transfers,
        .host_max = (uint32_t)s->host_transfers,
        .file_max = s->file_mb << 20,
        .keep_free = s->keep_free_mb << 20,
        .s3_part = s->s3_part_mb << 20,
        .bandwidth = s->bandwidth,
        .tries_max = (uint32_t)s->tries,
        .patience = s->patience,
        .rate_min = s->rate_min,
        .time_max = s->time_max,
    };
}

/* JOBDIR/.stage, once something is to lie there. */
static int staging_dir_open (struct svc *svc, bool make, struct err *err)
{
    char path[4200];
    if (svc->staging->dir >= 0)
        return 0;
    snprintf (path, sizeof path, "%s/.stage", svc->job_dir);
    if (!make || mkdir (path, 0700) == 0 || errno == EEXIST)
        svc->staging->dir = open (path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    return svc->staging->dir >= 0 ? 0 : err_set (err, ERR_IO, "%s: %s", path, strerror (errno));
}

static int begin (struct svc *svc, const struct settings *settings, struct err *err)
{
    char state[4096];
    struct stage_config config = config_of (svc, settings, state, sizeof state);
    struct stage *mover = stage_create (svc->base, svc->log, &config, err);
    if (!mover)
        return err ? err->code : ERR_INVALID;
    svc->staging = calloc (1, sizeof *svc->staging);
    assert (svc->staging);
    svc->staging->mover = mover;
    stage_sent_set (mover, inputs_sent (svc));
    svc->staging->dir = -1;
    (void)staging_dir_open (svc, false, NULL);
    return 0;
}

static bool acts (const struct settings *settings)
{
    return settings->mode.mode == MODE_NORMAL || settings->mode.mode == MODE_INTERACTIVE;
}

static int open_by (struct svc *svc, const struct settings *settings, struct err *err)
{
    static const struct settings_stage nothing;
    char path[4200];
    snprintf (path, sizeof path, "%s/.stage", svc->job_dir);
    if (!acts (settings) ||
        (memcmp (&settings->stage, &nothing, sizeof nothing) == 0 && access (path, F_OK) != 0))
        return 0;
    return begin (svc, settings, err);
}

int staging_open (struct svc *svc, struct err *err)
{
    return open_by (svc, svc->settings, err);
}

int staging_need (struct svc *svc, struct err *err)
{
    return svc->staging || !acts (svc->settings) ? 0 : begin (svc, svc->settings, err);
}

int staging_reload (struct svc *svc, const struct settings *settings, struct err *err)
{
    char state[4096];
    if (!svc->staging)
        return open_by (svc, settings, err);
    struct stage_config config = config_of (svc, settings, state, sizeof state);
    return stage_reconfigure (svc->staging->mover, &config, err);
}

struct stage *staging_mover (const struct svc *svc)
{
    return svc->staging ? svc->staging->mover : NULL;
}

/* --- directories ------------------------------------------------------------------------------ */

int staging_dir_make (struct svc *svc, const char *key, const char *account, int *fd_out,
                      struct err *err)
{
    struct passwd pw;
    char buf[4096];
    int rc = jobdir_account (account, &pw, buf, sizeof buf, err);
    if (rc == 0)
        rc = staging_dir_open (svc, true, err);
    if (rc != 0)
        return rc;
    if (mkdirat (svc->staging->dir, key, 0700) != 0 && errno != EEXIST)
        return err_set (err, ERR_IO, "directory for the files of a job: %s", strerror (errno));
    int fd = openat (svc->staging->dir, key, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || (geteuid () == 0 && fchown (fd, pw.pw_uid, pw.pw_gid) != 0)) {
        rc = err_set (err, ERR_IO, "directory for the files of a job: %s", strerror (errno));
        if (fd >= 0)
            close (fd);
        return rc;
    }
    *fd_out = fd;
    return 0;
}

static void removal_free (struct removal *removal)
{
    struct removal **at = &removal->svc->staging->removals;
    while (*at != removal)
        at = &(*at)->next;
    *at = removal->next;
    free (removal);
}

static void on_removed (void *arg, int exit_code, bool timed_out)
{
    struct removal *removal = arg;
    if (exit_code != 0)
        log_event (removal->svc->log, LOG_LEVEL_ERROR, "stage", "files_not_removed",
                   "exit_code=%d timeout=%d", exit_code, timed_out);
    removal_free (removal);
}

void staging_dir_remove (struct svc *svc, const char *key)
{
    static const char *const envp[] = {"PATH=/usr/bin:/bin", NULL};
    char path[4300];
    struct err err = {0};
    snprintf (path, sizeof path, "%s/.stage/%s", svc->job_dir, key);
    const char *const argv[] = {"/bin/rm", "-rf", "--", path, NULL};
    struct removal *removal = calloc (1, sizeof *removal);
    assert (removal);
    removal->svc = svc;
    removal->next = svc->staging->removals;
    svc->staging->removals = removal;
    removal->child =
        child_run (svc->base, argv, envp, REMOVE_LIMIT_S * US_PER_S, on_removed, removal, &err);
    if (!removal->child) {
        log_event (svc->log, LOG_LEVEL_ERROR, "stage", "files_not_removed", "error=\"%s\"",
                   err.text);
        removal_free (removal);
    }
}

void staging_removals_drop (struct svc *svc)
{
    struct staging *staging = svc->staging;
    while (staging->removals) {
        child_kill (staging->removals->child);
        removal_free (staging->removals);
    }
}
