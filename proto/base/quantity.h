/* quantity: time, durations, credits, memory and ids as people write them. Pure.
 *
 * Inside the programs time is int64 microseconds since the epoch (UTC), credits are int64
 * micro-credits, memory is int64 MB. Parsing never accepts trailing characters. */
#ifndef NUI_BASE_QUANTITY_H
#define NUI_BASE_QUANTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/err.h"

typedef int64_t time_us;     /* a moment: microseconds since 1970-01-01T00:00:00Z */
typedef int64_t duration_us; /* a length of time in microseconds */
typedef int64_t credit_micro;

#define TIME_US_MAX INT64_MAX  /* "infinity" for ends of reservations */
#define TIME_US_NONE INT64_MIN /* "not set" */
#define US_PER_S INT64_C (1000000)
#define MICRO_PER_CREDIT INT64_C (1000000)

enum { QUANTITY_TEXT_MAX = 40 };

/* "[[D:]HH:]MM:SS", "SS" (plain seconds), or "INFINITY"/"UNLIMITED" where allowed
 * (-> TIME_US_MAX). Maui's and Slurm's forms: also "D-HH[:MM[:SS]]". */
int duration_parse (const char *text, duration_us *out, struct err *err);
/* "[[D:]HH:]MM:SS": 59 s -> "00:00:59", 3600 s -> "1:00:00", a day and more "1:02:03:04"
 * (Maui's habit); negative gets a leading '-'; TIME_US_MAX -> "INFINITY". Rounds down to s. */
char *duration_format (duration_us d, char buf[QUANTITY_TEXT_MAX]);

/* ISO 8601 with zone ("2026-11-21T14:30:00Z", "+02:00"), without zone = local time; "2026-11",
 * "yesterday", "today" and "tomorrow" (their beginning, local time); "HH:MM[:SS]" (the next such
 * moment after now, local time), Maui's "HH:MM[:SS]_MM/DD[/YY]", "+DURATION" and "-DURATION" from
 * now, "now", or epoch seconds "@N". */
int time_parse (const char *text, time_us now, time_us *out, struct err *err);
/* Where only the past makes sense: "HH:MM[:SS]" is the last such moment, up to now; so is a date
 * without a year. All else as above. */
int time_parse_past (const char *text, time_us now, time_us *out, struct err *err);
/* "2026-11" (a month), "2026-11-21", "today", "yesterday", "tomorrow": [from, to), local time. */
int period_parse (const char *text, time_us now, time_us *from_out, time_us *to_out,
                  struct err *err);
char *time_format_iso (time_us t, char buf[QUANTITY_TEXT_MAX]);   /* local time with zone */
char *time_format_table (time_us t, char buf[QUANTITY_TEXT_MAX]); /* "Sun Sep  9 03:34:00" */

/* Credits: decimal, up to six decimals, optional sign; no floating point anywhere. */
int credit_parse (const char *text, credit_micro *out, struct err *err);
char *credit_format (credit_micro c, char buf[QUANTITY_TEXT_MAX]); /* "12", "0.5", "-3.000001" */
int credit_add (credit_micro a, credit_micro b, credit_micro *out, struct err *err);

/* Memory in MB: "512", "512M", "4G", "1T", "2048K" (rounded up to MB). */
int memory_parse (const char *text, int64_t *mb_out, struct err *err);

/* Unsigned integer in [min, max]; what names it in the error. */
int uint_parse (const char *text, const char *what, uint64_t min, uint64_t max, uint64_t *out,
                struct err *err);
int int_parse (const char *text, const char *what, int64_t min, int64_t max, int64_t *out,
               struct err *err);
/* Fixed-point decimal to parts per million: "1.25" -> 1250000. */
int ppm_parse (const char *text, const char *what, int64_t *ppm_out, struct err *err);
int bool_parse (const char *text, bool *out, struct err *err); /* TRUE/FALSE/ON/OFF/YES/NO/1/0 */

/* Ids: "alpha.17", "grid.42" -> prefix and number; prefix_out holds at least prefix_cap bytes. */
int id_parse (const char *text, char *prefix_out, size_t prefix_cap, uint64_t *number_out,
              struct err *err);
/* A name (site, user, account, component): 1..63 of [A-Za-z0-9._-], not starting with '-' or '.' */
int name_check (const char *what, const char *name, struct err *err);

struct uuid {
    uint8_t b[16];
};
char *uuid_format (const struct uuid *u, char buf[QUANTITY_TEXT_MAX]);
int uuid_parse (const char *text, struct uuid *out, struct err *err);

#endif
