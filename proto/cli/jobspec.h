/* jobspec: a job as people write it (options, directives in the script, a JSON file) into the
 * nui.common.v1.Job message.
 *
 * Every source goes through jobspec_set, keyed by the long option's name, so that all of them mean
 * the same. What is set outside a component is the default of every component. A value given
 * earlier stays: read the command line first, then the file, then the script's directives.
 * All memory lives in the arena given at creation. */
#ifndef NUI_CLI_JOBSPEC_H
#define NUI_CLI_JOBSPEC_H

#include <stdio.h>

#include "proto/base/arena.h"
#include "proto/base/quantity.h"
#include "proto/nui/v1/common.pb-c.h"

enum { JOBSPEC_COMPONENTS_MAX = 64, JOBSPEC_SCRIPT_MAX = 512 * 1024, JOBSPEC_LIST_MAX = 1024 };

enum { JOB_VALID_MAX_DAYS = 30 }; /* of a signature, and its default */

struct jobspec;

struct jobspec *jobspec_create (struct arena *arena, time_us now);

/* Where the files that travel with the job are noted when it is built (inputs.h). */
struct inputs;
void jobspec_inputs (struct jobspec *spec, struct inputs *inputs);

/* A component without a wallclock limit gets the site's default: its walltime_us is 0. */
void jobspec_walltime_optional (struct jobspec *spec);

/* One setting of the whole job or, for the keys a component may have, of every component. Keys:
 * account name after start-by deadline valid prefer depend flags hold max-cost quote retries retry-on retry-delay
 * on-site-loss on-failure notify mail mail-to array env-all (job); tasks trl nodes tpn procs-per-task mem (also mem-per-proc, mem-per-node,
 * mem-per-job) swap disk (disk-per-node) gres (gres-per-node, gres-per-job; gpus, gpus-per-node,
 * gpus-per-task) time features like site qos class output error env script offset licence partition nodeset hosts
 * exclude node-access procs-max chdir signal req input stage-in stage-out (component); component (a whole component string).
 * ERR_INVALID names the key and what was wrong; ERR_NOT_FOUND: no such key. */
int jobspec_set (struct jobspec *spec, const char *key, const char *value, struct err *err);

/* "left:site=alpha,tasks=2,time=60"; a piece without '=' continues the value before it. */
int jobspec_component (struct jobspec *spec, const char *text, struct err *err);

/* {"account": …, "script": …, "args": […], "components": [{"name": …, …}]} with jobspec_set's keys;
 * lists as arrays or comma-separated text. */
int jobspec_json (struct jobspec *spec, const char *path, struct err *err);

/* The script of components that name none, and its arguments. Reads the file. */
int jobspec_script (struct jobspec *spec, const char *path, char *const *args, int arg_count,
                    struct err *err);

/* In place of a script file: a command of the shell, and a name for the job that has none. Before the directives.
 * ERR_INVALID: there is a script as well, or nothing to run. */
int jobspec_wrap (struct jobspec *spec, const char *command, struct err *err);

/* What qsub's -l says: "nodes=2:ppn=4,walltime=1:00:00,pmem=512mb". Notes as jobspec_directives. */
int jobspec_resources (struct jobspec *spec, const char *list, FILE *note, struct err *err);

/* Applies the directives of the script read before: #NUI, or, where there are none, #SBATCH, #PBS and
 * #MSUB. One that cannot be had here is refused (ERR_INVALID, with the line); one that changes nothing that is
 * computed, and not where, passes with a note (NULL: silently). */
int jobspec_directives (struct jobspec *spec, FILE *note, struct err *err);

/* What --array, a file or a directive says; NULL: it is one job. */
const char *jobspec_array (const struct jobspec *spec);

/* The message, in the arena; grid, submitter, uuid and times are the caller's to fill. Checks what
 * needs the whole (a walltime, a script unless script_optional, unique component names). */
int jobspec_build (struct jobspec *spec, bool script_optional, Nui__Common__V1__Job **job_out,
                   struct err *err);

#endif
