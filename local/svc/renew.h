/* renew: RENEW of nui.local.v1: a later delegation for a job that waits here. */
#ifndef NUI_LOCAL_SVC_RENEW_H
#define NUI_LOCAL_SVC_RENEW_H

#include "local/svc/replay.h"

void renew_handle (void *svc, struct rpccall *call, const ProtobufCMessage *request);

#endif
