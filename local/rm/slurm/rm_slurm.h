/* rm_slurm: a real Slurm runs the jobs; policy decides which, when and where.
 *
 * Read and driven over slurmrestd (slurm_rest); the commands scontrol (requeue, suspend, resume,
 * making and deleting reservations: the REST API has none of them) and sacct (ends that Slurm has forgotten) are run where REST ends.
 *
 * Users submit with sbatch to partitions that are State=DOWN (their names are the classes), so that
 * Slurm's own scheduler starts nothing. A job is started by moving it to one partition that is up
 * and that is ours alone, with the nodes that were chosen. Once it runs it is held, which Slurm
 * heeds only if the job is ever requeued: it then waits for us, not for Slurm's scheduler.
 *
 * With classes, only a part of the cluster is ours: jobs of other partitions and other nodes are as if they were not. In
 * place of a job_submit plugin a reservation of Slurm's, nui-SITE-part, lies over our nodes for good: a job is started in
 * it, and its user is in it for the moment of the start only.
 *
 * What Slurm says is compared with what it said before; changes are events. While slurmctld or
 * slurmrestd cannot be reached fresh () is false and nothing is forgotten.
 *
 * Jobs that came through the grid are submitted in the name of their mapped account, with the
 * comment "nui:ID:INCARNATION", by which one whose answer was lost is found again; their directory
 * (jobdir) must be on a file system that the nodes share. One loop, one thread. */
#ifndef NUI_LOCAL_RM_RM_SLURM_H
#define NUI_LOCAL_RM_RM_SLURM_H

#include <event2/event.h>

#include "local/rm/filewatch.h"
#include "local/rm/rm.h"
#include "proto/base/log.h"

enum { RM_SLURM_JOBS_MAX = 1 << 20, RM_SLURM_NODES_MAX = 100000 };

struct rm_slurm_config {
    struct event_base *base;
    struct log *log;
    struct filewatch *watch; /* outlives it */
    const char *server;      /* slurmrestd: "http://host:port", "unix:/path" */
    const char *key_file;    /* jwt_hs256.key; NULL: token_file */
    const char *token_file;  /* a token that the site renews */
    const char *user;        /* SlurmUser, or root */
    const char *partition;   /* ours: State=UP, closed to users */
    const char *classes; /* "a,b": these partitions, and PARTITION's nodes, are ours; NULL: all */
    const char *slurm_conf;  /* for the commands; NULL: Slurm's default */
    const char *bin_dir;     /* of scontrol and sacct; NULL: by PATH */
    const char *completions; /* file of JobCompType=jobcomp/filetxt; NULL: none */
    bool observe;            /* look only: another scheduler runs this Slurm */
    const char *site;        /* reservations of Slurm's named nui-SITE-… are ours; NULL: none */
    time_us since;           /* of settled (), before a restart; 0: of no use */
    bool sacct;              /* ask sacct for ends that Slurm has forgotten */
    bool usage;              /* … and what each job used, before its end is told */
    duration_us poll;        /* between looks at Slurm */
    duration_us patience;    /* a start that is not RUNNING by then has failed */
    duration_us token_life; /* of a token for slurmrestd, which is renewed at half of it; seconds */
    const char *job_dir;
    rm_event_fn on_event;
    void *arg;
};

/* Fills *out. Slurm need not be there yet. */
int rm_slurm_create (const struct rm_slurm_config *config, struct rm *out, struct err *err);

#endif
