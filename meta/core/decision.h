/* decision: where a transaction's fate is decided. An interface: one durable log (meta/store/votes.h), or, in a
 * group of coordinators, the job's own record (meta/lead/lead.h), of which nothing leaves before a majority has it.
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

struct decision_ask {
    const uint8_t *transaction; /* 16 bytes */
    enum decision proposal;
};

struct decision_log_ops {
    /* done is called exactly once, perhaps before propose returns; failed set: nothing is known,
     * propose again. What ask points to is copied. */
    void (*propose) (void *self, const struct decision_ask *ask,
                     void (*done) (void *arg, enum decision decided, bool failed), void *arg);
    void (*forget) (void *self, const uint8_t transaction[16]); /* every party has acknowledged */
};

struct decision_log {
    const struct decision_log_ops *ops;
    void *self;
};

#endif
