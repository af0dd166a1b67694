/* remover: runs rm(1) on the directories of jobs that ended long ago, as a child beside the
 * loop. rm_embedded.c and rm_slurm.c call it. Names are made from the jobs' ids, never from a
 * path that a user chose, and it never waits. */
#include "local/rm/remover.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/child/child.h"
#include "local/rm/jobdir.h"
#include "proto/base/arena.h"

enum { REMOVE_LIMIT_S = 600 };

struct remover {
    struct event_base *base;
    struct log *log;
    char *job_dir;
    int dir; /* open: the adapter's */
    struct child *child;
    void (*done) (void *arg, bool ok);
    void *arg;
};

struct remover *remover_create (struct event_base *base, struct log *log, const char *job_dir,
                                int dir)
{
    struct remover *r = calloc (1, sizeof *r);
    assert (r);
    *r = (struct remover){.base = base, .log = log, .job_dir = strdup (job_dir), .dir = dir};
    assert (r->job_dir);
    return r;
}

void remover_destroy (struct remover *r)
{
    if (!r)
        return;
    child_kill (r->child);
    free (r->job_dir);
    free (r);
}

static void on_done (void *arg, int exit_code, bool timed_out)
{
    struct remover *r = arg;
    r->child = NULL;
    if (exit_code != 0)
        log_event (r->log, LOG_LEVEL_ERROR, "rm", "old_files_not_removed",
                   "exit_code=%d timeout=%d", exit_code, timed_out);
    r->done (r->arg, exit_code == 0);
}

int remover_go (struct remover *r, const struct rm_gone *jobs, uint32_t count,
                void (*done) (void *arg, bool ok), void *arg, struct err *err)
{
    static const char *const envp[] = {"PATH=/usr/bin:/bin", NULL};
    if (r->child)
        return err_set (err, ERR_EXISTS, "old files are being removed");
    struct arena *arena = arena_create (0);
    uint32_t all = 0, n = 0;
    for (uint32_t i = 0; i < count; i++)
        all += jobs[i].incarnation + 2;
    const char **argv = arena_array (arena, all + 4, sizeof *argv);
    argv[n++] = "/bin/rm";
    argv[n++] = "-rf";
    argv[n++] = "--";
    for (uint32_t i = 0; i < count; i++) {
        uint32_t before = n;
        for (uint32_t k = 0; k <= jobs[i].incarnation; k++) {
            char key[JOBDIR_KEY_MAX];
            int dir = jobdir_open (r->dir, jobs[i].job_id, k, jobs[i].mark, NULL);
            if (dir < 0)
                continue; /* never made, or another job's of that number */
            close (dir);
            jobdir_key (jobs[i].job_id, k, key);
            argv[n++] = arena_printf (arena, "%s/%s", r->job_dir, key);
        }
        if (n > before) /* what CHECKPOINTHOOK left, if anything */
            argv[n++] = arena_printf (arena, "%s/%s.checkpoint", r->job_dir, jobs[i].job_id);
    }
    argv[n] = NULL;
    r->done = done;
    r->arg = arg;
    r->child = child_run (r->base, argv, envp, REMOVE_LIMIT_S * US_PER_S, on_done, r, err);
    arena_destroy (arena);
    return r->child ? 0 : ERR_IO;
}
