/* admin: Maui's commands over RPC (nui.local.v1.Admin): what a caller may, and the audit log.
 *
 *   admin.c        who may what; the audit log; the table of methods
 *   admin_queue.c  the queue in pieces, so that a long one does not hold the loop
 *   admin_job.c    one job: everything about it, why it waits; cancelling
 *   admin_ended.c  jobs that have ended, out of the history
 *   admin_when.c   backfill windows, start times
 *   admin_node.c   nodes, reservations
 *   admin_stream.c an answer in pieces
 *   admin_diag.c   priorities itemised, fairshare, credentials
 *   admin_config.c the policy in force
 *   admin_control.c running jobs requeued, suspended, resumed
 *   admin_modify.c what else may be changed of jobs and nodes; parameters
 *   admin_submit.c jobs for this cluster alone
 *   admin_sched.c  schedctl: stop, step, resume, end
 *   admin_resv.c   reservations made and released
 *   admin_standing.c what SRCFG asks for
 *   admin_change.c holds, priorities, a start by hand */
#ifndef NUI_LOCAL_SVC_ADMIN_H
#define NUI_LOCAL_SVC_ADMIN_H

#include "local/svc/svc_i.h"
#include "proto/nui/v1/admin.pb-c.h"

/* Maui's levels: each includes those after it. */
enum admin_level {
    ADMIN_FULL = 1, /* ADMIN1, and root on the cluster's own socket */
    ADMIN_JOBS = 2, /* ADMIN2: everybody's jobs */
    ADMIN_INFO = 3, /* ADMIN3, and the grid's operators: sees everything */
    ADMIN_NONE = 4, /* sees and changes its own */
};

struct admin_caller {
    enum admin_level level;
    bool local;                   /* on the Unix socket */
    char name[PRINCIPAL_URI_MAX]; /* login name, or identity: for the audit log */
    char login[STORE_NAME_MAX];   /* its account here; "" none */
};

/* Adds the service to the daemon's server. */
int admin_serve (struct svc *svc, struct err *err);

void admin_who (struct svc *svc, struct rpccall *call, struct admin_caller *out);
bool admin_owns (const struct admin_caller *caller, const struct store_job *rec);
/* 0, or ERR_DENIED with a sentence: "what needs ADMIN2, you (alice) are a plain user". */
int admin_require (const struct admin_caller *caller, enum admin_level level, const char *what,
                   struct err *err);
/* A job that the caller may see (level INFO, or its own) or change (level JOBS, or its own). id: a
 * number, the site's id or the grid's. *live_out is NULL when it has ended; *rec_out is to be freed
 * with store_job_free either way when 0 is returned. */
int admin_job (struct svc *svc, const struct admin_caller *caller, const char *id,
               enum admin_level level, struct store_job *rec_out, struct site_job **live_out,
               struct err *err);
/* Writes down what the caller is about to do; durable when 0 is returned. Not within a
 * transaction. */
int admin_audit (struct svc *svc, const struct admin_caller *caller, struct err *err,
                 const char *fmt, ...) __attribute__ ((format (printf, 4, 5)));
/* The same within the caller's transaction. */
int admin_audit_in (struct svc *svc, const struct admin_caller *caller, struct err *err,
                    const char *fmt, ...) __attribute__ ((format (printf, 4, 5)));

/* --- admin_resv.c ------------------------------------------------------------------------- */

void admin_set_res (void *self, struct rpccall *call, const ProtobufCMessage *request);
void admin_standing (void *self, struct rpccall *call, const ProtobufCMessage *request);
void admin_release_res (void *self, struct rpccall *call, const ProtobufCMessage *request);

/* --- admin_queue.c ------------------------------------------------------------------------ */

void admin_queue (void *self, struct rpccall *call, const ProtobufCMessage *request);
/* What the queue says of one job; strings in the arena or the names' own. */
void admin_queue_row (struct svc *svc, struct site_job *job, time_us now, struct arena *arena,
                      Nui__Local__V1__QueueJob *out);

/* Is it more than want of room that keeps a waiting job? */
bool admin_job_blocked (struct svc *svc, const struct site_job *job, time_us now);

/* --- admin_job.c -------------------------------------------------------------------------- */

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

/* --- admin_when.c, admin_node.c ----------------------------------------------------------- */

void admin_windows (void *self, struct rpccall *call, const ProtobufCMessage *request);
void admin_start_time (void *self, struct rpccall *call, const ProtobufCMessage *request);
void admin_nodes (void *self, struct rpccall *call, const ProtobufCMessage *request);
void admin_reservations (void *self, struct rpccall *call, const ProtobufCMessage *request);

const char *admin_node_state (const struct node_view *view); /* "Idle", "Running" … */

/* --- admin_diag.c, admin_config.c --------------------------------------------------------- */

void admin_priorities (void *self, struct rpccall *call, const ProtobufCMessage *request);
const char *admin_target_type (enum fs_target_type type); /* "", "=", "+", "-", "^", "%" */
void admin_fairshare (void *self, struct rpccall *call, const ProtobufCMessage *request);
void admin_config (void *self, struct rpccall *call, const ProtobufCMessage *request);
void admin_credentials (void *self, struct rpccall *call, const ProtobufCMessage *request);

/* --- admin_control.c, admin_modify.c ----------------------------------------------------------------------- */

void admin_control_job (void *self, struct rpccall *call, const ProtobufCMessage *request);
void admin_modify_job (void *self, struct rpccall *call, const ProtobufCMessage *request);
void admin_set_node (void *self, struct rpccall *call, const ProtobufCMessage *request);
void admin_change_param (void *self, struct rpccall *call, const ProtobufCMessage *request);
/* After a restart: what was changed of a job, before it is in the core. */
int admin_sets_restore (struct svc *svc, struct site_job *job, struct err *err);
/* After a restart: a suspended job stays so until it is resumed. */
int admin_suspended_restore (struct svc *svc, struct site_job *job, struct err *err);

/* --- admin_submit.c ----------------------------------------------------------------------- */

void admin_submit (void *self, struct rpccall *call, const ProtobufCMessage *request);

/* --- admin_sched.c ------------------------------------------------------------------------ */

void admin_schedule (void *self, struct rpccall *call, const ProtobufCMessage *request);

/* --- admin_change.c ----------------------------------------------------------------------- */

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
/* After a restart: holds and priority that were set on a job that waits. */
int admin_restore (struct svc *svc, struct site_job *job, struct err *err);

#endif
