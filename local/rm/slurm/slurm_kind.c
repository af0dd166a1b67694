/* slurm_kind: what RMCFG TYPE=SLURM needs. rm_kind.c has it in its table. */
#include "local/rm/rm_kind.h"
#include "proto/base/quantity.h"

#include <string.h>

static int check (const struct rm_options *options, struct err *err)
{
    if (!options->server)
        return err_set (err, ERR_INVALID, "RMCFG: TYPE=SLURM needs SERVER, slurmrestd's address");
    if (!options->key == !options->token)
        return err_set (
            err, ERR_INVALID,
            "RMCFG: TYPE=SLURM needs either KEY, the file of Slurm's jwt_key, or TOKEN, "
            "a file with a token that you renew");
    if (options->usage && !options->sacct)
        return err_set (err, ERR_INVALID, "RMCFG: USAGE is asked of sacct: it needs SACCT=TRUE");
    if (options->classes && (!*options->classes || strpbrk (options->classes, " \t\"'")))
        return err_set (err, ERR_INVALID, "RMCFG CLASSES: wanted partitions of Slurm's, as a,b");
    int rc = name_check ("RMCFG USER", options->user, err);
    return rc == 0 ? name_check ("RMCFG PARTITION", options->partition, err) : rc;
}

const struct rm_kind rm_slurm_kind = {
    .name = "SLURM",
    .does = "has Slurm run them",
    .has_nodes = true,
    .dedicates = true, /* its free memory is without what the kernel's caches would give back */
    .check = check,
};
