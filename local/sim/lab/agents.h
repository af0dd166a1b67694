/* agents: users who answer to what happens to their jobs (Bode et al. 2000, section 7). Pure given
 * the seed; a source of jobs for the engine.
 *
 * - a developer sends one debug job after another in working hours (Monday to Friday, 9 to 18),
 * each a little after the last one ended;
 * - a heavy user keeps two long, wide jobs in the system, day and night;
 * - a gap filler looks every ten minutes at what is free now and for how long (showbf), and sends a
 * job that fits just there; one at a time.
 *
 * They go on until the machine has done `work_proc_h` of processor-hours, or `until_s` has come. */
#ifndef NUI_LOCAL_SIM_LAB_AGENTS_H
#define NUI_LOCAL_SIM_LAB_AGENTS_H

#include "local/sim/engine.h"

enum agent_kind { AGENT_DEVELOPER, AGENT_HEAVY, AGENT_FILLER, AGENT_KINDS };
extern const char *const agent_kind_name[AGENT_KINDS];

enum { AGENTS_MAX = 64, AGENTS_JOBS_MAX = 200000, AGENTS_JOBS_TYPICAL = 2000 };

struct agents_options {
    uint64_t seed;
    uint32_t count[AGENT_KINDS]; /* together at most AGENTS_MAX */
    double work_proc_h;          /* > 0 */
    double until_s;              /* > 0 */
};

struct agents;

struct agents *agents_create (const struct agents_options *options, struct cred_names *names,
                              int64_t procs);
void agents_destroy (struct agents *agents); /* NULL is a no-op */
/* The array for engine_run, owned by agents; *cap_out its length. */
struct engine_job *agents_jobs (struct agents *agents, uint64_t *cap_out);
struct engine_source agents_source (struct agents *agents);
uint64_t agents_count (const struct agents *agents);                     /* jobs made so far */
enum agent_kind agents_of (const struct agents *agents, uint64_t index); /* who made job index */
uint64_t agents_key (const struct agents_options *options);

#endif
