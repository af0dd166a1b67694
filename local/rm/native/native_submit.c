/* A job that came through the grid, as its resource manager is to have it: its directory, a script that waits for the
 * agreed moment and is then the job's own, and the words of the submit call. rm_native.c calls it. It is launched at most
 * once even where it was submitted twice: the script sees to that. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "local/rm/mistake.h"
#include "local/rm/native/native_i.h"
#include "local/rm/supervise_file.h"
#include "proto/base/clock.h"
#include "proto/base/shellword.h"
#include "proto/base/text.h"

static const char launcher[] = "run"; /* in the job's directory: ours, for its account to execute */

void native_title (const char *key, const char *mark, char out[NATIVE_TITLE_MAX])
{
    text_printf (out, NATIVE_TITLE_MAX, "%s%s%.8s", key, *mark ? "." : "", mark);
}

bool native_title_ours (const struct native *native, const char *title,
                        char key_out[JOBDIR_KEY_MAX])
{
    static const char digits[] = "0123456789", hex[] = "0123456789abcdef";
    size_t site = strlen (native->site);
    if (strncmp (title, native->site, site) != 0 || title[site] != '.')
        return false;
    size_t len = site + 1 + strspn (title + site + 1, digits);
    if (title[len] == '-')
        len += 1 + strspn (title + len + 1, digits);
    if (title[len] != '.' || strspn (title + len + 1, hex) != 8 || title[len + 9] ||
        len >= JOBDIR_KEY_MAX)
        return false;
    snprintf (key_out, JOBDIR_KEY_MAX, "%.*s", (int)len, title);
    return true;
}

char *native_tasklist (const struct rm_job *spec)
{
    struct strbuf b = STRBUF_INIT;
    for (uint32_t i = 0; i < spec->host_count; i++)
        for (uint32_t t = 0; t < spec->host_tasks[i]; t++)
            strbuf_printf (&b, "%s%s", b.len ? "," : "", spec->host[i]);
    strbuf_text (&b);
    return strbuf_steal (&b);
}

/* --- the script --------------------------------------------------------------------------- */

static void on_variable (void *arg, const char *name, const char *value)
{
    struct strbuf *b = arg;
    strbuf_printf (b, "export %s=", name);
    shell_word (b, value);
    strbuf_putc (b, '\n');
}

static void env_write (const struct native *native, const struct rm_job *spec, const char *key,
                       const struct passwd *pw, struct strbuf *b)
{
    for (uint32_t i = 0; i < spec->env_count; i++) {
        const char *equals = strchr (spec->env[i], '=');
        strbuf_printf (b, "export %.*s=", (int)(equals - spec->env[i]), spec->env[i]);
        shell_word (b, equals + 1);
        strbuf_putc (b, '\n');
    }
    jobdir_env_each (spec, native->job_dir, key, pw, on_variable, b);
    if (native->launcher && !jobdir_env_has (spec, "NUI_LAUNCHER"))
        on_variable (b, "NUI_LAUNCHER", native->launcher); /* of nui run */
}

static void script_build (const struct native *native, const struct rm_job *spec, const char *key,
                          const struct passwd *pw, struct strbuf *b)
{
    strbuf_printf (b, "#!/bin/sh\n# %s, handed to its resource manager by nui-local\ncd ", key);
    shell_word (b, native->job_dir);
    strbuf_printf (b,
                   "/%s/work || exit 126\n"
                   "mkdir .launched 2>/dev/null || {\n"
                   "    echo '%s has been launched before, and is not a second time' >&2\n"
                   "    exit 125\n"
                   "}\n",
                   key, key);
    env_write (native, spec, key, pw, b);
    if (spec->start)
        strbuf_printf (
            b,
            "wait=$(( (%lld - $(date +%%s%%N)) / 1000000 ))\n"
            "[ \"$wait\" -gt 0 ] && sleep \"$((wait / 1000)).$(printf %%03d $((wait %% 1000)))\"\n",
            (long long)spec->start * 1000);
    strbuf_puts (b, "exec </dev/null >");
    shell_word (b, jobdir_or (spec->stdout_name, "stdout"));
    strbuf_puts (b, " 2>");
    shell_word (b, jobdir_or (spec->stderr_name, "stderr"));
    strbuf_putc (b, '\n');
    jobdir_shell_run (b, spec, pw);
    strbuf_putc (b, '\n');
}

