/* slurm_token: the token that each request to slurmrestd carries: signed here with Slurm's own key, or read from a file
 * that the site renews by its own means (scontrol token). */
#ifndef NUI_LOCAL_RM_SLURM_TOKEN_H
#define NUI_LOCAL_RM_SLURM_TOKEN_H

#include "proto/base/err.h"
#include "proto/base/quantity.h"

struct slurm_token;

/* key_file or token_file is NULL. life: of a token that is signed here. */
struct slurm_token *slurm_token_create (const char *key_file, const char *token_file,
                                        const char *user, duration_us life, struct err *err);
void slurm_token_destroy (struct slurm_token *token);
/* A good one; it holds until the next call. NULL: ERR_DENIED (the file's has expired, or is none), ERR_IO. */
const char *slurm_token_get (struct slurm_token *token, time_us now, struct err *err);
/* What to look at where slurmrestd refuses it. */
const char *slurm_token_doubt (const struct slurm_token *token);

#endif
