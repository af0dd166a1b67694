/* jobshape: the sizes that a signed component may be run in.
 *
 * Shape 0 is what the component itself says; shape i > 0 is shapes[i - 1]: other tasks in the first
 * req and, where it has one, another walltime. Everything else of the component holds for each. */
#ifndef NUI_RPC_JOBSHAPE_H
#define NUI_RPC_JOBSHAPE_H

#include "proto/base/err.h"
#include "proto/base/quantity.h"
#include "proto/nui/v1/common.pb-c.h"

enum { JOB_SHAPES_MAX = 16 };

/* Too many, none, as many tasks as another, or so many that a node count does not divide:
 * ERR_INVALID. */
int jobshape_check (const Nui__Common__V1__Component *component, uint32_t shape, struct err *err);
/* Of a shape that was checked. */
uint32_t jobshape_tasks (const Nui__Common__V1__Component *component, uint32_t shape, size_t req);
duration_us jobshape_walltime (const Nui__Common__V1__Component *component, uint32_t shape);
/* The shortest of all shapes. */
duration_us jobshape_walltime_min (const Nui__Common__V1__Component *component);
/* Checks, then makes the component say what that shape says. */
int jobshape_apply (Nui__Common__V1__Component *component, uint32_t shape, struct err *err);

#endif
