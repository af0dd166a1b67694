/* simulate: start times by simulating the site forward, many times. Pure; draws from a seed.
 *
 * Each draw gives every running and waiting job a run time from history (a waiting job with
 * brothers that run, the same user with the same limit, often takes one of theirs), lets jobs
 * arrive as they did on some recent day, and follows the pass from the present state. Where
 * processors are all that counts that is forward.h; elsewhere a copy of the cluster under the
 * core's own pass (replay.h).
 *
 * A simulation is about one job (which ends each draw) or about the whole queue and any number of
 * shapes at once. It is done in slices: simulation_go does about so much work and returns, wherever
 * that is: in the middle of a draw, of its run times, of a copy. The result is the same however it is
 * sliced. What is not divided: one step of a pass, and the copy of the queue that forward.h makes for a draw. */
#ifndef NUI_LOCAL_ESTIMATE_SIMULATE_H
#define NUI_LOCAL_ESTIMATE_SIMULATE_H

#include "local/estimate/forward.h"
#include "local/estimate/record.h"
#include "local/estimate/scene.h"

struct simulate_options {
    uint32_t draws; /* at most */
    uint64_t work;  /* after so much no further draw is begun, once there are DRAWS_LEAST */
    uint64_t seed;
    bool alone;  /* nobody comes: what shapes need, which stand behind all that come */
    bool limits; /* one draw in which all jobs run to their limits and nobody comes */
};

enum { DRAWS_LEAST = 3, DRAWS_MOST = 200 };

struct simulation;
struct simulation *simulation_create (void); /* never NULL */
void simulation_destroy (struct simulation *simulation);

/* About the waiting job at `target` of the scene, or, with UINT32_MAX, about all of them and the
 * shapes (copied). Scene and history are read until the end, as is the cluster (NULL where scene->counted). */
int simulation_begin (struct simulation *simulation, const struct scene *scene,
                      const struct history *history, struct cluster *cluster, uint32_t target,
                      const struct forward_ghost *shape, uint32_t shape_count,
                      const struct simulate_options *options, struct err *err);
/* True: done, or failed. */
bool simulation_go (struct simulation *simulation, uint64_t work);
int simulation_status (const struct simulation *simulation, struct err *err); /* 0: no failure */
/* Done, or with DRAWS_LEAST draws: what there is may be asked for. */
bool simulation_enough (const struct simulation *simulation);
uint64_t simulation_work (const struct simulation *simulation); /* since it began */

/* After it is done: of the target, of a waiting job by its place, of a shape. */
void simulation_estimate (const struct simulation *simulation, uint32_t place,
                          struct estimate *out);
void simulation_shape (const struct simulation *simulation, uint32_t shape, struct estimate *out);

#endif
