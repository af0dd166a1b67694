#include "../base/unit.h"

#include <string.h>

#include "proto/base/clock.h"
#include "proto/cli/options.h"
#include "capture.h"

struct args {
    const char *user, *stop;
    bool all, running;
    duration_us length;
    time_us at, since;
    struct cli_period period;
    uint64_t tasks;
    int64_t nice, mem_mb;
    credit_micro cost;
    struct cli_list component;
};

static const struct cli_option options[] = {
    {"user", 'u', CLI_OPT_STRING, NULL, NULL, offsetof (struct args, user)},
    {"stop", 's', CLI_OPT_OPTIONAL, NULL, NULL, offsetof (struct args, stop)},
    {"all", 'a', CLI_OPT_FLAG, NULL, NULL, offsetof (struct args, all)},
    {NULL, 'r', CLI_OPT_FLAG, NULL, NULL, offsetof (struct args, running)},
    {"walltime", 't', CLI_OPT_DURATION, NULL, NULL, offsetof (struct args, length)},
    {"at", 0, CLI_OPT_TIME, NULL, NULL, offsetof (struct args, at)},
    {"since", 0, CLI_OPT_PAST, NULL, NULL, offsetof (struct args, since)},
    {"period", 0, CLI_OPT_PERIOD, NULL, NULL, offsetof (struct args, period)},
    {"tasks", 'n', CLI_OPT_COUNT, NULL, NULL, offsetof (struct args, tasks), 1, 1000},
    {"nice", 0, CLI_OPT_INT, NULL, NULL, offsetof (struct args, nice), -20, 20},
    {"mem", 0, CLI_OPT_MEMORY, NULL, NULL, offsetof (struct args, mem_mb)},
    {"max-cost", 0, CLI_OPT_CREDITS, NULL, NULL, offsetof (struct args, cost)},
    {"component", 0, CLI_OPT_LIST, NULL, NULL, offsetof (struct args, component)},
    {0}};

static int never (struct cli_context *ctx, int argc, char **argv)
{
    (void)ctx, (void)argc, (void)argv;
    return 1;
}

static const struct cli_command command = {
    .name = "submit",
    .group = "Users",
    .run = never,
    .summary = "send a job",
    .help = "usage: nui submit X\n--user --stop --all -r "
            "--walltime --at --since --period --tasks --nice --mem "
            "--max-cost --component"};

static struct args args;
static struct cli_operands operands;
static struct cli_context *ctx;

/* Parses a line split at blanks; -1: go on, else the exit code. */
static int parse (const char *line, unsigned flags)
{
    static char text[1024];
    static char *argv[64];
    int argc = 0, exit_code = -1;
    snprintf (text, sizeof text, "submit %s", line);
    for (char *word = strtok (text, " "); word; word = strtok (NULL, " "))
        argv[argc++] = word;
    memset (&args, 0, sizeof args);
    cli_context_destroy (ctx);
    ctx = cli_context_create ();
    cli_set_command (ctx, &command);
    capture_begin ();
    bool go_on = cli_options (ctx, options, flags, &args, argc, argv, &operands, &exit_code);
    capture_end ();
    if (go_on)
        assert_int_equal (exit_code, 0); /* whoever goes on begins with a code that is good */
    return go_on ? -1 : exit_code;
}

static int teardown (void **state)
{
    (void)state;
    cli_context_destroy (ctx);
    ctx = NULL;
    return 0;
}

static void all_forms (void **state)
{
    (void)state;
    assert_int_equal (parse ("-u john -ra op1 --walltime=1:00:00 -n5 op2 --mem 4G --max-cost 1.5 "
                             "--nice -3 --component a --component=b --at @5 -- -x --all",
                             0),
                      -1);
    assert_string_equal (args.user, "john");
    assert_true (args.all && args.running);
    assert_true (args.length == 3600 * US_PER_S && args.tasks == 5 && args.mem_mb == 4096);
    assert_true (args.cost == 1500000 && args.nice == -3 && args.at == 5 * US_PER_S);
    assert_int_equal (args.component.count, 2);
    assert_string_equal (args.component.item[1], "b");
    assert_int_equal (operands.count, 4);
    assert_string_equal (operands.item[0], "op1");
    assert_string_equal (operands.item[1], "op2");
    assert_string_equal (operands.item[2], "-x");
    assert_string_equal (operands.item[3], "--all");
    assert_int_equal (parse ("-rujohn", 0), -1);
    assert_string_equal (args.user, "john");
    assert_int_equal (parse ("- -5 -0x", 0), -1);
    assert_int_equal (operands.count, 3);
    assert_int_equal (parse ("", 0), -1);
    assert_int_equal (operands.count, 0);
    assert_int_equal (parse ("--user= x", 0), -1);
    assert_string_equal (args.user, "");
}

