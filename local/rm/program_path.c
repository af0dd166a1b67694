/* program_path: finds nui-supervise and the adapter programs, for whoever runs them. */
#include "local/rm/program_path.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

void program_path (const char *name, char *out, size_t cap)
{
    static const char *const places[] = {"", "rm/"};
    char self[2048];
    ssize_t n = readlink ("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = 0;
    char *slash = strrchr (self, '/');
    for (size_t i = 0; slash && i < sizeof places / sizeof *places; i++) {
        snprintf (out, cap, "%.*s/%s%s", (int)(slash - self), self, places[i], name);
        if (access (out, X_OK) == 0)
            return;
    }
    snprintf (out, cap, "%s/%s", NUI_LIBEXECDIR, name);
}
