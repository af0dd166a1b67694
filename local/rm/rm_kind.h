/* rm_kind: which resource managers nui-local can have under it (RMCFG TYPE). A new one is a folder and a line of
 * rm_kinds.h; nothing above this folder knows one by its name. */
#ifndef NUI_LOCAL_RM_RM_KIND_H
#define NUI_LOCAL_RM_RM_KIND_H

#include <event2/event.h>

#include "local/rm/filewatch.h"
#include "local/rm/rm.h"
#include "local/rm/rm_kinds.h"
#include "proto/base/log.h"
#include "proto/rpc/tlsid.h"

/* What a resource manager is asked and told by programs of the site's: native_url.h. */
enum rm_call {
    RM_CALL_CLUSTERQUERY,
    RM_CALL_WORKLOADQUERY,
    RM_CALL_JOBSUBMIT,
    RM_CALL_JOBSTART,
    RM_CALL_JOBCANCEL,
    RM_CALL_JOBREQUEUE,
    RM_CALL_JOBSUSPEND,
    RM_CALL_JOBRESUME,
    RM_CALL_JOBMODIFY,
    RM_CALLS,
};

/* RMCFG[…], of which each kind takes what it knows: see rm_slurm.h. */
struct rm_options {
    const char *server, *key, *token, *user, *partition, *classes, *conf, *bin, *completions;
    const char *url[RM_CALLS], *adapter, *env, *launcher;
    bool sacct, usage;
    bool mirror; /* our reservations are made there, too */
    bool
        charge; /* jobs that came from the resource manager itself are paid for at the grid's bank */
    duration_us poll, patience, token_life;
};

/* A node that is another host: NODECFG[node] AGENT=address. */
struct rm_agent {
    const char *node, *address;
};

/* NODEHEALTHPROGRAM and NODEHEALTHINTERVAL, of the daemon's own machine. */
struct rm_health {
    const char *program; /* NULL: none */
    duration_us every;
};

/* Strings are read before rm_open returns. */
struct rm_config {
    struct event_base *base;
    struct log *log;
    struct filewatch *watch; /* outlives it */
    const char *site;
    const char *job_dir; /* made when absent */
    const struct rm_options *options;
    bool observe;           /* look only: another scheduler runs it */
    time_us since;          /* of settled (), before a restart; 0: of no use */
    const char *supervise;  /* SUPERVISE; NULL: looked for */
    duration_us kill_grace; /* between TERM and KILL */
    int64_t output_max_mb;  /* of a job's stdout and stderr together; 0: no limit */
    bool cgroups;           /* use cgroup v2 where the machine allows */
    struct tlsid *id;       /* for other hosts; NULL: there is none */
    const struct rm_agent *agent;
    uint32_t agent_count;
    struct rm_health health;
    rm_event_fn on_event;
    void *arg;
};

struct rm_kind {
    const char *name; /* "EMBEDDED" */
    const char *does; /* "runs the jobs itself": goes on after "nui-local" */
    bool has_nodes;   /* it says which there are: NODECFG need not */
    /* Jobs are kept to what they were given, and measured loads lag: what is dedicated counts, unless NODEAVAILABILITYPOLICY
     * says otherwise. */
    bool dedicates;
    bool bounds_output; /* keeps a job to rm_config's output_max_mb */
    bool has_agents;    /* runs jobs on other hosts: NODECFG AGENT */
    /* Before it is opened; ERR_INVALID with a sentence. NULL: whatever is said will do. */
    int (*check) (const struct rm_options *options, struct err *err);
};

/* Declared here, and defined in their folders. */
#define RM_DECLARED(name)                                                                          \
    extern const struct rm_kind rm_##name##_kind;                                                  \
    int rm_##name##_open (const struct rm_config *config, struct rm *out, struct err *err);
RM_KINDS (RM_DECLARED)
#undef RM_DECLARED

/* Fills *out. What runs the jobs need not be there yet. */
int rm_open (const struct rm_kind *kind, const struct rm_config *config, struct rm *out,
             struct err *err);

/* NULL: there is none of that name. Without regard to case. */
const struct rm_kind *rm_kind_find (const char *name);
/* What a site has that says nothing. */
const struct rm_kind *rm_kind_default (void);
/* "runs the jobs itself (EMBEDDED) or has Slurm run them (SLURM)". */
void rm_kinds_do (char *out, size_t cap);
/* "neither EMBEDDED nor SLURM". */
void rm_kinds_neither (char *out, size_t cap);

#endif
