#include "../base/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/conf/conf.h"

/* --- a small program's parameters ---------------------------------------------------------- */

struct user {
    char name[32];
    int64_t priority;
    int64_t fstarget_ppm;
    const char *days;
    char limits[256];
};

struct settings {
    int64_t poll;
    int policy;
    bool on;
    int64_t decay;
    const char *log;
    const char *path;
    const char *text;
    int64_t memory, credits, count;
    char depth[128];
    struct user user[8];
    int user_count;
};

static const char *const policies[] = {"FIRSTFIT", "BESTFIT", "NONE", NULL};

static int set_depth (void *target, const struct conf_value *v, struct err *err)
{
    struct settings *s = target;
    if (v->word_count == 0)
        return err_set (err, ERR_INVALID, "has no value");
    size_t len = strlen (s->depth);
    snprintf (s->depth + len, sizeof s->depth - len, "%s=%s/%u;", v->index ? v->index : "-",
              v->text, v->word_count);
    return 0;
}

static int set_limit (void *target, const struct conf_value *v, struct err *err)
{
    (void)err;
    struct user *u = target;
    size_t len = strlen (u->limits);
    snprintf (u->limits + len, sizeof u->limits - len, "%s[%s]=%s@%u;", v->attr,
              v->attr_index ? v->attr_index : "", v->text, v->line);
    return 0;
}

static int find_user (void *target, const char *index, void **out, struct err *err)
{
    struct settings *s = target;
    for (int i = 0; i < s->user_count; i++)
        if (strcmp (s->user[i].name, index) == 0) {
            *out = &s->user[i];
            return 0;
        }
    if (s->user_count == 8)
        return err_set (err, ERR_LIMIT, "more than 8 users");
    struct user *u = &s->user[s->user_count++];
    snprintf (u->name, sizeof u->name, "%s", index);
    *out = u;
    return 0;
}

static const struct conf_param user_attrs[] = {
    {.name = "PRIORITY", .type = CONF_INT, .offset = offsetof (struct user, priority)},
    {.name = "FSTARGET", .type = CONF_PPM, .offset = offsetof (struct user, fstarget_ppm)},
    {.name = "DAYS", .type = CONF_STRING, .offset = offsetof (struct user, days)},
    {.name = "MAXJOB", .type = CONF_CALL, .set = set_limit, .flags = CONF_F_ATTR_INDEX},
    {.name = "MAXPROC", .type = CONF_CALL, .set = set_limit, .flags = CONF_F_ATTR_INDEX},
    {.name = "LIST", .type = CONF_UNSUPPORTED},
    {0}};

static const struct conf_param table[] = {
    {.name = "RMPOLLINTERVAL",
     .type = CONF_DURATION,
     .offset = offsetof (struct settings, poll),
     .min = US_PER_S,
     .max = 3600 * US_PER_S,
     .initial = "00:01:00"},
    {.name = "BACKFILLPOLICY",
     .type = CONF_WORD,
     .offset = offsetof (struct settings, policy),
     .words = policies,
     .initial = "NONE"},
    {.name = "ON", .type = CONF_BOOL, .offset = offsetof (struct settings, on)},
    {.name = "FSDECAY",
     .type = CONF_PPM,
     .offset = offsetof (struct settings, decay),
     .max = 1000000},
    {.name = "LOGFILE", .type = CONF_STRING, .offset = offsetof (struct settings, log)},
    {.name = "STATEDIR", .type = CONF_PATH, .offset = offsetof (struct settings, path)},
    {.name = "MOTD", .type = CONF_TEXT, .offset = offsetof (struct settings, text)},
    {.name = "MEM", .type = CONF_MEMORY, .offset = offsetof (struct settings, memory)},
    {.name = "MAXCOST", .type = CONF_CREDITS, .offset = offsetof (struct settings, credits)},
    {.name = "COUNT",
     .type = CONF_INT,
     .offset = offsetof (struct settings, count),
     .min = 1,
     .max = 9},
    {.name = "RESERVATIONDEPTH", .type = CONF_CALL, .set = set_depth, .flags = CONF_F_INDEX},
    {.name = "BUCKET", .type = CONF_CALL, .set = set_depth, .flags = CONF_F_INDEX_REQUIRED},
    {.name = "USERCFG", .type = CONF_RECORD, .attrs = user_attrs, .record = find_user},
    {.name = "SIMFLAGS", .type = CONF_UNSUPPORTED},
    {0}};

