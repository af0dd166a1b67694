/* The time half of quantity.h: durations and moments as people write them. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "proto/base/quantity.h"

static bool is_digit (char c)
{
    return c >= '0' && c <= '9';
}

/* Reads 1 … digits_max digits; false when there are none or more. */
static bool number_at (const char **at, int digits_max, int64_t *out)
{
    int64_t value = 0;
    int n = 0;
    for (; is_digit (**at) && n < digits_max; n++, (*at)++)
        value = value * 10 + (**at - '0');
    *out = value;
    return n > 0 && !is_digit (**at);
}

static bool skip (const char **at, char c)
{
    if (**at != c)
        return false;
    (*at)++;
    return true;
}

enum { DURATION_FIELDS = 4, DURATION_DIGITS = 12 };

/* Turns fields (days, hours, minutes, seconds) into microseconds; false on overflow. */
static bool duration_join (const int64_t field[DURATION_FIELDS], duration_us *out)
{
    static const int64_t seconds[DURATION_FIELDS] = {86400, 3600, 60, 1};
    int64_t sum = 0;
    for (int i = 0; i < DURATION_FIELDS; i++) {
        int64_t part;
        if (__builtin_mul_overflow (field[i], seconds[i] * US_PER_S, &part) ||
            __builtin_add_overflow (sum, part, &sum))
            return false;
    }
    *out = sum;
    return sum < TIME_US_MAX;
}

/* Fields after the first have their clock's range; the first may hold more ("90:00"). */
static bool fields_in_range (const int64_t field[DURATION_FIELDS], int first)
{
    static const int64_t range[DURATION_FIELDS] = {0, 24, 60, 60};
    for (int i = first + 1; i < DURATION_FIELDS; i++)
        if (field[i] >= range[i])
            return false;
    return true;
}

int duration_parse (const char *text, duration_us *out, struct err *err)
{
    if (!strcasecmp (text, "INFINITY") || !strcasecmp (text, "UNLIMITED") ||
        !strcasecmp (text, "INFINITE")) {
        *out = TIME_US_MAX;
        return 0;
    }
    int64_t read[DURATION_FIELDS] = {0}, field[DURATION_FIELDS] = {0};
    const char *at = text;
    int count = 0, first = 0;
    bool ok = number_at (&at, DURATION_DIGITS, &read[count++]);
    if (ok && skip (&at, '-')) { /* Slurm's D-HH[:MM[:SS]] */
        do
            ok = number_at (&at, 2, &read[count++]);
        while (ok && count < DURATION_FIELDS && skip (&at, ':'));
        memcpy (field, read, sizeof field);
    } else if (ok) {
        while (ok && count < DURATION_FIELDS && skip (&at, ':'))
            ok = number_at (&at, 2, &read[count++]);
        first = DURATION_FIELDS - count;
        memcpy (field + first, read, (size_t)count * sizeof field[0]);
    }
    if (!ok || *at || !fields_in_range (field, first))
        return err_set (err, ERR_INVALID,
                        "'%.64s' is not a duration ([[D:]HH:]MM:SS, D-HH:MM:SS or seconds)", text);
    duration_us d;
    if (!duration_join (field, &d))
        return err_set (err, ERR_LIMIT, "duration '%.64s' is too long", text);
    *out = d;
    return 0;
}

char *duration_format (duration_us d, char buf[QUANTITY_TEXT_MAX])
{
    if (d == TIME_US_MAX) {
        snprintf (buf, QUANTITY_TEXT_MAX, "INFINITY");
        return buf;
    }
    int64_t floor_s = d / US_PER_S - (d % US_PER_S < 0);
    uint64_t s = floor_s < 0 ? -(uint64_t)floor_s : (uint64_t)floor_s;
    const char *sign = floor_s < 0 ? "-" : "";
    unsigned hour = (unsigned)(s / 3600 % 24), minute = (unsigned)(s / 60 % 60);
    unsigned second = (unsigned)(s % 60);
    uint64_t day = s / 86400;
    if (day > 0)
        snprintf (buf, QUANTITY_TEXT_MAX, "%s%" PRIu64 ":%02u:%02u:%02u", sign, day, hour, minute,
                  second);
    else if (hour > 0)
        snprintf (buf, QUANTITY_TEXT_MAX, "%s%u:%02u:%02u", sign, hour, minute, second);
    else
        snprintf (buf, QUANTITY_TEXT_MAX, "%s00:%02u:%02u", sign, minute, second);
    return buf;
}

