/* settings: everything nui-local.cfg says, read whole or refused whole.
 *
 * Strings point into the conf that it was read from (see proto/rpc/daemon.h for its lifetime). */
#ifndef NUI_LOCAL_SVC_SETTINGS_H
#define NUI_LOCAL_SVC_SETTINGS_H

#include "local/conf/nodeconf.h"
#include "local/core/policy.h"
#include "local/core/types.h"
#include "local/svc/settings_bank.h"
#include "local/svc/settings_grid.h"
#include "local/svc/settings_mode.h"
#include "local/svc/settings_stage.h"
#include "proto/conf/conf.h"

enum {
    SETTINGS_METAS_MAX = 16,
    SETTINGS_ADMINS_MAX = 64,
    SETTINGS_ADMIN_LEVELS = 3,
    SETTINGS_CAPS_MAX = 64,
    SETTINGS_GROUPS_MAX = 16,
    SETTINGS_GROUP_MEMBERS_MAX = 7,
    SETTINGS_PORTS_MIN = 1024,
};

/* What one metascheduler may hold here at one time. */
struct settings_cap {
    char *meta; /* "DEFAULT" or its name */
    int64_t holds;
    int64_t procseconds;
};

/* Metaschedulers that decide as a group: each may go on with what another of them began. */
struct settings_group {
    const char *member[SETTINGS_GROUP_MEMBERS_MAX];
    uint32_t count;
    char names[SETTINGS_GROUP_MEMBERS_MAX * 64]; /* all of them, with spaces between */
};

/* ADMIN1, ADMIN2, ADMIN3: login names (on the cluster's own socket) or identities. */
struct settings_admins {
    bool all; /* ADMIN3 ALL: every account of the cluster */
    const char *who[SETTINGS_ADMINS_MAX];
    uint32_t count;
};

struct workload;
/* What happens to a job whose node is lost. */
enum node_failure { NODE_FAILURE_FAIL, NODE_FAILURE_REQUEUE, NODE_FAILURE_CANCEL };

enum settings_rm { SETTINGS_RM_EMBEDDED, SETTINGS_RM_SLURM };

/* RMCFG[…] of TYPE=SLURM: see rm_slurm.h. */
struct settings_slurm {
    const char *server, *key, *user, *partition, *conf, *bin, *completions;
    bool sacct, usage;
    bool mirror; /* our reservations are made there, too */
    bool charge; /* jobs that came from Slurm itself are paid for at the grid's bank */
    duration_us poll, patience, token_life;
};

struct settings {
    struct settings_mode mode;
    struct workload *workload; /* SIMULATION's log; NULL: none */
    const char *site_name;
    const char *metas[SETTINGS_METAS_MAX];
    uint32_t meta_count;
    struct settings_group groups[SETTINGS_GROUPS_MAX]; /* METAGROUP */
    uint32_t group_count;
    struct settings_admins admin[SETTINGS_ADMIN_LEVELS]; /* [0]: ADMIN1 */
    const char *bank;
    const char *gridmap;
    const char *job_dir;
    const char *supervise; /* NULL: beside this program, else where it was installed */
    const char *advertise; /* NULL: what LISTEN says, with the real port */
    const char *listen;    /* LISTEN, the daemon's own key; NULL: a Unix socket only */
    const char *port_range;
    uint32_t port_lo, port_hi;
    duration_us horizon;
    duration_us lease_max;
    duration_us replay_window; /* REPLAYWINDOW: no signed job is taken so long after it was made */
    duration_us start_grace;  /* STARTGRACE: a firm part without START is released after this */
    duration_us kill_grace;   /* KILLGRACE */
    int64_t output_max_mb;    /* JOBOUTPUTMAX: of stdout and stderr together; 0: no limit */
    duration_us clock_tolerance; /* CLOCKTOLERANCE: how far a peer's slot may lie in our past */
    struct settings_am am;     /* AMCFG */
    duration_us bank_patience; /* BANKPATIENCE: PREPARE says NO after this without an answer */
    bool cgroups;
    const char *notify_program; /* NOTIFICATIONPROGRAM; NULL: none */
    const char *notify_account; /* NOTIFICATIONACCOUNT: it runs as that */
    const char *notify_url;     /* NOTIFICATIONURL; NULL: none */
    unsigned notify_events;     /* NOTIFICATIONEVENTS: bits of notify.h; 0 in the file means all */
    const char *stat_dir;    /* STATDIR; NULL: stats in the state directory */
    duration_us job_purge;   /* JOBPURGETIME: ended jobs are forgotten after this */
    duration_us history_time; /* HISTORYTIME: and their history after this; TIME_US_MAX: never */
    struct settings_stage stage; /* STAGE… */
    const char *checkpoint_hook; /* CHECKPOINTHOOK; NULL: none */
    const char *checkpoint_account; /* CHECKPOINTACCOUNT; NULL: the job's own */
    int node_failure;            /* enum node_failure: JOBACTIONONNODEFAILURE */
    int rm_type; /* enum settings_rm */
    struct settings_slurm slurm;
    struct settings_cap caps[SETTINGS_CAPS_MAX];
    uint32_t cap_count;
    struct settings_grid grids[SETTINGS_CAPS_MAX]; /* GRIDCFG */
    uint32_t grid_count;
    struct nodeconf nodes; /* NODECFG, TOPOLOGYFILE; in SIMULATION the trace's nodes */
    struct policy *policy; /* sealed */
};

/* names: of credentials, shared by all settings of one process. mode: enum server_mode, in place of
 * what the file says; -1: as the file says. */
int settings_read (struct conf *conf, struct cred_names *names, int mode, struct settings **out,
                   struct err *err);
void settings_destroy (struct settings *settings);
/* The cap for a metascheduler: its own, else DEFAULT's. */
const struct settings_cap *settings_cap_of (const struct settings *settings, const char *meta);
/* The same metascheduler, or one of its group. */
bool settings_speaks_for (const struct settings *settings, const char *meta, const char *owner);
/* All that speak for its jobs, with spaces between: itself, or its group. */
const char *settings_speakers (const struct settings *settings, const char *meta);
/* The group that has it; NULL: none. */
const struct settings_group *settings_group_of (const struct settings *settings, const char *meta);
/* The first of its group, or it itself. */
const char *settings_group_first (const struct settings *settings, const char *meta, bool *group_out);
/* Likewise of GRIDCFG; NULL: nothing is said. */
const struct settings_grid *settings_grid_of (const struct settings *settings, const char *meta);

#endif
