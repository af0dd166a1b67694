#include "../base/unit.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "proto/cli/table.h"
#include "capture.h"

static const struct table_column columns[] = {
    {"id", "JOBNAME", TABLE_TEXT, 0},
    {"procs", "PROC", TABLE_INT, 0},
    {"cost", "COST", TABLE_CREDITS, 0},
    {"remaining", "REMAINING", TABLE_DURATION, 0},
    {"start_time", "STARTTIME", TABLE_TIME, 0},
    {"xfactor", "XF", TABLE_PPM, 2},
    {"held", "HELD", TABLE_BOOL, 0},
};

static struct table *sample (void)
{
    struct table *t = table_create (columns, 7);
    table_text (t, "alpha.17");
    table_int (t, 8);
    table_credits (t, 12500000);
    table_duration (t, 3600 * US_PER_S);
    table_time (t, INT64_C (1795271400) * US_PER_S);
    table_ppm (t, 1255000);
    table_bool (t, true);
    table_end_row (t);
    table_printf (t, "a,\"b\"\n\x1b[31m%s", "é");
    table_int (t, -12345);
    table_null (t);
    table_null (t);
    table_time (t, TIME_US_NONE);
    table_ppm (t, -4);
    table_null (t);
    table_end_row (t);
    return t;
}

static int utc (void **state)
{
    (void)state;
    setenv ("TZ", "UTC0", 1);
    tzset ();
    return 0;
}

static void as_a_table (void **state)
{
    (void)state;
    struct table *t = sample ();
    struct strbuf out = STRBUF_INIT;
    table_to_text (t, (struct table_look){.noheader = false, .colour = false}, &out);
    assert_string_equal (
        strbuf_text (&out),
        "JOBNAME         PROC  COST  REMAINING            STARTTIME    XF  HELD\n"
        "alpha.17           8  12.5    1:00:00  Sat Nov 21 14:30:00  1.26   yes\n"
        "a,\"b\"??[31mé  -12345     -          -                    -  0.00     -\n");
    strbuf_clear (&out);
    table_to_text (t, (struct table_look){.noheader = true, .colour = true}, &out);
    assert_null (strstr (strbuf_text (&out), "JOBNAME"));
    strbuf_clear (&out);
    table_to_text (t, (struct table_look){.noheader = false, .colour = true}, &out);
    assert_memory_equal (strbuf_text (&out), "\033[1mJOBNAME", 11);
    strbuf_free (&out);
    table_destroy (t);
}

/* 80, 120, 200 columns: the last texts give way, the first and the numbers stay; elsewhere nothing is shortened. */
static void fits_the_terminal (void **state)
{
    (void)state;
    static const struct table_column wide[] = {{"id", "Id", TABLE_TEXT},
                                               {"what", "What", TABLE_TEXT},
                                               {"n", "N", TABLE_INT},
                                               {"why", "Why", TABLE_TEXT}};
    static const unsigned columns_of[] = {80, 120, 200, 0};
    static const unsigned wanted[] = {80, 120, 200, 40 + 2 + 60 + 2 + 6 + 2 + 120};
    char text[121];
    struct table *t = table_create (wide, 4);
    memset (text, 'x', 120);
    text[120] = '\0';
    table_printf (t, "%.40s", text);
    table_printf (t, "é%.59s", text);
    table_int (t, 123456);
    table_text (t, text);
    table_end_row (t);
    for (int i = 0; i < 4; i++) {
        struct strbuf out = STRBUF_INIT;
        table_to_text (t, (struct table_look){.noheader = true, .width = columns_of[i]}, &out);
        const char *line = strbuf_text (&out);
        unsigned seen = 0;
        for (const char *c = line; *c && *c != '\n'; c++)
            seen += ((unsigned char)*c & 0xc0) != 0x80;
        assert_int_equal (seen, wanted[i]);
        assert_non_null (strstr (line, "  123456  "));
        assert_memory_equal (line, text, 40);
        assert_int_equal (columns_of[i] != 0, strstr (line, "…") != NULL);
        strbuf_free (&out);
    }
    table_destroy (t);
}