/* --- moments ------------------------------------------------------------------------------ */

struct moment {
    int64_t year, month, day, hour, minute, second, fraction_us;
    bool zoned;
    int64_t offset_s;
};

static int64_t month_days (int64_t year, int64_t month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days[month - 1] + (month == 2 && leap);
}

static bool date_valid (int64_t year, int64_t month, int64_t day)
{
    return year >= 1970 && year <= 9999 && month >= 1 && month <= 12 && day >= 1 &&
           day <= month_days (year, month);
}

/* HH:MM[:SS], both two digits at most. */
static bool clock_at (const char **at, struct moment *m)
{
    if (!number_at (at, 2, &m->hour) || !skip (at, ':') || !number_at (at, 2, &m->minute))
        return false;
    if (skip (at, ':') && !number_at (at, 2, &m->second))
        return false;
    return m->hour < 24 && m->minute < 60 && m->second < 60;
}

static bool fraction_at (const char **at, struct moment *m)
{
    int64_t unit = 100000;
    if (!is_digit (**at))
        return false;
    for (; is_digit (**at); (*at)++, unit /= 10)
        m->fraction_us += (**at - '0') * unit;
    return true;
}

static bool zone_at (const char **at, struct moment *m)
{
    if (**at == '\0')
        return true;
    m->zoned = true;
    if (skip (at, 'Z') || skip (at, 'z'))
        return true;
    int64_t sign = **at == '-' ? -1 : 1, hour, minute = 0;
    if (!skip (at, '+') && !skip (at, '-'))
        return false;
    const char *digits = *at;
    if (!number_at (at, 4, &hour))
        return false;
    if (*at - digits == 4) {
        minute = hour % 100;
        hour /= 100;
    } else if (*at - digits != 2 || (skip (at, ':') && !number_at (at, 2, &minute))) {
        return false;
    }
    m->offset_s = sign * (hour * 3600 + minute * 60);
    return hour < 24 && minute < 60;
}

static bool iso_parse (const char *text, struct moment *m)
{
    const char *at = text;
    if (!number_at (&at, 4, &m->year) || at - text != 4 || !skip (&at, '-') ||
        !number_at (&at, 2, &m->month) || !skip (&at, '-') || !number_at (&at, 2, &m->day))
        return false;
    if (!date_valid (m->year, m->month, m->day))
        return false;
    if (!skip (&at, 'T') && !skip (&at, 't') && !skip (&at, ' '))
        return false;
    if (!clock_at (&at, m) || (skip (&at, '.') && !fraction_at (&at, m)))
        return false;
    return zone_at (&at, m) && *at == '\0';
}

/* Moments before 1970 are refused: nothing here happened then. */
static bool moment_to_us (const struct moment *m, time_us *out)
{
    struct tm tm = {.tm_year = (int)m->year - 1900,
                    .tm_mon = (int)m->month - 1,
                    .tm_mday = (int)m->day,
                    .tm_hour = (int)m->hour,
                    .tm_min = (int)m->minute,
                    .tm_sec = (int)m->second,
                    .tm_isdst = -1};
    time_t t = m->zoned ? timegm (&tm) - (time_t)m->offset_s : mktime (&tm);
    if (t < 0)
        return false;
    *out = (time_us)t * US_PER_S + m->fraction_us;
    return true;
}

