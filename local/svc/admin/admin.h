/* admin: Maui's commands over RPC: nui.local.v1.Admin and Stats.
 *
 *   service.c   the methods of Admin; profile.c: those of Stats
 *   find.c      a job by name, and whether the caller may see or change it
 *   queue.c     the queue in pieces, so that a long one does not hold the loop; stream.c: an answer in pieces
 *   job.c       one job: everything about it, why it waits; cancelling. ended.c: out of the history
 *   when.c      backfill windows, start times
 *   node.c      nodes, reservations; resv.c: reservations made and released; standing.c: what SRCFG asks for
 *   diag.c      priorities itemised, fairshare, credentials; config.c: the policy in force
 *   change.c    holds, priorities, a start by hand; control.c: running jobs requeued, suspended, resumed
 *   modify.c    what else may be changed of jobs and nodes; parameters
 *   submit.c    jobs for this cluster alone; sched.c: schedctl
 *   stats.c     sums by credential, node, size; the whole system; beginning anew
 *   profile.c   reports over the history and the audit log, in pieces; runs.c: what the bank was told of each run */
#ifndef NUI_LOCAL_SVC_ADMIN_ADMIN_H
#define NUI_LOCAL_SVC_ADMIN_ADMIN_H

#include "local/store/history.h"
#include "local/svc/caller.h"
#include "proto/nui/v1/admin.pb-c.h"
#include "proto/nui/v1/stats.pb-c.h"

/* Adds the service to the daemon's server. */
int admin_serve (struct svc *svc, struct err *err);

/* A job that the caller may see (level INFO, or its own) or change (level JOBS, or its own). id: a
 * number, the site's id or the grid's. *live_out is NULL when it has ended; *rec_out is to be freed
 * with store_job_free either way when 0 is returned. */
int admin_job (struct svc *svc, const struct admin_caller *caller, const char *id,
               enum admin_level level, struct store_job *rec_out, struct site_job **live_out,
               struct err *err);
/* --- resv.c ----------------------------------------------------------------------------- */

void admin_set_res (void *self, struct rpccall *call, const ProtobufCMessage *request);
void admin_standing (void *self, struct rpccall *call, const ProtobufCMessage *request);
/* What SRCFG asks for, without what stands for it. */
void admin_standing_asked (struct svc *svc, const struct policy_standing *standing,
                           struct arena *arena, Nui__Local__V1__StandingRow *out);
void admin_release_res (void *self, struct rpccall *call, const ProtobufCMessage *request);

/* --- resv_show.c: into the arena ------------------------------------------------------------- */

/* "USER==bob+", "SINGLEUSE", "USER==bob". */
char **admin_resv_acl_words (struct svc *svc, const struct acl_entry *acl, uint32_t count,
                             struct arena *arena);
char **admin_resv_flag_words (uint32_t flags, struct arena *arena, size_t *count);
char *admin_resv_owner_text (struct svc *svc, const struct acl_entry *owner, struct arena *arena);
/* Name, ACL and all else that the listing says of one of the core's ACL reservations, but its nodes and
 * times; strings in the arena or the record's own. False: it is gone. */
bool admin_resv_fill (struct svc *svc, uint64_t core, struct arena *arena,
                      Nui__Local__V1__Reservation *out);

/* --- queue.c ---------------------------------------------------------------------------- */

/* Which limits count in an answer: as the scheduler has them, of one level, or none. */
enum admin_limit_level {
    ADMIN_LIMITS_AS_THEY_ARE,
    ADMIN_LIMITS_HARD,
    ADMIN_LIMITS_SOFT,
    ADMIN_LIMITS_OFF
};
int admin_limit_level (const char *text, enum admin_limit_level *out, struct err *err);
void admin_queue (void *self, struct rpccall *call, const ProtobufCMessage *request);
/* What the queue says of one job; strings in the arena or the names' own. */
void admin_queue_row (struct svc *svc, struct site_job *job, enum admin_limit_level level,
                      time_us now, struct arena *arena, Nui__Local__V1__QueueJob *out);
const char *admin_state_name (enum store_job_state state); /* "Idle", "Completed" … */
/* "User", "Batch" …; the list is in the arena. */
char **admin_hold_names (uint32_t holds, struct arena *arena, size_t *count);

/* Is it more than want of room that keeps a waiting job? */
bool admin_job_blocked (struct svc *svc, const struct site_job *job, time_us now);

/* --- job.c ------------------------------------------------------------------------------ */

void admin_check_job (void *self, struct rpccall *call, const ProtobufCMessage *request);
void admin_cancel_job (void *self, struct rpccall *call, const ProtobufCMessage *request);

/* A job that is purged: what the history has of it, to be freed with store_job_free. id as in
 * admin_job. ERR_NOT_FOUND, ERR_INVALID. */
