/* settings_mode: SERVERMODE, SCHEDCFG[x] MODE and the SIM parameters (Maui's guide, chapter 16). */
#ifndef NUI_LOCAL_SVC_SETTINGS_MODE_H
#define NUI_LOCAL_SVC_SETTINGS_MODE_H

#include "proto/conf/conf.h"

enum server_mode { MODE_NORMAL, MODE_TEST, MODE_INTERACTIVE, MODE_SIMULATION };

/* SIMJOBSUBMISSIONPOLICY: jobs come at the times of the log; so that so many wait; so that so many
 * processor-seconds wait. */
enum sim_submission { SIM_NORMAL, SIM_CONSTANTJOBDEPTH, SIM_CONSTANTPSDEPTH };

enum sim_flag { SIM_IGNCLASS = 1, SIM_IGNQOS = 2, SIM_IGNFEATURES = 4 };

struct settings_sim {
    const char *workload; /* SIMWORKLOADTRACEFILE; NULL: jobs come by msub only */
    const char *resources; /* SIMRESOURCETRACEFILE; NULL: NODECFG's nodes */
    int submission;
    int64_t initial_depth;
    int64_t stop_iteration; /* -1: runs on */
    int64_t exit_iteration; /* -1: none */
    bool auto_shutdown;     /* ends when nothing is left to simulate */
    int64_t time_ratio;     /* simulated seconds per second; 0: as fast as it goes */
    int64_t wc_accuracy;    /* percent of its limit that a job runs; 0: as the log says */
    int64_t wc_scaling;     /* percent of the log's limits */
    int64_t node_count;     /* only the first so many; 0: all */
    unsigned flags;         /* enum sim_flag */
};

struct settings_mode {
    int mode;      /* enum server_mode */
    bool mode_set; /* by the file */
    const char *production; /* STATEDIR of the scheduler that TEST follows; NULL: none */
    struct settings_sim sim;
};

const char *server_mode_name (int mode);
/* "SIMULATION"; ERR_INVALID names the four. */
int server_mode_parse (const char *text, int *out, struct err *err);
int settings_mode_read (struct conf *conf, struct settings_mode *out, struct err *err);
/* What belongs together, once the mode is known. nodes: how many NODECFG gives. */
int settings_mode_check (const struct settings_mode *mode, uint32_t nodes, struct err *err);

#endif
