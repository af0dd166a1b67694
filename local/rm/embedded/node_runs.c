/* node_runs: the runs that nui-node has, by their directories. Files come piece by piece into `.in-KEY.MARK`, which gets its
 * name when it is whole; then the embedded runner takes it over as after a restart. node_serve.c calls it. */
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "local/rm/embedded/node_i.h"
#include "local/rm/embedded/rm_embedded.h"
#include "local/rm/embedded/runfiles.h"
#include "local/rm/program_path.h"
#include "local/rm/supervise_file.h"
#include "proto/base/text.h"

enum { SPEC_BYTES_MAX = 4 << 20, PART_LONGER_S = 600 };

static const char taken_file[] = "taken";

/* --- names ------------------------------------------------------------------------------------ */

static int run_name_check (const Nui__Node__V1__Run *name, char key[JOBDIR_KEY_MAX],
                           struct err *err)
{
    if (!name)
        return err_set (err, ERR_INVALID, "no run is named");
    int rc = name_check ("job id", name->job_id, err);
    size_t hex = strspn (name->mark, "0123456789abcdef");
    if (rc == 0 && (name->mark[hex] || hex < 8 || hex >= RM_MARK_MAX))
        rc = err_set (err, ERR_INVALID, "run of %s: a mark of 8 to %d hexadecimal digits",
                      name->job_id, RM_MARK_MAX - 1);
    if (rc == 0 && name->incarnation > INT32_MAX)
        rc = err_set (err, ERR_INVALID, "run of %s: incarnation %u", name->job_id,
                      name->incarnation);
    if (rc == 0)
        jobdir_key (name->job_id, name->incarnation, key);
    return rc;
}

struct node_run *node_run_find (struct node *node, const Nui__Node__V1__Run *name, struct err *err)
{
    char key[JOBDIR_KEY_MAX];
    struct node_run *run = NULL;
    if (run_name_check (name, key, err) != 0)
        return NULL;
    HASH_FIND_STR (node->runs, key, run);
    if (run && !run->taken && strcmp (run->mark, name->mark) == 0)
        return run;
    err_set (err, ERR_NOT_FOUND, "there is no run of job %s here", key);
    return NULL;
}

static struct node_run *run_add (struct node *node, const char *job_id, uint32_t incarnation,
                                 const char *mark)
{
    struct node_run *run = calloc (1, sizeof *run);
    assert (run);
    run->incarnation = incarnation;
    snprintf (run->job_id, sizeof run->job_id, "%s", job_id);
    snprintf (run->mark, sizeof run->mark, "%s", mark);
    jobdir_key (job_id, incarnation, run->key);
    HASH_ADD_STR (node->runs, key, run);
    return run;
}

int node_run_dir (struct node *node, const struct node_run *run, struct err *err)
{
    return jobdir_open (node->dir, run->job_id, run->incarnation, run->mark, err);
}

/* --- what the runner tells -------------------------------------------------------------------- */

static void on_event (void *arg, const struct rm_event *event)
{
    struct node *node = arg;
    char key[JOBDIR_KEY_MAX];
    struct node_run *run;
    if (event->kind != RM_EVENT_STARTED && event->kind != RM_EVENT_ENDED)
        return;
    jobdir_key (event->job_id, event->incarnation, key);
    HASH_FIND_STR (node->runs, key, run);
    if (!run || run->taken)
        return;
    run->status = *event->status;
    run->status.ended = event->kind == RM_EVENT_ENDED;
    node_tell_run (node, run);
}

/* --- those that are done with ----------------------------------------------------------------- */

static void runs_remove (struct node *node);

static void on_removed (void *arg, bool ok)
{
    struct node *node = arg;
    struct node_run *run, *next;
    node->removing = false;
    if (!ok)
        return; /* it is told of in the log; after a restart it is tried again */
    HASH_ITER (hh, node->runs, run, next)
        if (run->taken && faccessat (node->dir, run->key, F_OK, AT_SYMLINK_NOFOLLOW) != 0) {
            HASH_DEL (node->runs, run);
            free (run);
        }
    runs_remove (node);
}

static void runs_remove (struct node *node)
{
    struct rm_gone gone[RM_GONE_MAX];
    struct node_run *run, *next;
    uint32_t count = 0;
    struct err err = {0};
    HASH_ITER (hh, node->runs, run, next)
        if (run->taken && count < RM_GONE_MAX)
            gone[count++] = (struct rm_gone){run->job_id, run->incarnation, run->mark};
    if (node->removing || count == 0)
        return;
    node->removing = node->rm.ops->forget (node->rm.self, gone, count, on_removed, node, &err) == 0;
}

