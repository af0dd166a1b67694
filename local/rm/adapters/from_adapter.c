/* from_adapter: becomes the adapter program of a resource manager, which prints a first configuration. main.c calls it. */
#include "local/rm/adapters/from_adapter.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "local/rm/program_path.h"
#include "proto/base/text.h"

int from_adapter_main (const char *name, int argc, char **argv)
{
    enum { WORDS_MAX = 16 };
    char file[64], path[4096], call[] = "firstconfig", *words[WORDS_MAX + 3] = {path, call};
    text_printf (file, sizeof file, "nui-%.50s", name);
    program_path (file, path, sizeof path);
    for (int i = 1; i < argc && i <= WORDS_MAX; i++)
        words[i + 1] = argv[i];
    execv (path, words);
    fprintf (stderr, "nui-local: %s: %s\n", path, strerror (errno));
    return 1;
}
