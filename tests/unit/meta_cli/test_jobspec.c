/* A job from options, components, JSON and directives means the same in every form. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/cli/jobarray.h"
#include "proto/cli/jobspec.h"

static const time_us now = INT64_C (1795219673) * US_PER_S;

struct fixture {
    struct arena *arena;
    struct jobspec *spec;
    struct err err;
    char path[64];
};

static int setup (void **state)
{
    struct fixture *f = calloc (1, sizeof *f);
    f->arena = arena_create (0);
    f->spec = jobspec_create (f->arena, now);
    *state = f;
    return 0;
}

static int teardown (void **state)
{
    struct fixture *f = *state;
    if (*f->path)
        unlink (f->path);
    arena_destroy (f->arena);
    free (f);
    return 0;
}

static void file_write (struct fixture *f, const char *text)
{
    strcpy (f->path, "/tmp/nui-jobspec-XXXXXX");
    int fd = mkstemp (f->path);
    assert_true (fd >= 0);
    assert_int_equal (write (fd, text, strlen (text)), (ssize_t)strlen (text));
    close (fd);
}

static void set_ok (struct fixture *f, const char *key, const char *value)
{
    if (jobspec_set (f->spec, key, value, &f->err) != 0)
        fail_msg ("%s=%s: %s", key, value, f->err.text);
}

static void set_refused (struct fixture *f, const char *key, const char *value, const char *text)
{
    assert_int_not_equal (jobspec_set (f->spec, key, value, &f->err), 0);
    if (!strstr (f->err.text, text))
        fail_msg ("'%s' does not say '%s'", f->err.text, text);
}

static void an_ordinary_job (void **state)
{
    struct fixture *f = *state;
    file_write (f, "#!/bin/sh\necho hello\n");
    char *args[] = {(char[]){"one"}, (char[]){"two"}};
    set_ok (f, "tasks", "4");
    set_ok (f, "time", "1:30:00");
    set_ok (f, "account", "phys");
    set_ok (f, "mem", "2G");
    set_ok (f, "features", "big,intel");
    set_ok (f, "max-cost", "12.5");
    set_ok (f, "valid", "+60"); /* as the other times from now on are said */
    assert_int_equal (jobspec_script (f->spec, f->path, args, 2, &f->err), 0);
    Nui__Common__V1__Job *job;
    assert_int_equal (jobspec_build (f->spec, false, &job, &f->err), 0);
    assert_int_equal (job->n_components, 1);
    Nui__Common__V1__Component *c = job->components[0];
    assert_string_equal (c->name, "main");
    assert_int_equal (c->walltime_us, 5400 * US_PER_S);
    assert_int_equal (c->reqs[0]->tasks, 4);
    assert_int_equal (c->reqs[0]->procs_per_task, 1);
    assert_int_equal (c->reqs[0]->memory_mb, 2048);
    assert_int_equal (c->reqs[0]->n_features, 2);
    assert_string_equal (c->reqs[0]->features[1], "intel");
    assert_int_equal (c->n_args, 2);
    assert_string_equal (c->args[1], "two");
    assert_int_equal (c->script.len, 21);
    assert_string_equal (job->account, "phys");
    assert_int_equal (job->cost_max_micro, 12500000);
    assert_int_equal (job->expires_us, 60 * US_PER_S);
}

static void components_take_defaults_and_lists (void **state)
{
    struct fixture *f = *state;
    set_ok (f, "time", "60");
    set_ok (f, "env", "A=1");
    set_ok (f, "component", "left:site=alpha,gamma,tasks=2,env=A=2");
    set_ok (f, "component", "right:site=beta,nodes=2,tpn=3,time=90,offset=-120");
    Nui__Common__V1__Job *job;
    assert_int_equal (jobspec_build (f->spec, true, &job, &f->err), 0);
    assert_int_equal (job->n_components, 2);
    Nui__Common__V1__Component *left = job->components[0], *right = job->components[1];
    assert_int_equal (left->n_sites, 2);
    assert_string_equal (left->sites[1], "gamma");
    assert_int_equal (left->walltime_us, 60 * US_PER_S);
    assert_int_equal (left->n_env, 1);
    assert_string_equal (left->env[0], "A=2");
    assert_int_equal (right->reqs[0]->tasks, 6);
    assert_int_equal (right->reqs[0]->nodes, 2);
    assert_int_equal (right->offset_us, -120 * US_PER_S);
    assert_int_equal (right->walltime_us, 90 * US_PER_S);
    assert_string_equal (right->env[0], "A=1");
}

