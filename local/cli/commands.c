/* Maui's commands, in the order of `nui help`. Each is defined in its own file. */
#include "local/cli/stats_cli.h"

const struct cli_command *const local_commands[] = {
    &showq_command,       &checkjob_command,    &canceljob_command,  &showbf_command,
    &showstart_command,   &checknode_command,   &showres_command,    &setres_command,
    &releaseres_command,  &showstate_command,   &sethold_command,    &releasehold_command,
    &setspri_command,     &runjob_command,      &mjobctl_command,    &setqos_command,
    &mnodectl_command,    &changeparam_command, &msub_command,       &schedctl_command,
    &diagnose_command,    &showstats_command,   &showgrid_command,   &profiler_command,
    &resetstats_command,  &showaudit_command,   &showconfig_command, &showhold_command,
    &setdeadline_command, &mdiag_command,       &mrsvctl_command,    NULL,
};
