/* lead: who of a group of coordinators leads a job, and what a majority of them has of it.
 *
 * Every job of a group is on the disk of every member, row by row (store/jobrows.h), under the one number that it has
 * everywhere: any of them shows it. One leads it, at first the one to which it was submitted: it alone acts on it,
 * and only on what a majority has on disk (core/quorum.h): a Submit is acknowledged, and a site is asked for
 * something, when the votes are there. So whoever takes over from a leader that is silent knows of everything that
 * may have left, and goes on from there as after a restart: for a co-allocation that was not decided the record
 * says so, and it is aborted and tried again; an ordinary job is given once more to the site to which it was given, which
 * knows the two as one, and asked for. A higher ballot at the members and a higher epoch at the sites shut out the
 * earlier leader; it hears of it when it asks for votes, or of a beat, and shows the job as the others do. An end is
 * told to nobody before a majority has it: until then another may take the job over and go on with it.
 *
 * Without a group job->lead is NULL, as for jobs that are older than the group: those are their owner's alone. */
#ifndef NUI_META_LEAD_LEAD_H
#define NUI_META_LEAD_LEAD_H

#include "meta/job/job.h"

/* ---- of a job */

/* The others have an envelope that is not this one. */
void lead_envelope_changed (struct gridjob *job);
/* Whether what is on disk may be acted on now. If not, its driver is called when it may. */
bool lead_may_send (struct gridjob *job);
/* Calls done once, perhaps at once: with its number when a majority has what is on disk now; with another's that was
 * made of the same signed job, of which a majority has had some state; with 0 when this is not to be known any more
 * (another leads it, or the metascheduler stops). The job may be gone then. */
void lead_then (struct gridjob *job, void (*done) (void *arg, uint64_t as), void *arg);
/* Those that are led here, in the arena. */
struct gridjob **lead_hidden (const struct metad *metad, struct arena *arena, uint32_t *count);
/* Has what has ended here, and was not told when the metascheduler stopped, voted for. */
int lead_recover (struct metad *metad, struct err *err);

/* ---- of the group */

/* Asks for promises; when a majority has given them, it is led here. */
void lead_take (struct metad *metad, uint64_t number);
/* Methods of nui.meta.v1.Peers. */
void lead_on_vote (void *self, struct rpccall *call, const ProtobufCMessage *message);
void lead_on_beat (void *self, struct rpccall *call, const ProtobufCMessage *message);
void lead_on_over (void *self, struct rpccall *call, const ProtobufCMessage *message);
void lead_on_state (void *self, struct rpccall *call, const ProtobufCMessage *message);

/* The first before the second. */
extern const struct metad_part lead_part, lead_beat_part;

/* The decision log of a group: what is proposed is decided, since nothing of it leaves before a majority has the
 * record that says so. */
struct decision_log lead_decisions (void);

#endif