static void bad_values_name_key_and_reason (void **state)
{
    struct fixture *f = *state;
    set_refused (f, "tasks", "0", "tasks");
    set_refused (f, "tasks", "4x", "4x");
    set_refused (f, "time", "1:xx", "--time");
    set_refused (f, "time", "0", "--time");
    set_refused (f, "mem", "-5", "--mem");
    set_refused (f, "site", "alpha,,beta", "empty name");
    set_refused (f, "output", "../escape", "inside the job's directory");
    set_refused (f, "max-cost", "-1", "above zero");
    set_refused (f, "max-cost", "any", "any");
    set_refused (f, "env", "=x", "NAME=VALUE");
    set_refused (f, "component", "left:tasks", "key=value");
    set_refused (f, "component", "x:bogus=1", "no key 'bogus'");
    set_ok (f, "component", "two:tasks=1");
    set_refused (f, "component", "two:tasks=1", "twice");
    assert_int_equal (jobspec_set (f->spec, "bogus", "1", &f->err), ERR_NOT_FOUND);
}

static void what_needs_the_whole_is_checked (void **state)
{
    struct fixture *f = *state;
    Nui__Common__V1__Job *job = NULL;
    assert_int_equal (jobspec_build (f->spec, true, &job, &f->err), ERR_INVALID);
    assert_non_null (strstr (f->err.text, "walltime"));
    set_ok (f, "time", "60");
    assert_int_equal (jobspec_build (f->spec, false, &job, &f->err), ERR_INVALID);
    assert_non_null (strstr (f->err.text, "script"));
    set_ok (f, "tasks", "2");
    set_ok (f, "nodes", "3");
    assert_int_equal (jobspec_build (f->spec, true, &job, &f->err), ERR_INVALID);
    assert_non_null (strstr (f->err.text, "each node needs a task"));
    assert_null (job);
    assert_int_equal (jobspec_script (f->spec, "/nonexistent/job.sh", NULL, 0, &f->err),
                      ERR_NOT_FOUND);
    assert_non_null (strstr (f->err.text, "/nonexistent/job.sh"));
}

static void json_means_the_same (void **state)
{
    struct fixture *f = *state;
    file_write (f, "{\"account\": \"phys\", \"time\": 60, \"env\": [\"A=1\", \"B=2\"],"
                   " \"args\": [\"x\"], \"components\": ["
                   " {\"name\": \"left\", \"site\": [\"alpha\", \"gamma\"], \"tasks\": 2},"
                   " {\"name\": \"right\", \"site\": \"beta\", \"tasks\": \"3\"}]}");
    assert_int_equal (jobspec_json (f->spec, f->path, &f->err), 0);
    Nui__Common__V1__Job *job;
    assert_int_equal (jobspec_build (f->spec, true, &job, &f->err), 0);
    assert_int_equal (job->n_components, 2);
    assert_int_equal (job->components[0]->n_sites, 2);
    assert_int_equal (job->components[0]->n_env, 2);
    assert_int_equal (job->components[1]->reqs[0]->tasks, 3);
    assert_string_equal (job->components[1]->args[0], "x");
}

static void bad_json_says_where (void **state)
{
    struct fixture *f = *state;
    file_write (f, "{\"time\": 60,\n \"taks\": 3}");
    assert_int_equal (jobspec_json (f->spec, f->path, &f->err), ERR_INVALID);
    assert_non_null (strstr (f->err.text, "taks"));
    unlink (f->path);
    file_write (f, "{\"time\": 60,\n oops}");
    assert_int_equal (jobspec_json (f->spec, f->path, &f->err), ERR_INVALID);
    assert_non_null (strstr (f->err.text, "line 2"));
}

