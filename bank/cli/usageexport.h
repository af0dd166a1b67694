/* usageexport: what was charged and given back in a period, record by record, in the formats of other systems. */
#ifndef NUI_BANK_CLI_USAGEEXPORT_H
#define NUI_BANK_CLI_USAGEEXPORT_H

#include "bank/cli/util.h"

/* A form of nui usage: --format. Returns enum cli_exit. */
int usage_export (struct cli_context *ctx, const struct cli_said *said);

#endif
