/* licence: floating licences of the whole grid through time. Pure: no clock, no I/O, no allocation.
 *
 * A job that asks for a licence holds so many of it in [begin, end), as it holds nodes at a site. A
 * booking is one such interval; the caller lists those of all live jobs and is told in which intervals
 * another job could start. What is planned may come otherwise: a job may run over its limit, or start
 * late. So nothing starts on a plan alone: licence_in_use counts what may be running now, and a job is
 * let go only where that and its own stay within what there is (licence_fits). That keeps a licence from
 * ever being used more often than it exists; the intervals keep jobs from waiting for one another.
 *
 * struct choose_interval has both bounds, a booking is half open. O(n log n) for n bookings. */
#ifndef NUI_META_CORE_LICENCE_H
#define NUI_META_CORE_LICENCE_H

#include "meta/core/choose.h"

struct licence_booking {
    uint32_t licence; /* index into the table of the grid's licences */
    uint32_t count;
    time_us begin, end; /* [begin, end) */
    uint64_t owner;     /* number of the job, from 1 */
    bool let_go;        /* it may be running: START has left, and its end is not known */
    bool other;         /* of a second slot of its job, which will use only one of the two */
};

/* One licence as a job needs it. */
struct licence_need {
    uint32_t licence;
    uint32_t count; /* of it, at each instant of the run */
    uint32_t total; /* that exist */
};

/* A moment at which it changes how many are booked. The functions below that take some need room for two
 * per booking. */
struct licence_change {
    time_us at;
    int64_t by;
};

/* When what began is reckoned to end: after its walltime; what is past that, after as long again as it is
 * over (at least LICENCE_OVERDUE), so that those who wait do not ask again and again. */
#define LICENCE_OVERDUE (60 * US_PER_S)
time_us licence_end (time_us begin, duration_us walltime, time_us now);

/* The moments in [from, until] at which a run of that length could start and keep its licence throughout;
 * bookings of the job `except` are not counted (0: all are). Ascending, disjoint, at most `most` (the
 * earliest). Returns how many. */
uint32_t licence_starts (const struct licence_booking *booking, uint32_t count, uint64_t except,
                         const struct licence_need *need, duration_us walltime, time_us from,
                         time_us until, struct licence_change *scratch, struct choose_interval *out,
                         uint32_t most);

/* What is in both; ascending, disjoint, at most `most`. Returns how many. */
uint32_t licence_both (const struct choose_interval *a, uint32_t a_count,
                       const struct choose_interval *b, uint32_t b_count,
                       struct choose_interval *out, uint32_t most);

/* How many may be running now, apart from those of `except`. */
uint64_t licence_in_use (const struct licence_booking *booking, uint32_t count, uint32_t licence,
                         uint64_t except);
/* Whether so many more may be let go now. */
bool licence_fits (const struct licence_booking *booking, uint32_t count, uint64_t except,
                   const struct licence_need *need);

/* From `from` on so many are booked, until the next step. */
struct licence_step {
    time_us from;
    uint64_t booked;
};
/* Of one licence, from that moment on; second slots are not counted. The first step is at `from`, then there is
 * one wherever a booking begins or ends, also where the next takes as many; at most `most`, from 1. Returns
 * how many. */
uint32_t licence_steps (const struct licence_booking *booking, uint32_t count, uint32_t licence,
                        time_us from, struct licence_change *scratch, struct licence_step *out,
                        uint32_t most);

#endif
