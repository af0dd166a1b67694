/* price: what a job costs. Pure.
 *
 *     (work * base + time * extra) * time-of-day * qos * class * co-reservation * machine * nodes
 *
 * work is processor time as the card measures it (dedicated, used, or processor equivalents), extra
 * is what memory and generic resources cost per second, nodes the mean of the node types' multipliers over the
 * job's processors. Everything is multiplied exactly, in 448 bits, and rounded once, to a micro-credit: up for a hold, down for a charge. A hold is priced at
 * the card's dearest time of day and as if every processor were used. So a charge for no more than
 * what was asked, at the same terms, never exceeds its hold (rule P4 of the bank's design). */
#ifndef NUI_BANK_CORE_PRICE_H
#define NUI_BANK_CORE_PRICE_H

#include <stdbool.h>

#include "proto/base/quantity.h"

#define PRICE_PROCS_MAX INT64_C (100000000)
#define PRICE_TIME_US_MAX (INT64_C (3660) * 86400 * US_PER_S) /* ten years */
#define PRICE_PPM_MAX INT64_C (1000000000000)                 /* a million credits per second */
#define PRICE_FACTOR_MAX INT64_C (1000000000)                 /* a thousandfold */
/* 10^12 credits, a million processors for eleven days: sums of a few amounts stay in 64 bits. */
#define PRICE_AMOUNT_MAX (INT64_C (1000000000000) * 1000000)

/* PRICE_PARTS: memory is priced per 1024 MB. */
enum { PRICE_ONE = 1000000, PRICE_PARTS = 1024, PRICE_BANDS_MAX = 32, PRICE_FORMULA_MAX = 320 };

enum price_rounding { PRICE_HOLD, PRICE_CHARGE };

enum price_measure {
    PRICE_WALL, /* processors * time */
    PRICE_CPU,  /* processor time that was used; all of it for a hold or when it is not known */
    PRICE_PE,   /* processor equivalents * time */
};
const char *price_measure_name (enum price_measure measure); /* "wall", "cpu", "pe" */
/* ERR_INVALID for another word. */
int price_measure_parse (const char *text, enum price_measure *out, struct err *err);

/* Times of the UTC week at which another multiplier is in force. */
struct price_band {
    uint8_t days;         /* bit 0: Monday … bit 6: Sunday */
    int32_t from_s, to_s; /* of the day, [from, to), to at most 86400 */
    int64_t ppm;
};

/* "Mon-Fri 08:00-18:00", "Sat,Sun 00:00-24:00", "22:00-24:00" (every day). */
int price_band_parse (const char *text, int64_t ppm, struct price_band *out, struct err *err);

struct price_terms {
    enum price_measure measure;
    int64_t base_ppm;                                   /* credits per processor-second * 1e6 */
    int64_t extra_parts;                                /* credits per second * 1e6 * PRICE_PARTS */
    int64_t qos_ppm, class_ppm, group_ppm, machine_ppm; /* multipliers * 1e6 */
    /* Of node types: the sum of processors * multiplier * 1e6, and of processors; 0: none are known. */
    uint64_t node_weight, node_procs;
    const struct price_band *band; /* the first that fits a moment counts, else 1 */
    uint32_t band_count;
};
/* base_ppm per dedicated processor-second and nothing else. */
struct price_terms price_terms_plain (int64_t base_ppm);

struct price_use {
    int64_t procs;
    duration_us time;
    time_us start;    /* looked at for a charge with bands */
    duration_us cpu;  /* used; 0: not known */
    int64_t pe_milli; /* processor equivalents * 1000; 0: as many as processors */
};

/* ERR_INVALID for quantities that are negative or past their bound (zero procs too), ERR_LIMIT when
 * the amount would pass PRICE_AMOUNT_MAX. */
int price_compute (const struct price_terms *terms, const struct price_use *use,
                   enum price_rounding rounding, credit_micro *amount_out, struct err *err);

/* "8 procs * 3600 s * 1.25 * qos 2 = 72000 credits"; what is 1 is left out. */
char *price_formula (const struct price_terms *terms, const struct price_use *use,
                     enum price_rounding rounding, credit_micro amount,
                     char buf[PRICE_FORMULA_MAX]);

#endif
