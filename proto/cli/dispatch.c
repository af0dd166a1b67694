/* dispatch: from argv to one command of the tables. */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "proto/base/strbuf.h"
#include "proto/cli/client.h"
#include "proto/cli/completion.h"
#include "proto/cli/said.h"
#include "proto/cli/table.h"

enum { NAMES_MAX = 256 };

static const char common_help[] =
    "\nEvery command takes --json, --csv, --noheader, --config FILE and --help.\n";

static const char *const own_commands[] = {"help", "completion", NULL};

static const struct cli_command *find (const struct cli_command *const *const *tables,
                                       const char *name)
{
    for (; *tables; tables++)
        for (const struct cli_command *const *c = *tables; *c; c++)
            if (strcmp ((*c)->name, name) == 0)
                return *c;
    return NULL;
}

static void names_of (const struct cli_command *const *const *tables,
                      const char *names[NAMES_MAX + 3])
{
    int n = 0;
    for (; *tables; tables++)
        for (const struct cli_command *const *c = *tables; *c && n < NAMES_MAX; c++)
            names[n++] = (*c)->name;
    for (int i = 0; own_commands[i]; i++)
        names[n++] = own_commands[i];
    names[n] = NULL;
}

/* Commands of Slurm, PBS, Grid Engine and LSF, and what is typed here for them; a cluster's own command behind them. */
static const struct {
    const char *name, *here;
} elsewhere[] = {
    {"bjobs", "nui jobs, on a cluster nui showq"},
    {"bkill", "nui cancel, on a cluster nui canceljob"},
    {"bsub", "nui submit, on a cluster nui msub"},
    {"pbsnodes", "nui sites, on a cluster nui showstate or nui checknode"},
    {"qalter", "nui mjobctl -m on a cluster"},
    {"qdel", "nui cancel, on a cluster nui canceljob"},
    {"qhold", "nui sethold on a cluster"},
    {"qhost", "nui sites, on a cluster nui showstate"},
    {"qrls", "nui releasehold on a cluster"},
    {"qstat", "nui jobs, on a cluster nui showq or nui checkjob"},
    {"qsub", "nui submit, on a cluster nui msub"},
    {"sacct", "nui jobs and nui usage"},
    {"sbatch", "nui submit, on a cluster nui msub: #SBATCH lines are read"},
    {"scancel", "nui cancel, on a cluster nui canceljob"},
    {"scontrol", "nui status, on a cluster nui checkjob, nui checknode or nui mjobctl"},
    {"sinfo", "nui sites, on a cluster nui showstate or nui showbf"},
    {"sprio", "nui diagnose -p on a cluster"},
    {"squeue", "nui jobs, on a cluster nui showq"},
    {"srun", "nui submit --wait; inside a job nui run, or mpiexec"},
    {"sshare", "nui diagnose -f on a cluster"},
};

