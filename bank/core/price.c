/* price: multiplies a job's use by a card's rates and factors in 448 bits, and rounds once.
 * Holds, charges, quotes and the check of new cards call it. Floating point must never come in
 * here: the bank of today and an audit in ten years must get the same micro-credits. */
#include "bank/core/price.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const measure_name[] = {"wall", "cpu", "pe"};

const char *price_measure_name (enum price_measure measure)
{
    return measure_name[measure];
}

int price_measure_parse (const char *text, enum price_measure *out, struct err *err)
{
    for (int i = 0; i < 3; i++)
        if (strcmp (text, measure_name[i]) == 0) {
            *out = (enum price_measure)i;
            return 0;
        }
    return err_set (err, ERR_INVALID, "rate: '%.40s' is none of wall, cpu, pe", text);
}

struct price_terms price_terms_plain (int64_t base_ppm)
{
    return (struct price_terms){.base_ppm = base_ppm,
                                .qos_ppm = PRICE_ONE,
                                .class_ppm = PRICE_ONE,
                                .group_ppm = PRICE_ONE,
                                .machine_ppm = PRICE_ONE};
}

/* ---- time of day ---- */

static int day_of (const char *text)
{
    static const char *const day[] = {"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"};
    for (int i = 0; i < 7; i++)
        if (strncmp (text, day[i], 3) == 0)
            return i;
    return -1;
}

/* "Mon-Fri,Sun " as a set; 0 when it is none. Leaves *text after the blank. */
static uint8_t days_of (const char **text)
{
    uint8_t days = 0;
    const char *at = *text;
    for (;;) {
        int first = day_of (at), last = first;
        if (first < 0)
            return 0;
        at += 3;
        if (*at == '-') {
            last = day_of (at + 1);
            if (last < 0)
                return 0;
            at += 4;
        }
        for (int day = first;; day = (day + 1) % 7) {
            days |= (uint8_t)(1 << day);
            if (day == last)
                break;
        }
        if (*at == ' ')
            break;
        if (*at++ != ',')
            return 0;
    }
    *text = at + 1;
    return days;
}

/* "08:00", to "24:00". */
static bool clock_of (const char *text, int32_t *seconds)
{
    for (int i = 0; i < 5; i++)
        if (i == 2 ? text[i] != ':' : text[i] < '0' || text[i] > '9')
            return false;
    int hour = (text[0] - '0') * 10 + text[1] - '0', minute = (text[3] - '0') * 10 + text[4] - '0';
    *seconds = hour * 3600 + minute * 60;
    return minute < 60 && *seconds <= 86400;
}

int price_band_parse (const char *text, int64_t ppm, struct price_band *out, struct err *err)
{
    const char *at = text;
    *out = (struct price_band){.days = 0x7f, .ppm = ppm};
    if (*at < '0' || *at > '9')
        out->days = days_of (&at);
    if (!out->days || strlen (at) != 11 || at[5] != '-' || !clock_of (at, &out->from_s) ||
        !clock_of (at + 6, &out->to_s) || out->from_s >= out->to_s)
        return err_set (err, ERR_INVALID,
                        "rate: '%.60s' is no time of day such as 'Mon-Fri 08:00-18:00' (UTC, not "
                        "past midnight)",
                        text);
    return 0;
}

