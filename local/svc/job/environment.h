/* environment: what a job is told of itself when it is launched: its variables, and the names of its output files. */
#ifndef NUI_LOCAL_SVC_JOB_ENVIRONMENT_H
#define NUI_LOCAL_SVC_JOB_ENVIRONMENT_H

#include "local/svc/job/jobspec.h"

/* Fills rm's variables: those of the user, the NUI_ ones, and, where the script speaks to Slurm or to PBS (a #SBATCH or
 * #PBS line, or a variable of theirs is in it), the variables that these set. rm has its hosts already. In svc->call_arena. */
void environment_set (struct svc *svc, struct site_job *job, const struct jobspec *spec,
                      struct rm_job *rm);

/* "%x-%j.out" as Slurm reads it: %j the job's number at this site (also %J), %A the array's number, %a its index there,
 * %x the job's name, %u the account, %N the first host, %n and %t 0, %% a percent sign; a number between is the least
 * width. Other signs stay. In svc->call_arena; "" stays "". */
const char *environment_file (const struct svc *svc, const struct site_job *job,
                              const struct jobspec *spec, const struct rm_job *rm,
                              const char *pattern);

#endif
