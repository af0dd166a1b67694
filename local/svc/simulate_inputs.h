/* simulate_inputs: a simulation's log and machine, as the settings ask for them. */
#ifndef NUI_LOCAL_SVC_SIMULATE_INPUTS_H
#define NUI_LOCAL_SVC_SIMULATE_INPUTS_H

#include "local/sim/workload.h"
#include "local/svc/settings.h"

/* Reads SIMWORKLOADTRACEFILE and SIMRESOURCETRACEFILE and applies what the SIM parameters say of
 * them: settings->workload (job numbers are the log's own where it has numbers; NULL without a log)
 * and, with a resource trace, settings->nodes. Times of a log without dates count from 1 January
 * 2000. Errors name file and line. */
int simulate_inputs_read (struct settings *settings, struct cred_names *names, struct err *err);

#endif
