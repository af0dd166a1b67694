/* jobs: what is asked about jobs and done with them over RPC, and what is told of them: QUERY, SUBMIT, JOB, CANCEL (jobs.c),
 * whose job a call names (find.c), why it waits (reason.c), the whole of it (info.c). */
#ifndef NUI_LOCAL_SVC_JOB_JOBS_H
#define NUI_LOCAL_SVC_JOB_JOBS_H

#include "local/rm/jobdir.h"
#include "local/svc/job.h"
#include "local/svc/job/jobspec.h"

/* A run that a restored state has forgotten, until it has ended: stray.c. */
struct svc_stray {
    char key[JOBDIR_KEY_MAX];
    char job_id[JOBDIR_KEY_MAX];
    uint32_t incarnation;
    UT_hash_handle hh; /* by key */
};

enum { QUERY_INTERVALS_MAX = 256 };

/* Of the component and those that are to start with it: how many, in that order, fit at one moment between
 * the two, of which the first is not before reply->now_us. ERR_INVALID, ERR_LIMIT, ERR_NOT_FOUND, ERR_DENIED. */
int together_fill (struct svc *svc, const Nui__Local__V1__QueryRequest *r,
                   const struct jobspec *spec, time_us from, time_us until,
                   Nui__Local__V1__QueryReply *reply, struct err *err);
void jobs_query (void *self, struct rpccall *call, const ProtobufCMessage *request);
void jobs_submit (void *self, struct rpccall *call, const ProtobufCMessage *request);
void jobs_job (void *self, struct rpccall *call, const ProtobufCMessage *request);
void jobs_cancel (void *self, struct rpccall *call, const ProtobufCMessage *request);
/* What the world is told of a job; strings in the arena. job NULL when it has ended. */
void jobs_info (struct svc *svc, const struct store_job *rec, struct site_job *job,
                struct arena *arena, Nui__Local__V1__JobInfo *out);
/* Of that only its files that are under way, or could not go. */
void jobs_files (struct svc *svc, const struct store_job *rec, const struct site_job *job,
                 struct arena *arena, Nui__Local__V1__JobInfo *out);
void jobs_reason (struct arena *arena, const char *code, const char *text,
                  Nui__Common__V1__Reason **out);
/* Does a rule forbid it for good, as things stand, so that no start may be told? */
bool jobs_never (const struct site_job *job, const struct job_view *view);
/* The first moment at which nothing but want of room may keep a waiting job: its date, deferral and files, and the HARD
 * limit in its way as far as that will clear by itself. */
time_us jobs_startable (struct svc *svc, const struct site_job *job, time_us now);
/* What this service knows better than the core why a job waits: put off or held for a failure, waits for
 * others. False: what the core says. */
bool jobs_own_reason (struct svc *svc, const struct site_job *job, const struct job_view *view,
                      struct arena *arena, Nui__Common__V1__Reason **out);
/* By site or grid id, live or ended; for a metascheduler (call may be NULL) among its own, since each
 * has a grid.1. */
int jobs_find (struct svc *svc, const struct rpccall *call, const char *job_id,
               const char *component, struct store_job *out, struct err *err);
enum { JOBS_OWNER = 1, JOBS_OPERATOR = 2, JOBS_META = 4 };
/* 0, or ERR_DENIED. */
int jobs_allowed (struct svc *svc, struct rpccall *call, const struct store_job *rec, unsigned who,
                  struct err *err);
/* A job on its way into the queue; uuid: where it came by msub, else NULL. */
struct jobs_wish {
    const Nui__Common__V1__Envelope *envelope;
    const char *grid_job_id; /* "" of this cluster alone */
    const char *meta;        /* whose it is then; NULL: nobody's */
    uint32_t attempt;
    const uint8_t *uuid;
    uint32_t holds;      /* enum job_hold */
    duration_us contact; /* as in store_job */
    bool released;       /* the hold with which it came is over */
};
/* Into the store and the queue, or nothing has happened. */
int jobs_enter (struct svc *svc, const struct jobs_wish *wish, const struct jobspec *spec,
                struct site_job **out, struct err *err);
/* As an ordinary job, submitted now: the start, and why not at once. */
int jobs_estimate (struct svc *svc, const struct jobspec *spec, time_us now, struct slot *slot,
                   struct err *err);
/* The same, were all its nodes up and idle and nothing reserved: TIME_US_NONE is never. Copies the site. */
int jobs_estimate_bare (struct svc *svc, const struct jobspec *spec, time_us now, struct slot *slot,
                        struct err *err);
/* Until when the directory of a job that has ended stays, at least; 0: for ever. */
time_us jobs_kept_until (const struct svc *svc, const struct store_job *rec);
/* Fails with the status for err, logged when it is about trust. */
void jobs_refuse (struct svc *svc, struct rpccall *call, const struct err *err);

#endif
