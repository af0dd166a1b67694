/* embedded_open: where the supervisor is, what the cgroup is called, and which nodes are other hosts. rm_open.c calls it. */
#include <stdio.h>

#include "local/rm/embedded/rm_embedded.h"
#include "local/rm/program_path.h"
#include "local/rm/rm_kind.h"

/* Two sites of one name on a machine (two grids of a test) must not kill each other's jobs. */
void rm_embedded_group (const char *prefix, const char *site, const char *job_dir, char *out,
                        size_t cap)
{
    uint32_t hash = 2166136261u;
    for (const char *c = job_dir; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 16777619u;
    snprintf (out, cap, "%s-%s-%08x", prefix, site, hash);
}

int rm_embedded_open (const struct rm_config *config, struct rm *out, struct err *err)
{
    char supervise[4096], group[96];
    if (config->supervise)
        snprintf (supervise, sizeof supervise, "%s", config->supervise);
    else
        program_path ("nui-supervise", supervise, sizeof supervise);
    rm_embedded_group ("nui", config->site, config->job_dir, group, sizeof group);
    struct rm_embedded_config embedded = {
        .base = config->base,
        .log = config->log,
        .watch = config->watch,
        .job_dir = config->job_dir,
        .supervise_path = supervise,
        .kill_grace = config->kill_grace,
        .output_max_mb = config->output_max_mb,
        .cgroups = config->cgroups,
        .cgroup_name = group,
        .site = config->site,
        .id = config->id,
        .agent = config->agent,
        .agent_count = config->agent_count,
        .health = config->health,
        .on_event = config->on_event,
        .arg = config->arg,
    };
    return rm_embedded_create (&embedded, out, err);
}
