/* choose: when, where and how large. Pure: no clock, no I/O, no allocation that outlives the call.
 *
 * Sites answer a query with the intervals in which a component, in one of its sizes, could *start*.
 * choose_group intersects them, shifted by the components' offsets, in one sweep over the interval
 * bounds: O(I log I) for I intervals in all, plus a small assignment at each moment at which every
 * component has a site. The result is the earliest completion and, of those, the cheapest; or the
 * cheapest and, of those, the earliest. Where all sizes take equally long the earliest completion is
 * the earliest common start, and the sweep ends there. The last tie-break is the site number
 * (canonical order), then the shape.
 *
 * What fits a site alone need not fit beside others there. Sites answer for sets of components, too (choose_set), when the choice
 * asks for it (choose_doubts): whoever calls asks them, adds the answer, and chooses again, until nothing is in doubt.
 * The choice is then exact: no combination that sites could run together is better. Each round excludes at least one
 * combination that cannot be.
 *
 * Bounds on the work: CHOOSE_ASSIGN_STEPS_MAX tries at one moment and CHOOSE_STEPS_MAX over all; past the first, the best
 * assignment of that moment so far stands, past the second the best of all. Components that are alike are not tried in
 * each other's places.
 *
 * choose_single ranks sites for an ordinary job, by choose_better. */
#ifndef NUI_META_CORE_CHOOSE_H
#define NUI_META_CORE_CHOOSE_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/err.h"
#include "proto/base/quantity.h"

enum {
    CHOOSE_PARTS_MAX = 64,
    CHOOSE_OFFERS_MAX = 4096,
    CHOOSE_INTERVALS_MAX = 256,     /* of one offer */
    CHOOSE_ASSIGN_STEPS_MAX = 4096, /* backtracking bound at one moment */
    CHOOSE_STEPS_MAX = 1 << 20,     /* and of all moments */
};

struct choose_interval {
    time_us begin;
    time_us end; /* inclusive */
};

enum choose_prefer {
    CHOOSE_EARLIEST = 0, /* completion, then price */
    CHOOSE_CHEAPEST,     /* price, then completion */
};

/* One site's answer for one part in one size. */
struct choose_offer {
    uint32_t part;
    uint32_t site;        /* number in canonical order (sorted names) */
    uint32_t shape;       /* which of the part's sizes */
    duration_us walltime; /* of that size; 0: the part's */
    uint32_t procs;       /* would be dedicated */
    uint32_t site_procs;  /* the site's capacity; 0: not known */
    credit_micro price;
    time_us not_before; /* this part here not sooner (next_feasible); TIME_US_NONE: no bound */
    const struct choose_interval *starts; /* ascending, disjoint */
    uint32_t start_count;
};

struct choose_part {
    const char *name;   /* for the sentence when there is no start */
    duration_us offset; /* its start relative to the common moment */
    duration_us walltime;
    uint32_t kind; /* parts with the same one can stand for each other in a set; 0: like no other */
};

/* What a site has said of several parts at once: so many of the first, in this order, fit together. */
struct choose_step {
    time_us begin, end; /* of the common moment; end inclusive */
    uint32_t members;
};
struct choose_set {
    uint32_t site;
    uint32_t count; /* of members */
    uint32_t part[CHOOSE_PARTS_MAX], shape[CHOOSE_PARTS_MAX];
    uint32_t looked; /* the site knows of the first so many; 0: it does not answer such questions */
    time_us from, until;            /* and of these common moments, inclusive */
    const struct choose_step *step; /* ascending, disjoint; 0 members between them */
    uint32_t step_count;
};

struct choose_problem {
    const struct choose_part *part;
    uint32_t part_count;
    struct choose_offer *offer;
    uint32_t offer_count;
    const struct choose_set *set;
    uint32_t set_count;
    time_us now;           /* no part starts before this moment */
    time_us not_before;    /* bound on the common moment; 0: none */
    time_us not_after;     /* the same from above; 0: none */
    time_us deadline;      /* every part has ended by then; 0: none */
    credit_micro cost_max; /* 0: no bound */
    enum choose_prefer prefer;
};

