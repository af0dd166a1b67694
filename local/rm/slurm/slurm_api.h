/* slurm_api: which version of its API a slurmrestd offers, and what that version can, by its own description
 * (GET /openapi/v3). Pure. */
#ifndef NUI_LOCAL_RM_SLURM_API_H
#define NUI_LOCAL_RM_SLURM_API_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "proto/base/err.h"

enum { SLURM_API_NAME_MAX = 16, SLURM_API_OFFERS_MAX = 12 };

struct slurm_api {
    char name[SLURM_API_NAME_MAX]; /* "v0.0.38"; "": not known yet */
    int number;                    /* 38 */
    bool usable;                   /* it has a list of jobs */
    bool jobs_since, nodes_since;  /* these lists take update_time */
    bool jobs_state;               /* there is a list of ids and states only */
    bool resv_create, resv_delete; /* reservations, without scontrol */
    bool requeue;
};

struct slurm_offers {
    struct slurm_api api[SLURM_API_OFFERS_MAX];
    unsigned count;
};

/* A member of the document's "paths". */
void slurm_offers_take (struct slurm_offers *offers, const char *path, const json_t *object);
/* The newest of those whose fields we know. ERR_UNSUPPORTED: none, with a sentence. */
int slurm_offers_choose (const struct slurm_offers *offers, struct slurm_api *out, struct err *err);
/* "v0.0.41, v0.0.42"; "" none. */
void slurm_offers_list (const struct slurm_offers *offers, char *out, size_t cap);
/* "v0.0.40 to v0.0.45, v0.0.38 and v0.0.37". */
#define SLURM_API_KNOWN "v0.0.40 to v0.0.45, v0.0.38 and v0.0.37"

#endif
