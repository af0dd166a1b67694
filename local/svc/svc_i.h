/* svc_i: what the sources of local/svc share.
 *
 *   hub.c       names, transactions, the wish for a pass; what rooms listen for
 *   svc.c       creation, reload, the table of the rooms
 *   jobspec.c   a signed job: who, which component, what it needs in the core's terms
 *   pass.c      when a pass runs, and what its decisions lead to
 *   rm_events.c what the resource manager tells of its own accord
 *   life.c      a job's way: starts, ends, back to the queue, cancel
 *   hold.c      its hold at the bank: the request, and how it is given back
 *   life_hold.c    what the bank's answer makes of the job
 *   life_launch.c  what it is handed to the resource manager with
 *   evict.c     running jobs that have to go: preemption, limits, lost nodes
 *   depends.c   jobs that wait for others
 *   deferral.c  jobs that cannot be run as they are
 *   coalloc.c   PREPARE, COMMIT, ABORT, READY, START, RELEASE
 *   staging.h   files that are there before a job starts; stageout.h: those taken away after it
 *   substitute.c other nodes for a firm part whose own went down
 *   jobs.c      QUERY, SUBMIT, JOB, CANCEL; job_find.c, job_reason.c, job_info.c: whose it is, why it waits, what is told
 *   output.c    OUTPUT
 *   native.c    jobs that came from the resource manager itself (native_needs.c: what they need)
 *   rmnodes.c   nodes that the resource manager tells of
 *   mirror.c    reservations that the resource manager keeps as well
 *   ports.c     rendezvous ports
 *   resv.c      administrators' reservations: records, placing, refilling (resv.h)
 *   memory/     what is remembered: history, sums, trace, purging, fairshare; what an administrator should hear of
 *   forecast/   start-time estimates and their record
 *   clock.c     the moment it is
 *   grid/       this site among the others: links, reports, what metaschedulers may have, signed jobs are taken once
 *   modes/      TEST, INTERACTIVE, SIMULATION: what comes of a decision
 *   admin/      administrators' commands */
#ifndef NUI_LOCAL_SVC_SVC_I_H
#define NUI_LOCAL_SVC_SVC_I_H

#include <sys/utsname.h>
#include <uthash.h>

#include "local/conf/place.h"
#include "local/core/cluster.h"
#include "local/core/plan.h"
#include "local/core/query.h"
#include "local/link/anchors.h"
#include "local/link/bank_link.h"
#include "local/link/gridmap.h"
#include "local/link/meta_link.h"
#include "local/rm/jobdir.h"
#include "local/rm/rm.h"
#include "local/store/local_store.h"
#include "local/svc/schedule.h"
#include "local/svc/svc.h"
#include "proto/nui/v1/bank.pb-c.h"
#include "proto/nui/v1/local.pb-c.h"
#include "proto/job/delegation.h"
#include "proto/job/depend.h"

enum {
    SITE_ID_MAX = 96, /* "alpha.17" */
    QUERY_INTERVALS_MAX = 256,
    PART_WAITERS_MAX = 16,
};

struct site_node {
    char *name;
    char *address; /* NULL: the server's own */
    char *type, *partition; /* for the bank; NULL: none, DEFAULT */
    struct node_id id;
    bool configured; /* still in the configuration */
    char *set[4];    /* by administrators: state, features, priority, speed; NULL: as configured */
    UT_hash_handle hh; /* by name */
};

struct site_part;

/* In two lists: of what the job waits for, and of the jobs that wait for the same target. */
struct site_depend {
    struct site_job *job;
    enum depend_kind kind;
    uint64_t target; /* a job of this site */
    struct site_depend *before, *after, *before_alike, *after_alike;
};

/* A job that has not ended. */
struct site_job {
    struct store_job rec;
    uint32_t cred[CRED_KINDS];
    struct req *reqs;
    uint32_t req_count;
    struct rsv_id reservation; /* that it asks for by name; 0: none */
    struct licence *licence;
    uint32_t licence_count;
    time_us not_before;     /* TIME_US_NONE: at once */
    uint32_t core_flags;    /* enum job_flag */
    uint32_t attrs;         /* JOBATTR_… of its QoS and its flags */
    time_us deadline;       /* 0: none */
    struct site_depend *depends; /* that are not met; owned */
    bool in_cluster;        /* the core knows it as a job */
    struct site_part *part; /* NULL: ordinary */
    char told_reason[STORE_NAME_MAX]; /* the code of the last event */
    time_us dispatched; /* when it was chosen to start; 0: not known (before a restart) */
    struct store_rm_job rm;           /* what the resource manager calls it; rm_id "": nothing yet */
    bool suspended;                   /* there, by somebody else */
    time_us suspended_since;
    time_us taken;                    /* when the resource manager told of it; 0: before a restart */
    int64_t memory_used_mb;           /* by its processes, as last measured */
    time_us charge_at;                /* its next partial charge; 0: not known: charge.c */
    duration_us cpu_used;             /* by its processes, as last measured; 0: not known */
    bool payqos;                      /* it runs with another QoS than own_qos: payqos.c */
    uint32_t own_qos;
    bool stages_out;                  /* files are taken away after it: stageout.h */
    bool stages;                      /* it needs files before it starts: staging.h */
    struct staging_in *stage_in;      /* those that it waits for, or has and was not launched with */
    struct site_job *stage_next;      /* who wants them, too */
    time_us data_at;                  /* they are expected then; 0: nothing is awaited */
    bool batch_pushed;                /* a batch hold of ours stands there as an administrator's */
    UT_hash_handle hh;      /* by rec.number */
};

