/* decision: where a transaction's fate is decided. An interface: today one durable log
 * (meta/store/decisionlog.h), later a group of 2F+1 acceptors behind the same three words.
 *
 * propose() asks for an outcome; done() says what was decided, which may be the other one, after it
 * is durable. COMMIT is proposed only by the coordinator that holds every YES; ABORT is proposed by
 * whoever recovers: from then on the transaction can no longer commit. An absent record therefore
 * means abort, and a coordinator that aborts in its ordinary course need not ask. */
#ifndef NUI_META_CORE_DECISION_H
#define NUI_META_CORE_DECISION_H

#include <stdbool.h>
#include <stdint.h>

enum decision {
    DECISION_ABORT = 0,
    DECISION_COMMIT = 1,
};

struct decision_log_ops {
    /* done is called exactly once, perhaps before propose returns; failed set: nothing is known,
     * propose again. transaction is copied. */
    void (*propose) (void *self, const uint8_t transaction[16], enum decision proposal,
                     void (*done) (void *arg, const uint8_t transaction[16], enum decision decided,
                                   bool failed),
                     void *arg);
    void (*forget) (void *self, const uint8_t transaction[16]); /* every party has acknowledged */
};

struct decision_log {
    const struct decision_log_ops *ops;
    void *self;
};

#endif
