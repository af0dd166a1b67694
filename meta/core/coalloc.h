/* coalloc: the coordinator's state machine for one co-allocated job. Pure: no clock, no I/O, no
 * random number that it was not given.
 *
 * QUERY -> CHOOSE -> PREPARE -> DECIDE -> COMMIT -> READY (barrier) -> START -> LIVE -> ended, with
 * UNDO (abort what is prepared, release what is firm) leading back to QUERY or to the end, and REPAIR
 * (one component elsewhere, the others stay firm) from COMMIT or READY back to COMMIT. The rules are
 * those of the co-allocation protocol; each is named where it is kept.
 *
 * The shell calls coalloc_step with one event, makes the record durable when actions->save is set,
 * *then* performs the actions in order. If saving fails it performs none, loads the record again and
 * steps COALLOC_EV_RECOVER. Every answer becomes an event; answers to an older transaction or
 * attempt are ignored, so that messages may be lost, repeated and reordered freely.
 *
 * Presumed abort: a record in PREPARE or DECIDE that is found after a crash asks the decision log;
 * no COMMIT there means abort. A record in COMMIT or later is resumed.
 *
 * A NO teaches: the site's next moment enters the next choice, and such a try is not counted. Neither is one at which the
 * sites' answers have no common slot: the job waits for one. tries_max bounds what nobody explains.
 *
 * Two clocks: `wall` for slots (dates the sites know), `mono` for leases and back-off. Monotonic
 * moments in the record are not durable. The caller owns the record. A step costs O(parts), with
 * CHOOSE as stated in choose.h. */
#ifndef NUI_META_CORE_COALLOC_H
#define NUI_META_CORE_COALLOC_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include "meta/core/choose.h"
#include "meta/core/decision.h"
#include "proto/base/err.h"
#include "proto/base/quantity.h"

enum {
    COALLOC_PARTS_MAX = CHOOSE_PARTS_MAX,
    COALLOC_NAME_MAX = 64,
    COALLOC_CODE_MAX = 48,
    COALLOC_TEXT_MAX = 400,
    COALLOC_TOKEN_LEN = 32,
    COALLOC_ACTIONS_MAX = 2 * COALLOC_PARTS_MAX + 2,
};

/* Stored as numbers: never renumber. */
enum coalloc_phase {
    COALLOC_NEW = 0,
    COALLOC_QUERY = 1,
    COALLOC_BACKOFF = 2,
    COALLOC_PREPARE = 3,
    COALLOC_DECIDE = 4,
    COALLOC_COMMIT = 5,
    COALLOC_READY = 6,
    COALLOC_START = 7,
    COALLOC_LIVE = 8,
    COALLOC_UNDO = 9,
    COALLOC_ENDED = 10,
    COALLOC_REPAIR = 11, /* committed; a component is sought elsewhere */
};

enum part_state {
    PART_NONE = 0,
    PART_PREPARING = 1,  /* PREPARE sent, no answer */
    PART_PREPARED = 2,   /* said YES */
    PART_REFUSED = 3,    /* said NO */
    PART_COMMITTING = 4, /* decided; COMMIT not acknowledged */
    PART_FIRM = 5,
    PART_READY = 6,    /* passed the barrier */
    PART_STARTING = 7, /* START sent, no answer */
    PART_STARTED = 8,
    PART_ENDED = 9, /* its job at the site has ended */
    PART_ABORTING = 10,
    PART_RELEASING = 11,
    PART_GONE = 12,    /* undone: the site holds nothing */
    PART_SEEKING = 13, /* nothing is held; another site is sought for the same moment */
    PART_DOUBTED = 14, /* firm where it cannot be started; the same */
};

enum coalloc_outcome {
    COALLOC_OPEN = 0,
    COALLOC_COMPLETED = 1,
    COALLOC_FAILED = 2,
    COALLOC_CANCELLED = 3,
    COALLOC_REFUSED = 4, /* never ran: infeasible, unfunded or out of attempts */
};

struct coalloc_reason {
    char code[COALLOC_CODE_MAX];
    char text[COALLOC_TEXT_MAX];
};
/* The arguments may point into the old one. */
void coalloc_reason_set (struct coalloc_reason *reason, const char *code, const char *fmt,
                         va_list ap) __attribute__ ((format (printf, 3, 0)));