static int64_t floor_div (int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* The multiplier at a moment, and when the next one may begin. */
static int64_t band_at (const struct price_terms *terms, time_us at, time_us *next_out)
{
    int64_t day = floor_div (at, 86400 * US_PER_S);
    time_us midnight = day * 86400 * US_PER_S;
    int weekday = (int)(((day + 3) % 7 + 7) % 7); /* the first of January 1970 was a Thursday */
    int64_t ppm = PRICE_ONE;
    bool found = false;
    *next_out = midnight + 86400 * US_PER_S;
    for (uint32_t i = 0; i < terms->band_count; i++) {
        const struct price_band *band = &terms->band[i];
        time_us edge[2] = {midnight + band->from_s * US_PER_S, midnight + band->to_s * US_PER_S};
        if (!(band->days & 1 << weekday))
            continue;
        for (int k = 0; k < 2; k++)
            if (edge[k] > at && edge[k] < *next_out)
                *next_out = edge[k];
        if (!found && edge[0] <= at && at < edge[1]) {
            ppm = band->ppm;
            found = true;
        }
    }
    return ppm;
}

/* Time * multiplier, summed over the run; for a hold all of it at the dearest. */
static __int128 banded_time (const struct price_terms *terms, const struct price_use *use,
                             enum price_rounding rounding)
{
    if (terms->band_count == 0)
        return (__int128)use->time * PRICE_ONE;
    if (rounding == PRICE_HOLD) {
        int64_t dearest = PRICE_ONE;
        for (uint32_t i = 0; i < terms->band_count; i++)
            dearest = terms->band[i].ppm > dearest ? terms->band[i].ppm : dearest;
        return (__int128)use->time * dearest;
    }
    __int128 sum = 0;
    for (time_us at = use->start, end = use->start + use->time, next; at < end; at = next) {
        int64_t ppm = band_at (terms, at, &next);
        next = next < end ? next : end;
        sum += (__int128)(next - at) * ppm;
    }
    return sum;
}

/* ---- exact arithmetic ---- */

/* 448 bits, least significant first. */
enum { WIDE_PARTS = 7 };
struct wide {
    uint64_t part[WIDE_PARTS];
};

static void wide_multiply (struct wide *w, uint64_t by)
{
    unsigned __int128 carry = 0;
    for (int i = 0; i < WIDE_PARTS; i++) {
        carry += (unsigned __int128)w->part[i] * by;
        w->part[i] = (uint64_t)carry;
        carry >>= 64;
    }
}

/* Adds a * 2^(64 * shift). */
static void wide_add (struct wide *w, const struct wide *a, int shift)
{
    unsigned __int128 carry = 0;
    for (int i = shift; i < WIDE_PARTS; i++) {
        carry += (unsigned __int128)w->part[i] + a->part[i - shift];
        w->part[i] = (uint64_t)carry;
        carry >>= 64;
    }
}

static void wide_multiply_128 (struct wide *w, unsigned __int128 by)
{
    struct wide high = *w;
    wide_multiply (w, (uint64_t)by);
    wide_multiply (&high, (uint64_t)(by >> 64));
    wide_add (w, &high, 1);
}

/* Returns the remainder. */
static uint64_t wide_divide (struct wide *w, uint64_t by)
{
    unsigned __int128 rest = 0;
    for (int i = WIDE_PARTS - 1; i >= 0; i--) {
        rest = rest << 64 | w->part[i];
        w->part[i] = (uint64_t)(rest / by);
        rest %= by;
    }
    return (uint64_t)rest;
}

/* ---- amounts ---- */

static int check (const struct price_terms *terms, const struct price_use *use, struct err *err)
{
    if (use->procs < 1 || use->procs > PRICE_PROCS_MAX)
        return err_set (err, ERR_INVALID,
                        "price: %" PRId64 " processors, 1 to %" PRId64 " can be priced", use->procs,
                        PRICE_PROCS_MAX);
    if (use->time < 0 || use->time > PRICE_TIME_US_MAX)
        return err_set (err, ERR_INVALID,
                        "price: a time of %" PRId64 " s, 0 to %" PRId64 " can be priced",
                        use->time / US_PER_S, PRICE_TIME_US_MAX / US_PER_S);
    if (use->pe_milli < 0 || use->pe_milli / 1000 > PRICE_PROCS_MAX)
        return err_set (err, ERR_INVALID,
                        "price: %" PRId64 " thousandths of a PE are out of bounds", use->pe_milli);
    if (terms->base_ppm < 0 || terms->base_ppm > PRICE_PPM_MAX || terms->extra_parts < 0 ||
        terms->extra_parts > PRICE_PPM_MAX * PRICE_PARTS)
        return err_set (err, ERR_INVALID,
                        "price: %" PRId64 " and %" PRId64
                        " ppm of a credit per second, 0 to %" PRId64 " are allowed",
                        terms->base_ppm, terms->extra_parts / PRICE_PARTS, PRICE_PPM_MAX);
    return 0;
}

/* Processor time * 1000, as the card measures it, for what a person would call `time` of use. */
static unsigned __int128 work_of (const struct price_terms *terms, const struct price_use *use,
                                  enum price_rounding rounding)
{
    unsigned __int128 all = (unsigned __int128)use->procs * (uint64_t)use->time;
    if (terms->measure == PRICE_PE && use->pe_milli)
        return (unsigned __int128)use->pe_milli * (uint64_t)use->time;
    if (terms->measure == PRICE_CPU && rounding == PRICE_CHARGE && use->cpu > 0 &&
        (uint64_t)use->cpu < all)
        all = (uint64_t)use->cpu;
    return all * 1000;
}

int price_compute (const struct price_terms *terms, const struct price_use *use,
                   enum price_rounding rounding, credit_micro *amount_out, struct err *err)
{
    if (check (terms, use, err) < 0)
        return err->code;
    *amount_out = 0;
    if (use->time == 0)
        return 0;
    struct wide sum = {{(uint64_t)terms->base_ppm}}, extra = {{(uint64_t)terms->extra_parts}};
    wide_multiply_128 (&sum, work_of (terms, use, rounding));
    wide_multiply (&sum, PRICE_PARTS);
    wide_multiply (&extra, (uint64_t)use->time);
    wide_multiply (&extra, 1000);
    wide_add (&sum, &extra, 0);
    wide_multiply_128 (&sum, (unsigned __int128)banded_time (terms, use, rounding));
    wide_multiply (&sum, (uint64_t)terms->qos_ppm);
    wide_multiply (&sum, (uint64_t)terms->class_ppm);
    wide_multiply (&sum, (uint64_t)terms->group_ppm);
    wide_multiply (&sum, (uint64_t)terms->machine_ppm);
    wide_multiply (&sum, terms->node_procs ? terms->node_weight : PRICE_ONE);
    /* Micro-credits: 1e-6 for base, work's microseconds, the time's multiplier and the five
     * others, 1e-3 for work's thousandths, 1e6 for the unit; and the means over time and processors. */
    uint64_t rest = wide_divide (&sum, (uint64_t)use->time);
    rest |= wide_divide (&sum, PRICE_PARTS);
    rest |= wide_divide (&sum, terms->node_procs ? terms->node_procs : 1);
    rest |= wide_divide (&sum, UINT64_C (1000000000000));       /* 1e12 */
    rest |= wide_divide (&sum, UINT64_C (1000000000000000));    /* 1e15 */
    rest |= wide_divide (&sum, UINT64_C (1000000000000000000)); /* 1e18 */
    if (rounding == PRICE_HOLD && rest)
        wide_add (&sum, &(struct wide){{1}}, 0);
    uint64_t above = 0;
    for (int i = 1; i < WIDE_PARTS; i++)
        above |= sum.part[i];
    if (above || sum.part[0] > (uint64_t)PRICE_AMOUNT_MAX)
        return err_set (err, ERR_LIMIT,
                        "price: %" PRId64 " processors for %" PRId64
                        " s cost more than the ledger can hold",
                        use->procs, use->time / US_PER_S);
    *amount_out = (credit_micro)sum.part[0];
    return 0;
}

/* ---- formulas ---- */

struct text {
    char *at, *end;
};

static void say (struct text *t, const char *fmt, ...) __attribute__ ((format (printf, 2, 3)));
static void say (struct text *t, const char *fmt, ...)
{
    va_list ap;
    va_start (ap, fmt);
    int n = vsnprintf (t->at, (size_t)(t->end - t->at), fmt, ap);
    va_end (ap);
    t->at = n < t->end - t->at ? t->at + n : t->end - 1;
}

static void say_factor (struct text *t, const char *what, int64_t ppm)
{
    char number[QUANTITY_TEXT_MAX];
    if (ppm != PRICE_ONE)
        say (t, " * %s %s", what, credit_format (ppm, number));
}

/* Seconds and ppm have six decimals, as credits do. */
char *price_formula (const struct price_terms *terms, const struct price_use *use,
                     enum price_rounding rounding, credit_micro amount, char buf[PRICE_FORMULA_MAX])
{
    char seconds[QUANTITY_TEXT_MAX], base[QUANTITY_TEXT_MAX], number[QUANTITY_TEXT_MAX];
    struct text t = {buf, buf + PRICE_FORMULA_MAX};
    bool cpu = terms->measure == PRICE_CPU && rounding == PRICE_CHARGE && use->cpu > 0;
    credit_format (use->time, seconds);
    credit_format (terms->base_ppm, base);
    if (cpu)
        say (&t, "%s cpu s * %s",
             credit_format ((int64_t)(work_of (terms, use, rounding) / 1000), number), base);
    else if (terms->measure == PRICE_PE && use->pe_milli)
        say (&t, "%s PE * %s s * %s", credit_format (use->pe_milli * 1000, number), seconds, base);
    else
        say (&t, "%" PRId64 " procs * %s s * %s", use->procs, seconds, base);
    if (terms->extra_parts) {
        char whole[PRICE_FORMULA_MAX];
        memcpy (whole, buf, sizeof (whole));
        t.at = buf;
        say (&t, "(%.*s + %s s * %s for memory and gres)", 200, whole, seconds,
             credit_format (terms->extra_parts / PRICE_PARTS, number));
    }
    say_factor (&t, "qos", terms->qos_ppm);
    say_factor (&t, "class", terms->class_ppm);
    say_factor (&t, "co-reserved", terms->group_ppm);
    say_factor (&t, "machine", terms->machine_ppm);
    if (terms->node_procs)
        say_factor (&t, "node types", (int64_t)(terms->node_weight / terms->node_procs));
    if (terms->band_count && use->time > 0)
        say_factor (&t, "time of day", (int64_t)(banded_time (terms, use, rounding) / use->time));
    say (&t, " = %s credits", credit_format (amount, number));
    return buf;
}
