/* program_path: where a program of ours is that no user calls. */
#ifndef NUI_LOCAL_RM_PROGRAM_PATH_H
#define NUI_LOCAL_RM_PROGRAM_PATH_H

#include <stddef.h>

/* Beside this program (a build), in rm/ below it (a build tree), else where it was installed. */
void program_path (const char *name, char *out, size_t cap);

#endif
