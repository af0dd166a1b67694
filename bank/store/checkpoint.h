/* checkpoint: sums of accounts up to a moment, made beside the ledger's writer on a connection of their own
 * (table checkpoint). Each look takes the operations since the last one, CHECKPOINT_OPS at most, and
 * of the accounts in them those that have had enough entries since their last checkpoint. With each look, room
 * for the journal (`entry_room`) and a step of the walk that forgets signed jobs (`signed_forget`). */
#ifndef NUI_BANK_STORE_CHECKPOINT_H
#define NUI_BANK_STORE_CHECKPOINT_H

#include "bank/store/committer.h"

enum { CHECKPOINT_OPS = 100000, FORGET_BLOCKS = 256 };

struct checkpointer;

/* entries: so many of an account make a checkpoint; signed jobs are forgotten so long after their expiry as
 * window says. The committer says which moments are settled. */
struct checkpointer *checkpointer_create (struct event_base *base, struct log *log,
                                          const char *conninfo, struct committer *committer,
                                          int64_t entries, duration_us window, struct err *err);
void checkpointer_start (struct checkpointer *c); /* once the schema is there */
void checkpointer_settings (struct checkpointer *c, int64_t entries, duration_us window);
void checkpointer_destroy (struct checkpointer *c); /* before its committer */

#endif
