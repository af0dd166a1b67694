/* rm_slurm: the operations of the adapter for Slurm: start, cancel, hold, suspend and what else
 * the service wants. slurm_job.c follows each job, slurm_poll.c looks at Slurm. It never blocks:
 * every wish is a request or a command under way, and while Slurm cannot be reached nothing is
 * concluded. */
#include "local/rm/slurm/rm_slurm.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "local/rm/slurm/slurm_i.h"
#include "local/rm/supervise_file.h"
#include "proto/base/clock.h"
#include "proto/base/shellword.h"
#include "proto/base/strbuf.h"

/* --- a job that came through the grid ----------------------------------------------------- */

/* Slurm calls the job by the name that we know it by, and says so to its script: the user's own goes over it. */
static void name_restore (struct strbuf *b, const struct rm_job *spec)
{
    static const char name[] = "SLURM_JOB_NAME=";
    for (uint32_t i = 0; i < spec->env_count; i++)
        if (strncmp (spec->env[i], name, sizeof name - 1) == 0) {
            strbuf_printf (b, "export %s", name);
            shell_word (b, spec->env[i] + sizeof name - 1);
            strbuf_putc (b, '\n');
        }
}

/* What Slurm runs on the first node: waits for the agreed moment, then is the job's own script. */
static void script_build (const struct rm_job *spec, const char *work, const struct passwd *pw,
                          struct strbuf *b)
{
    strbuf_printf (b, "#!/bin/sh\n# %s, handed to Slurm by nui-local\ncd ", spec->job_id);
    shell_word (b, work);
    strbuf_puts (b, " || exit 126\n");
    if (spec->start)
        strbuf_printf (
            b,
            "wait=$(( (%lld - $(date +%%s%%N)) / 1000000 ))\n"
            "[ \"$wait\" -gt 0 ] && sleep \"$((wait / 1000)).$(printf %%03d $((wait %% 1000)))\"\n",
            (long long)spec->start * 1000);
    name_restore (b, spec);
    jobdir_shell_run (b, spec, pw);
    strbuf_putc (b, '\n');
}

static void env_put (void *arg, const char *name, const char *value)
{
    json_object_set_new (arg, name, json_string (value));
}

static json_t *env_build (const struct slurm *slurm, const struct rm_job *spec, const char *key,
                          const struct passwd *pw)
{
    json_t *env = json_object ();
    for (uint32_t i = 0; i < spec->env_count; i++) {
        const char *equals = strchr (spec->env[i], '=');
        char *name = strndup (spec->env[i], (size_t)(equals - spec->env[i]));
        json_t *value = json_string (equals + 1); /* NULL: not UTF-8, which JSON cannot carry */
        if (value)
            json_object_set_new (env, name, value);
        free (name);
    }
    jobdir_env_each (spec, slurm->job_dir, key, pw, env_put, env);
    env_put (env, "NUI_LAUNCHER", "srun"); /* of nui run */
    return env;
}

/* The name of the class where it is one of Slurm's partitions, else Slurm's default; NULL: it is not known which, and
 * Slurm chooses it. */
static const char *partition_for (const struct slurm *slurm, const char *class_name)
{
    for (uint32_t i = 0; i < slurm->class_count; i++)
        if (class_name && strcmp (slurm->classes[i].name, class_name) == 0)
            return slurm->classes[i].name;
    return slurm->default_told ? slurm->default_class : NULL;
}

