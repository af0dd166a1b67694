/* rm_embedded: runs jobs as processes of this machine, without any other resource manager.
 *
 * Each job has a directory under jobdir, `alpha.17` (restarts: `alpha.17-1`), with
 *   spec, script and environment   written before anything runs; whose it is (rm.h: mark)
 *   launched                       made once with O_EXCL by the supervisor: at most one launch
 *   started, status                written durably by the supervisor (write, fsync, rename)
 *   work/                          0700, the mapped account's: script, nodefile, stdout, stderr
 * and a supervising process, nui-supervise(8), in a session of its own, which survives this daemon.
 * A record lock on `lock` names the living supervisor. Ends are learned from its pidfd and starts by
 * inotify: nothing polls. A supervisor that dies without a status is a node failure: what is left of
 * the job is killed.
 *
 * As root, jobs run as their mapped account, never as root; otherwise only the daemon's own account
 * can be mapped. One loop, one thread. Jobs at one time: RM_EMBEDDED_JOBS_MAX. */
#ifndef NUI_LOCAL_RM_RM_EMBEDDED_H
#define NUI_LOCAL_RM_RM_EMBEDDED_H

#include <event2/event.h>

#include "local/rm/filewatch.h"
#include "local/rm/rm.h"
#include "local/rm/rm_kind.h"
#include "proto/base/log.h"

enum { RM_EMBEDDED_JOBS_MAX = 16384 };

struct rm_embedded_config {
    struct event_base *base;
    struct log *log;
    struct filewatch *watch;    /* outlives it */
    const char *job_dir;        /* made when absent, 0711 */
    const char *supervise_path; /* the nui-supervise executable */
    duration_us kill_grace;     /* between TERM and KILL; 0: 5 s */
    int64_t output_max_mb;      /* of a job's stdout and stderr together; 0: no limit */
    bool cgroups;               /* use cgroup v2 where the machine allows */
    const char *cgroup_name;    /* of this daemon's part of the tree: "nui-alpha" */
    /* Nodes that are other hosts (agent.h); every other one is this machine. */
    const char *site;
    struct tlsid *id;
    const struct rm_agent *agent;
    uint32_t agent_count;
    struct rm_health health; /* of this machine */
    rm_event_fn on_event;
    void *arg;
};

/* Fills *out. */
int rm_embedded_create (const struct rm_embedded_config *config, struct rm *out, struct err *err);
/* Where in the tree its jobs' groups are; "": nowhere. */
const char *rm_embedded_cgroup (const struct rm *rm);
/* A cgroup_name that no other job_dir has. */
void rm_embedded_group (const char *prefix, const char *site, const char *job_dir, char *out,
                        size_t cap);

#endif
