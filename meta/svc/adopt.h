/* adopt: co-allocations that change their coordinator within a group.
 *
 * What a silent member had put to the vote is decided (COMMIT if any member of the majority has voted for it,
 * else ABORT) and the job goes on here from its decision, under a number of its own and with a higher
 * epoch, as any other does: all firm, then started; or aborted and tried again. The member that comes
 * back hears of it before it may act, drives the job no more and shows what it is told of it. */
#ifndef NUI_META_SVC_ADOPT_H
#define NUI_META_SVC_ADOPT_H

#include "meta/store/votes.h"
#include "meta/svc/job.h"

/* Who leads a job; all zero for most. Saved with the job while dirty. */
struct joblead {
    uint64_t ballot;
    char led_by[COALLOC_NAME_MAX]; /* "": this one; "?": another, which has not said so yet */
    char led_as[32];
    char origin[COALLOC_NAME_MAX]; /* "": submitted here */
    uint64_t origin_job;
    bool told;
    bool dirty;
    uint64_t change;               /* of the status that was heard; not durable */
};

/* Driven by another: what is here only shows what that one says. */
bool adopt_is_led_elsewhere (const struct gridjob *job);
/* What the sites compare: grows with each leader. */
uint64_t adopt_epoch (const struct gridjob *job);
int adopt_save (struct gridjob *job, struct err *err);
int adopt_load (struct gridjob *job, struct arena *arena, struct err *err);
/* What a successor needs, in the arena; empty where there is no group. */
struct metastore_blob adopt_transfer (const struct gridjob *job, struct arena *arena);
/* A site refuses us: a newer leader has spoken to it. */
void adopt_fenced (struct gridjob *job);

/* Takes over what that vote is about. */
void adopt_begin (struct metad *metad, const struct vote_row *row);
/* What another tells of a job of ours, or of one that we led. ended_out: it has ended, and that is on disk. */
int adopt_taken (struct metad *metad, const Nui__Meta__V1__Taken *taken, bool *ended_out,
                 struct err *err);
/* Asks the sites how the parts are that their first coordinator prepared: they tell only that one. */
void adopt_follow (struct metad *metad);

#endif