static char *submission_build (struct slurm *slurm, const struct rm_job *spec, const char *key,
                               const struct passwd *pw)
{
    char work[4200], path[4600], comment[JOBDIR_KEY_MAX + RM_MARK_MAX + 24], nodes[32];
    char title[SLURM_TITLE_MAX];
    struct strbuf script = STRBUF_INIT;
    snprintf (work, sizeof work, "%s/%s/work", slurm->job_dir, key);
    snprintf (comment, sizeof comment, "nui:%s:%u:%s", spec->job_id, spec->incarnation,
              jobdir_or (spec->mark, ""));
    slurm_title (key, jobdir_or (spec->mark, ""), title);
    snprintf (nodes, sizeof nodes, "%u-%u", spec->host_count, spec->host_count);
    script_build (spec, work, pw, &script);
    uint32_t tasks = rm_job_tasks (spec);
    json_t *job =
        json_pack ("{s:s, s:s, s:s*, s:s, s:i, s:s, s:b}", "name", title, "comment", comment,
                   "partition", partition_for (slurm, spec->class_name), "nodes", nodes, "tasks",
                   (int)(tasks ? tasks : 1), "current_working_directory", work, "requeue", 0);
    uint32_t per_task = tasks ? spec->procs / tasks : 1;
    if (per_task > 1)
        json_object_set_new (job, "cpus_per_task", json_integer (per_task));
    if (spec->memory_mb > 0 && spec->procs > 0)
        json_object_set_new (job, "memory_per_cpu",
                             json_integer ((spec->memory_mb + spec->procs - 1) / spec->procs));
    /* Slurm counts minutes from the move on. */
    int64_t minutes = (spec->walltime + 5 * US_PER_S + 60 * US_PER_S - 1) / (60 * US_PER_S);
    json_object_set_new (job, "time_limit", json_integer (minutes));
    int64_t before = minutes * 60 - spec->signal_after / US_PER_S;
    if (spec->signal)
        json_object_set_new (job, "signal",
                             json_sprintf ("%s%d@%d", spec->signal_script ? "B:" : "", spec->signal,
                                           (int)(before < 65535 ? before : 65535)));
    if (spec->account && *spec->account)
        json_object_set_new (job, "account", json_string (spec->account));
    if (spec->qos && *spec->qos)
        json_object_set_new (job, "qos", json_string (spec->qos));
    snprintf (path, sizeof path, "%s/%s", work, jobdir_or (spec->stdout_name, "stdout"));
    json_object_set_new (job, "standard_output", json_string (path));
    snprintf (path, sizeof path, "%s/%s", work, jobdir_or (spec->stderr_name, "stderr"));
    json_object_set_new (job, "standard_error", json_string (path));
    json_object_set_new (job, "environment", env_build (slurm, spec, key, pw));
    json_t *body = json_pack ("{s:s, s:o}", "script", strbuf_text (&script), "job", job);
    char *text = json_dumps (body, JSON_COMPACT);
    json_decref (body);
    strbuf_free (&script);
    return text;
}

static void hosts_take (struct slurm_job *job, const struct rm_job *spec)
{
    struct strbuf b = STRBUF_INIT;
    for (uint32_t i = 0; i < spec->host_count; i++)
        strbuf_printf (&b, "%s%s", i ? "," : "", spec->host[i]);
    strbuf_text (&b);
    free (job->hosts);
    job->hosts = strbuf_steal (&b);
    job->host_count = spec->host_count;
}

static int start_ours (struct slurm *slurm, const struct rm_job *spec, struct err *err)
{
    struct passwd pw;
    char buf[4096], key[JOBDIR_KEY_MAX];
    struct strbuf text = STRBUF_INIT;
    int rc = jobdir_check (spec, &pw, buf, sizeof buf, key, err);
    if (rc != 0)
        return rc;
    if (slurm_job_by_id (slurm, spec->job_id, spec->incarnation))
        return err_set (err, ERR_EXISTS, "job %s was handed to Slurm before", key);
    if (!*slurm->default_class)
        return err_set (err, ERR_UNAVAILABLE, "Slurm's partitions are not known yet");
    jobdir_spec_begin (&text, spec, &pw);
    rc = jobdir_make_way (slurm->dir, spec, key, slurm->log, err);
    if (rc == 0)
        rc = jobdir_make (slurm->dir, spec, key, &pw, strbuf_text (&text), text.len, err);
    else if (rc == ERR_EXISTS) /* made, and we died before Slurm had it */
        rc = 0;
    strbuf_free (&text);
    if (rc != 0)
        return rc;
    struct slurm_job *job = slurm_job_new (slurm, "", 0);
    job->native = false;
    job->asked = true;
    slurm_job_name (job, spec->job_id, spec->incarnation);
    snprintf (job->mark, sizeof job->mark, "%s", jobdir_or (spec->mark, ""));
    hosts_take (job, spec);
    job->user = strdup (pw.pw_name);
    job->launch_at = spec->start;
    job->walltime = spec->walltime;
    job->submission = submission_build (slurm, spec, key, &pw);
    job->phase = PHASE_SUBMIT;
    if (!job->submission) {
        slurm_job_free (job);
        return err_set (err, ERR_INVALID, "job %s cannot be said in JSON: it is not UTF-8", key);
    }
    slurm_job_settle (job);
    return 0;
}