int node_run_taken (struct node *node, const Nui__Node__V1__Run *name, struct err *err)
{
    struct err why = {0};
    struct node_run *run = node_run_find (node, name, &why);
    if (!run) /* it was taken before */
        return why.code == ERR_NOT_FOUND ? 0 : err_set (err, why.code, "%s", why.text);
    if (!run->status.ended)
        return err_set (err, ERR_CONFLICT, "the run of job %s has not ended", run->key);
    int dir = node_run_dir (node, run, err);
    if (dir < 0)
        return ERR_IO;
    int rc = file_write_durable (dir, taken_file, "", 0, 0600) == 0
                 ? 0
                 : err_set (err, ERR_IO, "job %s: %s", run->key, strerror (errno));
    close (dir);
    if (rc == 0) {
        run->taken = true;
        runs_remove (node);
    }
    return rc;
}

/* --- files that come -------------------------------------------------------------------------- */

static int in_remove_one (const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove (path);
}

/* Its name in JOBDIR while it is not whole. Nobody but root comes into it. */
static void in_name (const char *key, const char *mark, char out[JOBDIR_KEY_MAX + 20])
{
    snprintf (out, JOBDIR_KEY_MAX + 20, ".in-%s.%.8s", key, mark);
}

static int in_begin (struct node *node, const char *in, struct err *err)
{
    char path[4300];
    snprintf (path, sizeof path, "%s/%s", node->job_dir, in);
    nftw (path, in_remove_one, 32, FTW_DEPTH | FTW_PHYS);
    int work = -1;
    if (mkdirat (node->dir, in, 0700) == 0) {
        snprintf (path, sizeof path, "%s/work", in);
        work = mkdirat (node->dir, path, 0700);
    }
    return work == 0 ? 0 : err_set (err, ERR_IO, "directory %s: %s", in, strerror (errno));
}

