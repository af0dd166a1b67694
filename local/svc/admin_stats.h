/* admin_stats: nui.local.v1.Stats.
 *
 *   admin_stats.c    sums by credential, node, size; the whole system; beginning anew
 *   admin_profile.c  reports over the history and the audit log, in pieces
 *   admin_runs.c     what the bank was told of each run */
#ifndef NUI_LOCAL_SVC_ADMIN_STATS_H
#define NUI_LOCAL_SVC_ADMIN_STATS_H

#include "local/store/history.h"
#include "local/svc/admin.h"
#include "local/svc/admin_stream.h"
#include "proto/nui/v1/stats.pb-c.h"

/* Adds the service to the daemon's server. */
int admin_stats_serve (struct svc *svc, struct err *err);

void stats_sums_fill (const struct stats_sums *sums, Nui__Local__V1__JobSums *out);

void admin_stats_summary (void *self, struct rpccall *call, const ProtobufCMessage *request);
void admin_stats_sums (void *self, struct rpccall *call, const ProtobufCMessage *request);
void admin_stats_nodes (void *self, struct rpccall *call, const ProtobufCMessage *request);
void admin_stats_grid (void *self, struct rpccall *call, const ProtobufCMessage *request);
void admin_stats_reset (void *self, struct rpccall *call, const ProtobufCMessage *request);
void admin_stats_scheduler (void *self, struct rpccall *call, const ProtobufCMessage *request);
void admin_stats_estimates (void *self, struct rpccall *call, const ProtobufCMessage *request);
void admin_stats_profile (void *self, struct rpccall *call, const ProtobufCMessage *request);
void admin_stats_runs (void *self, struct rpccall *call, const ProtobufCMessage *request);
void admin_stats_audit (void *self, struct rpccall *call, const ProtobufCMessage *request);

#endif
