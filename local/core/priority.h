/* priority: what a job is worth now (Jackson, Snell & Clement 2001, section 5).
 *
 *   P = sum over components c of W_c * min (CAP_c, sum over subcomponents s of W_s * min (CAP_s,
 * F_s))
 *
 * Pure. A struct priority holds a policy prepared for speed and the fairshare factors of this
 * moment; make it once per policy, feed it factors once per pass. What does not change while a job
 * waits (CRED and RES) is one number per job, kept by the caller: priority_static. The whole is
 * then priority_start: about 20 ns a job, no allocation, exactly the sum that priority_explain
 * itemises.
 *
 * Order of jobs: higher priority, then earlier submission, then smaller number. */
#ifndef NUI_LOCAL_CORE_PRIORITY_H
#define NUI_LOCAL_CORE_PRIORITY_H

#include "local/core/policy.h"

#define PRIORITY_MAX                                                                               \
    INT64_C (1000000000) /* a job's own; an absolute system priority P is MAX + P */

enum priority_job_flag {
    PRIORITY_SYSTEM_ABSOLUTE = 1 << 0, /* setspri P */
    PRIORITY_SYSTEM_RELATIVE = 1 << 1, /* setspri -r P */
    PRIORITY_SPVIOLATION = 1 << 2,     /* violates a soft limit now */
};

/* What priority needs to know of a job. Absent credentials are CRED_NONE. */
struct priority_job {
    uint32_t cred[CRED_KINDS];
    uint32_t flags;
    uint32_t nodes;
    uint32_t procs;
    uint32_t bypass;
    int64_t mem_mb; /* of all tasks together, as swap and disk */
    int64_t swap_mb;
    int64_t disk_mb;
    double pe;
    int64_t wclimit_s;
    int64_t system_priority; /* with one of the first two flags */
    time_us eff_queue_since; /* see priority_accrue */
};

/* PE = max (procs/Tprocs, mem/Tmem, disk/Tdisk, swap/Tswap) * Tprocs; a total of 0 does not count.
 */
struct priority_totals {
    int64_t procs, mem_mb, swap_mb, disk_mb;
};
double priority_pe (int64_t procs, int64_t mem_mb, int64_t swap_mb, int64_t disk_mb,
                    const struct priority_totals *totals);

struct priority;

/* The policy must outlive it. Never NULL. */
struct priority *priority_create (const struct policy *policy);
void priority_destroy (struct priority *prio); /* NULL is a no-op */

/* Fairshare factors of a kind, by credential number; those beyond count have other_factor (the
 * factor of a credential that used nothing and has DEFAULT's target). Copied. Until told: 0. */
void priority_fairshare_set (struct priority *prio, enum cred_kind kind, const double *factor,
                             uint32_t count, double other_factor);

/* What each user's running jobs are now, for UPROC and UJOB: by credential number; those beyond count
 * have none. Copied. Until told: 0. True: some user's is another than before, which
 * priority_use_moved then tells. */
struct priority_use {
    int64_t procs;
    int64_t jobs;
};
bool priority_use_set (struct priority *prio, const struct priority_use *use, uint32_t count);
bool priority_use_moved (const struct priority *prio, uint32_t user);

/* CRED and RES together; changes only with the policy, the job's request, the cluster's totals or, where
 * priority_use_weighs, what its user runs. */
bool priority_use_weighs (const struct policy *policy);
double priority_static (const struct priority *prio, const struct priority_job *job);

/* The priority of an idle job, given its priority_static. */
int64_t priority_start (const struct priority *prio, const struct priority_job *job,
                        double static_value, time_us now);
/* The same for many: out[i] for job[i], static_value[i]. */
void priority_start_many (const struct priority *prio, const struct priority_job *job,
                          const double *static_value, uint32_t count, time_us now, int64_t *out);

/* A negative priority under REJECTNEGPRIOJOBS: the job is not scheduled. */
bool priority_rejected (const struct priority *prio, int64_t priority);

/* An active job as preemption sees it: priority at start, margin, and what it used. */
struct priority_usage {
    int64_t start_priority;
    int64_t preempt_margin;
    uint32_t procs;
    int64_t used_s;
    int64_t wclimit_s;
};
int64_t priority_run (const struct priority *prio, const struct priority_usage *usage);

/* For `diagnose -p` and checkjob: every factor, and what each contributes after weights and caps.
 */
struct priority_explained {
    double factor[PRIO_SUBS];          /* F_s, before its cap */
    double sub[PRIO_SUBS];             /* W_s * min (CAP_s, F_s) */
    double component[PRIO_COMPONENTS]; /* W_c * min (CAP_c, sum); USAGE is for active jobs: 0 */
    double sum;                        /* before rounding, bounds and system priority */
    int64_t priority;                  /* == priority_start */
};
void priority_explain (const struct priority *prio, const struct priority_job *job, time_us now,
                       struct priority_explained *out);

/* The weight in force for a job of this QoS (QOSCFG QTWEIGHT and XFWEIGHT add to two of them). */
double priority_sub_weight (const struct priority *prio, enum prio_sub sub, uint32_t qos);

/* XFactor by the guide's formula: 1 + queued / max (XFMINWCLIMIT, limit). */
double priority_xfactor (const struct policy *policy, int64_t queued_us, int64_t wclimit_s);

/* --- effective queue time (JOBPRIOACCRUALPOLICY) ------------------------------------------ */

/* Why a job may not accrue; what the caller found true this pass. A start date in the future is
 * none of these. */
enum accrual_block {
    ACCRUAL_BLOCK_LIMIT_IDLE = 1 << 0,   /* violates a HARD idle limit */
    ACCRUAL_BLOCK_LIMIT_ACTIVE = 1 << 1, /* violates a HARD active limit */
    ACCRUAL_BLOCK_LIMIT_SYSTEM = 1 << 2, /* violates a system limit */
    ACCRUAL_BLOCK_HOLD = 1 << 3,
    ACCRUAL_BLOCK_DEPENDENCY = 1 << 4,
    ACCRUAL_BLOCK_CLASS = 1 << 5, /* its class is closed */
    ACCRUAL_BLOCK_FSCAP = 1 << 6, /* over a fairshare cap */
};

/* The moment from which the job's queue time counts, after this pass. since is what it was (submit
 * time at first). A job that may not accrue starts again from now. */
time_us priority_accrue (enum job_prio_accrual policy, time_us submit, time_us since,
                         uint32_t blocks, time_us now);

#endif
