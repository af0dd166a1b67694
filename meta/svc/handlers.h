/* handlers: the methods of nui.meta.v1.Meta, one function each (submit.c, ask.c, hold.c, restage.c,
 * gridlicence.c, report.c). */
#ifndef NUI_META_SVC_HANDLERS_H
#define NUI_META_SVC_HANDLERS_H

#include "meta/job/hub.h"
#include "proto/job/element.h"

/* The job, when it exists and the caller may see it. Another's job does not exist for a user. NULL: the call is
 * refused. */
struct gridjob *job_of_request (struct metad *metad, struct rpccall *call, const char *id);
/* The same where a whole array may be meant, or several of it: then any of it, and *array_out. */
struct gridjob *job_or_array (struct metad *metad, struct rpccall *call, const char *text,
                              struct element_id *id, bool *array_out);

void on_submit (void *self, struct rpccall *call, const ProtobufCMessage *request);
void on_estimate (void *self, struct rpccall *call, const ProtobufCMessage *request);
void on_jobs (void *self, struct rpccall *call, const ProtobufCMessage *request);
void on_status (void *self, struct rpccall *call, const ProtobufCMessage *request);
void on_watch (void *self, struct rpccall *call, const ProtobufCMessage *request);
void on_cancel (void *self, struct rpccall *call, const ProtobufCMessage *request);
void on_hold (void *self, struct rpccall *call, const ProtobufCMessage *request);
void on_renew (void *self, struct rpccall *call, const ProtobufCMessage *request);
/* Of another of the group, for a user whom it has let in: methods of nui.meta.v1.Peers (forward.h). */
void on_peer_cancel (void *self, struct rpccall *call, const ProtobufCMessage *request);
void on_peer_hold (void *self, struct rpccall *call, const ProtobufCMessage *request);
void on_peer_renew (void *self, struct rpccall *call, const ProtobufCMessage *request);
/* inputs.c: what users send beside their jobs, and sites ask for. */
void on_put (void *self, struct rpccall *call, const ProtobufCMessage *request);
void on_content (void *self, struct rpccall *call, const ProtobufCMessage *request);
int inputs_open (struct metad *metad, const char *state_dir, struct err *err);
void inputs_reconfigure (struct metad *metad);
/* Whether all of it is here. ERR_NOT_FOUND: it may come yet. */
int inputs_here (struct metad *metad, const JobMessage *job, const char *submitter,
                 struct err *err);
extern const struct metad_part inputs_part;
void on_restage (void *self, struct rpccall *call, const ProtobufCMessage *request);
void on_sites (void *self, struct rpccall *call, const ProtobufCMessage *request);
void on_whoami (void *self, struct rpccall *call, const ProtobufCMessage *request);
void on_report (void *self, struct rpccall *call, const ProtobufCMessage *request);

/* Asks sites for what they told another that led the job. */
extern const struct metad_part report_part;
/* Tells sites the delegations of jobs that they have. */
extern const struct metad_part renew_part;

#endif
