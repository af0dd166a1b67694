/* nui: the program that people run. It joins the commands of the parts that were built and does nothing else. */
#include <stddef.h>

#include "proto/cli/client.h"

enum { LINKS_MAX = 128 };

/* Commands that are installed under their own names, too. */
static void links_add (const struct cli_command *links[], size_t *count,
                       const struct cli_command *const *commands)
{
    for (; *commands && *count < LINKS_MAX; commands++)
        links[(*count)++] = *commands;
}

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
        bank_commands,  mam_commands,
#endif
#ifdef NUI_HAVE_SIM
        sim_commands,
#endif
        NULL,
    };
    const struct cli_command *links[LINKS_MAX + 1];
    size_t count = 0;
#ifdef NUI_HAVE_LOCAL_CLI
    links_add (links, &count, local_commands);
#endif
#ifdef NUI_HAVE_BANK_CLI
    links_add (links, &count, mam_commands);
#endif
    links[count] = NULL;
    return cli_main (tables, links, argc, argv);
}
