/* spread: a job over several machines: which one its script runs on, what the others are to give, and how that stands in its
 * spec (jobdir.h): `agent=NODE` where the script's is another host, `part=NODE PROCS MEMORY` for each further one. Nodes that are
 * no other host are this machine. */
#ifndef NUI_LOCAL_RM_EMBEDDED_SPREAD_H
#define NUI_LOCAL_RM_EMBEDDED_SPREAD_H

#include "local/rm/embedded/agent.h"

/* The job's hosts, this machine's first: there its script runs if any of them is. */
struct spread {
    const char **host;
    uint32_t *tasks;
};
void spread_order (const struct agents *agents, const struct rm_job *job, struct spread *out);
void spread_free (struct spread *spread);
/* What of the job's processors and memory is for the script's machine. job: in order. */
void spread_share (const struct agents *agents, const struct rm_job *job, uint32_t *procs_out,
                   int64_t *memory_mb_out);
/* The lines of the spec; key: the job's directory, below parent. */
int spread_spec (const struct agents *agents, const struct rm_job *job, const char *parent,
                 const char *key, struct strbuf *spec, struct err *err);
/* The further ones that a spec names. The part's text holds during the call. 0, or the first answer that is not. */
int spread_parts_each (const char *spec, size_t len,
                       int (*fn) (void *arg, const struct agents_part *part), void *arg);

#endif
