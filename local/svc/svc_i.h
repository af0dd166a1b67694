/* svc_i: the hub: the service as all its rooms see it, what they may listen for, and what they stand on (hub.c, clock.c).
 *
 * Each room's header says what the room is: job.h and nodes.h (live jobs, parts and nodes, in memory and in the core),
 * pass.h, job/ (jobspec.h, life.h, jobs.h, charge.h), coalloc/, files/, native/, resv/, grid/, modes/, memory/,
 * forecast/, admin/. What a room keeps of its own is opaque here. */
#ifndef NUI_LOCAL_SVC_SVC_I_H
#define NUI_LOCAL_SVC_SVC_I_H

#include <sys/utsname.h>
#include <uthash.h>

#include "local/conf/place.h"
#include "local/core/cluster.h"
#include "local/core/plan.h"
#include "local/link/anchors.h"
#include "local/link/bank_clock.h"
#include "local/link/bank_link.h"
#include "local/link/gridmap.h"
#include "local/link/meta_link.h"
#include "local/rm/rm.h"
#include "local/store/local_store.h"
#include "local/svc/schedule.h"
#include "local/svc/svc.h"
#include "proto/nui/v1/local.pb-c.h"

enum { SITE_ID_MAX = 96 }; /* "alpha.17" */

/* A live job, a co-allocated part of one, a node; a signed job as it was read. */
struct site_job; /* job.h */
struct site_part;
struct site_node; /* nodes.h */
struct jobspec;   /* job/jobspec.h */

struct svc {
    const struct svc_listener *const *listeners; /* to the first NULL */
    struct daemon *daemon;
    struct event_base *base;
    struct log *log;
    const struct settings *settings;
    struct cred_names *names;
    struct strtab *features;
    struct strtab *rsv_names;         /* that jobs or reservations have, or had */
    struct site_rsv *rsvs;            /* hash by number: resv.h */
    struct standing *standing;        /* what SRCFG asks for */
    struct resv_idle *idles;          /* hash: what reservations keep idle at somebody's expense */
    char rsv_name[96];                /* of one of those, until the next is asked for */
    struct svc_stray *strays;         /* hash by key: job/stray.c */
    struct grid_number *grid_numbers; /* hash by metascheduler: grid/grid.h */
    struct place place;
    char site[STORE_NAME_MAX];
    char server[160]; /* host:port told to others */
    char host[128];   /* its host part: the default address of nodes */
    char boot_id[40];
    struct utsname kernel; /* of this machine, which the embedded runner's nodes are */
    struct local_store *store;
    struct rm rm;
    struct gridmap *gridmap;
    struct bank_link *bank;  /* NULL: nothing is charged (no BANK; not under NORMAL) */
    struct anchors *anchors; /* with bank */
    struct bank_clock *bank_clock;
    struct meta_link *meta; /* NULL: of no grid */
    struct cluster *cluster;
    struct site_node *nodes;       /* hash */
    struct site_node **node_by_id; /* [node id] */
    uint32_t node_count;
    bool node_types;               /* some node has one */
    struct site_job *jobs;         /* hash by number */
    struct svc_awaited *awaited;   /* whom they wait for (depends.c); goes with them */
    bool lapses;                   /* somebody waits for what can never be: lapse.c */
    struct site_part *parts;       /* hash by job number */
    struct filewatch *watch;       /* of files that others write */
    struct output_stream *outputs; /* files/output.c */
    uint8_t port_used[65536 / 8];  /* a bit for each port of a live job */
    struct schedule schedule;
    struct simulation *sim;         /* SIMULATION's; NULL in the other modes */
    time_us simulated_now;          /* its moment */
    struct follow *follow;          /* of TEST with PRODUCTION; else NULL */
    struct mode *mode;              /* TEST's and INTERACTIVE's; NULL in the others */
    struct checkpoint *checkpoints; /* hooks at work */
    char job_dir[4096];             /* JOBDIR */
    struct staging *staging;        /* NULL: nothing is moved in this mode */
    struct stageout *stageouts;     /* hash: files of ended jobs on their way out */
    struct readings *readings;      /* NULL until the first: files/fetch.c */
    struct inputs *inputs;          /* files/inputs.c; NULL: none are taken in this mode */
    struct event *resume_event;     /* schedctl -r TIME; NULL until the first */
    struct usage *usage;            /* memory/usage.c */
    struct passing *passing;        /* pass.c */
    struct rm_waiting *waiting; /* what the resource manager said during a pass: native/events.c */
    struct event *pass_event;   /* the next pass */
    time_us pass_at;            /* the moment of the last one */
    duration_us pass_took;      /* how long it took, without what was done meanwhile */
    duration_us pass_gap;       /* how long after that the next one may be */
    bool pass_under_way;        /* it is being made, slice by slice */
    bool pass_wanted;           /* what came meanwhile calls for another one */
    struct arena *call_arena;   /* reset by each handler that uses it */
    struct arena *report_arena;
    struct stats *stats;
    struct forecast *forecast; /* start-time estimates */
    struct statdir *statdir;
    struct notify *notify;
    struct feedback *feedback;
    struct metrics *metrics;
    struct contact *contact;      /* NULL: no metascheduler */
    struct named *named;          /* likewise: grid/named.c */
    struct purge *purge;          /* NULL until the first poll */
    duration_us fairshare_put_at; /* monotonic */
    bool closing;
};

