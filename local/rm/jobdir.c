/* jobdir: makes, checks, renames and opens jobs' directories, by descriptors from the top.
 * rm_embedded.c, rm_slurm.c and the service's look at strays call it. The account owns what is
 * in work/: no link there is followed, and nothing there is read as root that is not the
 * account's own plain file. */
#include "local/rm/jobdir.h"

#include <dirent.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "local/rm/mistake.h"
#include "local/rm/supervise_file.h"
#include "proto/base/shellword.h"
#include "proto/base/strbuf.h"

static const char LEFT_OVER[] = "forgotten";

enum { NAME_OUT_MAX = 200, ASIDE_MAX = 1000 };

void jobdir_key (const char *job_id, uint32_t incarnation, char out[JOBDIR_KEY_MAX])
{
    if (incarnation)
        snprintf (out, JOBDIR_KEY_MAX, "%s-%u", job_id, incarnation);
    else
        snprintf (out, JOBDIR_KEY_MAX, "%s", job_id);
}

int jobdir_account (const char *name, struct passwd *pw, char *buf, size_t cap, struct err *err)
{
    struct passwd *found = NULL;
    int rc = getpwnam_r (name, pw, buf, cap, &found);
    if (rc != 0)
        return err_set (err, ERR_IO, "account %s: %s", name, strerror (rc));
    if (!found)
        return err_set (err, ERR_DENIED, "account %s does not exist on this cluster", name);
    if (pw->pw_uid == 0)
        return err_set (err, ERR_DENIED, "account %s is root: no job may run as root", name);
    if (geteuid () != 0 && pw->pw_uid != geteuid ())
        return err_set (err, ERR_DENIED,
                        "account %s: nui-local does not run as root, so jobs can only run as its "
                        "own account",
                        name);
    return 0;
}

/* "out", "logs/run.out": below the job's directory. */
static int output_name_check (const char *name, struct err *err)
{
    bool plain = strlen (name) <= NAME_OUT_MAX && strcmp (name, "script") != 0 &&
                 strcmp (name, "nodefile") != 0;
    for (const char *piece = name; plain && piece; piece = strchr (piece, '/')) {
        piece += *piece == '/' && piece != name;
        plain = *piece && *piece != '/' && *piece != '.';
    }
    return plain
               ? 0
               : err_set (err, ERR_INVALID,
                          "output name '%.40s': wanted a file name below the job's directory of at "
                          "most %d characters, not script or nodefile, no part of it beginning "
                          "with '.'",
                          name, NAME_OUT_MAX);
}

const char *jobdir_or (const char *name, const char *otherwise)
{
    return name && *name ? name : otherwise;
}

int jobdir_check (const struct rm_job *job, struct passwd *pw, char *buf, size_t cap,
                  char key[JOBDIR_KEY_MAX], struct err *err)
{
    int rc = name_check ("job id", job->job_id, err);
    if (rc == 0)
        rc = jobdir_account (job->local_account, pw, buf, cap, err);
    if (rc == 0)
        rc = output_name_check (jobdir_or (job->stdout_name, "stdout"), err);
    if (rc == 0)
        rc = output_name_check (jobdir_or (job->stderr_name, "stderr"), err);
    char mistake[MISTAKE_TEXT_MAX];
    if (rc == 0 && mistake_of_script (job->script, job->script_len, mistake))
        rc = err_set (err, ERR_INVALID, "%s", mistake);
    if (rc == 0)
        jobdir_key (job->job_id, job->incarnation, key);
    return rc;
}

