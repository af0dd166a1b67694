/* native: the resource manager's own word: jobs that were given to it itself (native.c; needs.c: what they need), nodes that
 * it tells of (rmnodes.c), reservations that it keeps as well (mirror.c), and its events (events.c). */
#ifndef NUI_LOCAL_SVC_NATIVE_NATIVE_H
#define NUI_LOCAL_SVC_NATIVE_NATIVE_H

#include "local/svc/job.h"
#include "local/svc/job/jobspec.h"

/* New and changed jobs of the resource manager's own. */
void native_take (struct svc *svc, const struct rm_native *list, uint32_t count);
/* It runs and nobody here started it: said, and its nodes are taken from the plan. */
void native_started (struct svc *svc, struct site_job *job, const struct rm_event *event);
/* Where the resource manager put it, when that is not what was planned. */
void native_placed (struct svc *svc, struct site_job *job, const char *placement);
/* Its resource manager has suspended any job, or let it go on, by whomever. */
void native_suspended (struct svc *svc, struct site_job *job, bool on);
/* After a restart, before anything is decided. */
int native_restore (struct svc *svc, struct site_job *job, struct err *err);
/* Slurm takes a requeued job for submitted at that moment, by which it is known again after a restart: durable
 * before what ended is. */
void native_submit_follow (struct svc *svc, struct site_job *job, time_us submit);
void native_handed (struct svc *svc, struct site_job *job, const char *rm_id);
void native_unknown (struct svc *svc, struct site_job *job);
/* What an administrator or the owner set here is set there. */
void native_hold_push (struct svc *svc, struct site_job *job, uint32_t before, uint32_t after);

/* Up to when all ends at the resource manager are known, as it was kept at the last poll. */
time_us native_settled (struct svc *svc);

/* --- needs.c --- */

extern const char native_component[]; /* the name of the only component of such a job */

/* What cannot be said in our terms: the job waits, and says why. "" when all is well. */
struct native_misfit {
    char text[300];
};

/* The job as a jobspec, and as the envelope without signature that is stored. A job that cannot be
 * converted is one of a single processor, with misfit filled. Which nodes it may have (-w, -x) is in the
 * spec only: the resource manager says it again after a restart. */
int native_spec (struct svc *svc, const struct rm_native *n, struct arena *arena,
                 struct jobspec *spec, uint8_t **envelope_out, size_t *len_out,
                 struct native_misfit *misfit, struct err *err);

/* --- rmnodes.c --- */

/* Floating licences of the resource manager and of NODECFG[GLOBAL], as GRES has them; malloc'ed. */
char *rmnodes_licences (struct svc *svc, const struct settings *settings);
/* Nodes as the resource manager has them, with what NODECFG says of them besides; all that are known
 * from before a restart (down) until it answers. malloc'ed; free with rmnodes_free. NULL, *count_out
 * 0: the configuration's nodes are all there are. */
struct nodeconf_node *rmnodes_list (struct svc *svc, const struct settings *settings,
                                    uint32_t *count_out);
void rmnodes_free (struct nodeconf_node *nodes, uint32_t count);
void rmnodes_remember (struct svc *svc); /* as they are now, for a restart */
void rmnodes_loads (struct svc *svc);    /* its nodes' load and used memory, for the next pass */
enum node_state rmnodes_state (struct svc *svc, const char *name);
/* What the resource manager says of it, until its next event; NULL: nothing. */
const struct rm_node *rmnodes_told (struct svc *svc, const char *name);
/* Why a node is not up, in the resource manager's words; "": it does not say. Holds until its next event. */
const char *rmnodes_reason (struct svc *svc, const char *name);

/* --- mirror.c --- */

void mirror_settle (struct svc *svc); /* after each pass */

/* --- events.c --- */

/* on_event of every resource manager, of a svc. */
void rm_event_on (void *arg, const struct rm_event *event);
/* The pass is over: what has waited for that. */
void rm_events_release (struct svc *svc);

#endif
