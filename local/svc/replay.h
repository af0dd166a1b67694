/* replay: a signed job runs for the metascheduler, and under the name, that it first came with.
 *
 * Metaschedulers are not trusted for what a user wants: each of them that has seen an envelope could
 * hand it over as another job, or again when it has run. What is refused and what is not:
 *   the same metascheduler, the same grid job   taken, also after the signature has expired here: a
 *                                               retry, a requeue, a part that is prepared anew
 *   another of its group (METAGROUP)            taken, as whatever grid job: it goes on with it
 *   another one, or another grid job            refused
 *   other content under the same uuid           refused
 *   an ordinary job that ended well here        refused, whatever the attempt
 *   handed in on the spot (msub)                taken once, whoever knows it already
 *   nothing known, and expired                  refused, unless the owner has delegated it for longer
 * A signature is good for REPLAYWINDOW at most, whatever it says of itself. */
#ifndef NUI_LOCAL_SVC_REPLAY_H
#define NUI_LOCAL_SVC_REPLAY_H

#include "local/svc/svc_i.h"

/* Until when the owner lets this metascheduler, or its group, go on with it; 0: not by a delegation. */
time_us replay_delegated_until (const struct svc *svc, const struct jobspec *spec, const char *meta);
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

#endif
