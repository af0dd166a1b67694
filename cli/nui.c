/* nui: the program that people run. It joins the commands of the parts that were built and does nothing else. */
#include <stddef.h>

#include "proto/cli/client.h"

int main (int argc, char **argv)
{
    static const struct cli_command *const *const tables[] = {
#ifdef NUI_HAVE_META_CLI
        meta_commands,
#endif
#ifdef NUI_HAVE_LOCAL_CLI
        local_commands,
#endif
#ifdef NUI_HAVE_BANK_CLI
        bank_commands,
#endif
#ifdef NUI_HAVE_SIM
        sim_commands,
#endif
        NULL,
    };
    const struct cli_command *const *links = NULL;
#ifdef NUI_HAVE_LOCAL_CLI
    links = local_commands;
#endif
    return cli_main (tables, links, argc, argv);
}
