/* forward: what is asked about a job that another of the group leads is asked there, and the answer handed on.
 *
 * The member that a user asks lets him in or not, as for its own jobs; the one that leads the job takes its word. A
 * request goes on once: who is asked by another and does not lead the job either refuses, and the user asks again. */
#ifndef NUI_META_LEAD_FORWARD_H
#define NUI_META_LEAD_FORWARD_H

#include "meta/job/job.h"
#include "meta/link/link.h"

typedef Nui__Meta__V1__PeerRequest PeerRequest;

/* Whether the job is led here. If not, the call is taken: request, whose number is filled in, goes to who leads it,
 * as that method of nui.meta.v1.Peers (with the reply that the call wants); or it is refused. */
bool forward_not (struct gridjob *job, const char *method, PeerRequest *request, bool forwarded,
                  struct rpccall *call);
/* The same of one of an array, which must be led elsewhere: the answer comes to done. */
void forward_send (struct gridjob *job, const char *method, PeerRequest *request, link_done_fn done,
                   void *arg);
/* What another of the group asks about. NULL: the call is refused. */
struct gridjob *forward_job (struct metad *metad, struct rpccall *call, const PeerRequest *request);

#endif