/* Of the moments that a clock time or a date without a year may mean: the one ahead of now, or the last one up to
 * it. */
enum sense { SENSE_NEXT, SENSE_LAST };

static bool sense_fits (enum sense sense, time_us t, time_us now)
{
    return sense == SENSE_LAST ? t <= now : t > now;
}

/* HH:MM[:SS] of a day beside now; mktime carries days over the ends of months. */
static bool clock_beside (struct moment *m, enum sense sense, time_us now, time_us *out)
{
    for (int days = 0; days < 3; days++, m->day += sense == SENSE_LAST ? -1 : 1) {
        if (!moment_to_us (m, out))
            return false;
        if (sense_fits (sense, *out, now))
            return true;
    }
    return false;
}

/* Maui's _MM/DD[/YY] after a clock time; without a year the next such date, or the last. */
static bool date_beside (const char **at, struct moment *m, enum sense sense, time_us now,
                         time_us *out)
{
    if (!number_at (at, 2, &m->month) || !skip (at, '/') || !number_at (at, 2, &m->day))
        return false;
    if (skip (at, '/')) {
        const char *digits = *at;
        if (!number_at (at, 4, &m->year) || (*at - digits != 2 && *at - digits != 4))
            return false;
        if (*at - digits == 2)
            m->year += 2000;
        return date_valid (m->year, m->month, m->day) && moment_to_us (m, out);
    }
    /* 8: over 1900-like gaps of leap years */
    for (int years = 0; years <= 8; years++, m->year += sense == SENSE_LAST ? -1 : 1)
        if (date_valid (m->year, m->month, m->day) && moment_to_us (m, out) &&
            sense_fits (sense, *out, now))
            return true;
    return false;
}

static bool today (time_us now, struct moment *out)
{
    time_t seconds = (time_t)(now / US_PER_S);
    struct tm tm;
    if (!localtime_r (&seconds, &tm))
        return false;
    *out = (struct moment){.year = tm.tm_year + 1900, .month = tm.tm_mon + 1, .day = tm.tm_mday};
    return true;
}

static bool clock_parse (const char *text, enum sense sense, time_us now, time_us *out)
{
    struct moment m;
    const char *at = text;
    if (!today (now, &m) || !clock_at (&at, &m))
        return false;
    if (*at == '\0')
        return clock_beside (&m, sense, now, out);
    return skip (&at, '_') && date_beside (&at, &m, sense, now, out) && *at == '\0';
}

/* The first moment of a day or a month, and of the one after it. */
static bool calendar_parse (const char *text, time_us now, time_us *from, time_us *to)
{
    static const struct {
        const char *word;
        int days;
    } words[] = {{"yesterday", -1}, {"today", 0}, {"tomorrow", 1}};
    struct moment m = {.day = 1};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcasecmp (text, words[i].word) == 0) {
            if (!today (now, &m))
                return false;
            m.day += words[i].days;
            return moment_to_us (&m, from) && (m.day++, moment_to_us (&m, to));
        }
    const char *at = text;
    if (!number_at (&at, 4, &m.year) || at - text != 4 || !skip (&at, '-') ||
        !number_at (&at, 2, &m.month) || at - text != 7)
        return false;
    bool month = *at == '\0';
    if ((!month && (!skip (&at, '-') || !number_at (&at, 2, &m.day) || *at)) ||
        !date_valid (m.year, m.month, m.day) || !moment_to_us (&m, from))
        return false;
    m.month += month;
    m.day += !month;
    return moment_to_us (&m, to);
}

static int relative_parse (const char *text, time_us now, time_us *out, struct err *err)
{
    duration_us d;
    bool ago = *text == '-';
    if (duration_parse (text + 1, &d, err) < 0)
        return err_prefix (err, "time");
    if (d == TIME_US_MAX && !ago) {
        *out = TIME_US_MAX;
        return 0;
    }
    time_us at;
    if (__builtin_add_overflow (now, ago ? -d : d, &at) || at == TIME_US_MAX || (ago && at < 0))
        return err_set (err, ERR_LIMIT, "time '%.64s' is too far away", text);
    *out = at;
    return 0;
}

