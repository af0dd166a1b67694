/* memory: what the site remembers of its work, and tells of it (local/store/history.h has the sums over jobs).
 *
 *   stats.c     time of nodes and system, added up from pass to pass
 *   history.c   a job's end goes into the history and the sums
 *   statdir.c   the history as Maui's workload trace, a file a day
 *   purge.c     ended jobs are forgotten after JOBPURGETIME, their history after HISTORYTIME
 *   fairshare.c recorded usage, by names
 *   usage.c     measured use of processors and memory, from the resource manager to the core
 *   feedback.c  FEEDBACKPROGRAM hears of each job that ran
 *   metrics.c   what the site tells Prometheus
 *   notify.c    what an administrator should hear of at once
 *
 * All of it listens (svc_i.h): nothing that decides about a job calls this room but to have time added up before nodes or
 * jobs change. Time of nodes is saved every RMPOLLINTERVAL: a kill -9 loses at most that. Sums over jobs lose nothing. */
#ifndef NUI_LOCAL_SVC_MEMORY_H
#define NUI_LOCAL_SVC_MEMORY_H

#include "local/store/history.h"
#include "local/svc/svc_i.h"
#include "proto/base/strbuf.h"

/* --- stats.c ------------------------------------------------------------------------------ */

struct stats_node {
    int64_t total_us, up_us, busy_us; /* busy: at least one processor dedicated */
    time_us since;                    /* seen as it is from then on, by this process; 0: not yet */
    uint8_t state, load;              /* … enum node_state; idle, with room, full */
};

struct stats {
    time_us since;                      /* of these sums: the first start, or the last resetstats */
    time_us started;                    /* this process */
    time_us at;                         /* everything is added up to here; 0: not yet */
    int64_t available_ps, dedicated_ps; /* processor-microseconds of nodes that were up */
    int64_t node_up_us, node_busy_us;
    int64_t backlog_us, backlog_ps; /* sampled each poll: backlog_ps processor-seconds times us */
    int32_t least_ppm;              /* lowest share of processors dedicated in a pass; -1: none */
    uint64_t least_pass;
    struct stats_node *node; /* [node id] */
    uint32_t node_count;
};

/* Adds up to now; before whatever changes nodes, and in each pass. */
void stats_advance (struct svc *svc, time_us now);
/* Before a job takes or leaves its processors outside of a pass: the same, but not more often than
 * ten times a second, since it looks at every node. */
void stats_settle (struct svc *svc);
/* In a transaction of its own with the audit line `what` of `who`: everything begins anew. */
int stats_begin_anew (struct svc *svc, const char *who, const char *what, struct err *err);
/* Processor-seconds that waiting jobs ask for. */
int64_t stats_backlog_ps (struct svc *svc);

/* --- statdir.c ---------------------------------------------------------------------------- */

void statdir_open (struct svc *svc);
void statdir_wake (struct svc *svc); /* a job has ended: soon */
/* Rows up to here are in the trace, or are not wanted there. */
void statdir_path (const struct svc *svc, char *out, size_t cap); /* the folder */
uint64_t statdir_written (struct svc *svc);

/* --- fairshare.c -------------------------------------------------------------------------- */

void fairshare_file_save (struct svc *svc); /* in a transaction of its own; a failure is logged */
void fairshare_file_load (
    struct svc *svc); /* a missing or unreadable record is logged, not fatal */

/* --- notify.c ----------------------------------------------------------------------------- */

/* The bank's history is not, or is again, the one that was kept (local/link/anchors.h). */
void notify_history (struct svc *svc, bool rewritten);
void notify_clock (struct svc *svc, bool differs); /* the bank's */

/* --- usage.c --- */

/* Load and used memory of nodes, from what was measured: before a pass, whose arena it uses. */
void usage_nodes (struct svc *svc, struct arena *arena);
/* What the status of an ended job says; the core still has it as running. */
void usage_final (struct svc *svc, const struct site_job *job, const struct rm_status *status);

#endif