static void native_directives_give_way_to_options (void **state)
{
    struct fixture *f = *state;
    file_write (f, "#!/bin/sh\n# a comment\n#NUI -n 8 --time=10:00\n#NUI --name \"my-job\"\n"
                   "#SBATCH -n 99\necho\n#NUI -n 7\n");
    set_ok (f, "tasks", "3");
    assert_int_equal (jobspec_script (f->spec, f->path, NULL, 0, &f->err), 0);
    if (jobspec_directives (f->spec, NULL, &f->err) != 0)
        fail_msg ("%s", f->err.text);
    Nui__Common__V1__Job *job;
    assert_int_equal (jobspec_build (f->spec, false, &job, &f->err), 0);
    assert_int_equal (job->components[0]->reqs[0]->tasks, 3);
    assert_int_equal (job->components[0]->walltime_us, 600 * US_PER_S);
    assert_string_equal (job->name, "my-job");
}

/* The job that this script makes; notes to *note, which is to be freed. */
static Nui__Common__V1__Job *script_job (struct fixture *f, const char *text, char **note)
{
    size_t note_len = 0;
    Nui__Common__V1__Job *job = NULL;
    FILE *out = open_memstream (note, &note_len);
    f->spec = jobspec_create (f->arena, now);
    file_write (f, text);
    assert_int_equal (jobspec_script (f->spec, f->path, NULL, 0, &f->err), 0);
    if (jobspec_directives (f->spec, out, &f->err) != 0 ||
        jobspec_build (f->spec, false, &job, &f->err) != 0)
        fail_msg ("%s: %s", text, f->err.text);
    fclose (out);
    unlink (f->path);
    return job;
}

/* The same without a note. */
static Nui__Common__V1__Component *script_component (struct fixture *f, const char *text)
{
    char *note = NULL;
    Nui__Common__V1__Job *job = script_job (f, text, &note);
    assert_string_equal (note, "");
    free (note);
    return job->components[0];
}

static void slurm_directives (void **state)
{
    struct fixture *f = *state;
    char *note = NULL;
    Nui__Common__V1__Job *job = script_job (
        f,
        "#!/bin/bash\n#SBATCH --ntasks=4 -t 90\n#SBATCH -J sim -N2 -p long # why\n"
        "#SBATCH --exclusive --mail-type=END,TIME_LIMIT_80,FAIL --mail-user=me@example.org\n#SBATCH -o run.%j.out\n"
        "#SBATCH --no-requeue -d afterok:alpha.3 --begin=now+2hours\nsrun x\n#SBATCH -n 9\n",
        &note);
    assert_non_null (strstr (note, "#SBATCH --mail-type: no mail comes before"));
    assert_null (strchr (strchr (note, '\n') + 1, '\n')); /* one note alone */
    assert_string_equal (job->notify_url, "mailto:me@example.org?on=end,fail,perhaps");
    free (note);
    Nui__Common__V1__Component *c = job->components[0];
    assert_int_equal (c->reqs[0]->tasks, 4);
    assert_int_equal (c->reqs[0]->nodes, 2);
    assert_int_equal (c->walltime_us, 5400 * US_PER_S);
    assert_string_equal (c->class_, "long");
    assert_string_equal (job->name, "sim");
    assert_string_equal (c->node_access, "SINGLEJOB");
    assert_string_equal (c->stdout_name, "run.%j.out");
    assert_string_equal (c->stderr_name, "run.%j.out"); /* as Slurm: both into one */
    assert_string_equal (job->flags[0], "NORESTART");
    assert_string_equal (job->depends[0]->job_id, "alpha.3");
    assert_int_equal (job->not_before_us, now + 7200 * US_PER_S);
}