/* The same word ahead of us and behind us: never the moment on the other side. */
static void times_have_a_direction (void **state)
{
    (void)state;
    for (int hour = 0; hour < 24; hour++) {
        char line[64];
        snprintf (line, sizeof line, "--at %02d:00 --since %02d:00", hour, hour);
        time_us before = clock_now_us ();
        assert_int_equal (parse (line, 0), -1);
        assert_true (args.at > before && args.since <= clock_now_us ());
        assert_true (args.since > before - 26 * 3600 * US_PER_S);
    }
    assert_int_equal (parse ("--since -2:00:00", 0), -1);
    assert_true (args.since <= clock_now_us () - 7200 * US_PER_S);
    assert_int_equal (parse ("--period 2026-02", 0), -1);
    assert_true (args.period.to - args.period.from == 28 * 86400 * US_PER_S);
    assert_int_equal (parse ("--period 14:00", 0), 2);
}

static void a_script_keeps_its_own_options (void **state)
{
    (void)state;
    assert_int_equal (parse ("-n 2 run.sh -n 7 --help --unknown", CLI_STOP_AT_OPERAND), -1);
    assert_int_equal (args.tasks, 2);
    assert_int_equal (operands.count, 5);
    assert_string_equal (operands.item[0], "run.sh");
    assert_string_equal (operands.item[4], "--unknown");
}

static void optional_values (void **state)
{
    (void)state;
    assert_int_equal (parse ("-s job", 0), -1);
    assert_string_equal (args.stop, "");
    assert_int_equal (operands.count, 1);
    assert_int_equal (parse ("-s 10I", 0), -1);
    assert_string_equal (args.stop, "10I");
    assert_int_equal (parse ("-s5", 0), -1);
    assert_string_equal (args.stop, "5");
    assert_int_equal (parse ("--stop", 0), -1);
    assert_string_equal (args.stop, "");
}

static void common_options (void **state)
{
    (void)state;
    assert_int_equal (parse ("--json --noheader --config /x/y --all", 0), -1);
    assert_int_equal (cli_format (ctx), CLI_JSON);
    assert_true (cli_noheader (ctx));
    assert_int_equal (parse ("--csv", 0), -1);
    assert_int_equal (cli_format (ctx), CLI_CSV);
    assert_int_equal (parse ("--help --nonsense", 0), CLI_OK);
    assert_contains (captured[0], "nui submit: send a job");
    assert_contains (captured[0], "usage: nui submit X");
    assert_int_equal (parse ("-h", 0), CLI_OK);
}

static void wrong_usage (void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"--walltme 5", "nui submit: unknown option --walltme, did you mean --walltime?"},
        {"--jsn", "did you mean --json?"},
        {"--qqqqqqqq", "unknown option --qqqqqqqq (see nui submit --help)"},
        {"-x", "unknown option -x"},
        {"-rx", "unknown option -x"},
        {"-u", "-u needs a value"},
        {"--user", "--user needs a value"},
        {"--config", "--config needs a file"},
        {"--all=yes", "--all takes no value"},
        {"--json=1", "--json takes no value"},
        {"-t 1x", "--walltime: '1x' is not a duration"},
        {"-n 0", "--tasks: 0 is not between 1 and 1000"},
        {"-n many", "--tasks: 'many' is not a whole number"},
        {"--mem 4Q", "--mem: memory: '4Q'"},
        {"--at tomorrows", "--at: 'tomorrows' is not a time"},
        {"--max-cost 1,5", "--max-cost: credits: '1,5'"},
        {"--nice 21", "--nice: 21 is not between -20 and 20"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (parse (cases[i][0], 0) != CLI_USAGE)
            fail_msg ("'%s' was taken", cases[i][0]);
        assert_contains (captured[1], cases[i][1]);
        assert_int_equal (captured[0][0], '\0');
        assert_ptr_equal (strchr (captured[1], '\n'), captured[1] + strlen (captured[1]) - 1);
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown (all_forms, teardown),
        cmocka_unit_test_teardown (times_have_a_direction, teardown),
        cmocka_unit_test_teardown (a_script_keeps_its_own_options, teardown),
        cmocka_unit_test_teardown (optional_values, teardown),
        cmocka_unit_test_teardown (common_options, teardown),
        cmocka_unit_test_teardown (wrong_usage, teardown),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
