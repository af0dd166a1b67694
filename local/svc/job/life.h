/* life: what happens to a job between SUBMIT and its end. Each step is durable before it is acted on; a step that cannot be
 * written stops the daemon, and is taken up again after a restart. */
#ifndef NUI_LOCAL_SVC_JOB_LIFE_H
#define NUI_LOCAL_SVC_JOB_LIFE_H

#include "local/svc/job.h"
#include "local/svc/job/jobspec.h"

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

/* --- hold.c, life_hold.c: credits --- */

/* In a transaction: a fresh key, the packed request, the row; then call bank_link_hold with *out
 * (to be freed) after the commit. */
int life_hold_prepare (struct svc *svc, struct site_job *job, time_us expected_start,
                       struct store_hold *out, struct err *err);
/* Ends a transaction that went well so far (rc 0; else it is rolled back): a hold is asked for from now on. */
int life_hold_again (struct svc *svc, struct site_job *job, int rc, struct err *err);
/* In a transaction: the bank's hold is given back through the outbox, or when its answer comes. */
int life_hold_return (struct svc *svc, struct site_job *job, const char *why, struct err *err);
/* In a transaction: that one. */
int life_hold_release (struct svc *svc, uint64_t number, const char *hold_id, const char *why,
                       struct err *err);
/* In a transaction: the answer comes to nothing, and what it granted goes back. */
int life_answer_over (struct svc *svc, const struct bank_answer *answer, struct err *err);
void life_on_answer (void *arg, const struct bank_answer *answer);

/* --- life_launch.c --- */

/* rm.h: mark. Of live jobs and of ended ones. */
void life_mark (const struct svc *svc, const struct store_job *rec, char out[RM_MARK_MAX]);
/* Hands a job to the resource manager: its hold is granted, or nobody charges for it. */
int life_launch (struct svc *svc, struct site_job *job, struct err *err);
/* Where CHECKPOINTHOOK and the job leave what they need. */
void life_checkpoint_dir (const struct svc *svc, const struct site_job *job, char *out, size_t cap);

/* --- evict.c: running jobs that have to go --- */

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

/* --- deferral.c: jobs that cannot be run as they are --- */

extern const struct deferral deferral_none;

/* When it is tried again where DEFERTIME is 0: at the next poll, no later than the longest. */
time_us deferral_retry_at (const struct svc *svc, duration_us longest);

/* In a transaction: the count, and until when, or the batch hold. Reason set before. */
int deferral_write (struct svc *svc, struct site_job *job, struct deferral deferral,
                    struct err *err);
/* After the commit. */
void deferral_apply (struct svc *svc, struct site_job *job, struct deferral deferral);
void deferral_plan (struct svc *svc, const struct plan *plan);
/* Is it kept by one of these holds (enum job_hold) for the reason in its record? */
bool deferral_holds (const struct site_job *job, uint32_t holds);
void deferral_nodes_changed (struct svc *svc);

/* --- lapse.c: who can never run any more is ended --- */

void lapse_plan (struct svc *svc, const struct plan *plan);
/* Those who wait for what can never be, if svc.lapses. */
void lapse_depends (struct svc *svc);

/* --- depends.c: jobs that wait for others --- */

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

/* --- payqos.c: the QoS of the account that pays --- */

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

#endif
