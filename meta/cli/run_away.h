/* run_away: a task of `nui run` on another of the job's hosts, where nui-tasks waits for it. */
#ifndef NUI_META_CLI_RUN_AWAY_H
#define NUI_META_CLI_RUN_AWAY_H

#include <stdbool.h>

/* Whether the job's NUI_TASKS_FILE has that node. */
bool run_is_away (const char *node);
/* In a process of its own, with the task's environment: the program runs there, what it prints comes out here, and the
 * signals that this process gets go there. Returns its exit code; 126: it could not be started. */
int run_away (const char *node, char **program);

#endif
