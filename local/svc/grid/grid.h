/* grid: this site among the others: what metaschedulers are told and what they may have, and which signed jobs are taken.
 *
 *   links.c      the grid's bank and metaschedulers: opened, with anchors of the bank's history
 *   report.c     what metaschedulers are told of the cluster
 *   contact.c    how long ago each heard of this site, and what ends here when that is too long
 *   named.c      which metaschedulers this site speaks to
 *   gridpolicy.c whether this site lets a metascheduler have what it asks (GRIDCFG)
 *   replay.c     a signed job runs for the metascheduler, and under the name, that it first came with
 *   renew.c      RENEW of nui.local.v1: a later delegation for a job that waits here */
#ifndef NUI_LOCAL_SVC_GRID_H
#define NUI_LOCAL_SVC_GRID_H

#include "local/svc/svc_i.h"

/* --- contact.c ---------------------------------------------------------------------------- */

#define CONTACT_LOST "ContactLost" /* the reason of what was ended for it */

int contact_open (struct svc *svc, struct err *err); /* after the store */
void contact_close (struct svc *svc);
/* It has acknowledged a report that left at that moment of the monotonic clock. */
void contact_heard (struct svc *svc, const char *meta, duration_us sent);

/* --- named.c ------------------------------------------------------------------------------ */

int named_open (struct svc *svc, struct err *err); /* after the store */
void named_close (struct svc *svc);
/* A metascheduler has shown this name in its certificate at META's address of that place. */
void named_met (struct svc *svc, uint32_t at, const char *meta);
/* False: the call is of a metascheduler that this site does not speak to, and was refused. */
bool named_admits (struct svc *svc, struct rpccall *call);

/* --- gridpolicy.c ------------------------------------------------------------------------- */

/* Of any job: who, which QoS, account and class, how large and how long. ERR_DENIED. */
int gridpolicy_job (const struct svc *svc, const char *meta, const struct jobspec *spec,
                    struct err *err);
/* Of a slot, beside that: lease, how far ahead, and what the metascheduler would have at one moment with
 * what it has. ERR_DENIED; *next, where what it has stands in the way: a later moment at which that has ended; else
 * untouched. O(live jobs · log) where SHARE or MAXPROC is said. */
int gridpolicy_slot (struct svc *svc, const char *meta, const struct jobspec *spec, time_us start,
                     duration_us lease, time_us *next, struct err *err);
/* `until`, or as far ahead as that metascheduler may reserve. */
time_us gridpolicy_until (const struct svc *svc, const char *meta, time_us now, time_us until);
/* Of what a pass would start from the queue, beside what the metascheduler has then: what is over MAXPROC or
 * SHARE is refused in the plan, with its reason; and, once the plan is committed, does not come again at once. */
void gridpolicy_starts (struct svc *svc, struct plan *plan);
void gridpolicy_defer (struct svc *svc, const struct plan *plan);
/* MINPRICE for so much; 0: none. */
credit_micro gridpolicy_price_least (const struct svc *svc, const char *meta, uint32_t procs,
                                     duration_us walltime);
/* What the bank holds for the job is less than MINPRICE asks; the sentence. */
bool gridpolicy_too_cheap (const struct svc *svc, const struct site_job *job, credit_micro amount,
                           char *why, size_t cap);

/* --- replay.c ----------------------------------------------------------------------------- */

/* Until when the owner lets this metascheduler, or its group, go on with it; 0: not by a delegation. */
time_us replay_delegated_until (const struct svc *svc, const struct jobspec *spec,
                                const char *meta);
/* Whether the signed job was taken here before, so that its expiry does not count. ERR_UNAUTHENTIC
 * with the sentence when it was not and has expired. */
int replay_expired (struct svc *svc, const struct jobspec *spec, time_us now, struct err *err);
/* Whether this metascheduler may have it taken as this grid job. ERR_UNAUTHENTIC. */
int replay_check (struct svc *svc, const struct jobspec *spec, const char *meta,
                  const char *grid_job_id, struct err *err);
/* A job for this cluster alone is taken once: nothing may be known of it. ERR_UNAUTHENTIC. */
int replay_unknown (struct svc *svc, const struct jobspec *spec, struct err *err);
/* In the transaction that takes it. */
int replay_keep (struct svc *svc, const struct jobspec *spec, const char *meta,
                 const char *grid_job_id, struct err *err);

/* With what has been seen of a transaction, or of a signed job (its uuid): ERR_CONFLICT where it is older. */
int replay_epoch (struct svc *svc, const uint8_t *of, uint64_t epoch, bool *newer, struct err *err);

/* What reports say of a metascheduler's jobs, for one that was restored to an earlier moment. */
struct grid_number {
    char meta[STORE_NAME_MAX];
    uint64_t number; /* the highest N of a job grid.N of its that was taken */
    UT_hash_handle hh;
};
int replay_numbers_load (struct svc *svc, struct err *err);

/* --- renew.c ------------------------------------------------------------------------------ */

void renew_handle (void *svc, struct rpccall *call, const ProtobufCMessage *request);

/* --- report.c: what metaschedulers are told of the cluster --- */

void report_fill (void *arg, Nui__Meta__V1__SiteReport *report);

#endif
