/* slurm_jwt: the token that slurmrestd wants: a JWT signed with HS256 and Slurm's own key. */
#ifndef NUI_LOCAL_RM_SLURM_JWT_H
#define NUI_LOCAL_RM_SLURM_JWT_H

#include "proto/base/err.h"
#include "proto/base/quantity.h"

enum { SLURM_JWT_KEY_MAX = 4096, SLURM_JWT_MAX = 1024 };

/* Signs {"iat":now,"exp":now+life,"sun":user}; user: a plain login name. ERR_INVALID, ERR_IO. */
int slurm_jwt_make (const void *key, size_t key_len, const char *user, time_us now,
                    duration_us life, char out[SLURM_JWT_MAX], struct err *err);

#endif