/* A co-allocated part that is preparing, prepared or firm. */
struct site_part {
    struct svc *svc;
    struct store_part rec;
    struct site_job *job;
    struct event *timer;    /* lease end; after COMMIT: no-show; while preparing: bank patience */
    struct rpccall *waiter[PART_WAITERS_MAX]; /* PREPAREs without an answer yet */
    uint32_t waiter_count;
    bool rsv; /* the core has its reservation */
    UT_hash_handle hh; /* by rec.job */
};

struct output_stream;
struct staging;
struct stageout;
struct stats;
struct statdir;
struct purge;
struct notify;
struct simulation;
struct mode;
struct follow;
struct checkpoint;
struct forecast;

struct rm_later; /* pass.c: what the resource manager said during a pass */

/* The pass that is being made, slice by slice: pass.c. */
struct passing {
    bool under_way;
    bool again;               /* an event took back what was planned: from the beginning */
    bool wake_wanted;         /* what came meanwhile calls for another one */
    bool poll_wanted;         /* the poll interval went by */
    uint32_t given_up;        /* how often it had to begin anew */
    time_us now;              /* its moment */
    duration_us begun;        /* monotonic */
    duration_us slice_over;   /* monotonic: when the last slice was */
    duration_us took;         /* its own time, without what was done between the slices … */
    duration_us longest;      /* … and the longest slice of it */
    struct plan plan;
    struct arena *arena;      /* what the plan holds */
    struct arena *later_arena;
    struct rm_later *later, **later_end;
    struct event *slice;
};

/* A run that a restored state has forgotten, until it has ended. */
struct svc_stray {
    char key[JOBDIR_KEY_MAX];
    char job_id[JOBDIR_KEY_MAX];
    uint32_t incarnation;
    UT_hash_handle hh; /* by key */
};

struct svc {
    const struct svc_listener *const *listeners; /* to the first NULL */
    struct daemon *daemon;
    struct event_base *base;
    struct log *log;
    const struct settings *settings;
    struct cred_names *names;
    struct strtab *features;
    struct strtab *rsv_names; /* that jobs or reservations have, or had */
    struct site_rsv *rsvs;    /* hash by number: resv.h */
    struct standing *standing; /* what SRCFG asks for */
    struct resv_idle *idles;   /* hash: what reservations keep idle at somebody's expense */
    char rsv_name[96];        /* of one of those, until the next is asked for */
    struct svc_stray *strays; /* hash by key: stray.c */
    struct grid_number *grid_numbers; /* hash by metascheduler: replay.h */
    struct place place;
    char site[STORE_NAME_MAX];
    char server[160]; /* host:port told to others */
    char host[128];   /* its host part: the default address of nodes */
    char boot_id[40];
    struct utsname kernel; /* of this machine, which the embedded runner's nodes are */
    struct local_store *store;
    struct rm rm;
    struct gridmap *gridmap;
    struct bank_link *bank; /* NULL: nothing is charged (no BANK; not under NORMAL) */
    struct anchors *anchors; /* with bank */
    struct meta_link *meta; /* NULL: of no grid */
    struct cluster *cluster;
    struct site_node *nodes;       /* hash */
    struct site_node **node_by_id; /* [node id] */
    uint32_t node_count;
    bool node_types; /* some node has one */
    struct site_job *jobs;   /* hash by number */
    struct svc_awaited *awaited; /* whom they wait for (depends.c); goes with them */
    bool lapses;                 /* somebody waits for what can never be: lapse.c */
    struct site_part *parts; /* hash by job number */
    struct output_stream *streams;
    int output_inotify; /* for all of them, while there is … */
    struct event *output_changed; /* … this */
    uint8_t port_used[65536 / 8]; /* a bit for each port of a live job */
    struct schedule schedule;
    struct simulation *sim; /* SIMULATION's; NULL in the other modes */
    time_us simulated_now;  /* its moment */
    struct follow *follow;  /* of TEST with PRODUCTION; else NULL */
    struct mode *mode;      /* TEST's and INTERACTIVE's; NULL in the others */
    struct checkpoint *checkpoints; /* hooks at work */
    char job_dir[4096];             /* JOBDIR */
    struct staging *staging;        /* NULL: nothing is moved in this mode */
    struct stageout *stageouts;     /* hash: files of ended jobs on their way out */
    struct event *pass_event;
    struct event *resume_event; /* schedctl -r TIME; NULL until the first */
    struct event *poll_event;
    struct event *usage_event; /* NULL until the first measurement */
    uint64_t usage_cursor;     /* the last job that was measured */
    bool usage_known;          /* some job was measured: nodes have loads */
    struct passing passing;
    time_us pass_at; /* the moment of the last pass */
    duration_us pass_gap; /* how long after that the next one may be */
    struct arena *call_arena; /* reset by each handler that uses it */
    struct arena *report_arena;
    struct stats *stats;
    struct forecast *forecast; /* start-time estimates */
    struct statdir *statdir;
    struct notify *notify;
    struct contact *contact; /* NULL: no metascheduler */
    struct purge *purge; /* NULL until the first poll */
    duration_us fairshare_put_at; /* monotonic */
    bool closing;
};