static void amounts_for_nodes_become_amounts_for_tasks (void **state)
{
    struct fixture *f = *state;
    Nui__Common__V1__Component *c = script_component (
        f, "#SBATCH -t 1 -N 2 --ntasks-per-node=4 --mem=10G --gres=gpu:a100:8,shard:4 --tmp=1G\n");
    assert_int_equal (c->reqs[0]->tasks, 8);
    assert_int_equal (c->reqs[0]->memory_mb, 2560);
    assert_int_equal (c->reqs[0]->disk_mb, 256);
    assert_string_equal (c->reqs[0]->gres[0]->name, "gpu.a100");
    assert_int_equal (c->reqs[0]->gres[0]->count, 2);
    assert_string_equal (c->reqs[0]->gres[1]->name, "shard");
    assert_int_equal (c->reqs[0]->gres[1]->count, 1);
    c = script_component (f, "#SBATCH -t 1 -n 3 -c 4 --mem-per-cpu=500M --gpus=3\n");
    assert_int_equal (c->reqs[0]->memory_mb, 2000);
    assert_string_equal (c->reqs[0]->gres[0]->name, "gpu");
    assert_int_equal (c->reqs[0]->gres[0]->count, 1);
    c = script_component (f, "#SBATCH -t 1 --mem=3G --gpus-per-node=v100:2\n");
    assert_int_equal (c->reqs[0]->memory_mb, 3072);
    assert_int_equal (c->reqs[0]->gres[0]->count, 2);
    assert_string_equal (c->reqs[0]->gres[0]->name, "gpu.v100");
    c = script_component (f, "#PBS -l nodes=2:ppn=2:big:gpus=2,mem=1000mb,walltime=60\n");
    assert_int_equal (c->reqs[0]->memory_mb, 250);
    assert_int_equal (c->reqs[0]->gres[0]->count, 1);
    assert_string_equal (c->reqs[0]->features[0], "big");
    c = script_component (
        f, "#PBS -l select=2:ncpus=8:mpiprocs=2:mem=4gb:ngpus=2:ompthreads=4 -l walltime=60\n"
           "#PBS -l place=scatter:excl\n");
    assert_int_equal (c->reqs[0]->tasks, 4);
    assert_int_equal (c->reqs[0]->nodes, 2);
    assert_int_equal (c->reqs[0]->tasks_per_node, 2);
    assert_int_equal (c->reqs[0]->procs_per_task, 4);
    assert_int_equal (c->reqs[0]->memory_mb, 2048);
    assert_int_equal (c->reqs[0]->gres[0]->count, 1);
    assert_string_equal (c->node_access, "SINGLEJOB");
    assert_string_equal (c->env[0], "OMP_NUM_THREADS=4");
    c = script_component (f, "#PBS -l select=3:ncpus=2:mem=100 -l walltime=60 -l place=pack\n");
    assert_int_equal (c->reqs[0]->tasks, 3);
    assert_int_equal (c->reqs[0]->nodes, 1);
    assert_int_equal (c->reqs[0]->procs_per_task, 2);
    assert_int_equal (c->reqs[0]->memory_mb, 1);
}

/* What would compute something else, or elsewhere, refuses the job, and says why. */
static void foreign_directives_that_cannot_be_had_are_refused (void **state)
{
    static const struct {
        const char *line, *why;
    } bad[] = {
        {"#SBATCH --signal=B:KILL@300", "with HUP, INT, TERM, USR1 or USR2"},
        {"#SBATCH --chdir=work", "bring the files that it needs by --input"},
        {"#SBATCH -N 2-4", "wanted one number"},
        {"#SBATCH -n 3 --mem=1G", "how many tasks a node gets"},
        {"#SBATCH -N 1 -n 3 --gres=gpu:4", "shared out evenly"},
        {"#SBATCH --mem=1G --mem-per-cpu=1G", "both say how much memory"},
        {"#SBATCH --gres=gpu:1 --gpus=2", "both ask for generic resources"},
        {"#SBATCH --constraint=a|b", "features that are all wanted"},
        {"#SBATCH -d singleton", "cannot be waited for"},
        {"#SBATCH -d afterok:1?afterok:2", "cannot be waited for"},
        {"#SBATCH -o /scratch/me/out", "inside the job's directory"},
        {"#SBATCH --frobnicate", "no option --frobnicate"},
        {"#SBATCH --input=data.txt", "--stage-in"},
        {"#SBATCH hetjob", "no option hetjob"},
        {"#SBATCH --begin=now+2fortnights", "no moment"},
        {"#SBATCH --requeue=x", "takes no value"},
        {"#SBATCH --time", "needs a value"},
        {"#SBATCH --export=NUI_NO_SUCH_VARIABLE", "not in your environment"},
        {"#PBS -l nodes=1:ppn=2+2:ppn=4", "several kinds"},
        {"#PBS -l nodes=n1", "--hosts names some"},
        {"#PBS -l arch=linux", "no resource 'arch'"},
        {"#PBS -l select=1:ncpus=3:mpiprocs=2", "shared out evenly"},
        {"#PBS -l mem=4q", "is not a size"},
        {"#PBS -W stagein=a@b:c", "--stage-in"},
        {"#PBS -q batch@server", "which cluster"},
        {"#PBS -j both", "not oe, eo or n"},
        {"#PBS -a 99", "not a moment"},
        {"#PBS -I", "cannot be typed"},
        {"#MSUB -y", "there is no option -y"},
    };
    struct fixture *f = *state;
    char line[200];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        Nui__Common__V1__Job *job;
        f->spec = jobspec_create (f->arena, now);
        snprintf (line, sizeof line, "#!/bin/sh\n%s\n", bad[i].line);
        file_write (f, line);
        set_ok (f, "time", "60");
        assert_int_equal (jobspec_script (f->spec, f->path, NULL, 0, &f->err), 0);
        int rc = jobspec_directives (f->spec, NULL, &f->err);
        if (rc == 0)
            rc = jobspec_build (f->spec, false, &job, &f->err);
        if (rc == 0 || !strstr (f->err.text, bad[i].why))
            fail_msg ("%s: %d '%s'", bad[i].line, rc, f->err.text);
        unlink (f->path);
    }
}

