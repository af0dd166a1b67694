/* The grid commands, in the order of `nui help`. Each is defined in its own file. */
#include "meta/cli/grid.h"

const struct cli_command *const meta_commands[] = {
    &submit_command,
    &coreserve_command,
    &estimate_command,
    &jobs_command,
    &status_command,
    &watch_command,
    &cancel_command,
    &jobhold_command,
    &jobrelease_command,
    &renew_command,
    &restage_command,
    &output_command,
    &licences_command,
    &sites_command,
    &whoami_command,
    &run_command,
    &fetch_command,
    &delegate_command,
    NULL,
};