/* Beside the job's work: its account executes it, and nobody else sees what stands in it. */
static int script_write (const struct native *native, const struct rm_job *spec, const char *key,
                         const struct passwd *pw, struct err *err)
{
    struct strbuf b = STRBUF_INIT;
    int dir = openat (native->dir, key, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    script_build (native, spec, key, pw, &b);
    bool ok = dir >= 0 && file_write_durable (dir, launcher, strbuf_text (&b), b.len, 0500) == 0 &&
              (geteuid () != 0 ||
               fchownat (dir, launcher, pw->pw_uid, pw->pw_gid, AT_SYMLINK_NOFOLLOW) == 0);
    int rc = ok ? 0 : err_set (err, ERR_IO, "directory of job %s: %s", key, strerror (errno));
    if (dir >= 0)
        close (dir);
    strbuf_free (&b);
    return rc;
}

/* --- the call ----------------------------------------------------------------------------- */

struct words {
    char **word;
    uint32_t count;
};

static void word_add (struct words *w, const char *fmt, ...)
    __attribute__ ((format (printf, 2, 3)));
static void word_add (struct words *w, const char *fmt, ...)
{
    struct strbuf b = STRBUF_INIT;
    va_list ap;
    va_start (ap, fmt);
    strbuf_vprintf (&b, fmt, ap);
    va_end (ap);
    strbuf_text (&b);
    w->word[w->count++] = strbuf_steal (&b);
}

static void word_given (struct words *w, const char *name, const char *value)
{
    if (value && *value)
        word_add (w, "%s=%s", name, value);
}

static char **submission_build (const struct native *native, const struct rm_job *spec,
                                const char *key, const struct passwd *pw)
{
    enum { WORDS = 16, MARGIN_S = 7 }; /* started early, its script waits; its end takes a moment */
    struct words w = {.word = calloc (WORDS + 1, sizeof *w.word)};
    char title[NATIVE_TITLE_MAX], group_buf[4096];
    struct group group, *its = NULL;
    uint32_t tasks = rm_job_tasks (spec) ? rm_job_tasks (spec) : 1;
    if (!w.word)
        return NULL;
    native_title (key, jobdir_or (spec->mark, ""), title);
    word_add (&w, "UNAME=%s", pw->pw_name);
    if (getgrgid_r (pw->pw_gid, &group, group_buf, sizeof group_buf, &its) == 0 && its)
        word_add (&w, "GNAME=%s", its->gr_name);
    word_add (&w, "WCLIMIT=%lld", (long long)(spec->walltime / US_PER_S + 1 + MARGIN_S));
    word_add (&w, "TASKS=%u", tasks);
    word_add (&w, "DPROCS=%u", spec->procs > tasks ? spec->procs / tasks : 1);
    if (spec->memory_mb > 0)
        word_add (&w, "RMEM=%lld", (long long)((spec->memory_mb + tasks - 1) / tasks));
    word_add (&w, "NAME=%s", title);
    word_add (&w, "IWD=%s/%s/work", native->job_dir, key);
    word_add (&w, "EXEC=%s/%s/%s", native->job_dir, key, launcher);
    word_given (&w, "RCLASS", spec->class_name);
    word_given (&w, "ACCOUNT", spec->account);
    word_given (&w, "QOS", spec->qos);
    return w.word;
}

/* --- the job ------------------------------------------------------------------------------ */

static int directory_make (struct native *native, const struct rm_job *spec, const char *key,
                           const struct passwd *pw, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    char number[32], *tasklist = native_tasklist (spec);
    jobdir_spec_begin (&text, spec, pw);
    jobdir_spec_add (&text, "tasklist", tasklist);
    snprintf (number, sizeof number, "%lld", (long long)spec->start);
    jobdir_spec_add (&text, "start_us", number);
    snprintf (number, sizeof number, "%lld", (long long)spec->walltime);
    jobdir_spec_add (&text, "walltime_us", number);
    free (tasklist);
    int rc = jobdir_make_way (native->dir, spec, key, native->log, err);
    if (rc == 0)
        rc = jobdir_make (native->dir, spec, key, pw, strbuf_text (&text), text.len, err);
    else if (rc == ERR_EXISTS) /* made, and we died before it was submitted */
        rc = 0;
    strbuf_free (&text);
    return rc == 0 ? script_write (native, spec, key, pw, err) : rc;
}

static int64_t spec_number (const char *spec, size_t len, const char *name)
{
    const char *text = spec_get (spec, len, name);
    return text ? strtoll (text, NULL, 10) : 0;
}

void native_recall (struct native_job *job)
{
    size_t len = 0;
    int dir = jobdir_open (job->owner->dir, job->job_id, job->incarnation, job->mark, NULL);
    char *spec = dir >= 0 ? file_read_all (dir, "spec", &len) : NULL;
    const char *account = spec ? spec_get (spec, len, "account") : NULL,
               *tasklist = spec ? spec_get (spec, len, "tasklist") : NULL;
    if (account && tasklist) {
        job->user = strdup (account);
        job->tasklist = strdup (tasklist);
        job->launch_at = spec_number (spec, len, "start_us");
        job->walltime = spec_number (spec, len, "walltime_us");
    }
    free (spec);
    if (dir >= 0)
        close (dir);
}

int native_start_ours (struct native *native, const struct rm_job *spec, struct err *err)
{
    struct passwd pw;
    char buf[4096], key[JOBDIR_KEY_MAX];
    if (!native_can (native, RM_CALL_JOBSUBMIT))
        return err_set (err, ERR_UNSUPPORTED,
                        "RMCFG has no JOBSUBMITURL: only jobs that were given to the resource "
                        "manager itself can run here");
    int rc = jobdir_check (spec, &pw, buf, sizeof buf, key, err);
    if (rc == 0 && native_job_by_key (native, key))
        rc = err_set (err, ERR_EXISTS, "job %s was handed over before", key);
    if (rc == 0)
        rc = directory_make (native, spec, key, &pw, err);
    if (rc != 0)
        return rc;
    struct native_job *job = native_job_new (native, "", 0);
    job->ours = job->asked = true;
    native_job_name (job, spec->job_id, spec->incarnation);
    snprintf (job->mark, sizeof job->mark, "%s", jobdir_or (spec->mark, ""));
    job->tasklist = native_tasklist (spec);
    job->user = strdup (pw.pw_name);
    job->launch_at = spec->start;
    job->walltime = spec->walltime;
    job->submission = submission_build (native, spec, key, &pw);
    job->deadline = clock_monotonic_us () + native->patience;
    job->phase = NATIVE_SUBMIT;
    if (!job->submission) {
        native_job_free (job);
        return err_set (err, ERR_NOMEM, "no memory for job %s", key);
    }
    native_job_settle (job);
    return 0;
}

bool native_ran_into_mistake (const struct native_job *job, const struct rm_status *status,
                              char *text)
{
    enum { AT_ONCE_S = 5 };
    char path[JOBDIR_KEY_MAX + 8];
    bool so = job->ours && *job->key && status->end == RM_END_EXITED &&
              (status->exit_code == 126 || status->exit_code == 127) &&
              status->end_at - status->start <= AT_ONCE_S * US_PER_S;
    snprintf (path, sizeof path, "%s/work", job->key);
    int dir =
        so ? openat (job->owner->dir, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    bool mistake = dir >= 0 && mistake_of_shell (dir, status->exit_code, text);
    if (dir >= 0)
        close (dir);
    return mistake;
}
