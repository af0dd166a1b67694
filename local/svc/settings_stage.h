/* settings_stage: STAGE…, how a site moves the files of jobs (local/stage/stage.h). */
#ifndef NUI_LOCAL_SVC_SETTINGS_STAGE_H
#define NUI_LOCAL_SVC_SETTINGS_STAGE_H

#include "local/stage/stage.h"
#include "proto/conf/conf.h"

enum { SETTINGS_STAGE_LIST_MAX = 256 };

struct settings_stage_list {
    const char *item[SETTINGS_STAGE_LIST_MAX];
    uint32_t count;
};

/* Strings are the conf's. 0 and NULL: as stage.h says. */
struct settings_stage {
    struct settings_stage_list roots; /* STAGEROOT */
    struct settings_stage_list hosts; /* STAGEHOSTS */
    const char *credentials, *known_hosts, *ca;
    int64_t transfers, host_transfers, tries;
    int64_t file_mb, keep_free_mb, s3_part_mb;
    int64_t bandwidth; /* bytes per second */
    int64_t rate_min;  /* bytes per second */
    duration_us patience, time_max;
};

extern const struct conf_param settings_stage_params[];

/* Without state_dir. Points into settings. */
struct stage_config settings_stage_config (const struct settings_stage *settings);

#endif
