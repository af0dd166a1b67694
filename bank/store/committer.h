/* committer: the one writer of the ledger. Requests queue in arrival order; whatever is queued when
 * the previous transaction has ended (up to COMMITTER_BATCH_MAX) is decided together and written in
 * one transaction: load, decide, write, COMMIT. An answer is given only after the COMMIT returned.
 *
 * When as many again are queued as a batch of many has, or it has all but its last statements and the
 * COMMIT behind it, the next one is decided upon it and sent before it is committed, so that PostgreSQL does not wait
 * for this process. Each is committed only if the one before it is.
 *
 * There are two connections, so that two processes of PostgreSQL work at a time: the next batch goes to the other one.
 * What both batches may change (balances, how far an outbox has come) and the COMMIT are sent there when the COMMIT of
 * the one before has returned. The one does not see what the other writes, so only what is taken to be new is written
 * so, and two that name the same key, job or signed job are not under way at a time (busy.h); who must look into the
 * database waits for the end of those before. While the second connection is not up the next batch is sent behind on the
 * first, never more than three. Both are held by advisory locks: a writer begins when it has had both, and its second
 * one's transactions are committed only after what was committed on its first.
 *
 * A batch that PostgreSQL refuses is tried again request by request. When the connection is lost
 * with a batch in flight its outcome is unknown: the same requests are decided again after the
 * reconnect, and those that were committed get their stored answers by their keys. */
#ifndef NUI_BANK_STORE_COMMITTER_H
#define NUI_BANK_STORE_COMMITTER_H

#include <event2/event.h>

#include "bank/core/ledger.h"
#include "bank/store/moment.h"
#include "bank/store/seal.h"
#include "proto/base/log.h"
#include "proto/base/strbuf.h"

enum { COMMITTER_BATCH_MAX = 512, COMMITTER_QUEUE_MAX = 8192 };

struct committer;

struct committer_config {
    struct event_base *base;
    struct log *log;
    const char *conninfo;
    /* Writes the reply of a successful outcome as the bytes to be stored and sent. */
    void (*encode) (void *arg, const struct ledger_request *req, const struct ledger_outcome *out,
                    struct strbuf *bytes);
    seal_sign_f sign;                  /* signs a block of the batch's operations */
    duration_us clock_bound;           /* the clock may be so far ahead: see moment.h */
    struct moment_now (*clock) (void); /* NULL: the machine's clocks */
    /* More numbers of a kind than can be given out in a second. A ledger that was restored has forgotten what it gave out
     * since its last operation, and sites' outboxes and people's notes have not: at each start, and whenever the database
     * was away, numbers of holds, allocations, grants and quotes go on beyond that. 0: they go on where they were. */
    int64_t numbers_per_s;
    /* The clock is no longer to be believed (why, one sentence), or is again (NULL). May be NULL. */
    void (*on_clock) (void *arg, const char *why);
    /* So often, while nothing else is committed, the database has to show that it still commits; 0: it need not. */
    duration_us pulse;
    void (*on_pulse) (void *arg); /* it did so for the first time since it is up; may be NULL */
    /* Up: requests are served. Down: why, one sentence. */
    void (*state) (void *arg, bool up, const char *why);
    void *arg;
};

/* code 0: bytes are the reply; else err says why. Called once, from the loop. */
typedef void (*committer_done_f) (void *arg, const struct err *err, const void *bytes, size_t len);

struct committer *committer_create (const struct committer_config *config, struct err *err);
void committer_destroy (struct committer *c); /* what is queued is answered ERR_UNAVAILABLE */
bool committer_is_up (const struct committer *c);
/* Something about a request that the writer's waiting may hide: it is found out while PostgreSQL works on what was
 * decided as if it were so, and nothing is committed that is not. Called once at most, with done's arg, before done.
 * False: it is not so, and the request says why now (refused). */
typedef bool (*committer_check_f) (void *arg);

/* req must stay valid until done is called. check may be NULL. ERR_UNAVAILABLE while the database is away, the clock
 * is ahead or the queue is full; then done is not called. */
int committer_submit (struct committer *c, const struct ledger_request *req,
                      committer_check_f check, committer_done_f done, void *arg, struct err *err);
/* How far ahead the clock is, so that nothing but an operator's word on it is taken; 0: it is not. */
duration_us committer_clock_ahead (struct committer *c);
/* The operator's word is recorded: it is right. */
void committer_clock_accept (struct committer *c);
/* Why the database refused what it was last asked to write (a full disk); "": it took it. */
const char *committer_refusal (const struct committer *c);
/* Since the database has committed something: what it shows may be older than what another one has by now, which took
 * its place. INT64_MAX: it has not since it is up. */
duration_us committer_silence (const struct committer *c);
void committer_pulse (struct committer *c, duration_us every);
void committer_clock_bound (struct committer *c, duration_us bound);
/* The ledger's time: what of the clock can be believed, and not before its last moment. For reading. */
time_us committer_now (const struct committer *c);
/* What the clock shows, and the last moment that was given out. */
void committer_clock (struct committer *c, time_us *now_out, time_us *last_out);
/* What hand-overs are checked by; NULL until the database was there. */
const uint8_t *committer_secret (const struct committer *c);
bool committer_is_idle (const struct committer *c); /* the next request would be alone */
/* A moment such that everything answered so far was recorded before it and everything decided from
 * now on will be recorded at or after it; never later than the batch in flight. */
time_us committer_horizon (struct committer *c);

struct committer_stats {
    uint64_t batches, requests, replays, retries;
    uint64_t behind; /* batches that were sent while the one before was being written … */
    uint64_t beside; /* … of them on the other connection */
    uint32_t batch_max;
    uint32_t under_way; /* batches, now */
};
struct committer_stats committer_stats (const struct committer *c);
bool committer_has_second (const struct committer *c); /* whether its second connection is up */

#endif