static struct conf *kept;

static int load (const char *text, struct settings *s, struct err *err)
{
    memset (s, 0, sizeof *s);
    conf_destroy (kept);
    kept = conf_parse (text, strlen (text), "/etc/nui/x.cfg", err);
    if (!kept)
        return err->code;
    int rc = conf_table_read (kept, table, s, err);
    return rc < 0 ? rc : conf_finish (kept, err);
}

static int teardown (void **state)
{
    (void)state;
    conf_destroy (kept);
    kept = NULL;
    return 0;
}

/* --- tests --------------------------------------------------------------------------------- */

static void every_type (void **state)
{
    (void)state;
    struct settings s;
    struct err err = {0};
    assert_ok (load ("# comment\n"
                     "rmPollInterval 00:00:30   # half a minute\r\n"
                     "\tBackfillPolicy bestfit\n\n"
                     "ON yes\nFSDECAY .80\nLOGFILE \"a # b\" # c\n"
                     "STATEDIR state\nMOTD  hello \"big\" world \n"
                     "MEM 4G\nMAXCOST 12.5\nCOUNT 9\n"
                     "RESERVATIONDEPTH 1\nRESERVATIONDEPTH[2] 4 \\\n  5\nBUCKET[x] y",
                     &s, &err),
               err);
    assert_true (s.poll == 30 * US_PER_S);
    assert_int_equal (s.policy, 1);
    assert_true (s.on);
    assert_true (s.decay == 800000);
    assert_string_equal (s.log, "a # b");
    assert_string_equal (s.path, "/etc/nui/state");
    assert_string_equal (s.text, "hello \"big\" world");
    assert_true (s.memory == 4096 && s.credits == 12500000 && s.count == 9);
    assert_string_equal (s.depth, "-=1/1;2=4    5/2;x=y/1;");
}

static void initial_values_and_last_wins (void **state)
{
    (void)state;
    struct settings s;
    struct err err = {0};
    assert_ok (load ("", &s, &err), err);
    assert_true (s.poll == 60 * US_PER_S);
    assert_int_equal (s.policy, 2);
    assert_ok (load ("COUNT 1\nCOUNT 2\n", &s, &err), err);
    assert_int_equal (s.count, 2);
}

static void records_add_up (void **state)
{
    (void)state;
    struct settings s;
    struct err err = {0};
    assert_ok (load ("UserCfg[john] PRIORITY=500 maxjob[USER]=3\n"
                     "USERCFG[DEFAULT] MAXPROC=16,24\n"
                     "USERCFG[john] MAXPROC[USER:steve]=4,8 FSTARGET=\"25.0\"\n"
                     "USERCFG[john] DAYS=MON, TUE, WED ,THU MAXJOB=7\n",
                     &s, &err),
               err);
    assert_int_equal (s.user_count, 2);
    assert_string_equal (s.user[0].name, "john");
    assert_int_equal (s.user[0].priority, 500);
    assert_true (s.user[0].fstarget_ppm == 25000000);
    assert_string_equal (s.user[0].days, "MON,TUE,WED,THU");
    assert_string_equal (s.user[0].limits,
                         "MAXJOB[USER]=3@1;MAXPROC[USER:steve]=4,8@3;MAXJOB[]=7@4;");
    assert_string_equal (s.user[1].limits, "MAXPROC[]=16,24@2;");
}