struct coalloc_part {
    char name[COALLOC_NAME_MAX];
    char site[COALLOC_NAME_MAX]; /* "" until chosen */
    duration_us offset;
    duration_us walltime; /* of the chosen shape */
    uint32_t shape;       /* which of its sizes was chosen */
    enum part_state state;
    uint32_t attempt; /* of Prepare within the transaction, from 1 */
    credit_micro price;
    enum coalloc_outcome ended; /* how its job ended, when state is PART_ENDED */
    /* next_feasible of the last refusal: feeds the next CHOOSE once. */
    char hint_site[COALLOC_NAME_MAX];
    time_us hint_start; /* TIME_US_MAX: not there at all */
    /* Not durable. */
    bool outstanding; /* an action of this part awaits its answer */
    uint32_t resends;
    duration_us resend_mono;    /* when to try again, if not outstanding */
    duration_us sent_mono;      /* first send of the present PREPARE */
    duration_us lease_end_mono; /* lower bound, by our monotonic clock */
    bool asked;                 /* the QUERY under way is about it (REPAIR) */
    uint32_t doubts;            /* how often another site was sought for it while it was firm */
};

struct coalloc_record {
    enum coalloc_phase phase;
    uint32_t tries; /* at the whole group */
    bool cancel_wanted;
    bool ran;                     /* some part was seen running */
    bool decided;                 /* COMMIT was decided for `transaction` */
    enum coalloc_outcome outcome; /* what UNDO leads to (COALLOC_OPEN: back to QUERY), or led to */
    struct coalloc_reason reason; /* why it waits, is undone, or how it ended */
    char broke
        [COALLOC_TEXT_MAX]; /* which component was taken away while all were firm, and why: the last one */
    time_us created;        /* wall; older transactions wait less */
    uint8_t transaction[16];
    uint8_t start_token[COALLOC_TOKEN_LEN];
    time_us slot_start; /* the common moment agreed */
    time_us start_at;   /* the common moment sent with START */
    uint32_t part_count;
    struct coalloc_part *part;
    /* Bounds of the job. */
    time_us not_before;
    time_us not_after; /* latest start; 0: none */
    time_us deadline;
    time_us expires;
    credit_micro cost_max;
    enum choose_prefer prefer;
    /* Not durable. */
    duration_us wake_mono;   /* end of a back-off or of an undo's patience; 0: none */
    duration_us prepare_rtt; /* smoothed; 0: not measured */
    time_us resumed;         /* wall; COMMIT was entered, or a restart: patience begins then */
    bool seeking;            /* a QUERY of REPAIR is under way */
    uint32_t unexplained; /* tries that ended, and no site said from when on it would be possible */
    bool explained;       /* the present one ended so that a site, or the sites' answers, said it */
};

/* Limits, from the configuration. */
struct coalloc_policy {
    duration_us lease;
    duration_us lease_margin;
    duration_us lead; /* from now to the earliest part's start */
    /* least time between START and the common moment after a late barrier */
    duration_us start_margin;
    duration_us barrier_timeout;
    duration_us prepare_timeout;
    duration_us backoff_max;
    duration_us wait_site_down; /* between queries while a needed site is away */
    duration_us resend_first;   /* doubles up to resend_max */
    duration_us resend_max;
    duration_us age_unit;    /* a transaction this old waits half as long */
    duration_us wait_slot;   /* between queries while the sites have no common slot, at most */
    uint32_t tries_max;      /* of the unexplained ones */
    uint32_t reprepares_max; /* of one part within a committed transaction */
};

struct coalloc_now {
    time_us wall;
    duration_us mono;
    uint64_t random;
    const struct coalloc_policy *policy;
    bool withhold; /* of READIED: what the job needs besides the sites is not there yet */
    bool goes_on;  /* of PART_ENDED: who signed the job wants the others to run when one fails */
};

enum coalloc_event_kind {
    COALLOC_EV_BEGIN = 1,
    COALLOC_EV_RECOVER, /* after a restart */
    COALLOC_EV_TICK,    /* the wake-up that was asked for */
    COALLOC_EV_QUERIED, /* all answers of QUERY are in */
    COALLOC_EV_PREPARED,
    COALLOC_EV_DECIDED,
    COALLOC_EV_COMMITTED,
    COALLOC_EV_ABORTED,
    COALLOC_EV_READIED,
    COALLOC_EV_STARTED,
    COALLOC_EV_RELEASED,
    COALLOC_EV_NO_ANSWER,  /* outcome unknown */
    COALLOC_EV_RUNNING,    /* reported by the site */
    COALLOC_EV_PART_ENDED, /* reported by the site */
    COALLOC_EV_CANCEL,
    COALLOC_EV_SITE_LOST, /* the part's site keeps nothing of it any more, or will never be heard
                             again */
};

