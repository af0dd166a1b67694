/* Any text through every parser of quantity.h; what one takes, it takes again from its own
 * spelling with the same value. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "proto/base/quantity.h"

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size);

static void durations_and_times (const char *text)
{
    const time_us now = INT64_C (1795271400) * US_PER_S;
    struct err err = {0};
    char buf[QUANTITY_TEXT_MAX];
    int64_t a = 0, b = 0;
    if (duration_parse (text, &a, &err) == 0) {
        int rc = duration_parse (duration_format (a, buf), &b, &err);
        assert (a >= 0 && (rc == ERR_INVALID || (rc == 0 && a == b)));
        /* Only a day count of more digits than the parser reads may fail to come back. */
        assert (rc == 0 || strchr (buf, ':') - buf > 12);
    } else {
        assert (err.text[0]);
    }
    if (time_parse (text, now, &a, &err) == 0) {
        time_format_table (a, buf);
        time_format_iso (a, buf);
        /* Years of five digits are no ISO 8601. */
        if (a < INT64_C (253402300800) * US_PER_S && a >= 0) {
            assert (time_parse (buf, now, &b, &err) == 0);
            assert (a - b >= 0 && a - b < US_PER_S);
        }
    }
}

static void amounts (const char *text)
{
    struct err err = {0};
    char buf[QUANTITY_TEXT_MAX];
    int64_t a = 0, b = 0;
    uint64_t u = 0;
    if (credit_parse (text, &a, &err) == 0) {
        int rc = credit_parse (credit_format (a, buf), &b, &err);
        assert (rc == 0 && a == b);
    }
    if (memory_parse (text, &a, &err) == 0)
        assert (a >= 0);
    if (uint_parse (text, "u", 3, 1u << 30, &u, &err) == 0)
        assert (u >= 3 && u <= 1u << 30);
    if (int_parse (text, "i", -7, 7, &a, &err) == 0)
        assert (a >= -7 && a <= 7);
    ppm_parse (text, "p", &a, &err);
}

static void ids (const char *text)
{
    struct err err = {0};
    char buf[QUANTITY_TEXT_MAX], prefix[64];
    uint64_t number;
    struct uuid a, b;
    bool flag;
    bool_parse (text, &flag, &err);
    if (uuid_parse (text, &a, &err) == 0) {
        int rc = uuid_parse (uuid_format (&a, buf), &b, &err);
        assert (rc == 0 && memcmp (a.b, b.b, 16) == 0);
    }
    if (id_parse (text, prefix, sizeof prefix, &number, &err) == 0)
        assert (name_check ("prefix", prefix, &err) == 0);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    setenv ("TZ", "UTC0", 1);
    tzset ();
    char *text = calloc (1, size + 1);
    assert (text);
    if (size)
        memcpy (text, data, size);
    durations_and_times (text);
    amounts (text);
    ids (text);
    free (text);
    return 0;
}
