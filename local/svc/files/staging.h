/* staging: the files that jobs need before they start, on their way (the mover is local/stage).
 *
 * They are moved for a signed component, not for one attempt to run it: a group that is prepared
 * anew, or slides, finds here what came before. So they lie in JOBDIR/.stage/KEY, KEY made of the
 * job's uuid, its submitter and the component, and that directory becomes the job's own when it is
 * launched. Nothing of this is in the store: after a restart the live jobs ask for their files
 * again, and the mover goes on where it was. What no job asks for any more stays for a quarter of
 * an hour; what failed for good is remembered so long, too.
 *
 * An ordinary job's files begin to move when it is accepted, those of a co-allocated part with
 * COMMIT: before, nobody is sure that it will run here. */
#ifndef NUI_LOCAL_SVC_STAGING_H
#define NUI_LOCAL_SVC_STAGING_H

#include "local/stage/stage.h"
#include "local/svc/svc_i.h"

/* Opens the mover, in the modes that act, where it is configured or has something from before. */
int staging_open (struct svc *svc, struct err *err);
/* And where a job comes that needs it. */
int staging_need (struct svc *svc, struct err *err);
int staging_reload (struct svc *svc, const struct settings *settings, struct err *err);
struct stage *staging_mover (const struct svc *svc); /* NULL: nothing is moved in this mode */

/* What the mover is told of a component's files; all in the arena. well: the job ended well. */
struct stage_batch staging_batch (const struct jobspec *spec, const char *key, bool out, bool well,
                                  struct arena *arena);

/* --- questions ---------------------------------------------------------------------------- */

/* Whether this site would move the component's files, in and out: ERR_DENIED with the sentence,
 * also where they failed to come lately. */
int staging_check (struct svc *svc, const struct jobspec *spec, struct err *err);
/* When they would be here if they began to move now, by what is known of their sizes; now: they are
 * here, or there are none. */
time_us staging_expected (struct svc *svc, const struct jobspec *spec, time_us now);
/* Sizes that nobody said are asked of the sources; then fn is called, once, from the loop, with why
 * they cannot come, "", or NULL where the daemon ends before. False: there is nothing to ask, and
 * fn is not called. */
bool staging_ask (struct svc *svc, const struct jobspec *spec,
                  void (*fn) (void *arg, const char *missing), void *arg);

/* --- the life of a job -------------------------------------------------------------------- */

/* The job wants its files from now on; nothing happens where it has none, or waits for them
 * already. A failure is seen to from the loop. */
void staging_want (struct svc *svc, struct site_job *job, const struct jobspec *spec);
/* The same with what the store has of the job: a part that is firm now, or a job that waits again
 * and has used what it had. */
void staging_again (struct svc *svc, struct site_job *job);
/* After a restart, of each live job but parts; and when all are there. */
void staging_regain (struct svc *svc, struct site_job *job, const struct jobspec *spec);
void staging_recovered (struct svc *svc);
bool staging_ready (const struct site_job *job);
/* How far the files of a job are that is not ready. */
const char *staging_text (const struct site_job *job, struct arena *arena);
/* Before a pass: the core hears when they are expected, which is never now. */
void staging_settle (struct svc *svc);
/* Their directory below JOBDIR, for the launch; NULL: the job brings none. */
const char *staging_dir (const struct site_job *job, char *buf, size_t cap);

/* --- inputs.c: what was sent beside jobs, kept in STATEDIR/inputs until they have ended ------- */

/* For the mover. */
const struct stage_sent *inputs_sent (const struct svc *svc);
/* Where a job's metascheduler has it, for the mover's batch. */
const char *inputs_origin (const struct jobspec *spec, struct arena *arena);
/* Whether this site takes as much; a job for it alone: whether it is here. ERR_LIMIT, ERR_NOT_FOUND. */
int inputs_check (struct svc *svc, const struct jobspec *spec, struct err *err);
/* It stays as long as the job lives. */
void inputs_hold (struct svc *svc, struct site_job *job, const struct jobspec *spec);

/* --- what is told ------------------------------------------------------------------------- */

void staging_info (const struct svc *svc, const struct site_job *job, struct arena *arena,
                   Nui__Local__V1__JobInfo *out);
/* Those of one batch of the mover. */
void staging_transfers (const struct svc *svc, const char *key, bool out, struct arena *arena,
                        Nui__Local__V1__JobInfo *info);

#endif