static int unknown (const struct cli_command *const *const *tables, const char *name)
{
    const char *names[NAMES_MAX + 3];
    names_of (tables, names);
    for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
        if (strcmp (name, elsewhere[i].name) == 0) {
            fprintf (stderr, "nui: there is no %s here: %s\n", name, elsewhere[i].here);
            return CLI_USAGE;
        }
    const char *near = conf_nearest (name, names);
    fprintf (stderr, "nui: unknown command '%.80s'%s%s%s (see nui help)\n", name,
             near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
    return CLI_USAGE;
}

static bool group_printed (const struct cli_command *const *const *tables,
                           const struct cli_command *at)
{
    for (; *tables; tables++)
        for (const struct cli_command *const *c = *tables; *c; c++) {
            if (*c == at)
                return false;
            if (strcmp ((*c)->group, at->group) == 0)
                return true;
        }
    return false;
}

static void list_group (const struct cli_command *const *const *tables, const char *group,
                        struct strbuf *out)
{
    strbuf_printf (out, "\n%s\n", group);
    for (; *tables; tables++)
        for (const struct cli_command *const *c = *tables; *c; c++)
            if (strcmp ((*c)->group, group) == 0)
                strbuf_printf (out, "  %-14s %s\n", (*c)->name, (*c)->summary);
}

static int print_overview (const struct cli_command *const *const *tables)
{
    struct strbuf out = STRBUF_INIT;
    strbuf_puts (&out, "usage: nui COMMAND [options] [operands]\n");
    for (const struct cli_command *const *const *t = tables; *t; t++)
        for (const struct cli_command *const *c = *t; *c; c++)
            if (!group_printed (tables, *c))
                list_group (tables, (*c)->group, &out);
    strbuf_puts (&out, "\nAbout nui itself\n"
                       "  help           this list, or the help of one command: nui help COMMAND\n"
                       "  completion     nui completion bash|zsh|fish: completion for the shell\n"
                       "  --version      print the version\n");
    strbuf_puts (&out, common_help);
    int rc = cli_output (&out);
    strbuf_free (&out);
    return rc;
}

void cli_help_text (const struct cli_command *command, struct strbuf *out)
{
    if (command->forms)
        cli_forms_help (command, out);
    else
        strbuf_printf (out, command->options || command->text ? "%s\n" : "%s", command->help);
    if (command->text)
        strbuf_printf (out, "\n%s\n", command->text);
    if (command->options) {
        strbuf_putc (out, '\n');
        cli_options_help (command->options, out);
    }
    const char *before = "\nexample: ";
    for (const char *line = command->example; line && *line;
         line += strcspn (line, "\n"), line += *line == '\n') {
        strbuf_printf (out, "%s%.*s\n", before, (int)strcspn (line, "\n"), line);
        before = "         ";
    }
}

void cli_print_help (const struct cli_command *command)
{
    struct strbuf out = STRBUF_INIT;
    strbuf_printf (&out, "nui %s: %s\n\n", command->name, command->summary);
    cli_help_text (command, &out);
    if (out.data[out.len - 1] != '\n')
        strbuf_putc (&out, '\n');
    strbuf_puts (&out, common_help);
    cli_output (&out);
    strbuf_free (&out);
}

static int command_run (struct cli_context *ctx, const struct cli_command *command, int argc,
                        char **argv)
{
    cli_set_command (ctx, command);
    return command->forms ? cli_run_forms (ctx, command, argc, argv)
                          : command->run (ctx, argc, argv);
}

static int run_help (const struct cli_command *const *const *tables, int argc, char **argv)
{
    if (argc < 2)
        return print_overview (tables);
    const struct cli_command *command = find (tables, argv[1]);
    if (!command)
        return unknown (tables, argv[1]);
    cli_print_help (command);
    return CLI_OK;
}

static int run_completion (const struct cli_command *const *const *tables,
                           const struct cli_command *const *links, int argc, char **argv)
{
    struct strbuf out = STRBUF_INIT;
    if (argc == 2 && strcmp (argv[1], "bash") == 0) {
        cli_completion_bash (tables, links, &out);
    } else if (argc == 2 && strcmp (argv[1], "zsh") == 0) {
        cli_completion_zsh (tables, links, &out);
    } else if (argc == 2 && strcmp (argv[1], "fish") == 0) {
        cli_completion_fish (tables, &out);
    } else if (argc == 2 && strcmp (argv[1], "links") == 0) {
        for (const struct cli_command *const *c = links; c && *c; c++)
            strbuf_printf (&out, "%s\n", (*c)->name);
    } else {
        return cli_usage ("completion", "say 'bash', 'zsh', 'fish' or 'links'");
    }
    int rc = cli_output (&out);
    strbuf_free (&out);
    return rc;
}

static int run_command (const struct cli_command *const *const *tables,
                        const struct cli_command *const *links, struct cli_context *ctx, int argc,
                        char **argv)
{
    bool asks_help = argc == 2 && strcmp (argv[1], "--help") == 0;
    if (strcmp (argv[0], "help") == 0)
        return asks_help ? print_overview (tables) : run_help (tables, argc, argv);
    if (strcmp (argv[0], "completion") == 0)
        return asks_help ? print_overview (tables) : run_completion (tables, links, argc, argv);
    const struct cli_command *command = find (tables, argv[0]);
    if (!command)
        return unknown (tables, argv[0]);
    return command_run (ctx, command, argc, argv);
}

/* Options before the command: those every command takes. Returns how many words were taken, or -1
 * with *exit_code. */
static int leading_options (const struct cli_command *const *const *tables, struct cli_context *ctx,
                            int argc, char **argv, int *exit_code)
{
    int at = 1;
    for (; at < argc && argv[at][0] == '-'; at++) {
        const char *arg = argv[at];
        if (strcmp (arg, "--json") == 0) {
            cli_set_format (ctx, CLI_JSON);
        } else if (strcmp (arg, "--csv") == 0) {
            cli_set_format (ctx, CLI_CSV);
        } else if (strcmp (arg, "--noheader") == 0) {
            cli_set_noheader (ctx, true);
        } else if (strcmp (arg, "--config") == 0 && at + 1 < argc) {
            cli_set_config (ctx, argv[++at]);
        } else if (strncmp (arg, "--config=", 9) == 0) {
            cli_set_config (ctx, arg + 9);
        } else if (strcmp (arg, "--version") == 0) {
            printf ("nui %s\n", NUI_VERSION);
            *exit_code = CLI_OK;
            return -1;
        } else if (strcmp (arg, "--help") == 0 || strcmp (arg, "-h") == 0) {
            *exit_code = print_overview (tables);
            return -1;
        } else {
            static const char *const names[] = {"--json",    "--csv",  "--noheader", "--config",
                                                "--version", "--help", NULL};
            const char *near = conf_nearest (arg, names);
            bool other = near && strcmp (near, arg) != 0;
            fprintf (stderr, "nui: %s %.60s%s%s%s (see nui help)\n",
                     near && !other ? "a file is missing after" : "unknown option", arg,
                     other ? ", did you mean " : "", other ? near : "", other ? "?" : "");
            *exit_code = CLI_USAGE;
            return -1;
        }
    }
    return at;
}

int cli_main (const struct cli_command *const *const *tables,
              const struct cli_command *const *links, int argc, char **argv)
{
    /* A daemon that hangs up is an error to tell, not a signal to die of. */
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction (SIGPIPE, &ignore, NULL);
    struct cli_context *ctx = cli_context_create ();
    int exit_code = CLI_USAGE;
    const char *slash = argc > 0 ? strrchr (argv[0], '/') : NULL;
    const char *name = argc > 0 ? (slash ? slash + 1 : argv[0]) : "nui";
    if (find (tables, name)) { /* called by a link */
        const struct cli_command *command = find (tables, name);
        argv[0] = (char *)(uintptr_t)command->name;
        exit_code = command_run (ctx, command, argc, argv);
    } else {
        int at = leading_options (tables, ctx, argc, argv, &exit_code);
        if (at >= 0 && at >= argc) {
            fprintf (stderr, "nui: no command given (see nui help)\n");
            exit_code = CLI_USAGE;
        } else if (at >= 0) {
            exit_code = run_command (tables, links, ctx, argc - at, argv + at);
        }
    }
    cli_context_destroy (ctx);
    int failed = fflush (stdout) != 0 ? errno : 0;
    if ((failed || ferror (stdout)) && exit_code == CLI_OK) {
        fprintf (stderr, "nui: the output cannot be written%s%s\n", failed ? ": " : "",
                 failed ? strerror (failed) : "");
        exit_code = CLI_FAILED;
    }
    return exit_code;
}