/* Whatever our umask: jobs of other accounts pass through. */
int jobdir_parent (const char *path, char **path_out, int *fd_out, struct err *err)
{
    if (mkdir (path, 0711) == 0 || errno == EEXIST) {
        *path_out = realpath (path, NULL);
        *fd_out = open (path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (*path_out && *fd_out >= 0 && fchmod (*fd_out, 0711) == 0)
            return 0;
    }
    return err_set (err, ERR_IO, "job directory %s: %s", path, strerror (errno));
}

void jobdir_spec_add (struct strbuf *b, const char *key, const char *value)
{
    strbuf_printf (b, "%s=%s", key, value);
    strbuf_append (b, "", 1);
}

void jobdir_spec_begin (struct strbuf *b, const struct rm_job *job, const struct passwd *pw)
{
    char uid[32];
    snprintf (uid, sizeof uid, "%lu", (unsigned long)pw->pw_uid);
    jobdir_spec_add (b, "job_id", job->job_id);
    jobdir_spec_add (b, "mark", jobdir_or (job->mark, ""));
    jobdir_spec_add (b, "hold", jobdir_or (job->hold, ""));
    jobdir_spec_add (b, "account", pw->pw_name);
    jobdir_spec_add (b, "uid", uid);
    jobdir_spec_add (b, "stdout", jobdir_or (job->stdout_name, "stdout"));
    jobdir_spec_add (b, "stderr", jobdir_or (job->stderr_name, "stderr"));
}

const char *jobdir_start (const struct rm_job *job, const struct passwd *pw,
                          char out[JOBDIR_START_MAX])
{
    const char *said = jobdir_or (job->directory, "");
    snprintf (out, JOBDIR_START_MAX, "%s%s", *said == '~' ? pw->pw_dir : "",
              *said == '~' ? said + 1 : said);
    return *out ? out : NULL;
}

void jobdir_shell_run (struct strbuf *b, const struct rm_job *job, const struct passwd *pw)
{
    char start[JOBDIR_START_MAX];
    if (jobdir_start (job, pw, start)) {
        strbuf_puts (b, "here=$PWD\ncd ");
        shell_word (b, start);
        strbuf_puts (b, " 2>/dev/null || { : >.chdir; exit 126; }\nexec \"$here\"/script");
    } else
        strbuf_puts (b, "exec ./script");
    for (uint32_t i = 0; i < job->arg_count; i++) {
        strbuf_putc (b, ' ');
        shell_word (b, job->arg[i]);
    }
}

bool jobdir_env_has (const struct rm_job *job, const char *name)
{
    size_t len = strlen (name);
    for (uint32_t i = 0; i < job->env_count; i++)
        if (strncmp (job->env[i], name, len) == 0 && job->env[i][len] == '=')
            return true;
    return false;
}

static void env_names_each (const struct rm_job *job, const char *const *name, const char *value,
                            void (*fn) (void *arg, const char *name, const char *value), void *arg)
{
    for (; name && *name; name++)
        if (!jobdir_env_has (job, *name))
            fn (arg, *name, value);
}

void jobdir_env_each (const struct rm_job *job, const char *parent, const char *key,
                      const struct passwd *pw,
                      void (*fn) (void *arg, const char *name, const char *value), void *arg)
{
    char directory[4200], nodefile[4300], start[JOBDIR_START_MAX];
    snprintf (directory, sizeof directory, "%s/%s/work", parent, key);
    snprintf (nodefile, sizeof nodefile, "%s/nodefile", directory);
    const char *const pair[][2] = {{"NUI_NODEFILE", nodefile},
                                   {"NUI_JOBDIR", directory},
                                   {"PATH", "/usr/local/bin:/usr/bin:/bin"},
                                   {"HOME", pw->pw_dir},
                                   {"USER", pw->pw_name},
                                   {"LOGNAME", pw->pw_name},
                                   {"SHELL", "/bin/sh"}};
    for (size_t i = 0; i < sizeof pair / sizeof *pair; i++)
        if (!jobdir_env_has (job, pair[i][0]))
            fn (arg, pair[i][0], pair[i][1]);
    env_names_each (job, job->directory_names, jobdir_start (job, pw, start) ? start : directory,
                    fn, arg);
    env_names_each (job, job->nodefile_names, nodefile, fn, arg);
}

/* One line per task, as MPI launchers and PBS scripts expect it. */
static void nodefile_build (const struct rm_job *job, struct strbuf *b)
{
    for (uint32_t i = 0; i < job->host_count; i++)
        for (uint32_t t = 0; t < job->host_tasks[i]; t++)
            strbuf_printf (b, "%s\n", job->host[i]);
}

static int own (int dirfd, const char *name, const struct passwd *pw)
{
    return geteuid () == 0 ? fchownat (dirfd, name, pw->pw_uid, pw->pw_gid, AT_SYMLINK_NOFOLLOW)
                           : 0;
}

static void half_made_remove (int parent, const char *name)
{
    char path[JOBDIR_KEY_MAX + 60];
    static const char *const files[] = {"work/script",        "work/nodefile", "work/.script.tmp",
                                        "work/.nodefile.tmp", "spec",          ".spec.tmp"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf (path, sizeof path, "%s/%s", name, files[i]);
        unlinkat (parent, path, 0);
    }
    snprintf (path, sizeof path, "%s/work", name);
    unlinkat (parent, path, AT_REMOVEDIR);
    unlinkat (parent, name, AT_REMOVEDIR);
}

/* Where there are files already, theirs; it gets its name in dir when it is whole (staged_move). */
static int work_open (int parent, int dir, const struct rm_job *job)
{
    if (job->staged)
        return openat (parent, job->staged, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    return mkdirat (dir, "work", 0700) == 0
               ? openat (dir, "work", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
               : -1;
}

/* The directories above an output file, step by step and along no link: the account may have put one there. Where one
 * cannot be made, opening the file tells its user so. */
static void output_dirs_make (int work, const char *name, const struct passwd *pw)
{
    char path[NAME_OUT_MAX + 1], *rest = path;
    int dir = dup (work);
    snprintf (path, sizeof path, "%s", name);
    for (char *piece = strsep (&rest, "/"); rest && dir >= 0; piece = strsep (&rest, "/")) {
        bool made = mkdirat (dir, piece, 0700) == 0;
        int below = openat (dir, piece, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (made && below >= 0 && own (dir, piece, pw) != 0) {
            close (below);
            below = -1;
        }
        close (dir);
        dir = below;
    }
    if (dir >= 0)
        close (dir);
}

static int work_fill (int parent, int dir, const struct rm_job *job, const struct passwd *pw)
{
    struct strbuf nodes = STRBUF_INIT;
    int rc = -1;
    int work = work_open (parent, dir, job);
    nodefile_build (job, &nodes);
    if (work < 0 || file_write_durable (work, "script", job->script, job->script_len, 0700) != 0 ||
        file_write_durable (work, "nodefile", strbuf_text (&nodes), nodes.len, 0600) != 0)
        goto out;
    output_dirs_make (work, jobdir_or (job->stdout_name, ""), pw);
    output_dirs_make (work, jobdir_or (job->stderr_name, ""), pw);
    if (fchmodat (work, "script", 0700, 0) != 0 || own (work, "script", pw) != 0 ||
        own (work, "nodefile", pw) != 0 ||
        (job->staged ? renameat (parent, job->staged, dir, "work") : own (dir, "work", pw)) != 0)
        goto out;
    rc = 0;
out:;
    int saved = errno;
    if (work >= 0)
        close (work);
    strbuf_free (&nodes);
    errno = saved;
    return rc;
}

/* Makes the whole directory under another name first: it is there complete or not at all. */
int jobdir_make (int parent, const struct rm_job *job, const char *key, const struct passwd *pw,
                 const char *spec, size_t spec_len, struct err *err)
{
    char tmp[JOBDIR_KEY_MAX + 24];
    int rc = 0;
    int dir = -1;
    char half[JOBDIR_KEY_MAX + 32];
    const char *mark = jobdir_or (job->mark, "");
    snprintf (tmp, sizeof tmp, ".new-%s%s%.8s", key, *mark ? "." : "",
              mark); /* never another job's */
    snprintf (half, sizeof half, "%s/work", tmp);
    if (job->staged && renameat (parent, half, parent, job->staged) != 0 && errno != ENOENT)
        goto io; /* what came was on its way there when we died */
    half_made_remove (parent, tmp);
    if (mkdirat (parent, tmp, 0711) != 0)
        goto io;
    dir = openat (parent, tmp, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 || fchmod (dir, 0711) != 0 || work_fill (parent, dir, job, pw) != 0)
        goto io;
    if (file_write_durable (dir, "spec", spec, spec_len, 0600) != 0 ||
        renameat (parent, tmp, parent, key) != 0 || fsync (parent) != 0)
        goto io;
    goto out;
io:
    rc = err_set (err, ERR_IO, "directory of job %s: %s", key, strerror (errno));
    if (job->staged)
        (void)renameat (parent, half, parent, job->staged);
    half_made_remove (parent, tmp);
out:
    if (dir >= 0)
        close (dir);
    return rc;
}

/* Only we can have written the spec: the directory is ours, and closed to the account. */
static int jobdir_of_check (int dir, const char *job_id, const char *mark, struct err *err)
{
    struct stat st;
    size_t len = 0;
    errno = 0;
    bool ours =
        fstat (dir, &st) == 0 && st.st_uid == geteuid () && !(st.st_mode & (S_IWGRP | S_IWOTH));
    char *spec = ours ? file_read_all (dir, "spec", &len) : NULL;
    if (!spec && errno != 0 && errno != ENOENT)
        return err_set (err, ERR_IO, "directory of job %s: %s", job_id, strerror (errno));
    const char *its_id = spec ? spec_get (spec, len, "job_id") : NULL;
    const char *its_mark = spec ? spec_get (spec, len, "mark") : NULL;
    bool same = its_id && its_mark && strcmp (its_id, job_id) == 0 &&
                strcmp (its_mark, jobdir_or (mark, "")) == 0;
    free (spec);
    return same ? 0
                : err_set (err, ERR_NOT_FOUND, "the directory of job %s is not its own", job_id);
}

int jobdir_open (int parent, const char *job_id, uint32_t incarnation, const char *mark,
                 struct err *err)
{
    char key[JOBDIR_KEY_MAX];
    jobdir_key (job_id, incarnation, key);
    if (name_check ("job id", job_id, err) != 0)
        return -1;
    int dir = openat (parent, key, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (dir < 0) {
        err_set (err, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO, "job %s has not started: %s", key,
                 strerror (errno));
        return -1;
    }
    if (jobdir_of_check (dir, job_id, mark, err) == 0)
        return dir;
    close (dir);
    return -1;
}

/* Under the first KEY.aside-N that is free. */
static int jobdir_rename_aside (int parent, const char *key, struct log *log, struct err *err)
{
    char aside[JOBDIR_KEY_MAX + 40];
    for (int n = 1; n <= ASIDE_MAX; n++) {
        snprintf (aside, sizeof aside, "%s.aside-%d", key, n);
        if (faccessat (parent, aside, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
            continue;
        if (renameat (parent, key, parent, aside) == 0) {
            log_event (log, LOG_LEVEL_WARN, "rm", "directory_set_aside",
                       "directory=%s now=%s reason=\"another job of that number left it: the state "
                       "directory is not the one it was made with\"",
                       key, aside);
            return fsync (parent) == 0 ? 0
                                       : err_set (err, ERR_IO, "%s: %s", aside, strerror (errno));
        }
        if (errno == ENOENT)
            return 0;
        break;
    }
    return err_set (err, ERR_IO, "directory %s of another job cannot be set aside: %s", key,
                    strerror (errno));
}

int jobdir_make_way (int parent, const struct rm_job *job, const char *key, struct log *log,
                     struct err *err)
{
    char checkpoint[JOBDIR_KEY_MAX + 16];
    struct err why = {0};
    int dir = jobdir_open (parent, job->job_id, job->incarnation, job->mark, &why);
    if (dir >= 0) {
        close (dir);
        return err_set (err, ERR_EXISTS, "job %s was handed over before", key);
    }
    if (why.code != ERR_NOT_FOUND)
        return err_set (err, why.code, "%s", why.text);
    int rc = jobdir_rename_aside (parent, key, log, err);
    snprintf (checkpoint, sizeof checkpoint, "%s.checkpoint", job->job_id);
    if (rc == 0 && job->incarnation == 0) /* nor has this job made any checkpoint yet */
        rc = jobdir_rename_aside (parent, checkpoint, log, err);
    return rc;
}

uint64_t jobdir_number_max (const char *parent, const char *site)
{
    size_t len = strlen (site);
    uint64_t most = 0;
    DIR *dir = opendir (parent);
    for (struct dirent *e; dir && (e = readdir (dir));) {
        const char *digits = e->d_name + len + 1;
        if (strncmp (e->d_name, site, len) != 0 || e->d_name[len] != '.' || *digits < '0' ||
            *digits > '9')
            continue;
        uint64_t number = strtoull (digits, NULL, 10);
        if (number > most && number < INT64_MAX / 2)
            most = number;
    }
    if (dir)
        closedir (dir);
    return most;
}

static void left_look (int parent, const char *name, const char *site,
                       void (*fn) (void *arg, const struct jobdir_left *left), void *arg)
{
    char key[JOBDIR_KEY_MAX];
    size_t len = strlen (site), size = 0;
    if (strncmp (name, site, len) != 0 || name[len] != '.' || strlen (name) >= JOBDIR_KEY_MAX)
        return;
    char *end, *more;
    unsigned long long number = strtoull (name + len + 1, &end, 10);
    unsigned long incarnation = *end == '-' ? strtoul (end + 1, &more, 10) : 0;
    char id[JOBDIR_KEY_MAX];
    snprintf (id, sizeof id, "%.*s", (int)(end - name), name);
    jobdir_key (id, (uint32_t)incarnation, key);
    int dir = strcmp (key, name) == 0
                  ? openat (parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)
                  : -1;
    if (dir < 0)
        return;
    bool over = faccessat (dir, "status", F_OK, AT_SYMLINK_NOFOLLOW) == 0 ||
                faccessat (dir, LEFT_OVER, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
    char *spec = over ? NULL : file_read_all (dir, "spec", &size);
    const char *mark = spec ? spec_get (spec, size, "mark") : NULL,
               *its = spec ? spec_get (spec, size, "job_id") : NULL;
    if (mark && its && strcmp (its, id) == 0 && jobdir_of_check (dir, id, mark, NULL) == 0)
        fn (arg,
            &(struct jobdir_left){number, id, mark, jobdir_or (spec_get (spec, size, "hold"), ""),
                                  (uint32_t)incarnation});
    free (spec);
    close (dir);
}

void jobdir_left_each (const char *parent, const char *site,
                       void (*fn) (void *arg, const struct jobdir_left *left), void *arg)
{
    DIR *dir = opendir (parent);
    for (struct dirent *e; dir && (e = readdir (dir));)
        left_look (dirfd (dir), e->d_name, site, fn, arg);
    if (dir)
        closedir (dir);
}

void jobdir_left_over (const char *parent, const char *key)
{
    char path[4096];
    snprintf (path, sizeof path, "%s/%s/%s", parent, key, LEFT_OVER);
    int fd = open (path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0)
        close (fd);
}

/* To read, without following a link on the way: the account owns all that lies below. */
static int open_below (int dir, const char *path)
{
    struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
    return (int)syscall (SYS_openat2, dir, path, &how, sizeof how);
}

int jobdir_output_open (int parent, const char *job_id, uint32_t incarnation, const char *mark,
                        const char *stream, struct err *err)
{
    int dir = jobdir_open (parent, job_id, incarnation, mark, err);
    if (dir < 0)
        return -1;
    size_t len = 0;
    char *spec = file_read_all (dir, "spec", &len);
    const char *name = spec ? spec_get (spec, len, stream) : NULL;
    const char *uid = spec ? spec_get (spec, len, "uid") : NULL;
    int work = openat (dir, "work", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    int fd = work < 0 || !name || !uid ? -1 : open_below (work, name);
    struct stat st;
    /* The account may put anything there: only its own plain file is read on its behalf. */
    if (fd >= 0 && (fstat (fd, &st) != 0 || !S_ISREG (st.st_mode) ||
                    st.st_uid != (uid_t)strtoul (uid, NULL, 10))) {
        close (fd);
        fd = -1;
    }
    if (fd < 0)
        err_set (err, ERR_NOT_FOUND, "job %s has no %s yet", job_id, stream);
    free (spec);
    if (work >= 0)
        close (work);
    close (dir);
    return fd;
}