static void pbs_options_mean_the_same (void **state)
{
    struct fixture *f = *state;
    char *note = NULL;
    setenv ("PBS_TEST_MINE", "not passed", 1);
    setenv ("NUIT_SEEN", "yes", 1);
    Nui__Common__V1__Job *job =
        script_job (f,
                    "#PBS -l walltime=1:00:00 -j oe -r n\n#PBS -m abe -M me@example.org\n"
                    "#PBS -W depend=afterok:alpha.3:alpha.4,afterany:alpha.5\n"
                    "#PBS -v A=1,NUIT_SEEN -V -S /bin/bash -n\n#PBS -a 202611231530.20\necho\n",
                    &note);
    Nui__Common__V1__Component *c = job->components[0];
    assert_string_equal (note, "");
    assert_string_equal (job->notify_url, "mailto:me@example.org?on=fail,begin,end,perhaps");
    free (note);
    assert_string_equal (c->stderr_name, "stdout");
    assert_string_equal (job->flags[0], "NORESTART");
    assert_int_equal (job->n_depends, 3);
    assert_string_equal (c->env[0], "A=1");
    bool seen = false;
    for (size_t i = 0; i < c->n_env; i++) {
        seen = seen || !strcmp (c->env[i], "NUIT_SEEN=yes");
        assert_null (strstr (c->env[i], "PBS_TEST_MINE"));
        assert_true (strncmp (c->env[i], "HOME=", 5) != 0);
    }
    assert_true (seen);
    assert_memory_equal (c->script.data, "#!/bin/bash\n#PBS", 16);
    assert_string_equal (c->node_access, "SINGLEJOB");
    char text[QUANTITY_TEXT_MAX];
    assert_non_null (strstr (time_format_iso (job->not_before_us, text), "2026-11-23T15:30:20"));
}

static void an_array_may_be_a_directive (void **state)
{
    static const char *const scripts[] = {"#SBATCH -t 1 --array=1-9%2\n", "#PBS -t 1-9%2\n",
                                          "#PBS -J 1-9%2\n", "#NUI --array=1-9%2\n"};
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
        f->spec = jobspec_create (f->arena, now);
        file_write (f, scripts[i]);
        assert_int_equal (jobspec_script (f->spec, f->path, NULL, 0, &f->err), 0);
        assert_int_equal (jobspec_directives (f->spec, NULL, &f->err), 0);
        assert_string_equal (jobspec_array (f->spec), "1-9%2");
        unlink (f->path);
    }
    f->spec = jobspec_create (f->arena, now);
    file_write (f, scripts[0]);
    set_ok (f, "array", "7");
    assert_int_equal (jobspec_script (f->spec, f->path, NULL, 0, &f->err), 0);
    assert_int_equal (jobspec_directives (f->spec, NULL, &f->err), 0);
    assert_string_equal (jobspec_array (f->spec), "7");
}