static void errors_name_line_and_thing (void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"\n\nRESERVATIONDEPHT 1\n",
         "x.cfg: line 3: unknown parameter RESERVATIONDEPHT, did you mean RESERVATIONDEPTH?"},
        {"QWERTYUIOP 1\n", "line 1: unknown parameter QWERTYUIOP"},
        {"USERCFG[bob] FSTARGT=1\n",
         "line 1: USERCFG[bob]: unknown attribute FSTARGT, did you mean FSTARGET?"},
        {"USERCFG[bob] PRIORITY\n", "line 1: USERCFG[bob]: expected ATTRIBUTE=value at 'PRIORITY'"},
        {"USERCFG[bob] PRIORITY=\n", "PRIORITY: has no value"},
        {"USERCFG[bob] PRIORITY=x\n", "PRIORITY: value: 'x' is not a whole number"},
        {"USERCFG[bob] PRIORITY[x]=1\n", "PRIORITY takes no [x]"},
        {"USERCFG[bob] MAXJOB[=1\n", "'MAXJOB[' is not an attribute"},
        {"USERCFG[bob] MAXJOB[]=1\n", "is not an attribute"},
        {"USERCFG PRIORITY=1\n", "USERCFG: needs an index"},
        {"BUCKET 1\n", "BUCKET: needs an index"},
        {"COUNT[0] 1\n", "COUNT[0]: takes no [0]"},
        {"COUNT 10\n", "line 1: COUNT: is not between 1 and 9"},
        {"COUNT\n", "COUNT: has no value"},
        {"COUNT 1 2\n", "COUNT: takes one value"},
        {"RMPOLLINTERVAL 2:00:00\n", "is not between 00:00:01 and 1:00:00"},
        {"RMPOLLINTERVAL INFINITY\n", "INFINITY is not possible here"},
        {"FSDECAY 1.5\n", "is not between 0 and 1"},
        {"BACKFILLPOLICY FIRSTFITT\n", "none of FIRSTFIT, BESTFIT, NONE; did you mean FIRSTFIT?"},
        {"ON maybe\n", "'maybe' is neither TRUE nor FALSE"},
        {"COUNT[1 2\n", "COUNT: '[' is not closed"},
        {"COUNT[] 2\n", "is not an index"},
        {"COUNT[a b] 2\n", "is not an index"},
        {"COUNT[1]x 2\n", "expected a blank at 'x 2'"},
        {"COUNT=2\n", "expected a blank at '=2'"},
        {"=2\n", "expected a parameter's name"},
        {"LOGFILE \"abc\n", "a quote is not closed"},
        {"COUNT 1\n\x01\n", "line 2: a control character (0x01)"},
        {"COUNT 1\nLOGFILE caf\xe9\n", "line 2: it is not UTF-8 text"},
        {"STATEDIR \"\"\n", "the path is empty"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct settings s;
        struct err err = {0};
        if (load (cases[i][0], &s, &err) >= 0)
            fail_msg ("'%s' was taken", cases[i][0]);
        assert_contains (err.text, cases[i][1]);
        assert_contains (err.text, "x.cfg: line ");
    }
}

static void nul_and_missing_and_limits (void **state)
{
    (void)state;
    struct err err = {0};
    assert_null (conf_parse ("COUNT 1\0\n", 9, "x", &err));
    assert_contains (err.text, "control character");
    assert_null (conf_read_file ("/nonexistent/x.cfg", &err));
    assert_int_equal (err.code, ERR_NOT_FOUND);
    assert_null (conf_read_file ("/", &err));
    assert_int_equal (err.code, ERR_INVALID);
    char *big = malloc (CONF_FILE_BYTES_MAX + 1);
    memset (big, '\n', CONF_FILE_BYTES_MAX + 1);
    assert_null (conf_parse (big, CONF_FILE_BYTES_MAX + 1, "x", &err));
    assert_int_equal (err.code, ERR_LIMIT);
    memset (big, 'A', CONF_LINE_BYTES_MAX + 1);
    assert_null (conf_parse (big, CONF_LINE_BYTES_MAX + 1, "x", &err));
    assert_int_equal (err.code, ERR_LIMIT);
    for (int i = 0; i < 300000; i++)
        memcpy (big + 4 * i, "A 1\n", 4);
    assert_null (conf_parse (big, 1200000, "x", &err));
    assert_int_equal (err.code, ERR_LIMIT);
    assert_contains (err.text, "line 200001");
    free (big);
    struct settings s;
    static const struct conf_param required[] = {
        {.name = "GRID", .type = CONF_STRING, .flags = CONF_F_REQUIRED}, {0}};
    struct conf *conf = conf_parse ("", 0, "empty.cfg", &err);
    assert_int_equal (conf_table_read (conf, required, &s, &err), ERR_INVALID);
    assert_string_equal (err.text, "empty.cfg: GRID is missing");
    conf_destroy (conf);
    conf_destroy (NULL);
}

