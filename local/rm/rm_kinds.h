/* rm_kinds: one line for each resource manager, the default first. NAME/ has its rm_NAME_kind, and rm_NAME_open. */
#ifndef NUI_LOCAL_RM_RM_KINDS_H
#define NUI_LOCAL_RM_RM_KINDS_H

#define RM_KINDS(EACH)                                                                             \
    EACH (embedded)                                                                                \
    EACH (slurm)                                                                                   \
    EACH (native)                                                                                  \
    EACH (wiki)

#endif
