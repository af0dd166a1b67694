/* settings_i: what the sources of settings share. Private to local/conf. */
#ifndef NUI_LOCAL_CONF_SETTINGS_I_H
#define NUI_LOCAL_CONF_SETTINGS_I_H

#include "local/conf/settings.h"

/* settings.c: the site's own parameters, of a struct settings. */
extern const struct conf_param settings_params[];

/* settings_bank.c: AMCFG's attributes. */
extern const struct conf_param settings_am_attrs[];
void settings_am_init (struct settings_am *am);
/* BANKFALLBACKACCOUNT, of a struct settings. */
int settings_am_bank_fallback (void *target, const struct conf_value *value, struct err *err);
/* BANKDEFERJOBONFAILURE, likewise; of it and AMCFG the later line counts. */
int settings_am_bank_defer (void *target, const struct conf_value *value, struct err *err);

/* settings_grid.c: GRIDCFG's. */
extern const struct conf_param settings_grid_attrs[];
/* ERR_INVALID for an entry that can be no name. */
int settings_grid_check (const struct settings_grid *grid, struct err *err);

/* settings_mode.c, of a struct settings_mode. */
extern const struct conf_param settings_mode_params[];
/* What belongs together, once the mode is known. nodes: how many NODECFG gives. */
int settings_mode_check (const struct settings_mode *mode, uint32_t nodes, struct err *err);

/* settings_stage.c, of a struct settings_stage. */
extern const struct conf_param settings_stage_params[];

/* settings_traces.c: reads SIMWORKLOADTRACEFILE and SIMRESOURCETRACEFILE and applies what the SIM parameters say of them:
 * settings->workload (job numbers are the log's own where it has numbers; NULL without a log) and, with a resource trace,
 * settings->nodes. Times of a log without dates count from 1 January 2000. Errors name file and line. */
int settings_traces_read (struct settings *settings, struct cred_names *names, struct err *err);

/* settings_warn.c: notes of the conf, with file and line: names that nothing defines (QoS, accounts, classes, nodes), values that
 * stand against each other or have no effect beside others. For --check, start and reload alike. */
void settings_warn (struct conf *conf, const struct settings *settings);

/* place_check.c: makes the nodes of NODECFG and what the policy says of them for once: what cannot be made is a fault of the
 * conf, with its line, and the first is err. */
int settings_place_check (struct conf *conf, const struct settings *settings, struct err *err);

#endif
