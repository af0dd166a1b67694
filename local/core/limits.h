/* limits: how much at one moment: MAXJOB … MINPROC on users, groups, accounts,
 * classes, QoS and the system, soft and hard, DEFAULTs, QoS overrides, cross limits of any pair,
 * idle limits, limits per job.
 *
 * Pure. Keeps usage counters of active and of idle jobs, changed job by job; a check compares
 * usage + job with each limit that applies and costs O(limits set for the job's credentials), a few
 * nanoseconds where none is set. Sums are exact integers: removing what was added leaves zero.
 *
 * Units: MAXPS and MAXWC count what is left of the jobs' limits (processor-seconds, seconds), PE in
 * millionths, memory in MB. */
#ifndef NUI_LOCAL_CORE_LIMITS_H
#define NUI_LOCAL_CORE_LIMITS_H

#include "local/core/policy.h"

struct limits_job {
    uint32_t cred[CRED_KINDS]; /* CRED_NONE where absent */
    uint32_t nodes;
    uint32_t procs;
    int64_t mem_mb;
    int64_t pe_micro;
    int64_t wclimit_s;
};

enum limit_scope { LIMIT_SCOPE_ACTIVE, LIMIT_SCOPE_IDLE, LIMIT_SCOPE_JOB /* SYSTEMMAX… */ };

/* Machine-readable; limits_violation_text makes the sentence. */
struct limits_violation {
    enum limit_scope scope;
    enum limit_level level;
    enum limit_kind limit;
    uint32_t object; /* enum cred_kind, LIMIT_OBJECT_SYSTEM or LIMIT_OBJECT_PARTITION */
    uint32_t id;     /* of a partition: its number - 1 */
    bool cross;      /* then for the other credential as well */
    enum cred_kind other_kind;
    uint32_t other_id;
    bool by_override; /* the value is the QoS's O… */
    int64_t value;    /* the limit */
    int64_t usage;    /* without the job */
    int64_t request;  /* of the job */
};

struct limits;

/* The policy must outlive it. Never NULL. After a reload: create anew and add all jobs again. */
struct limits *limits_create (const struct policy *policy);
void limits_destroy (struct limits *limits); /* NULL is a no-op */
void limits_clear (struct limits *limits);   /* no job active or idle; keeps the memory */

/* end_s: when its limit ends, seconds since the epoch; the same when removed. For a job whose end
 * moves: remove with the old, add with the new. */
void limits_active_add (struct limits *limits, const struct limits_job *job, int64_t end_s);
void limits_active_remove (struct limits *limits, const struct limits_job *job, int64_t end_s);
void limits_idle_add (struct limits *limits, const struct limits_job *job);
void limits_idle_remove (struct limits *limits, const struct limits_job *job);
void limits_idle_clear (struct limits *limits);

/* May the job start now? 0, or ERR_LIMIT with *violation (may be NULL) of the first limit it would
 * break: users, groups, accounts, classes, QoS, system, then cross limits. */
int limits_active_check (const struct limits *limits, const struct limits_job *job,
                         enum limit_level level, int64_t now_s, struct limits_violation *violation);
/* May it ever start? ERR_LIMIT where it breaks a hard limit though no other job is active. */
int limits_never_check (const struct limits *limits, const struct limits_job *job,
                        struct limits_violation *violation);
/* limits_active_check of many jobs, none of which becomes active in between: ok[i] is 1 or 0. What each
 * credential has left is found once, so that a job costs a few compares. */
void limits_active_check_many (const struct limits *limits, const struct limits_job *job,
                               uint32_t count, enum limit_level level, int64_t now_s, uint8_t *ok);
/* May the job join the eligible idle queue? Fill it in priority order. */
int limits_idle_check (const struct limits *limits, const struct limits_job *job,
                       struct limits_violation *violation);
/* Limits of the job alone: SYSTEMMAXPROCPERJOB, …JOBWALLTIME, …PROCSECONDPERJOB; then what whose it is says,
 * MAXPROCPERJOB and its kin. */
int limits_job_check (const struct limits *limits, const struct limits_job *job,
                      struct limits_violation *violation);

/* Whether any limit could ever concern a job of these credentials (callers may skip checks, and may
 * group jobs that no limit tells apart). */
bool limits_any_active (const struct limits *limits, const uint32_t cred[CRED_KINDS]);
bool limits_any_idle (const struct limits *limits, const uint32_t cred[CRED_KINDS]);
bool limits_any_job (const struct limits *limits, const uint32_t cred[CRED_KINDS]);

/* What a job asks of a limit; of PS and WC, its whole limit. */
int64_t limits_request (const struct limits_job *job, enum limit_kind limit);

/* What if others had ended, or had started too? Between open and close limits_active_check of this
 * job, and only of it, sees the usage changed by what was supposed; nothing else may be asked or
 * changed. Costs a few compares per job supposed, and 16 rows of usage to open and close. */
enum { LIMITS_ROWS = LIMIT_OBJECTS + CRED_KINDS * (CRED_KINDS - 1) / 2 };
struct limits_suppose {
    const struct limits_job *job;
    uint32_t count;
    struct {
        void *usage;
        uint8_t first, second; /* credential kinds; CRED_KINDS: none */
        int64_t saved[LIMIT_KINDS];
    } row[LIMITS_ROWS];
};
void limits_suppose_open (struct limits *limits, struct limits_suppose *s,
                          const struct limits_job *job);
/* So much less of one thing by jobs of the job's own credential of this kind. */
void limits_suppose_less (struct limits_suppose *s, enum cred_kind kind, enum limit_kind limit,
                          int64_t amount);
/* sign 1: it is active as well, with its limit ending then; -1: it is no longer. True: it counts
 * against something that the job counts against. */
bool limits_suppose (struct limits_suppose *s, const struct limits_job *other, int64_t end_s,
                     int64_t sign);
void limits_suppose_close (struct limits_suppose *s);

/* Usage of one object now, as a limit of this kind counts it. */
int64_t limits_active_usage (const struct limits *limits, uint32_t object, uint32_t id,
                             enum limit_kind limit, int64_t now_s);

/* As people count it: "20"; processor equivalents, which are kept in millionths, "2.50". */
enum { LIMITS_AMOUNT_MAX = 48 };
const char *limits_amount_text (enum limit_kind limit, int64_t value, char buf[LIMITS_AMOUNT_MAX]);

/* "job J violates active HARD MAXPROC limit of 20 for user bob  (R: 4, U: 18)"; cut to fit. */
char *limits_violation_text (const struct limits_violation *violation, const char *job_name,
                             const struct cred_names *names, char *buf, size_t cap);
enum { LIMITS_TEXT_MAX = 256 };

#endif
