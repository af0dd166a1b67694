/* embedded_kind: RMCFG TYPE=EMBEDDED. rm_kind.c has it in its table. */
#include "local/rm/rm_kind.h"

const struct rm_kind rm_embedded_kind = {
    .name = "EMBEDDED",
    .does = "runs the jobs itself",
    .bounds_output = true,
    .has_agents = true,
};
