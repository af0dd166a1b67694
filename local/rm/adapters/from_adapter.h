/* from_adapter: nui-local --from-NAME: a first configuration, as the adapter program of that resource manager makes it. */
#ifndef NUI_LOCAL_RM_FROM_ADAPTER_H
#define NUI_LOCAL_RM_FROM_ADAPTER_H

/* name: "gridengine". argv[0] is the option. Returns only when the program cannot be run: an exit code, after a sentence. */
int from_adapter_main (const char *name, int argc, char **argv);

#endif