/* --- the rooms ---------------------------------------------------------------------------- */

/* How a job's run comes to its end. */
struct job_end {
    enum { JOB_NEVER_RAN, JOB_RAN, JOB_RUNS_AGAIN } how; /* the last: back to the queue, as another incarnation */
    duration_us cpu;                                    /* of its processes; -1: not known */
};

/* What a room of the service wants to hear; what is NULL it does not. The table of all is in svc.c. What returns an
 * int may refuse: the rest does not hear of it then, and it has not happened. */
struct svc_listener {
    int (*open) (struct svc *svc, struct err *err); /* before jobs are recovered */
    void (*recovered) (struct svc *svc);            /* they are, and nothing is served yet */
    /* Other settings are wanted: before anything has changed; and once they are in force. */
    int (*reload) (struct svc *svc, const struct settings *settings, struct err *err);
    void (*policy_changes) (struct svc *svc); /* nothing may look at the old one any more */
    void (*reloaded) (struct svc *svc);
    void (*polled) (struct svc *svc);    /* every RMPOLLINTERVAL, before the pass */
    void (*rm_unknown) (struct svc *svc, const struct rm_event *event); /* of a job that there is not */
    void (*pass_begins) (struct svc *svc);
    void (*pass_done) (struct svc *svc); /* a pass of svc->pass_at has been acted on */
    void (*job_entered) (struct svc *svc, struct site_job *job); /* into the core's queue, also after a restart */
    void (*job_chosen) (struct svc *svc, struct site_job *job, time_us now); /* to start, durably */
    void (*job_launched) (struct svc *svc, struct site_job *job); /* the resource manager has taken it */
    void (*job_started) (struct svc *svc, struct site_job *job);
    void (*job_requeued) (struct svc *svc, struct site_job *job);
    /* In a transaction: its row was written, and metaschedulers are to hear of it. */
    int (*job_told) (struct svc *svc, struct site_job *job, struct err *err);
    /* In the transaction of its end: state, start and end are set, the core still knows it. */
    int (*job_ends) (struct svc *svc, struct site_job *job, const struct job_end *end, struct err *err);
    void (*job_ended) (struct svc *svc, uint64_t number);       /* after that: it is not there any more */
    void (*job_leaves) (struct svc *svc, struct site_job *job); /* the live record goes, for whatever reason */
    void (*bank_heard) (struct svc *svc, bool answers); /* of a hold: that it came, or did not in time */
    void (*stop) (struct svc *svc);  /* the daemon ends: jobs, links and the resource manager are still there … */
    void (*close) (struct svc *svc); /* … and now are not */
};

/* Tells all: SVC_TELL (svc, job_ended, (svc, number)). */
#define SVC_TELL(svc, event, args)                                                                 \
    for (const struct svc_listener *const *l_ = (svc)->listeners; *l_; l_++)                       \
        if ((*l_)->event)                                                                          \
    (*l_)->event args
/* The same while rc is 0, which is the answer of whoever refused. */
#define SVC_TRY(svc, rc, event, args)                                                              \
    for (const struct svc_listener *const *l_ = (svc)->listeners; *l_ && (rc) == 0; l_++)          \
        if ((*l_)->event)                                                                          \
    (rc) = (*l_)->event args

extern const struct svc_listener charge_listener, contact_listener, deferral_listener, evict_listener, fairshare_listener,
    follow_listener, forecast_listener, forecast_record_listener, history_listener, job_info_listener, links_listener, mirror_listener,
    mode_listener, native_listener, notify_listener, output_listener, purge_listener, replay_listener, stray_listener,
    resv_charge_listener, resv_listener, rm_events_listener, staging_listener, stageout_listener, statdir_listener, stats_listener,
    usage_listener;

/* --- hub.c -------------------------------------------------------------------------------- */

char *site_id (const struct svc *svc, uint64_t number, char out[SITE_ID_MAX]);
struct site_job *svc_job (struct svc *svc, uint64_t number); /* live ones */
void svc_reason (struct site_job *job, const char *code, const char *fmt, ...)
    __attribute__ ((format (printf, 3, 4)));
/* begin … body … commit, with rollback and a log line on failure. */
int svc_begin (struct svc *svc, struct err *err);
int svc_commit (struct svc *svc, int rc, struct err *err); /* rc of the body */
/* In a transaction: the change number, the row and, if `tell`, an event for the metascheduler. */
int svc_job_write (struct svc *svc, struct site_job *job, bool tell, const void *envelope,
                   size_t envelope_len, struct err *err);
/* 0, or ERR_CONFLICT: what runs is production's (TEST with PRODUCTION). */
int svc_may_act (const struct svc *svc, struct err *err);
void pass_wake (struct svc *svc); /* soon; many wishes are one pass */

