/* move: a job that waits in one site's queue goes to another that has become clearly better
 * (choose_moves), and never gives up its place before it has the new one.
 *
 *   SENDING      the other site is given the job, withheld: it takes a place and cannot start
 *   WITHDRAWING  the first site is asked to give it up, unless it has started
 *   GOING        it has: the job is the other site's, which is told to let it start
 *   UNDOING      it had started, or ended: the other site is told to forget it
 *
 * Each stage is durable before its call goes out, and its call is repeated until it is answered; what the
 * first site says of the job's end in the meantime counts once the other site has no part in it. */
#ifndef NUI_META_SINGLE_MOVE_H
#define NUI_META_SINGLE_MOVE_H

#include "meta/job/job.h"

/* When to look for a better site again; INT64_MAX: never. */
duration_us move_interval (const struct gridjob *job);
/* Looks for one. */
void move_look (struct gridjob *job);
/* Goes on with a move that is under way. */
void move_wake (struct gridjob *job);
/* The first site is lost, and with it its place: the caller saves. Not in SENDING or UNDOING. */
void move_from_lost (struct gridjob *job);
/* The first site's word while a move is under way. True: nothing else is to be done with it now; the
 * caller saves. */
bool move_heard (struct gridjob *job);

#endif