/* Where shortening is not enough: what is empty goes, then what can be spared, the largest first; the zone is said once. */
static void leaves_out_what_can_be_spared (void **state)
{
    (void)state;
    static const struct table_column wide[] = {
        {"id", "Id", TABLE_TEXT, .spare = 9},    {"made", "Made", TABLE_TIME, .spare = 2},
        {"empty", "Empty", TABLE_TEXT},          {"due", "Due", TABLE_TIME, .spare = 1},
        {"cost", "Cost", TABLE_INT, .spare = 3}, {"why", "Why", TABLE_TEXT}};
    static const struct {
        unsigned width;
        const char *text;
    } looks[] = {{0, "Id           Made (UTC)  Empty                  Due  Cost  Why\n"
                     "a   Sat Nov 21 14:30:00  -      Sat Nov 21 14:30:00     7  for no reason\n"},
                 {66, "Id           Made (UTC)                  Due  Cost  Why\n"
                      "a   Sat Nov 21 14:30:00  Sat Nov 21 14:30:00     7  for no reason\n"},
                 {60, "Id           Made (UTC)                  Due  Why\n"
                      "a   Sat Nov 21 14:30:00  Sat Nov 21 14:30:00  for no reason\n"},
                 {50, "Id            Due (UTC)  Why\n"
                      "a   Sat Nov 21 14:30:00  for no reason\n"},
                 {10, "Id  Why\na   for no …\n"}};
    struct table *t = table_create (wide, 6);
    table_text (t, "a");
    table_time (t, INT64_C (1795271400) * US_PER_S);
    table_null (t);
    table_time (t, INT64_C (1795271400) * US_PER_S);
    table_int (t, 7);
    table_text (t, "for no reason");
    table_end_row (t);
    for (size_t i = 0; i < sizeof looks / sizeof *looks; i++) {
        struct strbuf out = STRBUF_INIT;
        table_to_text (t, (struct table_look){.width = looks[i].width, .zone = true}, &out);
        assert_string_equal (strbuf_text (&out), looks[i].text);
        strbuf_free (&out);
    }
    table_destroy (t);
}