/* --- operations --------------------------------------------------------------------------- */

static int slurm_start (void *self, const struct rm_job *spec, struct err *err)
{
    struct slurm *slurm = self;
    if (spec->host_count == 0)
        return err_set (err, ERR_INVALID, "job %s has no nodes", spec->job_id);
    if (!spec->rm_id)
        return start_ours (slurm, spec, err);
    struct slurm_job *job = slurm_job_by_rm (slurm, spec->rm_id);
    if (!job || strcmp (job->job_id, spec->job_id) != 0 || job->incarnation != spec->incarnation)
        return err_set (err, ERR_NOT_FOUND, "Slurm has no job %s", spec->rm_id);
    if (job->phase != PHASE_NONE)
        return err_set (err, ERR_EXISTS, "job %s is being started", spec->job_id);
    hosts_take (job, spec);
    job->walltime = spec->walltime;
    job->joined = false;
    job->asked = true;
    job->phase = PHASE_MOVE;
    slurm_job_settle (job);
    return 0;
}

/* For whom a job of ours was submitted, as its directory says; NULL: it does not. */
static char *account_of (struct slurm *slurm, const char *job_id, uint32_t incarnation,
                         const char *mark)
{
    size_t len = 0;
    int dir = jobdir_open (slurm->dir, job_id, incarnation, mark, NULL);
    char *spec = dir >= 0 ? file_read_all (dir, "spec", &len) : NULL;
    const char *account = spec ? spec_get (spec, len, "account") : NULL;
    char *copy = account ? strdup (account) : NULL;
    free (spec);
    if (dir >= 0)
        close (dir);
    return copy;
}

static int slurm_adopt (void *self, const char *job_id, uint32_t incarnation, const char *mark,
                        struct err *err)
{
    struct slurm *slurm = self;
    int rc = name_check ("job id", job_id, err);
    if (rc != 0 || slurm_job_by_id (slurm, job_id, incarnation))
        return rc;
    struct slurm_job *job = slurm_job_new (slurm, "", 0);
    job->native = false;
    job->asked = true;
    job->phase = PHASE_FIND;
    slurm_job_name (job, job_id, incarnation);
    snprintf (job->mark, sizeof job->mark, "%s", jobdir_or (mark, ""));
    job->user = account_of (slurm, job_id, incarnation, mark);
    return 0;
}

static int slurm_bind (void *self, const char *rm_id, time_us submit, const char *job_id,
                       uint32_t incarnation, time_us started, struct err *err)
{
    struct slurm *slurm = self;
    int rc = name_check ("job id", job_id, err);
    if (rc != 0)
        return rc;
    struct slurm_job *job = slurm_job_by_rm (slurm, rm_id);
    if (!job)
        job = slurm_job_new (slurm, rm_id, submit);
    slurm_job_name (job, job_id, incarnation);
    job->ran_since = started;
    if (job->state != SLURM_NONE)
        slurm_job_settle_soon (job); /* what it is already is told from the loop */
    return 0;
}

static time_us slurm_settled (void *self)
{
    return ((struct slurm *)self)->settled;
}

static const char *slurm_licences (void *self)
{
    struct slurm *slurm = self;
    return slurm->licences ? slurm->licences : "";
}

/* For a wish about it: none while we only look. */
static struct slurm_job *job_of (struct slurm *slurm, const char *job_id, uint32_t incarnation,
                                 struct err *err)
{
    struct slurm_job *job = slurm->observe ? NULL : slurm_job_by_id (slurm, job_id, incarnation);
    if (!job)
        err_set (err, ERR_NOT_FOUND, "job %s is not with Slurm", job_id);
    return job;
}

static void on_nothing (void *arg, const struct slurm_answer *answer)
{
    if (answer->code == ERR_UNAVAILABLE)
        slurm_unreachable (arg, answer);
}