/* --- what rooms listen for ---------------------------------------------------------------- */

/* How a job's run comes to its end. */
struct job_end {
    enum {
        JOB_NEVER_RAN,
        JOB_RAN,
        JOB_RUNS_AGAIN
    } how;           /* the last: back to the queue, as another incarnation */
    duration_us cpu; /* of its processes; -1: not known */
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
    void (*polled) (struct svc *svc); /* every RMPOLLINTERVAL, before the pass */
    void (*rm_unknown) (struct svc *svc,
                        const struct rm_event *event); /* of a job that there is not */
    void (*pass_begins) (struct svc *svc);
    void (*pass_done) (struct svc *svc); /* a pass of svc->pass_at has been acted on */
    void (*job_entered) (struct svc *svc,
                         struct site_job *job); /* into the core's queue, also after a restart */
    void (*job_chosen) (struct svc *svc, struct site_job *job, time_us now); /* to start, durably */
    void (*job_launched) (struct svc *svc,
                          struct site_job *job); /* the resource manager has taken it */
    void (*job_started) (struct svc *svc, struct site_job *job);
    void (*job_requeued) (struct svc *svc, struct site_job *job);
    void (*job_measured) (struct svc *svc, struct site_job *job); /* what it uses is known anew */
    void (*job_exceeds) (struct svc *svc, struct site_job *job,
                         const char *text); /* more than it asked for: RESOURCELIMITPOLICY */
    /* In a transaction: its row was written, and metaschedulers are to hear of it. */
    int (*job_told) (struct svc *svc, struct site_job *job, struct err *err);
    /* In the transaction of its end: state, start and end are set, the core still knows it. */
    int (*job_ends) (struct svc *svc, struct site_job *job, const struct job_end *end,
                     struct err *err);
    void (*job_ended) (struct svc *svc, uint64_t number); /* after that: it is not there any more */
    void (*job_leaves) (struct svc *svc,
                        struct site_job *job); /* the live record goes, for whatever reason */
    /* of a hold: that it came, or did not in time */
    void (*bank_heard) (struct svc *svc, bool answers);
    void (*stop) (struct svc *svc);  /* the daemon ends: jobs, links and the resource manager are
                                          still there … */
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

extern const struct svc_listener charge_listener, contact_listener, deferral_listener,
    evict_listener, exceed_listener, fairshare_listener, feedback_listener, fetch_listener,
    follow_listener, forecast_listener, forecast_record_listener, history_listener, inputs_listener,
    job_info_listener, links_listener, metrics_listener, mirror_listener, mode_listener,
    native_listener, notify_listener, output_listener, purge_listener, replay_listener,
    stray_listener, resv_charge_listener, resv_listener, rm_events_listener, staging_listener,
    stageout_listener, statdir_listener, stats_listener, usage_listener;

/* --- what rooms stand on ------------------------------------------------------------------ */

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
/* The moment that the schedule counts from: the wall clock, or a simulation's. Everything here asks
 * this and not clock_now_us, except for what belongs to the real world: signatures, the audit log. */
time_us svc_now (const struct svc *svc);
/* Before time is reckoned with in earnest: a clock that was set back takes the schedule with it. */
void svc_clock_settle (struct svc *svc);

#endif
