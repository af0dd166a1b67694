/* jobstage: the files of a signed component that are brought to its site and taken away. Pure.
 *
 * What client, metascheduler and site hold a list of transfers to: at most JOB_TRANSFERS_MAX each
 * way; URLs and paths as stagespec.h has them; of what is brought in no path twice, none inside
 * another, and none that the site itself writes. */
#ifndef NUI_RPC_JOBSTAGE_H
#define NUI_RPC_JOBSTAGE_H

#include <stdint.h>

#include "proto/base/err.h"
#include "proto/nui/v1/common.pb-c.h"

enum { JOB_TRANSFERS_MAX = 64 };

/* ERR_INVALID or ERR_LIMIT: one sentence that names the component and what is wrong. */
int jobstage_check (const Nui__Common__V1__Component *component, struct err *err);
#endif