static int slurm_signal (void *self, const char *job_id, uint32_t incarnation, int signo,
                         struct err *err)
{
    struct slurm *slurm = self;
    char path[SLURM_ID_MAX + 32];
    struct slurm_job *job = job_of (slurm, job_id, incarnation, err);
    if (!job)
        return ERR_NOT_FOUND;
    if (signo < 1 || signo > 64)
        return err_set (err, ERR_INVALID, "signal %d: 1 to 64", signo);
    if (!*job->rm_id)
        return err_set (err, ERR_CONFLICT, "job %s does not run yet", job_id);
    snprintf (path, sizeof path, "job/%s?signal=%d", job->rm_id, signo);
    struct slurm_request request = {
        .method = "DELETE", .path = path, .on_done = on_nothing, .arg = slurm};
    slurm_rest_send (slurm->rest, &request);
    return 0;
}

static int slurm_cancel (void *self, const char *job_id, uint32_t incarnation, struct err *err)
{
    struct slurm_job *job = job_of (self, job_id, incarnation, err);
    if (!job)
        return ERR_NOT_FOUND;
    job->cancel = true;
    slurm_job_settle_in (job, 0);
    return 0;
}

static int slurm_output_open (void *self, const char *job_id, uint32_t incarnation,
                              const char *mark, const char *stream, struct err *err)
{
    struct slurm *slurm = self;
    return jobdir_output_open (slurm->dir, job_id, incarnation, mark, stream, err);
}

static int slurm_poll (void *self, struct err *err)
{
    (void)err;
    slurm_look (self, false);
    return 0;
}

static bool slurm_node_up (void *self, const char *name)
{
    struct slurm *slurm = self;
    struct slurm_node *node;
    HASH_FIND_STR (slurm->nodes, name, node);
    return node && node->node.state == RM_NODE_UP;
}

static bool slurm_fresh (void *self)
{
    return ((struct slurm *)self)->fresh;
}

static const struct rm_node *slurm_nodes (void *self, uint32_t *count_out)
{
    struct slurm *slurm = self;
    *count_out = slurm->node_count;
    return slurm->node_list;
}

static int slurm_hold (void *self, const char *job_id, uint32_t incarnation, enum rm_hold kind,
                       bool on, struct err *err)
{
    struct slurm_job *job = job_of (self, job_id, incarnation, err);
    if (!job)
        return ERR_NOT_FOUND;
    if (job->state != SLURM_PENDING || job->phase != PHASE_NONE)
        return err_set (err, ERR_CONFLICT, "job %s does not wait", job_id);
    job->hold = !on ? HOLD_WISH_RELEASE : kind == RM_HOLD_USER ? HOLD_WISH_USER : HOLD_WISH_ADMIN;
    slurm_job_settle_in (job, 0);
    return 0;
}

/* scontrol suspend, resume, and before v0.0.45 requeue: slurmrestd has no way to ask for these. */
static void on_command (void *arg, int code, const char *text)
{
    (void)code;
    (void)text;
    slurm_look (arg, true);
}

static int command_about (struct slurm *slurm, const char *verb, const struct slurm_job *job)
{
    const char *args[] = {"scontrol", verb, job->rm_id, NULL};
    slurm_command (slurm, args, on_command, slurm);
    return 0;
}

static void on_requeued (void *arg, const struct slurm_answer *answer)
{
    on_nothing (arg, answer);
    slurm_look (arg, true);
}

static int slurm_requeue (void *self, const char *job_id, uint32_t incarnation, struct err *err)
{
    struct slurm *slurm = self;
    struct slurm_job *job = job_of (slurm, job_id, incarnation, err);
    if (!job)
        return ERR_NOT_FOUND;
    if (!job->native)
        return slurm_cancel (self, job_id, incarnation, err);
    if (!slurm_rest_api (slurm->rest)->requeue)
        return command_about (slurm, "requeue", job);
    char path[SLURM_ID_MAX + 16];
    snprintf (path, sizeof path, "job/%s/requeue", job->rm_id);
    struct slurm_request request = {
        .method = "GET", .path = path, .on_done = on_requeued, .arg = slurm};
    slurm_rest_send (slurm->rest, &request);
    return 0;
}

static int slurm_suspend (void *self, const char *job_id, uint32_t incarnation, bool on,
                          struct err *err)
{
    struct slurm *slurm = self;
    struct slurm_job *job = job_of (slurm, job_id, incarnation, err);
    return job ? command_about (slurm, on ? "suspend" : "resume", job) : ERR_NOT_FOUND;
}

