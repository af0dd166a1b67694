/* settings: everything nui-local.cfg says, read whole or refused whole: the policy (policyconf.h), the nodes (nodeconf.h),
 * and what a site is to the grid, its resource manager, its bank and its users.
 *
 * Strings point into the conf that it was read from (see proto/rpc/daemon.h for its lifetime). */
#ifndef NUI_LOCAL_CONF_SETTINGS_H
#define NUI_LOCAL_CONF_SETTINGS_H

#include "local/conf/nodeconf.h"
#include "local/core/policy.h"
#include "local/core/types.h"
#include "local/rm/rm_kind.h"
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

/* --- AMCFG: when the bank does not pay or does not answer ----------------------------------- */

/* Of a job that is about to start while the bank does not answer; by CANCEL also one that is refused. */
enum am_action {
    AM_WAIT, /* on its nodes, until it does */
    AM_NONE, /* started without a hold */
    AM_DEFER,
    AM_CANCEL,
};

/* What a run that the site's own nodes ended costs. */
enum am_node_failure {
    AM_CHARGE, /* what it used */
    AM_FREE,   /* nothing, and nothing before its end either */
};

struct settings_am {
    int action;          /* enum am_action: JFACTION */
    bool defer;          /* DEFERJOBONFAILURE */
    duration_us timeout; /* TIMEOUT: an answer that takes longer is none */
    duration_us flush;   /* FLUSHINTERVAL: running jobs are charged so often; TIME_US_MAX: never */
    duration_us anchors; /* ANCHORINTERVAL: a block of the bank's history is kept so often */
    int node_failure;    /* enum am_node_failure: NODEFAILURE */
    char fallback[64];   /* FALLBACKACCOUNT; "": none */
    char older[64];      /* BANKFALLBACKACCOUNT, taken over where there is no other */
    char machine[64];    /* MACHINE; "PARTITION": the one where a job runs; "": none */
};
/* What is done with a job while the bank is away. */
enum am_action settings_am_away (const struct settings_am *am);

/* --- GRIDCFG ------------------------------------------------------------------------------ */

/* What a site lets one metascheduler take, or DEFAULT those that have no record; what a record does not say is as DEFAULT's line
 * above it says. What Maui has words for is not here: nodes and hours are reservations whose list has !GRID (SRCFG), what runs at
 * one time is a limit of the QoS that QDEF gives. 0 or NULL: not limited. Strings are the conf's. */
struct settings_grid {
    char *meta;              /* "DEFAULT" or its name; owned */
    duration_us lease;       /* MAXLEASE */
    duration_us ahead;       /* MAXAHEAD: a slot begins no later than this from now */
    duration_us wall;        /* MAXJOBWALLTIME */
    int64_t procs_each;      /* MAXPROCPERJOB: of one component */
    int64_t procs;           /* MAXPROC: of slots and running jobs, at any moment */
    int64_t share;           /* SHARE: the same in percent of the site's processors */
    credit_micro price;      /* MINPRICE: per processor-second */
    const char *qos_default; /* QDEF: of jobs that ask for none */
    const char *qos;         /* QLIST, and so on: names, !names, "ALL" */
    const char *users;       /* identities or local accounts */
    const char *accounts;
    const char *classes;
};
/* Whether a list has a place for either name: no !name that fits, and one that does, or "ALL", or no other
 * entry. text NULL: it has. */
bool settings_grid_lists (const char *text, const char *name, const char *other);

/* --- SERVERMODE, SCHEDCFG[x] MODE and the SIM parameters (Maui's guide, chapter 16) ----------- */

enum server_mode { MODE_NORMAL, MODE_TEST, MODE_INTERACTIVE, MODE_SIMULATION };

/* SIMJOBSUBMISSIONPOLICY: jobs come at the times of the log; so that so many wait; so that so many
 * processor-seconds wait. */
enum sim_submission { SIM_NORMAL, SIM_CONSTANTJOBDEPTH, SIM_CONSTANTPSDEPTH };

enum sim_flag { SIM_IGNCLASS = 1, SIM_IGNQOS = 2, SIM_IGNFEATURES = 4 };

struct settings_sim {
    const char *workload;  /* SIMWORKLOADTRACEFILE; NULL: jobs come by msub only */
    const char *resources; /* SIMRESOURCETRACEFILE; NULL: NODECFG's nodes */
    int submission;
    int64_t initial_depth;
    int64_t stop_iteration;  /* -1: runs on */
    int64_t exit_iteration;  /* -1: none */
    bool auto_shutdown;      /* ends when nothing is left to simulate */
    int64_t time_ratio;      /* simulated seconds per second; 0: as fast as it goes */
    int64_t wc_accuracy_ppm; /* of a percent of its limit that a job runs; 0: as the log says */
    int64_t wc_scaling;      /* percent of the log's limits */
    int64_t node_count;      /* only the first so many; 0: all */
    unsigned flags;          /* enum sim_flag */
};

struct settings_mode {
    int mode;               /* enum server_mode */
    bool mode_set;          /* by the file */
    const char *production; /* STATEDIR of the scheduler that TEST follows; NULL: none */
    struct settings_sim sim;
};

