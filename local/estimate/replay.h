/* replay: a draw by the core's own pass, on a copy of the cluster. Pure.
 *
 * For sites where more than processors counts: nodes, features, memory, limits, reservations. The
 * copy is made through the cluster's public events, so whatever the core knows of nodes, jobs and
 * reservations counts here too. What cannot be copied that way is left behind: bypass counts and
 * how long a job's queue time did not run. Copies too are made in slices: the first, from the site's
 * own cluster, may find that jobs have left since the scene was read, and does without them.
 * Cost of one draw: the copy, O(nodes + jobs), and the passes, which go in steps, too (plan_step). */
#ifndef NUI_LOCAL_ESTIMATE_REPLAY_H
#define NUI_LOCAL_ESTIMATE_REPLAY_H

#include "local/estimate/forward.h"
#include "local/estimate/scene.h"

/* As forward_next, and what is known of the job besides. */
typedef bool replay_next (void *self, time_us *at_out, struct forward_job *job_out,
                          struct job_known *known_out);

struct replay;
struct replay *replay_create (void); /* never NULL */
void replay_destroy (struct replay *replay);

/* Of this cluster, as the scene describes it. The scene is read until the last draw is over, the
 * cluster until the first is. What was put into the scene by scene_insert is copied too. */
int replay_take (struct replay *replay, const struct scene *scene, struct cluster *cluster,
                 struct err *err);

/* Like forward_begin, but the setup's arrays are read until the draw is over; of the setup run, job,
 * target, ghost, next (whether there is one), self and until are used. next: NULL with setup->next
 * NULL. */
void replay_begin (struct replay *replay, const struct forward_setup *setup, replay_next *next,
                   time_us *starts);
bool replay_go (struct replay *replay, uint64_t work);
uint64_t replay_work (const struct replay *replay);
/* What passes with many reservations cost besides, in the same units: replay_go counts it, too. */
uint64_t replay_extra (const struct replay *replay);
/* Why the last draw came to nothing; 0: it did not. */
int replay_status (const struct replay *replay, struct err *err);

#endif
