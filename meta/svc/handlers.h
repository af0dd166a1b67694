/* handlers: the methods of nui.meta.v1.Meta, one function each (submit.c, ask.c, hold.c, gridlicence.c,
 * report.c). */
#ifndef NUI_META_SVC_HANDLERS_H
#define NUI_META_SVC_HANDLERS_H

#include "meta/svc/metad.h"

/* The job, when it exists and the caller may see it. Another's job does not exist for a user. */
struct gridjob *job_of_request (struct metad *metad, const struct rpccall *call, const char *id,
                                struct err *err);

void on_submit (void *self, struct rpccall *call, const ProtobufCMessage *request);
void on_estimate (void *self, struct rpccall *call, const ProtobufCMessage *request);
void on_jobs (void *self, struct rpccall *call, const ProtobufCMessage *request);
void on_status (void *self, struct rpccall *call, const ProtobufCMessage *request);
void on_watch (void *self, struct rpccall *call, const ProtobufCMessage *request);
void on_cancel (void *self, struct rpccall *call, const ProtobufCMessage *request);
void on_hold (void *self, struct rpccall *call, const ProtobufCMessage *request);
void on_renew (void *self, struct rpccall *call, const ProtobufCMessage *request);
void on_sites (void *self, struct rpccall *call, const ProtobufCMessage *request);
void on_licences (void *self, struct rpccall *call, const ProtobufCMessage *request);
void on_whoami (void *self, struct rpccall *call, const ProtobufCMessage *request);
void on_report (void *self, struct rpccall *call, const ProtobufCMessage *request);

/* What a site says of a part, if it is news; the caller saves the job. */
int report_take (struct gridjob *job, uint32_t part, const JobInfo *info, bool *news,
                 struct err *err);

#endif
