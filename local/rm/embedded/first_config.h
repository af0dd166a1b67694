/* first_config: a first configuration for nui-local on this machine alone (nui-local --init), commented, with the
 * client's beside it. Nothing that is there is overwritten. */
#ifndef NUI_LOCAL_RM_FIRST_CONFIG_H
#define NUI_LOCAL_RM_FIRST_CONFIG_H

/* The rest of the command line. Returns the exit code: 0, 1 (could not be written), 2 (usage). */
int first_config_main (int argc, char **argv);

#endif
