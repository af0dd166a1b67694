/* pbsfifo: the FIFO scheduler that came with PBS, as Bode et al. 2000, section 4.2, describe it. A
 * comparator for simulations; no site is meant to run it.
 *
 * Each pass goes through the queue in order of submission and starts every job that fits now;
 * nothing is reserved. Once a job has waited longer than `starving` (PBS: 24 hours), nothing else
 * starts until it has. Nodes are taken in their order. Cost of a pass: O(queue log queue + starts
 * times nodes). */
#ifndef NUI_LOCAL_SIM_LAB_PBSFIFO_H
#define NUI_LOCAL_SIM_LAB_PBSFIFO_H

#include "local/sim/engine.h"

#define PBSFIFO_STARVING_DEFAULT ((duration_us)24 * 3600 * US_PER_S)

struct pbsfifo {
    duration_us starving; /* TIME_US_MAX: jobs never starve the others */
};

/* To be given to the engine; self must live as long. */
struct engine_scheduler pbsfifo_scheduler (struct pbsfifo *self);

#endif