/* --- jobspec.c ---------------------------------------------------------------------------- */

/* A signed job seen by this site. Everything is owned; see jobspec_free. */
struct jobspec {
    Nui__Common__V1__Job *job;
    const Nui__Common__V1__Component *component;
    const char *meta; /* the metascheduler whose job it is; "": none */
    uint32_t component_index;
    uint32_t shape;
    bool depends_met; /* the metascheduler says so of jobs of the grid */
    char submitter[PRINCIPAL_URI_MAX];
    uint8_t hash[STORE_HASH_LEN]; /* of the signed bytes */
    struct delegation delegation;
    char local_account[STORE_NAME_MAX];
    uint32_t cred[CRED_KINDS];
    struct req reqs[REQS_MAX];
    uint32_t req_count;
    struct licence licence[LICENCES_MAX];
    uint32_t licence_count;
    uint32_t procs;
    int64_t memory_mb;
    duration_us walltime;
    uint32_t core_flags; /* enum job_flag */
    bool taken; /* by this site, before */
    char **grid_licence; /* names that the metascheduler counts; the request's */
    size_t grid_licence_count;
    bool never_fits; /* a feature or resource that no node has */
    char never_text[200];
};

/* Checks signature, chain, grid, submitter and expiry; finds the component. ERR_UNAUTHENTIC, ERR_INVALID,
 * ERR_NOT_FOUND. *out is valid when 0 is returned; meta ("": there is none) must outlive it. */
int jobspec_trust (struct svc *svc, const Nui__Common__V1__Envelope *envelope, const char *meta, const char *component,
                   uint32_t shape, bool first_time, struct jobspec *out, struct err *err);
/* Of one that is trusted: maps its user, converts the component, and asks whether the metascheduler may have it.
 * ERR_INVALID, ERR_DENIED (not mapped, against the site's policy); freed unless 0 is returned. */
int jobspec_admit (struct svc *svc, bool first_time, struct jobspec *spec, struct err *err);
/* What the grid also asks of a job when it comes first: its moments, its sizes (proto/job/jobcheck.h). */
int jobspec_fresh (const struct jobspec *spec, struct err *err);
/* Both. component NULL: the only one of a job for this cluster alone. */
int jobspec_verify (struct svc *svc, const Nui__Common__V1__Envelope *envelope, const char *meta,
                    const char *component, uint32_t shape, bool first_time, struct jobspec *out,
                    struct err *err);
/* The same for the first time, of a job for which the metascheduler counts the licences of these names. */
int jobspec_verify_counted (struct svc *svc, const Nui__Common__V1__Envelope *envelope, const char *meta,
                            const char *component, uint32_t shape, char **licence,
                            size_t licence_count, struct jobspec *out, struct err *err);
/* It starts when its metascheduler says so, not when it has come to the front of the queue. */
bool jobspec_is_reserved (const struct jobspec *spec);
/* Without a signature, as an account of this machine: checked but for who asks. ERR_INVALID. */
int jobspec_local (struct svc *svc, const Nui__Common__V1__Envelope *envelope, const char *account,
                   struct jobspec *out, struct err *err);
/* What a job needs beyond what a question needs: a script. */
int jobspec_runnable (const struct jobspec *spec, struct err *err);
/* From the store: checked when it came in. The account stays the one it got then. */
int jobspec_load (struct svc *svc, const struct store_job *rec, struct jobspec *out,
                  struct err *err);
/* A job that nobody signed, of an account of this cluster. Takes job over, also on failure. */
int jobspec_unsigned (struct svc *svc, Nui__Common__V1__Job *job, const char *local_account,
                      struct jobspec *out, struct err *err);
void jobspec_free (struct jobspec *spec);
/* The number of its array here; 0: none. */
uint64_t jobspec_array (const struct jobspec *spec);

/* --- asked.c ------------------------------------------------------------------------------ */

enum { BANK_GRES_MAX = 16, BANK_NODE_TYPES_MAX = 32 };

struct bank_asked {
    Nui__Bank__V1__Asked message;
    Nui__Common__V1__GenericResource gres[BANK_GRES_MAX], *item[BANK_GRES_MAX];
    Nui__Bank__V1__NodeShare nodes[BANK_NODE_TYPES_MAX], *node[BANK_NODE_TYPES_MAX];
};
/* What the job asks for, without its nodes. Points into itself and the spec. */
void bank_asked_fill (const struct svc *svc, const struct jobspec *spec, struct bank_asked *out);
/* Where it is placed: its processors by node type, where any node has one. Points into the nodes. */
void bank_nodes_fill (const struct svc *svc, const struct site_job *job, const struct jobspec *spec,
                      struct bank_asked *out);
/* The machine that the bank is told of (AMCFG MACHINE); "": none. Of no job: "" where each has its own. */
const char *bank_machine (const struct svc *svc, const struct site_job *job);

/* --- clock.c ------------------------------------------------------------------------------ */

/* The moment that the schedule counts from: the wall clock, or a simulation's. Everything here asks
 * this and not clock_now_us, except for what belongs to the real world: signatures, the audit log. */
time_us svc_now (const struct svc *svc);

/* --- svc_jobs.c, svc_nodes.c, svc_recover.c ------------------------------------------------ */

