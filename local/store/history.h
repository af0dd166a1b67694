/* history: jobs that have ended, for good, and the sums over them.
 *
 * A row of the history is written in the transaction that ends the job, with everything that Maui's
 * workload trace says of it; the sums (by user, group, account, class, QoS, by size and length, and
 * over all) are brought up to date with it. So both survive whatever the job's end survives. Sums can
 * be begun anew (resetstats); the history stays until HISTORYTIME. */
#ifndef NUI_LOCAL_STORE_HISTORY_H
#define NUI_LOCAL_STORE_HISTORY_H

#include "local/store/local_store.h"
#include "proto/base/arena.h"

/* Strings are never NULL; "" is nothing. */
struct history_job {
    uint64_t sequence; /* given by history_add; grows with the moment of writing */
    uint64_t number;   /* of "alpha.17" */
    const char *grid_job_id, *name, *submitter;
    const char *user, *group, *account, *class_name, *qos_asked, *qos;
    enum store_job_state state;
    const char *reason_code;
    int32_t exit_code;
    uint32_t nodes, tasks, tasks_per_node, procs; /* asked for, all reqs together; 0: any */
    duration_us walltime;
    time_us submit, eligible; /* its queue time counts from eligible */
    time_us dispatch, start;  /* 0: it never ran */
    time_us end;
    time_us not_before;                           /* 0: at once */
    const char *features;                         /* "a,b" */
    int32_t task_procs, mem_mb, swap_mb, disk_mb; /* a task of the first req */
    uint32_t bypass, starts;
    bool backfilled, qos_met;
    duration_us cpu; /* processor time used; -1: not known */
    const char *partition, *hosts /* "a:b" */, *rm, *reservation;
};

/* In a transaction. The sequence is given here. */
int history_add (struct local_store *store, struct history_job *job, struct err *err);

struct history_filter {
    time_us from, until; /* ended within [from, until); until 0: no bound */
    const char *user, *group, *account, *class_name, *qos; /* NULL: any */
};
/* Up to limit rows with a sequence above after, in that order; *last_out is the last one's looked
 * at, *more_out whether there may be others. Strings hold during the callback. */
int history_read (struct local_store *store, const struct history_filter *filter, uint64_t after,
                  uint32_t limit, void (*fn) (void *arg, const struct history_job *job), void *arg,
                  uint64_t *last_out, bool *more_out, struct err *err);
/* The newest row of a job. ERR_NOT_FOUND. Strings go into the arena. */
int history_of_job (struct local_store *store, uint64_t number, struct arena *arena,
                    struct history_job *out, struct err *err);
int history_of_grid_job (struct local_store *store, const char *grid_job_id, struct arena *arena,
                         struct history_job *out, struct err *err);
/* In a transaction: at most limit rows of jobs that ended before; those not yet written to the
 * trace (sequence above kept_from) stay. *count_out: how many went. */
int history_purge (struct local_store *store, time_us before, uint64_t kept_from, uint32_t limit,
                   uint32_t *count_out, struct err *err);

/* --- sums --------------------------------------------------------------------------------- */

enum stats_kind { /* numbers are stored */
                  STATS_USER = 0,
                  STATS_GROUP = 1,
                  STATS_ACCOUNT = 2,
                  STATS_CLASS = 3,
                  STATS_QOS = 4,
                  STATS_TOTAL = 5,
                  STATS_GRID = 6, /* name: "4 7": processors up to 2^4, limits up to 2 min * 2^7 */
                  STATS_KINDS
};

/* Over jobs that ran. Processor time is in processor-microseconds. */
struct stats_sums {
    int64_t jobs, successful;
    int64_t ps_asked, ps_run, ps_used; /* limit, run time, processor time used */
    int64_t queue_us, queue_max_us;
    int64_t procs;
    int64_t xf_ppm, xf_max_ppm; /* sum of expansion factors, largest */
    int64_t xf_procs_ppm;       /* weighted by processors */
    int64_t xf_ps_milli;        /* factor in thousandths times processor-seconds run */
    int64_t bypass, bypass_max;
    int64_t accuracy_ppm; /* sum of run time / limit */
    int64_t backfilled, ps_backfilled;
    int64_t qos_met;
    int64_t preempted, ps_lost; /* incarnations that were sent back to the queue */
};

void stats_sums_add (struct stats_sums *sum, const struct stats_sums *more);
/* What one job adds. */
void stats_of_job (const struct history_job *job, struct stats_sums *out);
/* Of STATS_GRID: row and column of a job; both < STATS_GRID_MAX. */
enum { STATS_GRID_MAX = 32 };
void stats_grid_place (uint32_t procs, duration_us walltime, uint32_t *row_out,
                       uint32_t *column_out);

/* In a transaction: adds to the sums of that name. */
int stats_add (struct local_store *store, enum stats_kind kind, const char *name,
               const struct stats_sums *more, struct err *err);
int stats_read (struct local_store *store, enum stats_kind kind,
                void (*fn) (void *arg, const char *name, const struct stats_sums *sums), void *arg,
                struct err *err);
/* In a transaction: all begin anew. */
int stats_reset (struct local_store *store, struct err *err);

/* --- what else is kept -------------------------------------------------------------------- */

struct audit_row {
    uint64_t sequence;
    time_us at;
    const char *who, *what;
};
/* Newest first: up to limit rows below `before` (0: from the newest on) and not older than from,
 * with this who ("" all) and this text somewhere in what ("" all). */
int audit_read (struct local_store *store, uint64_t before, time_us from, time_us until,
                const char *who, const char *what, uint32_t limit,
                void (*fn) (void *arg, const struct audit_row *row), void *arg, struct err *err);

/* How many messages wait in a box, and since when (0: none wait). */
int local_store_outbox_waiting (struct local_store *store, enum store_outbox box,
                                uint64_t *count_out, time_us *oldest_out, struct err *err);

#endif
