/* mistake: what the user got wrong in a job's script, as a sentence: the job has failed then, at once, while what
 * the site got wrong is tried again. Links nothing but libc (nui-supervise). */
#ifndef NUI_LOCAL_RM_MISTAKE_H
#define NUI_LOCAL_RM_MISTAKE_H

#include <stdbool.h>
#include <stddef.h>

enum { MISTAKE_TEXT_MAX = 250 };

/* Of the script as such, wherever it runs. False: none that can be seen. */
bool mistake_of_script (const void *script, size_t len, char out[MISTAKE_TEXT_MAX]);
/* Why "script" in dir (AT_FDCWD: the working directory) was not executed, as the account that asks can see it; number
 * is errno. False: not by its own fault, or not known to be. */
bool mistake_of_exec (int dir, int number, char out[MISTAKE_TEXT_MAX]);
/* Why where it was to start could not be entered. */
bool mistake_of_directory (int number, const char *path, char out[MISTAKE_TEXT_MAX]);
/* As mistake_of_exec, where a script of jobdir_shell_run was to execute it and ended with 126 or 127. */
bool mistake_of_shell (int dir, int exit_code, char out[MISTAKE_TEXT_MAX]);
/* Why its output file could not be opened. */
bool mistake_of_output (int number, const char *name, char out[MISTAKE_TEXT_MAX]);

#endif
