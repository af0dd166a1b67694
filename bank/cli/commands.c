/* The bank's commands, in the order of `nui help`. Each is defined in its own file. */
#include "bank/cli/util.h"

const struct cli_command *const bank_commands[] = {
    &balance_command,  &statement_command, &quote_command,      &usage_command,
    &hold_command,     &charge_command,    &deposit_command,    &withdraw_command,
    &transfer_command, &refund_command,    &funder_command,     &grant_command,
    &split_command,    &role_command,      &allocation_command, &project_command,
    &user_command,     &account_command,   &freeze_command,     &unfreeze_command,
    &site_command,     &rate_command,      &reconcile_command,  &anchor_command,
    &verify_command,   &clock_command,     &proof_command,      NULL,
};