int node_run_put (struct node *node, const Nui__Node__V1__PutRequest *request, struct err *err)
{
    char key[JOBDIR_KEY_MAX], in[JOBDIR_KEY_MAX + 20], path[JOBDIR_KEY_MAX + 30], buf[4096];
    struct passwd pw;
    int rc = run_name_check (request->run, key, err);
    if (rc == 0)
        rc = jobdir_account (request->account, &pw, buf, sizeof buf, err);
    if (rc != 0)
        return rc;
    in_name (key, request->run->mark, in);
    if (request->anew)
        rc = in_begin (node, in, err);
    if (rc != 0)
        return rc;
    snprintf (path, sizeof path, "%s/work", in);
    int work = openat (node->dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (work < 0)
        return err_set (err, ERR_CONFLICT, "job %s: no file of it has come yet", key);
    struct runfile file = {.path = request->path,
                           .target = request->target,
                           .kind = (enum runfile_kind)request->kind,
                           .mode = request->mode};
    rc = request->offset < 0 ? err_set (err, ERR_INVALID, "a piece before the file's beginning")
                             : runfiles_write (work, &file, request->offset, request->data.data,
                                               request->data.len, pw.pw_uid, pw.pw_gid, err);
    close (work);
    return rc;
}

/* --- a run that begins ------------------------------------------------------------------------ */

/* What of the site's specification holds here as it is. */
static bool spec_key_known (const char *text)
{
    static const char *const known[] = {
        "job_id=",        "mark=",        "hold=",     "account=",       "stdout=", "stderr=",
        "start_us=",      "walltime_us=", "grace_us=", "output_max_mb=", "procs=",  "memory_mb=",
        "pids_max=",      "arg=",         "env=",      "chdir=",         "script=", "signal=",
        "signal_script=", "signal_us=",   NULL};
    for (const char *const *k = known; *k; k++)
        if (strncmp (text, *k, strlen (*k)) == 0)
            return true;
    return false;
}

static void spec_add (struct strbuf *out, const char *key, const char *value)
{
    strbuf_printf (out, "%s=%s", key, value);
    strbuf_append (out, "", 1);
}

/* A variable whose value is a path below the job's directory at the site's has that of this host. */
static bool spec_env_moved (struct node *node, const char *text, const char *parent,
                            const char *key, struct strbuf *out)
{
    const char *value = strncmp (text, "env=", 4) == 0      ? strchr (text + 4, '=')
                        : strncmp (text, "script=", 7) == 0 ? text + 6
                                                            : NULL;
    size_t len = strlen (parent);
    if (!value || !len || strncmp (value + 1, parent, len) != 0 || value[1 + len] != '/' ||
        strncmp (value + 2 + len, key, strlen (key)) != 0)
        return false;
    strbuf_printf (out, "%.*s%s%s", (int)(value + 1 - text), text, node->job_dir, value + 1 + len);
    strbuf_append (out, "", 1);
    return true;
}

/* What a part of a job has of its own: its share, and time enough to outlive the script. */
static bool spec_key_of_whole (const char *text)
{
    return strncmp (text, "procs=", 6) == 0 || strncmp (text, "memory_mb=", 10) == 0 ||
           strncmp (text, "walltime_us=", 12) == 0 || strncmp (text, "chdir=", 6) == 0 ||
           strncmp (text, "script=", 7) == 0 || strncmp (text, "signal", 6) == 0 ||
           strncmp (text, "arg=", 4) == 0 || strncmp (text, "stdout=", 7) == 0 ||
           strncmp (text, "stderr=", 7) == 0;
}

static void spec_add_int (struct strbuf *out, const char *key, int64_t value)
{
    char text[32];
    snprintf (text, sizeof text, "%lld", (long long)value);
    spec_add (out, key, text);
}

static void spec_part (const Nui__Node__V1__StartRequest *request, struct strbuf *out)
{
    const char *walltime =
        spec_get ((const char *)request->spec.data, request->spec.len, "walltime_us");
    int64_t us = walltime ? strtoll (walltime, NULL, 10) : 0;
    spec_add_int (out, "procs", request->procs);
    spec_add_int (out, "memory_mb", request->memory_mb);
    spec_add_int (out, "walltime_us", us < INT64_MAX / 2 ? us + PART_LONGER_S * US_PER_S : us);
    spec_add (out, "stdout", ".tasks-out");
    spec_add (out, "stderr", ".tasks-err");
}

static void spec_build (struct node *node, const Nui__Node__V1__StartRequest *request,
                        const char *key, const struct passwd *pw, struct strbuf *out)
{
    const char *spec = (const char *)request->spec.data, *end = spec + request->spec.len;
    char text[512];
    for (const char *p = spec; p < end; p += strlen (p) + 1)
        if (spec_key_known (p) && !(request->part && spec_key_of_whole (p)) &&
            !spec_env_moved (node, p, request->parent, key, out))
            strbuf_append (out, p, strlen (p) + 1);
    if (request->part)
        spec_part (request, out);
    spec_add_int (out, "uid", (int64_t)pw->pw_uid);
    spec_add_int (out, "gid", (int64_t)pw->pw_gid);
    spec_add_int (out, "incarnation", request->run->incarnation);
    if (*node->cgroup) {
        snprintf (text, sizeof text, "%s/%s.%.8s", node->cgroup, key, request->run->mark);
        spec_add (out, "cgroup", text);
    }
}

static int spec_check (const Nui__Node__V1__StartRequest *request, struct err *err)
{
    const ProtobufCBinaryData *spec = &request->spec;
    const char *text = (const char *)spec->data;
    if (spec->len == 0 || spec->len > SPEC_BYTES_MAX || text[spec->len - 1])
        return err_set (err, ERR_INVALID, "a specification of 1 to %d bytes with its end",
                        SPEC_BYTES_MAX);
    const char *id = spec_get (text, spec->len, "job_id"),
               *mark = spec_get (text, spec->len, "mark");
    if (!id || !mark || strcmp (id, request->run->job_id) != 0 ||
        strcmp (mark, request->run->mark) != 0)
        return err_set (err, ERR_INVALID, "the specification is another run's");
    return 0;
}

/* In the place of the script's: what starts the job's tasks here. */
static int run_part (struct node *node, const char *in, const char *key, const struct passwd *pw,
                     struct err *err)
{
    char path[JOBDIR_KEY_MAX + 30], program[4096], text[4200];
    program_path ("nui-tasks", program, sizeof program);
    int n = snprintf (text, sizeof text, "#!/bin/sh\nexec '%s'\n", program);
    snprintf (path, sizeof path, "%s/work", in);
    int work = openat (node->dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    bool ok = work >= 0 && file_write_durable (work, "script", text, (size_t)n, 0700) == 0 &&
              (geteuid () != 0 ||
               fchownat (work, "script", pw->pw_uid, pw->pw_gid, AT_SYMLINK_NOFOLLOW) == 0);
    int error = errno;
    if (work >= 0)
        close (work);
    if (work < 0 && error == ENOENT)
        return err_set (err, ERR_CONFLICT, "job %s: its files have not come", key);
    return ok ? 0 : err_set (err, ERR_IO, "%s: %s", path, strerror (error));
}

/* In `in`, whole and on disk, and then under its own name. */
static int run_place (struct node *node, const char *in, const char *key, const struct passwd *pw,
                      const struct strbuf *spec, struct err *err)
{
    int dir = openat (node->dir, in, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (dir < 0)
        return err_set (err, ERR_CONFLICT, "job %s: its files have not come", key);
    bool ok =
        geteuid () != 0 || fchownat (dir, "work", pw->pw_uid, pw->pw_gid, AT_SYMLINK_NOFOLLOW) == 0;
    ok = ok && file_write_durable (dir, "spec", spec->data, spec->len, 0600) == 0 &&
         fchmod (dir, 0711) == 0 && renameat (node->dir, in, node->dir, key) == 0 &&
         fsync (node->dir) == 0;
    int error = errno;
    close (dir);
    return ok ? 0 : err_set (err, ERR_IO, "directory of job %s: %s", key, strerror (error));
}

static int run_adopt (struct node *node, struct node_run *run, struct err *err)
{
    int rc = node->rm.ops->adopt (node->rm.self, run->job_id, run->incarnation, run->mark, err);
    if (rc != 0) {
        HASH_DEL (node->runs, run);
        free (run);
    }
    return rc;
}

int node_run_start (struct node *node, const Nui__Node__V1__StartRequest *request, struct err *err)
{
    char key[JOBDIR_KEY_MAX], in[JOBDIR_KEY_MAX + 20], buf[4096];
    struct passwd pw;
    int rc = run_name_check (request->run, key, err);
    if (rc == 0)
        rc = spec_check (request, err);
    if (rc != 0 || node_run_find (node, request->run, NULL))
        return rc; /* it is here already */
    const char *account = spec_get ((const char *)request->spec.data, request->spec.len, "account");
    rc = jobdir_account (account ? account : "", &pw, buf, sizeof buf, err);
    struct rm_job job = {.job_id = request->run->job_id,
                         .incarnation = request->run->incarnation,
                         .mark = request->run->mark};
    if (rc == 0)
        rc = jobdir_make_way (node->dir, &job, key, node->log, err);
    if (rc == 0) {
        struct strbuf spec = STRBUF_INIT;
        spec_build (node, request, key, &pw, &spec);
        in_name (key, request->run->mark, in);
        rc = request->part ? run_part (node, in, key, &pw, err) : 0;
        if (rc == 0)
            rc = run_place (node, in, key, &pw, &spec, err);
        strbuf_free (&spec);
    } else if (rc == ERR_EXISTS) {
        rc = 0; /* it came, and could not be taken up */
    }
    if (rc == 0)
        rc = run_adopt (node, run_add (node, job.job_id, job.incarnation, job.mark), err);
    return rc;
}

/* --- after a restart -------------------------------------------------------------------------- */

static void run_again (struct node *node, const char *name)
{
    size_t len = 0;
    struct err err = {0};
    int dir = openat (node->dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    char *spec = dir >= 0 ? file_read_all (dir, "spec", &len) : NULL;
    const char *id = spec ? spec_get (spec, len, "job_id") : NULL,
               *mark = spec ? spec_get (spec, len, "mark") : NULL,
               *incarnation = spec ? spec_get (spec, len, "incarnation") : NULL;
    char key[JOBDIR_KEY_MAX] = "";
    if (id && mark && incarnation && strlen (mark) < RM_MARK_MAX &&
        name_check ("job id", id, NULL) == 0)
        jobdir_key (id, (uint32_t)strtoul (incarnation, NULL, 10), key);
    if (strcmp (key, name) == 0) {
        struct node_run *run = run_add (node, id, (uint32_t)strtoul (incarnation, NULL, 10), mark);
        run->taken = faccessat (dir, taken_file, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
        if (!run->taken && run_adopt (node, run, &err) != 0)
            log_event (node->log, LOG_LEVEL_ERROR, "node", "run_not_taken_up",
                       "run=%s error=\"%s\"", name, err.text);
    }
    free (spec);
    if (dir >= 0)
        close (dir);
}

int node_runs_open (struct node *node, struct err *err)
{
    char group[96];
    rm_embedded_group ("node", node->settings->site, node->settings->job_dir, group, sizeof group);
    struct rm_embedded_config config = {
        .base = node->base,
        .log = node->log,
        .job_dir = node->settings->job_dir,
        .supervise_path = node->settings->supervise,
        .cgroups = node->settings->cgroups,
        .cgroup_name = group,
        .on_event = on_event,
        .arg = node,
    };
    node->dir = -1;
    node->watch = filewatch_create (node->base);
    config.watch = node->watch;
    int rc = rm_embedded_create (&config, &node->rm, err);
    if (rc == 0)
        rc = jobdir_parent (node->settings->job_dir, &node->job_dir, &node->dir, err);
    if (rc != 0)
        return rc;
    node->cgroup = rm_embedded_cgroup (&node->rm);
    DIR *list = opendir (node->job_dir);
    for (struct dirent *e; list && (e = readdir (list));)
        if (e->d_name[0] != '.')
            run_again (node, e->d_name);
    if (list)
        closedir (list);
    runs_remove (node);
    return 0;
}

void node_runs_close (struct node *node)
{
    struct node_run *run, *next;
    if (node->rm.ops)
        node->rm.ops->destroy (node->rm.self);
    filewatch_destroy (node->watch);
    HASH_ITER (hh, node->runs, run, next) {
        HASH_DEL (node->runs, run);
        free (run);
    }
    if (node->dir >= 0)
        close (node->dir);
    free (node->job_dir);
}