static void pbs_directives (void **state)
{
    struct fixture *f = *state;
    file_write (f, "#PBS -l nodes=2:ppn=4,walltime=2:00:00\n#PBS -N sim -A phys\n./x\n");
    assert_int_equal (jobspec_script (f->spec, f->path, NULL, 0, &f->err), 0);
    assert_int_equal (jobspec_directives (f->spec, NULL, &f->err), 0);
    Nui__Common__V1__Job *job;
    assert_int_equal (jobspec_build (f->spec, false, &job, &f->err), 0);
    Nui__Common__V1__Component *c = job->components[0];
    assert_int_equal (c->reqs[0]->tasks, 8);
    assert_int_equal (c->reqs[0]->tasks_per_node, 4);
    assert_int_equal (c->walltime_us, 7200 * US_PER_S);
    assert_string_equal (job->account, "phys");
}

static void an_unknown_native_directive_is_refused (void **state)
{
    struct fixture *f = *state;
    file_write (f, "#!/bin/sh\n#NUI --frobnicate 3\n");
    assert_int_equal (jobspec_script (f->spec, f->path, NULL, 0, &f->err), 0);
    assert_int_equal (jobspec_directives (f->spec, NULL, &f->err), ERR_INVALID);
    assert_non_null (strstr (f->err.text, "line 2"));
    assert_non_null (strstr (f->err.text, "--frobnicate"));
}

/* A command becomes a script as sbatch makes one, word for word; beside a script it is refused. */
static void a_command_is_wrapped (void **state)
{
    struct fixture *f = *state;
    Nui__Common__V1__Job *job;
    set_ok (f, "time", "60");
    assert_int_equal (jobspec_wrap (f->spec, " \n", &f->err), ERR_INVALID);
    assert_int_equal (jobspec_wrap (f->spec, "echo \"$A\" 'b' %s", &f->err), 0);
    assert_int_equal (jobspec_directives (f->spec, NULL, &f->err), 0);
    assert_int_equal (jobspec_build (f->spec, false, &job, &f->err), 0);
    static const char want[] = "#!/bin/sh\n# made by --wrap\n\necho \"$A\" 'b' %s\n";
    assert_int_equal (job->components[0]->script.len, strlen (want));
    assert_memory_equal (job->components[0]->script.data, want, strlen (want));
    assert_string_equal (job->name, "wrap");

    f->spec = jobspec_create (f->arena, now);
    file_write (f, "#!/bin/sh\n#SBATCH --wrap=true\n");
    assert_int_equal (jobspec_script (f->spec, f->path, NULL, 0, &f->err), 0);
    assert_int_equal (jobspec_wrap (f->spec, "true", &f->err), ERR_INVALID);
    assert_non_null (strstr (f->err.text, "--wrap makes the script"));
    assert_int_equal (jobspec_directives (f->spec, NULL, &f->err), ERR_INVALID);
    assert_non_null (strstr (f->err.text, "line 2: #SBATCH --wrap: there is a script already"));
}

