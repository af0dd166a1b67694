#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/base/log.h"

struct file {
    char dir[64];
    char path[96];
    char text[65536];
};

static int setup (void **state)
{
    struct file *f = calloc (1, sizeof *f);
    strcpy (f->dir, "/tmp/nui-log-XXXXXX");
    if (!mkdtemp (f->dir))
        return -1;
    snprintf (f->path, sizeof f->path, "%s/x.log", f->dir);
    *state = f;
    return 0;
}

static int teardown (void **state)
{
    struct file *f = *state;
    unlink (f->path);
    rmdir (f->dir);
    free (f);
    return 0;
}

static char *slurp (struct file *f)
{
    FILE *in = fopen (f->path, "r");
    assert_non_null (in);
    size_t n = fread (f->text, 1, sizeof f->text - 1, in);
    f->text[n] = '\0';
    fclose (in);
    return f->text;
}

static int count_lines (const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}

static void a_line_per_event (void **state)
{
    struct file *f = *state;
    struct err err = {0};
    struct log *log = log_create (f->path, LOG_LEVEL_INFO, "nui test", &err);
    assert_non_null (log);
    log_event (log, LOG_LEVEL_INFO, "rm", "job_started", "job=%s nodes=%u", "alpha.17", 4u);
    log_event (log, LOG_LEVEL_DEBUG, "rm", "hidden", "x=1");
    log_level_set (log, LOG_LEVEL_ERROR);
    log_event (log, LOG_LEVEL_WARN, "rm", "hidden", "x=2");
    log_event (log, LOG_LEVEL_ERROR, "rm", "split", "text=%s", "two\nlines");
    log_destroy (log);
    char *text = slurp (f);
    assert_contains (text, "Z info log opened program=\"nui test\" pid=");
    assert_contains (text, "Z info rm job_started job=alpha.17 nodes=4\n");
    assert_null (strstr (text, "hidden"));
    assert_contains (text, "Z error rm split text=two?lines\n");
    assert_int_equal (count_lines (text), 3);
    int y, mo, d, h, mi, s, us;
    assert_int_equal (sscanf (text, "%4d-%2d-%2dT%2d:%2d:%2d.%6dZ ", &y, &mo, &d, &h, &mi, &s, &us),
                      7);
    assert_true (y >= 2024 && mo >= 1 && mo <= 12);
}

static void long_lines_are_cut_and_marked (void **state)
{
    struct file *f = *state;
    struct log *log = log_create (f->path, LOG_LEVEL_INFO, "t", NULL);
    char *big = malloc (20001);
    memset (big, 'x', 20000);
    big[20000] = '\0';
    log_event (log, LOG_LEVEL_INFO, "a", "b", "v=%s", big);
    log_event (log, LOG_LEVEL_INFO, "a", "c", "v=1");
    log_destroy (log);
    free (big);
    char *text = slurp (f);
    assert_int_equal (count_lines (text), 3);
    assert_contains (text, "xxx cut=1\n");
    assert_contains (text, " a c v=1\n");
}

static void reopen_follows_rotation (void **state)
{
    struct file *f = *state;
    struct err err = {0};
    struct log *log = log_create (f->path, LOG_LEVEL_INFO, "t", &err);
    unlink (f->path);
    assert_ok (log_reopen (log, &err), err);
    log_event (log, LOG_LEVEL_INFO, "a", "after", "x=1");
    assert_contains (slurp (f), "after");
    /* A failing reopen keeps the open file. */
    unlink (f->path);
    assert_int_equal (rmdir (f->dir), 0);
    assert_int_equal (log_reopen (log, &err), ERR_IO);
    assert_contains (err.text, f->path);
    log_event (log, LOG_LEVEL_INFO, "a", "still", "x=1");
    log_destroy (log);
}

