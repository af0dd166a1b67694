/* from_slurm: a first configuration for nui-local, from a Slurm that runs (nui-local --from-slurm).
 *
 * Read with scontrol and sacctmgr, since before there is a configuration there is no key for slurmrestd.
 * What has no counterpart is said in comments. */
#ifndef NUI_LOCAL_RM_FROM_SLURM_H
#define NUI_LOCAL_RM_FROM_SLURM_H

/* The rest of the command line. Returns the exit code: 0, 1 (Slurm could not be read), 2 (usage). */
int from_slurm_main (int argc, char **argv);

#endif