static void years_and_zones (void **state)
{
    (void)state;
    static const struct table_column two[] = {{"from", "From", TABLE_TIME},
                                              {"to", "To", TABLE_TIME}};
    struct table_look look = {.now = INT64_C (1795271400) * US_PER_S, .zone = true};
    struct strbuf out = STRBUF_INIT;
    struct table *t = table_create (two, 2);
    table_time (t, INT64_C (1795271400) * US_PER_S);
    table_time (t, INT64_C (1795271400) * US_PER_S);
    table_end_row (t);
    table_time (t, INT64_C (1795271400) * US_PER_S);
    table_time (t, INT64_C (1000004640) * US_PER_S);
    table_end_row (t);
    table_to_text (t, look, &out);
    assert_string_equal (strbuf_text (&out), "         From (UTC)                        To\n"
                                             "Sat Nov 21 14:30:00  Sat Nov 21 14:30:00 2026\n"
                                             "Sat Nov 21 14:30:00  Sun Sep  9 03:04:00 2001\n");
    strbuf_clear (&out);
    setenv ("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
    tzset ();
    table_to_text (t, look, &out);
    assert_memory_equal (strbuf_text (&out), "    From (CET/CEST)  ", 21);
    strbuf_free (&out);
    table_destroy (t);
}

/* At a terminal moments inside sentences are the reader's; elsewhere they stay as the daemon said them. */
static void sentences_have_the_readers_zone (void **state)
{
    (void)state;
    static const struct table_column one[] = {{"reason", "Reason", TABLE_TEXT}};
    struct table_look look = {.noheader = true, .now = INT64_C (1795271400) * US_PER_S};
    struct strbuf out = STRBUF_INIT;
    struct table *t = table_create (one, 1);
    table_text (t, "clears at 2026-11-21T14:30:00Z; 2027-01-02T23:30:00Z, 1-2T3:4Z");
    table_end_row (t);
    setenv ("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
    tzset ();
    table_to_text (t, look, &out);
    assert_string_equal (strbuf_text (&out),
                         "clears at 2026-11-21T14:30:00Z; 2027-01-02T23:30:00Z, 1-2T3:4Z\n");
    strbuf_clear (&out);
    look.width = 100;
    table_to_text (t, look, &out);
    assert_string_equal (strbuf_text (&out),
                         "clears at Sat Nov 21 15:30:00; Sun Jan  3 00:30:00 2027, 1-2T3:4Z\n");
    strbuf_free (&out);
    table_destroy (t);
}

static void as_csv (void **state)
{
    (void)state;
    struct table *t = sample ();
    struct strbuf out = STRBUF_INIT;
    table_to_csv (t, false, &out);
    assert_string_equal (strbuf_text (&out),
                         "id,procs,cost,remaining,start_time,xfactor,held\n"
                         "alpha.17,8,12.5,1:00:00,2026-11-21T14:30:00Z,1.255,true\n"
                         "\"a,\"\"b\"\"\n\x1b[31mé\",-12345,,,,-0.000004,\n");
    strbuf_free (&out);
    table_destroy (t);
}

static void as_json (void **state)
{
    (void)state;
    struct table *t = sample ();
    struct strbuf out = STRBUF_INIT;
    struct jsonout json = jsonout_make (&out);
    table_to_json (t, &json);
    assert_string_equal (
        strbuf_text (&out),
        "[\n  {\n    \"id\": \"alpha.17\",\n    \"procs\": 8,\n    \"cost\": 12.5,\n"
        "    \"remaining\": \"1:00:00\",\n    \"start_time\": \"2026-11-21T14:30:00Z\",\n"
        "    \"xfactor\": 1.255,\n    \"held\": true\n  },\n"
        "  {\n    \"id\": \"a,\\\"b\\\"\\n\\u001b[31mé\",\n    \"procs\": -12345,\n    \"cost\": null,\n"
        "    \"remaining\": null,\n    \"start_time\": null,\n    \"xfactor\": -0.000004,\n"
        "    \"held\": null\n  }\n]\n");
    strbuf_free (&out);
    table_destroy (t);
}

static void nothing_to_show (void **state)
{
    (void)state;
    struct table *t = table_create (columns, 7);
    struct strbuf out = STRBUF_INIT;
    struct jsonout json = jsonout_make (&out);
    table_to_json (t, &json);
    assert_string_equal (strbuf_text (&out), "[]\n");
    strbuf_clear (&out);
    table_to_csv (t, true, &out);
    assert_string_equal (strbuf_text (&out), "");
    table_to_text (t, (struct table_look){.noheader = false, .colour = false}, &out);
    assert_string_equal (strbuf_text (&out),
                         "JOBNAME  PROC  COST  REMAINING  STARTTIME  XF  HELD\n");
    strbuf_free (&out);
    table_destroy (t);
    table_destroy (NULL);
}

static void a_record (void **state)
{
    (void)state;
    static const struct table_column three[] = {{"name", "Name", TABLE_TEXT, 0},
                                                {"why", "Why it does not run", TABLE_TEXT, 0},
                                                {"jobs", "Jobs running", TABLE_INT, 0}};
    struct table *t = TABLE_CREATE (three);
    table_text (t, "alpha");
    table_null (t);
    table_int (t, 3);
    table_end_row (t);
    struct cli_context *ctx = cli_context_create ();
    capture_begin ();
    int rc = table_print_record (t, ctx);
    cli_set_format (ctx, CLI_JSON);
    rc |= table_print_record (t, ctx);
    cli_set_format (ctx, CLI_CSV);
    rc |= table_print_record (t, ctx);
    capture_end ();
    assert_int_equal (rc, 0);
    assert_string_equal (captured[0],
                         "Name:          alpha\nJobs running:  3\n"
                         "{\n  \"name\": \"alpha\",\n  \"why\": null,\n  \"jobs\": 3\n}\n"
                         "name,why,jobs\nalpha,,3\n");
    cli_context_destroy (ctx);
    table_destroy (t);
}

static void another_order (void **state)
{
    (void)state;
    static const struct table_column pair[] = {{"name", "Name", TABLE_TEXT, 0},
                                               {"jobs", "Jobs", TABLE_INT, 0}};
    static const struct {
        const char *name;
        int64_t jobs;
    } rows[] = {{"grid.10", 3}, {"grid.9", -1}, {"b", 7}, {"a", 7}};
    static const struct {
        const char *columns, *sort, *text;
    } cases[] = {
        {NULL, NULL, "grid.10,3\ngrid.9,\nb,7\na,7\n"},
        {NULL, "name", "a,7\nb,7\ngrid.9,\ngrid.10,3\n"},
        {"jobs,name,jobs", "jobs", "3,grid.10,3\n7,b,7\n7,a,7\n,grid.9,\n"},
        {"name", "-jobs", "b\na\ngrid.10\ngrid.9\n"}, /* what is null is last either way */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct table *t = TABLE_CREATE (pair);
        struct strbuf out = STRBUF_INIT;
        struct err err = {0};
        for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
            table_text (t, rows[r].name);
            if (rows[r].jobs < 0)
                table_null (t);
            else
                table_int (t, rows[r].jobs);
            table_end_row (t);
        }
        assert_int_equal (table_arrange (t, "name,x", NULL, &err), ERR_INVALID);
        assert_string_equal (err.text, "there is no column 'x'; there are name, jobs");
        assert_int_equal (table_arrange (t, cases[i].columns, cases[i].sort, &err), 0);
        table_to_csv (t, true, &out);
        assert_string_equal (strbuf_text (&out), cases[i].text);
        strbuf_free (&out);
        table_destroy (t);
    }
}

static void full_disk_is_told (void **state)
{
    (void)state;
    FILE *full = fopen ("/dev/full", "w");
    if (!full)
        skip ();
    struct strbuf text = STRBUF_INIT;
    strbuf_puts (&text, "x\n");
    capture_begin ();
    dup2 (fileno (full), 1);
    int rc = cli_output (&text);
    clearerr (stdout);
    capture_end ();
    assert_int_equal (rc, CLI_FAILED);
    assert_contains (captured[1], "No space left on device");
    strbuf_free (&text);
    fclose (full);
}

static void nested_json (void **state)
{
    (void)state;
    struct strbuf out = STRBUF_INIT;
    struct jsonout j = jsonout_make (&out);
    jsonout_object (&j);
    jsonout_key (&j, "a\"b");
    jsonout_array (&j);
    jsonout_end (&j);
    jsonout_key (&j, "n");
    jsonout_uint (&j, UINT64_MAX);
    jsonout_key (&j, "bad");
    jsonout_text (&j, "x\xff\xc0\x80\xed\xa0\x80\xf5y\xe2\x82");
    jsonout_key (&j, "end");
    jsonout_time (&j, TIME_US_MAX);
    jsonout_key (&j, "d");
    jsonout_duration (&j, TIME_US_MAX);
    jsonout_key (&j, "none");
    jsonout_text (&j, NULL);
    jsonout_end (&j);
    assert_string_equal (strbuf_text (&out),
                         "{\n  \"a\\\"b\": [],\n  \"n\": 18446744073709551615,\n"
                         "  \"bad\": \"x???????y??\",\n  \"end\": null,\n  \"d\": \"INFINITY\",\n"
                         "  \"none\": null\n}\n");
    strbuf_free (&out);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup (as_a_table, utc),
        cmocka_unit_test_setup (as_csv, utc),
        cmocka_unit_test_setup (as_json, utc),
        cmocka_unit_test (nothing_to_show),
        cmocka_unit_test (a_record),
        cmocka_unit_test (another_order),
        cmocka_unit_test (full_disk_is_told),
        cmocka_unit_test (nested_json),
        cmocka_unit_test (fits_the_terminal),
        cmocka_unit_test_setup (leaves_out_what_can_be_spared, utc),
        cmocka_unit_test_setup (years_and_zones, utc),
        cmocka_unit_test (sentences_have_the_readers_zone),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