/* As sbatch writes it, of a component or of all, and not before the job begins. */
static void a_signal_before_the_limit (void **state)
{
    struct fixture *f = *state;
    Nui__Common__V1__Job *job;
    static const char *const wrong[] = {"KILL",   "USR3@5",     "B:",     "USR1@",
                                        "USR1@0", "USR1@65536", "R:USR1", "1O@60"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        set_refused (f, "signal", wrong[i], "wanted [B:]SIGNAL[@SECONDS]");
    file_write (f, "#!/bin/sh\n#SBATCH -t 1:01 --signal=B:SIGUSR1@60\n");
    set_ok (f, "component", "a:tasks=1,signal=10@30,time=31");
    set_ok (f, "component", "b:tasks=1");
    assert_int_equal (jobspec_script (f->spec, f->path, NULL, 0, &f->err), 0);
    assert_int_equal (jobspec_directives (f->spec, NULL, &f->err), 0);
    assert_int_equal (jobspec_build (f->spec, false, &job, &f->err), 0);
    assert_string_equal (job->components[0]->signal, "10@30");
    assert_string_equal (job->components[1]->signal, "B:SIGUSR1@60");

    f->spec = jobspec_create (f->arena, now);
    set_ok (f, "signal", "usr2");
    set_ok (f, "time", "60");
    assert_int_equal (jobspec_build (f->spec, true, &job, &f->err), ERR_INVALID);
    assert_non_null (strstr (f->err.text, "60 seconds before its limit the job has not begun"));
}

#define CASE(name) cmocka_unit_test_setup_teardown (name, setup, teardown)

static void what_it_waits_for (void **state)
{
    struct fixture *f = *state;
    Nui__Common__V1__Job *job;
    set_ok (f, "time", "60");
    set_ok (f, "depend", "afterok:alpha.3:grid.4,before:alpha.5");
    set_ok (f, "depend", "after:alpha.9"); /* a later source */
    set_ok (f, "flags", "PREEMPTEE,NORESTART");
    set_ok (f, "hold", "");
    assert_int_equal (jobspec_build (f->spec, true, &job, &f->err), 0);
    assert_int_equal (job->n_depends, 3);
    assert_string_equal (job->depends[0]->kind, "afterok");
    assert_string_equal (job->depends[1]->kind, "afterok");
    assert_string_equal (job->depends[1]->job_id, "grid.4");
    assert_string_equal (job->depends[2]->kind, "before");
    assert_int_equal (job->n_flags, 2);
    assert_string_equal (job->flags[1], "NORESTART");
    assert_true (job->held);
}

static void an_array (void **state)
{
    static const char *const bad[] = {"", "1-", "5-1", "1,1", "0-20000", "1-3%0", "3:2", "a"};
    struct fixture *f = *state;
    struct jobarray a;
    Nui__Common__V1__Job whole = NUI__COMMON__V1__JOB__INIT, *job;
    uint8_t first[16];
    assert_int_equal (jobarray_parse (NULL, f->arena, &a, &f->err), 0);
    assert_int_equal (a.count, 0);
    assert_int_equal (jobarray_parse ("0-10:5,99%3", f->arena, &a, &f->err), 0);
    assert_int_equal (a.count, 4);
    assert_int_equal (a.index[2], 10);
    assert_int_equal (a.index[3], 99);
    assert_int_equal (a.limit, 3);
    job = jobarray_element (&a, 0, f->arena, &whole);
    memcpy (first, job->uuid.data, 16);
    assert_int_equal (job->array_index, 0);
    job = jobarray_element (&a, 3, f->arena, &whole);
    assert_int_equal (job->array_index, 99);
    assert_int_equal (job->array_limit, 3);
    assert_memory_not_equal (job->uuid.data, first, 16);
    assert_memory_equal (job->array_id.data, a.id.b, 16);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_not_equal (jobarray_parse (bad[i], f->arena, &a, &f->err), 0);
}

static Nui__Common__V1__Job *built (struct fixture *f)
{
    Nui__Common__V1__Job *job = NULL;
    if (jobspec_build (f->spec, true, &job, &f->err) != 0)
        fail_msg ("%s", f->err.text);
    return job;
}

#define HEX_OF_EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

static void files_to_be_staged (void **state)
{
    struct fixture *f = *state;
    set_ok (f, "time", "60");
    set_ok (f, "stage-in",
            "https://data.example.org/x?a=b=in/x.h5,sha256=" HEX_OF_EMPTY ",bytes=3K");
    set_ok (f, "stage-out", "out.h5=s3://results/out.h5,always");
    assert_int_equal (
        jobspec_component (f->spec, "left:stage-in=file:///p/y=y,sha256=" HEX_OF_EMPTY ",tasks=2",
                           &f->err),
        0);
    assert_int_equal (jobspec_component (f->spec, "right:tasks=3", &f->err), 0);
    Nui__Common__V1__Job *job = built (f);
    const Nui__Common__V1__Component *left = job->components[0], *right = job->components[1];
    assert_int_equal (left->n_stage_in, 1);
    assert_string_equal (left->stage_in[0]->path, "y");
    assert_int_equal (left->stage_in[0]->sha256.len, 32);
    assert_int_equal (left->reqs[0]->tasks, 2);
    assert_int_equal (right->n_stage_in, 1);
    assert_string_equal (right->stage_in[0]->url, "https://data.example.org/x?a=b");
    assert_string_equal (right->stage_in[0]->path, "in/x.h5");
    assert_int_equal (right->stage_in[0]->bytes, 3072);
    assert_int_equal (right->stage_in[0]->sha256.data[1], 0xb0);
    assert_string_equal (left->stage_out[0]->url, "s3://results/out.h5");
    assert_true (left->stage_out[0]->always);
}

static void an_array_stages_files_of_its_own (void **state)
{
    struct fixture *f = *state;
    struct jobarray a;
    set_ok (f, "time", "60");
    set_ok (f, "stage-in", "file:///p/part{index}.h5=in.h5");
    set_ok (f, "stage-out", "out.h5=file:///p/{index}/out{index}.h5");
    Nui__Common__V1__Job *whole = built (f);
    assert_int_equal (jobarray_parse ("3,7", f->arena, &a, &f->err), 0);
    const Nui__Common__V1__Job *one = jobarray_element (&a, 0, f->arena, whole);
    const Nui__Common__V1__Job *two = jobarray_element (&a, 1, f->arena, whole);
    assert_string_equal (one->components[0]->stage_in[0]->url, "file:///p/part3.h5");
    assert_string_equal (two->components[0]->stage_out[0]->url, "file:///p/7/out7.h5");
}

static void bad_files_are_refused (void **state)
{
    static const struct {
        const char *key, *value, *text;
    } bad[] = {
        {"stage-in", "https://h/x", "URL=PATH"},
        {"stage-in", "ftp://h/x=y", "ftp"},
        {"stage-in", "https://u:secret@h/x=y", "password"},
        {"stage-in", "https://h/x=../y", "y"},
        {"stage-in", "https://h/x=/y", "y"},
        {"stage-in", "https://h/x=script", "the site itself writes"},
        {"stage-in", "https://h/x=y,sha256=12", "--stage-in"},
        {"stage-in", "https://h/x=y,bytes=many", "--stage-in"},
        {"stage-in", "https://h/x=before/deeper", "two files"},
        {"stage-in", "https://h/x=before", "two files"},
        {"stage-out", "out", "PATH=URL"},
        {"stage-out", "out=https://h/there", "two files"},
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        Nui__Common__V1__Job *job;
        f->spec = jobspec_create (f->arena, now);
        set_ok (f, "time", "60");
        set_ok (f, "stage-in", "https://h/a=before");
        set_ok (f, "stage-out", "b=https://h/there");
        set_ok (f, bad[i].key, bad[i].value);
        assert_int_not_equal (jobspec_build (f->spec, true, &job, &f->err), 0);
        if (!strstr (f->err.text, bad[i].text))
            fail_msg ("%s: '%s'", bad[i].value, f->err.text);
    }
}

static void bad_waits_are_refused (void **state)
{
    static const char *const bad[] = {"afterok", "afterok:", ":alpha.3", "afterok:alpha"};
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        Nui__Common__V1__Job *job;
        struct jobspec *spec = jobspec_create (f->arena, now);
        assert_int_equal (jobspec_set (spec, "time", "60", &f->err), 0);
        assert_int_equal (jobspec_set (spec, "depend", bad[i], &f->err), 0);
        assert_int_equal (jobspec_build (spec, true, &job, &f->err), ERR_INVALID);
        assert_non_null (strstr (f->err.text, "--depend"));
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        CASE (an_ordinary_job),
        CASE (components_take_defaults_and_lists),
        CASE (bad_values_name_key_and_reason),
        CASE (what_needs_the_whole_is_checked),
        CASE (json_means_the_same),
        CASE (bad_json_says_where),
        CASE (native_directives_give_way_to_options),
        CASE (slurm_directives),
        CASE (amounts_for_nodes_become_amounts_for_tasks),
        CASE (foreign_directives_that_cannot_be_had_are_refused),
        CASE (pbs_directives),
        CASE (pbs_options_mean_the_same),
        CASE (an_array_may_be_a_directive),
        CASE (an_unknown_native_directive_is_refused),
        CASE (a_command_is_wrapped),
        CASE (a_signal_before_the_limit),
        CASE (what_it_waits_for),
        CASE (bad_waits_are_refused),
        CASE (an_array),
        CASE (files_to_be_staged),
        CASE (an_array_stages_files_of_its_own),
        CASE (bad_files_are_refused),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
