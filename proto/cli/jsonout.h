/* jsonout: writes one JSON document, two blanks per level. Pure.
 *
 * For documents that are more than one table. Exact amounts go out as number literals, which no
 * library of ours can write without floating point. Misuse (a value without a key inside an object,
 * unbalanced ends) asserts. */
#ifndef NUI_CLI_JSONOUT_H
#define NUI_CLI_JSONOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/quantity.h"
#include "proto/base/strbuf.h"

enum { JSONOUT_DEPTH_MAX = 16 };

struct jsonout {
    struct strbuf *out;
    unsigned depth;
    bool is_object[JSONOUT_DEPTH_MAX];
    bool has_items[JSONOUT_DEPTH_MAX];
    bool key_given;
};

struct jsonout jsonout_make (struct strbuf *out);
void jsonout_object (struct jsonout *j);
void jsonout_array (struct jsonout *j);
void jsonout_end (struct jsonout *j); /* of the innermost; the outermost adds a newline */
void jsonout_key (struct jsonout *j, const char *key);
void jsonout_text (struct jsonout *j, const char *text); /* NULL: null; not UTF-8: '?' per byte */
void jsonout_int (struct jsonout *j, int64_t value);
void jsonout_uint (struct jsonout *j, uint64_t value);
void jsonout_bool (struct jsonout *j, bool value);
void jsonout_null (struct jsonout *j);
void jsonout_ppm (struct jsonout *j, int64_t ppm); /* 1250000 -> 1.25 */
/* wide: the sum in credits, where it is beyond 64 bits; else "". */
void jsonout_credits_wide (struct jsonout *j, credit_micro amount, const char *wide);
void jsonout_time (struct jsonout *j, time_us t);         /* ISO 8601; null: none, infinite */
void jsonout_duration (struct jsonout *j, duration_us d); /* "1:00:00"; "INFINITY" */

#endif