/* One of "state", "features", "priority", "speed" in place of what is configured ("": no more); returns
 * what was set before, malloc'ed, or NULL. In force after svc_nodes_apply. */
char *svc_node_set (struct site_node *node, const char *name, const char *value);
/* A job as the store has it becomes a live one, waiting or running; the resource manager is not asked.
 * The record is taken over. */
int svc_job_recover (void *svc, struct store_job *rec, struct err *err);
/* All of it, once, before anything is served. */
int svc_recover (struct svc *svc, struct err *err);
/* A record with its needs, in the hash; the part is attached by the caller. */
struct site_job *svc_job_add (struct svc *svc, const struct store_job *rec,
                              const struct jobspec *spec);
/* What administrators set of a node, as the store has it now. */
int svc_node_sets_load (struct svc *svc, struct site_node *node, struct err *err);
/* The configuration's or the resource manager's nodes and licences, in force. */
int svc_nodes_apply (struct svc *svc, const struct settings *settings, struct err *err);
void svc_nodes_free (struct svc *svc);
/* The resource manager tells of them anew: in force now, and remembered. */
void svc_nodes_changed (struct svc *svc);
struct site_node *svc_node (const struct svc *svc, const char *name); /* NULL: there is none */
/* For place_open: whether there is such a node; self is the svc. */
bool svc_node_by_name (void *self, const char *name, struct node_id *out);
void svc_job_forget (struct svc *svc, struct site_job *job);
/* How long it has its nodes at most. */
duration_us svc_job_length (const struct svc *svc, const struct site_job *job);
struct site_part *svc_part_add (struct svc *svc, const struct store_part *rec,
                                struct site_job *job);
void svc_part_forget (struct svc *svc, struct site_part *part);
/* How long a part occupies its nodes: its limit and the time a late START may take. */
duration_us svc_part_duration (const struct svc *svc, duration_us walltime);
/* Was this very job signed as what is kept under that number? */
int svc_job_signed (struct svc *svc, uint64_t number, const Nui__Common__V1__Envelope *envelope, bool *same_out,
                    struct err *err);
/* "alpha01:2:0,…" and back; nodes that are no longer configured are left out. */
char *placement_text (struct svc *svc, const struct allocation *allocation);
struct allocation placement_parse (struct svc *svc, const char *text, struct arena *arena);
/* The part of it at *text, which then is at the next one; false: there is none. A node that is no longer
 * configured is NULL. */
bool placement_next (const struct svc *svc, const char **text, struct site_node **node_out,
                     unsigned *tasks_out, unsigned *req_out);
const char *node_address (struct svc *svc, const char *node_name);
int svc_cluster_submit (struct svc *svc, struct site_job *job, struct err *err);
/* What the job needs has changed while it waits. */
int svc_cluster_modify (struct svc *svc, struct site_job *job, struct err *err);
/* And what it may do by it; the core does not hear of it. */
void svc_job_qos_set (struct svc *svc, struct site_job *job, uint32_t qos);
/* A job, and one that is only asked about, as the ACLs of reservations see them. */
struct who svc_who (struct svc *svc, const struct site_job *job);
/* The reservation that a job has to run in: what it asks for, else what its QoS says (USERESERVED). */
struct rsv_id svc_reservation_of (struct svc *svc, struct rsv_id asked, uint32_t qos);
/* The number by which jobs ask for a reservation of this name, whether it exists or not. */
struct rsv_id resv_named (struct svc *svc, const char *name);
struct who jobspec_who (struct svc *svc, const struct jobspec *spec, bool coallocated);

/* --- pass.c ------------------------------------------------------------------------------- */

void pass_run (struct svc *svc);  /* now, and at once: for simulations, which have nobody to answer */
void pass_init (struct svc *svc);
void pass_close (struct svc *svc);
/* Starts an idle job on these nodes, as a pass would: the hold is asked for, then it is launched.
 * Nothing is changed when it fails. err is not NULL. */
int pass_start (struct svc *svc, struct site_job *job, const struct allocation *allocation,
                struct err *err);

/* --- life.c ------------------------------------------------------------------------------- */

/* It ran, and the resource manager knows nothing of it: charged for nothing more than what was charged before. */
void life_vanished (struct svc *svc, struct site_job *job);
/* It runs since then: told by the resource manager, or by whoever started it there. */
void life_started (struct svc *svc, struct site_job *job, time_us started);
/* What the resource manager says of its end makes of it: an end, or another incarnation that waits. */
void life_ended (struct svc *svc, struct site_job *job, const struct rm_status *status);
/* Is a job whose node is lost run again? */
bool life_requeues_lost (const struct svc *svc, const struct site_job *job);
/* A part's nodes go from its reservation, if it is there, to the running job. ERR_CONFLICT: the job before it
 * is still there; see life_parts_settle. */