enum coalloc_query {                           /* what QUERIED found */
                     COALLOC_QUERY_OFFERS = 0, /* problem is set */
                     COALLOC_QUERY_SITE_DOWN, /* a part has no site that answers now; reason says which */
                     COALLOC_QUERY_NEVER, /* a part can never run; reason says which and why */
};

enum coalloc_commit { COALLOC_FIRM = 1, COALLOC_EXPIRED, COALLOC_ABORTED, COALLOC_UNKNOWN };

struct coalloc_event {
    enum coalloc_event_kind kind;
    /* Which answer this is; transaction NULL matches the present one. */
    const uint8_t *transaction;
    uint32_t part;
    uint32_t attempt;
    struct coalloc_reason reason;
    union {
        struct {
            enum coalloc_query found;
            struct choose_problem *problem; /* offers; hints and bounds are added by the step */
            const char *const *site_name;   /* by site number */
            uint8_t transaction[16];        /* fresh */
            uint8_t start_token[COALLOC_TOKEN_LEN]; /* fresh */
            bool complete; /* every site that might take a part has answered, or never can */
        } queried;
        struct {
            bool granted;
            bool unfunded;         /* NO for want of credits: final */
            time_us next_feasible; /* 0: none in the site's horizon */
            duration_us lease_left;
            credit_micro amount;
        } prepared;
        struct {
            enum decision decision;
        } decided;
        struct {
            enum coalloc_commit outcome;
        } committed;
        struct {
            bool refused_firm;
        } aborted;
        struct {
            bool yes;
        } started;
        struct {
            bool yes;
            bool started; /* by an earlier coordinator */
            bool unable;  /* NO: a node is lost and no other is free */
            bool gone;    /* NO: nothing of it is there */
        } readied;
        struct {
            bool started; /* it had run */
        } released;
        struct {
            enum coalloc_outcome outcome;
            bool lost; /* taken away, not ended by itself */
        } ended;
    } u;
};

enum coalloc_action_kind {
    COALLOC_DO_QUERY = 1, /* the parts of coalloc_seeks, all candidate sites; then QUERIED */
    COALLOC_DO_PREPARE,
    COALLOC_DO_DECIDE, /* propose `proposal` to the decision log; then DECIDED. In REPAIR once more
                        */
    COALLOC_DO_COMMIT,
    COALLOC_DO_ABORT,
    COALLOC_DO_READY,
    COALLOC_DO_START,
    COALLOC_DO_RELEASE,
};

struct coalloc_action {
    enum coalloc_action_kind kind;
    uint32_t part;
    uint32_t attempt;
    enum decision proposal;
};

struct coalloc_actions {
    bool save;        /* make the record durable before performing the actions */
    duration_us wake; /* step TICK after this long; INT64_MAX: no need */
    uint32_t count;
    struct coalloc_action action[COALLOC_ACTIONS_MAX];
};

struct coalloc_record *coalloc_create (uint32_t part_count, struct err *err);
struct coalloc_record *coalloc_copy (const struct coalloc_record *record);
void coalloc_destroy (struct coalloc_record *record); /* NULL is a no-op */

/* ERR_INVALID for an event that no correct shell sends (a part out of range, BEGIN twice); the
 * record is then unchanged. Late and repeated answers are not errors: they change nothing. */
int coalloc_step (struct coalloc_record *record, struct coalloc_event *event,
                  const struct coalloc_now *now, struct coalloc_actions *actions, struct err *err);

/* What is added to the offers of a QUERY before the choice: the record's bounds and what it was told when it was
 * refused. The step does the same: for whoever wants to see the choice first. */
void coalloc_problem (const struct coalloc_record *record, const struct coalloc_now *now,
                      const char *const *site_name, struct choose_problem *problem);

/* Whether a QUERY is about that part: of one in REPAIR only about what is sought. */
bool coalloc_seeks (const struct coalloc_record *record, uint32_t p);

/* Whether a request to a site is still to be sent, or answered. */
bool coalloc_awaits (const struct coalloc_record *record, const struct coalloc_action *action);

/* Whether SITE_LOST would change anything for a part in this state. */
bool coalloc_minds_site (enum part_state state);

const char *coalloc_phase_name (enum coalloc_phase phase);
/* "QUERY", "PREPARED" …: for logs. */
const char *coalloc_event_name (enum coalloc_event_kind kind);

/* Full jitter: uniform in [0, ceiling) where the ceiling starts at base, doubles with each try up to
 * max, and shrinks with age: an older transaction waits less. */
duration_us coalloc_backoff (duration_us base, duration_us max, uint32_t tries, duration_us age,
                             duration_us age_unit, uint64_t random);

#endif
