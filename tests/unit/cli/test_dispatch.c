#include "../base/unit.h"

#include <string.h>

#include "proto/cli/options.h"
#include "capture.h"

static char ran[256];

static int run (struct cli_context *ctx, int argc, char **argv)
{
    static const struct cli_option none[] = {{0}};
    struct cli_operands operands;
    int exit_code;
    if (!cli_options (ctx, none, 0, NULL, argc, argv, &operands, &exit_code))
        return exit_code;
    snprintf (ran, sizeof ran, "%s/%d/%d", argv[0], operands.count, (int)cli_format (ctx));
    return operands.count == 3 ? CLI_FAILED : CLI_OK;
}

static const struct cli_command jobs = {.name = "jobs",
                                        .group = "Users, on the grid",
                                        .summary = "list my jobs",
                                        .run = run,
                                        .help = "usage: nui jobs [--mine]\n"};
static const struct cli_command submit = {
    .name = "submit",
    .group = "Users, on the grid",
    .summary = "send a job",
    .run = run,
    .help =
        "usage: nui submit [-t|--walltime T] SCRIPT\n  --stage-in URL=PATH  fetch; see --stage-out\n"};
static const struct cli_command showq = {.name = "showq",
                                         .group = "On a cluster",
                                         .summary = "list the queue",
                                         .run = run,
                                         .help = "usage: nui showq [-r]"};
static const struct cli_command *const grid[] = {&jobs, &submit, NULL};
static const struct cli_command *const cluster[] = {&showq, NULL};
static const struct cli_command *const *const tables[] = {grid, cluster, NULL};

static int call (const char *line)
{
    static char text[256];
    static char *argv[16];
    int argc = 0;
    snprintf (text, sizeof text, "%s", line);
    for (char *word = strtok (text, " "); word; word = strtok (NULL, " "))
        argv[argc++] = word;
    ran[0] = '\0';
    capture_begin ();
    int code = cli_main (tables, cluster, argc, argv);
    capture_end ();
    return code;
}

static void runs_by_word_and_by_link (void **state)
{
    (void)state;
    assert_int_equal (call ("/usr/bin/nui jobs a b"), 0);
    assert_string_equal (ran, "jobs/2/0");
    assert_int_equal (call ("nui --json jobs a b c"), CLI_FAILED);
    assert_string_equal (ran, "jobs/3/1");
    assert_int_equal (call ("/opt/bin/showq --csv"), 0);
    assert_string_equal (ran, "showq/0/2");
    assert_int_equal (call ("nui showq"), 0);
    assert_string_equal (ran, "showq/0/0");
}

static void explains_itself (void **state)
{
    (void)state;
    assert_int_equal (call ("nui help"), 0);
    assert_contains (captured[0], "\nUsers, on the grid\n  jobs           list my jobs\n"
                                  "  submit         send a job\n\nOn a cluster\n  showq ");
    assert_int_equal (call ("nui --help"), 0);
    assert_int_equal (call ("nui help submit"), 0);
    assert_contains (captured[0], "nui submit: send a job\n\nusage: nui submit");
    assert_int_equal (call ("nui submit --help"), 0);
    assert_contains (captured[0], "usage: nui submit");
    assert_string_equal (ran, "");
    assert_int_equal (call ("showq --help"), 0);
    assert_contains (captured[0], "usage: nui showq");
    assert_int_equal (call ("nui --version"), 0);
    assert_string_equal (captured[0], "nui " NUI_VERSION "\n");
}

static void refuses_with_a_hint (void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"nui", "no command given"},
        {"nui sumbit", "unknown command 'sumbit', did you mean 'submit'?"},
        {"nui help shwoq", "did you mean 'showq'?"},
        {"nui xyzzyplugh", "unknown command 'xyzzyplugh' (see nui help)"},
        {"nui squeue", "there is no squeue here: nui jobs, on a cluster nui showq\n"},
        {"nui --jsn jobs", "unknown option --jsn, did you mean --json?"},
        {"nui --config", "a file is missing after --config"},
        {"nui completion csh", "say 'bash'"},
        {"nui jobs --bad", "nui jobs: unknown option --bad"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal (call (cases[i][0]), CLI_USAGE);
        assert_contains (captured[1], cases[i][1]);
        assert_string_equal (captured[0], "");
        assert_string_equal (ran, "");
    }
}

static void completion (void **state)
{
    (void)state;
    assert_int_equal (call ("nui completion bash"), 0);
    assert_contains (captured[0],
                     "submit) echo '--json --csv --noheader --config --help --walltime "
                     "--stage-in --stage-out' ;;");
    assert_contains (captured[0], "-W 'help completion jobs submit showq'");
    assert_contains (captured[0], "complete -o filenames -F _nui nui showq\n");
    assert_contains (captured[0], "_nui_list jobs");
    assert_null (strstr (captured[0], "_nui_list balance"));
    assert_int_equal (call ("nui completion fish"), 0);
    assert_contains (captured[0],
                     "complete -c nui -n '__fish_seen_subcommand_from submit' -l walltime\n");
    assert_contains (captured[0], "__nui_list jobs");
    assert_null (strstr (captured[0], "__nui_list balance"));
    assert_int_equal (call ("nui completion links"), 0);
    assert_string_equal (captured[0], "showq\n");
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (runs_by_word_and_by_link),
        cmocka_unit_test (explains_itself),
        cmocka_unit_test (refuses_with_a_hint),
        cmocka_unit_test (completion),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