int life_part_occupy (struct svc *svc, struct site_job *job, time_us started, struct err *err);
/* Running parts that could not take their nodes at their start take them now. */
void life_parts_settle (struct svc *svc);
/* What the core knows of a job or its reservation goes, and so does the live record. */
void life_drop (struct svc *svc, struct site_job *job);
/* Has the core given it nodes? Not one that a restart found others on. */
bool life_has_nodes (const struct svc *svc, const struct site_job *job);
/* Back to the queue, until `until` at the earliest, or deferred. Reason set before. */
void life_requeue (struct svc *svc, struct site_job *job, time_us until, struct deferral deferral);
/* life_launch; what goes wrong is seen to: a failed start, or an end by its own fault. The job may be gone then. */
void life_launch_or_fail (struct svc *svc, struct site_job *job);
/* The bank took its time, or we were down: a job that is only being launched now may run into what was
 * promised to others meanwhile. Then its reason is set, and it is for life_requeue. */
bool life_too_late (struct svc *svc, struct site_job *job);
/* Ends a job that does not run: state, reason set before. Gives back its hold. */
int life_end_unstarted (struct svc *svc, struct site_job *job, enum store_job_state state,
                        struct err *err);
/* The same, where nothing will bring it up again in this life: what cannot be written stops the daemon and
 * is found after a restart. */
void life_end_surely (struct svc *svc, struct site_job *job, enum store_job_state state);
/* Ends whatever state it is in; a running one ends when the resource manager says so. */
int life_cancel (struct svc *svc, struct site_job *job, const char *code, const char *text,
                 struct err *err);

/* --- hold.c, life_hold.c ------------------------------------------------------------------ */

/* In a transaction: a fresh key, the packed request, the row; then call bank_link_hold with *out
 * (to be freed) after the commit. */
int life_hold_prepare (struct svc *svc, struct site_job *job, time_us expected_start,
                       struct store_hold *out, struct err *err);
/* Ends a transaction that went well so far (rc 0; else it is rolled back): a hold is asked for from now on. */
int life_hold_again (struct svc *svc, struct site_job *job, int rc, struct err *err);
/* In a transaction: the bank's hold is given back through the outbox, or when its answer comes. */
int life_hold_return (struct svc *svc, struct site_job *job, const char *why, struct err *err);
/* In a transaction: that one. */
int life_hold_release (struct svc *svc, uint64_t number, const char *hold_id, const char *why, struct err *err);
/* In a transaction: the answer comes to nothing, and what it granted goes back. */
int life_answer_over (struct svc *svc, const struct bank_answer *answer, struct err *err);
void life_on_answer (void *arg, const struct bank_answer *answer);

/* --- life_launch.c ------------------------------------------------------------------------ */

/* Hands a job to the resource manager: its hold is granted, or nobody charges for it. */
/* rm.h: mark. Of live jobs and of ended ones. */
void life_mark (const struct svc *svc, const struct store_job *rec, char out[RM_MARK_MAX]);
int life_launch (struct svc *svc, struct site_job *job, struct err *err);
/* Where CHECKPOINTHOOK and the job leave what they need. */
void life_checkpoint_dir (const struct svc *svc, const struct site_job *job, char *out, size_t cap);

/* --- rm_events.c -------------------------------------------------------------------------- */

/* on_event of every resource manager, of a svc. */
void rm_event_on (void *arg, const struct rm_event *event);
/* The pass is over: what has waited for that. */
void rm_events_release (struct svc *svc);

/* --- substitute.c ------------------------------------------------------------------------- */

/* The name of a node that is down among these; NULL: none is. */
const char *substitute_lost_node (struct svc *svc, const struct allocation *a);
/* Other nodes for those of a firm part that are down, durable when it returns true. Uses call_arena. */
bool substitute_nodes (struct site_part *part);

/* --- mirror.c ----------------------------------------------------------------------------- */

void mirror_settle (struct svc *svc); /* after each pass */

/* --- usage.c ------------------------------------------------------------------------------ */

/* Load and used memory of nodes, from what was measured: before a pass. */
void usage_nodes (struct svc *svc);
/* What the status of an ended job says; the core still has it as running. */
void usage_final (struct svc *svc, const struct site_job *job, const struct rm_status *status);

/* --- deferral.c --------------------------------------------------------------------------- */

extern const struct deferral deferral_none;

/* When it is tried again where DEFERTIME is 0: at the next poll, no later than the longest. */
time_us deferral_retry_at (const struct svc *svc, duration_us longest);

/* In a transaction: the count, and until when, or the batch hold. Reason set before. */
int deferral_write (struct svc *svc, struct site_job *job, struct deferral deferral,
                    struct err *err);
/* After the commit. */
void deferral_apply (struct svc *svc, struct site_job *job, struct deferral deferral);
void deferral_plan (struct svc *svc, const struct plan *plan);

/* --- lapse.c: who can never run any more is ended -------------------------------------------- */

void lapse_plan (struct svc *svc, const struct plan *plan);
/* Those who wait for what can never be, if svc.lapses. */
void lapse_depends (struct svc *svc);
/* Is it kept by one of these holds (enum job_hold) for the reason in its record? */
bool deferral_holds (const struct site_job *job, uint32_t holds);
void deferral_nodes_changed (struct svc *svc);

/* --- depends.c ---------------------------------------------------------------------------- */