static int slurm_forget (void *self, const struct rm_gone *jobs, uint32_t count,
                         void (*done) (void *arg, bool ok), void *arg, struct err *err)
{
    struct slurm *slurm = self;
    return remover_go (slurm->remover, jobs, count, done, arg, err);
}

static void slurm_destroy (void *self)
{
    struct slurm *slurm = self;
    if (!slurm)
        return;
    remover_destroy (slurm->remover);
    slurm_rest_destroy (slurm->rest);
    slurm_commands_stop (slurm);
    slurm_done_stop (slurm);
    slurm_jobs_stop (slurm);
    slurm_resv_stop (slurm);
    slurm_poll_stop (slurm);
    if (slurm->dir >= 0)
        close (slurm->dir);
    free (slurm->partition);
    free (slurm->only);
    free (slurm->user);
    free (slurm->slurm_conf);
    free (slurm->bin_dir);
    free (slurm->completions);
    free (slurm->job_dir);
    free (slurm);
}

static const struct rm_ops slurm_ops = {
    .type = "SLURM",
    .warns = true,
    .start = slurm_start,
    .adopt = slurm_adopt,
    .signal = slurm_signal,
    .cancel = slurm_cancel,
    .output_open = slurm_output_open,
    .poll = slurm_poll,
    .node_up = slurm_node_up,
    .destroy = slurm_destroy,
    .fresh = slurm_fresh,
    .settled = slurm_settled,
    .nodes = slurm_nodes,
    .reserve = slurm_reserve,
    .licences = slurm_licences,
    .bind = slurm_bind,
    .hold = slurm_hold,
    .requeue = slurm_requeue,
    .suspend = slurm_suspend,
    .forget = slurm_forget,
};

static char *dup_or_null (const char *text)
{
    return text ? strdup (text) : NULL;
}

int rm_slurm_create (const struct rm_slurm_config *config, struct rm *out, struct err *err)
{
    struct slurm *slurm = calloc (1, sizeof *slurm);
    struct err local = {0};
    if (!slurm)
        return err_set (err, ERR_NOMEM, "Slurm: no memory");
    slurm->base = config->base;
    slurm->log = config->log;
    slurm->watch = config->watch;
    slurm->on_event = config->on_event;
    slurm->arg = config->arg;
    slurm->poll_every = config->poll;
    slurm->patience = config->patience;
    slurm->sacct = config->sacct;
    slurm->usage = config->usage && config->sacct && !config->observe;
    slurm->settled = config->observe ? 0 : config->since;
    slurm->observe = config->observe;
    slurm->partition = strdup (config->partition);
    if (config->classes && asprintf (&slurm->only, ",%s,", config->classes) < 0)
        abort ();
    slurm->slurm_conf = dup_or_null (config->slurm_conf);
    slurm->bin_dir = dup_or_null (config->bin_dir);
    slurm->completions = dup_or_null (config->completions);
    slurm->user = strdup (config->user);
    if (config->site && !config->observe)
        snprintf (slurm->resv_prefix, sizeof slurm->resv_prefix, "nui-%s-", config->site);
    slurm->resv_wished = slurm->only && !slurm->observe; /* its own */
    slurm->dir = -1;
    struct slurm_rest_config rest = {.base = slurm->base,
                                     .log = slurm->log,
                                     .server = config->server,
                                     .key_file = config->key_file,
                                     .token_file = config->token_file,
                                     .user = config->user,
                                     .token_life = config->token_life};
    int rc = jobdir_parent (config->job_dir, &slurm->job_dir, &slurm->dir, &local);
    if (rc == 0 && !(slurm->rest = slurm_rest_create (&rest, &local)))
        rc = local.code;
    if (rc == 0 &&
        !(slurm->remover = remover_create (slurm->base, slurm->log, slurm->job_dir, slurm->dir)))
        rc = err_set (&local, ERR_NOMEM, "Slurm: no memory");
    if (rc == 0)
        rc = slurm_jobs_init (slurm, &local);
    if (rc == 0)
        rc = slurm_done_init (slurm, &local);
    if (rc == 0)
        rc = slurm_poll_init (slurm, &local);
    if (rc != 0) {
        slurm_destroy (slurm);
        return err_set (err, rc, "%s", local.text);
    }
    *out = (struct rm){&slurm_ops, slurm};
    return 0;
}
