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
#ifndef NUI_META_SVC_LEAD_H
#define NUI_META_SVC_LEAD_H

#include "meta/store/votes.h"
#include "meta/svc/job.h"

struct lead_wait;

struct joblead {
    char leader[COALLOC_NAME_MAX];
    bool open;                       /* as on disk: no majority is known to have its end */
    Nui__Meta__V1__GridJobState before; /* the state before its end */
    /* Of one that is led here. Not durable but for the ballot. */
    uint64_t ballot;
    uint64_t voted;                  /* what a majority has */
    bool stands;                     /* a majority has had some state of it; on disk */
    uint64_t has[QUORUM_MEMBERS_MAX]; /* which version each has at this ballot */
    uint32_t sending, paused;        /* members, as bits: asked; not again before the next tick */
    uint32_t whole;                  /* that have its envelope */
    uint32_t elsewhere;              /* where what was signed is another job */
    bool listed;                     /* in peers->unvoted */
    bool blocked;                    /* its driver is to be called when it may send */
    struct gridjob *prev, *next;
    struct lead_wait *waits;
    /* Taken over: what its sites said before has to be asked for, once. */
    bool taken;
    uint32_t asked_attempt;          /* an ordinary one: of which it is known */
};

/* ---- of a job */

bool lead_is_elsewhere (const struct gridjob *job);
/* Whether it was submitted to this member. */
bool lead_is_own (const struct gridjob *job);
/* What the sites compare: grows with each leader, and each start of one. */
uint64_t lead_epoch (const struct gridjob *job);
/* In the transaction that inserts, changes or loads it. */
int lead_begin (struct gridjob *job, struct err *err);
int lead_save (struct gridjob *job, struct err *err);
int lead_load (struct gridjob *job, struct arena *arena, struct err *err);
/* It is on disk here: the others are asked for their votes at the next turn. */
void lead_saved (struct gridjob *job);
/* The others have an envelope that is not this one. */
void lead_envelope_changed (struct gridjob *job);
/* What is told of these to another member, in the arena; as many. */
Nui__Meta__V1__Copy **lead_copies (const struct lead_row *rows, uint32_t count, struct arena *arena);
/* Whether what is on disk may be acted on now. If not, its driver is called when it may. */
bool lead_may_send (struct gridjob *job);
/* Calls done once, perhaps at once: with its number when a majority has what is on disk now; with another's that was
 * made of the same signed job, of which a majority has had some state; with 0 when this is not to be known any more
 * (another leads it, or the metascheduler stops). The job may be gone then. */
void lead_then (struct gridjob *job, void (*done) (void *arg, uint64_t as), void *arg);
/* Votes for it are being asked for. */
bool lead_waits (const struct gridjob *job);
/* It has ended as far as is known here; it is not known whether it will be so. */
bool lead_untold (const struct gridjob *job);
/* Those that are led here, in the arena. */
struct gridjob **lead_hidden (const struct metad *metad, struct arena *arena, uint32_t *count);
/* Has what has ended here, and was not told when the metascheduler stopped, voted for. */
int lead_recover (struct metad *metad, struct err *err);
void lead_free (struct gridjob *job);
/* ERR_UNAVAILABLE or ERR_CONFLICT, with who leads it; ERR_UNAVAILABLE, too, where its end is not known to stand. */
int lead_here (const struct gridjob *job, struct err *err);

/* ---- of the group */

/* Sends what is to be voted for; tick: also to who did not answer before. */
void lead_flush (struct peers *peers, bool tick);
/* A member has an older state of what is led here. */
void lead_push (struct metad *metad, const struct lead_row *row, uint32_t member);
/* Asks for promises; when a majority has given them, it is led here. */
void lead_take (struct metad *metad, uint64_t number);
uint32_t lead_takes (const struct peers *peers); /* how many are under way */
/* Another says who leads it; "": nobody knows. */
void lead_told (struct metad *metad, uint64_t number, const char *leader);
/* Asks the sites of what was taken over how it is there: they told another. */
void lead_follow (struct metad *metad);
/* A job that is over, as another member has it, is kept here, unless what is here is as new. Not *kept: a higher ballot
 * was promised here, or what was signed is here as another job that stands. */
int lead_keep (struct metad *metad, uint64_t job, const Nui__Meta__V1__StateReply *state, bool *kept, struct err *err);
void lead_on_vote (void *self, struct rpccall *call, const ProtobufCMessage *message);
void lead_close (struct peers *peers);

/* The decision log of a group: what is proposed is decided, since nothing of it leaves before a majority has the
 * record that says so. */
struct decision_log lead_decisions (void);

#endif