struct choose_result {
    time_us start;      /* the common moment */
    time_us completion; /* of the part that ends last */
    credit_micro price;
    uint32_t offer[CHOOSE_PARTS_MAX]; /* index into problem->offer, per part */
};

/* ERR_NOT_FOUND: no common start (text names the first part without any start of its own, if there
 * is one; or the bound of time that forbids it). ERR_DENIED: there are some, each dearer than cost_max. ERR_LIMIT: too many parts, offers or intervals. */
int choose_group (const struct choose_problem *problem, struct choose_result *result,
                  struct err *err);

/* The sites that would get several parts of which they have not said that they fit together at that moment: ask
 * them of these, from that moment on. Returns how many. */
uint32_t choose_doubts (const struct choose_problem *problem, const struct choose_result *result,
                        uint32_t site_out[CHOOSE_PARTS_MAX]);

/* Whether the parts would find places if every site were empty and there were no bounds of time or money. False: the
 * job can never run. */
bool choose_conceivable (const struct choose_problem *problem);

/* A site for an ordinary job. */
struct choose_candidate {
    uint32_t site;
    time_us start;        /* estimated; TIME_US_NONE: unknown */
    duration_us walltime; /* of the size it is for */
    credit_micro price;
    bool funded;
    uint32_t free_procs; /* now, as reported */
};

/* When a site's estimate is to be reckoned with: its median, later by its bias, where its record has earned
 * trust; between that and what limits promise (`promised`) while it has not, by how well it held:
 * half way without any record. coverage_ppm: of the 95 % intervals. 0 median: `promised`. */
struct choose_record {
    uint32_t count; /* of answers that were not certain, as are the others */
    uint32_t coverage_ppm;
    duration_us bias; /* above 0: jobs start earlier than said */
    bool earned;
};
/* Of a site's records of all jobs and of the job's class, what goes for the job: its class's where that has
 * CHOOSE_RECORD_ENOUGH or more. Either may be NULL; both: an empty record. */
enum { CHOOSE_RECORD_ENOUGH = 40 };
struct choose_record choose_record_of (const struct choose_record *all,
                                       const struct choose_record *of_class);
time_us choose_expected (time_us median, time_us promised, time_us now,
                         const struct choose_record *record);

/* Which of two comes first: by the second in which it ends, then price; or by price, then that second;
 * then more free processors, then site number. The one order of placing and of what an estimate
 * lists first. */
bool choose_better (const struct choose_candidate *a, const struct choose_candidate *b,
                    enum choose_prefer prefer);

struct choose_bounds {
    time_us not_after;     /* latest start; 0: none */
    time_us deadline;      /* it has ended by then; 0: none */
    credit_micro cost_max; /* 0: no bound */
    enum choose_prefer prefer;
};

/* Index of the best, or UINT32_MAX when none has a known start, is funded and within the bounds. */
uint32_t choose_single (const struct choose_candidate *candidate, uint32_t count,
                        const struct choose_bounds *bounds);

/* A queued job gives up its place for another only where that is clearly sooner, so that it does not
 * wander between sites whose answers differ by noise. */
struct choose_move_policy {
    duration_us gain;  /* least gain, > 0 */
    int64_t share_ppm; /* … and least share of what it still has to wait where it is */
};
/* stays, goes: expected starts, not before now; TIME_US_NONE: unknown, which never moves a job. */
bool choose_moves (time_us stays, time_us goes, time_us now,
                   const struct choose_move_policy *policy);

/* One cell of a site's table of start estimates. */
struct choose_estimate {
    uint32_t procs;
    duration_us walltime;
    time_us start; /* 0: not within the horizon */
};

/* Keeps the cells that can be an answer, by start: none that another covers and that starts no sooner than
 * that. Returns how many. */
uint32_t choose_report_prune (struct choose_estimate *table, uint32_t count);

/* The earliest start among the cells that cover (procs, walltime); a cell that is larger than asked
 * starts no sooner, so this is the tightest covering one. TIME_US_NONE: none covers it. The table as
 * choose_report_prune left it. */
time_us choose_report_start (const struct choose_estimate *table, uint32_t count, uint32_t procs,
                             duration_us walltime);

#endif
