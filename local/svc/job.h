/* job: live jobs and co-allocated parts, in memory and as the core has them (svc_jobs.c). A record is in the hub's hashes
 * from svc_job_add on, until svc_job_forget, which tells the rooms (job_leaves). */
#ifndef NUI_LOCAL_SVC_JOB_H
#define NUI_LOCAL_SVC_JOB_H

#include "local/core/query.h"
#include "local/svc/svc_i.h"
#include "proto/job/depend.h"

enum { PART_WAITERS_MAX = 16 };

struct jobspec;

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
    time_us not_before;               /* TIME_US_NONE: at once */
    uint32_t core_flags;              /* enum job_flag */
    uint32_t attrs;                   /* JOBATTR_… of its QoS and its flags */
    time_us deadline;                 /* 0: none */
    struct site_depend *depends;      /* that are not met; owned */
    bool in_cluster;                  /* the core knows it as a job */
    struct site_part *part;           /* NULL: ordinary */
    char told_reason[STORE_NAME_MAX]; /* the code of the last event */
    time_us dispatched;     /* when it was chosen to start; 0: not known (before a restart) */
    struct store_rm_job rm; /* what the resource manager calls it; rm_id "": nothing yet */
    bool suspended;         /* there, by somebody else */
    time_us suspended_since;
    duration_us
        run_from; /* when it began, by the clock that never steps; its run may be suspended since (rec.halted) */
    time_us taken;          /* when the resource manager told of it; 0: before a restart */
    int64_t memory_used_mb; /* by its processes, as last measured */
    int64_t memory_most_mb; /* … in this run, since this daemon has looked */
    time_us charge_at;      /* its next partial charge; 0: not known: charge.c */
    duration_us cpu_used;   /* by its processes, as last measured; 0: not known */
    time_us
        exceeds_since[RESOURCE_LIMITS]; /* above what it asked for; 0: it is not (job/exceed.c) */
    bool exceeds_told;
    bool payqos; /* it runs with another QoS than own_qos: payqos.c */
    uint32_t own_qos;
    bool stages_out;             /* files are taken away after it: stageout.h */
    bool reserves;               /* of a co-reservation: no process is started for it */
    bool stages;                 /* it needs files before it starts: staging.h */
    struct staging_in *stage_in; /* those that it waits for, or has and was not launched with */
    struct site_job *stage_next; /* who wants them, too */
    uint8_t (*input)[32];        /* SHA-256 of what was sent beside it: files/inputs.c */
    uint32_t input_count;
    time_us data_at;   /* they are expected then; 0: nothing is awaited */
    bool batch_pushed; /* a batch hold of ours stands there as an administrator's */
    UT_hash_handle hh; /* by rec.number */
};

/* A co-allocated part that is preparing, prepared or firm. */
struct site_part {
    struct svc *svc;
    struct store_part rec;
    struct site_job *job;
    struct event *timer; /* lease end; after COMMIT: no-show; while preparing: bank patience */
    struct rpccall *waiter[PART_WAITERS_MAX]; /* PREPAREs without an answer yet */
    uint32_t waiter_count;
    bool rsv;                /* the core has its reservation */
    uint64_t whose, instead; /* as the core has them (rsv_spec), coalloc/instead.c */
    UT_hash_handle hh;       /* by rec.job */
};

/* A job as the store has it becomes a live one, waiting or running; the resource manager is not asked.
 * The record is taken over. */
int svc_job_recover (void *svc, struct store_job *rec, struct err *err);
/* A record with its needs, in the hash; the part is attached by the caller. */
struct site_job *svc_job_add (struct svc *svc, const struct store_job *rec,
                              const struct jobspec *spec);
void svc_job_forget (struct svc *svc, struct site_job *job);
/* How long it has its nodes at most. */
duration_us svc_job_length (const struct svc *svc, const struct site_job *job);
struct site_part *svc_part_add (struct svc *svc, const struct store_part *rec,
                                struct site_job *job);
void svc_part_forget (struct svc *svc, struct site_part *part);
/* How long a part occupies its nodes: its limit and the time a late START may take. */
duration_us svc_part_duration (const struct svc *svc, duration_us walltime);
/* Of the co-allocation `transaction`, which this metascheduler may speak for and whose parts here are all firm: its number in
 * the core (site_part.whose); 0: there is none, or not for this job (grid_job_id NULL: not looked at). */
uint64_t instead_of (struct svc *svc, const char *caller, const ProtobufCBinaryData *transaction,
                     const char *grid_job_id);
/* Was this very job signed as what is kept under that number? */
int svc_job_signed (struct svc *svc, uint64_t number, const Nui__Common__V1__Envelope *envelope,
                    bool *same_out, struct err *err);
int svc_cluster_submit (struct svc *svc, struct site_job *job, struct err *err);
/* What the job needs has changed while it waits. */
int svc_cluster_modify (struct svc *svc, struct site_job *job, struct err *err);
/* And what it may do by it; the core does not hear of it. */
void svc_job_qos_set (struct svc *svc, struct site_job *job, uint32_t qos);
/* A job, and one that is only asked about, as the ACLs of reservations see them. */
struct who svc_who (struct svc *svc, const struct site_job *job);
/* Where a job as it is could start, from when until when; queue: behind what is promised to others. *who_out, to which the
 * question points, must outlive it. */
struct query svc_query_of (struct svc *svc, const struct site_job *job, time_us from, time_us until,
                           bool queue, struct who *who_out);
/* The reservation that a job has to run in: what it asks for, else what its QoS says (USERESERVED). */
struct rsv_id svc_reservation_of (struct svc *svc, struct rsv_id asked, uint32_t qos);
/* The number by which jobs ask for a reservation of this name, whether it exists or not. */
struct rsv_id resv_named (struct svc *svc, const char *name);

/* --- ports.c --- */

/* One of PORTRANGE that no live job has and that could be bound now; 0: none is left. */
uint32_t ports_choose (struct svc *svc);
void ports_mark (struct svc *svc, uint32_t port, bool used);

#endif
