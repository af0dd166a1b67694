/* slurm_open: what was configured, as the adapter wants it. rm_open.c calls it. */
#include "local/rm/rm_kind.h"
#include "local/rm/slurm/rm_slurm.h"

int rm_slurm_open (const struct rm_config *config, struct rm *out, struct err *err)
{
    const struct rm_options *options = config->options;
    struct rm_slurm_config slurm = {
        .base = config->base,
        .log = config->log,
        .watch = config->watch,
        .server = options->server,
        .key_file = options->key,
        .token_file = options->token,
        .user = options->user,
        .partition = options->partition,
        .classes = options->classes,
        .slurm_conf = options->conf,
        .bin_dir = options->bin,
        .completions = options->completions,
        .sacct = options->sacct,
        .usage = options->usage,
        .since = config->since,
        .site = options->mirror || options->classes ? config->site : NULL,
        .observe = config->observe,
        .poll = options->poll,
        .patience = options->patience,
        .token_life = options->token_life,
        .job_dir = config->job_dir,
        .on_event = config->on_event,
        .arg = config->arg,
    };
    return rm_slurm_create (&slurm, out, err);
}