static void null_logger_discards (void **state)
{
    (void)state;
    log_event (NULL, LOG_LEVEL_ERROR, "a", "b", "x=%d", 1);
    log_level_set (NULL, LOG_LEVEL_INFO);
    assert_int_equal (log_reopen (NULL, NULL), 0);
    log_destroy (NULL);
    struct err err = {0};
    assert_null (log_create ("/nonexistent/x.log", LOG_LEVEL_INFO, "t", &err));
    assert_int_equal (err.code, ERR_IO);
}

static void quoting (void **state)
{
    (void)state;
    char buf[64];
    const char *plain = "alpha.17";
    assert_ptr_equal (log_quote (plain, buf, sizeof buf), plain);
    assert_string_equal (log_quote ("", buf, sizeof buf), "\"\"");
    assert_string_equal (log_quote (NULL, buf, sizeof buf), "\"\"");
    assert_string_equal (log_quote ("a b", buf, sizeof buf), "\"a b\"");
    assert_string_equal (log_quote ("a=\"b\"\\\n\t\x01", buf, sizeof buf),
                         "\"a=\\\"b\\\"\\\\\\n\\t\\x01\"");
    char small[6];
    assert_string_equal (log_quote ("a bcdefgh", small, sizeof small), "\"a b\"");
    assert_string_equal (log_quote ("a\x01", small, sizeof small), "\"a\"");
    assert_string_equal (log_quote ("a b", small, 2), "\"\"");
}

static void levels (void **state)
{
    (void)state;
    enum log_level level;
    struct err err = {0};
    assert_ok (log_level_parse ("WARN", &level, &err), err);
    assert_int_equal (level, LOG_LEVEL_WARN);
    assert_ok (log_level_parse ("3", &level, &err), err);
    assert_int_equal (level, LOG_LEVEL_INFO);
    assert_ok (log_level_parse ("9", &level, &err), err);
    assert_int_equal (level, LOG_LEVEL_DEBUG);
    assert_int_equal (log_level_parse ("10", &level, &err), ERR_INVALID);
    assert_int_equal (log_level_parse ("", &level, &err), ERR_INVALID);
}

static void levels_by_area (void **state)
{
    struct file *f = *state;
    struct err err = {0};
    struct log_levels levels;
    struct log *log = log_create (f->path, LOG_LEVEL_INFO, "t", &err);
    assert_ok (log_levels_parse ("warn,rm=debug,rpc=error", &levels, &err), err);
    log_levels_set (log, &levels);
    log_event (log, LOG_LEVEL_DEBUG, "rm", "seen_rm", "a=1");
    log_event (log, LOG_LEVEL_WARN, "rpc", "unseen_rpc", "a=1");
    log_event (log, LOG_LEVEL_INFO, "svc", "unseen_svc", "a=1");
    log_event (log, LOG_LEVEL_WARN, "svc", "seen_svc", "a=1");
    log_destroy (log);
    char *text = slurp (f);
    assert_non_null (strstr (text, "debug rm seen_rm a=1"));
    assert_non_null (strstr (text, "warn svc seen_svc a=1"));
    assert_null (strstr (text, "unseen"));
    assert_ok (log_levels_parse ("rm=4", &levels, &err), err);
    assert_int_equal (levels.all, LOG_LEVEL_INFO);
    assert_int_equal (levels.area[0].level, LOG_LEVEL_DEBUG);
    assert_int_equal (log_levels_parse ("info,", &levels, &err), ERR_INVALID);
    assert_int_equal (log_levels_parse ("info,=debug", &levels, &err), ERR_INVALID);
    assert_int_equal (log_levels_parse ("rm=loud", &levels, &err), ERR_INVALID);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown (a_line_per_event, setup, teardown),
        cmocka_unit_test_setup_teardown (long_lines_are_cut_and_marked, setup, teardown),
        cmocka_unit_test_setup_teardown (reopen_follows_rotation, setup, teardown),
        cmocka_unit_test (null_logger_discards),
        cmocka_unit_test (quoting),
        cmocka_unit_test (levels),
        cmocka_unit_test_setup_teardown (levels_by_area, setup, teardown),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
