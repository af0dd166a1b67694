/* record: estimates that were given, against what happened; and what follows for the next. Pure.
 *
 * Keeps two things per method. The control: by how much the raw interval of a method must be
 * stretched, on each side, so that it holds as often as it says. Each side is a running quantile
 * (a miss stretches it by a step, a hit shrinks it by so much less that misses come as often as
 * they may): the long-run share of misses is right whatever the workload does, because the factor
 * has no bound (after Gibbs & Candes 2021, adaptive conformal inference). Separate for short,
 * middling and long waits. Certain answers (every draw says the same moment) are neither corrected
 * nor learned from.
 *
 * The score: coverage, error and bias of the last weeks, for a site and each of its classes. */
#ifndef NUI_LOCAL_ESTIMATE_RECORD_H
#define NUI_LOCAL_ESTIMATE_RECORD_H

#include "local/core/types.h"

/* A wait from the moment of the question. */
struct estimate {
    duration_us median;
    duration_us low50, high50; /* holds one time out of two */
    duration_us low95, high95; /* 19 times out of 20 */
    uint32_t draws;
    bool certain; /* nothing that is not known could change it */
};

/* --- control ------------------------------------------------------------------------------ */

enum { CONTROL_GROUPS = 6 };

struct control_side {
    double low[2]; /* ln of the factor on the distance median - low of the 50 % and 95 % interval */
    double high[2]; /* … high - median */
    uint64_t scored;
};
struct control {
    struct control_side group[CONTROL_GROUPS]; /* by the raw median */
};

void control_init (struct control *control);
/* The corrected estimate. */
void control_apply (const struct control *control, const struct estimate *raw,
                    struct estimate *out);
/* The job started after `wait`; raw is what was not yet corrected. */
void control_learn (struct control *control, const struct estimate *raw, duration_us wait);

/* --- score -------------------------------------------------------------------------------- */

/* Sums over scored estimates. Plain data: a shell may store and add them. */
struct score {
    uint64_t count;
    uint64_t certain;
    uint64_t in50, in95;               /* inside the interval */
    uint64_t unsure_in50, unsure_in95; /* the same of those that were not certain */
    uint64_t within_1m, within_10m;
    double wait_s;  /* sums */
    double error_s; /* |median - wait| */
    double bias_s;  /* median - wait */
    double width50_s, width95_s;
};

void score_add (struct score *score, const struct estimate *given, duration_us wait);

/* --- recent: the last weeks, one site or class --------------------------------------------- */

enum { RECENT_MAX = 512, RECENT_DAYS = 28 };
struct recent_one {
    time_us at;
    float error_s; /* median - wait */
    uint8_t in50, in95, certain;
};
struct recent {
    uint32_t count, next;
    struct recent_one one[RECENT_MAX];
};
void recent_add (struct recent *recent, time_us at, const struct estimate *given, duration_us wait);

struct recent_summary {
    uint32_t count;                /* scored in the last RECENT_DAYS, at most RECENT_MAX */
    uint32_t unsure;               /* of them not certain */
    double coverage50, coverage95; /* of those not certain; 0 … 1 */
    double median_error_s;         /* of |error| of those not certain */
    double bias_s; /* median of the signed error of those: above 0, jobs start earlier than said */
};
void recent_summarise (const struct recent *recent, time_us now, struct recent_summary *out);

/* Whether words such as "very likely" may be said: enough was scored, and it held. */
bool recent_earned (const struct recent_summary *summary);

#endif
