/* fake_slurm: a slurmrestd that answers what a test wants, on a free loopback port and the caller's
 * loop.
 *
 * Its jobs and nodes are entries that a real one sent (tests/fuzz/slurm/corpus), with other names,
 * states and sizes. */
#ifndef NUI_TESTS_LOCAL_RM_FAKE_SLURM_H
#define NUI_TESTS_LOCAL_RM_FAKE_SLURM_H

#include <event2/event.h>
#include <jansson.h>
#include <stdint.h>

#include "proto/base/strbuf.h"

struct fake_slurm;

/* Fills body (empty before), returns the HTTP status. path without, query with what followed '?'
 * ("" none); sent: the request's body, "" none. */
typedef int (*fake_slurm_fn) (void *arg, const char *method, const char *path, const char *query,
                              const char *sent, struct strbuf *body);

struct fake_slurm *fake_slurm_create (struct event_base *base, fake_slurm_fn answer, void *arg);
void fake_slurm_destroy (struct fake_slurm *fake);
/* The token of the request that is being answered; NULL: none. */
const char *fake_slurm_token (const struct fake_slurm *fake);
uint16_t fake_slurm_port (const struct fake_slurm *fake);

/* What /openapi/v3 says: paths of each version of "v0.0.38 v0.0.37"; since: whether lists take
 * update_time. */
void fake_slurm_versions (const char *versions, int since, struct strbuf *body);

/* A recorded answer's only list ("jobs-38"), to be freed with json_decref. */
json_t *fake_slurm_recorded (const char *name);
/* "{…"errors":[],"KEY":[entry,…]}", as slurmrestd writes it: indented. */
void fake_slurm_list (const char *key, const json_t *entries, struct strbuf *body);

#endif
