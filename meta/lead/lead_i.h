/* lead_i: what the files of a group's leading know of each other: lead.c asks the others for their votes, lead_take.c gives
 * and gets promises, lead_beat.c hears who is alive, lead_follow.c fetches what was missed. */
#ifndef NUI_META_LEAD_LEAD_I_H
#define NUI_META_LEAD_LEAD_I_H

#include "meta/store/votes.h"
#include "meta/lead/lead.h"
#include "meta/job/peers.h"

struct lead {
    struct metad *metad;
    struct event *timer; /* lead_beat.c */
    uint64_t ticks;
    struct event *flush;     /* lead.c */
    struct gridjob *unvoted; /* led here, and not everybody has all of it */
    struct taking *takings;  /* lead_take.c */
    uint32_t taking_count;
};

/* ---- lead.c */

/* It is on disk here: the others are asked for their votes at the next turn. */
void lead_saved (struct gridjob *job);
/* What is told of these to another member, in the arena; as many. */
Nui__Meta__V1__Copy **lead_copies (const struct lead_row *rows, uint32_t count,
                                   struct arena *arena);
/* Sends what is to be voted for; tick: also to who did not answer before. */
void lead_flush (struct lead *lead, bool tick);
/* A member has an older state of what is led here. */
void lead_push (struct metad *metad, const struct lead_row *row, uint32_t member);

/* ---- lead_take.c */

uint32_t lead_takes (const struct metad *metad); /* how many are under way */
/* Another says who leads it; "": nobody knows. */
void lead_told (struct metad *metad, uint64_t number, const char *leader);
/* A job that is over, as another member has it, is kept here, unless what is here is as new. Not *kept: a higher ballot
 * was promised here, or what was signed is here as another job that stands. */
int lead_keep (struct metad *metad, uint64_t job, const Nui__Meta__V1__StateReply *state,
               bool *kept, struct err *err);
void lead_takes_end (struct lead *lead);

/* ---- lead_follow.c */

/* last: the latest place in that member's list, as it says. */
void lead_follow (struct peers *peers, struct peer *peer, uint64_t last);

#endif