static int moment_parse (const char *text, enum sense sense, time_us now, time_us *out,
                         struct err *err)
{
    if (!strcasecmp (text, "now")) {
        *out = now;
        return 0;
    }
    if (!strcasecmp (text, "INFINITY")) {
        *out = TIME_US_MAX;
        return 0;
    }
    if (*text == '+' || *text == '-')
        return relative_parse (text, now, out, err);
    if (*text == '@') {
        uint64_t seconds;
        int rc = uint_parse (text + 1, "time", 0, (uint64_t)(INT64_MAX / US_PER_S), &seconds, err);
        if (rc == 0)
            *out = (time_us)seconds * US_PER_S;
        return rc;
    }
    struct moment m = {0};
    time_us parsed, end;
    if (calendar_parse (text, now, &parsed, &end) ||
        (iso_parse (text, &m) ? moment_to_us (&m, &parsed)
                              : clock_parse (text, sense, now, &parsed))) {
        *out = parsed;
        return 0;
    }
    return err_set (err, ERR_INVALID,
                    "'%.64s' is not a time (2026-11-21T14:30[:00][Z], HH:MM[:SS][_MM/DD[/YY]], "
                    "2026-11, yesterday, today, tomorrow, +DURATION, -DURATION, now or @SECONDS)",
                    text);
}

int time_parse (const char *text, time_us now, time_us *out, struct err *err)
{
    return moment_parse (text, SENSE_NEXT, now, out, err);
}

int time_parse_past (const char *text, time_us now, time_us *out, struct err *err)
{
    return moment_parse (text, SENSE_LAST, now, out, err);
}

int period_parse (const char *text, time_us now, time_us *from_out, time_us *to_out,
                  struct err *err)
{
    time_us from, to;
    if (!calendar_parse (text, now, &from, &to))
        return err_set (err, ERR_INVALID,
                        "'%.64s' is not a period (2026-11, 2026-11-21, today or yesterday)", text);
    *from_out = from;
    *to_out = to;
    return 0;
}

static bool local_tm (time_us t, struct tm *tm, char buf[QUANTITY_TEXT_MAX])
{
    if (t == TIME_US_MAX || t == TIME_US_NONE) {
        snprintf (buf, QUANTITY_TEXT_MAX, "%s", t == TIME_US_MAX ? "INFINITY" : "-");
        return false;
    }
    time_t seconds = (time_t)(t / US_PER_S - (t % US_PER_S < 0));
    if (!localtime_r (&seconds, tm)) {
        snprintf (buf, QUANTITY_TEXT_MAX, "@%" PRId64, (int64_t)seconds);
        return false;
    }
    return true;
}

char *time_format_iso (time_us t, char buf[QUANTITY_TEXT_MAX])
{
    struct tm tm;
    if (!local_tm (t, &tm, buf))
        return buf;
    size_t n = strftime (buf, QUANTITY_TEXT_MAX, "%Y-%m-%dT%H:%M:%S", &tm);
    long offset_min = tm.tm_gmtoff / 60;
    if (offset_min == 0) {
        snprintf (buf + n, QUANTITY_TEXT_MAX - n, "Z");
        return buf;
    }
    long size = offset_min < 0 ? -offset_min : offset_min;
    snprintf (buf + n, QUANTITY_TEXT_MAX - n, "%c%02ld:%02ld", offset_min < 0 ? '-' : '+',
              size / 60 % 100, size % 60);
    return buf;
}

char *time_format_table (time_us t, char buf[QUANTITY_TEXT_MAX])
{
    struct tm tm;
    if (local_tm (t, &tm, buf))
        strftime (buf, QUANTITY_TEXT_MAX, "%a %b %e %H:%M:%S", &tm);
    return buf;
}
