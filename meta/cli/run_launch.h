/* run_launch: a task of `nui run` on another of the job's nodes, by the program that the site has for that. */
#ifndef NUI_META_CLI_RUN_LAUNCH_H
#define NUI_META_CLI_RUN_LAUNCH_H

#include <stdint.h>

/* In a process of its own, which becomes the launcher ("qrsh -inherit": words), with the task's environment. Returns an exit
 * code where it cannot. */
int run_launch (const char *launcher, const char *node, uint32_t task, char **program);

#endif
