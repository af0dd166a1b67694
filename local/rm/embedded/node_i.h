/* node_i: between the files of nui-node, the agent that runs a site's jobs on another host.
 *
 * It is the embedded runner of that host (rm_embedded.h) behind nui.node.v1: what nui-local does at home with a job's
 * directory and a supervisor, it does here on nui-local's word. A run's directory stays, with its end, until nui-local has
 * taken it (`taken`); so a cut, and kill -9 of either side, lose nothing. One loop, one thread.
 *   node_main.c   the daemon and its configuration
 *   node_runs.c   the runs it has, and their directories
 *   node_serve.c  the methods, and who is told of what */
#ifndef NUI_LOCAL_RM_EMBEDDED_NODE_I_H
#define NUI_LOCAL_RM_EMBEDDED_NODE_I_H

#include <event2/event.h>
#include <uthash.h>

#include "local/rm/embedded/health.h"
#include "local/rm/jobdir.h"
#include "local/rm/rm.h"
#include "proto/nui/v1/node.pb-c.h"
#include "proto/rpc/rpcserver.h"

struct node_settings {
    const char *site, *job_dir, *supervise;
    bool cgroups;
    struct rm_health health;
};

struct node_run {
    char key[JOBDIR_KEY_MAX], job_id[JOBDIR_KEY_MAX], mark[RM_MARK_MAX];
    uint32_t incarnation;
    struct rm_status status;
    bool taken;        /* to be removed */
    UT_hash_handle hh; /* by key */
};

struct node_watcher; /* node_serve.c */

struct node {
    struct event_base *base;
    struct log *log;
    const struct node_settings *settings;
    struct rm rm;
    struct filewatch *watch;
    char *job_dir;
    int dir;
    const char *cgroup; /* where the runs' groups are; "": none */
    struct node_run *runs;
    bool removing;
    struct node_watcher *watchers;
    struct health *health;
};

/* --- node_runs.c */

/* Everything that is in JOBDIR is taken up again. */
int node_runs_open (struct node *node, struct err *err);
void node_runs_close (struct node *node);
/* NULL with err: ERR_NOT_FOUND, or it is no name of a run. */
struct node_run *node_run_find (struct node *node, const Nui__Node__V1__Run *name, struct err *err);
int node_run_put (struct node *node, const Nui__Node__V1__PutRequest *request, struct err *err);
int node_run_start (struct node *node, const Nui__Node__V1__StartRequest *request, struct err *err);
int node_run_taken (struct node *node, const Nui__Node__V1__Run *name, struct err *err);
/* Its directory; the caller closes it. -1 with err. */
int node_run_dir (struct node *node, const struct node_run *run, struct err *err);

/* --- node_serve.c */

int node_serve_begin (struct node *node, struct rpcserver *server, struct err *err);
void node_serve_draining (struct node *node);
void node_tell_run (struct node *node, const struct node_run *run);
void node_tell_health (void *node);

#endif
