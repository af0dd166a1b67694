/* metas: the metaschedulers that META of nui.cfg names: one, or the members of a group, any of which answers
 * for all. The one that answered last is asked; when it does not answer, the next, with the same request: what
 * one of a group has taken, another takes for the same (a job by its uuid).
 *
 * Of several, one is asked first whether it serves, for METAS_PROBE_US at most, so that one that hangs costs no
 * more than that. */
#ifndef NUI_CLI_METAS_H
#define NUI_CLI_METAS_H

#include "proto/rpc/rpcclient.h"

enum { METAS_MAX = 16 };
#define METAS_PROBE_US (3 * US_PER_S)
#define METAS_PATIENCE_US (60 * US_PER_S) /* for one to answer while a job is watched */

struct metas;

/* connect makes a client of a target; it is owned by the list from then on. */
typedef struct rpcclient *(*metas_connect_f) (void *arg, const char *target, struct err *err);
struct metas *metas_create (metas_connect_f connect, void *arg);
void metas_destroy (struct metas *metas); /* NULL is a no-op */
/* Kept by pointer. ERR_INVALID for what is no host:port or is there already, ERR_LIMIT. */
int metas_add (struct metas *metas, const char *target, struct err *err);
void metas_clear (struct metas *metas); /* before the first call */
uint32_t metas_count (const struct metas *metas);

/* As rpcclient_call and rpcclient_stream. Where none answers the error is the first one's, with how many there
 * are; where some do and do not know what is asked about, it says both. A stream that is lost is begun anew at the
 * next, until nobody has answered for METAS_PATIENCE_US. */
int metas_call (struct metas *metas, const ProtobufCServiceDescriptor *service, const char *method,
                const ProtobufCMessage *request, duration_us timeout, ProtobufCMessage **reply_out,
                struct err *err);
/* Of that one of them alone, what may be repeated: of several, one that does not serve costs METAS_PROBE_US. */
int metas_call_at (struct metas *metas, uint32_t at, const ProtobufCServiceDescriptor *service,
                   const char *method, const ProtobufCMessage *request, duration_us timeout,
                   ProtobufCMessage **reply_out, struct err *err);
/* Of what is not without effect: where none answers, and one may have heard it, the error says so. */
int metas_call_change (struct metas *metas, const ProtobufCServiceDescriptor *service,
                       const char *method, const ProtobufCMessage *request, duration_us timeout,
                       ProtobufCMessage **reply_out, struct err *err);
int metas_stream (struct metas *metas, const ProtobufCServiceDescriptor *service,
                  const char *method, const ProtobufCMessage *request,
                  void (*on_message) (void *arg, const ProtobufCMessage *message), void *arg,
                  struct err *err);

#endif