/* Could it be done? ERR_NOT_FOUND, ERR_INVALID, ERR_CONFLICT, ERR_DENIED. */
int depends_check (struct svc *svc, const struct jobspec *spec, struct err *err);
/* In a transaction, after that. */
int depends_submit (struct svc *svc, struct site_job *job, const struct jobspec *spec,
                    struct err *err);
/* The transaction failed: nobody waits for it. */
void depends_taken_back (struct svc *svc, uint64_t number);
int depends_load (struct svc *svc, struct site_job *job, struct err *err);
/* The job goes. */
void depends_forget (struct svc *svc, struct site_job *job);
/* What is met goes; the core's hold follows. */
void depends_settle (struct svc *svc, struct site_job *job);
/* The job has started or ended: who waited for that? */
void depends_happened (struct svc *svc, uint64_t number);
/* "waits for alpha.3 (afterok)"; *never_out: one of them can never be. */
void depends_text (struct svc *svc, const struct site_job *job, char *out, size_t cap,
                   bool *never_out);

/* --- evict.c ------------------------------------------------------------------------------ */

/* A plan's decision: the running job makes room, as PREEMPTPOLICY says. Durable first; a restart in
 * between finishes it. Never a part. */
int life_preempt (struct svc *svc, struct site_job *job, struct err *err);
/* By an administrator's order; ERR_CONFLICT says why it cannot be done. */
int evict_requeue (struct svc *svc, struct site_job *job, const char *why, struct err *err);
int evict_suspend (struct svc *svc, struct site_job *job, const char *why, struct err *err);
/* A committed plan lets it go on. */
void evict_resume (struct svc *svc, struct site_job *job);
/* A job that we suspended was let go on by somebody at the resource manager: so be it, or it is suspended
 * again where its nodes have no room any more. */
void evict_resumed_there (struct svc *svc, struct site_job *job);
/* When it would have begun, had it never been suspended. */
time_us evict_effective_start (const struct site_job *job);
/* Jobs past their limit. */
void evict_violations (struct svc *svc, const struct plan *plan);
/* Jobs on nodes that are down. */
void evict_lost_nodes (struct svc *svc);
/* After a restart: a suspended job into the core (idle there until now); and what was being done to a
 * job that the resource manager has. */
int evict_restore (struct svc *svc, struct site_job *job, const struct allocation *allocation,
                   struct err *err);
int evict_recover (struct svc *svc, struct site_job *job, struct err *err);

/* --- coalloc.c ---------------------------------------------------------------------------- */

void coalloc_on_answer (struct svc *svc, struct site_part *part, const struct bank_answer *answer);
void coalloc_timer_arm (struct site_part *part);
/* After a restart: what was being prepared is dropped, leases and no-shows tick on. */
int coalloc_recover (struct svc *svc, struct store_part *rec, struct err *err);
void coalloc_prepare (void *self, struct rpccall *call, const ProtobufCMessage *request);
void coalloc_commit (void *self, struct rpccall *call, const ProtobufCMessage *request);
void coalloc_abort (void *self, struct rpccall *call, const ProtobufCMessage *request);
void coalloc_ready (void *self, struct rpccall *call, const ProtobufCMessage *request);
void coalloc_start (void *self, struct rpccall *call, const ProtobufCMessage *request);
void coalloc_release (void *self, struct rpccall *call, const ProtobufCMessage *request);
/* Writes the YES of a part as it is now into its record. Uses call_arena. */
void coalloc_answer_pack (struct site_part *part);

/* --- jobs.c ------------------------------------------------------------------------------- */

void jobs_query (void *self, struct rpccall *call, const ProtobufCMessage *request);
void jobs_submit (void *self, struct rpccall *call, const ProtobufCMessage *request);
void jobs_job (void *self, struct rpccall *call, const ProtobufCMessage *request);
void admin_hold_job (void *self, struct rpccall *call, const ProtobufCMessage *request); /* admin/change.c */
void jobs_cancel (void *self, struct rpccall *call, const ProtobufCMessage *request);
/* What the world is told of a job; strings in the arena. job NULL when it has ended. */
void jobs_info (struct svc *svc, const struct store_job *rec, struct site_job *job,
                struct arena *arena, Nui__Local__V1__JobInfo *out);
/* Of that only its files that are under way, or could not go. */
void jobs_files (struct svc *svc, const struct store_job *rec, const struct site_job *job,
                 struct arena *arena, Nui__Local__V1__JobInfo *out);
void jobs_reason (struct arena *arena, const char *code, const char *text,
                  Nui__Common__V1__Reason **out);
/* What this service knows better than the core why a job waits: put off or held for a failure, waits for
 * others. False: what the core says. */
/* Does a rule forbid it for good, as things stand, so that no start may be told? */
bool jobs_never (const struct site_job *job, const struct job_view *view);
bool jobs_own_reason (struct svc *svc, const struct site_job *job, const struct job_view *view,
                      struct arena *arena, Nui__Common__V1__Reason **out);
/* By site or grid id, live or ended; for a metascheduler (call may be NULL) among its own, since each
 * has a grid.1. */
int jobs_find (struct svc *svc, const struct rpccall *call, const char *job_id,
               const char *component, struct store_job *out, struct err *err);
