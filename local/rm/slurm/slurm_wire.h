/* slurm_wire: what is asked of slurmrestd, in the words of the version that it speaks.
 *
 * Whoever asks writes bodies in the shape of v0.0.38, and slurm_rest.c passes each through here when the version is
 * known. Pure but for memory. */
#ifndef NUI_LOCAL_RM_SLURM_WIRE_H
#define NUI_LOCAL_RM_SLURM_WIRE_H

#include <jansson.h>
#include <stdint.h>

#include "proto/base/quantity.h"

enum { SLURM_API_LISTS = 40 }; /* from v0.0.40 on: numbers as objects, states as lists */

/* Of a job that is submitted or changed; body is taken over, and so is what comes back. */
json_t *slurm_wire_job (json_t *body, int version, time_us now);

#endif