static void notes_and_tables_together (void **state)
{
    (void)state;
    struct err err = {0};
    struct settings s = {0};
    const char *text = "SIMFLAGS x\nUSERCFG[a] LIST=1\nOTHER 5\nGRID g\nGRID h\n";
    struct conf *conf = conf_parse (text, strlen (text), "x.cfg", &err);
    assert_ok (conf_table_read (conf, table, &s, &err), err);
    assert_int_equal (conf_finish (conf, &err), ERR_INVALID);
    assert_contains (err.text, "line 3: unknown parameter OTHER");
    assert_int_equal (conf_fault_count (conf), 3);
    assert_contains (conf_fault (conf, 1), "line 4: unknown parameter GRID");
    assert_null (conf_fault (conf, 3));
    conf_destroy (conf);
    conf = conf_parse (text, strlen (text), "x.cfg", &err);
    assert_ok (conf_table_read (conf, table, &s, &err), err);
    assert_string_equal (conf_get (conf, "other"), "5");
    assert_string_equal (conf_get (conf, "GRID"), "h");
    assert_null (conf_get (conf, "NONE"));
    assert_ok (conf_finish (conf, &err), err);
    assert_int_equal (conf_note_count (conf), 2);
    assert_contains (conf_note (conf, 0), "x.cfg: line 1: SIMFLAGS");
    assert_contains (conf_note (conf, 1), "x.cfg: line 2: USERCFG LIST");
    assert_null (conf_note (conf, 2));
    assert_int_equal (conf_entry_count (conf), 5);
    assert_string_equal (conf_entry (conf, 1)->value, "LIST=1");
    assert_string_equal (conf_entry (conf, 1)->index, "a");
    assert_int_equal (conf_entry (conf, 4)->line, 5);
    assert_null (conf_entry (conf, 5));
    conf_destroy (conf);
}

static void values_of_lists (void **state)
{
    (void)state;
    /* Maui's lists of credentials with affinity signs are plain words. */
    struct settings s;
    struct err err = {0};
    assert_ok (load ("BUCKET[special]  bob john steve= bill-\n", &s, &err), err);
    assert_string_equal (s.depth, "special=bob john steve= bill-/4;");
    assert_ok (load ("BUCKET[q] \"a \\\"b\\\\\" c\"d e\"f\n", &s, &err), err);
    assert_contains (s.depth, "/2;");
}

static void nearest (void **state)
{
    (void)state;
    static const char *const names[] = {"submit", "status", "showq", "showres", NULL};
    assert_string_equal (conf_nearest ("sumbit", names), "submit");
    assert_string_equal (conf_nearest ("SHOWQ", names), "showq");
    assert_string_equal (conf_nearest ("showr", names), "showq");
    assert_null (conf_nearest ("balance", names));
    assert_null (conf_nearest ("", names));
    assert_int_equal (conf_distance ("kitten", "sitting", 9), 3);
    assert_int_equal (conf_distance ("ab", "ba", 9), 1);
    assert_int_equal (conf_distance ("", "abc", 9), 3);
    assert_int_equal (conf_distance ("abc", "xyz", 1), 2);
    char longest[200];
    memset (longest, 'a', sizeof longest - 1);
    longest[199] = '\0';
    assert_int_equal (conf_distance (longest, "a", 300), 301);
}

/* The reference's files must be read line for line; every key must be a key. */
static void reference_file_is_read (void **state)
{
    (void)state;
    const char *shared = getenv ("NUI_SHARED");
    char path[512];
    snprintf (path, sizeof path, "%s/reference/maui-output/maui.cfg.demo.txt",
              shared ? shared : SOURCE_ROOT "/../shared");
    if (access (path, R_OK) != 0) {
        print_message ("skipped: %s is not here (set NUI_SHARED)\n", path);
        skip ();
    }
    struct err err = {0};
    struct conf *conf = conf_read_file (path, &err);
    if (!conf)
        fail_msg ("%s", err.text);
    assert_int_equal (conf_entry_count (conf), 41);
    const struct conf_entry *last = conf_entry (conf, 40);
    assert_string_equal (last->key, "LOGLEVEL");
    assert_string_equal (last->value, "3");
    conf_destroy (conf);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown (every_type, teardown),
        cmocka_unit_test_teardown (initial_values_and_last_wins, teardown),
        cmocka_unit_test_teardown (records_add_up, teardown),
        cmocka_unit_test_teardown (errors_name_line_and_thing, teardown),
        cmocka_unit_test (nul_and_missing_and_limits),
        cmocka_unit_test (notes_and_tables_together),
        cmocka_unit_test_teardown (values_of_lists, teardown),
        cmocka_unit_test (nearest),
        cmocka_unit_test (reference_file_is_read),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