int admin_purged_find (struct svc *svc, const char *id, struct store_job *out, struct err *err);
/* Of one that has ended: credentials, what it asked for, its nodes, as far as the history knows. */
void admin_ended_fill (struct svc *svc, uint64_t number, struct arena *arena,
                       Nui__Local__V1__JobDetail *out);

/* A limit in the wire's terms; job_name "": of nobody in particular. */
struct explained_limit;
Nui__Local__V1__LimitHit *admin_limit (struct svc *svc, const char *job_name,
                                       const struct explained_limit *hit, struct arena *arena);

/* --- when.c, node.c --------------------------------------------------------------------- */

void admin_windows (void *self, struct rpccall *call, const ProtobufCMessage *request);
void admin_start_time (void *self, struct rpccall *call, const ProtobufCMessage *request);
void admin_nodes (void *self, struct rpccall *call, const ProtobufCMessage *request);
void admin_reservations (void *self, struct rpccall *call, const ProtobufCMessage *request);

const char *admin_node_state (const struct node_view *view); /* "Idle", "Running" … */
/* Its number, as nodes and reqs have it; "": 0. ERR_NOT_FOUND. */
int admin_partition (struct svc *svc, const char *name, uint32_t *out, struct err *err);

/* --- diag.c, config.c ------------------------------------------------------------------- */

void admin_priorities (void *self, struct rpccall *call, const ProtobufCMessage *request);
const char *admin_target_type (enum fs_target_type type); /* "", "=", "+", "-", "^", "%" */
void admin_fairshare (void *self, struct rpccall *call, const ProtobufCMessage *request);
void admin_config (void *self, struct rpccall *call, const ProtobufCMessage *request);
void admin_credentials (void *self, struct rpccall *call, const ProtobufCMessage *request);

/* --- control.c, modify.c ---------------------------------------------------------------- */

void admin_control_job (void *self, struct rpccall *call, const ProtobufCMessage *request);
void admin_modify_job (void *self, struct rpccall *call, const ProtobufCMessage *request);
void admin_set_node (void *self, struct rpccall *call, const ProtobufCMessage *request);
void admin_change_param (void *self, struct rpccall *call, const ProtobufCMessage *request);

/* --- submit.c --------------------------------------------------------------------------- */

void admin_submit (void *self, struct rpccall *call, const ProtobufCMessage *request);

/* --- sched.c ---------------------------------------------------------------------------- */

void admin_schedule (void *self, struct rpccall *call, const ProtobufCMessage *request);

/* --- change.c --------------------------------------------------------------------------- */

/* A job that waits in the queue, with its view. ERR_CONFLICT says why it does not. */
int admin_waiting_job (struct svc *svc, const struct admin_caller *caller, const char *name,
                       enum admin_level level, struct site_job **out, struct job_view *view,
                       struct err *err);
/* The ChangeReply of a change of one job. */
void admin_answer (struct svc *svc, struct rpccall *call, const struct site_job *job, int rc,
                   const struct err *err);
void admin_set_hold (void *self, struct rpccall *call, const ProtobufCMessage *request);
void admin_set_priority (void *self, struct rpccall *call, const ProtobufCMessage *request);
void admin_run_job (void *self, struct rpccall *call, const ProtobufCMessage *request);

/* --- stream.c: an answer in pieces, with the loop free in between and the peer's pace kept ---- */

struct admin_stream {
    struct svc *svc;
    struct rpccall *call;
    struct event *next;
    bool blocked;
    /* Sends one piece (at most one message) and says in *blocked whether the peer is slow; false:
     * that was the last. svc->call_arena is fresh. */
    bool (*step) (struct admin_stream *stream);
    void (*free_fn) (struct admin_stream *stream); /* the whole object */
};

/* Takes over stream, which is the first member of a calloc'ed object with step, free_fn set. */
void admin_stream_start (struct svc *svc, struct rpccall *call, struct admin_stream *stream);

/* --- profile.c, stats.c, runs.c ----------------------------------------------------------- */

/* Adds the service to the daemon's server. */
int admin_stats_serve (struct svc *svc, struct err *err);

void stats_sums_fill (const struct stats_sums *sums, Nui__Local__V1__JobSums *out);

void admin_stats_summary (void *self, struct rpccall *call, const ProtobufCMessage *request);
void admin_stats_sums (void *self, struct rpccall *call, const ProtobufCMessage *request);
void admin_stats_nodes (void *self, struct rpccall *call, const ProtobufCMessage *request);
void admin_stats_grid (void *self, struct rpccall *call, const ProtobufCMessage *request);
void admin_stats_reset (void *self, struct rpccall *call, const ProtobufCMessage *request);
void admin_stats_scheduler (void *self, struct rpccall *call, const ProtobufCMessage *request);
void admin_stats_estimates (void *self, struct rpccall *call, const ProtobufCMessage *request);
void admin_stats_runs (void *self, struct rpccall *call, const ProtobufCMessage *request);

/* HOLD of the Local service. */
void admin_hold_job (void *self, struct rpccall *call, const ProtobufCMessage *request);

#endif