enum { JOBS_OWNER = 1, JOBS_OPERATOR = 2, JOBS_META = 4 };
/* 0, or ERR_DENIED. */
int jobs_allowed (struct svc *svc, struct rpccall *call, const struct store_job *rec,
                  unsigned who, struct err *err);
/* A job on its way into the queue; uuid: where it came by msub, else NULL. */
struct jobs_wish {
    const Nui__Common__V1__Envelope *envelope;
    const char *grid_job_id; /* "" of this cluster alone */
    const char *meta;        /* whose it is then; NULL: nobody's */
    uint32_t attempt;
    const uint8_t *uuid;
    uint32_t holds; /* enum job_hold */
    duration_us contact; /* as in store_job */
    bool released;       /* the hold with which it came is over */
};
/* Into the store and the queue, or nothing has happened. */
int jobs_enter (struct svc *svc, const struct jobs_wish *wish, const struct jobspec *spec,
                struct site_job **out, struct err *err);
/* As an ordinary job, submitted now: the start, and why not at once. */
int jobs_estimate (struct svc *svc, const struct jobspec *spec, time_us now, struct slot *slot,
                   struct err *err);
/* The same, were all its nodes up and idle and nothing reserved: TIME_US_NONE is never. Copies the site. */
int jobs_estimate_bare (struct svc *svc, const struct jobspec *spec, time_us now, struct slot *slot,
                        struct err *err);
/* Fails with the status for err, logged when it is about trust. */
void jobs_refuse (struct svc *svc, struct rpccall *call, const struct err *err);

/* --- payqos.c ----------------------------------------------------------------------------- */

/* A hold was granted on an account that pays with another QoS: may the job have that here? */
bool payqos_refused (struct svc *svc, const struct site_job *job, const struct bank_answer *answer,
                     char *why, size_t cap);
/* In a transaction. qos "": its own, nothing happens. */
int payqos_take (struct svc *svc, struct site_job *job, const char *qos, struct err *err);
/* In a transaction: it waits again, with its own. */
int payqos_drop (struct svc *svc, struct site_job *job, struct err *err);
int payqos_restore (struct svc *svc, struct site_job *job, struct err *err);
/* After payqos_take was committed: the core's job, which is starting. */
void payqos_core (struct svc *svc, struct site_job *job);

/* --- native.c ----------------------------------------------------------------------------- */

/* New and changed jobs of the resource manager's own. */
void native_take (struct svc *svc, const struct rm_native *list, uint32_t count);
/* It runs and nobody here started it: said, and its nodes are taken from the plan. */
void native_started (struct svc *svc, struct site_job *job, const struct rm_event *event);
/* Where the resource manager put it, when that is not what was planned. */
void native_placed (struct svc *svc, struct site_job *job, const char *placement);
/* Its resource manager has suspended any job, or let it go on, by whomever. */
void native_suspended (struct svc *svc, struct site_job *job, bool on);
/* After a restart, before anything is decided. */
int native_restore (struct svc *svc, struct site_job *job, struct err *err);
/* Slurm takes a requeued job for submitted at that moment, by which it is known again after a restart: durable
 * before what ended is. */
void native_submit_follow (struct svc *svc, struct site_job *job, time_us submit);
void native_handed (struct svc *svc, struct site_job *job, const char *rm_id);
void native_unknown (struct svc *svc, struct site_job *job);
/* What an administrator or the owner set here is set there. */
void native_hold_push (struct svc *svc, struct site_job *job, uint32_t before, uint32_t after);

/* Up to when all ends at the resource manager are known, as it was kept at the last poll. */
time_us native_settled (struct svc *svc);

/* --- rmnodes.c ---------------------------------------------------------------------------- */

/* Floating licences of the resource manager and of NODECFG[GLOBAL], as GRES has them; malloc'ed. */
char *rmnodes_licences (struct svc *svc, const struct settings *settings);
/* Nodes as the resource manager has them, with what NODECFG says of them besides; all that are known
 * from before a restart (down) until it answers. malloc'ed; free with rmnodes_free. NULL, *count_out
 * 0: the configuration's nodes are all there are. */
struct nodeconf_node *rmnodes_list (struct svc *svc, const struct settings *settings,
                                    uint32_t *count_out);
void rmnodes_free (struct nodeconf_node *nodes, uint32_t count);
void rmnodes_remember (struct svc *svc); /* as they are now, for a restart */
void rmnodes_loads (struct svc *svc); /* its nodes' load and used memory, for the next pass */
enum node_state rmnodes_state (struct svc *svc, const char *name);
/* What the resource manager says of it, until its next event; NULL: nothing. */
const struct rm_node *rmnodes_told (struct svc *svc, const char *name);

/* --- output.c ----------------------------------------------------------------------------- */

void output_serve (void *self, struct rpccall *call, const ProtobufCMessage *request);
void output_draining (struct svc *svc);

/* --- ports.c ------------------------------------------------------------------------------ */

/* One of PORTRANGE that no live job has and that could be bound now; 0: none is left. */
uint32_t ports_choose (struct svc *svc);
void ports_mark (struct svc *svc, uint32_t port, bool used);

/* --- report.c ----------------------------------------------------------------------------- */

void report_fill (void *arg, Nui__Meta__V1__SiteReport *report);

#endif