/* How long a job of that limit runs, where SIMWCACCURACY says it. */
duration_us settings_accurate (const struct settings_sim *sim, duration_us limit);
const char *server_mode_name (int mode);
/* "SIMULATION"; ERR_INVALID names the four. */
int server_mode_parse (const char *text, int *out, struct err *err);

/* --- STAGE…: how a site moves the files of jobs (local/stage/stage.h) ------------------------- */

enum { SETTINGS_STAGE_LIST_MAX = 256 };

struct settings_stage_list {
    const char *item[SETTINGS_STAGE_LIST_MAX];
    uint32_t count;
};

/* Strings are the conf's. 0 and NULL: as stage.h says. */
struct settings_stage {
    struct settings_stage_list roots; /* STAGEROOT */
    struct settings_stage_list hosts; /* STAGEHOSTS */
    const char *credentials, *known_hosts, *ca;
    int64_t transfers, host_transfers, tries;
    int64_t file_mb, keep_free_mb, s3_part_mb;
    int64_t bandwidth; /* bytes per second */
    int64_t rate_min;  /* bytes per second */
    duration_us patience, time_max;
    int64_t input_mb, input_share_mb; /* INPUTMAX, INPUTSHARE: proto/content/contents.h */
    duration_us input_keep;
};

/* --- NOTIFICATIONEVENTS: what an administrator should hear of at once --------------------------- */

enum notify_event { /* bits of settings.notify_events */
                    NOTIFY_JOB_FAILURE = 1 << 0,
                    NOTIFY_NODE_DOWN = 1 << 1,
                    NOTIFY_BANK_DOWN = 1 << 2,
                    NOTIFY_RES_UNFILLED = 1 << 3,
                    NOTIFY_BANK_HISTORY = 1 << 4,
                    NOTIFY_BANK_DENIED = 1 << 5,
                    NOTIFY_JOB_LIMIT = 1 << 6,
                    NOTIFY_CLOCK_DIFFERS = 1 << 7,
                    NOTIFY_NODE_DRAINED = 1 << 8,
                    NOTIFY_ALL = (1 << 9) - 1,
};

/* --- the whole ---------------------------------------------------------------------------- */

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

struct settings {
    struct settings_mode mode;
    struct workload *workload; /* SIMULATION's log; NULL: none */
    const char *site_name;
    bool maui_file; /* MAUIFILE */
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
    duration_us start_grace;   /* STARTGRACE: a firm part without START is released after this */
    duration_us kill_grace;    /* KILLGRACE */
    int64_t output_max_mb;     /* JOBOUTPUTMAX: of stdout and stderr together; 0: no limit */
    duration_us clock_tolerance; /* CLOCKTOLERANCE: how far a peer's slot may lie in our past */
    struct settings_am am;       /* AMCFG */
    duration_us bank_patience;   /* BANKPATIENCE: PREPARE says NO after this without an answer */
    bool cgroups;
    const char *notify_program;   /* NOTIFICATIONPROGRAM; NULL: none */
    const char *notify_account;   /* NOTIFICATIONACCOUNT: it runs as that */
    const char *feedback_program; /* FEEDBACKPROGRAM; NULL: none. It runs as notify_account */
    const char *notify_url;       /* NOTIFICATIONURL; NULL: none */
    unsigned notify_events;       /* NOTIFICATIONEVENTS: enum notify_event; none in the file: all */
    const char *stat_dir;         /* STATDIR; NULL: stats in the state directory */
    duration_us job_purge;        /* JOBPURGETIME: ended jobs are forgotten after this */
    duration_us history_time;    /* HISTORYTIME: and their history after this; TIME_US_MAX: never */
    struct settings_stage stage; /* STAGE… */
    struct rm_health health;     /* NODEHEALTHPROGRAM, NODEHEALTHINTERVAL */
    uint32_t node_failure_users; /* NODEFAILUREUSERS; 0: no node is drained for its jobs */
    const char *checkpoint_hook; /* CHECKPOINTHOOK; NULL: none */
    const char *checkpoint_account; /* CHECKPOINTACCOUNT; NULL: the job's own */
    int node_failure;               /* enum node_failure: JOBACTIONONNODEFAILURE */
    const struct rm_kind *rm_kind;  /* RMCFG TYPE */
    bool rm_missing;      /* a file of Maui's names one that is not spoken here: nothing is run */
    struct rm_options rm; /* the rest of RMCFG */
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
/* Whether the file has its name: in METAGROUP, GRIDCFG or PEERCAP. */
bool settings_names (const struct settings *settings, const char *meta);
/* All that speak for its jobs, with spaces between: itself, or its group. */
const char *settings_speakers (const struct settings *settings, const char *meta);
/* The group that has it; NULL: none. */
const struct settings_group *settings_group_of (const struct settings *settings, const char *meta);
/* The first of its group, or it itself. */
const char *settings_group_first (const struct settings *settings, const char *meta,
                                  bool *group_out);
/* Likewise of GRIDCFG; NULL: nothing is said. */
const struct settings_grid *settings_grid_of (const struct settings *settings, const char *meta);

#endif
